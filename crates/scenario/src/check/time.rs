//! The length of the run, the window of measurement and what is recorded.

use talkspurt_proto::time::{Duration, Instant};

use crate::model::Scenario;
use crate::path::Path;
use crate::problem::Findings;
use crate::words::did_you_mean;

/// More bins of a time series than anyone would draw.
const BINS: u64 = 10_000_000;

pub(super) fn check(scenario: &Scenario, run: Duration, found: &mut Findings) {
    if scenario.title.trim().is_empty() {
        found.add(Path::of(&["title"]), "must not be empty");
    }
    if i64::try_from(scenario.seed).is_err() {
        found.add(Path::of(&["seed"]), "must be below 2^63, so that TOML can hold it");
    }
    duration(scenario, found);
    measure(scenario, run, found);
    record(scenario, run, found);
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

fn record(scenario: &Scenario, run: Duration, found: &mut Findings) {
    let interval = scenario.record.interval;
    let path = Path::of(&["record", "interval"]);
    if interval.is_zero() {
        found.add(path, "must be longer than nothing").hint("the default is \"100ms\"".to_owned());
    } else if run < Duration::MAX && run.as_nanos() / interval.as_nanos() > BINS {
        let bins = run.as_nanos() / interval.as_nanos();
        found.add(
            path,
            format!("{interval} cuts the run into {bins} bins; at most {BINS} are kept"),
        );
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

/// Notes a span that is longer than `most`.
pub(super) fn at_most(path: Path, span: Duration, most: Duration, found: &mut Findings) {
    if span > most {
        found.add(path, format!("{span} is absurd here: at most {most}"));
    }
}
