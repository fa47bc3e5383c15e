//! Captures of links, with the addresses and ports of every route, and the packets of a run as a table: files
//! that are written during the run.

use std::path::Path;

use talkspurt_proto::wire::Ends;
use talkspurt_record::pcapng::{CaptureProbe, Pcapng, Router};
use talkspurt_record::{Layout, Output, PacketTable};
use talkspurt_scenario::Network;
use talkspurt_scenario::model::Scenario;

use crate::Failure;

/// Opens a capture of every link the scenario names, both directions in one file.
pub(crate) fn open(
    scenario: &Scenario,
    network: &Network,
    into: Option<&Path>,
) -> Result<Option<CaptureProbe>, Failure> {
    let Some(folder) = into.filter(|_| !scenario.record.pcapng.is_empty()) else { return Ok(None) };
    of(&scenario.record.pcapng, scenario, network, folder).map(Some)
}

/// Opens captures of these links in a folder, one file per link with both directions.
///
/// # Errors
/// A file cannot be created or written.
pub fn of<'a>(
    names: impl IntoIterator<Item = &'a String>,
    scenario: &Scenario,
    network: &Network,
    folder: &Path,
) -> Result<CaptureProbe, Failure> {
    let mut probe = CaptureProbe::new(ends(scenario, network)).with_routers(routers(network));
    let names: Vec<_> = names.into_iter().collect();
    for name in &names {
        let Some(forth) = network.links.iter().position(|link| link.name == **name) else {
            continue;
        };
        let path = folder.join(format!("{}.pcapng", file_name(name)));
        let back = format!("{name}.back");
        let ways: [&str; 2] = [name, &back];
        let file = match scenario.record.snaplen {
            Some(snaplen) => {
                Pcapng::cut(&path, &ways, u32::try_from(snaplen.as_bytes()).unwrap_or(0))
            }
            None => Pcapng::create(&path, &ways),
        };
        let file = file.map_err(|error| Failure::Output(format!("{}: {error}", path.display())))?;
        probe.tap(file.one_of(names.len()), &[forth as u32, forth as u32 + 1]);
    }
    Ok(probe)
}

/// Creates `packets.parquet`, the packets of a run as a table, in an existing folder.
pub(crate) fn packets(folder: &Path, layout: &Layout) -> Result<PacketTable, Failure> {
    let output = Output::create(folder.join("packets.parquet")).map_err(Failure::output)?;
    Ok(PacketTable::new(output, layout))
}

/// Completes captures.
pub(crate) fn finish(captures: CaptureProbe) -> Result<(), Failure> {
    captures
        .finish()
        .map_err(|error| Failure::Output(format!("a capture could not be written: {error}")))
}

/// An error if packets are missing from captures.
pub(crate) fn check(unwritten: u64) -> Result<(), Failure> {
    match unwritten {
        0 => Ok(()),
        _ => Err(Failure::Output(format!(
            "{unwritten} packets are missing from the captures: they fit no IP packet"
        ))),
    }
}

/// A file name for a flow or link.
pub(crate) fn file_name(name: &str) -> String {
    let plain = |letter: char| letter.is_alphanumeric() || "._-+ ".contains(letter);
    name.chars().map(|letter| if plain(letter) { letter } else { '_' }).collect()
}

/// Even dynamic ports that Wireshark 4.0 assigns to a protocol over UDP or TCP (`tshark -G decodes`;
/// none over DCCP or SCTP).
const TAKEN: [u16; 11] =
    [54328, 56000, 56500, 57000, 57032, 57500, 57532, 59000, 59032, 59500, 59532];

/// Even ports, as for RTP (RFC 3550 §11), in the dynamic range, which is not assigned to protocols
/// (RFC 6335 §6), so that Wireshark does not misinterpret the packets.
fn free_ports() -> Vec<u16> {
    (49_152..=u16::MAX).step_by(2).filter(|port| !TAKEN.contains(port)).collect()
}

/// The ports of flow n: the n-th at both ends; once these are used up, a pair of different ports.
fn ports(flow: usize, free: &[u16]) -> (u16, u16) {
    let (first, round) = (flow % free.len(), flow / free.len());
    (free[first], free[(first + round) % free.len()])
}

/// Addresses and ports of every route's packets; on path k a flow uses the k-th address of each end.
fn ends(scenario: &Scenario, network: &Network) -> Vec<((u32, u32), Ends)> {
    let free = free_ports();
    let ways = network.ways().zip(0_u32..).map(|(way, route)| {
        let flow = &scenario.flows[way.flow];
        let (src_port, dst_port) = ports(way.flow, &free);
        let address = |node| network.address(node, flow.ip, way.path.into());
        let (src, dst) = (address(&flow.from), address(&flow.to));
        let forth = Ends { src, dst, src_port, dst_port };
        let ends = if way.side == 0 { forth } else { forth.reversed() };
        ((way.flow as u32, route), ends)
    });
    ways.collect()
}

/// The addresses of the node before every link, used in its replies.
fn routers(network: &Network) -> Vec<Router> {
    let addresses = network.links.iter().map(|link| &network.addresses[link.from]);
    addresses.map(|known| (known.v4[0], known.v6[0])).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn flows_however_many_have_ports_of_their_own() {
        let free = free_ports();
        // The maximum number of flows in a schedule.
        let pairs: BTreeSet<_> = (0..32_768).map(|flow| ports(flow, &free)).collect();
        assert_eq!(pairs.len(), 32_768);
        assert!(pairs.iter().all(|(a, b)| a % 2 == 0 && b % 2 == 0 && *a.min(b) >= 49_152));
        assert_eq!(ports(3, &free), (49_158, 49_158));
    }
}
