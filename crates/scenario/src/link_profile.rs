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
    let columns = Table::of(head).ok()?;
    let rates = rows.iter().filter_map(|(_, row)| columns.step(row).ok()?.rate);
    rates.into_iter().find(|rate| *rate != Rate::ZERO)
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
    let columns = Table::of(head)?;
    let mut steps: Vec<Step> = Vec::new();
    for (number, row) in rows {
        let in_line = |fault| format!("line {number}: {fault}");
        let step = columns.step(row).map_err(in_line)?;
        if let Some(delay) = step.delay.filter(|delay| *delay > Duration::from_secs(3600)) {
            return Err(in_line(format!("a delay of {delay} is more than 1h")));
        }
        if let Some(delay) = step.delay.filter(|delay| *delay > least.run) {
            let run = least.run;
            return Err(in_line(format!("a delay of {delay} is longer than the run ({run})")));
        }
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

/// The columns of a table: which quantity each has, and the unit of its numbers if its name ends with one, in
/// seconds, bits per second or parts of 1.
struct Table<'a> {
    columns: Vec<(&'a str, Option<f64>)>,
}

/// The quantities, with the units that names of columns can end with.
const QUANTITIES: [(&str, &[(&str, f64)]); 4] = [
    ("time", &[("s", 1.0), ("ms", 1e-3), ("us", 1e-6)]),
    ("rate", &[("bps", 1.0), ("kbps", 1e3), ("Mbps", 1e6), ("Gbps", 1e9)]),
    ("delay", &[("s", 1.0), ("ms", 1e-3), ("us", 1e-6)]),
    ("loss", &[("percent", 0.01)]),
];

impl<'a> Table<'a> {
    fn of(head: &'a str) -> Result<Self, String> {
        let named = |name: &'a str| -> Result<(&'a str, Option<f64>), String> {
            let (quantity, unit) = name.split_once('_').map_or((name, None), |(q, u)| (q, Some(u)));
            let known = QUANTITIES.iter().find(|(known, _)| *known == quantity);
            let unit = unit.map(|unit| {
                let (_, units) = known?;
                let found = units.iter().find(|(known, _)| known.eq_ignore_ascii_case(unit))?;
                Some(found.1)
            });
            match (known, unit) {
                (Some(_), None) => Ok((quantity, None)),
                (Some(_), Some(Some(unit))) => Ok((quantity, Some(unit))),
                _ if name.parse::<f64>().is_ok() => Err(format!(
                    "its first line has no column names but {name:?}: write for example \
                     time_s,rate_bps above it"
                )),
                _ if name.contains([';', '\t']) => {
                    Err(format!("unknown column {name:?}: columns are separated by commas"))
                }
                _ => Err(format!(
                    "unknown column {name:?}: columns are time, rate, delay and loss, with numbers \
                     also time_s, time_ms, rate_bps, rate_kbps, rate_Mbps, delay_ms, loss_percent"
                )),
            }
        };
        let columns =
            head.split(',').map(|name| named(name.trim())).collect::<Result<Vec<_>, _>>()?;
        let count = |name| columns.iter().filter(|(quantity, _)| *quantity == name).count();
        if columns.len() < 2 || count("time") == 0 {
            return Err("needs a column `time` and one of `rate`, `delay` and `loss`".to_owned());
        }
        if QUANTITIES.iter().any(|(name, _)| count(name) > 1) {
            return Err("names a column twice".to_owned());
        }
        Ok(Self { columns })
    }

    fn step(&self, row: &str) -> Result<Step, String> {
        let cells: Vec<&str> = row.split(',').map(str::trim).collect();
        if cells.len() != self.columns.len() {
            return Err(format!("{} cells for {} columns", cells.len(), self.columns.len()));
        }
        let cell = |name| {
            let at = self.columns.iter().position(|(quantity, _)| *quantity == name)?;
            Some((cells[at], self.columns[at].1)).filter(|(cell, _)| !cell.is_empty())
        };
        let span = |name| {
            cell(name).map(|(text, unit)| match unit {
                Some(unit) => Ok(Duration::from_secs_f64(number(text)? * unit)),
                None => text.parse::<Duration>().map_err(|fault| bare(name, text, &fault)),
            })
        };
        let rate = cell("rate").map(|(text, unit)| match unit {
            Some(unit) => Ok(Rate::from_bps((number(text)? * unit).round() as u64)),
            None => text.parse::<Rate>().map_err(|fault| bare("rate", text, &fault)),
        });
        let loss = cell("loss").map(|(text, unit)| {
            let scale = unit.unwrap_or(1.0);
            let value = text.parse::<f64>().ok().map(|value| value * scale);
            let most = (1.0 / scale).round();
            let why = || format!("{text:?} is not a probability, 0 to {most}");
            value.filter(|loss| (0.0..=1.0).contains(loss)).ok_or_else(why)
        });
        Ok(Step {
            at: span("time").ok_or("no time")??,
            rate: rate.transpose()?,
            delay: span("delay").transpose()?,
            loss: loss.transpose()?,
        })
    }
}

/// A number in a column whose name has the unit; at most a thousand million million, so that no unit
/// overflows.
fn number(text: &str) -> Result<f64, String> {
    let value = text.parse::<f64>().ok().filter(|value| (0.0..=1e15).contains(value));
    value.ok_or_else(|| format!("{text:?} is not a number from zero on"))
}

/// The fault of a quantity without a unit: the name of the column can have it.
fn bare(name: &str, text: &str, fault: &impl std::fmt::Display) -> String {
    let units = QUANTITIES.iter().find(|(known, _)| *known == name);
    match units.filter(|_| text.parse::<f64>().is_ok()) {
        Some((_, units)) => {
            let names: Vec<_> = units.iter().map(|(unit, _)| format!("{name}_{unit}")).collect();
            format!("{fault}; or name the column by its unit: {}", names.join(", "))
        }
        None => fault.to_string(),
    }
}

/// The reason why steps end without transmission, if they do.
pub(crate) fn silent(steps: &[Step]) -> Option<&'static str> {
    let last = steps.iter().rev().find_map(|step| step.rate)?;
    (last == Rate::ZERO).then_some("the last rate is 0: nothing is ever sent after it")
}
