//! Flows, links and routes for the recorder, by name.

use std::collections::BTreeMap;

use talkspurt_app::source;
use talkspurt_proto::time::Instant;
use talkspurt_record::{FlowInfo, Layout, LinkInfo, RouteInfo, SideInfo};
use talkspurt_scenario::Network;
use talkspurt_scenario::model::Scenario;

/// The measurement window.
pub(crate) fn window(scenario: &Scenario) -> (Instant, Instant) {
    let to = scenario.measure.to.unwrap_or(scenario.duration);
    (Instant::ZERO + scenario.measure.from, Instant::ZERO + to)
}

/// The layout of a scenario's recording.
#[must_use]
pub fn layout(scenario: &Scenario, network: &Network) -> Layout {
    let flows = scenario.flows.iter().map(|(name, flow)| FlowInfo {
        name: name.clone(),
        group: flow.group.clone(),
        transport: flow.carrier(),
        from: flow.from.clone(),
        to: flow.to.clone(),
        sides: [Some(side(&flow.source)), flow.reverse.as_ref().map(side)],
    });
    let mut receivers = receivers(scenario, network);
    let links = network.links.iter().enumerate().map(|(index, link)| LinkInfo {
        name: link.name.clone(),
        from: network.nodes[link.from].clone(),
        to: network.far_ends(link).iter().map(|node| network.nodes[*node].clone()).collect(),
        receivers: receivers.remove(&index).unwrap_or_default(),
        rate_bps: link.rate.as_bps(),
        delay: link.delay,
    });
    let routes = network.ways();
    let routes = routes.map(|way| RouteInfo { flow: way.flow as u32, side: way.side as u8 });
    let (from, to) = window(scenario);
    let colours = scenario.nodes.iter();
    let colours = colours.filter_map(|(name, node)| Some((name.clone(), node.colour.clone()?)));
    Layout {
        flows: flows.collect(),
        links: links.collect(),
        routes: routes.collect(),
        colours: colours.collect(),
        from,
        to,
        duration: scenario.duration,
        interval: scenario.record.interval,
    }
}

/// For each access point's transmitter, the station that receives the packets of a route.
fn receivers(scenario: &Scenario, network: &Network) -> BTreeMap<usize, BTreeMap<u32, usize>> {
    let stations: BTreeMap<usize, &[usize]> =
        network.cells.iter().map(|cell| (cell.first_link, &cell.stations[..])).collect();
    let mut receivers: BTreeMap<usize, BTreeMap<u32, usize>> = BTreeMap::new();
    for (route, way) in (0_u32..).zip(network.ways()) {
        let end = network.last_node(&scenario.flows[way.flow], way.side);
        for (at, link) in way.links.iter().enumerate() {
            let Some(stations) = stations.get(link) else { continue };
            let receiver = network.receiver(way.links, at, end);
            let number = stations.iter().position(|station| *station == receiver);
            receivers.entry(*link).or_default().extend(number.map(|number| (route, number)));
        }
    }
    receivers
}

fn side(source: &source::Config) -> SideInfo {
    let frame = match source {
        source::Config::Speech(speech) => Some(speech.packet),
        _ => None,
    };
    let rests = matches!(source, source::Config::Video(video) if video.encoder.is_some_and(|it| it.changes.is_some()));
    SideInfo { source: source.kind().to_owned(), frame, deadline: source.deadline(), rests }
}
