//! The TCP header (RFC 9293 §3.1) with the options of RFC 9293 §3.2, RFC 7323 and RFC 2018.

use crate::packet::Quoted;
use crate::transport::{Layers, PacketFormat};
use std::net::IpAddr;

use bytes::Bytes;

use crate::octets::checksum::Sum;
use crate::octets::{Ends, Hints, Tail, WireError, at_least, pattern, u16_at, u32_at};
use crate::tcp::{Flags, SackBlocks, Segment};

/// TCP's protocol number.
pub const PROTOCOL: u8 = 6;
/// Bytes of a header without options.
pub const HEADER: usize = 20;

// RFC 9293 §3.2, RFC 7323 §2.2 and §3.2, RFC 2018 §2 and §3: kinds of option.
const END: u8 = 0;
const NO_OPERATION: u8 = 1;
const MSS: u8 = 2;
const WINDOW_SCALE: u8 = 3;
const SACK_PERMITTED: u8 = 4;
const SACK: u8 = 5;
const TIMESTAMPS: u8 = 8;

/// The start of a segment's header as a router quotes it (RFC 792): its sequence number.
#[must_use]
pub fn quoted(seq: u32) -> Quoted {
    Quoted::new(PROTOCOL, &seq.to_be_bytes())
}

/// Appends a segment except for a virtual payload, which is returned. Options are in the order of their
/// kinds, SACK blocks last; each is padded in front with no-operations to end on a word. SACK-permitted
/// is the padding in front of timestamps.
///
/// # Errors
/// [`WireError::TooLong`] if the options do not fit 40 bytes.
pub(crate) fn emit(segment: &Segment, ends: &Ends, out: &mut Vec<u8>) -> Result<Tail, WireError> {
    let start = out.len();
    out.extend_from_slice(&[0; HEADER]);
    emit_options(segment, out);
    let words = (out.len() - start) / 4;
    if words > 15 {
        return Err(WireError::TooLong("TCP header"));
    }
    let tail = Tail::of(&segment.payload, out);
    let (header, behind) = out[start..].split_at_mut(HEADER);
    let two = |high, low| u32::from(high) << 16 | u32::from(low);
    let flags = (words as u16) << 12 | u16::from(segment.flags.0);
    let mut words = [
        two(ends.src_port, ends.dst_port),
        segment.seq,
        segment.ack,
        two(flags, segment.window),
        0,
    ];
    // The header is summed before it is written: reading data just written would stall.
    let tail_len = tail.len as usize;
    let len = HEADER + behind.len() + tail_len;
    let sum = Sum::pseudo_header(ends.src, ends.dst, PROTOCOL, len).and(Sum::of_words(words));
    let sum = sum.over(behind).and(pattern::sum(tail.offset, tail_len));
    words[4] = u32::from(sum.finish()) << 16;
    for (place, word) in header.as_chunks_mut().0.iter_mut().zip(words) {
        *place = word.to_be_bytes();
    }
    Ok(tail)
}

fn emit_options(segment: &Segment, out: &mut Vec<u8>) {
    if let Some(mss) = segment.mss {
        let [high, low] = mss.to_be_bytes();
        out.extend_from_slice(&[MSS, 4, high, low]);
    }
    if let Some(shift) = segment.window_scale {
        out.extend_from_slice(&[NO_OPERATION, WINDOW_SCALE, 3, shift]);
    }
    let pad = if segment.sack_permitted { [SACK_PERMITTED, 2] } else { [NO_OPERATION; 2] };
    if segment.sack_permitted && segment.timestamps.is_none() {
        out.extend_from_slice(&[NO_OPERATION, NO_OPERATION, SACK_PERMITTED, 2]);
    }
    if let Some((value, echo)) = segment.timestamps {
        // RFC 7323 appendix A: two bytes align the values.
        out.extend_from_slice(&[pad[0], pad[1], TIMESTAMPS, 10]);
        out.extend_from_slice(&value.to_be_bytes());
        out.extend_from_slice(&echo.to_be_bytes());
    }
    if let Some(sack) = &segment.sack {
        let blocks = sack.as_slice();
        let length = 2 + 8 * blocks.len() as u8;
        out.extend_from_slice(&[NO_OPERATION, NO_OPERATION, SACK, length]);
        for (left, right) in blocks {
            out.extend_from_slice(&left.to_be_bytes());
            out.extend_from_slice(&right.to_be_bytes());
        }
    }
}

/// Parses and checks a segment.
///
/// # Errors
/// Truncated or malformed bytes, a wrong checksum.
pub fn parse(
    bytes: &[u8],
    src: IpAddr,
    dst: IpAddr,
    hints: Hints,
) -> Result<(Ends, Segment), WireError> {
    at_least(bytes, HEADER, "TCP header")?;
    if Sum::pseudo_header(src, dst, PROTOCOL, bytes.len()).over(bytes).finish() != 0 {
        return Err(WireError::Checksum("TCP"));
    }
    let header_bytes = usize::from(bytes[12] >> 4) * 4;
    if header_bytes < HEADER {
        return Err(WireError::Malformed("TCP data offset is below five"));
    }
    at_least(bytes, header_bytes, "TCP options")?;
    let mut segment = Segment {
        seq: u32_at(bytes, 4),
        ack: u32_at(bytes, 8),
        flags: Flags(bytes[13]),
        window: u16_at(bytes, 14),
        ..Segment::default()
    };
    parse_options(&bytes[HEADER..header_bytes], &mut segment)?;
    segment.payload = hints.payload(Bytes::copy_from_slice(&bytes[header_bytes..]));
    let ends = Ends { src, dst, src_port: u16_at(bytes, 0), dst_port: u16_at(bytes, 2) };
    Ok((ends, segment))
}

fn parse_options(mut options: &[u8], segment: &mut Segment) -> Result<(), WireError> {
    while let [kind, rest @ ..] = options {
        match *kind {
            END => break,
            NO_OPERATION => options = rest,
            kind => {
                // RFC 9293 §3.2, MUST-7: an illegal length must not confuse the receiver.
                let length = usize::from(*rest.first().unwrap_or(&0));
                if length < 2 || length > options.len() {
                    return Err(WireError::Malformed("TCP option length"));
                }
                let (option, behind) = options.split_at(length);
                on_option(kind, &option[2..], segment);
                options = behind;
            }
        }
    }
    Ok(())
}

/// RFC 9293 §3.2, MUST-6: options of unknown kind (here also of unknown length) are skipped.
fn on_option(kind: u8, data: &[u8], segment: &mut Segment) {
    match (kind, data) {
        (MSS, [high, low]) => segment.mss = Some(u16::from_be_bytes([*high, *low])),
        (WINDOW_SCALE, [shift]) => segment.window_scale = Some(*shift),
        (TIMESTAMPS, [_, _, _, _, _, _, _, _]) => {
            segment.timestamps = Some((u32_at(data, 0), u32_at(data, 4)));
        }
        (SACK_PERMITTED, []) => segment.sack_permitted = true,
        (SACK, blocks) if blocks.len() % 8 == 0 => {
            let pairs = blocks.chunks_exact(8).map(|pair| (u32_at(pair, 0), u32_at(pair, 4)));
            segment.sack = SackBlocks::of(pairs);
        }
        _ => {}
    }
}

impl PacketFormat for Segment {
    const PROTOCOL: u8 = PROTOCOL;

    #[inline(always)]
    fn layers(&self) -> Layers {
        let (transport, payload) = (self.header_bytes() as u32, self.payload.len() as u32);
        Layers { transport, media: 0, payload }
    }
    fn quoted(&self) -> Quoted {
        quoted(self.seq)
    }
    fn emit(&self, ends: &Ends, out: &mut Vec<u8>) -> Result<Tail, WireError> {
        emit(self, ends, out)
    }
}
