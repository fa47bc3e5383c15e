//! The network a scenario describes, with numbers for names: directed links, routes, addresses.
//!
//! Routes are static. The shortest path is that of least propagation delay, then of fewest links;
//! where several are equal, the one whose links stand first in the file.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use indexmap::IndexSet;
use talkspurt_proto::time::Duration;
use talkspurt_proto::units::{Rate, Size};

use crate::course::{self, Course};
use crate::model::{
    Cell, Flow, Framing, GilbertElliott, IpVersion, Link, LinkEvent, Queue, RateControl, Scenario,
    Transport,
};
use crate::orbit;
use crate::path::Path;
use crate::problem::{Finding, Findings, Problems};
use crate::words::did_you_mean;

/// Links of a route at most: packets count hops in eight bits.
const MOST_HOPS: usize = 255;
/// Paths of a flow at most: their addresses fit an INIT, and more hosts have not.
const MOST_PATHS: usize = 8;
/// Wake-up slots of the schedule: one a directed link, one a cell and one a peer.
const MOST_SLOTS: usize = 65_535;

/// One direction of a link, with the properties that hold in it.
#[derive(Clone, Debug, PartialEq)]
pub struct DirectedLink {
    /// The scenario's name of the link; `.back` is added for the direction from `to` to `from`. Of a
    /// transmitter in a cell, the cell's and the node's.
    pub name: String,
    /// Which link of the scenario it belongs to, in the order of the file; of a transmitter, which
    /// cell.
    pub link: usize,
    /// Node at the sending end, an index into [`Network::nodes`].
    pub from: usize,
    /// Node at the receiving end; of an access point, the first of its stations.
    pub to: usize,
    /// Whether it is a transmitter in a cell.
    pub in_cell: bool,
    /// Bits sent per second.
    pub rate: Rate,
    /// Propagation delay at the start, that over a satellite included.
    pub delay: Duration,
    /// Bound of the further, drawn delay.
    pub jitter: Duration,
    /// What waits for the transmitter.
    pub queue: Queue,
    /// Bytes added to each IP packet.
    pub framing: Framing,
    /// Longest IP packet taken.
    pub mtu: Size,
    /// Probability that a packet is lost on the medium.
    pub loss: f64,
    /// Loss in bursts; then `loss` is 0.
    pub gilbert_elliott: Option<GilbertElliott>,
    /// Probability that a bit is received wrongly.
    pub bit_error_rate: f64,
    /// Probability that a packet arrives twice.
    pub duplicate: f64,
    /// Whether packets may overtake.
    pub reorder: bool,
    /// How rate, delay and loss change.
    pub course: Option<Course>,
    /// Outages and returns in order of time, the same in both directions.
    pub events: Vec<LinkEvent>,
}

/// A cell: its transmitters are links, first the access point's, then the stations', then that of
/// its contenders, if it has any.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CellNodes {
    /// The access point.
    pub access_point: usize,
    /// The stations.
    pub stations: Vec<usize>,
    /// The access point's transmitter, an index into [`Network::links`].
    pub first_link: usize,
}

/// One path of a flow there and back, as indices into [`Network::links`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Routes {
    /// From the opening side to the answering side.
    pub forward: Vec<usize>,
    /// From the answering side to the opening side.
    pub backward: Vec<usize>,
}

impl Routes {
    fn way(&self, flow: usize, side: usize, path: u8) -> Way<'_> {
        let links = if side == 0 { &self.forward } else { &self.backward };
        Way { flow, side, path, links }
    }
}

/// One way that packets take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Way<'a> {
    /// Whose packets: a flow, by its number.
    pub flow: usize,
    /// Of which side: 0 opens, 1 answers.
    pub side: usize,
    /// Which of the flow's paths, 0 being the primary one.
    pub path: u8,
    /// Its links in order.
    pub links: &'a [usize],
}

/// The IP addresses of one node; the first of each version is the one its packets carry on a flow's
/// first path, the second on its second, and so on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Addresses {
    /// IPv4, at least one.
    pub v4: Vec<Ipv4Addr>,
    /// IPv6, at least one.
    pub v6: Vec<Ipv6Addr>,
}

/// Nodes, directed links and routes by number.
#[derive(Clone, Debug, PartialEq)]
pub struct Network {
    /// Names: first those of the `nodes` table, then in the order in which links name them.
    pub nodes: Vec<String>,
    /// Link `k` of the file is number `2k` from `from` to `to`, and `2k + 1` back; behind all links
    /// stand the transmitters of cells.
    pub links: Vec<DirectedLink>,
    /// Per cell, in the order of the file.
    pub cells: Vec<CellNodes>,
    /// Per flow, in the order of the file, its paths, the primary one first.
    pub routes: Vec<Vec<Routes>>,
    /// Per node.
    pub addresses: Vec<Addresses>,
    numbers: BTreeMap<String, usize>,
    /// Per node, the links that leave it, in the order of the file, and where they lead: an access
    /// point's leads to each of its stations.
    outgoing: Vec<Vec<(usize, usize)>>,
    /// Per node, the links that reach it.
    incoming: Vec<Vec<usize>>,
}

/// Propagation delay in nanoseconds, then links: what a shortest path is short in.
type Distance = (u64, u32);
/// Distances of all nodes to one, by that one.
type Known = BTreeMap<usize, Vec<Option<Distance>>>;

impl Network {
    /// Builds the network of a scenario.
    ///
    /// # Errors
    /// Flows whose ends no link reaches, or between which there is no way; `via` over links that
    /// are not there; more links and flows than the schedule has slots. Without lines: the
    /// scenario's text is not known here.
    pub fn build(scenario: &Scenario) -> Result<Self, Problems> {
        let (network, found) = Self::assemble(scenario);
        if found.0.is_empty() {
            return Ok(network);
        }
        Err(Problems(found.0.into_iter().map(Finding::placeless).collect()))
    }

    /// The network as far as it can be built; a flow without a way has no routes.
    pub(crate) fn assemble(scenario: &Scenario) -> (Self, Findings) {
        let mut found = Findings::default();
        let mut network = Self::wire(scenario, &mut found);
        let (links, cells) = (scenario.links.len(), network.cells.len());
        let slots = 2 * links + cells + 2 * scenario.flows.len();
        if slots > MOST_SLOTS {
            let message = format!(
                "{links} links and {} flows need {slots} wake-up slots; the schedule has {MOST_SLOTS} (two a link, two a flow)",
                scenario.flows.len()
            );
            found.add(Path::of(&["links"]), message);
            return (network, found);
        }
        let mut known = BTreeMap::new();
        for (name, flow) in &scenario.flows {
            let path = Path::of(&["flows", name]);
            let routes = network.routes_of(flow, &path, &mut known, &mut found);
            network.routes.push(routes.unwrap_or_default());
        }
        (network, found)
    }

    fn wire(scenario: &Scenario, found: &mut Findings) -> Self {
        let mut names: IndexSet<&str> = scenario.nodes.keys().map(String::as_str).collect();
        for link in scenario.links.values() {
            names.insert(&link.from);
            names.insert(&link.to);
        }
        for cell in scenario.cells.values() {
            names.insert(&cell.access_point);
            names.extend(cell.stations.keys().map(String::as_str));
        }
        let node = |name: &str| names.get_index_of(name).expect("every end was just named");
        // A run of no length is told elsewhere.
        let run = if scenario.duration.is_zero() { Duration::MAX } else { scenario.duration };
        let mut links = Vec::with_capacity(2 * scenario.links.len());
        for (index, (name, link)) in scenario.links.iter().enumerate() {
            let mut forth = forth(name, index, link, node(&link.from), node(&link.to));
            let mut back = back(&forth, link);
            let courses = course::courses(&Path::of(&["links", name]), link, run, found);
            [forth.course, back.course] = courses;
            if let Some(orbit) = &link.orbit {
                let over = orbit::first(orbit);
                (forth.delay, back.delay) = (forth.delay + over, back.delay + over);
            }
            links.extend([forth, back]);
        }
        let mut outgoing = vec![Vec::new(); names.len()];
        let mut incoming = vec![Vec::new(); names.len()];
        for (index, link) in links.iter().enumerate() {
            outgoing[link.from].push((index, link.to));
            incoming[link.to].push(index);
        }
        let mut nodes: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let mut cells = Vec::with_capacity(scenario.cells.len());
        for (index, (name, cell)) in scenario.cells.iter().enumerate() {
            let access_point = node(&cell.access_point);
            let stations: Vec<usize> = cell.stations.keys().map(|name| node(name)).collect();
            let first_link = links.len();
            for (number, &station) in stations.iter().enumerate() {
                outgoing[access_point].push((first_link, station));
                incoming[station].push(first_link);
                outgoing[station].push((first_link + 1 + number, access_point));
                incoming[access_point].push(first_link + 1 + number);
            }
            links.extend(transmitters(name, index, cell, access_point, &stations));
            if let Some(contenders) = &cell.contenders {
                // A node that nothing leads to or from, for tables and pictures.
                let name = format!("{name}.contenders");
                let one = contenders.rate.as_ref();
                links.push(DirectedLink {
                    name: name.clone(),
                    ..transmitter(cell, one, index, nodes.len(), access_point)
                });
                nodes.push(name);
                outgoing.push(Vec::new());
                incoming.push(Vec::new());
            }
            cells.push(CellNodes { access_point, stations, first_link });
        }
        let numbers =
            nodes.iter().enumerate().map(|(number, name)| (name.clone(), number)).collect();
        let addresses = addresses(scenario, &nodes);
        Self { nodes, numbers, links, cells, routes: Vec::new(), addresses, outgoing, incoming }
    }

    /// All ways of flows, as packets number them: the primary paths of flow n there and back are 2n
    /// and 2n + 1, and all other paths come after those of all flows.
    pub fn ways(&self) -> impl Iterator<Item = Way<'_>> {
        let primary = self.routes.iter().enumerate().flat_map(|(flow, paths)| {
            paths
                .first()
                .into_iter()
                .flat_map(move |path| [0, 1].map(|side| path.way(flow, side, 0)))
        });
        let others = self.routes.iter().enumerate().flat_map(|(flow, paths)| {
            let of_side = move |side| {
                let others = (0_u8..).zip(paths).skip(1);
                others.map(move |(number, path)| path.way(flow, side, number))
            };
            [0, 1].into_iter().flat_map(of_side)
        });
        primary.chain(others)
    }

    /// The number of a node.
    #[must_use]
    pub fn node(&self, name: &str) -> Option<usize> {
        self.numbers.get(name).copied()
    }

    /// The address that a node's packets carry on the flow's path of this number.
    ///
    /// # Panics
    /// For a node that is no end of a flow with so many paths.
    #[must_use]
    pub fn address(&self, node: &str, version: IpVersion, path: usize) -> IpAddr {
        let known = &self.addresses[self.numbers[node]];
        match version {
            IpVersion::V4 => IpAddr::V4(known.v4[path]),
            IpVersion::V6 => IpAddr::V6(known.v6[path]),
        }
    }

    /// The shortest way between two nodes, for packets that belong to no flow (ICMP from a
    /// router); empty if they are the same, `None` if there is none.
    #[must_use]
    pub fn route(&self, from: usize, to: usize) -> Option<Vec<usize>> {
        self.shortest(from, to, &mut BTreeMap::new())
    }

    /// The nodes a link leads to: one, or of an access point's transmitter its stations.
    #[must_use]
    pub fn far_ends(&self, link: &DirectedLink) -> Vec<usize> {
        let cell = link.in_cell.then(|| &self.cells[link.link]);
        match cell.filter(|cell| cell.access_point == link.from) {
            Some(cell) => cell.stations.clone(),
            None => vec![link.to],
        }
    }

    /// The node that a hop leads to, by its place on a way and the node at the way's end; the hop's
    /// link does not tell if it is an access point's.
    #[must_use]
    pub fn receiver(&self, way: &[usize], at: usize, end: usize) -> usize {
        way.get(at + 1).map_or(end, |next| self.links[*next].from)
    }

    /// The node at the end of a flow's ways, of those that this side sends on.
    ///
    /// # Panics
    /// For a flow whose end no link names.
    #[must_use]
    pub fn last_node(&self, flow: &Flow, side: usize) -> usize {
        self.numbers[if side == 0 { &flow.to } else { &flow.from }]
    }

    /// The least MTU along a route.
    #[must_use]
    pub fn mtu(&self, route: &[usize]) -> Size {
        route.iter().map(|link| self.links[*link].mtu).min().unwrap_or(Size::from_bytes(65_535))
    }

    /// The shortest way. A host that one link leads to is reached through that link's start, so
    /// that the distances to a router serve all the hosts behind it.
    fn shortest(&self, from: usize, to: usize, known: &mut Known) -> Option<Vec<usize>> {
        let (door, last) = match self.incoming[to][..] {
            [only] if from != to => (self.links[only].from, Some(only)),
            _ => (to, None),
        };
        let best = known.entry(door).or_insert_with(|| self.distances(door));
        let mut route = self.walk(from, door, best)?;
        route.extend(last);
        Some(route)
    }

    /// Distance of every node to `to` (Dijkstra).
    fn distances(&self, to: usize) -> Vec<Option<Distance>> {
        let mut best: Vec<Option<Distance>> = vec![None; self.nodes.len()];
        let mut open = BinaryHeap::from([Reverse(((0, 0), to))]);
        while let Some(Reverse((distance, node))) = open.pop() {
            if best[node].is_some() {
                continue;
            }
            best[node] = Some(distance);
            for &link in &self.incoming[node] {
                let from = self.links[link].from;
                if best[from].is_none() {
                    open.push(Reverse((self.farther(distance, link), from)));
                }
            }
        }
        best
    }

    fn farther(&self, (delay, hops): Distance, link: usize) -> Distance {
        (delay.saturating_add(self.links[link].delay.as_nanos()), hops + 1)
    }

    /// Follows the distances down, over the first link in the file that keeps them.
    fn walk(&self, from: usize, to: usize, best: &[Option<Distance>]) -> Option<Vec<usize>> {
        let mut route = Vec::new();
        let mut here = from;
        while here != to {
            let rest = best[here]?;
            let (link, next) = self.outgoing[here]
                .iter()
                .copied()
                .find(|&(link, next)| best[next].is_some_and(|d| self.farther(d, link) == rest))?;
            route.push(link);
            here = next;
        }
        Some(route)
    }

    fn routes_of(
        &self,
        flow: &Flow,
        path: &Path,
        known: &mut Known,
        found: &mut Findings,
    ) -> Option<Vec<Routes>> {
        let from = self.end(&path.key("from"), &flow.from, found);
        let to = self.end(&path.key("to"), &flow.to, found);
        let (from, to) = (from?, to?);
        if from == to {
            found
                .add(path.key("to"), format!("the flow starts and ends at the node {:?}", flow.to));
            return None;
        }
        if !flow.paths.is_empty() {
            return self.several(flow, path, found);
        }
        if let Some(via) = &flow.via {
            return Some(vec![self.routes_via(flow, via, &path.key("via"), found)?]);
        }
        let forward = self.shortest(from, to, known);
        let routes = forward.zip(self.shortest(to, from, known));
        let Some((forward, backward)) = routes else {
            found.add(
                path.key("to"),
                format!("no links lead from {:?} to {:?}", flow.from, flow.to),
            );
            return None;
        };
        Some(vec![self.short_enough(Routes { forward, backward }, path.key("to"), found)?])
    }

    /// The paths of a flow that names them.
    fn several(&self, flow: &Flow, path: &Path, found: &mut Findings) -> Option<Vec<Routes>> {
        let whole = found.0.len();
        let list = path.key("paths");
        if flow.via.is_some() {
            found.add(path.key("via"), "`paths` says already where the flow goes; leave one out");
        }
        let (count, transport) = (flow.paths.len(), &flow.transport);
        if count > 1 && !matches!(transport, Transport::Sctp(_)) {
            let message = format!("{} has one path; only sctp has several", transport.name());
            found.add(list.clone(), message);
        }
        if count > MOST_PATHS {
            found.add(list, format!("{count} paths; at most {MOST_PATHS} are told apart"));
            return None;
        }
        let mut all: Vec<Routes> = Vec::with_capacity(count);
        for (index, nodes) in flow.paths.iter().enumerate() {
            let path = list.index(index);
            let Some(routes) = self.routes_via(flow, nodes, &path, found) else { continue };
            if let Some(other) = all.iter().position(|other| *other == routes) {
                found.add(path, format!("the same way as paths[{other}]"));
            }
            all.push(routes);
        }
        (found.0.len() == whole).then_some(all)
    }

    fn end(&self, path: &Path, name: &str, found: &mut Findings) -> Option<usize> {
        let node = self.node(name);
        if node.is_none() {
            found.add(path.clone(), format!("no link reaches a node {name:?}")).hint(did_you_mean(
                "nodes are",
                name,
                self.nodes.iter().map(String::as_str),
            ));
        }
        node
    }

    fn routes_via(
        &self,
        flow: &Flow,
        via: &[String],
        path: &Path,
        found: &mut Findings,
    ) -> Option<Routes> {
        let whole = found.0.len();
        if via.first() != Some(&flow.from) || via.last() != Some(&flow.to) {
            let message = format!("must start at {:?} and end at {:?}", flow.from, flow.to);
            found.add(path.clone(), message);
        }
        let mut seen = BTreeSet::new();
        let mut nodes = Vec::new();
        for (index, name) in via.iter().enumerate() {
            let path = path.index(index);
            nodes.push(self.end(&path, name, found));
            if !seen.insert(name) {
                found.add(path, format!("the way passes {name:?} twice"));
            }
        }
        let mut routes = Routes::default();
        for (index, pair) in nodes.windows(2).enumerate() {
            let (Some(a), Some(b)) = (pair[0], pair[1]) else { continue };
            match self.between(a, b).zip(self.between(b, a)) {
                Some((forth, back)) => {
                    routes.forward.push(forth);
                    routes.backward.push(back);
                }
                None => self.no_link(a, b, path.index(index + 1), found),
            }
        }
        routes.backward.reverse();
        if found.0.len() > whole { None } else { self.short_enough(routes, path.clone(), found) }
    }

    fn no_link(&self, from: usize, to: usize, path: Path, found: &mut Findings) {
        let mut reached: Vec<&str> =
            self.outgoing[from].iter().map(|(_, to)| self.nodes[*to].as_str()).collect();
        reached.dedup();
        let (from, to) = (&self.nodes[from], &self.nodes[to]);
        found
            .add(path, format!("no link joins {from:?} and {to:?}"))
            .hint(format!("links from {from:?} lead to: {}", crate::words::list(&reached)));
    }

    fn short_enough(&self, routes: Routes, path: Path, found: &mut Findings) -> Option<Routes> {
        let hops = routes.forward.len().max(routes.backward.len());
        if hops > MOST_HOPS {
            found.add(path, format!("the way has {hops} links; at most {MOST_HOPS} are counted"));
            return None;
        }
        Some(routes)
    }

    /// The link of least delay from one node to its neighbour, the first in the file among equals.
    fn between(&self, from: usize, to: usize) -> Option<usize> {
        let links = self.outgoing[from].iter().filter(|(_, far)| *far == to).map(|(link, _)| *link);
        links.min_by_key(|link| self.links[*link].delay)
    }
}

fn forth(name: &str, index: usize, link: &Link, from: usize, to: usize) -> DirectedLink {
    DirectedLink {
        name: name.to_owned(),
        link: index,
        from,
        to,
        in_cell: false,
        rate: link.rate,
        delay: link.delay,
        jitter: link.jitter,
        queue: link.queue.clone(),
        framing: link.framing,
        mtu: link.mtu,
        loss: link.loss,
        gilbert_elliott: link.gilbert_elliott,
        bit_error_rate: link.bit_error_rate,
        duplicate: link.duplicate,
        reorder: link.reorder,
        course: None,
        events: link.events.clone(),
    }
}

fn back(forth: &DirectedLink, link: &Link) -> DirectedLink {
    let differing = link.back.clone().unwrap_or_default();
    // The one model of loss takes the other's place.
    let (loss, gilbert_elliott) = match (differing.loss, differing.gilbert_elliott) {
        (None, None) => (forth.loss, forth.gilbert_elliott),
        (loss, bursts) => (loss.unwrap_or(0.0), bursts),
    };
    DirectedLink {
        name: format!("{}.back", forth.name),
        from: forth.to,
        to: forth.from,
        rate: differing.rate.unwrap_or(forth.rate),
        delay: differing.delay.unwrap_or(forth.delay),
        jitter: differing.jitter.unwrap_or(forth.jitter),
        queue: differing.queue.unwrap_or_else(|| forth.queue.clone()),
        loss,
        gilbert_elliott,
        bit_error_rate: differing.bit_error_rate.unwrap_or(forth.bit_error_rate),
        duplicate: differing.duplicate.unwrap_or(forth.duplicate),
        reorder: differing.reorder.unwrap_or(forth.reorder),
        ..forth.clone()
    }
}

/// The transmitters of a cell's nodes.
fn transmitters(
    name: &str,
    index: usize,
    cell: &Cell,
    access_point: usize,
    stations: &[usize],
) -> Vec<DirectedLink> {
    let first = stations.first().copied().unwrap_or(access_point);
    let mut all = vec![DirectedLink {
        name: format!("{name}.{}", cell.access_point),
        ..transmitter(cell, None, index, access_point, first)
    }];
    for ((station, own), node) in cell.stations.iter().zip(stations) {
        all.push(DirectedLink {
            name: format!("{name}.{station}"),
            queue: own.queue.clone().unwrap_or_else(|| cell.queue.clone()),
            ..transmitter(cell, own.rate.as_ref(), index, *node, access_point)
        });
    }
    all
}

/// A transmitter without a name. Its rate is that of its frames, or the highest they may have.
fn transmitter(
    cell: &Cell,
    rate: Option<&RateControl>,
    index: usize,
    from: usize,
    to: usize,
) -> DirectedLink {
    let rate = match rate.cloned().unwrap_or_else(|| cell.usual_rate()) {
        RateControl::Fixed(fixed) => fixed.rate,
        RateControl::Arf(_) | RateControl::Minstrel(_) => cell.highest_rate(),
    };
    DirectedLink {
        name: String::new(),
        link: index,
        from,
        to,
        in_cell: true,
        rate,
        delay: Duration::ZERO,
        jitter: Duration::ZERO,
        queue: cell.queue.clone(),
        framing: Framing::None,
        mtu: cell.mtu,
        loss: 0.0,
        gilbert_elliott: None,
        bit_error_rate: 0.0,
        duplicate: 0.0,
        reorder: false,
        course: None,
        events: Vec::new(),
    }
}

/// Gives the nodes without an address one: number n has 10.0.0.0 + n and fd00:: + n, from 1. Then
/// each end of a flow with several paths gets what it lacks of one for each.
fn addresses(scenario: &Scenario, nodes: &[String]) -> Vec<Addresses> {
    let written = |name: &String| scenario.nodes.get(name).map(|node| node.addresses.clone());
    let taken: BTreeSet<IpAddr> = nodes.iter().filter_map(written).flatten().collect();
    let v4 = (1_u32..).map(|n| Ipv4Addr::from_bits(0x0A00_0000 + n));
    let mut v4 = v4.filter(|free| !taken.contains(&IpAddr::V4(*free)));
    let v6 = (1_u32..).map(|n| Ipv6Addr::from_bits((0xfd00 << 112) + u128::from(n)));
    let mut v6 = v6.filter(|free| !taken.contains(&IpAddr::V6(*free)));
    let node = |name: &String| {
        let mut given = Addresses { v4: Vec::new(), v6: Vec::new() };
        for address in written(name).unwrap_or_default() {
            match address {
                IpAddr::V4(address) => given.v4.push(address),
                IpAddr::V6(address) => given.v6.push(address),
            }
        }
        // A written address of a version makes the free one superfluous.
        let (free4, free6) = (v4.next(), v6.next());
        given.v4.extend(free4.filter(|_| given.v4.is_empty()));
        given.v6.extend(free6.filter(|_| given.v6.is_empty()));
        given
    };
    let mut all: Vec<Addresses> = nodes.iter().map(node).collect();
    for flow in scenario.flows.values() {
        let most = flow.paths.len().min(MOST_PATHS);
        for end in [&flow.from, &flow.to].into_iter().filter(|_| most > 1) {
            let Some(node) = nodes.iter().position(|node| node == end) else { continue };
            let given = &mut all[node];
            given.v4.extend(v4.by_ref().take(most.saturating_sub(given.v4.len())));
            given.v6.extend(v6.by_ref().take(most.saturating_sub(given.v6.len())));
        }
    }
    all
}
