//! RTP and RTCP over a byte stream (RFC 4571): each packet follows a two-byte length.
//!
//! [`frame()`] produces the bytes for a stream transport; a [`Deframer`] reassembles packets from the pieces
//! that arrive. RTP and RTCP share the stream and are distinguished by their second byte (RFC 5761 §4).

use bytes::{Buf as _, Bytes, BytesMut};

use crate::frame;
use crate::frame::Frame;
use crate::octets::Hints;

/// Bytes of LENGTH (RFC 4571 §2).
pub const LENGTH_BYTES: usize = 2;

/// The media packet with its length in front; `None` for plain data, which has no such framing, and
/// for a packet of more than 65535 bytes.
#[must_use]
pub fn frame(frame: &Frame) -> Option<Bytes> {
    if matches!(frame, Frame::Data(_)) {
        return None;
    }
    let length = u16::try_from(frame.wire_bytes()).ok()?;
    let mut bytes = Vec::with_capacity(LENGTH_BYTES + usize::from(length));
    // RFC 4571 §2: LENGTH in network byte order, itself not counted.
    bytes.extend_from_slice(&length.to_be_bytes());
    frame::emit(frame, &mut bytes);
    Some(bytes.into())
}

/// Cuts a byte stream into media packets.
///
/// It holds bytes that were pushed and not yet taken; if emptied after each push, less than one
/// frame of 65537 bytes.
#[derive(Debug, Default)]
pub struct Deframer {
    buffer: BytesMut,
    rx_error: u64,
}

impl Deframer {
    /// A deframer at the beginning of a stream.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes the next bytes of the stream, in order.
    pub fn push(&mut self, bytes: Bytes) {
        if self.buffer.is_empty() {
            // Without a copy if the bytes are not shared.
            self.buffer = bytes.into();
        } else {
            self.buffer.extend_from_slice(&bytes);
        }
    }

    fn next_packet(&mut self) -> Option<Bytes> {
        let length = self.buffer.first_chunk().copied().map(u16::from_be_bytes)?;
        if self.buffer.len() < LENGTH_BYTES + usize::from(length) {
            return None;
        }
        self.buffer.advance(LENGTH_BYTES);
        Some(self.buffer.split_to(usize::from(length)).freeze())
    }

    /// Packets that were neither RTP nor RTCP.
    #[must_use]
    pub const fn rx_error(&self) -> u64 {
        self.rx_error
    }
    /// Bytes waiting for the rest of their packet.
    #[must_use]
    pub fn waiting_bytes(&self) -> usize {
        self.buffer.len()
    }
}

impl Iterator for Deframer {
    type Item = Frame;

    /// The next packet, or `None` until more bytes come. A packet that is neither RTP nor RTCP is
    /// counted and skipped; its length still locates the next one.
    fn next(&mut self) -> Option<Frame> {
        loop {
            let packet = self.next_packet()?;
            // RFC 4571 §2: a length of zero is valid and codes the null packet.
            if packet.is_empty() {
                continue;
            }
            match frame::parse_media(&packet, Hints::default()) {
                Ok(frame) => return Some(frame),
                Err(_) => self.rx_error += 1,
            }
        }
    }
}
