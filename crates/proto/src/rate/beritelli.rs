//! A controller modelled on Beritelli, Ruggeri and Schembra (2002), as described by Maldonado et al.
//! (2005): a TCP-friendly rate that also reacts to delay. When the delay variation exceeds a
//! threshold, the rate is halved and a slow start follows; otherwise it grows additively. With a
//! ladder, the encoder uses the best rung within the rate.
//!
//! The study gives this description and an experiment (10 to 40 voice flows on 150 kbit/s), but no
//! numbers or equations. What it leaves open is a parameter here, documented as such.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::ladder::Ladder;
use super::{Permit, RateControl, Report, Rung};
use crate::gauge::{EndpointProbe, Gauge, Topic};
use crate::math;
use crate::time::{Duration, Instant};
use crate::units::Rate;
use crate::validate::config;

config! {
    /// Rate control by delay variation (Beritelli et al. 2002, as described by Maldonado et al. 2005).
    pub struct Config {
        /// Delay variation above which the path counts as congested: the spread of one-way delays in a
        /// report, or else the difference between consecutive round-trip times. The study does not specify
        /// it; the default is one speech packet, a third of the default playout buffer, so that the sender
        /// reacts before playout suffers.
        threshold: Duration = Duration::from_millis(20),
        /// Factor applied to the rate at congestion, above 0 and below 1; at least one packet per round
        /// trip remains. The study halves the rate.
        #[schemars(range(min = 0.05, max = 0.95))]
        decrease: f64 = 0.5,
        /// Growth factor of the rate per round trip in slow start, above 1 (TCP's: 2; RFC 5681 §3.1).
        #[schemars(range(min = 1.01, max = 4))]
        slow_start_gain: f64 = 2.0,
        /// End of slow start and beginning of additive increase, as a share of the rate at the last congestion.
        /// The study does not specify it; the default is half-way between the halved rate and that rate.
        #[schemars(range(min = 0, max = 1))]
        slow_start_until: f64 = 0.75,
        /// Additive increase per round trip, in packets per round trip (TCP's: 1; RFC 5681 §3.1). The study
        /// does not specify it.
        #[schemars(range(min = 0, max = 100))]
        increase_packets: f64 = 1.0,
        /// Rate before the first feedback; absent means that of the lowest rung, or without a ladder one
        /// packet per second (RFC 5348 §4.2).
        #[serde(skip_serializing_if = "Option::is_none")]
        initial_rate: Option<Rate> = None,
        /// Header bytes counted per packet besides those handed to the transport: IP and UDP headers, as in
        /// the study.
        header_bytes: u32 = 28,
    }
}

/// Wait for the first feedback (RFC 5348 §4.2: two seconds).
const FIRST_WAIT: Duration = Duration::from_secs(2);
/// A flow without feedback still sends one packet in this time (RFC 5348 §4.3: t_mbi).
const LONGEST_SILENCE_S: f64 = 64.0;

/// The controller.
#[derive(Clone, Debug)]
pub struct Beritelli {
    config: Config,
    ladder: Ladder,
    /// Bits per second.
    rate: f64,
    /// Slow start ends here; infinite before the first congestion.
    ceiling: f64,
    /// Round-trip time, smoothed (RFC 5348 §4.3 step 2).
    rtt: Option<Duration>,
    last_sample: Option<Duration>,
    loss_event_rate: f64,
    /// When the rate was last allowed to grow.
    grown: Option<Instant>,
    /// No further cut before this: one per round trip.
    next_cut: Instant,
    /// When the next packet may leave.
    ready: Instant,
    nofeedback: Option<Instant>,
    /// Something was sent since the timer was set, so that missing feedback indicates congestion.
    owed: bool,
    /// Bytes of the last packet, including headers.
    packet_bytes: u32,
}

impl Beritelli {
    /// A controller for a source with these rungs, best first; none if it has only one encoding.
    #[must_use]
    pub fn new(now: Instant, config: &Config, rungs: &[Rung]) -> Self {
        let ladder = Ladder::new(rungs, config.header_bytes);
        let lowest = (!ladder.is_empty()).then(|| ladder.cost(ladder.lowest()));
        let packet_bytes = lowest.map_or(0, |cost| cost.packet_bytes);
        let initial = config.initial_rate.or(lowest.map(|cost| cost.rate));
        let mut controller = Self {
            config: config.clone(),
            rate: initial.map_or(0.0, |rate| rate.as_bps() as f64),
            ceiling: f64::INFINITY,
            rtt: None,
            last_sample: None,
            loss_event_rate: 0.0,
            grown: None,
            next_cut: now,
            ready: now,
            nofeedback: None,
            owed: false,
            packet_bytes,
            ladder,
        };
        controller.bound(f64::INFINITY);
        controller
    }

    /// Keeps the rate between a packet in 64 s and the maximum that is useful or supported by
    /// evidence, and selects the rung within it.
    fn bound(&mut self, most: f64) {
        let best = if self.ladder.is_empty() { f64::INFINITY } else { bps(&self.ladder, 0) };
        let least = f64::from(self.packet_bytes.max(1)) * 8.0 / LONGEST_SILENCE_S;
        self.rate = self.rate.min(most.min(best)).max(least);
        if !self.ladder.is_empty() {
            self.ladder.rung = self.ladder.within(self.rate()).unwrap_or(self.ladder.lowest());
        }
    }

    /// The variation from the report, or from two round-trip times.
    fn variation(&mut self, report: &Report) -> Option<Duration> {
        let before = self.last_sample;
        self.last_sample = report.rtt.or(before);
        let steps = || Some(before?.abs_diff(report.rtt?));
        report.delay_variation.or_else(steps)
    }

    /// Cuts the rate, but not below a packet per round trip (TCP's minimum window): with less, there
    /// would be no feedback to recover by. Only missing feedback lowers it further.
    fn on_congestion(&mut self, rtt: Duration) {
        let least = f64::from(self.packet_bytes) * 8.0 / rtt.as_secs_f64().max(1e-6);
        self.ceiling = self.rate * self.config.slow_start_until;
        self.rate = (self.rate * self.config.decrease).max(least.min(self.rate));
    }

    /// Grows for the time since the last growth, at most a round trip.
    fn grow(&mut self, now: Instant, rtt: Duration) {
        let rtt = rtt.as_secs_f64().max(1e-6);
        let elapsed = self.grown.map(|then| now.saturating_since(then).as_secs_f64());
        let rounds = elapsed.map_or(1.0, |elapsed| (elapsed / rtt).min(1.0));
        if self.rate < self.ceiling {
            // The first slow start is unbounded.
            let gain = math::pow(self.config.slow_start_gain, rounds);
            self.rate = (self.rate * gain).min(self.ceiling);
        } else {
            let packet = f64::from(self.packet_bytes) * 8.0 * self.config.increase_packets;
            self.rate += packet / rtt * rounds;
        }
    }

    fn wait_for_feedback(&mut self, now: Instant) {
        let wait = match self.rtt {
            // RFC 5348 §4.3 step 5: max(4R, 2s/X).
            Some(rtt) => {
                let two = self.rate().time_for(2 * u64::from(self.packet_bytes));
                (rtt * 4).max(two.unwrap_or(FIRST_WAIT))
            }
            None => FIRST_WAIT,
        };
        self.nofeedback = Some(now + wait);
        self.owed = false;
    }

    fn tell<P: EndpointProbe>(&mut self, now: Instant, probe: &mut P) {
        if !probe.observes(Topic::Gauge) {
            return;
        }
        probe.gauge(now, Gauge::Rate, self.rate);
        probe.gauge(now, Gauge::LossEventRate, self.loss_event_rate);
        self.rtt.into_iter().for_each(|rtt| probe.gauge(now, Gauge::Srtt, rtt.as_secs_f64()));
        if !self.ladder.is_empty() {
            self.ladder.tell(now, probe);
        }
    }
}

impl RateControl for Beritelli {
    fn permit(&mut self, now: Instant, _bytes: u32) -> Permit {
        if self.ready <= now { Permit::Now } else { Permit::At(self.ready) }
    }

    fn on_unused(&mut self, _now: Instant) {}

    fn on_sent(&mut self, now: Instant, bytes: u32) {
        self.packet_bytes = bytes.saturating_add(self.config.header_bytes);
        if self.rate == 0.0 {
            self.rate = f64::from(self.packet_bytes) * 8.0;
        }
        // RFC 5348 §4.6: credit for unused time, at most a round trip.
        let credit = self.rtt.unwrap_or_default();
        let earliest = Instant::from_nanos(now.as_nanos().saturating_sub(credit.as_nanos()));
        let spacing = self.rate().time_for(u64::from(self.packet_bytes)).unwrap_or(FIRST_WAIT);
        self.ready = self.ready.max(earliest) + spacing;
        if self.nofeedback.is_none() {
            self.wait_for_feedback(now);
        }
        self.owed = true;
    }

    fn on_report<P: EndpointProbe>(&mut self, now: Instant, report: &Report, probe: &mut P) {
        if let Some(sample) = report.rtt {
            let smoothed = self.rtt.map_or(sample, |rtt| (rtt * 9 + sample) / 10);
            self.rtt = Some(smoothed.max(Duration::from_nanos(1)));
        }
        let shaken = self.variation(report).is_some_and(|spread| spread > self.config.threshold);
        let lost = report.loss_event_rate > self.loss_event_rate;
        self.loss_event_rate = report.loss_event_rate;
        if let Some(rtt) = self.rtt {
            if !(shaken || lost) {
                self.grow(now, rtt);
            } else if now >= self.next_cut {
                self.next_cut = now + rtt;
                self.on_congestion(rtt);
            }
            self.grown = Some(now);
        }
        // RFC 5348 §4.3 step 4: at most twice what arrived, including headers.
        let bare = self.packet_bytes.saturating_sub(self.config.header_bytes).max(1);
        let counted = f64::from(self.packet_bytes) / f64::from(bare);
        let received = report.receive_rate as f64 * 8.0 * counted;
        self.bound((2.0 * received).max(self.least_rung()));
        self.wait_for_feedback(now);
        self.tell(now, probe);
    }

    fn set_initial_rtt<P: EndpointProbe>(&mut self, now: Instant, rtt: Duration, probe: &mut P) {
        self.rtt.get_or_insert(rtt);
        self.tell(now, probe);
    }

    fn deadline(&self) -> Option<Instant> {
        self.nofeedback
    }

    fn on_timeout<P: EndpointProbe>(&mut self, now: Instant, probe: &mut P) {
        if self.nofeedback.is_some_and(|at| at <= now) {
            // RFC 5348 §4.4: sending without feedback halves the rate.
            if self.owed {
                self.rate *= self.config.decrease;
                self.bound(f64::INFINITY);
            }
            self.wait_for_feedback(now);
            self.tell(now, probe);
        }
    }

    fn rate(&self) -> Rate {
        Rate::from_bps(math::round_u64(self.rate))
    }
    fn rtt(&self) -> Option<Duration> {
        self.rtt
    }
    /// The last packet's, including headers.
    fn segment_size(&self) -> f64 {
        f64::from(self.packet_bytes)
    }
    fn target_rate(&mut self) -> Option<Rate> {
        self.ladder.target_rate()
    }
}

impl Beritelli {
    /// Rate always allowed again after silence: the lowest rung, or four packets per round trip as
    /// in RFC 5348 §4.4.
    fn least_rung(&self) -> f64 {
        if !self.ladder.is_empty() {
            return bps(&self.ladder, self.ladder.lowest());
        }
        let rtt = self.rtt.unwrap_or(FIRST_WAIT).as_secs_f64().max(1e-6);
        4.0 * f64::from(self.packet_bytes) * 8.0 / rtt
    }
}

fn bps(ladder: &Ladder, rung: u8) -> f64 {
    ladder.cost(rung).rate.as_bps() as f64
}
