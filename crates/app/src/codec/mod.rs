//! Speech codecs a flow can name: how they pack sound into bytes, what RTP calls them, and what
//! ITU-T G.113 Appendix I says of their impairment.
//!
//! G.711 is encoded and decoded here and can be heard. The others carry packets of their size and
//! pace that nobody can hear; a new codec is a variant and a row in `Codec::row`, and to be heard a
//! pair of encode/decode functions. Where G.113 publishes no value, the row says `None`, and no
//! score is made up from it.

pub mod g711;

use bytes::Bytes;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use talkspurt_proto::rate::Rung;
use talkspurt_proto::time::Duration;

use crate::playout::Concealment;

/// A speech codec. Only G.711 can be heard; the others carry packets of their size and pace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Codec {
    /// ITU-T G.711 µ-law, 64 kbit/s at 8 kHz, RTP payload type 0.
    Pcmu,
    /// ITU-T G.711 A-law, 64 kbit/s at 8 kHz, RTP payload type 8.
    Pcma,
    /// ITU-T G.726 at 40 kbit/s, a dynamic RTP payload type.
    #[serde(rename = "g726-40")]
    G726At40,
    /// ITU-T G.726 at 32 kbit/s, a dynamic RTP payload type.
    #[serde(rename = "g726-32")]
    G726At32,
    /// ITU-T G.726 at 24 kbit/s, a dynamic RTP payload type.
    #[serde(rename = "g726-24")]
    G726At24,
    /// ITU-T G.726 at 16 kbit/s, a dynamic RTP payload type.
    #[serde(rename = "g726-16")]
    G726At16,
    /// ITU-T G.728, 16 kbit/s in frames of 2.5 ms, RTP payload type 15.
    #[serde(rename = "g728")]
    G728,
    /// ITU-T G.729, 8 kbit/s in frames of 10 ms, RTP payload type 18.
    #[serde(rename = "g729")]
    G729,
    /// ITU-T G.729 Annex A, of lower complexity: the same packets, another impairment.
    #[serde(rename = "g729a")]
    G729A,
    /// What Maldonado et al. (2005) call G.729: 10 kbit/s, which no codec of that name has; two
    /// frames are 25 bytes, a dynamic RTP payload type.
    #[serde(rename = "g729-10")]
    G729At10,
    /// ITU-T G.723.1 at 6.3 kbit/s, 24 bytes in frames of 30 ms, RTP payload type 4.
    #[serde(rename = "g723.1-6.3")]
    G7231At63,
    /// ITU-T G.723.1 at 5.3 kbit/s, 20 bytes in frames of 30 ms, RTP payload type 4.
    #[serde(rename = "g723.1-5.3")]
    G7231At53,
}

/// RTP payload type of comfort noise (RFC 3389; RFC 3551 §6, table 4), which is what a packet that
/// keeps a flow alive in silence carries.
pub const COMFORT_NOISE: u8 = 13;

/// What is known about a codec, one row for each.
struct Row {
    name: &'static str,
    /// Samples in a second.
    sample_rate: u32,
    /// Ticks of the RTP timestamp in a second (not always the sample rate: G.722).
    rtp_clock: u32,
    /// RFC 3551 §6, tables 4 and 5. Those from 96 on are dynamic: that table leaves them to
    /// signalling, for which this one stands.
    payload_type: u8,
    /// The shortest stretch of sound that is a whole number of bytes, and of frames.
    frame: Duration,
    /// Its bytes.
    frame_bytes: u32,
    /// Steps in which a packet may be longer.
    step: Duration,
    /// Sound beyond a frame the encoder waits for.
    look_ahead: Duration,
    /// Equipment impairment factor, G.113 Appendix I.
    ie: Option<f64>,
    /// Packet-loss robustness under random loss, G.113 Appendix I.
    bpl: Bpl,
}

/// Who fills gaps, and how robust that is.
enum Bpl {
    /// The receiver, as the flow says.
    Playout { silence: Option<f64>, appendix_i: Option<f64> },
    /// The decoder, by its own Recommendation.
    Decoder(Option<f64>),
}

const MS: Duration = Duration::from_millis(1);

/// G.113 Appendix I: G.711 in packets of 10 ms. Its two laws share the values.
const G711: Row = Row {
    name: "",
    sample_rate: 8000,
    rtp_clock: 8000,
    payload_type: 0,
    frame: Duration::from_micros(125),
    frame_bytes: 1,
    step: Duration::from_millis(10),
    look_ahead: Duration::ZERO,
    ie: Some(0.0),
    bpl: Bpl::Playout { silence: Some(4.3), appendix_i: Some(25.1) },
};
/// RFC 3551 §4.5.4: two to five bits a sample, eight samples in whole bytes. G.113 Appendix I has
/// Ie for each rate and no Bpl.
const G726: Row = Row { frame: MS, bpl: Bpl::Playout { silence: None, appendix_i: None }, ..G711 };
/// Ie of G.113 Appendix I for G.729; it has a Bpl only for Annex A with voice activity detection.
/// The look-ahead is G.729's 5 ms.
const G729: Row = Row {
    name: "G.729",
    payload_type: 18,
    frame: Duration::from_millis(10),
    frame_bytes: 10,
    look_ahead: Duration::from_millis(5),
    ie: Some(10.0),
    bpl: Bpl::Decoder(None),
    ..G711
};
/// G.113 Appendix I has Ie for both rates, and a Bpl for 6.3 kbit/s with voice activity detection.
/// The look-ahead is G.723.1's 7.5 ms.
const G7231: Row = Row {
    payload_type: 4,
    frame: Duration::from_millis(30),
    step: Duration::from_millis(30),
    look_ahead: Duration::from_micros(7500),
    bpl: Bpl::Decoder(None),
    ..G711
};

impl Codec {
    const fn row(self) -> Row {
        match self {
            Self::Pcmu => Row { name: "G.711 µ-law", payload_type: 0, ..G711 },
            Self::Pcma => Row { name: "G.711 A-law", payload_type: 8, ..G711 },
            Self::G726At40 => {
                Row { name: "G.726 40", payload_type: 96, frame_bytes: 5, ie: Some(2.0), ..G726 }
            }
            Self::G726At32 => {
                Row { name: "G.726 32", payload_type: 97, frame_bytes: 4, ie: Some(7.0), ..G726 }
            }
            Self::G726At24 => {
                Row { name: "G.726 24", payload_type: 98, frame_bytes: 3, ie: Some(25.0), ..G726 }
            }
            Self::G726At16 => {
                Row { name: "G.726 16", payload_type: 99, frame_bytes: 2, ie: Some(50.0), ..G726 }
            }
            Self::G728 => Row {
                name: "G.728",
                payload_type: 15,
                frame: Duration::from_micros(2500),
                frame_bytes: 5,
                step: Duration::from_micros(2500),
                ie: Some(7.0),
                bpl: Bpl::Decoder(None),
                ..G711
            },
            Self::G729 => G729,
            Self::G729A => {
                Row { name: "G.729A", ie: Some(11.0), bpl: Bpl::Decoder(Some(19.0)), ..G729 }
            }
            Self::G729At10 => Row {
                name: "G.729 10",
                payload_type: 100,
                frame: Duration::from_millis(20),
                frame_bytes: 25,
                step: Duration::from_millis(20),
                ie: None,
                ..G729
            },
            Self::G7231At63 => Row {
                name: "G.723.1 6.3",
                frame_bytes: 24,
                ie: Some(15.0),
                bpl: Bpl::Decoder(Some(16.1)),
                ..G7231
            },
            Self::G7231At53 => {
                Row { name: "G.723.1 5.3", frame_bytes: 20, ie: Some(19.0), ..G7231 }
            }
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
    /// Packets hold a multiple of this: a frame, or 10 ms of a codec without frames.
    #[must_use]
    pub const fn step(self) -> Duration {
        self.row().step
    }
    /// Sound beyond a packet's last sample that the encoder waits for.
    #[must_use]
    pub const fn look_ahead(self) -> Duration {
        self.row().look_ahead
    }
    /// True if it is encoded and decoded here, so that a recording can be sent in it.
    #[must_use]
    pub const fn is_heard(self) -> bool {
        matches!(self, Self::Pcmu | Self::Pcma)
    }
    /// Whole samples in a stretch of sound.
    #[must_use]
    pub const fn samples_for(self, span: Duration) -> usize {
        scaled(span, self.sample_rate() as u64)
    }
    /// Bytes of payload of the whole frames in a stretch of sound.
    #[must_use]
    pub const fn bytes_for(self, span: Duration) -> usize {
        let row = self.row();
        (span.as_nanos() / row.frame.as_nanos()) as usize * row.frame_bytes as usize
    }
    /// Samples that a payload of this many bytes decodes to.
    #[must_use]
    pub const fn samples_in(self, payload_bytes: usize) -> usize {
        let row = self.row();
        payload_bytes / row.frame_bytes as usize * scaled(row.frame, row.sample_rate as u64)
    }
    /// Encodes linear 16-bit samples.
    ///
    /// # Panics
    /// If the codec is not heard: no recording is read for one that is not.
    #[must_use]
    pub fn encode(self, pcm: &[i16]) -> Bytes {
        match self {
            Self::Pcmu => pcm.iter().map(|&x| g711::encode_mu(x)).collect(),
            Self::Pcma => pcm.iter().map(|&x| g711::encode_a(x)).collect(),
            _ => panic!("{} has no encoder here", self.name()),
        }
    }
    /// Decodes a payload to linear 16-bit samples; every byte string is valid G.711.
    ///
    /// # Panics
    /// If the codec is not heard: its payloads are virtual.
    #[must_use]
    pub fn decode(self, payload: &[u8]) -> Vec<i16> {
        match self {
            Self::Pcmu => payload.iter().map(|&code| g711::decode_mu(code)).collect(),
            Self::Pcma => payload.iter().map(|&code| g711::decode_a(code)).collect(),
            _ => panic!("{} has no decoder here", self.name()),
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
        match (self.row().bpl, concealment) {
            (Bpl::Decoder(bpl), _) => bpl,
            (Bpl::Playout { silence, .. }, Concealment::Silence) => silence,
            (Bpl::Playout { appendix_i, .. }, Concealment::G711AppendixI) => appendix_i,
        }
    }
    /// Length of the packets for which G.113 Appendix I gives Bpl.
    #[must_use]
    pub const fn bpl_packet(self) -> Duration {
        match self {
            Self::G7231At63 | Self::G7231At53 => Duration::from_millis(30),
            Self::G728 | Self::G729 | Self::G729A | Self::G729At10 => Duration::from_millis(20),
            _ => Duration::from_millis(10),
        }
    }
    /// True if its decoder fills gaps itself, whatever concealment a flow names.
    #[must_use]
    pub const fn conceals(self) -> bool {
        matches!(self.row().bpl, Bpl::Decoder(_))
    }
    /// What concealment adds to the delay.
    #[must_use]
    pub const fn concealment_delay(self, concealment: Concealment) -> Duration {
        if self.conceals() { Duration::ZERO } else { concealment.delay() }
    }
}

/// One way of sending speech: a codec, and how much of it goes in a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Encoding {
    /// The codec.
    pub codec: Codec,
    /// Speech in one packet.
    pub packet: Duration,
}

impl Encoding {
    /// Bytes of RTP's header (RFC 3550 §5.1), without sources or extension.
    const RTP_HEADER_BYTES: u32 = 12;

    /// Bytes of payload in a packet.
    #[must_use]
    pub const fn payload_bytes(self) -> usize {
        self.codec.bytes_for(self.packet)
    }
    /// What a controller of rates knows of it.
    #[must_use]
    pub const fn rung(self) -> Rung {
        let packet_bytes = Self::RTP_HEADER_BYTES + self.payload_bytes() as u32;
        Rung { packet_bytes, interval: self.packet }
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
    fn packets_hold_the_bytes_of_their_frames() {
        // By hand: bits per second times the packet, in bytes; RFC 3551 §4.5 and its table 1.
        let cases = [
            (Codec::G726At40, 20, 100, 96),
            (Codec::G726At32, 20, 80, 97),
            (Codec::G726At24, 20, 60, 98),
            (Codec::G726At16, 20, 40, 99),
            (Codec::G728, 20, 40, 15),
            (Codec::G729, 20, 20, 18),
            (Codec::G729A, 30, 30, 18),
            (Codec::G729At10, 20, 25, 100),
            (Codec::G7231At63, 30, 24, 4),
            (Codec::G7231At53, 60, 40, 4),
        ];
        for (codec, ms, bytes, payload_type) in cases {
            let packet = Duration::from_millis(ms);
            assert_eq!(codec.bytes_for(packet), bytes, "{codec:?}");
            assert_eq!(codec.samples_in(bytes), 8 * ms as usize, "{codec:?}");
            assert_eq!((codec.payload_type(), codec.rtp_clock()), (payload_type, 8000));
            let rung = Encoding { codec, packet }.rung();
            assert_eq!((rung.packet_bytes as usize, rung.interval), (12 + bytes, packet));
            assert!(!codec.is_heard());
        }
        // RFC 3551 §4.5.5: a frame is four vectors of ten bits, 2.5 ms; §4.5.3: frames of 30 ms.
        assert_eq!(Codec::G728.step(), Duration::from_micros(2500));
        assert_eq!(Codec::G7231At63.step(), Duration::from_millis(30));
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
