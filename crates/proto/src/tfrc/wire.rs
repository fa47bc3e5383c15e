//! The datagram of bare TFRC, inside UDP: the fields of RFC 5348 §3.2.1 and §3.2.2, which leaves
//! the layout open. All numbers are big-endian.
//!
//! ```text
//! data, in front of what it carries      feedback
//! |   'T'   |   'F'   |    0    | t_RTO | |   'T'   |   'F'   |    1    |  zero |
//! |           sequence number           | |  timestamp of the last data packet  |
//! |           timestamp, µs             | |  delay since it arrived, µs         |
//! |           round-trip time, µs       | |  receive rate, bytes per second     |
//!                                         |  loss event rate, units of 2⁻³² p   |
//! ```
//!
//! The first byte, 'T' (0x54), begins with the bits 01: it is never taken for RTP or RTCP, whose
//! version makes it 10, nor for STUN or DTLS (RFC 7983 §7). No port identifies TFRC; the reader
//! must know it ([`Hints::tfrc`]).

use crate::octets::{Ends, Tail};
use crate::packet::Quoted;
use crate::transport::{Layers, PacketFormat};
use crate::udp;
use bytes::Bytes;

use crate::frame;
use crate::octets::{Hints, WireError, at_least, u32_at};
use crate::tfrc::{Data, Feedback, Packet};

/// The first bytes of a datagram.
const MAGIC: [u8; 2] = *b"TF";
const DATA: u8 = 0;
const FEEDBACK: u8 = 1;
/// Bytes in front of a data packet's payload.
pub const DATA_HEADER: usize = 16;
/// Bytes of a feedback packet.
pub const FEEDBACK_BYTES: usize = 20;

/// Appends a datagram's payload.
pub fn emit(packet: &Packet, out: &mut Vec<u8>) {
    let (kind, timeout, fields) = match packet {
        Packet::Data(Data { seq, timestamp, rtt, timeout, .. }) => {
            (DATA, *timeout, [*seq, *timestamp, *rtt])
        }
        Packet::Feedback(Feedback { timestamp, delay, receive_rate, .. }) => {
            (FEEDBACK, 0, [*timestamp, *delay, *receive_rate])
        }
    };
    out.extend_from_slice(&MAGIC);
    out.extend_from_slice(&[kind, timeout]);
    fields.iter().for_each(|field| out.extend_from_slice(&field.to_be_bytes()));
    match packet {
        Packet::Data(data) => frame::emit(&data.payload, out),
        Packet::Feedback(feedback) => {
            out.extend_from_slice(&feedback.loss_event_rate.to_be_bytes());
        }
    }
}

/// Parses a datagram's payload. Bytes after a feedback packet are ignored, so that it may be extended.
///
/// # Errors
/// Truncated bytes, wrong magic, unknown type.
pub fn parse(bytes: &Bytes, hints: Hints) -> Result<Packet, WireError> {
    at_least(bytes, DATA_HEADER, "TFRC header")?;
    if bytes[..2] != MAGIC {
        return Err(WireError::Malformed("not a TFRC datagram"));
    }
    match bytes[2] {
        DATA => Ok(Packet::Data(Data {
            seq: u32_at(bytes, 4),
            timestamp: u32_at(bytes, 8),
            rtt: u32_at(bytes, 12),
            timeout: bytes[3],
            payload: frame::carried(bytes.slice(DATA_HEADER..), hints),
        })),
        FEEDBACK => {
            at_least(bytes, FEEDBACK_BYTES, "TFRC feedback")?;
            Ok(Packet::Feedback(Feedback {
                timestamp: u32_at(bytes, 4),
                delay: u32_at(bytes, 8),
                receive_rate: u32_at(bytes, 12),
                loss_event_rate: u32_at(bytes, 16),
            }))
        }
        _ => Err(WireError::Unsupported("TFRC type")),
    }
}

/// A UDP datagram.
impl PacketFormat for Packet {
    const PROTOCOL: u8 = udp::wire::PROTOCOL;

    #[inline(always)]
    fn layers(&self) -> Layers {
        let (media, payload) = match self {
            Self::Data(data) => data.payload.lengths(),
            Self::Feedback(_) => (0, 0),
        };
        let transport = (udp::wire::HEADER + self.header_bytes()) as u32;
        Layers { transport, media: media as u32, payload: payload as u32 }
    }
    fn quoted(&self) -> Quoted {
        udp::wire::quoted(self.layers().total())
    }
    fn emit(&self, ends: &Ends, out: &mut Vec<u8>) -> Result<Tail, WireError> {
        let payload = |out: &mut Vec<u8>| {
            emit(self, out);
            Ok(())
        };
        udp::wire::emit(ends, payload, out).map(|()| Tail::default())
    }
}
