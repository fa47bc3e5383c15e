//! BBR's state machine (draft §5.3): when to accelerate, when to slow down, when to cruise.

use super::super::RateSample;
use super::model::is_inflight_too_high;
use super::{AckPhase, Bbr, BbrState};
use crate::time::{Duration, Instant};

/// §5.3.1.3: BBRStartupFullLossCnt.
const STARTUP_FULL_LOSS_COUNT: u32 = 6;
/// §2.16.1: BBR.MinRTTFilterLen.
const MIN_RTT_FILTER_LEN: Duration = Duration::from_secs(10);
/// §2.16.2: BBR.ProbeRTTDuration.
const PROBE_RTT_DURATION: Duration = Duration::from_millis(200);
/// §2.16.2: BBR.ProbeRTTInterval.
const PROBE_RTT_INTERVAL: Duration = Duration::from_secs(5);
/// §5.3.3.8: the minimum wait for the next probe, and the random addition.
const PROBE_WAIT: (Duration, Duration) = (Duration::from_secs(2), Duration::from_secs(1));
/// §5.3.3.8: rounds in which Reno would regain a window; the maximum.
const RENO_ROUNDS: u64 = 63;

impl Bbr {
    pub(super) const fn is_in_probe_bw(&self) -> bool {
        use BbrState::{ProbeBwCruise, ProbeBwDown, ProbeBwRefill, ProbeBwUp};
        matches!(self.state, ProbeBwDown | ProbeBwCruise | ProbeBwRefill | ProbeBwUp)
    }

    /// §5.3.3.9
    pub(super) const fn is_probing_bw(&self) -> bool {
        use BbrState::{ProbeBwRefill, ProbeBwUp, Startup};
        matches!(self.state, Startup | ProbeBwRefill | ProbeBwUp)
    }

    /// §5.3.1.2
    const fn reset_full_bw(&mut self) {
        (self.full_bw, self.full_bw_count, self.full_bw_now) = (0.0, 0, false);
    }

    /// §5.3.1.2: the pipe is full after three round trips without 25 % growth.
    pub(super) fn check_full_bw_reached(&mut self, rs: &RateSample) {
        if self.full_bw_now || !self.round_start || rs.is_app_limited {
            return;
        }
        if rs.delivery_rate >= self.full_bw * 1.25 {
            self.reset_full_bw();
            self.full_bw = rs.delivery_rate;
            return;
        }
        self.full_bw_count += 1;
        self.full_bw_now = self.full_bw_count >= 3;
        self.full_bw_reached |= self.full_bw_now;
    }

    /// §5.3.1.1
    pub(super) fn check_startup_done(&mut self, rs: &RateSample) {
        if self.state != BbrState::Startup {
            return;
        }
        // §5.3.1.3: in recovery for a round trip with high loss, in several places
        if self.loss_round_start
            && rs.recovering
            && self.losses_in_round >= STARTUP_FULL_LOSS_COUNT
            && is_inflight_too_high(rs.lost, rs.tx_in_flight)
        {
            self.leave_startup_in_congestion();
        } else if self.full_bw_reached {
            self.enter_drain();
        }
    }

    /// §5.3.1.3
    pub(super) fn leave_startup_in_congestion(&mut self) {
        self.full_bw_reached = true;
        self.inflight_longterm = Some(self.bdp().max(self.inflight_latest));
        self.enter_drain();
    }

    /// §5.3.2
    const fn enter_drain(&mut self) {
        self.state = BbrState::Drain;
        self.drain_start_round = self.round_count;
    }

    /// §5.3.2
    pub(super) fn check_drain_done(&mut self, now: Instant, rs: &RateSample) {
        let drained = rs.inflight <= self.inflight(self.bw, 1.0);
        if self.state == BbrState::Drain
            && (drained || self.round_count > self.drain_start_round + 3)
        {
            self.start_probe_bw_down(now);
        }
    }

    /// §5.3.3.9
    pub(super) fn start_probe_bw_down(&mut self, now: Instant) {
        self.reset_congestion_signals();
        self.probe_up_acked_per_inc = None;
        self.pick_probe_wait();
        self.cycle_stamp = now;
        self.ack_phase = AckPhase::ProbeStopping;
        self.start_round();
        self.state = BbrState::ProbeBwDown;
    }

    /// §5.3.3.9
    fn start_probe_bw_refill(&mut self) {
        self.reset_short_term_model();
        (self.bw_probe_up_rounds, self.bw_probe_up_acked) = (0, 0);
        self.prev_probe_precautionary = false;
        self.ack_phase = AckPhase::Refilling;
        self.start_round();
        self.state = BbrState::ProbeBwRefill;
    }

    /// §5.3.3.9
    fn start_probe_bw_up(&mut self, rs: &RateSample) {
        self.ack_phase = AckPhase::ProbeStarting;
        self.start_round();
        self.reset_full_bw();
        self.full_bw = rs.delivery_rate;
        self.state = BbrState::ProbeBwUp;
        self.raise_inflight_longterm_slope();
    }

    /// §5.3.3.9
    pub(super) fn update_probe_bw_cycle_phase(&mut self, now: Instant, rs: &RateSample) {
        if !self.full_bw_reached || self.adapt_long_term_model(rs) {
            return;
        }
        let goes_down = self.state == BbrState::ProbeBwUp && self.is_time_to_go_down(rs);
        match self.state {
            BbrState::ProbeBwDown | BbrState::ProbeBwCruise if self.is_time_to_probe_bw(now) => {
                self.start_probe_bw_refill();
            }
            BbrState::ProbeBwDown if self.is_time_to_cruise(rs) => {
                self.state = BbrState::ProbeBwCruise;
            }
            BbrState::ProbeBwRefill if self.round_start => {
                self.is_bw_probe_sample = true;
                self.start_probe_bw_up(rs);
            }
            BbrState::ProbeBwUp if goes_down => {
                self.prev_probe_too_high = false;
                self.start_probe_bw_down(now);
            }
            _ => {}
        }
    }

    /// §5.3.3.8: T_probe = min(T_bbr, T_reno). The bandwidth-delay product is in segments there;
    /// Reno adds one each round trip.
    fn is_time_to_probe_bw(&self, now: Instant) -> bool {
        let reno_rounds = (self.target_inflight() / self.smss).min(RENO_ROUNDS);
        now > self.cycle_stamp + self.bw_probe_wait || self.rounds_since_probe_up >= reno_rounds
    }

    /// §5.3.3.8
    fn pick_probe_wait(&mut self) {
        self.rounds_since_probe_up = self.rng.below(2);
        self.bw_probe_wait = PROBE_WAIT.0 + self.rng.span(PROBE_WAIT.1);
    }

    /// §5.3.3.9
    fn is_time_to_cruise(&self, rs: &RateSample) -> bool {
        self.inflight_with_headroom().is_none_or(|headroom| rs.inflight <= headroom)
            && rs.inflight <= self.inflight(self.max_bw.most(), 1.0)
    }

    /// C.cwnd limits the sender, and inflight_longterm limits C.cwnd.
    fn is_held_by_longterm(&self, rs: &RateSample) -> bool {
        rs.is_cwnd_limited && self.inflight_longterm.is_some_and(|longterm| self.cwnd >= longterm)
    }

    /// §5.3.3.9. The bound, which also bounds the window, is reached when no further segment fits.
    /// An acknowledgement lowers the flight below it, so the flight before it is used (as in Linux).
    fn is_time_to_go_down(&mut self, rs: &RateSample) -> bool {
        let full = rs.prior_inflight + self.smss;
        let reached = self.inflight_longterm.is_some_and(|longterm| full > longterm);
        if self.prev_probe_too_high && reached {
            self.prev_probe_precautionary = true;
            return true;
        }
        if self.is_held_by_longterm(rs) {
            self.reset_full_bw();
            self.full_bw = rs.delivery_rate;
            return false;
        }
        self.full_bw_now
    }

    /// §5.3.3.9
    fn raise_inflight_longterm_slope(&mut self) {
        let growth_this_round = 1_u64 << self.bw_probe_up_rounds;
        self.bw_probe_up_rounds = (self.bw_probe_up_rounds + 1).min(30);
        self.probe_up_acked_per_inc = Some((self.cwnd / growth_this_round).max(self.smss));
    }

    /// §5.3.3.9
    fn probe_inflight_longterm_upward(&mut self, rs: &RateSample) {
        let (Some(longterm), Some(step)) = (self.inflight_longterm, self.probe_up_acked_per_inc)
        else {
            return;
        };
        if !self.is_held_by_longterm(rs) {
            return;
        }
        self.bw_probe_up_acked += rs.newly_acked;
        let delta = self.bw_probe_up_acked / step;
        self.bw_probe_up_acked -= delta * step;
        self.inflight_longterm = Some(longterm + delta * self.smss);
        if self.round_start {
            self.raise_inflight_longterm_slope();
        }
    }

    /// §5.3.3.9; true if it decided on a transition.
    fn adapt_long_term_model(&mut self, rs: &RateSample) -> bool {
        if self.ack_phase == AckPhase::ProbeStarting && self.round_start {
            self.ack_phase = AckPhase::ProbeFeedback;
        }
        if self.ack_phase == AckPhase::ProbeStopping && self.round_start {
            self.is_bw_probe_sample = false;
            self.ack_phase = AckPhase::Init;
            if self.is_in_probe_bw() && !rs.is_app_limited {
                self.max_bw.advance();
            }
            if self.is_in_probe_bw() && self.prev_probe_precautionary && !self.prev_probe_too_high {
                self.start_probe_bw_refill();
                return true;
            }
        }
        if is_inflight_too_high(rs.lost, rs.tx_in_flight) {
            return false;
        }
        if let Some(longterm) = &mut self.inflight_longterm {
            *longterm = (*longterm).max(rs.tx_in_flight);
            if self.state == BbrState::ProbeBwUp {
                self.probe_inflight_longterm_upward(rs);
            }
        }
        false
    }

    /// §5.3.4.3
    pub(super) fn update_min_rtt(&mut self, now: Instant, rs: &RateSample) {
        self.probe_rtt_expired = now > self.probe_rtt_min_stamp + PROBE_RTT_INTERVAL;
        if let Some(rtt) = rs.rtt
            && (rtt < self.probe_rtt_min_delay || self.probe_rtt_expired)
        {
            (self.probe_rtt_min_delay, self.probe_rtt_min_stamp) = (rtt, now);
        }
        let min_rtt_expired = now > self.min_rtt_stamp + MIN_RTT_FILTER_LEN;
        if self.probe_rtt_min_delay < self.min_rtt || min_rtt_expired {
            self.min_rtt = self.probe_rtt_min_delay;
            self.min_rtt_stamp = self.probe_rtt_min_stamp;
        }
    }

    /// §5.3.4.3; true if the flight says nothing about the path's rate.
    pub(super) fn check_probe_rtt(&mut self, now: Instant, rs: &RateSample) -> bool {
        if self.state != BbrState::ProbeRtt && self.probe_rtt_expired && !self.idle_restart {
            self.state = BbrState::ProbeRtt;
            self.save_cwnd();
            self.probe_rtt_done_stamp = None;
            self.ack_phase = AckPhase::ProbeStopping;
            self.start_round();
        }
        let in_probe_rtt = self.state == BbrState::ProbeRtt;
        if in_probe_rtt {
            self.handle_probe_rtt(now, rs);
        }
        if rs.delivered > 0 {
            self.idle_restart = false;
        }
        in_probe_rtt
    }

    /// §5.3.4.3
    fn handle_probe_rtt(&mut self, now: Instant, rs: &RateSample) {
        if self.probe_rtt_done_stamp.is_some() {
            self.probe_rtt_round_done |= self.round_start;
            if self.probe_rtt_round_done {
                self.check_probe_rtt_done(now);
            }
        } else if rs.inflight <= self.probe_rtt_cwnd() {
            self.probe_rtt_done_stamp = Some(now + PROBE_RTT_DURATION);
            self.probe_rtt_round_done = false;
            self.start_round();
        }
    }

    /// §5.3.4.3 and §5.3.4.4
    pub(super) fn check_probe_rtt_done(&mut self, now: Instant) {
        if self.probe_rtt_done_stamp.is_none_or(|done| now <= done) {
            return;
        }
        self.probe_rtt_min_stamp = now;
        self.restore_cwnd();
        self.reset_short_term_model();
        if self.full_bw_reached {
            self.start_probe_bw_down(now);
            self.state = BbrState::ProbeBwCruise;
        } else {
            self.state = BbrState::Startup;
        }
    }
}
