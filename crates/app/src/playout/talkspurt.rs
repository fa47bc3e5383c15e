//! A jitter buffer that changes its delay between talkspurts (Ramjee, Kurose, Towsley, Schulzrinne, "Adaptive
//! playout mechanisms for packetized audio applications in wide-area networks", INFOCOM 1994, algorithm 4): the
//! delay is an average plus four times the mean deviation, and follows a spike while it lasts. Times are
//! nanoseconds; the paper's constants are samples of 125 µs.

use talkspurt_proto::probe::Playout;
use talkspurt_proto::time::{Duration, Instant};

use super::{Decision, Frame};

const SAMPLE: i64 = 125_000;
/// A change of the delay by this, beyond twice the deviation, begins a spike.
const SPIKE: i64 = 800 * SAMPLE;
/// Slope at which a spike has ended.
const FLAT: i64 = 63 * SAMPLE;
/// Share of a new value in the averages, as its inverse.
const GAIN: i64 = 8;
/// Deviations between the average and the delay of playout.
const BETA: i64 = 4;

/// A jitter buffer for one stream of frames.
#[derive(Clone, Debug)]
pub(super) struct Talkspurt {
    step: i64,
    state: Option<State>,
}

#[derive(Clone, Debug)]
struct State {
    /// Arrival less place in the stream: the latest two, the average and its deviation.
    latest: [i64; 2],
    average: i64,
    deviation: i64,
    /// The slope in a spike.
    spike: Option<i64>,
    /// Playout less place in the stream, of this talkspurt.
    offset: i64,
    /// Place and number of the latest frame, and the place that follows it.
    slot: u32,
    index: u32,
    steps: u32,
}

impl Talkspurt {
    pub(super) fn new(step: Duration) -> Self {
        Self { step: step.as_nanos() as i64, state: None }
    }

    pub(super) fn on_frame(&mut self, frame: Frame, now: Instant) -> Decision {
        let place = i64::from(frame.slot) * self.step;
        let now = now.as_nanos() as i64;
        let state = self.state.get_or_insert_with(|| State::first(&frame, now - place));
        state.measure(now - place);
        Decision::of(frame, state.playout(&frame, place, now))
    }

    /// The playout of a frame that was restored at `now`, which is no measure of the network's delay.
    pub(super) fn on_restored(&mut self, frame: &Frame, now: Instant) -> Playout {
        let place = i64::from(frame.slot) * self.step;
        let now = now.as_nanos() as i64;
        let state = self.state.get_or_insert_with(|| State::first(frame, now - place));
        state.playout(frame, place, now)
    }
}

impl State {
    /// Before the first frame; without a measured deviation, the delay is as before a spike's end.
    fn first(frame: &Frame, offset: i64) -> Self {
        Self {
            latest: [offset; 2],
            average: offset,
            // As long as the deviation is unknown: 80 ms of delay.
            deviation: 20_000_000,
            spike: None,
            offset: offset + BETA * 20_000_000,
            slot: frame.slot,
            index: frame.index,
            steps: frame.steps,
        }
    }

    /// The playout of a frame by the delay of its talkspurt, which may begin with it.
    fn playout(&mut self, frame: &Frame, place: i64, now: i64) -> Playout {
        if self.begins_talkspurt(frame) {
            self.offset = self.average + BETA * self.deviation;
        }
        let due = place + self.offset;
        let at = Instant::from_nanos(due.max(0) as u64);
        if now <= due { Playout::Played(at) } else { Playout::Late(at) }
    }

    fn measure(&mut self, offset: i64) {
        let [before, earlier] = self.latest;
        self.latest = [offset, before];
        match &mut self.spike {
            None if (offset - before).abs() > 2 * self.deviation + SPIKE => self.spike = Some(0),
            None => {}
            Some(slope) => {
                *slope = *slope / 2 + ((2 * offset - before - earlier) / 8).abs();
                if *slope <= FLAT {
                    self.spike = None;
                    return;
                }
            }
        }
        self.average = match self.spike {
            None => (offset + (GAIN - 1) * self.average) / GAIN,
            Some(_) => self.average + offset - before,
        };
        let deviation = (offset - self.average).abs();
        self.deviation = (deviation + (GAIN - 1) * self.deviation) / GAIN;
    }

    /// True if the speaker paused before this frame: it is farther from the latest one than the frames
    /// between them, by their numbers, account for.
    fn begins_talkspurt(&mut self, frame: &Frame) -> bool {
        let frames = i64::from(frame.index.wrapping_sub(self.index) as i32);
        let steps = i64::from(frame.slot) - i64::from(self.slot);
        let begins = frames > 0 && steps > frames * i64::from(self.steps.max(frame.steps));
        if frames > 0 {
            (self.slot, self.index, self.steps) = (frame.slot, frame.index, frame.steps);
        }
        begins
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STEP: Duration = Duration::from_millis(20);

    /// Mouth-to-ear delays in ms of the first frames of talkspurts of 10 frames, 20 steps apart, by the
    /// network's delay in ms of each frame; negative if late.
    fn starts(delay: impl Fn(u32) -> u64, spurts: u32) -> Vec<i64> {
        let mut buffer = Talkspurt::new(STEP);
        let mut found = Vec::new();
        for number in 0..10 * spurts {
            let slot = number / 10 * 20 + number % 10;
            let captured = Instant::ZERO + STEP * u64::from(slot);
            let frame = Frame { slot, index: number, steps: 1, encoding: Some(0), repeats: 0 };
            let decision = buffer.on_frame(frame, captured + Duration::from_millis(delay(number)));
            if number % 10 == 0 {
                found.push(match decision.playout {
                    Playout::Played(at) => (at - captured).as_nanos() as i64 / 1_000_000,
                    _ => -1,
                });
            }
        }
        found
    }

    #[test]
    fn a_constant_delay_needs_no_buffer() {
        let found = starts(|_| 50, 20);
        assert_eq!(found[0], 130);
        assert_eq!(*found.last().unwrap(), 50);
    }

    #[test]
    fn the_delay_is_the_average_and_four_deviations() {
        // Delays of 40 and 60 ms in turn: average about 50, deviation about 10.
        let found = starts(|number| if number % 2 == 0 { 40 } else { 60 }, 40);
        assert!((85..=100).contains(found.last().unwrap()), "{found:?}");
    }

    #[test]
    fn a_talkspurt_keeps_its_delay_and_the_next_follows_a_longer_path() {
        let found = starts(|number| if number < 105 { 50 } else { 230 }, 30);
        assert!(found[10] < 60, "{found:?}");
        assert!(found[11] >= 230, "{found:?}");
    }
}
