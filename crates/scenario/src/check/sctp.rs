//! The knobs of SCTP that can contradict each other or RFC 9260.

use talkspurt_proto::sctp::Config;
use talkspurt_proto::time::Duration;
use talkspurt_proto::units::Size;

use super::time::at_most;
use crate::path::Path;
use crate::problem::Findings;

/// RFC 791: what every host can take; and the longest IP packet.
const MTU: std::ops::RangeInclusive<u64> = 68..=65_535;
/// RFC 9260 §6: the receiver can take at least so much.
const MIN_BUFFER: Size = Size::from_bytes(1500);
/// a_rwnd has 32 bits; a buffer beyond this is no buffer.
const MAX_BUFFER: u64 = 1 << 30;
/// The tick of the endpoint's clock: no round trip is measured shorter.
const TICK: Duration = Duration::from_millis(1);
const HOUR: Duration = Duration::from_secs(3600);

pub(super) fn check(path: &Path, sctp: &Config, found: &mut Findings) {
    if !MTU.contains(&sctp.mtu.as_bytes()) {
        let message = format!("{} is not the size of an IP packet: 68B to 65535B", sctp.mtu);
        found.add(path.key("mtu"), message);
    }
    if sctp.streams == 0 {
        found.add(path.key("streams"), "an association has a stream (RFC 9260 §3.3.2)");
    }
    for (knob, size) in [("receive_buffer", sctp.receive_buffer), ("send_buffer", sctp.send_buffer)]
    {
        if size < MIN_BUFFER {
            found.add(path.key(knob), format!("{size} is below {MIN_BUFFER} (RFC 9260 §6)"));
        } else if size.as_bytes() > MAX_BUFFER {
            found.add(path.key(knob), format!("{size} is above 1 GiB"));
        }
    }
    if sctp.sack_frequency == 0 {
        found.add(path.key("sack_frequency"), "0 packets need no SACK: 1 acknowledges each");
    }
    if sctp.max_burst == 0 {
        found.add(path.key("max_burst"), "0 packets at once let nothing out");
    }
    if sctp.initial_window == Some(Size::from_bytes(0)) {
        found.add(path.key("initial_window"), "a window of 0 bytes lets nothing out");
    }
    reliability(path, sctp, found);
    timers(path, sctp, found);
}

/// RFC 7496 §3: a message has one policy.
fn reliability(path: &Path, sctp: &Config, found: &mut Findings) {
    if sctp.lifetime.is_some_and(Duration::is_zero) {
        found.add(path.key("lifetime"), "0ms gives every message up before it is sent");
    }
    if sctp.lifetime.is_some() && sctp.max_retransmissions.is_some() {
        found
            .add(path.key("max_retransmissions"), "a message has one policy (RFC 7496 §3)")
            .hint("leave it or `lifetime` out".to_owned());
    }
}

fn timers(path: &Path, sctp: &Config, found: &mut Findings) {
    // RFC 9260 §6.2: the delay is not above 0.5 seconds.
    if sctp.sack_delay > Duration::from_millis(500) {
        let message = format!("{} is above 500ms (RFC 9260 §6.2)", sctp.sack_delay);
        found.add(path.key("sack_delay"), message);
    }
    for (knob, span) in [("rto_min", sctp.rto_min), ("rto_initial", sctp.rto_initial)] {
        if span < TICK {
            let message = format!("{span} is below {TICK}, the tick of the clock of SCTP");
            found.add(path.key(knob), message);
        }
    }
    if sctp.rto_initial > sctp.rto_max {
        let message = format!("{} is above rto_max ({})", sctp.rto_initial, sctp.rto_max);
        found.add(path.key("rto_initial"), message);
    }
    if sctp.cookie_life.is_zero() {
        found.add(path.key("cookie_life"), "a cookie of no life opens no association");
    }
    if sctp.rto_min > sctp.rto_max {
        let message = format!("{} is above rto_max ({})", sctp.rto_min, sctp.rto_max);
        found.add(path.key("rto_min"), message);
    }
    for (knob, span) in [
        ("rto_max", sctp.rto_max),
        ("heartbeat_interval", sctp.heartbeat_interval),
        ("cookie_life", sctp.cookie_life),
    ] {
        at_most(path.key(knob), span, HOUR, found);
    }
    if let Some(most) = sctp.potentially_failed
        && most >= sctp.path_max_retrans
    {
        let message = format!(
            "{most} timeouts are not fewer than those a path survives, path_max_retrans = {} (RFC 7829 §3)",
            sctp.path_max_retrans
        );
        found.add(path.key("potentially_failed"), message);
    }
}
