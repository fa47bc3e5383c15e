//! The picture of a network: nodes, links with their properties, and coloured routes of flows. It takes its
//! other colours from the page.

use std::collections::{BTreeMap, BTreeSet};
use std::iter::once;

use indexmap::IndexMap;
use serde::Serialize;
use serde_json::Value;
use talkspurt_proto::math::{atan2, hypot};

use crate::Rows;
use crate::layout::{Plan, Spot, plan};
use crate::network::{Drawn, Network, Wire, pairs, unordered};
use crate::style::{Style, styles};
use crate::text::{general, rate, time};

pub(crate) const COLUMN: f64 = 210.0;
const ROW: f64 = 102.0;
/// Height of a row without space for labels.
const LOW_ROW: f64 = 26.0;
const MARGIN: f64 = 72.0;
const TOP: f64 = 44.0;
const GAP: f64 = 22.0;
const MAX_ROWS_WITH_WORDS: f64 = 24.0;
const NODE_RADIUS: f64 = 8.0;
const LANE: f64 = 4.5;
/// Minimum width of a picture; a page scrolls it.
const MIN_WIDTH: f64 = 0.6;
/// Approximate width of a letter of a name.
pub(crate) const LETTER: f64 = 7.6;
/// Width and height of a link from a node to itself, which is a triangle below the node.
const LOOP: f64 = 26.0;
/// Distance of labels from the middle of fanned-out links, in link lengths.
const FAN: f64 = 0.12;
/// Maximum flows with individual lines; beyond, flows with equal transport and route share one, except that
/// calls and video do not share one with other traffic.
const MAX_LINES: usize = 12;

/// One line of the picture: a flow, or several with the same transport and route.
#[derive(Clone, Debug, Serialize)]
pub struct Route {
    /// Its flows.
    pub flows: Vec<String>,
    /// Its label.
    pub words: String,
    transport: String,
    ends: String,
    #[serde(flatten)]
    style: Style,
    #[serde(skip)]
    routes: Vec<Vec<usize>>,
}

/// A picture and its legend.
#[derive(Clone, Debug, Serialize)]
pub struct Picture {
    /// The picture.
    pub svg: String,
    /// Its lines.
    pub key: Vec<Route>,
}

/// The picture of a network with its flows, by name, transport and source; none without nodes.
#[must_use]
pub fn picture(network: &Network, flows: &Rows) -> Option<Picture> {
    let scene = Scene::of(network, flows)?;
    let frame = Frame::new(&scene, COLUMN);
    let (width, height) = (frame.width, frame.height);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"topology\" viewBox=\"0 0 {width:.0} \
         {height:.0}\" role=\"img\" style=\"max-width:{:.0}px;min-width:{:.0}px\" \
         aria-label=\"Network and routes of the flows\">",
        width * 1.15,
        width * MIN_WIDTH
    );
    frame.parts(&scene.drawn.shown, true, &mut svg);
    // The number of networks that one represents.
    for (world, count) in &scene.drawn.alike {
        let spots = || world.iter().map(|node| frame.node(*node));
        let x = spots().map(|(x, _)| x).fold(f64::INFINITY, f64::min) - NODE_RADIUS;
        let y = spots().map(|(_, y)| y).fold(f64::NEG_INFINITY, f64::max) + 34.0;
        svg += &format!("<text class=\"count\" x=\"{x:.1}\" y=\"{y:.1}\">{count} ×</text>");
    }
    svg.push_str("</svg>");
    Some(Picture { svg, key: scene.lines })
}

/// What is drawn, and where.
pub(crate) struct Scene {
    pub(crate) drawn: Drawn,
    pub(crate) laid: Plan,
    lines: Vec<Route>,
}

impl Scene {
    pub(crate) fn of(network: &Network, flows: &Rows) -> Option<Self> {
        let drawn = Drawn::of(network);
        drawn.shown.first()?;
        let lines = lines(network, &drawn, &styles(flows));
        let routes: Vec<_> = lines.iter().flat_map(|line| line.routes.iter().cloned()).collect();
        let laid = plan(&drawn.shown, &drawn.ends(), &routes);
        Some(Self { drawn, laid, lines })
    }
}

/// The lines to draw, with many flows merged.
fn lines(network: &Network, drawn: &Drawn, styles: &IndexMap<String, Style>) -> Vec<Route> {
    let named: Vec<_> = network.flows.iter().map(|flow| (flow, flow.names())).collect();
    let alone = named.iter().map(|(_, names)| names.len()).sum::<usize>() <= MAX_LINES;
    let mut lines: IndexMap<_, Route> = IndexMap::new();
    for (flow, names) in named.into_iter().filter(|(flow, _)| !flow.routes.is_empty()) {
        let routes: Vec<_> = flow.routes.iter().map(|route| drawn.route(route)).collect();
        let end = |name: &String| match drawn.number(name) {
            Some(number) => drawn.nodes[drawn.place[number]].words.clone(),
            None => name.clone(),
        };
        for name in names {
            let Some(style) = styles.get(&name) else { continue };
            let same = match alone {
                true => (name.clone(), Vec::new(), false),
                false => (flow.transport.clone(), routes.clone(), style.in_background),
            };
            let line = lines.entry(same).or_insert_with(|| Route {
                flows: Vec::new(),
                words: String::new(),
                transport: flow.transport.clone(),
                ends: format!("{} → {}", end(&flow.from), end(&flow.to)),
                style: Style { dashes: if alone { style.dashes } else { &[] }, ..style.clone() },
                routes: routes.clone(),
            });
            line.flows.push(name);
        }
    }
    let mut lines: Vec<_> = lines.into_values().collect();
    for line in &mut lines {
        line.words = match &line.flows[..] {
            [first, .., last] => format!("{} flows: {first} … {last}", line.flows.len()),
            flows => flows.concat(),
        };
    }
    lines
}

/// For each link, by its ends, the lines along it in the order of their lanes: no lines overlap on a link.
fn beside(lines: &[Route]) -> BTreeMap<(usize, usize), Vec<usize>> {
    let mut taken: BTreeMap<(usize, usize), BTreeMap<usize, usize>> = BTreeMap::new();
    for (number, line) in lines.iter().enumerate() {
        let hops = line.routes.iter().flat_map(|route| pairs(route).map(unordered));
        let hops: BTreeSet<_> = hops.collect();
        let used: BTreeSet<_> = hops.iter().flat_map(|hop| taken.get(hop)).flatten().collect();
        let used: BTreeSet<usize> = used.into_iter().map(|(lane, _)| *lane).collect();
        let lane = (0..).find(|lane| !used.contains(lane)).unwrap_or_default();
        for hop in hops {
            taken.entry(hop).or_default().insert(lane, number);
        }
    }
    taken.into_iter().map(|(hop, lanes)| (hop, lanes.into_values().collect())).collect()
}

/// Maps columns and rows to the picture's units.
pub(crate) struct Frame<'a> {
    scene: &'a Scene,
    column: f64,
    row: f64,
    pub(crate) columns: f64,
    pub(crate) margin: f64,
    pub(crate) width: f64,
    height: f64,
    /// Whether there is space for labels.
    pub(crate) worded: bool,
    degree: BTreeMap<usize, u32>,
    beside: BTreeMap<(usize, usize), Vec<usize>>,
    /// The network of each node.
    pub(crate) world: BTreeMap<usize, usize>,
    /// The vertical middle of each network.
    middle: Vec<f64>,
}

impl<'a> Frame<'a> {
    pub(crate) fn new(scene: &'a Scene, column: f64) -> Self {
        let Scene { drawn, laid, lines } = scene;
        let mut degree = BTreeMap::new();
        for (from, to) in drawn.ends() {
            *degree.entry(from).or_default() += 1;
            *degree.entry(to).or_default() += 1;
        }
        let letters = drawn.shown.iter().map(|node| drawn.nodes[*node].words.chars().count());
        let margin = MARGIN.max(LETTER * letters.max().unwrap_or(0) as f64 / 2.0 + 8.0);
        let spots = || laid.spots.values().chain(laid.bends.values().flatten());
        let columns = spots().map(|spot| spot.0).fold(0.0, f64::max);
        let worded = spots().map(|spot| spot.1).fold(0.0, f64::max) + 1.0 <= MAX_ROWS_WITH_WORDS;
        let worlds = laid.worlds.iter().enumerate();
        let world = worlds.flat_map(|(at, nodes)| nodes.iter().map(move |node| (*node, at)));
        let mut frame = Self {
            scene,
            column,
            row: if worded { ROW } else { LOW_ROW },
            columns,
            margin,
            width: columns * column + 2.0 * margin,
            height: 0.0,
            worded,
            degree,
            beside: beside(lines),
            world: world.collect(),
            middle: Vec::new(),
        };
        let ways = laid.bends.keys().flat_map(|(a, b)| frame.way(*a, *b));
        let corners = ways.chain(drawn.shown.iter().map(|node| frame.node(*node)));
        frame.height = corners.map(|(_, y)| y).fold(0.0, f64::max) + 66.0;
        let middle = |nodes: &Vec<usize>| {
            let (least, most) = bounds(nodes.iter().map(|node| frame.node(*node).1));
            (least + most) / 2.0
        };
        frame.middle = laid.worlds.iter().map(middle).collect();
        frame
    }

    /// The position of a node.
    pub(crate) fn node(&self, node: usize) -> (f64, f64) {
        self.at(self.scene.laid.spots[&node], self.world[&node])
    }

    fn at(&self, (column, row): Spot, world: usize) -> (f64, f64) {
        (self.margin + column * self.column, TOP + row * self.row + world as f64 * GAP)
    }

    /// The corners of a link, from one end to the other.
    pub(crate) fn way(&self, a: usize, b: usize) -> Vec<(f64, f64)> {
        let (from, to) = (self.node(a), self.node(b));
        if a == b {
            let ((x, y), half) = (from, LOOP / 2.0);
            return vec![(x, y), (x - half, y + LOOP), (x + half, y + LOOP), (x, y)];
        }
        let bends = &self.scene.laid.bends;
        let ahead = bends.get(&(a, b)).into_iter().flatten();
        let behind = bends.get(&(b, a)).filter(|_| !bends.contains_key(&(a, b)));
        let chain = ahead.chain(behind.into_iter().flat_map(|chain| chain.iter().rev()));
        let chain = chain.map(|spot| self.at(*spot, self.world[&a]));
        once(from).chain(chain).chain(once(to)).collect()
    }

    /// One of the networks without routes, as the background of the animation. `top` and `height` are of its
    /// box.
    pub(crate) fn ground(&self, world: &[usize], (top, height): (f64, f64)) -> String {
        let width = self.width;
        let mut svg = format!(
            "<svg class=\"topology\" viewBox=\"0 {top:.0} {width:.0} {height:.0}\" \
             style=\"min-width:{:.0}px\" aria-hidden=\"true\">",
            width * MIN_WIDTH
        );
        self.parts(world, false, &mut svg);
        svg.push_str("</svg>");
        svg
    }

    /// Links, routes above them, and nodes with their names.
    fn parts(&self, nodes: &[usize], routes: bool, svg: &mut String) {
        let inside: BTreeSet<_> = nodes.iter().collect();
        let drawn = &self.scene.drawn;
        let wires: Vec<_> =
            drawn.wires.iter().filter(|wire| inside.contains(&wire.ends.0)).collect();
        for wire in &wires {
            let kind = if wire.link.is_none() { "wire air" } else { "wire" };
            let points = points(&self.way(wire.ends.0, wire.ends.1));
            *svg += &format!("<polyline class=\"{kind}\" points=\"{points}\"/>");
        }
        if routes {
            self.routes(svg);
        }
        wires.iter().for_each(|wire| self.label(wire, svg));
        for node in drawn.shown.iter().filter(|node| inside.contains(node)) {
            self.draw_node(*node, svg);
        }
    }

    fn routes(&self, svg: &mut String) {
        for (number, line) in self.scene.lines.iter().enumerate() {
            for route in &line.routes {
                let mut corners = Vec::new();
                for (a, b) in pairs(route) {
                    let beside = &self.beside[&unordered((a, b))];
                    let lane = beside.iter().position(|line| *line == number).unwrap_or_default();
                    let shift = (lane as f64 - (beside.len() - 1) as f64 / 2.0) * LANE;
                    corners.extend(shifted(&self.way(a, b), shift));
                }
                let Style { colour, dashes, .. } = &line.style;
                let lengths: Vec<_> = dashes.iter().map(f64::to_string).collect();
                let mut dashes = format!(" stroke-dasharray=\"{}\"", lengths.join(" "));
                dashes.truncate(if lengths.is_empty() { 0 } else { dashes.len() });
                let (points, words) = (points(&corners), escaped(&line.words));
                *svg += &format!(
                    "<polyline class=\"route\" points=\"{points}\" stroke=\"{colour}\"{dashes}>\
                     <title>{words}</title></polyline>"
                );
            }
        }
    }

    fn label(&self, wire: &Wire, svg: &mut String) {
        let Some(link) = &wire.link else { return };
        let lines = words(wire);
        let mtu = link.more.get("mtu").filter(|mtu| !mtu.is_null());
        let mtu = mtu.map_or_else(|| "None".to_owned(), Value::to_string);
        let name = escaped(&wire.words);
        let title = format!("{name}: {}, MTU {mtu}", escaped(&lines.join(", ")));
        if !self.worded {
            *svg += &format!("<g class=\"link-words\"><title>{title}</title></g>");
            return;
        }
        let ((x, y), angle, first) = self.label_at(wire, lines.len());
        *svg += &format!(
            "<g class=\"link-words\" transform=\"translate({x:.1} {y:.1}) rotate({angle:.1})\"><title>\
             {title}</title><text y=\"{first:.1}\" class=\"link-name\">{name}</text>"
        );
        for (place, line) in lines.iter().enumerate() {
            let y = first + 13.0 * (place + 1) as f64;
            *svg += &format!("<text y=\"{y:.1}\">{}</text>", escaped(line));
        }
        svg.push_str("</g>");
    }

    /// The vertical extent of a link's label.
    pub(crate) fn label_span(&self, wire: &Wire) -> [f64; 2] {
        let lines = words(wire);
        let ((_, y), angle, first) = self.label_at(wire, lines.len());
        let letters = lines.iter().chain([&wire.words]).map(|line| line.chars().count());
        let half = LETTER / 2.0 * letters.max().unwrap_or(0) as f64;
        let tilt = half * talkspurt_proto::math::sin(angle.to_radians()).abs();
        [y + first - 10.0 - tilt, y + first + 13.0 * lines.len() as f64 + 4.0 + tilt]
    }

    /// Where a link's label is, its rotation in degrees, and its first position.
    fn label_at(&self, wire: &Wire, lines: usize) -> ((f64, f64), f64, f64) {
        let (from, to) = wire.ends;
        let way = self.way(from, to);
        let (mut a, mut b) = (way[(way.len() - 1) / 2], way[(way.len() - 1) / 2 + 1]);
        // Fanned-out links are labelled near their hosts, where they are farther apart.
        let mut share = match (self.degree[&from], self.degree[&to]) {
            (1, 3..) => 0.5 - FAN,
            (3.., 1) => 0.5 + FAN,
            _ => 0.5,
        };
        if a.0 > b.0 {
            (a, b, share) = (b, a, 1.0 - share);
        }
        let (x, y) = (a.0 + (b.0 - a.0) * share, a.1 + (b.1 - a.1) * share);
        let angle = atan2(b.1 - a.1, b.0 - a.0).to_degrees();
        let routes = self.beside.get(&unordered(wire.ends)).map_or(0, Vec::len);
        let below = (routes as f64 - 1.0) / 2.0 * LANE;
        // Slanted links in the upper half have their labels above.
        let is_above = (a.1 - b.1).abs() > 1.0 && y < self.middle[self.world[&from]] - 1.0;
        let first = match is_above {
            true => (-12_f64).min(-below - 8.0) - 13.0 * lines as f64,
            false => (below + 16.0).max(21.0),
        };
        ((x, y), angle, first)
    }

    fn draw_node(&self, node: usize, svg: &mut String) {
        let (x, y) = self.node(node);
        let node = &self.scene.drawn.nodes[node];
        let fill = node.colour.as_ref().filter(|colour| !colour.is_empty());
        let fill = fill.map_or_else(String::new, |colour| format!(" style=\"fill:{colour}\""));
        let radius = if self.worded { NODE_RADIUS } else { NODE_RADIUS * 0.7 };
        *svg += &format!("<g><title>{}</title>", escaped(&node.name));
        // A stack represents several.
        for back in (0..if node.more > 0 { 3 } else { 1 }).rev() {
            let (x, y) = (x - f64::from(3 * back), y - f64::from(3 * back));
            *svg += &format!(
                "<circle class=\"node\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"{radius:?}\"{fill}/>"
            );
        }
        let above = if self.worded { 16.0 } else { 9.0 } + if node.more > 0 { 5.0 } else { 0.0 };
        let (y, words) = (y - above, escaped(&node.words));
        *svg += &format!("<text class=\"node-name\" x=\"{x:.1}\" y=\"{y:.1}\">{words}</text></g>");
    }
}

fn points(corners: &[(f64, f64)]) -> String {
    let points: Vec<_> = corners.iter().map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
    points.join(" ")
}

fn escaped(text: &str) -> String {
    let text = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    text.replace('"', "&quot;").replace('\'', "&#x27;")
}

/// The least and the greatest value.
pub(crate) fn bounds(values: impl Iterator<Item = f64>) -> (f64, f64) {
    values.fold((f64::INFINITY, f64::NEG_INFINITY), |(a, b), it| (a.min(it), b.max(it)))
}

/// A route shifted sideways, to the same side of a link in both directions.
fn shifted(way: &[(f64, f64)], shift: f64) -> Vec<(f64, f64)> {
    let part = |pair: &[(f64, f64)]| {
        let (a, b) = (pair[0], pair[1]);
        let (left, right) = if b < a { (b, a) } else { (a, b) };
        let length = hypot(a.0 - b.0, a.1 - b.1);
        let (x, y) = ((right.1 - left.1) / length * -shift, (right.0 - left.0) / length * shift);
        [(a.0 + x, a.1 + y), (b.0 + x, b.1 + y)]
    };
    way.windows(2).flat_map(part).collect()
}

/// The label of a link, in lines: rate and delay, queue, impairments.
fn words(wire: &Wire) -> Vec<String> {
    let (Some(rates), Some(link)) = (wire.rate_bps, &wire.link) else {
        return vec!["rate and delay not known".to_owned()];
    };
    let back = |key: &str, text: fn(&Value) -> String| {
        link.back.get(key).map_or_else(String::new, |value| format!(" ⇄ {}", text(value)))
    };
    let rates = span(rates, rate) + &back("rate_bps", |it| rate(it.as_f64().unwrap_or(f64::NAN)));
    let delays = span(wire.delay_s.unwrap_or((f64::NAN, f64::NAN)), time);
    let delays = delays + &back("delay_s", |it| time(it.as_f64().unwrap_or(f64::NAN)));
    let queue = back("queue", |it| it.as_str().unwrap_or_default().to_owned());
    let lines = [format!("{rates}, {delays}"), wire.queue.clone() + &queue, impairments(wire)];
    lines.into_iter().filter(|line| !line.is_empty()).collect()
}

/// Impairments of a link, in either direction, in a few words.
fn impairments(wire: &Wire) -> String {
    let Some(link) = &wire.link else { return String::new() };
    let of = |key: &str| {
        let ways = [link.more.get(key), link.back.get(key).or(link.more.get(key))];
        let flag = |value: &Value| f64::from(u8::from(value == &Value::Bool(true)));
        let number = |value: &Value| value.as_f64().unwrap_or_else(|| flag(value));
        ways.into_iter().flatten().map(number).fold(0.0, f64::max)
    };
    let (jitter, loss) = (of("jitter_s"), of("loss"));
    let all = [
        (jitter > 0.0, format!("jitter {}", time(jitter))),
        (of("bursts") > 0.0, "loss in bursts".to_owned()),
        (of("bursts") == 0.0 && loss > 0.0, format!("loss {} %", general(100.0 * loss, 6))),
        (of("bit_error_rate") > 0.0, "bit errors".to_owned()),
        (of("changes") > 0.0, "changes".to_owned()),
        (of("fails") > 0.0, "fails".to_owned()),
    ];
    let words: Vec<_> = all.into_iter().filter(|(is, _)| *is).map(|(_, words)| words).collect();
    words.join(", ")
}

fn span((least, most): (f64, f64), text: fn(f64) -> String) -> String {
    if least >= most || least.is_nan() {
        text(least)
    } else {
        format!("{} … {}", text(least), text(most))
    }
}
