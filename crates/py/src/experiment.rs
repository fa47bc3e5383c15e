//! A run from scenario to tables: world, recorder, digest, captures and quality put together.

use std::net::IpAddr;
use std::path::Path;
use std::sync::atomic::Ordering;

use talkspurt_app::{playout, quality, source};
use talkspurt_proto::time::{Duration, Instant};
use talkspurt_proto::wire::Ends;
use talkspurt_record::pcapng::{CaptureProbe, Pcapng};
use talkspurt_record::{
    Digest, FlowInfo, FlowSummary, Layout, LinkInfo, Options, Quality, Recorder, Recording,
    RouteInfo, SideInfo,
};
use talkspurt_scenario::model::{Flow, IpVersion, Scenario};
use talkspurt_scenario::{Network, Point};
use talkspurt_sim::build::{self, Recordings};
use talkspurt_sim::drive::{Timetable, drive};
use talkspurt_sim::world::World;

use crate::run::Shared;

/// The probe of a run.
type Watch = (Recorder, (Digest, Option<CaptureProbe>));

/// What a run leaves behind.
pub(crate) struct Finished {
    pub(crate) digest: String,
    pub(crate) hops: u64,
    pub(crate) events: u64,
    pub(crate) cpu_s: f64,
    pub(crate) duration_s: f64,
    pub(crate) recording: Recording,
    pub(crate) audio: Vec<Audio>,
}

/// The speech of one direction of a flow.
pub(crate) struct Audio {
    pub(crate) flow: String,
    pub(crate) sent: Vec<i16>,
    pub(crate) received: Vec<i16>,
    pub(crate) sample_rate: u32,
}

/// Runs one point of a study.
pub(crate) fn run(
    point: &Point,
    captures: Option<&Path>,
    shared: &Shared,
) -> Result<Finished, String> {
    let cpu = cpu_time::ThreadTime::now();
    let Point { scenario, network, .. } = point;
    let recordings = build::recordings(scenario).map_err(|error| error.to_string())?;
    let recorder =
        Recorder::new(layout(scenario, network), Options { packets: scenario.record.packets });
    let capture = capture(scenario, network, captures)?;
    let watch: Watch = (recorder, (Digest::new(), capture));
    let mut world = build::build(scenario, network, &recordings, watch);
    let mut disk_failed = false;
    let finished =
        drive(&mut world, &timetable(scenario), &shared.cancel, |now, counters, watch| {
            watch.0.sample(now, counters);
            shared.passed.store(now.as_nanos(), Ordering::Relaxed);
            if watch.1.1.as_ref().is_some_and(CaptureProbe::failed) && !disk_failed {
                // A writer inside a probe cannot fail upward: it stops the run, and tells below.
                disk_failed = true;
                shared.cancel.store(true, Ordering::Relaxed);
            }
        });
    if !finished && !disk_failed {
        return Err("cancelled".to_owned());
    }
    let audio = audio(scenario, &recordings, &world);
    let (hops, events) = (world.hops(), world.events());
    let (recorder, (digest, capture)) = world.probe;
    if let Some(capture) = capture {
        capture.finish().map_err(|error| format!("a capture could not be written: {error}"))?;
    }
    let mut recording = recorder.finish();
    recording.conservation()?;
    for summary in &mut recording.flows {
        summary.quality = score(scenario, summary);
    }
    Ok(Finished {
        digest: digest.hex(),
        hops,
        events,
        cpu_s: cpu.elapsed().as_secs_f64(),
        duration_s: scenario.duration.as_secs_f64(),
        recording,
        audio,
    })
}

fn timetable(scenario: &Scenario) -> Timetable {
    Timetable {
        duration: scenario.duration,
        interval: scenario.record.interval,
        window: window(scenario),
    }
}

fn window(scenario: &Scenario) -> (Instant, Instant) {
    let to = scenario.measure.to.unwrap_or(scenario.duration);
    (Instant::ZERO + scenario.measure.from, Instant::ZERO + to)
}

fn layout(scenario: &Scenario, network: &Network) -> Layout {
    let flows = scenario.flows.iter().map(|(name, flow)| FlowInfo {
        name: name.clone(),
        transport: flow.transport.name().to_owned(),
        from: flow.from.clone(),
        to: flow.to.clone(),
        sides: [Some(side(&flow.source)), flow.reverse.as_ref().map(side)],
    });
    let links = network.links.iter().map(|link| LinkInfo {
        name: link.name.clone(),
        from: network.nodes[link.from].clone(),
        to: network.nodes[link.to].clone(),
        rate_bps: link.rate.as_bps(),
    });
    let peers = 0..2 * scenario.flows.len() as u32;
    let routes = peers.map(|peer| RouteInfo { flow: peer / 2, side: (peer % 2) as u8 });
    let (from, to) = window(scenario);
    Layout {
        flows: flows.collect(),
        links: links.collect(),
        routes: routes.collect(),
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
    SideInfo { source: source.kind().to_owned(), frame }
}

/// A capture of every link the scenario names, both directions in one file.
fn capture(
    scenario: &Scenario,
    network: &Network,
    into: Option<&Path>,
) -> Result<Option<CaptureProbe>, String> {
    let Some(folder) = into.filter(|_| !scenario.record.pcapng.is_empty()) else { return Ok(None) };
    let mut probe = CaptureProbe::new(ends(scenario, network));
    for name in &scenario.record.pcapng {
        let Some(forth) = network.links.iter().position(|link| link.name == *name) else {
            continue;
        };
        let path = folder.join(format!("{name}.pcapng"));
        let back = format!("{name}.back");
        let file = Pcapng::create(&path, &[name, &back])
            .map_err(|error| format!("{}: {error}", path.display()))?;
        let both = &network.links[forth..=forth + 1];
        let lag = both.iter().map(|link| {
            link.delay + link.rate.time_for(link.mtu.as_bytes() + 64).unwrap_or_default()
        });
        probe.tap(file, &[forth as u32, forth as u32 + 1], lag.max().unwrap_or_default());
    }
    Ok(Some(probe))
}

/// Addresses and ports of every route's packets: flow n uses ports 5004 + 2n (RTP's even ports,
/// RFC 3550 §11) at both ends.
fn ends(scenario: &Scenario, network: &Network) -> Vec<((u32, u32), Ends)> {
    let mut ends = Vec::new();
    for (number, flow) in scenario.flows.values().enumerate() {
        let port = (5004 + 2 * number % 60_000) as u16;
        let address = |node: &str| address(network, node, flow);
        let forth = Ends {
            src: address(&flow.from),
            dst: address(&flow.to),
            src_port: port,
            dst_port: port,
        };
        let peer = 2 * number as u32;
        ends.push(((number as u32, peer), forth));
        ends.push(((number as u32, peer + 1), forth.reversed()));
    }
    ends
}

fn address(network: &Network, node: &str, flow: &Flow) -> IpAddr {
    let known = network.node(node).map(|node| &network.addresses[node]);
    let first = known.and_then(|known| match flow.ip {
        IpVersion::V4 => known.v4.first().map(|address| IpAddr::V4(*address)),
        IpVersion::V6 => known.v6.first().map(|address| IpAddr::V6(*address)),
    });
    first.unwrap_or(IpAddr::V4(std::net::Ipv4Addr::UNSPECIFIED))
}

/// The sides of a flow that speak: direction name, its speech source, the peer that hears it.
fn directions(
    scenario: &Scenario,
) -> impl Iterator<Item = (String, &Flow, &source::Config, usize)> {
    scenario.flows.iter().enumerate().flat_map(|(number, (name, flow))| {
        let forth = (name.clone(), flow, &flow.source, 2 * number + 1);
        let back = flow
            .reverse
            .as_ref()
            .map(|source| (format!("{name}.reverse"), flow, source, 2 * number));
        std::iter::once(forth).chain(back)
    })
}

fn audio<P: talkspurt_proto::probe::Probe>(
    scenario: &Scenario,
    recordings: &Recordings,
    world: &World<P>,
) -> Vec<Audio> {
    let mut audio = Vec::new();
    for (name, flow, source, ear) in directions(scenario) {
        let (source::Config::Speech(speech), Some(recording)) =
            (source, build::recording_of(source, recordings))
        else {
            continue;
        };
        let peers = world.peers();
        let unit = speech.codec.samples_for(speech.packet);
        let mut sent = recording.sent.to_vec();
        if speech.repeat {
            // What was sent: the recording padded to whole packets, over and over.
            let frames = peers[ear ^ 1].generated() as usize;
            let once = sent.len();
            sent = (0..frames * unit)
                .map(|at| sent[(at % once.next_multiple_of(unit)).min(once - 1)])
                .collect();
        } else {
            sent.truncate(peers[ear ^ 1].generated() as usize * unit);
        }
        let received = playout::render(
            speech.codec,
            flow.playout.concealment,
            peers[ear].played(),
            sent.len(),
            unit,
        );
        audio.push(Audio { flow: name, sent, received, sample_rate: speech.codec.sample_rate() });
    }
    audio
}

fn score(scenario: &Scenario, summary: &FlowSummary) -> Quality {
    let found = directions(scenario).find(|(name, ..)| *name == summary.name);
    let Some((_, flow, source::Config::Speech(speech), _)) = found else {
        return Quality::default();
    };
    let Some(loss) = summary.loss_ratio else { return Quality::default() };
    let Some(delay) = summary.mouth_to_ear_p50_s else {
        let note = "No frame was played in time, so there is no delay to score.".to_owned();
        return Quality { note: Some(note), ..Quality::default() };
    };
    let score = quality::score(
        &flow.quality,
        speech.codec,
        flow.playout.concealment,
        Duration::from_secs_f64(delay),
        loss,
        summary.burst_ratio.unwrap_or(1.0),
    );
    Quality {
        r_factor: score.r,
        mos: score.mos,
        mos_lost_to_delay: score.lost_to_delay,
        mos_lost_to_loss: score.lost_to_loss,
        mos_lost_to_codec: score.lost_to_codec,
        note: Some(score.note),
    }
}
