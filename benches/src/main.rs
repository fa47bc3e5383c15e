//! Runs one peer workload and prints its cost: packet-hops per CPU-second of the whole process.
//!
//! `talkspurt-bench WORKLOAD [SECONDS] [--noise] [--watch WHAT] [--out FOLDER]` with `w1` (50 bulk SACK),
//! `w2` (500 voice calls with delay, jitter, loss and MOS per flow), `w2-N` (the same, N of them), `w2a` (W2
//! with adaptive playout), `w3` (32 SACK and 32 TFRC over RED), `w3d` (16 each of SACK, CCID 2, CCID 3 and
//! SCTP over the same), `w4` (W1 with ns-2's trace of every link on disk), `w4-pcapng` (with captures of every
//! link), `w4-parquet` (with a row per packet and link), `w5-N` (N bulk flows) or `w6-N` (N saturated stations
//! of 802.11b). `--noise`
//! enables host noise. `--watch` replaces the workload's probe: `nothing`, `stats`, `digest`, `series`,
//! `gauges`, `sojourn`, `packets`, `ns2`, `pcapng` or `pcapng-96` (the first 96 bytes of each packet).
//! Output is kept in an existing FOLDER; without one it is deleted before the end. Prints one JSON line;
//! with `--scenario` the scenario instead, for `talkspurt run`.

mod watch;
mod workloads;

use std::path::PathBuf;
use std::process::exit;
use std::sync::Arc;
use std::time::Instant;

use cpu_time::ProcessTime;
use talkspurt_scenario::{Network, to_toml};
use watch::{Seen, Watch};

/// Command-line options.
#[derive(Default)]
struct Asked {
    name: String,
    seconds: Option<u64>,
    noise: bool,
    scenario: bool,
    watch: Option<Watch>,
    out: Option<PathBuf>,
}

#[expect(clippy::disallowed_methods, reason = "wall time is among what it measures")]
fn main() {
    let wall = Instant::now();
    let asked = asked(std::env::args().skip(1)).unwrap_or_else(|| usage());
    let scenario = workloads::by_name(&asked.name, asked.seconds, asked.noise);
    let scenario = scenario.unwrap_or_else(|| usage());
    if asked.scenario {
        print!("{}", to_toml(&scenario));
        return;
    }
    let network = Arc::new(
        Network::build(&scenario, &talkspurt_app::file::Disk).expect("the workloads are sound"),
    );
    let watch = asked.watch.unwrap_or_else(|| Watch::of(&asked.name));
    let out = asked.out.as_deref();
    let seen = watch::run(&scenario, &network, watch, out, cpu_s).unwrap_or_else(|error| {
        eprintln!("talkspurt-bench: {error}");
        exit(1);
    });
    report(&asked, &seen, wall.elapsed().as_secs_f64());
}

fn asked(mut words: impl Iterator<Item = String>) -> Option<Asked> {
    let mut asked = Asked { name: words.next()?, ..Asked::default() };
    while let Some(word) = words.next() {
        match word.as_str() {
            "--noise" => asked.noise = true,
            "--scenario" => asked.scenario = true,
            "--out" => asked.out = Some(words.next()?.into()),
            "--watch" => asked.watch = Some(Watch::named(&words.next()?)?),
            seconds => asked.seconds = Some(seconds.parse().ok().filter(|seconds| *seconds > 0)?),
        }
    }
    Some(asked)
}

fn usage() -> ! {
    let names = workloads::NAMES;
    let watches = Watch::NAMES;
    eprintln!(
        "usage: talkspurt-bench {names} [SECONDS] [--noise] [--watch {watches}] [--out FOLDER] [--scenario]"
    );
    exit(2);
}

fn report(asked: &Asked, seen: &Seen, wall_s: f64) {
    let cpu_s = cpu_s();
    println!(
        "{{\"workload\":\"{}\",\"hops\":{},\"core_packets\":{},\"loss\":{:.5},\"events\":{},{}\"cpu_s\":{cpu_s:.4},\"wall_s\":{wall_s:.4},\"set_up_s\":{:.4},\"mhops_per_cpu_s\":{:.2},\"peak_kb\":{}}}",
        asked.name,
        seen.hops,
        seen.core_packets,
        seen.loss,
        seen.events,
        seen.more,
        seen.set_up_s,
        seen.hops as f64 / cpu_s / 1e6,
        peak_kb(),
    );
}

/// CPU time of this process since its start, user and system, from the kernel's accounting.
fn cpu_s() -> f64 {
    ProcessTime::try_now().map_or(f64::NAN, |now| now.as_duration().as_secs_f64())
}

/// Peak resident memory in kB (Linux; 0 elsewhere).
fn peak_kb() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|rest| rest.split_whitespace().next()?.parse().ok()).unwrap_or(0)
}
