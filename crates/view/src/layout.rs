//! Places of nodes in the picture of a network.
//!
//! A node's column is its position on the longest route through it. Within a column, pure senders are above
//! forwarding nodes, pure receivers below; each node is placed near the mean row of its neighbours, at least
//! one row apart (isotonic regression by pooling adjacent violators), with the greatest weight on forwarding
//! nodes. A link across several columns has a bend in each, so that it avoids nodes.

use std::collections::{BTreeMap, BTreeSet};
use std::iter::once;

use indexmap::{IndexMap, IndexSet};

use crate::network::{components, pairs};
use crate::text::rounded;

const SWEEPS: usize = 12;
/// Weights of nodes that forward, of bends, and of hosts.
const WEIGHTS: [f64; 3] = [1e6, 1e3, 1.0];

/// A column and a row; rows of one network start at 0 and may be fractional.
pub(crate) type Spot = (f64, f64);
type Link = (usize, usize);

/// Positions of nodes, by number, and the bends of links that cross columns, from end to end.
pub(crate) struct Plan {
    pub(crate) spots: BTreeMap<usize, Spot>,
    pub(crate) bends: IndexMap<Link, Vec<Spot>>,
    pub(crate) worlds: Vec<Vec<usize>>,
}

/// A position for each node.
pub(crate) fn plan(nodes: &[usize], links: &[Link], routes: &[Vec<usize>]) -> Plan {
    let column = columns(nodes, links, routes);
    let worlds = components(nodes, links);
    let (mut spots, mut bends, mut top) = (BTreeMap::new(), IndexMap::new(), 0.0);
    for world in &worlds {
        let place: BTreeMap<_, _> = world.iter().enumerate().map(|(at, node)| (node, at)).collect();
        // Nodes first, then bends.
        let mut within: Vec<usize> = world.iter().map(|node| column[node]).collect();
        let ends: IndexSet<_> = links.iter().filter(|link| place.contains_key(&link.0)).collect();
        let (mut edges, mut chains) = (Vec::new(), Vec::new());
        for &(a, b) in ends {
            let (from, to, first) = (column[&a], column[&b], within.len());
            within.extend(from + 1..to);
            within.extend((to + 1..from).rev());
            let chain = first..within.len();
            let stops = once(place[&a]).chain(chain.clone()).chain(once(place[&b]));
            edges.extend(pairs(&stops.collect::<Vec<_>>()));
            chains.push(((a, b), chain));
        }
        let rows = rows(&within, &edges, world.len());
        let least = rows.iter().copied().fold(f64::INFINITY, f64::min);
        let most = rows.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let spot = |at: usize| (within[at] as f64, top + rows[at] - least);
        spots.extend(world.iter().enumerate().map(|(at, node)| (*node, spot(at))));
        bends.extend(chains.into_iter().map(|(link, chain)| (link, chain.map(spot).collect())));
        top += most - least + 1.0;
    }
    Plan { spots, bends, worlds }
}

/// Longest path from a source along the routes; later routes against earlier ones yield.
fn columns(nodes: &[usize], links: &[Link], routes: &[Vec<usize>]) -> BTreeMap<usize, usize> {
    let mut after: BTreeMap<usize, BTreeSet<usize>> =
        nodes.iter().map(|node| (*node, BTreeSet::new())).collect();
    let mut add = |a: usize, b: usize| {
        if !after[&a].contains(&b) && !reaches(&after, b, a) {
            after.entry(a).or_default().insert(b);
        }
    };
    for route in routes.iter().collect::<IndexSet<_>>() {
        pairs(route).for_each(|(a, b)| add(a, b));
    }
    // Nodes on no route follow their neighbours; a link against a route yields, because its end is reached.
    links.iter().for_each(|(a, b)| add(*a, *b));
    let mut column: BTreeMap<usize, usize> = nodes.iter().map(|node| (*node, 0)).collect();
    let edges = after.iter().flat_map(|(node, next)| next.iter().map(|next| (*node, *next)));
    let edges: Vec<Link> = edges.collect();
    let mut is_changed = true;
    while std::mem::take(&mut is_changed) {
        for (node, next) in &edges {
            let least = column[node] + 1;
            is_changed |= column.insert(*next, least.max(column[next])) < Some(least);
        }
    }
    // A node without incoming edges is placed directly before its successor, not at the far left.
    let led_to: BTreeSet<_> = edges.iter().map(|(_, next)| *next).collect();
    for node in nodes.iter().copied().filter(|node| !led_to.contains(node)) {
        if let Some(next) = after[&node].iter().map(|next| column[next]).min() {
            column.insert(node, next - 1);
        }
    }
    column
}

fn reaches(after: &BTreeMap<usize, BTreeSet<usize>>, start: usize, end: usize) -> bool {
    let (mut seen, mut todo) = (BTreeSet::from([start]), vec![start]);
    while let Some(here) = todo.pop() {
        if here == end {
            return true;
        }
        todo.extend(after[&here].iter().filter(|next| seen.insert(**next)));
    }
    false
}

/// The row of each node and bend, given their columns; the first ones are nodes.
fn rows(column: &[usize], edges: &[Link], nodes: usize) -> Vec<f64> {
    let count = column.len();
    let mut near = vec![Vec::new(); count];
    for &(a, b) in edges {
        near[a].push(b);
        near[b].push(a);
    }
    let is_host: Vec<bool> = (0..count).map(|it| it < nodes && near[it].len() == 1).collect();
    let weight = |it: usize| WEIGHTS[if it >= nodes { 1 } else { 2 * usize::from(is_host[it]) }];
    // Hosts follow forwarding nodes, not the other way round.
    let followed = |it: usize| {
        let forwarding: Vec<_> = near[it].iter().copied().filter(|it| !is_host[*it]).collect();
        if forwarding.is_empty() { near[it].clone() } else { forwarding }
    };
    let followed: Vec<Vec<usize>> = (0..count).map(followed).collect();
    let side = |it: usize| match is_host[it] {
        true if column[it] < column[near[it][0]] => -1,
        host => i8::from(host),
    };
    let mut by_column: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for (it, column) in column.iter().enumerate() {
        by_column.entry(*column).or_default().push(it);
    }
    let mut rows = vec![0.0; count];
    for members in by_column.values() {
        for (place, it) in members.iter().enumerate() {
            rows[*it] = place as f64 - (members.len() - 1) as f64 / 2.0;
        }
    }
    for sweep in 0..SWEEPS {
        let settle = |members: &mut Vec<usize>| {
            let wish = |it: usize| match &followed[it][..] {
                [] => rows[it],
                around => around.iter().map(|it| rows[*it]).sum::<f64>() / around.len() as f64,
            };
            let mixed = members.iter().map(|it| side(*it) == 0).collect::<BTreeSet<_>>().len() > 1;
            let mut wishes: Vec<_> = members
                .iter()
                .map(|it| {
                    (if mixed { side(*it) } else { 0 }, rounded(wish(*it), 6), wish(*it), *it)
                })
                .collect();
            wishes.sort_by(|one, other| one.0.cmp(&other.0).then(one.1.total_cmp(&other.1)));
            *members = wishes.iter().map(|(.., it)| *it).collect();
            let weighted = wishes.iter().map(|(_, _, wish, it)| (*wish, weight(*it)));
            for (it, row) in members.iter().zip(apart(weighted)) {
                rows[*it] = row;
            }
        };
        if sweep % 2 == 0 {
            by_column.values_mut().for_each(settle);
        } else {
            by_column.values_mut().rev().for_each(settle);
        }
    }
    rows
}

/// Positions nearest to the wishes (weighted least squares), in this order, one apart.
fn apart(wishes: impl Iterator<Item = (f64, f64)>) -> Vec<f64> {
    // Mean, weight, members.
    let mut blocks: Vec<(f64, f64, usize)> = Vec::new();
    for (place, (wish, weight)) in wishes.enumerate() {
        let mut block = (wish - place as f64, weight, 1);
        while let Some((mean, total, count)) = blocks.pop_if(|last| last.0 > block.0) {
            let both = total + block.1;
            block = ((mean * total + block.0 * block.1) / both, both, count + block.2);
        }
        blocks.push(block);
    }
    let means = blocks.into_iter().flat_map(|(mean, _, count)| std::iter::repeat_n(mean, count));
    means.enumerate().map(|(place, mean)| mean + place as f64).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn planned(links: &[Link], routes: &[&[usize]], nodes: usize) -> Plan {
        let nodes: Vec<usize> = (0..nodes).collect();
        plan(&nodes, links, &routes.iter().map(|route| route.to_vec()).collect::<Vec<_>>())
    }

    #[test]
    fn nodes_stand_in_the_order_packets_pass_them() {
        let links = [(0, 2), (1, 2), (2, 3), (3, 4), (3, 5)];
        let routes: [&[usize]; 3] = [&[0, 2, 3, 4], &[1, 2, 3, 5], &[4, 3, 2, 0]];
        let spots = planned(&links, &routes, 6).spots;
        let columns: Vec<f64> = spots.values().map(|spot| spot.0).collect();
        assert_eq!(columns, [0.0, 0.0, 1.0, 2.0, 3.0, 3.0]);
        // Both hosts as far from the middle, on either side.
        assert!((spots[&2].1 - 0.5).abs() < 1e-3 && (spots[&3].1 - spots[&2].1).abs() < 1e-9);
        let hosts = [spots[&0].1, spots[&1].1];
        assert!(hosts[0].min(hosts[1]).abs() < 1e-3 && (hosts[0] + hosts[1] - 1.0).abs() < 1e-3);
    }

    #[test]
    fn networks_that_share_nothing_are_below_each_other() {
        let spots = planned(&[(0, 1), (2, 3)], &[&[0, 1], &[2, 3]], 4).spots;
        let rows: Vec<f64> = spots.values().map(|spot| spot.1).collect();
        assert_eq!(rows, [0.0, 0.0, 1.0, 1.0]);
    }

    #[test]
    fn rings_and_lonely_nodes_have_places_too() {
        let routes: [&[usize]; 3] = [&[0, 1, 2], &[1, 2, 0], &[2, 0, 1]];
        let spots = planned(&[(0, 1), (1, 2), (2, 0)], &routes, 4).spots;
        let different: BTreeSet<_> = spots.values().map(|spot| format!("{spot:?}")).collect();
        assert_eq!(different.len(), 4);
    }

    #[test]
    fn a_link_past_nodes_bends_round_them() {
        let laid = planned(&[(0, 1), (1, 2), (2, 3), (0, 3)], &[&[0, 1, 2, 3]], 4);
        let bends = &laid.bends[&(0, 3)];
        assert_eq!(bends.iter().map(|bend| bend.0).collect::<Vec<_>>(), [1.0, 2.0]);
        for (bend, node) in bends.iter().zip([1, 2]) {
            assert!((bend.1 - laid.spots[&node].1).abs() >= 1.0);
        }
    }

    #[test]
    fn rows_are_apart_and_as_near_to_their_wishes_as_can_be() {
        let cases: [&[f64]; 3] = [&[0.0; 4], &[3.0, 0.0, 1.0], &[0.0, 5.0, 5.5, 5.2, 9.0]];
        for wishes in cases {
            let weighted = || wishes.iter().enumerate().map(|(n, wish)| (*wish, 1.0 + n as f64));
            let fits = |rows: &[f64]| rows.windows(2).all(|pair| pair[1] - pair[0] >= 1.0 - 1e-9);
            let cost = |rows: &[f64]| {
                let parts = rows.iter().zip(weighted());
                parts.map(|(row, (wish, weight))| weight * (row - wish) * (row - wish)).sum::<f64>()
            };
            let rows = apart(weighted());
            assert!(fits(&rows));
            // No row, nor any run of rows, can be moved without loss.
            for (first, last) in
                (0..rows.len()).flat_map(|a| (a + 1..=rows.len()).map(move |b| (a, b)))
            {
                for step in [-1e-3, 1e-3] {
                    let mut moved = rows.clone();
                    moved[first..last].iter_mut().for_each(|row| *row += step);
                    assert!(!fits(&moved) || cost(&moved) >= cost(&rows) - 1e-12);
                }
            }
        }
    }
}
