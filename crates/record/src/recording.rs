//! The result of a run: summaries for Rust, and tables by name for all other readers.

use std::collections::BTreeMap;
use std::io;
use std::ops::Range;

use arrow_array::RecordBatch;
use talkspurt_proto::time::{Duration, Instant};

use crate::columns::{Columns, Moment, Table};
use crate::frame_state::FrameOutcome;
use crate::gauges::Gauges;
use crate::layout::Layout;
use crate::links::{self, LinkSummary, Links};
use crate::series::Series;
use crate::sojourn::Sojourns;
use crate::summary::{self, FlowSummary};
use crate::tables::{self, StoreError, Tables, parts};
use crate::video;

/// The instants of a frame of voice.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FrameTimes {
    pub(crate) captured: Moment,
    pub(crate) handed_over: Moment,
    pub(crate) delivered: Moment,
    pub(crate) playout: Moment,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct EventRow {
    pub(crate) at: Instant,
    pub(crate) peer: u32,
    pub(crate) event: &'static str,
}

/// Everything a [`Recorder`](crate::Recorder) kept.
#[derive(Debug)]
pub struct Recording {
    /// Accounts of the flows; set their `quality` before reading the table.
    pub flows: Vec<FlowSummary>,
    /// Accounts of the links.
    pub links: Vec<LinkSummary>,
    pub(crate) layout: Layout,
    pub(crate) series: Option<Series>,
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
    pub(crate) gauges: Gauges,
    pub(crate) events: Vec<EventRow>,
    pub(crate) tables: Tables,
    /// Tables that are in files.
    pub(crate) stored: Vec<&'static str>,
}

impl Recording {
    /// Names that [`Self::table`] knows.
    pub const TABLES: [&str; tables::NAMES.len()] = tables::NAMES;

    /// A table by name, from memory; `None` for an unknown name, or if it is not there.
    ///
    /// # Panics
    /// A temporary file cannot be read, which only a recorder with a folder has.
    #[must_use]
    pub fn table(&self, name: &str) -> Option<Table> {
        let name = Self::TABLES.into_iter().find(|known| *known == name)?;
        let summary = matches!(name, "flows" | "links");
        if !summary && (!self.tables.keeps(name) || self.stored.contains(&name)) {
            return None;
        }
        let part = |rows| self.part(name, rows).expect("tables are in memory");
        let empty = part(0..0);
        Some(Table { schema: empty.schema(), batches: parts(self.rows(name)).map(part).collect() })
    }

    /// Writes every table with rows to the recorder's folder, if there is one, in the order of
    /// [`Self::TABLES`].
    ///
    /// # Errors
    /// The first error in writing, also during the run, or in reading a temporary file.
    pub fn store(&mut self) -> Result<(), StoreError> {
        let Tables::Folder(folder) = &self.tables else { return Ok(()) };
        for name in Self::TABLES {
            let written = match name {
                Gauges::NAME => self.gauges.store(),
                _ => folder.write(name, self.rows(name), |rows| self.part(name, rows)),
            };
            if written.map_err(|error| StoreError { path: folder.file(name), error })? {
                self.stored.push(name);
            }
        }
        Ok(())
    }

    /// Names of the tables that [`Self::store`] wrote.
    #[must_use]
    pub fn stored(&self) -> &[&'static str] {
        &self.stored
    }

    /// Rows of a table of [`Self::TABLES`].
    fn rows(&self, name: &str) -> usize {
        match name {
            "flows" => self.flows.len(),
            "links" => self.links.len(),
            "series" => self.series.as_ref().map_or(0, Series::rows),
            "link_series" => self.link_samples.series_rows(),
            Gauges::NAME => self.gauges.rows(),
            "frames" => self.frames.iter().map(Vec::len).sum(),
            "video_frames" => self.videos.iter().map(|(_, frames)| frames.len()).sum(),
            _ => self.events.len(),
        }
    }

    /// Some rows of a table of [`Self::TABLES`].
    fn part(&self, name: &str, rows: Range<usize>) -> io::Result<RecordBatch> {
        Ok(match name {
            "flows" => summary::table(&self.flows[rows]),
            "links" => links::table(&self.layout.links[rows.clone()], &self.links[rows]),
            "series" => match &self.series {
                Some(series) => series.part(&self.layout, rows)?,
                None => Columns::default().finish(),
            },
            "link_series" => {
                self.link_samples.series_part(&self.layout, self.sojourns.as_ref(), rows)?
            }
            Gauges::NAME => self.gauges.part(rows),
            "frames" => self.frames_part(rows),
            "video_frames" => video::part(&self.layout, &self.videos, rows),
            _ => self.events_part(rows),
        })
    }

    /// Checks the accounts of every flow.
    ///
    /// # Errors
    /// The first equation that does not hold, which indicates a bug in this program.
    pub fn conservation(&self) -> Result<(), String> {
        self.flows.iter().try_for_each(FlowSummary::conservation)
    }

    fn events_part(&self, part: Range<usize>) -> RecordBatch {
        let rows = || self.events[part.clone()].iter();
        Columns::default()
            .time("time_s", rows().map(|row| row.at))
            .text("flow", rows().map(|row| self.layout.peer_name(row.peer).0))
            .text("side", rows().map(|row| self.layout.peer_name(row.peer).1))
            .text("event", rows().map(|row| row.event))
            .finish()
    }

    fn frames_part(&self, part: Range<usize>) -> RecordBatch {
        let names: Vec<(usize, String)> =
            self.layout.directions().map(|direction| (direction.peer, direction.name())).collect();
        // Peer, name of the flow, and index of each row.
        let mut places = Vec::with_capacity(part.len());
        let mut begin = 0;
        for (peer, name) in &names {
            let end = begin + self.frames[*peer].len();
            let inside = part.start.clamp(begin, end)..part.end.clamp(begin, end);
            places.extend(inside.map(|row| (*peer, name.as_str(), row - begin)));
            begin = end;
        }
        let times = || places.iter().map(|(peer, _, index)| &self.frames[*peer][*index]);
        let pauses = places.iter().map(|(peer, _, index)| {
            self.pauses[*peer].get(&(*index as u32)).map_or(0.0, |pause| pause.as_secs_f64())
        });
        let fates = places.iter().map(|(peer, _, index)| self.fates[*peer][*index].name());
        let rungs = places.iter().map(|(peer, _, index)| self.rungs[*peer].get(*index));
        Columns::default()
            .text("flow", places.iter().map(|(_, name, _)| *name))
            .count("index", places.iter().map(|(.., index)| *index as u64))
            .maybe_time("captured_s", times().map(|row| row.captured))
            .maybe_time("handed_over_s", times().map(|row| row.handed_over))
            .maybe_time("delivered_s", times().map(|row| row.delivered))
            .maybe_time("playout_s", times().map(|row| row.playout))
            .float("paused_s", pauses)
            .maybe_text("fate", fates)
            .maybe_count("encoding", rungs.map(|rung| rung.map(|rung| (*rung).into())))
            .finish()
    }
}
