//! The Internet checksum (RFC 1071) and the pseudo-headers under it (RFC 768, RFC 9293 §3.1,
//! RFC 8200 §8.1); and CRC-32c.

use std::net::IpAddr;

/// A partial ones' complement sum. All parts but the last must have an even length.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sum(u64);

impl Sum {
    /// The sum over the pseudo-header of an upper-layer packet of `len` bytes.
    #[must_use]
    pub fn pseudo_header(src: IpAddr, dst: IpAddr, protocol: u8, len: usize) -> Self {
        let mut sum = Self::default().over_address(src).over_address(dst);
        sum.0 += u64::from(protocol) + (len as u64 >> 16) + (len as u64 & 0xffff);
        sum
    }

    fn over_address(self, address: IpAddr) -> Self {
        match address {
            IpAddr::V4(address) => self.over(&address.octets()),
            IpAddr::V6(address) => self.over(&address.octets()),
        }
    }

    /// Adds these bytes; an odd byte at the end is padded with zero (RFC 1071 §1).
    #[must_use]
    pub fn over(mut self, bytes: &[u8]) -> Self {
        // RFC 1071 §2 (B) and (C): the sum of four-byte words of any byte order folds to the same
        // value except for its byte order, so no word needs a swap.
        let (fours, rest) = bytes.as_chunks::<4>();
        let sum = fours.iter().map(|four| u64::from(u32::from_le_bytes(*four))).sum::<u64>();
        self = self.and(Self::turned(sum));
        let (twos, rest) = rest.as_chunks::<2>();
        self.0 += twos.iter().map(|two| u64::from(u16::from_be_bytes(*two))).sum::<u64>();
        if let [last] = rest {
            self.0 += u64::from(*last) << 8;
        }
        self
    }

    /// From a sum over words of four bytes in the other order.
    pub(super) fn turned(sum: u64) -> Self {
        Self(fold(sum).swap_bytes().into())
    }

    /// The sum of the same bytes at an odd offset.
    pub(super) fn odd(self) -> Self {
        Self::turned(self.0)
    }

    /// The sum of both.
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        Self(self.0 + other.0)
    }

    /// The sum over words of four bytes.
    pub(crate) fn of_words<const N: usize>(words: [u32; N]) -> Self {
        Self(words.into_iter().map(u64::from).sum())
    }

    /// The checksum to write: the complement of the folded sum. Over a packet that holds its
    /// checksum it is zero.
    #[must_use]
    pub const fn finish(self) -> u16 {
        !fold(self.0)
    }
}

const fn fold(mut sum: u64) -> u16 {
    while sum > 0xffff {
        sum = (sum >> 16) + (sum & 0xffff);
    }
    sum as u16
}

static CASTAGNOLI: crc::Crc<u32> = crc::Crc::<u32>::new(&crc::CRC_32_ISCSI);

/// The CRC-32c (RFC 3309, RFC 3720) of these bytes: SCTP's checksum, and what the Data Checksum
/// option of DCCP holds (RFC 4340 §9.3).
#[must_use]
pub fn crc32c(bytes: &[u8]) -> u32 {
    CASTAGNOLI.checksum(bytes)
}
