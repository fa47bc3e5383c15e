//! One feature at one end: its value, preferences of this end, and negotiation state (RFC 4340
//! §6.3, §6.6.2), with the rules of reconciliation and validity.

use super::Location;
use crate::dccp::config::Ccid;
use crate::dccp::options::{Feature as Value, Opt, Options, feature as name};
use crate::dccp::packet::ResetCode;
use crate::dccp::seqno::{DEFAULT_WINDOW, GREATEST_WINDOW, MIN_WINDOW, SeqNo};
use crate::octets::number;

/// Reconciliation rules (§6.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rule {
    /// §6.3.1: the server's first preference that the client also lists; values of one byte.
    ServerPriority,
    /// §6.3.2: the feature's end decides; values of this many bytes within bounds.
    NonNegotiable { bytes: usize, least: u64, most: u64 },
}

/// Properties of a feature (§6.4, table 4).
#[derive(Debug)]
pub(super) struct Known {
    pub(super) number: u8,
    pub(super) rule: Rule,
    pub(super) initial: u64,
    /// Must be understood by all implementations (§6.4: Req'd).
    pub(super) required: bool,
}

pub(super) const fn server_priority(number: u8, initial: u64, required: bool) -> Known {
    Known { number, rule: Rule::ServerPriority, initial, required }
}

/// §6.4 table 4; RFC 4342 §8.4; RFC 6323 §3.
pub(super) static KNOWN: [Known; 11] = [
    server_priority(name::CCID, 2, true),
    server_priority(name::ALLOW_SHORT_SEQNOS, 0, true),
    Known {
        number: name::SEQUENCE_WINDOW,
        // §7.5.2; RFC erratum 1049
        rule: Rule::NonNegotiable { bytes: 6, least: MIN_WINDOW, most: GREATEST_WINDOW },
        initial: DEFAULT_WINDOW,
        required: true,
    },
    server_priority(name::ECN_INCAPABLE, 0, false),
    Known {
        number: name::ACK_RATIO,
        rule: Rule::NonNegotiable { bytes: 2, least: 0, most: u16::MAX as u64 },
        initial: 2,
        required: false,
    },
    server_priority(name::SEND_ACK_VECTOR, 0, false),
    server_priority(name::SEND_NDP_COUNT, 0, false),
    server_priority(name::MINIMUM_CHECKSUM_COVERAGE, 0, false),
    server_priority(name::CHECK_DATA_CHECKSUM, 0, false),
    server_priority(name::SEND_RTT_ESTIMATE, 0, false),
    server_priority(name::SEND_LOSS_EVENT_RATE, 0, false),
];

/// §6.6.2
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// Both ends agree, as far as this end knows.
    Stable,
    /// A Change is unanswered.
    Changing,
    /// A Change is unanswered, and the preferences have changed since.
    Unstable,
}

/// A pending Confirm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Confirm {
    /// With the value in effect.
    Value,
    /// Empty: the Change was invalid.
    Empty,
}

/// One feature at one end.
#[derive(Debug)]
pub(super) struct Feature {
    pub(super) known: &'static Known,
    pub(super) location: Location,
    /// In effect.
    pub(super) value: u64,
    /// Preferences, best first; for a non-negotiable feature at this end, the value requested.
    pub(super) prefer: Vec<u64>,
    /// The preferences last sent in a Change.
    pub(super) told: Vec<u64>,
    pub(super) state: State,
    /// A Change should go on the next packet that may carry it.
    pub(super) due: bool,
    /// The next Change is new, not a repetition (§6.6.4).
    pub(super) fresh: bool,
    /// §6.6.4: number of the packet with the last new Change (FGSS, kept for each feature).
    pub(super) sent: SeqNo,
    pub(super) mandatory: bool,
    /// This end requests its first preference when the connection opens.
    pub(super) propose: bool,
    /// The other end asked and was answered.
    pub(super) settled: bool,
    pub(super) confirm: Option<Confirm>,
}

/// §6.3.1: the first of the server's values that the client lists too.
pub(super) fn reconcile(server: impl Iterator<Item = u64>, client: &[u64]) -> Option<u64> {
    server.into_iter().find(|value| client.contains(value))
}

impl Rule {
    pub(super) const fn bytes(self) -> usize {
        match self {
            Self::ServerPriority => 1,
            Self::NonNegotiable { bytes, .. } => bytes,
        }
    }
}

/// The feature cannot have this value, or does not exist.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("feature {feature} cannot have the value {value}")]
pub struct UnknownValue {
    /// Number of the feature.
    pub feature: u8,
    /// The value.
    pub value: u64,
}

impl Known {
    /// Checks that each value fits the option and is supported here.
    fn check(&self, values: &[u64]) -> Result<(), UnknownValue> {
        let can = |value: u64| match self.rule {
            Rule::NonNegotiable { least, most, .. } => (least..=most).contains(&value),
            Rule::ServerPriority => u8::try_from(value).is_ok_and(|value| match self.number {
                name::CCID => Ccid::try_from(value).is_ok(),
                name::MINIMUM_CHECKSUM_COVERAGE => value < 16,
                _ => value < 2,
            }),
        };
        let bad = values.iter().find(|value| !can(**value));
        bad.map_or(Ok(()), |value| Err(UnknownValue { feature: self.number, value: *value }))
    }
}

/// [`Known::check`] by feature number. An unknown feature has no valid value.
pub(super) fn check(feature: u8, values: &[u64]) -> Result<(), UnknownValue> {
    let known = KNOWN.iter().find(|known| known.number == feature);
    let value = values.first().copied().unwrap_or(0);
    known.ok_or(UnknownValue { feature, value })?.check(values)
}

impl Feature {
    pub(super) fn new(known: &'static Known, location: Location) -> Self {
        Self {
            known,
            location,
            value: known.initial,
            prefer: vec![known.initial],
            told: Vec::new(),
            state: State::Stable,
            due: false,
            fresh: false,
            sent: SeqNo::default(),
            mandatory: false,
            propose: false,
            settled: false,
            confirm: None,
        }
    }

    /// §6.6.2: to CHANGING.
    pub(super) fn begin(&mut self) {
        (self.state, self.due, self.fresh) = (State::Changing, true, true);
    }

    /// A valid Confirm arrived (§6.6.2): enters STABLE, or continues with newer preferences.
    pub(super) fn settle(&mut self) {
        match self.state {
            State::Unstable => self.begin(),
            State::Stable | State::Changing => (self.state, self.due) = (State::Stable, false),
        }
    }

    /// The value in a Change of a non-negotiable feature, if valid (§6.3.2).
    pub(super) fn dictated(&self, value: &[u8]) -> Option<u64> {
        let Rule::NonNegotiable { bytes, least, most } = self.known.rule else { return None };
        // §6.3.2: only the feature's end changes it; there is no Change R.
        let valid = self.location == Location::There
            && value.len() == bytes
            && (least..=most).contains(&number(value));
        valid.then(|| number(value))
    }

    /// The value that results from both preference lists (§6.3.1).
    pub(super) fn reconciled(
        &self,
        list: &[u8],
        mandatory: bool,
        server: bool,
    ) -> Result<Option<u64>, ResetCode> {
        let list: Vec<u64> = list.iter().map(|value| u64::from(*value)).collect();
        let agreed = if server {
            reconcile(self.prefer.iter().copied(), &list)
        } else {
            reconcile(list.iter().copied(), &self.prefer)
        };
        match agreed {
            Some(value) => Ok(Some(value)),
            None if mandatory => Err(ResetCode::MANDATORY_ERROR),
            // An unsupported CCID cannot carry data, nor can one that was not requested.
            None if !self.can_stay() => Err(ResetCode::OPTION_ERROR),
            // §6.3.1: without a shared value the old one remains.
            None => Ok(Some(self.value)),
        }
    }

    /// True if this end can keep the current value.
    pub(super) fn can_stay(&self) -> bool {
        self.known.number != name::CCID || self.prefer.contains(&self.value)
    }

    /// The value in a Confirm, if valid (§6.6.8).
    pub(super) fn confirmed(&self, value: &[u8], server: bool) -> Option<u64> {
        if let Rule::NonNegotiable { bytes, .. } = self.known.rule {
            let wanted = self.told.first() == Some(&number(value));
            return (self.location == Location::Here && value.len() == bytes && wanted)
                .then(|| number(value));
        }
        let (&selected, list) = value.split_first()?;
        let list: Vec<u64> = if list.is_empty() { &value[..1] } else { list }
            .iter()
            .map(|v| u64::from(*v))
            .collect();
        let agreed = if server {
            reconcile(self.told.iter().copied(), &list)
        } else {
            reconcile(list.iter().copied(), &self.told)
        };
        let selected = u64::from(selected);
        match agreed {
            Some(value) => (value == selected).then_some(selected),
            None => (self.value == selected && self.can_stay()).then_some(selected),
        }
    }

    pub(super) fn encode(&self, value: u64) -> Vec<u8> {
        value.to_be_bytes()[8 - self.known.rule.bytes()..].to_vec()
    }

    pub(super) fn change_value(&self) -> Vec<u8> {
        // §6.6.4, §6.6.5: a repeated Change is sent unchanged.
        let list = if self.fresh { &self.prefer } else { &self.told };
        list.iter().flat_map(|value| self.encode(*value)).collect()
    }

    /// §6.1: for server-priority features the value, then this end's preferences.
    pub(super) fn confirm_value(&self, confirm: Confirm) -> Vec<u8> {
        match (confirm, self.known.rule) {
            (Confirm::Empty, _) => Vec::new(),
            (Confirm::Value, Rule::NonNegotiable { .. }) => self.encode(self.value),
            (Confirm::Value, Rule::ServerPriority) => {
                [self.value].iter().chain(&self.prefer).map(|value| *value as u8).collect()
            }
        }
    }

    pub(super) fn write_change(&mut self, seq: SeqNo, value: &[u8], out: &mut Options) {
        if self.mandatory {
            out.push(Opt::Mandatory);
        }
        let feature = Value { number: self.known.number, value };
        out.push(match self.location {
            Location::Here => Opt::ChangeL(feature),
            Location::There => Opt::ChangeR(feature),
        });
        self.due = false;
        if self.fresh {
            self.told.clone_from(&self.prefer);
            (self.fresh, self.sent) = (false, seq);
        }
    }
}
