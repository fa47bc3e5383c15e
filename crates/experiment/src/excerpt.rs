//! A run once more, as far as it is shown: the packets of the stretch that a report animates.

use talkspurt_proto::time::Instant;
use talkspurt_record::{Excerpt, Shown};
use talkspurt_scenario::Point;

use crate::Shared;
use crate::layout::{layout, window};
use crate::rerun::again;

/// The packets of the stretch that the scenario names (`record.animation`). Where it names no
/// beginning: around the first drop in the window of measurement, or, for a run that is `lossless`
/// there, from the window's beginning.
///
/// # Errors
/// Words for what could not be read, or "cancelled".
pub fn excerpt(point: &Point, lossless: bool, shared: &Shared) -> Result<Shown, String> {
    let Point { scenario, network, .. } = point;
    let asked = &scenario.record.animation;
    let begin = lossless.then_some(window(scenario).0);
    let from = asked.from.map(|from| Instant::ZERO + from).or(begin);
    let to = Instant::ZERO + asked.to.unwrap_or(scenario.duration);
    let probe = Excerpt::new(layout(scenario, network), from, to, asked.packets as usize);
    let (probe, now) = again(point, probe, shared, |now, probe| probe.complete(now))?;
    Ok(probe.finish(now))
}
