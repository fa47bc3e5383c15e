//! Redundant audio data (RED, RFC 2198): each packet repeats the payloads of the packets before it.

use std::collections::VecDeque;

use bytes::{BufMut, Bytes, BytesMut};
use talkspurt_proto::time::Duration;
use talkspurt_proto::units::Rate;

use super::{Decoder, Encoder, Encoding, Redundancy};

/// A dynamic RTP payload type, assigned by signalling, which this value replaces.
pub(super) const PAYLOAD_TYPE: u8 = 121;
/// Bytes of the header of a repeated block, and of that of the packet's own block.
const HEADER: usize = 4;
const LAST_HEADER: usize = 1;
/// RFC 2198 §3: 14 bits of timestamp offset, 10 bits of length.
const MAX_OFFSET: u32 = (1 << 14) - 1;
const MAX_LENGTH: usize = (1 << 10) - 1;

/// Bytes of a packet whose blocks are `own` bytes long each.
pub(super) const fn bytes(own: usize, copies: u8) -> usize {
    own + copies as usize * (HEADER + own) + LAST_HEADER
}

/// The payload rate of each block if a packet is sent at `total`.
pub(super) fn rate(total: Rate, packet: Duration, copies: u8) -> Rate {
    let headers = 8 * (copies as u64 * HEADER as u64 + LAST_HEADER as u64);
    let headers = headers * 1_000_000_000 / packet.as_nanos().max(1);
    Rate::from_bps(total.as_bps().saturating_sub(headers) / (u64::from(copies) + 1))
}

/// Why an encoding cannot be repeated this often.
pub(super) fn error(encoding: &Encoding) -> Option<String> {
    let ticks = encoding.codec.ticks_for(encoding.packet).saturating_mul(u32::from(encoding.red));
    if ticks > MAX_OFFSET {
        let ms = encoding.packet * u64::from(encoding.red);
        return Some(format!(
            "{ms} before a packet are too far: RFC 2198 has {MAX_OFFSET} ticks of {} Hz",
            encoding.codec.spec().rtp_clock
        ));
    }
    let own = Encoding { red: 0, ..*encoding }.payload_bytes();
    (own > MAX_LENGTH)
        .then(|| format!("packets of {own} bytes are too long: RFC 2198 has {MAX_LENGTH}"))
}

/// An encoder whose packets have copies of those before.
#[derive(Debug)]
pub(super) struct Sender {
    encoder: Box<dyn Encoder>,
    encoding: Encoding,
    /// Payloads of the packets before, the oldest first.
    sent: VecDeque<Bytes>,
}

impl Sender {
    pub(super) fn new(encoder: Box<dyn Encoder>, encoding: Encoding) -> Self {
        Self { encoder, encoding, sent: VecDeque::new() }
    }
}

impl Encoder for Sender {
    fn encode(&mut self, pcm: &[i16], target: Option<Rate>) -> Bytes {
        let Encoding { codec, packet, red, .. } = self.encoding;
        let own = self.encoder.encode(pcm, target.map(|total| rate(total, packet, red)));
        if own.is_empty() {
            // What is older than a pause is not worth repeating, and its offset may not fit.
            self.sent.clear();
            return own;
        }
        let ticks = codec.ticks_for(packet);
        let mut out = BytesMut::with_capacity(bytes(own.len(), red));
        let ages = (1..=self.sent.len() as u32).rev();
        for (age, block) in ages.zip(&self.sent) {
            let head = 1 << 31
                | u32::from(codec.spec().payload_type) << 24
                | (age * ticks) << 10
                | block.len() as u32;
            out.put_u32(head);
        }
        out.put_u8(codec.spec().payload_type);
        self.sent.iter().for_each(|block| out.put_slice(block));
        out.put_slice(&own);
        // A longer one, which a variable rate permits, cannot be repeated; nor what was before it, since the
        // receiver takes the blocks of consecutive packets.
        if own.len() > MAX_LENGTH {
            self.sent.clear();
        } else {
            self.sent.push_back(own);
        }
        while self.sent.len() > usize::from(red) {
            self.sent.pop_front();
        }
        out.freeze()
    }

    fn set_expected_loss(&mut self, loss: f64) {
        self.encoder.set_expected_loss(loss);
    }
}

/// A repeated block after its timestamp offset.
type Copied<'a> = (u32, &'a [u8]);

/// A packet's own block, and the repeated ones with their timestamp offsets.
fn parse(payload: &[u8]) -> Option<(&[u8], Vec<Copied<'_>>)> {
    let (mut heads, mut rest) = (Vec::new(), payload);
    while rest.first()? & 0x80 != 0 {
        let (head, more) = rest.split_first_chunk()?;
        let head = u32::from_be_bytes(*head);
        heads.push((head >> 10 & MAX_OFFSET, head as usize & MAX_LENGTH));
        rest = more;
    }
    rest = &rest[LAST_HEADER..];
    let mut blocks = Vec::with_capacity(heads.len());
    for (offset, len) in heads {
        let (block, more) = rest.split_at_checked(len)?;
        blocks.push((offset, block));
        rest = more;
    }
    Some((rest, blocks))
}

/// The decoder of such packets.
#[derive(Debug)]
pub(super) struct Receiver {
    decoder: Box<dyn Decoder>,
    copies: u8,
    /// RTP ticks of a packet.
    ticks: u32,
}

impl Receiver {
    pub(super) fn new(decoder: Box<dyn Decoder>, encoding: &Encoding) -> Self {
        let ticks = encoding.codec.ticks_for(encoding.packet).max(1);
        Self { decoder, copies: encoding.red, ticks }
    }
}

impl Decoder for Receiver {
    fn decode(&mut self, payload: &[u8]) -> Vec<i16> {
        parse(payload).map(|(own, _)| self.decoder.decode(own)).unwrap_or_default()
    }

    fn redundancy(&self) -> u32 {
        self.decoder.redundancy().max(self.copies.into())
    }

    fn redundancy_in(&mut self, payload: &[u8]) -> Redundancy {
        let Some((own, blocks)) = parse(payload) else { return Redundancy::default() };
        let oldest = blocks.iter().map(|(offset, _)| offset / self.ticks).max().unwrap_or(0);
        let inner = self.decoder.redundancy_in(own);
        Redundancy { packets: oldest.min(self.copies.into()).max(inner.packets), ..inner }
    }

    fn recover(&mut self, later: &[u8], ahead: u32, samples: usize) -> Option<Vec<i16>> {
        let (own, blocks) = parse(later)?;
        match blocks.iter().find(|(offset, _)| *offset == ahead.wrapping_mul(self.ticks)) {
            Some((_, block)) => Some(self.decoder.decode(block)),
            None => self.decoder.recover(own, ahead, samples),
        }
    }

    fn pause(&mut self, samples: usize) -> Option<Vec<i16>> {
        self.decoder.pause(samples)
    }

    fn conceal(&mut self, samples: usize) -> Option<Vec<i16>> {
        self.decoder.conceal(samples)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::codec::Codec;

    fn encoding(codec: Codec, red: u8) -> Encoding {
        Encoding { red, ..Encoding::new(codec, Duration::from_millis(20)) }
    }

    /// `n` packets of 20 ms of a rising sound.
    fn packets(encoding: &Encoding, n: usize) -> Vec<Bytes> {
        let mut encoder = encoding.encoder().expect("it has sound");
        let len = encoding.samples_for(encoding.packet);
        let sound = |n: usize| (0..len).map(|k| (k * 7 + n * 900) as i16).collect::<Vec<_>>();
        (0..n).map(|n| encoder.encode(&sound(n), None)).collect()
    }

    #[test]
    fn the_format_is_that_of_rfc_2198() {
        let plain = packets(&encoding(Codec::Pcma, 0), 4);
        let red = packets(&encoding(Codec::Pcma, 2), 4);
        // §3: the own block alone has one byte of header: F is 0, then the payload type of PCMA, 8.
        assert_eq!(red[0], [&[8], &plain[0][..]].concat());
        // F and payload type, 14 bits of offset (160 and 320 ticks), 10 bits of length (160); the oldest first.
        let head = |offset: u32| (0x8800_0000 | offset << 10 | 160).to_be_bytes();
        assert_eq!(head(160), [0x88, 0x02, 0x80, 0xA0]);
        assert_eq!(red[1], [&head(160), &[8][..], &plain[0], &plain[1]].concat());
        let all = [&head(320), &head(160), &[8][..], &plain[1], &plain[2], &plain[3]].concat();
        assert_eq!(red[3], all);
        assert_eq!(red[3].len(), encoding(Codec::Pcma, 2).payload_bytes());
    }

    #[test]
    fn lost_packets_are_decoded_from_their_copies() {
        let encoding = encoding(Codec::G722, 3);
        let red = packets(&encoding, 8);
        let mut decoder = encoding.decoder().unwrap();
        let whole: Vec<_> = red.iter().map(|packet| decoder.decode(packet)).collect();
        // Packets 3 and 4 are lost. G.722 has state, but nothing is missing of what it decodes.
        let mut decoder = encoding.decoder().unwrap();
        red[..3].iter().for_each(|packet| drop(decoder.decode(packet)));
        assert_eq!(decoder.redundancy_in(&red[5]).packets, 3);
        assert_eq!(decoder.recover(&red[5], 2, 320).as_ref(), Some(&whole[3]));
        assert_eq!(decoder.recover(&red[5], 1, 320).as_ref(), Some(&whole[4]));
        assert_eq!(decoder.decode(&red[5]), whole[5]);
        assert_eq!(decoder.recover(&red[5], 4, 320), None);
        assert_eq!(decoder.redundancy_in(&red[0]).packets, 0);
    }

    #[test]
    fn the_rate_is_divided_between_the_blocks() {
        // 100 kbit/s in 20 ms are 250 bytes: three blocks of 80 and nine bytes of headers.
        let packet = Duration::from_millis(20);
        assert_eq!(rate(Rate::from_bps(100_000), packet, 2), Rate::from_bps(32_133));
        assert_eq!(bytes(80, 2), 249);
        let opus = encoding(Codec::Opus, 2);
        assert_eq!(opus.payload_bytes_at(Rate::from_bps(99_600)), 249);
        let sent = opus.encoder().unwrap().encode(&[0; 960], Some(Rate::from_bps(50_000)));
        assert!((40..=42).contains(&sent.len()), "the first has one block: {}", sent.len());
    }

    #[test]
    fn what_the_fields_cannot_express_is_an_error() {
        let of = |codec, ms, red, kbps: u64| {
            let opus = crate::codec::opus::Config {
                bitrate: Rate::from_bps(kbps * 1000),
                ..Default::default()
            };
            error(&Encoding { opus, red, ..Encoding::new(codec, Duration::from_millis(ms)) })
        };
        assert_eq!(of(Codec::Opus, 20, 3, 32), None);
        // 3 × 120 ms at 48 kHz are 17280 ticks, above 16383; 2 × 120 ms are not.
        assert!(of(Codec::Opus, 120, 3, 32).is_some_and(|why| why.contains("16383")));
        assert_eq!(of(Codec::Opus, 120, 2, 32), None);
        assert!(of(Codec::Opus, 20, 1, 500).is_some_and(|why| why.contains("1023")));
    }

    proptest! {
        #[test]
        fn any_bytes_may_come(bytes in prop::collection::vec(any::<u8>(), 0..80), ahead in 1..5_u32) {
            let mut decoder = encoding(Codec::G722, 3).decoder().unwrap();
            decoder.decode(&bytes);
            prop_assert!(decoder.redundancy_in(&bytes).packets <= 3);
            decoder.recover(&bytes, ahead, 320);
        }
    }
}
