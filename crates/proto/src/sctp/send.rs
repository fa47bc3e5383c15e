//! The sending half: assigns TSNs, keeps chunks until acknowledged, and retransmits lost ones first
//! (RFC 9260 §6.1, §6.2.1, §6.3.3, §7.2.4), unless they are given up (RFC 3758 §3.5).

use std::borrow::Cow;
use std::collections::VecDeque;

use super::config::Config;
use super::outstanding::{Outstanding, bit};
use super::packet::{Chunk, Data, ForwardTsn, Number, Sack, Skipped};
use super::path::{Path, PathAckOutcome, Reachable};
use super::queue::{Policy, Queue, Sending, Sent, Status};
use crate::congestion::{Ack, Congestion, CongestionControl};
use crate::frame::Frame;
use crate::gauge::RxError;
use crate::seq::Seq;
use crate::time::{Duration, Instant};

/// RFC 9260 §7.2.4: miss indications before retransmission.
const MISSING: u8 = 3;
/// Maximum chunks not acknowledged cumulatively (§6.1, §3.3.4).
const MAX_SENT: usize = 0xffff;
/// Maximum acknowledged chunks kept; a SACK may report their duplicates.
const REPEATED: usize = 64;

/// A chunk that was sent more than once and is acknowledged.
#[derive(Clone, Copy, Debug)]
struct Repeated {
    tsn: Seq,
    path: usize,
    bytes: u64,
    /// Duplicates of it not reported yet.
    copies: u32,
}

/// The sending half.
#[derive(Debug, Default)]
pub(super) struct Sender {
    pub(super) queue: Queue,
    /// Sent and not acknowledged cumulatively: consecutive TSNs.
    sent: VecDeque<Sent>,
    /// The peer has all up to here.
    pub(super) cumulative: Seq,
    /// The next TSN.
    next: Seq,
    outstanding: Outstanding,
    /// In fast recovery until this is acknowledged (§7.2.4).
    pub(super) exit: Option<Seq>,
    /// The last opportunity to send (§6.1 D).
    opportunity: Option<Instant>,
    /// The last SACK left no window for the earliest chunk, which probes it (§6.1 A).
    pub(super) probing: bool,
    /// Chunks sent more than once and acknowledged, the latest: a SACK may report their duplicates.
    repeated: VecDeque<Repeated>,
    /// Bytes of user data in `sent`, without those given up.
    held: usize,
    /// With SACKs clocking new data: pending messages may be sent, since a SACK came in, or a message
    /// while nothing was in flight; until nothing more may leave.
    clocked: bool,
    /// The peer supports FORWARD TSN.
    pub(super) forwards: bool,
    /// Advanced.Peer.Ack.Point (RFC 3758 §3.5).
    advanced: Seq,
    pub(super) forward_due: bool,
    /// When a FORWARD TSN was sent.
    forwarded: Instant,
}

impl Sender {
    pub(super) fn new(initial: u32, config: &Config) -> Self {
        let next = Seq::first(initial);
        let queue = Queue::new(config.scheduler);
        let cumulative = next.back(1);
        Self { queue, cumulative, next, clocked: true, advanced: cumulative, ..Self::default() }
    }

    /// Applies the peer's values from association setup.
    pub(super) fn agree(&mut self, a_rwnd: u32, forwards: bool, interleaving: bool) {
        self.outstanding.peer_rwnd = a_rwnd.into();
        self.forwards = forwards;
        self.queue.interleaving = interleaving;
    }

    /// Bytes of memory held by unacknowledged data.
    pub(super) fn footprint(&self) -> usize {
        self.sent.len() * size_of::<Sent>()
            + self.repeated.len() * size_of::<Repeated>()
            + self.used_bytes()
    }

    /// Bytes of user data not acknowledged.
    pub(super) fn used_bytes(&self) -> usize {
        self.queue.bytes() + self.held
    }
    /// Nothing is left to send or to be acknowledged.
    pub(super) fn is_done(&self) -> bool {
        self.queue.is_empty() && self.sent.is_empty()
    }
    /// The last TSN used.
    pub(super) fn highest(&self) -> Seq {
        self.next.back(1)
    }
    /// The last path of an outstanding TSN.
    pub(super) fn path_of(&self, tsn: Seq) -> Option<usize> {
        let outstanding = tsn > self.cumulative;
        let at = outstanding.then(|| tsn.since(self.cumulative) as usize - 1)?;
        self.sent.get(at).map(|sent| sent.path)
    }
    /// Nothing is outstanding: no packet that a router quotes is ours.
    pub(super) fn is_idle(&self) -> bool {
        self.sent.is_empty()
    }

    /// §6.2.1, or with no SACK the Cumulative TSN Ack of a SHUTDOWN (§9.2): gaps and the peer's window stay as
    /// in the last SACK. `true` if it shows that the peer is alive: it acknowledges something new (§8.1), or
    /// has no room for the data in flight (§6.1 A).
    #[inline]
    pub(super) fn on_cumulative(
        &mut self,
        now: Instant,
        cumulative: u32,
        sack: Option<&Sack>,
        paths: &mut [Path],
        config: &Config,
    ) -> Result<bool, RxError> {
        let gaps = sack.map_or(&[][..], |sack| &sack.gaps);
        let cumulative = self.cumulative.near(cumulative);
        if cumulative < self.cumulative {
            // §6.2.1 D i: it is out of date.
            return Ok(false);
        }
        let reach = self.next.back(1).since(cumulative);
        let believable =
            |(first, last): &(u16, u16)| *first > 1 && first <= last && u64::from(*last) <= reach;
        if cumulative >= self.next || !gaps.iter().all(believable) {
            return Err(RxError::BadAck);
        }
        for path in &mut *paths {
            path.news = PathAckOutcome { before: path.flight, ..PathAckOutcome::default() };
            path.forced = false;
        }
        if let Some(sack) = sack {
            self.count_duplicates(&sack.duplicates, paths);
        }
        let advanced = cumulative > self.cumulative;
        let mut highest = self.acknowledge(now, cumulative, paths);
        if sack.is_some() {
            highest = highest.max(self.on_gaps(now, gaps, paths));
        }
        let last_gap = gaps.iter().map(|gap| gap.1).max();
        let last_gap = last_gap.map(|last| cumulative + u64::from(last));
        self.count_missing(highest, last_gap.filter(|_| advanced), paths);
        // §6.2.1 D iv
        self.exit = self.exit.filter(|exit| *exit > self.cumulative);
        let recovering = self.exit.is_some();
        for path in &mut *paths {
            self.govern(now, advanced, recovering, path);
        }
        self.opportunity = None;
        self.begin(now, paths, config);
        self.clocked = true;
        self.advance(now, paths);
        if let Some(sack) = sack {
            // §6.2.1 D ii
            self.outstanding.peer_rwnd =
                u64::from(sack.a_rwnd).saturating_sub(self.outstanding.flying);
            let closed = |sent: &Sent| u64::from(sack.a_rwnd) < sent.user_bytes();
            self.probing = self.sent.front().is_some_and(closed);
        }
        Ok(self.probing || paths.iter().any(|path| path.news.acked > 0))
    }

    /// Acknowledges all TSNs up to `to`. Returns the highest new one.
    fn acknowledge(&mut self, now: Instant, to: Seq, paths: &mut [Path]) -> Option<Seq> {
        let mut highest = None;
        while self.cumulative < to
            && let Some(sent) = self.sent.pop_front()
        {
            self.cumulative += 1;
            if sent.transmissions > 1 {
                self.remember(&sent);
            }
            match sent.status {
                Status::Acked => self.outstanding.gapped -= 1,
                Status::Abandoned => {
                    // §6.3.2 R3; chunks given up count too, or their T3 would keep running for later ones.
                    paths[sent.path].news.earliest = true;
                    self.outstanding.abandoned -= 1;
                    continue;
                }
                Status::Flying | Status::Marked => {
                    // §6.3.2 R3
                    paths[sent.path].news.earliest = true;
                    self.outstanding.take_off(&sent, paths);
                    on_acked(now, &sent, &mut paths[sent.path]);
                    highest = Some(sent.tsn);
                }
            }
            self.held -= sent.data.payload.wire_bytes();
        }
        highest
    }

    /// Gap Ack Blocks; returns the highest TSN newly acknowledged.
    fn on_gaps(&mut self, now: Instant, gaps: &[(u16, u16)], paths: &mut [Path]) -> Option<Seq> {
        let outstanding = &mut self.outstanding;
        if gaps.is_empty() && outstanding.gapped == 0 {
            return None;
        }
        let (mut highest, mut after) = (None, 0);
        // Paths on which an earlier chunk is still in flight, as bits.
        let mut earlier = 0_u64;
        for (first, last) in in_order(gaps).iter() {
            let (from, to) = (usize::from(*first) - 1, usize::from(*last));
            for sent in self.sent.range_mut(after..from) {
                earlier |= outstanding.pass_over(sent, paths);
            }
            for sent in self.sent.range_mut(from..to) {
                // Most are unchanged: only process changes.
                if !matches!(sent.status, Status::Flying | Status::Marked) {
                    continue;
                }
                outstanding.take_off(sent, paths);
                // §6.3.2 R3
                let path = &mut paths[sent.path];
                path.news.earliest |= earlier & bit(sent.path) == 0;
                on_acked(now, sent, path);
                highest = Some(sent.tsn);
                sent.status = Status::Acked;
                outstanding.gapped += 1;
            }
            after = to;
        }
        for sent in self.sent.range_mut(after..) {
            outstanding.pass_over(sent, paths);
        }
        highest
    }

    /// §7.2.4: chunks before the highest newly acknowledged one are missing; in fast recovery those
    /// before any block are, if the cumulative point has advanced.
    fn count_missing(&mut self, highest: Option<Seq>, block: Option<Seq>, paths: &mut [Path]) {
        let recovering = self.exit.is_some();
        let Some(limit) = highest.max(block.filter(|_| recovering)) else { return };
        for sent in &mut self.sent {
            if sent.tsn >= limit {
                break;
            }
            if sent.status != Status::Flying || sent.fast {
                continue;
            }
            sent.missing += 1;
            if sent.missing >= MISSING {
                sent.fast = true;
                paths[sent.path].news.lost = true;
                self.outstanding.mark(sent, false, paths);
            }
        }
    }

    /// Updates a path's window and timer for a SACK.
    fn govern(&mut self, now: Instant, advanced: bool, recovering: bool, path: &mut Path) {
        let PathAckOutcome { before, acked, duplicates, earliest, lost } = path.news;
        if acked > 0 {
            // §7.2.1, §7.2.3
            path.timed_out = false;
        }
        // §7.2.4 Note: the window grows before it is reduced.
        if acked + duplicates > 0 && !recovering && (advanced || !lost) {
            let window = path.control.window();
            let slow_start = path.control.threshold().is_none_or(|threshold| window <= threshold);
            // §7.2.1, where as in RFC 4960 only a SACK that advances the cumulative point grows the
            // window; §7.2.2, which counts duplicates too.
            let acked = if slow_start { acked } else { acked + duplicates };
            if acked > 0 && (advanced || !slow_start) {
                let ack = Ack { acked, flight: before, window_limited: before >= window };
                path.control.on_ack(now, &ack, &path.rtt);
            }
        }
        // §7.2.4 steps 2, 3 and 6: one reduction, and one packet regardless of the window, for each
        // recovery of the association.
        if lost && !recovering {
            path.forced = true;
            path.control.on_congestion(now, &Congestion::Loss { flight: before });
            self.exit = Some(self.next.back(1));
        }
        // §6.3.2 R2, R3
        if path.flight == 0 {
            path.t3 = None;
        } else if earliest || path.t3.is_none() {
            path.t3 = Some(now + path.rtt.rto());
        }
    }

    /// §6.1 D: an opportunity to send: a SACK, or an instant at which messages are handed over or
    /// timers expire.
    #[inline]
    pub(super) fn begin(&mut self, now: Instant, paths: &mut [Path], config: &Config) {
        if self.opportunity != Some(now) {
            self.opportunity = Some(now);
            paths.iter_mut().for_each(|path| path.limit_burst(config.max_burst));
        }
    }

    /// Nothing more may leave: the opportunity that a SACK gave is over. Messages that come later wait for
    /// the next, but those that take the room which the SACK made in a full buffer have left.
    #[inline]
    pub(super) const fn end(&mut self) {
        self.clocked = false;
    }

    /// A chunk that was sent more than once is acknowledged.
    fn remember(&mut self, sent: &Sent) {
        if self.repeated.len() >= REPEATED {
            self.repeated.pop_front();
        }
        let (tsn, path, bytes) = (sent.tsn, sent.path, sent.wire_bytes());
        let copies = sent.transmissions - 1;
        self.repeated.push_back(Repeated { tsn, path, bytes, copies });
    }

    /// §7.2.2: chunks that the SACK reports as duplicates, each at most as often as it was
    /// retransmitted: a peer could report any number.
    fn count_duplicates(&mut self, duplicates: &[u32], paths: &mut [Path]) {
        for duplicate in duplicates {
            let tsn = self.cumulative.near(*duplicate);
            let one = self.repeated.iter_mut().find(|one| one.tsn == tsn && one.copies > 0);
            if let Some(one) = one {
                one.copies -= 1;
                paths[one.path].news.duplicates += one.bytes;
            }
        }
    }

    /// T3-rtx of a path expired (§6.3.3 E3): marks all chunks sent there for retransmission. `false`
    /// if there was nothing.
    pub(super) fn on_timeout(&mut self, path: usize, paths: &mut [Path]) -> bool {
        let mut any = false;
        self.exit = None;
        for sent in &mut self.sent {
            if sent.status == Status::Flying && sent.path == path {
                self.outstanding.mark(sent, true, paths);
                any = true;
            }
        }
        if self.advanced > self.cumulative {
            // RFC 3758 §3.5 F2: the FORWARD TSN may be what was lost.
            self.forward_due = true;
            any = true;
        }
        any
    }

    /// Gives up a message, with chunks in any state (RFC 3758 §3.5 A1 to A3).
    fn abandon(&mut self, id: u64, paths: &mut [Path]) {
        for sent in &mut self.sent {
            if sent.id != id || sent.status == Status::Abandoned {
                continue;
            }
            if sent.status == Status::Acked {
                // A3: all parts at the same time.
                self.outstanding.gapped -= 1;
            }
            self.outstanding.take_off(sent, paths);
            self.held -= sent.user_bytes() as usize;
            sent.status = Status::Abandoned;
            self.outstanding.abandoned += 1;
        }
        let Some(data) = self.queue.forget(id) else { return };
        // The peer may have all that was sent and wait for the rest: a TSN that is never sent
        // represents it, so that a FORWARD TSN can skip the message.
        let tsn = self.next;
        self.next += 1;
        self.outstanding.abandoned += 1;
        let data = Data { tsn: tsn.wire(), ..data };
        let path = super::data_path(paths);
        let sent = Sent::new(data, tsn, id, Policy::default(), path);
        self.sent.push_back(Sent { status: Status::Abandoned, ..sent });
    }

    /// Gives up messages beyond their limits; called before anything is sent. `true` if it freed space.
    #[inline]
    pub(super) fn expire(&mut self, now: Instant, paths: &mut [Path]) -> bool {
        // Called for every packet; mostly nothing is or was given up.
        let nothing = self.outstanding.marked == 0 && self.outstanding.abandoned == 0;
        self.forwards && (!nothing || self.queue.expires(now)) && self.give_up(now, paths)
    }

    fn give_up(&mut self, now: Instant, paths: &mut [Path]) -> bool {
        let mut ids = Vec::new();
        let mut freed = self.queue.expire(now, &mut ids);
        if self.outstanding.marked > 0 {
            let over = |sent: &&Sent| {
                sent.status == Status::Marked && sent.policy.gives_up(now, sent.transmissions)
            };
            ids.extend(self.sent.iter().filter(over).map(|sent| sent.id));
        }
        freed |= !ids.is_empty();
        for id in ids {
            self.abandon(id, paths);
        }
        self.advance(now, paths);
        freed
    }

    /// RFC 3758 §3.5 C1 to C3
    fn advance(&mut self, now: Instant, paths: &mut [Path]) {
        let was = self.advanced;
        self.advanced = self.advanced.max(self.cumulative);
        let abandoned = |sent: &&Sent| sent.status == Status::Abandoned;
        debug_assert_eq!(self.outstanding.abandoned, self.sent.iter().filter(abandoned).count());
        if self.outstanding.abandoned == 0 {
            self.forward_due = false;
            return;
        }
        let from = self.advanced.since(self.cumulative) as usize;
        for sent in self.sent.iter().skip(from) {
            if sent.status != Status::Abandoned {
                break;
            }
            self.advanced = sent.tsn;
        }
        if self.advanced <= self.cumulative {
            self.forward_due = false;
            return;
        }
        self.forward_due |= self.advanced > was;
        if paths.iter().all(|path| path.t3.is_none()) {
            let path = super::data_path(paths);
            paths[path].t3 = Some(now + paths[path].rtt.rto());
        }
    }

    /// The SACK is below Advanced.Peer.Ack.Point: repeat the FORWARD TSN (C3), but not too soon,
    /// for the first may be in flight.
    pub(super) fn remind(&mut self, now: Instant, wait: Duration) {
        let waited = now.saturating_since(self.forwarded) >= wait;
        self.forward_due |= waited && self.advanced > self.cumulative;
    }

    /// The FORWARD TSN, of at most `space` bytes; without room for all streams, up to where they fit.
    pub(super) fn forward(&mut self, now: Instant, space: usize) -> Option<Chunk> {
        if !std::mem::take(&mut self.forward_due) {
            return None;
        }
        self.forwarded = now;
        let (mut ssn, mut mid) = (Vec::<(u16, u16)>::new(), Vec::<(u16, bool, u32)>::new());
        let mut cumulative = self.cumulative;
        let given_up = self.sent.iter().take(self.advanced.since(self.cumulative) as usize);
        for Sent { data, tsn, .. } in given_up {
            match data.number {
                Number::Ssn(_) if data.unordered => {}
                Number::Ssn(number) => match ssn.iter_mut().find(|one| one.0 == data.stream) {
                    Some(one) => one.1 = number,
                    None => ssn.push((data.stream, number)),
                },
                Number::Mid(number, _) => {
                    let same = |one: &&mut (u16, bool, u32)| {
                        (one.0, one.1) == (data.stream, data.unordered)
                    };
                    match mid.iter_mut().find(same) {
                        Some(one) => one.2 = number,
                        None => mid.push((data.stream, data.unordered, number)),
                    }
                }
            }
            if 8 + 4 * ssn.len() + 8 * mid.len() > space {
                self.forward_due = true;
                break;
            }
            cumulative = *tsn;
        }
        let mixed = self.queue.interleaving;
        let skipped = if mixed { Skipped::Mid(mid) } else { Skipped::Ssn(ssn) };
        (cumulative > self.cumulative)
            .then(|| Chunk::ForwardTsn(ForwardTsn { cumulative: cumulative.wire(), skipped }))
    }

    /// Whether data may be sent on this path now.
    pub(super) fn wants(&self, index: usize, paths: &[Path], config: &Config) -> bool {
        let path = &paths[index];
        if self.outstanding.marked > 0
            && (path.is_open() || path.forced)
            && self.sent.iter().any(|s| s.status == Status::Marked && target(s, paths) == index)
        {
            return true;
        }
        super::data_path(paths) == index
            && path.is_open_to_new()
            && self.may_cut(path.space(), whole(index, paths), true, config)
    }

    /// Whether a new chunk may be sent in `space` bytes.
    #[inline(always)]
    fn may_cut(&self, space: usize, whole: usize, first: bool, config: &Config) -> bool {
        let Some(bytes) = self.queue.next_bytes(whole) else { return false };
        // Nagle: a partial packet waits while data is in flight.
        let flying = self.outstanding.flying;
        let small = config.nagle && flying > 0 && first && {
            let waiting = self.queue.bytes() + 16;
            waiting < whole
        };
        let held_back = config.ack_clocked && !self.clocked && flying > 0;
        // §6.1 A: with a zero window, one chunk may be in flight as a probe.
        let fits = bytes as u64 <= self.outstanding.peer_rwnd.saturating_add(16) || flying == 0;
        // §6.1: 2^16 - 1 messages; and a Gap Ack Block reaches no further.
        let reached = self.sent.len() < MAX_SENT;
        bytes <= space && fits && reached && !small && !held_back
    }

    /// Queues a message.
    #[inline(always)]
    pub(super) fn push(&mut self, now: Instant, frame: Frame, bytes: usize, how: &Sending) {
        self.clocked |= self.outstanding.flying == 0;
        self.queue.push(now, frame, bytes, how);
    }

    /// Fills `chunks` with what may be sent on this path in `space` bytes.
    pub(super) fn fill(
        &mut self,
        now: Instant,
        index: usize,
        paths: &mut [Path],
        mut space: usize,
        config: &Config,
        chunks: &mut Vec<Chunk>,
    ) {
        let whole = whole(index, paths);
        let new = super::data_path(paths) == index;
        if new && paths[index].flight == 0 {
            paths[index].age(now);
        }
        let new = new && paths[index].is_open_to_new();
        let open = paths[index].is_open() || paths[index].forced;
        if open && self.outstanding.marked > 0 {
            let was = space;
            self.retransmit(now, index, paths, &mut space, chunks);
            if space < was {
                paths[index].forced = false;
            }
        }
        let path = &paths[index];
        // Retransmissions may have filled the window.
        if !new || path.flight >= path.control.window().min(path.burst) {
            return;
        }
        // §6.1 C: new data follows all retransmissions here.
        let waits = |sent: &Sent| sent.status == Status::Marked && target(sent, paths) == index;
        if self.outstanding.marked > 0 && self.sent.iter().any(waits) {
            return;
        }
        let mut first = chunks.iter().all(|chunk| !matches!(chunk, Chunk::Data(_)));
        while (first || config.bundling) && self.may_cut(space, whole, first, config) {
            let Some(chunk) = self.send_new(now, index, paths, whole) else { break };
            space = space.saturating_sub(chunk.wire_bytes());
            chunks.push(chunk);
            first = false;
        }
    }

    /// §6.1 C: lost chunks go first.
    fn retransmit(
        &mut self,
        now: Instant,
        index: usize,
        paths: &mut [Path],
        space: &mut usize,
        chunks: &mut Vec<Chunk>,
    ) {
        let outstanding = &mut self.outstanding;
        let mut earlier = false;
        for sent in &mut self.sent {
            if outstanding.marked == 0 {
                break;
            }
            earlier |= sent.status == Status::Flying && sent.path == index;
            if sent.status != Status::Marked || target(sent, paths) != index {
                continue;
            }
            let bytes = sent.wire_bytes() as usize;
            // A chunk cut for a larger MTU stays whole.
            let alone = chunks.is_empty() && bytes > paths[index].space();
            if bytes > *space && !alone {
                break;
            }
            *space = space.saturating_sub(bytes);
            outstanding.marked -= 1;
            outstanding.flying += sent.user_bytes();
            outstanding.peer_rwnd = outstanding.peer_rwnd.saturating_sub(sent.user_bytes());
            sent.moved |= sent.path != index;
            (sent.status, sent.path, sent.elsewhere) = (Status::Flying, index, false);
            sent.transmissions += 1;
            // §6.3.1 C5: nothing later is timed either.
            for path in &mut *paths {
                path.timed = path.timed.filter(|(tsn, _)| *tsn < sent.tsn);
            }
            let path = &mut paths[index];
            path.on_sent(now, bytes as u64);
            if !earlier {
                // §6.1, §7.2.4 step 4
                path.t3 = Some(now + path.rtt.rto());
            }
            earlier = true;
            chunks.push(Chunk::Data(sent.data.clone()));
        }
    }

    fn send_new(
        &mut self,
        now: Instant,
        index: usize,
        paths: &mut [Path],
        longest: usize,
    ) -> Option<Chunk> {
        let (tsn, path) = (self.next, &mut paths[index]);
        let sent = self.queue.cut(longest, tsn, index)?;
        self.next += 1;
        let bytes = sent.user_bytes();
        self.held += bytes as usize;
        self.outstanding.flying += bytes;
        self.outstanding.peer_rwnd = self.outstanding.peer_rwnd.saturating_sub(bytes);
        path.on_sent(now, sent.wire_bytes());
        path.timed = path.timed.or(Some((tsn, now)));
        let chunk = Chunk::Data(sent.data.clone());
        self.sent.push_back(sent);
        Some(chunk)
    }
}

/// Gap Ack Blocks as disjoint ones in order: unchanged, unless the receiver is unusual.
fn in_order(gaps: &[(u16, u16)]) -> Cow<'_, [(u16, u16)]> {
    if gaps.is_sorted_by(|one, next| one.1 < next.0) {
        return Cow::Borrowed(gaps);
    }
    let mut gaps = gaps.to_vec();
    gaps.sort_unstable();
    gaps.dedup_by(|next, one| {
        let meets = next.0 <= one.1;
        if meets {
            one.1 = one.1.max(next.1);
        }
        meets
    });
    Cow::Owned(gaps)
}

/// Bytes of the longest DATA chunk for new data on a path: it fits all paths, since it may be
/// retransmitted on another (§6.9, §7.3: AMDCS).
fn whole(index: usize, paths: &[Path]) -> usize {
    paths.iter().fold(paths[index].space(), |least, path| least.min(path.space()))
}

/// The path for a lost chunk: another one after a timeout (§6.4.1).
fn target(sent: &Sent, paths: &[Path]) -> usize {
    if sent.elsewhere { super::other_path(paths, sent.path) } else { super::data_path(paths) }
}

fn on_acked(now: Instant, sent: &Sent, path: &mut Path) {
    path.news.acked += sent.wire_bytes();
    // §8.2: the error counter of the path it was last sent on. RFC 7829 §3.2 rule 9: for a chunk
    // sent on several paths it is unknown which one answered, unless the last was active anyway.
    if !sent.moved || path.reachable == Reachable::Active {
        path.on_answer();
    }
    if let Some((_, at)) = path.timed.filter(|(tsn, _)| *tsn == sent.tsn) {
        path.timed = None;
        if sent.transmissions == 1 {
            path.rtt.sample(now.saturating_since(at), 1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_that_overlap_are_as_those_that_do_not() {
        assert_eq!(*in_order(&[(2, 3), (5, 9)]), [(2, 3), (5, 9)]);
        let strange = [(5, 9), (2, 6), (11, 12), (6, 7), (11, 11)];
        assert_eq!(*in_order(&strange), [(2, 9), (11, 12)]);
    }
}
