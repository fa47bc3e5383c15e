//! Video of an encoder that follows a target rate: the statistical model of RFC 8593 §5, or the model of §6
//! with a table of frame sizes.

use std::sync::Arc;

use talkspurt_proto::math::ln;
use talkspurt_proto::packet::Payload;
use talkspurt_proto::rng::Rng;
use talkspurt_proto::rtp::vp8::{Begins, Blank};
use talkspurt_proto::time::{Duration, Instant};
use talkspurt_proto::units::Rate;

use super::config::{Encoder as Config, Video};
use super::paced::ticks;
use super::{FrameRates, Generator, RTP_HEADER, Unit};

/// The encoder. Frames are made when they are captured, so that a frame has the rate of that instant.
#[derive(Debug)]
pub(super) struct Encoder {
    config: Config,
    /// 1/FPS.
    interval: Duration,
    /// Payload of a packet.
    most: u64,
    noise: Duration,
    rng: Rng,
    origin: Instant,
    stop: Instant,
    /// R_v as it was asked for last, and as the encoder knows it. Rates include RTP headers.
    asked: Rate,
    rate: Rate,
    /// When the encoder may change its rate again.
    free: Instant,
    /// Frames of a burst that are left.
    burst: u32,
    /// Sizes of frames, and which is the next (t_current).
    table: Option<Arc<FrameRates>>,
    row: usize,
    /// When the shared screen changes next, if it is one.
    changes: Option<Instant>,
    /// Payload that says which frames are key frames; `None` if nobody reads it.
    blank: Option<Blank>,
    /// The next frame is a key frame, and when the last one was captured.
    key_is_next: bool,
    key_captured: Instant,
    /// What begins with the next packet.
    begins: Begins,
    /// The rest of the current frame, when it was captured, and when it leaves.
    left: u64,
    captured: Instant,
    leaves: Instant,
    next_capture: Instant,
    sent: u32,
    sent_bytes: u64,
    /// Time that the pacer needs for the packets in its queue.
    backlog: Duration,
    /// Share of frames that the controller asks to skip, and frames captured while it does.
    skip: f64,
    captures: u32,
}

/// No frame of a burst is smaller than this share of the usual (as in syncodecs, by authors of RFC 8593).
const SMALLEST: f64 = 0.2;
/// Between pictures of a screen that does not change.
const IDLE: Duration = Duration::from_secs(1);
/// Requests sooner after a key frame than this are ignored (libwebrtc: kMinKeyFrameSendIntervalMs).
const BETWEEN_KEY_FRAMES: Duration = Duration::from_millis(300);

impl Encoder {
    /// An encoder at its lowest rate, which begins with a burst as with a key frame.
    #[must_use]
    pub(super) fn new(
        config: Config,
        video: &Video,
        table: Option<Arc<FrameRates>>,
        rng: Rng,
        (start, stop): (Instant, Instant),
    ) -> Self {
        Self {
            table,
            row: 0,
            changes: config.changes.map(|_| start),
            interval: video.frame(),
            most: video.packet.as_bytes().max(1),
            noise: video.noise,
            rng,
            origin: start,
            stop,
            asked: config.min,
            rate: config.min,
            free: start,
            burst: config.burst_frames,
            blank: video.repair.map(|_| Blank::new(video.packet.as_bytes() as usize)),
            key_is_next: true,
            key_captured: start,
            begins: Begins::Nothing,
            left: 0,
            captured: start,
            leaves: start,
            next_capture: start,
            sent: 0,
            sent_bytes: 0,
            backlog: Duration::ZERO,
            skip: 0.0,
            captures: 0,
            config,
        }
    }

    /// Laplacian deviation of mean zero, within ±1 so that neither time nor size is negative.
    fn deviation(&mut self, scale: f64) -> f64 {
        let uniform = self.rng.unit() - 0.5;
        let size = -scale * ln((1.0 - 2.0 * uniform.abs()).max(f64::MIN_POSITIVE));
        size.copysign(uniform).clamp(-1.0, 1.0)
    }

    /// §5.1: the encoder ignores requests for `reaction` after it has followed one.
    fn follow(&mut self, now: Instant) {
        if self.asked == self.rate || now < self.free {
            return;
        }
        let [asked, rate] = [self.asked, self.rate].map(|rate| rate.as_bps() as f64);
        if (asked / rate - 1.0).abs() > self.config.abrupt {
            self.burst = self.config.burst_frames;
        }
        (self.rate, self.free) = (self.asked, now + self.config.reaction);
    }

    /// When the next picture is captured. A screen that does not change is captured once a second after the
    /// burst (libwebrtc: FrameCadenceAdapter, kZeroHertzIdleRepeatRatePeriod).
    fn following(&mut self) -> Instant {
        if let (Some(mut changes), Some(mean)) = (self.changes, self.config.changes) {
            if changes <= self.captured {
                // Exponential intervals.
                let wait = -mean.as_secs_f64() * ln((1.0 - self.rng.unit()).max(f64::MIN_POSITIVE));
                changes = self.captured + self.interval.max(Duration::from_secs_f64(wait));
                (self.changes, self.burst) = (Some(changes), self.config.burst_frames);
            }
            if self.burst <= 1 {
                return changes.min(self.captured + IDLE);
            }
        }
        let spread = match &self.table {
            None => self.deviation(self.config.time_spread),
            Some(_) => 0.0,
        };
        let gap = Duration::from_secs_f64(self.interval.as_secs_f64() * (1.0 + spread));
        self.captured + gap.max(Duration::from_nanos(1))
    }

    /// Bytes of payload of the next frame.
    fn frame(&mut self) -> u64 {
        // Headers of the packets that a frame of this many bytes has.
        let gross = self.rate.as_bps() as f64 / 8.0 * self.interval.as_secs_f64();
        let header = f64::from(RTP_HEADER);
        let packets = (gross / (self.most as f64 + header)).ceil().max(1.0);
        let mean = (gross - packets * header).max(1.0);
        if let Some(table) = &self.table {
            let size = table.size(self.row, 8.0 * mean / self.interval.as_secs_f64());
            self.row = table.next(self.row);
            return size as u64;
        }
        let mut size = mean;
        if self.burst > 0 {
            let (first, frames) =
                (self.config.burst.as_bytes() as f64, f64::from(self.config.burst_frames));
            // §5.2: large frames are followed by smaller ones, so that their mean is the rate.
            size = if self.burst == self.config.burst_frames {
                first
            } else {
                mean * ((frames - first / mean) / (frames - 1.0)).max(SMALLEST)
            };
            self.burst -= 1;
        } else if self.changes.is_some() {
            size = mean * SMALLEST;
        }
        size *= 1.0 + self.deviation(self.config.size_spread);
        (size as u64).max(1)
    }

    /// True if the controller wants this frame skipped: each so many-th, at most each second one (libwebrtc:
    /// VideoStreamEncoder::UpdateTargetBitrate).
    fn is_skipped(&mut self) -> bool {
        let rate = self.asked.as_bps();
        let spare = rate.saturating_sub(self.config.min.as_bps());
        let less = ((rate as f64 * self.skip) as u64).min(spare);
        if self.skip <= 0.01 || less == 0 {
            return false;
        }
        let number = self.captures;
        self.captures = number.wrapping_add(1);
        u64::from(number).is_multiple_of((rate / less).max(2))
    }

    /// Captures and encodes a picture.
    fn capture(&mut self) {
        self.captured = self.next_capture;
        self.next_capture = self.following();
        self.follow(self.captured);
        if self.backlog > self.config.skip_behind || self.is_skipped() {
            // §4, instant frame skipping.
            return;
        }
        let is_key = self.key_is_next
            && (self.sent == 0 || self.captured >= self.key_captured + BETWEEN_KEY_FRAMES);
        self.begins = if is_key { Begins::Key } else { Begins::Inter };
        if is_key {
            (self.key_is_next, self.key_captured) = (false, self.captured);
            // §6.2.2: the first frame of a table is the key frame.
            (self.burst, self.row) = (self.config.burst_frames, 0);
            if self.changes.is_some() {
                self.next_capture = self.captured + self.interval;
            }
        }
        self.left = self.frame();
        if self.blank.is_some() && self.left % self.most < Blank::LEAST {
            // The last packet is not too short to be read.
            self.left += self.left % self.most;
        }
        self.leaves = self.leaves.max(self.captured + self.rng.span(self.noise));
    }
}

impl Generator for Encoder {
    fn take(&mut self, now: Instant) -> Option<Unit> {
        while self.left == 0 {
            if self.next_capture > now || self.next_capture >= self.stop {
                return None;
            }
            self.capture();
        }
        if self.leaves > now {
            return None;
        }
        let bytes = self.left.min(self.most);
        self.left -= bytes;
        let begins = std::mem::replace(&mut self.begins, Begins::Nothing);
        let payload = match &self.blank {
            Some(blank) => blank.payload(begins, bytes as usize),
            None => Payload::Virtual { offset: self.sent_bytes, len: bytes },
        };
        let unit = Unit {
            index: self.sent,
            slot: ticks(self.captured - self.origin),
            encoding: 0,
            keep_alive: false,
            marker: self.left == 0,
            captured: self.captured,
            payload,
        };
        self.sent = self.sent.checked_add(1).expect(super::UNITS_FIT);
        self.sent_bytes += bytes;
        Some(unit)
    }

    fn due(&self) -> Option<Instant> {
        if self.left > 0 {
            return Some(self.leaves);
        }
        Some(self.next_capture).filter(|at| *at < self.stop)
    }

    fn set_target_rate(&mut self, target: Rate) {
        let target = Rate::from_bps((target.as_bps() as f64 * (1.0 - self.config.headroom)) as u64);
        // §5.4: the content limits the range.
        self.asked = target.clamp(self.config.min, self.config.max);
    }

    fn set_backlog(&mut self, backlog: Duration, skip: f64) {
        (self.backlog, self.skip) = (backlog, skip);
    }

    fn request_key_frame(&mut self, now: Instant, waits: bool) {
        self.key_is_next |= waits || now >= self.key_captured + BETWEEN_KEY_FRAMES;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use talkspurt_proto::rtp::vp8::begins;

    const START: Instant = Instant::ZERO;

    fn encoder(config: Config) -> Encoder {
        let text = r#"{ "encoder": {}, "noise": "0ms" }"#;
        let video: Video = serde_json::from_str(text).expect("video");
        let run = (START, Instant::from_nanos(u64::MAX / 2));
        Encoder::new(config, &video, None, Rng::new(1, "video"), run)
    }

    /// Frames up to an instant: capture, payload and packets of each.
    fn frames(encoder: &mut Encoder, until: Instant) -> Vec<(Instant, u64, u64)> {
        let mut frames: Vec<(Instant, u64, u64)> = Vec::new();
        while let Some(due) = encoder.due().filter(|due| *due < until) {
            let Some(unit) = encoder.take(due) else { continue };
            let bytes = unit.payload.len() as u64;
            match frames.last_mut() {
                Some((captured, size, packets)) if *captured == unit.captured => {
                    (*size, *packets) = (*size + bytes, *packets + 1);
                }
                _ => frames.push((unit.captured, bytes, 1)),
            }
        }
        frames
    }

    fn seconds(at: u64) -> Instant {
        START + Duration::from_secs(at)
    }

    /// Mean rate of RTP packets in bit/s over these seconds.
    fn rate(frames: &[(Instant, u64, u64)], seconds: f64) -> f64 {
        frames.iter().map(|(_, bytes, packets)| 8 * (bytes + 12 * packets)).sum::<u64>() as f64
            / seconds
    }

    #[test]
    fn the_mean_rate_is_the_target_in_rtp_packets() {
        for target in [150_000, 400_000, 1_000_000, 1_500_000] {
            let mut encoder = encoder(Config::default());
            encoder.set_target_rate(Rate::from_bps(target));
            frames(&mut encoder, seconds(10));
            let rate = rate(&frames(&mut encoder, seconds(310)), 300.0);
            assert!((rate / target as f64 - 1.0).abs() < 0.02, "{rate} of {target}");
        }
    }

    /// RFC 8593 §5.3: mean absolute deviation of a Laplacian is its scale.
    #[test]
    fn intervals_and_sizes_deviate_as_laplacians_do() {
        let mut encoder = encoder(Config::default());
        encoder.set_target_rate(Rate::from_bps(1_000_000));
        frames(&mut encoder, seconds(10));
        let all = frames(&mut encoder, seconds(2010));
        let gaps = all.windows(2).map(|pair| (pair[1].0 - pair[0].0).as_secs_f64() * 30.0);
        let mean = all.iter().map(|frame| frame.1 as f64).sum::<f64>() / all.len() as f64;
        let sizes = all.iter().map(|frame| frame.1 as f64 / mean);
        let deviation = |values: Vec<f64>| {
            values.iter().map(|x| (x - 1.0).abs()).sum::<f64>() / values.len() as f64
        };
        for deviation in [deviation(gaps.collect()), deviation(sizes.collect())] {
            assert!((deviation / 0.15 - 1.0).abs() < 0.03, "{deviation}");
        }
    }

    /// §5.1: after a change, others wait; the last one asked for is followed.
    #[test]
    fn requests_within_the_reaction_time_wait() {
        let config =
            Config { time_spread: 0.0, size_spread: 0.0, abrupt: 9.0, ..Config::default() };
        let mut encoder = encoder(config);
        frames(&mut encoder, seconds(1));
        let size = |encoder: &mut Encoder, at: Instant| {
            let next = encoder.due().expect("a frame").max(at);
            frames(encoder, next + Duration::from_nanos(1)).pop().expect("a frame").1
        };
        let before = size(&mut encoder, START);
        encoder.set_target_rate(Rate::from_bps(300_000));
        let doubled = size(&mut encoder, START);
        assert!(doubled > 3 * before / 2, "{before} {doubled}");
        encoder.set_target_rate(Rate::from_bps(1_500_000));
        encoder.set_target_rate(Rate::from_bps(600_000));
        // 200 ms are six intervals of a thirtieth of a second.
        let later: Vec<u64> = (0..8).map(|_| size(&mut encoder, START)).collect();
        assert!(later[..5].iter().all(|size| *size == doubled), "{later:?}");
        assert!(later[7] > 3 * doubled / 2 && later[7] < 5 * doubled / 2, "{later:?}");
    }

    /// §5.2: K_d frames have the mean of the rate, the first being K_B.
    #[test]
    fn an_abrupt_request_begins_a_burst() {
        let config = Config { time_spread: 0.0, size_spread: 0.0, ..Config::default() };
        let mut encoder = encoder(config);
        frames(&mut encoder, seconds(1));
        encoder.set_target_rate(Rate::from_bps(1_200_000));
        let burst: Vec<u64> =
            frames(&mut encoder, seconds(2)).iter().map(|frame| frame.1).take(9).collect();
        assert_eq!(burst[0], 13_500);
        let (mean, usual) = (burst[..8].iter().sum::<u64>() / 8, burst[8]);
        assert!(mean.abs_diff(usual) < 10, "{burst:?}");
    }

    /// RFC 7741: each frame's first packet says whether it is a key frame; those on request begin a burst.
    #[test]
    fn a_key_frame_is_made_on_request_but_not_too_often() {
        let text = r#"{ "encoder": {}, "noise": "0ms", "repair": {} }"#;
        let video: Video = serde_json::from_str(text).expect("video");
        let config = Config { time_spread: 0.0, ..Config::default() };
        let (rng, stop) = (Rng::new(1, "video"), seconds(1000));
        let mut encoder = Encoder::new(config, &video, None, rng, (START, stop));
        encoder.set_target_rate(Rate::from_bps(600_000));
        let (mut keys, mut frames, mut last) = (Vec::new(), 0_u32, 0);
        while let Some(due) = encoder.due().filter(|due| *due < seconds(4)) {
            if due >= seconds(1) {
                encoder.request_key_frame(due, false);
            }
            let Some(unit) = encoder.take(due) else { continue };
            let begins = begins(&unit.payload).expect("is read");
            if begins != Begins::Nothing {
                assert!(frames == 0 || last == 1, "a frame begins after the marker");
                frames += 1;
            }
            if begins == Begins::Key {
                assert_eq!(unit.payload.len(), 1200, "of many packets");
                keys.push((unit.captured - START).as_secs_f64());
            }
            last = u8::from(unit.marker);
        }
        assert_eq!(frames, 121);
        // The first is one, then one for each 300 ms and the rest of an interval.
        let [first, asked, rest @ ..] = &*keys else { panic!("{keys:?}") };
        assert!(*first == 0.0 && (1.0..1.04).contains(asked), "{keys:?}");
        let gaps = rest.windows(2).map(|pair| pair[1] - pair[0]);
        assert!(rest.len() >= 8 && gaps.into_iter().all(|gap| (0.3..0.34).contains(&gap)));
    }

    #[test]
    fn frames_are_skipped_while_too_much_waits() {
        let mut encoder = encoder(Config::default());
        encoder.set_backlog(Duration::from_millis(501), 0.0);
        assert!(frames(&mut encoder, seconds(1)).is_empty());
        encoder.set_backlog(Duration::from_millis(500), 0.0);
        assert!(frames(&mut encoder, seconds(2)).len() > 25);
    }
}
