//! Processing of arriving segments: RFC 9293 §3.10.7, in the order of its checks, with PAWS
//! (RFC 7323 §5) and the blind-attack defences of RFC 5961 that RFC 9293 adopted.

use super::reassembly::Took;
use super::{Flags, Reset, ResetTimestamp, Segment, State, Tcp};
use crate::endpoint::Event;
use crate::gauge::{EndpointProbe, RxError};
use crate::packet::{Ecn, Payload};
use crate::seq::Seq;
use crate::time::{Duration, Instant};

/// RFC 5961 §7: maximum number of challenge acknowledgements per [`CHALLENGE_PERIOD`].
const CHALLENGES: u8 = 10;
const CHALLENGE_PERIOD: Duration = Duration::from_secs(5);

impl Tcp {
    #[inline(always)]
    pub(super) fn on_segment<P: EndpointProbe>(
        &mut self,
        now: Instant,
        segment: &mut Segment,
        ecn: Ecn,
        probe: &mut P,
    ) {
        match self.state {
            State::Closed => self.refuse(segment),
            State::Listen => self.on_listen(now, segment, probe),
            State::SynSent => self.on_syn_sent(now, segment, probe),
            _ => self.on_synchronised(now, segment, ecn, probe),
        }
    }

    /// RFC 9293 §3.10.7.1: the reset sent for a segment without a connection, unless it is a reset.
    pub(super) fn refuse(&mut self, segment: &Segment) {
        if segment.flags.contains(Flags::RST) {
            return;
        }
        let timestamp = ResetTimestamp::Echo(segment.timestamps.map(|(tsval, _)| tsval));
        self.reset = Some(if segment.flags.contains(Flags::ACK) {
            Reset { seq: segment.ack, ack: None, timestamp }
        } else {
            let after = segment.seq.wrapping_add(length(segment) as u32);
            Reset { seq: 0, ack: Some(after), timestamp }
        });
    }

    /// RFC 9293 §3.10.7.4
    #[inline(always)]
    fn on_synchronised<P: EndpointProbe>(
        &mut self,
        now: Instant,
        segment: &mut Segment,
        ecn: Ecn,
        probe: &mut P,
    ) {
        let mut seq = self.rx.nxt.near(segment.seq);
        if self.is_crossing_syn(segment, seq) {
            segment.flags = Flags(segment.flags.0 & !Flags::SYN.0);
            // RFC 7323 §2.2: the window of a SYN is not scaled.
            segment.window >>= self.tx.shift;
            seq += 1;
        }
        if !self.is_timely(now, segment, probe) || !self.is_in_window(now, segment, seq, probe) {
            return;
        }
        let flags = segment.flags;
        if flags.contains(Flags::RST) {
            // RFC 7323 §5.2: the timestamps of a reset change nothing.
            return self.on_reset(now, seq);
        }
        if let Some((tsval, _)) = segment.timestamps.filter(|_| self.negotiated.timestamps) {
            self.rx.note_timestamp(now, seq, tsval);
        }
        if flags.contains(Flags::SYN) {
            return self.on_stray_syn(now);
        }
        if !flags.contains(Flags::ACK) || !self.on_ack(now, segment, (seq, ecn), probe) {
            return;
        }
        let fin = flags.contains(Flags::FIN).then_some(seq + segment.payload.len() as u64);
        if !segment.payload.is_empty() {
            self.on_text(now, seq, std::mem::take(&mut segment.payload), probe);
        }
        if fin.is_some() || self.rx.fin.is_some() {
            self.on_fin(now, fin);
        }
    }

    /// RFC 9293 §3.5 figure 8: in a simultaneous open each SYN is repeated with an ACK.
    fn is_crossing_syn(&self, segment: &Segment, seq: Seq) -> bool {
        self.state == State::SynReceived
            && seq == self.rx.irs
            && segment.flags.contains(Flags::SYN | Flags::ACK)
    }

    /// RFC 7323 §3.2 and §5.3 R1. Resets are exempt.
    #[inline(always)]
    fn is_timely<P: EndpointProbe>(
        &mut self,
        now: Instant,
        segment: &Segment,
        probe: &mut P,
    ) -> bool {
        if !self.negotiated.timestamps || segment.flags.contains(Flags::RST) {
            return true;
        }
        let Some((tsval, _)) = segment.timestamps else {
            probe.rx_error(now, RxError::Unexpected);
            if segment.flags.contains(Flags::SYN) {
                // RFC 5961 §4.2: a peer that opens again need not know what was negotiated.
                self.challenge(now);
            }
            return false;
        };
        let old = self.rx.is_old(now, tsval);
        if old {
            probe.rx_error(now, RxError::OldTimestamp);
            self.acknowledge_stray(now, segment);
        }
        !old
    }

    /// First check: the sequence number.
    #[inline(always)]
    fn is_in_window<P: EndpointProbe>(
        &mut self,
        now: Instant,
        segment: &Segment,
        seq: Seq,
        probe: &mut P,
    ) -> bool {
        if self.rx.accepts(seq, length(segment)) {
            return true;
        }
        // Data received before is a retransmission, not an rx_error.
        if seq < self.rx.irs || seq + length(segment) > self.rx.nxt {
            probe.rx_error(now, RxError::OutOfWindow);
        } else {
            self.rx.note_duplicate(seq, length(segment));
            // RFC 7323 §5.3 R3 before R2, a choice: if an acknowledgement was lost, the answer to the
            // retransmission echoes the retransmission.
            if let Some((tsval, _)) = segment.timestamps.filter(|_| self.negotiated.timestamps)
                && self.rx.reaches_edge(seq, length(segment))
                && !segment.flags.contains(Flags::RST)
            {
                self.rx.note_timestamp(now, seq, tsval);
            }
        }
        if segment.flags.contains(Flags::RST) {
            return false;
        }
        if self.state == State::TimeWait && segment.flags.contains(Flags::FIN) {
            // Eighth check: the peer has not received our last ACK.
            self.wait_two_lifetimes(now);
        }
        self.acknowledge_stray(now, segment);
        false
    }

    /// Answers an unacceptable segment. Data and FIN are always answered, since a lost ACK looks like this.
    /// Segments that occupy no number are limited like challenges, so that two desynchronised ends do not
    /// acknowledge each other for ever. The answer to any SYN is a challenge (RFC 5961 §4.2).
    fn acknowledge_stray(&mut self, now: Instant, segment: &Segment) {
        if length(segment) > 0 && !segment.flags.contains(Flags::SYN) {
            self.rx.ack_now = true;
        } else {
            self.challenge(now);
        }
    }

    /// A challenge acknowledgement (RFC 5961 §3.2, §4.2, §5.2), throttled (§7).
    fn challenge(&mut self, now: Instant) {
        let (since, count) = &mut self.challenges;
        if now.saturating_since(*since) >= CHALLENGE_PERIOD {
            (*since, *count) = (now, 0);
        }
        if *count < CHALLENGES {
            *count += 1;
            self.rx.ack_now = true;
        }
    }

    /// Second check: RST.
    fn on_reset(&mut self, now: Instant, seq: Seq) {
        if seq != self.rx.nxt {
            // RFC 5961 §3.2: outside the window, and at its right edge, it is dropped silently.
            if self.rx.is_inside(seq) {
                self.challenge(now);
            }
            return;
        }
        match self.state {
            State::SynReceived if self.passive => self.listen_again(),
            State::Closing | State::LastAck => self.finish(Event::Closed),
            // The application has already been told of the close.
            State::TimeWait => {
                self.state = State::Closed;
                self.timers.time_wait = None;
            }
            _ => self.finish(Event::Reset),
        }
    }

    /// Fourth check: a SYN inside the window.
    fn on_stray_syn(&mut self, now: Instant) {
        if self.state == State::SynReceived && self.passive {
            self.listen_again();
        } else {
            self.challenge(now);
        }
    }

    /// Fifth check: ACK. False if the rest of the segment must not be used.
    #[inline(always)]
    fn on_ack<P: EndpointProbe>(
        &mut self,
        now: Instant,
        segment: &Segment,
        (seq, ecn): (Seq, Ecn),
        probe: &mut P,
    ) -> bool {
        let ack = self.tx.una.near(segment.ack);
        if self.state == State::SynReceived {
            if ack <= self.tx.una || ack > self.tx.max {
                probe.rx_error(now, RxError::BadAck);
                self.refuse(segment);
                return false;
            }
            self.establish(now, segment, ack);
        }
        // RFC 5961 §5.2: neither beyond what was sent nor older than the largest window.
        if ack > self.tx.max || ack < self.tx.una.back(self.tx.largest_window) {
            probe.rx_error(now, RxError::BadAck);
            self.challenge(now);
            return false;
        }
        let mut taken = self.extended && self.on_usual_ack(now, segment, ack);
        if self.extended && !taken {
            taken = self.on_extended_ack(now, segment, (ack, ecn), probe);
        }
        if taken {
            self.on_own_fin_acknowledged(now);
        } else if ack > self.tx.una {
            let echo = segment.timestamps.map(|(_, echo)| echo);
            self.on_new_ack(now, ack, echo);
            self.on_own_fin_acknowledged(now);
        } else if self.is_duplicate(segment, ack) {
            self.on_duplicate_ack(now);
        }
        if ack >= self.tx.una {
            self.update_window(segment, seq, ack);
            if self.recovery.doubt.is_some() {
                self.doubt_on_window();
            }
        }
        self.state != State::Closed
    }

    /// RFC 5681 §2, points (a) to (e). The answer to a probe of a closed window is not a duplicate:
    /// the probe does not count as in flight.
    #[inline]
    fn is_duplicate(&self, segment: &Segment, ack: Seq) -> bool {
        ack == self.tx.una
            && self.tx.flight() > 0
            && segment.payload.is_empty()
            && !segment.flags.contains(Flags::FIN)
            && u64::from(segment.window) << self.tx.shift == self.tx.window
    }

    /// SND.WND, SND.WL1 and SND.WL2.
    #[inline(always)]
    fn update_window(&mut self, segment: &Segment, seq: Seq, ack: Seq) {
        let tx = &mut self.tx;
        if tx.wl1 < seq || (tx.wl1 == seq && tx.wl2 <= ack) {
            tx.window = u64::from(segment.window) << tx.shift;
            tx.largest_window = tx.largest_window.max(tx.window);
            (tx.wl1, tx.wl2) = (seq, ack);
        }
        if self.timers.persist.is_some() {
            // RFC 9293 §3.8.6.1: the connection stays open as long as probes are answered.
            self.recovery.timeouts = 0;
        }
    }

    /// Fifth check, the states after Close.
    #[inline]
    fn on_own_fin_acknowledged(&mut self, now: Instant) {
        if !self.tx.fin_acknowledged() {
            return;
        }
        match self.state {
            State::FinWait1 => self.state = State::FinWait2,
            State::Closing => self.enter_time_wait(now),
            State::LastAck => self.finish(Event::Closed),
            _ => {}
        }
    }

    /// Seventh check: the data, and when to acknowledge it (RFC 5681 §4.2).
    #[inline(always)]
    fn on_text<P: EndpointProbe>(
        &mut self,
        now: Instant,
        seq: Seq,
        payload: Payload,
        probe: &mut P,
    ) {
        if !matches!(self.state, State::Established | State::FinWait1 | State::FinWait2) {
            return;
        }
        match self.rx.take(seq, payload) {
            // A FIN already received lies beyond a gap, which this fills in part (RFC 5681 §4.2).
            Took::InOrder
                if self.config.delayed_ack
                    && !self.rx.second_segment()
                    && self.rx.fin.is_none() =>
            {
                if self.timers.ack.is_none() {
                    // RFC 5681 §4.2: below 500 ms
                    let wait = self.config.ack_delay.min(Duration::from_millis(499));
                    self.timers.ack = Some(now + wait);
                }
            }
            Took::InOrder | Took::FilledGap | Took::OutOfOrder => self.rx.ack_now = true,
            Took::Refused => probe.rx_error(now, RxError::Malformed),
        }
    }

    /// Eighth check: FIN, which may arrive before the data it ends.
    fn on_fin(&mut self, now: Instant, fin: Option<Seq>) {
        if let Some(fin) = fin {
            self.rx.take_fin(fin);
        }
        if self.rx.fin != Some(self.rx.nxt) {
            return;
        }
        match self.state {
            State::Established => self.state = State::CloseWait,
            State::FinWait1 => self.state = State::Closing,
            State::FinWait2 => {}
            _ => return,
        }
        self.rx.pass_fin();
        self.news.add(Event::PeerClosed);
        if self.state == State::FinWait2 {
            self.enter_time_wait(now);
        }
    }

    /// Both sides have finished; TIME-WAIT absorbs stray segments.
    fn enter_time_wait(&mut self, now: Instant) {
        let ack_now = self.rx.ack_now;
        self.finish(Event::Closed);
        self.rx.ack_now = ack_now;
        self.state = State::TimeWait;
        self.wait_two_lifetimes(now);
    }

    /// RFC 9293 §3.6.1
    fn wait_two_lifetimes(&mut self, now: Instant) {
        self.timers.time_wait = Some(now + self.config.msl * 2);
    }
}

/// SEG.LEN: what the segment occupies in the number space.
#[inline]
fn length(segment: &Segment) -> u64 {
    let flag = |flag| u64::from(segment.flags.contains(flag));
    segment.payload.len() as u64 + flag(Flags::SYN) + flag(Flags::FIN)
}
