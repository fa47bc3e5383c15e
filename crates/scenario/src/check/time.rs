//! Checks the length of the run, the measure window and recording options.

use talkspurt_proto::time::{Duration, Instant};
use talkspurt_proto::units::Size;

use crate::model::{Animation, Cell, Flow, Scenario};
use crate::path::Path;
use crate::problem::Findings;
use crate::words::did_you_mean;

/// Bins of all time series together. One takes 64 bytes during the run and about 100 as a table row at the
/// end, 2 GB in total.
const MAX_BINS: u64 = 12_000_000;
const BIN_BYTES: f64 = 170.0;

pub(super) fn check(scenario: &Scenario, run: Duration, series: bool, found: &mut Findings) {
    if scenario.title.trim().is_empty() {
        found.add(Path::of(&["title"]), "must not be empty");
    }
    seeds(scenario, found);
    duration(scenario, found);
    measure(scenario, run, found);
    record(scenario, run, series, found);
    animation(&scenario.record.animation, run, found);
}

/// Each replication has its own seed, counted up from the scenario's.
fn seeds(scenario: &Scenario, found: &mut Findings) {
    let count = scenario.replications.count;
    let last = scenario.seed.saturating_add(count.saturating_sub(1).into());
    if i64::try_from(last).is_err() {
        let message = format!(
            "the seeds of {count} replications would go beyond {}, the greatest integer of TOML",
            i64::MAX
        );
        found.add(Path::of(&["seed"]), message);
    }
}

fn duration(scenario: &Scenario, found: &mut Findings) {
    let path = Path::of(&["duration"]);
    if scenario.duration.is_zero() {
        found.add(path, "a run must last longer than nothing");
    } else if scenario.duration.as_nanos() > Instant::HORIZON.as_nanos() {
        let message = format!("{} is longer than a run can last (78h)", scenario.duration);
        found.add(path, message);
    }
}

fn measure(scenario: &Scenario, end: Duration, found: &mut Findings) {
    let window = &scenario.measure;
    let to = window.to.unwrap_or(end);
    if to > end {
        let message = format!("{to} is after the end of the run ({end})");
        found.add(Path::of(&["measure", "to"]), message);
    }
    if window.from >= to.min(end) {
        let message = format!("{} leaves nothing to measure before {}", window.from, to.min(end));
        found.add(Path::of(&["measure", "from"]), message);
    }
}

fn animation(animation: &Animation, end: Duration, found: &mut Findings) {
    let path = |key| Path::of(&["record", "animation", key]);
    let to = animation.to.unwrap_or(end);
    if to > end {
        found.add(path("to"), format!("{to} is after the end of the run ({end})"));
    }
    let from = animation.from.unwrap_or_default();
    if from >= to.min(end) {
        let key = if animation.from.is_some() { "from" } else { "to" };
        found.add(path(key), format!("nothing is left to show from {from} to {}", to.min(end)));
    }
    let most = Animation::MAX_PACKETS;
    if animation.packets > most {
        let message =
            format!("{} are more than a page can show: at most {most}", animation.packets);
        found.add(path("packets"), message);
    }
}

/// RFC 8200 §3: length of an IPv6 header.
const MIN_SNAPLEN: Size = Size::from_bytes(40);

fn record(scenario: &Scenario, run: Duration, series: bool, found: &mut Findings) {
    let interval = scenario.record.interval;
    let path = Path::of(&["record", "interval"]);
    if interval.is_zero() {
        found.add(path, "must be longer than nothing").hint("the default is \"100ms\"".to_owned());
    } else if series && run.as_nanos() <= Instant::HORIZON.as_nanos() {
        bins(scenario, run, found);
    }
    if let Some(snaplen) = scenario.record.snaplen.filter(|snaplen| *snaplen < MIN_SNAPLEN) {
        let message = format!("{snaplen} does not hold an IP header: at least {MIN_SNAPLEN}");
        found.add(Path::of(&["record", "snaplen"]), message);
    }
    let names = scenario.links.keys().map(String::as_str);
    for (index, link) in scenario.record.pcapng.iter().enumerate() {
        let path = Path::of(&["record", "pcapng"]).index(index);
        if !scenario.links.contains_key(link) {
            found.add(path, format!("no link is named {link:?}")).hint(did_you_mean(
                "links are",
                link,
                names.clone(),
            ));
        } else if scenario.record.pcapng[..index].contains(link) {
            found.add(path, format!("{link:?} stands here twice"));
        }
    }
}

/// The bins of all series of flows and links are in memory at once.
fn bins(scenario: &Scenario, run: Duration, found: &mut Findings) {
    let interval = scenario.record.interval;
    let sources = |flow: &Flow| (1 + u64::from(flow.reverse.is_some())) * flow.members() as u64;
    let directions: u64 = scenario.flows.values().map(sources).sum();
    let transmitters =
        |cell: &Cell| 1 + cell.stations.len() as u64 + u64::from(cell.contenders.is_some());
    let cells: u64 = scenario.cells.values().map(transmitters).sum();
    let links = 2 * scenario.links.len() as u64 + cells;
    let bins = run.as_nanos().div_ceil(interval.as_nanos());
    let all = bins.saturating_mul(directions + links);
    if all > MAX_BINS {
        let gigabytes = all as f64 * BIN_BYTES / 1e9;
        let message = format!(
            "{interval} cuts the run into {bins} bins, for {directions} directions of flows and \
             {links} of links: about {gigabytes:.1} GB of memory; at most {MAX_BINS} bins in all \
             are kept (2 GB)"
        );
        let fits = run.as_nanos().div_ceil((MAX_BINS / (directions + links)).max(1));
        let fits = Duration::from_millis(fits.div_ceil(1_000_000));
        found.add(Path::of(&["record", "interval"]), message).hint(format!("\"{fits}\" fits"));
    }
}

/// Reports a duration longer than `most`.
pub(super) fn at_most(path: Path, span: Duration, most: Duration, found: &mut Findings) {
    if span > most {
        found.add(path, format!("{span} is out of range: at most {most}"));
    }
}
