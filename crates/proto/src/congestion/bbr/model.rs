//! BBR's path model (draft §5.5): filters for bandwidth and aggregation, packet-timed round trips,
//! and the effect of losses and marks on the bounds.

use std::collections::VecDeque;

use super::super::{LostPacket, RateSample};
use super::{BETA, Bbr, BbrState, LOSS_THRESH};
use crate::time::Instant;

/// §2.12: BBR.ExtraAckedFilterLen, in round trips.
const EXTRA_ACKED_FILTER_LEN: u64 = 10;

/// BBR.max_bw_filter (§5.5.5): the maximum of this cycle of ProbeBW and of the previous one.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct MaxBw {
    before: f64,
    now: f64,
}

impl MaxBw {
    pub(super) const fn most(&self) -> f64 {
        self.before.max(self.now)
    }
    fn update(&mut self, bw: f64) {
        self.now = self.now.max(bw);
    }
    /// §5.5.6: AdvanceMaxBwFilter. A cycle without a sample, because all were application-limited,
    /// keeps the filter (§3.8).
    pub(super) fn advance(&mut self) {
        if self.now > 0.0 {
            *self = Self { before: self.now, now: 0.0 };
        }
    }
}

/// BBR.extra_acked_filter (§5.5.9): samples by round, each greater than all after it.
#[derive(Clone, Debug, Default)]
pub(super) struct MaxExtraAcked(VecDeque<(u64, u64)>);

impl MaxExtraAcked {
    pub(super) fn most(&self) -> u64 {
        self.0.front().map_or(0, |(_, extra)| *extra)
    }
    fn update(&mut self, round: u64, extra: u64, window: u64) {
        while self.0.back().is_some_and(|(_, less)| *less <= extra) {
            self.0.pop_back();
        }
        self.0.push_back((round, extra));
        while self.0.front().is_some_and(|(old, _)| old + window <= round) {
            self.0.pop_front();
        }
    }
}

impl Bbr {
    /// §5.5.1: StartRound.
    pub(super) const fn start_round(&mut self) {
        self.next_round_delivered = self.delivered;
    }

    /// §5.5.1: UpdateRound.
    const fn update_round(&mut self, rs: &RateSample) {
        self.round_start = rs.prior_delivered >= self.next_round_delivered;
        if self.round_start {
            self.start_round();
            self.round_count += 1;
            self.rounds_since_probe_up += 1;
        }
    }

    /// §5.5.10.3
    pub(super) fn update_latest_delivery_signals(&mut self, rs: &RateSample) {
        self.bw_latest = self.bw_latest.max(rs.delivery_rate);
        self.inflight_latest = self.inflight_latest.max(rs.delivered);
        self.loss_round_start = rs.prior_delivered >= self.loss_round_delivered;
        if self.loss_round_start {
            self.loss_round_delivered = rs.total_delivered;
        }
    }

    /// §5.5.10.3
    pub(super) const fn advance_latest_delivery_signals(&mut self, rs: &RateSample) {
        if self.loss_round_start {
            (self.bw_latest, self.inflight_latest) = (rs.delivery_rate, rs.delivered);
            self.losses_in_round = 0;
        }
    }

    /// §5.5.10.3
    pub(super) const fn reset_congestion_signals(&mut self) {
        self.is_loss_in_round = false;
        (self.bw_latest, self.inflight_latest) = (0.0, 0);
    }

    /// §5.5.10.3
    pub(super) const fn reset_short_term_model(&mut self) {
        (self.bw_shortterm, self.inflight_shortterm) = (None, None);
    }

    /// §5.5.10.3, with §5.5.5: UpdateMaxBw.
    pub(super) fn update_congestion_signals(&mut self, rs: &RateSample) {
        self.update_round(rs);
        let most = self.max_bw.most();
        if rs.delivery_rate > 0.0 && (rs.delivery_rate >= most || !rs.is_app_limited) {
            self.max_bw.update(rs.delivery_rate);
        }
        if !self.loss_round_start {
            return;
        }
        if self.is_loss_in_round && !self.is_probing_bw() {
            self.adapt_lower_bounds();
        }
        self.is_loss_in_round = false;
    }

    /// §5.5.10.3: InitLowerBounds and LossLowerBounds.
    fn adapt_lower_bounds(&mut self) {
        let bw = self.bw_shortterm.unwrap_or(self.max_bw.most());
        let inflight = self.inflight_shortterm.unwrap_or(self.cwnd);
        self.bw_shortterm = Some(self.bw_latest.max(BETA * bw));
        self.inflight_shortterm = Some(self.inflight_latest.max((BETA * inflight as f64) as u64));
    }

    /// §5.5.9: UpdateACKAggregation.
    pub(super) fn update_ack_aggregation(&mut self, now: Instant, rs: &RateSample) {
        let interval = now.saturating_since(self.extra_acked_interval_start);
        let mut expected = (self.bw * interval.as_secs_f64()) as u64;
        if self.extra_acked_delivered <= expected {
            (self.extra_acked_delivered, expected) = (0, 0);
            self.extra_acked_interval_start = now;
        }
        self.extra_acked_delivered += rs.newly_acked;
        let extra = (self.extra_acked_delivered - expected).min(self.cwnd);
        let window = if self.full_bw_reached { EXTRA_ACKED_FILTER_LEN } else { 1 };
        self.extra_acked.update(self.round_count, extra, window);
    }

    /// §5.5.10.2: NoteLoss.
    pub(super) fn note_loss(&mut self) {
        if !self.is_loss_in_round {
            self.loss_round_delivered = self.delivered;
            self.save_cwnd();
        }
        self.is_loss_in_round = true;
    }

    /// §5.5.10.2: HandleLostPacket.
    pub(super) fn handle_lost_packet(&mut self, now: Instant, packet: &LostPacket) {
        self.note_loss();
        self.losses_in_round += u32::from(packet.is_new_range);
        if self.is_bw_probe_sample && is_inflight_too_high(packet.lost, packet.tx_in_flight) {
            let inflight = inflight_at_loss(packet);
            self.handle_inflight_too_high(now, inflight, packet.is_app_limited);
        }
    }

    /// §3.7: a mark is congestion. The draft leaves the response open; here it equals that to
    /// losses above the threshold, once per window of data.
    pub(super) fn on_mark(&mut self, now: Instant, flight: u64) {
        self.note_loss();
        if self.state == BbrState::Startup {
            self.leave_startup_in_congestion();
        } else if self.is_bw_probe_sample {
            self.handle_inflight_too_high(now, flight, false);
        }
    }

    /// §5.5.10.2
    fn handle_inflight_too_high(&mut self, now: Instant, inflight: u64, is_app_limited: bool) {
        self.prev_probe_too_high = true;
        self.is_bw_probe_sample = false;
        if !is_app_limited {
            let least = (self.target_inflight() as f64 * BETA) as u64;
            self.inflight_longterm = Some(inflight.max(least));
        }
        if self.state == BbrState::ProbeBwUp {
            self.start_probe_bw_down(now);
        }
    }

    /// §5.3.3.8: TargetInflight.
    pub(super) fn target_inflight(&self) -> u64 {
        self.bdp().min(self.cwnd)
    }
}

/// §5.5.10.2: IsInflightTooHigh, with selective acknowledgements.
pub(super) fn is_inflight_too_high(lost: u64, tx_in_flight: u64) -> bool {
    lost as f64 > tx_in_flight as f64 * LOSS_THRESH
}

/// §5.5.10.2: InflightAtLoss, the volume at which losses went beyond the threshold.
fn inflight_at_loss(packet: &LostPacket) -> u64 {
    let inflight_prev = packet.tx_in_flight.saturating_sub(packet.size) as f64;
    let lost_prev = packet.lost.saturating_sub(packet.size) as f64;
    let lost_prefix = (LOSS_THRESH * inflight_prev - lost_prev) / (1.0 - LOSS_THRESH);
    (inflight_prev + lost_prefix).max(0.0) as u64
}
