//! Feature negotiation (RFC 4340 §6): the values in effect at both ends, what this end prefers,
//! Changes on their way and Confirms owed. It reads and writes the four options; which packets
//! carry them, and when they are repeated, is the connection's business.
//!
//! The table has one row for each known feature and location, and there is a cap on Confirms owed
//! for unknown ones: nothing here grows with what arrives.

mod row;

use super::config::Config;
use super::halves::kind;
use super::options::{Feature as Value, Opt, Options, feature as name};
use super::packet::ResetCode;
use super::seqno::SeqNo;
pub use row::UnknownValue;
use row::{Confirm, Feature, KNOWN, Rule, State, number};

/// At which end a feature lies (§6.4: Feature Location), seen from here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Location {
    /// At this end: F/L here.
    Here,
    /// At the other end: F/R here.
    There,
}

/// Most values of a preference list that are looked at: more than any known feature has.
const LONGEST_LIST: usize = 16;
/// Most empty Confirms owed for unknown features; a packet that asks for more is not answered in
/// full, and asks again.
const MAX_UNKNOWN: usize = 8;

/// A feature whose value changed.
pub(super) type Changed = (u8, Location);

/// The features of a connection.
#[derive(Debug)]
pub(super) struct Features {
    server: bool,
    rows: Vec<Feature>,
    unknown: Vec<(u8, Location)>,
    /// There is a Confirm that was not sent yet.
    owing: bool,
    /// What the rows say together: read with every packet, and computed again when one may have changed.
    rows_say: Summary,
    /// §6.6.4: greatest number received with a Change or Confirm.
    fgsr: Option<SeqNo>,
}

/// What rows say together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Summary {
    /// A Change is unanswered.
    changing: bool,
    /// A Change should go on the next packet that may bear it.
    due: bool,
    /// A Confirm is owed, unknown features apart.
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
            rows: rows.collect(),
            unknown: Vec::new(),
            owing: false,
            rows_say: Summary::default(),
            fgsr: None,
        };
        features.prefer_as(config);
        features
    }

    /// What this end prefers and asks for, by the knobs.
    fn prefer_as(&mut self, config: &Config) {
        use Location::{Here, There};
        let (mine, theirs) = (config.ccid_of(self.server), config.ccid_of(!self.server));
        let yes = |wanted: bool| if wanted { [1, 0] } else { [0, 1] };
        // RFC 4340 §10: always said by the client, so that a disagreement shows at once.
        self.set(name::CCID, Here, &[mine as u64], true, false);
        self.set(name::CCID, There, &[theirs as u64], true, false);
        for location in [Here, There] {
            let short: &[u64] = if config.allow_short_seqnos { &[1, 0] } else { &[0] };
            self.set(name::ALLOW_SHORT_SEQNOS, location, short, config.allow_short_seqnos, false);
        }
        self.set(name::SEQUENCE_WINDOW, Here, &[config.initial_window()], true, false);
        // §12.1: who cannot read ECN fields says so, Mandatory.
        let ecn = config.uses_ecn();
        self.set(name::ECN_INCAPABLE, Here, if ecn { &[0, 1] } else { &[1] }, !ecn, true);
        self.set(name::ECN_INCAPABLE, There, &[0, 1], false, false);
        self.set(name::ACK_RATIO, Here, &[2], false, false);
        // RFC 4341 §4: a sender under CCID 2 cannot do without Ack Vectors.
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
        // RFC 6323 §3: the receiver asks for estimates.
        let estimates = |ccid: super::Ccid| config.send_rtt_estimate && ccid.is_rate_based();
        self.set(name::SEND_RTT_ESTIMATE, Here, &yes(estimates(mine)), false, false);
        self.set(name::SEND_RTT_ESTIMATE, There, &yes(estimates(theirs)), estimates(theirs), false);
        // RFC 4342 §8.4: off unless the other end, such as Linux, wants it.
        let wants_rate = |ccid: super::Ccid| {
            ccid.is_rate_based()
                && config.rate.resolve(config.profile, kind(ccid)).ask_loss_event_rate
        };
        let (asks, says) = (wants_rate(mine), wants_rate(theirs));
        self.set(name::SEND_LOSS_EVENT_RATE, There, &yes(asks), asks, asks);
        self.set(name::SEND_LOSS_EVENT_RATE, Here, &yes(says), false, false);
    }

    /// §9.2.1: of what this end sends the other may find coverages up to its own acceptable; what
    /// this end accepts is its own minimum or stricter.
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
            confirms: self.rows.iter().any(|row| row.confirm.is_some()),
        }
    }
    /// A row may have changed.
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

    /// True while the value in effect is one that this end does not list, and a Change that may end
    /// this is unanswered.
    pub(super) fn is_undecided(&self, number: u8, location: Location) -> bool {
        place(number, location)
            .map(|place| &self.rows[place])
            .is_some_and(|row| row.state != State::Stable && !row.can_stay())
    }

    /// Whether these are values that this end can run a feature with.
    pub(super) fn check(number: u8, values: &[u64]) -> Result<(), UnknownValue> {
        row::check(number, values)
    }

    /// What this end will agree to from now on, without asking.
    pub(super) fn accept(&mut self, number: u8, location: Location, prefer: &[u64]) {
        if let Some(row) = self.find(number, location) {
            row.prefer = prefer.iter().copied().take(LONGEST_LIST).collect();
        }
    }

    /// Asks for a change (§6.6.2: "app/protocol evt").
    pub(super) fn change(&mut self, number: u8, location: Location, prefer: &[u64]) {
        self.accept(number, location, prefer);
        let Some(row) = self.find(number, location) else { return };
        match row.state {
            State::Stable => row.begin(),
            // Nobody was told of the old preferences yet.
            State::Changing if row.fresh => {}
            // §6.6.5
            State::Changing | State::Unstable => row.state = State::Unstable,
        }
        self.sum_up();
    }

    /// What this end last wanted of its own non-negotiable feature.
    pub(super) fn wished(&self, number: u8) -> u64 {
        let row = place(number, Location::Here).map(|place| &self.rows[place]);
        row.and_then(|row| row.prefer.first()).copied().unwrap_or(0)
    }
    /// Asks for a value of its own non-negotiable feature, unless it did already.
    pub(super) fn wish(&mut self, number: u8, value: u64) {
        if self.wished(number) != value {
            self.change(number, Location::Here, &[value]);
        }
    }

    /// The proposals a connection opens with; those the other end made first are settled.
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

    /// §6.6.3: repeats every Change not answered. False if there is none.
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
    /// True if a packet should leave for an option of negotiation.
    #[inline]
    pub(super) fn wants_packet(&self) -> bool {
        debug_assert_eq!(self.rows_say, self.summary(), "a row changed unnoticed");
        self.owing || self.rows_say.due
    }

    /// §6.6.4: whether a packet's Changes and Confirms are heard, or were overtaken.
    pub(super) fn hears(&self, seq: SeqNo) -> bool {
        self.fgsr.is_none_or(|greatest| seq > greatest)
    }
    /// §6.6.4: a packet with this number brought Changes or Confirms.
    pub(super) fn heard(&mut self, seq: SeqNo) {
        self.fgsr = self.fgsr.max(Some(seq));
    }

    /// Takes a Change in. `at` is where the feature lies: a Change L is about the other end.
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
        self.owing = true;
        let Some(row) = self.find(change.number, at) else {
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
                // §6.6.6: both asked at once. Both lists lead both ends to this value, and the
                // Confirm now owed tells the other so: nothing is left to wait for.
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

    fn owe_unknown(&mut self, number: u8, at: Location) {
        if self.unknown.len() < MAX_UNKNOWN && !self.unknown.contains(&(number, at)) {
            self.unknown.push((number, at));
        }
    }

    /// Takes a Confirm in, on a packet that acknowledges `ack`. A Confirm L is about the other end.
    pub(super) fn on_confirm(
        &mut self,
        at: Location,
        confirm: Value<'_>,
        mandatory: bool,
        ack: Option<SeqNo>,
    ) -> Result<Option<Changed>, ResetCode> {
        let server = self.server;
        let Some(row) = self.find(confirm.number, at) else {
            // §6.6.7: never asked for, so ignored.
            return if mandatory { Err(ResetCode::MANDATORY_ERROR) } else { Ok(None) };
        };
        // §6.6.2, §6.6.4: nobody asked, or it answers an older Change.
        if row.state == State::Stable || row.fresh || ack.is_none_or(|ack| ack < row.sent) {
            return Ok(None);
        }
        let value = if confirm.value.is_empty() {
            // §6.6.7: the value stays; a feature that all must understand cannot be refused.
            if row.known.required {
                return Err(ResetCode::OPTION_ERROR);
            }
            row.value
        } else {
            // §6.6.8: an invalid Confirm ends the connection.
            row.confirmed(confirm.value, server).ok_or(ResetCode::OPTION_ERROR)?
        };
        row.settle();
        self.sum_up();
        Ok(self.apply(confirm.number, at, value))
    }

    /// Puts a value into effect, and says whether it is another.
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

    /// §10.3: the features of a CCID start over with it. Those from 128 lie at the half-connection's
    /// sender, those from 192 at its receiver.
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

    /// Appends Confirms owed and Changes due to the options of the packet `seq`, as long as they
    /// fit in `room` bytes. With `keep`, Confirms stay owed (§8.1.5: PARTOPEN).
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
        self.owing = !keep && (!self.unknown.is_empty() || self.rows_say.confirms);
    }

    /// PARTOPEN is over: the other end has what it needs.
    pub(super) fn forget_confirms(&mut self) {
        self.unknown.clear();
        for row in &mut self.rows {
            row.confirm = None;
        }
        self.sum_up();
    }

    /// The values that are no longer the initial ones, as bytes for an Init Cookie.
    pub(super) fn save(&self, out: &mut Vec<u8>) {
        for (index, row) in self.rows.iter().enumerate() {
            if row.value != row.known.initial {
                out.push(index as u8);
                out.extend_from_slice(&row.encode(row.value));
            }
        }
    }

    /// Takes back what [`Features::save`] wrote, and counts the proposals as sent with `seq`.
    /// `None` if the bytes are not its.
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

/// Where in the table the row of a feature stands: in the order of [`KNOWN`], both locations of each.
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
