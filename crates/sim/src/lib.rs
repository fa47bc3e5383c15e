//! Virtual time: the schedule, the links and their queues, and the world that moves packets.
//!
//! A packet's path: [`world::World`] asks a peer for its next action, labels the packet, puts its body into the
//! [`pool::Pool`] and offers the label to the first [`link::Link`]; the link's [`discipline::Queue`] keeps or
//! refuses it, its transmitter sends it in turn over a [`medium::Medium`], and the [`schedule::Schedule`] wakes
//! the world when it arrives at the far end.

pub mod build;
pub mod capacity;
pub mod cell;
pub mod drive;
mod flight;
mod lane;
pub mod link;
pub mod medium;
mod routes;
pub mod schedule;
pub mod world;

pub use talkspurt_queue::{self as discipline, pool};
