//! DCCP sequence numbers (RFC 4340 §7): 48 bits that count packets, of which 24 may be sent.
//!
//! As in `seq`, a [`SeqNo`] does not wrap: it is a position in a 64-bit space whose low bits are on
//! the wire, and only [`SeqNo::near`] handles wrapping.

use std::ops::Add;

/// Number of extended sequence numbers: 2⁴⁸.
const SPACE: u64 = 1 << 48;
/// Number of short sequence numbers: 2²⁴.
const SHORT_SPACE: u64 = 1 << 24;

/// Sequence Window of new connections (§7.5.2).
pub const DEFAULT_WINDOW: u64 = 100;
/// Smallest Sequence Window (§7.5.2).
pub const MIN_WINDOW: u64 = 32;
/// Largest Sequence Window (§7.5.2: 2⁴⁶ − 1).
pub const GREATEST_WINDOW: u64 = (1 << 46) - 1;

/// A position in a sequence space.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SeqNo(u64);

/// A sequence number on the wire (§5.1, the X bit).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WireSeq {
    /// X = 1: 48 bits.
    Extended(u64),
    /// X = 0: the low 24 bits, on Data, Ack and `DataAck` only, where Allow Short Seqnos is on.
    Short(u32),
}

impl WireSeq {
    /// True in extended form.
    #[must_use]
    pub const fn is_extended(self) -> bool {
        matches!(self, Self::Extended(_))
    }
}

impl SeqNo {
    /// The first number of a space, as chosen or first received. It lies above 2⁴⁸ so that there are
    /// numbers before it.
    #[must_use]
    pub const fn first(wire: u64) -> Self {
        Self(SPACE | (wire & (SPACE - 1)))
    }
    /// In extended form.
    #[must_use]
    pub const fn extended(self) -> WireSeq {
        WireSeq::Extended(self.0 & (SPACE - 1))
    }
    /// In short form.
    #[must_use]
    pub const fn short(self) -> WireSeq {
        WireSeq::Short((self.0 & (SHORT_SPACE - 1)) as u32)
    }
    /// The position nearest to this one with these wire bits (§7.6 for the short form).
    #[must_use]
    pub const fn near(self, wire: WireSeq) -> Self {
        let (value, space) = match wire {
            WireSeq::Extended(value) => (value, SPACE),
            WireSeq::Short(value) => (value as u64, SHORT_SPACE),
        };
        let ahead = value.wrapping_sub(self.0) & (space - 1);
        if ahead < space / 2 {
            Self(self.0 + ahead)
        } else {
            Self((self.0 + ahead).saturating_sub(space))
        }
    }
    /// How far this position is after `earlier`; zero if it is not.
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

impl Add<u64> for SeqNo {
    type Output = Self;
    fn add(self, count: u64) -> Self {
        Self(self.0.saturating_add(count))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_wrap_and_the_place_does_not() {
        let start = SeqNo::first(SPACE - 2);
        let later = start + 5;
        assert_eq!(later.extended(), WireSeq::Extended(3));
        assert_eq!(later.short(), WireSeq::Short(3));
        for wire in [later.extended(), later.short()] {
            assert_eq!(start.near(wire), later);
        }
        for wire in [start.extended(), start.short()] {
            assert_eq!(later.near(wire), start);
        }
        assert_eq!((later.since(start), start.since(later)), (5, 0));
    }
}
