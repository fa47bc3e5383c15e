//! Random runs reported to the probes note by note, and every number recomputed from the whole
//! history by sorting and searching: two programs that share only the definitions.

mod support;

use proptest::prelude::*;
use support::{
    Line, Told, control, counts, data, floats, flow, layout, ms, near, packet, rtp, segment, side,
    tell, texts,
};
use talkspurt_proto::body::Body;
use talkspurt_proto::probe::{DropReason, Note, Place, Playout};
use talkspurt_proto::time::{Duration, Instant};
use talkspurt_record::{FlowSummary, Layout, Options, Recorder, Recording, Stats};

/// The history of one frame or control packet.
#[derive(Clone, Debug)]
struct Story {
    is_control: bool,
    captured: u64,
    made: u64,
    left: Left,
    bytes: u32,
}

#[derive(Clone, Debug)]
enum Left {
    Queued,
    Discarded(u64),
    Sent { at: u64, number: u32, network: Network },
}

#[derive(Clone, Copy, Debug)]
enum Network {
    Travelling,
    Lost(u64),
    Arrived { at: u64, playout: u64 },
}

/// The traffic of one peer: voice (datagrams), datagrams, or segments.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    Voice,
    Datagrams,
    Segments,
}

const END: u64 = 4_000_000_000;
/// Length of a frame of voice.
const FRAME: u64 = 20_000_000;
const KINDS: [Kind; 3] = [Kind::Voice, Kind::Datagrams, Kind::Segments];

/// Steps of one peer: (gap to the next, wait in the queue, delay, what happens, bytes).
type Step = (u64, u64, u64, u8, u32);

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = (0_u64..90_000_000, 0_u64..50_000_000, 0_u64..200_000_000, 0_u8..12, 1_u32..1400);
    prop::collection::vec(step, 0..70)
}

fn stories(steps: &[Step], kind: Kind) -> Vec<Story> {
    let (mut now, mut free, mut number) = (0, 0, 0);
    let mut stories = Vec::new();
    for &(gap, wait, delay, what, bytes) in steps {
        now += gap;
        if now >= END {
            break;
        }
        let is_control = what == 0;
        let made = if is_control { now } else { (now + 5_000_000).min(END) };
        let at = (made + if is_control { 0 } else { wait }).max(free).min(END);
        let left = match what {
            1 => Left::Discarded(at),
            // Packets waiting at the end are behind all that left.
            _ if at == END => Left::Queued,
            _ => {
                free = at;
                number += 1;
                let arrival = at + delay;
                let network = match what {
                    2 | 3 if arrival <= END => Network::Lost(arrival),
                    4..12 | 0 if arrival <= END => {
                        Network::Arrived { at: arrival, playout: at + 150_000_000 }
                    }
                    _ => Network::Travelling,
                };
                Left::Sent { at, number: number - 1, network }
            }
        };
        if is_control && matches!(left, Left::Queued) {
            continue;
        }
        let bytes = if kind == Kind::Voice { 160 } else { bytes };
        stories.push(Story { is_control, captured: now, made, left, bytes });
    }
    stories
}

fn body(kind: Kind, story: &Story, index: u32) -> (Body, u32) {
    match kind {
        _ if story.is_control && kind == Kind::Segments => (segment(index, 0), 52),
        _ if story.is_control => (control(), 60),
        Kind::Voice => (rtp(index, story.bytes as usize), 40 + story.bytes),
        Kind::Datagrams => (data(story.bytes), 28 + story.bytes),
        Kind::Segments => (segment(index, story.bytes), 52 + story.bytes),
    }
}

/// Notes of one peer's history, each with the time of its report: links may report late.
fn script(peer: u32, kind: Kind, stories: &[Story], link_lag: u64) -> Vec<(u64, Told)> {
    let mut told = Vec::new();
    let mut index = 0;
    for story in stories {
        let mut say = |at: u64, heard: u64, place: Place, line: Line| {
            told.push((heard, Told { at: Instant::from_nanos(at), place, line }));
        };
        let (own, far) = (Place::Peer(peer), Place::Peer(peer ^ 1));
        if !story.is_control {
            let captured = Instant::from_nanos(story.captured);
            let made = Note::Generated { index, bytes: story.bytes, captured };
            say(story.made, story.made, own, Line::Plain(made));
        }
        match story.left {
            Left::Queued => {}
            Left::Discarded(at) => {
                say(at, at, own, Line::Plain(Note::Discarded { index }));
                if let Some(playout) = recovered(kind, story) {
                    say(at, at, far, Line::Plain(Note::Decided { index, playout }));
                }
            }
            Left::Sent { at, number, network } => {
                let (body, ip_bytes) = body(kind, story, index);
                let label = packet(peer, number, ip_bytes, Instant::from_nanos(at));
                if !story.is_control {
                    say(at, at, own, Line::Plain(Note::HandedOver { index }));
                }
                say(at, at, own, Line::Sent(label, body.clone()));
                match network {
                    Network::Travelling => {}
                    Network::Lost(at) => {
                        let why = DropReason::Medium;
                        say(at, at + link_lag, Place::Link(0), Line::Dropped(label, why));
                        if let Some(playout) = recovered(kind, story) {
                            say(at, at, far, Line::Plain(Note::Decided { index, playout }));
                        }
                    }
                    Network::Arrived { at, playout } => {
                        say(at, at, far, Line::Received(label, body));
                        if !story.is_control {
                            let bytes = story.bytes;
                            say(at, at, far, Line::Plain(Note::Delivered { index, bytes }));
                        }
                        if kind == Kind::Voice && !story.is_control {
                            let playout = decision(at, playout);
                            say(at, at, far, Line::Plain(Note::Decided { index, playout }));
                        }
                    }
                }
            }
        }
        index += u32::from(!story.is_control);
    }
    told
}

/// Some of the frames that did not arrive are found in later packets, and played at these instants.
fn recovery(story: &Story) -> Option<u64> {
    let is_missing = match story.left {
        Left::Discarded(_) => true,
        Left::Sent { network, .. } => matches!(network, Network::Lost(_)),
        Left::Queued => false,
    };
    let chosen = is_missing && !story.is_control && (story.captured / 1000).is_multiple_of(3);
    chosen.then(|| story.captured + 70_000_000)
}

fn recovered(kind: Kind, story: &Story) -> Option<Playout> {
    let at = recovery(story).filter(|_| kind == Kind::Voice)?;
    Some(Playout::Recovered(Instant::from_nanos(at)))
}

fn decision(arrival: u64, playout: u64) -> Playout {
    let at = Instant::from_nanos(playout);
    if arrival > playout { Playout::Late(at) } else { Playout::Played(at) }
}

fn three_flows(from: u64, to: u64, bin: u64) -> Layout {
    let flows = vec![
        flow("voice", "udp", [side("speech", Some(20)), side("speech", Some(20))]),
        flow("cbr", "udp", [side("cbr", None), None]),
        flow("bulk", "tcp", [None, side("bulk", None)]),
    ];
    let plan = layout(flows, ms(from), ms(from.max(to)), Instant::from_nanos(END));
    Layout { interval: Duration::from_millis(bin), ..plan }
}

/// The sending peers: number, name in tables, kind.
const SPEAKERS: [(u32, &str, usize); 4] =
    [(0, "voice", 0), (1, "voice.reverse", 0), (2, "cbr", 1), (5, "bulk.reverse", 2)];

struct Window {
    from: u64,
    to: u64,
}

impl Window {
    fn holds(&self, at: u64) -> bool {
        self.from <= at && at < self.to
    }
    fn seconds(&self) -> f64 {
        (self.to - self.from) as f64 / 1e9
    }
}

/// Packets with payload: (sent, bytes of IP packet, network).
fn packets(stories: &[Story], kind: Kind) -> Vec<(u64, u32, Network)> {
    let sent = stories.iter().filter(|story| !story.is_control).filter_map(|story| {
        let Left::Sent { at, network, .. } = story.left else { return None };
        Some((at, body(kind, story, 0).1, network))
    });
    sent.collect()
}

fn is_late(network: &Network) -> bool {
    matches!(network, Network::Arrived { at, playout } if at > playout)
}

/// The account, from the definitions.
fn account(stories: &[Story], kind: Kind, window: &Window) -> FlowSummary {
    let frames: Vec<&Story> =
        stories.iter().filter(|story| !story.is_control && window.holds(story.captured)).collect();
    let left = |wanted: fn(&Left) -> bool| {
        frames.iter().filter(|story| wanted(&story.left)).count() as u64
    };
    let all = packets(stories, kind);
    let sent: Vec<_> = all.iter().filter(|packet| window.holds(packet.0)).collect();
    let among = |wanted: fn(&Network) -> bool| {
        sent.iter().filter(|packet| wanted(&packet.2)).count() as u64
    };
    let layers = match kind {
        Kind::Voice => (20, 8, 12),
        Kind::Datagrams => (20, 8, 0),
        Kind::Segments => (20, 32, 0),
    };
    let count = sent.len() as u64;
    let bytes: u64 = sent.iter().map(|packet| u64::from(packet.1)).sum();
    let arrived = |network: &Network| match network {
        Network::Arrived { at, .. } => Some(*at),
        _ => None,
    };
    let delays = sorted(sent.iter().filter_map(|p| Some(arrived(&p.2)? - p.0)));
    let in_window =
        all.iter().filter(|packet| arrived(&packet.2).is_some_and(|at| window.holds(at)));
    let through: u64 = in_window.clone().map(|packet| u64::from(packet.1)).sum();
    let good: u64 =
        in_window.map(|packet| u64::from(packet.1) - layers.0 - layers.1 - layers.2).sum();
    let rate = |bytes: u64| (window.seconds() > 0.0).then(|| bytes as f64 * 8.0 / window.seconds());
    let mut row = FlowSummary {
        generated_packets: Some(frames.len() as u64),
        queued_packets: Some(left(|left| matches!(left, Left::Queued))),
        handed_over_packets: left(|left| matches!(left, Left::Sent { .. })),
        discarded_packets: Some(left(|left| matches!(left, Left::Discarded(_)))),
        rejected_packets: Some(0),
        damaged_packets: Some(0),
        sent_packets: count,
        received_packets: among(|network| matches!(network, Network::Arrived { .. })),
        lost_packets: among(|network| matches!(network, Network::Lost(_))),
        in_flight_packets: among(|network| matches!(network, Network::Travelling)),
        control_packets: stories
            .iter()
            .filter(|story| story.is_control && window.holds(sent_at(story)))
            .count() as u64,
        sent_bytes: bytes,
        received_bytes: sent
            .iter()
            .filter(|packet| arrived(&packet.2).is_some())
            .map(|packet| u64::from(packet.1))
            .sum(),
        network_header_bytes: count * layers.0,
        transport_header_bytes: count * layers.1,
        media_header_bytes: count * layers.2,
        payload_bytes: bytes - count * (layers.0 + layers.1 + layers.2),
        throughput_bps: rate(through),
        goodput_bps: rate(good),
        delay_min_s: delays.first().map(|nanos| *nanos as f64 / 1e9),
        delay_mean_s: (!delays.is_empty())
            .then(|| delays.iter().map(|n| *n as f64 / 1e9).sum::<f64>() / delays.len() as f64),
        delay_p50_s: quantile(&delays, 0.50),
        delay_p95_s: quantile(&delays, 0.95),
        delay_p99_s: quantile(&delays, 0.99),
        delay_max_s: delays.last().map(|nanos| *nanos as f64 / 1e9),
        jitter_s: jitter(stories, kind, window),
        ..FlowSummary::default()
    };
    if kind == Kind::Voice {
        heard(&mut row, &frames);
    }
    row
}

/// When a packet left; never, as a number beyond every window.
fn sent_at(story: &Story) -> u64 {
    if let Left::Sent { at, .. } = story.left { at } else { u64::MAX }
}

fn sorted(values: impl Iterator<Item = u64>) -> Vec<u64> {
    let mut values: Vec<u64> = values.collect();
    values.sort_unstable();
    values
}

/// The smallest value not exceeded by a share `q` of all, by counting for each.
fn quantile(values: &[u64], q: f64) -> Option<f64> {
    let enough = (values.len() as f64 * q).ceil() as usize;
    let least = values
        .iter()
        .filter(|value| values.iter().filter(|other| other <= value).count() >= enough)
        .min()?;
    Some(*least as f64 / 1e9)
}

/// Playout results of the window's frames.
fn heard(row: &mut FlowSummary, frames: &[&Story]) {
    let network = |story: &&Story| match story.left {
        Left::Sent { network, .. } => Some(network),
        _ => None,
    };
    let ears = sorted(frames.iter().filter_map(|story| match network(story) {
        Some(Network::Arrived { at, playout }) if at <= playout => Some(playout - story.captured),
        _ => recovery(story).map(|playout| playout - story.captured),
    }));
    // What is still on its way when its playout would come after the run is not judged.
    let ear = ears.last().copied().unwrap_or(0);
    let judged: Vec<&&Story> = frames
        .iter()
        .filter(|story| match story.left {
            Left::Discarded(_) => true,
            Left::Sent { network: Network::Arrived { .. }, .. } => true,
            _ if recovery(story).is_some() => true,
            _ => story.captured + ear < END,
        })
        .collect();
    let fates: String = judged
        .iter()
        .map(|story| match network(story) {
            Some(Network::Arrived { at, playout }) if at <= playout => '.',
            Some(Network::Arrived { .. }) => 'l',
            _ if recovery(story).is_some() => '.',
            _ => 'm',
        })
        .collect();
    let count = |letter| fates.matches(letter).count();
    row.late_packets = Some(count('l') as u64);
    row.missing_packets = Some(count('m') as u64);
    let found = frames.iter().filter(|story| recovery(story).is_some());
    row.recovered_packets = Some(found.count() as u64);
    let bad = count('l') + count('m');
    row.loss_ratio = (!judged.is_empty()).then(|| bad as f64 / judged.len() as f64);
    (row.concealed_ratio, row.paused_s) = (row.loss_ratio, Some(0.0));
    let share = |letter| (!judged.is_empty()).then(|| count(letter) as f64 / judged.len() as f64);
    (row.unheard_lost_ratio, row.unheard_late_ratio) = (share('m'), share('l'));
    row.unheard_paused_ratio = row.loss_ratio.map(|_| 0.0);
    let runs: Vec<&str> = fates.split('.').filter(|run| !run.is_empty()).collect();
    row.burst_ratio = (!runs.is_empty()).then(|| {
        let mean = runs.iter().map(|run| run.len()).sum::<usize>() as f64 / runs.len() as f64;
        mean * (1.0 - bad as f64 / judged.len() as f64)
    });
    let captures: Vec<u64> = judged.iter().map(|story| story.captured).collect();
    let length = |at: usize| {
        let next = captures.get(at + 1).map(|next| next - captures[at]);
        next.filter(|step| *step <= 2 * FRAME).unwrap_or(FRAME)
    };
    let lost: Vec<usize> = fates.match_indices(['l', 'm']).map(|(at, _)| at).collect();
    // Of every two frames between which all are lost.
    let longest = lost.iter().flat_map(|a| lost.iter().map(move |b| *a..=*b)).map(|run| {
        let whole = !run.is_empty() && !fates[run.clone()].contains('.');
        run.filter(|_| whole).map(length).sum::<u64>()
    });
    row.longest_gap_s = (!judged.is_empty()).then(|| longest.max().unwrap_or(0) as f64 / 1e9);
    row.mouth_to_ear_p50_s = quantile(&ears, 0.5);
    let sum: u64 = ears.iter().sum();
    row.mouth_to_ear_mean_s = (!ears.is_empty()).then(|| sum as f64 / ears.len() as f64 / 1e9);
    row.mouth_to_ear_max_s = ears.last().map(|nanos| *nanos as f64 / 1e9);
}

/// RFC 3550 §6.4.1 in floating point: J += (|D| − J) / 16 over arrivals in order.
fn jitter(stories: &[Story], kind: Kind, window: &Window) -> Option<f64> {
    let frames = stories.iter().filter(|story| !story.is_control);
    let mut arrivals: Vec<(u64, f64, bool)> = frames
        .filter_map(|story| {
            let Left::Sent { at: sent, network: Network::Arrived { at, .. }, .. } = story.left
            else {
                return None;
            };
            Some(match kind {
                Kind::Voice => {
                    (at, at as f64 - story.captured as f64, window.holds(story.captured))
                }
                _ => (at, (at - sent) as f64, window.holds(sent)),
            })
        })
        .collect();
    arrivals.sort_by_key(|arrival| arrival.0);
    let (mut estimate, mut sum, mut count) = (0.0, 0.0, 0);
    for pair in arrivals.windows(2) {
        estimate += ((pair[1].1 - pair[0].1).abs() - estimate) / 16.0;
        if pair[1].2 {
            sum += estimate;
            count += 1;
        }
    }
    (count > 0).then(|| sum / f64::from(count) / 1e9)
}

/// Compares every number; times to a nanosecond, for the estimator rounds to one.
fn same(ours: &FlowSummary, theirs: &FlowSummary) -> Result<(), TestCaseError> {
    let counts = |row: &FlowSummary| FlowSummary {
        name: String::new(),
        transport: String::new(),
        source: String::new(),
        from: String::new(),
        to: String::new(),
        delay_mean_s: None,
        jitter_s: None,
        loss_ratio: None,
        concealed_ratio: None,
        mouth_to_ear_mean_s: None,
        burst_ratio: None,
        ..row.clone()
    };
    prop_assert_eq!(counts(ours), counts(theirs));
    prop_assert!(near(ours.delay_mean_s, theirs.delay_mean_s, 1e-12));
    prop_assert!(near(ours.loss_ratio, theirs.loss_ratio, 1e-12));
    prop_assert!(near(ours.concealed_ratio, theirs.concealed_ratio, 1e-12));
    prop_assert!(near(ours.mouth_to_ear_mean_s, theirs.mouth_to_ear_mean_s, 1e-12));
    prop_assert!(near(ours.burst_ratio, theirs.burst_ratio, 1e-12));
    prop_assert!(near(ours.jitter_s, theirs.jitter_s, 1e-9), "{:?} {:?}", ours, theirs);
    Ok(())
}

/// One direction's bins, from the definitions.
fn same_series(
    recording: &Recording,
    name: &str,
    stories: &[Story],
    kind: Kind,
    bin: u64,
) -> Result<(), TestCaseError> {
    let table = recording.table("series").unwrap();
    let bins = END.div_ceil(bin * 1_000_000);
    let offset = texts(&table, "flow").iter().position(|flow| flow.as_deref() == Some(name));
    let all = packets(stories, kind);
    for index in 0..bins {
        let row = offset.unwrap() + index as usize;
        let from = index * bin * 1_000_000;
        let to = (from + bin * 1_000_000).min(END);
        let here = |at: u64| from <= at && (at < to || index == bins - 1);
        let arrived = |packet: &(u64, u32, Network)| match packet.2 {
            Network::Arrived { at, .. } if here(at) => Some(at - packet.0),
            _ => None,
        };
        let made = stories.iter().filter(|story| !story.is_control && here(story.made)).count();
        let lost =
            |packet: &&(u64, u32, Network)| matches!(packet.2, Network::Lost(at) if here(at));
        let late = |packet: &&(u64, u32, Network)| arrived(packet).is_some() && is_late(&packet.2);
        let count = |column: &str| counts(&table, column)[row];
        let delays: Vec<u64> = all.iter().filter_map(arrived).collect();
        prop_assert_eq!(floats(&table, "time_s")[row], Some(to as f64 / 1e9));
        prop_assert_eq!(count("generated_packets"), Some(made as i64));
        let made = stories.iter().filter(|story| !story.is_control && here(story.made));
        let bytes: i64 = made.map(|story| i64::from(story.bytes)).sum();
        prop_assert_eq!(count("generated_bytes"), Some(bytes));
        let left = |story: &&Story| matches!(story.left, Left::Discarded(at) if here(at));
        let discarded = stories.iter().filter(left).count();
        prop_assert_eq!(count("discarded_packets"), Some(discarded as i64));
        let sent = all.iter().filter(|packet| here(packet.0));
        prop_assert_eq!(count("sent_packets"), Some(sent.clone().count() as i64));
        prop_assert_eq!(count("sent_bytes"), Some(sent.map(|packet| i64::from(packet.1)).sum()));
        prop_assert_eq!(count("received_packets"), Some(delays.len() as i64));
        let bytes = all.iter().filter(|packet| arrived(packet).is_some()).map(|packet| packet.1);
        prop_assert_eq!(count("received_bytes"), Some(bytes.clone().map(i64::from).sum()));
        let overhead = match kind {
            Kind::Voice => 40,
            Kind::Datagrams => 28,
            Kind::Segments => 52,
        };
        let bits: f64 = bytes.map(|bytes| f64::from(bytes - overhead) * 8.0).sum();
        let goodput = floats(&table, "goodput_bps")[row];
        prop_assert!(near(goodput, Some(bits / ((to - from) as f64 / 1e9)), 1e-6));
        prop_assert_eq!(count("lost_packets"), Some(all.iter().filter(lost).count() as i64));
        let late = (kind == Kind::Voice).then(|| all.iter().filter(late).count() as i64);
        prop_assert_eq!(count("late_packets"), late);
        let most = delays.iter().max().map(|nanos| *nanos as f64 / 1e9);
        prop_assert_eq!(floats(&table, "delay_max_s")[row], most);
        let mean = delays.iter().sum::<u64>() as f64 / 1e9 / delays.len() as f64;
        let mean = (!delays.is_empty()).then_some(mean);
        prop_assert!(near(floats(&table, "delay_mean_s")[row], mean, 1e-12));
    }
    Ok(())
}

/// The words of the `frames` table, from the definitions.
fn fates(stories: &[Story]) -> Vec<Option<String>> {
    let frames = stories.iter().filter(|story| !story.is_control);
    let word = |story: &Story| match story.left {
        _ if recovery(story).is_some() => "recovered",
        Left::Queued => "queued",
        Left::Discarded(_) => "discarded",
        Left::Sent { network: Network::Travelling, .. } => "in_flight",
        Left::Sent { network: Network::Lost(_), .. } => "lost",
        Left::Sent { network, .. } if is_late(&network) => "late",
        Left::Sent { .. } => "played",
    };
    frames.map(|story| Some(word(story).to_owned())).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, ..ProptestConfig::default() })]
    #[test]
    fn every_number_is_what_its_definition_says(
        plans in prop::collection::vec(steps(), 4),
        from in 0_u64..3000,
        to in 0_u64..=4000,
        bin in 300_u64..1700,
        link_lag in 0_u64..1_000_000_000,
    ) {
        let plan = three_flows(from, to, bin);
        let window = Window { from: plan.from.as_nanos(), to: plan.to.as_nanos() };
        let all: Vec<Vec<Story>> = SPEAKERS
            .iter()
            .zip(&plans)
            .map(|((_, _, kind), steps)| stories(steps, KINDS[*kind]))
            .collect();
        let mut told: Vec<(u64, Told)> = SPEAKERS
            .iter()
            .zip(&all)
            .flat_map(|((peer, _, kind), stories)| script(*peer, KINDS[*kind], stories, link_lag))
            .collect();
        told.sort_by_key(|(heard, _)| *heard);
        let told: Vec<Told> = told.into_iter().map(|(_, told)| told).collect();

        let mut stats = Stats::new(&plan);
        tell(&told, &mut stats);
        let mut recorder = Recorder::new(plan.clone(), Options::default());
        tell(&told, &mut recorder);
        let recording = recorder.finish().unwrap();
        prop_assert_eq!(recording.conservation(), Ok(()));

        let streamed = stats.finish(&plan);
        let voices: Vec<_> = fates(&all[0]).into_iter().chain(fates(&all[1])).collect();
        prop_assert_eq!(texts(&recording.table("frames").unwrap(), "fate"), voices);
        for (row, ((_, name, kind), stories)) in SPEAKERS.iter().zip(&all).enumerate() {
            let expected = account(stories, KINDS[*kind], &window);
            prop_assert_eq!(&recording.flows[row].name, name);
            same(&recording.flows[row], &expected)?;
            let unknown = FlowSummary {
                delay_p50_s: None,
                delay_p95_s: None,
                delay_p99_s: None,
                mouth_to_ear_p50_s: None,
                mouth_to_ear_mean_s: None,
                ..expected
            };
            same(&streamed[row], &unknown)?;
            same_series(&recording, name, stories, KINDS[*kind], bin)?;
        }
    }
}
