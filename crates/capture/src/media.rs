//! What the payload of a datagram is by its first bytes: RTP, RTCP, STUN, DTLS, ZRTP or a channel of TURN
//! (RFC 7983 §7, RFC 5761 §4), and what a message of TURN relays (RFC 8656). Since nothing says that a datagram
//! is one of these, its length must agree with it, too. Depends on no other module.

use std::ops::Range;

/// What the payload of a datagram is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Media {
    /// RTP, or SRTP.
    Rtp {
        /// Synchronisation source.
        ssrc: u32,
        /// Sequence number.
        seq: u16,
        /// Timestamp.
        timestamp: u32,
        /// Payload type.
        payload_type: u8,
        /// Marker.
        marker: bool,
        /// Whether there is a header extension.
        extension: bool,
        /// Length of the header with contributing sources and extension.
        header_bytes: u32,
        /// Bytes of padding, the last of which says how many there are. 0 also if it was not captured, or if
        /// there cannot be so many: SRTP encrypts it (RFC 3711 §3.1).
        padding_bytes: u32,
        /// Where the captured bytes of the payload, without padding, are in the IP packet that was read. `None`
        /// if the capture ends in the header.
        payload: Option<Range<u32>>,
    },
    /// RTCP, or SRTCP.
    Rtcp,
    /// STUN, and TURN without data.
    Stun,
    /// DTLS: a record with a version, or one of DTLS 1.3 with a length.
    Dtls,
    /// ZRTP.
    Zrtp,
    /// `ChannelData` of TURN without data, or whose data was not captured.
    TurnChannel,
    /// None of these.
    Other,
}

/// What the payload of a datagram is whose length is `length`, and of which these bytes were captured. They
/// begin at `at` in the IP packet.
pub(crate) fn classify(bytes: &[u8], length: usize, at: usize) -> Media {
    let is = match bytes.first() {
        Some(0..=3) if stun(bytes, length) => Some(Media::Stun),
        // RFC 6189 §5: the magic cookie is "ZRTP".
        Some(16..=19) if bytes.get(4..8) == Some(b"ZRTP") => Some(Media::Zrtp),
        Some(20..=63) if dtls(bytes, length) => Some(Media::Dtls),
        Some(64..=79) if channel(bytes, length).is_some() => Some(Media::TurnChannel),
        Some(128..=191) if rtcp(bytes, length) => Some(Media::Rtcp),
        Some(128..=191) => rtp(bytes, length, at),
        _ => None,
    };
    is.unwrap_or(Media::Other)
}

/// RFC 3550 §5.1.
fn rtp(bytes: &[u8], length: usize, at: usize) -> Option<Media> {
    let (first, second) = (bytes[0], *bytes.get(1)?);
    let payload_type = second & 0x7f;
    // RFC 5761 §4: SR, RR, SDES, BYE and APP without their first bit.
    if (72..=76).contains(&payload_type) {
        return None;
    }
    let extension = first & 0x10 != 0;
    let mut header = 12 + 4 * usize::from(first & 0xf);
    if extension {
        // Its length may have been cut off.
        header += 4 + 4 * usize::from(be16(bytes, header + 2).unwrap_or(0));
    }
    let most = length.checked_sub(header)?;
    let last = bytes.get(length - 1).filter(|_| first & 0x20 != 0);
    let padding = last.map_or(0, |count| usize::from(*count));
    let padding = if padding <= most { padding } else { 0 };
    let end = bytes.len().min(length - padding);
    Some(Media::Rtp {
        seq: be16(bytes, 2)?,
        timestamp: be32(bytes, 4)?,
        ssrc: be32(bytes, 8)?,
        payload_type,
        marker: second & 0x80 != 0,
        extension,
        header_bytes: header as u32,
        padding_bytes: padding as u32,
        payload: (header <= end).then(|| range(at + header, at + end)),
    })
}

/// RFC 5761 §4: packet types 192 to 223. The first packet must fit (RFC 3550 §A.2); SRTCP encrypts the others.
fn rtcp(bytes: &[u8], length: usize) -> bool {
    let fits = |words: u16| 4 + 4 * usize::from(words) <= length;
    bytes.get(1).is_some_and(|kind| (192..=223).contains(kind)) && be16(bytes, 2).is_none_or(fits)
}

/// RFC 8489 §5. Without the magic cookie it is a message of RFC 3489: those for binding and for shared secrets.
fn stun(bytes: &[u8], length: usize) -> bool {
    let (Some(kind), Some(size)) = (be16(bytes, 0), be16(bytes, 2)) else { return false };
    let whole = 20 + usize::from(size);
    match be32(bytes, 4) {
        Some(0x2112_a442) => size % 4 == 0 && whole <= length,
        Some(_) => {
            let known = matches!(kind, 0x001 | 0x101 | 0x111 | 0x002 | 0x102 | 0x112);
            known && size % 4 == 0 && whole == length
        }
        None => false,
    }
}

/// RFC 9147 §4: a record with the version of DTLS 1.0 or 1.2, or with the unified header of DTLS 1.3.
fn dtls(bytes: &[u8], length: usize) -> bool {
    let fits = |at: usize| {
        be16(bytes, at).is_none_or(|size| size > 0 && at + 2 + usize::from(size) <= length)
    };
    match *bytes {
        // The header of a record with a connection identifier (25) has no fixed length.
        [25, 0xfe, 0xff | 0xfd, ..] => true,
        [20..=26, 0xfe, 0xff | 0xfd, ..] => fits(11),
        // The bits are: connection identifier, which must not be there, sequence number of 16 bits, length.
        [first @ 32..=47, ..] if first & 4 != 0 => fits(if first & 8 == 0 { 2 } else { 3 }),
        _ => false,
    }
}

/// Where the application data of a message of TURN begins in the datagram, and its length: `ChannelData`, or a
/// Send or Data indication. What is left of the datagram is framing and padding.
pub(crate) fn relayed(bytes: &[u8], length: usize) -> Option<(usize, usize)> {
    if let Some(size) = channel(bytes, length) {
        return Some((4, size));
    }
    // RFC 8656 §17: the methods 6 and 7; RFC 8489 §5 places the class, indication, between their bits.
    if !matches!(be16(bytes, 0)?, 0x0016 | 0x0017) || !stun(bytes, length) {
        return None;
    }
    let (mut at, end) = (20, 20 + usize::from(be16(bytes, 2)?));
    while at < end {
        let size = usize::from(be16(bytes, at + 2)?);
        // RFC 8656 §18.4: DATA.
        if be16(bytes, at)? == 0x0013 {
            return (at + 4 + size <= end).then_some((at + 4, size));
        }
        at += 4 + size.next_multiple_of(4);
    }
    None
}

/// The length of the data in a `ChannelData` message (RFC 8656 §12.4), which may be padded to whole words
/// (§12.5).
fn channel(bytes: &[u8], length: usize) -> Option<usize> {
    let size = bytes.first().filter(|first| (64..=79).contains(*first)).and(be16(bytes, 2))?;
    let whole = 4 + usize::from(size);
    (length == whole || length == whole.next_multiple_of(4)).then_some(size.into())
}

/// Of bytes in a packet.
pub(crate) fn range(from: usize, to: usize) -> Range<u32> {
    let narrow = |at| u32::try_from(at).expect("a packet is shorter than 4 GiB");
    narrow(from)..narrow(to)
}

pub(crate) fn be16(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes(*bytes.get(at..)?.first_chunk()?))
}

pub(crate) fn be32(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_be_bytes(*bytes.get(at..)?.first_chunk()?))
}
