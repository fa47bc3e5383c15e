//! The answer written down: what probes saw, as numbers and tables.
//!
//! A packet's way through this crate: every part it passes tells a probe (`Sent`, `Enqueued`,
//! `Dequeued`, `Arrived`, `Received`, or `Dropped`). [`Digest`] hashes each note into the
//! fingerprint of the run. [`Stats`] turns notes into accounts per direction of a flow and keeps
//! no packet; it is the probe of large runs. [`Recorder`] is `Stats` plus whatever needs memory:
//! exact delays, time series, frames, gauges and events.
//! [`pcapng`], [`Trace`] and [`Qlog`] write what happened for other tools while it happens, and
//! [`PacketTable`] a row per packet and hop; [`Excerpt`] keeps the packets of a part of the run.
//! At the end the accounts become [`FlowSummary`]s and the tables Arrow batches.
//!
//! A *direction* is what one peer sends: it has the index of that peer, `2 * flow + side`.
//! This crate knows what a protocol is (`proto`) and nothing of scenarios or worlds.

mod account;
mod columns;
mod digest;
mod excerpt;
mod file;
mod frame_state;
mod in_flight;
mod in_order;
mod jitter;
mod layout;
mod links;
mod packets;
mod parquet;
pub mod pcapng;
mod pending;
mod qlog;
mod recorder;
mod recording;
mod series;
mod sojourn;
mod speech_stats;
mod stats;
mod sum;
mod summary;
mod trace;
mod video;
mod voice;

pub use columns::Table;
pub use digest::Digest;
pub use excerpt::{Excerpt, Shown};
pub use file::Output;
pub use frame_state::FrameOutcome;
pub use jitter::Jitter;
pub use layout::{FlowInfo, Layout, LinkInfo, RouteInfo, SideInfo};
pub use links::{LINK_METRICS, LinkSummary};
pub use packets::PacketTable;
pub use qlog::Qlog;
pub use recorder::{Options, Recorder};
pub use recording::Recording;
pub use sojourn::Sojourn;
pub use speech_stats::burst_ratio;
pub use stats::Stats;
pub use summary::{FLOW_METRICS, FlowSummary, Quality};
pub use trace::{Dialect, Trace};
pub use video::VideoSummary;
