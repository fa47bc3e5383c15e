//! Retransmission of RTP packets in a stream of its own (RFC 4588 §4): what the sender keeps ([`History`]),
//! and how the receiver restores a packet ([`original`]).

use std::collections::VecDeque;

use super::{HEADER_BYTES, Packet, Sender};
use crate::octets::pattern;
use crate::packet::Payload;
use crate::rng::Rng;
use crate::time::{Duration, Instant};

/// The original sequence number before the payload (RFC 4588 §4).
pub const OSN_BYTES: usize = 2;
// libwebrtc's RtpPacketHistory: packets are kept at least this long and so many round-trip times, and three
// times that while there are few of them; and not more of them.
const KEPT: Duration = Duration::from_secs(1);
const KEPT_ROUND_TRIPS: u64 = 3;
const FEW: usize = 600;
const LONGER: u64 = 3;
const MAX_KEPT: usize = 9600;

/// A packet that can be requested again.
#[derive(Clone, Debug)]
struct Kept {
    packet: Packet,
    sent: Instant,
    /// When it was last repeated, if it was; in the future while its retransmission waits.
    repeated: Option<Instant>,
    /// Bytes of its retransmissions.
    again: u64,
}

/// The packets that a sender can repeat, and the stream in which it does.
#[derive(Clone, Debug)]
pub struct History {
    stream: Sender,
    packets: VecDeque<Kept>,
    /// Payload of their retransmissions.
    bytes: u64,
    /// Retransmissions of these.
    again: u64,
    /// Bytes that may be repeated now: requests cannot make more traffic than the media itself.
    budget: u64,
}

impl History {
    /// Nothing was sent yet. Retransmissions have this payload type, and an SSRC and sequence numbers drawn
    /// from `rng` (RFC 4588 §4: both should be random).
    ///
    /// # Panics
    /// As [`Sender::new`].
    #[must_use]
    pub fn new(payload_type: u8, clock_hz: u32, rng: &mut Rng) -> Self {
        let stream = Sender::new(payload_type, clock_hz, rng);
        Self { stream, packets: VecDeque::new(), bytes: 0, again: 0, budget: 0 }
    }

    /// SSRC of the retransmissions.
    #[must_use]
    pub const fn ssrc(&self) -> u32 {
        self.stream.ssrc()
    }

    /// A packet left for the first time; sequence numbers ascend.
    pub fn on_sent(&mut self, now: Instant, packet: &Packet, rtt: Duration) {
        self.forget(now, rtt);
        let bytes = (OSN_BYTES + packet.payload.len()) as u64;
        self.packets.push_back(Kept {
            packet: packet.clone(),
            sent: now,
            repeated: None,
            again: 0,
        });
        self.bytes += bytes;
        self.budget = (self.budget + bytes).min(self.bytes);
    }

    fn forget(&mut self, now: Instant, rtt: Duration) {
        let keeps = KEPT.max(rtt * KEPT_ROUND_TRIPS);
        while let Some(oldest) = self.packets.front() {
            let count = self.packets.len();
            let keeps = if count < FEW { keeps * LONGER } else { keeps };
            if count < MAX_KEPT && oldest.sent + keeps >= now {
                break;
            }
            self.bytes -= (OSN_BYTES + oldest.packet.payload.len()) as u64;
            self.again -= oldest.again;
            self.packets.pop_front();
        }
    }

    /// Share of retransmissions in what is sent, 0 to 0.5, of the packets that are kept. As in libwebrtc, the
    /// encoder leaves them as much room.
    #[must_use]
    pub fn share(&self) -> f64 {
        (self.again as f64 / (self.bytes + self.again).max(1) as f64).min(0.5)
    }

    /// The retransmission of the packet with this sequence number, which waits until [`Self::on_repeated`];
    /// `None` if it is not kept any more, was never sent, was repeated less than a round-trip time ago, or if
    /// as much was repeated as was sent.
    pub fn again(&mut self, now: Instant, sequence: u16, rtt: Duration) -> Option<Packet> {
        self.forget(now, rtt);
        let index = self.place(sequence)?;
        let kept = &mut self.packets[index];
        if kept.repeated.is_some_and(|at| at + rtt > now) {
            return None;
        }
        let bytes = OSN_BYTES + kept.packet.payload.len();
        self.budget = self.budget.checked_sub(bytes as u64)?;
        kept.repeated = Some(Instant::HORIZON);
        kept.again += bytes as u64;
        self.again += bytes as u64;
        let packet = kept.packet.clone();
        Some(self.repeat(&packet))
    }
}

/// Bytes of a packet of padding alone, and the least to be filled for which media is repeated instead
/// (libwebrtc: RTPSender::GeneratePadding).
const PADDING: u8 = 224;
const LEAST_REPEATED: usize = 50;
/// Of so many packets the longest is repeated.
const RECENT: usize = 32;

impl History {
    /// A packet that fills the path where `bytes` are missing: a recent packet again, or padding alone if that
    /// would be too long; nothing if a packet of `room` bytes holds neither.
    pub fn padding(&mut self, bytes: usize, room: usize) -> Option<Packet> {
        let room = room.checked_sub(HEADER_BYTES)?;
        let recent = self.packets.iter().rev().take(RECENT).map(|kept| &kept.packet);
        let longest = recent.max_by_key(|packet| packet.payload.len()).filter(|packet| {
            let all = OSN_BYTES + packet.payload.len();
            bytes >= LEAST_REPEATED && all <= 3 * bytes && all <= room
        });
        if let Some(packet) = longest.cloned() {
            return Some(self.repeat(&packet));
        }
        // A packet that does not leave would be missing to the receiver.
        (usize::from(PADDING) <= room).then(|| {
            let timestamp = self.packets.back().map_or(0, |kept| kept.packet.timestamp);
            let stamped = self.stream.packet(timestamp, false, Payload::default());
            Packet { padding: PADDING, ..stamped }
        })
    }

    fn repeat(&mut self, packet: &Packet) -> Packet {
        let mut payload = Vec::with_capacity(OSN_BYTES + packet.payload.len());
        payload.extend_from_slice(&packet.sequence.to_be_bytes());
        pattern::emit(&packet.payload, &mut payload);
        let stamped = self.stream.packet(0, packet.marker, Payload::Real(payload.into()));
        // RFC 4588 §4: the timestamp of the original.
        Packet { timestamp: packet.timestamp, ..stamped }
    }

    fn place(&self, sequence: u16) -> Option<usize> {
        let first = self.packets.front()?.packet.sequence;
        let place = |kept: &Kept| kept.packet.sequence.wrapping_sub(first);
        self.packets.binary_search_by_key(&sequence.wrapping_sub(first), place).ok()
    }

    /// A retransmission leaves.
    pub fn on_repeated(&mut self, now: Instant, packet: &Packet) {
        let original = original(packet, 0, 0).and_then(|original| self.place(original.sequence));
        if let Some(index) = original {
            self.packets[index].repeated = Some(now);
        }
    }
}

/// The packet that a retransmission repeats (RFC 4588 §4); `None` if its sequence number is missing.
#[must_use]
pub fn original(packet: &Packet, payload_type: u8, ssrc: u32) -> Option<Packet> {
    let Payload::Real(bytes) = &packet.payload else { return None };
    let sequence = u16::from_be_bytes(bytes.get(..OSN_BYTES)?.try_into().ok()?);
    let payload = Payload::Real(bytes.slice(OSN_BYTES..));
    Some(Packet { payload_type, sequence, ssrc, payload, ..packet.clone() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;

    const RTT: Duration = Duration::from_millis(100);

    fn at(milliseconds: u64) -> Instant {
        Instant::from_nanos(milliseconds * 1_000_000)
    }

    /// A source whose packets leave every 10 ms, with numbers around the wrap; every tenth number was
    /// discarded before it left.
    fn sent(count: u64) -> (History, Vec<Packet>) {
        let mut history = History::new(97, 90_000, &mut Rng::new(1, "rtx"));
        let mut source = Sender::starting_at(5, 96, 90_000, 65_500, 0);
        let mut packets = Vec::new();
        for index in 0..count {
            let payload = Payload::Real(Bytes::from(vec![index as u8; 100]));
            let packet = source.packet(index as u32 * 900, index % 3 == 0, payload);
            if index % 10 != 5 {
                history.on_sent(at(10 * index), &packet, RTT);
            }
            packets.push(packet);
        }
        (history, packets)
    }

    /// Numbers of packets that did not leave would be missing to the receiver.
    #[test]
    fn padding_that_has_no_room_takes_no_number() {
        let (mut history, _) = sent(60);
        let first = history.padding(100, 1200).expect("a packet again");
        assert_eq!(first.payload.len(), OSN_BYTES + 100);
        assert_eq!(history.padding(100, HEADER_BYTES + 10), None);
        // A packet of 102 bytes does not fit, padding of 224 neither.
        assert_eq!(history.padding(100, HEADER_BYTES + 101), None);
        let next = history.padding(1, 1200).expect("padding alone");
        assert_eq!((next.padding, next.sequence), (PADDING, first.sequence.wrapping_add(1)));
    }

    #[test]
    fn a_retransmission_restores_the_packet() {
        let (mut history, packets) = sent(60);
        for (count, index) in [0, 36, 37, 7].into_iter().enumerate() {
            let again = history.again(at(700), packets[index].sequence, RTT).expect("is kept");
            assert_eq!((again.ssrc, again.payload_type), (history.ssrc(), 97));
            assert_eq!(again.timestamp, packets[index].timestamp);
            assert_eq!(again.payload.len(), 102);
            assert_eq!(history.stream.packets(), count as u32 + 1);
            assert_eq!(original(&again, 96, 5), Some(packets[index].clone()));
        }
    }

    #[test]
    fn nothing_is_repeated_that_was_not_sent_or_was_just_repeated() {
        let (mut history, packets) = sent(60);
        let mut again = |at_ms, index: usize| {
            let found = history.again(at(at_ms), packets[index].sequence, RTT)?;
            assert_eq!(
                history.again(at(at_ms + 500), packets[index].sequence, RTT),
                None,
                "it waits"
            );
            history.on_repeated(at(at_ms), &found);
            Some(found)
        };
        assert_eq!(again(700, 15), None, "discarded");
        assert!(again(700, 59).is_some());
        assert_eq!(again(799, 59), None, "repeated 99 ms ago");
        assert!(again(800, 59).is_some());
        for sequence in [packets[0].sequence.wrapping_sub(1), packets[59].sequence + 1, 30_000] {
            assert_eq!(history.again(at(900), sequence, RTT), None);
        }
    }

    /// Requests for everything, for ever, get no more than what was sent.
    #[test]
    fn requests_make_no_more_traffic_than_the_media() {
        let (mut history, packets) = sent(60);
        let answered = (0..100)
            .flat_map(|round| packets.iter().map(move |packet| (round, packet)))
            .filter(|(round, packet)| {
                let now = at(1000 + 20 * round);
                let found = history.again(now, packet.sequence, Duration::ZERO);
                found.inspect(|found| history.on_repeated(now, found)).is_some()
            })
            .count();
        assert_eq!((answered, history.share()), (54, 0.5));
    }

    #[test]
    fn old_packets_are_forgotten() {
        let (mut history, packets) = sent(300);
        // The last three seconds.
        assert_eq!(history.packets.len(), 270);
        assert!(history.again(at(3010), packets[6].sequence, RTT).is_some());
        assert_eq!(history.again(at(3310), packets[20].sequence, RTT), None);
        let mut source = Sender::starting_at(5, 96, 90_000, 0, 0);
        for _ in 0..20_000 {
            let packet = source.packet(0, false, Payload::Real(Bytes::from_static(&[1; 9])));
            history.on_sent(at(3000), &packet, RTT);
        }
        assert_eq!(history.packets.len(), MAX_KEPT);
    }

    #[test]
    fn a_retransmission_without_its_number_restores_nothing() {
        let (_, packets) = sent(1);
        for payload in [Payload::Virtual { offset: 0, len: 10 }, Payload::Real(Bytes::new())] {
            assert_eq!(original(&Packet { payload, ..packets[0].clone() }, 96, 5), None);
        }
    }
}
