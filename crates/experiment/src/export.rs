//! Exports a run to another tool's format by repeating it.

use std::path::Path;

use talkspurt_flow::Files;
use talkspurt_proto::probe::{LinkCounters, Note, Place, Probe, Topic};
use talkspurt_proto::time::Instant;
use talkspurt_record::pcapng::CaptureProbe;
use talkspurt_record::{Dialect, Digest, Output, PacketTable, Qlog, Trace};
use talkspurt_scenario::Point;

use crate::capture::{self, file_name};
use crate::layout::layout;
use crate::rerun::{Repeated, again};
use crate::{Failure, Shared};

/// Output format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// `LINK.pcapng`, one per link with both directions.
    Pcapng,
    /// `trace.tr`, every link.
    Ns2,
    /// `trace.nam`, every link.
    Nam,
    /// `packets.parquet`, one row per packet and link.
    Parquet,
    /// `FLOW.from.sqlog` and `FLOW.to.sqlog`, one per endpoint.
    Qlog,
}

#[allow(clippy::large_enum_variant, reason = "a run has one; on 32 bits none is large")]
enum Writer {
    Captures(CaptureProbe),
    Trace(Trace),
    Packets(PacketTable),
    Qlog(Qlog),
}

/// What each writer does.
macro_rules! each {
    ($self:ident, $writer:ident => $act:expr) => {
        match $self {
            Self::Captures($writer) => $act,
            Self::Trace($writer) => $act,
            Self::Packets($writer) => $act,
            Self::Qlog($writer) => $act,
        }
    };
}

/// Runs a point and writes into an existing folder; returns the run's digest.
///
/// # Errors
/// A file cannot be read or written, or `shared` asks the run to stop.
pub fn export(
    point: &Point,
    files: &dyn Files,
    format: Format,
    folder: &Path,
    shared: &Shared,
) -> Result<String, Failure> {
    let point = &*point.expanded();
    let layout = layout(&point.scenario, &point.network);
    let mut watch = (Digest::of(&layout), Writer::new(point, format, folder)?);
    again(point, files, &mut watch, format == Format::Pcapng, shared)?;
    let (digest, writer) = watch;
    writer.finish()?;
    Ok(digest.hex())
}

impl Repeated for (Digest, Writer) {
    fn has_enough(&mut self, _: Instant, _: &[LinkCounters]) -> bool {
        // A writer inside a probe cannot return errors: it stops the run, and reports the error when it ends.
        self.1.failed()
    }
}

impl Writer {
    fn new(point: &Point, format: Format, folder: &Path) -> Result<Self, Failure> {
        let Point { scenario, network, .. } = point;
        let layout = layout(scenario, network);
        let trace = |name, dialect| {
            let output = Output::create(folder.join(name)).map_err(Failure::output)?;
            Ok(Self::Trace(Trace::new(output, &layout, dialect)))
        };
        match format {
            Format::Pcapng => {
                capture::of(scenario.links.keys(), scenario, network, folder).map(Self::Captures)
            }
            Format::Ns2 => trace("trace.tr", Dialect::Ns2),
            Format::Nam => trace("trace.nam", Dialect::Nam),
            Format::Parquet => capture::packets(folder, &layout).map(Self::Packets),
            Format::Qlog => Qlog::create(folder, &layout, &scenario.title, file_name)
                .map(Self::Qlog)
                .map_err(Failure::output),
        }
    }

    fn failed(&self) -> bool {
        each!(self, writer => writer.failed())
    }

    fn finish(self) -> Result<(), Failure> {
        let finished = match self {
            Self::Captures(captures) => {
                let unwritten = captures.unwritten();
                return capture::finish(captures).and_then(|()| capture::check(unwritten));
            }
            Self::Trace(trace) => trace.finish(),
            Self::Packets(packets) => packets.finish(),
            Self::Qlog(qlog) => qlog.finish(),
        };
        finished.map_err(Failure::output)
    }
}

impl Probe for Writer {
    fn wants(&self, topic: Topic) -> bool {
        each!(self, writer => writer.wants(topic))
    }

    fn record(&mut self, now: Instant, place: Place, note: &Note<'_>) {
        each!(self, writer => writer.record(now, place, note));
    }

    fn settled(&mut self, now: Instant) {
        each!(self, writer => writer.settled(now));
    }
}
