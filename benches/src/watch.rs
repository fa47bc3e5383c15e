//! A run of a workload with one probe: none, or one of talkspurt's recordings.

use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use talkspurt_experiment::{BARRIER, captures, layout};
use talkspurt_flow::Materials;
use talkspurt_proto::probe::Probe;
use talkspurt_proto::time::{Duration, Instant};
use talkspurt_proto::units::Size;
use talkspurt_record::{
    Dialect, Digest, FlowSummary, Options, Output, PacketTable, Recorder, Stats, Trace,
};
use talkspurt_scenario::Network;
use talkspurt_scenario::model::Scenario;
use talkspurt_sim::build::build;
use talkspurt_sim::drive::{Timetable, drive};
use talkspurt_sim::world::World;

/// The probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Watch {
    /// Only the links' own counters.
    Nothing,
    /// Accounts of every flow, scored.
    Stats,
    /// The digest of the run.
    Digest,
    /// Everything that `talkspurt run` records, plus one option.
    Recorder(Extra),
    /// ns-2's trace of every link.
    Ns2,
    /// Captures of every link, of whole packets or of this many bytes of each.
    Pcapng(Option<u64>),
    /// The table of packets as Parquet.
    Packets,
}

/// Options of a recorder besides accounts, series, frames and events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Extra {
    None,
    Gauges,
    Sojourn,
}

impl Watch {
    /// Names, for the usage message.
    pub(crate) const NAMES: &str =
        "nothing|stats|digest|series|gauges|sojourn|packets|ns2|pcapng|pcapng-96";

    pub(crate) fn named(name: &str) -> Option<Self> {
        Some(match name {
            "nothing" => Self::Nothing,
            "stats" => Self::Stats,
            "digest" => Self::Digest,
            "series" => Self::Recorder(Extra::None),
            "gauges" => Self::Recorder(Extra::Gauges),
            "sojourn" => Self::Recorder(Extra::Sojourn),
            "packets" => Self::Packets,
            "ns2" => Self::Ns2,
            "pcapng" => Self::Pcapng(None),
            "pcapng-96" => Self::Pcapng(Some(96)),
            _ => return None,
        })
    }

    /// The default probe of a workload.
    pub(crate) fn of(workload: &str) -> Self {
        match workload {
            "w4" => Self::Ns2,
            "w4-pcapng" => Self::Pcapng(None),
            "w4-parquet" => Self::Packets,
            _ if workload.starts_with("w2") || workload == "w7" => Self::Stats,
            _ => Self::Nothing,
        }
    }
}

/// Results of a run.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    /// Transmissions begun.
    pub(crate) hops: u64,
    /// Of those, on the first link.
    pub(crate) core_packets: u64,
    /// Loss ratio of the packets offered to the first link.
    pub(crate) loss: f64,
    pub(crate) events: u64,
    /// CPU time from the process's start to the start of the run, seconds.
    pub(crate) set_up_s: f64,
    /// Members of a JSON object, each followed by a comma.
    pub(crate) more: String,
}

/// Runs a workload; `cpu_s` returns the process's CPU time. Output is kept in `out`, if given.
pub(crate) fn run(
    scenario: &Scenario,
    network: &Arc<Network>,
    watch: Watch,
    out: Option<&Path>,
    cpu_s: fn() -> f64,
) -> Result<Seen, String> {
    let runner = Runner { scenario, network, out, cpu_s };
    match watch {
        Watch::Nothing => {
            let (world, mut seen) = runner.plain(());
            seen.more = goodput(scenario, &world);
            Ok(seen)
        }
        Watch::Stats => {
            let layout = layout(scenario, network);
            let (world, mut seen) = runner.plain(Stats::new(&layout));
            seen.more = scores(scenario, &world.probe.finish(&layout));
            Ok(seen)
        }
        Watch::Digest => {
            let (world, mut seen) = runner.plain(Digest::of(&layout(scenario, network)));
            seen.more = format!("\"digest\":\"{}\",", world.probe.hex());
            Ok(seen)
        }
        Watch::Recorder(extra) => runner.recorded(extra),
        Watch::Ns2 => runner.traced(),
        Watch::Pcapng(snaplen) => runner.captured(snaplen),
        Watch::Packets => runner.tabled(),
    }
}

struct Runner<'a> {
    scenario: &'a Scenario,
    network: &'a Arc<Network>,
    out: Option<&'a Path>,
    cpu_s: fn() -> f64,
}

impl Runner<'_> {
    /// Observes nothing before the end.
    fn plain<P: Probe>(&self, probe: P) -> (World<P>, Seen) {
        let mut world = build(self.scenario, self.network, &Materials::default(), probe);
        let set_up_s = (self.cpu_s)();
        world.run_until(Instant::ZERO + self.scenario.duration, &AtomicBool::new(false));
        world.settle();
        world.assert_conservation();
        let seen = seen(&world, set_up_s);
        (world, seen)
    }

    /// Settles everything periodically, and calls `look` with the time.
    fn looked<P: Probe>(
        &self,
        probe: P,
        interval: Duration,
        look: impl FnMut(Instant, &[talkspurt_proto::probe::LinkCounters], &mut P),
    ) -> (World<P>, Seen) {
        let mut world = build(self.scenario, self.network, &Materials::default(), probe);
        let set_up_s = (self.cpu_s)();
        let duration = self.scenario.duration;
        let window = (Instant::ZERO, Instant::ZERO + duration);
        let timetable = Timetable { duration, interval, window, settle: None };
        drive(&mut world, &timetable, &AtomicBool::new(false), look);
        let seen = seen(&world, set_up_s);
        (world, seen)
    }

    fn recorded(&self, extra: Extra) -> Result<Seen, String> {
        let options = Options { gauges: extra == Extra::Gauges, sojourn: extra == Extra::Sojourn };
        let recorder = Recorder::new(layout(self.scenario, self.network), options);
        let interval = self.scenario.record.interval;
        let (world, seen) =
            self.looked(recorder, interval, |now, counters, recorder: &mut Recorder| {
                recorder.sample(now, counters);
            });
        world.probe.finish().map_err(|error| error.to_string())?;
        Ok(seen)
    }

    fn traced(&self) -> Result<Seen, String> {
        let folder = Folder::new(self.out)?;
        let output =
            Output::create(folder.path.join("trace.tr")).map_err(|error| error.to_string())?;
        let trace = Trace::new(output, &layout(self.scenario, self.network), Dialect::Ns2);
        let (world, mut seen) = self.looked(trace, BARRIER, |_, _, _| {});
        world.probe.finish().map_err(|error| error.to_string())?;
        seen.more = folder.written();
        Ok(seen)
    }

    fn captured(&self, snaplen: Option<u64>) -> Result<Seen, String> {
        let mut scenario = self.scenario.clone();
        scenario.record.snaplen = snaplen.map(Size::from_bytes);
        let folder = Folder::new(self.out)?;
        let names = self.scenario.links.keys();
        let captures = captures(names, &scenario, self.network, &folder.path)
            .map_err(|error| error.to_string())?;
        let (world, mut seen) = self.looked(captures, BARRIER, |_, _, _| {});
        world.probe.finish().map_err(|error| error.to_string())?;
        seen.more = folder.written();
        Ok(seen)
    }

    fn tabled(&self) -> Result<Seen, String> {
        let folder = Folder::new(self.out)?;
        let output = Output::create(folder.path.join("packets.parquet"));
        let output = output.map_err(|error| error.to_string())?;
        let table = PacketTable::new(output, &layout(self.scenario, self.network));
        let (world, mut seen) = self.looked(table, BARRIER, |_, _, _| {});
        world.probe.finish().map_err(|error| error.to_string())?;
        seen.more = folder.written();
        Ok(seen)
    }
}

fn seen<P: Probe>(world: &World<P>, set_up_s: f64) -> Seen {
    let core = &world.counters()[0];
    let drops: u64 = core.drops.iter().sum();
    Seen {
        hops: world.hops(),
        core_packets: core.sent_packets,
        loss: drops as f64 / (core.sent_packets + drops).max(1) as f64,
        events: world.events(),
        set_up_s,
        more: String::new(),
    }
}

/// Goodput of a cell's stations, in UDP payload: 1472 of 1500 bytes.
fn goodput(scenario: &Scenario, world: &World<()>) -> String {
    let packets: u64 = world.cells().iter().map(|cell| cell.tally.packets).sum();
    if packets == 0 {
        return String::new();
    }
    let bits = packets as f64 * 1472.0 * 8.0;
    format!("\"goodput_mbps\":{:.3},", bits / scenario.duration.as_secs_f64() / 1e6)
}

/// A summary of the calls' accounts.
fn scores(scenario: &Scenario, flows: &[FlowSummary]) -> String {
    let scores: Vec<f64> =
        talkspurt_experiment::scores(scenario, flows).filter_map(|quality| quality.mos).collect();
    let late: u64 = flows.iter().filter_map(|flow| flow.late_packets).sum();
    let mut text = String::new();
    let _ = write!(
        text,
        "\"scored\":{},\"mos_mean\":{:.3},\"late\":{late},\"delay_mean_s\":{:.6},\"jitter_mean_s\":{:.6},",
        scores.len(),
        mean(scores.iter().copied()),
        mean(flows.iter().filter_map(|flow| flow.delay_mean_s)),
        mean(flows.iter().filter_map(|flow| flow.jitter_s)),
    );
    text
}

fn mean(values: impl Iterator<Item = f64>) -> f64 {
    let (sum, count) = values.fold((0.0, 0_u32), |(sum, count), value| (sum + value, count + 1));
    sum / f64::from(count.max(1))
}

/// A folder for a run's output: permanent, or deleted with it.
struct Folder {
    path: PathBuf,
    stays: bool,
}

impl Folder {
    fn new(out: Option<&Path>) -> Result<Self, String> {
        if let Some(path) = out {
            return Ok(Self { path: path.to_owned(), stays: true });
        }
        let name = format!("talkspurt-bench-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        fs::create_dir(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        Ok(Self { path, stays: false })
    }

    fn written(&self) -> String {
        format!("\"written_bytes\":{},", bytes_in(&self.path))
    }
}

fn bytes_in(folder: &Path) -> u64 {
    let files = fs::read_dir(folder).into_iter().flatten().flatten();
    files.filter_map(|file| file.metadata().ok()).map(|file| file.len()).sum()
}

impl Drop for Folder {
    fn drop(&mut self) {
        if !self.stays {
            // A failure cannot be handled.
            let _ = fs::remove_dir_all(&self.path);
        }
    }
}
