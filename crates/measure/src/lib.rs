//! Measurements of a real path: a server and a client exchange the traffic of a [`Plan`] over UDP, IP or
//! the kernel's TCP, with the same peers as in the simulator, and the client makes the tables of a run from the
//! notes of both ends.
//!
//! [`Server`] waits for clients; [`Measurement`] is the client. Both talk over one TCP connection (`channel`:
//! Noise, with a shared secret), which carries requests, signs of life and, at the end, the server's notes.
//! `media` runs the peers in real time over a `wire`: a UDP socket, a `stream` for each flow over TCP, and the
//! raw sockets of `direct` for flows directly over IP. `seal` authenticates every datagram, packet and unit;
//! `breaker` stops harmful media (RFC 8083). `clocks` finds the drift and the offset of the two clocks, and
//! `merge` makes one run of two logs, without notes that are not `plausible`. `exchange` is what the ends tell
//! each other afterwards, within a `budget`.
//! `call` makes a call of the same parts, whose ends say what is in their files or comes from a microphone;
//! `view` is what a user sees of it.
//! `tcp_info` is what the kernel knows of a connection.
//! `fuzz` plays a hostile other end in tests.
#![cfg(target_os = "linux")]

mod breaker;
mod bucket;
mod budget;
mod call;
mod channel;
mod client;
mod clocks;
mod codecs;
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

pub use call::{Called, Caller, Sound, Voice};
pub use channel::{Secret, VERSION};
pub use client::{Measured, Measurement, Target, check_transport};
pub use codecs::call_codecs;
pub use controller::Controller;
pub use devices::Devices;
pub use invitation::Invitation;
pub use plan::{FlowPlan, Plan, Traffic};
pub use privileges::Privileges;
pub use server::{Config, Listening, Server};
pub use shared::Watch;
pub use transport::Transport;

/// Why something did not succeed, in words for the user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure(pub String);

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Failure {}

impl From<String> for Failure {
    fn from(words: String) -> Self {
        Self(words)
    }
}

impl From<&str> for Failure {
    fn from(words: &str) -> Self {
        Self(words.to_owned())
    }
}
