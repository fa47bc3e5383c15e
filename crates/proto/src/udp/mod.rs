//! UDP (RFC 768), the smallest complete endpoint: read this one first.
//!
//! `handle` takes frames and packets. `poll` returns a frame as a packet, and a packet as a frame.
//! There is no connection state and no timer.

pub mod wire;

use std::collections::VecDeque;
use std::num::NonZeroU32;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::endpoint::{Arrival, Endpoint, Input, Listener, Output, Transmit};
use crate::frame::Frame;
use crate::gauge::{EndpointNote, EndpointProbe, RxError};
use crate::packet::{Damage, Ecn, PathId};
use crate::time::Instant;
use crate::transport::{Setup, TransportConfig};
use crate::validate::Validate;

/// UDP has no parameters: it sends frames at once.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Config {}

/// One end of a UDP flow.
#[derive(Debug, Default)]
pub struct Udp {
    /// The first pending frame, usually the only one, always stored in the same place. A ring would cycle
    /// through its slots, and none would be cached when a call's next packet arrives.
    first: Option<Frame>,
    /// Frames after it; empty if there is no first.
    others: VecDeque<(Way, Frame)>,
    path_mtu: Option<NonZeroU32>,
    /// Of the first frame.
    way: Way,
}

/// Where a frame goes.
#[derive(Clone, Copy, Debug, Default)]
enum Way {
    #[default]
    Out,
    In,
}

impl Udp {
    /// A fresh endpoint.
    #[must_use]
    pub fn new(_: &Config) -> Self {
        Self::default()
    }

    #[inline(always)]
    fn push(&mut self, way: Way, frame: Frame) {
        if self.first.is_none() {
            (self.way, self.first) = (way, Some(frame));
        } else {
            self.others.push_back((way, frame));
        }
    }

    /// True if nothing is pending: the next input is the next output.
    #[inline]
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.first.is_none()
    }

    /// The smallest MTU a router has reported, for applications that size their frames. One that knows none
    /// reports 0 (RFC 1191 §5).
    #[must_use]
    pub fn path_mtu(&self) -> Option<u32> {
        self.path_mtu.map(NonZeroU32::get)
    }
}

impl Endpoint for Udp {
    type Packet = Frame;

    #[inline]
    fn handle<P: EndpointProbe>(&mut self, now: Instant, input: Input<Frame>, probe: &mut P) {
        match input {
            Input::Frame(frame) => self.push(Way::Out, frame),
            Input::Packet { arrival, mut packet } => self.receive(now, arrival, &mut packet, probe),
            Input::TooBig { mtu, .. } => {
                self.path_mtu = self.path_mtu.into_iter().chain(NonZeroU32::new(mtu)).min();
            }
            Input::Open | Input::Path(..) | Input::Timeout | Input::Close | Input::Abort => {}
        }
    }

    #[inline]
    fn receive<P: EndpointProbe>(
        &mut self,
        now: Instant,
        arrival: Arrival,
        frame: &mut Frame,
        probe: &mut P,
    ) {
        // RFC 768: the checksum covers the whole datagram, so a damaged one is not delivered.
        if arrival.damage == Damage::Payload {
            return probe.note(now, EndpointNote::RxError(RxError::Checksum));
        }
        self.push(Way::In, std::mem::take(frame));
    }

    #[inline]
    fn poll<P: EndpointProbe>(&mut self, _: Instant, _: &mut P) -> Output<Frame> {
        let Some(frame) = self.first.take() else { return Output::Idle { until: None } };
        let way = self.way;
        if let Some((way, frame)) = self.others.pop_front() {
            (self.way, self.first) = (way, Some(frame));
        }
        match way {
            Way::Out => {
                let (path, ecn) = (PathId(0), Ecn::NotEct);
                Output::Transmit(Transmit { path, ecn, packet: frame })
            }
            Way::In => Output::Deliver(frame),
        }
    }

    /// Without flow control there is always room.
    #[inline]
    fn send_capacity(&self) -> usize {
        usize::MAX
    }
}

/// Its peer is known before it listens.
impl Listener for Udp {}

impl Validate for Config {}

impl TransportConfig for Config {
    type Endpoint = Udp;

    fn build(&self, _: Setup<'_>) -> Udp {
        Udp::new(self)
    }
    fn name(&self) -> String {
        "udp".to_owned()
    }
    fn protocol(&self) -> &'static str {
        "UDP"
    }
    fn has_window(&self) -> bool {
        false
    }
    fn header_bytes(&self) -> u32 {
        wire::HEADER as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::Payload;
    use proptest::prelude::*;

    fn number(frame: &Frame) -> u64 {
        match frame {
            Frame::Data(Payload::Virtual { offset, .. }) => *offset,
            other => panic!("{other:?}"),
        }
    }

    proptest! {
        /// Any number of pending frames leave in arrival order, each in its own direction.
        #[test]
        fn frames_leave_in_order(steps in prop::collection::vec(prop::option::of(any::<bool>()), 0..60)) {
            let (mut udp, mut plain) = (Udp::default(), VecDeque::new());
            for (offset, step) in (0..).zip(steps) {
                let frame = Frame::Data(Payload::Virtual { offset, len: 1 });
                match step {
                    Some(true) => {
                        udp.handle(Instant::ZERO, Input::Frame(frame), &mut ());
                        plain.push_back((true, offset));
                    }
                    Some(false) => {
                        let mut frame = frame;
                        udp.receive(Instant::ZERO, Arrival::default(), &mut frame, &mut ());
                        plain.push_back((false, offset));
                    }
                    None => {
                        let left = match udp.poll(Instant::ZERO, &mut ()) {
                            Output::Transmit(Transmit { packet: frame, .. }) => Some((true, number(&frame))),
                            Output::Deliver(frame) => Some((false, number(&frame))),
                            Output::Idle { until: None } => None,
                            other => panic!("{other:?}"),
                        };
                        prop_assert_eq!(left, plain.pop_front());
                    }
                }
            }
        }
    }
}
