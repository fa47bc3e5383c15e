//! Limits that every kind of source keeps to: packets that fit, units that can be counted, distributions with a
//! mean.

use talkspurt_app::file::Files;
use talkspurt_app::source::Distribution;
use talkspurt_proto::external::Kind;
use talkspurt_proto::time::Duration;
use talkspurt_proto::units::{Rate, Size};

use crate::model::{Flow, IpVersion, Sizing, Transport};
use crate::path::Path;
use crate::problem::Findings;

/// RFC 4571 §2: the length before a frame on a stream has 16 bits.
const LONGEST_FRAME: u64 = 65_535;
/// Longest plausible processing noise and playout buffer.
pub(super) const MAX_NOISE: Duration = Duration::from_secs(1);
pub(super) const MAX_BUFFER: Duration = Duration::from_secs(60);
/// Shortest mean of talk and silence durations.
pub(super) const MIN_SPURT: Duration = Duration::from_millis(1);
/// Units of one source in a run: fewer than 2^32, even with a clock that gains 1 %.
const MAX_UNITS: u128 = 4_000_000_000;
/// Widest lognormal: beyond it, the mean depends on draws that no run makes.
const MAX_SIGMA: f64 = 5.0;

/// One side of a flow: the context for checking its source.
pub(super) struct Side<'a> {
    pub(super) path: Path,
    pub(super) flow: &'a Flow,
    pub(super) files: &'a dyn Files,
    pub(super) run: Duration,
    /// Minimum MTU and rate on its route, if there is one.
    pub(super) least: Option<(Size, Rate)>,
    /// Bytes of the header extension in each of its RTP packets.
    pub(super) extension: u64,
}

impl Side<'_> {
    /// A source that sends packets of one size at a fixed rate.
    pub(super) fn clocked(&self, rate: Rate, packet: Size, found: &mut Findings) {
        self.fits(packet.as_bytes(), 0, found);
        if packet.as_bytes() == 0 {
            found.add(self.path.key("packet"), "a packet of 0 bytes carries nothing");
            return;
        }
        let (path, run) = (self.path.key("rate"), self.run);
        match rate.time_for(packet.as_bytes()) {
            None => {
                found.add(path, "at rate 0 nothing is ever sent");
            }
            Some(interval) if interval > run => {
                let message = format!(
                    "at {rate} a packet of {packet} leaves every {interval}, longer than the run ({run})"
                );
                found.add(path, message);
            }
            Some(interval) if run < Duration::MAX => {
                countable(path, (self.lasts().as_nanos() / interval.as_nanos()).into(), found);
            }
            Some(_) => {}
        }
    }

    /// The maximum sending time of the source.
    pub(super) fn lasts(&self) -> Duration {
        self.flow.stop.unwrap_or(self.run).min(self.run).saturating_sub(self.flow.start)
    }

    /// The frame must fit a datagram, or a stream with a `prefix`.
    pub(super) fn fits(&self, frame: u64, prefix: u64, found: &mut Findings) {
        self.fits_at(self.path.key("packet"), frame, prefix, found);
    }

    /// The same, reported for the field at `path`.
    pub(super) fn fits_at(&self, path: Path, frame: u64, prefix: u64, found: &mut Findings) {
        let frame = frame + self.extension;
        if frame > LONGEST_FRAME {
            let message = format!("{frame} bytes do not fit a frame of 65535 (RFC 4571 §2)");
            found.add(path, message);
            return;
        }
        if let Transport::Tcp(tcp) = &self.flow.transport {
            let size = tcp.send_buffer;
            if frame + prefix > size.as_bytes() {
                let message =
                    format!("{frame} bytes never fit TCP's send_buffer ({size}), so none is sent");
                found.add(path, message);
                return;
            }
        }
        if let Transport::Sctp(sctp) = &self.flow.transport
            && frame > sctp.send_buffer.as_bytes().min(sctp.receive_buffer.as_bytes())
        {
            let message = format!("{frame} bytes never fit SCTP's buffers, so none is sent");
            found.add(path, message);
            return;
        }
        if self.flow.transport.is_stream() {
            return;
        }
        let kind = match &self.flow.transport {
            Transport::External(config) => config.kind(),
            _ => None,
        };
        if let Some(kind) = kind.filter(|kind| frame > kind.max_message as u64) {
            let Kind { name, max_message, .. } = kind;
            let message = format!(
                "{frame} bytes are longer than {name} takes ({max_message}B), so none is sent"
            );
            found.add(path, message);
            return;
        }
        let own = self.flow.transport.max_header_bytes();
        let headers: u64 = match (self.flow.sizing, &self.flow.transport, self.flow.ip) {
            (Sizing::Ns2, Transport::Udp(_), _) => 0,
            (Sizing::Ns2, ..) => 32,
            (Sizing::Rfc, _, IpVersion::V4) => (20 + own).into(),
            (Sizing::Rfc, _, IpVersion::V6) => (40 + own).into(),
        };
        let Some((mtu, _)) = self.least else { return };
        let mtu = kind.map_or(mtu, |kind| kind.mtu.min(mtu));
        if frame + headers > mtu.as_bytes() {
            if let Transport::Sctp(sctp) = &self.flow.transport {
                // RFC 9260 §6.9: fragmented for the configured MTU, and never again.
                if sctp.mtu > mtu {
                    let message = format!(
                        "{frame} bytes are cut into chunks for an MTU of {}, and chunks are not cut again for the least on the way ({mtu}) (RFC 9260 §6.9)",
                        sctp.mtu
                    );
                    found.add(path, message).hint(format!("set transport.mtu to {mtu} or less"));
                }
                return;
            }
            let protocol = self.flow.transport.protocol();
            let message = format!(
                "{frame} bytes and {headers} of headers do not fit the least MTU on the way ({mtu}), and {protocol} is not fragmented"
            );
            found.add(path, message);
        }
    }
}

/// A distribution must have a mean.
pub(super) fn spread(path: &Path, spread: Distribution, found: &mut Findings) {
    match spread {
        Distribution::Exponential | Distribution::Constant => {}
        Distribution::Pareto { shape } if shape.is_finite() && shape > 1.0 => {}
        Distribution::Pareto { shape } => {
            let message = format!("{shape} is no shape: at 1 and below a Pareto tail has no mean");
            found.add(path.key("shape"), message).hint("1.5 is usual".to_owned());
        }
        Distribution::Lognormal { sigma } if sigma > 0.0 && sigma <= MAX_SIGMA => {}
        Distribution::Lognormal { sigma } => {
            let message = format!("{sigma} is no deviation here: above 0 and at most {MAX_SIGMA}");
            found.add(path.key("sigma"), message);
        }
    }
}

/// Alternating talk and silence: very short ones are inaudible and take endless draws.
pub(super) fn spurts(
    path: &Path,
    on: Duration,
    off: Duration,
    how: Distribution,
    found: &mut Findings,
) {
    for (key, mean) in [("on", on), ("off", off)] {
        if mean < MIN_SPURT {
            let message = format!("{mean} is too short a mean for talk or silence: at least 1ms");
            found.add(path.key(key), message);
        }
    }
    spread(&path.key("spread"), how, found);
}

/// Units have 32-bit numbers.
pub(super) fn countable(path: Path, units: u128, found: &mut Findings) {
    if units > MAX_UNITS {
        let message = format!(
            "makes up to {units} packets in the run; at most {MAX_UNITS} can be told apart"
        );
        let hint = "larger packets, a shorter run or an earlier `stop` make fewer".to_owned();
        found.add(path, message).hint(hint);
    }
}
