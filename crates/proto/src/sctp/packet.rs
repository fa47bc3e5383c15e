//! An SCTP packet as endpoints see it (RFC 9260 §3): a Verification Tag and chunks. `wire::sctp`
//! converts it to and from bytes. DATA and I-DATA (RFC 8260 §2.1) share a type, since they differ
//! only in message numbering; so do FORWARD TSN (RFC 3758 §3.2) and I-FORWARD-TSN.

use bytes::Bytes;

use super::cause::Cause;
use super::parameter::Parameter;
use crate::frame::Frame;

/// Bytes of the common header (RFC 9260 §3.1).
pub const COMMON_HEADER: usize = 12;
/// Bytes before the value of a chunk (§3.2).
pub const CHUNK_HEADER: usize = 4;

/// An SCTP packet, without ports and checksum.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Packet {
    /// Verification Tag (§3.1): chosen by its receiver.
    pub tag: u32,
    /// Its chunks, in order.
    pub chunks: Vec<Chunk>,
}

/// A chunk (RFC 9260 §3.3).
#[derive(Clone, Debug, PartialEq)]
pub enum Chunk {
    /// 0 or 64: a message or part of one.
    Data(Data),
    /// 1: opens an association.
    Init(Init),
    /// 2: answers an INIT.
    InitAck(Init),
    /// 3: acknowledges.
    Sack(Sack),
    /// 4: tests a path; the value is to be echoed.
    Heartbeat(Bytes),
    /// 5: echoes the value of a HEARTBEAT.
    HeartbeatAck(Bytes),
    /// 6: the association is over.
    Abort {
        /// The T bit: the Verification Tag is that of the packet answered (§8.5.1).
        reflected: bool,
        /// Why.
        causes: Vec<Cause>,
    },
    /// 7: its sender has no more data.
    Shutdown {
        /// Cumulative TSN Ack.
        cumulative: u32,
    },
    /// 8: answers a SHUTDOWN.
    ShutdownAck,
    /// 9: something was wrong.
    Error(Vec<Cause>),
    /// 10: the State Cookie, sent back.
    CookieEcho(Bytes),
    /// 11: the association is open.
    CookieAck,
    /// 12: a packet was marked by the network (RFC 4960 appendix A; RFC 9260 §3.2 reserves it).
    Ecne {
        /// TSN of the first DATA chunk in it.
        lowest: u32,
    },
    /// 13: answers an ECNE.
    Cwr {
        /// TSN up to which marks are answered.
        lowest: u32,
    },
    /// 14: answers a SHUTDOWN ACK.
    ShutdownComplete {
        /// The T bit, as in ABORT.
        reflected: bool,
    },
    /// 192 or 194: its sender has given up earlier chunks.
    ForwardTsn(ForwardTsn),
    /// Of unknown type.
    Unknown {
        /// Type; its two highest bits say what to do with it (§3.2).
        kind: u8,
        /// Flags.
        flags: u8,
        /// Value.
        value: Bytes,
    },
}

/// A DATA chunk (RFC 9260 §3.3.1) or I-DATA chunk (RFC 8260 §2.1).
#[derive(Clone, Debug, PartialEq)]
pub struct Data {
    /// I: the receiver should not delay its SACK (RFC 7053).
    pub immediate: bool,
    /// U: delivered without regard to order.
    pub unordered: bool,
    /// B: first part of a message.
    pub beginning: bool,
    /// E: last part of a message.
    pub ending: bool,
    /// Transmission Sequence Number.
    pub tsn: u32,
    /// Stream Identifier.
    pub stream: u16,
    /// The message's number in its stream.
    pub number: Number,
    /// Payload Protocol Identifier; 0 and not sent in an I-DATA chunk that is not the first part.
    pub ppid: u32,
    /// User Data: a whole message, or bytes of one.
    pub payload: Frame,
}

/// Number of a message in its stream; it determines the chunk's type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Number {
    /// DATA: Stream Sequence Number.
    Ssn(u16),
    /// I-DATA: Message Identifier, and the Fragment Sequence Number, 0 on a first part.
    Mid(u32, u32),
}

impl Data {
    /// Bytes of the chunk without its user data and padding.
    #[must_use]
    pub const fn header_bytes(&self) -> usize {
        match self.number {
            Number::Ssn(_) => 16,
            Number::Mid(..) => 20,
        }
    }
}

/// An INIT or INIT ACK chunk (RFC 9260 §3.3.2, §3.3.3).
#[derive(Clone, Debug, PartialEq)]
pub struct Init {
    /// Initiate Tag: the tag of packets to this chunk's sender.
    pub tag: u32,
    /// Advertised Receiver Window Credit in bytes.
    pub a_rwnd: u32,
    /// Number of Outbound Streams.
    pub outbound: u16,
    /// Number of Inbound Streams.
    pub inbound: u16,
    /// Initial TSN.
    pub tsn: u32,
    /// Parameters, in order.
    pub parameters: Vec<Parameter>,
}

/// A SACK chunk (RFC 9260 §3.3.4).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sack {
    /// Cumulative TSN Ack.
    pub cumulative: u32,
    /// Advertised Receiver Window Credit in bytes.
    pub a_rwnd: u32,
    /// Gap Ack Blocks: first and last TSN of each, counted from the Cumulative TSN Ack.
    pub gaps: Vec<(u16, u16)>,
    /// TSNs received again since the last SACK.
    pub duplicates: Vec<u32>,
}

/// A FORWARD TSN chunk (RFC 3758 §3.2) or I-FORWARD-TSN chunk (RFC 8260 §2.3.1).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ForwardTsn {
    /// New Cumulative TSN.
    pub cumulative: u32,
    /// The last message skipped in each affected stream.
    pub skipped: Skipped,
}

/// Last messages skipped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Skipped {
    /// FORWARD TSN: stream and Stream Sequence Number, ordered messages only.
    Ssn(Vec<(u16, u16)>),
    /// I-FORWARD-TSN: stream, whether unordered, and Message Identifier.
    Mid(Vec<(u16, bool, u32)>),
}

impl Chunk {
    /// The Chunk Type.
    #[must_use]
    pub const fn number(&self) -> u8 {
        match self {
            Self::Data(Data { number: Number::Ssn(_), .. }) => 0,
            Self::Data(_) => 64,
            Self::Init(_) => 1,
            Self::InitAck(_) => 2,
            Self::Sack(_) => 3,
            Self::Heartbeat(_) => 4,
            Self::HeartbeatAck(_) => 5,
            Self::Abort { .. } => 6,
            Self::Shutdown { .. } => 7,
            Self::ShutdownAck => 8,
            Self::Error(_) => 9,
            Self::CookieEcho(_) => 10,
            Self::CookieAck => 11,
            Self::Ecne { .. } => 12,
            Self::Cwr { .. } => 13,
            Self::ShutdownComplete { .. } => 14,
            Self::ForwardTsn(ForwardTsn { skipped: Skipped::Ssn(_), .. }) => 192,
            Self::ForwardTsn(_) => 194,
            Self::Unknown { kind, .. } => *kind,
        }
    }

    /// Bytes of header and value: the Chunk Length (§3.2).
    #[must_use]
    pub fn length(&self) -> usize {
        CHUNK_HEADER
            + match self {
                Self::Data(data) => {
                    return data.header_bytes() + data.payload.wire_bytes();
                }
                Self::Init(init) | Self::InitAck(init) => {
                    16 + padded_but_last(init.parameters.iter().map(Parameter::length))
                }
                Self::Sack(sack) => 12 + 4 * (sack.gaps.len() + sack.duplicates.len()),
                Self::Heartbeat(value) | Self::HeartbeatAck(value) => value.len(),
                Self::Abort { causes, .. } | Self::Error(causes) => {
                    padded_but_last(causes.iter().map(Cause::length))
                }
                Self::Shutdown { .. } | Self::Ecne { .. } | Self::Cwr { .. } => 4,
                Self::ShutdownAck | Self::CookieAck | Self::ShutdownComplete { .. } => 0,
                Self::CookieEcho(cookie) => cookie.len(),
                Self::ForwardTsn(forward) => {
                    4 + match &forward.skipped {
                        Skipped::Ssn(skipped) => 4 * skipped.len(),
                        Skipped::Mid(skipped) => 8 * skipped.len(),
                    }
                }
                Self::Unknown { value, .. } => value.len(),
            }
    }

    /// Bytes in a packet: the length padded to a multiple of four.
    #[must_use]
    pub fn wire_bytes(&self) -> usize {
        self.length().next_multiple_of(4)
    }
}

/// Bytes of parameters or causes of these lengths, each but the last padded (§3.2: the padding of
/// the last one is the chunk's).
fn padded_but_last(lengths: impl Iterator<Item = usize>) -> usize {
    lengths.fold(0, |sum: usize, length| sum.next_multiple_of(4) + length)
}

impl Packet {
    /// A packet of one chunk.
    #[must_use]
    pub fn of(tag: u32, chunk: Chunk) -> Self {
        Self { tag, chunks: vec![chunk] }
    }

    /// Bytes of the whole packet.
    #[must_use]
    pub fn wire_bytes(&self) -> usize {
        COMMON_HEADER + self.chunks.iter().map(Chunk::wire_bytes).sum::<usize>()
    }

    /// Bytes of all but messages, and of the messages' media headers and payload.
    #[must_use]
    pub fn lengths(&self) -> (usize, usize, usize) {
        let (mut transport, mut media, mut payload) = (COMMON_HEADER, 0, 0);
        for chunk in &self.chunks {
            transport += chunk.wire_bytes();
            if let Chunk::Data(data) = chunk {
                let (header, rest) = data.payload.lengths();
                transport -= header + rest;
                (media, payload) = (media + header, payload + rest);
            }
        }
        (transport, media, payload)
    }
}
