//! Durations on the air: IEEE 802.11-2016 §16 (HR/DSSS), §17 (OFDM), §18 (ERP) and §19 (HT).

use talkspurt_proto::time::Duration;
use talkspurt_scenario::model::{Cell, Standard};

/// Bytes of an acknowledgement and of CTS, including the FCS (§9.3.1.3, §9.3.1.4).
const ACK_BYTES: u64 = 14;
/// Bytes of RTS (§9.3.1.2).
const RTS_BYTES: u64 = 20;

const fn micros(micros: u64) -> Duration {
    Duration::from_nanos(micros * 1000)
}

/// A modulation of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// DSSS and CCK at this bit rate, with or without the short preamble.
    Dsss(u64, bool),
    /// OFDM at this index among the rates of 802.11g.
    Ofdm(usize),
    /// HT in mixed format at this MCS.
    Ht(usize),
}

/// Data bits of a symbol of 4 µs by OFDM rate (Table 17-4) and by MCS (Table 19-27).
const OFDM_BITS: [u64; 8] = [24, 36, 48, 72, 96, 144, 192, 216];
const HT_BITS: [u64; 8] = [26, 52, 78, 104, 156, 208, 234, 260];
/// The reference OFDM rate of an MCS when control rates are chosen (§10.7.10).
const HT_REFERENCE: [u64; 8] = [6, 12, 18, 24, 36, 48, 54, 54];
/// Added by ERP at the end of a frame for older decoders (§18.3.2.4).
const SIGNAL_EXTENSION: Duration = micros(6);

impl Mode {
    /// Duration of a frame of this length.
    #[must_use]
    pub fn airtime(self, bytes: u64) -> Duration {
        // 16 bits of service before the bytes, 6 of tail behind (§17.3.2.2).
        let symbols = |bits: u64| micros(4) * (16 + 8 * bytes + 6).div_ceil(bits);
        match self {
            // Preamble and header, then whole microseconds (§16.2.3.6).
            Self::Dsss(rate, short) => {
                preamble(rate, short) + micros((8 * bytes * 1_000_000).div_ceil(rate))
            }
            Self::Ofdm(at) => micros(20) + symbols(OFDM_BITS[at]) + SIGNAL_EXTENSION,
            // L-STF 8, L-LTF 8, L-SIG 4, HT-SIG 8, HT-STF 4, HT-LTF 4 (§19.3.2).
            Self::Ht(mcs) => micros(36) + symbols(HT_BITS[mcs]) + SIGNAL_EXTENSION,
        }
    }

    /// From the start of a frame until the receiver detects it (aRxPHYStartDelay).
    fn start_delay(self) -> Duration {
        match self {
            Self::Dsss(rate, short) => preamble(rate, short),
            Self::Ofdm(_) => micros(20),
            Self::Ht(_) => micros(28),
        }
    }
}

/// §16.2.2: 1 Mbit/s has only the long preamble.
const fn preamble(rate: u64, short: bool) -> Duration {
    micros(if short && rate > 1_000_000 { 96 } else { 192 })
}

/// One rate of data frames and its control frames.
#[derive(Clone, Copy, Debug)]
pub struct DataRate {
    /// Bits per second.
    pub bps: u64,
    /// Mode of the data frame.
    pub mode: Mode,
    /// Mode of its acknowledgement, and of the RTS and CTS before it.
    pub control: Mode,
    /// Duration of an acknowledgement or CTS.
    pub ack: Duration,
    /// Duration of RTS.
    pub rts: Duration,
    /// Timeout after an unanswered frame (§10.3.2.9).
    pub timeout: Duration,
}

/// The intervals of a cell.
#[derive(Clone, Debug)]
pub struct Timing {
    /// Slot time of the backoff.
    pub slot: Duration,
    /// Before a response.
    pub sifs: Duration,
    /// Before the backoff (§10.3.7).
    pub difs: Duration,
    /// Before the backoff after a frame received with errors (§10.3.7).
    pub eifs: Duration,
    /// Before the backoff of stations that were not part of a collision.
    pub after_collision: Duration,
    /// Rates of data frames, in ascending order.
    pub rates: Vec<DataRate>,
    /// Overhead of a data frame around an IP packet, in bytes.
    pub overhead: u64,
    /// Frame length above which RTS is sent.
    pub rts_threshold: u64,
}

impl Timing {
    /// The intervals of a cell.
    #[must_use]
    pub fn new(cell: &Cell) -> Self {
        let (slot, sifs) = match cell.standard {
            Standard::B => (micros(20), micros(10)),
            Standard::G | Standard::N => (micros(if cell.long_slot { 20 } else { 9 }), micros(10)),
        };
        let difs = sifs + slot * 2;
        let basic: Vec<u64> = cell.control_rates().iter().map(|rate| rate.as_bps()).collect();
        let lowest = control_mode(cell, cell.standard.control_rates()[0]);
        let rates = cell.standard.rates().iter().enumerate().map(|(at, &bps)| {
            let measured_by = match cell.standard {
                Standard::N => HT_REFERENCE[at] * 1_000_000,
                Standard::B | Standard::G => bps,
            };
            // §10.7.6.5.2: the highest basic rate not above the reference; if there is none, the lowest rate.
            let below = basic.iter().rev().find(|rate| **rate <= measured_by);
            let control = below.map_or(lowest, |rate| control_mode(cell, *rate));
            let mode = match cell.standard {
                Standard::B => Mode::Dsss(bps, cell.short_preamble),
                Standard::G => Mode::Ofdm(at),
                Standard::N => Mode::Ht(at),
            };
            let (ack, rts) = (control.airtime(ACK_BYTES), control.airtime(RTS_BYTES));
            let timeout = sifs + slot + control.start_delay();
            DataRate { bps, mode, control, ack, rts, timeout }
        });
        let rates = rates.collect();
        // MAC header 24, with QoS 26 (§9.3.2.1); LLC and SNAP 8 (RFC 1042); FCS 4.
        let header = if cell.standard == Standard::N { 26 } else { 24 };
        let overhead = header + 8 + 4;
        let rts_threshold = cell.rts_threshold.map_or(u64::MAX, |size| size.as_bytes());
        let eifs = sifs + lowest.airtime(ACK_BYTES) + difs;
        let after_collision = if cell.eifs_after_collision { eifs } else { difs };
        Self { slot, sifs, difs, eifs, after_collision, rates, overhead, rts_threshold }
    }
}

fn control_mode(cell: &Cell, bps: u64) -> Mode {
    match cell.standard {
        Standard::B => Mode::Dsss(bps, cell.short_preamble),
        Standard::G | Standard::N => {
            let rates = Standard::G.rates();
            Mode::Ofdm(rates.iter().position(|rate| *rate == bps).unwrap_or(0))
        }
    }
}

/// Bytes of an acknowledgement and of RTS, for their error probabilities.
pub(super) const fn control_bytes() -> (u64, u64) {
    (ACK_BYTES, RTS_BYTES)
}
