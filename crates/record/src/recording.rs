//! The answer of a run: summaries to read in Rust, and tables by name for everyone else.

use arrow_array::RecordBatch;
use talkspurt_proto::probe::Gauge;

use crate::columns::{Columns, Table};
use crate::frame_state::FrameOutcome;
use crate::layout::Layout;
use crate::links::{self, LinkSummary, Links};
use crate::recorder::{EventRow, FrameTimes, GaugeRow};
use crate::series::Series;
use crate::sojourn::Sojourns;
use crate::summary::FlowSummary;
use crate::video::{self, VideoSummary};

/// Everything a [`Recorder`](crate::Recorder) kept.
#[derive(Debug)]
pub struct Recording {
    /// Accounts of the flows; their `quality` may be filled in before the table is asked for.
    pub flows: Vec<FlowSummary>,
    /// Accounts of the links.
    pub links: Vec<LinkSummary>,
    pub(crate) layout: Layout,
    pub(crate) series: Series,
    pub(crate) link_samples: Links,
    pub(crate) sojourns: Option<Sojourns>,
    /// By peer.
    pub(crate) frames: Vec<Vec<FrameTimes>>,
    /// By peer.
    pub(crate) fates: Vec<Vec<FrameOutcome>>,
    /// By peer: the rung of each frame, empty for a peer that never changed it.
    pub(crate) rungs: Vec<Vec<u8>>,
    /// By peer that sends.
    pub(crate) videos: Vec<(usize, Vec<video::Frame>)>,
    pub(crate) gauges: Vec<GaugeRow>,
    pub(crate) events: Vec<EventRow>,
}

impl Recording {
    /// Names that [`Self::table`] knows.
    pub const TABLES: [&str; 8] =
        ["flows", "links", "series", "link_series", "gauges", "frames", "video_frames", "events"];

    /// A table by name; `None` for an unknown name.
    #[must_use]
    pub fn table(&self, name: &str) -> Option<Table> {
        Some(match name {
            "flows" => flows_table(&self.flows).into(),
            "links" => links::table(&self.layout, &self.links).into(),
            "series" => self.series.table(&self.layout).into(),
            "link_series" => {
                self.link_samples.series_table(&self.layout, self.sojourns.as_ref()).into()
            }
            "gauges" => self.gauges_table().into(),
            "frames" => self.frames_table().into(),
            "video_frames" => video::table(&self.layout, &self.videos).into(),
            "events" => self.events_table().into(),
            _ => return None,
        })
    }

    /// Checks the accounts of every flow.
    ///
    /// # Errors
    /// The first equation that does not hold: then this program has a bug.
    pub fn conservation(&self) -> Result<(), String> {
        self.flows.iter().try_for_each(FlowSummary::conservation)
    }

    fn gauges_table(&self) -> RecordBatch {
        let rows = || self.gauges.iter();
        Columns::default()
            .time("time_s", rows().map(|row| row.at))
            .text("flow", rows().map(|row| self.layout.peer_name(row.peer).0))
            .text("side", rows().map(|row| self.layout.peer_name(row.peer).1))
            .text("gauge", rows().map(|row| gauge_name(row.gauge)))
            .float("value", rows().map(|row| row.value))
            .finish()
    }

    fn events_table(&self) -> RecordBatch {
        let rows = || self.events.iter();
        Columns::default()
            .time("time_s", rows().map(|row| row.at))
            .text("flow", rows().map(|row| self.layout.peer_name(row.peer).0))
            .text("side", rows().map(|row| self.layout.peer_name(row.peer).1))
            .text("event", rows().map(|row| row.event))
            .finish()
    }

    fn frames_table(&self) -> RecordBatch {
        let names: Vec<(usize, String)> =
            self.layout.directions().map(|direction| (direction.peer, direction.name())).collect();
        let rows = || names.iter().flat_map(|(peer, _)| &self.frames[*peer]);
        let fates = || names.iter().flat_map(|(peer, _)| &self.fates[*peer]);
        let rungs = names.iter().flat_map(|(peer, _)| {
            let rungs = &self.rungs[*peer];
            (0..self.frames[*peer].len()).map(|index| rungs.get(index).map(|rung| (*rung).into()))
        });
        let flows =
            names.iter().flat_map(|(peer, name)| self.frames[*peer].iter().map(move |_| name));
        let indices = names.iter().flat_map(|(peer, _)| 0..self.frames[*peer].len() as u64);
        Columns::default()
            .text("flow", flows.map(String::as_str))
            .count("index", indices)
            .maybe_time("captured_s", rows().map(|row| row.captured))
            .maybe_time("handed_over_s", rows().map(|row| row.handed_over))
            .maybe_time("delivered_s", rows().map(|row| row.delivered))
            .maybe_time("playout_s", rows().map(|row| row.playout))
            .maybe_text("fate", fates().map(|fate| fate.name()))
            .maybe_count("encoding", rungs)
            .finish()
    }
}

/// The word of a gauge in the `gauges` table.
pub(crate) const fn gauge_name(gauge: Gauge) -> &'static str {
    match gauge {
        Gauge::Cwnd => "cwnd",
        Gauge::Ssthresh => "ssthresh",
        Gauge::Flight => "flight",
        Gauge::Srtt => "srtt",
        Gauge::Rto => "rto",
        Gauge::Jitter => "jitter",
        Gauge::RtcpRtt => "rtcp_rtt",
        Gauge::CwndPackets => "cwnd_packets",
        Gauge::SsthreshPackets => "ssthresh_packets",
        Gauge::Pipe => "pipe",
        Gauge::AckRatio => "ack_ratio",
        Gauge::Rate => "rate",
        Gauge::ReceiveRate => "receive_rate",
        Gauge::EquationRate => "equation_rate",
        Gauge::RttSquareMean => "rtt_square_mean",
        Gauge::LossEventRate => "loss_event_rate",
        Gauge::LossInterval => "loss_interval",
        Gauge::Tokens => "tokens",
        Gauge::Encoding => "encoding",
        Gauge::PacingRate => "pacing_rate",
        Gauge::Bandwidth => "bandwidth",
        Gauge::MinRtt => "min_rtt",
        Gauge::InflightLongterm => "inflight_longterm",
        Gauge::Phase => "phase",
    }
}

fn flows_table(rows: &[FlowSummary]) -> RecordBatch {
    let columns = flows_texts(Columns::default(), rows);
    let columns = flows_counts(columns, rows);
    let columns = flows_times(columns, rows);
    let columns = flows_video(columns, rows);
    flows_quality(columns, rows).finish()
}

fn flows_video(columns: Columns, rows: &[FlowSummary]) -> Columns {
    let count =
        |of: fn(&VideoSummary) -> u64| rows.iter().map(move |row| row.video.as_ref().map(of));
    let delay = |which: usize| {
        rows.iter().map(move |row| row.video.as_ref().and_then(|video| video.delay_s[which]))
    };
    columns
        .maybe_count("video_frames", count(|video| video.frames))
        .maybe_count("video_frames_complete", count(|video| video.complete))
        .maybe_count("video_frames_late", count(|video| video.late))
        .maybe_float("frame_delay_p50_s", delay(0))
        .maybe_float("frame_delay_p95_s", delay(1))
        .maybe_float("frame_delay_max_s", delay(2))
}

fn flows_texts(columns: Columns, rows: &[FlowSummary]) -> Columns {
    columns
        .text("name", rows.iter().map(|row| row.name.as_str()))
        .text("transport", rows.iter().map(|row| row.transport.as_str()))
        .text("source", rows.iter().map(|row| row.source.as_str()))
        .text("from", rows.iter().map(|row| row.from.as_str()))
        .text("to", rows.iter().map(|row| row.to.as_str()))
        .maybe_text("group", rows.iter().map(|row| row.group.as_deref()))
}

fn flows_counts(columns: Columns, rows: &[FlowSummary]) -> Columns {
    columns
        .count("generated_packets", rows.iter().map(|row| row.generated_packets))
        .count("queued_packets", rows.iter().map(|row| row.queued_packets))
        .count("discarded_packets", rows.iter().map(|row| row.discarded_packets))
        .count("sent_packets", rows.iter().map(|row| row.sent_packets))
        .count("received_packets", rows.iter().map(|row| row.received_packets))
        .count("lost_packets", rows.iter().map(|row| row.lost_packets))
        .count("in_flight_packets", rows.iter().map(|row| row.in_flight_packets))
        .count("control_packets", rows.iter().map(|row| row.control_packets))
        .count("rejected_packets", rows.iter().map(|row| row.rejected_packets))
        .count("damaged_packets", rows.iter().map(|row| row.damaged_packets))
        .count("sent_bytes", rows.iter().map(|row| row.sent_bytes))
        .count("received_bytes", rows.iter().map(|row| row.received_bytes))
        .count("network_header_bytes", rows.iter().map(|row| row.network_header_bytes))
        .count("transport_header_bytes", rows.iter().map(|row| row.transport_header_bytes))
        .count("media_header_bytes", rows.iter().map(|row| row.media_header_bytes))
        .count("payload_bytes", rows.iter().map(|row| row.payload_bytes))
}

fn flows_times(columns: Columns, rows: &[FlowSummary]) -> Columns {
    columns
        .maybe_float("throughput_bps", rows.iter().map(|row| row.throughput_bps))
        .maybe_float("goodput_bps", rows.iter().map(|row| row.goodput_bps))
        .maybe_float("delay_min_s", rows.iter().map(|row| row.delay_min_s))
        .maybe_float("delay_mean_s", rows.iter().map(|row| row.delay_mean_s))
        .maybe_float("delay_p50_s", rows.iter().map(|row| row.delay_p50_s))
        .maybe_float("delay_p95_s", rows.iter().map(|row| row.delay_p95_s))
        .maybe_float("delay_p99_s", rows.iter().map(|row| row.delay_p99_s))
        .maybe_float("delay_max_s", rows.iter().map(|row| row.delay_max_s))
        .maybe_float("mouth_to_ear_p50_s", rows.iter().map(|row| row.mouth_to_ear_p50_s))
        .maybe_float("mouth_to_ear_max_s", rows.iter().map(|row| row.mouth_to_ear_max_s))
        .maybe_float("handshake_wait_s", rows.iter().map(|row| row.handshake_wait_s))
        .maybe_float("jitter_s", rows.iter().map(|row| row.jitter_s))
        .maybe_count("held_back_packets", rows.iter().map(|row| row.held_back_packets))
        .maybe_float("head_of_line_mean_s", rows.iter().map(|row| row.head_of_line_mean_s))
        .maybe_float("head_of_line_max_s", rows.iter().map(|row| row.head_of_line_max_s))
        .maybe_count("late_packets", rows.iter().map(|row| row.late_packets))
        .maybe_count("missing_packets", rows.iter().map(|row| row.missing_packets))
        .maybe_float("loss_ratio", rows.iter().map(|row| row.loss_ratio))
        .maybe_float("burst_ratio", rows.iter().map(|row| row.burst_ratio))
        .maybe_float("longest_gap_s", rows.iter().map(|row| row.longest_gap_s))
}

fn flows_quality(columns: Columns, rows: &[FlowSummary]) -> Columns {
    let quality = || rows.iter().map(|row| &row.quality);
    columns
        .maybe_float("r_factor", quality().map(|quality| quality.r_factor))
        .maybe_float("mos", quality().map(|quality| quality.mos))
        .maybe_float("mos_lost_to_delay", quality().map(|quality| quality.mos_lost_to_delay))
        .maybe_float("mos_lost_to_loss", quality().map(|quality| quality.mos_lost_to_loss))
        .maybe_float("mos_lost_to_codec", quality().map(|quality| quality.mos_lost_to_codec))
        .maybe_text("quality_note", quality().map(|quality| quality.note.as_deref()))
}
