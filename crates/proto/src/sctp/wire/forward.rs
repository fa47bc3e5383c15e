//! FORWARD TSN (RFC 3758 §3.2) and I-FORWARD-TSN (RFC 8260 §2.3.1).

use crate::octets::{WireError, at_least, u16_at, u32_at};
use crate::sctp::{ForwardTsn, Skipped};

pub(super) fn emit(forward: &ForwardTsn, out: &mut Vec<u8>) {
    out.extend_from_slice(&forward.cumulative.to_be_bytes());
    match &forward.skipped {
        Skipped::Ssn(skipped) => {
            for (stream, ssn) in skipped {
                out.extend_from_slice(&stream.to_be_bytes());
                out.extend_from_slice(&ssn.to_be_bytes());
            }
        }
        Skipped::Mid(skipped) => {
            for (stream, unordered, mid) in skipped {
                out.extend_from_slice(&stream.to_be_bytes());
                out.extend_from_slice(&[0, u8::from(*unordered)]);
                out.extend_from_slice(&mid.to_be_bytes());
            }
        }
    }
}

pub(super) fn parse(kind: u8, value: &[u8]) -> Result<ForwardTsn, WireError> {
    at_least(value, 4, "SCTP FORWARD TSN chunk")?;
    let entry = if kind == 192 { 4 } else { 8 };
    let entries = value[4..].chunks_exact(entry);
    if !entries.remainder().is_empty() {
        return Err(WireError::Malformed("SCTP FORWARD TSN has half an entry"));
    }
    let skipped = if kind == 192 {
        Skipped::Ssn(entries.map(|entry| (u16_at(entry, 0), u16_at(entry, 2))).collect())
    } else {
        let read = |entry| (u16_at(entry, 0), entry[3] & 1 == 1, u32_at(entry, 4));
        Skipped::Mid(entries.map(read).collect())
    };
    Ok(ForwardTsn { cumulative: u32_at(value, 0), skipped })
}
