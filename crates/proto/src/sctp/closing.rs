//! Association shutdown (RFC 9260 §9): in order by SHUTDOWN, SHUTDOWN ACK and SHUTDOWN COMPLETE, or
//! at once by ABORT; and answers without an association (§8.4).

use super::packet::{Chunk, Packet};
use super::{Cause, Sctp, State, Timers};
use crate::endpoint::Event;
use crate::packet::PathId;
use crate::time::Instant;

impl Sctp {
    /// §9.2
    pub(super) fn close(&mut self, now: Instant) {
        match self.state {
            State::Closed => {}
            State::Listen => self.end(Event::Closed),
            State::CookieWait | State::CookieEchoed => self.close_wanted = true,
            State::Established => {
                self.state = State::ShutdownPending;
                self.go_on_closing(now);
            }
            _ => {}
        }
    }

    /// Once all is acknowledged, the next step of the shutdown.
    #[inline]
    pub(super) fn go_on_closing(&mut self, now: Instant) {
        // Checked for every packet and message.
        if self.state != State::Established && self.tx.is_done() {
            self.close_further(now);
        }
    }

    fn close_further(&mut self, now: Instant) {
        match self.state {
            State::ShutdownPending => {
                self.state = State::ShutdownSent;
                self.timers = Timers::default();
                // §9.2: five times RTO.Max
                self.timers.guard = Some(now + self.config.rto_max * 5);
                self.send_shutdown(now);
            }
            State::ShutdownReceived => {
                self.state = State::ShutdownAckSent;
                self.timers = Timers::default();
                self.timers.guard = Some(now + self.config.rto_max * 5);
                self.send_shutdown_ack(now);
            }
            _ => {}
        }
    }

    pub(super) fn send_shutdown(&mut self, now: Instant) {
        let cumulative = self.rx.cumulative().wire();
        self.send_closing(now, Chunk::Shutdown { cumulative });
    }
    pub(super) fn send_shutdown_ack(&mut self, now: Instant) {
        self.send_closing(now, Chunk::ShutdownAck);
    }

    /// Starts T2-shutdown too. After a timeout it uses another path (§6.4.1): no other traffic may
    /// show that the path failed.
    fn send_closing(&mut self, now: Instant, chunk: Chunk) {
        let path = match self.timers.repeats {
            0 => super::data_path(&self.paths),
            _ => super::other_path(&self.paths, self.timers.path),
        };
        self.timers.path = path;
        self.control.push_back((path, chunk));
        self.timers.repeat = Some(now + self.paths[path].rtt.rto());
    }

    /// A packet of the peer clears the SHUTDOWN retransmissions and restarts T2-shutdown (§9.2).
    pub(super) fn restart_shutdown_timer(&mut self, now: Instant) {
        self.timers.repeats = 0;
        self.timers.repeat = Some(now + self.paths[self.timers.path].rtt.rto());
    }

    pub(super) fn on_shutdown(&mut self, now: Instant, cumulative: u32) {
        match self.state {
            State::Established | State::ShutdownPending => {
                self.state = State::ShutdownReceived;
                self.news.add(Event::PeerClosed);
            }
            State::ShutdownSent => {
                // §9.2: simultaneous close.
                self.state = State::ShutdownAckSent;
                self.news.add(Event::PeerClosed);
                self.send_shutdown_ack(now);
                return;
            }
            State::ShutdownReceived => {}
            State::ShutdownAckSent => {
                // The peer missed it; T2 keeps running.
                self.control.push_back((super::data_path(&self.paths), Chunk::ShutdownAck));
                return;
            }
            _ => return,
        }
        self.hear_cumulative(now, cumulative);
    }

    pub(super) fn on_shutdown_ack(&mut self, path: PathId) {
        if matches!(self.state, State::ShutdownSent | State::ShutdownAckSent) {
            let complete = Chunk::ShutdownComplete { reflected: false };
            self.send_packet(path, Packet::of(self.peer_tag, complete));
            self.end(Event::Closed);
        }
    }

    pub(super) fn on_shutdown_complete(&mut self) {
        if self.state == State::ShutdownAckSent {
            self.end(Event::Closed);
        }
    }

    /// Aborts for the application, or for an error of the peer (§9.1).
    pub(super) fn abort(&mut self, cause: Cause) {
        if self.state > State::CookieWait {
            let path = PathId(super::data_path(&self.paths) as u8);
            self.answer_abort(path, self.peer_tag, false, vec![cause]);
        }
        if self.state > State::Listen {
            self.end(Event::Reset);
        }
        self.state = State::Closed;
    }

    /// The peer does not answer (§8.1).
    pub(super) fn give_up(&mut self) {
        if self.state > State::CookieEchoed {
            let path = PathId(super::data_path(&self.paths) as u8);
            self.answer_abort(path, self.peer_tag, false, Vec::new());
        }
        self.end(Event::TimedOut);
    }

    pub(super) fn answer_abort(
        &mut self,
        path: PathId,
        tag: u32,
        reflected: bool,
        causes: Vec<Cause>,
    ) {
        self.send_packet(path, Packet::of(tag, Chunk::Abort { reflected, causes }));
    }

    /// Ends the association; complete messages are still delivered.
    pub(super) fn end(&mut self, event: Event) {
        self.state = State::Closed;
        self.in_order = event == Event::Closed;
        self.timers = Timers::default();
        self.control.clear();
        self.close_wanted = true;
        (self.rx.due, self.rx.delayed) = (false, None);
        for path in &mut self.paths {
            (path.t3, path.heartbeat_at, path.asked, path.forced) = (None, None, None, false);
        }
        self.news.add(event);
    }

    /// §8.4: a packet out of the blue gets one answer or none.
    pub(super) fn on_stray(&mut self, path: PathId, packet: &Packet) {
        let any = |is: fn(&Chunk) -> bool| packet.chunks.iter().any(is);
        // Rule 2
        if any(|chunk| matches!(chunk, Chunk::Abort { .. })) {
            return;
        }
        // Rule 3: an INIT without a listener; the answer carries its tag.
        if let Some(Chunk::Init(init)) = packet.chunks.first() {
            return self.answer_abort(path, init.tag, false, Vec::new());
        }
        // Rule 5
        if any(|chunk| matches!(chunk, Chunk::ShutdownAck)) {
            let complete = Chunk::ShutdownComplete { reflected: true };
            return self.send_packet(path, Packet::of(packet.tag, complete));
        }
        // Rules 6 and 7; an ERROR is not answered here, to prevent an endless exchange.
        let silent = |chunk: &Chunk| {
            matches!(chunk, Chunk::ShutdownComplete { .. } | Chunk::CookieAck | Chunk::Error(_))
        };
        if any(silent) {
            return;
        }
        // A late packet of this association gets no ABORT: the peer may not have received SHUTDOWN
        // COMPLETE yet, and its shutdown would fail.
        if self.in_order && packet.tag == self.my_tag {
            return;
        }
        // Rule 8
        self.answer_abort(path, packet.tag, true, Vec::new());
    }
}
