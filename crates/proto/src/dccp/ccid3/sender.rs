//! The sending half: the machine decides when data may leave; this half keeps the state needed to
//! read acknowledgements (departure time and count of each packet), the loss event rate from
//! Loss Intervals (RFC 4342 §6.1, RFC 5348 §7), and the window counter (§8.1).

use std::collections::VecDeque;

use super::ceiling::{Cause, Ceiling};
use super::counter::WindowCounter;
use super::options::{self, Feedback};
use super::reported::{Context, Reported};
use crate::dccp::ccid::{self, Acknowledgement, Arrival, Departure};
use crate::dccp::data_dropped::{DropCode, dropped};
use crate::dccp::options::Options;
use crate::dccp::seqno::SeqNo;
use crate::gauge::{EndpointNote, EndpointProbe, RxError};
use crate::math::ceil_u64;
use crate::rate::{Machine, Parameters, Permit, RateControl, Report, Rung};
use crate::time::{Duration, Instant};
use crate::units::Rate;

/// Maximum number of departures remembered. Older packets give no round-trip time when acknowledged;
/// memory is bounded even if the other side does not answer.
const MAX_REMEMBERED: usize = 1 << 16;
/// Departures acknowledged this many round trips ago are discarded. RFC 4828 §4.4 tests whether each of
/// nine reported intervals lasted at most two.
const REMEMBERED_ROUND_TRIPS: u64 = 20;

/// A packet sent.
#[derive(Clone, Copy, Debug)]
pub(super) struct Left {
    /// Its number.
    pub(super) seq: SeqNo,
    /// When.
    pub(super) at: Instant,
    /// Its count, if it carried data.
    count: Option<u64>,
}

/// HC-sender of CCID 3 and 4.
#[derive(Debug)]
pub struct Sender {
    machine: Machine,
    parameters: Parameters,
    counter: WindowCounter,
    ceiling: Ceiling,
    /// Packets up to this one have been checked for receive buffer drops.
    drops_seen: Option<SeqNo>,
    /// The other side's application no longer listens (RFC 4340 §11.7.2, Drop Code 1).
    unheard: bool,
    left: VecDeque<Left>,
    first: Option<SeqNo>,
    reported: Reported,
    /// Number of the packet with the last feedback.
    latest_feedback: Option<SeqNo>,
    /// Minimum and maximum round-trip time since the last report, including the one it used.
    spread: Option<(Duration, Duration)>,
    /// Bytes of the last data packet.
    data_bytes: u32,
    /// The other side keeps drops until an acknowledgement of them is acknowledged (RFC 4342 §6.3), and data
    /// packets since that was last done.
    owes_ack: bool,
    since_ack: u64,
    ect: bool,
    tell_rtt: bool,
}

impl Sender {
    /// A half that has sent nothing; `now` is when the connection, or this CCID on it, began.
    /// `ladder` lists the source's rates, best first; empty if it cannot choose.
    #[must_use]
    pub fn new(now: Instant, parameters: &Parameters, ladder: &[Rung]) -> Self {
        Self {
            machine: Machine::build(now, parameters, ladder),
            parameters: parameters.clone(),
            counter: WindowCounter::default(),
            ceiling: Ceiling::default(),
            drops_seen: None,
            unheard: false,
            left: VecDeque::new(),
            first: None,
            reported: Reported::default(),
            latest_feedback: None,
            spread: None,
            data_bytes: parameters.nominal_bytes.unwrap_or(0),
            ect: false,
            owes_ack: false,
            since_ack: 0,
            tell_rtt: false,
        }
    }
    /// Sets the handshake's round-trip time (RFC 4342 §5: the initial rate may use it).
    pub fn set_initial_rtt<P: EndpointProbe>(
        &mut self,
        now: Instant,
        rtt: Duration,
        probe: &mut P,
    ) {
        self.machine.set_initial_rtt(now, rtt, probe);
    }
    /// The machine, for inspection.
    #[must_use]
    pub const fn machine(&self) -> &Machine {
        &self.machine
    }

    /// The packet with this number, if it is remembered.
    fn find(&self, seq: SeqNo) -> Option<Left> {
        let place = self.left.binary_search_by_key(&seq, |left| left.seq).ok()?;
        Some(self.left[place])
    }

    /// When the last data packet up to this number left (RFC 5348 §8.2.1).
    fn covered(&self, seq: SeqNo) -> Option<Instant> {
        let end = self.left.partition_point(|left| left.seq <= seq);
        self.left.range(..end).rev().find(|left| left.count.is_some()).map(|left| left.at)
    }

    fn forget(&mut self, acked: Instant) {
        let span = self.machine.rtt().unwrap_or(Duration::ZERO) * REMEMBERED_ROUND_TRIPS;
        while self.left.front().is_some_and(|left| left.at + span < acked) {
            self.left.pop_front();
        }
    }

    /// A round-trip time from an acknowledgement (RFC 5348 §4.3 step 1). The elapsed time it reports
    /// is used only as far as it is plausible.
    fn rtt_sample(
        &mut self,
        now: Instant,
        ack: &Acknowledgement<'_>,
        left: Left,
    ) -> Option<Duration> {
        let age = now.saturating_since(left.at);
        // RFC 4342 §6 requires Elapsed Time or Timestamp Echo; Linux sends neither and answers at once.
        let elapsed = ack.elapsed.unwrap_or(Duration::ZERO);
        let rtt = (age > elapsed).then(|| age.saturating_sub(elapsed))?;
        let (least, greatest) = self.spread.unwrap_or((rtt, rtt));
        self.spread = Some((least.min(rtt), greatest.max(rtt)));
        Some(rtt)
    }

    /// RFC 4340 §11.7.2: data that arrived but was dropped for another reason than a full buffer.
    fn obey_drops(&mut self, ack: &Acknowledgement<'_>) {
        let mut corrupt = Vec::new();
        for block in dropped(ack.ack, ack.options) {
            let from = self.left.partition_point(|left| left.seq < block.oldest);
            let to = self.left.partition_point(|left| left.seq <= block.newest);
            let data = self.left.range(from..to).filter(|left| left.count.is_some());
            match block.code {
                DropCode::PROTOCOL_CONSTRAINTS | DropCode::RECEIVE_BUFFER => {}
                DropCode::NOT_LISTENING => self.unheard |= data.count() > 0,
                // "MUST cause the relevant CCID to behave as if the relevant packets were ECN marked"
                _ => corrupt.extend(data.rev().map(|left| (left.seq, left.at))),
            }
        }
        // Reported from the newest to the oldest.
        let rtt = self.machine.rtt();
        corrupt.into_iter().rev().for_each(|(seq, at)| self.reported.on_mark(seq, at, rtt));
    }

    /// Packets per round trip that the machine allows.
    fn allowed(&self, rtt: Duration) -> f64 {
        self.machine.rate().as_bps() as f64 / 8.0 * rtt.as_secs_f64()
            / self.machine.paced_size().max(1.0)
    }

    /// RFC 4342 §5.2: packets dropped by the other side's receive buffer, not by the network.
    fn obey_receiver(&mut self, now: Instant, ack: &Acknowledgement<'_>) {
        let Some(rtt) = self.machine.rtt() else { return };
        let seen = self.drops_seen.replace(ack.ack.max(self.drops_seen.unwrap_or(ack.ack)));
        let lost: u64 = dropped(ack.ack, ack.options)
            .filter(|block| block.code == DropCode::RECEIVE_BUFFER)
            .map(|block| {
                let oldest = seen.map_or(block.oldest, |seen| block.oldest.max(seen + 1));
                (block.newest + 1).since(oldest)
            })
            .sum();
        if lost > 0 {
            // One packet per round trip less for each, but at least one.
            let packets = (self.allowed(rtt) - lost as f64).max(1.0);
            self.ceiling.hold(now, Cause::ReceiveBufferDrop, packets, rtt);
        }
    }

    fn loss_event_rate(&mut self, seq: SeqNo, feedback: &Feedback, rate: u64) -> f64 {
        let Some(intervals) = &feedback.intervals else {
            return feedback.loss_event_rate.unwrap_or_else(|| self.reported.last());
        };
        let sent = self.first.map_or(0, |first| seq.since(first) + 1);
        let rtt = self.machine.rtt();
        let left = &self.left;
        let sent_at = |seq: SeqNo| {
            let place = left.binary_search_by_key(&seq, |left| left.seq).ok()?;
            Some(left[place].at)
        };
        self.reported.read(&Context {
            acked: seq,
            sent_packets: sent,
            intervals,
            drops: &feedback.drops,
            receive_rate: rate,
            segment_size: self.machine.segment_size(),
            packet_size: f64::from(self.data_bytes),
            rtt,
            sent_at: &sent_at,
            parameters: &self.parameters,
        })
    }
}

impl ccid::Sender for Sender {
    fn permit(&mut self, now: Instant) -> Permit {
        if self.unheard {
            return Permit::Blocked;
        }
        let permit = self.machine.permit(now, self.data_bytes);
        match (permit, self.ceiling.until(now)) {
            (Permit::Now, Some(until)) => Permit::At(until),
            (Permit::At(at), Some(until)) => Permit::At(at.max(until)),
            _ => permit,
        }
    }
    fn on_unused(&mut self, now: Instant) {
        self.machine.on_unused(now);
    }
    fn ccval(&mut self, now: Instant) -> u8 {
        WindowCounter::wire(self.counter.at(now, self.machine.rtt()))
    }
    fn options(&mut self, _: Instant, out: &mut Options) {
        if self.tell_rtt {
            options::push_rtt_estimate(out, self.machine.rtt());
        }
    }

    fn on_sent<P: EndpointProbe>(&mut self, now: Instant, packet: &Departure, _: &mut P) {
        let count = packet.data_bytes.map(|bytes| {
            self.machine.on_sent(now, bytes);
            self.ceiling.on_sent(now);
            self.since_ack += 1;
            self.data_bytes = bytes;
            self.counter.advance(now, self.machine.rtt())
        });
        self.first.get_or_insert(packet.seq);
        if self.left.len() == MAX_REMEMBERED {
            self.left.pop_front();
        }
        self.left.push_back(Left { seq: packet.seq, at: now, count });
    }

    fn on_arrival(&mut self, now: Instant, packet: &Arrival<'_>) {
        // RFC 4340 §11.6: no increase for a round trip, whatever the type of the packet. Applied
        // before feedback in the same packet raises the rate.
        if packet.options.has_slow_receiver()
            && let Some(rtt) = self.machine.rtt()
        {
            self.ceiling.hold(now, Cause::SlowReceiver, self.allowed(rtt).max(1.0), rtt);
        }
    }

    fn owes_ack(&mut self) -> bool {
        // RFC 4342 §6.3: about once per round trip where Data Dropped is used.
        let owes = self.owes_ack && self.since_ack >= self.packets_per_rtt();
        if owes {
            (self.owes_ack, self.since_ack) = (false, 0);
        }
        owes
    }

    fn on_ack<P: EndpointProbe>(&mut self, now: Instant, ack: &Acknowledgement<'_>, probe: &mut P) {
        self.owes_ack |= dropped(ack.ack, ack.options).next().is_some();
        let left = self.find(ack.ack);
        if let Some(count) = left.and_then(|left| left.count)
            && self.parameters.counter_follows_acks
        {
            self.counter.on_ack(now, count);
        }
        // Applied before feedback raises the rate, which it must not do for a round trip.
        self.obey_receiver(now, ack);
        self.obey_drops(ack);
        let Ok(feedback) = options::read(ack.options) else {
            return probe.note(now, EndpointNote::RxError(RxError::Malformed));
        };
        // RFC 4342 §6: an acknowledgement without Receive Rate has another purpose.
        let Some(receive_rate) = feedback.receive_rate else { return };
        // Feedback overtaken by later feedback is obsolete.
        if self.latest_feedback.is_some_and(|latest| ack.seq <= latest) {
            return;
        }
        let Some(covered) = self.covered(ack.ack) else {
            return probe.note(now, EndpointNote::RxError(RxError::BadAck));
        };
        self.latest_feedback = Some(ack.seq);
        let rtt = left.and_then(|left| self.rtt_sample(now, ack, left));
        let loss_event_rate = self.loss_event_rate(ack.ack, &feedback, receive_rate);
        let variation = self.spread.map(|(least, greatest)| greatest.saturating_sub(least));
        let report =
            Report { rtt, covered, receive_rate, loss_event_rate, delay_variation: variation };
        self.spread = rtt.map(|rtt| (rtt, rtt));
        self.machine.on_report(now, &report, probe);
        self.forget(covered);
    }

    fn deadline(&self) -> Option<Instant> {
        self.machine.deadline()
    }
    fn on_timeout<P: EndpointProbe>(&mut self, now: Instant, probe: &mut P) {
        self.machine.on_timeout(now, probe);
    }
    fn packets_per_rtt(&self) -> u64 {
        self.machine.rtt().map_or(1, |rtt| ceil_u64(self.allowed(rtt)).max(1))
    }
    fn rtt(&self) -> Option<Duration> {
        self.machine.rtt()
    }
    fn ect(&self) -> bool {
        self.ect
    }
    fn footprint(&self) -> usize {
        let left = self.left.capacity() * size_of::<Left>();
        left + self.reported.footprint() + self.machine.footprint()
    }
    fn agree(&mut self, ect: bool, rtt_estimate: bool) {
        (self.ect, self.tell_rtt) = (ect, rtt_estimate);
    }
    fn report_rate(&mut self) {
        self.machine.report_rate();
    }
    fn target_rate(&mut self) -> Option<Rate> {
        self.machine.target_rate()
    }
}
