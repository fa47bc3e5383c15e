//! Speech codecs a flow can name: how they pack sound into bytes, what RTP calls them, and what
//! ITU-T G.113 Appendix I says of their impairment.
//!
//! A new codec is a variant here, a row in `Codec::row` and a pair of encode/decode functions.
//! Where G.113 publishes no value, the row says `None`, and no score is made up from it.

pub mod g711;

use bytes::Bytes;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use talkspurt_proto::time::Duration;

use crate::playout::Concealment;

/// A speech codec.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Codec {
    /// ITU-T G.711 µ-law, 64 kbit/s at 8 kHz, RTP payload type 0.
    Pcmu,
    /// ITU-T G.711 A-law, 64 kbit/s at 8 kHz, RTP payload type 8.
    Pcma,
}

/// What is known about a codec, one row for each.
struct Row {
    name: &'static str,
    /// Samples in a second.
    sample_rate: u32,
    /// Ticks of the RTP timestamp in a second (not always the sample rate: G.722).
    rtp_clock: u32,
    /// RFC 3551 §6, tables 4 and 5.
    payload_type: u8,
    /// Bits of payload in a second.
    bit_rate: u32,
    /// Equipment impairment factor, G.113 Appendix I.
    ie: Option<f64>,
    /// Packet-loss robustness under random loss without concealment, G.113 Appendix I.
    bpl_silence: Option<f64>,
    /// The same with the concealment of G.711 Appendix I.
    bpl_appendix_i: Option<f64>,
}

/// G.113 Appendix I: G.711 in packets of 10 ms. Its two laws share the values.
const G711: Row = Row {
    name: "",
    sample_rate: 8000,
    rtp_clock: 8000,
    payload_type: 0,
    bit_rate: 64_000,
    ie: Some(0.0),
    bpl_silence: Some(4.3),
    bpl_appendix_i: Some(25.1),
};

impl Codec {
    const fn row(self) -> Row {
        match self {
            Self::Pcmu => Row { name: "G.711 µ-law", payload_type: 0, ..G711 },
            Self::Pcma => Row { name: "G.711 A-law", payload_type: 8, ..G711 },
        }
    }
    /// What people call it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        self.row().name
    }
    /// Samples in a second of the sound it encodes.
    #[must_use]
    pub const fn sample_rate(self) -> u32 {
        self.row().sample_rate
    }
    /// Ticks of the RTP timestamp in a second (RFC 3551 §4.5).
    #[must_use]
    pub const fn rtp_clock(self) -> u32 {
        self.row().rtp_clock
    }
    /// RTP payload type (RFC 3551 §6).
    #[must_use]
    pub const fn payload_type(self) -> u8 {
        self.row().payload_type
    }
    /// Whole samples in a stretch of sound.
    #[must_use]
    pub const fn samples_for(self, span: Duration) -> usize {
        scaled(span, self.sample_rate() as u64)
    }
    /// Whole bytes of payload a stretch of sound takes.
    #[must_use]
    pub const fn bytes_for(self, span: Duration) -> usize {
        scaled(span, self.row().bit_rate as u64 / 8)
    }
    /// Samples that a payload of this many bytes decodes to.
    #[must_use]
    pub const fn samples_in(self, payload_bytes: usize) -> usize {
        match self {
            Self::Pcmu | Self::Pcma => payload_bytes,
        }
    }
    /// Encodes linear 16-bit samples.
    #[must_use]
    pub fn encode(self, pcm: &[i16]) -> Bytes {
        match self {
            Self::Pcmu => pcm.iter().map(|&x| g711::encode_mu(x)).collect(),
            Self::Pcma => pcm.iter().map(|&x| g711::encode_a(x)).collect(),
        }
    }
    /// Decodes a payload to linear 16-bit samples; every byte string is valid G.711.
    #[must_use]
    pub fn decode(self, payload: &[u8]) -> Vec<i16> {
        match self {
            Self::Pcmu => payload.iter().map(|&code| g711::decode_mu(code)).collect(),
            Self::Pcma => payload.iter().map(|&code| g711::decode_a(code)).collect(),
        }
    }
    /// Equipment impairment factor Ie without loss (G.113 Appendix I), if it has one.
    #[must_use]
    pub const fn ie(self) -> Option<f64> {
        self.row().ie
    }
    /// Packet-loss robustness factor Bpl under random loss (G.113 Appendix I) with the
    /// concealment that really ran, if it has one.
    #[must_use]
    pub const fn bpl(self, concealment: Concealment) -> Option<f64> {
        match concealment {
            Concealment::Silence => self.row().bpl_silence,
            Concealment::G711AppendixI => self.row().bpl_appendix_i,
        }
    }
}

/// `span` at `per_second`, rounded down.
const fn scaled(span: Duration, per_second: u64) -> usize {
    (span.as_nanos() as u128 * per_second as u128 / 1_000_000_000) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_20_ms_packet_of_g711_is_160_bytes() {
        // RFC 3551 §4.5.14: 8000 samples a second, eight bits each.
        for codec in [Codec::Pcmu, Codec::Pcma] {
            assert_eq!(codec.bytes_for(Duration::from_millis(20)), 160);
            assert_eq!(codec.samples_for(Duration::from_millis(20)), 160);
            assert_eq!(codec.samples_in(160), 160);
            assert_eq!(codec.rtp_clock(), 8000);
        }
        assert_eq!((Codec::Pcmu.payload_type(), Codec::Pcma.payload_type()), (0, 8));
    }

    #[test]
    fn decoding_then_encoding_is_the_identity_but_for_the_two_zeros_of_mu_law() {
        for code in 0..=255_u8 {
            let again = |codec: Codec| codec.encode(&codec.decode(&[code]))[0];
            assert_eq!(again(Codec::Pcma), code);
            // Codes 0x7F and 0xFF are −0 and +0.
            assert_eq!(again(Codec::Pcmu), if code == 0x7F { 0xFF } else { code });
        }
    }
}
