//! The `packets` table: one row per packet and hop. Rows are kept as plain columns in chunks; a
//! chunk is finished when it is full and none of its packets is under way, and can then be taken
//! out while the run goes on.

use std::collections::{BTreeMap, VecDeque};

use arrow_array::RecordBatch;
use talkspurt_proto::packet::Packet;
use talkspurt_proto::probe::{DropReason, Note, UNNUMBERED};
use talkspurt_proto::time::Instant;

use crate::columns::{Columns, Moment};
use crate::layout::Layout;

/// Rows of one batch.
const CHUNK_ROWS: usize = 1 << 20;

/// Rows in order of their first note.
#[derive(Debug)]
pub(crate) struct Packets {
    chunk_rows: usize,
    /// Row number of the first chunk's first row.
    base: u64,
    chunks: VecDeque<Chunk>,
    /// By link: the row of every packet on it, by sender and number.
    under_way: Vec<BTreeMap<(u32, u32), u64>>,
}

#[derive(Debug, Default)]
struct Chunk {
    rows: Vec<Row>,
    under_way: usize,
}

#[derive(Clone, Copy, Debug)]
struct Row {
    enqueued: Moment,
    dequeued: Moment,
    received: Moment,
    sender: u32,
    number: u32,
    link: u32,
    ip_bytes: u32,
    fate: HopFate,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum HopFate {
    Queued,
    InFlight,
    Received,
    Dropped(DropReason),
}

impl HopFate {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::InFlight => "in_flight",
            Self::Received => "received",
            Self::Dropped(DropReason::Full) => "full",
            Self::Dropped(DropReason::Early) => "early",
            Self::Dropped(DropReason::Medium) => "medium",
            Self::Dropped(DropReason::Down) => "down",
            Self::Dropped(DropReason::TooBig) => "too_big",
            Self::Dropped(DropReason::Retries) => "retries",
        }
    }
}

impl Packets {
    pub(crate) fn new(layout: &Layout) -> Self {
        Self::with_chunks_of(CHUNK_ROWS, layout)
    }

    pub(crate) fn with_chunks_of(chunk_rows: usize, layout: &Layout) -> Self {
        let under_way = vec![BTreeMap::new(); layout.links.len()];
        Self { chunk_rows, base: 0, chunks: VecDeque::new(), under_way }
    }

    pub(crate) fn take(&mut self, now: Instant, link: u32, note: &Note<'_>, layout: &Layout) {
        let (Note::Enqueued { packet, .. }
        | Note::Dequeued { packet, .. }
        | Note::Arrived { packet }
        | Note::Dropped { packet, .. }) = note
        else {
            return;
        };
        let Some(sender) = layout.sender(packet).filter(|_| packet.number != UNNUMBERED) else {
            return;
        };
        let key = (sender as u32, packet.number);
        let Some(known) = self.under_way.get(link as usize).map(|rows| rows.get(&key).copied())
        else {
            return;
        };
        // A packet refused on arrival has no row yet: it came to the queue when it was refused.
        let row = known.unwrap_or_else(|| self.begin(now, link, key, packet));
        let (at, fate) = (now.into(), self.row(row));
        match *note {
            Note::Enqueued { .. } => {}
            Note::Dequeued { .. } => (fate.dequeued, fate.fate) = (at, HopFate::InFlight),
            Note::Arrived { .. } => (fate.received, fate.fate) = (at, HopFate::Received),
            Note::Dropped { why, .. } => fate.fate = HopFate::Dropped(why),
            _ => {}
        }
        if matches!(note, Note::Arrived { .. } | Note::Dropped { .. }) {
            self.under_way[link as usize].remove(&key);
            self.chunk(row).under_way -= 1;
        }
    }

    fn begin(&mut self, now: Instant, link: u32, key: (u32, u32), packet: &Packet) -> u64 {
        if self.chunks.back().is_none_or(|chunk| chunk.rows.len() == self.chunk_rows) {
            self.chunks.push_back(Chunk::default());
        }
        let before = self.base + ((self.chunks.len() - 1) * self.chunk_rows) as u64;
        let chunk = self.chunks.back_mut().expect("just made");
        chunk.rows.push(Row {
            enqueued: now.into(),
            dequeued: Moment::NEVER,
            received: Moment::NEVER,
            sender: key.0,
            number: key.1,
            link,
            ip_bytes: packet.ip_bytes,
            fate: HopFate::Queued,
        });
        chunk.under_way += 1;
        let row = before + chunk.rows.len() as u64 - 1;
        self.under_way[link as usize].insert(key, row);
        row
    }

    fn chunk(&mut self, row: u64) -> &mut Chunk {
        &mut self.chunks[(row - self.base) as usize / self.chunk_rows]
    }

    fn row(&mut self, row: u64) -> &mut Row {
        let chunk_rows = self.chunk_rows;
        let offset = (row - self.base) as usize % chunk_rows;
        &mut self.chunk(row).rows[offset]
    }

    /// The next finished batch, if there is one.
    pub(crate) fn finished(&mut self, layout: &Layout) -> Option<RecordBatch> {
        let first = self.chunks.front()?;
        if first.rows.len() < self.chunk_rows || first.under_way > 0 {
            return None;
        }
        let chunk = self.chunks.pop_front()?;
        self.base += self.chunk_rows as u64;
        Some(batch(&chunk.rows, layout))
    }

    /// All batches that were not taken, packets under way included; at least one, maybe empty.
    pub(crate) fn rest(self, layout: &Layout) -> Vec<RecordBatch> {
        if self.chunks.is_empty() {
            return vec![batch(&[], layout)];
        }
        self.chunks.into_iter().map(|chunk| batch(&chunk.rows, layout)).collect()
    }
}

fn batch(rows: &[Row], layout: &Layout) -> RecordBatch {
    Columns::default()
        .text("flow", rows.iter().map(|row| layout.peer_name(row.sender).0))
        .text("side", rows.iter().map(|row| layout.peer_name(row.sender).1))
        .count("number", rows.iter().map(|row| row.number.into()))
        .text("link", rows.iter().map(|row| layout.links[row.link as usize].name.as_str()))
        .count("ip_bytes", rows.iter().map(|row| row.ip_bytes.into()))
        .maybe_time("enqueued_s", rows.iter().map(|row| row.enqueued))
        .maybe_time("dequeued_s", rows.iter().map(|row| row.dequeued))
        .maybe_time("received_s", rows.iter().map(|row| row.received))
        .text("fate", rows.iter().map(|row| row.fate.name()))
        .finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::{FlowInfo, LinkInfo, RouteInfo};
    use talkspurt_proto::packet::{BodyId, Ecn, IpVersion};
    use talkspurt_proto::time::Duration;

    fn layout() -> Layout {
        let text = String::new;
        let link =
            LinkInfo { name: text(), from: text(), to: text(), rate_bps: 1, delay: Duration::ZERO };
        let sides = [None, None];
        let flow = FlowInfo {
            name: text(),
            group: None,
            transport: text(),
            from: text(),
            to: text(),
            sides,
        };
        Layout {
            flows: vec![flow],
            links: vec![link],
            routes: vec![RouteInfo { flow: 0, side: 0 }],
            from: Instant::ZERO,
            to: Instant::ZERO,
            duration: Duration::ZERO,
            interval: Duration::ZERO,
        }
    }

    fn label(number: u32) -> Packet {
        Packet {
            body: BodyId(0),
            ip_bytes: 100,
            route: 0,
            flow: 0,
            number,
            hop: 0,
            ecn: Ecn::NotEct,
            dscp: 0,
            version: IpVersion::V4,
            sent: Instant::ZERO,
        }
    }

    #[test]
    fn a_batch_leaves_when_it_is_full_and_settled() {
        let layout = layout();
        let mut packets = Packets::with_chunks_of(2, &layout);
        let labels: Vec<Packet> = (0..5).map(label).collect();
        let enqueue = |packets: &mut Packets, number: usize| {
            let note = Note::Enqueued { packet: &labels[number], packets: 1, bytes: 100 };
            packets.take(Instant::ZERO, 0, &note, &layout);
        };
        let arrive = |packets: &mut Packets, number: usize| {
            packets.take(Instant::ZERO, 0, &Note::Arrived { packet: &labels[number] }, &layout);
        };
        (0..3).for_each(|number| enqueue(&mut packets, number));
        arrive(&mut packets, 1);
        assert!(packets.finished(&layout).is_none(), "packet 0 is under way");
        arrive(&mut packets, 0);
        assert_eq!(packets.finished(&layout).unwrap().num_rows(), 2);
        assert!(packets.finished(&layout).is_none(), "the next is not full");
        // Rows are found again after the first chunk has left.
        (3..5).for_each(|number| enqueue(&mut packets, number));
        (2..4).for_each(|number| arrive(&mut packets, number));
        assert_eq!(packets.under_way[0].len(), 1);
        assert_eq!(packets.finished(&layout).unwrap().num_rows(), 2);
        let rest = packets.rest(&layout);
        assert_eq!(rest.iter().map(RecordBatch::num_rows).sum::<usize>(), 1);
    }
}
