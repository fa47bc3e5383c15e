//! Sources with uneven intervals or sizes: a Poisson process, video, and captured packets.
//!
//! A unit is one packet. The packets of a frame share its capture time, and the last has the marker (RFC 3551
//! §5).

use std::sync::Arc;

use talkspurt_proto::packet::Payload;
use talkspurt_proto::rng::Rng;
use talkspurt_proto::time::{Duration, Instant};

use super::Unit;
use super::capture::Capture;
use super::config::{Poisson, Video};
use super::frames::{Frame, FrameTrace};

/// Ticks of the video clock per second (RFC 3551 §5).
pub const VIDEO_CLOCK: u32 = 90_000;

/// A source with an irregular schedule.
#[derive(Debug)]
pub struct Paced {
    pace: Pace,
    noise: Duration,
    rng: Rng,
    origin: Instant,
    stop: Instant,
    sent: u32,
    sent_bytes: u64,
    next: Option<Planned>,
    due: Option<Instant>,
}

#[derive(Debug)]
enum Pace {
    Poisson { gap: Duration, bytes: u64, at: Duration },
    Video(Pictures),
    Replay { capture: Arc<Capture>, next: usize },
}

/// The next packet; times are relative to the start.
#[derive(Clone, Copy, Debug)]
struct Planned {
    captured: Duration,
    leaves: Duration,
    /// First of its frame.
    first: bool,
    /// Media clock.
    ticks: u64,
    marker: bool,
    bytes: u64,
}

/// Frames split into packets.
#[derive(Debug)]
struct Pictures {
    frames: Frames,
    /// Number of the current frame, its capture time, and its remaining bytes.
    index: u64,
    captured: Duration,
    left: u64,
    whole: u64,
    most: u64,
}

#[derive(Debug)]
enum Frames {
    Even { size: u64, interval: Duration },
    Traced { trace: Arc<FrameTrace>, repeat: bool },
}

impl Paced {
    /// Packets of constant size at the instants of a Poisson process.
    #[must_use]
    pub fn poisson(config: &Poisson, rng: Rng, start: Instant, stop: Instant) -> Self {
        let bytes = config.packet.as_bytes();
        let gap = config.rate.time_for(bytes).unwrap_or(Duration::MAX);
        let pace = Pace::Poisson { gap, bytes, at: Duration::ZERO };
        Self::new(pace, Duration::ZERO, rng, start, stop)
    }

    /// Video with the frames of `trace` or, without one, equal frames.
    #[must_use]
    pub fn video(
        config: &Video,
        trace: Option<Arc<FrameTrace>>,
        rng: Rng,
        start: Instant,
        stop: Instant,
    ) -> Self {
        let frames = match trace {
            Some(trace) => Frames::Traced { trace, repeat: config.repeat },
            None => {
                let interval = config.frame();
                Frames::Even { size: super::frames::even(config), interval }
            }
        };
        let most = config.packet.as_bytes().max(1);
        let mut pictures =
            Pictures { frames, index: 0, captured: Duration::ZERO, left: 0, whole: 0, most };
        pictures.begin(0);
        Self::new(Pace::Video(pictures), config.noise, rng, start, stop)
    }

    /// The packets of a capture.
    #[must_use]
    pub fn replay(capture: Arc<Capture>, start: Instant, stop: Instant) -> Self {
        // No random numbers are used.
        let rng = Rng::new(0, "replay");
        Self::new(Pace::Replay { capture, next: 0 }, Duration::ZERO, rng, start, stop)
    }

    fn new(pace: Pace, noise: Duration, rng: Rng, origin: Instant, stop: Instant) -> Self {
        let mut source =
            Self { pace, noise, rng, origin, stop, sent: 0, sent_bytes: 0, next: None, due: None };
        source.plan(Instant::ZERO);
        source
    }

    /// When the next unit leaves.
    #[must_use]
    pub fn due(&self) -> Option<Instant> {
        self.due
    }

    /// Returns the unit that is due, and schedules the next.
    pub fn take(&mut self, now: Instant) -> Option<Unit> {
        let due = self.due.filter(|due| *due <= now)?;
        let planned = self.next?;
        let unit = Unit {
            index: self.sent,
            slot: planned.ticks,
            encoding: 0,
            keep_alive: false,
            marker: planned.marker,
            captured: self.origin + planned.captured,
            payload: Payload::Virtual { offset: self.sent_bytes, len: planned.bytes },
        };
        self.sent = self.sent.checked_add(1).expect(super::UNITS_FIT);
        self.sent_bytes += planned.bytes;
        self.plan(due);
        Some(unit)
    }

    fn plan(&mut self, earliest: Instant) {
        self.next = self.pace.next(&mut self.rng);
        self.due = self.next.and_then(|next| {
            let noise = if next.first { self.rng.span(self.noise) } else { Duration::ZERO };
            let leaves = self.origin + next.leaves;
            (leaves < self.stop).then(|| (leaves + noise).max(earliest))
        });
    }
}

impl Pace {
    fn next(&mut self, rng: &mut Rng) -> Option<Planned> {
        match self {
            Self::Poisson { gap, bytes, at } => {
                *at += rng.exponential(*gap);
                Some(Planned {
                    captured: *at,
                    leaves: *at,
                    first: true,
                    ticks: 0,
                    marker: false,
                    bytes: *bytes,
                })
            }
            Self::Video(pictures) => pictures.next(),
            Self::Replay { capture, next } => {
                let packet = capture.packets.get(*next)?;
                *next += 1;
                Some(Planned {
                    captured: packet.captured,
                    leaves: packet.at,
                    first: true,
                    ticks: packet.ticks.into(),
                    marker: packet.marker,
                    bytes: packet.payload_bytes.into(),
                })
            }
        }
    }
}

impl Pictures {
    /// Goes to the frame of this number; without one the source is done.
    fn begin(&mut self, index: u64) {
        let Some(Frame { at, size }) = self.frames.frame(index) else {
            self.left = 0;
            return;
        };
        (self.index, self.captured, self.left, self.whole) = (index, at, size, size);
    }

    fn next(&mut self) -> Option<Planned> {
        if self.left == 0 {
            return None;
        }
        let bytes = self.left.min(self.most);
        let planned = Planned {
            captured: self.captured,
            leaves: self.captured,
            first: self.left == self.whole,
            ticks: ticks(self.captured),
            marker: bytes == self.left,
            bytes,
        };
        self.left -= bytes;
        if self.left == 0 {
            self.begin(self.index + 1);
        }
        Some(planned)
    }
}

impl Frames {
    fn frame(&self, index: u64) -> Option<Frame> {
        match self {
            Self::Even { size, interval } => Some(Frame { at: *interval * index, size: *size }),
            Self::Traced { trace, repeat } => {
                let frames = trace.frames.len() as u64;
                let (round, place) = (index / frames, (index % frames) as usize);
                let frame = trace.frames[place];
                (round == 0 || *repeat)
                    .then(|| Frame { at: trace.period * round + frame.at, size: frame.size })
            }
        }
    }
}

/// Ticks of the video clock.
pub(super) fn ticks(at: Duration) -> u64 {
    (u128::from(at.as_nanos()) * u128::from(VIDEO_CLOCK) / 1_000_000_000) as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use talkspurt_proto::units::{Rate, Size};

    const STOP: Instant = Instant::from_nanos(200_000_000_000_000);
    const MS: Duration = Duration::from_millis(1);

    fn units(source: &mut Paced) -> impl Iterator<Item = (Instant, Unit)> {
        std::iter::from_fn(|| {
            let due = source.due()?;
            let before = due.as_nanos().checked_sub(1).map(Instant::from_nanos);
            assert!(before.is_none_or(|before| source.take(before).is_none()));
            Some((due, source.take(due).expect("its turn has come")))
        })
    }

    fn video() -> Video {
        serde_json::from_str(r#"{ "rate": "1Mbit/s", "noise": "0ms" }"#).expect("video")
    }

    /// A Poisson process has counts whose variance equals their mean (index of dispersion 1), and exponential
    /// gaps.
    #[test]
    fn poisson_gaps_are_exponential_and_counts_have_the_variance_of_their_mean() {
        const COUNT: usize = 100_000;
        let config = Poisson { rate: Rate::from_bps(800_000), packet: Size::from_bytes(100) };
        let mut source = Paced::poisson(&config, Rng::new(1, "source"), Instant::ZERO, STOP);
        let times: Vec<f64> =
            units(&mut source).take(COUNT).map(|(due, _)| due.as_secs_f64()).collect();
        let gaps = times.windows(2).map(|pair| pair[1] - pair[0]);
        for (bound, expected) in [(0.001, 0.367_879), (0.003, 0.049_787)] {
            let share = gaps.clone().filter(|gap| *gap > bound).count() as f64 / COUNT as f64;
            let error = (expected * (1.0_f64 - expected) / COUNT as f64).sqrt();
            assert!((share - expected).abs() < 4.0 * error, "{share} beyond {bound}");
        }
        // 10 ms bins of mean 10; the dispersion of n bins has the standard deviation √(2/n).
        let bins = (times[COUNT - 1] / 0.01) as usize;
        let mut counts = vec![0.0_f64; bins];
        for time in times.iter().filter(|time| **time < bins as f64 * 0.01) {
            counts[((time / 0.01) as usize).min(bins - 1)] += 1.0;
        }
        let mean = counts.iter().sum::<f64>() / bins as f64;
        let variance = counts.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / bins as f64;
        assert!((mean - 10.0).abs() < 4.0 * (10.0 / bins as f64).sqrt(), "{mean}");
        assert!((variance / mean - 1.0).abs() < 4.0 * (2.0 / bins as f64).sqrt(), "{variance}");
    }

    #[test]
    fn even_frames_are_cut_and_the_last_packet_is_marked() {
        // 1 Mbit/s in frames of 40 ms: 5000 B, four packets of 1200 and one of 200.
        let mut source = Paced::video(&video(), None, Rng::new(1, "v"), Instant::ZERO, STOP);
        for (index, (due, unit)) in units(&mut source).take(50).enumerate() {
            let frame = index as u64 / 5;
            assert_eq!((unit.captured, due), (Instant::ZERO + MS * 40 * frame, unit.captured));
            assert_eq!(unit.slot, 3600 * frame);
            let last = index % 5 == 4;
            assert_eq!((unit.marker, unit.payload.len()), (last, if last { 200 } else { 1200 }));
        }
    }

    #[test]
    fn a_trace_is_sent_byte_for_byte_and_starts_over_if_asked() {
        let text = "time,type,size\n0ms,I,3000B\n33ms,P,1200B\n70ms,P,1B\n";
        let trace = Arc::new(FrameTrace::parse(text, MS).expect("a trace"));
        let sent = |repeat| -> Vec<(u64, usize, bool)> {
            let video = Video { repeat, ..video() };
            let (trace, rng) = (Some(Arc::clone(&trace)), Rng::new(1, "v"));
            let mut source = Paced::video(&video, trace, rng, Instant::ZERO, STOP);
            let of = |(due, unit): (Instant, Unit)| {
                (due.as_nanos() / 1_000_000, unit.payload.len(), unit.marker)
            };
            units(&mut source).take(8).map(of).collect()
        };
        let once =
            [(0, 1200, false), (0, 1200, false), (0, 600, true), (33, 1200, true), (70, 1, true)];
        assert_eq!(sent(false), once);
        // The last frame lasts as long as the one before: the period is 107 ms.
        assert_eq!(sent(true)[..5], once);
        assert_eq!(sent(true)[5..], [(107, 1200, false), (107, 1200, false), (107, 600, true)]);
    }

    #[test]
    fn noise_moves_whole_frames() {
        let noisy = Video { noise: MS * 5, ..video() };
        let mut source = Paced::video(&noisy, None, Rng::new(1, "v"), Instant::ZERO, STOP);
        let all: Vec<_> = units(&mut source).take(500).collect();
        let mut moved = 0;
        for frame in all.chunks(5) {
            let late = frame[0].0 - frame[0].1.captured;
            assert!(late < MS * 5 && frame.iter().all(|(due, _)| *due == frame[0].0));
            moved += u64::from(late > MS);
        }
        assert!((50..95).contains(&moved), "{moved}");
    }
}
