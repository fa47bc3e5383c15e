//! The average loss interval (RFC 5348 §5.4) with history discounting (§5.5): arithmetic over
//! intervals, newest first. `history` determines the intervals.

use super::config::FewIntervals;

/// How intervals are averaged.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rule {
    /// Closed intervals in the average (RFC 5348 §5.4: n).
    pub(super) n: usize,
    /// Minimum factor of one discount of an old interval's weight (§5.5: THRESHOLD); `None`: no discounting.
    pub(super) threshold: Option<f64>,
    pub(super) few: FewIntervals,
}

/// A closed interval in the average.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Weighed {
    /// I_i in packets.
    pub(super) length: f64,
    /// DF_i: the discount of its weight by later long intervals.
    pub(super) discount: f64,
}

/// w_i of `n` intervals (RFC 5348 §5.4): 1 for the newer half, then falling evenly.
fn weight(i: usize, n: usize) -> f64 {
    let half = n / 2;
    if i < half { 1.0 } else { 1.0 - (i as f64 - (half as f64 - 1.0)) / (half as f64 + 1.0) }
}

/// Sum of lengths and sum of weights, interval i having weight w_(i + shift).
fn sums<'a>(
    closed: impl Iterator<Item = &'a Weighed>,
    shift: usize,
    n: usize,
    general: f64,
) -> (f64, f64) {
    closed.zip(shift..n).fold((0.0, 0.0), |(total, weights), (interval, i)| {
        let weight = weight(i, n) * interval.discount * general;
        (total + interval.length * weight, weights + weight)
    })
}

/// Contribution of closed intervals to the average, constant until another closes.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Closed {
    /// How many of them are in the average.
    count: usize,
    /// Those averaged with the open one.
    beside: usize,
    /// Their mean, without the open one; only valid if there are any.
    mean: f64,
    /// Sums of `beside` intervals, before a general discount.
    rest: (f64, f64),
    /// The weight of missing intervals that count as zero.
    missing: f64,
}

impl Closed {
    /// The sums of intervals, newest first.
    pub(super) fn of<'a>(closed: impl Iterator<Item = &'a Weighed> + Clone, rule: Rule) -> Self {
        let count = closed.clone().take(rule.n).count();
        // RFC 5348 §5.4: I_0 to I_(k-1) compared with I_1 to I_k.
        let joins = rule.few != FewIntervals::Replace && count < rule.n;
        let beside = if joins { count } else { count.saturating_sub(1) };
        let absent = |from: usize| match rule.few {
            FewIntervals::Zero => (from..rule.n).map(|i| weight(i, rule.n)).sum(),
            FewIntervals::Replace | FewIntervals::Join => 0.0,
        };
        let missing: f64 = absent(beside + 1);
        let rest = sums(closed.clone().take(beside), 1, rule.n, 1.0);
        let (total, weights) = sums(closed, 0, rule.n, 1.0);
        let mean = total / (weights + absent(count));
        Self { count, beside, mean, rest: (rest.0, rest.1 + missing), missing }
    }

    /// DF, the discount of all closed intervals when the open one exceeds twice the average
    /// (RFC 5348 §5.5), else 1.
    pub(super) fn general_discount(&self, open: f64, rule: Rule) -> f64 {
        match rule.threshold {
            Some(threshold) if open > 2.0 * self.mean => (2.0 * self.mean / open).max(threshold),
            _ => 1.0,
        }
    }

    /// I_mean without the open interval; `None` without closed ones.
    pub(super) fn closed_mean(&self) -> Option<f64> {
        (self.count > 0).then_some(self.mean)
    }

    /// I_mean: the larger of the averages with and without the open interval I_0 (RFC 5348 §5.4 and
    /// §5.5). `None` without closed intervals: no loss yet.
    #[inline]
    pub(super) fn mean_interval<'a, I: Iterator<Item = &'a Weighed>>(
        &self,
        open: f64,
        closed: impl FnOnce() -> I,
        rule: Rule,
    ) -> Option<f64> {
        if self.count == 0 {
            return None;
        }
        let (rest, rest_weights) = match self.general_discount(open, rule) {
            1.0 => self.rest,
            general => {
                let (total, weights) = sums(closed().take(self.beside), 1, rule.n, general);
                (total, weights + self.missing)
            }
        };
        let with = (open + rest) / (1.0 + rest_weights);
        Some(self.mean.max(with))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_are_those_printed() {
        // The weights RFC 5348 §5.4 gives for n = 8.
        let printed = [1.0, 1.0, 1.0, 1.0, 0.8, 0.6, 0.4, 0.2];
        for (i, printed) in printed.into_iter().enumerate() {
            assert!((weight(i, 8) - printed).abs() < 1e-12, "w_{i}");
        }
    }

    /// ns-2's CCID 3 with `debug_`: a first interval of 57 packets makes 1/p 10, rounded up; then the open one
    /// adds a sixth of its packets.
    #[test]
    fn missing_intervals_may_count_as_empty() {
        let closed = [Weighed { length: 57.0, discount: 1.0 }];
        let mean = |few, open| {
            let rule = Rule { n: 8, threshold: None, few };
            let sums = Closed::of(closed.iter(), rule);
            sums.mean_interval(open, || closed.iter(), rule)
        };
        assert_eq!(mean(FewIntervals::Zero, 0.0), Some(57.0 / 6.0));
        assert_eq!(mean(FewIntervals::Zero, 9.0), Some(66.0 / 6.0));
        assert_eq!(mean(FewIntervals::Join, 9.0), Some(57.0));
        assert_eq!(mean(FewIntervals::Join, 100.0), Some(157.0 / 2.0));
        assert_eq!(mean(FewIntervals::Replace, 100.0), Some(100.0));
        let full = [Weighed { length: 57.0, discount: 1.0 }; 8];
        let rule = |few| Rule { n: 8, threshold: None, few };
        for few in [FewIntervals::Zero, FewIntervals::Join, FewIntervals::Replace] {
            let sums = Closed::of(full.iter(), rule(few));
            let mean = sums.mean_interval(600.0, || full.iter(), rule(few));
            assert!((mean.unwrap() - (600.0 + 57.0 * 5.0) / 6.0).abs() < 1e-9, "{few:?}");
        }
    }
}
