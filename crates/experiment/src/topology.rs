//! The network of a run as JSON, for drawing.

use serde_json::{Map, Value, json};
use talkspurt_scenario::Network;
use talkspurt_scenario::model::{Scenario, Source};
use talkspurt_scenario::network::DirectedLink;

/// The properties of one direction of a link, for drawing.
fn direction(link: &DirectedLink) -> [(&'static str, Value); 8] {
    [
        ("rate_bps", link.rate.as_bps().into()),
        ("delay_s", link.delay.as_secs_f64().into()),
        ("jitter_s", link.jitter.as_secs_f64().into()),
        ("queue", link.queue_words().into()),
        ("loss", link.loss.into()),
        ("bursts", link.gilbert_elliott.is_some().into()),
        ("bit_error_rate", link.bit_error_rate.into()),
        ("changes", link.course.is_some().into()),
    ]
}

/// The speech packets of the source's best codec: bytes, and the seconds of media per packet and of
/// encoder look-ahead.
fn speech(source: &Source) -> Option<Value> {
    let Source::Speech(speech) = source else { return None };
    let best = speech.encodings().into_iter().next()?;
    Some(json!({
        "bytes": best.payload_bytes(), "interval_s": best.packet.as_secs_f64(),
        "look_ahead_s": best.look_ahead().as_secs_f64(),
    }))
}

/// Nodes, links and flows as JSON, for drawing: links with differences on the way back, the transmitters of
/// cells with their destinations, flows with their nodes and links, by side. Flows of a group that differ
/// only in their names are one entry, with the group's name and the first and last number in `members`.
#[must_use]
pub fn topology(scenario: &Scenario, network: &Network) -> Value {
    let mut links: Vec<_> = scenario
        .links
        .iter()
        .enumerate()
        .map(|(index, (name, link))| {
            let [forth, back] = [2 * index, 2 * index + 1].map(|k| direction(&network.links[k]));
            let mut said = json!({
                "name": name, "from": link.from, "to": link.to, "mtu": link.mtu.as_bytes(),
                "fails": !link.events.is_empty(),
            });
            let differs =
                |(key, value): &(&str, Value)| forth.iter().any(|(k, v)| k == key && v != value);
            let back: Map<_, _> = back
                .into_iter()
                .filter(differs)
                .map(|(key, value)| (key.to_owned(), value))
                .collect();
            said["back"] = Value::Object(back);
            forth.into_iter().for_each(|(key, value)| said[key] = value);
            said
        })
        .collect();
    // Transmitters in cells send one way only; those of stations and contenders are drawn as links.
    let mut access_points = Vec::new();
    for transmitter in network.links.iter().filter(|link| link.in_cell) {
        let cell = &network.cells[transmitter.link];
        let mut said = json!({
            "name": transmitter.name, "from": network.nodes[transmitter.from],
            "rate_bps": transmitter.rate.as_bps(), "delay_s": 0.0, "jitter_s": 0.0,
            "queue": transmitter.queue.to_string(),
            "mtu": transmitter.mtu.as_bytes(), "loss": 0.0,
        });
        if transmitter.from == cell.access_point {
            let to = cell.stations.iter().map(|node| network.nodes[*node].as_str());
            said["to"] = to.collect();
            access_points.push(said);
        } else {
            said["to"] = network.nodes[transmitter.to].as_str().into();
            said["contends"] = (!cell.stations.contains(&transmitter.from)).into();
            links.push(said);
        }
    }
    let mut routes = network.routes.iter();
    let flows: Vec<_> = scenario
        .alike()
        .iter()
        .map(|alike| {
            let flow = &alike.flow;
            let paths = routes.nth(alike.count() as usize - 1).expect("each flow has routes");
            let node = |link: &usize| &network.nodes[network.links[*link].from];
            let passed = |links: &[usize], last| -> Vec<_> {
                links.iter().map(node).chain(std::iter::once(last)).collect()
            };
            let routes: Vec<_> = paths.iter().map(|path| passed(&path.forward, &flow.to)).collect();
            let back: Vec<_> =
                paths.iter().map(|path| passed(&path.backward, &flow.from)).collect();
            let names = |links: &[usize]| -> Vec<_> {
                links.iter().map(|link| &network.links[*link].name).collect()
            };
            let hops = json!({
                "from": paths.iter().map(|path| names(&path.forward)).collect::<Vec<_>>(),
                "to": paths.iter().map(|path| names(&path.backward)).collect::<Vec<_>>(),
            });
            let units = [Some(&flow.source), flow.reverse.as_ref()].map(|source| speech(source?));
            let mut said = json!({
                "name": alike.names().next(), "transport": flow.carrier(), "from": flow.from, "to": flow.to,
                "routes": routes, "back": back, "links": hops, "speech": units,
            });
            if let Some((group, numbers)) = alike.members().filter(|_| alike.count() > 1) {
                said["members"] = json!([group, numbers.start(), numbers.end()]);
            }
            said
        })
        .collect();
    let colour = |name: &String| scenario.nodes.get(name).and_then(|node| node.colour.as_ref());
    let node = |name| json!({ "name": name, "colour": colour(name) });
    let nodes: Vec<_> = network.nodes.iter().map(node).collect();
    json!({ "nodes": nodes, "links": links, "access_points": access_points, "flows": flows })
}
