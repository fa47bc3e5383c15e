//! The options of CCID 3 and 4 as values: Loss Event Rate, Loss Intervals and Receive Rate (RFC
//! 4342 §8.3, §8.5, §8.6), Dropped Packets (RFC 5622 §8.7) and RTT Estimate (RFC 6323 §3). Only this
//! module converts between bytes and numbers.

use crate::dccp::options::{Malformed, Opt, Options, ccid_option};
use crate::octets::number;
use crate::time::Duration;

/// Largest three-byte number.
const MAX_24: u64 = (1 << 24) - 1;
/// Largest Loss Length: one bit of its three bytes is E (RFC 4342 §8.6.1).
const MAX_23: u64 = (1 << 23) - 1;
/// Bytes of one Loss Interval (RFC 4342 §8.6).
const INTERVAL_BYTES: usize = 9;
/// Bytes of one Drop Count (RFC 5622 §8.7).
const DROP_BYTES: usize = 3;
/// RFC 4342 §8.6: an option of 255 bytes holds 28 of them.
pub const MAX_INTERVALS: usize = 28;

/// A reported loss interval; numbers are saturated at the option's limits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LossInterval {
    /// Packets in its lossless part (Lossless Length).
    pub lossless_packets: u64,
    /// Packets in its lossy part (Loss Length).
    pub lossy_packets: u64,
    /// Data packets in both (Data Length, RFC 4342 §6.1.1).
    pub data_packets: u64,
}

impl LossInterval {
    /// Sequence numbers it spans (RFC 4342 §6.1.1: sequence length).
    #[must_use]
    pub const fn packets(&self) -> u64 {
        self.lossless_packets + self.lossy_packets
    }
}

/// What an acknowledgement of CCID 3 or 4 reports.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Feedback {
    /// Receive Rate, in bytes per second.
    pub receive_rate: Option<u64>,
    /// Loss Event Rate: p, 0 to 1.
    pub loss_event_rate: Option<f64>,
    /// Loss Intervals, latest first; the first is still open.
    pub intervals: Option<LossIntervals>,
    /// Dropped Packets: Drop Counts, latest interval first.
    pub drops: Vec<u64>,
}

/// The Loss Intervals option.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LossIntervals {
    /// Packets up to the acknowledged one that are not in an interval yet (Skip Length).
    pub skip_packets: u8,
    /// Intervals, latest first.
    pub intervals: Vec<LossInterval>,
}

/// The Loss Event Rate value of p: its inverse, rounded up; all ones for no loss (RFC 4342 §8.5).
#[must_use]
pub fn inverse(loss_event_rate: f64) -> u32 {
    if loss_event_rate <= 0.0 {
        return u32::MAX;
    }
    // The conversion to an integer saturates; all ones means no loss and is not a rate.
    ((1.0 / loss_event_rate.min(1.0)).ceil() as u32).min(u32::MAX - 1)
}

/// p of a Loss Event Rate option. Zero has no inverse; it is read as no loss, as in Linux.
#[must_use]
pub fn loss_event_rate(inverse: u32) -> f64 {
    match inverse {
        0 | u32::MAX => 0.0,
        inverse => 1.0 / f64::from(inverse),
    }
}

/// Appends Receive Rate, in bytes per second (RFC 4342 §8.3).
pub fn push_receive_rate(out: &mut Options, bytes_per_second: u64) {
    let value = u32::try_from(bytes_per_second).unwrap_or(u32::MAX).to_be_bytes();
    out.push(Opt::Ccid { kind: ccid_option::RECEIVE_RATE, value: &value });
}

/// Appends Loss Event Rate (RFC 4342 §8.5).
pub fn push_loss_event_rate(out: &mut Options, loss_event_rate: f64) {
    let value = inverse(loss_event_rate).to_be_bytes();
    out.push(Opt::Ccid { kind: ccid_option::LOSS_EVENT_RATE, value: &value });
}

/// Appends Loss Intervals, latest first; those beyond [`MAX_INTERVALS`] are omitted (RFC 4342
/// §8.6). The E bit is the nonce echo, always 0 since RFC 8311 §6.
pub fn push_loss_intervals(
    out: &mut Options,
    skip_packets: u8,
    intervals: impl Iterator<Item = LossInterval>,
) {
    let mut value = [0; 1 + MAX_INTERVALS * INTERVAL_BYTES];
    value[0] = skip_packets;
    let mut bytes = 1;
    let (places, _) = value[1..].as_chunks_mut::<INTERVAL_BYTES>();
    for (place, interval) in places.iter_mut().zip(intervals) {
        bytes += INTERVAL_BYTES;
        place[..3].copy_from_slice(&three(interval.lossless_packets));
        place[3..6].copy_from_slice(&three(interval.lossy_packets.min(MAX_23)));
        place[6..].copy_from_slice(&three(interval.data_packets));
    }
    out.push(Opt::Ccid { kind: ccid_option::LOSS_INTERVALS, value: &value[..bytes] });
}

/// Appends Dropped Packets, latest interval first (RFC 5622 §8.7).
pub fn push_dropped_packets(out: &mut Options, drops: impl Iterator<Item = u64>) {
    let value: Vec<u8> = drops.take(MAX_INTERVALS).flat_map(three).collect();
    out.push(Opt::Ccid { kind: ccid_option::DROPPED_PACKETS, value: &value });
}

/// Value of RTT Estimate (RFC 6323 §3.2.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RttEstimate {
    /// The sender's estimate.
    Number(Duration),
    /// There is none, or it is too large for the option.
    NoNumber,
}

/// Appends RTT Estimate in the shortest form (RFC 6323 §3.2.1): microseconds, rounded up and at least 1; 0
/// without an estimate, and the greatest number for larger estimates.
pub fn push_rtt_estimate(out: &mut Options, rtt: Option<Duration>) {
    let micros = rtt.map_or(0, |rtt| rtt.as_nanos().div_ceil(1000).max(1));
    let value = three(micros);
    let zeroes = value[..2].iter().take_while(|byte| **byte == 0).count();
    out.push(Opt::Ccid { kind: ccid_option::RTT_ESTIMATE, value: &value[zeroes..] });
}

/// True if an RTT Estimate value has one of the three forms (RFC 6323 §3.2.1).
#[must_use]
pub fn is_rtt_estimate(value: &[u8]) -> bool {
    (1..=3).contains(&value.len())
}

/// The RTT Estimate of a packet, if present.
#[must_use]
pub fn rtt_estimate(options: &Options) -> Option<RttEstimate> {
    if !options.may_have(ccid_option::RTT_ESTIMATE) {
        return None;
    }
    options.iter().find_map(|option| match option {
        Ok(Opt::Ccid { kind: ccid_option::RTT_ESTIMATE, value }) if is_rtt_estimate(value) => {
            Some(match number(value) {
                0 | MAX_24 => RttEstimate::NoNumber,
                micros => RttEstimate::Number(Duration::from_micros(micros)),
            })
        }
        _ => None,
    })
}

/// Reads the report of an acknowledgement from its options.
///
/// # Errors
/// [`Malformed`] for the first option with an invalid length or number; the whole report is then
/// unusable.
pub fn read(options: &Options) -> Result<Feedback, Malformed> {
    let mut feedback = Feedback::default();
    for option in options.iter() {
        let Opt::Ccid { kind, value } = option? else { continue };
        let word = || <[u8; 4]>::try_from(value).map(u32::from_be_bytes);
        match kind {
            ccid_option::RECEIVE_RATE => {
                let rate = word().map_err(|_| Malformed { kind })?;
                feedback.receive_rate = Some(rate.into());
            }
            ccid_option::LOSS_EVENT_RATE => {
                let inverse = word().map_err(|_| Malformed { kind })?;
                feedback.loss_event_rate = Some(loss_event_rate(inverse));
            }
            ccid_option::LOSS_INTERVALS => {
                let more = read_intervals(value).ok_or(Malformed { kind })?;
                match &mut feedback.intervals {
                    None => feedback.intervals = Some(more),
                    // RFC 4342 §8.6.1: a further option continues the previous one.
                    Some(told) if more.skip_packets == 0 => told.intervals.extend(more.intervals),
                    Some(_) => {}
                }
            }
            ccid_option::DROPPED_PACKETS => {
                let (counts, rest) = value.as_chunks::<DROP_BYTES>();
                if !rest.is_empty() {
                    return Err(Malformed { kind });
                }
                feedback.drops.extend(counts.iter().map(|count| number(count)));
            }
            _ => {}
        }
    }
    Ok(feedback)
}

fn read_intervals(value: &[u8]) -> Option<LossIntervals> {
    let (&skip_packets, rest) = value.split_first()?;
    let (chunks, rest) = rest.as_chunks::<INTERVAL_BYTES>();
    let intervals: Vec<_> = chunks
        .iter()
        .map(|chunk| LossInterval {
            lossless_packets: number(&chunk[..3]),
            lossy_packets: number(&chunk[3..6]) & MAX_23,
            data_packets: number(&chunk[6..]),
        })
        .collect();
    // RFC 4342 §6.1.1: data packets never outnumber packets, except in the first interval, whose
    // data length expresses the receive rate.
    let sane = intervals
        .iter()
        .all(|interval| interval.lossy_packets == 0 || interval.data_packets <= interval.packets());
    (rest.is_empty() && sane).then_some(LossIntervals { skip_packets, intervals })
}

fn three(number: u64) -> [u8; 3] {
    let bytes = number.min(MAX_24).to_be_bytes();
    [bytes[5], bytes[6], bytes[7]]
}
