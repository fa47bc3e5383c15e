//! Ack Vectors (RFC 4340 §11.4 and appendix A): which packets arrived, run by run.
//!
//! [`AckVector`] is the receiver's buffer: it records every packet, writes option 38 on
//! acknowledgements and discards what the other side is known to have received. [`runs`] reads
//! options 38 and 39 of a packet. Congestion control is elsewhere.

use std::collections::VecDeque;

use super::options::{Opt, Options};
use super::seqno::SeqNo;
use crate::packet::Ecn;

/// Maximum cells of the buffer: as many as fit in two options. The oldest are dropped first, and
/// their packets are never reported (§11.4: such packets count as not yet received).
pub const MAX_CELLS: usize = 2 * CELLS_PER_OPTION;
/// Maximum number of acknowledgements remembered until acknowledged; the oldest are dropped first.
const MAX_RECORDS: usize = 1024;
/// §11.4: an option is at most 255 bytes long, two of which are its type and length.
const CELLS_PER_OPTION: usize = 253;
/// Packets in a cell whose six length bits are all ones (§11.4).
const LONGEST_RUN: u8 = 64;

/// State of a packet (§11.4, table 6).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum State {
    /// 0: received.
    Received = 0,
    /// 1: received with the ECN field at CE.
    Marked = 1,
    /// 2: reserved; never written, ignored when read.
    Reserved = 2,
    /// 3: not yet received.
    NotYet = 3,
}

impl State {
    const fn of(cell: u8) -> Self {
        match cell >> 6 {
            0 => Self::Received,
            1 => Self::Marked,
            2 => Self::Reserved,
            _ => Self::NotYet,
        }
    }
    /// True for packets that count as acknowledged: received, marked or not.
    #[must_use]
    pub const fn arrived(self) -> bool {
        matches!(self, Self::Received | Self::Marked)
    }
}

/// How a packet relates to the buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Noted {
    /// Newer than all earlier packets.
    New,
    /// Older than the newest, and missing before.
    Late,
    /// Received before.
    Duplicate,
    /// Too old to be recorded: a duplicate, or too late.
    Forgotten,
}

/// Consecutive packets in one state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// The newest packet.
    pub newest: SeqNo,
    /// The oldest packet.
    pub oldest: SeqNo,
    /// State of each packet.
    pub state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Cell {
    state: State,
    /// 1 to 64.
    count: u8,
}

/// The packets a receiver must still acknowledge.
///
/// Record every packet whose options were processed before writing an acknowledgement: the first cell
/// then describes the packet with the Acknowledgement Number.
#[derive(Clone, Debug, Default)]
pub struct AckVector {
    /// The newest packet received (A: `buf_ackno`).
    newest: Option<SeqNo>,
    /// From the newest packet back; its first cell is never `NotYet`.
    cells: VecDeque<Cell>,
    /// Packets the cells cover.
    covered: u64,
    /// Packets sent with a vector, oldest first: the number of each, and the newest packet it reported.
    records: VecDeque<(SeqNo, SeqNo)>,
    /// The newest packet in the vector just written, until the carrying packet's number is known.
    written: Option<SeqNo>,
}

impl AckVector {
    /// Bytes held for the buffer and its records.
    pub(super) fn footprint(&self) -> usize {
        self.cells.capacity() * size_of::<Cell>()
            + self.records.capacity() * size_of::<(SeqNo, SeqNo)>()
    }

    /// An empty buffer.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The newest packet received.
    #[must_use]
    pub const fn newest(&self) -> Option<SeqNo> {
        self.newest
    }

    /// The oldest packet still reported.
    #[must_use]
    pub fn oldest(&self) -> Option<SeqNo> {
        self.newest.map(|newest| newest.back(self.covered - 1))
    }

    /// The state of a packet, if it is still in the buffer.
    #[must_use]
    pub fn state(&self, seq: SeqNo) -> Option<State> {
        let newest = self.newest.filter(|newest| seq <= *newest)?;
        self.find(newest.since(seq)).map(|(index, _)| self.cells[index].state)
    }

    /// How a packet with this number would be classified, without recording it.
    #[must_use]
    pub fn would_be(&self, seq: SeqNo) -> Noted {
        match (self.newest, self.state(seq)) {
            (None, _) => Noted::New,
            (Some(newest), _) if seq > newest => Noted::New,
            (_, None) => Noted::Forgotten,
            (_, Some(state)) if state.arrived() => Noted::Duplicate,
            _ => Noted::Late,
        }
    }

    /// Records an arrived packet.
    pub fn on_packet(&mut self, seq: SeqNo, ecn: Ecn) -> Noted {
        let state = if ecn == Ecn::Ce { State::Marked } else { State::Received };
        let noted = self.would_be(seq);
        match (noted, self.newest) {
            (Noted::New, newest) => self.append(seq, newest, state),
            // §11.4.1, the receiver's table: between 0 and 1 the mark is kept, whichever came first.
            (Noted::Late, Some(newest)) => self.replace(newest.since(seq), state),
            (Noted::Duplicate, Some(newest)) if state == State::Marked => {
                self.replace(newest.since(seq), state);
            }
            _ => {}
        }
        noted
    }

    /// Appends the vector in as many options as necessary; nothing if no packet is known.
    /// [`AckVector::on_sent`] must then be called with the number of the packet that carries it.
    pub fn write(&mut self, out: &mut Options) {
        let Some(newest) = self.newest else { return };
        // §11.4: a second option continues the first. RFC 8311 §6: never type 39.
        for first in (0..self.cells.len()).step_by(CELLS_PER_OPTION) {
            let last = self.cells.len().min(first + CELLS_PER_OPTION);
            let cells = self.cells.range(first..last);
            out.push_bytes(38, cells.map(|cell| (cell.state as u8) << 6 | (cell.count - 1)));
        }
        self.written = Some(newest);
    }

    /// A packet with this number was sent; if a vector was just written, it carries it (A.2).
    pub fn on_sent(&mut self, seq: SeqNo) {
        if let Some(newest) = self.written.take() {
            if self.records.len() == MAX_RECORDS {
                self.records.pop_front();
            }
            self.records.push_back((seq, newest));
        }
    }

    /// An arriving packet acknowledges packets of this side, some with vectors: what those reported is no
    /// longer reported (§11.4.2, A.3). Uses both the Acknowledgement Number and the packet's own Ack Vectors.
    pub fn on_ack_of_ack(&mut self, ack: SeqNo, options: &Options) {
        if let Some(index) = last_arrived(&self.records, |(seq, _)| *seq, ack, options) {
            let (_, told) = self.records[index];
            self.records.drain(..=index);
            self.forget(told);
        }
    }

    /// Discards packets up to this one, except the newest, so that no vector is empty.
    fn forget(&mut self, told: SeqNo) {
        let Some(newest) = self.newest else { return };
        let keep = newest.since(told).max(1);
        while self.covered > keep {
            let surplus = self.covered - keep;
            let cell = self.cells.back_mut().expect("cells cover what is covered");
            let cut = surplus.min(u64::from(cell.count));
            self.covered -= cut;
            cell.count -= cut as u8;
            if cell.count == 0 {
                self.cells.pop_back();
            }
        }
    }

    /// A.1.1: adds a packet newer than all others, and the missing ones before it.
    fn append(&mut self, seq: SeqNo, newest: Option<SeqNo>, state: State) {
        let missing = newest.map_or(0, |newest| seq.since(newest) - 1);
        // A longer gap would displace everything, itself included.
        let mut missing = missing.min((MAX_CELLS * usize::from(LONGEST_RUN)) as u64);
        while missing > 0 {
            let count = missing.min(u64::from(LONGEST_RUN)) as u8;
            self.push(Cell { state: State::NotYet, count });
            missing -= u64::from(count);
        }
        self.push(Cell { state, count: 1 });
        self.newest = Some(seq);
    }

    fn push(&mut self, cell: Cell) {
        self.covered += u64::from(cell.count);
        match self.cells.front_mut() {
            Some(front) if front.state == cell.state && front.count + cell.count <= LONGEST_RUN => {
                front.count += cell.count;
            }
            _ => self.cells.push_front(cell),
        }
        self.bound();
    }

    fn bound(&mut self) {
        while self.cells.len() > MAX_CELLS {
            let oldest = self.cells.pop_back().expect("there are more than none");
            self.covered -= u64::from(oldest.count);
        }
    }

    /// The cell of the packet this far behind the newest, and the offset within it.
    fn find(&self, mut behind: u64) -> Option<(usize, u8)> {
        if behind >= self.covered {
            return None;
        }
        let index = self.cells.iter().position(|cell| {
            let here = behind < u64::from(cell.count);
            if !here {
                behind -= u64::from(cell.count);
            }
            here
        })?;
        Some((index, behind as u8))
    }

    /// A.1.2: changes the state of a reported packet.
    fn replace(&mut self, behind: u64, state: State) {
        let Some((index, within)) = self.find(behind) else { return };
        let cell = self.cells[index];
        if cell.state == state {
            return;
        }
        let parts = [
            Cell { count: within, ..cell },
            Cell { state, count: 1 },
            Cell { count: cell.count - within - 1, ..cell },
        ];
        self.cells.remove(index);
        let mut at = index;
        for part in parts.into_iter().filter(|part| part.count > 0) {
            self.cells.insert(at, part);
            at += 1;
        }
        // Merge adjacent cells in the same state.
        let first = index.saturating_sub(1);
        let last = at.min(self.cells.len() - 1);
        for left in (first..last).rev() {
            let (newer, older) = (self.cells[left], self.cells[left + 1]);
            if newer.state == older.state && newer.count + older.count <= LONGEST_RUN {
                self.cells[left].count += older.count;
                self.cells.remove(left + 1);
            }
        }
        self.bound();
    }
}

/// The Ack Vectors among options, from the packet with the Acknowledgement Number backwards.
/// The Nonce Echo of type 39 is ignored (RFC 8311 §6).
pub fn runs(ack: SeqNo, options: &Options) -> impl Iterator<Item = Run> {
    let vectors = options.iter().filter_map(|option| match option {
        Ok(Opt::AckVector { cells, .. }) => Some(cells),
        _ => None,
    });
    let cells = vectors.flatten().map(|cell| (State::of(*cell), cell & 63));
    backwards(ack, cells).map(|(newest, oldest, state)| Run { newest, oldest, state })
}

/// The newest and oldest number of each block of packets, from this packet backwards; a block has one packet
/// and this many more.
pub(super) fn backwards<T>(
    ack: SeqNo,
    blocks: impl Iterator<Item = (T, u8)>,
) -> impl Iterator<Item = (SeqNo, SeqNo, T)> {
    let mut next = Some(ack);
    blocks.map_while(move |(state, more)| {
        let newest = next?;
        let oldest = newest.back(more.into());
        // No packet precedes the first possible number.
        next = (oldest > SeqNo::default()).then(|| oldest.back(1));
        Some((newest, oldest, state))
    })
}

/// The last of these packets, ordered by number, that arrived: the one an acknowledgement names, or one that
/// its Ack Vectors report. An acknowledgement of a later packet says nothing about earlier ones.
pub(super) fn last_arrived<T>(
    sent: &VecDeque<T>,
    seq: impl Fn(&T) -> SeqNo,
    ack: SeqNo,
    options: &Options,
) -> Option<usize> {
    if sent.is_empty() {
        return None;
    }
    let exact = Run { newest: ack, oldest: ack, state: State::Received };
    std::iter::once(exact).chain(runs(ack, options)).find_map(|run| {
        let index = sent.partition_point(|one| seq(one) <= run.newest).checked_sub(1)?;
        (run.state.arrived() && seq(&sent[index]) >= run.oldest).then_some(index)
    })
}
