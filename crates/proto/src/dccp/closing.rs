//! The end of a connection (RFC 4340 §8.3): closed from either side, aborted, given up, or told by a
//! Reset that it is over.

use super::departure::{Numbered, Reset};
use super::timers::Timers;
use super::{Dccp, ResetCode, SeqNo, State};
use crate::endpoint::Event;
use crate::time::Instant;

impl Dccp {
    /// The application closes.
    pub(super) fn close(&mut self, now: Instant) {
        match self.state {
            State::Closed if self.used => {}
            State::Closed | State::Listen => self.finish(Event::Closed),
            State::Request => {
                self.abandon_request();
                self.finish(Event::Closed);
            }
            // CloseReq is sent in OPEN only (§8.3), and nothing unasked before.
            State::Respond => self.close_wanted = true,
            State::PartOpen | State::Open => self.begin_close(now),
            State::CloseReq | State::Closing | State::TimeWait => {}
        }
    }

    /// §8.3: who closes first. A server lets the client hold TIMEWAIT, unless told otherwise.
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

    /// §8.3: the first repetition after two round trips.
    pub(super) fn time_close(&mut self, now: Instant) {
        let wait = self.two_round_trips();
        self.timers = Timers { give_up: Some(now + self.config.give_up), ..Timers::default() };
        self.timers.repeat_after(now, wait);
    }

    /// The application gives up: Reset 2, Aborted.
    pub(super) fn abort(&mut self) {
        match self.state {
            State::Closed => return,
            State::Request => self.abandon_request(),
            State::PartOpen | State::Open | State::CloseReq | State::Closing => {
                self.reset_in_order(ResetCode::ABORTED, [0; 3], self.windows.gsr);
            }
            // Without a proven address nothing is sent unasked.
            State::Listen | State::Respond | State::TimeWait => {}
        }
        self.finish(Event::Reset);
    }

    /// What the present state has waited for did not come.
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

    /// §8.1.1: a Reset for a server that may have heard; its number is not known, so the
    /// Acknowledgement Number is zero.
    fn abandon_request(&mut self) {
        self.reset_in_order(ResetCode::ABORTED, [0; 3], SeqNo::default());
    }

    /// Owes a Reset with the next number.
    pub(super) fn reset_in_order(&mut self, code: ResetCode, data: [u8; 3], ack: SeqNo) {
        self.owed.reset = Some(Reset { seq: Numbered::Next, ack: ack.extended(), code, data });
    }

    /// §7.5.5, §8.3.1: the other side speaks of an older connection and acknowledges what this one
    /// never sent, as a Sync does that answers a Reset out of its window. A Reset numbered behind
    /// that is in its window: it then forgets the old connection and hears the Request.
    pub(super) fn reset_stranger(&mut self, data: [u8; 3], acked: SeqNo, seq: SeqNo) {
        self.owed.reset = Some(Reset {
            seq: Numbered::Given((acked + 1).extended()),
            ack: seq.extended(),
            code: ResetCode::PACKET_ERROR,
            data,
        });
    }

    /// Something is wrong beyond repair: Reset, and over.
    pub(super) fn fail(&mut self, code: ResetCode, data: [u8; 3], seq: SeqNo) {
        if self.state == State::Respond {
            // As if it had never been: other clients find the listener as it was.
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

    /// §8.5 step 9: a valid Reset came.
    pub(super) fn on_reset(&mut self, now: Instant, code: ResetCode) {
        if self.state == State::Respond {
            return self.listen_again();
        }
        // To a repeated Close a peer whose Reset was lost can only say that it knows nothing any more.
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

    /// §8.5 step 14: a valid Close came.
    pub(super) fn on_close(&mut self, seq: SeqNo) {
        if self.state < State::CloseReq {
            self.news.add(Event::PeerClosed);
        }
        self.reset_in_order(ResetCode::CLOSED, [0; 3], seq);
        self.finish(Event::Closed);
    }

    /// Ends the connection: nothing is sent or timed any more, but a Reset owed.
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
