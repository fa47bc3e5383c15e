//! ITU-T G.722 at 64 kbit/s: sub-band adaptive differential PCM at 16 kHz, one byte for two samples (RFC 3551
//! §4.5.2). Its RTP clock is 8 kHz, an error of RFC 1890 that was kept for compatibility. G.113 Appendix I,
//! which is narrowband, has no impairment factor for it.
//!
//! The names follow the Recommendation: `nb` is the logarithmic scale factor of the quantizer and `det` the
//! linear one, `a` and `b` are the coefficients of the pole and zero predictors, `d` is the quantized
//! difference, `r` the reconstructed signal, `p` the partially reconstructed one, `s` the prediction, `sz` that
//! of the zeros.

use bytes::Bytes;
use talkspurt_proto::time::Duration;
use talkspurt_proto::units::Rate;

use super::g711::MU_LAW;
use super::{Bpl, Decoder, Encoder, Sound, Spec};

/// 64 kbit/s (mode 1).
pub(super) const SPEC: Spec = Spec {
    name: "G.722",
    sample_rate: 16_000,
    payload_type: 9,
    frame: Duration::from_millis(1),
    frame_bytes: 8,
    ie: None,
    bpl: Bpl::Playout { silence: None, appendix_i: None },
    sound: Some(Sound {
        encoder: |_| Box::new(Transmitter::default()),
        decoder: |_| Box::new(Receiver::default()),
        stateless: false,
    }),
    is_adaptive: true,
    ..MU_LAW
};

/// Decision levels of the 6-bit quantizer of the lower band (Q6).
const DECISIONS: [i32; 29] = [
    35, 72, 110, 150, 190, 233, 276, 323, 370, 422, 473, 530, 587, 650, 714, 786, 858, 940, 1023,
    1121, 1219, 1339, 1458, 1612, 1765, 1980, 2195, 2557, 2919,
];
/// Output levels of the lower band's code: all 6 bits (QM6), by magnitude from the smallest.
const LEVELS_6: [i32; 30] = [
    136, 432, 728, 1040, 1360, 1688, 2032, 2400, 2776, 3168, 3576, 4008, 4464, 4944, 5456, 6000,
    6576, 7192, 7856, 8576, 9360, 10232, 11192, 12280, 13512, 14984, 16704, 19008, 21904, 24808,
];
/// The first 4 bits of it (QM4), which adapt the predictor, so that both ends agree in every mode.
const LEVELS_4: [i32; 16] = [
    0, -20456, -12896, -8968, -6288, -4240, -2584, -1200, 20456, 12896, 8968, 6288, 4240, 2584,
    1200, 0,
];
/// Change of the lower band's scale factor by the first 4 bits of the code (WL and RL42).
const SCALES_LOW: [i32; 16] =
    [-60, 3042, 1198, 538, 334, 172, 58, -30, 3042, 1198, 538, 334, 172, 58, -30, -60];
/// The higher band: output levels (QM2) and changes of the scale factor (WH and RH2) by code.
const LEVELS_2: [i32; 4] = [-7408, -1616, 7408, 1616];
const SCALES_HIGH: [i32; 4] = [798, -214, 798, -214];
/// 2^(11 + i/32), truncated (ILB).
const POWERS: [i32; 32] = [
    2048, 2093, 2139, 2186, 2233, 2282, 2332, 2383, 2435, 2489, 2543, 2599, 2656, 2714, 2774, 2834,
    2896, 2960, 3025, 3091, 3158, 3228, 3298, 3371, 3444, 3520, 3597, 3676, 3756, 3838, 3922, 4008,
];
/// Half of the coefficients of the quadrature mirror filter, which is symmetric.
const FILTER: [i32; 12] = [3, -11, 12, 32, -210, 951, 3876, -805, 362, -156, 53, -11];

fn saturate(x: i32) -> i32 {
    x.clamp(i16::MIN.into(), i16::MAX.into())
}

/// The adaptive predictor and quantizer of a band (blocks 3 and 4), the same at both ends.
#[derive(Clone, Debug)]
struct Band {
    is_low: bool,
    nb: i32,
    det: i32,
    a: [i32; 2],
    b: [i32; 6],
    /// Past values, the last first.
    d: [i32; 6],
    r: [i32; 2],
    p: [i32; 2],
    sz: i32,
    s: i32,
}

impl Band {
    const fn new(is_low: bool) -> Self {
        Self {
            is_low,
            nb: 0,
            det: if is_low { 32 } else { 8 },
            a: [0; 2],
            b: [0; 6],
            d: [0; 6],
            r: [0; 2],
            p: [0; 2],
            sz: 0,
            s: 0,
        }
    }

    /// Adapts the scale factor to a code: of the lower band the first 4 bits (LOGSCL, SCALEL; LOGSCH, SCALEH).
    fn rescale(&mut self, code: usize) {
        let (change, most, shift) = match self.is_low {
            true => (SCALES_LOW[code], 18_432, 8),
            false => (SCALES_HIGH[code], 22_528, 10),
        };
        self.nb = (((self.nb * 127) >> 7) + change).clamp(0, most);
        let (power, shift) = (POWERS[(self.nb >> 6 & 31) as usize], shift - (self.nb >> 11));
        self.det = if shift < 0 { power << -shift } else { power >> shift } << 2;
    }

    /// Adapts the predictor to a quantized difference, and predicts the next sample (block 4).
    fn predict(&mut self, d: i32) {
        let r = saturate(self.s + d);
        let p = saturate(self.sz + d);
        // UPPOL2.
        let same = |past: i32| (p < 0) == (past < 0);
        let a1 = saturate(self.a[0] << 2);
        let towards = if same(self.p[0]) { -a1 } else { a1 }.min(32_767) >> 7;
        let a2 = towards + if same(self.p[1]) { 128 } else { -128 } + ((self.a[1] * 32_512) >> 15);
        let a2 = a2.clamp(-12_288, 12_288);
        // UPPOL1.
        let a1 = if same(self.p[0]) { 192 } else { -192 } + ((self.a[0] * 32_640) >> 15);
        let most = saturate(15_360 - a2);
        self.a = [saturate(a1).clamp(-most, most), a2];
        // UPZERO.
        for (b, past) in self.b.iter_mut().zip(self.d) {
            let step = match d {
                0 => 0,
                _ if (d < 0) == (past < 0) => 128,
                _ => -128,
            };
            *b = saturate(step + ((*b * 32_640) >> 15));
        }
        // DELAYA.
        self.d.rotate_right(1);
        self.d[0] = d;
        self.r = [r, self.r[0]];
        self.p = [p, self.p[0]];
        // FILTEP, FILTEZ and PREDIC.
        let part = |coefficient: i32, past: i32| (coefficient * saturate(past + past)) >> 15;
        let poles = saturate(part(self.a[0], self.r[0]) + part(self.a[1], self.r[1]));
        self.sz = saturate(self.b.iter().zip(self.d).map(|(b, d)| part(*b, d)).sum());
        self.s = saturate(poles + self.sz);
    }

    /// The reconstructed sample for an output level (block 5).
    fn reconstruct(&self, level: i32) -> i32 {
        (self.s + ((self.det * level) >> 15)).clamp(-16_384, 16_383)
    }

    /// Adapts to a code: of the lower band the first 4 bits.
    fn adapt(&mut self, code: usize) {
        let level = if self.is_low { LEVELS_4[code] } else { LEVELS_2[code] };
        let d = (self.det * level) >> 15;
        self.rescale(code);
        self.predict(d);
    }
}

/// Both bands, and the history of the quadrature mirror filter.
#[derive(Debug)]
struct Bands {
    low: Band,
    high: Band,
    history: [i32; 24],
}

impl Default for Bands {
    fn default() -> Self {
        Self { low: Band::new(true), high: Band::new(false), history: [0; 24] }
    }
}

impl Bands {
    /// Adds a pair to the history and returns the sums of its even and odd elements, filtered.
    fn filter(&mut self, pair: [i32; 2]) -> (i32, i32) {
        self.history.rotate_left(2);
        self.history[22..].copy_from_slice(&pair);
        let even = self.history.iter().step_by(2).zip(FILTER);
        let odd = self.history.iter().skip(1).step_by(2).zip(FILTER.into_iter().rev());
        let sum = |(x, coefficient): (&i32, i32)| x * coefficient;
        (even.map(sum).sum(), odd.map(sum).sum())
    }
}

#[derive(Debug, Default)]
struct Transmitter(Bands);

impl Transmitter {
    /// The code of two samples.
    fn code(&mut self, pair: [i16; 2]) -> u8 {
        let (even, odd) = self.0.filter(pair.map(i32::from));
        let (low, high) = ((odd + even) >> 14, (odd - even) >> 14);
        let Bands { low: lower, high: higher, .. } = &mut self.0;

        // QUANTL: codes of six bits fall with a rising magnitude, from 31 (negative) or 61 (positive).
        let difference = saturate(low - lower.s);
        let magnitude = if difference < 0 { -(difference + 1) } else { difference };
        let rank = DECISIONS.iter().take_while(|level| magnitude >= (**level * lower.det) >> 12);
        let rank = rank.count();
        let low_code = match (difference < 0, rank) {
            (true, 0) => 63,
            (true, 1) => 62,
            (true, _) => 33 - rank,
            (false, _) => 61 - rank,
        };
        lower.adapt(low_code >> 2);

        // QUANTH.
        let difference = saturate(high - higher.s);
        let magnitude = if difference < 0 { -(difference + 1) } else { difference };
        let is_large = magnitude >= (564 * higher.det) >> 12;
        let high_code = match (difference < 0, is_large) {
            (true, false) => 1,
            (true, true) => 0,
            (false, false) => 3,
            (false, true) => 2,
        };
        higher.adapt(high_code);
        ((high_code << 6) | low_code) as u8
    }
}

impl Encoder for Transmitter {
    fn encode(&mut self, pcm: &[i16], _: Option<Rate>) -> Bytes {
        pcm.chunks(2).map(|pair| self.code([pair[0], pair.get(1).copied().unwrap_or(0)])).collect()
    }
}

#[derive(Debug, Default)]
struct Receiver(Bands);

impl Receiver {
    /// The two samples of a code.
    fn samples(&mut self, code: u8) -> [i16; 2] {
        let (low_code, high_code) = (usize::from(code & 63), usize::from(code >> 6));
        // Four codes of the lower band are not sent; they decode as the smallest negative level.
        let level = match low_code {
            0..=3 => -LEVELS_6[0],
            4..=31 => -LEVELS_6[33 - low_code],
            32..=61 => LEVELS_6[61 - low_code],
            62 => -LEVELS_6[1],
            _ => -LEVELS_6[0],
        };
        let Bands { low: lower, high: higher, .. } = &mut self.0;
        let low = lower.reconstruct(level);
        lower.adapt(low_code >> 2);
        let high = higher.reconstruct(LEVELS_2[high_code]);
        higher.adapt(high_code);
        let (even, odd) = self.0.filter([low + high, low - high]);
        [odd, even].map(|sum| saturate(sum >> 11) as i16)
    }
}

impl Decoder for Receiver {
    fn follow(&mut self, heard: &[i16], concealed: &[i16]) {
        let Bands { low, high, .. } = &self.0;
        let mut bands = Bands { low: low.clone(), high: high.clone(), ..Bands::default() };
        for pair in heard[heard.len().saturating_sub(24)..].chunks_exact(2) {
            bands.filter([pair[0].into(), pair[1].into()]);
        }
        let codes = Transmitter(bands).encode(concealed, None);
        self.decode(&codes);
    }
    fn decode(&mut self, payload: &[u8]) -> Vec<i16> {
        payload.iter().flat_map(|code| self.samples(*code)).collect()
    }
}
