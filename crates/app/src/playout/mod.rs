//! What the listener hears: the fixed jitter buffer decides when each frame is played and which
//! come too late ([`Buffer`]); the renderer turns the frames that made it into sound ([`render()`]).

mod buffer;
mod render;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use talkspurt_proto::time::Duration;

pub use buffer::Buffer;
pub use render::{Heard, Received, render};

/// How received speech is played.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Time a frame waits beyond the anchor so that later ones may be later.
    #[serde(default = "Config::default_buffer")]
    pub buffer: Duration,
    /// What the buffer is counted from.
    #[serde(default)]
    pub anchor: Anchor,
    /// What is played in place of a missing frame.
    #[serde(default)]
    pub concealment: Concealment,
}

/// The instant playout is counted from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Anchor {
    /// Arrival of the first frame: what a receiver without a common clock does.
    #[default]
    FirstArrival,
    /// Capture of the frame's last sample by the sender's clock: `buffer` is then the whole delay
    /// from microphone to loudspeaker beyond packetisation (of a ladder's longest packet); needs
    /// synchronised clocks.
    Capture,
}

/// What fills a gap.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Concealment {
    /// Silence.
    #[serde(rename = "silence")]
    Silence,
    /// Pitch waveform replication (ITU-T G.711 Appendix I).
    #[default]
    #[serde(rename = "g711-appendix-i")]
    G711AppendixI,
}

impl Concealment {
    /// What it adds to the delay: G.711 Appendix I holds its output back by 3.75 ms (30 samples),
    /// so that the start of a gap can be blended into (§I.2).
    #[must_use]
    pub const fn delay(self) -> Duration {
        match self {
            Self::Silence => Duration::ZERO,
            Self::G711AppendixI => Duration::from_micros(3750),
        }
    }
}

impl Config {
    const fn default_buffer() -> Duration {
        Duration::from_millis(60)
    }
}
impl Default for Config {
    fn default() -> Self {
        Self {
            buffer: Self::default_buffer(),
            anchor: Anchor::default(),
            concealment: Concealment::default(),
        }
    }
}
