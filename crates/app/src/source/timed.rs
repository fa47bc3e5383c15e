//! Sources with a clock: a unit every interval, perhaps with pauses.
//!
//! A unit covers one interval of media and is complete at the interval's end (and what the encoder
//! looks ahead); it leaves up to `noise` later, in order. Where the interval may change, the media
//! clock goes on in steps that all intervals are multiples of. In on/off sources a unit is made for
//! every interval that begins in a talkspurt; `spurts` says when those are.

use std::sync::Arc;

use bytes::Bytes;
use talkspurt_proto::packet::Payload;
use talkspurt_proto::rng::Rng;
use talkspurt_proto::time::{Duration, Instant};
use talkspurt_proto::units::{Rate, Size};

use super::Unit;
use super::config::{Cbr, OnOff, Speech};
use super::spurts::{Conversation, Spurts};
use crate::codec::{Encoder, Encoding, step};
use crate::recording::Recording;

/// A source that sends by the clock. What every unit needs lies on three lines of the cache: five hundred
/// calls speak in turn, and what they need is to stay there.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct Timed {
    /// When the unit of `slot` leaves; `None` when there is none.
    due: Option<Instant>,
    stop: Instant,
    /// Start of the media clock.
    origin: Instant,
    /// What places in time are counted in.
    step: Duration,
    slot: u64,
    /// Units that were sent, and their bytes, for offsets of virtual payloads.
    sent: u64,
    sent_bytes: u64,
    rng: Rng,
    noise: Duration,
    /// The way of the unit under way.
    shape: Shape,
    /// Its number, and that of the one asked for.
    number: u8,
    wanted: u8,
    marker: bool,
    /// `None` where nobody looks at it.
    content: Option<Box<Content>>,
    keep_alive: Option<Box<KeepAlive>>,
    /// End of the present talkspurt; of who never pauses, the horizon.
    talk_until: Instant,
    spurts: Option<Spurts>,
    /// Ways to send, best first.
    shapes: Vec<Shape>,
    /// What each of a ladder hands to the transport.
    rates: Vec<Rate>,
}

#[cfg(target_pointer_width = "64")]
const _: () = assert!(std::mem::offset_of!(Timed, spurts) <= 3 * 64);

/// What the packets hold.
#[derive(Debug)]
struct Content {
    /// Start over at its end.
    repeat: bool,
    form: Form,
}

#[derive(Debug)]
enum Form {
    /// Encoded before the run, `unit` bytes a packet.
    Encoded { bytes: Bytes, unit: usize },
    /// Encoded as it is sent.
    Live(Live),
}

#[derive(Debug)]
struct Live {
    pcm: Arc<[i16]>,
    /// Samples in a step of the media clock.
    step: usize,
    /// Each way to send, with its encoder.
    encoders: Vec<(Encoding, Box<dyn Encoder>)>,
    /// What congestion control asks for, headers of RTP included.
    target: Option<Rate>,
}

impl Content {
    fn of(recording: &Recording, encodings: &[Encoding], repeat: bool) -> Self {
        let form = match (&recording.encoded, encodings) {
            (Some(bytes), [only]) => {
                Form::Encoded { bytes: bytes.clone(), unit: only.payload_bytes() }
            }
            _ => Form::Live(Live {
                pcm: Arc::clone(&recording.sent),
                step: recording.codec.samples_for(step(encodings)),
                encoders: encodings
                    .iter()
                    .map(|it| (*it, it.codec.encoder().expect("the scenario's checks require one")))
                    .collect(),
                target: None,
            }),
        };
        Self { repeat, form }
    }

    /// True if nothing is left at this step of the media clock.
    fn is_over(&self, slot: u64) -> bool {
        let (len, unit) = match &self.form {
            Form::Encoded { bytes, unit } => (bytes.len(), *unit),
            Form::Live(live) => (live.pcm.len(), live.step),
        };
        len == 0 || (!self.repeat && slot as usize * unit >= len)
    }

    /// The payload of the unit that begins at `slot` and lasts so many `steps`, in the encoding of this
    /// number.
    fn payload(&mut self, slot: u64, steps: u64, number: u8) -> Bytes {
        match (&mut self.form, self.repeat) {
            (Form::Encoded { bytes, unit }, false) => piece(bytes, *unit, slot as usize),
            (Form::Encoded { bytes, unit }, true) => {
                let units = bytes.len().div_ceil(*unit);
                let piece = piece(bytes, *unit, slot as usize % units);
                if piece.len() < *unit { padded(&piece, *unit) } else { piece }
            }
            (Form::Live(live), repeat) => {
                // The last sample is held where the recording ends within a step.
                let (last, begin) = (live.pcm.len() - 1, slot as usize * live.step);
                let whole = live.pcm.len().next_multiple_of(live.step);
                let at = |at: usize| live.pcm[last.min(if repeat { at % whole } else { at })];
                let pcm: Vec<_> = (begin..begin + steps as usize * live.step).map(at).collect();
                let (encoding, encoder) = &mut live.encoders[usize::from(number)];
                encoder.encode(&pcm, live.target.map(|rate| encoding.payload_rate(rate)))
            }
        }
    }
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

impl Timed {
    /// Speech: recorded, or nameless packets of the codec's size; one side of a conversation, if it
    /// is one.
    #[must_use]
    pub fn speech(
        speech: &Speech,
        recording: Option<Arc<Recording>>,
        conversation: Option<Conversation>,
        rng: Rng,
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
        let content = recording.map(|recording| Content::of(&recording, &encodings, speech.repeat));
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
        let mut source = Self::new(shapes, step, speech.noise, rng, start + speech.lead, stop);
        source.rates = encodings.iter().map(|encoding| encoding.rung().rate()).collect();
        source.begun(content, pauses, keep_alive)
    }

    /// Constant bit rate.
    #[must_use]
    pub fn cbr(cbr: &Cbr, rng: Rng, start: Instant, stop: Instant) -> Self {
        let (shape, interval) = Self::even(cbr.rate, cbr.packet);
        let source = Self::new(vec![shape], interval, cbr.noise, rng, start, stop);
        source.begun(None, None, None)
    }

    /// Constant bit rate, on and off.
    #[must_use]
    pub fn on_off(on_off: &OnOff, rng: Rng, start: Instant, stop: Instant) -> Self {
        let (shape, interval) = Self::even(on_off.rate, on_off.packet);
        let OnOff { on, off, spread, .. } = *on_off;
        let pauses = Some(Spurts::Alone { on, off, spread });
        let source = Self::new(vec![shape], interval, on_off.noise, rng, start, stop);
        source.begun(None, pauses, None)
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
        rng: Rng,
        origin: Instant,
        stop: Instant,
    ) -> Self {
        Self {
            due: None,
            stop,
            origin,
            step,
            slot: 0,
            sent: 0,
            sent_bytes: 0,
            rng,
            noise,
            shape: shapes[0],
            number: 0,
            wanted: 0,
            marker: true,
            content: None,
            keep_alive: None,
            talk_until: Instant::HORIZON,
            spurts: None,
            shapes,
            rates: Vec::new(),
        }
    }

    /// With its first unit planned.
    fn begun(
        mut self,
        content: Option<Content>,
        pauses: Option<Spurts>,
        keep_alive: Option<KeepAlive>,
    ) -> Self {
        self.content = content.map(Box::new);
        self.keep_alive = keep_alive.map(Box::new);
        self.spurts = pauses.map(|mut spurts| {
            self.talk_until = spurts.first(self.origin, &mut self.rng);
            spurts
        });
        self.plan(Instant::ZERO);
        self
    }

    /// When the next unit leaves.
    #[must_use]
    pub fn due(&self) -> Option<Instant> {
        self.due
    }

    /// Time on the media clock up to which units were made.
    #[must_use]
    pub fn spoken(&self) -> Duration {
        self.step * self.slot
    }

    /// Sends in the encoding of the highest rate up to this one, or of the lowest there is.
    pub fn set_target_rate(&mut self, target: Rate) {
        if let Some(Content { form: Form::Live(live), .. }) = self.content.as_deref_mut() {
            live.target = Some(target);
        }
        let fits = (0_u8..).zip(&self.rates).filter(|(_, rate)| **rate <= target);
        let best = fits.max_by_key(|(number, rate)| (**rate, u8::MAX - number));
        self.encode_in(best.map_or(u8::MAX, |(number, _)| number));
    }

    /// Sends in this encoding, 0 being the best, or in the last there is: from the next unit on, or
    /// at once if none was made yet. A unit under way is finished as it was begun.
    fn encode_in(&mut self, encoding: u8) {
        self.wanted = encoding.min((self.shapes.len() - 1) as u8);
        if self.sent == 0 && self.wanted != self.number {
            self.plan(Instant::ZERO);
        }
    }

    /// The unit whose turn has come, and plans the next.
    #[inline]
    pub fn take(&mut self, now: Instant) -> Option<Unit> {
        let due = self.due.filter(|due| *due <= now)?;
        Some(self.next_unit(due))
    }

    #[inline(always)]
    fn next_unit(&mut self, due: Instant) -> Unit {
        let keeping = self.keeping();
        let (steps, bytes) = match keeping {
            Some(keep) => (keep.steps, keep.bytes),
            None => (self.shape.steps, self.shape.bytes),
        };
        let (keeps, marker) = (keeping.is_some(), self.marker && keeping.is_none());
        let payload = match self.content.as_deref_mut() {
            None => Payload::Virtual { offset: self.sent_bytes, len: bytes },
            Some(content) => Payload::Real(content.payload(self.slot, steps, self.number)),
        };
        let unit = Unit {
            index: u32::try_from(self.sent).expect(super::UNITS_FIT),
            slot: self.slot,
            encoding: self.number,
            keep_alive: keeps,
            marker,
            captured: self.begins(self.slot),
            payload,
        };
        self.marker &= keeps;
        self.slot += steps;
        self.sent += 1;
        self.sent_bytes += bytes;
        self.plan(due);
        unit
    }

    /// The knobs of the packet under way, if it only keeps the flow alive.
    fn keeping(&self) -> Option<&KeepAlive> {
        self.keep_alive.as_deref().filter(|keep| keep.until.is_some())
    }

    fn begins(&self, slot: u64) -> Instant {
        self.origin + self.step * slot
    }

    /// Settles when the unit of the slot leaves, not before `earliest`.
    fn plan(&mut self, earliest: Instant) {
        if self.number != self.wanted {
            self.number = self.wanted;
            self.shape = self.shapes[usize::from(self.wanted)];
        }
        self.pass_silence();
        if let Some(keep) = self.keeping() {
            // Nothing is encoded that would make noise: talk is where it would be without. What only
            // keeps a path alive says nothing of the time to come; what tells of silence comes in the
            // place of speech, when that has been found to be none.
            let heard = if keep.at_once { self.shape.steps } else { 0 };
            let due = self.begins(self.slot + heard);
            self.due = (due <= self.stop).then(|| due.max(earliest));
            return;
        }
        let complete = self.begins(self.slot + self.shape.steps) + self.shape.look_ahead;
        let exhausted = self.content.as_deref().is_some_and(|content| content.is_over(self.slot));
        self.due = (!exhausted && complete <= self.stop)
            .then(|| (complete + self.rng.span(self.noise)).max(earliest));
    }

    /// Moves the slot on to where talk resumes, or to the next packet that keeps the flow alive
    /// until then.
    fn pass_silence(&mut self) {
        let resumes = match self.keep_alive.as_deref() {
            Some(KeepAlive { until: Some(until), .. }) => Some(*until),
            _ if self.begins(self.slot) < self.talk_until => return,
            _ => self.skip_silence(),
        };
        let Some(resumes) = resumes else { return };
        match self.keep_alive.as_deref_mut() {
            Some(keep) if keep.until.is_none() && self.slot + keep.first() < resumes => {
                keep.until = Some(resumes);
                self.slot += keep.first();
            }
            Some(keep) if keep.until.is_some() && self.slot < resumes => {}
            keep => {
                keep.into_iter().for_each(|keep| keep.until = None);
                self.slot = resumes;
            }
        }
    }

    /// The slot at which talk resumes, if there is silence at the present one.
    #[inline(never)]
    fn skip_silence(&mut self) -> Option<u64> {
        let spurts = self.spurts.as_mut()?;
        let mut resumes = None;
        let mut slot = self.slot;
        while self.origin + self.step * slot >= self.talk_until {
            if self.talk_until >= self.stop {
                return resumes;
            }
            let resume;
            (resume, self.talk_until) = spurts.next(self.talk_until, &mut self.rng);
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
