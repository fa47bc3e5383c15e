//! Statistics of each direction of a link: over the measure window, and per bin. All of them come from
//! counters sampled while all links stand at the same instant; packets are not inspected.

use std::io;
use std::ops::Range;

use arrow_array::RecordBatch;
use talkspurt_proto::metric::{MILLISECONDS, Metric, PACKETS, View};
use talkspurt_proto::probe::{Control, DropReason, LinkCounters};
use talkspurt_proto::time::{Duration, Instant};

use crate::columns::{Columns, summary};
use crate::layout::{Layout, LinkInfo};
use crate::sojourn::{Bin, Sojourns};
use crate::spool::{Beyond, Number, Spool, rows};

/// Samples before they become tables.
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
    /// By link: its bins. `None` if only the summary is wanted.
    rows: Option<Spool<Row>>,
}

#[derive(Clone, Copy, Debug)]
struct Row {
    at: Instant,
    span: Span,
    /// At the end of the bin.
    control: Control,
}

/// Bins of all links in memory: 4 MB.
const HELD: usize = (1 << 22) / size_of::<Row>();

rows! {
    Row { at: Instant, span: Span, control: Control }
    Span {
        utilisation: f64, capacity_bps: Option<f64>, queue_packets: f64, queue_bytes: f64, drops: u64, marks: u64,
    }
    Control {
        average_packets: Option<f64>, drop_probability: Option<f64>,
        drops_per_second: Option<f64>, tokens_bytes: Option<f64>,
    }
}

/// Growth of the counters between two instants, as rates and means.
#[derive(Clone, Copy, Debug)]
struct Span {
    utilisation: f64,
    capacity_bps: Option<f64>,
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
            capacity_bps: after.capacity.map(|after| mean(before.capacity.unwrap_or(0), after)),
            queue_packets: mean(before.queue_area_packets, after.queue_area_packets),
            queue_bytes: mean(before.queue_area_bytes, after.queue_area_bytes),
            drops: after.drops.iter().sum::<u64>() - before.drops.iter().sum::<u64>(),
            marks: after.marks - before.marks,
        })
    }
}

fn dropped(before: &LinkCounters, after: &LinkCounters, why: DropReason) -> u64 {
    after.drops[why as usize] - before.drops[why as usize]
}

impl Links {
    /// With `series`, also the bins of each link; those that exceed the memory go there.
    pub(crate) fn new(layout: &Layout, series: Option<Beyond>) -> Self {
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
            rows: series.map(|beyond| Spool::new(layout.links.len(), HELD, beyond)),
        }
    }

    /// The run ends earlier than planned.
    pub(crate) fn cut(&mut self, layout: &Layout) {
        (self.to, self.end) = (layout.to, Instant::ZERO + layout.duration);
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
        let Some(rows) = &mut self.rows else { return };
        let length = now - self.edge;
        for (link, (before, after)) in self.at_edge.iter().zip(links).enumerate() {
            if let Some(span) = Span::between(before, after, length) {
                rows.push(link, Row { at: now, span, control: after.control });
            }
        }
        self.edge = now;
        self.at_edge.clear();
        self.at_edge.extend_from_slice(links);
    }

    pub(crate) fn summaries(&self, layout: &Layout) -> Vec<LinkSummary> {
        let summary = |(index, info): (usize, &LinkInfo)| {
            let (name, rate_bps) = (info.name.clone(), info.rate_bps);
            let named = LinkSummary { name, rate_bps, ..LinkSummary::default() };
            self.summary(index, layout.window(), &named).unwrap_or(named)
        };
        layout.links.iter().enumerate().map(summary).collect()
    }

    /// That of a measured window; the times in the queue are known when the run is over.
    fn summary(&self, index: usize, window: Duration, named: &LinkSummary) -> Option<LinkSummary> {
        let before = self.at_from.as_ref()?.get(index)?;
        let after = self.at_to.as_ref()?.get(index)?;
        let span = Span::between(before, after, window)?;
        let dropped = |why| Some(dropped(before, after, why));
        Some(LinkSummary {
            utilisation: Some(span.utilisation),
            sent_packets: Some(after.sent_packets - before.sent_packets),
            sent_bytes: Some(after.sent_bytes - before.sent_bytes),
            drops: Some(span.drops),
            drops_full: dropped(DropReason::Full),
            drops_early: dropped(DropReason::Early),
            drops_medium: dropped(DropReason::Medium),
            drops_down: dropped(DropReason::Down),
            drops_too_big: dropped(DropReason::TooBig),
            drops_retries: dropped(DropReason::Retries),
            marks: Some(after.marks - before.marks),
            retries: Some(after.retries - before.retries),
            collisions: Some(after.collisions - before.collisions),
            queue_mean_packets: Some(span.queue_packets),
            queue_max_packets: Some(self.peaks[index].into()),
            queue_mean_bytes: Some(span.queue_bytes),
            ..named.clone()
        })
    }

    /// Rows of the `link_series` table.
    pub(crate) fn series_rows(&self) -> usize {
        let links = 0..self.at_edge.len();
        self.rows.as_ref().map_or(0, |rows| links.map(|link| rows.len(link)).sum())
    }

    /// A part of the `link_series` table: link by link, each in order of time. The queue is its mean length
    /// over the bin; the discipline's own variables are those at the bin's end.
    ///
    /// # Errors
    /// A temporary file cannot be read.
    pub(crate) fn series_part(
        &self,
        layout: &Layout,
        sojourns: Option<&Sojourns>,
        part: Range<usize>,
    ) -> io::Result<RecordBatch> {
        let mut rows: Vec<(usize, Row)> = Vec::with_capacity(part.len());
        let mut begin = 0;
        let links =
            self.rows.iter().flat_map(|spool| (0..layout.links.len()).map(move |k| (k, spool)));
        for (link, spool) in links {
            let end = begin + spool.len(link);
            let inside = part.start.clamp(begin, end)..part.end.clamp(begin, end);
            spool.read(link, inside.start - begin, inside.end - begin, |more| {
                rows.extend(more.iter().map(|row| (link, *row)));
            })?;
            begin = end;
        }
        let spans = || rows.iter().map(|(_, row)| row.span);
        let controls = || rows.iter().map(|(_, row)| row.control);
        let waits = || {
            let bin = |(link, row): &(usize, Row)| sojourns?.bin(*link, row.at);
            rows.iter().map(bin)
        };
        Ok(Columns::default()
            .text("link", rows.iter().map(|(link, _)| layout.links[*link].name.as_str()))
            .time("time_s", rows.iter().map(|(_, row)| row.at))
            .float("queue_packets", spans().map(|span| span.queue_packets))
            .float("queue_bytes", spans().map(|span| span.queue_bytes))
            .float("utilisation", spans().map(|span| span.utilisation))
            .maybe_float("capacity_bps", spans().map(|span| span.capacity_bps))
            .count("drops", spans().map(|span| span.drops))
            .count("marks", spans().map(|span| span.marks))
            .maybe_float("sojourn_mean_s", waits().map(|bin| bin.and_then(Bin::mean_s)))
            .maybe_float("sojourn_max_s", waits().map(|bin| bin.and_then(Bin::max_s)))
            .maybe_float("average_packets", controls().map(|control| control.average_packets))
            .maybe_float("drop_probability", controls().map(|control| control.drop_probability))
            .maybe_float("drops_per_second", controls().map(|control| control.drops_per_second))
            .maybe_float("tokens_bytes", controls().map(|control| control.tokens_bytes))
            .finish())
    }
}

summary! {
    /// Statistics of one direction of a link in the measure window: a row of the `links` table. A value is
    /// `None` if the window is empty or its ends were not sampled.
    LinkSummary, LINK_METRICS, numbers:
    fields {
        /// Name of the direction.
        name: String,
    }
    metrics {
        /// Transmission rate; the initial one if it changes.
        rate_bps: u64 = Metric::of("bit/s", "kbit/s", 0.001, 0)
            .described("rate", "as the scenario says").titled("rate", "", "")
            .shown(&[View::Links.at(0).rank(1)]);
        /// Share of the window in which the transmitter was sending.
        utilisation: Option<f64> = Metric::of("1", "%", 100.0, 1)
            .described("utilisation", "time busy ÷ length of the window").titled("busy", "", "")
            .shown(&[View::Links.at(1), View::ReportLinks.at(0)]);
        /// Packets of all flows whose transmission began, including control packets.
        sent_packets: Option<u64> = PACKETS
            .described("packets", "counted when a packet leaves the queue");
        /// IP bytes of these packets, without framing.
        sent_bytes: Option<u64> = Metric::of("bytes", "", 1.0, 0)
            .described("bytes", "Σ IP length of packets that left the queue");
        /// Packets of all flows dropped here: full queue, medium, outage, or too long.
        drops: Option<u64> = PACKETS
            .described("dropped", "full + early + medium + down + too big + retries")
            .titled("dropped", "", "").shown(&[View::Links.at(4), View::ReportLinks.at(1)]);
        /// Packets dropped by a full queue.
        drops_full: Option<u64> = PACKETS
            .described("dropped, full", "counted when dropped");
        /// Packets dropped by the queue discipline before the queue was full.
        drops_early: Option<u64> = PACKETS
            .described("dropped, early", "counted when dropped");
        /// Packets lost on the medium: random loss, bursts, bit errors.
        drops_medium: Option<u64> = PACKETS
            .described("dropped, medium", "counted when dropped");
        /// Packets lost because the link was down.
        drops_down: Option<u64> = PACKETS
            .described("dropped, down", "counted when dropped");
        /// Packets longer than the link's MTU.
        drops_too_big: Option<u64> = PACKETS
            .described("dropped, too big", "counted when dropped");
        /// Packets dropped after the last permitted radio transmission.
        drops_retries: Option<u64> = PACKETS
            .described("dropped, retries", "counted when dropped");
        /// Packets that the queue marked with Congestion Experienced instead of dropping them.
        marks: Option<u64> = PACKETS.described("marked", "counted by the link (RFC 3168 §5)")
            .shown(&[View::ReportLinks.at(4).rank(1)]);
        /// Radio retransmissions of unacknowledged frames.
        retries: Option<u64> = PACKETS
            .described("retries", "counted by the transmitter of a cell");
        /// Radio transmissions that collided.
        collisions: Option<u64> = PACKETS
            .described("collisions", "counted by the transmitter of a cell");
        /// Time average of packets waiting for the transmitter, excluding the one being sent.
        queue_mean_packets: Option<f64> = Metric::of("packets", "", 1.0, 1)
            .described("queue, mean", "∫ queue dt ÷ length of the window")
            .titled("queue mean", "mean queue", "")
            .shown(&[View::Links.at(2).rank(2), View::ReportLinks.at(2)]);
        /// Longest queue.
        queue_max_packets: Option<u64> = PACKETS
            .described("queue, longest", "maximum over the window")
            .titled("queue longest", "longest queue", "")
            .shown(&[View::Links.at(3).rank(3), View::ReportLinks.at(3)]);
        /// Time average of IP bytes waiting for the transmitter.
        queue_mean_bytes: Option<f64> = Metric::of("bytes", "", 1.0, 0)
            .described("queue, mean bytes", "∫ bytes waiting dt ÷ length of the window");
        /// Mean time that packets which left the queue spent in it (RFC 8289: sojourn time). Requires
        /// `record.sojourn`.
        sojourn_mean_s: Option<f64> = MILLISECONDS
            .described("wait, mean", "mean of (transmission begins − packet comes)")
            .shown(&[View::ReportLinks.at(5).rank(1)]);
        /// Time in the queue that half the packets did not exceed.
        sojourn_p50_s: Option<f64> = MILLISECONDS
            .described("wait, p50", "nearest-rank quantile over packets");
        /// Time in the queue that 95 % of packets did not exceed.
        sojourn_p95_s: Option<f64> = MILLISECONDS
            .described("wait, p95", "nearest-rank quantile over packets");
        /// Time in the queue that 99 % of packets did not exceed.
        sojourn_p99_s: Option<f64> = MILLISECONDS
            .described("wait, p99", "nearest-rank quantile over packets")
            .shown(&[View::ReportLinks.at(6).rank(1)]);
        /// Longest time of a packet in the queue.
        sojourn_max_s: Option<f64> = MILLISECONDS
            .described("wait, longest", "maximum over packets");
    }
    of_fields {}
}

/// The `links` table of these links.
pub(crate) fn table(infos: &[LinkInfo], rows: &[LinkSummary]) -> RecordBatch {
    let far_ends: Vec<_> = infos.iter().map(LinkInfo::far_end).collect();
    let columns = Columns::default()
        .text("name", rows.iter().map(|row| row.name.as_str()))
        .text("from", infos.iter().map(|link| link.from.as_str()))
        .text("to", far_ends.iter().map(AsRef::as_ref));
    numbers(columns, rows).finish()
}
