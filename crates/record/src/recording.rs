//! The result of a run: summaries for Rust, and tables by name for all other readers.

use std::collections::BTreeMap;

use arrow_array::RecordBatch;
use talkspurt_proto::time::Duration;

use crate::columns::{Columns, Table};
use crate::frame_state::FrameOutcome;
use crate::layout::Layout;
use crate::links::{self, LinkSummary, Links};
use crate::recorder::{EventRow, FrameTimes, GaugeRow};
use crate::series::Series;
use crate::sojourn::Sojourns;
use crate::summary::{self, FlowSummary};
use crate::video;

/// Everything a [`Recorder`](crate::Recorder) kept.
#[derive(Debug)]
pub struct Recording {
    /// Accounts of the flows; set their `quality` before reading the table.
    pub flows: Vec<FlowSummary>,
    /// Accounts of the links.
    pub links: Vec<LinkSummary>,
    pub(crate) layout: Layout,
    pub(crate) series: Series,
    pub(crate) link_samples: Links,
    pub(crate) sojourns: Option<Sojourns>,
    /// By peer.
    pub(crate) frames: Vec<Vec<FrameTimes>>,
    /// By peer: frames before which playout paused.
    pub(crate) pauses: Vec<BTreeMap<u32, Duration>>,
    /// By peer.
    pub(crate) fates: Vec<Vec<FrameOutcome>>,
    /// By peer: the rung of each frame, empty for a peer that never changed it.
    pub(crate) rungs: Vec<Vec<u8>>,
    /// By sending peer.
    pub(crate) videos: Vec<(usize, Vec<video::Frame>)>,
    pub(crate) gauges: Vec<GaugeRow>,
    pub(crate) events: Vec<EventRow>,
}

impl Recording {
    /// Names that [`Self::table`] knows.
    pub const TABLES: [&str; 8] =
        ["flows", "links", "series", "link_series", "gauges", "frames", "video_frames", "events"];

    /// A table by name; `None` for an unknown name.
    #[must_use]
    pub fn table(&self, name: &str) -> Option<Table> {
        Some(match name {
            "flows" => summary::table(&self.flows).into(),
            "links" => links::table(&self.layout, &self.links).into(),
            "series" => self.series.table(&self.layout).into(),
            "link_series" => {
                self.link_samples.series_table(&self.layout, self.sojourns.as_ref()).into()
            }
            "gauges" => self.gauges_table().into(),
            "frames" => self.frames_table().into(),
            "video_frames" => video::table(&self.layout, &self.videos).into(),
            "events" => self.events_table().into(),
            _ => return None,
        })
    }

    /// Checks the accounts of every flow.
    ///
    /// # Errors
    /// The first equation that does not hold, which indicates a bug in this program.
    pub fn conservation(&self) -> Result<(), String> {
        self.flows.iter().try_for_each(FlowSummary::conservation)
    }

    fn gauges_table(&self) -> RecordBatch {
        let rows = || self.gauges.iter();
        Columns::default()
            .time("time_s", rows().map(|row| row.at))
            .text("flow", rows().map(|row| self.layout.peer_name(row.peer).0))
            .text("side", rows().map(|row| self.layout.peer_name(row.peer).1))
            .text("gauge", rows().map(|row| row.gauge.name()))
            .float("value", rows().map(|row| row.value))
            .finish()
    }

    fn events_table(&self) -> RecordBatch {
        let rows = || self.events.iter();
        Columns::default()
            .time("time_s", rows().map(|row| row.at))
            .text("flow", rows().map(|row| self.layout.peer_name(row.peer).0))
            .text("side", rows().map(|row| self.layout.peer_name(row.peer).1))
            .text("event", rows().map(|row| row.event))
            .finish()
    }

    fn frames_table(&self) -> RecordBatch {
        let names: Vec<(usize, String)> =
            self.layout.directions().map(|direction| (direction.peer, direction.name())).collect();
        let rows = || names.iter().flat_map(|(peer, _)| &self.frames[*peer]);
        let fates = || names.iter().flat_map(|(peer, _)| &self.fates[*peer]);
        let rungs = names.iter().flat_map(|(peer, _)| {
            let rungs = &self.rungs[*peer];
            (0..self.frames[*peer].len()).map(|index| rungs.get(index).map(|rung| (*rung).into()))
        });
        let flows =
            names.iter().flat_map(|(peer, name)| self.frames[*peer].iter().map(move |_| name));
        let indices = names.iter().flat_map(|(peer, _)| 0..self.frames[*peer].len() as u64);
        let pauses = names.iter().flat_map(|(peer, _)| {
            let pauses = &self.pauses[*peer];
            let of = |index: usize| pauses.get(&(index as u32)).map_or(0.0, |it| it.as_secs_f64());
            (0..self.frames[*peer].len()).map(of)
        });
        Columns::default()
            .text("flow", flows.map(String::as_str))
            .count("index", indices)
            .maybe_time("captured_s", rows().map(|row| row.captured))
            .maybe_time("handed_over_s", rows().map(|row| row.handed_over))
            .maybe_time("delivered_s", rows().map(|row| row.delivered))
            .maybe_time("playout_s", rows().map(|row| row.playout))
            .float("paused_s", pauses)
            .maybe_text("fate", fates().map(|fate| fate.name()))
            .maybe_count("encoding", rungs)
            .finish()
    }
}
