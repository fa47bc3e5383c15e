//! A sender whose path MTU has become too small for all its packets, BYE included: which frames are discarded,
//! and when it parts anyway. Bulk data is cut instead.

use talkspurt_proto::body::Body;
use talkspurt_proto::endpoint::Event;
use talkspurt_proto::packet::{Ecn, IpVersion, PathId, Quote};
use talkspurt_proto::probe::{Note, Place, Probe};
use talkspurt_proto::time::{Duration, Instant};
use talkspurt_proto::{rtcp, tfrc};

use super::ladder_tests::{Shelf, parts};
use super::{Action, Parts, Peer};
use crate::source;
use crate::transport::{self, Side};

const MS: Duration = Duration::from_millis(1);

/// Frames by state, and when the flow closed.
#[derive(Default)]
struct Eye {
    made: Vec<u32>,
    /// Bytes of each frame.
    lengths: Vec<u32>,
    handed: Vec<u32>,
    discarded: Vec<u32>,
    closed: Option<Instant>,
}

impl Probe for Eye {
    fn wants(&self, _: talkspurt_proto::probe::Topic) -> bool {
        true
    }
    fn record(&mut self, now: Instant, _: Place, note: &Note<'_>) {
        match *note {
            Note::Generated { index, bytes, .. } => {
                self.made.push(index);
                self.lengths.push(bytes);
            }
            Note::HandedOver { index } => self.handed.push(index),
            Note::Discarded { index } => self.discarded.push(index),
            Note::Event(Event::Closed) => self.closed = Some(now),
            _ => {}
        }
    }
}

/// 400 ms of speech over TFRC without answers; at 100 ms a router reports an MTU of 68 bytes (24 of data).
fn narrowed() -> Eye {
    let mut parts = parts(Side::Opens, crate::playout::Config::fixed(Duration::from_millis(60)));
    parts.rtcp = rtcp::Config::default();
    narrow(parts)
}

fn narrow(mut parts: Parts) -> Eye {
    parts.transport = transport::Config::Tfrc(tfrc::Config::default());
    let (mut eye, mut peer) = (Eye::default(), Peer::new(parts));
    let quote = Quote {
        version: IpVersion::V4,
        ip_bytes: 216,
        mark: 0,
        ttl: 64,
        dscp: 0,
        ecn: Ecn::NotEct,
        transport: talkspurt_proto::wire::udp::quoted(8),
    };
    for ms in 0..=8000 {
        let now = Instant::ZERO + MS * ms;
        match ms {
            100 => {
                let mut body = Body::TooBig { mtu: 68, quote };
                peer.receive(now, (PathId(0), Ecn::NotEct), &mut body, &mut eye);
            }
            _ => peer.wake(now, &mut eye),
        }
        while let Action::Send { .. } = peer.poll(now, &mut Shelf::default(), &mut eye) {}
    }
    eye
}

#[test]
fn frames_that_fit_no_packet_go_instead_of_blocking_the_queue() {
    let eye = narrowed();
    // The first left before; packets of 12 + 160 bytes no longer fit.
    assert_eq!(eye.handed, [0]);
    assert!(eye.made.len() > 15);
    assert_eq!(eye.discarded, eye.made[1..]);
}

/// Units of 1000 bytes, 1100 in total: one left before, the rest goes in packets of 24 bytes (68 less 20 of IP,
/// 8 of UDP and 16 of TFRC), and the last has the remainder.
#[test]
fn bulk_data_is_cut_to_the_path() {
    let mut parts = parts(Side::Opens, crate::playout::Config::fixed(Duration::from_millis(60)));
    let total = Some(talkspurt_proto::units::Size::from_bytes(1100));
    parts.source = Some((
        source::Config::Bulk(source::BulkConfig { total, ..Default::default() }),
        source::Material::None,
    ));
    parts.stop = Instant::ZERO + MS * 8000;
    let eye = narrow(parts);
    assert_eq!(eye.lengths, [1000, 24, 24, 24, 24, 4]);
    assert_eq!(eye.handed, eye.made);
}

/// RFC 3550 §6.2: at least 5 s between reports; a BYE that cannot leave does not wait longer.
#[test]
fn a_goodbye_without_room_is_given_up_after_one_interval() {
    let closed = narrowed().closed.expect("it parts");
    let since = closed.as_nanos() / 1_000_000;
    assert!((5380..=5420).contains(&since), "{since} ms");
}
