//! quinn-proto as an external stack: each message is an unreliable datagram (RFC 9221) of one connection.

use std::collections::VecDeque;
use std::fmt;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex};
use std::time::{Duration as StdDuration, Instant as StdInstant};

use bytes::{Bytes, BytesMut};
use quinn_proto as quic;
use quinn_proto::{DatagramEvent, EcnCodepoint, SendDatagramError};
use talkspurt_proto::external::{Class, Datagram, Kind, Note, Stack};
use talkspurt_proto::frame::Frame;
use talkspurt_proto::packet::Payload;
use talkspurt_proto::wire::{self, Hints};
use talkspurt_proto::{
    Ecn, EndpointNote, Event, Gauge, Input, Instant, Output, PathId, Rng, Setup, Side, Size,
    Transmit,
};

use crate::plain::Plain;

/// Bytes of messages that wait in this file; beyond, the oldest is discarded.
const QUEUE_BYTES: usize = 64 * 1024;
/// Bytes of messages that wait in the library.
const LIBRARY_BYTES: usize = 4 * 1024;
/// Of a datagram of UDP; discovery of a larger one is off.
const UDP_PAYLOAD: u16 = 1200;
/// A message begins with a byte that says what it is.
const MEDIA: u8 = 1;
/// Any: a simulation has one route.
const REMOTE: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 4433);

/// What scenarios name `quinn`.
pub(crate) fn kind() -> Kind {
    // The only clock that is read, once: all times are this one plus simulated time.
    let base = StdInstant::now();
    Kind {
        name: "quinn",
        version: "0.11.19",
        // UDP 8, short header with packet number at most 13, frame header 3, the byte above, tag 16.
        header_bytes: 8 + 13 + 3 + 1 + 16,
        mtu: Size::from_bytes(28 + u64::from(UDP_PAYLOAD)),
        max_message: 1150,
        has_handshake: true,
        has_window: false,
        build: Box::new(move |setup, _| Box::new(Quic::new(base, setup))),
    }
}

/// Connection identifiers from a random stream of the scenario.
struct Identifiers(Arc<Mutex<Rng>>);

fn identifier(rng: &Mutex<Rng>) -> quic::ConnectionId {
    quic::ConnectionId::new(&rng.lock().expect("no thread fails").bits().to_be_bytes())
}

impl quic::ConnectionIdGenerator for Identifiers {
    fn generate_cid(&mut self) -> quic::ConnectionId {
        identifier(&self.0)
    }
    fn cid_len(&self) -> usize {
        8
    }
    fn cid_lifetime(&self) -> Option<StdDuration> {
        None
    }
}

/// A message as the library takes it.
struct Message {
    bytes: Bytes,
    media: u32,
    payload: u32,
}

pub(crate) struct Quic {
    base: StdInstant,
    client: quic::ClientConfig,
    endpoint: quic::Endpoint,
    connection: Option<(quic::ConnectionHandle, quic::Connection)>,
    is_open: bool,
    waiting: VecDeque<Message>,
    waiting_bytes: usize,
    /// Media headers and payload of each message in the library, which sends them in order.
    inside: VecDeque<(u32, u32)>,
    discarded: u64,
    window: u64,
    ready: VecDeque<Output<Datagram>>,
    buffer: Vec<u8>,
}

impl fmt::Debug for Quic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Quic").field("is_open", &self.is_open).finish_non_exhaustive()
    }
}

impl Quic {
    fn new(base: StdInstant, mut setup: Setup<'_>) -> Self {
        let mut seed = [0; 32];
        for part in seed.chunks_mut(8) {
            part.copy_from_slice(&setup.rng.bits().to_be_bytes());
        }
        let rng = Arc::new(Mutex::new(setup.rng));
        let mut transport = quic::TransportConfig::default();
        transport
            .datagram_receive_buffer_size(Some(1 << 20))
            .datagram_send_buffer_size(LIBRARY_BYTES)
            .initial_mtu(UDP_PAYLOAD)
            .mtu_discovery_config(None)
            .enable_segmentation_offload(false)
            .allow_spin(false);
        let transport = Arc::new(transport);
        let mut config = quic::EndpointConfig::new(Arc::new(Plain));
        let stream = Arc::clone(&rng);
        config.rng_seed(Some(seed));
        config.cid_generator(move || Box::new(Identifiers(Arc::clone(&stream))));
        let server = (setup.side == Side::Answers).then(|| {
            let mut server = quic::ServerConfig::new(Arc::new(Plain), Arc::new(Plain));
            server.transport_config(Arc::clone(&transport));
            Arc::new(server)
        });
        let mut client = quic::ClientConfig::new(Arc::new(Plain));
        client.transport_config(transport);
        client.initial_dst_cid_provider(Arc::new(move || identifier(&rng)));
        Self {
            base,
            client,
            endpoint: quic::Endpoint::new(Arc::new(config), server, false, Some(seed)),
            connection: None,
            is_open: false,
            waiting: VecDeque::new(),
            waiting_bytes: 0,
            inside: VecDeque::new(),
            discarded: 0,
            window: 0,
            ready: VecDeque::new(),
            buffer: Vec::new(),
        }
    }

    fn at(&self, now: Instant) -> StdInstant {
        self.base + StdDuration::from_nanos(now.as_nanos())
    }

    /// Queues a message; the oldest are discarded if there is no room.
    fn push(&mut self, frame: &Frame) {
        let (media, payload) = frame.lengths();
        let mut bytes = vec![if matches!(frame, Frame::Data(_)) { 0 } else { MEDIA }];
        wire::emit_frame(frame, &mut bytes);
        self.waiting_bytes += bytes.len();
        let (media, payload) = (media as u32, payload as u32);
        self.waiting.push_back(Message { bytes: bytes.into(), media, payload });
        while self.waiting_bytes > QUEUE_BYTES
            && let Some(oldest) = self.waiting.pop_front()
        {
            self.waiting_bytes -= oldest.bytes.len();
            self.discarded += 1;
        }
    }

    fn arrive(&mut self, now: StdInstant, datagram: &Datagram, ecn: Ecn) {
        let Frame::Data(Payload::Real(bytes)) = &datagram.content else { return };
        let ecn = match ecn {
            Ecn::NotEct => None,
            Ecn::Ect0 => Some(EcnCodepoint::Ect0),
            Ecn::Ect1 => Some(EcnCodepoint::Ect1),
            Ecn::Ce => Some(EcnCodepoint::Ce),
        };
        let bytes = BytesMut::from(&bytes[..]);
        self.buffer.clear();
        match self.endpoint.handle(now, REMOTE, None, ecn, bytes, &mut self.buffer) {
            Some(DatagramEvent::ConnectionEvent(_, event)) => {
                if let Some((_, connection)) = &mut self.connection {
                    connection.handle_event(event);
                }
            }
            Some(DatagramEvent::NewConnection(incoming)) => {
                self.buffer.clear();
                self.connection = self.endpoint.accept(incoming, now, &mut self.buffer, None).ok();
            }
            _ => {}
        }
    }

    /// Passes messages, events and datagrams on.
    fn drive(&mut self, now: StdInstant) {
        let Some((handle, connection)) = &mut self.connection else { return };
        while let Some(event) = connection.poll_endpoint_events() {
            if let Some(event) = self.endpoint.handle_event(*handle, event) {
                connection.handle_event(event);
            }
        }
        while let Some(event) = connection.poll() {
            match event {
                quic::Event::Connected => {
                    self.is_open = true;
                    self.ready.push_back(Output::Event(Event::Connected));
                    self.ready.push_back(Output::Event(Event::Writable));
                }
                quic::Event::ConnectionLost { .. } => {
                    self.ready.push_back(Output::Event(Event::Closed));
                }
                quic::Event::DatagramReceived => {
                    while let Some(bytes) = connection.datagrams().recv() {
                        self.ready.push_back(Output::Deliver(message(&bytes)));
                    }
                }
                _ => {}
            }
        }
        loop {
            while let Some(Message { bytes, media, payload }) = self.waiting.pop_front() {
                match connection.datagrams().send(bytes.clone(), false) {
                    Ok(()) => {
                        self.waiting_bytes -= bytes.len();
                        self.inside.push_back((media, payload));
                    }
                    Err(SendDatagramError::Blocked(bytes)) => {
                        self.waiting.push_front(Message { bytes, media, payload });
                        break;
                    }
                    Err(_) => {
                        self.waiting_bytes -= bytes.len();
                        self.discarded += 1;
                    }
                }
            }
            self.buffer.clear();
            let before = connection.stats().frame_tx.datagram;
            let Some(sent) = connection.poll_transmit(now, 1, &mut self.buffer) else { break };
            let messages = connection.stats().frame_tx.datagram - before;
            let lengths = self.inside.drain(..messages as usize);
            let (media, payload) = lengths.fold((0, 0), |sum, it| (sum.0 + it.0, sum.1 + it.1));
            let ecn = match sent.ecn {
                None => Ecn::NotEct,
                Some(EcnCodepoint::Ect0) => Ecn::Ect0,
                Some(EcnCodepoint::Ect1) => Ecn::Ect1,
                Some(EcnCodepoint::Ce) => Ecn::Ce,
            };
            let packet = Datagram {
                content: Frame::Data(Payload::Real(Bytes::copy_from_slice(
                    &self.buffer[..sent.size],
                ))),
                // Only frames that are never sent again carry messages.
                class: if payload > 0 { Class::Data } else { Class::Control },
                media,
                payload,
                ..Datagram::default()
            };
            self.ready.push_back(Output::Transmit(Transmit { path: PathId(0), ecn, packet }));
        }
    }
}

/// A message as the other end made it.
fn message(bytes: &Bytes) -> Frame {
    let content = bytes.slice(1..);
    let media = (bytes[0] == MEDIA).then(|| wire::parse_media(&content, Hints::default()));
    media.and_then(Result::ok).unwrap_or(Frame::Data(Payload::Real(content)))
}

impl Stack for Quic {
    fn handle(&mut self, now: Instant, input: Input<Datagram>) {
        let at = self.at(now);
        match input {
            Input::Open => {
                let made = self.endpoint.connect(at, self.client.clone(), REMOTE, "peer");
                self.connection = Some(made.expect("the configuration is valid"));
            }
            Input::Frame(frame) => self.push(&frame),
            Input::Packet { arrival, packet } => self.arrive(at, &packet, arrival.ecn),
            Input::Timeout => {
                if let Some((_, connection)) = &mut self.connection {
                    connection.handle_timeout(at);
                }
            }
            Input::Close | Input::Abort => {
                if let Some((_, connection)) = &mut self.connection {
                    connection.close(at, 0_u32.into(), Bytes::new());
                }
            }
            Input::TooBig { .. } | Input::Path(..) => {}
        }
        self.drive(at);
    }

    fn poll(&mut self, now: Instant, note: &mut dyn FnMut(Note)) -> Output<Datagram> {
        if let Some(output) = self.ready.pop_front() {
            return output;
        }
        if self.discarded > 0 {
            note(Note::Discarded(std::mem::take(&mut self.discarded)));
        }
        let base = self.base;
        let Some((_, connection)) = &mut self.connection else {
            return Output::Idle { until: None };
        };
        let window = connection.congestion_state().window();
        if std::mem::replace(&mut self.window, window) != window {
            let (gauge, value) = (Gauge::Cwnd, window as f64);
            note(Note::Endpoint(EndpointNote::Gauge { gauge, value }));
        }
        note(Note::Gauge("quinn_lost_packets", connection.stats().path.lost_packets as f64));
        let until = connection.poll_timeout().map(|at| {
            let after = at.saturating_duration_since(base).as_nanos();
            Instant::from_nanos(u64::try_from(after).expect("runs are short")).max(now)
        });
        Output::Idle { until }
    }

    fn send_capacity(&self) -> usize {
        if self.is_open { usize::MAX } else { 0 }
    }
}
