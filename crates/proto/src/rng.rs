//! Random streams: one per component and purpose, split from (seed, name).
//!
//! Adding a flow, a link or a probe never changes another stream, so transports compared under one
//! seed meet the same network (common random numbers). The generator is xoshiro256++ (Blackman &
//! Vigna 2019), seeded through XXH3 of the stream's name.

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng as _, SeedableRng};
use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::math;
use crate::time::Duration;

/// One stream of random numbers.
#[derive(Clone, Debug)]
pub struct Rng(Xoshiro256PlusPlus);

impl Rng {
    /// The stream called `name` under `seed`; equal arguments always give equal numbers.
    #[must_use]
    pub fn new(seed: u64, name: &str) -> Self {
        Self(Xoshiro256PlusPlus::seed_from_u64(xxh3_64_with_seed(name.as_bytes(), seed)))
    }
    /// An unpredictable stream, whose whole state comes from the operating system's entropy source,
    /// for live endpoints.
    #[must_use]
    pub fn from_entropy(state: [u8; 32]) -> Self {
        Self(Xoshiro256PlusPlus::from_seed(state))
    }
    /// A uniform 64-bit number.
    pub fn bits(&mut self) -> u64 {
        self.0.next_u64()
    }
    /// A uniform number in `0..bound` (Lemire's multiplication; bias below 2⁻⁶⁴ · bound); 0 for 0.
    pub fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.bits()) * u128::from(bound)) >> 64) as u64
    }
    /// A uniform number in [0, 1) with 53 bits.
    pub fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 * (1.0 / (1_u64 << 53) as f64)
    }
    /// True with probability `p`.
    pub fn chance(&mut self, p: f64) -> bool {
        self.unit() < p
    }
    /// A uniform span in `[0, bound)`.
    pub fn span(&mut self, bound: Duration) -> Duration {
        Duration::from_nanos(self.below(bound.as_nanos()))
    }
    /// An exponentially distributed span with this mean.
    pub fn exponential(&mut self, mean: Duration) -> Duration {
        Duration::from_secs_f64(self.exponential_f64(mean.as_secs_f64()))
    }
    /// An exponentially distributed number with this mean.
    pub fn exponential_f64(&mut self, mean: f64) -> f64 {
        -math::ln(1.0 - self.unit()) * mean
    }
    /// A number with a Pareto tail of this `shape`, which must be above 1, and this mean: the
    /// minimum is `k = mean · (shape − 1) / shape`, and P(X > x) = (k/x)^shape.
    pub fn pareto(&mut self, mean: f64, shape: f64) -> f64 {
        let least = mean * (shape - 1.0) / shape;
        least * math::pow(1.0 - self.unit(), -1.0 / shape)
    }
    /// A number whose logarithm is normal with the standard deviation `sigma`, and this mean.
    pub fn lognormal(&mut self, mean: f64, sigma: f64) -> f64 {
        mean * math::exp(sigma * self.normal() - sigma * sigma / 2.0)
    }
    /// A normally distributed number of mean 0 and deviation 1 (Box and Muller 1958).
    fn normal(&mut self) -> f64 {
        let radius = (-2.0 * math::ln(1.0 - self.unit())).sqrt();
        radius * math::cos(std::f64::consts::TAU * self.unit())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_are_stable_and_apart() {
        let (mut a, mut b, mut c) = (Rng::new(1, "a"), Rng::new(1, "a"), Rng::new(1, "b"));
        let (x, y, z) = (a.bits(), b.bits(), c.bits());
        assert_eq!(x, y);
        assert_ne!(x, z);
    }

    #[test]
    fn exponential_has_its_mean() {
        let mut rng = Rng::new(7, "mean");
        let mean = Duration::from_millis(100);
        let sum: Duration = (0..100_000).map(|_| rng.exponential(mean)).sum();
        // Standard error of the mean is 0.32 %; four of them.
        assert!((sum.as_secs_f64() / 100_000.0 / 0.1 - 1.0).abs() < 0.013);
    }

    /// Share of 100 000 draws above each bound, against the closed form within four standard errors.
    fn tails(mut draw: impl FnMut() -> f64, expected: &[(f64, f64)]) {
        const COUNT: usize = 100_000;
        let draws: Vec<f64> = (0..COUNT).map(|_| draw()).collect();
        for &(bound, p) in expected {
            let share = draws.iter().filter(|x| **x > bound).count() as f64 / COUNT as f64;
            let error = (p * (1.0 - p) / COUNT as f64).sqrt();
            assert!((share - p).abs() <= 4.0 * error, "P(X > {bound}) is {share}, not {p}");
        }
    }

    #[test]
    fn pareto_has_its_tail_and_its_mean() {
        // Mean 3, shape 1.5: k = 1, and P(X > x) = x^-1.5.
        let mut rng = Rng::new(3, "pareto");
        let expected = [(1.0, 1.0), (4.0, 0.125), (100.0, 0.001), (0.999, 1.0)];
        tails(|| rng.pareto(3.0, 1.5), &expected);
        // Shape 4 has a variance, k²·a / ((a − 1)²(a − 2)) = 2 for k = 3, a = 4; mean 4.
        let sum: f64 = (0..100_000).map(|_| rng.pareto(4.0, 4.0)).sum();
        assert!((sum / 100_000.0 - 4.0).abs() < 4.0 * (2.0_f64 / 100_000.0).sqrt());
    }

    #[test]
    fn lognormal_has_its_median_its_deviation_and_its_mean() {
        // Mean 10, sigma 1: the median is 10·e^-0.5, and the normal distribution's shares lie beyond
        // one and two deviations.
        let mut rng = Rng::new(4, "lognormal");
        let median = 10.0 * math::exp(-0.5);
        let expected = [
            (median, 0.5),
            (median * math::exp(1.0), 0.158_655),
            (median * math::exp(-2.0), 0.977_250),
        ];
        tails(|| rng.lognormal(10.0, 1.0), &expected);
        // The variance is (e − 1)·mean².
        let sum: f64 = (0..100_000).map(|_| rng.lognormal(10.0, 1.0)).sum();
        let error = 10.0 * ((math::exp(1.0) - 1.0) / 100_000.0).sqrt();
        assert!((sum / 100_000.0 - 10.0).abs() < 4.0 * error);
    }
}
