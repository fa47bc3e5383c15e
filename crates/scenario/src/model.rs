//! A scenario as plain data: what a file may say, and what each word means.
//!
//! These structs are the one source of truth: parsing, the JSON Schema, the reference page and the
//! resolved scenario are all derived from them.

use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use talkspurt_app::{playout, quality, source};
use talkspurt_proto::time::Duration;
use talkspurt_proto::units::{Rate, Size};
use talkspurt_proto::{tcp, udp};

/// An experiment: a network, the flows over it, and what to measure.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    /// One line for tables and reports.
    pub title: String,
    /// What the experiment asks and shows, in Markdown, for the report.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// Length of the run.
    pub duration: Duration,
    /// Seed of every random stream; the same seed gives the same run on any machine.
    #[serde(default = "Scenario::default_seed")]
    pub seed: u64,
    /// The window in which packets are measured.
    #[serde(default)]
    pub measure: Measure,
    /// What is recorded beside the summary.
    #[serde(default)]
    pub record: Record,
    /// Nodes that need saying more than their name; the others come into being with their links.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub nodes: IndexMap<String, Node>,
    /// Links by name.
    pub links: IndexMap<String, Link>,
    /// Flows by name.
    pub flows: IndexMap<String, Flow>,
    /// Fields that take several values; every combination is run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub axes: Vec<Axis>,
    /// Repetitions of every combination under other seeds.
    #[serde(default)]
    pub replications: Replications,
}

/// The window in which packets are measured: those sent in it count, whenever they arrive.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Measure {
    /// End of the warm-up.
    #[serde(default)]
    pub from: Duration,
    /// End of measurement; absent means the end of the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<Duration>,
}

/// What is recorded beside the summary.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Record {
    /// Width of a bin of the time series.
    #[serde(default = "Record::default_interval")]
    pub interval: Duration,
    /// Write a table with one row per packet and hop.
    #[serde(default)]
    pub packets: bool,
    /// Links whose packets are captured as pcapng (both ends' view of the wire), by name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pcapng: Vec<String>,
}

/// A host or router.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Node {
    /// IP addresses, IPv4 or IPv6, for captures; absent ones are given from 10.0.0.0/8 and
    /// fd00::/8 in the order of the nodes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub addresses: Vec<std::net::IpAddr>,
    /// How far the node's clock is ahead of true time at the start.
    #[serde(default)]
    pub clock_offset: Duration,
    /// How much faster than true time the clock runs, in parts per million; may be negative.
    #[serde(default)]
    pub clock_drift_ppm: f64,
}

/// A link: a queue, a transmitter and a medium, in each direction.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Link {
    /// Node at one end.
    pub from: String,
    /// Node at the other end.
    pub to: String,
    /// Bits the transmitter sends per second.
    pub rate: Rate,
    /// Propagation delay.
    pub delay: Duration,
    /// What waits for the transmitter.
    pub queue: Queue,
    /// Bytes added to each IP packet on this link.
    #[serde(default)]
    pub framing: Framing,
    /// Longest IP packet the link takes; a longer one is dropped and answered with Packet Too Big.
    #[serde(default = "Link::default_mtu")]
    pub mtu: Size,
    /// Probability that a packet is lost on the medium, 0 to 1.
    #[serde(default)]
    #[schemars(range(min = 0.0, max = 1.0))]
    pub loss: f64,
    /// Outages and returns, in order of time.
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
    /// Bits per second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<Rate>,
    /// Propagation delay.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delay: Option<Duration>,
    /// Queue.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue: Option<Queue>,
    /// Probability of loss on the medium, 0 to 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0.0, max = 1.0))]
    pub loss: Option<f64>,
}

/// A queue discipline.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Queue {
    /// First in, first out, dropping what does not fit.
    Droptail(DropTail),
}

/// Limits of a DropTail queue; the packet in transmission is not counted. At least one is given.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DropTail {
    /// Packets that may wait.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub packets: Option<u32>,
    /// Bytes (of IP packets) that may wait.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<Size>,
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
    /// When.
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
    /// When the connection is opened.
    #[serde(default)]
    pub start: Duration,
    /// Seeded random time below this is added to the start. Absent: one packet interval for
    /// sources with a clock of their own (equal clocks started together mislead), none for bulk.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_spread: Option<Duration>,
    /// When the sources stop; absent means the end of the run.
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
    /// Differentiated services code point, 0 to 63.
    #[serde(default)]
    #[schemars(range(min = 0, max = 63))]
    pub dscp: u8,
    /// How packet lengths are counted.
    #[serde(default)]
    pub sizing: Sizing,
    /// Nodes passed on the way, first and last included; absent means the shortest path.
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
    /// IPv4, header of 20 bytes.
    #[default]
    V4,
    /// IPv6, header of 40 bytes.
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

/// One axis of a study.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Axis {
    /// Column name in tables; absent means the last word of the path.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Field that varies, with dots; `*` stands for every name, as in `flows.*.transport`.
    pub path: String,
    /// Its values, as they would be written in place.
    pub values: Vec<serde_json::Value>,
    /// How the values are called in tables; absent means as they are written.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub labels: Vec<String>,
}

/// Repetitions under other seeds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Replications {
    /// How many; replication k runs under `seed + k`, the same for every combination of the axes,
    /// so that differences are paired.
    #[serde(default = "Replications::default_count")]
    pub count: u32,
    /// Confidence level of the intervals.
    #[serde(default = "Replications::default_confidence")]
    #[schemars(range(min = 0.5, max = 0.9999))]
    pub confidence: f64,
}

impl Scenario {
    const fn default_seed() -> u64 {
        1
    }
}
impl Record {
    const fn default_interval() -> Duration {
        Duration::from_millis(100)
    }
}
impl Default for Record {
    fn default() -> Self {
        Self { interval: Self::default_interval(), packets: false, pcapng: Vec::new() }
    }
}
impl Link {
    const fn default_mtu() -> Size {
        Size::from_bytes(1500)
    }
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
impl Replications {
    const fn default_count() -> u32 {
        1
    }
    const fn default_confidence() -> f64 {
        0.95
    }
}
impl Default for Replications {
    fn default() -> Self {
        Self { count: Self::default_count(), confidence: Self::default_confidence() }
    }
}
