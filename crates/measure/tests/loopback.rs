//! Server and client on the loopback interface: every transport, the accounts of the run that comes out, and
//! the limits of the server. Attacks are in `tests/test_measure.py`.
#![cfg(target_os = "linux")]

use std::net::SocketAddr;
use std::sync::Mutex;

use serde_json::Value;
use talkspurt_measure::{
    Config, Failure, FlowPlan, Measured, Plan, Privileges, Secret, Server, Session, Target,
    Traffic, Transport, Watch,
};
use talkspurt_proto::time::Duration;
use talkspurt_proto::units::Rate;
use talkspurt_record::FlowSummary;

const SECRET: &[u8] = b"a secret of tests";

fn server(change: impl Fn(&mut Config)) -> Server {
    let mut config = Config {
        listen: SocketAddr::from(([127, 0, 0, 1], 0)),
        max_rate: Rate::from_bps(50_000_000),
        max_duration: Duration::from_secs(60),
        max_sessions: 4,
        ports: None,
        privileges: Privileges::DroppedAs("nobody".to_owned()),
        direct: false,
        voice: None,
    };
    change(&mut config);
    // Started as root, the first server gives up the privileges of all tests: not while another starts.
    static STARTS: Mutex<()> = Mutex::new(());
    let _one_by_one = STARTS.lock();
    Server::start(config, Secret::new(SECRET).expect("it is long")).expect("loopback has ports")
}

fn connect(server: &Server) -> Session {
    let local = server.local();
    let target = Target { host: local.ip().to_string(), port: local.port() };
    Session::connect(&target, &Secret::new(SECRET).expect("it is long")).expect("it is there")
}

fn flow(name: &str, transport: &str, up: Option<Traffic>, down: Option<Traffic>) -> FlowPlan {
    let transport = Transport::named(transport).expect("it is known");
    FlowPlan { name: name.to_owned(), transport, up, down }
}

fn plan(flows: Vec<FlowPlan>) -> Plan {
    Plan { seed: 5, duration: Duration::from_secs(2).as_nanos(), mtu: 1500, ipv6: false, flows }
}

fn cbr(rate: u64, packet: u32) -> Option<Traffic> {
    Some(Traffic::Cbr { rate, packet })
}

/// Nothing is lost on loopback, except where a busy machine does not read its socket in time.
fn assert_lost_only_at_full_sockets(flows: &[FlowSummary], facts: &Value) {
    let lost = flows.iter().map(|flow| flow.lost_packets).sum::<u64>();
    let overruns = ["client", "server"].map(|end| facts["ends"][end]["overrun_datagrams"].as_u64());
    assert!(Some(lost) <= overruns.into_iter().sum(), "{lost} packets: {facts}");
}

/// A packet every 20 ms for two seconds each way: all arrive, and every account balances.
#[test]
fn constant_bit_rate_arrives_over_every_transport() {
    let server = server(|_| {});
    let names: Vec<_> = Transport::all().map(|it| it.name()).collect();
    let flows = names.iter().map(|name| flow(name, name, cbr(64_000, 160), cbr(64_000, 160)));
    let mut plan = plan(flows.collect());
    // Servers of these tests give up the privilege for raw sockets of the whole process.
    let direct = |flow: &FlowPlan| flow.name.ends_with("-ip");
    plan.flows.retain(|flow| flow.name != "tfrc-tb" && !direct(flow));
    let Measured { finished, facts, broken, .. } =
        connect(&server).measure(&plan, &Watch::default(), drop).expect("it runs");
    assert_eq!(broken, None);
    finished.recording.conservation().expect("every account balances");
    assert!(plan.flows.len() >= 8);
    assert_eq!(finished.recording.flows.len(), 2 * plan.flows.len());
    assert_lost_only_at_full_sockets(&finished.recording.flows, &facts);
    for flow in &finished.recording.flows {
        // The server's sources start later than the window, which is by the client's clock; on a busy machine
        // much later.
        let generated = flow.generated_packets.expect("made by this program");
        assert!((50..=102).contains(&generated), "{}", flow.name);
        // Rate-controlled senders begin slowly, but nothing may be lost on loopback.
        assert!(flow.received_packets > 0, "{}: {}", flow.name, flow.received_packets);
        let delay = flow.delay_p50_s.expect("the clocks are related");
        assert!((0.0..0.2).contains(&delay), "{}: {delay}", flow.name);
    }
    let bound = facts["clock_offset_bound_s"].as_f64().expect("the clocks are related");
    assert!(bound < 0.01, "{facts}");
}

/// Bulk both ways: both ends together stay below the limit, and what they do not send for it is no loss.
#[test]
fn both_directions_together_stay_within_the_limit() {
    let limit = 4_000_000;
    let server = server(|config| config.max_rate = Rate::from_bps(limit));
    let bulk = || Some(Traffic::Bulk { packet: 1200 });
    let plan = plan(vec![
        flow("sctp", "sctp", bulk(), bulk()),
        flow("dccp", "dccp-ccid2", bulk(), bulk()),
    ]);
    let Measured { finished, facts, broken, .. } =
        connect(&server).measure(&plan, &Watch::default(), drop).expect("it runs");
    assert_eq!(broken, None);
    finished.recording.conservation().expect("every account balances");
    let flows = &finished.recording.flows;
    let bits = flows.iter().map(|flow| 8 * flow.sent_bytes).sum::<u64>();
    // Each end may send a burst of 100 ms at first.
    assert!(bits as f64 <= limit as f64 * 2.1, "{bits} bit in 2 s");
    for end in ["client", "server"] {
        assert!(facts["ends"][end]["policed_packets"].as_u64() > Some(0), "{facts}");
    }
    assert!(flows.iter().all(|flow| flow.received_packets > 0), "{facts}");
    assert_lost_only_at_full_sockets(flows, &facts);
}

/// Video under a controller both ways: feedback goes back, and each end decodes what the other one made.
#[test]
fn video_follows_a_controller_and_is_decoded() {
    let server = server(|_| {});
    let video = |kind: Option<&str>| {
        let controller = kind.map(str::to_owned);
        Some(Traffic::Video { rate: 800_000, controller })
    };
    let of = |name: &str, transport: &str, kind: Option<&str>| {
        flow(name, transport, video(kind), video(kind))
    };
    let flows = vec![
        of("gcc", "udp", Some("gcc")),
        of("nada", "udp", Some("nada")),
        of("fixed", "udp", Some("fixed")),
        of("tfrc", "tfrc", None),
    ];
    let plan = plan(flows);
    let Measured { finished, facts, broken, .. } =
        connect(&server).measure(&plan, &Watch::default(), drop).expect("it runs");
    assert_eq!(broken, None);
    finished.recording.conservation().expect("every account balances");
    assert_eq!(finished.recording.flows.len(), 8);
    assert_lost_only_at_full_sockets(&finished.recording.flows, &facts);
    for flow in &finished.recording.flows {
        let video = flow.video.as_ref().expect("frames");
        assert!(video.frames > 20 && video.complete > 10, "{}: {video:?}", flow.name);
        if !flow.name.starts_with("tfrc") {
            assert!(flow.transport.contains("udp+"), "{:?}", flow.transport);
        }
    }
    let faulty = |traffic| {
        let plan = self::plan(vec![flow("udp", "udp", traffic, None)]);
        plan.point().map(drop).expect_err("it is bad").to_string()
    };
    assert!(faulty(video(None)).contains("needs a --controller"));
    let unknown = faulty(video(Some("scream")));
    assert!(unknown.contains("controller"), "{unknown}");
    let slow = Some(Traffic::Video { rate: 10, controller: Some("nada".to_owned()) });
    assert!(faulty(slow).contains("10 kbit/s"));
}

/// A session beyond the permitted number is refused in words, and does not disturb the first.
#[test]
fn sessions_are_limited() {
    let server = server(|config| config.max_sessions = 1);
    let plan = plan(vec![flow("udp", "udp", None, cbr(64_000, 160))]);
    std::thread::scope(|scope| {
        let mut session = connect(&server);
        let watch = Watch::default();
        let (first, watched) = (&plan, watch.clone());
        let first =
            scope.spawn(move || session.measure(first, &watched, drop).expect("it is the first"));
        while watch.passed().as_nanos() == 0 {
            std::thread::yield_now();
        }
        let refused = connect(&server).measure(&plan, &Watch::default(), drop).err();
        assert!(
            matches!(refused, Some(Failure::Refused(why)) if why.contains("as many as it permits"))
        );
        assert_eq!(first.join().expect("no panic").broken, None);
    });
}
