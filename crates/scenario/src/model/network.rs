//! The network of a scenario: nodes, links in both directions and outages; queues stand in `queue`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use talkspurt_proto::time::Duration;
use talkspurt_proto::units::{Rate, Size};

use super::queue::Queue;

/// A host or router.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Node {
    /// IP addresses, IPv4 or IPv6, for captures; absent ones are given from 10.0.0.0/8 and
    /// fd00::/8 in the order of the nodes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub addresses: Vec<std::net::IpAddr>,
    /// How far the node's clock is ahead of true time at the start; at most 24h.
    #[serde(default)]
    pub clock_offset: Duration,
    /// How much faster than true time the clock runs, in parts per million; may be negative.
    #[serde(default)]
    #[schemars(range(min = -10_000.0, max = 10_000.0))]
    pub clock_drift_ppm: f64,
}

/// A link: a queue, a transmitter and a medium, in each direction.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Link {
    /// Node at one end; it comes into being by being named.
    pub from: String,
    /// Node at the other end.
    pub to: String,
    /// Bits the transmitter sends per second, link framing included; above zero, and high enough
    /// to send one packet of `mtu` within the run.
    pub rate: Rate,
    /// Propagation delay, at most 1h.
    pub delay: Duration,
    /// Bound of a further delay, uniform from zero and drawn for each packet, at most 1h. Order is
    /// kept: who would overtake arrives with the one before. On an access link it stands for the
    /// host's processing time, ns-2's `overhead_`; as much as a packet takes at the bottleneck undoes
    /// the phase effects of DropTail (Floyd and Jacobson 1992).
    #[serde(default)]
    pub jitter: Duration,
    /// What waits for the transmitter.
    pub queue: Queue,
    /// Bytes added to each IP packet on this link.
    #[serde(default)]
    pub framing: Framing,
    /// Longest IP packet the link takes; a longer one is dropped and answered with Packet Too Big
    /// (RFC 1191 §4, RFC 8201 §4). 68B (RFC 791 §3.2) to 65535B; where IPv6 flows pass, at least
    /// 1280B (RFC 8200 §5).
    #[serde(default = "Link::default_mtu")]
    pub mtu: Size,
    /// Probability that a packet is lost on the medium, 0 to 1.
    #[serde(default)]
    #[schemars(range(min = 0.0, max = 1.0))]
    pub loss: f64,
    /// Outages and returns, in order of time; links are up at the start.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub events: Vec<LinkEvent>,
    /// What differs in the direction from `to` to `from`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub back: Option<Back>,
}

/// The reverse direction of a link, where it differs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Back {
    /// Bits the transmitter sends per second; absent means as forward.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<Rate>,
    /// Propagation delay; absent means as forward.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delay: Option<Duration>,
    /// Bound of the further delay; absent means as forward.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jitter: Option<Duration>,
    /// What waits for the transmitter; absent means a queue of its own, as forward.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue: Option<Queue>,
    /// Probability that a packet is lost on the medium, 0 to 1; absent means as forward.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0.0, max = 1.0))]
    pub loss: Option<f64>,
}

/// What a link adds to every IP packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Framing {
    /// Nothing: rates are rates of IP bytes.
    #[default]
    None,
    /// Ethernet: preamble 8, header 14, padding to 46, FCS 4, gap 12 (IEEE 802.3 §3, §4A).
    Ethernet,
    /// PPP in HDLC-like framing: flag 1, address 1, control 1, protocol 2, FCS 2 (RFC 1662 §3.1).
    Ppp,
}

/// An outage begins or ends.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LinkEvent {
    /// When, within the run.
    pub at: Duration,
    /// What happens, in both directions. Packets on the medium or arriving while down are lost;
    /// packets in the queue wait.
    pub state: LinkState,
}

/// Whether a link works.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LinkState {
    /// Nothing passes.
    Down,
    /// It works.
    Up,
}

impl Link {
    const fn default_mtu() -> Size {
        Size::from_bytes(1500)
    }
}
