//! Real time: runs the endpoints and peers of simulations on real sockets, driven by the clock. A [`Line`] is a
//! clock and a [`Port`], a socket that carries whole IP packets. [`drive()`] runs an endpoint with an [`App`]
//! over it; [`run_peer`] runs a peer, one end of a flow of a scenario.
//!
//! This is the only crate that uses sockets and reads a clock. Raw IP (protocol 33, RFC 4340 §19.1; protocol
//! 132, RFC 9260) needs root and Linux, TCP a TUN device created beforehand; UDP, and DCCP and SCTP inside UDP
//! (RFC 6773, RFC 6951), need only Linux.

mod clock;
mod drive;
mod echo;
mod envelope;
mod impairments;
mod line;
mod peer;
#[cfg(target_os = "linux")]
mod port;
mod transfer;

pub use clock::Clock;
pub use drive::{App, Step, drive, label};
pub use echo::{EchoConfig, EchoReport, EchoTest};
pub use envelope::{Encapsulation, Inside, emit, parse};
pub use impairments::{Impairments, Verdict};
pub use line::{Line, Port, Setup, Tap};
pub use peer::run_peer;
#[cfg(target_os = "linux")]
pub use port::{Datagram, RawIp, Tun, UdpPort, wrap};
pub use talkspurt_record::pcapng::Direction;
pub use transfer::{Plan, Record, Transfer};
