//! Sequence numbers that do not wrap: 64-bit positions in a number space whose low 32 bits are on the wire (RFC
//! 9293 §3.4 counts modulo 2³²). They compare as integers; only [`Seq::near`] handles wrapping.

use std::ops::{Add, AddAssign};

/// A position in a sequence space.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Seq(u64);

impl Seq {
    /// The first number of a space, as chosen or as first seen. It lies above 2³² so that numbers
    /// before it exist too.
    #[must_use]
    pub const fn first(wire: u32) -> Self {
        Self(1 << 32 | wire as u64)
    }
    /// The number on the wire.
    #[must_use]
    pub const fn wire(self) -> u32 {
        self.0 as u32
    }
    /// The position nearest to this one with the number `wire` on the wire: at most 2³¹ − 1 ahead
    /// or 2³¹ behind.
    #[must_use]
    pub const fn near(self, wire: u32) -> Self {
        let distance = wire.wrapping_sub(self.wire()) as i32;
        Self(self.0.wrapping_add_signed(distance as i64))
    }
    /// Distance from `earlier` to this position; zero if `earlier` is after it.
    #[must_use]
    pub const fn since(self, earlier: Self) -> u64 {
        self.0.saturating_sub(earlier.0)
    }
    /// The position `count` before this one.
    #[must_use]
    pub const fn back(self, count: u64) -> Self {
        Self(self.0.saturating_sub(count))
    }
}

impl Add<u64> for Seq {
    type Output = Self;
    fn add(self, count: u64) -> Self {
        Self(self.0.wrapping_add(count))
    }
}
impl AddAssign<u64> for Seq {
    fn add_assign(&mut self, count: u64) {
        *self = *self + count;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_wire_wraps_and_the_place_does_not() {
        let start = Seq::first(u32::MAX - 1);
        let later = start + 5;
        assert_eq!(later.wire(), 3);
        assert_eq!(start.near(3), later);
        assert_eq!(later.near(u32::MAX - 1), start);
        assert!(start < later);
        assert_eq!(later.since(start), 5);
        assert_eq!(start.since(later), 0);
    }

    #[test]
    fn half_the_space_lies_on_either_side() {
        let here = Seq::first(0);
        assert!(here.near(0x7fff_ffff) > here);
        assert!(here.near(0x8000_0000) < here);
        assert_eq!(here.near(0x8000_0000).wire(), 0x8000_0000);
    }
}
