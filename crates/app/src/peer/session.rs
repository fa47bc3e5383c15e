//! One end of an RTP session beside its source and sink: RTCP, and with a media controller feedback in both
//! directions and the pacer.

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

/// RTCP of one end, and the control of its media.
#[derive(Debug)]
pub(super) struct Session {
    pub(super) rtcp: rtcp::Session,
    pub(super) control: Option<Box<Control>>,
}

impl Session {
    /// The control of a session, if there is one.
    pub(super) fn control_of(session: &mut Option<Box<Self>>) -> Option<&mut Control> {
        session.as_deref_mut()?.control.as_deref_mut()
    }

    /// When reports or control are due.
    #[inline]
    pub(super) fn next(&self) -> Option<Instant> {
        match &self.control {
            None => self.rtcp.next(),
            Some(control) => earlier(self.rtcp.next(), control.next()),
        }
    }
}

/// Feedback about the media of the other side at most this often and at least that often, as deployed; a twentieth
/// of the rate in between (libwebrtc: RemoteEstimatorProxy).
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
    /// The source has not been told of the decision.
    is_news: bool,
    pacer: Pacer,
    sent: SentPackets,
    /// Mean bytes of media packets, as sources and as the controller count them.
    sizes: [f64; 2],
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
    pub(super) fn new(config: &media::Config, lower_layers: u32) -> Self {
        let controller = config.build();
        let decision = controller.decision();
        Self {
            bytes: config.bytes(),
            ecn: config.ecn(),
            lower_layers,
            is_news: true,
            pacer: Pacer::new(decision.pacing, BURST),
            decision,
            controller,
            sent: SentPackets::default(),
            sizes: [1.0; 2],
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

    /// When the next packet may leave.
    pub(super) fn opens(&self) -> Instant {
        self.pacer.next()
    }

    /// How long this much takes to leave.
    pub(super) fn time_for(&self, bytes: u64) -> Duration {
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
            self.is_news |= decision.target != self.decision.target;
            self.decision = decision;
        }
    }

    /// A media packet leaves.
    pub(super) fn on_sent(&mut self, local: Instant, packet: &rtp::Packet) {
        let payload = packet.payload.len() as u32;
        let media = packet.header_bytes() as u32 + payload;
        let counted = match self.bytes {
            Bytes::Ip => media + self.lower_layers,
            Bytes::Payload => payload,
        };
        let is_first = self.sizes[1] <= 1.0;
        for (mean, bytes) in self.sizes.iter_mut().zip([media, counted]) {
            let bytes = f64::from(bytes.max(1));
            *mean = if is_first { bytes } else { *mean + (bytes - *mean) / 16.0 };
        }
        let sequence = self.sent.on_sent(local, packet.ssrc, packet.sequence, counted);
        self.pacer.on_sent(local, counted.into());
        self.controller.on_sent(local, &media::Sent { sequence, bytes: counted });
    }

    /// The length of what waits changed.
    pub(super) fn on_queue(&mut self, local: Instant, bytes: u64) {
        self.controller.on_queue(local, bytes);
        self.decide(local);
    }

    /// True if there is a target that the source does not know.
    pub(super) const fn has_news(&self) -> bool {
        self.is_news
    }

    /// The rate at which the source should encode, with media headers and without those of the layers below, if it
    /// changed.
    pub(super) fn take_target(&mut self) -> Option<Rate> {
        if !std::mem::take(&mut self.is_news) {
            return None;
        }
        let share = self.sizes[0] / self.sizes[1];
        let target = self.decision.target.as_bps() as f64 * share;
        Some(Rate::from_bps(target as u64))
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
