//! FQ-CoDel: a CoDel queue for each flow, and turns between them (RFC 8290).

use std::collections::VecDeque;

use talkspurt_proto::packet::Packet;
use talkspurt_proto::probe::{DropReason, Probe};
use talkspurt_proto::units::{Rate, Size};
use talkspurt_scenario::model;

use super::codel::{Lane, Law};
use super::{Discipline, Hop, Served};

/// Most packets that the longest queue loses at once (RFC 8290 §4.1.2).
const MOST_AT_ONCE: u32 = 64;

#[derive(Debug, Default)]
struct Flow {
    lane: Lane,
    /// Bytes it may still send in this turn.
    credits: i64,
    /// Whether it stands in a list.
    listed: bool,
}

/// Controlled delay of each flow by itself.
#[derive(Debug)]
pub struct FqCodel {
    flows: Vec<Flow>,
    new: VecDeque<usize>,
    old: VecDeque<usize>,
    law: Law,
    quantum: i64,
    limit: u32,
    packets: u32,
    bytes: u64,
}

impl FqCodel {
    /// Queues as the scenario words them, before a link of this MTU.
    #[must_use]
    pub fn new(words: &model::FqCodel, _: Rate, mtu: Size) -> Self {
        let model::FqCodel { packets, queues, quantum, target, interval, ecn } = *words;
        Self {
            flows: std::iter::repeat_with(Flow::default).take(queues as usize).collect(),
            new: VecDeque::new(),
            old: VecDeque::new(),
            law: Law { target, interval, ecn, max_packet: mtu.as_bytes() },
            quantum: i64::try_from(quantum.as_bytes()).unwrap_or(i64::MAX / 2),
            limit: packets,
            packets: 0,
            bytes: 0,
        }
    }

    /// RFC 8290 §4.1.2: half the packets of the queue with most bytes go, from its head. False if
    /// `newcomer` was among them.
    fn shorten<P: Probe>(&mut self, newcomer: &Packet, hop: &mut Hop<'_, P>) -> bool {
        let longest = self.flows.iter_mut().max_by_key(|flow| flow.lane.bytes());
        let Some(Flow { lane, .. }) = longest else { return true };
        let mut kept = true;
        for _ in 0..(lane.packets() / 2).clamp(1, MOST_AT_ONCE) {
            let Some((_, packet)) = lane.pop() else { break };
            self.packets -= 1;
            self.bytes -= u64::from(packet.ip_bytes);
            kept &= packet.body != newcomer.body;
            hop.refuse(packet, DropReason::Full);
        }
        kept
    }
}

impl Discipline for FqCodel {
    fn enqueue<P: Probe>(&mut self, packet: Packet, hop: &mut Hop<'_, P>) -> bool {
        let index = packet.flow_hash() as usize % self.flows.len();
        let flow = &mut self.flows[index];
        flow.lane.push(hop.now, packet);
        self.packets += 1;
        self.bytes += u64::from(packet.ip_bytes);
        if !flow.listed {
            (flow.listed, flow.credits) = (true, self.quantum);
            self.new.push_back(index);
        }
        self.packets <= self.limit || self.shorten(&packet, hop)
    }

    fn dequeue<P: Probe>(&mut self, hop: &mut Hop<'_, P>) -> Served {
        loop {
            // RFC 8290 §4.2: new queues first.
            let from_new = !self.new.is_empty();
            let list = if from_new { &mut self.new } else { &mut self.old };
            let Some(index) = list.front().copied() else { return Served::Empty };
            let flow = &mut self.flows[index];
            if flow.credits <= 0 {
                flow.credits += self.quantum;
                list.pop_front();
                self.old.push_back(index);
                continue;
            }
            let before = (flow.lane.packets(), flow.lane.bytes());
            let head = flow.lane.dequeue(&self.law, hop);
            self.packets -= before.0 - flow.lane.packets();
            self.bytes -= before.1 - flow.lane.bytes();
            if let Some(packet) = head {
                flow.credits -= i64::from(packet.ip_bytes);
                return Served::Packet(packet);
            }
            list.pop_front();
            if from_new {
                self.old.push_back(index);
            } else {
                flow.listed = false;
            }
        }
    }
    fn passes_when_idle(&self) -> bool {
        false
    }
    fn packets(&self) -> u32 {
        self.packets
    }
    fn bytes(&self) -> u64 {
        self.bytes
    }
}
