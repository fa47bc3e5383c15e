//! Builds the two [`Peer`]s of each flow of a scenario. The simulator drives them in virtual time, `live` in
//! real time; both build them here, so a flow is the same in both.
//!
//! [`Materials::load`] reads the files that sources need through [`Files`], by name.
//! [`peers()`] makes the peers.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;

use talkspurt_app::clock::Clock;
use talkspurt_app::codec;
pub use talkspurt_app::file::{Disk, Files};
use talkspurt_app::peer::{MediaSink, Sink};
pub use talkspurt_app::peer::{Parts, Peer, SharedControl, SharedExchange};
use talkspurt_app::source::{self, Config, Material};
use talkspurt_app::transport::{self, Side};
use talkspurt_proto::octets::Hints;
use talkspurt_proto::rng::Rng;
use talkspurt_proto::time::Instant;
use talkspurt_proto::units::Size;
use talkspurt_scenario::Network;
use talkspurt_scenario::model::{Flow, Scenario};

/// File contents that the sources of a scenario need; each file is read once.
#[derive(Clone, Debug, Default)]
pub struct Materials {
    by_file: BTreeMap<Key, Material>,
}

/// A file, and the part that is used: a codec's name or a synchronisation source.
type Key = (PathBuf, String);

impl Materials {
    /// Reads the files named by the sources of a scenario.
    ///
    /// # Errors
    /// The first file that cannot be read.
    pub fn load(scenario: &Scenario, files: &dyn Files) -> Result<Self, String> {
        let mut materials = Self::default();
        for flow in scenario.flows.values() {
            for source in [Some(&flow.source), flow.reverse.as_ref()].into_iter().flatten() {
                let Some(key) = key(source) else { continue };
                if let Entry::Vacant(vacant) = materials.by_file.entry(key) {
                    vacant.insert(source.load(files)?);
                }
            }
        }
        Ok(materials)
    }

    /// The same for a run whose sound nobody hears. Packets have the same lengths.
    #[must_use]
    pub fn unheard(mut self) -> Self {
        for material in self.by_file.values_mut() {
            if let Material::Speech(recording) = material {
                Arc::make_mut(recording).is_unheard = true;
            }
        }
        self
    }

    /// Whether the sound of the run is heard.
    #[must_use]
    pub fn is_heard(&self) -> bool {
        let unheard = |it: &Material| matches!(it, Material::Speech(it) if it.is_unheard);
        !self.by_file.values().any(unheard)
    }

    /// Adds the material of a source without reading its file. A source without a file is ignored.
    pub fn insert(&mut self, source: &Config, material: Material) {
        if let Some(key) = key(source) {
            self.by_file.insert(key, material);
        }
    }

    /// The material of a source.
    #[must_use]
    pub fn of(&self, source: &Config) -> Material {
        key(source).and_then(|key| self.by_file.get(&key).cloned()).unwrap_or_default()
    }
}

fn key(source: &Config) -> Option<Key> {
    Some((source.file()?.to_owned(), source.part_of_file()))
}

/// Inputs for building peers.
struct Plan<'a> {
    scenario: &'a Scenario,
    network: &'a Network,
    materials: &'a Materials,
}

/// The peers of a scenario by number: twice the flow's number, plus one for the answering side.
#[must_use]
pub fn peers(scenario: &Scenario, network: &Network, materials: &Materials) -> Vec<Peer> {
    let plan = Plan { scenario, network, materials };
    let mut peers = Vec::with_capacity(2 * scenario.flows.len());
    let mut carried = Vec::new();
    let mut sessions = BTreeMap::<&str, [Option<SharedControl>; 2]>::new();
    let mut exchanges = Exchanges::new();
    let named: BTreeSet<&str> =
        scenario.flows.values().filter_map(|flow| flow.coupled.as_deref()).collect();
    for (number, (name, flow)) in scenario.flows.iter().enumerate() {
        let mut pair = pair(&plan, number, name, flow);
        let owner = flow.session.as_deref().unwrap_or(name);
        if flow.controller.is_some() {
            let shared = sessions.entry(owner).or_insert_with(|| {
                let shared = pair.each_ref().map(|parts| parts.control.clone());
                if named.contains(owner) || scenario.flows[owner].coupled.is_some() {
                    couple(&plan, &mut exchanges, owner, &shared);
                }
                shared
            });
            for (parts, shared) in pair.iter_mut().zip(shared) {
                parts.control.clone_from(shared);
            }
        }
        match flow.transport.association() {
            None => peers.extend(pair.map(Peer::new)),
            Some(owner) => {
                peers.extend(pair.clone().map(|parts| Peer::new(vacant(parts))));
                carried.push((owner, pair));
            }
        }
    }
    carry(scenario, carried, &mut peers);
    peers
}

/// Exchanges of coupled sessions at their first and at their second ends, by the flow that the sessions name.
type Exchanges<'a> = BTreeMap<&'a str, [SharedExchange; 2]>;

/// Couples a session with those in its exchange. Sessions from one node can go to several, whose directions to
/// it share no sender.
fn couple<'a>(
    plan: &Plan<'a>,
    exchanges: &mut Exchanges<'a>,
    name: &'a str,
    session: &[Option<SharedControl>; 2],
) {
    let flows = &plan.scenario.flows;
    let flow = &flows[name];
    let group = flow.coupled.as_deref().unwrap_or(name);
    let Some(config) = &flow.controller else { return };
    let exchange = exchanges.entry(group).or_default();
    let has_both = flow.to == flows[group].to;
    for (control, exchange) in session.iter().zip(exchange).take(1 + usize::from(has_both)) {
        if let Some(control) = control {
            control.couple(exchange, flow.priority, config.max());
        }
    }
}

/// The parts of both peers of one flow, the opening side first; for a driver that changes some of them.
#[must_use]
pub fn parts(
    scenario: &Scenario,
    network: &Network,
    materials: &Materials,
    number: usize,
) -> Option<[Parts; 2]> {
    let plan = Plan { scenario, network, materials };
    let (name, flow) = scenario.flows.get_index(number)?;
    Some(pair(&plan, number, name, flow))
}

/// When a flow opens, including the spread.
#[must_use]
pub fn start(scenario: &Scenario, name: &str, flow: &Flow) -> Instant {
    let interval = flow.source.interval().unwrap_or_default();
    let spread = flow.start_spread.unwrap_or(interval);
    let mut rng = Rng::new(scenario.seed, &format!("flow/{name}/start"));
    let own = Instant::ZERO + flow.start + rng.span(spread);
    // Nothing can be sent in an association before it opens.
    let owner =
        flow.transport.association().map(|owner| start(scenario, owner, &scenario.flows[owner]));
    owner.map_or(own, |owner| own.max(owner))
}

/// When the first sample of the speech of a direction (`NAME` or `NAME.reverse`) of a flow is captured.
#[must_use]
pub fn capture_start(
    scenario: &Scenario,
    direction: &str,
    flow: &Flow,
    speech: &source::Speech,
) -> Instant {
    let (name, speaker) = match direction.strip_suffix(".reverse") {
        Some(name) if !scenario.flows.contains_key(direction) => (name, &flow.to),
        _ => (direction, &flow.from),
    };
    let clock = clock(scenario, speaker);
    clock.truth(clock.local(start(scenario, name, flow)) + speech.lead)
}

/// Attaches flows that share another flow's association: their streams are numbered in file order, the owner's
/// being 0.
fn carry(scenario: &Scenario, carried: Vec<(&str, [Parts; 2])>, peers: &mut [Peer]) {
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

/// A placeholder for a peer carried in another's association: it keeps the number and does nothing.
fn vacant(parts: Parts) -> Parts {
    Parts {
        transport: transport::Config::Udp(talkspurt_proto::udp::Config::default()),
        side: Side::Answers,
        source: None,
        sink: None,
        others_until: None,
        rtcp: talkspurt_proto::rtcp::Config { enabled: false, ..parts.rtcp },
        control: None,
        ..parts
    }
}

/// Both ends of flow `number`.
fn pair(plan: &Plan<'_>, number: usize, name: &str, flow: &Flow) -> [Parts; 2] {
    let Plan { scenario, network, materials } = plan;
    let paths = &network.routes[number];
    let start = start(scenario, name, flow);
    let stop = Instant::ZERO + flow.stop.unwrap_or(scenario.duration).min(scenario.duration);
    let names = [format!("flow/{name}/from"), format!("flow/{name}/to")];
    let clocks = [clock(scenario, &flow.from), clock(scenario, &flow.to)];
    let sources = [Some(&flow.source), flow.reverse.as_ref()];
    // The smallest MTU of the links on which an end's packets leave.
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
        Parts {
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
            source: sources[own].map(|source| (source.clone(), materials.of(source))),
            send_queue: flow.send_queue,
            others_until: (sources[other].is_some() && sink.is_none()).then_some(stop),
            sink,
            rtcp: flow.rtcp.clone(),
            control: control(flow),
            priority: flow.priority,
            seed: scenario.seed,
            name: names[own].clone(),
            other: names[other].clone(),
        }
    })
}

/// The control of one end's media; flows of a session are given that of the flow which it is named after.
fn control(flow: &Flow) -> Option<SharedControl> {
    let version = talkspurt_proto::packet::IpVersion::from(flow.ip);
    let lower_layers = flow.transport.header_bytes() + version.header_bytes();
    flow.controller.as_ref().map(|config| SharedControl::new(config, lower_layers))
}

/// The transport with packets that fit the first link.
fn fitted(flow: &Flow, mtu: Size) -> transport::Config {
    let mut transport = flow.transport.clone();
    transport.fit(mtu, flow.ip.into());
    transport
}

/// The receiver of a source's media; `start` and `stop` are by the source's clock.
fn sink(
    source: &source::Config,
    materials: &Materials,
    flow: &Flow,
    [start, stop]: [Instant; 2],
) -> Option<Sink> {
    let source::Config::Speech(speech) = source else {
        return source.packet_format(&materials.of(source)).map(Sink::Counted);
    };
    let origin = start + speech.lead;
    let encodings = speech.encodings();
    let step = codec::step(&encodings).as_nanos();
    let steps = stop.saturating_since(origin).as_nanos() / step + 1;
    Some(Sink::Played(MediaSink {
        encodings,
        flexfec: speech.flexfec,
        playout: flow.playout,
        origin,
        keep: if speech.file.is_some() { steps as usize } else { 0 },
    }))
}

fn clock(scenario: &Scenario, node: &str) -> Clock {
    scenario.nodes.get(node).map_or_else(Clock::default, |node| {
        Clock::new(node.clock_offset.as_nanos(), node.clock_drift_ppm)
    })
}

/// Values that packets do not carry themselves.
#[must_use]
pub fn hints(flow: &Flow) -> Hints {
    let sources = [Some(&flow.source), flow.reverse.as_ref()];
    Hints {
        media: sources.into_iter().flatten().any(|it| it.is_media()),
        tfrc: flow.transport.protocol() == "TFRC",
        virtual_offset: None,
    }
}
