//! The addresses of nodes: as written, or free ones for the others.

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::model::Scenario;

use super::MAX_PATHS;

/// The IP addresses of one node; its packets carry the first of each version on a flow's first path, the
/// second on its second path, and so on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Addresses {
    /// IPv4, at least one.
    pub v4: Vec<Ipv4Addr>,
    /// IPv6, at least one.
    pub v6: Vec<Ipv6Addr>,
}

/// Assigns addresses to nodes without one: node n has 10.0.0.0 + n and fd00:: + n, from 1. Then each end of
/// a multipath flow gets the addresses it lacks for its paths.
pub(super) fn addresses(scenario: &Scenario, nodes: &[String]) -> Vec<Addresses> {
    let written = |name: &String| scenario.nodes.get(name).map(|node| node.addresses.clone());
    let taken: BTreeSet<IpAddr> = nodes.iter().filter_map(written).flatten().collect();
    let v4 = (1_u32..).map(|n| Ipv4Addr::from_bits(0x0A00_0000 + n));
    let mut v4 = v4.filter(|free| !taken.contains(&IpAddr::V4(*free)));
    let v6 = (1_u32..).map(|n| Ipv6Addr::from_bits((0xfd00 << 112) + u128::from(n)));
    let mut v6 = v6.filter(|free| !taken.contains(&IpAddr::V6(*free)));
    let node = |name: &String| {
        let mut given = Addresses { v4: Vec::new(), v6: Vec::new() };
        for address in written(name).unwrap_or_default() {
            match address {
                IpAddr::V4(address) => given.v4.push(address),
                IpAddr::V6(address) => given.v6.push(address),
            }
        }
        // The free address is unused if one of that version is written.
        let (free4, free6) = (v4.next(), v6.next());
        given.v4.extend(free4.filter(|_| given.v4.is_empty()));
        given.v6.extend(free6.filter(|_| given.v6.is_empty()));
        given
    };
    let mut all: Vec<Addresses> = nodes.iter().map(node).collect();
    for flow in scenario.flows.values() {
        let most = flow.paths.len().min(MAX_PATHS);
        for end in [&flow.from, &flow.to].into_iter().filter(|_| most > 1) {
            let Some(node) = nodes.iter().position(|node| node == end) else { continue };
            let given = &mut all[node];
            given.v4.extend(v4.by_ref().take(most.saturating_sub(given.v4.len())));
            given.v6.extend(v6.by_ref().take(most.saturating_sub(given.v6.len())));
        }
    }
    all
}
