//! Time-varying conditions of one direction of a link, from `steps` or a trace file.

use std::path::Path as FilePath;
use std::sync::Arc;

use talkspurt_app::file::{self, Fault};
use talkspurt_proto::time::Duration;
use talkspurt_proto::units::{Rate, Size};

use crate::model::{Back, Link, Step, Trace};
use crate::orbit;
use crate::path::Path;
use crate::problem::Findings;

/// The time-varying properties of one direction of a link.
#[derive(Clone, Debug, PartialEq)]
pub enum LinkProfile {
    /// Changes of rate, delay and loss, in order of time.
    Steps(Arc<[Step]>),
    /// Times in milliseconds at which 1500 bytes may leave; the last is the period, above zero.
    Opportunities(Arc<[u64]>),
}

/// Bytes per transmission opportunity: a full packet, as in mahimahi.
pub const OPPORTUNITY: u64 = 1500;

/// Maximum lines of a trace: a day of mahimahi's at 40 Mbit/s would have 288 million lines, surely by
/// mistake.
const MAX_LINES: usize = 10_000_000;

/// The minimum capacity of a trace: a packet of this length, within the run.
#[derive(Clone, Copy)]
struct Least {
    mtu: Size,
    run: Duration,
}

/// The profiles of both directions of a link; reports invalid files.
pub(crate) fn link_profiles(
    path: &Path,
    link: &Link,
    run: Duration,
    found: &mut Findings,
) -> [Option<LinkProfile>; 2] {
    if let Some(orbit) = &link.orbit {
        let back = link.back.as_ref();
        let forth = (link.delay, link.loss);
        let back = (
            back.and_then(|back| back.delay).unwrap_or(link.delay),
            back.and_then(|back| back.loss).unwrap_or(link.loss),
        );
        return [forth, back].map(|(ground, loss)| {
            let steps = orbit::steps(orbit, ground, loss, run);
            (!steps.is_empty()).then(|| LinkProfile::Steps(steps.into()))
        });
    }
    let least = Least { mtu: link.mtu, run };
    let forth = course(path, &link.steps, link.trace.as_ref(), least, found);
    let back = match &link.back {
        None => forth.clone(),
        Some(back) if follows(back) => forth.clone(),
        Some(back) => {
            let steps = back.steps.as_deref().unwrap_or_default();
            course(&path.key("back"), steps, back.trace.as_ref(), least, found)
        }
    };
    [forth, back]
}

/// Whether the reverse direction sets no property that a profile changes.
fn follows(back: &Back) -> bool {
    let silent = back.rate.is_none() && back.delay.is_none() && back.loss.is_none();
    silent && back.gilbert_elliott.is_none() && back.steps.is_none() && back.trace.is_none()
}

fn course(
    path: &Path,
    steps: &[Step],
    trace: Option<&Trace>,
    least: Least,
    found: &mut Findings,
) -> Option<LinkProfile> {
    let Some(trace) = trace else {
        return (!steps.is_empty()).then(|| LinkProfile::Steps(steps.into()));
    };
    if !steps.is_empty() {
        let message = "a direction of a link follows `steps` or a `trace`, not both";
        found.add(path.key("trace"), message);
    }
    match read(trace, least) {
        Ok(course) => Some(course),
        Err(fault) => {
            let message = format!("{}: {fault}", trace.file().display());
            found.add(path.key("trace").key("file"), message);
            None
        }
    }
}

fn read(trace: &Trace, least: Least) -> Result<LinkProfile, String> {
    let text = text(trace.file())?;
    match trace {
        Trace::Mahimahi(_) => mahimahi(&text, least),
        Trace::Csv(_) => csv(&text, least),
    }
}

/// The rate of a link given only by its trace: for mahimahi the mean over its period, for a table the first
/// rate, which also applies before its time.
pub(crate) fn rate(kind: &str, file: &FilePath) -> Option<Rate> {
    let text = text(file).ok()?;
    let lines = lines(&text).ok()?;
    if kind == "mahimahi" {
        let period_ms: u64 = lines.last()?.1.parse().ok()?;
        let bits = (lines.len() as u64).checked_mul(OPPORTUNITY * 8 * 1000)?;
        return bits.checked_div(period_ms).map(Rate::from_bps);
    }
    let ((_, head), rows) = lines.split_first()?;
    let column = head.split(',').position(|name| name.trim() == "rate")?;
    let rates = rows.iter().filter_map(|(_, row)| row.split(',').nth(column)?.trim().parse().ok());
    rates.into_iter().find(|rate: &Rate| *rate != Rate::ZERO)
}

fn text(path: &FilePath) -> Result<String, String> {
    let bytes = file::read(path, file::MAX_BYTES).map_err(|fault| match fault {
        Fault::NotAFile => format!("{fault}; expected a trace"),
        _ => fault.to_string(),
    })?;
    String::from_utf8(bytes).map_err(|_| "is not a text".to_owned())
}

/// The lines with content, with their numbers from 1.
fn lines(text: &str) -> Result<Vec<(usize, &str)>, String> {
    let all = (1..).zip(text.lines().map(str::trim));
    let said: Vec<_> = all.filter(|(_, line)| !line.is_empty() && !line.starts_with('#')).collect();
    if said.len() > MAX_LINES {
        return Err(format!("has {} lines; at most {MAX_LINES} are read", said.len()));
    }
    Ok(said)
}

fn mahimahi(text: &str, least: Least) -> Result<LinkProfile, String> {
    let mut times: Vec<u64> = Vec::new();
    for (number, line) in lines(text)? {
        let time = line.parse::<u64>().ok().filter(|time| *time <= 1_000_000_000);
        let time = time.ok_or_else(|| {
            format!("line {number}: {line:?} is not a time in whole milliseconds (at most 10^9)")
        })?;
        if let Some(before) = times.last().filter(|before| time < **before) {
            return Err(format!("line {number}: goes back in time, from {before} to {time} ms"));
        }
        times.push(time);
    }
    let period = *times.last().ok_or("is empty: it lets nothing through")?;
    if period == 0 {
        return Err("has a period of zero length: its last time is 0 ms".to_owned());
    }
    // The opportunity that completes the first packet.
    let needed = (least.mtu.as_bytes().div_ceil(OPPORTUNITY).max(1) - 1) as usize;
    let through = needed as u64 / times.len() as u64 * period + times[needed % times.len()];
    let through = Duration::from_millis(through);
    if through > least.run {
        let Least { mtu, run } = least;
        return Err(format!(
            "lets one packet of {mtu} through at {through}, after the run ({run})"
        ));
    }
    Ok(LinkProfile::Opportunities(times.into()))
}

fn csv(text: &str, least: Least) -> Result<LinkProfile, String> {
    let lines = lines(text)?;
    let Some(((_, head), rows)) = lines.split_first() else {
        return Err("is empty: it has no line of column names".to_owned());
    };
    let columns: Vec<&str> = head.split(',').map(str::trim).collect();
    let known = ["time", "rate", "delay", "loss"];
    if let Some(column) = columns.iter().find(|column| !known.contains(*column)) {
        return Err(format!("unknown column {column:?}: columns are time, rate, delay and loss"));
    }
    if columns.len() < 2 || columns.iter().filter(|column| **column == "time").count() != 1 {
        return Err("needs a column `time` and one of `rate`, `delay` and `loss`".to_owned());
    }
    if (1..columns.len()).any(|at| columns[..at].contains(&columns[at])) {
        return Err("names a column twice".to_owned());
    }
    let mut steps: Vec<Step> = Vec::new();
    for (number, row) in rows {
        let step =
            step(&columns, row, least.run).map_err(|fault| format!("line {number}: {fault}"))?;
        if let Some(before) = steps.last().filter(|before| step.at <= before.at) {
            let (at, before) = (step.at, before.at);
            return Err(if at == before {
                format!("line {number}: a period of zero length, both times are {at}")
            } else {
                format!("line {number}: goes back in time, from {before} to {at}")
            });
        }
        let rate = step.rate.filter(|rate| *rate != Rate::ZERO);
        if let Some(rate) = rate
            && let Some(time) = rate.time_for(least.mtu.as_bytes()).filter(|time| *time > least.run)
        {
            let Least { mtu, run } = least;
            return Err(format!(
                "line {number}: at {rate} one packet of {mtu} takes {time}, longer than the run ({run})"
            ));
        }
        steps.push(step);
    }
    if steps.is_empty() {
        return Err("is empty: it has column names and no line below".to_owned());
    }
    if let Some(fault) = silent(&steps) {
        return Err(fault.to_owned());
    }
    Ok(LinkProfile::Steps(steps.into()))
}

fn step(columns: &[&str], row: &str, run: Duration) -> Result<Step, String> {
    let cells: Vec<&str> = row.split(',').map(str::trim).collect();
    if cells.len() != columns.len() {
        return Err(format!("{} cells for {} columns", cells.len(), columns.len()));
    }
    let cell = |name| {
        let at = columns.iter().position(|column| *column == name)?;
        Some(cells[at]).filter(|cell| !cell.is_empty())
    };
    let loss = |text: &str| {
        let value = text.parse::<f64>().ok().filter(|loss| (0.0..=1.0).contains(loss));
        value.ok_or_else(|| format!("{text:?} is not a probability, 0 to 1"))
    };
    let parsed = |text: &str| text.parse::<Duration>().map_err(|fault| fault.to_string());
    let delay = cell("delay").map(parsed).transpose()?;
    if let Some(delay) = delay.filter(|delay| *delay > Duration::from_secs(3600)) {
        return Err(format!("a delay of {delay} is more than 1h"));
    }
    if let Some(delay) = delay.filter(|delay| *delay > run) {
        return Err(format!("a delay of {delay} is longer than the run ({run})"));
    }
    let rate = |text: &str| text.parse::<Rate>().map_err(|fault| fault.to_string());
    Ok(Step {
        at: parsed(cell("time").ok_or("no time")?)?,
        rate: cell("rate").map(rate).transpose()?,
        delay,
        loss: cell("loss").map(loss).transpose()?,
    })
}

/// The reason why steps end without transmission, if they do.
pub(crate) fn silent(steps: &[Step]) -> Option<&'static str> {
    let last = steps.iter().rev().find_map(|step| step.rate)?;
    (last == Rate::ZERO).then_some("the last rate is 0: nothing is ever sent after it")
}
