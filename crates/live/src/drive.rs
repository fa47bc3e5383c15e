//! The loop of real time: what the endpoint wants done is done, what the application wants is
//! handed in, and then it waits for a packet or for the next deadline, whichever comes first.

use std::convert::Infallible;
use std::io;

use talkspurt_proto::body::{Body, Layers};
use talkspurt_proto::endpoint::{Arrival, Endpoint, Event, Input, Output, Transmit};
use talkspurt_proto::frame::Frame;
use talkspurt_proto::packet::{BodyId, Ecn, IpVersion, Packet, PathId};
use talkspurt_proto::probe::{Note, Place, Probe, RxError};
use talkspurt_proto::time::Instant;
use talkspurt_proto::wire::Parsed;

use crate::line::{Line, Port};

/// Notes are taken at this place: a live run has one peer of its own.
const HERE: Place = Place::Peer(0);

/// Who talks over an endpoint.
pub trait App {
    /// A frame arrived.
    fn on_frame(&mut self, now: Instant, frame: Frame);
    /// The connection changed.
    fn on_event(&mut self, now: Instant, event: Event);
    /// What to do next, with `room` bytes free in the endpoint. Asked after every step, packet and
    /// deadline, until it answers [`Step::Wait`] or [`Step::Stop`].
    fn step(&mut self, now: Instant, room: usize) -> Step;
}

/// What an application wants.
#[derive(Debug)]
pub enum Step {
    /// Hand this to the endpoint: open, a frame it has room for, close or abort.
    Do(Input<Infallible>),
    /// Nothing before this instant, or before news.
    Wait(Option<Instant>),
    /// The end.
    Stop,
}

/// Runs `endpoint` and `app` over `line` until the application stops. Bytes that are no packet are
/// a note to the probe.
///
/// # Errors
/// The socket failed. A packet it did not take is lost, as on any network, and is no error.
pub fn drive<E: Endpoint<Packet: Into<Body> + TryFrom<Body>>, A: App, L: Port, P: Probe>(
    endpoint: &mut E,
    app: &mut A,
    line: &mut Line<L>,
    probe: &mut P,
) -> io::Result<()> {
    let (mut sent_packets, mut received_packets) = (0, 0);
    loop {
        let now = line.now();
        let deadline = settle(endpoint, app, line, probe, now, &mut sent_packets)?;
        if endpoint.is_listening() {
            // It has answered by now, if at all: who was refused, or has gone, bars nobody.
            line.forget_peer();
        }
        let wake = match app.step(now, endpoint.send_capacity()) {
            Step::Do(input) => {
                endpoint.handle(now, input.map(|never| match never {}), probe);
                continue;
            }
            Step::Wait(until) => deadline.into_iter().chain(until).min(),
            Step::Stop => return line.flush(),
        };
        let received = line.receive(wake)?;
        let now = line.now();
        if deadline.is_some_and(|at| at <= now) {
            endpoint.handle(now, Input::Timeout, probe);
            settle(endpoint, app, line, probe, now, &mut sent_packets)?;
        }
        match received {
            Some(Ok(Parsed { ends, ecn, damage, body, .. })) => {
                let path = line.path_of(&ends).expect("a line gives what is on a path");
                let packet = label(path, ecn, &body, line.version(), received_packets, now);
                received_packets += 1;
                probe.record(now, HERE, &Note::Received { packet: &packet, body: &body });
                let arrival = Arrival { path, ecn, damage };
                let input = match body {
                    Body::TooBig { mtu, quote } => Input::TooBig { path, mtu, quote },
                    body => match body.try_into() {
                        Ok(packet) => {
                            if endpoint.recognises(&packet) {
                                line.follow_peer();
                            }
                            if endpoint.is_listening() {
                                endpoint.between(&line.ends());
                            }
                            Input::Packet { arrival, packet }
                        }
                        Err(_) => {
                            probe.record(now, HERE, &Note::RxError(RxError::Unexpected));
                            continue;
                        }
                    },
                };
                endpoint.handle(now, input, probe);
            }
            Some(Err(error)) => probe.record(now, HERE, &Note::RxError(error.rx_error())),
            None => {}
        }
    }
}

/// Does what the endpoint wants done; gives its next deadline.
fn settle<E: Endpoint<Packet: Into<Body>>, A: App, L: Port, P: Probe>(
    endpoint: &mut E,
    app: &mut A,
    line: &mut Line<L>,
    probe: &mut P,
    now: Instant,
    number: &mut u32,
) -> io::Result<Option<Instant>> {
    loop {
        match endpoint.poll(now, probe) {
            Output::Transmit(transmit) => {
                let Transmit { path, ecn, packet } = transmit;
                let body: Body = packet.into();
                let packet = label(path, ecn, &body, line.version(), *number, now);
                *number += 1;
                probe.record(now, HERE, &Note::Sent { packet: &packet, body: &body });
                line.send(now, &packet, &body)?;
            }
            Output::Deliver(frame) => app.on_frame(now, frame),
            Output::Event(event) => app.on_event(now, event),
            Output::Idle { until } => return Ok(until),
        }
    }
}

/// The label under which a packet is written and noted; its route is the path.
pub(crate) fn label(
    path: PathId,
    ecn: Ecn,
    body: &Body,
    version: IpVersion,
    number: u32,
    at: Instant,
) -> Packet {
    let Layers { transport, media, payload } = body.layers();
    Packet {
        body: BodyId(0),
        ip_bytes: version.header_bytes() + transport + media + payload,
        route: u32::from(path.0),
        flow: 0,
        number,
        hop: 0,
        ecn,
        dscp: 0,
        version,
        sent: at,
    }
}
