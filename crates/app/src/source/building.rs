//! From the parameters of each kind of source to the source that runs.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use talkspurt_proto::rate::Rung;
use talkspurt_proto::time::Duration;
use talkspurt_proto::units::Size;
use talkspurt_proto::validate::Validate;

use super::config::{self, Cbr, OnOff, Poisson, Replay, Speech, Video, Web};
use super::encoder::Encoder;
use super::{
    Bulk, Capture, FrameRates, FrameTrace, Material, Paced, PacketFormat, Setting, Source,
    SourceConfig, Timed, VIDEO_CLOCK, even, one_rung, spurts,
};
use crate::codec::{Codec, Encoding};
use crate::file::Files;
use crate::recording::{Recording, Vad};

impl Validate for Speech {}

impl SourceConfig for Speech {
    fn build(&self, material: &Material, _: u32, setting: Setting) -> Source {
        let Setting { rng, conversation: (chain, opens), start, stop } = setting;
        let recording = match material {
            Material::Speech(recording) => Some(Arc::clone(recording)),
            _ => None,
        };
        let conversation =
            self.conversation.map(|config| spurts::Conversation::new(config, chain, opens));
        Source::Timed(Box::new(Timed::speech(self, recording, conversation, rng, start, stop)))
    }
    fn interval(&self) -> Option<Duration> {
        Some(self.packet)
    }
    fn rungs(&self) -> Vec<Rung> {
        let rung =
            |it: &Encoding| self.flexfec.map_or(it.rung(), |flexfec| flexfec.protected(it.rung()));
        self.encodings().iter().map(rung).collect()
    }
    fn any_rate(&self) -> bool {
        self.ladder.is_empty() && self.codec.spec().variable_rate
    }
    fn is_media(&self) -> bool {
        true
    }
    fn is_machine_dependent(&self) -> bool {
        let has_opus = self.encodings().iter().any(|it| it.codec == Codec::Opus);
        has_opus && self.file.is_some() && self.opus.varies()
    }
    fn file(&self) -> Option<&Path> {
        self.file.as_deref()
    }
    fn file_mut(&mut self) -> Option<&mut PathBuf> {
        self.file.as_mut()
    }
    fn part_of_file(&self) -> String {
        let encodings = self.encodings();
        let form = if encodings[0].is_stateless() { " encoded" } else { "" };
        let mut rates: Vec<_> = encodings.iter().map(|it| it.codec.spec().sample_rate).collect();
        rates.dedup();
        let vad = match self.vad {
            Some(Vad { hangover, margin }) => format!(" active {hangover} {margin}"),
            None => String::new(),
        };
        format!("{} in {}{form} at {rates:?}{vad}", self.codec.spec().name, encodings[0].channels())
    }
    fn load(&self, files: &dyn Files) -> Result<Material, String> {
        let Some(file) = &self.file else { return Ok(Material::None) };
        let recording = Recording::open(files, file, &self.encodings(), self.vad.as_ref());
        Ok(Material::Speech(Arc::new(recording.map_err(|error| error.to_string())?)))
    }
}

/// Sources with packets of one size.
macro_rules! of_one_size {
    ($($config:ty => $kind:ident($build:path);)*) => {$(
        impl Validate for $config {}

        impl SourceConfig for $config {
            fn build(&self, _: &Material, _: u32, setting: Setting) -> Source {
                let Setting { rng, start, stop, .. } = setting;
                Source::$kind(Box::new($build(self, rng, start, stop)))
            }
            fn interval(&self) -> Option<Duration> {
                self.rate.time_for(self.packet.as_bytes())
            }
            fn rungs(&self) -> Vec<Rung> {
                one_rung(self.packet, self.interval())
            }
        }
    )*};
}

of_one_size! {
    Cbr => Timed(Timed::cbr);
    OnOff => Timed(Timed::on_off);
    Poisson => Paced(Paced::poisson);
}

impl Validate for config::Bulk {}

impl SourceConfig for config::Bulk {
    fn build(&self, _: &Material, unit_bytes: u32, setting: Setting) -> Source {
        let Setting { rng, start, stop, .. } = setting;
        let unit_bytes = unit_of(self.packet, unit_bytes);
        Source::Bulk(Bulk::new(self, unit_bytes, rng, start, stop))
    }
}

impl Validate for Video {}

impl SourceConfig for Video {
    fn build(&self, material: &Material, _: u32, setting: Setting) -> Source {
        let Setting { rng, start, stop, .. } = setting;
        let trace = match material {
            Material::Frames(trace) => Some(Arc::clone(trace)),
            _ => None,
        };
        if let Some(encoder) = self.encoder {
            let table = match material {
                Material::Rates(table) => Some(Arc::clone(table)),
                _ => None,
            };
            return Source::Other(Box::new(Encoder::new(encoder, self, table, rng, (start, stop))));
        }
        Source::Paced(Box::new(Paced::video(self, trace, rng, start, stop)))
    }
    fn any_rate(&self) -> bool {
        self.encoder.is_some()
    }
    fn interval(&self) -> Option<Duration> {
        Some(self.frame())
    }
    fn is_media(&self) -> bool {
        true
    }
    fn packet_format(&self, material: &Material) -> Option<PacketFormat> {
        if let Material::Frames(trace) = material {
            let packets = trace.packets(self.packet.as_bytes());
            return Some(PacketFormat::of(VIDEO_CLOCK, trace.bytes(), packets, trace.period));
        }
        let bytes = even(self);
        let packets = bytes.div_ceil(self.packet.as_bytes().max(1));
        let format = PacketFormat::of(VIDEO_CLOCK, bytes, packets, self.frame());
        Some(PacketFormat { repair: self.repair, ..format })
    }
    fn deadline(&self) -> Option<Duration> {
        Some(self.deadline)
    }
    fn file(&self) -> Option<&Path> {
        self.file.as_deref()
    }
    fn file_mut(&mut self) -> Option<&mut PathBuf> {
        self.file.as_mut()
    }
    fn part_of_file(&self) -> String {
        format!("{:?} {}", self.frame, self.encoder.is_some())
    }
    fn load(&self, files: &dyn Files) -> Result<Material, String> {
        let Some(file) = &self.file else { return Ok(Material::None) };
        let material = if self.encoder.is_some() {
            FrameRates::open(files, file).map(|table| Material::Rates(Arc::new(table)))
        } else {
            let trace = FrameTrace::open(files, file, self.frame());
            trace.map(|trace| Material::Frames(Arc::new(trace)))
        };
        material.map_err(|error| format!("{}: {error}", file.display()))
    }
}

impl Validate for Replay {}

impl SourceConfig for Replay {
    fn build(&self, material: &Material, _: u32, setting: Setting) -> Source {
        let Setting { start, stop, .. } = setting;
        match material {
            Material::Packets(capture) => {
                Source::Paced(Box::new(Paced::replay(Arc::clone(capture), start, stop)))
            }
            // Without its capture it is silent; the scenario's checks exclude this.
            _ => Source::Bulk(Bulk::silent(stop)),
        }
    }
    fn is_media(&self) -> bool {
        true
    }
    fn packet_format(&self, material: &Material) -> Option<PacketFormat> {
        let Material::Packets(capture) = material else { return None };
        let clock = self.clock.unwrap_or_else(|| capture.clock());
        let packets = capture.packets.len() as u64;
        Some(PacketFormat::of(clock, capture.bytes(), packets, capture.length()))
    }
    fn deadline(&self) -> Option<Duration> {
        Some(self.deadline)
    }
    fn file(&self) -> Option<&Path> {
        Some(&self.file)
    }
    fn file_mut(&mut self) -> Option<&mut PathBuf> {
        Some(&mut self.file)
    }
    fn part_of_file(&self) -> String {
        format!("{:?}", self.ssrc)
    }
    fn load(&self, files: &dyn Files) -> Result<Material, String> {
        let capture = Capture::open(files, &self.file, self.ssrc);
        let capture = capture.map_err(|error| format!("{}: {error}", self.file.display()))?;
        Ok(Material::Packets(Arc::new(capture)))
    }
}

impl Validate for Web {}

impl SourceConfig for Web {
    fn build(&self, _: &Material, unit_bytes: u32, setting: Setting) -> Source {
        let Setting { rng, start, stop, .. } = setting;
        Source::Bulk(Bulk::web(self, unit_of(self.packet, unit_bytes), rng, start, stop))
    }
}

/// Unit length of bulk data.
fn unit_of(own: Option<Size>, unit_bytes: u32) -> u32 {
    own.and_then(|size| u32::try_from(size.as_bytes()).ok()).unwrap_or(unit_bytes)
}
