//! The average loss interval (RFC 5348 §5.4) with history discounting (§5.5). Pure arithmetic over
//! intervals, newest first; what an interval is, `history` knows.

/// RFC 5348 §5.5: THRESHOLD, the least an old interval's weight is multiplied with at a time.
const THRESHOLD: f64 = 0.25;

/// A closed interval as the average sees it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Weighed {
    /// I_i in packets.
    pub(super) length: f64,
    /// DF_i: what earlier long intervals have left of its weight.
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

/// What closed intervals bring to the average, the same for every packet until another closes.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Closed {
    /// How many of them the average takes.
    count: usize,
    /// Sums without the open interval.
    without: (f64, f64),
    /// And with it in place of the oldest, before a general discount.
    rest: (f64, f64),
}

impl Closed {
    /// The sums of intervals, newest first, of which `n` count.
    pub(super) fn of<'a>(closed: impl Iterator<Item = &'a Weighed> + Clone, n: usize) -> Self {
        let count = closed.clone().take(n).count();
        let rest = sums(closed.clone().take(count.saturating_sub(1)), 1, n, 1.0);
        Self { count, without: sums(closed, 0, n, 1.0), rest }
    }

    /// DF, the discount that an open interval more than twice the average puts on all closed ones
    /// (RFC 5348 §5.5).
    pub(super) fn general_discount(&self, open: f64) -> f64 {
        let mean = self.without.0 / self.without.1;
        if open > 2.0 * mean { (2.0 * mean / open).max(THRESHOLD) } else { 1.0 }
    }

    /// I_mean: the larger average of those with and without the open interval I_0 (RFC 5348 §5.4 and
    /// §5.5; `discounting` switches the latter). `None` without closed intervals: no loss yet.
    pub(super) fn mean_interval<'a>(
        &self,
        open: f64,
        closed: impl Iterator<Item = &'a Weighed>,
        n: usize,
        discounting: bool,
    ) -> Option<f64> {
        if self.count == 0 {
            return None;
        }
        let general = if discounting { self.general_discount(open) } else { 1.0 };
        let (rest, rest_weights) = match general {
            1.0 => self.rest,
            _ => sums(closed.take(self.count - 1), 1, n, general),
        };
        let with = (open + rest) / (1.0 + rest_weights);
        Some((self.without.0 / self.without.1).max(with))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_are_those_printed() {
        // RFC 5348 §5.4 prints them for n = 8.
        let printed = [1.0, 1.0, 1.0, 1.0, 0.8, 0.6, 0.4, 0.2];
        for (i, printed) in printed.into_iter().enumerate() {
            assert!((weight(i, 8) - printed).abs() < 1e-12, "w_{i}");
        }
    }
}
