//! The results of one direction of a flow: a row of the `flows` table. One table defines the fields, the
//! columns and the entries of the metric catalogue.

use talkspurt_proto::metric::{
    BYTES, FRAMES, KILOBITS, MILLISECONDS, Metric, OPINION, PACKETS, View,
};

use crate::columns::{Columns, summary};
use crate::video::VideoSummary;

summary! {
    /// The results of one direction of a flow: a row of the `flows` table.
    FlowSummary, FLOW_METRICS, numbers:
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
        /// What is heard in place of codecs without an encoder; filled in likewise.
        stand_in: Option<String>,
        /// Notes that match no account (a packet settled twice or never sent): always 0, unless this
        /// program has a bug.
        unaccounted_notes: u64,
        /// Redundancy that the codec could not make, and which bit rate has it.
        redundancy_note: Option<String>,
        /// The messages of an external stack, over the whole run.
        messages: Option<MessageAccount>,
    }
    metrics {
        /// Data units that the source generated in the window: speech frames, packets of a constant or
        /// on/off source, segment-sized pieces of bulk data.
        generated_packets: Option<u64> = PACKETS.known_to_sender().described(
            "generated",
            "generated = queued + handed to the transport + discarded by the send queue",
        );
        /// Units waiting for the transport when the run ended.
        queued_packets: Option<u64> = PACKETS.known_to_sender()
            .described("still queued", "counted at the end of the run");
        /// Units that the full send queue dropped because the transport had no capacity.
        discarded_packets: Option<u64> = PACKETS.known_to_sender()
            .described("discarded", "counted when dropped").lower_is_better();
        /// IP packets with payload that left the sender; TCP retransmissions count again.
        sent_packets: u64 = PACKETS.known_to_sender()
            .described("sent", "sent = received + lost + in flight")
            .titled("sent", "packets sent", "")
            .shown(&[View::Flows.at(4).rank(3), View::ReportFlows.at(1)]);
        /// IP packets with payload that reached the other end.
        received_packets: u64 = PACKETS.known_to_receiver()
            .described("received", "counted on arrival");
        /// IP packets with payload that the network dropped: full queues, the medium, outages, or
        /// lengths above a link's MTU.
        lost_packets: u64 = PACKETS.described("lost", "lost = sent − received − in flight")
            .lower_is_better().titled("lost", "packets lost", "")
            .shown(&[View::Flows.at(5).rank(2), View::ReportFlows.at(2)]);
        /// IP packets with payload still in flight when the run ended.
        in_flight_packets: u64 = PACKETS.described("in flight", "counted at the end of the run");
        /// Packets without payload: connection set-up, pure acknowledgements, RTCP reports.
        control_packets: u64 = PACKETS.known_to_sender()
            .described("control", "counted apart from sent packets");
        /// Packets of feedback, which the flow's receiver sends: reports on single packets for the controller
        /// of its session, and requests for repair. Of several flows in a session, counted at the one that
        /// sends it; they are control packets of the other direction. Null without any, and over other
        /// transports than UDP.
        feedback_packets: Option<u64> = PACKETS.known_to_receiver()
            .described("feedback", "counted when sent, by the receiver").source("RFC 8888");
        /// Bytes of these packets, including headers.
        feedback_bytes: Option<u64> = BYTES.known_to_receiver()
            .described("feedback bytes", "Σ IP length of feedback packets").source("RFC 8888 §4");
        /// Packets of repair: retransmissions and parity. They count as sent packets, too. Null without any.
        repair_packets: Option<u64> = PACKETS.known_to_sender()
            .described("repair", "counted when sent").source("RFC 4588, RFC 8627");
        /// Bytes of these RTP packets, without the headers of the layers below.
        repair_bytes: Option<u64> = BYTES.known_to_sender()
            .described("repair bytes", "Σ length of RTP packets of repair");
        /// Packets that only fill the path, since a controller probes it or grows with losses: repeated
        /// media, or padding alone. They count as sent packets, too. Null without any.
        padding_packets: Option<u64> = PACKETS.known_to_sender()
            .described("padding", "counted when sent").source("RFC 3550 §5.1, RFC 4588");
        /// Bytes of these RTP packets, without the headers of the layers below.
        padding_bytes: Option<u64> = BYTES.known_to_sender()
            .described("padding bytes", "Σ length of RTP packets of padding");
        /// Packets that the other end rejected on arrival: wrong checksum, numbers outside its windows,
        /// wrong tag, or unexpected. TCP rejects data it already has. Packets of a side without a
        /// source count for the side with one.
        rejected_packets: Option<u64> = PACKETS.known_to_receiver()
            .described("rejected", "counted by the receiving end, by the time they came")
            .lower_is_better();
        /// Rejected packets with a wrong checksum: damaged on the path.
        damaged_packets: Option<u64> = PACKETS.known_to_receiver()
            .described("damaged", "counted by the receiving end, by the time they came")
            .lower_is_better();
        /// Bytes of IP packets with payload that left the sender, including headers.
        sent_bytes: u64 = BYTES.known_to_sender().described(
            "bytes sent",
            "payload + media headers + transport headers + network headers",
        );
        /// Bytes of IP packets with payload, sent in the window, that reached the other end, including headers.
        received_bytes: u64 = BYTES.known_to_receiver()
            .described("bytes received", "Σ IP length of received packets");
        /// IP headers. Link framing is not counted.
        network_header_bytes: u64 = BYTES.known_to_sender()
            .described("network headers", "IPv4: 20 bytes a packet; IPv6: 40 bytes");
        /// Transport headers (UDP, TCP …), including options.
        transport_header_bytes: u64 = BYTES.known_to_sender()
            .described("transport headers", "UDP: 8 bytes a packet; TCP: 20 bytes and its options");
        /// RTP headers and, in a byte stream, the length field before each packet (RFC 4571). TCP
        /// retransmissions count as payload.
        media_header_bytes: u64 = BYTES.known_to_sender()
            .described("media headers", "12 bytes a frame over UDP, 14 in a stream");
        /// Payload, each time it was sent: speech, and with TCP its framing and retransmissions.
        payload_bytes: u64 = BYTES.known_to_sender()
            .described("payload", "bytes of transport payload − media headers");
        /// Received IP bytes, including headers and retransmissions.
        throughput_bps: Option<f64> = KILOBITS.known_to_receiver()
            .described("throughput", "8 × IP bytes received in the window ÷ length of the window")
            .source("RFC 5136 §2.3");
        /// Data delivered to the receiving application, each byte once, without headers and retransmissions.
        goodput_bps: Option<f64> = KILOBITS.known_to_receiver().described(
            "goodput",
            "8 × payload bytes delivered in the window ÷ length of the window",
        ).source("RFC 2647 §3.17").higher_is_better().titled("goodput", "", "")
            .shown(&[
                View::Flows.at(0), View::StudyFlows.at(0), View::ReportFlows.at(0),
                View::ReportStudy.at(11), View::Summary.at(0), View::Notebook.at(0),
                View::Figures.at(9),
            ]);
        /// Minimum network delay of data packets.
        delay_min_s: Option<f64> = MILLISECONDS.known_to_receiver()
            .described("delay, minimum", "minimum of arrival − departure").source("RFC 7679 §5.3")
            .lower_is_better();
        /// Mean one-way network delay of data packets, from leaving the sender to arrival. Waiting in
        /// the sender's own queue is not included.
        delay_mean_s: Option<f64> = MILLISECONDS.known_to_receiver()
            .described("delay, mean", "mean of arrival − departure").source("RFC 7679")
            .lower_is_better().titled("", "", "delay mean")
            .shown(&[
                View::StudyFlows.at(3).rank(7).below(), View::ReportStudy.at(5),
                View::Summary.at(3),
            ]);
        /// Median one-way network delay of data packets, from leaving the sender to arrival. Waiting in
        /// the sender's own queue is not included.
        delay_p50_s: Option<f64> = MILLISECONDS.known_to_receiver()
            .described("delay, median", "50th percentile of arrival − departure")
            .source("RFC 7679 §5.1").lower_is_better()
            .titled("delay p50", "network delay p50", "delay p50")
            .shown(&[
                View::Flows.at(1).rank(1), View::StudyFlows.at(4).rank(10), View::ReportFlows.at(3),
                View::ReportStudy.at(6), View::Summary.at(4), View::Notebook.at(1),
            ]);
        /// Network delay that 95 % of data packets did not exceed.
        delay_p95_s: Option<f64> = MILLISECONDS.known_to_receiver()
            .described("delay, 95 %", "95th percentile of arrival − departure")
            .source("RFC 7679 §5.1").lower_is_better()
            .titled("delay p95", "network delay p95", "delay p95")
            .shown(&[
                View::Flows.at(2).rank(4), View::StudyFlows.at(5).rank(11), View::ReportFlows.at(4),
                View::ReportStudy.at(7), View::Summary.at(5), View::Notebook.at(2),
                View::Figures.at(8),
            ]);
        /// Network delay that 99 % of data packets did not exceed.
        delay_p99_s: Option<f64> = MILLISECONDS.known_to_receiver()
            .described("delay, 99 %", "99th percentile of arrival − departure")
            .source("RFC 7679 §5.1").lower_is_better();
        /// Maximum network delay of data packets.
        delay_max_s: Option<f64> = MILLISECONDS.known_to_receiver()
            .described("delay, maximum", "maximum of arrival − departure").source("RFC 7679")
            .lower_is_better().shown(&[View::ReportFlows.at(5)]);
        /// Median time from a sound's capture to its playout at the far end.
        mouth_to_ear_p50_s: Option<f64> = MILLISECONDS.described(
            "mouth-to-ear delay, median",
            "median of (playout of a frame's first sample − its capture)",
        ).source("ITU-T G.114 §1").lower_is_better().shown(&[View::Summary.at(12)]);
        /// The delay that speakers notice, and that of the opinion score, from a sound's capture to its playout
        /// at the far end. It includes packetisation, send queue, handshake, network, jitter buffer and, where
        /// used, the 3.75 ms delay of concealment by G.711 Appendix I.
        mouth_to_ear_mean_s: Option<f64> = MILLISECONDS.described(
            "mean mouth-to-ear delay",
            "mean of (playout of a frame's first sample − its capture)",
        ).source("ITU-T G.114 §1").lower_is_better()
            .titled("mouth-to-ear mean", "mean mouth-to-ear delay", "mouth-to-ear mean")
            .shown(&[
                View::Calls.at(1).rank(1), View::StudyCalls.at(0).rank(2), View::ReportCalls.at(1),
                View::ReportStudyCalls.at(1), View::ReportStudy.at(2), View::Summary.at(7),
                View::Notebook.at(3), View::Figures.at(2),
            ]);
        /// Longest time from a sound's capture to its playout.
        mouth_to_ear_max_s: Option<f64> = MILLISECONDS.described(
            "mouth-to-ear delay, maximum",
            "maximum of (playout of a frame's first sample − its capture)",
        ).source("ITU-T G.114 §1").lower_is_better();
        /// How much later than the speech of its RTP session a picture is seen: above 0, its sound is heard
        /// first. Receivers that synchronise both delay the earlier one by as much.
        av_skew_s: Option<f64> = MILLISECONDS.described(
            "picture behind sound", "frame delay p50 − median mouth-to-ear delay of the session's speech",
        ).source("talkspurt's own measure").within(-1e6, f64::INFINITY)
            .titled("behind sound", "picture behind sound", "behind sound")
            .shown(&[View::Video.at(11).rank(5), View::StudyVideo.at(9).rank(18)]);
        /// Time that the first speech frame waited for the transport's handshake. A receiver that
        /// anchors playout at the first arrival plays the whole call that much later.
        handshake_wait_s: Option<f64> = MILLISECONDS.known_to_sender().described(
            "handshake wait",
            "opening of the connection − first frame ready, at least 0; none without a handshake",
        ).lower_is_better();
        /// Variation of arrival times: the smoothed difference between the spacing of arrivals and the
        /// spacing of departures.
        jitter_s: Option<f64> = MILLISECONDS.known_to_receiver()
            .described("jitter", "J ← J + (|D| − J) / 16, averaged over the window")
            .source("RFC 3550 §6.4.1 and A.8").lower_is_better().titled("jitter", "", "")
            .shown(&[
                View::Flows.at(3).rank(6), View::StudyFlows.at(6).rank(8).below(),
                View::ReportFlows.at(6), View::ReportStudy.at(8), View::Summary.at(6),
            ]);
        /// Messages that had arrived but waited for an earlier message of their stream. SCTP only.
        held_back_packets: Option<u64> = PACKETS.known_to_receiver().described(
            "waited for order",
            "messages delivered that had waited for an earlier one of their stream (RFC 9260 §6.6)",
        ).lower_is_better();
        /// Mean time a message waited at the receiver for earlier ones of its stream. A flow on its own
        /// stream waits only for its own losses; unordered messages never wait. SCTP only.
        head_of_line_mean_s: Option<f64> = MILLISECONDS.known_to_receiver().described(
            "head-of-line wait",
            "mean over all messages delivered of (delivery − arrival of its last part), RTCP apart",
        ).source("RFC 9260 §6.6").lower_is_better();
        /// Longest wait of a message at the receiver for earlier ones of its stream.
        head_of_line_max_s: Option<f64> = MILLISECONDS.known_to_receiver().described(
            "head-of-line wait, maximum",
            "maximum of (delivery − arrival of its last part), RTCP apart",
        ).source("RFC 9260 §6.6").lower_is_better();
        /// Voice frames that arrived after their playout time; they count as lost.
        late_packets: Option<u64> = PACKETS
            .described("late", "delivered after their playout instant").lower_is_better()
            .titled("late", "frames late", "")
            .shown(&[View::Flows.at(6).rank(5)]);
        /// Voice frames that did not arrive in time, but whose sound was in a later packet that did (RED,
        /// in-band FEC, DRED), or that parity packets restored (FlexFEC). The listener hears them.
        recovered_packets: Option<u64> = PACKETS
            .described("recovered", "frames played from the redundancy of later packets")
            .titled("recovered", "frames recovered", "").shown(&[View::Flows.at(7).rank(5)]);
        /// Share of the received packets with in-band FEC of Opus. Absent unless `opus.fec` asks for it.
        fec_ratio: Option<f64> = Metric::of("1", "%", 100.0, 1)
            .described("with FEC", "packets with FEC ÷ packets of speech delivered")
            .source("RFC 6716 §2.1.7").within(0.0, 1.0).titled("with FEC", "packets with FEC", "")
            .shown(&[View::ReportFlows.at(7)]);
        /// Share of the received packets with deep redundancy (DRED) of Opus. Absent unless `opus.dred` asks
        /// for it.
        dred_ratio: Option<f64> = Metric::of("1", "%", 100.0, 1)
            .described("with DRED", "packets with DRED ÷ packets of speech delivered")
            .source("libopus: opus_dred_parse").within(0.0, 1.0)
            .titled("with DRED", "packets with DRED", "").shown(&[View::ReportFlows.at(8)]);
        /// Mean of the speech that the deep redundancy of a packet covers, over the packets with any.
        dred_depth_mean_s: Option<f64> = MILLISECONDS.described(
            "depth of DRED, mean",
            "mean of the whole packets before it that the redundancy of a packet covers",
        ).source("libopus: opus_dred_parse").titled("depth of DRED", "", "")
            .shown(&[View::ReportFlows.at(9)]);
        /// Voice frames neither delivered nor recovered: lost, discarded, or still queued or in flight at their
        /// playout time. Frames due after the end of the run are not judged.
        missing_packets: Option<u64> = PACKETS
            .described("missing", "judged frames − delivered frames − recovered frames")
            .lower_is_better();
        /// Share of voice frames that the listener did not hear, for any reason.
        loss_ratio: Option<f64> = Metric::of("1", "%", 100.0, 2)
            .described("effective loss", "(missing + late) ÷ judged frames")
            .source("ITU-T G.107 §7.4 (Ppl); loss and discard as in RFC 3611 §4.7.1")
            .lower_is_better().within(0.0, 1.0).shown(&[View::Summary.at(8)]);
        /// Time for which adaptive playout stood still because nothing had arrived to play.
        paused_s: Option<f64> = MILLISECONDS.described(
            "pauses of playout",
            "sum of the expansions before frames that arrived later than playout expected",
        ).source("talkspurt's own measure").lower_is_better();
        /// Share of speech time that was concealed or skipped; the loss of the opinion score. It differs from
        /// the effective loss where playout paused. Its parts are `unheard_lost_ratio`, `unheard_late_ratio`
        /// and `unheard_paused_ratio`.
        concealed_ratio: Option<f64> = Metric::of("1", "%", 100.0, 2).described(
            "unheard",
            "(missing + late + pauses in frames) ÷ (judged frames + pauses in frames)",
        ).source("ITU-T G.107 §7.4 (Ppl)").lower_is_better().within(0.0, 1.0)
            .titled("unheard", "", "unheard")
            .shown(&[
                View::Calls.at(0), View::StudyCalls.at(1).rank(1), View::ReportCalls.at(2),
                View::ReportStudyCalls.at(2), View::ReportStudy.at(3), View::Notebook.at(4),
                View::Figures.at(3),
            ]);
        /// The part of the unheard share from frames that were neither delivered nor recovered.
        unheard_lost_ratio: Option<f64> = Metric::of("1", "%", 100.0, 2)
            .described("unheard: lost", "missing ÷ (judged frames + pauses in frames)")
            .source("talkspurt's own measure").lower_is_better().within(0.0, 1.0)
            .shown(&[View::ReportCalls.at(3), View::ReportStudyCalls.at(3)]);
        /// The part of the unheard share from frames delivered after their playout.
        unheard_late_ratio: Option<f64> = Metric::of("1", "%", 100.0, 2)
            .described("unheard: late", "late ÷ (judged frames + pauses in frames)")
            .source("talkspurt's own measure").lower_is_better().within(0.0, 1.0)
            .shown(&[View::ReportCalls.at(4), View::ReportStudyCalls.at(4)]);
        /// The part of the unheard share from pauses of adaptive playout.
        unheard_paused_ratio: Option<f64> = Metric::of("1", "%", 100.0, 2)
            .described("unheard: paused", "pauses in frames ÷ (judged frames + pauses in frames)")
            .source("talkspurt's own measure").lower_is_better().within(0.0, 1.0)
            .shown(&[View::ReportCalls.at(5), View::ReportStudyCalls.at(5)]);
        /// Burstiness of loss: 1 for random losses, more if they cluster.
        burst_ratio: Option<f64> = Metric::of("1", "", 1.0, 2)
            .described("burst ratio", "mean length of a run of losses × (1 − loss ratio)")
            .source("ITU-T G.107 §7.4 (BurstR)").lower_is_better();
        /// Longest period of speech of which the listener heard nothing, not counting the speaker's own pauses.
        longest_gap_s: Option<f64> = Metric::of("s", "s", 1.0, 2).described(
            "longest gap",
            "sum of the lengths of consecutive frames missing or late, of the longest such run",
        ).source("talkspurt's own measure").lower_is_better()
            .shown(&[
                View::StudyCalls.at(2).rank(4), View::ReportStudyCalls.at(6),
                View::ReportStudy.at(4), View::Summary.at(9), View::Figures.at(4),
            ]);
    }
    of_fields {
        /// Video frames (of a replay: packets with one timestamp) captured in the window. Incomplete
        /// frames due after the end of the run are not counted.
        video_frames = |row| row.video.as_ref().map(|video| video.frames), FRAMES
            .described("frames", "runs of packets made at one instant of capture")
            .titled("frames", "", "")
            .shown(&[View::Video.at(0).rank(1), View::StudyVideo.at(0).rank(14)]);
        /// Frames that could be decoded, late or not: all their packets were delivered and, of a source with
        /// `repair`, those of the frames before them since the last key frame.
        video_frames_complete = |row| row.video.as_ref().map(|video| video.complete), FRAMES
            .described("complete", "decodable frames")
            .higher_is_better().titled("complete", "", "")
            .shown(&[View::Video.at(1), View::StudyVideo.at(1), View::Figures.at(5)]);
        /// Share of video frames that were complete by their deadline.
        video_in_time_ratio = |row| row.video.as_ref().and_then(VideoSummary::in_time_ratio),
            Metric::of("1", "%", 100.0, 1)
            .described("frames in time", "(complete − late) ÷ frames")
            .source("talkspurt's own measure").higher_is_better().within(0.0, 1.0)
            .titled("in time", "frames in time", "frames in time")
            .shown(&[View::Video.at(6), View::StudyVideo.at(6)]);
        /// Frames shown per second: the complete ones, unless a later one was shown before.
        video_frame_rate = |row| row.video.as_ref().and_then(|video| video.shown_per_s),
            Metric::of("1/s", "fps", 1.0, 1)
            .described("frames shown", "shown frames ÷ time from the first capture to the last")
            .source("talkspurt's own measure").higher_is_better()
            .titled("shown", "frames shown", "shown").shown(&[View::Video.at(7).rank(4)]);
        /// Freezes: intervals between two shown frames of at least three times the mean of the last 30, and 150
        /// ms more than it; and a time at the end in which nothing more is shown. Null of a shared screen.
        video_freezes = |row| row.video.as_ref()?.freezes.map(|it| it.count),
            Metric::of("1", "", 1.0, 0)
            .described("freezes", "intervals ≥ max(3 · mean, mean + 150 ms)")
            .source("libwebrtc, VideoQualityObserver; freezeCount of getStats()").lower_is_better()
            .titled("freezes", "", "freezes")
            .shown(&[View::Video.at(8), View::StudyVideo.at(7).rank(1)]);
        /// Sum of the freezes.
        video_frozen_s = |row| row.video.as_ref()?.freezes.map(|it| it.total_s),
            Metric::of("s", "s", 1.0, 2).described("frozen", "Σ freezes")
            .source("libwebrtc, VideoQualityObserver; totalFreezesDuration of getStats()")
            .lower_is_better().titled("frozen", "frozen in all", "frozen")
            .shown(&[View::Video.at(9), View::StudyVideo.at(8)]);
        /// Longest freeze.
        video_longest_freeze_s = |row| row.video.as_ref()?.freezes.map(|it| it.longest_s),
            Metric::of("s", "s", 1.0, 2).described("longest freeze", "maximum of the freezes")
            .source("talkspurt's own measure").lower_is_better()
            .titled("longest freeze", "", "longest freeze").shown(&[View::Video.at(10).rank(3)]);
        /// Complete frames that were shown only after the deadline.
        video_frames_late = |row| row.video.as_ref().map(|video| video.late), FRAMES
            .described("late", "shown − capture > deadline").lower_is_better()
            .titled("late", "", "")
            .shown(&[View::Video.at(2), View::StudyVideo.at(2).rank(13), View::Figures.at(6)]);
        /// Time from a frame's capture until it is shown: send queue, sending of its packets one after another,
        /// network, recovery from losses and, of a source with `repair`, the wait that makes frames even.
        frame_delay_p50_s = |row| row.video.as_ref().and_then(|video| video.delay_s[0]), MILLISECONDS
            .described("frame delay p50", "median over the complete frames")
            .source("talkspurt's own measure").lower_is_better()
            .titled("delay p50", "frame delay p50", "frame delay p50")
            .shown(&[View::Video.at(3).rank(2), View::StudyVideo.at(3).rank(15)]);
        /// Delay that 95 % of complete frames did not exceed.
        frame_delay_p95_s = |row| row.video.as_ref().and_then(|video| video.delay_s[1]), MILLISECONDS
            .described("frame delay p95", "95th percentile over the complete frames")
            .source("talkspurt's own measure").lower_is_better()
            .titled("delay p95", "frame delay p95", "frame delay p95")
            .shown(&[
                View::Video.at(4).rank(3), View::StudyVideo.at(4).rank(16), View::Figures.at(7),
            ]);
        /// Maximum delay of complete frames.
        frame_delay_max_s = |row| row.video.as_ref().and_then(|video| video.delay_s[2]), MILLISECONDS
            .described("longest frame delay", "maximum over the complete frames")
            .source("talkspurt's own measure").lower_is_better()
            .titled("longest delay", "longest frame delay", "longest frame delay")
            .shown(&[View::Video.at(5).rank(4), View::StudyVideo.at(5).rank(17)]);
        /// E-model rating of the call, 0 to 100, from delay, loss and codec. 93.2 is an unimpaired call; 0 is
        /// the lowest, however little was heard. It is a planning estimate, not a listening test.
        r_factor = |row| row.quality.r_factor, Metric::of("1", "", 1.0, 1)
            .described("R", "R = Ro − Is − Id − Ie,eff + A, kept within 0 … 100")
            .source("ITU-T G.107 §7.1").higher_is_better().within(0.0, 100.0).bounded_by("r_bound")
            .titled("R", "", "")
            .shown(&[
                View::Calls.at(2).rank(5), View::ReportCalls.at(0), View::ReportStudyCalls.at(0),
                View::ReportStudy.at(1), View::Summary.at(10), View::Notebook.at(5),
            ]);
        /// Mean opinion score of a conversation as estimated by the E-model, from 1 (bad) to 4.5 (best
        /// possible for telephone speech).
        mos = |row| row.quality.mos, OPINION
            .described("MOS", "MOS = 1 + 0.035 R + R (R − 60)(100 − R) · 7·10⁻⁶")
            .source("ITU-T G.107 Annex B").higher_is_better().within(1.0, 4.5).bounded_by("mos_bound")
            .titled("MOS", "", "")
            .shown(&[
                View::Calls.at(3), View::StudyCalls.at(3), View::ReportStudy.at(0),
                View::Summary.at(11), View::Notebook.at(6), View::Figures.at(0),
            ]);
        /// R with each input outside the range of the E-model at the limit of its range. Inside, it is R;
        /// outside, R is not validated, but lies below.
        r_bound = |row| row.quality.r_bound, Metric::of("1", "", 1.0, 1)
            .described("bound of R", "R with delay ≤ 500 ms, loss ≤ 20 %, burst ratio ≤ 8 (2 from 2 % of loss)")
            .source("ITU-T G.107 §7.7").higher_is_better().within(0.0, 100.0);
        /// MOS with each input outside the range of the E-model at the limit of its range. Inside, it is MOS;
        /// outside, MOS is not validated, but lies below.
        mos_bound = |row| row.quality.mos_bound, OPINION
            .described("bound of MOS", "MOS of the bound of R").source("ITU-T G.107 §7.7, Annex B")
            .higher_is_better().within(1.0, 4.5);
        /// Mean opinion score of a conversation as estimated by a fit of this project to PESQ and ViSQOL, less
        /// the delay impairment of G.107: for codecs without a published impairment, Opus first. It is not
        /// ITU-T's, and nobody listened.
        estimated_mos = |row| row.quality.estimated_mos, OPINION
            .described("estimated MOS", "MOS of R = 93.2 − Ie,fitted − Id")
            .source("our fit: docs/validation/estimate.md").higher_is_better().within(1.0, 4.5)
            .bounded_by("estimated_mos_bound")
            .titled("estimated\u{a0}MOS", "estimated MOS (our fit)", "")
            .shown(&[
                View::Calls.at(7), View::StudyCalls.at(4), View::ReportCalls.at(9),
                View::ReportStudyCalls.at(7), View::ReportStudy.at(12), View::Summary.at(13),
                View::Notebook.at(7), View::Figures.at(1),
            ]);
        /// The estimate with each input outside the range of the fit at the limit of its range. Inside, it is
        /// the estimate; outside, the estimate is not validated, but lies below.
        estimated_mos_bound = |row| row.quality.estimated_mos_bound, OPINION
            .described("bound of the estimate", "the estimate with delay ≤ 500 ms and losses within the fit")
            .source("our fit: docs/validation/estimate.md").higher_is_better().within(1.0, 4.5);
        /// MOS points lost to mouth-to-ear delay.
        mos_lost_to_delay = |row| row.quality.mos_lost_to_delay, OPINION.described(
            "lost to delay",
            "MOS gained by taking delay and echo away, averaged over the orders of taking causes \
             away",
        ).source("ITU-T G.107 §7; shares after Shapley (1953), so that they add up")
            .lower_is_better().titled("lost\u{a0}to delay", "MOS lost to delay", "")
            .shown(&[View::Calls.at(4).rank(4), View::ReportCalls.at(6)]);
        /// MOS points lost to lost and late frames.
        mos_lost_to_loss = |row| row.quality.mos_lost_to_loss, OPINION.described(
            "lost to loss",
            "MOS gained by taking loss away, averaged over the orders of taking causes away",
        ).source("ITU-T G.107 §7; shares after Shapley (1953), so that they add up")
            .lower_is_better().titled("lost\u{a0}to loss", "MOS lost to loss", "")
            .shown(&[View::Calls.at(5).rank(3), View::ReportCalls.at(7)]);
        /// MOS points lost to the codec itself; G.711 is the reference and loses none.
        mos_lost_to_codec = |row| row.quality.mos_lost_to_codec, OPINION.described(
            "lost to codec",
            "MOS gained by Ie = 0, averaged over the orders of taking causes away",
        ).source("ITU-T G.107 §7; shares after Shapley (1953), so that they add up")
            .lower_is_better().titled("lost\u{a0}to codec", "MOS lost to codec", "")
            .shown(&[View::Calls.at(6).rank(6), View::ReportCalls.at(8)]);
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
        .maybe_text("quality_limits", rows.iter().map(|row| row.quality.limits.as_deref()))
        .maybe_text("quality_note", rows.iter().map(|row| row.quality.note.as_deref()))
        .maybe_text(
            "estimate_limits",
            rows.iter().map(|row| row.quality.estimate_limits.as_deref()),
        )
        .maybe_text("stand_in", rows.iter().map(|row| row.stand_in.as_deref()))
        .maybe_text("redundancy_note", rows.iter().map(|row| row.redundancy_note.as_deref()))
        .finish()
}

/// What became of the messages of one direction over an external stack, reports included: handed over =
/// delivered + discarded + lost + in flight.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MessageAccount {
    /// Handed over to the stack.
    pub handed_over: u64,
    /// Delivered by the stack of the other end.
    pub delivered: u64,
    /// Discarded by the stack.
    pub discarded: u64,
    /// Lost in the network, as far as a stack knows.
    pub lost: u64,
    /// What the stack may still deliver by its own count: those in flight, and those delivered whose
    /// acknowledgement is.
    pub open: Option<u64>,
}

impl MessageAccount {
    /// Messages whose fate is open: waiting in the stack, in the network, or lost without its knowledge.
    ///
    /// # Errors
    /// More messages have left the stack than were handed over, or one vanished in it.
    pub fn in_flight(&self) -> Result<u64, String> {
        let Self { handed_over, delivered, discarded, lost, open } = *self;
        let account = || {
            format!(
                "{handed_over} messages handed over to the stack, but {delivered} delivered + \
                 {discarded} discarded + {lost} lost"
            )
        };
        let rest = handed_over.checked_sub(delivered + discarded + lost).ok_or_else(account)?;
        match open {
            Some(open) if rest > open => {
                Err(format!("{} + at most {open} in flight, as it says", account()))
            }
            _ => Ok(rest),
        }
    }
}

/// Columns of the `flows` table that the E-model computes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Quality {
    /// Transmission rating (ITU-T G.107).
    pub r_factor: Option<f64>,
    /// Estimated mean opinion score.
    pub mos: Option<f64>,
    /// R at the limits of the ranges that were exceeded.
    pub r_bound: Option<f64>,
    /// The same for MOS.
    pub mos_bound: Option<f64>,
    /// The part lost to delay.
    pub mos_lost_to_delay: Option<f64>,
    /// The part lost to packet loss.
    pub mos_lost_to_loss: Option<f64>,
    /// The part lost to the codec.
    pub mos_lost_to_codec: Option<f64>,
    /// Ranges of ITU-T G.107 §7.7 that were exceeded, separated by semicolons.
    pub limits: Option<String>,
    /// Opinion score by a curve that this project fitted.
    pub estimated_mos: Option<f64>,
    /// The same at the limits of the ranges that were exceeded.
    pub estimated_mos_bound: Option<f64>,
    /// Ranges of the fit that were exceeded, separated by semicolons.
    pub estimate_limits: Option<String>,
    /// Assumptions, or why a value is absent.
    pub note: Option<String>,
}

impl FlowSummary {
    /// Checks that no packet was created or lost in the counting.
    ///
    /// # Errors
    /// Names the flow and the equation that does not hold, which indicates a bug in this program.
    pub fn conservation(&self) -> Result<(), String> {
        // What programs generate is not known.
        if let (Some(generated), Some(queued), Some(discarded)) =
            (self.generated_packets, self.queued_packets, self.discarded_packets)
            && generated != queued + self.handed_over_packets + discarded
        {
            let handed_over = self.handed_over_packets;
            return Err(format!(
                "{}: {generated} frames generated, but {queued} queued + {handed_over} handed over + \
                 {discarded} discarded",
                self.name
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
        if let Some(messages) = &self.messages {
            messages.in_flight().map_err(|why| format!("{}: {why}", self.name))?;
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
