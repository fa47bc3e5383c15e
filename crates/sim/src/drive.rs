//! Drives a world from start to end, pausing at the edges where its state is sampled.

use std::sync::atomic::{AtomicBool, Ordering};

use talkspurt_proto::probe::{LinkCounters, Probe};
use talkspurt_proto::time::{Duration, Instant};

use crate::world::World;

/// When a run is sampled.
#[derive(Clone, Copy, Debug)]
pub struct Timetable {
    /// Length of the run.
    pub duration: Duration,
    /// Bin width of the series.
    pub interval: Duration,
    /// The measurement window.
    pub window: (Instant, Instant),
    /// How often links are settled between these edges, for probes that sort notes.
    pub settle: Option<Duration>,
}

impl Timetable {
    /// The end of the next part of the run after `now`, at which links are settled, and whether it is an edge,
    /// at which counters are reported too.
    #[must_use]
    pub fn stop_after(&self, now: Instant) -> (Instant, bool) {
        let edge = self.after(now);
        let stop = self.settle.map_or(edge, |width| multiple_after(now, width).min(edge));
        (stop, stop == edge)
    }

    /// The next edge after `now`: end of a bin, edge of the window, or end of the run.
    fn after(&self, now: Instant) -> Instant {
        let end = Instant::ZERO + self.duration;
        [multiple_after(now, self.interval), self.window.0, self.window.1]
            .into_iter()
            .filter(|edge| *edge > now)
            .fold(end, Instant::min)
    }
}

/// The next multiple of `width` after `now`.
fn multiple_after(now: Instant, width: Duration) -> Instant {
    Instant::ZERO + width * (now.as_nanos() / width.as_nanos().max(1) + 1)
}

/// Runs `world` to its end; at every edge the links are settled and their counters reported. False if `cancel`
/// was set before the end; it is checked at every edge and every few thousand events.
pub fn drive<P: Probe>(
    world: &mut World<P>,
    timetable: &Timetable,
    cancel: &AtomicBool,
    mut look: impl FnMut(Instant, &[LinkCounters], &mut P),
) -> bool {
    let end = Instant::ZERO + timetable.duration;
    look(Instant::ZERO, &world.counters(), &mut world.probe);
    while world.now() < end {
        let cancelled = cancel.load(Ordering::Relaxed);
        let (stop, is_edge) = timetable.stop_after(world.now());
        if cancelled || !world.run_until(stop, cancel) {
            return false;
        }
        world.settle();
        world.probe.settled(stop);
        if !is_edge {
            continue;
        }
        let counters = world.counters();
        world.forget_maxima();
        look(world.now(), &counters, &mut world.probe);
    }
    world.finish_playout();
    world.assert_conservation();
    true
}
