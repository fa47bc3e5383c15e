//! Real time: runs the endpoints and peers of simulations on real sockets, driven by the clock. A [`Line`] is a
//! clock and a [`Port`], a socket that carries whole IP packets. [`run_peer`] runs a peer, one end of a flow of
//! a scenario. The program `peer` runs single endpoints over impaired paths, with other stacks as peers.
//!
//! This is the only crate that uses sockets and reads a clock. Raw IP (protocol 33, RFC 4340 §19.1; protocol
//! 132, RFC 9260) needs root and Linux; UDP, and DCCP and SCTP inside UDP (RFC 6773, RFC 6951), need only
//! Linux.

mod clock;
mod envelope;
mod ip;
mod line;
mod peer;
#[cfg(target_os = "linux")]
mod port;

pub use clock::Clock;
pub use envelope::{Encapsulation, Inside, emit, parse};
pub use ip::Ip;
pub use line::{Line, Port, Setup, is_a_loss, label};
pub use peer::{Slot, run_peer};
#[cfg(target_os = "linux")]
pub use port::{Datagram, RawIp, UdpPort, is_readable, wrap};
