//! What a protocol is: deterministic state machines that talk to their driver through two doors.
//!
//! A packet's way through this crate: the application's [`packet::Frame`] enters an
//! [`endpoint::Endpoint`] by `handle(now, Input::Frame)`, comes out of `poll(now)` as an
//! [`endpoint::Transmit`] whose body is a parsed packet, travels as a [`packet::Packet`] label
//! through queues that cannot open it, enters the far endpoint by `handle(now, Input::Packet)`,
//! and comes out again as `Output::Deliver`. Read `endpoint`, then `udp`, then the rest.
//!
//! This crate may touch neither sockets nor clocks nor files; time is an argument.

pub mod body;
pub mod congestion;
pub mod dccp;
pub mod endpoint;
pub mod external;
pub mod frame;
pub mod gauge;
pub mod math;
pub mod octets;
pub mod packet;
pub mod probe;
pub mod profile;
pub mod rate;
pub mod rfc4571;
pub mod rng;
pub mod rtcp;
pub mod rtp;
pub mod rtt;
pub mod sctp;
pub mod seq;
pub mod tcp;
pub mod tfrc;
pub mod time;
pub mod transport;
pub mod udp;
pub mod units;
pub mod wire;
