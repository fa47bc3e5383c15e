//! A rig for tests of protocol endpoints, in virtual time.
//!
//! * [`Pair`] joins two endpoints by a wire. The test decides what happens to each packet: it is lost,
//!   delayed, duplicated, marked or damaged. The log keeps every packet that was sent.
//! * [`Road`] joins two endpoints by links with a rate and a queue, and gives each end a source.
//! * [`tcp`], [`dccp`] and [`sctp`] describe the packets of these protocols to [`Pair`], and have `Alone`:
//!   one endpoint, whose peer the test plays with packets made by hand.
//!
//! [`fuzz`] reads the scripts of fuzz targets.
//!
//! A new protocol implements [`Logged`] for its endpoint to use [`Pair`]; [`Road`] needs nothing beyond
//! [`Endpoint`](talkspurt_proto::endpoint::Endpoint).

pub mod dccp;
pub mod fuzz;
mod notes;
mod pair;
pub mod road;
pub mod sctp;
pub mod tcp;

pub use notes::Notes;
pub use pair::{End, Logged, Pair, Sent, Side, Verdict};
pub use road::Road;
use talkspurt_proto::frame::Frame;
use talkspurt_proto::packet::{Ecn, IpVersion, Payload, Quote, Quoted};
use talkspurt_proto::time::{Duration, Instant};
use talkspurt_proto::units::Rate;

/// Milliseconds.
#[must_use]
pub const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// The instant this many milliseconds after the start.
#[must_use]
pub const fn at(millis: u64) -> Instant {
    Instant::from_nanos(millis * 1_000_000)
}

/// Kilobits per second.
#[must_use]
pub const fn kbps(kilobits: u64) -> Rate {
    Rate::from_bps(kilobits * 1000)
}

/// Application data of virtual bytes, which have a length and no content.
#[must_use]
pub fn data(bytes: u32) -> Frame {
    Frame::Data(virtually(bytes))
}

/// What a router quotes of a packet of 1500 bytes over IPv4 that it refuses.
#[must_use]
pub const fn quote(transport: Quoted) -> Quote {
    let (version, ecn) = (IpVersion::V4, Ecn::NotEct);
    Quote { version, ip_bytes: 1500, mark: 0, ttl: 64, dscp: 0, ecn, transport }
}

/// Virtual bytes.
#[must_use]
pub fn virtually(len: u32) -> Payload {
    Payload::Virtual { offset: 0, len: len.into() }
}
