//! Builds the two [`Peer`]s of each flow of a scenario. The simulator drives them in virtual time, `live` in
//! real time; both build them here, so a flow is the same in both.
//!
//! [`Materials::load`] reads the files that sources need through [`Files`], by name.
//! [`peers()`] makes the peers.

mod materials;
mod peers;

pub use materials::Materials;
pub use peers::{capture_start, hints, parts, peers, start};
pub use talkspurt_app::file::{Disk, Files};
pub use talkspurt_app::peer::{Parts, Peer};
