//! The world: peers, links and the packets between them, in virtual time.
//!
//! A packet's path: a peer's `poll` returns it; it gets a label, and its body a slot in the pool; the first
//! link takes it. Each link's entry in the schedule is the next arrival at its far end, where the next link
//! takes the packet; at the end of the route, the other peer's `handle` does. Link entries come first, then
//! peers, then the timeline of outages.

mod ahead;

use std::sync::atomic::{AtomicBool, Ordering};

use talkspurt_app::peer::{Action, Peer};
use talkspurt_proto::body::{Bodies, Body, RealPacket};
use talkspurt_proto::endpoint::PathNews;
use talkspurt_proto::packet::{BodyId, Ecn, Packet, PathId, Quote};
use talkspurt_proto::probe::{DropReason, LinkCounters, Note, Place, Probe, Topic, UNNUMBERED};
use talkspurt_proto::time::Instant;
use talkspurt_proto::wire::ipv4;

use crate::cell::Cell;
use crate::link::{Link, Offered};
use crate::pool::Pool;
use crate::routes::{AT_PEER, Routes, busy_links};
use crate::schedule::{Schedule, Wake};

/// Number of events between checks of the cancel flag.
const CHECK_EVERY: u64 = 4096;

/// A change on the timeline.
#[derive(Clone, Copy, Debug)]
pub struct Change {
    /// When.
    pub at: Instant,
    /// Which link.
    pub link: u32,
    /// Whether it is up from then on.
    pub up: bool,
}

/// A hop over the air.
#[derive(Clone, Copy, Debug)]
pub struct CellHop {
    /// Which cell.
    pub cell: u32,
    /// Sender: 0 for the access point, or a station's number from 1.
    pub from: u16,
    /// Receiver.
    pub to: u16,
}

/// Finds the path back from the start of a link to a route's sender, as steps, for Packet Too Big.
pub type WayBack = Box<dyn Fn(u32, u32) -> Option<Vec<u32>> + Send>;

/// A path of packets.
pub struct Route {
    /// The peer that sends on it.
    pub sender: u32,
    /// The peer at its end.
    pub end: u32,
    /// Which of the sender's paths it is.
    pub path: PathId,
    /// Its links and hops of cells in order.
    pub steps: Vec<u32>,
}

/// The parts of a world.
pub struct Parts {
    /// Links by index.
    pub links: Vec<Link>,
    /// Cells by index.
    pub cells: Vec<Cell>,
    /// The hops of all cells, numbered as steps after the links.
    pub cell_hops: Vec<CellHop>,
    /// Peers by index: twice the flow's number, plus one for the answering side.
    pub peers: Vec<Peer>,
    /// The primary path's route of each peer by index, then the routes of further paths, contiguous per peer,
    /// then those of real hosts, which are numbered after the peers: [`real_peer`].
    pub routes: Vec<Route>,
    /// Outages in time order.
    pub timeline: Vec<Change>,
    /// See [`WayBack`]: link and sending peer to links.
    pub way_back: WayBack,
}

/// The number of a real host as an end of routes: after all peers, one for each side of a flow, like peers.
#[must_use]
pub fn real_peer(peers: usize, host: usize, side: u8) -> u32 {
    (peers + 2 * host) as u32 + u32::from(side)
}

/// A packet of a real host that left the world.
#[derive(Debug)]
pub struct Departure {
    /// When.
    pub at: Instant,
    /// Where.
    pub end: End,
    /// Its label, as it arrived there.
    pub packet: Packet,
    /// The packet as it was injected, or a router's message.
    pub body: Body,
}

/// Where a packet of a real host left the world.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// It reached the end of its route.
    Host {
        /// The host's number.
        host: u32,
        /// The side of the flow that receives it.
        side: u8,
    },
    /// It was dropped before this link, whose MTU it exceeds.
    TooBig(u32),
}

/// With more peers, the state of the next one is in no cache, and is requested before its turn.
const MANY_PEERS: usize = 1 << 10;

/// A running network and its observer.
pub struct World<P> {
    now: Instant,
    schedule: Schedule,
    links: Vec<Link>,
    cells: Vec<Cell>,
    cell_hops: Vec<CellHop>,
    peers: Vec<Peer>,
    /// Number of packets each peer has sent.
    numbers: Vec<u32>,
    pool: Pool,
    /// The peers' routes as configured, then ways back.
    routes: Routes,
    /// For each route, the peer whose path it belongs to (for a way back, the peer at its end).
    paths: Vec<(u32, PathId)>,
    /// Each peer's first route beyond that of its primary path.
    further: Vec<u32>,
    /// First links of the paths of multihomed peers, with the route.
    doors: Vec<(u32, u32)>,
    timeline: Vec<Change>,
    changes_done: usize,
    way_back: WayBack,
    /// Ways back already found: link, route of the refused packet, route.
    ways_back: Vec<(u32, u32, u32)>,
    injected: u64,
    delivered: u64,
    /// Fragments cut from packets, beyond the first of each.
    fragments: u64,
    events: u64,
    /// There are many peers: what the next ones need is requested from memory before.
    looks_ahead: bool,
    /// The peer that will wake next, until what it points to is requested.
    next_woken: Option<u32>,
    /// Packets of real hosts that left and were not taken yet.
    departures: Vec<Departure>,
    /// The observer.
    pub probe: P,
}

impl<P: Probe> World<P> {
    /// A world at time zero.
    #[must_use]
    pub fn new(parts: Parts, probe: P) -> Self {
        let (mut routes, mut paths) = (Routes::default(), Vec::new());
        let (mut further, mut doors) = (vec![0; parts.peers.len()], Vec::new());
        for (number, route) in (0_u32..).zip(&parts.routes) {
            routes.add(&route.steps, route.end);
            paths.push((route.sender, route.path));
            if route.path == PathId(1) {
                further[route.sender as usize] = number;
                doors.push((parts.routes[route.sender as usize].steps[0], route.sender));
            }
            if route.path > PathId(0) {
                doors.push((route.steps[0], number));
            }
        }
        let mut world = Self {
            now: Instant::ZERO,
            schedule: Schedule::new(
                parts.links.len(),
                parts.peers.len() + 1 + parts.cells.len(),
                &busy_links(parts.links.len(), parts.routes.iter().map(|route| &*route.steps)),
            ),
            looks_ahead: parts.peers.len() > MANY_PEERS,
            next_woken: None,
            numbers: vec![0; parts.peers.len()],
            links: parts.links,
            cells: parts.cells,
            cell_hops: parts.cell_hops,
            peers: parts.peers,
            pool: Pool::default(),
            routes,
            paths,
            further,
            doors,
            timeline: parts.timeline,
            changes_done: 0,
            way_back: parts.way_back,
            ways_back: Vec::new(),
            injected: 0,
            delivered: 0,
            fragments: 0,
            events: 0,
            departures: Vec::new(),
            probe,
        };
        world.plan_change();
        for peer in 0..world.peers.len() {
            world.pump(peer);
        }
        world
    }

    /// Processes all events before `end`; false if `cancel` was set meanwhile.
    pub fn run_until(&mut self, end: Instant, cancel: &AtomicBool) -> bool {
        let links = self.links.len() as u32;
        let peers = links + self.peers.len() as u32;
        let bound = self.schedule.before(end);
        while let Some(wake) = self.schedule.next(bound) {
            let node = wake.node;
            self.now = wake.at;
            self.events += 1;
            if node < links {
                self.on_link(wake);
            } else if node < peers {
                if self.looks_ahead {
                    self.prefetch_sender(wake);
                }
                self.wake((node - links) as usize);
            } else if node == peers {
                self.on_change();
            } else {
                self.on_cell((node - peers - 1) as usize);
            }
            // Counted across calls; otherwise short calls would never check.
            if self.events.is_multiple_of(CHECK_EVERY) && cancel.load(Ordering::Relaxed) {
                return false;
            }
        }
        self.now = self.now.max(end);
        true
    }

    /// The time of the next event.
    #[must_use]
    pub fn next_event(&self) -> Option<Instant> {
        self.schedule.next(self.schedule.before(Instant::HORIZON)).map(|wake| wake.at)
    }

    /// Sends a packet of a real host on its route, at the current time; returns the place of its body, which
    /// it keeps until it is a [`Departure`].
    pub fn inject(&mut self, packet: Packet, body: Body) -> BodyId {
        self.injected += 1;
        let side = self.paths[packet.route as usize].0 & 1;
        let packet = Packet { body: self.pool.put(|| body), sent: self.now, ..packet };
        if self.probe.wants(Topic::Packet) {
            let note = Note::Sent { packet: &packet, body: self.pool.peek(packet.body) };
            self.probe.record(self.now, Place::Peer(2 * packet.flow + side), &note);
        }
        self.set_out(packet);
        packet.body
    }

    /// Takes the packets of real hosts that left, in order of time.
    pub fn departures(&mut self) -> std::vec::Drain<'_, Departure> {
        self.departures.drain(..)
    }

    /// Decides on all media that waits for its playout; call it once, after the end.
    pub fn finish_playout(&mut self) {
        for peer in &mut self.peers {
            peer.finish(self.now, &mut self.probe);
        }
    }

    /// Brings every link up to the current time; changes no result.
    pub fn settle(&mut self) {
        for index in 0..self.links.len() {
            let link = &mut self.links[index];
            let before = link.next();
            link.advance(self.now, &mut self.pool, &mut self.probe);
            // A wake-up that was appended stays valid.
            if link.next() != before {
                self.schedule.set(index as u32, link.next());
            }
        }
        for index in 0..self.cells.len() {
            self.cells[index].advance(self.now, &mut self.pool, &mut self.probe);
            self.plan_cell(index);
        }
    }

    /// The counters of each link, then of each cell's transmitters; call [`World::settle`] first.
    pub fn counters(&self) -> Vec<LinkCounters> {
        let links = self.links.iter().map(|link| link.counters(self.now));
        links.chain(self.cells.iter().flat_map(|cell| cell.counters(self.now))).collect()
    }

    /// Resets every link's maximum queue length.
    pub fn forget_maxima(&mut self) {
        self.links.iter_mut().for_each(Link::forget_maximum);
        self.cells.iter_mut().for_each(Cell::forget_maxima);
    }

    /// The cells.
    #[must_use]
    pub fn cells(&self) -> &[Cell] {
        &self.cells
    }

    /// The peers by number, for what they received; includes those carried in another's association.
    #[must_use]
    pub fn peers(&self) -> Vec<&Peer> {
        let mut peers: Vec<&Peer> = self.peers.iter().collect();
        for carried in self.peers.iter().flat_map(Peer::carried) {
            if let Place::Peer(number) = carried.place() {
                peers[number as usize] = carried;
            }
        }
        peers
    }

    /// The current time.
    #[must_use]
    pub fn now(&self) -> Instant {
        self.now
    }

    /// Transmissions started on all links.
    #[must_use]
    pub fn hops(&self) -> u64 {
        let over_the_air: u64 = self.cells.iter().map(Cell::sent_packets).sum();
        self.links.iter().map(Link::sent_packets).sum::<u64>() + over_the_air
    }

    /// Wake-ups performed.
    #[must_use]
    pub fn events(&self) -> u64 {
        self.events
    }

    /// Packets of real hosts inside, with routers' messages about them.
    #[must_use]
    pub fn real_packets(&self) -> u64 {
        self.pool.bodies().filter(|body| matches!(body, Body::Real(_))).count() as u64
    }

    /// Fragments that routers cut from packets of real hosts, beyond the first of each.
    #[must_use]
    pub fn fragments_added(&self) -> u64 {
        self.fragments
    }

    /// Checks that no packet was lost unaccounted or created from nothing.
    ///
    /// # Panics
    /// If injected (copies by a medium included) ≠ delivered + dropped + still inside: a broken internal
    /// invariant.
    pub fn assert_conservation(&self) {
        let (links, cells) = (self.links.iter(), self.cells.iter());
        let inside: u64 = links.map(Link::inside).chain(cells.map(Cell::inside)).sum();
        let (links, cells) = (self.links.iter(), self.cells.iter());
        let dropped = links.map(Link::dropped_packets).chain(cells.map(Cell::dropped_packets));
        let dropped: u64 = dropped.sum();
        let copies: u64 = self.links.iter().map(Link::copies).sum();
        assert_eq!(
            self.injected + copies,
            self.delivered + dropped + inside,
            "packets injected = delivered + dropped + inside"
        );
        assert_eq!(inside, self.pool.len() as u64, "bodies in the pool = packets inside");
    }

    #[inline]
    fn on_link(&mut self, wake: Wake) {
        let link = &mut self.links[wake.node as usize];
        link.advance(self.now, &mut self.pool, &mut self.probe);
        // The label is copied in place, not moved inside an option: the compiler splits the latter into pieces
        // whose reassembly stalls.
        let Some(arrived) = link.arrived(self.now) else { return self.on_turn(wake) };
        let packet = *arrived;
        link.let_go(self.now, &packet, &mut self.probe);
        self.schedule.again(wake, link.next());
        if self.looks_ahead {
            self.prefetch_receivers(wake.node);
        }
        self.forward(&packet);
    }

    /// A link's turn came to serve its queue, and nothing arrives.
    #[inline(never)]
    fn on_turn(&mut self, wake: Wake) {
        self.schedule.again(wake, self.links[wake.node as usize].next());
    }

    /// Sends a peer's packet, nearly always on a link.
    #[inline(always)]
    fn launch(&mut self, packet: Packet) {
        let step = self.routes.step(packet.route, 0);
        if (step as usize) < self.links.len() {
            self.offer(step, &packet);
        } else {
            self.set_out(packet);
        }
    }

    /// [`World::forward`] where it is not the most frequent step.
    #[inline(never)]
    fn set_out(&mut self, packet: Packet) {
        self.forward(&packet);
    }

    #[inline(always)]
    fn forward(&mut self, packet: &Packet) {
        let step = self.routes.step(packet.route, packet.hop);
        if step & AT_PEER == 0 {
            self.offer(step, packet);
        } else {
            self.deliver((step & !AT_PEER) as usize, packet);
        }
    }

    #[inline(always)]
    fn offer(&mut self, index: u32, packet: &Packet) {
        let Some(link) = self.links.get_mut(index as usize) else {
            return self.offer_to_cell(index, *packet);
        };
        match link.offer(self.now, packet, &mut self.pool, &mut self.probe) {
            Offered::Behind => {}
            Offered::First(arrival) => self.schedule.append(index, arrival),
            Offered::Taken => self.schedule.set(index, link.next()),
            Offered::TooBig => self.refuse(index, packet),
        }
    }

    #[inline(never)]
    fn offer_to_cell(&mut self, step: u32, packet: Packet) {
        let CellHop { cell: index, from, to } = self.cell_hops[step as usize - self.links.len()];
        let cell = &mut self.cells[index as usize];
        let offered = cell.offer(self.now, (from, to), packet, &mut self.pool, &mut self.probe);
        if let Offered::TooBig = offered {
            let (link, mtu) = (cell.link(from.into()), cell.mtu);
            if let Some(fragments) = self.fragments(mtu, &packet) {
                self.send_fragments(link, &packet, fragments);
                return self.plan_cell(index as usize);
            }
            let quote = self.quote(link, &packet);
            let both = (&mut self.pool, &mut self.probe);
            self.cells[index as usize].refuse(self.now, from, packet, both);
            self.answer_too_big(link, mtu, &packet, quote);
        }
        self.plan_cell(index as usize);
    }

    #[inline(never)]
    fn on_cell(&mut self, index: usize) {
        let cell = &mut self.cells[index];
        cell.wake(self.now, &mut self.pool, &mut self.probe);
        let arrived = cell.arrived(self.now, &mut self.probe);
        self.plan_cell(index);
        if let Some(packet) = arrived {
            self.set_out(packet);
        }
    }

    fn plan_cell(&mut self, index: usize) {
        let node = self.links.len() + self.peers.len() + 1 + index;
        self.schedule.set(node as u32, self.cells[index].next());
    }

    /// A packet reaches a real host.
    #[cold]
    #[inline(never)]
    fn depart(&mut self, end: usize, packet: &Packet) {
        let body = self.pool.peek(packet.body);
        let side = (end % 2) as u8;
        if self.probe.wants(Topic::Packet) {
            let place = Place::Peer(2 * packet.flow + u32::from(side));
            self.probe.record(self.now, place, &Note::Received { packet, body });
        }
        let body = self.pool.take(packet.body);
        let end = End::Host { host: (end - self.peers.len()) as u32 / 2, side };
        self.departures.push(Departure { at: self.now, end, packet: *packet, body });
    }

    #[inline(always)]
    fn deliver(&mut self, peer: usize, packet: &Packet) {
        self.delivered += 1;
        let path = self.path(packet.route);
        let Some(receiver) = self.peers.get_mut(peer) else { return self.depart(peer, packet) };
        let body = self.pool.open(packet.body);
        if self.probe.wants(Topic::Packet) {
            let note = Note::Received { packet, body };
            self.probe.record(self.now, Place::Peer(peer as u32), &note);
        }
        let how = (path, packet.ecn);
        let is_news = receiver.receive(self.now, how, body, &mut self.probe);
        self.pool.release(packet.body);
        if is_news {
            self.pump(peer);
        }
    }

    #[inline]
    fn wake(&mut self, peer: usize) {
        self.peers[peer].wake(self.now, &mut self.probe);
        self.pump(peer);
    }

    /// Which of its sender's paths a route is; most are primary, and those come first.
    #[inline]
    fn path(&self, route: u32) -> PathId {
        let is_primary = (route as usize) < self.peers.len();
        if is_primary { PathId(0) } else { self.paths[route as usize].1 }
    }

    /// The route of a peer's packets on a path.
    #[inline]
    fn route(&self, peer: usize, path: PathId) -> u32 {
        match path.0 {
            0 => peer as u32,
            other => self.further[peer] + u32::from(other) - 1,
        }
    }

    /// Performs a peer's actions and schedules its next wake-up.
    fn pump(&mut self, peer: usize) {
        loop {
            match self.peers[peer].poll(self.now, &mut self.pool, &mut self.probe) {
                Action::Send { path, ecn, ip_bytes, body } => {
                    let number = self.numbers[peer];
                    self.numbers[peer] = number.wrapping_add(1);
                    self.injected += 1;
                    let (now, route) = (self.now, self.route(peer, path));
                    let (dscp, version) = self.peers[peer].header();
                    let label = || Packet {
                        body,
                        ip_bytes,
                        route,
                        flow: (peer >> 1) as u32,
                        number,
                        hop: 0,
                        ecn,
                        dscp,
                        version,
                        sent: now,
                    };
                    if self.probe.wants(Topic::Packet) {
                        let note = Note::Sent { packet: &label(), body: self.pool.peek(body) };
                        self.probe.record(now, Place::Peer(peer as u32), &note);
                    }
                    // Built again: copying a value just written field by field stalls.
                    self.launch(label());
                }
                Action::Idle { until } => {
                    let node = (self.links.len() + peer) as u32;
                    self.schedule.set(node, until.map(|at| at.max(self.now)));
                    return;
                }
            }
        }
    }

    /// A packet exceeds a link's MTU: cuts it, or drops it and informs its sender.
    #[cold]
    #[inline(never)]
    fn refuse(&mut self, index: u32, packet: &Packet) {
        let link = &self.links[index as usize];
        let mtu = link.mtu;
        if let Some(fragments) = self.fragments(mtu, packet) {
            // Packets that left the queue have no wake-up yet.
            self.schedule.replan(index, link.next());
            return self.send_fragments(index, packet, fragments);
        }
        let quote = self.quote(index, packet);
        let link = &mut self.links[index as usize];
        let both = (&mut self.pool, &mut self.probe);
        link.refuse(self.now, *packet, DropReason::TooBig, both);
        // Packets in flight may have their wake-up in the lane.
        self.schedule.replan(index, link.next());
        self.answer_too_big(index, mtu, packet, quote);
    }

    /// RFC 1812 §4.2.2.7: the fragments of a packet of a real host; `None` if it must not be cut.
    fn fragments(&self, mtu: u32, packet: &Packet) -> Option<Vec<RealPacket>> {
        let Body::Real(real) = self.pool.peek(packet.body) else { return None };
        ipv4::fragments(real, mtu)
    }

    /// The router before a link sends the fragments of a packet on.
    fn send_fragments(&mut self, link: u32, packet: &Packet, fragments: Vec<RealPacket>) {
        for (place, fragment) in fragments.into_iter().enumerate() {
            let is_more = place > 0;
            let mut label = Packet { ip_bytes: fragment.bytes.len() as u32, ..*packet };
            let body = Body::Real(Box::new(fragment));
            if is_more {
                self.injected += 1;
                self.fragments += 1;
                label.body = self.pool.put(|| body);
            } else {
                *self.pool.open(packet.body) = body;
            }
            if self.probe.wants(Topic::Packet) {
                let body = self.pool.peek(label.body);
                let note = Note::Cut { packet: &label, is_more, body };
                self.probe.record(self.now, Place::Link(link), &note);
            }
            self.set_out(label);
        }
    }

    /// What the router before a link that is too small for a packet quotes of it: nothing of a router's own
    /// message. Who injected a packet of a real host answers it.
    fn quote(&mut self, link: u32, packet: &Packet) -> Option<Quote> {
        let body = self.pool.peek(packet.body);
        if let Body::Real(_) = body {
            let (at, end, body) = (self.now, End::TooBig(link), body.clone());
            self.departures.push(Departure { at, end, packet: *packet, body });
        }
        Quote::of(packet, self.pool.peek(packet.body))
    }

    /// RFC 1191 §4, RFC 4443 §3.2: the router that cannot forward a packet informs its sender.
    fn answer_too_big(&mut self, link: u32, mtu: u32, refused: &Packet, quote: Option<Quote>) {
        if let Some(quote) = quote {
            self.answer(link, refused, Body::TooBig { mtu, quote });
        }
    }

    /// The router before a link sends a message about a packet to its sender.
    pub fn answer(&mut self, link: u32, refused: &Packet, body: Body) {
        let Some(route) = self.find_way_back(link, refused.route) else { return };
        self.injected += 1;
        let layers = body.layers();
        let packet = Packet {
            ip_bytes: refused.version.header_bytes() + layers.total(),
            body: self.pool.put(|| body),
            route,
            flow: refused.flow,
            number: UNNUMBERED,
            hop: 0,
            ecn: Ecn::NotEct,
            dscp: 0,
            version: refused.version,
            sent: self.now,
        };
        if self.probe.wants(Topic::Packet) {
            let body = self.pool.peek(packet.body);
            let note = Note::Answered { refused, packet: &packet, body };
            self.probe.record(self.now, Place::Link(link), &note);
        }
        self.set_out(packet);
    }

    fn find_way_back(&mut self, link: u32, refused: u32) -> Option<u32> {
        let known = self.ways_back.iter().find(|(l, r, _)| (*l, *r) == (link, refused));
        if let Some((_, _, route)) = known {
            return Some(*route);
        }
        let (sender, path) = self.paths[refused as usize];
        let way = (self.way_back)(link, sender)?;
        let route = self.routes.add(&way, sender);
        self.paths.push((sender, path));
        self.ways_back.push((link, refused, route));
        Some(route)
    }

    fn plan_change(&mut self) {
        let node = (self.links.len() + self.peers.len()) as u32;
        self.schedule.set(node, self.timeline.get(self.changes_done).map(|change| change.at));
    }

    fn on_change(&mut self) {
        let change = self.timeline[self.changes_done];
        self.changes_done += 1;
        let link = &mut self.links[change.link as usize];
        if change.up {
            link.come_up(self.now, &mut self.pool, &mut self.probe);
        } else {
            link.go_down(self.now, &mut self.pool, &mut self.probe);
        }
        self.schedule.replan(change.link, link.next());
        let news = if change.up { PathNews::Up } else { PathNews::Down };
        for at in 0..self.doors.len() {
            let (link, route) = self.doors[at];
            if link == change.link {
                let (peer, path) = self.paths[route as usize];
                let peer = peer as usize;
                self.peers[peer].hear_of_path(self.now, path, news, &mut self.probe);
                self.pump(peer);
            }
        }
        self.plan_change();
    }
}
