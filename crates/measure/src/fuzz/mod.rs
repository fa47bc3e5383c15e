//! A hostile other end: bytes in place of its messages, notes and units of a stream, and
//! datagrams that it sealed itself ([`talk`]), and packets directly over IP ([`packet`]). Nothing panics, and
//! what comes takes no more memory than it may.
//!
//! Shared by the tests, which play random scripts and those kept in `fuzz/seeds`, and by the targets in
//! `fuzz/`, which look for scripts that reach what none has reached.

mod talk;

use std::net::SocketAddr;
use std::sync::LazyLock;

use talkspurt_proto::time::Duration;
use talkspurt_proto::units::Rate;
use talkspurt_scenario::Point;
use talkspurt_testing::fuzz::Script;

use crate::call::Voice;
use crate::channel::{Message, Secret};
use crate::codecs::{agree, call_codecs, codec, rungs};
use crate::direct::Pool;
use crate::end_report::EndReport;
use crate::merge::{End, Merged, merge};
use crate::notes::Log;
use crate::plan::{FlowPlan, Plan, Traffic};
use crate::privileges::Privileges;
use crate::seal::{Opener, Sealer};
use crate::server::{Config, State};
use crate::stream::Deframer;
use crate::transport::Transport;

pub use crate::direct::fuzz::packet;
pub use talk::talk;

/// What a session may send.
const LIMIT: Rate = Rate::from_bps(10_000_000);

/// A plan of flows over UDP, one of them in one direction, and its scenario.
static PLAN: LazyLock<(Plan, Point)> = LazyLock::new(|| {
    let talk = || Some(Traffic::Talkspurts { codec: "pcmu".to_owned() });
    let cbr = || Some(Traffic::Cbr { rate: 200_000, packet: 500 });
    let video = || Some(Traffic::Video { rate: 200_000, controller: Some("nada".to_owned()) });
    let flow = |name: &str, transport, up, down| {
        let (name, transport) = (name.to_owned(), Transport::known(transport));
        FlowPlan { name, transport, up, down }
    };
    let flows = vec![
        flow("udp", "udp", talk(), talk()),
        flow("tfrc", "tfrc", cbr(), talk()),
        flow("tfrc-tb", "tfrc-tb", talk(), None),
        flow("ccid2", "dccp-ccid2", cbr(), cbr()),
        flow("ccid3", "dccp-ccid3", None, talk()),
        flow("ccid4", "dccp-ccid4", talk(), talk()),
        flow("sctp", "sctp", Some(Traffic::Bulk { packet: 1000 }), cbr()),
        flow("video", "udp", video(), video()),
    ];
    let duration = Duration::from_secs(2).as_nanos();
    let plan = Plan { seed: 5, duration, mtu: 1500, ipv6: false, flows };
    let point = plan.point().expect("a plan");
    (plan, point)
});

/// Reads bytes, of which the first says what as.
pub fn read(bytes: &[u8]) {
    let Some((how, rest)) = bytes.split_first() else { return };
    match how % 5 {
        0 => message(rest),
        1 => notes(rest, false),
        2 => notes(rest, true),
        3 => units(rest),
        _ => codecs(rest),
    }
}

/// A message of the control connection, and what a server makes of a request.
fn message(bytes: &[u8]) {
    static STATE: LazyLock<State> = LazyLock::new(|| {
        let config = Config {
            listen: SocketAddr::from(([127, 0, 0, 1], 0)),
            max_rate: LIMIT,
            max_duration: Duration::from_secs(60),
            max_sessions: 1,
            ports: None,
            privileges: Privileges::Kept,
            direct: false,
            voice: None,
        };
        let secret = Secret::new(&[b'x'; 32]).expect("it is long enough");
        let raw = Pool::open(config.listen.ip(), 0);
        State::new(config, secret, raw)
    });
    let Ok(message) = postcard::from_bytes::<Message>(bytes) else { return };
    let again = postcard::to_stdvec(&message).expect("a message has a form in bytes");
    assert_eq!(postcard::from_bytes::<Message>(&again), Ok(message.clone()));
    match message {
        Message::Request { release, plan } => {
            let _ = STATE.check(&release, &plan);
            if STATE.check(env!("CARGO_PKG_VERSION"), &plan).is_ok() {
                let [up, down] = plan.shares(LIMIT);
                assert_eq!(up.as_bps() + down.as_bps(), LIMIT.as_bps());
                crate::server::told(&plan);
                talk::begin(&plan);
            }
        }
        Message::Invite { invitation, .. } => {
            let voice = Voice::of_microphone(&call_codecs()).expect("codecs of calls");
            if let Ok(Some(agreed)) = STATE.check_call(&invitation, &voice) {
                assert!(!rungs(&invitation.transport, &agreed).is_empty());
            }
        }
        _ => {}
    }
}

/// The other end's notes: of the server, or of the caller in a call that the answerer merges.
fn notes(bytes: &[u8], of_client: bool) {
    let mut script = Script::new(bytes);
    let length = usize::from(script.u16());
    let ended = postcard::from_bytes::<EndReport>(script.bytes(length));
    let (Ok(ended), Ok(rows)) = (ended, Log::rows(script.bytes(usize::MAX), usize::MAX)) else {
        return;
    };
    let (plan, point) = &*PLAN;
    let theirs = End { rows, ended };
    let at = plan.end().as_nanos();
    let ours = End { rows: Vec::new(), ended: EndReport { at, ..EndReport::default() } };
    let (client, server) = if of_client { (theirs, ours) } else { (ours, theirs) };
    let merged = merge(plan, point, client, Some(server));
    let Merged { finished, facts, .. } = merged.expect("no file fails");
    assert!(finished.duration_s <= 10.0, "{} s", finished.duration_s);
    serde_json::to_string(&facts).expect("numbers and texts");
}

/// Units of a stream in pieces, of which every second one is sealed as the other end would.
fn units(bytes: &[u8]) {
    let (mut sealer, mut opener) = (Sealer::new(&[1; 32]), Opener::new(&[1; 32]));
    let mut script = Script::new(bytes);
    let mut deframer = Deframer::default();
    while !script.is_over() {
        let is_sealed = script.bit();
        let length = usize::from(script.byte());
        let mut piece = script.bytes(length).to_vec();
        if is_sealed {
            let sealed = sealer.seal_any(&piece);
            piece = (sealed.len() as u16).to_be_bytes().to_vec();
            piece.extend(sealed);
        }
        deframer.push(&piece);
        while let Ok(Some(unit)) = deframer.next() {
            let whole = unit.len();
            if let Some((_, payload)) = opener.open(unit) {
                assert_eq!(payload.len() + crate::seal::OVERHEAD, whole);
            }
        }
    }
}

/// The codecs in the application data of DCCP's Request and Response.
fn codecs(bytes: &[u8]) {
    let text = std::str::from_utf8(bytes).unwrap_or_default();
    let offered: Vec<_> = text.split(' ').map(str::to_owned).collect();
    let ours: Vec<_> = call_codecs().iter().filter_map(|name| codec(name)).collect();
    match agree(&offered, &ours) {
        Ok(agreed) => assert!(agreed.iter().all(|codec| ours.contains(codec))),
        Err(why) => assert!(why.to_string().len() < 1000, "{why}"),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use talkspurt_testing::fuzz::{cases, replay};

    use super::*;
    use crate::budget::Budget;
    use crate::end_report::StreamEnd;
    use crate::invitation::Invitation;

    #[test]
    fn kept_bytes() {
        replay("measure", read);
    }

    /// What honest ends send is read, and written as seeds to the folder `FUZZ_SEEDS`, if there is one.
    #[test]
    fn genuine_bytes() {
        let (plan, _) = &*PLAN;
        let invitation = Invitation::example(Transport::known("dccp-ccid3"), &["opus", "pcmu"]);
        let ended = EndReport {
            at: plan.end().as_nanos(),
            early: Some("stopped".to_owned()),
            tripped: vec![(0, 7, "no reports".to_owned())],
            streams: vec![StreamEnd {
                flow: 1,
                controller: "bbr".to_owned(),
                segments: Some((9, 1)),
            }],
            ..EndReport::default()
        };
        let release = env!("CARGO_PKG_VERSION").to_owned();
        let codecs = invitation.codecs.clone();
        let (port, up, down, max_rate) = (5004, [1; 32], [2; 32], LIMIT.as_bps());
        let messages = [
            Message::Request { release: release.clone(), plan: plan.clone() },
            Message::Invite { release, invitation: Box::new(invitation.clone()) },
            Message::Accept { port, up, down, max_rate, codecs },
            Message::Refuse { why: "busy".to_owned() },
            Message::Start,
            Message::Beat,
            Message::Stop,
            Message::Finish,
            Message::Notes { bytes: vec![1, 2, 3] },
            Message::Done { ended: ended.clone() },
            Message::HangUp { why: None },
            Message::Sound { heard: true, bytes: vec![0, 1, 2, 3] },
            Message::Over { complete: true },
        ];
        let mut found: Vec<Vec<u8>> = messages
            .iter()
            .map(|message| [&[0], &*postcard::to_stdvec(message).expect("a form")].concat())
            .collect();
        let ended = postcard::to_stdvec(&ended).expect("a form");
        for [script, how] in
            [[&[0, 0, 4, 3, 0, 4, 3, 0, 0, 3][..], &[1]], [&[0, 0, 4, 3, 0, 2, 3], &[2]]]
        {
            for ran in talk::noted(script) {
                let rows = ran.log.bytes();
                let rows = &rows[..rows.len().min(1200)];
                found.push([how, &(ended.len() as u16).to_be_bytes(), &ended, rows].concat());
            }
        }
        let header = [&[3, 0][..], &7_u32.to_be_bytes(), &9_u64.to_be_bytes()].concat();
        found.push([&[3, 1, 20][..], &header, b"speech"].concat());
        found.push([&[3, 0, 4, 0, 38, 1, 2, 1, 14][..], &header].concat());
        found.push([&[4][..], b"opus g722 nonsense pcmu"].concat());
        found.iter().for_each(|bytes| read(bytes));
        if let Ok(folder) = std::env::var("FUZZ_SEEDS") {
            for (number, bytes) in found.iter().enumerate() {
                let name = format!("{folder}/genuine-{number:02}");
                std::fs::write(name, bytes).expect("a folder");
            }
        }
    }

    /// A firewall that silently drops packets from an instant on: both ends report the instant.
    #[test]
    fn a_path_that_falls_silent_is_told() {
        let (plan, point) = &*PLAN;
        let silent = |script: &[u8]| {
            let [client, server] =
                talk::noted(script).map(|ran| End { rows: ran.log.own_rows(), ended: ran.ended });
            let merged = merge(plan, point, client, Some(server)).expect("no file fails");
            ["client", "server"].map(|end| merged.facts["ends"][end]["silent_from_s"].as_f64())
        };
        // 20 ms pass, and all that is on the way arrives; and a second passes.
        let lively = [0, 0, 3].repeat(10);
        let second = [0, 5, 3];
        assert_eq!(silent(&[&[0][..], &lively, &second, &second].concat()), [None; 2]);
        let dropped = [0, 5].repeat(3);
        for since in silent(&[&[0][..], &lively, &dropped].concat()) {
            // Time begins a second before the flows, and some real time passes, too.
            assert!(since.is_some_and(|since| (1.1..2.5).contains(&since)), "{since:?}");
        }
    }

    /// What honest ends note of two seconds fits what they may send of them four times.
    #[test]
    fn honest_notes_are_a_fraction_of_what_may_come() {
        let (plan, _) = &*PLAN;
        let [client, server] = talk::noted(&[&[0][..], &[0, 0, 3].repeat(100)].concat());
        for (theirs, ours) in [(&client.log, &server.log), (&server.log, &client.log)] {
            let budget = Budget::of(plan, ours.rows);
            let (rows, bytes) = (theirs.rows, theirs.bytes().len());
            assert!(rows > 500 && 4 * rows < budget.rows, "{rows} {budget:?}");
            assert!(4 * bytes < budget.bytes, "{bytes} {budget:?}");
        }
    }

    #[test]
    fn kept_packets() {
        replay("direct", packet);
    }

    #[test]
    fn kept_talks() {
        replay("talk", talk);
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: cases(100), ..ProptestConfig::default() })]

        #[test]
        fn random_bytes(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            read(&bytes);
        }

        #[test]
        fn random_packets(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            packet(&bytes);
        }

        #[test]
        fn random_talks(script in prop::collection::vec(any::<u8>(), 0..300)) {
            talk(&script);
        }
    }
}
