//! CCID 2, TCP-like congestion control (RFC 4341): a window of packets, controlled by Ack Vectors.
//!
//! [`Sender`] decides when data may leave: `flight` tracks packets in the network and infers losses
//! (§5), the window is in `congestion`, `growth` limits it to what is used, `ack_ratio` is the
//! congestion control of the other side's acknowledgements (§6.1). [`Receiver`] decides when an
//! acknowledgement leaves (§6; RFC 4340 §11.3). Parameters are in [`Config`].

mod ack_ratio;
mod config;
mod flight;
mod growth;
mod receiver;
mod sender;

pub use config::{Config, Idle, Limited, Parameters, SlowStart};
pub use receiver::Receiver;
pub use sender::Sender;
