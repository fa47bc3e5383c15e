//! The receiving half of a bare TFRC end (RFC 5348 §6): reads numbers and timestamps, drops
//! duplicates, and writes feedback when the machine requests it.

use crate::gauge::{EndpointProbe, RxError};
use crate::packet::Ecn;
use crate::rate::{self, Arrival, Parameters};
use crate::seq::Seq;
use crate::time::{Duration, Instant};

use super::packet::{Data, Feedback};

/// Maximum distance of a number ahead of the last. A sender whose packets are all lost slows to one
/// in 64 s (RFC 5348 §4.3) long before it has lost this many.
const WINDOW: u64 = 1 << 16;

/// The receiving half.
#[derive(Debug)]
pub(super) struct Receiver {
    parameters: Parameters,
    machine: rate::Receiver,
    /// The highest number, and which of the 128 up to it have arrived (bit 0: itself).
    seen: Option<(Seq, u128)>,
    /// The number after one outside the window.
    elsewhere: Option<u32>,
    /// Timestamp and arrival of the last data packet.
    last: Option<(u32, Instant)>,
}

impl Receiver {
    pub(super) fn new(parameters: &Parameters) -> Self {
        Self {
            machine: rate::Receiver::new(parameters),
            parameters: parameters.clone(),
            seen: None,
            elsewhere: None,
            last: None,
        }
    }

    #[inline(always)]
    pub(super) fn on_data<P: EndpointProbe>(
        &mut self,
        now: Instant,
        ecn: Ecn,
        data: &Data,
        probe: &mut P,
    ) -> Result<(), RxError> {
        let Some(seq) = self.place(data.seq)? else { return Ok(()) };
        self.last = Some((data.timestamp, now));
        let rtt = Some(Duration::from_micros(data.rtt.into())).filter(|rtt| !rtt.is_zero());
        let arrival = Arrival {
            seq: seq.since(Seq::default()),
            data_bytes: Some(data.payload.wire_bytes() as u32),
            non_data_before: 0,
            // RFC 5348 §5.3: a mark counts as a loss of the marked packet.
            marked: ecn == Ecn::Ce,
            rtt,
            counter: None,
        };
        self.machine.set_timeout(data.timeout);
        self.machine.on_packet(now, &arrival, probe);
        Ok(())
    }

    /// The first number of a space.
    fn begin(&mut self, wire: u32) -> Seq {
        let first = Seq::first(wire);
        (self.seen, self.elsewhere) = (Some((first, 1)), None);
        first
    }

    /// The position of a number in its space; `None` if it has arrived, or may have.
    #[inline(always)]
    fn place(&mut self, wire: u32) -> Result<Option<Seq>, RxError> {
        let Some((greatest, seen)) = &mut self.seen else {
            return Ok(Some(self.begin(wire)));
        };
        let seq = greatest.near(wire);
        let ahead = seq.since(*greatest);
        if ahead > WINDOW || greatest.since(seq) > WINDOW {
            // RFC 3550 §A.1: two in sequence are a sender that restarted, or the true one after a
            // stray number was accepted.
            if self.elsewhere == Some(wire) {
                self.machine = rate::Receiver::new(&self.parameters);
                return Ok(Some(self.begin(wire)));
            }
            self.elsewhere = Some(wire.wrapping_add(1));
            return Err(RxError::OutOfWindow);
        }
        // A sender still in its window has not restarted.
        self.elsewhere = None;
        if ahead > 0 {
            let moved = seen.checked_shl(u32::try_from(ahead).unwrap_or(u32::MAX)).unwrap_or(0);
            (*greatest, *seen) = (seq, moved | 1);
            return Ok(Some(seq));
        }
        let bit = u32::try_from(greatest.since(seq)).ok().and_then(|back| 1_u128.checked_shl(back));
        let Some(bit) = bit.filter(|bit| *seen & bit == 0) else { return Ok(None) };
        *seen |= bit;
        Ok(Some(seq))
    }

    /// The feedback to send now, if any.
    #[inline]
    pub(super) fn feedback(&mut self, now: Instant) -> Option<Feedback> {
        if self.machine.wants_feedback(now) { self.measure(now) } else { None }
    }

    // Runs once per round trip, while the check runs for every packet.
    #[inline(never)]
    fn measure(&mut self, now: Instant) -> Option<Feedback> {
        let (timestamp, arrived) = self.last?;
        let measured = self.machine.feedback(now)?;
        let delay = now.saturating_since(arrived).as_nanos() / 1000;
        Some(Feedback {
            timestamp,
            delay: u32::try_from(delay).unwrap_or(u32::MAX),
            receive_rate: u32::try_from(measured.receive_rate).unwrap_or(u32::MAX),
            // The cast saturates at the integer's bounds.
            loss_event_rate: (measured.loss_event_rate * f64::from(u32::MAX)).round() as u32,
        })
    }

    #[inline(always)]
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.machine.deadline()
    }
    pub(super) fn on_timeout(&mut self, now: Instant) {
        if self.machine.deadline().is_some_and(|deadline| deadline <= now) {
            self.machine.on_timeout(now);
        }
    }
}
