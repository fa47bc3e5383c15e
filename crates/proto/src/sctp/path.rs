//! One path of an association: its window, its round-trip time, its timers, and its reachability
//! (RFC 9260 §6.3, §7.2, §8.2, §8.3; RFC 7829 §3 for the potentially failed state).

use super::config::Config;
use super::packet::COMMON_HEADER;
use crate::congestion::{Congestion, CongestionControl, Machine, Sctp, Start};
use crate::packet::IpVersion;
use crate::rtt::RttEstimator;
use crate::seq::Seq;
use crate::time::{Duration, Instant};

/// The clock's tick: the shortest round trip measured.
pub(super) const TICK: Duration = Duration::from_millis(1);

/// Whether a path can be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reachable {
    /// Yes.
    Active,
    /// No answer on it yet (RFC 9260 §5.4).
    Unconfirmed,
    /// It had recent timeouts; data uses other paths (RFC 7829).
    PotentiallyFailed,
    /// It has failed (RFC 9260 §8.2).
    Inactive,
}

/// Effects of one SACK on a path.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct PathAckOutcome {
    /// Bytes in flight before it.
    pub(super) before: u64,
    /// Bytes it newly acknowledges.
    pub(super) acked: u64,
    /// Bytes of chunks that it reports as duplicates.
    pub(super) duplicates: u64,
    /// The earliest chunk in flight is among them.
    pub(super) earliest: bool,
    /// It is the third to miss a chunk.
    pub(super) lost: bool,
}

/// A path.
#[derive(Debug)]
pub(super) struct Path {
    pub(super) control: Machine,
    pub(super) rtt: RttEstimator,
    pub(super) mtu: u32,
    /// Bytes of DATA chunks sent here, neither acknowledged nor marked for retransmission.
    pub(super) flight: u64,
    /// T3-rtx.
    pub(super) t3: Option<Instant>,
    /// A TSN sent here once, and when: its acknowledgement gives a round-trip time (§6.3.1 C4).
    pub(super) timed: Option<(Seq, Instant)>,
    /// Timeouts in a row.
    pub(super) errors: u32,
    pub(super) reachable: Reachable,
    /// A packet of fast retransmissions may be sent regardless of the window (§7.2.4 step 3).
    pub(super) forced: bool,
    /// Maximum flight until the next opportunity to send: the burst limit of §6.1 D.
    pub(super) burst: u64,
    /// T3-rtx expired, and nothing sent here was acknowledged since (§7.2.1, §7.2.3).
    pub(super) timed_out: bool,
    /// When data last left.
    pub(super) used: Instant,
    /// Next HEARTBEAT.
    pub(super) heartbeat_at: Option<Instant>,
    /// When the last HEARTBEAT, unanswered, counts as lost.
    pub(super) asked: Option<Instant>,
    /// Its nonce.
    pub(super) nonce: u64,
    /// Effects of the current SACK.
    pub(super) news: PathAckOutcome,
    header_bytes: u32,
}

impl Path {
    /// A path over this IP version, with `below` bytes of headers between IP and SCTP.
    pub(super) fn new(config: &Config, version: IpVersion, below: u32, confirmed: bool) -> Self {
        let mtu = u32::try_from(config.mtu.as_bytes()).unwrap_or(u32::MAX);
        let header_bytes = version.header_bytes() + below + COMMON_HEADER as u32;
        let quantum = u64::from(mtu.saturating_sub(header_bytes)).max(1);
        // RFC 9260 §7.2.1
        let bytes = if version == IpVersion::V4 { 4404 } else { 4344 };
        let recommended = (4 * quantum).min((2 * quantum).max(bytes));
        let window = config.initial_window.map_or(recommended, |window| window.as_bytes());
        let threshold = config.initial_ssthresh.map(|ssthresh| ssthresh.as_bytes());
        Self {
            control: Machine::Sctp(Sctp::new(&Start { quantum, window, threshold })),
            rtt: RttEstimator::new(config.rto_min, config.rto_max, TICK)
                .starting_with(config.rto_initial),
            mtu,
            flight: 0,
            t3: None,
            timed: None,
            errors: 0,
            reachable: if confirmed { Reachable::Active } else { Reachable::Unconfirmed },
            forced: false,
            burst: u64::MAX,
            timed_out: false,
            used: Instant::ZERO,
            heartbeat_at: None,
            asked: None,
            nonce: 0,
            news: PathAckOutcome::default(),
            header_bytes,
        }
    }

    /// Bytes of chunks that a packet holds.
    #[inline]
    pub(super) fn space(&self) -> usize {
        self.mtu.saturating_sub(self.header_bytes).max(32) as usize & !3
    }

    /// Lowers the MTU, as reported by a router.
    pub(super) fn shrink(&mut self, mtu: u32) {
        self.mtu = mtu;
        self.control.on_quantum(self.space() as u64);
    }

    /// §6.1 B: one more packet may be sent. §7.2.1, §7.2.3: after T3-rtx expired, only one may be in flight.
    #[inline]
    pub(super) fn is_open(&self) -> bool {
        self.flight < self.control.window() && !(self.timed_out && self.flight > 0)
    }

    /// §6.1 D: one more packet of new data may be sent.
    #[inline]
    pub(super) fn is_open_to_new(&self) -> bool {
        self.is_open() && self.flight < self.burst
    }

    /// §6.1 D: limits an opportunity to send to this many packets.
    pub(super) fn limit_burst(&mut self, packets: u32) {
        self.burst = self.flight + u64::from(packets.max(1)) * self.space() as u64;
    }

    /// Before data is sent: decays a window after an idle time (§7.2.1).
    pub(super) fn age(&mut self, now: Instant) {
        if self.flight > 0 {
            return;
        }
        let rto = self.rtt.rto();
        let mut turns = 0;
        while self.used + rto < now && turns < 8 && self.used > Instant::ZERO {
            self.control.on_idle(now);
            self.used += rto;
            turns += 1;
        }
    }

    /// Accounts for a chunk sent.
    pub(super) fn on_sent(&mut self, now: Instant, bytes: u64) {
        self.flight += bytes;
        self.used = now;
        if self.t3.is_none() {
            self.t3 = Some(now + self.rtt.rto());
        }
    }

    /// T3-rtx expired (§6.3.3 E1, E2; §7.2.3). A zero window probe does not affect the window (§6.1 A).
    pub(super) fn on_timeout(&mut self, now: Instant, recovering: bool, probing: bool) {
        let flight = self.flight;
        let again = false;
        if !probing {
            self.control.on_congestion(now, &Congestion::Timeout { flight, again, recovering });
        }
        self.rtt.back_off();
        (self.t3, self.timed, self.timed_out) = (None, None, true);
    }

    /// Counts a timeout.
    pub(super) fn on_error(&mut self, config: &Config) {
        self.errors += 1;
        let was = self.reachable;
        // §8.2
        if self.errors > config.path_max_retrans {
            if was != Reachable::Unconfirmed {
                self.reachable = Reachable::Inactive;
            }
        } else if config.potentially_failed.is_some_and(|most| self.errors > most)
            && was == Reachable::Active
        {
            // RFC 7829 §3.2
            self.reachable = Reachable::PotentiallyFailed;
        }
    }

    /// The peer answered on it (§8.2; RFC 7829 §3.2 steps 5 and 6).
    pub(super) fn on_answer(&mut self) {
        self.errors = 0;
        if self.reachable != Reachable::Unconfirmed {
            self.reachable = Reachable::Active;
        }
    }
}
