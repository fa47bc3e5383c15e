//! RFC 5348, TCP Friendly Rate Control: the equation (§3) and the sender (§4, §8), a test for each
//! clause claimed, against hand computation; and what follows for two studies.

use crate::rate_loop::*;
use proptest::prelude::*;
use talkspurt_proto::probe::Gauge;
use talkspurt_proto::profile::Profile;
use talkspurt_proto::rate::{
    Arrival, Config, Kind, Parameters, Permit, RateControl, Receiver, Sender, equation,
};
use talkspurt_proto::time::{Duration, Instant};

const RTT: Duration = ms(100);

// §3.1

/// The number the study prints: s = 1400, p = 0.2 %, R = 0.4 s: 753.25 kb/s.
#[test]
fn section_3_1_closed_form() {
    let kilobits = equation::throughput(1400.0, 0.4, 0.002) * 8.0 / 1000.0;
    assert!((kilobits - 753.25).abs() < 0.005, "{kilobits}");
    // By hand, p = 1: √(2/3) + 12·√(3/8)·33 = 0.816497 + 242.499… = 243.3153…; 1000/(0.1 · that).
    let x = equation::throughput(1000.0, 0.1, 1.0);
    let by_hand = 1000.0 / (0.1 * (0.816_496_580_9 + 396.0 * 0.612_372_435_7));
    assert!((x - by_hand).abs() < 1e-6, "{x} {by_hand}");
    // Small p: the square root alone, X = s/R · √(3/2p).
    let square_root = 1000.0 / 0.1 * (1.5_f64 / 1e-8).sqrt();
    let ratio = equation::throughput(1000.0, 0.1, 1e-8) / square_root;
    assert!((ratio - 1.0).abs() < 1e-6, "{ratio}");
}

proptest! {
    /// X falls with p and R and grows with s, over the whole range.
    #[test]
    fn section_3_1_is_monotone(s in 1.0..65_535.0_f64, r in 1e-4..10.0_f64, e in -8.0..0.0_f64) {
        let p = libm::pow(10.0, e);
        let x = equation::throughput(s, r, p);
        prop_assert!(x > equation::throughput(s, r, (p * 1.01).min(2.0)));
        prop_assert!(x > equation::throughput(s, r * 1.01, p));
        prop_assert!(x < equation::throughput(s * 1.01, r, p));
    }

    /// §6.3.1: the inverse gives back p.
    #[test]
    fn section_6_3_1_inverse(s in 1.0..65_535.0_f64, r in 1e-4..10.0_f64, e in -8.0..0.0_f64) {
        let p = libm::pow(10.0, e);
        let back = equation::loss_event_rate(s, r, equation::throughput(s, r, p));
        prop_assert!((back / p - 1.0).abs() < 1e-9, "{} {}", p, back);
    }
}

// §4.1

/// Without a nominal size, s is the mean of what is sent.
#[test]
fn section_4_1_segment_size_is_a_mean() {
    let mut sender = Sender::new(at(0), &rfc(Kind::Tfrc));
    sender.on_sent(at(0), 200);
    same(sender.segment_size(), 200.0);
    // 0.9 · 200 + 0.1 · 300
    sender.on_sent(at(1000), 300);
    same(sender.segment_size(), 210.0);
}

// §4.2

/// One packet per second until the round-trip time is known.
#[test]
fn section_4_2_one_packet_per_second() {
    let mut alone = Alone::new(&plain(), 1000);
    assert_eq!(alone.sender.permit(at(1), 1000), Permit::At(at(1000)));
    assert_eq!(alone.send_until(at(1999)), 1);
    assert_eq!(alone.sender.deadline(), Some(at(2000)));
}

/// The first feedback sets X = W_init/R, W_init = min(4s, max(2s, 4380)); the packet then waiting
/// leaves by the new rate.
#[test]
fn section_4_2_initial_rate() {
    for (s, window) in [(160, 640.0), (1000, 4000.0), (1400, 4380.0), (3000, 6000.0)] {
        let parameters = rfc(Kind::Tfrc);
        let alone = Alone::started(&parameters, s, RTT);
        same(alone.rate(), window / 0.1);
    }
    let mut alone = Alone::started(&plain(), 1000, RTT);
    assert_eq!(alone.sender.permit(alone.now, 1000), Permit::Now);
}

/// A round-trip time from the handshake serves as well.
#[test]
fn section_4_2_round_trip_of_the_handshake() {
    let mut sender = Sender::new(at(0), &rfc(Kind::Ccid3));
    sender.set_initial_rtt(at(0), RTT, &mut ());
    sender.on_sent(at(0), 160);
    same(sender.allowed_rate(), 6400.0);
    assert_eq!(sender.permit(at(0), 160), Permit::At(at(25)));
}

// §4.3

/// Step 2: R = 0.9 R + 0.1 R_sample.
#[test]
fn section_4_3_step_2_mean_round_trip() {
    let mut alone = Alone::started(&plain(), 1000, RTT);
    alone.report(at(300), ms(200), 10_000, 0.0);
    assert_eq!(alone.sender.rtt(), Some(ms(110)));
    assert_eq!(alone.notes.last(Gauge::Srtt), Some(0.9 * 0.1 + (1.0 - 0.9) * 0.2));
}

/// Step 4, slow start: X doubles once in a round trip, within twice the receive rate.
#[test]
fn section_4_3_step_4_slow_start() {
    let mut alone = Alone::started(&plain(), 1000, RTT);
    same(alone.rate(), 40_000.0);
    // Infinity is in the set for two round trips: only doubling bounds X.
    alone.send_until(at(200));
    alone.report(at(200), RTT, 1_000_000, 0.0);
    same(alone.rate(), 80_000.0);
    // Not a second time within a round trip.
    alone.report(at(250), RTT, 1_000_000, 0.0);
    same(alone.rate(), 80_000.0);
    alone.send_until(at(300));
    alone.report(at(300), RTT, 1_000_000, 0.0);
    same(alone.rate(), 160_000.0);
}

/// Step 4: recv_limit is twice the largest receive rate of two round trips, and older ones leave.
#[test]
fn section_4_3_step_4_receive_limit() {
    let mut alone = Alone::started(&plain(), 1000, RTT);
    // Infinity is as old as the connection and leaves after 2R.
    for (now, receive_rate, x) in [
        (200, 30_000, 80_000.0),
        (300, 30_000, 60_000.0),
        // {30, 28}, then {28, 10}: what is older than 200 ms leaves.
        (450, 28_000, 60_000.0),
        (600, 10_000, 56_000.0),
    ] {
        alone.send_until(at(now));
        alone.report(at(now), RTT, receive_rate, 0.0);
        same(alone.rate(), x);
    }
    // Never below the initial rate in slow start.
    alone.send_until(at(1000));
    alone.report(at(1000), RTT, 5000, 0.0);
    same(alone.rate(), 40_000.0);
}

/// Step 4 with p > 0: X = max(min(X_Bps, recv_limit), s/t_mbi).
#[test]
fn section_4_3_step_4_congestion_avoidance() {
    let mut alone = Alone::started(&plain(), 1000, RTT).until(at(400));
    alone.report(at(400), RTT, 1_000_000, 0.01);
    // √(0.02/3) = 0.0816497; 12 · √0.00375 · 0.01 · 1.0032 = 0.00737206; 10 000/0.0890217.
    let x = 10_000.0 / (0.081_649_658 + 0.007_372_06);
    assert!((alone.rate() / x - 1.0).abs() < 1e-5, "{} {x}", alone.rate());
    assert!((alone.notes.last(Gauge::EquationRate).unwrap() / (8.0 * x) - 1.0).abs() < 1e-5);
    assert_eq!(alone.notes.last(Gauge::LossEventRate), Some(0.01));
    // The receive rate bounds it when the larger has left the set, and s/64 s from below.
    alone.send_until(at(700));
    alone.report(at(700), RTT, 20_000, 0.01);
    same(alone.rate(), 40_000.0);
    alone.send_until(at(1000));
    alone.report(at(1000), RTT, 1, 0.01);
    same(alone.rate(), 1000.0 / 64.0);
}

/// Step 4: in a data-limited interval the set keeps its largest entry for as long as it lasts.
#[test]
fn section_4_3_step_4_data_limited() {
    let mut alone = Alone::started(&plain(), 1000, RTT).until(at(400));
    alone.report(at(400), RTT, 100_000, 0.0001);
    for now in [600, 900, 1200, 1500] {
        alone.now = at(now - 150);
        alone.send_late();
        alone.report(at(now), RTT, 10_000, 0.0001);
        same(alone.rate(), 200_000.0);
    }
    // Limited no more: the set forgets.
    alone.send_until(at(2000));
    alone.report(at(2000), RTT, 10_000, 0.0001);
    same(alone.rate(), 20_000.0);
}

/// Step 4: loss in a data-limited interval halves the set and lets X reach only it, 0.85 X_recv at
/// least.
#[test]
fn section_4_3_step_4_loss_while_data_limited() {
    for (receive_rate, x) in [(10_000, 50_000.0), (80_000, 68_000.0)] {
        let mut alone = Alone::started(&plain(), 1000, RTT).until(at(400));
        alone.report(at(400), RTT, 100_000, 0.0001);
        alone.now = at(450);
        alone.send_late();
        alone.report(at(600), RTT, receive_rate, 0.0002);
        // max(100 000/2, 0.85 · X_recv)
        same(alone.rate(), x);
    }
}

/// Step 6: the timer is set to max(4R, 2s/X).
#[test]
fn section_4_3_step_6_timer() {
    let mut alone = Alone::started(&plain(), 1000, RTT);
    assert_eq!(alone.sender.deadline(), Some(at(100 + 400)));
    alone.send_until(at(400));
    alone.report(at(400), RTT, 1000, 0.5);
    // X is 2000 B/s or less, by the equation: 2s/X is longer.
    let wait = 2000.0 / alone.rate();
    let deadline = alone.sender.deadline().unwrap() - at(400);
    assert!(wait > 1.0 && (deadline.as_secs_f64() - wait).abs() < 1e-6);
}

// §4.4

/// No feedback ever: X halves, unless there was nothing to send.
#[test]
fn section_4_4_before_any_feedback() {
    let mut alone = Alone::new(&plain(), 1000);
    assert_eq!(alone.expire(), ms(2000));
    same(alone.rate(), 500.0);
    // 2s/X = 4 s; idle all the while: nothing is halved.
    assert_eq!(alone.expire(), ms(4000));
    same(alone.rate(), 500.0);
    alone.send_until(at(7000));
    alone.expire();
    same(alone.rate(), 250.0);
}

/// An idle sender in slow start is not halved below the initial rate's double, so that it keeps the
/// initial rate.
#[test]
fn section_4_4_idle_in_slow_start() {
    let mut alone = Alone::started(&plain(), 1000, RTT);
    for now in [200, 300] {
        alone.send_until(at(now));
        alone.report(at(now), RTT, 1_000_000, 0.0);
    }
    same(alone.rate(), 160_000.0);
    for x in [80_000.0, 40_000.0, 40_000.0, 40_000.0] {
        assert_eq!(alone.expire(), ms(400));
        same(alone.rate(), x);
    }
    // Busy, it is.
    alone.send_until(alone.now + ms(1));
    alone.expire();
    same(alone.rate(), 20_000.0);
}

/// p > 0 and X_recv the limit: X_recv halves. X_Bps the limit: X halves. Idle: neither, once X_recv
/// is below the initial rate.
#[test]
fn section_4_4_after_loss() {
    // p = 0.0001 gives X_Bps = 1.2 MB/s, far above: X = 2 · 100 000, then 100 000, 50 000, …
    let lossy = |receive_rate, p| {
        let mut alone = Alone::started(&plain(), 1000, RTT).until(at(400));
        alone.report(at(400), RTT, receive_rate, p);
        alone
    };
    let mut alone = lossy(100_000, 0.0001);
    for x in [100_000.0, 50_000.0] {
        alone.send_until(alone.now + ms(1));
        alone.expire();
        same(alone.rate(), x);
    }
    // Idle: X_recv is 25 000 < W_init/R = 40 000 now.
    alone.expire();
    same(alone.rate(), 50_000.0);

    // X_Bps is 112 332: the limit over a receive rate of 80 000 too, of which 160 000 were allowed.
    for receive_rate in [1_000_000, 80_000] {
        let mut alone = lossy(receive_rate, 0.01);
        let equation = alone.sender.equation_rate().unwrap();
        same(alone.rate(), equation);
        alone.send_until(at(401));
        alone.expire();
        same(alone.rate(), equation / 2.0);
    }
}

/// The floor an idle sender keeps, four 160-byte packets in 44 ms, is 14.5 kB/s and exceeds G.711's
/// 12 kB/s: faster restart has nothing to do there.
#[test]
fn section_4_4_idle_floor_exceeds_g711() {
    let parameters = rfc(Kind::Tfrc);
    let mut alone = Alone::started(&parameters, 160, ms(44));
    for _ in 0..100 {
        alone.expire();
    }
    same(alone.rate(), 4.0 * 160.0 / 0.044);
    assert!(alone.rate() > 12_000.0);
}

// §4.5

/// X_inst = X · R_sqmean/√R_sample, R_sqmean = 0.9 R_sqmean + 0.1 √R_sample.
#[test]
fn section_4_5_oscillation_prevention() {
    let parameters = Parameters { oscillation_prevention: true, ..plain() };
    let mut alone = Alone::started(&parameters, 1000, ms(40)).until(at(400));
    alone.report(at(400), ms(90), 1_000_000, 0.01);
    // √0.04 = 0.2, √0.09 = 0.3: mean root 0.9 · 0.2 + 0.1 · 0.3 = 0.21; X_inst = X · 0.7.
    assert!((alone.notes.last(Gauge::RttSquareMean).unwrap() - 0.0441).abs() < 1e-12);
    let expected = alone.rate() * 0.7 * 8.0;
    assert!((alone.sender.rate().as_bps() as f64 - expected).abs() < 1.0);
    let mut plain =
        Alone::started(&Parameters { oscillation_prevention: false, ..parameters }, 1000, ms(40));
    plain.send_until(at(400));
    plain.report(at(400), ms(90), 1_000_000, 0.01);
    assert!((plain.sender.rate().as_bps() as f64 - alone.rate() * 8.0).abs() < 1.0);
}

/// X_inst is s/t_mbi at least: 1000 B in 64 s are 125 bit/s.
#[test]
fn section_4_5_least_rate() {
    let parameters = Parameters { oscillation_prevention: true, ..plain() };
    let mut alone = Alone::started(&parameters, 1000, ms(40)).until(at(400));
    alone.report(at(400), ms(90), 1, 0.01);
    assert_eq!(alone.sender.rate().as_bps(), 125);
}

// §4.6, §8.3

/// Packets stand s/X apart, and unused time earns nothing.
#[test]
fn section_4_6_spacing() {
    let mut alone = Alone::started(&plain(), 1000, RTT);
    // 1000 B at 40 000 B/s
    alone.sender.on_sent(at(100), 1000);
    for now in [125, 150] {
        assert_eq!(alone.sender.permit(at(now - 1), 1000), Permit::At(at(now)));
        alone.sender.on_sent(at(now), 1000);
    }
    // 300 ms late: the next stands 25 ms after, not at once.
    alone.sender.on_sent(at(475), 1000);
    assert_eq!(alone.sender.permit(at(475), 1000), Permit::At(at(500)));
}

/// A credit lets a burst make up for unused time, but for no more than a round trip's.
#[test]
fn section_4_6_burst_of_one_round_trip() {
    let parameters = Parameters { credit: Duration::from_secs(10), ..plain() };
    let mut alone = Alone::started(&parameters, 1000, RTT).until(at(400));
    alone.report(at(400), RTT, 1_000_000, 0.0);
    let rate = alone.rate();
    alone.now = at(5000);
    let burst = alone.send_until(at(5000));
    // RFC: a round trip's worth, and the packet whose turn it is.
    assert_eq!(burst, (rate * 0.1 / 1000.0) as usize + 1);
}

/// §8.3: a packet may leave t_delta = min(t_ipi, t_gran)/2 early, and the mean rate stays.
#[test]
fn section_8_3_timer_granularity() {
    let parameters = Parameters { timer_granularity: ms(10), ..plain() };
    let mut alone = Alone::started(&parameters, 1000, RTT);
    alone.sender.on_sent(at(100), 1000);
    assert_eq!(alone.sender.permit(at(100), 1000), Permit::At(at(120)));
    alone.sender.on_sent(at(120), 1000);
    assert_eq!(alone.sender.permit(at(120), 1000), Permit::At(at(145)));
    // A timer coarser than t_ipi: half of t_ipi, 12.5 ms.
    let parameters = Parameters { timer_granularity: ms(100), ..plain() };
    let mut alone = Alone::started(&parameters, 1000, RTT);
    alone.sender.on_sent(at(100), 1000);
    let early = Instant::from_nanos(112_500_000);
    assert_eq!(alone.sender.permit(at(100), 1000), Permit::At(early));
}

// §8.2.1

/// An interval is data-limited if in all of it a permit was left unused.
#[test]
fn section_8_2_1_not_limited_once_is_enough() {
    let mut alone = Alone::started(&plain(), 1000, RTT).until(at(400));
    alone.report(at(400), RTT, 100_000, 0.0001);
    alone.now = at(440);
    alone.send_late();
    // One packet that waited for its permit, among late ones: not data-limited.
    let Permit::At(next) = alone.sender.permit(alone.now, 1000) else { panic!("it must wait") };
    alone.sender.on_sent(next, 1000);
    alone.now = at(490);
    alone.send_late();
    // What was sent from 401 to 501 ms is covered (§8.2.1: t_new − R), and the packet among it.
    alone.report(at(601), RTT, 10_000, 0.0001);
    // {100 000, 10 000} and the first is older than 2R: 2 · 10 000.
    same(alone.rate(), 20_000.0);
}

// The studies

/// A standing queue from a floor on p: the linux profile on a 7.15 Mb/s FIFO of 1000 packets. X_Bps
/// cannot exceed s/R · √(3/2p), so that R grows until that is the path's rate: 199 ms at p = 1e-4,
/// 1400-byte payloads and 50 bytes of IP, DCCP and Ethernet headers. Since X ∝ 1/R and the queue never
/// empties, it is the harmonic mean of R that must agree.
#[test]
fn standing_queue_of_the_p_floor() {
    let parameters = Config::default().resolve(Profile::Linux, Kind::Ccid3);
    let wire = 7.15e6 / 8.0;
    let capacity = wire * 1400.0 / 1450.0;
    let closed_form = 1400.0 * (1.5 / 1e-4_f64).sqrt() / capacity;
    assert!((closed_form - 0.199).abs() < 0.0005, "{closed_form}");
    let mut path = Loop::new(&parameters, ms(1), ms(1));
    path.source = (1400, Duration::ZERO);
    path.bottleneck = Some(Bottleneck { rate: wire, limit: 1000, overhead: 50 });
    let (mut sum, mut inverse, mut count) = (0.0, 0.0, 0.0);
    for tenth in 1..=2000 {
        path.run_until(at(100 * tenth));
        // Of a slow start's many losses p takes a minute or more to come down to the floor.
        if tenth > 1000 {
            let rtt = path.sender.rtt().unwrap().as_secs_f64();
            sum += rtt;
            inverse += 1.0 / rtt;
            count += 1.0;
        }
    }
    let (mean, harmonic) = (sum / count, count / inverse);
    println!("closed form {closed_form:.4} s, means {mean:.4} s and {harmonic:.4} s");
    assert!((harmonic / closed_form - 1.0).abs() < 0.01, "{harmonic} {closed_form}");
    assert!((mean - 0.2).abs() < 0.02, "{mean}");
    assert!(path.throughput(at(100_000), at(200_000)) > 0.98 * 8.0 * capacity);
    assert_eq!(path.sender.loss_event_rate(), 1e-4);
}

/// G.711 at 300 ms: with its own packet size it reaches 64 kb/s, and stays.
#[test]
fn g711_on_a_long_path() {
    let mut path = Loop::new(&rfc(Kind::Ccid3), ms(302), ms(302));
    path.source = (160, ms(20));
    path.run_until(at(40_000));
    for second in 10..40 {
        let rate = path.throughput(at(1000 * second), at(1000 * second + 1000));
        assert!((rate / 64_000.0 - 1.0).abs() < 0.1, "{second}: {rate}");
    }
}

proptest! {
    /// Whatever is reported, the sender keeps a rate, a schedule and a timer.
    #[test]
    fn garbage_moves_no_rate_out_of_bounds(
        reports in prop::collection::vec((0..5000_u64, any::<Option<u64>>(), any::<u64>(), any::<f64>(), any::<u64>()), 1..40),
    ) {
        let mut sender = Sender::new(at(0), &rfc(Kind::Ccid3));
        let mut now = Instant::ZERO;
        for (wait, rtt, receive_rate, p, covered) in reports {
            now += ms(wait);
            sender.permit(now, 160);
            sender.on_sent(now, 160);
            let rtt = rtt.map(Duration::from_nanos);
            let report = told(rtt, Instant::from_nanos(covered), receive_rate, p);
            sender.on_report(now, &report, &mut ());
            prop_assert!(sender.allowed_rate() > 0.0 && !sender.allowed_rate().is_nan());
            prop_assert!(sender.deadline().is_some_and(|deadline| deadline >= now));
        }
    }

    /// Whatever arrives, the history keeps its bounds.
    #[test]
    fn garbage_keeps_the_history_small(
        packets in prop::collection::vec((any::<u64>(), any::<bool>(), any::<u64>(), any::<Option<u64>>(), any::<bool>()), 1..200),
    ) {
        let mut receiver = Receiver::new(&rfc(Kind::Ccid4));
        for (i, (seq, data, non_data_before, counter, marked)) in packets.into_iter().enumerate() {
            let arrival = Arrival {
                seq: seq >> (i % 60),
                data_bytes: data.then_some(160),
                non_data_before,
                marked,
                rtt: Some(Duration::from_nanos(seq)),
                counter,
            };
            receiver.on_packet(at(i as u64), &arrival, &mut ());
            receiver.on_timeout(at(i as u64));
            if receiver.wants_feedback(at(i as u64)) {
                receiver.feedback(at(i as u64));
            }
            let p = receiver.history().loss_event_rate();
            prop_assert!((0.0..=1.0).contains(&p));
            prop_assert!(receiver.history().intervals().count() <= 29);
        }
    }
}
