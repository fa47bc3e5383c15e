//! Runs a peer in real time.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};

use talkspurt_flow::Peer;
use talkspurt_proto::body::{Bodies, Body};
use talkspurt_proto::endpoint::{Arrival, Listener as _};
use talkspurt_proto::packet::{BodyId, Packet};
use talkspurt_proto::probe::{Note, Probe};
use talkspurt_proto::time::{Duration, Instant};
use talkspurt_proto::wire::Parsed;

use crate::line::{Line, Port, label};

/// Longest wait: how late a request to stop can be seen.
const STEP: Duration = Duration::from_millis(50);

/// Runs one end of a flow over `line` until `end` by the line's clock, whose zero is the start of the scenario,
/// or until `stop`. Both ends get the sources' and transports' configuration from the scenario;
/// [`talkspurt_flow::hints`] has what packets do not carry.
///
/// # Errors
/// The socket failed. A packet it did not accept is lost, as on any network, and is no error.
pub fn run_peer<L: Port, P: Probe>(
    peer: &mut Peer,
    line: &mut Line<L>,
    end: Instant,
    stop: &AtomicBool,
    probe: &mut P,
) -> io::Result<()> {
    let mut numbers = Numbers::default();
    loop {
        let mut wake = send_all(peer, line, &mut numbers, probe)?;
        if peer.transport().is_listening() {
            line.forget_peer();
        }
        let now = line.now();
        if now >= end || stop.load(Ordering::Relaxed) {
            peer.finish(now.min(end), probe);
            return Ok(());
        }
        let limit = end.min(now + STEP);
        let received = line.receive(Some(wake.map_or(limit, |wake| wake.min(limit))))?;
        let now = line.now();
        match received {
            // Before timers that expired meanwhile, an acknowledgement that is here makes a
            // retransmission needless.
            Some(Ok(parsed)) => {
                receive(peer, line, parsed, &mut numbers, probe);
                wake = send_all(peer, line, &mut numbers, probe)?;
            }
            Some(Err(error)) => {
                probe.record(now, peer.place(), &Note::RxError(error.rx_error()));
            }
            None => {}
        }
        if wake.is_some_and(|at| at <= now) {
            peer.wake(now, probe);
        }
    }
}

/// Packets sent and received so far.
#[derive(Default)]
struct Numbers {
    sent: u32,
    received: u32,
}

/// The single packet between a peer and what sends it.
#[derive(Default)]
pub struct Slot(pub Option<Body>);

impl Bodies for Slot {
    fn put(&mut self, body: impl FnOnce() -> Body) -> BodyId {
        self.0 = Some(body());
        BodyId(0)
    }
}

/// Sends the peer's pending packets; returns its next wake-up time.
fn send_all<L: Port, P: Probe>(
    peer: &mut Peer,
    line: &mut Line<L>,
    numbers: &mut Numbers,
    probe: &mut P,
) -> io::Result<Option<Instant>> {
    use talkspurt_app::peer::Action;
    let mut slot = Slot::default();
    loop {
        let now = line.now();
        match peer.poll(now, &mut slot, probe) {
            Action::Send { path, ecn, ip_bytes, .. } => {
                let body = slot.0.take().expect("a packet to send has a body");
                let (dscp, version) = peer.header();
                let label = label(path, ecn, &body, version, numbers.sent, now);
                let packet = Packet { dscp, ip_bytes, ..label };
                numbers.sent = numbers.sent.wrapping_add(1);
                probe.record(now, peer.place(), &Note::Sent { packet: &packet, body: &body });
                line.send(&packet, &body)?;
            }
            Action::Idle { until } => return Ok(until),
        }
    }
}

fn receive<L: Port, P: Probe>(
    peer: &mut Peer,
    line: &mut Line<L>,
    parsed: Parsed,
    numbers: &mut Numbers,
    probe: &mut P,
) {
    let Parsed { ends, ecn, damage, mut body, .. } = parsed;
    let now = line.now();
    let path = line.path_of(&ends).expect("a line gives only what is on a path");
    let packet = label(path, ecn, &body, line.version(), numbers.received, now);
    numbers.received = numbers.received.wrapping_add(1);
    probe.record(now, peer.place(), &Note::Received { packet: &packet, body: &body });
    let transport = peer.transport();
    if transport.recognises(&body) {
        line.follow_peer();
    }
    if transport.is_listening() {
        transport.between(&line.ends());
    }
    peer.receive_from_wire(now, Arrival { path, ecn, damage }, &mut body, probe);
}
