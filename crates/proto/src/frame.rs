//! One unit of application data: plain bytes, or a media or control packet.

use bytes::Bytes;

use crate::octets::{Hints, WireError, pattern};
use crate::packet::Payload;
use crate::{rtcp, rtp};

/// One unit of application data, as handed to and delivered by an endpoint.
#[derive(Clone, Debug, PartialEq)]
pub enum Frame {
    /// Bytes without further structure (bulk, constant bit rate, a stream's bytes).
    Data(Payload),
    /// A media packet (RFC 3550).
    Rtp(rtp::Packet),
    /// A compound control packet (RFC 3550 §6.1).
    Rtcp(Box<rtcp::Compound>),
}

impl Default for Frame {
    /// No bytes.
    fn default() -> Self {
        Self::Data(Payload::default())
    }
}

impl Frame {
    /// Bytes of the media layer (RTP's header, or all of an RTCP packet) and of payload, with padding.
    #[inline]
    #[must_use]
    pub fn lengths(&self) -> (usize, usize) {
        match self {
            Self::Data(payload) => (0, payload.len()),
            Self::Rtp(packet) => {
                (packet.header_bytes(), packet.payload.len() + usize::from(packet.padding))
            }
            Self::Rtcp(compound) => (compound.wire_bytes(), 0),
        }
    }
    /// Length on the wire in bytes.
    #[must_use]
    pub fn wire_bytes(&self) -> usize {
        let (header, payload) = self.lengths();
        header + payload
    }
}

/// Appends a frame as a UDP payload or an RFC 4571 frame carries it.
pub fn emit(frame: &Frame, out: &mut Vec<u8>) {
    match frame {
        Frame::Data(payload) => pattern::emit(payload, out),
        Frame::Rtp(packet) => rtp::wire::emit(packet, out),
        Frame::Rtcp(compound) => rtcp::wire::emit(compound, out),
    }
}

/// RTP or RTCP, by the second byte (RFC 5761 §4: 192 to 223 are RTCP packet types).
///
/// # Errors
/// As [`rtp::wire::parse`] and [`rtcp::wire::parse`].
pub fn parse_media(bytes: &Bytes, hints: Hints) -> Result<Frame, WireError> {
    match bytes.get(1) {
        Some(192..=223) => rtcp::wire::parse(bytes).map(|compound| Frame::Rtcp(Box::new(compound))),
        _ => rtp::wire::parse(bytes, hints).map(Frame::Rtp),
    }
}

/// Parses the payload of a transport packet: media where expected. Bytes that are no media packet
/// stay data, since the packet around them is counted and acknowledged anyway.
pub(crate) fn carried(bytes: Bytes, hints: Hints) -> Frame {
    if hints.media
        && let Ok(media) = parse_media(&bytes, hints)
    {
        return media;
    }
    Frame::Data(hints.payload(bytes))
}
