//! TFRC bare (RFC 5348), over UDP: data packets with a sequence number, a timestamp and the
//! sender's round-trip time (§3.2.1), answered by feedback packets (§3.2.2).

mod packet;

pub use packet::{Data, Feedback, Packet};
