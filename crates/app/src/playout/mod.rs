//! Playout: a jitter buffer decides when each frame is played and which are late ([`Buffer`]); the renderer
//! turns the played frames into sound ([`render()`], or [`Live`] for a sound device).

mod adaptive;
mod buffer;
mod delays;
mod fixed;
mod live;
mod losses;
mod mix;
mod neteq;
mod pauses;
mod render;
mod talkspurt;
mod timeline;
mod timescale;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use talkspurt_proto::time::Duration;
use talkspurt_proto::validate::{ConfigError, ConfigErrors, Validate};

pub use crate::codec::Concealment;
pub use buffer::{Buffer, Decision, Frame};
pub use live::Live;
pub use mix::Heard;
pub use render::{Received, Spoken, render};
pub use timeline::Stretch;

/// How received speech is played.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// The jitter buffer; without it `fixed` if `buffer` or `anchor` is given, and `adaptive` otherwise.
    pub kind: Option<Kind>,
    /// With `fixed`: time a frame waits beyond the anchor, to absorb the delay of later ones; without it 60 ms.
    pub buffer: Option<Duration>,
    /// With `fixed`: reference instant of the buffer.
    pub anchor: Option<Anchor>,
    /// With `adaptive`: how it decides; without it `talkspurt`.
    pub profile: Option<Profile>,
    /// With `adaptive`: share of packets (of the slowest in each half second) that are to arrive in time, above
    /// 0 and below 1; without it 0.9, or 0.95 with `profile = "libwebrtc"`.
    #[schemars(range(min = 0, max = 1))]
    pub quantile: Option<f64>,
    /// With `adaptive`: delay beyond the fastest packet's at the beginning; without it 80 ms.
    pub initial_delay: Option<Duration>,
    /// With `adaptive`: minimum of the target delay beyond the fastest packet's; without it 20 ms, or 0 with
    /// `profile = "libwebrtc"`.
    pub min_delay: Option<Duration>,
    /// With `adaptive`: maximum of the target delay beyond the fastest packet's; without it 2 s.
    pub max_delay: Option<Duration>,
    /// With `profile = "talkspurt"`, of a stream with redundancy (RED, FEC, DRED): delay that is added to the
    /// target so that lost packets can be recovered from later ones; without it as much as pays by the
    /// E-model's terms for delay and loss, from the losses so far.
    pub recovery_wait: Option<Duration>,
    /// Concealment of missing frames.
    #[serde(default)]
    pub concealment: Concealment,
}

/// A kind of jitter buffer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// One delay for the whole call.
    Fixed,
    /// The delay changes between talkspurts (Ramjee et al. 1994, algorithm 4).
    Talkspurt,
    /// The delay follows the network: speech is played faster and slower, as by the jitter buffer of WebRTC.
    #[default]
    Adaptive,
}

/// How an adaptive jitter buffer decides.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Profile {
    /// Recurring peaks raise the delay, and what a long pause has stood for is skipped: what a good receiver
    /// can make of the network.
    #[default]
    Talkspurt,
    /// As NetEq, the jitter buffer of libwebrtc, which Chromium and most programs for calls contain.
    Libwebrtc,
}

/// Reference instant of playout.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Anchor {
    /// Arrival of the first frame, as in a receiver without a common clock.
    #[default]
    FirstArrival,
    /// Capture of the frame's last sample by the sender's clock: `buffer` is then the whole delay from
    /// microphone to loudspeaker beyond packetisation (of a ladder's longest packet); requires synchronised
    /// clocks.
    Capture,
}

/// Longest plausible buffer.
const LONGEST: Duration = Duration::from_secs(60);

impl Config {
    /// A fixed buffer of this length from the first arrival.
    #[must_use]
    pub fn fixed(buffer: Duration) -> Self {
        Self { buffer: Some(buffer), ..Self::default() }
    }
    /// The same with the kind and the keys of this kind written out.
    #[must_use]
    pub fn with_defaults(self) -> Self {
        let (kind, concealment) = (self.kind(), self.concealment);
        let plain = Self { kind: Some(kind), concealment, ..Self::default() };
        match kind {
            Kind::Fixed => Self {
                buffer: Some(self.buffer()),
                anchor: Some(self.anchor.unwrap_or_default()),
                ..plain
            },
            Kind::Talkspurt => plain,
            Kind::Adaptive => Self {
                profile: Some(self.profile()),
                quantile: Some(self.quantile()),
                initial_delay: Some(self.initial_delay()),
                min_delay: Some(self.min_delay()),
                max_delay: Some(self.max_delay()),
                recovery_wait: self.recovery_wait,
                ..plain
            },
        }
    }
    /// The kind of jitter buffer.
    #[must_use]
    pub fn kind(&self) -> Kind {
        let fixed = self.buffer.is_some() || self.anchor.is_some();
        self.kind.unwrap_or(if fixed { Kind::Fixed } else { Kind::Adaptive })
    }
    /// Length of a fixed buffer.
    #[must_use]
    pub fn buffer(&self) -> Duration {
        self.buffer.unwrap_or(Duration::from_millis(60))
    }
    /// How an adaptive buffer decides.
    #[must_use]
    pub fn profile(&self) -> Profile {
        self.profile.unwrap_or_default()
    }
    pub(crate) fn quantile(&self) -> f64 {
        self.quantile.unwrap_or(match self.profile() {
            Profile::Talkspurt => 0.9,
            Profile::Libwebrtc => 0.95,
        })
    }
    pub(crate) fn initial_delay(&self) -> Duration {
        self.initial_delay.unwrap_or(Duration::from_millis(80))
    }
    pub(crate) fn min_delay(&self) -> Duration {
        self.min_delay.unwrap_or(match self.profile() {
            Profile::Talkspurt => Duration::from_millis(20),
            Profile::Libwebrtc => Duration::ZERO,
        })
    }
    pub(crate) fn max_delay(&self) -> Duration {
        self.max_delay.unwrap_or(Duration::from_secs(2))
    }
}

impl Validate for Config {
    fn errors(&self) -> Vec<ConfigError> {
        let mut found = ConfigErrors::default();
        let kind = self.kind();
        let given = [
            ("buffer", self.buffer.is_some(), Kind::Fixed),
            ("anchor", self.anchor.is_some(), Kind::Fixed),
            ("profile", self.profile.is_some(), Kind::Adaptive),
            ("quantile", self.quantile.is_some(), Kind::Adaptive),
            ("initial_delay", self.initial_delay.is_some(), Kind::Adaptive),
            ("min_delay", self.min_delay.is_some(), Kind::Adaptive),
            ("max_delay", self.max_delay.is_some(), Kind::Adaptive),
            ("recovery_wait", self.recovery_wait.is_some(), Kind::Adaptive),
        ];
        for (key, _, of) in given.into_iter().filter(|(_, given, of)| *given && *of != kind) {
            let name = |kind| match kind {
                Kind::Fixed => "fixed",
                Kind::Talkspurt => "talkspurt",
                Kind::Adaptive => "adaptive",
            };
            let (of, kind) = (name(of), name(kind));
            let why = format!(
                "only for kind = \"{of}\", and this buffer is {kind} (to replace the whole buffer, set \
                 playout = {{ kind = \"{kind}\" }})"
            );
            found.add(key, why);
        }
        for (key, length) in [
            ("buffer", self.buffer),
            ("initial_delay", self.initial_delay),
            ("min_delay", self.min_delay),
            ("max_delay", self.max_delay),
            ("recovery_wait", self.recovery_wait),
        ] {
            length.into_iter().for_each(|length| found.at_most(key, length, LONGEST));
        }
        if self.quantile.is_some_and(|quantile| !(quantile > 0.0 && quantile < 1.0)) {
            found.add("quantile", "must be above 0 and below 1");
        }
        if self.profile() == Profile::Libwebrtc && self.recovery_wait.is_some() {
            found.add("recovery_wait", "only for profile = \"talkspurt\"");
        }
        if self.min_delay() > self.max_delay() {
            let why = format!("{} is above max_delay ({})", self.min_delay(), self.max_delay());
            found.add("min_delay", why);
        }
        found.0
    }
}
