//! The probe of `talkspurt run`: the accounts of [`Stats`] and everything that needs memory.

use std::collections::BTreeMap;
use std::io;

use talkspurt_proto::body::{Body, Layers};
use talkspurt_proto::endpoint::Event;
use talkspurt_proto::packet::Packet;
use talkspurt_proto::prefetch::prefetch;
use talkspurt_proto::probe::{
    Gauge, LinkCounters, Note, Place, Playout, Probe, RxError, StackNote, Topic, Units,
};
use talkspurt_proto::time::{Duration, Instant};

use crate::columns::Moment;
use crate::gauges::Gauges;
use crate::layout::{FlowInfo, Layout, SideInfo};
use crate::links::Links;
use crate::quantiles::Delays;
use crate::recording::{EventRow, FrameTimes, Recording};
use crate::series::Series;
use crate::sojourn::Sojourns;
use crate::spool::Beyond;
use crate::stats::{Fact, Stats, What};
use crate::tables::Tables;

/// What a [`Recorder`] keeps besides the summary, the series, frames and events.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    /// A row per change of a gauge: several for every TCP packet.
    pub gauges: bool,
    /// Queueing times at links: 8 bytes per packet and link.
    pub sojourn: bool,
}

/// Keeps the data for tables: the delays of received packets, 32 bytes per voice frame, the series, and the
/// [`Options`].
///
/// Delays and, with a folder, gauges and series are in memory up to a limit, and then in files.
#[derive(Debug)]
pub struct Recorder {
    layout: Layout,
    stats: Stats,
    series: Option<Series>,
    links: Links,
    sojourns: Option<Sojourns>,
    logs: Vec<Log>,
    /// Network delays of the window's packets, by sending peer.
    delays: Delays,
    /// Mouth-to-ear delays of the window's frames.
    mouth_to_ear: Delays,
    gauges: Option<Gauges>,
    /// If their table is kept.
    events: Option<Vec<EventRow>>,
    tables: Tables,
}

/// Data kept of one direction of a flow.
#[derive(Debug, Default)]
pub(crate) struct Log {
    /// Whether the peer sends voice.
    voice: bool,
    /// Whether the table of frames is kept.
    kept: bool,
    /// The connection of this peer failed.
    broken: bool,
    pub(crate) frames: Vec<FrameTimes>,
    /// Frames before which playout paused, and for how long.
    pub(crate) pauses: BTreeMap<u32, Duration>,
    /// When the first frame of voice was ready to be sent.
    ready: Option<Instant>,
    /// When the connection of this peer opened.
    connected: Option<Instant>,
}

impl Recorder {
    /// An empty recorder for a run with this layout, which keeps all tables in memory.
    #[must_use]
    pub fn new(layout: Layout, options: Options) -> Self {
        Self::keeping(layout, options, Tables::memory())
    }

    /// An empty recorder for a run with this layout, which keeps these tables.
    #[must_use]
    pub fn keeping(layout: Layout, options: Options, tables: Tables) -> Self {
        let peers = 2 * layout.flows.len();
        let log = |side: &Option<SideInfo>| Log {
            voice: side.as_ref().is_some_and(|side| side.frame.is_some()),
            kept: tables.keeps("frames"),
            ..Log::default()
        };
        let spool = |table| tables.keeps(table).then(|| tables.beyond());
        let gauges = tables.keeps("gauges") && options.gauges;
        // Not tables: where there is no folder for them, they need not stay in memory.
        let beyond = match tables.beyond() {
            Beyond::Memory => Beyond::Temporary,
            folder => folder,
        };
        Self {
            stats: Stats::new(&layout),
            series: spool("series").map(|beyond| Series::new(&layout, beyond)),
            links: Links::new(&layout, spool("link_series")),
            sojourns: options.sojourn.then(|| Sojourns::new(&layout, beyond.clone())),
            logs: layout.flows.iter().flat_map(|flow| flow.sides.iter().map(log)).collect(),
            delays: Delays::new(peers, beyond.clone()),
            mouth_to_ear: Delays::new(peers, beyond),
            gauges: gauges.then(|| Gauges::new(&layout, tables.folder().cloned())),
            events: tables.keeps("events").then(Vec::new),
            tables,
            layout,
        }
    }

    /// Names a flow that the layout reserved for real hosts: its first packet follows.
    ///
    /// # Panics
    /// If the layout has no such flow.
    pub fn name_flow(&mut self, index: usize, flow: FlowInfo) {
        self.layout.flows[index] = flow;
    }

    /// From now on, the answering side of a named flow sends too.
    pub fn add_reverse(&mut self, index: usize) {
        self.layout.flows[index].sides[1] = Some(SideInfo::real());
    }

    /// Ends the run at this instant, earlier than planned; the last [`Recorder::sample`] follows.
    pub fn cut(&mut self, end: Instant) {
        self.layout.duration = end - Instant::ZERO;
        self.layout.to = self.layout.to.min(end);
        self.links.cut(&self.layout);
        if let Some(series) = &mut self.series {
            series.cut(&self.layout);
        }
    }

    /// Records the counters of every link, all standing at `now`, after all earlier notes. Call it at every
    /// multiple of the interval, at both ends of the measure window and at the end of the run; other or
    /// repeated calls are harmless.
    pub fn sample(&mut self, now: Instant, links: &[LinkCounters]) {
        self.links.sample(now, links);
        if let Some(series) = &mut self.series {
            series.settled(now);
        }
    }

    /// Records a packet that left a peer whose parsed form is not at hand, as with notes from another machine:
    /// its bytes by layer, and whether it is a part of a byte stream. Replaces [`Note::Sent`].
    pub fn record_sent(&mut self, peer: u32, packet: &Packet, layers: Layers, in_stream: bool) {
        if layers.payload > 0 {
            let fact = self.stats.sent(peer, packet, layers, in_stream);
            self.add(packet.sent, fact);
        } else {
            self.stats.control_sent(peer, packet, None);
        }
    }

    /// Whether a table could not be written, so that the run may stop early; [`Recording::store`] returns the
    /// error.
    #[must_use]
    pub fn failed(&self) -> bool {
        self.gauges.as_ref().is_some_and(Gauges::failed)
    }

    /// Closes every account.
    ///
    /// # Errors
    /// A temporary file cannot be read.
    pub fn finish(mut self) -> io::Result<Recording> {
        for flow in self.layout.flows.iter_mut().filter(|flow| flow.name.is_empty()) {
            flow.sides = [None, None];
        }
        let mut flows = self.stats.finish(&self.layout);
        let mut logs = self.logs;
        for (row, direction) in flows.iter_mut().zip(self.layout.directions()) {
            let peer = direction.peer;
            [row.delay_p50_s, row.delay_p95_s, row.delay_p99_s] =
                self.delays.quantiles_s(peer, [50, 95, 99])?;
            row.mouth_to_ear_mean_s = self.mouth_to_ear.mean_s(peer)?;
            [row.mouth_to_ear_p50_s] = self.mouth_to_ear.quantiles_s(peer, [50])?;
            row.handshake_wait_s = logs[peer].handshake_wait_s();
        }
        let mut links = self.links.summaries(&self.layout);
        if let Some(sojourns) = &mut self.sojourns {
            for (link, row) in links.iter_mut().enumerate() {
                [
                    row.sojourn_mean_s,
                    row.sojourn_p50_s,
                    row.sojourn_p95_s,
                    row.sojourn_p99_s,
                    row.sojourn_max_s,
                ] = sojourns.summary(link)?;
            }
        }
        let broken = |peer: usize| logs[peer].broken || logs[peer ^ 1].broken;
        let framed = || (0..logs.len()).filter(|_| self.tables.keeps("frames"));
        let fates = framed().map(|peer| self.stats.frame_fates(peer, broken(peer))).collect();
        let rungs = framed().map(|peer| self.stats.frame_rungs(peer)).collect();
        let mut series = self.series;
        if let Some(series) = &mut series {
            series.finish(&self.layout);
        }
        Ok(Recording {
            flows,
            links,
            series,
            link_samples: self.links,
            sojourns: self.sojourns,
            pauses: logs.iter_mut().map(|log| std::mem::take(&mut log.pauses)).collect(),
            frames: logs.into_iter().map(|log| log.frames).collect(),
            fates,
            rungs,
            videos: if self.tables.keeps("video_frames") {
                self.stats.into_videos()
            } else {
                Vec::new()
            },
            gauges: self.gauges.unwrap_or_else(|| Gauges::new(&self.layout, None)),
            events: self.events.unwrap_or_default(),
            stored: Vec::new(),
            tables: self.tables,
            layout: self.layout,
        })
    }

    /// Adds a note to all accounts. Inlined into a function for each frequent kind of note, in which only the
    /// code for this kind remains.
    #[inline(always)]
    fn take(&mut self, now: Instant, place: Place, note: &Note<'_>) {
        let fact = self.stats.take(now, place, note);
        self.add(now, fact);
    }

    #[inline(always)]
    fn add(&mut self, now: Instant, fact: Option<Fact>) {
        let Some(fact) = fact else { return };
        if let Some(series) = &mut self.series {
            series.add(now, &fact);
        }
        match fact.what {
            What::Received { delay, .. } => {
                if fact.inside {
                    self.delays.push(fact.peer, delay);
                }
                return;
            }
            What::Played { after, .. } if fact.inside => self.mouth_to_ear.push(fact.peer, after),
            What::Sent { .. }
            | What::Continued { .. }
            | What::Lost
            | What::Discarded
            | What::Encoding { .. } => return,
            _ => {}
        }
        let log = &mut self.logs[fact.peer];
        if log.voice {
            log.frame(now, fact.what);
        }
    }

    #[inline(never)]
    fn sent(&mut self, now: Instant, peer: u32, packet: &Packet, body: &Body) {
        self.take(now, Place::Peer(peer), &Note::Sent { packet, body });
    }

    #[inline(never)]
    fn received(&mut self, now: Instant, peer: u32, packet: &Packet, body: &Body) {
        self.take(now, Place::Peer(peer), &Note::Received { packet, body });
    }

    #[inline(never)]
    fn generated(&mut self, now: Instant, peer: u32, index: u32, bytes: u32, captured: Instant) {
        self.take(now, Place::Peer(peer), &Note::Generated { index, bytes, captured });
    }

    #[inline(never)]
    fn handed_over(&mut self, now: Instant, peer: u32, index: u32) {
        self.take(now, Place::Peer(peer), &Note::HandedOver { index });
    }

    /// Units of bulk data; false if they must be recorded one by one.
    #[inline(never)]
    fn units(&mut self, now: Instant, peer: u32, units: Units) -> bool {
        let counted = self.stats.units(peer, units);
        if let Some(series) = self.series.as_mut().filter(|_| counted) {
            series.add_units(now, peer as usize, units);
        }
        counted
    }

    #[inline(never)]
    fn delivered(&mut self, now: Instant, peer: u32, index: u32, bytes: u32) {
        self.take(now, Place::Peer(peer), &Note::Delivered { index, bytes });
    }

    #[inline(never)]
    fn decided(&mut self, now: Instant, peer: u32, index: u32, playout: Playout) {
        self.take(now, Place::Peer(peer), &Note::Decided { index, playout });
    }

    #[inline(never)]
    fn gauge(&mut self, now: Instant, peer: u32, gauge: Gauge, value: f64) {
        self.stats.gauge(peer, gauge, value);
        if let Some(gauges) = &mut self.gauges {
            gauges.add(now, peer, gauge, value);
        }
    }

    #[inline(never)]
    fn sojourn(&mut self, now: Instant, place: Place, note: &Note<'_>) {
        if let Some(sojourns) = &mut self.sojourns {
            sojourns.take(now, place, note);
        }
    }

    /// A note of a kind that is rare.
    #[inline(never)]
    fn other(&mut self, now: Instant, place: Place, note: &Note<'_>) {
        match (place, note) {
            (Place::Peer(peer), Note::Event(event)) => self.event(now, peer, *event),
            (Place::Peer(peer), Note::Encoding(rung)) => self.list(now, peer, encoding_name(*rung)),
            (Place::Peer(peer), Note::Paused { index, length }) => {
                let log = self.logs.get_mut(peer as usize ^ 1);
                if let Some(log) = log.filter(|log| log.kept) {
                    log.pauses.insert(*index, *length);
                }
            }
            (Place::Peer(peer), Note::RxError(rx_error)) => {
                self.list(now, peer, Some(rx_error_name(*rx_error)));
            }
            (Place::Peer(peer), Note::Stack(StackNote::Gauge { name, value })) => {
                if let Some(gauges) = &mut self.gauges {
                    gauges.add_named(now, peer, name, *value);
                }
            }
            _ => {}
        }
        self.take(now, place, note);
    }

    fn list(&mut self, at: Instant, peer: u32, event: Option<&'static str>) {
        if let Some(events) = &mut self.events {
            events.extend(event.map(|event| EventRow { at, peer, event }));
        }
    }

    fn event(&mut self, at: Instant, peer: u32, event: Event) {
        let Some(log) = self.logs.get_mut(peer as usize) else { return };
        if event == Event::Connected {
            log.connected.get_or_insert(at);
        }
        log.broken |= matches!(event, Event::Reset | Event::TimedOut | Event::Restarted);
        self.list(at, peer, event_name(event));
    }
}

impl Log {
    /// From the first frame to the opening of the connection, if both occurred.
    fn handshake_wait_s(&self) -> Option<f64> {
        Some(self.connected?.saturating_since(self.ready?).as_secs_f64())
    }

    /// Keeps the times of the frame, if their table is kept.
    fn frame(&mut self, now: Instant, what: What) {
        if matches!(what, What::Generated { .. }) {
            self.ready.get_or_insert(now);
        }
        if !self.kept {
            return;
        }
        match what {
            What::Generated { captured, .. } => {
                self.frames.push(FrameTimes {
                    captured: captured.into(),
                    handed_over: Moment::NEVER,
                    delivered: Moment::NEVER,
                    playout: Moment::NEVER,
                });
            }
            What::HandedOver { index } => self.frames[index as usize].handed_over = now.into(),
            What::Delivered { index, .. } => self.frames[index as usize].delivered = now.into(),
            What::Played { index, at, .. } | What::Late { index, at } => {
                self.frames[index as usize].playout = at.into();
            }
            What::Discarded
            | What::Sent { .. }
            | What::Received { .. }
            | What::Continued { .. }
            | What::Lost
            | What::Encoding { .. } => {}
        }
    }
}

impl Probe for Recorder {
    fn wants(&self, topic: Topic) -> bool {
        match topic {
            Topic::Hop => self.sojourns.is_some(),
            Topic::Gauge => self.gauges.is_some(),
            _ => true,
        }
    }

    /// Inlined: each place in the code that creates a note contains only the call for its kind.
    #[inline(always)]
    fn record(&mut self, now: Instant, place: Place, note: &Note<'_>) {
        match (place, note) {
            (Place::Peer(peer), Note::Sent { packet, body }) => self.sent(now, peer, packet, body),
            (Place::Peer(peer), Note::Received { packet, body }) => {
                self.received(now, peer, packet, body);
            }
            (Place::Peer(peer), Note::Generated { index, bytes, captured }) => {
                self.generated(now, peer, *index, *bytes, *captured);
            }
            (Place::Peer(peer), Note::HandedOver { index }) => self.handed_over(now, peer, *index),
            (Place::Peer(peer), Note::Delivered { index, bytes }) => {
                self.delivered(now, peer, *index, *bytes);
            }
            (Place::Peer(peer), Note::Decided { index, playout }) => {
                self.decided(now, peer, *index, *playout);
            }
            (Place::Peer(peer), Note::Gauge { gauge, value }) => {
                self.gauge(now, peer, *gauge, *value);
            }
            (Place::Link(_), Note::Enqueued { .. } | Note::Dequeued { .. }) => {
                self.sojourn(now, place, note);
            }
            (Place::Link(_), Note::Arrived { .. }) => {}
            _ => self.other(now, place, note),
        }
    }
    #[inline(always)]
    fn prefetch(&self, peer: u32, receives: bool) {
        let peer = peer ^ u32::from(receives);
        self.stats.prefetch(peer);
        if let Some(log) = self.logs.get(peer as usize) {
            prefetch(log, 2);
        }
    }
    #[inline(always)]
    fn record_units(&mut self, now: Instant, place: Place, units: Units) {
        if let Place::Peer(peer) = place
            && self.units(now, peer, units)
        {
            return;
        }
        for (generated, handed_over) in units.notes() {
            self.record(now, place, &generated);
            self.record(now, place, &handed_over);
        }
    }
}

/// Names for the first frame in a rung of the ladder, which has at most eight.
const ENCODINGS: [&str; 8] = [
    "encoding_0",
    "encoding_1",
    "encoding_2",
    "encoding_3",
    "encoding_4",
    "encoding_5",
    "encoding_6",
    "encoding_7",
];

/// The name of an event in the `events` table. Regained send capacity is omitted: it is not a connection
/// event and would outnumber them.
pub(crate) fn event_name(event: Event) -> Option<&'static str> {
    match event {
        Event::Connected => Some("connected"),
        Event::PeerClosed => Some("peer_closed"),
        Event::Closed => Some("closed"),
        Event::Reset => Some("reset"),
        Event::TimedOut => Some("timed_out"),
        Event::Restarted => Some("restarted"),
        Event::Writable | Event::TargetRate(_) => None,
    }
}

/// The name of an encoding in the `events` table.
pub(crate) fn encoding_name(rung: u8) -> Option<&'static str> {
    ENCODINGS.get(rung as usize).copied()
}

const fn rx_error_name(rx_error: RxError) -> &'static str {
    match rx_error {
        RxError::Malformed => "rejected_malformed",
        RxError::Checksum => "rejected_checksum",
        RxError::OutOfWindow => "rejected_out_of_window",
        RxError::BadAck => "rejected_bad_ack",
        RxError::OldTimestamp => "rejected_old_timestamp",
        RxError::Unexpected => "rejected_unexpected",
    }
}
