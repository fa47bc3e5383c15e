//! Circuit breakers for traffic without congestion control (RFC 8083 §4), on reports once a second: those of a
//! measurement, or per-packet feedback taken together.
//!
//! A sender stops for good if no report comes for five seconds (§4.1 asks for three intervals of at least five
//! seconds; a measurement need not wait so long), if five reports in a row tell of no arrival (§4.2), or if it
//! sends more than ten times what TCP would at the reported loss and round-trip time (§4.3). Media usability
//! (§4.4) is what is measured, and stops nothing.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Bytes, Decision, FeedbackInfo, MediaController, MediaControllerConfig, Sent};
use crate::gauge::Gauge;
use crate::packet::Ecn;
use crate::rtcp::PacketReport;
use crate::time::{Duration, Instant};
use crate::units::Rate;
use crate::validate::{ConfigError, Validate};

/// Time between reports, Tdr.
pub const INTERVAL: Duration = Duration::from_secs(1);
/// Time without a report after which a sender stops.
const REPORT_TIMEOUT: Duration = Duration::from_secs(5);
/// Reports without arrivals, k.
const NO_ARRIVALS: usize = 5;

/// A fixed rate, by default until a circuit breaker stops the session for good.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// The rate at which sources encode, in IP packets.
    pub rate: Rate,
    /// The rate at which packets leave. Absent: a quarter more than `rate`, so that bursts leave soon. At that
    /// of the first link or more, each frame leaves at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pacing: Option<Rate>,
    /// Whether the circuit breakers of RFC 8083 §4 stop the session: after 5 s without feedback, 5 s without
    /// arrivals, or at ten times the rate of TCP at the same loss and round-trip time.
    #[serde(default = "yes")]
    pub circuit_breaker: bool,
}

const fn yes() -> bool {
    true
}

impl Validate for Config {
    fn errors(&self) -> Vec<ConfigError> {
        let mut errors = Vec::new();
        if self.rate.as_bps() == 0 {
            errors.push(ConfigError::new("rate", "0bit/s sends nothing"));
        } else if let Some(pacing) = self.pacing.filter(|pacing| *pacing < self.rate) {
            let message = format!("{pacing} is below `rate` ({}): the queue would grow", self.rate);
            errors.push(ConfigError::new("pacing", message));
        }
        errors
    }
}

impl MediaControllerConfig for Config {
    fn build(&self) -> Box<dyn MediaController> {
        Box::new(Fixed {
            rate: self.rate,
            pacing: self.pacing.unwrap_or(Rate::from_bps(self.rate.as_bps() / 4 * 5)),
            stops: self.circuit_breaker,
            breaker: Breaker::default(),
            reported: 0,
            arrived: 0,
            rtt: Duration::ZERO,
            next: None,
            trip: None,
        })
    }
    fn name(&self) -> String {
        if self.circuit_breaker { "fixed" } else { "fixed (no breaker)" }.to_owned()
    }
    fn bytes(&self) -> Bytes {
        Bytes::Ip
    }
    fn ecn(&self) -> Ecn {
        Ecn::NotEct
    }
    fn feedback_interval(&self) -> Option<Duration> {
        None
    }
    fn max(&self) -> Rate {
        self.rate
    }
}

/// The controller of a [`Config`]. RFC 8083 takes the fraction lost from RTCP reports; here it is that of the
/// packets which feedback reported in each second.
#[derive(Debug)]
struct Fixed {
    rate: Rate,
    pacing: Rate,
    stops: bool,
    breaker: Breaker,
    /// Packets that were reported, and those that arrived.
    reported: u64,
    arrived: u64,
    rtt: Duration,
    /// When the reports so far are taken together.
    next: Option<Instant>,
    trip: Option<Trip>,
}

impl MediaController for Fixed {
    fn on_sent(&mut self, now: Instant, sent: &Sent) -> bool {
        self.breaker.on_sent(now, sent.bytes);
        self.next.get_or_insert(now + INTERVAL);
        false
    }
    fn on_contact(&mut self, _: Instant) {
        self.breaker.on_contact();
    }
    fn on_reports(&mut self, now: Instant, reports: &[PacketReport], feedback: &FeedbackInfo) {
        for report in reports.iter().filter(|report| !report.again) {
            self.reported += 1;
            self.arrived += u64::from(report.arrived.is_some() || report.arrived_untimed);
        }
        self.rtt = feedback.rtt.unwrap_or(self.rtt);
        if !self.stops || self.next.is_none_or(|next| now < next) {
            return;
        }
        self.next = Some(now + INTERVAL);
        let trip = self.breaker.on_report(now, self.reported, self.arrived, self.rtt);
        self.trip = self.trip.or(trip);
    }
    fn deadline(&self) -> Option<Instant> {
        self.breaker.times_out().filter(|_| self.stops && self.trip.is_none())
    }
    fn on_timeout(&mut self, now: Instant) {
        self.trip = self.trip.or(self.breaker.on_time(now));
    }
    fn decision(&self) -> Decision {
        let pacing = self.pacing;
        Decision { target: self.rate, pacing, stop: self.trip, ..Decision::default() }
    }
    fn observe(&self, tell: &mut dyn FnMut(Gauge, f64)) {
        let rate = if self.trip.is_some() { 0 } else { self.rate.as_bps() };
        tell(Gauge::TargetRate, rate as f64);
    }
}

/// Why a sender had to stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trip {
    /// No reports came.
    Reports,
    /// Nothing arrived.
    Media,
    /// It sent more than ten times what TCP would.
    Congestion,
}

impl Trip {
    /// The reason in words.
    #[must_use]
    pub const fn words(self) -> &'static str {
        match self {
            Self::Reports => "no reports came back for 5 s (RFC 8083 §4.1)",
            Self::Media => "nothing arrived in five report intervals (RFC 8083 §4.2)",
            Self::Congestion => {
                "it sent more than ten times what TCP would at this loss (RFC 8083 §4.3)"
            }
        }
    }
}

/// What has been sent or received of a flow, up to a report.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Counts {
    at: Instant,
    sent: u64,
    sent_bytes: u64,
    /// One more than the highest number received.
    highest: u64,
    received: u64,
}

/// The breakers of one sender.
#[derive(Debug, Default)]
pub struct Breaker {
    /// When the first packet left since the other end was heard from.
    unanswered: Option<Instant>,
    sent: u64,
    sent_bytes: u64,
    /// As of the last reports, the oldest first.
    reports: Vec<Counts>,
    /// Reports in a row without arrivals, and how many of them open the breaker: MEDIA_TIMEOUT.
    unheard: usize,
    media_timeout: usize,
}

impl Breaker {
    /// A packet of this length left.
    pub fn on_sent(&mut self, now: Instant, bytes: u32) {
        self.unanswered.get_or_insert(now);
        self.sent += 1;
        self.sent_bytes += u64::from(bytes);
    }

    /// A report on everything so far came; `rtt` is the latest round-trip time.
    pub fn on_report(
        &mut self,
        now: Instant,
        highest: u64,
        received: u64,
        rtt: Duration,
    ) -> Option<Trip> {
        self.unanswered = None;
        let last = self.reports.last().copied().unwrap_or_default();
        let Self { sent, sent_bytes, .. } = *self;
        // Reports may be reordered.
        if highest < last.highest || received < last.received {
            return None;
        }
        self.reports.push(Counts { at: now, sent, sent_bytes, highest, received });
        let sends = sent > last.sent;
        // Tf, the time between packets.
        let frame = match sent - last.sent {
            0 => Duration::ZERO,
            packets => Duration::from_nanos((now - last.at).as_nanos() / packets),
        };
        let longest = frame.max(rtt).max(INTERVAL).as_nanos();
        let timeout = (NO_ARRIVALS as u64 * longest).div_ceil(INTERVAL.as_nanos()) as usize;
        if highest == last.highest && sends {
            // Reconsidered: only a larger value replaces it.
            self.media_timeout = self.media_timeout.max(timeout);
            self.unheard += 1;
            if self.unheard >= self.media_timeout {
                return Some(Trip::Media);
            }
        } else {
            (self.unheard, self.media_timeout) = (0, timeout);
        }
        self.is_congested(frame, rtt).then_some(Trip::Congestion)
    }

    /// RFC 8083 §4.3 over the last CB_INTERVAL reports.
    fn is_congested(&mut self, frame: Duration, rtt: Duration) -> bool {
        // G is 1: nothing here is in groups of frames. With Td = Tdr, max(15, 3 Td) is 15 s.
        let (frame, rtt, tdr) = (frame.as_secs_f64(), rtt.as_secs_f64(), INTERVAL.as_secs_f64());
        let span = (10.0 * frame).max(10.0 * rtt).max(3.0 * tdr).min(15.0);
        let reports = (3.0 * span / (3.0 * tdr)).ceil() as usize;
        let Some(first) = self.reports.len().checked_sub(reports + 1) else { return false };
        self.reports.drain(..first);
        let [begin, .., end] = self.reports[..] else { return false };
        let seconds = (end.at - begin.at).as_secs_f64();
        let packets = end.sent - begin.sent;
        // At least one packet every max(Tdr, Tr), and an increasing highest number.
        let often = packets as f64 * tdr.max(rtt) >= seconds;
        if !often || end.highest <= begin.highest || seconds <= 0.0 {
            return false;
        }
        // The fraction lost of each interval, weighted with its duration.
        let lost = self.reports.windows(2).map(|pair| {
            let (expected, received) =
                (pair[1].highest - pair[0].highest, pair[1].received - pair[0].received);
            let lost = expected.saturating_sub(received) as f64 / expected.max(1) as f64;
            lost * (pair[1].at - pair[0].at).as_secs_f64()
        });
        let loss = lost.sum::<f64>() / seconds;
        if loss <= 0.0 || rtt <= 0.0 {
            return false;
        }
        let bytes = (end.sent_bytes - begin.sent_bytes) as f64;
        let size = bytes / packets as f64;
        // The simplified equation, with b = 1 (RFC 5348 §3.1 recommends it).
        let tcp = size / (rtt * (2.0 * loss / 3.0).sqrt());
        bytes / seconds > 10.0 * tcp
    }

    /// A report came that says nothing of this flow's packets.
    pub const fn on_contact(&mut self) {
        self.unanswered = None;
    }

    /// When reports will have been missing for too long, if nothing is heard until then.
    #[must_use]
    pub fn times_out(&self) -> Option<Instant> {
        Some(self.unanswered? + REPORT_TIMEOUT)
    }

    /// Whether reports have been missing for too long.
    #[must_use]
    pub fn on_time(&self, now: Instant) -> Option<Trip> {
        self.times_out().filter(|at| *at <= now).map(|_| Trip::Reports)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn second(at: u64) -> Instant {
        Instant::ZERO + INTERVAL * at
    }

    /// A sender of `packets` a second of 1000 bytes, of which every `kept` of ten arrive, for 20 s.
    fn run(packets: u64, kept: u64, rtt_ms: u64) -> Option<(u64, Trip)> {
        let mut breaker = Breaker::default();
        let (mut highest, mut received) = (0, 0);
        for at in 0..20 {
            for number in 0..packets {
                breaker.on_sent(second(at), 1000);
                if number % 10 < kept {
                    highest = at * packets + number + 1;
                    received += 1;
                }
            }
            let rtt = Duration::from_millis(rtt_ms);
            let trip = breaker.on_report(second(at + 1), highest, received, rtt);
            if let Some(trip) = trip {
                return Some((at + 1, trip));
            }
        }
        None
    }

    /// RFC 8083 §4.3 by hand. RTT 100 ms, loss 1/10: X = 1000/(0.1 √(0.2/3)) = 38.7 kB/s, so ten times that is
    /// 387 packets a second. After more than CB_INTERVAL = 3 reports.
    #[test]
    fn ten_times_tcp_is_the_limit() {
        assert_eq!(run(380, 9, 100), None);
        assert_eq!(run(400, 9, 100), Some((4, Trip::Congestion)));
        assert_eq!(run(4000, 10, 100), None, "without loss");
    }

    #[test]
    fn long_round_trips_need_more_reports() {
        // CB_INTERVAL = ceil(3 · min(max(10 · 0.5, 3), 15) / 3) = 5.
        assert_eq!(run(2000, 5, 500), Some((6, Trip::Congestion)));
    }

    #[test]
    fn media_that_does_not_arrive_stops() {
        assert_eq!(run(50, 0, 100), Some((5, Trip::Media)));
    }

    /// RFC 8083 §4.2: the timeout is ceil(5 · max(Tf, Tr, 1 s) / 1 s). A round trip of 1.6 s makes it 8
    /// reports, and a shorter one afterwards does not take that back.
    #[test]
    fn the_media_timeout_does_not_shrink_while_nothing_arrives() {
        let mut breaker = Breaker::default();
        for at in 1..=8 {
            breaker.on_sent(second(at - 1), 1000);
            let rtt = Duration::from_millis(if at == 2 { 1600 } else { 100 });
            let trip = breaker.on_report(second(at), 0, 0, rtt);
            assert_eq!(trip, (at == 8).then_some(Trip::Media), "report {at}");
        }
    }

    /// RFC 8083 §4.3 by hand. Of 1000, 1000 and 10 packets in a second each, 5 of the last are lost: the mean
    /// of the fractions is (0 + 0 + 1/2)/3 = 1/6, and X = 1000/(0.2 √(1/9)) = 15 kB/s. It sends 670 kB/s. The
    /// loss of all packets together would be 5/2010, X 123 kB/s, and nothing would stop.
    #[test]
    fn the_loss_is_the_mean_of_the_intervals() {
        let mut breaker = Breaker::default();
        let mut last = None;
        for (at, packets, highest, received) in
            [(0, 0, 0, 0), (1, 1000, 1000, 1000), (2, 1000, 2000, 2000), (3, 10, 2010, 2005)]
        {
            for _ in 0..packets {
                breaker.on_sent(second(at), 1000);
            }
            last = breaker.on_report(second(at + 1), highest, received, Duration::from_millis(200));
        }
        assert_eq!(last, Some(Trip::Congestion));
    }

    #[test]
    fn missing_reports_stop() {
        let mut breaker = Breaker::default();
        assert_eq!(breaker.on_time(second(100)), None, "nothing was sent");
        breaker.on_sent(second(1), 100);
        assert_eq!(breaker.on_time(second(5)), None);
        assert_eq!(breaker.on_time(second(6)), Some(Trip::Reports));
        assert_eq!(breaker.on_report(second(6), 1, 1, Duration::from_millis(10)), None);
        assert_eq!(breaker.on_time(second(10)), None);
    }

    /// Packets of 1000 bytes, 400 a second, of which one in ten is lost, with feedback each 100 ms: §4.3 as
    /// above.
    #[test]
    fn a_session_stops_at_ten_times_tcp() {
        let mut controller =
            Config { rate: Rate::from_bps(4_000_000), pacing: None, circuit_breaker: true }.build();
        let (mut now, mut reports, mut stopped) = (Instant::ZERO, Vec::new(), None);
        for sequence in 0..4000 {
            controller.on_sent(now, &Sent { sequence, bytes: 1000 });
            let arrived = (sequence % 10 != 5).then_some(now);
            let (ecn, bytes, arrived_untimed) = (Ecn::NotEct, 1000, false);
            reports.push(PacketReport {
                stream: 1,
                again: false,
                arrived_before: false,
                probe: None,
                sequence,
                sent: now,
                arrived,
                arrived_untimed,
                ecn,
                bytes,
            });
            now += Duration::from_micros(2500);
            if sequence % 40 == 39 {
                let rtt = Some(Duration::from_millis(100));
                controller.on_reports(now, &std::mem::take(&mut reports), &FeedbackInfo { rtt });
            }
            if let Some(trip) = controller.decision().stop {
                stopped.get_or_insert((now.as_nanos() / 1_000_000_000, trip));
            }
        }
        assert_eq!(stopped, Some((4, Trip::Congestion)));
    }

    #[test]
    fn a_session_without_feedback_stops() {
        let mut controller =
            Config { rate: Rate::from_bps(4_000_000), pacing: None, circuit_breaker: true }.build();
        assert_eq!(controller.deadline(), None);
        controller.on_sent(second(1), &Sent { sequence: 0, bytes: 1000 });
        assert_eq!(controller.deadline(), Some(second(6)));
        controller.on_timeout(second(6));
        assert_eq!(controller.decision().stop, Some(Trip::Reports));
        assert_eq!(controller.deadline(), None);
    }

    #[test]
    fn a_pause_of_the_source_is_no_loss() {
        let mut breaker = Breaker::default();
        breaker.on_sent(second(0), 100);
        for at in 1..20 {
            let trip = breaker.on_report(second(at), 1, 1, Duration::from_millis(10));
            assert_eq!(trip, None);
        }
    }
}
