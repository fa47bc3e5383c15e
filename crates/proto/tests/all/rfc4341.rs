//! CCID 2, clause by clause of RFC 4341 (and of RFC 4340 where that binds a CCID): windows computed
//! by hand, seen as how many packets may leave and when.

use crate::ccid2_half;
use crate::ccid2_half::{Bench, Fate, MS, Path, at, seq};
use talkspurt_proto::dccp::ackvec::State::{Marked, NotYet, Received};
use talkspurt_proto::dccp::ccid::{Arrival, Receiver as _, Sender as _};
use talkspurt_proto::dccp::ccid2::{
    Config, Idle, Impossible, Limited, Parameters, Receiver, SlowStart,
};
use talkspurt_proto::dccp::options::Opt;
use talkspurt_proto::dccp::{AckVector, Options};
use talkspurt_proto::dice::Dice;
use talkspurt_proto::packet::Ecn;
use talkspurt_proto::profile::Profile;
use talkspurt_proto::time::Duration;

fn rfc() -> Parameters {
    Parameters::of(Profile::Rfc)
}

/// A window of ten from the start, so that hand computation is easy; growth unlimited.
fn wide(ssthresh: Option<u64>) -> Parameters {
    Parameters {
        initial_window_packets: Some(10),
        initial_ssthresh_packets: ssthresh,
        application_limited: Limited::Grow,
        ..rfc()
    }
}

#[test]
fn section_5_the_initial_window_is_that_of_rfc_3390_in_packets() {
    // min(4, max(2, 4380 / size))
    for (bytes, packets) in [(172, 4), (1000, 4), (1095, 4), (1400, 3), (1460, 3), (2200, 2)] {
        let mut bench = Bench::new(&rfc());
        bench.send(Some(bytes));
        assert_eq!(bench.fill() + 1, packets, "{bytes} bytes");
        assert_eq!(bench.sender.threshold(), None, "ssthresh is arbitrarily high");
    }
}

#[test]
fn profiles_begin_with_their_windows_and_thresholds() {
    let mut ns2 = Bench::new(&Parameters::of(Profile::Ns2));
    assert_eq!(ns2.fill(), 3);
    let config = Config { initial_ssthresh: Some(20), ..Config::default() };
    let bench = Bench::new(&config.resolve(Profile::Ns2));
    assert_eq!(bench.sender.threshold(), Some(20));
    let mut linux = Bench::new(&Parameters::of(Profile::Linux));
    assert_eq!(linux.fill(), 4);
}

#[test]
fn section_5_a_packet_may_leave_while_pipe_is_below_cwnd() {
    let mut bench = Bench::new(&wide(Some(2)));
    assert_eq!(bench.fill(), 10);
    assert_eq!(bench.state(), (10, Some(2), 10));
    bench.ack(1, &[(Received, 1)]);
    assert_eq!(bench.sender.pipe(), 9);
    assert_eq!(bench.fill(), 1);
}

#[test]
fn section_5_acknowledged_packets_leave_the_pipe_once_marked_or_not() {
    let mut bench = Bench::new(&wide(Some(2)));
    bench.fill();
    bench.ack(3, &[(Received, 1), (Marked, 1), (Received, 1)]);
    assert_eq!(bench.sender.pipe(), 7);
    // "True duplicate acknowledgements, for example, MUST NOT affect pipe."
    for _ in 0..5 {
        bench.ack(3, &[(Received, 1), (Marked, 1), (Received, 1)]);
    }
    assert_eq!(bench.sender.pipe(), 7);
    // Nor does a vector that says again what another one said, in another state.
    bench.ack(4, &[(Received, 2), (Received, 2)]);
    assert_eq!(bench.sender.pipe(), 6);
}

#[test]
fn section_5_packets_without_data_never_move_the_pipe() {
    let mut bench = Bench::new(&wide(Some(2)));
    bench.send(Some(172));
    bench.send(None);
    bench.send(None);
    bench.send(Some(172));
    assert_eq!(bench.sender.pipe(), 2);
    bench.ack(3, &[(Received, 2)]);
    assert_eq!(bench.sender.pipe(), 2);
    bench.ack(4, &[(Received, 4)]);
    assert_eq!(bench.sender.pipe(), 0);
}

#[test]
fn section_5_three_packets_acknowledged_behind_a_hole_make_it_lost() {
    let mut bench = Bench::new(&wide(Some(2)));
    bench.fill();
    bench.ack(3, &[(Received, 2), (NotYet, 1)]);
    assert_eq!(bench.state(), (10, Some(2), 8), "two may be reordering");
    bench.ack(4, &[(Received, 3), (NotYet, 1)]);
    // Packet 1 is lost: pipe is 10 − 3 − 1, cwnd 10 / 2.
    assert_eq!(bench.state(), (5, Some(5), 6));
    // "MUST NOT decrement pipe again upon receiving acknowledgement of a packet previously inferred
    // as lost"
    bench.ack(4, &[(Received, 4)]);
    assert_eq!(bench.state(), (5, Some(5), 6));
}

#[test]
fn section_5_packets_behind_the_hole_need_not_carry_data() {
    let mut bench = Bench::new(&wide(Some(2)));
    bench.send(Some(172));
    bench.send(Some(172));
    bench.send(None);
    bench.send(None);
    bench.ack(4, &[(Received, 3), (NotYet, 1)]);
    assert_eq!(bench.state(), (5, Some(5), 0));
}

#[test]
fn section_5_a_late_packet_before_three_others_is_no_loss() {
    let mut bench = Bench::new(&wide(Some(2)));
    bench.fill();
    bench.ack(3, &[(Received, 2), (NotYet, 1)]);
    bench.ack(3, &[(Received, 3)]);
    bench.ack(6, &[(Received, 6)]);
    assert_eq!(bench.state(), (10, Some(2), 4));
}

#[test]
fn section_5_losses_and_marks_of_one_window_are_one_event() {
    let mut bench = Bench::new(&wide(Some(2)));
    bench.fill();
    bench.ack(4, &[(Received, 3), (NotYet, 1)]);
    assert_eq!(bench.sender.window(), 5);
    // 5 is lost and 9 marked: both left before the loss of 1 was seen.
    bench.ack(9, &[(Marked, 1), (Received, 3), (NotYet, 1), (Received, 3), (NotYet, 1)]);
    assert_eq!(bench.sender.window(), 5);
    bench.ack(10, &[(Received, 1), (Marked, 1), (Received, 3), (NotYet, 1)]);
    assert_eq!(bench.state(), (5, Some(5), 0));
    // 11 left after: its mark is another event, rounded down.
    assert_eq!(bench.fill(), 5);
    bench.ack(11, &[(Marked, 1)]);
    assert_eq!(bench.state(), (2, Some(2), 4));
}

#[test]
fn section_5_halves_are_rounded_down_to_one_for_cwnd_and_two_for_ssthresh() {
    for (before, cwnd, ssthresh) in [(7, 3, 3), (5, 2, 2), (3, 1, 2), (2, 1, 2), (1, 1, 2)] {
        let parameters = Parameters { initial_window_packets: Some(before), ..wide(Some(2)) };
        let mut bench = Bench::new(&parameters);
        bench.fill();
        bench.ack(1, &[(Marked, 1)]);
        assert_eq!(bench.state(), (cwnd, Some(ssthresh), before - 1), "from {before}");
    }
}

#[test]
fn section_5_rfc_8311_a_mark_is_congestion_whatever_the_nonce_echo() {
    let mut bench = Bench::new(&wide(Some(2)));
    bench.fill();
    let mut options = Options::default();
    options.push(Opt::AckVector {
        nonce: true,
        cells: &ccid2_half::vector(&[(Received, 1), (Marked, 1)]),
    });
    bench.hear(2, &options);
    assert_eq!(bench.state(), (5, Some(5), 8));
}

#[test]
fn section_5_a_timeout_empties_the_pipe_and_leaves_one_packet() {
    let mut bench = Bench::new(&wide(None));
    bench.fill();
    bench.pass(100);
    bench.ack(2, &[(Received, 2)]);
    // Slow start: 11. R = 100 ms, RTO = R + 4 · R/2 = 300 ms, but not below a second.
    assert_eq!(bench.state(), (11, None, 8));
    assert_eq!(bench.sender.deadline(), Some(at(1100)));
    bench.timeout();
    assert_eq!(bench.state(), (1, Some(5), 0));
    assert_eq!(bench.sender.deadline(), None, "nothing is in the network");
    // "The exponential backoff of the timer is exactly as in TCP": 2, 4, 8 s, bounded by 60.
    let mut wait = 2;
    for _ in 0..7 {
        assert_eq!(bench.fill(), 1);
        let deadline = bench.now + Duration::from_secs(wait);
        assert_eq!(bench.sender.deadline(), Some(deadline));
        bench.timeout();
        assert_eq!(bench.state(), (1, Some(2), 0));
        wait = (wait * 2).min(60);
    }
    // What was given up moves nothing when it is acknowledged after all.
    bench.ack(11, &[(Received, 8)]);
    assert_eq!(bench.state(), (1, Some(2), 0));
}

#[test]
fn section_5_slow_start_adds_one_for_two_and_at_most_half_the_ack_ratio_an_acknowledgement() {
    let mut bench = Bench::new(&wide(None));
    bench.fill();
    bench.ack(2, &[(Received, 2)]);
    assert_eq!(bench.sender.window(), 11);
    // One packet is half a step.
    bench.ack(3, &[(Received, 1)]);
    assert_eq!(bench.sender.window(), 11);
    bench.ack(4, &[(Received, 1)]);
    assert_eq!(bench.sender.window(), 12);
    // Six at once: Ack Ratio 2 allows one.
    bench.ack(10, &[(Received, 6)]);
    assert_eq!(bench.sender.window(), 13);
    // With Ack Ratio 6 it would be three.
    let mut bench =
        Bench::new(&Parameters { ack_ratio: 6, ack_ratio_control: false, ..wide(None) });
    bench.fill();
    bench.ack(10, &[(Received, 10)]);
    assert_eq!(bench.sender.window(), 13);
}

#[test]
fn ns_2_slow_start_adds_one_for_each() {
    let mut bench = Bench::new(&Parameters { slow_start: SlowStart::PerPacket, ..wide(None) });
    bench.fill();
    bench.ack(2, &[(Received, 2)]);
    assert_eq!(bench.sender.window(), 12);
    bench.ack(10, &[(Received, 8)]);
    assert_eq!(bench.sender.window(), 20);
}

#[test]
fn section_5_slow_start_begins_anew_after_a_timeout() {
    let mut bench = Bench::new(&wide(None));
    bench.fill();
    bench.ack(1, &[(Received, 1)]);
    assert_eq!(bench.state(), (10, None, 9), "half a step is earned");
    bench.timeout();
    for window in [1, 2] {
        bench.some(1);
        bench.ack(bench.next - 1, &[(Received, 1)]);
        assert_eq!(bench.sender.window(), window, "and forgotten");
    }
}

#[test]
fn section_5_slow_start_ends_at_ssthresh() {
    let mut bench = Bench::new(&wide(Some(12)));
    bench.fill();
    bench.ack_pairs(1, 10);
    // 11, 12, and from then on one for a window of twelve, of which six are acknowledged.
    assert_eq!(bench.sender.window(), 12);
    bench.fill();
    bench.ack(16, &[(Received, 6)]);
    assert_eq!(bench.sender.window(), 13);
}

#[test]
fn section_5_congestion_avoidance_adds_one_for_each_window() {
    let mut bench = Bench::new(&wide(Some(2)));
    for window in 10..15 {
        assert_eq!(bench.sender.window(), window);
        let first = bench.next;
        bench.fill();
        let last = bench.next - 1;
        assert_eq!(last - first + 1, window);
        bench.ack(last - 1, &[(Received, (window - 1) as u8)]);
        assert_eq!(bench.sender.window(), window, "a packet is missing to a full window");
        bench.ack(last, &[(Received, window as u8)]);
    }
}

#[test]
fn section_5_no_growth_from_packets_sent_before_the_event() {
    let mut bench = Bench::new(&wide(Some(2)));
    bench.fill();
    bench.ack(4, &[(Received, 3), (NotYet, 1)]);
    assert_eq!(bench.state(), (5, Some(5), 6));
    // 5 to 10 belong to the window with a loss: "each window of data acknowledged without lost or
    // marked packets".
    bench.ack(10, &[(Received, 9), (NotYet, 1)]);
    assert_eq!(bench.sender.window(), 5);
    assert_eq!(bench.fill(), 5);
    bench.ack(15, &[(Received, 5)]);
    assert_eq!(bench.sender.window(), 6);
}

#[test]
fn section_5_the_round_trip_time_is_that_of_the_newest_packet_less_what_the_receiver_waited() {
    let parameters = Parameters { min_rto: MS, ..wide(Some(2)) };
    let mut bench = Bench::new(&parameters);
    let (wait, echo) = (Some(MS * 40), Some(MS * 70));
    let mut options = Options::default();
    options.push(Opt::AckVector { nonce: false, cells: &[1] });
    for (waited, echoed, rtt) in [(None, None, 100), (wait, None, 60), (wait, echo, 70)] {
        bench.sender = Bench::new(&parameters).sender;
        bench.some(1);
        bench.pass(50);
        bench.some(1);
        bench.pass(100);
        let ack = bench.next - 1;
        bench.hear_as(1, ack, &options, Ecn::NotEct, (waited, echoed));
        assert_eq!(bench.sender.rtt(), Some(MS * rtt));
        // RFC 6298 §2.2: RTO = R + 4 · R/2
        assert_eq!(bench.sender.rto(), MS * (3 * rtt));
    }
}

#[test]
fn section_5_what_the_receiver_waited_is_about_the_packet_it_names() {
    let mut bench = Bench::new(&wide(Some(2)));
    bench.some(1);
    bench.pass(50);
    bench.send(None);
    bench.pass(100);
    let mut options = Options::default();
    options.push(Opt::AckVector { nonce: false, cells: &[1] });
    bench.hear_as(1, 2, &options, Ecn::NotEct, (Some(MS * 40), None));
    // Packet 2 waited for 40 ms; it had no data, and how long packet 1 waited nobody says.
    assert_eq!(bench.sender.rtt(), Some(MS * 150));
}

#[test]
fn rfc_4340_section_11_4_1_a_mark_told_later_counts() {
    let mut bench = Bench::new(&wide(Some(2)));
    bench.fill();
    bench.ack(2, &[(Received, 1), (NotYet, 1)]);
    // A duplicate of packet 2 arrived marked: of old 0 and received 1 the sender makes 1.
    bench.ack(2, &[(Marked, 1), (NotYet, 1)]);
    assert_eq!(bench.state(), (5, Some(5), 9));
    // And the other way round it stays one mark.
    bench.ack(2, &[(Received, 1), (NotYet, 1)]);
    bench.ack(2, &[(Marked, 1), (NotYet, 1)]);
    assert_eq!(bench.state(), (5, Some(5), 9));
}

#[test]
fn section_5_many_measurements_a_window_weigh_less_each() {
    let mut bench = Bench::new(&Parameters { min_rto: MS, ..wide(Some(2)) });
    bench.fill();
    bench.pass(100);
    bench.ack(2, &[(Received, 2)]);
    assert_eq!(bench.sender.rtt(), Some(MS * 100));
    bench.pass(80);
    // Six packets are out and two come with each acknowledgement: three measurements a round trip,
    // so SRTT moves by 80 ms / (8 · 3).
    bench.ack(4, &[(Received, 2)]);
    let expected = MS * 100 + Duration::from_nanos(80_000_000 / 24);
    assert_eq!(bench.sender.rtt(), Some(expected));
}

#[test]
fn rate_limited_increase_the_drafts_example() {
    // Appendix "An Example Using cwnd Represented in Bytes", a packet for each 1000 bytes: windows
    // of 10, rounds of 4, 8, 4 and 20 packets, one acknowledgement for two of them; doubling slow
    // start, which the example has.
    let limited =
        Parameters { initial_window_packets: Some(10), slow_start: SlowStart::PerPacket, ..rfc() };
    let grown = Parameters { application_limited: Limited::Grow, ..limited.clone() };
    for (parameters, windows) in [(limited, [14, 20, 20, 40]), (grown, [14, 22, 26, 46])] {
        let mut bench = Bench::new(&parameters);
        for (packets, window) in [4, 8, 4, 20].into_iter().zip(windows) {
            let first = bench.next;
            bench.some(packets);
            bench.ack_pairs(first, first + packets - 1);
            assert_eq!(bench.sender.window(), window);
        }
    }
}

#[test]
fn rate_limited_increase_in_rfc_4341s_slow_start_and_in_congestion_avoidance() {
    let parameters = Parameters { initial_window_packets: Some(10), ..rfc() };
    // One for two: the acknowledgements of a flight of 10 would yield 15.
    let mut bench = Bench::new(&parameters);
    for _ in 0..20 {
        let first = bench.next;
        bench.some(4);
        bench.ack_pairs(first, first + 3);
    }
    assert_eq!(bench.sender.window(), 15);
    // One for each window: maxFS + 1. A mark makes maxFS that of the flights since.
    bench.some(15);
    let first = bench.next - 15;
    bench.ack(first, &[(Marked, 1)]);
    assert_eq!(bench.sender.window(), 7);
    bench.ack(first + 14, &[(Received, 14)]);
    for _ in 0..20 {
        let first = bench.next;
        bench.some(4);
        bench.ack_pairs(first, first + 3);
    }
    assert_eq!(bench.sender.window(), 7, "no flight since came near 7");
    for _ in 0..20 {
        let first = bench.next;
        bench.some(7);
        bench.ack(first + 6, &[(Received, 7)]);
    }
    assert_eq!(bench.sender.window(), 8, "flights of 7 allow 8 and no more");
}

#[test]
fn rate_limited_increase_forgets_the_flights_before_silence() {
    let mut bench = Bench::new(&Parameters { slow_start: SlowStart::PerPacket, ..rfc() });
    for packets in [4, 8, 16] {
        assert_eq!(bench.fill(), packets);
        bench.ack(bench.next - 1, &[(Received, packets as u8)]);
    }
    bench.pass(1001);
    // "Upon a reduction of cwnd (for any reason), maxFS MUST be reset": restarted from 4, a flight
    // of one allows two, and the window stays.
    bench.some(1);
    bench.ack(bench.next - 1, &[(Received, 1)]);
    assert_eq!(bench.sender.window(), 4);
    assert_eq!(bench.fill(), 4);
    bench.ack(bench.next - 1, &[(Received, 4)]);
    assert_eq!(bench.sender.window(), 8);
}

#[test]
fn rfc_2861_an_unused_window_falls_half_way_to_what_was_used() {
    let parameters = Parameters {
        application_limited: Limited::Validate,
        slow_start: SlowStart::PerPacket,
        ..wide(Some(40))
    };
    let mut bench = Bench::new(&parameters);
    for packets in [10, 20, 40] {
        assert_eq!(bench.fill(), packets);
        bench.pass(100);
        let last = bench.next - 1;
        bench.ack(last, &[(Received, packets as u8)]);
    }
    // One more with each window from then on.
    for packets in 41..55 {
        assert_eq!(bench.fill(), packets);
        bench.pass(100);
        bench.ack(bench.next - 1, &[(Received, packets as u8)]);
    }
    // Of that window, last full 100 ms ago, five are used at a time; but the initial window of ten
    // counts as used. 90 packets in nine rounds make one more.
    for _ in 0..9 {
        for _ in 0..2 {
            bench.some(5);
            bench.ack(bench.next - 1, &[(Received, 5)]);
        }
        bench.pass(100);
    }
    assert_eq!(bench.state(), (56, Some(40), 0));
    assert_eq!(bench.sender.rto(), MS * 1000);
    bench.some(1);
    // (56 + 10) / 2 after a timeout of a second, and three quarters of 56 are remembered.
    assert_eq!(bench.state(), (33, Some(42), 1));
}

#[test]
fn section_5_1_the_window_after_silence() {
    for (idle, window) in [(Idle::Restart, 4), (Idle::Halve, 6), (Idle::Keep, 26)] {
        let parameters = Parameters {
            idle,
            slow_start: SlowStart::PerPacket,
            application_limited: Limited::Grow,
            ..rfc()
        };
        let mut bench = Bench::new(&parameters);
        for _ in 0..3 {
            let first = bench.next;
            bench.fill();
            let last = bench.next - 1;
            bench.pass(100);
            bench.ack(last, &[(Received, (last + 1 - first) as u8)]);
        }
        assert_eq!(bench.sender.window(), 32);
        // A pause no longer than the timeout changes nothing.
        bench.pass(800);
        assert_eq!(bench.fill(), 32);
        let last = bench.next - 1;
        bench.ack(last, &[(Marked, 20), (Received, 12)]);
        // 16, and 26 in congestion avoidance after ten windows.
        for _ in 0..10 {
            bench.fill();
            let last = bench.next - 1;
            bench.ack(last, &[(Received, 63)]);
        }
        assert_eq!(bench.sender.window(), 26);
        // 2.05 s of silence are two timeouts of a second.
        bench.pass(2050);
        assert!(bench.sender.rto() == MS * 1000);
        let packets = bench.fill();
        assert_eq!(packets, window, "{idle:?}");
        // RFC 2861 §3: three quarters are remembered, which are more than ssthresh was.
        let threshold = if idle == Idle::Halve { 19 } else { 16 };
        assert_eq!(bench.sender.threshold(), Some(threshold), "{idle:?}");
    }
}

#[test]
fn rfc_4340_section_11_7_2_drop_codes() {
    // Block: 1, code (3 bits), run length − 1 (4 bits); all about packet 2 and 1.
    let cases = [
        (0_u8, 10, true), // protocol constraints: as received
        (2, 8, true),     // receive buffer: one a packet
        (3, 5, true),     // corrupt: as marked
        (5, 5, true),     // reserved: as marked
        (7, 5, true),     // delivered corrupt: as marked
        (1, 10, false),   // nobody listens: nothing more is sent
    ];
    for (code, window, may) in cases {
        let mut bench = Bench::new(&wide(Some(2)));
        bench.fill();
        let mut options = Options::default();
        options.push(Opt::AckVector { nonce: false, cells: &[1] });
        options.push(Opt::DataDropped(&[0x80 | code << 4 | 1]));
        bench.hear(2, &options);
        assert_eq!(bench.sender.window(), window, "code {code}");
        bench.ack(10, &[(Received, 8)]);
        assert_eq!(bench.may(), may, "code {code}");
        // The same again is about packets settled long ago.
        let after = bench.sender.window();
        bench.hear(2, &options);
        assert_eq!(bench.sender.window(), after, "code {code}");
    }
}

#[test]
fn section_5_2_a_full_receive_buffer_never_costs_the_last_packet() {
    let mut bench = Bench::new(&Parameters { initial_window_packets: Some(3), ..wide(Some(2)) });
    bench.fill();
    let mut options = Options::default();
    options.push(Opt::AckVector { nonce: false, cells: &[2] });
    options.push(Opt::DataDropped(&[0xa2]));
    bench.hear(3, &options);
    assert_eq!(bench.state(), (1, Some(2), 0));
}

#[test]
fn rfc_4340_section_11_7_1_both_responses_add_up() {
    let mut bench = Bench::new(&wide(Some(2)));
    bench.fill();
    let mut options = Options::default();
    let cells = ccid2_half::vector(&[(Received, 2), (Marked, 1)]);
    options.push(Opt::AckVector { nonce: false, cells: &cells });
    options.push(Opt::DataDropped(&[0xa1]));
    bench.hear(3, &options);
    // W = 10: the mark alone makes 5, the two drops alone 8; W − 5 − 2.
    assert_eq!(bench.sender.window(), 3);
}

#[test]
fn rfc_4340_section_11_6_no_growth_for_a_round_trip_after_slow_receiver() {
    let mut bench = Bench::new(&wide(None));
    bench.fill();
    bench.pass(100);
    bench.ack(2, &[(Received, 2)]);
    assert_eq!(bench.sender.window(), 11);
    let mut options = Options::default();
    options.push(Opt::SlowReceiver);
    options.push(Opt::AckVector { nonce: false, cells: &[1] });
    bench.hear(4, &options);
    bench.pass(99);
    bench.ack(6, &[(Received, 2)]);
    assert_eq!(bench.sender.window(), 11);
    bench.pass(1);
    bench.ack(8, &[(Received, 2)]);
    assert_eq!(bench.sender.window(), 12);
}

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
    let mut options = Options::default();
    options.push(Opt::SlowReceiver);
    options.push(Opt::AckVector { nonce: false, cells: &[0] });
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
    let mut options = Options::default();
    options.push(Opt::AckVector { nonce: false, cells: &[23] });
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
    let mut bench = Bench::new(&wide(Some(2)));
    bench.fill();
    assert!(!bench.sender.owes_ack());
}

#[test]
fn configs_that_make_no_sense_are_refused_by_name() {
    let check = |config: Config| config.check(Profile::Rfc);
    let default = Config::default;
    assert_eq!(check(default()), []);
    assert_eq!(check(Config { max_rto: Some(MS * 1000), ..default() }), []);
    assert_eq!(
        check(Config { max_rto: Some(MS * 999), ..default() }),
        [Impossible::Bounds { min: MS * 1000, max: MS * 999 }]
    );
    // Linux has a shorter least timeout: the same knob may be.
    let short = Config { max_rto: Some(MS * 999), ..default() };
    assert_eq!(short.check(Profile::Linux), []);
    let second = Duration::from_secs(1);
    let impossible = Config {
        initial_window: Some(0),
        initial_ssthresh: Some(1),
        ack_ratio: Some(0),
        ack_delay: Some(Duration::ZERO),
        initial_rto: Some(second * 3601),
        min_rto: Some(Duration::ZERO),
        max_rto: Some(Duration::ZERO),
        ..default()
    };
    let found = check(impossible);
    assert_eq!(
        found,
        [
            Impossible::NoWindow,
            Impossible::InitialThreshold(1),
            Impossible::AckRatio,
            Impossible::TooLong { knob: "initial_rto", span: second * 3601, most: second * 3600 },
            Impossible::Zero("ack_delay"),
            Impossible::Zero("max_rto"),
            Impossible::Zero("min_rto"),
        ]
    );
    let named: Vec<_> = found.iter().map(Impossible::knob).collect();
    assert_eq!(named[..4], ["initial_window", "initial_ssthresh", "ack_ratio", "initial_rto"]);
    let most = Config {
        initial_window: Some(65_535),
        initial_ssthresh: Some(2),
        ack_ratio: Some(1),
        ack_delay: Some(second * 60),
        initial_rto: Some(second * 3600),
        max_rto: Some(second * 3600),
        ..default()
    };
    assert_eq!(check(most), []);
    let huge = Config { initial_window: Some(65_536), ..default() };
    assert_eq!(check(huge), [Impossible::HugeWindow(65_536)]);
}

#[test]
fn slow_start_per_round_trip_half_as_much_again_or_doubled() {
    // 300 ms, no loss, always data: packets that leave in each round trip.
    let counts = |parameters: &Parameters| {
        let mut path = Path::new(parameters, MS * 300);
        path.run(at(300 * 7), None, |_| Fate::Arrives);
        path.per_rtt()[..7].to_vec()
    };
    // By hand from four: two acknowledgements of two, each adds one: 6; three: 9; four, and the
    // ninth waits for the next: 13 (its acknowledgement comes with the window after) …
    let rfc = counts(&rfc());
    assert_eq!(rfc[..3], [4, 6, 9]);
    // Odd ones out wait for a later acknowledgement, so single rounds scatter; four of them do not.
    let factor = (rfc[6] as f64 / rfc[2] as f64).sqrt().sqrt();
    assert!((1.45..=1.5).contains(&factor), "{rfc:?}");
    // ns-2 doubles; from four, so that nothing is left over at Ack Ratio 2.
    let ns2 =
        counts(&Parameters { initial_window_packets: Some(4), ..Parameters::of(Profile::Ns2) });
    assert_eq!(ns2, [4, 8, 16, 32, 64, 128, 256]);
}

#[test]
fn an_application_that_does_not_fill_the_window_does_not_widen_it() {
    // Ten packets a second at 300 ms are three in flight, and the initial window is four: half as
    // much again is six. ns-2 adds one for each of the 200 packets of twenty seconds.
    for (profile, windows) in [(Profile::Rfc, 6..=6), (Profile::Ns2, 180..=203)] {
        let mut path = Path::new(&Parameters::of(profile), MS * 300);
        path.run(at(20_000), Some(MS * 100), |_| Fate::Arrives);
        assert!(windows.contains(&path.sender.window()), "{}", path.sender.window());
    }
    // G.711's 50 a second need fifteen. What waits meanwhile makes the flight larger for a while,
    // and the window is never more than half above that.
    let mut path = Path::new(&rfc(), MS * 300);
    path.run(at(60_000), Some(MS * 20), |_| Fate::Arrives);
    assert!(path.most < 40, "{}", path.most);
    assert!((15..=path.most * 3 / 2).contains(&path.sender.window()), "{}", path.sender.window());
}

/// The measure of the square root law, packets a round trip times √p, over ten minutes at 100 ms;
/// one packet in 1/p is lost, or each with probability p.
fn constant_of_the_law(parameters: &Parameters, p: f64, mut dice: Option<Dice>) -> f64 {
    let mut path = Path::new(parameters, MS * 100);
    let period = (1.0 / p).round() as u64;
    let seconds = 600;
    path.run(at(seconds * 1000), None, |number| {
        let lost = match &mut dice {
            Some(dice) => dice.chance(p),
            None => number % period == period - 1,
        };
        if lost { Fate::Lost } else { Fate::Arrives }
    });
    // The first sixth is slow start's.
    let from = at(seconds * 1000 / 6);
    let packets = path.departures.iter().filter(|at| **at >= from).count() as f64;
    let rounds = (seconds * 5 / 6 * 10) as f64;
    packets / rounds * p.sqrt()
}

/// What the law gives when the rounds without growth count too: from W/2 the window grows by one a
/// round trip to W, when a packet is lost; that takes a round trip to be seen, and the round trip
/// after it adds nothing. Packets: 1/p = 3/8 W² + 5/4 W; round trips: W/2 + 2.
fn law_of_small_windows(p: f64) -> f64 {
    let window = (-1.25 + (1.25_f64 * 1.25 + 1.5 / p).sqrt()) / 0.75;
    1.0 / p / (window / 2.0 + 2.0) * p.sqrt()
}

#[test]
fn throughput_follows_the_square_root_law() {
    // One loss in each 1/p packets: √(3/2) = 1.22 packets a round trip times 1/√p (Mathis, Semke,
    // Mahdavi, Ott 1997) in the limit; halves rounded down cost the rest.
    for (p, band) in [(0.003, 0.94..1.0), (0.001, 0.96..1.0)] {
        let constant = constant_of_the_law(&rfc(), p, None);
        let of_law = constant / law_of_small_windows(p);
        assert!(band.contains(&of_law), "p = {p}: {constant:.3}, {of_law:.3} of the law");
        assert!((0.88..=1.0).contains(&(constant / 1.5_f64.sqrt())), "p = {p}: {constant:.3}");
    }
    // Independent losses: 1.31 (Ott, Kemperman, Mathis 1996).
    let constant = constant_of_the_law(&rfc(), 0.001, Some(Dice::new(1, "loss")));
    assert!((0.9..=1.1).contains(&(constant / 1.31)), "independent: {constant:.3}");
}

#[test]
fn marks_cost_what_losses_cost_and_nothing_is_lost() {
    let mut path = Path::new(&rfc(), MS * 100);
    path.run(
        at(300_000),
        None,
        |number| {
            if number % 333 == 332 { Fate::Marked } else { Fate::Arrives }
        },
    );
    let rounds = 3000.0;
    let constant = path.departures.len() as f64 / rounds / 333_f64.sqrt();
    assert!((1.10..=1.30).contains(&constant), "{constant:.3}");
    // Ack Ratio 2: an acknowledgement for two packets, and one more for each mark.
    let ratio = path.acks as f64 / path.departures.len() as f64;
    assert!((0.5..0.52).contains(&ratio), "{ratio}");
}

/// cwnd of ns-2.35's `Agent/DCCP/TCPlike` (Debian package ns2 2.35+dfsg-5, `trace cwnd_`): CBR of
/// 64 kb/s in packets of 160 B from t = 0 over one duplex link of 2 Mb/s, 300 ms, DropTail; the
/// Response comes at 0.6007 s; from there on every 1.2 s, first after 0.45 s; by `initial_ssthresh_`.
const NS2_WINDOWS: [(Option<u32>, [u64; 33]); 3] = [
    (
        Some(20),
        [
            3, 12, 21, 23, 25, 27, 29, 31, 32, 34, 36, 38, 40, 42, 44, 46, 48, 49, 51, 52, 53, 54,
            55, 56, 57, 58, 59, 60, 61, 62, 63, 64, 65,
        ],
    ),
    (
        Some(50),
        [
            3, 12, 48, 51, 53, 55, 56, 57, 58, 59, 60, 61, 62, 63, 64, 65, 66, 67, 68, 68, 69, 70,
            71, 72, 73, 74, 74, 75, 76, 77, 77, 78, 79,
        ],
    ),
    (
        None,
        [
            3, 12, 48, 192, 266, 326, 386, 446, 506, 566, 626, 686, 746, 806, 866, 926, 986, 1046,
            1106, 1166, 1226, 1286, 1346, 1406, 1466, 1526, 1586, 1646, 1706, 1766, 1826, 1886,
            1946,
        ],
    ),
];

#[test]
fn the_ns2_profile_has_the_windows_of_ns_2() {
    for (initial_ssthresh, expected) in NS2_WINDOWS {
        let config = Config { initial_ssthresh, ..Config::default() };
        let parameters = config.resolve(Profile::Ns2);
        // 160 B and their headers take 0.75 ms at 2 Mb/s, an acknowledgement less.
        let mut path = Path::new(&parameters, Duration::from_micros(601_500));
        path.waiting = 30;
        for (sample, expected) in expected.into_iter().enumerate() {
            path.run(at(1200 * sample as u64 + 450), Some(MS * 20), |_| Fate::Arrives);
            // An acknowledgement at the very instant of a sample counts on either side.
            let window = path.sender.window();
            assert!(window.abs_diff(expected) <= 1, "{initial_ssthresh:?} {sample}: {window}");
        }
    }
}

#[test]
fn the_ns2_profile_carries_under_loss_what_ns_2_carries() {
    // Data packets from 20 to 120 s over a duplex link of 100 Mb/s, 50 ms, CBR of 8 Mb/s in packets
    // of 1000 B waiting in the agent, `ErrorModel/Periodic` with this period towards the receiver.
    for (period, packets) in [(100, 10_494_u32), (333, 21_090), (1000, 36_584)] {
        let p = 1.0 / f64::from(period);
        let ns2 = f64::from(packets) / 1000.0 * p.sqrt();
        let ours = constant_of_the_law(&Parameters::of(Profile::Ns2), p, None);
        assert!((0.93..=1.02).contains(&(ours / ns2)), "{period}: {ours:.3} of {ns2:.3}");
    }
}
