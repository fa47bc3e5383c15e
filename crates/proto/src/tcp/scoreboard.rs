//! The sender's scoreboard: the state of each segment in flight (RFC 6675 §3, §4). It gives the
//! amount in the network (SetPipe), the losses (IsLost) and the next retransmission (NextSeg), and
//! is updated by acknowledgements with SACK blocks (Update).
//!
//! It stores segments, not octets: a segment counts as received once a block covers all of it.

use std::collections::VecDeque;

use super::delivery::Snapshot;
use super::records::{Record, Records};
use crate::seq::Seq;
use crate::time::{Duration, Instant};

/// RFC 6675 §2: DupThresh.
pub(super) const DUPLICATES: u32 = 3;

/// Sums over the records, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Sums {
    all: u64,
    sacked: u64,
    /// Lost and not sacked since.
    lost: u64,
    /// Retransmitted and not sacked since.
    resent: u64,
    /// Lost and not retransmitted yet.
    pending: u64,
    /// Segments sacked.
    sacked_segments: u32,
}

impl Sums {
    fn of(record: &Record) -> Self {
        let Record { sacked, lost, resent, .. } = *record;
        let when = |is: bool| if is { record.len() } else { 0 };
        Self {
            all: record.len(),
            sacked: when(sacked),
            lost: when(!sacked && lost),
            resent: when(!sacked && resent),
            pending: when(!sacked && lost && !resent),
            sacked_segments: u32::from(sacked),
        }
    }
    fn add(&mut self, other: &Self) {
        self.all += other.all;
        self.sacked += other.sacked;
        self.lost += other.lost;
        self.resent += other.resent;
        self.pending += other.pending;
        self.sacked_segments += other.sacked_segments;
    }
    fn remove(&mut self, other: &Self) {
        self.all -= other.all;
        self.sacked -= other.sacked;
        self.lost -= other.lost;
        self.resent -= other.resent;
        self.pending -= other.pending;
        self.sacked_segments -= other.sacked_segments;
    }
}

/// What an acknowledgement changed.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct AckOutcome {
    /// Bytes newly known to have arrived (RFC 9937 §5: `DeliveredData`).
    pub(super) delivered: u64,
    /// Of these, bytes reported by SACK blocks.
    pub(super) sacked: u64,
    /// When the segment left whose round trip this acknowledgement shows, if one does.
    pub(super) timed: Option<Instant>,
    /// When the last retransmission left that is newly reported.
    pub(super) resent: Option<Instant>,
}

/// Which segment an acknowledgement times, by the sender's own clock. RFC 6298 §3 excludes segments that were
/// retransmitted. A segment that arrived before one does not show the round trip either: its acknowledgement
/// was delayed or lost. Data beyond a gap is acknowledged at once (RFC 5681 §4.2), so that of segments newly
/// reported by SACK blocks the one sent last counts, unless a retransmission left after it that is newly
/// reported, too. Without any, the first segment acknowledged in order counts, if no retransmission is newly
/// reported; like the timestamp of RFC 7323 §4.3 (A), it includes the delay of the acknowledgement.
#[derive(Clone, Copy, Debug, Default)]
struct Timing {
    in_order: Option<Instant>,
    sacked: Option<(Instant, u32)>,
    resent: Option<(Instant, u32)>,
}

impl Timing {
    fn add(&mut self, record: &Record, in_order: bool) {
        let later = |last: &Option<(Instant, u32)>| last.is_none_or(|last| record.left_after(last));
        let this = Some((record.sent, record.order));
        if record.ambiguous {
            if later(&self.resent) {
                self.resent = this;
            }
        } else if in_order {
            self.in_order = self.in_order.or(Some(record.sent));
        } else if later(&self.sacked) {
            self.sacked = this;
        }
    }

    fn result(&self) -> Option<Instant> {
        let Self { in_order, sacked, resent } = *self;
        // Segments sent at one instant have the same round trip.
        let last = sacked.filter(|(sent, _)| resent.is_none_or(|(again, _)| again <= *sent));
        last.map(|(sent, _)| sent).or(in_order.filter(|_| resent.is_none()))
    }
}

/// The scoreboard: all segments between SND.UNA and SND.NXT, ascending and without gaps.
#[derive(Debug, Default)]
pub(super) struct Scoreboard {
    records: Records,
    /// For each record the state when it was last sent, if the controller uses delivery rates; else empty.
    snapshots: VecDeque<Snapshot>,
    /// With snapshots: losses found and not reported yet.
    newly_lost: Vec<(Record, Snapshot)>,
    sums: Sums,
    /// Segments sent, modulo 2³².
    order: u32,
    /// After the highest number ever selectively acknowledged.
    high: Seq,
    /// Every record that ends at or before this is sacked or lost.
    marked: Seq,
    /// No pending record ends at or before this.
    pending_after: Seq,
    /// The number of the FIN, once sent. A peer may report the data of its segment without it.
    pub(super) fin: Option<Seq>,
    /// The blocks of the last acknowledgement: each grows from one to the next, and the records in
    /// its old part need no second check.
    seen: [(Seq, Seq); 4],
}

impl Scoreboard {
    /// Bytes of memory held.
    pub(super) fn footprint(&self) -> usize {
        self.records.len() * size_of::<Record>()
    }

    /// A segment is sent for the first time.
    #[inline(always)]
    pub(super) fn push(&mut self, start: Seq, end: Seq, now: Instant) {
        self.sums.all += end.since(start);
        self.order = self.order.wrapping_add(1);
        self.records.push(start, end, now, self.order);
    }

    /// The snapshot of the segment pushed next.
    pub(super) fn push_snapshot(&mut self, snapshot: Snapshot) {
        self.snapshots.push_back(snapshot);
    }

    /// Losses found since the last call.
    pub(super) fn take_fallen(&mut self) -> Vec<(Record, Snapshot)> {
        std::mem::take(&mut self.newly_lost)
    }

    /// RFC 6675 §4, SetPipe: bytes estimated to be in the network.
    pub(super) const fn pipe(&self) -> u64 {
        let Sums { all, sacked, lost, resent, .. } = self.sums;
        all - sacked - lost + resent
    }

    /// Bytes in flight not reported as received.
    pub(super) const fn missing(&self) -> u64 {
        self.sums.all - self.sums.sacked
    }

    /// Segments in flight, arrived or not.
    pub(super) fn segments(&self) -> usize {
        self.records.len()
    }

    /// Segments in flight reported as received.
    pub(super) const fn sacked_segments(&self) -> u32 {
        self.sums.sacked_segments
    }

    /// True if a lost segment is to be retransmitted.
    pub(super) const fn has_pending(&self) -> bool {
        self.sums.pending > 0
    }

    /// RFC 8985 §6.2 step 5: marks segments, even retransmitted ones, that were sent long enough
    /// before one that arrived. `wait` gives the time left for a segment, or `None` if it was sent
    /// later. Returns the bytes newly lost and the longest wait.
    pub(super) fn mark_older(
        &mut self,
        wait: impl Fn(&Record) -> Option<Duration>,
    ) -> (u64, Option<Duration>) {
        let (mut lost, mut longest) = (0, None);
        for i in 0..self.records.len() {
            let Some(record) = self.records.get(i).copied() else { break };
            if record.sacked || (record.lost && !record.resent) {
                continue;
            }
            match wait(&record) {
                Some(Duration::ZERO) => {
                    lost += record.len();
                    self.change(i, |record| (record.lost, record.resent) = (true, false));
                }
                Some(wait) => longest = longest.max(Some(wait)),
                // Segments sent once were sent in order: all that follow were sent later.
                None if !record.ambiguous => break,
                None => {}
            }
        }
        (lost, longest)
    }

    /// RFC 6675 §4, Update: applies a cumulative acknowledgement and SACK blocks, and calls
    /// `arrived` for each segment that has newly arrived.
    pub(super) fn update(
        &mut self,
        una: Seq,
        blocks: &[(Seq, Seq)],
        mut arrived: impl FnMut(&Record, Option<&Snapshot>),
    ) -> AckOutcome {
        let (mut news, mut timing) = (AckOutcome::default(), Timing::default());
        while let Some(front) = self.records.first().copied().filter(|front| front.start < una) {
            if front.sacked || front.lost || front.resent {
                self.sums.remove(&Sums::of(&front));
            } else {
                self.sums.all -= front.len();
            }
            if !front.sacked {
                news.delivered += front.end.min(una).since(front.start);
                timing.add(&front, true);
            }
            if front.end > una {
                // If a segment was reported without its FIN, the FIN is still missing, or the
                // acknowledgement would cover it.
                let bare = front.sacked && self.fin == Some(una);
                let rest = Record { start: una, sacked: front.sacked && !bare, ..front };
                if bare {
                    self.marked = self.marked.min(una);
                    self.pending_after = self.pending_after.min(una);
                }
                self.sums.add(&Sums::of(&rest));
                if let Some(first) = self.records.first_mut() {
                    *first = rest;
                }
                break;
            }
            self.records.pop();
            let snapshot = self.snapshots.pop_front();
            if !front.sacked {
                arrived(&front, snapshot.as_ref());
            }
        }
        for block in blocks {
            self.take_block(*block, &mut news, |record, snapshot| {
                timing.add(record, false);
                arrived(record, snapshot);
            });
        }
        (news.timed, news.resent) = (timing.result(), timing.resent.map(|(sent, _)| sent));
        for (place, block) in self.seen.iter_mut().zip(blocks) {
            *place = *block;
        }
        news
    }

    /// True if no segment in flight was selectively acknowledged, marked lost or retransmitted.
    #[inline]
    pub(super) const fn is_untouched(&self) -> bool {
        let Sums { sacked, lost, resent, .. } = self.sums;
        sacked | lost | resent == 0
    }

    /// [`Scoreboard::update`] without blocks and snapshots on an untouched board; returns only the times of
    /// the [`AckOutcome`].
    #[inline]
    pub(super) fn advance(&mut self, una: Seq) -> AckOutcome {
        let first = self.records.first().filter(|first| first.start < una);
        let (timed, mut resent) = (first.map(|first| first.sent), None);
        while let Some(front) = self.records.first_mut().filter(|front| front.start < una) {
            if front.ambiguous {
                resent = resent.max(Some(front.sent));
            }
            self.sums.all -= front.end.min(una).since(front.start);
            if front.end > una {
                front.start = una;
                break;
            }
            self.records.pop();
        }
        let timed = timed.filter(|_| resent.is_none());
        AckOutcome { timed, resent, ..AckOutcome::default() }
    }

    fn take_block(
        &mut self,
        (left, right): (Seq, Seq),
        news: &mut AckOutcome,
        mut arrived: impl FnMut(&Record, Option<&Snapshot>),
    ) {
        let known = self.seen.iter().find(|(start, end)| *start <= left && left < *end);
        let from = known.map_or(left, |(_, end)| *end);
        if right <= from {
            return;
        }
        for i in self.records.after(from).. {
            let Some(record) = self.records.get(i) else { break };
            // RFC 2018 §3: a block covers numbers, and the FIN has one; some peers report data only.
            let all_but_fin = self.fin == Some(right) && record.end == right + 1;
            if record.end > right && !(all_but_fin && record.len() > 1) {
                break;
            }
            if record.sacked || record.start < left {
                continue;
            }
            arrived(record, self.snapshots.get(i));
            (news.delivered, news.sacked) =
                (news.delivered + record.len(), news.sacked + record.len());
            self.high = self.high.max(record.end);
            self.change(i, |record| record.sacked = true);
        }
    }

    fn change(&mut self, at: usize, change: impl FnOnce(&mut Record)) {
        let Some(record) = self.records.get_mut(at) else { return };
        let was = Sums::of(record);
        self.sums.remove(&was);
        change(record);
        let is = Sums::of(record);
        self.sums.add(&is);
        if is.pending > 0 {
            if was.pending == 0
                && let Some(snapshot) = self.snapshots.get(at)
            {
                self.newly_lost.push((*record, *snapshot));
            }
            self.pending_after = self.pending_after.min(record.start);
        }
    }

    /// RFC 6675 §4, IsLost, for every segment: lost if below three separate runs of sacked segments, or below
    /// more than two segments' worth of sacked bytes. Returns the bytes newly lost.
    pub(super) fn mark(&mut self, mss: u64) -> u64 {
        if self.sums.sacked_segments == 0 {
            return 0;
        }
        let before = self.sums.lost;
        let (mut bytes, mut runs, mut in_run) = (0, 0, false);
        for i in (0..self.records.after(self.high.back(1)).saturating_add(1)).rev() {
            let Some(record) = self.records.get(i).copied() else { continue };
            if record.end <= self.marked {
                break;
            }
            if record.sacked {
                bytes += record.len();
                runs += u32::from(!in_run);
                in_run = true;
                if runs >= DUPLICATES || bytes > u64::from(DUPLICATES - 1) * mss {
                    self.mark_up_to(i);
                    break;
                }
            } else {
                in_run = false;
            }
        }
        self.sums.lost - before
    }

    fn mark_up_to(&mut self, last: usize) {
        let from = self.records.after(self.marked);
        for i in from..=last {
            if self.records.get(i).is_some_and(|record| !record.sacked && !record.lost) {
                self.change(i, |record| record.lost = true);
            }
        }
        self.marked = self.records.get(last).map_or(self.marked, |record| record.end);
    }

    /// Marks the first segment in flight lost regardless of the blocks (RFC 6675 §5 step 4.3); returns its end.
    pub(super) fn lose_first(&mut self) -> Seq {
        if self.records.first().is_some_and(|first| !first.sacked && !first.lost) {
            self.change(0, |record| record.lost = true);
        }
        self.records.first().map_or(Seq::default(), |first| first.end)
    }

    /// True if the first segment in flight is marked lost.
    pub(super) fn first_is_lost(&self) -> bool {
        self.records.first().is_some_and(|first| first.lost && !first.sacked)
    }

    /// After a timeout, or when segments must shrink: unreceived segments are to be retransmitted, the first in
    /// any case, others if `also` says so or if they were already to be retransmitted. If a sacked segment is
    /// next in order, the peer has discarded it, and all its SACK information is dropped (RFC 2018 §8).
    pub(super) fn lose(&mut self, also: impl Fn(&Record) -> bool) {
        if self.records.first().is_some_and(|first| first.sacked) {
            self.records.each(|_, record| record.sacked = false);
            (self.seen, self.high) = ([(Seq::default(), Seq::default()); 4], Seq::default());
        }
        self.sums = Sums::default();
        let Self { records, snapshots, newly_lost, sums, .. } = self;
        records.each(|at, record| {
            let was = Sums::of(record);
            if !record.sacked && (at == 0 || also(record)) {
                (record.lost, record.resent) = (true, false);
            }
            let is = Sums::of(record);
            sums.add(&is);
            if is.pending > was.pending
                && let Some(snapshot) = snapshots.get(at)
            {
                newly_lost.push((*record, *snapshot));
            }
        });
        self.pending_after = Seq::default();
        let settled = |record: &Record| record.sacked || record.lost;
        self.marked = match self.records.from(0).find(|record| !settled(record)) {
            Some(open) => open.start,
            None => self.records.last().map_or(self.marked, |last| last.end),
        };
    }

    /// Segments marked lost by a timeout and not retransmitted are in flight after all.
    pub(super) fn find_all(&mut self) {
        let mut sums = Sums::default();
        self.records.each(|_, record| {
            record.lost &= record.resent;
            sums.add(&Sums::of(record));
        });
        self.sums = sums;
        (self.marked, self.pending_after) = (Seq::default(), Seq::default());
    }

    /// RFC 6675 §4, NextSeg rule 1: the first lost segment that was not retransmitted.
    pub(super) fn next_lost(&mut self) -> Option<(Seq, Seq)> {
        if self.sums.pending == 0 {
            return None;
        }
        let from = self.records.after(self.pending_after);
        let pending = |record: &&Record| record.lost && !record.sacked && !record.resent;
        let found = self.records.from(from).find(pending).copied();
        let found = found.map(|record| (record.start, record.end));
        self.pending_after = found.map_or(self.pending_after, |(start, _)| start);
        found
    }

    /// NextSeg rule 3: the first segment below a sacked one that was not retransmitted.
    pub(super) fn next_hole(&self) -> Option<(Seq, Seq)> {
        let hole = |record: &&Record| !record.sacked && !record.resent;
        // Segments before `marked` are sacked, or lost and retransmitted unless pending.
        let from = if self.has_pending() { 0 } else { self.records.after(self.marked) };
        let mut below = self.records.from(from).take_while(|record| record.end < self.high);
        below.find(hole).map(|record| (record.start, record.end))
    }

    /// NextSeg rule 4: the last segment that has not arrived.
    pub(super) fn last_missing(&self) -> Option<(Seq, Seq)> {
        let last = self.records.from(0).rev().find(|record| !record.sacked);
        last.map(|record| (record.start, record.end))
    }

    /// Retransmits the segment at `start`, cut to `most` bytes if the path MTU has shrunk; the rest
    /// then becomes a separate segment. `counted`: as one more in the network.
    pub(super) fn resend(
        &mut self,
        start: Seq,
        most: u64,
        counted: bool,
        now: Instant,
        snapshot: Option<Snapshot>,
    ) {
        let at = self.records.after(start);
        let Some(record) = self.records.get_mut(at) else { return };
        let end = record.end;
        if record.len() > most {
            record.end = record.start + most;
            let rest = Record { start: record.end, end, ..*record };
            // The sums of the two halves are those of the whole.
            self.records.insert(at + 1, rest);
            if let Some(snapshot) = self.snapshots.get(at).copied() {
                self.snapshots.insert(at + 1, snapshot);
            }
        }
        if let (Some(place), Some(snapshot)) = (self.snapshots.get_mut(at), snapshot) {
            *place = snapshot;
        }
        self.order = self.order.wrapping_add(1);
        let order = self.order;
        self.change(at, |record| {
            (record.sent, record.order, record.ambiguous) = (now, order, true);
            record.resent |= counted;
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn at(place: u64) -> Seq {
        Seq::first(7) + place
    }

    proptest! {
        /// The sums match a recount, and pipe matches RFC 6675 §4 computed octet by octet.
        #[test]
        fn sums_hold(
            steps in proptest::collection::vec((0..6_u8, 0..60_u64, 1..20_u64), 1..200),
        ) {
            let (mut board, mut nxt, mut una) = (Scoreboard::default(), 0, 0);
            for (act, place, len) in steps {
                match act {
                    0 | 1 => {
                        board.push(at(nxt), at(nxt + len), Instant::ZERO);
                        nxt += len;
                    }
                    2 => {
                        una = nxt.min(una + place / 4);
                        board.update(at(una), &[], |_, _| {});
                    }
                    3 => {
                        let left = (una + place).min(nxt);
                        let block = (at(left), at((left + 3 * len).min(nxt)));
                        board.update(at(una), &[block], |_, _| {});
                        board.mark(10);
                    }
                    4 => {
                        if let Some((start, end)) = board.next_lost().or(board.next_hole()) {
                            let most = (len / 2).max(1).min(end.since(start));
                            board.resend(start, most, true, Instant::ZERO, None);
                        }
                    }
                    _ if place < 5 => board.lose(|_| true),
                    _ => drop(board.lose_first()),
                }
                let mut sums = Sums::default();
                board.records.from(0).for_each(|record| sums.add(&Sums::of(record)));
                prop_assert_eq!(sums, board.sums);
                prop_assert_eq!(sums.all, nxt - una);
                let pipe: u64 = board.records.from(0).filter(|record| !record.sacked).map(|record| {
                    record.len() * (u64::from(!record.lost) + u64::from(record.resent))
                }).sum();
                prop_assert_eq!(pipe, board.pipe());
                let pending = |r: &&Record| r.lost && !r.sacked && !r.resent;
                let first = board.records.from(0).find(pending).map(|r| r.start);
                prop_assert_eq!(board.next_lost().map(|found| found.0), first);
                let hole = |r: &&Record| r.end < board.high && !r.sacked && !r.resent;
                let first = board.records.from(0).find(hole).map(|r| r.start);
                prop_assert_eq!(board.next_hole().map(|found| found.0), first);
            }
        }
    }

    proptest! {
        /// On an untouched board the fast path leaves the same board as the full one, whatever came before:
        /// segments cut and retransmitted uncounted, timeouts undone, blocks and losses acknowledged since.
        #[test]
        fn advance_is_update_on_an_untouched_board(
            steps in proptest::collection::vec((0..9_u8, 0..60_u64, 1..20_u64), 1..200),
        ) {
            let (mut short, mut long) = (Scoreboard::default(), Scoreboard::default());
            let (mut nxt, mut una) = (0, 0);
            for (i, (act, place, len)) in steps.into_iter().enumerate() {
                let now = Instant::from_nanos(i as u64);
                if act < 2 {
                    una = nxt.min(una + place);
                    let news = long.update(at(una), &[], |_, _| {});
                    if short.is_untouched() {
                        let quick = short.advance(at(una));
                        prop_assert_eq!((quick.timed, quick.resent), (news.timed, news.resent));
                    } else {
                        short.update(at(una), &[], |_, _| {});
                    }
                } else {
                    for board in [&mut short, &mut long] {
                        match act {
                            2..6 => board.push(at(nxt), at(nxt + len), now),
                            // Like a rescue on a path that has shrunk.
                            6 => {
                                if let Some((start, _)) = board.last_missing() {
                                    board.resend(start, len, false, now, None);
                                }
                            }
                            7 => {
                                board.lose(|_| true);
                                board.find_all();
                            }
                            _ => {
                                let left = (una + place).min(nxt);
                                let block = (at(left), at((left + 3 * len).min(nxt)));
                                board.update(at(una), &[block], |_, _| {});
                                board.mark(10);
                                if let Some((start, _)) = board.next_lost() {
                                    board.resend(start, len, true, now, None);
                                }
                            }
                        }
                    }
                    nxt += if matches!(act, 2..6) { len } else { 0 };
                }
                prop_assert_eq!(format!("{:?}", short), format!("{:?}", long));
            }
        }
    }

    /// RFC 6675 §4, IsLost (segments of 10 bytes): three runs above, or more than 20 bytes above.
    #[test]
    fn is_lost() {
        let full = || {
            let mut board = Scoreboard::default();
            (0..10).for_each(|i| board.push(at(10 * i), at(10 * i + 10), Instant::ZERO));
            board
        };
        let lost = |board: &Scoreboard| -> Vec<u64> {
            let lost = board.records.from(0).filter(|record| record.lost);
            lost.map(|record| record.start.since(at(0)) / 10).collect()
        };
        let mut board = full();
        board.update(at(0), &[(at(10), at(30))], |_, _| {});
        assert_eq!((board.mark(10), lost(&board)), (0, vec![]));
        board.update(at(0), &[(at(10), at(40))], |_, _| {});
        assert_eq!((board.mark(10), lost(&board)), (10, vec![0]));
        // 50 and 70 are missing; above 50 lie 60 and 80, 20 bytes; above 0 and 40 there is more.
        board.update(at(0), &[(at(60), at(70)), (at(80), at(90))], |_, _| {});
        board.mark(10);
        assert_eq!(lost(&board), [0]);
        // Three runs above 40, none of which suffices by its bytes.
        let mut board = full();
        for left in [50, 70, 90] {
            board.update(at(0), &[(at(left), at(left + 10))], |_, _| {});
        }
        assert_eq!((board.mark(15), lost(&board)), (50, vec![0, 1, 2, 3, 4]));
    }
}
