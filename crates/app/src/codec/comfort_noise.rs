//! Comfort noise (RFC 3389): level and spectrum of the background in a pause, and noise made from them.
//!
//! The analysis is linear prediction of the samples before the packet, and the synthesis filters white noise by
//! the all-pole lattice of the reflection coefficients (as ITU-T G.711 Appendix II, which RFC 3389 §5 names as
//! an example). The RFC leaves the sign of the coefficients open; as in FFmpeg, k1 is negative if neighbouring
//! samples are alike. Both are for one channel.

use bytes::Bytes;
use talkspurt_proto::math;

/// 0 dBov: the power of a square wave of full scale.
const OVERLOAD: f64 = 32_768.0 * 32_768.0;

/// The payload of `bytes`, at least one, that describes this background.
#[must_use]
pub fn describe(background: &[i16], bytes: usize) -> Bytes {
    let order = bytes.saturating_sub(1);
    let lag = |lag: usize| -> f64 {
        let pairs = background.iter().zip(background.iter().skip(lag));
        pairs.map(|(a, b)| f64::from(*a) * f64::from(*b)).sum()
    };
    let power = lag(0) / background.len().max(1) as f64;
    // §3.1: −dBov, 0 to 127.
    let level = if power > 0.0 { -10.0 * math::log10(power / OVERLOAD) } else { 127.0 };
    let level = level.round().clamp(0.0, 127.0) as u8;
    let lags: Vec<f64> = (0..=order).map(lag).collect();
    // §3.2: N = 127 is 0; the step is 258 / 32768.
    let index = |k: f64| (127.0 - (k * 32_768.0 / 258.0).round()).clamp(0.0, 254.0) as u8;
    std::iter::once(level).chain(reflection(&lags).into_iter().map(index)).collect()
}

/// Negative reflection coefficients of the autocorrelation, by the recursion of Levinson and Durbin: the first
/// is positive if neighbouring samples are alike.
fn reflection(lags: &[f64]) -> Vec<f64> {
    let order = lags.len() - 1;
    let mut coefficients = vec![0.0; order];
    // A white noise floor of −60 dB keeps the recursion stable.
    let mut error = lags[0] * 1.000_001;
    let mut predictor: Vec<f64> = Vec::with_capacity(order);
    for at in 0..order {
        if error <= 0.0 {
            break;
        }
        let predicted: f64 =
            predictor.iter().zip(lags[1..=at].iter().rev()).map(|(a, r)| a * r).sum();
        let k = (lags[at + 1] - predicted) / error;
        let mirrored: Vec<f64> = predictor.iter().rev().map(|a| k * a).collect();
        predictor.iter_mut().zip(mirrored).for_each(|(a, other)| *a -= other);
        predictor.push(k);
        coefficients[at] = k;
        error *= 1.0 - k * k;
    }
    coefficients
}

/// Makes noise as the latest payload describes.
#[derive(Debug)]
pub struct Generator {
    /// Of the white noise that is filtered, as a standard deviation.
    drive: f64,
    reflection: Vec<f64>,
    backward: Vec<f64>,
    random: u32,
}

impl Default for Generator {
    /// Silence.
    fn default() -> Self {
        Self { drive: 0.0, reflection: Vec::new(), backward: Vec::new(), random: 1 }
    }
}

impl Generator {
    /// Follows this payload. Any bytes may come.
    pub fn follow(&mut self, payload: &[u8]) {
        let Some((level, indices)) = payload.split_first() else { return };
        // The most significant bit is unused (§3.1), and index 255 is reserved (§3.2).
        let power = OVERLOAD * math::exp(-f64::from(level & 0x7F) / 10.0 * std::f64::consts::LN_10);
        let k = |index: &u8| 258.0 * (127.0 - f64::from((*index).min(254))) / 32_768.0;
        self.reflection = indices.iter().map(k).collect();
        self.backward.resize(indices.len(), 0.0);
        // The filter multiplies the power by 1 / Π (1 − k²).
        let gain: f64 = self.reflection.iter().map(|k| 1.0 - k * k).product();
        self.drive = (power * gain).sqrt();
    }

    /// The next samples.
    pub fn noise(&mut self, samples: usize) -> Vec<i16> {
        (0..samples).map(|_| self.sample().round().clamp(-32_768.0, 32_767.0) as i16).collect()
    }

    fn sample(&mut self) -> f64 {
        // Uniform noise of unit variance, of a linear congruential generator (Numerical Recipes).
        self.random = self.random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let white = (f64::from(self.random) / f64::from(u32::MAX) - 0.5) * 12.0_f64.sqrt();
        let mut forward = white * self.drive;
        let order = self.reflection.len();
        for at in (0..order).rev() {
            let (k, before) = (self.reflection[at], self.backward[at]);
            forward += k * before;
            if at + 1 < order {
                self.backward[at + 1] = before - k * forward;
            }
        }
        if order > 0 {
            self.backward[0] = forward;
        }
        forward
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn power(pcm: &[i16]) -> f64 {
        pcm.iter().map(|&x| f64::from(x) * f64::from(x)).sum::<f64>() / pcm.len() as f64
    }

    /// Neighbours' correlation, relative to the power.
    fn correlation(pcm: &[i16], lag: usize) -> f64 {
        let pairs = pcm.iter().zip(&pcm[lag..]).map(|(&a, &b)| f64::from(a) * f64::from(b));
        pairs.sum::<f64>() / pcm.len() as f64 / power(pcm)
    }

    /// RFC 3389 §3.1: a square wave of full scale is 0 dBov; a tenth of its amplitude is −20 dBov.
    #[test]
    fn the_level_is_relative_to_overload() {
        let square = |amplitude: i16| -> Vec<i16> {
            (0..800).map(|at| if at % 2 == 0 { amplitude } else { -amplitude }).collect()
        };
        assert_eq!(describe(&square(32_767), 1)[..], [0]);
        assert_eq!(describe(&square(3_277), 1)[..], [20]);
        assert_eq!(describe(&square(33), 1)[..], [60]);
        assert_eq!(describe(&[0; 800], 3)[..], [127, 127, 127]);
        assert_eq!(describe(&[], 2)[..], [127, 127]);
    }

    /// §3.2: k = 258 (N − 127) / 32768. For the sequence r, r k, r k² … only k1 differs from zero.
    #[test]
    fn reflection_coefficients_are_those_of_the_autocorrelation() {
        let lags = [1.0, 0.5, 0.25, 0.125];
        let k = reflection(&lags);
        assert!((k[0] - 0.5).abs() < 1e-3 && k[1].abs() < 1e-3 && k[2].abs() < 1e-3, "{k:?}");
        // 0.5 · 32768 / 258 is 63.5.
        let noise: Vec<i16> = {
            let mut state = 0.0;
            let mut white = Generator { drive: 1000.0, ..Generator::default() };
            (0..80_000)
                .map(|_| {
                    state = 0.5 * state + white.sample();
                    state as i16
                })
                .collect()
        };
        let payload = describe(&noise, 3);
        assert!(payload[1].abs_diff(127 - 63) <= 2 && payload[2].abs_diff(127) <= 2, "{payload:?}");
    }

    #[test]
    fn the_noise_has_the_level_and_the_spectrum_that_it_was_described_with() {
        for (level, indices) in
            [(30, vec![]), (40, vec![190]), (50, vec![200, 60]), (35, vec![184; 11])]
        {
            let payload: Vec<u8> = std::iter::once(level).chain(indices).collect();
            let mut generator = Generator::default();
            assert_eq!(generator.noise(3), [0, 0, 0], "before the first payload");
            generator.follow(&payload);
            let noise = generator.noise(80_000);
            let measured = -10.0 * math::log10(power(&noise) / OVERLOAD);
            assert!((measured - f64::from(level)).abs() < 0.5, "{measured} dB, not {level}");
            let again = describe(&noise, payload.len());
            for (was, is) in payload.iter().zip(&again) {
                assert!(was.abs_diff(*is) <= 4, "{payload:?} became {again:?}");
            }
        }
        let mut generator = Generator::default();
        generator.follow(&[30, 64]);
        // The autocorrelation of a first-order model is kⁿ; k is 258 · 63 / 32768.
        let (noise, k) = (generator.noise(200_000), 258.0 * 63.0 / 32_768.0);
        assert!((correlation(&noise, 1) - k).abs() < 0.02);
        assert!((correlation(&noise, 2) - k * k).abs() < 0.02);
    }

    /// FFmpeg 7's encoder `comfortnoise` gives 13 for noise in which neighbours correlate by 0.9, and its
    /// decoder makes noise of 0.90 from that.
    #[test]
    fn the_sign_of_coefficients_is_that_of_ffmpeg() {
        let mut generator = Generator::default();
        generator.follow(&[29, 13]);
        let noise = generator.noise(80_000);
        assert!((correlation(&noise, 1) - 0.9).abs() < 0.02);
        assert!(describe(&noise, 10)[1].abs_diff(13) <= 2);
    }

    #[test]
    fn any_payload_makes_finite_noise() {
        let mut generator = Generator::default();
        for payload in [&[][..], &[255], &[0, 255, 0, 255, 0, 254, 254], &[0; 160], &[128; 300]] {
            generator.follow(payload);
            let noise = generator.noise(2000);
            assert_eq!(noise.len(), 2000);
            assert!(generator.sample().is_finite());
        }
    }
}
