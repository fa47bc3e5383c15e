//! Opening: the user calls (RFC 9293 §3.10.1, §3.10.4, §3.10.5), LISTEN and SYN-SENT (§3.10.7.2, §3.10.7.3),
//! option negotiation (RFC 7323 §2.2, §3.2; RFC 2018 §2), and the initial window (RFC 6928 §2, RFC 5681 §3.1).

use super::rack::Rack;
use super::receive::Receiver;
use super::recovery::Recovery;
use super::report::Report;
use super::selective::Selective;
use super::{
    Config, Flags, LossRecovery, Negotiated, Reset, ResetTimestamp, Segment, State, TICK, Tcp,
    Timers, WindowRule,
};
use crate::congestion::{Build, Machine, Start};
use crate::endpoint::Event;
use crate::gauge::{EndpointProbe, RxError};
use crate::packet::Payload;
use crate::rng::Rng;
use crate::rtt::RttEstimator;
use crate::seq::Seq;
use crate::time::Instant;

/// RFC 9293 §3.7.1: the MSS of a peer that sends no MSS option.
const DEFAULT_MSS: u64 = 536;
/// The smallest MSS accepted; below it segments would be mostly headers.
const MIN_MSS: u64 = 48;
/// RFC 6928 §2 derives its byte limits from segments of 1460 bytes.
const NOMINAL_MSS: u64 = 1460;

impl Tcp {
    pub(super) fn own_mss(config: &Config) -> u64 {
        config.mss.as_bytes().clamp(MIN_MSS, 65_535)
    }

    /// Whether the SACK option is offered and used.
    fn wants_sack(&self) -> bool {
        match self.config.loss_recovery() {
            LossRecovery::Tahoe | LossRecovery::Reno | LossRecovery::Newreno => false,
            LossRecovery::Sack | LossRecovery::Rack => true,
        }
    }

    /// The initial window: RFC 6928 §2 equation 1, generalised from ten segments to any number.
    pub(super) fn first_window(config: &Config, mss: u64) -> u64 {
        let segments = u64::from(config.initial_window.max(1));
        (segments * mss).min((2 * mss).max(segments * NOMINAL_MSS))
    }

    /// Initial values for the controller of a connection with segments of `mss` bytes.
    fn start(config: &Config, mss: u64, syn_was_lost: bool) -> Start {
        Start {
            quantum: mss,
            // RFC 5681 §3.1: one segment after a lost SYN
            window: if syn_was_lost { mss } else { Self::first_window(config, mss) },
            threshold: config.initial_ssthresh.map(|segments| u64::from(segments) * mss),
        }
    }

    /// The controller of a connection with segments of `mss` bytes; `selective` once it is open and has
    /// selective acknowledgements.
    pub(super) fn new_controller(
        config: &Config,
        mss: u64,
        syn_was_lost: bool,
        selective: Option<(Instant, Rng)>,
    ) -> Machine {
        config.controller.build(Build {
            start: Self::start(config, mss, syn_was_lost),
            ns2_windows: config.window_rule == WindowRule::Ns2
                && config.controller.abilities().has_ns2_windows,
            hystart: config.hystart.unwrap_or(true),
            paced: config.is_paced(),
            selective,
        })
    }

    /// RFC 9293 §3.10.1 OPEN, active. A listener is open already.
    pub(super) fn open(&mut self, now: Instant) {
        if self.state == State::Closed && self.tx.iss == Seq::default() {
            self.begin(now);
            self.state = State::SynSent;
        }
    }

    /// RFC 9293 §3.4.1: ISN = M + F, M a clock of 4 µs, F specific to this connection.
    fn begin(&mut self, now: Instant) {
        let clock = (now.as_nanos() / 4_000) as u32;
        self.tx.begin(self.isn_offset.wrapping_add(clock));
    }

    /// RFC 9293 §3.10.4 CLOSE
    pub(super) fn close(&mut self) {
        match self.state {
            State::Listen => self.finish(Event::Closed),
            State::SynSent if self.tx.stream.written() == 0 => self.finish(Event::Closed),
            // The FIN waits until the connection is open.
            State::SynSent | State::SynReceived => self.tx.fin = true,
            State::Established => (self.tx.fin, self.state) = (true, State::FinWait1),
            State::CloseWait => (self.tx.fin, self.state) = (true, State::LastAck),
            _ => {}
        }
    }

    /// RFC 9293 §3.10.5 ABORT
    pub(super) fn abort(&mut self) {
        match self.state {
            State::Closed => return,
            State::TimeWait => {
                (self.state, self.timers) = (State::Closed, Timers::default());
                return;
            }
            State::SynReceived
            | State::Established
            | State::FinWait1
            | State::FinWait2
            | State::CloseWait => {
                let (seq, timestamp) = (self.tx.max.wire(), ResetTimestamp::Own);
                self.reset = Some(Reset { seq, ack: None, timestamp });
            }
            State::Listen | State::SynSent | State::Closing | State::LastAck => {}
        }
        self.finish(Event::Reset);
    }

    /// RFC 9293 §3.10.7.2
    pub(super) fn on_listen<P: EndpointProbe>(
        &mut self,
        now: Instant,
        segment: &Segment,
        probe: &mut P,
    ) {
        if segment.flags.contains(Flags::RST) {
            return;
        }
        if segment.flags.contains(Flags::ACK) {
            return self.refuse(segment);
        }
        if !segment.flags.contains(Flags::SYN) {
            return probe.rx_error(now, RxError::Unexpected);
        }
        self.begin(now);
        self.agree(now, segment);
        self.state = State::SynReceived;
    }

    /// RFC 9293 §3.10.7.3
    pub(super) fn on_syn_sent<P: EndpointProbe>(
        &mut self,
        now: Instant,
        segment: &Segment,
        probe: &mut P,
    ) {
        let (flags, ack) = (segment.flags, self.tx.iss.near(segment.ack));
        if flags.contains(Flags::ACK) && (ack <= self.tx.iss || ack > self.tx.max) {
            probe.rx_error(now, RxError::BadAck);
            return self.refuse(segment);
        }
        if flags.contains(Flags::RST) {
            if flags.contains(Flags::ACK) {
                self.finish(Event::Reset);
            }
            return;
        }
        if !flags.contains(Flags::SYN) {
            return probe.rx_error(now, RxError::Unexpected);
        }
        self.agree(now, segment);
        if flags.contains(Flags::ACK) {
            self.establish(now, segment, ack);
            self.rx.ack_now = true;
        } else {
            // Simultaneous open: our SYN is sent again with an ACK.
            self.state = State::SynReceived;
            self.tx.nxt = self.tx.una;
            self.recovery.timed = None;
        }
    }

    /// Takes the peer's number space and options from its SYN.
    fn agree(&mut self, now: Instant, syn: &Segment) {
        self.rx.begin(syn.seq);
        // RFC 7323 §3.2 and §2.2: used if both sides offer it.
        self.negotiated = Negotiated {
            timestamps: self.config.timestamps && syn.timestamps.is_some(),
            scaling: self.config.window_scaling && syn.window_scale.is_some(),
            // RFC 2018 §2
            sack: self.wants_sack() && syn.sack_permitted,
            ecn: self.agrees_to_ecn(syn),
        };
        self.rx.report = self.negotiated.sack.then(Box::<Report>::default);
        if let Some((tsval, _)) = syn.timestamps.filter(|_| self.negotiated.timestamps) {
            self.rx.first_timestamp(now, tsval);
        }
        if let Some(shift) = syn.window_scale.filter(|_| self.negotiated.scaling) {
            // RFC 7323 §2.3: a shift above 14 is taken as 14.
            self.tx.shift = shift.min(14);
            self.rx.shift = self.rx.wanted_shift();
        }
        // RFC 9293 §3.7.1
        let peer = syn.mss.map_or(DEFAULT_MSS, u64::from).max(MIN_MSS);
        let options = if self.negotiated.timestamps { 12 } else { 0 };
        let most = Self::own_mss(&self.config).min(peer).min(self.tx.path_mss);
        self.tx.mss = most.saturating_sub(options).max(1);
        self.cc = Self::new_controller(&self.config, self.tx.mss, false, None);
    }

    /// Our SYN is acknowledged: data may flow.
    pub(super) fn establish(&mut self, now: Instant, segment: &Segment, ack: Seq) {
        self.tx.una = ack;
        self.tx.nxt = self.tx.nxt.max(ack);
        self.timers.rto = None;
        let resent = self.recovery.take_resent(ack);
        self.measure(now, ack, segment.timestamps.map(|(_, echo)| echo), (1, resent));
        let lost = self.recovery.timeouts;
        if lost > 0 {
            // RFC 6298 §5.7
            self.rtt.syn_was_lost();
        }
        // RFC 6928 §2: the first retransmission may be spurious, since the timeout is only 1 s.
        let selective = self.negotiated.sack.then(|| (now, Rng::new(self.seed, "bbr")));
        self.cc = Self::new_controller(&self.config, self.tx.mss, lost > 1, selective);
        self.recovery = Recovery::from(self.tx.iss);
        let rack = self.config.loss_recovery() == LossRecovery::Rack;
        let rack = rack.then(|| Rack::new(now, self.rtt.latest()));
        self.told.all |= rack.is_some() && self.negotiated.sack;
        let delivery = self.wants_delivery();
        self.selective = self.negotiated.sack.then(|| Box::new(Selective::new(rack, delivery)));
        self.extended = self.negotiated.sack || self.negotiated.ecn;
        // RFC 7323 §2.2: the window of a SYN is not scaled.
        let syn = segment.flags.contains(Flags::SYN);
        self.tx.window = u64::from(segment.window) << if syn { 0 } else { self.tx.shift };
        self.tx.largest_window = self.tx.window;
        (self.tx.wl1, self.tx.wl2) = (self.rx.irs.near(segment.seq), ack);
        // A deferred Close takes effect.
        self.state = if self.tx.fin { State::FinWait1 } else { State::Established };
        self.news.add(Event::Connected);
    }

    /// RFC 9293 §3.10.7.4: effect of a reset or SYN in a SYN-RECEIVED that came from LISTEN.
    pub(super) fn listen_again(&mut self) {
        let (config, mss) = (&self.config, Self::own_mss(&self.config));
        self.rx = Receiver::new(config.receive_buffer.as_bytes(), mss);
        self.rtt = RttEstimator::new(config.min_rto, config.max_rto, TICK);
        (self.timers, self.recovery) = (Timers::default(), Recovery::default());
        (self.tx.mss, self.tx.shift) = (mss, 0);
        self.state = State::Listen;
    }

    /// Segments that belong to no open connection: resets and SYNs.
    #[cold]
    pub(super) fn next_without_connection(&mut self, now: Instant) -> Option<Segment> {
        if let Some(Reset { seq, ack, timestamp }) = self.reset.take() {
            let flags = if ack.is_some() { Flags::RST | Flags::ACK } else { Flags::RST };
            let timestamps = match timestamp {
                ResetTimestamp::Echo(tsval) => tsval.map(|tsval| (0, tsval)),
                ResetTimestamp::Own => {
                    self.negotiated.timestamps.then(|| (self.clock(now), self.rx.echo()))
                }
            };
            let ack = ack.unwrap_or(0);
            return Some(Segment { seq, ack, flags, timestamps, ..Segment::default() });
        }
        let opening = matches!(self.state, State::SynSent | State::SynReceived);
        (opening && self.tx.nxt == self.tx.iss).then(|| self.syn(now))
    }

    /// The SYN, or the SYN with an ACK.
    fn syn(&mut self, now: Instant) -> Segment {
        let answering = self.state == State::SynReceived;
        self.tx.nxt = self.tx.iss + 1;
        self.tx.max = self.tx.nxt;
        self.timers.rto = Some(now + self.rtt.rto());
        if self.recovery.timeouts > 0 {
            self.recovery.on_old_data(self.tx.nxt, now);
        } else if self.recovery.timed.is_none() {
            self.recovery.timed = Some((self.tx.nxt, now));
        }
        self.rx.ack_now = false;
        let flags = if answering { Flags::SYN | Flags::ACK } else { Flags::SYN };
        let flags = flags | self.ecn_on_syn();
        let scaling = if answering { self.negotiated.scaling } else { self.config.window_scaling };
        let timing = if answering { self.negotiated.timestamps } else { self.config.timestamps };
        let sack = if answering { self.negotiated.sack } else { self.wants_sack() };
        Segment {
            seq: self.tx.iss.wire(),
            ack: if answering { self.rx.nxt.wire() } else { 0 },
            window: self.rx.first_window(),
            flags,
            mss: Some(Self::own_mss(&self.config) as u16),
            window_scale: scaling.then(|| self.rx.wanted_shift()),
            sack_permitted: sack,
            sack: None,
            timestamps: timing.then(|| (self.clock(now), self.rx.echo())),
            payload: Payload::default(),
        }
    }
}
