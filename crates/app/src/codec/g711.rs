//! ITU-T G.711 sample by sample: µ-law and A-law between one byte and 16-bit linear.
//!
//! The characteristic is tables 1a/1b (A-law, 13 bits with sign) and 2a/2b (µ-law, 14 bits) of the
//! Recommendation. It does not specify the side of a value exactly on a decision level; here, as in ITU-T
//! G.191, a negative x is treated as the mirror image of its ones' complement, −1 − x, so that both polarities
//! have equally many inputs for every code.

use bytes::Bytes;
use talkspurt_proto::time::Duration;
use talkspurt_proto::units::Rate;

use super::{Bpl, Decoder, Encoder, Sound, Spec};

/// G.711 µ-law. Impairment of both laws: G.113 Appendix I, in packets of 10 ms.
pub const MU_LAW: Spec = Spec {
    name: "G.711 µ-law",
    sample_rate: 8000,
    rtp_clock: 8000,
    payload_type: 0,
    frame: Duration::from_micros(125),
    frame_bytes: 1,
    header_bytes: 0,
    variable_rate: false,
    step: Duration::from_millis(10),
    look_ahead: Duration::ZERO,
    ie: Some(0.0),
    bpl: Bpl::Playout { silence: Some(4.3), appendix_i: Some(25.1) },
    bpl_packet: Duration::from_millis(10),
    sound: Some(Sound {
        encoder: |_| Box::new(Law { encode: encode_mu, decode: decode_mu }),
        decoder: |_| Box::new(Law { encode: encode_mu, decode: decode_mu }),
        stateless: true,
    }),
    is_external: false,
    is_adaptive: false,
};

/// G.711 A-law.
pub const A_LAW: Spec = Spec {
    name: "G.711 A-law",
    payload_type: 8,
    sound: Some(Sound {
        encoder: |_| Box::new(Law { encode: encode_a, decode: decode_a }),
        decoder: |_| Box::new(Law { encode: encode_a, decode: decode_a }),
        stateless: true,
    }),
    ..MU_LAW
};

/// One of the laws, in both directions.
#[derive(Debug)]
struct Law {
    encode: fn(i16) -> u8,
    decode: fn(u8) -> i16,
}

impl Encoder for Law {
    fn encode(&mut self, pcm: &[i16], _: Option<Rate>) -> Bytes {
        pcm.iter().map(|&x| (self.encode)(x)).collect()
    }
}

impl Decoder for Law {
    fn decode(&mut self, payload: &[u8]) -> Vec<i16> {
        payload.iter().map(|&code| (self.decode)(code)).collect()
    }
}

/// µ-law adds 33 (of 8159) before finding the segment; in 16-bit units four times that.
const MU_BIAS: u16 = 33 << 2;
/// Largest magnitude that still fits the top segment with the bias.
const MU_CLIP: u16 = 0x7FFF - MU_BIAS;

/// Polarity (true: negative) and magnitude.
const fn fold(x: i16) -> (bool, u16) {
    if x < 0 { (true, !x as u16) } else { (false, x as u16) }
}
const fn signed(negative: bool, magnitude: u16) -> i16 {
    if negative { -(magnitude as i16) } else { magnitude as i16 }
}

/// Encodes a sample in µ-law.
#[must_use]
pub const fn encode_mu(x: i16) -> u8 {
    let (negative, magnitude) = fold(x);
    let biased = if magnitude > MU_CLIP { 0x7FFF } else { magnitude + MU_BIAS };
    let segment = biased.ilog2() - 7;
    let step = (biased >> (segment + 3)) & 0xF;
    // G.711 table 2a note 2: the bits are sent inverted.
    !((negative as u8) << 7 | (segment as u8) << 4 | step as u8)
}

/// Decodes a µ-law byte.
#[must_use]
pub const fn decode_mu(code: u8) -> i16 {
    let bits = !code as u16;
    let (segment, step) = (bits >> 4 & 7, bits & 0xF);
    signed(bits & 0x80 != 0, (((step << 3) + MU_BIAS) << segment) - MU_BIAS)
}

/// Encodes a sample in A-law.
#[must_use]
pub const fn encode_a(x: i16) -> u8 {
    let (negative, magnitude) = fold(x);
    let magnitude = magnitude >> 4;
    let code = if magnitude < 16 {
        magnitude
    } else {
        let segment = magnitude.ilog2() as u16 - 3;
        segment << 4 | (magnitude >> (segment - 1) & 0xF)
    };
    // G.711 table 1a note 2: even bits are inverted; the polarity bit is 1 for positive values.
    (code as u8 | ((!negative) as u8) << 7) ^ 0x55
}

/// Decodes an A-law byte.
#[must_use]
pub const fn decode_a(code: u8) -> i16 {
    let bits = (code ^ 0x55) as u16;
    let (segment, step) = (bits >> 4 & 7, bits & 0xF);
    let magnitude = match segment {
        0 => (step << 4) + 8,
        _ => ((step << 4) + 0x108) << (segment - 1),
    };
    signed(bits & 0x80 == 0, magnitude)
}
