//! SACK (RFC 9260 §3.3.4).

use crate::octets::{WireError, at_least, u16_at, u32_at};
use crate::sctp::Sack;

pub(super) fn emit(sack: &Sack, out: &mut Vec<u8>) {
    out.extend_from_slice(&sack.cumulative.to_be_bytes());
    out.extend_from_slice(&sack.a_rwnd.to_be_bytes());
    out.extend_from_slice(&(sack.gaps.len() as u16).to_be_bytes());
    out.extend_from_slice(&(sack.duplicates.len() as u16).to_be_bytes());
    for (first, last) in &sack.gaps {
        out.extend_from_slice(&first.to_be_bytes());
        out.extend_from_slice(&last.to_be_bytes());
    }
    sack.duplicates.iter().for_each(|tsn| out.extend_from_slice(&tsn.to_be_bytes()));
}

pub(super) fn parse(value: &[u8]) -> Result<Sack, WireError> {
    at_least(value, 12, "SCTP SACK chunk")?;
    let (gaps, duplicates) = (usize::from(u16_at(value, 8)), usize::from(u16_at(value, 10)));
    if value.len() != 12 + 4 * (gaps + duplicates) {
        return Err(WireError::Malformed("SCTP SACK is not as long as its blocks"));
    }
    let (gaps, duplicates) = value[12..].split_at(4 * gaps);
    Ok(Sack {
        cumulative: u32_at(value, 0),
        a_rwnd: u32_at(value, 4),
        gaps: gaps.chunks_exact(4).map(|gap| (u16_at(gap, 0), u16_at(gap, 2))).collect(),
        duplicates: duplicates.chunks_exact(4).map(|tsn| u32_at(tsn, 0)).collect(),
    })
}
