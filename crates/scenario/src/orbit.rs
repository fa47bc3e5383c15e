//! Satellites: their propagation delay, and the steps of their hand-overs.

use talkspurt_proto::math;
use talkspurt_proto::time::{Duration, Instant};

use crate::model::{Orbit, Step};

/// Equatorial radius of the Earth in metres (WGS 84).
const RADIUS: f64 = 6_378_137.0;
/// Shorter than in any constellation, but long enough to limit the steps of a run.
pub(crate) const MIN_HANDOVER: Duration = Duration::from_millis(1);
/// Speed of light in metres per second (SI).
const LIGHT: f64 = 299_792_458.0;

/// Propagation delay up to a satellite at this elevation, and down at the same elevation.
///
/// The slant range √((R sin ε)² + 2Rh + h²) − R sin ε follows from the triangle of the Earth's centre,
/// station and satellite.
pub(crate) fn over(orbit: &Orbit, degrees: f64) -> Duration {
    let height = orbit.altitude_km * 1000.0;
    let zenith = RADIUS * math::sin(degrees.to_radians());
    let slant = (zenith * zenith + 2.0 * RADIUS * height + height * height).sqrt() - zenith;
    Duration::from_nanos(math::round_u64(2.0 * slant / LIGHT * 1e9))
}

/// The delay over the first satellite.
pub(crate) fn first(orbit: &Orbit) -> Duration {
    orbit.elevations.first().map_or(Duration::ZERO, |degrees| over(orbit, *degrees))
}

/// The hand-over steps within the run, for a direction with this terrestrial delay and loss.
pub(crate) fn steps(orbit: &Orbit, ground: Duration, loss: f64, run: Duration) -> Vec<Step> {
    let Some(every) = orbit.handover.filter(|every| *every >= MIN_HANDOVER) else {
        return Vec::new();
    };
    // A run that is too long is reported elsewhere.
    let run = run.as_nanos().min(Instant::HORIZON.as_nanos());
    let turns = orbit.elevations.iter().cycle().skip(1).zip(1..=run / every.as_nanos());
    let mut steps = Vec::new();
    for (degrees, number) in turns {
        let at = every * number;
        let disturbed = orbit.gap_loss > 0.0 && !orbit.gap.is_zero();
        let delay = Some(ground + over(orbit, *degrees));
        let gap_loss = disturbed.then_some(orbit.gap_loss);
        steps.push(Step { at, rate: None, delay, loss: gap_loss });
        if disturbed {
            steps.push(Step { at: at + orbit.gap, rate: None, delay: None, loss: Some(loss) });
        }
    }
    steps
}
