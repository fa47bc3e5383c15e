//! Expands a shape into links.
//!
//! The links are created in the tree, before `--set`, axes and checks, so that later stages know no shapes;
//! a finding about a shape is reported once, with its line.

use indexmap::IndexMap;
use serde_json::Value as Json;
use talkspurt_proto::time::Duration;

use crate::check::shape;
use crate::model::{DELAY_TO, Topology};
use crate::path::Path;
use crate::problem::{Finding, Findings};
use crate::schema::TAG;
use crate::tree::{Tree, Value};

/// The result of expanding a scenario's shape.
#[derive(Default)]
pub(crate) enum Shape {
    /// There is no shape.
    #[default]
    None,
    /// The shape is invalid.
    Broken,
    /// Links were created.
    Made {
        /// The table as written.
        table: Box<Tree>,
        /// The key that each link was created from.
        made: IndexMap<String, &'static str>,
    },
}

/// One link of a shape.
struct Wire {
    name: String,
    from: String,
    to: String,
    /// The key it is written under.
    of: &'static str,
    /// Its index, from 0, among those that share the key, and their number.
    place: (u32, u32),
}

impl Wire {
    fn new(name: impl Into<String>, from: &str, to: &str, of: &'static str) -> Self {
        let (from, to) = (from.to_owned(), to.to_owned());
        Self { name: name.into(), from, to, of, place: (0, 1) }
    }
    fn at(mut self, place: u32, of: u32) -> Self {
        self.place = (place, of);
        self
    }
}

/// Replaces the shape in the tree by its links.
pub(crate) fn expand(schema: &Json, tree: &mut Tree, found: &mut Findings) -> Shape {
    let path = Path::of(&["topology"]);
    let Some(table) = tree.key("topology").cloned() else { return Shape::None };
    tree.take(&path);
    let whole = found.0.len();
    shape::check(&schema["properties"]["topology"], &table, &path, found);
    let Ok(topology) = serde_json::from_value::<Topology>(table.json()) else {
        return Shape::Broken;
    };
    if found.0.len() > whole {
        return Shape::Broken;
    }
    let written = tree.key("links").cloned();
    let mut links = IndexMap::new();
    let mut made = IndexMap::new();
    for wire in wires(&topology) {
        let Some(template) = table.key(wire.of) else { continue };
        let mut link = link(template, &wire);
        if let Some(own) = written.as_ref().and_then(|links| links.key(&wire.name)) {
            merge(&mut link, own);
        }
        made.insert(wire.name.clone(), wire.of);
        links.insert(wire.name, link);
    }
    let origin = written.as_ref().map_or_else(|| table.origin.clone(), |own| own.origin.clone());
    match written.map(|own| own.value) {
        Some(Value::Table(own)) => {
            for (name, link) in own {
                links.entry(name).or_insert(link);
            }
        }
        None => {}
        // A value that is not a table is reported by the shape check.
        Some(_) => return Shape::Broken,
    }
    tree.put(&Path::of(&["links"]), Tree { value: Value::Table(links), origin });
    Shape::Made { table: Box::new(table), made }
}

fn link(template: &Tree, wire: &Wire) -> Tree {
    let mut link = template.clone();
    let Value::Table(table) = &mut link.value else { return link };
    for (end, node) in [("from", &wire.from), ("to", &wire.to)] {
        table.insert(end.to_owned(), Tree::text(node, &template.origin));
    }
    let Some(last) = table.shift_remove(DELAY_TO) else { return link };
    let nanos = |tree: &Tree| Some(tree.as_text()?.parse::<Duration>().ok()?.as_nanos());
    let (place, of) = wire.place;
    if let (Some(first), Some(end)) = (table.get("delay").and_then(nanos), nanos(&last))
        && place > 0
    {
        let [first, end, place, steps]: [i128; 4] =
            [first.into(), end.into(), place.into(), (of - 1).into()];
        let between = first + (end - first) * place / steps;
        let delay = Duration::from_nanos(u64::try_from(between).unwrap_or_default());
        table.insert("delay".to_owned(), Tree::text(&delay.to_string(), &last.origin));
    }
    link
}

/// Overrides the shape's values with a link's own; tables that do not name their kind are merged key by key.
fn merge(link: &mut Tree, own: &Tree) {
    match (&mut link.value, &own.value) {
        (Value::Table(table), Value::Table(over)) if !over.contains_key(TAG) => {
            for (key, value) in over {
                match table.get_mut(key) {
                    Some(inner) => merge(inner, value),
                    None => drop(table.insert(key.clone(), value.clone())),
                }
            }
        }
        _ => *link = own.clone(),
    }
}

fn wires(topology: &Topology) -> Vec<Wire> {
    match topology {
        Topology::Dumbbell(dumbbell) => {
            let (left, right) = (dumbbell.left, dumbbell.right.unwrap_or(dumbbell.left));
            let on_right = if dumbbell.right_access.is_some() { "right_access" } else { "access" };
            let mut wires = Vec::new();
            for (place, name) in (0..left).map(|k| (k, format!("left-{}", k + 1))) {
                wires.push(Wire::new(&name, &name, "west", "access").at(place, left));
            }
            wires.push(Wire::new("bottleneck", "west", "east", "bottleneck"));
            for (place, name) in (0..right).map(|k| (k, format!("right-{}", k + 1))) {
                wires.push(Wire::new(&name, "east", &name, on_right).at(place, right));
            }
            wires
        }
        Topology::Chain(chain) => {
            let node = |k: u32| format!("node-{k}");
            let hop = |k: u32| {
                Wire::new(format!("hop-{k}"), &node(k), &node(k + 1), "hop").at(k - 1, chain.hops)
            };
            (1..=chain.hops).map(hop).collect()
        }
        Topology::ParkingLot(lot) => {
            let count = lot.bottlenecks;
            let router = |k: u32| format!("router-{k}");
            let mut wires = vec![
                Wire::new("in", "in", &router(1), "access").at(0, count + 1),
                Wire::new("out", &router(count + 1), "out", "access").at(0, count + 1),
            ];
            for k in 1..=count {
                let [enter, leave] = [format!("in-{k}"), format!("out-{k}")];
                let middle =
                    Wire::new(format!("bottleneck-{k}"), &router(k), &router(k + 1), "bottleneck");
                wires.push(Wire::new(&enter, &enter, &router(k), "access").at(k, count + 1));
                wires.push(middle.at(k - 1, count));
                wires.push(Wire::new(&leave, &router(k + 1), &leave, "access").at(k, count + 1));
            }
            wires
        }
        Topology::TwoPaths(_) => ["north", "south"]
            .into_iter()
            .flat_map(|side| {
                let [west, east] = [format!("{side}-west"), format!("{side}-east")];
                [
                    Wire::new(format!("left-{side}"), "left", &west, "access"),
                    Wire::new(side, &west, &east, side),
                    Wire::new(format!("{side}-right"), &east, "right", "access"),
                ]
            })
            .collect(),
        Topology::WirelessEdge(edge) => {
            let mut wires = vec![Wire::new("wire", "server", "base", "wire")];
            for (place, name) in (0..edge.stations).map(|k| (k, format!("station-{}", k + 1))) {
                wires.push(Wire::new(&name, &name, "base", "radio").at(place, edge.stations));
            }
            wires
        }
    }
}

impl Shape {
    /// Moves findings about links to the shape they came from, once each.
    pub(crate) fn tell(&self, found: &mut Findings) {
        let Self::Made { table, made } = self else { return };
        let mut told: Vec<Finding> = Vec::with_capacity(found.0.len());
        for mut finding in std::mem::take(&mut found.0) {
            if let Some((of, within)) = template(made, &finding.path) {
                let of = Path::of(&[of]);
                let there = of.joined(&Path(within.to_vec()));
                let in_shape = |path: &Path| Path::of(&["topology"]).joined(path);
                let from = |path: &Path| finding.origin.as_ref() == Some(table.origin_of(path));
                let last = of.key(DELAY_TO);
                if from(&there) {
                    finding.path = in_shape(&there);
                } else if there == of.key("delay") && from(&last) {
                    // Of the derived delays, the last is as written.
                    finding.path = in_shape(&last);
                    told.retain(|other| other.path != finding.path);
                }
            }
            if !told.contains(&finding) {
                told.push(finding);
            }
        }
        found.0 = told;
    }
}

/// The key that a field of a link was created from, and the path to the field in it.
fn template<'a>(
    made: &IndexMap<String, &'static str>,
    path: &'a Path,
) -> Option<(&'static str, &'a [crate::path::Step])> {
    use crate::path::Step::Key;
    match path.0.as_slice() {
        [Key(links), Key(name), within @ ..] if links == "links" => {
            Some((*made.get(name.as_str())?, within))
        }
        _ => None,
    }
}
