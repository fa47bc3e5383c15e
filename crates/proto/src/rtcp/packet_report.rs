//! Reports on individual RTP packets: the type that media controllers take, and both ends of RFC 8888,
//! whose reports provide the data.

use std::collections::VecDeque;

use super::congestion::{ArrivalOffset, CongestionControl, LARGEST_OFFSET, Metric, Stream};
use super::ntp::NtpTime;
use crate::packet::Ecn;
use crate::time::Instant;

/// Maximum packets that either end remembers: half of the sequence numbers.
const MAX_PACKETS: usize = 1 << 15;
/// Reported packets kept, to be reported again with a late one.
const KEPT_REPORTED: usize = 1 << 10;

/// Report on one packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PacketReport {
    /// Its number in sending order, which does not wrap.
    pub sequence: u64,
    /// When it was sent.
    pub sent: Instant,
    /// When it arrived, by the receiver's clock, whose origin is arbitrary: only differences are
    /// meaningful. `None` if it is not known to have arrived.
    pub arrived: Option<Instant>,
    /// True if it arrived at a time that the report does not contain.
    pub arrived_untimed: bool,
    /// Its ECN field as it arrived.
    pub ecn: Ecn,
    /// Its size in bytes, as the sender counts it.
    pub bytes: u32,
}

/// A packet that was sent.
#[derive(Clone, Copy, Debug)]
struct Sent {
    at: Instant,
    bytes: u32,
}

/// Sender state for the packets of one stream.
#[derive(Clone, Debug, Default)]
pub struct SentPackets {
    /// Number of the first one remembered.
    first: u64,
    packets: VecDeque<Option<Sent>>,
    /// The latest report timestamp, unwrapped, in 1/65536 s.
    clock: Option<u64>,
}

impl SentPackets {
    /// Records a sent packet. Sequence numbers ascend; gaps were not sent.
    pub fn on_sent(&mut self, now: Instant, sequence: u16, bytes: u32) {
        if self.packets.is_empty() {
            self.first = first(sequence);
        }
        let next = self.first + self.packets.len() as u64;
        let number = near(next, sequence);
        if number < next {
            return;
        }
        let skipped = (number - next) as usize;
        if skipped >= MAX_PACKETS {
            self.packets.clear();
            self.first = number;
        } else {
            self.packets.extend(std::iter::repeat_n(None, skipped));
        }
        self.packets.push_back(Some(Sent { at: now, bytes }));
        while self.packets.len() > MAX_PACKETS {
            self.packets.pop_front();
            self.first += 1;
        }
    }

    /// A report's entries for this stream's packets, in sending order. Forgotten packets are
    /// omitted.
    pub fn on_report(&mut self, report: &CongestionControl, ssrc: u32) -> Vec<PacketReport> {
        let clock = self.unwrap(report.timestamp);
        let streams = report.streams.iter().filter(|stream| stream.ssrc == ssrc);
        let mut reports = Vec::new();
        for stream in streams {
            for (sequence, metric) in stream.packets() {
                let number = near(self.first + self.packets.len() as u64, sequence);
                let Some(place) = number.checked_sub(self.first) else { continue };
                let Some(Some(sent)) = self.packets.get(place as usize) else { continue };
                let (ecn, arrival) = match metric {
                    Metric::NotReceived => (Ecn::NotEct, None),
                    Metric::Received { ecn, arrival } => (ecn, Some(arrival)),
                };
                let arrived = match arrival {
                    Some(ArrivalOffset::Known(offset)) => Some(instant(clock, offset)),
                    _ => None,
                };
                reports.push(PacketReport {
                    sequence: number,
                    sent: sent.at,
                    arrived,
                    arrived_untimed: arrival.is_some() && arrived.is_none(),
                    ecn,
                    bytes: sent.bytes,
                });
            }
        }
        reports
    }

    /// The unwrapped report timestamp.
    fn unwrap(&mut self, timestamp: u32) -> u64 {
        let clock = match self.clock {
            // Large enough for any offset.
            None => 1 << 32 | u64::from(timestamp),
            Some(last) => {
                let ahead = timestamp.wrapping_sub(last as u32) as i32;
                last.saturating_add_signed(ahead.into())
            }
        };
        self.clock = Some(self.clock.map_or(clock, |last| last.max(clock)));
        clock
    }
}

/// A number whose low 16 bits are a sequence number; not the smallest one.
fn first(sequence: u16) -> u64 {
    1 << 16 | u64::from(sequence)
}

/// The number nearest to another whose low 16 bits are the sequence number.
fn near(number: u64, sequence: u16) -> u64 {
    let distance = sequence.wrapping_sub(number as u16) as i16;
    number.saturating_add_signed(distance.into())
}

/// A report's clock less an offset of 1/1024 s.
fn instant(clock: u64, offset: u16) -> Instant {
    let units = clock - (u64::from(offset) << 6);
    Instant::from_nanos(((u128::from(units) * 1_000_000_000) >> 16) as u64)
}

/// A packet that arrived.
#[derive(Clone, Copy, Debug)]
struct Received {
    at: Instant,
    ecn: Ecn,
}

/// Receiver state for the packets of one stream, for its reports.
#[derive(Clone, Debug, Default)]
pub struct ReceivedPackets {
    /// Number of the first one remembered, and of the first one to report.
    first: u64,
    begin: u64,
    packets: VecDeque<Option<Received>>,
}

impl ReceivedPackets {
    /// Records an arrival. Only the first copy counts, but a CE mark on any (RFC 8888 §3.1).
    pub fn on_packet(&mut self, now: Instant, sequence: u16, ecn: Ecn) {
        if self.packets.is_empty() {
            self.first = first(sequence);
            self.begin = self.first;
        }
        let number = near(self.first + self.packets.len() as u64, sequence);
        let Some(place) = number.checked_sub(self.first) else {
            // Older than the packets remembered.
            return;
        };
        let place = place as usize;
        if place >= 2 * MAX_PACKETS {
            // No report for a long time.
            *self = Self::default();
            return self.on_packet(now, sequence, ecn);
        }
        if place >= self.packets.len() {
            self.packets.resize(place + 1, None);
        }
        match &mut self.packets[place] {
            Some(first) if ecn == Ecn::Ce => first.ecn = Ecn::Ce,
            Some(_) => {}
            none => *none = Some(Received { at: now, ecn }),
        }
        // Late packets are reported with their neighbours.
        self.begin = self.begin.min(number);
    }

    /// A report block on the packets since the last one, at most `most`; `None` if there are none.
    pub fn report(&mut self, now: Instant, ssrc: u32, most: usize) -> Option<Stream> {
        let skip = (self.begin - self.first) as usize;
        let metrics: Vec<_> =
            self.packets.iter().skip(skip).take(most).map(|packet| metric(now, *packet)).collect();
        if metrics.is_empty() {
            return None;
        }
        let begin = self.begin as u16;
        self.begin += metrics.len() as u64;
        let reported = (self.begin - self.first) as usize;
        for _ in 0..reported.saturating_sub(KEPT_REPORTED).min(self.packets.len() - 1) {
            self.packets.pop_front();
            self.first += 1;
        }
        Some(Stream { ssrc, begin, metrics })
    }
}

/// The report timestamp for an instant of the clock of sender reports.
#[must_use]
pub const fn timestamp(time: NtpTime) -> u32 {
    (time.0 >> 16) as u32
}

fn metric(now: Instant, packet: Option<Received>) -> Metric {
    let Some(Received { at, ecn }) = packet else { return Metric::NotReceived };
    let age = now.saturating_since(at).as_nanos();
    let units = age * 1024 / 1_000_000_000;
    let arrival = if at > now {
        ArrivalOffset::Unavailable
    } else if units > u64::from(LARGEST_OFFSET) {
        ArrivalOffset::OverRange
    } else {
        ArrivalOffset::Known(units as u16)
    };
    Metric::Received { ecn, arrival }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SSRC: u32 = 9;

    fn at(milliseconds: u64) -> Instant {
        Instant::from_nanos(milliseconds * 1_000_000)
    }

    /// A report of all that came, as it is read at the other end; the receiver's clock is 100 s ahead.
    fn report(received: &mut ReceivedPackets, now: Instant) -> CongestionControl {
        let stream = received.report(now, SSRC, 1000);
        let clock = (100 << 16) + (u128::from(now.as_nanos()) << 16) as u64 / 1_000_000_000;
        CongestionControl { streams: stream.into_iter().collect(), timestamp: clock as u32 }
    }

    /// Packets 65534 to 3 leave 20 ms apart and arrive 40 ms later but for two: 0 is lost, 2 comes late, after
    /// a report.
    #[test]
    fn reports_are_joined_with_what_was_sent() {
        let (mut sent, mut received) = (SentPackets::default(), ReceivedPackets::default());
        let sequence = |count: u64| 65_534_u16.wrapping_add(count as u16);
        for count in 0..6 {
            sent.on_sent(at(20 * count), sequence(count), 100 + count as u32);
        }
        for count in [0, 1, 3, 5] {
            let ecn = if count == 3 { Ecn::Ce } else { Ecn::Ect0 };
            received.on_packet(at(20 * count + 40), sequence(count), ecn);
        }
        // A copy changes nothing; a marked one would.
        received.on_packet(at(150), sequence(1), Ecn::Ect0);
        let first = sent.on_report(&report(&mut received, at(150)), SSRC);
        let known = |reports: &[PacketReport]| -> Vec<_> {
            let one = |one: &PacketReport| (one.bytes - 100, one.arrived.is_some(), one.ecn);
            reports.iter().map(one).collect()
        };
        use Ecn::{Ce, Ect0, NotEct};
        assert_eq!(
            known(&first),
            [
                (0, true, Ect0),
                (1, true, Ect0),
                (2, false, NotEct),
                (3, true, Ce),
                (4, false, NotEct),
                (5, true, Ect0)
            ]
        );
        // The spacing of arrivals is kept, to 1/1024 s.
        let arrived = |count: usize| first[count].arrived.unwrap();
        for (earlier, later, apart) in [(0, 1, 20), (1, 3, 40), (3, 5, 40)] {
            let measured = (arrived(later) - arrived(earlier)).as_nanos();
            assert!(measured.abs_diff(apart * 1_000_000) <= 1_000_000, "{measured}");
        }
        assert!(first.windows(2).all(|pair| pair[1].sequence == pair[0].sequence + 1));
        assert_eq!(first[5].sent, at(100));
        // The late one is reported with its successors, which are reported as before.
        received.on_packet(at(160), sequence(4), Ect0);
        let second = sent.on_report(&report(&mut received, at(170)), SSRC);
        assert_eq!(known(&second), [(4, true, Ect0), (5, true, Ect0)]);
        assert_eq!(second[1].sequence, first[5].sequence);
        assert!(received.report(at(180), SSRC, 10).is_none(), "nothing new");
        // Another stream's report does not affect this one.
        assert!(sent.on_report(&report(&mut received, at(190)), 8).is_empty());
    }

    /// RFC 8888 §3.1: arrivals 8 s ago and more are over range, and a mark on a copy counts.
    #[test]
    fn arrivals_that_cannot_be_told() {
        let (mut sent, mut received) = (SentPackets::default(), ReceivedPackets::default());
        (0..3).for_each(|count| sent.on_sent(at(count), count as u16, 100));
        received.on_packet(at(0), 0, Ecn::Ect0);
        received.on_packet(at(10), 0, Ecn::Ce);
        received.on_packet(at(9000), 2, Ecn::NotEct);
        let reports = sent.on_report(&report(&mut received, at(9000)), SSRC);
        let told: Vec<_> =
            reports.iter().map(|one| (one.arrived.is_some(), one.arrived_untimed)).collect();
        assert_eq!(told, [(false, true), (false, false), (true, false)]);
        assert_eq!(reports[0].ecn, Ecn::Ce);
    }

    /// Hours of a stream: numbers and clocks wrap, memory does not grow.
    #[test]
    fn long_streams_wrap_and_forget() {
        let (mut sent, mut received) = (SentPackets::default(), ReceivedPackets::default());
        let mut next = 0;
        let mut last = None;
        for count in 0..400_000_u64 {
            let now = at(20 * count);
            sent.on_sent(now, count as u16, 100);
            received.on_packet(now, count as u16, Ecn::NotEct);
            if count % 100 == 99 {
                for one in sent.on_report(&report(&mut received, now), SSRC) {
                    assert_eq!(one.sent, at(20 * next));
                    let apart = last.map(|last: Instant| (one.arrived.unwrap() - last).as_nanos());
                    assert!(
                        apart.is_none_or(|apart: u64| apart.abs_diff(20_000_000) < 1_100_000),
                        "{apart:?}"
                    );
                    (next, last) = (next + 1, one.arrived);
                }
            }
        }
        assert_eq!(next, 400_000);
        assert!(sent.packets.len() <= MAX_PACKETS && received.packets.len() <= KEPT_REPORTED + 100);
    }
}
