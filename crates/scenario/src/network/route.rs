//! Routes through the network: the shortest, or those that a flow specifies.
//!
//! Routes are static. The shortest path has the least propagation delay, then the fewest links; among
//! equals, its links come first in the file.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};

use crate::model::{Flow, Transport};
use crate::path::Path;
use crate::problem::Findings;
use crate::words::did_you_mean;

use super::{MAX_PATHS, Network};

/// Maximum links of a route: packets count hops in eight bits.
const MAX_HOPS: usize = 255;

/// One path of a flow there and back, as indices into [`Network::links`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Routes {
    /// From the opening side to the answering side.
    pub forward: Vec<usize>,
    /// From the answering side to the opening side.
    pub backward: Vec<usize>,
}

impl Routes {
    pub(super) fn way(&self, flow: usize, side: usize, path: u8) -> Way<'_> {
        let links = if side == 0 { &self.forward } else { &self.backward };
        Way { flow, side, path, links }
    }
}

/// One route of packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Way<'a> {
    /// The flow, by number.
    pub flow: usize,
    /// The sending side: 0 opens, 1 answers.
    pub side: usize,
    /// The flow's path, 0 being the primary one.
    pub path: u8,
    /// Its links in order.
    pub links: &'a [usize],
}

/// Propagation delay in nanoseconds, then links: the metric of shortest paths.
type Distance = (u64, u32);

/// Distances of nodes to destinations that were found before.
#[derive(Default)]
pub(super) struct Known {
    /// By destination, of the nodes from which it is reached: separate networks do not know of each other.
    to: BTreeMap<usize, Vec<(usize, Distance)>>,
    /// How many there are in all.
    count: usize,
    /// Of all nodes, without a distance between two searches.
    best: Vec<Option<Distance>>,
}

/// Distances that are kept; more are forgotten, and found again.
const MAX_KNOWN: usize = 4_000_000;

impl Network {
    /// The shortest route between two nodes, for packets outside all flows (ICMP from a router); empty if
    /// they are the same, `None` if there is none.
    #[must_use]
    pub fn route(&self, from: usize, to: usize) -> Option<Vec<usize>> {
        self.shortest(from, to, &mut Known::default())
    }

    /// The shortest route. A host with a single incoming link is reached through that link's start, so that
    /// the distances to a router serve all hosts behind it.
    fn shortest(&self, from: usize, to: usize, known: &mut Known) -> Option<Vec<usize>> {
        let (door, last) = match self.incoming[to][..] {
            [only] if from != to => (self.links[only].from, Some(only)),
            _ => (to, None),
        };
        if !known.to.contains_key(&door) {
            if known.count > MAX_KNOWN {
                known.to.clear();
                known.count = 0;
            }
            let found = self.distances(door, &mut known.best);
            known.count += found.len();
            known.to.insert(door, found);
        }
        let mut route = self.walk(from, door, &known.to[&door])?;
        route.extend(last);
        Some(route)
    }

    /// Distances to `to` of the nodes from which it is reached (Dijkstra), by node. `best` has none before and
    /// after.
    fn distances(&self, to: usize, best: &mut Vec<Option<Distance>>) -> Vec<(usize, Distance)> {
        best.resize(self.nodes.len(), None);
        let mut reached = Vec::new();
        let mut open = BinaryHeap::from([Reverse(((0, 0), to))]);
        while let Some(Reverse((distance, node))) = open.pop() {
            if best[node].is_some() {
                continue;
            }
            best[node] = Some(distance);
            reached.push((node, distance));
            for &link in &self.incoming[node] {
                let from = self.links[link].from;
                if best[from].is_none() {
                    open.push(Reverse((self.farther(distance, link), from)));
                }
            }
        }
        reached.iter().for_each(|(node, _)| best[*node] = None);
        reached.sort_unstable_by_key(|(node, _)| *node);
        reached
    }

    fn farther(&self, (delay, hops): Distance, link: usize) -> Distance {
        (delay.saturating_add(self.links[link].delay.as_nanos()), hops + 1)
    }

    /// Follows decreasing distances, over the first matching link in the file.
    fn walk(&self, from: usize, to: usize, best: &[(usize, Distance)]) -> Option<Vec<usize>> {
        let best = |node| {
            let place = best.binary_search_by_key(&node, |(node, _)| *node);
            place.ok().map(|place| best[place].1)
        };
        let mut route = Vec::new();
        let mut here = from;
        while here != to {
            let rest = best(here)?;
            let (link, next) = self.outgoing[here]
                .iter()
                .copied()
                .find(|&(link, next)| best(next).is_some_and(|d| self.farther(d, link) == rest))?;
            route.push(link);
            here = next;
        }
        Some(route)
    }

    pub(super) fn routes_of(
        &self,
        flow: &Flow,
        path: &Path,
        known: &mut Known,
        found: &mut Findings,
    ) -> Option<Vec<Routes>> {
        let from = self.end(&path.key("from"), &flow.from, found);
        let to = self.end(&path.key("to"), &flow.to, found);
        let (from, to) = (from?, to?);
        if from == to {
            found
                .add(path.key("to"), format!("the flow starts and ends at the node {:?}", flow.to));
            return None;
        }
        if !flow.paths.is_empty() {
            return self.several(flow, path, found);
        }
        if let Some(via) = &flow.via {
            return Some(vec![self.routes_via(flow, via, &path.key("via"), found)?]);
        }
        let forward = self.shortest(from, to, known);
        let routes = forward.zip(self.shortest(to, from, known));
        let Some((forward, backward)) = routes else {
            found.add(
                path.key("to"),
                format!("no links lead from {:?} to {:?}", flow.from, flow.to),
            );
            return None;
        };
        Some(vec![self.short_enough(Routes { forward, backward }, path.key("to"), found)?])
    }

    /// The paths of a flow that specifies them.
    fn several(&self, flow: &Flow, path: &Path, found: &mut Findings) -> Option<Vec<Routes>> {
        let whole = found.0.len();
        let list = path.key("paths");
        if flow.via.is_some() {
            found.add(path.key("via"), "`paths` says already where the flow goes; leave one out");
        }
        let (count, transport) = (flow.paths.len(), &flow.transport);
        if count > 1 && !matches!(transport, Transport::Sctp(_)) {
            let message = format!("{} has one path; only sctp has several", transport.name());
            found.add(list.clone(), message);
        }
        if count > MAX_PATHS {
            found.add(list, format!("{count} paths; at most {MAX_PATHS} are supported"));
            return None;
        }
        let mut all: Vec<Routes> = Vec::with_capacity(count);
        for (index, nodes) in flow.paths.iter().enumerate() {
            let path = list.index(index);
            let Some(routes) = self.routes_via(flow, nodes, &path, found) else { continue };
            if let Some(other) = all.iter().position(|other| *other == routes) {
                found.add(path, format!("the same way as paths[{other}]"));
            }
            all.push(routes);
        }
        (found.0.len() == whole).then_some(all)
    }

    fn end(&self, path: &Path, name: &str, found: &mut Findings) -> Option<usize> {
        let node = self.node(name);
        if node.is_none() {
            found.add(path.clone(), format!("no link reaches a node {name:?}")).hint(did_you_mean(
                "nodes are",
                name,
                self.nodes.iter().map(String::as_str),
            ));
        }
        node
    }

    fn routes_via(
        &self,
        flow: &Flow,
        via: &[String],
        path: &Path,
        found: &mut Findings,
    ) -> Option<Routes> {
        let whole = found.0.len();
        if via.first() != Some(&flow.from) || via.last() != Some(&flow.to) {
            let message = format!("must start at {:?} and end at {:?}", flow.from, flow.to);
            found.add(path.clone(), message);
        }
        let mut seen = BTreeSet::new();
        let mut nodes = Vec::new();
        for (index, name) in via.iter().enumerate() {
            let path = path.index(index);
            nodes.push(self.end(&path, name, found));
            if !seen.insert(name) {
                found.add(path, format!("the way passes {name:?} twice"));
            }
        }
        let mut routes = Routes::default();
        for (index, pair) in nodes.windows(2).enumerate() {
            let (Some(a), Some(b)) = (pair[0], pair[1]) else { continue };
            match self.between(a, b).zip(self.between(b, a)) {
                Some((forth, back)) => {
                    routes.forward.push(forth);
                    routes.backward.push(back);
                }
                None => self.no_link(a, b, path.index(index + 1), found),
            }
        }
        routes.backward.reverse();
        if found.0.len() > whole { None } else { self.short_enough(routes, path.clone(), found) }
    }

    fn no_link(&self, from: usize, to: usize, path: Path, found: &mut Findings) {
        let mut reached: Vec<&str> =
            self.outgoing[from].iter().map(|(_, to)| self.nodes[*to].as_str()).collect();
        reached.dedup();
        let (from, to) = (&self.nodes[from], &self.nodes[to]);
        found
            .add(path, format!("no link joins {from:?} and {to:?}"))
            .hint(format!("links from {from:?} lead to: {}", crate::words::list(&reached)));
    }

    fn short_enough(&self, routes: Routes, path: Path, found: &mut Findings) -> Option<Routes> {
        let hops = routes.forward.len().max(routes.backward.len());
        if hops > MAX_HOPS {
            found.add(path, format!("the way has {hops} links; at most {MAX_HOPS} are counted"));
            return None;
        }
        Some(routes)
    }

    /// The link with the least delay between two neighbours, the first in the file among equals.
    fn between(&self, from: usize, to: usize) -> Option<usize> {
        let links = self.outgoing[from].iter().filter(|(_, far)| *far == to).map(|(link, _)| *link);
        links.min_by_key(|link| self.links[*link].delay)
    }
}
