//! Time-varying conditions of one direction of a link, from `steps` or a trace file.

use std::sync::Arc;

use talkspurt_app::file::Files;
use talkspurt_app::table::{self, DELAY, LOSS, Line, Lines, MAX_LINES, RATE, TIME, Table};
use talkspurt_proto::time::Duration;
use talkspurt_proto::units::{Rate, Size};

use crate::model::{Back, Link, Step, Trace, TraceFile};
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

/// Longest period of a trace of mahimahi, and its latest time: the year 2255 in milliseconds since 1970.
const MAX_PERIOD_MS: u64 = 1_000_000_000;
const MAX_EPOCH_MS: u64 = 9_000_000_000_000;

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
    files: &dyn Files,
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
    let forth = course(path, &link.steps, link.trace.as_ref(), files, least, found);
    let back = match &link.back {
        None => forth.clone(),
        Some(back) if follows(back) => forth.clone(),
        Some(back) => {
            let steps = back.steps.as_deref().unwrap_or_default();
            course(&path.key("back"), steps, back.trace.as_ref(), files, least, found)
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
    files: &dyn Files,
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
    let file = &trace.file().file;
    match read(trace, files, least) {
        Ok((course, notes)) => {
            notes.iter().for_each(|note| found.note(&path.key("trace").key("file"), file, note));
            Some(course)
        }
        Err(fault) => {
            let message = format!("{}: {fault}", file.display());
            found.add(path.key("trace").key("file"), message);
            None
        }
    }
}

/// The profile in a trace file, and what was read otherwise than written.
fn read(
    trace: &Trace,
    files: &dyn Files,
    least: Least,
) -> Result<(LinkProfile, Vec<String>), String> {
    let TraceFile { file, from_first } = trace.file();
    let text = table::text(files, file, "a trace")?;
    match trace {
        Trace::Mahimahi(_) => {
            Ok((mahimahi(&opportunities(&text, *from_first)?, least)?, Vec::new()))
        }
        Trace::Csv(_) => {
            let (steps, mut notes) = steps(&text, *from_first)?;
            if steps.get(1).is_some_and(|(second, _)| second.at > least.run) {
                notes.push(format!("only its first line is within the run ({})", least.run));
            }
            Ok((LinkProfile::Steps(fitting(steps, least)?.into()), notes))
        }
    }
}

/// The rate of a link given only by its trace: for mahimahi the mean over its period, for a table the first
/// rate above zero, which also applies before its time; `None` if it has none.
///
/// # Errors
/// The fault of the file.
pub(crate) fn rate(trace: &Trace, files: &dyn Files) -> Result<Option<Rate>, String> {
    let TraceFile { file, from_first } = trace.file();
    let text = table::text(files, file, "a trace")?;
    match trace {
        Trace::Mahimahi(_) => {
            let times = opportunities(&text, *from_first)?;
            Ok(Some(mean_rate(&times)))
        }
        Trace::Csv(_) => {
            let mut rates =
                steps(&text, *from_first)?.0.into_iter().filter_map(|(step, _)| step.rate);
            Ok(rates.find(|rate| *rate != Rate::ZERO))
        }
    }
}

/// The mean rate of opportunities over their period.
pub(crate) fn mean_rate(times: &[u64]) -> Rate {
    let bits = u128::from(OPPORTUNITY * 8 * 1000) * times.len() as u128;
    let mean = bits / u128::from(times.last().copied().unwrap_or(0).max(1));
    Rate::from_bps(u64::try_from(mean).unwrap_or(u64::MAX))
}

/// The times of a mahimahi trace in milliseconds, the last above zero.
fn opportunities(text: &str, from_first: bool) -> Result<Vec<u64>, String> {
    let mut times: Vec<u64> = Vec::new();
    let (mut first, mut before) = (0, 0);
    for Line { number, cells } in Lines::of(text) {
        let line = cells.join(",");
        let time = line.parse::<u64>().ok().filter(|time| *time <= MAX_EPOCH_MS);
        let time = time.ok_or_else(|| {
            format!("line {number}: {line:?} is not a time in whole milliseconds")
        })?;
        if times.is_empty() && from_first {
            first = time;
        }
        if time < before {
            return Err(format!("line {number}: goes back in time, from {before} to {time} ms"));
        }
        if times.len() == MAX_LINES {
            return Err(format!("has more than {MAX_LINES} lines, the most that are read"));
        }
        before = time;
        if time - first > MAX_PERIOD_MS {
            let most = MAX_PERIOD_MS;
            return Err(format!("line {number}: {time} ms is later than {most} ms; {FROM_FIRST}"));
        }
        times.push(time - first);
    }
    match times.last() {
        None => Err("is empty: it lets nothing through".to_owned()),
        Some(0) if from_first => Err("has a period of zero length: all its times are equal".into()),
        Some(0) => Err("has a period of zero length: its last time is 0 ms".to_owned()),
        Some(_) => Ok(times),
    }
}

fn mahimahi(times: &[u64], least: Least) -> Result<LinkProfile, String> {
    // The opportunity that completes the first packet.
    let needed = (least.mtu.as_bytes().div_ceil(OPPORTUNITY).max(1) - 1) as usize;
    let period = times[times.len() - 1];
    let through = needed as u64 / times.len() as u64 * period + times[needed % times.len()];
    let Least { mtu, run } = least;
    let at = |ms: u64| Duration::from_nanos(ms.saturating_mul(1_000_000));
    if at(through) > run {
        let through = at(through);
        let fault = format!("lets one packet of {mtu} through at {through}, after the run ({run})");
        return Err(if at(times[0]) > run { format!("{fault}; {FROM_FIRST}") } else { fault });
    }
    Ok(LinkProfile::Opportunities(times.into()))
}

const FROM_FIRST: &str =
    "times count from the start of the run, or with `from_first = true` from the first time";

/// Steps with the numbers of their lines.
type Steps = Vec<(Step, usize)>;

/// The steps of a table, and notes.
fn steps(text: &str, from_first: bool) -> Result<(Steps, Vec<String>), String> {
    let mut table = Table::of(text, &[&TIME, &RATE, &DELAY, &LOSS])?;
    let changes = [&RATE, &DELAY, &LOSS].iter().any(|quantity| table.has(quantity));
    if !table.has(&TIME) || !changes {
        let other = match &table.others[..] {
            [] => String::new(),
            others => format!("; it has {}", others.join(", ")),
        };
        return Err(format!("needs a column `time` and one of `rate`, `delay` and `loss`{other}"));
    }
    let mut notes = table::unread(&table.others);
    let mut steps = Steps::new();
    let mut times: Vec<i64> = Vec::new();
    while let Some(row) = table.row()? {
        let number = row.number;
        let step = || -> Result<_, String> {
            let time = row.time()?.ok_or("no time")?;
            let (rate, delay, loss) = (row.rate()?, row.delay()?, row.loss()?);
            Ok((time, Step { at: Duration::ZERO, rate, delay, loss }))
        };
        let (time, step) = step().map_err(|fault| format!("line {number}: {fault}"))?;
        if let Some(before) = times.last().filter(|before| time < **before) {
            let [before, time] = [*before, time].map(table::signed);
            return Err(format!("line {number}: goes back in time, from {before} to {time}"));
        }
        if time < 0 && !from_first {
            let time = table::signed(time);
            return Err(format!(
                "line {number}: {time} is before the start of the run; {FROM_FIRST}"
            ));
        }
        // Lines of one time with different columns are one step.
        if times.last() == Some(&time)
            && let Some((last, _)) = steps.last_mut()
            && !(last.rate.is_some() && step.rate.is_some())
            && !(last.delay.is_some() && step.delay.is_some())
            && !(last.loss.is_some() && step.loss.is_some())
        {
            last.rate = last.rate.or(step.rate);
            last.delay = last.delay.or(step.delay);
            last.loss = last.loss.or(step.loss);
            continue;
        }
        times.push(time);
        steps.push((step, number));
    }
    let Some(first) = times.first().copied() else {
        return Err("is empty: it has column names and no line below".to_owned());
    };
    notes.extend(table::spread(&mut times)?);
    let start = if from_first { first } else { 0 };
    for ((step, _), time) in steps.iter_mut().zip(times) {
        step.at = Duration::from_nanos(time.abs_diff(start));
    }
    Ok((steps, notes))
}

/// The steps, if they suit the link and the run.
fn fitting(steps: Steps, least: Least) -> Result<Vec<Step>, String> {
    let Least { mtu, run } = least;
    let first = steps[0].0.at;
    if first > run {
        return Err(format!(
            "its first time, {first}, is after the end of the run ({run}); {FROM_FIRST}"
        ));
    }
    for (step, number) in &steps {
        let in_line = |fault| Err(format!("line {number}: {fault}"));
        match step.delay {
            Some(delay) if delay > Duration::from_secs(3600) => {
                return in_line(format!("a delay of {delay} is more than 1h"));
            }
            Some(delay) if delay > run => {
                return in_line(format!("a delay of {delay} is longer than the run ({run})"));
            }
            _ => {}
        }
        if let Some(rate) = step.rate.filter(|rate| *rate != Rate::ZERO)
            && let Some(time) = rate.time_for(mtu.as_bytes()).filter(|time| *time > run)
        {
            return in_line(format!(
                "at {rate} one packet of {mtu} takes {time}, longer than the run ({run})"
            ));
        }
    }
    let steps: Vec<Step> = steps.into_iter().map(|(step, _)| step).collect();
    silent(&steps).map_or(Ok(steps), |fault| Err(fault.to_owned()))
}

/// The reason why steps end without transmission, if they do.
pub(crate) fn silent(steps: &[Step]) -> Option<&'static str> {
    let last = steps.iter().rev().find_map(|step| step.rate)?;
    (last == Rate::ZERO).then_some("the last rate is 0: nothing is ever sent after it")
}
