//! The average loss interval (RFC 5348 §5.4) with history discounting (§5.5): arithmetic over
//! intervals, newest first. `history` determines the intervals.

/// How intervals are averaged.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rule {
    /// Closed intervals in the average (RFC 5348 §5.4: n).
    pub(super) n: usize,
    /// Minimum factor of one discount of an old interval's weight (§5.5: THRESHOLD); `None`: no
    /// discounting.
    pub(super) threshold: Option<f64>,
    /// While fewer than n have closed, the open one is averaged with all of them and replaces none.
    pub(super) open_joins: bool,
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
}

impl Closed {
    /// The sums of intervals, newest first.
    pub(super) fn of<'a>(closed: impl Iterator<Item = &'a Weighed> + Clone, rule: Rule) -> Self {
        let count = closed.clone().take(rule.n).count();
        // RFC 5348 §5.4: I_0 to I_(k-1) compared with I_1 to I_k.
        let joins = rule.open_joins && count < rule.n;
        let beside = if joins { count } else { count.saturating_sub(1) };
        let rest = sums(closed.clone().take(beside), 1, rule.n, 1.0);
        let (total, weights) = sums(closed, 0, rule.n, 1.0);
        Self { count, beside, mean: total / weights, rest }
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
            general => sums(closed().take(self.beside), 1, rule.n, general),
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
}
