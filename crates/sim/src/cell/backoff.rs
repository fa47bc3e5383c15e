//! The backoff of one station (IEEE 802.11-2016 §10.3.3, §10.3.4.3): a number of slots, counted down while the
//! medium is idle and frozen while it is busy. Slots are not events: the station's transmission time follows
//! from the start of the count; when another sends first, the remaining slots follow from the elapsed time.

use talkspurt_proto::rng::Rng;
use talkspurt_proto::time::{Duration, Instant};

/// State of a station in the contention.
#[derive(Clone, Debug)]
pub(super) struct Backoff {
    /// When slots begin to count if the medium stays idle: DIFS or EIFS after it was busy.
    from: Instant,
    /// Slots left then.
    slots: u64,
    /// The contention window.
    window: u32,
    limits: (u32, u32),
    /// There is a frame to send, but not before this.
    wants: Option<Instant>,
    /// It waits only for the interframe space: its last backoff is over.
    free: bool,
}

impl Backoff {
    /// A station with nothing to send and no backoff pending.
    pub(super) fn new(cw_min: u32, cw_max: u32) -> Self {
        let limits = (cw_min, cw_max.max(cw_min));
        Self { from: Instant::ZERO, slots: 0, window: cw_min, limits, wants: None, free: true }
    }

    /// When it sends if no other station does first.
    #[inline]
    pub(super) fn ready(&self, slot: Duration) -> Option<Instant> {
        self.wants.map(|since| since.max(self.from + slot * self.slots))
    }

    /// Whether it contends for the medium.
    pub(super) fn contends(&self) -> bool {
        self.wants.is_some()
    }

    /// There is a frame to send, but not before `since`.
    pub(super) fn want(&mut self, since: Instant) {
        self.wants = Some(since);
    }

    /// There is no frame to send.
    pub(super) fn rest(&mut self) {
        self.wants = None;
    }

    /// A frame finds the medium busy: a station without a backoff now starts one.
    pub(super) fn meets_busy(&mut self, rng: &mut Rng) {
        if self.free {
            self.draw(rng);
        }
    }

    /// Another station sends from `at` on; slots idle until then are counted off.
    #[inline]
    pub(super) fn interrupted(&mut self, at: Instant, slot: Duration, rng: &mut Rng) {
        if at >= self.from {
            let idle = (at - self.from).as_nanos() / slot.as_nanos();
            self.slots = self.slots.saturating_sub(idle);
            self.free |= self.slots == 0;
        }
        // It was about to send without backoff when its interframe space was interrupted.
        if self.free && self.wants.is_some() {
            self.draw(rng);
        }
    }

    /// The medium was busy; slots count again from then on.
    #[inline]
    pub(super) fn resume(&mut self, from: Instant) {
        self.from = from;
    }

    /// Its frame was acknowledged or given up: the next backoff uses the smallest window.
    pub(super) fn done(&mut self, rng: &mut Rng) {
        self.window = self.limits.0;
        self.draw(rng);
    }

    /// Its frame failed: the window doubles.
    pub(super) fn failed(&mut self, rng: &mut Rng) {
        self.window = (2 * self.window + 1).min(self.limits.1);
        self.draw(rng);
    }

    fn draw(&mut self, rng: &mut Rng) {
        self.slots = rng.below(u64::from(self.window) + 1);
        self.free = false;
    }
}
