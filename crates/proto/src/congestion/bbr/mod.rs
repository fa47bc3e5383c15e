//! BBR version 3 (draft-ietf-ccwg-bbr-06): a window and a pacing rate from a model of the path: its delivery
//! rate and its round trip without queueing. Sections refer to the draft, and state is named as in it.
//!
//! This module holds the state and the sender's rate, quantum and window (§5.6). `model` estimates
//! the path (§5.5), `states` is the state machine (§5.3, §5.4).

mod model;
mod states;

use super::{Ack, Congestion, CongestionControl, LostPacket, Model, RateSample, Start};
use super::{per_second, quantum_at};
use crate::rng::Rng;
use crate::rtt::RttEstimator;
use crate::time::{Duration, Instant};
use crate::units::Rate;
use model::{MaxBw, MaxExtraAcked};

/// §2.8: BBR.LossThresh.
const LOSS_THRESH: f64 = 0.02;
/// §2.8: BBR.Beta.
const BETA: f64 = 0.7;
/// §2.8: BBR.Headroom.
const HEADROOM: f64 = 0.15;
/// §2.8: BBR.MinPipeCwnd, in segments.
const MIN_PIPE_CWND: u64 = 4;
/// §2.5: BBR.StartupPacingGain.
const STARTUP_PACING_GAIN: f64 = 2.77;
/// §2.5: the factor for BBR.PacingMarginPercent.
const PACING_MARGIN: f64 = 0.99;
/// §2.16.2: BBR.ProbeRTTCwndGain.
const PROBE_RTT_CWND_GAIN: f64 = 0.5;

/// States of the machine (§5.1.1), in the order of their numbers in the gauge `phase`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BbrState {
    /// The rate doubles each round trip until the path is full (§5.3.1).
    Startup,
    /// The queue built up in Startup drains (§5.3.2).
    Drain,
    /// Slightly below the delivery rate (§5.3.3.1).
    ProbeBwDown,
    /// At the delivery rate (§5.3.3.2).
    ProbeBwCruise,
    /// One round trip to refill the pipe (§5.3.3.3).
    ProbeBwRefill,
    /// Above the delivery rate, to probe for more (§5.3.3.5).
    ProbeBwUp,
    /// Half a bandwidth-delay product, to measure the round trip without a queue (§5.3.4).
    ProbeRtt,
}

/// BBR.ack_phase (§2.14): what acknowledgements show of the bandwidth probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum AckPhase {
    Init,
    Refilling,
    ProbeStarting,
    ProbeFeedback,
    ProbeStopping,
}

/// BBR. Data is in bytes, rates are in bytes per second.
#[derive(Clone, Debug)]
pub struct Bbr {
    rng: Rng,
    smss: u64,
    initial_cwnd: u64,
    cwnd: u64,
    /// 0 before the first estimate.
    pacing_rate: f64,
    state: BbrState,
    /// C.delivered at the last acknowledgement.
    delivered: u64,
    /// The connection was in loss recovery at that time.
    recovering: bool,
    prior_cwnd: u64,
    idle_restart: bool,

    // §5.5.1
    next_round_delivered: u64,
    round_start: bool,
    round_count: u64,

    // §5.5.2 to §5.5.6: rates
    max_bw: MaxBw,
    bw_shortterm: Option<f64>,
    bw: f64,

    // §5.5.7 to §5.5.10: volumes
    min_rtt: Duration,
    min_rtt_stamp: Instant,
    inflight_longterm: Option<u64>,
    inflight_shortterm: Option<u64>,
    extra_acked: MaxExtraAcked,
    extra_acked_interval_start: Instant,
    extra_acked_delivered: u64,

    // §5.5.10.3: delivery and loss of the last round trip
    bw_latest: f64,
    inflight_latest: u64,
    is_loss_in_round: bool,
    loss_round_delivered: u64,
    loss_round_start: bool,
    /// Ranges of numbers lost in this round trip (§5.3.1.3).
    losses_in_round: u32,

    // §5.3.1.2
    full_bw_reached: bool,
    full_bw_now: bool,
    full_bw: f64,
    full_bw_count: u32,
    drain_start_round: u64,

    // §5.3.3
    ack_phase: AckPhase,
    is_bw_probe_sample: bool,
    cycle_stamp: Instant,
    bw_probe_wait: Duration,
    rounds_since_probe_up: u64,
    bw_probe_up_rounds: u32,
    bw_probe_up_acked: u64,
    /// `None` while inflight_longterm does not grow.
    probe_up_acked_per_inc: Option<u64>,
    prev_probe_too_high: bool,
    prev_probe_precautionary: bool,

    // §5.3.4
    probe_rtt_min_delay: Duration,
    probe_rtt_min_stamp: Instant,
    probe_rtt_expired: bool,
    probe_rtt_done_stamp: Option<Instant>,
    probe_rtt_round_done: bool,
}

impl Bbr {
    /// §5.2.1: a controller in its initial state. `rng` randomises the time in cruise (§5.3.3.8).
    #[must_use]
    pub fn new(start: &Start, now: Instant, rng: Rng) -> Self {
        let window = start.window.max(start.quantum);
        Self {
            rng,
            smss: start.quantum.max(1),
            initial_cwnd: window,
            cwnd: window,
            pacing_rate: 0.0,
            state: BbrState::Startup,
            delivered: 0,
            recovering: false,
            prior_cwnd: 0,
            idle_restart: false,
            next_round_delivered: 0,
            round_start: false,
            round_count: 0,
            max_bw: MaxBw::default(),
            bw_shortterm: None,
            bw: 0.0,
            min_rtt: Duration::MAX,
            min_rtt_stamp: now,
            inflight_longterm: None,
            inflight_shortterm: None,
            extra_acked: MaxExtraAcked::default(),
            extra_acked_interval_start: now,
            extra_acked_delivered: 0,
            bw_latest: 0.0,
            inflight_latest: 0,
            is_loss_in_round: false,
            loss_round_delivered: 0,
            loss_round_start: false,
            losses_in_round: 0,
            full_bw_reached: false,
            full_bw_now: false,
            full_bw: 0.0,
            full_bw_count: 0,
            drain_start_round: 0,
            ack_phase: AckPhase::Init,
            is_bw_probe_sample: false,
            cycle_stamp: now,
            bw_probe_wait: Duration::ZERO,
            rounds_since_probe_up: 0,
            bw_probe_up_rounds: 0,
            bw_probe_up_acked: 0,
            probe_up_acked_per_inc: None,
            prev_probe_too_high: false,
            prev_probe_precautionary: false,
            probe_rtt_min_delay: Duration::MAX,
            probe_rtt_min_stamp: now,
            probe_rtt_expired: false,
            probe_rtt_done_stamp: None,
            probe_rtt_round_done: false,
        }
    }

    /// §5.6.1, the table.
    const fn pacing_gain(&self) -> f64 {
        match self.state {
            BbrState::Startup => STARTUP_PACING_GAIN,
            BbrState::Drain => 0.5,
            BbrState::ProbeBwDown => 0.9,
            BbrState::ProbeBwCruise | BbrState::ProbeBwRefill | BbrState::ProbeRtt => 1.0,
            BbrState::ProbeBwUp => 1.25,
        }
    }

    /// §5.6.1, the table.
    const fn cwnd_gain(&self) -> f64 {
        match self.state {
            BbrState::ProbeBwUp => 2.25,
            BbrState::ProbeRtt => PROBE_RTT_CWND_GAIN,
            _ => 2.0,
        }
    }

    const fn min_pipe_cwnd(&self) -> u64 {
        MIN_PIPE_CWND * self.smss
    }

    /// §5.6.2: InitPacingRate, from the round trip known so far.
    fn initial_pacing_rate(&self, rtt: &RttEstimator) -> f64 {
        let srtt = rtt.srtt().filter(|srtt| *srtt > Duration::ZERO);
        let nominal = per_second(self.initial_cwnd, srtt.unwrap_or(Duration::from_millis(1)));
        STARTUP_PACING_GAIN * nominal
    }

    /// §5.6.2: SetPacingRateWithGain.
    fn set_pacing_rate_with_gain(&mut self, gain: f64) {
        let rate = gain * self.bw * PACING_MARGIN;
        if self.full_bw_reached || rate > self.pacing_rate {
            self.pacing_rate = rate;
        }
    }

    /// BBR.bdp.
    fn bdp(&self) -> u64 {
        self.bdp_multiple(self.bw, 1.0)
    }

    /// §5.6.4.2: BDPMultiple.
    fn bdp_multiple(&self, bw: f64, gain: f64) -> u64 {
        if self.min_rtt == Duration::MAX {
            return self.initial_cwnd;
        }
        (gain * bw * self.min_rtt.as_secs_f64()) as u64
    }

    /// §5.6.4.2: QuantizationBudget, including the offload budget of §5.5.8.1.
    fn quantization_budget(&self, inflight_cap: u64) -> u64 {
        let send_quantum = quantum_at(to_rate(self.pacing_rate), self.smss);
        let cap = inflight_cap.max(3 * send_quantum).max(self.min_pipe_cwnd());
        cap + if self.state == BbrState::ProbeBwUp { 2 * self.smss } else { 0 }
    }

    /// §5.6.4.2: Inflight.
    fn inflight(&self, bw: f64, gain: f64) -> u64 {
        self.quantization_budget(self.bdp_multiple(bw, gain))
    }

    /// §5.6.4.6: SetCwnd.
    fn set_cwnd(&mut self, rs: &RateSample) {
        let wanted = self.bdp_multiple(self.bw, self.cwnd_gain()) + self.extra_acked.most();
        let max_inflight = self.quantization_budget(wanted);
        let grown = self.cwnd + rs.newly_acked;
        if self.full_bw_reached {
            self.cwnd = grown.min(max_inflight);
        } else if self.cwnd < max_inflight || rs.total_delivered < self.initial_cwnd {
            self.cwnd = grown;
        }
        self.cwnd = self.cwnd.max(self.min_pipe_cwnd());
        if self.state == BbrState::ProbeRtt {
            self.cwnd = self.cwnd.min(self.probe_rtt_cwnd());
        }
        self.bound_cwnd_for_model();
    }

    /// §5.6.4.5
    fn probe_rtt_cwnd(&self) -> u64 {
        self.bdp_multiple(self.bw, PROBE_RTT_CWND_GAIN).max(self.min_pipe_cwnd())
    }

    /// §5.6.4.7
    fn bound_cwnd_for_model(&mut self) {
        let long = match self.state {
            BbrState::ProbeBwDown | BbrState::ProbeBwRefill | BbrState::ProbeBwUp => {
                self.inflight_longterm
            }
            BbrState::ProbeRtt | BbrState::ProbeBwCruise => self.inflight_with_headroom(),
            BbrState::Startup | BbrState::Drain => None,
        };
        let caps = [long, self.inflight_shortterm];
        if let Some(cap) = caps.into_iter().flatten().min() {
            self.cwnd = self.cwnd.min(cap.max(self.min_pipe_cwnd()));
        }
    }

    /// §5.3.3.9: leaves headroom for other flows; `None` without an upper bound.
    fn inflight_with_headroom(&self) -> Option<u64> {
        let longterm = self.inflight_longterm?;
        let headroom = ((HEADROOM * longterm as f64) as u64).max(self.smss);
        Some(longterm.saturating_sub(headroom).max(self.min_pipe_cwnd()))
    }

    /// §5.6.4.4
    fn save_cwnd(&mut self) {
        let kept = !self.recovering && self.state != BbrState::ProbeRtt;
        self.prior_cwnd = if kept { self.cwnd } else { self.prior_cwnd.max(self.cwnd) };
    }

    /// §5.6.4.4
    fn restore_cwnd(&mut self) {
        self.cwnd = self.cwnd.max(self.prior_cwnd);
    }
}

impl CongestionControl for Bbr {
    fn window(&self) -> u64 {
        self.cwnd
    }

    /// It learns from samples only.
    fn on_ack(&mut self, _: Instant, _: &Ack, _: &RttEstimator) {}

    fn uses_samples(&self) -> bool {
        true
    }

    /// §5.2.3: UpdateOnACK.
    fn on_sample(&mut self, now: Instant, rs: &RateSample, rtt: &RttEstimator) -> bool {
        if self.pacing_rate == 0.0 {
            self.pacing_rate = self.initial_pacing_rate(rtt);
        }
        self.delivered = rs.total_delivered;
        if std::mem::replace(&mut self.recovering, rs.recovering) && !rs.recovering {
            // §5.6.4.4, upon exiting loss recovery
            self.restore_cwnd();
        }
        self.update_latest_delivery_signals(rs);
        self.update_congestion_signals(rs);
        self.update_ack_aggregation(now, rs);
        self.check_full_bw_reached(rs);
        self.check_startup_done(rs);
        self.check_drain_done(now, rs);
        self.update_probe_bw_cycle_phase(now, rs);
        self.update_min_rtt(now, rs);
        let says_nothing = self.check_probe_rtt(now, rs);
        self.advance_latest_delivery_signals(rs);
        self.bw = self.max_bw.most().min(self.bw_shortterm.unwrap_or(f64::INFINITY));
        self.set_pacing_rate_with_gain(self.pacing_gain());
        self.set_cwnd(rs);
        says_nothing
    }

    fn on_lost(&mut self, now: Instant, packet: &LostPacket) {
        self.handle_lost_packet(now, packet);
    }

    fn on_congestion(&mut self, now: Instant, event: &Congestion) {
        match *event {
            // §5.6.4.4: upon entering fast recovery, or when a probe repaired the loss
            Congestion::Loss { .. } => {
                self.save_cwnd();
                self.note_loss();
            }
            Congestion::Mark { flight } => self.on_mark(now, flight),
            // §5.6.4.4: everything in flight is lost, and one segment is to be sent.
            Congestion::Timeout { .. } => {
                self.save_cwnd();
                self.note_loss();
                (self.recovering, self.cwnd) = (true, self.smss);
            }
        }
    }

    /// §5.4.1: HandleRestartFromIdle; without slow start (§5.4.2).
    fn on_restart(&mut self, now: Instant) {
        self.idle_restart = true;
        self.extra_acked_interval_start = now;
        if self.is_in_probe_bw() {
            self.set_pacing_rate_with_gain(1.0);
        } else if self.state == BbrState::ProbeRtt {
            self.check_probe_rtt_done(now);
        }
    }

    fn on_quantum(&mut self, quantum: u64) {
        self.smss = quantum.max(1);
        self.cwnd = self.cwnd.max(self.smss);
    }

    fn lower(&mut self, window: u64) {
        self.cwnd = self.cwnd.min(window.max(self.smss));
    }

    fn pacing_rate(&self, rtt: &RttEstimator) -> Option<Rate> {
        let known = self.pacing_rate > 0.0;
        Some(to_rate(if known { self.pacing_rate } else { self.initial_pacing_rate(rtt) }))
    }

    fn model(&self) -> Option<Model> {
        Some(Model {
            bw: to_rate(self.bw),
            min_rtt: Some(self.min_rtt).filter(|rtt| *rtt < Duration::MAX),
            inflight_longterm: self.inflight_longterm,
            phase: self.state as u8,
        })
    }
}

/// Converts bytes per second to a rate.
fn to_rate(bytes_per_second: f64) -> Rate {
    Rate::from_bps((bytes_per_second * 8.0) as u64)
}
