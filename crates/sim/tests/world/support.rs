//! From a few lines of scenario to a finished run with its accounts. Every run also asserts that each
//! place reports notes in order of time, that packets are conserved, and that every flow's account
//! balances.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use talkspurt_app::recording::Recording;
use talkspurt_app::source::{self, Material};
use talkspurt_flow::Materials;
use talkspurt_proto::probe::{LinkCounters, Note, Place, Probe, Topic};
use talkspurt_proto::rng::Rng;
use talkspurt_proto::time::{Duration, Instant};
use talkspurt_proto::units::{Rate, Size};
use talkspurt_record::{
    Digest, FlowInfo, FlowSummary, Layout, LinkInfo, LinkSummary, Options, Output, PacketTable,
    Recorder, RouteInfo, SideInfo,
};
use talkspurt_scenario::model::{self, Scenario};
use talkspurt_scenario::{Network, Point};
use talkspurt_sim::build::build;
use talkspurt_sim::capacity::Capacity;
use talkspurt_sim::discipline::Queue;
use talkspurt_sim::drive::{Timetable, drive};
use talkspurt_sim::link::Parts;

pub(crate) fn ms(milliseconds: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(milliseconds)
}

/// The single run of a scenario text.
pub(crate) fn point(text: &str) -> Point {
    let study = talkspurt_scenario::load(text, "test", Path::new("."), &[], None);
    let study = study.unwrap_or_else(|problems| panic!("{problems}\n{text}"));
    study.points[0].expanded().into_owned()
}

/// A link of a scenario: `ends` as `"a-b"`, `more` in TOML.
pub(crate) fn link(name: &str, ends: &str, rate: &str, delay: &str, more: &str) -> String {
    let (from, to) = ends.split_once('-').expect("two ends");
    let queue =
        if more.contains("queue =") { "" } else { "queue = { kind = 'droptail', packets = 1000 }" };
    format!(
        "[links.{name}]\nfrom = '{from}'\nto = '{to}'\nrate = '{rate}'\ndelay = '{delay}'\n{queue}\n{more}\n"
    )
}

/// A flow of a scenario: `ends` as `"a-b"`, `more` in TOML.
pub(crate) fn flow(name: &str, ends: &str, transport: &str, source: &str, more: &str) -> String {
    let (from, to) = ends.split_once('-').expect("two ends");
    let transport = match transport {
        "tcp" => "{ kind = 'tcp', controller = 'newreno' }",
        "udp" => "{ kind = 'udp' }",
        other => other,
    };
    format!(
        "[flows.{name}]\nfrom = '{from}'\nto = '{to}'\ntransport = {transport}\nsource = {source}\n{more}\n"
    )
}

pub(crate) fn scenario(duration: &str, parts: &[String]) -> String {
    format!("title = 'test'\nduration = '{duration}'\n{}", parts.concat())
}

/// What makes a link with this queue, without delays and losses.
pub(crate) fn parts(queue: &model::Queue, rate: Rate, mtu: u32) -> Parts {
    Parts {
        index: 0,
        queue: Queue::new(queue, rate, Size::from_bytes(mtu.into())),
        capacity: Capacity::fixed(rate),
        delay: Duration::ZERO,
        framing: model::Framing::None,
        mtu,
        medium: None,
        jitter: Duration::ZERO,
        loss: 0.0,
        rng: Rng::new(1, "loss"),
        jitter_rng: Rng::new(1, "jitter"),
        queue_rng: Rng::new(1, "queue"),
    }
}

/// A finished run.
pub(crate) struct Run {
    pub(crate) flows: Vec<FlowSummary>,
    pub(crate) links: Vec<LinkSummary>,
    pub(crate) digest: String,
    /// By peer, what was played.
    pub(crate) played: Vec<Vec<Option<talkspurt_app::playout::Received>>>,
    /// By peer, how many units its source made.
    pub(crate) generated: Vec<u32>,
    /// By peer, how many frames of video it decoded.
    pub(crate) decoded: Vec<u64>,
    pub(crate) hops: u64,
    /// Wake-ups.
    pub(crate) events: u64,
}

impl Run {
    pub(crate) fn flow(&self, name: &str) -> &FlowSummary {
        self.flows.iter().find(|flow| flow.name == name).expect("a flow of this name")
    }
    pub(crate) fn link(&self, name: &str) -> &LinkSummary {
        self.links.iter().find(|link| link.name == name).expect("a link of this name")
    }
}

/// Additional observation of a run.
#[derive(Clone, Default)]
pub(crate) struct Look {
    /// A row per packet and hop.
    pub(crate) packets: bool,
    /// Further edges at which every link is settled.
    pub(crate) settle_every: Option<Duration>,
    pub(crate) materials: Materials,
}

pub(crate) fn run(text: &str) -> Run {
    watch(&point(text), &Look::default(), |_, _, _| {})
}

/// Runs and shows every note to `eye`.
pub(crate) fn watch(
    point: &Point,
    look: &Look,
    mut eye: impl FnMut(Instant, Place, &Note<'_>),
) -> Run {
    watch_with(point, look, Eye(&mut eye)).0
}

/// Runs under a further probe.
pub(crate) fn watch_with<P: Probe>(point: &Point, look: &Look, probe: P) -> (Run, P) {
    let Point { scenario, network, .. } = point;
    let layout = layout(scenario, network);
    let packets = look.packets.then(|| PacketTable::new(Output::to(std::io::sink()), &layout));
    let digest = Digest::of(&layout);
    let recorder = Recorder::new(layout, Options { gauges: true, sojourn: true });
    let probe = (((InOrder::default(), packets), probe), (digest, recorder));
    let mut world = build(scenario, network, &look.materials, probe);
    let timetable = Timetable {
        duration: scenario.duration,
        interval: look.settle_every.unwrap_or(scenario.record.interval),
        window: window(scenario),
        settle: look.settle_every,
    };
    let never = AtomicBool::new(false);
    let finished = drive(&mut world, &timetable, &never, |now, counters, probe| {
        probe.1.1.sample(now, counters);
    });
    assert!(finished);
    let played = world.peers().iter().map(|peer| peer.played().to_vec()).collect();
    let generated = world.peers().iter().map(|peer| peer.generated()).collect();
    let decoded = world.peers().iter().map(|peer| peer.decoded()).collect();
    let (hops, events) = (world.hops(), world.events());
    let (((_, packets), probe), (digest, recorder)) = world.probe;
    packets.map_or(Ok(()), PacketTable::finish).expect("nothing can fail");
    let recording = recorder.finish().expect("no temporary file fails");
    assert_eq!(recording.conservation(), Ok(()));
    let digest = digest.hex();
    let (flows, links) = (recording.flows, recording.links);
    (Run { flows, links, digest, played, generated, decoded, hops, events }, probe)
}

/// Runs without accounts and gives the counters of every direction at the end.
pub(crate) fn counters(point: &Point) -> Vec<LinkCounters> {
    let mut world = build(&point.scenario, &point.network, &Materials::default(), ());
    world.run_until(Instant::ZERO + point.scenario.duration, &AtomicBool::new(false));
    world.settle();
    world.assert_conservation();
    world.counters()
}

/// Gives the source of a flow (or its reverse) a recording of this sound.
pub(crate) fn speak(
    point: &mut Point,
    look: &mut Look,
    flow: &str,
    reverse: bool,
    pcm: &[i16],
    repeat: bool,
) {
    let flow_name = flow;
    let flow = point.scenario.flows.get_mut(flow).expect("a flow of this name");
    let source =
        if reverse { flow.reverse.as_mut().expect("it answers") } else { &mut flow.source };
    let source::Config::Speech(speech) = source else { panic!("no speech") };
    let file = std::path::PathBuf::from(format!("{flow_name}{reverse}.wav"));
    speech.file = Some(file);
    speech.repeat = repeat;
    let recording = Arc::new(Recording::from_pcm(pcm.to_vec(), &speech.encodings()[0]));
    look.materials.insert(source, Material::Speech(recording));
}

fn window(scenario: &Scenario) -> (Instant, Instant) {
    let to = scenario.measure.to.unwrap_or(scenario.duration);
    (Instant::ZERO + scenario.measure.from, Instant::ZERO + to)
}

fn layout(scenario: &Scenario, network: &Network) -> Layout {
    let flows = scenario.flows.iter().map(|(name, flow)| FlowInfo {
        name: name.clone(),
        group: flow.group.clone(),
        transport: flow.transport.name().to_owned(),
        from: flow.from.clone(),
        to: flow.to.clone(),
        sides: [Some(side(&flow.source)), flow.reverse.as_ref().map(side)],
    });
    let links = network.links.iter().map(|link| LinkInfo {
        name: link.name.clone(),
        from: network.nodes[link.from].clone(),
        to: network.far_ends(link).iter().map(|n| network.nodes[*n].clone()).collect(),
        receivers: BTreeMap::new(),
        rate_bps: link.rate.as_bps(),
        delay: link.delay,
    });
    let ways = network.ways();
    let (from, to) = window(scenario);
    Layout {
        colours: BTreeMap::new(),
        flows: flows.collect(),
        links: links.collect(),
        routes: ways.map(|way| RouteInfo { flow: way.flow as u32, side: way.side as u8 }).collect(),
        from,
        to,
        duration: scenario.duration,
        interval: scenario.record.interval,
    }
}

fn side(source: &source::Config) -> SideInfo {
    let frame = match source {
        source::Config::Speech(speech) => Some(speech.packet),
        _ => None,
    };
    SideInfo { source: source.kind().to_owned(), frame, deadline: source.deadline(), rests: false }
}

/// Asserts what [`Probe::record`] promises: notes of one place come in order of time.
#[derive(Default)]
struct InOrder(BTreeMap<Place, Instant>);

impl Probe for InOrder {
    fn wants(&self, _: Topic) -> bool {
        true
    }
    fn record(&mut self, now: Instant, place: Place, note: &Note<'_>) {
        let last = self.0.insert(place, now).unwrap_or_default();
        assert!(last <= now, "{place:?} was at {last:?} and notes at {now:?}: {note:?}");
    }
}

/// A closure that looks at every note. The function is not a type parameter: each of them would compile a world of its own.
struct Eye<'a>(&'a mut dyn FnMut(Instant, Place, &Note<'_>));

impl Probe for Eye<'_> {
    fn wants(&self, _: Topic) -> bool {
        true
    }
    fn record(&mut self, now: Instant, place: Place, note: &Note<'_>) {
        (self.0)(now, place, note);
    }
}
