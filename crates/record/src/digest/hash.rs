//! A hash of pairs of words, for short records whose fields are in registers.
//!
//! The state has two words. Each step adds a word to each of them, multiplies both by an odd constant, rotates
//! one product and adds it to the other. For a given pair, a step is a bijection of the state, and for a
//! given state, of the pair: two sequences that differ in one pair never have the same state. Other
//! differences cancel with a probability of about 2⁻¹²⁸. The exception is a pair of differences in the
//! highest bits of a second word and of the next first word. Such values (2²⁸ packets of a peer, queues of
//! 2⁶⁰ bytes) are beyond what runs have.
//!
//! A step takes six instructions. Hashes of byte streams (XXH3, `SipHash`) take more instructions to write a
//! record's bytes and read them back than for the hash itself, and the published hashes of words (`foldhash`,
//! `rapidhash`) have 64 bits and may change with their version.

/// The state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Hash(u64, u64);

impl Hash {
    /// The state without any words: the fractional digits of π. Any number but 0 would do.
    pub(super) const EMPTY: Self = Self(0x1319_8a2e_0370_7344, 0x243f_6a88_85a3_08d3);

    /// Multiplier of Steele, Vigna 2022: Computationally easy, spectrally good multipliers for
    /// congruential pseudorandom number generators.
    const MULTIPLIER: u64 = 0xd134_2543_de82_ef95;

    /// Adds a pair of words. A difference in the highest bits of the second word alone stays in these
    /// bits, where the next first word could cancel it: what has high bits is better put first.
    #[inline(always)]
    pub(super) const fn pair(self, first: u64, second: u64) -> Self {
        let first = (self.0 ^ first).wrapping_mul(Self::MULTIPLIER).rotate_left(23);
        let second = (self.1 ^ second).wrapping_mul(Self::MULTIPLIER);
        Self(first.wrapping_add(second), first)
    }

    /// Adds bytes, preceded by their number.
    pub(super) fn bytes(self, bytes: &[u8]) -> Self {
        let start = self.pair(bytes.len() as u64, 0);
        bytes.chunks(8).fold(start, |hash, chunk| {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            hash.pair(u64::from_le_bytes(word), 0)
        })
    }

    /// Adds another hash.
    pub(super) const fn hash(self, other: Self) -> Self {
        self.pair(other.0, other.1)
    }

    /// The hash: the state after five more steps, in which the last words reach every bit.
    pub(super) fn finish(self) -> u128 {
        let Self(first, second) = (0..5).fold(self, |hash, _| hash.pair(0, 0));
        u128::from(first) | u128::from(second) << 64
    }
}

/// Two halves of a word.
#[inline(always)]
pub(super) const fn halves(low: u32, high: u32) -> u64 {
    low as u64 | (high as u64) << 32
}

/// Four quarters of half a word.
#[inline(always)]
pub(super) const fn quarters(bytes: [u8; 4]) -> u32 {
    u32::from_le_bytes(bytes)
}
