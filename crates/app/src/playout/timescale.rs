//! Time scaling of speech that keeps its pitch: waveform similarity overlap-add (WSOLA; Verhelst and Roelands,
//! ICASSP 1993). Each block of the output fades from the natural continuation of the block before to the piece
//! of the input, near its due place, that resembles it most.

use std::ops::Range;

/// Length of a block, and the farthest a piece may be from its due place, per second: 10 and 7.5 ms. The range
/// covers the period of the lowest voice.
const BLOCKS: usize = 100;
const TOLERANCES: usize = 133;
/// Energy of a block that counts as silence: no piece is preferred.
const QUIET: f64 = 1.0;

/// The part `region` of `sound`, played in about `length` samples instead of its own length. The result is
/// longer or shorter than requested by up to 15 ms, so that it ends where `region` ends without a break.
/// Samples of two channels are interleaved and scaled alike; `region` and `length` count both.
pub(super) fn scale(
    sound: &[i16],
    region: Range<usize>,
    length: usize,
    rate: usize,
    channels: usize,
) -> Vec<i16> {
    let (block, tolerance) = (rate / BLOCKS * channels, rate / TOLERANCES * channels);
    let mut scaled = Vec::with_capacity(length + tolerance);
    // The piece that the next block continues.
    let mut at = region.start;
    let part = region.len() as f64 / length.max(1) as f64;
    if length >= 2 * block && region.len() >= 2 * block {
        scaled.extend_from_slice(&sound[at..at + block]);
        at += block;
    }
    loop {
        let done = scaled.len();
        // The middle of the next piece is due at the middle of the next block.
        let middle = region.start + ((done + block / 2) as f64 * part) as usize;
        let due = middle.saturating_sub(block / 2) / channels * channels;
        let ends = done + 2 * block > length || due + tolerance + block > region.end;
        let template = sound.get(at..at + block).filter(|_| done > 0 && !ends);
        let Some(template) = template else {
            scaled.extend_from_slice(&sound[at.min(region.end)..region.end]);
            return scaled;
        };
        let least = due.saturating_sub(tolerance).max(region.start);
        let found = most_similar(sound, template, least..=due + tolerance, channels);
        let piece = &sound[found..found + block];
        scaled.extend(template.iter().zip(piece).enumerate().map(|(k, (from, to))| {
            let share = (k - k % channels + channels) as f64 / block as f64;
            (f64::from(*from) * (1.0 - share) + f64::from(*to) * share).round() as i16
        }));
        at = found + block;
    }
}

/// Where in `places` the sound resembles `template` most: first every fourth place on every other sample, then
/// the neighbours of the best. (Every third of two channels' samples is from the left and the right by turns.)
fn most_similar(
    sound: &[i16],
    template: &[i16],
    places: std::ops::RangeInclusive<usize>,
    channels: usize,
) -> usize {
    let best = |places: &mut dyn Iterator<Item = usize>, step: usize| {
        let mut best = None;
        for place in places {
            let Some(piece) = sound.get(place..place + template.len()) else { break };
            let likeness = likeness(template, piece, step);
            if best.is_none_or(|(_, most)| likeness > most) {
                best = Some((place, likeness));
            }
        }
        best.map(|(place, _)| place)
    };
    let coarse =
        best(&mut places.clone().step_by(4 * channels), channels + 1).unwrap_or(*places.start());
    let reach = 3 * channels;
    let near =
        coarse.saturating_sub(reach).max(*places.start())..=(coarse + reach).min(*places.end());
    best(&mut near.step_by(channels), 1).unwrap_or(coarse)
}

/// Cross-correlation, normalised by the energy of `piece`.
fn likeness(template: &[i16], piece: &[i16], step: usize) -> f64 {
    let (mut product, mut energy) = (0.0, 0.0);
    for (a, b) in template.iter().zip(piece).step_by(step) {
        product += f64::from(*a) * f64::from(*b);
        energy += f64::from(*b) * f64::from(*b);
    }
    product / energy.max(QUIET).sqrt()
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "compared with tolerances only")]
mod tests {
    use super::*;

    const RATE: usize = 8000;

    /// A voiced sound: harmonics of `pitch` Hz, as strong as those of a glottal pulse.
    fn voice(pitch: f64, samples: usize) -> Vec<i16> {
        let wave = |k: usize, h: f64| {
            (std::f64::consts::TAU * pitch * h * k as f64 / RATE as f64 + h * h).sin() / h
        };
        (0..samples)
            .map(|k| (4000.0 * (1..=8).map(|h| wave(k, f64::from(h))).sum::<f64>()) as i16)
            .collect()
    }

    fn energy(sound: &[i16]) -> f64 {
        sound.iter().map(|x| f64::from(*x).powi(2)).sum::<f64>() / sound.len() as f64
    }

    /// Strength of a frequency: the mean over windows of 50 ms of one bin of the Fourier transform.
    fn strength(sound: &[i16], hertz: f64) -> f64 {
        let windows = sound.chunks_exact(RATE / 20);
        let number = windows.len() as f64;
        let bin = |window: &[i16]| {
            let angle = |k: usize| std::f64::consts::TAU * hertz * k as f64 / RATE as f64;
            let sum = |wave: fn(f64) -> f64| {
                window.iter().enumerate().map(|(k, x)| f64::from(*x) * wave(angle(k))).sum::<f64>()
            };
            sum(f64::cos).hypot(sum(f64::sin))
        };
        windows.map(bin).sum::<f64>() / number
    }

    #[test]
    fn pitch_and_energy_stay() {
        for pitch in [80.0, 110.0, 150.0, 220.0, 310.0] {
            let sound = voice(pitch, 8000);
            for (num, den) in [(4, 5), (2, 3), (5, 4), (3, 2)] {
                let length = 6000 * num / den;
                let scaled = scale(&sound, 1000..7000, length, RATE, 1);
                assert!(scaled.len().abs_diff(length) <= 120, "{} for {length}", scaled.len());
                let change = energy(&scaled) / energy(&sound);
                assert!((0.9..1.1).contains(&change), "{pitch} Hz, {num}/{den}: {change}");
                let share = strength(&scaled, pitch) / strength(&sound, pitch);
                assert!(share > 0.9, "{pitch} Hz, {num}/{den}: {share}");
                // Played faster like a tape, the pitch would be here.
                let tape = pitch * den as f64 / num as f64;
                let there = strength(&scaled, tape) / strength(&scaled, pitch);
                assert!(there < 0.5, "{pitch} Hz, {num}/{den}: {there}");
            }
        }
    }

    #[test]
    fn it_begins_and_ends_like_the_original() {
        let sound = voice(120.0, 4000);
        let scaled = scale(&sound, 800..3200, 1920, RATE, 1);
        assert_eq!(scaled[..80], sound[800..880]);
        assert_eq!(scaled[scaled.len() - 40..], sound[3160..3200]);
        // No jump larger than those of the original.
        let jump = |sound: &[i16]| sound.windows(2).map(|w| w[0].abs_diff(w[1])).max();
        assert!(jump(&scaled) <= jump(&sound).map(|most| most + most / 4));
    }

    #[test]
    fn what_is_too_short_stays() {
        let sound = voice(200.0, 400);
        assert_eq!(scale(&sound, 0..150, 120, RATE, 1), sound[..150]);
        assert!(scale(&sound, 10..10, 0, RATE, 1).is_empty());
        assert!(scale(&[], 0..0, 100, RATE, 1).is_empty());
    }

    #[test]
    fn noise_gets_its_length_too() {
        let noise: Vec<i16> =
            (0..5000_i64).map(|k| (k * k * 7919 % 65_536 - 32_768) as i16).collect();
        for length in [2500, 3000, 4999, 9000] {
            let scaled = scale(&noise, 0..5000, length, RATE, 1);
            assert!(scaled.len().abs_diff(length) <= 120, "{} for {length}", scaled.len());
        }
    }
}
