//! Frames of media that is played: one byte of fate for each, when each was captured, and the
//! measures that need their order (ITU-T G.107's burst ratio).

use talkspurt_proto::time::Duration;

/// Where a frame is; as far as it came, at the end of the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Fate {
    Queued,
    HandedOver,
    Discarded,
    Delivered,
    Played,
    Late,
}

/// What became of a frame, in the words of the `frames` table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameFate {
    /// Played in time.
    Played,
    /// Delivered after its playout.
    Late,
    /// Handed to the transport and never to be delivered.
    Lost,
    /// Dropped from the send queue.
    Discarded,
    /// In the send queue at the end.
    Queued,
    /// Handed to the transport, neither delivered nor lost at the end.
    InFlight,
    /// Delivered, but the receiver said nothing of its playout.
    Delivered,
}

impl FrameFate {
    /// Its word in the `frames` table; `None` where the contract has none.
    #[must_use]
    pub const fn name(self) -> Option<&'static str> {
        match self {
            Self::Played => Some("played"),
            Self::Late => Some("late"),
            Self::Lost => Some("lost"),
            Self::Discarded => Some("discarded"),
            Self::Queued => Some("queued"),
            Self::InFlight => Some("in_flight"),
            Self::Delivered => None,
        }
    }
}

/// The frames of one direction.
#[derive(Clone, Debug)]
pub(crate) struct Voice {
    pub(crate) fates: Vec<Fate>,
    /// Length of a frame, in nanoseconds.
    frame: u64,
    /// End of the run, in nanoseconds.
    end: u64,
    captures: Captures,
    /// First frame and rung of each stretch in one encoding; the best comes first.
    rungs: Vec<(u32, u8)>,
}

impl Voice {
    /// Frames of this length, as many as fit into the run.
    pub(crate) fn new(frame: Duration, run: Duration) -> Self {
        let count = run.as_nanos() / frame.as_nanos().max(1) + 1;
        let fates = Vec::with_capacity(count.min(1 << 20) as usize);
        let (frame, end) = (frame.as_nanos(), run.as_nanos());
        Self { fates, frame, end, captures: Captures::default(), rungs: Vec::new() }
    }

    /// A frame was generated; false if it is not the next one.
    pub(crate) fn generated(&mut self, index: u32, captured: u64) -> bool {
        if index as usize != self.fates.len() {
            return false;
        }
        self.fates.push(Fate::Queued);
        self.captures.push(index, captured);
        true
    }

    /// The frames from the next one on are in this rung of the ladder.
    pub(crate) fn encoding(&mut self, rung: u8) {
        self.rungs.push((self.fates.len() as u32, rung));
    }

    /// Whether the source ever changed the encoding.
    pub(crate) const fn has_rungs(&self) -> bool {
        !self.rungs.is_empty()
    }

    /// The rung a frame was sent in, 0 being the best.
    pub(crate) fn rung(&self, index: u32) -> u8 {
        let after = self.rungs.partition_point(|(first, _)| *first <= index);
        after.checked_sub(1).map_or(0, |stretch| self.rungs[stretch].1)
    }

    /// Frames of `first..end` that were played, by rung; empty for a source that never changed it.
    pub(crate) fn played_by_rung(&self, first: u32, end: u32) -> Vec<u64> {
        let Some(lowest) = self.rungs.iter().map(|(_, rung)| *rung).max() else {
            return Vec::new();
        };
        let mut played = vec![0; usize::from(lowest) + 1];
        for index in (first..end).filter(|index| self.fates[*index as usize] == Fate::Played) {
            played[usize::from(self.rung(index))] += 1;
        }
        played
    }

    /// Moves a frame on; false if there is none of this number.
    pub(crate) fn set(&mut self, index: u32, fate: Fate) -> bool {
        self.fates.get_mut(index as usize).map(|slot| *slot = fate).is_some()
    }

    /// When a frame was captured, in nanoseconds.
    pub(crate) fn captured(&self, index: u32) -> Option<u64> {
        ((index as usize) < self.fates.len()).then(|| self.captures.at(index))?
    }

    /// What became of frames `first..end` for a listener, in order and with their captures. A frame on its way whose playout would have come after the run is not judged;
    /// `mouth_to_ear` is the delay at which the others were played.
    pub(crate) fn heard(
        &self,
        first: u32,
        end: u32,
        mouth_to_ear: Option<Duration>,
    ) -> impl Iterator<Item = (u64, Fate)> + '_ {
        (first..end).filter_map(move |index| {
            let (fate, captured) = (self.fates[index as usize], self.captures.at(index)?);
            let due = captured + mouth_to_ear.unwrap_or_default().as_nanos();
            let undecided = matches!(fate, Fate::Queued | Fate::HandedOver) && due >= self.end;
            (!undecided).then_some((captured, fate))
        })
    }

    /// The longest stretch of speech of which nothing was heard: the frames of one run of missing or
    /// late ones, each as long as until the next, or as frames are before a pause of the speaker.
    /// `None` without a frame.
    pub(crate) fn longest_gap(&self, heard: impl Iterator<Item = (u64, Fate)>) -> Option<Duration> {
        let (mut longest, mut gap, mut unheard) = (None, 0, None);
        for (captured, fate) in heard {
            if let Some(last) = unheard {
                let step = captured - last;
                gap += if step <= 2 * self.frame { step } else { self.frame };
            }
            longest = longest.max(Some(gap));
            unheard = fate.is_unheard().then_some(captured);
            if unheard.is_none() {
                gap = 0;
            }
        }
        let last = unheard.map(|_| gap + self.frame);
        longest.max(last).map(Duration::from_nanos)
    }

    /// What became of every frame. `in_flight(k)` tells of the k-th frame handed over, counted
    /// from the last, whether an undelivered one is still on its way.
    pub(crate) fn outcome(&self, in_flight: impl Fn(usize) -> bool) -> Vec<FrameFate> {
        let mut handed_after = 0;
        let mut outcome: Vec<FrameFate> = self
            .fates
            .iter()
            .rev()
            .map(|fate| {
                let rank = handed_after;
                handed_after += usize::from(!matches!(fate, Fate::Queued | Fate::Discarded));
                match fate {
                    Fate::Queued => FrameFate::Queued,
                    Fate::Discarded => FrameFate::Discarded,
                    Fate::HandedOver if in_flight(rank) => FrameFate::InFlight,
                    Fate::HandedOver => FrameFate::Lost,
                    Fate::Delivered => FrameFate::Delivered,
                    Fate::Played => FrameFate::Played,
                    Fate::Late => FrameFate::Late,
                }
            })
            .collect();
        outcome.reverse();
        outcome
    }
}

impl Fate {
    /// Never delivered by the end.
    pub(crate) const fn is_missing(self) -> bool {
        matches!(self, Self::Queued | Self::HandedOver | Self::Discarded)
    }

    /// Missing or late.
    pub(crate) const fn is_unheard(self) -> bool {
        self.is_missing() || matches!(self, Self::Late)
    }
}

/// Burst ratio of ITU-T G.107: mean length of the observed runs of losses over the mean length
/// expected under random loss, `1 / (1 − loss ratio)`. `None` without a loss.
pub fn burst_ratio(lost: impl IntoIterator<Item = bool>) -> Option<f64> {
    let (mut frames, mut losses, mut runs, mut before) = (0_u64, 0_u64, 0_u64, false);
    for is_lost in lost {
        frames += 1;
        losses += u64::from(is_lost);
        runs += u64::from(is_lost && !before);
        before = is_lost;
    }
    (runs > 0).then(|| (losses as f64 / runs as f64) * ((frames - losses) as f64 / frames as f64))
}

/// Capture instants, as runs of equal steps: a steady clock is one run however long it talks.
#[derive(Clone, Debug, Default)]
struct Captures {
    runs: Vec<Run>,
    last: u64,
}

#[derive(Clone, Copy, Debug)]
struct Run {
    index: u32,
    captured: u64,
    /// Time to the next frame; known once there is one.
    step: Option<i64>,
}

impl Captures {
    fn push(&mut self, index: u32, captured: u64) {
        let step = captured.wrapping_sub(self.last) as i64;
        self.last = captured;
        match self.runs.last_mut() {
            Some(run) if run.step.is_none() => run.step = Some(step),
            Some(run) if run.step == Some(step) => {}
            _ => self.runs.push(Run { index, captured, step: None }),
        }
    }

    fn at(&self, index: u32) -> Option<u64> {
        // What is asked for is nearly always of the present talkspurt.
        let present = self.runs.last().filter(|run| run.index <= index);
        let run = present.or_else(|| {
            let after = self.runs.partition_point(|run| run.index <= index);
            self.runs.get(after.checked_sub(1)?)
        })?;
        let steps = i64::from(index - run.index);
        Some(run.captured.wrapping_add_signed(steps.wrapping_mul(run.step.unwrap_or(0))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn captures_are_remembered_exactly(steps in prop::collection::vec(0_u64..3, 0..200)) {
            let mut voice = Voice::new(Duration::from_millis(20), Duration::from_secs(1));
            let mut instants = Vec::new();
            let mut now = 5;
            for step in steps {
                now += step;
                prop_assert!(voice.generated(instants.len() as u32, now));
                instants.push(now);
            }
            for (index, instant) in instants.iter().enumerate() {
                prop_assert_eq!(voice.captured(index as u32), Some(*instant));
            }
            prop_assert_eq!(voice.captured(instants.len() as u32), None);
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
            voice.set(index, if index == 4 { Fate::Late } else { Fate::Played });
        }
        // 0 to 2 in the best, 3, 5 and 6 in the third, 7 to 9 in the second.
        assert_eq!(voice.played_by_rung(0, 10), [3, 3, 3]);
        assert_eq!(voice.played_by_rung(2, 8), [1, 1, 3]);
        assert!(Voice::new(Duration::ZERO, Duration::ZERO).played_by_rung(0, 0).is_empty());
    }

    #[test]
    fn the_longest_gap_is_the_longest_and_counts_late_frames() {
        let of = |text: &str| {
            let mut voice = Voice::new(Duration::from_millis(20), Duration::from_secs(1));
            for (index, letter) in (0_u32..).zip(text.chars()) {
                voice.generated(index, 20_000_000 * u64::from(index));
                voice.set(index, if letter == 'l' { Fate::Late } else { Fate::Played });
                if letter == 'd' {
                    voice.set(index, Fate::Discarded);
                }
            }
            let heard = voice.heard(0, text.len() as u32, None);
            voice.longest_gap(heard).map(|gap| gap.as_nanos() / 1_000_000)
        };
        assert_eq!(of(""), None);
        assert_eq!(of("..."), Some(0));
        assert_eq!(of(".d.lld."), Some(60));
        assert_eq!(of("ll.d"), Some(40));
        assert_eq!(of("d.ddd"), Some(60));
    }

    #[test]
    fn a_steady_clock_is_one_run() {
        let mut voice = Voice::new(Duration::from_millis(20), Duration::from_secs(1));
        for index in 0..10_000 {
            voice.generated(index, 7 + 20_000_000 * u64::from(index));
        }
        assert_eq!(voice.captures.runs.len(), 1);
    }
}
