//! Loss recovery with selective acknowledgements: RFC 6675 §5 for when it begins and what is sent,
//! RFC 9937 for how much, and RFC 6675 §5.1 for its state after a timeout.
//!
//! SND.NXT does not fall back here: the scoreboard selects retransmissions. Each retransmission
//! restarts the timer (RFC 6675 §6, the careful variant).

use super::delivery::Delivery;
use super::f_rto::Arrivals;
use super::prr::{Progress, Prr};
use super::rack::Rack;
use super::scoreboard::{DUPLICATES, Scoreboard};
use super::send::Draft;
use super::{Segment, Tcp};
use crate::congestion::{Ack, Congestion, CongestionControl};
use crate::gauge::{EndpointProbe, RxError};
use crate::packet::Ecn;
use crate::seq::Seq;
use crate::time::{Instant, earlier};

/// State of a connection with selective acknowledgements.
#[derive(Debug, Default)]
pub(super) struct Selective {
    pub(super) board: Scoreboard,
    pub(super) prr: Prr,
    /// RFC 6675 §4, NextSeg rule 4: RescueRxt. A rescue is sent when more is acknowledged.
    rescue: Seq,
    /// With RACK-TLP.
    pub(super) rack: Option<Rack>,
    /// With a controller that uses delivery rates.
    pub(super) delivery: Option<Delivery>,
}

impl Selective {
    pub(super) fn new(rack: Option<Rack>, delivery: bool) -> Self {
        Self { rack, delivery: delivery.then(Delivery::default), ..Self::default() }
    }

    /// The earliest deadline of RACK-TLP.
    #[inline(never)]
    pub(super) fn next_deadline(&self) -> Option<Instant> {
        self.rack.as_ref().and_then(|rack| earlier(rack.reorder_at, rack.probe_at))
    }
}

/// Compares two values of the timestamp clock (RFC 7323 §5.2).
pub(super) const fn is_before(one: u32, other: u32) -> bool {
    (one.wrapping_sub(other) as i32) < 0
}

/// The blocks of an acknowledgement.
#[derive(Default)]
struct Blocks {
    blocks: [(Seq, Seq); 4],
    count: usize,
    /// Data that arrived twice (RFC 2883).
    duplicate: Option<(Seq, Seq)>,
}

impl Tcp {
    /// Processes an acknowledgement of a connection with ECN or selective acknowledgements; true if
    /// the latter handled it.
    #[inline(never)]
    pub(super) fn on_extended_ack<P: EndpointProbe>(
        &mut self,
        now: Instant,
        segment: &Segment,
        (ack, ecn): (Seq, Ecn),
        probe: &mut P,
    ) -> bool {
        if self.negotiated.ecn {
            self.on_mark(segment, ecn);
            self.on_echo(now, segment, ack);
        }
        let selective = self.selective.is_some();
        if selective {
            self.on_selective_ack(now, segment, ack, probe);
        }
        selective
    }

    /// An acknowledgement within the window, old, new or a duplicate.
    fn on_selective_ack<P: EndpointProbe>(
        &mut self,
        now: Instant,
        segment: &Segment,
        ack: Seq,
        probe: &mut P,
    ) {
        if ack < self.tx.una {
            return;
        }
        self.check_if_application_limited();
        if self.tx.una == self.tx.max && self.brings_only_data(segment) {
            return;
        }
        let told = self.read_blocks(now, segment, ack, probe);
        // Taken out and put back, since the rest of the endpoint is needed too.
        let Some(mut selective) = self.selective.take() else { return };
        let Selective { board, rack, delivery, .. } = &mut *selective;
        let (flight, missing) = (board.pipe(), board.missing());
        let (doubted, mut arrivals) = (self.doubted_up_to(), Arrivals::default());
        let echo = segment.timestamps.filter(|_| self.negotiated.timestamps).map(|(_, echo)| echo);
        let after_timeout = !self.recovery.is_fast() && self.tx.una < self.recovery.recover;
        rack.iter_mut().for_each(Rack::on_ack_begins);
        let news = board.update(ack, &told.blocks[..told.count], |record, snapshot| {
            arrivals.add(record, doubted);
            if let Some(rack) = rack {
                // RFC 8985 §6.2 step 2, for data in order: beyond a gap the echoed timestamp is not
                // that of the segment that arrived (RFC 7323 §4.3).
                let original = record.end <= ack
                    && echo.is_some_and(|echo| is_before(echo, self.clock(record.sent)));
                rack.on_arrived(now, record, original);
            }
            if let (Some(delivery), Some(snapshot)) = (&mut *delivery, snapshot) {
                delivery.on_arrived(record, snapshot);
            }
        });
        let advanced = ack > self.tx.una;
        let plain = !advanced && segment.sack.is_none() && segment.payload.is_empty();
        if self.measure_selective(now, &news, segment, (advanced, flight))
            && let (Some(rack), Some(rtt)) = (&mut *rack, self.rtt.latest())
        {
            rack.on_sample(now, rtt);
        }
        if advanced {
            let acked = ack.since(self.tx.una);
            rack.iter_mut().for_each(|rack| rack.timed_out = false);
            self.acknowledge_up_to(ack);
            let recovery = &mut self.recovery;
            (recovery.timeouts, recovery.duplicates, recovery.limited) = (0, 0, 0);
            if after_timeout && ack >= recovery.recover {
                // RFC 8985 §6.2 step 4: RTO recovery ends.
                rack.iter_mut().for_each(Rack::on_recovered);
            }
            if recovery.is_over(ack) {
                recovery.leave();
                rack.iter_mut().for_each(Rack::on_recovered);
                // The window is the threshold: PRR has reduced the flight to it.
                self.cc.on_recovered(now, self.cc.window());
            } else if !recovery.is_fast() && !self.echoes.heard {
                let window_limited = self.is_window_limited(flight);
                self.cc.on_ack(now, &Ack { acked, flight, window_limited }, &self.rtt);
            }
        }
        if news.sacked > 0 {
            // RFC 6675 §2: the definition of a duplicate, "regardless of its status as a cumulative
            // acknowledgment" (§5).
            self.recovery.duplicates = self.recovery.duplicates.saturating_add(1);
        }
        if self.recovery.doubt.is_some() {
            self.doubt_on_selective(now, &mut selective, segment, (advanced, &news, arrivals));
        }
        if let Some(rack) = &mut selective.rack {
            rack.on_duplicate(ack, self.tx.nxt, told.duplicate.is_some());
        }
        self.on_probe_answered(now, &mut selective, ack, (told.duplicate, plain));
        let lost = self.mark_what_is_lost(now, &mut selective);
        let begins = self.recover_what_is_lost(now, &mut selective, missing);
        if selective.delivery.is_some() {
            self.report_delivery(now, &mut selective, (&news, flight));
        } else if self.recovery.is_fast() && (begins || news.delivered > 0) {
            let Selective { board, prr, .. } = &mut *selective;
            prr.on_ack(&Progress {
                delivered: news.delivered,
                pipe: board.pipe(),
                ssthresh: self.cc.threshold().unwrap_or(self.cc.window()),
                mss: self.tx.mss,
                safe: advanced && lost == 0,
            });
        }
        self.selective = Some(selective);
        if self.tx.una == self.tx.max {
            // RFC 6298 §5.2
            self.timers.rto = None;
        } else if advanced && self.tx.flight() > 0 {
            // RFC 6298 §5.3
            self.timers.rto = Some(now + self.rtt.rto());
        }
        self.review_probe(now, advanced);
    }

    /// Fast path of [`Tcp::on_extended_ack`] for most acknowledgements: those of new data, without
    /// blocks, where no segment in flight was sacked, lost or retransmitted, delivery is not measured
    /// and no recovery is active; and those of a peer that only sends data. True if it applied.
    #[inline(always)]
    pub(super) fn on_usual_ack(&mut self, now: Instant, segment: &Segment, ack: Seq) -> bool {
        #[cfg(test)]
        if super::selective_tests::is_shut() {
            return false;
        }
        let Some(selective) = &mut self.selective else { return false };
        let Selective { board, rack: None, delivery: None, .. } = &mut **selective else {
            return false;
        };
        if segment.sack.is_some() || self.negotiated.ecn || self.recovery.doubt.is_some() {
            return false;
        }
        if self.tx.una == self.tx.max {
            return !segment.payload.is_empty();
        }
        if ack > self.tx.una && board.is_untouched() && !self.recovery.is_fast() {
            self.on_undisturbed_ack(now, segment, ack);
            #[cfg(test)]
            super::selective_tests::note_taken();
            return true;
        }
        false
    }

    fn on_undisturbed_ack(&mut self, now: Instant, segment: &Segment, ack: Seq) {
        let Some(selective) = &mut self.selective else { return };
        let flight = selective.board.pipe();
        let news = selective.board.advance(ack);
        let acked = ack.since(self.tx.una);
        self.measure_selective(now, &news, segment, (true, flight));
        self.acknowledge_up_to(ack);
        let recovery = &mut self.recovery;
        (recovery.timeouts, recovery.duplicates, recovery.limited) = (0, 0, 0);
        if !self.echoes.heard {
            let window_limited = self.is_window_limited(flight);
            self.cc.on_ack(now, &Ack { acked, flight, window_limited }, &self.rtt);
        }
        if self.tx.una == self.tx.max {
            // RFC 6298 §5.2
            self.timers.rto = None;
        } else if self.tx.flight() > 0 {
            // RFC 6298 §5.3
            self.timers.rto = Some(now + self.rtt.rto());
        }
    }

    /// With nothing in flight, data without blocks does not concern this side's sender: most of what
    /// a receiver gets.
    #[inline]
    fn brings_only_data(&self, segment: &Segment) -> bool {
        segment.sack.is_none() && !segment.payload.is_empty() && self.recovery.doubt.is_none()
    }

    /// Marks the losses shown by the blocks or RACK; returns the bytes newly lost.
    fn mark_what_is_lost(&mut self, now: Instant, selective: &mut Selective) -> u64 {
        if selective.rack.is_some() {
            return self.detect(now, selective);
        }
        if self.is_believed() { selective.board.mark(self.tx.mss) } else { 0 }
    }

    /// RFC 6675 §5.1: after a timeout no recovery until everything then in flight has arrived.
    fn is_believed(&self) -> bool {
        self.recovery.is_fast() || self.tx.una >= self.recovery.recover
    }

    /// Begins recovery if there is a loss and no recovery is active; true if so. `missing`: what
    /// had not arrived before this acknowledgement.
    pub(super) fn recover_what_is_lost(
        &mut self,
        now: Instant,
        selective: &mut Selective,
        missing: u64,
    ) -> bool {
        self.report_losses(now, selective);
        let Selective { board, prr, rescue, rack, .. } = selective;
        let lost = match rack {
            Some(_) => board.has_pending(),
            None => self.recovery.duplicates >= DUPLICATES || board.first_is_lost(),
        };
        let begins = lost && self.is_believed() && !self.recovery.is_fast();
        if begins {
            self.begin_recovery(now);
            match rack {
                None => *rescue = board.lose_first(),
                Some(rack) => rack.forget_probe(),
            }
            *prr = Prr::begin(missing);
            // The first retransmission leaves even if a timer, not an acknowledgement, began recovery.
            prr.on_ack(&Progress {
                delivered: 0,
                pipe: 0,
                ssthresh: 0,
                mss: self.tx.mss,
                safe: false,
            });
        }
        begins
    }

    /// A reduction without recovery: the loss was repaired at the end of a flight, which is over,
    /// so that the window stands for it.
    pub(super) fn reduce_once(&mut self, now: Instant) {
        let flight = self.cc.window();
        self.cc.on_congestion(now, &Congestion::Loss { flight });
        self.note_reduction();
    }

    /// The blocks of a segment as positions in the number space. Blocks beyond what was sent, and those that
    /// end before they begin, are ignored; blocks below SND.UNA are old, or report a duplicate (RFC 2883 §4.1).
    fn read_blocks<P: EndpointProbe>(
        &self,
        now: Instant,
        segment: &Segment,
        ack: Seq,
        probe: &mut P,
    ) -> Blocks {
        let mut told = Blocks::default();
        let Some(sack) = &segment.sack else { return told };
        for (left, right) in sack.as_slice() {
            let (left, right) = (self.tx.una.near(*left), self.tx.una.near(*right));
            if left >= right || right > self.tx.max {
                probe.rx_error(now, RxError::BadAck);
            } else if right > ack {
                // RFC 2883 §4.2: the first block lies within the second.
                let first = told.blocks[0];
                if told.count == 1 && left <= first.0 && first.1 <= right {
                    told.duplicate = Some(first);
                }
                told.blocks[told.count] = (left, right);
                told.count += 1;
            } else {
                // RFC 2883 §4.1
                told.duplicate = Some((left, right));
            }
        }
        told
    }

    /// RFC 6675 §5 steps 4.1 and 4.2
    fn begin_recovery(&mut self, now: Instant) {
        let flight = self.tx.max.since(self.tx.una).saturating_sub(self.recovery.limited);
        self.cc.on_congestion(now, &Congestion::Loss { flight });
        self.note_reduction();
        self.recovery.enter(self.tx.max);
    }

    /// Limit of the flight: in recovery PRR's, unless the controller sets its window then too; else cwnd.
    #[inline(always)]
    pub(super) fn selective_window(&self, selective: &Selective) -> u64 {
        if self.is_limited_by_cwnd(selective) {
            return self.cc.window();
        }
        self.window_in_recovery(selective)
    }

    /// Only cwnd limits what may be in the network, as usual.
    #[inline(always)]
    pub(super) fn is_limited_by_cwnd(&self, selective: &Selective) -> bool {
        selective.rack.is_none() && self.recovery.doubt.is_none() && !self.recovery.is_fast()
    }

    #[inline(never)]
    fn window_in_recovery(&self, selective: &Selective) -> u64 {
        if selective.rack.as_ref().is_some_and(|rack| rack.probe || rack.timed_out) {
            // RFC 8985 §7.3, RFC 6298 §5.4: the probe, and retransmissions after a timeout, leave
            // regardless of cwnd.
            self.cc.window().max(selective.board.pipe() + self.tx.mss)
        } else if self.recovery.is_fast() && selective.delivery.is_none() {
            selective.board.pipe() + selective.prr.budget()
        } else if let Some(bytes) = self.recovery.doubt.as_ref().and_then(|doubt| doubt.bytes()) {
            // RFC 5682 §3.1 step 2b: two new segments, though not all data before them is marked lost.
            self.cc.window().max(selective.board.pipe() + bytes)
        } else {
            self.cc.window()
        }
    }

    /// RFC 6675 §4, NextSeg.
    #[inline(always)]
    pub(super) fn next_selective(&mut self, now: Instant) -> Option<Draft> {
        if self.rx.ack_now && self.rx.has_blocks() && !self.blocks_fit() {
            return None;
        }
        // RFC 5682 §3.1 step 2b: new data instead.
        let forward = self.recovery.doubt.as_ref().is_some_and(|doubt| doubt.bytes().is_some());
        let selective = self.selective.as_mut()?;
        // Rule 1
        if !forward
            && selective.board.has_pending()
            && let Some((start, end)) = selective.board.next_lost()
        {
            return self.send_again(now, start, end, true);
        }
        let probing = selective.rack.as_ref().is_some_and(|rack| rack.probe);
        // Rule 2
        if let Some(draft) = self.fresh(now) {
            if probing {
                self.note_probe(false);
            }
            return Some(draft);
        }
        if probing {
            // RFC 8985 §7.3: without new data, the last segment is retransmitted.
            let (start, end) = self.selective.as_ref()?.board.last_missing()?;
            let draft = self.send_again(now, start, end, true)?;
            self.note_probe(true);
            return Some(draft);
        }
        if self.recovery.is_fast() { self.next_beyond_new(now) } else { None }
    }

    /// RFC 6675 §4, NextSeg rules 3 and 4, in a recovery.
    #[inline(never)]
    fn next_beyond_new(&mut self, now: Instant) -> Option<Draft> {
        let selective = self.selective.as_mut().filter(|selective| selective.rack.is_none())?;
        // Rule 3
        if let Some((start, end)) = selective.board.next_hole() {
            return self.send_again(now, start, end, true);
        }
        // Rule 4: one segment, which the scoreboard does not count as retransmitted.
        if self.tx.una > selective.rescue
            && let Some((start, end)) = selective.board.last_missing()
        {
            let draft = self.send_again(now, start, end, false)?;
            self.selective.as_mut()?.rescue = self.recovery.recover;
            return Some(draft);
        }
        None
    }

    /// Retransmits a segment if the window permits.
    #[inline(never)]
    fn send_again(&mut self, now: Instant, start: Seq, end: Seq, counted: bool) -> Option<Draft> {
        let mut selective = self.selective.take()?;
        let stop = self.tx.end();
        let len = end.min(stop).since(start).min(self.tx.mss);
        let fits = selective.board.pipe() + len <= self.selective_window(&selective);
        if fits {
            let fin = end > stop && start + len == stop;
            let len_in_numbers = len + u64::from(fin);
            let snapshot = self.snapshot(now, &mut selective, len_in_numbers);
            selective.board.resend(start, len_in_numbers, counted, now, snapshot);
            selective.prr.on_sent(len);
            selective.rack.iter_mut().for_each(|rack| rack.timed_out = false);
            self.selective = Some(selective);
            let draft = self.data(now, start, len, fin);
            self.timers.rto = Some(now + self.rtt.rto());
            return Some(draft);
        }
        self.selective = Some(selective);
        None
    }

    /// A segment was sent for the first time.
    #[inline(always)]
    pub(super) fn note_sent(&mut self, start: Seq, end: Seq, now: Instant) {
        let Some(selective) = &mut self.selective else { return };
        if selective.delivery.is_some() {
            return self.note_sent_and_measured(start, end, now);
        }
        selective.board.push(start, end, now);
        selective.prr.on_sent(end.since(start));
    }

    #[inline(never)]
    fn note_sent_and_measured(&mut self, start: Seq, end: Seq, now: Instant) {
        let Some(mut selective) = self.selective.take() else { return };
        if let Some(snapshot) = self.snapshot(now, &mut selective, end.since(start)) {
            selective.board.push_snapshot(snapshot);
        }
        selective.board.push(start, end, now);
        selective.prr.on_sent(end.since(start));
        self.selective = Some(selective);
    }
}
