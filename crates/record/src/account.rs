//! The books of one direction of a flow: sums over the measure window, what is still open, and how
//! both become a row of the `flows` table.

use talkspurt_proto::packet::Layers;
use talkspurt_proto::time::Duration;

use crate::jitter::Jitter;
use crate::layout::Direction;
use crate::pending::Pending;
use crate::summary::{FlowSummary, Quality};
use crate::video::Video;
use crate::voice::{Fate, Voice, burst_ratio};

/// The numbers of the packets (or frames) that belong to the window: they are consecutive,
/// because numbers grow with time.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Cohort {
    pub(crate) first: u32,
    pub(crate) end: u32,
}

impl Cohort {
    pub(crate) fn admit(&mut self, number: u32) {
        if self.first == self.end {
            self.first = number;
        }
        self.end = number + 1;
    }
    pub(crate) fn holds(self, number: u32) -> bool {
        self.first <= number && number < self.end
    }
}

#[derive(Debug, Default)]
pub(crate) struct Account {
    pub(crate) frames: Frames,
    pub(crate) packets: Packets,
    pub(crate) voice: Option<Voice>,
    pub(crate) video: Option<Video>,
    pub(crate) jitter: Jitter,
    pub(crate) delay: Delay,
    pub(crate) mouth_to_ear_max: Option<Duration>,
    pub(crate) arrived_bytes: u64,
    pub(crate) delivered_bytes: u64,
    pub(crate) unaccounted: u64,
}

#[derive(Debug, Default)]
pub(crate) struct Frames {
    pub(crate) pending: Pending,
    pub(crate) cohort: Cohort,
    pub(crate) generated: u64,
    pub(crate) handed_over: u64,
    pub(crate) discarded: u64,
}

#[derive(Debug, Default)]
pub(crate) struct Packets {
    pub(crate) pending: Pending,
    pub(crate) cohort: Cohort,
    pub(crate) sent: u64,
    pub(crate) received: u64,
    pub(crate) lost: u64,
    pub(crate) control: u64,
    pub(crate) sent_bytes: u64,
    pub(crate) received_bytes: u64,
    pub(crate) network: u64,
    pub(crate) transport: u64,
    pub(crate) media: u64,
    pub(crate) payload: u64,
    /// Every packet with payload carries one frame (a datagram), as against a stream of bytes.
    pub(crate) one_frame_each: bool,
}

/// What stands before each packet of media in a stream: RTP 12 and RFC 4571's length 2.
const FRAMED_MEDIA_HEADER: u64 = 14;

#[derive(Debug, Default)]
pub(crate) struct Delay {
    pub(crate) min: u64,
    pub(crate) max: u64,
    pub(crate) sum: u128,
    pub(crate) count: u64,
}

impl Packets {
    pub(crate) fn count_sent(&mut self, ip_bytes: u32, layers: Layers) {
        let above = layers.transport + layers.media + layers.payload;
        self.sent += 1;
        self.sent_bytes += u64::from(ip_bytes);
        self.network += u64::from(ip_bytes.saturating_sub(above));
        self.transport += u64::from(layers.transport);
        self.media += u64::from(layers.media);
        self.payload += u64::from(layers.payload);
    }
}

impl Delay {
    pub(crate) fn add(&mut self, delay: Duration) {
        let nanos = delay.as_nanos();
        self.min = if self.count == 0 { nanos } else { self.min.min(nanos) };
        self.max = self.max.max(nanos);
        self.sum += u128::from(nanos);
        self.count += 1;
    }
    pub(crate) fn known(&self, nanos: u64) -> Option<f64> {
        (self.count > 0).then(|| Duration::from_nanos(nanos).as_secs_f64())
    }
    pub(crate) fn mean_s(&self) -> Option<f64> {
        (self.count > 0).then(|| self.sum as f64 / 1e9 / self.count as f64)
    }
}

impl Account {
    /// Settles a packet and tells whether it carried data.
    pub(crate) fn settle(&mut self, number: u32) -> Option<bool> {
        let settled = self.packets.pending.settle(number);
        self.unaccounted += u64::from(settled.is_none());
        settled
    }

    pub(crate) fn summary(&self, direction: &Direction<'_>, seconds: f64) -> FlowSummary {
        let (from, to) = direction.ends();
        let (frames, packets) = (&self.frames, &self.packets);
        let rate = |bytes: u64| (seconds > 0.0).then(|| bytes as f64 * 8.0 / seconds);
        let open = |pending: &Pending, cohort: Cohort| {
            pending.open_data().filter(|&number| cohort.holds(number)).count() as u64
        };
        let in_stream = self.media_in_stream();
        let mut summary = FlowSummary {
            name: direction.name(),
            group: direction.group(),
            transport: direction.flow.transport.clone(),
            source: direction.source.source.clone(),
            from: from.to_owned(),
            to: to.to_owned(),
            generated_packets: frames.generated,
            queued_packets: open(&frames.pending, frames.cohort),
            handed_over_packets: frames.handed_over,
            discarded_packets: frames.discarded,
            sent_packets: packets.sent,
            received_packets: packets.received,
            lost_packets: packets.lost,
            in_flight_packets: open(&packets.pending, packets.cohort),
            control_packets: packets.control,
            sent_bytes: packets.sent_bytes,
            received_bytes: packets.received_bytes,
            network_header_bytes: packets.network,
            transport_header_bytes: packets.transport,
            media_header_bytes: packets.media + in_stream,
            payload_bytes: packets.payload - in_stream,
            throughput_bps: rate(self.arrived_bytes),
            goodput_bps: rate(self.delivered_bytes),
            delay_min_s: self.delay.known(self.delay.min),
            delay_mean_s: self.delay.mean_s(),
            delay_max_s: self.delay.known(self.delay.max),
            mouth_to_ear_max_s: self.mouth_to_ear_max.map(Duration::as_secs_f64),
            jitter_s: self.jitter.mean_s(),
            quality: Quality::default(),
            unaccounted_notes: self.unaccounted,
            ..FlowSummary::default()
        };
        self.count_losses(&mut summary);
        summary
    }

    /// Media headers inside a byte stream, which its packets do not know apart from payload: those
    /// of the window's frames, once each. What was sent again counts as payload.
    fn media_in_stream(&self) -> u64 {
        let media = self.voice.is_some() || self.video.is_some();
        let framed = media && !self.packets.one_frame_each;
        let headers = if framed { FRAMED_MEDIA_HEADER * self.frames.handed_over } else { 0 };
        headers.min(self.packets.payload)
    }

    pub(crate) fn count_losses(&self, summary: &mut FlowSummary) {
        let Some(voice) = &self.voice else { return };
        let Cohort { first, end } = self.frames.cohort;
        let heard: Vec<_> = voice.heard(first, end, self.mouth_to_ear_max).collect();
        let (mut missing, mut late, mut judged) = (0_u64, 0_u64, 0_u64);
        for (_, fate) in &heard {
            missing += u64::from(fate.is_missing());
            late += u64::from(*fate == Fate::Late);
            judged += 1;
        }
        summary.played_by_rung = voice.played_by_rung(first, end);
        summary.missing_packets = Some(missing);
        summary.late_packets = Some(late);
        summary.loss_ratio = (judged > 0).then(|| (missing + late) as f64 / judged as f64);
        summary.burst_ratio = burst_ratio(heard.iter().map(|(_, fate)| fate.is_unheard()));
        summary.longest_gap_s = voice.longest_gap(heard.into_iter()).map(Duration::as_secs_f64);
    }
}
