//! Data Dropped (RFC 4340 §11.7): packets that arrived but whose data did not reach the
//! application. This module reads option 40; the connection writes it.

use super::options::{Iter, Opt, Options};
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
    let next = options.may_have(40).then_some(ack);
    Reader { options: options.iter(), blocks: &[], next }
}

struct Reader<'a> {
    options: Iter<'a>,
    blocks: &'a [u8],
    next: Option<SeqNo>,
}

impl Iterator for Reader<'_> {
    type Item = Dropped;

    fn next(&mut self) -> Option<Dropped> {
        loop {
            let newest = self.next?;
            while self.blocks.is_empty() {
                if let Ok(Opt::DataDropped(blocks)) = self.options.next()? {
                    self.blocks = blocks;
                }
            }
            let (block, rest) = self.blocks.split_first()?;
            self.blocks = rest;
            // A normal block has a run length of seven bits; a drop block has one of four, after a
            // code of three.
            let (code, more) = match block {
                0..128 => (None, block & 0x7f),
                _ => (Some(DropCode(block >> 4 & 7)), block & 0x0f),
            };
            let oldest = newest.back(u64::from(more));
            self.next = (oldest > SeqNo::default()).then(|| oldest.back(1));
            if let Some(code) = code {
                return Some(Dropped { newest, oldest, code });
            }
        }
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
}
