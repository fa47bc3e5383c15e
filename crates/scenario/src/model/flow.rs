//! The flows of a scenario: two peers, what carries their data, and how it is sent and played.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
pub use talkspurt_app::peer::Sizing;
pub use talkspurt_app::send_queue::{Config as SendQueue, Drop as SendDrop};
pub use talkspurt_app::source::Config as Source;
pub use talkspurt_app::transport::Config as Transport;
use talkspurt_app::{playout, quality, source};
use talkspurt_proto::rtcp;
use talkspurt_proto::time::Duration;

/// Two peers and what they send each other.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Flow {
    /// Node of the peer that opens the connection.
    pub from: String,
    /// Node of the peer that answers.
    pub to: String,
    /// What carries the data.
    pub transport: Transport,
    /// What the opening side sends.
    pub source: source::Config,
    /// What the answering side sends on the same connection.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reverse: Option<source::Config>,
    /// So many flows like this one, each with the rng of its own name: `call` becomes `call-1`,
    /// `call-2` and so on, and a `*` in the name of a node is its number: `from = "left-*"` begins
    /// the flows of a dumbbell each at a host of its own. Without `start_spread` they start within
    /// one packet interval of each other, which for bulk means together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub count: Option<u32>,
    /// The name of the `count` this flow is one of; written by the expansion, for tables and reports
    /// to have them together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// When the connection is opened; before the end of the run.
    #[serde(default)]
    pub start: Duration,
    /// Seeded random time below this is added to the start. Absent: one packet interval for
    /// sources with a clock of their own (equal clocks started together mislead), none for bulk.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_spread: Option<Duration>,
    /// When the sources stop, after the start; absent, or later than the run, means its end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop: Option<Duration>,
    /// Frames that wait for the transport.
    #[serde(default)]
    pub send_queue: SendQueue,
    /// How speech is played at the far end.
    #[serde(default)]
    pub playout: playout::Config,
    /// Parameters of the E-model for this flow's opinion score.
    #[serde(default)]
    pub quality: quality::Config,
    /// The reports beside speech (RFC 3550 §6).
    #[serde(default)]
    pub rtcp: rtcp::Config,
    /// IP version of the flow's packets.
    #[serde(default)]
    pub ip: IpVersion,
    /// Differentiated services code point (RFC 2474 §3), 0 to 63.
    #[serde(default)]
    #[schemars(range(min = 0, max = 63))]
    pub dscp: u8,
    /// How packet lengths are counted.
    #[serde(default)]
    pub sizing: Sizing,
    /// Nodes passed on the way, first and last included, each joined to the next by a link; the way
    /// back is the same turned round. Absent means the shortest path in each direction: least
    /// propagation delay, then fewest links, then the links that stand first in the file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub via: Option<Vec<String>>,
    /// Several ways between the two ends, each written as in `via`, for an association of several
    /// paths (`sctp`): the first is the primary path, where data goes while it is sound. Each end has
    /// an address for each path, and hears of an outage of its own link at once.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(min = 1))]
    pub paths: Vec<Vec<String>>,
}

/// IP version.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum IpVersion {
    /// IPv4, header of 20 bytes (RFC 791 §3.1).
    #[default]
    V4,
    /// IPv6, header of 40 bytes (RFC 8200 §3).
    V6,
}

impl From<IpVersion> for talkspurt_proto::packet::IpVersion {
    fn from(version: IpVersion) -> Self {
        match version {
            IpVersion::V4 => Self::V4,
            IpVersion::V6 => Self::V6,
        }
    }
}
