//! From a scenario to a world: every part gets its index, its name and its own rng.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use talkspurt_app::clock::Clock;
use talkspurt_app::peer::{self, MediaSink, Peer, Sink};
use talkspurt_app::recording::Recording;
use talkspurt_app::source::{self, Capture, FrameTrace, Material};
use talkspurt_app::transport::{self, Side};
use talkspurt_proto::packet::PathId;
use talkspurt_proto::probe::Probe;
use talkspurt_proto::rng::Rng;
use talkspurt_proto::time::Instant;
use talkspurt_proto::units::Size;
use talkspurt_scenario::Network;
use talkspurt_scenario::model::{Flow, LinkState, RateControl, Scenario};
use talkspurt_scenario::network::DirectedLink;

use crate::capacity::Capacity;
use crate::cell::errors::Channel;
use crate::cell::rates::Rates;
use crate::cell::timing::Timing;
use crate::cell::{self, Cell};
use crate::discipline::Queue;
use crate::link::{self, Link};
use crate::medium::Medium;
use crate::world::{CellHop, Change, Parts, Route, World};

/// What the sources of a scenario need from files, read once each: by file and what is taken from
/// it, a codec's name or a synchronisation source.
pub type Materials = BTreeMap<(PathBuf, String), Material>;

/// Reads the files that the sources of a scenario name.
///
/// # Errors
/// The first that cannot be read.
pub fn materials(scenario: &Scenario) -> Result<Materials, String> {
    let mut materials = Materials::new();
    for flow in scenario.flows.values() {
        for source in [Some(&flow.source), flow.reverse.as_ref()].into_iter().flatten() {
            let Some(key) = key(source).filter(|key| !materials.contains_key(key)) else {
                continue;
            };
            let file = &key.0;
            let named = |fault: String| format!("{}: {fault}", file.display());
            let material = match source {
                source::Config::Speech(speech) => {
                    let recording = Recording::open(file, speech.codec);
                    Material::Speech(Arc::new(recording.map_err(|fault| fault.to_string())?))
                }
                source::Config::Video(_) => {
                    Material::Frames(Arc::new(FrameTrace::open(file).map_err(named)?))
                }
                source::Config::Replay(replay) => {
                    let capture = Capture::open(file, replay.ssrc).map_err(named)?;
                    Material::Packets(Arc::new(capture))
                }
                _ => continue,
            };
            materials.insert(key, material);
        }
    }
    Ok(materials)
}

fn key(source: &source::Config) -> Option<(PathBuf, String)> {
    let file = source.file()?.to_owned();
    Some((
        file,
        match source {
            source::Config::Speech(speech) => speech.codec.name().to_owned(),
            source::Config::Replay(replay) => format!("{:?}", replay.ssrc),
            _ => String::new(),
        },
    ))
}

/// What a source has from its file.
#[must_use]
pub fn material_of(source: &source::Config, materials: &Materials) -> Material {
    key(source).and_then(|key| materials.get(&key).cloned()).unwrap_or_default()
}

/// What the parts of a world are made from.
struct Plan<'a> {
    scenario: &'a Scenario,
    network: &'a Network,
    materials: &'a Materials,
}

/// A world at time zero.
#[must_use]
pub fn build<P: Probe>(
    scenario: &Scenario,
    network: &Arc<Network>,
    materials: &Materials,
    probe: P,
) -> World<P> {
    let links = network.links.iter().filter(|link| !link.in_cell).enumerate();
    let links = links.map(|(index, link)| self::link(scenario.seed, index as u32, link)).collect();
    let plan = Plan { scenario, network, materials };
    let mut peers = Vec::with_capacity(2 * scenario.flows.len());
    let mut carried = Vec::new();
    for (number, (name, flow)) in scenario.flows.iter().enumerate() {
        let pair = pair(&plan, number, name, flow);
        match flow.transport.association() {
            None => peers.extend(pair.map(Peer::new)),
            Some(owner) => {
                peers.extend(pair.clone().map(|parts| Peer::new(vacant(parts))));
                carried.push((owner, pair));
            }
        }
    }
    carry(scenario, carried, &mut peers);
    let routes = network.ways().map(|way| Route {
        sender: (2 * way.flow + way.side) as u32,
        path: PathId(way.path),
        steps: steps(network, way.links, network.last_node(&scenario.flows[way.flow], way.side)),
    });
    World::new(
        Parts {
            links,
            cells: cells(scenario, network),
            cell_hops: cell_hops(network),
            peers,
            routes: routes.collect(),
            timeline: timeline(scenario, network),
            way_back: way_back(network, scenario),
        },
        probe,
    )
}

/// When a flow opens, spread included.
#[must_use]
pub fn start(scenario: &Scenario, name: &str, flow: &Flow) -> Instant {
    let interval = flow.source.interval().unwrap_or_default();
    let spread = flow.start_spread.unwrap_or(interval);
    let mut rng = Rng::new(scenario.seed, &format!("flow/{name}/start"));
    let own = Instant::ZERO + flow.start + rng.span(spread);
    // Nothing is said in an association before it is opened.
    let owner =
        flow.transport.association().map(|owner| start(scenario, owner, &scenario.flows[owner]));
    owner.map_or(own, |owner| own.max(owner))
}

/// Puts flows that travel in another's association there: their streams are numbered in the order of the
/// file, that of the owner being 0.
fn carry(scenario: &Scenario, carried: Vec<(&str, [peer::Parts; 2])>, peers: &mut [Peer]) {
    let mut streams = BTreeMap::<usize, u16>::new();
    for (owner, pair) in carried {
        let (number, _, flow) = scenario.flows.get_full(owner).expect("the checks found the owner");
        let separate =
            matches!(&flow.transport, transport::Config::Sctp(sctp) if sctp.multistreaming);
        let stream = streams.entry(number).or_default();
        *stream += u16::from(separate);
        for (side, parts) in pair.into_iter().enumerate() {
            peers[2 * number + side].carry(parts, *stream);
        }
    }
}

/// What is in the place of a peer that is carried in another's association: it has the number, and does
/// nothing.
fn vacant(parts: peer::Parts) -> peer::Parts {
    peer::Parts {
        transport: transport::Config::Udp(talkspurt_proto::udp::Config::default()),
        side: Side::Answers,
        source: None,
        sink: None,
        rtcp: talkspurt_proto::rtcp::Config { enabled: false, ..parts.rtcp },
        ..parts
    }
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
        jitter_dice: Rng::new(seed, &format!("link/{}/jitter", link.name)),
        queue_dice: Rng::new(seed, &format!("link/{}/queue", link.name)),
        medium: Medium::of(seed, link),
    })
}

/// Both ends of flow `number`.
fn pair(plan: &Plan<'_>, number: usize, name: &str, flow: &Flow) -> [peer::Parts; 2] {
    let Plan { scenario, network, materials } = plan;
    let paths = &network.routes[number];
    let start = start(scenario, name, flow);
    let stop = Instant::ZERO + flow.stop.unwrap_or(scenario.duration).min(scenario.duration);
    let names = [format!("flow/{name}/from"), format!("flow/{name}/to")];
    let clocks = [clock(scenario, &flow.from), clock(scenario, &flow.to)];
    let sources = [Some(&flow.source), flow.reverse.as_ref()];
    // The least of the links that an end's packets leave on.
    let first: [Vec<usize>; 2] = [
        paths.iter().map(|path| path.forward[0]).collect(),
        paths.iter().map(|path| path.backward[0]).collect(),
    ];
    let first_mtu = first.map(|links| network.mtu(&links));
    let addresses = [&flow.from, &flow.to].map(|end| match paths.len() {
        1 => Vec::new(),
        paths => (0..paths).map(|path| network.address(end, flow.ip, path)).collect(),
    });
    [Side::Opens, Side::Answers].map(|side| {
        let (own, other) = if side == Side::Opens { (0, 1) } else { (1, 0) };
        let run = [start, stop].map(|at| clocks[other].local(at));
        let sink = sources[other].and_then(|source| sink(source, materials, flow, run));
        peer::Parts {
            number: (2 * number + own) as u32,
            side,
            transport: fitted(flow, first_mtu[own]),
            clock: clocks[own],
            version: flow.ip.into(),
            addresses: addresses[own].clone(),
            dscp: flow.dscp,
            sizing: flow.sizing,
            start,
            stop,
            source: sources[own].map(|source| (source.clone(), material_of(source, materials))),
            send_queue: flow.send_queue,
            sink,
            rtcp: flow.rtcp.clone(),
            seed: scenario.seed,
            name: names[own].clone(),
            other: names[other].clone(),
        }
    })
}

/// The transport with packets that fit the first link.
fn fitted(flow: &Flow, mtu: Size) -> transport::Config {
    let mut transport = flow.transport.clone();
    transport.fit(mtu, flow.ip.into());
    transport
}

/// What becomes of the media of a source that starts and stops then, by its own clock.
fn sink(
    source: &source::Config,
    materials: &Materials,
    flow: &Flow,
    [start, stop]: [Instant; 2],
) -> Option<Sink> {
    let source::Config::Speech(speech) = source else {
        return source.packet_format(&material_of(source, materials)).map(Sink::Counted);
    };
    let origin = start + speech.lead;
    let frames = stop.saturating_since(origin).as_nanos() / speech.packet.as_nanos() + 1;
    Some(Sink::Played(MediaSink {
        encodings: speech.encodings(),
        playout: flow.playout,
        origin,
        keep: if speech.file.is_some() { frames as usize } else { 0 },
    }))
}

fn clock(scenario: &Scenario, node: &str) -> Clock {
    scenario.nodes.get(node).map_or_else(Clock::default, |node| {
        Clock::new(node.clock_offset.as_nanos(), node.clock_drift_ppm)
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

fn way_back(network: &Arc<Network>, scenario: &Scenario) -> crate::world::WayBack {
    let network = Arc::clone(network);
    let homes: Vec<String> =
        scenario.flows.values().flat_map(|flow| [flow.from.clone(), flow.to.clone()]).collect();
    Box::new(move |link, sender| {
        let home = network.node(&homes[sender as usize])?;
        let way = network.route(network.links[link as usize].from, home)?;
        Some(steps(&network, &way, home))
    })
}

/// A way to a node as the world goes it: a transmitter in a cell becomes the hop to whom the next
/// link begins with.
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

/// The hops of all cells in order, each with its transmitter and the node it leads to.
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

fn cell_hops(network: &Network) -> Vec<CellHop> {
    hops(network).into_iter().map(|(hop, _)| hop).collect()
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
            queue_dice: rng(who, "queue"),
            error_dice: rng(who, "errors"),
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
