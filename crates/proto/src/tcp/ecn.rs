//! Explicit congestion notification (RFC 3168 §6.1): data is sent ECN-capable, received marks are echoed until
//! the sender signals a reduction, and an echo is answered like a loss, once per window of data. If the
//! controller counts marks, each is echoed once (RFC 8257 §3.2). Accurate ECN (RFC 9768) is not implemented.

use super::{Flags, Segment, State, Tcp};
use crate::congestion::{Congestion, CongestionControl};
use crate::packet::Ecn;
use crate::seq::Seq;
use crate::time::Instant;

/// ECN state of both directions of a connection.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Echoes {
    /// Acknowledgements carry ECE: a mark was received and no CWR since, or DCTCP.CE of RFC 8257 §3.2.
    pub(super) owed: bool,
    /// The next new data carries CWR.
    reduced: bool,
    /// Data before this was sent into congestion already answered.
    answered: Seq,
    /// The current acknowledgement echoes a mark.
    pub(super) heard: bool,
}

impl Tcp {
    /// Whether a SYN, or with `answering` its answer, negotiates ECN (RFC 3168 §6.1.1).
    pub(super) fn agrees_to_ecn(&self, syn: &Segment) -> bool {
        let wanted =
            if syn.flags.contains(Flags::ACK) { Flags::ECE } else { Flags::ECE | Flags::CWR };
        let asked = Flags(syn.flags.0 & (Flags::ECE | Flags::CWR).0);
        self.config.uses_ecn() && asked == wanted
    }

    /// The bits by which our SYN requests or accepts ECN.
    pub(super) fn ecn_on_syn(&self) -> Flags {
        match self.state {
            State::SynReceived if self.negotiated.ecn => Flags::ECE,
            State::SynSent if self.config.uses_ecn() => Flags::ECE | Flags::CWR,
            _ => Flags::default(),
        }
    }

    /// RFC 3168 §6.1.3: an acceptable segment arrived. CWR ends the echo, a mark on data starts it.
    pub(super) fn on_mark(&mut self, segment: &Segment, ecn: Ecn) {
        if segment.flags.contains(Flags::CWR) {
            self.echoes.owed = false;
        }
        if segment.payload.is_empty() {
            return;
        }
        if ecn == Ecn::Ce {
            // RFC 8257 §3.2: a change is acknowledged at once.
            self.rx.ack_now |= !self.echoes.owed && self.cc.uses_marks();
            self.echoes.owed = true;
        } else if self.echoes.owed && self.cc.uses_marks() {
            (self.echoes.owed, self.rx.ack_now) = (false, true);
        }
    }

    /// RFC 3168 §6.1.2: an acknowledgement up to `ack` arrived, with or without ECE. The window is
    /// reduced as for a loss, at most once per window of data.
    pub(super) fn on_echo(&mut self, now: Instant, segment: &Segment, ack: Seq) {
        self.echoes.heard = segment.flags.contains(Flags::ECE);
        if ack > self.tx.una {
            // RFC 8257 §3.3: all that an acknowledgement with ECE covers was marked.
            let acked = ack.since(self.tx.una);
            let marked = if self.echoes.heard { acked } else { 0 };
            self.cc.on_marks(now, marked, acked, self.tx.flight());
        }
        let fresh = ack > self.echoes.answered && ack >= self.recovery.recover;
        if self.echoes.heard && fresh && !self.recovery.is_fast() && self.tx.flight() > 0 {
            let flight = self.pipe();
            self.cc.on_congestion(now, &Congestion::Mark { flight });
            self.note_reduction();
        }
    }

    /// The window was reduced for any reason: CWR tells the peer.
    pub(super) fn note_reduction(&mut self) {
        self.echoes.reduced = self.negotiated.ecn;
        self.echoes.answered = self.tx.max;
    }

    /// New data leaves: whether it is ECN-capable, and its bits.
    #[inline(never)]
    pub(super) fn ecn_on_new_data(&mut self) -> (Ecn, Flags) {
        let told = std::mem::take(&mut self.echoes.reduced);
        let codepoint = self.config.controller.abilities().ecn.unwrap_or(Ecn::Ect0);
        (codepoint, if told { Flags::CWR } else { Flags::default() })
    }
}
