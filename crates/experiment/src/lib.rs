//! A run from scenario to tables: world, recorder, digest, captures and quality combined.
//!
//! [`run`] is the main entry: it builds the world of a point, runs it to its end while the recorder
//! observes, renders the received audio and scores it. `layout` describes the network to the recorder,
//! `capture` writes per-packet output, `audio` renders speech, `listening` plays speech that was captured
//! elsewhere. `memory` estimates what a run takes; `rerun` repeats a point for reports, `export` for other
//! tools, `count` to estimate their size; `store` writes the folder of a run.

// Lets the files in `docs/adding-a-*.md` compile unchanged both here and as tests.
extern crate self as talkspurt_experiment;

#[cfg(doctest)]
#[doc = include_str!("../../../docs/adding-a-stack.md")]
mod adding_a_stack {}

mod audio;
mod capture;
mod count;
mod export;
mod layout;
mod listening;
mod memory;
mod redundancy;
mod rerun;
mod store;
mod topology;

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

pub use audio::{Audio, Heard, opinion, render, scores};
pub use capture::of as captures;
pub use count::{Counts, LinkCounts, count};
pub use export::{Format, export};
pub use layout::layout;
pub use listening::{Stream, StreamPacket, listen};
pub use memory::memory;
pub use rerun::{BARRIER, excerpt};
pub use store::{columns, run_into, type_name};
pub use talkspurt_app::codec::external;
use talkspurt_flow::Materials;
pub use talkspurt_flow::{Disk, Files};
use talkspurt_proto::probe::Probe;
use talkspurt_record::pcapng::CaptureProbe;
use talkspurt_record::{
    Digest, FlowSummary, Layout, Options, PacketTable, Recorder, Recording, StoreError, Tables,
};
use talkspurt_scenario::Point;
use talkspurt_scenario::model::Scenario;
use talkspurt_sim::build;
use talkspurt_sim::drive::{Timetable, drive};
pub use topology::topology;

#[cfg(not(target_arch = "wasm32"))]
use cpu_time::ThreadTime;
/// A page has no clock of a thread's CPU time.
#[cfg(target_arch = "wasm32")]
struct ThreadTime;
#[cfg(target_arch = "wasm32")]
impl ThreadTime {
    fn now() -> Self {
        Self
    }
    fn elapsed(&self) -> std::time::Duration {
        std::time::Duration::ZERO
    }
}

/// State shared by a run and the thread that waits for it.
#[derive(Debug, Default)]
pub struct Shared {
    /// Simulated nanoseconds passed so far.
    pub passed: AtomicU64,
    /// Asks the run to stop.
    pub cancel: AtomicBool,
    /// Told the share of the run that has passed, where no other thread can look; the run stops when it returns
    /// false.
    pub watch: Option<fn(f64) -> bool>,
}

/// As many times in a run without tables, at least, is its progress known.
const PROGRESS: u64 = 100;

/// Output written during a run.
pub type Written = (Option<CaptureProbe>, Option<PacketTable>);

/// Output that is written during a run, or none. Most runs have none; a check at every note, and the code
/// behind it, would take a twentieth of their time.
trait Output: Probe {
    /// Whether a file could not be written.
    fn failed(&self) -> bool;
    fn written(self) -> Written;
}

impl Output for () {
    fn failed(&self) -> bool {
        false
    }
    fn written(self) -> Written {
        Written::default()
    }
}

#[cfg(not(target_arch = "wasm32"))]
impl Output for Written {
    fn failed(&self) -> bool {
        let (capture, packets) = self;
        capture.as_ref().is_some_and(CaptureProbe::failed)
            || packets.as_ref().is_some_and(PacketTable::failed)
    }
    fn written(self) -> Written {
        self
    }
}

/// Results of a run.
pub struct Finished {
    /// Digest over the canonical event records, hexadecimal; empty for a run in real time.
    pub digest: String,
    /// Transmissions begun on any link.
    pub hops: u64,
    /// Wake-ups performed.
    pub events: u64,
    /// CPU time of the run's thread in seconds.
    pub cpu_s: f64,
    /// Simulated seconds.
    pub duration_s: f64,
    /// All recorded data.
    pub recording: Recording,
    /// Speech with a recording, by direction.
    pub audio: Vec<Audio>,
}

/// Why a run has no results.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// It was asked to stop.
    #[error("cancelled")]
    Cancelled,
    /// What the scenario names cannot be used, such as a file.
    #[error("{0}")]
    Input(String),
    /// A capture, a trace or another file could not be written.
    #[error("{0}")]
    Output(String),
    /// A table could not be written.
    #[error("{}: {}", .0.path.display(), .0.error)]
    Store(StoreError),
    /// The system refused a socket or a device.
    #[error("{0}")]
    System(String),
    /// An account does not balance, which indicates a bug in this program.
    #[error("{0}")]
    Account(String),
}

impl Failure {
    pub(crate) fn output(error: impl ToString) -> Self {
        Self::Output(error.to_string())
    }

    /// The name of the variant.
    #[must_use]
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Cancelled => "cancelled",
            Self::Input(_) => "input",
            Self::Output(_) => "output",
            Self::Store(_) => "store",
            Self::System(_) => "system",
            Self::Account(_) => "account",
        }
    }
}

/// Runs one point of a study; captures and packets that the scenario requests are written to `folder`,
/// if given. Speech is rendered if the run `is_heard`; otherwise it is encoded only where packets depend on it.
///
/// # Errors
/// A file cannot be read or written, `shared` asks the run to stop, or an account does not add up.
pub fn run(
    point: &Point,
    files: &dyn Files,
    folder: Option<&Path>,
    tables: Tables,
    is_heard: bool,
    shared: &Shared,
) -> Result<Finished, Failure> {
    let cpu = ThreadTime::now();
    let point = point.expanded();
    let Point { scenario, network, .. } = &*point;
    let materials = Materials::load(scenario, files).map_err(Failure::Input)?;
    // A capture has the payloads.
    let is_heard = is_heard || folder.is_some() && !scenario.record.pcapng.is_empty();
    let materials = if is_heard { materials } else { materials.unheard() };
    let options = Options { gauges: scenario.record.gauges, sojourn: scenario.record.sojourn };
    let layout = layout(scenario, network);
    let files = written(&point, &layout, folder)?;
    let mut timetable = timetable(scenario, files.0.is_some());
    if !tables.keeps("series") && !tables.keeps("link_series") {
        // Nobody needs the counters at the end of each bin, but progress.
        timetable.interval = timetable.interval.max(scenario.duration / PROGRESS);
    }
    let digest = Digest::of(&layout);
    let recorder = Recorder::keeping(layout, options, tables);
    // A page writes no files, and does not load the world that would.
    #[cfg(not(target_arch = "wasm32"))]
    if files.0.is_some() || files.1.is_some() {
        let probe = (recorder, (digest, files));
        return run_with(probe, &point, &materials, &timetable, shared, cpu);
    }
    run_with((recorder, (digest, ())), &point, &materials, &timetable, shared, cpu)
}

fn run_with<O: Output>(
    probe: (Recorder, (Digest, O)),
    point: &Point,
    materials: &Materials,
    timetable: &Timetable,
    shared: &Shared,
    cpu: ThreadTime,
) -> Result<Finished, Failure> {
    let Point { scenario, network, .. } = point;
    let mut world = build::build(scenario, network, materials, probe);
    let mut disk_failed = false;
    let finished = drive(&mut world, timetable, &shared.cancel, |now, counters, probe| {
        let (recorder, (_, output)) = probe;
        recorder.sample(now, counters);
        shared.passed.store(now.as_nanos(), Ordering::Relaxed);
        let share = now.as_nanos() as f64 / timetable.duration.as_nanos().max(1) as f64;
        if shared.watch.is_some_and(|watch| !watch(share)) {
            shared.cancel.store(true, Ordering::Relaxed);
        }
        if (recorder.failed() || output.failed()) && !disk_failed {
            // A writer inside a probe cannot return errors: it stops the run, and the error is reported below.
            disk_failed = true;
            shared.cancel.store(true, Ordering::Relaxed);
        }
    });
    if !finished && !disk_failed {
        return Err(Failure::Cancelled);
    }
    let audio =
        if materials.is_heard() { audio::render(scenario, materials, &world) } else { vec![] };
    let (hops, events) = (world.hops(), world.events());
    let (recorder, (digest, output)) = world.probe;
    let files = output.written();
    let unwritten = files.0.as_ref().map_or(0, CaptureProbe::unwritten);
    let recording = conclude(scenario, materials, recorder, files, finished)?;
    capture::check(unwritten)?;
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

/// Opens the captures and the packet table that the scenario requests.
///
/// # Errors
/// A file cannot be created.
pub fn written(point: &Point, layout: &Layout, folder: Option<&Path>) -> Result<Written, Failure> {
    let Point { scenario, network, .. } = point;
    let capture = capture::open(scenario, network, folder)?;
    let packets = folder.filter(|_| scenario.record.packets);
    let packets = packets.map(|folder| capture::packets(folder, layout)).transpose()?;
    Ok((capture, packets))
}

/// Whether a file that is written during the run could not be.
#[cfg(not(target_arch = "wasm32"))]
#[must_use]
pub fn failed(recorder: &Recorder, files: &Written) -> bool {
    recorder.failed() || files.failed()
}

/// Completes the files and the accounts of a run, and scores its calls. A run that has not `finished` needs no
/// balanced accounts.
///
/// # Errors
/// A file could not be written, or an account does not balance.
pub fn conclude(
    scenario: &Scenario,
    materials: &Materials,
    recorder: Recorder,
    (capture, packets): Written,
    finished: bool,
) -> Result<Recording, Failure> {
    capture.map_or(Ok(()), capture::finish)?;
    let unfinished = |error| Failure::Output(format!("the packets could not be written: {error}"));
    packets.map_or(Ok(()), PacketTable::finish).map_err(unfinished)?;
    let recording = recorder.finish();
    let mut recording = recording
        .map_err(|error| Failure::Output(format!("a temporary file could not be read: {error}")))?;
    if finished {
        recording.conservation().map_err(Failure::Account)?;
    }
    let qualities: Vec<_> = scores(scenario, &recording.flows).collect();
    let notes = redundancy::notes(scenario, materials, &recording.flows);
    let skews = skews(scenario, &recording.flows);
    let judged = qualities.into_iter().zip(audio::stand_ins(scenario)).zip(notes).zip(skews);
    for (summary, (((quality, stand_in), note), skew)) in recording.flows.iter_mut().zip(judged) {
        summary.quality = quality;
        summary.av_skew_s = skew;
        summary.stand_in = stand_in;
        summary.redundancy_note = note;
    }
    recording.store().map_err(Failure::Store)?;
    Ok(recording)
}

/// How much later than the speech of its session each picture is seen.
fn skews(scenario: &Scenario, rows: &[FlowSummary]) -> Vec<Option<f64>> {
    let session = |row: &FlowSummary| {
        let owner = row.name.strip_suffix(".reverse");
        let name = owner.filter(|_| !scenario.flows.contains_key(&row.name)).unwrap_or(&row.name);
        let flow = scenario.flows.get(name).filter(|flow| flow.controller.is_some())?;
        Some((flow.session.clone().unwrap_or_else(|| name.to_owned()), row.from.clone()))
    };
    let sessions: Vec<_> = rows.iter().map(session).collect();
    let sound = |of: usize| {
        let others =
            rows.iter().zip(&sessions).filter(|(_, it)| it.is_some() && **it == sessions[of]);
        others.into_iter().find_map(|(row, _)| row.mouth_to_ear_p50_s)
    };
    let skew =
        |(at, row): (usize, &FlowSummary)| Some(row.video.as_ref()?.delay_s[0]? - sound(at)?);
    rows.iter().enumerate().map(skew).collect()
}

/// When a run is sampled. `captured`: packets are written during the run.
#[must_use]
pub fn timetable(scenario: &Scenario, captured: bool) -> Timetable {
    Timetable {
        duration: scenario.duration,
        interval: scenario.record.interval,
        window: layout::window(scenario),
        settle: captured.then_some(rerun::BARRIER),
    }
}
