//! Connection setup (RFC 4340 §8.1): Request, Response and the following handshake, with or
//! without Init Cookies; DCCP-Listen (RFC 5596); and the half-connections.

use super::ccid::{Receiver as _, ReceiverHalf, Sender as _, SenderHalf};
use super::config::Ccid;
use super::cookie::Memory;
use super::departure::{Numbered, Reset};
use super::features::Changed;
use super::options::{Opt, feature};
use super::timers::Timers;
use super::{
    AckVector, Dccp, Features, Kind, Location, Packet, ResetCode, SeqNo, Service, State, ToReport,
    Windows,
};
use crate::endpoint::Event;
use crate::gauge::{EndpointProbe, RxError};
use crate::time::{Duration, Instant};

/// RFC 4340 §8.1.5: the initial PARTOPEN timeout.
const FIRST_WAIT: Duration = Duration::from_millis(200);
/// RFC 5596 §2.2.2: the interval of Listens.
const LISTEN_WAIT: Duration = Duration::from_millis(200);
/// RFC 5596 §2.2.2: the first Listen is repeated twice.
const LISTENS_AGAIN: u8 = 2;

impl Dccp {
    /// The application opens the connection. A listener is already open.
    pub(super) fn open(&mut self, now: Instant) {
        if self.state != State::Closed || self.used {
            return;
        }
        (self.state, self.used) = (State::Request, true);
        self.features.propose();
        self.owed.request = true;
        // §8.1.1
        self.timers.repeat_after(now, self.config.request_timeout);
        self.timers.give_up = Some(now + self.config.give_up);
    }

    /// §8.5 step 3. True if the connection is now in RESPOND and the packet is processed further.
    pub(super) fn on_listen<P: EndpointProbe>(
        &mut self,
        now: Instant,
        packet: &Packet,
        probe: &mut P,
    ) -> bool {
        if let Kind::Request { service } = packet.kind {
            // §8.1.2; RFC 5595 §2.2: other services are refused.
            if Service(service) != self.config.service || !Service(service).is_valid() {
                self.refuse(packet, ResetCode::BAD_SERVICE_CODE);
                return false;
            }
            self.windows.begin(SeqNo::first(0).near(packet.seq));
            self.answer(now);
            return true;
        }
        match self.memory(now, packet) {
            Some(Some(memory)) if self.restore(&memory) => {
                self.answer(now);
                true
            }
            // §5.6: an invalid cookie.
            Some(_) => {
                probe.rx_error(now, RxError::BadAck);
                self.refuse(packet, ResetCode::BAD_INIT_COOKIE);
                false
            }
            None => {
                probe.rx_error(now, RxError::Unexpected);
                self.refuse(packet, ResetCode::NO_CONNECTION);
                false
            }
        }
    }

    /// Enters RESPOND, and returns to LISTEN if nothing follows (§8.1.3: 4 MSL).
    fn answer(&mut self, now: Instant) {
        self.state = State::Respond;
        self.timers = Timers { give_up: Some(now + self.config.msl * 4), ..Timers::default() };
    }

    /// Content of a packet's Init Cookie; `None` without a cookie, or if cookies are off.
    fn memory(&self, now: Instant, packet: &Packet) -> Option<Option<Memory>> {
        if !self.config.init_cookie || packet.kind == Kind::Data {
            return None;
        }
        let cookie = packet.options.iter().find_map(|option| match option {
            Ok(Opt::InitCookie(cookie)) => Some(cookie),
            _ => None,
        })?;
        Some(self.cookies.open(now, self.config.msl * 4, cookie))
    }

    /// Restores the state saved in a cookie. False if it is invalid.
    fn restore(&mut self, memory: &Memory) -> bool {
        let mut windows = Windows::new(0);
        (windows.iss, windows.gss, windows.gar) = (memory.iss, memory.iss, memory.iss);
        windows.begin(memory.isr);
        windows.receive(memory.isr);
        self.windows = windows;
        self.vector.on_packet(memory.isr, crate::packet::Ecn::NotEct);
        let whole = self.features.restore(&memory.features, memory.iss).is_some();
        if whole {
            self.agree();
        } else {
            self.listen_again();
        }
        whole
    }

    /// The Init Cookie of a Response with the next sequence number.
    pub(super) fn new_cookie(&self, now: Instant) -> Option<Vec<u8>> {
        let mut features = Vec::new();
        self.features.save(&mut features);
        let (iss, isr) = (self.windows.gss + 1, self.windows.gsr);
        self.cookies.seal(now, &Memory { iss, isr, features })
    }

    /// §8.3.1: answers a packet without a connection, with numbers taken from the packet.
    pub(super) fn refuse(&mut self, packet: &Packet, code: ResetCode) {
        if packet.kind.number() == ResetCode::TYPE {
            return;
        }
        let near = SeqNo::first(0);
        let seq = packet.kind.ack().map_or(SeqNo::default(), |ack| near.near(ack) + 1);
        let ack = near.near(packet.seq).extended();
        let seq = Numbered::Given(seq.extended());
        self.owed.reset = Some(Reset { seq, ack, code, data: [0; 3] });
    }

    /// Resets the listener to its initial state.
    pub(super) fn listen_again(&mut self) {
        self.state = State::Listen;
        self.windows = Windows::new(self.rng.bits());
        self.features = Features::new(&self.config, self.server);
        self.agree();
        (self.vector, self.dropped) = (AckVector::default(), ToReport::default());
        (self.timers, self.echo, self.timed) = (Timers::default(), None, None);
        (self.handshake_rtt, self.non_data) = (None, 0);
        self.owed.forget_but_reset();
    }

    /// §8.5 step 10: a Response arrived.
    pub(super) fn part_open<P: EndpointProbe>(&mut self, now: Instant, probe: &mut P) {
        self.state = State::PartOpen;
        self.timers.repeat_after(now, FIRST_WAIT);
        // §8.1.5: 4 MSL
        self.timers.give_up = Some(now + self.config.msl * 4);
        self.owed.ack = true;
        self.begin_halves(now, probe);
        self.news.add(Event::Connected);
    }

    /// §8.5 steps 11 and 12: both sides know that the connection is open.
    pub(super) fn enter_open<P: EndpointProbe>(&mut self, now: Instant, seq: SeqNo, probe: &mut P) {
        self.windows.osr = Some(seq);
        if self.state == State::Respond {
            self.begin_halves(now, probe);
            self.news.add(Event::Connected);
        }
        self.state = State::Open;
        self.timers = Timers {
            change: self.timers.change,
            change_wait: self.timers.change_wait,
            ..Timers::default()
        };
        self.owed.allowance = None;
        self.cookies.forget();
        if !self.server {
            self.features.forget_confirms();
        }
        if self.close_wanted {
            self.begin_close(now);
        }
    }

    /// Creates the half-connections with the negotiated CCIDs (§10).
    fn begin_halves<P: EndpointProbe>(&mut self, now: Instant, probe: &mut P) {
        self.begin_sender(now, probe);
        self.begin_receiver();
    }

    fn ccid(&self, location: Location) -> Ccid {
        let number = self.features.value(feature::CCID, location) as u8;
        Ccid::try_from(number).expect("only CCIDs of this end's list are agreed to")
    }

    fn begin_sender<P: EndpointProbe>(&mut self, now: Instant, probe: &mut P) {
        let (ccid, rtt) = (self.ccid(Location::Here), self.rtt());
        self.first_of_half = self.windows.gss + 1;
        let mut sender = SenderHalf::begin(now, ccid, &self.config, &self.ladder, rtt, probe);
        if self.any_rate {
            sender.report_rate();
        }
        self.sender = Some(sender);
        // The handshake may end before the CCID is negotiated: the Confirm is still on its way.
        self.undecided = self.lacks_agreement();
        self.agree();
    }

    fn begin_receiver(&mut self) {
        let mut receiver = ReceiverHalf::begin(self.ccid(Location::There), &self.config);
        if let Some(rtt) = self.rtt() {
            receiver.set_rtt(rtt);
        }
        receiver.set_ack_ratio(self.features.value(feature::ACK_RATIO, Location::There) as u16);
        self.receiver = Some(receiver);
        self.agree();
    }

    /// Applies the new value of a feature.
    pub(super) fn on_feature<P: EndpointProbe>(
        &mut self,
        now: Instant,
        (number, location): Changed,
        probe: &mut P,
    ) {
        self.agree();
        match (number, location) {
            (feature::CCID, Location::Here) if self.sender.is_some() => {
                self.begin_sender(now, probe);
                // RFC 4341 §4: a sender under CCID 2 needs Ack Vectors.
                if self.ccid(Location::Here) == Ccid::Two {
                    self.features.change(feature::SEND_ACK_VECTOR, Location::There, &[1]);
                }
            }
            (feature::CCID, Location::There) if self.receiver.is_some() => {
                self.begin_receiver();
                if self.config.counts_non_data(self.ccid(Location::There)) {
                    self.features.change(feature::SEND_NDP_COUNT, Location::There, &[1, 0]);
                }
            }
            (feature::ACK_RATIO, Location::There) => {
                let ratio = self.features.value(number, location) as u16;
                if let Some(receiver) = &mut self.receiver {
                    receiver.set_ack_ratio(ratio);
                }
            }
            _ => {}
        }
    }

    /// The timer of the current state expired.
    pub(super) fn repeat(&mut self, now: Instant) {
        match self.state {
            State::Listen => {
                self.owed.listen = true;
                self.listens_left -= 1;
                if self.listens_left > 0 {
                    self.timers.repeat_after(now, LISTEN_WAIT);
                }
                return;
            }
            State::Request => {
                self.owed.request = true;
                self.features.repeat();
            }
            State::PartOpen => self.owed.ack = true,
            State::CloseReq => self.owed.close_req = true,
            State::Closing => self.owed.close = true,
            State::Closed | State::Respond | State::Open | State::TimeWait => return,
        }
        self.timers.back_off(now, self.config.max_timeout);
    }

    /// A Listen was sent; the first one starts the timer.
    pub(super) fn on_listen_sent(&mut self, now: Instant) {
        if self.timers.wait == Duration::ZERO {
            self.listens_left = LISTENS_AGAIN;
            self.timers.repeat_after(now, LISTEN_WAIT);
        }
    }
}
