//! Path failure detection (RFC 9260 §6.3.3, §8.1 to §8.3, §5.4; RFC 7829 §3): counts timeouts,
//! probes idle and suspect paths by HEARTBEATs, and avoids failed paths.

use bytes::Bytes;

use super::packet::Chunk;
use super::path::Reachable;
use super::{Sctp, State};
use crate::endpoint::PathNews;
use crate::gauge::RxError;
use crate::octets::number;
use crate::packet::PathId;
use crate::time::{Instant, due};

/// Bytes of the value of a HEARTBEAT of this end: a Heartbeat Info parameter with the path, a nonce
/// and the time.
const INFO: usize = 4 + 1 + 8 + 8;

impl Sctp {
    /// T3-rtx of a path expired (§6.3.3).
    pub(super) fn on_t3(&mut self, now: Instant, path: usize) {
        let recovering = self.tx.exit.is_some();
        if !self.tx.on_timeout(path, &mut self.paths) {
            return;
        }
        self.paths[path].on_timeout(now, recovering, self.tx.probing);
        // §8.1: an unconfirmed address says nothing about the peer.
        if self.paths[path].reachable != Reachable::Unconfirmed {
            self.errors += 1;
        }
        self.on_path_error(now, path);
    }

    /// A path did not answer in time (§8.1, §8.2).
    fn on_path_error(&mut self, now: Instant, path: usize) {
        let was = self.paths[path].reachable;
        self.paths[path].on_error(&self.config);
        if self.errors > self.config.association_max_retrans {
            return self.give_up();
        }
        if self.paths[path].reachable != was
            && self.paths[path].reachable == Reachable::PotentiallyFailed
        {
            // RFC 7829 §3.2 rules 5 and 6: probed at once, and then once per timeout, if idle paths are probed.
            self.paths[path].heartbeat_at =
                (!self.config.heartbeat_interval.is_zero()).then_some(now);
        }
    }

    /// Once established: confirms other paths (§5.4) and probes idle ones (§8.3).
    pub(super) fn begin_heartbeats(&mut self, now: Instant) {
        for index in 0..self.paths.len() {
            self.paths[index].used = now;
            self.paths[index].heartbeat_at = match self.paths[index].reachable {
                Reachable::Unconfirmed => Some(now),
                _ => self.next_heartbeat(now, index),
            };
        }
    }

    /// §8.3: HB.interval and the path's RTO, plus or minus half of it.
    fn next_heartbeat(&mut self, now: Instant, path: usize) -> Option<Instant> {
        let rto = self.paths[path].rtt.rto();
        match self.paths[path].reachable {
            // §5.4: once per timeout; after failure, as on an idle path.
            Reachable::Unconfirmed if self.paths[path].errors <= self.config.path_max_retrans => {
                Some(now + rto)
            }
            _ if self.config.heartbeat_interval.is_zero() => None,
            // RFC 7829 §3.2 rule 5
            Reachable::PotentiallyFailed => Some(now + rto),
            _ => {
                let spread = rto / 2 + self.rng.span(rto);
                Some(now + self.config.heartbeat_interval + spread)
            }
        }
    }

    pub(super) fn on_heartbeat_timers(&mut self, now: Instant, path: usize) {
        if self.state <= State::CookieEchoed {
            return;
        }
        if due(&mut self.paths[path].asked, now) {
            // §8.3: unanswered for one timeout. §8.1: it counts for the peer only on the data path.
            self.paths[path].rtt.back_off();
            if path == super::data_path(&self.paths)
                && self.paths[path].reachable != Reachable::Unconfirmed
            {
                self.errors += 1;
            }
            self.on_path_error(now, path);
        }
        // §8.3: none are sent after a SHUTDOWN or SHUTDOWN ACK.
        let asks = matches!(
            self.state,
            State::Established | State::ShutdownPending | State::ShutdownReceived
        );
        if due(&mut self.paths[path].heartbeat_at, now) && asks {
            let idle = now.saturating_since(self.paths[path].used);
            let sound = self.paths[path].reachable == Reachable::Active;
            if !sound || idle >= self.config.heartbeat_interval {
                self.ask(now, path);
            }
            self.paths[path].heartbeat_at = self.next_heartbeat(now, path);
        }
    }

    /// Sends a HEARTBEAT.
    fn ask(&mut self, now: Instant, path: usize) {
        let nonce = self.rng.bits();
        let mut value = Vec::with_capacity(INFO);
        value.extend_from_slice(&[0, 1, 0, INFO as u8, path as u8]);
        value.extend_from_slice(&nonce.to_be_bytes());
        value.extend_from_slice(&now.as_nanos().to_be_bytes());
        let rto = self.paths[path].rtt.rto();
        self.paths[path].nonce = nonce;
        self.paths[path].asked = Some(now + rto);
        self.control.push_back((path, Chunk::Heartbeat(value.into())));
    }

    /// §8.3, §5.4: only the last HEARTBEAT counts.
    pub(super) fn on_heartbeat_ack(&mut self, now: Instant, value: &Bytes) -> Result<(), RxError> {
        if value.len() != INFO {
            return Err(RxError::BadAck);
        }
        let (nonce, asked_at) = (number(&value[5..13]), Instant::from_nanos(number(&value[13..])));
        let path = self.paths.get_mut(usize::from(value[4])).ok_or(RxError::BadAck)?;
        if nonce != path.nonce || nonce == 0 {
            return Err(RxError::BadAck);
        }
        (path.nonce, path.asked) = (0, None);
        if path.reachable == Reachable::Unconfirmed {
            path.reachable = Reachable::Active;
        }
        path.rtt.sample(now.saturating_since(asked_at), 1);
        path.on_answer();
        self.errors = 0;
        let index = usize::from(value[4]);
        self.paths[index].heartbeat_at = self.next_heartbeat(now, index);
        Ok(())
    }

    /// The local interface went down or up; ignored without another path.
    pub(super) fn on_path_news(&mut self, now: Instant, path: usize, news: PathNews) {
        if path >= self.paths.len() || self.paths.len() < 2 || self.state <= State::CookieEchoed {
            return;
        }
        match news {
            PathNews::Down => {
                self.paths[path].reachable = Reachable::Inactive;
                if self.tx.on_timeout(path, &mut self.paths) {
                    self.paths[path].t3 = None;
                }
            }
            PathNews::Up => self.paths[path].heartbeat_at = Some(now),
        }
    }

    /// The path of a SACK: that of the last data, in any state. §6.4 leaves the choice free and asks
    /// that it does not vary while data comes from one address.
    pub(super) fn sack_path(&self) -> usize {
        let PathId(path) = self.rx.path;
        usize::from(path)
    }
}
