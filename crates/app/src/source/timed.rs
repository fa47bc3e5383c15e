//! Sources with a clock: a unit every interval, perhaps with pauses.
//!
//! A unit covers one interval of media and is complete at the interval's end (and what the encoder
//! looks ahead); it leaves up to `noise` later, in order. Where the interval may change, the media
//! clock goes on in steps that all intervals are multiples of. In on/off sources a unit is made for every interval that begins in a
//! talkspurt; `spurts` says when those are.

use std::sync::Arc;

use bytes::Bytes;
use talkspurt_proto::dice::Dice;
use talkspurt_proto::packet::Payload;
use talkspurt_proto::time::{Duration, Instant};
use talkspurt_proto::units::{Rate, Size};

use super::Unit;
use super::config::{Cbr, OnOff, Speech};
use super::spurts::{Conversation, Spurts};
use crate::codec::Encoding;
use crate::recording::Recording;

/// A source that sends by the clock.
#[derive(Debug)]
pub struct Timed {
    content: Content,
    /// Ways to send, best first.
    shapes: Vec<Shape>,
    /// The one of the unit under way, and the one asked for.
    shape: u8,
    wanted: u8,
    /// What places in time are counted in.
    step: Duration,
    noise: Duration,
    pauses: Option<Pauses>,
    keep_alive: Option<KeepAlive>,
    dice: Dice,
    /// Start of the media clock.
    origin: Instant,
    stop: Instant,
    slot: u64,
    marker: bool,
    /// Units that were sent, and their bytes, for offsets of virtual payloads.
    sent: u64,
    sent_bytes: u64,
    /// When the unit of `slot` leaves; `None` when there is none.
    due: Option<Instant>,
}

#[derive(Debug)]
enum Content {
    Virtual,
    Recording { encoded: Bytes, unit: usize, repeat: bool },
}

/// The units of one way to send.
#[derive(Clone, Copy, Debug)]
struct Shape {
    /// Steps of the media clock in a unit.
    steps: u64,
    bytes: u64,
    /// What the encoder waits for beyond the unit.
    look_ahead: Duration,
}

#[derive(Debug)]
struct Pauses {
    spurts: Spurts,
    /// End of the present talkspurt.
    talk_until: Instant,
}

#[derive(Debug)]
struct KeepAlive {
    steps: u64,
    bytes: u64,
    /// The first when silence begins.
    at_once: bool,
    /// Where talk goes on, during a silence.
    until: Option<u64>,
}

impl KeepAlive {
    /// Steps from the beginning of a silence to its first packet.
    fn first(&self) -> u64 {
        if self.at_once { 0 } else { self.steps }
    }
}

/// The longest stretch of time of which every packet is a multiple: what a media clock counts in.
#[must_use]
pub fn step(encodings: &[Encoding]) -> Duration {
    let gcd = |a: u64, b: u64| {
        let (mut a, mut b) = (a, b);
        while b > 0 {
            (a, b) = (b, a % b);
        }
        a
    };
    let packets = encodings.iter().map(|encoding| encoding.packet.as_nanos());
    Duration::from_nanos(packets.fold(0, gcd).max(1))
}

impl Timed {
    /// Speech: recorded, or nameless packets of the codec's size; one side of a conversation, if it
    /// is one.
    #[must_use]
    pub fn speech(
        speech: &Speech,
        recording: Option<Arc<Recording>>,
        conversation: Option<Conversation>,
        dice: Dice,
        start: Instant,
        stop: Instant,
    ) -> Self {
        let encodings = speech.encodings();
        let step = step(&encodings);
        let shape = |encoding: &Encoding| Shape {
            steps: encoding.packet.as_nanos() / step.as_nanos(),
            bytes: encoding.payload_bytes() as u64,
            look_ahead: encoding.codec.look_ahead(),
        };
        let content = match recording {
            Some(recording) => Content::Recording {
                encoded: recording.encoded.clone(),
                unit: encodings[0].payload_bytes(),
                repeat: speech.repeat,
            },
            None => Content::Virtual,
        };
        let keep_alive = speech.keep_alive.map(|keep| KeepAlive {
            steps: keep.every.as_nanos().div_ceil(step.as_nanos()).max(1),
            bytes: keep.size.as_bytes(),
            at_once: keep.at_once,
            until: None,
        });
        let alone = speech.talkspurts.map(|talk| Spurts::Alone {
            on: talk.on,
            off: talk.off,
            spread: talk.spread,
        });
        let pauses = conversation.map(Spurts::Together).or(alone);
        let shapes = encodings.iter().map(shape).collect();
        let source = Self::new(shapes, step, speech.noise, dice, start + speech.lead, stop);
        source.begun(content, pauses, keep_alive)
    }

    /// Constant bit rate.
    #[must_use]
    pub fn cbr(cbr: &Cbr, dice: Dice, start: Instant, stop: Instant) -> Self {
        let (shape, interval) = Self::even(cbr.rate, cbr.packet);
        let source = Self::new(vec![shape], interval, cbr.noise, dice, start, stop);
        source.begun(Content::Virtual, None, None)
    }

    /// Constant bit rate, on and off.
    #[must_use]
    pub fn on_off(on_off: &OnOff, dice: Dice, start: Instant, stop: Instant) -> Self {
        let (shape, interval) = Self::even(on_off.rate, on_off.packet);
        let OnOff { on, off, spread, .. } = *on_off;
        let pauses = Some(Spurts::Alone { on, off, spread });
        let source = Self::new(vec![shape], interval, on_off.noise, dice, start, stop);
        source.begun(Content::Virtual, pauses, None)
    }

    fn even(rate: Rate, packet: Size) -> (Shape, Duration) {
        let bytes = packet.as_bytes();
        let shape = Shape { steps: 1, bytes, look_ahead: Duration::ZERO };
        (shape, rate.time_for(bytes).unwrap_or(Duration::MAX))
    }

    fn new(
        shapes: Vec<Shape>,
        step: Duration,
        noise: Duration,
        dice: Dice,
        origin: Instant,
        stop: Instant,
    ) -> Self {
        Self {
            content: Content::Virtual,
            shapes,
            shape: 0,
            wanted: 0,
            step,
            noise,
            pauses: None,
            keep_alive: None,
            dice,
            origin,
            stop,
            slot: 0,
            marker: true,
            sent: 0,
            sent_bytes: 0,
            due: None,
        }
    }

    /// With its first unit planned.
    fn begun(
        mut self,
        content: Content,
        pauses: Option<Spurts>,
        keep_alive: Option<KeepAlive>,
    ) -> Self {
        self.content = content;
        self.keep_alive = keep_alive;
        self.pauses = pauses.map(|mut spurts| {
            let talk_until = spurts.first(self.origin, &mut self.dice);
            Pauses { spurts, talk_until }
        });
        self.plan(Instant::ZERO);
        self
    }

    /// When the next unit leaves.
    #[must_use]
    pub fn due(&self) -> Option<Instant> {
        self.due
    }

    /// Sends in this encoding, 0 being the best, or in the last there is: from the next unit on, or
    /// at once if none was made yet. A unit under way is finished as it was begun.
    pub fn encode_in(&mut self, encoding: u8) {
        self.wanted = encoding.min((self.shapes.len() - 1) as u8);
        if self.sent == 0 && self.wanted != self.shape {
            self.plan(Instant::ZERO);
        }
    }

    /// The unit whose turn has come, and plans the next.
    #[inline]
    pub fn take(&mut self, now: Instant) -> Option<Unit> {
        let due = self.due.filter(|due| *due <= now)?;
        Some(self.next_unit(due))
    }

    fn next_unit(&mut self, due: Instant) -> Unit {
        let keeping = self.keeping();
        let (steps, bytes) = match keeping {
            Some(keep) => (keep.steps, keep.bytes),
            None => (self.shape().steps, self.shape().bytes),
        };
        let unit = Unit {
            index: u32::try_from(self.sent).expect(super::UNITS_FIT),
            slot: self.slot,
            encoding: self.shape,
            keep_alive: keeping.is_some(),
            marker: self.marker && keeping.is_none(),
            captured: self.begins(self.slot),
            payload: self.payload(bytes),
        };
        self.marker &= unit.keep_alive;
        self.slot += steps;
        self.sent += 1;
        self.sent_bytes += bytes;
        self.plan(due);
        unit
    }

    fn shape(&self) -> Shape {
        self.shapes[usize::from(self.shape)]
    }

    /// The knobs of the packet under way, if it only keeps the flow alive.
    fn keeping(&self) -> Option<&KeepAlive> {
        self.keep_alive.as_ref().filter(|keep| keep.until.is_some())
    }

    fn begins(&self, slot: u64) -> Instant {
        self.origin + self.step * slot
    }

    fn payload(&self, bytes: u64) -> Payload {
        match &self.content {
            Content::Virtual => Payload::Virtual { offset: self.sent_bytes, len: bytes },
            Content::Recording { encoded, unit, repeat: false } => {
                Payload::Real(piece(encoded, *unit, self.slot as usize))
            }
            Content::Recording { encoded, unit, repeat: true } => {
                let units = encoded.len().div_ceil(*unit);
                let piece = piece(encoded, *unit, self.slot as usize % units);
                Payload::Real(if piece.len() < *unit { padded(&piece, *unit) } else { piece })
            }
        }
    }

    /// Settles when the unit of the slot leaves, not before `earliest`.
    fn plan(&mut self, earliest: Instant) {
        self.shape = self.wanted;
        self.pass_silence();
        if let Some(keep) = self.keeping() {
            // Nothing is encoded that would make noise: talk is where it would be without. What only
            // keeps a path alive says nothing of the time to come; what tells of silence comes in the
            // place of speech, when that has been found to be none.
            let heard = if keep.at_once { self.shape().steps } else { 0 };
            let due = self.begins(self.slot + heard);
            self.due = (due <= self.stop).then(|| due.max(earliest));
            return;
        }
        let shape = self.shape();
        let complete = self.begins(self.slot + shape.steps) + shape.look_ahead;
        let exhausted = match &self.content {
            Content::Recording { encoded, unit, repeat } => {
                encoded.is_empty() || (!repeat && self.slot as usize * unit >= encoded.len())
            }
            Content::Virtual => false,
        };
        self.due = (!exhausted && complete <= self.stop)
            .then(|| (complete + self.dice.span(self.noise)).max(earliest));
    }

    /// Moves the slot on to where talk resumes, or to the next packet that keeps the flow alive
    /// until then.
    fn pass_silence(&mut self) {
        let resumes = match &self.keep_alive {
            Some(KeepAlive { until: Some(until), .. }) => Some(*until),
            _ => self.skip_silence(),
        };
        let Some(resumes) = resumes else { return };
        match &mut self.keep_alive {
            Some(keep) if keep.until.is_none() && self.slot + keep.first() < resumes => {
                keep.until = Some(resumes);
                self.slot += keep.first();
            }
            Some(keep) if keep.until.is_some() && self.slot < resumes => {}
            keep => {
                keep.iter_mut().for_each(|keep| keep.until = None);
                self.slot = resumes;
            }
        }
    }

    /// The slot at which talk resumes, if there is silence at the present one.
    fn skip_silence(&mut self) -> Option<u64> {
        let pauses = self.pauses.as_mut()?;
        let mut resumes = None;
        let mut slot = self.slot;
        while self.origin + self.step * slot >= pauses.talk_until {
            if pauses.talk_until >= self.stop {
                return resumes;
            }
            let resume;
            (resume, pauses.talk_until) = pauses.spurts.next(pauses.talk_until, &mut self.dice);
            let silent = resume.saturating_since(self.origin).as_nanos();
            slot = slot.max(silent.div_ceil(self.step.as_nanos().max(1)));
            resumes = Some(slot);
            self.marker = true;
        }
        resumes
    }
}

/// Unit number `index`; the last may be shorter than the others.
fn piece(encoded: &Bytes, unit: usize, index: usize) -> Bytes {
    encoded.slice(index * unit..((index + 1) * unit).min(encoded.len()))
}

/// A recording that starts over must fill its last packet, or there would be a gap each time: the
/// last sample is held (one byte of G.711).
fn padded(piece: &Bytes, unit: usize) -> Bytes {
    let held = piece.last().copied().unwrap_or_default();
    piece.iter().copied().chain(std::iter::repeat(held)).take(unit).collect()
}

#[cfg(test)]
#[path = "timed_tests.rs"]
mod tests;
