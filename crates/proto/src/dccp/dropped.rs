//! Data Dropped (RFC 4340 §11.7): which packets arrived but whose application data was not delivered,
//! and why; repeated until an acknowledgement shows that the report was received.

use std::collections::VecDeque;

use super::ackvec::{Run, State, runs};
use super::data_dropped::DropCode;
use super::options::{Opt, Options};
use super::seqno::SeqNo;

/// Maximum number of packets reported at once; the oldest are dropped.
const MOST: usize = 32;
/// Maximum number of packets in a normal block (§11.7: seven bits, plus one).
const LONGEST_RUN: u64 = 128;
/// How far before the acknowledged packet entries are reported, to keep the option short.
const REACH: u64 = 16 * LONGEST_RUN;

/// One packet.
#[derive(Clone, Copy, Debug)]
struct Entry {
    seq: SeqNo,
    code: DropCode,
    /// The first packet that reported it.
    told: Option<SeqNo>,
}

/// The packets to report.
#[derive(Debug, Default)]
pub(super) struct Dropped {
    /// Ordered by sequence number.
    entries: Vec<Entry>,
    /// Packets sent with the option, in order; each carried all entries reported by then.
    carriers: VecDeque<SeqNo>,
}

impl Dropped {
    /// Bytes held.
    pub(super) fn footprint(&self) -> usize {
        self.entries.capacity() * size_of::<Entry>() + self.carriers.capacity() * size_of::<SeqNo>()
    }

    pub(super) fn note(&mut self, seq: SeqNo, code: DropCode) {
        if self.entries.len() == MOST {
            self.entries.remove(0);
        }
        let at = self.entries.partition_point(|entry| entry.seq < seq);
        self.entries.insert(at, Entry { seq, code, told: None });
    }

    /// True if there is an entry not yet reported.
    pub(super) fn is_news(&self) -> bool {
        self.entries.iter().any(|entry| entry.told.is_none())
    }

    /// The other side acknowledges packets of this side. An acknowledgement of a later packet says nothing
    /// about earlier carriers of the option (§11.7): only the packet it names, and those that its Ack
    /// Vectors report, have arrived.
    pub(super) fn on_ack(&mut self, ack: SeqNo, options: &Options) {
        if self.carriers.is_empty() {
            return;
        }
        let exact = Run { newest: ack, oldest: ack, state: State::Received };
        let heard = std::iter::once(exact).chain(runs(ack, options)).find_map(|run| {
            let below = self.carriers.partition_point(|carrier| *carrier <= run.newest);
            let carrier = *self.carriers.get(below.checked_sub(1)?)?;
            (run.state.arrived() && carrier >= run.oldest).then_some(carrier)
        });
        if let Some(heard) = heard {
            self.entries.retain(|entry| entry.told.is_none_or(|told| told > heard));
            self.carriers.retain(|carrier| *carrier > heard);
        }
    }

    /// Appends the option to the packet `seq`, which acknowledges `ack`, if it takes at most
    /// `room` bytes.
    pub(super) fn write(&mut self, seq: SeqNo, ack: SeqNo, room: usize, out: &mut Options) {
        self.entries.retain(|entry| ack.since(entry.seq) < REACH);
        let (mut blocks, mut next) = (Vec::new(), ack);
        for entry in self.entries.iter().rev().filter(|entry| entry.seq <= ack) {
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
        for entry in self.entries.iter_mut().filter(|entry| entry.seq <= ack) {
            entry.told.get_or_insert(seq);
        }
        if self.carriers.len() == MOST {
            self.carriers.pop_front();
        }
        self.carriers.push_back(seq);
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
        let none = Options::default();
        // The packet that carried the option was lost; a later one without it is acknowledged.
        dropped.on_ack(SeqNo::first(2), &none);
        let mut out = Options::default();
        dropped.write(SeqNo::first(3), SeqNo::first(12), 100, &mut out);
        assert_eq!(out.as_bytes(), [40, 6, 0x01, 0xb0, 0x01, 0x80]);
        dropped.on_ack(SeqNo::first(3), &none);
        let mut out = Options::default();
        dropped.write(SeqNo::first(4), SeqNo::first(12), 100, &mut out);
        assert!(out.is_empty());
    }
}
