//! RFC 5682, F-RTO, and RFC 4015, the response to a spurious timeout. Segments have 1000 bytes and
//! are numbered; ten are in flight when the timer expires at one second.

use talkspurt_proto::endpoint::{Endpoint, Input};
use talkspurt_proto::packet::Ecn;
use talkspurt_proto::probe::Gauge;
use talkspurt_proto::tcp::{Config, Controller, Flags, LossRecovery, Segment, State};
use talkspurt_proto::units::{Rate, Size};
use talkspurt_testing::tcp::*;

/// §2.1: without selective acknowledgements.
fn basic() -> Config {
    Config { f_rto: Some(true), initial_window: 10, ..plain() }
}
/// §3.1: with them.
fn enhanced() -> Config {
    Config { initial_window: 10, ..selective() }
}

fn ack(alone: &mut Alone, number: u32) -> Vec<u32> {
    alone.sack_numbers(number, &[])
}

/// Ten of this many segments are sent, and the timer has expired.
fn timed_out(config: &Config, segments: u32) -> Alone {
    let mut alone = Alone::established(config);
    alone.send(1000 * segments);
    let sent = alone.wait();
    // Step 1: the first unacknowledged segment, one, and the window is one segment.
    assert_eq!((alone.now, alone.numbers(&sent)), (at(1000), vec![0]));
    assert_eq!(alone.notes.last(Gauge::Cwnd), Some(1000.0));
    assert_eq!(alone.notes.last(Gauge::Ssthresh), Some(5000.0));
    alone
}

fn window(alone: &Alone) -> (Option<f64>, Option<f64>) {
    (alone.notes.last(Gauge::Cwnd), alone.notes.last(Gauge::Ssthresh))
}

/// §2.1 steps 2b and 3b: two new segments for the first acknowledgement, and if the second one
/// advances, too, nothing is sent twice. RFC 4015 §3.1 step 9: cwnd is what is in flight and what was
/// acknowledged, but not more than it was; ssthresh is the old one (here: none).
#[test]
fn needless() {
    for config in [basic(), enhanced()] {
        let mut alone = timed_out(&config, 100);
        assert_eq!(ack(&mut alone, 1), [10, 11]);
        // 2 to 11 are in flight, ten as before.
        assert!(ack(&mut alone, 2).is_empty());
        assert_eq!(alone.notes.last(Gauge::Cwnd), Some(10_000.0));
        assert_eq!(alone.notes.last(Gauge::Flight), Some(10_000.0));
        // Slow start goes on: no threshold was set before.
        assert_eq!(ack(&mut alone, 3), [12, 13]);
        // The copy of 0 brings a duplicate, which is none of a loss.
        assert!(ack(&mut alone, 3).len() <= 1);
        assert!(alone.sent.iter().skip(11).all(|segment| alone.place(segment) > 10_000));
    }
}

/// The same without F-RTO: everything is sent again.
#[test]
fn without() {
    for config in [basic(), enhanced()] {
        let mut alone = timed_out(&Config { f_rto: Some(false), ..config }, 100);
        assert_eq!(ack(&mut alone, 1), [1, 2]);
        assert_eq!(ack(&mut alone, 2).first(), Some(&3));
        assert_eq!(alone.notes.last(Gauge::Ssthresh), Some(5000.0));
    }
}

/// Default by recovery: on for those newer than F-RTO.
#[test]
fn the_default() {
    for (recovery, does) in [
        (LossRecovery::Reno, false),
        (LossRecovery::Newreno, false),
        (LossRecovery::Sack, true),
        (LossRecovery::Rack, true),
    ] {
        let config = Config { recovery: Some(recovery), initial_window: 10, ..plain() };
        let mut alone = Alone::established(&config);
        alone.send(100_000);
        // RACK's probe comes first, and is new data.
        while alone.notes.last(Gauge::Cwnd) != Some(1000.0) {
            alone.wait();
        }
        let new = ack(&mut alone, 1);
        assert_eq!(new.iter().all(|place| *place >= 10), does, "{recovery:?}: {new:?}");
    }
}

/// RFC 4015 §3.1 step 9: a threshold that was there comes back if it is above what was in flight.
#[test]
fn the_threshold_comes_back() {
    for (ssthresh, after) in [(50, 50_000.0), (2, 10_000.0)] {
        let config = Config { initial_ssthresh: Some(ssthresh), ..basic() };
        let mut alone = timed_out(&config, 100);
        ack(&mut alone, 1);
        ack(&mut alone, 2);
        assert_eq!(window(&alone), (Some(10_000.0), Some(after)));
    }
}

/// RFC 4015 §3.1 step 9: a mark is congestion, even after a spurious timeout.
#[test]
fn not_with_a_mark() {
    let config = Config { ecn: Some(true), ..basic() };
    let mut alone = Alone::opening(&config);
    let answer = alone.syn(Flags::SYN | Flags::ACK | Flags::ECE, 1);
    alone.segment(answer);
    (alone.sent, alone.ecn) = (Vec::new(), Ecn::NotEct);
    alone.send(100_000);
    alone.wait();
    ack(&mut alone, 1);
    let echo = alone.make(Flags::ACK | Flags::ECE, 1, 2001, 0);
    alone.segment(echo);
    assert!(alone.notes.last(Gauge::Cwnd) <= Some(5000.0), "{:?}", window(&alone));
}

/// §2.1 step 2a: a duplicate, or an acknowledgement of less than what was sent again, or of all.
#[test]
fn the_first_acknowledgement_tells_nothing() {
    // A duplicate: slow start, and 1 goes again.
    let mut alone = timed_out(&basic(), 100);
    assert!(ack(&mut alone, 0).is_empty());
    assert_eq!(ack(&mut alone, 1), [1, 2]);
    // Half a segment.
    let mut alone = timed_out(&basic(), 100);
    let half = alone.arrive(Flags::ACK, 1, 501, 0);
    assert_eq!(alone.place(&half[0]), 1001);
    // All: no further check is needed.
    let mut alone = timed_out(&basic(), 100);
    assert_eq!(ack(&mut alone, 10), [10, 11]);
    assert_eq!(alone.notes.last(Gauge::Ssthresh), Some(5000.0));
    let mut alone = timed_out(&enhanced(), 100);
    assert_eq!(ack(&mut alone, 10), [10, 11]);
    assert_eq!(ack(&mut alone, 11), [12, 13]);
    assert_eq!(alone.notes.last(Gauge::Ssthresh), Some(5000.0));
}

/// Step 2b: without new data, or without room at the peer, the timeout is taken as genuine.
#[test]
fn nothing_new_to_send() {
    for config in [basic(), enhanced()] {
        let mut alone = timed_out(&config, 10);
        assert_eq!(ack(&mut alone, 1), [1, 2]);
        let mut alone = timed_out(&config, 100);
        let full = Segment { window: 9_500, ..alone.make(Flags::ACK, 1, 1001, 0) };
        let sent = alone.segment(full);
        assert_eq!(alone.numbers(&sent), [1, 2]);
        // One new segment is enough.
        let mut alone = timed_out(&config, 11);
        assert_eq!(ack(&mut alone, 1), [10]);
        assert!(ack(&mut alone, 2).is_empty());
        assert_eq!(alone.notes.last(Gauge::Cwnd), Some(10_000.0));
    }
}

/// §2.1 step 3a: a duplicate says that the new data overtook a hole. Three segments are the window,
/// and what was lost goes again.
#[test]
fn the_second_acknowledgement_is_a_duplicate() {
    let mut alone = timed_out(&basic(), 100);
    assert_eq!(ack(&mut alone, 1), [10, 11]);
    assert_eq!(ack(&mut alone, 1), [1, 2, 3]);
    assert_eq!(window(&alone), (Some(3000.0), Some(5000.0)));
    // The other new segment's duplicate changes nothing.
    assert!(ack(&mut alone, 1).is_empty());
    assert_eq!(ack(&mut alone, 2), [4, 5]);
}

/// Step 3: segments that are neither duplicates nor new (here with data) are ignored.
#[test]
fn other_acknowledgements_are_ignored() {
    for config in [basic(), enhanced()] {
        let mut alone = timed_out(&config, 100);
        ack(&mut alone, 1);
        let data = alone.arrive(Flags::ACK, 1, 1001, 10);
        assert!(data.iter().all(|segment| segment.payload.is_empty()));
        alone.arrive(Flags::ACK, 11, 2001, 0);
        assert_eq!(alone.notes.last(Gauge::Cwnd), Some(10_000.0));
    }
}

/// §2.1 step 1, §3.1 step 1: a repeated timeout is checked again, and undone to the state before the
/// first.
#[test]
fn the_same_timeout_again() {
    for config in [basic(), enhanced()] {
        let mut alone = timed_out(&config, 100);
        let sent = alone.wait();
        assert_eq!((alone.now, alone.numbers(&sent)), (at(3000), vec![0]));
        assert_eq!(ack(&mut alone, 1), [10, 11]);
        assert!(ack(&mut alone, 2).is_empty());
        assert_eq!(alone.notes.last(Gauge::Cwnd), Some(10_000.0));
    }
}

/// Step 1: not while an earlier loss is being repaired, since an acknowledgement of a retransmission
/// could then pass for one of an original.
#[test]
fn not_in_another_recovery() {
    for config in [basic(), enhanced()] {
        // The timeout was real, and what was sent again times out in its turn.
        let mut alone = timed_out(&Config { initial_window: 10, ..config.clone() }, 100);
        let real = if config == basic() { ack(&mut alone, 0) } else { vec![] };
        assert!(real.is_empty());
        ack(&mut alone, 1);
        if config != basic() {
            // §3.1 step 3a: the duplicate names nothing that was sent before.
            assert_eq!(alone.sack_numbers(1, &[(10, 11)])[0], 1);
        }
        while alone.notes.last(Gauge::Cwnd) != Some(1000.0) {
            alone.wait();
        }
        assert_eq!(ack(&mut alone, 2), [2, 3]);
        // Nor in fast recovery.
        let mut alone = Alone::established(&config);
        alone.send(100_000);
        (1..=4).for_each(|right| drop(alone.sack_numbers(0, &[(1, 1 + right)])));
        while alone.notes.last(Gauge::Cwnd) != Some(1000.0) {
            alone.wait();
        }
        assert!(ack(&mut alone, 5).iter().all(|place| *place < 14));
    }
}

/// §3.1 step 2: duplicates are waited out, and what they name counts.
#[test]
fn duplicates_before_the_answer() {
    let mut alone = timed_out(&enhanced(), 100);
    assert!(alone.sack_numbers(0, &[(3, 4)]).is_empty());
    assert!(alone.sack_numbers(0, &[(3, 5)]).is_empty());
    assert_eq!(alone.sack_numbers(1, &[(3, 5)]), [10, 11]);
    // Step 3b: 5 was sent once.
    alone.sack_numbers(1, &[(3, 6)]);
    assert_ne!(alone.notes.last(Gauge::Cwnd), Some(2000.0));
    assert_ne!(alone.notes.last(Gauge::Cwnd), Some(3000.0));
}

/// §3.1 step 3b: a block counts like an acknowledgement in order. The holes are repaired like any loss:
/// RecoveryPoint is SND.UNA.
#[test]
fn a_block_tells() {
    let mut alone = timed_out(&enhanced(), 100);
    assert_eq!(ack(&mut alone, 1), [10, 11]);
    // 2 is here and 1 is not: in flight are 1 and 3 to 11.
    assert!(alone.sack_numbers(1, &[(2, 3)]).is_empty());
    assert_eq!(alone.notes.last(Gauge::Cwnd), Some(10_000.0));
    // Two more, and 1 is lost: fast recovery halves the window as it is.
    assert_eq!(alone.sack_numbers(1, &[(2, 4)]), [12]);
    assert_eq!(alone.sack_numbers(1, &[(2, 5)])[0], 1);
    // Reported at the timeout, withdrawn when it was undone, then reported again.
    let thresholds = alone.notes.gauges.iter().filter(|note| note.1 == Gauge::Ssthresh);
    assert_eq!(thresholds.map(|note| note.2).collect::<Vec<_>>(), [5000.0, 5000.0]);
    assert_eq!(alone.notes.last(Gauge::Cwnd).map(|cwnd| cwnd > 3000.0), Some(true));
}

/// §3.1 step 3a: the new data has arrived and nothing of the old has: the loss was real. A duplicate that
/// names nothing says the same.
#[test]
fn the_new_data_arrived_first() {
    for blocks in [&[(10, 11)][..], &[]] {
        let mut alone = timed_out(&enhanced(), 100);
        assert_eq!(ack(&mut alone, 1), [10, 11]);
        let sent = alone.sack_numbers(1, blocks);
        assert_eq!(sent.first(), Some(&1), "{blocks:?}");
        assert!(sent.len() <= 3);
        assert_eq!(window(&alone), (Some(3000.0), Some(5000.0)));
    }
    // Both at once: not spurious either.
    let mut alone = timed_out(&enhanced(), 100);
    ack(&mut alone, 1);
    alone.sack_numbers(1, &[(2, 4), (10, 11)]);
    assert_eq!(window(&alone), (Some(3000.0), Some(5000.0)));
}

/// RFC 4015 §3.1 step 11: the timer learns from the first data sent afterwards. Round trips took 100 ms,
/// then 1.6 s: SRTT is 1.6 s and RTTVAR 0.8 s at once, where RFC 6298 §2.3 would have 0.2875 s and
/// 0.4125 s. After a genuine timeout, the acknowledgement of the new data also covers data sent twice
/// and is not a sample (RFC 6298 §3): the timeout stays backed off.
#[test]
fn the_timer_learns() {
    let rto = |real: bool| {
        let mut alone = Alone::opening(&basic());
        alone.now = at(100);
        let answer = alone.syn(Flags::SYN | Flags::ACK, 1);
        alone.segment(answer);
        alone.send(100_000);
        alone.wait();
        assert_eq!(alone.now, at(1100));
        alone.now = at(1700);
        assert_eq!(ack(&mut alone, 1), [10, 11]);
        ack(&mut alone, if real { 1 } else { 10 });
        alone.now = at(3300);
        ack(&mut alone, 12);
        alone.notes.last(Gauge::Rto)
    };
    assert_eq!((rto(false), rto(true)), (Some(4.8), Some(2.0)));
}

/// A path that stalls for two seconds: what is sent twice, and what it costs.
fn through_a_stall(config: &Config) -> (usize, u64) {
    let mut pair = Pair::connected(config);
    pair.rate = Some(Rate::from_bps(8_000_000));
    pair.on_wire(|sent| {
        // What leaves between 2.5 s and 4.5 s comes after that, in order.
        let (from, until) = (at(2500), at(4500));
        if (from..until).contains(&sent.at) {
            Verdict::Late(until.saturating_since(sent.at))
        } else {
            Verdict::Arrive
        }
    });
    for _ in 0..100 {
        while pair.client.endpoint.send_capacity() >= 1000 {
            pair.send(Client, 1000);
        }
        pair.drive_for(ms(100));
    }
    let mut seen = std::collections::BTreeSet::new();
    let twice = pair.data(Client).iter().filter(|sent| !seen.insert(sent.seq)).count();
    (twice, pair.server.count)
}

/// §1: a needless timeout costs a window sent twice, and half the window; with F-RTO one segment for
/// each time the timer ran out.
#[test]
fn a_stall() {
    for config in [
        Config { send_buffer: Size::from_bytes(200_000), ..basic() },
        Config { send_buffer: Size::from_bytes(200_000), ..enhanced() },
        Config {
            send_buffer: Size::from_bytes(200_000),
            controller: Controller::Cubic,
            ..enhanced()
        },
    ] {
        let (twice, count) = through_a_stall(&config);
        let (conventional, fewer) =
            through_a_stall(&Config { f_rto: Some(false), ..config.clone() });
        assert!(twice <= 3, "{config:?}: {twice}");
        assert!(conventional > 20, "{config:?}: {conventional}");
        assert!(count > fewer, "{count} {fewer}");
    }
}

/// A connection that closes while a timeout is being checked.
#[test]
fn the_end_in_doubt() {
    for config in [basic(), enhanced()] {
        let mut alone = timed_out(&config, 11);
        alone.input(Input::Close);
        assert_eq!(ack(&mut alone, 1), [10]);
        ack(&mut alone, 2);
        alone.arrive(Flags::ACK, 1, 11_002, 0);
        assert_eq!(alone.endpoint.state(), State::FinWait2);
    }
}

/// RFC 5682 §3.1: `RecoveryPoint` is SND.UNA, "thus allowing fast recovery on incoming duplicate
/// acknowledgments"; RFC 4015 §4: with NewReno the third duplicate is a loss, whatever `recover` is.
#[test]
fn a_loss_after_a_needless_timeout() {
    let mut alone = timed_out(&basic(), 100);
    ack(&mut alone, 1);
    ack(&mut alone, 2);
    // 2 is lost: what follows makes duplicates.
    assert!(ack(&mut alone, 2).iter().all(|place| *place > 11));
    assert!(ack(&mut alone, 2).iter().all(|place| *place > 11));
    assert_eq!(ack(&mut alone, 2), [2]);
}

/// RFC 5682 §2.1 step 2b: the new data is no limited transmit (RFC 3042), even if the acknowledgement that
/// permits it has a block. It belongs to FlightSize, half of which becomes the threshold when what was
/// lost before the timeout is found (RFC 6675 §5 step 4.2).
#[test]
fn the_new_data_is_no_limited_transmit() {
    let mut alone = timed_out(&enhanced(), 100);
    assert_eq!(alone.sack_numbers(1, &[(3, 4)]), [10, 11]);
    // Step 3b: 4 to 6 were sent once, and with them 1 is known to be lost.
    let sent = alone.sack_numbers(1, &[(3, 7)]);
    assert_eq!(sent.first(), Some(&1));
    // 1 to 11 are outstanding.
    assert_eq!(alone.notes.last(Gauge::Ssthresh), Some(5500.0));
}
