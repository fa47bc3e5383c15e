//! RFC 3550 A.8: the estimator against the RFC's own integer code, and against the closed form of
//! a first-order filter.

use proptest::prelude::*;
use talkspurt_proto::time::{Duration, Instant};
use talkspurt_record::Jitter;

/// RFC 3550 A.8, second form, in whatever unit `arrival` and `ts` share.
struct A8 {
    transit: i64,
    jitter: i64,
}

impl A8 {
    fn arrive(&mut self, arrival: i64, ts: i64) {
        let transit = arrival - ts;
        let mut d = transit - self.transit;
        self.transit = transit;
        if d < 0 {
            d = -d;
        }
        self.jitter += d - ((self.jitter + 8) >> 4);
    }
}

proptest! {
    /// In nanoseconds both are the same integers; in ticks of an 8 kHz clock the RFC's code
    /// differs by no more than its own rounding, which is below two ticks.
    #[test]
    fn follows_the_rfc(delays in prop::collection::vec(0_u64..60_000_000, 2..300)) {
        const TICK: u64 = 125_000;
        let mut ours = Jitter::default();
        let mut nanos = A8 { transit: delays[0] as i64, jitter: 0 };
        let mut ticks = A8 { transit: (delays[0] / TICK) as i64, jitter: 0 };
        let mut sum = 0.0;
        for (index, delay) in delays.iter().enumerate() {
            let sent = 20_000_000 * index as u64;
            ours.arrive(Instant::from_nanos(sent), Instant::from_nanos(sent + delay), true);
            if index > 0 {
                nanos.arrive((sent + delay) as i64, sent as i64);
                ticks.arrive(((sent + delay) / TICK) as i64, 160 * index as i64);
                sum += nanos.jitter as f64 / 16.0 * 1e-9;
            }
        }
        prop_assert_eq!(ours.estimate().as_nanos() as i64, nanos.jitter >> 4);
        let in_ticks = ours.estimate().as_nanos() as f64 / TICK as f64;
        prop_assert!((in_ticks - (ticks.jitter >> 4) as f64).abs() < 2.0);
        let mean = sum / (delays.len() - 1) as f64;
        prop_assert!((ours.mean_s().unwrap() - mean).abs() < 1e-12);
    }
}

#[test]
fn a_constant_difference_is_approached_as_a_first_order_filter() {
    // |D| = 8 ms at every packet: J after k packets is 8 ms · (1 − (15/16)^k).
    let mut jitter = Jitter::default();
    let mut expected = 0.0;
    for index in 0..100_u64 {
        let sent = Instant::from_nanos(20_000_000 * index);
        let delay = if index % 2 == 0 { 10 } else { 18 };
        jitter.arrive(sent, sent + Duration::from_millis(delay), true);
        expected = if index == 0 { 0.0 } else { expected + (8e-3 - expected) / 16.0 };
    }
    assert!((jitter.estimate().as_secs_f64() - expected).abs() < 2e-9);
}

#[test]
fn clocks_may_differ_and_one_packet_says_nothing() {
    let mut jitter = Jitter::default();
    // The sender's clock is a day ahead: transit is negative throughout.
    let day = Duration::from_secs(86_400);
    for index in 0..10_u64 {
        assert_eq!(jitter.mean_s().is_some(), index > 1);
        let arrival = Instant::from_nanos(20_000_000 * index);
        jitter.arrive(arrival + day, arrival, true);
    }
    assert_eq!(jitter.mean_s(), Some(0.0));
}

#[test]
fn only_what_counts_is_in_the_mean() {
    let mut jitter = Jitter::default();
    let at = Instant::from_nanos;
    jitter.arrive(at(0), at(0), true);
    jitter.arrive(at(0), at(1600), false);
    jitter.arrive(at(0), at(1600), true);
    // 1600/16 = 100 ns after the second packet, 100 · 15/16 = 93.75 after the third.
    assert!((jitter.mean_s().unwrap() - 93.75e-9).abs() < 0.1e-9);
}
