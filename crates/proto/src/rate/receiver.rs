//! The receiving half (RFC 5348 §6): measures the receive rate, keeps the loss history and decides
//! when feedback is due. Endpoints define the wire form of feedback.
//!
//! Feedback is timed by the round-trip time (RFC 5348 §6.2) or, where packets carry a window
//! counter, by the counter (RFC 4342 §10.3).

use std::collections::VecDeque;

use crate::gauge::{EndpointProbe, Gauge, Topic};
use crate::time::{Duration, Instant};

use super::config::{Parameters, ReceiveRate};
use super::equation;
use super::history::{Arrival, DEFAULT_RTT, LossHistory};
use super::timeout::TICK;

/// Arrivals kept for the rate over the last round trip. Beyond this, the two oldest are merged,
/// which blurs the start of the measurement and bounds its memory.
const KEPT_ARRIVALS: usize = 4096;

/// Growth of the window counter between two feedback packets (RFC 4342 §10.3).
const COUNTS_PER_RTT: u64 = 4;

/// Contents of a feedback packet (RFC 5348 §3.2.2).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Feedback {
    /// The packet it answers: the last that arrived, data or not.
    pub last: u64,
    /// Time between the arrival of that packet and this feedback (t_delay).
    pub delay: Duration,
    /// X_recv in bytes per second.
    pub receive_rate: u64,
    /// p.
    pub loss_event_rate: f64,
}

/// A receiver of data.
#[derive(Clone, Debug)]
pub struct Receiver {
    history: LossHistory,
    /// Its loss event rate.
    rate: f64,
    nominal_bytes: Option<u32>,
    header_bytes: u32,
    feedback_per_rtt: u64,
    on_arrival: bool,
    measured: ReceiveRate,
    rtt: Option<Duration>,
    /// R_(m−1): the round-trip time at the last feedback, over which the next measures.
    span: Duration,
    /// t_RTO of the sender in seconds, if not 4R.
    timeout: Option<f64>,
    /// Mean bytes of a data packet.
    size: Option<f64>,
    /// The last packet that arrived, and when.
    last: Option<(u64, Instant)>,
    /// When the last feedback left, and the newest window counter then.
    reported: Option<(Instant, Option<u64>)>,
    /// Newest window counter.
    counter: Option<u64>,
    /// Bytes of data since the last feedback.
    bytes: u64,
    /// Data of the last round trip.
    arrivals: VecDeque<(Instant, u64)>,
    /// X_recv as last reported, and the maximum so far.
    reported_rate: f64,
    greatest_rate: f64,
    lost: bool,
    due: bool,
    /// When the feedback timer expires, or last expired without data to report.
    timer: Option<Instant>,
    /// The timer has expired; feedback waits for data.
    quiet: bool,
}

impl Receiver {
    /// Bytes held for arrivals and the loss history.
    pub(crate) fn footprint(&self) -> usize {
        self.arrivals.capacity() * size_of::<(Instant, u64)>() + self.history.footprint()
    }

    /// A receiver in its initial state.
    #[must_use]
    pub fn new(parameters: &Parameters) -> Self {
        Self {
            history: LossHistory::new(parameters),
            rate: 0.0,
            nominal_bytes: parameters.nominal_bytes,
            header_bytes: parameters.header_bytes,
            feedback_per_rtt: u64::from(parameters.feedback_per_rtt.max(1)),
            on_arrival: parameters.feedback_on_arrival,
            measured: parameters.receive_rate,
            rtt: None,
            span: DEFAULT_RTT,
            timeout: None,
            size: None,
            last: None,
            reported: None,
            counter: None,
            bytes: 0,
            arrivals: VecDeque::new(),
            reported_rate: 0.0,
            greatest_rate: 0.0,
            lost: false,
            due: false,
            timer: None,
            quiet: false,
        }
    }

    /// A packet arrived, data or not, no duplicate. Inlined, since reading an [`Arrival`] that was just
    /// written stalls.
    #[inline(always)]
    pub fn on_packet<P: EndpointProbe>(&mut self, now: Instant, arrival: &Arrival, probe: &mut P) {
        if let Some(rtt) = arrival.rtt {
            self.set_rtt(rtt);
        }
        let previous = self.rate;
        // RFC 5348 §6.1 step 1
        let begun = self.history.on_packet(now, arrival);
        self.last = Some((arrival.seq, now));
        self.counter = self.counter.max(arrival.counter);
        if let Some(bytes) = arrival.data_bytes {
            self.take(now, bytes);
        }
        if begun && !self.lost {
            self.lost = true;
            let length = self.first_interval(now);
            self.history.seed(length);
        }
        // RFC 5348 §6.1 steps 2 and 3
        let rate = self.history.loss_event_rate();
        self.rate = rate;
        if begun || rate > previous {
            self.due = true;
        }
        self.schedule(now, arrival);
        if begun || rate.to_bits() != previous.to_bits() {
            self.tell(now, probe);
        }
    }

    /// Data arrived.
    #[inline(always)]
    fn take(&mut self, now: Instant, bytes: u32) {
        let latest = f64::from(bytes);
        self.size = Some(self.size.map_or(latest, |mean| 0.9 * mean + 0.1 * latest));
        self.bytes += u64::from(bytes);
        self.forget(now);
        if self.arrivals.len() == KEPT_ARRIVALS
            && let Some((_, oldest)) = self.arrivals.pop_front()
        {
            self.arrivals[0].1 += oldest;
        }
        self.arrivals.push_back((now, u64::from(bytes)));
    }

    /// Drops arrivals from more than a round trip ago.
    fn forget(&mut self, now: Instant) {
        let span = self.rtt_or_default().max(self.span);
        while self.arrivals.front().is_some_and(|(at, _)| now.saturating_since(*at) >= span) {
            self.arrivals.pop_front();
        }
    }

    /// Determines whether the packet makes feedback due.
    #[inline(always)]
    fn schedule(&mut self, now: Instant, arrival: &Arrival) {
        if arrival.data_bytes.is_none() {
            return;
        }
        let Some((_, reported)) = self.reported else {
            // RFC 5348 §6.3: the first packet is answered at once.
            self.due = true;
            return;
        };
        if let (Some(from), Some(to)) = (reported, arrival.counter) {
            // RFC 4342 §10.3
            let step = COUNTS_PER_RTT.div_ceil(self.feedback_per_rtt);
            self.due |= to.saturating_sub(from) >= step;
        } else if self.on_arrival {
            let since = self.reported.map(|(at, _)| now.saturating_since(at));
            self.due |= since >= Some(self.period());
            self.quiet = false;
        } else {
            // RFC 5348 §6.1 step 4: the feedback timer has expired without data to report. §6.3: every
            // packet is answered until the round-trip time is known.
            self.due |= self.quiet || self.rtt.is_none();
        }
    }

    /// Sets the round-trip time from another source than [`Arrival::rtt`].
    #[inline]
    pub fn set_rtt(&mut self, rtt: Duration) {
        // Most packets repeat the previous value.
        if !rtt.is_zero() && self.rtt != Some(rtt) {
            self.change_rtt(rtt);
        }
    }

    #[inline(never)]
    fn change_rtt(&mut self, rtt: Duration) {
        let known = self.rtt.replace(rtt).is_some();
        // The first packet was answered before its sender knew R: that timer was a guess.
        if !known && let (Some((reported, _)), Some(timer)) = (self.reported, self.timer) {
            self.timer = Some(timer.min(reported + self.period()));
        }
    }

    /// Sets the sender's t_RTO in ticks of 100 ms, if it is not four round-trip times.
    #[inline]
    pub fn set_timeout(&mut self, ticks: u8) {
        self.timeout = (ticks > 0).then(|| f64::from(ticks) * TICK);
    }

    fn rtt_or_default(&self) -> Duration {
        self.rtt.unwrap_or(DEFAULT_RTT)
    }

    fn period(&self) -> Duration {
        (self.rtt_or_default() / self.feedback_per_rtt).max(Duration::from_nanos(1))
    }

    /// Timeout of the feedback timer.
    fn patience(&self) -> Duration {
        if self.on_arrival { self.period() + self.period() / 2 } else { self.period() }
    }

    /// Length of the interval before the first loss (RFC 5348 §6.3.1): from the loss event rate at
    /// which the equation gives the receive rate.
    fn first_interval(&mut self, now: Instant) -> f64 {
        let rtt = self.rtt_or_default().as_secs_f64();
        let size = self.size.unwrap_or(1.0).max(1.0);
        let s = self.nominal_bytes.map_or(size, f64::from);
        // §6.3.1: X_target is the maximum so far, and at least half a packet per round trip.
        let known = match self.measured {
            ReceiveRate::Rfc5348 => self.greatest_rate,
            ReceiveRate::Rfc4342 => self.reported_rate,
        };
        // If the very first packet is marked, there is no time to measure over.
        let latest = if self.reported.is_some() { self.measure(now) } else { 0.0 };
        let target = known.max(latest).max(0.5 * s / rtt);
        // RFC 4828 §4.2: the data received was sent at the equation's rate less the headers' share.
        let header = f64::from(self.header_bytes);
        let target = target * (size + header) / size;
        let p = match self.timeout {
            Some(t_rto) => equation::loss_event_rate_of(target, |p| {
                equation::bounded_throughput(s, rtt, p, t_rto)
            }),
            None => equation::loss_event_rate(s, rtt, target),
        };
        1.0 / p
    }

    /// X_recv in bytes per second. If a window counter shows that a round trip has passed since the
    /// last feedback (RFC 4342 §8.3), that counts: a slightly longer estimate would include both its
    /// first and its last packet, twice the rate at one packet per round trip.
    fn measure(&mut self, now: Instant) -> f64 {
        self.forget(now);
        let rtt = match self.measured {
            ReceiveRate::Rfc5348 => self.span,
            ReceiveRate::Rfc4342 => self.rtt_or_default(),
        };
        let since = self.reported.map_or(Duration::ZERO, |(at, _)| now.saturating_since(at));
        let counted = self.reported.and_then(|(_, from)| Some(self.counter? - from?));
        let whole = since >= rtt || (counted >= Some(COUNTS_PER_RTT) && !since.is_zero());
        match self.measured {
            // RFC 5348 §6.2 (2): the time since the last feedback if at least a round trip ("MAY be
            // calculated over a longer time interval"), but not a pause, in which the timer expired.
            ReceiveRate::Rfc5348 if whole && since < rtt * 2 => {
                let rate = self.bytes as f64 / since.as_secs_f64();
                // "a minimum value ... of one packet per round-trip time"
                let latest = self.arrivals.back().map_or(0, |(_, bytes)| *bytes);
                rate.max(latest as f64 / rtt.as_secs_f64())
            }
            // RFC 4342 §8.3
            ReceiveRate::Rfc4342 if whole => self.bytes as f64 / since.as_secs_f64(),
            _ => {
                let recent = |at: Instant| now.saturating_since(at) < rtt;
                let within = self.arrivals.iter().filter(|(at, _)| recent(*at));
                let bytes: u64 = within.map(|(_, bytes)| bytes).sum();
                bytes as f64 / rtt.as_secs_f64()
            }
        }
    }

    /// True if feedback should leave now.
    #[must_use]
    #[inline]
    pub fn wants_feedback(&self, now: Instant) -> bool {
        let expired = self.deadline().is_some_and(|deadline| deadline <= now);
        // Nothing to report before any data, even if packets were lost.
        self.size.is_some() && (self.due || (expired && self.bytes > 0))
    }

    /// When feedback will be due if nothing arrives before: the feedback timer. Unused if packets
    /// carry a window counter.
    #[must_use]
    #[inline]
    pub fn deadline(&self) -> Option<Instant> {
        self.timer.filter(|_| !self.quiet && self.counter.is_none())
    }

    /// The deadline was reached: feedback is due if data arrived since the last (RFC 5348 §6.2).
    pub fn on_timeout(&mut self, now: Instant) {
        if self.deadline().is_none_or(|deadline| now < deadline) {
            return;
        }
        if self.bytes > 0 {
            self.due = true;
            self.timer = Some(now + self.patience());
        } else {
            self.quiet = true;
        }
    }

    /// The feedback to send now; starts the next measurement. `None` before any data.
    #[inline]
    pub fn feedback(&mut self, now: Instant) -> Option<Feedback> {
        let (last, arrived) = self.last?;
        let rate = match self.reported {
            // RFC 5348 §6.3: the first X_recv is 0, since there is no time to measure it over.
            None => {
                self.size?;
                0.0
            }
            Some(_) => self.measure(now),
        };
        self.reported_rate = rate;
        self.greatest_rate = self.greatest_rate.max(rate);
        self.span = self.rtt_or_default();
        self.reported = Some((now, self.counter));
        self.bytes = 0;
        self.due = false;
        self.quiet = false;
        self.timer = Some(now + self.patience());
        Some(Feedback {
            last,
            delay: now.saturating_since(arrived),
            receive_rate: crate::math::round_u64(rate),
            loss_event_rate: self.rate,
        })
    }

    fn tell<P: EndpointProbe>(&self, now: Instant, probe: &mut P) {
        if !probe.observes(Topic::Gauge) {
            return;
        }
        if let Some(value) = self.history.mean_interval() {
            probe.gauge(now, Gauge::LossInterval, value);
        }
    }

    /// The loss history, for options that report it.
    #[must_use]
    pub const fn history(&self) -> &LossHistory {
        &self.history
    }

    /// Round-trip time, once known.
    #[must_use]
    pub const fn rtt(&self) -> Option<Duration> {
        self.rtt
    }
}
