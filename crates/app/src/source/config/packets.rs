//! Parameters of sources with RTP packets of varying size: video and captured packets.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use talkspurt_proto::time::Duration;
use talkspurt_proto::units::{Rate, Size};

use super::default_noise;

/// Video: frames, each split into RTP packets that leave together, the last with the marker (RFC 3551 §5).
/// Payload format headers of a codec are not counted. A frame is delivered if all its packets are.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Video {
    /// Frame sizes from an encoder, relative to the scenario's folder: a table (see `trace` of a link) with the
    /// columns `time` and `size`; or one size in bytes a line; or what ffprobe writes with `-show_packets` or
    /// `-show_frames`. Times count from the first. Either this or `rate`; an `encoder` takes another table.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<PathBuf>,
    /// Restart the file when it ends, until the flow stops.
    #[serde(default)]
    pub repeat: bool,
    /// Constant payload bit rate: all frames have the same size.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<Rate>,
    /// An encoder that follows the rate which the flow's `controller` asks for. With a `file`, that has the
    /// sizes of its frames at several rates (RFC 8593 §6): a table with a rate such as 500kbit/s at the head of
    /// each column and a row for each frame, the first a key frame.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub encoder: Option<Encoder>,
    /// Frame interval with `rate` or `encoder`, or if the `file` has no times. The start of the flow is also
    /// spread over this time. Absent: 40 ms, which is 25 frames per second, and with `encoder` 1/30 s.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub frame: Option<Duration>,
    /// Repair of what is lost, for an `encoder`. Payload has the form of VP8 (RFC 7741), a frame is decodable
    /// if those since the last key frame are, and the receiver requests a key frame if it waits for one (RFC
    /// 4585 §6.3.1). Over a transport that repairs all losses itself, there is nothing to request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repair: Option<Repair>,
    /// Maximum payload per packet; a frame's packets are filled in order. RTP's header of 12 bytes is added.
    #[serde(default = "Video::default_packet")]
    pub packet: Size,
    /// A frame completed later than this after its capture is late (ITU-T G.1010 gives 400 ms as the limit for
    /// a videophone's delay).
    #[serde(default = "default_deadline")]
    pub deadline: Duration,
    /// Seeded processing noise: each frame leaves up to this long after its capture, in order.
    #[serde(default = "default_noise")]
    pub noise: Duration,
}

impl Video {
    const fn default_packet() -> Size {
        Size::from_bytes(1200)
    }
    /// Frame interval if no file has times.
    #[must_use]
    pub fn frame(&self) -> Duration {
        let nanos = if self.encoder.is_some() { 33_333_333 } else { 40_000_000 };
        self.frame.unwrap_or(Duration::from_nanos(nanos))
    }
}

/// A video encoder that follows a target rate: the statistical model of RFC 8593 §5, whose example values are
/// the defaults unless something else is stated. Rates are those of RTP packets.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Encoder {
    /// Lowest rate (RFC 8593: R_min). The RFC's example is 150 kbit/s; that of RTP packets is lower at the same
    /// rate of IP packets.
    pub min: Rate,
    /// Highest rate (R_max).
    pub max: Rate,
    /// After it has followed a request, the encoder ignores others for this long (τ_v). RFC 8867 §4.3 has 100
    /// ms.
    pub reaction: Duration,
    /// A request that changes the rate by more than this share begins a burst; RFC 8593 says "abrupt". 0.5 as
    /// in syncodecs, by authors of the RFC.
    #[schemars(range(min = 0.0, max = 100.0))]
    pub abrupt: f64,
    /// Frames of a burst (K_d): the first has the size `burst`, the others are so small that the rate holds.
    #[schemars(range(min = 2, max = 1000))]
    pub burst_frames: u32,
    /// The first frame of a burst (K_B).
    pub burst: Size,
    /// Scale of the Laplacian deviations of frame intervals (SCALE_t).
    #[schemars(range(min = 0.0, max = 1.0))]
    pub time_spread: f64,
    /// Scale of the Laplacian deviations of frame sizes (SCALE_B).
    #[schemars(range(min = 0.0, max = 1.0))]
    pub size_spread: f64,
    /// A frame is skipped while what waits for the pacer needs longer than this.
    pub skip_behind: Duration,
    /// Share of the rate that the encoder leaves unused.
    #[schemars(range(min = 0.0, max = 0.9))]
    pub headroom: f64,
    /// Mean time between changes of a shared screen, at random times: each is a burst of `burst_frames`, and
    /// without a change there is one small frame a second, as in libwebrtc. Absent: a camera.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub changes: Option<Duration>,
}

impl Default for Encoder {
    fn default() -> Self {
        Self {
            min: Rate::from_bps(100_000),
            max: Rate::from_bps(1_500_000),
            reaction: Duration::from_millis(200),
            abrupt: 0.5,
            burst_frames: 8,
            burst: Size::from_bytes(13_500),
            time_spread: 0.15,
            size_spread: 0.15,
            skip_behind: Duration::from_millis(500),
            headroom: 0.0,
            changes: None,
        }
    }
}

/// Repair of video.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Repair {
    /// The receiver requests lost packets (RFC 4585 §6.2.1), and the sender repeats them in a stream of their
    /// own (RFC 4588). Without it, a loss means a request for a key frame.
    pub nack: bool,
}

impl Default for Repair {
    fn default() -> Self {
        Self { nack: true }
    }
}

/// The RTP packets of one source in a capture, replayed with their sizes and times. Media is not decoded:
/// packets of one timestamp are a frame, captured with its first packet.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Replay {
    /// Capture (pcap or pcapng) of RTP over UDP, relative to the scenario's folder.
    pub file: PathBuf,
    /// Synchronisation source (SSRC) to use if the capture holds several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ssrc: Option<u32>,
    /// Media clock rate in Hz, for jitter. Absent: the rate of RFC 3551 for the payload type, or 90000.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock: Option<u32>,
    /// A frame completed later than this after its capture is late.
    #[serde(default = "default_deadline")]
    pub deadline: Duration,
}

const fn default_deadline() -> Duration {
    Duration::from_millis(400)
}
