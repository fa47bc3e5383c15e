//! Voice activity of a recording: where its short-term power is near that of active speech.
//!
//! The threshold follows method B of ITU-T P.56: it lies a margin below the active speech level, which is the
//! power averaged over the time above the threshold, extended by a hangover. Powers are those of 10 ms here,
//! and of an envelope in P.56. Speech whose background is less than the margin below it is all active.

use std::ops::Range;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use talkspurt_proto::math;
use talkspurt_proto::time::Duration;

/// The unit of decisions.
const FRAME: Duration = Duration::from_millis(10);
/// Thresholds are tried in steps of this factor, 0.5 dB, from −96 dB of the highest power on.
const STEP: f64 = 1.122_018_454_301_963_3;
const LOWEST: f64 = 2.511_886_431_509_582e-10;

/// Voice activity detection. The threshold is below the active speech level, which is that of ITU-T P.56 with
/// powers of 10 ms: the power averaged over the time above the threshold and the hangover. Background that is
/// closer to the speech counts as speech.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Vad {
    /// Time for which a talkspurt continues after the last active 10 ms (ITU-T P.56: 200 ms); pauses up to
    /// this length are spoken.
    pub hangover: Duration,
    /// Difference between the active speech level and the threshold, in dB (ITU-T P.56: 15.9).
    #[schemars(range(min = 1, max = 60))]
    pub margin: f64,
}

impl Default for Vad {
    fn default() -> Self {
        Self { hangover: Duration::from_millis(200), margin: 15.9 }
    }
}

/// When speech is active, in order and apart from each other: time since the beginning of the recording.
/// `channels` have the same length, at `rate` samples per second.
pub(super) fn find(channels: &[Vec<f64>], rate: u32, vad: &Vad) -> Vec<Range<Duration>> {
    let len = channels.first().map_or(0, Vec::len) as u64;
    let at = |frame: u64| (frame * u64::from(rate) / 100).min(len) as usize;
    let frames = (len * 100).div_ceil(u64::from(rate));
    let energy = |frame: u64| -> f64 {
        let samples = channels.iter().flat_map(|channel| &channel[at(frame)..at(frame + 1)]);
        samples.map(|sample| sample * sample).sum()
    };
    let energies: Vec<f64> = (0..frames).map(energy).collect();
    let power = |frame: usize| {
        let samples = at(frame as u64 + 1) - at(frame as u64);
        energies[frame] / (samples.max(1) * channels.len()) as f64
    };
    let powers: Vec<f64> = (0..energies.len()).map(power).collect();
    let hangover = vad.hangover.as_nanos().div_ceil(FRAME.as_nanos()) as usize;
    let Some(threshold) = threshold(&powers, hangover, vad.margin) else { return Vec::new() };
    let mut active: Vec<Range<Duration>> = Vec::new();
    for (frame, _) in (0_u64..).zip(&powers).filter(|(_, power)| **power >= threshold) {
        let begin = FRAME * frame;
        let end = FRAME * (frame + 1 + hangover as u64).min(frames);
        match active.last_mut() {
            Some(last) if begin <= last.end => last.end = end,
            _ => active.push(begin..end),
        }
    }
    active
}

/// The threshold that is `margin` dB below the mean power of the time above it: the lowest of several;
/// `None` if all is silent.
fn threshold(powers: &[f64], hangover: usize, margin: f64) -> Option<f64> {
    let total: f64 = powers.iter().sum();
    let highest = powers.iter().copied().fold(0.0, f64::max);
    if highest <= 0.0 {
        return None;
    }
    let ratio = math::pow(10.0, margin / 10.0);
    let mut threshold = highest * LOWEST;
    while threshold < highest {
        let (mut time, mut until) = (0, 0);
        for (frame, _) in powers.iter().enumerate().filter(|(_, power)| **power >= threshold) {
            let end = (frame + 1 + hangover).min(powers.len());
            time += end - until.max(frame);
            until = end;
        }
        if total < threshold * ratio * time as f64 {
            break;
        }
        threshold *= STEP;
    }
    Some(threshold.min(highest))
}

#[cfg(test)]
mod tests {
    use super::*;
    use talkspurt_proto::rng::Rng;

    const RATE: u32 = 8000;

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    fn vad() -> Vad {
        Vad { hangover: ms(50), ..Vad::default() }
    }

    /// Noise of these levels in dBov, each for as many milliseconds.
    fn noise(parts: &[(u64, f64)]) -> Vec<f64> {
        let mut rng = Rng::new(1, "noise");
        let mut pcm = Vec::new();
        for &(ms, level) in parts {
            let amplitude = 32_768.0 * math::pow(10.0, level / 20.0) * 3.0_f64.sqrt();
            pcm.extend((0..ms * 8).map(|_| amplitude * (2.0 * rng.unit() - 1.0)));
        }
        pcm
    }

    #[test]
    fn speech_is_found_between_pauses_and_kept_for_the_hangover() {
        let pcm = noise(&[(200, -70.0), (600, -26.0), (400, -70.0), (300, -30.0), (500, -60.0)]);
        let found = find(&[pcm], RATE, &vad());
        assert_eq!(found, [ms(200)..ms(850), ms(1200)..ms(1550)]);
    }

    #[test]
    fn a_pause_shorter_than_the_hangover_is_spoken() {
        let pcm = noise(&[(300, -26.0), (40, -70.0), (300, -26.0), (60, -70.0), (300, -26.0)]);
        let found = find(&[pcm], RATE, &vad());
        assert_eq!(found, [ms(0)..ms(690), ms(700)..ms(1000)]);
    }

    #[test]
    fn the_level_of_the_whole_does_not_matter() {
        let parts = [(300, 0.0), (400, -40.0), (300, -5.0), (300, -44.0)];
        let at = |level: f64| {
            let pcm = noise(&parts.map(|(ms, relative)| (ms, relative + level)));
            find(&[pcm], RATE, &vad())
        };
        assert_eq!(at(-10.0), [ms(0)..ms(350), ms(700)..ms(1050)]);
        assert_eq!(at(-10.0), at(-60.0));
    }

    #[test]
    fn what_is_never_quieter_is_active_throughout_and_silence_never() {
        assert_eq!(find(&[noise(&[(1000, -40.0)])], RATE, &vad()), [ms(0)..ms(1000)]);
        assert_eq!(find(&[vec![0.0; 8000]], RATE, &vad()), []);
        assert_eq!(find(&[Vec::new()], RATE, &vad()), []);
        // 10 dB between speech and background is less than the margin.
        assert_eq!(find(&[noise(&[(500, -30.0), (500, -40.0)])], RATE, &vad()), [ms(0)..ms(1000)]);
    }

    #[test]
    fn either_channel_is_heard() {
        let [left, right] = [[(500, -26.0), (500, -80.0)], [(500, -80.0), (500, -26.0)]];
        let found = find(&[noise(&left), noise(&right)], RATE, &vad());
        assert_eq!(found, [ms(0)..ms(1000)]);
        // 44.1 kHz does not divide into 10 ms of whole samples of other rates; 125 ms at 8 kHz are 12.5 frames.
        let found = find(&[noise(&[(125, -26.0)])], RATE, &vad());
        assert_eq!(found, [ms(0)..ms(130)]);
    }
}
