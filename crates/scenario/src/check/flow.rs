//! Flows: ends that exist, sources their transport can carry, packets that fit, times in order.

use talkspurt_app::source;
use talkspurt_proto::time::Duration;
use talkspurt_proto::units::{Rate, Size};

use super::{tcp, time::at_most};
use crate::model::{Flow, IpVersion, Scenario, Sizing, Transport};
use crate::network::Network;
use crate::path::Path;
use crate::problem::Findings;

/// RFC 8200 §5: every link carries 1280 octets.
const LEAST_MTU_V6: Size = Size::from_bytes(1280);
/// RFC 4571 §2: the length in front of a frame on a stream has 16 bits.
const LONGEST_FRAME: u64 = 65_535;
/// Longest processing noise and playout buffer that still mean what they say.
const MOST_NOISE: Duration = Duration::from_secs(1);
const MOST_BUFFER: Duration = Duration::from_secs(60);

pub(super) fn check(scenario: &Scenario, network: &Network, run: Duration, found: &mut Findings) {
    if scenario.flows.is_empty() {
        found.add(Path::of(&["flows"]), "nothing runs: give at least one flow");
    }
    for (index, (name, flow)) in scenario.flows.iter().enumerate() {
        let path = Path::of(&["flows", name]);
        times(&path, flow, run, found);
        // A flow without a way was told so before; nothing is known of its MTU.
        let routes = network.routes.get(index).filter(|routes| !routes.forward.is_empty());
        let mtu = routes.map(|r| (network.mtu(&r.forward), network.mtu(&r.backward)));
        source(&path.key("source"), flow, &flow.source, mtu.map(|m| m.0), run, found);
        if let Some(reverse) = &flow.reverse {
            source(&path.key("reverse"), flow, reverse, mtu.map(|m| m.1), run, found);
        }
        if let Transport::Tcp(config) = &flow.transport {
            tcp::check(&path.key("transport"), config, found);
        }
        for outside in flow.quality.out_of_range() {
            found.add(path.key("quality").key(outside.knob), outside.to_string());
        }
        at_most(path.key("playout").key("buffer"), flow.playout.buffer, MOST_BUFFER, found);
        let least = mtu.map(|(forward, backward)| forward.min(backward));
        if let Some(mtu) = least.filter(|m| flow.ip == IpVersion::V6 && *m < LEAST_MTU_V6) {
            let message = format!(
                "IPv6 needs links that carry 1280B (RFC 8200 §5); the least on this flow's way is {mtu}"
            );
            found.add(path.key("ip"), message);
        }
    }
}

fn times(path: &Path, flow: &Flow, run: Duration, found: &mut Findings) {
    if flow.start >= run {
        let message = format!("{} is not before the end of the run ({run})", flow.start);
        found.add(path.key("start"), message);
        return;
    }
    if let Some(stop) = flow.stop.filter(|stop| *stop <= flow.start) {
        let message = format!("{stop} is not after the start ({})", flow.start);
        found.add(path.key("stop"), message);
    }
    let end = flow.stop.unwrap_or(run).min(run);
    if let Some(spread) = flow.start_spread
        && end > flow.start
        && flow.start + spread > end
    {
        let message = format!(
            "{spread} may put the start after the flow's end ({end}); it starts at {}",
            flow.start
        );
        found.add(path.key("start_spread"), message);
    }
}

fn source(
    path: &Path,
    flow: &Flow,
    source: &source::Config,
    mtu: Option<Size>,
    run: Duration,
    found: &mut Findings,
) {
    match source {
        source::Config::Speech(speech) => {
            if !(1..=6).any(|tens| speech.packet == Duration::from_millis(10 * tens)) {
                found
                    .add(
                        path.key("packet"),
                        format!(
                            "{} of speech is no packet: 10 to 60 ms in steps of 10",
                            speech.packet
                        ),
                    )
                    .hint("20ms is usual (RFC 3551 §4.2)".to_owned());
            } else {
                // G.711 has one byte in 125 µs.
                let bytes = speech.packet.as_nanos() / 125_000;
                fits(&path.key("packet"), flow, 12 + bytes, mtu, found);
            }
            if flow.start < run && flow.start + speech.lead >= run {
                let message =
                    format!("{} puts the first sample after the end of the run", speech.lead);
                found.add(path.key("lead"), message);
            }
            at_most(path.key("noise"), speech.noise, MOST_NOISE, found);
            if let Some(talkspurts) = speech.talkspurts {
                let path = path.key("talkspurts");
                if speech.file.is_some() {
                    let message =
                        "a recording has its own pauses; leave out `file` or `talkspurts`";
                    found.add(path.clone(), message);
                }
                if talkspurts.on.is_zero() {
                    found.add(path.key("on"), "a talkspurt of no length sends nothing");
                }
            }
            if speech.repeat && speech.file.is_none() {
                found.add(path.key("repeat"), "nothing to repeat: there is no `file`");
            }
        }
        source::Config::Cbr(cbr) => {
            clocked(path, cbr.rate, cbr.packet, run, found);
            fits(&path.key("packet"), flow, cbr.packet.as_bytes(), mtu, found);
            at_most(path.key("noise"), cbr.noise, MOST_NOISE, found);
        }
        source::Config::OnOff(on_off) => {
            clocked(path, on_off.rate, on_off.packet, run, found);
            fits(&path.key("packet"), flow, on_off.packet.as_bytes(), mtu, found);
            at_most(path.key("noise"), on_off.noise, MOST_NOISE, found);
            if on_off.on.is_zero() {
                found.add(path.key("on"), "a talkspurt of no length sends nothing");
            }
        }
        source::Config::Bulk(bulk) => {
            if matches!(flow.transport, Transport::Udp(_)) {
                found
                    .add(
                        path.key("kind"),
                        "bulk data needs a transport that says how much it takes; UDP has no window",
                    )
                    .hint("use transport kind = \"tcp\", or source kind = \"cbr\" with a rate".to_owned());
            }
            if bulk.total == Some(Size::from_bytes(0)) {
                let hint = "leave it out to send without end".to_owned();
                found.add(path.key("total"), "nothing would be sent").hint(hint);
            }
        }
    }
}

/// A source that sends packets of one size by its own clock.
fn clocked(path: &Path, rate: Rate, packet: Size, run: Duration, found: &mut Findings) {
    if packet.as_bytes() == 0 {
        found.add(path.key("packet"), "a packet of 0 bytes carries nothing");
        return;
    }
    match rate.time_for(packet.as_bytes()) {
        None => {
            found.add(path.key("rate"), "at rate 0 nothing is ever sent");
        }
        Some(interval) if interval > run => {
            let message = format!(
                "at {rate} a packet of {packet} leaves every {interval}, longer than the run ({run})"
            );
            found.add(path.key("rate"), message);
        }
        Some(_) => {}
    }
}

/// A frame that a datagram or a stream's frame must hold.
fn fits(path: &Path, flow: &Flow, frame: u64, mtu: Option<Size>, found: &mut Findings) {
    if frame > LONGEST_FRAME {
        found.add(path.clone(), format!("{frame} bytes do not fit a frame of 65535 (RFC 4571 §2)"));
        return;
    }
    if let Transport::Tcp(tcp) = &flow.transport
        && frame + 2 > tcp.send_buffer.as_bytes()
    {
        let message = format!(
            "{frame} bytes never fit TCP's send_buffer ({}), so none is sent",
            tcp.send_buffer
        );
        found.add(path.clone(), message);
        return;
    }
    let headers = match (flow.sizing, flow.ip) {
        (Sizing::Ns2, _) => 0,
        (Sizing::Rfc, IpVersion::V4) => 20 + 8,
        (Sizing::Rfc, IpVersion::V6) => 40 + 8,
    };
    let Some(mtu) = mtu.filter(|_| matches!(flow.transport, Transport::Udp(_))) else { return };
    if frame + headers > mtu.as_bytes() {
        found.add(
            path.clone(),
            format!(
                "{frame} bytes and {headers} of headers do not fit the least MTU on the way ({mtu}), and UDP is not fragmented"
            ),
        );
    }
}
