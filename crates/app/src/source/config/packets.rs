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
    /// `-show_frames`. Times count from the first. Either this or `rate`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<PathBuf>,
    /// Restart the file when it ends, until the flow stops.
    #[serde(default)]
    pub repeat: bool,
    /// Constant payload bit rate: all frames have the same size.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<Rate>,
    /// Frame interval with `rate`, or if the `file` has no times. The start of the flow is also spread
    /// over this time. Absent: 40 ms, which is 25 frames per second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub frame: Option<Duration>,
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
        self.frame.unwrap_or(Duration::from_millis(40))
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
