//! What the picture of a network shows. Similar hosts and similar networks are drawn once.
//!
//! Hosts are similar if a single link connects each to the same node and their names differ in a numeric
//! suffix; networks, if they are disjoint and have equal links between nodes in the same order. A few are
//! drawn individually; of many, one represents all.

use std::collections::{BTreeMap, BTreeSet};

use indexmap::{IndexMap, IndexSet};
use serde::Deserialize;
use serde_json::{Map, Value};

/// Similar hosts up to this number are drawn individually.
const MAX_ALIKE: usize = 4;
/// Similar networks up to this number are drawn individually.
const MAX_WORLDS: usize = 4;

/// A network, as `talkspurt_experiment::topology` describes it; numbers of imported traces are not known.
#[derive(Clone, Debug, Deserialize)]
pub struct Network {
    pub(crate) nodes: Vec<Node>,
    pub(crate) links: Vec<Link>,
    #[serde(default)]
    pub(crate) access_points: Vec<Value>,
    pub(crate) flows: Vec<Flow>,
}

#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Node {
    pub(crate) name: String,
    pub(crate) colour: Option<String>,
    /// As it is drawn.
    #[serde(default)]
    pub(crate) words: String,
    /// Nodes that it represents, besides itself.
    #[serde(default)]
    pub(crate) more: usize,
}

#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Link {
    pub(crate) name: String,
    pub(crate) from: String,
    pub(crate) to: String,
    pub(crate) rate_bps: Option<f64>,
    pub(crate) delay_s: Option<f64>,
    queue: Option<String>,
    /// What differs on the way back.
    #[serde(default)]
    pub(crate) back: Map<String, Value>,
    #[serde(flatten)]
    pub(crate) more: Map<String, Value>,
}

#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Flow {
    name: String,
    pub(crate) transport: String,
    pub(crate) from: String,
    pub(crate) to: String,
    pub(crate) routes: Vec<Vec<String>>,
    #[serde(default)]
    pub(crate) back: Vec<Vec<String>>,
    /// Of its routes, by side.
    #[serde(default)]
    pub(crate) links: IndexMap<String, Vec<Vec<String>>>,
    members: Option<(String, u64, u64)>,
}

impl Flow {
    /// Its name, or those of all flows that differ only in it.
    pub(crate) fn names(&self) -> Vec<String> {
        let Some((group, first, last)) = &self.members else { return vec![self.name.clone()] };
        (*first..=*last).map(|number| format!("{group}-{number}")).collect()
    }
}

/// A link between drawn nodes, by number.
pub(crate) struct Wire {
    pub(crate) ends: (usize, usize),
    pub(crate) words: String,
    count: usize,
    /// The least and the greatest of the links that it represents.
    pub(crate) rate_bps: Option<(f64, f64)>,
    pub(crate) delay_s: Option<(f64, f64)>,
    pub(crate) queue: String,
    /// None for a radio transmission, which is a hop of routes without a link.
    pub(crate) link: Option<Link>,
}

/// The drawn part of a network.
pub(crate) struct Drawn {
    /// All nodes; only those in `shown` are drawn.
    pub(crate) nodes: Vec<Node>,
    pub(crate) shown: Vec<usize>,
    pub(crate) wires: Vec<Wire>,
    /// The drawn node that stands for each node: itself or its representative.
    pub(crate) place: Vec<usize>,
    /// Networks that represent several, and how many.
    pub(crate) alike: Vec<(Vec<usize>, usize)>,
    /// Nodes of networks that others represent.
    pub(crate) elsewhere: BTreeSet<usize>,
    numbers: IndexMap<String, usize>,
}

impl Drawn {
    /// The nodes and links to draw.
    pub(crate) fn of(network: &Network) -> Self {
        let node = |node: &Node| Node { words: node.name.clone(), ..node.clone() };
        let count = network.nodes.len();
        let names = network.nodes.iter().enumerate();
        let mut drawn = Self {
            nodes: network.nodes.iter().map(node).collect(),
            shown: (0..count).collect(),
            wires: Vec::new(),
            place: (0..count).collect(),
            alike: Vec::new(),
            elsewhere: BTreeSet::new(),
            numbers: names.map(|(number, place)| (place.name.clone(), number)).collect(),
        };
        let wire = |link: &Link| {
            Some(Wire {
                ends: (drawn.number(&link.from)?, drawn.number(&link.to)?),
                words: link.name.clone(),
                count: 1,
                rate_bps: link.rate_bps.map(|rate| (rate, rate)),
                delay_s: link.delay_s.map(|delay| (delay, delay)),
                queue: link.queue.clone().unwrap_or_default(),
                link: Some(link.clone()),
            })
        };
        let mut wires: Vec<_> = network.links.iter().filter_map(wire).collect();
        drawn.add_air(network, &mut wires);
        drawn.wires = wires;
        drawn.merge_hosts();
        drawn.merge_worlds();
        drawn
    }

    /// The number of a node.
    pub(crate) fn number(&self, name: &str) -> Option<usize> {
        self.numbers.get(name).copied()
    }

    /// The drawn nodes of a route.
    pub(crate) fn route(&self, names: &[String]) -> Vec<usize> {
        let numbers = names.iter().filter_map(|name| self.number(name));
        numbers.map(|number| self.place[number]).collect()
    }

    fn add_air(&self, network: &Network, wires: &mut Vec<Wire>) {
        let wired: BTreeSet<_> = wires.iter().map(|wire| unordered(wire.ends)).collect();
        let mut hops = IndexMap::new();
        for route in network.flows.iter().flat_map(|flow| &flow.routes) {
            hops.extend(pairs(&self.route(route)).map(|ends| (unordered(ends), ends)));
        }
        hops.retain(|hop, _| !wired.contains(hop));
        wires.extend(hops.into_values().map(|ends| Wire {
            ends,
            words: String::new(),
            count: 1,
            rate_bps: None,
            delay_s: None,
            queue: String::new(),
            link: None,
        }));
    }

    /// Merges many similar hosts into one.
    fn merge_hosts(&mut self) {
        let mut links = vec![Vec::new(); self.nodes.len()];
        for (number, wire) in self.wires.iter().enumerate() {
            links[wire.ends.0].push(number);
            links[wire.ends.1].push(number);
        }
        let mut groups: IndexMap<_, Vec<(usize, usize)>> = IndexMap::new();
        for (number, node) in self.nodes.iter().enumerate() {
            let head = node.name.trim_end_matches(|letter: char| letter.is_ascii_digit());
            let [link] = links[number][..] else { continue };
            if head.len() == node.name.len() {
                continue;
            }
            let (from, to) = self.wires[link].ends;
            let other = if from == number { to } else { from };
            let key = (head.to_owned(), other, from == number, node.colour.clone());
            groups.entry(key).or_default().push((number, link));
        }
        let mut gone = BTreeSet::new();
        for members in groups.into_values().filter(|members| members.len() > MAX_ALIKE) {
            self.merge(&members);
            gone.extend(members[1..].iter().map(|(_, link)| *link));
        }
        let mut number = 0..;
        self.wires.retain(|_| number.next().is_none_or(|number| !gone.contains(&number)));
        self.shown.retain(|number| self.place[*number] == *number);
    }

    /// Lets the first of several hosts, each with its link, represent all.
    fn merge(&mut self, members: &[(usize, usize)]) {
        let (first, last) = (members[0], members[members.len() - 1]);
        let words = format!("{} … {}", self.nodes[first.0].name, self.nodes[last.0].name);
        let node = &mut self.nodes[first.0];
        (node.words, node.more) = (words, members.len() - 1);
        for (number, _) in members {
            self.place[*number] = first.0;
        }
        let wires = || members.iter().map(|(_, link)| &self.wires[*link]);
        let span = |of: fn(&Wire) -> Option<(f64, f64)>| {
            let all: Option<Vec<_>> = wires().map(of).collect();
            all?.into_iter().reduce(|one, other| (one.0.min(other.0), one.1.max(other.1)))
        };
        let (rate_bps, delay_s) = (span(|wire| wire.rate_bps), span(|wire| wire.delay_s));
        let alike = wires().all(|wire| wire.queue == self.wires[first.1].queue);
        let words = format!("{} … {}", self.wires[first.1].words, self.wires[last.1].words);
        let wire = &mut self.wires[first.1];
        (wire.words, wire.count) = (words, members.len());
        (wire.rate_bps, wire.delay_s) = (rate_bps, delay_s);
        if !alike {
            wire.queue.clear();
        }
    }

    /// Merges many similar networks into one.
    fn merge_worlds(&mut self) {
        let mut classes: IndexMap<_, Vec<Vec<usize>>> = IndexMap::new();
        for world in components(&self.shown, &self.ends()) {
            classes.entry(self.signature(&world)).or_default().push(world);
        }
        for worlds in classes.into_values().filter(|worlds| worlds.len() > MAX_WORLDS) {
            let mut merged = BTreeMap::new();
            for place in 0..worlds[0].len() {
                let same: Vec<_> = worlds.iter().map(|world| world[place]).collect();
                let words: Vec<_> = same.iter().map(|n| self.nodes[*n].words.as_str()).collect();
                self.nodes[same[0]].words = in_common(&words);
                merged.extend(same.iter().map(|number| (*number, same[0])));
            }
            for (number, at) in self.place.iter_mut().enumerate() {
                if let Some(other) = merged.get(at).filter(|other| *other != at) {
                    *at = *other;
                    self.elsewhere.insert(number);
                }
            }
            let links: Vec<_> = worlds.iter().map(|world| self.wires_of(world)).collect();
            for (place, link) in links[0].iter().enumerate() {
                let same = links.iter().map(|links| self.wires[links[place]].words.as_str());
                self.wires[*link].words = in_common(&same.collect::<Vec<_>>());
            }
            self.alike.push((worlds[0].clone(), worlds.len()));
            self.shown.retain(|number| self.place[*number] == *number);
            self.wires.retain(|wire| self.place[wire.ends.0] == wire.ends.0);
        }
    }

    /// The ends of the links.
    pub(crate) fn ends(&self) -> Vec<(usize, usize)> {
        self.wires.iter().map(|wire| wire.ends).collect()
    }

    fn wires_of(&self, world: &[usize]) -> Vec<usize> {
        let inside: BTreeSet<_> = world.iter().collect();
        let wires = self.wires.iter().enumerate();
        wires.filter(|(_, wire)| inside.contains(&wire.ends.0)).map(|(number, _)| number).collect()
    }

    /// Equal for networks that differ only in names.
    fn signature(&self, world: &[usize]) -> String {
        let place: IndexSet<_> = world.iter().copied().collect();
        let wire = |number: usize| {
            let wire = &self.wires[number];
            let ends = (place.get_index_of(&wire.ends.0), place.get_index_of(&wire.ends.1));
            let more = wire.link.as_ref().map(|link| (&link.back, &link.more));
            (ends, wire.count, wire.rate_bps, wire.delay_s, &wire.queue, more)
        };
        let wires: Vec<_> = self.wires_of(world).into_iter().map(wire).collect();
        let nodes = world.iter().map(|number| &self.nodes[*number]);
        let nodes: Vec<_> = nodes.map(|node| (&node.colour, node.more)).collect();
        format!("{nodes:?} {wires:?}")
    }
}

/// Neighbours in a route.
pub(crate) fn pairs(route: &[usize]) -> impl Iterator<Item = (usize, usize)> {
    route.windows(2).map(|pair| (pair[0], pair[1]))
}

/// A link without its direction.
pub(crate) fn unordered((from, to): (usize, usize)) -> (usize, usize) {
    (from.min(to), from.max(to))
}

/// Disjoint networks, each with its nodes in order of discovery.
pub(crate) fn components(nodes: &[usize], links: &[(usize, usize)]) -> Vec<Vec<usize>> {
    let mut near: IndexMap<usize, Vec<usize>> = nodes.iter().map(|n| (*n, Vec::new())).collect();
    for (from, to) in links {
        near[from].push(*to);
        near[to].push(*from);
    }
    let (mut seen, mut groups) = (BTreeSet::new(), Vec::new());
    for first in nodes {
        if !seen.insert(*first) {
            continue;
        }
        let (mut group, mut at) = (vec![*first], 0);
        while let Some(here) = group.get(at) {
            at += 1;
            group.extend(near[here].iter().filter(|next| seen.insert(**next)));
        }
        groups.push(group);
    }
    groups
}

/// The common part of names, with an ellipsis for the rest.
fn in_common(names: &[&str]) -> String {
    let letters = |name: &&str| name.chars().collect::<Vec<_>>();
    let names: Vec<Vec<char>> = names.iter().map(letters).collect();
    let first = &names[0];
    if names.iter().all(|name| name == first) {
        return first.iter().collect();
    }
    let least = names.iter().map(Vec::len).min().unwrap_or(0);
    let all = |same: &dyn Fn(&Vec<char>) -> bool| names.iter().all(same);
    let head = (0..least).take_while(|&at| all(&|name| name[at] == first[at])).count();
    let last = |name: &Vec<char>, at: usize| name[name.len() - 1 - at];
    let tail = (0..least - head).take_while(|&at| all(&|name| last(name, at) == last(first, at)));
    let tail = first.len() - tail.count();
    first[..head].iter().chain(&['…']).chain(&first[tail..]).collect()
}
