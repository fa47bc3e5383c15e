//! One end of an RTP session beside its source and sink: RTCP, and with a media controller feedback in both
//! directions and the pacer. Flows of one session share the latter ([`SharedControl`]).

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use talkspurt_proto::media::{
    self, Bytes, Clusters, Decision, FeedbackFormat, FeedbackInfo, FlowStateExchange,
    MediaController, Pacer, ReceiverReport,
};
use talkspurt_proto::packet::Ecn;
use talkspurt_proto::probe::{Note, Probe, Stamped, Topic};
use talkspurt_proto::rtcp::congestion::CongestionControl;
use talkspurt_proto::rtcp::{
    Compound, Message, NtpTime, PacketReport, ReceivedPackets, ReportBlock, SentPackets,
    packet_report,
};
use talkspurt_proto::time::{Duration, Instant, earlier};
use talkspurt_proto::units::Rate;
use talkspurt_proto::{rtcp, rtp};

/// RTCP of one end of a flow, and the control of its media.
#[derive(Debug)]
pub(super) struct Session {
    pub(super) rtcp: rtcp::Session,
    pub(super) control: Option<Member>,
    /// Requests for the repair of what this end sends, if it repairs.
    pub(super) asked: Option<Asked>,
}

/// Requests that were not answered yet.
#[derive(Clone, Debug, Default)]
pub(super) struct Asked {
    /// Sequence numbers.
    pub(super) lost: Vec<u16>,
    pub(super) key: bool,
    /// Number of the last Full Intra Request, which is repeated until a key frame comes (RFC 5104 §3.5.1.1).
    fir: Option<u8>,
}

/// What one report can ask for at most, as many as a receiver of libwebrtc's asks for.
const MOST_ASKED: usize = 1000;
/// Round-trip time before any is known, as in libwebrtc.
const UNKNOWN_RTT: Duration = Duration::from_millis(100);

impl Session {
    /// The control of a session, if there is one, with this flow's number in it.
    pub(super) fn control_of(session: &Option<Box<Self>>) -> Option<Controlled<'_>> {
        session.as_ref()?.control.as_ref().map(Member::lock)
    }

    /// The last round-trip time.
    pub(super) fn rtt(&self) -> Duration {
        let control = self.control.as_ref().map(Member::lock);
        let (of_control, waits) =
            control.map_or((None, false), |it| (it.control.rtt, it.control.is_numbered()));
        // That of transport-wide feedback has the time for which the receiver held it back.
        let best =
            if waits { self.rtcp.rtt().or(of_control) } else { of_control.or(self.rtcp.rtt()) };
        best.unwrap_or(UNKNOWN_RTT)
    }

    /// Takes in the requests of the other side (RFC 4585 §6.2.1 and §6.3.1, RFC 5104 §4.3.1).
    pub(super) fn on_requests(&mut self, compound: &Compound) {
        let is_known = self.rtcp.is_peer(compound.ssrc);
        let (own, Some(asked)) = (self.rtcp.ssrc(), self.asked.as_mut().filter(|_| is_known))
        else {
            return;
        };
        for feedback in &compound.feedback {
            match &feedback.message {
                Message::Nack { media, lost } if *media == own => {
                    let room = MOST_ASKED.saturating_sub(asked.lost.len());
                    asked.lost.extend(lost.iter().flat_map(|it| it.sequences()).take(room));
                }
                Message::PictureLoss { media } => asked.key |= *media == own,
                Message::FullIntra(requests) => {
                    for request in requests.iter().filter(|request| request.ssrc == own) {
                        asked.key |= asked.fir.replace(request.sequence) != Some(request.sequence);
                    }
                }
                _ => {}
            }
        }
    }

    /// True if there are requests to answer.
    pub(super) fn is_asked(&self) -> bool {
        self.asked.as_ref().is_some_and(|asked| asked.key || !asked.lost.is_empty())
    }

    /// The requests to answer.
    pub(super) fn take_asked(&mut self) -> Option<Asked> {
        let asked = self.asked.as_mut().filter(|asked| asked.key || !asked.lost.is_empty())?;
        let fir = asked.fir;
        Some(std::mem::replace(asked, Asked { fir, ..Asked::default() }))
    }
}

/// The control of one end of a session, which several flows can share.
#[derive(Clone, Debug)]
pub struct SharedControl(Arc<Mutex<Control>>);

impl SharedControl {
    /// The control of a session over this transport.
    #[must_use]
    pub fn new(config: &media::Config, lower_layers: u32) -> Self {
        Self(Arc::new(Mutex::new(Control::new(config, lower_layers))))
    }

    /// Couples the session with others that have the same exchange (RFC 8699).
    pub fn couple(&self, exchange: &SharedExchange, priority: f64, max: Rate) {
        let number = exchange.lock().join(priority, max.as_bps() as f64);
        let coupling = Coupling { exchange: exchange.clone(), number, rate: Rate::ZERO };
        self.lock().coupling = Some(coupling);
    }

    fn lock(&self) -> MutexGuard<'_, Control> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a flow.
    pub(super) fn join(&self, takes: Takes) -> Member {
        let member = Member { shared: self.clone(), number: 0 };
        let number = member.lock().control.join(takes);
        Member { number, ..member }
    }
}

/// The flow state exchange of sessions that one node sends.
#[derive(Clone, Debug, Default)]
pub struct SharedExchange(Arc<Mutex<FlowStateExchange>>);

impl SharedExchange {
    fn lock(&self) -> MutexGuard<'_, FlowStateExchange> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A session's part in an exchange.
#[derive(Debug)]
struct Coupling {
    exchange: SharedExchange,
    number: usize,
    /// The last rate of the controller that the exchange knows, or gave.
    rate: Rate,
}

impl Coupling {
    /// The controller's rate and the exchange's become one.
    fn meet(&mut self, local: Instant, controller: &mut dyn MediaController) {
        let Some(own) = controller.coupled_rate() else { return };
        let mut exchange = self.exchange.lock();
        if own != self.rate {
            exchange.update(local, self.number, own.as_bps() as f64);
        }
        if let Some(given) = exchange.rate(self.number) {
            controller.set_coupled_rate(Rate::from_bps(given as u64));
        }
        self.rate = controller.coupled_rate().unwrap_or(own);
    }

    fn on_sent(&self, local: Instant, controller: &dyn MediaController) {
        let rate = controller.coupled_rate().unwrap_or(Rate::ZERO);
        self.exchange.lock().on_sent(local, self.number, rate.as_bps() as f64);
    }
}

/// A flow's part in the control of its session.
#[derive(Debug)]
pub(super) struct Member {
    shared: SharedControl,
    number: usize,
}

impl Member {
    /// The control, while the peer of one flow has its turn.
    pub(super) fn lock(&self) -> Controlled<'_> {
        Controlled { control: self.shared.lock(), number: self.number }
    }
}

pub(super) struct Controlled<'a> {
    pub(super) control: MutexGuard<'a, Control>,
    pub(super) number: usize,
}

/// What a flow takes of its session's target rate.
#[derive(Clone, Copy, Debug)]
pub(super) struct Takes {
    /// No more than this, in RTP packets; `None` for what the others leave.
    pub(super) most: Option<Rate>,
    /// Its packets do not wait for the pacer, as those of audio in libwebrtc.
    pub(super) goes_first: bool,
    /// Its part of what the others leave is to theirs as these.
    pub(super) priority: f64,
    /// It can use no more than this, in RTP packets.
    pub(super) useful: Rate,
    /// It needs at least this, in IP packets.
    pub(super) least: Rate,
}

/// A flow of the session.
#[derive(Debug)]
struct Stream {
    takes: Takes,
    /// The source does not know the latest target.
    is_news: bool,
    /// Bytes in its queue.
    waiting: u64,
    last_sent: Option<Instant>,
    /// Mean bytes of its packets, as sources and as the controller count them.
    sizes: [f64; 2],
}

impl Stream {
    /// Bytes that the controller counts for each byte of RTP.
    fn counted(&self) -> f64 {
        self.sizes[1] / self.sizes[0]
    }
}

/// Feedback about the media of the other side at most this often and at least that often, as deployed; a
/// twentieth of the rate in between (libwebrtc: RemoteEstimatorProxy).
const DEPLOYED: [Duration; 2] = [Duration::from_millis(50), Duration::from_millis(250)];
const DEPLOYED_SHARE: u64 = 20;
/// Longest feedback packet, which fits any path's MTU (RFC 8888 §3.1).
pub(super) const LONGEST_FEEDBACK: usize = 1100;
/// With less room, feedback waits for more of it.
const SHORTEST_FEEDBACK: usize = 100;
/// A flow that sent nothing for this long leaves its share to the others.
const PAUSE: Duration = Duration::from_secs(1);
/// What goes first is charged to the pacer up to this long.
const MOST_DEBT: Duration = Duration::from_millis(500);
/// Targets that differ by less than this share are no news to sources.
const NEWS: u64 = 200;
/// Padding that leaves at once (libwebrtc: kTargetPaddingDuration).
const PADDING: Duration = Duration::from_millis(5);

/// The control of one end's media, and feedback about that of the other end.
#[derive(Debug)]
pub(super) struct Control {
    controller: Box<dyn MediaController>,
    coupling: Option<Coupling>,
    bytes: Bytes,
    pub(super) ecn: Ecn,
    /// Bytes of transport and IP header below an RTP packet.
    lower_layers: u32,
    format: FeedbackFormat,
    is_started: bool,
    decision: Decision,
    /// The target that sources know or are about to.
    told: Rate,
    streams: Vec<Stream>,
    /// Bytes in all queues.
    waiting: u64,
    /// The flow whose turn it is, if several wait for the pacer.
    turn: usize,
    pacer: Pacer,
    clusters: Clusters,
    /// Paces padding.
    filler: Pacer,
    /// Highest sequence number and losses of each stream in the last receiver report.
    heard: Vec<(u32, u32, i32)>,
    sent: SentPackets,
    received: ReceivedPackets,
    received_bytes: u64,
    /// SSRC of the packet that arrived last.
    reported_on: u32,
    /// ECN field of the packet that arrived last.
    arrived_ecn: Ecn,
    interval: Option<Duration>,
    /// Time between two feedback packets.
    spacing: Duration,
    /// The last round-trip time.
    rtt: Option<Duration>,
    /// The last feedback that was sent, and when the next is due.
    reported: Instant,
    due: Option<Instant>,
}

impl Control {
    fn new(config: &media::Config, lower_layers: u32) -> Self {
        let controller = config.build();
        let decision = controller.decision();
        Self {
            bytes: config.bytes(),
            ecn: config.ecn(),
            lower_layers,
            streams: Vec::new(),
            pacer: Pacer::new(decision.pacing, config.burst()),
            clusters: Clusters::default(),
            filler: Pacer::new(Rate::ZERO, (Duration::ZERO, false)),
            heard: Vec::new(),
            format: config.feedback(),
            is_started: false,
            told: decision.target,
            decision,
            waiting: 0,
            turn: 0,
            spacing: config.feedback_interval().unwrap_or(DEPLOYED[0]),
            controller,
            coupling: None,
            sent: SentPackets::default(),
            received: ReceivedPackets::default(),
            received_bytes: 0,
            reported_on: 0,
            arrived_ecn: Ecn::NotEct,
            interval: config.feedback_interval(),
            reported: Instant::ZERO,
            due: None,
            rtt: None,
        }
    }

    /// When feedback or the controller is due.
    pub(super) fn next(&self) -> Option<Instant> {
        earlier(self.due, self.controller.deadline())
    }

    fn join(&mut self, takes: Takes) -> usize {
        let (waiting, last_sent) = (0, None);
        self.streams.push(Stream { takes, is_news: true, waiting, last_sent, sizes: [1.0; 2] });
        self.streams.iter_mut().for_each(|stream| stream.is_news = true);
        let least = self.streams.iter().map(|stream| stream.takes.least.as_bps()).sum();
        self.controller.on_sources(Rate::from_bps(least));
        self.decide(Instant::ZERO);
        self.streams.len() - 1
    }

    /// When the next packet of a flow may leave; in the past if it may now.
    pub(super) fn opens(&self, number: usize) -> Instant {
        if self.streams[number].takes.goes_first {
            return Instant::ZERO;
        }
        // Of several that wait, the next in turn is a nanosecond ahead.
        let is_behind = number != self.turn && self.streams[self.turn].waiting > 0;
        let next = self.clusters.due().unwrap_or_else(|| self.pacer.next());
        next + Duration::from_nanos(u64::from(is_behind))
    }

    /// When a flow that can send padding may do so, if it should.
    pub(super) fn fills(&self) -> Option<Instant> {
        let pads = self.decision.padding > Rate::ZERO;
        self.clusters.due().or_else(|| pads.then(|| self.pacer.paid().max(self.filler.next())))
    }

    /// True if a probe is due of which nothing has left.
    pub(super) fn begins_probe(&self, local: Instant) -> bool {
        self.clusters.due().is_some() && self.clusters.begins(local)
    }

    /// Bytes of padding that should leave now.
    pub(super) fn padding(&self, local: Instant) -> Option<usize> {
        self.fills().filter(|at| self.waiting == 0 && *at <= local)?;
        let bytes = match self.clusters.due() {
            Some(_) => self.clusters.missing(local),
            None => {
                let nanos =
                    u128::from(self.decision.padding.as_bps()) * u128::from(PADDING.as_nanos());
                (nanos / 8_000_000_000) as u64
            }
        };
        usize::try_from(bytes).ok().filter(|bytes| *bytes > 0)
    }

    /// A packet of this size is there to be sent.
    pub(super) fn on_packet_queued(&mut self, local: Instant, bytes: usize) {
        self.pacer.on_packet(local, self.waiting > 0);
        self.clusters.on_packet(bytes as u64);
    }

    /// No flow has more packets for the cluster.
    pub(super) fn end_burst(&mut self, local: Instant) {
        if self.waiting == 0 {
            self.clusters.end_burst(local);
        }
    }

    /// Share of pictures that sources should skip.
    pub(super) const fn skip(&self) -> f64 {
        self.decision.skip
    }

    /// True if each packet has a transport-wide sequence number.
    pub(super) fn is_numbered(&self) -> bool {
        self.format == FeedbackFormat::TransportWide
    }

    /// Packets may leave.
    pub(super) fn start(&mut self, local: Instant) {
        if !std::mem::replace(&mut self.is_started, true) {
            self.controller.on_start(local);
            self.decide(local);
        }
    }

    /// True if the controller has ended the session.
    pub(super) const fn is_stopped(&self) -> bool {
        self.decision.stop.is_some()
    }

    /// How long what waits takes to leave.
    pub(super) fn backlog(&self) -> Duration {
        self.decision.pacing.time_for(self.waiting).unwrap_or(Duration::MAX)
    }

    /// Runs the controller's timer.
    pub(super) fn wake(&mut self, local: Instant) {
        while self.controller.deadline().is_some_and(|at| at <= local) {
            self.controller.on_timeout(local);
            self.decide(local);
        }
    }

    fn decide(&mut self, local: Instant) {
        while let Some(cluster) = self.controller.take_cluster() {
            self.clusters.add(local, cluster);
        }
        if let Some(coupling) = &mut self.coupling {
            coupling.meet(local, &mut *self.controller);
        }
        let decision = self.controller.decision();
        if decision != self.decision {
            self.pacer.set_rate(local, decision.pacing);
            self.filler.set_rate(local, decision.padding);
            self.decision = decision;
            let [target, told] = [decision.target, self.told].map(Rate::as_bps);
            if target.abs_diff(told) > told / NEWS {
                self.tell();
            }
        }
    }

    /// All sources shall know the target.
    fn tell(&mut self) {
        self.told = self.decision.target;
        self.streams.iter_mut().for_each(|stream| stream.is_news = true);
    }

    /// A packet arrived, directly in UDP or not.
    pub(super) fn on_packet(&mut self, in_udp: bool, ecn: Ecn) {
        // Of other transports it is the transport's own.
        self.arrived_ecn = if in_udp { ecn } else { Ecn::NotEct };
    }

    /// A media packet leaves, or padding.
    pub(super) fn on_sent(
        &mut self,
        local: Instant,
        number: usize,
        packet: &mut rtp::Packet,
        is_padding: bool,
    ) {
        let payload = packet.payload.len() as u32 + u32::from(packet.padding);
        let (mut ssrc, mut sequence) = (packet.ssrc, packet.sequence);
        if self.is_numbered() {
            (ssrc, sequence) = (0, self.sent.next_number() as u16);
            packet.transport = Some(sequence);
        }
        let media = packet.wire_bytes() as u32;
        let counted = match self.bytes {
            Bytes::Ip => media + self.lower_layers,
            Bytes::Payload => payload,
        };
        // Sources do not know of the extension.
        let of_source = media - packet.transport.map_or(0, |_| rtp::TRANSPORT_BYTES as u32);
        let sizes = &mut self.streams[number].sizes;
        let is_first = sizes[1] <= 1.0 && !is_padding;
        for (mean, bytes) in sizes.iter_mut().zip([of_source, counted]).filter(|_| !is_padding) {
            let bytes = f64::from(bytes.max(1));
            *mean = if is_first { bytes } else { *mean + (bytes - *mean) / 16.0 };
        }
        let probe = self.clusters.current(local);
        let sequence = self.sent.on_sent(local, ssrc, sequence, counted, probe);
        self.pacer.on_sent(local, counted.into());
        if self.decision.padding > Rate::ZERO {
            self.filler.on_sent(local, counted.into());
            self.filler.forgive(local, MOST_DEBT);
        }
        if probe.is_some() {
            self.clusters.on_sent(local, counted.into());
            self.pacer.forgive(local, MOST_DEBT);
        }
        let stream = &mut self.streams[number];
        let paused = !is_padding && stream.last_sent.is_none_or(|at| local > at + PAUSE);
        if !is_padding {
            stream.last_sent = Some(local);
        }
        if stream.takes.goes_first {
            self.pacer.forgive(local, MOST_DEBT);
        } else {
            let count = self.streams.len();
            let waits = |place: &usize| self.streams[*place].waiting > 0;
            let next = (1..=count).map(|step| (number + step) % count).find(waits);
            self.turn = next.unwrap_or(number);
        }
        // The first target was computed without the size of packets.
        if is_first || paused && self.streams.len() > 1 {
            self.tell();
        }
        if let Some(coupling) = &self.coupling {
            coupling.on_sent(local, &*self.controller);
        }
        // Others of the exchange may have changed the rate.
        let has_news = self.controller.on_sent(local, &media::Sent { sequence, bytes: counted });
        if has_news || self.coupling.is_some() {
            self.decide(local);
        }
    }

    /// The length of a flow's queue changed.
    pub(super) fn on_queue(&mut self, local: Instant, number: usize, bytes: u64) {
        let before = std::mem::replace(&mut self.streams[number].waiting, bytes);
        if before != bytes {
            self.waiting = self.waiting + bytes - before;
            self.controller.on_queue(local, self.waiting);
            self.decide(local);
        }
    }

    /// True if there is a target that the flow's source does not know.
    pub(super) fn has_news(&self, number: usize) -> bool {
        self.streams[number].is_news
    }

    /// The rate at which a flow's source should encode, with media headers and without those of the layers
    /// below, if it changed.
    pub(super) fn take_target(&mut self, local: Instant, number: usize) -> Option<Rate> {
        if !std::mem::take(&mut self.streams[number].is_news) {
            return None;
        }
        let is_active = |(place, stream): &(usize, &Stream)| {
            *place == number || stream.last_sent.is_some_and(|at| local <= at + PAUSE)
        };
        let mut rest = self.told.as_bps() as f64;
        // Those that go first, then others with a limit, then all others in equal parts.
        for first in [true, false] {
            for (place, stream) in self.streams.iter().enumerate().filter(is_active) {
                let takes = stream.takes;
                let Some(most) = takes.most.filter(|_| takes.goes_first == first) else { continue };
                let given = (most.as_bps() as f64 * stream.counted()).min(rest);
                if place == number {
                    return Some(Rate::from_bps((given / stream.counted()) as u64));
                }
                rest -= given;
            }
        }
        let is_elastic = |it: &(usize, &Stream)| it.1.takes.most.is_none() && is_active(it);
        let elastic = self.streams.iter().enumerate().filter(is_elastic).map(|(place, _)| place);
        let own = &self.streams[number];
        let share = self.share(number, rest, elastic.collect()) / own.counted();
        Some(Rate::from_bps(share as u64))
    }

    /// A flow's part of a rate that these share by priority. What one cannot use is for the others.
    fn share(&self, number: usize, mut rest: f64, mut open: Vec<usize>) -> f64 {
        let useful = |place: usize| {
            let stream = &self.streams[place];
            stream.takes.useful.as_bps() as f64 * stream.counted()
        };
        loop {
            let priority = |place: usize| self.streams[place].takes.priority;
            let sum: f64 = open.iter().map(|place| priority(*place)).sum();
            let share = |place: usize| rest * (priority(place) / sum);
            let (full, others): (Vec<_>, Vec<_>) =
                open.iter().partition(|place| share(**place) > useful(**place));
            if full.is_empty() || others.is_empty() {
                return share(number);
            } else if full.contains(&number) {
                return useful(number);
            }
            rest -= full.iter().map(|place| useful(*place)).sum::<f64>();
            open = others;
        }
    }

    /// A media packet of the other side arrived.
    pub(super) fn on_media(&mut self, local: Instant, packet: &rtp::Packet) {
        let (ssrc, sequence) = match (self.format, packet.transport) {
            (FeedbackFormat::TransportWide, Some(number)) => (0, number),
            (FeedbackFormat::TransportWide, None) => return,
            (FeedbackFormat::Rfc8888, _) => (packet.ssrc, packet.sequence),
        };
        self.received.on_packet(local, ssrc, sequence, self.arrived_ecn);
        self.reported_on = packet.ssrc;
        self.received_bytes += packet.payload.len() as u64;
        if self.due.is_none() {
            self.due = Some(local.max(self.reported + self.spacing));
        }
    }

    /// The interval after a feedback packet now.
    fn next_spacing(&self, local: Instant) -> Duration {
        self.interval.unwrap_or_else(|| {
            // A feedback packet of 68 bytes, as libwebrtc assumes, at a twentieth of the rate of arrivals.
            let since = local.saturating_since(self.reported).as_nanos();
            let nanos = u128::from(since) * u128::from(68 * DEPLOYED_SHARE)
                / u128::from(self.received_bytes.max(1));
            let [least, most] = DEPLOYED;
            Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX)).clamp(least, most)
        })
    }

    /// The feedback that is due, if the transport has room for it.
    pub(super) fn feedback(
        &mut self,
        local: Instant,
        room: usize,
        rtcp: &mut rtcp::Session,
    ) -> Option<Compound> {
        self.due.filter(|at| *at <= local)?;
        let room = room.min(LONGEST_FEEDBACK);
        if room < SHORTEST_FEEDBACK {
            self.due = Some(local + DEPLOYED[0]);
            return None;
        }
        self.due = None;
        if self.received_bytes > 0 {
            self.spacing = self.next_spacing(local);
            (self.reported, self.received_bytes) = (local, 0);
        }
        let report = if self.is_numbered() {
            let report = self.received.transport_wide(room)?;
            Message::TransportWide { media: self.reported_on, report }
        } else {
            let streams = self.received.report(local, room);
            if streams.is_empty() {
                return None;
            }
            let timestamp = packet_report::timestamp(NtpTime::from(local));
            Message::CongestionControl(CongestionControl { streams, timestamp })
        };
        // The rest follows at once.
        self.due = Some(local);
        Some(rtcp.feedback(vec![report]))
    }

    /// RTCP of the other side.
    pub(super) fn on_rtcp<P: Probe>(
        &mut self,
        local: Instant,
        compound: &Compound,
        probe: &mut Stamped<'_, P>,
    ) {
        self.controller.on_contact(local);
        for feedback in &compound.feedback {
            match (&feedback.message, self.is_numbered()) {
                (Message::CongestionControl(report), false) => {
                    let reports = self.sent.on_report(local, report);
                    self.on_feedback(local, reports, probe);
                }
                (Message::TransportWide { report, .. }, true) => {
                    let reports = self.sent.on_transport_wide(local, report);
                    self.on_feedback(local, reports, probe);
                }
                (Message::Application { data, .. }, _) => {
                    if let Some(limit) = rtcp::feedback::remb(data) {
                        self.controller.on_receiver_limit(local, limit);
                    }
                }
                _ => {}
            }
        }
    }

    /// Receiver reports of the other side, and the round-trip time if they tell of it.
    pub(super) fn on_receiver_reports(
        &mut self,
        local: Instant,
        blocks: &[ReportBlock],
        rtt: Option<Duration>,
    ) {
        let (mut lost, mut expected) = (0, 0);
        for block in blocks {
            let now = (block.ssrc, block.highest_sequence, block.cumulative_lost);
            let has_room = self.heard.len() < packet_report::MAX_STREAMS;
            match self.heard.iter_mut().find(|(ssrc, ..)| *ssrc == block.ssrc) {
                Some(before) => {
                    expected += i64::from(now.1.wrapping_sub(before.1) as i32);
                    lost += i64::from(now.2) - i64::from(before.2);
                    *before = now;
                }
                None if has_room => self.heard.push(now),
                None => {}
            }
        }
        let report = ReceiverReport { rtt, lost, received: expected - lost };
        self.controller.on_receiver_report(local, &report);
        self.decide(local);
    }

    fn on_feedback<P: Probe>(
        &mut self,
        local: Instant,
        (reports, rtt): (Vec<PacketReport>, Option<Duration>),
        probe: &mut Stamped<'_, P>,
    ) {
        self.rtt = rtt.or(self.rtt);
        self.controller.on_reports(local, &reports, &FeedbackInfo { rtt });
        self.decide(local);
        if probe.wants(Topic::Gauge) {
            self.controller.observe(&mut |gauge, value| {
                probe.record(local, probe.place(), &Note::Gauge { gauge, value });
            });
        }
    }
}
