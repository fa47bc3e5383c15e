//! The probe of `talkspurt run`: the accounts of [`Stats`] and everything that needs memory.

use std::collections::BTreeMap;

use talkspurt_proto::endpoint::Event;
use talkspurt_proto::probe::{Gauge, LinkCounters, Note, Place, Probe, RxError, Topic};
use talkspurt_proto::time::{Duration, Instant};

use crate::columns::Moment;
use crate::layout::Layout;
use crate::links::Links;
use crate::recording::Recording;
use crate::series::Series;
use crate::sojourn::Sojourns;
use crate::stats::{Fact, Stats, What};

/// What a [`Recorder`] keeps besides the summary, the series, frames and events.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    /// A row per change of a gauge: 24 bytes each, several for every TCP packet.
    pub gauges: bool,
    /// Queueing times at links: 8 bytes per packet and link.
    pub sojourn: bool,
}

/// Keeps the data for tables: 8 bytes per received packet, 32 per voice frame, and the [`Options`].
#[derive(Debug)]
pub struct Recorder {
    layout: Layout,
    stats: Stats,
    series: Series,
    links: Links,
    sojourns: Option<Sojourns>,
    logs: Vec<Log>,
    options: Options,
    gauges: Vec<GaugeRow>,
    events: Vec<EventRow>,
}

/// Data kept of one direction of a flow.
#[derive(Debug, Default)]
pub(crate) struct Log {
    /// Network delays of the window's packets, nanoseconds.
    pub(crate) delays: Vec<u64>,
    /// Mouth-to-ear delays of the window's frames, nanoseconds.
    pub(crate) mouth_to_ear: Vec<u64>,
    pub(crate) frames: Vec<FrameTimes>,
    /// Frames before which playout paused, and for how long.
    pub(crate) pauses: BTreeMap<u32, Duration>,
    /// The last value of each gauge at this peer, as bits.
    gauges: [Option<u64>; GAUGES],
    /// When the first frame of voice was ready to be sent.
    ready: Option<Instant>,
    /// When the connection of this peer opened.
    connected: Option<Instant>,
    /// The connection of this peer failed.
    broken: bool,
}

/// The instants of a frame of voice.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FrameTimes {
    pub(crate) captured: Moment,
    pub(crate) handed_over: Moment,
    pub(crate) delivered: Moment,
    pub(crate) playout: Moment,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct GaugeRow {
    pub(crate) at: Instant,
    pub(crate) value: f64,
    pub(crate) peer: u32,
    pub(crate) gauge: Gauge,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct EventRow {
    pub(crate) at: Instant,
    pub(crate) peer: u32,
    pub(crate) event: &'static str,
}

const GAUGES: usize = Gauge::METRICS.len();

impl Recorder {
    /// An empty recorder for a run with this layout.
    #[must_use]
    pub fn new(layout: Layout, options: Options) -> Self {
        Self {
            stats: Stats::new(&layout),
            series: Series::new(&layout),
            links: Links::new(&layout),
            sojourns: options.sojourn.then(|| Sojourns::new(&layout)),
            logs: layout.flows.iter().flat_map(|_| [Log::default(), Log::default()]).collect(),
            options,
            gauges: Vec::new(),
            events: Vec::new(),
            layout,
        }
    }

    /// Records the counters of every link, all standing at `now`. Call it at every multiple of the
    /// interval, at both ends of the measure window and at the end of the run; other or repeated calls are
    /// harmless.
    pub fn sample(&mut self, now: Instant, links: &[LinkCounters]) {
        self.links.sample(now, links);
    }

    /// Closes every account.
    #[must_use]
    pub fn finish(self) -> Recording {
        let mut flows = self.stats.finish(&self.layout);
        let mut logs = self.logs;
        for (row, direction) in flows.iter_mut().zip(self.layout.directions()) {
            let log = &mut logs[direction.peer];
            [row.delay_p50_s, row.delay_p95_s, row.delay_p99_s] =
                [50, 95, 99].map(|percent| quantile_s(&mut log.delays, percent));
            row.mouth_to_ear_mean_s = mean_s(&log.mouth_to_ear);
            row.mouth_to_ear_p50_s = quantile_s(&mut log.mouth_to_ear, 50);
            row.handshake_wait_s = log.handshake_wait_s();
        }
        let broken = |peer: usize| logs[peer].broken || logs[peer ^ 1].broken;
        let fates =
            (0..logs.len()).map(|peer| self.stats.frame_fates(peer, broken(peer))).collect();
        let rungs = (0..logs.len()).map(|peer| self.stats.frame_rungs(peer)).collect();
        let mut sojourns = self.sojourns;
        let mut links = self.links.summaries(&self.layout);
        if let Some(sojourns) = &mut sojourns {
            links.iter_mut().zip(sojourns.summaries()).for_each(|(row, all)| row.sojourn = all);
        }
        Recording {
            flows,
            links,
            series: self.series,
            link_samples: self.links,
            sojourns,
            pauses: logs.iter_mut().map(|log| std::mem::take(&mut log.pauses)).collect(),
            frames: logs.into_iter().map(|log| log.frames).collect(),
            fates,
            rungs,
            videos: self.stats.into_videos(),
            gauges: self.gauges,
            events: self.events,
            layout: self.layout,
        }
    }

    fn keep(&mut self, now: Instant, fact: &Fact) {
        let log = &mut self.logs[fact.peer];
        match fact.what {
            What::Received { delay, .. } if fact.inside => log.delays.push(delay.as_nanos()),
            What::Played { after, .. } if fact.inside => {
                log.mouth_to_ear.push(after.as_nanos());
            }
            _ => {}
        }
        if self.layout.flows[fact.peer / 2].sides[fact.peer % 2]
            .as_ref()
            .is_some_and(|side| side.frame.is_some())
        {
            log.frame(now, fact.what);
        }
    }

    fn gauge(&mut self, at: Instant, peer: u32, gauge: Gauge, value: f64) {
        let Some(log) = self.logs.get_mut(peer as usize) else { return };
        // A gauge is a step function: keep only its steps.
        if log.gauges[gauge as usize].replace(value.to_bits()) != Some(value.to_bits()) {
            self.gauges.push(GaugeRow { at, value, peer, gauge });
        }
    }

    fn encoding(&mut self, at: Instant, peer: u32, rung: u8) {
        self.events.extend(encoding_name(rung).map(|event| EventRow { at, peer, event }));
    }

    fn event(&mut self, at: Instant, peer: u32, event: Event) {
        let Some(log) = self.logs.get_mut(peer as usize) else { return };
        if event == Event::Connected {
            log.connected.get_or_insert(at);
        }
        log.broken |= matches!(event, Event::Reset | Event::TimedOut | Event::Restarted);
        let row = event_name(event).map(|event| EventRow { at, peer, event });
        self.events.extend(row);
    }
}

impl Log {
    /// From the first frame to the opening of the connection, if both occurred.
    fn handshake_wait_s(&self) -> Option<f64> {
        Some(self.connected?.saturating_since(self.ready?).as_secs_f64())
    }

    fn frame(&mut self, now: Instant, what: What) {
        match what {
            What::Generated { captured, .. } => {
                self.ready.get_or_insert(now);
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
            | What::Lost
            | What::Encoding { .. } => {}
        }
    }
}

impl Probe for Recorder {
    fn wants(&self, topic: Topic) -> bool {
        match topic {
            Topic::Hop => self.options.sojourn,
            Topic::Gauge => self.options.gauges,
            _ => true,
        }
    }

    fn record(&mut self, now: Instant, place: Place, note: &Note<'_>) {
        match (place, note) {
            (Place::Peer(peer), Note::Gauge { gauge, value }) if self.options.gauges => {
                self.gauge(now, peer, *gauge, *value);
            }
            (Place::Peer(peer), Note::Event(event)) => self.event(now, peer, *event),
            (Place::Peer(peer), Note::Encoding(rung)) => self.encoding(now, peer, *rung),
            (Place::Peer(peer), Note::Paused { index, length }) => {
                if let Some(log) = self.logs.get_mut(peer as usize ^ 1) {
                    log.pauses.insert(*index, *length);
                }
            }
            (Place::Peer(peer), Note::RxError(rx_error)) => {
                self.events.push(EventRow { at: now, peer, event: rx_error_name(*rx_error) });
            }
            (Place::Link(_), _) => {
                if let Some(sojourns) = &mut self.sojourns {
                    sojourns.take(now, place, note);
                }
            }
            _ => {}
        }
        if let Some(fact) = self.stats.take(now, place, note) {
            self.series.add(now, &fact);
            self.keep(now, &fact);
        }
    }
}

/// The mean in seconds; `None` of none.
fn mean_s(nanos: &[u64]) -> Option<f64> {
    let sum: u128 = nanos.iter().map(|nanos| u128::from(*nanos)).sum();
    (!nanos.is_empty()).then(|| sum as f64 / nanos.len() as f64 / 1e9)
}

/// The nearest-rank quantile, in seconds: the smallest value that at least `percent` of a hundred values do
/// not exceed.
pub(crate) fn quantile_s(nanos: &mut [u64], percent: usize) -> Option<f64> {
    let rank = (nanos.len() * percent).div_ceil(100).checked_sub(1)?;
    let (_, value, _) = nanos.select_nth_unstable(rank);
    Some(Instant::from_nanos(*value).as_secs_f64())
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
