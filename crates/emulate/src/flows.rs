//! The flows of real hosts: found by their five-tuples when their first packet is sent.

use std::collections::{BTreeMap, VecDeque};
use std::net::IpAddr;

use talkspurt_proto::wire::{dccp, ipv4, ipv6, sctp, tcp, udp};

use crate::FlowPorts;
use crate::packet::{PacketInfo, Segment};

/// Flows with an account of their own; all further packets between two hosts are one flow. A scan of ports
/// would otherwise fill the memory.
const MAX_FLOWS: usize = 100;
/// Packets in fragments whose ports are kept for the fragments that follow.
const MAX_CUT: usize = 64;

/// Ports from here on are the system's choice, another in every emulation (Linux's `ip_local_port_range`).
/// Names do not have them, so that a program's flows have the same names in all emulations.
const EPHEMERAL: u16 = 32_768;

/// The flows by five-tuple.
#[derive(Debug)]
pub(crate) struct Flows {
    hosts: usize,
    /// Those of five-tuples in order, then one of each pair of hosts.
    all: Vec<Option<Flow>>,
    /// Five-tuples of both directions.
    known: BTreeMap<Tuple, (usize, u8)>,
    own: usize,
    /// The ports of packets in fragments, the newest first.
    cut: VecDeque<(Cut, (u16, u16))>,
}

type Tuple = (IpAddr, IpAddr, u8, u16, u16);

/// What the fragments of a packet have in common (RFC 791 §3.2).
pub(crate) type Cut = (IpAddr, IpAddr, u8, u32);

/// The flow of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FlowMatch {
    /// Its number.
    pub(crate) index: usize,
    /// The side that sent the packet.
    pub(crate) side: u8,
    /// This is its first packet.
    pub(crate) is_new: bool,
}

/// A flow; side 0 sent its first packet.
#[derive(Clone, Debug)]
pub(crate) struct Flow {
    pub(crate) name: String,
    pub(crate) transport: String,
    /// By side; none of a flow of several five-tuples.
    ports: Option<[u16; 2]>,
    /// By side.
    pub(crate) hosts: [usize; 2],
    /// Packets sent by each side.
    pub(crate) sent: [u32; 2],
    /// For TCP, by sending side: the first sequence number that arrived of its newest connection, and the one
    /// after the last.
    arrived: [Option<(u32, u32)>; 2],
}

impl Flows {
    /// None between so many hosts.
    pub(crate) fn new(hosts: usize) -> Self {
        let all = vec![None; Self::capacity(hosts)];
        Self { hosts, all, known: BTreeMap::new(), own: 0, cut: VecDeque::new() }
    }

    /// How many flows so many hosts have at most.
    pub(crate) const fn capacity(hosts: usize) -> usize {
        MAX_FLOWS + hosts * hosts
    }

    /// A flow that was found.
    pub(crate) fn flow(&mut self, index: usize) -> &mut Flow {
        self.all[index].as_mut().expect("a packet's flow was found when it was sent")
    }

    /// The flow of a packet between two hosts with these names; `taken` are other names of flows.
    pub(crate) fn find(
        &mut self,
        seen: &PacketInfo,
        hosts: [usize; 2],
        names: [&str; 2],
        taken: impl Fn(&str) -> bool,
    ) -> FlowMatch {
        let protocol = seen.real.protocol;
        let ports = self.ports(seen);
        let tuple = (seen.src, seen.dst, protocol, ports.0, ports.1);
        if let Some((index, side)) = self.known.get(&tuple) {
            return FlowMatch { index: *index, side: *side, is_new: false };
        }
        if self.own == MAX_FLOWS {
            return self.others(hosts, names, taken);
        }
        let (index, side) = (self.own, 0);
        self.own += 1;
        self.known.insert(tuple, (index, side));
        // A packet to itself never leaves a host, so that this is another tuple.
        let reverse = (seen.dst, seen.src, protocol, ports.1, ports.0);
        self.known.insert(reverse, (index, 1));
        let transport = protocol_name(protocol);
        let end = |name: &str, port: u16| match port {
            0 | EPHEMERAL.. => name.to_owned(),
            port => format!("{name}:{port}"),
        };
        let version = if seen.src.is_ipv6() { " IPv6" } else { "" };
        let (from, to) = (end(names[0], ports.0), end(names[1], ports.1));
        let name = self.free(format!("{transport} {from}-{to}{version}"), taken);
        let ports = Some(ports.into());
        self.all[index] = Some(Flow { ports, ..Flow::new(name, transport, hosts) });
        FlowMatch { index, side, is_new: true }
    }

    /// The ports of each flow that is one five-tuple.
    pub(crate) fn ports_by_flow(&self) -> Vec<FlowPorts> {
        let known = self.all.iter().flatten();
        known
            .filter_map(|flow| Some(FlowPorts { flow: flow.name.clone(), ports: flow.ports? }))
            .collect()
    }

    /// The ports of a packet, which only the first of its fragments has.
    fn ports(&mut self, seen: &PacketInfo) -> (u16, u16) {
        let Some(fragment) = seen.fragment else { return seen.ports };
        let cut = (seen.src, seen.dst, seen.real.protocol, fragment.of);
        if seen.has_headers {
            self.cut.truncate(MAX_CUT - 1);
            self.cut.push_front((cut, seen.ports));
        }
        let known = self.cut.iter().find(|(known, _)| *known == cut);
        known.map_or(seen.ports, |(_, ports)| *ports)
    }

    /// The flow of all packets between two hosts that have none of their own.
    fn others(
        &mut self,
        [from, to]: [usize; 2],
        names: [&str; 2],
        taken: impl Fn(&str) -> bool,
    ) -> FlowMatch {
        let (low, high) = (from.min(to), from.max(to));
        let index = MAX_FLOWS + low * self.hosts + high;
        let is_new = self.all[index].is_none();
        if is_new {
            let name = self.free(format!("others {}-{}", names[0], names[1]), taken);
            self.all[index] = Some(Flow::new(name, "mixed".to_owned(), [from, to]));
        }
        let side = u8::from(self.flow(index).hosts[0] != from);
        FlowMatch { index, side, is_new }
    }

    /// The name, with a number if it is another flow's.
    fn free(&self, name: String, taken: impl Fn(&str) -> bool) -> String {
        let known =
            |name: &str| taken(name) || self.all.iter().flatten().any(|flow| flow.name == name);
        let mut numbers = 2..;
        let mut found = name.clone();
        while known(&found) {
            found = format!("{name} #{}", numbers.next().expect("fewer flows than numbers"));
        }
        found
    }
}

impl Flow {
    fn new(name: String, transport: String, hosts: [usize; 2]) -> Self {
        Self { name, transport, ports: None, hosts, sent: [0; 2], arrived: [None; 2] }
    }

    /// It has packets of several five-tuples.
    pub(crate) fn is_mixed(&self) -> bool {
        self.transport == "mixed"
    }

    /// Bytes of payload that a packet, sent by this side, adds to what its receiver has: of TCP those beyond
    /// the highest sequence number so far, so that retransmissions do not count.
    pub(crate) fn gain(&mut self, side: u8, segment: Option<Segment>, payload: u32) -> u32 {
        let segment = segment.filter(|_| !self.is_mixed());
        let Some(Segment { seq, numbers, is_syn }) = segment else { return payload };
        let known = &mut self.arrived[usize::from(side)];
        // Another SYN begins another connection between the same ports.
        let of_connection = known.filter(|(first, _)| !is_syn || *first == seq);
        let (first, before) = of_connection.unwrap_or((seq, seq));
        let end = seq.wrapping_add(numbers);
        let ahead = end.wrapping_sub(before);
        if ahead == 0 || ahead > u32::MAX / 2 {
            return 0;
        }
        *known = Some((first, end));
        // SYN and FIN take a number and carry no byte.
        ahead - (numbers - payload).min(ahead)
    }
}

fn protocol_name(protocol: u8) -> String {
    match protocol {
        udp::PROTOCOL => "udp".to_owned(),
        tcp::PROTOCOL => "tcp".to_owned(),
        sctp::PROTOCOL => "sctp".to_owned(),
        dccp::PROTOCOL => "dccp".to_owned(),
        ipv4::ICMP | ipv6::ICMP => "icmp".to_owned(),
        other => format!("ip-{other}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::Fragment;
    use bytes::Bytes;
    use talkspurt_proto::body::{Layers, RealPacket};
    use talkspurt_proto::packet::Ecn;

    fn seen(from: u8, to: u8, protocol: u8, ports: (u16, u16)) -> PacketInfo {
        let address = |last| IpAddr::from([10, 0, 0, last]);
        let layers = Layers::default();
        let real = RealPacket { bytes: Bytes::new(), layers, protocol, ttl: 64 };
        let (src, dst) = (address(from), address(to));
        let (ecn, dscp, fragment, has_headers) = (Ecn::NotEct, 0, None, true);
        PacketInfo { src, dst, ports, ecn, dscp, fragment, has_headers, is_answerable: true, real }
    }

    #[test]
    fn fragments_are_of_the_flow_of_the_first() {
        let mut flows = Flows::new(2);
        let mut find = |of: Option<u32>, has_headers, ports| {
            let fragment =
                of.map(|of| Fragment { of, offset: 0, length: 8, has_more: has_headers });
            let seen = PacketInfo { fragment, has_headers, ..seen(1, 2, udp::PROTOCOL, ports) };
            flows.find(&seen, [0, 1], ["a", "b"], |_| false).index
        };
        assert_eq!(find(None, true, (7, 9)), 0);
        assert_eq!(find(Some(5), true, (7, 9)), 0);
        assert_eq!(find(Some(5), false, (0, 0)), 0);
        assert_eq!(find(Some(6), true, (8, 9)), 1);
        assert_eq!((find(Some(5), false, (0, 0)), find(Some(6), false, (0, 0))), (0, 1));
        // The identification is used again; fragments of a packet that nobody saw the beginning of.
        assert_eq!((find(Some(5), true, (8, 9)), find(Some(5), false, (0, 0))), (1, 1));
        assert_eq!(find(Some(7), false, (0, 0)), 2);
        for other in 0..64 {
            find(Some(100 + other), true, (7, 9));
        }
        assert_eq!(find(Some(5), false, (0, 0)), 2);
    }

    fn found(index: usize, side: u8, is_new: bool) -> FlowMatch {
        FlowMatch { index, side, is_new }
    }

    #[test]
    fn both_directions_of_a_five_tuple_are_one_flow() {
        let mut flows = Flows::new(3);
        let mut find = |from: u8, to: u8, protocol, ports| {
            let hosts = [usize::from(from), usize::from(to)];
            flows.find(&seen(from, to, protocol, ports), hosts, ["a", "b"], |name| {
                name == "udp a:7-b:9"
            })
        };
        assert_eq!(find(1, 2, tcp::PROTOCOL, (1000, 80)), found(0, 0, true));
        assert_eq!(find(2, 1, tcp::PROTOCOL, (80, 1000)), found(0, 1, false));
        assert_eq!(find(1, 2, udp::PROTOCOL, (1000, 80)), found(1, 0, true));
        assert_eq!(find(2, 1, tcp::PROTOCOL, (1000, 80)), found(2, 0, true));
        assert_eq!(find(1, 2, udp::PROTOCOL, (7, 9)), found(3, 0, true));
        assert_eq!(flows.flow(0).name, "tcp a:1000-b:80");
        assert_eq!(flows.flow(3).name, "udp a:7-b:9 #2");
    }

    /// The ports of clients differ between emulations, names do not.
    #[test]
    fn names_have_no_ephemeral_ports() {
        let named = |clients: [u16; 4]| {
            let mut flows = Flows::new(2);
            let mut name = |protocol, ports| {
                let found = flows.find(&seen(1, 2, protocol, ports), [0, 1], ["a", "b"], |_| false);
                flows.flow(found.index).name.clone()
            };
            let [one, two, three, four] = clients;
            let names = [
                name(tcp::PROTOCOL, (one, 80)),
                name(tcp::PROTOCOL, (two, 80)),
                name(udp::PROTOCOL, (three, 53)),
                name(udp::PROTOCOL, (three, four)),
                name(udp::PROTOCOL, (32_767, 32_768)),
            ];
            (names, flows.ports_by_flow())
        };
        let (names, ports) = named([32_768, 65_535, 40_000, 50_000]);
        let expected = ["tcp a-b:80", "tcp a-b:80 #2", "udp a-b:53", "udp a-b", "udp a:32767-b"];
        assert_eq!(names, expected);
        assert_eq!(ports.iter().map(|it| &*it.flow).collect::<Vec<_>>(), expected);
        assert_eq!(ports[1].ports, [65_535, 80]);
        let (again, others) = named([40_001, 40_000, 61_000, 32_768]);
        assert_eq!(again, names);
        assert_ne!(others, ports);
    }

    #[test]
    fn a_scan_of_all_ports_makes_few_flows() {
        let mut flows = Flows::new(2);
        for port in 1..=65_535 {
            flows.find(&seen(1, 2, udp::PROTOCOL, (9, port)), [0, 1], ["a", "b"], |_| false);
        }
        let mut last = |from, to, hosts: [usize; 2], ports| {
            let names = [["a", "b"][hosts[0]], ["a", "b"][hosts[1]]];
            flows.find(&seen(from, to, udp::PROTOCOL, ports), hosts, names, |_| false)
        };
        assert_eq!(last(2, 1, [1, 0], (3, 9)), found(2, 1, false));
        let others = last(1, 2, [0, 1], (60_000, 9));
        assert_eq!(last(2, 1, [1, 0], (60_001, 9)), FlowMatch { side: 1, ..others });
        assert!(others.index < Flows::capacity(2) && !others.is_new);
        assert_eq!(flows.flow(others.index).name, "others a-b");
        let segment = Some(Segment { seq: 1, numbers: 9, is_syn: false });
        assert_eq!(flows.flow(others.index).gain(0, segment, 9), 9);
        assert_eq!(flows.flow(others.index).gain(0, segment, 9), 9);
    }

    fn of_tcp() -> Flow {
        let mut flows = Flows::new(2);
        flows.find(&seen(1, 2, tcp::PROTOCOL, (1, 2)), [0, 1], ["a", "b"], |_| false);
        flows.flow(0).clone()
    }

    /// SYN, two segments, the first again, one past a hole, the hole, FIN; around the end of the space.
    #[test]
    fn bytes_of_tcp_count_once() {
        let mut flow = of_tcp();
        let isn = u32::MAX - 150;
        let at = |offset: u32| isn.wrapping_add(offset);
        let mut gain = |offset, payload, flags| {
            let (seq, is_syn) = (at(offset), offset == 0);
            flow.gain(0, Some(Segment { seq, numbers: payload + flags, is_syn }), payload)
        };
        assert_eq!(gain(0, 0, 1), 0);
        assert_eq!((gain(1, 100, 0), gain(101, 100, 0), gain(1, 100, 0)), (100, 100, 0));
        assert_eq!((gain(301, 100, 0), gain(201, 100, 0), gain(401, 0, 1)), (200, 0, 0));
        // The SYN again, late.
        assert_eq!((gain(0, 0, 1), gain(402, 0, 0)), (0, 0));
        assert_eq!(flow.gain(0, None, 55), 55);
    }

    /// A connection between the ports of the one before it, with another initial sequence number (RFC 6056).
    #[test]
    fn ports_that_are_used_again_have_another_connection() {
        let mut flow = of_tcp();
        for isn in [7, 4_000_000_000, 2_000_000_000, 2_000_000_001] {
            let mut gain = |seq, payload, is_syn| {
                let numbers = payload + u32::from(is_syn);
                flow.gain(1, Some(Segment { seq, numbers, is_syn }), payload)
            };
            assert_eq!((gain(isn, 0, true), gain(isn + 1, 100, false)), (0, 100), "{isn}");
            assert_eq!((gain(isn, 0, true), gain(isn + 101, 100, false)), (0, 100), "{isn}");
        }
        // Data in the SYN (RFC 7413).
        let segment = Segment { seq: 50, numbers: 11, is_syn: true };
        assert_eq!(flow.gain(1, Some(segment), 10), 10);
    }
}
