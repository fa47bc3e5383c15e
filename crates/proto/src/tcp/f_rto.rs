//! Detection of spurious timeouts. F-RTO (RFC 5682) sends new data instead of retransmitting when the
//! first acknowledgement after the timeout arrives; if the next one is for data sent only once, that
//! data was in flight all the time. The response is Eifel's (RFC 4015 §3.1): the reduction is undone
//! without a burst, sending continues, and the timer adapts.
//!
//! Without selective acknowledgements this is §2.1, with them §3.1; their steps share numbers.

use super::records::Record;
use super::scoreboard::AckOutcome;
use super::selective::Selective;
use super::{LossRecovery, Segment, State, Tcp};
use crate::congestion::{Ack, CongestionControl, Machine};
use crate::rtt::RttEstimator;
use crate::seq::Seq;
use crate::time::Instant;

/// Segments of new data sent in step 2.
const FORWARD: u64 = 2;

/// A timeout that may be spurious.
#[derive(Debug)]
pub(super) struct FRtoState {
    step: Step,
    /// The controller before the timeout.
    controller: Machine,
    /// RFC 4015 §3.1 step 0: FlightSize then.
    flight: u64,
    /// SRTT and RTTVAR then.
    rtt: RttEstimator,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// Step 2: the first unacknowledged segment was sent again.
    Two,
    /// Step 3: new data was or may be sent, this many bytes; data that ends at or before `point`
    /// was sent before the timeout.
    Three { point: Seq, bytes: u64 },
}

/// RFC 4015 §3.1 step 11: the timer adapts to the first round trip of data after `from`, which was
/// sent after the timeout.
#[derive(Debug)]
pub(super) struct SpuriousRtt {
    from: Seq,
    before: RttEstimator,
}

impl FRtoState {
    /// Bytes that may leave regardless of cwnd (§2.1 step 2b; instead of the bytes that cwnd would
    /// allow, not in addition); none outside step 3.
    #[inline]
    pub(super) const fn bytes(&self) -> Option<u64> {
        match self.step {
            Step::Two => None,
            Step::Three { bytes, .. } => Some(bytes),
        }
    }

    /// New data leaves.
    pub(super) fn on_new_data(&mut self, len: u64) {
        if let Step::Three { bytes, .. } = &mut self.step {
            *bytes = bytes.saturating_sub(len);
        }
    }
}

/// Arrivals reported by an acknowledgement with SACK.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Arrivals {
    /// Data sent once, before the timeout, arrived.
    original: bool,
    /// Data sent after the timeout arrived.
    beyond: bool,
}

impl Arrivals {
    /// A segment has newly arrived.
    #[inline]
    pub(super) fn add(&mut self, record: &Record, point: Option<Seq>) {
        let Some(point) = point else { return };
        self.original |= record.end <= point && !record.ambiguous;
        self.beyond |= record.end > point;
    }
}

impl Tcp {
    /// True if the configuration enables it, or by default if the recovery is newer than RFC 5682.
    fn has_f_rto(&self) -> bool {
        let modern = matches!(self.config.loss_recovery(), LossRecovery::Sack | LossRecovery::Rack);
        self.config.f_rto.unwrap_or(modern)
    }

    /// Step 1: the timer expired; the window is not reduced yet. Skipped while an earlier loss is
    /// being repaired, unless by the same timeout.
    pub(super) fn doubt(&mut self) {
        let again = self.recovery.doubt.as_ref().is_some_and(|doubt| doubt.step == Step::Two);
        let calm = !self.recovery.is_fast() && self.tx.una >= self.recovery.recover;
        if again || !self.has_f_rto() {
            return;
        }
        self.recovery.doubt = calm.then(|| {
            Box::new(FRtoState {
                step: Step::Two,
                controller: self.cc.clone(),
                flight: self.pipe(),
                rtt: self.rtt.clone(),
            })
        });
    }

    /// Steps 2 and 3 without selective acknowledgements: `acked` bytes have advanced SND.UNA.
    /// `resent`: the end of what was sent since the timeout.
    #[cold]
    pub(super) fn doubt_on_new_ack(&mut self, acked: u64, resent: Seq) {
        match self.recovery.doubt.as_ref().map(|doubt| doubt.step) {
            // Step 2a: less than what was retransmitted, or everything.
            Some(Step::Two) if self.tx.una < resent || self.tx.una >= self.recovery.recover => {
                self.recovery.doubt = None;
            }
            Some(Step::Two) => {
                self.go_forward();
            }
            // Step 3b
            Some(Step::Three { .. }) => self.take_back(acked, self.tx.flight()),
            None => {}
        }
    }

    /// Steps 2a and 3a without selective acknowledgements: a duplicate arrived.
    #[cold]
    pub(super) fn doubt_on_duplicate(&mut self, now: Instant) {
        if self.believe_timeout(now) {
            self.tx.nxt = self.tx.una;
            self.timers.rto = None;
        }
    }

    /// In step 3, the end of what was sent before the timeout.
    #[inline]
    pub(super) fn doubted_up_to(&self) -> Option<Seq> {
        self.recovery.doubt.as_ref().and_then(|doubt| match doubt.step {
            Step::Two => None,
            Step::Three { point, .. } => Some(point),
        })
    }

    /// §3.1 steps 2 and 3: an acknowledgement that `advanced` SND.UNA or not.
    #[cold]
    pub(super) fn doubt_on_selective(
        &mut self,
        now: Instant,
        selective: &mut Selective,
        segment: &Segment,
        (advanced, news, arrivals): (bool, &AckOutcome, Arrivals),
    ) {
        let duplicate = !advanced && (news.sacked > 0 || segment.payload.is_empty());
        match self.recovery.doubt.as_ref().map(|doubt| doubt.step) {
            // Step 2: duplicates are ignored.
            Some(Step::Two) if advanced => {
                if self.tx.una >= self.recovery.recover {
                    self.recovery.doubt = None;
                } else {
                    self.go_forward();
                }
            }
            Some(Step::Three { .. }) if advanced || duplicate => {
                if arrivals.original && !arrivals.beyond {
                    selective.board.find_all();
                    self.take_back(news.delivered, selective.board.pipe());
                } else if arrivals.beyond || duplicate {
                    self.believe_timeout(now);
                }
            }
            _ => {}
        }
    }

    /// Step 2b: two new segments, if there is new data and Nagle and the peer's window permit.
    /// Otherwise the timeout is taken as genuine.
    fn go_forward(&mut self) -> bool {
        let tx = &self.tx;
        let unsent = tx.end().since(tx.max);
        let full = unsent.min(tx.mss);
        let may = full > 0
            && (full == tx.mss || !self.config.nagle || tx.fin)
            && (tx.una + tx.window).since(tx.max) >= full
            && self.state != State::Closed;
        match &mut self.recovery.doubt {
            Some(doubt) if may => {
                doubt.step = Step::Three { point: tx.max, bytes: FORWARD * tx.mss };
                self.tx.nxt = tx.max;
            }
            doubt => *doubt = None,
        }
        may
    }

    /// The peer's window is updated; without room for the new data the timeout is taken as genuine (step 2b).
    #[cold]
    pub(super) fn doubt_on_window(&mut self) {
        let Some(Step::Three { bytes, .. }) = self.recovery.doubt.as_ref().map(|doubt| doubt.step)
        else {
            return;
        };
        let untouched = bytes == FORWARD * self.tx.mss;
        if untouched && !self.go_forward() && self.selective.is_none() {
            self.tx.nxt = self.tx.una;
            self.timers.rto = None;
        }
    }

    /// Steps 2a and 3a: the loss was real. True if new data was sent meanwhile; the window then
    /// grows as for retransmitted data: three segments after two round trips.
    fn believe_timeout(&mut self, now: Instant) -> bool {
        let third = self.doubted_up_to().is_some();
        self.recovery.doubt = None;
        if third {
            let mss = self.tx.mss;
            let ack = Ack { acked: mss, flight: mss, window_limited: true };
            self.cc.on_ack(now, &ack, &self.rtt);
        }
        third
    }

    /// Step 3b: the timeout was spurious, with `in_flight` bytes in flight. RFC 4015 §3.1.
    fn take_back(&mut self, acked: u64, in_flight: u64) {
        let Some(doubt) = self.recovery.doubt.take() else { return };
        let FRtoState { controller, flight, rtt, step } = *doubt;
        let Step::Three { point, .. } = step else { return };
        // RFC 5682 §3.1, last paragraph, and RFC 4015 §4: three duplicates signal a loss again, also of
        // the first segment.
        self.recovery.recover = self.tx.una.back(1);
        self.recovery.lesson = Some(Box::new(SpuriousRtt { from: point, before: rtt }));
        // RFC 4015 §3.1 step 9: not if a mark signals congestion anyway.
        if !self.echoes.heard {
            self.cc = controller;
            // Step 9: ssthresh <- max(FlightSize, ssthresh) as before; cwnd <- bytes in flight plus
            // bytes arrived, of these at most an initial window; but not above the old cwnd.
            self.cc.raise_threshold(flight);
            let burst = acked.min(Self::first_window(&self.config, self.tx.mss));
            self.cc.lower(in_flight + burst);
        }
    }

    /// RFC 4015 §3.1 step 11: the first round trip of data sent after a spurious timeout gives the present RTT.
    #[cold]
    pub(super) fn learn(&mut self, ack: Seq) {
        if self.recovery.lesson.as_ref().is_some_and(|lesson| ack > lesson.from)
            && let Some(lesson) = self.recovery.lesson.take()
        {
            self.rtt.after_needless_timeout(&lesson.before);
        }
    }
}
