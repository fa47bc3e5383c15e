//! Time series of each direction of a flow, over the whole run regardless of the measure window. Every
//! column counts what happened in the bin: sent by sending time, received and delay by arrival time, lost
//! by drop time, late by the time of the playout decision, discarded by the time of removal from the send
//! queue. `encoding` is the rung of the sender's ladder at the bin's end, 0 being the best; null for a
//! sender that never left the best.
//!
//! Bins that are still counted are in memory, all directions of a bin together. Closed ones go to a spool.

use std::io;
use std::ops::Range;

use arrow_array::RecordBatch;
use talkspurt_proto::probe::Units;
use talkspurt_proto::time::{Duration, Instant};

use crate::columns::Columns;
use crate::layout::Layout;
use crate::spool::{Beyond, Number, Spool, rows};
use crate::stats::{Fact, What};

/// Bins of every direction that has a source.
#[derive(Debug)]
pub(crate) struct Series {
    width: u64,
    count: usize,
    /// By peer: its place among the directions; [`NOWHERE`] for a side without a source.
    places: Vec<u32>,
    directions: usize,
    /// The places of the table's directions in order; set at the end, because reserved flows may stay unused.
    shown: Vec<u32>,
    /// The bin of the last fact.
    present: usize,
    /// Start of the present bin, nanoseconds.
    begin: u64,
    /// Index of the present bin's first direction in `open`.
    row: usize,
    /// The first open bin.
    first: usize,
    /// Open bins, each of them by direction.
    open: Vec<Bin>,
    /// By direction.
    closed: Spool<Bin>,
    /// By peer: the bins in which the rung of the ladder changed, and the new rung.
    rungs: Vec<Vec<(usize, u8)>>,
}

/// More than there are open bins, and no overflow where it is added to their number.
const NOWHERE: u32 = u32::MAX / 2;
/// Bins of all directions in memory: 4 MB.
const HELD: usize = (1 << 22) / size_of::<Bin>();

#[derive(Clone, Copy, Debug, Default)]
struct Bin {
    generated: u32,
    discarded: u32,
    sent: u32,
    received: u32,
    lost: u32,
    late: u32,
    generated_bytes: u64,
    sent_bytes: u64,
    received_bytes: u64,
    delivered_bytes: u64,
    delay_sum: u64,
    delay_max: u64,
}

rows! {
    Bin {
        generated: u32, discarded: u32, sent: u32, received: u32, lost: u32, late: u32,
        generated_bytes: u64, sent_bytes: u64, received_bytes: u64, delivered_bytes: u64,
        delay_sum: u64, delay_max: u64,
    }
}

impl Series {
    /// Bins that exceed the memory go to `beyond`.
    pub(crate) fn new(layout: &Layout, beyond: Beyond) -> Self {
        let mut places = vec![NOWHERE; 2 * layout.flows.len()];
        let mut directions = 0;
        for direction in layout.directions() {
            places[direction.peer] = directions;
            directions += 1;
        }
        let directions = directions as usize;
        Self {
            width: layout.bin_width().as_nanos(),
            count: layout.bin_count(),
            rungs: vec![Vec::new(); places.len()],
            places,
            directions,
            shown: Vec::new(),
            present: 0,
            begin: 0,
            row: 0,
            first: 0,
            open: vec![Bin::default(); directions],
            closed: Spool::new(directions, HELD, beyond),
        }
    }

    /// Makes the bin of an instant the present one. Events at the very end of the run belong to the last bin.
    #[cold]
    fn turn(&mut self, now: Instant) {
        self.present = ((now.as_nanos() / self.width) as usize).min(self.count - 1);
        self.begin = self.present as u64 * self.width;
        let bins = self.present.checked_sub(self.first);
        self.row = bins.expect("no fact is older than the last sample") * self.directions;
        let end = self.row + self.directions;
        if end > self.open.len() {
            self.open.resize(end, Bin::default());
        }
    }

    #[inline(always)]
    pub(crate) fn add(&mut self, now: Instant, fact: &Fact) {
        if matches!(fact.what, What::HandedOver { .. } | What::Played { .. }) {
            return;
        }
        let place = self.place(now, fact.peer);
        let Some(bin) = self.open.get_mut(place) else { return };
        match fact.what {
            What::Generated { bytes, .. } => {
                bin.generated += 1;
                bin.generated_bytes += u64::from(bytes);
            }
            What::Sent { bytes } => {
                bin.sent += 1;
                bin.sent_bytes += u64::from(bytes);
            }
            What::Received { bytes, delay } => {
                bin.received += 1;
                bin.received_bytes += u64::from(bytes);
                bin.delay_sum += delay.as_nanos();
                bin.delay_max = bin.delay_max.max(delay.as_nanos());
            }
            What::Continued { bytes } => bin.received_bytes += u64::from(bytes),
            What::Lost => bin.lost += 1,
            What::Late { .. } => bin.late += 1,
            What::Delivered { bytes, .. } => bin.delivered_bytes += u64::from(bytes),
            What::Encoding { rung } => self.rungs[fact.peer].push((self.present, rung)),
            What::Discarded => bin.discarded += 1,
            What::HandedOver { .. } | What::Played { .. } => {}
        }
    }

    /// Adds units of bulk data that were generated.
    #[inline(always)]
    pub(crate) fn add_units(&mut self, now: Instant, peer: usize, units: Units) {
        let place = self.place(now, peer);
        let Some(bin) = self.open.get_mut(place) else { return };
        let count = units.end - units.first;
        bin.generated += count;
        bin.generated_bytes += u64::from(count) * u64::from(units.bytes);
    }

    /// Index of the bin of an instant; there is no such bin for the side without a source.
    #[inline(always)]
    fn place(&mut self, now: Instant, peer: usize) -> usize {
        if now.as_nanos().wrapping_sub(self.begin) >= self.width {
            self.turn(now);
        }
        self.row + self.places[peer] as usize
    }

    /// Everything before `now` has been added.
    pub(crate) fn settled(&mut self, now: Instant) {
        // The last bin also has what happens at the very end.
        self.close((now.as_nanos() / self.width).min(self.count as u64 - 1) as usize);
    }

    /// Closes all bins; nothing can be added afterwards.
    pub(crate) fn finish(&mut self, layout: &Layout) {
        self.close(self.count);
        self.shown = layout.directions().map(|direction| self.places[direction.peer]).collect();
    }

    /// The run ends earlier than planned, before the last sample.
    pub(crate) fn cut(&mut self, layout: &Layout) {
        self.count = layout.bin_count();
    }

    /// Closes the bins before `end`.
    fn close(&mut self, end: usize) {
        let Some(bins) = end.checked_sub(self.first) else { return };
        let mut rows = self.open.chunks_exact(self.directions.max(1));
        for _ in 0..bins {
            let empty = Bin::default();
            let row = rows.next();
            for place in 0..self.directions {
                let bin = row.map_or(&empty, |row| &row[place]);
                self.closed.push(place, *bin);
            }
        }
        let closed = (bins * self.directions).min(self.open.len());
        self.open.drain(..closed);
        self.first = end;
        if self.open.len() < self.directions {
            self.open.resize(self.directions, Bin::default());
        }
        // Facts of the bin that began here need a row of it.
        if self.first < self.count {
            self.turn(Instant::from_nanos(self.first as u64 * self.width));
        }
    }

    /// The rung at the end of a bin.
    fn rung(&self, peer: usize, bin: usize) -> Option<u64> {
        let changes = &self.rungs[peer];
        let until = changes.partition_point(|(at, _)| *at <= bin);
        let rung = until.checked_sub(1).map_or(0, |last| changes[last].1);
        (!changes.is_empty()).then_some(rung.into())
    }

    /// Rows of the table.
    pub(crate) const fn rows(&self) -> usize {
        self.shown.len() * self.count
    }

    /// A part of the table: direction by direction, each in order of time.
    ///
    /// # Errors
    /// A temporary file cannot be read.
    pub(crate) fn part(&self, layout: &Layout, part: Range<usize>) -> io::Result<RecordBatch> {
        let count = self.count;
        let directions: Vec<_> = layout.directions().collect();
        let names: Vec<String> = directions.iter().map(|direction| direction.name()).collect();
        let mut bins = Vec::with_capacity(part.len());
        for (position, place) in self.shown.iter().enumerate() {
            let bin = |row: usize| row.saturating_sub(position * count).min(count);
            let (from, to) = (bin(part.start), bin(part.end));
            if from < to {
                self.closed.read(*place as usize, from, to, |more| bins.extend_from_slice(more))?;
            }
        }
        let bins = || bins.iter();
        let rows = || part.clone().map(|row| (row / count, row % count));
        let end = |index: usize| layout.bin_end(index);
        let seconds = |index: usize| {
            let begin = Instant::ZERO + Duration::from_nanos(self.width) * index as u64;
            (end(index) - begin).as_secs_f64()
        };
        let received = |bin: &Bin, nanos: f64| (bin.received > 0).then(|| nanos / 1e9);
        let known = |of: fn(&Bin) -> u64| {
            let real = |place: usize| directions[place].source.is_real();
            bins().zip(rows()).map(move |(bin, (place, _))| (!real(place)).then(|| of(bin)))
        };
        Ok(Columns::default()
            .text("flow", rows().map(|(place, _)| names[place].as_str()))
            .time("time_s", rows().map(|(_, index)| end(index)))
            .maybe_count("generated_packets", known(|bin| bin.generated.into()))
            .maybe_count("generated_bytes", known(|bin| bin.generated_bytes))
            .maybe_count("discarded_packets", known(|bin| bin.discarded.into()))
            .count("sent_packets", bins().map(|bin| bin.sent.into()))
            .count("sent_bytes", bins().map(|bin| bin.sent_bytes))
            .count("received_packets", bins().map(|bin| bin.received.into()))
            .count("received_bytes", bins().map(|bin| bin.received_bytes))
            .maybe_float(
                "goodput_bps",
                bins().zip(rows()).map(|(bin, (_, index))| {
                    let seconds = seconds(index);
                    (seconds > 0.0).then(|| bin.delivered_bytes as f64 * 8.0 / seconds)
                }),
            )
            .count("lost_packets", bins().map(|bin| bin.lost.into()))
            .maybe_float(
                "delay_mean_s",
                bins().map(|bin| received(bin, bin.delay_sum as f64 / f64::from(bin.received))),
            )
            .maybe_float("delay_max_s", bins().map(|bin| received(bin, bin.delay_max as f64)))
            .maybe_count(
                "late_packets",
                bins().zip(rows()).map(|(bin, (place, _))| {
                    directions[place].source.frame.map(|_| bin.late.into())
                }),
            )
            .maybe_count(
                "encoding",
                rows().map(|(place, index)| self.rung(directions[place].peer, index)),
            )
            .finish())
    }
}
