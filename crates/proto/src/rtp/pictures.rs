//! The receiver of video: which frames are complete and decodable, which packets it requests again (RFC 4585
//! §6.2.1) and when it requests a key frame (§6.3.1). Waiting times are those of libwebrtc.

use std::collections::BTreeMap;

use super::Packet;
use super::nack::Requester;
use super::vp8::{Begins, begins};
use crate::time::{Duration, Instant, earlier};

// libwebrtc's VideoReceiveStream2: kMaxWaitForKeyFrame, kMaxWaitForFrame, and after how long without packets
// the stream counts as inactive.
const WAIT_FOR_KEY_FRAME: Duration = Duration::from_millis(200);
const WAIT_FOR_FRAME: Duration = Duration::from_secs(3);
const INACTIVE: Duration = Duration::from_secs(5);
/// libwebrtc's kPacketBufferMaxSize.
const MAX_PACKETS: usize = 2048;

/// The frames of a stream of VP8 (RFC 7741).
#[derive(Clone, Debug)]
pub struct Pictures {
    requester: Option<Requester>,
    /// Packets of frames that were not decoded: what begins with each, and whether it ends its frame.
    packets: BTreeMap<u64, (Begins, bool)>,
    /// The last extended sequence number.
    newest: Option<u64>,
    /// Packets before this one are of no use. It begins the next frame, if the frames before that were decoded.
    next: u64,
    is_chained: bool,
    arrived: Instant,
    needs_key: bool,
    /// The packet that came last belongs to a key frame, as far as is known.
    key_arrives: bool,
    /// When a key frame is to be requested.
    key_due: Instant,
    decoded: u64,
}

/// What is to be requested.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Requests {
    /// Sequence numbers of lost packets, ascending (modulo 65536).
    pub lost: Vec<u16>,
    /// A key frame.
    pub key: bool,
}

impl Pictures {
    /// Before the first packet. With `nack`, lost packets are requested again; without it, a loss means a
    /// request for a key frame.
    #[must_use]
    pub fn new(nack: bool) -> Self {
        Self {
            requester: nack.then(Requester::default),
            packets: BTreeMap::new(),
            newest: None,
            next: 0,
            is_chained: false,
            arrived: Instant::ZERO,
            needs_key: true,
            key_arrives: false,
            key_due: Instant::ZERO,
            decoded: 0,
        }
    }

    /// Frames decoded so far.
    #[must_use]
    pub const fn decoded(&self) -> u64 {
        self.decoded
    }

    /// A packet of the stream arrived, for the first time or as a retransmission.
    pub fn on_packet(&mut self, now: Instant, packet: &Packet) {
        let newest = *self.newest.get_or_insert_with(|| {
            self.key_due = now + WAIT_FOR_KEY_FRAME;
            // Room for what comes before it.
            (1 << 16) + u64::from(packet.sequence)
        });
        let ahead = packet.sequence.wrapping_sub(newest as u16) as i16;
        let sequence = newest.saturating_add_signed(i64::from(ahead));
        self.newest = Some(newest.max(sequence));
        self.arrived = now;
        let is_gap = sequence > newest + 1;
        let is_given_up = match &mut self.requester {
            Some(requester) => !requester.on_packet(now, sequence),
            None => is_gap,
        };
        if is_given_up {
            self.request_key(now);
        }
        let Some(begins) = begins(&packet.payload) else { return };
        if sequence >= newest && begins != Begins::Nothing {
            self.key_arrives = begins == Begins::Key;
        }
        if self.key_arrives && self.needs_key {
            // libwebrtc requests none while it receives one.
            self.key_due = self.key_due.max(now + WAIT_FOR_KEY_FRAME);
        }
        if sequence < self.next || self.packets.insert(sequence, (begins, packet.marker)).is_some()
        {
            return;
        }
        if self.packets.len() > MAX_PACKETS {
            self.packets.clear();
            (self.next, self.is_chained) = (newest.max(sequence) + 1, false);
            self.request_key(now);
        }
        // Otherwise no frame can have become complete.
        if packet.marker || sequence < newest {
            while let Some((is_key, end)) = self.complete() {
                self.packets = self.packets.split_off(&(end + 1));
                (self.next, self.is_chained) = (end + 1, true);
                self.decoded += 1;
                // Without NACK, a frame that comes late does not repair what is lost behind it.
                if is_key || self.requester.is_some() || !self.needs_key {
                    (self.needs_key, self.key_due) = (false, now + WAIT_FOR_FRAME);
                }
            }
            if let Some(requester) = &mut self.requester {
                requester.forget_before(self.next);
            }
        }
    }

    fn request_key(&mut self, now: Instant) {
        if !self.needs_key {
            (self.needs_key, self.key_due) = (true, now);
        }
    }

    /// A frame that can be decoded, the next one or a later key frame: whether it is one, and its last packet.
    fn complete(&self) -> Option<(bool, u64)> {
        // The kind of the frame that all packets belong to since one of use began.
        let (mut kind, mut expected) = (None, self.next);
        for (&at, &(begins, ends)) in &self.packets {
            kind = match begins {
                Begins::Key => Some(true),
                Begins::Inter => (self.is_chained && at == self.next).then_some(false),
                Begins::Nothing => kind.filter(|_| at == expected),
            };
            if let Some(is_key) = kind.filter(|_| ends) {
                return Some((is_key, at));
            }
            expected = at + 1;
        }
        None
    }

    /// When a key frame is to be requested, while the stream is active.
    fn key_due(&self) -> Option<Instant> {
        self.newest.map(|_| self.key_due).filter(|at| *at <= self.arrived + INACTIVE)
    }

    /// When a request is due.
    #[must_use]
    pub fn due(&self) -> Option<Instant> {
        earlier(self.key_due(), self.requester.as_ref().and_then(Requester::due))
    }

    /// The requests that are due, of at most so many packets; the others remain due.
    pub fn take(&mut self, now: Instant, rtt: Duration, most: usize) -> Requests {
        if self.due().is_none_or(|due| due > now) {
            return Requests::default();
        }
        let lost = self.requester.as_mut().map(|it| it.take(now, rtt, most)).unwrap_or_default();
        let key = self.key_due().is_some_and(|due| due <= now);
        if key {
            (self.needs_key, self.key_due) = (true, now + WAIT_FOR_KEY_FRAME);
        }
        Requests { lost, key }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::Payload;
    use crate::rtp::Sender;
    use crate::rtp::vp8::Blank;

    const RTT: Duration = Duration::from_millis(50);

    fn at(milliseconds: u64) -> Instant {
        Instant::from_nanos(milliseconds * 1_000_000)
    }

    /// Frames of three packets, of which these are key frames.
    fn packets(frames: u32, keys: &[u32]) -> Vec<Packet> {
        let blank = Blank::new(1200);
        let mut sender = Sender::starting_at(5, 96, 90_000, 65_530, 0);
        let packet = |index: u32| {
            let begins = match (index % 3, keys.contains(&(index / 3))) {
                (0, true) => Begins::Key,
                (0, false) => Begins::Inter,
                _ => Begins::Nothing,
            };
            sender.packet(index / 3 * 3000, index % 3 == 2, blank.payload(begins, 100))
        };
        (0..3 * frames).map(packet).collect()
    }

    #[test]
    fn a_lost_packet_stops_decoding_until_it_is_repeated() {
        let (packets, mut pictures) = (packets(10, &[0]), Pictures::new(true));
        for (index, packet) in packets.iter().enumerate().filter(|(index, _)| *index != 13) {
            pictures.on_packet(at(10 * index as u64), packet);
        }
        assert_eq!(pictures.decoded(), 4);
        assert_eq!(pictures.due(), Some(at(140)));
        let lost = vec![packets[13].sequence];
        assert_eq!(pictures.take(at(140), RTT, 99), Requests { lost, key: false });
        pictures.on_packet(at(190), &packets[13]);
        assert_eq!(pictures.decoded(), 10);
        // Copies of what was decoded change nothing.
        packets.iter().for_each(|packet| pictures.on_packet(at(400), packet));
        assert_eq!((pictures.decoded(), pictures.packets.len()), (10, 0));
    }

    #[test]
    fn a_later_key_frame_ends_the_wait() {
        let (packets, mut pictures) = (packets(10, &[0, 6]), Pictures::new(true));
        for (index, packet) in packets.iter().enumerate().filter(|(index, _)| *index != 13) {
            pictures.on_packet(at(index as u64), packet);
        }
        assert_eq!(pictures.decoded(), 4 + 4);
        // The lost packet is of no use any more.
        assert_eq!(pictures.take(at(100), RTT, 99), Requests::default());
    }

    #[test]
    fn without_nack_a_loss_requests_a_key_frame_until_it_comes() {
        let (packets, mut pictures) = (packets(20, &[0, 10]), Pictures::new(false));
        let key = Requests { key: true, ..Requests::default() };
        let arrive = |pictures: &mut Pictures, part: std::ops::Range<usize>| {
            part.for_each(|index| pictures.on_packet(at(10 * index as u64), &packets[index]));
        };
        arrive(&mut pictures, 0..10);
        assert_eq!(pictures.due(), Some(at(80) + WAIT_FOR_FRAME));
        arrive(&mut pictures, 11..20);
        assert_eq!(pictures.take(at(200), RTT, 99), key);
        assert_eq!(pictures.due(), Some(at(400)));
        assert_eq!(pictures.take(at(399), RTT, 99), Requests::default());
        assert_eq!(pictures.take(at(400), RTT, 99), key);
        arrive(&mut pictures, 20..60);
        assert_eq!(pictures.decoded(), 3 + 10);
        assert_eq!(pictures.due(), Some(at(590) + WAIT_FOR_FRAME));
    }

    #[test]
    fn a_stream_without_a_key_frame_requests_one_while_it_is_active() {
        let (packets, mut pictures) = (packets(20, &[]), Pictures::new(true));
        assert_eq!(pictures.due(), None);
        for (index, packet) in packets.iter().enumerate() {
            pictures.on_packet(at(index as u64), packet);
        }
        assert_eq!(pictures.due(), Some(at(200)));
        let mut requests = 0;
        while let Some(due) = pictures.due() {
            requests += u32::from(pictures.take(due, RTT, 99).key);
        }
        // Every 200 ms until 5 s after the last packet.
        assert_eq!((pictures.decoded(), requests), (0, 25));
    }

    /// A key frame that takes half a second to come is not requested again.
    #[test]
    fn a_key_frame_that_arrives_is_not_requested() {
        let (packets, mut pictures) = (packets(4, &[0]), Pictures::new(true));
        for (index, packet) in packets.iter().enumerate() {
            let now = at(150 * index as u64);
            assert_eq!(pictures.take(now, RTT, 99), Requests::default());
            pictures.on_packet(now, packet);
        }
        assert_eq!(pictures.decoded(), 4);
    }

    #[test]
    fn what_cannot_be_used_is_not_kept() {
        let (packets, mut pictures) = (packets(2000, &[]), Pictures::new(true));
        packets.iter().for_each(|packet| pictures.on_packet(at(0), packet));
        assert!(pictures.packets.len() <= MAX_PACKETS);
        let payload = Payload::Virtual { offset: 0, len: 100 };
        let mut pictures = Pictures::new(true);
        pictures.on_packet(at(0), &Packet { payload, ..packets[0].clone() });
        // It is no packet of a frame, but a sign of the stream.
        assert_eq!((pictures.due(), pictures.packets.len()), (Some(at(200)), 0));
    }
}
