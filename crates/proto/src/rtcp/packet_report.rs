//! Reports on individual RTP packets: the type that media controllers take, and both ends of RFC 8888 and of
//! transport-wide feedback, whose reports provide the data. For transport-wide feedback all packets are one
//! stream of SSRC 0, with the low 16 bits of their numbers in sending order.

use std::collections::VecDeque;

use super::congestion::{ArrivalOffset, CongestionControl, LARGEST_OFFSET, Metric, Stream};
use super::ntp::NtpTime;
use super::transport_wide::{self, Builder, TransportWide};
use crate::packet::Ecn;
use crate::time::{Duration, Instant};

/// Maximum packets that either end remembers: half of the sequence numbers.
const MAX_PACKETS: usize = 1 << 15;
/// Reported packets kept, to be reported again with a late one.
const KEPT_REPORTED: usize = 1 << 10;
/// Lost packets before the first that arrived, in libwebrtc's transport-wide feedback.
const MAX_LOST: u64 = 0x7ffe;
/// Streams of a session that are reported; an attacker may send any number.
pub const MAX_STREAMS: usize = 256;

/// Report on one packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PacketReport {
    /// The SSRC of its stream.
    pub stream: u32,
    /// Its number in sending order among all streams, which does not wrap.
    pub sequence: u64,
    /// When it was sent.
    pub sent: Instant,
    /// When it arrived, by the receiver's clock, whose origin is arbitrary: only differences are
    /// meaningful. `None` if it is not known to have arrived.
    pub arrived: Option<Instant>,
    /// True if it arrived at a time that the report does not contain.
    pub arrived_untimed: bool,
    /// It was reported before.
    pub again: bool,
    /// An earlier report said that it arrived.
    pub arrived_before: bool,
    /// The probe in which it left.
    pub probe: Option<u32>,
    /// Its ECN field as it arrived.
    pub ecn: Ecn,
    /// Its size in bytes, as the sender counts it.
    pub bytes: u32,
}

/// A packet that was sent.
#[derive(Clone, Copy, Debug)]
struct Sent {
    number: u64,
    at: Instant,
    bytes: u32,
    probe: Option<u32>,
    is_reported: bool,
    has_arrived: bool,
}

impl Sent {
    /// The entry of a report; `arrival` is when it arrived, if that is known, if it arrived.
    fn report(&mut self, stream: u32, ecn: Ecn, arrival: Option<Option<Instant>>) -> PacketReport {
        let arrived = arrival.flatten();
        let arrived_before = self.has_arrived;
        self.has_arrived |= arrival.is_some();
        PacketReport {
            stream,
            sequence: self.number,
            sent: self.at,
            arrived,
            arrived_untimed: arrival.is_some() && arrived.is_none(),
            again: std::mem::replace(&mut self.is_reported, true),
            arrived_before,
            probe: self.probe,
            ecn,
            bytes: self.bytes,
        }
    }
}

/// Packets of one stream that were sent.
#[derive(Clone, Debug)]
struct SentStream {
    ssrc: u32,
    /// Number of the first one remembered, by its stream's sequence numbers.
    first: u64,
    packets: VecDeque<Option<Sent>>,
}

/// Sender state for the packets of a session.
#[derive(Clone, Debug, Default)]
pub struct SentPackets {
    streams: Vec<SentStream>,
    /// Number of the next packet in sending order.
    next: u64,
    /// The latest report timestamp, unwrapped, in 1/65536 s; or reference time, in 64 ms.
    clock: Option<u64>,
}

impl SentPackets {
    /// Number of the next packet in sending order.
    #[must_use]
    pub const fn next_number(&self) -> u64 {
        self.next
    }

    /// Records a sent packet, of a probe or not, and returns its number in sending order. Sequence numbers of a
    /// stream ascend; gaps were not sent.
    pub fn on_sent(
        &mut self,
        now: Instant,
        ssrc: u32,
        sequence: u16,
        bytes: u32,
        probe: Option<u32>,
    ) -> u64 {
        let number = self.next;
        self.next += 1;
        let sent = Sent { number, at: now, bytes, probe, is_reported: false, has_arrived: false };
        match self.streams.iter_mut().find(|stream| stream.ssrc == ssrc) {
            Some(stream) => stream.add(sequence, sent),
            None => self.streams.push(SentStream {
                ssrc,
                first: first(sequence),
                packets: VecDeque::from([Some(sent)]),
            }),
        }
        number
    }

    /// The entries of a report that arrived at `now` for packets of the session, in sending order, and the
    /// round trip of the newest that arrived, without the time for which the receiver held the report back.
    /// Forgotten packets are omitted.
    pub fn on_report(
        &mut self,
        now: Instant,
        report: &CongestionControl,
    ) -> (Vec<PacketReport>, Option<Duration>) {
        let clock = self.unwrap(report.timestamp, 32);
        let mut reports = Vec::new();
        for reported in &report.streams {
            let stream = self.streams.iter_mut().find(|it| it.ssrc == reported.ssrc);
            let Some(stream) = stream else { continue };
            for (sequence, metric) in reported.packets() {
                let Some(sent) = stream.packet(sequence) else { continue };
                let (ecn, arrival) = match metric {
                    Metric::NotReceived => (Ecn::NotEct, None),
                    Metric::Received { ecn, arrival } => (ecn, Some(arrival)),
                };
                let arrival = arrival.map(|arrival| match arrival {
                    ArrivalOffset::Known(offset) => Some(instant(clock, offset)),
                    _ => None,
                });
                reports.push(sent.report(reported.ssrc, ecn, arrival));
            }
        }
        if report.streams.len() > 1 {
            reports.sort_unstable_by_key(|report| report.sequence);
        }
        let newest = reports.iter().rev().find_map(|it| Some((it.sent, it.arrived?)));
        let rtt = newest.map(|(sent, arrived)| {
            let held = instant(clock, 0).saturating_since(arrived);
            now.saturating_since(sent).saturating_sub(held)
        });
        (reports, rtt)
    }

    /// The same for transport-wide feedback. It does not tell when it left: the round trip contains the time
    /// for which the receiver held it back.
    pub fn on_transport_wide(
        &mut self,
        now: Instant,
        report: &TransportWide,
    ) -> (Vec<PacketReport>, Option<Duration>) {
        let clock = self.unwrap(report.reference_time, transport_wide::REFERENCE_BITS);
        let stream = self.streams.iter_mut().find(|it| it.ssrc == 0);
        let Some(stream) = stream else { return Default::default() };
        let mut reports = Vec::new();
        let mut newest = None;
        for (sequence, arrival) in report.packets(report.arrivals_us()) {
            let Some(sent) = stream.packet(sequence) else { continue };
            if arrival.is_some() {
                newest = Some(sent.at);
            }
            let instant = |us| transport_wide::instant(report, clock, us);
            let arrival = arrival.map(|us| us.map(instant));
            reports.push(sent.report(0, Ecn::NotEct, arrival));
        }
        (reports, newest.map(|sent| now.saturating_since(sent)))
    }

    /// The unwrapped report timestamp, which has so many bits.
    fn unwrap(&mut self, timestamp: u32, bits: u32) -> u64 {
        let clock = match self.clock {
            // Large enough for any offset.
            None => 1 << bits | u64::from(timestamp),
            Some(last) => {
                let unused = u32::BITS - bits;
                let ahead = (timestamp.wrapping_sub(last as u32) << unused) as i32 >> unused;
                last.saturating_add_signed(ahead.into())
            }
        };
        self.clock = Some(self.clock.map_or(clock, |last| last.max(clock)));
        clock
    }
}

impl SentStream {
    fn add(&mut self, sequence: u16, sent: Sent) {
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
        self.packets.push_back(Some(sent));
        while self.packets.len() > MAX_PACKETS {
            self.packets.pop_front();
            self.first += 1;
        }
    }

    fn packet(&mut self, sequence: u16) -> Option<&mut Sent> {
        let number = near(self.first + self.packets.len() as u64, sequence);
        let place = number.checked_sub(self.first)?;
        self.packets.get_mut(usize::try_from(place).ok()?)?.as_mut()
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
    let units = clock.saturating_sub(u64::from(offset) << 6);
    Instant::from_nanos(((u128::from(units) * 1_000_000_000) >> 16) as u64)
}

/// A packet that arrived.
#[derive(Clone, Copy, Debug)]
struct Received {
    at: Instant,
    ecn: Ecn,
}

/// Packets of one stream that arrived.
#[derive(Clone, Debug, Default)]
struct ReceivedStream {
    ssrc: u32,
    /// Number of the first one remembered, and of the first one to report.
    first: u64,
    begin: u64,
    packets: VecDeque<Option<Received>>,
}

impl ReceivedStream {
    fn on_packet(&mut self, now: Instant, sequence: u16, ecn: Ecn) {
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
            *self = Self { ssrc: self.ssrc, ..Self::default() };
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

    fn report(&mut self, now: Instant, most: usize) -> Option<Stream> {
        let skip = (self.begin - self.first) as usize;
        let metrics: Vec<_> =
            self.packets.iter().skip(skip).take(most).map(|packet| metric(now, *packet)).collect();
        if metrics.is_empty() {
            return None;
        }
        let begin = self.begin as u16;
        self.on_reported(self.begin + metrics.len() as u64);
        Some(Stream { ssrc: self.ssrc, begin, metrics })
    }

    /// As libwebrtc's transport_sequence_number_feedback_generator.cc.
    fn transport_wide(&mut self, feedback_count: u8, bytes: usize) -> Option<TransportWide> {
        let skip = (self.begin - self.first) as usize;
        let received = (self.begin..).zip(self.packets.iter().skip(skip));
        let mut received = received.filter_map(|(number, packet)| Some((number, (*packet)?.at)));
        let mut next = received.next();
        let (first, at) = next?;
        let begin = self.begin.max(first.saturating_sub(MAX_LOST));
        let mut builder = Builder::new(begin as u16, at, feedback_count);
        let mut reported = begin;
        while let Some((number, at)) = next
            && builder.push((number - reported) as u16, at, bytes)
        {
            reported = number + 1;
            next = received.next();
        }
        if builder.report.count == 0 {
            return None;
        }
        self.on_reported(reported);
        Some(builder.report)
    }

    /// The packets before this one were reported.
    fn on_reported(&mut self, begin: u64) {
        self.begin = begin;
        let reported = (begin - self.first) as usize;
        for _ in 0..reported.saturating_sub(KEPT_REPORTED).min(self.packets.len() - 1) {
            self.packets.pop_front();
            self.first += 1;
        }
    }
}

/// Receiver state for the packets of a session, for its reports.
#[derive(Clone, Debug, Default)]
pub struct ReceivedPackets {
    streams: Vec<ReceivedStream>,
    /// Transport-wide feedback packets.
    feedback_count: u8,
}

impl ReceivedPackets {
    /// Records an arrival. Only the first copy counts, but a CE mark on any (RFC 8888 §3.1). Streams beyond
    /// [`MAX_STREAMS`] are not reported.
    pub fn on_packet(&mut self, now: Instant, ssrc: u32, sequence: u16, ecn: Ecn) {
        if let Some(stream) = self.streams.iter_mut().find(|stream| stream.ssrc == ssrc) {
            stream.on_packet(now, sequence, ecn);
        } else if self.streams.len() < MAX_STREAMS {
            let mut stream = ReceivedStream { ssrc, ..ReceivedStream::default() };
            stream.on_packet(now, sequence, ecn);
            self.streams.push(stream);
        }
    }

    /// Report blocks on the packets since the last call, for a feedback packet of at most this many bytes; what
    /// has no room is for the next call. Empty if there are none.
    pub fn report(&mut self, now: Instant, bytes: usize) -> Vec<Stream> {
        // Header, SSRC and timestamp of the packet (RFC 8888 §3.1).
        let mut room = bytes.saturating_sub(12);
        let mut blocks = Vec::new();
        for stream in &mut self.streams {
            // SSRC, begin and number of the block, then two bytes for each packet, to whole words.
            let most = room.saturating_sub(8) / 4 * 2;
            if most == 0 {
                break;
            }
            if let Some(block) = stream.report(now, most) {
                room -= 8 + (2 * block.metrics.len()).next_multiple_of(4);
                blocks.push(block);
            }
        }
        blocks
    }

    /// Transport-wide feedback on the packets since the last call, and again on those behind one that came
    /// late, for an RTCP packet of at most this many bytes. What has no room, or arrived too long after the
    /// packet before, is for the next call. `None` if nothing arrived.
    pub fn transport_wide(&mut self, bytes: usize) -> Option<TransportWide> {
        let stream = self.streams.iter_mut().find(|stream| stream.ssrc == 0)?;
        let report = stream.transport_wide(self.feedback_count, bytes)?;
        self.feedback_count = self.feedback_count.wrapping_add(1);
        Some(report)
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
    use crate::rtcp::{Feedback, Message};

    const SSRC: u32 = 9;

    fn at(milliseconds: u64) -> Instant {
        Instant::from_nanos(milliseconds * 1_000_000)
    }

    /// A report of all that came, as it is read at the other end; the receiver's clock is 100 s ahead.
    fn report(received: &mut ReceivedPackets, now: Instant) -> CongestionControl {
        let streams = received.report(now, 2000);
        let clock = (100 << 16) + (u128::from(now.as_nanos()) << 16) as u64 / 1_000_000_000;
        CongestionControl { streams, timestamp: clock as u32 }
    }

    /// Packets 65534 to 3 leave 20 ms apart and arrive 40 ms later but for two: 0 is lost, 2 comes late, after
    /// a report.
    #[test]
    fn reports_are_joined_with_what_was_sent() {
        let (mut sent, mut received) = (SentPackets::default(), ReceivedPackets::default());
        let sequence = |count: u64| 65_534_u16.wrapping_add(count as u16);
        for count in 0..6 {
            sent.on_sent(at(20 * count), SSRC, sequence(count), 100 + count as u32, None);
        }
        for count in [0, 1, 3, 5] {
            let ecn = if count == 3 { Ecn::Ce } else { Ecn::Ect0 };
            received.on_packet(at(20 * count + 40), SSRC, sequence(count), ecn);
        }
        // A copy changes nothing; a marked one would.
        received.on_packet(at(150), SSRC, sequence(1), Ecn::Ect0);
        let (first, rtt) = sent.on_report(at(190), &report(&mut received, at(150)));
        // Packet 5 left at 100 ms and arrived at 140 ms; its report took 40 ms more.
        assert!(rtt.unwrap().abs_diff(Duration::from_millis(80)) < Duration::from_millis(1));
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
        received.on_packet(at(160), SSRC, sequence(4), Ect0);
        let second = sent.on_report(at(200), &report(&mut received, at(170))).0;
        assert_eq!(known(&second), [(4, true, Ect0), (5, true, Ect0)]);
        assert_eq!(second[1].sequence, first[5].sequence);
        assert!(received.report(at(180), 100).is_empty(), "nothing new");
        // Another stream's report does not affect this one.
        let mut other = ReceivedPackets::default();
        other.on_packet(at(180), 8, 65_534, Ecn::NotEct);
        assert!(sent.on_report(at(190), &report(&mut other, at(190))).0.is_empty());
    }

    /// RFC 8888 §3.1: arrivals 8 s ago and more are over range, and a mark on a copy counts.
    #[test]
    fn arrivals_that_cannot_be_told() {
        let (mut sent, mut received) = (SentPackets::default(), ReceivedPackets::default());
        for count in 0..3 {
            sent.on_sent(at(count), SSRC, count as u16, 100, None);
        }
        received.on_packet(at(0), SSRC, 0, Ecn::Ect0);
        received.on_packet(at(10), SSRC, 0, Ecn::Ce);
        received.on_packet(at(9000), SSRC, 2, Ecn::NotEct);
        let reports = sent.on_report(at(9000), &report(&mut received, at(9000))).0;
        let told: Vec<_> =
            reports.iter().map(|one| (one.arrived.is_some(), one.arrived_untimed)).collect();
        assert_eq!(told, [(false, true), (false, false), (true, false)]);
        assert_eq!(reports[0].ecn, Ecn::Ce);
    }

    /// Three streams of 300 packets do not fit 1100 bytes; all are reported, once each, in three packets.
    #[test]
    fn reports_fit_a_packet_and_leave_nothing_out() {
        let (mut sent, mut received) = (SentPackets::default(), ReceivedPackets::default());
        for count in 0..900_u16 {
            let ssrc = u32::from(count % 3);
            sent.on_sent(at(u64::from(count)), ssrc, count / 3, 100, None);
            received.on_packet(at(u64::from(count) + 10), ssrc, count / 3, Ecn::NotEct);
        }
        let mut seen = [0; 900];
        for round in 0..3 {
            let streams = received.report(at(2000 + round), 1100);
            let report = CongestionControl { streams, timestamp: 1 << 20 };
            assert!(report.content_bytes() + 8 <= 1100, "{}", report.content_bytes());
            for one in sent.on_report(at(2000 + round), &report).0 {
                seen[one.sequence as usize] += 1;
                assert!(one.arrived.is_some() && !one.again);
            }
        }
        assert_eq!(seen, [1; 900]);
        assert!(received.report(at(3000), 1100).is_empty());
    }

    /// Hours of a stream: numbers and clocks wrap, memory does not grow.
    #[test]
    fn long_streams_wrap_and_forget() {
        let (mut sent, mut received) = (SentPackets::default(), ReceivedPackets::default());
        let mut next = 0;
        let mut last = None;
        for count in 0..400_000_u64 {
            let now = at(20 * count);
            sent.on_sent(now, SSRC, count as u16, 100, None);
            received.on_packet(now, SSRC, count as u16, Ecn::NotEct);
            if count % 100 == 99 {
                for one in sent.on_report(now, &report(&mut received, now)).0 {
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
        assert!(sent.streams[0].packets.len() <= MAX_PACKETS);
        assert!(received.streams[0].packets.len() <= KEPT_REPORTED + 100);
    }

    /// Packets under the low bits of their numbers; the second one is of a probe.
    fn send(sent: &mut SentPackets, times_ms: impl IntoIterator<Item = u64>) {
        for time in times_ms {
            let number = sent.next_number();
            sent.on_sent(at(time), 0, number as u16, 100, (number == 1).then_some(7));
        }
    }

    /// Number, arrival in ms after that of the first entry, and what was known of it.
    fn told(reports: &[PacketReport]) -> Vec<(u64, Option<u64>, bool, bool)> {
        let first = reports[0].arrived.expect("arrived");
        let after = |at: Instant| (at.as_nanos() - first.as_nanos()) / 1_000_000;
        let one =
            |it: &PacketReport| (it.sequence, it.arrived.map(after), it.again, it.arrived_before);
        reports.iter().map(one).collect()
    }

    /// Packet 1 is late, 3 and 6 are lost, and 5 comes before 4.
    #[test]
    fn transport_wide_feedback_is_joined_with_what_was_sent() {
        let (mut sent, mut received) = (SentPackets::default(), ReceivedPackets::default());
        send(&mut sent, (0..7).map(|count| 20 * count));
        assert_eq!(received.transport_wide(1200), None);
        for (number, time) in [(0, 40), (2, 80), (5, 135), (4, 140)] {
            received.on_packet(at(time), 0, number, Ecn::NotEct);
        }
        let feedback = received.transport_wide(1200).expect("news");
        assert_eq!((feedback.base, feedback.count, feedback.feedback_count), (0, 6, 0));
        let deltas = [(0, Some(160)), (2, Some(160)), (4, Some(240)), (5, Some(-20))];
        assert_eq!((feedback.reference_time, feedback.received.as_slice()), (0, &deltas[..]));
        let (reports, rtt) = sent.on_transport_wide(at(170), &feedback);
        // From packet 5.
        assert_eq!(rtt, Some(Duration::from_millis(70)));
        let known = |number, after| (number, Some(after), false, false);
        let missing = |number| (number, None, false, false);
        let expected =
            [known(0, 0), missing(1), known(2, 40), missing(3), known(4, 100), known(5, 95)];
        assert_eq!(told(&reports), expected);
        assert_eq!(
            reports.iter().map(|it| it.probe).collect::<Vec<_>>()[..3],
            [None, Some(7), None]
        );
        assert_eq!(received.transport_wide(1200), None, "nothing new");
        // The late one is reported with its successors.
        received.on_packet(at(200), 0, 1, Ecn::NotEct);
        let feedback = received.transport_wide(1200).expect("news");
        assert_eq!((feedback.base, feedback.count, feedback.feedback_count), (1, 5, 1));
        assert_eq!(feedback.reference_time, 3);
        let reports = sent.on_transport_wide(at(230), &feedback).0;
        let told: Vec<_> = reports.iter().map(|it| (it.again, it.arrived_before)).collect();
        let (first, lost, again) = ((true, false), (true, false), (true, true));
        assert_eq!(told, [first, again, lost, again, again]);
        let after = reports[0].arrived.unwrap() - reports[1].arrived.unwrap();
        assert_eq!(after, Duration::from_millis(120));
    }

    /// Arrivals 8.19175 s apart are in one report; 8.192 s apart, and more, in two.
    #[test]
    fn transport_wide_feedback_ends_at_a_gap() {
        for (gap_us, fits) in [(8_191_874, true), (8_191_875, false), (20_000_000, false)] {
            let (mut sent, mut received) = (SentPackets::default(), ReceivedPackets::default());
            send(&mut sent, [0, 20, 40]);
            let late = Instant::from_nanos(gap_us * 1000);
            received.on_packet(at(0), 0, 0, Ecn::NotEct);
            received.on_packet(late, 0, 2, Ecn::NotEct);
            let feedback = received.transport_wide(1200).expect("news");
            assert_eq!(feedback.count, if fits { 3 } else { 1 }, "{gap_us}");
            let mut reports = sent.on_transport_wide(late, &feedback).0;
            let rest = received.transport_wide(1200);
            assert_eq!(rest.is_some(), !fits);
            if let Some(rest) = rest {
                assert_eq!((rest.base, rest.count, rest.received.len()), (1, 2, 1));
                reports.extend(sent.on_transport_wide(late, &rest).0);
            }
            let apart =
                (reports[2].arrived.unwrap() - reports[0].arrived.unwrap()).as_nanos() / 1000;
            assert!(apart.abs_diff(gap_us) <= 125, "{apart}");
        }
    }

    /// 900 packets in feedback of at most 200 bytes, as long as it is written; too little room for any.
    #[test]
    fn transport_wide_feedback_fits_a_packet_and_leaves_nothing_out() {
        let (mut sent, mut received) = (SentPackets::default(), ReceivedPackets::default());
        send(&mut sent, 0..900);
        for count in (0..900_u16).filter(|count| count % 7 != 4) {
            let spread = u64::from(count) * 37 % 90;
            received.on_packet(at(u64::from(count) + spread), 0, count, Ecn::NotEct);
        }
        assert_eq!(received.transport_wide(23), None);
        let mut next = 0;
        while let Some(report) = received.transport_wide(200) {
            let message = Message::TransportWide { media: 1, report: report.clone() };
            let bytes = Feedback { sender: 1, message }.wire_bytes();
            assert!(bytes <= 200 && (bytes > 190 || report.received.last().unwrap().0 == 899));
            for one in sent.on_transport_wide(at(2000), &report).0 {
                let spread = next * 37 % 90;
                let arrived = (next % 7 != 4).then(|| next + spread);
                assert_eq!((one.sequence, one.again), (next, false));
                let origin = 64 << 24;
                assert_eq!(one.arrived, arrived.map(|time| at(origin + time)));
                next += 1;
            }
        }
        assert_eq!(next, 900);
    }

    /// Twelve days and more at one packet each 11 s and two 20 ms later: both numbers wrap.
    #[test]
    fn transport_wide_numbers_and_reference_times_wrap() {
        let (mut sent, mut received) = (SentPackets::default(), ReceivedPackets::default());
        let (mut next, mut feedback_count) = (0_u64, 0_u8);
        let mut first = None;
        let time = |number: u64| at(11_000 * (number / 3) + 20 * (number % 3));
        for number in 0..300_000_u64 {
            sent.on_sent(time(number), 0, number as u16, 100, None);
            received.on_packet(time(number), 0, number as u16, Ecn::NotEct);
            if number % 3 < 2 {
                continue;
            }
            let report = received.transport_wide(1200).expect("news");
            assert_eq!(report.feedback_count, feedback_count);
            feedback_count = feedback_count.wrapping_add(1);
            for one in sent.on_transport_wide(time(number), &report).0 {
                assert_eq!((one.sequence, one.sent), (next, time(next)));
                let arrived = one.arrived.unwrap();
                let origin = *first.get_or_insert(arrived);
                assert_eq!(arrived - origin, time(next) - time(0));
                next += 1;
            }
        }
        assert_eq!(next, 300_000);
        assert!(time(next).as_nanos() / 64_000_000 > 1 << 24, "the reference time wrapped");
        assert!(sent.streams[0].packets.len() <= MAX_PACKETS);
        assert!(received.streams[0].packets.len() <= KEPT_REPORTED + 100);
    }

    /// libwebrtc: no more than 32,766 losses are reported before a packet.
    #[test]
    fn a_long_gap_of_numbers_is_cut() {
        let mut received = ReceivedPackets::default();
        received.on_packet(at(0), 0, 0, Ecn::NotEct);
        received.transport_wide(1200).expect("news");
        received.on_packet(at(1), 0, 0x8000, Ecn::NotEct);
        let report = received.transport_wide(1200).expect("news");
        assert_eq!((report.base, report.count), (2, 0x7fff));
        assert_eq!(report.received, [(0x8000, Some(4))]);
    }
}
