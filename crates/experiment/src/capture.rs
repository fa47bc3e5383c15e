//! Captures of links, with the addresses and ports of every route.

use std::path::Path;

use talkspurt_proto::wire::Ends;
use talkspurt_record::pcapng::{CaptureProbe, Pcapng, Router};
use talkspurt_scenario::Network;
use talkspurt_scenario::model::Scenario;

/// A capture of every link the scenario names, both directions in one file.
pub(crate) fn open(
    scenario: &Scenario,
    network: &Network,
    into: Option<&Path>,
) -> Result<Option<CaptureProbe>, String> {
    let Some(folder) = into.filter(|_| !scenario.record.pcapng.is_empty()) else { return Ok(None) };
    of(&scenario.record.pcapng, scenario, network, folder).map(Some)
}

/// A capture of these links into a folder, a file each, both directions in one.
///
/// # Errors
/// A file cannot be created or written.
pub fn of<'a>(
    names: impl IntoIterator<Item = &'a String>,
    scenario: &Scenario,
    network: &Network,
    folder: &Path,
) -> Result<CaptureProbe, String> {
    let mut probe = CaptureProbe::new(ends(scenario, network)).with_routers(routers(network));
    for name in names {
        let Some(forth) = network.links.iter().position(|link| link.name == *name) else {
            continue;
        };
        let path = folder.join(format!("{}.pcapng", file_name(name)));
        let back = format!("{name}.back");
        let file = Pcapng::create(&path, &[name, &back])
            .map_err(|error| format!("{}: {error}", path.display()))?;
        let both = &network.links[forth..=forth + 1];
        let lag = both.iter().map(|link| {
            link.delay + link.rate.time_for(link.mtu.as_bytes() + 64).unwrap_or_default()
        });
        probe.tap(file, &[forth as u32, forth as u32 + 1], lag.max().unwrap_or_default());
    }
    Ok(probe)
}

/// Completes captures.
pub(crate) fn finish(captures: CaptureProbe) -> Result<(), String> {
    let unwritten = captures.unwritten();
    captures.finish().map_err(|error| format!("a capture could not be written: {error}"))?;
    if unwritten > 0 {
        return Err(format!(
            "{unwritten} packets are missing from the captures: they fit no IP packet"
        ));
    }
    Ok(())
}

/// A flow's or link's name as a file's.
pub(crate) fn file_name(name: &str) -> String {
    let plain = |letter: char| letter.is_alphanumeric() || "._-+ ".contains(letter);
    name.chars().map(|letter| if plain(letter) { letter } else { '_' }).collect()
}

/// Addresses and ports of every route's packets: flow n uses ports 5004 + 2n (RTP's even ports,
/// RFC 3550 §11) at both ends, and on its path k the k-th address of each.
fn ends(scenario: &Scenario, network: &Network) -> Vec<((u32, u32), Ends)> {
    let ways = network.ways().zip(0_u32..).map(|(way, route)| {
        let flow = &scenario.flows[way.flow];
        let port = (5004 + 2 * way.flow % 60_000) as u16;
        let address = |node| network.address(node, flow.ip, way.path.into());
        let (src, dst) = (address(&flow.from), address(&flow.to));
        let forth = Ends { src, dst, src_port: port, dst_port: port };
        let ends = if way.side == 0 { forth } else { forth.reversed() };
        ((way.flow as u32, route), ends)
    });
    ways.collect()
}

/// The addresses of the node before every link, which answers in its name.
fn routers(network: &Network) -> Vec<Router> {
    let addresses = network.links.iter().map(|link| &network.addresses[link.from]);
    addresses.map(|known| (known.v4[0], known.v6[0])).collect()
}
