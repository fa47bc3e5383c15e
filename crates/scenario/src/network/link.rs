//! One direction of a link, and its construction from a scenario's links and cells.

use talkspurt_proto::time::Duration;
use talkspurt_proto::units::{Rate, Size};

use crate::link_profile::{self, LinkProfile};
use crate::model::{Cell, Framing, GilbertElliott, Link, LinkEvent, Queue, RateControl};

/// One direction of a link, with its effective properties.
#[derive(Clone, Debug, PartialEq)]
pub struct DirectedLink {
    /// The link's name in the scenario, with `.back` for the direction from `to` to `from`. For a
    /// transmitter in a cell, the names of the cell and the node.
    pub name: String,
    /// Index of its link in the scenario, in file order; for a transmitter, of its cell.
    pub link: usize,
    /// Node at the sending end, an index into [`Network::nodes`](super::Network::nodes).
    pub from: usize,
    /// Node at the receiving end; for an access point, the first of its stations.
    pub to: usize,
    /// Whether it is a transmitter in a cell.
    pub in_cell: bool,
    /// Bits sent per second.
    pub rate: Rate,
    /// Propagation delay at the start, including a satellite.
    pub delay: Duration,
    /// Upper bound of the additional random delay.
    pub jitter: Duration,
    /// The queue of the transmitter.
    pub queue: Queue,
    /// Bytes added to each IP packet.
    pub framing: Framing,
    /// Longest IP packet accepted.
    pub mtu: Size,
    /// Probability that a packet is lost on the medium.
    pub loss: f64,
    /// Burst loss model; if set, `loss` is 0.
    pub gilbert_elliott: Option<GilbertElliott>,
    /// Probability that a bit is received wrongly.
    pub bit_error_rate: f64,
    /// Probability that a packet is duplicated.
    pub duplicate: f64,
    /// Whether packets may overtake.
    pub reorder: bool,
    /// Changes of rate, delay and loss.
    pub course: Option<LinkProfile>,
    /// Outages and returns in order of time, the same in both directions.
    pub events: Vec<LinkEvent>,
}

impl DirectedLink {
    /// The highest rate of the run: for a mahimahi trace, that of its period.
    #[must_use]
    pub fn highest_rate(&self) -> Rate {
        match &self.course {
            None => self.rate,
            Some(LinkProfile::Opportunities(times)) => link_profile::mean_rate(times),
            Some(LinkProfile::Steps(steps)) => {
                let rates = steps.iter().filter_map(|step| step.rate);
                rates.chain([self.rate]).max().unwrap_or(self.rate)
            }
        }
    }

    /// Whether the queue follows the rate, of which there is none at an instant.
    pub(super) fn follows_no_rate(&self) -> bool {
        let traced = matches!(self.course, Some(LinkProfile::Opportunities(_)));
        traced && self.queue.rate_limits(self.rate).iter().any(|(_, follows)| *follows)
    }

    /// The queue in words. If the rate changes, they say whether limits in time follow it.
    #[must_use]
    pub fn queue_words(&self) -> String {
        let changes = match &self.course {
            None => false,
            Some(LinkProfile::Opportunities(_)) => true,
            Some(LinkProfile::Steps(steps)) => steps.iter().any(|step| step.rate.is_some()),
        };
        let limits = self.queue.rate_limits(self.rate);
        match limits.iter().find(|(_, follows)| !follows) {
            Some((rate, _)) if changes => format!("{} (computed for {rate})", self.queue),
            _ => self.queue.to_string(),
        }
    }
}

pub(super) fn forth(name: &str, index: usize, link: &Link, from: usize, to: usize) -> DirectedLink {
    DirectedLink {
        name: name.to_owned(),
        link: index,
        from,
        to,
        in_cell: false,
        rate: link.rate,
        delay: link.delay,
        jitter: link.jitter,
        queue: link.queue.clone(),
        framing: link.framing,
        mtu: link.mtu,
        loss: link.loss,
        gilbert_elliott: link.gilbert_elliott,
        bit_error_rate: link.bit_error_rate,
        duplicate: link.duplicate,
        reorder: link.reorder,
        course: None,
        events: link.events.clone(),
    }
}

pub(super) fn back(forth: &DirectedLink, link: &Link) -> DirectedLink {
    let differing = link.back.clone().unwrap_or_default();
    // One loss model replaces the other.
    let (loss, gilbert_elliott) = match (differing.loss, differing.gilbert_elliott) {
        (None, None) => (forth.loss, forth.gilbert_elliott),
        (loss, bursts) => (loss.unwrap_or(0.0), bursts),
    };
    DirectedLink {
        name: format!("{}.back", forth.name),
        from: forth.to,
        to: forth.from,
        rate: differing.rate.unwrap_or(forth.rate),
        delay: differing.delay.unwrap_or(forth.delay),
        jitter: differing.jitter.unwrap_or(forth.jitter),
        queue: differing.queue.unwrap_or_else(|| forth.queue.clone()),
        loss,
        gilbert_elliott,
        bit_error_rate: differing.bit_error_rate.unwrap_or(forth.bit_error_rate),
        duplicate: differing.duplicate.unwrap_or(forth.duplicate),
        reorder: differing.reorder.unwrap_or(forth.reorder),
        ..forth.clone()
    }
}

/// The transmitters of a cell's nodes.
pub(super) fn transmitters(
    name: &str,
    index: usize,
    cell: &Cell,
    access_point: usize,
    stations: &[usize],
) -> Vec<DirectedLink> {
    let first = stations.first().copied().unwrap_or(access_point);
    let mut all = vec![DirectedLink {
        name: format!("{name}.{}", cell.access_point),
        ..transmitter(cell, None, index, access_point, first)
    }];
    for ((station, own), node) in cell.stations.iter().zip(stations) {
        all.push(DirectedLink {
            name: format!("{name}.{station}"),
            queue: own.queue.clone().unwrap_or_else(|| cell.queue.clone()),
            ..transmitter(cell, own.rate.as_ref(), index, *node, access_point)
        });
    }
    all
}

/// A transmitter without a name. Its rate is that of its frames, or the maximum.
pub(super) fn transmitter(
    cell: &Cell,
    rate: Option<&RateControl>,
    index: usize,
    from: usize,
    to: usize,
) -> DirectedLink {
    let rate = match rate.cloned().unwrap_or_else(|| cell.usual_rate()) {
        RateControl::Fixed(fixed) => fixed.rate,
        RateControl::Arf(_) | RateControl::Minstrel(_) => cell.highest_rate(),
    };
    let wired = Link::plain("", "", rate, Duration::ZERO, cell.queue.clone());
    DirectedLink { in_cell: true, mtu: cell.mtu, ..forth("", index, &wired, from, to) }
}
