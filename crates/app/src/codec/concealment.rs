//! Concealment of missing frames.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use talkspurt_proto::time::Duration;

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
}

impl Concealment {
    /// Delay it adds: G.711 Appendix I delays its output by 3.75 ms (30 samples) to blend into the start of a
    /// gap (§I.2).
    #[must_use]
    pub const fn delay(self) -> Duration {
        match self {
            Self::Silence => Duration::ZERO,
            Self::G711AppendixI => Duration::from_micros(3750),
        }
    }
}
