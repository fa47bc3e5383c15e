//! Frames of media with playout: the state and the capture time of each.

use talkspurt_proto::time::Duration;

use crate::frame_state::{FrameOutcome, FrameState, FrameStates};

/// The frames of one direction. Recent frames are stored inline, past ones in a box: with the cohort of
/// frames in [`Account`](crate::account::Account) it fills a cache line.
#[derive(Clone, Debug)]
pub(crate) struct Voice {
    /// The current talkspurt, up to the last frame.
    run: Run,
    /// The states of the last frames, from a multiple of 64 on.
    fates: FrameStates,
    past: Box<Past>,
}

/// Frames `first..end`, captured at equal intervals: a steady clock is a single run of any length.
#[derive(Clone, Copy, Debug)]
struct Run {
    first: u32,
    end: u32,
    /// Capture time of the first, and the interval between frames, in nanoseconds.
    captured: u64,
    step: u64,
}

/// Rarely used data.
#[derive(Clone, Debug)]
struct Past {
    fates: Vec<FrameStates>,
    runs: Vec<Run>,
    /// First frame and rung of each stretch in one encoding; the best comes first.
    rungs: Vec<(u32, u8)>,
    /// Length of a frame, in nanoseconds.
    frame: u64,
    /// End of the run, in nanoseconds.
    end: u64,
}

impl Run {
    /// The capture time of a frame, extrapolated after the end of the talkspurt.
    #[inline(always)]
    fn at(&self, index: u32) -> u64 {
        self.captured.wrapping_add(self.step.wrapping_mul(u64::from(index - self.first)))
    }
}

impl Voice {
    /// Frames of this length, with capacity for the run.
    pub(crate) fn new(frame: Duration, run: Duration) -> Self {
        let count = run.as_nanos() / frame.as_nanos().max(1) / 64 + 1;
        let (frame, end) = (frame.as_nanos(), run.as_nanos());
        let fates = Vec::with_capacity(count.min(1 << 14) as usize);
        let past = Past { fates, runs: Vec::new(), rungs: Vec::new(), frame, end };
        let run = Run { first: 0, end: 0, captured: 0, step: frame };
        Self { run, fates: FrameStates::default(), past: Box::new(past) }
    }

    /// A frame was generated; false if it is not the next one.
    #[inline]
    pub(crate) fn generated(&mut self, index: u32, captured: u64) -> bool {
        if index != self.run.end {
            return false;
        }
        if index.is_multiple_of(64) {
            self.turn();
        }
        if captured != self.run.at(index) {
            self.part(index, captured);
        }
        self.run.end = index + 1;
        true
    }

    /// Moves a full word of 64 states to the past.
    #[cold]
    fn turn(&mut self) {
        if self.run.end > 0 {
            self.past.fates.push(std::mem::take(&mut self.fates));
        }
    }

    /// Handles a frame with an unexpected capture time: its step was only assumed, or a new talkspurt
    /// begins, whose step is assumed to be the frame length.
    #[cold]
    fn part(&mut self, index: u32, captured: u64) {
        let run = &mut self.run;
        match index - run.first {
            1 => run.step = captured.wrapping_sub(run.captured),
            known => {
                if known > 0 {
                    self.past.runs.push(*run);
                }
                *run = Run { first: index, end: index, captured, step: self.past.frame };
            }
        }
    }

    /// The number of frames.
    pub(crate) const fn count(&self) -> u32 {
        self.run.end
    }

    /// Advances the state of a frame; false if it is not in state `from`, or does not exist.
    #[inline(always)]
    pub(crate) fn advance(&mut self, index: u32, from: FrameState, to: FrameState) -> bool {
        if index >= self.run.end {
            return false;
        }
        let fates = if self.is_present(index) { &mut self.fates } else { self.earlier(index) };
        fates.advance(index, from, to)
    }

    /// Whether the state of a generated frame is among the recent ones.
    #[inline(always)]
    const fn is_present(&self, index: u32) -> bool {
        index ^ (self.run.end - 1) < 64
    }

    #[cold]
    fn earlier(&mut self, index: u32) -> &mut FrameStates {
        &mut self.past.fates[index as usize / 64]
    }

    /// The states of a generated frame and its neighbours.
    pub(crate) fn fates(&self, index: u32) -> &FrameStates {
        if self.is_present(index) { &self.fates } else { &self.past.fates[index as usize / 64] }
    }

    fn fate(&self, index: u32) -> FrameState {
        self.fates(index).at(index)
    }

    /// The capture time of a generated frame, in nanoseconds.
    #[inline(always)]
    pub(crate) fn captured(&self, index: u32) -> u64 {
        // Nearly all queries concern the current talkspurt.
        if index >= self.run.first { self.run.at(index) } else { self.captured_before(index) }
    }

    #[cold]
    fn captured_before(&self, index: u32) -> u64 {
        let after = self.past.runs.partition_point(|run| run.first <= index);
        self.past.runs[after - 1].at(index)
    }

    /// Length of a frame, in nanoseconds.
    pub(crate) const fn frame(&self) -> u64 {
        self.past.frame
    }

    /// End of the run, in nanoseconds.
    pub(crate) const fn end(&self) -> u64 {
        self.past.end
    }

    /// Frames from the next one on are in this rung of the ladder.
    pub(crate) fn encoding(&mut self, rung: u8) {
        self.past.rungs.push((self.count(), rung));
    }

    /// Whether the source ever changed the encoding.
    pub(crate) const fn has_rungs(&self) -> bool {
        !self.past.rungs.is_empty()
    }

    /// The rung in which a frame was sent, 0 being the best.
    pub(crate) fn rung(&self, index: u32) -> u8 {
        let rungs = &self.past.rungs;
        let after = rungs.partition_point(|(first, _)| *first <= index);
        after.checked_sub(1).map_or(0, |stretch| rungs[stretch].1)
    }

    /// Played frames of `first..end`, by rung; empty for a source that never changed it.
    pub(crate) fn played_by_rung(&self, first: u32, end: u32) -> Vec<u64> {
        let Some(lowest) = self.past.rungs.iter().map(|(_, rung)| *rung).max() else {
            return Vec::new();
        };
        let mut played = vec![0; usize::from(lowest) + 1];
        let is_heard = |fate: FrameState| fate == FrameState::Played || fate.is_recovered();
        for index in (first..end).filter(|index| is_heard(self.fate(*index))) {
            played[usize::from(self.rung(index))] += 1;
        }
        played
    }

    /// The outcome of every frame. `in_flight(k)` returns whether the k-th frame handed over, counted from
    /// the last, is still in flight if undelivered.
    pub(crate) fn outcome(&self, in_flight: impl Fn(usize) -> bool) -> Vec<FrameOutcome> {
        let mut handed_after = 0;
        let mut outcome: Vec<FrameOutcome> = (0..self.count())
            .rev()
            .map(|index| {
                let (fate, rank) = (self.fate(index), handed_after);
                let stayed = matches!(
                    fate,
                    FrameState::Queued | FrameState::Discarded | FrameState::DiscardedRecovered
                );
                handed_after += usize::from(!stayed);
                match fate {
                    FrameState::Queued => FrameOutcome::Queued,
                    FrameState::Discarded => FrameOutcome::Discarded,
                    FrameState::HandedOver if in_flight(rank) => FrameOutcome::InFlight,
                    FrameState::HandedOver => FrameOutcome::Lost,
                    FrameState::Delivered => FrameOutcome::Delivered,
                    FrameState::Played => FrameOutcome::Played,
                    FrameState::Late => FrameOutcome::Late,
                    FrameState::Recovered | FrameState::DiscardedRecovered => {
                        FrameOutcome::Recovered
                    }
                }
            })
            .collect();
        outcome.reverse();
        outcome
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Advances a frame up to this state.
    pub(crate) fn bring(voice: &mut Voice, index: u32, fate: FrameState) {
        let way = match fate {
            FrameState::Queued => &[][..],
            FrameState::HandedOver | FrameState::Discarded => &[fate],
            FrameState::Delivered | FrameState::Recovered => &[FrameState::HandedOver, fate],
            FrameState::DiscardedRecovered => &[FrameState::Discarded, fate],
            FrameState::Played | FrameState::Late => {
                &[FrameState::HandedOver, FrameState::Delivered, fate]
            }
        };
        let mut from = FrameState::Queued;
        for to in way {
            assert!(voice.advance(index, from, *to));
            from = *to;
        }
    }

    proptest! {
        #[test]
        fn captures_are_remembered_exactly(steps in prop::collection::vec(0_u64..3, 0..200)) {
            let mut voice = Voice::new(Duration::from_nanos(1), Duration::from_secs(1));
            let mut instants = Vec::new();
            let mut now = 5;
            for step in steps {
                now += step;
                prop_assert!(voice.generated(instants.len() as u32, now));
                instants.push(now);
                for (index, instant) in instants.iter().enumerate() {
                    prop_assert_eq!(voice.captured(index as u32), *instant);
                }
            }
        }

        /// Compares with a plain list of states: a frame advances only from its current state, and no other
        /// frame changes with it.
        #[test]
        fn fates_are_remembered_exactly(steps in prop::collection::vec((0_u32..220, 0_usize..11, 0_usize..8), 0..900)) {
            let mut voice = Voice::new(Duration::from_millis(20), Duration::from_secs(1));
            let mut plain = Vec::new();
            for (index, from, to) in steps {
                let next = plain.len() as u32;
                let (Some(from), to) = (FrameState::ALL.get(from), FrameState::ALL[to]) else {
                    prop_assert!(!voice.generated(next + 1, 0));
                    prop_assert!(voice.generated(next, 20_000_000 * u64::from(next)));
                    plain.push(FrameState::Queued);
                    continue;
                };
                let found = plain.get_mut(index as usize).filter(|fate| **fate == *from);
                prop_assert_eq!(voice.advance(index, *from, to), found.is_some());
                found.into_iter().for_each(|fate| *fate = to);
            }
            prop_assert_eq!(voice.count() as usize, plain.len());
            for (index, fate) in plain.into_iter().enumerate() {
                prop_assert_eq!(voice.fate(index as u32), fate);
            }
        }
    }

    #[test]
    fn frames_are_counted_in_the_rung_they_were_sent_in() {
        let mut voice = Voice::new(Duration::from_millis(20), Duration::from_secs(1));
        for index in 0..10 {
            match index {
                3 => voice.encoding(2),
                7 => voice.encoding(1),
                _ => {}
            }
            voice.generated(index, u64::from(index));
            bring(
                &mut voice,
                index,
                if index == 4 { FrameState::Late } else { FrameState::Played },
            );
        }
        // 0 to 2 in the best, 3, 5 and 6 in the third, 7 to 9 in the second.
        assert_eq!(voice.played_by_rung(0, 10), [3, 3, 3]);
        assert_eq!(voice.played_by_rung(2, 8), [1, 1, 3]);
        assert!(Voice::new(Duration::ZERO, Duration::ZERO).played_by_rung(0, 0).is_empty());
    }

    #[test]
    fn a_steady_clock_is_one_run() {
        for frame in [20, 30] {
            let mut voice = Voice::new(Duration::from_millis(frame), Duration::from_secs(1));
            for index in 0..10_000 {
                voice.generated(index, 7 + 20_000_000 * u64::from(index));
            }
            assert!(voice.past.runs.is_empty());
        }
    }
}
