//! Sources: speech, constant and on/off bit rate, video, captured packets and bulk data.
//!
//! A timed source reports the instant of its next unit and returns the unit when polled; a bulk source returns
//! as much as there is room for. All times are by the local clock.

mod building;
mod bulk;
mod capture;
mod config;
mod encoder;
mod ffprobe;
mod frames;
mod paced;
mod rates;
mod spurts;
mod timed;

use std::fmt;
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub use bulk::{Bulk, Units};
use bytes::Bytes;
pub use capture::Capture;
pub use config::{
    Bulk as BulkConfig, Cbr, Conversation, Distribution, Encoder as EncoderConfig, KeepAlive,
    OnOff, Pauses, Poisson, Repair, Replay, Speech, StandIn, Talkspurts, Video, Web,
};
pub use frames::{FrameTrace, even};
pub use paced::{Paced, VIDEO_CLOCK};
pub use rates::FrameRates;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use talkspurt_proto::packet::Payload;
use talkspurt_proto::rate::Rung;
use talkspurt_proto::rng::Rng;
use talkspurt_proto::time::{Duration, Instant};
use talkspurt_proto::units::{Rate, Size};
use talkspurt_proto::validate::Validate;
pub use timed::Timed;

use crate::file::{self, Fault, Files};
use crate::recording::Recording;
pub use crate::recording::Vad;

/// RTP's fixed header (RFC 3550 §5.1).
const RTP_HEADER: u32 = 12;
/// The first dynamic payload type (RFC 3551 §3).
const DYNAMIC: u8 = 96;
/// Guaranteed by the scenario's checks for every source.
const UNITS_FIT: &str = "a run has fewer than 2^32 units of a source";

/// One unit of application data.
#[derive(Clone, Debug)]
pub struct Unit {
    /// Its number, from 0; a scenario whose units could exceed 32 bits is rejected before it runs.
    pub index: u32,
    /// Its position in steps of the media clock since the start: packet intervals or, where they may change,
    /// their greatest common divisor. After a silence, in which no units are made, it is ahead of the number.
    pub slot: u64,
    /// Index of its encoding, 0 being the best.
    pub encoding: u8,
    /// True for a packet of comfort noise, sent in silence.
    pub keep_alive: bool,
    /// First of a talkspurt.
    pub marker: bool,
    /// When its first sample was captured, by the local clock.
    pub captured: Instant,
    /// What it holds.
    pub payload: Payload,
}

/// External data of a source, read from its file.
#[derive(Clone, Debug, Default)]
pub enum Material {
    /// Nothing.
    #[default]
    None,
    /// Speech.
    Speech(Arc<Recording>),
    /// Frames of video.
    Frames(Arc<FrameTrace>),
    /// Frames of an encoder of video.
    Rates(Arc<FrameRates>),
    /// Packets.
    Packets(Arc<Capture>),
}

/// Context of a source: its rng and its active time, by the local clock.
#[derive(Debug)]
pub struct Setting {
    /// The source's own random stream.
    pub rng: Rng,
    /// The random stream shared by both sides of a conversation, and whether this one opens the flow.
    pub conversation: (Rng, bool),
    /// When it begins to send.
    pub start: Instant,
    /// When it stops.
    pub stop: Instant,
}

/// RTP packets whose media is not examined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PacketFormat {
    /// Payload type of all packets: a dynamic one (RFC 3551 §3), since both sides only need to agree on it.
    pub payload_type: u8,
    /// Media clock rate.
    pub clock_hz: u32,
    /// Mean packet size with RTP header, and mean packet interval.
    pub mean: Rung,
    /// Repair of lost packets.
    pub repair: Option<Repair>,
}

/// A running source that sends by its own clock.
pub trait Generator: fmt::Debug + Send {
    /// The unit that is due.
    fn take(&mut self, now: Instant) -> Option<Unit>;
    /// When the next unit leaves, by the local clock; `None` when there will be no more.
    fn due(&self) -> Option<Instant>;
    /// Congestion control asks the source to send at this rate, including media headers but not those of the
    /// transport.
    fn set_target_rate(&mut self, _target: Rate) {}
    /// What it made and the pacer holds back will take this long to leave.
    fn set_backlog(&mut self, _backlog: Duration, _skip: f64) {}
    /// The receiver cannot decode without a key frame. A request too soon after one is ignored, unless it
    /// `waits`.
    fn request_key_frame(&mut self, _now: Instant, _waits: bool) {}
}

/// A running source.
#[derive(Debug)]
pub enum Source {
    /// Speech, constant and on/off bit rate.
    Timed(Box<Timed>),
    /// Units at uneven times or of uneven sizes.
    Paced(Box<Paced>),
    /// Bulk data.
    Bulk(Bulk),
    /// Any other.
    Other(Box<dyn Generator>),
}

impl Source {
    /// The unit that is due; never of bulk data, which is polled with the room available.
    #[inline]
    pub fn take(&mut self, now: Instant) -> Option<Unit> {
        match self {
            Self::Timed(timed) => timed.take(now),
            Self::Paced(paced) => paced.take(now),
            Self::Bulk(_) => None,
            Self::Other(generator) => generator.take(now),
        }
    }

    /// When it is next due, by the local clock.
    #[must_use]
    #[inline]
    pub fn due(&self, now: Instant) -> Option<Instant> {
        match self {
            Self::Timed(timed) => timed.due(),
            Self::Paced(paced) => paced.due(),
            Self::Bulk(bulk) => bulk.resumes(now),
            Self::Other(generator) => generator.due(),
        }
    }

    /// True when no more units will follow.
    #[must_use]
    #[inline]
    pub fn is_done(&self, now: Instant) -> bool {
        match self {
            Self::Timed(timed) => timed.due().is_none(),
            Self::Paced(paced) => paced.due().is_none(),
            Self::Bulk(bulk) => bulk.is_done(now),
            Self::Other(generator) => generator.due().is_none(),
        }
    }

    /// The transport's congestion control requests this rate. Sources that cannot follow ignore it.
    pub fn set_target_rate(&mut self, target: Rate) {
        match self {
            Self::Timed(timed) => timed.set_target_rate(target),
            Self::Paced(_) | Self::Bulk(_) => {}
            Self::Other(generator) => generator.set_target_rate(target),
        }
    }

    /// See [`Generator::set_backlog`].
    pub fn set_backlog(&mut self, backlog: Duration, skip: f64) {
        if let Self::Other(generator) = self {
            generator.set_backlog(backlog, skip);
        }
    }

    /// See [`Generator::request_key_frame`].
    pub fn request_key_frame(&mut self, now: Instant, waits: bool) {
        if let Self::Other(generator) = self {
            generator.request_key_frame(now, waits);
        }
    }
}

/// The configuration of a source: its properties, and how it is built. Optional features have default
/// implementations.
pub trait SourceConfig: Validate + fmt::Debug {
    /// Builds the source; `unit_bytes` is the default unit length of bulk data.
    fn build(&self, material: &Material, unit_bytes: u32, setting: Setting) -> Source;
    /// The interval between units, for sources that have one.
    fn interval(&self) -> Option<Duration> {
        None
    }
    /// The choices of the transport's controller, best first: the rungs of a ladder, or the only one of a
    /// source with packets of one size.
    fn rungs(&self) -> Vec<Rung> {
        Vec::new()
    }
    /// True if it can send at any rate: congestion control then reports each change of the permitted rate, and
    /// chooses no rung.
    fn any_rate(&self) -> bool {
        false
    }
    /// True if it sends in RTP.
    fn is_media(&self) -> bool {
        false
    }
    /// True if its packets depend on floating-point arithmetic, which differs between machines: their lengths,
    /// or which of them have redundancy.
    fn is_machine_dependent(&self) -> bool {
        false
    }
    /// The RTP packets of a source whose media is not examined.
    fn packet_format(&self, _material: &Material) -> Option<PacketFormat> {
        None
    }
    /// For sources with frames: the time limit for completing a frame.
    fn deadline(&self) -> Option<Duration> {
        None
    }
    /// The file it reads, as given in the scenario.
    fn file(&self) -> Option<&Path> {
        None
    }
    /// The same, mutable.
    fn file_mut(&mut self) -> Option<&mut PathBuf> {
        None
    }
    /// The part of its file it uses, if one file may be used in several ways.
    fn part_of_file(&self) -> String {
        String::new()
    }
    /// Reads its file.
    ///
    /// # Errors
    /// A message that names the file.
    fn load(&self, _files: &dyn Files) -> Result<Material, String> {
        Ok(Material::None)
    }
}

/// The configuration of an external source.
#[derive(Clone, Debug)]
pub struct External(pub Arc<dyn SourceConfig + Send + Sync>);

impl PartialEq for External {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

/// Generates [`Config`] from the sources that a scenario can name.
macro_rules! sources {
    ($($(#[$about:meta])* $kind:ident($config:ty) $name:literal;)*) => {
        /// What one side of a flow sends.
        #[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
        #[serde(tag = "kind")]
        pub enum Config {
            $($(#[$about])* #[serde(rename = $name)] $kind($config),)*
            /// A source supplied by a Rust program. No scenario file can name it.
            #[serde(skip)]
            External(External),
        }

        impl Config {
            /// Name of the kind in a scenario.
            #[must_use]
            pub const fn kind(&self) -> &'static str {
                match self {
                    $(Self::$kind(_) => $name,)*
                    Self::External(_) => "external",
                }
            }
            /// [`SourceConfig::file_mut`] of a built-in source.
            pub fn file_mut(&mut self) -> Option<&mut PathBuf> {
                match self {
                    $(Self::$kind(config) => config.file_mut(),)*
                    Self::External(_) => None,
                }
            }
        }

        /// It has the methods of the configuration of its kind. A source is configured once per run, so these
        /// calls need not be fast.
        impl Deref for Config {
            type Target = dyn SourceConfig;

            fn deref(&self) -> &Self::Target {
                match self {
                    $(Self::$kind(config) => config,)*
                    Self::External(External(config)) => &**config,
                }
            }
        }
    };
}

sources! {
    /// Recorded speech in RTP packets; the receiver plays it and the report includes the audio.
    Speech(Speech) "speech";
    /// Packets of constant size and rate.
    Cbr(Cbr) "cbr";
    /// Constant bit rate in talkspurts, with silences of exponential or other lengths.
    OnOff(OnOff) "on_off";
    /// Packets of constant size at the instants of a Poisson process.
    Poisson(Poisson) "poisson";
    /// Video frames, split into RTP packets.
    Video(Video) "video";
    /// RTP packets from a capture.
    Replay(Replay) "replay";
    /// As much data as the transport can carry, optionally with pauses.
    Bulk(BulkConfig) "bulk";
    /// Short transfers with pauses between them.
    Web(Web) "web";
}

impl PacketFormat {
    /// RTP packets by their number, payload bytes and total duration.
    fn of(clock_hz: u32, bytes: u64, packets: u64, length: Duration) -> Self {
        let packets = packets.max(1);
        let packet_bytes = (bytes / packets) as u32 + RTP_HEADER;
        let mean = Rung { packet_bytes, interval: length / packets };
        Self { payload_type: DYNAMIC, clock_hz, mean, repair: None }
    }
}

/// A single rung: a packet of this size per interval.
fn one_rung(packet: Size, interval: Option<Duration>) -> Vec<Rung> {
    let packet_bytes = u32::try_from(packet.as_bytes()).ok();
    let rung = packet_bytes.zip(interval);
    rung.map(|(packet_bytes, interval)| Rung { packet_bytes, interval }).into_iter().collect()
}

/// The bytes of a file; an error is a phrase that follows the file's name.
fn bytes_of(files: &dyn Files, path: &Path, expected: &str) -> Result<Bytes, String> {
    files.read(path, file::MAX_BYTES).map_err(|fault| match fault {
        Fault::NotAFile => format!("{fault}; expected {expected}"),
        _ => fault.to_string(),
    })
}
