//! Real time: an endpoint of `proto` on a real socket, driven by the wall clock. [`drive()`] is the
//! loop, [`Line`] what it waits on, [`Port`] a socket that carries whole IP packets, [`App`] who
//! talks. The endpoint is the one that simulations run; nothing in it knows the difference.
//!
//! This is the only crate that touches sockets and asks a clock. Raw IP (protocol 33, RFC 4340
//! §19.1; protocol 132, RFC 9260) needs root and Linux, a TUN device (for TCP) somebody who made it;
//! UDP, and DCCP and SCTP inside UDP (RFC 6773, RFC 6951), need Linux only.

mod clock;
mod drive;
mod echo;
mod envelope;
mod impairments;
mod line;
#[cfg(target_os = "linux")]
mod port;
mod transfer;

pub use clock::Clock;
pub use drive::{App, Step, drive};
pub use echo::{EchoConfig, EchoReport, EchoTest};
pub use envelope::{Encapsulation, Inside};
pub use impairments::{Impairments, Verdict};
pub use line::{Line, Port, Setup, Tap};
#[cfg(target_os = "linux")]
pub use port::{RawIp, Tun, UdpPort};
pub use talkspurt_record::pcapng::Direction;
pub use transfer::{Plan, Record, Transfer};
