//! The datagram of bare TFRC, inside UDP: the fields of RFC 5348 §3.2.1 and §3.2.2, which leaves
//! their layout to whoever carries them. All numbers are big-endian.
//!
//! ```text
//! data, in front of what it carries      feedback
//! |   'T'   |   'F'   |    0    |  zero | |   'T'   |   'F'   |    1    |  zero |
//! |           sequence number           | |  timestamp of the last data packet  |
//! |           timestamp, µs             | |  delay since it arrived, µs         |
//! |           round-trip time, µs       | |  receive rate, bytes per second     |
//!                                         |  loss event rate, units of 2⁻³² p   |
//! ```
//!
//! The first byte, 'T' (0x54), begins with the bits 01: never taken for RTP or RTCP, whose version
//! makes it 10, nor for STUN or DTLS (RFC 7983 §7). No port says that a datagram is TFRC; the
//! reader knows it ([`Hints::tfrc`]).

use bytes::Bytes;

use crate::frame;
use crate::octets::{Hints, WireError, at_least, u32_at};
use crate::tfrc::{Data, Feedback, Packet};

/// What a datagram begins with.
const MAGIC: [u8; 2] = *b"TF";
const DATA: u8 = 0;
const FEEDBACK: u8 = 1;
/// Bytes in front of what a data packet carries.
pub const DATA_HEADER: usize = 16;
/// Bytes of a feedback packet.
pub const FEEDBACK_BYTES: usize = 20;

/// Appends a datagram's payload.
pub fn emit(packet: &Packet, out: &mut Vec<u8>) {
    let (kind, fields) = match packet {
        Packet::Data(Data { seq, timestamp, rtt, .. }) => (DATA, [*seq, *timestamp, *rtt]),
        Packet::Feedback(Feedback { timestamp, delay, receive_rate, .. }) => {
            (FEEDBACK, [*timestamp, *delay, *receive_rate])
        }
    };
    out.extend_from_slice(&MAGIC);
    out.extend_from_slice(&[kind, 0]);
    fields.iter().for_each(|field| out.extend_from_slice(&field.to_be_bytes()));
    match packet {
        Packet::Data(data) => frame::emit(&data.payload, out),
        Packet::Feedback(feedback) => {
            out.extend_from_slice(&feedback.loss_event_rate.to_be_bytes());
        }
    }
}

/// Reads a datagram's payload. What follows a feedback packet is left, so that it may grow.
///
/// # Errors
/// Truncated bytes, other first bytes, another type.
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
