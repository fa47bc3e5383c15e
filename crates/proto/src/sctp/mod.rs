//! SCTP (RFC 9260): so far what a packet is; its bytes are read and written in `wire::sctp`.

mod cause;
mod packet;
mod parameter;

pub use cause::Cause;
pub use packet::{
    CHUNK_HEADER, COMMON_HEADER, Chunk, Data, ForwardTsn, Init, Number, Packet, Sack, Skipped,
};
pub use parameter::Parameter;
