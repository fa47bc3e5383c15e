//! Reception of a stretch of speech: counts of frames, and the measures that depend on their order (ITU-T
//! G.107's burst ratio, the longest gap).

use talkspurt_proto::time::Duration;

use crate::frame_state::{Cohort, FrameState};
use crate::voice::Voice;

/// The frames of a window, processed in order.
#[derive(Clone, Debug, Default)]
pub(crate) struct Heard {
    /// Frames by state.
    frames: [u64; 8],
    /// Of these, in flight with a playout after the end of the run: not judged.
    undecided: u64,
    /// Runs of missing or late frames.
    runs: u64,
    /// The longest of their durations in nanoseconds; `None` without a frame.
    longest: Option<u64>,
    /// Duration of the current run up to its last frame, and the capture time of that frame.
    gap: u64,
    unheard: Option<u64>,
    /// Pauses of playout, and their total length in frames.
    pauses: (u64, f64),
}

impl Heard {
    /// Statistics of the frames of a cohort. A frame in flight whose playout would follow the end of the
    /// run is not judged; `mouth_to_ear`, in nanoseconds, is the delay at which the others were played.
    pub(crate) fn of(voice: &Voice, cohort: Cohort, mouth_to_ear: u64) -> Self {
        let mut heard = Self::default();
        let mut index = cohort.first;
        while index < cohort.end {
            let (fates, captured) = (voice.fates(index), voice.captured(index));
            // Nearly all frames were played: process as many in a row as the word contains.
            let played = (fates.of(FrameState::Played) >> (index % 64)).trailing_ones();
            let played = played.min(cohort.end - index);
            if played > 0 {
                heard.frames[FrameState::Played as usize] += u64::from(played);
                heard.judge(captured, false, voice.frame());
                index += played;
                continue;
            }
            let fate = fates.at(index);
            heard.frames[fate as usize] += 1;
            let on_its_way = matches!(fate, FrameState::Queued | FrameState::HandedOver);
            if on_its_way && captured + mouth_to_ear >= voice.end() {
                heard.undecided += 1;
            } else {
                heard.judge(captured, fate.is_unheard(), voice.frame());
            }
            index += 1;
        }
        // The frame after the last is unknown.
        if heard.unheard.is_some() {
            heard.longest = heard.longest.max(Some(heard.gap + voice.frame()));
        }
        heard
    }

    /// Adds pauses of playout: their number, and their total length in nanoseconds.
    pub(crate) fn with_pauses(mut self, (number, length): (u32, u64), frame: u64) -> Self {
        self.pauses = (number.into(), length as f64 / frame.max(1) as f64);
        self
    }

    /// Judges a frame as heard or not. A gap lasts as long as the frames of its run; each lasts until the
    /// next judged frame, or for the frame length before a pause of the speaker.
    fn judge(&mut self, captured: u64, is_unheard: bool, frame: u64) {
        match self.unheard {
            Some(last) => {
                let step = captured - last;
                self.gap += if step <= 2 * frame { step } else { frame };
            }
            None => self.runs += u64::from(is_unheard),
        }
        self.longest = self.longest.max(Some(self.gap));
        self.unheard = is_unheard.then_some(captured);
        if !is_unheard {
            self.gap = 0;
        }
    }

    /// Frames in this state.
    pub(crate) fn frames(&self, fate: FrameState) -> u64 {
        self.frames[fate as usize]
    }

    /// Frames given to the transport.
    pub(crate) fn handed_over(&self) -> u64 {
        let stayed = [FrameState::Queued, FrameState::Discarded, FrameState::DiscardedRecovered];
        let stayed: u64 = stayed.into_iter().map(|fate| self.frames(fate)).sum();
        self.frames.iter().sum::<u64>() - stayed
    }

    /// Judged frames.
    pub(crate) fn judged(&self) -> u64 {
        self.frames.iter().sum::<u64>() - self.undecided
    }

    /// Judged frames that were neither delivered nor recovered.
    pub(crate) fn missing(&self) -> u64 {
        let missing = FrameState::ALL.into_iter().filter(|fate| fate.is_missing());
        missing.map(|fate| self.frames(fate)).sum::<u64>() - self.undecided
    }

    /// Frames whose sound was in a later packet.
    pub(crate) fn recovered(&self) -> u64 {
        self.frames(FrameState::Recovered) + self.frames(FrameState::DiscardedRecovered)
    }

    /// Judged frames that were delivered after their playout time.
    pub(crate) fn late(&self) -> u64 {
        self.frames(FrameState::Late)
    }

    /// Share of judged frames that were missing or late.
    pub(crate) fn loss_ratio(&self) -> Option<f64> {
        let judged = self.judged();
        (judged > 0).then(|| (self.missing() + self.late()) as f64 / judged as f64)
    }

    /// Shares of speech time that were missing, late, and pauses of playout; their sum is the unheard share.
    pub(crate) fn unheard(&self) -> Option<[f64; 3]> {
        let (judged, pauses) = (self.judged(), self.pauses.1);
        let parts = [self.missing() as f64, self.late() as f64, pauses];
        (judged > 0).then(|| parts.map(|part| part / (judged as f64 + pauses)))
    }

    /// Share of speech time that was concealed or skipped: missing and late frames, and pauses.
    pub(crate) fn concealed_ratio(&self) -> Option<f64> {
        let judged = self.judged();
        let concealed = (self.missing() + self.late()) as f64 + self.pauses.1;
        (judged > 0).then(|| concealed / (judged as f64 + self.pauses.1))
    }

    /// The burst ratio of what was concealed; each pause counts as a run of losses.
    pub(crate) fn burst_ratio(&self) -> Option<f64> {
        let (pauses, length) = self.pauses;
        let concealed = (self.missing() + self.late()) as f64 + length;
        burst_ratio_of(self.judged() as f64 + length, concealed, self.runs + pauses)
    }

    /// The longest unheard stretch of speech.
    pub(crate) fn longest_gap(&self) -> Option<Duration> {
        self.longest.map(Duration::from_nanos)
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
    burst_ratio_of(frames as f64, losses as f64, runs)
}

fn burst_ratio_of(frames: f64, losses: f64, runs: u64) -> Option<f64> {
    (runs > 0).then(|| (losses / runs as f64) * ((frames - losses) / frames))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::voice::tests::bring;

    const FRAME: u64 = 20_000_000;
    const END: u64 = 100 * FRAME;

    fn voice(frames: impl IntoIterator<Item = (u64, FrameState)>) -> Voice {
        let mut voice = Voice::new(Duration::from_nanos(FRAME), Duration::from_nanos(END));
        for (index, (captured, fate)) in (0_u32..).zip(frames) {
            assert!(voice.generated(index, captured));
            bring(&mut voice, index, fate);
        }
        voice
    }

    proptest! {
        /// Compares with frame-by-frame counts.
        #[test]
        fn counts_as_one_would_by_hand(
            steps in prop::collection::vec((0_u64..6, 0_usize..40), 0..300),
            window in (0_u32..300, 0_u32..300),
            mouth_to_ear in 0..20 * FRAME,
        ) {
            let mut captured = 0;
            let frames: Vec<(u64, FrameState)> = steps.into_iter().map(|(step, fate)| {
                // Most frames are played, and most steps are one frame long.
                captured += [0, FRAME / 2, 2 * FRAME, 5 * FRAME].get(step as usize).unwrap_or(&FRAME);
                (captured, *FrameState::ALL.get(fate).unwrap_or(&FrameState::Played))
            }).collect();
            let end = window.1.min(frames.len() as u32);
            let first = window.0.min(end);
            let heard = Heard::of(&voice(frames.clone()), Cohort { first, end }, mouth_to_ear);
            let all = &frames[first as usize..end as usize];
            for fate in FrameState::ALL {
                prop_assert_eq!(heard.frames(fate), all.iter().filter(|(_, it)| *it == fate).count() as u64);
            }
            let judged: Vec<(u64, FrameState)> = all.iter().copied().filter(|(captured, fate)| {
                !matches!(fate, FrameState::Queued | FrameState::HandedOver) || captured + mouth_to_ear < END
            }).collect();
            let count = |is: fn(FrameState) -> bool| judged.iter().filter(|(_, fate)| is(*fate)).count() as u64;
            prop_assert_eq!(heard.judged(), judged.len() as u64);
            prop_assert_eq!(heard.missing(), count(FrameState::is_missing));
            prop_assert_eq!(heard.late(), count(|fate| fate == FrameState::Late));
            prop_assert_eq!(heard.burst_ratio(), burst_ratio(judged.iter().map(|(_, fate)| fate.is_unheard())));
            // Every speech frame lasts until the next, or for the frame length.
            let lengths = judged.windows(2).map(|pair| pair[1].0 - pair[0].0).chain([FRAME]);
            let lengths = lengths.map(|step| if step <= 2 * FRAME { step } else { FRAME });
            let (mut longest, mut gap) = (0, 0);
            for ((_, fate), length) in judged.iter().zip(lengths) {
                gap = if fate.is_unheard() { gap + length } else { 0 };
                longest = longest.max(gap);
            }
            let longest = (!judged.is_empty()).then(|| Duration::from_nanos(longest));
            prop_assert_eq!(heard.longest_gap(), longest);
        }
    }

    #[test]
    fn the_longest_gap_is_the_longest_and_counts_late_frames() {
        let of = |text: &str| {
            let fate = |letter| match letter {
                'l' => FrameState::Late,
                'd' => FrameState::Discarded,
                _ => FrameState::Played,
            };
            let voice = voice((0..).map(|index| FRAME * index).zip(text.chars().map(fate)));
            let heard = Heard::of(&voice, Cohort { first: 0, end: text.len() as u32 }, 0);
            heard.longest_gap().map(|gap| gap.as_nanos() / 1_000_000)
        };
        assert_eq!(of(""), None);
        assert_eq!(of("..."), Some(0));
        assert_eq!(of(".d.lld."), Some(60));
        assert_eq!(of("ll.d"), Some(40));
        assert_eq!(of("d.ddd"), Some(60));
    }
}
