//! Transcendental functions that give the same bits on every machine.
//!
//! The platform's `exp`, `ln` and `pow` differ between CPUs with and without fused multiply-add,
//! so a run would not be reproducible. These come from the pinned `libm` crate; clippy forbids the
//! others. `f64::sqrt` is exact everywhere and may be used directly.

pub use libm::{atan2, cbrt, cos, erfc, exp, hypot, log as ln, log10, pow, sin};

/// Rounds to the nearest integer, halves away from zero, and saturates at the bounds of `u64`.
#[inline]
#[must_use]
pub fn round_u64(x: f64) -> u64 {
    let whole = x as u64;
    // Exact: below 2^53 the difference is a float, and beyond it is zero.
    whole.saturating_add(u64::from(x - whole as f64 >= 0.5))
}

/// Rounds up to an integer, and saturates at the bounds of `u64`.
#[inline]
#[must_use]
pub fn ceil_u64(x: f64) -> u64 {
    let whole = x as u64;
    whole.saturating_add(u64::from(x > whole as f64))
}
