//! Congestion control of the other side's acknowledgements (RFC 4341 §6.1): which of them were lost
//! or marked, and the Ack Ratio that follows.

use std::collections::VecDeque;

use crate::dccp::ccid::Arrival;
use crate::dccp::seqno::SeqNo;
use crate::packet::Ecn;
use crate::time::{Duration, Instant};

/// Later arrivals after which a missing packet is lost, as for data (RFC 4341 §6.1.1).
const NUMDUPACK: u8 = 3;
/// Maximum number of missing packets tracked.
const MAX_MISSING: u64 = 64;

#[derive(Debug)]
pub(super) struct AckRatio {
    ratio: u16,
    controlled: bool,
    /// The newest packet sent when the current window of data began.
    end: Option<SeqNo>,
    /// An acknowledgement was lost or marked in the current window.
    hurt: bool,
    /// Consecutive windows without a lost or marked one.
    clean_windows: u64,
    /// The other side's newest packet.
    newest: Option<SeqNo>,
    missing: VecDeque<Missing>,
    /// When the other side last sent data.
    data: Option<Instant>,
}

#[derive(Debug)]
struct Missing {
    seq: SeqNo,
    later: u8,
    /// It carried no data.
    pure: bool,
}

impl AckRatio {
    /// Bytes held.
    pub(super) fn footprint(&self) -> usize {
        self.missing.capacity() * size_of::<Missing>()
    }

    pub(super) fn new(ratio: u16, controlled: bool) -> Self {
        Self {
            ratio,
            controlled,
            end: None,
            hurt: false,
            clean_windows: 0,
            newest: None,
            missing: VecDeque::new(),
            data: None,
        }
    }

    pub(super) const fn ratio(&self) -> u16 {
        self.ratio
    }

    /// §6.1.1: a packet of the other side arrived. Missing packets before it are acknowledgements if the
    /// other side has sent no data for `quiet`, or as far as NDP Count says so.
    pub(super) fn on_arrival(&mut self, now: Instant, packet: &Arrival<'_>, quiet: Duration) {
        if packet.data_bytes.is_some() {
            self.data = Some(now);
        } else if packet.ecn == Ecn::Ce {
            self.hurt = true;
        }
        let sends_data = self.data.is_some_and(|last| now.saturating_since(last) < quiet);
        let newest = *self.newest.get_or_insert(packet.seq);
        let gap = packet.seq.since(newest).saturating_sub(1);
        for behind in (1..=gap.min(MAX_MISSING)).rev() {
            let pure = !sends_data || packet.ndp.is_some_and(|ndp| behind <= ndp);
            self.missing.push_back(Missing { seq: packet.seq.back(behind), later: 0, pure });
        }
        self.newest = Some(newest.max(packet.seq));
        let mut hurt = false;
        self.missing.retain_mut(|missing| {
            missing.later += u8::from(missing.seq < packet.seq);
            let lost = missing.later >= NUMDUPACK;
            hurt |= lost && missing.pure;
            !lost && missing.seq != packet.seq
        });
        self.hurt |= hurt;
        while self.missing.len() as u64 > MAX_MISSING {
            self.missing.pop_front();
        }
    }

    /// A data packet was acknowledged, while `sent` was the newest sent and the window `cwnd`.
    pub(super) fn on_acked(&mut self, acked: SeqNo, sent: SeqNo, cwnd: u64) {
        // A packet sent after the window began is acknowledged: the window is over.
        let end = *self.end.get_or_insert(sent);
        if acked > end {
            self.end = Some(sent);
            self.turn(cwnd);
        }
        self.bound(cwnd);
    }

    /// §6.1.2: a congestion window of data is over.
    fn turn(&mut self, cwnd: u64) {
        let hurt = std::mem::take(&mut self.hurt);
        if !self.controlled {
            return;
        }
        let ratio = u64::from(self.ratio);
        if hurt {
            self.ratio = self.ratio.saturating_mul(2);
            self.clean_windows = 0;
        } else if ratio > 2 {
            self.clean_windows += 1;
            // Decreased by one after cwnd/(R² − R) consecutive windows.
            if self.clean_windows * (ratio * ratio - ratio) >= cwnd {
                self.ratio -= 1;
                self.clean_windows = 0;
            }
        }
        // "MAY set Ack Ratio to one for half-connections with persistent congestion windows of 1 or
        // 2 packets": with two, the last packet of such a window waits for the receiver's timer.
        if cwnd <= 2 {
            self.ratio = 1;
        }
    }

    /// §6.1.2: at most half the window, rounded up, though 2 is always acceptable; at least two
    /// for a window of four or more.
    pub(super) fn bound(&mut self, cwnd: u64) {
        if !self.controlled {
            return;
        }
        let most = cwnd.div_ceil(2).max(2);
        self.ratio = u16::try_from(most).map_or(self.ratio, |most| self.ratio.min(most));
        if cwnd >= 4 {
            self.ratio = self.ratio.max(2);
        }
    }
}
