//! Processing of received options (RFC 4340 §5.8, §8.5 step 8): feature negotiation, timestamps,
//! and values passed to the half-connections.

use super::ccid3::options::is_rtt_estimate;
use super::options::{Opt, ccid_option, feature};
use super::{Dccp, Kind, Location, Packet, ResetCode, SeqNo, State};
use crate::gauge::EndpointProbe;
use crate::time::{Duration, Instant};

/// Longest round-trip time accepted from a Timestamp Echo.
const LONGEST_RTT: Duration = Duration::from_secs(240);

/// Option values of a packet that are not stored elsewhere.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Heard {
    /// NDP Count.
    pub(super) ndp: Option<u64>,
    /// Elapsed Time, or that of a Timestamp Echo.
    pub(super) elapsed: Option<Duration>,
    /// Round-trip time from a Timestamp Echo.
    pub(super) echo_rtt: Option<Duration>,
    /// Data Checksum.
    pub(super) checksum: Option<u32>,
    /// A Change or Confirm was present.
    negotiated: bool,
}

/// The Reset of a connection that ends because of its options.
pub(super) type Fatal = (ResetCode, [u8; 3]);

/// Time in units of 10 µs (§13.1).
fn ticks(units: u32) -> Duration {
    Duration::from_micros(u64::from(units) * 10)
}

/// §5.8.2, §5.6: the option that was not understood, as data of a Reset.
fn named(option: &Opt<'_>) -> [u8; 3] {
    let mut alone = super::Options::default();
    alone.push(*option);
    let bytes = alone.as_bytes();
    // Type and length are followed by the first two bytes of the value.
    let at = |index: usize| bytes.get(index).copied().unwrap_or(0);
    [at(0), at(2), at(3)]
}

/// The packet that carries the options.
#[derive(Clone, Copy, Debug)]
struct Place {
    seq: SeqNo,
    ack: Option<SeqNo>,
    /// The option must be understood.
    mandatory: bool,
}

impl Dccp {
    /// Step 8. `Err` has the Reset that ends the connection.
    pub(super) fn hear<P: EndpointProbe>(
        &mut self,
        now: Instant,
        packet: &Packet,
        (seq, ack): (SeqNo, Option<SeqNo>),
        probe: &mut P,
    ) -> Result<Heard, Fatal> {
        let mut heard = Heard::default();
        let on_data = packet.kind == Kind::Data;
        let mut place = Place { seq, ack, mandatory: false };
        for option in packet.options.iter() {
            let option = match option {
                Ok(option) => option,
                // §5.8: an invalid option is ignored, unless it must be understood.
                Err(bad) if place.mandatory => {
                    return Err((ResetCode::MANDATORY_ERROR, [bad.kind, 0, 0]));
                }
                Err(_) => continue,
            };
            // §5.8, table 3: options not allowed on Data packets are ignored there.
            if on_data && !is_for_data(&option) {
                continue;
            }
            match option {
                // §5.8.2: Mandatory must precede an option.
                Opt::Mandatory if place.mandatory => {
                    return Err((ResetCode::OPTION_ERROR, [1, 0, 0]));
                }
                Opt::Mandatory => place.mandatory = true,
                _ => {
                    if !self.hear_negotiation(now, &option, place, &mut heard, probe)? {
                        self.hear_other(now, &option, place.mandatory, &mut heard)?;
                    }
                    place.mandatory = false;
                }
            }
        }
        if place.mandatory {
            return Err((ResetCode::OPTION_ERROR, [1, 0, 0]));
        }
        if heard.negotiated {
            self.features.heard(seq);
        }
        // §8.1.4: kept until the server has shown that it is open.
        if matches!(packet.kind, Kind::Response { .. }) && self.state < State::Open {
            self.cookies.keep(&packet.options);
        }
        Ok(heard)
    }

    /// §6. True if the option is one of the four negotiation options.
    fn hear_negotiation<P: EndpointProbe>(
        &mut self,
        now: Instant,
        option: &Opt<'_>,
        place: Place,
        heard: &mut Heard,
        probe: &mut P,
    ) -> Result<bool, Fatal> {
        use Location::{Here, There};
        let Place { seq, ack, mandatory } = place;
        // §6.6.4: overtaken ones are ignored.
        let hears = self.features.hears(seq);
        let features = &mut self.features;
        let changed = match *option {
            Opt::ChangeL(_) | Opt::ChangeR(_) | Opt::ConfirmL(_) | Opt::ConfirmR(_) if !hears => {
                Ok(None)
            }
            Opt::ChangeL(value) => features.on_change(There, value, mandatory),
            Opt::ChangeR(value) => features.on_change(Here, value, mandatory),
            Opt::ConfirmL(value) => features.on_confirm(There, value, mandatory, ack),
            Opt::ConfirmR(value) => features.on_confirm(Here, value, mandatory, ack),
            _ => return Ok(false),
        };
        heard.negotiated = true;
        if let Some(changed) = changed.map_err(|code| (code, named(option)))? {
            self.on_feature(now, changed, probe);
        }
        Ok(true)
    }

    fn hear_other(
        &mut self,
        now: Instant,
        option: &Opt<'_>,
        mandatory: bool,
        heard: &mut Heard,
    ) -> Result<(), Fatal> {
        match *option {
            Opt::NdpCount(count) => heard.ndp = Some(count),
            Opt::Timestamp(timestamp) => self.echo = Some((timestamp, now)),
            Opt::TimestampEcho { timestamp, elapsed } => {
                let elapsed = ticks(elapsed);
                heard.elapsed.get_or_insert(elapsed);
                // §13.3
                let age = ticks(self.clock(now).wrapping_sub(timestamp));
                heard.echo_rtt = (age <= LONGEST_RTT).then(|| age.saturating_sub(elapsed));
            }
            Opt::ElapsedTime(units) => heard.elapsed = Some(ticks(units)),
            Opt::DataChecksum(crc) => heard.checksum = Some(crc),
            // RFC 6323 §3.3
            Opt::Ccid { kind: kind @ ccid_option::RTT_ESTIMATE, value }
                if !is_rtt_estimate(value)
                    && self.features.is_on(feature::SEND_RTT_ESTIMATE, Location::There) =>
            {
                let first = value.first().copied().unwrap_or(0);
                return Err((ResetCode::OPTION_ERROR, [kind, value.len() as u8 + 2, first]));
            }
            // §5.8.2
            _ if mandatory && !self.is_known(option) => {
                return Err((ResetCode::MANDATORY_ERROR, named(option)));
            }
            _ => {}
        }
        Ok(())
    }

    /// True for options that this end understands. §10.3: those from 128 belong to the half-connection whose
    /// sender is the other end, those from 192 to the half-connection whose sender is this end. CCID 2 has
    /// none.
    fn is_known(&self, option: &Opt<'_>) -> bool {
        match option {
            Opt::Unknown { .. } => false,
            Opt::Ccid { kind: ccid_option::RTT_ESTIMATE, .. } => {
                self.features.is_rate_based(Location::There)
            }
            Opt::Ccid { kind, .. } => {
                matches!(
                    *kind,
                    ccid_option::LOSS_EVENT_RATE
                        | ccid_option::LOSS_INTERVALS
                        | ccid_option::RECEIVE_RATE
                        | ccid_option::DROPPED_PACKETS
                ) && self.features.is_rate_based(Location::Here)
            }
            _ => true,
        }
    }
}

/// §5.8, table 3: options allowed on a Data packet.
const fn is_for_data(option: &Opt<'_>) -> bool {
    matches!(
        option,
        Opt::Padding
            | Opt::SlowReceiver
            | Opt::NdpCount(_)
            | Opt::Timestamp(_)
            | Opt::TimestampEcho { .. }
            | Opt::DataChecksum(_)
            | Opt::Ccid { .. }
            | Opt::Unknown { .. }
    )
}
