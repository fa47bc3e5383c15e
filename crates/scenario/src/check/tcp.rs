//! The knobs of TCP that can contradict each other or the RFCs.

use talkspurt_proto::tcp::{self, Controller, LossRecovery, WindowRule};
use talkspurt_proto::time::Duration;
use talkspurt_proto::units::Size;

use super::time::at_most;
use crate::path::Path;
use crate::problem::Findings;

/// Options take up to 40 bytes of a segment; below that nothing would be left for data.
const MIN_MSS: u64 = 64;
/// RFC 7323 §2.3: the window must stay below 2^30.
const MAX_WINDOW: u64 = 1 << 30;
/// Linux keeps such counts in 8 bits (`tcp_retries2`, `tcp_synack_retries`).
const MAX_RETRANSMISSIONS: u32 = 255;
/// The tick of the endpoint's clock, G in RFC 6298 §2: no round trip is measured shorter.
const TICK: Duration = Duration::from_millis(1);

pub(super) fn check(path: &Path, tcp: &tcp::Config, found: &mut Findings) {
    if !(MIN_MSS..=65_495).contains(&tcp.mss.as_bytes()) {
        found.add(path.key("mss"), format!("{} is not a segment size: 64B to 65495B", tcp.mss));
    }
    if !(1..=65_535).contains(&tcp.initial_window) {
        found.add(path.key("initial_window"), "must be 1 to 65535 segments");
    }
    if tcp.initial_ssthresh.is_some_and(|segments| segments < 2) {
        found.add(path.key("initial_ssthresh"), "must be at least 2 segments (RFC 5681 §3.1)");
    }
    if tcp.initial_ssthresh.is_some() && tcp.controller == Controller::Bbr {
        let message = "bbr has no threshold: its startup ends when the path is full";
        found.add(path.key("initial_ssthresh"), message).hint("leave it out".to_owned());
    }
    if tcp.hystart.is_some() && tcp.controller != Controller::Cubic {
        let message = format!("only cubic has it, not {}", tcp.controller.name());
        found.add(path.key("hystart"), message).hint("leave it out".to_owned());
    }
    if tcp.window_rule == WindowRule::Ns2
        && !matches!(tcp.controller, Controller::Tahoe | Controller::Reno | Controller::Newreno)
    {
        let name = tcp.controller.name();
        let message = format!("only tahoe, reno and newreno have ns-2's, not {name}");
        found.add(path.key("window_rule"), message).hint("leave it out".to_owned());
    }
    for (key, count) in [
        ("max_retransmissions", tcp.max_retransmissions),
        ("max_synack_retransmissions", tcp.max_synack_retransmissions),
    ] {
        if count > MAX_RETRANSMISSIONS {
            let message = format!("{count} is absurd here: at most {MAX_RETRANSMISSIONS}");
            found.add(path.key(key), message);
        }
    }
    let recovery = tcp.loss_recovery();
    if tcp.controller == Controller::Bbr
        && !matches!(recovery, LossRecovery::Sack | LossRecovery::Rack)
    {
        let message = format!(
            "\"{}\" does not tell what arrived when, by which bbr goes: \"sack\" or \"rack\"",
            recovery.name()
        );
        found.add(path.key("recovery"), message);
    }
    buffer(path.key("receive_buffer"), tcp.receive_buffer, tcp.mss, found);
    buffer(path.key("send_buffer"), tcp.send_buffer, tcp.mss, found);
    if tcp.notsent_lowat.is_some_and(|lowat| lowat.as_bytes() == 0) {
        found.add(path.key("notsent_lowat"), "0B would let nothing be sent: the least is 1B");
    }
    if let Some(lowat) = tcp.notsent_lowat.filter(|lowat| *lowat > tcp.send_buffer) {
        let message = format!("{lowat} is more than send_buffer ({}) holds", tcp.send_buffer);
        found.add(path.key("notsent_lowat"), message);
    }
    // RFC 9293 §3.8.6.3 (MUST-40): the delay is less than 0.5 seconds.
    if tcp.ack_delay >= Duration::from_millis(500) {
        let message = format!("{} is not below 500ms (RFC 9293 §3.8.6.3)", tcp.ack_delay);
        found.add(path.key("ack_delay"), message);
    }
    if tcp.min_rto < TICK {
        let message = format!("{} is below {TICK}, the tick of the clock of TCP", tcp.min_rto);
        found.add(path.key("min_rto"), message);
    } else if tcp.min_rto > tcp.max_rto {
        let message = format!("{} is above max_rto ({})", tcp.min_rto, tcp.max_rto);
        found.add(path.key("min_rto"), message);
    }
    at_most(path.key("max_rto"), tcp.max_rto, Duration::from_secs(3600), found);
    at_most(path.key("msl"), tcp.msl, Duration::from_secs(3600), found);
}

fn buffer(path: Path, size: Size, mss: Size, found: &mut Findings) {
    if size < mss {
        found.add(path, format!("{size} does not hold one segment ({mss})"));
    } else if size.as_bytes() > MAX_WINDOW {
        found.add(path, format!("{size} is above the largest window, 1 GiB (RFC 7323 §2.3)"));
    }
}
