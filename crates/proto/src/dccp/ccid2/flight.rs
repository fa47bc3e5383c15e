//! Packets in the network (RFC 4341 §5): all packets sent since the oldest data packet that is
//! neither acknowledged nor inferred lost, and the pipe, the count of such packets.

use std::collections::VecDeque;

use crate::dccp::ackvec::{Run, State};
use crate::dccp::seqno::SeqNo;
use crate::time::Instant;

/// §5: packets acknowledged after a hole before it counts as lost (NUMDUPACK).
const NUMDUPACK: usize = 3;
/// Maximum number of packets remembered, above any window used here; the oldest are dropped as lost.
const MAX_RECORDS: usize = 1 << 17;

/// A packet that was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Sent {
    pub(super) seq: SeqNo,
    pub(super) at: Instant,
    pub(super) data: bool,
    state: PacketState,
    /// A Data Dropped option named it.
    dropped: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PacketState {
    Outstanding,
    Received,
    Marked,
    Lost,
}

/// Outcome for one packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PacketOutcome {
    /// Acknowledged for the first time.
    Received(Sent),
    /// Acknowledged for the first time, and marked.
    Marked(Sent),
    /// Acknowledged before as unmarked, and marked now.
    MarkedLate(Sent),
}

#[derive(Debug, Default)]
pub(super) struct Flight {
    /// Ordered by number, oldest first.
    records: VecDeque<Sent>,
    /// Data packets outstanding.
    pipe: u64,
    /// The newest packets acknowledged as received, newest first.
    acked: [Option<SeqNo>; NUMDUPACK],
    newest: Option<SeqNo>,
}

impl Flight {
    /// Bytes held.
    pub(super) fn footprint(&self) -> usize {
        self.records.capacity() * size_of::<Sent>()
    }

    pub(super) const fn pipe(&self) -> u64 {
        self.pipe
    }
    /// The newest packet sent.
    pub(super) const fn newest(&self) -> Option<SeqNo> {
        self.newest
    }

    pub(super) fn on_sent(&mut self, seq: SeqNo, at: Instant, data: bool) {
        debug_assert!(self.newest.is_none_or(|newest| seq > newest), "numbers only grow");
        self.newest = Some(seq);
        // With nothing outstanding before it, a packet without data can neither be lost nor reveal a loss.
        if !data && self.records.is_empty() {
            return;
        }
        self.records.push_back(Sent {
            seq,
            at,
            data,
            state: PacketState::Outstanding,
            dropped: false,
        });
        self.pipe += u64::from(data);
        if self.records.len() > MAX_RECORDS {
            let oldest = self.records.pop_front().expect("there are more than none");
            self.pipe -= u64::from(oldest.data && oldest.state == PacketState::Outstanding);
            self.prune();
        }
    }

    /// Processes a run of an Ack Vector and reports each change.
    pub(super) fn on_run(&mut self, run: &Run, mut tell: impl FnMut(PacketOutcome)) {
        if !run.state.arrived() {
            return;
        }
        let from = self.records.partition_point(|sent| sent.seq < run.oldest);
        let to = self.records.partition_point(|sent| sent.seq <= run.newest);
        for index in from..to {
            // RFC 4340 §11.4.1, the sender's table; between 0 and 1 the mark is kept.
            let (sent, marked) = (self.records[index], run.state == State::Marked);
            let news = match (sent.state, marked) {
                (PacketState::Outstanding, false) => PacketOutcome::Received(sent),
                (PacketState::Outstanding, true) => PacketOutcome::Marked(sent),
                (PacketState::Received, true) => PacketOutcome::MarkedLate(sent),
                // §5: a packet inferred lost does not leave the pipe again; its arrival only shows that
                // later ones overtook it.
                _ => continue,
            };
            self.records[index].state =
                if marked { PacketState::Marked } else { PacketState::Received };
            if sent.state == PacketState::Outstanding {
                self.pipe -= u64::from(sent.data);
                self.count(sent.seq);
            }
            tell(news);
        }
    }

    /// A Data Dropped option names these numbers. Returns how many of their data packets were
    /// acknowledged, are still remembered and were not named before, and the newest of those.
    pub(super) fn on_dropped(&mut self, newest: SeqNo, oldest: SeqNo) -> (u64, Option<SeqNo>) {
        let from = self.records.partition_point(|sent| sent.seq < oldest);
        let to = self.records.partition_point(|sent| sent.seq <= newest);
        let (mut count, mut last) = (0, None);
        for sent in self.records.range_mut(from..to.max(from)) {
            let acknowledged = matches!(sent.state, PacketState::Received | PacketState::Marked);
            // RFC 4340 §11.7.2 counts packets "newly acknowledged" this way; the option is repeated.
            if sent.data && acknowledged && !std::mem::replace(&mut sent.dropped, true) {
                (count, last) = (count + 1, Some(sent.seq));
            }
        }
        (count, last)
    }

    /// §5: infers as lost all packets with `NUMDUPACK` later packets acknowledged, with data or not;
    /// returns the newest such data packet. Then discards settled records.
    pub(super) fn infer_losses(&mut self) -> Option<SeqNo> {
        let mut newest = None;
        if let Some(edge) = self.acked[NUMDUPACK - 1] {
            let below = self.records.partition_point(|sent| sent.seq < edge);
            for sent in self.records.range_mut(..below) {
                if sent.state == PacketState::Outstanding {
                    sent.state = PacketState::Lost;
                    if sent.data {
                        self.pipe -= 1;
                        newest = Some(sent.seq);
                    }
                }
            }
        }
        self.prune();
        newest
    }

    /// §5, transmit timeouts: nothing is in the network any more.
    pub(super) fn clear(&mut self) {
        self.records.clear();
        self.pipe = 0;
    }

    fn count(&mut self, seq: SeqNo) {
        let place = self.acked.iter().position(|acked| acked.is_none_or(|acked| seq > acked));
        if let Some(place) = place {
            self.acked[place..].rotate_right(1);
            self.acked[place] = Some(seq);
        }
    }

    fn prune(&mut self) {
        while self
            .records
            .front()
            .is_some_and(|oldest| !(oldest.data && oldest.state == PacketState::Outstanding))
        {
            self.records.pop_front();
        }
    }
}
