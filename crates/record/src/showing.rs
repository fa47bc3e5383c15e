//! When a receiver shows frames of repaired video, by the behaviour of libwebrtc: frames are decoded and shown
//! at even distances, late enough for the jitter of arrivals and, where packets are repeated, a round trip.
//!
//! The parts are libwebrtc's `TimestampExtrapolator`, `JitterEstimator` and `VCMTiming`, with the defaults of
//! their field trials. A decoder that needs no time is assumed. libwebrtc takes the round-trip time from RTCP;
//! here it is the least time from a gap to the packet that filled it, so that no second direction is needed.

use talkspurt_proto::math::{exp, pow};
use talkspurt_proto::time::{Duration, Instant};

/// A frame that can be decoded.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Decodable {
    pub(crate) captured: Instant,
    pub(crate) bytes: u64,
    /// Its last packet came.
    pub(crate) complete: Instant,
    /// It and those before it are complete.
    pub(crate) at: Instant,
    /// It has repeated packets: the least time from the gap to one of them.
    pub(crate) repaired: Option<Duration>,
}

/// Milliseconds.
type Ms = f64;
/// A frame is due at the decoder so long before it is shown (libwebrtc: kDefaultRenderDelay).
const RENDER_DELAY: Ms = 10.0;
/// OPERATING_SYSTEM_JITTER.
const SYSTEM_JITTER: Ms = 10.0;
const MOST_DELAY: Ms = 10_000.0;

/// When each of these frames is shown. They are in the order of their capture.
pub(crate) fn shown(frames: &[Decodable]) -> Vec<Instant> {
    let Some(first) = frames.first() else { return Vec::new() };
    let origin = frames.iter().map(|frame| frame.complete).min().unwrap_or(first.complete);
    let since = |at: Instant| signed_ms(at, origin);
    let mut arrivals: Vec<&Decodable> =
        frames.iter().filter(|frame| frame.repaired.is_none()).collect();
    arrivals.sort_by_key(|frame| frame.complete);
    let mut arrivals = arrivals.into_iter().peekable();
    let (mut clock, mut jitter) = (Extrapolator::default(), Jitter::default());
    let (mut delay, mut decoded, mut rtt) = (0.0, f64::MIN, f64::MAX);
    let mut before: Option<&Decodable> = None;
    let mut found = Vec::with_capacity(frames.len());
    for frame in frames {
        let ready = since(frame.at).max(decoded);
        while let Some(arrival) = arrivals.next_if(|arrival| since(arrival.complete) <= ready) {
            clock.update(since(arrival.complete), signed_ms(arrival.captured, first.captured));
        }
        let stamp = signed_ms(frame.captured, first.captured);
        let due = clock.local(stamp).unwrap_or(ready) + f64::clamp(delay, 0.0, MOST_DELAY);
        decoded = ready.max(due - RENDER_DELAY);
        let at = decoded.max(due);
        found.push(origin + Duration::from_secs_f64(at.max(0.0) * 1e-3));
        if let Some(repaired) = frame.repaired {
            rtt = rtt.min(repaired.as_secs_f64() * 1e3);
            jitter.on_repeated(decoded);
            continue;
        }
        if let Some(before) = before {
            let variation = signed_ms(frame.complete, before.complete)
                - signed_ms(frame.captured, before.captured);
            jitter.update(decoded, variation, frame.bytes as f64);
        } else {
            jitter.update(decoded, 0.0, frame.bytes as f64);
        }
        before = Some(frame);
        let least = jitter.estimate(decoded, rtt);
        if delay == 0.0 {
            delay = least;
        }
        // VCMTiming::UpdateCurrentDelay.
        let late = decoded - due + RENDER_DELAY;
        if late >= 0.0 {
            delay = (delay + late).min(least + RENDER_DELAY);
        }
    }
    found
}

fn signed_ms(at: Instant, since: Instant) -> Ms {
    let nanos = at.as_nanos() as i128 - since.as_nanos() as i128;
    nanos as f64 * 1e-6
}

/// The covariance after a measurement `[x, 1]` with this gain.
fn updated(p: [[f64; 2]; 2], gain: [f64; 2], x: f64) -> [[f64; 2]; 2] {
    let [above, below] = p;
    [0, 1].map(|row| {
        [0, 1].map(|column| p[row][column] - gain[row] * (x * above[column] + below[column]))
    })
}

/// The time of arrival of an average frame, by its timestamp: recursive least squares.
#[derive(Debug)]
struct Extrapolator {
    /// Ticks of 90 kHz per millisecond, and at the first arrival.
    w: [f64; 2],
    p: [[f64; 2]; 2],
    count: u32,
    last: (Ms, Ms),
    /// Sums of deviations, by which a change of the path's delay is noticed.
    sums: [f64; 2],
}

impl Default for Extrapolator {
    fn default() -> Self {
        let p = [[1.0, 0.0], [0.0, Self::UNSURE]];
        Self { w: [90.0, 0.0], p, count: 0, last: (0.0, 0.0), sums: [0.0; 2] }
    }
}

impl Extrapolator {
    const TICKS: f64 = 90.0;
    const UNSURE: f64 = 1e10;
    const STARTUP: u32 = 2;
    const ALARM: f64 = 60e3;
    const DRIFT: f64 = 6600.0;
    const MOST_ERROR: f64 = 7000.0;
    const RESET: Ms = 10_000.0;

    fn update(&mut self, now: Ms, stamp: Ms) {
        if self.count > 0 && now - self.last.0 > Self::RESET {
            *self = Self { w: [Self::TICKS, Self::TICKS * (stamp - now)], ..Self::default() };
        }
        if self.count == 0 {
            self.w[1] = Self::TICKS * (stamp - now);
        }
        let residual = stamp * Self::TICKS - now * self.w[0] - self.w[1];
        if self.has_changed(residual) && self.count >= Self::STARTUP {
            self.p[1][1] = Self::UNSURE;
        }
        if self.count > 0 && stamp < self.last.1 {
            return;
        }
        self.last = (now, stamp);
        let p = self.p;
        let mut k = [p[0][0] * now + p[0][1], p[1][0] * now + p[1][1]];
        let total = 1.0 + now * k[0] + k[1];
        for (gain, weight) in k.iter_mut().zip(&mut self.w) {
            *gain /= total;
            *weight += *gain * residual;
        }
        self.p = updated(p, k, now);
        self.count += 1;
    }

    /// CUSUM.
    fn has_changed(&mut self, error: f64) -> bool {
        let error = error.clamp(-Self::MOST_ERROR, Self::MOST_ERROR);
        let [above, below] = &mut self.sums;
        *above = (*above + error - Self::DRIFT).max(0.0);
        *below = (*below + error + Self::DRIFT).min(0.0);
        let alarms = *above > Self::ALARM || *below < -Self::ALARM;
        if alarms {
            self.sums = [0.0; 2];
        }
        alarms
    }

    fn local(&self, stamp: Ms) -> Option<Ms> {
        match self.count {
            0 => None,
            count if count < Self::STARTUP => Some(self.last.0 + stamp - self.last.1),
            _ => Some((stamp * Self::TICKS - self.w[1]) / self.w[0].max(1e-3)),
        }
    }
}

/// The jitter of arrivals, from their sizes by a Kalman filter, and from noise.
#[derive(Debug)]
struct Jitter {
    theta: [f64; 2],
    covariance: [[f64; 2]; 2],
    mean_size: f64,
    size_variance: f64,
    largest: f64,
    last_size: Option<f64>,
    sizes: u32,
    first_sizes: f64,
    noise: f64,
    noise_variance: f64,
    weight: f64,
    /// Times between the last frames.
    intervals: std::collections::VecDeque<Ms>,
    updated: Option<Ms>,
    frames: u32,
    filtered: Ms,
    last_estimate: Ms,
    repeated: u32,
    repeated_at: Ms,
}

impl Default for Jitter {
    fn default() -> Self {
        Self {
            // A line of 512 kbit/s.
            theta: [1.0 / (512e3 / 8.0), 0.0],
            covariance: [[1e-4, 0.0], [0.0, 1e2]],
            mean_size: 500.0,
            size_variance: 100.0,
            largest: 500.0,
            last_size: None,
            sizes: 0,
            first_sizes: 0.0,
            noise: 0.0,
            noise_variance: 4.0,
            weight: 1.0,
            intervals: std::collections::VecDeque::new(),
            updated: None,
            frames: 0,
            filtered: 0.0,
            last_estimate: 1.0,
            repeated: 0,
            repeated_at: 0.0,
        }
    }
}

impl Jitter {
    const STARTUP: u32 = 30;
    const FIRST_SIZES: u32 = 5;
    const MEAN: f64 = 0.97;
    const LARGEST: f64 = 0.9999;
    const CLAMP: f64 = 3.5;
    const OUTLIER: f64 = 15.0;
    const SIZE_OUTLIER: f64 = 3.0;
    const CONGESTED: f64 = -0.25;
    const MOST_WEIGHT: f64 = 400.0;
    const DEVIATIONS: f64 = 2.33;
    const OFFSET: f64 = 30.0;
    const LEAST: Ms = 1.0;
    /// The round-trip time counts after so many frames with repeated packets, for so long.
    const REPEATED: u32 = 3;
    const FORGOTTEN: Ms = 60_000.0;
    /// Frames a second below which jitter counts less, or not at all.
    const SLOW: [f64; 2] = [5.0, 10.0];
    const MOST_FPS: f64 = 200.0;

    fn on_repeated(&mut self, now: Ms) {
        self.repeated = (self.repeated + 1).min(Self::REPEATED);
        self.repeated_at = now;
    }

    fn update(&mut self, now: Ms, variation: Ms, size: f64) {
        let change = size - self.last_size.unwrap_or(0.0);
        self.sizes += 1;
        if self.sizes <= Self::FIRST_SIZES {
            self.first_sizes += size;
        } else if self.sizes == Self::FIRST_SIZES + 1 {
            self.mean_size = self.first_sizes / f64::from(Self::FIRST_SIZES);
        }
        let mean = Self::MEAN * self.mean_size + (1.0 - Self::MEAN) * size;
        if size < self.mean_size + 2.0 * self.size_variance.sqrt() {
            self.mean_size = mean;
        }
        let own = (1.0 - Self::MEAN) * (size - mean) * (size - mean);
        self.size_variance = (Self::MEAN * self.size_variance + own).max(1.0);
        self.largest = (Self::LARGEST * self.largest).max(size);
        if self.last_size.replace(size).is_none() {
            return;
        }
        let deviation = self.noise_variance.sqrt();
        let most = Self::CLAMP * deviation + 0.5;
        let variation = variation.clamp(-most, most);
        let rest = variation - (self.theta[0] * change + self.theta[1]);
        let is_large = size > self.mean_size + Self::SIZE_OUTLIER * self.size_variance.sqrt();
        if rest.abs() < Self::OUTLIER * deviation || is_large {
            // The frame after a large one waits for it.
            if change > Self::CONGESTED * self.largest {
                self.on_noise(now, rest);
                self.correct(variation, change);
            }
        } else {
            self.on_noise(now, (Self::OUTLIER * deviation).copysign(rest));
        }
        if self.frames >= Self::STARTUP {
            self.filtered = self.calculate();
        } else {
            self.frames += 1;
        }
    }

    fn correct(&mut self, variation: Ms, change: f64) {
        let p = &mut self.covariance;
        p[0][0] += 2.5e-10;
        p[1][1] += 1e-10;
        let mut gain = [p[0][0] * change + p[0][1], p[1][0] * change + p[1][1]];
        let closeness = 300.0 * exp(-change.abs() / self.largest.max(1.0)) + 1.0;
        let sigma = (closeness * self.noise_variance.sqrt()).max(1.0);
        let total = change * gain[0] + gain[1] + sigma;
        let residual = variation - (change * self.theta[0] + self.theta[1]);
        for (gain, theta) in gain.iter_mut().zip(&mut self.theta) {
            *gain /= total;
            *theta += *gain * residual;
        }
        self.theta[0] = self.theta[0].max(1e-6);
        *p = updated(*p, gain, change);
    }

    fn on_noise(&mut self, now: Ms, rest: Ms) {
        if let Some(updated) = self.updated.replace(now) {
            self.intervals.push_back(now - updated);
            if self.intervals.len() > 30 {
                self.intervals.pop_front();
            }
        }
        let mut alpha = (self.weight - 1.0) / self.weight;
        self.weight = (self.weight + 1.0).min(Self::MOST_WEIGHT);
        if let Some(fps) = self.fps() {
            // As fast in time as with 30 frames a second.
            let (scale, startup) = (30.0 / fps, f64::from(Self::STARTUP));
            let scale = if self.weight < startup {
                (self.weight * scale + startup - self.weight) / startup
            } else {
                scale
            };
            alpha = pow(alpha, scale);
        }
        let deviation = rest - self.noise;
        self.noise = alpha * self.noise + (1.0 - alpha) * rest;
        let variance = alpha * self.noise_variance + (1.0 - alpha) * deviation * deviation;
        self.noise_variance = variance.max(1.0);
    }

    fn fps(&self) -> Option<f64> {
        let mean = self.intervals.iter().sum::<Ms>() / self.intervals.len() as f64;
        (mean > 0.0).then(|| (1000.0 / mean).min(Self::MOST_FPS))
    }

    fn calculate(&mut self) -> Ms {
        let noise = (Self::DEVIATIONS * self.noise_variance.sqrt() - Self::OFFSET).max(1.0);
        let found = self.theta[0] * (self.largest - self.mean_size) + noise;
        if found >= Self::LEAST {
            self.last_estimate = found.min(MOST_DELAY);
        }
        self.last_estimate
    }

    fn estimate(&mut self, now: Ms, rtt: Ms) -> Ms {
        let mut jitter = (self.calculate() + SYSTEM_JITTER).max(self.filtered);
        if now - self.repeated_at > Self::FORGOTTEN {
            self.repeated = 0;
        }
        if self.repeated >= Self::REPEATED {
            jitter += rtt;
        }
        let [none, all] = Self::SLOW;
        jitter * self.fps().map_or(1.0, |fps| ((fps - none) / (all - none)).clamp(0.0, 1.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(at: f64) -> Instant {
        Instant::ZERO + Duration::from_secs_f64(at * 1e-3)
    }

    /// Frames every 33 ms, whose delays and repairs these functions give in ms.
    fn shown_by(
        frames: u64,
        delay: impl Fn(u64) -> f64,
        repaired: impl Fn(u64) -> Option<f64>,
    ) -> Vec<(f64, f64)> {
        let mut at = Instant::ZERO;
        let all: Vec<Decodable> = (0..frames)
            .map(|frame| {
                let captured = 33.0 * frame as f64;
                let complete = ms(captured + delay(frame) + repaired(frame).unwrap_or(0.0));
                at = at.max(complete);
                let repaired = repaired(frame).map(|it| Duration::from_secs_f64(it * 1e-3));
                Decodable { captured: ms(captured), bytes: 4000, complete, at, repaired }
            })
            .collect();
        let found = shown(&all);
        all.iter()
            .zip(found)
            .map(|(it, at)| (signed_ms(it.captured, ms(0.0)), signed_ms(at, ms(0.0))))
            .collect()
    }

    fn gaps(shown: &[(f64, f64)]) -> Vec<f64> {
        shown.windows(2).map(|pair| pair[1].1 - pair[0].1).collect()
    }

    #[test]
    fn steady_frames_are_shown_evenly_and_soon() {
        let shown = shown_by(300, |_| 50.0, |_| None);
        let delays: Vec<f64> = shown.iter().map(|(captured, at)| at - captured).collect();
        // 50 ms of the path, jitter of at least 11 ms, and 10 ms before it is shown.
        assert!(delays[100..].iter().all(|it| (60.0..80.0).contains(it)), "{delays:?}");
        assert!(gaps(&shown)[100..].iter().all(|gap| (gap - 33.0).abs() < 1.0));
    }

    #[test]
    fn jitter_is_smoothed() {
        let delay = |frame: u64| 50.0 + 20.0 * ((frame * 7919 % 101) as f64 / 101.0);
        let shown = shown_by(600, delay, |_| None);
        let uneven = gaps(&shown)[300..].iter().filter(|gap| (*gap - 33.0).abs() > 5.0).count();
        assert!(uneven < 15, "{uneven}");
    }

    /// Every twentieth frame is repaired after a round trip of 200 ms: the first freeze, later ones do not.
    #[test]
    fn repairs_do_not_freeze_once_they_are_expected() {
        let repaired = |frame: u64| (frame % 20 == 19).then_some(200.0);
        let shown = shown_by(600, |_| 50.0, repaired);
        let gaps = gaps(&shown);
        assert!(gaps[..60].iter().any(|gap| *gap > 150.0), "{:?}", &gaps[..60]);
        assert!(gaps[200..].iter().all(|gap| *gap < 60.0), "{:?}", &gaps[200..]);
        let (captured, at) = shown[500];
        assert!((210.0..300.0).contains(&(at - captured)), "{}", at - captured);
    }

    #[test]
    fn no_frame_is_shown_before_it_can_be_decoded() {
        let delay = |frame: u64| 10.0 + (frame * 104_729 % 997) as f64;
        let shown = shown_by(500, delay, |frame| (frame % 3 == 0).then_some(400.0));
        let mut last = 0.0;
        for (frame, (captured, at)) in shown.iter().enumerate() {
            assert!(*at + 1e-6 >= captured + delay(frame as u64) && *at >= last);
            last = *at;
        }
    }
}
