//! Google Congestion Control as libwebrtc ships it, with its default values. It is pinned to the source of
//! 2026-08-22 (the stamp in `call/version.cc`); later revisions have other constants. It is not the algorithm
//! of draft-ietf-rmcat-gcc-02, which has a Kalman filter in place of the trend.
//!
//! Times are whole microseconds and rates whole bits per second, rounded as in libwebrtc, so that both can be
//! compared report by report.

mod aimd;
mod alr;
mod delay;
mod loss;
mod probes;
mod throughput;

use std::collections::VecDeque;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    Bytes, Cluster, Decision, FeedbackFormat, FeedbackInfo, MediaController, MediaControllerConfig,
    ReceiverReport, Sent,
};
use crate::gauge::Gauge;
use crate::packet::Ecn;
use crate::rtcp::PacketReport;
use crate::time::{Duration, Instant};
use crate::units::Rate;
use crate::validate::{ConfigError, ConfigErrors, Validate, config};
use alr::Alr;
use delay::{DelayBased, Usage};
use loss::LossBased;
use probes::{Prober, Results};
use throughput::Throughput;

config! {
    /// Parameters of GCC. All other values are libwebrtc's.
    pub struct Config {
        /// The rate's lower bound. Absent: what the session's sources need at least, with all headers, as
        /// libwebrtc adds it up; there the least of video is 30 kbit/s.
        min: Option<Rate> = None,
        /// The first rate, at most `max`.
        start: Rate = Rate::from_bps(300_000),
        /// What all sources together can use, as libwebrtc takes it from the encoders. The estimate can be
        /// higher.
        max: Rate = Rate::from_bps(2_500_000),
        /// Probes while the sources leave capacity unused, as for a shared screen.
        alr_probing: bool = false,
        /// Format of the feedback. Browsers use transport-wide feedback unless they agree on RFC 8888.
        feedback: FeedbackFormat = FeedbackFormat::TransportWide,
    }
}

impl Validate for Config {
    fn errors(&self) -> Vec<ConfigError> {
        let mut errors = ConfigErrors::default();
        let (min, least) = match self.min {
            Some(min) => (min, format!("`min` ({min})")),
            None => (LEAST, format!("{LEAST}, the least of libwebrtc")),
        };
        if min < LEAST {
            errors.add("min", format!("{min} is below {LEAST}, the least of libwebrtc"));
        }
        for (key, rate) in [("start", self.start), ("max", self.max)] {
            if rate < min {
                errors.add(key, format!("{rate} is below {least}"));
            }
            if rate > MOST {
                errors.add(key, format!("{rate} is above {MOST}, the most of libwebrtc"));
            }
        }
        errors.0
    }
}

/// Bounds of libwebrtc's rates.
const LEAST: Rate = Rate::from_bps(MIN as u64);
/// The least of video in libwebrtc.
const VIDEO: Rate = Rate::from_bps(30_000);
const MOST: Rate = Rate::from_bps(MAX as u64);

impl MediaControllerConfig for Config {
    fn build(&self) -> Box<dyn MediaController> {
        Box::new(Gcc::new(self))
    }
    fn name(&self) -> String {
        "gcc".to_owned()
    }
    fn bytes(&self) -> Bytes {
        Bytes::Ip
    }
    fn ecn(&self) -> Ecn {
        Ecn::NotEct
    }
    fn feedback_interval(&self) -> Option<Duration> {
        None
    }
    fn burst(&self) -> (Duration, bool) {
        (Duration::from_micros(WINDOW as u64), true)
    }
    fn feedback(&self) -> FeedbackFormat {
        self.feedback
    }
    fn max(&self) -> Rate {
        self.max
    }
}

/// Bits per second, as libwebrtc's `DataRate`.
type Bps = i64;
/// An instant or a time.
type Micros = i64;
const SECOND: Micros = 1_000_000;
const INFINITE: Bps = i64::MAX;
const MIN: Bps = 5_000;
const MAX: Bps = 1_000_000_000;

fn scaled(value: i64, factor: f64) -> i64 {
    if value == INFINITE { INFINITE } else { (value as f64 * factor).round() as i64 }
}

/// Bytes in a time.
const fn rate_of(bytes: i64, time: Micros) -> Bps {
    bytes.saturating_mul(8 * SECOND) / time
}

const fn bytes_in(rate: Bps, time: Micros) -> i64 {
    (rate.saturating_mul(time).saturating_add(4 * SECOND)) / (8 * SECOND)
}

/// Rounded to whole kbit/s.
const fn kbps(rate: Bps) -> i64 {
    rate.saturating_add(500) / 1000
}

const fn micros(nanos: u64) -> Micros {
    (nanos / 1000) as Micros
}

/// libwebrtc takes times of packets in whole milliseconds.
const fn milliseconds(at: Instant) -> Micros {
    (at.as_nanos() / 1_000_000 * 1000) as Micros
}

/// A packet that arrived.
#[derive(Clone, Copy, Debug)]
struct Arrived {
    number: u64,
    sent: Micros,
    arrived: Micros,
    bytes: i64,
    probe: Option<u32>,
}

/// What a report says of a packet.
#[derive(Clone, Copy, Debug)]
struct Outcome {
    number: u64,
    sent: Micros,
    arrived: Option<Micros>,
    bytes: i64,
}

/// Time between two updates without feedback.
const INTERVAL: Duration = Duration::from_millis(25);
/// Pacing, as a multiple of the target: with video, whose strict pacer libwebrtc asks for.
const PACING: f64 = 1.1_f32 as f64;
/// What may leave at once.
const WINDOW: Micros = 40_000;
/// Share of what arrives that a probe below it leaves.
const AFTER_PROBE: f64 = 0.85;
/// The first seconds, in which the delay-based estimate is believed if nothing is lost.
const START: Micros = 2 * SECOND;
/// Without reports for this long while packets leave, the rate falls each second.
const RTT_LIMIT: Micros = 3 * SECOND;
const RTT_FALL: f64 = 0.8;
const RTT_INTERVAL: Micros = SECOND;
/// Round trips whose least bounds the data in flight, and the queue that it may have beside.
const ROUND_TRIPS: usize = 32;
const QUEUE: Micros = 350_000;
const LEAST_WINDOW: i64 = 3000;
/// Packets are forgotten after this long.
const HISTORY: Micros = 60 * SECOND;
/// Least rate to which the window reduces the target.
const LEAST_PUSHBACK: Bps = 30_000;
/// Receiver reports say something of the loss with at least these packets, for this long.
const REPORT_PACKETS: i64 = 20;
const REPORT_LIFE: Micros = 6 * SECOND;
const LOW_LOSS: f32 = 0.02;
const HIGH_LOSS: f32 = 0.1;
const INCREASE_TIME: Micros = SECOND;
const FALL_TIME: Micros = 300_000;

/// Losses by receiver reports, from which the rate follows while there is no other feedback.
#[derive(Debug, Default)]
struct ReportedLoss {
    first: Option<Micros>,
    last: Option<Micros>,
    lost: i64,
    expected: i64,
    /// In 1/256.
    share: i64,
    has_fallen: bool,
    /// The least rates of the last second.
    history: VecDeque<(Micros, Bps)>,
}

/// The controller.
#[derive(Debug)]
pub struct Gcc {
    config: Config,
    min: Bps,
    most: Bps,
    /// When it began: with the first packet or report.
    begun: Option<Instant>,
    due: Instant,
    throughput: Throughput,
    delay: DelayBased,
    loss: LossBased,
    prober: Option<Prober>,
    results: Results,
    /// Rates of clusters that were sent lately.
    clusters: VecDeque<probes::Cluster>,
    alr: Alr,
    was_alr: bool,
    reported_loss: ReportedLoss,
    /// The estimate, and the delay-based one that limits it.
    target: Bps,
    limit: Bps,
    receiver_limit: Bps,
    fell: Option<Micros>,
    rtt: Micros,
    /// The last round trip of a packet, when it was learned, and when a packet was sent last.
    packet_rtt: (Micros, Option<Micros>),
    sent: Micros,
    /// Packets in flight: number, when they were sent, and bytes; and their sum.
    flight: VecDeque<(u64, Micros, i64)>,
    in_flight: i64,
    landed: Option<u64>,
    /// Rate at which packets arrive.
    acknowledged: Option<Bps>,
    round_trips: VecDeque<i64>,
    window: Option<i64>,
    pushback: f64,
    /// What was decided last.
    last: Last,
}

/// What changed if it differs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Last {
    target: Bps,
    pushed: Bps,
    share: i64,
    rtt: Micros,
    state: loss::State,
    is_alr: bool,
}

impl Gcc {
    fn new(config: &Config) -> Self {
        let rate = |rate: Rate| rate.as_bps() as Bps;
        let min = rate(config.min.unwrap_or(VIDEO));
        let start = rate(config.start.min(config.max));
        Self {
            min,
            most: rate(config.max),
            config: config.clone(),
            begun: None,
            due: Instant::ZERO,
            throughput: Throughput::default(),
            delay: DelayBased::new(start, min),
            loss: LossBased::new(min, MAX),
            prober: None,
            results: Results::default(),
            clusters: VecDeque::new(),
            alr: Alr::default(),
            was_alr: false,
            reported_loss: ReportedLoss::default(),
            target: start,
            limit: INFINITE,
            receiver_limit: INFINITE,
            fell: None,
            rtt: 0,
            packet_rtt: (0, None),
            sent: Micros::MIN,
            flight: VecDeque::new(),
            in_flight: 0,
            landed: None,
            acknowledged: None,
            round_trips: VecDeque::new(),
            window: None,
            pushback: 1.0,
            last: Last {
                target: start,
                pushed: start,
                share: 0,
                rtt: Micros::MAX,
                state: loss::State::Delay,
                is_alr: false,
            },
        }
    }

    /// The first probes begin with the session.
    fn begin(&mut self, now: Instant) -> Micros {
        let at = micros(now.as_nanos());
        if self.begun.is_none() {
            self.begun = Some(now);
            self.due = now + INTERVAL;
            self.update(at);
            self.settle(at);
            let prober = Prober::new(at, self.target, INFINITE, self.most, self.config.alr_probing);
            self.prober = Some(prober);
        }
        at
    }

    fn rate(&self) -> Bps {
        self.target.min(self.receiver_limit).max(self.min)
    }

    fn set_target(&mut self, rate: Bps) {
        self.target = rate.min(self.limit).min(MAX).max(self.min);
    }

    /// True if packets leave and no report comes.
    fn is_late(&self) -> bool {
        let (rtt, learned) = self.packet_rtt;
        learned.is_some_and(|at| (self.sent - at).max(0) + rtt > RTT_LIMIT)
    }

    fn is_start(&self, now: Micros) -> bool {
        self.reported_loss.first.is_none_or(|at| now - at < START)
    }

    /// The target from the estimates (`SendSideBandwidthEstimation::UpdateEstimate`).
    fn update(&mut self, now: Micros) {
        if self.is_late() {
            let may_fall = self.fell.is_none_or(|at| now - at >= RTT_INTERVAL);
            let rate = if may_fall && self.target > MIN {
                self.fell = Some(now);
                scaled(self.target, RTT_FALL).max(MIN)
            } else {
                self.target
            };
            return self.set_target(rate);
        }
        let estimate = self.loss.rate();
        if self.reported_loss.share == 0 && self.is_start(now) && estimate.is_none() {
            let finite = |rate: Bps| if rate == INFINITE { 0 } else { rate };
            let rate = self.target.max(finite(self.receiver_limit)).max(finite(self.limit));
            if rate != self.target {
                self.reported_loss.history = VecDeque::from([(now, self.target)]);
                return self.set_target(rate);
            }
        }
        self.reported_loss.remember(now, self.target);
        let rate = estimate.unwrap_or_else(|| self.by_reports(now));
        self.set_target(rate);
    }

    /// The target by receiver reports alone.
    fn by_reports(&mut self, now: Micros) -> Bps {
        let it = &mut self.reported_loss;
        if it.last.is_none_or(|at| now - at >= REPORT_LIFE) {
            return self.target;
        }
        let loss = it.share as f32 / 256.0;
        if loss <= LOW_LOSS {
            let least = it.history.front().map_or(self.target, |(_, rate)| *rate);
            return (least as f64 * 1.08 + 0.5) as Bps + 1000;
        }
        let may_fall = self.fell.is_none_or(|at| now - at >= FALL_TIME + self.rtt);
        if loss > HIGH_LOSS && !it.has_fallen && may_fall {
            self.fell = Some(now);
            it.has_fallen = true;
            return (self.target as f64 * (512 - it.share) as f64 / 512.0) as Bps;
        }
        self.target
    }

    /// Passes a changed target on to those that depend on it (`MaybeTriggerOnNetworkChanged`); whether it
    /// changed.
    fn settle(&mut self, now: Micros) -> bool {
        let target = self.rate();
        let pushed = self.pushed(target).max(self.min);
        let last = Last {
            target,
            pushed,
            share: self.reported_loss.share,
            rtt: self.rtt,
            state: self.loss.state,
            is_alr: self.alr.began.is_some(),
        };
        if last == self.last {
            return false;
        }
        self.last = last;
        self.alr.set_rate(target);
        let is_free = self.delay.usage() == Usage::Normal
            && !self.is_late()
            && self.loss.state == loss::State::Delay;
        if let Some(prober) = &mut self.prober {
            prober.set_estimate(now, target, is_free);
        }
        true
    }

    /// The target reduced while more is in flight than the window permits.
    fn pushed(&mut self, target: Bps) -> Bps {
        let Some(window) = self.window else { return target };
        let filled = self.in_flight as f64 / window as f64;
        self.pushback = match filled {
            filled if filled > 1.5 => self.pushback * 0.9,
            filled if filled > 1.0 => self.pushback * 0.95,
            filled if filled < 0.1 => 1.0,
            _ => (self.pushback * 1.05).min(1.0),
        };
        let pushed = (target as f64 * self.pushback) as Bps;
        if pushed < LEAST_PUSHBACK { target.min(LEAST_PUSHBACK) } else { pushed }
    }

    fn set_window(&mut self) {
        let Some(least) = self.round_trips.iter().min() else { return };
        let window = bytes_in(self.last.target, least * 1000 + QUEUE);
        let window = self.window.map_or(window, |last| (window + last) / 2);
        self.window = Some(window.max(LEAST_WINDOW));
    }

    /// Packets up to this number are not in flight any more.
    fn land(&mut self, number: u64) {
        if self.landed.is_some_and(|last| number <= last) {
            return;
        }
        self.landed = Some(number);
        self.forget(|(first, ..)| first <= number);
    }

    /// Removes the oldest packets in flight that meet a condition.
    fn forget(&mut self, is_gone: impl Fn((u64, Micros, i64)) -> bool) {
        while let Some(oldest) = self.flight.front().copied().filter(|it| is_gone(*it)) {
            self.flight.pop_front();
            self.in_flight -= oldest.2;
        }
    }
}

impl ReportedLoss {
    /// Keeps the target of the last second if it can be its least.
    fn remember(&mut self, now: Micros, target: Bps) {
        let history = &mut self.history;
        while history.front().is_some_and(|(at, _)| now - at + 1000 > INCREASE_TIME) {
            history.pop_front();
        }
        while history.back().is_some_and(|(_, rate)| target <= *rate) {
            history.pop_back();
        }
        history.push_back((now, target));
    }
}

impl MediaController for Gcc {
    fn on_sources(&mut self, least: Rate) {
        if self.config.min.is_none() && self.begun.is_none() {
            let config = std::mem::take(&mut self.config);
            *self = Self::new(&Config { min: Some(least.clamp(LEAST, config.max)), ..config });
            // Another source may come.
            self.config.min = None;
        }
    }
    fn on_sent(&mut self, now: Instant, sent: &Sent) -> bool {
        let now = self.begin(now);
        let at = now / 1000 * 1000;
        let bytes = i64::from(sent.bytes);
        self.forget(|(_, then, _)| now - then > HISTORY);
        self.flight.push_back((sent.sequence, now, bytes));
        self.in_flight += bytes;
        self.alr.on_sent(at, now, bytes);
        // Nothing is known before the first report.
        self.packet_rtt.1.get_or_insert(at);
        self.sent = at;
        self.settle(at)
    }

    fn on_reports(&mut self, now: Instant, reports: &[PacketReport], _: &FeedbackInfo) {
        let now = self.begin(now);
        let reports = reports.iter().filter(|report| !report.arrived_before);
        let mut outcomes = Vec::new();
        let mut arrived = Vec::new();
        for report in reports {
            let (number, bytes) = (report.sequence, i64::from(report.bytes));
            let sent = milliseconds(report.sent);
            let at = report.arrived.map(milliseconds);
            outcomes.push(Outcome { number, sent, arrived: at, bytes });
            let probe = report.probe;
            arrived.extend(at.map(|arrived| Arrived { number, sent, arrived, bytes, probe }));
        }
        let Some(newest) = outcomes.last() else { return };
        self.land(newest.number);
        self.on_outcomes(now, &outcomes, arrived);
    }

    fn on_start(&mut self, now: Instant) {
        self.begin(now);
    }

    fn on_receiver_report(&mut self, now: Instant, report: &ReceiverReport) {
        let now = self.begin(now);
        if let Some(rtt) = report.rtt {
            let rtt = (micros(rtt.as_nanos()) + 500) / 1000 * 1000;
            if rtt > 0 {
                (self.delay.rate.rtt, self.rtt) = (rtt, rtt);
            }
        }
        let (lost, received) = (report.lost, report.received);
        if received < 1 {
            return;
        }
        let it = &mut self.reported_loss;
        it.first.get_or_insert(now);
        let expected = it.expected + lost + received;
        if expected < REPORT_PACKETS {
            (it.expected, it.lost) = (expected, it.lost + lost);
            return;
        }
        it.has_fallen = false;
        it.share = (((it.lost + lost).max(0) << 8) / expected).min(255);
        (it.lost, it.expected, it.last) = (0, 0, Some(now));
        self.update(now);
    }

    fn on_receiver_limit(&mut self, _: Instant, limit: Rate) {
        let limit = Bps::try_from(limit.as_bps()).unwrap_or(INFINITE);
        self.receiver_limit = if limit == 0 { INFINITE } else { limit };
        self.set_target(self.target);
    }

    fn deadline(&self) -> Option<Instant> {
        self.begun.map(|_| self.due)
    }

    fn on_timeout(&mut self, now: Instant) {
        self.due = now + INTERVAL;
        let now = micros(now.as_nanos());
        self.update(now);
        if let Some(prober) = &mut self.prober {
            prober.set_alr(self.alr.began.filter(|_| self.landed.is_some()));
            prober.process(now);
        }
        self.set_window();
        self.settle(now);
    }

    fn take_cluster(&mut self) -> Option<Cluster> {
        let prober = self.prober.as_mut().filter(|it| !it.clusters.is_empty())?;
        let (id, rate) = prober.clusters.remove(0);
        self.clusters.push_back((id, rate));
        if self.clusters.len() > 16 {
            self.clusters.pop_front();
        }
        Some(Cluster {
            id,
            rate: Rate::from_bps(rate as u64),
            duration: Duration::from_micros(probes::DURATION as u64),
            spacing: Duration::from_micros(probes::SPACING as u64),
            packets: probes::PACKETS,
        })
    }

    fn decision(&self) -> Decision {
        let Last { target, pushed, state, .. } = self.last;
        let pads = state == loss::State::Increasing;
        let rate = |rate: Bps| Rate::from_bps(rate as u64);
        // libwebrtc's pacer takes whole bytes a window.
        let windows = |rate: Bps| rate_of(bytes_in(rate, WINDOW), WINDOW);
        Decision {
            target: rate(target.min(self.most)),
            pacing: rate(windows(scaled(target.max(self.min), PACING))),
            padding: rate(windows(if pads { target.min(pushed) } else { 0 })),
            skip: 1.0 - pushed as f64 / target as f64,
            stop: None,
        }
    }

    fn observe(&self, tell: &mut dyn FnMut(Gauge, f64)) {
        tell(Gauge::TargetRate, self.last.target as f64);
        let rates = [
            (Gauge::DelayRate, Some(self.delay.last).filter(|rate| *rate > 0)),
            (Gauge::LossRate, self.loss.rate()),
            (Gauge::AcknowledgedRate, self.acknowledged),
        ];
        for (gauge, rate) in rates {
            rate.into_iter().for_each(|rate| tell(gauge, rate as f64));
        }
        tell(Gauge::DelayTrend, self.delay.trend.trend);
        tell(Gauge::TrendThreshold, self.delay.trend.threshold);
        tell(Gauge::Usage, f64::from(self.delay.usage() as u8));
    }
}

impl Gcc {
    /// `OnTransportPacketsFeedback`.
    fn on_outcomes(&mut self, now: Micros, outcomes: &[Outcome], mut arrived: Vec<Arrived>) {
        arrived.sort_by_key(|it| (it.arrived, it.sent, it.number));
        if let Some(last) = arrived.last() {
            let round_trips = arrived.iter().map(|it| now - it.sent);
            let longest = round_trips.max().unwrap_or_default();
            self.round_trips.push_back((longest + 500) / 1000);
            if self.round_trips.len() > ROUND_TRIPS {
                self.round_trips.pop_front();
            }
            let without_wait = arrived.iter().map(|it| now - it.sent - (last.arrived - it.arrived));
            self.packet_rtt = (without_wait.min().unwrap_or_default(), Some(now));
        }
        let alr = self.alr.began;
        if self.was_alr
            && alr.is_none()
            && let Some(prober) = &mut self.prober
        {
            prober.end_alr(now);
        }
        self.was_alr = alr.is_some();
        self.throughput.on_packets(&arrived);
        let acknowledged = self.throughput.rate();
        self.acknowledged = acknowledged;
        if let Some(rate) = acknowledged {
            self.loss.set_acknowledged(rate);
        }
        let mut probed = None;
        for packet in &arrived {
            let cluster = self.clusters.iter().find(|(id, _)| Some(*id) == packet.probe);
            if let Some((id, rate)) = cluster {
                probed = self.results.on_packet(packet, *id, *rate).or(probed);
            }
        }
        // A probe never lowers the estimate below what drains the queue.
        let limit = acknowledged.map_or(0, |it| self.delay.last.min(scaled(it, AFTER_PROBE)));
        let probed = probed.map(|rate| rate.max(limit));
        let update = self.delay.on_reports(now, &arrived, acknowledged, probed);
        if let Some(rate) = update.rate {
            if update.is_probe {
                self.limit = INFINITE;
                self.set_target(rate);
                self.reported_loss.history.clear();
            }
            self.limit = rate;
            self.set_target(self.target);
        }
        self.loss.on_reports(outcomes, self.limit, alr.is_some());
        self.update(now);
        if update.rate.is_some() {
            self.settle(now);
        }
        if update.recovered
            && let Some(prober) = &mut self.prober
        {
            prober.set_alr(alr);
            prober.on_recovery(now);
        }
        self.set_window();
    }
}
