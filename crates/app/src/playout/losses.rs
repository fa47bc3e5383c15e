//! Lost frames of a stream with redundancy: which of them later packets contain, and how much delay their
//! recovery is worth.

use std::collections::VecDeque;

use talkspurt_proto::probe::Playout;
use talkspurt_proto::time::{Duration, Instant};

use super::{Decision, Frame};

/// Found frames that wait for their playout: more than a buffer of 60 s has.
const MAX_FOUND: usize = 1 << 15;
/// Delays beyond the target are counted in buckets of this length, up to two seconds.
const BUCKET: i64 = 20_000_000;
const BUCKETS: usize = 100;
/// A count of one.
const ONE: u64 = 1 << 20;
/// Counts lose this share with each packet: the memory is 2000 packets, 40 s of 20 ms.
const FORGETTING: u64 = 2000;
/// Cost of delay and of loss in thousandths of R, of G.107's E-model: 0.05 per millisecond, between the slope
/// of Idd below 150 ms and that of 300 ms, and 4 per percent of random loss, as of G.711 with concealment (Bpl
/// 25).
const COST_OF_MS: u64 = 50;
const COST_OF_LOSS: u64 = 400_000;

/// A lost frame.
#[derive(Clone, Copy, Debug)]
struct Lost {
    frame: Frame,
    /// First step of the packet that has its sound, and with fixed playout the instant of its playout.
    found: Option<(u32, i64)>,
}

/// The lost frames of a stream.
#[derive(Clone, Debug)]
pub(super) struct Losses {
    lost: VecDeque<Lost>,
    /// Number of lost frames that are remembered, as far as redundancy reaches back, beside those that were
    /// found.
    most: usize,
    keeps_found: bool,
    /// Index and step that follow the newest frame.
    next: (u32, u32),
    step: i64,
    /// The configured delay for recovery.
    wait: Option<i64>,
    /// Packets, and by bucket of the delay at which they were found, recoverable losses; old ones count less.
    packets: u64,
    found: Vec<u64>,
    /// Delay that pays.
    best: i64,
}

impl Losses {
    /// `most` lost frames are remembered; with `keeps_found`, those whose sound was found do not count, as long
    /// as they wait for [`Losses::recover_until`].
    pub(super) fn new(
        wait: Option<Duration>,
        step: Duration,
        most: usize,
        keeps_found: bool,
    ) -> Self {
        Self {
            lost: VecDeque::new(),
            most,
            keeps_found,
            next: (0, 0),
            step: step.as_nanos() as i64,
            wait: wait.map(|wait| wait.as_nanos() as i64),
            packets: 0,
            found: vec![0; BUCKETS],
            best: 0,
        }
    }

    /// A frame arrived. What is missing before it was lost, or overtaken; not if the speaker paused in between,
    /// since it is then unknown where the lost frames belong.
    pub(super) fn on_frame(&mut self, frame: &Frame) {
        self.packets += ONE;
        self.packets -= self.packets / FORGETTING;
        self.advance(frame);
    }

    /// Notes what is missing before a frame.
    fn advance(&mut self, frame: &Frame) {
        let (index, slot) = self.next;
        let missing = frame.index.wrapping_sub(index);
        if missing > u32::MAX / 2 {
            self.lost.retain(|lost| lost.frame.slot != frame.slot);
            return;
        }
        self.next = (frame.index.wrapping_add(1), frame.slot.wrapping_add(frame.steps));
        let whole = missing.checked_mul(frame.steps).and_then(|steps| slot.checked_add(steps));
        if whole != Some(frame.slot) {
            return;
        }
        for age in (1..=missing.min(self.most as u32)).rev() {
            self.make_room();
            let (index, slot) = (frame.index - age, frame.slot - age * frame.steps);
            let frame = Frame { slot, index, repeats: 0, ..*frame };
            self.lost.push_back(Lost { frame, found: None });
        }
    }

    /// Forgets the oldest lost frame if there are too many. With fixed playout, those whose sound was found are
    /// kept until they are played, however long the buffer is.
    fn make_room(&mut self) {
        if self.lost.len() >= self.most {
            let kept = |lost: &Lost| self.keeps_found && lost.found.is_some();
            let oldest = self.lost.iter().position(|lost| !kept(lost));
            let oldest = oldest.or((self.lost.len() >= MAX_FOUND).then_some(0));
            oldest.and_then(|oldest| self.lost.remove(oldest));
        }
    }

    /// A frame has the sound of lost ones before it, as far as it came `in_time` for one that is played this
    /// many nanoseconds before it; its own playout, or place, is at `at`.
    pub(super) fn cover(&mut self, frame: &Frame, at: i64, in_time: impl Fn(i64) -> bool) {
        for lost in self.lost.iter_mut().filter(|lost| lost.found.is_none()) {
            let age = frame.index.wrapping_sub(lost.frame.index);
            let before = i64::from(age) * i64::from(frame.steps) * self.step;
            if (1..=u32::from(frame.repeats)).contains(&age) && in_time(before) {
                lost.found = Some((frame.slot, at - before));
            }
        }
    }

    /// A lost frame was restored, and is played at `at`; not only one that is known to be lost, because its own
    /// packet says where it belongs.
    pub(super) fn restore(&mut self, frame: Frame, at: i64) {
        self.forget(&frame);
        self.make_room();
        let place = self.lost.partition_point(|lost| lost.frame.index < frame.index);
        self.lost.insert(place, Lost { frame, found: Some((frame.slot, at)) });
    }

    /// A lost frame was restored; true if no other packet has its sound.
    pub(super) fn forget(&mut self, frame: &Frame) -> bool {
        self.advance(frame);
        let place = self.lost.iter().position(|lost| lost.frame.index == frame.index);
        let lost = place.and_then(|place| self.lost.remove(place));
        lost.is_none_or(|lost| lost.found.is_none())
    }

    /// The delay for recovery to be added to `target`, after a frame was restored with a delay of `late`.
    pub(super) fn wait_for_restored(&mut self, late: i64, target: i64, most: i64) -> i64 {
        if let Some(wait) = self.wait {
            return wait;
        }
        let bucket = ((late - target).max(0) as u64).div_ceil(BUCKET as u64) as usize;
        // What takes longer than the last bucket is not worth waiting for.
        if let Some(count) = self.found.get_mut(bucket) {
            *count += ONE;
            self.best = self.cheapest((most - target).max(0));
        }
        self.best
    }

    /// The delay for recovery to be added to `target`. `late` is the delay of the frame that was last given to
    /// [`Losses::cover`]; those that it covers are later by their distance from it.
    pub(super) fn wait(&mut self, late: i64, target: i64, most: i64) -> i64 {
        if let Some(wait) = self.wait {
            return wait;
        }
        let newest = self.next.1;
        let mut is_new = false;
        for lost in &self.lost {
            let Some((from, _)) = lost.found else { continue };
            // Found by the newest frame: counted once.
            if from.wrapping_add(lost.frame.steps) == newest {
                is_new = true;
                let before = i64::from(from - lost.frame.slot) * self.step;
                // Later than the target, a frame is late itself.
                let wait = (late.clamp(0, target) + before - target).max(0);
                let bucket = (wait as u64).div_ceil(BUCKET as u64) as usize;
                self.found[bucket.min(BUCKETS - 1)] += ONE;
            }
        }
        self.found.iter_mut().for_each(|count| *count -= *count / FORGETTING);
        if is_new || self.best > 0 {
            self.best = self.cheapest((most - target).max(0));
        }
        self.best
    }

    /// The cheapest delay up to `most`.
    fn cheapest(&self, most: i64) -> i64 {
        let mut left: u64 = self.found.iter().sum();
        let mut best = (u128::MAX, 0);
        for (bucket, count) in self.found.iter().enumerate() {
            let wait = bucket as i64 * BUCKET;
            if wait > most {
                break;
            }
            left -= count;
            let delay = (wait / 1_000_000) as u64 * COST_OF_MS;
            let cost = u128::from(delay) * u128::from(self.packets)
                + u128::from(COST_OF_LOSS) * u128::from(left);
            if cost < best.0 {
                best = (cost, wait);
            }
        }
        best.1
    }

    /// The first lost frame from this step on whose sound was found.
    pub(super) fn first_found(&self, slot: u32) -> Option<&Frame> {
        let found = self.lost.iter().filter(|it| it.found.is_some() && it.frame.slot >= slot);
        found.map(|it| &it.frame).min_by_key(|frame| frame.slot)
    }

    /// The lost frame at this step, if its sound was found, and where the packet that has it begins.
    pub(super) fn take(&mut self, slot: u32) -> Option<(Frame, u32)> {
        let place = self.lost.iter().position(|lost| lost.frame.slot == slot)?;
        let lost = self.lost[place];
        let (from, _) = lost.found?;
        self.lost.remove(place);
        Some((lost.frame, from))
    }

    /// With fixed playout, recovers the frames whose playout began before `now`.
    pub(super) fn recover_until(&mut self, now: Instant, tell: &mut impl FnMut(Decision)) {
        let now = now.as_nanos() as i64;
        self.lost.retain(|lost| match lost.found {
            Some((from, at)) if at < now => {
                let playout = Playout::Recovered(Instant::from_nanos(at.max(0) as u64));
                tell(Decision { from, ..Decision::of(lost.frame, playout) });
                false
            }
            _ => true,
        });
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;
    use crate::playout::{Buffer, Config};

    const STEP: Duration = Duration::from_millis(20);

    fn ms(ms: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(ms)
    }

    /// The playout in ms of frames of 20 ms that arrive at these instants in ms (`None`: lost), each with
    /// copies of `repeats` before; and the sum of all pauses in ms.
    fn play(
        arrivals: &[Option<u64>],
        repeats: u16,
        config: &Config,
    ) -> (BTreeMap<u32, (&'static str, u64)>, u64) {
        let mut buffer = Buffer::new(config, (STEP, STEP), false, 64);
        let mut order: Vec<_> =
            (0..).zip(arrivals).filter_map(|(n, at)| Some(((*at)?, n))).collect();
        order.sort_unstable();
        let (mut fates, mut paused) = (BTreeMap::new(), 0);
        let mut tell = |decision: Decision| {
            paused += decision.paused.as_nanos() / 1_000_000;
            let (word, at) = match decision.playout {
                Playout::Played(at) => ("played", at),
                Playout::Recovered(at) => ("recovered", at),
                Playout::Late(at) => ("late", at),
                Playout::Duplicate => panic!("no frame comes twice"),
            };
            let slot = decision.frame.slot;
            let ahead = decision.from - slot;
            assert_eq!(ahead > 0, word == "recovered");
            assert!(ahead <= repeats.into() && decision.frame.index == slot);
            // A frame that was recovered may still arrive, too late.
            let before = fates.entry(slot).or_insert((word, at.as_nanos() / 1_000_000));
            assert!(before.0 == word || (before.0, word) == ("recovered", "late"));
        };
        for (at, slot) in order {
            let frame = Frame { slot, steps: 1, index: slot, encoding: Some(0), repeats };
            buffer.on_frame(frame, Instant::ZERO, ms(at), &mut tell);
        }
        buffer.finish(&mut tell);
        (fates, paused)
    }

    proptest! {
        /// With a fixed buffer, a frame that is not there in time is recovered exactly if a packet with a copy
        /// is.
        #[test]
        fn what_a_copy_reaches_in_time_is_recovered(
            delays in prop::collection::vec(prop::option::weighted(0.7, 0..150_u64), 2..120),
            repeats in 0..5_u16,
            buffer in 0..120_u64,
        ) {
            let arrivals: Vec<_> =
                (0..).zip(&delays).map(|(n, delay)| Some(n * 20 + (*delay)?)).collect();
            let first = (0_u64..).zip(&arrivals).filter_map(|(n, at)| Some(((*at)?, n))).min();
            let Some((anchor, number)) = first else { return Ok(()) };
            let due = |n: u64| (anchor + buffer + n * 20).saturating_sub(number * 20);
            // Due at the origin or before it, playout is not defined.
            prop_assume!(anchor + buffer > number * 20);
            let in_time = |n: u64, due: u64| arrivals[n as usize].is_some_and(|at| at <= due);
            let config = Config::fixed(Duration::from_millis(buffer));
            let (fates, _) = play(&arrivals, repeats, &config);
            for n in 0..arrivals.len() as u64 {
                let last = (n + u64::from(repeats)).min(arrivals.len() as u64 - 1);
                let expected = if in_time(n, due(n)) {
                    Some(("played", due(n)))
                } else if (n + 1..=last).any(|later| in_time(later, due(n))) {
                    Some(("recovered", due(n)))
                } else {
                    arrivals[n as usize].map(|_| ("late", due(n)))
                };
                prop_assert_eq!(fates.get(&(n as u32)).copied(), expected, "frame {}", n);
            }
        }

        #[test]
        fn an_adaptive_buffer_plays_every_frame_once(
            delays in prop::collection::vec(prop::option::weighted(0.7, 0..150_u64), 2..200),
            repeats in 0..5_u16,
        ) {
            let arrivals: Vec<_> =
                (0..).zip(&delays).map(|(n, delay)| Some(n * 20 + (*delay)?)).collect();
            let (fates, _) = play(&arrivals, repeats, &Config::default());
            for (n, at) in (0..).zip(&arrivals) {
                let fate = fates.get(&n).map(|(word, _)| *word);
                prop_assert!(at.is_none() || fate.is_some(), "frame {n}");
                prop_assert!(at.is_some() || matches!(fate, None | Some("recovered")), "frame {n}");
            }
            // In order, and one after the other.
            let played: Vec<_> =
                fates.values().filter(|(word, _)| *word != "late").map(|(_, at)| *at).collect();
            prop_assert!(played.windows(2).all(|pair| pair[0] < pair[1]), "{played:?}");
        }
    }

    /// Frames with a delay of 50 ms; every `every`-th is lost with the two after it.
    fn bursts(every: u64) -> Vec<Option<u64>> {
        (0..4000).map(|n| (n % every < every - 3).then_some(n * 20 + 50)).collect()
    }

    #[test]
    fn the_delay_grows_where_recovery_pays() {
        let play = |every, wait: Option<u64>| {
            let config =
                Config { recovery_wait: wait.map(Duration::from_millis), ..Config::default() };
            let (fates, paused) = play(&bursts(every), 3, &config);
            let recovered = fates.values().filter(|(word, _)| *word == "recovered").count();
            let (last, (_, at)) = fates.last_key_value().unwrap();
            (recovered, paused, at - u64::from(*last) * 20)
        };
        // 3 of 50 frames, 240 in all; the first copy comes 60 ms after the first frame of a burst.
        let (recovered, paused, delay) = play(50, None);
        assert!(recovered >= 234 && paused <= 100, "{recovered}, {paused} ms");
        assert!((110..=135).contains(&delay), "{delay} ms");
        // Without the wait, the delay is shorter, and concealment takes the place of most lost frames.
        let (recovered, _, delay) = play(50, Some(0));
        assert!(recovered < 120 && delay < 110, "{recovered}, {delay} ms");
        // A burst every 40 s does not pay.
        let (_, _, delay) = play(2000, None);
        assert!(delay < 110, "{delay} ms");
        // A given wait is kept from the beginning.
        let (recovered, paused, _) = play(2000, Some(60));
        assert_eq!((recovered, paused), (3, 0), "the second burst is at the end");
    }

    /// The playout in ms of frames of 20 ms, by slot, which arrive and are restored at these instants in ms;
    /// both in one order. Numbers are consecutive; a restored frame that arrives before or afterwards is none.
    fn play_restored(
        frames: &[(u32, Option<u64>, Option<u64>)],
        config: &Config,
    ) -> BTreeMap<u32, (&'static str, u64)> {
        let mut buffer = Buffer::new(config, (STEP, STEP), false, 64);
        let mut order = Vec::new();
        for (index, (slot, arrives, is_restored)) in (0..).zip(frames) {
            let frame = Frame { slot: *slot, steps: 1, index, encoding: Some(0), repeats: 0 };
            order.extend(arrives.map(|at| (at, false, index, frame)));
            order.extend(is_restored.map(|at| (at, true, index, frame)));
        }
        order.sort_by_key(|it| (it.0, it.2, it.1));
        let mut fates = BTreeMap::new();
        let mut tell = |decision: Decision| {
            let (word, at) = match decision.playout {
                Playout::Played(at) => ("played", at),
                Playout::Recovered(at) => ("recovered", at),
                Playout::Late(at) => ("late", at),
                Playout::Duplicate => panic!("no frame comes twice"),
            };
            assert_eq!(decision.from, decision.frame.slot, "its own packet was restored");
            let slot = decision.frame.slot;
            let before = fates.entry(slot).or_insert((word, at.as_nanos() / 1_000_000));
            assert!(before.0 == word || (before.0, word) == ("recovered", "late"));
        };
        for (at, is_restored, _, frame) in order {
            if is_restored {
                buffer.on_restored(frame, Instant::ZERO, ms(at), &mut tell);
            } else {
                buffer.on_frame(frame, Instant::ZERO, ms(at), &mut tell);
            }
        }
        buffer.finish(&mut tell);
        fates
    }

    proptest! {
        /// With a fixed buffer, a frame that is not there in time is recovered exactly if it was restored in
        /// time.
        #[test]
        fn what_is_restored_in_time_is_recovered(
            delays in prop::collection::vec(
                (prop::option::weighted(0.7, 0..150_u64), prop::option::weighted(0.7, 0..150_u64)), 2..120),
            buffer in 0..120_u64,
        ) {
            let frames: Vec<_> = (0..)
                .zip(&delays)
                .map(|(n, (delay, other))| {
                    let at = |delay: &Option<u64>| delay.map(|it| u64::from(n) * 20 + 1 + it);
                    (n, at(delay), at(other).filter(|_| n > 0))
                })
                .collect();
            // The first event sets the pace.
            let first = frames.iter().filter_map(|(n, one, _)| Some((one.as_ref()?, n))).min();
            let Some((anchor, number)) = first else { return Ok(()) };
            let is_first = |at: &Option<u64>| at.is_none_or(|at| at > *anchor);
            prop_assume!(frames.iter().all(|(_, _, other)| is_first(other)));
            let due = |n: u32| (anchor + buffer + u64::from(n) * 20).saturating_sub(u64::from(*number) * 20);
            prop_assume!(anchor + buffer > u64::from(*number) * 20);
            let fates = play_restored(&frames, &Config::fixed(Duration::from_millis(buffer)));
            for (n, arrives, is_restored) in &frames {
                let in_time = |at: &Option<u64>| at.is_some_and(|at| at <= due(*n));
                let expected = if in_time(arrives) {
                    Some(("played", due(*n)))
                } else if in_time(is_restored) {
                    Some(("recovered", due(*n)))
                } else {
                    arrives.map(|_| ("late", due(*n)))
                };
                prop_assert_eq!(fates.get(n).copied(), expected, "frame {}", n);
            }
        }

        #[test]
        fn an_adaptive_buffer_plays_what_arrives_or_is_restored_once(
            delays in prop::collection::vec(
                (prop::option::weighted(0.7, 0..150_u64), prop::option::weighted(0.7, 0..150_u64)), 2..120),
        ) {
            let frames: Vec<_> = (0..)
                .zip(&delays)
                .map(|(n, (delay, other))| {
                    let at = |delay: &Option<u64>| delay.map(|it| u64::from(n) * 20 + it);
                    (n, at(delay), at(other))
                })
                .collect();
            let fates = play_restored(&frames, &Config::default());
            for (n, arrives, is_restored) in &frames {
                let fate = fates.get(n).map(|(word, _)| *word);
                prop_assert!(arrives.is_none() || fate.is_some(), "frame {}", n);
                let is_possible = match fate {
                    None => true,
                    Some("recovered") => is_restored.is_some(),
                    _ => arrives.is_some(),
                };
                prop_assert!(is_possible, "frame {}: {:?}", n, fate);
            }
            let played: Vec<_> =
                fates.values().filter(|(word, _)| *word != "late").map(|(_, at)| *at).collect();
            prop_assert!(played.windows(2).all(|pair| pair[0] < pair[1]), "{:?}", played);
        }
    }

    /// Rows of ten packets, of which the third is lost in every `every`-th; its repair packet follows the last.
    fn rows(every: u32) -> Vec<(u32, Option<u64>, Option<u64>)> {
        let frame = |n: u32| {
            let is_lost = n % 10 == 2 && (n / 10).is_multiple_of(every);
            let at = |n: u32| u64::from(n) * 20 + 50;
            (n, (!is_lost).then_some(at(n)), is_lost.then_some(at(n + 7)))
        };
        (0..4000).map(frame).collect()
    }

    #[test]
    fn the_delay_grows_where_restored_frames_pay() {
        let play = |every, wait: Option<u64>| {
            let config =
                Config { recovery_wait: wait.map(Duration::from_millis), ..Config::default() };
            let fates = play_restored(&rows(every), &config);
            let recovered = fates.values().filter(|(word, _)| *word == "recovered").count();
            let (last, (_, at)) = fates.last_key_value().unwrap();
            (recovered, at - u64::from(*last) * 20)
        };
        // One of ten, 400 in all, each restored 140 ms after it would have arrived.
        let (recovered, delay) = play(1, None);
        assert!(recovered >= 390, "{recovered}");
        assert!((190..=215).contains(&delay), "{delay} ms");
        // One in 600 does not pay: 7 R for 140 ms, and 0.7 R for the loss.
        let (_, delay) = play(60, None);
        assert!(delay < 110, "{delay} ms");
        let (recovered, delay) = play(1, Some(0));
        assert!(recovered == 0 && delay < 110, "{recovered}, {delay} ms");
    }

    #[test]
    fn a_long_buffer_keeps_what_it_has_found() {
        // Of 200 frames in a buffer of 5 s, every second one is lost and restored.
        let at = |n: u32| u64::from(n) * 20 + 50;
        let frame =
            |n: u32| (n, n.is_multiple_of(2).then(|| at(n)), (n % 2 == 1).then(|| at(n + 1)));
        let frames: Vec<_> = (0..200).map(frame).collect();
        let fates = play_restored(&frames, &Config::fixed(Duration::from_secs(5)));
        assert_eq!(fates.values().filter(|it| it.0 == "recovered").count(), 100);
    }

    #[test]
    fn a_restored_frame_may_begin_or_end_a_talkspurt() {
        // Numbers 3 and 4 are the last of one talkspurt and the first of the next.
        let frames = [
            (0, Some(50), None),
            (1, Some(70), None),
            (2, Some(90), None),
            (3, None, Some(130)),
            (30, None, Some(690)),
            (31, Some(670), None),
            (32, Some(690), None),
        ];
        let fixed = play_restored(&frames, &Config::fixed(STEP * 3));
        assert_eq!(fixed[&3], ("recovered", 170));
        assert_eq!(fixed[&30], ("recovered", 710));
        let kind = Some(crate::playout::Kind::Talkspurt);
        let found = play_restored(&frames, &Config { kind, ..Config::default() });
        assert_eq!((found[&3].0, found[&30].0), ("recovered", "recovered"));
        assert_eq!(found[&31].1 - found[&30].1, 20);
        let wait = Some(Duration::from_millis(80));
        let found = play_restored(&frames, &Config { recovery_wait: wait, ..Config::default() });
        let words: Vec<_> = found.values().map(|it| it.0).collect();
        let (here, there) = ("played", "recovered");
        assert_eq!(words, [here, here, here, there, there, here, here]);
    }

    #[test]
    fn a_pause_of_the_speaker_is_no_loss() {
        let mut buffer = Buffer::new(&Config::fixed(STEP), (STEP, STEP), false, 64);
        let mut fates = Vec::new();
        // Number 2 is lost; between 1 and 3 nothing is sent for four steps.
        for (index, slot) in [(0, 0), (1, 1), (3, 7), (4, 8)] {
            let frame = Frame { slot, steps: 1, index, encoding: Some(0), repeats: 3 };
            buffer.on_frame(frame, Instant::ZERO, ms(u64::from(slot) * 20), |it| {
                fates.push(it.frame.index)
            });
        }
        buffer.finish(|it| fates.push(it.frame.index));
        assert_eq!(fates, [0, 1, 3, 4]);
    }
}
