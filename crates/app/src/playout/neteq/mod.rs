//! NetEq, the jitter buffer of libwebrtc, as far as durations go: `DecisionLogic` and the part of `NetEqImpl`
//! around it. It is our own code after the behaviour of revision `branch-heads/7871` (Chromium 150). It decides
//! every 10 ms what to do next: play, play faster or slower by a pitch period, or conceal.
//!
//! NetEq also analyses the sound, which is rendered later here. Constants replace the analysis: the length of
//! a pitch period ([`PERIOD`]), whether a piece of speech is periodic enough to be stretched
//! ([`ATTEMPTS`]), and how quickly concealment fades ([`HALF_MUTED`]).
//!
//! Output is decided in the order of playout, when a later packet shows that the time has come. Durations are
//! nanoseconds, except where `delays` keeps NetEq's milliseconds. All arithmetic is integer: playout instants
//! are part of the run's digest.

mod delays;

use std::collections::{BTreeSet, VecDeque};

use talkspurt_proto::probe::Playout;
use talkspurt_proto::time::{Duration, Instant};

use self::delays::{DelayManager, History, TICK};
use super::adaptive::instant;
use super::losses::Losses;
use super::timeline::{Stretch, Timeline};
use super::{Config, Decision, Frame};

const MS: i64 = 1_000_000;
const QUANTUM: i64 = TICK * MS;
/// What an expansion adds and a stretched piece of speech gains or loses: NetEq searches 2.5 to 15 ms.
const PERIOD: i64 = 7 * MS;
/// Of so many attempts at stretching, so many succeed.
const ATTEMPTS: u32 = 5;
const SUCCESSES: u32 = 2;
/// After concealment of this length, its gain is below one half.
const HALF_MUTED: i64 = 90 * MS;
/// Decoded sound that is kept for the next cross-fade: 5 samples of 8 kHz.
const OVERLAP: i64 = 625_000;
/// A piece of speech must have this length to be stretched.
const STRETCHABLE: i64 = 30 * MS;
/// Ticks from one stretched piece to the next: stretching stays below 100 ms a second.
const STRETCH_TICKS: i64 = 6;
/// How much playout may lag behind the target and the slowest packet, in milliseconds, before it accelerates.
const GRANULARITY: i64 = 20;
/// Delay beyond the target at which a gap is not concealed to its end, in milliseconds.
const ABOVE: i64 = 50;
/// How far ahead of the fastest packet another one may be, beyond the longest delay, in milliseconds.
const MAX_LEAD: i64 = 2000;
/// Packets that Chromium's buffer has room for; it is emptied when one more arrives.
const ROOM: usize = 200;

/// The latest operation that made sound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    Normal,
    Expand,
    Merge,
    Stretched,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operation {
    Normal,
    Expand,
    Merge,
    Accelerate,
    PreemptiveExpand,
}

/// A frame that waits, and the tick before which it arrived.
#[derive(Clone, Copy, Debug)]
struct Waiting {
    frame: Frame,
    arrived: i64,
}

/// A jitter buffer that decides as NetEq does.
#[derive(Clone, Debug)]
pub(super) struct NetEq {
    step: i64,
    /// The instant of the next tick, by the receiver's clock, and its number.
    clock: i64,
    ticks: i64,
    /// Place in the stream of what is decoded next.
    next: i64,
    /// Decoded sound at the next tick.
    left: i64,
    mode: Mode,
    /// The tick at which the current concealment began, and its length.
    concealing: Option<i64>,
    expansion: i64,
    /// The tick of the latest stretched piece of speech; and what tells which attempts succeed.
    stretched: i64,
    attempts: u32,
    /// Packet number that follows the latest played frame, and its steps.
    follows: u32,
    latest_steps: u32,
    is_playing: bool,
    /// The next frame begins the stream, wherever it is.
    is_new: bool,
    least: i64,
    most: i64,
    quantile: f64,
    initial: i64,
    history: History,
    delays: DelayManager,
    /// Frames in the order of the stream.
    waiting: VecDeque<Waiting>,
    /// First steps of those that were restored from other packets.
    restored: BTreeSet<u32>,
    timeline: Timeline,
}

impl NetEq {
    pub(super) fn new(config: &Config, step: Duration, keeps_timeline: bool) -> Self {
        let ms = |duration: Duration| duration.as_nanos() as i64 / MS;
        let initial = ms(config.initial_delay());
        let quantile = config.quantile();
        Self {
            step: step.as_nanos() as i64,
            clock: 0,
            ticks: 0,
            next: 0,
            left: 0,
            mode: Mode::Normal,
            concealing: None,
            expansion: 0,
            stretched: -STRETCH_TICKS,
            attempts: 0,
            follows: 0,
            latest_steps: 0,
            is_playing: false,
            is_new: true,
            least: ms(config.min_delay()),
            most: ms(config.max_delay()),
            quantile,
            initial,
            history: History::default(),
            delays: DelayManager::new(quantile, initial),
            waiting: VecDeque::new(),
            restored: BTreeSet::new(),
            timeline: Timeline::new(keeps_timeline),
        }
    }

    /// A frame arrived that was not there before.
    pub(super) fn on_frame(
        &mut self,
        frame: Frame,
        now: Instant,
        mut losses: Option<&mut Losses>,
        tell: &mut impl FnMut(Decision),
    ) {
        let now = now.as_nanos() as i64;
        self.play_until(now, losses.as_deref_mut(), tell);
        if !self.is_playing {
            self.clock = now;
        }
        let place = self.place(&frame);
        // No sender is that far ahead of real time: the packet is damaged or forged.
        if self.history.lead(self.ticks * TICK, place / MS) > self.most + MAX_LEAD {
            return tell(Decision::of(frame, Playout::Late(instant(now))));
        }
        if let Some((delay, overtaken)) = self.history.arrive(self.ticks * TICK, place / MS) {
            self.delays.update(self.ticks * TICK, delay, overtaken);
        }
        if let Some(losses) = losses {
            losses.on_frame(&frame);
            losses.cover(&frame, place, |_| true);
        }
        self.insert(frame, tell);
    }

    /// A lost frame was restored from other packets.
    pub(super) fn on_restored(
        &mut self,
        frame: Frame,
        now: Instant,
        losses: &mut Losses,
        tell: &mut impl FnMut(Decision),
    ) {
        let now = now.as_nanos() as i64;
        self.play_until(now, Some(losses), tell);
        losses.forget(&frame);
        losses.cover(&frame, self.place(&frame), |_| true);
        let is_late = !self.is_new && self.place(&frame) < self.next;
        if self.is_playing && !is_late && self.restored.insert(frame.slot) {
            self.insert(frame, tell);
        }
    }

    /// Adds a frame to those that wait, or discards it.
    fn insert(&mut self, frame: Frame, tell: &mut impl FnMut(Decision)) {
        let place = self.place(&frame);
        if !self.is_new && place < self.next {
            let due = (self.clock + self.left - (self.next - place)).min(self.clock);
            return tell(Decision::of(frame, Playout::Late(instant(due))));
        }
        if self.waiting.len() >= ROOM {
            self.flush(tell);
        }
        // It may wait already, restored from others.
        if self.restored.is_empty() || !self.restored.remove(&frame.slot) || !self.waits(&frame) {
            let later = self.waiting.iter().rev().take_while(|it| it.frame.slot > frame.slot);
            let at = self.waiting.len() - later.count();
            self.waiting.insert(at, Waiting { frame, arrived: self.ticks });
            self.is_playing = true;
        }
    }

    fn waits(&self, frame: &Frame) -> bool {
        self.waiting.iter().any(|it| it.frame.slot == frame.slot)
    }

    /// Too much waits: everything is discarded, and the next packet begins the stream.
    #[cold]
    fn flush(&mut self, tell: &mut impl FnMut(Decision)) {
        for Waiting { frame, .. } in std::mem::take(&mut self.waiting) {
            if !self.restored.remove(&frame.slot) {
                tell(Decision::of(frame, Playout::Late(instant(self.clock))));
            }
        }
        self.is_new = true;
        self.history = History::default();
        self.delays = DelayManager::new(self.quantile, self.initial);
        self.stretched = self.ticks;
    }

    /// Plays everything that waits: nothing more will arrive.
    pub(super) fn finish(
        &mut self,
        mut losses: Option<&mut Losses>,
        tell: &mut impl FnMut(Decision),
    ) {
        while !self.waiting.is_empty() {
            self.tick(losses.as_deref_mut(), tell);
        }
    }

    /// Delay of playout relative to the fastest packets, and the target, in nanoseconds.
    pub(super) fn gauges(&self) -> (i64, i64) {
        (self.delay() * MS, self.target() * MS)
    }

    pub(super) fn timeline(&self) -> Option<&[Stretch]> {
        self.timeline.stretches()
    }

    fn place(&self, frame: &Frame) -> i64 {
        i64::from(frame.slot) * self.step
    }

    fn length(&self, frame: &Frame) -> i64 {
        i64::from(frame.steps) * self.step
    }

    /// The target delay in milliseconds, at most three quarters of the room for packets.
    fn target(&self) -> i64 {
        let frame = i64::from(self.latest_steps.max(1)) * self.step / MS;
        let room = (3 * ROOM as i64 * frame / 4).max(frame);
        self.delays.target.max(self.least).min(self.most).min(room)
    }

    /// How long what is played now waited, relative to the fastest packet, in milliseconds.
    fn delay(&self) -> i64 {
        self.history.delay(self.ticks * TICK, (self.next - self.left - OVERLAP).div_euclid(MS))
    }

    /// Plays what begins before `now`: a frame that arrives exactly when due is played.
    #[inline]
    fn play_until(
        &mut self,
        now: i64,
        mut losses: Option<&mut Losses>,
        tell: &mut impl FnMut(Decision),
    ) {
        while self.is_playing && self.clock < now {
            // Without frames, nothing but concealment follows.
            let idle = (now - self.clock - 1) / QUANTUM;
            if self.waiting.is_empty() && self.mode == Mode::Expand && idle > 0 {
                (self.clock, self.ticks) = (self.clock + idle * QUANTUM, self.ticks + idle);
                self.expansion += idle * QUANTUM;
            }
            self.tick(losses.as_deref_mut(), tell);
        }
    }

    /// Makes the sound of the next 10 ms.
    fn tick(&mut self, losses: Option<&mut Losses>, tell: &mut impl FnMut(Decision)) {
        self.ticks += 1;
        let mut operation = self.decide(losses.as_deref());
        let is_stretching =
            matches!(operation, Operation::Accelerate | Operation::PreemptiveExpand);
        if self.left >= QUANTUM && operation != Operation::Merge && !is_stretching {
            return self.pass();
        }
        let long = i64::from(self.latest_steps) * self.step >= STRETCHABLE;
        let mut needed = QUANTUM;
        match operation {
            Operation::Expand => self.expand(),
            Operation::Accelerate if self.left >= STRETCHABLE => self.stretch(-PERIOD),
            Operation::Accelerate if self.left >= QUANTUM && long => {}
            Operation::PreemptiveExpand
                if self.left >= STRETCHABLE || self.left >= QUANTUM && long =>
            {
                self.stretch(PERIOD);
            }
            _ => {
                if is_stretching && self.left < 2 * QUANTUM && !long {
                    needed = 2 * QUANTUM;
                    if operation == Operation::Accelerate {
                        operation = Operation::Normal;
                    }
                }
                self.decode(needed, operation, losses, tell);
                match operation {
                    Operation::Accelerate if self.left >= STRETCHABLE => self.stretch(-PERIOD),
                    Operation::PreemptiveExpand => self.stretch(PERIOD),
                    _ => {}
                }
                // Frames may be shorter than a tick.
                if self.left < QUANTUM {
                    self.expand();
                }
            }
        }
        self.pass();
    }

    /// 10 ms pass.
    fn pass(&mut self) {
        self.left -= QUANTUM;
        self.clock += QUANTUM;
        if self.mode != Mode::Expand {
            self.concealing = None;
        }
    }

    fn decide(&self, losses: Option<&Losses>) -> Operation {
        let Some(frame) = self.first(losses) else { return Operation::Expand };
        if self.is_new {
            return Operation::Normal;
        }
        let pauses = frame.index == self.follows && self.place(frame) > self.next;
        let waits = self.waits_since(frame);
        let conceals = self.mode == Mode::Expand;
        if waits < self.target() / 2 && conceals && (pauses || self.expansion >= HALF_MUTED) {
            return Operation::Expand;
        }
        if self.place(frame) == self.next {
            return if conceals { Operation::Normal } else { self.pace() };
        }
        let gap = (self.place(frame) - self.next) / MS;
        let concealed = self.concealing.map_or(0, |since| self.ticks - since) * TICK;
        if gap > concealed && waits <= self.target() + ABOVE || !conceals {
            Operation::Expand
        } else if pauses {
            Operation::Normal
        } else {
            Operation::Merge
        }
    }

    /// The first frame that waits, or lost one that a later packet contains.
    fn first<'a>(&'a self, losses: Option<&'a Losses>) -> Option<&'a Frame> {
        let first = self.waiting.front().map(|it| &it.frame)?;
        let slot = u32::try_from(self.next / self.step).unwrap_or(u32::MAX);
        let found = losses.and_then(|losses| losses.first_found(slot));
        Some(found.filter(|found| !self.is_new && found.slot < first.slot).unwrap_or(first))
    }

    /// From the first frame to now, by the last one's place and waiting time, in milliseconds.
    fn waits_since(&self, first: &Frame) -> i64 {
        let Some(last) = self.waiting.back() else { return 0 };
        (self.place(&last.frame) - self.place(first)) / MS + (self.ticks - last.arrived) * TICK
    }

    fn pace(&self) -> Operation {
        let (delay, low) = (self.delay(), self.target());
        let high = low + self.history.largest() + GRANULARITY;
        let is_allowed = self.ticks >= self.stretched + STRETCH_TICKS;
        if delay >= 4 * high || is_allowed && delay >= high {
            Operation::Accelerate
        } else if is_allowed && delay < low {
            Operation::PreemptiveExpand
        } else {
            Operation::Normal
        }
    }

    fn expand(&mut self) {
        while self.left < QUANTUM {
            self.left += PERIOD;
            self.expansion += PERIOD;
        }
        self.mode = Mode::Expand;
        self.concealing.get_or_insert(self.ticks);
    }

    /// Plays the latest piece of speech faster or slower, if it is periodic.
    fn stretch(&mut self, by: i64) {
        self.attempts = (self.attempts + SUCCESSES) % ATTEMPTS;
        if self.attempts >= SUCCESSES {
            self.mode = Mode::Normal;
            return;
        }
        (self.stretched, self.mode) = (self.ticks, Mode::Stretched);
        let by = by.max(-i64::from(self.latest_steps) * self.step);
        self.left += by;
        self.timeline.resize_last(self.latest_steps, by);
    }

    /// Decodes frames that follow one another, of this length at least if they are there.
    fn decode(
        &mut self,
        needed: i64,
        operation: Operation,
        mut losses: Option<&mut Losses>,
        tell: &mut impl FnMut(Decision),
    ) {
        let mut decoded = 0;
        while decoded < needed {
            let Some(frame) = self.first(losses.as_deref()).copied() else { break };
            let gap = self.place(&frame) - self.next;
            if gap != 0 && decoded > 0 {
                break;
            }
            self.end_concealment(if self.is_new { 0 } else { gap }, &frame);
            self.next = self.place(&frame);
            self.is_new = false;
            let waits = self.waiting.front().is_some_and(|it| it.frame.slot == frame.slot);
            if waits {
                self.waiting.pop_front();
                let was_restored = !self.restored.is_empty() && self.restored.remove(&frame.slot);
                self.play(frame, frame.slot, was_restored, tell);
            } else if let Some((lost, from)) =
                losses.as_deref_mut().and_then(|losses| losses.take(frame.slot))
            {
                self.play(lost, from, true, tell);
            }
            decoded += self.length(&frame);
        }
        self.mode = if operation == Operation::Merge { Mode::Merge } else { Mode::Normal };
    }

    /// Concealment ends. It stood for lost frames as far as there was a gap, or the speaker paused.
    fn end_concealment(&mut self, gap: i64, frame: &Frame) {
        if gap > 0 && frame.index == self.follows {
            let pause = std::mem::take(&mut self.expansion);
            if pause > 0 {
                self.timeline.add(Stretch::Silence(pause as u64));
            }
            return;
        }
        let mut stands = 0;
        if gap > 0 {
            // A merge overlaps the end of the concealment with the frame: half a period is left on average.
            let overlapped = (self.left - PERIOD / 2).min(self.expansion);
            (self.left, self.expansion) = (self.left - overlapped, self.expansion - overlapped);
            stands = self.expansion.min(gap);
        }
        if stands > 0 {
            self.timeline.media(self.next / self.step, (gap / self.step) as u32, stands);
        }
        self.expansion -= stands;
    }

    /// Plays a frame, or the sound of a lost one.
    fn play(
        &mut self,
        frame: Frame,
        from: u32,
        was_recovered: bool,
        tell: &mut impl FnMut(Decision),
    ) {
        if self.expansion > 0 {
            self.timeline.add(Stretch::Expansion(self.expansion as u64));
        }
        self.timeline.media(self.next / self.step, frame.steps, self.length(&frame));
        let at = instant(self.clock + self.left);
        let playout = if was_recovered { Playout::Recovered(at) } else { Playout::Played(at) };
        let paused = Duration::from_nanos(std::mem::take(&mut self.expansion) as u64);
        tell(Decision { frame, paused, from, playout });
        (self.follows, self.latest_steps) = (frame.index.wrapping_add(1), frame.steps);
        self.next += self.length(&frame);
        self.left += self.length(&frame);
    }
}

#[cfg(test)]
mod tests;
