//! What the receive side reports about data beyond a gap: the blocks of the SACK option (RFC 2018
//! §4), the first of which may report a duplicate (RFC 2883 §4).

use super::reassembly::Reassembly;
use super::segment::SackBlocks;
use crate::seq::Seq;

/// Runs remembered, most recent first; an option never has more.
const MOST: usize = SackBlocks::MOST;

/// A run of bytes, identified by one of them.
#[derive(Clone, Copy, Debug, Default)]
struct Run {
    seq: Seq,
    start: Seq,
    end: Seq,
}

/// The runs to report, in order.
#[derive(Debug, Default)]
pub(super) struct Report {
    /// The latest arrival first.
    recent: [Run; MOST],
    count: usize,
    /// The duplicate data of the last segment.
    duplicate: Option<(Seq, Seq)>,
    /// Position of a FIN beyond a gap.
    fin: Option<Seq>,
}

impl Report {
    /// An out-of-order segment arrived: records which of its bytes were already here, given RCV.NXT
    /// and the store before it.
    pub(super) fn before(&mut self, start: Seq, end: Seq, nxt: Seq, store: &Reassembly) {
        self.duplicate = if start < nxt {
            // RFC 2883 §4.1
            Some((start, end.min(nxt)))
        } else {
            // RFC 2883 §4.2
            self.run(start, store).map(|(_, until)| (start, end.min(until)))
        }
        .filter(|(start, end)| start < end);
    }

    /// The contiguous run that contains `seq`, if that is kept. RFC 2018 §3: a block is a run of
    /// sequence numbers, so that a kept FIN belongs to it.
    fn run(&self, seq: Seq, store: &Reassembly) -> Option<(Seq, Seq)> {
        let Some(fin) = self.fin else { return store.run(seq) };
        let data = store.run(if seq == fin { fin.back(1) } else { seq });
        match data {
            Some((start, end)) if end == fin => Some((start, fin + 1)),
            _ if seq == fin => Some((fin, fin + 1)),
            _ => data,
        }
    }

    /// A FIN beyond a gap arrived: it is kept and reported like data. If it came `again`, it is a
    /// duplicate with the data before it (RFC 2883 §4.2).
    pub(super) fn on_fin(&mut self, fin: Seq, again: bool, store: &Reassembly) {
        self.fin = Some(fin);
        if again {
            let data = self.duplicate.filter(|(_, end)| *end == fin);
            self.duplicate = Some((data.map_or(fin, |(start, _)| start), fin + 1));
        }
        self.after(fin, store);
    }

    /// Everything has arrived, including the FIN.
    pub(super) fn on_end(&mut self) {
        self.fin = None;
    }

    /// The number `seq` was kept beyond a gap. RFC 2018 §4: its run is reported first.
    pub(super) fn after(&mut self, seq: Seq, store: &Reassembly) {
        let Some((start, end)) = self.run(seq, store) else { return };
        let (mut recent, mut count) = ([Run { seq, start, end }; MOST], 1);
        for other in &self.recent[..self.count] {
            if !(start..end).contains(&other.seq) && count < MOST {
                recent[count] = *other;
                count += 1;
            }
        }
        // Only the run of the arrived data has changed, unless other data was dropped for it.
        if store.is_full() {
            for run in &mut recent[1..count] {
                (run.start, run.end) = self.run(run.seq, store).unwrap_or_default();
            }
        }
        (self.recent, self.count) = (recent, count);
    }

    /// True if an acknowledgement has blocks to carry.
    #[inline]
    pub(super) fn has_blocks(&self, store: &Reassembly) -> bool {
        self.duplicate.is_some() || !store.is_empty() || self.fin.is_some()
    }

    /// The blocks for `room` bytes of options. A duplicate is reported once.
    pub(super) fn blocks(&mut self, room: usize, store: &Reassembly) -> Option<Box<SackBlocks>> {
        let most = room.saturating_sub(SackBlocks::option_bytes(0)) / 8;
        let duplicate = self.duplicate.take().into_iter();
        // Everything before the store is in order by now.
        let begin = store.begin().or(self.fin);
        let kept = |run: &&Run| begin.is_some_and(|begin| begin <= run.start);
        let runs = self.recent[..self.count].iter().filter(kept).map(|run| (run.start, run.end));
        let wire = |(start, end): (Seq, Seq)| (start.wire(), end.wire());
        SackBlocks::of(duplicate.chain(runs).take(most).map(wire))
    }
}

#[cfg(test)]
mod tests {
    use super::super::reassembly::Took;
    use super::*;
    use crate::packet::Payload;
    use proptest::prelude::*;

    /// A receiver, and beside it a model of the report that looks up each run again.
    struct Pair {
        nxt: Seq,
        store: Reassembly,
        report: Report,
        recent: Vec<Seq>,
        real: bool,
    }

    impl Pair {
        fn new(nxt: Seq, real: bool) -> Self {
            let (store, report) = (Reassembly::default(), Report::default());
            Self { nxt, store, report, recent: Vec::new(), real }
        }

        /// `len` bytes from `start` arrive; true if both report the same.
        fn agrees(&mut self, start: Seq, len: u64) -> bool {
            // The part that the receiver would cut off.
            let cut = self.nxt.since(start).min(len);
            let (start, len) = (start + cut, len - cut);
            let payload = match self.real {
                true => Payload::Real(vec![0; len as usize].into()),
                false => Payload::Virtual { offset: 0, len },
            };
            if self.store.take(&mut self.nxt, start, payload) == Took::OutOfOrder {
                self.report.after(start, &self.store);
                if let Some((from, to)) = self.store.run(start) {
                    self.recent.retain(|other| !(from..to).contains(other));
                    self.recent.insert(0, start);
                    self.recent.truncate(MOST);
                }
            }
            let told = self.report.blocks(usize::MAX, &self.store);
            let wire = |(start, end): (Seq, Seq)| (start.wire(), end.wire());
            let runs = self.recent.iter().filter_map(|seq| self.store.run(*seq));
            told == SackBlocks::of(runs.map(wire))
        }
    }

    proptest! {
        #[test]
        fn runs_are_those_of_the_store(
            pieces in proptest::collection::vec((0..200_u64, 1..20_u64), 0..200),
            real: bool,
        ) {
            let start = Seq::first(u32::MAX - 100);
            let mut pair = Pair::new(start, real);
            for (at, len) in pieces {
                // Mostly the first byte is missing.
                prop_assert!(pair.agrees(start + at + u64::from(at % 50 > 0), len));
            }
        }
    }

    /// Where the farthest pieces are dropped, and one is not kept at all.
    #[test]
    fn runs_are_those_of_a_full_store() {
        let start = Seq::first(0);
        for real in [false, true] {
            let mut pair = Pair::new(start, real);
            // Adjacent bytes are one run; real ones are two pieces, of which the second is dropped first.
            let others = if real { 4094 } else { 4095 };
            assert!((0..others).all(|i| pair.agrees(start + 1000 + 2 * i, 1)));
            assert!(pair.agrees(start + 20_000, 3) && pair.agrees(start + 20_003, 2));
            assert!(pair.store.is_full());
            assert!([2, 6, 10, 30_000, 4, 1].into_iter().all(|at| pair.agrees(start + at, 1)));
        }
    }
}
