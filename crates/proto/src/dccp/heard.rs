//! The options of a packet are heard (RFC 4340 §5.8, §8.5 step 8): feature negotiation, timestamps,
//! and what is handed on to the half-connections.

use super::options::{Feature, Opt, ccid_option};
use super::{Dccp, Kind, Location, Packet, ResetCode, SeqNo};
use crate::time::{Duration, Instant};

/// Longest round-trip time a Timestamp Echo is believed about.
const LONGEST_RTT: Duration = Duration::from_secs(240);

/// What options said that is not kept elsewhere.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Heard {
    /// NDP Count.
    pub(super) ndp: Option<u64>,
    /// Elapsed Time, or that of a Timestamp Echo.
    pub(super) elapsed: Option<Duration>,
    /// The round-trip time a Timestamp Echo gives.
    pub(super) echo_rtt: Option<Duration>,
    /// Data Checksum.
    pub(super) checksum: Option<u32>,
    /// A Change or Confirm was among them.
    negotiated: bool,
}

/// Why a packet's options end the connection.
pub(super) type Fatal = (ResetCode, [u8; 3]);

/// Time in units of 10 µs (§13.1).
fn ticks(units: u32) -> Duration {
    Duration::from_micros(u64::from(units) * 10)
}

/// §5.8.2, §5.6: the option that was not understood, as the Data of a Reset.
fn named(option: &Opt<'_>) -> [u8; 3] {
    let mut alone = super::Options::default();
    alone.push(*option);
    let bytes = alone.as_bytes();
    // Behind type and length come the first two bytes of its value.
    let at = |index: usize| bytes.get(index).copied().unwrap_or(0);
    [at(0), at(2), at(3)]
}

impl Dccp {
    /// Step 8. `Err` says with which Reset the connection ends.
    pub(super) fn hear(
        &mut self,
        now: Instant,
        packet: &Packet,
        seq: SeqNo,
        ack: Option<SeqNo>,
    ) -> Result<Heard, Fatal> {
        let mut heard = Heard::default();
        let on_data = packet.kind == Kind::Data;
        let mut mandatory = false;
        for option in packet.options.iter() {
            let option = match option {
                Ok(option) => option,
                // §5.8: an option that makes no sense is ignored, unless it must be understood.
                Err(bad) if mandatory => {
                    return Err((ResetCode::MANDATORY_ERROR, [bad.kind, 0, 0]));
                }
                Err(_) => continue,
            };
            // §5.8, table 3: what a Data packet may not bear is ignored there.
            if on_data && !is_for_data(&option) {
                continue;
            }
            match option {
                // §5.8.2: Mandatory must stand before an option.
                Opt::Mandatory if mandatory => return Err((ResetCode::OPTION_ERROR, [1, 0, 0])),
                Opt::Mandatory => mandatory = true,
                _ => {
                    self.hear_option(now, &option, mandatory, seq, ack, &mut heard)?;
                    mandatory = false;
                }
            }
        }
        if mandatory {
            return Err((ResetCode::OPTION_ERROR, [1, 0, 0]));
        }
        if heard.negotiated {
            self.features.heard(seq);
        }
        Ok(heard)
    }

    fn hear_option(
        &mut self,
        now: Instant,
        option: &Opt<'_>,
        mandatory: bool,
        seq: SeqNo,
        ack: Option<SeqNo>,
        heard: &mut Heard,
    ) -> Result<(), Fatal> {
        use Location::{Here, There};
        match *option {
            Opt::ChangeL(value) => {
                self.hear_change(now, There, value, mandatory, seq, option, heard)
            }
            Opt::ChangeR(value) => {
                self.hear_change(now, Here, value, mandatory, seq, option, heard)
            }
            Opt::ConfirmL(value) => {
                self.hear_confirm(now, There, value, mandatory, (seq, ack), option, heard)
            }
            Opt::ConfirmR(value) => {
                self.hear_confirm(now, Here, value, mandatory, (seq, ack), option, heard)
            }
            _ => self.hear_other(now, packet_is_known(option), option, mandatory, heard),
        }
    }

    #[expect(clippy::too_many_arguments, reason = "an option and where it stood")]
    fn hear_change(
        &mut self,
        now: Instant,
        at: Location,
        value: Feature<'_>,
        mandatory: bool,
        seq: SeqNo,
        option: &Opt<'_>,
        heard: &mut Heard,
    ) -> Result<(), Fatal> {
        heard.negotiated = true;
        // §6.6.4
        if !self.features.hears(seq) {
            return Ok(());
        }
        let changed = self.features.on_change(at, value, mandatory);
        if let Some((number, at)) = changed.map_err(|code| (code, named(option)))? {
            self.on_feature(now, number, at);
        }
        Ok(())
    }

    #[expect(clippy::too_many_arguments, reason = "an option and where it stood")]
    fn hear_confirm(
        &mut self,
        now: Instant,
        at: Location,
        value: Feature<'_>,
        mandatory: bool,
        (seq, ack): (SeqNo, Option<SeqNo>),
        option: &Opt<'_>,
        heard: &mut Heard,
    ) -> Result<(), Fatal> {
        heard.negotiated = true;
        if !self.features.hears(seq) {
            return Ok(());
        }
        let changed = self.features.on_confirm(at, value, mandatory, ack);
        if let Some((number, at)) = changed.map_err(|code| (code, named(option)))? {
            self.on_feature(now, number, at);
        }
        Ok(())
    }

    fn hear_other(
        &mut self,
        now: Instant,
        known: bool,
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
            // §8.1.4: kept until the server has shown that it is open.
            Opt::InitCookie(cookie) if !self.server => {
                self.cookies.echoed = Some(cookie.to_vec());
            }
            // §5.8.2
            _ if mandatory && !known => {
                return Err((ResetCode::MANDATORY_ERROR, named(option)));
            }
            _ => {}
        }
        Ok(())
    }
}

/// True for options that somebody in here understands.
fn packet_is_known(option: &Opt<'_>) -> bool {
    match option {
        Opt::Unknown { .. } => false,
        Opt::Ccid { kind, .. } => matches!(
            *kind,
            ccid_option::RTT_ESTIMATE
                | ccid_option::LOSS_EVENT_RATE
                | ccid_option::LOSS_INTERVALS
                | ccid_option::RECEIVE_RATE
                | ccid_option::DROPPED_PACKETS
        ),
        _ => true,
    }
}

/// §5.8, table 3: what may stand on a Data packet.
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
