//! What is known of all chunks that were sent and that the peer may not have, so that none need be
//! looked for: how many are in which state, and what the peer has room for (RFC 9260 §6.1, §6.2.1).

use super::path::Path;
use super::queue::{Facts, Sent, Status};

/// Chunks that were sent, together.
#[derive(Debug, Default)]
pub(super) struct Outstanding {
    /// Room at the peer beyond what is in flight.
    pub(super) peer_rwnd: u64,
    /// Bytes of user data in flight.
    pub(super) flying: u64,
    /// Chunks to be sent again.
    pub(super) marked: usize,
    /// Chunks that Gap Ack Blocks have.
    pub(super) gapped: usize,
    /// Chunks given up.
    pub(super) abandoned: usize,
}

impl Outstanding {
    /// A chunk is neither in flight nor to be sent again any more.
    #[inline]
    pub(super) fn take_off(&mut self, sent: Facts, paths: &mut [Path]) {
        match sent.status {
            Status::Flying => {
                self.flying -= sent.user_bytes;
                let path = &mut paths[sent.path];
                path.flight = path.flight.saturating_sub(sent.wire_bytes);
            }
            Status::Marked => self.marked -= 1,
            Status::Acked | Status::Abandoned => {}
        }
    }

    /// A chunk in flight is to be sent again.
    #[inline]
    pub(super) fn mark(&mut self, sent: &mut Sent, elsewhere: bool, paths: &mut [Path]) {
        let (user, wire) = (sent.user_bytes(), sent.wire_bytes());
        (sent.status, sent.elsewhere, sent.missing) = (Status::Marked, elsewhere, 0);
        let path = &mut paths[sent.path];
        path.flight = path.flight.saturating_sub(wire);
        // §6.2.1 C: what is marked is not on its way to the peer's buffer.
        self.flying -= user;
        self.peer_rwnd += user;
        self.marked += 1;
    }
    /// A chunk that no Gap Ack Block tells of. The bit of its path if it is in flight.
    #[inline]
    pub(super) fn pass_over(&mut self, sent: &mut Sent, paths: &mut [Path]) -> u64 {
        if sent.status == Status::Acked {
            // RFC 9260 §6.2.1 D iii: the peer has dropped it after all.
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
