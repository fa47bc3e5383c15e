//! TCP (RFC 9293) with NewReno congestion control.

mod config;
mod segment;

pub use config::{Config, Controller};
pub use segment::{Flags, Segment};
