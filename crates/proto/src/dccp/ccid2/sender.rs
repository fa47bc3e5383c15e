//! HC-Sender of CCID 2 (RFC 4341 §5): a packet may leave while `pipe < cwnd`; acknowledgements,
//! losses, marks and timeouts change cwnd.

use super::ack_ratio::AckRatio;
use super::config::Parameters;
use super::flight::{Flight, PacketOutcome, Sent};
use super::growth::Growth;
use crate::congestion::{Ack, Congestion, CongestionControl, Machine, NewReno, Start};
use crate::dccp::ackvec;
use crate::dccp::ccid::{Acknowledgement, Arrival, Departure, Sender as HcSender};
use crate::dccp::data_dropped::{DropCode, dropped};
use crate::dccp::seqno::SeqNo;
use crate::gauge::{EndpointProbe, Gauge, Topic};
use crate::rate::Permit;
use crate::rtt::RttEstimator;
use crate::time::{Duration, Instant};

/// Clock granularity (RFC 6298 §2: G).
const TICK: Duration = Duration::from_millis(1);
/// RFC 3390 §1: target in bytes for the initial window of two to four packets.
const INITIAL_WINDOW_BYTES: u64 = 4380;
/// RFC 4341 §6.2.1: minimum time without data after which a half-connection is quiescent.
const QUIESCENCE: Duration = Duration::from_millis(200);

/// The sending half of CCID 2.
#[derive(Debug)]
pub struct Sender {
    parameters: Parameters,
    window: Machine,
    initial_window: u64,
    growth: Growth,
    flight: Flight,
    rtt: RttEstimator,
    acks: AckRatio,
    /// The newest packet sent when congestion was last detected: losses and marks up to it belong to
    /// the same congestion event (§5).
    reacted: Option<SeqNo>,
    /// When a data packet last left.
    last_sent: Option<Instant>,
    deadline: Option<Instant>,
    /// No growth before this instant: the receiver is slow (RFC 4340 §11.6).
    held_until: Instant,
    /// The other side's application no longer listens (RFC 4340 §11.7.2, Drop Code 1).
    unheard: bool,
    /// Data packets since the other side's acknowledgements were last acknowledged, and whether
    /// any arrived since.
    since_owed: u64,
    owed: bool,
    told: Told,
}

/// The values last reported to the gauges.
#[derive(Debug, Default)]
struct Told {
    cwnd: u64,
    ssthresh: Option<u64>,
    pipe: u64,
    ratio: u16,
    srtt: Option<Duration>,
    rto: Duration,
}

/// Outcome of an acknowledgement.
#[derive(Debug, Default)]
struct Harvest {
    /// Data packets newly acknowledged and not marked; if it matters, only those sent after congestion
    /// was last detected.
    clean: u64,
    /// The newest data packet newly acknowledged.
    newest: Option<Sent>,
    /// The newest data packet lost or marked.
    hurt: Option<SeqNo>,
    /// Data packets newly named by Data Dropped.
    dropped: u64,
    /// Those of them dropped for a full receive buffer.
    overflowed: u64,
}

impl Harvest {
    fn take(&mut self, news: PacketOutcome, reacted: Option<SeqNo>) {
        let (sent, marked, first) = match news {
            PacketOutcome::Received(sent) => (sent, false, true),
            PacketOutcome::Marked(sent) => (sent, true, true),
            PacketOutcome::MarkedLate(sent) => (sent, true, false),
        };
        // §5: packets without data do not affect the window.
        if !sent.data {
            return;
        }
        if first && self.newest.is_none_or(|newest| sent.seq > newest.seq) {
            self.newest = Some(sent);
        }
        if marked {
            self.hurt = self.hurt.max(Some(sent.seq));
        } else if reacted.is_none_or(|reacted| sent.seq > reacted) {
            self.clean += 1;
        }
    }
}

impl Sender {
    /// A sender in its initial state.
    #[must_use]
    pub fn new(parameters: &Parameters) -> Self {
        let parameters = parameters.clone();
        let initial_window = parameters.initial_window_packets.unwrap_or(4).max(1);
        let rtt = RttEstimator::new(parameters.min_rto, parameters.max_rto, TICK)
            .starting_with(parameters.initial_rto);
        Self {
            window: window(&parameters, initial_window),
            growth: growth(&parameters, initial_window),
            initial_window,
            flight: Flight::default(),
            rtt,
            acks: AckRatio::new(parameters.ack_ratio, parameters.ack_ratio_control),
            reacted: None,
            last_sent: None,
            deadline: None,
            held_until: Instant::ZERO,
            unheard: false,
            since_owed: 0,
            owed: false,
            told: Told::default(),
            parameters,
        }
    }

    /// Sets a round-trip time known before any data was sent, such as the handshake's.
    pub fn on_handshake_rtt(&mut self, rtt: Duration) {
        self.rtt.sample(rtt, 1);
    }

    /// Congestion window in packets (cwnd).
    #[must_use]
    pub fn window(&self) -> u64 {
        self.window.window()
    }

    /// Slow-start threshold in packets, if there is one (ssthresh).
    #[must_use]
    pub fn threshold(&self) -> Option<u64> {
        self.window.threshold()
    }

    /// Data packets in the network (pipe).
    #[must_use]
    pub const fn pipe(&self) -> u64 {
        self.flight.pipe()
    }

    /// The current timeout.
    #[must_use]
    pub const fn rto(&self) -> Duration {
        self.rtt.rto()
    }

    /// The first data packet: its size determines the initial window (RFC 3390 §1).
    fn begin(&mut self, bytes: u32) {
        if self.parameters.initial_window_packets.is_none() {
            let packets = INITIAL_WINDOW_BYTES / u64::from(bytes.max(1));
            self.initial_window = packets.clamp(2, 4);
            self.window = window(&self.parameters, self.initial_window);
            self.growth = growth(&self.parameters, self.initial_window);
        }
    }

    /// §5.1: data after an idle period longer than the timeout.
    fn wake(&mut self, now: Instant) {
        let Some(last) = self.last_sent else { return };
        let (silence, rto) = (now.saturating_since(last), self.rtt.rto());
        if self.flight.pipe() == 0 && silence > rto {
            let rule = self.parameters.idle;
            let window = &mut self.window;
            self.growth.on_idle(now, rule, (silence, rto), self.initial_window, window);
        }
    }

    fn read(&mut self, ack: &Acknowledgement<'_>) -> Harvest {
        let reacted = self.reacted.filter(|_| !self.parameters.grows_in_recovery);
        let mut harvest = Harvest::default();
        for run in ackvec::runs(ack.ack, ack.options) {
            self.flight.on_run(&run, |news| harvest.take(news, reacted));
        }
        for run in dropped(ack.ack, ack.options) {
            let (count, newest) = self.flight.on_dropped(run.newest, run.oldest);
            harvest.dropped += count;
            match run.code {
                // RFC 4340 §11.7.2: as if received.
                DropCode::PROTOCOL_CONSTRAINTS => {}
                DropCode::NOT_LISTENING => self.unheard |= count > 0,
                DropCode::RECEIVE_BUFFER => harvest.overflowed += count,
                // "MUST cause the relevant CCID to behave as if the relevant packets were ECN marked"
                _ => harvest.hurt = harvest.hurt.max(newest),
            }
        }
        harvest.hurt = harvest.hurt.max(self.flight.infer_losses());
        harvest
    }

    /// Handles a loss or mark; returns true if it begins a congestion event.
    fn on_hurt(&mut self, now: Instant, seq: SeqNo) -> bool {
        // §5: "part of a single congestion event when the second packet was sent before the loss or
        // mark of the first packet was detected"
        if self.reacted.is_some_and(|reacted| seq <= reacted) {
            return false;
        }
        self.reacted = self.flight.newest();
        // "cwnd is halved, then ssthresh is set to the new cwnd": the window is halved, not the flight.
        let flight = self.window.window();
        self.window.on_congestion(now, &Congestion::Loss { flight });
        self.growth.on_fall();
        true
    }

    /// Each newly acknowledged packet dropped for a full receive buffer reduces the window by one packet
    /// per round trip (RFC 4340 §11.7.2; RFC 4341 §5.2).
    fn on_overflow(&mut self, packets: u64) {
        if packets > 0 {
            self.window.lower(self.window.window().saturating_sub(packets));
            self.growth.on_fall();
        }
    }

    /// RFC 4341 §5.2: "MUST exit slow start whenever it receives a relevant Data Dropped or Slow
    /// Receiver option".
    fn end_slow_start(&mut self) {
        if let Machine::NewReno(reno) = &mut self.window {
            reno.end_slow_start();
        }
    }

    fn grow(&mut self, now: Instant, acked: u64) {
        if acked == 0 || now < self.held_until {
            return;
        }
        let (window, rtt, flight) = (&mut self.window, &self.rtt, self.flight.pipe() + acked);
        let at = (window.window(), window.threshold());
        self.growth.on_acked(acked, self.acks.ratio(), at, |acked| {
            window.on_ack(now, &Ack { acked, flight, window_limited: true }, rtt);
            window.window()
        });
    }

    fn measure(&mut self, now: Instant, ack: &Acknowledgement<'_>, newest: &Sent) {
        // The elapsed time applies to the packet with the Acknowledgement Number.
        let waited = ack.elapsed.filter(|_| newest.seq == ack.ack).unwrap_or_default();
        let rtt = now.saturating_since(newest.at).saturating_sub(waited);
        // §5: with several measurements per round trip the weights are adjusted.
        let samples = self.flight.pipe().div_ceil(u64::from(self.acks.ratio().max(1)));
        self.rtt.sample(ack.echo_rtt.unwrap_or(rtt), samples);
    }

    fn gauge<P: EndpointProbe>(&mut self, now: Instant, probe: &mut P) {
        if !probe.observes(Topic::Gauge) {
            return;
        }
        let is = Told {
            cwnd: self.window.window(),
            ssthresh: self.window.threshold(),
            pipe: self.flight.pipe(),
            ratio: self.acks.ratio(),
            srtt: self.rtt.srtt(),
            rto: self.rtt.rto(),
        };
        let was = std::mem::replace(&mut self.told, is);
        let is = &self.told;
        let mut note = |changed: bool, gauge: Gauge, value: Option<f64>| {
            if let Some(value) = value.filter(|_| changed) {
                probe.gauge(now, gauge, value);
            }
        };
        note(is.cwnd != was.cwnd, Gauge::CwndPackets, Some(is.cwnd as f64));
        let ssthresh = is.ssthresh.map(|packets| packets as f64);
        note(is.ssthresh != was.ssthresh, Gauge::SsthreshPackets, ssthresh);
        note(is.pipe != was.pipe, Gauge::Pipe, Some(is.pipe as f64));
        note(is.ratio != was.ratio, Gauge::AckRatio, Some(f64::from(is.ratio)));
        note(is.srtt != was.srtt, Gauge::Srtt, is.srtt.map(Duration::as_secs_f64));
        note(is.rto != was.rto, Gauge::Rto, Some(is.rto.as_secs_f64()));
    }
}

fn window(parameters: &Parameters, initial_window: u64) -> Machine {
    let threshold = parameters.initial_ssthresh_packets;
    let start = Start { quantum: 1, window: initial_window, threshold };
    Machine::NewReno(NewReno::new(&start).down_to_one())
}

fn growth(parameters: &Parameters, initial_window: u64) -> Growth {
    Growth::new(parameters.application_limited, parameters.slow_start, initial_window)
}

impl HcSender for Sender {
    fn permit(&mut self, _: Instant) -> Permit {
        // §5: "MAY send a data packet when pipe < cwnd but MUST NOT ... when pipe >= cwnd"
        if self.flight.pipe() < self.window.window() && !self.unheard {
            Permit::Now
        } else {
            Permit::Blocked
        }
    }

    fn on_sent<P: EndpointProbe>(&mut self, now: Instant, packet: &Departure, probe: &mut P) {
        if let Some(bytes) = packet.data_bytes {
            if self.last_sent.is_none() {
                self.begin(bytes);
            }
            self.wake(now);
            self.last_sent = Some(now);
            self.since_owed += 1;
        }
        self.flight.on_sent(packet.seq, now, packet.data_bytes.is_some());
        if packet.data_bytes.is_some() {
            let (pipe, rto) = (self.flight.pipe(), self.rtt.rto());
            self.growth.on_sent(now, pipe, self.initial_window, rto, &mut self.window);
            // RFC 6298 §5.1
            if self.deadline.is_none() {
                self.deadline = Some(now + rto);
            }
            self.gauge(now, probe);
        }
    }

    fn on_arrival(&mut self, now: Instant, packet: &Arrival<'_>) {
        if packet.options.has_slow_receiver() {
            // RFC 4340 §11.6: no increase for a round trip, whichever packet carries the option.
            self.held_until = now + self.rtt.srtt().unwrap_or(self.rtt.rto());
            self.end_slow_start();
        }
        let quiet = QUIESCENCE.max(self.rtt.srtt().unwrap_or_default() * 2);
        self.acks.on_arrival(now, packet, quiet);
    }

    fn owes_ack(&mut self) -> bool {
        // §6.2: "at least once per congestion window"
        let owes = self.owed && self.since_owed >= self.window.window();
        if owes {
            (self.owed, self.since_owed) = (false, 0);
        }
        owes
    }

    fn on_ack<P: EndpointProbe>(&mut self, now: Instant, ack: &Acknowledgement<'_>, probe: &mut P) {
        self.owed = self.owed || ackvec::runs(ack.ack, ack.options).next().is_some();
        let harvest = self.read(ack);
        if let Some(newest) = harvest.newest {
            self.measure(now, ack, &newest);
            // RFC 6298 §5.3
            self.deadline = Some(now + self.rtt.rto());
        }
        if self.flight.pipe() == 0 {
            // RFC 6298 §5.2
            self.deadline = None;
        }
        let always = self.parameters.grows_in_recovery;
        if always {
            self.grow(now, harvest.clean);
        }
        let hurt = harvest.hurt.is_some_and(|seq| self.on_hurt(now, seq));
        // RFC 4340 §11.7.1: both reductions apply, one after the other.
        self.on_overflow(harvest.overflowed);
        if harvest.dropped > 0 {
            self.end_slow_start();
        }
        if !hurt && harvest.overflowed == 0 && !always {
            self.grow(now, harvest.clean);
        }
        let cwnd = self.window.window();
        match (harvest.newest, self.flight.newest()) {
            (Some(acked), Some(sent)) => self.acks.on_acked(acked.seq, sent, cwnd),
            _ => self.acks.bound(cwnd),
        }
        self.gauge(now, probe);
    }

    fn deadline(&self) -> Option<Instant> {
        self.deadline
    }

    fn on_timeout<P: EndpointProbe>(&mut self, now: Instant, probe: &mut P) {
        if self.deadline.is_none_or(|deadline| now < deadline) {
            return;
        }
        self.deadline = None;
        // §5: "ssthresh is set to cwnd/2, then cwnd is set to one packet", and pipe to zero.
        let flight = self.window.window();
        let timeout = Congestion::Timeout { flight, again: false, recovering: false };
        self.window.on_congestion(now, &timeout);
        self.growth.on_fall();
        self.flight.clear();
        // RFC 6298 §5.5
        self.rtt.back_off();
        self.acks.bound(self.window.window());
        self.gauge(now, probe);
    }

    fn outstanding(&self) -> u64 {
        self.pipe()
    }

    fn footprint(&self) -> usize {
        self.flight.footprint() + self.acks.footprint()
    }

    fn ack_ratio(&self) -> Option<u16> {
        Some(self.acks.ratio())
    }

    fn packets_per_rtt(&self) -> u64 {
        // RFC 4340 §7.5.2: "the maximum number of packets it expects to send": slow start may double it
        // before the Sequence Window has followed.
        let window = self.window.window();
        let starts = self.window.threshold().is_none_or(|threshold| window < threshold);
        if starts { 2 * window } else { window }
    }

    fn rtt(&self) -> Option<Duration> {
        self.rtt.srtt()
    }

    fn ect(&self) -> bool {
        // RFC 4341 §7: unless the ECN Incapable feature, handled by the connection, forbids it.
        true
    }
}
