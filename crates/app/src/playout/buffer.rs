//! The jitter buffer of a stream, of any kind, and the frames that it has seen.

use std::collections::BTreeMap;

use talkspurt_proto::prefetch::prefetch;
use talkspurt_proto::probe::Playout;
use talkspurt_proto::time::{Duration, Instant};

use super::adaptive::Adaptive;
use super::fixed::Fixed;
use super::losses::Losses;
use super::neteq::NetEq;
use super::talkspurt::Talkspurt;
use super::timeline::Stretch;
use super::{Config, Kind, Profile};

/// A frame that has arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame {
    /// Step of the media clock at which it begins.
    pub slot: u32,
    /// Its length in steps.
    pub steps: u32,
    /// Number of its packet; those of lost packets are missing, pauses of the speaker have none.
    pub index: u32,
    /// Index of its encoding; `None` for comfort noise.
    pub encoding: Option<u8>,
    /// Number of packets before it whose sound it also contains.
    pub repeats: u16,
}

/// What became of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decision {
    /// The frame.
    pub frame: Frame,
    /// How long playout stood still before it, filled by concealment.
    pub paused: Duration,
    /// First step of the packet that its sound is from: a later one if it was recovered.
    pub from: u32,
    /// When it is played, or why not.
    pub playout: Playout,
}

impl Decision {
    /// Without a pause before the frame.
    pub(super) const fn of(frame: Frame, playout: Playout) -> Self {
        Self { frame, paused: Duration::ZERO, from: frame.slot, playout }
    }
}

/// A jitter buffer for one stream of frames.
#[derive(Clone, Debug)]
#[repr(C)]
pub struct Buffer {
    method: Method,
    seen: Seen,
    /// Of a stream with redundancy.
    losses: Option<Box<Losses>>,
}

#[derive(Clone, Debug)]
enum Method {
    Fixed(Fixed),
    Talkspurt(Talkspurt),
    Adaptive(Box<Adaptive>),
    NetEq(Box<NetEq>),
}

impl Buffer {
    /// Requests its state.
    pub(crate) fn prefetch(&self) {
        if let Method::Adaptive(adaptive) = &self.method {
            prefetch(&**adaptive, usize::MAX);
        }
    }

    /// Requests the frames that wait.
    pub(crate) fn prefetch_frames(&self) {
        if let Method::Adaptive(adaptive) = &self.method {
            adaptive.prefetch_frames();
        }
    }

    /// A buffer for frames that begin at multiples of `step` and last up to `longest`; both are equal if all
    /// frames have one length. An adaptive one keeps a timeline for rendering if `keeps_timeline`. Redundancy
    /// for a frame comes up to `reach` packets after it; with 0, there is none and [`Frame::repeats`] is
    /// ignored.
    #[must_use]
    pub fn new(
        config: &Config,
        (step, longest): (Duration, Duration),
        keeps_timeline: bool,
        reach: u32,
    ) -> Self {
        let method = match config.kind() {
            Kind::Fixed => {
                let anchor = config.anchor.unwrap_or_default();
                Method::Fixed(Fixed::new(config.buffer(), anchor, step, longest))
            }
            Kind::Talkspurt => Method::Talkspurt(Talkspurt::new(step)),
            Kind::Adaptive => match config.profile() {
                Profile::Talkspurt => {
                    Method::Adaptive(Box::new(Adaptive::new(config, step, keeps_timeline)))
                }
                Profile::Libwebrtc => {
                    Method::NetEq(Box::new(NetEq::new(config, step, keeps_timeline)))
                }
            },
        };
        let keeps_found = config.kind() != Kind::Adaptive;
        let losses = || Losses::new(config.recovery_wait, step, reach as usize, keeps_found);
        let losses = (reach > 0).then(|| Box::new(losses()));
        Self { method, seen: Seen::default(), losses }
    }

    /// Takes the frame that arrived at `arrival` by the receiver's clock. `captured` is the instant of its
    /// first sample on the same clock, used only with [`Anchor::Capture`](super::Anchor::Capture). Calls `tell`
    /// for each frame that is decided now, in the order of playout: this one, or with adaptive playout earlier
    /// ones. Instants are on the receiver's clock; a frame that arrives exactly when due is played.
    #[inline]
    pub fn on_frame(
        &mut self,
        frame: Frame,
        captured: Instant,
        arrival: Instant,
        mut tell: impl FnMut(Decision),
    ) {
        if !self.seen.insert(frame.slot) {
            return tell(Decision::of(frame, Playout::Duplicate));
        }
        if self.losses.is_some() {
            return self.on_repeating(frame, captured, arrival, &mut tell);
        }
        match &mut self.method {
            Method::Fixed(fixed) => {
                tell(Decision::of(frame, fixed.on_frame(frame.slot, captured, arrival)));
            }
            Method::Talkspurt(talkspurt) => tell(talkspurt.on_frame(frame, arrival)),
            Method::Adaptive(adaptive) => adaptive.on_frame(frame, arrival, None, &mut tell),
            Method::NetEq(neteq) => neteq.on_frame(frame, arrival, None, &mut tell),
        }
    }

    /// The same in a stream with redundancy.
    #[inline(never)]
    fn on_repeating(
        &mut self,
        frame: Frame,
        captured: Instant,
        arrival: Instant,
        tell: &mut impl FnMut(Decision),
    ) {
        let Some(losses) = &mut self.losses else { return };
        match &mut self.method {
            Method::Adaptive(it) => return it.on_frame(frame, arrival, Some(losses), tell),
            Method::NetEq(it) => return it.on_frame(frame, arrival, Some(losses), tell),
            Method::Fixed(_) | Method::Talkspurt(_) => {}
        }
        losses.recover_until(arrival, tell);
        losses.on_frame(&frame);
        let decision = match &mut self.method {
            Method::Talkspurt(talkspurt) => talkspurt.on_frame(frame, arrival),
            Method::Fixed(fixed) => {
                Decision::of(frame, fixed.on_frame(frame.slot, captured, arrival))
            }
            Method::Adaptive(_) | Method::NetEq(_) => return,
        };
        if let Playout::Played(due) = decision.playout {
            let early = due.saturating_since(arrival).as_nanos() as i64;
            losses.cover(&frame, due.as_nanos() as i64, |before| before <= early);
        }
        tell(decision);
    }

    /// Takes a lost frame that was restored at `now` from other packets of a stream with redundancy. It is
    /// [`Playout::Recovered`] if it is played, and otherwise stays lost: `tell` is called as by
    /// [`Buffer::on_frame`], but not for a frame that comes too late. Its delay is not that of the network.
    #[cold]
    pub fn on_restored(
        &mut self,
        frame: Frame,
        captured: Instant,
        now: Instant,
        mut tell: impl FnMut(Decision),
    ) {
        let Some(losses) = self.losses.as_deref_mut().filter(|_| !self.seen.has(frame.slot)) else {
            return;
        };
        let playout = match &mut self.method {
            Method::Adaptive(adaptive) => {
                return adaptive.on_restored(frame, now, losses, &mut tell);
            }
            Method::NetEq(neteq) => return neteq.on_restored(frame, now, losses, &mut tell),
            Method::Fixed(fixed) => fixed.on_frame(frame.slot, captured, now),
            Method::Talkspurt(talkspurt) => talkspurt.on_restored(&frame, now),
        };
        losses.recover_until(now, &mut tell);
        if let Playout::Played(due) = playout {
            losses.restore(frame, due.as_nanos() as i64);
            let early = due.saturating_since(now).as_nanos() as i64;
            losses.cover(&frame, due.as_nanos() as i64, |before| before <= early);
        }
    }

    /// Decides on all frames that are left: the run is over.
    pub fn finish(&mut self, mut tell: impl FnMut(Decision)) {
        match (&mut self.method, &mut self.losses) {
            (Method::Adaptive(adaptive), losses) => {
                adaptive.finish(losses.as_deref_mut(), &mut tell)
            }
            (Method::NetEq(neteq), losses) => neteq.finish(losses.as_deref_mut(), &mut tell),
            (_, Some(losses)) => losses.recover_until(Instant::HORIZON, &mut tell),
            _ => {}
        }
    }

    /// Delay of playout relative to the fastest packets, and the target; only of adaptive playout.
    #[must_use]
    pub fn gauges(&self) -> Option<[Duration; 2]> {
        let (delay, target) = match &self.method {
            Method::Adaptive(adaptive) => adaptive.gauges(),
            Method::NetEq(neteq) => neteq.gauges(),
            Method::Fixed(_) | Method::Talkspurt(_) => return None,
        };
        Some([delay, target].map(|nanos| Duration::from_nanos(nanos as u64)))
    }

    /// What was played, in order; `None` if every frame was played at its place in the stream.
    #[must_use]
    pub fn timeline(&self) -> Option<&[Stretch]> {
        match &self.method {
            Method::Adaptive(adaptive) => adaptive.timeline(),
            Method::NetEq(neteq) => neteq.timeline(),
            Method::Fixed(_) | Method::Talkspurt(_) => None,
        }
    }
}

/// The frames that have arrived: 64 per entry, so that a dense stream takes two bits per frame and a stray
/// index of four thousand million takes one entry. The latest entry is cached, since most frames belong there.
#[derive(Clone, Debug, Default)]
#[repr(C)]
struct Seen {
    latest: (u32, u64),
    others: BTreeMap<u32, u64>,
}

impl Seen {
    /// True if the frame is recorded.
    fn has(&self, index: u32) -> bool {
        let bits = match index / 64 {
            entry if entry == self.latest.0 => self.latest.1,
            entry => self.others.get(&entry).copied().unwrap_or_default(),
        };
        bits & 1 << (index % 64) != 0
    }

    /// Records a frame; false if it was already there.
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
    use crate::playout::Anchor;
    use proptest::prelude::*;

    const FRAME: Duration = Duration::from_millis(20);

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(ms)
    }
    fn buffer(anchor: Anchor, ms: u64) -> Buffer {
        let config = Config { anchor: Some(anchor), ..Config::fixed(Duration::from_millis(ms)) };
        Buffer::new(&config, (FRAME, FRAME), false, 0)
    }

    impl Buffer {
        fn decide(&mut self, index: u32, captured: Instant, arrival: Instant) -> Playout {
            let (mut found, frame) =
                (None, Frame { slot: index, steps: 1, index, encoding: Some(0), repeats: 0 });
            self.on_frame(frame, captured, arrival, |decision| found = Some(decision.playout));
            found.expect("decided at once")
        }
    }

    #[test]
    fn the_first_arrival_sets_the_pace() {
        let mut b = buffer(Anchor::FirstArrival, 60);
        assert_eq!(b.decide(0, at(0), at(100)), Playout::Played(at(160)));
        assert_eq!(b.decide(1, at(20), at(180)), Playout::Played(at(180)));
        let late = Instant::from_nanos(at(200).as_nanos() + 1);
        assert_eq!(b.decide(2, at(40), late), Playout::Late(at(200)));
        assert_eq!(b.decide(2, at(40), at(190)), Playout::Duplicate);
        assert_eq!(b.decide(50, at(1000), at(1100)), Playout::Played(at(1160)));
    }

    #[test]
    fn the_anchor_need_not_be_frame_0() {
        let mut b = buffer(Anchor::FirstArrival, 60);
        assert_eq!(b.decide(3, at(60), at(100)), Playout::Played(at(160)));
        assert_eq!(b.decide(2, at(40), at(140)), Playout::Played(at(140)));
        assert_eq!(b.decide(1, at(20), at(140)), Playout::Late(at(120)));
        // Frame 0 of a stream whose frame 100 arrived first was due before the clock's origin.
        let mut b = buffer(Anchor::FirstArrival, 0);
        assert_eq!(b.decide(100, at(0), at(100)), Playout::Played(at(100)));
        assert_eq!(b.decide(0, at(0), at(101)), Playout::Late(Instant::ZERO));
    }

    #[test]
    fn the_senders_clock_can_be_the_anchor() {
        let mut b = buffer(Anchor::Capture, 60);
        assert_eq!(b.decide(0, at(500), at(570)), Playout::Played(at(580)));
        assert_eq!(b.decide(1, at(520), at(601)), Playout::Late(at(600)));
    }

    proptest! {
        /// In any order, mouth-to-ear delay is constant and only the first copy counts, also for stray indices
        /// and for neighbours that share an entry and return to an earlier one.
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
                prop_assert_eq!(b.decide(index, Instant::ZERO, arrival), expected);
            }
        }
    }
}
