//! How the rate follows the state of the bottleneck (libwebrtc: `AimdRateControl`, `LinkCapacityEstimator`).

use super::delay::Usage;
use super::{Bps, INFINITE, Micros, SECOND, bytes_in, kbps, rate_of, scaled};
use crate::math::pow;

/// Share of what arrives to which the rate falls.
const BETA: f64 = 0.85;
const UNKNOWN_RTT: Micros = 200_000;
/// The rate falls again after a round trip within these bounds.
const FALLS: (Micros, Micros) = (10_000, 200_000);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Hold,
    Rises,
}

/// The rate of the delay-based estimate.
#[derive(Debug)]
pub(super) struct Aimd {
    min: Bps,
    rate: Bps,
    /// What arrived last.
    throughput: Bps,
    capacity: Capacity,
    state: State,
    changed: Option<Micros>,
    pub(super) rtt: Micros,
}

impl Aimd {
    pub(super) fn new(start: Bps, min: Bps) -> Self {
        Self {
            min,
            rate: start.max(min),
            throughput: start,
            capacity: Capacity::default(),
            state: State::Hold,
            changed: None,
            rtt: UNKNOWN_RTT,
        }
    }

    pub(super) const fn estimate(&self) -> Bps {
        self.rate
    }

    /// True if the rate may fall again.
    pub(super) fn may_fall(&self, now: Micros, throughput: Bps) -> bool {
        let wait = self.rtt.clamp(FALLS.0, FALLS.1);
        self.changed.is_none_or(|at| now - at >= wait) || throughput < scaled(self.rate, 0.5)
    }

    /// A rate that was measured in another way.
    pub(super) fn set(&mut self, now: Micros, rate: Bps) {
        self.rate = rate.max(self.min);
        self.changed = Some(now);
    }

    pub(super) fn update(&mut self, now: Micros, usage: Usage, throughput: Option<Bps>) -> Bps {
        self.throughput = throughput.unwrap_or(self.throughput);
        match usage {
            Usage::Over => self.fall(now),
            Usage::Under => self.state = State::Hold,
            Usage::Normal => {
                if self.state == State::Hold {
                    (self.changed, self.state) = (Some(now), State::Rises);
                }
            }
        }
        if usage == Usage::Normal {
            self.rise(now);
        }
        self.rate = self.rate.max(self.min);
        self.rate
    }

    fn rise(&mut self, now: Micros) {
        if self.throughput > self.capacity.bounds().1 {
            self.capacity.estimate = None;
        }
        let limit = scaled(self.throughput, 1.5) + 10_000;
        if self.rate < limit {
            let since = self.changed.map(|at| now - at);
            let step = if self.capacity.estimate.is_some() {
                (self.near_capacity() * (since.unwrap_or(0) as f64 * 1e-6)) as Bps
            } else {
                let seconds = since.map_or(1.0, |since| (since as f64 * 1e-6).min(1.0));
                scaled(self.rate, pow(1.08, seconds) - 1.0).max(1000)
            };
            self.rate = (self.rate + step).min(limit);
        }
        self.changed = Some(now);
    }

    /// Growth a second near the capacity: half a packet per response time.
    fn near_capacity(&self) -> f64 {
        let frame = bytes_in(self.rate, SECOND / 30);
        let packets = (frame as f64 / 1200.0).ceil();
        let packet = (frame as f64 / packets).round() as i64;
        let response = 2 * (self.rtt + 100_000);
        (rate_of(packet, response) as f64).max(4000.0)
    }

    fn fall(&mut self, now: Micros) {
        let mut rate = scaled(self.throughput, BETA);
        if rate > 5000 {
            rate -= 5000;
        }
        if rate > self.rate
            && let Some(capacity) = self.capacity.estimate
        {
            rate = scaled((capacity * 1e3) as Bps, BETA);
        }
        self.rate = self.rate.min(rate);
        if self.throughput < self.capacity.bounds().0 {
            self.capacity.estimate = None;
        }
        self.capacity.on_overuse(self.throughput);
        (self.state, self.changed) = (State::Hold, Some(now));
    }
}

/// The capacity of the bottleneck, from what arrived while it was overused.
#[derive(Debug)]
struct Capacity {
    /// In kbit/s.
    estimate: Option<f64>,
    /// Its variance, divided by the estimate.
    deviation: f64,
}

impl Default for Capacity {
    fn default() -> Self {
        Self { estimate: None, deviation: 0.4 }
    }
}

/// Weight of a new sample.
const NEW: f64 = 0.05;
const DEVIATIONS: (f64, f64) = (0.4_f32 as f64, 2.5);

impl Capacity {
    /// Three standard deviations below and above.
    fn bounds(&self) -> (Bps, Bps) {
        let Some(estimate) = self.estimate else { return (0, INFINITE) };
        let deviation = 3.0 * (self.deviation * estimate).sqrt();
        let rate = |kbps: f64| (kbps * 1e3) as Bps;
        (rate((estimate - deviation).max(0.0)), rate(estimate + deviation))
    }

    fn on_overuse(&mut self, throughput: Bps) {
        let sample = kbps(throughput) as f64;
        let estimate = self.estimate.map_or(sample, |it| (1.0 - NEW) * it + NEW * sample);
        let error = estimate - sample;
        let deviation = (1.0 - NEW) * self.deviation + NEW * error * error / estimate.max(1.0);
        self.estimate = Some(estimate);
        self.deviation = deviation.clamp(DEVIATIONS.0, DEVIATIONS.1);
    }
}
