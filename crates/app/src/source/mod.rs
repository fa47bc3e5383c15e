//! What talks: speech, constant and on/off bit rate, video, captured packets and bulk data.
//!
//! A source with a timetable names the instant of its next unit and gives it when asked; a bulk
//! source gives as much as there is room for. All times are of the local clock.

mod bulk;
mod capture;
mod config;
mod frames;
mod paced;
mod spurts;
mod timed;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;

use crate::file::{self, Fault, Files};
pub use bulk::{Bulk, Units};
pub use capture::Capture;
pub use config::{
    Bulk as BulkConfig, Cbr, Config, Conversation, Distribution, KeepAlive, OnOff, Pauses, Poisson,
    Replay, Speech, Talkspurts, Video, Web,
};
pub use frames::{FrameTrace, even};
pub use paced::{Paced, VIDEO_CLOCK};
use talkspurt_proto::packet::Payload;
use talkspurt_proto::rate::Rung;
use talkspurt_proto::rng::Rng;
use talkspurt_proto::time::{Duration, Instant};
use talkspurt_proto::units::Size;
pub use timed::{Timed, step};

use crate::codec::Encoding;
use crate::recording::Recording;

/// RTP's fixed header (RFC 3550 §5.1).
const RTP_HEADER: u32 = 12;
/// The first dynamic payload type (RFC 3551 §3).
const DYNAMIC: u8 = 96;
/// What the checks of a scenario promise of every source.
const UNITS_FIT: &str = "a run has fewer than 2^32 units of a source";

/// One unit of application data.
#[derive(Clone, Debug)]
pub struct Unit {
    /// Its number, from 0; a scenario whose units would exceed 32 bits is refused before it runs.
    pub index: u32,
    /// Its place in time, in steps of the media clock since its start: packet intervals, or, where
    /// they may change, the longest stretch of which each is a multiple. Ahead of the number after a
    /// silence, in which no units are made.
    pub slot: u64,
    /// Which of the source's encodings it is in, 0 being the best.
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

/// What a source needs from outside its knobs: what was read from its file.
#[derive(Clone, Debug, Default)]
pub enum Material {
    /// Nothing.
    #[default]
    None,
    /// Speech.
    Speech(Arc<Recording>),
    /// Frames of video.
    Frames(Arc<FrameTrace>),
    /// Packets.
    Packets(Arc<Capture>),
}

/// Where a source stands: its rng and when it sends, by the local clock.
#[derive(Debug)]
pub struct Setting {
    /// A stream of its own.
    pub rng: Rng,
    /// The stream that both sides of a conversation share, and whether this one opens the flow.
    pub conversation: (Rng, bool),
    /// From here on.
    pub start: Instant,
    /// Until here.
    pub stop: Instant,
}

/// RTP packets whose media is not looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PacketFormat {
    /// Of all packets: a dynamic one (RFC 3551 §3), for all that matters is that both sides know it.
    pub payload_type: u8,
    /// Ticks of the media clock a second.
    pub clock_hz: u32,
    /// Mean packet with its RTP header, and mean time between two.
    pub mean: Rung,
}

/// A source at work.
#[derive(Debug)]
pub enum Source {
    /// Speech, constant and on/off bit rate.
    Timed(Box<Timed>),
    /// Units at uneven times or of uneven sizes.
    Paced(Box<Paced>),
    /// Bulk data.
    Bulk(Bulk),
}

impl Source {
    /// The unit whose turn has come; never of bulk data, which asks for room.
    #[inline]
    pub fn take(&mut self, now: Instant) -> Option<Unit> {
        match self {
            Self::Timed(timed) => timed.take(now),
            Self::Paced(paced) => paced.take(now),
            Self::Bulk(_) => None,
        }
    }

    /// When it has something to do, by the local clock.
    #[must_use]
    #[inline]
    pub fn due(&self, now: Instant) -> Option<Instant> {
        match self {
            Self::Timed(timed) => timed.due(),
            Self::Paced(paced) => paced.due(),
            Self::Bulk(bulk) => bulk.resumes(now),
        }
    }

    /// True when there will be no more.
    #[must_use]
    #[inline]
    pub fn is_done(&self, now: Instant) -> bool {
        match self {
            Self::Timed(timed) => timed.due().is_none(),
            Self::Paced(paced) => paced.due().is_none(),
            Self::Bulk(bulk) => bulk.is_done(now),
        }
    }
}

impl Config {
    /// A source at work; `unit_bytes` is what a unit of bulk data has where the source says nothing.
    #[must_use]
    pub fn build(&self, material: &Material, unit_bytes: u32, setting: Setting) -> Source {
        let Setting { rng, conversation: (chain, opens), start, stop } = setting;
        let unit = |own: Option<Size>| {
            own.and_then(|size| u32::try_from(size.as_bytes()).ok()).unwrap_or(unit_bytes)
        };
        match self {
            Self::Speech(speech) => {
                let recording = match material {
                    Material::Speech(recording) => Some(Arc::clone(recording)),
                    _ => None,
                };
                let conversation = speech
                    .conversation
                    .map(|config| spurts::Conversation::new(config, chain, opens));
                let timed = Timed::speech(speech, recording, conversation, rng, start, stop);
                Source::Timed(Box::new(timed))
            }
            Self::Cbr(cbr) => Source::Timed(Box::new(Timed::cbr(cbr, rng, start, stop))),
            Self::OnOff(on_off) => Source::Timed(Box::new(Timed::on_off(on_off, rng, start, stop))),
            Self::Poisson(poisson) => {
                Source::Paced(Box::new(Paced::poisson(poisson, rng, start, stop)))
            }
            Self::Video(video) => {
                let trace = match material {
                    Material::Frames(trace) => Some(Arc::clone(trace)),
                    _ => None,
                };
                Source::Paced(Box::new(Paced::video(video, trace, rng, start, stop)))
            }
            Self::Replay(_) => match material {
                Material::Packets(capture) => {
                    Source::Paced(Box::new(Paced::replay(Arc::clone(capture), start, stop)))
                }
                // Without its capture it is silent; the checks of a scenario see to it.
                _ => Source::Bulk(Bulk::silent(stop)),
            },
            Self::Bulk(bulk) => Source::Bulk(Bulk::new(bulk, unit(bulk.packet), rng, start, stop)),
            Self::Web(web) => Source::Bulk(Bulk::web(web, unit(web.packet), rng, start, stop)),
        }
    }

    /// The interval between units, for sources that have one.
    #[must_use]
    pub fn interval(&self) -> Option<Duration> {
        match self {
            Self::Speech(speech) => Some(speech.packet),
            Self::Cbr(cbr) => cbr.rate.time_for(cbr.packet.as_bytes()),
            Self::OnOff(on_off) => on_off.rate.time_for(on_off.packet.as_bytes()),
            Self::Poisson(poisson) => poisson.rate.time_for(poisson.packet.as_bytes()),
            Self::Video(video) => Some(video.frame()),
            Self::Replay(_) | Self::Bulk(_) | Self::Web(_) => None,
        }
    }

    /// What the transport's controller may choose among, best first: the rungs of a ladder, or the
    /// one way a source with packets of one size sends. None for all others.
    #[must_use]
    pub fn rungs(&self) -> Vec<Rung> {
        let one = |packet: Size| {
            let interval = self.interval()?;
            Some(Rung { packet_bytes: u32::try_from(packet.as_bytes()).ok()?, interval })
        };
        match self {
            Self::Speech(speech) => speech.encodings().into_iter().map(Encoding::rung).collect(),
            Self::Cbr(cbr) => one(cbr.packet).into_iter().collect(),
            Self::OnOff(on_off) => one(on_off.packet).into_iter().collect(),
            Self::Poisson(poisson) => one(poisson.packet).into_iter().collect(),
            Self::Video(_) | Self::Replay(_) | Self::Bulk(_) | Self::Web(_) => Vec::new(),
        }
    }

    /// The RTP packets of a source whose media nobody looks at; `None` for all others.
    #[must_use]
    pub fn packet_format(&self, material: &Material) -> Option<PacketFormat> {
        let of = |clock_hz: u32, bytes: u64, packets: u64, length: Duration| {
            let packets = packets.max(1);
            let packet_bytes = (bytes / packets) as u32 + RTP_HEADER;
            let mean = Rung { packet_bytes, interval: length / packets };
            PacketFormat { payload_type: DYNAMIC, clock_hz, mean }
        };
        match (self, material) {
            (Self::Video(video), Material::Frames(trace)) => {
                let packets = trace.packets(video.packet.as_bytes());
                Some(of(VIDEO_CLOCK, trace.bytes(), packets, trace.period))
            }
            (Self::Video(video), _) => {
                let bytes = even(video);
                let packets = bytes.div_ceil(video.packet.as_bytes().max(1));
                Some(of(VIDEO_CLOCK, bytes, packets, video.frame()))
            }
            (Self::Replay(replay), Material::Packets(capture)) => {
                let clock = replay.clock.unwrap_or_else(|| capture.clock());
                let packets = capture.packets.len() as u64;
                Some(of(clock, capture.bytes(), packets, capture.length()))
            }
            _ => None,
        }
    }

    /// For frames that are looked at whole: how long one may take to be complete.
    #[must_use]
    pub fn deadline(&self) -> Option<Duration> {
        match self {
            Self::Video(video) => Some(video.deadline),
            Self::Replay(replay) => Some(replay.deadline),
            _ => None,
        }
    }

    /// The file it reads, as the scenario says it.
    #[must_use]
    pub fn file(&self) -> Option<&Path> {
        match self {
            Self::Speech(speech) => speech.file.as_deref(),
            Self::Video(video) => video.file.as_deref(),
            Self::Replay(replay) => Some(&replay.file),
            _ => None,
        }
    }

    /// The same, to be changed.
    pub fn file_mut(&mut self) -> Option<&mut PathBuf> {
        match self {
            Self::Speech(speech) => speech.file.as_mut(),
            Self::Video(video) => video.file.as_mut(),
            Self::Replay(replay) => Some(&mut replay.file),
            _ => None,
        }
    }

    /// True if it sends in RTP.
    #[must_use]
    pub fn is_media(&self) -> bool {
        matches!(self, Self::Speech(_) | Self::Video(_) | Self::Replay(_))
    }

    /// The word that names the kind in a scenario.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Speech(_) => "speech",
            Self::Cbr(_) => "cbr",
            Self::OnOff(_) => "on_off",
            Self::Poisson(_) => "poisson",
            Self::Video(_) => "video",
            Self::Replay(_) => "replay",
            Self::Bulk(_) => "bulk",
            Self::Web(_) => "web",
        }
    }
}

/// The bytes of a file; an error is text that follows the file's name.
fn bytes_of(files: &dyn Files, path: &Path, expected: &str) -> Result<Bytes, String> {
    files.read(path, file::MAX_BYTES).map_err(|fault| match fault {
        Fault::NotAFile => format!("{fault}; expected {expected}"),
        _ => fault.to_string(),
    })
}
