//! What talks: speech, constant and on/off bit rate, and bulk data.
//!
//! A timed source names the instant of its next unit and gives it when asked; a bulk source gives
//! as much as there is room for. All times are of the local clock.

mod bulk;
mod config;
mod timed;

use std::sync::Arc;

pub use bulk::Bulk;
pub use config::{Bulk as BulkConfig, Cbr, Config, KeepAlive, OnOff, Speech, Talkspurts};
use talkspurt_proto::dice::Dice;
use talkspurt_proto::packet::Payload;
use talkspurt_proto::rate::Rung;
use talkspurt_proto::time::{Duration, Instant};
use talkspurt_proto::units::Size;
pub use timed::{Timed, step};

use crate::codec::Encoding;
use crate::recording::Recording;

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

/// A source at work.
#[derive(Debug)]
pub enum Source {
    /// Speech, constant and on/off bit rate.
    Timed(Box<Timed>),
    /// Bulk data.
    Bulk(Bulk),
}

impl Config {
    /// A source that starts and stops at these instants of the local clock.
    #[must_use]
    pub fn build(
        &self,
        recording: Option<Arc<Recording>>,
        unit_bytes: u32,
        dice: Dice,
        start: Instant,
        stop: Instant,
    ) -> Source {
        match self {
            Self::Speech(speech) => {
                Source::Timed(Box::new(Timed::speech(speech, recording, dice, start, stop)))
            }
            Self::Cbr(cbr) => Source::Timed(Box::new(Timed::cbr(cbr, dice, start, stop))),
            Self::OnOff(on_off) => {
                Source::Timed(Box::new(Timed::on_off(on_off, dice, start, stop)))
            }
            Self::Bulk(bulk) => {
                let own = bulk.packet.and_then(|size| u32::try_from(size.as_bytes()).ok());
                Source::Bulk(Bulk::new(bulk, own.unwrap_or(unit_bytes), start, stop))
            }
        }
    }

    /// The interval between units, for sources that have one.
    #[must_use]
    pub fn interval(&self) -> Option<Duration> {
        match self {
            Self::Speech(speech) => Some(speech.packet),
            Self::Cbr(cbr) => cbr.rate.time_for(cbr.packet.as_bytes()),
            Self::OnOff(on_off) => on_off.rate.time_for(on_off.packet.as_bytes()),
            Self::Bulk(_) => None,
        }
    }

    /// What the transport's controller may choose among, best first: the rungs of a ladder, or the
    /// one way a source with a clock of its own sends. None for bulk.
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
            Self::Bulk(_) => Vec::new(),
        }
    }

    /// The word that names the kind in a scenario.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Speech(_) => "speech",
            Self::Cbr(_) => "cbr",
            Self::OnOff(_) => "on_off",
            Self::Bulk(_) => "bulk",
        }
    }
}
