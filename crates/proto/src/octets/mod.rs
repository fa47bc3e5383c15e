//! The parts of every wire format: addresses and ports, errors, checksums, big-endian fields and
//! the pattern that represents virtual bytes. Independent of any protocol.

pub mod checksum;
pub mod pattern;

use std::net::IpAddr;

use bytes::Bytes;

use crate::gauge::RxError;
use crate::packet::{Ecn, Payload};

/// Addresses and ports of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ends {
    /// Sender's address.
    pub src: IpAddr,
    /// Receiver's address, of the same family.
    pub dst: IpAddr,
    /// Sender's UDP, TCP, DCCP or SCTP port.
    pub src_port: u16,
    /// Receiver's UDP, TCP, DCCP or SCTP port.
    pub dst_port: u16,
}

impl Ends {
    /// Reversed.
    #[must_use]
    pub const fn reversed(self) -> Self {
        Self { src: self.dst, dst: self.src, src_port: self.dst_port, dst_port: self.src_port }
    }
}

/// Facts that the bytes do not contain.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Hints {
    /// A UDP, DCCP, SCTP or TFRC payload is RTP or RTCP, distinguished by RFC 5761 §4; otherwise it
    /// is plain data.
    pub media: bool,
    /// A UDP payload is bare TFRC (RFC 5348).
    pub tfrc: bool,
    /// The payload is part of a virtual stream, from this offset: if its bytes match the
    /// [`pattern`] there, it is parsed as [`Payload::Virtual`], otherwise as real.
    pub virtual_offset: Option<u64>,
}

impl Hints {
    /// The payload in these bytes. An empty payload is virtual.
    pub(crate) fn payload(self, bytes: Bytes) -> Payload {
        match self.virtual_offset {
            Some(offset) if pattern::matches(offset, &bytes) => {
                Payload::Virtual { offset, len: bytes.len() as u64 }
            }
            _ if bytes.is_empty() => Payload::default(),
            _ => Payload::Real(bytes),
        }
    }
}

/// Why parsing or writing a packet failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WireError {
    /// Fewer bytes than the header or a length in it requires.
    #[error("{0} is cut short")]
    Truncated(&'static str),
    /// A field has a value that the RFC forbids.
    #[error("{0}")]
    Malformed(&'static str),
    /// A checksum does not match.
    #[error("wrong {0} checksum")]
    Checksum(&'static str),
    /// Possibly well formed, but of an unsupported kind.
    #[error("{0} is not supported")]
    Unsupported(&'static str),
    /// More bytes than the length field can hold.
    #[error("{0} is too long")]
    TooLong(&'static str),
    /// Source and destination address are of different IP versions.
    #[error("source and destination are of different IP versions")]
    Families,
}

impl WireError {
    /// The error that a driver reports.
    #[must_use]
    pub const fn rx_error(self) -> RxError {
        match self {
            Self::Checksum(_) => RxError::Checksum,
            Self::Unsupported(_) => RxError::Unexpected,
            _ => RxError::Malformed,
        }
    }
}

/// The virtual bytes after those of [`crate::wire::emit_head`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tail {
    /// Offset of the first byte in its stream.
    pub offset: u64,
    /// Number of bytes. Narrower than the offset, so that one load does not read both just after
    /// they were written.
    pub len: u32,
}

impl Tail {
    /// Appends a payload at the end of a packet if it is real.
    pub(crate) fn of(payload: &Payload, out: &mut Vec<u8>) -> Self {
        match payload {
            Payload::Real(bytes) => {
                out.extend_from_slice(bytes);
                Self::default()
            }
            Payload::Virtual { offset, len } => {
                // Emitting the IP header fails if the packet is too long.
                let len = u32::try_from(*len).unwrap_or(u32::MAX);
                Self { offset: *offset, len }
            }
        }
    }
}

/// The two bytes at `at`, which must exist.
pub(crate) fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}
/// The four bytes at `at`, which must exist.
pub(crate) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}
/// The big-endian number of up to eight bytes.
pub(crate) fn number(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0, |number, byte| number << 8 | u64::from(*byte))
}
/// The ECN field in the two low bits (RFC 3168 §5).
#[must_use]
pub const fn ecn(byte: u8) -> Ecn {
    match byte & 0b11 {
        0 => Ecn::NotEct,
        1 => Ecn::Ect1,
        2 => Ecn::Ect0,
        _ => Ecn::Ce,
    }
}
/// Fails for fewer than `needed` bytes.
pub(crate) const fn at_least(
    bytes: &[u8],
    needed: usize,
    what: &'static str,
) -> Result<(), WireError> {
    if bytes.len() < needed { Err(WireError::Truncated(what)) } else { Ok(()) }
}
