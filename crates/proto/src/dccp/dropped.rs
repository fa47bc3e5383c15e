//! Data Dropped (RFC 4340 §11.7): which packets arrived whose application data was not delivered,
//! and why; told until an acknowledgement shows that it was heard.

use super::data_dropped::DropCode;
use super::options::{Opt, Options};
use super::seqno::SeqNo;

/// Most packets told of at once; the oldest are forgotten.
const MOST: usize = 32;
/// Packets a normal block counts at most (§11.7: seven bits, plus one).
const LONGEST_RUN: u64 = 128;
/// Packets before the acknowledged one that are still told of, so that the option stays short.
const REACH: u64 = 16 * LONGEST_RUN;

/// One packet.
#[derive(Clone, Copy, Debug)]
struct Entry {
    seq: SeqNo,
    code: DropCode,
    /// The first packet that told of it.
    told: Option<SeqNo>,
}

/// The packets to tell of, in order of their numbers.
#[derive(Debug, Default)]
pub(super) struct Dropped(Vec<Entry>);

impl Dropped {
    /// Bytes held.
    pub(super) fn footprint(&self) -> usize {
        self.0.capacity() * size_of::<Entry>()
    }

    pub(super) fn note(&mut self, seq: SeqNo, code: DropCode) {
        if self.0.len() == MOST {
            self.0.remove(0);
        }
        let at = self.0.partition_point(|entry| entry.seq < seq);
        self.0.insert(at, Entry { seq, code, told: None });
    }

    /// True if there is something nobody was told yet.
    pub(super) fn is_news(&self) -> bool {
        self.0.iter().any(|entry| entry.told.is_none())
    }

    /// The other side acknowledged this packet of ours.
    pub(super) fn on_ack(&mut self, ack: SeqNo) {
        self.0.retain(|entry| entry.told.is_none_or(|told| told > ack));
    }

    /// Appends the option to the packet `seq`, which acknowledges `ack`, if it has no more than
    /// `room` bytes.
    pub(super) fn write(&mut self, seq: SeqNo, ack: SeqNo, room: usize, out: &mut Options) {
        self.0.retain(|entry| ack.since(entry.seq) < REACH);
        let (mut blocks, mut next) = (Vec::new(), ack);
        for entry in self.0.iter().rev().filter(|entry| entry.seq <= ack) {
            let mut before = next.since(entry.seq);
            while before > 0 {
                let run = before.min(LONGEST_RUN);
                blocks.push((run - 1) as u8);
                before -= run;
            }
            // §11.7: a drop block of one packet.
            blocks.push(0x80 | entry.code.0 << 4);
            next = entry.seq.back(1);
        }
        if blocks.is_empty() || out.as_bytes().len() + 2 + blocks.len() > room {
            return;
        }
        out.push(Opt::DataDropped(&blocks));
        for entry in &mut self.0 {
            entry.told.get_or_insert(seq);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_by_hand() {
        let mut dropped = Dropped::default();
        dropped.note(SeqNo::first(10), DropCode::CORRUPT);
        dropped.note(SeqNo::first(7), DropCode::PROTOCOL_CONSTRAINTS);
        let mut out = Options::default();
        dropped.write(SeqNo::first(1), SeqNo::first(12), 100, &mut out);
        // 12 and 11 normal, 10 corrupt, 9 and 8 normal, 7 a protocol constraint.
        assert_eq!(out.as_bytes(), [40, 6, 0x01, 0xb0, 0x01, 0x80]);
        assert!(!dropped.is_news());
        dropped.on_ack(SeqNo::first(1));
        let mut out = Options::default();
        dropped.write(SeqNo::first(2), SeqNo::first(12), 100, &mut out);
        assert!(out.is_empty());
    }
}
