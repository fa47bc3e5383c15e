//! Other ends that have the secret and speak the protocol, and then say what no honest end says.

use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::sync::Mutex;
use std::thread;

use talkspurt_live::Clock;
use talkspurt_proto::time::{Duration, Instant};
use talkspurt_proto::units::Rate;

use crate::budget::Budget;
use crate::call::{Called, Voice};
use crate::channel::{BEAT, Channel, Message, Secret};
use crate::client::{Accepted, Measured, Session, Target, negotiate};
use crate::end_report::{EndReport, StreamEnd};
use crate::exchange::take_notes;
use crate::invitation::Invitation;
use crate::notes::{Log, What};
use crate::plan::{FlowPlan, Plan, Traffic};
use crate::privileges::Privileges;
use crate::server::{Config, Server};
use crate::shared::{Shared, Watch};
use crate::transport::Transport;
use crate::wire::Wire;

fn secret() -> Secret {
    Secret::new(b"a secret of tests").expect("it is long")
}

fn loopback() -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], 0))
}

/// A second of constant bit rate up and down over eight flows: sixteen peers.
fn plan() -> Plan {
    let cbr = || Some(Traffic::Cbr { rate: 64_000, packet: 160 });
    let flow = |number| FlowPlan {
        name: format!("flow-{number}"),
        transport: Transport::known("udp"),
        up: cbr(),
        down: cbr(),
    };
    let duration = Duration::from_secs(1).as_nanos();
    Plan { seed: 1, duration, mtu: 1500, ipv6: false, flows: (0..8).map(flow).collect() }
}

/// What a client makes of a server that serves, and at the end does this; and what the client kept before.
fn measured(
    plan: &Plan,
    watch: &Watch,
    end: impl FnOnce(&mut Channel) + Send,
) -> (Measured, Option<Measured>) {
    let listener = TcpListener::bind(loopback()).expect("loopback has ports");
    let at = listener.local_addr().expect("it is bound");
    let mut half = None;
    let measured = thread::scope(|scope| {
        scope.spawn(|| {
            let (stream, _) = listener.accept().expect("a client comes");
            let mut channel = Channel::accept(stream, &secret()).expect("it has the secret");
            let next = |channel: &mut Channel| channel.receive(BEAT).expect("it is there");
            let Some(Message::Request { plan, .. }) = next(&mut channel) else {
                panic!("a request");
            };
            let [up, down] = [[1; 32], [2; 32]];
            let mut wire = Wire::listen(loopback(), &[up, down], &plan).expect("a port");
            let (port, codecs) = (wire.local().port(), Vec::new());
            let accept = Message::Accept { port, up, down, max_rate: 20_000_000, codecs };
            channel.send(&accept).expect("it is there");
            let shared = Shared::default();
            thread::scope(|scope| {
                scope.spawn(|| wire.be_greeted(loopback().ip(), &shared));
                while next(&mut channel) != Some(Message::Start) {}
                shared.started.store(true, std::sync::atomic::Ordering::Release);
            });
            while next(&mut channel) != Some(Message::Finish) {
                channel.send(&Message::Beat).expect("it is there");
            }
            end(&mut channel);
        });
        let target = Target { host: at.ip().to_string(), port: at.port() };
        let mut session = Session::connect(&target, &secret()).expect("it is there");
        session.measure(plan, watch, |own| half = Some(own)).expect("it runs")
    });
    (measured, half)
}

/// The packets that this end sent are in its tables: fifty a flow, on a busy machine fewer.
fn assert_own_half(plan: &Plan, measured: &Measured) {
    let rows = &measured.finished.recording.flows;
    assert_eq!(rows.len(), 2 * plan.flows.len());
    let up = rows.iter().filter(|row| row.from == "client");
    assert!(up.clone().count() == plan.flows.len() && up.clone().all(|row| row.sent_packets > 5));
}

/// Bytes of memory that this process has had at most.
fn most_memory() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux has it");
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).expect("Linux has it");
    let kilobytes = line.split_whitespace().nth(1).and_then(|it| it.parse::<usize>().ok());
    1024 * kilobytes.expect("a number")
}

/// More than all tests of this crate take together.
const MEMORY: usize = 500 << 20;

/// Two notes of each peer: the second has the highest number there is.
fn high_numbers(peers: usize) -> Log {
    let mut log = Log::default();
    for peer in 0..peers {
        for number in [0, u32::MAX - 2] {
            let at = Instant::from_nanos(1_500_000_000 + u64::from(number));
            let captured = at.as_nanos();
            log.add(at, peer, What::Generated { index: number, bytes: 160, captured });
            let (transport, media, payload) = (8, 0, 160);
            log.add(at, peer, What::Sent { number, bytes: 238, transport, media, payload });
            log.add(at, peer, What::Received { number, bytes: 238, sent: captured, payload: true });
        }
    }
    log
}

fn done(at: u64) -> Message {
    Message::Done { ended: EndReport { at, ..EndReport::default() } }
}

#[test]
fn high_numbers_of_a_server_take_no_memory() {
    let plan = plan();
    let (measured, half) = measured(&plan, &Watch::default(), |channel| {
        let bytes = high_numbers(16).bytes().to_vec();
        channel.send(&Message::Notes { bytes }).expect("it is there");
        channel.send(&done(plan.end().as_nanos())).expect("it is there");
    });
    assert!(most_memory() < MEMORY, "{}", most_memory());
    assert_own_half(&plan, &measured);
    assert_own_half(&plan, &half.expect("it was kept"));
    assert!(measured.broken.is_some_and(|why| why.contains("cannot be true")));
}

#[test]
fn a_server_sends_no_more_notes_than_the_plan_can_have() {
    let plan = plan();
    let mut given = 0;
    let (measured, _) = measured(&plan, &Watch::default(), |channel| {
        // The shortest notes there are.
        let mut log = Log::default();
        (0..1500).for_each(|_| log.add(Instant::ZERO, 0, What::Encoding { rung: 0 }));
        let notes = Message::Notes { bytes: log.bytes().to_vec() };
        while channel.send(&notes).is_ok() {
            given += log.bytes().len();
        }
    });
    // Bytes that wait in the loopback sockets count as sent, too.
    assert!(given < Budget::of(&plan, 0).bytes + (16 << 20), "{given}");
    assert!(most_memory() < MEMORY, "{}", most_memory());
    assert_own_half(&plan, &measured);
    let why = measured.broken.expect("there are too many");
    assert!(why.contains("longer than those of this plan can be"), "{why}");
}

/// Of an hour of speech, no more than memory for it, and one number fills no gap of millions.
#[test]
fn an_hour_of_speech_has_a_budget() {
    let flow = FlowPlan {
        name: "call".to_owned(),
        transport: Transport::known("udp"),
        up: Some(Traffic::Cbr { rate: 64_000, packet: 160 }),
        down: None,
    };
    let duration = Duration::from_secs(3600).as_nanos();
    let hour = Plan { seed: 1, duration, mtu: 1500, ipv6: false, flows: vec![flow] };
    let Budget { packets, rows, bytes, .. } = Budget::of(&hour, 0);
    // 50 packets a second are 180 000.
    assert!((180_000..1_000_000).contains(&packets), "{packets}");
    assert!((1_800_000..10_000_000).contains(&rows) && bytes < 400_000_000, "{rows} {bytes}");
    let fast = Plan {
        flows: vec![FlowPlan {
            up: Some(Traffic::Cbr { rate: 1_000_000_000, packet: 160 }),
            ..hour.flows[0].clone()
        }],
        ..hour
    };
    assert!(Budget::of(&fast, 0).bytes <= 1_000_000_000);
}

/// Ctrl-C ends a client within ten seconds, whatever the server sends.
#[test]
fn empty_notes_hold_nobody_up_who_wants_to_leave() {
    let (plan, watch) = (plan(), Watch::default());
    let clock = Clock::start();
    let mut asked = None;
    let (measured, _) = measured(&plan, &watch, |channel| {
        watch.stop();
        asked = Some(clock.now());
        while channel.send(&Message::Notes { bytes: Vec::new() }).is_ok() {
            thread::sleep(std::time::Duration::from_millis(200));
        }
    });
    let took = asked.map(|asked| clock.now().saturating_since(asked));
    assert!(took.is_some_and(|took| took < Duration::from_secs(20)), "{took:?}");
    assert_own_half(&plan, &measured);
    assert!(measured.broken.is_some_and(|why| why.contains("did not come in time")));
}

/// The same without Ctrl-C, when the time for all notes is over.
#[test]
fn empty_notes_and_beats_come_for_a_limited_time() {
    let plan = plan();
    for message in [Message::Notes { bytes: Vec::new() }, Message::Beat] {
        let listener = TcpListener::bind(loopback()).expect("loopback has ports");
        let at = listener.local_addr().expect("it is bound");
        let taken = thread::scope(|scope| {
            scope.spawn(|| {
                let (stream, _) = listener.accept().expect("a client comes");
                let mut channel = Channel::accept(stream, &secret()).expect("it has the secret");
                while channel.send(&message).is_ok() {
                    thread::sleep(std::time::Duration::from_millis(50));
                }
            });
            let wait = std::time::Duration::from_secs(5);
            let mut channel = Channel::connect(at, &secret(), wait).expect("it is there");
            let budget = Budget { time: Duration::from_secs(1), ..Budget::of(&plan, 0) };
            take_notes(&mut channel, (&plan, budget), &Shared::default()).err()
        });
        assert_eq!(taken.as_deref(), Some("the other end's notes did not come in time"));
    }
}

/// A server that goes instead of giving its notes does not take the client's along.
#[test]
fn what_the_client_knows_is_kept_before_the_server_is_asked() {
    let plan = plan();
    let kept = Mutex::new(None);
    let (measured, half) = measured(&plan, &Watch::default(), |_| {
        *kept.lock().expect("no panic") = Some(());
    });
    assert!(kept.into_inner().expect("no panic").is_some(), "the server was asked");
    assert_own_half(&plan, &half.expect("it was kept"));
    assert_own_half(&plan, &measured);
    let why = measured.broken.expect("there are no notes of the server");
    assert!(why.ends_with("notes came; results are of what this end knows"), "{why}");
}

fn answering(seconds: u64) -> (Server, Invitation) {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../speech/french-woman.wav");
    let voice = Voice::open(&file, &["pcmu".to_owned()]).expect("it is a recording");
    let config = Config {
        listen: loopback(),
        max_rate: Rate::from_bps(4_000_000),
        max_duration: Duration::from_secs(60),
        max_sessions: 1,
        ports: None,
        privileges: Privileges::Kept,
        direct: false,
        voice: Some(voice),
    };
    let server = Server::start(config, secret()).expect("loopback has ports");
    let duration = Duration::from_secs(seconds).as_nanos();
    (server, Invitation { duration, ..Invitation::example(Transport::known("udp"), &["pcmu"]) })
}

/// The control connection of a caller whose call has been accepted, and its way for datagrams.
fn accepted(server: &Server, invitation: &Invitation) -> (Channel, Wire) {
    let wait = std::time::Duration::from_secs(5);
    let plan = invitation.plan(None);
    // On a busy machine, greetings can take too long.
    for _ in 0..10 {
        let mut channel = Channel::connect(server.local(), &secret(), wait).expect("it is there");
        let release = env!("CARGO_PKG_VERSION").to_owned();
        let invite = Message::Invite { release, invitation: Box::new(invitation.clone()) };
        channel.send(&invite).expect("it is there");
        let plan = (&plan, Vec::new());
        let agreed = negotiate(&mut channel, server.local(), plan, &Shared::default());
        if let Ok(Accepted { wire, .. }) = agreed {
            return (channel, wire);
        }
        thread::sleep(std::time::Duration::from_secs(1));
    }
    panic!("no call is accepted");
}

/// What the answerer has of a call that lasts no longer than so many seconds.
fn called(server: &Server, seconds: u64) -> Option<Called> {
    let clock = Clock::start();
    while clock.now() < Instant::ZERO + Duration::from_secs(seconds) {
        if let Some(called) = server.called() {
            return Some(called);
        }
        if server.call().is_none() && clock.now() > Instant::ZERO + Duration::from_secs(2) {
            return server.called();
        }
        thread::sleep(std::time::Duration::from_millis(20));
    }
    panic!("the call has not ended after {seconds} s");
}

fn beats_until_closed(channel: &mut Channel) {
    while channel.send(&Message::Beat).is_ok() && channel.receive(BEAT).is_ok() {}
}

/// A caller that does not begin, and one that does not finish: the answerer is free again, with what it heard.
#[test]
fn heartbeats_alone_hold_no_answerer() {
    let hold = |begins| {
        let (server, invitation) = answering(1);
        let (mut channel, _wire) = accepted(&server, &invitation);
        thread::scope(|scope| {
            scope.spawn(move || {
                if begins {
                    channel.send(&Message::Start).expect("it is there");
                }
                beats_until_closed(&mut channel);
            });
            // The plan lasts 3.5 s.
            let called = called(&server, 45);
            assert_eq!(called.is_some(), begins);
        });
    };
    thread::scope(|scope| {
        for begins in [false, true] {
            scope.spawn(move || hold(begins));
        }
    });
}

/// What the answerer has of a call whose caller does this instead of giving its notes.
fn after_finish(end: impl FnOnce(&mut Channel) + Send) -> Called {
    let (server, invitation) = answering(1);
    let (mut channel, _wire) = accepted(&server, &invitation);
    thread::scope(|scope| {
        scope.spawn(move || {
            channel.send(&Message::Start).expect("it is there");
            thread::sleep(std::time::Duration::from_millis(500));
            channel.send(&Message::Finish).expect("it is there");
            end(&mut channel);
        });
        called(&server, 60).expect("the call began")
    })
}

#[test]
fn high_numbers_of_a_caller_take_no_memory() {
    let called = after_finish(|channel| {
        let bytes = high_numbers(2).bytes().to_vec();
        channel.send(&Message::Notes { bytes }).expect("it is there");
        channel.send(&done(u64::MAX)).expect("it is there");
    });
    assert!(most_memory() < MEMORY, "{}", most_memory());
    assert!(called.broken.is_some_and(|why| why.contains("cannot be true")));
    assert!(called.finished.is_some_and(|finished| finished.duration_s < 5.0));
}

#[test]
fn a_caller_sends_no_more_notes_than_the_call_can_have() {
    let called =
        after_finish(
            |channel| {
                while channel.send(&Message::Notes { bytes: vec![0; 8192] }).is_ok() {}
            },
        );
    assert!(most_memory() < MEMORY, "{}", most_memory());
    let why = called.broken.expect("there are too many");
    assert!(why.contains("longer than those of this plan can be"), "{why}");
}

/// More sound than a call of a second can have is not kept.
#[test]
fn a_caller_sends_no_more_sound_than_the_call_can_have() {
    let called = after_finish(|channel| {
        channel.send(&done(1_500_000_000)).expect("it is there");
        while channel.send(&Message::Sound { heard: true, bytes: vec![0; 8192] }).is_ok() {
            if !matches!(channel.receive(Duration::from_millis(1)), Ok(None | Some(_))) {
                break;
            }
        }
    });
    assert!(most_memory() < MEMORY, "{}", most_memory());
    assert_eq!(called.facts["call"]["sound_exchanged"], false);
}

/// A report names each flow once, and only flows that there are, in words that fit a screen.
#[test]
fn reports_say_what_an_honest_end_can_say() {
    let plan = plan();
    let stream = |flow, controller: &str| StreamEnd {
        flow,
        controller: controller.to_owned(),
        segments: None,
    };
    let long = "x".repeat(60_000);
    let ended = EndReport {
        early: Some(long.clone()),
        tripped: (0..5000).map(|number| ((number % 10) as u8, 1, long.clone())).collect(),
        streams: vec![stream(0, "cubic"), stream(0, "reno"), stream(1, "\u{1b}"), stream(9, "bbr")],
        ..EndReport::default()
    };
    let sifted = ended.sifted(&plan);
    assert_eq!(sifted.tripped.len(), plan.flows.len());
    assert!(sifted.tripped.iter().all(|(_, _, why)| why.len() == 4000));
    assert_eq!(sifted.early.map(|why| why.len()), Some(4000));
    assert_eq!(sifted.streams, [stream(0, "cubic")]);
}
