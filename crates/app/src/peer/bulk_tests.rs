//! Bulk data over TCP: joining writes has no visible effect, and new room is filled at once.

use talkspurt_proto::body::Body;
use talkspurt_proto::packet::{Ecn, PathId};
use talkspurt_proto::probe::{Note, Place, Probe, Topic};
use talkspurt_proto::rtcp;
use talkspurt_proto::tcp::{self, Controller, Segment};
use talkspurt_proto::time::{Duration, Instant};
use talkspurt_proto::units::Size;

use super::ladder_tests::{Shelf, parts};
use super::{Action, Peer};
use crate::source;
use crate::transport::{self, Side};

const MS: Duration = Duration::from_millis(1);
const DELAY: u64 = 30;
const TOTAL: u64 = 200_000;

/// Notes on units: the number handed over, and the number and bytes of those generated.
#[derive(Default, Debug, PartialEq)]
struct Eye {
    notes: Vec<String>,
    handed: u32,
    made: u64,
}

impl Probe for Eye {
    fn wants(&self, _: Topic) -> bool {
        true
    }
    fn record(&mut self, now: Instant, place: Place, note: &Note<'_>) {
        match note {
            Note::Generated { bytes, .. } => self.made += u64::from(*bytes),
            Note::HandedOver { .. } => self.handed += 1,
            _ => {}
        }
        if note.topic() == Topic::Frame {
            self.notes.push(format!("{now:?} {place:?} {note:?}"));
        }
    }
}

/// A segment sent: time in milliseconds, whether by the opening side, and the segment.
type Left = (u64, bool, Segment);

/// 200 kB in units of 700 bytes over 30 ms each way, with every `lost`-th segment lost.
fn carry(config: &tcp::Config, lost: usize) -> (Eye, Vec<Left>) {
    let (mut eye, mut shelf) = (Eye::default(), Shelf::default());
    let mut peers = [Side::Opens, Side::Answers].map(|side| {
        let mut parts = parts(side, crate::playout::Config::fixed(Duration::from_millis(60)));
        parts.transport = transport::Config::Tcp(config.clone());
        parts.rtcp = rtcp::Config { enabled: false, ..rtcp::Config::default() };
        let bulk = source::BulkConfig {
            total: Some(Size::from_bytes(TOTAL)),
            packet: Some(Size::from_bytes(700)),
            ..source::BulkConfig::default()
        };
        parts.source = parts.source.map(|_| (source::Config::Bulk(bulk), source::Material::None));
        parts.sink = None;
        parts.stop = Instant::ZERO + MS * 60_000;
        Peer::new(parts)
    });
    let (mut wire, mut log) = (Vec::<(u64, usize, (Ecn, Segment))>::new(), Vec::<Left>::new());
    for ms in 0..40_000 {
        let now = Instant::ZERO + MS * ms;
        let (due, later): (Vec<_>, _) = wire.into_iter().partition(|(at, ..)| *at <= ms);
        wire = later;
        for side in [0, 1] {
            peers[side].wake(now, &mut eye);
            let mut arrivals = due.iter().filter(|(_, to, _)| *to == side);
            loop {
                while let Action::Send { ecn, .. } = peers[side].poll(now, &mut shelf, &mut eye) {
                    let Body::Tcp(segment) = shelf.take() else { panic!("TCP sends TCP") };
                    log.push((ms, side == 0, segment.clone()));
                    if log.len() % lost != 0 {
                        wire.push((ms + DELAY, 1 - side, (ecn, segment)));
                    }
                }
                let Some((_, _, (ecn, segment))) = arrivals.next() else { break };
                let mut body = Body::Tcp(segment.clone());
                peers[side].receive(now, (PathId(0), *ecn), &mut body, &mut eye);
            }
        }
    }
    (eye, log)
}

fn config() -> tcp::Config {
    tcp::Config {
        mss: Size::from_bytes(1000),
        send_buffer: Size::from_bytes(20_000),
        timestamps: false,
        ..tcp::Config::new(Controller::Sack)
    }
}

/// With a mark that the buffer reaches first, each unit is a separate write, and nothing else differs: the
/// notes on units and the segments are the same.
#[test]
fn joined_writes_are_those_apart() {
    let joined = config();
    let apart = tcp::Config { notsent_lowat: Some(joined.send_buffer), ..config() };
    let joins = |config: &tcp::Config| transport::Config::Tcp(config.clone()).joins_writes();
    assert!(joins(&joined) && !joins(&apart));
    for lost in [usize::MAX, 23] {
        let (eye, segments) = carry(&joined, lost);
        assert_eq!((eye.made, u64::from(eye.handed)), (TOTAL, TOTAL.div_ceil(700)));
        assert_eq!((eye, segments), carry(&apart, lost));
    }
}

/// Departing data makes room below a mark of 1500 bytes, which the transport reports; a whole initial window
/// leaves at the instant of the SYN-ACK only if the source is asked again each time.
#[test]
fn room_is_filled_when_it_is_heard_of() {
    let config = tcp::Config { notsent_lowat: Some(Size::from_bytes(1500)), ..config() };
    let (_, segments) = carry(&config, usize::MAX);
    let data =
        segments.iter().filter(|(_, opener, segment)| *opener && !segment.payload.is_empty());
    let first = data.filter(|(ms, ..)| *ms == 2 * DELAY).map(|(.., segment)| segment.payload.len());
    assert_eq!(first.sum::<usize>(), 1000 * config.initial_window as usize);
}
