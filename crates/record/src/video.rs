//! Frames of several packets: which were complete and decodable, and their delays.
//!
//! Consecutive packets with the same capture time form a frame. Of a source that says which frames are key
//! frames, a frame is decodable if all since the last key frame are complete; of others, if it is itself. A
//! decodable frame is shown at once, and of repaired video when a receiver shows it ([`showing`]), unless a
//! later one was shown before it.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;

use arrow_array::RecordBatch;
use talkspurt_proto::time::{Duration, Instant};

use crate::columns::{Columns, Moment};
use crate::layout::Layout;
use crate::showing::{self, Decodable};

/// The frames of one direction.
#[derive(Clone, Debug)]
pub(crate) struct Video {
    deadline: Duration,
    /// Its source rests where nothing changes, as a shared screen does.
    rests: bool,
    pub(crate) frames: Vec<Frame>,
    /// By packet, whether it was delivered.
    delivered: Vec<bool>,
    /// The highest number that was delivered.
    newest: u32,
    /// Packets missing before it, and when that could be noticed.
    missing: BTreeMap<u32, Instant>,
    /// What the source says of the frame that it makes next.
    pub(crate) next_is_key: Option<bool>,
}

/// Older missing packets are forgotten.
const MOST_MISSING: usize = 10_000;

/// One frame.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Frame {
    captured: Instant,
    /// Number of its first packet.
    first: u32,
    packets: u32,
    bytes: u64,
    delivered: u32,
    /// Delivery time of its last packet, if all were delivered.
    complete: Option<Instant>,
    /// Whether it needs no other; `None` if the source does not say.
    is_key: Option<bool>,
    /// It has repeated packets: the least time from a gap to one of them.
    repaired: Option<Duration>,
}

/// When each frame could be decoded.
fn decodable(frames: &[Frame]) -> Vec<Option<Instant>> {
    let mut chain = None;
    let mut found: Vec<Option<Instant>> = Vec::with_capacity(frames.len());
    for frame in frames {
        chain = match frame.is_key {
            Some(false) => chain.zip(frame.complete).map(|(before, own)| own.max(before)),
            Some(true) | None => frame.complete,
        };
        found.push(chain);
    }
    // A key frame that was decoded first replaces those before it.
    let mut replaced = Instant::HORIZON;
    for (frame, at) in frames.iter().zip(&mut found).rev() {
        *at = at.filter(|at| *at <= replaced);
        if frame.is_key == Some(true) {
            replaced = at.map_or(replaced, |at| at.min(replaced));
        }
    }
    found
}

/// Statistics of a window's frames at the end of the run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct VideoSummary {
    /// Captured frames, except incomplete ones whose deadline would follow the end of the run.
    pub frames: u64,
    /// Of these, decodable frames, late or not.
    pub complete: u64,
    /// Of these, frames decodable after the deadline.
    pub late: u64,
    /// From capture to when the frame could be decoded: median, 95th percentile and
    /// maximum, in seconds; nearest-rank.
    pub delay_s: [Option<f64>; 3],
    /// Shown frames per second, from the first judged capture to the last.
    pub shown_per_s: Option<f64>,
    /// Freezes; `None` of a shared screen, which rests where nothing changes.
    pub freezes: Option<Freezes>,
}

/// Freezes of a flow's video.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Freezes {
    /// How many.
    pub count: u64,
    /// Their sum in seconds.
    pub total_s: f64,
    /// The longest in seconds.
    pub longest_s: f64,
}

// libwebrtc's VideoQualityObserver, whose counts are freezeCount and totalFreezesDuration of getStats().
const FREEZE_WINDOW: usize = 30;
const FREEZE_SAMPLES: usize = 5;
const FREEZE_INCREASE: Duration = Duration::from_millis(150);

/// Intervals between shown frames, and which of them are freezes.
#[derive(Debug, Default)]
struct Screen {
    last: Option<Instant>,
    intervals: VecDeque<Duration>,
    freezes: Vec<Duration>,
}

impl Screen {
    /// Nothing new was shown from the last frame until `now`.
    fn until(&mut self, now: Instant) {
        let Some(last) = self.last.replace(now) else { return };
        let interval = now.saturating_since(last);
        self.intervals.push_back(interval);
        if self.intervals.len() > FREEZE_WINDOW {
            self.intervals.pop_front();
        }
        let count = self.intervals.len() as u64;
        let mean = self.intervals.iter().copied().sum::<Duration>() / count;
        let least = (mean * 3).max(mean + FREEZE_INCREASE);
        if count >= FREEZE_SAMPLES as u64 && interval >= least {
            self.freezes.push(interval);
        }
    }
}

impl VideoSummary {
    /// Share of frames that were complete by their deadline; `None` without a frame.
    pub(crate) fn in_time_ratio(&self) -> Option<f64> {
        (self.frames > 0).then(|| (self.complete - self.late) as f64 / self.frames as f64)
    }
}

impl Video {
    pub(crate) fn new((deadline, rests): (Duration, bool)) -> Self {
        Self {
            deadline,
            rests,
            frames: Vec::new(),
            delivered: Vec::new(),
            newest: 0,
            missing: BTreeMap::new(),
            next_is_key: None,
        }
    }

    /// A packet was generated; false if it is not the next one.
    pub(crate) fn generated(&mut self, index: u32, captured: Instant, bytes: u32) -> bool {
        if index as usize != self.delivered.len() {
            return false;
        }
        self.delivered.push(false);
        let present = self.frames.last_mut().filter(|frame| frame.captured == captured);
        match present {
            Some(frame) => {
                frame.packets += 1;
                frame.bytes += u64::from(bytes);
            }
            None => self.frames.push(Frame {
                captured,
                first: index,
                packets: 1,
                bytes: bytes.into(),
                delivered: 0,
                complete: None,
                is_key: self.next_is_key,
                repaired: None,
            }),
        }
        true
    }

    /// Whether a packet of repaired video is older than the newest: it was repeated, so that its delay is no
    /// jitter.
    pub(crate) const fn is_behind(&self, index: u32) -> bool {
        self.next_is_key.is_some() && index < self.newest
    }

    /// A packet was delivered; returns its capture time, or `None` for a duplicate or a packet never sent.
    pub(crate) fn delivered(&mut self, index: u32, now: Instant) -> Option<Instant> {
        let delivered = self.delivered.get_mut(index as usize).filter(|delivered| !**delivered)?;
        *delivered = true;
        if self.next_is_key.is_some() {
            let first = (self.newest + 1).max(index.saturating_sub(MOST_MISSING as u32));
            self.missing.extend((first..index).map(|missing| (missing, now)));
            while self.missing.len() > MOST_MISSING {
                self.missing.pop_first();
            }
        }
        let noticed = self.missing.remove(&index);
        self.newest = self.newest.max(index);
        let after = self.frames.partition_point(|frame| frame.first <= index);
        let frame = &mut self.frames[after - 1];
        if let Some(noticed) = noticed {
            let took = now.saturating_since(noticed);
            frame.repaired = Some(frame.repaired.map_or(took, |before| before.min(took)));
        }
        frame.delivered += 1;
        if frame.delivered == frame.packets {
            frame.complete = Some(now);
        }
        Some(frame.captured)
    }

    /// Statistics of the frames captured in `from..to` of a run that ended at `end`.
    pub(crate) fn summary(&self, from: Instant, to: Instant, end: Instant) -> VideoSummary {
        let shown = shown(&self.frames, &decodable(&self.frames));
        let all = self.frames.iter().map(|frame| frame.captured).zip(shown);
        let window = all.filter(|(captured, _)| from <= *captured && *captured < to);
        // When each was captured and shown; the others are not judged.
        let window: Vec<_> = window.collect();
        let is_judged = |(captured, at): &&(Instant, Option<Instant>)| {
            at.is_some() || *captured + self.deadline <= end
        };
        let (mut found, mut delays) = (VideoSummary::default(), Vec::new());
        found.freezes = Some(Freezes::default());
        for (captured, at) in window.iter().filter(is_judged) {
            found.frames += 1;
            let Some(at) = at else { continue };
            let delay = at.saturating_since(*captured);
            found.complete += 1;
            found.late += u64::from(delay > self.deadline);
            delays.push(delay);
        }
        let mut captures = window.iter().filter(is_judged).map(|(captured, _)| *captured);
        if let Some(first) = captures.next() {
            let last = captures.next_back().unwrap_or(first);
            let seen = window.iter().filter_map(|(captured, at)| Some((*captured, (*at)?)));
            show(&mut found, seen, (first, last));
        }
        delays.sort_unstable();
        found.delay_s = [50, 95, 100].map(|percent| {
            let rank = (delays.len() * percent).div_ceil(100).checked_sub(1)?;
            Some(delays[rank].as_secs_f64())
        });
        found.freezes = found.freezes.filter(|_| !self.rests);
        found
    }
}

/// When the receiver is ready to show each frame.
fn shown(frames: &[Frame], decodable: &[Option<Instant>]) -> Vec<Option<Instant>> {
    if frames.iter().all(|frame| frame.is_key.is_none()) {
        return decodable.to_vec();
    }
    let each = frames.iter().zip(decodable);
    let known = each.filter_map(|(frame, at)| {
        let (captured, bytes, repaired) = (frame.captured, frame.bytes, frame.repaired);
        Some(Decodable { captured, bytes, complete: frame.complete?, at: (*at)?, repaired })
    });
    let mut times = showing::shown(&known.collect::<Vec<_>>()).into_iter();
    decodable.iter().map(|at| at.and_then(|_| times.next())).collect()
}

/// What the viewer sees of these frames, each with its capture and when it is shown, between the first
/// and the last that are judged. The time from the last that is shown to the last that was captured counts,
/// too: nothing follows it.
fn show(
    found: &mut VideoSummary,
    frames: impl Iterator<Item = (Instant, Instant)>,
    (first, last): (Instant, Instant),
) {
    let mut shown: Vec<(Instant, Instant)> = Vec::new();
    for (captured, decodable) in frames {
        while shown.last().is_some_and(|(at, _)| *at > decodable) {
            shown.pop();
        }
        shown.push((decodable, captured));
    }
    let mut screen = Screen::default();
    shown.iter().for_each(|(at, _)| screen.until(*at));
    let seconds = (last - first).as_secs_f64();
    found.shown_per_s = (seconds > 0.0).then(|| shown.len() as f64 / seconds);
    match shown.last() {
        Some((at, captured)) if *captured < last => screen.until(*at + (last - *captured)),
        Some(_) => {}
        // Nothing was ever shown.
        None => screen.freezes.extend(Some(last - first).filter(|it| *it > FREEZE_INCREASE)),
    }
    found.freezes = Some(Freezes {
        count: screen.freezes.len() as u64,
        total_s: screen.freezes.iter().copied().sum::<Duration>().as_secs_f64(),
        longest_s: screen.freezes.iter().max().map_or(0.0, |longest| longest.as_secs_f64()),
    });
}

/// A part of the `video_frames` table of these directions' frames.
pub(crate) fn part(
    layout: &Layout,
    videos: &[(usize, Vec<Frame>)],
    part: Range<usize>,
) -> RecordBatch {
    let names: Vec<(usize, String)> =
        layout.directions().map(|direction| (direction.peer, direction.name())).collect();
    let name = |peer: usize| {
        names.iter().find(|(other, _)| *other == peer).map_or("", |(_, name)| name.as_str())
    };
    let each = videos.iter().flat_map(|(peer, frames)| {
        let decodable = decodable(frames);
        let times = shown(frames, &decodable).into_iter().zip(decodable);
        let numbered = frames.iter().zip(times).enumerate();
        numbered.map(move |(index, (frame, times))| (*peer, index, frame, times))
    });
    let all: Vec<_> = each.skip(part.start).take(part.len()).collect();
    let rows = || all.iter().map(|(_, _, frame, _)| *frame);
    let moment = |at: Option<Instant>| at.map_or(Moment::NEVER, Moment::from);
    let kind = |frame: &Frame| frame.is_key.map(|is_key| if is_key { "key" } else { "inter" });
    let flows = all.iter().map(|(peer, ..)| name(*peer));
    let indices = all.iter().map(|(_, index, ..)| *index as u64);
    Columns::default()
        .text("flow", flows)
        .count("index", indices)
        .time("captured_s", rows().map(|frame| frame.captured))
        .count("packets", rows().map(|frame| u64::from(frame.packets)))
        .count("bytes", rows().map(|frame| frame.bytes))
        .count("delivered_packets", rows().map(|frame| u64::from(frame.delivered)))
        .maybe_time("complete_s", rows().map(|frame| moment(frame.complete)))
        .maybe_time("decodable_s", all.iter().map(|(.., (_, at))| moment(*at)))
        .maybe_time("shown_s", all.iter().map(|(.., (at, _))| moment(*at)))
        .maybe_text("kind", rows().map(kind))
        .finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(ms: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(ms)
    }

    /// Five frames of two packets every 40 ms: the first complete after 30 ms, the second late, the third with
    /// a packet missing, the fourth complete out of order and with a duplicate, the fifth undecided at the end.
    #[test]
    fn frames_are_complete_with_their_last_packet() {
        let mut video = Video::new((Duration::from_millis(100), false));
        for frame in 0..5_u32 {
            for packet in 0..2 {
                assert!(video.generated(2 * frame + packet, ms(40 * u64::from(frame)), 700));
            }
        }
        assert!(!video.generated(11, ms(200), 700));
        for (index, at) in [(0, 10), (1, 30), (2, 50), (3, 141), (4, 100), (7, 150), (8, 170)] {
            let captured = video.delivered(index, ms(at));
            assert_eq!(captured, Some(ms(u64::from(index) / 2 * 40)));
        }
        assert_eq!(video.delivered(7, ms(155)), None);
        assert_eq!(video.delivered(6, ms(160)), Some(ms(120)));
        assert_eq!(video.delivered(99, ms(160)), None);
        let all = video.summary(ms(0), ms(1000), ms(200));
        let delay_s = [Some(0.040), Some(0.101), Some(0.101)];
        // The third frame was never complete; the fourth came after 170 ms, the others after 30 and 141 ms.
        let shown_per_s = Some(3.0 / 0.120);
        let expected =
            VideoSummary { frames: 4, complete: 3, late: 1, delay_s, shown_per_s, ..none() };
        assert_eq!(all, expected);
        // The deadline of the fifth is at 260 ms.
        assert_eq!(video.summary(ms(0), ms(1000), ms(260)).frames, 5);
        assert_eq!(video.summary(ms(40), ms(120), ms(260)).frames, 2);
        assert_eq!(video.summary(ms(500), ms(600), ms(700)), none());
    }

    fn none() -> VideoSummary {
        VideoSummary { freezes: Some(Freezes::default()), ..VideoSummary::default() }
    }

    /// A frame of one packet each 30 ms; `arrives` says when each is complete.
    fn shown(frames: u32, arrives: impl Fn(u64) -> Option<u64>) -> VideoSummary {
        let mut video = Video::new((Duration::from_millis(400), false));
        for frame in 0..frames {
            assert!(video.generated(frame, ms(30 * u64::from(frame)), 700));
        }
        for frame in 0..frames {
            if let Some(at) = arrives(frame.into()) {
                video.delivered(frame, ms(at));
            }
        }
        video.summary(ms(0), ms(1_000_000), ms(1_000_000))
    }

    fn freezes(summary: &VideoSummary) -> (u64, f64, f64) {
        let it = summary.freezes.expect("no shared screen");
        (it.count, it.total_s, it.longest_s)
    }

    /// The case of libwebrtc's own test: five frames 30 ms apart, the sixth a second later.
    #[test]
    fn a_second_without_a_frame_is_a_freeze() {
        let steady = |frame: u64| Some(30 * frame);
        assert_eq!(freezes(&shown(200, steady)).0, 0);
        let late = shown(6, |frame| Some(30 * frame + if frame == 5 { 970 } else { 0 }));
        assert_eq!(freezes(&late), (1, 1.0, 1.0));
        // Two frames in a row are missing: 90 ms are no freeze, for that is less than 150 ms more than usual.
        assert_eq!(freezes(&shown(200, |frame| steady(frame).filter(|_| frame % 50 > 1))).0, 0);
        // Ten in a row are missing twice: 330 ms.
        let gaps = shown(200, |frame| {
            steady(frame).filter(|_| frame % 100 != 7 && (frame % 100).abs_diff(55) > 4)
        });
        assert_eq!(freezes(&gaps), (2, 0.6, 0.3));
    }

    /// Nothing arrives from the hundredth frame on, or ever.
    #[test]
    fn an_end_without_frames_is_a_freeze() {
        let ends = shown(200, |frame| Some(30 * frame + 10).filter(|_| frame < 100));
        assert_eq!(freezes(&ends), (1, 3.0, 3.0));
        let never = shown(200, |_| None);
        assert_eq!((freezes(&never), never.shown_per_s), ((1, 5.97, 5.97), Some(0.0)));
    }

    /// A frame that is complete after its successor is not shown any more.
    #[test]
    fn overtaken_frames_are_not_shown() {
        let all = shown(100, |frame| Some(30 * frame + if frame == 50 { 45 } else { 0 }));
        assert_eq!((all.complete, freezes(&all).0), (100, 0));
        assert_eq!(all.shown_per_s, Some(99.0 / 2.97));
    }
}
