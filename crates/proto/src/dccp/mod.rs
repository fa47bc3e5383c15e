//! DCCP (RFC 4340): a connection of congestion-controlled, unreliable datagrams, client and server
//! in one machine, with a CCID in each direction.
//!
//! A frame enters by `handle` only when the CCID lets it go ([`room`](crate::endpoint::Endpoint)
//! is zero otherwise): nothing waits in here, so that what is sent is as fresh as the flow's send
//! queue wants it. What arrives passes the validity checks of §8.5, then options, then the
//! half-connections.

pub mod ackvec;
pub mod ccid;
pub mod ccid2;
pub mod ccid3;
mod checksum;
pub mod data_dropped;
pub mod options;
mod packet;
pub mod seqno;

pub use ackvec::AckVector;
pub use checksum::crc32c;
pub use options::Options;
pub use packet::{Kind, Packet, ResetCode};
pub use seqno::{SeqNo, WireSeq};
