//! The packets that a report animates, collected by repeating part of a run.

use talkspurt_flow::Files;
use talkspurt_proto::time::Instant;
use talkspurt_record::{Begin, Excerpt, Shown};
use talkspurt_scenario::Point;

use crate::layout::{layout, window};
use crate::rerun::again;
use crate::{Failure, Shared};

/// The packets of the scenario's excerpt (`record.animation`). Without a configured start it lies
/// around the first drop in the measurement window, or, for a run that is `lossless` there, at the
/// start of the window.
///
/// # Errors
/// A file cannot be read, or `shared` asks the run to stop.
pub fn excerpt(
    point: &Point,
    files: &dyn Files,
    lossless: bool,
    shared: &Shared,
) -> Result<Shown, Failure> {
    let point = &*point.expanded();
    let Point { scenario, network, .. } = point;
    let asked = &scenario.record.animation;
    let lossless = lossless.then_some(window(scenario).0);
    let from = asked.from.map(|from| Instant::ZERO + from).or(lossless);
    let begin = from.map_or(Begin::BeforeDrop(0), Begin::At);
    let to = Instant::ZERO + asked.to.unwrap_or(scenario.duration);
    let probe = Excerpt::new(layout(scenario, network), begin, to, asked.packets as usize);
    let (probe, now) = again(point, files, probe, false, shared, |now, probe| probe.complete(now))?;
    Ok(probe.finish(now))
}
