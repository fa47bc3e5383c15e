//! The end of a peer: when it has sent everything, what it says, and when it closes.

use talkspurt_proto::endpoint::{Endpoint, Input};
use talkspurt_proto::probe::{Probe, Stamped};
use talkspurt_proto::time::Instant;

use super::Peer;
use super::outgoing::Outgoing;

impl Peer {
    /// Closes when everything is sent: the own source is done, or there is none and the other side has closed.
    /// Anything an answering side sent before the connection opened goes first.
    #[inline(always)]
    pub(super) fn close_if_done<P: Probe>(
        &mut self,
        local: Instant,
        probe: &mut Stamped<'_, P>,
    ) -> bool {
        self.has_said_all(local) && self.connected && !self.closed && self.close(local, probe)
    }

    #[inline(always)]
    pub(super) fn has_said_all(&self, local: Instant) -> bool {
        match &self.outgoing {
            Some(outgoing) => self.opens.is_none() && outgoing.is_done(local),
            None => self.peer_closed,
        }
    }

    /// Closes the transport if nothing keeps it open; true if it closed.
    #[cold]
    fn close<P: Probe>(&mut self, local: Instant, probe: &mut Stamped<'_, P>) -> bool {
        let others = self.guests.as_ref().is_some_and(|guests| !guests.have_closed());
        if !self.part(local, probe) || others || self.ends_the_others(local) {
            return false;
        }
        self.closed = true;
        self.transport.handle(local, Input::Close, probe);
        true
    }

    /// True if closing would cut off the other side, which may have more to send. Its BYE, or that it closes,
    /// tells that it has not, and of data without media the time when it stops. Without RTCP, no side of media
    /// closes.
    fn ends_the_others(&self, local: Instant) -> bool {
        let session = self.session.as_ref();
        let left = session.is_some_and(|session| session.rtcp.peer_left());
        // Feedback about its media is due until it leaves.
        let is_controlled = self.incoming.is_controlled;
        let sends = self.incoming.has_media() || local < self.others_until;
        let both = self.outgoing.is_some() && sends;
        both && !left && !self.peer_closed && (is_controlled || self.transport.closes_both_ways())
    }

    /// True once everything is sent, including BYE.
    pub(super) fn part<P: Probe>(&mut self, local: Instant, probe: &mut Stamped<'_, P>) -> bool {
        if !self.parting {
            self.parting = true;
            self.say_goodbye(local, probe);
        }
        // Congestion control that permits no more packets does not keep the flow open forever.
        if self.report.is_some() && local < self.parts_by {
            return false;
        }
        (self.report, self.parts_by) = (None, Instant::ZERO);
        true
    }

    /// RFC 3550 §6.3.7: sends BYE on leaving the session.
    fn say_goodbye<P: Probe>(&mut self, local: Instant, probe: &mut Stamped<'_, P>) {
        let Some(session) = &mut self.session else { return };
        let sender = self.outgoing.as_ref().and_then(Outgoing::rtp);
        self.parts_by = local + session.rtcp.minimum_interval();
        let compound = session.rtcp.bye(local, sender, self.incoming.rtp());
        self.report_soon(local, compound, probe);
    }

    /// When a peer that has sent everything may close, if it waits for a time.
    #[cold]
    #[inline(never)]
    pub(super) fn leaves_at(&self, local: Instant) -> Option<Instant> {
        [self.parts_by, self.others_until].into_iter().filter(|at| local < *at).min()
    }
}
