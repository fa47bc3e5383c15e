//! Network-Assisted Dynamic Adaptation (RFC 8698). What the RFC computes at the receiver is computed here, at
//! the sender, from reports on single packets (§6.4).
//!
//! Names are the RFC's. A profile is a set of values, among them those that make [`Profile::Ns3Rmcat`] equal to
//! the controller of the RFC's authors (github.com/cisco/ns3-rmcat at adb3f8e, the simulator of §7).

use std::collections::VecDeque;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Bytes, Decision, FeedbackInfo, MediaController, MediaControllerConfig};
use crate::gauge::Gauge;
use crate::math::{exp, round_u64};
use crate::packet::Ecn;
use crate::rtcp::PacketReport;
use crate::time::{Duration, Instant};
use crate::units::Rate;
use crate::validate::{ConfigError, ConfigErrors, Validate, config};

/// Where values come from that the RFC leaves open.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Profile {
    /// RFC 8698.
    #[default]
    Rfc8698,
    /// The authors' controller for ns-3: bytes of RTP payload, no ECN, no reaction to the pacer's queue, a
    /// congestion signal of at most 500 ms, whole milliseconds in two places, and a base delay that is
    /// forgotten after half a second without packets.
    Ns3Rmcat,
}

config! {
    /// Parameters of NADA; the others have the values of RFC 8698 Table 2.
    pub struct Config {
        /// Where values come from that the RFC leaves open.
        profile: Profile = Profile::Rfc8698,
        /// The rate's lower bound (RFC 8698: RMIN).
        min: Rate = Rate::from_bps(150_000),
        /// The rate's upper bound (RMAX).
        max: Rate = Rate::from_bps(1_500_000),
        /// Weight of the flow against others at the same bottleneck (PRIO).
        #[schemars(range(min = 0.01, max = 100.0))]
        priority: f64 = 1.0,
        /// Time between two feedback packets (DELTA).
        feedback: Duration = Duration::from_millis(100),
        /// ECN field of the packets. NADA's marking terms work with either (RFC 8698 §4.2).
        ecn: Marking = Marking::Off,
    }
}

/// ECN field of a session's media packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Marking {
    /// Not-ECT.
    #[default]
    Off,
    /// ECT(0) (RFC 3168).
    Ect0,
    /// ECT(1) (RFC 9331).
    Ect1,
}

impl Validate for Config {
    fn errors(&self) -> Vec<ConfigError> {
        let mut errors = ConfigErrors::default();
        if self.min.as_bps() == 0 {
            errors.add("min", "0bit/s: no feedback would follow, and the rate could not rise");
        }
        if self.max < self.min {
            let why = format!("{} is below `min` ({})", self.max, self.min);
            errors.add("max", why);
        }
        errors.timer("feedback", self.feedback, Duration::from_secs(1));
        errors.0
    }
}

impl MediaControllerConfig for Config {
    fn build(&self) -> Box<dyn MediaController> {
        Box::new(Nada::new(self))
    }
    fn name(&self) -> String {
        match self.profile {
            Profile::Rfc8698 => "nada".to_owned(),
            Profile::Ns3Rmcat => "nada (ns3-rmcat)".to_owned(),
        }
    }
    fn bytes(&self) -> Bytes {
        match self.profile {
            Profile::Rfc8698 => Bytes::Ip,
            Profile::Ns3Rmcat => Bytes::Payload,
        }
    }
    fn ecn(&self) -> Ecn {
        match self.ecn {
            Marking::Off => Ecn::NotEct,
            Marking::Ect0 => Ecn::Ect0,
            Marking::Ect1 => Ecn::Ect1,
        }
    }
    fn feedback_interval(&self) -> Option<Duration> {
        Some(self.feedback)
    }
    fn max(&self) -> Rate {
        self.max
    }
}

// RFC 8698 Table 2. Delays are in milliseconds, as in the RFC's equations.
const XREF: f64 = 10.0;
const KAPPA: f64 = 0.5;
const ETA: f64 = 2.0;
const TAU: f64 = 500.0;
const DELTA: Duration = Duration::from_millis(100);
const LOGWIN: Duration = Duration::from_millis(500);
const QEPS: Duration = Duration::from_millis(10);
const DFILT: Duration = Duration::from_millis(120);
const GAMMA_MAX: f64 = 0.5;
const QBOUND: f64 = 50.0;
const MULTILOSS: f64 = 7.0;
const QTH: f64 = 50.0;
const LAMBDA: f64 = 0.5;
const PLRREF: f64 = 0.01;
const PMRREF: f64 = 0.01;
const DLOSS: f64 = 10.0;
const DMARK: f64 = 2.0;
const ALPHA: f64 = 0.1;
const FPS: f64 = 30.0;

/// Samples of the minimum filter (RFC 8698 §5.1.1).
const FILTERED: usize = 15;
/// Weights of loss intervals (RFC 5348 §5.4).
const WEIGHTS: [f64; 8] = [1.0, 1.0, 1.0, 1.0, 0.8, 0.6, 0.4, 0.2];
/// Spans of which the base delay is the minimum: "tens of minutes" (RFC 8698 §5.1.1), the oldest of which is
/// dropped so that the delay is estimated again.
const BASE_SPAN: Duration = Duration::from_secs(60);
const BASE_SPANS: usize = 10;

/// Values of a profile.
#[derive(Clone, Copy, Debug)]
struct Values {
    /// Scale of both reactions to the pacer's queue (BETA_S = BETA_V).
    beta: f64,
    /// Upper bound of x_curr; RFC 8698 §5.3 has 15 bits of 0.1 ms for it.
    x_max: f64,
    /// Feedback sooner after the last update changes nothing.
    least_delta: Duration,
    /// The rate is updated with the first packet of a feedback that comes this long after the last update,
    /// before the others are known (ns3-rmcat: a method for one packet also serves those of a batch).
    update_within: Duration,
    /// Delays from here on are no accelerated ramp-up.
    ramp_limit: Duration,
    /// Delays from here on are warped.
    warp_limit: Duration,
    /// Unit to which the sum under QBOUND is rounded down.
    gamma_unit: Duration,
    /// After this long without packets nothing is known of the path, if it is so.
    forgets_after: Option<Duration>,
    /// Packets sent longer before the newest are reported too late (ns3-rmcat: 10 × MAX_INTER_PACKET_TIME).
    oldest: Duration,
    /// The least round-trip time of the filter includes the time for which the receiver held its report back.
    rtt_of_packets: bool,
    /// Marks count.
    marks: bool,
    /// Fewer packets in the window say nothing of rate and loss (ns3-rmcat: MIN_PACKET_LOGLEN).
    fewest: usize,
    /// All numbers without a report on an arrival are lost. Otherwise those are that a report says are, since
    /// reports get lost, too.
    loses_gaps: bool,
    /// Longest time between two updates in equation (7), which feedback that was lost would make a step of any
    /// size.
    most_delta: Duration,
    /// Without feedback for this long, the rate halves, and again after each further time. RFC 8698 says
    /// nothing of it, RFC 8888 §5 asks for it; TFRC's nofeedback timer halves, too (RFC 5348 §4.4).
    patience: Option<Duration>,
}

const RFC8698: Values = Values {
    beta: 0.1,
    x_max: 3276.7,
    least_delta: Duration::ZERO,
    update_within: Duration::MAX,
    ramp_limit: QEPS,
    warp_limit: Duration::from_millis(QTH as u64),
    gamma_unit: Duration::from_nanos(1),
    forgets_after: None,
    oldest: Duration::MAX,
    rtt_of_packets: false,
    marks: true,
    fewest: 2,
    loses_gaps: false,
    most_delta: LOGWIN,
    patience: Some(Duration::from_secs(1)),
};

const NS3_RMCAT: Values = Values {
    beta: 0.0,
    x_max: 500.0,
    least_delta: Duration::from_millis(50),
    update_within: DELTA,
    ramp_limit: Duration::from_nanos(QEPS.as_nanos() + 1),
    warp_limit: Duration::from_millis(QTH as u64 + 1),
    gamma_unit: Duration::from_millis(1),
    forgets_after: Some(Duration::from_millis(500)),
    oldest: Duration::from_secs(5),
    rtt_of_packets: true,
    marks: false,
    fewest: 5,
    loses_gaps: true,
    most_delta: Duration::MAX,
    patience: None,
};

/// A packet that was reported. Delays are in nanoseconds, with the unknown difference of the two clocks.
#[derive(Clone, Copy, Debug)]
struct Reported {
    stream: u32,
    sequence: u64,
    sent: Instant,
    /// One-way delay and round trip, if it arrived.
    arrival: Option<(i64, Duration)>,
    bytes: u32,
    marked: bool,
}

/// The controller.
#[derive(Debug)]
pub struct Nada {
    values: Values,
    priority: f64,
    min: f64,
    max: f64,
    /// Packets that were sent within LOGWIN before the newest of them, in that order.
    window: VecDeque<Reported>,
    /// The newest that was sent.
    newest: Instant,
    /// Least delays of spans, the current one last, and when that began.
    bases: VecDeque<i64>,
    base_since: Instant,
    /// Packets without a loss between them, the current interval first (RFC 5348 §5.4); two and more once there
    /// was a loss.
    intervals: VecDeque<u64>,
    /// The last update of the rate, or the first packet.
    last: Option<Instant>,
    r_ref: f64,
    r_recv: f64,
    x_curr: f64,
    x_prev: f64,
    d_queue: Duration,
    rtt: Duration,
    p_loss: f64,
    p_mark: f64,
    /// A packet since the last that arrived was lost.
    in_gap: bool,
    /// Packets missing in the window.
    missing: u64,
    /// The time between two feedback packets.
    interval: Duration,
    /// When the rate halves.
    patient_until: Option<Instant>,
    /// In the pacer's queue.
    waiting: u64,
}

impl Nada {
    /// The controller at its start, at the lowest rate (RFC 8698 §4.3).
    #[must_use]
    pub fn new(config: &Config) -> Self {
        let [min, max] = [config.min, config.max].map(|rate| rate.as_bps() as f64);
        Self {
            values: match config.profile {
                Profile::Rfc8698 => RFC8698,
                Profile::Ns3Rmcat => NS3_RMCAT,
            },
            priority: config.priority,
            min,
            max,
            window: VecDeque::new(),
            newest: Instant::ZERO,
            bases: VecDeque::new(),
            base_since: Instant::ZERO,
            intervals: VecDeque::from([0]),
            last: None,
            r_ref: min,
            r_recv: 0.0,
            x_curr: 0.0,
            x_prev: 0.0,
            d_queue: Duration::ZERO,
            rtt: Duration::ZERO,
            p_loss: 0.0,
            p_mark: 0.0,
            in_gap: false,
            missing: 0,
            interval: config.feedback,
            patient_until: None,
            waiting: 0,
        }
    }

    /// Takes a report on a packet that arrived or is lost.
    fn on_report(&mut self, now: Instant, report: &PacketReport) {
        let delay =
            |arrived: Instant| arrived.as_nanos().wrapping_sub(report.sent.as_nanos()) as i64;
        let packet = Reported {
            stream: report.stream,
            sequence: report.sequence,
            sent: report.sent,
            arrival: report.arrived.map(|at| (delay(at), now.saturating_since(report.sent))),
            bytes: report.bytes,
            marked: report.ecn == Ecn::Ce,
        };
        if self.values.loses_gaps {
            self.on_next_arrival(packet);
            return;
        }
        // Mostly the next; of several streams, and with repeated reports, one from before.
        let place = self.window.partition_point(|it| it.sequence < packet.sequence);
        let newest = self.window.back().map_or(Instant::ZERO, |last| last.sent);
        let is_old = newest.saturating_since(packet.sent) >= LOGWIN;
        match self.window.get_mut(place) {
            _ if is_old => return,
            Some(known) if known.sequence == packet.sequence => {
                // A packet that was lost may have come, not the other way round.
                if known.arrival.is_some() || packet.arrival.is_none() {
                    return;
                }
                *known = packet;
            }
            _ => self.window.insert(place, packet),
        }
        match packet.arrival {
            Some((delay, _)) => {
                self.note_base(packet.sent, delay);
                let is_gap = std::mem::take(&mut self.in_gap);
                self.note_interval(is_gap);
            }
            None => self.in_gap = true,
        }
        self.forget();
    }

    /// The same by ns3-rmcat: of packets out of order, only the first counts as received (§5.1.2).
    fn on_next_arrival(&mut self, packet: Reported) {
        let Some((delay, _)) = packet.arrival else { return };
        let last = self.window.back().copied();
        let is_in_time = self.newest.saturating_since(packet.sent) <= self.values.oldest;
        if last.is_some_and(|last| last.sequence >= packet.sequence) || !is_in_time {
            return;
        }
        let mut is_gap = last.is_some_and(|last| last.sequence + 1 != packet.sequence);
        if let (Some(longest), Some(last)) = (self.values.forgets_after, last)
            && packet.sent.saturating_since(last.sent) > longest
        {
            self.window.clear();
            self.bases.clear();
            self.intervals = VecDeque::from([0]);
            is_gap = false;
        }
        self.note_base(packet.sent, delay);
        self.note_interval(is_gap);
        self.window.push_back(packet);
        self.forget();
    }

    fn forget(&mut self) {
        let newest = self.window.back().map_or(Instant::ZERO, |last| last.sent);
        while self.window.front().is_some_and(|it| newest.saturating_since(it.sent) >= LOGWIN) {
            self.window.pop_front();
        }
    }

    fn note_base(&mut self, sent: Instant, delay: i64) {
        match self.bases.back_mut() {
            Some(base)
                if self.values.forgets_after.is_some()
                    || sent.saturating_since(self.base_since) < BASE_SPAN =>
            {
                *base = delay.min(*base);
            }
            _ => {
                self.bases.push_back(delay);
                self.base_since = sent;
                if self.bases.len() > BASE_SPANS {
                    self.bases.pop_front();
                }
            }
        }
    }

    /// RFC 5348 §5.4: a gap begins an interval; it is as long as packets follow without another.
    fn note_interval(&mut self, is_gap: bool) {
        if is_gap {
            self.intervals.push_front(1);
            self.intervals.truncate(WEIGHTS.len() + 1);
        } else {
            self.intervals[0] += 1;
        }
    }

    fn queueing(&self, delay: i64) -> Duration {
        let base = self.bases.iter().min().copied().unwrap_or(delay);
        Duration::from_nanos(u64::try_from(delay.saturating_sub(base)).unwrap_or(0))
    }

    /// The least delay and round trip of the last packets of a stream that arrived.
    fn filtered(&self, stream: u32) -> Option<(i64, Duration)> {
        let of_stream = self.window.iter().rev().filter(|it| it.stream == stream);
        let last = of_stream.filter_map(|packet| packet.arrival).take(FILTERED);
        last.reduce(|least, one| (least.0.min(one.0), least.1.min(one.1)))
    }

    /// Summaries of the window (§5.1).
    fn summarise(&mut self, feedback: &FeedbackInfo) {
        let mut streams: Vec<u32> = self.window.iter().map(|packet| packet.stream).collect();
        streams.sort_unstable();
        streams.dedup();
        // Streams may have queues of their own: the longest is the one to shorten.
        let filtered: Vec<_> = streams.iter().filter_map(|it| self.filtered(*it)).collect();
        let longest = filtered.iter().map(|(delay, _)| self.queueing(*delay)).max();
        self.d_queue = longest.unwrap_or(self.d_queue);
        let rtt = if self.values.rtt_of_packets {
            filtered.iter().map(|(_, rtt)| *rtt).min()
        } else {
            feedback.rtt
        };
        self.rtt = rtt.unwrap_or(self.rtt);
        let arrived = || self.window.iter().filter(|packet| packet.arrival.is_some());
        let count = arrived().count();
        if count < self.values.fewest {
            return;
        }
        let time = |it: &Reported| Some(it.arrival?.0.wrapping_add(it.sent.as_nanos() as i64));
        let times = || arrived().filter_map(|packet| Some((time(packet)?, packet.bytes)));
        let begin = times().min_by_key(|(at, _)| *at);
        let end = times().map(|(at, _)| at).max();
        if let (Some((begin, first)), Some(end)) = (begin, end)
            && end > begin
        {
            // The first packet arrived at the begin of the span.
            let bytes: u64 = times().map(|(_, bytes)| u64::from(bytes)).sum();
            self.r_recv =
                (8 * (bytes - u64::from(first))) as f64 * 1e9 / end.saturating_sub(begin) as f64;
        }
        let total = if self.values.loses_gaps {
            let ends = [self.window.back(), self.window.front()];
            let [last, first] = ends.map(|packet| packet.map_or(0, |packet| packet.sequence));
            last - first + 1
        } else {
            self.window.len() as u64
        };
        self.missing = total - count as u64;
        self.p_loss += ALPHA * (self.missing as f64 / total as f64 - self.p_loss);
        if self.values.marks {
            let marked = arrived().filter(|packet| packet.marked).count();
            self.p_mark += ALPHA * (marked as f64 / total as f64 - self.p_mark);
        }
    }

    /// loss_int: the average loss interval (RFC 5348 §5.4); `None` before a loss.
    fn loss_interval(&self) -> Option<f64> {
        let count = self.intervals.len() - 1;
        if count == 0 {
            return None;
        }
        let weighed = |intervals: &mut dyn Iterator<Item = &u64>| -> f64 {
            intervals.zip(WEIGHTS).map(|(length, weight)| *length as f64 * weight).sum()
        };
        let with_current = weighed(&mut self.intervals.iter().take(count));
        let without = weighed(&mut self.intervals.iter().skip(1));
        Some(with_current.max(without) / WEIGHTS[..count].iter().sum::<f64>())
    }

    /// Equations (1) and (2), with the transition that follows them.
    fn congestion_signal(&self) -> f64 {
        let queue = milliseconds(self.d_queue);
        let warped = if self.d_queue >= self.values.warp_limit {
            QTH * exp(-LAMBDA * ((queue - QTH) / QTH))
        } else {
            queue
        };
        let delay = match self.loss_interval() {
            None => queue,
            Some(loss_int) => {
                // In loss intervals, beyond which the last loss has expired.
                let age = (self.intervals[0] as f64 - MULTILOSS * loss_int) / loss_int;
                let share = age.clamp(0.0, 1.0);
                share * queue + (1.0 - share) * warped
            }
        };
        let (loss, mark) = (self.p_loss / PLRREF, self.p_mark / PMRREF);
        (delay + DLOSS * loss * loss + DMARK * mark * mark).min(self.values.x_max)
    }

    /// §4.2: neither losses nor a queue within the window.
    fn may_ramp_up(&self) -> bool {
        self.missing == 0
            && self
                .window
                .iter()
                .filter_map(|packet| packet.arrival)
                .all(|(delay, _)| self.queueing(delay) < self.values.ramp_limit)
    }

    /// Equations (3) and (4).
    fn ramp_up(&mut self) {
        let unit = self.values.gamma_unit.as_nanos();
        let horizon = (self.rtt + self.interval + DFILT).as_nanos() / unit * unit;
        let gamma = (QBOUND * 1e6 / horizon as f64).min(GAMMA_MAX);
        self.r_ref = self.r_ref.max((1.0 + gamma) * self.r_recv);
    }

    /// Equations (5) to (7).
    fn update_gradually(&mut self, delta: Duration) {
        let x_offset = self.x_curr - self.priority * XREF * self.max / self.r_ref;
        let x_diff = self.x_curr - self.x_prev;
        let offset = KAPPA * (milliseconds(delta) / TAU) * (x_offset / TAU) * self.r_ref;
        let diff = KAPPA * ETA * (x_diff / TAU) * self.r_ref;
        self.r_ref -= offset + diff;
    }

    /// Time since the last update.
    fn delta(&mut self, now: Instant) -> Duration {
        now.saturating_since(*self.last.get_or_insert(now))
    }

    fn update(&mut self, now: Instant, feedback: &FeedbackInfo) {
        let delta = self.delta(now).min(self.values.most_delta);
        self.summarise(feedback);
        self.x_prev = self.x_curr;
        if !self.window.is_empty() {
            self.x_curr = self.congestion_signal();
        }
        if self.may_ramp_up() {
            self.ramp_up();
        } else {
            self.update_gradually(delta);
        }
        self.r_ref = self.r_ref.min(self.max).max(self.min);
        self.last = Some(now);
    }

    /// Equations (11) and (12).
    fn shaping(&self) -> f64 {
        (0.05 * self.r_ref).min(self.values.beta * 8.0 * self.waiting as f64 * FPS)
    }
}

impl MediaController for Nada {
    fn on_sent(&mut self, now: Instant, _: &super::Sent) -> bool {
        self.newest = now;
        self.last.get_or_insert(now);
        if let (None, Some(patience)) = (self.patient_until, self.values.patience) {
            self.patient_until = Some(now + patience.max(self.interval * 4));
        }
        false
    }

    fn deadline(&self) -> Option<Instant> {
        self.patient_until
    }

    fn on_timeout(&mut self, now: Instant) {
        if self.patient_until.take_if(|until| *until <= now).is_some() {
            // The next packet begins the time again.
            self.r_ref = (self.r_ref / 2.0).max(self.min);
        }
    }

    fn on_reports(&mut self, now: Instant, reports: &[PacketReport], feedback: &FeedbackInfo) {
        self.patient_until = None;
        // For ns3-rmcat, nothing is said of packets that did not arrive.
        let gaps = self.values.loses_gaps;
        let told = |report: &&PacketReport| !gaps || report.arrived.is_some();
        for report in reports.iter().filter(told) {
            self.on_report(now, report);
            if self.delta(now) >= self.values.update_within {
                self.update(now, feedback);
            }
        }
        if self.delta(now) >= self.values.least_delta {
            self.update(now, feedback);
        }
    }

    fn on_queue(&mut self, _: Instant, bytes: u64) {
        self.waiting = bytes;
    }

    /// RFC 8699 §6.1: r_ref.
    fn coupled_rate(&self) -> Option<Rate> {
        Some(Rate::from_bps(round_u64(self.r_ref)))
    }

    fn set_coupled_rate(&mut self, rate: Rate) {
        self.r_ref = (rate.as_bps() as f64).min(self.max).max(self.min);
    }

    /// Equations (13) and (14).
    fn decision(&self) -> Decision {
        let rate = |bps: f64| Rate::from_bps(round_u64(bps));
        Decision {
            target: rate((self.r_ref - self.shaping()).max(self.min)),
            pacing: rate((self.r_ref + self.shaping()).min(self.max)),
            ..Decision::default()
        }
    }

    fn observe(&self, tell: &mut dyn FnMut(Gauge, f64)) {
        tell(Gauge::TargetRate, self.r_ref);
        tell(Gauge::CongestionSignal, self.x_curr / 1e3);
        tell(Gauge::QueueingDelay, self.d_queue.as_secs_f64());
    }
}

fn milliseconds(time: Duration) -> f64 {
    time.as_nanos() as f64 / 1e6
}
