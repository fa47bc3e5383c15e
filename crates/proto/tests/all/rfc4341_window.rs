//! CCID 2, clause by clause of RFC 4341 §5 (and of RFC 4340 where that binds a CCID): windows computed
//! by hand, seen as how many packets may leave and when.

use crate::ccid2_half;
use crate::ccid2_half::{Bench, MS, at, rfc, wide};
use talkspurt_proto::dccp::Options;
use talkspurt_proto::dccp::ackvec::State::{Marked, NotYet, Received};
use talkspurt_proto::dccp::ccid::{Arrival, Sender as _};
use talkspurt_proto::dccp::ccid2::{Idle, Limited, Parameters, SlowStart};
use talkspurt_proto::dccp::options::Opt;
use talkspurt_proto::packet::Ecn;
use talkspurt_proto::time::Duration;
use talkspurt_testing::dccp::with;

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
    let mut bench = Bench::full(&wide(Some(2)));
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
    let mut bench = Bench::full(&wide(Some(2)));
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
    let mut bench = Bench::full(&wide(Some(2)));
    bench.ack(3, &[(Received, 2), (NotYet, 1)]);
    bench.ack(3, &[(Received, 3)]);
    bench.ack(6, &[(Received, 6)]);
    assert_eq!(bench.state(), (10, Some(2), 4));
}

#[test]
fn section_5_losses_and_marks_of_one_window_are_one_event() {
    let mut bench = Bench::full(&wide(Some(2)));
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
        let mut bench = Bench::full(&parameters);
        bench.ack(1, &[(Marked, 1)]);
        assert_eq!(bench.state(), (cwnd, Some(ssthresh), before - 1), "from {before}");
    }
}

#[test]
fn section_5_rfc_8311_a_mark_is_congestion_whatever_the_nonce_echo() {
    let mut bench = Bench::full(&wide(Some(2)));
    let options = with(&[Opt::AckVector {
        nonce: true,
        cells: &ccid2_half::vector(&[(Received, 1), (Marked, 1)]),
    }]);
    bench.hear(2, &options);
    assert_eq!(bench.state(), (5, Some(5), 8));
}

#[test]
fn section_5_a_timeout_empties_the_pipe_and_leaves_one_packet() {
    let mut bench = Bench::full(&wide(None));
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
    // Abandoned packets have no effect when acknowledged later.
    bench.ack(11, &[(Received, 8)]);
    assert_eq!(bench.state(), (1, Some(2), 0));
}

#[test]
fn section_5_slow_start_adds_one_for_two_and_at_most_half_the_ack_ratio_an_acknowledgement() {
    let mut bench = Bench::full(&wide(None));
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
        Bench::full(&Parameters { ack_ratio: 6, ack_ratio_control: false, ..wide(None) });
    bench.ack(10, &[(Received, 10)]);
    assert_eq!(bench.sender.window(), 13);
}

#[test]
fn ns_2_slow_start_adds_one_for_each() {
    let mut bench = Bench::full(&Parameters { slow_start: SlowStart::PerPacket, ..wide(None) });
    bench.ack(2, &[(Received, 2)]);
    assert_eq!(bench.sender.window(), 12);
    bench.ack(10, &[(Received, 8)]);
    assert_eq!(bench.sender.window(), 20);
}

#[test]
fn section_5_slow_start_begins_anew_after_a_timeout() {
    let mut bench = Bench::full(&wide(None));
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
    let mut bench = Bench::full(&wide(Some(12)));
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
    let mut bench = Bench::full(&wide(Some(2)));
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
    let options = with(&[Opt::AckVector { nonce: false, cells: &[1] }]);
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
    let options = with(&[Opt::AckVector { nonce: false, cells: &[1] }]);
    bench.hear_as(1, 2, &options, Ecn::NotEct, (Some(MS * 40), None));
    // Packet 2 waited for 40 ms; it had no data, and packet 1's wait is not reported.
    assert_eq!(bench.sender.rtt(), Some(MS * 150));
}

#[test]
fn rfc_4340_section_11_4_1_a_mark_told_later_counts() {
    let mut bench = Bench::full(&wide(Some(2)));
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
    let mut bench = Bench::full(&Parameters { min_rto: MS, ..wide(Some(2)) });
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
        let mut bench = Bench::full(&wide(Some(2)));
        let options = with(&[
            Opt::AckVector { nonce: false, cells: &[1] },
            Opt::DataDropped(&[0x80 | code << 4 | 1]),
        ]);
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
    let mut bench = Bench::full(&Parameters { initial_window_packets: Some(3), ..wide(Some(2)) });
    let options = with(&[Opt::AckVector { nonce: false, cells: &[2] }, Opt::DataDropped(&[0xa2])]);
    bench.hear(3, &options);
    assert_eq!(bench.state(), (1, Some(2), 0));
}

#[test]
fn rfc_4340_section_11_7_1_both_responses_add_up() {
    let mut bench = Bench::full(&wide(Some(2)));
    let mut options = Options::default();
    let cells = ccid2_half::vector(&[(Received, 2), (Marked, 1)]);
    options.push(Opt::AckVector { nonce: false, cells: &cells });
    options.push(Opt::DataDropped(&[0xa1]));
    bench.hear(3, &options);
    // W = 10: the mark alone makes 5, the two drops alone 8; W − 5 − 2.
    assert_eq!(bench.sender.window(), 3);
}

/// §5.2: "The sender MUST exit slow start whenever it receives a relevant Data Dropped or Slow Receiver
/// option", on whatever packet: RFC 4340 §5.8 lets Slow Receiver be on a DCCP-Data too.
#[test]
fn section_5_2_slow_receiver_and_data_dropped_end_slow_start() {
    let mut bench = Bench::full(&wide(None));
    let options = with(&[Opt::SlowReceiver, Opt::AckVector { nonce: false, cells: &[1] }]);
    bench.hear(2, &options);
    assert_eq!(bench.state(), (10, Some(10), 8));

    // On a packet without an Acknowledgement Number.
    let mut bench = Bench::full(&wide(None));
    let options = with(&[Opt::SlowReceiver]);
    let arrival = Arrival {
        seq: ccid2_half::seq(1),
        data_bytes: Some(10),
        ccval: 0,
        ecn: Ecn::NotEct,
        ndp: None,
        options: &options,
    };
    bench.sender.on_arrival(bench.now, &arrival);
    assert_eq!(bench.state(), (10, Some(10), 10));

    // Data Dropped, every code: where the code lowers cwnd, slow start ends at the lowered one.
    for (code, cwnd) in [(0_u8, 10), (1, 10), (2, 8), (3, 5), (4, 5), (7, 5)] {
        let mut bench = Bench::full(&wide(None));
        let options = with(&[
            Opt::AckVector { nonce: false, cells: &[1] },
            Opt::DataDropped(&[0x80 | code << 4 | 1]),
        ]);
        bench.hear(2, &options);
        let (window, threshold, _) = bench.state();
        assert!(threshold.is_some_and(|it| it <= window), "code {code}: {threshold:?}");
        assert!(window <= cwnd + 1 && window >= cwnd, "code {code}: {window}");
    }

    // Packets in Normal Blocks are delivered, and packets never sent are not relevant.
    let mut bench = Bench::full(&wide(None));
    let options = with(&[Opt::AckVector { nonce: false, cells: &[1] }, Opt::DataDropped(&[0x01])]);
    bench.hear(2, &options);
    assert_eq!(bench.sender.threshold(), None);
}

/// §5.2: "reduced by one for each packet newly acknowledged as Drop Code 2": the option is repeated
/// until its acknowledgement is acknowledged (RFC 4340 §11.7), and costs nothing more then.
#[test]
fn section_5_2_repeated_data_dropped_costs_once() {
    let mut bench = Bench::full(&wide(Some(2)));
    let drops = |ack: u64, block: &[u8]| {
        let mut options = Options::default();
        // 1 is missing all the time, so that the packets behind it stay remembered.
        let cells = ccid2_half::vector(&[(Received, (ack - 1) as u8), (NotYet, 1)]);
        options.push(Opt::AckVector { nonce: false, cells: &cells });
        options.push(Opt::DataDropped(block));
        options
    };
    // 2 was dropped.
    bench.hear(2, &drops(2, &[0xa0]));
    assert_eq!(bench.sender.window(), 9);
    bench.hear(3, &drops(3, &[0x00, 0xa0]));
    assert_eq!(bench.sender.window(), 9);
}

#[test]
fn rfc_4340_section_11_6_no_growth_for_a_round_trip_after_slow_receiver() {
    let mut bench = Bench::full(&wide(None));
    bench.pass(100);
    bench.ack(2, &[(Received, 2)]);
    assert_eq!(bench.sender.window(), 11);
    let options = with(&[Opt::SlowReceiver, Opt::AckVector { nonce: false, cells: &[1] }]);
    bench.hear(4, &options);
    bench.fill();
    bench.pass(99);
    bench.ack(14, &[(Received, 10)]);
    assert_eq!(bench.sender.window(), 11);
    // Then by one for each window acknowledged: slow start is over.
    bench.pass(1);
    bench.fill();
    bench.ack(24, &[(Received, 10)]);
    assert_eq!(bench.sender.window(), 11);
    bench.fill();
    bench.ack(25, &[(Received, 1)]);
    assert_eq!(bench.sender.window(), 12);
}
