//! RFC 5622 (CCID 4) and what it takes from RFC 4828 (TFRC-SP): differences from CCID 3. Each half
//! alone, with handmade packets; numbers are computed by hand.

use crate::rate_half::{ReceiverBench, SenderBench, at, ms, option};
use talkspurt_proto::dccp::Options;
use talkspurt_proto::dccp::ccid::Sender as _;
use talkspurt_proto::dccp::ccid3::options as codec;
use talkspurt_proto::dccp::options::Opt;
use talkspurt_proto::probe::{Gauge, RxError};
use talkspurt_proto::profile::Profile;
use talkspurt_proto::rate::{Kind, Permit, equation};

fn receiver() -> ReceiverBench {
    ReceiverBench::new(Profile::Rfc, Kind::Ccid4)
}
fn sender() -> SenderBench {
    SenderBench::new(Profile::Rfc, Kind::Ccid4)
}

#[test]
fn section_8_7_dropped_packets_is_three_bytes_for_each_interval_latest_first() {
    let mut out = Options::default();
    codec::push_dropped_packets(&mut out, [2, 0x01_0203].into_iter());
    assert_eq!(out.as_bytes(), [195, 8, 0, 0, 2, 1, 2, 3]);
    assert_eq!(codec::read(&out).unwrap().drops, [2, 0x01_0203]);
}

#[test]
fn section_8_7_counts_cut_short_make_the_feedback_garbage() {
    let mut bench = sender();
    bench.send(ms(0), 160);
    let rate = [0, 0, 0x10, 0];
    bench.ack(
        ms(100),
        0,
        &[Opt::Ccid { kind: 194, value: &rate }, Opt::Ccid { kind: 195, value: &[0, 0] }],
    );
    assert_eq!(bench.notes.rx_error, [RxError::Malformed]);
}

#[test]
fn section_8_7_the_receiver_counts_lost_data_packets_of_each_interval() {
    let mut bench = receiver();
    // 10 and 12 are lost within one round trip, 40 much later.
    bench.data(ms(0), 0, 0);
    bench.report(ms(0));
    for seq in (1..45).filter(|seq| ![10, 12, 40].contains(seq)) {
        bench.data(ms(seq), seq, ((seq / 4) % 16) as u8);
    }
    let report = bench.report(ms(45)).unwrap();
    assert_eq!(option(&report, 195), Some(vec![0, 0, 1, 0, 0, 2, 0, 0, 0]));
    // Thirteen packets had come in 200 ms when the first was found lost; with 36 bytes of headers each.
    let first = 1.0 / equation::loss_event_rate(1460.0, 0.2, 13.0 * 136.0 / 0.2);
    #[rustfmt::skip]
    let intervals = vec![
        0,
        0, 0, 4, 0, 0, 1, 0, 0, 5,
        0, 0, 27, 0, 0, 3, 0, 0, 30,
        0, 0, 10, 0, 0, 0, 0, 0, first.round() as u8,
    ];
    assert_eq!(option(&report, 193), Some(intervals));
}

#[test]
fn ccid_3_does_not_tell_dropped_packets() {
    let mut bench = ReceiverBench::new(Profile::Rfc, Kind::Ccid3);
    bench.data(ms(0), 0, 0);
    assert_eq!(option(&bench.report(ms(0)).unwrap(), 195), None);
}

#[test]
fn rfc_4828_section_4_3_packets_stand_at_least_ten_milliseconds_apart() {
    let mut bench = sender();
    bench.sender.set_initial_rtt(at(ms(0)), ms(10), &mut bench.notes);
    bench.send(ms(0), 160);
    // Four packets of 1460 bytes in 10 ms would be 146 of 40 bytes: the rate allows more.
    assert_eq!(bench.sender.permit(at(ms(5))), Permit::At(at(ms(10))));
    assert_eq!(bench.sender.permit(at(ms(10))), Permit::Now);
}

/// The allowed rate counts each packet with its own size (RFC 4828 §4.2), and so does what a slow receiver
/// holds (RFC 4342 §5.2): 4380 bytes in a round trip of 1 s, of which data are 160/196, are 22.3 packets.
#[test]
fn rfc_4342_section_5_2_a_slow_receiver_holds_the_rate_of_small_packets() {
    let mut bench = sender();
    bench.sender.set_initial_rtt(at(ms(0)), ms(1000), &mut bench.notes);
    bench.send(ms(0), 160);
    assert_eq!(bench.sender.packets_per_rtt(), 23);
    let Permit::At(next) = bench.sender.permit(at(ms(1))) else { panic!("too soon") };
    assert_eq!(next.as_nanos() / 1_000_000, 44);
    bench.ack(ms(10), 0, &[Opt::SlowReceiver]);
    let Permit::At(held) = bench.sender.permit(at(ms(10))) else { panic!("too soon") };
    assert!(held.saturating_since(next) < ms(1) && next.saturating_since(held) < ms(1), "{held:?}");
}

#[test]
fn rfc_4828_section_4_2_the_rate_is_that_of_1460_byte_packets_less_the_headers_share() {
    let mut bench = sender();
    let count = bench.fill(1000);
    // p = 0.01 as in CCID 3's test; R = 1100 − 999 ms.
    let mut value = vec![0];
    for _ in 0..9 {
        value.extend_from_slice(&[0, 0, 98, 0, 0, 2, 0, 0, 100]);
    }
    let rate = 1_000_000_u32.to_be_bytes();
    bench.ack(
        ms(1100),
        count - 1,
        &[Opt::Ccid { kind: 194, value: &rate }, Opt::Ccid { kind: 193, value: &value }],
    );
    // X = 1460 / (0.101 · (√(2·0.01/3) + 12 · √(3·0.01/8) · 0.01 · (1 + 32·0.0001)))
    //   = 1460 / (0.101 · (0.0816497 + 0.0073720)) = 162 382 B/s
    // RFC 5622 §5: packets of 100 bytes have 136 with headers: 100/136 of it.
    let x = bench.notes.last(Gauge::EquationRate).unwrap() / 8.0;
    assert!((x - 162_382.0 * 100.0 / 136.0).abs() < 20.0, "{x}");
    let sent = bench.sender.machine();
    let effective = talkspurt_proto::rate::RateControl::rate(sent).as_bps() as f64 / 8.0;
    assert!(effective <= x * 1.001, "{effective} of {x}");
}

#[test]
fn rfc_4828_section_4_4_losses_of_a_short_interval_count_each() {
    // Packets of 1 ms, R = 101 ms: an interval of 100 packets is shorter than two round trips, one
    // of 400 is not. Each lost 10.
    let p = |length: u16, with_drops: bool| {
        let mut bench = sender();
        let count = bench.fill(4000);
        let rate = 5000_u32.to_be_bytes();
        let receive_rate = Opt::Ccid { kind: 194, value: &rate };
        // A round-trip time first.
        bench.ack(ms(4100), count - 1, &[receive_rate]);
        let length = length.to_be_bytes();
        let (mut intervals, mut drops) = (vec![0], Vec::new());
        for _ in 0..9 {
            intervals.extend_from_slice(&[0, 0, 0, 0, length[0], length[1]]);
            intervals.extend_from_slice(&[0, length[0], length[1]]);
            drops.extend_from_slice(&[0, 0, 10]);
        }
        let mut list = vec![receive_rate, Opt::Ccid { kind: 193, value: &intervals }];
        if with_drops {
            list.push(Opt::Ccid { kind: 195, value: &drops });
        }
        bench.ack(ms(4101), count - 1, &list);
        bench.notes.last(Gauge::LossEventRate).unwrap()
    };
    let near = |p: f64, expected: f64| assert!((p / expected - 1.0).abs() < 1e-9, "{p} {expected}");
    near(p(100, true), 0.1);
    // §8.7: without Drop Counts all of the Loss Length counts, as it does where a count exceeds it.
    near(p(100, false), 1.0);
    near(p(400, true), 0.0025);
}

#[test]
fn section_8_7_dropped_packets_alone_is_no_feedback() {
    let mut bench = sender();
    bench.send(ms(0), 160);
    bench.ack(ms(100), 0, &[Opt::Ccid { kind: 195, value: &[0, 0, 1] }]);
    assert_eq!(bench.notes.rx_error, []);
    assert_eq!(bench.sender.rtt(), None);
}
