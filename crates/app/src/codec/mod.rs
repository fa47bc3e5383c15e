//! Speech codecs that a flow can name: packetisation, RTP parameters, and impairment by ITU-T G.113 Appendix I.
//!
//! Each file describes a codec, or a family, by a [`Spec`]; the table `codecs!` registers them. A codec with
//! sound has an [`Encoder`] and a [`Decoder`]. The others send packets of their size and rate, and a recording
//! is heard through a [stand-in](stand_in).
//! Where G.113 publishes no value, the `Spec` has `None`, and no score is derived from it.

pub mod comfort_noise;
mod encoded;
pub mod external;
mod following;
pub mod g711;
mod g722;
mod g726;
pub mod opus;
mod red;
pub mod stand_in;
mod unencoded;

use std::fmt;

use bytes::Bytes;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use talkspurt_proto::rate::Rung;
use talkspurt_proto::time::Duration;
use talkspurt_proto::units::Rate;

/// RTP payload type of comfort noise (RFC 3389; RFC 3551 §6, table 4), used by keep-alive packets in silence.
pub const COMFORT_NOISE: u8 = 13;

/// Encodes sound into packets. Its state carries over from packet to packet.
pub trait Encoder: fmt::Debug + Send {
    /// Encodes one packet: whole frames of linear 16-bit samples at the codec's sample rate. `target` is the
    /// payload rate requested by congestion control; `None` if there was no request. A codec of one rate
    /// ignores it. An empty packet is not sent.
    fn encode(&mut self, pcm: &[i16], target: Option<Rate>) -> Bytes;
    /// The receiver reported this share of lost packets, 0 to 1.
    fn set_expected_loss(&mut self, _loss: f64) {}
}

/// Decodes packets into sound, in playout order.
pub trait Decoder: fmt::Debug + Send {
    /// Decodes a packet. Any bytes may come; the result may then be shorter, or noise.
    fn decode(&mut self, payload: &[u8]) -> Vec<i16>;
    /// Maximum distance in packets from a lost packet to one with redundancy for it.
    fn redundancy(&self) -> u32 {
        0
    }
    /// The redundancy of a packet. Any bytes may come.
    fn redundancy_in(&mut self, _payload: &[u8]) -> Redundancy {
        Redundancy::default()
    }
    /// Recovers the sound of a lost packet from redundancy in a later one, `ahead` packets after it (1: the
    /// next). `None` without redundancy. `samples` is the length of the lost packet.
    fn recover(&mut self, _later: &[u8], _ahead: u32, _samples: usize) -> Option<Vec<i16>> {
        None
    }
    /// The sound of a pause in which the encoder sent nothing. `None`: silence.
    fn pause(&mut self, _samples: usize) -> Option<Vec<i16>> {
        None
    }
    /// Adapts to the concealed sound of a gap, which follows what was `heard`.
    fn follow(&mut self, _heard: &[i16], _concealed: &[i16]) {}
    /// Conceals a lost packet. `None` if the codec leaves that to the flow's concealment.
    fn conceal(&mut self, _samples: usize) -> Option<Vec<i16>> {
        None
    }
}

/// What a packet contains of the sound before it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Redundancy {
    /// Number of packets before this one whose sound it contains.
    pub packets: u32,
    /// Whether it has in-band FEC; `None` if the codec or its configuration has none.
    pub fec: Option<bool>,
    /// The sound that its deep redundancy covers; `None` likewise.
    pub deep: Option<Duration>,
}

/// How a codec is encoded and decoded.
#[derive(Clone, Copy, Debug)]
pub struct Sound {
    /// Creates an encoder for one direction of a call.
    pub encoder: fn(&Encoding) -> Box<dyn Encoder>,
    /// Creates its decoder.
    pub decoder: fn(&Encoding) -> Box<dyn Decoder>,
    /// True if a packet depends only on its own samples: a recording is then encoded once, even if sent
    /// repeatedly.
    pub stateless: bool,
}

/// Properties of a codec.
#[derive(Clone, Copy, Debug)]
pub struct Spec {
    /// Common name.
    pub name: &'static str,
    /// Samples per second.
    pub sample_rate: u32,
    /// Ticks of the RTP timestamp per second (not always the sample rate: G.722).
    pub rtp_clock: u32,
    /// RFC 3551 §6, tables 4 and 5. Types from 96 on are dynamic, assigned by signalling, which this value
    /// replaces.
    pub payload_type: u8,
    /// The shortest duration that is a whole number of bytes, and of frames.
    pub frame: Duration,
    /// Bytes of a frame; for a codec of variable rate, at its initial rate.
    pub frame_bytes: u32,
    /// Bytes of a packet before its frames.
    pub header_bytes: u32,
    /// True if packets of the same sound may differ in length.
    pub variable_rate: bool,
    /// Granularity of packet durations.
    pub step: Duration,
    /// Sound beyond a frame that the encoder needs.
    pub look_ahead: Duration,
    /// Equipment impairment factor, G.113 Appendix I.
    pub ie: Option<f64>,
    /// Packet-loss robustness factor under random loss, G.113 Appendix I.
    pub bpl: Bpl,
    /// Packet duration for which G.113 Appendix I gives Bpl.
    pub bpl_packet: Duration,
    /// `None`: no encoder is available under a permissive licence. Packets have its size and rate, and a
    /// recording is heard through a stand-in.
    pub sound: Option<Sound>,
    /// True if its encoder and decoder must be [registered](external).
    pub is_external: bool,
    /// True if its decoder adapts to each packet and can [follow](Decoder::follow) concealment instead.
    pub is_adaptive: bool,
}

/// What conceals gaps, and its robustness.
#[derive(Clone, Copy, Debug)]
pub enum Bpl {
    /// The receiver, as the flow configures it.
    Playout {
        /// With silence in gaps.
        silence: Option<f64>,
        /// With G.711 Appendix I.
        appendix_i: Option<f64>,
    },
    /// The decoder, by its own Recommendation.
    Decoder(Option<f64>),
}

/// Concealment of gaps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Concealment {
    /// Silence.
    #[serde(rename = "silence")]
    Silence,
    /// Pitch waveform replication (ITU-T G.711 Appendix I).
    #[default]
    #[serde(rename = "g711-appendix-i")]
    G711AppendixI,
    /// The same, but decoders of G.722 and G.726 keep the state of the last packet before a gap, as those of
    /// simple receivers do, and click after it.
    #[serde(rename = "g711-appendix-i-frozen")]
    G711AppendixIFrozen,
}

impl Concealment {
    /// Delay it adds: G.711 Appendix I delays its output by 3.75 ms (30 samples) to blend into the start of a
    /// gap (G.711 §I.2).
    #[must_use]
    pub const fn delay(self) -> Duration {
        match self {
            Self::Silence => Duration::ZERO,
            Self::G711AppendixI | Self::G711AppendixIFrozen => Duration::from_micros(3750),
        }
    }
}

/// Defines [`Codec`] from the codecs that a scenario can name.
macro_rules! codecs {
    ($($(#[$about:meta])* $codec:ident $name:literal = $spec:expr;)*) => {
        /// A speech codec. G.728, G.729 and G.723.1 at 5.3 kbit/s have no encoder here: their packets have
        /// their size and rate, and a recording is heard through a stand-in, narrowband Opus of a similar rate.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
        pub enum Codec {
            $($(#[$about])* #[serde(rename = $name)] $codec,)*
        }

        impl Codec {
            /// All codecs.
            pub const ALL: &[Self] = &[$(Self::$codec),*];

            /// Its name in a scenario.
            #[must_use]
            pub const fn word(self) -> &'static str {
                match self {
                    $(Self::$codec => $name,)*
                }
            }

            /// Its properties.
            #[must_use]
            pub const fn spec(self) -> &'static Spec {
                match self {
                    $(Self::$codec => &$spec,)*
                }
            }
        }
    };
}

codecs! {
    /// ITU-T G.711 µ-law, 64 kbit/s at 8 kHz, RTP payload type 0.
    Pcmu "pcmu" = g711::MU_LAW;
    /// ITU-T G.711 A-law, 64 kbit/s at 8 kHz, RTP payload type 8.
    Pcma "pcma" = g711::A_LAW;
    /// ITU-T G.722, 64 kbit/s at 16 kHz (wideband), RTP payload type 9 with a clock of 8 kHz.
    G722 "g722" = g722::SPEC;
    /// ITU-T G.726 at 40 kbit/s, a dynamic RTP payload type.
    G726At40 "g726-40" = g726::AT_40;
    /// ITU-T G.726 at 32 kbit/s, a dynamic RTP payload type.
    G726At32 "g726-32" = g726::AT_32;
    /// ITU-T G.726 at 24 kbit/s, a dynamic RTP payload type.
    G726At24 "g726-24" = g726::AT_24;
    /// ITU-T G.726 at 16 kbit/s, a dynamic RTP payload type.
    G726At16 "g726-16" = g726::AT_16;
    /// ITU-T G.728, 16 kbit/s in frames of 2.5 ms, RTP payload type 15.
    G728 "g728" = unencoded::G728;
    /// ITU-T G.729, 8 kbit/s in frames of 10 ms, RTP payload type 18.
    G729 "g729" = unencoded::G729;
    /// ITU-T G.729 Annex A, of lower complexity: the same packets, a different impairment.
    G729A "g729a" = unencoded::G729_A;
    /// "G.729" of Maldonado et al. (2005): 10 kbit/s, which no codec of that name has; two frames are 25 bytes,
    /// a dynamic RTP payload type.
    G729At10 "g729-10" = unencoded::G729_AT_10;
    /// ITU-T G.723.1 at 6.3 kbit/s, 24 bytes in frames of 30 ms, RTP payload type 4. The sound needs the extra
    /// `av`, which has FFmpeg's encoder.
    G7231At63 "g723.1-6.3" = unencoded::G723_1_AT_6_3;
    /// ITU-T G.723.1 at 5.3 kbit/s, 20 bytes in frames of 30 ms, RTP payload type 4.
    G7231At53 "g723.1-5.3" = unencoded::G723_1_AT_5_3;
    /// AMR at 12.2 kbit/s (RFC 4867, octet-aligned), 33 bytes in frames of 20 ms, a dynamic RTP payload type.
    /// As for all modes, the sound needs the extra `av`, which has FFmpeg's encoder.
    Amr1220 "amr-12.2" = unencoded::AMR_12_2;
    /// AMR at 10.2 kbit/s, 28 bytes.
    Amr1020 "amr-10.2" = unencoded::AMR_10_2;
    /// AMR at 7.95 kbit/s, 22 bytes.
    Amr795 "amr-7.95" = unencoded::AMR_7_95;
    /// AMR at 7.4 kbit/s, 21 bytes.
    Amr740 "amr-7.4" = unencoded::AMR_7_4;
    /// AMR at 6.7 kbit/s, 19 bytes.
    Amr670 "amr-6.7" = unencoded::AMR_6_7;
    /// AMR at 5.9 kbit/s, 17 bytes.
    Amr590 "amr-5.9" = unencoded::AMR_5_9;
    /// AMR at 5.15 kbit/s, 15 bytes.
    Amr515 "amr-5.15" = unencoded::AMR_5_15;
    /// AMR at 4.75 kbit/s, 14 bytes.
    Amr475 "amr-4.75" = unencoded::AMR_4_75;
    /// Opus (RFC 6716) at 48 kHz with the parameters of `opus`, a dynamic RTP payload type (RFC 7587).
    Opus "opus" = opus::SPEC;
}

impl Codec {
    /// True if its audio is implemented.
    #[must_use]
    pub const fn has_sound(self) -> bool {
        self.spec().sound.is_some()
    }
    /// Ticks of the RTP timestamp in a duration.
    #[must_use]
    pub const fn ticks_for(self, span: Duration) -> u32 {
        (span.as_nanos() as u128 * self.spec().rtp_clock as u128 / 1_000_000_000) as u32
    }
    /// Packet-loss robustness factor Bpl under random loss (G.113 Appendix I) with the concealment in use, if
    /// published.
    #[must_use]
    pub const fn bpl(self, concealment: Concealment) -> Option<f64> {
        match (self.spec().bpl, concealment) {
            (Bpl::Decoder(bpl), _) => bpl,
            (Bpl::Playout { silence, .. }, Concealment::Silence) => silence,
            (Bpl::Playout { appendix_i, .. }, _) => appendix_i,
        }
    }
    /// A codec of the same Recommendation for which G.113 Appendix I has both factors; `None` if this one has
    /// them.
    #[must_use]
    pub fn relative_with_factors(self, concealment: Concealment) -> Option<Self> {
        let has_both = |codec: Self| codec.spec().ie.is_some() && codec.bpl(concealment).is_some();
        // Names continue with an annex or a rate.
        let of = |codec: Self| codec.spec().name.split(['A', ' ']).next();
        let mut others = Self::ALL.iter().copied().filter(|other| of(*other) == of(self));
        if has_both(self) { None } else { others.find(|other| has_both(*other)) }
    }
    /// True if its decoder conceals gaps itself, whatever concealment a flow selects.
    #[must_use]
    pub const fn conceals(self) -> bool {
        matches!(self.spec().bpl, Bpl::Decoder(_))
    }
    /// Delay added by concealment.
    #[must_use]
    pub const fn concealment_delay(self, concealment: Concealment) -> Duration {
        if self.conceals() { Duration::ZERO } else { concealment.delay() }
    }
}

/// A way of sending speech: a codec with its parameters and a packet duration.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Encoding {
    /// The codec.
    pub codec: Codec,
    /// Speech per packet.
    pub packet: Duration,
    /// Parameters of Opus; the others have none.
    pub opus: opus::Config,
    /// Packets before that each packet repeats (RED, RFC 2198).
    pub red: u8,
    /// Its sound is that of narrowband Opus, since the codec has no encoder.
    pub stand_in: bool,
}

impl Encoding {
    /// Bytes of the RTP header (RFC 3550 §5.1), without CSRCs or extension.
    const RTP_HEADER_BYTES: u32 = 12;

    /// A codec with its default parameters.
    #[must_use]
    pub fn new(codec: Codec, packet: Duration) -> Self {
        let (opus, stand_in) = (opus::Config::default(), !codec.has_sound());
        Self { codec, packet, opus, red: 0, stand_in }
    }
    /// Why no recording can be sent with it, with the remedy, if none can.
    #[must_use]
    pub fn mute_error(&self) -> Option<String> {
        let needs_library = self.codec.spec().is_external && !self.stand_in;
        needs_library.then(external::error).flatten()
    }
    /// What is heard in its place.
    #[must_use]
    pub fn stand_in(&self) -> Option<stand_in::StandIn> {
        self.stand_in.then(|| stand_in::StandIn::of(self.codec))
    }
    /// Channels of its sound, interleaved.
    #[must_use]
    pub fn channels(&self) -> usize {
        if self.codec == Codec::Opus { usize::from(self.opus.channels.max(1)) } else { 1 }
    }
    /// Number of whole samples in a duration, all channels.
    #[must_use]
    pub fn samples_for(&self, span: Duration) -> usize {
        let rate = u128::from(self.codec.spec().sample_rate);
        (u128::from(span.as_nanos()) * rate / 1_000_000_000) as usize * self.channels()
    }
    /// Sound beyond a packet's last sample that the encoder needs.
    #[must_use]
    pub fn look_ahead(&self) -> Duration {
        match self.codec {
            Codec::Opus => self.opus.look_ahead(),
            codec => codec.spec().look_ahead,
        }
    }
    /// An encoder; `None` without audio. With a stand-in, its packets only have the codec's length.
    #[must_use]
    pub fn encoder(&self) -> Option<Box<dyn Encoder>> {
        let encoder = if self.stand_in {
            self.blank()
        } else {
            self.codec.spec().sound.map(|sound| (sound.encoder)(self))?
        };
        Some(self.with_red(encoder))
    }
    /// An encoder for a run that nobody hears: its packets have the same lengths, and no sound if the lengths
    /// do not depend on it. Encoding can take longer than the rest of a run. `None` without audio.
    #[must_use]
    pub fn unheard_encoder(&self) -> Option<Box<dyn Encoder>> {
        if self.codec == Codec::Opus && self.opus.varies() {
            return self.encoder();
        }
        Some(self.with_red(self.blank()))
    }
    fn blank(&self) -> Box<dyn Encoder> {
        Box::new(stand_in::Blank { encoding: Self { red: 0, ..*self } })
    }
    fn with_red(&self, encoder: Box<dyn Encoder>) -> Box<dyn Encoder> {
        if self.red > 0 { Box::new(red::Sender::new(encoder, *self)) } else { encoder }
    }
    /// A decoder; `None` without audio. With a stand-in, it finds redundancy, but no sound.
    #[must_use]
    pub fn decoder(&self) -> Option<Box<dyn Decoder>> {
        self.own_decoder().map(|decoder| self.with_copies(decoder))
    }
    /// The decoder of a receiver with this concealment; `None` without audio.
    #[must_use]
    pub fn receiver(&self, concealment: Concealment) -> Option<Box<dyn Decoder>> {
        let decoder = self.own_decoder()?;
        let follows = self.codec.spec().is_adaptive && !self.stand_in;
        Some(self.with_copies(if follows && concealment == Concealment::G711AppendixI {
            Box::new(following::Following::new(decoder, self))
        } else {
            decoder
        }))
    }
    fn own_decoder(&self) -> Option<Box<dyn Decoder>> {
        if self.stand_in {
            return Some(Box::new(stand_in::Blank { encoding: *self }));
        }
        self.codec.spec().sound.map(|sound| (sound.decoder)(self))
    }
    fn with_copies(&self, decoder: Box<dyn Decoder>) -> Box<dyn Decoder> {
        if self.red > 0 { Box::new(red::Receiver::new(decoder, self)) } else { decoder }
    }
    /// RTP payload type.
    #[must_use]
    pub const fn payload_type(&self) -> u8 {
        if self.red > 0 { red::PAYLOAD_TYPE } else { self.codec.spec().payload_type }
    }
    /// True if a packet depends only on its own samples.
    #[must_use]
    pub fn is_stateless(&self) -> bool {
        let stateless = self.codec.spec().sound.is_some_and(|sound| sound.stateless);
        self.red == 0 && !self.stand_in && stateless
    }
    /// Why its packets cannot be repeated `red` times, if they cannot.
    #[must_use]
    pub fn red_error(&self) -> Option<String> {
        (self.red > 0).then(|| red::error(self)).flatten()
    }
    /// Payload bytes per packet; for a codec of variable rate, at its highest rate.
    #[must_use]
    pub fn payload_bytes(&self) -> usize {
        let spec = self.codec.spec();
        let own = match self.codec {
            Codec::Opus => self.opus.bytes(self.packet),
            _ => {
                let frames = self.packet.as_nanos() / spec.frame.as_nanos();
                spec.header_bytes as usize + frames as usize * spec.frame_bytes as usize
            }
        };
        if self.red > 0 { red::bytes(own, self.red) } else { own }
    }
    /// The same at the payload rate that congestion control requests.
    #[must_use]
    pub fn payload_bytes_at(&self, target: Rate) -> usize {
        match self.codec {
            Codec::Opus => {
                let own =
                    if self.red > 0 { red::rate(target, self.packet, self.red) } else { target };
                let bitrate = self.opus.rate(own, self.packet);
                Self { opus: opus::Config { bitrate, ..self.opus }, ..*self }.payload_bytes()
            }
            _ => self.payload_bytes(),
        }
    }
    /// Its packet size and interval, for rate controllers.
    #[must_use]
    pub fn rung(&self) -> Rung {
        let packet_bytes = Self::RTP_HEADER_BYTES + self.payload_bytes() as u32;
        Rung { packet_bytes, interval: self.packet }
    }
    /// The payload rate at a total rate that includes RTP headers.
    #[must_use]
    pub fn payload_rate(&self, rate: Rate) -> Rate {
        let headers = Rung { packet_bytes: Self::RTP_HEADER_BYTES, interval: self.packet }.rate();
        Rate::from_bps(rate.as_bps().saturating_sub(headers.as_bps()))
    }
}

/// The longest duration of which every packet is a multiple: the step of the media clock.
#[must_use]
pub fn step(encodings: &[Encoding]) -> Duration {
    let gcd = |a: u64, b: u64| {
        let (mut a, mut b) = (a, b);
        while b > 0 {
            (a, b) = (b, a % b);
        }
        a
    };
    let packets = encodings.iter().map(|encoding| encoding.packet.as_nanos());
    Duration::from_nanos(packets.fold(0, gcd).max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_20_ms_packet_of_g711_is_160_bytes() {
        // RFC 3551 §4.5.14: 8000 samples a second, eight bits each.
        for codec in [Codec::Pcmu, Codec::Pcma] {
            let encoding = Encoding::new(codec, Duration::from_millis(20));
            assert_eq!(encoding.payload_bytes(), 160);
            assert_eq!(encoding.samples_for(Duration::from_millis(20)), 160);
            assert_eq!(codec.spec().rtp_clock, 8000);
        }
        assert_eq!((Codec::Pcmu.spec().payload_type, Codec::Pcma.spec().payload_type), (0, 8));
    }

    #[test]
    fn packets_hold_the_bytes_of_their_frames() {
        // By hand: bits per second times the packet duration, in bytes; RFC 3551 §4.5 and its table 1.
        let cases = [
            (Codec::G722, 20, 160, 9),
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
            // RFC 4867 §3.6, table 1: bits of a frame, in whole octets (§4.4.3); with the table of contents and
            // the header of the payload.
            (Codec::Amr1220, 20, 244_usize.div_ceil(8) + 2, 102),
            (Codec::Amr1020, 20, 204_usize.div_ceil(8) + 2, 102),
            (Codec::Amr795, 20, 159_usize.div_ceil(8) + 2, 102),
            (Codec::Amr740, 20, 148_usize.div_ceil(8) + 2, 102),
            (Codec::Amr670, 20, 134_usize.div_ceil(8) + 2, 102),
            (Codec::Amr590, 20, 118_usize.div_ceil(8) + 2, 102),
            (Codec::Amr515, 20, 103_usize.div_ceil(8) + 2, 102),
            (Codec::Amr475, 40, 2 * (95_usize.div_ceil(8) + 1) + 1, 102),
        ];
        for (codec, ms, bytes, payload_type) in cases {
            let packet = Duration::from_millis(ms);
            let encoding = Encoding::new(codec, packet);
            assert_eq!(encoding.payload_bytes(), bytes, "{codec:?}");
            assert_eq!((codec.spec().payload_type, codec.spec().rtp_clock), (payload_type, 8000));
            let rung = encoding.rung();
            assert_eq!((rung.packet_bytes as usize, rung.interval), (12 + bytes, packet));
            let sounds = ["G.722", "G.726", "G.723.1 6.3", "AMR"];
            let has_sound = sounds.iter().any(|it| codec.spec().name.starts_with(it));
            assert_eq!(codec.has_sound(), has_sound);
            assert_eq!(encoding.stand_in().is_some(), !has_sound);
            assert_eq!(codec.spec().is_external, encoding.mute_error().is_some());
            if encoding.mute_error().is_some() {
                continue;
            }
            // The packets of a stand-in have the codec's length.
            let silence = vec![0; encoding.samples_for(packet)];
            assert_eq!(encoding.encoder().unwrap().encode(&silence, None).len(), bytes);
        }
        // RFC 3551 §4.5.5: a frame is four vectors of ten bits, 2.5 ms; §4.5.3: frames of 30 ms.
        assert_eq!(Codec::G728.spec().step, Duration::from_micros(2500));
        assert_eq!(Codec::G7231At63.spec().step, Duration::from_millis(30));
    }

    #[test]
    fn packets_that_nobody_hears_have_the_lengths_of_those_with_sound() {
        let mut rng = talkspurt_proto::rng::Rng::new(1, "noise");
        let rates = [None, Some(0), Some(7_000), Some(20_000), Some(31_999), Some(500_000)];
        let codecs = Codec::ALL.iter().filter(|it| it.has_sound() && !it.spec().is_external);
        for codec in codecs {
            for (ms, red) in [(20, 0), (40, 0), (60, 0), (20, 1), (20, 2)] {
                let plain = Encoding::new(*codec, Duration::from_millis(ms));
                let encoding = Encoding { red, ..plain };
                if encoding.red_error().is_some() {
                    continue;
                }
                let mut heard = encoding.encoder().unwrap();
                let mut unheard = encoding.unheard_encoder().unwrap();
                for rate in rates.iter().cycle().take(30) {
                    let target = rate.map(Rate::from_bps);
                    let samples = encoding.samples_for(encoding.packet);
                    let pcm: Vec<_> = (0..samples).map(|_| rng.below(20_000) as i16).collect();
                    let lengths =
                        [&mut heard, &mut unheard].map(|it| it.encode(&pcm, target).len());
                    assert_eq!(lengths[0], lengths[1], "{encoding:?} at {target:?}");
                }
            }
        }
        // Silence is not sent, whoever hears it.
        let opus = opus::Config { dtx: true, ..opus::Config::default() };
        let encoding = Encoding { opus, ..Encoding::new(Codec::Opus, Duration::from_millis(20)) };
        let mut unheard = encoding.unheard_encoder().unwrap();
        let lengths = (0..100).map(|_| unheard.encode(&[0; 960], None).len());
        assert!(lengths.filter(|len| *len == 0).count() > 50);
    }

    #[test]
    fn the_rate_of_the_payload_is_what_the_headers_leave() {
        // 12 bytes in 20 ms are 4.8 kbit/s.
        let encoding = Encoding::new(Codec::Pcmu, Duration::from_millis(20));
        assert_eq!(encoding.payload_rate(Rate::from_bps(68_800)), Rate::from_bps(64_000));
        assert_eq!(encoding.payload_rate(Rate::from_bps(1)), Rate::ZERO);
    }

    #[test]
    fn decoding_then_encoding_is_the_identity_but_for_the_two_zeros_of_mu_law() {
        for code in 0..=255_u8 {
            let again = |codec: Codec| {
                let it = Encoding::new(codec, Duration::from_millis(20));
                let (mut encoder, mut decoder) = it.encoder().zip(it.decoder()).unwrap();
                encoder.encode(&decoder.decode(&[code]), None)[0]
            };
            assert_eq!(again(Codec::Pcma), code);
            // Codes 0x7F and 0xFF are −0 and +0.
            assert_eq!(again(Codec::Pcmu), if code == 0x7F { 0xFF } else { code });
        }
    }
}
