//! RFC 4342 (CCID 3), clause by clause: the sending half alone, its window counter (§8.1) and what it
//! makes of feedback (§5, §6.1). RFC 6323's RTT Estimate stands here
//! too. Numbers are computed by hand.

use crate::rate_half::{ReceiverBench, SenderBench, at, ms, options};
use talkspurt_proto::dccp::ccid::Receiver as _;
use talkspurt_proto::dccp::ccid::{Arrival, Sender as _};
use talkspurt_proto::dccp::ccid3::options::{self as codec};
use talkspurt_proto::dccp::options::Opt;
use talkspurt_proto::dccp::seqno::SeqNo;
use talkspurt_proto::packet::Ecn;
use talkspurt_proto::probe::{Gauge, RxError};
use talkspurt_proto::profile::Profile;
use talkspurt_proto::rate::{Config, Kind, Permit};
use talkspurt_proto::time::Duration;

fn rfc_sender() -> SenderBench {
    SenderBench::new(Profile::Rfc, Kind::Ccid3)
}

#[test]
fn section_8_1_the_counter_grows_by_quarter_round_trips_and_by_at_most_five() {
    let mut bench = rfc_sender();
    assert_eq!(bench.send(ms(0), 100), 0);
    // Until there is a round-trip time it stands.
    assert_eq!(bench.send(ms(40), 100), 0);
    // R = 80 ms at t = 80 ms, and a packet counted 0 is acknowledged: at least 4 from now on.
    bench.feedback(ms(80), 0, 1000);
    assert_eq!(bench.sender.rtt(), Some(ms(80)));
    assert_eq!(bench.send(ms(80), 100), 4);
    assert_eq!(bench.send(ms(99), 100), 4);
    // A quarter is 20 ms.
    assert_eq!(bench.send(ms(100), 100), 5);
    assert_eq!(bench.send(ms(159), 100), 7);
    // Ten quarters later: five.
    assert_eq!(bench.send(ms(359), 100), 12);
    assert_eq!(bench.send(ms(759), 100), 1, "17 mod 16");
}

#[test]
fn section_8_1_an_acknowledgement_moves_the_counter_four_beyond_what_it_acknowledges() {
    let mut bench = rfc_sender();
    bench.send(ms(0), 100);
    bench.feedback(ms(80), 0, 1000);
    let second = bench.sent();
    assert_eq!(bench.send(ms(80), 100), 4);
    // Half a round trip later, by the clock, the counter would be 6.
    bench.feedback(ms(120), second, 1000);
    assert_eq!(bench.send(ms(120), 100), 8);
    // A SHOULD, and a knob: the clock alone.
    let config = Config { counter_follows_acks: Some(false), ..Config::default() };
    let mut bench = SenderBench::with(&config, Profile::Rfc, Kind::Ccid3);
    bench.send(ms(0), 100);
    bench.feedback(ms(80), 0, 1000);
    let second = bench.sent();
    let count = bench.send(ms(80), 100);
    bench.feedback(ms(120), second, 1000);
    assert_eq!(bench.send(ms(120), 100), count + 2);
}

#[test]
fn section_8_1_packets_without_data_do_not_move_the_counter() {
    let mut bench = rfc_sender();
    bench.send(ms(0), 100);
    bench.feedback(ms(80), 0, 1000);
    assert_eq!(bench.send(ms(80), 100), 4);
    bench.send_bare(ms(180));
    bench.send_bare(ms(280));
    // Ten quarters since the last data packet are five still.
    assert_eq!(bench.send(ms(280), 100), 9);
}

#[test]
fn section_6_the_sender_takes_the_elapsed_time_off_its_round_trip() {
    let mut bench = rfc_sender();
    bench.send(ms(0), 100);
    bench.elapsed = Some(ms(30));
    bench.feedback(ms(100), 0, 1000);
    assert_eq!(bench.sender.rtt(), Some(ms(70)));
}

#[test]
fn section_6_1_the_sender_computes_the_rate_from_the_intervals() {
    let mut bench = rfc_sender();
    let count = bench.fill(1000);
    // An open interval of 60 and eight closed ones of 100: I_mean = 100, p = 0.01. The open one,
    // shorter, would only lower the mean and does not count (RFC 5348 §5.4).
    let mut value = vec![0];
    value.extend_from_slice(&[0, 0, 59, 0, 0, 1, 0, 0, 60]);
    for _ in 0..8 {
        value.extend_from_slice(&[0, 0, 98, 0, 0, 2, 0, 0, 100]);
    }
    bench.ack(ms(1100), count - 1, &[receive_rate(&5000), Opt::Ccid { kind: 193, value: &value }]);
    let p = bench.notes.last(Gauge::LossEventRate).unwrap();
    assert!((p - 0.01).abs() < 1e-12, "{p}");
}

#[test]
fn section_6_1_intervals_count_no_more_packets_than_were_sent() {
    let mut bench = rfc_sender();
    let count = bench.fill(100);
    // A receiver that claims an interval of 65536 packets where 100 were sent.
    let value = [0, 0, 0, 0, 0, 0, 1, 0, 0, 1, 1, 0, 0, 0, 0, 1, 1, 0, 0];
    bench.ack(ms(1100), count - 1, &[receive_rate(&5000), Opt::Ccid { kind: 193, value: &value }]);
    let p = bench.notes.last(Gauge::LossEventRate).unwrap();
    assert!(p >= 1.0 / 100.0, "{p}");
}

#[test]
fn feedback_that_was_overtaken_says_nothing_and_one_for_nothing_is_garbage() {
    let mut bench = rfc_sender();
    bench.send(ms(0), 100);
    let rate = [0, 0, 0x10, 0];
    bench.ack_numbered(ms(100), 7, 0, &[Opt::Ccid { kind: 194, value: &rate }]);
    let notes = bench.notes.gauges.len();
    bench.ack_numbered(ms(160), 6, 0, &[Opt::Ccid { kind: 194, value: &rate }]);
    assert_eq!(bench.notes.gauges.len(), notes);
    assert_eq!(bench.sender.rtt(), Some(ms(100)));

    let mut fresh = rfc_sender();
    fresh.ack(ms(100), 5, &[Opt::Ccid { kind: 194, value: &rate }]);
    assert_eq!(fresh.notes.rx_error, [RxError::BadAck]);
}

#[test]
fn the_sequence_window_hears_of_the_packets_of_a_round_trip() {
    assert_eq!(paced().sender.packets_per_rtt(), 4);
    assert_eq!(rfc_sender().sender.packets_per_rtt(), 1, "before there is a round trip");
}

/// R = 100 ms, and four packets of 1000 bytes in it: one each 25 ms, 200 ms after the start.
fn paced() -> SenderBench {
    let mut bench = rfc_sender();
    bench.send(ms(0), 1000);
    bench.feedback(ms(100), 0, 0);
    bench.send(ms(175), 1000);
    bench.send(ms(200), 1000);
    assert_eq!(bench.sender.permit(at(ms(200))), Permit::At(at(ms(225))));
    bench
}

#[test]
fn section_5_2_a_slow_receiver_holds_the_rate_for_a_round_trip() {
    let rate = 1_000_000_u32.to_be_bytes();
    let rate = Opt::Ccid { kind: 194, value: &rate };
    // Without a word of it, slow start doubles the rate.
    // Both tell again of the first packet, which came 110 ms ago.
    let mut free = paced();
    free.elapsed = Some(ms(110));
    free.ack(ms(210), 0, &[rate]);
    assert!(matches!(free.sender.permit(at(ms(210))), Permit::At(when) if when < at(ms(215))));
    let mut bench = paced();
    bench.elapsed = Some(ms(110));
    bench.ack(ms(210), 0, &[rate, Opt::SlowReceiver]);
    let Permit::At(when) = bench.sender.permit(at(ms(210))) else { panic!("not yet") };
    assert!(when > at(ms(224)) && when < at(ms(226)), "{when:?}");
    // A round trip later it is over.
    bench.send(ms(300), 1000);
    let Permit::At(when) = bench.sender.permit(at(ms(311))) else { panic!("not yet") };
    assert!(when < at(ms(315)), "{when:?}");
}

/// RFC 4340 §11.6: "one round-trip time after seeing a packet with a Slow Receiver option", and a
/// DCCP-Data, which acknowledges nothing, is a packet.
#[test]
fn rfc_4340_section_11_6_slow_receiver_on_data_holds_the_rate_for_a_round_trip() {
    let next = |list: &[Opt<'_>]| {
        let mut bench = SenderBench::new(Profile::Rfc, Kind::Ccid3);
        bench.send(ms(0), 1000);
        bench.feedback(ms(100), 0, 0);
        bench.send(ms(175), 1000);
        bench.send(ms(200), 1000);
        let Permit::At(before) = bench.sender.permit(at(ms(200))) else { panic!("not yet") };
        let options = options(list);
        let data = Arrival {
            seq: SeqNo::first(0),
            data_bytes: Some(100),
            ccval: 0,
            ecn: Ecn::NotEct,
            ndp: None,
            options: &options,
        };
        bench.sender.on_arrival(at(ms(205)), &data);
        let rate = 1_000_000_u32.to_be_bytes();
        bench.elapsed = Some(ms(110));
        bench.ack(ms(210), 0, &[Opt::Ccid { kind: 194, value: &rate }]);
        let Permit::At(after) = bench.sender.permit(at(ms(210))) else { panic!("not yet") };
        (before, after)
    };
    let (before, after) = next(&[]);
    assert!(after + ms(5) < before, "slow start raises the rate");
    let (before, after) = next(&[Opt::SlowReceiver]);
    assert!(after + ms(1) > before && after < before + ms(1), "{before:?} {after:?}");
}

#[test]
fn section_5_2_a_full_receive_buffer_takes_a_packet_a_round_trip_off_the_rate_for_each() {
    // Drop code 2 for one packet (run length 0), which leaves three in a round trip.
    for (blocks, interval) in [(&[0xa0][..], 33), (&[0xa1], 50), (&[0xaf], 100), (&[0xb0], 0)] {
        let mut bench = paced();
        bench.ack(ms(201), 2, &[Opt::DataDropped(blocks)]);
        let Permit::At(when) = bench.sender.permit(at(ms(201))) else { panic!("not yet") };
        let waits = when.saturating_since(at(ms(200))).as_nanos() / 1_000_000;
        assert_eq!(waits, interval.max(25), "{blocks:x?}");
        // Told again, it is no news.
        bench.send(ms(290), 1000);
        bench.ack(ms(302), 2, &[Opt::DataDropped(blocks)]);
        let Permit::At(when) = bench.sender.permit(at(ms(302))) else { panic!("not yet") };
        assert_eq!(when, at(ms(315)), "{blocks:x?}");
    }
}

/// A Slow Receiver option asks for no increase; it does not end what Drop Code 2 asked for.
#[test]
fn section_5_2_a_slow_receiver_does_not_undo_drop_code_2() {
    let mut bench = paced();
    bench.ack(ms(201), 2, &[Opt::DataDropped(&[0xa1])]);
    assert_eq!(bench.sender.permit(at(ms(201))), Permit::At(at(ms(250))));
    bench.ack(ms(205), 2, &[Opt::SlowReceiver]);
    assert_eq!(bench.sender.permit(at(ms(205))), Permit::At(at(ms(250))));
}

/// A sender acknowledges acknowledgements that tell of drops about once a round trip, so that the receiver
/// may forget them.
#[test]
fn section_6_3_acknowledgements_with_data_dropped_are_acknowledged() {
    let mut bench = paced();
    let owed = |bench: &mut SenderBench, since: u64| {
        (0..8)
            .map(|number| {
                let owes = bench.sender.owes_ack();
                bench.send(ms(since + 25 * number), 1000);
                owes
            })
            .collect::<Vec<_>>()
    };
    assert_eq!(owed(&mut bench, 225), [false; 8]);
    bench.ack(ms(430), 2, &[Opt::DataDropped(&[0xa0])]);
    let packets = bench.sender.packets_per_rtt() as usize;
    assert!((3..=4).contains(&packets), "{packets}");
    assert_eq!(owed(&mut bench, 431).iter().filter(|owes| **owes).count(), 1);
    assert_eq!(owed(&mut bench, 700), [false; 8]);
}

#[test]
fn drop_code_1_stops_the_sender() {
    let mut bench = paced();
    // 0x90: code 1, of one packet; of one that was never sent it says nothing.
    bench.ack(ms(201), 0, &[Opt::DataDropped(&[0x00, 0x90])]);
    assert_ne!(bench.sender.permit(at(ms(201))), Permit::Blocked);
    bench.ack(ms(202), 2, &[Opt::DataDropped(&[0x90])]);
    assert_eq!(bench.sender.permit(at(ms(202))), Permit::Blocked);
    assert_eq!(bench.sender.permit(at(ms(5000))), Permit::Blocked);
}

/// RFC 4340 §11.7.2: what was dropped as corrupt (code 3), or delivered corrupt (7), counts as
/// marked, whatever the receiver's own intervals say: 80 packets, of which the 41st begins an event.
#[test]
fn drop_codes_3_and_7_begin_loss_events() {
    let intervals = |lossless: u8, data: u8| [0, 0, 0, lossless, 0, 0, 0, 0, 0, data];
    for (code, marked) in [(0xb0, true), (0xf0, true), (0x80, false)] {
        let mut bench = rfc_sender();
        bench.fill(80);
        // Packet 79 is acknowledged; 38 before the 41st from the newest: 0x26 is a run of 39.
        let blocks = [0x26, code];
        let all = intervals(80, 80);
        let rate = [0, 1, 0x86, 0xa0];
        let list = [
            Opt::DataDropped(&blocks),
            Opt::Ccid { kind: 194, value: &rate },
            Opt::Ccid { kind: 193, value: &all },
        ];
        bench.ack(ms(100), 79, &list);
        let p = bench.notes.last(Gauge::LossEventRate).expect("a report");
        assert_eq!(p > 0.0, marked, "{code:x}: {p}");
        // The receiver of this project counts it itself, as the event that it is: the rate is that of
        // its intervals and not of one loss more.
        if marked {
            let value = [&[0][..], &[0, 0, 39, 0, 0, 1, 0, 0, 40], &[0, 0, 40, 0, 0, 0, 0, 0, 40]];
            let value = value.concat();
            let list = [
                Opt::DataDropped(&blocks),
                Opt::Ccid { kind: 194, value: &rate },
                Opt::Ccid { kind: 193, value: &value },
            ];
            bench.ack(ms(101), 79, &list);
            assert_eq!(bench.notes.last(Gauge::LossEventRate), Some(p), "counted once");
        }
    }
}

fn receive_rate(bytes_per_second: &'static u16) -> Opt<'static> {
    // Four bytes for a number of two.
    let bytes: &'static [u8] =
        Box::leak([[0, 0], bytes_per_second.to_be_bytes()].concat().into_boxed_slice());
    Opt::Ccid { kind: 194, value: bytes }
}

#[test]
fn an_option_of_impossible_length_or_content_makes_the_feedback_garbage() {
    // Receive Rate of three bytes; intervals cut short; more data packets than packets.
    let bad: [(u8, &[u8]); 4] = [
        (194, &[0, 0, 1]),
        (192, &[1]),
        (193, &[0, 0, 0, 1]),
        (193, &[0, 0, 0, 1, 0, 0, 1, 0, 0, 3]),
    ];
    for (kind, value) in bad {
        let mut bench = rfc_sender();
        bench.send(ms(0), 100);
        let good = [0, 0, 0x10, 0];
        bench.ack(ms(100), 0, &[Opt::Ccid { kind: 194, value: &good }, Opt::Ccid { kind, value }]);
        assert_eq!(bench.notes.rx_error, [RxError::Malformed], "{kind} {value:?}");
        assert_eq!(bench.sender.rtt(), None, "nothing of it is used");
    }
}

#[test]
fn rfc_6323_the_sender_tells_its_round_trip_and_the_receiver_believes_it() {
    let mut bench = rfc_sender();
    bench.sender.agree(false, true);
    bench.send(ms(0), 100);
    assert_eq!(bench.options(ms(0)).as_bytes(), [128, 3, 0], "nothing known yet");
    bench.feedback(ms(100), 0, 1000);
    // 100 000 µs = 0x0186a0
    let told = bench.options(ms(100));
    assert_eq!(told.as_bytes(), [128, 5, 0x01, 0x86, 0xa0]);

    let mut receiver = ReceiverBench::new(Profile::Rfc, Kind::Ccid3);
    receiver.set_rtt(ms(20));
    receiver.receiver.agree(false, true);
    assert_eq!(receiver.receiver.machine().rtt(), Some(ms(500)), "RFC 6323 §3.4");
    receiver.data_with(ms(0), 0, 0, |packet| packet.options = &told);
    assert_eq!(receiver.receiver.machine().rtt(), Some(ms(100)));
    receiver.set_rtt(ms(20));
    assert_eq!(receiver.receiver.machine().rtt(), Some(ms(100)), "the sender's word stands");
    // 0 says that there is none (yet).
    let none = options(&[Opt::Ccid { kind: 128, value: &[0, 0, 0] }]);
    receiver.data_with(ms(1), 1, 0, |packet| packet.options = &none);
    assert_eq!(receiver.receiver.machine().rtt(), Some(ms(100)));
    assert_eq!(codec::rtt_estimate(&none), Some(codec::RttEstimate::NoNumber));
    let short = options(&[Opt::Ccid { kind: 128, value: &[0x01, 0xf4] }]);
    assert_eq!(
        codec::rtt_estimate(&short),
        Some(codec::RttEstimate::Number(Duration::from_micros(500)))
    );
}
