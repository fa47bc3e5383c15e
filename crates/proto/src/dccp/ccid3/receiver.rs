//! The receiving half: the machine of `rate` measures and says when feedback is due; this half reads the window
//! counter for it (RFC 4342 §8.1), estimates the round-trip time from the counter (§10.3) unless the sender
//! reports it (RFC 6323), and writes the options of a required acknowledgement (§6).

use super::counter::{CounterReader, Told};
use super::options::{self, LossInterval, RttEstimate};
use crate::dccp::AckVector;
use crate::dccp::ccid::{self, Arrival};
use crate::dccp::options::{Opt, Options};
use crate::dccp::seqno::SeqNo;
use crate::gauge::EndpointProbe;
use crate::packet::Ecn;
use crate::rate::{self, Interval, Parameters};
use crate::time::{Duration, Instant};

/// RFC 4342 §8.6: intervals per option, n = 8 and the open one; more would help only a sender that
/// lost feedback.
const REPORTED_INTERVALS: usize = 9;
/// RFC 6323 §3.4: receiver_RTT until the sender has reported a number.
const RTT_BEFORE_ESTIMATE: Duration = Duration::from_millis(500);
/// t_mbi (RFC 5348 appendix A), the largest receiver_RTT.
const LONGEST_INTERVAL: Duration = Duration::from_secs(64);

/// Options of a required acknowledgement besides Receive Rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Reports {
    /// Elapsed Time (RFC 4340 §13.2), required by RFC 4342 §6.
    elapsed_time: bool,
    /// Loss Intervals (RFC 4342 §8.6).
    loss_intervals: bool,
    /// Dropped Packets (RFC 5622 §8.7), with CCID 4 and Loss Intervals only.
    dropped_packets: bool,
}

impl Reports {
    const fn of(parameters: &Parameters) -> Self {
        let loss_intervals = parameters.loss_intervals_option;
        Self {
            elapsed_time: parameters.elapsed_time,
            loss_intervals,
            // RFC 4828 §4.4: drops count in short intervals, so they are reported only there.
            dropped_packets: loss_intervals && parameters.short_intervals,
        }
    }
}

/// HC-receiver of CCID 3 and 4.
#[derive(Debug)]
pub struct Receiver {
    machine: rate::Receiver,
    reports: Reports,
    /// Send Loss Event Rate is on (RFC 4342 §8.4).
    loss_event_rate: bool,
    reader: CounterReader,
    greatest: Option<SeqNo>,
    rtt: Estimate,
}

/// The receiver's round-trip time estimate.
#[derive(Debug, Default)]
struct Estimate {
    /// A moving average; with sender estimates it is receiver_RTT (RFC 6323 §3.3).
    mean: Option<Duration>,
    /// The last sample counts instead ([`Parameters::receiver_averages_rtt`]).
    last: bool,
    /// The sender reports it (RFC 6323): no other estimate is used.
    told: bool,
    /// The sender has reported a number.
    numeric: bool,
    /// Since when it has reported none.
    unknown: Option<Instant>,
}

impl Estimate {
    /// RFC 5348 §4.3 step 2, with its q = 0.9.
    fn sample(&mut self, rtt: Duration) -> Duration {
        let before = self.mean.filter(|_| !self.last);
        let mean = before.map_or(rtt, |mean| (mean * 9 + rtt) / 10);
        self.mean = Some(mean);
        mean
    }

    /// RFC 6323 §3.3 and §3.4: the round-trip time to use after an RTT Estimate option.
    fn on_option(&mut self, now: Instant, option: RttEstimate) -> Duration {
        match option {
            RttEstimate::Number(rtt) => {
                if !self.numeric {
                    self.mean = None;
                }
                (self.numeric, self.unknown) = (true, None);
                self.sample(rtt);
                rtt
            }
            RttEstimate::NoNumber => {
                let mut mean = self.mean.unwrap_or(RTT_BEFORE_ESTIMATE);
                let since = *self.unknown.get_or_insert(now);
                if now.saturating_since(since) > mean {
                    self.unknown = Some(now);
                    mean = (mean * 2).min(LONGEST_INTERVAL);
                }
                self.mean = Some(mean);
                mean
            }
        }
    }
}

impl Receiver {
    /// A half that has received nothing. Without Loss Intervals, Loss Event Rate is sent from the
    /// start, since losses must be reported (RFC 4342 §6).
    #[must_use]
    pub fn new(parameters: &Parameters) -> Self {
        let reports = Reports::of(parameters);
        Self {
            machine: rate::Receiver::new(parameters),
            reports,
            loss_event_rate: !reports.loss_intervals,
            reader: CounterReader::default(),
            greatest: None,
            rtt: Estimate { last: !parameters.receiver_averages_rtt, ..Estimate::default() },
        }
    }
    /// The machine, for inspection.
    #[must_use]
    pub const fn machine(&self) -> &rate::Receiver {
        &self.machine
    }

    /// Follows the window counter; only data packets have one (RFC 4342 §8.1).
    fn count(&mut self, now: Instant, packet: &Arrival<'_>, ahead: bool, gap: bool) -> Option<u64> {
        if packet.data_bytes.is_none() {
            return self.reader.latest();
        }
        let before = self.reader.latest();
        let count = self.reader.read(packet.ccval, ahead);
        if ahead {
            let step = before.map_or(0, |before| count - before);
            if self.rtt.last && !self.rtt.told {
                if let Some(rtt) = self.reader.span_back(now, count, step) {
                    self.set_mean(rtt);
                }
                return Some(count);
            }
            match self.reader.tell(now, count, step, gap).filter(|_| !self.rtt.told) {
                Some(Told::Sample(rtt)) => self.set_mean(rtt),
                // An upper bound is used until there is a measurement.
                Some(Told::AtMost(rtt)) if self.rtt.mean.is_none() => self.machine.set_rtt(rtt),
                _ => {}
            }
        }
        Some(count)
    }

    fn set_mean(&mut self, sample: Duration) {
        let mean = self.rtt.sample(sample);
        self.machine.set_rtt(mean);
    }

    fn intervals(&self) -> impl Iterator<Item = Interval> + '_ {
        self.machine.history().intervals().take(REPORTED_INTERVALS)
    }

    fn push_reports(&self, feedback: &rate::Feedback, out: &mut Options) {
        // RFC 4342 §6: contents of a required acknowledgement.
        if self.reports.elapsed_time {
            // RFC 4340 §13.2: in units of 10 µs.
            let units = u32::try_from(feedback.delay.as_nanos() / 10_000).unwrap_or(u32::MAX);
            out.push(Opt::ElapsedTime(units));
        }
        options::push_receive_rate(out, feedback.receive_rate);
        if self.loss_event_rate {
            options::push_loss_event_rate(out, feedback.loss_event_rate);
        }
        if self.reports.loss_intervals {
            let skip = self.machine.history().skip_length();
            let told = skip.min(u8::MAX.into());
            let intervals = self.intervals().enumerate().map(|(place, interval)| {
                let mut interval = reported(&interval);
                if place == 0 {
                    if interval.lossy_packets == 0 {
                        interval.data_packets = 0;
                    }
                    // The gap exceeds Skip Length: numbers count back from the acknowledged packet, and
                    // must be contiguous.
                    interval.lossless_packets += skip - told;
                }
                interval
            });
            options::push_loss_intervals(out, told as u8, intervals);
        }
        if self.reports.dropped_packets {
            options::push_dropped_packets(
                out,
                self.intervals().map(|interval| interval.drop_count),
            );
        }
    }
}

/// An interval as reported. Until the first loss event the data length is zero (RFC 4342 §6.1.1);
/// afterwards that of the first interval expresses the receive rate.
fn reported(interval: &Interval) -> LossInterval {
    LossInterval {
        lossless_packets: interval.lossless_length,
        lossy_packets: interval.loss_length,
        data_packets: interval.data_length,
    }
}

impl ccid::Receiver for Receiver {
    fn on_packet<P: EndpointProbe>(&mut self, now: Instant, packet: &Arrival<'_>, probe: &mut P) {
        // RFC 6323 §3.3: an estimate from the sender replaces all others.
        let told = if self.rtt.told { options::rtt_estimate(packet.options) } else { None };
        let told = told.map(|option| self.rtt.on_option(now, option));
        let ahead = self.greatest.is_none_or(|greatest| packet.seq > greatest);
        let gap = self.greatest.is_some_and(|greatest| packet.seq.since(greatest) > 1);
        let counter = self.count(now, packet, ahead, gap);
        if ahead {
            self.greatest = Some(packet.seq);
        }
        let arrival = rate::Arrival {
            seq: packet.seq.since(SeqNo::default()),
            data_bytes: packet.data_bytes,
            non_data_before: packet.ndp.unwrap_or(0),
            marked: packet.ecn == Ecn::Ce,
            rtt: told,
            counter,
        };
        self.machine.on_packet(now, &arrival, probe);
    }

    fn wants_ack(&self, now: Instant) -> bool {
        self.machine.wants_feedback(now)
    }

    fn deadline(&self) -> Option<Instant> {
        self.machine.deadline()
    }
    fn on_timeout(&mut self, now: Instant) {
        self.machine.on_timeout(now);
    }

    fn acknowledge(&mut self, now: Instant, _: bool, _: &mut AckVector, out: &mut Options) {
        // Only a required acknowledgement ends a measurement (RFC 4342 §8.3).
        if !self.wants_ack(now) {
            return;
        }
        let Some(feedback) = self.machine.feedback(now) else { return };
        self.push_reports(&feedback, out);
    }

    /// Until the sender reports a number, 0.5 s is used (RFC 6323 §3.4).
    fn agree(&mut self, loss_event_rate: bool, rtt_estimate: bool) {
        self.loss_event_rate = loss_event_rate || !self.reports.loss_intervals;
        if rtt_estimate && !self.rtt.told {
            let last = self.rtt.last;
            self.rtt = Estimate { mean: Some(RTT_BEFORE_ESTIMATE), last, ..Estimate::default() };
            self.machine.set_rtt(RTT_BEFORE_ESTIMATE);
        }
        self.rtt.told = rtt_estimate;
    }

    fn footprint(&self) -> usize {
        self.machine.footprint()
    }

    fn set_rtt(&mut self, rtt: Duration) {
        if !self.rtt.told {
            self.set_mean(rtt);
        }
    }
}
