//! The flows of a scenario: two peers, what carries their data, and how it is sent and played.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use talkspurt_app::{playout, quality, source};
use talkspurt_proto::time::Duration;
use talkspurt_proto::{tcp, udp};

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
    /// When the connection is opened; before the end of the run.
    #[serde(default)]
    pub start: Duration,
    /// Seeded random time below this is added to the start. Absent: one packet interval for
    /// sources with a clock of their own (equal clocks started together mislead), none for bulk.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_spread: Option<Duration>,
    /// When the sources stop, after the start and within the run; absent means the end of the run.
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
}

/// What carries a flow.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Transport {
    /// User Datagram Protocol (RFC 768).
    Udp(udp::Config),
    /// Transmission Control Protocol (RFC 9293); media is framed as in RFC 4571.
    Tcp(tcp::Config),
}

/// Frames that wait because the transport has no room.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SendQueue {
    /// How many may wait.
    #[serde(default = "SendQueue::default_packets")]
    pub packets: u32,
    /// Which goes when they are too many.
    #[serde(default)]
    pub drop: SendDrop,
}

/// Which frame a full send queue drops.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SendDrop {
    /// The one that came last.
    #[default]
    Newest,
    /// The one that waited longest.
    Oldest,
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

/// How packet lengths are counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Sizing {
    /// Every header at its length in the RFCs.
    #[default]
    Rfc,
    /// As ns-2 counts: a UDP packet is its payload, a TCP segment its payload and 40 bytes.
    Ns2,
}

impl SendQueue {
    const fn default_packets() -> u32 {
        50
    }
}
impl Default for SendQueue {
    fn default() -> Self {
        Self { packets: Self::default_packets(), drop: SendDrop::default() }
    }
}
