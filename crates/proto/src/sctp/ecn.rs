//! Explicit Congestion Notification (RFC 4960 appendix A; RFC 9260 keeps chunks and parameter): the receiver of
//! a mark repeats an ECNE until a CWR answers it; the sender halves its window once for the data in flight.

use super::Sctp;
use super::packet::{Chunk, Data};
use super::send::Sender;
use crate::congestion::{Congestion, CongestionControl};
use crate::seq::Seq;
use crate::time::Instant;

/// ECN state of one end.
#[derive(Debug, Default)]
pub(super) struct Ecn {
    /// Both ends use it.
    pub(super) agreed: bool,
    /// The lowest TSN of a marked packet, until the peer has answered.
    marked: Option<u32>,
    /// The last TSN sent when the window was last reduced for a mark.
    reduced: Option<Seq>,
}

impl Ecn {
    pub(super) fn agree(agreed: bool) -> Self {
        Self { agreed, ..Self::default() }
    }

    /// Records a mark on data.
    pub(super) fn on_mark(&mut self, tsn: u32) {
        if self.agreed {
            self.marked.get_or_insert(tsn);
        }
    }

    /// The peer has reduced its window for all up to here.
    pub(super) fn on_cwr(&mut self, lowest: u32) {
        self.marked = self.marked.filter(|tsn| lowest.wrapping_sub(*tsn) >= 1 << 31);
    }

    /// The ECNE that goes with a SACK.
    pub(super) fn echo(&self) -> Option<Chunk> {
        self.marked.map(|lowest| Chunk::Ecne { lowest })
    }
}

impl Sctp {
    /// The first data of a marked packet.
    pub(super) fn on_marked(&mut self, data: &Data) {
        self.ecn.on_mark(data.tsn);
        if self.ecn.agreed {
            self.rx.due = true;
        }
    }

    /// The peer reports a mark on the packet with this TSN. Always answered, since the last answer
    /// may be lost; the window is reduced once for the data in flight.
    pub(super) fn on_ecne(&mut self, now: Instant, lowest: u32) {
        if !self.ecn.agreed {
            return;
        }
        let Some((tsn, path)) = self.tx.sent_on(lowest) else { return };
        if self.ecn.reduced.is_none_or(|reduced| tsn > reduced) {
            // As for a fast retransmit (RFC 9260 §7.2.3); in recovery that has been done.
            if self.tx.exit.is_none() {
                let path = &mut self.paths[path];
                path.control.on_congestion(now, &Congestion::Loss { flight: path.flight });
            }
            self.ecn.reduced = Some(self.tx.highest());
        }
        // "the TSN number that was sent in the ECNE chunk"
        self.control.push_back((path, Chunk::Cwr { lowest }));
    }
}

impl Sender {
    /// A TSN of ours and its path; if acknowledged since, the path for new data.
    fn sent_on(&self, tsn: u32) -> Option<(Seq, usize)> {
        let tsn = self.cumulative.near(tsn);
        (tsn <= self.highest()).then(|| (tsn, self.path_of(tsn).unwrap_or(0)))
    }
}
