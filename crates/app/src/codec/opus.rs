//! Opus (RFC 6716, RFC 8251) by libopus, at 48 kHz with its RTP payload format (RFC 7587). G.113 Appendix I has
//! no impairment factor for it.

use std::fmt;

use bytes::Bytes;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use talkspurt_opus as libopus;
pub use talkspurt_opus::{Application, Bandwidth, RateControl};
use talkspurt_proto::time::Duration;
use talkspurt_proto::units::Rate;
use talkspurt_proto::validate::{ConfigError, ConfigErrors, Validate};

use super::encoded;
use super::g711::MU_LAW;
use super::{Bpl, Decoder, Encoder, Encoding, Redundancy, Sound, Spec};

pub(super) const SPEC: Spec = Spec {
    name: "Opus",
    sample_rate: libopus::SAMPLE_RATE as u32,
    // RFC 7587 §4.1: whatever the bandwidth.
    rtp_clock: 48_000,
    // A dynamic type, the one that browsers use.
    payload_type: 111,
    frame: SHORTEST,
    frame_bytes: 10,
    variable_rate: true,
    step: SHORTEST,
    look_ahead: Duration::from_micros(6500),
    ie: None,
    bpl: Bpl::Decoder(None),
    sound: Some(Sound {
        encoder: |encoding| Box::new(Sender::new(encoding)),
        decoder: |encoding| Box::new(Receiver::new(encoding)),
        stateless: false,
    }),
    ..MU_LAW
};

const SHORTEST: Duration = Duration::from_micros(2500);
/// Packet durations (RFC 6716 §2.1.4; libopus joins frames of 20 ms for 80 ms and more).
const PACKETS: [Duration; 9] = [
    SHORTEST,
    Duration::from_millis(5),
    Duration::from_millis(10),
    Duration::from_millis(20),
    Duration::from_millis(40),
    Duration::from_millis(60),
    Duration::from_millis(80),
    Duration::from_millis(100),
    Duration::from_millis(120),
];
/// RFC 6716 §2.1.1.
const RATES: std::ops::RangeInclusive<u64> = 6_000..=510_000;
/// Greatest depth of the deep redundancy that libopus encodes.
const DEEPEST: Duration = Duration::from_millis(1040);
/// The least effort of the decoder with which a neural network conceals gaps.
pub(crate) const DEEP: u8 = 5;
/// Shorter packets than this contain no sound.
const LEAST_BYTES: usize = 3;

/// Parameters of Opus. With `vbr`, `cvbr`, `dtx`, `fec` or `dred`, the packets of a recording depend on
/// floating-point arithmetic, and results may differ between machines.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// 6 to 510 kbit/s of payload; over a transport that requests rates, the highest rate.
    pub bitrate: Rate,
    /// Largest bandwidth. The encoder selects a lower one at low rates.
    pub max_bandwidth: Bandwidth,
    /// What the encoder is optimised for.
    pub application: Application,
    /// How the length of packets follows the sound. Browsers use `vbr`.
    pub rate_control: RateControl,
    /// Channels: 1, or 2 to encode and hear a recording in stereo (RFC 7587 §6.1 `stereo`).
    pub channels: u8,
    /// Effort of the encoder, 0 to 10.
    pub complexity: u8,
    /// Discontinuous transmission: no packets in silence, except for one of comfort noise at its beginning and
    /// every 400 ms (RFC 7587 §6.1 `usedtx`). Only with a `file`.
    pub dtx: bool,
    /// In-band FEC: each packet repeats the speech before it at a lower rate (RFC 6716 §2.1.7), within
    /// `bitrate`, as far as the expected loss justifies it.
    pub fec: bool,
    /// Depth of the deep redundancy (DRED): each packet repeats up to this much of the speech before it at a
    /// very low rate, within `bitrate`, as far as the expected loss justifies it. 0s to 1.04s in steps of 10
    /// ms.
    pub dred: Duration,
    /// Share of packets that the encoder expects to be lost, 0 to 1. Absent: the average of the fractions lost
    /// in the receiver's RTCP reports over about 10 s, as in libwebrtc; 0 before the first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expected_loss: Option<f64>,
    /// Effort of the decoder, 0 to 10. From 5 on a neural network conceals gaps (deep PLC), from 6 on others
    /// also enhance speech of low rates.
    pub decoder_complexity: u8,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            bitrate: Rate::from_bps(32_000),
            max_bandwidth: Bandwidth::default(),
            application: Application::default(),
            rate_control: RateControl::default(),
            channels: 1,
            complexity: 9,
            dtx: false,
            fec: false,
            dred: Duration::ZERO,
            expected_loss: None,
            decoder_complexity: 0,
        }
    }
}

impl Config {
    /// Payload bytes per packet at constant rate, rounded as libopus does.
    #[must_use]
    pub(super) fn bytes(&self, packet: Duration) -> usize {
        Self::bytes_at(self.bitrate, packet)
    }

    fn bytes_at(rate: Rate, packet: Duration) -> usize {
        let nanobytes = u128::from(rate.as_bps()) * u128::from(packet.as_nanos()) / 8;
        ((nanobytes + 500_000_000) / 1_000_000_000) as usize
    }

    /// The lowest rate in packets of this duration.
    fn least(packet: Duration) -> Rate {
        let nanos = packet.as_nanos().max(1);
        let least = (LEAST_BYTES as u64 * 8_000_000_000).div_ceil(nanos);
        Rate::from_bps(least.max(*RATES.start()))
    }

    /// The rate that is used if congestion control requests `target` of payload.
    #[must_use]
    pub(super) fn rate(&self, target: Rate, packet: Duration) -> Rate {
        target.max(Self::least(packet)).min(self.bitrate)
    }

    /// See [`Encoding::look_ahead`].
    #[must_use]
    pub(super) fn look_ahead(&self) -> Duration {
        match self.application {
            Application::LowDelay => SHORTEST,
            _ => SPEC.look_ahead,
        }
    }

    /// Maximum distance in packets from a lost packet to one with redundancy for it.
    fn redundancy(&self, packet: Duration) -> u32 {
        let deep = self.dred.as_nanos().div_ceil(packet.as_nanos().max(1)) as u32;
        deep.max(u32::from(self.fec))
    }

    /// True if the lengths of packets, or which of them have redundancy, depend on the sound, and so on
    /// floating-point arithmetic.
    #[must_use]
    pub fn varies(&self) -> bool {
        self.rate_control != RateControl::Constant || self.dtx || self.fec || !self.dred.is_zero()
    }

    /// True if the encoder takes its expected loss from the receiver's reports.
    #[must_use]
    pub fn needs_reports(&self) -> bool {
        (self.fec || !self.dred.is_zero()) && self.expected_loss.is_none()
    }

    /// Errors of these parameters with packets of this duration; the key of the packet is `packet`, the others
    /// are in the table `opus`.
    #[must_use]
    pub fn errors_with(&self, packet: Duration) -> Vec<ConfigError> {
        let mut errors: Vec<_> =
            self.errors().into_iter().map(|error| error.within("opus")).collect();
        if !PACKETS.contains(&packet) {
            let why = format!(
                "{packet} of speech is no packet of Opus: 2.5, 5, 10, 20, 40, 60, 80, 100 or 120 ms"
            );
            errors.push(ConfigError::new("packet", why).hint("20ms is usual"));
        } else if errors.is_empty() && self.bitrate < Self::least(packet) {
            let least = Self::least(packet);
            let why = format!(
                "{} in packets of {packet} are fewer than {LEAST_BYTES} bytes each, which {least} are",
                self.bitrate
            );
            errors.push(ConfigError::new("opus.bitrate", why));
        }
        errors
    }
}

/// What a build says of settings whose models it lacks.
pub const LACKING: &str =
    "this page is without the models of libopus: use the command, or the playground of a site";

impl Validate for Config {
    fn errors(&self) -> Vec<ConfigError> {
        let mut errors = ConfigErrors::default();
        if !RATES.contains(&self.bitrate.as_bps()) {
            errors.add("bitrate", format!("Opus has no {}: 6kbit/s to 510kbit/s", self.bitrate));
        }
        if !(1..=2).contains(&self.channels) {
            errors.add("channels", format!("{} channels; Opus has 1 or 2 here", self.channels));
        }
        let efforts =
            [("complexity", self.complexity), ("decoder_complexity", self.decoder_complexity)];
        for (key, effort) in efforts.into_iter().filter(|(_, effort)| *effort > 10) {
            errors.add(key, format!("{effort} is too much: 0 to 10"));
        }
        if !self.dred.is_zero() && !libopus::has_models() {
            errors.add("dred", LACKING);
        }
        if self.decoder_complexity >= DEEP && !libopus::has_models() {
            errors.add(
                "decoder_complexity",
                format!("{} is deep PLC: {LACKING}", self.decoder_complexity),
            );
        }
        let ten = Duration::from_millis(10).as_nanos();
        if self.dred > DEEPEST || !self.dred.as_nanos().is_multiple_of(ten) {
            errors.add("dred", format!("{} is no depth: 0s to 1.04s in steps of 10 ms", self.dred));
        }
        if let Some(loss) = self.expected_loss.filter(|loss| !(0.0..=1.0).contains(loss)) {
            errors.add("expected_loss", format!("{loss} is no share: 0 to 1"));
        }
        if self.application == Application::LowDelay {
            let names = [("fec", self.fec), ("dred", !self.dred.is_zero())];
            for (key, _) in names.into_iter().filter(|(_, used)| *used) {
                errors.add(key, "needs linear prediction, which `low-delay` switches off");
            }
        }
        errors.0
    }
}

/// The shortest packet that holds this much speech; the longest if none does.
#[must_use]
pub fn packet(least: Duration) -> Duration {
    PACKETS.into_iter().find(|packet| *packet >= least).unwrap_or(PACKETS[PACKETS.len() - 1])
}

/// The shares of packets with in-band FEC and with deep redundancy, if a recording is encoded.
#[must_use]
pub fn redundant_shares(encoding: &Encoding, pcm: &[i16]) -> (f64, f64) {
    let (mut encoder, mut decoder) = (Sender::new(encoding), Receiver::new(encoding));
    let (mut packets, mut near, mut deep) = (0_u32, 0_u32, 0_u32);
    for samples in pcm.chunks_exact(encoding.samples_for(encoding.packet).max(1)) {
        let payload = encoder.encode(samples, None);
        let found = decoder.redundancy_in(&payload);
        packets += u32::from(!payload.is_empty());
        near += u32::from(found.fec == Some(true));
        deep += u32::from(found.deep.is_some_and(|deep| !deep.is_zero()));
    }
    let share = |part: u32| f64::from(part) / f64::from(packets.max(1));
    (share(near), share(deep))
}

/// Percent of an expected loss, as libopus takes it.
#[must_use]
pub fn percent(loss: f64) -> u8 {
    (loss.clamp(0.0, 1.0) * 100.0).round() as u8
}

/// The same of a loss that reports tell: at least 1 %, with which libopus adds redundancy, unless fewer than
/// one packet in a thousand was lost. Reports round down to a multiple of 1/256 (RFC 3550 §6.4.1), so that 1 %
/// of loss is often told as 0.4 %.
#[must_use]
pub fn reported_percent(loss: f64) -> u8 {
    if loss < 0.001 { 0 } else { percent(loss).max(1) }
}

/// What libopus gets with a packet beside the speech.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Told {
    rate: Rate,
    /// Percent of expected loss.
    loss: u8,
}

impl encoded::Told for Told {
    fn number(&self) -> u128 {
        u128::from(self.rate.as_bps()) << 8 | u128::from(self.loss)
    }
}

static KNOWN: encoded::Known<Told> = encoded::Known::new();

struct Sender {
    encoding: Encoding,
    loss: u8,
    packets: encoded::Remembering<Told, Working>,
}

impl fmt::Debug for Sender {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sender").field("encoding", &self.encoding).finish_non_exhaustive()
    }
}

impl Sender {
    fn new(encoding: &Encoding) -> Self {
        Self {
            encoding: *encoding,
            loss: percent(encoding.opus.expected_loss.unwrap_or_default()),
            packets: encoded::Remembering::new(&KNOWN, &format!("{encoding:?}")),
        }
    }
}

impl Encoder for Sender {
    fn encode(&mut self, pcm: &[i16], target: Option<Rate>) -> Bytes {
        let Encoding { opus: config, packet, .. } = self.encoding;
        let rate = target.map_or(config.bitrate, |it| config.rate(it, packet));
        let told = Told { rate, loss: self.loss };
        self.packets.encode(pcm, told, || Working::new(&self.encoding))
    }

    fn set_expected_loss(&mut self, loss: f64) {
        if self.encoding.opus.expected_loss.is_none() {
            self.loss = reported_percent(loss);
        }
    }
}

/// The encoder itself.
struct Working {
    encoder: libopus::Encoder,
    config: Config,
    packet: Duration,
    told: Told,
    /// The previous packet was comfort noise.
    is_silent: bool,
}

impl Working {
    fn new(encoding: &Encoding) -> Self {
        let Encoding { opus: config, packet, .. } = *encoding;
        let told =
            Told { rate: config.bitrate, loss: percent(config.expected_loss.unwrap_or_default()) };
        let make = || -> Result<libopus::Encoder, libopus::Error> {
            let mut encoder = libopus::Encoder::new(config.channels, config.application)?;
            encoder.set_rate_control(config.rate_control)?;
            encoder.set_max_bandwidth(config.max_bandwidth)?;
            encoder.set_complexity(config.complexity)?;
            encoder.set_dtx(config.dtx)?;
            encoder.set_fec(config.fec)?;
            if !config.dred.is_zero() {
                encoder.set_dred((config.dred.as_nanos() / 10_000_000) as u8)?;
            }
            encoder.set_expected_loss(told.loss)?;
            encoder.set_bitrate(told.rate.as_bps() as u32)?;
            Ok(encoder)
        };
        let encoder = make().expect("the scenario's checks permit what libopus does");
        Self { encoder, config, packet, told, is_silent: false }
    }
}

impl encoded::Working<Told> for Working {
    fn encode(&mut self, pcm: &[i16], told: Told) -> Bytes {
        if told.rate != self.told.rate {
            let rate = told.rate.as_bps() as u32;
            self.encoder.set_bitrate(rate).expect("within the limits of Opus");
        }
        if told.loss != self.told.loss {
            self.encoder.set_expected_loss(told.loss).expect("a percentage");
        }
        self.told = told;
        let constant = Config::bytes_at(told.rate, self.packet);
        let is_constant = self.config.rate_control == RateControl::Constant;
        let most = if is_constant { constant } else { usize::MAX };
        let mut packet = self.encoder.encode(pcm, most).expect("a duration that Opus has");
        // DTX frames have one or two bytes. As in browsers, the first one of a silence is sent, which tells the
        // receiver to generate comfort noise.
        let was_silent = std::mem::replace(&mut self.is_silent, packet.len() < LEAST_BYTES);
        if self.is_silent && was_silent {
            packet.clear();
        } else if !self.is_silent && is_constant {
            libopus::pad(&mut packet, constant).expect("a packet of the encoder");
        }
        packet.into()
    }
}

#[derive(Debug)]
struct Receiver {
    decoder: libopus::Decoder,
    fec: bool,
    dred: bool,
    dtx: bool,
    redundancy: u32,
    /// Duration of a packet.
    length: Duration,
    /// Samples of a packet, and of the shortest frame, all channels.
    packet: usize,
    shortest: usize,
}

impl Receiver {
    fn new(encoding: &Encoding) -> Self {
        let config = encoding.opus;
        let decoder = libopus::Decoder::new(config.channels, config.decoder_complexity);
        Self {
            decoder: decoder.expect("the scenario's checks permit what libopus does"),
            fec: config.fec,
            dred: !config.dred.is_zero(),
            dtx: config.dtx,
            redundancy: config.redundancy(encoding.packet),
            length: encoding.packet,
            packet: encoding.samples_for(encoding.packet),
            shortest: libopus::SHORTEST * usize::from(config.channels),
        }
    }
}

impl Decoder for Receiver {
    fn decode(&mut self, payload: &[u8]) -> Vec<i16> {
        self.decoder.decode(payload).unwrap_or_default()
    }

    fn redundancy(&self) -> u32 {
        self.redundancy
    }

    fn redundancy_in(&mut self, payload: &[u8]) -> Redundancy {
        let near = self.fec && libopus::has_fec(payload).is_ok_and(|has| has);
        let covered = if self.dred { self.decoder.dred_samples(payload).unwrap_or(0) } else { 0 };
        let deep = ((covered / self.packet.max(1)) as u32).min(self.redundancy);
        let whole = self.length * u64::from(deep);
        Redundancy {
            packets: deep.max(u32::from(near)),
            fec: self.fec.then_some(near),
            deep: self.dred.then_some(whole),
        }
    }

    fn recover(&mut self, later: &[u8], ahead: u32, samples: usize) -> Option<Vec<i16>> {
        let fec = || self.decoder.recover(later, samples).ok().flatten();
        let near = (self.fec && ahead == 1).then(fec).flatten();
        near.or_else(|| {
            let ahead = self.packet * ahead as usize;
            let deep = || self.decoder.redeem(later, ahead, samples).ok().flatten();
            self.dred.then(deep).flatten()
        })
    }

    fn pause(&mut self, samples: usize) -> Option<Vec<i16>> {
        // After a packet of discontinuous transmission, what libopus generates is comfort noise.
        if self.dtx { self.conceal(samples) } else { None }
    }

    fn conceal(&mut self, samples: usize) -> Option<Vec<i16>> {
        // libopus conceals whole short frames; what is more than needed is cut off.
        let whole = samples.next_multiple_of(self.shortest);
        let longest = self.shortest * (libopus::LONGEST / libopus::SHORTEST);
        let mut sound = Vec::with_capacity(whole);
        while sound.len() < whole {
            sound.extend(self.decoder.conceal((whole - sound.len()).min(longest)).ok()?);
        }
        Some(sound)
    }
}
