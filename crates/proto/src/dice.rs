//! Random streams: one per component and purpose, split from (seed, name).
//!
//! Adding a flow, a link or a probe never shifts another stream's dice, so transports compared
//! under one seed meet the same network (common random numbers). The generator is xoshiro256++
//! (Blackman & Vigna 2019), seeded through XXH3 of the stream's name.

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng as _, SeedableRng};
use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::math;
use crate::time::Duration;

/// One stream of random numbers.
#[derive(Clone, Debug)]
pub struct Dice(Xoshiro256PlusPlus);

impl Dice {
    /// The stream called `name` under `seed`; the same two always give the same numbers.
    #[must_use]
    pub fn new(seed: u64, name: &str) -> Self {
        Self(Xoshiro256PlusPlus::seed_from_u64(xxh3_64_with_seed(name.as_bytes(), seed)))
    }
    /// A stream that nobody can have again: its whole state is what the operating system's source
    /// of chance gave. For live endpoints, whose numbers no stranger should guess.
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
        Duration::from_secs_f64(-math::ln(1.0 - self.unit()) * mean.as_secs_f64())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_are_stable_and_apart() {
        let (mut a, mut b, mut c) = (Dice::new(1, "a"), Dice::new(1, "a"), Dice::new(1, "b"));
        let (x, y, z) = (a.bits(), b.bits(), c.bits());
        assert_eq!(x, y);
        assert_ne!(x, z);
    }

    #[test]
    fn exponential_has_its_mean() {
        let mut dice = Dice::new(7, "mean");
        let mean = Duration::from_millis(100);
        let sum: Duration = (0..100_000).map(|_| dice.exponential(mean)).sum();
        // Standard error of the mean is 0.32 %; four of them.
        assert!((sum.as_secs_f64() / 100_000.0 / 0.1 - 1.0).abs() < 0.013);
    }
}
