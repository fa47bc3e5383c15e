//! Outgoing packets: complete packets first, then for a path its control chunks, a pending SACK, a
//! FORWARD TSN, and data, bundled as far as they fit (RFC 9260 §6.10).

use super::packet::Chunk;
use super::{Packet, Sctp, State};
use crate::endpoint::Transmit;
use crate::packet::{Ecn, PacketBox, PathId};
use crate::time::Instant;

impl Sctp {
    pub(super) fn next_packet(&mut self, now: Instant) -> Option<Transmit<PacketBox<Packet>>> {
        if let Some(transmit) = self.packets.pop_front() {
            return Some(transmit);
        }
        let path = self.next_path()?;
        let mut space = self.paths[path].space();
        let mut packet = self.spare.take();
        if packet.is_empty() {
            packet = PacketBox::new(Packet::default());
        }
        let chunks = &mut packet.chunks;
        chunks.clear();
        while let Some((_, chunk)) = self.control.front().filter(|(p, _)| *p == path) {
            // One that is too long for any packet goes alone.
            if chunk.wire_bytes() > space && !chunks.is_empty() {
                break;
            }
            space = space.saturating_sub(chunk.wire_bytes());
            chunks.extend(self.control.pop_front().map(|(_, chunk)| chunk));
        }
        self.add_data(now, path, space, chunks);
        if chunks.is_empty() {
            self.spare = packet;
            return None;
        }
        let data = chunks.iter().any(|chunk| matches!(chunk, Chunk::Data(_)));
        let ecn = if data && self.ecn.agreed { Ecn::Ect0 } else { Ecn::NotEct };
        packet.tag = self.peer_tag;
        Some(Transmit { path: PathId(path as u8), ecn, packet })
    }

    /// The path that has something to send.
    fn next_path(&self) -> Option<usize> {
        if let Some((path, _)) = self.control.front() {
            return Some(*path);
        }
        if !self.is_open() {
            return None;
        }
        if self.rx.due {
            return Some(self.sack_path());
        }
        if self.tx.forward_due {
            return Some(super::data_path(&self.paths));
        }
        (0..self.paths.len()).find(|path| self.tx.wants(*path, &self.paths, &self.config))
    }

    /// True while data and SACKs may be sent.
    fn is_open(&self) -> bool {
        (State::Established..=State::ShutdownReceived).contains(&self.state)
    }

    fn add_data(&mut self, now: Instant, path: usize, mut space: usize, chunks: &mut Vec<Chunk>) {
        if !self.is_open() {
            return;
        }
        let data = self.tx.wants(path, &self.paths, &self.config);
        // §6.2: a pending SACK is bundled with data, unless SACKs clock data.
        let alone = self.config.ack_clocked;
        let sack = self.rx.due && path == self.sack_path() || self.rx.owes() && data && !alone;
        if sack && space >= 16 {
            if let Some(echo) = self.ecn.echo().filter(|echo| space >= 16 + echo.wire_bytes()) {
                // RFC 4960 appendix A: with every SACK until the peer has answered.
                space -= echo.wire_bytes();
                chunks.push(echo);
            }
            let sack = Chunk::Sack(self.rx.sack(space));
            space -= sack.wire_bytes();
            chunks.push(sack);
        }
        if self.tx.forward_due
            && path == super::data_path(&self.paths)
            && let Some(forward) = self.tx.forward(now, space)
        {
            space = space.saturating_sub(forward.wire_bytes());
            chunks.push(forward);
        }
        if data && !(sack && alone) {
            self.tx.fill(now, path, &mut self.paths, space, &self.config, chunks);
        }
    }
}
