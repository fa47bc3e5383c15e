//! A scenario as plain data: the fields of a file and their meaning.
//!
//! These structs are the only definition: parsing, the JSON Schema, the reference page and the resolved
//! scenario are derived from them. The network is in `network`, `medium` and `cell`, its traffic in `flow`,
//! its shapes in `topology`, studies in `study`; queues are defined next to their implementation, in
//! `talkspurt_queue`.

mod cell;
mod flow;
mod medium;
mod network;
mod study;
mod topology;

pub use cell::{Arf, Cell, Contenders, Fixed, Minstrel, RateControl, Standard, Station};
pub use flow::{Flow, IpVersion, SendDrop, SendQueue, Sizing, Source, Transport};
pub use medium::{GilbertElliott, Orbit, Step, Trace, TraceFile};
pub use network::{Back, Framing, Link, LinkEvent, LinkState, Node};
pub use study::{Axis, Replications};
pub use topology::{Alike, Chain, Dumbbell, ParkingLot, Single, Topology, TwoPaths, WirelessEdge};
pub(crate) use topology::{DELAY_TO, LIKE};

pub use talkspurt_queue::Config as Queue;
pub use talkspurt_queue::codel::Config as Codel;
pub use talkspurt_queue::drop_tail::Config as DropTail;
pub use talkspurt_queue::fq_codel::Config as FqCodel;
pub use talkspurt_queue::pie::Config as Pie;
pub use talkspurt_queue::red::{Config as Red, Mode as RedMode};

use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use talkspurt_proto::time::Duration;
use talkspurt_proto::units::Size;

/// An experiment: a network, the flows over it, and what to measure.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    /// What the experiment is called: one line for tables and reports.
    pub title: String,
    /// What the experiment asks and shows, in Markdown, for the report.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// Length of the run, above zero and at most 78h (48 bits of nanoseconds).
    pub duration: Duration,
    /// Seed of every random stream; the same seed gives the same run on any machine. At most
    /// 2^63 − 1, the greatest integer of TOML.
    #[serde(default = "Scenario::default_seed")]
    #[schemars(range(max = 9_223_372_036_854_775_807_u64))]
    pub seed: u64,
    /// The window in which packets are measured.
    #[serde(default)]
    pub measure: Measure,
    /// What is recorded beside the summary, whose exact delays take 8 bytes of memory per packet
    /// received.
    #[serde(default)]
    pub record: Record,
    /// Nodes that need saying more than their name; the others come into being with their links.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub nodes: IndexMap<String, Node>,
    /// A network of a usual shape, made of links that are written once. When the scenario is read they
    /// take their place among `links`, where more can be said of each by its name, and more links
    /// joined to them; a resolved scenario has only those. Of links that are alike, `delay_to` is the
    /// delay of the last and `delay` that of the first; those between lie in equal steps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub topology: Option<Topology>,
    /// Links by name; a network has at least one link or cell, unless a `topology` makes them.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub links: IndexMap<String, Link>,
    /// Cells of IEEE 802.11 by name.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub cells: IndexMap<String, Cell>,
    /// Flows by name, at least one.
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
    /// End of the warm-up; before `to` and the end of the run.
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
    /// Width of a bin of the time series. Each bin of each direction of a flow or link takes about
    /// 170 bytes of memory.
    #[serde(default = "Record::default_interval")]
    pub interval: Duration,
    /// Write a table with one row per packet and hop.
    #[serde(default)]
    pub packets: bool,
    /// Keep every change of the gauges (congestion window, data in flight, round-trip time, jitter
    /// …) for their table and the figure of congestion windows: 24 bytes of memory a change, and TCP
    /// makes several with every acknowledgement.
    #[serde(default = "Record::default_gauges")]
    pub gauges: bool,
    /// Keep how long each packet waited at each link (its sojourn time, RFC 8289 §3), for the columns of
    /// links and their series: 8 bytes of memory a packet and link.
    #[serde(default)]
    pub sojourn: bool,
    /// Links whose packets are captured as pcapng (both ends' view of the wire), by name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pcapng: Vec<String>,
    /// Bytes kept of each captured packet, counted from its IP header on, as by tcpdump's `-s`; absent
    /// means all of them. At least 40, an IPv6 header's. It holds for exports as pcapng, too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub snaplen: Option<Size>,
    /// The packets that a report shows moving.
    #[serde(default)]
    pub animation: Animation,
}

/// The stretch of the run whose packets a report shows moving. Nothing is recorded for it: when the
/// report is made, the run is done again as far as the stretch's end.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Animation {
    /// Where the stretch begins; absent means shortly before the first packet is dropped in the
    /// window of measurement, or at its beginning when none is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<Duration>,
    /// Where it ends at the latest; absent means the end of the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<Duration>,
    /// Most packets in it, each counted on each link: the stretch ends when there are so many. At
    /// most 20000, which a page draws smoothly; 0 for no animation, and there is none where more
    /// are on their way at once.
    #[serde(default = "Animation::default_packets")]
    pub packets: u32,
}

impl Animation {
    /// Maximum packets on a page: 20 000 were drawn 48 times a second on a plain canvas.
    pub const MAX_PACKETS: u32 = 20_000;
    const fn default_packets() -> u32 {
        Self::MAX_PACKETS
    }
}
impl Default for Animation {
    fn default() -> Self {
        Self { from: None, to: None, packets: Self::MAX_PACKETS }
    }
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
    const fn default_gauges() -> bool {
        true
    }
}
impl Default for Record {
    fn default() -> Self {
        Self {
            interval: Self::default_interval(),
            packets: false,
            gauges: Self::default_gauges(),
            sojourn: false,
            pcapng: Vec::new(),
            snaplen: None,
            animation: Animation::default(),
        }
    }
}
