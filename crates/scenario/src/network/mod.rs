//! The network of a scenario, with numbers for names: directed links, routes, addresses.

mod address;
mod link;
mod route;

pub use address::Addresses;
pub use link::DirectedLink;
pub use route::{Routes, Way};

use std::collections::BTreeMap;
use std::net::IpAddr;

use indexmap::IndexSet;
use talkspurt_app::file::Files;
use talkspurt_proto::time::Duration;
use talkspurt_proto::units::Size;

use crate::link_profile;
use crate::model::{Flow, IpVersion, Scenario};
use crate::orbit;
use crate::path::Path;
use crate::problem::{Finding, Findings, Problems};

use address::addresses;
use link::{back, forth, transmitter, transmitters};

/// Maximum paths of a flow: their addresses fit an INIT, and hosts rarely have more.
const MAX_PATHS: usize = 8;
/// Wake-up slots of the schedule: one per directed link, cell and peer, and one for outages.
const MAX_SLOTS: usize = (1 << 18) - 1;
/// Up to this many slots, times have 48 bits in the schedule; above, 46.
const LONG_SLOTS: usize = (1 << 16) - 1;
/// The longest run with more slots.
const MAX_RUN: Duration = Duration::from_nanos((1 << 46) - 1);

/// A cell: its transmitters are links, in the order access point, stations, contenders (if any).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CellNodes {
    /// The access point.
    pub access_point: usize,
    /// The stations.
    pub stations: Vec<usize>,
    /// The access point's transmitter, an index into [`Network::links`].
    pub first_link: usize,
}

/// Nodes, directed links and routes by number.
#[derive(Clone, Debug, PartialEq)]
pub struct Network {
    /// Names: first those of the `nodes` table, then others in the order in which links name them.
    pub nodes: Vec<String>,
    /// Link `k` of the file is number `2k` from `from` to `to`, and `2k + 1` back; the transmitters of
    /// cells follow.
    pub links: Vec<DirectedLink>,
    /// Per cell, in the order of the file.
    pub cells: Vec<CellNodes>,
    /// Per flow, in the order of the file, its paths, the primary one first.
    pub routes: Vec<Vec<Routes>>,
    /// Per node.
    pub addresses: Vec<Addresses>,
    numbers: BTreeMap<String, usize>,
    /// Per node, its outgoing links in file order, and their receiving nodes: for an access point, each of
    /// its stations.
    outgoing: Vec<Vec<(usize, usize)>>,
    /// Per node, its incoming links.
    incoming: Vec<Vec<usize>>,
}

impl Network {
    /// Builds the network of a scenario, with the traces of its links.
    ///
    /// # Errors
    /// Flow ends that no link reaches, or without a route between them; `via` over missing links; more
    /// links and flows than the schedule has slots. No line numbers: the scenario's text is unknown here.
    pub fn build(scenario: &Scenario, files: &dyn Files) -> Result<Self, Problems> {
        let (network, found) = Self::assemble(&scenario.expanded(), files);
        if found.0.is_empty() {
            return Ok(network);
        }
        Err(Problems(found.0.into_iter().map(Finding::placeless).collect()))
    }

    /// The network as far as it can be built; a flow without a path has no routes. A flow with a `count`
    /// stands for as many.
    pub(crate) fn assemble(scenario: &Scenario, files: &dyn Files) -> (Self, Findings) {
        let mut found = Findings::default();
        let mut network = Self::wire(scenario, files, &mut found);
        let (links, cells) = (scenario.links.len(), network.cells.len());
        let flows: usize = scenario.flows.values().map(Flow::members).sum();
        let slots = 2 * links + cells + 2 * flows;
        if slots > MAX_SLOTS {
            let message = format!(
                "{links} links and {flows} flows need {slots} wake-up slots; the schedule has {MAX_SLOTS} (two a link, two a flow)",
            );
            found.add(Path::of(&["links"]), message);
            return (network, found);
        }
        if slots > LONG_SLOTS && scenario.duration > MAX_RUN {
            let message = format!(
                "{} is too long with {links} links and {flows} flows, which need {slots} wake-up slots: at most 19h with more than {LONG_SLOTS} (two a link, two a flow)",
                scenario.duration
            );
            found.add(Path::of(&["duration"]), message);
        }
        let mut known = route::Known::default();
        for (name, flow) in &scenario.flows {
            let path = Path::of(&["flows", name]);
            let routes = network.routes_of(flow, &path, &mut known, &mut found);
            network.routes.push(routes.unwrap_or_default());
        }
        (network, found)
    }

    fn wire(scenario: &Scenario, files: &dyn Files, found: &mut Findings) -> Self {
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
        // A run of zero length is reported elsewhere.
        let run = if scenario.duration.is_zero() { Duration::MAX } else { scenario.duration };
        let mut links = Vec::with_capacity(2 * scenario.links.len());
        for (index, (name, link)) in scenario.links.iter().enumerate() {
            let mut forth = forth(name, index, link, node(&link.from), node(&link.to));
            let mut back = back(&forth, link);
            let path = Path::of(&["links", name]);
            [forth.course, back.course] =
                link_profile::link_profiles(&path, link, files, run, found);
            let own = link.back.as_ref().is_some_and(|back| back.queue.is_some());
            let places =
                [path.key("queue"), if own { path.key("back") } else { path }.key("queue")];
            let unclear = [&forth, &back].map(DirectedLink::follows_no_rate);
            for (place, _) in places
                .iter()
                .zip(unclear)
                .filter(|(_, unclear)| *unclear)
                .take(if own { 2 } else { 1 })
            {
                let message =
                    "`follow_rate` needs a rate at each instant; a mahimahi trace has none";
                let hint = "give the queue a limit in `bytes` or `packets`".to_owned();
                found.add(place.clone(), message).hint(hint);
            }
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
                // A node without links, for tables and figures.
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

    /// All routes of flows in the numbering of packets: the primary paths of flow n there and back are 2n
    /// and 2n + 1, and all other paths follow those of all flows.
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

    /// The source address of a node's packets on the flow's path of this number.
    ///
    /// # Panics
    /// If the node is not an end of a flow with this many paths.
    #[must_use]
    pub fn address(&self, node: &str, version: IpVersion, path: usize) -> IpAddr {
        let known = &self.addresses[self.numbers[node]];
        match version {
            IpVersion::V4 => IpAddr::V4(known.v4[path]),
            IpVersion::V6 => IpAddr::V6(known.v6[path]),
        }
    }

    /// The receiving nodes of a link: one, or the stations of an access point.
    #[must_use]
    pub fn far_ends(&self, link: &DirectedLink) -> Vec<usize> {
        let cell = link.in_cell.then(|| &self.cells[link.link]);
        match cell.filter(|cell| cell.access_point == link.from) {
            Some(cell) => cell.stations.clone(),
            None => vec![link.to],
        }
    }

    /// The receiving node of a hop, from its position on a route and the route's last node; the link alone
    /// does not determine it for an access point.
    #[must_use]
    pub fn receiver(&self, way: &[usize], at: usize, end: usize) -> usize {
        way.get(at + 1).map_or(end, |next| self.links[*next].from)
    }

    /// The last node of a flow's routes for packets of this side.
    ///
    /// # Panics
    /// If no link names the flow's end.
    #[must_use]
    pub fn last_node(&self, flow: &Flow, side: usize) -> usize {
        self.numbers[if side == 0 { &flow.to } else { &flow.from }]
    }

    /// The minimum MTU along a route.
    #[must_use]
    pub fn mtu(&self, route: &[usize]) -> Size {
        route.iter().map(|link| self.links[*link].mtu).min().unwrap_or(Size::from_bytes(65_535))
    }
}
