//! FQ-CoDel: a CoDel queue per flow, served round robin (RFC 8290).

use std::collections::VecDeque;
use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use talkspurt_proto::packet::Packet;
use talkspurt_proto::probe::{Control, DropReason, Probe};
use talkspurt_proto::time::Duration;
use talkspurt_proto::units::{Rate, Size};

use crate::codel::{self, Lane, Law, law_fits};
use crate::validate::{ConfigError, Validate, some};
use crate::{Discipline, Hop, Served};

/// CoDel queues, one per flow by its hash, served by deficit round robin; the queues of new flows come first.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// Limit in packets over all queues, 1 or more; above it the longest queue drops up to half its packets, 64
    /// at most (RFC 8290 §5.2.3, §4.1).
    #[schemars(range(min = 1))]
    pub packets: u32,
    /// Number of queues, 1 or more; flows with equal hashes share one (RFC 8290 §5.2.5).
    #[schemars(range(min = 1, max = 65_536))]
    pub queues: u32,
    /// Bytes a queue may send per round, 1B or more (RFC 8290 §5.2.4).
    pub quantum: Size,
    /// As in CoDel, for each queue.
    pub target: Duration,
    /// As in CoDel, for each queue.
    pub interval: Duration,
    /// Whether ECN-capable packets are marked instead of dropped (RFC 8290 §5.2.6).
    pub ecn: bool,
}

impl Default for Config {
    fn default() -> Self {
        let codel = codel::Config::default();
        Self {
            packets: 10_240,
            queues: 1024,
            quantum: Size::from_bytes(1514),
            target: codel.target,
            interval: codel.interval,
            ecn: true,
        }
    }
}

impl fmt::Display for Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "FQ-CoDel {}, {}", self.target, self.interval)
    }
}

impl Validate for Config {
    fn errors(&self) -> Vec<ConfigError> {
        let mut found = law_fits(self.target, self.interval);
        found.extend(some("quantum", self.quantum));
        found
    }
}

/// Most packets dropped from the longest queue at once (RFC 8290 §4.1).
const MAX_AT_ONCE: u32 = 64;

#[derive(Debug, Default)]
struct Flow {
    lane: Lane,
    /// Bytes it may still send in this round.
    credits: i64,
    /// Whether it is in a list.
    listed: bool,
}

/// CoDel for each flow separately.
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
    /// Queues as configured, for a link of this MTU.
    #[must_use]
    pub fn new(words: &Config, _: Rate, mtu: Size) -> Self {
        let Config { packets, queues, quantum, target, interval, ecn } = *words;
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

    /// RFC 8290 §4.1: drops half the packets of the queue with most bytes, from its head. False if `newcomer`
    /// was one of them.
    fn shorten<P: Probe>(&mut self, newcomer: &Packet, hop: &mut Hop<'_, P>) -> bool {
        let longest = self.flows.iter_mut().max_by_key(|flow| flow.lane.bytes);
        let Some(Flow { lane, .. }) = longest else { return true };
        let mut kept = true;
        for _ in 0..(lane.packets() / 2).clamp(1, MAX_AT_ONCE) {
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
            let before = (flow.lane.packets(), flow.lane.bytes);
            let head = flow.lane.dequeue(&self.law, hop);
            self.packets -= before.0 - flow.lane.packets();
            self.bytes -= before.1 - flow.lane.bytes;
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
    fn control(&self) -> Control {
        let rate = self.flows.iter().map(|flow| flow.lane.drops_per_second(&self.law)).sum();
        Control { drops_per_second: Some(rate), ..Control::default() }
    }
    fn packets(&self) -> u32 {
        self.packets
    }
    fn bytes(&self) -> u64 {
        self.bytes
    }
}
