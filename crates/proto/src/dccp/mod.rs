//! DCCP (RFC 4340): a connection of congestion-controlled, unreliable datagrams, client and server
//! in one machine, with a CCID in each direction.
//!
//! `handle` accepts a frame only when the CCID permits it ([`send_capacity`](crate::endpoint::Endpoint) is zero
//! otherwise): frames wait in the flow's send queue, which can drop stale ones, not here. Arriving packets pass
//! the validity checks of §8.5 (`arrival`), then options (`receive_options`), then the half-connections.
//! Packets to send are derived from flags (`departure`): there is no packet queue. `send_capacity` says whether
//! and how much data may leave. `opening` and `closing` set up and close the connection, `windows` holds its
//! numbers, `features` negotiates, `negotiated` holds the result, `cookie` replaces listener state.

pub mod ackvec;
mod arrival;
pub mod ccid;
pub mod ccid2;
pub mod ccid3;
mod closing;
mod config;
mod cookie;
pub mod data_dropped;
mod departure;
mod features;
pub mod in_udp;
mod negotiated;
mod opening;
pub mod options;
mod packet;
mod receive_options;
mod send_capacity;
pub mod seqno;
mod service;
mod timers;
mod validation;
mod windows;
pub mod wire;

pub use ackvec::AckVector;
pub use config::{Ccid, Config, UnknownCcid};
pub use features::{Location, UnknownValue};
pub use options::Options;
pub use packet::{Kind, Packet, ResetCode};
pub use send_capacity::KEPT_BYTES;
pub use seqno::{SeqNo, WireSeq};
pub use service::{Service, ServiceError};

use bytes::Bytes;

use crate::endpoint::{Arrival, Endpoint, Event, Input, Listener, Output, PendingEvents};
use crate::frame::Frame;
use crate::gauge::EndpointProbe;
use crate::packet::{IpVersion, PacketBox};
use crate::rate::Rung;
use crate::rate::history::DEFAULT_RTT;
use crate::rng::Rng;
use crate::time::{Duration, Instant, due, earlier};
use crate::units::Rate;

use ccid::{Receiver as _, ReceiverHalf, Sender as _, SenderHalf};
use cookie::Cookies;
use data_dropped::ToReport;
use departure::Owed;
use features::Features;
use negotiated::Negotiated;
use timers::Timers;
use windows::Windows;

/// States of a connection (RFC 4340 §8.4), in the order §8.5 compares them in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum State {
    /// No connection.
    Closed,
    /// Waiting for a Request.
    Listen,
    /// Request sent.
    Request,
    /// Response sent.
    Respond,
    /// Response received; the server may not know this.
    PartOpen,
    /// Open.
    Open,
    /// The server asked the client to close.
    CloseReq,
    /// Close sent.
    Closing,
    /// Closed; waiting until stray packets have expired.
    TimeWait,
}

/// Minimum wait before a retransmission: two round trips of a path within one machine would cause a storm.
const MIN_WAIT: Duration = Duration::from_millis(10);
/// Longest options field: 255 words of header minus the longest fixed part (§5.1).
const LONGEST_OPTIONS: usize = 1020 - 28;
/// One end of a DCCP connection.
#[derive(Debug)]
pub struct Dccp {
    config: Config,
    server: bool,
    version: IpVersion,
    /// Bytes between the IP header and DCCP's.
    overhead_bytes: u32,
    rng: Rng,
    state: State,
    windows: Windows,
    features: Features,
    negotiated: Negotiated,
    sender: Option<SenderHalf>,
    receiver: Option<ReceiverHalf>,
    vector: AckVector,
    dropped: ToReport,
    timers: Timers,
    owed: Owed,
    /// Accepted from the application, not yet sent.
    frame: Option<Frame>,
    /// Received, not yet delivered.
    inbound: Option<Frame>,
    /// The last packet read; its memory is reused for the next one sent.
    spare: PacketBox<Packet>,
    /// The CCID permits a packet now, and none has been sent since.
    permitted: bool,
    /// When the CCID will permit one, if nothing happens before.
    permit_at: Option<Instant>,
    /// Opened or closed before: an endpoint serves one connection.
    used: bool,
    /// The application closed before the connection was open.
    close_wanted: bool,
    /// The CCID of this end's sender, or the Ack Vectors it needs, are not negotiated yet.
    undecided: bool,
    cookies: Cookies,
    /// RFC 4340 §13.1: value of the timestamp clock at time zero.
    clock_offset: u32,
    /// A timestamp to echo, and when it arrived.
    echo: Option<(u32, Instant)>,
    /// The last Request or Response, for the first round-trip time.
    timed: Option<(SeqNo, Instant)>,
    handshake_rtt: Option<Duration>,
    /// Number of the first packet sent under the sending half, or of the next one.
    first_of_half: SeqNo,
    /// The round-trip time last passed to the receiving half.
    shared_rtt: Option<Duration>,
    /// Syncs sent since the instant (§7.5.4).
    syncs: (Instant, u8),
    /// Listens still to be sent (RFC 5596 §2.2.2).
    listens_left: u8,
    /// Packets sent in the last round trip, of every type: those not yet acknowledged when the latest
    /// acknowledgement came (§7.5.2).
    in_flight: u64,
    /// Non-data packets sent since the last data packet (§7.7).
    non_data: u64,
    path_mtu: u32,
    news: PendingEvents,
    target_rate: Option<Rate>,
    /// Rates the source can send at, best first.
    ladder: Vec<Rung>,
    /// The source can send at any rate.
    any_rate: bool,
    /// Application data of our Request or Response.
    opening: Option<Bytes>,
}

impl Dccp {
    /// The opening side. Its initial sequence number and timestamp offset come from `rng`.
    #[must_use]
    pub fn client(config: &Config, rng: Rng) -> Self {
        Self::new(config, rng, false)
    }

    /// The answering side, for one connection.
    #[must_use]
    pub fn listener(config: &Config, rng: Rng) -> Self {
        Self::new(config, rng, true)
    }

    fn new(config: &Config, mut rng: Rng, server: bool) -> Self {
        let cookies = Cookies::new(&mut rng);
        let mut endpoint = Self {
            config: config.clone(),
            server,
            version: IpVersion::V4,
            overhead_bytes: 0,
            state: if server { State::Listen } else { State::Closed },
            windows: Windows::new(rng.bits()),
            features: Features::new(config, server),
            negotiated: Negotiated::default(),
            sender: None,
            receiver: None,
            vector: AckVector::default(),
            dropped: ToReport::default(),
            timers: Timers::default(),
            owed: Owed::default(),
            frame: None,
            inbound: None,
            spare: PacketBox::empty(),
            permitted: false,
            permit_at: None,
            used: false,
            close_wanted: false,
            undecided: false,
            cookies,
            clock_offset: rng.bits() as u32,
            echo: None,
            timed: None,
            handshake_rtt: None,
            first_of_half: SeqNo::default(),
            shared_rtt: None,
            syncs: (Instant::ZERO, 0),
            listens_left: 0,
            in_flight: 0,
            non_data: 0,
            path_mtu: u32::try_from(config.mtu.as_bytes()).unwrap_or(u32::MAX),
            news: PendingEvents::default(),
            target_rate: None,
            ladder: Vec::new(),
            any_rate: false,
            opening: None,
            rng,
        };
        endpoint.owed.listen = server && config.listen_packets;
        endpoint.agree();
        endpoint
    }

    /// The IP version, which determines packet sizes; IPv4 by default.
    #[must_use]
    pub const fn over(mut self, version: IpVersion) -> Self {
        self.version = version;
        self
    }

    /// Bytes of encapsulation between IP and DCCP, such as the 8 of UDP (RFC 6773), which reduce the
    /// room in a packet. Default: 0.
    #[must_use]
    pub const fn under(mut self, overhead_bytes: u32) -> Self {
        self.overhead_bytes = overhead_bytes;
        self
    }

    /// Rates the source can send at, best first, for a controller that chooses
    /// ([`Event::TargetRate`]); none by default.
    #[must_use]
    pub fn with_ladder(mut self, ladder: &[Rung]) -> Self {
        self.ladder = ladder.to_vec();
        self
    }

    /// The source can send at any rate: CCID 3 and 4 report each change ([`Event::TargetRate`]).
    #[must_use]
    pub const fn reporting_rate(mut self) -> Self {
        self.any_rate = true;
        self
    }

    /// Starts with this initial sequence number instead of a random one, to replay a recording.
    #[must_use]
    pub fn numbered_from(mut self, iss: u64) -> Self {
        self.windows = Windows::new(iss);
        self.agree();
        self
    }

    /// Sets the application data of the Request or Response (RFC 4340 §8.1.1, §8.1.3), before it is sent; a
    /// Response without room for it has none. The application then also takes the data of the other side's
    /// packet, by reading it before the endpoint does: it is not reported as dropped.
    pub fn set_opening_data(&mut self, data: Bytes) {
        self.opening = Some(data);
    }

    /// [`Dccp::with_ladder`] and [`Dccp::reporting_rate`], for a source that is known only now; no later than
    /// the Response is read or the packet after it.
    pub fn set_source_rates(&mut self, ladder: &[Rung], any_rate: bool) {
        (self.ladder, self.any_rate) = (ladder.to_vec(), any_rate);
    }

    /// The state the connection is in.
    #[must_use]
    pub const fn state(&self) -> State {
        self.state
    }

    /// The sending half-connection, once there is one.
    #[must_use]
    pub const fn sender(&self) -> Option<&SenderHalf> {
        self.sender.as_ref()
    }
    /// The receiving half-connection, once there is one.
    #[must_use]
    pub const fn receiver(&self) -> Option<&ReceiverHalf> {
        self.receiver.as_ref()
    }

    /// Bytes held by state that could grow with input; lets tests check that it is bounded.
    #[doc(hidden)]
    #[must_use]
    pub fn footprint(&self) -> usize {
        let sender = self.sender.as_ref().map_or(0, SenderHalf::footprint);
        let receiver = self.receiver.as_ref().map_or(0, ReceiverHalf::footprint);
        let spare = self.spare.get().map_or(0, |packet| {
            size_of::<Packet>() + packet.options.footprint() + packet.payload.wire_bytes()
        });
        let own = self.vector.footprint() + self.dropped.footprint() + self.features.footprint();
        let own = own + spare;
        sender + receiver + own + self.cookies.footprint() + size_of_val(self.ladder.as_slice())
    }

    /// RFC 4340 §13.1: in units of 10 µs.
    fn clock(&self, now: Instant) -> u32 {
        self.clock_offset.wrapping_add((now.as_nanos() / 10_000) as u32)
    }

    /// The best known round-trip time.
    fn rtt(&self) -> Option<Duration> {
        self.sender.as_ref().and_then(SenderHalf::rtt).or(self.handshake_rtt)
    }

    /// How long to wait for an answer before repeating a request (§8.3; §6.6.3 requires at least
    /// one round trip).
    fn two_round_trips(&self) -> Duration {
        (self.rtt().unwrap_or(DEFAULT_RTT) * 2).max(MIN_WAIT)
    }

    fn on_timeout<P: EndpointProbe>(&mut self, now: Instant, probe: &mut P) {
        if due(&mut self.timers.time_wait, now) {
            (self.state, self.timers) = (State::Closed, Timers::default());
        }
        if due(&mut self.timers.give_up, now) {
            self.give_up();
        }
        if due(&mut self.timers.repeat, now) {
            self.repeat(now);
        }
        if due(&mut self.timers.change, now) {
            self.repeat_changes(now);
        }
        if let Some(sender) = &mut self.sender
            && sender.deadline().is_some_and(|at| at <= now)
        {
            sender.on_timeout(now, probe);
        }
        if let Some(receiver) = &mut self.receiver
            && receiver.deadline().is_some_and(|at| at <= now)
        {
            receiver.on_timeout(now);
        }
    }

    /// Updates what depends on any event: options due, the CCID's feature requests, and its permit.
    fn settle(&mut self, now: Instant) {
        if let Some(receiver) = &self.receiver {
            self.owed.ack |= self.may_send() && receiver.wants_ack(now);
        }
        self.wish();
        self.owed.ack |= self.can_negotiate() && self.features.wants_packet();
        self.ask(now);
    }

    fn deadline(&self) -> Option<Instant> {
        let sender = self.sender.as_ref().and_then(SenderHalf::deadline);
        let receiver = self.receiver.as_ref().and_then(ReceiverHalf::deadline);
        [self.timers.next(), self.permit_at, sender, receiver].into_iter().fold(None, earlier)
    }
}

impl Endpoint for Dccp {
    type Packet = PacketBox<Packet>;

    /// RFC 4340 §4.6: there are no half-closed states.
    fn closes_both_ways(&self) -> bool {
        true
    }

    fn handle<P: EndpointProbe>(
        &mut self,
        now: Instant,
        input: Input<PacketBox<Packet>>,
        probe: &mut P,
    ) {
        match input {
            Input::Packet { arrival, mut packet } => {
                return self.receive(now, arrival, &mut packet, probe);
            }
            Input::TooBig { mtu, quote, .. } => self.on_too_big(now, mtu, &quote.transport, probe),
            Input::Frame(frame) => self.on_frame(frame),
            Input::Timeout => self.on_timeout(now, probe),
            Input::Open => self.open(now),
            Input::Close => self.close(now),
            Input::Abort => self.abort(),
            // An unreliable transport has nothing to repeat; the CCID detects path changes itself.
            Input::Path(..) => {}
        }
        self.settle(now);
    }

    fn receive<P: EndpointProbe>(
        &mut self,
        now: Instant,
        Arrival { ecn, damage, .. }: Arrival,
        packet: &mut PacketBox<Packet>,
        probe: &mut P,
    ) {
        self.on_dccp(now, ecn, damage, packet, probe);
        if self.spare.is_empty() {
            self.spare = packet.take();
        }
        self.settle(now);
    }

    fn poll<P: EndpointProbe>(&mut self, now: Instant, probe: &mut P) -> Output<PacketBox<Packet>> {
        if let Some(event) = self.news.opening() {
            return event;
        }
        if let Some(frame) = self.inbound.take() {
            return Output::Deliver(frame);
        }
        if let Some(event) = self.news.next() {
            return event;
        }
        if let Some(rate) = self.target_rate.take() {
            return Output::Event(Event::TargetRate(rate));
        }
        if let Some(transmit) = self.next_packet(now, probe) {
            return Output::Transmit(transmit);
        }
        if let Some(sender) = self.sender.as_mut().filter(|_| self.permitted) {
            sender.on_unused(now);
        }
        self.time_changes(now);
        Output::Idle { until: self.deadline() }
    }

    fn send_capacity(&self) -> usize {
        self.open_room()
    }

    fn max_message(&self) -> usize {
        self.largest()
    }
}

impl Listener for Dccp {
    fn is_listening(&self) -> bool {
        self.state == State::Listen
    }

    fn between(&mut self, ends: &[u8]) {
        self.cookies.between(ends);
    }
}
