//! Parameters of the sources: speech, constant and on/off bit rate and bulk here, random ones in `random`,
//! video and captured packets in `packets`.

mod packets;
mod random;

use std::path::PathBuf;

pub use packets::{Encoder, Repair, Replay, Video};
pub use random::{Conversation, Distribution, Pauses, Poisson, Web};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use talkspurt_proto::time::Duration;
use talkspurt_proto::units::{Rate, Size};

use crate::codec::{Codec, Encoding, opus};
use crate::flexfec;
use crate::recording::Vad;

/// Encoded, packetised speech.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Speech {
    /// WAV file (PCM of any depth or 32-bit float, any rate, mono or stereo), relative to the scenario's
    /// folder; mixed to mono and resampled to the codec's rate. Absent: packets of the codec's size without
    /// audio, until the flow stops.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<PathBuf>,
    /// Codec, or the best of the `ladder`. G.728, G.729 and G.723.1 at 5.3 kbit/s have no encoder: their
    /// packets have their size and rate, and a `file` is heard through a stand-in.
    pub codec: Codec,
    /// What is heard in place of a codec without an encoder, with a `file`: narrowband Opus at the nearest rate
    /// it has, 6 kbit/s or more. Absent: "opus" if such a codec is used. The stand-in has no effect on packets
    /// and score.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stand_in: Option<StandIn>,
    /// Codecs among which the transport's controller may choose, best first, starting with `codec`, each of a
    /// lower rate than the one before (with headers); 2 to 8 of them. With a `file`, the sound has the highest
    /// of their sample rates, and is cross-faded for 5 ms where the codec changes. Opus has one channel and
    /// the constant rate `opus.bitrate`. Over a transport without rate requests the first is kept. The opinion
    /// score uses the means of Ie and Bpl over the frames heard, with keep-alive packets counted for the codec
    /// in use; it is absent if one of their codecs has no Ie.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ladder: Vec<Codec>,
    /// Speech per packet: 10 to 60 ms in whole frames, which are steps of 10 ms for G.711, G.722, G.726 and
    /// G.729, of 2.5 ms for G.728, of 20 ms for AMR and of 30 ms for G.723.1 (RFC 3551 §4.2 recommends 20 ms).
    /// Opus has 2.5, 5, 10, 20, 40, 60, 80, 100 or 120 ms. In a `ladder`, each codec has the fewest frames that
    /// hold this much: G.723.1 30 ms for 20.
    #[serde(default = "Speech::default_packet")]
    pub packet: Duration,
    /// Parameters of the codec "opus", which it also follows at the rate that the transport requests.
    #[serde(default, skip_serializing_if = "is_default")]
    pub opus: opus::Config,
    /// Number of packets before that each packet repeats, 0 to 3 (RED, RFC 2198). The receiver plays a lost
    /// packet from the first copy that arrives in time. The rate is multiplied; Opus divides a requested rate
    /// among the copies. Not in a `ladder`.
    #[serde(default, skip_serializing_if = "is_default")]
    #[schemars(range(max = 3))]
    pub red: u8,
    /// Parity packets beside the stream (FlexFEC, RFC 8627). A row or column that has lost a single packet is
    /// complete again once its repair packet has arrived, bit by bit and in any codec. A repair packet is 16
    /// bytes longer than the longest packet that it protects. A pause of two packets ends a block early. Not in
    /// a `ladder`, nor over a transport that retransmits without limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flexfec: Option<flexfec::Config>,
    /// Start over when the recording ends, until the flow stops.
    #[serde(default)]
    pub repeat: bool,
    /// Alternating talkspurts and silences, without packets in silence; only without a `file`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub talkspurts: Option<Talkspurts>,
    /// Talkspurts and silences of a two-way conversation; only without a `file`, and with the same values in
    /// both directions, since one chain drives both. Each side uses its own clock.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conversation: Option<Conversation>,
    /// Voice activity detection: packets of the `file` only while it is spoken in, without packets in its
    /// pauses.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vad: Option<Vad>,
    /// Small packets in the silences of `talkspurts`, `conversation` or `vad`, which keep the transport's
    /// estimate of the path current; absent: no packets in silence. They are comfort noise packets (RFC 3389)
    /// and count as frames. With `vad` they describe the background, which is heard; Opus has its own (`dtx`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keep_alive: Option<KeepAlive>,
    /// Time from opening the connection to the first sample, so that a handshake can finish first.
    #[serde(default)]
    pub lead: Duration,
    /// Seeded processing noise: each packet leaves up to this long after its last sample, in order. Without it,
    /// equal streams synchronise over a full queue, which distorts results.
    #[serde(default = "default_noise")]
    pub noise: Duration,
}

/// What is heard in place of a codec.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum StandIn {
    /// Narrowband Opus, for codecs without an encoder.
    Opus,
    /// Narrowband Opus, for these and for those of the extra `av`: G.723.1 at 6.3 kbit/s and AMR.
    OpusForAv,
}

/// Talkspurts and silences of random length.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Talkspurts {
    /// Mean length of a talkspurt (ITU-T P.59: 1.004 s).
    pub on: Duration,
    /// Mean length of a silence (ITU-T P.59: 1.587 s).
    pub off: Duration,
    /// Distribution of both lengths.
    pub spread: Distribution,
}

impl Default for Talkspurts {
    fn default() -> Self {
        Self { on: OnOff::default_on(), off: OnOff::default_off(), spread: Distribution::default() }
    }
}

/// Packets in silence.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct KeepAlive {
    /// Time between two of them, rounded up to the step of the media clock. The default is one packet every two
    /// round trips of the path of Maldonado et al. (2005), 150 ms each.
    pub every: Duration,
    /// Payload per packet (RFC 3389 §3: a byte of noise level, and up to 11 of spectrum).
    pub size: Size,
    /// True: the first replaces the first packet without speech (RFC 3389 §5: comfort noise is transmitted at
    /// the beginning of a silence), and each leaves when speech would have; false: the first leaves after
    /// `every`.
    pub at_once: bool,
}

impl Default for KeepAlive {
    fn default() -> Self {
        Self { every: Duration::from_millis(300), size: Size::from_bytes(1), at_once: false }
    }
}

/// Constant bit rate.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Cbr {
    /// Payload rate (IP rate under the `ns2` sizing profile, where they are equal).
    pub rate: Rate,
    /// Payload per packet.
    pub packet: Size,
    /// Seeded processing noise: each packet leaves up to this long after its time, in order.
    #[serde(default = "default_noise")]
    pub noise: Duration,
}

/// Constant bit rate with on and off times.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OnOff {
    /// Payload rate while on.
    pub rate: Rate,
    /// Payload per packet.
    pub packet: Size,
    /// Mean length of a talkspurt (ITU-T P.59: 1.004 s).
    #[serde(default = "OnOff::default_on")]
    pub on: Duration,
    /// Mean length of a silence (ITU-T P.59: 1.587 s).
    #[serde(default = "OnOff::default_off")]
    pub off: Duration,
    /// Distribution of both lengths.
    #[serde(default)]
    pub spread: Distribution,
    /// Seeded processing noise: each packet leaves up to this long after its time, in order.
    #[serde(default = "default_noise")]
    pub noise: Duration,
}

/// Greedy data.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Bulk {
    /// Amount to send before closing; absent means unlimited.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub total: Option<Size>,
    /// Payload per packet over a message-based transport (DCCP, TFRC); absent means 1000 B. TCP segments its
    /// stream by its own `mss`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub packet: Option<Size>,
    /// Alternating bursts and pauses; absent: greedy throughout.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pauses: Option<Pauses>,
}

/// True for parameters that need not be written.
fn is_default<T: Default + PartialEq>(it: &T) -> bool {
    *it == T::default()
}

const fn default_noise() -> Duration {
    Duration::from_millis(1)
}
impl Speech {
    const fn default_packet() -> Duration {
        Duration::from_millis(20)
    }

    /// The encodings of this speech, best first: one, or the rungs of the ladder.
    #[must_use]
    pub fn encodings(&self) -> Vec<Encoding> {
        let for_av = self.stand_in == Some(StandIn::OpusForAv);
        let replaced = |it: Encoding| Encoding {
            stand_in: it.stand_in || (for_av && it.codec.spec().is_external),
            ..it
        };
        self.own_encodings().into_iter().map(replaced).collect()
    }

    fn own_encodings(&self) -> Vec<Encoding> {
        if self.ladder.is_empty() {
            let plain = Encoding::new(self.codec, self.packet);
            return vec![Encoding { opus: self.opus, red: self.red, ..plain }];
        }
        let whole = |codec: &Codec| {
            let step = codec.spec().step;
            let frames = self.packet.as_nanos().div_ceil(step.as_nanos()).max(1);
            match codec {
                Codec::Opus => {
                    let packet = opus::packet(self.packet);
                    Encoding { opus: self.opus, ..Encoding::new(*codec, packet) }
                }
                _ => Encoding::new(*codec, step * frames),
            }
        };
        self.ladder.iter().map(whole).collect()
    }

    /// Sets `stand_in` if a stand-in is heard.
    pub fn name_stand_in(&mut self) {
        if self.stand_in.is_none() && self.stand_ins().is_some() {
            self.stand_in = Some(StandIn::Opus);
        }
    }

    /// What is heard in place of its codecs without an encoder; `None` without such codecs or without a `file`.
    #[must_use]
    pub fn stand_ins(&self) -> Option<String> {
        let encodings = self.encodings();
        let named = encodings.iter().filter_map(|it| it.stand_in()).map(|it| it.to_string());
        let named = named.collect::<Vec<_>>().join("; ");
        (self.file.is_some() && !named.is_empty()).then_some(named)
    }
}
impl OnOff {
    talkspurt_proto::defaults! {
        default_on: Duration = Duration::from_millis(1004);
        default_off: Duration = Duration::from_millis(1587);
    }
}
