//! HC-Receiver of CCID 2: when an acknowledgement leaves (RFC 4341 §6; RFC 4340 §11.3). It carries
//! the Ack Vector.

use super::config::Parameters;
use crate::dccp::AckVector;
use crate::dccp::ccid::{Arrival, Receiver as HcReceiver};
use crate::dccp::options::{Opt, Options};
use crate::dccp::seqno::SeqNo;
use crate::gauge::EndpointProbe;
use crate::packet::Ecn;
use crate::rate::history::DEFAULT_RTT;
use crate::time::{Duration, Instant};

/// The receiving half of CCID 2.
#[derive(Debug)]
pub struct Receiver {
    ratio: u16,
    ack_delay: Option<Duration>,
    elapsed_time: bool,
    acknowledges_gaps: bool,
    rtt: Duration,
    /// The newest packet and its arrival time.
    newest: Option<(SeqNo, Instant)>,
    /// Data packets since the last acknowledgement.
    unacknowledged: u32,
    /// An acknowledgement should leave regardless of the ratio.
    urgent: bool,
    /// The acknowledgement timer has expired.
    late: bool,
    deadline: Option<Instant>,
    /// When a mark last triggered an immediate acknowledgement.
    marked: Option<Instant>,
}

impl Receiver {
    /// A receiver in its initial state.
    #[must_use]
    pub fn new(parameters: &Parameters) -> Self {
        Self {
            // RFC 4340 §11.3: the value of the feature until another is negotiated.
            ratio: 2,
            ack_delay: parameters.ack_delay,
            elapsed_time: parameters.elapsed_time,
            acknowledges_gaps: parameters.acknowledges_gaps,
            rtt: DEFAULT_RTT,
            newest: None,
            unacknowledged: 0,
            urgent: false,
            late: false,
            deadline: None,
            marked: None,
        }
    }

    /// RFC 4340 §11.3: true if this data packet must be acknowledged at once.
    fn alarming(&mut self, now: Instant, packet: &Arrival<'_>) -> bool {
        // "packets whose out-of-order sequence numbers potentially indicate loss"
        let in_order = self.newest.is_none_or(|(newest, _)| packet.seq == newest + 1);
        // Marks: "no more than once per round-trip time".
        let marked = packet.ecn == Ecn::Ce
            && self.marked.is_none_or(|last| now.saturating_since(last) >= self.rtt);
        if marked {
            self.marked = Some(now);
        }
        marked || !in_order
    }
}

impl HcReceiver for Receiver {
    fn on_packet<P: EndpointProbe>(&mut self, now: Instant, packet: &Arrival<'_>, _: &mut P) {
        // Acknowledgements are not acknowledged, so that two ends do not acknowledge each other for ever.
        if packet.data_bytes.is_some() {
            self.urgent |= self.acknowledges_gaps && self.alarming(now, packet);
            self.unacknowledged += 1;
            if self.deadline.is_none() {
                self.deadline = self.ack_delay.map(|delay| now + delay);
            }
        }
        if self.newest.is_none_or(|(newest, _)| packet.seq > newest) {
            self.newest = Some((packet.seq, now));
        }
    }

    fn wants_ack(&self, now: Instant) -> bool {
        // RFC 4340 §11.3: about one per Ack Ratio data packets, and no later than the timer.
        self.urgent
            || self.late
            || (self.unacknowledged > 0
                && (self.unacknowledged >= u32::from(self.ratio)
                    || self.deadline.is_some_and(|deadline| now >= deadline)))
    }

    fn deadline(&self) -> Option<Instant> {
        self.deadline.filter(|_| !self.late)
    }

    fn on_timeout(&mut self, now: Instant) {
        if self.deadline.is_some_and(|deadline| now >= deadline) {
            self.late = true;
        }
    }

    fn acknowledge(&mut self, now: Instant, _: bool, vector: &mut AckVector, out: &mut Options) {
        // RFC 4341 §6: every acknowledgement has the vector, covering all that the other side may
        // not have been told.
        vector.write(out);
        // RFC 4340 §13.2: how long the acknowledged packet has waited, if at all, in units of 10 µs.
        let waited = self.newest.map_or(Duration::ZERO, |(_, at)| now.saturating_since(at));
        let units = u32::try_from(waited.as_nanos() / 10_000).unwrap_or(u32::MAX);
        if self.elapsed_time && units > 0 {
            out.push(Opt::ElapsedTime(units));
        }
        (self.unacknowledged, self.urgent, self.late) = (0, false, false);
        self.deadline = None;
    }

    fn set_ack_ratio(&mut self, ratio: u16) {
        // RFC 4340 §11.3: 0 is sent by a sender without preference.
        self.ratio = ratio.max(1);
    }

    fn set_rtt(&mut self, rtt: Duration) {
        self.rtt = rtt;
    }
}
