//! The probability that a frame is received correctly at a signal-to-noise ratio, in white Gaussian noise.
//!
//! DSSS: DBPSK and DQPSK as in Proakis, *Digital Communications* §5.2.8; CCK by the union bound over the
//! distances of its code words. OFDM: the bit errors of hard decisions on each constellation, and the Chernoff
//! union bound over the distance spectrum of the convolutional code with generators 133 and 171 and its
//! punctured versions (Frenger, Orten and Ottosson 1999), as in Pei and Henderson, *Validation of OFDM error
//! rate model in ns-3* (2010). Preambles and PLCP headers are always received.

use talkspurt_proto::math;

use super::timing::{Mode, Timing};

/// The effect of a channel on frames.
#[derive(Clone, Debug)]
pub struct Channel {
    /// Per data rate: logarithms of the probabilities that a byte survives, in data and in control frames.
    bytes_ln: Vec<(f64, f64)>,
}

impl Channel {
    /// A channel with this signal-to-noise ratio in dB.
    #[must_use]
    pub fn new(snr_db: f64, timing: &Timing) -> Self {
        let snr = math::pow(10.0, snr_db / 10.0);
        let of = |mode| byte_survives_ln(mode, snr);
        let bytes_ln = timing.rates.iter().map(|rate| (of(rate.mode), of(rate.control))).collect();
        Self { bytes_ln }
    }
    /// Probability that a data frame of this length is received.
    #[must_use]
    pub fn data(&self, rate: usize, bytes: u64) -> f64 {
        math::exp(self.bytes_ln[rate].0 * bytes as f64)
    }
    /// Probability that a control frame accompanying data of this rate is received.
    #[must_use]
    pub fn control(&self, rate: usize, bytes: u64) -> f64 {
        math::exp(self.bytes_ln[rate].1 * bytes as f64)
    }
}

/// Logarithm of the probability that all bits of a byte are correct.
#[must_use]
pub fn byte_survives_ln(mode: Mode, snr: f64) -> f64 {
    let (wrong, times) = match mode {
        Mode::Dsss(rate, _) => dsss(rate, snr),
        Mode::Ofdm(at) => (ofdm(OFDM[at], snr), 8.0),
        Mode::Ht(mcs) => (ofdm(HT[mcs], snr), 8.0),
    };
    // No worse than guessing, and no logarithm of zero.
    times * math::ln(1.0 - wrong.min(1.0 - 1e-12))
}

/// Probability of error per bit, or with CCK per symbol, and how many of them a byte has.
fn dsss(rate: u64, snr: f64) -> (f64, f64) {
    // Noise in 22 MHz. A CCK chip is assumed to have the channel's ratio: receivers gain nothing from the
    // bandwidth beyond its 11 MHz (as in Pei and Henderson, Validation of ns-3 802.11b PHY model, 2009;
    // receivers are sold with sensitivities 9 to 10 dB apart between 1 and 11 Mbit/s).
    let bit = snr * 22e6 / rate as f64;
    let chip = snr;
    match rate {
        1_000_000 => (0.5 * math::exp(-bit), 8.0),
        // The asymptote of Marcum's Q: DQPSK with Gray code.
        2_000_000 => {
            let root = std::f64::consts::SQRT_2;
            let front = (root + 1.0) / (8.0 * std::f64::consts::PI * root).sqrt();
            ((front / bit.sqrt() * math::exp(-(2.0 - root) * bit)).min(0.5), 8.0)
        }
        5_500_000 => (union(&CCK_5_5, chip), 2.0),
        _ => (union(&CCK_11, chip), 1.0),
    }
}

/// Number of CCK code words by half their squared distance from one of them, with chips of energy 1.
pub const CCK_11: [(f64, f64); 6] =
    [(4.0, 24.0), (6.0, 16.0), (8.0, 174.0), (10.0, 16.0), (12.0, 24.0), (16.0, 1.0)];
/// The same for the 16 words of 5.5 Mbit/s.
pub const CCK_5_5: [(f64, f64); 2] = [(8.0, 14.0), (16.0, 1.0)];

fn union(words: &[(f64, f64)], chip: f64) -> f64 {
    words.iter().map(|(distance, count)| count * q((distance * chip).sqrt())).sum()
}

/// The tail of the normal distribution.
fn q(x: f64) -> f64 {
    0.5 * math::erfc(x * std::f64::consts::FRAC_1_SQRT_2)
}

/// Bits per symbol of a subcarrier, and the code.
type Coding = (u32, &'static Spectrum);

const OFDM: [Coding; 8] = [
    (1, &HALF),
    (1, &THREE_QUARTERS),
    (2, &HALF),
    (2, &THREE_QUARTERS),
    (4, &HALF),
    (4, &THREE_QUARTERS),
    (6, &TWO_THIRDS),
    (6, &THREE_QUARTERS),
];
const HT: [Coding; 8] = [
    (1, &HALF),
    (2, &HALF),
    (2, &THREE_QUARTERS),
    (4, &HALF),
    (4, &THREE_QUARTERS),
    (6, &TWO_THIRDS),
    (6, &THREE_QUARTERS),
    (6, &FIVE_SIXTHS),
];

/// Sums of wrong information bits over the wrong paths of each weight, from the free distance on, over all
/// starts in a puncturing period.
#[derive(Debug)]
pub struct Spectrum {
    /// Information bits in a period.
    pub period: u32,
    /// The first weight.
    pub free: u32,
    /// Sums by consecutive weight.
    pub bits: [f64; 10],
}

/// Rate 1/2.
pub const HALF: Spectrum = Spectrum {
    period: 1,
    free: 10,
    bits: [36.0, 0.0, 211.0, 0.0, 1404.0, 0.0, 11_633.0, 0.0, 77_433.0, 0.0],
};
/// Rate 2/3.
pub const TWO_THIRDS: Spectrum = Spectrum {
    period: 2,
    free: 6,
    bits: [
        3.0,
        70.0,
        285.0,
        1276.0,
        6160.0,
        27_128.0,
        117_019.0,
        498_860.0,
        2_103_891.0,
        8_784_123.0,
    ],
};
/// Rate 3/4.
pub const THREE_QUARTERS: Spectrum = Spectrum {
    period: 3,
    free: 5,
    bits: [
        42.0,
        201.0,
        1492.0,
        10_469.0,
        62_935.0,
        379_644.0,
        2_253_373.0,
        13_073_811.0,
        75_152_755.0,
        428_005_675.0,
    ],
};
/// Rate 5/6.
pub const FIVE_SIXTHS: Spectrum = Spectrum {
    period: 5,
    free: 4,
    bits: [
        92.0,
        528.0,
        8694.0,
        79_453.0,
        792_114.0,
        7_375_573.0,
        67_884_974.0,
        610_875_423.0,
        5_427_275_376.0,
        47_664_215_639.0,
    ],
};

/// Probability that a decoded bit is wrong.
fn ofdm((bits, code): Coding, snr: f64) -> f64 {
    let half_erfc = |x: f64| 0.5 * math::erfc(x.sqrt());
    // Nearest neighbours of square constellations with Gray code.
    let raw = match bits {
        1 => half_erfc(snr),
        2 => half_erfc(snr / 2.0),
        4 => 0.75 * half_erfc(snr / 10.0),
        _ => 7.0 / 12.0 * half_erfc(snr / 42.0),
    };
    let chernoff = (4.0 * raw * (1.0 - raw)).sqrt();
    let mut power = math::pow(chernoff, f64::from(code.free));
    let mut sum = 0.0;
    for bits in code.bits {
        sum += bits * power;
        power *= chernoff;
    }
    (sum / (2.0 * f64::from(code.period))).min(0.5)
}
