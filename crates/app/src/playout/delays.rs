//! Delays of the packets of a stream relative to its fastest packets, and the target delay of playout that
//! follows from them: that with the least cost by the E-model's terms for delay and loss, or the quantile that
//! is configured.
//!
//! All times are nanoseconds of the receiver's clock; an *offset* is the arrival of a packet less its place in
//! the stream. All arithmetic is integer.

use std::collections::VecDeque;

const MS: i64 = 1_000_000;
/// The target changes once in each interval.
const INTERVAL: i64 = 500 * MS;
/// A delay is relative to the fastest packet of this many intervals.
const SPAN: usize = 4;
/// Buckets of 5 ms up to 320 ms, then of 20 ms up to 2.24 s.
const FINE: i64 = 5 * MS;
const COARSE: i64 = 20 * MS;
const FINE_BUCKETS: usize = 64;
const BUCKETS: usize = FINE_BUCKETS + 96;
/// Weight of a packet. Weights lose this share with each interval: the memory is 40 s.
const ONE: u64 = 1 << 20;
const FORGETTING: u64 = 80;
/// Cost of loss in thousandths of R, and of a millisecond of delay in the buffer up to and beyond 130 ms. G.107's
/// terms: random loss of G.711 with concealment (Bpl 25), and delay, whose slope grows beyond a mouth-to-ear
/// delay of about 170 ms.
pub(super) const COST_OF_LOSS: u64 = 400_000;
const COST_OF_MS: u64 = 7;
const COST_OF_MS_BEYOND: u64 = 60;
const SHORT_MS: u64 = 130;

/// The packets of an interval.
#[derive(Clone, Debug, Default)]
struct Interval {
    /// Their offsets, and their delays relative to the packets before.
    packets: Vec<(i64, i64)>,
    /// The largest delay, relative to the packets before; and that of the packets in order.
    delay: i64,
    in_order: i64,
}

/// The delays of a stream.
#[derive(Clone, Debug)]
pub(super) struct Delays {
    current: Interval,
    /// End of the current interval; `None` before the first packet.
    ends: Option<i64>,
    /// The least offset of the last `SPAN` intervals and the current one.
    pub(super) floor: i64,
    /// The target delay, before limits.
    pub(super) target: i64,
    /// Share of the packets that may be late, of 2³⁰; `None` to weigh delay against loss.
    late: Option<u64>,
    /// The last `SPAN` intervals, oldest first. They are not yet in the histogram: whether they were slow, or
    /// the path has become longer, later packets tell.
    intervals: VecDeque<Interval>,
    /// Weights of earlier packets.
    histogram: Box<[u64; BUCKETS]>,
}

impl Delays {
    /// No packets yet; `initial` is the target until the first interval has passed.
    pub(super) fn new(quantile: Option<f64>, initial: i64) -> Self {
        Self {
            current: Interval::default(),
            ends: None,
            floor: i64::MAX,
            target: initial,
            late: quantile.map(|share| ((1.0 - share) * f64::from(1_u32 << 30)) as u64),
            intervals: VecDeque::with_capacity(SPAN + 1),
            histogram: Box::new([0; BUCKETS]),
        }
    }

    /// A packet with this offset arrived; it was overtaken unless `in_order`.
    #[inline]
    pub(super) fn arrive(&mut self, now: i64, offset: i64, in_order: bool) {
        if self.ends.is_none_or(|ends| now >= ends) {
            self.next_interval(now);
        }
        self.floor = self.floor.min(offset);
        let current = &mut self.current;
        current.packets.push((offset, offset - self.floor));
        current.delay = current.delay.max(offset - self.floor);
        if in_order {
            current.in_order = current.in_order.max(offset - self.floor);
        }
    }

    /// The largest delay of half a second to a second, of packets in order or of all: playout does not
    /// accelerate below it, since it may recur.
    pub(super) fn recent(&self, in_order: bool) -> i64 {
        let of = |it: &Interval| if in_order { it.in_order } else { it.delay };
        self.intervals.back().map_or(0, of).max(of(&self.current))
    }

    #[inline(never)]
    fn next_interval(&mut self, now: i64) {
        let ended = self.ends.replace(now + INTERVAL).is_some();
        if !ended {
            return;
        }
        // The oldest is used again.
        let mut next = Interval::default();
        if self.intervals.len() == SPAN
            && let Some(oldest) = self.intervals.pop_front()
        {
            self.histogram.iter_mut().for_each(|weight| *weight -= *weight / FORGETTING);
            // It is compared with those after it: the one that has just ended, too.
            let least = self.least_from(0).min(least(&self.current));
            for (offset, delay) in &oldest.packets {
                self.histogram[bucket((*delay).min(offset.saturating_sub(least)))] += ONE;
            }
            next = oldest;
        }
        next.packets.clear();
        next = Interval { packets: next.packets, ..Interval::default() };
        self.intervals.push_back(std::mem::replace(&mut self.current, next));
        self.target = self.best();
        self.floor = self.least_from(0);
    }

    /// The least offset of the intervals from this one on.
    fn least_from(&self, first: usize) -> i64 {
        self.intervals.iter().skip(first).map(least).min().unwrap_or(i64::MAX)
    }

    /// The delay with the least cost, or of which the configured share of packets is not later.
    fn best(&self) -> i64 {
        let mut weights = self.histogram.clone();
        for (i, interval) in self.intervals.iter().enumerate() {
            // Those after it were as slow: the path has become longer, and this is no jitter.
            let after = self.least_from(i + 1);
            for (offset, delay) in &interval.packets {
                let of = if after == i64::MAX { *delay } else { (*delay).min(offset - after) };
                weights[bucket(of)] += ONE;
            }
        }
        let all: u64 = weights.iter().sum();
        let (mut later, mut best) = (all, (u128::MAX, 0));
        for (at, weight) in weights.iter().enumerate() {
            later -= weight;
            let delay = upper_edge(at);
            if let Some(late) = self.late {
                if u128::from(later) << 30 <= u128::from(late) * u128::from(all) {
                    return delay;
                }
                continue;
            }
            let ms = (delay / MS) as u64;
            let of_delay =
                ms.min(SHORT_MS) * COST_OF_MS + ms.saturating_sub(SHORT_MS) * COST_OF_MS_BEYOND;
            let cost = u128::from(of_delay) * u128::from(all)
                + u128::from(COST_OF_LOSS) * u128::from(later);
            if cost < best.0 {
                best = (cost, delay);
            }
            if later == 0 {
                break;
            }
        }
        best.1
    }
}

fn least(interval: &Interval) -> i64 {
    interval.packets.iter().map(|(offset, _)| *offset).min().unwrap_or(i64::MAX)
}

fn bucket(delay: i64) -> usize {
    let delay = delay.max(0);
    let fine = FINE_BUCKETS as i64 * FINE;
    let at =
        if delay < fine { delay / FINE } else { FINE_BUCKETS as i64 + (delay - fine) / COARSE };
    (at as usize).min(BUCKETS - 1)
}

fn upper_edge(bucket: usize) -> i64 {
    let fine = (bucket + 1).min(FINE_BUCKETS) as i64 * FINE;
    fine + (bucket + 1).saturating_sub(FINE_BUCKETS) as i64 * COARSE
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Targets in ms, two a second, of packets every 20 ms with these delays in ms.
    fn targets(quantile: Option<f64>, delays: impl IntoIterator<Item = i64>) -> Vec<i64> {
        let mut it = Delays::new(quantile, 80 * MS);
        let mut targets = Vec::new();
        for (number, delay) in (0..).zip(delays) {
            let sent = number * 20 * MS;
            // In the order of arrival where it matters: no delay falls by more than 20 ms in these tests,
            // except between packets of different intervals.
            it.arrive(sent + delay * MS, delay * MS, true);
            if number % 25 == 24 {
                targets.push(it.target / MS);
            }
        }
        targets
    }

    #[test]
    fn buckets_cover_the_range() {
        for delay in [0, 4, 5, 9, 10, 319, 320, 339, 340, 2239] {
            let edge = upper_edge(bucket(delay * MS));
            let width = if delay < 320 { FINE } else { COARSE };
            assert!(edge > delay * MS && edge - width <= delay * MS, "{delay}: {edge}");
        }
        assert_eq!(bucket(i64::MAX), BUCKETS - 1);
        assert_eq!(bucket(-1), 0);
    }

    #[test]
    fn without_jitter_the_target_is_the_least() {
        for quantile in [None, Some(0.99)] {
            assert!(targets(quantile, [50; 500])[2..].iter().all(|target| *target == 5));
        }
    }

    #[test]
    fn the_quantile_of_the_packets_is_in_time() {
        // One packet in 50 is 60 ms late.
        let late = || (0..3000).map(|n| if n % 50 == 40 { 60 } else { 0 });
        assert!(targets(Some(0.97), late())[10..].iter().all(|target| *target == 5));
        assert!(targets(Some(0.99), late())[10..].iter().all(|target| *target == 65));
    }

    #[test]
    fn delay_is_weighed_against_loss() {
        // 60 ms of delay are 0.4 of R, one late packet in a hundred is 4, and one in two thousand 0.2.
        let often = targets(None, (0..3000).map(|n| if n % 100 == 50 { 60 } else { 0 }));
        assert!(often[10..].iter().all(|target| *target == 65), "{often:?}");
        let rarely = targets(None, (0..12_000).map(|n| if n % 2000 == 700 { 60 } else { 0 }));
        assert!(rarely[200..].iter().all(|target| *target == 5), "{rarely:?}");
    }

    #[test]
    fn a_longer_or_shorter_path_is_no_jitter() {
        // At once, and by 400 ms within 0.6 s every 8.6 s.
        let steps =
            [(20, 200), (200, 20)].map(|(one, other)| move |n| if n < 1500 { one } else { other });
        for step in steps {
            let found = targets(None, (0..3000).map(step));
            assert!(found[70..].iter().all(|target| *target <= 20), "{found:?}");
        }
        let saw = |n: i64| match n % 430 {
            rising @ ..400 => 20 + rising,
            falling => 420 - (falling - 400) * 400 / 30,
        };
        let found = targets(None, (0..6000).map(saw));
        assert!(found.iter().all(|target| *target <= 130), "{found:?}");
    }

    proptest! {
        /// For equal arrivals, a larger share in time never has a shorter target.
        #[test]
        fn the_target_rises_with_the_quantile(
            delays in prop::collection::vec((0_i64..40, 1_usize..40, 0_i64..1500), 1..60),
            mut quantiles in prop::collection::vec(0.01..0.999_f64, 2..5),
        ) {
            let trace = delays.iter().flat_map(|(jitter, length, spike)| {
                (0..*length).map(move |n| spike / (n as i64 + 1) + n as i64 * 7919 % (jitter + 1))
            });
            let trace: Vec<_> = trace.collect();
            quantiles.sort_by(f64::total_cmp);
            let found: Vec<_> =
                quantiles.iter().map(|share| targets(Some(*share), trace.iter().copied())).collect();
            for pair in found.windows(2) {
                prop_assert!(pair[0].iter().zip(&pair[1]).all(|(less, more)| less <= more));
            }
        }
    }
}
