//! The account of one direction of a flow: a row of the `flows` table, and the equations that
//! every such row must satisfy.

use crate::video::VideoSummary;

/// What one side of a flow sent and what became of it, over the measure window. Packets belong to
/// the window by the time they were sent, frames by their capture, throughput and goodput by the
/// time of delivery. Times are in seconds; `None` is a value that does not exist.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FlowSummary {
    /// Name of the flow; `NAME.reverse` for what the answering side sends.
    pub name: String,
    /// The name of the many flows it is one of, in the same form.
    pub group: Option<String>,
    /// What carries it.
    pub transport: String,
    /// Kind of source.
    pub source: String,
    /// Node that sends.
    pub from: String,
    /// Node that receives.
    pub to: String,
    /// Units of application data the source made.
    pub generated_packets: u64,
    /// Of these, still in the send queue at the end.
    pub queued_packets: u64,
    /// Of these, given to the transport.
    pub handed_over_packets: u64,
    /// Of these, dropped from the send queue.
    pub discarded_packets: u64,
    /// IP packets with payload, retransmissions included.
    pub sent_packets: u64,
    /// Of these, received.
    pub received_packets: u64,
    /// Of these, dropped by a link.
    pub lost_packets: u64,
    /// Of these, still in the network at the end.
    pub in_flight_packets: u64,
    /// IP packets without payload: SYN, pure acknowledgements, RTCP.
    pub control_packets: u64,
    /// Packets that reached the other end and that it did not accept, in the window by the time they
    /// came: damaged, outside its windows, or unexpected. Those of a side without a source, which has no
    /// account of its own, count here too.
    pub rejected_packets: u64,
    /// Of these, refused for a checksum: damaged on the way.
    pub damaged_packets: u64,
    /// Bytes of the IP packets with payload that were sent.
    pub sent_bytes: u64,
    /// Of these, received.
    pub received_bytes: u64,
    /// Bytes of `sent_bytes` in IP headers: what the other layers leave. Where a sizing profile
    /// counts a packet shorter than its headers and payload, nothing is left for this layer.
    pub network_header_bytes: u64,
    /// Bytes in headers of the transport (UDP, TCP with options).
    pub transport_header_bytes: u64,
    /// Bytes in headers of media: RTP, and in a byte stream RFC 4571's lengths, counted once a frame;
    /// what TCP sends again is payload.
    pub media_header_bytes: u64,
    /// Bytes of transport payload less media headers.
    pub payload_bytes: u64,
    /// Bits of IP packets with payload that arrived per second.
    pub throughput_bps: Option<f64>,
    /// Bits of application data that were delivered per second.
    pub goodput_bps: Option<f64>,
    /// Network delay, least.
    pub delay_min_s: Option<f64>,
    /// Network delay, mean.
    pub delay_mean_s: Option<f64>,
    /// Network delay, median; only where every delay was recorded. Quantiles are nearest-rank:
    /// the least recorded value that at least this share of values does not exceed.
    pub delay_p50_s: Option<f64>,
    /// Network delay, 95th percentile.
    pub delay_p95_s: Option<f64>,
    /// Network delay, 99th percentile.
    pub delay_p99_s: Option<f64>,
    /// Network delay, greatest.
    pub delay_max_s: Option<f64>,
    /// From capture to playout of a frame, median; only where every one was recorded.
    pub mouth_to_ear_p50_s: Option<f64>,
    /// From capture to playout of a frame, greatest.
    pub mouth_to_ear_max_s: Option<f64>,
    /// Mean of the RFC 3550 A.8 estimator.
    pub jitter_s: Option<f64>,
    /// Messages that were delivered and had waited for an earlier one of their stream, of transports that
    /// deliver messages in order (RFC 9260 §6.6). RTCP apart, as in the two below.
    pub held_back_packets: Option<u64>,
    /// How long a message waited, whole, for earlier ones of its stream: mean over all that were
    /// delivered.
    pub head_of_line_mean_s: Option<f64>,
    /// The longest of these waits.
    pub head_of_line_max_s: Option<f64>,
    /// Frames delivered after their playout.
    pub late_packets: Option<u64>,
    /// Frames never delivered by the end.
    pub missing_packets: Option<u64>,
    /// Missing and late frames per generated frame.
    pub loss_ratio: Option<f64>,
    /// Burst ratio of ITU-T G.107; `None` without a loss.
    pub burst_ratio: Option<f64>,
    /// Time that the first frame of speech waited for the transport's handshake; absent where there is
    /// no handshake.
    pub handshake_wait_s: Option<f64>,
    /// The longest stretch of speech of which nothing was heard, the speaker's pauses not counted.
    pub longest_gap_s: Option<f64>,
    /// Frames of several packets, where the source makes such.
    pub video: Option<VideoSummary>,
    /// Frames that were played, by rung of the sender's ladder, the best first; empty if it never
    /// left the best. Not a column of the table.
    pub played_by_rung: Vec<u64>,
    /// What it sounded like; filled in by whoever knows the codec.
    pub quality: Quality,
    /// Notes that fit no account (a packet settled twice or never sent): always 0, or we have a
    /// bug.
    pub unaccounted_notes: u64,
}

/// Columns of the `flows` table that are the E-model's business.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Quality {
    /// Transmission rating (ITU-T G.107).
    pub r_factor: Option<f64>,
    /// Estimated mean opinion score.
    pub mos: Option<f64>,
    /// What delay cost of it.
    pub mos_lost_to_delay: Option<f64>,
    /// What loss cost of it.
    pub mos_lost_to_loss: Option<f64>,
    /// What the codec cost of it.
    pub mos_lost_to_codec: Option<f64>,
    /// Assumptions, or why a value is absent.
    pub note: Option<String>,
}

impl FlowSummary {
    /// Checks that nothing was made or lost in the counting.
    ///
    /// # Errors
    /// Names the flow and the equation that does not hold: then this program has a bug.
    pub fn conservation(&self) -> Result<(), String> {
        let made = self.queued_packets + self.handed_over_packets + self.discarded_packets;
        if self.generated_packets != made {
            return Err(format!(
                "{}: {} frames generated, but {} queued + {} handed over + {} discarded",
                self.name,
                self.generated_packets,
                self.queued_packets,
                self.handed_over_packets,
                self.discarded_packets
            ));
        }
        let found = self.received_packets + self.lost_packets + self.in_flight_packets;
        if self.sent_packets != found {
            return Err(format!(
                "{}: {} packets sent, but {} received + {} lost + {} in flight",
                self.name,
                self.sent_packets,
                self.received_packets,
                self.lost_packets,
                self.in_flight_packets
            ));
        }
        if self.unaccounted_notes > 0 {
            return Err(format!(
                "{}: {} notes fit no packet or frame that is open",
                self.name, self.unaccounted_notes
            ));
        }
        Ok(())
    }
}
