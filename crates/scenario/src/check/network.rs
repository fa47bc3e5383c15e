//! Checks nodes and links individually: names, limits, outages.

use std::collections::BTreeMap;
use std::net::IpAddr;

use talkspurt_proto::time::Duration;
use talkspurt_proto::units::{Rate, Size};
use talkspurt_proto::validate::Validate as _;

use super::time::at_most;
use crate::link_profile;
use crate::model::{GilbertElliott, Link, LinkState, Orbit, Queue, Scenario, Step};
use crate::orbit::MIN_HANDOVER;
use crate::path::Path;
use crate::problem::Findings;
use crate::words::did_you_mean;

/// Longest propagation delay: light takes less to Jupiter.
const LONGEST_DELAY: Duration = Duration::from_secs(3600);
/// RFC 791 §3.2: every module forwards 68 octets without fragmenting.
pub(super) const MIN_MTU_V4: Size = Size::from_bytes(68);
/// An IP packet's length field has 16 bits (RFC 791 §3.1).
const MAX_MTU: Size = Size::from_bytes(65_535);

pub(super) fn check(scenario: &Scenario, run: Duration, found: &mut Findings) {
    for (table, names) in [
        ("nodes", scenario.nodes.keys().collect::<Vec<_>>()),
        ("links", scenario.links.keys().collect()),
        ("cells", scenario.cells.keys().collect()),
        ("flows", scenario.flows.keys().collect()),
    ] {
        for name in names {
            check_name(Path::of(&[table, name]), name, found);
        }
    }
    if scenario.links.is_empty() && scenario.cells.is_empty() {
        found.add(Path::of(&["links"]), "a network needs at least one link or cell");
    }
    nodes(scenario, found);
    for (name, link) in &scenario.links {
        check_link(&Path::of(&["links", name]), link, run, found);
    }
}

/// Names are used in paths, tables and file names.
pub(super) fn check_name(path: Path, name: &str, found: &mut Findings) {
    let fits = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    if name.is_empty() || name.len() > 64 || name.starts_with('-') || !name.chars().all(fits) {
        let proper: String = name.chars().map(|c| if fits(c) { c } else { '-' }).take(64).collect();
        let proper = proper.trim_matches('-');
        found
            .add(path, format!("{name:?} cannot be a name: letters, digits, `-` and `_` make one"))
            .hint((!proper.is_empty()).then(|| format!("did you mean \"{proper}\"?")));
    }
}

fn nodes(scenario: &Scenario, found: &mut Findings) {
    let mut ends: Vec<&str> =
        scenario.links.values().flat_map(|link| [link.from.as_str(), &link.to]).collect();
    for cell in scenario.cells.values() {
        ends.push(&cell.access_point);
        ends.extend(cell.stations.keys().map(String::as_str));
    }
    let mut owners: BTreeMap<IpAddr, &str> = BTreeMap::new();
    for (name, node) in &scenario.nodes {
        let path = Path::of(&["nodes", name]);
        if !ends.contains(&name.as_str()) {
            found.add(path.clone(), "no link reaches this node").hint(did_you_mean(
                "nodes with links are",
                name,
                ends.iter().copied(),
            ));
        }
        let hex = |c: char| c.is_ascii_hexdigit();
        let known = |colour: &&String| {
            colour.strip_prefix('#').is_some_and(|six| six.len() == 6 && six.chars().all(hex))
        };
        if let Some(colour) = node.colour.as_ref().filter(|colour| !known(colour)) {
            let hint = "write it like \"#0072b2\"".to_owned();
            found.add(path.key("colour"), format!("{colour:?} is not a colour")).hint(hint);
        }
        at_most(path.key("clock_offset"), node.clock_offset, Duration::from_secs(86_400), found);
        for (index, address) in node.addresses.iter().enumerate() {
            let path = path.key("addresses").index(index);
            if address.is_unspecified() || address.is_multicast() || address.is_loopback() {
                found.add(path, format!("{address} cannot be a host's address on a network"));
            } else if let Some(owner) = owners.insert(*address, name) {
                found.add(path, format!("{address} is already an address of {owner:?}"));
            }
        }
    }
}

fn check_link(path: &Path, link: &Link, run: Duration, found: &mut Findings) {
    for (end, node) in [("from", &link.from), ("to", &link.to)] {
        check_name(path.key(end), node, found);
    }
    if link.from == link.to {
        found.add(path.key("to"), format!("both ends are the node {:?}", link.to));
    }
    check_mtu(path.key("mtu"), link.mtu, found);
    let back = path.key("back");
    rate(path.key("rate"), link.rate, link.mtu, run, found);
    lasting(path.key("delay"), link.delay, run, found);
    lasting(path.key("jitter"), link.jitter, run, found);
    queue(&path.key("queue"), &link.queue, link.mtu, found);
    if let Some(reverse) = &link.back {
        if let Some(value) = reverse.rate {
            rate(back.key("rate"), value, link.mtu, run, found);
        }
        if let Some(value) = reverse.delay {
            lasting(back.key("delay"), value, run, found);
        }
        if let Some(value) = reverse.jitter {
            lasting(back.key("jitter"), value, run, found);
        }
        if let Some(value) = &reverse.queue {
            queue(&back.key("queue"), value, link.mtu, found);
        }
        bursts(&back, reverse.loss.unwrap_or(0.0), reverse.gilbert_elliott, found);
        steps(&back, reverse.steps.as_deref().unwrap_or_default(), link.mtu, run, found);
    }
    if let Some(satellites) = &link.orbit {
        orbit(path, link, satellites, found);
    }
    bursts(path, link.loss, link.gilbert_elliott, found);
    steps(path, &link.steps, link.mtu, run, found);
    events(path, link, run, found);
}

/// A packet in flight for longer than the run would never arrive.
fn lasting(path: Path, time: Duration, run: Duration, found: &mut Findings) {
    if time <= LONGEST_DELAY && time > run {
        found.add(path, format!("{time} is longer than the run ({run})"));
    } else {
        at_most(path, time, LONGEST_DELAY, found);
    }
}

/// In a cell, each frame has its own rate.
pub(super) fn queue_of_cell(path: &Path, words: &Queue, mtu: Size, found: &mut Findings) {
    queue(path, words, mtu, found);
    if words.rate_limits(Rate::ZERO).iter().any(|(_, follows)| *follows) {
        let message =
            "`follow_rate` is for links whose rate changes; in a cell, each frame has its own";
        found.add(path.clone(), message).hint("leave it out".to_owned());
    }
}

pub(super) fn queue(path: &Path, queue: &Queue, mtu: Size, found: &mut Findings) {
    found.add_errors(path, queue.errors_for(mtu));
}

pub(super) fn check_mtu(path: Path, mtu: Size, found: &mut Findings) {
    if mtu < MIN_MTU_V4 {
        found.add(path, format!("{mtu} is below the least of IPv4, 68B (RFC 791 §3.2)"));
    } else if mtu > MAX_MTU {
        found.add(path, format!("{mtu} is above the longest IP packet, 65535B (RFC 791 §3.1)"));
    }
}

fn rate(path: Path, rate: Rate, mtu: Size, run: Duration, found: &mut Findings) {
    match rate.time_for(mtu.as_bytes()) {
        None => {
            found.add(path, "at rate 0 nothing is ever sent");
        }
        Some(time) if time > run => {
            let message =
                format!("at {rate} one packet of {mtu} takes {time}, longer than the run ({run})");
            found.add(path, message);
        }
        Some(_) => {}
    }
}

fn bursts(path: &Path, loss: f64, bursts: Option<GilbertElliott>, found: &mut Findings) {
    let Some(chain) = bursts else { return };
    let path = path.key("gilbert_elliott");
    if loss > 0.0 {
        found.add(path.clone(), "takes the place of `loss`: give one of them");
    }
    found.add_errors(&path, chain.errors());
}

fn orbit(path: &Path, link: &Link, orbit: &Orbit, found: &mut Findings) {
    let back = link.back.as_ref();
    let within = path.key("orbit");
    if !link.steps.is_empty()
        || link.trace.is_some()
        || back.is_some_and(|back| back.steps.is_some() || back.trace.is_some())
    {
        found.add(within.clone(), "takes the place of `steps` and `trace`: give one of them");
    }
    let bursts =
        link.gilbert_elliott.is_some() || back.is_some_and(|b| b.gilbert_elliott.is_some());
    if bursts && orbit.gap_loss > 0.0 {
        let message = "changes `loss`, which cannot stand beside `gilbert_elliott`";
        found.add(within.key("gap_loss"), message);
    }
    match orbit.handover {
        Some(every) if every < MIN_HANDOVER => {
            let message = format!("{every} is no time: at least {MIN_HANDOVER}");
            found.add(within.key("handover"), message);
        }
        Some(every) if orbit.gap >= every => {
            let message = format!("{} is not shorter than handover ({every})", orbit.gap);
            found.add(within.key("gap"), message);
        }
        Some(_) if orbit.elevations.len() < 2 => {
            let message = "one satellite has none to hand over to: give more `elevations`";
            found.add(within.key("handover"), message);
        }
        None if orbit.elevations.len() > 1 => {
            let message = "without `handover` only the first carries the link";
            found.add(within.key("elevations"), message);
        }
        None if orbit.gap_loss > 0.0 => {
            found.add(within.key("gap_loss"), "there is no `handover` to lose packets at");
        }
        _ => {}
    }
}

/// A step or event comes after the one before it and within the run.
fn in_order(
    path: Path,
    what: &str,
    at: Duration,
    last: Option<Duration>,
    run: Duration,
    found: &mut Findings,
) {
    if let Some(last) = last.filter(|last| at <= *last) {
        let message = format!("{at} is not after the {what} before it ({last})");
        found.add(path.clone(), message).hint(format!("write {what}s in order of time"));
    }
    if at > run {
        found.add(path, format!("{at} is after the end of the run ({run})"));
    }
}

fn steps(path: &Path, steps: &[Step], mtu: Size, run: Duration, found: &mut Findings) {
    let mut last: Option<Duration> = None;
    for (index, step) in steps.iter().enumerate() {
        let path = path.key("steps").index(index);
        in_order(path.key("at"), "step", step.at, last, run, found);
        if step.rate.is_none() && step.delay.is_none() && step.loss.is_none() {
            found.add(path.clone(), "changes nothing: give `rate`, `delay` or `loss`");
        }
        if let Some(value) = step.rate.filter(|value| *value != Rate::ZERO) {
            rate(path.key("rate"), value, mtu, run, found);
        }
        if let Some(value) = step.delay {
            lasting(path.key("delay"), value, run, found);
        }
        last = Some(step.at);
    }
    if let Some(fault) = link_profile::silent(steps) {
        let hint = "for an outage that ends, give a later step a rate".to_owned();
        found.add(path.key("steps"), fault).hint(hint);
    }
}

fn events(path: &Path, link: &Link, run: Duration, found: &mut Findings) {
    let mut state = LinkState::Up;
    let mut last: Option<Duration> = None;
    for (index, event) in link.events.iter().enumerate() {
        let path = path.key("events").index(index);
        in_order(path.key("at"), "event", event.at, last, run, found);
        if event.state == state {
            let word = if state == LinkState::Up { "up" } else { "down" };
            found
                .add(path.key("state"), format!("the link is already {word} then"))
                .hint((index == 0).then(|| "links are up at the start".to_owned()));
        }
        (state, last) = (event.state, Some(event.at));
    }
}
