//! The packets of an excerpt of a run, as data for `animation.js`: one row per packet and link, as columns of
//! numbers, and the lanes of the packets, one per direction between two drawn nodes.

use std::collections::{BTreeMap, BTreeSet};

use indexmap::{IndexMap, IndexSet};
use serde::Serialize;
use serde_json::{Value, json};
use talkspurt_proto::math::hypot;

use crate::Rows;
use crate::network::{Flow, Network};
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

/// The animation of an excerpt of a run, or, as a text, why there is none. It has `worlds`: the disjoint
/// networks with traffic, each with `words` (its title), `ground` (its picture, the background for packets),
/// `drops` and `hops` (its packets, counted on each link); `first`, the one with the most drops; `lead`, which
/// excerpt it is; and `data`, the script's input.
///
/// `flows` are those of the network, by name, transport and source; `hops` has a row for each packet and link,
/// in order of arrival at the link; at `most` so many were to be shown. The excerpt begins as `asked` by the
/// scenario, around the first `drop`, with the `window` of measurement, without a drop, or, of an emulation,
/// with the first `packet` of a program.
#[must_use]
pub fn animation(
    network: &Network,
    flows: &Rows,
    hops: &Rows,
    interval_s: (f64, f64),
    most: usize,
    begins: &str,
) -> Value {
    let found = || {
        let (from, to) = interval_s;
        if to <= from && !hops.is_empty() {
            let most = grouped(most, ',');
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
        let is_real = |row: &usize| flows.text("source", *row) == Some("real");
        let real = (0..flows.len()).any(|row| is_real(&row));
        let styled = styles(flows).into_iter().map(|(name, style)| (name, style.colour));
        let mut colours: IndexMap<_, _> = styled.collect();
        // In an emulation, flows that are simulated are grey.
        for row in (0..flows.len()).filter(|row| real && !is_real(row)) {
            colours
                .insert(flows.text("name", row).unwrap_or_default().to_owned(), BACKGROUND.into());
        }
        let moved = Moved::of(network, &scene, hops, &colours);
        if moved.flows.len().max(moved.links.len()) > usize::from(u16::MAX) {
            return Err("the run has more flows or links than can be shown.".to_owned());
        }
        let (worlds, places) = moved.worlds(&scene, &frame);
        let first = (0..worlds.len())
            .rev()
            .max_by_key(|world| worlds[*world]["drops"].as_u64())
            .ok_or_else(none)?;
        let why = match begins {
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
        let lead =
            format!("{many} packets, counted on each link, from {begin} s to {end} s: {why}.");
        let mut data = moved.columns();
        (data["from"], data["to"], data["lanes"]) = (from.into(), to.into(), places.into());
        Ok(json!({ "worlds": worlds, "first": first, "lead": lead, "data": data }))
    };
    found().unwrap_or_else(Value::String)
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
#[derive(Clone, Debug, Default, Serialize)]
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
        let mut lanes = IndexSet::new();
        let mut links: IndexMap<(String, (usize, usize)), Link> = IndexMap::new();
        let mut stacks: IndexMap<String, usize> = IndexMap::new();
        let mut entries: IndexMap<(String, &str, &str), usize> = IndexMap::new();
        for (at, sender, receiver) in transmitters(network) {
            for &(flow, side) in busy.get(at.name.as_str()).into_iter().flatten() {
                let to = receiver.or_else(|| next(named.get(flow)?, side, &at.name));
                let ends = drawn.number(sender).zip(to.and_then(|to| drawn.number(to)));
                let Some((from, to)) = ends else { continue };
                if drawn.elsewhere.contains(&from) {
                    continue; // in a network represented by another
                }
                let way = (drawn.place[from], drawn.place[to]);
                let (lane, _) = lanes.insert_full(way);
                let stack = *stacks.entry(at.name.clone()).or_insert(lane);
                let number = links.len();
                let link = links.entry((at.name.clone(), way));
                let link = link.or_insert_with(|| Link { number, lane, stack, ..at.clone() });
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
    fn worlds(&self, scene: &Scene, frame: &Frame<'_>) -> (Vec<Value>, Vec<Value>) {
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
            worlds.push(json!({
                "words": format!("{names}{more} ({drops} dropped)"), "drops": drops, "hops": rows.len(),
                "ground": frame.ground(nodes, (top, bottom - top)),
            }));
        }
        (worlds, places)
    }

    /// Maximum queue length of each lane with a queue.
    fn longest(&self) -> BTreeMap<usize, i64> {
        let mut changes = Vec::new();
        for row in &self.rows {
            let stack = self.links[row.link].stack;
            changes.extend(self.time("enqueued_s", row).map(|at| (at, 1, stack)));
            let left = ["dequeued_s", "dropped_s"].into_iter().filter_map(|at| self.time(at, row));
            changes.extend(left.reduce(f64::min).map(|at| (at, -1, stack)));
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
        let flows =
            self.flows.iter().map(|(name, colour)| json!({ "name": name, "colour": colour }));
        json!({
            "room": STACK,
            "step": STEP,
            "links": self.links,
            "flows": flows.collect::<Vec<_>>(),
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

/// What sends in one direction, and its ends; an access point has a receiver for each flow and side.
fn transmitters(network: &Network) -> Vec<(Link, &str, Option<&str>)> {
    let link = |name: &str, rate_bps, delay_s| Link {
        name: name.to_owned(),
        rate_bps,
        delay_s,
        ..Link::default()
    };
    let mut found = Vec::new();
    for one in &network.links {
        let (from, to) = (one.from.as_str(), one.to.as_str());
        let back = |key: &str, own: Option<f64>| one.back.get(key).map_or(own, Value::as_f64);
        let (rate_bps, delay_s) = (back("rate_bps", one.rate_bps), back("delay_s", one.delay_s));
        found.push((link(&one.name, one.rate_bps, one.delay_s), from, Some(to)));
        found.push((link(&format!("{}.back", one.name), rate_bps, delay_s), to, Some(from)));
    }
    for hop in &network.access_points {
        let [name, from] = ["name", "from"].map(|key| hop[key].as_str().unwrap_or_default());
        found.push((link(name, hop["rate_bps"].as_f64(), hop["delay_s"].as_f64()), from, None));
    }
    found
}

/// The node after a link on a route of a flow.
fn next<'a>(flow: &'a Flow, side: &str, link: &str) -> Option<&'a str> {
    let ways = if side == "from" { &flow.routes } else { &flow.back };
    let next = |(names, nodes): (&Vec<String>, &'a Vec<String>)| {
        let hop = names.iter().position(|name| name == link)?;
        nodes.get(hop + 1).map(String::as_str)
    };
    flow.links.get(side)?.iter().zip(ways).filter_map(next).next_back()
}

/// Bytes in base64.
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
