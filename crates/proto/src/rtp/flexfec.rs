//! Flexible forward error correction by parity (FlexFEC, RFC 8627) with fixed blocks: R = 0, F = 1.
//!
//! A block has D rows of L consecutive source packets. A repair packet is the XOR of the packets of a row, or
//! of those of a column, which are L apart. The [`Encoder`] makes the payloads of repair packets from source
//! packets; the [`Decoder`] restores lost source packets from both. Source packets are complete RTP packets as
//! bytes, with CSRC list, extension and padding if they have them. Neither reads a clock or sends; the RTP
//! header of a repair packet (§4.2.1) is the caller's.

use std::collections::{BTreeMap, VecDeque};

use bytes::Bytes;

use crate::octets::{WireError, at_least, u16_at};

/// Bytes of the FEC header for one source stream (§4.2.2.2).
pub const HEADER_BYTES: usize = 12;
/// Bytes of the RTP header that the FEC header protects, SSRC and sequence number excluded (§6.2).
const RTP_HEADER: usize = 12;
/// RTP version 2 in the first byte of a packet, and its mask; R and F have its place in the FEC header.
const VERSION: u8 = 0b10 << 6;
const VERSION_MASK: u8 = 0b11 << 6;
const FIXED_BLOCK: u8 = 0b01 << 6;
/// A block whose packets the decoder expects spans fewer sequence numbers than half of their range.
const MAX_WINDOW: u32 = 1 << 15;

/// Which packets of a block repair packets protect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Parity {
    /// Those of each row (§1.1.1).
    Rows,
    /// Those of each column (§1.1).
    Columns,
    /// Both (§1.1.4).
    Both,
}

/// A fixed block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Block {
    /// L, the length of a row: at least 1.
    pub columns: u8,
    /// D, the length of a column: with column parity at least 2, since D = 1 means row parity (§4.2.2.2);
    /// otherwise unused.
    pub rows: u8,
    /// What is protected.
    pub parity: Parity,
}

impl Block {
    /// Number of source packets in the block, or in the row if only rows are protected.
    #[must_use]
    pub const fn packets(&self) -> u32 {
        match self.parity {
            Parity::Rows => self.columns as u32,
            Parity::Columns | Parity::Both => self.columns as u32 * self.rows as u32,
        }
    }

    /// Number of repair packets for a block, or for a row if only rows are protected.
    #[must_use]
    pub const fn repair_packets(&self) -> u32 {
        match self.parity {
            Parity::Rows => 1,
            Parity::Columns => self.columns as u32,
            Parity::Both => self.columns as u32 + self.rows as u32,
        }
    }
}

/// The FEC bit string (§6.2): the XOR of the bit strings of source packets.
#[derive(Clone, Debug, Default)]
struct Sum {
    /// First 16 bits of the RTP header, length, timestamp.
    head: [u8; 8],
    /// All that follows the fixed header; shorter packets are padded with zeros.
    rest: Vec<u8>,
}

impl Sum {
    /// Adds a source packet of at least [`RTP_HEADER`] bytes.
    fn add(&mut self, packet: &[u8]) {
        let rest = &packet[RTP_HEADER..];
        let length = (rest.len() as u16).to_be_bytes();
        let (kind, time) = (&packet[..2], &packet[4..8]);
        let head = kind.iter().chain(&length).chain(time);
        self.head.iter_mut().zip(head).for_each(|(sum, byte)| *sum ^= byte);
        if self.rest.len() < rest.len() {
            self.rest.resize(rest.len(), 0);
        }
        self.rest.iter_mut().zip(rest).for_each(|(sum, byte)| *sum ^= byte);
    }

    fn clear(&mut self) {
        self.head = [0; 8];
        self.rest.clear();
    }
}

/// Consecutive or equidistant packets whose sum is formed.
#[derive(Clone, Debug, Default)]
struct Group {
    sum: Sum,
    packets: u8,
    /// Sequence number of the first.
    base: u16,
}

impl Group {
    fn add(&mut self, packet: &[u8]) {
        if self.packets == 0 {
            self.base = u16_at(packet, 2);
        }
        self.packets += 1;
        self.sum.add(packet);
    }

    /// The payload of its repair packet with these fields; the group is then empty.
    fn payload(&mut self, columns: u8, rows: u8) -> Bytes {
        let mut out = Vec::with_capacity(HEADER_BYTES + self.sum.rest.len());
        // §6.2: R and F replace the version.
        out.push(FIXED_BLOCK | self.sum.head[0] & !VERSION_MASK);
        out.extend_from_slice(&self.sum.head[1..]);
        out.extend_from_slice(&self.base.to_be_bytes());
        out.extend_from_slice(&[columns, rows]);
        out.extend_from_slice(&self.sum.rest);
        self.sum.clear();
        self.packets = 0;
        out.into()
    }
}

/// Makes repair packets for one source stream, whose packets have consecutive sequence numbers.
#[derive(Clone, Debug)]
pub struct Encoder {
    block: Block,
    /// Packets in the current block.
    packets: u32,
    row: Group,
    columns: Vec<Group>,
}

impl Encoder {
    /// An encoder before the first block.
    ///
    /// # Panics
    /// If the block violates what [`Block`] requires.
    #[must_use]
    pub fn new(block: Block) -> Self {
        let has_columns = block.parity != Parity::Rows;
        assert!(block.columns >= 1, "a row of no packets");
        assert!(!has_columns || block.rows >= 2, "a column of fewer than two packets");
        let columns = if has_columns { usize::from(block.columns) } else { 0 };
        Self { block, packets: 0, row: Group::default(), columns: vec![Group::default(); columns] }
    }

    /// True if packets were added for which repair packets are still due.
    #[must_use]
    pub const fn is_open(&self) -> bool {
        self.packets > 0
    }

    /// Adds the next source packet of the stream, which must have an RTP header. Returns the payloads of the
    /// repair packets that follow it: that of its row or column, if it is the last one there. In a
    /// two-dimensional block, those of columns follow the last row (§4.2.2.2).
    pub fn push(&mut self, packet: &[u8]) -> Vec<Bytes> {
        debug_assert!(packet.len() >= RTP_HEADER, "an RTP packet has a header");
        let Block { columns, parity, .. } = self.block;
        let column = (self.packets % u32::from(columns)) as usize;
        self.packets += 1;
        let mut repair = Vec::new();
        if parity != Parity::Columns {
            self.row.add(packet);
            if self.row.packets == columns {
                repair.push(self.row.payload(columns, self.row_depth()));
            }
        }
        if let Some(group) = self.columns.get_mut(column) {
            group.add(packet);
        }
        let is_last = self.packets == self.block.packets();
        match parity {
            Parity::Rows => {}
            Parity::Columns => repair.extend(self.full_column(column)),
            Parity::Both if is_last => {
                repair.extend((0..self.columns.len()).filter_map(|it| self.full_column(it)));
            }
            Parity::Both => {}
        }
        if is_last {
            self.packets = 0;
        }
        repair
    }

    /// Ends the current block early, as at the end of a talkspurt: returns the payloads of repair packets for
    /// the packets that are not yet protected. An unfinished row or column is a shorter one. A column of one
    /// packet has no repair packet if a row protects it, and otherwise one with L = 1 and D = 0, which repeats
    /// the packet (§4.2.2.2).
    pub fn flush(&mut self) -> Vec<Bytes> {
        let mut repair = Vec::new();
        if self.row.packets > 0 {
            repair.push(self.row.payload(self.row.packets, self.row_depth()));
        }
        for group in &mut self.columns {
            match (group.packets, self.block.parity) {
                (0, _) => {}
                (1, Parity::Columns) => repair.push(group.payload(1, 0)),
                (1, _) => drop(group.payload(1, 0)),
                (rows, _) => repair.push(group.payload(self.block.columns, rows)),
            }
        }
        self.packets = 0;
        repair
    }

    /// D of a row's repair packet (§4.2.2.2): 0 without column parity, and 1 with it.
    const fn row_depth(&self) -> u8 {
        matches!(self.block.parity, Parity::Both) as u8
    }

    /// The repair packet of a column that is complete.
    fn full_column(&mut self, column: usize) -> Option<Bytes> {
        let Block { columns, rows, .. } = self.block;
        let group = &mut self.columns[column];
        (group.packets == rows).then(|| group.payload(columns, rows))
    }
}

/// The FEC header and the sum of a repair packet.
#[derive(Clone, Debug)]
struct Repair {
    /// Extended sequence number of the first packet, distance between two, and their number.
    base: u64,
    stride: u64,
    packets: u64,
    /// How many of them are not there.
    missing: u64,
    payload: Bytes,
}

impl Repair {
    fn protects(&self, number: u64) -> bool {
        let Some(distance) = number.checked_sub(self.base) else { return false };
        distance.is_multiple_of(self.stride) && distance / self.stride < self.packets
    }
    fn numbers(&self) -> impl Iterator<Item = u64> + use<> {
        let (base, stride) = (self.base, self.stride);
        (0..self.packets).map(move |place| base + place * stride)
    }
    fn last(&self) -> u64 {
        self.base + (self.packets - 1) * self.stride
    }
}

/// Restores lost packets of one source stream.
#[derive(Clone, Debug)]
pub struct Decoder {
    ssrc: u32,
    window: u64,
    /// Highest number received or restored. Numbers are extended beyond 16 bits.
    highest: Option<u64>,
    sources: BTreeMap<u64, Bytes>,
    repairs: VecDeque<Repair>,
}

impl Decoder {
    /// A decoder for the source stream of this SSRC that keeps the last `window` packets: as many as a block
    /// has, and those by which packets may be out of order. A repair packet that exceeds the window is ignored
    /// (§4.2.2.2).
    ///
    /// # Panics
    /// If the window is not below 2¹⁵.
    #[must_use]
    pub const fn new(ssrc: u32, window: u32) -> Self {
        assert!(window < MAX_WINDOW, "sequence numbers are ambiguous");
        let window = if window == 0 { 1 } else { window as u64 };
        Self { ssrc, window, highest: None, sources: BTreeMap::new(), repairs: VecDeque::new() }
    }

    /// Takes a source packet that arrived, as bytes; returns the packets that can be restored now, in the order
    /// of their restoration. Bytes that are no RTP packet of the stream are ignored.
    pub fn on_source(&mut self, packet: Bytes) -> Vec<Bytes> {
        let is_rtp = packet.len() >= RTP_HEADER && packet[0] & VERSION_MASK == VERSION;
        if !is_rtp || packet[8..12] != self.ssrc.to_be_bytes() {
            return Vec::new();
        }
        let number = self.extended(u16_at(&packet, 2));
        self.add(number, packet);
        self.restore()
    }

    /// Takes the payload of a repair packet that arrived; returns the packets that can be restored now.
    ///
    /// # Errors
    /// Truncated bytes, and headers that must be ignored or are not supported: retransmission (R = 1), flexible
    /// mask (F = 0), L = 0 (§4.2.2.2).
    pub fn on_repair(&mut self, payload: &Bytes) -> Result<Vec<Bytes>, WireError> {
        at_least(payload, HEADER_BYTES, "FEC header")?;
        if payload[0] & VERSION_MASK != FIXED_BLOCK {
            return Err(WireError::Unsupported("FEC header variant"));
        }
        let (columns, rows) = (u64::from(payload[10]), u64::from(payload[11]));
        if columns == 0 {
            return Err(WireError::Malformed("FEC block without columns"));
        }
        // §6.3.1.2.
        let (stride, packets) = if rows <= 1 { (1, columns) } else { (columns, rows) };
        let base = self.extended(u16_at(payload, 8));
        let mut repair = Repair { base, stride, packets, missing: 0, payload: payload.clone() };
        let highest = *self.highest.get_or_insert(base);
        let is_near = repair.base + self.window > highest && repair.last() < highest + self.window;
        if !is_near || repair.last() - repair.base >= self.window {
            return Ok(Vec::new());
        }
        repair.missing =
            repair.numbers().filter(|it| !self.sources.contains_key(it)).count() as u64;
        if repair.missing == 0 {
            return Ok(Vec::new());
        }
        // A sender has fewer than two repair packets for each source packet.
        if self.repairs.len() as u64 >= 2 * self.window {
            self.repairs.pop_front();
        }
        self.repairs.push_back(repair);
        Ok(self.restore())
    }

    /// The number nearest to the highest one (RFC 3550 A.1).
    fn extended(&self, sequence: u16) -> u64 {
        // Numbers before the first packet are above zero, too.
        let Some(highest) = self.highest else { return (1 << 32) + u64::from(sequence) };
        let ahead = sequence.wrapping_sub(highest as u16) as i16;
        highest.saturating_add_signed(i64::from(ahead))
    }

    /// Stores a source packet, and forgets what is too old.
    fn add(&mut self, number: u64, packet: Bytes) {
        let highest = self.highest.unwrap_or(number).max(number);
        let oldest = (highest + 1).saturating_sub(self.window);
        if self.highest != Some(highest) {
            self.highest = Some(highest);
            while let Some(first) = self.sources.first_entry().filter(|it| *it.key() < oldest) {
                first.remove();
            }
            self.repairs.retain(|repair| repair.base >= oldest);
        }
        if number < oldest || self.sources.contains_key(&number) {
            return;
        }
        self.sources.insert(number, packet);
        for repair in self.repairs.iter_mut().filter(|repair| repair.protects(number)) {
            repair.missing -= 1;
        }
    }

    /// §6.3.4. The order of repair packets does not matter: each one that misses a single packet restores it,
    /// until there is none.
    fn restore(&mut self) -> Vec<Bytes> {
        let mut restored = Vec::new();
        loop {
            self.repairs.retain(|repair| repair.missing > 0);
            let Some(place) = self.repairs.iter().position(|repair| repair.missing == 1) else {
                return restored;
            };
            let Some(repair) = self.repairs.remove(place) else { return restored };
            let lost = repair.numbers().find(|it| !self.sources.contains_key(it));
            // A packet that cannot be restored stays lost.
            let Some((number, packet)) = lost.and_then(|it| Some((it, self.solve(&repair, it)?)))
            else {
                continue;
            };
            restored.push(packet.clone());
            self.add(number, packet);
        }
    }

    /// §6.3.2 and §6.3.3: the packet of this number, of which all others are there. `None` if its length
    /// contradicts that of the repair packet, which is as long as the longest protected packet.
    fn solve(&self, repair: &Repair, lost: u64) -> Option<Bytes> {
        let mut sum = Sum::default();
        for number in repair.numbers().filter(|it| *it != lost) {
            sum.add(self.sources.get(&number)?);
        }
        let (header, rest) = repair.payload.split_at(HEADER_BYTES);
        let mut head = sum.head;
        head.iter_mut().zip(header).for_each(|(sum, byte)| *sum ^= byte);
        let length = usize::from(u16_at(&head, 2));
        let rest = rest.get(..length)?;
        let mut packet = Vec::with_capacity(RTP_HEADER + length);
        packet.extend_from_slice(&[head[0] & !VERSION_MASK | VERSION, head[1]]);
        packet.extend_from_slice(&(lost as u16).to_be_bytes());
        packet.extend_from_slice(&head[4..]);
        packet.extend_from_slice(&self.ssrc.to_be_bytes());
        let others = sum.rest.iter().chain(std::iter::repeat(&0));
        packet.extend(rest.iter().zip(others).map(|(repair, others)| repair ^ others));
        Some(packet.into())
    }
}
