//! Proportional rate reduction: how much may leave per acknowledgement in fast recovery, so that
//! the flight is down to ssthresh when recovery ends (RFC 9937 §6).

/// The state of one fast recovery. Amounts are in bytes.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Prr {
    /// RecoverFS: bytes in flight when recovery began.
    flight: u64,
    /// `prr_delivered`.
    delivered: u64,
    /// `prr_out`.
    sent: u64,
    /// `SndCnt`: what may still leave before the next acknowledgement.
    budget: u64,
}

/// An acknowledgement as seen by PRR.
#[derive(Clone, Copy, Debug)]
pub(super) struct Progress {
    /// `DeliveredData`.
    pub(super) delivered: u64,
    /// In flight now (RFC 6675: pipe).
    pub(super) pipe: u64,
    /// The target.
    pub(super) ssthresh: u64,
    /// Sender maximum segment size.
    pub(super) mss: u64,
    /// `safeACK`: SND.UNA advanced without further loss.
    pub(super) safe: bool,
}

impl Prr {
    /// Recovery begins with `flight` bytes outstanding and not selectively acknowledged before; the
    /// newly delivered ones are included.
    pub(super) fn begin(flight: u64) -> Self {
        Self { flight: flight.max(1), ..Self::default() }
    }

    /// An acknowledgement in recovery, including the one that began it.
    pub(super) fn on_ack(&mut self, ack: &Progress) {
        self.delivered += ack.delivered;
        let owed = self.delivered.saturating_sub(self.sent);
        self.budget = if ack.pipe > ack.ssthresh {
            // ⌈prr_delivered · ssthresh / RecoverFS⌉ − prr_out
            let share = u128::from(self.delivered) * u128::from(ack.ssthresh);
            (share.div_ceil(u128::from(self.flight)) as u64).saturating_sub(self.sent)
        } else {
            // PRR-CRB; PRR-SSRB adds a segment while recovery goes well.
            let more = if ack.safe { ack.mss } else { 0 };
            (owed.max(ack.delivered) + more).min(ack.ssthresh - ack.pipe)
        };
        if self.sent == 0 {
            // The fast retransmit leaves in any case.
            self.budget = self.budget.max(ack.mss);
        }
    }

    /// `bytes` left.
    pub(super) fn on_sent(&mut self, bytes: u64) {
        self.sent += bytes;
        self.budget = self.budget.saturating_sub(bytes);
    }

    /// What may leave now.
    pub(super) const fn budget(&self) -> u64 {
        self.budget
    }
}
