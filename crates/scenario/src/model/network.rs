//! The network of a scenario: nodes, links in both directions and outages; queues are in `queue`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use talkspurt_proto::time::Duration;
use talkspurt_proto::units::{Rate, Size};

use super::Queue;
use super::medium::{GilbertElliott, Orbit, Step, Trace};

/// A host or router.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Node {
    /// IPv4 and IPv6 addresses, for captures; missing ones are assigned from 10.0.0.0/8 and fd00::/8 in
    /// the order of the nodes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub addresses: Vec<std::net::IpAddr>,
    /// How far the node's clock is ahead of true time at the start; at most 24h.
    pub clock_offset: Duration,
    /// How much faster than true time the clock runs, in parts per million; may be negative.
    #[schemars(range(min = -10_000.0, max = 10_000.0))]
    pub clock_drift_ppm: f64,
    /// Colour of the node in pictures: `#` and six hexadecimal digits, as in HTML. Absent means the
    /// page's default.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String", regex(pattern = "^#[0-9A-Fa-f]{6}$"))]
    pub colour: Option<String>,
}

/// A link: a queue, a transmitter and a medium, in each direction.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Link {
    /// Node at one end; created if `nodes` does not list it.
    pub from: String,
    /// Node at the other end.
    pub to: String,
    /// Transmission rate, counting link framing; above zero, and high enough to send one packet of
    /// `mtu` within the run. Optional if a `trace` provides it; utilisation and queues then use the
    /// trace's mean rate, or the first rate of its table.
    pub rate: Rate,
    /// Propagation delay, at most 1h.
    pub delay: Duration,
    /// Upper bound of an additional random delay, uniform from zero for each packet, at most 1h. Without
    /// `reorder`, packets stay in order: a packet that would overtake its predecessor arrives with it. On an
    /// access link, jitter models the host's processing time (ns-2 `overhead_`); a bound equal to a packet's
    /// transmission time at the bottleneck removes the phase effects of DropTail (Floyd and Jacobson 1992).
    #[serde(default)]
    pub jitter: Duration,
    /// Queue of the transmitter.
    pub queue: Queue,
    /// Bytes added to each IP packet on this link.
    #[serde(default)]
    pub framing: Framing,
    /// Longest IP packet the link accepts; longer ones are dropped and answered with Packet Too Big (RFC 1191
    /// §4, RFC 8201 §4). 68B (RFC 791 §3.2) to 65535B; at least 1280B on paths of IPv6 flows (RFC 8200 §5).
    #[serde(default = "Link::default_mtu")]
    pub mtu: Size,
    /// Probability that a packet is lost on the medium, 0 to 1.
    #[serde(default)]
    #[schemars(range(min = 0.0, max = 1.0))]
    pub loss: f64,
    /// Burst loss, instead of `loss`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gilbert_elliott: Option<GilbertElliott>,
    /// Probability of a bit error, 0 to 1. A packet of n bytes, including framing, survives with
    /// probability (1 − b)^(8n), as link layers discard frames with errors.
    #[serde(default)]
    #[schemars(range(min = 0.0, max = 1.0))]
    pub bit_error_rate: f64,
    /// Probability that a packet which survives the medium arrives twice, 0 to 1. The copy has
    /// independent jitter; flow statistics and the packet table count only the first copy.
    #[serde(default)]
    #[schemars(range(min = 0.0, max = 1.0))]
    pub duplicate: f64,
    /// Whether a packet may overtake another because of less jitter or a shorter delay.
    #[serde(default)]
    pub reorder: bool,
    /// Changes of rate, delay and loss, in order of time.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub steps: Vec<Step>,
    /// Changes of rate, delay and loss from a file, instead of `steps`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace: Option<Trace>,
    /// A satellite on the link, instead of `steps` and `trace`. It adds to the delay in both directions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub orbit: Option<Orbit>,
    /// Outages and recoveries, in order of time; links are up at the start.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub events: Vec<LinkEvent>,
    /// Settings of the reverse direction (`to` to `from`) that differ.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub back: Option<Back>,
}

/// The reverse direction of a link, where it differs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Back {
    /// Transmission rate; absent means as forward.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate: Option<Rate>,
    /// Propagation delay; absent means as forward.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delay: Option<Duration>,
    /// Upper bound of the random delay; absent means as forward.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub jitter: Option<Duration>,
    /// Queue of the transmitter; absent means a separate queue with the forward settings.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queue: Option<Queue>,
    /// Probability that a packet is lost on the medium, 0 to 1; absent means as forward.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0.0, max = 1.0))]
    pub loss: Option<f64>,
    /// Burst loss; absent means as forward, unless `loss` is given here.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gilbert_elliott: Option<GilbertElliott>,
    /// Probability of a bit error, 0 to 1; absent means as forward.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0.0, max = 1.0))]
    pub bit_error_rate: Option<f64>,
    /// Probability that a packet arrives twice, 0 to 1; absent means as forward.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0.0, max = 1.0))]
    pub duplicate: Option<f64>,
    /// Whether a packet may overtake another; absent means as forward.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reorder: Option<bool>,
    /// Changes of rate, delay and loss. The forward `steps` or `trace` also apply here unless this table sets a
    /// rate, delay, `loss`, `gilbert_elliott`, `steps` or `trace`; an empty list means no changes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub steps: Option<Vec<Step>>,
    /// Changes of rate, delay and loss from a file, instead of `steps`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trace: Option<Trace>,
}

/// Link framing: bytes added to each IP packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Framing {
    /// None: rates count IP bytes.
    #[default]
    None,
    /// Ethernet: preamble 8, header 14, padding to 46, FCS 4, gap 12 (IEEE 802.3 §3, §4A).
    Ethernet,
    /// PPP in HDLC-like framing: flag 1, address 1, control 1, protocol 2, FCS 2 (RFC 1662 §3.1).
    Ppp,
    /// IP over ATM with VC multiplexing, without encapsulation (RFC 2684 §6.1): cells of 53 bytes carry
    /// 48, and the last ends with the 8 bytes of AAL5's trailer (ITU-T I.363.5). The following kinds
    /// use cells too, with the given bytes before each packet.
    AtmIpoaVcmux,
    /// IP over ATM with LLC and SNAP: 8 (RFC 2684 §5.1).
    AtmIpoaLlc,
    /// Bridged Ethernet with VC multiplexing: pad 2, header 14 (RFC 2684 §6.2, without FCS).
    AtmBridgedVcmux,
    /// Bridged Ethernet with LLC: LLC and SNAP 8, pad 2, header 14 (RFC 2684 §5.2, without FCS).
    AtmBridgedLlc,
    /// PPP over ATM with VC multiplexing: protocol 2 (RFC 2364 §4).
    AtmPppoaVcmux,
    /// PPP over ATM with LLC: LLC and NLPID 4, protocol 2 (RFC 2364 §5).
    AtmPppoaLlc,
    /// PPP over bridged Ethernet with VC multiplexing: 16, PPPoE header 6, protocol 2 (RFC 2516 §4).
    AtmPppoeVcmux,
    /// PPP over bridged Ethernet with LLC: 24, PPPoE header 6, protocol 2; common on DSL lines.
    AtmPppoeLlc,
}

/// Start or end of an outage.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LinkEvent {
    /// Time, within the run.
    pub at: Duration,
    /// New state of both directions. While a link is down, packets on the medium and arriving packets
    /// are lost; queued packets wait.
    pub state: LinkState,
}

/// State of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LinkState {
    /// Packets do not pass.
    Down,
    /// The link works.
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
