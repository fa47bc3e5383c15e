//! Peers: when they start, how far noise may delay them, what their send queues drop, and when
//! they close.

use std::collections::BTreeMap;

use talkspurt_flow::start;
use talkspurt_proto::body::Body;
use talkspurt_proto::endpoint::Event;
use talkspurt_proto::frame::Frame;
use talkspurt_proto::packet::Payload;
use talkspurt_proto::probe::{Note, Place};
use talkspurt_proto::rfc4571::Deframer;
use talkspurt_proto::tfrc;
use talkspurt_proto::time::{Duration, Instant};

use crate::support::{Look, flow, link, ms, point, run, scenario, watch};

#[test]
fn starts_are_spread_over_one_packet() {
    let cbr = "{ kind = 'cbr', rate = '64kbit/s', packet = '160B' }";
    let flows = |more: &str| -> String {
        (0..400).map(|f| flow(&format!("f{f}"), "a-z", "udp", cbr, more)).collect()
    };
    let starts = |seed: u64, more: &str| -> Vec<u64> {
        let parts =
            [format!("seed = {seed}\n"), link("l", "a-z", "1Gbit/s", "1ms", ""), flows(more)];
        let point = point(&scenario("10s", &parts));
        let flows = point.scenario.flows.iter();
        flows.map(|(name, flow)| start(&point.scenario, name, flow).as_nanos()).collect()
    };
    let spread = starts(1, "start = '1s'");
    assert!(spread.iter().all(|at| (1_000_000_000..1_020_000_000).contains(at)));
    // Uniform on 20 ms: the mean of 400 is 10 ms ± 0.29; four of them.
    let mean = spread.iter().sum::<u64>() as f64 / 400.0 - 1e9;
    assert!((mean - 10e6).abs() < 1.2e6, "{mean}");
    assert!(
        spread.iter().max() > Some(&1_019_000_000) && spread.iter().min() < Some(&1_001_000_000)
    );
    assert_eq!(spread, starts(1, "start = '1s'"));
    assert_ne!(spread, starts(2, "start = '1s'"));
    assert!(starts(1, "start_spread = '0s'").iter().all(|at| *at == 0));
    let wide = starts(1, "start_spread = '5s'");
    assert!(wide.iter().max() > Some(&4_900_000_000));
    // The same random draws: five seconds rather than 20 ms, 250 times.
    for (wide, narrow) in wide.iter().zip(&spread) {
        assert!(wide.abs_diff(250 * (narrow - 1_000_000_000)) <= 250);
    }
}

/// When the packets of a flow left.
fn departures(seed: u64, noise: &str) -> Vec<u64> {
    let cbr = format!("{{ kind = 'cbr', rate = '256kbit/s', packet = '128B', noise = '{noise}' }}");
    let parts = [
        format!("seed = {seed}\n"),
        link("l", "a-z", "1Gbit/s", "1ms", ""),
        flow("f", "a-z", "udp", &cbr, "start_spread = '0s'"),
    ];
    let mut times = Vec::new();
    watch(&point(&scenario("10s", &parts)), &Look::default(), |now, _, note| {
        if let Note::Sent { packet, .. } = note {
            assert_eq!(packet.number as usize, times.len());
            times.push(now.as_nanos());
        }
    });
    times
}

#[test]
fn noise_delays_within_bounds_and_in_order() {
    let turn = |index: usize| 4_000_000 * (index as u64 + 1);
    let exact = departures(1, "0s");
    assert!(exact.iter().enumerate().all(|(index, at)| *at == turn(index)));
    // 2500 turns, but the last is that of the end.
    assert_eq!(exact.len(), 2499);
    for noise_ms in [1, 3, 20] {
        let noisy = departures(1, &format!("{noise_ms}ms"));
        let late = |(index, at): (usize, &u64)| at - turn(index);
        assert!(noisy.iter().enumerate().map(late).all(|late| late < noise_ms * 1_000_000));
        assert!(noisy.is_sorted());
        assert_eq!(noisy, departures(1, &format!("{noise_ms}ms")));
        assert_ne!(noisy, departures(2, &format!("{noise_ms}ms")));
        if noise_ms < 4 {
            // Uniform where nothing is held back by order.
            let mean = noisy.iter().enumerate().map(late).sum::<u64>() as f64 / noisy.len() as f64;
            assert!((mean / (noise_ms as f64 * 5e5) - 1.0).abs() < 0.05, "{mean}");
        }
    }
}

/// Frames dropped from the send queue of a TCP flow whose link is down from 1 s to 3 s, and the
/// frames that waited.
fn dropped(queue: &str) -> (Vec<u32>, u64) {
    let events = "events = [{ at = '1s', state = 'down' }, { at = '3s', state = 'up' }]";
    let tcp = "{ kind = 'tcp', controller = 'newreno', mss = '100B', send_buffer = '500B', min_rto = '200ms' }";
    let cbr = "{ kind = 'cbr', rate = '8kbit/s', packet = '100B', noise = '0s' }";
    let parts = [
        link("l", "a-z", "1Mbit/s", "5ms", events),
        flow("f", "a-z", tcp, cbr, &format!("send_queue = {{ {queue} }}\nstart_spread = '0s'")),
    ];
    let (mut dropped, mut at) = (Vec::new(), BTreeMap::new());
    let run =
        watch(&point(&scenario("10s", &parts)), &Look::default(), |now, _, note| match note {
            Note::Discarded { index } => dropped.push(*index),
            Note::HandedOver { index } => {
                at.insert(*index, now);
            }
            _ => {}
        });
    let flow = run.flow("f");
    assert_eq!(flow.discarded_packets, Some(dropped.len() as u64));
    assert!(at.values().is_sorted());
    let waited =
        at.values().filter(|at| ms(1000) < **at && !at.as_nanos().is_multiple_of(100_000_000));
    (dropped, waited.count() as u64)
}

#[test]
fn a_full_send_queue_drops_the_newest_or_the_oldest() {
    // A frame every 100 ms from 100 ms on; the buffer of 500 bytes takes five after the link
    // failed, numbers 9 to 13 (that of 1000 ms was refused by it); the next wait.
    let (newest, waited) = dropped("packets = 4");
    assert_eq!(newest.first(), Some(&18), "{newest:?}");
    assert!(newest.windows(2).all(|pair| pair[1] == pair[0] + 1));
    assert_eq!(waited, 4);
    let (oldest, waited) = dropped("packets = 4, drop = 'oldest'");
    assert_eq!(oldest.first(), Some(&14));
    assert!(oldest.windows(2).all(|pair| pair[1] == pair[0] + 1));
    assert_eq!(newest.len(), oldest.len());
    assert_eq!(waited, 4);
    // The same frames in number; the queue holds the first of them, or the last.
    assert_eq!(newest[0] - oldest[0], 4);
    assert!(dropped("packets = 50").0.is_empty());
}

#[test]
fn without_a_place_to_wait_only_what_the_transport_refuses_is_dropped() {
    for drop in ["newest", "oldest"] {
        let (dropped, waited) = dropped(&format!("packets = 0, drop = '{drop}'"));
        assert_eq!(dropped.first(), Some(&14), "{drop}: {dropped:?}");
        assert_eq!(waited, 0);
        let cbr = "{ kind = 'cbr', rate = '8kbit/s', packet = '100B' }";
        let more = format!("send_queue = {{ packets = 0, drop = '{drop}' }}");
        let parts = [link("l", "a-z", "1Mbit/s", "5ms", ""), flow("f", "a-z", "udp", cbr, &more)];
        let run = run(&scenario("2s", &parts));
        assert_eq!(run.flow("f").discarded_packets, Some(0));
        assert!(run.flow("f").received_packets > 15);
    }
}

#[test]
fn a_stale_send_queue_hands_over_nothing_older_than_its_lifetime() {
    // The link is down for two seconds; of the frames that waited, those of the last 350 ms before
    // the transport has room again are sent, and nothing older ever is.
    let events = "events = [{ at = '1s', state = 'down' }, { at = '3s', state = 'up' }]";
    let tcp = "{ kind = 'tcp', controller = 'newreno', mss = '100B', send_buffer = '500B', min_rto = '200ms' }";
    let cbr = "{ kind = 'cbr', rate = '8kbit/s', packet = '100B', noise = '0s' }";
    let queue = "send_queue = { packets = 1000, drop = 'stale', lifetime = '350ms' }";
    let parts = [
        link("l", "a-z", "1Mbit/s", "5ms", events),
        flow("f", "a-z", tcp, cbr, &format!("{queue}\nstart_spread = '0s'")),
    ];
    let (mut made, mut waited, mut dropped) = (BTreeMap::new(), Vec::new(), Vec::new());
    let run =
        watch(&point(&scenario("10s", &parts)), &Look::default(), |now, _, note| match note {
            Note::Generated { index, .. } => {
                made.insert(*index, now);
            }
            Note::HandedOver { index } => waited.push(now - made[index]),
            Note::Discarded { index } => dropped.push(now - made[index]),
            _ => {}
        });
    assert_eq!(run.flow("f").discarded_packets, Some(dropped.len() as u64));
    assert!(dropped.len() > 10, "{}", dropped.len());
    let lifetime = Duration::from_millis(350);
    assert!(waited.iter().all(|waited| *waited <= lifetime));
    assert!(waited.iter().any(|waited| *waited > Duration::from_millis(200)));
    assert!(dropped.iter().all(|waited| *waited > lifetime));
}

/// Milliseconds from source to the other application, of speech of 64 kbit/s over TCP on a line of 256
/// kbit/s that an upload shares from 5 s to 35 s: the longest of the first ten seconds of sharing and of
/// the last ten, and how many of the 2000 frames arrived.
fn through_tcp(knob: &str, queue: &str) -> (u64, u64, u64) {
    let tcp = format!("{{ kind = 'tcp', controller = 'cubic', {knob} }}");
    let cbr = "{ kind = 'cbr', rate = '64kbit/s', packet = '160B', noise = '0s' }";
    let upload = "{ kind = 'tcp', controller = 'cubic' }";
    let line = "queue = { kind = 'droptail', packets = 10 }";
    let parts = [
        link("l", "a-z", "256kbit/s", "20ms", line),
        flow("call", "a-z", &tcp, cbr, &format!("send_queue = {{ {queue} }}\nstart_spread = '0s'")),
        flow("upload", "a-z", upload, "{ kind = 'bulk' }", "start = '5s'\nstop = '35s'"),
        flow("other", "a-z", upload, "{ kind = 'bulk' }", "start = '6s'\nstop = '35s'"),
    ];
    // A stream without marks between its frames: the k-th to arrive is the k-th handed over.
    let (mut made, mut handed, mut total) = (BTreeMap::new(), Vec::new(), 0);
    let (mut early, mut late, mut arrived) = (0, 0, 0);
    watch(&point(&scenario("40s", &parts)), &Look::default(), |now, place, note| match note {
        Note::Generated { index, bytes: 160, .. } if place == Place::Peer(0) => {
            made.insert(*index, now);
        }
        Note::HandedOver { index } if place == Place::Peer(0) => handed.push(made[index]),
        Note::Delivered { bytes, .. } if place == Place::Peer(1) => {
            total += u64::from(*bytes);
            while 160 * (arrived + 1) <= total {
                let took = (now - handed[arrived as usize]).as_nanos() / 1_000_000;
                arrived += 1;
                if (ms(5000)..ms(15_000)).contains(&now) {
                    early = took.max(early);
                } else if (ms(25_000)..ms(35_000)).contains(&now) {
                    late = took.max(late);
                }
            }
        }
        _ => {}
    });
    (early, late, arrived)
}

/// Data in TCP's own buffer is beyond the send queue's control: the delay of speech grows for as long
/// as the line is too slow, whatever the policy. With a low mark the policy covers all
/// data not yet sent, and what arrives is recent.
#[test]
fn a_low_water_mark_lets_the_policy_decide() {
    let stale = "packets = 50, drop = 'stale', lifetime = '150ms'";
    let (early, late, arrived) = through_tcp("", stale);
    let (bounded_early, bounded, fewer) = through_tcp("notsent_lowat = '400B'", stale);
    // docs/transports.md shows these numbers.
    assert_eq!([(early, late), (bounded_early, bounded)], [(1771, 2078), (1178, 928)]);
    // The price: frames that were stale were not sent.
    assert_eq!((arrived, fewer), (1992, 1734));
}

#[test]
fn reports_and_the_last_word_wait_for_a_permit() {
    // One packet a second is allowed, and the source makes five: what the receiver hears is the
    // speech that fits, reports among it, and at the end BYE before anything closes.
    let tfrc = "{ kind = 'tfrc', rate = { minimum_interval = '1s' } }";
    let speech = "{ kind = 'speech', codec = 'pcmu' }";
    let more = "send_queue = { packets = 2, drop = 'oldest' }\nstop = '20s'\nstart_spread = '0s'";
    let parts = [link("l", "a-z", "10Mbit/s", "10ms", ""), flow("f", "a-z", tfrc, speech, more)];
    let (mut sent, mut reports, mut closed) = (Vec::new(), Vec::new(), None);
    watch(&point(&scenario("30s", &parts)), &Look::default(), |now, place, note| {
        match (place, note) {
            (Place::Peer(0), Note::Sent { body: Body::Tfrc(tfrc::Packet::Data(data)), .. }) => {
                sent.push(now);
                if let Frame::Rtcp(compound) = &data.payload {
                    reports.push((now, compound.bye));
                }
            }
            (Place::Peer(0), Note::Event(Event::Closed)) => closed = Some(now),
            _ => {}
        }
    });
    assert!(sent.windows(2).all(|pair| pair[1] - pair[0] >= Duration::from_millis(999)));
    assert!(reports.len() >= 3, "{reports:?}");
    let (last, byes) = (reports.last().expect("one"), reports.iter().filter(|(_, bye)| *bye));
    assert!(last.1 && byes.count() == 1, "{reports:?}");
    assert_eq!(sent.last(), Some(&last.0), "nothing leaves after BYE");
    assert!(closed.is_some_and(|closed| closed >= last.0), "{closed:?}");
}

/// Bytes delivered to each side and the events of both.
fn talk(parts: &[String]) -> ([u64; 2], Vec<(u32, Event)>) {
    let (mut bytes, mut events) = ([0; 2], Vec::new());
    watch(&point(&scenario("30s", parts)), &Look::default(), |_, place, note| {
        match (place, note) {
            (Place::Peer(peer), Note::Delivered { bytes: more, .. }) => {
                bytes[peer as usize] += u64::from(*more);
            }
            (Place::Peer(peer), Note::Event(event)) => events.push((peer, *event)),
            _ => {}
        }
    });
    (bytes, events)
}

#[test]
fn an_answer_handed_over_before_the_opening_is_sent() {
    for (forth, back) in [("10kB", "1B"), ("1B", "10kB"), ("100kB", "100kB")] {
        let parts = [
            link("l", "a-z", "10Mbit/s", "10ms", ""),
            flow(
                "f",
                "a-z",
                "{ kind = 'tcp', controller = 'newreno', msl = '1s' }",
                &format!("{{ kind = 'bulk', total = '{forth}' }}"),
                &format!("reverse = {{ kind = 'bulk', total = '{back}' }}"),
            ),
        ];
        let (bytes, events) = talk(&parts);
        let size =
            |text: &str| text.parse::<talkspurt_proto::units::Size>().expect("a size").as_bytes();
        assert_eq!(bytes, [size(back), size(forth)], "{events:?}");
        for peer in [0, 1] {
            let of = |event: Event| events.iter().filter(|told| **told == (peer, event)).count();
            assert_eq!(of(Event::Connected), 1);
            assert_eq!(of(Event::PeerClosed), 1);
            assert_eq!(of(Event::Reset) + of(Event::TimedOut), 0);
        }
    }
}

#[test]
fn a_source_stops_when_told() {
    let cbr = "{ kind = 'cbr', rate = '8kbit/s', packet = '100B', noise = '0s' }";
    let more = "start = '1s'\nstop = '3s'\nstart_spread = '0s'";
    let parts = [link("l", "a-z", "1Mbit/s", "5ms", ""), flow("f", "a-z", "udp", cbr, more)];
    // Complete at 1.1, 1.2 … 3.0 s.
    assert_eq!(run(&scenario("10s", &parts)).flow("f").sent_packets, 20);
    let mut last = Instant::ZERO;
    let bulk = flow("g", "a-z", "tcp", "{ kind = 'bulk' }", "stop = '3s'");
    let text = scenario("60s", &[link("l", "a-z", "1Mbit/s", "5ms", ""), bulk]);
    watch(&point(&text), &Look::default(), |now, _, note| {
        if let Note::Generated { .. } = note {
            last = now;
        }
    });
    assert!(last < ms(3000) && last + Duration::from_millis(500) > ms(3000), "{last:?}");
}

/// RFC 3550 §6.3.7: a speaker whose source has stopped leaves with a BYE, once, over datagrams and
/// in a stream alike; its peer goes on.
#[test]
fn who_stops_speaking_says_goodbye() {
    let speech = "{ kind = 'speech', codec = 'pcmu' }";
    for transport in ["udp", "tcp"] {
        let flow = flow("f", "a-z", transport, speech, "start_spread = '0s'\nstop = '3s'");
        let parts = [link("l", "a-z", "1Mbit/s", "5ms", ""), flow];
        let (mut deframer, mut goodbyes, mut last_speech) = (Deframer::new(), 0, Instant::ZERO);
        let mut look = |now: Instant, frame: Frame| match frame {
            Frame::Rtcp(compound) if compound.bye => {
                assert!(compound.sender.is_some());
                assert!(now >= last_speech && last_speech > ms(2900));
                goodbyes += 1;
            }
            Frame::Rtp(_) => last_speech = now,
            _ => {}
        };
        watch(&point(&scenario("10s", &parts)), &Look::default(), |now, place, note| {
            match (place, note) {
                (Place::Peer(1), Note::Received { body: Body::Udp(frame), .. }) => {
                    look(now, frame.clone());
                }
                (Place::Peer(1), Note::Received { body: Body::Tcp(segment), .. }) => {
                    if let Payload::Real(bytes) = &segment.payload {
                        deframer.push(bytes.clone());
                        deframer.by_ref().for_each(|frame| look(now, frame));
                    }
                }
                _ => {}
            }
        });
        assert_eq!(goodbyes, 1, "{transport}");
    }
}
