//! RFC 8985: RACK-TLP. Segments have 1000 bytes and are named by number; round trips take 100 ms.

use crate::pair::*;
use talkspurt_proto::endpoint::Input;
use talkspurt_proto::probe::Gauge;
use talkspurt_proto::tcp::{Config, Flags, LossRecovery, SackBlocks, Segment};

fn config() -> Config {
    Config { recovery: Some(LossRecovery::Rack), ..selective() }
}

fn places(alone: &Alone, sent: &[Segment]) -> Vec<u32> {
    sent.iter().map(|segment| (alone.place(segment) - 1) / 1000).collect()
}

fn sack(alone: &mut Alone, ack: u32, blocks: &[(u32, u32)]) -> Vec<u32> {
    let wire = |number: u32| 1 + 1000 * number;
    let blocks: Vec<_> = blocks.iter().map(|(left, right)| (wire(*left), wire(*right))).collect();
    let sent = alone.sack(wire(ack), &blocks);
    places(alone, &sent)
}

/// A sender that has measured 100 ms in opening, at 100 ms, and then sent up to ten segments.
fn sender(segments: u32) -> Alone {
    let mut alone = Alone::client(&Config { initial_window: 10, ..config() });
    alone.input(Input::Open);
    alone.now = at(100);
    let answer = alone.syn(Flags::SYN | Flags::ACK, 1);
    alone.segment(answer);
    (alone.sent, alone.marks) = (Vec::new(), Vec::new());
    alone.send(1000 * segments);
    alone
}

/// §6.2 step 5: what was sent before something that arrived is lost after a quarter of a round trip,
/// and the reordering timer says so (§6.3) though no acknowledgement comes.
#[test]
fn time_tells() {
    let mut alone = sender(10);
    alone.now = at(200);
    assert!(sack(&mut alone, 0, &[(1, 2)]).is_empty());
    // Sent at 100 ms, RTT 100 ms, reordering window 25 ms.
    assert_eq!(alone.wake, Some(at(225)));
    let sent = alone.wait();
    assert_eq!(places(&alone, &sent), [0]);
    assert_eq!(alone.notes.last(Gauge::Ssthresh), Some(5000.0));
}

/// §6.2 step 4: before any reordering is seen, three segments named are enough, without a wait.
#[test]
fn three_named_are_enough() {
    let mut alone = sender(10);
    alone.now = at(200);
    assert!(sack(&mut alone, 0, &[(1, 2)]).is_empty());
    assert!(sack(&mut alone, 0, &[(1, 3)]).is_empty());
    assert_eq!(sack(&mut alone, 0, &[(1, 4)]), [0]);
}

/// §6.2 step 3: once reordering was seen, they are not: the sender waits for what is late.
#[test]
fn reordering_is_waited_for() {
    let mut alone = sender(10);
    alone.now = at(200);
    sack(&mut alone, 0, &[(1, 2)]);
    // 0 was only late.
    sack(&mut alone, 2, &[]);
    assert!(sack(&mut alone, 2, &[(3, 6)]).is_empty());
    assert_eq!(alone.wake, Some(at(225)));
    sack(&mut alone, 6, &[]);
    assert_eq!(alone.notes.last(Gauge::Ssthresh), None);
}

/// §6.2 step 4: a duplicate told by the peer (RFC 2883) widens the window by a quarter of a round
/// trip.
#[test]
fn a_needless_retransmission_widens_the_window() {
    let mut alone = sender(10);
    alone.now = at(200);
    sack(&mut alone, 0, &[(1, 2)]);
    // 0 was late, and 2 is later still: it is sent again for nothing.
    sack(&mut alone, 2, &[]);
    sack(&mut alone, 2, &[(3, 4)]);
    assert_eq!(alone.wake, Some(at(225)));
    let sent = alone.wait();
    assert_eq!(places(&alone, &sent), [2]);
    alone.now = at(230);
    sack(&mut alone, 10, &[]);
    alone.now = at(325);
    let isn = alone.isn;
    let blocks = SackBlocks::of([(isn + 2001, isn + 3001)]);
    let duplicate = Segment { sack: blocks, ..alone.make(Flags::ACK, 1, 10_001, 0) };
    alone.segment(duplicate);
    // Sent at 330 ms, answered at 430 ms: lost after 2/4 of the least round trip, 100 ms.
    alone.now = at(330);
    alone.send(2000);
    alone.now = at(430);
    sack(&mut alone, 10, &[(11, 12)]);
    assert_eq!(alone.wake, Some(at(480)));
}

/// §3.2: a retransmission that is lost is found, too, once something sent after it has arrived.
#[test]
fn a_lost_retransmission() {
    let mut pair = Pair::new(&Config { min_rto: ms(5000), ..config() });
    pair.connect();
    let mut seen = 0;
    pair.on_wire(move |sent| {
        let again = sent.len() > 0 && sent.seq == 2001;
        seen += u32::from(again);
        if again && seen <= 2 { Fate::Drop } else { Fate::Arrive }
    });
    pair.send(Client, 60_000);
    pair.drive_for(ms(2000));
    assert_eq!(pair.server.count, 60_000);
    // RFC 6675 would wait for the timeout, 5 s.
    let mut slow = Pair::new(&Config { min_rto: ms(5000), ..selective() });
    slow.connect();
    let mut seen = 0;
    slow.on_wire(move |sent| {
        let again = sent.len() > 0 && sent.seq == 2001;
        seen += u32::from(again);
        if again && seen <= 2 { Fate::Drop } else { Fate::Arrive }
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
    assert_eq!(places(&alone, &sent), [4]);
    // §7.3: the retransmission timer runs on from there, and there is one probe only.
    assert_eq!(alone.wake, Some(at(1300)));
    let mut alone = sender(1);
    assert_eq!(alone.wake, Some(at(100 + 200 + 200)));
    alone.wait();
    // New data goes first.
    let mut alone = sender(100);
    let sent = alone.wait();
    assert_eq!(places(&alone, &sent), [10]);
}

/// §7.2: where two round trips last longer than the retransmission timeout, the probe takes its place, and
/// the window stays; the timeout comes next.
#[test]
fn the_probe_comes_before_the_timeout() {
    let mut alone = Alone::client(&Config { initial_window: 10, min_rto: ms(300), ..config() });
    alone.input(Input::Open);
    alone.now = at(600);
    let answer = alone.syn(Flags::SYN | Flags::ACK, 1);
    alone.segment(answer);
    alone.send(5000);
    // 600 ms each time: SRTT stays, RTTVAR goes.
    for round in 1..=20 {
        alone.now += ms(600);
        sack(&mut alone, 5 * round, &[]);
        alone.send(5000);
    }
    let rto = alone.notes.last(Gauge::Rto).expect("told");
    assert!((0.6..1.2).contains(&rto), "{rto}");
    let sent = alone.now;
    let probe = alone.wait();
    assert_eq!(places(&alone, &probe), [104]);
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
            sack(&mut alone, 6, &[]);
        }
        assert_eq!(alone.notes.last(Gauge::Ssthresh).is_some(), !needless);
    }
}

/// §3.3: the loss of a whole tail is found by the probe and repaired without a timeout.
#[test]
fn a_lost_tail() {
    for (recovery, in_time) in [(LossRecovery::Rack, true), (LossRecovery::Sack, false)] {
        let config = Config { recovery: Some(recovery), min_rto: ms(3000), ..config() };
        let mut pair = Pair::new(&config);
        pair.connect();
        pair.drop_data(Client, &[8, 9, 10]);
        pair.send(Client, 10_000);
        pair.drive_for(ms(1500));
        assert_eq!(pair.server.count == 10_000, in_time, "{recovery:?}");
    }
}
