//! Makes one run of the logs of both ends: the times of the server are converted to the client's, every packet
//! that was sent is found among those received or lost, and the recorder takes the notes in order of time.
//!
//! Without the server's log (the control connection was lost), what the server sent is known from what came:
//! every sealed datagram has its number and time of departure, and gaps in the numbers are losses.

use std::collections::{BTreeMap, BTreeSet};
use std::io;

use serde_json::{Value, json};
use talkspurt_experiment::{Finished, layout, scores};
use talkspurt_proto::body::{Body, Layers};
use talkspurt_proto::gauge::Gauge;
use talkspurt_proto::packet::{BodyId, Ecn, IpVersion, Packet};
use talkspurt_proto::probe::{DropReason, Note, Place, Playout, Probe as _};
use talkspurt_proto::time::{Duration, Instant};
use talkspurt_record::{Layout, Options, Recorder, RouteInfo, Tables};
use talkspurt_scenario::Point;

use crate::Failure;
use crate::budget::Budget;
use crate::clocks::{Point as Difference, Relation, Unrelated};
use crate::direct;
use crate::end_report::{EndReport, StreamEnd};
use crate::notes::{EVENTS, RX_ERRORS, Row, What};
use crate::plan::{FlowPlan, Plan};
use crate::plausible::{Order, sift};
use crate::seal;

/// What one end knows.
#[derive(Clone)]
pub(crate) struct End {
    pub(crate) rows: Vec<Row>,
    pub(crate) ended: EndReport,
}

/// So long nothing comes at the end of a measurement whose path has stopped to carry packets: ten questions for
/// its clock and as many answers are lost.
const SILENCE: Duration = Duration::from_secs(2);

impl End {
    /// When the last datagram came, if that was long before the end.
    fn silent_from(&self, plan: &Plan) -> Option<u64> {
        let over_udp = |peer: u16| {
            plan.flows.get(usize::from(peer / 2)).is_some_and(|flow| !flow.transport.is_stream())
        };
        let came = self.rows.iter().filter(|row| match row.what {
            What::Heard { .. } => true,
            What::Received { .. } => over_udp(row.peer),
            _ => false,
        });
        let last = came.map(|row| row.at).max().unwrap_or(0);
        (self.ended.at >= last.saturating_add(SILENCE.as_nanos())).then_some(last)
    }
}

/// A run of a measurement.
pub(crate) struct Merged {
    /// The tables.
    pub(crate) finished: Finished,
    /// What no table has.
    pub(crate) facts: Value,
    /// What one end noted and the other did not.
    pub(crate) contradiction: Option<String>,
}

/// Results of a measurement from what its ends know.
pub(crate) fn merge(
    plan: &Plan,
    point: &Point,
    client: End,
    server: Option<End>,
) -> Result<Merged, Failure> {
    let round_trips = round_trips(&client.rows, server.as_ref());
    let least = quantile(&round_trips, 0.0);
    let relation = relate(&client.rows, server.as_ref().map(|end| &end.rows[..]), least);
    let clocks =
        relation.unwrap_or(Relation { offset_s: 0.0, bound_s: 0.0, drift: 0.0, found: false });
    let complete = server.is_some();
    let silent =
        [Some(&client), server.as_ref()].map(|end| end.and_then(|end| end.silent_from(plan)));
    let End { rows, mut ended } = client;
    // In a call, these are notes from the network.
    ended.at = ended.at.min(plan.end().as_nanos());
    let server_ended = server.as_ref().map(|end| end.ended.clone());
    let mut rows: Vec<Row> = rows.into_iter().map(|row| converted(row, None, &clocks)).collect();
    let theirs = server.into_iter().flat_map(|end| end.rows);
    rows.extend(theirs.map(|row| converted(row, Some(&clocks), &clocks)));
    let mut implausible = sift(plan, &mut rows);
    let packets = Packets::of(plan, &mut rows, complete);
    rows.sort_by_key(|row| packets.time(row));
    let mut recorder = Recording::new(plan, point, &ended);
    let mut order = Order::default();
    for row in &rows {
        if order.admits(row) {
            recorder.take(row, &packets);
        } else {
            implausible += 1;
        }
    }
    let known = relation.is_ok();
    let ends = [Some(&ended), server_ended.as_ref()];
    let streams = Streams { plan, ends };
    let facts = json!({
        "clock_offset_s": known.then_some(clocks.offset_s),
        "clock_offset_bound_s": known.then_some(clocks.bound_s),
        "clock_drift_ppm": (known && clocks.found).then_some(clocks.drift * 1e6),
        "clock_jump_s": match relation { Err(Unrelated::Jumped(by)) => Some(by), _ => None },
        "rtt_min_s": least,
        "rtt_p50_s": quantile(&round_trips, 0.5),
        "rtt_p95_s": quantile(&round_trips, 0.95),
        "rtt_max_s": quantile(&round_trips, 1.0),
        "rtt_samples": round_trips.len(),
        "overhead_bytes": seal::OVERHEAD,
        "complete": complete,
        "duration_s": Duration::from_nanos(ended.at).as_secs_f64(),
        "flows": packets.facts(&streams),
        "ends": {
            "client": end_facts(&ended, silent[0]),
            "server": server_ended.as_ref().map(|ended| end_facts(ended, silent[1])),
        },
    });
    let mut finished = recorder.finish(point, known)?;
    for flow in &mut finished.recording.flows {
        if let Some(name) = streams.transport(&flow.name).or_else(|| direct::name(plan, &flow.name))
        {
            flow.transport = name;
        }
    }
    let contradiction = match implausible {
        0 => finished.recording.conservation().err(),
        some => Some(format!("{some} notes cannot be true")),
    };
    let contradiction =
        contradiction.map(|why| format!("the notes of both ends do not agree: {why}"));
    Ok(Merged { finished, facts, contradiction })
}

/// The streams of flows over TCP.
struct Streams<'a> {
    plan: &'a Plan,
    /// The client, and the server if it is known.
    ends: [Option<&'a EndReport>; 2],
}

impl Streams<'_> {
    /// The flow over TCP of a direction, and what its sender knows of its stream.
    fn of(&self, direction: &str) -> Option<(&FlowPlan, Option<&StreamEnd>)> {
        let flows = self.plan.flows.iter().enumerate();
        let found = flows.filter(|(_, flow)| flow.transport.is_stream()).find_map(|(at, flow)| {
            match direction.strip_prefix(&flow.name) {
                Some("") => Some((at, flow, self.plan.client_opens(at))),
                Some(".reverse") => Some((at, flow, !self.plan.client_opens(at))),
                _ => None,
            }
        });
        let (at, flow, of_client) = found?;
        let end = self.ends[usize::from(!of_client)];
        let mut known = end.into_iter().flat_map(|ended| &ended.streams);
        Some((flow, known.find(|stream| usize::from(stream.flow) == at)))
    }

    /// The name in tables of the transport of a direction over TCP, which is that of its sender.
    fn transport(&self, direction: &str) -> Option<String> {
        let (flow, end) = self.of(direction)?;
        Some(end.map_or_else(|| flow.transport.name(), |end| format!("tcp-{}", end.controller)))
    }

    /// Segments with data of a direction over TCP, as its sender's kernel counts them.
    fn facts(&self, direction: &str) -> Value {
        let Some((sent, again)) = self.of(direction).and_then(|(_, end)| end?.segments) else {
            return Value::Null;
        };
        json!({"segments": sent, "retransmitted_segments": again})
    }
}

fn end_facts(ended: &EndReport, silent_from: Option<u64>) -> Value {
    json!({
        "silent_from_s": silent_from.map(|at| Duration::from_nanos(at).as_secs_f64()),
        "ended_s": Duration::from_nanos(ended.at).as_secs_f64(),
        "ended_early": ended.early,
        "policed_packets": ended.policed_packets,
        "unsent_packets": ended.unsent_packets,
        "too_long_packets": ended.too_long.map_or(0, |(packets, _)| packets),
        "route_mtu_bytes": ended.too_long.and_then(|(_, mtu)| mtu),
        "refused_datagrams": ended.refused_datagrams,
        "overrun_datagrams": ended.overrun_datagrams,
    })
}

/// The relation of the clocks, from every datagram of both directions.
fn relate(
    client: &[Row],
    server: Option<&[Row]>,
    round_trip_s: Option<f64>,
) -> Result<Relation, Unrelated> {
    let (mut to, mut from) = (Vec::new(), Vec::new());
    for (rows, of_client) in [(client, true), (server.unwrap_or_default(), false)] {
        for row in rows {
            let (left, came, came_here) = match row.what {
                What::Received { sent, .. } | What::Heard { sent } => (sent, row.at, true),
                What::Answered { asked, came } => (asked, came, false),
                _ => continue,
            };
            // `x` is when it left or reached the client.
            let (way, x) = if came_here == of_client { (&mut from, came) } else { (&mut to, left) };
            let y = (i128::from(came) - i128::from(left)) as f64 / 1e9;
            way.push(Difference { x: x as f64 / 1e9, y });
        }
    }
    Relation::of(&to, &from, round_trip_s.unwrap_or(0.0))
}

fn round_trips(client: &[Row], server: Option<&End>) -> Vec<u64> {
    let theirs = server.into_iter().flat_map(|end| &end.rows);
    let trips = client.iter().chain(theirs).filter_map(|row| match row.what {
        What::RoundTrip { nanos } => Some(nanos),
        _ => None,
    });
    let mut trips: Vec<_> = trips.collect();
    trips.sort_unstable();
    trips
}

/// The nearest rank (RFC 2330 §11.3).
fn quantile(sorted: &[u64], share: f64) -> Option<f64> {
    let rank = (share * sorted.len() as f64).ceil().max(1.0) as usize;
    sorted.get(rank - 1).map(|nanos| Duration::from_nanos(*nanos).as_secs_f64())
}

/// A row with all times by the client's clock. Departures in `Received` are by the other end's clock.
fn converted(row: Row, own: Option<&Relation>, clocks: &Relation) -> Row {
    let ours = |at: u64| own.map_or(at, |clocks| clocks.ours(at));
    let what = match row.what {
        What::Generated { index, bytes, captured } => {
            What::Generated { index, bytes, captured: ours(captured) }
        }
        What::Played { index, at } => What::Played { index, at: ours(at) },
        What::Recovered { index, at } => What::Recovered { index, at: ours(at) },
        What::Late { index, at } => What::Late { index, at: ours(at) },
        What::Received { number, bytes, sent, payload } => {
            let sent = if own.is_some() { sent } else { clocks.ours(sent) };
            What::Received { number, bytes, sent, payload }
        }
        other => other,
    };
    Row { at: ours(row.at), what, ..row }
}

/// The packets of all directions, by sending peer and number.
struct Packets {
    /// Departures.
    sent: BTreeMap<(u16, u32), u64>,
    /// Packets that came.
    received: BTreeSet<(u16, u32)>,
    /// By sending peer: when the last packet left, and when the last one came.
    last: BTreeMap<u16, [u64; 2]>,
    /// By sending peer: packets that came after one with a higher number (RFC 4737 §3.3).
    reordered: BTreeMap<u16, u64>,
    /// By sending peer: packets that did not come and have a lower number than one that came.
    missing: BTreeMap<u16, u64>,
    /// Whether losses of a peer's packets are known.
    judged: Vec<bool>,
}

impl Packets {
    /// Also adds rows for departures that are not in a log, but seen from arrivals and from gaps before them.
    fn of(plan: &Plan, rows: &mut Vec<Row>, complete: bool) -> Self {
        let (mut sent, mut came) = (BTreeMap::new(), Vec::new());
        let mut last = BTreeMap::<u16, [u64; 2]>::new();
        for row in rows.iter() {
            match row.what {
                What::Sent { number, .. } => {
                    sent.insert((row.peer, number), row.at);
                    let [left, _] = last.entry(row.peer).or_default();
                    *left = row.at.max(*left);
                }
                What::Received { number, bytes, sent, payload } => {
                    let [_, arrived] = last.entry(row.peer ^ 1).or_default();
                    *arrived = row.at.max(*arrived);
                    came.push((row.at, row.peer ^ 1, number, (bytes, payload), sent));
                }
                _ => {}
            }
        }
        came.sort_unstable();
        let (mut received, mut reordered) = (BTreeSet::new(), BTreeMap::new());
        let mut next = BTreeMap::<u16, u32>::new();
        // One wrong number does not fill the memory.
        let (mut inferred, mut gaps) = (BTreeMap::new(), Budget::of(plan, rows.len()).packets);
        for (_, peer, number, length, left) in came {
            if !received.insert((peer, number)) {
                continue;
            }
            let highest = next.entry(peer).or_default();
            if number < *highest {
                *reordered.entry(peer).or_default() += 1;
            }
            if !complete {
                // Numbers that were skipped left about then.
                for missing in (*highest..number).take(gaps) {
                    inferred.insert((peer, missing), (left, length));
                    gaps -= 1;
                }
                inferred.insert((peer, number), (left, length));
            }
            *highest = (*highest).max(number.saturating_add(1));
        }
        let missing = next.iter().map(|(peer, next)| {
            let came = received.range((*peer, 0)..=(*peer, u32::MAX)).count() as u64;
            (*peer, u64::from(*next) - came.min((*next).into()))
        });
        let missing = missing.collect();
        inferred.retain(|key, _| !sent.contains_key(key));
        for ((peer, number), (at, (bytes, has_payload))) in inferred {
            sent.insert((peer, number), at);
            // Its layers are not known: all above IP counts as payload.
            let header = if plan.ipv6 { IpVersion::V6 } else { IpVersion::V4 }.header_bytes();
            let above = u32::saturating_sub(bytes, header);
            let payload = if has_payload { above } else { 0 };
            let what = What::Sent { number, bytes, transport: 0, media: 0, payload };
            rows.push(Row { at, peer, what });
        }
        // The client alone does not know what of its own packets came. TCP loses nothing: what has not come is
        // on the way, or in the sender's socket.
        let judged = (0..2 * plan.flows.len()).map(|peer| {
            let of_client = peer.is_multiple_of(2) == plan.client_opens(peer / 2);
            (complete || !of_client) && !plan.flows[peer / 2].transport.is_stream()
        });
        Self { sent, received, last, reordered, missing, judged: judged.collect() }
    }

    /// When a row is to be taken, and its rank at that time: no packet comes before it left.
    fn time(&self, row: &Row) -> (u64, u8) {
        match row.what {
            What::Received { number, .. } => {
                let left = self.sent.get(&(row.peer ^ 1, number)).copied().unwrap_or(0);
                (row.at.max(left), 1)
            }
            What::Sent { .. } | What::Generated { .. } => (row.at, 0),
            // After the packet that caused it.
            _ => (row.at, 2),
        }
    }

    fn facts(&self, streams: &Streams<'_>) -> Value {
        let Streams { plan, ends } = *streams;
        let complete = ends[1].is_some();
        let mut all = serde_json::Map::new();
        for (number, flow) in plan.flows.iter().enumerate() {
            let stopped: Vec<_> = ["client", "server"]
                .into_iter()
                .zip(ends)
                .flat_map(|(end, ended)| Some((end, ended?)))
                .flat_map(|(end, ended)| ended.tripped.iter().map(move |tripped| (end, tripped)))
                .filter(|(_, (of, ..))| usize::from(*of) == number)
                .map(|(end, (_, at, why))| {
                    let at_s = Duration::from_nanos(*at).as_secs_f64();
                    json!({"at_s": at_s, "end": end, "why": why})
                })
                .collect();
            let blocked = direct::blocked(plan, number, ends, |peer| {
                let of = (peer, 0)..=(peer, u32::MAX);
                let arrived = self.received.range(of.clone()).next().is_some();
                (self.sent.range(of).next().is_some(), arrived)
            });
            for side in 0..2 {
                let peer = (2 * number + side) as u16;
                let name = match side {
                    0 => flow.name.clone(),
                    _ => format!("{}.reverse", flow.name),
                };
                let [left, arrived] = self.last.get(&peer).copied().unwrap_or_default();
                let is_silent = flow.transport.is_stream()
                    && complete
                    && left >= arrived.saturating_add(SILENCE.as_nanos());
                all.insert(
                    name.clone(),
                    json!({
                        "reordered_packets": self.reordered.get(&peer).copied().unwrap_or(0),
                        // With the sender's notes, the tables say which packets were lost.
                        "missing_packets": self.missing.get(&peer).filter(|_| !complete),
                        "stopped": stopped,
                        "silent_from_s":
                            is_silent.then(|| Duration::from_nanos(arrived).as_secs_f64()),
                        "blocked": blocked,
                        "tcp": streams.facts(&name),
                    }),
                );
            }
        }
        Value::Object(all)
    }
}

/// The recorder of a measurement.
struct Recording {
    recorder: Recorder,
    layout: Layout,
    now: Instant,
    next_sample: Instant,
    version: IpVersion,
    events: u64,
    hops: u64,
}

impl Recording {
    fn new(plan: &Plan, point: &Point, ended: &EndReport) -> Self {
        let mut layout = layout(&point.scenario, &point.network);
        layout.links.clear();
        layout.routes = (0..2 * plan.flows.len())
            .map(|peer| RouteInfo { flow: peer as u32 / 2, side: (peer % 2) as u8 })
            .collect();
        let end = Instant::from_nanos(ended.at);
        layout.duration = Duration::from_nanos(ended.at.max(1));
        layout.to = layout.to.min(end).max(layout.from);
        let options = Options { gauges: true, sojourn: false };
        let recorder = Recorder::keeping(layout.clone(), options, Tables::memory());
        let version = if plan.ipv6 { IpVersion::V6 } else { IpVersion::V4 };
        let next_sample = Instant::ZERO;
        Self { recorder, layout, now: Instant::ZERO, next_sample, version, events: 0, hops: 0 }
    }

    fn take(&mut self, row: &Row, packets: &Packets) {
        let (at, _) = packets.time(row);
        // Notes of the other end may be from before our time, or after it.
        let end = Instant::ZERO + self.layout.duration;
        let now = Instant::from_nanos(at).max(self.now).min(end);
        self.now = now;
        while self.next_sample <= now {
            self.recorder.sample(self.next_sample, &[]);
            self.next_sample += self.layout.interval.max(Duration::from_millis(1));
        }
        self.events += 1;
        if usize::from(row.peer) >= 2 * self.layout.flows.len() {
            return;
        }
        let (peer, place) = (u32::from(row.peer), Place::Peer(row.peer.into()));
        let recorder = &mut self.recorder;
        let instant = Instant::from_nanos;
        let decided = |index, playout| Note::Decided { index, playout };
        let note = match row.what {
            What::Sent { number, bytes, transport, media, payload } => {
                let packet = label(self.version, peer, number, bytes, now);
                let (transport, media) = (transport.into(), media.into());
                let layers = Layers { transport, media, payload };
                recorder.record_sent(peer, &packet, layers, false);
                let key = (row.peer, number);
                if !packets.received.contains(&key) && packets.judged[usize::from(row.peer)] {
                    let note = Note::Dropped { packet: &packet, why: DropReason::Medium };
                    recorder.record(now, Place::Link(0), &note);
                }
                return;
            }
            What::Received { number, bytes, .. } => {
                self.hops += 1;
                let sender = row.peer ^ 1;
                let left = packets.sent.get(&(sender, number)).copied().unwrap_or(at);
                let packet = label(self.version, sender.into(), number, bytes, instant(left));
                let note = Note::Received { packet: &packet, body: &Body::default() };
                recorder.record(now, place, &note);
                return;
            }
            What::Generated { index, bytes, captured } => {
                Note::Generated { index, bytes, captured: instant(captured) }
            }
            What::Picture { is_key } => Note::Picture { is_key },
            What::Repair { bytes, is_padding } => Note::Repair { bytes, is_padding },
            What::HandedOver { index } => Note::HandedOver { index },
            What::Discarded { index } => Note::Discarded { index },
            What::Delivered { index, bytes } => Note::Delivered { index, bytes },
            What::Played { index, at } => decided(index, Playout::Played(instant(at))),
            What::Recovered { index, at } => decided(index, Playout::Recovered(instant(at))),
            What::Late { index, at } => decided(index, Playout::Late(instant(at))),
            What::Paused { index, nanos } => {
                Note::Paused { index, length: Duration::from_nanos(nanos) }
            }
            What::InOrder { nanos } => Note::InOrder { waited: Duration::from_nanos(nanos) },
            What::Encoding { rung } => Note::Encoding(rung),
            What::Rejected { why } => match RX_ERRORS.get(usize::from(why)) {
                Some(why) => Note::RxError(*why),
                None => return,
            },
            What::Event { event } => match EVENTS.get(usize::from(event)) {
                Some(event) => Note::Event(*event),
                None => return,
            },
            What::Gauge { gauge: number, value } => match Gauge::from_number(number) {
                Some(gauge) => Note::Gauge { gauge, value },
                None => return,
            },
            What::Heard { .. } | What::Answered { .. } | What::RoundTrip { .. } => return,
        };
        recorder.record(now, place, &note);
    }

    /// The results; without a known relation of the clocks, no one-way delay is given.
    fn finish(self, point: &Point, known: bool) -> Result<Finished, Failure> {
        let Self { mut recorder, layout, events, hops, next_sample, .. } = self;
        let end = Instant::ZERO + layout.duration;
        let mut next = next_sample;
        while next < end {
            recorder.sample(next, &[]);
            next += layout.interval.max(Duration::from_millis(1));
        }
        recorder.sample(end, &[]);
        let failed =
            |error: io::Error| Failure::System(format!("a temporary file failed: {error}"));
        let mut recording = recorder.finish().map_err(failed)?;
        if !known {
            for flow in &mut recording.flows {
                for delay in [
                    &mut flow.delay_min_s,
                    &mut flow.delay_mean_s,
                    &mut flow.delay_p50_s,
                    &mut flow.delay_p95_s,
                    &mut flow.delay_p99_s,
                    &mut flow.delay_max_s,
                    &mut flow.mouth_to_ear_p50_s,
                    &mut flow.mouth_to_ear_mean_s,
                    &mut flow.mouth_to_ear_max_s,
                ] {
                    *delay = None;
                }
            }
        }
        let qualities: Vec<_> = scores(&point.scenario, &recording.flows).collect();
        for (flow, quality) in recording.flows.iter_mut().zip(qualities) {
            flow.quality = quality;
        }
        Ok(Finished {
            digest: String::new(),
            hops,
            events,
            cpu_s: 0.0,
            duration_s: layout.duration.as_secs_f64(),
            recording,
            audio: Vec::new(),
        })
    }
}

/// The label of a packet whose route is its sender.
fn label(version: IpVersion, peer: u32, number: u32, ip_bytes: u32, sent: Instant) -> Packet {
    Packet {
        body: BodyId(0),
        ip_bytes,
        route: peer,
        flow: peer / 2,
        hop: 0,
        ecn: Ecn::NotEct,
        dscp: 0,
        version,
        number,
        sent,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Traffic;
    use crate::transport::Transport;

    /// In a call, the answerer takes the caller's word for when it ended.
    #[test]
    fn a_wrong_end_makes_no_long_run() {
        let invitation = crate::invitation::Invitation::example(Transport::known("udp"), &["pcmu"]);
        let plan = invitation.plan(None);
        let point = plan.point().expect("a call");
        let end = |at| End { rows: Vec::new(), ended: EndReport { at, ..EndReport::default() } };
        let merged = merge(&plan, &point, end(u64::MAX), Some(end(1))).expect("no file fails");
        let end = plan.end().as_nanos();
        assert_eq!(merged.finished.duration_s, Duration::from_nanos(end).as_secs_f64());
        assert_eq!(merged.contradiction, None);
    }

    /// Without the server's notes, a number that cannot be makes no four thousand million lost packets.
    #[test]
    fn one_wrong_number_does_not_fill_the_memory() {
        let flow = FlowPlan {
            name: "flow".to_owned(),
            transport: Transport::known("udp"),
            up: None,
            down: Some(Traffic::Cbr { rate: 64_000, packet: 160 }),
        };
        let duration = Duration::from_secs(1).as_nanos();
        let plan = Plan { seed: 1, duration, mtu: 1500, ipv6: false, flows: vec![flow] };
        let came = [0, 1, 4, u32::MAX].map(|number| Row {
            at: 1000 + u64::from(number),
            peer: 1,
            what: What::Received { number, bytes: 238, sent: 1, payload: true },
        });
        let mut rows = came[..3].to_vec();
        let packets = Packets::of(&plan, &mut rows, false);
        assert_eq!((packets.sent.len(), packets.received.len()), (5, 3));
        let mut rows = came.to_vec();
        let most = Budget::of(&plan, rows.len()).rows + came.len();
        assert!(Packets::of(&plan, &mut rows, false).sent.len() <= most);
        let mut rows = came.to_vec();
        assert!(Packets::of(&plan, &mut rows, true).sent.is_empty(), "the server's notes say it");
    }
}
