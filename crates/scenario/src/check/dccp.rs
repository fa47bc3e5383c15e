//! The knobs of DCCP that can contradict each other or RFC 4340, those of the CCIDs among them.

use talkspurt_proto::dccp::{Ccid, Config, ccid2};
use talkspurt_proto::time::Duration;
use talkspurt_proto::{dccp::seqno, rate};

use super::time::at_most;
use super::{rate as rates, window};
use crate::path::Path;
use crate::problem::Findings;

/// RFC 4340 §9.2: the field has four bits.
const MOST_COVERAGE: u8 = 15;
/// RFC 791: what every host can take; and the longest IP packet.
const MTU: std::ops::RangeInclusive<u64> = 68..=65_535;
const MOST_TIMER: Duration = Duration::from_secs(3600);

pub(super) fn check(path: &Path, dccp: &Config, found: &mut Findings) {
    sequence_window(path, dccp, found);
    coverage(path, dccp, found);
    timers(path, dccp, found);
    if !MTU.contains(&dccp.mtu.as_bytes()) {
        let message = format!("{} is not the size of an IP packet: 68B to 65535B", dccp.mtu);
        found.add(path.key("mtu"), message);
    }
    ccids(path, dccp, found);
    window::check(&path.key("window"), &dccp.window, dccp.profile, found);
    rates::check(&path.key("rate"), &dccp.rate, found);
}

/// RFC 4340 §7.5.2: 32 to 2^46 − 1; with short sequence numbers less (§7.6).
fn sequence_window(path: &Path, dccp: &Config, found: &mut Findings) {
    let Some(window) = dccp.sequence_window else { return };
    let (least, most) = (seqno::LEAST_WINDOW, dccp.most_window());
    if (least..=most).contains(&window) {
        return;
    }
    let message = if window > most && dccp.allow_short_seqnos {
        format!(
            "{window} packets cannot be told apart by short sequence numbers: {least} to {most}"
        )
    } else {
        format!("{window} packets is not a Sequence Window: {least} to {most} (RFC 4340 §7.5.2)")
    };
    found.add(path.key("sequence_window"), message);
}

/// Both ends have the same knobs, so that a coverage below the minimum is refused by the other.
fn coverage(path: &Path, dccp: &Config, found: &mut Findings) {
    let (coverage, minimum) = (dccp.checksum_coverage, dccp.minimum_checksum_coverage);
    let mut known = true;
    for (knob, value) in [("checksum_coverage", coverage), ("minimum_checksum_coverage", minimum)] {
        if value > MOST_COVERAGE {
            let message = format!("{value} does not fit the four bits of the field: 0 to 15");
            found.add(path.key(knob), message);
            known = false;
        }
    }
    if !known || coverage == 0 {
        return;
    }
    let path = path.key("checksum_coverage");
    if minimum == 0 {
        found
            .add(path, "the other side takes only packets that are covered whole (RFC 4340 §9.2.1)")
            .hint(format!("minimum_checksum_coverage = {coverage} or less lets it take these"));
    } else if coverage < minimum {
        let message = format!(
            "{coverage} is below the least the other side takes, minimum_checksum_coverage = {minimum} (RFC 4340 §9.2.1)"
        );
        found.add(path, message);
    }
}

fn timers(path: &Path, dccp: &Config, found: &mut Findings) {
    for (knob, span) in [
        ("request_timeout", dccp.request_timeout),
        ("max_timeout", dccp.max_timeout),
        ("give_up", dccp.give_up),
    ] {
        if span.is_zero() {
            found.add(path.key(knob), "0ms: a timer needs time");
        }
        at_most(path.key(knob), span, MOST_TIMER, found);
    }
    at_most(path.key("msl"), dccp.msl, MOST_TIMER, found);
    if dccp.request_timeout > dccp.max_timeout {
        let message =
            format!("{} is above max_timeout ({})", dccp.request_timeout, dccp.max_timeout);
        found.add(path.key("request_timeout"), message);
    }
}

/// Knobs of a CCID that neither direction uses would be believed and change nothing.
fn ccids(path: &Path, dccp: &Config, found: &mut Findings) {
    let used = [dccp.ccid_of(false), dccp.ccid_of(true)];
    if !used.contains(&Ccid::Two) && dccp.window != ccid2::Config::default() {
        let message = "these are knobs of CCID 2, which neither direction uses";
        found
            .add(path.key("window"), message)
            .hint("those of CCID 3 and 4 are in `rate`".to_owned());
    }
    if !used.iter().any(|ccid| ccid.is_rate_based()) && dccp.rate != rate::Config::default() {
        let message = "these are knobs of CCID 3 and 4, which neither direction uses";
        found.add(path.key("rate"), message).hint("those of CCID 2 are in `window`".to_owned());
    }
}
