//! ITU-T G.726: adaptive differential PCM of two to five bits per sample, eight samples in whole bytes (RFC
//! 3551 §4.5.4, which packs the first sample into the least significant bits). G.113 Appendix I has Ie for
//! each rate and no Bpl.
//!
//! The names follow the Recommendation: `y` is the scale factor of the quantizer, `a` and `b` are the
//! coefficients of the pole and zero predictors, `dq` the quantized difference, `sr` the reconstructed signal.

use bytes::Bytes;
use talkspurt_proto::time::Duration;
use talkspurt_proto::units::Rate;

use super::g711::MU_LAW;
use super::{Bpl, Decoder, Encoder, Encoding, Sound, Spec};

/// 40 kbit/s.
pub(super) const AT_40: Spec = Spec {
    name: "G.726 40",
    payload_type: 96,
    frame: Duration::from_millis(1),
    frame_bytes: 5,
    ie: Some(2.0),
    bpl: Bpl::Playout { silence: None, appendix_i: None },
    sound: Some(Sound {
        encoder: |encoding| Box::new(Adpcm::new(quantizer(encoding))),
        decoder: |encoding| Box::new(Adpcm::new(quantizer(encoding))),
        stateless: false,
    }),
    is_adaptive: true,
    ..MU_LAW
};
/// 32 kbit/s.
pub(super) const AT_32: Spec =
    Spec { name: "G.726 32", payload_type: 97, frame_bytes: 4, ie: Some(7.0), ..AT_40 };
/// 24 kbit/s.
pub(super) const AT_24: Spec =
    Spec { name: "G.726 24", payload_type: 98, frame_bytes: 3, ie: Some(25.0), ..AT_40 };
/// 16 kbit/s.
pub(super) const AT_16: Spec =
    Spec { name: "G.726 16", payload_type: 99, frame_bytes: 2, ie: Some(50.0), ..AT_40 };

/// The tables of a rate (G.726 tables 1 to 4 and §2.4, §2.5). `levels`, `scales` and `speeds` are those of the
/// positive codes; a negative code has the values of its ones' complement.
#[derive(Debug)]
struct Quantizer {
    bits: u32,
    /// Decision levels of the normalized difference, log2.
    decisions: &'static [i32],
    /// Output levels, log2, by magnitude.
    levels: &'static [i32],
    /// W(I), 32 times.
    scales: &'static [i32],
    /// F(I), 512 times.
    speeds: &'static [i32],
}

static QUANTIZER_40: Quantizer = Quantizer {
    bits: 5,
    decisions: &[-122, -16, 68, 139, 198, 250, 298, 339, 378, 413, 445, 475, 502, 528, 553],
    levels: &[-2048, -66, 28, 104, 169, 224, 274, 318, 358, 395, 429, 459, 488, 514, 539, 566],
    scales: &[
        448, 448, 768, 1248, 1280, 1312, 1856, 3200, 4512, 5728, 7008, 8960, 11456, 14080, 16928,
        22272,
    ],
    speeds: &[0, 0, 0, 0, 0, 512, 512, 512, 512, 512, 1024, 1536, 2048, 2560, 3072, 3072],
};
static QUANTIZER_32: Quantizer = Quantizer {
    bits: 4,
    decisions: &[-124, 80, 178, 246, 300, 349, 400],
    levels: &[-2048, 4, 135, 213, 273, 323, 373, 425],
    scales: &[-384, 576, 1312, 2048, 3584, 6336, 11360, 35904],
    speeds: &[0, 0, 0, 512, 512, 512, 1536, 3584],
};
static QUANTIZER_24: Quantizer = Quantizer {
    bits: 3,
    decisions: &[8, 218, 331],
    levels: &[-2048, 135, 273, 373],
    scales: &[-128, 960, 4384, 18624],
    speeds: &[0, 512, 1024, 3584],
};
static QUANTIZER_16: Quantizer = Quantizer {
    bits: 2,
    decisions: &[261],
    levels: &[116, 365],
    scales: &[-704, 14048],
    speeds: &[0, 3584],
};

fn quantizer(encoding: &Encoding) -> &'static Quantizer {
    // A frame of eight samples has as many bytes as a sample has bits.
    match encoding.codec.spec().frame_bytes {
        5 => &QUANTIZER_40,
        4 => &QUANTIZER_32,
        3 => &QUANTIZER_24,
        _ => &QUANTIZER_16,
    }
}

/// The state that encoder and decoder share (G.726 §2): the decoder runs inside the encoder.
#[derive(Debug)]
struct Adpcm {
    quantizer: &'static Quantizer,
    /// Slow and fast scale factor.
    yl: i32,
    yu: i32,
    /// Short and long mean of F(I), and the speed of adaptation.
    dms: i32,
    dml: i32,
    ap: i32,
    /// Coefficients of the poles and zeros.
    a: [i32; 2],
    b: [i32; 6],
    /// Signs of the last two sums of difference and zero prediction.
    p: [bool; 2],
    /// The last differences and reconstructed signals.
    dq: [Float; 6],
    sr: [Float; 2],
    /// A tone was detected.
    td: bool,
}

/// A number with a sign, four bits of exponent and six of mantissa (G.726 FLOATA, FLOATB).
#[derive(Clone, Copy, Debug)]
struct Float {
    negative: bool,
    exponent: u32,
    mantissa: i32,
}

impl Float {
    const ZERO: Self = Self { negative: false, exponent: 0, mantissa: 32 };

    fn of(negative: bool, magnitude: i32) -> Self {
        let exponent = bit_length(magnitude);
        let mantissa = if magnitude == 0 { 32 } else { magnitude << 6 >> exponent };
        Self { negative, exponent, mantissa }
    }

    /// Times a coefficient (FMULT).
    fn times(self, coefficient: i32) -> i32 {
        let coefficient = coefficient >> 2;
        let magnitude = if coefficient > 0 { coefficient } else { -coefficient & 0x1FFF };
        let exponent = bit_length(magnitude) as i32 - 6;
        let mantissa = match (magnitude, exponent) {
            (0, _) => 32,
            (_, 0..) => magnitude >> exponent,
            _ => magnitude << -exponent,
        };
        let exponent = exponent + self.exponent as i32 - 13;
        let product = (mantissa * self.mantissa + 48) >> 4;
        let product = match exponent {
            0.. => product << exponent & 0x7FFF,
            _ => product >> -exponent,
        };
        if (coefficient < 0) != self.negative { -product } else { product }
    }
}

/// The number of bits that a number needs.
fn bit_length(magnitude: i32) -> u32 {
    magnitude.checked_ilog2().map_or(0, |log| log + 1)
}

/// A quantized difference.
#[derive(Clone, Copy)]
struct Difference {
    negative: bool,
    magnitude: i32,
}

impl Adpcm {
    fn new(quantizer: &'static Quantizer) -> Self {
        Self {
            quantizer,
            yl: 34816,
            yu: 544,
            dms: 0,
            dml: 0,
            ap: 0,
            a: [0; 2],
            b: [0; 6],
            p: [false; 2],
            dq: [Float::ZERO; 6],
            sr: [Float::ZERO; 2],
            td: false,
        }
    }

    /// The zero predictor's part of the estimate, and the estimate; both doubled.
    fn estimate(&self) -> (i32, i32) {
        let zeros: i32 = self.dq.iter().zip(self.b).map(|(dq, b)| dq.times(b)).sum();
        let poles = self.sr[1].times(self.a[1]) + self.sr[0].times(self.a[0]);
        (zeros, zeros + poles)
    }

    /// The scale factor: between the slow and the fast one (MIX).
    fn scale(&self) -> i32 {
        if self.ap >= 256 {
            return self.yu;
        }
        let slow = self.yl >> 6;
        let (change, speed) = (self.yu - slow, self.ap >> 2);
        slow + match change {
            1.. => (change * speed) >> 6,
            _ => (change * speed + 63) >> 6,
        }
    }

    /// The code of a difference: sign, and magnitude by the decision levels (LOG, SUBTB, QUAN). A difference of
    /// the smallest magnitude is sent as negative, except at two bits, which have no code to spare.
    fn quantize(&self, difference: i32, y: i32) -> u8 {
        let magnitude = difference.abs();
        let exponent = bit_length(magnitude >> 1);
        let log = (exponent << 7) as i32 + (magnitude << 7 >> exponent & 0x7F);
        let level = log - (y >> 2);
        let rank =
            self.quantizer.decisions.iter().take_while(|decision| level >= **decision).count();
        let (rank, all) = (rank as u8, (1 << self.quantizer.bits) - 1);
        match rank {
            0 if difference < 0 || self.quantizer.bits > 2 => all,
            _ if difference < 0 => all - rank,
            _ => rank,
        }
    }

    /// Sign and rank of a code's magnitude.
    fn parts(&self, code: u8) -> (bool, usize) {
        let negative = code >> (self.quantizer.bits - 1) & 1 == 1;
        let all = (1 << self.quantizer.bits) - 1;
        (negative, usize::from(if negative { all - code } else { code }))
    }

    /// The difference that a code stands for (ADDA, ANTILOG).
    fn reconstruct(&self, code: u8, y: i32) -> Difference {
        let (negative, rank) = self.parts(code);
        let log = self.quantizer.levels[rank] + (y >> 2);
        let magnitude = match log {
            0.. => (128 + (log & 127)) << 7 >> (14 - (log >> 7 & 15)),
            _ => 0,
        };
        Difference { negative, magnitude }
    }

    /// Adapts to a code and returns the reconstructed sample of 14 bits.
    fn adapt(&mut self, code: u8, y: i32, (zeros, all): (i32, i32)) -> i32 {
        let (sez, se) = (zeros >> 1, all >> 1);
        let dq = self.reconstruct(code, y);
        let sr = se + if dq.negative { -dq.magnitude } else { dq.magnitude };
        let (_, rank) = self.parts(code);
        let (wi, fi) = (self.quantizer.scales[rank], self.quantizer.speeds[rank]);
        let is_transition = self.td && dq.magnitude > self.threshold();
        self.yu = (y + ((wi - y) >> 5)).clamp(544, 5120);
        self.yl += self.yu + (-self.yl >> 6);
        self.predictors(dq, sr + sez - se, is_transition);
        self.dq.rotate_right(1);
        self.dq[0] = Float::of(dq.negative, dq.magnitude);
        self.sr = [Float::of(sr < 0, sr.abs()), self.sr[0]];
        self.td = !is_transition && self.a[1] < -11776;
        self.dms += (fi - self.dms) >> 5;
        self.dml += ((fi << 2) - self.dml) >> 7;
        let is_fast = y < 1536 || self.td || ((self.dms << 2) - self.dml).abs() >= self.dml >> 3;
        self.ap = match is_fast {
            _ if is_transition => 256,
            true => self.ap + ((512 - self.ap) >> 4),
            false => self.ap + (-self.ap >> 4),
        };
        sr
    }

    /// The difference from which a tone has ended (TRANS).
    fn threshold(&self) -> i32 {
        let (whole, fraction) = (self.yl >> 15, self.yl >> 10 & 31);
        let limit = if whole > 9 { 31 << 10 } else { (32 + fraction) << whole };
        (limit + (limit >> 1)) >> 1
    }

    /// Adapts the coefficients (UPA1, UPA2, UPB); `sum` is the difference plus the zero prediction.
    fn predictors(&mut self, dq: Difference, sum: i32, is_transition: bool) {
        let p = [sum < 0, self.p[0]];
        let [before, earlier] = std::mem::replace(&mut self.p, p);
        if is_transition {
            (self.a, self.b) = ([0; 2], [0; 6]);
            return;
        }
        let turned = p[0] != before;
        let mut a2 = self.a[1] - (self.a[1] >> 7);
        if sum != 0 {
            let a1 = if turned { self.a[0] } else { -self.a[0] };
            a2 += match a1 {
                ..-8191 => -256,
                8192.. => 255,
                _ => a1 >> 5,
            };
            a2 = (a2 + if p[0] != earlier { -128 } else { 128 }).clamp(-12288, 12288);
        }
        let mut a1 = self.a[0] - (self.a[0] >> 8);
        if sum != 0 {
            a1 += if turned { -192 } else { 192 };
        }
        let most = 15360 - a2;
        self.a = [a1.clamp(-most, most), a2];
        let leak = if self.quantizer.bits == 5 { 9 } else { 8 };
        for (b, past) in self.b.iter_mut().zip(self.dq) {
            *b -= *b >> leak;
            if dq.magnitude != 0 {
                *b += if dq.negative == past.negative { 128 } else { -128 };
            }
        }
    }
}

impl Encoder for Adpcm {
    fn encode(&mut self, pcm: &[i16], _: Option<Rate>) -> Bytes {
        let bits = self.quantizer.bits;
        let (mut packed, mut held, mut payload) = (0_u32, 0, Vec::with_capacity(pcm.len() / 2));
        for sample in pcm {
            let (y, estimate) = (self.scale(), self.estimate());
            let difference = (i32::from(*sample) >> 2) - (estimate.1 >> 1);
            let code = self.quantize(difference, y);
            self.adapt(code, y, estimate);
            packed |= u32::from(code) << held;
            held += bits;
            while held >= 8 {
                payload.push(packed as u8);
                (packed, held) = (packed >> 8, held - 8);
            }
        }
        payload.into()
    }
}

impl Decoder for Adpcm {
    fn follow(&mut self, _: &[i16], concealed: &[i16]) {
        // The encoder contains the decoder.
        self.encode(concealed, None);
    }
    fn decode(&mut self, payload: &[u8]) -> Vec<i16> {
        let bits = self.quantizer.bits;
        let (mut packed, mut held, mut pcm) = (0_u32, 0, Vec::with_capacity(payload.len() * 4));
        for byte in payload {
            packed |= u32::from(*byte) << held;
            held += 8;
            while held >= bits {
                let code = (packed & ((1 << bits) - 1)) as u8;
                (packed, held) = (packed >> bits, held - bits);
                let (y, estimate) = (self.scale(), self.estimate());
                let sr = self.adapt(code, y, estimate);
                pcm.push((sr << 2).clamp(i16::MIN.into(), i16::MAX.into()) as i16);
            }
        }
        pcm
    }
}
