//! Exports a run to another tool's format by repeating it.

use std::path::Path;

use talkspurt_flow::Files;
use talkspurt_record::pcapng::CaptureProbe;
use talkspurt_record::{Dialect, Digest, Output, PacketTable, Qlog, Trace};
use talkspurt_scenario::Point;

use crate::capture::{self, file_name};
use crate::layout::layout;
use crate::packets;
use crate::rerun::again;
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

/// What an export writes: one of these.
type Writers = (Option<CaptureProbe>, (Option<PacketTable>, (Option<Trace>, Option<Qlog>)));

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
    let watch = (Digest::of(&layout), open(point, format, folder)?);
    // A writer inside a probe cannot return errors: it stops the run, and the error is reported below.
    let payloads = format == Format::Pcapng;
    let ((digest, writers), _) =
        again(point, files, watch, payloads, shared, |_, (_, writers)| failed(writers))?;
    finish(writers)?;
    Ok(digest.hex())
}

fn open(point: &Point, format: Format, folder: &Path) -> Result<Writers, Failure> {
    let Point { scenario, network, .. } = point;
    let layout = layout(scenario, network);
    let trace = |name, dialect| {
        let output = Output::create(folder.join(name)).map_err(Failure::output)?;
        Ok::<_, Failure>(Some(Trace::new(output, &layout, dialect)))
    };
    let mut writers = Writers::default();
    let (captures, (table, (traced, qlog))) = &mut writers;
    match format {
        Format::Pcapng => {
            *captures = Some(capture::of(scenario.links.keys(), scenario, network, folder)?);
        }
        Format::Ns2 => *traced = trace("trace.tr", Dialect::Ns2)?,
        Format::Nam => *traced = trace("trace.nam", Dialect::Nam)?,
        Format::Parquet => *table = Some(packets::create(folder, &layout)?),
        Format::Qlog => {
            let made = Qlog::create(folder, &layout, &scenario.title, file_name);
            *qlog = Some(made.map_err(Failure::output)?);
        }
    }
    Ok(writers)
}

fn failed((captures, (packets, (trace, qlog))): &Writers) -> bool {
    captures.as_ref().is_some_and(CaptureProbe::failed)
        || packets.as_ref().is_some_and(PacketTable::failed)
        || trace.as_ref().is_some_and(Trace::failed)
        || qlog.as_ref().is_some_and(Qlog::failed)
}

fn finish((captures, (packets, (trace, qlog))): Writers) -> Result<(), Failure> {
    if let Some(captures) = captures {
        let unwritten = captures.unwritten();
        capture::finish(captures)?;
        capture::check(unwritten)?;
    }
    let packets = packets.map_or(Ok(()), PacketTable::finish);
    packets
        .and_then(|()| trace.map_or(Ok(()), Trace::finish))
        .and_then(|()| qlog.map_or(Ok(()), Qlog::finish))
        .map_err(Failure::output)
}
