//! The results of one direction of a flow: a row of the `flows` table. One table defines the fields, the
//! columns and the entries of the metric catalogue.

use talkspurt_proto::metric::{BYTES, FRAMES, KILOBITS, MILLISECONDS, Metric, OPINION, PACKETS};

use crate::columns::{Columns, columns_of};
use crate::video::VideoSummary;

/// Defines [`FlowSummary`], `FLOW_METRICS` and the columns of the `flows` table.
macro_rules! flow_summary {
    (
        fields { $($(#[$about:meta])* $field:ident: $kept:ty,)* }
        metrics { $($(#[doc = $doc:literal])+ $name:ident: $type:ty = $metric:expr;)* }
        of_fields { $($(#[doc = $inner_doc:literal])+ $inner:ident = $inner_metric:expr, $get:expr;)* }
    ) => {
        /// The results of one direction of a flow: a row of the `flows` table.
        #[derive(Clone, Debug, Default, PartialEq)]
        pub struct FlowSummary {
            $($(#[$about])* pub $field: $kept,)*
            $($(#[doc = $doc])+ pub $name: $type,)*
        }

        columns_of! {
            FLOW_METRICS, numbers of FlowSummary:
            $($(#[doc = $doc])+ $name = $metric, |row| row.$name;)*
            $($(#[doc = $inner_doc])+ $inner = $inner_metric, $get;)*
        }
    };
}

flow_summary! {
    fields {
        /// Name of the flow; `NAME.reverse` for what the answering side sends.
        name: String,
        /// The name of its group of flows, in the same form.
        group: Option<String>,
        /// Name of the transport.
        transport: String,
        /// Kind of source.
        source: String,
        /// Node that sends.
        from: String,
        /// Node that receives.
        to: String,
        /// Generated units that were handed to the transport.
        handed_over_packets: u64,
        /// Frames of several packets, if the source makes them.
        video: Option<VideoSummary>,
        /// Played frames, by rung of the sender's ladder, the best first; empty if it never left the best.
        played_by_rung: Vec<u64>,
        /// Speech quality; filled in by code that knows the codec.
        quality: Quality,
        /// Notes that fit no account (a packet settled twice or never sent): always 0, unless this program
        /// has a bug.
        unaccounted_notes: u64,
    }
    metrics {
        /// Units of data the source made in the window: frames of speech, packets of a constant or
        /// on/off source, segments' worth of bulk data.
        generated_packets: u64 = PACKETS.described(
            "generated",
            "generated = queued + handed to the transport + discarded by the send queue",
            "talkspurt's own count",
        );
        /// Units that waited for the transport when the run ended.
        queued_packets: u64 = PACKETS.described(
            "still queued",
            "counted at the end of the run",
            "talkspurt's own count",
        );
        /// Units the full send queue threw away because the transport had no room.
        discarded_packets: u64 = PACKETS.described(
            "discarded",
            "counted when dropped",
            "talkspurt's own count",
        ).lower_is_better();
        /// IP packets with payload that left the sender; with TCP, retransmissions count again.
        sent_packets: u64 = PACKETS.described(
            "sent",
            "sent = received + lost + in flight",
            "talkspurt's own count",
        );
        /// IP packets with payload that reached the other end.
        received_packets: u64 = PACKETS.described(
            "received",
            "counted on arrival",
            "talkspurt's own count",
        );
        /// IP packets with payload that the network dropped: full queues, the medium, outages, or
        /// being longer than a link takes.
        lost_packets: u64 = PACKETS.described(
            "lost",
            "lost = sent − received − in flight",
            "talkspurt's own count",
        ).lower_is_better();
        /// IP packets with payload still on their way when the run ended.
        in_flight_packets: u64 = PACKETS.described(
            "in flight",
            "counted at the end of the run",
            "talkspurt's own count",
        );
        /// Packets without payload: connection set-up, pure acknowledgements, RTCP reports.
        control_packets: u64 = PACKETS.described(
            "control",
            "counted apart from sent packets",
            "talkspurt's own count",
        );
        /// Packets that reached the other end and that it refused: a wrong checksum, numbers
        /// outside its windows, a wrong tag, or nothing it expects. TCP refuses what it has
        /// already. Those of a side without a source count with the side that has one.
        rejected_packets: u64 = PACKETS.described(
            "rejected",
            "counted by the receiving end, by the time they came",
            "talkspurt's own count",
        ).lower_is_better();
        /// Of the rejected packets, those with a wrong checksum: damaged on the way.
        damaged_packets: u64 = PACKETS.described(
            "damaged",
            "counted by the receiving end, by the time they came",
            "talkspurt's own count",
        ).lower_is_better();
        /// Bytes of the IP packets with payload that left the sender, headers included.
        sent_bytes: u64 = BYTES.described(
            "bytes sent",
            "payload + media headers + transport headers + network headers",
            "talkspurt's own count, of packets with payload",
        );
        /// Bytes of the IP packets with payload, of those sent in the window, that reached the
        /// other end, headers included.
        received_bytes: u64 = BYTES.described(
            "bytes received",
            "Σ IP length of received packets",
            "talkspurt's own count, of packets with payload",
        );
        /// Headers of IP. Those of the links below are not counted.
        network_header_bytes: u64 = BYTES.described(
            "network headers",
            "IPv4: 20 bytes a packet; IPv6: 40 bytes",
            "talkspurt's own count, of packets with payload",
        );
        /// Headers of UDP or TCP, options included.
        transport_header_bytes: u64 = BYTES.described(
            "transport headers",
            "UDP: 8 bytes a packet; TCP: 20 bytes and its options",
            "talkspurt's own count, of packets with payload",
        );
        /// Headers of RTP around the speech and, in a byte stream, the length before each packet
        /// (RFC 4571). What TCP sends again counts as payload.
        media_header_bytes: u64 = BYTES.described(
            "media headers",
            "12 bytes a frame over UDP, 14 in a stream",
            "talkspurt's own count, of packets with payload",
        );
        /// Data that was sent, each time it was sent: speech, and with TCP its framing and
        /// retransmissions.
        payload_bytes: u64 = BYTES.described(
            "payload",
            "bytes of transport payload − media headers",
            "talkspurt's own count, of packets with payload",
        );
        /// IP bytes that arrived, headers and retransmissions included.
        throughput_bps: Option<f64> = KILOBITS.described(
            "throughput",
            "8 × IP bytes received in the window ÷ length of the window",
            "RFC 5136 §2.3",
        );
        /// Data handed to the receiving application, each byte once: headers and retransmissions do
        /// not count.
        goodput_bps: Option<f64> = KILOBITS.described(
            "goodput",
            "8 × payload bytes delivered in the window ÷ length of the window",
            "RFC 2647 §3.17",
        ).higher_is_better();
        /// The fastest data packet.
        delay_min_s: Option<f64> = MILLISECONDS.described(
            "delay, least",
            "minimum of arrival − departure",
            "RFC 7679 §5.3",
        ).lower_is_better();
        /// One-way network delay of data packets: from leaving the sender to arrival. Waiting in
        /// the sender's own queue is not in it.
        delay_mean_s: Option<f64> = MILLISECONDS.described(
            "delay, mean",
            "mean of arrival − departure",
            "RFC 7679",
        ).lower_is_better();
        /// Half the data packets crossed the network faster than this, from leaving the sender to
        /// arrival. Waiting in the sender's own queue is not in it.
        delay_p50_s: Option<f64> = MILLISECONDS.described(
            "delay, median",
            "50th percentile of arrival − departure",
            "RFC 7679 §5.1",
        ).lower_is_better();
        /// Nineteen of twenty data packets crossed the network faster than this.
        delay_p95_s: Option<f64> = MILLISECONDS.described(
            "delay, 95 %",
            "95th percentile of arrival − departure",
            "RFC 7679 §5.1",
        ).lower_is_better();
        /// Ninety-nine of a hundred data packets crossed the network faster than this.
        delay_p99_s: Option<f64> = MILLISECONDS.described(
            "delay, 99 %",
            "99th percentile of arrival − departure",
            "RFC 7679 §5.1",
        ).lower_is_better();
        /// The slowest data packet that arrived.
        delay_max_s: Option<f64> = MILLISECONDS.described(
            "delay, longest",
            "maximum of arrival − departure",
            "RFC 7679",
        ).lower_is_better();
        /// What the speakers notice: from a sound's capture to its playing at the far end.
        /// Packetisation, send queue, handshake, network, and the jitter buffer are all in it, and
        /// the 3.75 ms by which concealment after G.711 Appendix I holds speech back, where it
        /// runs.
        mouth_to_ear_p50_s: Option<f64> = MILLISECONDS.described(
            "mouth to ear",
            "median of (playout of a frame's first sample − its capture)",
            "ITU-T G.114 §1",
        ).lower_is_better();
        /// The longest time from a sound's capture to its playing.
        mouth_to_ear_max_s: Option<f64> = MILLISECONDS.described(
            "mouth to ear, longest",
            "maximum of (playout of a frame's first sample − its capture)",
            "ITU-T G.114 §1",
        ).lower_is_better();
        /// How long the first frame of speech was ready and waited for the transport's handshake. A
        /// receiver that counts playout from the first arrival plays the whole call that much
        /// later.
        handshake_wait_s: Option<f64> = MILLISECONDS.described(
            "waited for handshake",
            "opening of the connection − first frame ready, at least 0; none without a handshake",
            "talkspurt's own count",
        ).lower_is_better();
        /// How unevenly packets arrive: the smoothed difference between the spacing of arrivals and
        /// the spacing of departures.
        jitter_s: Option<f64> = MILLISECONDS.described(
            "jitter",
            "J ← J + (|D| − J) / 16, averaged over the window",
            "RFC 3550 §6.4.1 and A.8",
        ).lower_is_better();
        /// Messages that had arrived and could not be delivered yet: an earlier one of their stream
        /// was missing. Only SCTP tells.
        held_back_packets: Option<u64> = PACKETS.described(
            "held back",
            "messages delivered that had waited for an earlier one of their stream (RFC 9260 §6.6)",
            "talkspurt's own count",
        ).lower_is_better();
        /// How long a message waited at the receiver for earlier ones of its stream. On a stream of
        /// its own a flow waits for its own losses alone, out of order for none. Only SCTP tells.
        head_of_line_mean_s: Option<f64> = MILLISECONDS.described(
            "head-of-line wait",
            "mean over all messages delivered of (delivery − arrival of its last part), RTCP apart",
            "RFC 9260 §6.6",
        ).lower_is_better();
        /// The message that waited longest at the receiver for earlier ones of its stream.
        head_of_line_max_s: Option<f64> = MILLISECONDS.described(
            "head-of-line wait, longest",
            "maximum of (delivery − arrival of its last part), RTCP apart",
            "RFC 9260 §6.6",
        ).lower_is_better();
        /// Voice frames that arrived after the moment they should have been played, and are thus as
        /// good as lost.
        late_packets: Option<u64> = PACKETS.described(
            "late",
            "delivered after their playout instant",
            "talkspurt's own count",
        ).lower_is_better();
        /// Voice frames never delivered: lost, discarded, or still waiting or on their way when
        /// they should have been played. Those whose turn would have come after the end of the run
        /// are not judged.
        missing_packets: Option<u64> = PACKETS.described(
            "missing",
            "judged frames − delivered frames",
            "talkspurt's own count",
        ).lower_is_better();
        /// Share of voice frames the listener did not hear, for whatever reason.
        loss_ratio: Option<f64> = Metric::of("1", "%", 100.0, 2).described(
            "lost or late",
            "(missing + late) ÷ judged frames",
            "ITU-T G.107 §7.4 (Ppl); loss and discard as in RFC 3611 §4.7.1",
        ).lower_is_better().within(0.0, 1.0);
        /// Whether losses come in runs: 1 when they fall at random, more when they cluster.
        burst_ratio: Option<f64> = Metric::of("1", "", 1.0, 2).described(
            "burst ratio",
            "mean length of a run of losses × (1 − loss ratio)",
            "ITU-T G.107 §7.4 (BurstR)",
        ).lower_is_better();
        /// The longest period of speech of which the listener heard nothing. The speaker's own
        /// pauses are not counted.
        longest_gap_s: Option<f64> = Metric::of("s", "s", 1.0, 2).described(
            "longest gap",
            "sum of the lengths of consecutive frames missing or late, of the longest such run",
            "talkspurt's own measure",
        ).lower_is_better();
    }
    of_fields {
        /// Frames of video (of a replay: packets with one timestamp) captured in the window. Those
        /// that were not complete and whose deadline would have come after the end of the run are
        /// not counted.
        video_frames = FRAMES.described(
            "frames",
            "runs of packets made at one instant of capture",
            "talkspurt's own count",
        ), |row| row.video.as_ref().map(|video| video.frames);
        /// Frames of which every packet was delivered, late or not.
        video_frames_complete = FRAMES.described(
            "complete",
            "frames with as many packets delivered as made",
            "talkspurt's own count",
        ).higher_is_better(), |row| row.video.as_ref().map(|video| video.complete);
        /// Complete frames whose last packet came after the deadline.
        video_frames_late = FRAMES.described(
            "late",
            "delivery of the last packet − capture > deadline",
            "talkspurt's own count",
        ).lower_is_better(), |row| row.video.as_ref().map(|video| video.late);
        /// From a frame's capture to the delivery of its last packet: send queue, the time its
        /// packets take one after another, network and what the transport does about losses.
        frame_delay_p50_s = MILLISECONDS.described(
            "frame delay, median",
            "median over the complete frames",
            "talkspurt's own measure",
        ).lower_is_better(), |row| row.video.as_ref().and_then(|video| video.delay_s[0]);
        /// Nineteen of twenty complete frames took no longer than this.
        frame_delay_p95_s = MILLISECONDS.described(
            "frame delay, 95 %",
            "95th percentile over the complete frames",
            "talkspurt's own measure",
        ).lower_is_better(), |row| row.video.as_ref().and_then(|video| video.delay_s[1]);
        /// The slowest frame that was completed.
        frame_delay_max_s = MILLISECONDS.described(
            "frame delay, longest",
            "maximum over the complete frames",
            "talkspurt's own measure",
        ).lower_is_better(), |row| row.video.as_ref().and_then(|video| video.delay_s[2]);
        /// The E-model's rating of the call, 0 to 100, from delay, loss and codec. 93.2 is a call
        /// with nothing wrong, and 0 is as bad as it gets, however little was heard. It is a
        /// planning estimate, not a listening test.
        r_factor = Metric::of("1", "", 1.0, 1).described(
            "R",
            "R = Ro − Is − Id − Ie,eff + A, kept within 0 … 100",
            "ITU-T G.107 §7.1",
        ).higher_is_better().within(0.0, 100.0), |row| row.quality.r_factor;
        /// The mean opinion the E-model expects of a conversation, 1 (bad) to 4.5 (as good as
        /// telephone speech gets).
        mos = OPINION.described(
            "MOS",
            "MOS = 1 + 0.035 R + R (R − 60)(100 − R) · 7·10⁻⁶",
            "ITU-T G.107 Annex B",
        ).higher_is_better().within(1.0, 4.5), |row| row.quality.mos;
        /// Points of MOS that the mouth-to-ear delay cost.
        mos_lost_to_delay = OPINION.described(
            "lost to delay",
            "MOS gained by taking delay and echo away, averaged over the orders of taking causes \
             away",
            "ITU-T G.107 §7; shares after Shapley (1953), so that they add up",
        ).lower_is_better(), |row| row.quality.mos_lost_to_delay;
        /// Points of MOS that lost and late frames cost.
        mos_lost_to_loss = OPINION.described(
            "lost to loss",
            "MOS gained by taking loss away, averaged over the orders of taking causes away",
            "ITU-T G.107 §7; shares after Shapley (1953), so that they add up",
        ).lower_is_better(), |row| row.quality.mos_lost_to_loss;
        /// Points of MOS that the codec itself cost; G.711 is the reference and costs none.
        mos_lost_to_codec = OPINION.described(
            "lost to codec",
            "MOS gained by Ie = 0, averaged over the orders of taking causes away",
            "ITU-T G.107 §7; shares after Shapley (1953), so that they add up",
        ).lower_is_better(), |row| row.quality.mos_lost_to_codec;
    }
}

/// The `flows` table.
pub(crate) fn table(rows: &[FlowSummary]) -> arrow_array::RecordBatch {
    let columns = Columns::default()
        .text("name", rows.iter().map(|row| row.name.as_str()))
        .text("transport", rows.iter().map(|row| row.transport.as_str()))
        .text("source", rows.iter().map(|row| row.source.as_str()))
        .text("from", rows.iter().map(|row| row.from.as_str()))
        .text("to", rows.iter().map(|row| row.to.as_str()))
        .maybe_text("group", rows.iter().map(|row| row.group.as_deref()));
    numbers(columns, rows)
        .maybe_text("quality_note", rows.iter().map(|row| row.quality.note.as_deref()))
        .finish()
}

/// Columns of the `flows` table that the E-model computes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Quality {
    /// Transmission rating (ITU-T G.107).
    pub r_factor: Option<f64>,
    /// Estimated mean opinion score.
    pub mos: Option<f64>,
    /// The part lost to delay.
    pub mos_lost_to_delay: Option<f64>,
    /// The part lost to packet loss.
    pub mos_lost_to_loss: Option<f64>,
    /// The part lost to the codec.
    pub mos_lost_to_codec: Option<f64>,
    /// Assumptions, or why a value is absent.
    pub note: Option<String>,
}

impl FlowSummary {
    /// Checks that no packet was created or lost in the counting.
    ///
    /// # Errors
    /// Names the flow and the equation that does not hold, which indicates a bug in this program.
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
