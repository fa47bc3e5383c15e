//! From the packets that were played to the sound of the whole call, exactly as long as what was
//! sent. A packet at place `i` holds the samples from `i` steps of the media clock on; the last one may
//! be cut short by the end of the recording. Where a packet is missing, the decoder recovers its sound
//! from a later packet or conceals the gap; else the flow's concealment does.

use bytes::Bytes;
use talkspurt_proto::time::Duration;

use super::Concealment;
use crate::codec::{self, Decoder, Encoding};
use crate::conceal;

/// A packet that was played.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Received {
    /// Its payload.
    pub payload: Bytes,
    /// Number of its encoding.
    pub encoding: usize,
    /// How long before its playing it arrived.
    pub early: Duration,
}

/// What a listener heard.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Heard {
    /// Linear PCM at the codec's rate.
    pub pcm: Vec<i16>,
    /// What the flow's concealment had to fill: first sample and length, neighbours joined.
    pub gaps: Vec<(usize, usize)>,
}

/// Decodes `packets` (those lost or late are `None`; what lies beyond the slice counts as missing) into
/// `total_samples` of PCM at the rate of the `encodings`' codecs. With nothing missing this is the
/// codec's own round trip, sample for sample. A payload too short for its place counts as missing, what
/// is too long is cut off. Around a gap, [`conceal::appendix_i`] may also touch up to 30 samples before
/// and 80 after it; `Silence` touches none.
///
/// # Panics
/// If there are no `encodings`, or if a packet names another.
#[must_use]
pub fn render(
    encodings: &[Encoding],
    concealment: Concealment,
    packets: &[Option<Received>],
    total_samples: usize,
) -> Heard {
    let step = codec::step(encodings);
    let samples = encodings[0].codec.samples_for(step).max(1);
    let voice = |it: &Encoding| Voice {
        packet: it.packet,
        steps: (it.packet.as_nanos() / step.as_nanos()).max(1) as usize,
        decoder: it.codec.decoder(),
        redundancy: it.codec.spec().sound.map_or(0, |sound| sound.redundancy),
    };
    let mut heard = decode(encodings.iter().map(voice).collect(), packets, total_samples, samples);
    if concealment == Concealment::G711AppendixI {
        let next = heard.gaps.iter().skip(1).map(|&(start, _)| start).chain([total_samples]);
        for (&(start, len), until) in heard.gaps.iter().zip(next) {
            conceal::appendix_i(&mut heard.pcm, start..start + len, until);
        }
    }
    heard
}

/// The receiver of one encoding.
struct Voice {
    /// Sound in a packet, as time and in steps of the media clock.
    packet: Duration,
    steps: usize,
    decoder: Option<Box<dyn Decoder>>,
    /// See [`codec::Sound::redundancy`].
    redundancy: u32,
}

/// What the decoders make of the packets; gaps are silent. A step of the media clock has so many
/// `samples`.
fn decode(
    mut voices: Vec<Voice>,
    packets: &[Option<Received>],
    total_samples: usize,
    samples: usize,
) -> Heard {
    let mut heard = Heard { pcm: vec![0; total_samples], gaps: Vec::new() };
    let (mut slot, mut present) = (0, 0);
    while slot * samples < total_samples {
        let start = slot * samples;
        let received = packets.get(slot).and_then(Option::as_ref);
        present = received.map_or(present, |received| received.encoding);
        let voice = &mut voices[present];
        if let (Some(received), Some(decoder)) = (received, &mut voice.decoder) {
            let place = (voice.steps * samples).min(total_samples - start);
            let sound = decoder.decode(&received.payload);
            if sound.len() >= place {
                heard.pcm[start..start + place].copy_from_slice(&sound[..place]);
                slot += voice.steps;
                continue;
            }
        }
        let place = samples.min(total_samples - start);
        let later = (1..=voice.redundancy).filter_map(|ahead| {
            // It has come by the time at which the lost packet is to be played.
            let received = packets.get(slot + ahead as usize * voice.steps)?.as_ref()?;
            (received.encoding == present && received.early >= voice.packet * u64::from(ahead))
                .then_some((ahead, &received.payload))
        });
        let filled = voice.decoder.as_deref_mut().and_then(|decoder| fill(decoder, later, place));
        match (filled.filter(|sound| sound.len() >= place), heard.gaps.last_mut()) {
            (Some(sound), _) => {
                heard.pcm[start..start + place].copy_from_slice(&sound[..place]);
            }
            (None, Some((first, len))) if *first + *len == start => *len += place,
            (None, _) => heard.gaps.push((start, place)),
        }
        slot += 1;
    }
    heard
}

/// What the decoder makes of a lost packet: its own sound from the first of the `later` ones that has
/// it, or something like it.
fn fill<'a>(
    decoder: &mut dyn Decoder,
    mut later: impl Iterator<Item = (u32, &'a Bytes)>,
    samples: usize,
) -> Option<Vec<i16>> {
    later
        .find_map(|(ahead, payload)| decoder.recover(payload, ahead, samples))
        .or_else(|| decoder.conceal(samples))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codec::Codec;
    use proptest::prelude::*;

    const MU: Codec = Codec::Pcmu;

    /// Encodings of one kind, with packets of so many ms.
    fn of(codec: Codec, ms: usize) -> [Encoding; 1] {
        [Encoding { codec, packet: Duration::from_millis(ms as u64) }]
    }

    fn received(payload: Bytes) -> Option<Received> {
        Some(Received { payload, encoding: 0, early: Duration::ZERO })
    }

    fn cut(encoded: &Bytes, samples: usize) -> Vec<Option<Received>> {
        encoded.chunks(samples).map(|chunk| received(encoded.slice_ref(chunk))).collect()
    }

    fn plain(codec: Codec, encoded: &[u8]) -> Vec<i16> {
        codec.decoder().expect("it is heard").decode(encoded)
    }

    #[test]
    fn neighbouring_losses_are_one_gap() {
        let mut packets = cut(&Bytes::from(vec![7; 1000]), 160);
        for lost in [0, 3, 4, 6] {
            packets[lost] = None;
        }
        let gaps = |packets: &[_]| render(&of(MU, 20), Concealment::Silence, packets, 1000).gaps;
        // 1000 samples: six packets of 160 and one of 40.
        assert_eq!(gaps(&packets), [(0, 160), (480, 320), (960, 40)]);
        // What never came at all is missing as well.
        assert_eq!(gaps(&packets[..2]), [(0, 160), (320, 680)]);
        // As is a packet too short for its place.
        packets[1] = received(Bytes::from_static(&[7; 159]));
        assert_eq!(gaps(&packets)[0], (0, 320));
    }

    #[test]
    fn silence_is_silent_and_leaves_the_rest_alone() {
        let encoded = Bytes::from(vec![0x1F; 480]);
        let mut packets = cut(&encoded, 160);
        packets[1] = None;
        let heard = render(&of(MU, 20), Concealment::Silence, &packets, 480).pcm;
        let plain = plain(MU, &encoded);
        assert_eq!(heard[..160], plain[..160]);
        assert!(heard[160..320].iter().all(|&x| x == 0));
        assert_eq!(heard[320..], plain[320..]);
    }

    #[test]
    fn packets_of_a_ladder_have_their_own_lengths() {
        // 20, 30 and 20 ms; then one of 30 is missing, of which as many steps are gone.
        let two: [Encoding; 2] =
            [of(Codec::Pcmu, 20)[0], Encoding { codec: Codec::Pcma, ..of(MU, 30)[0] }];
        let mut packets = vec![None; 13];
        let sound = |len| Bytes::from((0..len).map(|k| k as u8).collect::<Vec<_>>());
        for (slot, encoding, len) in [(0, 0, 160), (2, 1, 240), (5, 0, 160), (10, 1, 240)] {
            let early = Duration::ZERO;
            packets[slot] = Some(Received { payload: sound(len), encoding, early });
        }
        let heard = render(&two, Concealment::Silence, &packets, 13 * 80);
        assert_eq!(heard.gaps, [(560, 240)]);
        assert_eq!(heard.pcm[160..400], plain(Codec::Pcma, &sound(240)));
        assert_eq!(heard.pcm[400..560], plain(Codec::Pcmu, &sound(160)));
        assert_eq!(heard.pcm[800..], plain(Codec::Pcma, &sound(240)));
    }

    /// A packet is a number and the number of the one before it; lost ones count down from the last.
    #[derive(Debug)]
    struct Counting(i16);

    impl Decoder for Counting {
        fn decode(&mut self, payload: &[u8]) -> Vec<i16> {
            self.0 = i16::from(payload[0]);
            vec![self.0; 80]
        }
        fn recover(&mut self, later: &[u8], ahead: u32, samples: usize) -> Option<Vec<i16>> {
            let copy = later.get(ahead as usize)?;
            Some(vec![i16::from(*copy); samples])
        }
        fn conceal(&mut self, samples: usize) -> Option<Vec<i16>> {
            self.0 -= 1;
            (self.0 > 0).then(|| vec![self.0; samples])
        }
    }

    #[test]
    fn a_decoder_recovers_what_it_can_and_conceals_the_rest() {
        let heard = |packets: &[Option<(&'static [u8], u64)>]| {
            let packet = Duration::from_millis(10);
            let decoder: Box<dyn Decoder> = Box::new(Counting(0));
            let voice = Voice { packet, steps: 1, decoder: Some(decoder), redundancy: 2 };
            let received = |&(payload, early): &(&'static [u8], u64)| Received {
                payload: Bytes::from_static(payload),
                encoding: 0,
                early: Duration::from_millis(early),
            };
            let packets: Vec<_> = packets.iter().map(|it| it.as_ref().map(received)).collect();
            let heard = decode(vec![voice], &packets, packets.len() * 80, 80);
            (heard.pcm.chunks(80).map(|part| part[0]).collect::<Vec<_>>(), heard.gaps)
        };
        let whole = |pcm: &[i16]| (pcm.to_vec(), Vec::new());
        // From the next packet, which came 10 ms before its own time: just in time.
        assert_eq!(heard(&[Some((&[9], 0)), None, Some((&[7, 8], 10))]), whole(&[9, 8, 7]));
        // It came too late for that, or has no copy, or is itself not there.
        let from_the_last = whole(&[9, 8, 5]);
        assert_eq!(heard(&[Some((&[9], 0)), None, Some((&[5, 4], 9))]), from_the_last);
        assert_eq!(heard(&[Some((&[9], 0)), None, Some((&[5], 60))]), from_the_last);
        // Two in a row: the packet after them has copies of both, for the first of which it must have
        // come 20 ms before its time.
        let two = |early| heard(&[Some((&[9], 0)), None, None, Some((&[3, 4, 6], early))]);
        assert_eq!(two(20), whole(&[9, 6, 4, 3]));
        assert_eq!(two(19), whole(&[9, 8, 4, 3]));
        // What the decoder leaves to the flow's concealment is a gap.
        let (pcm, gaps) = heard(&[Some((&[2], 0)), None, None, None, Some((&[5], 0))]);
        assert_eq!((pcm, gaps), (vec![2, 1, 0, 0, 5], vec![(160, 160)]));
    }

    fn concealment() -> impl Strategy<Value = Concealment> {
        prop_oneof![Just(Concealment::Silence), Just(Concealment::G711AppendixI)]
    }

    proptest! {
        #[test]
        fn always_as_long_as_what_was_sent(
            concealment in concealment(),
            payloads in prop::collection::vec(
                prop::option::of(prop::collection::vec(any::<u8>(), 0..500)), 0..40),
            total in 0..4000_usize,
            ms in 1..60_usize,
        ) {
            let packets: Vec<_> =
                payloads.into_iter().map(|payload| received(payload?.into())).collect();
            let heard = render(&of(MU, ms), concealment, &packets, total);
            prop_assert_eq!(heard.pcm.len(), total);
            let lost: usize = heard.gaps.iter().map(|gap| gap.1).sum();
            prop_assert!(lost <= total);
        }

        #[test]
        fn whole_streams_are_the_codecs_round_trip(
            concealment in concealment(),
            encoded in prop::collection::vec(any::<u8>(), 1..3000),
            ms in 1..7_usize,
        ) {
            let encoded = Bytes::from(encoded);
            let packets = cut(&encoded, ms * 80);
            for codec in [Codec::Pcmu, Codec::Pcma] {
                let heard = render(&of(codec, ms * 10), concealment, &packets, encoded.len());
                prop_assert_eq!(heard.pcm, plain(codec, &encoded));
            }
        }

        #[test]
        fn only_the_stated_borders_of_a_gap_are_touched(
            encoded in prop::collection::vec(any::<u8>(), 3000..4000),
            lost in prop::collection::vec(any::<bool>(), 50),
            ms in 1..7_usize,
        ) {
            let encoded = Bytes::from(encoded);
            let total = encoded.len();
            let mut packets = cut(&encoded, ms * 80);
            for (packet, _) in packets.iter_mut().zip(&lost).filter(|(_, lost)| **lost) {
                *packet = None;
            }
            let Heard { pcm, gaps } =
                render(&of(MU, ms * 10), Concealment::G711AppendixI, &packets, total);
            let plain = plain(MU, &encoded);
            let touched = |at: usize| {
                gaps.iter().any(|&(start, len)| at + 30 >= start && at < start + len + 80)
            };
            for at in (0..total).filter(|&at| !touched(at)) {
                prop_assert_eq!(pcm[at], plain[at]);
            }
        }
    }
}
