//! What each direction of a link did: over the measure window, and bin by bin. All of it comes
//! from counters sampled while every link stands at the same instant; no packet is looked at.

use arrow_array::RecordBatch;
use talkspurt_proto::probe::{Control, DropReason, LinkCounters};
use talkspurt_proto::time::{Duration, Instant};

use crate::columns::Columns;
use crate::layout::{Layout, LinkInfo};
use crate::sojourn::{Bin, Sojourn, Sojourns};

/// What one direction of a link did in the measure window: a row of the `links` table. A value is
/// `None` if the window is empty or its ends were not sampled.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LinkSummary {
    /// Name of the direction.
    pub name: String,
    /// Share of the window in which the transmitter was busy.
    pub utilisation: Option<f64>,
    /// Packets whose transmission began.
    pub sent_packets: Option<u64>,
    /// Their bytes.
    pub sent_bytes: Option<u64>,
    /// Packets dropped, by reason.
    pub drops: Option<[u64; DropReason::COUNT]>,
    /// Packets that its queue marked with Congestion Experienced.
    pub marks: Option<u64>,
    /// Transmissions on a radio beyond the first of a frame.
    pub retries: Option<u64>,
    /// Transmissions on a radio that met another's.
    pub collisions: Option<u64>,
    /// Packets waiting, mean over time.
    pub queue_mean_packets: Option<f64>,
    /// Packets waiting, most at once.
    pub queue_max_packets: Option<u64>,
    /// Bytes waiting, mean over time.
    pub queue_mean_bytes: Option<f64>,
    /// How long packets waited, if that was recorded.
    pub sojourn: Sojourn,
}

/// Samples on their way to becoming tables.
#[derive(Debug)]
pub(crate) struct Links {
    from: Instant,
    to: Instant,
    width: Duration,
    end: Instant,
    at_from: Option<Vec<LinkCounters>>,
    at_to: Option<Vec<LinkCounters>>,
    peaks: Vec<u32>,
    edge: Instant,
    at_edge: Vec<LinkCounters>,
    rows: Vec<Row>,
}

#[derive(Clone, Copy, Debug)]
struct Row {
    link: u32,
    at: Instant,
    span: Span,
    /// At the end of the bin.
    control: Control,
}

/// What the counters grew by between two instants, as rates and means.
#[derive(Clone, Copy, Debug)]
struct Span {
    utilisation: f64,
    queue_packets: f64,
    queue_bytes: f64,
    drops: u64,
    marks: u64,
}

impl Span {
    fn between(before: &LinkCounters, after: &LinkCounters, length: Duration) -> Option<Self> {
        let nanos = length.as_nanos() as f64;
        let mean = |before: u128, after: u128| after.saturating_sub(before) as f64 / nanos;
        (!length.is_zero()).then(|| Self {
            utilisation: after.busy.saturating_sub(before.busy).as_nanos() as f64 / nanos,
            queue_packets: mean(before.queue_area_packets, after.queue_area_packets),
            queue_bytes: mean(before.queue_area_bytes, after.queue_area_bytes),
            drops: dropped(before, after).iter().sum(),
            marks: after.marks - before.marks,
        })
    }
}

fn dropped(before: &LinkCounters, after: &LinkCounters) -> [u64; DropReason::COUNT] {
    std::array::from_fn(|why| after.drops[why] - before.drops[why])
}

impl Links {
    pub(crate) fn new(layout: &Layout) -> Self {
        let at_start = vec![LinkCounters::default(); layout.links.len()];
        Self {
            from: layout.from,
            to: layout.to,
            width: layout.bin_width(),
            end: Instant::ZERO + layout.duration,
            at_from: (layout.from == Instant::ZERO).then(|| at_start.clone()),
            at_to: None,
            peaks: vec![0; layout.links.len()],
            edge: Instant::ZERO,
            at_edge: at_start,
            rows: Vec::new(),
        }
    }

    pub(crate) fn sample(&mut self, now: Instant, links: &[LinkCounters]) {
        if self.from < now && now <= self.to {
            for (peak, link) in self.peaks.iter_mut().zip(links) {
                *peak = (*peak).max(link.queue_max_packets);
            }
        }
        if now == self.from {
            self.at_from = Some(links.to_vec());
        }
        if now == self.to {
            self.at_to = Some(links.to_vec());
        }
        let on_edge = now.as_nanos().is_multiple_of(self.width.as_nanos()) || now == self.end;
        if on_edge && now > self.edge {
            self.close_bin(now, links);
        }
    }

    fn close_bin(&mut self, now: Instant, links: &[LinkCounters]) {
        let length = now - self.edge;
        for (link, (before, after)) in (0_u32..).zip(self.at_edge.iter().zip(links)) {
            let span = Span::between(before, after, length);
            let control = after.control;
            self.rows.extend(span.map(|span| Row { link, at: now, span, control }));
        }
        self.edge = now;
        self.at_edge = links.to_vec();
    }

    pub(crate) fn summaries(&self, layout: &Layout) -> Vec<LinkSummary> {
        let named = |name: &str| LinkSummary { name: name.to_owned(), ..LinkSummary::default() };
        let summary = |(index, info): (usize, &LinkInfo)| {
            self.summary(index, layout.window(), &info.name).unwrap_or_else(|| named(&info.name))
        };
        layout.links.iter().enumerate().map(summary).collect()
    }

    fn summary(&self, index: usize, window: Duration, name: &str) -> Option<LinkSummary> {
        let before = self.at_from.as_ref()?.get(index)?;
        let after = self.at_to.as_ref()?.get(index)?;
        let span = Span::between(before, after, window)?;
        Some(LinkSummary {
            name: name.to_owned(),
            utilisation: Some(span.utilisation),
            sent_packets: Some(after.sent_packets - before.sent_packets),
            sent_bytes: Some(after.sent_bytes - before.sent_bytes),
            drops: Some(dropped(before, after)),
            marks: Some(after.marks - before.marks),
            retries: Some(after.retries - before.retries),
            collisions: Some(after.collisions - before.collisions),
            queue_mean_packets: Some(span.queue_packets),
            queue_max_packets: Some(self.peaks[index].into()),
            queue_mean_bytes: Some(span.queue_bytes),
            sojourn: Sojourn::default(),
        })
    }

    /// The `link_series` table: link by link, each in order of time. The queue is its mean length
    /// over the bin; what the discipline makes of it is told as it is at its end.
    pub(crate) fn series_table(&self, layout: &Layout, sojourns: Option<&Sojourns>) -> RecordBatch {
        let mut rows: Vec<&Row> = self.rows.iter().collect();
        rows.sort_by_key(|row| row.link);
        let spans = || rows.iter().map(|row| row.span);
        let controls = || rows.iter().map(|row| row.control);
        let waits = || rows.iter().map(|row| sojourns.and_then(|all| all.bin(row.link, row.at)));
        let name = |row: &&Row| layout.links[row.link as usize].name.as_str();
        Columns::default()
            .text("link", rows.iter().map(name))
            .time("time_s", rows.iter().map(|row| row.at))
            .float("queue_packets", spans().map(|span| span.queue_packets))
            .float("queue_bytes", spans().map(|span| span.queue_bytes))
            .float("utilisation", spans().map(|span| span.utilisation))
            .count("drops", spans().map(|span| span.drops))
            .count("marks", spans().map(|span| span.marks))
            .maybe_float("sojourn_mean_s", waits().map(|bin| bin.and_then(Bin::mean_s)))
            .maybe_float("sojourn_max_s", waits().map(|bin| bin.and_then(Bin::max_s)))
            .maybe_float("average_packets", controls().map(|control| control.average_packets))
            .maybe_float("drop_probability", controls().map(|control| control.drop_probability))
            .maybe_float("drops_per_second", controls().map(|control| control.drops_per_second))
            .maybe_float("tokens_bytes", controls().map(|control| control.tokens_bytes))
            .finish()
    }
}

/// The `links` table.
pub(crate) fn table(layout: &Layout, rows: &[LinkSummary]) -> RecordBatch {
    let infos = || layout.links.iter();
    let far_ends: Vec<_> = infos().map(LinkInfo::far_end).collect();
    let drops =
        |why: DropReason| rows.iter().map(move |row| row.drops.map(|drops| drops[why as usize]));
    Columns::default()
        .text("name", rows.iter().map(|row| row.name.as_str()))
        .text("from", infos().map(|link| link.from.as_str()))
        .text("to", far_ends.iter().map(AsRef::as_ref))
        .count("rate_bps", infos().map(|link| link.rate_bps))
        .maybe_float("utilisation", rows.iter().map(|row| row.utilisation))
        .maybe_count("sent_packets", rows.iter().map(|row| row.sent_packets))
        .maybe_count("sent_bytes", rows.iter().map(|row| row.sent_bytes))
        .maybe_count("drops", rows.iter().map(|row| row.drops.map(|all| all.iter().sum())))
        .maybe_count("drops_full", drops(DropReason::Full))
        .maybe_count("drops_early", drops(DropReason::Early))
        .maybe_count("drops_medium", drops(DropReason::Medium))
        .maybe_count("drops_down", drops(DropReason::Down))
        .maybe_count("drops_too_big", drops(DropReason::TooBig))
        .maybe_count("drops_retries", drops(DropReason::Retries))
        .maybe_count("marks", rows.iter().map(|row| row.marks))
        .maybe_count("retries", rows.iter().map(|row| row.retries))
        .maybe_count("collisions", rows.iter().map(|row| row.collisions))
        .maybe_float("queue_mean_packets", rows.iter().map(|row| row.queue_mean_packets))
        .maybe_count("queue_max_packets", rows.iter().map(|row| row.queue_max_packets))
        .maybe_float("queue_mean_bytes", rows.iter().map(|row| row.queue_mean_bytes))
        .maybe_float("sojourn_mean_s", rows.iter().map(|row| row.sojourn.mean_s))
        .maybe_float("sojourn_p50_s", rows.iter().map(|row| row.sojourn.p50_s))
        .maybe_float("sojourn_p95_s", rows.iter().map(|row| row.sojourn.p95_s))
        .maybe_float("sojourn_p99_s", rows.iter().map(|row| row.sojourn.p99_s))
        .maybe_float("sojourn_max_s", rows.iter().map(|row| row.sojourn.max_s))
        .finish()
}
