//! The sound of codecs without an encoder: narrowband Opus at the nearest rate that it has.
//!
//! Their packets contain no sound, so that they keep the codec's length whatever the rate of the stand-in is.
//! What was received is encoded and decoded from the recording when the call is rendered ([`Voice`]). The
//! encoder also takes the sound of lost packets, as a sender's would, so that the states of encoder and decoder
//! differ after a loss as they would in a call.

use std::fmt;

use bytes::Bytes;
use talkspurt_opus as libopus;
use talkspurt_proto::time::Duration;
use talkspurt_proto::units::Rate;

use super::{Codec, Decoder, Encoder, Encoding};

/// The lowest rate of Opus (RFC 6716 §2.1.1).
const LEAST: Rate = Rate::from_bps(6_000);
/// Durations of an Opus packet, in its shortest frames of 2.5 ms (RFC 6716 §2.1.4), the longest first.
const PACKETS: [usize; 6] = [24, 16, 8, 4, 2, 1];
/// Samples of 2.5 ms at 8 kHz.
const SHORTEST: usize = 20;
const SAMPLE_RATE: usize = 8_000;
/// Look-ahead of the encoder at 8 kHz, in samples: 6.5 ms.
const LOOK_AHEAD: usize = 52;

/// What is heard in place of a codec.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StandIn {
    codec: Codec,
    rate: Rate,
}

impl StandIn {
    pub(super) fn of(codec: Codec) -> Self {
        let spec = codec.spec();
        // Of a frame of AMR, one byte is its entry of the table of contents.
        let nanobits = u64::from(spec.frame_bytes - spec.header_bytes) * 8 * 1_000_000_000;
        let rate = Rate::from_bps(nanobits / spec.frame.as_nanos());
        Self { codec, rate: rate.max(LEAST) }
    }

    /// Bit rate of the stand-in.
    #[must_use]
    pub const fn rate(&self) -> Rate {
        self.rate
    }

    /// Samples by which the input of [`Voice`] is ahead of its output.
    #[must_use]
    pub const fn look_ahead(&self) -> usize {
        LOOK_AHEAD
    }
}

impl fmt::Display for StandIn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kbps = self.rate.as_bps() as f64 / 1e3;
        write!(f, "{}: narrowband Opus at {kbps} kbit/s", self.codec.spec().name)
    }
}

/// Packets of the codec's length, without sound.
#[derive(Debug)]
pub(super) struct Blank {
    pub(super) encoding: Encoding,
}

impl Encoder for Blank {
    fn encode(&mut self, _: &[i16], target: Option<Rate>) -> Bytes {
        let own = || self.encoding.payload_bytes();
        let bytes = target.map_or_else(own, |rate| self.encoding.payload_bytes_at(rate));
        vec![0; bytes].into()
    }
}

impl Decoder for Blank {
    fn decode(&mut self, _: &[u8]) -> Vec<i16> {
        Vec::new()
    }
}

/// The encoder and decoder of a stand-in.
#[derive(Debug)]
pub struct Voice {
    encoder: libopus::Encoder,
    decoder: libopus::Decoder,
    rate: Rate,
}

impl Voice {
    /// Both at their beginning.
    ///
    /// # Panics
    /// Without memory.
    #[must_use]
    pub fn new(stand_in: &StandIn) -> Self {
        let make = || -> Result<libopus::Encoder, libopus::Error> {
            let mut encoder = libopus::Encoder::at(SAMPLE_RATE, 1, libopus::Application::Voip)?;
            encoder.set_rate_control(libopus::RateControl::Constant)?;
            encoder.set_max_bandwidth(libopus::Bandwidth::Narrow)?;
            encoder.set_bitrate(stand_in.rate.as_bps() as u32)?;
            Ok(encoder)
        };
        let decoder = libopus::Decoder::at(SAMPLE_RATE, 1, 0);
        let (encoder, decoder) = make().and_then(|it| Ok((it, decoder?))).expect("valid for Opus");
        Self { encoder, decoder, rate: stand_in.rate }
    }

    /// Packets of some sound, each with its number of samples; what is less than 2.5 ms is left out.
    fn packets(&mut self, pcm: &[i16]) -> Vec<(usize, Vec<u8>)> {
        let (mut packets, mut rest) = (Vec::new(), pcm);
        while let Some(frames) = PACKETS.into_iter().find(|frames| frames * SHORTEST <= rest.len())
        {
            let (own, later) = rest.split_at(frames * SHORTEST);
            rest = later;
            let packet = Duration::from_micros(2500) * frames as u64;
            let nanobits = u128::from(self.rate.as_bps()) * u128::from(packet.as_nanos());
            let bytes = (nanobits / 8_000_000_000) as usize;
            packets.push((own.len(), self.encoder.encode(own, bytes).unwrap_or_default()));
        }
        packets
    }

    /// The sound of a packet that was received, from its own: at 8 kHz, with whole frames of 2.5 ms.
    pub fn received(&mut self, pcm: &[i16]) -> Vec<i16> {
        let mut sound = Vec::with_capacity(pcm.len());
        for (samples, packet) in self.packets(pcm) {
            let decoded = self.decoder.decode(&packet).unwrap_or_default();
            sound.extend(decoded.into_iter().chain(std::iter::repeat(0)).take(samples));
        }
        sound
    }

    /// The encoder took this sound, but its packets were lost.
    pub fn lost(&mut self, pcm: &[i16]) {
        self.packets(pcm);
    }
}

impl Decoder for Voice {
    fn decode(&mut self, _: &[u8]) -> Vec<i16> {
        Vec::new()
    }

    fn conceal(&mut self, samples: usize) -> Option<Vec<i16>> {
        let mut sound = Vec::with_capacity(samples);
        while sound.len() < samples {
            let left = (samples - sound.len()).next_multiple_of(SHORTEST);
            sound.extend(self.decoder.conceal(left.min(PACKETS[0] * SHORTEST)).ok()?);
        }
        Some(sound)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rate_is_that_of_the_codec_but_at_least_6_kbps() {
        let named = |codec| StandIn::of(codec).to_string();
        assert_eq!(named(Codec::G728), "G.728: narrowband Opus at 16 kbit/s");
        for (codec, bps) in [
            (Codec::G728, 16_000),
            (Codec::G729, 8_000),
            (Codec::G729A, 8_000),
            (Codec::G729At10, 10_000),
            // 20 bytes in 30 ms are 5333 bit/s.
            (Codec::G7231At53, 6_000),
            (Codec::G7231At63, 6_400),
            (Codec::Amr1220, 12_400),
            (Codec::Amr475, 6_000),
        ] {
            assert_eq!(StandIn::of(codec).rate().as_bps(), bps, "{codec:?}");
        }
    }

    #[test]
    fn packets_of_any_duration_have_the_rate() {
        for (codec, samples) in [(Codec::G728, 100), (Codec::G7231At53, 240), (Codec::G729, 400)] {
            let stand_in = StandIn::of(codec);
            let mut voice = Voice::new(&stand_in);
            let pcm: Vec<_> = (0..samples).map(|k| (k % 40 * 300 - 6000) as i16).collect();
            let packets = voice.packets(&pcm);
            assert_eq!(packets.iter().map(|it| it.0).sum::<usize>(), pcm.len());
            let bytes: usize = packets.iter().map(|it| it.1.len()).sum();
            let due = stand_in.rate().as_bps() as usize * pcm.len() / SAMPLE_RATE / 8;
            assert!(bytes <= due && bytes + packets.len() >= due, "{codec:?}: {bytes} of {due}");
            assert_eq!(voice.received(&pcm).len(), pcm.len());
            assert_eq!(voice.conceal(samples as usize).map(|it| it.len()), Some(pcm.len()));
        }
    }
}
