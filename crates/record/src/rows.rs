//! The `packets` table of a run of any length: its batches leave while the run goes on, so that
//! memory holds a few of them and the packets that are under way.

use talkspurt_proto::probe::{Note, Place, Probe, Topic};
use talkspurt_proto::time::Instant;

use crate::columns::Table;
use crate::layout::Layout;
use crate::packets::Packets;

/// Rows of one batch: a few megabytes.
const BATCH_ROWS: usize = 1 << 18;

/// A probe that makes the rows of `packets` and keeps nothing else.
#[derive(Debug)]
pub struct PacketRows {
    layout: Layout,
    packets: Packets,
}

impl PacketRows {
    /// For a run laid out so.
    #[must_use]
    pub fn new(layout: Layout) -> Self {
        Self { packets: Packets::with_chunks_of(BATCH_ROWS, &layout), layout }
    }

    /// The next finished batch, in the order of the table; none while one of its packets is under
    /// way.
    pub fn take(&mut self) -> Option<Table> {
        self.packets.finished(&self.layout).map(Table::from)
    }

    /// What is left at the end of the run; at least one batch, maybe empty.
    #[must_use]
    pub fn rest(self) -> Vec<Table> {
        self.packets.rest(&self.layout).into_iter().map(Table::from).collect()
    }
}

impl Probe for PacketRows {
    fn wants(&self, topic: Topic) -> bool {
        matches!(topic, Topic::Hop | Topic::Drop)
    }

    fn record(&mut self, now: Instant, place: Place, note: &Note<'_>) {
        if let Place::Link(link) = place {
            self.packets.take(now, link, note, &self.layout);
        }
    }
}
