//! The end of a connection (RFC 4340 §8.3): closed by either side, aborted, given up, or ended by a
//! received Reset.

use super::departure::{Numbered, Reset};
use super::timers::Timers;
use super::{Dccp, ResetCode, SeqNo, State};
use crate::endpoint::Event;
use crate::time::Instant;

impl Dccp {
    /// The application closes the connection.
    pub(super) fn close(&mut self, now: Instant) {
        match self.state {
            State::Closed if self.used => {}
            State::Closed | State::Listen => self.finish(Event::Closed),
            State::Request => {
                self.abandon_request();
                self.finish(Event::Closed);
            }
            // CloseReq is sent in OPEN only (§8.3), and nothing unasked before that.
            State::Respond => self.close_wanted = true,
            State::PartOpen | State::Open => self.begin_close(now),
            State::CloseReq | State::Closing | State::TimeWait => {}
        }
    }

    /// §8.3: decides which side closes. A server lets the client hold TIMEWAIT unless configured otherwise.
    pub(super) fn begin_close(&mut self, now: Instant) {
        self.close_wanted = false;
        if self.server && !self.config.server_timewait {
            self.state = State::CloseReq;
            self.owed.close_req = true;
        } else {
            self.state = State::Closing;
            self.owed.close = true;
        }
        self.time_close(now);
    }

    /// §8.3: schedules the first repetition after two round trips.
    pub(super) fn time_close(&mut self, now: Instant) {
        let wait = self.two_round_trips();
        self.timers = Timers { give_up: Some(now + self.config.give_up), ..Timers::default() };
        self.timers.repeat_after(now, wait);
    }

    /// The application aborts: Reset 2, Aborted.
    pub(super) fn abort(&mut self) {
        match self.state {
            State::Closed => return,
            State::Request => self.abandon_request(),
            State::PartOpen | State::Open | State::CloseReq | State::Closing => {
                self.reset_in_order(ResetCode::ABORTED, [0; 3], self.windows.gsr);
            }
            // Nothing is sent unasked to an unproven address.
            State::Listen | State::Respond | State::TimeWait => {}
        }
        self.finish(Event::Reset);
    }

    /// The current state timed out.
    pub(super) fn give_up(&mut self) {
        match self.state {
            // §8.1.1
            State::Request => self.abandon_request(),
            // §8.1.3, without its Reset: the address is not proven.
            State::Respond => return self.listen_again(),
            // §8.1.5
            State::PartOpen | State::CloseReq | State::Closing => {
                self.reset_in_order(ResetCode::ABORTED, [0; 3], self.windows.gsr);
            }
            _ => return,
        }
        self.finish(Event::TimedOut);
    }

    /// §8.1.1: a Reset for a server that may have received the Request; its number is unknown, so the
    /// Acknowledgement Number is zero.
    fn abandon_request(&mut self) {
        self.reset_in_order(ResetCode::ABORTED, [0; 3], SeqNo::default());
    }

    /// Schedules a Reset with the next number.
    pub(super) fn reset_in_order(&mut self, code: ResetCode, data: [u8; 3], ack: SeqNo) {
        self.owed.reset = Some(Reset { seq: Numbered::Next, ack: ack.extended(), code, data });
    }

    /// §7.5.5, §8.3.1: the other side is in an older connection and acknowledges packets this one never
    /// sent, for example with a Sync in answer to a Reset outside its window. A Reset numbered after the
    /// acknowledged packet is inside: the peer then drops the old connection and accepts the Request.
    pub(super) fn reset_stranger(&mut self, data: [u8; 3], acked: SeqNo, seq: SeqNo) {
        self.owed.reset = Some(Reset {
            seq: Numbered::Given((acked + 1).extended()),
            ack: seq.extended(),
            code: ResetCode::PACKET_ERROR,
            data,
        });
    }

    /// A fatal error: sends a Reset and closes.
    pub(super) fn fail(&mut self, code: ResetCode, data: [u8; 3], seq: SeqNo) {
        if self.state == State::Respond {
            // As if there had been no connection: other clients find the listener in its initial state.
            let sent = self.windows.gss >= self.windows.iss;
            let number = if sent { self.windows.gss + 1 } else { SeqNo::default() };
            self.listen_again();
            self.owed.reset = Some(Reset {
                seq: Numbered::Given(number.extended()),
                ack: seq.extended(),
                code,
                data,
            });
            return;
        }
        self.reset_in_order(code, data, seq);
        self.finish(Event::Reset);
    }

    /// §8.5 step 9: a valid Reset arrived.
    pub(super) fn on_reset(&mut self, now: Instant, code: ResetCode) {
        if self.state == State::Respond {
            return self.listen_again();
        }
        // After a lost Reset, the peer can only answer a repeated Close with "no connection".
        let forgotten = self.state == State::Closing && code == ResetCode::NO_CONNECTION;
        let in_order = code == ResetCode::CLOSED || forgotten;
        if in_order && self.state < State::CloseReq {
            self.news.add(Event::PeerClosed);
        }
        self.finish(if in_order { Event::Closed } else { Event::Reset });
        self.state = State::TimeWait;
        // §8.3: 2 MSL
        self.timers.time_wait = Some(now + self.config.msl * 2);
    }

    /// §8.5 step 14: a valid Close arrived.
    pub(super) fn on_close(&mut self, seq: SeqNo) {
        if self.state < State::CloseReq {
            self.news.add(Event::PeerClosed);
        }
        self.reset_in_order(ResetCode::CLOSED, [0; 3], seq);
        self.finish(Event::Closed);
    }

    /// Ends the connection: only a pending Reset is still sent, and no timer runs.
    pub(super) fn finish(&mut self, event: Event) {
        (self.state, self.used) = (State::Closed, true);
        self.timers = Timers::default();
        self.owed.forget_but_reset();
        (self.sender, self.receiver) = (None, None);
        (self.permitted, self.permit_at, self.frame) = (false, None, None);
        self.cookies.forget();
        self.news.add(event);
    }
}
