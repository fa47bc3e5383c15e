//! The loss event rate a sender computes from Loss Intervals (RFC 5348 §7, RFC 4342 §6.1 and
//! §8.6), with the small-packet rule of RFC 4828 §4.4 if Dropped Packets is present.

use std::collections::VecDeque;

use super::options::{LossIntervals, MAX_INTERVALS};
use crate::dccp::seqno::SeqNo;
use crate::rate::history::DEFAULT_RTT;
use crate::rate::{Parameters, ReceiveRate, equation, history};
use crate::time::{Duration, Instant};

/// RFC 4828 §4.4: a loss interval of at most two round trips counts each of its losses.
const SHORT_ROUND_TRIPS: u64 = 2;

/// State of earlier reports needed to read the next.
#[derive(Debug, Default)]
pub(super) struct Reported {
    last: f64,
    /// Length of the interval before the first loss (RFC 5348 §6.3.1), after that loss.
    seed: Option<f64>,
    /// Greatest X_recv so far, in bytes per second.
    greatest_rate: u64,
    /// Where closed intervals began, latest first, and whether they were short; determined once, while
    /// the departure times of their packets are known.
    judged: VecDeque<(SeqNo, bool)>,
    /// Packets that count as marked without being counted by the receiver: the first of each loss
    /// event, with its departure time; oldest first.
    marks: VecDeque<(SeqNo, Instant)>,
    /// The newest such packet, whether it began an event or not.
    newest_mark: Option<SeqNo>,
}

/// A report and the sender's own data.
pub(super) struct Context<'a> {
    /// The packet it acknowledges.
    pub(super) acked: SeqNo,
    /// Packets sent up to that one.
    pub(super) sent_packets: u64,
    /// The reported intervals.
    pub(super) intervals: &'a LossIntervals,
    /// Drop Counts, if any.
    pub(super) drops: &'a [u64],
    /// X_recv in bytes per second.
    pub(super) receive_rate: u64,
    /// s in bytes.
    pub(super) segment_size: f64,
    /// Mean size of the packets sent in bytes.
    pub(super) packet_size: f64,
    /// R, once known.
    pub(super) rtt: Option<Duration>,
    /// When a packet left, if it is remembered.
    pub(super) sent_at: &'a dyn Fn(SeqNo) -> Option<Instant>,
    /// The machine's values.
    pub(super) parameters: &'a Parameters,
}

impl Reported {
    /// Bytes held.
    pub(super) fn footprint(&self) -> usize {
        self.judged.capacity() * size_of::<(SeqNo, bool)>()
            + self.marks.capacity() * size_of::<(SeqNo, Instant)>()
    }

    /// The last loss event rate.
    pub(super) const fn last(&self) -> f64 {
        self.last
    }

    /// A packet that left at `at` counts as marked (RFC 4340 §11.7.2). Must be called in order; repeated
    /// packets are ignored.
    pub(super) fn on_mark(&mut self, seq: SeqNo, at: Instant, rtt: Option<Duration>) {
        if self.newest_mark.is_some_and(|newest| seq <= newest) {
            return;
        }
        self.newest_mark = Some(seq);
        // RFC 5348 §5.2: marks within a round trip of the event's first are one event.
        let rtt = rtt.unwrap_or(DEFAULT_RTT);
        if self.marks.back().is_some_and(|(_, began)| at.saturating_since(*began) <= rtt) {
            return;
        }
        if self.marks.len() == MAX_INTERVALS {
            self.marks.pop_front();
        }
        self.marks.push_back((seq, at));
    }

    /// Positions at which marks not counted by the receiver divide an interval, newest first: those it
    /// counted are in its lossy part, and those within a round trip of its start belong to its event.
    fn divisions(
        &self,
        report: &Context<'_>,
        (start, end): (SeqNo, SeqNo),
        lossy_packets: u64,
    ) -> Vec<SeqNo> {
        if self.marks.is_empty() {
            return Vec::new();
        }
        let began = (report.sent_at)(start).filter(|_| lossy_packets > 0);
        let rtt = report.rtt.unwrap_or(DEFAULT_RTT);
        let inside = |&(seq, at): &(SeqNo, Instant)| {
            let same = began.is_some_and(|began| at.saturating_since(began) <= rtt);
            (start + lossy_packets <= seq && seq <= end && !same).then_some(seq)
        };
        self.marks.iter().rev().filter_map(inside).collect()
    }

    /// The loss event rate of a report.
    pub(super) fn read(&mut self, report: &Context<'_>) -> f64 {
        self.greatest_rate = self.greatest_rate.max(report.receive_rate);
        let intervals = self.lengths(report);
        self.last = match intervals.split_first() {
            Some((open, closed)) => history::loss_event_rate(*open, closed, report.parameters),
            None => 0.0,
        };
        self.last
    }

    /// Interval lengths for the average, latest first; none without loss.
    fn lengths(&mut self, report: &Context<'_>) -> Vec<f64> {
        let intervals = &report.intervals.intervals;
        let mut end = report.acked.back(report.intervals.skip_packets.into());
        // RFC 4342 §8.6.1: only the interval before the first loss has no lossy part.
        let lossless = intervals.first().is_none_or(|interval| interval.lossy_packets == 0);
        if intervals.is_empty() || (lossless && self.marks.iter().all(|(seq, _)| *seq > end)) {
            return Vec::new();
        }
        // No more packets can have been received or lost than were sent.
        let mut left = report.sent_packets;
        let mut lengths = Vec::with_capacity(intervals.len());
        for (place, interval) in intervals.iter().enumerate() {
            let packets = interval.packets().min(left);
            left -= packets;
            let start = end.back(packets.saturating_sub(1));
            let data = interval.data_packets.min(packets);
            let lossy_packets = interval.lossy_packets;
            let mut rest = (data, packets, end);
            for from in self.divisions(report, (start, end), lossy_packets) {
                let (data, packets, upper) = rest;
                let newer = upper.since(from) + 1;
                // The report does not say which of its packets had no data.
                let its =
                    (u128::from(data) * u128::from(newer) / u128::from(packets.max(1))) as u64;
                let short = self.is_short(report, lengths.is_empty(), from, upper);
                let current = lengths.is_empty() && short;
                let length = history::counted_length(its, 1, short, report.parameters);
                lengths.push(if current { 0.0 } else { length });
                rest = (data - its.min(data), packets.saturating_sub(newer), from.back(1));
            }
            lengths.push(if lossy_packets == 0 {
                self.seed(report)
            } else {
                let short = self.is_short(report, lengths.is_empty(), start, rest.2);
                // RFC 5622 §8.7: a missing or greater Drop Count counts as the Loss Length.
                let drops =
                    report.drops.get(place).map_or(lossy_packets, |it| lossy_packets.min(*it));
                if place == 0 && short && rest.2 == end {
                    // RFC 4828 §3: a short current interval is ignored.
                    0.0
                } else {
                    history::counted_length(rest.0, drops, short, report.parameters)
                }
            });
            end = start.back(1);
        }
        // RFC 4342 §8.6: at its first loss a receiver may report the new interval alone.
        if lengths.len() == 1 {
            lengths.push(self.seed(report));
        }
        lengths
    }

    /// RFC 5348 §6.3.1: the first interval has the length at which the equation gives the greatest
    /// X_recv so far, about half the rate at the loss; by RFC 4342 §6.1.1 the latest.
    fn seed(&mut self, report: &Context<'_>) -> f64 {
        let known = match report.parameters.receive_rate {
            ReceiveRate::Rfc5348 => self.greatest_rate,
            ReceiveRate::Rfc4342 => report.receive_rate,
        };
        *self.seed.get_or_insert_with(|| {
            let (s, parameters) = (report.segment_size, report.parameters);
            let r = report.rtt.unwrap_or(DEFAULT_RTT).as_secs_f64();
            // RFC 5348 §6.3.1: if nothing was received before, one packet per two round trips.
            let x = (known as f64).max(s / (2.0 * r));
            // RFC 4828 §4.2: the data received was sent at the equation's rate minus the share of headers.
            let size = report.packet_size.max(1.0);
            let header = f64::from(parameters.header_bytes);
            1.0 / equation::loss_event_rate(s, r, x * (size + header) / size)
        })
    }

    fn is_short(&mut self, report: &Context<'_>, open: bool, start: SeqNo, end: SeqNo) -> bool {
        if !report.parameters.short_intervals {
            return false;
        }
        if let Some((_, short)) = self.judged.iter().find(|(seq, _)| *seq == start) {
            return *short;
        }
        let span = (report.sent_at)(start)
            .zip((report.sent_at)(end))
            .map(|(first, last)| last.saturating_since(first));
        let short = span.zip(report.rtt).is_some_and(|(span, rtt)| span <= rtt * SHORT_ROUND_TRIPS);
        if !open {
            self.judged.push_front((start, short));
            self.judged.truncate(MAX_INTERVALS);
        }
        short
    }
}
