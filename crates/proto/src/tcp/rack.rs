//! RACK-TLP (RFC 8985): a segment is lost when one sent sufficiently later has arrived; a probe at the
//! end of a flight elicits the acknowledgement that shows it.
//!
//! The probe timer and the reordering timer run beside the retransmission timer, which is postponed
//! if it would expire before them (§8).

use super::records::Record;
use super::scoreboard::DUPLICATES;
use super::selective::Selective;
use super::{State, TICK, Tcp};
use crate::rtt::RttEstimator;
use crate::seq::Seq;
use crate::time::{Duration, Instant, due};

/// §6.2 step 4: number of recoveries for which a widened reordering window persists.
const PERSIST: u32 = 16;
/// §7.2: TLP.max_ack_delay, the longest delay of a peer before it acknowledges a lone segment.
const WORST_ACK_DELAY: Duration = Duration::from_millis(200);
/// §6.2 step 1: round trips older than this do not count for RACK.min_RTT (Linux `tcp_min_rtt_wlen`).
const MIN_RTT_WINDOW: Duration = Duration::from_secs(300);

/// RACK.min_RTT: the minimum over the last half to whole [`MIN_RTT_WINDOW`].
#[derive(Debug, Default)]
struct LeastRtt {
    /// When the current half began.
    since: Instant,
    present: Option<Duration>,
    past: Option<Duration>,
}

impl LeastRtt {
    fn add(&mut self, now: Instant, rtt: Duration) {
        let age = now.saturating_since(self.since);
        if age >= MIN_RTT_WINDOW / 2 {
            self.past = self.present.take().filter(|_| age < MIN_RTT_WINDOW);
            self.since = now;
        }
        self.present = Some(self.present.map_or(rtt, |least| least.min(rtt)));
    }

    fn get(&self) -> Option<Duration> {
        [self.present, self.past].into_iter().flatten().min()
    }
}

/// RACK's variables (§5.3) and the state of the tail loss probe (§7.1).
#[derive(Debug, Default)]
pub(super) struct Rack {
    /// `RACK.xmit_ts`, and in place of `RACK.end_seq` the order of transmission, of the last sent
    /// segment that has arrived.
    newest: (Instant, u32),
    /// `RACK.rtt`: the round trip of the last sent segment covered by the latest acknowledgement.
    rtt: Duration,
    /// That segment; none before the first.
    latest: Option<(Instant, u32)>,
    /// `RACK.min_RTT`.
    least: LeastRtt,
    /// `RACK.fack`: the highest number known to have arrived, and what it was before the latest
    /// acknowledgement.
    highest: Seq,
    highest_before: Seq,
    /// `RACK.reordering_seen`.
    reordering: bool,
    /// `RACK.reo_wnd_mult` and `RACK.reo_wnd_persist`.
    multiple: u32,
    persist: u32,
    /// `RACK.dsack_round`.
    round: Option<Seq>,
    /// `TLP.end_seq` and `TLP.is_retrans`.
    probing: Option<(Seq, bool)>,
    /// §7.3: a round trip was measured since the last probe.
    sampled: bool,
    /// A probe is to be sent.
    pub(super) probe: bool,
    /// §6.3: the timer expired; the first segment is retransmitted whatever else is in flight.
    pub(super) timed_out: bool,
    /// End of the wait for reordered segments (§6.3).
    pub(super) reorder_at: Option<Instant>,
    /// The probe timer (§7.2).
    pub(super) probe_at: Option<Instant>,
}

impl Rack {
    /// For a connection that has just opened, with the handshake's RTT if it was measured.
    pub(super) fn new(now: Instant, rtt: Option<Duration>) -> Self {
        let mut least = LeastRtt::default();
        rtt.into_iter().for_each(|rtt| least.add(now, rtt));
        Self {
            rtt: rtt.unwrap_or(Duration::ZERO),
            least,
            multiple: 1,
            persist: PERSIST,
            sampled: rtt.is_some(),
            ..Self::default()
        }
    }

    /// Processing of an acknowledgement begins; its segments follow one by one.
    pub(super) fn on_ack_begins(&mut self) {
        (self.latest, self.highest_before) = (None, self.highest);
    }

    /// §6.2 steps 2 and 3: a segment has arrived. `original` if a timestamp shows that an earlier
    /// transmission than its last arrived.
    pub(super) fn on_arrived(&mut self, now: Instant, record: &Record, original: bool) {
        let took = now.saturating_since(record.sent);
        self.highest = self.highest.max(record.end);
        // In ascending order, as step 3 requires, only segments below the previous maximum are late.
        if record.end < self.highest_before && !record.ambiguous {
            self.reordering = true;
        }
        let least = self.least.get();
        if record.ambiguous && (original || least.is_some_and(|least| took < least)) {
            return;
        }
        // As in step 2's ascending order of transmission, the last one sent remains.
        let this = (record.sent, record.order);
        if self.latest.is_none_or(|latest| record.left_after(latest)) {
            (self.latest, self.rtt) = (Some(this), took);
        }
        if record.left_after(self.newest) {
            self.newest = this;
        }
    }

    /// §6.2 step 1, §7.3: an RTT was measured.
    pub(super) fn on_sample(&mut self, now: Instant, rtt: Duration) {
        self.least.add(now, rtt);
        self.sampled = true;
    }

    /// §7.1: fast recovery or RTO recovery begins.
    pub(super) fn forget_probe(&mut self) {
        (self.probing, self.probe, self.probe_at) = (None, false, None);
    }

    /// §6.2 step 4: reaction to duplicates that show a spurious retransmission.
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
        let least = self.least.get().unwrap_or(Duration::ZERO);
        (least * u64::from(self.multiple) / 4).min(rtt.srtt().unwrap_or(Duration::ZERO))
    }

    /// §6.2 step 5 for one segment: `None` if it was sent after the one that arrived; otherwise the
    /// wait until it is lost.
    pub(super) fn wait_for(
        &self,
        now: Instant,
        record: &Record,
        window: Duration,
    ) -> Option<Duration> {
        let this = (record.sent, record.order);
        let before = !record.left_after(self.newest) && this != self.newest;
        let lost_at = record.sent + self.rtt + window;
        before.then(|| lost_at.saturating_since(now))
    }

    /// §7.4.2: result of the probe in an acknowledgement. True if the probe repaired a loss.
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
    /// RFC 8985 §6.2 steps 4 and 5, after an acknowledgement or when the reordering timer expires.
    /// Returns the bytes newly lost.
    pub(super) fn detect(&mut self, now: Instant, selective: &mut Selective) -> u64 {
        let recovering = self.recovery.is_fast() || self.tx.una < self.recovery.recover;
        let Selective { board, rack, .. } = selective;
        let Some(rack) = rack else { return 0 };
        let window = rack.reordering_window(&self.rtt, board.sacked_segments(), recovering);
        let (lost, wait) = board.mark_older(|record| rack.wait_for(now, record, window));
        rack.reorder_at = wait.map(|wait| now + wait);
        if let (Some(reorder), Some(rto)) = (rack.reorder_at, &mut self.timers.rto)
            && *rto <= reorder
        {
            // §8: this timer replaces the other; losses it finds restart that one.
            *rto = reorder + self.rtt.rto();
        }
        lost
    }

    /// RFC 8985 §6.3: the retransmission timer expired. The first segment and those sent a round trip
    /// ago are lost.
    pub(super) fn lose_on_timeout(&mut self, now: Instant) {
        let Some(Selective { board, rack, .. }) = self.selective.as_deref_mut() else { return };
        let Some(rack) = rack else { return board.lose(|_| true) };
        let window = rack.reordering_window(&self.rtt, board.sacked_segments(), true);
        let age = rack.rtt + window;
        board.lose(|record| record.sent + age <= now);
        rack.forget_probe();
        rack.timed_out = true;
    }

    /// The deadlines of RACK-TLP.
    pub(super) fn on_rack_timers(&mut self, now: Instant) {
        let Some(Selective { rack: Some(rack), .. }) = self.selective.as_deref_mut() else {
            return;
        };
        let reorder = due(&mut rack.reorder_at, now);
        let probe = due(&mut rack.probe_at, now);
        if reorder {
            self.on_reorder_timer(now);
        }
        if probe {
            self.on_probe_timer(now);
        }
    }

    /// RFC 8985 §6.3: the reordering wait is over.
    fn on_reorder_timer(&mut self, now: Instant) {
        let Some(mut selective) = self.selective.take() else { return };
        let missing = selective.board.missing();
        self.detect(now, &mut selective);
        self.recover_what_is_lost(now, &mut selective, missing);
        self.selective = Some(selective);
    }

    /// RFC 8985 §7.2: sets the probe timer after new data has left or an acknowledgement of data.
    #[inline]
    pub(super) fn schedule_probe(&mut self, now: Instant) {
        if self.selective.as_ref().is_some_and(|selective| selective.rack.is_some()) {
            self.set_probe_timer(now);
        }
    }

    #[inline(never)]
    fn set_probe_timer(&mut self, now: Instant) {
        let calm = self.may_probe();
        let Some(Selective { board, rack: Some(rack), .. }) = self.selective.as_deref_mut() else {
            return;
        };
        rack.probe_at = None;
        // §7.3: one probe at a time, and an RTT measured since the last; else the retransmission
        // timer continues.
        if !calm || rack.probing.is_some() || rack.probe || !rack.sampled || board.missing() == 0 {
            return;
        }
        // At least what the RTT clock resolves, as in Linux (TCP_TIMEOUT_MIN).
        let twice = |srtt: Duration| (srtt * 2).max(TICK * 2);
        let mut wait = self.rtt.srtt().map_or(Duration::from_secs(1), twice);
        if board.segments() == 1 {
            wait += WORST_ACK_DELAY;
        }
        let at = now + wait;
        // Not later than the retransmission timeout, which it replaces.
        rack.probe_at = Some(self.timers.rto.map_or(at, |rto| rto.min(at)));
    }

    /// RFC 8985 §7.2: no probe in recovery, or while data beyond a gap has arrived.
    fn may_probe(&self) -> bool {
        !self.recovery.is_fast()
            && self.tx.una >= self.recovery.recover
            && self.selective.as_ref().is_some_and(|it| it.board.sacked_segments() == 0)
    }

    /// RFC 8985 §7.2: an acknowledgement has arrived, of new data if it `advanced`.
    pub(super) fn review_probe(&mut self, now: Instant, advanced: bool) {
        if advanced {
            self.schedule_probe(now);
        } else if !self.may_probe()
            && let Some(Selective { rack: Some(rack), .. }) = self.selective.as_deref_mut()
        {
            (rack.probe, rack.probe_at) = (false, None);
        }
    }

    /// RFC 8985 §7.3: the probe timer expired.
    fn on_probe_timer(&mut self, now: Instant) {
        let open = !matches!(self.state, State::SynSent | State::SynReceived);
        if let Some(Selective { rack: Some(rack), .. }) =
            self.selective.as_deref_mut().filter(|_| open)
        {
            rack.probe = true;
            self.timers.rto = Some(now + self.rtt.rto());
        }
    }

    /// A probe has left, as new data or as a retransmission of the last segment.
    pub(super) fn note_probe(&mut self, resent: bool) {
        let end = self.tx.nxt;
        if let Some(Selective { rack: Some(rack), .. }) = self.selective.as_deref_mut() {
            rack.probing = Some((end, resent));
            (rack.probe, rack.sampled) = (false, false);
        }
    }

    /// RFC 8985 §7.4.2: a loss repaired by the probe is congestion too.
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
