//! A sum of nanoseconds and the number of values, in two words.

/// A sum of fewer than 2³² values, exact.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Sum {
    low: u64,
    /// Overflows of `low`.
    high: u32,
    count: u32,
}

impl Sum {
    #[inline]
    pub(crate) fn add(&mut self, value: u64) {
        let (low, over) = self.low.overflowing_add(value);
        self.low = low;
        self.high += u32::from(over);
        self.count += 1;
    }

    pub(crate) fn count(self) -> u64 {
        self.count.into()
    }

    /// The mean in units of `unit` nanoseconds; `None` without values.
    pub(crate) fn mean(self, unit: f64) -> Option<f64> {
        let sum = u128::from(self.high) << 64 | u128::from(self.low);
        (self.count > 0).then(|| sum as f64 / unit / f64::from(self.count))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sum_may_be_longer_than_a_word() {
        let mut sum = Sum::default();
        assert_eq!(sum.mean(1.0), None);
        for value in [u64::MAX, u64::MAX, 2] {
            sum.add(value);
        }
        assert_eq!(sum.count(), 3);
        assert_eq!(sum.mean(2.0), Some((1_u128 << 65) as f64 / 2.0 / 3.0));
    }
}
