//! Requests for memory ahead of its use, in runs of many flows: the state of the next peer is in no cache then.

use talkspurt_proto::prefetch::prefetch;
use talkspurt_proto::probe::Probe;

use super::World;
use crate::routes::AT_PEER;
use crate::schedule::Wake;

/// Packets that still arrive from a link between the last request for a receiver's memory and its turn.
const AHEAD: u32 = 2;

impl<P: Probe> World<P> {
    /// Requests what the next peer needs that wakes; what that points to is requested when the next packet
    /// arrives somewhere.
    #[inline(never)]
    pub(super) fn prefetch_sender(&mut self, wake: Wake) {
        let first = self.links.len();
        let runner_up =
            self.schedule.runner_up(wake).map(|node| (node as usize).wrapping_sub(first));
        let Some(peer) = runner_up.filter(|peer| *peer < self.peers.len()) else { return };
        self.peers[peer].prefetch();
        self.schedule.prefetch((first + peer) as u32);
        self.routes.prefetch(peer as u32);
        self.probe.prefetch(peer as u32, false);
        prefetch(&self.numbers[peer], 1);
        self.next_woken = Some(peer as u32);
    }

    /// Requests what the peers need that receive the next packets from a link: with each packet that arrives
    /// before theirs, what the last request has made readable points to.
    #[inline(never)]
    pub(super) fn prefetch_receivers(&mut self, link: u32) {
        if let Some(peer) = self.next_woken.take() {
            self.peers[peer as usize].prefetch_source();
        }
        let link = &self.links[link as usize];
        link.prefetch_arrival(4 * AHEAD);
        if let Some(packet) = link.next_arrival(AHEAD + 4) {
            self.routes.prefetch(packet.route);
        }
        for others in (AHEAD..AHEAD + 4).rev() {
            let Some(packet) = link.next_arrival(others) else { continue };
            let step = self.routes.step(packet.route, packet.hop);
            let number = step & !AT_PEER;
            let Some(peer) = self.peers.get(number as usize).filter(|_| step & AT_PEER != 0) else {
                return;
            };
            match others - AHEAD {
                3 => {
                    peer.prefetch();
                    self.pool.prefetch(packet.body);
                    self.probe.prefetch(number, true);
                }
                2 => peer.prefetch_media(),
                1 => peer.prefetch_playout(),
                _ => peer.prefetch_frames(),
            }
        }
    }
}
