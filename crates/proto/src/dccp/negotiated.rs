//! Results of feature negotiation (RFC 4340 §6) for the rest of the connection: cached values, changes
//! that this end wants, and the timer that repeats them.

use super::ccid::{Receiver as _, Sender as _};
use super::features::Features;
use super::options::feature;
use super::{Dccp, Location, State, UnknownValue};
use crate::time::Instant;

/// Feature values that every packet needs, cached.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Negotiated {
    /// This end may send short sequence numbers.
    pub(super) short: bool,
    /// The other end may send short ones.
    pub(super) short_heard: bool,
    /// This end counts non-data packets.
    pub(super) counts: bool,
    /// This end sends Ack Vectors under a CCID that does not write them itself (RFC 4342 §8).
    pub(super) vectors: bool,
    /// The other end reads ECN fields.
    pub(super) ecn: bool,
    /// Acknowledgements of this end are ECN-capable (RFC 4341 §4: those of CCID 2 are congestion controlled).
    pub(super) ecn_acks: bool,
    /// This end cannot read ECN fields, and the other end has not confirmed this yet (§12.1).
    pub(super) awaits_ecn_incapable: bool,
    /// Checksum Coverage of what this end sends.
    pub(super) coverage: u8,
    /// Minimum Checksum Coverage this end accepts.
    pub(super) least_coverage: u8,
}

impl Dccp {
    /// The value of a feature in effect (RFC 4340 §6).
    #[must_use]
    pub fn feature(&self, number: u8, location: Location) -> u64 {
        self.features.value(number, location)
    }

    /// Sets the values this end accepts for a feature, best first, without requesting a change.
    ///
    /// # Errors
    /// A value that the feature cannot have, or that this end does not support; nothing has changed then.
    pub fn accept(
        &mut self,
        number: u8,
        location: Location,
        preferences: &[u64],
    ) -> Result<(), UnknownValue> {
        Features::check(number, preferences)?;
        self.features.accept(number, location, preferences);
        self.agree();
        Ok(())
    }

    /// Requests a change of a feature from the other side, best value first (RFC 4340 §6.6); the option
    /// goes on the next packet. This changes a CCID in the middle of a connection.
    ///
    /// # Errors
    /// A value that the feature cannot have, or that this end does not support; nothing is sent then.
    pub fn change(
        &mut self,
        number: u8,
        location: Location,
        preferences: &[u64],
    ) -> Result<(), UnknownValue> {
        Features::check(number, preferences)?;
        self.features.change(number, location, preferences);
        self.agree();
        self.owed.ack |= self.can_negotiate();
        Ok(())
    }

    /// Caches the current feature values.
    pub(super) fn agree(&mut self) {
        use Location::{Here, There};
        let features = &self.features;
        let theirs = features.value(feature::MINIMUM_CHECKSUM_COVERAGE, There);
        let wanted = self.config.checksum_coverage.min(15);
        let ecn = self.config.uses_ecn() && !features.is_on(feature::ECN_INCAPABLE, There);
        self.negotiated = Negotiated {
            short: features.is_on(feature::ALLOW_SHORT_SEQNOS, Here),
            short_heard: features.is_on(feature::ALLOW_SHORT_SEQNOS, There),
            counts: features.is_on(feature::SEND_NDP_COUNT, Here),
            vectors: features.is_on(feature::SEND_ACK_VECTOR, Here)
                && features.value(feature::CCID, There) > 2,
            ecn,
            ecn_acks: ecn && features.value(feature::CCID, There) == 2,
            awaits_ecn_incapable: !self.config.uses_ecn()
                && !features.is_on(feature::ECN_INCAPABLE, Here),
            // §9.2.1: a value of 0 requires full coverage, n at least n.
            coverage: if theirs > 0 && u64::from(wanted) >= theirs { wanted } else { 0 },
            least_coverage: features.value(feature::MINIMUM_CHECKSUM_COVERAGE, Here).min(15) as u8,
        };
        // §7.5.2: only this end knows how many of its packets are in flight, so its acknowledgement window
        // is widened as soon as it asks, even if Change or Confirm is lost; the other end widens its own
        // when the Change arrives.
        let value = features.value(feature::SEQUENCE_WINDOW, Here);
        self.windows.ours = value.max(features.wished(feature::SEQUENCE_WINDOW));
        self.windows.theirs = features.value(feature::SEQUENCE_WINDOW, There);
        if let Some(sender) = &mut self.sender {
            sender.agree(self.negotiated.ecn, features.is_on(feature::SEND_RTT_ESTIMATE, Here));
        }
        if let Some(receiver) = &mut self.receiver {
            receiver.agree(
                features.is_on(feature::SEND_LOSS_EVENT_RATE, Here),
                features.is_on(feature::SEND_RTT_ESTIMATE, There),
            );
        }
    }

    /// True where Changes may be sent unasked: not before the peer's address is proven.
    pub(super) fn can_negotiate(&self) -> bool {
        matches!(self.state, State::PartOpen | State::Open)
    }

    /// Requests the values of non-negotiable features that the half-connections want.
    pub(super) fn wish(&mut self) {
        let Some(sender) = self.sender.as_mut().filter(|_| self.state == State::Open) else {
            return;
        };
        if let Some(rate) = sender.target_rate() {
            self.target_rate = Some(rate);
        }
        if let Some(ratio) = sender.ack_ratio() {
            self.features.wish(feature::ACK_RATIO, ratio.into());
        }
        if self.config.window_follows() {
            // §7.5.2: about five times the packets of a round trip, acknowledgements included: those that
            // the sending half may send, or that both halves sent. Rounded up to a power of two, so that
            // not every packet sends a request. Each packet received triggers at most one from this end, so
            // the other side's window bounds what the receiving half sends.
            let sent = sender.packets_per_rtt().max(self.in_flight).saturating_mul(5);
            let most = self.config.most_window();
            let wished = self.features.wished(feature::SEQUENCE_WINDOW);
            if sent > wished || self.windows.theirs.min(most) > wished {
                let sent = sent.checked_next_power_of_two().unwrap_or(most);
                let window = sent.max(self.windows.theirs).min(most);
                if window > wished {
                    self.features.wish(feature::SEQUENCE_WINDOW, window);
                    self.agree();
                }
            }
        }
    }

    /// Runs the timer of Changes while any are unanswered (RFC 4340 §6.6.3).
    pub(super) fn time_changes(&mut self, now: Instant) {
        if !self.can_negotiate() || !self.features.is_changing() {
            self.timers.change = None;
        } else if self.timers.change.is_none() {
            let wait = self.two_round_trips();
            (self.timers.change, self.timers.change_wait) = (Some(now + wait), wait);
        }
    }

    /// RFC 4340 §6.6.3
    pub(super) fn repeat_changes(&mut self, now: Instant) {
        if self.can_negotiate() && self.features.repeat() {
            self.owed.ack = true;
            let wait = (self.timers.change_wait * 2).min(self.config.max_timeout);
            (self.timers.change, self.timers.change_wait) = (Some(now + wait), wait);
        }
    }
}
