//! The subject of the records: the flows, links and routes of a run by name, and its time windows. The
//! caller provides it once, before the run.

use std::borrow::Cow;
use std::collections::BTreeMap;

use talkspurt_proto::packet::Packet;
use talkspurt_proto::time::{Duration, Instant};

/// The context that records need beyond the notes.
#[derive(Clone, Debug)]
pub struct Layout {
    /// Flows, in the world's numbering.
    pub flows: Vec<FlowInfo>,
    /// Directions of links, in the world's numbering.
    pub links: Vec<LinkInfo>,
    /// Routes, in the world's numbering.
    pub routes: Vec<RouteInfo>,
    /// Colours of nodes that have one, as `#` and six hexadecimal digits.
    pub colours: BTreeMap<String, String>,
    /// Start of the measure window, included.
    pub from: Instant,
    /// End of the measure window, excluded; not after the end of the run.
    pub to: Instant,
    /// Length of the run.
    pub duration: Duration,
    /// Width of a bin of the series; zero means one bin for the whole run.
    pub interval: Duration,
}

/// A flow and its two sides.
#[derive(Clone, Debug)]
pub struct FlowInfo {
    /// Its name in the scenario.
    pub name: String,
    /// The name of its group of flows, if it belongs to one.
    pub group: Option<String>,
    /// Name of the transport.
    pub transport: String,
    /// Node of the side that opens (side 0).
    pub from: String,
    /// Node of the side that answers (side 1).
    pub to: String,
    /// What each side sends; `None` for a side without a source.
    pub sides: [Option<SideInfo>; 2],
}

impl FlowInfo {
    /// A place for a flow of real hosts, which [`Recorder::name_flow`](crate::Recorder::name_flow) fills when
    /// its first packet is sent. One that stays unused is in no table.
    #[must_use]
    pub fn reserved() -> Self {
        let none = String::new;
        Self {
            name: none(),
            group: None,
            transport: none(),
            from: none(),
            to: none(),
            sides: [Some(SideInfo::real()), Some(SideInfo::real())],
        }
    }
}

/// The kind of source of real hosts.
const REAL: &str = "real";

/// What one side of a flow sends.
#[derive(Clone, Debug)]
pub struct SideInfo {
    /// Kind of source: `speech`, `cbr`, `bulk` …
    pub source: String,
    /// The length of one frame, for media with playout.
    pub frame: Option<Duration>,
    /// For frames of several packets: the delay after which one is late.
    pub deadline: Option<Duration>,
    /// Whether the source rests where nothing changes, as a shared screen does.
    pub rests: bool,
}

impl SideInfo {
    /// Packets of a real host.
    #[must_use]
    pub fn real() -> Self {
        Self { source: REAL.to_owned(), frame: None, deadline: None, rests: false }
    }

    /// Whether a real host sends: what its programs generate, hold back and reject is not known.
    #[must_use]
    pub fn is_real(&self) -> bool {
        self.source == REAL
    }
}

/// One direction of a link.
#[derive(Clone, Debug)]
pub struct LinkInfo {
    /// Its name; the reverse direction is called `NAME.back`.
    pub name: String,
    /// Node it leads from.
    pub from: String,
    /// Receiving nodes: one, or the stations of an access point.
    pub to: Vec<String>,
    /// With several receiving nodes: the index of the receiver of each route's packets, by route number.
    pub receivers: BTreeMap<u32, usize>,
    /// Bits per second.
    pub rate_bps: u64,
    /// Propagation delay.
    pub delay: Duration,
}

/// Receiving nodes that a table lists, at most.
const MAX_NAMED: usize = 4;

impl LinkInfo {
    /// Its receiving end, for tables.
    pub(crate) fn far_end(&self) -> Cow<'_, str> {
        match &self.to[..] {
            [one] => one.into(),
            several if several.len() > MAX_NAMED => format!("{} stations", several.len()).into(),
            few => few.join(", ").into(),
        }
    }
}

/// The sender on a route.
#[derive(Clone, Copy, Debug)]
pub struct RouteInfo {
    /// The flow, or [`RouteInfo::SHARED`].
    pub flow: u32,
    /// Its side, 0 or 1.
    pub side: u8,
}

impl RouteInfo {
    /// In place of a flow: the route has packets of several flows, those of real hosts.
    pub const SHARED: u32 = u32::MAX;
}

impl Layout {
    /// The peer that sent a packet: side 0 of a flow is `2 * flow`, side 1 is the next.
    pub(crate) fn sender(&self, packet: &Packet) -> Option<usize> {
        sender(&self.routes, packet)
    }

    /// Directions that have a source, in order of peers: rows of the `flows` table.
    pub(crate) fn directions(&self) -> impl Iterator<Item = Direction<'_>> {
        self.flows.iter().enumerate().flat_map(|(flow, info)| {
            (0..2).filter_map(move |side| {
                let source = info.sides[side].as_ref()?;
                Some(Direction { peer: 2 * flow + side, flow: info, side, source })
            })
        })
    }

    /// The name of the flow and side of a peer, for tables: (`call`, `from`).
    pub(crate) fn peer_name(&self, peer: u32) -> (&str, &'static str) {
        let flow = self.flows.get(peer as usize / 2).map_or("", |flow| flow.name.as_str());
        (flow, SIDES[peer as usize % 2])
    }

    /// Length of the measure window.
    pub(crate) fn window(&self) -> Duration {
        self.to.saturating_since(self.from)
    }

    /// Width of a bin, never zero.
    pub(crate) fn bin_width(&self) -> Duration {
        let width = if self.interval.is_zero() { self.duration } else { self.interval };
        width.max(Duration::from_nanos(1))
    }

    /// How many bins cover the run; the last may be shorter than the others.
    pub(crate) fn bin_count(&self) -> usize {
        self.duration.as_nanos().div_ceil(self.bin_width().as_nanos()).max(1) as usize
    }

    /// End of bin `index`.
    pub(crate) fn bin_end(&self, index: usize) -> Instant {
        let whole = self.bin_width() * (index as u64 + 1);
        Instant::ZERO + whole.min(self.duration)
    }
}

/// Names of the sides in tables.
pub(crate) const SIDES: [&str; 2] = ["from", "to"];

/// The traffic of one peer with a source.
pub(crate) struct Direction<'a> {
    pub(crate) peer: usize,
    pub(crate) flow: &'a FlowInfo,
    pub(crate) side: usize,
    pub(crate) source: &'a SideInfo,
}

impl Direction<'_> {
    /// Its name in tables.
    pub(crate) fn name(&self) -> String {
        match self.side {
            0 => self.flow.name.clone(),
            _ => format!("{}.reverse", self.flow.name),
        }
    }
    /// The name of its group of directions.
    pub(crate) fn group(&self) -> Option<String> {
        let group = self.flow.group.as_ref()?;
        Some(if self.side == 0 { group.clone() } else { format!("{group}.reverse") })
    }
    /// Source and destination nodes.
    pub(crate) fn ends(&self) -> (&str, &str) {
        match self.side {
            0 => (&self.flow.from, &self.flow.to),
            _ => (&self.flow.to, &self.flow.from),
        }
    }
}

/// The peer that sends on the packet's route.
pub(crate) fn sender(routes: &[RouteInfo], packet: &Packet) -> Option<usize> {
    let route = routes.get(packet.route as usize)?;
    let flow = if route.flow == RouteInfo::SHARED { packet.flow } else { route.flow };
    Some(2 * flow as usize + usize::from(route.side))
}
