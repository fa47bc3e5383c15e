//! Nodes whose clocks are ahead, fast or slow.

use talkspurt_proto::body::Body;
use talkspurt_proto::frame::Frame;
use talkspurt_proto::probe::{Note, Place};

use crate::support::{Look, Run, flow, link, point, run, scenario, watch};

fn speech(more: &str) -> String {
    format!("{{ kind = 'speech', codec = 'pcmu', noise = '0s'{more} }}")
}

fn node(name: &str, offset: &str, ppm: i32) -> String {
    format!("[nodes.{name}]\nclock_offset = '{offset}'\nclock_drift_ppm = {ppm}\n")
}

#[test]
fn an_offset_shows_in_timestamps_alone() {
    let question = |offset: &str| {
        let parts = [
            node("a", offset, 0),
            link(
                "l",
                "a-z",
                "1Mbit/s",
                "20ms",
                "loss = 0.02\nqueue = { kind = 'droptail', packets = 10 }",
            ),
            flow("call", "a-z", "udp", &speech(""), &format!("reverse = {}", speech(""))),
            flow("bulk", "a-z", "tcp", "{ kind = 'bulk' }", ""),
            flow("talk", "z-a", "tcp", &speech(""), ""),
        ];
        scenario("20s", &parts)
    };
    // What has a timestamp or a number that comes from the clock: (TCP's, initial, NTP).
    let look = |text: &str| {
        let (mut values, mut first, mut ntp, mut rtp) = (Vec::new(), None, Vec::new(), Vec::new());
        let run = watch(&point(text), &Look::default(), |_, place, note| match (place, note) {
            (Place::Peer(0), Note::Sent { body: Body::Udp(Frame::Rtp(packet)), .. }) => {
                rtp.push(packet.timestamp);
            }
            (Place::Peer(0), Note::Sent { body: Body::Udp(Frame::Rtcp(compound)), .. }) => {
                ntp.extend(compound.sender.map(|info| (info.ntp, info.rtp_timestamp)));
            }
            (Place::Peer(2), Note::Sent { body: Body::Tcp(segment), .. }) => {
                first.get_or_insert(segment.seq);
                values.extend(segment.timestamps.map(|(value, _)| value));
            }
            _ => {}
        });
        (run, values, first, ntp, rtp)
    };
    let (plain, plain_values, plain_first, plain_ntp, plain_rtp) = look(&question("0s"));
    let (ahead, values, first, ntp, rtp) = look(&question("3s"));
    assert_eq!(plain.flows, ahead.flows);
    assert_eq!(plain.links, ahead.links);
    assert_ne!(plain.digest, ahead.digest);
    assert!(plain.flows.iter().all(|flow| flow.lost_packets > 0));
    assert_eq!(
        values,
        plain_values.iter().map(|value| value.wrapping_add(3000)).collect::<Vec<_>>()
    );
    // RFC 9293 §3.4.1: the clock of initial numbers ticks every 4 µs.
    assert_eq!(first, plain_first.map(|seq| seq.wrapping_add(750_000)));
    assert!(ntp.len() > 2);
    for ((ahead, stamp), (plain, plain_stamp)) in ntp.iter().zip(&plain_ntp) {
        assert_eq!(ahead.middle(), plain.middle().wrapping_add(3 << 16));
        assert_eq!(stamp, plain_stamp);
    }
    assert_eq!(rtp, plain_rtp);
}

/// What G.711 Appendix I holds its output back by.
const CONCEALMENT: f64 = 0.003_75;

/// A call of a thousand seconds over 20 ms of network, between clocks of these drifts.
fn long_call(sender_ppm: i32, receiver_ppm: i32) -> Run {
    let parts = [
        node("a", "0s", sender_ppm),
        node("z", "5ms", receiver_ppm),
        link("l", "a-z", "160kbit/s", "10ms", ""),
        // 200 bytes: 10 ms.
        flow(
            "call",
            "a-z",
            "udp",
            &speech(""),
            "start_spread = '0s'\nrtcp = { enabled = false }\nplayout = { buffer = '60ms' }",
        ),
    ];
    run(&scenario("1000s", &parts))
}

#[test]
fn a_fast_listener_runs_out_of_buffer() {
    // Its playout comes forward by 100 µs a second: 60 ms are gone after 600 s.
    let run = long_call(0, 100);
    let call = run.flow("call");
    let first_of = |seconds: Option<f64>| seconds.expect("played");
    assert!((first_of(call.mouth_to_ear_max_s) - 0.1 - CONCEALMENT).abs() < 1e-5);
    assert!((first_of(call.mouth_to_ear_p50_s) - 0.07 - CONCEALMENT).abs() < 1e-5);
    // The last would be complete at the very end.
    assert_eq!(call.generated_packets, Some(49_999));
    let played = call.received_packets - call.late_packets.expect("speech");
    assert!((30_000..=30_001).contains(&played), "{played}");
}

#[test]
fn a_slow_listener_falls_behind() {
    for run in [long_call(0, -100), long_call(100, 0)] {
        // 20 + 20 + 60 ms at first, 100 ms more at the end.
        let call = run.flow("call");
        assert_eq!(call.late_packets, Some(0));
        assert!(
            (call.mouth_to_ear_max_s.expect("played") - 0.2 - CONCEALMENT).abs() < 1e-4,
            "{call:?}"
        );
        assert!((call.mouth_to_ear_p50_s.expect("played") - 0.15 - CONCEALMENT).abs() < 1e-4);
    }
}

#[test]
fn equal_drifts_keep_step() {
    let run = long_call(100, 100);
    let call = run.flow("call");
    assert_eq!(call.late_packets, Some(0));
    assert!((call.mouth_to_ear_max_s.expect("played") - 0.1 - CONCEALMENT).abs() < 1e-5);
}

#[test]
fn a_fast_node_sends_more() {
    let question = |ppm| {
        let cbr = "{ kind = 'cbr', rate = '64kbit/s', packet = '160B', noise = '0s' }";
        let parts = [
            node("a", "1s", ppm),
            link("l", "a-z", "10Mbit/s", "0s", ""),
            flow("f", "a-z", "udp", cbr, "start_spread = '0s'"),
        ];
        run(&scenario("1000.001s", &parts)).flow("f").generated_packets.expect("simulated")
    };
    // Every 20 ms by its own clock, which is one part in a hundred fast or slow.
    assert_eq!(question(0), 50_000);
    assert_eq!(question(10_000), 50_500);
    assert_eq!(question(-10_000), 49_500);
}
