//! A receiver's loss history (RFC 5348 §5): which packets are lost, which losses form one event, the
//! lengths of intervals between events, and the resulting loss event rate. RFC 4342 §6.1, §8.6 and
//! §10.2 and RFC 4828 §4.4 are also implemented here, as parameters and as fields of an interval.

use std::collections::VecDeque;

use crate::time::{Duration, Instant};

use super::average::{Closed, Rule, Weighed};
use super::config::Parameters;

/// Closed intervals kept: with the open one, those of the longest Loss Intervals option (RFC 4342 §8.6: 28).
pub const KEPT_INTERVALS: usize = 28;

/// The round-trip time to assume while none is known (RFC 4340 §3.4).
pub const DEFAULT_RTT: Duration = Duration::from_millis(200);

/// Growth of the window counter per round trip (RFC 4342 §8.1).
const COUNTS_PER_RTT: u64 = 4;
/// Number of values of its four bits in a packet.
const COUNTER_SPACE: u64 = 16;

/// A packet that arrived, data or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// Its position in the sequence space, which counts packets and does not wrap.
    pub seq: u64,
    /// Bytes of data if it carries any that count.
    pub data_bytes: Option<u32>,
    /// Number of packets directly before it without data (RFC 4340 §7.7: NDP Count), if known; 0 if
    /// every packet carries data or nothing is counted.
    pub non_data_before: u64,
    /// It arrived with Congestion Experienced.
    pub marked: bool,
    /// The sender's round-trip time, from the packet or estimated by the caller; `None` keeps the last value.
    pub rtt: Option<Duration>,
    /// The sender's window counter, unwrapped, where there is one (RFC 4342 §8.1): it grows by four
    /// in a round trip. With it loss events are distinguished by §10.2, without it by time.
    pub counter: Option<u64>,
}

/// A loss interval: from the first loss of an event to before the first loss of the next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Interval {
    /// Its first sequence number.
    pub start: u64,
    /// Packets from its first loss to its last (RFC 4342 §8.6.1: Loss Length).
    pub loss_length: u64,
    /// Packets after that (Lossless Length).
    pub lossless_length: u64,
    /// Data packets in the whole interval (Data Length): its length in the average.
    pub data_length: u64,
    /// Data packets in it that were lost or marked (RFC 5622 §5: Drop Count).
    pub drop_count: u64,
    /// It is at most two round trips long, so that each loss counts (RFC 4828 §4.4).
    pub short: bool,
}

/// A position in the stream of packets and its time.
#[derive(Clone, Copy, Debug)]
struct Mark {
    seq: u64,
    time: Instant,
    counter: Option<u64>,
}

/// A packet that arrived above a gap, with fewer than NDUPACK of them.
#[derive(Clone, Copy, Debug)]
struct Waiting {
    mark: Mark,
    data: bool,
    non_data_before: u64,
    marked: bool,
}

/// The loss history.
#[derive(Clone, Debug)]
pub struct LossHistory {
    ndupack: usize,
    rule: Rule,
    short_intervals: bool,
    first_interval_lasts: bool,
    counter_wraps: bool,
    event_needs_arrival: bool,
    rtt: Duration,
    /// The last packet up to which everything is decided.
    decided: Option<Mark>,
    /// Packets above a gap, in order.
    waiting: Vec<Waiting>,
    open: Interval,
    /// Start of the current loss event; `None` before any loss.
    event: Option<Mark>,
    /// Newest first.
    closed: VecDeque<(Interval, Weighed)>,
    /// Their sums.
    sums: Closed,
}

impl LossHistory {
    /// Bytes held.
    pub(super) fn footprint(&self) -> usize {
        self.waiting.capacity() * size_of::<Waiting>()
            + self.closed.capacity() * size_of::<(Interval, Weighed)>()
    }

    /// A history without packets.
    #[must_use]
    pub fn new(parameters: &Parameters) -> Self {
        Self {
            ndupack: parameters.ndupack.max(1) as usize,
            rule: Rule {
                n: parameters.loss_intervals.clamp(1, KEPT_INTERVALS),
                threshold: parameters.history_discounting.then_some(parameters.discount_threshold),
                few: parameters.few_intervals,
            },
            short_intervals: parameters.short_intervals,
            first_interval_lasts: parameters.first_interval_lasts,
            counter_wraps: parameters.counter_wraps,
            event_needs_arrival: parameters.event_needs_arrival,
            rtt: DEFAULT_RTT,
            decided: None,
            waiting: Vec::new(),
            open: Interval::default(),
            event: None,
            closed: VecDeque::new(),
            sums: Closed::default(),
        }
    }

    /// A packet arrived. True if it revealed a new loss event. A packet found lost stays lost if it
    /// arrives later, and a duplicate changes nothing.
    #[inline(always)]
    pub fn on_packet(&mut self, now: Instant, arrival: &Arrival) -> bool {
        if let Some(rtt) = arrival.rtt.filter(|rtt| !rtt.is_zero()) {
            self.rtt = rtt;
        }
        let mark = Mark { seq: arrival.seq, time: now, counter: arrival.counter };
        let packet = Waiting {
            mark,
            data: arrival.data_bytes.is_some(),
            non_data_before: arrival.non_data_before,
            marked: arrival.marked,
        };
        // In order, the usual case.
        if self.waiting.is_empty()
            && self.decided.as_ref().is_some_and(|decided| arrival.seq == decided.seq + 1)
        {
            return self.accept(&packet);
        }
        self.on_disorder(packet)
    }

    /// The first packet, or one out of order.
    #[inline(never)]
    fn on_disorder(&mut self, packet: Waiting) -> bool {
        let seq = packet.mark.seq;
        let Some(decided) = self.decided else {
            self.open.start = seq;
            return self.accept(&packet);
        };
        if seq <= decided.seq {
            return false;
        }
        match self.waiting.binary_search_by_key(&seq, |waiting| waiting.mark.seq) {
            Ok(_) => return false,
            Err(place) => self.waiting.insert(place, packet),
        }
        self.decide()
    }

    /// Decides as many waiting packets as possible.
    fn decide(&mut self) -> bool {
        let mut begun = false;
        while let Some(packet) = self.waiting.first().copied() {
            let decided = self.decided.expect("packets wait only above one that is decided");
            if packet.mark.seq > decided.seq + 1 {
                // RFC 5348 §5.1: lost once NDUPACK later packets have arrived, or a marked one, which
                // does not wait for them.
                let marked = |later: &Waiting| later.marked && later.data;
                if self.waiting.len() < self.ndupack && !self.waiting.iter().any(marked) {
                    break;
                }
                begun |= self.lose(decided, &packet);
            }
            self.waiting.remove(0);
            begun |= self.accept(&packet);
        }
        begun
    }

    /// A packet is in place, with everything before it decided.
    #[inline(always)]
    fn accept(&mut self, packet: &Waiting) -> bool {
        self.decided = Some(packet.mark);
        // RFC 5348 §5.2: a mark is a loss at the instant of arrival.
        if packet.marked && packet.data {
            let begun = self.is_new(packet.mark);
            if begun {
                self.begin(packet.mark);
            }
            self.extend(packet.mark.seq, 1);
            return begun;
        }
        self.open.lossless_length += 1;
        self.open.data_length += u64::from(packet.data);
        self.open.short = self.is_short(packet.mark);
        false
    }

    /// All packets between two that arrived are lost, except those without data, which do not count.
    fn lose(&mut self, before: Mark, after: &Waiting) -> bool {
        let gap = after.mark.seq - before.seq - 1;
        // RFC 4340 §7.7.1: those without data directly precede the packet that counts them.
        let non_data = after.non_data_before.min(gap);
        let (mut seq, end) = (before.seq + 1, after.mark.seq - non_data);
        let mut events = 0;
        while seq < end {
            let mark = between(before, after.mark, seq);
            if self.is_new(mark) {
                self.begin(mark);
                events += 1;
            }
            // A gap may hold many events, of which the newest matter; the last takes the rest,
            // which bounds the work a peer's numbers can cause.
            let last = if events > KEPT_INTERVALS || (self.event_needs_arrival && events > 0) {
                end - 1
            } else {
                self.last_of_event(before, after.mark, seq, end)
            };
            self.extend(last, last - seq + 1);
            seq = last + 1;
        }
        self.open.lossless_length += non_data;
        events > 0
    }

    /// The last packet before `end` in the same event as `seq`; times only grow.
    fn last_of_event(&self, before: Mark, after: Mark, seq: u64, end: u64) -> u64 {
        let (mut low, mut high) = (seq, end);
        while high - low > 1 {
            let middle = low + (high - low) / 2;
            if self.is_new(between(before, after, middle)) {
                high = middle;
            } else {
                low = middle;
            }
        }
        low
    }

    /// Whether this loss begins an event.
    fn is_new(&self, loss: Mark) -> bool {
        let Some(event) = self.event else { return true };
        match (event.counter, loss.counter) {
            // RFC 4342 §10.2: more than a round trip of window counts later.
            (Some(from), Some(to)) => {
                let grown = to.saturating_sub(from);
                let grown = if self.counter_wraps { grown % COUNTER_SPACE } else { grown };
                grown > COUNTS_PER_RTT
            }
            // RFC 5348 §5.2: T_old + R_i >= T_new is the same event.
            _ => loss.time.saturating_since(event.time) > self.rtt,
        }
    }

    /// Whether the interval from the current event to this point is short.
    fn is_short(&self, end: Mark) -> bool {
        self.event.is_some_and(|event| match (event.counter, end.counter) {
            (Some(from), Some(to)) => to.saturating_sub(from) <= 2 * COUNTS_PER_RTT,
            _ => end.time.saturating_since(event.time) <= self.rtt * 2,
        })
    }

    /// A loss event begins and closes the open interval.
    fn begin(&mut self, at: Mark) {
        let mut closing = self.open;
        closing.short = self.is_short(at);
        if !self.first_interval_lasts {
            // The interval before the first loss has no loss length.
            self.closed.retain(|(interval, _)| interval.loss_length > 0);
        }
        // RFC 5348 §5.5: the general discount is applied to the existing ones.
        if self.rule.threshold.is_some() && !self.closed.is_empty() {
            let general = self.sums.general_discount(self.counted(&closing), self.rule);
            self.closed.iter_mut().for_each(|(_, weighed)| weighed.discount *= general);
        }
        let weighed = Weighed { length: self.counted(&closing), discount: 1.0 };
        self.closed.push_front((closing, weighed));
        self.closed.truncate(KEPT_INTERVALS);
        self.sum_up();
        self.open = Interval { start: at.seq, ..Interval::default() };
        self.event = Some(at);
    }

    /// Extends the current event to `last`, with this many more data packets lost.
    fn extend(&mut self, last: u64, lost: u64) {
        self.open.loss_length = last - self.open.start + 1;
        self.open.lossless_length = 0;
        self.open.data_length += lost;
        self.open.drop_count += lost;
        self.open.short = true;
    }

    /// An interval's length in the average.
    fn counted(&self, interval: &Interval) -> f64 {
        let packets = interval.data_length as f64;
        // RFC 4828 §4.4: a short interval of N packets, K of them lost, counts as N/K.
        if self.short_intervals && interval.short && interval.drop_count > 0 {
            packets / interval.drop_count as f64
        } else {
            packets
        }
    }

    /// Sets the length of the interval before the first loss event to what it would be at the rate
    /// the sender had reached (RFC 5348 §6.3.1). The receiver does so at the first event.
    pub fn seed(&mut self, data_length: f64) {
        if let Some((interval, weighed)) = self.closed.back_mut() {
            weighed.length = data_length.max(1.0);
            // RFC 4342 §6.1.1: its data length may exceed its packets.
            interval.data_length = crate::math::round_u64(weighed.length);
        }
        self.sum_up();
    }

    fn sum_up(&mut self) {
        self.sums = Closed::of(self.closed.iter().map(|(_, weighed)| weighed), self.rule);
    }

    /// Loss event rate p, 0 without loss (RFC 5348 §5.4).
    #[must_use]
    #[inline]
    pub fn loss_event_rate(&self) -> f64 {
        self.mean_interval().map_or(0.0, |mean| 1.0 / mean.max(1.0))
    }

    /// I_mean in packets; `None` without loss.
    #[must_use]
    #[inline]
    pub fn mean_interval(&self) -> Option<f64> {
        // RFC 4828 §3: a current interval of at most two round trips is excluded.
        if self.short_intervals && self.open.short {
            return self.sums.closed_mean();
        }
        let closed = || self.closed.iter().map(|(_, weighed)| weighed);
        self.sums.mean_interval(self.counted(&self.open), closed, self.rule)
    }

    /// The intervals, newest first: the open one, then at most [`KEPT_INTERVALS`] closed ones. The
    /// open one ends before the [skipped](Self::skip_length) packets. The oldest may be the one
    /// before the first loss; its `loss_length` is 0.
    pub fn intervals(&self) -> impl Iterator<Item = Interval> + '_ {
        let open = self.decided.map(|_| self.open);
        open.into_iter().chain(self.closed.iter().map(|(interval, _)| *interval))
    }

    /// The newest packets that intervals do not count yet, since missing ones among them may still
    /// arrive (RFC 4342 §8.6: Skip Length).
    #[must_use]
    pub fn skip_length(&self) -> u64 {
        match (self.decided, self.waiting.last()) {
            (Some(decided), Some(newest)) => newest.mark.seq - decided.seq,
            _ => 0,
        }
    }

    /// The newest packet that arrived.
    #[must_use]
    pub fn newest(&self) -> Option<u64> {
        self.waiting.last().map(|packet| packet.mark).or(self.decided).map(|mark| mark.seq)
    }
}

/// Estimated position and sending time of a packet between two others.
fn between(before: Mark, after: Mark, seq: u64) -> Mark {
    let (part, whole) = (u128::from(seq - before.seq), u128::from(after.seq - before.seq));
    // RFC 5348 §5.2: T_loss is interpolated between T_before and T_after as S_loss between S_before
    // and S_after. Reordering may have delayed `before` beyond `after`.
    let span = u128::from(after.time.saturating_since(before.time).as_nanos());
    let time = before.time + Duration::from_nanos((span * part / whole) as u64);
    // RFC 4342 §10.2: the counter of the packet before the loss, so that consecutive losses are one
    // event however long they last.
    Mark { seq, time, counter: before.counter }
}

/// The loss event rate of reported intervals, for a sender that computes p itself (RFC 5348 §7, RFC 4342 §6.1):
/// `open` is I_0, `closed` are I_1, I_2, … as lengths in packets, short ones divided by their losses if the
/// parameters require it ([`counted_length`]); `open` is 0 if excluded (RFC 4828 §3). Without closed intervals
/// p is 0. History discounting needs the receiver's state and is omitted.
#[must_use]
pub fn loss_event_rate(open: f64, closed: &[f64], parameters: &Parameters) -> f64 {
    let closed: Vec<_> =
        closed.iter().map(|length| Weighed { length: *length, discount: 1.0 }).collect();
    let rule = Rule {
        n: parameters.loss_intervals.clamp(1, KEPT_INTERVALS),
        threshold: None,
        few: parameters.few_intervals,
    };
    let sums = Closed::of(closed.iter(), rule);
    sums.mean_interval(open, || closed.iter(), rule).map_or(0.0, |mean| 1.0 / mean.max(1.0))
}

/// The length in the average of an interval of `data_length` packets with `drop_count` lost: N/K if
/// it is short and each loss in short intervals counts (RFC 4828 §4.4).
#[must_use]
pub fn counted_length(
    data_length: u64,
    drop_count: u64,
    short: bool,
    parameters: &Parameters,
) -> f64 {
    let losses = if parameters.short_intervals && short { drop_count.max(1) } else { 1 };
    data_length as f64 / losses as f64
}
