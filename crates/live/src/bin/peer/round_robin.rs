//! An endpoint that sends its messages round robin over its streams.

use talkspurt_proto::endpoint::{Arrival, Endpoint, Input, Listener, Output};
use talkspurt_proto::gauge::EndpointProbe;
use talkspurt_proto::packet::PacketBox;
use talkspurt_proto::sctp::{Packet, Sctp, Sending};
use talkspurt_proto::time::Instant;

#[derive(Debug)]
pub(crate) struct RoundRobin {
    sctp: Sctp,
    streams: u16,
    next: u16,
}

impl RoundRobin {
    pub(crate) const fn new(sctp: Sctp, streams: u16) -> Self {
        Self { sctp, streams, next: 0 }
    }
}

impl Endpoint for RoundRobin {
    type Packet = PacketBox<Packet>;

    fn handle<P: EndpointProbe>(
        &mut self,
        now: Instant,
        input: Input<Self::Packet>,
        probe: &mut P,
    ) {
        let Input::Frame(frame) = input else { return self.sctp.handle(now, input, probe) };
        let how = Sending { stream: self.next, ..self.sctp.sending() };
        self.next = (self.next + 1) % self.streams;
        assert!(self.sctp.send(now, frame, &how), "there is room, and the stream");
    }
    fn receive<P: EndpointProbe>(
        &mut self,
        now: Instant,
        arrival: Arrival,
        packet: &mut Self::Packet,
        probe: &mut P,
    ) {
        self.sctp.receive(now, arrival, packet, probe);
    }
    fn poll<P: EndpointProbe>(&mut self, now: Instant, probe: &mut P) -> Output<Self::Packet> {
        self.sctp.poll(now, probe)
    }
    fn send_capacity(&self) -> usize {
        self.sctp.send_capacity()
    }
}

impl Listener for RoundRobin {
    fn is_listening(&self) -> bool {
        self.sctp.is_listening()
    }
    fn recognises(&self, packet: &Self::Packet) -> bool {
        self.sctp.recognises(packet)
    }
}
