//! The parsed TCP segment (RFC 9293 §3.1) and its options (RFC 7323, RFC 2018).

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
    /// ECN-echo (RFC 3168 §6.1).
    pub const ECE: Self = Self(0x40);
    /// Congestion window reduced (RFC 3168 §6.1).
    pub const CWR: Self = Self(0x80);

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
    /// SACK-permitted (kind 4, RFC 2018 §2), on SYN only.
    pub sack_permitted: bool,
    /// TSval and TSecr (kind 8).
    pub timestamps: Option<(u32, u32)>,
    /// Data received beyond `ack` (kind 5); boxed, since most segments have none.
    pub sack: Option<Box<SackBlocks>>,
    /// Data.
    pub payload: Payload,
}

/// The blocks of a SACK option (RFC 2018 §3): one to four runs of received data, each by its first
/// number and the one after its last.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SackBlocks {
    blocks: [(u32, u32); Self::MOST],
    count: u8,
}

impl SackBlocks {
    /// Maximum that fits in 40 bytes of options (RFC 2018 §3).
    pub const MOST: usize = 4;

    /// The option with these blocks; `None` if empty. Blocks after the fourth are omitted.
    pub fn of(blocks: impl IntoIterator<Item = (u32, u32)>) -> Option<Box<Self>> {
        let mut blocks = blocks.into_iter();
        let first = blocks.next()?;
        // Written in place: moving data just written stalls.
        let mut all = Box::<Self>::default();
        all.blocks[0] = first;
        all.count = 1;
        for (place, block) in all.blocks[1..].iter_mut().zip(blocks) {
            *place = block;
            all.count += 1;
        }
        Some(all)
    }
    /// The blocks, in wire order.
    #[must_use]
    pub fn as_slice(&self) -> &[(u32, u32)] {
        &self.blocks[..usize::from(self.count)]
    }
    /// Bytes of an option with `count` blocks, including the two no-operations that align it.
    #[must_use]
    pub const fn option_bytes(count: usize) -> usize {
        4 + 8 * count
    }
}

impl Segment {
    /// Header with options, each padded to four bytes; SACK-permitted replaces the timestamps'
    /// padding if both are present.
    #[inline]
    #[must_use]
    pub fn header_bytes(&self) -> usize {
        let permitted = if self.sack_permitted && self.timestamps.is_none() { 4 } else { 0 };
        20 + self.mss.map_or(0, |_| 4)
            + self.window_scale.map_or(0, |_| 4)
            + permitted
            + self.timestamps.map_or(0, |_| 12)
            + self.sack.as_ref().map_or(0, |s| SackBlocks::option_bytes(s.as_slice().len()))
    }
}
