//! Speech codecs a flow can name, and what G.113 says of their impairment.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A speech codec.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Codec {
    /// ITU-T G.711 µ-law, 64 kbit/s at 8 kHz, RTP payload type 0.
    Pcmu,
    /// ITU-T G.711 A-law, 64 kbit/s at 8 kHz, RTP payload type 8.
    Pcma,
}
