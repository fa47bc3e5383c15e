//! DropTail: first in, first out; what does not fit is dropped on arrival.

use std::collections::VecDeque;

use talkspurt_proto::packet::Packet;
use talkspurt_proto::probe::{DropReason, Probe};
use talkspurt_proto::units::{Rate, Size};
use talkspurt_scenario::model;

use super::{Discipline, Hop, Served};

/// First in, first out; what does not fit is dropped on arrival. The packet in transmission does
/// not count.
#[derive(Debug)]
pub struct DropTail {
    waiting: VecDeque<Packet>,
    bytes: u64,
    limit_packets: u32,
    limit_bytes: u64,
}

impl DropTail {
    /// A queue within these limits, before a transmitter of this rate.
    #[must_use]
    pub fn new(words: &model::DropTail, rate: Rate, _: Size) -> Self {
        let bytes = words.bytes.map_or(u64::MAX, Size::as_bytes);
        let in_time = words.time.map_or(u64::MAX, |time| {
            let bits = u128::from(rate.as_bps()) * u128::from(time.as_nanos()) / 1_000_000_000;
            u64::try_from(bits / 8).unwrap_or(u64::MAX)
        });
        Self {
            waiting: VecDeque::new(),
            bytes: 0,
            limit_packets: words.packets.map_or(u32::MAX, |packets| packets - u32::from(words.ns2)),
            limit_bytes: bytes.min(in_time),
        }
    }
}

impl Discipline for DropTail {
    #[inline]
    fn enqueue<P: Probe>(&mut self, packet: Packet, hop: &mut Hop<'_, P>) -> bool {
        let bytes = self.bytes + u64::from(packet.ip_bytes);
        if self.waiting.len() as u32 >= self.limit_packets || bytes > self.limit_bytes {
            hop.refuse(packet, DropReason::Full);
            return false;
        }
        self.bytes = bytes;
        self.waiting.push_back(packet);
        true
    }
    #[inline]
    fn dequeue<P: Probe>(&mut self, _: &mut Hop<'_, P>) -> Served {
        let Some(packet) = self.waiting.pop_front() else { return Served::Empty };
        self.bytes -= u64::from(packet.ip_bytes);
        Served::Packet(packet)
    }
    #[inline]
    fn passes_when_idle(&self) -> bool {
        true
    }
    #[inline]
    fn packets(&self) -> u32 {
        self.waiting.len() as u32
    }
    #[inline]
    fn bytes(&self) -> u64 {
        self.bytes
    }
}
