//! Timed sources: a unit every interval, possibly with pauses.
//!
//! A unit covers one interval of media and is complete at the interval's end (plus the encoder's look-ahead);
//! it leaves up to `noise` later, in order. If the interval may change, the media clock runs in steps of which
//! all intervals are multiples. In on/off sources a unit is made for every interval that begins in a talkspurt;
//! `spurts` determines those.

use std::sync::Arc;

use bytes::Bytes;
use talkspurt_proto::packet::Payload;
use talkspurt_proto::rng::Rng;
use talkspurt_proto::time::{Duration, Instant};
use talkspurt_proto::units::{Rate, Size};

use super::Unit;
use super::config::{Cbr, OnOff, Speech};
use super::spurts::{Conversation, Recorded, Spurts};
use crate::codec::{Encoder, Encoding, comfort_noise, step};
use crate::recording::{Microphone, Recording, excerpt};

/// A source that sends by the clock. The fields needed for every unit are on three cache lines, so that those
/// of five hundred calls stay in the cache.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct Timed {
    /// When the unit of `slot` leaves; `None` when there is none.
    due: Option<Instant>,
    stop: Instant,
    /// Start of the media clock.
    origin: Instant,
    /// Unit of positions in media time.
    step: Duration,
    slot: u64,
    /// Units sent, and their bytes, for offsets of virtual payloads.
    sent: u64,
    sent_bytes: u64,
    rng: Rng,
    noise: Duration,
    /// Shape of the current unit.
    shape: Shape,
    /// Its index, and that of the one requested.
    number: u8,
    wanted: u8,
    marker: bool,
    /// `None` for media without content.
    content: Option<Box<Content>>,
    keep_alive: Option<Box<KeepAlive>>,
    /// End of the current talkspurt; without pauses, the horizon.
    talk_until: Instant,
    spurts: Option<Spurts>,
    /// Shapes of units, best first.
    shapes: Vec<Shape>,
    /// Rate of each rung of a ladder, as handed to the transport.
    rates: Vec<Rate>,
    /// The encoding whose packets without content have the length for the requested rate.
    variable: Option<Box<Encoding>>,
}

#[cfg(target_pointer_width = "64")]
const _: () = assert!(std::mem::offset_of!(Timed, spurts) <= 3 * 64);

/// Longest background that a packet of comfort noise describes: no speech is in the hangover before it.
const BACKGROUND: Duration = Duration::from_millis(100);

/// Content of the packets.
#[derive(Debug)]
struct Content {
    /// Restart at its end.
    repeat: bool,
    form: Form,
    background: Background,
}

/// What is described in a pause.
#[derive(Debug)]
struct Background {
    pcm: Arc<[i16]>,
    /// Samples per step of the media clock.
    step: usize,
    /// Samples that are described.
    window: usize,
}

#[derive(Debug)]
enum Form {
    /// Encoded before the run, `unit` bytes per packet.
    Encoded { bytes: Bytes, unit: usize },
    /// Encoded when sent.
    Live(Live),
}

#[derive(Debug)]
struct Live {
    channels: usize,
    voices: Vec<Voice>,
    /// Rate requested by congestion control, RTP headers included.
    target: Option<Rate>,
    /// In place of the recordings.
    microphone: Option<Arc<Microphone>>,
}

/// An encoding with its encoder.
#[derive(Debug)]
struct Voice {
    encoding: Encoding,
    encoder: Box<dyn Encoder>,
    /// The recording at the codec's sample rate, and the samples of all channels per step of the media clock.
    pcm: Arc<[i16]>,
    step: usize,
    /// Samples by which the encoder's input is ahead of the packet that it makes, all channels: the decoded
    /// sound is later than the input by as much (RFC 7845 §4.2 "pre-skip").
    ahead: usize,
}

impl Content {
    fn of(recording: &Recording, encodings: &[Encoding], speech: &Speech) -> Self {
        let (repeat, step) = (speech.repeat, step(encodings));
        let hangover = speech.vad.unwrap_or_default().hangover;
        let form = match (&recording.encoded, encodings) {
            (Some(bytes), [only]) if only.is_stateless() => {
                Form::Encoded { bytes: bytes.clone(), unit: only.payload_bytes() }
            }
            _ => Form::Live(Live {
                channels: recording.channels,
                voices: encodings
                    .iter()
                    .map(|it| {
                        let encoder =
                            if recording.is_unheard { it.unheard_encoder() } else { it.encoder() };
                        let encoder = encoder.expect("the scenario's checks require one");
                        let ahead = it.samples_for(it.look_ahead());
                        let pcm = Arc::clone(recording.pcm(it.codec.spec().sample_rate));
                        let step = it.samples_for(step);
                        Voice { encoding: *it, encoder, pcm, step, ahead }
                    })
                    .collect(),
                target: None,
                microphone: recording.microphone.clone(),
            }),
        };
        let background = Background {
            pcm: Arc::clone(recording.pcm(encodings[0].codec.spec().sample_rate)),
            step: encodings[0].samples_for(step),
            window: encodings[0].samples_for(BACKGROUND.min(hangover + step)),
        };
        Self { repeat, form, background }
    }

    /// True if no content is left at this step of the media clock.
    fn is_over(&self, slot: u64) -> bool {
        let (len, unit) = match &self.form {
            Form::Encoded { bytes, unit } => (bytes.len(), *unit),
            Form::Live(Live { microphone: Some(_), .. }) => return false,
            Form::Live(live) => (live.voices[0].pcm.len(), live.voices[0].step),
        };
        len == 0 || (!self.repeat && slot as usize * unit >= len)
    }

    /// Comfort noise of `bytes` that describes the sound before `slot`.
    fn noise(&self, slot: u64, bytes: u64) -> Bytes {
        let Background { pcm, step, window } = &self.background;
        let whole = pcm.len().next_multiple_of((*step).max(1));
        let end = slot as usize * step;
        let end = if self.repeat { end } else { end.min(pcm.len()) };
        // Of a recording that starts over, the samples held at its end are left out.
        let samples = (end.saturating_sub(*window)..end).map(|at| at % whole.max(1));
        let samples: Vec<_> = samples.filter_map(|at| pcm.get(at).copied()).collect();
        comfort_noise::describe(&samples, bytes as usize)
    }

    /// The payload of the unit that begins at `slot` and lasts `steps`, in the encoding of this index. It is
    /// empty if nothing is sent.
    fn payload(&mut self, slot: u64, steps: u64, number: u8) -> Bytes {
        match (&mut self.form, self.repeat) {
            (Form::Encoded { bytes, unit }, false) => piece(bytes, *unit, slot as usize),
            (Form::Encoded { bytes, unit }, true) => {
                let units = bytes.len().div_ceil(*unit);
                let piece = piece(bytes, *unit, slot as usize % units);
                if piece.len() < *unit { padded(&piece, *unit) } else { piece }
            }
            (Form::Live(live), repeat) => {
                let voice = &mut live.voices[usize::from(number)];
                let (begin, len) = (slot as usize * voice.step, steps as usize * voice.step);
                let range = (begin + voice.ahead, len);
                let pcm = match &live.microphone {
                    Some(microphone) => microphone.take(len),
                    None => excerpt(&voice.pcm, live.channels, range, voice.step, repeat),
                };
                let target = live.target.map(|rate| voice.encoding.payload_rate(rate));
                voice.encoder.encode(&pcm, target)
            }
        }
    }
}

/// Units of one encoding.
#[derive(Clone, Copy, Debug)]
struct Shape {
    /// Steps of the media clock in a unit.
    steps: u64,
    bytes: u64,
    /// The encoder's look-ahead beyond the unit.
    look_ahead: Duration,
}

#[derive(Debug)]
struct KeepAlive {
    steps: u64,
    bytes: u64,
    /// Whether the first is sent when silence begins.
    at_once: bool,
    /// During a silence, the slot at which talk resumes.
    until: Option<u64>,
}

impl KeepAlive {
    /// Steps from the beginning of a silence to its first packet.
    fn first(&self) -> u64 {
        if self.at_once { 0 } else { self.steps }
    }
}

impl Timed {
    /// Speech: recorded, or packets of the codec's size without content; optionally one side of a conversation.
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
            look_ahead: encoding.look_ahead(),
        };
        let recorded = recording.as_ref().and_then(|recording| {
            let active = Arc::clone(recording.activity.as_ref()?);
            let all = Recorded::new(active, recording.duration(), step, speech.repeat);
            Some(Spurts::Recorded(all))
        });
        let content = recording.map(|recording| Content::of(&recording, &encodings, speech));
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
        let pauses = conversation.map(Spurts::Together).or(alone).or(recorded);
        let shapes = encodings.iter().map(shape).collect();
        let mut source = Self::new(shapes, step, speech.noise, rng, start + speech.lead, stop);
        source.rates = encodings.iter().map(|encoding| encoding.rung().rate()).collect();
        source.variable = match encodings[..] {
            [only] if only.codec.spec().variable_rate && content.is_none() => Some(Box::new(only)),
            _ => None,
        };
        source.begun(content, pauses, keep_alive)
    }

    /// Constant bit rate.
    #[must_use]
    pub fn cbr(cbr: &Cbr, rng: Rng, start: Instant, stop: Instant) -> Self {
        let (shape, interval) = Self::even(cbr.rate, cbr.packet);
        let source = Self::new(vec![shape], interval, cbr.noise, rng, start, stop);
        source.begun(None, None, None)
    }

    /// Constant bit rate with on and off times.
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
            variable: None,
        }
    }

    /// With its first unit scheduled.
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

    /// Media time up to which units were made.
    #[must_use]
    pub fn spoken(&self) -> Duration {
        self.step * self.slot
    }

    /// Selects the encoding of the highest rate up to `target`, or that of the lowest rate.
    pub fn set_target_rate(&mut self, target: Rate) {
        // The encoders of a ladder keep their rates.
        if let Some(Content { form: Form::Live(live), .. }) = self.content.as_deref_mut()
            && live.voices.len() == 1
        {
            live.target = Some(target);
        }
        if let Some(encoding) = &self.variable {
            let bytes = encoding.payload_bytes_at(encoding.payload_rate(target)) as u64;
            (self.shape.bytes, self.shapes[0].bytes) = (bytes, bytes);
        }
        let fits = (0_u8..).zip(&self.rates).filter(|(_, rate)| **rate <= target);
        let best = fits.max_by_key(|(number, rate)| (**rate, u8::MAX - number));
        self.encode_in(best.map_or(u8::MAX, |(number, _)| number));
    }

    /// The receiver reported this share of lost packets, 0 to 1.
    pub fn set_expected_loss(&mut self, loss: f64) {
        if let Some(Content { form: Form::Live(live), .. }) = self.content.as_deref_mut() {
            live.voices.iter_mut().for_each(|voice| voice.encoder.set_expected_loss(loss));
        }
    }

    /// Selects this encoding, 0 being the best, or the last: from the next unit on, or at once if none was made
    /// yet. A current unit is finished as begun.
    fn encode_in(&mut self, encoding: u8) {
        self.wanted = encoding.min((self.shapes.len() - 1) as u8);
        if self.sent == 0 && self.wanted != self.number {
            self.plan(Instant::ZERO);
        }
    }

    /// Returns the unit that is due, and schedules the next. The encoder may leave one out.
    #[inline]
    pub fn take(&mut self, now: Instant) -> Option<Unit> {
        loop {
            let due = self.due.filter(|due| *due <= now)?;
            if let Some(unit) = self.next_unit(due) {
                return Some(unit);
            }
        }
    }

    #[inline(always)]
    fn next_unit(&mut self, due: Instant) -> Option<Unit> {
        let keeping = self.keeping();
        let (steps, bytes) = match keeping {
            Some(keep) => (keep.steps, keep.bytes),
            None => (self.shape.steps, self.shape.bytes),
        };
        let (keeps, marker) = (keeping.is_some(), self.marker && keeping.is_none());
        let at_once = keeping.is_some_and(|keep| keep.at_once);
        let payload = match self.content.as_deref_mut() {
            None => Payload::Virtual { offset: self.sent_bytes, len: bytes },
            Some(content) if keeps => {
                let heard = if at_once { self.shape.steps } else { 0 };
                Payload::Real(content.noise(self.slot + heard, bytes))
            }
            Some(content) => {
                let payload = content.payload(self.slot, steps, self.number);
                if payload.is_empty() {
                    self.marker = true;
                    self.slot += steps;
                    self.plan(due);
                    return None;
                }
                Payload::Real(payload)
            }
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
        Some(unit)
    }

    /// The keep-alive parameters, if the current packet is one.
    fn keeping(&self) -> Option<&KeepAlive> {
        self.keep_alive.as_deref().filter(|keep| keep.until.is_some())
    }

    fn begins(&self, slot: u64) -> Instant {
        self.origin + self.step * slot
    }

    /// Schedules the unit of the current slot, not before `earliest`.
    fn plan(&mut self, earliest: Instant) {
        if self.number != self.wanted {
            self.number = self.wanted;
            self.shape = self.shapes[usize::from(self.wanted)];
        }
        self.pass_silence();
        if let Some(keep) = self.keeping() {
            // No noise is drawn, because nothing is encoded: talkspurts are the same as without keep-alive
            // packets. A plain keep-alive is sent at once; one that signals silence replaces a speech packet
            // and is sent once the encoder has found no speech.
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

    /// Moves the slot to the end of the silence, or to the next keep-alive packet before it.
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

    /// The slot at which talk resumes, if the current one is silent.
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
            // A recording may start over, or a packet reach across a pause, without silence between.
            self.marker |= slot > self.slot || !matches!(spurts, Spurts::Recorded(_));
        }
        resumes
    }
}

/// Unit number `index`; the last may be shorter than the others.
fn piece(encoded: &Bytes, unit: usize, index: usize) -> Bytes {
    encoded.slice(index * unit..((index + 1) * unit).min(encoded.len()))
}

/// The last packet of a repeated recording must be full, or there would be a gap each time: the last sample is
/// held (one byte of G.711).
fn padded(piece: &Bytes, unit: usize) -> Bytes {
    let held = piece.last().copied().unwrap_or_default();
    piece.iter().copied().chain(std::iter::repeat(held)).take(unit).collect()
}

#[cfg(test)]
#[path = "timed_tests.rs"]
mod tests;
