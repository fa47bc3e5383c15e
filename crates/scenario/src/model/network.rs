//! The network of a scenario: nodes, links in both directions and outages; queues are in `queue`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use talkspurt_proto::time::Duration;
use talkspurt_proto::units::{Rate, Size};

use super::Queue;
use super::medium::{GilbertElliott, Orbit, Step, Trace};

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
    /// Colour of the node in pictures: `#` and six hexadecimal digits, as in HTML. Absent means that
    /// of the page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String", regex(pattern = "^#[0-9A-Fa-f]{6}$"))]
    pub colour: Option<String>,
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
    /// to send one packet of `mtu` within the run. May be left out where a `trace` gives it: then it is the
    /// trace's mean, or the first rate of its table, by which use and queues are reckoned.
    pub rate: Rate,
    /// Propagation delay, at most 1h.
    pub delay: Duration,
    /// Bound of a further delay, uniform from zero and drawn for each packet, at most 1h. Without
    /// `reorder` order is kept: who would overtake arrives with the one before. On an access link
    /// it represents the host's processing time, ns-2's `overhead_`; as much as a packet takes at
    /// the bottleneck undoes the phase effects of DropTail (Floyd and Jacobson 1992).
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
    /// Loss in bursts, in place of `loss`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gilbert_elliott: Option<GilbertElliott>,
    /// Probability that a bit is received wrongly, 0 to 1. A packet of n bytes, framing included,
    /// survives with (1 − b)^(8n): link layers throw away frames whose check fails.
    #[serde(default)]
    #[schemars(range(min = 0.0, max = 1.0))]
    pub bit_error_rate: f64,
    /// Probability that a packet which survives the medium arrives twice, 0 to 1. The copy's jitter is
    /// drawn for itself; the flow's account and the packet table know only the first.
    #[serde(default)]
    #[schemars(range(min = 0.0, max = 1.0))]
    pub duplicate: f64,
    /// Whether a packet may overtake another, by less jitter or a shorter delay.
    #[serde(default)]
    pub reorder: bool,
    /// Changes of rate, delay and loss, in order of time.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub steps: Vec<Step>,
    /// Changes read from a file, in place of `steps`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace: Option<Trace>,
    /// A satellite on the way, in place of `steps` and `trace`: what it adds to the delay holds in both
    /// directions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub orbit: Option<Orbit>,
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
    /// Loss in bursts; absent means as forward, unless `loss` is given here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gilbert_elliott: Option<GilbertElliott>,
    /// Probability that a bit is received wrongly, 0 to 1; absent means as forward.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0.0, max = 1.0))]
    pub bit_error_rate: Option<f64>,
    /// Probability that a packet arrives twice, 0 to 1; absent means as forward.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0.0, max = 1.0))]
    pub duplicate: Option<f64>,
    /// Whether a packet may overtake another; absent means as forward.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reorder: Option<bool>,
    /// Changes of rate, delay and loss. If none of these, nor `gilbert_elliott`, `steps` or `trace`,
    /// is given here, the steps or trace of the forward direction hold in this one too; an empty list
    /// means none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub steps: Option<Vec<Step>>,
    /// Changes read from a file, in place of `steps`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace: Option<Trace>,
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
    /// IP over ATM, multiplexed by virtual circuit: in cells of 53 bytes that carry 48, the last with
    /// the 8 bytes of AAL5's trailer (ITU-T I.363.5), without encapsulation (RFC 2684 §6.1). The
    /// following kinds are cells too, with so many bytes before each packet.
    AtmIpoaVcmux,
    /// IP over ATM with LLC and SNAP: 8 (RFC 2684 §5.1).
    AtmIpoaLlc,
    /// Bridged Ethernet by virtual circuit: pad 2, header 14 (RFC 2684 §6.2, without FCS).
    AtmBridgedVcmux,
    /// Bridged Ethernet with LLC: LLC and SNAP 8, pad 2, header 14 (RFC 2684 §5.2, without FCS).
    AtmBridgedLlc,
    /// PPP over ATM by virtual circuit: protocol 2 (RFC 2364 §4).
    AtmPppoaVcmux,
    /// PPP over ATM with LLC: LLC and NLPID 4, protocol 2 (RFC 2364 §5).
    AtmPppoaLlc,
    /// PPP over Ethernet, bridged by virtual circuit: 16, PPPoE header 6, protocol 2 (RFC 2516 §4).
    AtmPppoeVcmux,
    /// PPP over Ethernet, bridged with LLC: 24, PPPoE header 6, protocol 2; the usual DSL line.
    AtmPppoeLlc,
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
    /// A link with defaults for all optional fields.
    #[must_use]
    pub fn plain(from: &str, to: &str, rate: Rate, delay: Duration, queue: Queue) -> Self {
        Self {
            from: from.to_owned(),
            to: to.to_owned(),
            rate,
            delay,
            jitter: Duration::ZERO,
            queue,
            framing: Framing::None,
            mtu: Self::default_mtu(),
            loss: 0.0,
            gilbert_elliott: None,
            bit_error_rate: 0.0,
            duplicate: 0.0,
            reorder: false,
            steps: Vec::new(),
            trace: None,
            orbit: None,
            events: Vec::new(),
            back: None,
        }
    }
    const fn default_mtu() -> Size {
        Size::from_bytes(1500)
    }
}
