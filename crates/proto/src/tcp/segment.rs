//! The parsed TCP segment (RFC 9293 §3.1) and its options (RFC 7323).

use crate::packet::Payload;

/// Control bits (RFC 9293 §3.1), in wire order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flags(pub u8);

impl Flags {
    /// No more data from the sender.
    pub const FIN: Self = Self(0x01);
    /// Synchronise sequence numbers.
    pub const SYN: Self = Self(0x02);
    /// Reset the connection.
    pub const RST: Self = Self(0x04);
    /// Push.
    pub const PSH: Self = Self(0x08);
    /// The acknowledgement field is significant.
    pub const ACK: Self = Self(0x10);

    /// True if every bit of `other` is set.
    #[must_use]
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
}

impl std::ops::BitOr for Flags {
    type Output = Self;
    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// A segment with the options this endpoint uses.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Segment {
    /// Sequence number of the first byte (or of the SYN).
    pub seq: u32,
    /// Next sequence number expected, if ACK is set.
    pub ack: u32,
    /// Window as on the wire, unscaled.
    pub window: u16,
    /// Control bits.
    pub flags: Flags,
    /// Maximum segment size (kind 2), on SYN only.
    pub mss: Option<u16>,
    /// Window scale shift (kind 3), on SYN only.
    pub window_scale: Option<u8>,
    /// TSval and TSecr (kind 8).
    pub timestamps: Option<(u32, u32)>,
    /// Data.
    pub payload: Payload,
}

impl Segment {
    /// Header with options, padded to four bytes.
    #[inline]
    #[must_use]
    pub fn header_bytes(&self) -> usize {
        let options = self.mss.map_or(0, |_| 4)
            + self.window_scale.map_or(0, |_| 3)
            + self.timestamps.map_or(0, |_| 10);
        20 + usize::next_multiple_of(options, 4)
    }
}
