//! The loop: events of the world that are due, packets that arrived for hosts, packets that hosts sent, and a
//! wait for the next of them.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{ErrorKind, Read as _, Write as _};
use std::net::IpAddr;
use std::os::fd::AsFd as _;
use std::sync::atomic::{AtomicBool, Ordering};

use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::time::{TimeSpec, TimeValLike as _};
use talkspurt_experiment::{Failure, Shared, Written, failed};
use talkspurt_live::Clock;
use talkspurt_proto::body::{Body, RealPacket};
use talkspurt_proto::packet::{BodyId, IpVersion, Packet};
use talkspurt_proto::probe::{Note, Place, Probe, Topic, UNNUMBERED};
use talkspurt_proto::time::{Duration, Instant};
use talkspurt_record::pcapng::CaptureProbe;
use talkspurt_record::{FlowInfo, Recorder, SideInfo};
use talkspurt_scenario::Point;
use talkspurt_sim::build::RealHosts;
use talkspurt_sim::drive::Timetable;
use talkspurt_sim::world::{Departure, End, World};

use crate::flows::{FlowMatch, Flows};
use crate::lateness::Histogram;
use crate::pace::{Pace, Wait};
use crate::packet::{
    Message, PacketInfo, Segment, arrived, may_be_fragment, message, parse, segment, ttl_at,
};
use crate::shown::Excerpts;
use crate::whole::Fragments;
use crate::{Account, Control, Host, HostAccount};

/// Longest IP packet.
const LONGEST: usize = 65_535;
/// Packets read from a device before the next one's turn.
const BURST: usize = 32;
/// Longest sleep: how soon a request to end is noticed.
const LONGEST_SLEEP: Duration = Duration::from_millis(5);

/// RFC 4443 §2.4 (f): messages that a router sends at once, and how long each takes of a longer series. Those
/// of Linux (`icmp_msgs_burst`, `icmp_msgs_per_sec`).
const MESSAGES: u64 = 50;
const MESSAGE_TIME: Duration = Duration::from_millis(1);

/// What observes an emulation.
pub(crate) type Watch = (Recorder, (Tally, (Excerpts, Written)));

/// Counts what happens to packets of real hosts inside the network.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tally {
    /// The first flow of real hosts.
    first: u32,
    sent: u64,
    copied: u64,
    messages: u64,
    received: u64,
    dropped: u64,
}

impl Tally {
    pub(crate) const fn new(flows: usize) -> Self {
        let first = flows as u32;
        Self { first, sent: 0, copied: 0, messages: 0, received: 0, dropped: 0 }
    }
}

impl Probe for Tally {
    fn wants(&self, topic: Topic) -> bool {
        matches!(topic, Topic::Packet | Topic::Drop)
    }

    fn record(&mut self, _: Instant, _: Place, note: &Note<'_>) {
        let (packet, count) = match note {
            Note::Sent { packet, .. } => (packet, &mut self.sent),
            Note::Copied { packet, .. } => (packet, &mut self.copied),
            Note::Answered { packet, .. } => (packet, &mut self.messages),
            Note::Received { packet, .. } => (packet, &mut self.received),
            Note::Dropped { packet, .. } => (packet, &mut self.dropped),
            _ => return,
        };
        *count += u64::from(packet.flow >= self.first);
    }
}

/// A running emulation.
pub(crate) struct Engine<'a> {
    point: &'a Point,
    world: World<Watch>,
    clock: Clock,
    pace: Pace,
    routes: RealHosts,
    /// The number of the first route between hosts.
    first_route: u32,
    devices: Vec<Device>,
    /// Hosts by address.
    addresses: BTreeMap<IpAddr, usize>,
    flows: Flows,
    fragments: Fragments,
    /// By node: when all its messages so far have taken their time.
    messages_until: Vec<Instant>,
    expired: u64,
    lateness: Histogram,
    /// When the devices were last looked at, with the sleep since then that a packet ends.
    looked: Instant,
    /// By place of the body: how late a packet was read.
    read_late: Vec<Duration>,
    /// Memory that is used again.
    out: Vec<Departure>,
    bytes: Vec<u8>,
}

struct Device {
    file: File,
    account: HostAccount,
}

impl Device {
    fn watch(&self) -> PollFd<'_> {
        PollFd::new(self.file.as_fd(), PollFlags::POLLIN)
    }
}

impl<'a> Engine<'a> {
    pub(crate) fn new(
        world: World<Watch>,
        point: &'a Point,
        routes: RealHosts,
        hosts: Vec<Host>,
    ) -> Self {
        let network = &point.network;
        let of_host = |(host, node): (usize, &usize)| {
            let known = &network.addresses[*node];
            let (v4, v6) = (known.v4.iter(), known.v6.iter());
            let all = v4.map(|v4| IpAddr::V4(*v4)).chain(v6.map(|v6| IpAddr::V6(*v6)));
            all.map(move |address| (address, host)).collect::<Vec<_>>()
        };
        let addresses = routes.nodes.iter().enumerate().flat_map(of_host).collect();
        let devices = hosts.into_iter().map(|Host { node, device }| Device {
            file: device.into(),
            account: HostAccount { node, ..HostAccount::default() },
        });
        Self {
            point,
            first_route: network.ways().count() as u32,
            world,
            clock: Clock::start(),
            pace: Pace::new(Instant::ZERO),
            devices: devices.collect(),
            addresses,
            flows: Flows::new(routes.nodes.len()),
            fragments: Fragments::default(),
            messages_until: vec![Instant::ZERO; network.nodes.len()],
            routes,
            expired: 0,
            lateness: Histogram::new(),
            looked: Instant::ZERO,
            read_late: Vec::new(),
            out: Vec::new(),
            bytes: vec![0; LONGEST],
        }
    }

    /// Runs until the end of the timetable, or the requested end if that is earlier.
    pub(crate) fn run(
        mut self,
        timetable: &Timetable,
        shared: &Shared,
        control: &Control,
    ) -> Result<(World<Watch>, Account), Failure> {
        let end = Instant::ZERO + timetable.duration;
        let counters = self.world.counters();
        self.world.probe.0.sample(Instant::ZERO, &counters);
        self.clock = Clock::start();
        loop {
            let (stop, is_edge) = timetable.stop_after(self.world.now());
            let is_last = self.advance(stop, shared, control)? || stop >= end;
            let now = self.world.now();
            if is_last && now < end {
                self.world.probe.0.cut(now);
            }
            self.world.settle();
            self.world.probe.settled(now);
            if is_edge || is_last {
                let counters = self.world.counters();
                self.world.forget_maxima();
                self.world.probe.0.sample(now, &counters);
                shared.passed.store(now.as_nanos(), Ordering::Relaxed);
            }
            // A writer inside a probe cannot return errors: the error is reported when it is finished.
            if is_last || failed(&self.world.probe.0, &self.world.probe.1.1.1) {
                break;
            }
        }
        self.world.finish_playout();
        self.world.assert_conservation();
        control.ended.store(true, Ordering::Release);
        self.drain(shared, control);
        Ok(self.finish())
    }

    /// Lets so much time pass for a test, and sends what hosts have sent since.
    #[cfg(any(test, fuzzing))]
    pub(crate) fn pass(&mut self, time: Duration) {
        self.clock = self.clock.ahead(time);
        let (now, never) = (self.clock.now(), AtomicBool::new(false));
        self.step(now, &never).expect("nothing cancels it");
        self.read_all(now, &never).expect("nothing cancels it");
        self.step(self.clock.now(), &never).expect("nothing cancels it");
    }

    /// The world and the account when it is over.
    pub(crate) fn finish(self) -> (World<Watch>, Account) {
        let (tally, (_, (captures, _))) = &self.world.probe.1;
        let account = Account {
            hosts: self.devices.into_iter().map(|device| device.account).collect(),
            flows: self.flows.ports_by_flow(),
            sent_packets: tally.sent,
            copied_packets: tally.copied,
            fragment_packets: self.world.fragments_added(),
            message_packets: tally.messages,
            arrived_packets: tally.received - self.expired,
            expired_packets: self.expired,
            dropped_packets: tally.dropped,
            in_flight_packets: self.world.real_packets(),
            uncaptured_packets: captures.as_ref().map_or(0, CaptureProbe::unwritten),
            lateness: self.lateness.summary(),
        };
        (self.world, account)
    }

    /// Runs in real time until this instant; true if the end was requested before.
    fn advance(
        &mut self,
        stop: Instant,
        shared: &Shared,
        control: &Control,
    ) -> Result<bool, Failure> {
        let cancel = &shared.cancel;
        loop {
            let now = self.clock.now().min(stop);
            self.step(now, cancel)?;
            if now == stop || control.end.load(Ordering::Relaxed) || self.has_failed() {
                return Ok(now < stop);
            }
            let busy = self.read_all(stop, cancel)?;
            let now = self.clock.now();
            let next = self.world.next_event().map_or(stop, |next| next.min(stop));
            match self.pace.wait(now, next, busy) {
                Wait::Spin => {}
                Wait::Sleep(length) => self.sleep(now, length.min(LONGEST_SLEEP), true),
                Wait::Rest(length) => self.sleep(now, length, false),
            }
        }
    }

    /// Processes all events before this instant and writes what arrived for hosts.
    fn step(&mut self, now: Instant, cancel: &AtomicBool) -> Result<(), Failure> {
        if !self.world.run_until(now, cancel) || cancel.load(Ordering::Relaxed) {
            return Err(Failure::Cancelled);
        }
        loop {
            let mut out = std::mem::take(&mut self.out);
            out.extend(self.world.departures());
            let is_empty = out.is_empty();
            for departure in out.drain(..) {
                self.depart(departure);
            }
            self.out = out;
            if is_empty {
                return Ok(());
            }
        }
    }

    /// Sleeps for so long, or until a packet is there if the sleep may be cut short.
    fn sleep(&mut self, now: Instant, length: Duration, may_wake: bool) {
        let watched = if may_wake { &self.devices[..] } else { &[] };
        let mut files: Vec<PollFd<'_>> = watched.iter().map(Device::watch).collect();
        let nanos = i64::try_from(length.as_nanos()).unwrap_or(i64::MAX);
        // A signal only ends the sleep early.
        let _ = ppoll(&mut files, Some(TimeSpec::nanoseconds(nanos)), None);
        drop(files);
        // A rest makes up for the span before it.
        if may_wake {
            let slept = self.clock.now().saturating_since(now);
            self.pace.slept(slept);
            self.looked += slept.min(length);
        }
    }

    /// Sends what hosts sent; false if there was nothing.
    fn read_all(&mut self, stop: Instant, cancel: &AtomicBool) -> Result<bool, Failure> {
        let mut busy = false;
        let begin = self.clock.now();
        for host in 0..self.devices.len() {
            for _ in 0..BURST {
                let Some(length) = self.read(host) else { break };
                busy = true;
                let now = self.clock.now().min(stop);
                self.step(now, cancel)?;
                self.send(host, length);
            }
        }
        self.looked = begin;
        Ok(busy)
    }

    /// Reads a packet; returns its length, `None` if there is none. An error ends the emulation.
    fn read(&mut self, host: usize) -> Option<usize> {
        let Device { file, account } = &mut self.devices[host];
        match file.read(&mut self.bytes) {
            Ok(length) => {
                account.read_packets += 1;
                account.read_bytes += length as u64;
                Some(length)
            }
            Err(error) => {
                let is_empty =
                    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted);
                if !is_empty {
                    account.failure.get_or_insert_with(|| error.to_string());
                }
                None
            }
        }
    }

    fn has_failed(&self) -> bool {
        self.devices.iter().any(|device| device.account.failure.is_some())
    }

    /// Sends the packet that was read on its route.
    fn send(&mut self, from: usize, length: usize) {
        let Some(seen) = parse(&self.bytes[..length]) else {
            self.devices[from].account.malformed_packets += 1;
            return;
        };
        let to = self.addresses.get(&seen.dst).copied().filter(|to| *to != from);
        let Some(to) = to.filter(|_| self.addresses.get(&seen.src) == Some(&from)) else {
            return self.refuse(from, &seen);
        };
        let (flow, side) = self.flow(&seen, [from, to]);
        let route = self.routes.find(from, to, side, seen.real.ttl);
        let number = &mut self.flows.flow(flow).sent[usize::from(side)];
        let packet = Packet {
            body: BodyId(0),
            ip_bytes: length as u32,
            route: self.first_route + route as u32,
            flow: (self.point.scenario.flows.len() + flow) as u32,
            number: *number,
            hop: 0,
            ecn: seen.ecn,
            dscp: seen.dscp,
            version: seen.version(),
            sent: Instant::ZERO,
        };
        *number = number.wrapping_add(1);
        self.devices[from].account.sent_packets += 1;
        let BodyId(place) = self.world.inject(packet, Body::Real(Box::new(seen.real)));
        let place = place as usize;
        if place >= self.read_late.len() {
            self.read_late.resize(place + 1, Duration::ZERO);
        }
        // It came after the devices were last looked at, and not during a sleep, which it would have ended.
        self.read_late[place] = self.clock.now().saturating_since(self.looked);
    }

    /// The flow and side of a packet; a new flow gets accounts.
    fn flow(&mut self, seen: &PacketInfo, hosts: [usize; 2]) -> (usize, u8) {
        let scenario = &self.point.scenario;
        let names = hosts.map(|host| self.devices[host].account.node.as_str());
        let taken = |name: &str| scenario.flows.contains_key(name);
        let FlowMatch { index, side, is_new } = self.flows.find(seen, hosts, names, taken);
        let place = scenario.flows.len() + index;
        let (recorder, (_, (excerpts, (_, packets)))) = &mut self.world.probe;
        if is_new {
            let flow = self.flows.flow(index);
            let [from, to] = names.map(str::to_owned);
            recorder.name_flow(
                place,
                FlowInfo {
                    name: flow.name.clone(),
                    transport: flow.transport.clone(),
                    from,
                    to,
                    sides: [Some(SideInfo::real()), None],
                    ..FlowInfo::reserved()
                },
            );
            excerpts.name_flow(place, &flow.name);
            if let Some(packets) = packets {
                packets.name_flow(place, &flow.name);
            }
        } else if side == 1 && self.flows.flow(index).sent[1] == 0 {
            recorder.add_reverse(place);
        }
        (index, side)
    }

    /// A packet to an address that no host has: the first router answers, if it may.
    fn refuse(&mut self, from: usize, seen: &PacketInfo) {
        self.devices[from].account.unroutable_packets += 1;
        let node = self.routes.nodes[from];
        let first = self.point.network.links.iter().find(|link| link.from == node);
        let router = first.map_or(node, |link| link.to);
        if let Some(answer) = self.message(Message::Unreachable, router, seen, seen.real.ttl) {
            self.devices[from].account.answered_packets += 1;
            self.write(from, &answer);
        }
    }

    fn address(&self, node: usize, version: IpVersion) -> IpAddr {
        let known = &self.point.network.addresses[node];
        match version {
            IpVersion::V4 => known.v4[0].into(),
            IpVersion::V6 => known.v6[0].into(),
        }
    }

    /// A packet left the world.
    fn depart(&mut self, departure: Departure) {
        let Departure { at, end, packet, body } = departure;
        let Body::Real(real) = body else { unreachable!("only real packets leave the world") };
        let (host, side) = match end {
            End::Host { host, side } => (host as usize, side),
            End::TooBig(link) => {
                let mtu = self.point.network.links[link as usize].mtu.as_bytes() as u32;
                let ttl = ttl_at(&real, &packet);
                return self.answer(link, &packet, &real, (Message::TooBig(mtu), ttl));
            }
        };
        let route = packet.route.checked_sub(self.first_route);
        let route = route.and_then(|index| self.routes.routes.get(index as usize));
        if let Some(next) = route.and_then(|route| route.next) {
            // Its TTL became zero at the router before this link.
            self.expired += 1;
            return self.answer(next as u32, &packet, &real, (Message::TimeExceeded, 1));
        }
        // Of what a router made, nothing was read late.
        let read_late = self.read_late.get_mut(packet.body.0 as usize).map(std::mem::take);
        let read_late = read_late.unwrap_or_default();
        let mut bytes = Vec::new();
        arrived(&real, &packet, &mut bytes);
        self.lateness.add(self.clock.now().saturating_since(at) + read_late);
        // A router's message, or a copy.
        let is_more = packet.number == UNNUMBERED;
        if self.write(host, &bytes) && !is_more {
            let Some((payload, segment)) = self.whole(at, &real) else { return };
            let first = self.point.scenario.flows.len();
            let flow = self.flows.flow(packet.flow as usize - first);
            let bytes = flow.gain(side ^ 1, segment, payload);
            let place = Place::Peer(2 * packet.flow + u32::from(side));
            let note = Note::Delivered { index: u32::MAX, bytes };
            self.world.probe.record(at, place, &note);
        }
    }

    /// The payload of a packet that arrived, and what it is as a TCP segment; `None` as long as it is not
    /// complete.
    fn whole(&mut self, at: Instant, real: &RealPacket) -> Option<(u32, Option<Segment>)> {
        match may_be_fragment(real).then(|| parse(&real.bytes)).flatten() {
            Some(seen) if seen.fragment.is_some() => self.fragments.add(at, &seen),
            _ => Some((real.layers.payload, segment(real))),
        }
    }

    /// The router before a link sends its sender a message about a packet that arrived with this TTL.
    fn answer(
        &mut self,
        link: u32,
        packet: &Packet,
        real: &RealPacket,
        (kind, ttl): (Message, u8),
    ) {
        let Some(mut seen) = parse(&real.bytes) else { return };
        seen.ecn = packet.ecn;
        let link_at = &self.point.network.links[link as usize];
        let sender = self.addresses.get(&seen.src).map(|host| self.routes.nodes[*host]);
        // A sender would not believe a message from its own address; the next node's it does.
        let router = if sender == Some(link_at.from) { link_at.to } else { link_at.from };
        let answer = self.message(kind, router, &seen, ttl).and_then(|bytes| parse(&bytes));
        if let Some(answer) = answer {
            self.world.answer(link, packet, Body::Real(Box::new(answer.real)));
        }
    }

    /// A router's message; `None` if there must be none, or there were too many.
    fn message(
        &mut self,
        kind: Message,
        router: usize,
        about: &PacketInfo,
        ttl: u8,
    ) -> Option<Vec<u8>> {
        let message = message(kind, self.address(router, about.version()), about, ttl)?;
        let now = self.world.now();
        let until = self.messages_until[router].max(now) + MESSAGE_TIME;
        if until.saturating_since(now) > MESSAGE_TIME * MESSAGES {
            return None;
        }
        self.messages_until[router] = until;
        Some(message)
    }

    /// Writes a packet to a host's device; false if that refused it.
    fn write(&mut self, host: usize, bytes: &[u8]) -> bool {
        let Device { file, account } = &mut self.devices[host];
        let written = file.write(bytes).is_ok();
        if written {
            account.written_packets += 1;
            account.written_bytes += bytes.len() as u64;
        } else {
            account.refused_packets += 1;
        }
        written
    }

    /// Reads and counts what hosts send after the end, until their devices are down.
    fn drain(&mut self, shared: &Shared, control: &Control) {
        loop {
            let is_last =
                control.close.load(Ordering::Acquire) || shared.cancel.load(Ordering::Relaxed);
            for host in 0..self.devices.len() {
                while self.read(host).is_some() {
                    self.devices[host].account.after_end_packets += 1;
                }
            }
            if is_last {
                return;
            }
            self.sleep(self.clock.now(), LONGEST_SLEEP, false);
        }
    }
}
