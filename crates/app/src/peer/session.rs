//! One end of an RTP session beside its source and sink: RTCP, and with a media controller feedback in both
//! directions and the pacer. Flows of one session share the latter ([`SharedControl`]).

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use talkspurt_proto::media::{self, Bytes, Decision, FeedbackInfo, MediaController, Pacer};
use talkspurt_proto::packet::Ecn;
use talkspurt_proto::probe::{Note, Probe, Stamped, Topic};
use talkspurt_proto::rtcp::congestion::CongestionControl;
use talkspurt_proto::rtcp::{
    Compound, Message, NtpTime, ReceivedPackets, SentPackets, packet_report,
};
use talkspurt_proto::time::{Duration, Instant, earlier};
use talkspurt_proto::units::Rate;
use talkspurt_proto::{rtcp, rtp};

/// RTCP of one end of a flow, and the control of its media.
#[derive(Debug)]
pub(super) struct Session {
    pub(super) rtcp: rtcp::Session,
    pub(super) control: Option<Member>,
}

impl Session {
    /// The control of a session, if there is one, with this flow's number in it.
    pub(super) fn control_of(session: &Option<Box<Self>>) -> Option<Controlled<'_>> {
        session.as_ref()?.control.as_ref().map(Member::lock)
    }

    /// When reports or control are due.
    #[inline]
    pub(super) fn next(&self) -> Option<Instant> {
        match &self.control {
            None => self.rtcp.next(),
            Some(member) => earlier(self.rtcp.next(), member.lock().control.next()),
        }
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

    /// Adds a flow.
    pub(super) fn join(&self, takes: Takes) -> Member {
        let member = Member { shared: self.clone(), number: 0 };
        let number = member.lock().control.join(takes);
        Member { number, ..member }
    }
}

/// A flow's part in the control of its session.
#[derive(Debug)]
pub(super) struct Member {
    shared: SharedControl,
    number: usize,
}

impl Member {
    /// The control, for as long as the peer of one flow uses it: those of other flows of the session have their
    /// turns at other times.
    pub(super) fn lock(&self) -> Controlled<'_> {
        let control = self.shared.0.lock().unwrap_or_else(PoisonError::into_inner);
        Controlled { control, number: self.number }
    }
}

/// The control of a session and the number of a flow in it.
pub(super) struct Controlled<'a> {
    pub(super) control: MutexGuard<'a, Control>,
    pub(super) number: usize,
}

/// What a flow takes of its session's target rate.
#[derive(Clone, Copy, Debug)]
pub(super) struct Takes {
    /// No more than this, in RTP packets; `None` for what the others leave. Those with a limit come first.
    pub(super) most: Option<Rate>,
    /// Its packets do not wait for the pacer, as those of audio in libwebrtc.
    pub(super) goes_first: bool,
}

/// A flow of the session.
#[derive(Debug)]
struct Stream {
    takes: Takes,
    /// The source does not know the latest target.
    is_news: bool,
    /// Bytes in its queue.
    waiting: u64,
    /// Mean bytes of its packets, as sources and as the controller count them.
    sizes: [f64; 2],
}

impl Stream {
    /// Bytes that the controller counts for each byte of an RTP packet.
    fn counted(&self) -> f64 {
        self.sizes[1] / self.sizes[0]
    }
}

/// Feedback about the media of the other side at most this often and at least that often, as deployed; a
/// twentieth of the rate in between (libwebrtc: RemoteEstimatorProxy).
const DEPLOYED: [Duration; 2] = [Duration::from_millis(50), Duration::from_millis(250)];
const DEPLOYED_SHARE: u64 = 20;
/// Packets of a stream in one feedback packet: 1000 bytes.
const MOST_METRICS: usize = 500;
/// Packets that may leave at once: those of 5 ms, as libwebrtc's pacer.
const BURST: Duration = Duration::from_millis(5);

/// The control of one end's media, and feedback about that of the other end.
#[derive(Debug)]
pub(super) struct Control {
    controller: Box<dyn MediaController>,
    bytes: Bytes,
    pub(super) ecn: Ecn,
    /// Bytes of transport and IP header below an RTP packet.
    lower_layers: u32,
    decision: Decision,
    streams: Vec<Stream>,
    pacer: Pacer,
    sent: SentPackets,
    received: ReceivedPackets,
    received_bytes: u64,
    /// ECN field of the packet that arrived last.
    pub(super) arrived_ecn: Ecn,
    interval: Option<Duration>,
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
            pacer: Pacer::new(decision.pacing, BURST),
            decision,
            controller,
            sent: SentPackets::default(),
            received: ReceivedPackets::default(),
            received_bytes: 0,
            arrived_ecn: Ecn::NotEct,
            interval: config.feedback_interval(),
            reported: Instant::ZERO,
            due: None,
        }
    }

    /// When feedback or the controller is due.
    fn next(&self) -> Option<Instant> {
        earlier(self.due, self.controller.deadline())
    }

    fn join(&mut self, takes: Takes) -> usize {
        self.streams.push(Stream { takes, is_news: true, waiting: 0, sizes: [1.0; 2] });
        self.streams.iter_mut().for_each(|stream| stream.is_news = true);
        self.streams.len() - 1
    }

    /// When the next packet of a flow may leave; in the past if it may now.
    pub(super) fn opens(&self, number: usize) -> Instant {
        if self.streams[number].takes.goes_first { Instant::ZERO } else { self.pacer.next() }
    }

    /// True if the controller has ended the session.
    pub(super) const fn is_stopped(&self) -> bool {
        self.decision.stop.is_some()
    }

    /// How long what waits takes to leave.
    pub(super) fn backlog(&self) -> Duration {
        let bytes = self.streams.iter().map(|stream| stream.waiting).sum();
        self.decision.pacing.time_for(bytes).unwrap_or(Duration::MAX)
    }

    /// Runs the controller's timer.
    pub(super) fn wake(&mut self, local: Instant) {
        while self.controller.deadline().is_some_and(|at| at <= local) {
            self.controller.on_timeout(local);
            self.decide(local);
        }
    }

    fn decide(&mut self, local: Instant) {
        let decision = self.controller.decision();
        if decision != self.decision {
            self.pacer.set_rate(local, decision.pacing);
            if decision.target != self.decision.target {
                self.streams.iter_mut().for_each(|stream| stream.is_news = true);
            }
            self.decision = decision;
        }
    }

    /// A media packet leaves.
    pub(super) fn on_sent(&mut self, local: Instant, number: usize, packet: &rtp::Packet) {
        let payload = packet.payload.len() as u32;
        let media = packet.header_bytes() as u32 + payload;
        let counted = match self.bytes {
            Bytes::Ip => media + self.lower_layers,
            Bytes::Payload => payload,
        };
        let sizes = &mut self.streams[number].sizes;
        let is_first = sizes[1] <= 1.0;
        for (mean, bytes) in sizes.iter_mut().zip([media, counted]) {
            let bytes = f64::from(bytes.max(1));
            *mean = if is_first { bytes } else { *mean + (bytes - *mean) / 16.0 };
        }
        let sequence = self.sent.on_sent(local, packet.ssrc, packet.sequence, counted);
        self.pacer.on_sent(local, counted.into());
        self.controller.on_sent(local, &media::Sent { sequence, bytes: counted });
    }

    /// The length of a flow's queue changed.
    pub(super) fn on_queue(&mut self, local: Instant, number: usize, bytes: u64) {
        if std::mem::replace(&mut self.streams[number].waiting, bytes) == bytes {
            return;
        }
        let all = self.streams.iter().map(|stream| stream.waiting).sum();
        self.controller.on_queue(local, all);
        self.decide(local);
    }

    /// True if there is a target that the flow's source does not know.
    pub(super) fn has_news(&self, number: usize) -> bool {
        self.streams[number].is_news
    }

    /// The rate at which a flow's source should encode, with media headers and without those of the layers
    /// below, if it changed.
    pub(super) fn take_target(&mut self, number: usize) -> Option<Rate> {
        if !std::mem::take(&mut self.streams[number].is_news) {
            return None;
        }
        let mut rest = self.decision.target.as_bps() as f64;
        let mut elastic = 0_u32;
        for (place, stream) in self.streams.iter().enumerate() {
            let Some(most) = stream.takes.most else {
                elastic += 1;
                continue;
            };
            let given = (most.as_bps() as f64 * stream.counted()).min(rest);
            if place == number {
                return Some(Rate::from_bps((given / stream.counted()) as u64));
            }
            rest -= given;
        }
        let share = rest / f64::from(elastic.max(1)) / self.streams[number].counted();
        Some(Rate::from_bps(share as u64))
    }

    /// A media packet of the other side arrived.
    pub(super) fn on_media(&mut self, local: Instant, packet: &rtp::Packet) {
        self.received.on_packet(local, packet.ssrc, packet.sequence, self.arrived_ecn);
        self.received_bytes += packet.payload.len() as u64;
        if self.due.is_none() {
            self.due = Some(local.max(self.reported + self.spacing(local)));
        }
    }

    /// Time between two feedback packets.
    fn spacing(&self, local: Instant) -> Duration {
        self.interval.unwrap_or_else(|| {
            // A feedback packet of 68 bytes, as libwebrtc assumes, at a twentieth of the rate of arrivals.
            let since = local.saturating_since(self.reported).as_nanos();
            let nanos = u128::from(since) * u128::from(68 * DEPLOYED_SHARE)
                / u128::from(self.received_bytes.max(1));
            let [least, most] = DEPLOYED;
            Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX)).clamp(least, most)
        })
    }

    /// The feedback that is due.
    pub(super) fn feedback(
        &mut self,
        local: Instant,
        rtcp: &mut rtcp::Session,
    ) -> Option<Compound> {
        self.due.filter(|at| *at <= local)?;
        self.due = None;
        (self.reported, self.received_bytes) = (local, 0);
        let streams = self.received.report(local, MOST_METRICS);
        if streams.is_empty() {
            return None;
        }
        // The rest follows at once.
        let is_full = streams.iter().any(|stream| stream.metrics.len() == MOST_METRICS);
        self.due = is_full.then_some(local);
        let timestamp = packet_report::timestamp(NtpTime::from(local));
        Some(rtcp.feedback(Message::CongestionControl(CongestionControl { streams, timestamp })))
    }

    /// RTCP of the other side.
    pub(super) fn on_rtcp<P: Probe>(
        &mut self,
        local: Instant,
        compound: &Compound,
        probe: &mut Stamped<'_, P>,
    ) {
        for feedback in &compound.feedback {
            if let Message::CongestionControl(report) = &feedback.message {
                self.on_feedback(local, report, probe);
            }
        }
    }

    fn on_feedback<P: Probe>(
        &mut self,
        local: Instant,
        report: &CongestionControl,
        probe: &mut Stamped<'_, P>,
    ) {
        let (reports, rtt) = self.sent.on_report(local, report);
        self.controller.on_reports(local, &reports, &FeedbackInfo { rtt });
        self.decide(local);
        if probe.wants(Topic::Gauge) {
            self.controller.observe(&mut |gauge, value| {
                probe.record(local, probe.place(), &Note::Gauge { gauge, value });
            });
        }
    }
}
