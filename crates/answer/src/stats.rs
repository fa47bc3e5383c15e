//! Means, Student's intervals, and differences that are paired by seed.

use serde::Serialize;
use statrs::distribution::{ContinuousCDF, StudentsT};
use talkspurt_proto::metric::Better;

/// The mean of a sample.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Mean {
    /// Numbers in the sample.
    pub count: usize,
    /// Their mean.
    pub mean: f64,
    /// Sample standard deviation; 0 for equal numbers, `None` for a single one.
    pub deviation: Option<f64>,
}

impl Mean {
    /// The mean of these numbers; `None` if there are none.
    #[must_use]
    pub fn of(numbers: &[f64]) -> Option<Self> {
        let (first, count) = (*numbers.first()?, numbers.len());
        if numbers.iter().all(|&number| number == first) {
            return Some(Self { count, mean: first, deviation: (count > 1).then_some(0.0) });
        }
        let mean = numbers.iter().sum::<f64>() / count as f64;
        let squares = numbers.iter().map(|number| (number - mean) * (number - mean)).sum::<f64>();
        Some(Self { count, mean, deviation: Some((squares / (count - 1) as f64).sqrt()) })
    }

    /// Half of the interval that contains the true mean with this confidence: Student's quantile times
    /// s / √n. `None` if all numbers are equal, since then the effect of chance is unknown.
    #[must_use]
    pub fn half(&self, confidence: f64) -> Option<f64> {
        let deviation = self.deviation.filter(|&deviation| deviation > 0.0)?;
        Some(quantile(self.count - 1, confidence) * deviation / (self.count as f64).sqrt())
    }
}

/// Student's two-sided quantile: t such that P(|T| ≤ t) = confidence.
///
/// # Panics
/// There is no degree of freedom.
#[must_use]
pub fn quantile(freedom: usize, confidence: f64) -> f64 {
    let student = StudentsT::new(0.0, 1.0, freedom as f64).expect("one degree of freedom or more");
    // By the lower tail, whose small probability is exact.
    -student.inverse_cdf((1.0 - confidence) / 2.0)
}

/// How one option differs from another over the seeds that both have.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Difference {
    /// The mean difference.
    pub mean: Mean,
    /// Half of its interval at the level of a single comparison of the family; `None` if there is none.
    pub half: Option<f64>,
    /// Whether it is significant; `None` if only one seed is there, which cannot tell.
    pub significant: Option<bool>,
}

impl Difference {
    /// The difference first − second of pairs with equal seeds, as one of `comparisons` that together are
    /// wrong with a probability of at most 1 − `confidence` (Bonferroni). `None` without a pair.
    ///
    /// If the difference is the same for every seed, chance is ruled out where it changes neither side;
    /// otherwise by the sign test, that is with a probability of 2 / 2ⁿ.
    #[must_use]
    pub fn of(pairs: &[(f64, f64)], confidence: f64, comparisons: usize) -> Option<Self> {
        let differences: Vec<_> = pairs.iter().map(|(one, other)| one - other).collect();
        let mean = Mean::of(&differences)?;
        let error = (1.0 - confidence) / comparisons.max(1) as f64;
        let half = mean.half(1.0 - error);
        let significant = (mean.count > 1).then(|| match half {
            Some(half) => mean.mean.abs() > half,
            None => {
                let steady = pairs.iter().all(|pair| pair == &pairs[0]);
                let chance = 2.0 / (1_u64 << mean.count.min(63)) as f64;
                mean.mean != 0.0 && (steady || chance <= error)
            }
        });
        Some(Self { mean, half, significant })
    }
}

/// 1 if more is better, −1 if less is.
pub(crate) const fn sign(better: Better) -> f64 {
    match better {
        Better::Lower => -1.0,
        Better::Higher | Better::Neither => 1.0,
    }
}
