//! Round-trip times from the reports of RTCP: RFC 3550 §6.4.1 and RFC 3611 §4.5, at the point of capture.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::rtcp::Report;

/// A round trip between the capture and one end of a call.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct RoundTrip {
    /// When the answer was captured.
    pub time_ns: u64,
    /// SSRC of the one whose report was answered.
    pub source: u32,
    /// SSRC of the one who answered.
    pub by: u32,
    /// The round-trip time.
    pub seconds: f64,
}

/// Round-trip times between the point of capture and the ends, from reports in the order of their capture, each
/// with its time.
///
/// A sender report with the NTP time that a report block names as LSR was captured at t1, the report block at
/// t2: the way to its sender and back took t2 − t1 − DLSR. In the same way a DLRR block answers a receiver
/// reference time (RFC 3611 §4.5). Captured where the answered report was sent, this is the round-trip time
/// A − LSR − DLSR of RFC 3550 §6.4.1; elsewhere on the path, the times to both ends add up to it. It has an
/// error of DLSR times the difference of the rates of two clocks. Negative times are left out, which that
/// error and clocks that jump can cause.
pub fn round_trips<'a>(rows: impl IntoIterator<Item = (u64, &'a Report)>) -> Vec<RoundTrip> {
    // When a time was sent; sender reports and reference times have the same clock.
    let mut sent: BTreeMap<(u32, u32), u64> = BTreeMap::new();
    let mut found = Vec::new();
    let mut answered = |sent: &BTreeMap<_, u64>, time_ns: u64, by, source, last, delay: u32| {
        let Some(at) = sent.get(&(source, last)).filter(|_| last != 0) else { return };
        let delay = (u64::from(delay) * 1_000_000_000) >> 16;
        if let Some(nanos) = time_ns.checked_sub(*at).and_then(|span| span.checked_sub(delay)) {
            found.push(RoundTrip { time_ns, source, by, seconds: nanos as f64 / 1e9 });
        }
    };
    for (time_ns, report) in rows {
        match report {
            Report::Sender { ssrc, blocks, .. } | Report::Receiver { ssrc, blocks } => {
                for block in blocks {
                    let (last, delay) = (block.last_sr, block.delay_since_last_sr);
                    answered(&sent, time_ns, *ssrc, block.ssrc, last, delay);
                }
                if let Report::Sender { info, .. } = report {
                    sent.insert((*ssrc, info.ntp.middle()), time_ns);
                }
            }
            Report::ReferenceTime { reporter, ntp } => {
                sent.insert((*reporter, ntp.middle()), time_ns);
            }
            Report::ReferenceDelay { reporter, ssrc, last_rr, delay_since_last_rr } => {
                answered(&sent, time_ns, *reporter, *ssrc, *last_rr, *delay_since_last_rr);
            }
            _ => {}
        }
    }
    found
}
