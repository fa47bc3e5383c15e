//! The `gauges` table: a row per change of a gauge at a peer. With a folder, rows are written whenever a group
//! is full, so that memory holds one group.

use std::collections::BTreeMap;
use std::io;
use std::ops::Range;

use arrow_array::RecordBatch;
use talkspurt_proto::probe::Gauge;
use talkspurt_proto::time::Instant;

use crate::columns::Columns;
use crate::layout::{Layout, SIDES};
use crate::parquet::{Column, Kind, Parquet, Values};
use crate::tables::{Folder, GROUP_ROWS};

/// The changes of every gauge.
#[derive(Debug)]
pub(crate) struct Gauges {
    /// By peer and gauge: the last value, as bits.
    last: Vec<[u64; GAUGES]>,
    /// Gauges that external stacks name, numbered after the others.
    named: Vec<&'static str>,
    /// By peer and number: their last values.
    last_named: BTreeMap<(u32, u16), u64>,
    rows: Vec<Row>,
    /// `None` keeps all rows in memory.
    folder: Option<Folder>,
    file: Option<Parquet>,
    names: Vec<String>,
}

#[derive(Clone, Copy, Debug)]
struct Row {
    at: Instant,
    value: f64,
    peer: u32,
    gauge: u16,
}

const GAUGES: usize = Gauge::METRICS.len();
/// No gauge has these bits: they are one of the many forms of a value that is not a number.
const NONE: u64 = u64::MAX;

impl Gauges {
    pub(crate) const NAME: &str = "gauges";

    pub(crate) fn new(layout: &Layout, folder: Option<Folder>) -> Self {
        Self {
            last: vec![[NONE; GAUGES]; 2 * layout.flows.len()],
            named: Vec::new(),
            last_named: BTreeMap::new(),
            rows: Vec::new(),
            folder,
            file: None,
            names: layout.flows.iter().map(|flow| flow.name.clone()).collect(),
        }
    }

    #[inline]
    pub(crate) fn add(&mut self, at: Instant, peer: u32, gauge: Gauge, value: f64) {
        let Some(last) = self.last.get_mut(peer as usize) else { return };
        // A gauge is a step function: keep only its steps.
        if std::mem::replace(&mut last[gauge as usize], value.to_bits()) == value.to_bits() {
            return;
        }
        self.push(Row { at, value, peer, gauge: gauge as u16 });
    }

    /// The same for a gauge that an external stack names.
    pub(crate) fn add_named(&mut self, at: Instant, peer: u32, name: &'static str, value: f64) {
        let place = self.named.iter().position(|known| *known == name);
        let place = place.unwrap_or_else(|| {
            self.named.push(name);
            self.named.len() - 1
        });
        let gauge = (GAUGES + place) as u16;
        if self.last_named.insert((peer, gauge), value.to_bits()) != Some(value.to_bits()) {
            self.push(Row { at, value, peer, gauge });
        }
    }

    #[inline]
    fn push(&mut self, row: Row) {
        self.rows.push(row);
        if self.rows.len() >= GROUP_ROWS && self.folder.is_some() {
            self.write();
        }
    }

    /// The names of all gauges by number.
    fn gauge_names(&self) -> impl Iterator<Item = &'static str> {
        Gauge::METRICS.iter().map(|one| one.name).chain(self.named.iter().copied())
    }

    /// Whether a write failed, so that the run may stop early.
    pub(crate) fn failed(&self) -> bool {
        self.file.as_ref().is_some_and(Parquet::failed)
    }

    /// Writes the rows in memory as one group.
    #[cold]
    fn write(&mut self) {
        let Some(folder) = &self.folder else { return };
        let columns = [
            Column::of("time_s", Kind::Number),
            Column::of("flow", Kind::Text),
            Column::of("side", Kind::Text),
            Column::of("gauge", Kind::Text),
            Column::of("value", Kind::Number),
        ];
        let gauges: Vec<String> = self.gauge_names().map(str::to_owned).collect();
        let file = self.file.get_or_insert_with(|| folder.create(Self::NAME, columns.to_vec()));
        let sides = SIDES.map(str::to_owned);
        let rows = || self.rows.iter();
        let times: Vec<u64> = rows().map(|row| row.at.as_secs_f64().to_bits()).collect();
        let values: Vec<u64> = rows().map(|row| row.value.to_bits()).collect();
        let each = |of: fn(&Row) -> u32| rows().map(of).collect::<Vec<u32>>();
        file.group(
            self.rows.len(),
            &[
                Values::Bits(&[], &times),
                Values::Words(&self.names, &each(|row| row.peer / 2)),
                Values::Words(&sides, &each(|row| row.peer % 2)),
                Values::Words(&gauges, &each(|row| row.gauge.into())),
                Values::Bits(&[], &values),
            ],
        );
        self.rows.clear();
    }

    /// Completes the file, if there is a row; returns whether there is one.
    ///
    /// # Errors
    /// The first write error.
    pub(crate) fn store(&mut self) -> io::Result<bool> {
        if !self.rows.is_empty() {
            self.write();
        }
        let Some(file) = self.file.take() else { return Ok(false) };
        file.finish_quickly().map(|()| true)
    }

    /// Rows in memory.
    pub(crate) fn rows(&self) -> usize {
        self.rows.len()
    }

    /// A part of the rows in memory.
    pub(crate) fn part(&self, part: Range<usize>) -> RecordBatch {
        let gauges: Vec<&str> = self.gauge_names().collect();
        let rows = || self.rows[part.clone()].iter();
        Columns::default()
            .time("time_s", rows().map(|row| row.at))
            .text("flow", rows().map(|row| self.names[row.peer as usize / 2].as_str()))
            .text("side", rows().map(|row| SIDES[row.peer as usize % 2]))
            .text("gauge", rows().map(|row| gauges[usize::from(row.gauge)]))
            .float("value", rows().map(|row| row.value))
            .finish()
    }
}
