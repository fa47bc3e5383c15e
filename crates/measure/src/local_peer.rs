//! The peers of one end, with what the media loop knows of each, and the ends inside the datagrams of UDP.

use std::net::IpAddr;

use talkspurt_app::source::Config as Source;
use talkspurt_app::transport;
use talkspurt_flow::{Materials, Parts, Peer, parts};
use talkspurt_live::{Encapsulation, wrap};
use talkspurt_proto::media::breaker::{Breaker, Trip};
use talkspurt_proto::packet::IpVersion;
use talkspurt_proto::time::Instant;
use talkspurt_proto::units::Size;
use talkspurt_proto::wire::{Ends, Hints};
use talkspurt_scenario::Point;

use crate::plan::{Plan, Traffic};
use crate::wire::Wire;

/// A peer at this end of the path.
pub(crate) struct LocalPeer {
    pub(crate) peer: Peer,
    /// As in [`talkspurt_proto::probe::Place::Peer`].
    pub(crate) number: usize,
    pub(crate) hints: Hints,
    pub(crate) encapsulation: Option<Encapsulation>,
    pub(crate) wake: Option<Instant>,
    /// Of a sender without congestion control.
    pub(crate) breaker: Option<Breaker>,
    /// When it stopped for good, and why.
    pub(crate) tripped: Option<(Instant, String)>,
    /// Packets sent.
    pub(crate) sent: u32,
    /// One more than the highest number received, and the number of packets received.
    pub(crate) highest: u64,
    pub(crate) received: u64,
}

impl LocalPeer {
    pub(crate) const fn flow(&self) -> u8 {
        (self.number / 2) as u8
    }

    /// The whole IP packet of a payload that came in a datagram or a unit.
    pub(crate) fn wrapped(&self, mut ends: Ends, class: u8, payload: &[u8]) -> Vec<u8> {
        if let Some(Encapsulation { local_port, remote_port, .. }) = self.encapsulation {
            (ends.src_port, ends.dst_port) = (remote_port, local_port);
        }
        let mut whole = Vec::new();
        wrap(&ends, class, payload, &mut whole);
        whole
    }

    pub(crate) fn trip(&mut self, now: Instant, trip: Option<Trip>) {
        if let Some(trip) = trip {
            self.tripped.get_or_insert_with(|| (now, trip.words().to_owned()));
        }
    }
}

/// The peers of a plan by number, as [`talkspurt_flow::peers`] makes them; those of flows over TCP hand their
/// units to the streams.
pub(crate) fn peers(plan: &Plan, point: &Point, materials: &Materials, wire: &Wire) -> Vec<Peer> {
    let flows = plan.flows.iter().enumerate().flat_map(|(number, flow)| {
        let both = parts(&point.scenario, &point.network, materials, number);
        let stream = wire.streams.iter().find(|stream| usize::from(stream.flow) == number);
        both.into_iter().flatten().map(move |mut parts: Parts| {
            if let Some(stream) = stream {
                parts.transport = transport::Config::External(stream.transport());
                let packet = [&flow.up, &flow.down].into_iter().flatten().find_map(|it| match it {
                    Traffic::Bulk { packet } => Some(Size::from_bytes(u64::from(*packet))),
                    _ => None,
                });
                if let Some((Source::Bulk(bulk), _)) = &mut parts.source {
                    bulk.packet = packet;
                }
            }
            Peer::new(parts)
        })
    });
    flows.collect()
}

/// Addresses inside the sealed datagrams, where they only take part in checksums: those of documentation (RFC
/// 5737, RFC 3849).
pub(crate) fn ends(version: IpVersion, from_client: bool) -> Ends {
    let address = |last: u8| match version {
        IpVersion::V4 => IpAddr::from([192, 0, 2, last]),
        IpVersion::V6 => IpAddr::from([0x2001, 0xdb8, 0, 0, 0, 0, 0, u16::from(last)]),
    };
    let (src, dst) = if from_client { (1, 2) } else { (2, 1) };
    Ends { src: address(src), dst: address(dst), src_port: 5004, dst_port: 5004 }
}
