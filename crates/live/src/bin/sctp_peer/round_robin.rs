//! An association whose messages go on its streams in turn; otherwise as the endpoint has it.

use talkspurt_proto::endpoint::{Endpoint, Input, Output};
use talkspurt_proto::packet::Body;
use talkspurt_proto::probe::Probe;
use talkspurt_proto::sctp::{Sctp, Sending};
use talkspurt_proto::time::Instant;

#[derive(Debug)]
pub(super) struct RoundRobin {
    sctp: Sctp,
    streams: u16,
    next: u16,
}

impl RoundRobin {
    pub(super) const fn new(sctp: Sctp, streams: u16) -> Self {
        Self { sctp, streams, next: 0 }
    }
}

impl Endpoint for RoundRobin {
    fn handle<P: Probe>(&mut self, now: Instant, input: Input, probe: &mut P) {
        let Input::Frame(frame) = input else { return self.sctp.handle(now, input, probe) };
        let how = Sending { stream: self.next, ..self.sctp.sending() };
        self.next = (self.next + 1) % self.streams;
        assert!(self.sctp.send(now, frame, &how), "there is room, and the stream");
    }
    fn poll<P: Probe>(&mut self, now: Instant, probe: &mut P) -> Output {
        self.sctp.poll(now, probe)
    }
    fn send_capacity(&self) -> usize {
        self.sctp.send_capacity()
    }
    fn is_listening(&self) -> bool {
        self.sctp.is_listening()
    }
    fn recognises(&self, body: &Body) -> bool {
        self.sctp.recognises(body)
    }
}
