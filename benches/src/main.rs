//! Runs one peer workload and prints what it cost: packet-hops per CPU-second of the whole process.
//!
//! `talkspurt-bench WORKLOAD [SECONDS]` with `w1` (50 bulk SACK), `w2` (500 voice calls with
//! delay, jitter, loss and MOS per flow), `w2-N` (the same, N of them), `w4` (w1 with ns-2's trace of
//! every link on disk) or `w5-N` (N bulk flows). Prints one JSON line.

mod workloads;

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use cpu_time::ProcessTime;
use talkspurt_experiment::{layout, score};
use talkspurt_proto::probe::Probe;
use talkspurt_proto::time::{Duration, Instant};
use talkspurt_record::{Dialect, Output, Stats, Trace};
use talkspurt_scenario::Network;
use talkspurt_sim::build::{Materials, build};
use talkspurt_sim::world::World;

fn main() {
    let mut arguments = std::env::args().skip(1);
    let name = arguments.next().unwrap_or_default();
    let seconds = arguments.next().and_then(|text| text.parse().ok());
    let Some(scenario) = workloads::by_name(&name, seconds) else {
        eprintln!("usage: talkspurt-bench w1|w2|w2-N|w4|w5-N [SECONDS]");
        std::process::exit(2);
    };
    let network = Arc::new(Network::build(&scenario).expect("the workloads are sound"));
    let set_up = ProcessTime::now();
    if name.starts_with("w2") {
        let layout = layout(&scenario, &network);
        let mut world = build(&scenario, &network, &Materials::new(), Stats::new(&layout));
        let before = set_up.elapsed();
        run(&mut world, scenario.duration);
        let flows = world.probe.finish(&layout);
        let scores: Vec<f64> = flows.iter().filter_map(|flow| score(&scenario, flow).mos).collect();
        let late: u64 = flows.iter().filter_map(|flow| flow.late_packets).sum();
        let delay = mean(flows.iter().filter_map(|flow| flow.delay_mean_s));
        let jitter = mean(flows.iter().filter_map(|flow| flow.jitter_s));
        let extra = format!(
            "\"scored\":{},\"mos_mean\":{:.3},\"late\":{late},\"delay_mean_s\":{delay:.6},\"jitter_mean_s\":{jitter:.6},",
            scores.len(),
            mean(scores.iter().copied()),
        );
        report(&name, &world, before, &extra);
    } else if name == "w4" {
        let file = std::env::temp_dir().join(format!("talkspurt-w4-{}.tr", std::process::id()));
        let output = Output::create(&file).expect("the folder for temporary files can be written");
        let trace = Trace::new(output, &layout(&scenario, &network), Dialect::Ns2);
        let mut world = build(&scenario, &network, &Materials::new(), trace);
        let before = set_up.elapsed();
        let (never, end) = (AtomicBool::new(false), Instant::ZERO + scenario.duration);
        while world.now() < end {
            world.run_until((world.now() + Duration::from_millis(50)).min(end), &never);
            world.settle();
            let now = world.now();
            world.probe.settle(now);
        }
        report(&name, &world, before, "");
        world.probe.finish().expect("the trace can be written");
        let _ = std::fs::remove_file(file);
    } else {
        let mut world = build(&scenario, &network, &Materials::new(), ());
        let before = set_up.elapsed();
        run(&mut world, scenario.duration);
        report(&name, &world, before, "");
    }
}

fn run<P: Probe>(world: &mut World<P>, duration: Duration) {
    let never = AtomicBool::new(false);
    world.run_until(Instant::ZERO + duration, &never);
    world.settle();
    world.assert_conservation();
}

fn report<P: Probe>(name: &str, world: &World<P>, set_up: std::time::Duration, extra: &str) {
    let cpu = cpu_since_start();
    let counters = world.counters();
    let core = &counters[0];
    let drops: u64 = core.drops.iter().sum();
    println!(
        "{{\"workload\":\"{name}\",\"hops\":{},\"core_packets\":{},\"loss\":{:.5},\"events\":{},{extra}\"cpu_s\":{:.3},\"set_up_s\":{:.3},\"mhops_per_cpu_s\":{:.2},\"peak_kb\":{}}}",
        world.hops(),
        core.sent_packets,
        drops as f64 / (core.sent_packets + drops).max(1) as f64,
        world.events(),
        cpu,
        set_up.as_secs_f64(),
        world.hops() as f64 / cpu / 1e6,
        peak_kb(),
    );
}

/// CPU time of this process from its start, as the kernel accounts it.
fn cpu_since_start() -> f64 {
    ProcessTime::try_now().map_or(f64::NAN, |now| now.as_duration().as_secs_f64())
}

/// Peak resident memory in kB (Linux; 0 elsewhere).
fn peak_kb() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|rest| rest.split_whitespace().next()?.parse().ok()).unwrap_or(0)
}

fn mean(values: impl Iterator<Item = f64>) -> f64 {
    let (sum, count) = values.fold((0.0, 0_u32), |(sum, count), value| (sum + value, count + 1));
    sum / f64::from(count.max(1))
}
