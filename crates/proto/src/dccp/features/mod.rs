//! Feature negotiation (RFC 4340 §6): values in effect at both ends, preferences of this end,
//! Changes in flight and pending Confirms. It reads and writes the four options; the connection
//! decides which packets carry them and when they are repeated.
//!
//! The table has one row per known feature and location, and pending Confirms for unknown features
//! are limited: memory is bounded whatever arrives.

mod row;

use super::ccid::kind;
use super::config::Config;
use super::options::{Feature as Value, Opt, Options, feature as name};
use super::packet::ResetCode;
use super::seqno::SeqNo;
use crate::octets::number;
pub use row::UnknownValue;
use row::{Confirm, Feature, KNOWN, Rule, State};

/// The end at which a feature is located (§6.4: Feature Location), relative to this one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Location {
    /// At this end: F/L here.
    Here,
    /// At the other end: F/R here.
    There,
}

impl Location {
    /// The other end.
    #[must_use]
    pub const fn other(self) -> Self {
        match self {
            Self::Here => Self::There,
            Self::There => Self::Here,
        }
    }
}

/// Maximum number of values read from a preference list: more than any known feature has.
const LONGEST_LIST: usize = 16;
/// Maximum number of pending empty Confirms for unknown features; the peer must repeat Changes beyond that.
const MAX_UNKNOWN: usize = 8;

/// A feature whose value changed.
pub(super) type Changed = (u8, Location);

/// The features of a connection.
#[derive(Debug)]
pub(super) struct Features {
    server: bool,
    /// Changes and Confirms of Ack Ratio take no packet of their own, unless a Change is repeated (§6.6.3).
    ratio_waits: bool,
    rows: Vec<Feature>,
    unknown: Vec<(u8, Location)>,
    /// A Confirm should go on a packet now.
    owing: bool,
    /// Summary of all rows: read for every packet, recomputed when a row may have changed.
    rows_say: Summary,
    /// §6.6.4: greatest number received with a Change or Confirm.
    fgsr: Option<SeqNo>,
}

/// Summary of all rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Summary {
    /// A Change is unanswered.
    changing: bool,
    /// A Change should go on the next packet that may carry it.
    due: bool,
    /// One that does not wait for a packet that leaves anyway.
    urgent: bool,
    /// A Confirm is pending, not counting unknown features.
    confirms: bool,
}

impl Features {
    /// Bytes held for rows, their lists and Confirms of unknown features.
    pub(super) fn footprint(&self) -> usize {
        let lists = self.rows.iter().map(|row| row.prefer.capacity() + row.told.capacity());
        self.rows.capacity() * size_of::<Feature>()
            + lists.sum::<usize>() * size_of::<u64>()
            + self.unknown.capacity() * size_of::<(u8, Location)>()
    }

    pub(super) fn new(config: &Config, server: bool) -> Self {
        let rows = KNOWN.iter().flat_map(|known| {
            [Location::Here, Location::There].map(|location| Feature::new(known, location))
        });
        let mut features = Self {
            server,
            ratio_waits: config.ack_ratio_waits(),
            rows: rows.collect(),
            unknown: Vec::new(),
            owing: false,
            rows_say: Summary::default(),
            fgsr: None,
        };
        features.prefer_as(config);
        features
    }

    /// Sets the preferences and proposals that follow from the configuration.
    fn prefer_as(&mut self, config: &Config) {
        use Location::{Here, There};
        let (mine, theirs) = (config.ccid_of(self.server), config.ccid_of(!self.server));
        let yes = |wanted: bool| if wanted { [1, 0] } else { [0, 1] };
        // RFC 4340 §10: always sent by the client, so that a disagreement is detected at once.
        self.set(name::CCID, Here, &[mine as u64], true, false);
        self.set(name::CCID, There, &[theirs as u64], true, false);
        for location in [Here, There] {
            let short: &[u64] = if config.allow_short_seqnos { &[1, 0] } else { &[0] };
            self.set(name::ALLOW_SHORT_SEQNOS, location, short, config.allow_short_seqnos, false);
        }
        self.set(name::SEQUENCE_WINDOW, Here, &[config.initial_window()], true, false);
        // §12.1: an end that cannot read ECN fields says so, with a Mandatory option.
        let ecn = config.uses_ecn();
        self.set(name::ECN_INCAPABLE, Here, if ecn { &[0, 1] } else { &[1] }, !ecn, true);
        self.set(name::ECN_INCAPABLE, There, &[0, 1], false, false);
        self.set(name::ACK_RATIO, Here, &[2], false, false);
        // RFC 4341 §4: a sender under CCID 2 needs Ack Vectors.
        let vectors = |ccid: super::Ccid| !ccid.is_rate_based();
        if vectors(mine) {
            self.set(name::SEND_ACK_VECTOR, There, &[1], true, true);
        } else {
            self.set(
                name::SEND_ACK_VECTOR,
                There,
                &yes(config.ack_vector),
                config.ack_vector,
                false,
            );
        }
        self.set(
            name::SEND_ACK_VECTOR,
            Here,
            &yes(vectors(theirs) || config.ack_vector),
            false,
            false,
        );
        let (count, counted) = (config.counts_non_data(mine), config.counts_non_data(theirs));
        self.set(name::SEND_NDP_COUNT, Here, &yes(count), false, false);
        self.set(name::SEND_NDP_COUNT, There, &yes(counted), counted, false);
        self.prefer_coverage(config);
        self.set(name::CHECK_DATA_CHECKSUM, Here, &[1, 0], false, false);
        let check = config.data_checksum;
        self.set(name::CHECK_DATA_CHECKSUM, There, &yes(check), check, false);
        // RFC 6323 §3: the receiver requests estimates.
        let estimates = |ccid: super::Ccid| config.send_rtt_estimate && ccid.is_rate_based();
        self.set(name::SEND_RTT_ESTIMATE, Here, &yes(estimates(mine)), false, false);
        self.set(name::SEND_RTT_ESTIMATE, There, &yes(estimates(theirs)), estimates(theirs), false);
        // RFC 4342 §8.4: off unless the other end (such as Linux) requests it.
        let wants_rate = |ccid: super::Ccid| {
            ccid.is_rate_based()
                && config.rate.resolve(config.profile, kind(ccid)).ask_loss_event_rate
        };
        let (asks, says) = (wants_rate(mine), wants_rate(theirs));
        self.set(name::SEND_LOSS_EVENT_RATE, There, &yes(asks), asks, asks);
        self.set(name::SEND_LOSS_EVENT_RATE, Here, &yes(says), false, false);
    }

    /// §9.2.1: for data it sends, this end proposes minimum coverages up to its own coverage; for data
    /// received it accepts its own minimum or a stricter one.
    fn prefer_coverage(&mut self, config: &Config) {
        let sent = u64::from(config.checksum_coverage.min(15));
        let asked: Vec<u64> = (0..=sent).rev().collect();
        self.set(name::MINIMUM_CHECKSUM_COVERAGE, Location::There, &asked, sent > 0, false);
        let least = u64::from(config.minimum_checksum_coverage.min(15));
        let accepted: Vec<u64> =
            if least == 0 { vec![0] } else { (least..16).chain([0]).take(LONGEST_LIST).collect() };
        self.set(name::MINIMUM_CHECKSUM_COVERAGE, Location::Here, &accepted, false, false);
    }

    fn set(&mut self, number: u8, location: Location, prefer: &[u64], propose: bool, must: bool) {
        let row = self.row(number, location);
        row.prefer = prefer.to_vec();
        (row.propose, row.mandatory) = (propose, must);
    }

    fn summary(&self) -> Summary {
        Summary {
            changing: self.rows.iter().any(|row| row.state != State::Stable),
            due: self.rows.iter().any(|row| row.due),
            urgent: self.rows.iter().any(|row| row.due && !self.waits(row.known.number)),
            confirms: self.rows.iter().any(|row| row.confirm.is_some()),
        }
    }
    /// Updates the summary after a row may have changed.
    fn sum_up(&mut self) {
        self.rows_say = self.summary();
    }

    #[inline]
    fn find(&mut self, number: u8, location: Location) -> Option<&mut Feature> {
        self.rows.get_mut(place(number, location)?)
    }
    fn row(&mut self, number: u8, location: Location) -> &mut Feature {
        self.find(number, location).expect("every feature named here is in the table")
    }

    /// The value in effect.
    pub(super) fn value(&self, number: u8, location: Location) -> u64 {
        place(number, location).map_or(0, |place| self.rows[place].value)
    }
    /// True if a feature of one bit is on.
    pub(super) fn is_on(&self, number: u8, location: Location) -> bool {
        self.value(number, location) == 1
    }

    /// True while this end does not list the value in effect and a Change that may replace it is unanswered.
    pub(super) fn is_undecided(&self, number: u8, location: Location) -> bool {
        place(number, location)
            .map(|place| &self.rows[place])
            .is_some_and(|row| row.state != State::Stable && !row.can_stay())
    }

    /// Checks that this end supports these values of a feature.
    pub(super) fn check(number: u8, values: &[u64]) -> Result<(), UnknownValue> {
        row::check(number, values)
    }

    /// Sets the values that this end accepts from now on, without sending a Change.
    pub(super) fn accept(&mut self, number: u8, location: Location, prefer: &[u64]) {
        if let Some(row) = self.find(number, location) {
            row.prefer = prefer.iter().copied().take(LONGEST_LIST).collect();
        }
    }

    /// Requests a change (§6.6.2: "app/protocol evt").
    pub(super) fn change(&mut self, number: u8, location: Location, prefer: &[u64]) {
        self.accept(number, location, prefer);
        let Some(row) = self.find(number, location) else { return };
        match row.state {
            State::Stable => row.begin(),
            // The old preferences have not been sent yet.
            State::Changing if row.fresh => {}
            // §6.6.5
            State::Changing | State::Unstable => row.state = State::Unstable,
        }
        self.sum_up();
    }

    /// The value this end last requested for its own non-negotiable feature.
    pub(super) fn wished(&self, number: u8) -> u64 {
        let row = place(number, Location::Here).map(|place| &self.rows[place]);
        row.and_then(|row| row.prefer.first()).copied().unwrap_or(0)
    }
    /// Requests a value of its own non-negotiable feature, unless already requested.
    pub(super) fn wish(&mut self, number: u8, value: u64) {
        if self.wished(number) != value {
            self.change(number, Location::Here, &[value]);
        }
    }

    /// The initial proposals of a connection; those that the other end made first are settled.
    pub(super) fn propose(&mut self) {
        let server = self.server;
        for row in &mut self.rows {
            let says_anyway = !server && row.known.number == name::CCID;
            let differs = row.prefer.first().is_some_and(|first| *first != row.value);
            if row.propose && !row.settled && row.state == State::Stable && (says_anyway || differs)
            {
                row.begin();
            }
        }
        self.sum_up();
    }

    /// §6.6.3: repeats all unanswered Changes. False if there are none.
    pub(super) fn repeat(&mut self) -> bool {
        for row in &mut self.rows {
            row.due |= row.state != State::Stable;
        }
        self.sum_up();
        self.is_changing()
    }
    /// True while a Change is unanswered.
    #[inline]
    pub(super) fn is_changing(&self) -> bool {
        self.rows_say.changing
    }
    /// True if a packet should be sent for a negotiation option.
    #[inline]
    pub(super) fn wants_packet(&self) -> bool {
        debug_assert_eq!(self.rows_say, self.summary(), "a row changed unnoticed");
        self.owing || self.rows_say.urgent
    }
    /// True if a Change that takes no packet of its own should go on the next one.
    #[inline]
    pub(super) const fn ride(&self) -> bool {
        self.rows_say.due && !self.rows_say.urgent
    }
    /// True if options on this feature wait for a packet that leaves anyway.
    fn waits(&self, number: u8) -> bool {
        self.ratio_waits && number == name::ACK_RATIO
    }

    /// §6.6.4: whether a packet's Changes and Confirms are processed, or were overtaken.
    pub(super) fn hears(&self, seq: SeqNo) -> bool {
        self.fgsr.is_none_or(|greatest| seq > greatest)
    }
    /// §6.6.4: a packet with this number brought Changes or Confirms.
    pub(super) fn heard(&mut self, seq: SeqNo) {
        self.fgsr = self.fgsr.max(Some(seq));
    }

    /// Processes a Change. `at` is the feature's location: a Change L is about the other end.
    pub(super) fn on_change(
        &mut self,
        at: Location,
        change: Value<'_>,
        mandatory: bool,
    ) -> Result<Option<Changed>, ResetCode> {
        let changed = self.take_change(at, change, mandatory);
        self.sum_up();
        changed
    }

    fn take_change(
        &mut self,
        at: Location,
        change: Value<'_>,
        mandatory: bool,
    ) -> Result<Option<Changed>, ResetCode> {
        let server = self.server;
        self.owing |= !self.waits(change.number);
        let understood = self.has_ccid_of(change.number, at);
        let Some(row) = self.find(change.number, at).filter(|_| understood) else {
            // §6.6.7
            return match mandatory {
                true => Err(ResetCode::MANDATORY_ERROR),
                false => {
                    self.owe_unknown(change.number, at);
                    Ok(None)
                }
            };
        };
        let decided = match row.known.rule {
            Rule::NonNegotiable { .. } => row.dictated(change.value),
            Rule::ServerPriority if change.value.is_empty() => None,
            Rule::ServerPriority => row.reconciled(change.value, mandatory, server)?,
        };
        match decided {
            Some(value) => {
                row.confirm = Some(Confirm::Value);
                row.settled = true;
                // §6.6.6: both ends asked at once. Both lists lead both ends to this value, and the
                // pending Confirm tells the other end so: no answer is needed.
                if row.state == State::Changing && row.known.rule == Rule::ServerPriority {
                    (row.state, row.due) = (State::Stable, false);
                }
                Ok(self.apply(change.number, at, value))
            }
            // §6.6.9
            None if mandatory => Err(ResetCode::MANDATORY_ERROR),
            // §6.6.8: an invalid Change is answered by an empty Confirm.
            None => {
                row.confirm = Some(Confirm::Empty);
                Ok(None)
            }
        }
    }

    /// §10.3: a CCID-specific feature exists only under the CCIDs that define it. CCID 2 has none; those
    /// known here belong to CCIDs 3 and 4.
    fn has_ccid_of(&self, number: u8, at: Location) -> bool {
        let sender = match number {
            0..128 => return true,
            128..192 => at,
            192.. => at.other(),
        };
        self.is_rate_based(sender)
    }

    /// True if the half-connection with this sender has CCID 3 or 4.
    pub(super) fn is_rate_based(&self, sender: Location) -> bool {
        self.value(name::CCID, sender) > 2
    }

    fn owe_unknown(&mut self, number: u8, at: Location) {
        if self.unknown.len() < MAX_UNKNOWN && !self.unknown.contains(&(number, at)) {
            self.unknown.push((number, at));
        }
    }

    /// Processes a Confirm on a packet that acknowledges `ack`. A Confirm L is about the other end.
    pub(super) fn on_confirm(
        &mut self,
        at: Location,
        confirm: Value<'_>,
        mandatory: bool,
        ack: Option<SeqNo>,
    ) -> Result<Option<Changed>, ResetCode> {
        let server = self.server;
        let waits = self.waits(confirm.number);
        let Some(row) = self.find(confirm.number, at) else {
            // §6.6.7: never requested, so ignored.
            return if mandatory { Err(ResetCode::MANDATORY_ERROR) } else { Ok(None) };
        };
        // §6.6.2, §6.6.4: not requested, or the answer to an older Change.
        if row.state == State::Stable || row.fresh || ack.is_none_or(|ack| ack < row.sent) {
            return Ok(None);
        }
        let value = if confirm.value.is_empty() {
            // §6.6.7: the value stays; a required feature cannot be refused.
            if row.known.required {
                return Err(ResetCode::OPTION_ERROR);
            }
            row.value
        } else {
            match row.confirmed(confirm.value, server) {
                Some(value) => value,
                // It waited for a packet that acknowledges a later one, and answers an older Change.
                None if waits => return Ok(None),
                // §6.6.8: an invalid Confirm ends the connection.
                None => return Err(ResetCode::OPTION_ERROR),
            }
        };
        row.settle();
        self.sum_up();
        Ok(self.apply(confirm.number, at, value))
    }

    /// Puts a value into effect, and returns the feature if the value changed.
    fn apply(&mut self, number: u8, location: Location, value: u64) -> Option<Changed> {
        let row = self.row(number, location);
        if std::mem::replace(&mut row.value, value) == value {
            return None;
        }
        if number == name::CCID {
            self.forget_ccid(location);
        }
        Some((number, location))
    }

    /// §10.3: a new CCID resets the features of the old one. Those from 128 are located at the
    /// half-connection's sender, those from 192 at its receiver.
    fn forget_ccid(&mut self, sender: Location) {
        for row in &mut self.rows {
            let of_this_half = match row.known.number {
                0..128 => false,
                128..192 => row.location == sender,
                192.. => row.location != sender,
            };
            if of_this_half {
                row.value = row.known.initial;
            }
        }
    }

    /// Appends pending Confirms and Changes to the options of the packet `seq`, as long as they
    /// fit in `room` bytes. With `keep`, Confirms stay pending (§8.1.5: PARTOPEN).
    pub(super) fn write(&mut self, seq: SeqNo, room: usize, keep: bool, out: &mut Options) {
        if !self.rows_say.due && !self.rows_say.confirms && self.unknown.is_empty() {
            self.owing = false;
            return;
        }
        let fits = |out: &Options, bytes: usize| out.as_bytes().len() + bytes <= room;
        self.unknown.retain(|(number, at)| {
            let written = fits(out, 3);
            if written {
                out.push(confirm_option(*at, Value { number: *number, value: &[] }));
            }
            !written || keep
        });
        for row in &mut self.rows {
            if let Some(confirm) = row.confirm {
                let value = row.confirm_value(confirm);
                if fits(out, 3 + value.len()) {
                    let number = row.known.number;
                    out.push(confirm_option(row.location, Value { number, value: &value }));
                    row.confirm = row.confirm.filter(|_| keep);
                }
            }
            if row.due {
                let value = row.change_value();
                if fits(out, 4 + value.len()) {
                    row.write_change(seq, &value, out);
                }
            }
        }
        self.sum_up();
        let confirms =
            self.rows.iter().any(|row| row.confirm.is_some() && !self.waits(row.known.number));
        self.owing = !keep && (!self.unknown.is_empty() || confirms);
    }

    /// PARTOPEN is over: the other end has received the Confirms.
    pub(super) fn forget_confirms(&mut self) {
        self.unknown.clear();
        for row in &mut self.rows {
            row.confirm = None;
        }
        self.sum_up();
    }

    /// Appends the values that differ from the initial ones, as bytes for an Init Cookie.
    pub(super) fn save(&self, out: &mut Vec<u8>) {
        for (index, row) in self.rows.iter().enumerate() {
            if row.value != row.known.initial {
                out.push(index as u8);
                out.extend_from_slice(&row.encode(row.value));
            }
        }
    }

    /// Restores what [`Features::save`] wrote, and counts the proposals as sent with `seq`.
    /// `None` if the bytes are invalid.
    pub(super) fn restore(&mut self, mut saved: &[u8], seq: SeqNo) -> Option<()> {
        while let Some((&index, rest)) = saved.split_first() {
            let row = self.rows.get_mut(usize::from(index))?;
            let (value, rest) = rest.split_at_checked(row.known.rule.bytes())?;
            row.value = number(value);
            saved = rest;
        }
        self.propose();
        for row in &mut self.rows {
            if row.state == State::Changing {
                row.told.clone_from(&row.prefer);
                (row.due, row.fresh, row.sent) = (false, false, seq);
            }
        }
        self.sum_up();
        Some(())
    }
}

/// Table row of a feature: in the order of [`KNOWN`], both locations of each.
const fn place(number: u8, location: Location) -> Option<usize> {
    let known = match number {
        name::CCID..=name::CHECK_DATA_CHECKSUM => number - name::CCID,
        name::SEND_RTT_ESTIMATE => 9,
        name::SEND_LOSS_EVENT_RATE => 10,
        _ => return None,
    };
    Some(2 * known as usize + location as usize)
}

fn confirm_option(at: Location, value: Value<'_>) -> Opt<'_> {
    match at {
        Location::Here => Opt::ConfirmL(value),
        Location::There => Opt::ConfirmR(value),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_is_where_it_is_looked_for() {
        let features = Features::new(&Config::new(super::super::Ccid::Two), false);
        for (at, row) in features.rows.iter().enumerate() {
            assert_eq!(place(row.known.number, row.location), Some(at));
        }
        let rows = (0..=u8::MAX).filter_map(|number| place(number, Location::There));
        assert_eq!(rows.count(), KNOWN.len());
    }
}
