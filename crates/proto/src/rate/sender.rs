//! The sending half (RFC 5348 §4): the allowed rate from feedback and from its absence. The idle
//! rules of RFC 3448 and Linux, RFC 4828's small packets and faster restart are parameters.

use crate::gauge::{EndpointProbe, Gauge, Topic};
use crate::math::round_u64;
use crate::time::{Duration, Instant};
use crate::units::Rate;

use super::config::{Idle, Parameters};
use super::equation;
use super::ns2;
use super::pacing::Pacing;
use super::receive_set::{Limits, ReceiveSet};
use super::restart::Restart;
use super::timeout::CoarseTimeout;
use super::{Permit, RateControl, Report};

/// t_mbi: a sender sends at least one packet in this time (RFC 5348 §4.3), in seconds.
const LONGEST_INTERVAL: f64 = 64.0;
/// The nofeedback timer before the first round-trip time (RFC 5348 §4.2).
const INITIAL_TIMEOUT: Duration = Duration::from_secs(2);
/// W_init is between two and four packets and near this many bytes (RFC 5348 §4.2, RFC 3390).
const INITIAL_WINDOW_BYTES: f64 = 4380.0;
/// s before any data was sent, without a nominal size.
const SIZE_BEFORE_DATA: f64 = 1460.0;
/// Factor for X_recv if a data-limited sender learns of loss (RFC 5348 §4.3 step 4).
const DATA_LIMITED_LOSS: f64 = 0.85;

/// A sender's averaged round-trip time, in seconds.
#[derive(Clone, Copy, Debug)]
struct RoundTrip {
    /// R.
    mean: f64,
    /// R as a span.
    span: Duration,
    /// √R_sample of the last sample.
    latest_root: f64,
    /// R_sqmean, an average of roots.
    root_mean: f64,
}

/// A sender of data.
#[derive(Clone, Debug)]
pub struct Sender {
    parameters: Parameters,
    pacing: Pacing,
    limits: Limits,
    receive_set: ReceiveSet,
    restart: Restart,
    /// Mean bytes of the packets sent.
    size: Option<f64>,
    round_trip: Option<RoundTrip>,
    /// t_RTO, if not 4R.
    timeout: Option<CoarseTimeout>,
    /// X; `None` before the first packet or round-trip time.
    rate: Option<f64>,
    /// X_Bps, once p > 0.
    equation_rate: Option<f64>,
    /// X_recv as last reported, or as the nofeedback timer has lowered it.
    receive_rate: Option<f64>,
    loss_event_rate: f64,
    /// X_inst, less the share of headers, and the time between two packets: used at every event,
    /// and recomputed when rate, size or round-trip time may have changed.
    paced_rate: f64,
    spacing: Duration,
    /// tld: when the rate was last doubled in slow start.
    doubled: Option<Instant>,
    nofeedback: Option<Instant>,
    /// A packet was sent since the nofeedback timer was set.
    active: bool,
    last_sent: Option<Instant>,
    /// Since when a permit is unused.
    unused: Option<Instant>,
    /// When a packet last left after its permit had been unused.
    limited: Option<Instant>,
    slow_start: ns2::SlowStart,
    told: [Option<f64>; 6],
    /// The rate last reported to a source that can follow any; `None` for others.
    target: Option<Rate>,
}

impl Sender {
    /// A sender in its initial state. `now` is when its connection opened.
    #[must_use]
    pub fn new(now: Instant, parameters: &Parameters) -> Self {
        Self {
            pacing: Pacing::new(parameters),
            limits: Limits::default(),
            receive_set: ReceiveSet::new(now),
            restart: Restart::default(),
            size: None,
            round_trip: None,
            timeout: parameters.ns2_timeout.then(CoarseTimeout::default),
            rate: None,
            equation_rate: None,
            receive_rate: None,
            loss_event_rate: 0.0,
            paced_rate: 0.0,
            spacing: Duration::ZERO,
            doubled: None,
            nofeedback: None,
            active: false,
            last_sent: None,
            unused: None,
            limited: None,
            slow_start: ns2::SlowStart::default(),
            told: [None; 6],
            target: None,
            parameters: parameters.clone(),
        }
    }

    /// X in bytes per second, without oscillation prevention; 0 before the first packet.
    #[must_use]
    pub fn allowed_rate(&self) -> f64 {
        self.rate.unwrap_or(0.0)
    }
    /// X_Bps of the throughput equation in bytes per second, less the share of headers if they
    /// count; `None` while p is 0 or R unknown.
    #[must_use]
    pub const fn equation_rate(&self) -> Option<f64> {
        self.equation_rate
    }
    /// X_recv as last reported, in bytes per second.
    #[must_use]
    pub const fn receive_rate(&self) -> Option<f64> {
        self.receive_rate
    }
    /// p as last reported, not below the floor.
    #[must_use]
    pub const fn loss_event_rate(&self) -> f64 {
        self.loss_event_rate
    }
    /// Time between two packets at the currently allowed rate (RFC 5348 §4.6: t_ipi).
    #[must_use]
    pub const fn interval(&self) -> Duration {
        self.spacing
    }

    /// Recomputes the pacing.
    fn pace(&mut self) {
        let rate = self.effective_rate();
        self.paced_rate = rate;
        self.spacing = if rate <= 0.0 {
            Duration::ZERO
        } else {
            Duration::from_secs_f64(self.paced_size() / rate).max(self.parameters.minimum_interval)
        };
    }

    /// X_inst.
    fn effective_rate(&self) -> f64 {
        let rate = self.allowed_rate();
        // RFC 5348 §4.5
        match self.round_trip {
            Some(round_trip) if self.parameters.oscillation_prevention => {
                (rate * round_trip.root_mean / round_trip.latest_root).max(self.least_rate())
            }
            _ => rate,
        }
    }

    /// Share left by headers of a rate that includes them (RFC 4828 §4.2: s_true/(s_true + H)): the
    /// rate of the equation and the initial one. Received rates, and twice a rate, are data
    /// already; ns-2's TFRC applies it to the equation only (`voip_`).
    fn data_share(&self) -> f64 {
        let size = self.paced_size();
        size / (size + f64::from(self.parameters.header_bytes))
    }

    /// s/t_mbi.
    fn least_rate(&self) -> f64 {
        self.segment_size() / LONGEST_INTERVAL
    }

    /// W_init/R, once R is known (RFC 5348 §4.2).
    fn initial_rate(&self) -> Option<f64> {
        let s = self.segment_size();
        let window = match self.parameters.initial_window {
            Some(packets) => f64::from(packets) * s,
            None => (4.0 * s).min((2.0 * s).max(INITIAL_WINDOW_BYTES)),
        };
        self.round_trip.map(|round_trip| window / round_trip.mean * self.data_share())
    }

    /// The minimum rate in slow start: W_init/R, or, before RFC 5348, s/R.
    fn slow_start_floor(&self, r: f64) -> f64 {
        match self.parameters.idle {
            Idle::Rfc5348 => self.initial_rate().unwrap_or(0.0),
            Idle::Rfc3448 | Idle::Ns2 | Idle::Linux => self.segment_size() / r,
        }
    }

    /// RFC 5348 §4.3 step 2, and §4.5 for the root.
    #[inline]
    fn measure(&mut self, sample: Duration) {
        if let Some(timeout) = &mut self.timeout {
            timeout.measure(sample);
        }
        let sample = sample.max(Duration::from_nanos(1)).as_secs_f64();
        let root = sample.sqrt();
        let (q, q2) = (self.parameters.rtt_weight, self.parameters.root_weight);
        let (mean, root_mean) = match self.round_trip {
            None => (sample, root),
            Some(old) => {
                (q * old.mean + (1.0 - q) * sample, q2 * old.root_mean + (1.0 - q2) * root)
            }
        };
        let span = Duration::from_secs_f64(mean);
        if self.parameters.idle == Idle::Rfc5348 {
            self.pacing.bound(self.parameters.timer_granularity, span);
        }
        self.round_trip = Some(RoundTrip { mean, span, latest_root: root, root_mean });
    }

    /// RFC 5348 §4.2: X = W_init/R, tld = t_now.
    fn start(&mut self, now: Instant) {
        if let Some(rate) = self.initial_rate() {
            self.rate = Some(rate);
            self.doubled = Some(now);
        }
    }

    /// Limit from the receive rates: recv_limit of RFC 5348 §4.3 step 4, or the wider one of faster restart.
    #[inline(always)]
    fn receive_limit(&mut self, now: Instant, rate: f64, limited: bool, worse: bool) -> f64 {
        let rtt = self.rtt().unwrap_or(Duration::ZERO);
        let base = match self.parameters.idle {
            Idle::Rfc5348 if limited && worse => {
                self.receive_set.halve();
                self.receive_set.maximize(now, DATA_LIMITED_LOSS * rate);
                return self.receive_set.highest();
            }
            Idle::Rfc5348 if limited => {
                self.receive_set.maximize(now, rate);
                self.receive_set.highest()
            }
            Idle::Rfc5348 => {
                self.receive_set.update(now, rate, rtt);
                self.receive_set.highest()
            }
            Idle::Rfc3448 | Idle::Ns2 | Idle::Linux => rate,
        };
        let limit = self.twice(now, base);
        if self.parameters.idle == Idle::Ns2 && self.loss_event_rate > 0.0 {
            return limit.max(self.segment_size() / rtt.as_secs_f64().max(1e-9));
        }
        self.idle_floor(now, limit)
    }

    /// Linux: idle is two round trips without sending, and allows the initial rate.
    fn idle_floor(&self, now: Instant, limit: f64) -> f64 {
        let rtt = self.rtt().unwrap_or(Duration::ZERO);
        let idle = self.last_sent.is_none_or(|at| now.saturating_since(at) >= rtt * 2);
        match self.parameters.idle {
            Idle::Linux if idle => limit.max(self.initial_rate().unwrap_or(0.0)),
            _ => limit,
        }
    }

    /// Twice a rate, or the rate of faster restart.
    fn twice(&self, now: Instant, rate: f64) -> f64 {
        if self.parameters.faster_restart { self.restart.next(now, rate) } else { 2.0 * rate }
    }

    /// RFC 5348 §4.3 step 4, second half: X from X_Bps or by slow start, within the limit.
    fn update_rate(&mut self, now: Instant, limit: f64) {
        let Some(RoundTrip { mean: r, .. }) = self.round_trip else { return };
        let rate = self.allowed_rate();
        if self.loss_event_rate > 0.0 {
            let (s, p) = (self.segment_size(), self.loss_event_rate);
            let equation = match self.timeout {
                Some(t_rto) => equation::bounded_throughput(s, r, p, t_rto.seconds()),
                None => equation::throughput(s, r, p),
            };
            let equation = equation * self.data_share();
            let began = self.equation_rate.replace(equation).is_none();
            let mut next = equation.min(limit);
            if self.parameters.idle == Idle::Ns2 {
                // Leaves slow start at once, then rises by a packet per round trip each round trip.
                let since = self
                    .doubled
                    .map_or(f64::INFINITY, |at| now.saturating_since(at).as_secs_f64() / r);
                let risen = rate + s / r * since.min(2.0);
                let initial = self.initial_rate().filter(|_| self.was_limited(now)).unwrap_or(0.0);
                if began {
                    next = equation;
                } else if equation > rate {
                    next = equation.min(limit.max(initial)).min(risen);
                }
                if !began {
                    self.doubled = Some(now);
                }
            }
            self.rate = Some(next.max(self.least_rate()));
            return;
        }
        self.equation_rate = None;
        if let (Idle::Ns2, Some(initial)) = (self.parameters.idle, self.initial_rate()) {
            let round = ns2::Round {
                now,
                received: self.receive_rate.unwrap_or(0.0),
                rate,
                initial,
                packet: self.segment_size() / r,
                rtt: Duration::from_secs_f64(r),
                limited: self.was_limited(now),
            };
            self.rate = Some(self.slow_start.on_feedback(&round));
            self.doubled = Some(self.slow_start.changed);
            return;
        }
        let rested = self.doubled.is_none_or(|at| now.saturating_since(at).as_secs_f64() >= r);
        if rested {
            self.rate = Some(self.twice(now, rate).min(limit).max(self.slow_start_floor(r)));
            self.doubled = Some(now);
        }
    }

    /// ns-2's TFRC: whether there was nothing to send at some point in the last 1.5 round trips.
    fn was_limited(&self, now: Instant) -> bool {
        let rtt = self.rtt().unwrap_or(Duration::ZERO);
        let since = self.limited.map(|at| now.saturating_since(at));
        self.unused.is_some() || since.is_some_and(|since| since < rtt + rtt / 2)
    }

    /// Whether a packet that leaves now, after one at `before`, ends an idle time.
    #[inline(never)]
    fn was_idle(&self, now: Instant, before: Option<Instant>) -> bool {
        let gap = before.map(|before| now.saturating_since(before));
        self.parameters.idle == Idle::Rfc5348 && gap >= Some(self.rtt().unwrap_or(INITIAL_TIMEOUT))
    }

    /// Sets the nofeedback timer: max(4R, 2s/X) (RFC 5348 §4.3 step 3 and 6, §4.4).
    fn set_timer(&mut self, now: Instant) {
        let packets = 2.0 * self.segment_size() / self.allowed_rate();
        let packets = Duration::from_secs_f64(packets);
        let count = if self.parameters.idle == Idle::Ns2 { 2.0 } else { 4.0 };
        let least = match self.round_trip {
            Some(round_trip) => Duration::from_secs_f64(count * round_trip.mean),
            None => INITIAL_TIMEOUT,
        };
        let least = least.max(self.parameters.minimum_timeout);
        self.nofeedback = Some((now + packets.max(least)).min(Instant::HORIZON));
        self.active = false;
    }

    /// RFC 5348 §4.4: the nofeedback timer expired.
    fn back_off(&mut self, now: Instant) {
        let idle = !self.active;
        let halved = (self.allowed_rate() / 2.0).max(self.least_rate());
        let Some(recover_rate) = self.initial_rate().filter(|_| self.receive_rate.is_some()) else {
            // No feedback yet: a sender with data to send halves.
            if !idle {
                self.rate = Some(halved);
            }
            return;
        };
        let receive_rate = self.receive_set.highest();
        let lossless = self.loss_event_rate <= 0.0;
        let slow = if lossless {
            self.allowed_rate() < 2.0 * recover_rate
        } else {
            receive_rate < recover_rate
        };
        if idle && slow {
            // An idle sender keeps the initial rate.
        } else if lossless {
            self.rate = Some(halved);
        } else {
            let equation = self.equation_rate.unwrap_or(f64::INFINITY);
            let limit = if equation > 2.0 * receive_rate { receive_rate } else { equation / 2.0 };
            // RFC 5348 §4.4: an idle sender's rate does not fall below the recover_rate; RFC 4342 §5.1:
            // unless it was below it before.
            let kept = if idle { recover_rate.min(self.allowed_rate()) } else { 0.0 };
            // Update_Limits
            let limit = limit.max(kept).max(self.least_rate());
            self.receive_set.replace(now, limit / 2.0);
            self.update_rate(now, limit);
        }
    }

    /// ns-2's TFRC: half the rate, but an idle sender keeps at least the initial one; then a packet may leave.
    fn back_off_ns2(&mut self) {
        self.slow_start.on_timeout();
        let rate = self.allowed_rate();
        let kept = match self.initial_rate() {
            Some(initial) if self.unused.is_some() => initial.min(rate),
            _ => 0.0,
        };
        self.rate = Some((rate / 2.0).max(kept).max(self.least_rate()));
    }

    /// RFC 3448 §4.4, with erratum 1458; and Linux's version, which has no idle rule here.
    fn back_off_3448(&mut self, now: Instant) {
        let s = self.segment_size();
        let halved = (self.allowed_rate() / 2.0).max(self.least_rate());
        let (Some(receive_rate), Some(round_trip)) = (self.receive_rate, self.round_trip) else {
            self.rate = Some(halved);
            return;
        };
        let rfc = self.parameters.idle == Idle::Rfc3448;
        // RFC 3448 §4.4: an idle sender that received less than four packets per round trip.
        if rfc && !self.active && receive_rate < 4.0 * s / round_trip.mean {
            return;
        }
        if self.loss_event_rate <= 0.0 {
            // Linux halves X and keeps X_recv.
            if rfc {
                self.receive_rate = Some((receive_rate / 2.0).max(self.least_rate() / 2.0));
            }
            self.rate = Some(halved);
            return;
        }
        let equation = self.equation_rate.unwrap_or(f64::INFINITY);
        let lowered = if equation > 2.0 * receive_rate {
            (receive_rate / 2.0).max(self.least_rate() / 2.0)
        } else {
            equation / 4.0
        };
        self.receive_rate = Some(lowered);
        self.update_rate(now, self.idle_floor(now, 2.0 * lowered));
    }

    fn tell<P: EndpointProbe>(&mut self, now: Instant, probe: &mut P) {
        if !probe.observes(Topic::Gauge) {
            return;
        }
        let bits = |rate: f64| 8.0 * rate;
        let gauges = [
            (Gauge::Rate, self.rate.map(bits)),
            (Gauge::ReceiveRate, self.receive_rate.map(bits)),
            (Gauge::EquationRate, self.equation_rate.map(bits)),
            (Gauge::RttSquareMean, self.round_trip.map(|it| it.root_mean * it.root_mean)),
            (Gauge::LossEventRate, self.receive_rate.map(|_| self.loss_event_rate)),
            (Gauge::Srtt, self.round_trip.map(|it| it.mean)),
        ];
        for ((gauge, value), told) in gauges.into_iter().zip(&mut self.told) {
            if value != *told {
                *told = value;
                if let Some(value) = value {
                    probe.gauge(now, gauge, value);
                }
            }
        }
    }
}

impl RateControl for Sender {
    fn permit(&mut self, now: Instant, _bytes: u32) -> Permit {
        debug_assert_eq!(
            self.paced_rate,
            self.effective_rate(),
            "what it is made of changed unnoticed"
        );
        match self.pacing.next(self.spacing) {
            Some(at) if at > now => Permit::At(at),
            _ => Permit::Now,
        }
    }

    fn on_unused(&mut self, now: Instant) {
        self.unused.get_or_insert(now);
    }

    fn on_sent(&mut self, now: Instant, bytes: u32) {
        let latest = f64::from(bytes.max(1));
        // RFC 5348 §4.1: s is a mean; the weights are Linux's.
        self.size = Some(self.size.map_or(latest, |mean| 0.9 * mean + 0.1 * latest));
        let before = self.last_sent.replace(now);
        let first = before.is_none();
        let waited = self.unused.take().is_some_and(|since| since < now);
        if first {
            // RFC 5348 §4.3: X_recv_set bounds nothing in the first two round trips, which begin now.
            self.receive_set = ReceiveSet::new(now);
            if self.round_trip.is_some() {
                // The handshake's round-trip time was known before s.
                self.start(now);
            } else {
                // RFC 5348 §4.2: one packet per second until the round-trip time is known.
                let ns2 = self.parameters.idle == Idle::Ns2;
                self.rate = Some(if ns2 { ns2::FIRST_RATE } else { self.segment_size() });
            }
            self.set_timer(now);
        }
        if waited {
            self.limited = Some(now);
        }
        if waited && !self.active && self.was_idle(now, before) {
            // RFC 5348 §4.4: the timer must not expire before feedback after the idle time can arrive.
            self.set_timer(now);
        }
        self.active = true;
        // RFC 5348 §8.2.1: the packet used its permit at once, so the sender was at its limit. The
        // first packet did not have to wait.
        if !waited && !first {
            self.limits.not_limited(now, self.rtt().unwrap_or(Duration::ZERO));
        }
        self.pace();
        if self.parameters.idle == Idle::Ns2 && self.loss_event_rate <= 0.0 {
            // It prevents no oscillation while it increases.
            let rising = self.slow_start.next(self.allowed_rate());
            let rate = rising.unwrap_or(self.paced_rate);
            self.spacing = Duration::from_secs_f64(self.paced_size() / rate);
        }
        self.pacing.on_sent(now, self.spacing, self.rtt());
    }

    fn on_report<P: EndpointProbe>(&mut self, now: Instant, report: &Report, probe: &mut P) {
        // RFC 5348 §4.3 steps 1 and 2
        if let Some(sample) = report.rtt {
            self.measure(sample);
        }
        let rate = report.receive_rate as f64;
        let loss_event_rate = report.loss_event_rate.clamp(0.0, 1.0);
        let loss_event_rate =
            if loss_event_rate > 0.0 { loss_event_rate.max(self.parameters.p_floor) } else { 0.0 };
        let worse = loss_event_rate > self.loss_event_rate;
        let first = self.receive_rate.is_none();
        // ns-2's TFRC sets its timer by the rate before this feedback.
        let before = self.rate;
        self.loss_event_rate = loss_event_rate;
        self.receive_rate = Some(rate);
        self.restart.on_feedback(now, rate, worse);
        let rtt = self.rtt().unwrap_or(Duration::ZERO);
        // RFC 5348 §4.3: the first feedback's receive rate of zero is not of a data-limited interval.
        let limited = self.limits.on_feedback(report.covered, rtt) && report.receive_rate > 0;
        if first && loss_event_rate <= 0.0 && self.parameters.idle != Idle::Ns2 {
            // RFC 5348 §4.2: the first feedback sets the initial rate and nothing else.
            self.start(now);
        } else {
            // RFC 5348 §4.3 step 4
            let limit = self.receive_limit(now, rate, limited, worse);
            self.update_rate(now, limit);
        }
        // RFC 5348 §4.3 step 6; step 5 is in `effective_rate`.
        if self.parameters.idle == Idle::Ns2 && before.is_some() {
            let after = std::mem::replace(&mut self.rate, before);
            self.set_timer(now);
            self.rate = after;
        } else if self.rate.is_some() {
            self.set_timer(now);
        }
        if self.parameters.idle == Idle::Ns2 && self.loss_event_rate <= 0.0 {
            // In slow start its `recv` sends a packet at once.
            self.pacing.release();
        }
        self.pace();
        self.tell(now, probe);
    }

    /// From a handshake (also RFC 4342 §5): the initial rate applies from now on.
    fn set_initial_rtt<P: EndpointProbe>(&mut self, now: Instant, rtt: Duration, probe: &mut P) {
        if self.round_trip.is_none() && !rtt.is_zero() {
            self.measure(rtt);
            self.start(now);
            self.pace();
            self.tell(now, probe);
        }
    }

    #[inline]
    fn deadline(&self) -> Option<Instant> {
        self.nofeedback
    }

    fn on_timeout<P: EndpointProbe>(&mut self, now: Instant, probe: &mut P) {
        if self.nofeedback.is_none_or(|deadline| now < deadline) {
            return;
        }
        if self.active {
            // Missing feedback indicates congestion: no fast return to the old rate.
            self.restart.on_feedback(now, self.receive_rate.unwrap_or(0.0), true);
        }
        match self.parameters.idle {
            Idle::Rfc5348 => self.back_off(now),
            Idle::Ns2 => self.back_off_ns2(),
            Idle::Rfc3448 | Idle::Linux => self.back_off_3448(now),
        }
        self.set_timer(now);
        self.pace();
        if self.parameters.idle == Idle::Ns2 {
            // It sends a packet at once (`reduce_rate_on_no_feedback`), but only that one if another was due
            // at that instant; twice a rounded interval may be a nanosecond less.
            let since = self.last_sent.map(|last| now.saturating_since(last));
            if since.is_some_and(|since| since <= Duration::from_nanos(1)) {
                self.pacing.on_sent(now, self.spacing, self.rtt());
            } else {
                self.pacing.release();
            }
        }
        self.tell(now, probe);
    }

    #[inline]
    fn rate(&self) -> Rate {
        Rate::from_bps(round_u64(8.0 * self.paced_rate))
    }

    #[inline]
    fn segment_size(&self) -> f64 {
        let nominal = self.parameters.nominal_bytes;
        nominal.map_or_else(|| self.size.unwrap_or(SIZE_BEFORE_DATA), f64::from)
    }
    /// s; with the header correction for small packets, their true size (RFC 4828 §4.2).
    fn paced_size(&self) -> f64 {
        match self.size {
            Some(size) if self.parameters.header_bytes > 0 => size,
            _ => self.segment_size(),
        }
    }
    #[inline]
    fn timeout_ticks(&self) -> u8 {
        self.timeout.map_or(0, |t_rto| u8::try_from(t_rto.ticks()).unwrap_or(u8::MAX))
    }
    fn footprint(&self) -> usize {
        self.receive_set.footprint() + self.limits.footprint()
    }

    fn report_rate(&mut self) {
        self.target.get_or_insert(Rate::ZERO);
    }
    #[inline]
    fn target_rate(&mut self) -> Option<Rate> {
        let last = self.target?;
        let rate = self.rate();
        self.target = Some(rate);
        (rate != last).then_some(rate)
    }

    fn evidence(&self) -> Rate {
        // Slow start's X is twice the receive rate, which is no evidence that the path carries it.
        let shown = if self.loss_event_rate > 0.0 { self.equation_rate } else { self.receive_rate };
        let shown = shown.unwrap_or(0.0).min(self.paced_rate);
        Rate::from_bps(round_u64(8.0 * shown))
    }

    #[inline]
    fn rtt(&self) -> Option<Duration> {
        self.round_trip.map(|round_trip| round_trip.span)
    }
}
