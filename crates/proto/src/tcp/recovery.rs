//! Reactions to acknowledgements, their absence and router messages: NewReno's fast retransmit and
//! fast recovery (RFC 6582 §3.2), limited transmit (RFC 3042), the retransmission timer (RFC 6298
//! §5), zero-window probes (RFC 9293 §3.8.6.1) and Packet Too Big (RFC 1191).
//!
//! Choices RFC 6582 leaves open: the "impatient" variant (§4: only the first partial
//! acknowledgement restarts the timer); option 1 of §3.2 step 3 on the full acknowledgement; no
//! heuristics after a timeout (§4.1), so duplicate acknowledgements below `recover` are ignored.

use std::collections::VecDeque;

use super::f_rto::{FRtoState, SpuriousRtt};
use super::scoreboard::AckOutcome;
use super::selective::is_before;
use super::{LossRecovery, Segment, State, Tcp, WindowRule, wire};
use crate::congestion::{Ack, Congestion, CongestionControl};
use crate::endpoint::Event;
use crate::packet::Quoted;
use crate::seq::Seq;
use crate::time::{Duration, Instant};

/// Duplicate acknowledgements that indicate a loss (RFC 5681 §3.2).
const DUPLICATES: u32 = 3;

/// State of loss recovery.
#[derive(Debug, Default)]
pub(super) struct Recovery {
    /// Duplicate acknowledgements in a row.
    pub(super) duplicates: u32,
    /// In fast recovery.
    fast: bool,
    /// A partial acknowledgement was seen in this recovery.
    partial: bool,
    /// RFC 6582 §3.2: after the highest number sent when the last loss was detected.
    pub(super) recover: Seq,
    /// Bytes by which cwnd is inflated: what has left the network according to duplicates.
    inflation: i64,
    /// Bytes sent beyond cwnd by limited transmit.
    pub(super) limited: u64,
    /// The first unacknowledged segment is to be retransmitted.
    pub(super) resend: bool,
    /// The persist timer expired: a probe is to be sent.
    pub(super) probe: bool,
    /// The end of the segment being timed, and when it left (RFC 6298 §3, without timestamps).
    pub(super) timed: Option<(Seq, Instant)>,
    /// In the handshake and without selective acknowledgements: the ends of segments sent again, in order,
    /// and when they left.
    resent: VecDeque<(Seq, Instant)>,
    /// Timeouts in a row without an answer (RFC 9293 §3.8.3, R2).
    pub(super) timeouts: u32,
    /// After a timeout, until it proves genuine or spurious.
    pub(super) doubt: Option<Box<FRtoState>>,
    /// After a spurious timeout.
    pub(super) lesson: Option<Box<SpuriousRtt>>,
}

impl Recovery {
    /// RFC 6582 §3.2 step 1: before any loss, `recover` is the initial sequence number.
    pub(super) fn from(iss: Seq) -> Self {
        Self { recover: iss, ..Self::default() }
    }

    /// cwnd with its inflation, never below one segment.
    #[inline]
    pub(super) fn inflated(&self, window: u64, mss: u64) -> u64 {
        if self.fast { window.saturating_add_signed(self.inflation).max(mss) } else { window }
    }

    /// RFC 3042 and RFC 5681 §3.2 step 1: bytes that the first two duplicates allow beyond cwnd.
    #[inline]
    pub(super) fn limited_transmit(&self, una: Seq, mss: u64) -> u64 {
        let may = !self.fast && self.duplicates < DUPLICATES && una > self.recover;
        if may { u64::from(self.duplicates) * mss } else { 0 }
    }

    /// New data leaves, up to `after`.
    #[inline]
    pub(super) fn on_new_data(&mut self, una: Seq, after: Seq, window: u64, now: Instant) {
        if self.timed.is_none() {
            self.timed = Some((after, now));
        }
        // RFC 5682 §2.1 step 2b: F-RTO's new data takes the place of what cwnd allows.
        if self.duplicates > 0 && !self.fast && self.doubt.is_none() {
            self.limited = after.since(una).saturating_sub(window);
        }
    }

    /// Data leaves again, up to `after`. RFC 6298 §3 (Karn): it is not timed, nor is data that may have
    /// arrived and waits behind it.
    #[inline(never)]
    pub(super) fn on_old_data(&mut self, after: Seq, now: Instant) {
        self.timed = None;
        // What covers a later end covers this one, which left last.
        while self.resent.back().is_some_and(|(end, _)| *end >= after) {
            self.resent.pop_back();
        }
        self.resent.push_back((after, now));
    }

    /// When the last of the segments sent again left that `ack` covers.
    #[inline]
    pub(super) fn take_resent(&mut self, ack: Seq) -> Option<Instant> {
        let mut last = None;
        while let Some((_, at)) = self.resent.front().filter(|(after, _)| *after <= ack) {
            last = Some(*at);
            self.resent.pop_front();
        }
        last
    }

    /// In fast recovery.
    #[inline]
    pub(super) const fn is_fast(&self) -> bool {
        self.fast
    }
    /// In fast recovery, and `ack` ends it.
    pub(super) fn is_over(&self, ack: Seq) -> bool {
        self.fast && ack >= self.recover
    }
    /// Fast recovery with selective acknowledgements begins, with everything before `recover` sent.
    pub(super) fn enter(&mut self, recover: Seq) {
        (self.fast, self.recover) = (true, recover);
        self.limited = 0;
    }

    /// Returns to normal sending.
    pub(super) fn leave(&mut self) {
        (self.fast, self.partial, self.resend) = (false, false, false);
        (self.inflation, self.limited, self.duplicates) = (0, 0, 0);
    }
}

impl Tcp {
    /// SND.UNA < SEG.ACK ≤ SND.NXT.
    #[inline]
    pub(super) fn on_new_ack(&mut self, now: Instant, ack: Seq, tsecr: Option<u32>) {
        let (flight, nxt) = (self.tx.flight(), self.tx.nxt);
        let acked = ack.since(self.tx.una);
        let resent = self.recovery.take_resent(ack);
        self.measure(now, ack, tsecr, (flight, resent));
        self.acknowledge_up_to(ack);
        self.recovery.timeouts = 0;
        let restart = if self.recovery.fast {
            self.on_ack_in_recovery(now, ack, acked)
        } else {
            let window_limited = self.is_window_limited(flight);
            (self.recovery.duplicates, self.recovery.limited) = (0, 0);
            if !self.echoes.heard {
                self.cc.on_ack(now, &Ack { acked, flight, window_limited }, &self.rtt);
            }
            if self.recovery.doubt.is_some() {
                self.doubt_on_new_ack(acked, nxt);
            }
            true
        };
        if self.tx.una == self.tx.max {
            // RFC 6298 §5.2
            self.timers.rto = None;
        } else if restart && self.tx.flight() > 0 {
            // RFC 6298 §5.3
            self.timers.rto = Some(now + self.rtt.rto());
        } else if restart {
            // All that was sent since the timeout has arrived: the next segment starts the timer.
            self.timers.rto = None;
        }
    }

    /// RFC 6582 §3.2 step 3; true if the retransmission timer is to be restarted.
    fn on_ack_in_recovery(&mut self, now: Instant, ack: Seq, acked: u64) -> bool {
        if self.config.loss_recovery() == LossRecovery::Reno {
            // RFC 5681 §3.2 step 6: deflated to ssthresh, even after other losses.
            self.recovery.leave();
            self.cc.on_recovered(now, self.cc.window());
            return true;
        }
        if ack >= self.recovery.recover {
            self.recovery.leave();
            self.cc.on_recovered(now, self.tx.flight());
            return true;
        }
        let mss = self.tx.mss;
        let back = if acked >= mss { mss } else { 0 };
        self.recovery.inflation += back as i64 - acked as i64;
        self.recovery.resend = true;
        !std::mem::replace(&mut self.recovery.partial, true)
    }

    /// RFC 6298 §3 and §4: by the echoed timestamp on every acknowledgement of new data, or by one
    /// timed segment per round trip that was sent only once (Karn). An echo from before the last
    /// retransmission of that data, which `resent` tells, is not measured: the original may have been
    /// late or its acknowledgement lost. True if there was a measurement.
    #[inline]
    pub(super) fn measure(
        &mut self,
        now: Instant,
        ack: Seq,
        tsecr: Option<u32>,
        (flight, resent): (u64, Option<Instant>),
    ) -> bool {
        if self.negotiated.timestamps {
            self.recovery.timed = None;
            let stale = |echo| resent.is_some_and(|at| is_before(echo, self.clock(at)));
            let Some(tsecr) = tsecr.filter(|echo| !stale(*echo)) else { return false };
            let ticks = self.clock(now).wrapping_sub(tsecr);
            // Above 2³¹ the peer echoes a timestamp that was never sent.
            if ticks > i32::MAX as u32 {
                return false;
            }
            // RFC 7323 appendix G
            let samples = flight.div_ceil(2 * self.tx.mss);
            self.rtt.sample(Duration::from_millis(u64::from(ticks)), samples);
        } else if let Some((_, at)) = self.recovery.timed.take_if(|(end, _)| *end <= ack) {
            self.rtt.sample(now.saturating_since(at), 1);
        } else {
            return false;
        }
        if self.recovery.lesson.is_some() {
            self.learn(ack);
        }
        true
    }

    /// The same with selective acknowledgements, where the sender knows when each segment left: its own
    /// time comes first, even with timestamps. The echoed timestamp counts where there is none and the left
    /// edge `advanced` (RFC 7323 §4.1, RTTM Rule). True if there was a measurement.
    #[inline]
    pub(super) fn measure_selective(
        &mut self,
        now: Instant,
        news: &AckOutcome,
        segment: &Segment,
        (advanced, flight): (bool, u64),
    ) -> bool {
        let Some(sent) = news.timed else {
            let echo = segment.timestamps.map(|(_, echo)| echo);
            return advanced
                && self.negotiated.timestamps
                && self.measure(now, self.tx.una, echo, (flight, news.resent));
        };
        // RFC 7323 appendix G
        self.rtt.sample(now.saturating_since(sent), flight.div_ceil(2 * self.tx.mss));
        if self.recovery.lesson.is_some() {
            self.learn(self.tx.una);
        }
        true
    }

    /// A duplicate acknowledgement as RFC 5681 §2 defines it.
    pub(super) fn on_duplicate_ack(&mut self, now: Instant) {
        self.recovery.duplicates = self.recovery.duplicates.saturating_add(1);
        if self.recovery.doubt.is_some() {
            self.doubt_on_duplicate(now);
        } else if self.recovery.fast {
            // RFC 5681 §3.2 step 4
            self.recovery.inflation += self.tx.mss as i64;
        } else if self.recovery.duplicates == DUPLICATES && self.may_retransmit() {
            match self.config.loss_recovery() {
                LossRecovery::Tahoe => self.start_over(now),
                _ => self.fast_retransmit(now),
            }
        }
    }

    /// RFC 6582 §3.2 step 2: only if everything in flight at the last loss has arrived; with Reno,
    /// at the last timeout.
    fn may_retransmit(&self) -> bool {
        self.tx.una > self.recovery.recover
    }

    /// Tahoe's reaction to the third duplicate: like a timeout, but at once and without back-off.
    fn start_over(&mut self, now: Instant) {
        let flight = self.tx.max.since(self.tx.una).saturating_sub(self.recovery.limited);
        let timeout = Congestion::Timeout { flight, again: false, recovering: false };
        self.cc.on_congestion(now, &timeout);
        self.note_reduction();
        self.recovery.recover = self.tx.max;
        self.recovery.leave();
        self.go_back();
    }

    /// RFC 5681 §3.2 steps 2 and 3
    fn fast_retransmit(&mut self, now: Instant) {
        let flight = self.tx.max.since(self.tx.una).saturating_sub(self.recovery.limited);
        self.cc.on_congestion(now, &Congestion::Loss { flight });
        self.note_reduction();
        // RFC 5681 has no `recover`: with Reno a second loss in the window is a second reduction.
        let reno = self.config.loss_recovery() == LossRecovery::Reno;
        let recovery = &mut self.recovery;
        if !reno {
            recovery.recover = self.tx.max;
        }
        (recovery.fast, recovery.partial, recovery.resend) = (true, false, true);
        recovery.inflation = (u64::from(DUPLICATES) * self.tx.mss) as i64;
        recovery.limited = 0;
        if self.config.window_rule == WindowRule::Ns2 {
            // ns-2 (`reset_rtx_timer`): a retransmission starts the timer; by RFC 6298 §5 it continues.
            self.timers.rto = None;
        }
    }

    /// The retransmission timer expired (RFC 6298 §5.4 to §5.6).
    pub(super) fn on_rto(&mut self, now: Instant) {
        if self.give_up() {
            return;
        }
        let open = !matches!(self.state, State::SynSent | State::SynReceived);
        if open {
            self.doubt();
        }
        self.rtt.back_off();
        self.recovery.timed = None;
        if open {
            let again = self.recovery.timeouts > 1;
            let recovering = self.recovery.fast;
            // In recovery the window was reduced for all of this; a smaller flight would reduce it again.
            let flight = if recovering { self.tx.flight() } else { self.pipe() };
            self.cc.on_congestion(now, &Congestion::Timeout { flight, again, recovering });
            self.note_reduction();
            // RFC 6582 §3.2 step 4
            self.recovery.recover = self.tx.max;
            self.recovery.leave();
        }
        if self.selective.is_some() && open {
            self.lose_on_timeout(now);
            self.timers.rto = None;
        } else {
            self.go_back();
        }
        if let Some(mut selective) = self.selective.take() {
            self.report_losses(now, &mut selective);
            self.selective = Some(selective);
        }
    }

    /// Counts an unanswered timeout; RFC 9293 §3.8.3: beyond R2 the connection is closed. A SYN-ACK may have
    /// gone to a spoofed address, so it is repeated less often, and there is no connection to close.
    fn give_up(&mut self) -> bool {
        self.recovery.timeouts += 1;
        let unproven = self.passive && self.state == State::SynReceived;
        let mut most = self.config.max_retransmissions;
        if unproven {
            most = most.min(self.config.max_synack_retransmissions);
        }
        let over = self.recovery.timeouts > most;
        match over {
            true if unproven => self.listen_again(),
            true => self.finish(Event::TimedOut),
            false => {}
        }
        over
    }

    /// Retransmits everything in flight; the timer starts with the first segment (RFC 6298 §5.1).
    /// With selective acknowledgements: everything not known to have arrived.
    fn go_back(&mut self) {
        match &mut self.selective {
            None => {
                self.tx.nxt = self.tx.una;
                self.recovery.resent.clear();
            }
            Some(selective) => selective.board.lose(|_| true),
        }
        self.timers.rto = None;
    }

    /// The persist timer expired: RFC 9293 §3.8.6.1, with exponential back-off. The connection
    /// stays open as long as probes are answered, however long the window is closed.
    pub(super) fn on_persist(&mut self, _now: Instant) {
        if self.give_up() {
            return;
        }
        self.recovery.probe = true;
    }

    /// Starts the timer for the next probe and doubles the interval after it.
    pub(super) fn arm_persist(&mut self, now: Instant) {
        let wait = self.timers.persist_wait;
        self.timers.persist = Some(now + wait);
        self.timers.persist_wait = (wait * 2).min(self.rtt.max_rto());
    }

    /// RFC 5927 §4.1, TCP sequence number checking: SND.UNA =< SEG.SEQ < SND.NXT.
    pub(super) fn is_in_flight(&self, quoted: &Quoted) -> bool {
        let Some(seq) = quoted.word(wire::PROTOCOL) else { return false };
        (self.tx.una..self.tx.max).contains(&self.tx.una.near(seq))
    }

    /// RFC 1191 §3, §6.3 and RFC 8201 §4: segments shrink to the path MTU, and data in flight is
    /// retransmitted without being treated as congestion.
    pub(super) fn on_too_big(&mut self, mtu: u32) {
        let headers = self.version.header_bytes() + wire::HEADER as u32;
        self.limit_mss((mtu.max(self.version.least_mtu()) - headers).into());
    }

    fn limit_mss(&mut self, bytes: u64) {
        let options = if self.negotiated.timestamps { 12 } else { 0 };
        let mss = bytes.saturating_sub(options).max(1);
        self.tx.path_mss = self.tx.path_mss.min(bytes);
        if mss >= self.tx.mss {
            return;
        }
        self.tx.mss = mss;
        self.cc.on_quantum(mss);
        if matches!(self.state, State::SynSent | State::SynReceived) || self.tx.una == self.tx.max {
            return;
        }
        self.recovery.leave();
        self.recovery.recover = self.tx.max;
        (self.recovery.timed, self.recovery.doubt) = (None, None);
        self.go_back();
        if let Some(selective) = &mut self.selective {
            // Segments that shrink were not lost to congestion.
            selective.board.take_fallen();
        }
    }
}
