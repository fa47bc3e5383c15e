//! The delay-based estimate: groups of packets, the trend of their delays, and the rate that follows from it
//! (libwebrtc: `InterArrivalDelta`, `TrendlineEstimator`, `DelayBasedBwe`).

use std::collections::VecDeque;

use super::aimd::Aimd;
use super::{Arrived, Bps, Micros, SECOND};

/// What the trend of the delays says of the bottleneck.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Usage {
    #[default]
    Normal,
    /// Its queue empties.
    Under,
    /// Its queue grows.
    Over,
}

/// Packets that were sent within this time are one group.
const GROUP: Micros = 5_000;
/// A packet that follows the group's last one this closely, with less delay, left a queue together with it.
const BURST_GAP: Micros = 5_000;
const LONGEST_BURST: Micros = 100_000;
/// The receiver's clock jumped if two groups arrive this much further apart than their reports.
const CLOCK_JUMP: Micros = 3 * SECOND;
/// Groups in a row that arrive before the one before them, after which all is forgotten.
const MOST_REORDERED: u32 = 3;

/// Packets that were sent together.
#[derive(Clone, Copy, Debug)]
struct Group {
    first_sent: Micros,
    sent: Micros,
    first_arrived: Micros,
    arrived: Micros,
    /// When its last packet was reported.
    reported: Micros,
}

/// Time between two groups.
#[derive(Clone, Copy, Debug)]
struct Delta {
    sent: Micros,
    arrived: Micros,
}

/// The last two groups.
#[derive(Debug, Default)]
struct Groups {
    current: Option<Group>,
    previous: Option<Group>,
    reordered: u32,
}

impl Groups {
    /// Takes a packet in; the time between the two groups before it if it begins a third.
    fn on_packet(&mut self, packet: &Arrived, now: Micros) -> Option<Delta> {
        let begun = Group {
            first_sent: packet.sent,
            sent: packet.sent,
            first_arrived: packet.arrived,
            arrived: packet.arrived,
            reported: now,
        };
        let Some(current) = &mut self.current else {
            self.current = Some(begun);
            return None;
        };
        if packet.sent < current.first_sent {
            return None;
        }
        if !current.ends_before(packet) {
            current.sent = current.sent.max(packet.sent);
            (current.arrived, current.reported) = (packet.arrived, now);
            return None;
        }
        let ended = *current;
        let mut delta = None;
        if let Some(previous) = self.previous {
            let arrived = ended.arrived - previous.arrived;
            if arrived - (ended.reported - previous.reported) >= CLOCK_JUMP {
                *self = Self::default();
                return None;
            }
            if arrived < 0 {
                self.reordered += 1;
                if self.reordered >= MOST_REORDERED {
                    *self = Self::default();
                }
                return None;
            }
            self.reordered = 0;
            delta = Some(Delta { sent: ended.sent - previous.sent, arrived });
        }
        self.previous = Some(ended);
        self.current = Some(begun);
        delta
    }
}

impl Group {
    /// True if the packet, which was not sent before the group, begins another one.
    const fn ends_before(&self, packet: &Arrived) -> bool {
        let (arrived, sent) = (packet.arrived - self.arrived, packet.sent - self.sent);
        let is_burst = sent == 0
            || (arrived < sent
                && arrived <= BURST_GAP
                && packet.arrived - self.first_arrived < LONGEST_BURST);
        !is_burst && packet.sent - self.first_sent > GROUP
    }
}

/// Groups over which the trend is computed, and weight of the past in their smoothed delay.
const WINDOW: usize = 20;
const SMOOTHING: f64 = 0.9;
const GAIN: f64 = 4.0;
/// The trend counts fully after this many groups.
const FEW_GROUPS: u32 = 60;
const MOST_GROUPS: u32 = 1000;
/// Time of growing delays in milliseconds after which the bottleneck is overused.
const OVERUSE: f64 = 10.0;
const THRESHOLD: f64 = 12.5;
const THRESHOLDS: (f64, f64) = (6.0, 600.0);
const UP: f64 = 0.0087;
const DOWN: f64 = 0.039;
/// A trend this far above the threshold is a sudden change, to which the threshold does not adapt.
const SUDDEN: f64 = 15.0;
const LONGEST_STEP_MS: i64 = 100;

/// Detects a queue by the trend of the delays.
#[derive(Debug)]
pub(super) struct Trend {
    groups: u32,
    first_arrived: Option<i64>,
    /// Sum of all changes of the delay in milliseconds, and the same smoothed.
    delay: f64,
    smoothed: f64,
    /// Arrival in milliseconds since the first, and smoothed delay.
    window: VecDeque<(f64, f64)>,
    slope: f64,
    pub(super) threshold: f64,
    adapted: Option<i64>,
    /// How long the trend has been above the threshold, and in how many groups.
    above: Option<f64>,
    count: u32,
    /// Slope times gain and groups.
    pub(super) trend: f64,
    usage: Usage,
}

impl Trend {
    fn new() -> Self {
        Self {
            groups: 0,
            first_arrived: None,
            delay: 0.0,
            smoothed: 0.0,
            window: VecDeque::with_capacity(WINDOW + 1),
            slope: 0.0,
            threshold: THRESHOLD,
            adapted: None,
            above: None,
            count: 0,
            trend: 0.0,
            usage: Usage::Normal,
        }
    }

    fn on_group(&mut self, delta: Delta, arrived: Micros) {
        let milliseconds = |span: Micros| span as f64 * 1e-3;
        let arrived = arrived / 1000;
        self.groups = (self.groups + 1).min(MOST_GROUPS);
        let first = *self.first_arrived.get_or_insert(arrived);
        let sent = milliseconds(delta.sent);
        self.delay += milliseconds(delta.arrived) - sent;
        self.smoothed = SMOOTHING * self.smoothed + (1.0 - SMOOTHING) * self.delay;
        self.window.push_back(((arrived - first) as f64, self.smoothed));
        if self.window.len() > WINDOW {
            self.window.pop_front();
        }
        let slope = match self.window.len() {
            WINDOW => slope(&self.window).unwrap_or(self.slope),
            _ => self.slope,
        };
        self.detect(slope, sent, arrived);
    }

    fn detect(&mut self, slope: f64, sent: f64, arrived: i64) {
        if self.groups < 2 {
            self.usage = Usage::Normal;
            return;
        }
        self.trend = f64::from(self.groups.min(FEW_GROUPS)) * slope * GAIN;
        if self.trend > self.threshold {
            // The trend began somewhere between the last two groups.
            let above = self.above.map_or(sent / 2.0, |above| above + sent);
            self.above = Some(above);
            self.count += 1;
            if above > OVERUSE && self.count > 1 && slope >= self.slope {
                (self.above, self.count) = (Some(0.0), 0);
                self.usage = Usage::Over;
            }
        } else {
            (self.above, self.count) = (None, 0);
            let is_under = self.trend < -self.threshold;
            self.usage = if is_under { Usage::Under } else { Usage::Normal };
        }
        self.slope = slope;
        self.adapt(arrived);
    }

    fn adapt(&mut self, arrived: i64) {
        let last = self.adapted.replace(arrived).unwrap_or(arrived);
        let trend = self.trend.abs();
        if trend > self.threshold + SUDDEN {
            return;
        }
        let factor = if trend < self.threshold { DOWN } else { UP };
        let step = (arrived - last).min(LONGEST_STEP_MS) as f64;
        self.threshold += factor * (trend - self.threshold) * step;
        self.threshold = self.threshold.clamp(THRESHOLDS.0, THRESHOLDS.1);
    }
}

/// Slope of the least-squares line, if there is one.
fn slope(points: &VecDeque<(f64, f64)>) -> Option<f64> {
    let count = points.len() as f64;
    let (x, y) = points.iter().fold((0.0, 0.0), |sum, it| (sum.0 + it.0, sum.1 + it.1));
    let (x, y) = (x / count, y / count);
    let (mut above, mut below) = (0.0, 0.0);
    for point in points {
        above += (point.0 - x) * (point.1 - y);
        below += (point.0 - x) * (point.0 - x);
    }
    (below != 0.0).then(|| above / below)
}

/// Without reports for this long, the delays so far are forgotten.
const TIMEOUT: Micros = 2 * SECOND;

/// The delay-based estimate.
#[derive(Debug)]
pub(super) struct DelayBased {
    groups: Groups,
    pub(super) trend: Trend,
    reported: Option<Micros>,
    pub(super) rate: Aimd,
    /// The last estimate that an update gave; zero before.
    pub(super) last: Bps,
}

/// What follows from reports.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Update {
    /// The estimate, if it was updated.
    pub(super) rate: Option<Bps>,
    /// It is that of a probe.
    pub(super) is_probe: bool,
    /// A queue has emptied.
    pub(super) recovered: bool,
}

impl DelayBased {
    pub(super) fn new(start: Bps, min: Bps) -> Self {
        let (groups, trend) = (Groups::default(), Trend::new());
        Self { groups, trend, reported: None, rate: Aimd::new(start, min), last: 0 }
    }

    pub(super) const fn usage(&self) -> Usage {
        self.trend.usage
    }

    /// Takes in reports on packets that arrived, in order of arrival.
    pub(super) fn on_reports(
        &mut self,
        now: Micros,
        arrived: &[Arrived],
        acknowledged: Option<Bps>,
        probed: Option<Bps>,
    ) -> Update {
        if arrived.is_empty() {
            return Update::default();
        }
        let mut recovered = false;
        for packet in arrived {
            let before = self.usage();
            if self.reported.is_none_or(|at| now - at > TIMEOUT) {
                (self.groups, self.trend) = (Groups::default(), Trend::new());
            }
            self.reported = Some(now);
            if let Some(delta) = self.groups.on_packet(packet, now) {
                self.trend.on_group(delta, packet.arrived);
            }
            recovered |= before == Usage::Under && self.usage() == Usage::Normal;
        }
        let usage = self.usage();
        let mut update = Update::default();
        match (usage, acknowledged, probed) {
            (Usage::Over, Some(acknowledged), _) => {
                if self.rate.may_fall(now, acknowledged) {
                    update.rate = Some(self.rate.update(now, usage, Some(acknowledged)));
                }
            }
            // Nothing is known of what arrives: half the rate, and half again.
            (Usage::Over, None, _) => {
                let half = self.rate.estimate() / 2;
                if self.rate.may_fall(now, half - 1) {
                    self.rate.set(now, half);
                    update.rate = Some(self.rate.estimate());
                }
            }
            (_, _, Some(probed)) => {
                self.rate.set(now, probed);
                (update.rate, update.is_probe) = (Some(self.rate.estimate()), true);
            }
            (_, acknowledged, None) => {
                update.rate = Some(self.rate.update(now, usage, acknowledged));
                update.recovered = recovered;
            }
        }
        self.last = update.rate.unwrap_or(self.last);
        update
    }
}
