//! Validation of a connection's parameters: against RFC 4340, against each other, and for effect.

use super::config::{Ccid, Config};
use super::{ccid2, seqno};
use crate::rate;
use crate::time::Duration;
use crate::validate::{ConfigError, ConfigErrors, Validate};

/// RFC 4340 §9.2: the field has four bits.
const MAX_COVERAGE: u8 = 15;
/// RFC 791: the size every host must accept, and the longest IP packet.
const MTU: std::ops::RangeInclusive<u64> = 68..=65_535;
const MAX_TIMER: Duration = Duration::from_secs(3600);

impl Validate for Config {
    fn errors(&self) -> Vec<ConfigError> {
        let mut found = ConfigErrors::default();
        self.check_sequence_window(&mut found);
        self.check_coverage(&mut found);
        self.check_timers(&mut found);
        if !MTU.contains(&self.mtu.as_bytes()) {
            let why = format!("{} is not the size of an IP packet: 68B to 65535B", self.mtu);
            found.add("mtu", why);
        }
        self.check_unused(&mut found);
        found.add_within("window", self.window.errors(self.profile));
        found.add_within("rate", self.rate.errors());
        found.0
    }
}

impl Config {
    /// RFC 4340 §7.5.2: 32 to 2^46 − 1; with short sequence numbers less (§7.6).
    fn check_sequence_window(&self, found: &mut ConfigErrors) {
        let (least, most) = (seqno::MIN_WINDOW, self.most_window());
        let Some(window) = self.sequence_window.filter(|w| !(least..=most).contains(w)) else {
            return;
        };
        let why = if window > most && self.allow_short_seqnos {
            format!(
                "{window} packets cannot be told apart by short sequence numbers: {least} to {most}"
            )
        } else {
            format!(
                "{window} packets is not a Sequence Window: {least} to {most} (RFC 4340 §7.5.2)"
            )
        };
        found.add("sequence_window", why);
    }

    fn check_coverage(&self, found: &mut ConfigErrors) {
        let (coverage, minimum) = (self.checksum_coverage, self.minimum_checksum_coverage);
        let keys = [("checksum_coverage", coverage), ("minimum_checksum_coverage", minimum)];
        for (key, value) in keys.into_iter().filter(|(_, value)| *value > MAX_COVERAGE) {
            let why =
                format!("{value} does not fit the four bits of the field: 0 to {MAX_COVERAGE}");
            found.add(key, why);
        }
        if coverage.max(minimum) > MAX_COVERAGE || coverage == 0 {
            return;
        }
        // RFC 4340 §9.2.1: the receiver drops packets with less coverage than its minimum. Both ends
        // have the same configuration.
        if minimum == 0 {
            let why = "the other side takes only packets that are covered whole (RFC 4340 §9.2.1)";
            let hint = format!("minimum_checksum_coverage = {coverage} or less lets it take these");
            found.add_with_hint("checksum_coverage", why, &hint);
        } else if coverage < minimum {
            let why = format!(
                "{coverage} is below the least the other side takes, minimum_checksum_coverage = {minimum} (RFC 4340 §9.2.1)"
            );
            found.add("checksum_coverage", why);
        }
    }

    fn check_timers(&self, found: &mut ConfigErrors) {
        found.timer("request_timeout", self.request_timeout, MAX_TIMER);
        found.timer("max_timeout", self.max_timeout, MAX_TIMER);
        found.timer("give_up", self.give_up, MAX_TIMER);
        found.at_most("msl", self.msl, MAX_TIMER);
        if self.request_timeout > self.max_timeout {
            let (first, longest) = (self.request_timeout, self.max_timeout);
            let why = format!("{first} is above max_timeout ({longest})");
            found.add("request_timeout", why);
        }
    }

    /// Parameters of a CCID that neither direction uses.
    fn check_unused(&self, found: &mut ConfigErrors) {
        let used = [self.ccid_of(false), self.ccid_of(true)];
        if !used.contains(&Ccid::Two) && self.window != ccid2::Config::default() {
            let why = "these are parameters of CCID 2, which neither direction uses";
            found.add_with_hint("window", why, "those of CCID 3 and 4 are in `rate`");
        }
        if !used.iter().any(|ccid| ccid.is_rate_based()) && self.rate != rate::Config::default() {
            let why = "these are parameters of CCID 3 and 4, which neither direction uses";
            found.add_with_hint("rate", why, "those of CCID 2 are in `window`");
        }
    }
}
