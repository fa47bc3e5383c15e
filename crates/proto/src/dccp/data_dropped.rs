//! Data Dropped (RFC 4340 §11.7, option 40): packets that arrived but whose data did not reach the application,
//! and why. It is repeated until an acknowledgement shows that it was received.

use std::collections::VecDeque;

use super::ackvec::{backwards, last_arrived};
use super::options::{Opt, Options};
use super::seqno::SeqNo;

/// Why data was dropped (§11.7, table 7).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DropCode(pub u8);

impl DropCode {
    /// 0: the protocol did not allow delivery (such as data on a Request).
    pub const PROTOCOL_CONSTRAINTS: Self = Self(0);
    /// 1: the application no longer listens.
    pub const NOT_LISTENING: Self = Self(1);
    /// 2: the receive buffer was full.
    pub const RECEIVE_BUFFER: Self = Self(2);
    /// 3: the data was corrupt.
    pub const CORRUPT: Self = Self(3);
}

/// Consecutive packets whose data was dropped for the same reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dropped {
    /// The newest packet.
    pub newest: SeqNo,
    /// The oldest packet.
    pub oldest: SeqNo,
    /// The reason.
    pub code: DropCode,
}

/// The drops reported by the Data Dropped options of a packet with this Acknowledgement Number.
pub fn dropped(ack: SeqNo, options: &Options) -> impl Iterator<Item = Dropped> {
    let options = options.may_have(40).then(|| options.iter()).into_iter().flatten();
    let blocks = options.filter_map(|option| match option {
        Ok(Opt::DataDropped(blocks)) => Some(blocks),
        _ => None,
    });
    // A normal block has a run length of seven bits; a drop block has one of four, after a code of three.
    let blocks = blocks.flatten().map(|block| match block {
        0..128 => (None, block & 0x7f),
        _ => (Some(DropCode(block >> 4 & 7)), block & 0x0f),
    });
    let runs = backwards(ack, blocks);
    runs.filter_map(|(newest, oldest, code)| Some(Dropped { newest, oldest, code: code? }))
}

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
pub(super) struct ToReport {
    /// Ordered by sequence number.
    entries: Vec<Entry>,
    /// Packets sent with the option, in order; each carried all entries reported by then.
    carriers: VecDeque<SeqNo>,
}

impl ToReport {
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

    /// The other side acknowledges packets of this side, some of which carried the option (§11.7).
    pub(super) fn on_ack(&mut self, ack: SeqNo, options: &Options) {
        if let Some(index) = last_arrived(&self.carriers, |carrier| *carrier, ack, options) {
            let heard = self.carriers[index];
            self.carriers.drain(..=index);
            self.entries.retain(|entry| entry.told.is_none_or(|told| told > heard));
        }
    }

    /// Appends the option to the packet `seq`, which acknowledges `ack`, if it takes at most `room` bytes.
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
    fn blocks_are_counted_from_the_acknowledgement_number_back() {
        // 100 and 99 delivered; 98 to 96 dropped for a full buffer; 95 delivered; 94 corrupt. In the next
        // option: 93 with no listener.
        let mut options = Options::default();
        options.push(Opt::DataDropped(&[0x01, 0xa2, 0x00, 0xb0]));
        options.push(Opt::DataDropped(&[0x90]));
        let first = |number| SeqNo::first(number);
        let all: Vec<_> = dropped(first(100), &options).collect();
        let expected = [
            (98, 96, DropCode::RECEIVE_BUFFER),
            (94, 94, DropCode::CORRUPT),
            (93, 93, DropCode::NOT_LISTENING),
        ];
        assert_eq!(
            all,
            expected.map(|(newest, oldest, code)| Dropped {
                newest: first(newest),
                oldest: first(oldest),
                code
            })
        );
    }

    #[test]
    fn blocks_by_hand() {
        let mut dropped = ToReport::default();
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
