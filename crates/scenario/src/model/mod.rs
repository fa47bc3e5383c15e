//! A scenario as plain data: the fields of a file and their meaning.
//!
//! These structs are the only definition: parsing, the JSON Schema, the reference page and the resolved
//! scenario are derived from them. The network is in `network`, `medium` and `cell`, its traffic in `flow`,
//! its shapes in `topology`, studies in `study` and `design`; queues are defined next to their
//! implementation, in `talkspurt_queue`.

mod cell;
mod design;
mod flow;
mod medium;
mod network;
mod study;
mod topology;

pub use cell::{Arf, Cell, Contenders, Fixed, Minstrel, RateControl, Standard, Station};
pub use design::{Design, Factor, LatinHypercube, Scale, Sobol};
pub use flow::{Flow, IpVersion, SendDrop, SendQueue, Sizing, Source, Transport};
pub use medium::{GilbertElliott, Orbit, Step, Trace, TraceFile};
pub use network::{Back, Framing, Link, LinkEvent, LinkState, Node};
pub use study::{Axis, Replications};
pub use topology::{Alike, Chain, Dumbbell, ParkingLot, Single, Topology, TwoPaths, WirelessEdge};
pub use topology::{DELAY_TO, LIKE, SHARED};

pub use talkspurt_queue::Config as Queue;
pub use talkspurt_queue::codel::Config as Codel;
pub use talkspurt_queue::drop_tail::Config as DropTail;
pub use talkspurt_queue::dualpi2::Config as Dualpi2;
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
    /// Title of the experiment, one line for tables and reports.
    pub title: String,
    /// Description of the experiment for the report, in Markdown.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// Length of the run, above zero and at most 78h (48 bits of nanoseconds).
    pub duration: Duration,
    /// Seed of all random streams; the same seed gives the same run on any machine. At most 2^63 − 1,
    /// TOML's largest integer.
    #[serde(default = "Scenario::default_seed")]
    #[schemars(range(max = 9_223_372_036_854_775_807_u64))]
    pub seed: u64,
    /// Measurement window: packets sent within it count, whenever they arrive.
    #[serde(default)]
    pub measure: Measure,
    /// Data recorded besides the summary, whose exact delays take 8 bytes of memory per packet received.
    #[serde(default)]
    pub record: Record,
    /// Nodes with settings of their own. All other nodes are created by the links and cells that name them.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub nodes: IndexMap<String, Node>,
    /// A standard topology, which creates links from a few templates. The links are added to `links` when the
    /// scenario is loaded: an entry there with the same name overrides single properties, and further links can
    /// be attached. A resolved scenario contains only the links. In a group of equal links, `delay` is the
    /// delay of the first and `delay_to` that of the last; the others lie between in equal steps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub topology: Option<Topology>,
    /// Links by name. At least one link or cell is required, unless a `topology` creates links.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub links: IndexMap<String, Link>,
    /// IEEE 802.11 cells by name.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub cells: IndexMap<String, Cell>,
    /// Flows by name, at least one.
    pub flows: IndexMap<String, Flow>,
    /// Fields that take several values; every combination is run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub axes: Vec<Axis>,
    /// Fields that take sampled values together; every combination of the axes is run at every point.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub design: Option<Design>,
    /// Repetitions of every combination with other seeds.
    #[serde(default)]
    pub replications: Replications,
}

/// The measurement window: packets sent within it count, whenever they arrive.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Measure {
    /// Start of the window, after the warm-up; before `to` and the end of the run.
    pub from: Duration,
    /// End of the window; absent means the end of the run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to: Option<Duration>,
}

/// Data recorded besides the summary.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Record {
    /// Bin width of the time series. Each bin takes about 170 bytes of memory per direction of a flow or link.
    pub interval: Duration,
    /// Write a table with one row per packet and hop.
    pub packets: bool,
    /// Keep every change of the gauges (congestion window, data in flight, round-trip time, jitter …)
    /// for the gauge table and the congestion window figure. A change takes 24 bytes of memory; TCP
    /// makes several per acknowledgement.
    pub gauges: bool,
    /// Keep the time each packet waited at each link (its sojourn time, RFC 8289 §3), for the link
    /// tables and series: 8 bytes of memory per packet and link.
    pub sojourn: bool,
    /// Names of links whose packets are captured as pcapng, as seen at both ends.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub pcapng: Vec<String>,
    /// Bytes kept of each captured packet, from its IP header on (tcpdump's `-s`); absent means all. At
    /// least 40, the length of an IPv6 header. Also applies to pcapng exports.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub snaplen: Option<Size>,
    /// Packet animation in the report.
    pub animation: Animation,
}

/// The part of the run that the report animates. Nothing is recorded for it: the report repeats the run
/// up to the end of this part. Only an emulation, which cannot be repeated, keeps it: there, drops are those of
/// packets of programs, and without any it begins with the first of these packets.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Animation {
    /// Start of the animation; absent means shortly before the first packet drop in the measurement
    /// window, or the start of that window without drops.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<Duration>,
    /// Latest end of the animation; absent means the end of the run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to: Option<Duration>,
    /// Maximum number of packets, counted once per link; the animation ends when it is reached. At most
    /// 20000, which a page draws smoothly; 0 disables the animation. If more are in flight at once,
    /// there is no animation.
    pub packets: u32,
}

impl Animation {
    /// Maximum packets on a page: 20 000 were drawn 48 times a second on a plain canvas.
    pub const MAX_PACKETS: u32 = 20_000;
}
impl Default for Animation {
    fn default() -> Self {
        Self { from: None, to: None, packets: Self::MAX_PACKETS }
    }
}

impl Scenario {
    pub(crate) const fn default_seed() -> u64 {
        1
    }
}
impl Default for Record {
    fn default() -> Self {
        Self {
            interval: Duration::from_millis(100),
            packets: false,
            gauges: true,
            sojourn: false,
            pcapng: Vec::new(),
            snaplen: None,
            animation: Animation::default(),
        }
    }
}
