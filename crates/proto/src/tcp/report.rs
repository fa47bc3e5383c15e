//! What the receive side tells of data beyond a gap: the blocks of the SACK option (RFC 2018 §4),
//! the first of which may name a duplicate (RFC 2883 §4).

use super::reassembly::Reassembly;
use super::segment::SackBlocks;
use crate::seq::Seq;

/// Runs remembered, most recent first; an option never names more.
const MOST: usize = SackBlocks::MOST;

/// Which runs to name, in which order.
#[derive(Debug, Default)]
pub(super) struct Report {
    /// A number in each run, that of the latest arrival first.
    recent: [Seq; MOST],
    count: usize,
    /// What the last segment brought a second time.
    duplicate: Option<(Seq, Seq)>,
}

impl Report {
    /// A segment came that is not next in order: notes which of its bytes were here before, given
    /// RCV.NXT and the store as they were before it.
    pub(super) fn before(&mut self, start: Seq, end: Seq, nxt: Seq, store: &Reassembly) {
        self.duplicate = if start < nxt {
            // RFC 2883 §4.1
            Some((start, end.min(nxt)))
        } else {
            // RFC 2883 §4.2
            store.run(start).map(|(_, until)| (start, end.min(until)))
        }
        .filter(|(start, end)| start < end);
    }

    /// The byte at `seq` was kept behind a gap. RFC 2018 §4: its run is named first.
    pub(super) fn after(&mut self, seq: Seq, store: &Reassembly) {
        let Some((start, end)) = store.run(seq) else { return };
        let (mut recent, mut count) = ([seq; MOST], 1);
        for other in &self.recent[..self.count] {
            if !(start..end).contains(other) && count < MOST {
                recent[count] = *other;
                count += 1;
            }
        }
        (self.recent, self.count) = (recent, count);
    }

    /// True if an acknowledgement has blocks to carry.
    #[inline]
    pub(super) fn has_blocks(&self, store: &Reassembly) -> bool {
        self.duplicate.is_some() || !store.is_empty()
    }

    /// The blocks for `room` bytes of options. A duplicate is told once.
    pub(super) fn blocks(&mut self, room: usize, store: &Reassembly) -> Option<Box<SackBlocks>> {
        let most = room.saturating_sub(SackBlocks::option_bytes(0)) / 8;
        let duplicate = self.duplicate.take().into_iter();
        let runs = self.recent[..self.count].iter().filter_map(|seq| store.run(*seq));
        let wire = |(start, end): (Seq, Seq)| (start.wire(), end.wire());
        SackBlocks::of(duplicate.chain(runs).take(most).map(wire))
    }
}
