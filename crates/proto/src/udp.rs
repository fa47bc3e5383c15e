//! UDP (RFC 768): the endpoint to read first, the smallest that does the whole job.
//!
//! A frame comes in by `handle` and leaves by `poll` as a packet; a packet comes in and leaves as
//! a frame. Nothing is kept, nothing is timed.

use std::collections::VecDeque;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::endpoint::{Endpoint, Input, Output, Transmit};
use crate::packet::{Body, Damage, Ecn, Frame, PathId};
use crate::probe::{Garbage, Note, Place, Probe};
use crate::time::Instant;

/// UDP has no knobs: it sends at once what it is given.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Config {}

/// One end of a UDP flow.
#[derive(Debug, Default)]
pub struct Udp {
    outbound: VecDeque<Frame>,
    inbound: VecDeque<Frame>,
    path_mtu: Option<u32>,
}

impl Udp {
    /// A fresh endpoint.
    #[must_use]
    pub fn new(_: &Config) -> Self {
        Self::default()
    }
    /// The smallest MTU a router has reported (RFC 1191), for applications that size their frames.
    #[must_use]
    pub const fn path_mtu(&self) -> Option<u32> {
        self.path_mtu
    }
}

impl Endpoint for Udp {
    #[inline]
    fn handle<P: Probe>(&mut self, now: Instant, input: Input, probe: &mut P) {
        match input {
            Input::Frame(frame) => self.outbound.push_back(frame),
            Input::Packet { path, ecn, damage, mut body } => {
                self.receive(now, (path, ecn, damage), &mut body, probe);
            }
            Input::Open | Input::Path(..) | Input::Timeout | Input::Close | Input::Abort => {}
        }
    }

    #[inline]
    fn receive<P: Probe>(
        &mut self,
        now: Instant,
        (_, _, damage): (PathId, Ecn, Damage),
        body: &mut Body,
        probe: &mut P,
    ) {
        let garbage = match body {
            // RFC 768: the checksum covers the whole datagram, so a damaged one is not delivered.
            _ if damage == Damage::Payload => Garbage::Checksum,
            Body::Udp(frame) => return self.inbound.push_back(std::mem::take(frame)),
            Body::TooBig { mtu, .. } => {
                self.path_mtu = Some(self.path_mtu.map_or(*mtu, |known| known.min(*mtu)));
                return;
            }
            Body::Tcp(_) | Body::Dccp(_) | Body::Sctp(_) | Body::Tfrc(_) => Garbage::Unexpected,
        };
        probe.record(now, Place::Peer(0), &Note::Garbage(garbage));
    }

    #[inline]
    fn poll<P: Probe>(&mut self, _: Instant, _: &mut P) -> Output {
        if let Some(frame) = self.outbound.pop_front() {
            let body = Body::Udp(frame);
            return Output::Transmit(Transmit { path: PathId(0), ecn: Ecn::NotEct, body });
        }
        self.inbound.pop_front().map_or(Output::Idle { until: None }, Output::Deliver)
    }

    /// Without flow control there is always room.
    #[inline]
    fn room(&self) -> usize {
        usize::MAX
    }
}
