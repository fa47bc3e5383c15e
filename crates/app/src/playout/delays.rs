//! Delays of the packets of a stream relative to its fastest packets, and the target delay of playout that
//! follows from them: a histogram with a forgetting factor, of which the target is a quantile, and a detector
//! of recurring peaks. The method is that of NetEq, WebRTC's jitter buffer; comments name the differences.
//!
//! All times are nanoseconds of the receiver's clock; an *offset* is the arrival of a packet less its place in
//! the stream. All arithmetic is integer.

use std::collections::VecDeque;

const MS: i64 = 1_000_000;
/// The largest offset of each interval enters the histogram.
const INTERVAL: i64 = 500 * MS;
/// A delay is relative to the fastest packet of this many intervals.
const SPAN: usize = 4;
/// Buckets of 5 ms up to 320 ms, then of 20 ms up to 2.24 s.
const FINE: i64 = 5 * MS;
const COARSE: i64 = 20 * MS;
const FINE_BUCKETS: usize = 64;
const BUCKETS: usize = FINE_BUCKETS + 96;
/// One, as a weight of the histogram.
const ONE: u64 = 1 << 30;
/// The share that a new value replaces, once there are many: 1 − 0.983.
const FORGET: u64 = ONE * 17 / 1000;
/// How much longer than this share of the slowest packets a peak is. It does not depend on the configured
/// quantile: a larger quantile would have fewer peaks, and a shorter target.
const PEAK: i64 = 80 * MS;
const USUAL: u64 = ONE * 9 / 10;
/// Two peaks farther apart than this are not recurring.
const LONGEST_PERIOD: i64 = 16_000 * MS;
/// Peaks remembered.
const PEAKS: usize = 8;

/// The packets of an interval.
#[derive(Clone, Copy, Debug)]
struct Interval {
    /// The least and the largest offset.
    least: i64,
    largest: i64,
    /// The largest delay, relative to the packets before; and that of the packets in order.
    delay: i64,
    in_order: i64,
}

impl Interval {
    const NONE: Self = Self { least: i64::MAX, largest: i64::MIN, delay: 0, in_order: 0 };
}

/// The delays of a stream.
#[derive(Clone, Debug)]
pub(super) struct Delays {
    current: Interval,
    /// End of the current interval; `None` before the first packet.
    ends: Option<i64>,
    /// The least offset of the last `SPAN` intervals and the current one.
    pub(super) floor: i64,
    /// The delay at which the quantile of packets arrives in time, before limits.
    pub(super) target: i64,
    quantile: u64,
    /// Earlier intervals, oldest first. The last `SPAN` are not yet in the histogram: whether they were
    /// slow, or the path has become longer, later packets tell.
    intervals: VecDeque<Interval>,
    /// Weights that sum to about `ONE`.
    histogram: Box<[u32; BUCKETS]>,
    /// All buckets from this one on are empty.
    empty_from: usize,
    counted: u64,
    /// Time and height of the latest peaks.
    peaks: VecDeque<(i64, i64)>,
}

impl Delays {
    /// No packets yet; `initial` is the target until the first interval has passed.
    pub(super) fn new(quantile: f64, initial: i64) -> Self {
        Self {
            current: Interval::NONE,
            ends: None,
            floor: i64::MAX,
            target: initial,
            quantile: (quantile * ONE as f64) as u64,
            intervals: VecDeque::with_capacity(2 * SPAN + 1),
            histogram: Box::new([0; BUCKETS]),
            empty_from: 0,
            counted: 0,
            peaks: VecDeque::new(),
        }
    }

    /// A packet with this offset arrived; it was overtaken unless `in_order`.
    #[inline]
    pub(super) fn arrive(&mut self, now: i64, offset: i64, in_order: bool) {
        if self.ends.is_none_or(|ends| now >= ends) {
            self.next_interval(now);
        }
        self.floor = self.floor.min(offset);
        self.current.least = self.current.least.min(offset);
        self.current.largest = self.current.largest.max(offset);
        self.current.delay = self.current.delay.max(offset - self.floor);
        if in_order {
            self.current.in_order = self.current.in_order.max(offset - self.floor);
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
        self.intervals.push_back(std::mem::replace(&mut self.current, Interval::NONE));
        if self.intervals.len() > SPAN {
            self.count();
        }
        if self.intervals.len() > 2 * SPAN {
            self.intervals.pop_front();
        }
        self.detect_peak(now, self.not_exceeded(USUAL));
        self.target = self.not_exceeded(self.quantile).max(self.peak(now));
        let latest = self.intervals.iter().rev().take(SPAN);
        self.floor = latest.map(|all| all.least).min().unwrap_or(i64::MAX);
    }

    /// The delay of interval `i`. NetEq's is relative to the packets before it. Here it is also compared with
    /// those after it: if they are as slow, the path has become longer, and this is no jitter.
    fn delay(&self, i: usize) -> i64 {
        let it = &self.intervals[i];
        let after = self.intervals.iter().skip(i + 1).take(SPAN).map(|all| all.least).min();
        after.map_or(it.delay, |after| it.delay.min(it.largest - after))
    }

    /// Moves an interval to the histogram.
    fn count(&mut self) {
        let delay = self.delay(self.intervals.len() - 1 - SPAN);
        let share = self.share();
        self.counted += 1;
        for weight in &mut self.histogram[..self.empty_from] {
            *weight = (u64::from(*weight) * (ONE - share) / ONE) as u32;
        }
        self.histogram[bucket(delay)] += share as u32;
        self.empty_from = self.empty_from.max(bucket(delay) + 1);
        while self.empty_from > 0 && self.histogram[self.empty_from - 1] == 0 {
            self.empty_from -= 1;
        }
    }

    /// The share of the next value: large at first, so that the histogram fills quickly.
    fn share(&self) -> u64 {
        (2 * ONE / (self.counted + 2)).max(FORGET)
    }

    /// The smallest delay that this share of the histogram and of the latest intervals does not exceed.
    fn not_exceeded(&self, quantile: u64) -> i64 {
        let first = self.intervals.len().saturating_sub(SPAN);
        let number = self.intervals.len() - first;
        let mut latest = [0; SPAN];
        for (at, i) in latest.iter_mut().zip(first..self.intervals.len()) {
            *at = bucket(self.delay(i));
        }
        let latest = &mut latest[..number];
        latest.sort_unstable();
        let even = ONE / number.max(1) as u64;
        let share = if self.counted == 0 { even } else { self.share().min(even) };
        let rest = ONE - share * number as u64;
        let mut left = ONE - quantile;
        // From the longest delay down.
        let mut latest = latest.iter().rev().copied().peekable();
        let from = self.empty_from.max(latest.peek().map_or(0, |at| at + 1));
        for at in (0..from).rev() {
            let mut weight = u64::from(self.histogram[at]) * rest / ONE;
            while latest.next_if_eq(&at).is_some() {
                weight += share;
            }
            if weight > left {
                return upper_edge(at);
            }
            left -= weight;
        }
        upper_edge(0)
    }

    fn detect_peak(&mut self, now: i64, usual: i64) {
        let height = self.delay(self.intervals.len() - 1);
        if height > usual + PEAK {
            // Intervals in a row are one peak.
            match self.peaks.back_mut().filter(|(at, _)| now - *at <= 2 * INTERVAL) {
                Some(peak) => *peak = (now, peak.1.max(height)),
                None => self.peaks.push_back((now, height)),
            }
        }
        while self.peaks.len() > PEAKS
            || self.peaks.front().is_some_and(|(at, _)| now - at > 4 * LONGEST_PERIOD)
        {
            self.peaks.pop_front();
        }
    }

    /// The height that recurs: the second largest of the latest peaks, if no two are farther apart than
    /// `LONGEST_PERIOD` and twice their longest period has not passed without another; 0 without. (NetEq
    /// takes the largest. A single outage of two seconds then delays everything that follows by as much.)
    fn peak(&self, now: i64) -> i64 {
        let periods = self.peaks.iter().zip(self.peaks.iter().skip(1)).map(|(a, b)| b.0 - a.0);
        let Some(period) = periods.max().filter(|period| *period <= LONGEST_PERIOD) else {
            return 0;
        };
        let recurring = self.peaks.back().is_some_and(|(at, _)| now - at <= 2 * period);
        let mut heights: Vec<i64> = self.peaks.iter().map(|(_, height)| *height).collect();
        heights.sort_unstable();
        if recurring { heights[heights.len() - 2] } else { 0 }
    }
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
    fn targets(delays: impl IntoIterator<Item = i64>) -> Vec<i64> {
        targets_at(0.95, delays)
    }

    fn targets_at(quantile: f64, delays: impl IntoIterator<Item = i64>) -> Vec<i64> {
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
        assert!(targets([50; 500])[2..].iter().all(|target| *target == 5));
    }

    #[test]
    fn the_target_is_the_quantile_of_the_largest_delays() {
        // One packet in 100 is 60 ms late: every fourth interval, which is more than 5 % of them.
        let found = targets((0..3000).map(|n| if n % 100 == 50 { 60 } else { 0 }));
        assert!(found[10..].iter().all(|target| *target == 65), "{found:?}");
        // One in 1250: an interval in 50. After the first, the target forgets it.
        let found = targets((0..10_000).map(|n| if n % 1250 == 700 { 60 } else { 0 }));
        let kept = found[200..].iter().filter(|target| **target > 5).count();
        assert!(kept < found[200..].len() / 3, "{found:?}");
    }

    #[test]
    fn a_longer_path_is_no_jitter() {
        for (before, after) in [(20, 200), (200, 20)] {
            let found = targets((0..3000).map(|n| if n < 1500 { before } else { after }));
            assert!(found[70..].iter().all(|target| *target <= 20), "{found:?}");
        }
    }

    #[test]
    fn recurring_peaks_raise_the_target() {
        // A hand-over every 15 s delays a few packets: an interval in 30, below the quantile.
        let found = targets((0..6000).map(|n| if n % 750 >= 745 { 150 } else { 10 }));
        assert!(found[150..].iter().all(|target| *target >= 140), "{found:?}");
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
                quantiles.iter().map(|share| targets_at(*share, trace.iter().copied())).collect();
            for pair in found.windows(2) {
                prop_assert!(pair[0].iter().zip(&pair[1]).all(|(less, more)| less <= more));
            }
        }
    }
}
