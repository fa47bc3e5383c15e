//! A run once more, for the eyes of another tool: the same packets, written while they move, with
//! nothing kept in memory but what happened since the links were last settled.

use std::path::Path;
use std::sync::atomic::Ordering;

use talkspurt_proto::probe::{Note, Place, Probe, Topic};
use talkspurt_proto::time::{Duration, Instant};
use talkspurt_record::pcapng::CaptureProbe;
use talkspurt_record::{Dialect, Digest, Output, Qlog, Trace};
use talkspurt_scenario::Point;
use talkspurt_sim::build;
use talkspurt_sim::drive::{Timetable, drive};

use crate::Shared;
use crate::capture::{self, file_name};
use crate::layout::{layout, window};

/// How often links are settled, so that their lines can be put in order.
const BARRIER: Duration = Duration::from_millis(50);

/// What is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// `LINK.pcapng`, every link with both directions.
    Pcapng,
    /// `trace.tr`, every link.
    Ns2,
    /// `trace.nam`, every link.
    Nam,
    /// `FLOW.from.sqlog` and `FLOW.to.sqlog`, every endpoint.
    Qlog,
}

enum Writer {
    Captures(CaptureProbe),
    Trace(Trace),
    Qlog(Qlog),
}

/// Runs a point and writes into a folder that exists; the run's digest.
pub fn export(
    point: &Point,
    format: Format,
    folder: &Path,
    shared: &Shared,
) -> Result<String, String> {
    let Point { scenario, network, .. } = point;
    let materials = build::materials(scenario)?;
    let writer = Writer::new(point, format, folder)?;
    let mut world = build::build(scenario, network, &materials, (Digest::new(), writer));
    let timetable =
        Timetable { duration: scenario.duration, interval: BARRIER, window: window(scenario) };
    let mut disk_failed = false;
    let finished = drive(&mut world, &timetable, &shared.cancel, |now, _, (_, writer)| {
        shared.passed.store(now.as_nanos(), Ordering::Relaxed);
        writer.settle(now);
        if writer.failed() && !disk_failed {
            disk_failed = true;
            shared.cancel.store(true, Ordering::Relaxed);
        }
    });
    if !finished && !disk_failed {
        return Err("cancelled".to_owned());
    }
    let (digest, writer) = world.probe;
    writer.finish()?;
    Ok(digest.hex())
}

impl Writer {
    fn new(point: &Point, format: Format, folder: &Path) -> Result<Self, String> {
        let Point { scenario, network, .. } = point;
        let layout = layout(scenario, network);
        let trace = |name, dialect| {
            let output = Output::create(folder.join(name)).map_err(|error| error.to_string())?;
            Ok(Self::Trace(Trace::new(output, &layout, dialect)))
        };
        match format {
            Format::Pcapng => {
                capture::of(scenario.links.keys(), scenario, network, folder).map(Self::Captures)
            }
            Format::Ns2 => trace("trace.tr", Dialect::Ns2),
            Format::Nam => trace("trace.nam", Dialect::Nam),
            Format::Qlog => Qlog::create(folder, &layout, &scenario.title, file_name)
                .map(Self::Qlog)
                .map_err(|error| error.to_string()),
        }
    }

    fn settle(&mut self, now: Instant) {
        if let Self::Trace(trace) = self {
            trace.settle(now);
        }
    }

    fn failed(&self) -> bool {
        match self {
            Self::Captures(captures) => captures.failed(),
            Self::Trace(trace) => trace.failed(),
            Self::Qlog(qlog) => qlog.failed(),
        }
    }

    fn finish(self) -> Result<(), String> {
        let finished = match self {
            Self::Captures(captures) => return capture::finish(captures),
            Self::Trace(trace) => trace.finish(),
            Self::Qlog(qlog) => qlog.finish(),
        };
        finished.map_err(|error| error.to_string())
    }
}

impl Probe for Writer {
    fn wants(&self, topic: Topic) -> bool {
        match self {
            Self::Captures(captures) => captures.wants(topic),
            Self::Trace(trace) => trace.wants(topic),
            Self::Qlog(qlog) => qlog.wants(topic),
        }
    }

    fn record(&mut self, now: Instant, place: Place, note: &Note<'_>) {
        match self {
            Self::Captures(captures) => captures.record(now, place, note),
            Self::Trace(trace) => trace.record(now, place, note),
            Self::Qlog(qlog) => qlog.record(now, place, note),
        }
    }
}
