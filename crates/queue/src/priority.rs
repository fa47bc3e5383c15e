//! Strict priority: one queue per class; the first that is not empty is served. A packet in transmission is not
//! pre-empted.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use talkspurt_proto::packet::Packet;
use talkspurt_proto::probe::Probe;
use talkspurt_proto::time::Instant;
use talkspurt_proto::units::{Rate, Size};

use crate::validate::{ConfigError, Validate};
use crate::{Discipline, Hop, Queue, Served};

/// Number of code points (RFC 2474 §3: six bits).
const CODE_POINTS: usize = 64;

/// Bands, each with its own queue: a packet is sent only if all earlier bands are empty (or wait for tokens).
/// The code point selects the band: that of its flow (`flows.NAME.dscp`), or one written by a `policer` on the
/// path.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// The bands, highest priority first; exactly one has no `dscp`.
    #[schemars(length(min = 1, max = 65))]
    pub bands: Vec<Band>,
}

/// A class of packets and its queue.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline)]
pub struct Band {
    /// Code points of the band, 0 to 63; absent means all that no other band lists.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(inner(range(min = 0, max = 63)))]
    pub dscp: Vec<u8>,
    /// Queue of the band.
    pub queue: crate::Config,
}

impl fmt::Display for Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bands: Vec<String> = self.bands.iter().map(|band| band.queue.to_string()).collect();
        write!(f, "Priority: {}", bands.join(" before "))
    }
}

impl Validate for Config {
    fn errors_for(&self, mtu: Size) -> Vec<ConfigError> {
        let mut found = Vec::new();
        let mut owners = [None; CODE_POINTS];
        let mut rest = None;
        for (number, band) in self.bands.iter().enumerate() {
            let within = |key: &str| format!("bands[{number}].{key}");
            for (index, code) in band.dscp.iter().enumerate() {
                let knob = within(&format!("dscp[{index}]"));
                match owners.get_mut(usize::from(*code)) {
                    None => found.push(ConfigError::new(
                        &knob,
                        format!("{code} is no code point: 0 to 63 (RFC 2474 §3)"),
                    )),
                    Some(Some(other)) => found.push(ConfigError::new(
                        &knob,
                        format!("{code} already belongs to bands[{other}]"),
                    )),
                    Some(owner) => *owner = Some(number),
                }
            }
            if band.dscp.is_empty()
                && let Some(other) = rest.replace(number)
            {
                let why = format!("bands[{other}] is without code points too: one takes the rest");
                found.push(ConfigError::new(&within("dscp"), why));
            }
            let inner = band.queue.errors_for(mtu).into_iter();
            found.extend(inner.map(|impossible| impossible.within(&within("queue"))));
        }
        if rest.is_none() {
            let why = "packets of other code points have no band; leave `dscp` out of one";
            found.push(ConfigError::new("bands", why));
        }
        found
    }
}

/// Strict priority between classes.
#[derive(Debug)]
pub struct Priority {
    bands: Vec<Queue>,
    /// The band of each code point.
    band_of: [u8; CODE_POINTS],
}

impl Priority {
    /// Queues as configured, for a transmitter of this rate and MTU.
    #[must_use]
    pub fn new(config: &Config, rate: Rate, mtu: Size) -> Self {
        let rest = config.bands.iter().position(|band| band.dscp.is_empty()).unwrap_or(0);
        let mut band_of = [rest as u8; CODE_POINTS];
        for (number, band) in config.bands.iter().enumerate() {
            band.dscp.iter().for_each(|code| band_of[usize::from(*code)] = number as u8);
        }
        let bands = config.bands.iter().map(|band| Queue::new(&band.queue, rate, mtu)).collect();
        Self { bands, band_of }
    }
}

impl Discipline for Priority {
    fn enqueue<P: Probe>(&mut self, packet: Packet, hop: &mut Hop<'_, P>) -> bool {
        let band = self.band_of[usize::from(packet.dscp) % CODE_POINTS];
        self.bands[usize::from(band)].enqueue(packet, hop)
    }
    fn dequeue<P: Probe>(&mut self, hop: &mut Hop<'_, P>) -> Served {
        let mut soonest: Option<Instant> = None;
        for band in self.bands.iter_mut().filter(|band| band.packets() > 0) {
            match band.dequeue(hop) {
                Served::Packet(packet) => return Served::Packet(packet),
                Served::Wait(until) => {
                    soonest = Some(soonest.map_or(until, |other| other.min(until)));
                }
                Served::Empty => {}
            }
        }
        soonest.map_or(Served::Empty, Served::Wait)
    }
    fn passes_when_idle(&self) -> bool {
        self.bands.iter().all(Discipline::passes_when_idle)
    }
    fn set_rate(&mut self, rate: Rate) {
        self.bands.iter_mut().for_each(|band| band.set_rate(rate));
    }
    fn packets(&self) -> u32 {
        self.bands.iter().map(Discipline::packets).sum()
    }
    fn bytes(&self) -> u64 {
        self.bands.iter().map(Discipline::bytes).sum()
    }
}
