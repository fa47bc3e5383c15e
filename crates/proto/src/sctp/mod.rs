//! SCTP (RFC 9260): an association of two endpoints that carries messages over one or more paths,
//! with full or partial reliability.
//!
//! A frame is one message. `queue` holds it until `send` assigns its TSNs; `send` keeps it until it is
//! acknowledged or given up. `arrival` applies the Verification Tag rules to packets and dispatches their
//! chunks: `receive` tracks TSNs, `reassembly` builds messages. `opening` and `closing` set up and shut down an
//! association, `cookie` holds the state that a listener does not keep, `path` each path's window and timers,
//! `liveness` detects path failures. `departure` assembles outgoing packets.
//!
//! Paths are numbers here; the driver keeps addresses.

mod arrival;
mod cause;
mod closing;
mod config;
mod cookie;
mod departure;
mod ecn;
pub mod in_udp;
mod liveness;
mod opening;
mod outstanding;
mod packet;
mod parameter;
mod path;
mod queue;
mod reassembly;
mod receive;
mod send;
pub mod wire;

pub use cause::Cause;
pub use config::{Config, Scheduler};
pub use packet::{
    CHUNK_HEADER, COMMON_HEADER, Chunk, Data, ForwardTsn, Init, Number, Packet, Sack, Skipped,
};
pub use parameter::Parameter;
pub use path::Reachable;
pub use queue::Sending;

use std::collections::VecDeque;
use std::net::IpAddr;

use crate::congestion::CongestionControl;
use crate::endpoint::{Arrival, Endpoint, Input, Listener, Output, PendingEvents, Transmit};
use crate::frame::Frame;
use crate::gauge::{EndpointProbe, Gauge, RxError, Topic};
use crate::packet::{Damage, IpVersion, PacketBox, PathId, Quoted};
use crate::rng::Rng;
use crate::time::{Duration, Instant, due, earlier};

use cookie::Cookies;
use ecn::Ecn;
use path::Path;
use receive::Receiver;
use send::Sender;

/// States of an association (RFC 9260 §4), and a listener's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum State {
    /// No association.
    Closed,
    /// Waiting for an INIT, with no state per INIT.
    Listen,
    /// INIT sent.
    CookieWait,
    /// COOKIE ECHO sent.
    CookieEchoed,
    /// Open.
    Established,
    /// This end has closed; data is outstanding.
    ShutdownPending,
    /// SHUTDOWN sent.
    ShutdownSent,
    /// SHUTDOWN received; data is outstanding.
    ShutdownReceived,
    /// SHUTDOWN ACK sent.
    ShutdownAckSent,
}

/// Overhead of a message that fills a packet, without the IP header: common header, DATA or I-DATA
/// chunk header, and padding.
pub const KEPT_BYTES: u32 = 12 + 20 + 3;
/// Maximum chunk capacity of a packet whose memory is reused.
const SPARE_CHUNKS: usize = 8;

/// Deadlines of the association; paths have their own.
#[derive(Clone, Copy, Debug, Default)]
struct Timers {
    /// T1-init, T1-cookie or T2-shutdown, by state.
    repeat: Option<Instant>,
    /// T5-shutdown-guard.
    guard: Option<Instant>,
    /// Expiries of `repeat`.
    repeats: u32,
    /// Path of the last SHUTDOWN or SHUTDOWN ACK.
    path: usize,
}

/// Metadata of a delivered message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Delivered {
    /// Its Payload Protocol Identifier.
    pub ppid: u32,
    /// How long it waited, complete, for earlier ones of its stream (RFC 9260 §6.6).
    pub waited: Duration,
}

/// Values last reported to the probe.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Told {
    cwnd: u64,
    ssthresh: Option<u64>,
    flight: u64,
    srtt: Option<Duration>,
    rto: Duration,
}

/// One end of an SCTP association.
#[derive(Debug)]
pub struct Sctp {
    config: Config,
    version: IpVersion,
    /// Bytes of headers between IP and SCTP.
    below: u32,
    rng: Rng,
    state: State,
    my_tag: u32,
    peer_tag: u32,
    my_tsn: u32,
    cookies: Cookies,
    /// The State Cookie of an INIT ACK, to echo.
    cookie: bytes::Bytes,
    /// Tie-Tags of this association: random numbers, drawn when an INIT requests a restart (§5.2.2).
    ties: Option<u64>,
    /// Microseconds by which the last cookie was stale (§5.2.6).
    stale: Option<u32>,
    /// Addresses sent to the peer, besides the packet's.
    addresses: Vec<IpAddr>,
    /// Numbers of outbound and inbound streams.
    streams: (u16, u16),
    /// Both ends support I-DATA.
    interleaving: bool,
    ecn: Ecn,
    tx: Sender,
    rx: Receiver,
    paths: Vec<Path>,
    /// Timeouts in a row on all paths (§8.1).
    errors: u32,
    timers: Timers,
    /// How messages of `Input::Frame` are sent.
    sending: Sending,
    /// Metadata of the last message delivered.
    delivered: Delivered,
    /// Complete packets to send.
    packets: VecDeque<Transmit<PacketBox<Packet>>>,
    /// Control chunks to send, with paths.
    control: VecDeque<(usize, Chunk)>,
    /// The last packet read; the next one sent reuses its memory.
    spare: PacketBox<Packet>,
    close_wanted: bool,
    /// The association ended by a shutdown.
    in_order: bool,
    news: PendingEvents,
    told: Told,
}

impl Sctp {
    /// The side that opens. Its tag and Initial TSN come from `rng`.
    #[must_use]
    pub fn client(config: &Config, rng: Rng) -> Self {
        Self::new(config, rng, State::Closed)
    }

    /// The side that answers, for one association.
    #[must_use]
    pub fn listener(config: &Config, rng: Rng) -> Self {
        Self::new(config, rng, State::Listen)
    }

    fn new(config: &Config, mut rng: Rng, state: State) -> Self {
        let cookies = Cookies::new(&mut rng);
        let my_tag = fresh_tag(&mut rng);
        let my_tsn = rng.bits() as u32;
        let version = IpVersion::V4;
        Self {
            config: config.clone(),
            version,
            below: 0,
            state,
            my_tag,
            peer_tag: 0,
            my_tsn,
            cookies,
            cookie: bytes::Bytes::new(),
            ties: None,
            stale: None,
            addresses: Vec::new(),
            streams: (config.streams, config.streams),
            interleaving: false,
            ecn: Ecn::default(),
            tx: Sender::new(my_tsn, config),
            rx: Receiver::new(0, 0),
            paths: vec![Path::new(config, version, 0, true)],
            errors: 0,
            timers: Timers::default(),
            sending: Sending {
                stream: 0,
                ppid: 0,
                unordered: !config.ordered,
                lifetime: config.lifetime,
                max_retransmissions: config.max_retransmissions,
                priority: None,
            },
            delivered: Delivered::default(),
            packets: VecDeque::new(),
            control: VecDeque::new(),
            spare: PacketBox::empty(),
            close_wanted: false,
            in_order: false,
            news: PendingEvents::default(),
            told: Told::default(),
            rng,
        }
    }

    /// Sets the IP version, which determines packet sizes; IPv4 by default.
    #[must_use]
    pub fn over(mut self, version: IpVersion) -> Self {
        self.version = version;
        let count = self.paths.len() as u8;
        self.on_paths(count)
    }

    /// Sets the number of paths to the peer, numbered from 0, the primary one. Others are used once
    /// a HEARTBEAT is acknowledged on them (RFC 9260 §5.4).
    ///
    /// # Panics
    /// Without any path.
    #[must_use]
    pub fn on_paths(mut self, count: u8) -> Self {
        assert!(count > 0, "an association has a path");
        self.paths = self.fresh_paths(count);
        self
    }

    /// Sets the bytes of a header below SCTP's, such as UDP's eight (RFC 6951), which packets leave room for.
    #[must_use]
    pub fn under(mut self, header_bytes: u32) -> Self {
        self.below = header_bytes;
        let count = self.paths.len() as u8;
        self.on_paths(count)
    }

    fn fresh_paths(&self, count: u8) -> Vec<Path> {
        let path = |path| Path::new(&self.config, self.version, self.below, path == 0);
        (0..count).map(path).collect()
    }

    /// Sets the addresses to list in INIT and INIT ACK (RFC 9260 §3.3.2.1), for drivers with real addresses.
    #[must_use]
    pub fn with_addresses(mut self, addresses: &[IpAddr]) -> Self {
        self.addresses = addresses.to_vec();
        self
    }

    /// The state the association is in.
    #[must_use]
    pub const fn state(&self) -> State {
        self.state
    }

    /// Whether a path can be used.
    #[must_use]
    pub fn reachable(&self, path: PathId) -> Option<Reachable> {
        self.paths.get(usize::from(path.0)).map(|path| path.reachable)
    }

    /// Congestion window and slow-start threshold of a path, in bytes of DATA chunks.
    #[must_use]
    pub fn window(&self, path: PathId) -> Option<(u64, Option<u64>)> {
        let control = &self.paths.get(usize::from(path.0))?.control;
        Some((control.window(), control.threshold()))
    }

    /// Bytes held in structures that grow with input, for tests that they are bounded.
    #[doc(hidden)]
    #[must_use]
    pub fn footprint(&self) -> usize {
        let control = self.control.len() * size_of::<(usize, Chunk)>();
        let packets = self.packets.len() * size_of::<Transmit<PacketBox<Packet>>>();
        let spare = self.spare.get().map_or(0, |spare| spare.chunks.capacity());
        let packets = packets + spare * size_of::<Chunk>();
        self.rx.footprint() + self.tx.footprint() + self.cookie.len() + control + packets
    }

    /// How messages of [`Input::Frame`] are sent: by default as configured, on stream 0.
    #[must_use]
    pub const fn sending(&self) -> Sending {
        self.sending
    }

    /// Sets how messages of [`Input::Frame`] are sent.
    pub const fn send_as(&mut self, how: Sending) {
        self.sending = how;
    }

    /// Metadata of the message of the last [`Output::Deliver`].
    #[must_use]
    pub const fn delivered(&self) -> Delivered {
        self.delivered
    }

    /// Sends a message with its own options. If the buffer is full, it displaces less important
    /// ones (RFC 7496 §3.2), or is rejected: `false`. Call `poll` afterwards, as after `handle`.
    pub fn send(&mut self, now: Instant, frame: Frame, how: &Sending) -> bool {
        self.take(now, frame, how)
    }

    /// [`Sctp::send`], inlined: a send buffer is filled with thousands of messages.
    #[inline(always)]
    fn take(&mut self, now: Instant, frame: Frame, how: &Sending) -> bool {
        let bytes = frame.wire_bytes();
        let stream_is_there = how.stream < self.streams.0;
        if !self.may_send() || bytes == 0 || !stream_is_there {
            return false;
        }
        if let Some(priority) = how.priority {
            let lacking = bytes.saturating_sub(self.send_capacity());
            if self.tx.forwards && lacking > 0 {
                self.tx.queue.displace(priority, lacking);
            }
        }
        if bytes > self.send_capacity() {
            return false;
        }
        self.tx.begin(now, &mut self.paths, &self.config);
        self.tx.push(now, frame, bytes, how);
        true
    }

    /// True while the application may hand over messages.
    fn may_send(&self) -> bool {
        self.state == State::Established && !self.close_wanted
    }

    fn on_packet<P: EndpointProbe>(
        &mut self,
        now: Instant,
        Arrival { path, ecn, damage }: Arrival,
        packet: &mut PacketBox<Packet>,
        probe: &mut P,
    ) {
        if damage == Damage::Payload {
            // RFC 9260 §6.8
            return probe.rx_error(now, RxError::Checksum);
        }
        self.on_sctp(now, path, ecn == crate::packet::Ecn::Ce, packet, probe);
        if self.spare.is_empty() && packet.chunks.capacity() <= SPARE_CHUNKS {
            self.spare = packet.take();
        }
    }

    /// §7.3, §10 ICMP7: accepted if the quoted Verification Tag is that of packets to the peer.
    fn on_too_big<P: EndpointProbe>(
        &mut self,
        now: Instant,
        path: PathId,
        mtu: u32,
        quoted: &Quoted,
        probe: &mut P,
    ) {
        let ours = quoted.word(wire::PROTOCOL) == Some(self.peer_tag);
        let index = usize::from(path.0);
        if !ours || self.tx.is_idle() || index >= self.paths.len() {
            return probe.rx_error(now, RxError::OutOfWindow);
        }
        if mtu < self.paths[index].mtu {
            self.paths[index].shrink(mtu.max(self.version.least_mtu()));
        }
    }

    /// Takes a frame from the application, which has checked `send_capacity`.
    #[inline(never)]
    fn on_frame(&mut self, now: Instant, frame: Frame) {
        if frame.wire_bytes() == 0 {
            // §3.3.1: a DATA chunk has at least one byte.
            return;
        }
        let how = self.sending;
        let taken = self.take(now, frame, &how);
        assert!(taken, "the application handed over a message that SCTP had no room for");
    }

    fn on_timeout(&mut self, now: Instant) {
        if due(&mut self.timers.guard, now) {
            // §9.2: T5-shutdown-guard
            return self.give_up();
        }
        if due(&mut self.timers.repeat, now) {
            self.repeat(now);
        }
        self.rx.due |= due(&mut self.rx.delayed, now);
        self.tx.begin(now, &mut self.paths, &self.config);
        for path in 0..self.paths.len() {
            if due(&mut self.paths[path].t3, now) {
                self.on_t3(now, path);
            }
            self.on_heartbeat_timers(now, path);
        }
    }

    fn deadline(&self) -> Option<Instant> {
        let own = earlier(earlier(self.timers.repeat, self.timers.guard), self.rx.delayed);
        self.paths.iter().fold(own, |next, path| {
            earlier(earlier(next, path.t3), earlier(path.heartbeat_at, path.asked))
        })
    }

    /// Takes anything but a frame.
    #[inline(never)]
    fn handle_other<P: EndpointProbe>(
        &mut self,
        now: Instant,
        input: Input<PacketBox<Packet>>,
        probe: &mut P,
    ) {
        match input {
            Input::Packet { arrival, mut packet } => {
                return self.receive(now, arrival, &mut packet, probe);
            }
            Input::TooBig { path, mtu, quote } => {
                self.on_too_big(now, path, mtu, &quote.transport, probe);
            }
            Input::Frame(frame) => self.on_frame(now, frame),
            Input::Timeout => self.on_timeout(now),
            Input::Open => self.open(now),
            Input::Close => self.close(now),
            Input::Abort => self.abort(Cause::new(Cause::USER_INITIATED_ABORT, "")),
            Input::Path(path, news) => self.on_path_news(now, usize::from(path.0), news),
        }
        self.follow(now, probe);
    }

    /// Updates state and gauges after any event.
    #[inline]
    fn follow<P: EndpointProbe>(&mut self, now: Instant, probe: &mut P) {
        self.settle(now);
        if probe.observes(Topic::Gauge) {
            self.gauge(now, probe);
        }
    }

    fn gauge<P: EndpointProbe>(&mut self, now: Instant, probe: &mut P) {
        let path = &self.paths[data_path(&self.paths)];
        let is = Told {
            cwnd: path.control.window(),
            ssthresh: path.control.threshold(),
            flight: self.paths.iter().map(|path| path.flight).sum(),
            srtt: path.rtt.srtt(),
            rto: path.rtt.rto(),
        };
        let was = std::mem::replace(&mut self.told, is);
        let mut note = |changed: bool, gauge: Gauge, value: Option<f64>| {
            if let Some(value) = value.filter(|_| changed) {
                probe.gauge(now, gauge, value);
            }
        };
        note(is.cwnd != was.cwnd, Gauge::Cwnd, Some(is.cwnd as f64));
        note(is.ssthresh != was.ssthresh, Gauge::Ssthresh, is.ssthresh.map(|b| b as f64));
        note(is.flight != was.flight, Gauge::Flight, Some(is.flight as f64));
        note(is.srtt != was.srtt, Gauge::Srtt, is.srtt.map(Duration::as_secs_f64));
        note(is.rto != was.rto, Gauge::Rto, Some(is.rto.as_secs_f64()));
    }
}

/// A Verification Tag is not zero (§5.3.1).
fn fresh_tag(rng: &mut Rng) -> u32 {
    (rng.bits() as u32).max(1)
}

/// The path for new data: the primary path if active, else the first active one (RFC 9260 §6.4; RFC 7829 §3.2
/// rule 3); else the potentially failed one with the fewest timeouts (rule 4), else the inactive one (§4.1).
#[inline]
fn data_path(paths: &[Path]) -> usize {
    let active = |path: &Path| path.reachable == Reachable::Active;
    paths.iter().position(active).unwrap_or_else(|| {
        let known = (0..paths.len()).filter(|i| paths[*i].reachable != Reachable::Unconfirmed);
        let failed = |i: &usize| paths[*i].reachable == Reachable::Inactive;
        known.min_by_key(|i| (failed(i), paths[*i].errors)).unwrap_or(0)
    })
}

/// The alternative to a path: the first other active one, if there is one (§6.4.1).
fn other_path(paths: &[Path], path: usize) -> usize {
    let sound = |i: &usize| *i != path && paths[*i].reachable == Reachable::Active;
    (0..paths.len()).find(sound).unwrap_or_else(|| data_path(paths))
}

impl Endpoint for Sctp {
    type Packet = PacketBox<Packet>;

    /// RFC 9260 §9: after a shutdown, neither end accepts new data from its user.
    fn closes_both_ways(&self) -> bool {
        true
    }

    // An input known by the caller to be a frame is moved only once.
    #[inline(always)]
    fn handle<P: EndpointProbe>(
        &mut self,
        now: Instant,
        input: Input<PacketBox<Packet>>,
        probe: &mut P,
    ) {
        match input {
            Input::Frame(frame) => {
                self.on_frame(now, frame);
                self.follow(now, probe);
            }
            _ => self.handle_other(now, input, probe),
        }
    }

    fn receive<P: EndpointProbe>(
        &mut self,
        now: Instant,
        arrival: Arrival,
        packet: &mut PacketBox<Packet>,
        probe: &mut P,
    ) {
        self.on_packet(now, arrival, packet, probe);
        self.follow(now, probe);
    }

    fn poll<P: EndpointProbe>(&mut self, now: Instant, _: &mut P) -> Output<PacketBox<Packet>> {
        if let Some(event) = self.news.opening() {
            return event;
        }
        if let Some(message) = self.rx.reassembly.ready.pop_front() {
            let waited = now.saturating_since(message.whole);
            self.delivered = Delivered { ppid: message.ppid, waited };
            return Output::Deliver(message.frame);
        }
        if let Some(event) = self.news.next() {
            return event;
        }
        if let Some(transmit) = self.next_packet(now) {
            return Output::Transmit(transmit);
        }
        self.tx.end();
        Output::Idle { until: self.deadline() }
    }

    /// Free bytes in the send buffer.
    fn send_capacity(&self) -> usize {
        if !self.may_send() {
            return 0;
        }
        (self.config.send_buffer.as_bytes() as usize).saturating_sub(self.tx.used_bytes())
    }
}

impl Listener for Sctp {
    fn is_listening(&self) -> bool {
        self.state == State::Listen
    }

    /// RFC 6951 §5.4: the tag is this association's, except in INIT and if reflected.
    fn recognises(&self, packet: &PacketBox<Packet>) -> bool {
        self.state > State::CookieWait && packet.tag == self.my_tag
    }
}
