//! From the frames that were played to the sound of the whole call, exactly as long as what was
//! sent. Frame `i` holds samples `i · samples_per_frame` onwards; the last one may be cut short by
//! the end of the recording. Where a frame is missing the concealment speaks.

use std::ops::Range;

use bytes::Bytes;

use super::Concealment;
use crate::codec::Codec;
use crate::conceal;

/// Decodes `frames` (those lost or late are `None`; frames beyond the slice count as missing) into
/// `total_samples` of PCM at the codec's rate. With nothing missing this is the codec's own round
/// trip, sample for sample. A payload too short for its place counts as missing, what is too long
/// is cut off. Around a gap, [`conceal::appendix_i`] may also touch up to 30 samples before and 80
/// after it; `Silence` touches none.
#[must_use]
pub fn render(
    codec: Codec,
    concealment: Concealment,
    frames: &[Option<Bytes>],
    total_samples: usize,
    samples_per_frame: usize,
) -> Vec<i16> {
    let mut pcm = vec![0; total_samples];
    for (index, span) in spans(total_samples, samples_per_frame).enumerate() {
        if let Some(payload) = whole(codec, frames, index, span.len()) {
            pcm[span.clone()].copy_from_slice(&codec.decode(payload)[..span.len()]);
        }
    }
    if concealment == Concealment::G711AppendixI {
        let gaps = gaps(codec, frames, total_samples, samples_per_frame);
        let next = gaps.iter().skip(1).map(|&(start, _)| start).chain([total_samples]);
        for (&(start, len), until) in gaps.iter().zip(next) {
            conceal::appendix_i(&mut pcm, start..start + len, until);
        }
    }
    pcm
}

/// The stretches that [`render`] has to conceal: first sample and length, neighbours joined.
#[must_use]
pub fn gaps(
    codec: Codec,
    frames: &[Option<Bytes>],
    total_samples: usize,
    samples_per_frame: usize,
) -> Vec<(usize, usize)> {
    let mut gaps: Vec<(usize, usize)> = Vec::new();
    for (index, span) in spans(total_samples, samples_per_frame).enumerate() {
        if whole(codec, frames, index, span.len()).is_some() {
            continue;
        }
        match gaps.last_mut() {
            Some((start, len)) if *start + *len == span.start => *len += span.len(),
            _ => gaps.push((span.start, span.len())),
        }
    }
    gaps
}

/// The samples of each frame. Without samples in a frame, all are one frame.
fn spans(total_samples: usize, samples_per_frame: usize) -> impl Iterator<Item = Range<usize>> {
    let step = if samples_per_frame == 0 { total_samples.max(1) } else { samples_per_frame };
    (0..total_samples)
        .step_by(step)
        .map(move |start| start..start.saturating_add(step).min(total_samples))
}

/// Frame `index`, if it came and fills its place.
fn whole(codec: Codec, frames: &[Option<Bytes>], index: usize, samples: usize) -> Option<&Bytes> {
    let payload = frames.get(index)?.as_ref()?;
    (codec.samples_in(payload.len()) >= samples).then_some(payload)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const CODEC: Codec = Codec::Pcmu;

    fn cut(encoded: &Bytes, samples: usize) -> Vec<Option<Bytes>> {
        encoded.chunks(samples).map(|chunk| Some(encoded.slice_ref(chunk))).collect()
    }

    #[test]
    fn neighbouring_losses_are_one_gap() {
        let mut frames = cut(&Bytes::from(vec![7; 1000]), 160);
        for lost in [0, 3, 4, 6] {
            frames[lost] = None;
        }
        // 1000 samples: six frames of 160 and one of 40.
        assert_eq!(gaps(CODEC, &frames, 1000, 160), [(0, 160), (480, 320), (960, 40)]);
        // What never came at all is missing as well.
        assert_eq!(gaps(CODEC, &frames[..2], 1000, 160), [(0, 160), (320, 680)]);
        // As is a frame too short for its place.
        frames[1] = Some(Bytes::from_static(&[7; 159]));
        assert_eq!(gaps(CODEC, &frames, 1000, 160)[0], (0, 320));
    }

    #[test]
    fn silence_is_silent_and_leaves_the_rest_alone() {
        let encoded = CODEC.encode(&[1000; 480]);
        let mut frames = cut(&encoded, 160);
        frames[1] = None;
        let heard = render(CODEC, Concealment::Silence, &frames, 480, 160);
        let plain = CODEC.decode(&encoded);
        assert_eq!(heard[..160], plain[..160]);
        assert!(heard[160..320].iter().all(|&x| x == 0));
        assert_eq!(heard[320..], plain[320..]);
    }

    fn concealment() -> impl Strategy<Value = Concealment> {
        prop_oneof![Just(Concealment::Silence), Just(Concealment::G711AppendixI)]
    }

    proptest! {
        #[test]
        fn always_as_long_as_what_was_sent(
            concealment in concealment(),
            payloads in prop::collection::vec(
                prop::option::of(prop::collection::vec(any::<u8>(), 0..200)), 0..40),
            total in 0..4000_usize,
            samples in 0..300_usize,
        ) {
            let frames: Vec<_> = payloads.into_iter().map(|p| p.map(Bytes::from)).collect();
            prop_assert_eq!(render(CODEC, concealment, &frames, total, samples).len(), total);
            let lost: usize = gaps(CODEC, &frames, total, samples).iter().map(|g| g.1).sum();
            prop_assert!(lost <= total);
        }

        #[test]
        fn whole_streams_are_the_codecs_round_trip(
            concealment in concealment(),
            encoded in prop::collection::vec(any::<u8>(), 1..3000),
            ms in 1..7_usize,
        ) {
            let encoded = Bytes::from(encoded);
            let frames = cut(&encoded, ms * 80);
            for codec in [Codec::Pcmu, Codec::Pcma] {
                let heard = render(codec, concealment, &frames, encoded.len(), ms * 80);
                prop_assert_eq!(heard, codec.decode(&encoded));
            }
        }

        #[test]
        fn only_the_stated_borders_of_a_gap_are_touched(
            encoded in prop::collection::vec(any::<u8>(), 3000..4000),
            lost in prop::collection::vec(any::<bool>(), 50),
            ms in 1..7_usize,
        ) {
            let encoded = Bytes::from(encoded);
            let (total, step) = (encoded.len(), ms * 80);
            let mut frames = cut(&encoded, step);
            for (frame, _) in frames.iter_mut().zip(&lost).filter(|(_, lost)| **lost) {
                *frame = None;
            }
            let heard = render(CODEC, Concealment::G711AppendixI, &frames, total, step);
            let plain = CODEC.decode(&encoded);
            let gaps = gaps(CODEC, &frames, total, step);
            let touched = |at: usize| {
                gaps.iter().any(|&(start, len)| at + 30 >= start && at < start + len + 80)
            };
            for at in (0..total).filter(|&at| !touched(at)) {
                prop_assert_eq!(heard[at], plain[at]);
            }
        }
    }
}
