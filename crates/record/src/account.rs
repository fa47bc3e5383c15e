//! The counters of one direction of a flow: sums over the measure window, unsettled packets and frames, and
//! their conversion to a row of the `flows` table.

use talkspurt_proto::body::Layers;
use talkspurt_proto::time::Duration;

use crate::frame_state::{Cohort, FrameState};
use crate::jitter::Jitter;
use crate::layout::Direction;
use crate::pending::Pending;
use crate::speech_stats::Heard;
use crate::sum::Sum;
use crate::summary::{FlowSummary, Quality};
use crate::video::Video;
use crate::voice::Voice;

/// Fields are grouped by cache line according to who writes them: between a call's sender and its receiver,
/// other accounts pass through the caches. Counts of packets and frames have 32 bits, like their numbers.
#[derive(Debug, Default)]
#[repr(C, align(64))]
pub(crate) struct Account {
    // Written by the sender.
    pub(crate) sent_bytes: u64,
    pub(crate) transport: u64,
    pub(crate) media: u64,
    pub(crate) payload: u64,
    pub(crate) packets: Cohort,
    pub(crate) sent: u32,
    pub(crate) generated: u32,
    pub(crate) control: u32,
    pub(crate) lost: u32,
    pub(crate) video: Option<Box<Video>>,

    // Written by both sides: the state of each frame …
    pub(crate) voice: Option<Voice>,
    pub(crate) frames: Cohort,

    // … and of each packet.
    pub(crate) pending: Pending,
    pub(crate) received_bytes: u64,
    pub(crate) delivered_bytes: u64,
    /// One more than the maximum, in nanoseconds; 0 before the first played frame.
    pub(crate) mouth_to_ear_max: u64,
    /// Every packet with payload carries one frame (a datagram); false for a byte stream.
    pub(crate) one_frame_each: bool,
    /// A medium copied a packet of data without media.
    pub(crate) copied: bool,

    // Written by the receiver.
    pub(crate) delay: Delay,
    pub(crate) jitter: Jitter,

    // Rarely changes in a call.
    pub(crate) units: Units,
    /// Bytes that arrived in the window but were sent before it, minus those sent in it that arrived after it.
    pub(crate) carried_bytes: i64,
    /// By how much packets were shorter than their layers above the network header.
    pub(crate) shortage: u64,
    pub(crate) unaccounted: u32,
}

#[cfg(target_pointer_width = "64")]
const _: () = {
    const LINE: usize = 64;
    assert!(std::mem::offset_of!(Account, voice) == LINE);
    assert!(std::mem::offset_of!(Account, pending) == 2 * LINE);
    assert!(std::mem::offset_of!(Account, delay) == 3 * LINE);
    assert!(std::mem::offset_of!(Account, units) == 4 * LINE);
    // An odd number of lines uses all sets of a cache evenly.
    assert!(size_of::<Option<Account>>() == 5 * LINE);
};

/// Frames of sources other than voice; [`Voice`] tracks its own.
#[derive(Debug, Default)]
pub(crate) struct Units {
    pub(crate) pending: Pending,
    pub(crate) handed_over: u32,
    pub(crate) discarded: u32,
}

impl Units {
    /// A unit left the send queue; false if it was not queued.
    #[inline(always)]
    pub(crate) fn leave(&mut self, index: u32, inside: bool, fate: FrameState) -> bool {
        let was_there = self.pending.settle(index).is_some();
        let counts = u32::from(was_there && inside);
        *if fate == FrameState::HandedOver {
            &mut self.handed_over
        } else {
            &mut self.discarded
        } += counts;
        was_there
    }
}

/// Bytes before each media packet in a stream: RTP 12 and RFC 4571's length 2.
const FRAMED_MEDIA_HEADER: u64 = 14;

/// Network delays in nanoseconds.
#[derive(Debug)]
pub(crate) struct Delay {
    min: u64,
    max: u64,
    sum: Sum,
}

impl Default for Delay {
    fn default() -> Self {
        Self { min: u64::MAX, max: 0, sum: Sum::default() }
    }
}

impl Delay {
    #[inline(always)]
    pub(crate) fn add(&mut self, delay: Duration) {
        let nanos = delay.as_nanos();
        self.min = self.min.min(nanos);
        self.max = self.max.max(nanos);
        self.sum.add(nanos);
    }

    fn known(&self, nanos: u64) -> Option<f64> {
        (self.sum.count() > 0).then(|| Duration::from_nanos(nanos).as_secs_f64())
    }
}

impl Account {
    /// Settles a packet and returns whether it carried data.
    #[inline(always)]
    pub(crate) fn settle(&mut self, number: u32) -> Option<bool> {
        let settled = self.pending.settle(number);
        self.unaccounted += u32::from(settled.is_none());
        settled
    }

    /// Counts received bytes. `inside`: they were sent in the measure window; `arrives_inside`: they arrived
    /// in it.
    #[inline(always)]
    pub(crate) fn count_received(&mut self, ip_bytes: u32, inside: bool, arrives_inside: bool) {
        if inside {
            self.received_bytes += u64::from(ip_bytes);
        }
        if inside != arrives_inside {
            let bytes = i64::from(ip_bytes);
            self.carried_bytes += if arrives_inside { bytes } else { -bytes };
        }
    }

    #[inline(always)]
    pub(crate) fn count_sent(&mut self, ip_bytes: u32, layers: Layers) {
        self.sent += 1;
        self.sent_bytes += u64::from(ip_bytes);
        self.transport += u64::from(layers.transport);
        self.media += u64::from(layers.media);
        self.payload += u64::from(layers.payload);
        if let Some(shortage @ 1..) = layers.total().checked_sub(ip_bytes) {
            self.shortage += u64::from(shortage);
        }
    }

    /// The row of the flows table. `pauses` of playout before frames of the window: number, nanoseconds.
    pub(crate) fn summary(
        &self,
        direction: &Direction<'_>,
        seconds: f64,
        pauses: (u32, u64),
    ) -> FlowSummary {
        let (from, to) = direction.ends();
        let rate = |bytes: u64| (seconds > 0.0).then(|| bytes as f64 * 8.0 / seconds);
        let open = |pending: &Pending, cohort: Cohort| {
            pending.open_data().filter(|&number| cohort.holds(number)).count() as u64
        };
        let known = |count: u64| (!direction.source.is_real()).then_some(count);
        let mouth_to_ear_max = self.mouth_to_ear_max.checked_sub(1);
        let heard = self.voice.as_ref().map(|voice| {
            let heard = Heard::of(voice, self.frames, mouth_to_ear_max.unwrap_or(0));
            let heard = heard.with_pauses(pauses, voice.frame());
            (heard, voice.played_by_rung(self.frames.first, self.frames.end))
        });
        let [queued, handed_over, discarded] = match &heard {
            Some((heard, _)) => [
                heard.frames(FrameState::Queued),
                heard.handed_over(),
                heard.frames(FrameState::Discarded) + heard.frames(FrameState::DiscardedRecovered),
            ],
            None => {
                let Units { pending, handed_over, discarded } = &self.units;
                [open(pending, self.frames), (*handed_over).into(), (*discarded).into()]
            }
        };
        let in_stream = self.media_in_stream(handed_over);
        let above = self.transport + self.media + self.payload;
        let mut summary = FlowSummary {
            name: direction.name(),
            group: direction.group(),
            transport: direction.flow.transport.clone(),
            source: direction.source.source.clone(),
            from: from.to_owned(),
            to: to.to_owned(),
            generated_packets: known(self.generated.into()),
            queued_packets: known(queued),
            handed_over_packets: handed_over,
            discarded_packets: known(discarded),
            sent_packets: self.sent.into(),
            received_packets: self.delay.sum.count(),
            lost_packets: self.lost.into(),
            in_flight_packets: open(&self.pending, self.packets),
            control_packets: self.control.into(),
            sent_bytes: self.sent_bytes,
            received_bytes: self.received_bytes,
            network_header_bytes: self.sent_bytes + self.shortage - above,
            transport_header_bytes: self.transport,
            media_header_bytes: self.media + in_stream,
            payload_bytes: self.payload - in_stream,
            throughput_bps: rate(self.received_bytes.wrapping_add_signed(self.carried_bytes)),
            goodput_bps: rate(self.delivered_bytes),
            delay_min_s: self.delay.known(self.delay.min),
            delay_mean_s: self.delay.sum.mean(1e9),
            delay_max_s: self.delay.known(self.delay.max),
            mouth_to_ear_max_s: mouth_to_ear_max
                .map(|nanos| Duration::from_nanos(nanos).as_secs_f64()),
            jitter_s: self.jitter.mean_s(),
            quality: Quality::default(),
            unaccounted_notes: self.unaccounted.into(),
            ..FlowSummary::default()
        };
        if let Some((heard, played_by_rung)) = heard {
            summary.played_by_rung = played_by_rung;
            summary.missing_packets = Some(heard.missing());
            summary.late_packets = Some(heard.late());
            summary.recovered_packets = Some(heard.recovered());
            summary.loss_ratio = heard.loss_ratio();
            summary.concealed_ratio = heard.concealed_ratio();
            if let Some([lost, late, paused]) = heard.unheard() {
                summary.unheard_lost_ratio = Some(lost);
                summary.unheard_late_ratio = Some(late);
                summary.unheard_paused_ratio = Some(paused);
            }
            summary.paused_s = Some(Duration::from_nanos(pauses.1).as_secs_f64());
            summary.burst_ratio = heard.burst_ratio();
            summary.longest_gap_s = heard.longest_gap().map(Duration::as_secs_f64);
        }
        summary
    }

    /// Media headers inside a byte stream, which packets do not distinguish from payload: those of the
    /// window's frames, once each. Retransmissions count as payload.
    fn media_in_stream(&self, handed_over: u64) -> u64 {
        let media = self.voice.is_some() || self.video.is_some();
        let framed = media && !self.one_frame_each;
        let headers = if framed { FRAMED_MEDIA_HEADER * handed_over } else { 0 };
        headers.min(self.payload)
    }
}
