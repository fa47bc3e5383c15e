//! DATA (RFC 9260 §3.3.1; the I bit: RFC 7053 §3) and I-DATA (RFC 8260 §2.1).

use bytes::Bytes;

use crate::frame;
use crate::octets::{Hints, WireError, at_least, u16_at, u32_at};
use crate::sctp::{Data, Number};

/// E, B, U and I, from the lowest bit on.
const ENDING: u8 = 1;
const BEGINNING: u8 = 2;
const UNORDERED: u8 = 4;
const IMMEDIATE: u8 = 8;

pub(super) const fn flags(data: &Data) -> u8 {
    (data.ending as u8 * ENDING)
        | (data.beginning as u8 * BEGINNING)
        | (data.unordered as u8 * UNORDERED)
        | (data.immediate as u8 * IMMEDIATE)
}

pub(super) fn emit(data: &Data, out: &mut Vec<u8>) {
    out.extend_from_slice(&data.tsn.to_be_bytes());
    out.extend_from_slice(&data.stream.to_be_bytes());
    match data.number {
        Number::Ssn(ssn) => {
            out.extend_from_slice(&ssn.to_be_bytes());
            out.extend_from_slice(&data.ppid.to_be_bytes());
        }
        // RFC 8260 §2.1: the first part carries the Payload Protocol Identifier, any other part its
        // number.
        Number::Mid(mid, fsn) => {
            out.extend_from_slice(&[0, 0]);
            out.extend_from_slice(&mid.to_be_bytes());
            let last = if data.beginning { data.ppid } else { fsn };
            out.extend_from_slice(&last.to_be_bytes());
        }
    }
    frame::emit(&data.payload, out);
}

pub(super) fn parse(kind: u8, flags: u8, value: Bytes, hints: Hints) -> Result<Data, WireError> {
    let fixed = if kind == 0 { 12 } else { 16 };
    at_least(&value, fixed, "SCTP DATA chunk")?;
    let beginning = flags & BEGINNING != 0;
    let ending = flags & ENDING != 0;
    let last = u32_at(&value, fixed - 4);
    let (number, ppid) = match kind {
        0 => (Number::Ssn(u16_at(&value, 6)), last),
        _ if beginning => (Number::Mid(u32_at(&value, 8), 0), last),
        _ => (Number::Mid(u32_at(&value, 8), last), 0),
    };
    // A part of a message is no media packet.
    let media = hints.media && beginning && ending;
    Ok(Data {
        immediate: flags & IMMEDIATE != 0,
        unordered: flags & UNORDERED != 0,
        beginning,
        ending,
        tsn: u32_at(&value, 0),
        stream: u16_at(&value, 4),
        number,
        ppid,
        payload: frame::carried(value.slice(fixed..), Hints { media, ..hints }),
    })
}
