//! The fixed jitter buffer. A frame is played a constant time after its place in the recording,
//! whatever its length; the constant is set once, from the first frame that arrives or from the
//! sender's clock. It never adapts, so every late frame can be traced to the network. Integer
//! arithmetic throughout: the fates of frames are part of the run's digest.

use std::collections::BTreeMap;

use talkspurt_proto::probe::Playout;
use talkspurt_proto::time::{Duration, Instant};

use super::{Anchor, Config};

/// A fixed jitter buffer for one stream of frames.
#[derive(Clone, Debug)]
#[repr(C)]
pub struct Buffer {
    config: Config,
    step: Duration,
    /// When sample 0 of the stream would be played; may lie before the clock's origin.
    origin: Option<i64>,
    seen: Seen,
    longest: Duration,
}

impl Buffer {
    /// A buffer for frames that begin at multiples of `step` and hold up to `longest` of sound: the
    /// same, for a stream whose frames are all of one length.
    #[must_use]
    pub fn new(config: Config, step: Duration, longest: Duration) -> Self {
        Self { config, step, origin: None, seen: Seen::default(), longest }
    }

    /// Decides on the frame that begins `index` steps after the start of the stream, arrived at
    /// `arrival` by the receiver's clock. `captured` is the instant of its first sample on the same
    /// clock and only used with [`Anchor::Capture`]. The answer's instants are on the receiver's
    /// clock; a frame that arrives exactly when it is due is played.
    pub fn on_frame(&mut self, index: u32, captured: Instant, arrival: Instant) -> Playout {
        if !self.seen.insert(index) {
            return Playout::Duplicate;
        }
        let due = match self.config.anchor {
            Anchor::Capture => captured + self.longest + self.config.buffer,
            Anchor::FirstArrival => self.due_after_first(index, arrival),
        };
        if arrival <= due { Playout::Played(due) } else { Playout::Late(due) }
    }

    fn due_after_first(&mut self, index: u32, arrival: Instant) -> Instant {
        // Two hundred and ninety years either way.
        let position = i64::from(index).saturating_mul(self.step.as_nanos() as i64);
        let origin = *self.origin.get_or_insert_with(|| {
            ((arrival + self.config.buffer).as_nanos() as i64).saturating_sub(position)
        });
        Instant::from_nanos(origin.saturating_add(position).max(0) as u64)
    }
}

/// Which frames have come: 64 to an entry, so that a dense stream takes two bits a frame and a
/// stray index of four thousand million takes one entry. The latest entry lies at hand, since most
/// frames belong there.
#[derive(Clone, Debug, Default)]
#[repr(C)]
struct Seen {
    latest: (u32, u64),
    others: BTreeMap<u32, u64>,
}

impl Seen {
    /// Notes it; false if it was there before.
    fn insert(&mut self, index: u32) -> bool {
        if self.latest.0 != index / 64 {
            let (entry, bits) = std::mem::take(&mut self.latest);
            self.others.insert(entry, bits);
            self.latest = (index / 64, self.others.remove(&(index / 64)).unwrap_or_default());
        }
        let bit = 1 << (index % 64);
        let new = self.latest.1 & bit == 0;
        self.latest.1 |= bit;
        new
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const FRAME: Duration = Duration::from_millis(20);

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(ms)
    }
    fn buffer(anchor: Anchor, ms: u64) -> Buffer {
        Buffer::new(
            Config { anchor, buffer: Duration::from_millis(ms), ..Config::default() },
            FRAME,
            FRAME,
        )
    }

    #[test]
    fn the_first_arrival_sets_the_pace() {
        let mut b = buffer(Anchor::FirstArrival, 60);
        assert_eq!(b.on_frame(0, at(0), at(100)), Playout::Played(at(160)));
        assert_eq!(b.on_frame(1, at(20), at(180)), Playout::Played(at(180)));
        let late = Instant::from_nanos(at(200).as_nanos() + 1);
        assert_eq!(b.on_frame(2, at(40), late), Playout::Late(at(200)));
        assert_eq!(b.on_frame(2, at(40), at(190)), Playout::Duplicate);
        assert_eq!(b.on_frame(50, at(1000), at(1100)), Playout::Played(at(1160)));
    }

    #[test]
    fn the_anchor_need_not_be_frame_0() {
        let mut b = buffer(Anchor::FirstArrival, 60);
        assert_eq!(b.on_frame(3, at(60), at(100)), Playout::Played(at(160)));
        assert_eq!(b.on_frame(2, at(40), at(140)), Playout::Played(at(140)));
        assert_eq!(b.on_frame(1, at(20), at(140)), Playout::Late(at(120)));
        // Frame 0 of a stream whose frame 100 came first was due before the clock began.
        let mut b = buffer(Anchor::FirstArrival, 0);
        assert_eq!(b.on_frame(100, at(0), at(100)), Playout::Played(at(100)));
        assert_eq!(b.on_frame(0, at(0), at(101)), Playout::Late(Instant::ZERO));
    }

    #[test]
    fn the_senders_clock_can_be_the_anchor() {
        let mut b = buffer(Anchor::Capture, 60);
        assert_eq!(b.on_frame(0, at(500), at(570)), Playout::Played(at(580)));
        assert_eq!(b.on_frame(1, at(520), at(601)), Playout::Late(at(600)));
    }

    proptest! {
        /// Whatever the order, mouth-to-ear delay is one constant, and only the first copy counts:
        /// among strays, and among neighbours, which share an entry and come back to one left.
        #[test]
        fn playout_is_isochronous(
            arrivals in prop::collection::vec(
                (prop_oneof![1 => any::<u32>(), 3 => 0..300_u32], 0..1_u64 << 40),
                1..200,
            ),
        ) {
            let mut b = buffer(Anchor::FirstArrival, 60);
            let mut seen = std::collections::BTreeSet::new();
            let (first, base) = arrivals[0];
            for (index, arrival) in arrivals {
                let due = base as i128 + 60_000_000
                    + (i128::from(index) - i128::from(first)) * 20_000_000;
                let due = Instant::from_nanos(due.max(0) as u64);
                let arrival = Instant::from_nanos(arrival);
                let expected = match (seen.insert(index), arrival <= due) {
                    (false, _) => Playout::Duplicate,
                    (true, true) => Playout::Played(due),
                    (true, false) => Playout::Late(due),
                };
                prop_assert_eq!(b.on_frame(index, Instant::ZERO, arrival), expected);
            }
        }
    }
}
