//! The spread of round trips at constant rates, as seen by Renker (*CCID 3 over WiFi*, 2008): none on
//! a wire, growing with load on the air.

use std::collections::BTreeMap;

use talkspurt_proto::probe::{Note, Place};
use talkspurt_proto::time::Instant;

use super::hops::{cafe, cbr};
use crate::support::{Look, flow, link, point, scenario, watch};

/// Round trips of data over DCCP with CCID 3, payloads of 1400 B at this rate: on the way, that is
/// without what an acknowledgement waits at the receiver. Median and 99th percentile in ms.
fn round_trips(network: &str, rate: &str, more: &str) -> (f64, f64) {
    let source = format!("{{ kind = 'cbr', rate = '{rate}', packet = '1400B' }}");
    let transport = "{ kind = 'dccp', ccid = 3 }";
    let stream = flow("stream", "net-laptop", transport, &source, "");
    let parts =
        [network.to_owned(), stream, more.to_owned(), "[measure]\nfrom = '10s'\n".to_owned()];
    let text = scenario("70s", &parts);
    // What took how long on the way there, by when it arrived.
    let mut there: BTreeMap<Instant, f64> = BTreeMap::new();
    let mut trips = Vec::new();
    watch(&point(&text), &Look::default(), |now, place, note| match (place, note) {
        (Place::Peer(1), Note::Received { packet, .. }) => {
            there.insert(now, (now - packet.sent).as_secs_f64());
        }
        (Place::Peer(0), Note::Received { packet, .. }) => {
            if let Some((_, forth)) = there.range(..=packet.sent).next_back()
                && now.as_secs_f64() > 10.0
            {
                trips.push((forth + (now - packet.sent).as_secs_f64()) * 1e3);
            }
        }
        _ => {}
    });
    trips.sort_by(f64::total_cmp);
    assert!(trips.len() > 50, "{}", trips.len());
    (trips[trips.len() / 2], trips[trips.len() * 99 / 100])
}

#[test]
fn round_trips_spread_on_the_air_and_not_on_a_wire() {
    let fifo = "queue = { kind = 'droptail', packets = 1000 }\n";
    // A wire of what the cell carries alone.
    let wire = link("wire", "net-laptop", "6.87Mbit/s", "1ms", fifo);
    let words = format!("short_preamble = true\n{fifo}");
    let cell = cafe(&["laptop", "other"], &words);
    let light = cbr("light", "other-net", "256kbit/s", 400, "");
    let saturated = cafe(
        &["laptop", "other"],
        &format!("{words}contenders = {{ count = 1, packet = '1428B' }}"),
    );
    let mut spreads = Vec::new();
    println!("p99 − p50 in ms (p50): wire, cell alone, one station at 256 kbit/s, one saturated");
    for rate in ["2Mbit/s", "5Mbit/s", "6Mbit/s"] {
        let all = [
            round_trips(&wire, rate, ""),
            round_trips(&cell, rate, ""),
            round_trips(&cell, rate, &light),
            round_trips(&saturated, rate, ""),
        ];
        let told: Vec<String> =
            all.iter().map(|(p50, p99)| format!("{:.2} ({p50:.2})", p99 - p50)).collect();
        println!("{rate}: {}", told.join(", "));
        spreads.push(all.map(|(p50, p99)| p99 - p50));
    }
    let [two, five, six] = spreads[..] else { panic!("three rates") };
    // On the wire the noise of the source (a millisecond at most) and a packet in the way are all.
    assert!([two, five, six].iter().all(|spread| spread[0] < 1.0));
    // At 2 Mbit/s the air is quiet: less than a full backoff of 31 slots and an acknowledgement.
    assert!(two[1] < 1.0 && two[1] > 10.0 * two[0], "{two:?}");
    // 5 Mbit/s have spikes, 6 Mbit/s is the limit; each further station makes it worse.
    for (fuller, emptier) in [(five, two), (six, five)] {
        assert!((0..3).all(|at| fuller[at] > emptier[at]), "{fuller:?} {emptier:?}");
        assert!(fuller[1] > 3.0 * emptier[1], "{fuller:?} {emptier:?}");
    }
    for spread in [two, five, six] {
        assert!(spread[1] > 5.0 * spread[0], "{spread:?}");
        assert!(spread[2] > 1.5 * spread[1] && spread[3] > 10.0 * spread[2], "{spread:?}");
    }
    // Beside a station that always has a frame, each gets half: more than that waits for seconds.
    assert!(two[3] < 20.0 && five[3] > 500.0 && six[3] > 500.0);
}
