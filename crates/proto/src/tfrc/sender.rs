//! The sending half of a bare TFRC end: numbers and timestamps (RFC 5348 §3.2.1), the round-trip
//! time from echoed timestamps (§4.3 step 1), and the send capacity.

use std::collections::VecDeque;

use crate::endpoint::Event;
use crate::gauge::{EndpointProbe, RxError};
use crate::rate::{Machine, Parameters, Permit, RateControl, Report, Rung};
use crate::time::{Duration, Instant, earlier};

use super::packet::Feedback;

/// The sending half.
#[derive(Debug)]
pub(super) struct Sender {
    parameters: Parameters,
    ladder: Vec<Rung>,
    any_rate: bool,
    /// None before the first packet: until then there is nothing to control (RFC 5348 §4.2).
    machine: Option<Machine>,
    next_seq: u32,
    /// When the first packet left.
    first: Instant,
    data_bytes: u32,
    permit: Permit,
    /// When an unused permit was last seen.
    unused: Option<Instant>,
    /// Data packets up to this instant are covered by feedback.
    covered: Instant,
    /// The last round-trip time sample.
    rtt: Option<Duration>,
}

impl Sender {
    pub(super) fn new(parameters: Parameters, ladder: &[Rung], first_seq: u32) -> Self {
        Self {
            data_bytes: parameters.nominal_bytes.unwrap_or(0),
            parameters,
            ladder: ladder.to_vec(),
            any_rate: false,
            machine: None,
            next_seq: first_seq,
            first: Instant::ZERO,
            permit: Permit::Now,
            unused: None,
            covered: Instant::ZERO,
            rtt: None,
        }
    }

    /// The source can send at any rate.
    pub(super) fn report_rate(&mut self) {
        self.any_rate = true;
    }

    pub(super) const fn machine(&self) -> Option<&Machine> {
        self.machine.as_ref()
    }
    #[inline]
    pub(super) fn is_open(&self) -> bool {
        self.permit == Permit::Now
    }

    /// Reports to the machine a permit that remained unused while time passed.
    #[inline]
    pub(super) fn note_unused(&mut self, now: Instant) {
        if let Some(since) = self.unused.filter(|since| *since < now) {
            self.unused = None;
            if let Some(machine) = &mut self.machine {
                machine.on_unused(since);
            }
        }
    }

    /// A data packet of this many bytes leaves; then [`Sender::look`].
    #[inline(always)]
    pub(super) fn on_frame(&mut self, now: Instant, bytes: u32) {
        let (parameters, ladder, first) = (&self.parameters, &self.ladder, &mut self.first);
        let any_rate = self.any_rate;
        let machine = self.machine.get_or_insert_with(|| {
            *first = now;
            let mut machine = Machine::build(now, parameters, ladder);
            if any_rate {
                machine.report_rate();
            }
            machine
        });
        machine.on_sent(now, bytes);
        self.data_bytes = bytes;
        self.unused = None;
    }

    /// Sequence number, timestamp, round-trip time and t_RTO of the next data packet.
    #[inline]
    pub(super) fn stamp(&mut self, now: Instant) -> (u32, u32, u32, u8) {
        let seq = self.next_seq;
        self.next_seq = seq.wrapping_add(1);
        let rtt = self.machine.as_ref().and_then(RateControl::rtt);
        let rtt =
            rtt.map_or(0, |rtt| u32::try_from(rtt.as_nanos() / 1000).unwrap_or(u32::MAX).max(1));
        let timeout = self.machine.as_ref().map_or(0, Machine::timeout_ticks);
        (seq, micros(now), rtt, timeout)
    }

    pub(super) fn on_feedback<P: EndpointProbe>(
        &mut self,
        now: Instant,
        feedback: &Feedback,
        probe: &mut P,
    ) -> Result<(), RxError> {
        let machine = self.machine.as_mut().ok_or(RxError::Unexpected)?;
        // RFC 5348 §4.3 step 1: R_sample = (t_now − t_recvdata) − t_delay
        let age = Duration::from_micros(micros(now).wrapping_sub(feedback.timestamp).into());
        let delay = Duration::from_micros(feedback.delay.into());
        // A timestamp is rounded down to a microsecond, so it may precede the packet itself.
        let oldest = now.saturating_since(self.first) + Duration::from_micros(1);
        if age > oldest || age < delay {
            return Err(RxError::BadAck);
        }
        let sent = Instant::from_nanos(now.as_nanos().saturating_sub(age.as_nanos()));
        if sent < self.covered {
            return Err(RxError::OldTimestamp);
        }
        self.covered = sent;
        let rtt = Some(age.saturating_sub(delay)).filter(|rtt| !rtt.is_zero());
        let report = Report {
            rtt,
            covered: sent,
            receive_rate: feedback.receive_rate.into(),
            loss_event_rate: f64::from(feedback.loss_event_rate) / f64::from(u32::MAX),
            // Each report carries one round-trip time: its difference to the previous one shows the
            // change of queues, in both directions together.
            delay_variation: self.rtt.zip(rtt).map(|(before, rtt)| rtt.abs_diff(before)),
        };
        self.rtt = rtt.or(self.rtt);
        machine.on_report(now, &report, probe);
        Ok(())
    }

    pub(super) fn on_timeout<P: EndpointProbe>(&mut self, now: Instant, probe: &mut P) {
        if let Some(machine) = self.machine.as_mut()
            && machine.deadline().is_some_and(|deadline| deadline <= now)
        {
            machine.on_timeout(now, probe);
        }
    }

    /// Collects events for the application after an input.
    #[inline(always)]
    pub(super) fn look(&mut self, now: Instant, events: &mut VecDeque<Event>) {
        if let Some(machine) = &mut self.machine {
            self.permit = machine.permit(now, self.data_bytes);
            if let Some(rate) = machine.target_rate() {
                events.push_back(Event::TargetRate(rate));
            }
        }
        self.unused = self.is_open().then_some(now);
    }

    #[inline(always)]
    pub(super) fn deadline(&self) -> Option<Instant> {
        let permit = match self.permit {
            Permit::At(at) => Some(at),
            Permit::Now | Permit::Blocked => None,
        };
        let machine = self.machine.as_ref().and_then(RateControl::deadline);
        earlier(permit, machine)
    }
}

/// The low 32 bits of the clock in microseconds.
pub(super) fn micros(now: Instant) -> u32 {
    (now.as_nanos() / 1000) as u32
}
