//! TCP (RFC 9293) as a deterministic state machine.
//!
//! `handle` processes an input and changes fields; `poll` derives outputs from the fields: first events and
//! data for the application, then a reset, then segments, then a pure acknowledgement. Outputs are never
//! queued. Modules: `handshake` opens, `arrival` follows RFC 9293 §3.10.7.4, `receive`, `reassembly` and
//! `report` take data in and report it, `send` and `outgoing` send it, `recovery` handles acknowledgements,
//! losses and timeouts, `selective` with its `scoreboard` and `prr` does so where SACK was negotiated, `f_rto`
//! detects spurious timeouts, `delivery` measures delivery rates, `pacing` spreads segments. The rules of the
//! congestion window are in [`crate::congestion`].
//!
//! Numbers are 64-bit [`Seq`], so that no comparison is modulo 2³². After a timeout SND.NXT falls
//! back to SND.UNA and what follows is sent again (go back N); `max` is the highest number ever
//! sent, which RFC 9293 calls SND.NXT.

mod arrival;
mod config;
mod delivery;
mod ecn;
mod f_rto;
mod handshake;
mod outgoing;
mod pacing;
mod prr;
mod rack;
mod reassembly;
mod receive;
mod records;
mod recovery;
mod report;
mod scoreboard;
mod segment;
mod selective;
#[cfg(test)]
mod selective_tests;
mod send;
pub mod wire;

pub use config::{Config, Controller, LossRecovery, WindowRule};
pub use segment::{Flags, SackBlocks, Segment};

use crate::congestion::{CongestionControl, Machine, Model};
use crate::endpoint::{
    Arrival, Endpoint, Event, Input, Listener, Output, PathNews, PendingEvents, Transmit,
};
use crate::frame::Frame;
use crate::gauge::{EndpointNote, EndpointProbe, Gauge, RxError, Topic};
use crate::packet::{Damage, Ecn, IpVersion, PathId};
use crate::rng::Rng;
use crate::rtt::RttEstimator;
use crate::seq::Seq;
use crate::time::{Duration, Instant, due, earlier};
use crate::units::{Rate, Size};

use ecn::Echoes;
use pacing::Pacing;
use receive::Receiver;
use recovery::Recovery;
use selective::Selective;
use send::Sender;

/// States of a connection (RFC 9293 §3.3.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum State {
    /// No connection.
    Closed,
    /// Waiting for a SYN.
    Listen,
    /// SYN sent.
    SynSent,
    /// SYN sent and received.
    SynReceived,
    /// Open.
    Established,
    /// Closed by this side; the FIN is not acknowledged.
    FinWait1,
    /// Closed by this side; the FIN is acknowledged.
    FinWait2,
    /// Closed by the peer.
    CloseWait,
    /// Closed by both at once; our FIN is not acknowledged.
    Closing,
    /// Closed by the peer, then by this side; our FIN is not acknowledged.
    LastAck,
    /// Closed; waiting for stray segments to expire.
    TimeWait,
}

/// A reset to be sent (RFC 9293 §3.10.7).
#[derive(Clone, Copy, Debug)]
struct Reset {
    seq: u32,
    ack: Option<u32>,
    timestamp: ResetTimestamp,
}

/// Which Timestamps option a reset carries (RFC 7323 §5.2).
#[derive(Clone, Copy, Debug)]
enum ResetTimestamp {
    /// TSval zero and this TSecr, from the refused segment, if it had one.
    Echo(Option<u32>),
    /// The same as for any segment: the application aborts.
    Own,
}

/// Options that both sides negotiated.
#[derive(Clone, Copy, Debug, Default)]
struct Negotiated {
    timestamps: bool,
    scaling: bool,
    sack: bool,
    ecn: bool,
}

/// A connection's deadlines; the driver learns the earliest when the endpoint is idle.
#[derive(Clone, Copy, Debug, Default)]
struct Timers {
    /// Retransmission (RFC 6298 §5).
    rto: Option<Instant>,
    /// Zero-window probe, or the override of silly-window avoidance (RFC 9293 §3.8.6.1, §3.8.6.2).
    persist: Option<Instant>,
    /// Delayed acknowledgement (RFC 5681 §4.2).
    ack: Option<Instant>,
    /// End of TIME-WAIT (RFC 9293 §3.6.1).
    time_wait: Option<Instant>,
    /// The current interval between probes.
    persist_wait: Duration,
}

impl Timers {
    /// The earliest deadline.
    #[inline]
    fn next(&self) -> Option<Instant> {
        earlier(earlier(self.rto, self.persist), earlier(self.ack, self.time_wait))
    }
}

/// The gauges as last reported.
#[derive(Debug, Default)]
struct Told {
    cwnd: u64,
    ssthresh: Option<u64>,
    flight: u64,
    srtt: Option<Duration>,
    rto: Duration,
    /// Whether an idle time has reduced cwnd since.
    idle: bool,
    /// Whether any gauge may change when a segment is sent: of a paced sender, and with RACK-TLP.
    all: bool,
    /// Whether there are also those below.
    paced: bool,
    pacing_rate: Option<Rate>,
    model: Option<Model>,
}

/// Not inlined, since most comparisons before it find no change.
#[inline(never)]
fn note_gauge<P: EndpointProbe>(now: Instant, probe: &mut P, gauge: Gauge, value: f64) {
    probe.note(now, EndpointNote::Gauge { gauge, value });
}

/// [`note_gauge`] for a number of bytes, which is less than 2⁶³: the conversion is one instruction. Inlined,
/// since window and flight often change.
#[inline(always)]
fn note_bytes<P: EndpointProbe>(now: Instant, probe: &mut P, gauge: Gauge, bytes: u64) {
    let value = bytes.cast_signed() as f64;
    probe.note(now, EndpointNote::Gauge { gauge, value });
}

/// One end of a TCP connection.
#[derive(Debug)]
pub struct Tcp {
    config: Config,
    state: State,
    /// Opened passively (RFC 9293 §3.10.7.4: decides where a reset leads from SYN-RECEIVED).
    passive: bool,
    version: IpVersion,
    tx: Sender,
    rx: Receiver,
    recovery: Recovery,
    /// With selective acknowledgements, once the connection is open.
    selective: Option<Box<Selective>>,
    timers: Timers,
    rtt: RttEstimator,
    cc: Machine,
    /// For a paced sender.
    pacing: Option<Box<Pacing>>,
    negotiated: Negotiated,
    /// Selective acknowledgements or ECN are in use: the only check for a connection without them.
    extended: bool,
    echoes: Echoes,
    news: PendingEvents,
    reset: Option<Reset>,
    /// Challenge acknowledgements sent since that instant (RFC 5961 §7).
    challenges: (Instant, u8),
    /// RFC 9293 §3.4.1: the secret part of the initial sequence number.
    isn_offset: u32,
    /// RFC 7323 §5.4: value of the timestamp clock at time zero.
    clock_offset: u32,
    /// Seed of the controller's own rng.
    seed: u64,
    told: Told,
}

/// Granularity of the timestamp clock (RFC 7323 §5.4 wants 1 ms to 1 s), and G in RFC 6298.
const TICK: Duration = Duration::from_millis(1);

impl Tcp {
    /// The side that opens. Its initial sequence number and timestamp offset come from `rng`.
    #[must_use]
    pub fn client(config: &Config, rng: Rng) -> Self {
        Self::new(config, rng, State::Closed, false)
    }

    /// The side that answers; it accepts one connection.
    #[must_use]
    pub fn listener(config: &Config, rng: Rng) -> Self {
        Self::new(config, rng, State::Listen, true)
    }

    fn new(config: &Config, mut rng: Rng, state: State, passive: bool) -> Self {
        let mss = Self::own_mss(config);
        let cc = Self::new_controller(config, mss, false, None);
        let paced = config.is_paced() || cc.model().is_some();
        Self {
            config: config.clone(),
            state,
            passive,
            version: IpVersion::V4,
            tx: Sender::new(
                config.send_buffer.as_bytes(),
                config.notsent_lowat.map_or(u64::MAX, Size::as_bytes),
                mss,
            ),
            rx: Receiver::new(config.receive_buffer.as_bytes(), mss),
            recovery: Recovery::default(),
            selective: None,
            timers: Timers::default(),
            rtt: RttEstimator::new(config.min_rto, config.max_rto, TICK),
            cc,
            pacing: config.is_paced().then(Box::default),
            negotiated: Negotiated::default(),
            extended: false,
            echoes: Echoes::default(),
            news: PendingEvents::default(),
            reset: None,
            challenges: (Instant::ZERO, 0),
            isn_offset: rng.bits() as u32,
            clock_offset: rng.bits() as u32,
            seed: rng.bits(),
            told: Told { paced, all: paced, ..Told::default() },
        }
    }

    /// Sets the IP version, which determines the segment size for an MTU; IPv4 by default.
    #[must_use]
    pub const fn over(mut self, version: IpVersion) -> Self {
        self.version = version;
        self
    }

    /// The state of the connection.
    #[must_use]
    pub const fn state(&self) -> State {
        self.state
    }

    /// The congestion controller.
    #[must_use]
    pub const fn controller(&self) -> &Machine {
        &self.cc
    }

    /// Replaces the controller of an open connection.
    pub fn set_controller(&mut self, controller: Machine) {
        self.cc = controller;
    }

    /// Payload of a full segment at present: the minimum of both sides' MSS and the path's, less
    /// options (RFC 9293 §3.7.1).
    #[must_use]
    pub const fn segment_bytes(&self) -> usize {
        self.tx.mss as usize
    }

    /// Bytes held that depend on received data, for tests that they are bounded.
    #[doc(hidden)]
    #[must_use]
    pub fn footprint(&self) -> usize {
        let board = self.selective.as_ref().map_or(0, |selective| selective.board.footprint());
        self.rx.reassembly.footprint() + board
    }

    /// Ends the connection: no more sending, no more timers.
    fn finish(&mut self, event: Event) {
        self.state = State::Closed;
        self.timers = Timers::default();
        (self.selective, self.pacing) = (None, None);
        self.rx.ack_now = false;
        self.news.add(event);
    }

    /// The timestamp clock (RFC 7323 §5.4).
    #[inline]
    fn clock(&self, now: Instant) -> u32 {
        self.clock_offset.wrapping_add((now.as_nanos() / TICK.as_nanos()) as u32)
    }

    /// Reports the gauges that changed; usually few or none.
    #[inline(always)]
    fn gauge<P: EndpointProbe>(&mut self, now: Instant, probe: &mut P) {
        let (window, ssthresh) = self.cc.limits();
        let plain =
            self.selective.as_ref().is_some_and(|selective| self.is_limited_by_cwnd(selective));
        let cwnd = if plain { window } else { self.present_window() };
        let (flight, srtt, rto) = (self.pipe(), self.rtt.srtt(), self.rtt.rto());
        let told = &mut self.told;
        if cwnd != told.cwnd {
            told.cwnd = cwnd;
            note_bytes(now, probe, Gauge::Cwnd, cwnd);
        }
        if ssthresh != told.ssthresh {
            told.ssthresh = ssthresh;
            if let Some(ssthresh) = ssthresh {
                note_bytes(now, probe, Gauge::Ssthresh, ssthresh);
            }
        }
        if flight != told.flight {
            told.flight = flight;
            note_bytes(now, probe, Gauge::Flight, flight);
        }
        if srtt != told.srtt {
            told.srtt = srtt;
            if let Some(srtt) = srtt {
                note_gauge(now, probe, Gauge::Srtt, srtt.as_secs_f64());
            }
        }
        if rto != told.rto {
            told.rto = rto;
            note_gauge(now, probe, Gauge::Rto, rto.as_secs_f64());
        }
        if told.paced {
            self.gauge_pacing(now, probe);
        }
    }

    /// [`Tcp::gauge`] after preparing a segment, which usually changes only the flight, and the window in fast
    /// recovery.
    #[inline(always)]
    fn gauge_after_sending<P: EndpointProbe>(&mut self, now: Instant, probe: &mut P) {
        let told = &self.told;
        let recovery = &self.recovery;
        if told.all || told.idle || recovery.doubt.is_some() {
            self.told.idle = false;
            return self.gauge(now, probe);
        }
        if recovery.is_fast() {
            let cwnd = self.present_window();
            if cwnd != self.told.cwnd {
                self.told.cwnd = cwnd;
                note_bytes(now, probe, Gauge::Cwnd, cwnd);
            }
        }
        let flight = self.pipe();
        if flight != self.told.flight {
            self.told.flight = flight;
            note_bytes(now, probe, Gauge::Flight, flight);
        }
    }

    /// [`Tcp::gauge`] for the gauges of a paced sender.
    #[inline(never)]
    fn gauge_pacing<P: EndpointProbe>(&mut self, now: Instant, probe: &mut P) {
        let mut note = |changed: bool, gauge: Gauge, value: Option<f64>| {
            if let Some(value) = value.filter(|_| changed) {
                note_gauge(now, probe, gauge, value);
            }
        };
        let pacing_rate = self.pacing.as_ref().and_then(|_| self.cc.pacing_rate(&self.rtt));
        let (told_rate, model) = (self.told.pacing_rate, self.cc.model());
        let bps = |rate: Rate| rate.as_bps() as f64;
        note(pacing_rate != told_rate, Gauge::PacingRate, pacing_rate.map(bps));
        self.told.pacing_rate = pacing_rate;
        let told = std::mem::replace(&mut self.told.model, model);
        if model == told {
            return;
        }
        let gauges = |model: Option<Model>| {
            let min_rtt = model.and_then(|model| model.min_rtt);
            let longterm = model.and_then(|model| model.inflight_longterm);
            [
                (Gauge::Bandwidth, model.map(|model| bps(model.bw))),
                (Gauge::MinRtt, min_rtt.map(Duration::as_secs_f64)),
                (Gauge::InflightLongterm, longterm.map(|bytes| bytes as f64)),
                (Gauge::Phase, model.map(|model| f64::from(model.phase))),
            ]
        };
        for ((gauge, value), (_, before)) in gauges(model).into_iter().zip(gauges(told)) {
            note(value != before, gauge, value);
        }
    }

    #[inline(always)]
    fn on_packet<P: EndpointProbe>(
        &mut self,
        now: Instant,
        arrival: Arrival,
        segment: &mut Segment,
        probe: &mut P,
    ) {
        if arrival.damage == Damage::Payload {
            // RFC 9293 §3.1: the checksum covers the payload.
            probe.rx_error(now, RxError::Checksum);
        } else {
            self.on_segment(now, segment, arrival.ecn, probe);
        }
    }

    #[inline]
    fn next_deadline(&self) -> Option<Instant> {
        let mut next = self.timers.next();
        if let Some(pacing) = &self.pacing {
            next = earlier(next, pacing.wake);
        }
        match self.selective.as_deref() {
            Some(selective) if selective.rack.is_some() => earlier(next, selective.next_deadline()),
            _ => next,
        }
    }

    /// RFC 9293 §3.10.8
    fn on_timeout(&mut self, now: Instant) {
        if due(&mut self.timers.time_wait, now) {
            self.state = State::Closed;
            self.timers = Timers::default();
        }
        if due(&mut self.timers.ack, now) {
            self.rx.ack_now = true;
        }
        if due(&mut self.timers.persist, now) {
            self.on_persist(now);
        }
        if self.pacing.is_some() {
            self.on_turn(now);
        }
        if self.selective.is_some() {
            self.check_if_application_limited();
            self.on_rack_timers(now);
        }
        if due(&mut self.timers.rto, now) {
            self.on_rto(now);
        }
    }

    /// RFC 9293 §3.10.2 SEND
    #[inline]
    fn on_frame(&mut self, frame: &mut Frame) {
        let Frame::Data(payload) = frame else {
            panic!("TCP carries a stream: media frames are framed by the application (RFC 4571)")
        };
        if !payload.is_empty() && !self.tx.fin && self.takes_data() {
            if self.selective.is_some() {
                self.check_if_application_limited();
            }
            self.tx.push(payload);
        }
    }

    /// True if the application may hand over data.
    fn takes_data(&self) -> bool {
        match self.state {
            State::Listen
            | State::SynSent
            | State::SynReceived
            | State::Established
            | State::CloseWait => true,
            // Allowed before opening, but not after the end.
            State::Closed => !self.passive && self.tx.iss == Seq::default(),
            _ => false,
        }
    }
}

impl Endpoint for Tcp {
    type Packet = Segment;

    /// Like [`Endpoint::handle`], but reads the body in place: moving it costs more than reading it.
    #[inline(always)]
    fn receive<P: EndpointProbe>(
        &mut self,
        now: Instant,
        arrival: Arrival,
        segment: &mut Segment,
        probe: &mut P,
    ) {
        // With nothing in flight, a segment changes no gauge of an open connection.
        let was_drained = self.state == State::Established && self.tx.is_drained();
        self.on_packet(now, arrival, segment, probe);
        if probe.observes(Topic::Gauge) && !was_drained {
            self.gauge(now, probe);
        }
    }

    #[inline(always)]
    fn handle<P: EndpointProbe>(&mut self, now: Instant, mut input: Input<Segment>, probe: &mut P) {
        match &mut input {
            Input::Packet { arrival, packet } => {
                return self.receive(now, *arrival, packet, probe);
            }
            // RFC 5927 §4.1: only a segment in flight can have been refused.
            Input::TooBig { quote, .. } if !self.is_in_flight(&quote.transport) => {
                probe.rx_error(now, RxError::OutOfWindow);
            }
            Input::TooBig { mtu, .. } => self.on_too_big(*mtu),
            Input::Frame(frame) => self.on_frame(frame),
            Input::Timeout => self.on_timeout(now),
            Input::Open => self.open(now),
            Input::Close => self.close(),
            Input::Abort => self.abort(),
            // Retransmission recovers the path; no immediate action.
            Input::Path(_, PathNews::Down | PathNews::Up) => {}
        }
        if probe.observes(Topic::Gauge) {
            self.gauge(now, probe);
        }
    }

    #[inline]
    fn poll<P: EndpointProbe>(&mut self, now: Instant, probe: &mut P) -> Output<Segment> {
        if let Some(event) = self.news.opening() {
            return event;
        }
        if let Some(frame) = self.rx.reassembly.deliver() {
            return Output::Deliver(frame);
        }
        if let Some(event) = self.news.next() {
            return event;
        }
        if (self.reset.is_some() || self.state < State::Established)
            && let Some(segment) = self.next_without_connection(now)
        {
            let (path, ecn) = (PathId(0), Ecn::NotEct);
            return Output::Transmit(Transmit { path, ecn, packet: segment });
        }
        let Some(draft) = self.next_segment(now) else {
            return Output::Idle { until: self.next_deadline() };
        };
        // With nothing to send, preparing an acknowledgement changes no gauge.
        if probe.observes(Topic::Gauge) && !(draft.is_bare_ack() && self.tx.is_drained()) {
            self.gauge_after_sending(now, probe);
        }
        self.transmit(now, draft)
    }

    #[inline]
    fn send_capacity(&self) -> usize {
        if self.tx.fin || !self.takes_data() { 0 } else { self.tx.room() as usize }
    }
}

/// Its peer is known before it listens.
impl Listener for Tcp {}
