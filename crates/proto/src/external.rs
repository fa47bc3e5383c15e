//! External protocol stacks: they exchange UDP datagrams that this workspace does not parse.
//!
//! Links, captures, counters and digests treat such a datagram as any other UDP datagram with real
//! bytes. Dispatch is virtual; its cost is small compared with such a stack's work for a packet.

use std::fmt;
use std::sync::Arc;

use crate::endpoint::{Arrival, Endpoint, Input, Output};
use crate::frame::Frame;
use crate::gauge::{EndpointNote, EndpointProbe, RxError, Topic};
use crate::packet::Damage;
use crate::time::Instant;
use crate::transport::{Setup, TransportConfig};
use crate::validate::Validate;

/// A stack with the interface of an [`Endpoint`]. Its datagrams are [`Frame::Data`].
pub trait Stack: fmt::Debug + Send {
    /// Processes an input at `now`.
    fn handle(&mut self, now: Instant, input: Input<Frame>);
    /// Returns the next output; called until it returns [`Output::Idle`]. Observations go to
    /// `note`.
    fn poll(&mut self, now: Instant, note: &mut dyn FnMut(EndpointNote)) -> Output<Frame>;
    /// Bytes of messages it accepts now.
    fn send_capacity(&self) -> usize;
}

/// Builds the stack of one end.
type Build = dyn Fn(Setup<'_>) -> Box<dyn Stack> + Send + Sync;

/// A transport provided by a Rust program; scenario files cannot name it.
#[derive(Clone)]
pub struct Config {
    /// Its name in tables.
    pub name: String,
    /// Bytes it adds in front of a media packet, including UDP's header.
    pub header_bytes: u32,
    /// True if a listener has no connection until the other side opens it.
    pub has_handshake: bool,
    /// Builds the stack of one end.
    pub build: Arc<Build>,
}

impl fmt::Debug for Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Config").field("name", &self.name).finish_non_exhaustive()
    }
}

impl PartialEq for Config {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name && Arc::ptr_eq(&self.build, &other.build)
    }
}

impl Validate for Config {}

impl TransportConfig for Config {
    type Endpoint = External;

    fn build(&self, setup: Setup<'_>) -> External {
        External((self.build)(setup))
    }
    fn name(&self) -> String {
        self.name.clone()
    }
    fn protocol(&self) -> &'static str {
        "UDP"
    }
    fn header_bytes(&self) -> u32 {
        self.header_bytes
    }
    fn has_handshake(&self) -> bool {
        self.has_handshake
    }
}

/// One end of a flow over such a stack.
#[derive(Debug)]
pub struct External(Box<dyn Stack>);

impl Endpoint for External {
    type Packet = Frame;

    fn handle<P: EndpointProbe>(&mut self, now: Instant, input: Input<Frame>, probe: &mut P) {
        match input {
            Input::Packet { arrival, mut packet } => self.receive(now, arrival, &mut packet, probe),
            input => self.0.handle(now, input),
        }
    }

    fn receive<P: EndpointProbe>(
        &mut self,
        now: Instant,
        arrival: Arrival,
        packet: &mut Frame,
        probe: &mut P,
    ) {
        // RFC 768: the checksum covers the whole datagram, so a damaged one is not delivered.
        if arrival.damage == Damage::Payload {
            return probe.note(now, EndpointNote::RxError(RxError::Checksum));
        }
        self.0.handle(now, Input::Packet { arrival, packet: std::mem::take(packet) });
    }

    fn poll<P: EndpointProbe>(&mut self, now: Instant, probe: &mut P) -> Output<Frame> {
        let (gauges, events) = (probe.observes(Topic::Gauge), probe.observes(Topic::Event));
        self.0.poll(now, &mut |note| match note {
            EndpointNote::Gauge { .. } if gauges => probe.note(now, note),
            EndpointNote::RxError(_) if events => probe.note(now, note),
            _ => {}
        })
    }

    fn send_capacity(&self) -> usize {
        self.0.send_capacity()
    }
}
