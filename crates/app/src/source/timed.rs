//! Sources with a clock: a unit every interval, perhaps with pauses.
//!
//! A unit covers one interval of media and is complete at the interval's end; it leaves up to
//! `noise` later, in order. In on/off sources a unit is made for every interval that begins in a
//! talkspurt (ITU-T P.59 §3 gives the means).

use std::sync::Arc;

use bytes::Bytes;
use talkspurt_proto::dice::Dice;
use talkspurt_proto::packet::Payload;
use talkspurt_proto::time::{Duration, Instant};

use super::Unit;
use super::config::{Cbr, OnOff, Speech};
use crate::recording::Recording;

/// A source that sends by the clock.
#[derive(Debug)]
pub struct Timed {
    content: Content,
    interval: Duration,
    noise: Duration,
    pauses: Option<Pauses>,
    dice: Dice,
    /// Start of the media clock.
    origin: Instant,
    stop: Instant,
    slot: u32,
    marker: bool,
    /// Units that were sent, for offsets of virtual payloads.
    sent: u64,
    /// When the unit of `slot` leaves; `None` when there is none.
    due: Option<Instant>,
}

#[derive(Debug)]
enum Content {
    Virtual { len: u64 },
    Recording { encoded: Bytes, unit: usize, repeat: bool },
}

#[derive(Debug)]
struct Pauses {
    on: Duration,
    off: Duration,
    /// End of the present talkspurt.
    talk_until: Instant,
}

impl Timed {
    /// Speech: recorded, or nameless packets of the codec's size.
    #[must_use]
    pub fn speech(
        speech: &Speech,
        recording: Option<Arc<Recording>>,
        dice: Dice,
        start: Instant,
        stop: Instant,
    ) -> Self {
        let unit = speech.codec.bytes_for(speech.packet);
        let content = match recording {
            Some(recording) => Content::Recording {
                encoded: recording.encoded.clone(),
                unit,
                repeat: speech.repeat,
            },
            None => Content::Virtual { len: unit as u64 },
        };
        let pauses = speech.talkspurts.map(|means| (means.on, means.off));
        Self::new(content, speech.packet, speech.noise, pauses, dice, start + speech.lead, stop)
    }

    /// Constant bit rate.
    #[must_use]
    pub fn cbr(cbr: &Cbr, dice: Dice, start: Instant, stop: Instant) -> Self {
        let len = cbr.packet.as_bytes();
        let interval = cbr.rate.time_for(len).unwrap_or(Duration::MAX);
        Self::new(Content::Virtual { len }, interval, cbr.noise, None, dice, start, stop)
    }

    /// Exponential on/off.
    #[must_use]
    pub fn on_off(on_off: &OnOff, dice: Dice, start: Instant, stop: Instant) -> Self {
        let len = on_off.packet.as_bytes();
        let interval = on_off.rate.time_for(len).unwrap_or(Duration::MAX);
        let pauses = Some((on_off.on, on_off.off));
        let content = Content::Virtual { len };
        Self::new(content, interval, on_off.noise, pauses, dice, start, stop)
    }

    fn new(
        content: Content,
        interval: Duration,
        noise: Duration,
        pauses: Option<(Duration, Duration)>,
        mut dice: Dice,
        origin: Instant,
        stop: Instant,
    ) -> Self {
        let pauses =
            pauses.map(|(on, off)| Pauses { on, off, talk_until: origin + dice.exponential(on) });
        let mut source = Self {
            content,
            interval,
            noise,
            pauses,
            dice,
            origin,
            stop,
            slot: 0,
            marker: true,
            sent: 0,
            due: None,
        };
        source.plan(Instant::ZERO);
        source
    }

    /// When the next unit leaves.
    #[must_use]
    pub fn due(&self) -> Option<Instant> {
        self.due
    }

    /// The unit whose turn has come, and plans the next.
    pub fn take(&mut self, now: Instant) -> Option<Unit> {
        let due = self.due.filter(|due| *due <= now)?;
        let unit = Unit {
            index: self.sent as u32,
            slot: self.slot,
            marker: self.marker,
            captured: self.begins(self.slot),
            payload: self.payload(),
        };
        self.marker = false;
        self.slot += 1;
        self.sent += 1;
        self.plan(due);
        Some(unit)
    }

    fn begins(&self, slot: u32) -> Instant {
        self.origin + self.interval * u64::from(slot)
    }

    fn payload(&self) -> Payload {
        match &self.content {
            Content::Virtual { len } => Payload::Virtual { offset: self.sent * len, len: *len },
            Content::Recording { encoded, unit, repeat } => {
                let units = encoded.len().div_ceil(*unit);
                let at = if *repeat { self.slot as usize % units } else { self.slot as usize };
                let end = ((at + 1) * unit).min(encoded.len());
                Payload::Real(encoded.slice(at * unit..end))
            }
        }
    }

    /// Settles when the unit of the slot leaves, not before `earliest`.
    fn plan(&mut self, earliest: Instant) {
        self.skip_silence();
        let complete = self.begins(self.slot) + self.interval;
        let exhausted = match &self.content {
            Content::Recording { encoded, unit, repeat } => {
                encoded.is_empty() || (!repeat && self.slot as usize * unit >= encoded.len())
            }
            Content::Virtual { .. } => false,
        };
        self.due = (!exhausted && complete <= self.stop)
            .then(|| (complete + self.dice.span(self.noise)).max(earliest));
    }

    fn skip_silence(&mut self) {
        let Some(pauses) = &mut self.pauses else { return };
        while self.origin + self.interval * u64::from(self.slot) >= pauses.talk_until {
            if pauses.talk_until >= self.stop {
                return;
            }
            let resume = pauses.talk_until + self.dice.exponential(pauses.off);
            pauses.talk_until = resume + self.dice.exponential(pauses.on);
            let silent = resume.saturating_since(self.origin).as_nanos();
            let next = silent.div_ceil(self.interval.as_nanos().max(1));
            self.slot = self.slot.max(u32::try_from(next).unwrap_or(u32::MAX));
            self.marker = true;
        }
    }
}
