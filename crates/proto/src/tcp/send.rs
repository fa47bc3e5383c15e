//! The send side: what may leave now, and the segments sent (RFC 9293 §3.7.4, §3.8.6; RFC 5681 §3.2
//! and §4.1; RFC 3042).

use super::outgoing::Outgoing;
use super::{Flags, SackBlocks, Segment, State, Tcp};
use crate::congestion::CongestionControl;
use crate::endpoint::{Event, Output, Transmit};
use crate::packet::{Ecn, PathId, Payload};
use crate::seq::Seq;
use crate::time::{Duration, Instant};

/// The application is notified of capacity each time this many segments were acknowledged.
const WRITABLE_SEGMENTS: u64 = 16;

/// Bounds of the override timeout of silly-window avoidance (RFC 9293 §3.8.6.2.1).
const OVERRIDE_LEAST: Duration = Duration::from_millis(100);
const OVERRIDE_MOST: Duration = Duration::from_secs(1);

/// A segment about to leave: the fields that vary.
#[derive(Clone, Copy, Debug)]
pub(super) struct Draft {
    seq: Seq,
    len: u64,
    flags: Flags,
    ecn: Ecn,
}

impl Draft {
    /// True if it carries neither data nor a SYN or FIN.
    #[inline]
    pub(super) fn is_bare_ack(&self) -> bool {
        self.len == 0 && self.flags == Flags::ACK
    }
}

/// The SND variables of RFC 9293 §3.3.1 and the send buffer.
#[derive(Debug, Default)]
pub(super) struct Sender {
    /// ISS.
    pub(super) iss: Seq,
    /// SND.UNA.
    pub(super) una: Seq,
    /// Next to send; behind `max` while lost data is sent again.
    pub(super) nxt: Seq,
    /// After the highest number ever sent.
    pub(super) max: Seq,
    /// Close was called: a FIN follows the data.
    pub(super) fin: bool,
    pub(super) stream: Outgoing,
    buffer: u64,
    /// Limit of unsent bytes at which no more data is accepted.
    lowat: u64,
    /// SND.WND, in bytes.
    pub(super) window: u64,
    /// Max(SND.WND).
    pub(super) largest_window: u64,
    /// SND.WL1, in the peer's numbers.
    pub(super) wl1: Seq,
    /// SND.WL2.
    pub(super) wl2: Seq,
    /// Snd.Wind.Shift (RFC 7323 §2.2).
    pub(super) shift: u8,
    /// SMSS: payload of a full segment (RFC 5681 §2), without options.
    pub(super) mss: u64,
    /// The MSS after Packet Too Big, including options.
    pub(super) path_mss: u64,
    /// When a segment with data was last sent.
    last_sent: Instant,
    /// Acknowledged bytes of stream at which the application is notified of capacity.
    writable_at: u64,
}

impl Sender {
    pub(super) fn new(buffer: u64, lowat: u64, mss: u64) -> Self {
        Self {
            buffer: buffer.max(1),
            lowat: lowat.max(1),
            mss,
            path_mss: u64::MAX,
            writable_at: u64::MAX,
            ..Self::default()
        }
    }

    /// Numbering starts at `iss`; nothing is sent.
    pub(super) fn begin(&mut self, iss: u32) {
        self.iss = Seq::first(iss);
        (self.una, self.nxt, self.max) = (self.iss, self.iss, self.iss);
    }

    /// After the last byte handed over; the FIN's number.
    #[inline]
    pub(super) fn end(&self) -> Seq {
        self.iss + 1 + self.stream.written()
    }
    /// Stream offset of a sequence number.
    #[inline]
    fn offset(&self, seq: Seq) -> u64 {
        seq.since(self.iss + 1)
    }
    /// Numbers sent and neither acknowledged nor given up as lost.
    #[inline]
    pub(super) fn flight(&self) -> u64 {
        self.nxt.since(self.una)
    }
    /// RFC 9293: the peer has acknowledged our FIN.
    pub(super) fn fin_acknowledged(&self) -> bool {
        self.fin && self.una > self.end()
    }
    #[inline]
    pub(super) fn room(&self) -> u64 {
        let unsent = self.stream.written() - self.offset(self.max).min(self.stream.written());
        // As in Linux, a write below the limit may fill the whole buffer.
        if unsent < self.lowat { self.buffer.saturating_sub(self.stream.kept()) } else { 0 }
    }

    #[inline]
    pub(super) fn push(&mut self, payload: &mut Payload) {
        self.stream.push(payload);
        self.expect_room();
    }
    /// Sets the threshold for the next [`Event::Writable`]: some segments on, or when all is gone.
    #[inline]
    fn expect_room(&mut self) {
        let step = (WRITABLE_SEGMENTS * self.mss).min(self.buffer / 2);
        self.writable_at = (self.stream.released() + step).min(self.stream.written());
    }

    /// Everything was sent and acknowledged.
    #[inline]
    pub(super) fn is_drained(&self) -> bool {
        self.una == self.max && self.nxt == self.end() + u64::from(self.fin)
    }

    /// Advances SND.UNA to `ack`; true if the application should be notified of capacity.
    #[inline]
    pub(super) fn acknowledge(&mut self, ack: Seq) -> bool {
        self.una = ack;
        self.nxt = self.nxt.max(ack);
        let offset = self.offset(ack);
        self.stream.release(offset);
        let writable = self.stream.released() >= self.writable_at;
        if writable {
            self.expect_room();
            if self.stream.kept() == 0 {
                self.writable_at = u64::MAX;
            }
        }
        writable
    }
}

impl Tcp {
    /// The next data or acknowledgement to leave, if any.
    #[inline(always)]
    pub(super) fn next_segment(&mut self, now: Instant) -> Option<Draft> {
        let draft = match self.state {
            State::Established
            | State::CloseWait
            | State::FinWait1
            | State::Closing
            | State::LastAck => {
                if self.tx.is_drained() {
                    self.timers.persist = None;
                    None
                } else if self.pacing.is_some() && self.waits_for_its_turn(now) {
                    None
                } else if self.selective.is_some() {
                    self.next_selective(now)
                } else if self.recovery.resend {
                    self.resend(now)
                } else {
                    self.fresh(now)
                }
            }
            _ => None,
        };
        if draft.is_some() {
            return draft;
        }
        if self.pacing.is_some() {
            self.note_usage();
        }
        if !self.rx.ack_now {
            return None;
        }
        // A window probe may lie beyond a closed window, where no segment would be accepted.
        let seq = if self.tx.window == 0 { self.tx.nxt } else { self.tx.max };
        Some(Draft { seq, len: 0, flags: Flags::ACK, ecn: Ecn::NotEct })
    }

    /// The only place where a draft becomes a segment, so that it is written once and not moved.
    #[inline(always)]
    pub(super) fn transmit(&mut self, now: Instant, draft: Draft) -> Output<Segment> {
        let (ack, window) = self.rx.acknowledge(self.rx.shift);
        self.timers.ack = None;
        let extended = self.extended && (self.echoes.owed || self.rx.has_blocks());
        let (sack, echo) = if extended { self.extras(draft.len) } else { Default::default() };
        let timestamps = self.negotiated.timestamps.then(|| self.stamp(now));
        Output::Transmit(Transmit {
            path: PathId(0),
            ecn: draft.ecn,
            packet: Segment {
                seq: draft.seq.wire(),
                ack,
                window,
                flags: draft.flags | echo,
                mss: None,
                window_scale: None,
                sack_permitted: false,
                sack,
                timestamps,
                payload: self.tx.stream.slice(self.tx.offset(draft.seq), draft.len),
            },
        })
    }

    #[inline(never)]
    fn stamp(&self, now: Instant) -> (u32, u32) {
        (self.clock(now), self.rx.echo())
    }

    /// ECN-echo, and the SACK option of a segment with `len` bytes of data, within the MTU and 40
    /// bytes of options (RFC 6691 §2).
    #[cold]
    fn extras(&mut self, len: u64) -> (Option<Box<SackBlocks>>, Flags) {
        let echo = if self.echoes.owed { Flags::ECE } else { Flags::default() };
        if !self.rx.has_blocks() {
            return (None, echo);
        }
        let free = if self.negotiated.timestamps { 28 } else { 40 };
        (self.rx.blocks(self.tx.mss.saturating_sub(len).min(free) as usize), echo)
    }

    /// True if the next segment has room for a block or two; if not, a separate acknowledgement is sent first.
    pub(super) fn blocks_fit(&self) -> bool {
        let next = self.tx.end().since(self.tx.nxt);
        next + SackBlocks::option_bytes(2) as u64 <= self.tx.mss
    }

    /// Retransmits the first unacknowledged segment (RFC 5681 §3.2 step 3, RFC 6582 §3.2).
    fn resend(&mut self, now: Instant) -> Option<Draft> {
        self.recovery.resend = false;
        let end = self.tx.end();
        let len = self.tx.max.min(end).since(self.tx.una).min(self.tx.mss);
        let fin = self.tx.max > end && self.tx.una + len == end;
        if len == 0 && !fin {
            return None;
        }
        Some(self.data(now, self.tx.una, len, fin))
    }

    /// Data not sent yet, or to be sent again after a timeout.
    #[inline(always)]
    pub(super) fn fresh(&mut self, now: Instant) -> Option<Draft> {
        let tx = &self.tx;
        let unsent = tx.end().since(tx.nxt);
        let fin = tx.fin && tx.nxt <= tx.end();
        if unsent == 0 && !fin {
            self.timers.persist = None;
            return None;
        }
        if tx.una == tx.max && now.saturating_since(tx.last_sent) > self.rtt.rto() {
            // RFC 5681 §4.1
            self.cc.on_idle(now);
            self.told.idle = true;
        }
        let probing = std::mem::take(&mut self.recovery.probe);
        let (len, fin) = self.grant(now, unsent, fin, probing)?;
        let seq = self.tx.nxt;
        let beyond = (self.tx.una + self.tx.window).since(seq) == 0;
        let draft = self.data(now, seq, len, fin);
        if beyond {
            // RFC 9293 §3.8.6.1: a probe of a closed window uses its own timer.
            (self.timers.rto, self.recovery.timed) = (None, None);
            self.arm_persist(now);
        } else {
            self.tx.nxt = seq + len + u64::from(fin);
            self.timers.persist = None;
            if self.selective.is_some() {
                self.note_sent(seq, self.tx.nxt, now);
                self.schedule_probe(now);
            }
        }
        Some(draft)
    }

    /// How many bytes may leave now, and whether the FIN is included.
    #[inline(always)]
    fn grant(
        &mut self,
        now: Instant,
        unsent: u64,
        fin: bool,
        probing: bool,
    ) -> Option<(u64, bool)> {
        let tx = &self.tx;
        let flight = tx.flight();
        let full = unsent.min(tx.mss);
        let (in_network, window) = self.usable_window(flight);
        if full > 0 && in_network + full > window {
            return None;
        }
        // RFC 9293 §3.7.4 (Nagle); after Close the last segment cannot grow.
        if self.config.nagle && full < tx.mss && flight > 0 && !fin {
            return None;
        }
        let room = (tx.una + tx.window).since(tx.nxt);
        if full < room || (full == room && full > 0) {
            return Some((full, fin && full == unsent && full < room));
        }
        if probing {
            // RFC 9293 §3.8.6.1: one byte of new data; §3.8.6.2.1 (4): the override sends what fits.
            let len = room.max(1).min(full);
            return Some((len, fin && len == unsent));
        }
        // RFC 9293 §3.8.6.2.1 (3), Fs = 1/2
        let worth = room > 0 && room >= tx.largest_window / 2;
        if worth && !(self.config.nagle && flight > 0) {
            return Some((room, false));
        }
        if flight == 0 {
            self.wait_for_window(now, room > 0);
        }
        None
    }

    /// No data in flight will elicit a window update: a timer must. `open` if the window is open,
    /// but too small for a segment.
    fn wait_for_window(&mut self, now: Instant, open: bool) {
        let running = self.timers.persist;
        if running.is_none() {
            self.timers.persist_wait = self.rtt.rto();
        }
        if open {
            // RFC 9293 §3.8.6.2.1: the override timeout, 0.1 to 1 s, even if the window opened
            // while a longer wait for a closed one was running.
            let latest = now + self.rtt.rto().clamp(OVERRIDE_LEAST, OVERRIDE_MOST);
            self.timers.persist = Some(running.map_or(latest, |at| at.min(latest)));
        } else if running.is_none() {
            self.arm_persist(now);
        }
    }

    /// Bytes estimated to be in the network.
    #[inline]
    pub(super) fn pipe(&self) -> u64 {
        self.selective.as_ref().map_or(self.tx.flight(), |selective| selective.board.pipe())
    }

    /// cwnd in the current phase of recovery.
    #[inline]
    pub(super) fn present_window(&self) -> u64 {
        match &self.selective {
            None => self.recovery.inflated(self.cc.window(), self.tx.mss),
            Some(selective) => self.selective_window(selective),
        }
    }

    /// Bytes in the network, and cwnd with the allowance for duplicate acknowledgements. With
    /// selective acknowledgements they have already reduced the flight.
    #[inline(always)]
    fn usable_window(&self, flight: u64) -> (u64, u64) {
        match &self.selective {
            None => {
                if let Some(bytes) = self.recovery.doubt.as_ref().and_then(|doubt| doubt.bytes()) {
                    return (flight, flight + bytes);
                }
                let window = self.recovery.inflated(self.cc.window(), self.tx.mss);
                (flight, window + self.recovery.limited_transmit(self.tx.una, self.tx.mss))
            }
            Some(selective) => (selective.board.pipe(), self.selective_window(selective)),
        }
    }

    /// A segment of `len` bytes from `seq`, counted and timed.
    #[inline(always)]
    pub(super) fn data(&mut self, now: Instant, seq: Seq, len: u64, fin: bool) -> Draft {
        let end = seq + len;
        let mut flags = Flags::ACK;
        if len > 0 && end == self.tx.end() {
            // RFC 9293 §3.9.1.2: the sender has no more data queued.
            flags = flags | Flags::PSH;
        }
        if fin {
            flags = flags | Flags::FIN;
            if let Some(selective) = &mut self.selective {
                selective.board.fin = Some(end);
            }
        }
        let after = end + u64::from(fin);
        let mut ecn = Ecn::NotEct;
        // RFC 3168 §6.1.5 and §6.1.6: retransmissions and probes of a closed window are not ECN-capable,
        // and probes carry no CWR.
        let within = seq < self.tx.una + self.tx.window;
        if self.negotiated.ecn && len > 0 && seq >= self.tx.max && within {
            let (capable, bits) = self.ecn_on_new_data();
            (ecn, flags) = (capable, flags | bits);
        }
        if seq < self.tx.max {
            if self.selective.is_none() {
                self.recovery.on_old_data(after, now);
            }
        } else {
            let allowed = self.cc.window();
            self.recovery.on_new_data(self.tx.una, after, allowed, now);
            if let Some(doubt) = &mut self.recovery.doubt {
                doubt.on_new_data(len);
            }
            if self.tx.lowat < u64::MAX && !self.tx.fin {
                // Sending frees capacity too, not only acknowledgements.
                self.news.add(Event::Writable);
            }
        }
        self.tx.max = self.tx.max.max(after);
        self.tx.last_sent = now;
        if self.pacing.is_some() {
            self.take_its_turn(now, len);
        }
        // RFC 6298 §5.1
        if self.timers.rto.is_none() {
            self.timers.rto = Some(now + self.rtt.rto());
        }
        Draft { seq, len, flags, ecn }
    }

    /// Notifies the application of capacity, unless it has closed.
    #[inline]
    pub(super) fn acknowledge_up_to(&mut self, ack: Seq) {
        if self.tx.acknowledge(ack) && !self.tx.fin {
            self.news.add(Event::Writable);
        }
    }
}
