//! The receiving half: TSNs received, contents and timing of SACKs, and the receive window
//! (RFC 9260 §6.2, §6.7).

use std::collections::VecDeque;

use super::packet::{Data, ForwardTsn, Sack};
use super::reassembly::{Reassembly, Violation};
use crate::packet::PathId;
use crate::seq::Seq;
use crate::time::{Duration, Instant};

/// The furthest TSN that fits a Gap Ack Block (§3.3.4: 16 bits).
const REACH: u64 = 0xffff;
/// Maximum parts and waiting messages, however short; gaps of 16 bits hold no more.
const MAX_PIECES: usize = REACH as usize;
/// Maximum duplicates per SACK; more add no information.
const DUPLICATES: usize = 32;

/// The receiving half.
#[derive(Debug, Default)]
pub(super) struct Receiver {
    /// All TSNs up to here arrived.
    cumulative: Seq,
    /// TSNs beyond: first and last of each run, with a gap before each.
    above: VecDeque<(Seq, Seq)>,
    duplicates: Vec<u32>,
    pub(super) reassembly: Reassembly,
    buffer_bytes: usize,
    /// Packets with data since the last SACK; `None` before any.
    unacked: Option<u32>,
    /// The SACK is due now.
    pub(super) due: bool,
    /// Its deadline.
    pub(super) delayed: Option<Instant>,
    /// The path of the last data, on which SACKs are sent (§6.4).
    pub(super) path: PathId,
}

impl Receiver {
    pub(super) fn new(initial: u32, buffer_bytes: usize) -> Self {
        let cumulative = Seq::first(initial).back(1);
        Self { cumulative, buffer_bytes, ..Self::default() }
    }

    /// Bytes of memory held.
    pub(super) fn footprint(&self) -> usize {
        self.above.len() * size_of::<(Seq, Seq)>()
            + self.duplicates.len() * size_of::<u32>()
            + self.reassembly.footprint()
    }

    pub(super) fn cumulative(&self) -> Seq {
        self.cumulative
    }

    /// False if there is no room for the chunk, or it is too far ahead.
    pub(super) fn on_data(&mut self, now: Instant, data: Data) -> Result<bool, Violation> {
        let tsn = self.cumulative.near(data.tsn);
        if self.has(tsn) {
            // §6.2: duplicates are reported, and at once.
            if self.duplicates.len() < DUPLICATES {
                self.duplicates.push(data.tsn);
            }
            self.due = true;
            return Ok(true);
        }
        let bytes = data.payload.wire_bytes();
        let held = self.reassembly.held();
        let newest = self.above.back().is_none_or(|(_, highest)| tsn > *highest);
        // §6.2: without room a TSN beyond the highest is dropped; the next in order is always
        // accepted, to prevent a deadlock.
        let room = if newest { self.buffer_bytes } else { self.buffer_bytes.saturating_mul(2) };
        let next = tsn == self.cumulative + 1;
        // The next message is delivered at once if complete. Parts of one that never ends, and messages behind
        // one that never arrives, accumulate. A compliant peer fills at most the window, and gaps in it.
        let most = self.buffer_bytes.saturating_mul(3).saturating_add(usize::from(u16::MAX));
        if next && (held.bytes + bytes > most || held.pieces > MAX_PIECES) {
            return Err("more is to be kept than was offered");
        }
        if tsn.since(self.cumulative) > REACH || (held.bytes + bytes > room && !next) {
            self.due = true;
            return Ok(false);
        }
        self.due |= data.immediate;
        self.note(tsn);
        // §6.7: a gap and its filling are reported at once.
        self.due |= !self.above.is_empty() || !newest;
        self.reassembly.add(now, tsn, data)?;
        Ok(true)
    }

    /// A chunk of a stream that does not exist is acknowledged and dropped (§6.5).
    pub(super) fn ignore(&mut self, data: &Data) {
        let tsn = self.cumulative.near(data.tsn);
        if tsn.since(self.cumulative) <= REACH && !self.has(tsn) {
            self.note(tsn);
        }
        self.due = true;
    }

    /// The first run that does not end before a TSN.
    fn run_at(&self, tsn: Seq) -> usize {
        self.above.partition_point(|(_, last)| *last < tsn)
    }

    fn has(&self, tsn: Seq) -> bool {
        let within = |(first, _): &(Seq, Seq)| *first <= tsn;
        tsn <= self.cumulative || self.above.get(self.run_at(tsn)).is_some_and(within)
    }

    /// Records the arrival of a TSN.
    fn note(&mut self, tsn: Seq) {
        if tsn == self.cumulative + 1 {
            self.cumulative = tsn;
            return self.advance();
        }
        let at = self.run_at(tsn);
        let follows = at > 0 && self.above[at - 1].1 + 1 == tsn;
        let leads = self.above.get(at).is_some_and(|(first, _)| tsn + 1 == *first);
        match (follows, leads) {
            (true, true) => {
                self.above[at - 1].1 = self.above[at].1;
                self.above.remove(at);
            }
            (true, false) => self.above[at - 1].1 = tsn,
            (false, true) => self.above[at].0 = tsn,
            (false, false) => self.above.insert(at, (tsn, tsn)),
        }
    }

    /// Merges runs without a gap before them into `cumulative`.
    fn advance(&mut self) {
        while let Some((first, last)) = self.above.front()
            && *first <= self.cumulative + 1
        {
            self.cumulative = self.cumulative.max(*last);
            self.above.pop_front();
        }
    }

    /// After a packet with data. §5.1: acknowledges the first at once; §6.2: then after `every`
    /// packets or `delay`.
    pub(super) fn on_packet(&mut self, now: Instant, path: PathId, delay: Duration, every: u32) {
        self.path = path;
        let unacked = self.unacked.map_or(every.max(1), |unacked| unacked + 1);
        self.unacked = Some(unacked);
        if unacked >= every.max(1) {
            self.due = true;
        } else if self.delayed.is_none() {
            self.delayed = Some(now + delay);
        }
    }

    /// RFC 3758 §3.6: acknowledged like data, at once if it is out of date or next to a gap, else
    /// with a later packet or after the delay.
    pub(super) fn on_forward(&mut self, forward: &ForwardTsn) {
        let to = self.cumulative.near(forward.cumulative);
        if to <= self.cumulative {
            self.due = true;
            return;
        }
        self.due |= !self.above.is_empty();
        self.cumulative = to;
        self.advance();
        self.reassembly.skip(to, &forward.skipped);
    }

    /// True if a SACK is pending, now or later.
    pub(super) fn owes(&self) -> bool {
        self.due || self.delayed.is_some()
    }

    pub(super) fn a_rwnd(&self) -> u32 {
        let free = self.buffer_bytes.saturating_sub(self.reassembly.held().bytes);
        u32::try_from(free).unwrap_or(u32::MAX)
    }

    /// The SACK, of at most `space` bytes; it is then no longer pending.
    pub(super) fn sack(&mut self, space: usize) -> Sack {
        let blocks = space.saturating_sub(16) / 4;
        let offset = |tsn: Seq| tsn.since(self.cumulative) as u16;
        let runs = self.above.iter().take(blocks);
        let gaps: Vec<_> = runs.map(|(first, last)| (offset(*first), offset(*last))).collect();
        let mut duplicates = std::mem::take(&mut self.duplicates);
        duplicates.truncate(blocks - gaps.len());
        (self.due, self.delayed, self.unacked) = (false, None, Some(0));
        Sack { cumulative: self.cumulative.wire(), a_rwnd: self.a_rwnd(), gaps, duplicates }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::rng::Rng;
    use crate::sctp::Skipped;

    /// Runs equal the set of received TSNs, for any order of arrival.
    #[test]
    fn runs_are_the_set_of_what_came() {
        let mut rng = Rng::new(1, "tsn");
        let mut receiver = Receiver::new(u32::MAX - 20, 0);
        let (mut cumulative, mut set) = (receiver.cumulative, BTreeSet::new());
        for turn in 0..5000 {
            let tsn = cumulative + rng.bits() % 40;
            if turn % 50 == 49 {
                let skipped = Skipped::Ssn(Vec::new());
                receiver.on_forward(&ForwardTsn { cumulative: tsn.wire(), skipped });
                cumulative = tsn;
                set = set.split_off(&(tsn + 1));
            } else {
                assert_eq!(receiver.has(tsn), tsn <= cumulative || set.contains(&tsn));
                if tsn > cumulative && set.insert(tsn) {
                    receiver.note(tsn);
                }
            }
            while set.remove(&(cumulative + 1)) {
                cumulative += 1;
            }
            let mut gaps = Vec::<(u16, u16)>::new();
            for tsn in &set {
                let offset = tsn.since(cumulative) as u16;
                match gaps.last_mut() {
                    Some(gap) if gap.1 + 1 == offset => gap.1 = offset,
                    _ => gaps.push((offset, offset)),
                }
            }
            let sack = receiver.sack(1000);
            assert_eq!((sack.cumulative, sack.gaps), (cumulative.wire(), gaps));
        }
    }
}
