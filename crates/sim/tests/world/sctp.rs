//! SCTP in the world: filling a bottleneck, and speech with and without head-of-line blocking.

use crate::support::{flow, link, run, scenario};

#[test]
fn a_queue_of_one_bandwidth_delay_product_keeps_the_link_busy() {
    // As for TCP: 10 Mbit/s and 40 ms there and back are 34 packets of 1500 bytes.
    let links = [
        link("in", "a-l", "100Mbit/s", "1ms", ""),
        link("core", "l-z", "10Mbit/s", "19ms", "queue = { kind = 'droptail', packets = 50 }"),
    ];
    let bulk = flow("f", "a-z", "{ kind = 'sctp' }", "{ kind = 'bulk' }", "");
    let run = run(&scenario("60s", &[links.concat(), bulk, "[measure]\nfrom = '10s'\n".into()]));
    let busy = run.link("core").utilisation.expect("measured");
    assert!(busy >= 0.95, "{busy}");
    assert!(run.link("core").drops_full.expect("measured") > 0);
    // One message of 1000 bytes and 48 of headers in each packet, and all that is carried arrives.
    let goodput = run.flow("f").goodput_bps.expect("measured");
    assert!(goodput > 0.97 * busy * 10e6 * 1000.0 / 1048.0, "{goodput}");
}

/// Frames of a call that missed their playout, or were lost.
fn late_and_missing(transport: &str, buffer: &str, network: &[String]) -> (u64, u64) {
    let speech = "{ kind = 'speech', codec = 'pcmu', packet = '20ms', lead = '1s' }";
    let playout = format!("playout = {{ buffer = '{buffer}' }}");
    let call = flow("f", "a-z", transport, speech, &playout);
    let run = run(&scenario("120s", &[network.concat(), call]));
    let call = run.flow("f");
    (call.late_packets.expect("a call"), call.missing_packets.expect("a call"))
}

/// Where one packet in fifty is lost, order makes each loss delay what is behind it.
#[test]
fn in_order_a_loss_delays_others_too() {
    let more = "loss = 0.02\nback = { loss = 0.0 }\nqueue = { kind = 'droptail', packets = 100 }";
    let lossy = [link("l", "a-z", "1Mbit/s", "50ms", more)];
    let ordered = late_and_missing("{ kind = 'sctp' }", "150ms", &lossy);
    let unordered = late_and_missing("{ kind = 'sctp', ordered = false }", "150ms", &lossy);
    assert_eq!((ordered.1, unordered.1), (0, 0));
    assert!(2 * ordered.0 > 3 * unordered.0, "{ordered:?} {unordered:?}");
}

/// RFC 9260 §6.9: messages longer than the path MTU are cut and put together again, through loss too;
/// so is a media packet.
#[test]
fn messages_longer_than_the_mtu_arrive_whole() {
    let lossy = [link("l", "a-z", "10Mbit/s", "20ms", "loss = 0.02\nback = { loss = 0.0 }")];
    let cbr = "{ kind = 'cbr', rate = '800kbit/s', packet = '5000B', noise = '0s' }";
    let one = flow("f", "a-z", "{ kind = 'sctp' }", cbr, "stop = '18s'\nstart_spread = '0s'");
    let seen = run(&scenario("20s", &[lossy.concat(), one]));
    let f = seen.flow("f");
    // 360 messages of four chunks, all of them delivered, in 20 s.
    assert_eq!(f.received_packets, 4 * 360);
    assert_eq!(f.goodput_bps, Some(360.0 * 5000.0 * 8.0 / 20.0));
    // 480 bytes of speech and 12 of RTP in packets of 300.
    let more = "mtu = '300B'\nloss = 0.02\nback = { loss = 0.0 }";
    let narrow = [link("l", "a-z", "10Mbit/s", "20ms", more)];
    let speech = "{ kind = 'speech', codec = 'pcmu', packet = '60ms', lead = '1s' }";
    let playout = "playout = { buffer = '3s' }";
    let call = flow("f", "a-z", "{ kind = 'sctp', mtu = '300B' }", speech, playout);
    let seen = run(&scenario("20s", &[narrow.concat(), call]));
    let f = seen.flow("f");
    assert_eq!((f.late_packets, f.missing_packets), (Some(0), Some(0)));
    assert!(f.received_packets > 400);
}
