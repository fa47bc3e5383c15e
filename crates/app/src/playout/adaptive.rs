//! The adaptive jitter buffer. It plays a continuous stream and changes its delay towards a target that follows
//! the delays of the packets: by playing speech faster or slower, by pausing (expansion) where nothing has
//! arrived, and freely between talkspurts.
//!
//! Output is decided in the order of playout, when a later packet shows that the time has come: all packets
//! that arrived up to the instant of playout count, and no others. Durations do not depend on the sound: time
//! scaling (`timescale`) gives speech the length that is decided here. All arithmetic is integer: playout
//! instants are part of the run's digest.

use std::collections::{BTreeSet, VecDeque};

use talkspurt_proto::prefetch::prefetch;
use talkspurt_proto::probe::Playout;
use talkspurt_proto::time::{Duration, Instant};

use super::delays::Delays;
use super::losses::Losses;
use super::timeline::{Stretch, Timeline};
use super::{Config, Decision, Frame};

const MS: i64 = 1_000_000;
/// The sound card asks for sound in units of this length; a pause is a multiple.
const QUANTUM: i64 = 10 * MS;
/// Delay above the target from which playout is faster, and below it from which it is slower.
const ABOVE: i64 = 20 * MS;
const BELOW: i64 = 10 * MS;
/// Delay above the target from which playout is much faster.
const FAR_ABOVE: i64 = 250 * MS;
/// After a pause of playout that is longer, it goes on once frames may have followed the first.
const LONG_PAUSE: i64 = 200 * MS;
const FOLLOW: i64 = 20 * MS;
/// Buffered speech beyond the longest delay, at which the oldest is discarded.
const OVERFLOW: i64 = 2_000 * MS;

/// How fast a frame is played: its duration is multiplied by the fraction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Pace(i64, i64);

impl Pace {
    const NORMAL: Self = Self(1, 1);
    const FASTER: Self = Self(4, 5);
    const FASTEST: Self = Self(2, 3);
    const SLOWER: Self = Self(5, 4);
}

/// An adaptive jitter buffer for one stream of frames.
#[derive(Clone, Debug)]
pub(super) struct Adaptive {
    step: i64,
    /// When the next sound begins, by the receiver's clock.
    clock: i64,
    /// When the latest frame arrived, and the latest that found nothing waiting.
    latest: i64,
    back: i64,
    /// Place in the stream of the next sound.
    next: i64,
    /// Length of the expansion that ends at `clock`, and when it began, with what was skipped of it.
    expansion: i64,
    paused: i64,
    /// Packet number that follows the latest played frame.
    follows: u32,
    pace: Pace,
    is_playing: bool,
    has_frames: bool,
    least: i64,
    most: i64,
    delays: Delays,
    /// Delay kept for the recovery of lost frames.
    wait: i64,
    /// Frames in the order of the stream.
    waiting: VecDeque<Frame>,
    /// First steps of those that were restored from other packets.
    restored: BTreeSet<u32>,
    timeline: Timeline,
}

impl Adaptive {
    pub(super) fn new(config: &Config, step: Duration, keeps_timeline: bool) -> Self {
        let least = config.min_delay().as_nanos() as i64;
        let most = config.max_delay().as_nanos() as i64;
        let initial = (config.initial_delay().as_nanos() as i64).clamp(least, most);
        Self {
            step: step.as_nanos() as i64,
            clock: 0,
            latest: 0,
            back: 0,
            next: 0,
            expansion: 0,
            paused: 0,
            follows: 0,
            pace: Pace::NORMAL,
            is_playing: false,
            has_frames: false,
            least,
            most,
            delays: Delays::new(config.quantile(), initial),
            wait: 0,
            waiting: VecDeque::new(),
            restored: BTreeSet::new(),
            timeline: Timeline::new(keeps_timeline),
        }
    }

    /// Requests the frames that are played and added next.
    pub(super) fn prefetch_frames(&self) {
        for frame in [self.waiting.front(), self.waiting.back()].into_iter().flatten() {
            prefetch(frame, 1);
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
        self.latest = now;
        if self.waiting.is_empty() {
            self.back = now;
        }
        let place = self.place(&frame);
        let offset = now - place;
        // No sender is that far ahead of real time: the packet is damaged or forged.
        if self.has_frames && offset < self.delays.floor - self.most - OVERFLOW {
            return tell(Decision::of(frame, Playout::Late(instant(now))));
        }
        let newest = self.waiting.back().map_or(self.next - self.step, |newest| self.place(newest));
        self.delays.arrive(now, offset, place >= newest);
        if let Some(losses) = losses {
            losses.on_frame(&frame);
            let late = offset - self.delays.floor;
            losses.cover(&frame, place, |_| true);
            let target = self.delays.target.clamp(self.least, self.most);
            self.wait = losses.wait(late, target, self.most);
        }
        if !self.has_frames {
            self.has_frames = true;
            (self.next, self.follows) = (place, frame.index);
            self.clock = now + self.target();
        }
        if place < self.next {
            // An earlier frame may still begin the stream.
            let begins = self.clock - (self.next - place);
            if self.is_playing || begins < now {
                let at = instant((self.clock - (self.next - place)).min(now));
                return tell(Decision::of(frame, Playout::Late(at)));
            }
            (self.next, self.clock, self.follows) = (place, begins, frame.index);
        }
        // It may wait already, restored from others.
        if self.restored.is_empty() || !self.restored.remove(&frame.slot) {
            self.insert(frame, tell);
        }
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
        let place = self.place(&frame);
        let late = now - place - self.delays.floor;
        // Without a frame that has arrived, its delay is unknown; and as in `on_frame`.
        if !self.has_frames || late < -(self.most + OVERFLOW) {
            return;
        }
        if losses.forget(&frame) {
            let target = self.delays.target.clamp(self.least, self.most);
            self.wait = losses.wait_for_restored(late, target, self.most);
        }
        losses.cover(&frame, place, |_| true);
        if place < self.next {
            let begins = self.clock - (self.next - place);
            if self.is_playing || begins < now {
                return;
            }
            (self.next, self.clock, self.follows) = (place, begins, frame.index);
        }
        if self.restored.insert(frame.slot) {
            self.insert(frame, tell);
        }
    }

    /// Adds a frame to those that wait.
    #[inline]
    fn insert(&mut self, frame: Frame, tell: &mut impl FnMut(Decision)) {
        let place = self.place(&frame);
        if self.waiting.back().is_none_or(|newest| newest.slot < frame.slot) {
            self.waiting.push_back(frame);
            let oldest = self.waiting.front().map_or(place, |oldest| self.place(oldest));
            if place - oldest > self.most + OVERFLOW {
                self.flush(place, tell);
            }
        } else {
            let later = self.waiting.iter().rev().take_while(|it| it.slot > frame.slot).count();
            self.waiting.insert(self.waiting.len() - later, frame);
        }
    }

    /// Plays everything that waits: nothing more will arrive.
    pub(super) fn finish(
        &mut self,
        mut losses: Option<&mut Losses>,
        tell: &mut impl FnMut(Decision),
    ) {
        while !self.waiting.is_empty() {
            self.play_next(i64::MAX, losses.as_deref_mut(), tell);
        }
    }

    /// Delay of playout relative to the fastest packets, and the target, in nanoseconds. While the speaker
    /// pauses, the delay is that of the last frame.
    pub(super) fn gauges(&self) -> (i64, i64) {
        let pauses = |next: &Frame| next.index == self.follows && self.place(next) > self.next;
        let silence = if self.waiting.front().is_some_and(pauses) { self.expansion } else { 0 };
        ((self.delay() - silence).max(0), self.target())
    }

    pub(super) fn timeline(&self) -> Option<&[Stretch]> {
        self.timeline.stretches()
    }

    fn place(&self, frame: &Frame) -> i64 {
        i64::from(frame.slot) * self.step
    }

    fn target(&self) -> i64 {
        (self.delays.target.max(self.least) + self.wait).min(self.most)
    }

    fn delay(&self) -> i64 {
        self.clock - self.next - self.delays.floor
    }

    /// Plays what begins before `now`: a frame that arrives exactly when due is played.
    #[inline]
    fn play_until(
        &mut self,
        now: i64,
        mut losses: Option<&mut Losses>,
        tell: &mut impl FnMut(Decision),
    ) {
        while self.has_frames && self.clock < now {
            self.play_next(now, losses.as_deref_mut(), tell);
        }
    }

    fn play_next(
        &mut self,
        now: i64,
        losses: Option<&mut Losses>,
        tell: &mut impl FnMut(Decision),
    ) {
        let Some(frame) = self.waiting.front().copied() else {
            if self.expansion == 0 {
                self.paused = self.clock;
            }
            let quanta = (now - self.clock + QUANTUM - 1) / QUANTUM;
            self.clock += quanta * QUANTUM;
            self.expansion += quanta * QUANTUM;
            return;
        };
        let gap = self.place(&frame) - self.next;
        if gap == 0 && self.waits_for_more() {
            self.clock += QUANTUM;
            self.expansion += QUANTUM;
        } else if gap == 0 && self.skips(&frame) {
            self.skip(frame, tell);
        } else if gap == 0 {
            self.play(frame, tell);
        } else if frame.index == self.follows && self.is_playing {
            self.pause_of_speaker(gap);
        } else if let Some((lost, from)) = losses.and_then(|losses| self.recoverable(losses)) {
            self.take_place(lost, Playout::Recovered(instant(self.clock)), from, tell);
        } else if self.expansion > 0 {
            // The expansion was the concealment of lost frames.
            let steps = (gap.min(self.expansion) / self.step).max(1);
            let concealed = steps * self.step;
            self.timeline.media(self.next / self.step, steps as u32, concealed);
            self.next += concealed;
            self.clock += (concealed - self.expansion).max(0);
            self.expansion = (self.expansion - concealed).max(0);
        } else {
            self.timeline.media(self.next / self.step, 1, self.step);
            self.next += self.step;
            self.clock += self.step;
        }
    }

    /// True if, after a long pause, the first frame has only just arrived: more may follow at once.
    fn waits_for_more(&self) -> bool {
        self.expansion >= LONG_PAUSE && self.clock < self.back + FOLLOW
    }

    /// True if a long pause was at least as long as this frame, and the frames after it cover the target delay.
    /// Skipping the frame then conceals no more speech than playing it late, and removes the excess delay.
    fn skips(&self, frame: &Frame) -> bool {
        let length = i64::from(frame.steps) * self.step;
        let newest =
            self.waiting.back().map_or(0, |it| self.place(it) + i64::from(it.steps) * self.step);
        self.clock - self.paused >= LONG_PAUSE
            && self.expansion >= length
            && newest - self.place(frame) - length >= self.target()
    }

    fn skip(&mut self, frame: Frame, tell: &mut impl FnMut(Decision)) {
        self.waiting.pop_front();
        let length = i64::from(frame.steps) * self.step;
        self.timeline.media(self.next / self.step, frame.steps, length);
        if !self.restored.remove(&frame.slot) {
            tell(Decision::of(frame, Playout::Late(instant(self.clock - self.expansion))));
        }
        self.follows = frame.index.wrapping_add(1);
        self.next += length;
        self.expansion -= length;
    }

    /// The lost frame that is next, if a later one has its sound, and where that begins. A pause as long as the
    /// frame has already taken its place.
    fn recoverable(&self, losses: &mut Losses) -> Option<(Frame, u32)> {
        let slot = u32::try_from(self.next / self.step).ok()?;
        let (lost, from) = losses.take(slot)?;
        (self.expansion < i64::from(lost.steps) * self.step).then_some((lost, from))
    }

    fn play(&mut self, frame: Frame, tell: &mut impl FnMut(Decision)) {
        self.waiting.pop_front();
        let at = instant(self.clock);
        let was_restored = !self.restored.is_empty() && self.restored.remove(&frame.slot);
        let playout = if was_restored { Playout::Recovered(at) } else { Playout::Played(at) };
        self.take_place(frame, playout, frame.slot, tell);
        self.is_playing = true;
    }

    /// Plays a frame, or the sound of a lost one.
    #[inline(always)]
    fn take_place(
        &mut self,
        frame: Frame,
        playout: Playout,
        from: u32,
        tell: &mut impl FnMut(Decision),
    ) {
        let length = i64::from(frame.steps) * self.step;
        self.choose_pace();
        let out = match self.pace {
            Pace::NORMAL => length,
            Pace(multiply, divide) => length * multiply / divide,
        };
        if self.expansion > 0 {
            self.timeline.add(Stretch::Expansion(self.expansion as u64));
        }
        self.timeline.media(self.next / self.step, frame.steps, out);
        let paused = Duration::from_nanos(std::mem::take(&mut self.expansion) as u64);
        tell(Decision { frame, paused, from, playout });
        self.follows = frame.index.wrapping_add(1);
        self.next += length;
        self.clock += out;
    }

    fn choose_pace(&mut self) {
        let (delay, target) = (self.delay(), self.target());
        let above = if delay > target { delay - self.needed(target) } else { 0 };
        self.pace = match self.pace {
            _ if above > FAR_ABOVE => Pace::FASTEST,
            _ if above > ABOVE => Pace::FASTER,
            Pace::FASTER | Pace::FASTEST if above > 0 => Pace::FASTER,
            _ if delay < target - BELOW => Pace::SLOWER,
            Pace::SLOWER if delay < target => Pace::SLOWER,
            _ => Pace::NORMAL,
        };
    }

    /// The delay below which playout does not accelerate: delays that were just seen may recur, and on a path
    /// that has just become shorter, overtaken packets fill the gaps between frames in the buffer.
    fn needed(&self, target: i64) -> i64 {
        let mut next = self.next;
        let is_whole = self.waiting.iter().all(|frame| {
            let follows = self.place(frame) == next;
            next += i64::from(frame.steps) * self.step;
            follows
        });
        self.delays.recent(is_whole).clamp(target, self.most.max(target))
    }

    /// Nothing is missing before the next frame: the speaker paused. The pause may change its length, to half
    /// of it at least, so that the next talkspurt begins with the target delay.
    fn pause_of_speaker(&mut self, gap: i64) {
        let began = self.clock - self.expansion;
        let due = self.next + gap + self.delays.floor + self.target();
        // If timestamps have jumped back, the floor is not that of the frames that wait.
        let due = due.min(self.latest + self.most + OVERFLOW);
        self.clock = due.max(began + gap / 2).max(self.clock);
        self.timeline.add(Stretch::Silence((self.clock - began) as u64));
        self.next += gap;
        self.expansion = 0;
        self.pace = Pace::NORMAL;
    }

    /// Discards the oldest frames, as after a long outage of a stream transport.
    #[cold]
    fn flush(&mut self, newest: i64, tell: &mut impl FnMut(Decision)) {
        let keep = newest - self.target();
        while let Some(frame) = self.waiting.front().copied().filter(|it| self.place(it) < keep) {
            self.waiting.pop_front();
            self.follows = frame.index.wrapping_add(1);
            if !self.restored.remove(&frame.slot) {
                tell(Decision::of(frame, Playout::Late(instant(self.clock))));
            }
        }
        if let Some(first) = self.waiting.front() {
            self.next = self.place(first);
        }
    }
}

pub(super) fn instant(nanos: i64) -> Instant {
    Instant::from_nanos(nanos.max(0) as u64)
}

#[cfg(test)]
pub(super) mod tests {
    use proptest::prelude::*;

    use super::super::{Buffer, Profile};
    use super::*;

    pub(crate) const STEP: Duration = Duration::from_millis(20);

    pub(crate) fn ms(ms: i64) -> i64 {
        ms * MS
    }

    /// What became of each frame that arrived, by its slot: delay of playout in ms since its place in the
    /// stream, or `None` if late; the pause before it in ms; and the buffer.
    type Outcome = (Vec<(u32, Option<i64>)>, Vec<(u32, i64)>, Buffer);

    /// Frames of 20 ms with these delays in ms; `None` for lost ones. A slot without a frame is a pause.
    pub(crate) fn play(frames: &[(u32, Option<i64>)], config: &Config) -> Outcome {
        let mut buffer = Buffer::new(config, (STEP, STEP), true, 0);
        let (mut fates, mut pauses) = (Vec::new(), Vec::new());
        let mut arrivals: Vec<(i64, Frame)> = Vec::new();
        for (index, (slot, delay)) in (0..).zip(frames) {
            if let Some(delay) = delay {
                let frame = Frame { slot: *slot, steps: 1, index, encoding: Some(0), repeats: 0 };
                arrivals.push((i64::from(*slot) * 20 + delay, frame));
            }
        }
        arrivals.sort_by_key(|(at, _)| *at);
        let mut tell = |decision: Decision| {
            let place = i64::from(decision.frame.slot) * 20;
            let fate = match decision.playout {
                Playout::Played(at) => Some(at.as_nanos() as i64 / MS - place),
                _ => None,
            };
            fates.push((decision.frame.slot, fate));
            if !decision.paused.is_zero() {
                pauses.push((decision.frame.slot, decision.paused.as_nanos() as i64 / MS));
            }
        };
        for (at, frame) in arrivals {
            buffer.on_frame(frame, Instant::ZERO, instant(ms(at)), &mut tell);
        }
        buffer.finish(&mut tell);
        (fates, pauses, buffer)
    }

    pub(crate) fn steady(
        frames: u32,
        delay: impl Fn(u32) -> Option<i64>,
    ) -> Vec<(u32, Option<i64>)> {
        (0..frames).map(|slot| (slot, delay(slot))).collect()
    }

    #[test]
    fn without_jitter_the_delay_falls_to_the_least() {
        let (fates, pauses, _) = play(&steady(500, |_| Some(50)), &Config::default());
        assert_eq!(fates[0], (0, Some(130)));
        assert_eq!(fates.len(), 500);
        assert!(fates[200..].iter().all(|(_, delay)| matches!(delay, Some(70..=90))), "{fates:?}");
        assert_eq!(pauses, []);
    }

    #[test]
    fn after_a_step_nothing_is_lost_and_playout_pauses_once() {
        // The step of issue 19's motivation: 180 ms more from one packet to the next.
        let step = |slot| Some(if slot < 500 { 50 } else { 230 });
        let (fates, pauses, _) = play(&steady(1000, step), &Config::default());
        assert!(fates.iter().all(|(_, delay)| delay.is_some()));
        assert!(matches!(pauses[..], [(500, 140..=180)]), "{pauses:?}");
        assert!(matches!(fates[999].1, Some(250..=290)), "{:?}", fates[999]);
        // And back: faster, without a loss.
        let (fates, pauses, _) =
            play(&steady(1000, |slot| Some(if slot < 500 { 230 } else { 50 })), &Config::default());
        assert!(fates.iter().all(|(_, delay)| delay.is_some()));
        assert_eq!(pauses, []);
        assert!(matches!(fates[999].1, Some(60..=110)), "{:?}", fates[999]);
    }

    #[test]
    fn lost_frames_are_concealed_in_their_time() {
        let lost = |slot| (slot % 50 < 45).then_some(40);
        let (fates, pauses, buffer) = play(&steady(1000, lost), &Config::default());
        assert_eq!(fates.len(), 900);
        assert!(fates.iter().all(|(_, delay)| delay.is_some()));
        assert_eq!(pauses, [], "a gap is no pause");
        // Each step was played: what arrived and what did not.
        let steps: u32 = buffer.timeline().unwrap_or_default().iter().map(steps_of).sum();
        assert_eq!(steps, 995);
    }

    fn steps_of(stretch: &Stretch) -> u32 {
        match stretch {
            Stretch::Media { steps, .. } => *steps,
            _ => 0,
        }
    }

    #[test]
    fn a_pause_of_the_speaker_takes_up_the_change() {
        // Talkspurts of 1 s, and 1 s of silence; the path is 100 ms longer from the third on.
        let frames: Vec<_> = (0..10)
            .flat_map(|spurt| (0..50).map(move |k| (spurt * 100 + k, spurt)))
            .map(|(slot, spurt)| (slot, Some(if spurt < 3 { 30 } else { 130 })))
            .collect();
        let (fates, pauses, buffer) = play(&frames, &Config::default());
        assert!(fates.iter().all(|(_, delay)| delay.is_some()));
        assert_eq!(pauses, []);
        let silences = buffer.timeline().unwrap_or_default().iter();
        let silences = silences.filter(|stretch| matches!(stretch, Stretch::Silence(_)));
        assert_eq!(silences.count(), 9);
    }

    #[test]
    fn a_long_pause_of_the_speaker_is_no_pause_of_playout() {
        // A minute of silence: longer than anything that the buffer holds.
        let slots = (0..100).chain(3100..3200);
        let frames: Vec<_> = slots.map(|slot| (slot, Some(30 + i64::from(slot % 7)))).collect();
        let (fates, pauses, _) = play(&frames, &Config::default());
        assert!(fates.iter().all(|(_, delay)| delay.is_some()));
        assert_eq!(pauses, []);
        assert!(matches!(fates[100], (3100, Some(50..=120))), "{:?}", fates[100]);
    }

    #[test]
    fn the_delay_of_a_pause_is_that_of_the_speech_before() {
        let mut buffer = Buffer::new(&Config::default(), (STEP, STEP), false, 0);
        for slot in (0..50).chain(500..550) {
            let frame = Frame {
                slot,
                steps: 1,
                index: slot.min(slot % 450),
                encoding: Some(0),
                repeats: 0,
            };
            let now = instant(ms(i64::from(slot) * 20 + 30));
            buffer.on_frame(frame, Instant::ZERO, now, |_| {});
            let delay = buffer.gauges().map(|[delay, _]| delay);
            assert!(delay <= Some(Duration::from_millis(120)), "{slot}: {delay:?}");
        }
    }

    #[test]
    fn a_long_outage_pauses_playout_for_what_was_lost() {
        // Ten seconds are lost, and the path is as fast as before.
        let lost = |slot| (!(500..1000).contains(&slot)).then_some(40);
        let (fates, pauses, _) = play(&steady(1500, lost), &Config::default());
        assert_eq!(fates.len(), 1000);
        assert!(fates.iter().all(|(_, delay)| delay.is_some()));
        assert_eq!(pauses, [], "concealment of lost frames is no pause");
    }

    #[test]
    fn more_jitter_means_a_longer_delay() {
        // Every tenth packet is 80 ms late.
        let late = |slot: u32| Some(if slot % 10 == 7 { 110 } else { 30 });
        let (fates, pauses, _) = play(&steady(2000, late), &Config::default());
        let tail = &fates[500..];
        assert!(tail.iter().all(|(_, delay)| matches!(delay, Some(105..=150))), "{tail:?}");
        assert!(pauses.iter().all(|(slot, _)| *slot < 200), "{pauses:?}");
    }

    #[test]
    fn an_overflow_keeps_the_newest() {
        // A stream transport delivers six seconds at once.
        let stalled =
            |slot: u32| Some(if slot < 50 { 30 } else { 30.max(7000 - i64::from(slot) * 20) });
        let (fates, _, _) = play(&steady(600, stalled), &Config::default());
        assert!(fates.iter().any(|(_, delay)| delay.is_none()));
        assert!(matches!(fates.last(), Some((_, Some(20..=2500)))), "{:?}", fates.last());
        assert_eq!(fates.len(), 600);
    }

    #[test]
    fn a_forged_place_disturbs_nothing() {
        let mut frames = steady(500, |_| Some(40));
        frames.insert(250, (4_000_000_000, Some(40 - 4_000_000_000 * 20 + 250 * 20)));
        let (fates, pauses, _) = play(&frames, &Config::default());
        assert_eq!(fates.iter().filter(|(_, delay)| delay.is_none()).count(), 1);
        assert_eq!(pauses, []);
    }

    proptest! {
        /// Whatever timestamps and numbers somebody makes up: what is heard is no longer than the call and what
        /// may wait.
        #[test]
        fn forged_frames_make_no_call_longer(
            arrivals in prop::collection::vec(
                (0_i64..300, prop_oneof![(0_u32..220), Just(199), any::<u32>()], any::<bool>(), 0_u32..3),
                1..80,
            ),
            profile in profiles(),
        ) {
            let config = Config { profile: Some(profile), ..Config::default() };
            let mut buffer = Buffer::new(&config, (STEP, STEP), true, 0);
            let (mut now, mut slot, mut index) = (0, 50, 0_u32);
            for (wait, ahead, follows, lost) in arrivals {
                now += wait;
                slot = if ahead < 220 { slot + ahead } else { ahead };
                index += if follows { 1 } else { lost };
                let frame = Frame { slot, steps: 1, index, encoding: Some(0), repeats: 0 };
                buffer.on_frame(frame, Instant::ZERO, instant(ms(now)), |_| ());
                slot %= u32::MAX / 2;
            }
            buffer.finish(|_| ());
            let heard: u64 = buffer.timeline().unwrap_or_default().iter().map(out_of).sum();
            let longest = ms(now) + 2 * (config.max_delay().as_nanos() as i64 + OVERFLOW);
            prop_assert!(heard as i64 <= longest, "{heard} {longest}");
        }

        /// Whatever arrives whenever: each frame is decided once, none is played before it arrives, playout
        /// follows the order of the stream, and the timeline has the length of the playout.
        #[test]
        fn playout_is_causal_and_in_order(
            frames in prop::collection::vec((1..30_u32, prop::option::of(0..900_i64)), 1..300),
            profile in profiles(),
        ) {
            let mut slot = 0;
            let frames: Vec<_> = frames.into_iter().map(|(gap, delay)| {
                slot += if gap > 25 { gap } else { 1 };
                (slot, delay)
            }).collect();
            let config = Config { profile: Some(profile), ..Config::default() };
            let (fates, _, buffer) = play(&frames, &config);
            let arrived = frames.iter().filter(|(_, delay)| delay.is_some()).count();
            prop_assert_eq!(fates.len(), arrived);
            let mut instants = Vec::new();
            for (slot, delay) in &fates {
                if let Some(delay) = delay {
                    let sent = frames.iter().find(|it| it.0 == *slot).and_then(|it| it.1);
                    prop_assert!(Some(*delay) >= sent);
                    instants.push(i64::from(*slot) * 20 + delay);
                }
            }
            prop_assert!(instants.is_sorted());
            let timeline = buffer.timeline().unwrap_or_default();
            let length: u64 = timeline.iter().map(out_of).sum();
            let latest = timeline.last().map_or(0, |last| out_of(last) / u64::from(steps_of(last).max(1)));
            if let (Some(first), Some(last)) = (instants.first(), instants.last()) {
                let (played, until_last) = (last - first, (length - latest) as i64 / MS);
                prop_assert!((until_last - played).abs() <= 1, "{until_last} {played}");
            }
        }
    }

    fn profiles() -> impl Strategy<Value = Profile> {
        prop_oneof![Just(Profile::Talkspurt), Just(Profile::Libwebrtc)]
    }

    fn out_of(stretch: &Stretch) -> u64 {
        match stretch {
            Stretch::Media { out, .. } | Stretch::Expansion(out) | Stretch::Silence(out) => *out,
        }
    }
}
