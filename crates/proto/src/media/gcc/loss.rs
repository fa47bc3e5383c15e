//! The loss-based estimate: the bandwidth beyond which packets are lost, and the share that is lost below it,
//! of maximum likelihood (libwebrtc: `LossBasedBweV2`).

use std::collections::BTreeMap;

use super::{Bps, INFINITE, MIN, Micros, Outcome, SECOND, kbps, rate_of, scaled};
use crate::math::{ln, pow};

/// Observations, the shortest of them, and how many are needed for an estimate.
const WINDOW: usize = 15;
const SHORTEST: Micros = 250_000;
const FEWEST: usize = 3;
/// Weight of an observation compared with the one after it.
const WEIGHT: f64 = 0.9;
/// Candidates, as factors of the last estimate.
const CANDIDATES: [f64; 3] = [1.02, 1.0, 0.95];
/// Inherent loss at the start, and its bounds: the upper one grows as the bandwidth falls.
const LOSS: f64 = 0.01;
const LEAST_LOSS: f64 = 1e-3;
const MOST_LOSS: f64 = 0.05;
const BALANCE: Bps = 100_000;
const NEWTON_STEP: f64 = 0.75;
/// Of two bandwidths that explain the losses, the higher is preferred below this loss.
const PREFERENCE_UNTIL: f64 = 0.2;
const PREFERENCE_WIDTH: f64 = 0.002;
const PREFERENCE: f64 = 0.0002;
const LOG_PREFERENCE: f64 = 0.02;
/// Growth beyond what arrives, and the same near the rate at which losses began.
const RAMP_UP: f64 = 1.5;
const RAMP_UP_IN_HOLD: f64 = 1.2;
const HOLD_UNTIL: f64 = 1.3;
/// Growth within a window.
const INCREASE: f64 = 1.3;
const INCREASE_WINDOW: Micros = 300_000;
/// How long a rate is held after losses; twice as long after each.
const HOLD: Micros = 300_000;
const LONGEST_HOLD: Micros = 60 * SECOND;
const PADDING: Micros = 2 * SECOND;
/// A sudden rate of this many times the median explains a loss that is not a spike.
const SUDDEN: f64 = 2.0;

/// What limits the rate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum State {
    /// Delays do.
    #[default]
    Delay,
    /// Losses do, and it grows; padding is sent beside the media.
    Increasing,
    /// Losses do.
    Decreasing,
}

/// What the network is like.
#[derive(Clone, Copy, Debug)]
struct Channel {
    /// Share lost at any rate.
    loss: f64,
    bandwidth: Bps,
}

#[derive(Clone, Copy, Debug)]
struct Observation {
    rate: Bps,
    bytes: i64,
    lost: i64,
}

impl Observation {
    fn share(&self) -> f64 {
        if self.bytes == 0 { 0.0 } else { self.lost as f64 / self.bytes as f64 }
    }
    /// Lost and received kilobytes.
    fn kilobytes(&self) -> (f64, f64) {
        (self.lost as f64 / 1000.0, (self.bytes - self.lost) as f64 / 1000.0)
    }
    /// Share that the channel would lose of it.
    fn expected(&self, channel: Channel) -> f64 {
        let mut share = channel.loss;
        if self.rate > channel.bandwidth {
            let surplus = (self.rate - channel.bandwidth) as f64 / self.rate as f64;
            share += (1.0 - channel.loss) * surplus;
        }
        share.clamp(1e-6, 1.0 - 1e-6)
    }
}

/// After losses, the rate does not grow beyond this until then.
#[derive(Clone, Copy, Debug)]
struct Hold {
    until: Micros,
    length: Micros,
    rate: Bps,
}

const NO_HOLD: Hold = Hold { until: Micros::MIN, length: HOLD, rate: INFINITE };

/// The estimate.
#[derive(Debug)]
pub(super) struct LossBased {
    min: Bps,
    max: Bps,
    acknowledged: Option<Bps>,
    delay_based: Bps,
    best: Option<Channel>,
    /// The last ones as a ring, and how many there were.
    observations: Vec<Observation>,
    count: usize,
    /// Bytes reported since the last observation, and of them the packets that are lost.
    bytes: i64,
    lost: BTreeMap<u64, i64>,
    /// The latest that a packet of the last observation was sent.
    observed: Option<Micros>,
    average: f64,
    upper: Bps,
    grew: Option<Micros>,
    window_limit: Bps,
    hold: Hold,
    /// Rate from which padding began, and when.
    padding: Option<(Bps, Micros)>,
    pub(super) state: State,
    rate: Bps,
}

impl LossBased {
    pub(super) fn new(min: Bps, max: Bps) -> Self {
        Self {
            min,
            max,
            acknowledged: None,
            delay_based: INFINITE,
            best: None,
            observations: Vec::with_capacity(WINDOW),
            count: 0,
            bytes: 0,
            lost: BTreeMap::new(),
            observed: None,
            average: 0.0,
            upper: max,
            grew: None,
            window_limit: INFINITE,
            hold: NO_HOLD,
            padding: None,
            state: State::Delay,
            rate: 0,
        }
    }

    pub(super) const fn set_acknowledged(&mut self, rate: Bps) {
        self.acknowledged = Some(rate);
    }

    /// The estimate, once there is one.
    pub(super) fn rate(&self) -> Option<Bps> {
        (self.best.is_some() && self.count >= FEWEST).then_some(self.rate)
    }

    fn lower(&self) -> Bps {
        self.acknowledged.unwrap_or(0).max(self.min)
    }

    /// Takes in reports; `in_alr` while the sources leave capacity unused.
    pub(super) fn on_reports(&mut self, reports: &[Outcome], delay_based: Bps, in_alr: bool) {
        self.delay_based = delay_based;
        let Some(now) = self.observe(reports) else { return };
        let Some(current) = self.best else {
            if delay_based == INFINITE {
                return;
            }
            self.best = Some(Channel { loss: LOSS, bandwidth: delay_based });
            (self.rate, self.state) = (delay_based, State::Delay);
            return self.update(now, in_alr, Channel { loss: LOSS, bandwidth: delay_based });
        };
        self.update(now, in_alr, current);
    }

    fn update(&mut self, now: Micros, in_alr: bool, current: Channel) {
        let mut best = self.best_candidate(now, in_alr, current);
        // No growth while more is lost than the channel explains.
        if self.average > best.loss && current.bandwidth < best.bandwidth {
            best.bandwidth = current.bandwidth;
        }
        if self.state != State::Delay {
            let is_recent = self.grew.is_some_and(|at| at + INCREASE_WINDOW > now);
            if is_recent && best.bandwidth > self.window_limit {
                best.bandwidth = self.window_limit;
            }
            if let Some(acknowledged) = self.acknowledged
                && self.grows(current.bandwidth, best.bandwidth)
            {
                let holds =
                    self.hold.rate != INFINITE && acknowledged < scaled(self.hold.rate, HOLD_UNTIL);
                let factor = if holds { RAMP_UP_IN_HOLD } else { RAMP_UP };
                let bounded = best.bandwidth.min(scaled(acknowledged, factor));
                best.bandwidth = current.bandwidth.max(bounded);
                // At least a little, so that padding begins.
                if self.state == State::Decreasing && best.bandwidth == current.bandwidth {
                    best.bandwidth += 1;
                }
            }
        }
        let bounded = best.bandwidth.min(self.upper).min(self.delay_based).max(self.lower());
        let best = if bounded < best.bandwidth {
            Channel { loss: 0.0, bandwidth: bounded }
        } else {
            Channel { bandwidth: best.bandwidth.max(self.lower()), ..best }
        };
        self.best = Some(best);
        if self.state == State::Decreasing && self.hold.until > now && bounded < self.delay_based {
            self.hold.rate = self.hold.rate.max(self.lower());
            self.rate = self.hold.rate.min(bounded);
            return;
        }
        let is_limited = bounded < self.delay_based && bounded < self.max;
        if is_limited && self.grows(self.rate, bounded) && self.keeps_growing(now, bounded) {
            if self.padding.is_none_or(|(rate, _)| bounded > rate) {
                self.padding = Some((bounded, now));
            }
            self.state = State::Increasing;
        } else if is_limited {
            if self.state != State::Decreasing {
                let length = self.hold.length;
                let until = now + length;
                self.hold = Hold { until, length: (2 * length).min(LONGEST_HOLD), rate: bounded };
            }
            (self.padding, self.state) = (None, State::Decreasing);
        } else {
            (self.hold, self.padding, self.state) = (NO_HOLD, None, State::Delay);
        }
        self.rate = bounded;
        let is_over = self.grew.is_none_or(|at| at + INCREASE_WINDOW < now);
        if self.state != State::Delay && is_over {
            self.window_limit = scaled(best.bandwidth, INCREASE).max(MIN);
            self.grew = Some(now);
        }
    }

    /// True if the estimate grows while losses limit it.
    fn grows(&self, old: Bps, new: Bps) -> bool {
        self.state != State::Delay && (old < new || (old == new && self.state == State::Increasing))
    }

    /// Growth goes on while padding is young or the estimate grows.
    fn keeps_growing(&self, now: Micros, estimate: Bps) -> bool {
        self.state != State::Increasing
            || self.padding.is_none_or(|(rate, at)| at + PADDING >= now || rate < estimate)
    }

    fn best_candidate(&self, now: Micros, in_alr: bool, current: Channel) -> Channel {
        let mut bandwidths = CANDIDATES.map(|factor| scaled(current.bandwidth, factor)).to_vec();
        let pads = self.padding.is_some_and(|(_, at)| at + PADDING >= now);
        bandwidths.extend(self.acknowledged.filter(|_| !in_alr || pads));
        if self.delay_based != INFINITE && self.delay_based > current.bandwidth {
            bandwidths.push(self.delay_based);
        }
        let limited = self.state != State::Delay && self.window_limit != INFINITE;
        let most = if limited { self.window_limit } else { self.max };
        let most = most.max(current.bandwidth);
        let (mut best, mut highest) = (current, f64::MIN);
        for bandwidth in bandwidths {
            let bandwidth = bandwidth.min(most);
            let loss = feasible(current.loss, bandwidth);
            let candidate = self.fitted(Channel { loss, bandwidth });
            let likelihood = self.likelihood(candidate);
            if likelihood > highest
                || (likelihood == highest && candidate.bandwidth > best.bandwidth)
            {
                (best, highest) = (candidate, likelihood);
            }
        }
        best
    }

    /// Observations with their weights, in libwebrtc's order: of two with the same loss, the first counts.
    fn weighted(&self) -> impl Iterator<Item = (f64, &Observation)> {
        let age = |place: usize| (self.count - 1 + WINDOW - place) % WINDOW;
        let places = self.observations.iter().enumerate();
        places.map(move |(place, it)| (pow(WEIGHT, age(place) as f64), it))
    }

    /// The channel after a step of Newton's method for its inherent loss.
    fn fitted(&self, channel: Channel) -> Channel {
        let (mut first, mut second) = (0.0, 0.0);
        for (weight, observation) in self.weighted() {
            let share = observation.expected(channel);
            let (lost, received) = observation.kilobytes();
            first += weight * (lost / share - received / (1.0 - share));
            second -=
                weight * (lost / (share * share) + received / ((1.0 - share) * (1.0 - share)));
        }
        if second >= 0.0 {
            second = -1e-6;
        }
        let loss = feasible(channel.loss - NEWTON_STEP * first / second, channel.bandwidth);
        Channel { loss, ..channel }
    }

    fn likelihood(&self, channel: Channel) -> f64 {
        let preference = |factor: f64| {
            let below = PREFERENCE_UNTIL - self.average;
            factor * below / (PREFERENCE_WIDTH + below.abs())
        };
        let bandwidth = kbps(channel.bandwidth) as f64;
        let bias =
            preference(PREFERENCE) * bandwidth + preference(LOG_PREFERENCE) * ln(1.0 + bandwidth);
        let mut sum = 0.0;
        for (weight, observation) in self.weighted() {
            let share = observation.expected(channel);
            let (lost, received) = observation.kilobytes();
            sum += weight * (lost * ln(share) + received * ln(1.0 - share));
            sum += weight * bias * (observation.bytes as f64 / 1000.0);
        }
        sum
    }

    /// Adds reports to the observation; when it ended if it is complete.
    fn observe(&mut self, reports: &[Outcome]) -> Option<Micros> {
        let (first, last) =
            (reports.iter().map(|it| it.sent).min()?, reports.iter().map(|it| it.sent).max()?);
        for report in reports {
            if report.arrived.is_some() {
                self.lost.remove(&report.number);
            } else {
                self.lost.entry(report.number).or_insert(report.bytes);
            }
            self.bytes += report.bytes;
        }
        let begun = *self.observed.get_or_insert(first);
        let length = last - begun;
        if length < SHORTEST {
            return None;
        }
        self.observed = Some(last);
        let lost = std::mem::take(&mut self.lost).values().sum();
        let bytes = std::mem::take(&mut self.bytes);
        let observation = Observation { rate: rate_of(bytes, length), bytes, lost };
        match self.observations.get_mut(self.count % WINDOW) {
            Some(oldest) => *oldest = observation,
            None => self.observations.push(observation),
        }
        self.count += 1;
        self.average = self.average_loss();
        self.upper = self.max;
        if self.average > MOST_LOSS {
            self.upper = (BALANCE as f64 / (self.average - MOST_LOSS)).round() as Bps;
        }
        Some(last)
    }

    /// Share of bytes lost, without the observations of the highest and the lowest share.
    fn average_loss(&self) -> f64 {
        let weigh = |weight: f64, bytes: i64| scaled(bytes, weight);
        let (mut total, mut lost) = (0, 0);
        let (mut least, mut most) = ((1.0, 0, 0), (0.0, 0, 0));
        let mut fastest = 0;
        for (weight, observation) in self.weighted() {
            let weighed = (weigh(weight, observation.bytes), weigh(weight, observation.lost));
            total += weighed.0;
            lost += weighed.1;
            let share = observation.share();
            if self.count > 3 {
                if share > most.0 {
                    most = (share, weighed.0, weighed.1);
                    fastest = observation.rate;
                }
                if share < least.0 {
                    least = (share, weighed.0, weighed.1);
                }
            }
        }
        let is_sudden = scaled(self.median_rate(), SUDDEN) <= fastest;
        if is_sudden || total == most.1 + least.1 {
            return lost as f64 / total as f64;
        }
        (lost - least.2 - most.2) as f64 / (total - most.1 - least.1) as f64
    }

    fn median_rate(&self) -> Bps {
        let mut rates: Vec<_> =
            self.observations.iter().map(|it| it.rate).filter(|it| *it > 0).collect();
        rates.sort_unstable();
        let middle = rates.len() / 2;
        match rates.len() {
            0 => 0,
            even if even % 2 == 0 => (rates[middle - 1] + rates[middle]) / 2,
            _ => rates[middle],
        }
    }
}

/// The inherent loss within its bounds.
fn feasible(loss: f64, bandwidth: Bps) -> f64 {
    let most = match bandwidth {
        0 => 1.0,
        bandwidth => (MOST_LOSS + BALANCE as f64 / bandwidth as f64).min(1.0),
    };
    loss.max(LEAST_LOSS).min(most)
}
