//! Measurements of a real path: a server and a client exchange the traffic of a [`Plan`] over UDP, IP or
//! the kernel's TCP, with the same peers as in the simulator, and the client makes the tables of a run from the
//! notes of both ends.
//!
//! [`Server`] waits for clients; [`Session`] is the client. Both talk over one TCP connection (`channel`:
//! Noise, with a shared secret), which carries requests, signs of life (`control`) and, at the end, the notes
//! of the server. `media` runs the peers in real time over a `wire`: a UDP socket, a `stream` for each flow
//! over TCP, and the raw sockets of `direct` for flows directly over IP. `seal` authenticates every datagram,
//! packet and unit; circuit breakers stop harmful media (RFC 8083). `clocks` finds the drift and the offset of
//! the two clocks, and `merge` makes one run of two logs, without notes that are not `plausible`. `exchange` is
//! what the ends tell each other afterwards, within a `budget`. `call` makes a call of the same parts, whose
//! ends say what is in their files or comes from a microphone; `view` is what a user sees of it. `tcp_info` is
//! what the kernel knows of a connection. `fuzz` plays a hostile other end in tests.
#![cfg(target_os = "linux")]

mod bucket;
mod budget;
mod call;
mod channel;
mod client;
mod clocks;
mod codecs;
mod control;
mod controller;
mod devices;
mod direct;
mod end_report;
mod exchange;
#[cfg(any(test, fuzzing))]
pub mod fuzz;
#[cfg(test)]
mod hostile;
mod invitation;
mod local_peer;
mod lock;
mod media;
mod merge;
mod notes;
mod opening;
mod plan;
mod plausible;
mod privileges;
mod protocol;
mod seal;
mod server;
mod shared;
mod stream;
mod tcp_info;
mod timed;
mod transport;
mod view;
mod wire;

pub use call::{Called, Sound, Voice};
pub use channel::{Secret, VERSION};
pub use client::{Measured, Session, Target, check_transport};
pub use codecs::call_codecs;
pub use controller::Controller;
pub use devices::Devices;
pub use invitation::Invitation;
pub use plan::{FlowPlan, Plan, Traffic};
pub use privileges::Privileges;
pub use server::{Config, Listening, Server};
pub use shared::Watch;
pub use transport::Transport;

use std::net::SocketAddr;

use shared::STOPPED;

/// Why something did not succeed, in words for the user.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    /// A user stopped it.
    #[error("{STOPPED}")]
    Stopped,
    /// What was asked for cannot be measured or said.
    #[error("{0}")]
    Input(String),
    /// This machine refuses or lacks what is needed: a socket, a privilege, a congestion controller.
    #[error("{0}")]
    System(String),
    /// Nobody answers there, or no datagrams pass.
    #[error("{0}")]
    Unreachable(String),
    /// The other end speaks another version of the protocol.
    #[error("{0}")]
    Version(String),
    /// The secret is too short, or the other end has another one.
    #[error("{0}")]
    Secret(String),
    /// The other end does not agree.
    #[error("{0}")]
    Refused(String),
    /// The connection was lost before there was anything to tell.
    #[error("{0}")]
    Lost(String),
}

impl Failure {
    /// The same with the other end's address in front of its words.
    fn at(mut self, other: SocketAddr) -> Self {
        if let Self::Input(words)
        | Self::System(words)
        | Self::Unreachable(words)
        | Self::Version(words)
        | Self::Secret(words)
        | Self::Refused(words)
        | Self::Lost(words) = &mut self
        {
            *words = format!("{other}: {words}");
        }
        self
    }

    /// The name of the variant.
    #[must_use]
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Stopped => "stopped",
            Self::Input(_) => "input",
            Self::System(_) => "system",
            Self::Unreachable(_) => "unreachable",
            Self::Version(_) => "version",
            Self::Secret(_) => "secret",
            Self::Refused(_) => "refused",
            Self::Lost(_) => "lost",
        }
    }
}
