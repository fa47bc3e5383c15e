//! CCID 2, clause by clause of RFC 4341: when acknowledgements leave, and the congestion control of
//! acknowledgements, Ack Ratio (§6; RFC 4340 §11.3).

use crate::ccid2_half::{Bench, MS, at, rfc, seq, wide};
use talkspurt_proto::dccp::ackvec::State::{Marked, Received};
use talkspurt_proto::dccp::ccid::{Arrival, Receiver as _, Sender as _};
use talkspurt_proto::dccp::ccid2::{Parameters, Receiver};
use talkspurt_proto::dccp::options::Opt;
use talkspurt_proto::dccp::{AckVector, Options};
use talkspurt_proto::packet::Ecn;
use talkspurt_proto::profile::Profile;
use talkspurt_testing::dccp::with;

fn arrival<'a>(number: u64, data: bool, ecn: Ecn, options: &'a Options) -> Arrival<'a> {
    Arrival { seq: seq(number), data_bytes: data.then_some(172), ccval: 0, ecn, ndp: None, options }
}

/// A receiver and the vector beside it.
struct Ear {
    receiver: Receiver,
    vector: AckVector,
}

impl Ear {
    fn new(parameters: &Parameters) -> Self {
        Self { receiver: Receiver::new(parameters), vector: AckVector::new() }
    }
    fn hears(&mut self, ms: u64, number: u64, data: bool, ecn: Ecn) -> bool {
        self.vector.on_packet(seq(number), ecn);
        let none = Options::default();
        self.receiver.on_packet(at(ms), &arrival(number, data, ecn, &none), &mut ());
        self.receiver.wants_ack(at(ms))
    }
    fn acks(&mut self, ms: u64) -> Options {
        let mut options = Options::default();
        self.receiver.acknowledge(at(ms), false, &mut self.vector, &mut options);
        options
    }
}

#[test]
fn section_6_one_acknowledgement_for_ack_ratio_data_packets() {
    for ratio in 1..6 {
        let mut ear = Ear::new(&rfc());
        ear.receiver.set_ack_ratio(ratio);
        let mut acks = 0;
        for number in 1..=60 {
            if ear.hears(number, number, true, Ecn::NotEct) {
                acks += 1;
                let options = ear.acks(number);
                assert_eq!(options.as_bytes()[..2], [38, 3], "with an Ack Vector, and only that");
            }
        }
        assert_eq!(acks, 60 / ratio);
    }
}

#[test]
fn rfc_4340_section_11_3_no_acknowledgement_waits_longer_than_the_timer() {
    let mut ear = Ear::new(&rfc());
    assert!(!ear.hears(10, 1, true, Ecn::NotEct));
    assert_eq!(ear.receiver.deadline(), Some(at(210)));
    ear.receiver.on_timeout(at(209));
    assert!(!ear.receiver.wants_ack(at(209)));
    ear.receiver.on_timeout(at(210));
    assert!(ear.receiver.wants_ack(at(210)));
    assert_eq!(ear.receiver.deadline(), None);
    // §13.2: it says that it waited, 200 ms in units of 10 µs.
    let options = ear.acks(210);
    let all: Vec<_> = options.iter().collect();
    assert_eq!(
        all,
        [Ok(Opt::AckVector { nonce: false, cells: &[0] }), Ok(Opt::ElapsedTime(20_000))]
    );
    assert!(!ear.receiver.wants_ack(at(211)));
    // Linux has no such timer.
    let mut ear = Ear::new(&Parameters::of(Profile::Linux));
    assert!(!ear.hears(10, 1, true, Ecn::NotEct));
    assert_eq!(ear.receiver.deadline(), None);
}

#[test]
fn rfc_4340_section_11_3_holes_and_late_packets_are_acknowledged_at_once() {
    let mut ear = Ear::new(&rfc());
    ear.receiver.set_ack_ratio(10);
    assert!(!ear.hears(1, 1, true, Ecn::NotEct));
    assert!(ear.hears(2, 3, true, Ecn::NotEct), "2 is missing");
    ear.acks(2);
    assert!(!ear.hears(3, 4, true, Ecn::NotEct));
    assert!(ear.hears(4, 2, true, Ecn::NotEct), "2 came late");
}

#[test]
fn rfc_4340_section_11_3_marks_are_acknowledged_at_once_and_once_a_round_trip() {
    let mut ear = Ear::new(&rfc());
    ear.receiver.set_ack_ratio(10);
    ear.receiver.set_rtt(MS * 100);
    assert!(!ear.hears(0, 1, true, Ecn::Ect0));
    assert!(ear.hears(1, 2, true, Ecn::Ce));
    ear.acks(1);
    assert!(!ear.hears(100, 3, true, Ecn::Ce));
    assert!(ear.hears(101, 4, true, Ecn::Ce));
    let options = ear.acks(101);
    assert_eq!(options.as_bytes(), [38, 4, 0b0100_0010, 0], "and are told");
}

/// ns-2 (`recv_packetRecv`) and Linux (`ccid2_hc_rx_packet_recv`) only count data packets.
#[test]
fn other_profiles_acknowledge_holes_and_marks_like_any_packet() {
    for profile in [Profile::Ns2, Profile::Linux] {
        let mut ear = Ear::new(&Parameters::of(profile));
        ear.receiver.set_ack_ratio(4);
        for (number, ecn) in [(1, Ecn::Ect0), (3, Ecn::Ect0), (4, Ecn::Ce)] {
            assert!(!ear.hears(number, number, true, ecn), "{profile:?}, {number}");
        }
        assert!(ear.hears(5, 5, true, Ecn::Ect0), "{profile:?}");
    }
}

#[test]
fn section_6_acknowledgements_alone_are_not_acknowledged() {
    let mut ear = Ear::new(&rfc());
    for number in 1..100 {
        assert!(!ear.hears(number, number * 2, false, Ecn::NotEct));
    }
    assert_eq!(ear.receiver.deadline(), None);
}

/// Sends `cwnd` packets and acknowledges them in one go, with a lost acknowledgement before or not.
fn window_of_data(bench: &mut Bench, lose: bool) {
    let first = bench.next;
    bench.some(bench.sender.window());
    let last = bench.next - 1;
    bench.peer += u64::from(lose);
    for number in [first, first + 1, last] {
        bench.ack(number, &[(Received, (number + 1 - first) as u8)]);
    }
}

/// A window that stays where it is: nothing grows in congestion avoidance with the receiver slow.
fn constant(window: u64) -> Bench {
    let parameters = Parameters { initial_window_packets: Some(window), ..wide(Some(2)) };
    let mut bench = Bench::new(&parameters);
    bench.some(1);
    bench.pass(10_000);
    let options = with(&[Opt::SlowReceiver, Opt::AckVector { nonce: false, cells: &[0] }]);
    bench.hear(1, &options);
    bench
}

#[test]
fn section_6_1_2_ack_ratio_doubles_for_a_window_with_a_lost_acknowledgement() {
    let mut bench = constant(24);
    assert_eq!(bench.sender.ack_ratio(), Some(2));
    let mut ratios = Vec::new();
    for lose in [true, false, true, true, false, false] {
        window_of_data(&mut bench, lose);
        ratios.push(bench.sender.ack_ratio().unwrap());
    }
    assert_eq!(bench.sender.window(), 24);
    // A window is judged when the first packet of the next is acknowledged: 2 · 2; kept after a
    // clean one (24/(16 − 4) = 2 of those are wanted); 8; 12, half of 24 and not 16.
    assert_eq!(ratios, [2, 4, 4, 8, 12, 11]);
}

#[test]
fn section_6_1_2_ack_ratio_falls_by_one_after_cwnd_over_r_squared_less_r_clean_windows() {
    let mut bench = constant(24);
    for lose in [true, true, false] {
        window_of_data(&mut bench, lose);
    }
    assert_eq!(bench.sender.ack_ratio(), Some(8));
    let mut ratios = Vec::new();
    for _ in 0..12 {
        window_of_data(&mut bench, false);
        ratios.push(bench.sender.ack_ratio().unwrap());
    }
    // 24/56, 24/42, 24/30 windows: one each for 8 → 7 → 6 → 5; 24/20: two for 5 → 4; 24/12: two
    // for 4 → 3; 24/6: four for 3 → 2.
    assert_eq!(ratios, [7, 6, 5, 5, 4, 4, 3, 3, 3, 3, 2, 2]);
}

#[test]
fn section_6_1_2_clean_windows_count_from_the_last_loss_on() {
    let mut bench = constant(60);
    let mut ratios = Vec::new();
    for lose in [true, false, false, false, true, false, false, false] {
        window_of_data(&mut bench, lose);
        ratios.push(bench.sender.ack_ratio().unwrap());
    }
    // At R = 4 three of the five clean windows that 60/12 wants; at R = 8 two, 60/56 rounded up.
    assert_eq!(ratios, [2, 4, 4, 4, 4, 8, 8, 7]);
}

#[test]
fn section_6_1_2_the_three_bounds_of_ack_ratio() {
    // At most half the window rounded up, though two will always do; at least two from four on.
    let mut bench = constant(24);
    for lose in [true, true, true, false] {
        window_of_data(&mut bench, lose);
    }
    assert_eq!(bench.sender.ack_ratio(), Some(12));
    let first = bench.next;
    bench.some(1);
    bench.ack(first, &[(Marked, 1)]);
    assert_eq!((bench.sender.window(), bench.sender.ack_ratio()), (12, Some(6)));
    bench.some(1);
    bench.timeout();
    assert_eq!((bench.sender.window(), bench.sender.ack_ratio()), (1, Some(2)));
    // "MAY set Ack Ratio to one for ... congestion windows of 1 or 2 packets" that last.
    let first = bench.next;
    bench.some(1);
    bench.ack(first, &[(Received, 1)]);
    bench.some(1);
    bench.ack(first + 1, &[(Received, 1)]);
    assert_eq!((bench.sender.window(), bench.sender.ack_ratio()), (2, Some(1)));
    // Slow start by half a packet for an acknowledgement at R = 1; and two again from four on.
    for (window, ratio) in [(2, 1), (2, 1), (3, 1), (3, 1), (4, 2)] {
        assert_eq!((bench.sender.window(), bench.sender.ack_ratio()), (window, Some(ratio)));
        let packets = bench.fill();
        bench.ack(bench.next - 1, &[(Received, packets as u8)]);
    }
}

#[test]
fn section_6_1_1_an_acknowledgement_that_comes_late_is_not_lost() {
    let mut bench = constant(24);
    let none = Options::default();
    let late = bench.peer;
    for number in [late + 1, late + 2, late, late + 3, late + 4] {
        bench.sender.on_arrival(bench.now, &arrival(number, false, Ecn::NotEct, &none));
    }
    bench.peer = late + 5;
    window_of_data(&mut bench, false);
    window_of_data(&mut bench, false);
    assert_eq!(bench.sender.ack_ratio(), Some(2));
}

#[test]
fn section_6_1_1_lost_data_of_the_other_side_is_no_lost_acknowledgement() {
    for (data, ndp, ratio) in [(false, None, 4), (true, None, 2), (true, Some(1), 4)] {
        let mut bench = constant(24);
        let none = Options::default();
        if data {
            let number = bench.peer;
            bench.peer += 1;
            bench.sender.on_arrival(bench.now, &arrival(number, true, Ecn::NotEct, &none));
        }
        // One of its packets is missing, and the next one says by NDP Count whether the one before
        // it had data.
        let number = bench.peer + 1;
        bench.peer += 2;
        let next = Arrival { ndp, ..arrival(number, data, Ecn::NotEct, &none) };
        bench.sender.on_arrival(bench.now, &next);
        window_of_data(&mut bench, false);
        window_of_data(&mut bench, false);
        assert_eq!(bench.sender.ack_ratio(), Some(ratio), "data {data}, NDP Count {ndp:?}");
    }
}

#[test]
fn section_6_1_1_marked_acknowledgements_count_as_lost_ones() {
    let mut bench = constant(24);
    let first = bench.next;
    bench.some(24);
    let options = with(&[Opt::AckVector { nonce: false, cells: &[23] }]);
    let number = bench.peer;
    bench.hear_as(number, first + 23, &options, Ecn::Ce, (None, None));
    assert_eq!(bench.sender.ack_ratio(), Some(4));
}

#[test]
fn section_6_2_acknowledgements_are_acknowledged_once_a_window() {
    let mut bench = Bench::new(&wide(Some(2)));
    let mut owed = Vec::new();
    for _ in 0..60 {
        let number = bench.next;
        bench.some(1);
        if bench.sender.owes_ack() {
            owed.push(number);
        }
        if number.is_multiple_of(2) && number < 46 {
            bench.ack(number, &[(Received, 2)]);
        }
        if number >= 46 {
            break;
        }
    }
    // Ten packets a window, growing by one with each window acknowledged.
    assert_eq!(owed.len(), 4, "{owed:?}");
    assert!(owed.windows(2).all(|pair| (10..=14).contains(&(pair[1] - pair[0]))), "{owed:?}");
    // Nothing is owed when no acknowledgement came.
    let mut bench = Bench::full(&wide(Some(2)));
    assert!(!bench.sender.owes_ack());
}

/// RFC 4340 §13.2: what waited for more packets, and is acknowledged by data before they come, has its
/// wait told, lest the sender take it for round-trip time. ns-2 and Linux tell nothing.
#[test]
fn rfc_4340_section_13_2_an_acknowledgement_on_data_says_how_long_it_waited() {
    let elapsed = |profile, heard, said| {
        let mut ear = Ear::new(&Parameters::of(profile));
        assert!(!ear.hears(heard, 1, true, Ecn::NotEct));
        let mut options = Options::default();
        ear.receiver.acknowledge(at(said), true, &mut ear.vector, &mut options);
        options.iter().find_map(|option| match option {
            Ok(Opt::ElapsedTime(units)) => Some(units),
            _ => None,
        })
    };
    assert_eq!(elapsed(Profile::Rfc, 10, 70), Some(6000));
    assert_eq!(elapsed(Profile::Rfc, 10, 10), None, "at once");
    assert_eq!(elapsed(Profile::Ns2, 10, 70), None);
    assert_eq!(elapsed(Profile::Linux, 10, 70), None);
}
