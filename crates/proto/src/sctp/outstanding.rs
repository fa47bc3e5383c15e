//! Totals over the outstanding chunks, which save searches: how many are in which state, and the
//! peer's free window (RFC 9260 §6.1, §6.2.1).

use super::path::Path;
use super::queue::{Sent, Status};

/// Totals over sent chunks.
#[derive(Debug, Default)]
pub(super) struct Outstanding {
    /// The peer's window beyond data in flight.
    pub(super) peer_rwnd: u64,
    /// Bytes of user data in flight.
    pub(super) flying: u64,
    /// Chunks to retransmit.
    pub(super) marked: usize,
    /// Chunks in Gap Ack Blocks.
    pub(super) gapped: usize,
    /// Chunks given up.
    pub(super) abandoned: usize,
}

impl Outstanding {
    /// Removes a chunk from those in flight or to retransmit.
    #[inline]
    pub(super) fn take_off(&mut self, sent: &Sent, paths: &mut [Path]) {
        match sent.status {
            Status::Flying => {
                self.flying -= sent.user_bytes();
                let path = &mut paths[sent.path];
                path.flight = path.flight.saturating_sub(sent.wire_bytes());
            }
            Status::Marked => self.marked -= 1,
            Status::Acked | Status::Abandoned => {}
        }
    }

    /// Marks a chunk for retransmission.
    #[inline]
    pub(super) fn mark(&mut self, sent: &mut Sent, elsewhere: bool, paths: &mut [Path]) {
        let (user, wire) = (sent.user_bytes(), sent.wire_bytes());
        (sent.status, sent.elsewhere, sent.missing) = (Status::Marked, elsewhere, 0);
        let path = &mut paths[sent.path];
        path.flight = path.flight.saturating_sub(wire);
        // §6.2.1 C: marked chunks do not use the peer's window.
        self.flying -= user;
        self.peer_rwnd += user;
        self.marked += 1;
    }
    /// A chunk in no Gap Ack Block. Returns the bit of its path if it is in flight.
    #[inline]
    pub(super) fn pass_over(&mut self, sent: &mut Sent, paths: &mut [Path]) -> u64 {
        if sent.status == Status::Acked {
            // RFC 9260 §6.2.1 D iii: the peer has reneged on it.
            self.gapped -= 1;
            self.flying += sent.user_bytes();
            paths[sent.path].flight += sent.wire_bytes();
            (sent.status, sent.missing) = (Status::Flying, 0);
        }
        if sent.status == Status::Flying { bit(sent.path) } else { 0 }
    }
}

/// The bit of a path.
pub(super) fn bit(path: usize) -> u64 {
    1 << (path & 63)
}
