//! RACK-TLP (RFC 8985): a segment is lost when one sent sufficiently later has arrived; a probe at the
//! end of a flight makes the acknowledgement that tells so.
//!
//! A retransmission's acknowledgement is told from the original's by the smallest round trip only
//! (§6.2 step 2; timestamps of a millisecond's tick would say no more).

use super::records::Record;
use super::scoreboard::DUPLICATES;
use super::selective::Selective;
use super::timers::Timers;
use super::{State, Tcp};
use crate::rtt::RttEstimator;
use crate::seq::Seq;
use crate::time::{Duration, Instant};

/// §6.2 step 4: recoveries for which a widened reordering window stays.
const PERSIST: u32 = 16;
/// §7.2: WCDelAckT, what a peer may wait before it acknowledges a lone segment.
const WORST_ACK_DELAY: Duration = Duration::from_millis(200);

/// RACK's variables (§5.3) and the state of the tail loss probe (§7.1).
#[derive(Debug)]
pub(super) struct Rack {
    /// `RACK.xmit_ts` and `RACK.end_seq`: of the segment sent last among those that arrived.
    newest: (Instant, Seq),
    /// `RACK.rtt`: the round trip of that segment.
    rtt: Duration,
    /// `RACK.fack`: the highest number known to have arrived.
    highest: Seq,
    /// `RACK.reordering_seen`.
    reordering: bool,
    /// `RACK.reo_wnd_mult` and `RACK.reo_wnd_persist`.
    multiple: u32,
    persist: u32,
    /// `RACK.dsack_round`.
    round: Option<Seq>,
    /// `TLP.end_seq` and `TLP.is_retrans`.
    probing: Option<(Seq, bool)>,
    /// A probe is to be sent.
    pub(super) probe: bool,
    /// End of the wait for what may be reordered (§6.3).
    pub(super) reorder_at: Option<Instant>,
    /// The probe's timer (§7.2).
    pub(super) probe_at: Option<Instant>,
}

impl Default for Rack {
    fn default() -> Self {
        Self {
            newest: (Instant::ZERO, Seq::default()),
            rtt: Duration::ZERO,
            highest: Seq::default(),
            reordering: false,
            multiple: 1,
            persist: PERSIST,
            round: None,
            probing: None,
            probe: false,
            reorder_at: None,
            probe_at: None,
        }
    }
}

impl Rack {
    /// §6.2 steps 2 and 3: a segment has arrived.
    pub(super) fn on_arrived(&mut self, now: Instant, record: &Record, rtt: &RttEstimator) {
        let took = now.saturating_since(record.sent);
        if record.end > self.highest {
            self.highest = record.end;
        } else if record.end < self.highest && !record.ambiguous {
            self.reordering = true;
        }
        if record.ambiguous && rtt.least().is_some_and(|least| took < least) {
            return;
        }
        self.rtt = took;
        self.newest = self.newest.max((record.sent, record.end));
    }

    /// §6.2 step 4, the reaction to duplicates that show a retransmission was needless.
    pub(super) fn on_duplicate(&mut self, una: Seq, nxt: Seq, duplicate: bool) {
        if self.round.is_some_and(|round| una >= round) {
            self.round = None;
        }
        if duplicate && self.round.is_none() {
            self.round = Some(nxt);
            self.multiple += 1;
            self.persist = PERSIST;
        }
    }

    /// §6.2 step 4: a recovery is over.
    pub(super) fn on_recovered(&mut self) {
        self.persist = self.persist.saturating_sub(1);
        if self.persist == 0 {
            self.multiple = 1;
        }
    }

    /// §6.2 step 4: `RACK.reo_wnd`.
    fn reordering_window(&self, rtt: &RttEstimator, sacked: u32, recovering: bool) -> Duration {
        if !self.reordering && (recovering || sacked >= DUPLICATES) {
            return Duration::ZERO;
        }
        let least = rtt.least().unwrap_or(Duration::ZERO);
        (least * u64::from(self.multiple) / 4).min(rtt.srtt().unwrap_or(Duration::ZERO))
    }

    /// §6.2 step 5, of one segment: `None` if it was sent after what arrived; else how long to wait
    /// before it is lost.
    pub(super) fn wait_for(
        &self,
        now: Instant,
        record: &Record,
        window: Duration,
    ) -> Option<Duration> {
        let after = (record.sent, record.end) < self.newest;
        let lost_at = record.sent + self.rtt + window;
        after.then(|| lost_at.saturating_since(now))
    }

    /// §7.4.2: what an acknowledgement says of the probe. True if the probe repaired a loss.
    fn on_ack(&mut self, ack: Seq, duplicate: Option<(Seq, Seq)>, plain: bool) -> bool {
        let Some((end, resent)) = self.probing.filter(|(end, _)| ack >= *end) else { return false };
        let both = duplicate.is_some_and(|(_, until)| until == end) || (ack == end && plain);
        if !resent || both || ack > end {
            self.probing = None;
        }
        resent && !both && ack > end
    }
}

impl Tcp {
    /// RFC 8985 §6.2 steps 4 and 5, after an acknowledgement or when the reordering timer runs out.
    /// Gives the bytes newly lost.
    pub(super) fn detect(&mut self, now: Instant, selective: &mut Selective) -> u64 {
        let recovering = self.recovery.is_fast() || self.tx.una < self.recovery.recover;
        let Selective { board, rack, .. } = selective;
        let Some(rack) = rack else { return 0 };
        let window = rack.reordering_window(&self.rtt, board.sacked_segments(), recovering);
        let (lost, wait) = board.mark_older(|record| rack.wait_for(now, record, window));
        rack.reorder_at = wait.map(|wait| now + wait);
        lost
    }

    /// The deadlines of RACK-TLP.
    pub(super) fn on_rack_timers(&mut self, now: Instant) {
        let Some(Selective { rack: Some(rack), .. }) = self.selective.as_deref_mut() else {
            return;
        };
        let reorder = Timers::due(&mut rack.reorder_at, now);
        let probe = Timers::due(&mut rack.probe_at, now);
        if reorder {
            self.on_reorder_timer(now);
        }
        if probe {
            self.on_probe_timer(now);
        }
    }

    /// RFC 8985 §6.3: what might have been reordered has not come.
    fn on_reorder_timer(&mut self, now: Instant) {
        let Some(mut selective) = self.selective.take() else { return };
        let missing = selective.board.missing();
        self.detect(now, &mut selective);
        self.recover_what_is_lost(now, &mut selective, missing);
        self.selective = Some(selective);
    }

    /// RFC 8985 §7.2: the probe's timer, after new data has left or an acknowledgement has come.
    pub(super) fn schedule_probe(&mut self, now: Instant) {
        let Some(Selective { board, rack: Some(rack), .. }) = self.selective.as_deref_mut() else {
            return;
        };
        let calm = !self.recovery.is_fast()
            && self.tx.una >= self.recovery.recover
            && board.sacked_segments() == 0
            && rack.probing.is_none();
        rack.probe_at = None;
        if !calm || board.missing() == 0 {
            return;
        }
        let mut wait = self.rtt.srtt().map_or(Duration::from_secs(1), |srtt| srtt * 2);
        if board.missing() <= self.tx.mss {
            wait += WORST_ACK_DELAY;
        }
        let at = now + wait;
        // Not later than the retransmission timeout, in whose place it then comes.
        rack.probe_at = Some(self.timers.rto.map_or(at, |rto| rto.min(at)));
    }

    /// RFC 8985 §7.3: the probe's timer ran out.
    fn on_probe_timer(&mut self, now: Instant) {
        let open = !matches!(self.state, State::SynSent | State::SynReceived);
        if let Some(Selective { rack: Some(rack), .. }) =
            self.selective.as_deref_mut().filter(|_| open)
        {
            rack.probe = true;
            self.timers.rto = Some(now + self.rtt.rto());
        }
    }

    /// A probe has left, as new data or as the last segment again.
    pub(super) fn note_probe(&mut self, resent: bool) {
        let end = self.tx.nxt;
        if let Some(Selective { rack: Some(rack), .. }) = self.selective.as_deref_mut() {
            rack.probing = Some((end, resent));
            rack.probe = false;
        }
    }

    /// RFC 8985 §7.4.2: a loss the probe repaired is congestion all the same.
    pub(super) fn on_probe_answered(
        &mut self,
        now: Instant,
        selective: &mut Selective,
        ack: Seq,
        (duplicate, plain): (Option<(Seq, Seq)>, bool),
    ) {
        let repaired =
            selective.rack.as_mut().is_some_and(|rack| rack.on_ack(ack, duplicate, plain));
        if repaired && !self.recovery.is_fast() && ack >= self.recovery.recover {
            self.reduce_once(now);
        }
    }
}
