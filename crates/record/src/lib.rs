//! Measurement output: the observations of probes, as numbers and tables.
//!
//! Each part that a packet passes notifies a probe (`Sent`, `Enqueued`, `Dequeued`, `Arrived`, `Received`,
//! or `Dropped`). [`Digest`] hashes each note into the digest of the run. [`Stats`] turns notes into
//! accounts per direction of a flow and keeps no packet; it is the probe of large runs. [`Recorder`]
//! extends `Stats` by everything that needs memory: exact delays, time series, frames, gauges and events.
//! With a [`Folder`], it writes its tables there, and those that can grow large during the run.
//! [`pcapng`], [`Trace`] and [`Qlog`] write files for other tools during the run, and [`PacketTable`]
//! writes a row per packet and hop; [`Excerpt`] keeps the packets of a part of the run. At the end, the
//! accounts become [`FlowSummary`]s and the tables become Arrow batches.
//!
//! A *direction* is what one peer sends: its index is that of the peer, `2 * flow + side`. This crate
//! depends on protocols (`proto`), but not on scenarios or worlds.

mod account;
mod columns;
mod digest;
mod excerpt;
mod file;
mod frame_state;
mod gauges;
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
mod quantiles;
mod recorder;
mod recording;
mod series;
mod showing;
mod sojourn;
mod speech_stats;
mod spool;
mod stats;
mod sum;
mod summaries;
mod summary;
mod tables;
mod trace;
mod video;
mod voice;

pub use columns::Table;
pub use digest::Digest;
pub use excerpt::{Begin, Excerpt, Shown};
pub use file::Output;
pub use frame_state::FrameOutcome;
pub use jitter::Jitter;
pub use layout::{FlowInfo, Layout, LinkInfo, RouteInfo, SideInfo};
pub use links::{LINK_METRICS, LinkSummary};
pub use packets::PacketTable;
pub use qlog::Qlog;
pub use recorder::{Options, Recorder};
pub use recording::Recording;
pub use speech_stats::burst_ratio;
pub use stats::Stats;
pub use summaries::Summaries;
pub use summary::{FLOW_METRICS, FlowSummary, MessageAccount, Quality};
pub use tables::{Folder, Meanings, StoreError, Tables};
pub use trace::{Dialect, Trace};
pub use video::VideoSummary;
