//! An external protocol stack, whose datagrams are opaque bytes, in a normal world.

use std::collections::VecDeque;

use bytes::{BufMut as _, BytesMut};
use talkspurt_app::transport;
use talkspurt_proto::endpoint::{Event, Input, Output, Transmit};
use talkspurt_proto::external::{self, Class, Datagram, Stack};
use talkspurt_proto::frame::Frame;
use talkspurt_proto::gauge::{EndpointNote, Gauge};
use talkspurt_proto::packet::{Ecn, PathId, Payload};
use talkspurt_proto::probe::{Note, Place};
use talkspurt_proto::time::{Duration, Instant};
use talkspurt_proto::transport::Side;
use talkspurt_proto::units::Size;
use talkspurt_proto::wire::{self, Hints};

use crate::support::{Look, Run, flow, link, point, scenario, watch};

/// A toy: a hello and its answer, then each message behind a counter of four bytes. A copy of each
/// datagram follows 10 ms later, and the receiver delivers whichever comes first.
#[derive(Debug)]
struct Twice {
    side: Side,
    open: bool,
    next: u32,
    seen: Vec<bool>,
    outbound: VecDeque<(Instant, Datagram)>,
    ready: VecDeque<Output<Datagram>>,
    notes: VecDeque<external::Note>,
}

const HELLO: [u8; 4] = [0xff; 4];
const LATER: Duration = Duration::from_millis(10);

impl Twice {
    fn connect(&mut self) {
        if !std::mem::replace(&mut self.open, true) {
            self.ready.push_back(Output::Event(Event::Connected));
            self.ready.push_back(Output::Event(Event::Writable));
        }
    }

    fn hello(&mut self, now: Instant) {
        let content = Frame::Data(Payload::Real(HELLO[..].into()));
        let datagram = Datagram { content, class: Class::Control, ..Datagram::default() };
        self.outbound.push_back((now, datagram));
    }

    fn arrive(&mut self, now: Instant, datagram: &[u8]) {
        let (head, message) = datagram.split_first_chunk::<4>().expect("four bytes at least");
        if *head == HELLO {
            if self.side == Side::Answers {
                self.hello(now);
            }
            return self.connect();
        }
        let number = u32::from_be_bytes(*head) as usize;
        self.seen.resize(self.seen.len().max(number + 1), false);
        if !std::mem::replace(&mut self.seen[number], true) {
            let bytes = bytes::Bytes::copy_from_slice(message);
            let frame = wire::parse_media(&bytes, Hints::default()).expect("media");
            self.ready.push_back(Output::Deliver(frame));
        }
    }
}

impl Stack for Twice {
    fn handle(&mut self, now: Instant, input: Input<Datagram>) {
        match input {
            Input::Open => self.hello(now),
            Input::Frame(frame) => {
                let mut message = Vec::new();
                wire::emit_frame(&frame, &mut message);
                let mut datagram = BytesMut::new();
                datagram.put_u32(self.next);
                datagram.extend_from_slice(&message);
                self.next += 1;
                let (gauge, value) = (Gauge::CwndPackets, f64::from(self.next));
                self.notes
                    .push_back(external::Note::Endpoint(EndpointNote::Gauge { gauge, value }));
                self.notes.push_back(external::Note::Gauge("numbers", f64::from(self.next)));
                let (media, payload) = frame.lengths();
                let datagram = Datagram {
                    content: Frame::Data(Payload::Real(datagram.freeze())),
                    media: media as u32,
                    payload: payload as u32,
                    ..Datagram::default()
                };
                let at = self.outbound.partition_point(|(due, _)| *due <= now);
                self.outbound.insert(at, (now, datagram.clone()));
                let copy = Datagram { class: Class::Retransmission, ..datagram };
                self.outbound.push_back((now + LATER, copy));
            }
            Input::Packet { packet, .. } => {
                let Frame::Data(Payload::Real(bytes)) = packet.content else {
                    panic!("real bytes")
                };
                self.arrive(now, &bytes);
            }
            Input::Close | Input::Abort => self.ready.push_back(Output::Event(Event::Closed)),
            Input::TooBig { .. } | Input::Path(..) | Input::Timeout => {}
        }
    }

    fn poll(&mut self, now: Instant, note: &mut dyn FnMut(external::Note)) -> Output<Datagram> {
        while let Some(one) = self.notes.pop_front() {
            note(one);
        }
        if let Some(output) = self.ready.pop_front() {
            return output;
        }
        match self.outbound.front() {
            Some((due, _)) if *due <= now => {
                let (_, packet) = self.outbound.pop_front().expect("looked at");
                Output::Transmit(Transmit { path: PathId(0), ecn: Ecn::NotEct, packet })
            }
            next => Output::Idle { until: next.map(|(due, _)| *due) },
        }
    }

    fn send_capacity(&self) -> usize {
        if self.open { usize::MAX } else { 0 }
    }
}

fn twice() -> external::Kind {
    external::Kind {
        name: "twice",
        version: "",
        header_bytes: 8 + 4,
        mtu: Size::from_bytes(1500),
        max_message: 1400,
        has_handshake: true,
        has_window: false,
        build: Box::new(|setup, _| {
            Box::new(Twice {
                side: setup.side,
                open: false,
                next: 0,
                seen: Vec::new(),
                outbound: VecDeque::new(),
                ready: VecDeque::new(),
                notes: VecDeque::new(),
            })
        }),
    }
}

/// Scenarios can name it.
pub(crate) fn register_twice() {
    external::register(twice());
}

/// A call's run, with frames handed over and delivered and packets sent from the caller.
fn call(external: bool) -> (Run, [u32; 3]) {
    let speech = "{ kind = 'speech', codec = 'pcmu', packet = '20ms', talkspurts = { on = '1s', off = '1s' } }";
    let parts = [
        link("l", "a-z", "1Mbit/s", "30ms", "loss = 0.1\nback = { loss = 0.0 }"),
        flow("call", "a-z", "udp", speech, "rtcp = { enabled = false }"),
    ];
    let mut point = point(&scenario("20s", &parts));
    if external {
        point.scenario.flows["call"].transport =
            transport::Config::External(external::Config::new(twice()));
    }
    let mut counts = [0; 3];
    let run = watch(&point, &Look::default(), |_, place, note| {
        let counted = match (place, note) {
            (Place::Peer(0), Note::HandedOver { .. }) => 0,
            (Place::Peer(1), Note::Delivered { .. }) => 1,
            (Place::Peer(0), Note::Sent { .. }) => 2,
            _ => return,
        };
        counts[counted] += 1;
    });
    (run, counts)
}

/// Of frames sent twice about one in a hundred is lost where it is one in ten once; every frame costs
/// two datagrams, and the same seed gives the same digest.
#[test]
fn a_stack_from_elsewhere_carries_a_call() {
    let (once, twice) = (call(false), call(true));
    assert_eq!(twice.0.flow("call").transport, "twice");
    let share = |[handed, delivered, _]: [u32; 3]| 1.0 - f64::from(delivered) / f64::from(handed);
    assert!((0.06..0.14).contains(&share(once.1)), "{:?}", once.1);
    assert!(share(twice.1) < 0.03, "{:?}", twice.1);
    // The hello, and the copy of the last message may still wait at the end.
    assert!((2 * twice.1[0]..=2 * twice.1[0] + 1).contains(&twice.1[2]), "{:?}", twice.1);
    assert_eq!(twice.0.digest, call(true).0.digest);
}
