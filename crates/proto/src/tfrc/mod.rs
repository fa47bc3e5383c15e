//! Bare TFRC (RFC 5348) over UDP: data packets with a sequence number, a timestamp and the sender's
//! round-trip time (§3.2.1), answered by feedback packets (§3.2.2).
//!
//! There is no handshake: the first data packet leaves at once (§4.2), and either end may send. Data is not
//! queued here: [`send_capacity`](Endpoint::send_capacity) is zero unless a packet may leave now. `rate`
//! schedules packets; this module numbers them and handles timestamps.

mod packet;
mod receiver;
mod sender;
pub mod wire;

use std::collections::VecDeque;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use packet::{Data, Feedback, Packet};

use crate::endpoint::{Arrival, Endpoint, Event, Input, Output, Transmit};
use crate::frame::Frame;
use crate::gauge::{EndpointNote, EndpointProbe, RxError};
use crate::packet::{Damage, Ecn, IpVersion, PathId};
use crate::profile::Profile;
use crate::rate::{self, Kind, Machine, Rung, beritelli};
use crate::rng::Rng;
use crate::time::{Instant, earlier};
use crate::transport::{Setup, TransportConfig};
use crate::validate::{ConfigError, Validate};
use receiver::Receiver;
use sender::Sender;

/// Bytes in front of a data packet's payload, without IP: UDP's header and the packet's own.
const HEADER_BYTES: u32 = 8 + 16;
/// Maximum length of an IP packet.
const LONGEST_PACKET: u32 = 65_535;

/// Parameters of a bare TFRC flow.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// Profile that provides absent parameters. Default `rfc`.
    pub profile: Profile,
    /// Parameters of rate control.
    pub rate: rate::Config,
    /// Whether data packets are sent as ECN-capable, so that routers can mark instead of dropping them
    /// (RFC 5348 §5.3: a mark counts as a loss). Default false, as in most studies.
    pub ecn: bool,
}

impl Validate for Config {
    fn errors(&self) -> Vec<ConfigError> {
        let errors = self.rate.errors().into_iter().chain(self.rate.dccp_only());
        errors.map(|error| error.within("rate")).collect()
    }
}

/// One end of a bare TFRC flow.
#[derive(Debug)]
pub struct Tfrc {
    sender: Sender,
    receiver: Receiver,
    ecn: bool,
    outbound: VecDeque<Frame>,
    answers: VecDeque<Feedback>,
    inbound: VecDeque<Frame>,
    events: VecDeque<Event>,
    /// There is capacity that the application has neither been notified of nor used.
    writable: bool,
    path_mtu: Option<u32>,
    version: IpVersion,
    opened: bool,
    closed: bool,
}

impl Tfrc {
    /// The end that opens.
    #[must_use]
    pub fn client(config: &Config, rng: Rng) -> Self {
        Self::with_ladder(config, rng, &[])
    }
    /// The end that answers; both are alike, since there is no handshake.
    #[must_use]
    pub fn listener(config: &Config, rng: Rng) -> Self {
        Self::with_ladder(config, rng, &[])
    }
    /// An end whose source can use these encodings, best first.
    #[must_use]
    pub fn with_ladder(config: &Config, mut rng: Rng, ladder: &[Rung]) -> Self {
        let parameters = config.rate.resolve(config.profile, Kind::Tfrc);
        Self {
            receiver: Receiver::new(&parameters),
            sender: Sender::new(parameters, ladder, rng.bits() as u32),
            ecn: config.ecn,
            outbound: VecDeque::new(),
            answers: VecDeque::new(),
            inbound: VecDeque::new(),
            events: VecDeque::new(),
            writable: false,
            path_mtu: None,
            version: IpVersion::default(),
            opened: false,
            closed: false,
        }
    }
    /// Its source can send at any rate: each change is reported ([`Event::TargetRate`]).
    #[must_use]
    pub fn reporting_rate(mut self) -> Self {
        self.sender.report_rate();
        self
    }
    /// The smallest MTU a router has reported (RFC 1191).
    #[must_use]
    pub const fn path_mtu(&self) -> Option<u32> {
        self.path_mtu
    }
    /// Maximum payload on this path in bytes, regardless of the permit.
    #[must_use]
    pub fn largest(&self) -> usize {
        let headers = self.version.header_bytes() + HEADER_BYTES;
        self.path_mtu.unwrap_or(LONGEST_PACKET).saturating_sub(headers) as usize
    }
    /// The controller of what this end sends, once it has sent.
    #[must_use]
    pub const fn machine(&self) -> Option<&Machine> {
        self.sender.machine()
    }

    fn on_packet<P: EndpointProbe>(
        &mut self,
        now: Instant,
        ecn: Ecn,
        packet: &mut Packet,
        probe: &mut P,
    ) -> Result<(), RxError> {
        match packet {
            Packet::Data(data) => {
                self.receiver.on_data(now, ecn, data, probe)?;
                self.inbound.push_back(std::mem::take(&mut data.payload));
                self.answer(now);
                Ok(())
            }
            Packet::Feedback(_) if self.closed => Ok(()),
            Packet::Feedback(feedback) => self.sender.on_feedback(now, feedback, probe),
        }
    }

    fn on_too_big(&mut self, mtu: u32, version: IpVersion) {
        self.version = version;
        let mtu = mtu.max(version.least_mtu());
        self.path_mtu = Some(self.path_mtu.map_or(mtu, |known| known.min(mtu)));
    }

    fn on_timeout<P: EndpointProbe>(&mut self, now: Instant, probe: &mut P) {
        if !self.closed {
            self.sender.on_timeout(now, probe);
        }
        self.receiver.on_timeout(now);
        self.answer(now);
    }

    #[inline]
    fn answer(&mut self, now: Instant) {
        if let Some(feedback) = self.receiver.feedback(now) {
            self.answers.push_back(feedback);
        }
    }

    /// Collects events for the application.
    #[inline(never)]
    fn look(&mut self, now: Instant) {
        if self.closed {
            return;
        }
        let was_open = self.sender.is_open();
        self.sender.look(now, &mut self.events);
        // Capacity used before the application was notified does not count.
        self.writable = self.sender.is_open() && (self.writable || !was_open);
    }

    fn close(&mut self) {
        if !self.closed {
            self.closed = true;
            // Capacity not yet reported is withdrawn.
            self.writable = false;
            self.events.push_back(Event::Closed);
        }
    }

    #[inline(never)]
    fn on_frame(&mut self, now: Instant, frame: Frame) {
        self.sender.note_unused(now);
        self.sender.on_frame(now, frame.wire_bytes() as u32);
        // Moved last: reading data just written would stall.
        self.outbound.push_back(frame);
        self.look(now);
    }

    /// Handles anything but a frame.
    #[inline(never)]
    fn handle_other<P: EndpointProbe>(
        &mut self,
        now: Instant,
        mut input: Input<Packet>,
        probe: &mut P,
    ) {
        if let Input::Packet { arrival, packet } = &mut input {
            return self.receive(now, *arrival, packet, probe);
        }
        // An earlier permit was not used before this event.
        self.sender.note_unused(now);
        match input {
            Input::Open => {
                if !std::mem::replace(&mut self.opened, true) {
                    self.events.push_back(Event::Connected);
                }
            }
            Input::Frame(frame) => return self.on_frame(now, frame),
            Input::Timeout => self.on_timeout(now, probe),
            Input::TooBig { mtu, quote, .. } => self.on_too_big(mtu, quote.version),
            Input::Close | Input::Abort => self.close(),
            Input::Packet { .. } | Input::Path(..) => {}
        }
        self.look(now);
    }

    #[inline(always)]
    fn deadline(&self) -> Option<Instant> {
        let sender = if self.closed { None } else { self.sender.deadline() };
        earlier(sender, self.receiver.deadline())
    }
}

impl Endpoint for Tfrc {
    type Packet = Packet;

    // The caller knows that the input is a frame, so it is moved only once.
    #[inline(always)]
    fn handle<P: EndpointProbe>(&mut self, now: Instant, input: Input<Packet>, probe: &mut P) {
        match input {
            Input::Frame(frame) => self.on_frame(now, frame),
            _ => self.handle_other(now, input, probe),
        }
    }

    fn receive<P: EndpointProbe>(
        &mut self,
        now: Instant,
        Arrival { ecn, damage, .. }: Arrival,
        packet: &mut Packet,
        probe: &mut P,
    ) {
        self.sender.note_unused(now);
        let verdict = match damage {
            // RFC 768: the checksum covers the whole datagram, so a damaged one is not delivered.
            Damage::Payload => Err(RxError::Checksum),
            Damage::None => self.on_packet(now, ecn, packet, probe),
        };
        if let Err(rx_error) = verdict {
            probe.note(now, EndpointNote::RxError(rx_error));
        }
        self.look(now);
    }

    fn poll<P: EndpointProbe>(&mut self, now: Instant, _: &mut P) -> Output<Packet> {
        let path = PathId(0);
        if let Some(feedback) = self.answers.pop_front() {
            // RFC 3168 §6.1.4 on TCP's pure acknowledgements applies here too: not ECN-capable.
            let packet = Packet::Feedback(feedback);
            return Output::Transmit(Transmit { path, ecn: Ecn::NotEct, packet });
        }
        if let Some(payload) = self.outbound.pop_front() {
            let ecn = if self.ecn { Ecn::Ect0 } else { Ecn::NotEct };
            let (seq, timestamp, rtt, timeout) = self.sender.stamp(now);
            let data = Data { seq, timestamp, rtt, timeout, payload };
            return Output::Transmit(Transmit { path, ecn, packet: Packet::Data(data) });
        }
        if let Some(frame) = self.inbound.pop_front() {
            return Output::Deliver(frame);
        }
        if let Some(event) = self.events.pop_front() {
            return Output::Event(event);
        }
        if std::mem::take(&mut self.writable) {
            return Output::Event(Event::Writable);
        }
        Output::Idle { until: self.deadline() }
    }

    fn max_message(&self) -> usize {
        self.largest()
    }

    fn send_capacity(&self) -> usize {
        if self.closed || !self.sender.is_open() {
            return 0;
        }
        self.largest()
    }
}

impl TransportConfig for Config {
    type Endpoint = Tfrc;

    fn build(&self, setup: Setup<'_>) -> Tfrc {
        let tfrc = Tfrc::with_ladder(self, setup.rng, setup.ladder);
        if setup.any_rate { tfrc.reporting_rate() } else { tfrc }
    }
    fn name(&self) -> String {
        if self.rate.token_bucket.is_some() { "tfrc-tb" } else { "tfrc" }.to_owned()
    }
    fn protocol(&self) -> &'static str {
        "TFRC"
    }
    /// UDP's 8 and the 16 of a data packet.
    fn header_bytes(&self) -> u32 {
        8 + 16
    }
    fn profile(&self) -> Profile {
        self.profile
    }
}

impl TransportConfig for beritelli::Config {
    type Endpoint = Tfrc;

    fn build(&self, setup: Setup<'_>) -> Tfrc {
        let rate = rate::Config { beritelli: Some(self.clone()), ..Default::default() };
        Config { rate, ..Default::default() }.build(setup)
    }
    fn name(&self) -> String {
        "beritelli".to_owned()
    }
    fn protocol(&self) -> &'static str {
        "TFRC"
    }
    fn header_bytes(&self) -> u32 {
        Config::default().header_bytes()
    }
}
