//! The packets of an excerpt of a run, as data for `animation.js`: one row per packet and link, as columns of
//! numbers, and the lanes of the packets, one per direction between two drawn nodes.

use std::collections::{BTreeMap, BTreeSet};

use indexmap::{IndexMap, IndexSet};
use serde::Serialize;
use serde_json::{Value, json};
use talkspurt_proto::math::hypot;

use crate::Rows;
use crate::network::{Flow, Network, components};
use crate::picture::{COLUMN, Frame, LETTER, Scene, bounds};
use crate::style::styles;
use crate::text::{general, rounded};

/// Minimum width of the picture, so that packets have space to move.
const WIDTH: f64 = 940.0;
/// Space for a queue next to its link.
const STACK: f64 = 56.0;
/// Height of a queued packet, if there is space for all.
const STEP: f64 = 4.0;
/// From the end of a node's name to a queue's middle; names may be 10 % wider than estimated.
const CLEAR: f64 = 20.0;
/// Space for a node and its name.
const ABOVE: f64 = 36.0;
const BELOW: f64 = 20.0;
const NEVER: u32 = u32::MAX;
const MAX_NAMES: usize = 3;
/// Colour of what is simulated beside the programs of an emulation.
const BACKGROUND: &str = "#8F979F";

/// Packets to show.
#[derive(Clone, Copy, Debug)]
pub struct Excerpt<'a> {
    /// A row for each packet and link, in order of arrival at the link.
    pub hops: &'a Rows,
    /// Its beginning and end in seconds.
    pub interval_s: (f64, f64),
    /// Maximum packets, counted on each link.
    pub most: usize,
    /// Why it begins where it does: as `asked` by the scenario, before the first `drop`, with the `window` of
    /// measurement, without a drop, or, of an emulation, with the first `packet` of a program.
    pub begins: &'a str,
}

/// One of several disjoint networks.
#[derive(Clone, Debug, Serialize)]
pub struct World {
    /// Its title, from its flows.
    words: String,
    /// Its picture, the background for packets.
    ground: String,
    /// Packets dropped in it.
    drops: usize,
    /// Its packets, counted on each link.
    hops: usize,
}

/// An animation.
#[derive(Clone, Debug, Serialize)]
pub struct Animation {
    /// The networks with traffic.
    worlds: Vec<World>,
    /// Index of the initial one: that with the most drops.
    first: usize,
    /// Which excerpt it is, and why.
    lead: String,
    /// The script's input.
    data: Value,
}

/// The animation of an excerpt in a network with its flows, by name, transport and source.
///
/// # Errors
/// Why there is none, as the end of a sentence.
pub fn animation(
    network: &Network,
    flows: &Rows,
    shown: &Excerpt<'_>,
) -> Result<Animation, String> {
    let (from, to) = shown.interval_s;
    if to <= from && !shown.hops.is_empty() {
        let most = grouped(shown.most, ',');
        return Err(format!(
            "more packets are on their way at once than can be shown, which is {most}."
        ));
    }
    let none = || "no packet was on a link in the excerpt that would be shown.".to_owned();
    let scene = Scene::of(network, flows).ok_or_else(none)?;
    // Longer links, if there is space.
    let frame = Frame::new(&scene, COLUMN);
    let room = (WIDTH - 2.0 * frame.margin) / frame.columns.max(1.0);
    let frame = Frame::new(&scene, COLUMN.max(room));
    let real = (0..flows.len()).any(|row| is_real(flows, row));
    let moved = Moved::of(network, &scene, shown.hops, &colours(flows, real));
    if moved.flows.len().max(moved.links.len()) > usize::from(u16::MAX) {
        return Err("the run has more flows or links than can be shown.".to_owned());
    }
    let (worlds, places) = moved.worlds(&scene, &frame);
    let first =
        (0..worlds.len()).rev().max_by_key(|world| worlds[*world].drops).ok_or_else(none)?;
    let why = match shown.begins {
        "asked" => "as the scenario asks",
        "drop" if real => {
            "around the first packet of a program that is dropped in the window of measurement"
        }
        "drop" => "around the first that is dropped in the window of measurement",
        "packet" => {
            "from the first packet of a program in the window of measurement, in which none of them was \
             dropped"
        }
        _ => "from the beginning of the window of measurement, in which none was dropped",
    };
    let many = grouped(moved.rows.len(), '\u{202f}');
    let [begin, end] = [from, to].map(|at| general(at, 5));
    let lead = format!("{many} packets, counted on each link, from {begin} s to {end} s: {why}.");
    let mut data = moved.columns();
    let flows = moved.flows.iter();
    for (key, value) in [
        ("from", from.into()),
        ("to", to.into()),
        ("room", STACK.into()),
        ("step", STEP.into()),
        ("lanes", places.into()),
        ("links", json!(moved.links)),
        ("flows", flows.map(|(name, colour)| json!({ "name": name, "colour": colour })).collect()),
    ] {
        data[key] = value;
    }
    Ok(Animation { worlds, first, lead, data })
}

fn is_real(flows: &Rows, row: usize) -> bool {
    flows.text("source", row) == Some("real")
}

/// The colour of each flow; in an emulation, flows that are simulated are grey.
fn colours(flows: &Rows, real: bool) -> IndexMap<String, String> {
    let mut found: IndexMap<_, _> =
        styles(flows).into_iter().map(|(name, style)| (name, style.colour)).collect();
    for row in (0..flows.len()).filter(|row| real && !is_real(flows, *row)) {
        found.insert(flows.text("name", row).unwrap_or_default().to_owned(), BACKGROUND.to_owned());
    }
    found
}

fn grouped(number: usize, separator: char) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(separator);
        }
        text.push(digit);
    }
    text
}

/// A transmitter to one of its receivers.
#[derive(Clone, Debug, Serialize)]
struct Link {
    number: usize,
    name: String,
    lane: usize,
    /// The lane with its queue: all packets of one transmitter wait in one.
    stack: usize,
    rate_bps: Option<f64>,
    delay_s: Option<f64>,
}

/// A shown packet: its row, and the numbers of its flow and link.
#[derive(Clone, Copy, Debug)]
struct Row {
    row: usize,
    flow: usize,
    link: usize,
}

/// Lanes, links and flows of the shown packets.
struct Moved<'a> {
    hops: &'a Rows,
    rows: Vec<Row>,
    /// Each between two drawn nodes.
    lanes: IndexSet<(usize, usize)>,
    links: Vec<Link>,
    /// Names and colours.
    flows: IndexMap<String, String>,
}

impl<'a> Moved<'a> {
    fn of(
        network: &Network,
        scene: &Scene,
        hops: &'a Rows,
        colours: &IndexMap<String, String>,
    ) -> Self {
        let drawn = &scene.drawn;
        let named: IndexMap<String, &Flow> = network
            .flows
            .iter()
            .flat_map(|flow| flow.names().into_iter().map(move |name| (name, flow)))
            .collect();
        let text = |name: &str, row| hops.text(name, row).unwrap_or_default();
        let mut busy: IndexMap<&str, IndexSet<(&str, &str)>> = IndexMap::new();
        for row in 0..hops.len() {
            let (flow, side) = (text("flow", row), text("side", row));
            busy.entry(text("link", row)).or_default().insert((flow, side));
        }
        let nodes: Vec<usize> = (0..drawn.nodes.len()).collect();
        let ends = network.links.iter();
        let ends =
            ends.filter_map(|link| Some((drawn.number(&link.from)?, drawn.number(&link.to)?)));
        let mut part = vec![0; nodes.len()];
        for (number, world) in components(&nodes, &ends.collect::<Vec<_>>()).iter().enumerate() {
            world.iter().for_each(|node| part[*node] = number);
        }
        let mut lanes = IndexSet::new();
        let mut links: IndexMap<(String, (usize, usize)), Link> = IndexMap::new();
        let mut stacks: IndexMap<String, usize> = IndexMap::new();
        let mut entries: IndexMap<(String, &str, &str), usize> = IndexMap::new();
        for at in transmitters(network) {
            for &(flow, side) in busy.get(at.name.as_str()).into_iter().flatten() {
                let receiver = named.get(flow).and_then(|flow| at.receiver(flow, side));
                let (from, to) = (drawn.number(at.from), drawn.number(receiver.unwrap_or(at.to)));
                let (Some(from), Some(to)) = (from, to) else { continue };
                let way = (drawn.place[from], drawn.place[to]);
                if part[way.0] != part[from] {
                    continue; // in a network represented by another
                }
                let (lane, _) = lanes.insert_full(way);
                let stack = *stacks.entry(at.name.clone()).or_insert(lane);
                let number = links.len();
                let link = links.entry((at.name.clone(), way)).or_insert_with(|| Link {
                    number,
                    name: at.name.clone(),
                    lane,
                    stack,
                    rate_bps: at.rate_bps,
                    delay_s: at.delay_s,
                });
                entries.insert((at.name.clone(), flow, side), link.number);
            }
        }
        let coloured = |name: &String| Some((name.clone(), colours.get(name)?.clone()));
        let flows: IndexMap<_, _> = named.keys().filter_map(coloured).collect();
        let shown = |row| {
            let (link, name) = (text("link", row).to_owned(), text("flow", row));
            let link = *entries.get(&(link, name, text("side", row)))?;
            Some(Row { row, flow: flows.get_index_of(name)?, link })
        };
        let rows = (0..hops.len()).filter_map(shown).collect();
        Self { hops, rows, lanes, links: links.into_values().collect(), flows }
    }

    fn time(&self, column: &str, row: &Row) -> Option<f64> {
        self.hops.number(column, row.row)
    }

    /// The networks with packets, and the lanes.
    fn worlds(&self, scene: &Scene, frame: &Frame<'_>) -> (Vec<World>, Vec<Value>) {
        let most = self.longest();
        let mut places = vec![json!({}); self.lanes.len()];
        let mut worlds = Vec::new();
        let world_of = |lane: usize| frame.world[&self.lanes[lane].0];
        let mut rows: BTreeMap<usize, Vec<&Row>> = BTreeMap::new();
        for row in &self.rows {
            rows.entry(world_of(self.links[row.link].lane)).or_default().push(row);
        }
        for (world, rows) in rows {
            let nodes = &scene.laid.worlds[world];
            let mut heights = heights(nodes, scene, frame);
            let lanes = (0..self.lanes.len()).filter(|lane| world_of(*lane) == world);
            for lane in lanes {
                let (from, to) = self.lanes[lane];
                let corners = frame.way(from, to);
                let stack = beside(&scene.drawn.nodes[from].words, &corners);
                let point = |(x, y): &(f64, f64)| [rounded(*x, 1), rounded(*y, 1)];
                places[lane] = json!({
                    "world": worlds.len(), "points": corners.iter().map(point).collect::<Vec<_>>(),
                    "stack": stack,
                });
                heights.extend(corners.iter().map(|corner| corner.1));
                heights.push(top(&corners, stack, most.get(&lane).copied().unwrap_or(0)));
            }
            let (top, bottom) = bounds(heights.into_iter());
            let drops = rows.iter().filter(|row| self.time("dropped_s", row).is_some()).count();
            let said: IndexSet<_> = rows.iter().map(|row| row.flow).collect();
            let name = |flow: &usize| Some(self.flows.get_index(*flow)?.0.as_str());
            let names: Vec<_> = said.iter().filter_map(name).collect();
            let more = if names.len() > MAX_NAMES { " …" } else { "" };
            let names = names[..names.len().min(MAX_NAMES)].join(", ");
            worlds.push(World {
                words: format!("{names}{more} ({drops} dropped)"),
                ground: frame.ground(nodes, (top, bottom - top)),
                drops,
                hops: rows.len(),
            });
        }
        (worlds, places)
    }

    /// Maximum queue length of each lane with a queue.
    fn longest(&self) -> BTreeMap<usize, i64> {
        let mut changes = Vec::new();
        for row in &self.rows {
            let stack = self.links[row.link].stack;
            changes.extend(self.time("enqueued_s", row).map(|at| (at, 1, stack)));
            changes.extend(
                earlier(self.time("dequeued_s", row), self.time("dropped_s", row))
                    .map(|at| (at, -1, stack)),
            );
        }
        changes.sort_by(|one, other| one.0.total_cmp(&other.0).then(one.1.cmp(&other.1)));
        let mut lengths: BTreeMap<usize, (i64, i64)> = BTreeMap::new();
        for (_, by, stack) in changes {
            let (length, most) = lengths.entry(stack).or_default();
            *length += by;
            *most = (*most).max(*length);
        }
        lengths.into_iter().map(|(stack, (_, most))| (stack, most)).collect()
    }

    /// Columns of numbers in base64; times in ticks since the first packet.
    fn columns(&self) -> Value {
        let nanos = |column: &str| -> Vec<Option<i64>> {
            let times = self.rows.iter().map(|row| self.time(column, row));
            times.map(|time| time.map(|time| (time * 1e9).round() as i64)).collect()
        };
        let times = ["enqueued_s", "dequeued_s", "received_s", "dropped_s"].map(nanos);
        let base = times[0].iter().flatten().min().copied().unwrap_or(0);
        let last = times.iter().flatten().flatten().max().copied().unwrap_or(base);
        let tick = (last - base) / i64::from(NEVER - 1) + 1;
        let ticks = |at: Option<i64>| {
            at.and_then(|at| u32::try_from((at - base).div_euclid(tick)).ok()).unwrap_or(NEVER)
        };
        let column = |place: usize| times[place].iter().map(|at| ticks(*at).to_le_bytes());
        let ended = times[2]
            .iter()
            .zip(&times[3])
            .map(|(received, dropped)| ticks(*received).min(ticks(*dropped)).to_le_bytes());
        let fate = |row: &Row| self.hops.text("fate", row.row).unwrap_or_default();
        let fates: IndexSet<_> = self.rows.iter().map(fate).collect();
        let fate = |row| [fates.get_index_of(fate(row)).unwrap_or_default() as u8];
        let bytes = |row: &Row| self.time("ip_bytes", row).unwrap_or_default() as u32;
        let rows = || self.rows.iter();
        json!({
            "base_ns": base,
            "tick_ns": tick,
            "flow": packed(rows().map(|row| (row.flow as u16).to_le_bytes())),
            "link": packed(rows().map(|row| (row.link as u16).to_le_bytes())),
            "bytes": packed(rows().map(|row| bytes(row).to_le_bytes())),
            "enqueued": packed(column(0)),
            "dequeued": packed(column(1)),
            "ended": packed(ended),
            "fate": packed(rows().map(fate)),
            "fates": fates,
        })
    }
}

/// Extents above and below of nodes, their names and link labels.
fn heights(nodes: &[usize], scene: &Scene, frame: &Frame<'_>) -> Vec<f64> {
    let (least, most) = bounds(nodes.iter().map(|node| frame.node(*node).1));
    let mut heights = vec![least - ABOVE, most + BELOW];
    if frame.worded {
        let inside: BTreeSet<_> = nodes.iter().collect();
        let wires = scene.drawn.wires.iter().filter(|wire| wire.link.is_some());
        let wires = wires.filter(|wire| inside.contains(&wire.ends.0));
        heights.extend(wires.flat_map(|wire| frame.label_span(wire)));
    }
    heights
}

/// Position of a queue along a link: clear of the node and, above it, of its name.
fn beside(words: &str, corners: &[(f64, f64)]) -> f64 {
    let ((ax, ay), (bx, by)) = (corners[0], corners[1]);
    let name = if bx > ax { LETTER * words.chars().count() as f64 / 2.0 + CLEAR } else { 0.0 };
    rounded(name.max(22.0).min(0.4 * hypot(bx - ax, by - ay)), 1)
}

/// Height of a queue with `most` packets, including the number above it.
fn top(corners: &[(f64, f64)], along: f64, most: i64) -> f64 {
    let ((ax, ay), (bx, by)) = (corners[0], corners[1]);
    let length = hypot(bx - ax, by - ay);
    let aside = 32.0 + (STEP * most as f64).min(STACK);
    ay + along * (by - ay) / length - aside * (bx - ax) / length
}

fn earlier(one: Option<f64>, other: Option<f64>) -> Option<f64> {
    one.into_iter().chain(other).reduce(f64::min)
}

/// What sends in one direction; an access point has a receiver for each flow and side.
struct Transmitter<'a> {
    name: String,
    from: &'a str,
    to: &'a str,
    rate_bps: Option<f64>,
    delay_s: Option<f64>,
    in_cell: bool,
}

impl Transmitter<'_> {
    /// The node that gets packets of a flow, if it is not the only one.
    fn receiver<'a>(&self, flow: &'a Flow, side: &str) -> Option<&'a str> {
        let (links, ways) = match side {
            "from" => (&flow.links.from, &flow.routes),
            _ => (&flow.links.to, &flow.back),
        };
        let next = |(names, nodes): (&Vec<String>, &'a Vec<String>)| {
            let hop = names.iter().position(|name| *name == self.name)?;
            nodes.get(hop + 1).map(String::as_str)
        };
        let mut found = links.iter().zip(ways).filter_map(next);
        if self.in_cell { found.next_back() } else { None }
    }
}

fn transmitters(network: &Network) -> Vec<Transmitter<'_>> {
    let mut found = Vec::new();
    for link in &network.links {
        let back = |key: &str, own: Option<f64>| link.back.get(key).map_or(own, Value::as_f64);
        let (name, from, to) = (link.name.clone(), link.from.as_str(), link.to.as_str());
        let (rate_bps, delay_s) = (link.rate_bps, link.delay_s);
        found.push(Transmitter { name, from, to, rate_bps, delay_s, in_cell: false });
        found.push(Transmitter {
            name: format!("{}.back", link.name),
            from: to,
            to: from,
            rate_bps: back("rate_bps", rate_bps),
            delay_s: back("delay_s", delay_s),
            in_cell: false,
        });
    }
    found.extend(network.access_points.iter().map(|hop| Transmitter {
        name: hop.name.clone(),
        from: &hop.from,
        to: hop.to.first().map_or("", String::as_str),
        rate_bps: hop.rate_bps,
        delay_s: hop.delay_s,
        in_cell: true,
    }));
    found
}

/// Bytes in base64 (RFC 4648 §4).
fn packed<const N: usize>(numbers: impl Iterator<Item = [u8; N]>) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let bytes: Vec<u8> = numbers.flatten().collect();
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for part in bytes.chunks(3) {
        let byte = |at: usize| u32::from(part.get(at).copied().unwrap_or(0));
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        for place in 0..4 {
            let letter = LETTERS[(bits >> (18 - 6 * place) & 63) as usize];
            text.push(if place > part.len() { '=' } else { letter.into() });
        }
    }
    text
}
