//! Chunks (RFC 9260 §3.3; RFC 3758 §3.2; RFC 4960 appendix A; RFC 8260 §2).

use bytes::{BufMut, Bytes};

use super::element;
use crate::frame;
use crate::octets::{Hints, WireError, at_least, u16_at, u32_at};
use crate::sctp::{Cause, Chunk, Data, ForwardTsn, Init, Number, Sack, Skipped};

/// E, B, U and I of DATA and I-DATA, from the lowest bit on (RFC 9260 §3.3.1; I: RFC 7053 §3).
const ENDING: u8 = 1;
const BEGINNING: u8 = 2;
const UNORDERED: u8 = 4;
const IMMEDIATE: u8 = 8;

const fn flags(chunk: &Chunk) -> u8 {
    match chunk {
        Chunk::Data(data) => {
            (data.ending as u8 * ENDING)
                | (data.beginning as u8 * BEGINNING)
                | (data.unordered as u8 * UNORDERED)
                | (data.immediate as u8 * IMMEDIATE)
        }
        Chunk::Abort { reflected, .. } | Chunk::ShutdownComplete { reflected } => *reflected as u8,
        Chunk::Unknown { flags, .. } => *flags,
        _ => 0,
    }
}

/// Appends a chunk without its padding.
pub(super) fn emit(chunk: &Chunk, out: &mut Vec<u8>) -> Result<(), WireError> {
    let length = u16::try_from(chunk.length()).map_err(|_| WireError::TooLong("SCTP chunk"))?;
    out.put_slice(&[chunk.number(), flags(chunk)]);
    out.put_u16(length);
    match chunk {
        Chunk::Data(data) => emit_data(data, out),
        Chunk::Init(init) | Chunk::InitAck(init) => {
            out.put_u32(init.tag);
            out.put_u32(init.a_rwnd);
            out.put_u16(init.outbound);
            out.put_u16(init.inbound);
            out.put_u32(init.tsn);
            element::emit_parameters(&init.parameters, out)?;
        }
        Chunk::Sack(sack) => {
            out.put_u32(sack.cumulative);
            out.put_u32(sack.a_rwnd);
            out.put_u16(sack.gaps.len() as u16);
            out.put_u16(sack.duplicates.len() as u16);
            sack.gaps.iter().for_each(|&gap| put_pair(gap, out));
            sack.duplicates.iter().for_each(|&tsn| out.put_u32(tsn));
        }
        Chunk::Abort { causes, .. } | Chunk::Error(causes) => element::emit_causes(causes, out)?,
        Chunk::Heartbeat(value)
        | Chunk::HeartbeatAck(value)
        | Chunk::CookieEcho(value)
        | Chunk::Unknown { value, .. } => out.put_slice(value),
        Chunk::Shutdown { cumulative: tsn }
        | Chunk::Ecne { lowest: tsn }
        | Chunk::Cwr { lowest: tsn } => out.put_u32(*tsn),
        Chunk::ForwardTsn(forward) => {
            out.put_u32(forward.cumulative);
            match &forward.skipped {
                Skipped::Ssn(skipped) => skipped.iter().for_each(|&one| put_pair(one, out)),
                Skipped::Mid(skipped) => {
                    for &(stream, unordered, mid) in skipped {
                        put_pair((stream, u16::from(unordered)), out);
                        out.put_u32(mid);
                    }
                }
            }
        }
        Chunk::ShutdownAck | Chunk::CookieAck | Chunk::ShutdownComplete { .. } => {}
    }
    Ok(())
}

fn put_pair((first, second): (u16, u16), out: &mut Vec<u8>) {
    out.put_u16(first);
    out.put_u16(second);
}

fn pairs(bytes: &[u8]) -> Vec<(u16, u16)> {
    bytes.chunks_exact(4).map(|pair| (u16_at(pair, 0), u16_at(pair, 2))).collect()
}

fn emit_data(data: &Data, out: &mut Vec<u8>) {
    out.put_u32(data.tsn);
    out.put_u16(data.stream);
    match data.number {
        Number::Ssn(ssn) => {
            out.put_u16(ssn);
            out.put_u32(data.ppid);
        }
        // RFC 8260 §2.1: the first part carries the Payload Protocol Identifier, any other part its number.
        Number::Mid(mid, fsn) => {
            out.put_u16(0);
            out.put_u32(mid);
            out.put_u32(if data.beginning { data.ppid } else { fsn });
        }
    }
    frame::emit(&data.payload, out);
}

/// Reads a chunk of this type, flags and value.
pub(super) fn parse(kind: u8, flags: u8, value: Bytes, hints: Hints) -> Result<Chunk, WireError> {
    let fixed = match kind {
        7 | 12 | 13 => Some(4),
        8 | 11 | 14 => Some(0),
        _ => None,
    };
    if fixed.is_some_and(|fixed| value.len() != fixed) {
        return Err(WireError::Malformed("SCTP chunk is not as long as its type"));
    }
    let reflected = flags & 1 == 1;
    Ok(match kind {
        0 | 64 => Chunk::Data(parse_data(kind, flags, value, hints)?),
        1 => Chunk::Init(parse_init(value)?),
        2 => Chunk::InitAck(parse_init(value)?),
        3 => Chunk::Sack(parse_sack(&value)?),
        4 => Chunk::Heartbeat(value),
        5 => Chunk::HeartbeatAck(value),
        6 => Chunk::Abort { reflected, causes: parse_causes(value)? },
        7 => Chunk::Shutdown { cumulative: u32_at(&value, 0) },
        8 => Chunk::ShutdownAck,
        9 => Chunk::Error(parse_causes(value)?),
        10 => Chunk::CookieEcho(value),
        11 => Chunk::CookieAck,
        12 => Chunk::Ecne { lowest: u32_at(&value, 0) },
        13 => Chunk::Cwr { lowest: u32_at(&value, 0) },
        14 => Chunk::ShutdownComplete { reflected },
        192 | 194 => Chunk::ForwardTsn(parse_forward(kind, &value)?),
        _ => Chunk::Unknown { kind, flags, value },
    })
}

fn parse_data(kind: u8, flags: u8, value: Bytes, hints: Hints) -> Result<Data, WireError> {
    let fixed = if kind == 0 { 12 } else { 16 };
    at_least(&value, fixed, "SCTP DATA chunk")?;
    let [ending, beginning, unordered, immediate] =
        [ENDING, BEGINNING, UNORDERED, IMMEDIATE].map(|flag| flags & flag != 0);
    let last = u32_at(&value, fixed - 4);
    let (number, ppid) = match kind {
        0 => (Number::Ssn(u16_at(&value, 6)), last),
        _ if beginning => (Number::Mid(u32_at(&value, 8), 0), last),
        _ => (Number::Mid(u32_at(&value, 8), last), 0),
    };
    // A part of a message is no media packet.
    let media = hints.media && beginning && ending;
    let payload = frame::carried(value.slice(fixed..), Hints { media, ..hints });
    let (tsn, stream) = (u32_at(&value, 0), u16_at(&value, 4));
    Ok(Data { immediate, unordered, beginning, ending, tsn, stream, number, ppid, payload })
}

fn parse_init(value: Bytes) -> Result<Init, WireError> {
    at_least(&value, 16, "SCTP INIT chunk")?;
    Ok(Init {
        tag: u32_at(&value, 0),
        a_rwnd: u32_at(&value, 4),
        outbound: u16_at(&value, 8),
        inbound: u16_at(&value, 10),
        tsn: u32_at(&value, 12),
        parameters: element::parse(value.slice(16..), "SCTP parameter", element::parameter)?,
    })
}

fn parse_sack(value: &[u8]) -> Result<Sack, WireError> {
    at_least(value, 12, "SCTP SACK chunk")?;
    let (gaps, duplicates) = (usize::from(u16_at(value, 8)), usize::from(u16_at(value, 10)));
    if value.len() != 12 + 4 * (gaps + duplicates) {
        return Err(WireError::Malformed("SCTP SACK is not as long as its blocks"));
    }
    let (gaps, duplicates) = value[12..].split_at(4 * gaps);
    let (cumulative, a_rwnd) = (u32_at(value, 0), u32_at(value, 4));
    let duplicates = duplicates.chunks_exact(4).map(|tsn| u32_at(tsn, 0)).collect();
    Ok(Sack { cumulative, a_rwnd, gaps: pairs(gaps), duplicates })
}

fn parse_causes(value: Bytes) -> Result<Vec<Cause>, WireError> {
    element::parse(value, "SCTP error cause", |code, value| Cause { code, value })
}

fn parse_forward(kind: u8, value: &[u8]) -> Result<ForwardTsn, WireError> {
    at_least(value, 4, "SCTP FORWARD TSN chunk")?;
    let (cumulative, entries) = (u32_at(value, 0), &value[4..]);
    if !entries.len().is_multiple_of(if kind == 192 { 4 } else { 8 }) {
        return Err(WireError::Malformed("SCTP FORWARD TSN has half an entry"));
    }
    let skipped = if kind == 192 {
        Skipped::Ssn(pairs(entries))
    } else {
        let read = |entry| (u16_at(entry, 0), entry[3] & 1 == 1, u32_at(entry, 4));
        Skipped::Mid(entries.chunks_exact(8).map(read).collect())
    };
    Ok(ForwardTsn { cumulative, skipped })
}
