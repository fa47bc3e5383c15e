//! Sources with a clock: a unit every interval, perhaps with pauses.
//!
//! A unit covers one interval of media and is complete at the interval's end (and what the encoder
//! looks ahead); it leaves up to `noise` later, in order. Where the interval may change, the media
//! clock goes on in steps that all intervals are multiples of. In on/off sources a unit is made for every interval that begins in a
//! talkspurt (ITU-T P.59 §3 gives the means).

use std::sync::Arc;

use bytes::Bytes;
use talkspurt_proto::dice::Dice;
use talkspurt_proto::packet::Payload;
use talkspurt_proto::time::{Duration, Instant};
use talkspurt_proto::units::{Rate, Size};

use super::Unit;
use super::config::{Cbr, OnOff, Speech};
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
    on: Duration,
    off: Duration,
    /// End of the present talkspurt.
    talk_until: Instant,
}

#[derive(Debug)]
struct KeepAlive {
    steps: u64,
    bytes: u64,
    /// Where talk goes on, during a silence.
    until: Option<u64>,
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
    /// Speech: recorded, or nameless packets of the codec's size.
    #[must_use]
    pub fn speech(
        speech: &Speech,
        recording: Option<Arc<Recording>>,
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
            until: None,
        });
        let pauses = speech.talkspurts.map(|means| (means.on, means.off));
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

    /// Exponential on/off.
    #[must_use]
    pub fn on_off(on_off: &OnOff, dice: Dice, start: Instant, stop: Instant) -> Self {
        let (shape, interval) = Self::even(on_off.rate, on_off.packet);
        let pauses = Some((on_off.on, on_off.off));
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
        pauses: Option<(Duration, Duration)>,
        keep_alive: Option<KeepAlive>,
    ) -> Self {
        self.content = content;
        self.keep_alive = keep_alive;
        self.pauses = pauses.map(|(on, off)| {
            let talk_until = self.origin + self.dice.exponential(on);
            Pauses { on, off, talk_until }
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
    pub fn take(&mut self, now: Instant) -> Option<Unit> {
        let due = self.due.filter(|due| *due <= now)?;
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
        Some(unit)
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
        if self.keeping().is_some() {
            // It says nothing of the time to come, and nothing is encoded that would make noise:
            // talk is where it would be without.
            let due = self.begins(self.slot);
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
            Some(keep) if keep.until.is_none() && self.slot + keep.steps < resumes => {
                keep.until = Some(resumes);
                self.slot += keep.steps;
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
            let resume = pauses.talk_until + self.dice.exponential(pauses.off);
            pauses.talk_until = resume + self.dice.exponential(pauses.on);
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
mod tests {
    use super::*;
    use crate::codec::Codec;
    use crate::source::Talkspurts;
    use proptest::prelude::*;

    const STOP: Instant = Instant::from_nanos(200_000_000_000_000);

    fn cbr(noise: Duration, seed: u64) -> Timed {
        let cbr = Cbr { rate: Rate::from_bps(64_000), packet: Size::from_bytes(160), noise };
        Timed::cbr(&cbr, Dice::new(seed, "source"), Instant::from_nanos(7), STOP)
    }

    /// Units with the instants at which they leave.
    fn units(source: &mut Timed) -> impl Iterator<Item = (Instant, Unit)> {
        std::iter::from_fn(|| {
            let due = source.due()?;
            assert!(source.take(Instant::from_nanos(due.as_nanos() - 1)).is_none());
            Some((due, source.take(due).expect("its turn has come")))
        })
    }

    #[test]
    fn a_unit_leaves_when_its_last_sample_is_there() {
        for (index, (due, unit)) in units(&mut cbr(Duration::ZERO, 1)).take(1000).enumerate() {
            let captured = Instant::from_nanos(7) + Duration::from_millis(20) * index as u64;
            assert_eq!((unit.index as usize, unit.slot as usize), (index, index));
            assert_eq!((unit.captured, due), (captured, captured + Duration::from_millis(20)));
            assert_eq!(unit.marker, index == 0);
            assert_eq!(unit.payload, Payload::Virtual { offset: 160 * index as u64, len: 160 });
        }
    }

    #[test]
    fn the_last_unit_is_complete_by_the_stop() {
        let last = |stop: u64| {
            let cbr = Cbr {
                rate: Rate::from_bps(64_000),
                packet: Size::from_bytes(160),
                noise: Duration::ZERO,
            };
            let stop = Instant::from_nanos(stop);
            units(&mut Timed::cbr(&cbr, Dice::new(1, "source"), Instant::ZERO, stop)).count()
        };
        assert_eq!([last(1_000_000_000), last(999_999_999), last(1)], [50, 49, 0]);
    }

    proptest! {
        #[test]
        fn noise_is_bounded_seeded_and_keeps_order(ms in 0_u64..100, seed: u64) {
            let noise = Duration::from_millis(ms);
            let dues = |seed| -> Vec<_> {
                units(&mut cbr(noise, seed)).take(200).map(|(due, _)| due).collect()
            };
            let noisy = dues(seed);
            for (due, turn) in noisy.iter().zip(dues_without_noise()) {
                prop_assert!(*due >= turn && *due - turn <= noise.saturating_sub(Duration::from_nanos(1)));
            }
            prop_assert!(noisy.is_sorted());
            prop_assert_eq!(&noisy, &dues(seed));
            prop_assert!(ms == 0 || noisy != dues(seed ^ 1));
        }
    }

    fn dues_without_noise() -> impl Iterator<Item = Instant> {
        (1_u64..).map(|turn| Instant::from_nanos(7) + Duration::from_millis(20) * turn)
    }

    /// Talk and silence of units of 5 ms, in seconds.
    fn spurts(source: &mut Timed, count: usize) -> (Vec<f64>, Vec<f64>) {
        let (mut talk, mut silence) = (Vec::new(), Vec::new());
        let (mut began, mut last) = (0, 0);
        for (_, unit) in units(source) {
            if unit.marker && unit.index > 0 {
                talk.push((last + 1 - began) as f64 * 0.005);
                silence.push((unit.slot - last - 1) as f64 * 0.005);
                began = unit.slot;
            }
            assert_eq!(unit.marker, unit.slot == began);
            last = unit.slot;
            if talk.len() == count {
                break;
            }
        }
        (talk, silence)
    }

    /// Mean and standard deviation.
    fn moments(values: &[f64]) -> (f64, f64) {
        let n = values.len() as f64;
        let mean = values.iter().sum::<f64>() / n;
        let square = values.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / n;
        (mean, square.sqrt())
    }

    #[test]
    fn talkspurts_have_the_means_of_p59() {
        const COUNT: usize = 10_000;
        let on_off = OnOff {
            rate: Rate::from_bps(64_000),
            packet: Size::from_bytes(40),
            on: Talkspurts::p59().on,
            off: Talkspurts::p59().off,
            noise: Duration::ZERO,
        };
        let mut source = Timed::on_off(&on_off, Dice::new(5, "source"), Instant::ZERO, STOP);
        let (talk, silence) = spurts(&mut source, COUNT);
        // Spurts too short to begin a unit vanish, one in 400 and 630: they join their neighbours.
        for (values, mean, blur) in [(talk, 1.004, 0.005), (silence, 1.587, 0.005)] {
            let (measured, deviation) = moments(&values);
            // An exponential's deviation is its mean: the standard error is 1 %; four of them.
            assert!((measured / mean - 1.0).abs() < 0.04 + blur, "{measured}");
            assert!((deviation / measured - 1.0).abs() < 0.08, "{deviation}");
            let beyond = values.iter().filter(|x| **x > mean).count() as f64 / COUNT as f64;
            assert!((beyond - 0.3679).abs() < 0.02, "{beyond}");
        }
    }

    #[test]
    fn slots_go_on_beyond_32_bits() {
        let on_off = OnOff {
            rate: Rate::from_bps(8_000_000_000),
            packet: Size::from_bytes(1),
            on: Duration::from_micros(1),
            off: Duration::from_secs(5),
            noise: Duration::ZERO,
        };
        let mut source = Timed::on_off(&on_off, Dice::new(3, "source"), Instant::ZERO, STOP);
        let (mut spurts, mut last) = (0, None);
        for (due, unit) in units(&mut source).take(200_000) {
            // An interval is a nanosecond: the slot says when, and every unit has its own.
            assert_eq!(unit.captured, Instant::from_nanos(unit.slot));
            assert_eq!(due, Instant::from_nanos(unit.slot + 1));
            assert!(last < Some(unit.slot), "{last:?} {}", unit.slot);
            spurts += u64::from(unit.marker);
            last = Some(unit.slot);
        }
        let mean_gap = last.expect("units") as f64 / spurts as f64;
        assert!(last > Some(10 << 32), "{last:?}");
        // 200 gaps: the standard error is 7 %; three of them.
        assert!((4e9..6e9).contains(&mean_gap), "{mean_gap}");
    }

    fn speech(samples: usize, repeat: bool) -> Timed {
        let pcm: Vec<i16> = (0..samples).map(|x| (x * 7 % 20_000) as i16).collect();
        let recording = Recording::from_pcm(pcm, Codec::Pcma);
        let speech = Speech {
            repeat,
            lead: Duration::from_secs(1),
            noise: Duration::ZERO,
            ..Speech::unheard(Codec::Pcma)
        };
        let dice = Dice::new(1, "source");
        Timed::speech(&speech, Some(Arc::new(recording)), dice, Instant::ZERO, STOP)
    }

    #[test]
    fn a_recording_ends_or_starts_over() {
        let lengths = |repeat: bool| -> Vec<usize> {
            let mut source = speech(340, repeat);
            units(&mut source).take(7).map(|(_, unit)| unit.payload.len()).collect()
        };
        assert_eq!(lengths(false), [160, 160, 20]);
        assert_eq!(lengths(true), [160; 7]);
        let mut source = speech(340, true);
        let all: Vec<_> = units(&mut source).take(6).map(|(_, unit)| unit.payload).collect();
        assert_eq!(all[..3], all[3..]);
        let Payload::Real(last) = &all[2] else { panic!("recorded") };
        assert!(last[19..].iter().all(|code| *code == last[19]));
        assert_eq!(units(&mut speech(0, true)).count(), 0);
        // The lead comes first.
        assert_eq!(speech(340, false).due(), Some(Instant::ZERO + Duration::from_millis(1020)));
    }
}
