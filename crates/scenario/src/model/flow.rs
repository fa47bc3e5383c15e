//! The flows of a scenario: two peers, their transport, sources and playout.

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Serialize};
pub use talkspurt_app::peer::Sizing;
pub use talkspurt_app::send_queue::{Config as SendQueue, Drop as SendDrop};
pub use talkspurt_app::source::Config as Source;
pub use talkspurt_app::transport::Config as Transport;
use talkspurt_app::{playout, quality, source};
use talkspurt_proto::time::Duration;
use talkspurt_proto::{media, rtcp};

/// Two peers and the data they exchange.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Flow {
    /// Node of the peer that opens the connection.
    pub from: String,
    /// Node of the peer that answers.
    pub to: String,
    /// Transport protocol.
    pub transport: Transport,
    /// Data sent by the opening side.
    pub source: source::Config,
    /// Data sent by the answering side on the same connection; absent means none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "like_source")]
    pub reverse: Option<source::Config>,
    /// Number of flows like this one, each with the random streams of its own name: `call` becomes
    /// `call-1`, `call-2` and so on. A `*` in a node name is replaced by the number: with
    /// `from = "left-*"` each flow begins at its own host of a dumbbell. Without `start_spread` they
    /// start within one packet interval of each other; bulk flows start together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub count: Option<u32>,
    /// Name of the group that this flow belongs to, for grouping in tables and reports; members that
    /// `count` creates have the name of their flow. A flow named like such a member, with the name of
    /// that flow here, replaces the member: `[flows.call-17]` with `group = "call"`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// Time at which the connection is opened; before the end of the run.
    #[serde(default)]
    pub start: Duration,
    /// Upper bound of a seeded random time added to the start. Absent: one packet interval for sources
    /// with their own clock, as synchronous starts are misleading, and none for bulk.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_spread: Option<Duration>,
    /// Time at which the sources stop, after the start; absent, or later than the run, means its end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop: Option<Duration>,
    /// Queue of frames that wait for the transport.
    #[serde(default)]
    pub send_queue: SendQueue,
    /// Playout of speech at the far end.
    #[serde(default)]
    pub playout: playout::Config,
    /// Congestion control of the RTP session, which paces its packets and asks sources for a rate: Opus, a
    /// `ladder`, or video with an `encoder`. It adds feedback in RTCP. A transport with control of its own
    /// keeps it, as the inner of the two. Absent: the sources send as they like, and over UDP nothing stops
    /// them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub controller: Option<media::Config>,
    /// Name of the flow whose RTP session this one shares: one controller, one pacer and one feedback for both,
    /// as WebRTC has for the audio and video of a call (RFC 9143, BUNDLE). Both have the same ends and
    /// protocol, and the `controller` is that flow's. Speech is never held back by the pacer, and takes its
    /// rate before video. The packets of each flow keep ports of their own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// Name of a flow from the same node whose session is coupled with this one's: both share the sum of their
    /// rates by `priority` (RFC 8699 §5.3.1, "Active FSE"), as if they knew of their common bottleneck. For
    /// controllers that can be coupled: `nada` (§6.1).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub coupled: Option<String>,
    /// Weight against the other flows of its session, among those whose rate has no limit of its own; and of
    /// the session against those with which it is `coupled`.
    #[serde(default = "one")]
    #[schemars(range(min = 0.01, max = 100.0))]
    pub priority: f64,
    /// Parameters of the E-model for this flow's opinion score.
    #[serde(default)]
    pub quality: quality::Config,
    /// RTCP reports sent with speech (RFC 3550 §6).
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
    /// Nodes on the path, including both ends, each joined to the next by a link; the reverse path is
    /// the same. Absent means the shortest path in each direction: least propagation delay, then fewest
    /// links, then the first in file order.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub via: Option<Vec<String>>,
    /// Paths between the two ends, each written as in `via`, for a multihomed association (`sctp`). The
    /// first is the primary path, used for data while it is up. Each end has one address per path and
    /// detects an outage of its own link at once.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(min = 1))]
    pub paths: Vec<Vec<String>>,
}

/// Where the schema of sources is, which is long.
pub(super) const SOURCE: &str = "#/properties/flows/additionalProperties/properties/source";

fn like_source(_: &mut SchemaGenerator) -> Schema {
    Schema::new_ref(SOURCE.to_owned())
}

impl Flow {
    /// The transport's name in tables, with the controller's: `udp+nada`.
    #[must_use]
    pub fn carrier(&self) -> String {
        match &self.controller {
            None => self.transport.name(),
            Some(controller) => format!("{}+{}", self.transport.name(), controller.name()),
        }
    }

    /// The flow whose association or session it shares, or with which it is coupled.
    #[must_use]
    pub fn within(&self) -> Option<&str> {
        self.transport.association().or(self.session.as_deref()).or(self.coupled.as_deref())
    }

    /// Number of flows that this one stands for.
    #[must_use]
    pub fn members(&self) -> usize {
        self.count.map_or(1, |count| count as usize)
    }
}

const fn one() -> f64 {
    1.0
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
