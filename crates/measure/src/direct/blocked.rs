//! What the tables of a measurement say of flows directly over IP: their name, and why nothing arrived.

use crate::end_report::EndReport;
use crate::plan::Plan;

/// The name of the transport of a direction, if it is directly over IP.
pub(crate) fn name(plan: &Plan, direction: &str) -> Option<String> {
    let name = direction.strip_suffix(".reverse").unwrap_or(direction);
    let flow = plan.flows.iter().find(|flow| [name, direction].contains(&flow.name.as_str()))?;
    flow.transport.direct().map(|_| flow.transport.name())
}

/// Why nothing of a flow directly over IP has arrived, although its datagrams passed; `None` if it arrived, or
/// the notes of an end are missing. `ends` are the client and the server, and `packets` tells of a peer whether
/// it sent packets, and whether some of them arrived.
pub(crate) fn blocked(
    plan: &Plan,
    flow: usize,
    ends: [Option<&EndReport>; 2],
    packets: impl Fn(u16) -> (bool, bool),
) -> Option<String> {
    let [Some(client), Some(server)] = ends else { return None };
    let protocol = plan.flows[flow].transport.direct()?;
    let (name, number) = (protocol.name(), protocol.number());
    let [here, there] = plan.ends();
    let client_opens = plan.client_opens(flow);
    let opening = [(here, client), (there, server)];
    // What the opening end sends, then what the other one answers.
    for side in [0, 1] {
        let from_client = client_opens == (side == 0);
        let [(from, sender), (to, receiver)] = match from_client {
            true => opening,
            false => [opening[1], opening[0]],
        };
        match packets(2 * flow as u16 + side) {
            (_, true) => {}
            (false, _) if sender.unsent_packets > 0 => {
                let why =
                    format!("no {name} packet left the {from}, whose system refuses to send them");
                return Some(why);
            }
            (false, _) => return None,
            (true, _) if receiver.overrun_datagrams > 0 => {
                return Some(format!(
                    "no {name} packet from the {from} arrived at the {to}, whose socket's buffer was full: \
                     it was too busy, or flooded"
                ));
            }
            (true, _) => {
                let (intact, does) = match receiver.refused_datagrams {
                    0 => ("", "drops"),
                    _ => (" intact", "drops or changes"),
                };
                let or = match (side, client_opens) {
                    (0, false) => ", or lets no connection in that the server opens",
                    _ => "",
                };
                return Some(format!(
                    "no {name} packet from the {from} arrived{intact} at the {to}: something on the path {does} \
                     IP protocol {number}{or}"
                ));
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use talkspurt_proto::time::Duration;

    use super::*;
    use crate::plan::{FlowPlan, Traffic};
    use crate::transport::Transport;

    fn plan(transport: Transport, up: bool) -> Plan {
        let cbr = || Some(Traffic::Cbr { rate: 64_000, packet: 160 });
        let (up, down) = (up.then(cbr).flatten(), cbr());
        let flows = vec![FlowPlan { name: "a".to_owned(), transport, up, down }];
        let duration = Duration::from_secs(1).as_nanos();
        Plan { seed: 1, duration, mtu: 1500, ipv6: false, flows }
    }

    /// Of the peers that open and answer: whether they sent, and whether it arrived.
    fn told(plan: &Plan, refused: u64, unsent: u64, peers: [(bool, bool); 2]) -> Option<String> {
        let (refused_datagrams, unsent_packets) = (refused, unsent);
        let end = EndReport { refused_datagrams, unsent_packets, ..EndReport::default() };
        blocked(plan, 0, [Some(&end); 2], |peer| peers[usize::from(peer)])
    }

    #[test]
    fn the_end_where_packets_are_missing_is_named() {
        let (sent, arrived, nothing) = ((true, false), (true, true), (false, false));
        let both = plan(Transport::known("dccp-ccid3-ip"), true);
        assert_eq!(told(&both, 0, 0, [arrived, arrived]), None);
        assert_eq!(told(&both, 0, 0, [nothing, nothing]), None, "it ended before it began");
        let there = "no DCCP packet from the client arrived at the server: something on the path drops IP \
                     protocol 33";
        assert_eq!(told(&both, 0, 0, [sent, nothing]).as_deref(), Some(there));
        let back = "no DCCP packet from the server arrived intact at the client: something on the path drops \
                    or changes IP protocol 33";
        assert_eq!(told(&both, 4, 0, [arrived, sent]).as_deref(), Some(back));
        let unsent = "no DCCP packet left the client, whose system refuses to send them";
        assert_eq!(told(&both, 0, 2, [nothing, nothing]).as_deref(), Some(unsent));
        let down = "no SCTP packet from the server arrived at the client: something on the path drops IP \
                    protocol 132, or lets no connection in that the server opens";
        let opened = told(&plan(Transport::known("sctp-ip"), false), 0, 0, [sent, nothing]);
        assert_eq!(opened.as_deref(), Some(down));
        assert_eq!(told(&plan(Transport::known("sctp"), true), 0, 0, [sent, nothing]), None);
        assert_eq!(name(&both, "a.reverse").as_deref(), Some("dccp-ccid3-ip"));
        assert_eq!(name(&plan(Transport::known("dccp-ccid3"), true), "a"), None);
    }
}
