//! RTP, the packet format of live media (RFC 3550 §5), how a source stamps it ([`Sender`]) and
//! what its receiver measures ([`Receiver`]: RFC 3550 appendices A.1, A.3 and A.8).
//!
//! The `Sender` gives encoded frames their sequence number and timestamp; the `Receiver` validates
//! and counts arriving packets. Lost packets of video are requested ([`Pictures`]) and repeated ([`rtx`]).
//! This module does not play, queue or send.

mod extension;
pub mod flexfec;
mod nack;
mod pictures;
mod receiver;
pub mod rtx;
mod sender;
pub mod vp8;
pub mod wire;

pub use pictures::{Pictures, Requests};
pub use receiver::{Arrival, Receiver, Reception};
pub use sender::Sender;

use std::num::NonZeroU32;

use crate::packet::Payload;

/// An RTP packet.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Packet {
    /// Payload type (RFC 3551 §6: 0 is PCMU, 8 is PCMA).
    pub payload_type: u8,
    /// Marker: first packet of a talkspurt (RFC 3551 §4.1).
    pub marker: bool,
    /// Sequence number.
    pub sequence: u16,
    /// Media clock of the first sample.
    pub timestamp: u32,
    /// Synchronisation source.
    pub ssrc: u32,
    /// The first contributing source: of a repair packet, the source that it protects (RFC 8627
    /// §4.2.1). Without the value 0, a packet is not longer in memory.
    pub csrc: Option<NonZeroU32>,
    /// Transport-wide sequence number, in a header extension
    /// (draft-holmer-rmcat-transport-wide-cc-extensions-01 §2).
    pub transport: Option<u16>,
    /// Bytes of padding after the payload.
    pub padding: u8,
    /// Encoded media.
    pub payload: Payload,
}

/// Bytes of header without contributing sources and extensions (RFC 3550 §5.1).
pub const HEADER_BYTES: usize = 12;
/// Bytes of a contributing source in the header (RFC 3550 §5.1).
pub const CSRC_BYTES: usize = 4;
/// Bytes of the header extension with a transport-wide sequence number (RFC 8285 §4.2).
pub const TRANSPORT_BYTES: usize = 8;

impl Packet {
    /// Bytes of header: [`HEADER_BYTES`], [`CSRC_BYTES`] with a contributing source, and [`TRANSPORT_BYTES`]
    /// with a transport-wide sequence number.
    #[must_use]
    pub const fn header_bytes(&self) -> usize {
        HEADER_BYTES
            + if self.csrc.is_some() { CSRC_BYTES } else { 0 }
            + if self.transport.is_some() { TRANSPORT_BYTES } else { 0 }
    }

    /// Length on the wire in bytes.
    #[must_use]
    pub fn wire_bytes(&self) -> usize {
        self.header_bytes() + self.payload.len() + usize::from(self.padding)
    }
}

#[cfg(target_pointer_width = "64")]
const _: () = assert!(size_of::<Packet>() == 56);
