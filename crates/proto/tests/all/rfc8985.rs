//! RFC 8985: RACK-TLP. Segments have 1000 bytes and are named by number; round trips take 100 ms.

use talkspurt_proto::endpoint::Input;
use talkspurt_proto::probe::Gauge;
use talkspurt_proto::tcp::{Config, Flags, LossRecovery, SackBlocks, Segment};
use talkspurt_testing::tcp::*;

fn config() -> Config {
    Config { recovery: Some(LossRecovery::Rack), ..selective() }
}

/// A sender that has measured 100 ms in opening, at 100 ms, and then sent up to ten segments.
fn sender(segments: u32) -> Alone {
    let mut alone = Alone::opened_at(at(100), &Config { initial_window: 10, ..config() });
    alone.send(1000 * segments);
    alone
}

/// §6.2 step 5: segments sent before one that arrived are lost after a quarter of a round trip,
/// as the reordering timer detects (§6.3) even without an acknowledgement.
#[test]
fn time_tells() {
    let mut alone = sender(10);
    alone.now = at(200);
    assert!(alone.sack_numbers(0, &[(1, 2)]).is_empty());
    // Sent at 100 ms, RTT 100 ms, reordering window 25 ms.
    assert_eq!(alone.wake, Some(at(225)));
    let sent = alone.wait();
    assert_eq!(alone.numbers(&sent), [0]);
    assert_eq!(alone.notes.last(Gauge::Ssthresh), Some(5000.0));
}

/// §6.2 step 4: before any reordering is seen, three segments named are enough, without a wait.
#[test]
fn three_named_are_enough() {
    let mut alone = sender(10);
    alone.now = at(200);
    assert!(alone.sack_numbers(0, &[(1, 2)]).is_empty());
    assert!(alone.sack_numbers(0, &[(1, 3)]).is_empty());
    assert_eq!(alone.sack_numbers(0, &[(1, 4)]), [0]);
}

/// §6.2 step 3: once reordering was seen, they are not: the sender waits for what is late.
#[test]
fn reordering_is_waited_for() {
    let mut alone = sender(10);
    alone.now = at(200);
    alone.sack_numbers(0, &[(1, 2)]);
    // 0 was only late.
    alone.sack_numbers(2, &[]);
    assert!(alone.sack_numbers(2, &[(3, 6)]).is_empty());
    assert_eq!(alone.wake, Some(at(225)));
    alone.sack_numbers(6, &[]);
    assert_eq!(alone.notes.last(Gauge::Ssthresh), None);
}

/// §6.2 step 4: a duplicate told by the peer (RFC 2883) widens the window by a quarter of a round
/// trip.
#[test]
fn a_needless_retransmission_widens_the_window() {
    let mut alone = sender(10);
    alone.now = at(200);
    alone.sack_numbers(0, &[(1, 2)]);
    // 0 was late, and 2 is later still: it is sent again for nothing.
    alone.sack_numbers(2, &[]);
    alone.sack_numbers(2, &[(3, 4)]);
    assert_eq!(alone.wake, Some(at(225)));
    let sent = alone.wait();
    assert_eq!(alone.numbers(&sent), [2]);
    alone.now = at(230);
    alone.sack_numbers(10, &[]);
    alone.now = at(325);
    let isn = alone.isn;
    let blocks = SackBlocks::of([(isn + 2001, isn + 3001)]);
    let duplicate = Segment { sack: blocks, ..alone.make(Flags::ACK, 1, 10_001, 0) };
    alone.segment(duplicate);
    // Sent at 330 ms, answered at 430 ms: lost after 2/4 of the least round trip, 100 ms.
    alone.now = at(330);
    alone.send(2000);
    alone.now = at(430);
    alone.sack_numbers(10, &[(11, 12)]);
    assert_eq!(alone.wake, Some(at(480)));
}

/// §3.2: a lost retransmission is detected too, once a segment sent after it has arrived.
#[test]
fn a_lost_retransmission() {
    let mut pair = Pair::connected(&Config { min_rto: ms(5000), ..config() });
    let mut seen = 0;
    pair.on_wire(move |sent| {
        let again = !sent.is_empty() && sent.seq == 2001;
        seen += u32::from(again);
        if again && seen <= 2 { Verdict::Drop } else { Verdict::Arrive }
    });
    pair.send(Client, 60_000);
    pair.drive_for(ms(2000));
    assert_eq!(pair.server.count, 60_000);
    // RFC 6675 would wait for the timeout, 5 s.
    let mut slow = Pair::new(&Config { min_rto: ms(5000), ..selective() });
    slow.connect();
    let mut seen = 0;
    slow.on_wire(move |sent| {
        let again = !sent.is_empty() && sent.seq == 2001;
        seen += u32::from(again);
        if again && seen <= 2 { Verdict::Drop } else { Verdict::Arrive }
    });
    slow.send(Client, 60_000);
    slow.drive_for(ms(2000));
    assert!(slow.server.count < 60_000);
}

/// §7.2, §7.3: after two round trips without an acknowledgement the last segment is sent again; with
/// one segment in flight the peer's delay is waited for, too.
#[test]
fn the_probe() {
    let mut alone = sender(5);
    assert_eq!(alone.wake, Some(at(300)));
    let sent = alone.wait();
    assert_eq!(alone.numbers(&sent), [4]);
    // §7.3: the retransmission timer runs on from there, and there is one probe only.
    assert_eq!(alone.wake, Some(at(1300)));
    let mut alone = sender(1);
    assert_eq!(alone.wake, Some(at(100 + 200 + 200)));
    alone.wait();
    // New data goes first.
    let mut alone = sender(100);
    let sent = alone.wait();
    assert_eq!(alone.numbers(&sent), [10]);
}

/// §7.2: where two round trips last longer than the retransmission timeout, the probe takes its place, and
/// the window stays; the timeout comes next.
#[test]
fn the_probe_comes_before_the_timeout() {
    let mut alone = Alone::opening(&Config { initial_window: 10, min_rto: ms(300), ..config() });
    alone.now = at(600);
    let answer = alone.syn(Flags::SYN | Flags::ACK, 1);
    alone.segment(answer);
    alone.send(5000);
    // 600 ms each time: SRTT stays, RTTVAR goes.
    for round in 1..=20 {
        alone.now += ms(600);
        alone.sack_numbers(5 * round, &[]);
        alone.send(5000);
    }
    let rto = alone.notes.last(Gauge::Rto).expect("told");
    assert!((0.6..1.2).contains(&rto), "{rto}");
    let sent = alone.now;
    let probe = alone.wait();
    assert_eq!(alone.numbers(&probe), [104]);
    assert!(alone.now - sent < ms(1200));
    assert_eq!(alone.notes.last(Gauge::Ssthresh), None);
    alone.wait();
    assert_eq!(alone.notes.last(Gauge::Cwnd), Some(1000.0));
}

/// §7.4.2: a probe that repaired the loss of the last segment is answered with a reduction; one that
/// was needless, as the peer tells, is not.
#[test]
fn what_the_probe_tells() {
    for needless in [false, true] {
        let mut alone = sender(5);
        alone.wait();
        alone.now = at(400);
        if needless {
            let isn = alone.isn;
            let blocks = SackBlocks::of([(isn + 4001, isn + 5001)]);
            let ack = alone.make(Flags::ACK, 1, 5001, 0);
            alone.segment(Segment { sack: blocks, ..ack });
        } else {
            alone.send(1000);
            alone.sack_numbers(6, &[]);
        }
        assert_eq!(alone.notes.last(Gauge::Ssthresh).is_some(), !needless);
    }
}

/// §3.3: the loss of a whole tail is found by the probe and repaired without a timeout.
#[test]
fn a_lost_tail() {
    for (recovery, in_time) in [(LossRecovery::Rack, true), (LossRecovery::Sack, false)] {
        let config = Config { recovery: Some(recovery), min_rto: ms(3000), ..config() };
        let mut pair = Pair::connected(&config);
        pair.drop_data(Client, &[8, 9, 10]);
        pair.send(Client, 10_000);
        pair.drive_for(ms(1500));
        assert_eq!(pair.server.count == 10_000, in_time, "{recovery:?}");
    }
}

/// RFC 2018 §3: a block may cover the FIN, as Linux's does; others cover the data before it only. Either
/// tells that the segment arrived, and the loss before it is repaired without a timeout.
#[test]
fn a_named_fin() {
    for covers in [true, false] {
        let mut alone = opened(&Config { initial_window: 4, ..config() });
        alone.send(5000);
        alone.input(Input::Close);
        alone.now = at(200);
        // 4 leaves with the FIN. 3 is lost, and late enough to be so at once.
        let last = alone.sack(3001, &[]);
        assert!(last.iter().any(|segment| segment.flags.contains(Flags::FIN)));
        alone.now = at(300);
        let sent = alone.sack(3001, &[(4001, 5001 + u32::from(covers))]);
        assert_eq!(alone.numbers(&sent), [3], "{covers}");
        // If the peer did not keep the FIN, it is sent again, and that without a timeout.
        alone.now = at(400);
        let again = alone.sack(if covers { 5002 } else { 5001 }, &[]);
        assert_eq!(again.iter().any(|segment| segment.flags.contains(Flags::FIN)), !covers);
    }
}

/// A sender that has measured 100 ms in opening, and has sent nothing.
fn opened(config: &Config) -> Alone {
    let mut alone = Alone::opening(config);
    alone.now = at(100);
    let answer = alone.syn(Flags::SYN | Flags::ACK, 1);
    alone.segment(answer);
    alone.sent.clear();
    alone
}

/// §7.2: "FlightSize is one segment" counts segments, however short: of two in flight the second
/// brings an acknowledgement at once, and PTO is 2 SRTT.
#[test]
fn short_segments_are_segments() {
    let mut alone = opened(&config());
    alone.send(172);
    assert_eq!(alone.wake, Some(at(100 + 200 + 200)));
    alone.send(172);
    assert_eq!(alone.wake, Some(at(100 + 200)));
}

/// §7.2: an acknowledgement of nothing new, such as one of a new window, does not put the probe off.
#[test]
fn the_probe_is_not_put_off() {
    let mut alone = opened(&config());
    alone.send(2000);
    alone.now = at(290);
    alone.segment(Segment { window: 19_000, ..alone.make(Flags::ACK, 1, 1, 0) });
    assert_eq!(alone.wake, Some(at(300)));
}

/// §7.3: no probe while one is in flight, nor before a round trip was measured since the last; the
/// retransmission timer runs on. §7.4.2: a probe of new data is over when it is acknowledged.
#[test]
fn one_probe_for_each_measurement() {
    let mut alone = opened(&Config { initial_window: 10, ..config() });
    alone.send(5000);
    let sent = alone.wait();
    assert_eq!((alone.now, alone.numbers(&sent)), (at(300), vec![4]));
    // New data while the probe is in flight starts no timer but that of RFC 6298: the probe's is 1 s.
    alone.now = at(310);
    alone.send(1000);
    assert_eq!(alone.wake, Some(at(1300)));
    // All but the new segment arrived; 4 was sent twice, so that its round trip says nothing (Karn):
    // 0 to 3 were sent once, and tell it.
    alone.now = at(410);
    alone.sack_numbers(4, &[]);
    assert_eq!(alone.wake, Some(at(1410)), "the probe is not acknowledged");
    // One in flight that only was sent twice: no measurement, no probe.
    let mut alone = opened(&config());
    alone.send(1000);
    let probe = alone.wait();
    assert_eq!((alone.now, alone.numbers(&probe)), (at(500), vec![0]));
    alone.now = at(600);
    alone.sack_numbers(1, &[]);
    alone.send(1000);
    assert_eq!(alone.wake, Some(at(1600)), "a second, the least RTO, and not 600 + 400 ms");
    // Nor where the peer tells that both copies came, and the probe is over.
    let mut alone = opened(&config());
    alone.send(1000);
    alone.wait();
    alone.now = at(510);
    alone.sack_numbers(1, &[]);
    alone.now = at(600);
    alone.sack_numbers(1, &[(0, 1)]);
    alone.send(1000);
    assert_eq!(alone.wake, Some(at(1600)));
    // With a measurement there is one again: SRTT is 7/8 of 100 ms and 1/8 of 50 ms.
    alone.now = at(650);
    alone.sack_numbers(2, &[]);
    alone.send(1000);
    assert_eq!(alone.wake, Some(alone.now + ms(200) + ms(175) + ms(25) - ms(25) / 2));
}

/// §6.3 and §3.5: a timeout takes the first segment for lost, and what was sent a round trip ago; what
/// was sent just before it stays in flight.
#[test]
fn what_a_timeout_takes_for_lost() {
    let config = Config { initial_window: 10, f_rto: Some(false), ..config() };
    let mut alone = opened(&config);
    alone.send(1000);
    alone.wait();
    assert_eq!(alone.now, at(500), "the probe");
    alone.now = at(1450);
    alone.send(2000);
    let sent = alone.wait();
    assert_eq!((alone.now, alone.numbers(&sent)), (at(1500), vec![0]));
    assert_eq!(alone.notes.last(Gauge::Cwnd), Some(1000.0));
    // In flight are the retransmission, and two that nothing speaks against.
    assert_eq!(alone.notes.last(Gauge::Flight), Some(3000.0));
    // The late answer to the first copy: none of those is sent again.
    alone.now = at(1510);
    assert!(alone.sack_numbers(1, &[]).is_empty());
    alone.now = at(1550);
    assert!(alone.sack_numbers(3, &[]).is_empty());
    assert_eq!(alone.sent.len(), 5, "0 three times, 1 and 2 once");
    // What is older is lost with it.
    let mut alone = opened(&config);
    alone.send(3000);
    alone.wait();
    let sent = alone.wait();
    assert_eq!((alone.now, alone.numbers(&sent)), (at(1300), vec![0]));
    alone.now = at(1400);
    assert_eq!(alone.sack_numbers(1, &[]), [1, 2]);
}

/// §6.2 step 2: RACK.rtt is that of the segment sent last among those an acknowledgement tells of, in
/// whatever order they stand in it.
#[test]
fn the_round_trip_of_what_was_sent_last() {
    let mut alone = opened(&Config { initial_window: 10, ..config() });
    alone.send(5000);
    alone.now = at(150);
    alone.send(1000);
    alone.now = at(200);
    assert_eq!(alone.sack_numbers(0, &[(1, 4)]), [0]);
    // The copy of 0, sent at 200 ms, took 101 ms, and 4, sent at 100 ms, 201 ms. 0 left last: 5, sent
    // at 150 ms, is lost since 251 ms, and not at 351 ms only.
    alone.now = at(301);
    assert_eq!(alone.sack_numbers(5, &[]), [5]);
}

/// §6.2 step 2: what is sent at one instant has an order all the same. A retransmission that left after
/// new data is not lost because that arrived.
#[test]
fn one_instant_has_an_order() {
    let mut alone = sender(20);
    alone.now = at(200);
    // Limited transmit brings 10 and 11, the third block the retransmission, in one instant.
    assert_eq!(alone.sack_numbers(0, &[(1, 2)]), [10]);
    assert_eq!(alone.sack_numbers(0, &[(1, 3)]), [11]);
    assert_eq!(alone.sack_numbers(0, &[(1, 4)]), [0]);
    alone.now = at(300);
    alone.sack_numbers(0, &[(1, 12)]);
    let copies = alone.sent.iter().filter(|it| alone.place(it) == 1).count();
    assert_eq!(copies, 2, "0 once more, and no second time");
}

/// §6.2 step 3, "in ascending order of Segment.end_seq": blocks stand in an acknowledgement the latest
/// first (RFC 2018 §4), and where the one before it was lost both are news. That is no reordering.
#[test]
fn blocks_in_their_order_are_no_reordering() {
    let mut alone = sender(10);
    alone.now = at(200);
    assert!(alone.sack_numbers(0, &[(3, 4), (1, 2)]).is_empty());
    // Three named, no reordering seen: 0 is lost without a wait.
    assert_eq!(alone.sack_numbers(0, &[(3, 5), (1, 2)]), [0]);
}

/// §6.2 step 2, condition 1: a timestamp of before the retransmission tells that the original arrived,
/// which is no news of what was sent between them. With the retransmission's it is.
#[test]
fn the_timestamp_of_the_original() {
    for (echoed, expected) in [(100, 0), (1500, 1)] {
        let config = Config { timestamps: true, f_rto: Some(false), ..config() };
        let mut alone = Alone::client(&config);
        alone.clock = Some(1);
        let zero = alone.input(Input::Open)[0].timestamps.expect("asked for").0;
        let stamped = |segment: Segment, millis: u32| {
            let timestamps = Some((1, zero.wrapping_add(millis)));
            Segment { timestamps, ..segment }
        };
        alone.now = at(100);
        let answer = stamped(alone.syn(Flags::SYN | Flags::ACK, 1), 0);
        alone.segment(answer);
        alone.send(500);
        alone.wait();
        assert_eq!(alone.now, at(500), "the probe");
        alone.now = at(1450);
        alone.send(500);
        alone.wait();
        assert_eq!(alone.now, at(1500), "the timeout");
        alone.now = at(1610);
        let ack = stamped(alone.make(Flags::ACK, 1, 501, 0), echoed);
        let again = alone.segment(ack);
        assert_eq!(again.len(), expected, "{echoed}");
    }
}

/// §6.2 step 1: RACK.min_RTT forgets an old path: round trips of 100 ms, then 400 ms for longer
/// than five minutes. A quarter of the latter is waited.
#[test]
fn the_least_round_trip_is_of_late() {
    let mut alone = opened(&config());
    let mut number = 0;
    for _ in 0..400 {
        alone.send(1000);
        alone.now += ms(400);
        number += 1;
        alone.sack_numbers(number, &[]);
        alone.now += ms(600);
    }
    alone.send(2000);
    alone.now += ms(400);
    let now = alone.now;
    alone.sack_numbers(number, &[(number + 1, number + 2)]);
    assert_eq!(alone.wake, Some(now + ms(100)));
}

/// §6.2 step 4: "exiting Fast or RTO recovery": sixteen timeouts, too, end what a duplicate began.
#[test]
fn timeouts_end_a_widened_window() {
    let mut alone = opened(&Config { f_rto: Some(false), ..config() });
    alone.send(1000);
    alone.now = at(200);
    alone.sack_numbers(1, &[]);
    // What came twice widens the window to 2/4 of 100 ms.
    alone.sack_numbers(1, &[(0, 1)]);
    let mut number = 1;
    let waits = |alone: &mut Alone, number: &mut u32| {
        alone.send(2000);
        let sent = alone.now;
        alone.now += ms(100);
        alone.sack_numbers(*number, &[(*number + 1, *number + 2)]);
        let waits = alone.wake.expect("waits") - sent;
        *number += 2;
        alone.sack_numbers(*number, &[]);
        waits
    };
    assert_eq!(waits(&mut alone, &mut number), ms(150));
    for _ in 0..16 {
        alone.send(1000);
        let sent = alone.sent.len();
        // Until it has left three times: as itself, as the probe (or not), for the timeout.
        while alone.sent.len() < sent + 1 || alone.notes.last(Gauge::Cwnd) != Some(1000.0) {
            alone.wait();
        }
        for acked in [1, 1, 1, 1] {
            alone.now += ms(100);
            number += acked;
            alone.sack_numbers(number, &[]);
            alone.send(1000);
        }
        alone.now += ms(100);
        number += 1;
        alone.sack_numbers(number, &[]);
    }
    assert_eq!(waits(&mut alone, &mut number), ms(125));
}
