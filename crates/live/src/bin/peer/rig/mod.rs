//! Runs one endpoint with an application in real time: performs the endpoint's outputs, hands in the
//! application's input, then waits for a packet or the next deadline, whichever comes first. The tests of the
//! library use it, too.
#![allow(dead_code, unused_imports, reason = "each test uses a part")]

mod echo_test;
mod impairments;
mod transfer;
mod tun;

use std::convert::Infallible;
use std::io;

use talkspurt_live::{Line, Port, label};
use talkspurt_proto::body::Body;
use talkspurt_proto::endpoint::{Arrival, Endpoint, Event, Input, Listener, Output, Transmit};
use talkspurt_proto::frame::Frame;
use talkspurt_proto::probe::{Note, Place, Probe, RxError};
use talkspurt_proto::time::Instant;
use talkspurt_proto::wire::{Parsed, WireError};

pub(crate) use echo_test::{EchoConfig, EchoReport, EchoTest};
pub(crate) use impairments::{Impaired, Impairing, Impairments, Verdict};
pub(crate) use transfer::{Plan, Transfer};
pub(crate) use tun::Tun;

/// Place of all notes: a live run has one local peer.
const HERE: Place = Place::Peer(0);

/// An application on top of an endpoint.
pub(crate) trait App {
    /// A frame arrived.
    fn on_frame(&mut self, now: Instant, frame: Frame);
    /// The connection changed.
    fn on_event(&mut self, now: Instant, event: Event);
    /// The next step, with `room` bytes free in the endpoint. Called after every step, packet and deadline,
    /// until it returns [`Step::Wait`] or [`Step::Stop`].
    fn step(&mut self, now: Instant, room: usize) -> Step;
}

/// A step of an application.
#[derive(Debug)]
pub(crate) enum Step {
    /// Hand this to the endpoint: open, a frame it has room for, close or abort.
    Do(Input<Infallible>),
    /// Nothing before this instant, or before a packet or an event.
    Wait(Option<Instant>),
    /// Stop the loop.
    Stop,
}

/// Runs `endpoint` and `app` over `line` until the application stops. Bytes that are not a valid packet are
/// noted to the probe.
///
/// # Errors
/// The socket failed. A packet it did not accept is lost, as on any network, and is no error.
pub(crate) fn drive<E: Listener<Packet: Into<Body> + TryFrom<Body>>, A: App, L: Port, P: Probe>(
    endpoint: &mut E,
    app: &mut A,
    line: &mut Line<Impaired<L>>,
    probe: &mut P,
) -> io::Result<()> {
    let (mut sent_packets, mut received_packets) = (0, 0);
    loop {
        let now = line.now();
        let mut deadline = settle(endpoint, app, line, probe, now, &mut sent_packets)?;
        if endpoint.is_listening() {
            // It has answered by now, if at all: a peer that was refused or has left blocks no other.
            line.forget_peer();
        }
        let wake = match app.step(now, endpoint.send_capacity()) {
            Step::Do(input) => {
                endpoint.handle(now, input.map(|never| match never {}), probe);
                continue;
            }
            Step::Wait(until) => deadline.into_iter().chain(until).min(),
            Step::Stop => return line.port().flush(),
        };
        let received = line.receive(wake)?;
        let now = line.now();
        if let Some(received) = received {
            // Before a timer that expired meanwhile: an acknowledgement that is here makes a retransmission
            // needless, and what the timer sends acknowledges what is here.
            arrive(endpoint, line, probe, now, received, &mut received_packets);
            deadline = settle(endpoint, app, line, probe, now, &mut sent_packets)?;
        }
        if deadline.is_some_and(|at| at <= now) {
            endpoint.handle(now, Input::Timeout, probe);
        }
    }
}

/// Hands in what the line received.
fn arrive<E: Listener<Packet: Into<Body> + TryFrom<Body>>, L: Port, P: Probe>(
    endpoint: &mut E,
    line: &mut Line<Impaired<L>>,
    probe: &mut P,
    now: Instant,
    received: Result<Parsed, WireError>,
    number: &mut u32,
) {
    let Parsed { ends, ecn, damage, body, .. } = match received {
        Ok(parsed) => parsed,
        Err(error) => return probe.record(now, HERE, &Note::RxError(error.rx_error())),
    };
    let path = line.path_of(&ends).expect("a line returns only packets of its paths");
    let packet = label(path, ecn, &body, line.version(), *number, now);
    *number += 1;
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
            Err(_) => return probe.record(now, HERE, &Note::RxError(RxError::Unexpected)),
        },
    };
    endpoint.handle(now, input, probe);
}

/// Performs the endpoint's outputs; returns its next deadline.
fn settle<E: Endpoint<Packet: Into<Body>>, A: App, L: Port, P: Probe>(
    endpoint: &mut E,
    app: &mut A,
    line: &mut Line<Impaired<L>>,
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
                line.send(&packet, &body)?;
            }
            Output::Deliver(frame) => app.on_frame(now, frame),
            Output::Event(event) => app.on_event(now, event),
            Output::Idle { until } => return Ok(until),
        }
    }
}
