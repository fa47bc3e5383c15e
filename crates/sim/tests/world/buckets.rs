//! Token buckets against their closed form, RFC 2697 and RFC 2698 worked out on paper; bands beside
//! them.

use proptest::prelude::*;
use talkspurt_proto::probe::{DropReason, Note};
use talkspurt_proto::time::{Duration, Instant};
use talkspurt_proto::units::Rate;

use crate::lone_link::{Arrival, Verdict, fates};
use crate::support::{self, Look, flow, link, ms, scenario};

const MTU: u32 = 1500;
/// So fast that transmissions take no part.
const FAST: Rate = Rate::from_bps(1_000_000_000_000_000);

fn burst(at: u64, packets: usize) -> Vec<Arrival> {
    vec![Arrival { at: ms(at), bytes: 125, dscp: 46 }; packets]
}

/// Code points in order; 255 for those that were dropped.
fn codes(fates: &[Verdict]) -> Vec<u8> {
    let code = |verdict: &Verdict| match verdict {
        Verdict::Sent(_, code) => *code,
        Verdict::Dropped(why) => {
            assert_eq!(*why, DropReason::Early);
            255
        }
    };
    fates.iter().map(code).collect()
}

#[test]
fn a_policer_colours_as_rfc_2697_says() {
    let inner = "queue = { kind = 'droptail', packets = 100 }";
    let arrivals: Vec<_> = [burst(0, 8), burst(1000, 8), burst(1100, 1)].concat();
    let police = |knobs: &str| {
        let words = format!("kind = 'policer', rate = '8kbit/s', burst = '500B', {knobs} {inner}");
        codes(&fates(&words, FAST, MTU, &arrivals))
    };
    // 500 bytes are four packets; in a second as many come again, in 100 ms not one.
    let alone = [46, 46, 46, 46, 255, 255, 255, 255];
    assert_eq!(police(""), [alone.as_slice(), &alone, &[255]].concat());
    let marked = [46, 46, 46, 46, 0, 0, 0, 0];
    assert_eq!(police("red_dscp = 0,"), [marked.as_slice(), &marked, &[0]].concat());
    // 300 more are two packets, and 50 are left; of the thousand that come in a second the first
    // bucket takes 500, the second 250. The last, 100 ms later, finds 100 in the first and 50 in the
    // second.
    let excess = [46, 46, 46, 46, 12, 12, 255, 255];
    assert_eq!(
        police("excess_burst = '300B', yellow_dscp = 12,"),
        [excess.as_slice(), &excess, &[255]].concat()
    );
}

#[test]
fn a_policer_colours_as_rfc_2698_says() {
    let words = "kind = 'policer', rate = '8kbit/s', burst = '375B', peak_rate = '16kbit/s', \
                 peak_burst = '625B', yellow_dscp = 12, red_dscp = 14, \
                 queue = { kind = 'droptail', packets = 100 }";
    // 625 bytes at the peak rate are five packets, 375 of the committed three of these. After 125 ms
    // there are 250 and 125; a red packet takes none of them.
    let arrivals = [burst(0, 8), burst(125, 4)].concat();
    let expected = [46, 46, 46, 12, 12, 14, 14, 14, 46, 12, 14, 14];
    assert_eq!(codes(&fates(words, FAST, MTU, &arrivals)), expected);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Bytes that conform, and those that a shaper lets out, in any span of time: rate · t + burst at
    /// most; and a shaper's packets leave at the very instant at which this, the link and their own
    /// arrival allow it.
    #[test]
    fn no_span_sees_more_than_a_bucket_and_what_came_in(
        rate in 1_000_u64..2_000_000,
        burst in 1500_u64..6000,
        peak in proptest::option::of(1_u64..8),
        packets in proptest::collection::vec((0_u64..40_000_000, 40_u32..1500), 1..120),
    ) {
        let mut at = 0;
        let arrivals: Vec<Arrival> = packets
            .iter()
            .map(|(gap, bytes)| {
                at += gap;
                Arrival { at: Instant::from_nanos(at), bytes: *bytes, dscp: 0 }
            })
            .collect();
        let bits = |bytes: u64| u128::from(bytes) * 8_000_000_000;
        let inner = "queue = { kind = 'droptail', packets = 1000 }";

        let words = format!("kind = 'policer', rate = '{rate}bit/s', burst = '{burst}B', {inner}");
        let all = fates(&words, FAST, MTU, &arrivals);
        let passed = all.iter().zip(&arrivals).filter(|(verdict, _)| verdict.start().is_some());
        let passed: Vec<Arrival> = passed.map(|(_, arrival)| *arrival).collect();
        for (first, from) in passed.iter().enumerate() {
            let mut sum = 0;
            for to in &passed[first..] {
                sum += u64::from(to.bytes);
                let span = u128::from((to.at - from.at).as_nanos());
                prop_assert!(bits(sum) <= bits(burst) + u128::from(rate) * span);
            }
        }

        let line = Rate::from_bps(3_000_000);
        let peak = peak.map(|times| rate * times);
        let faster = peak.map_or(String::new(), |peak| format!("peak_rate = '{peak}bit/s',"));
        let words =
            format!("kind = 'shaper', rate = '{rate}bit/s', burst = '{burst}B', {faster} {inner}");
        let buckets: Vec<(u64, u64)> =
            [Some((rate, burst)), peak.map(|peak| (peak, 1500))].into_iter().flatten().collect();
        let mut starts: Vec<Instant> = Vec::new();
        for (index, (verdict, arrival)) in
            fates(&words, line, MTU, &arrivals).iter().zip(&arrivals).enumerate()
        {
            let mut earliest = arrival.at;
            if let Some((before, start)) = arrivals[..index].last().zip(starts.last()) {
                earliest = earliest.max(*start + line.time_for(before.bytes.into()).unwrap());
            }
            for (rate, burst) in &buckets {
                let mut sum = u64::from(arrival.bytes);
                for (from, start) in arrivals[..index].iter().zip(&starts).rev() {
                    sum += u64::from(from.bytes);
                    let lacking = bits(sum).saturating_sub(bits(*burst));
                    let span = lacking.div_ceil(u128::from(*rate)) as u64;
                    earliest = earliest.max(*start + Duration::from_nanos(span));
                }
            }
            prop_assert_eq!(verdict.start(), Some(earliest), "packet {}", index);
            starts.push(earliest);
        }
    }
}

#[test]
fn a_band_passes_one_that_waits_for_tokens() {
    let words = "kind = 'priority', bands = [ \
                 { dscp = [46], queue = { kind = 'droptail', packets = 10 } }, \
                 { queue = { kind = 'shaper', rate = '8kbit/s', burst = '125B', \
                 queue = { kind = 'droptail', packets = 10 } } } ]";
    let bulk = |at| Arrival { at: ms(at), bytes: 125, dscp: 0 };
    let call = |at| Arrival { at: ms(at), bytes: 125, dscp: 46 };
    let arrivals = [bulk(0), bulk(0), bulk(0), call(50), call(50), bulk(60)];
    let starts: Vec<_> = fates(words, Rate::from_bps(1_000_000), 125, &arrivals)
        .into_iter()
        .map(|verdict| verdict.start().unwrap().as_nanos() / 1_000_000)
        .collect();
    // A packet takes a millisecond, its tokens 125.
    assert_eq!(starts, [0, 125, 250, 50, 51, 375]);
}

#[test]
fn bands_have_limits_of_their_own_and_code_points_choose_them() {
    let words = "kind = 'priority', bands = [ \
                 { dscp = [46, 34], queue = { kind = 'droptail', packets = 2 } }, \
                 { queue = { kind = 'droptail', packets = 3 } }, \
                 { dscp = [8], queue = { kind = 'droptail', packets = 1 } } ]";
    let of = |dscp, count| vec![Arrival { at: ms(0), bytes: 125, dscp }; count];
    let arrivals = [of(8, 3), of(0, 4), of(46, 2), of(34, 1), of(5, 1)].concat();
    let starts: Vec<_> = fates(words, Rate::from_bps(1_000_000), 125, &arrivals)
        .into_iter()
        .map(|verdict| verdict.start().map(|start| start.as_nanos() / 1_000_000))
        .collect();
    // The first found the link idle; the rest of its band has one place, the others two and three.
    let low = [Some(0), Some(6), None];
    let rest = [Some(3), Some(4), Some(5), None];
    let urgent = [Some(1), Some(2), None];
    assert_eq!(starts, [low.as_slice(), &rest, &urgent, &[None]].concat());
}

#[test]
fn calls_pass_uploads_whose_rate_a_shaper_holds() {
    let queue = "queue = { kind = 'shaper', rate = '1Mbit/s', burst = '3kB', \
                 queue = { kind = 'priority', bands = [ \
                 { dscp = [46], queue = { kind = 'policer', rate = '100kbit/s', burst = '1kB', \
                 queue = { kind = 'droptail', packets = 20 } } }, \
                 { queue = { kind = 'red', packets = 100, min_threshold = 15, max_threshold = 45 } } ] } }";
    let parts = [
        link("l", "b-z", "10Mbit/s", "10ms", queue),
        link("a", "a-b", "100Mbit/s", "1ms", ""),
        flow("bulk", "a-z", "tcp", "{ kind = 'bulk' }", ""),
        flow(
            "call",
            "a-z",
            "udp",
            "{ kind = 'cbr', rate = '64kbit/s', packet = '160B' }",
            "dscp = 46",
        ),
    ];
    let point = support::point(&scenario("20s", &parts));
    let mut sent = 0_u64;
    let run = support::watch(&point, &Look::default(), |_, place, note| {
        if let (Note::Dequeued { packet, .. }, talkspurt_proto::probe::Place::Link(0)) =
            (note, place)
        {
            sent += u64::from(packet.ip_bytes);
        }
    });
    // All that passed is the shaper's rate and one bucket, and the bulk uses what the call leaves.
    let most = 1_000_000 / 8 * 20 + 3000;
    assert!(sent <= most && sent > most * 9 / 10, "{sent} of {most}");
    let call = run.flow("call");
    assert_eq!(
        (call.lost_packets, call.sent_packets),
        (0, call.received_packets + call.in_flight_packets)
    );
    // Before a packet of the call there are at most the one that waits for tokens and the one that is
    // sent: 12 ms and 1.2 ms, besides 11 ms of propagation and what sending takes.
    assert!(call.delay_max_s.unwrap() < 0.026, "{:?}", call.delay_max_s);
    let settle_every = Some(Duration::from_micros(1300));
    let settled = support::watch(&point, &Look { settle_every, ..Look::default() }, |_, _, _| {});
    assert_eq!(run.digest, settled.digest);
}
