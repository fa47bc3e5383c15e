//! Builds a world from a scenario: every part gets its index, its name and its own random streams.

use std::sync::Arc;

use talkspurt_flow::Materials;
use talkspurt_proto::packet::PathId;
use talkspurt_proto::probe::Probe;
use talkspurt_proto::rng::Rng;
use talkspurt_proto::time::Instant;
use talkspurt_scenario::Network;
use talkspurt_scenario::model::{LinkState, RateControl, Scenario};
use talkspurt_scenario::network::DirectedLink;

use crate::capacity::Capacity;
use crate::cell::errors::Channel;
use crate::cell::rates::Rates;
use crate::cell::timing::Timing;
use crate::cell::{self, Cell};
use crate::discipline::Queue;
use crate::link::{self, Link};
use crate::medium::Medium;
use crate::world::{CellHop, Change, Parts, Route, World, real_peer};

/// A world at time zero.
///
/// # Panics
/// If the scenario has groups of flows: they must be expanded.
#[must_use]
pub fn build<P: Probe>(
    scenario: &Scenario,
    network: &Arc<Network>,
    materials: &Materials,
    probe: P,
) -> World<P> {
    build_with_hosts(scenario, network, materials, &RealHosts::default(), probe)
}

/// Nodes at which packets of real hosts enter and leave, and the routes between them.
#[derive(Clone, Debug, Default)]
pub struct RealHosts {
    /// The nodes, by the hosts' numbers.
    pub nodes: Vec<usize>,
    /// The routes; their numbers follow those of the flows' routes.
    pub routes: Vec<RealRoute>,
    /// By sending and receiving host: the first of their routes, and how many links the way has.
    ways: Vec<(usize, usize)>,
}

/// A route of packets of real hosts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RealRoute {
    /// The sending host.
    pub from: usize,
    /// The destination host.
    pub to: usize,
    /// The sender's side of its flows.
    pub side: u8,
    /// The links up to the destination, or up to the router where the packet's TTL becomes zero.
    pub links: Vec<usize>,
    /// The link that such a packet would have taken next.
    pub next: Option<usize>,
}

impl RealHosts {
    /// The routes between all these nodes.
    ///
    /// # Errors
    /// The first two nodes without a route.
    pub fn new(network: &Network, nodes: Vec<usize>) -> Result<Self, (usize, usize)> {
        let (mut routes, mut ways) = (Vec::new(), Vec::new());
        let pairs = |from| (0..nodes.len()).map(move |to| (from, to));
        for (from, to) in (0..nodes.len()).flat_map(pairs) {
            let (here, there) = (nodes[from], nodes[to]);
            let way = network.route(here, there).ok_or((here, there))?;
            ways.push((routes.len(), way.len()));
            for side in [0, 1] {
                let ends = (1..=way.len()).map(|count| RealRoute {
                    from,
                    to,
                    side,
                    links: way[..count].to_vec(),
                    next: way.get(count).copied(),
                });
                routes.extend(ends);
            }
        }
        Ok(Self { nodes, routes, ways })
    }

    /// The number, among these routes, of that of a packet with this TTL between two different hosts.
    ///
    /// # Panics
    /// If there are no such hosts, or they are the same.
    #[must_use]
    pub fn find(&self, from: usize, to: usize, side: u8, ttl: u8) -> usize {
        let (first, links) = self.ways[from * self.nodes.len() + to];
        assert!(links > 0, "two hosts at different nodes");
        first + usize::from(side) * links + usize::from(ttl).clamp(1, links) - 1
    }
}

/// A world at time zero with real hosts.
///
/// # Panics
/// As [`build`].
#[must_use]
pub fn build_with_hosts<P: Probe>(
    scenario: &Scenario,
    network: &Arc<Network>,
    materials: &Materials,
    hosts: &RealHosts,
    probe: P,
) -> World<P> {
    assert!(scenario.flows.values().all(|flow| flow.count.is_none()), "groups are expanded");
    let links = network.links.iter().filter(|link| !link.in_cell).enumerate();
    let links = links.map(|(index, link)| self::link(scenario.seed, index as u32, link)).collect();
    let routes = network.ways().map(|way| Route {
        sender: (2 * way.flow + way.side) as u32,
        end: (2 * way.flow + (way.side ^ 1)) as u32,
        path: PathId(way.path),
        steps: steps(network, way.links, network.last_node(&scenario.flows[way.flow], way.side)),
    });
    let peers = 2 * scenario.flows.len();
    let real = hosts.routes.iter().map(|route| {
        let end = route.next.map_or(hosts.nodes[route.to], |link| network.links[link].from);
        Route {
            sender: real_peer(peers, route.from, route.side),
            end: real_peer(peers, route.to, route.side ^ 1),
            path: PathId(0),
            steps: steps(network, &route.links, end),
        }
    });
    World::new(
        Parts {
            links,
            cells: cells(scenario, network),
            cell_hops: hops(network).into_iter().map(|(hop, _)| hop).collect(),
            peers: talkspurt_flow::peers(scenario, network, materials),
            routes: routes.chain(real).collect(),
            timeline: timeline(scenario, network),
            way_back: way_back(network, scenario, hosts),
        },
        probe,
    )
}

fn link(seed: u64, index: u32, link: &DirectedLink) -> Link {
    Link::new(link::Parts {
        index,
        queue: Queue::new(&link.queue, link.rate, link.mtu),
        capacity: Capacity::of(link.rate, link.course.as_ref()),
        delay: link.delay,
        jitter: link.jitter,
        framing: link.framing,
        mtu: u32::try_from(link.mtu.as_bytes()).unwrap_or(u32::MAX),
        loss: link.loss,
        rng: Rng::new(seed, &format!("link/{}/loss", link.name)),
        jitter_rng: Rng::new(seed, &format!("link/{}/jitter", link.name)),
        queue_rng: Rng::new(seed, &format!("link/{}/queue", link.name)),
        medium: Medium::of(seed, link),
    })
}

fn timeline(scenario: &Scenario, network: &Network) -> Vec<Change> {
    let mut timeline = Vec::new();
    for (index, directed) in network.links.iter().enumerate() {
        let name = directed.name.strip_suffix(".back").unwrap_or(&directed.name);
        for event in scenario.links.get(name).into_iter().flat_map(|link| &link.events) {
            let up = event.state == LinkState::Up;
            timeline.push(Change { at: Instant::ZERO + event.at, link: index as u32, up });
        }
    }
    timeline.sort_by_key(|change| (change.at, change.link));
    timeline
}

fn way_back(
    network: &Arc<Network>,
    scenario: &Scenario,
    hosts: &RealHosts,
) -> crate::world::WayBack {
    let network = Arc::clone(network);
    let peers = scenario.flows.values().flat_map(|flow| [&flow.from, &flow.to]);
    let peers = peers.map(|node| network.node(node));
    let homes: Vec<Option<usize>> =
        peers.chain(hosts.nodes.iter().flat_map(|node| [Some(*node); 2])).collect();
    Box::new(move |link, sender| {
        let home = homes[sender as usize]?;
        let way = network.route(network.links[link as usize].from, home)?;
        Some(steps(&network, &way, home))
    })
}

/// The steps of a path to a node: a transmitter in a cell becomes the hop to the node where the next link
/// begins.
fn steps(network: &Network, way: &[usize], end: usize) -> Vec<u32> {
    let hops = hops(network);
    let step = |(at, &link): (usize, &usize)| {
        if !network.links[link].in_cell {
            return link as u32;
        }
        let to = network.receiver(way, at, end);
        let hop = hops.iter().position(|(_, hop)| *hop == (link, to));
        let plain = network.links.iter().filter(|link| !link.in_cell).count();
        (plain + hop.expect("a way in a cell leads from or to its access point")) as u32
    };
    way.iter().enumerate().map(step).collect()
}

/// The hops of all cells in order, each with its transmitter and destination node.
fn hops(network: &Network) -> Vec<(CellHop, (usize, usize))> {
    let mut hops = Vec::new();
    for (cell, nodes) in (0_u32..).zip(&network.cells) {
        for (station, node) in (1_u16..).zip(&nodes.stations) {
            let own = nodes.first_link + usize::from(station);
            hops.push((CellHop { cell, from: station, to: 0 }, (own, nodes.access_point)));
            hops.push((CellHop { cell, from: 0, to: station }, (nodes.first_link, *node)));
        }
    }
    hops
}

fn cells(scenario: &Scenario, network: &Network) -> Vec<Cell> {
    let all = scenario.cells.iter().zip(&network.cells);
    all.map(|((name, words), nodes)| {
        let timing = Timing::new(words);
        let usual = words.usual_rate();
        let rates = |own: &Option<RateControl>| Rates::new(own.as_ref().unwrap_or(&usual), &timing);
        let channel = |own: Option<f64>| own.or(words.snr_db).map(|db| Channel::new(db, &timing));
        let rng = |who: &str, what| Rng::new(scenario.seed, &format!("cell/{name}/{who}/{what}"));
        let transmitter = |who: &str, at: usize, load, rates| cell::TransmitterParts {
            link: (nodes.first_link + at) as u32,
            load,
            rates,
            rng: rng(who, "backoff"),
            queue_rng: rng(who, "queue"),
            error_rng: rng(who, "errors"),
        };
        let queue = |at: usize| {
            let link = &network.links[nodes.first_link + at];
            cell::Load::Queue(Box::new(Queue::new(&link.queue, link.rate, link.mtu)))
        };
        let downwards = words.stations.values().map(|station| rates(&station.rate)).collect();
        let mut transmitters = vec![transmitter(&words.access_point, 0, queue(0), downwards)];
        let mut channels = vec![None];
        for (at, (who, station)) in words.stations.iter().enumerate() {
            transmitters.push(transmitter(who, at + 1, queue(at + 1), vec![rates(&station.rate)]));
            channels.push(channel(station.snr_db));
        }
        if let Some(contenders) = &words.contenders {
            let bytes = contenders.packet.as_bytes() as u32;
            let at = words.stations.len() + 1;
            for number in 0..contenders.count {
                let (who, own) = (format!("contender {number}"), vec![rates(&contenders.rate)]);
                transmitters.push(transmitter(&who, at, cell::Load::Saturated(bytes), own));
                channels.push(channel(contenders.snr_db));
            }
        }
        Cell::new(cell::Parts {
            timing,
            windows: (words.first_window(), words.cw_max),
            retry_limits: (words.short_retry_limit, words.long_retry_limit),
            mtu: u32::try_from(words.mtu.as_bytes()).unwrap_or(u32::MAX),
            transmitters,
            channels,
        })
    })
    .collect()
}
