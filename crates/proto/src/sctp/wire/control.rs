//! Chunks of one field or none: HEARTBEAT and its answer, SHUTDOWN to SHUTDOWN COMPLETE, COOKIE
//! ECHO and COOKIE ACK, ECNE and CWR (RFC 9260 §3.3.5 to §3.3.13, appendix A).

use bytes::Bytes;

use crate::octets::{WireError, u32_at};
use crate::sctp::Chunk;

pub(super) fn emit(chunk: &Chunk, out: &mut Vec<u8>) {
    match chunk {
        Chunk::Heartbeat(value)
        | Chunk::HeartbeatAck(value)
        | Chunk::CookieEcho(value)
        | Chunk::Unknown { value, .. } => out.extend_from_slice(value),
        Chunk::Shutdown { cumulative: tsn }
        | Chunk::Ecne { lowest: tsn }
        | Chunk::Cwr { lowest: tsn } => out.extend_from_slice(&tsn.to_be_bytes()),
        _ => {}
    }
}

pub(super) fn parse(kind: u8, flags: u8, value: Bytes) -> Result<Chunk, WireError> {
    let fixed = match kind {
        7 | 12 | 13 => Some(4),
        8 | 11 | 14 => Some(0),
        _ => None,
    };
    if fixed.is_some_and(|fixed| value.len() != fixed) {
        return Err(WireError::Malformed("SCTP chunk is not as long as its type"));
    }
    Ok(match kind {
        4 => Chunk::Heartbeat(value),
        5 => Chunk::HeartbeatAck(value),
        7 => Chunk::Shutdown { cumulative: u32_at(&value, 0) },
        8 => Chunk::ShutdownAck,
        10 => Chunk::CookieEcho(value),
        11 => Chunk::CookieAck,
        12 => Chunk::Ecne { lowest: u32_at(&value, 0) },
        13 => Chunk::Cwr { lowest: u32_at(&value, 0) },
        _ => Chunk::ShutdownComplete { reflected: flags & 1 == 1 },
    })
}
