//! Renders the packets that were played into the sound of the whole call. A packet at index `i` holds the
//! samples from `i` steps of the media clock on; the end of the recording may cut the last one short. The
//! decoder recovers a missing packet from a later one or conceals the gap; otherwise the flow's concealment
//! does. In the speaker's pauses, which packet numbers distinguish from losses, there is comfort noise or
//! silence. `mix` joins the codecs of a ladder. With adaptive playout, the sound is then stretched and paused
//! as the buffer decided; otherwise it is exactly as long as the original.

use std::ops::Range;

use bytes::Bytes;
use talkspurt_proto::time::Duration;

use super::mix::{Heard, Mix};
use super::pauses::pauses;
use super::{Concealment, Stretch, timescale};
use crate::codec::{self, Decoder, Encoding, comfort_noise, stand_in};
use crate::conceal;
use crate::recording::{Recording, excerpt};

/// A packet that was played.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Received {
    /// Its payload.
    pub payload: Bytes,
    /// Index of its encoding; `None` for comfort noise.
    pub encoding: Option<usize>,
    /// Number of its packet, or of the lost packet that it is kept for.
    pub index: u32,
    /// The RTP marker: a talkspurt begins.
    pub marker: bool,
    /// Steps from the lost packet in whose place it is kept, whose sound it also contains; 0 in its own place.
    pub ahead: u32,
}

/// What was said: for codecs that are heard through a stand-in, and for the pause at the end.
#[derive(Clone, Copy, Debug)]
pub struct Spoken<'a> {
    /// The recording.
    pub recording: &'a Recording,
    /// It starts over when it ends.
    pub repeat: bool,
    /// Packets that were generated.
    pub sent: u32,
}

/// Decodes `packets` (`None` if lost or late; those beyond the slice are missing) of a recording of
/// `total_samples` at the highest rate of the `encodings`' codecs. A codec without an encoder sounds like its
/// stand-in if what was `spoken` is given, and like a gap otherwise. Without a `timeline` the result has the
/// same length, and with nothing missing it is the codec's own round trip, sample for sample. A payload too
/// short for its place counts as missing; one that is too long is cut off. Around a gap,
/// [`conceal::appendix_i`] may also change up to 30 samples before and 80 after it; `Silence` changes none.
///
/// # Panics
/// If there are no `encodings`, or if a packet refers to another.
#[must_use]
pub fn render(
    encodings: &[Encoding],
    concealment: Concealment,
    packets: &[Option<Received>],
    timeline: Option<&[Stretch]>,
    total_samples: usize,
    spoken: Option<Spoken<'_>>,
) -> Heard {
    let step = codec::step(encodings);
    let best = encodings.iter().max_by_key(|it| it.codec.spec().sample_rate).expect("an encoding");
    let samples = best.samples_for(step).max(1);
    let voice = |it: &Encoding| Voice {
        packet: it.packet,
        steps: (it.packet.as_nanos() / step.as_nanos()).max(1) as usize,
        channels: it.channels(),
        decoder: it.receiver(concealment),
        stand_in: spoken.and_then(|spoken| StandIn::new(it, step, spoken)),
    };
    let (rate, channels) = (best.codec.spec().sample_rate, best.channels());
    let plan = plan(timeline, total_samples, samples, step);
    let voices = encodings.iter().map(voice).collect();
    let mix = Mix::new(encodings, total_samples);
    let sent = spoken.map(|spoken| spoken.sent);
    let sizes = (total_samples, samples);
    let (mut heard, pieces) = decode(voices, (packets, sent), &plan, mix, sizes);
    if concealment != Concealment::Silence {
        let next = heard.gaps.iter().skip(1).map(|&(start, _)| start).chain([heard.pcm.len()]);
        for (&(start, len), until) in heard.gaps.iter().zip(next) {
            conceal::appendix_i(&mut heard.pcm, start..start + len, until, rate);
        }
    }
    if timeline.is_some() {
        heard.pcm = stretch(&heard.pcm, &pieces, rate as usize, channels);
    }
    heard
}

/// The timeline with what it leaves out: the steps before the first frame that was played, and those after
/// the last. The default is all steps at their own pace.
fn plan(
    timeline: Option<&[Stretch]>,
    total_samples: usize,
    samples: usize,
    step: Duration,
) -> Vec<Stretch> {
    let nanos = step.as_nanos();
    let plain = |from: u32, to: usize| {
        let steps = (to as u32).saturating_sub(from);
        (steps > 0).then(|| Stretch::Media { from, steps, out: u64::from(steps) * nanos })
    };
    let media = |stretch: &Stretch| match stretch {
        Stretch::Media { from, steps, .. } => Some((*from, *steps)),
        _ => None,
    };
    let timeline = timeline.unwrap_or_default();
    let first = timeline.iter().find_map(media).map_or(0, |(from, _)| from);
    let last = timeline.iter().rev().find_map(media).map_or(0, |(from, steps)| from + steps);
    let total = total_samples.div_ceil(samples);
    let before = plain(0, first as usize);
    before.into_iter().chain(timeline.iter().copied()).chain(plain(last, total)).collect()
}

/// A piece of decoded sound, up to its last sample, and the nanoseconds in which it is played.
struct Piece {
    end: usize,
    out: u64,
    /// Its length may be changed without time scaling: nothing is said in it.
    is_elastic: bool,
}

/// Gives each piece its length. Time scaling ends within a few milliseconds of the requested length; the next
/// piece that can change its length corrects this.
fn stretch(pcm: &[i16], pieces: &[Piece], rate: usize, channels: usize) -> Vec<i16> {
    let per_second = (rate * channels) as u128;
    let (mut out, mut due, mut start) = (Vec::with_capacity(pcm.len()), 0_u128, 0);
    for piece in pieces {
        let region = start..piece.end;
        start = piece.end;
        due += u128::from(piece.out);
        // The last piece may be cut short by the end of the recording.
        let own = region.len() as u128 * 1_000_000_000 / per_second;
        if own.abs_diff(u128::from(piece.out)) < 200_000 {
            out.extend_from_slice(&pcm[region]);
            continue;
        }
        let end = (due * rate as u128 / 1_000_000_000) as usize * channels;
        let wanted = end.saturating_sub(out.len());
        if piece.is_elastic {
            let kept = wanted.min(region.len());
            out.extend_from_slice(&pcm[region.start..region.start + kept]);
            out.extend(std::iter::repeat_n(0, wanted - kept));
        } else {
            let half = region.len() / 2 / channels * channels;
            let wanted = wanted.clamp(half, region.len() * 2);
            out.extend(timescale::scale(pcm, region, wanted, rate, channels));
        }
    }
    out
}

/// A codec that is heard through another.
struct StandIn<'a> {
    voice: stand_in::Voice,
    pcm: &'a [i16],
    repeat: bool,
    /// Samples per step of the media clock, and those by which the stand-in's input is ahead.
    step: usize,
    ahead: usize,
}

impl<'a> StandIn<'a> {
    fn new(encoding: &Encoding, step: Duration, spoken: Spoken<'a>) -> Option<Self> {
        let stand_in = encoding.stand_in()?;
        Some(Self {
            voice: stand_in::Voice::new(&stand_in),
            pcm: spoken.recording.pcm(encoding.codec.spec().sample_rate),
            repeat: spoken.repeat,
            step: encoding.samples_for(step),
            ahead: stand_in.look_ahead(),
        })
    }

    /// What is said in these steps.
    fn said(&self, slot: usize, steps: usize) -> Vec<i16> {
        let range = (slot * self.step + self.ahead, steps * self.step);
        excerpt(self.pcm, 1, range, self.step, self.repeat)
    }
}

/// The decoder state of one encoding.
struct Voice<'a> {
    /// Duration of a packet, as time and in steps of the media clock.
    packet: Duration,
    steps: usize,
    channels: usize,
    decoder: Option<Box<dyn Decoder>>,
    stand_in: Option<StandIn<'a>>,
}

impl Voice<'_> {
    /// The sound of a pause: the encoder's own comfort noise, or that of the flow.
    fn pause(&mut self, samples: usize, noise: &mut comfort_noise::Generator) -> Vec<i16> {
        let own = self.decoder().and_then(|decoder| decoder.pause(samples));
        let mut own = own.unwrap_or_else(|| noise.noise(samples));
        own.resize(samples, 0);
        own
    }

    /// What conceals gaps and generates pauses.
    fn decoder(&mut self) -> Option<&mut dyn Decoder> {
        match &mut self.stand_in {
            Some(it) => Some(&mut it.voice),
            None => self.decoder.as_deref_mut().map(|it| it as &mut dyn Decoder),
        }
    }

    /// The sound of a packet, which begins at `slot` and has `whole` samples.
    fn sound(&mut self, received: &Received, slot: usize, whole: usize) -> Option<Vec<i16>> {
        if let Some(stand_in) = &mut self.stand_in {
            let said = stand_in.said(slot, self.steps);
            return Some(stand_in.voice.received(&said));
        }
        let decoder = self.decoder.as_deref_mut()?;
        match received.ahead / self.steps as u32 {
            0 => Some(decoder.decode(&received.payload)),
            ahead => decoder.recover(&received.payload, ahead, whole),
        }
    }

    /// The sound of a step that is missing.
    fn missing(&mut self, slot: usize, samples: usize) -> Option<Vec<i16>> {
        if let Some(stand_in) = &mut self.stand_in {
            let said = stand_in.said(slot, 1);
            stand_in.voice.lost(&said);
        }
        self.decoder()?.conceal(samples)
    }

    /// Samples in a duration, where a step of the media clock has `samples`.
    fn samples_in(&self, nanos: u64, samples: usize) -> usize {
        let step = u128::from(self.packet.as_nanos()) / self.steps as u128;
        let per_channel = (samples / self.channels) as u128;
        (u128::from(nanos) * per_channel / step.max(1)) as usize * self.channels
    }
}

/// Decodes the packets by the plan; gaps are silent. A step of the media clock has `samples` samples of the
/// result.
fn decode(
    mut voices: Vec<Voice<'_>>,
    (packets, sent): (&[Option<Received>], Option<u32>),
    plan: &[Stretch],
    mut mix: Mix,
    (total_samples, samples): (usize, usize),
) -> (Heard, Vec<Piece>) {
    let mut pieces: Vec<Piece> = Vec::with_capacity(plan.len());
    let lengths: Vec<_> = voices.iter().map(|voice| voice.steps).collect();
    let pauses = pauses(packets, &lengths, sent, total_samples.div_ceil(samples));
    let mut noise = comfort_noise::Generator::default();
    let mut present = 0;
    for stretch in plan {
        match *stretch {
            Stretch::Media { from, steps, .. } => {
                let (from, to) = (from as usize, (from + steps) as usize);
                let to = to.min(total_samples.div_ceil(samples));
                decode_media(
                    &mut voices,
                    (packets, &pauses),
                    from..to,
                    (&mut present, &mut noise),
                    &mut mix,
                    (total_samples, samples),
                );
            }
            Stretch::Expansion(nanos) => {
                let mut left = voices[present].samples_in(nanos, samples);
                while left > 0 {
                    let place = left.min(samples);
                    let own = mix.own(present, place);
                    let decoder = voices[present].decoder();
                    let filled = decoder.and_then(|decoder| decoder.conceal(own));
                    fill(&mut mix, present, filled, place);
                    left -= place;
                }
            }
            Stretch::Silence(nanos) => {
                let place = voices[present].samples_in(nanos, samples);
                let own = mix.own(present, place);
                let sound = voices[present].pause(own, &mut noise);
                mix.play(present, &sound, place);
            }
        }
        let (Stretch::Media { out, .. } | Stretch::Expansion(out) | Stretch::Silence(out)) =
            *stretch;
        let is_elastic = !matches!(stretch, Stretch::Media { .. });
        pieces.push(Piece { end: mix.len(), out, is_elastic });
    }
    (mix.finish(), pieces)
}

/// Decodes the packets of these steps.
fn decode_media(
    voices: &mut [Voice<'_>],
    (packets, pauses): (&[Option<Received>], &[Range<usize>]),
    steps: Range<usize>,
    (present, noise): (&mut usize, &mut comfort_noise::Generator),
    mix: &mut Mix,
    (total_samples, samples): (usize, usize),
) {
    let mut slot = steps.start;
    while slot < steps.end {
        let left = total_samples - slot * samples;
        let received = packets.get(slot).and_then(Option::as_ref);
        *present = received.and_then(|received| received.encoding).unwrap_or(*present);
        let voice = &mut voices[*present];
        let pause = pauses[pauses.partition_point(|pause| pause.end <= slot)..].first();
        let pause = pause.filter(|pause| pause.start <= slot);
        let described = received.filter(|received| received.encoding.is_none());
        if pause.is_some() || described.is_some() {
            described.into_iter().for_each(|received| noise.follow(&received.payload));
            let until = pause.map_or(slot + 1, |pause| pause.end).min(steps.end);
            let place = ((until - slot) * samples).min(left);
            let sound = voice.pause(mix.own(*present, place), noise);
            mix.play(*present, &sound, place);
            slot = until;
            continue;
        }
        if let Some(received) = received {
            let whole = voice.steps * samples;
            let place = whole.min(left);
            let own = mix.own(*present, place);
            let sound = voice.sound(received, slot, mix.own(*present, whole)).unwrap_or_default();
            if sound.len() >= own {
                slot += voice.steps;
                if let Some((old, fade)) = mix.change(*present) {
                    let decoder = voices[old].decoder();
                    mix.end(decoder.and_then(|decoder| decoder.conceal(fade)));
                }
                mix.play(*present, &sound[..own], place);
                continue;
            }
        }
        let place = samples.min(left);
        let filled = voice.missing(slot, mix.own(*present, place));
        fill(mix, *present, filled, place);
        slot += 1;
    }
}

/// Appends `place` samples of the result: what the decoder concealed, or a gap.
fn fill(mix: &mut Mix, voice: usize, filled: Option<Vec<i16>>, place: usize) {
    let own = mix.own(voice, place);
    match filled.filter(|sound| sound.len() >= own) {
        Some(sound) => mix.play(voice, &sound[..own], place),
        None => mix.gap(place),
    }
}

#[cfg(test)]
mod tests {
    use super::super::pauses::tests::sequence;
    use super::*;
    use crate::codec::Codec;
    use proptest::prelude::*;

    const MU: Codec = Codec::Pcmu;

    /// One encoding, with packets of `ms` milliseconds.
    fn of(codec: Codec, ms: usize) -> [Encoding; 1] {
        [Encoding::new(codec, Duration::from_millis(ms as u64))]
    }

    fn received(payload: Bytes, index: usize) -> Option<Received> {
        let index = index as u32;
        Some(Received { payload, encoding: Some(0), index, marker: false, ahead: 0 })
    }

    fn cut(encoded: &Bytes, samples: usize) -> Vec<Option<Received>> {
        let chunks = encoded.chunks(samples).enumerate();
        chunks.map(|(index, chunk)| received(encoded.slice_ref(chunk), index)).collect()
    }

    fn plain(codec: Codec, encoded: &[u8]) -> Vec<i16> {
        of(codec, 20)[0].decoder().expect("it is heard").decode(encoded)
    }

    #[test]
    fn neighbouring_losses_are_one_gap() {
        let mut packets = cut(&Bytes::from(vec![7; 1000]), 160);
        for lost in [0, 3, 4, 6] {
            packets[lost] = None;
        }
        let gaps = |packets: &[_]| {
            render(&of(MU, 20), Concealment::Silence, packets, None, 1000, None).gaps
        };
        // 1000 samples: six packets of 160 and one of 40.
        assert_eq!(gaps(&packets), [(0, 160), (480, 320), (960, 40)]);
        // Packets beyond the slice are missing as well.
        assert_eq!(gaps(&packets[..2]), [(0, 160), (320, 680)]);
        // So is a packet too short for its place.
        packets[1] = received(Bytes::from_static(&[7; 159]), 1);
        assert_eq!(gaps(&packets)[0], (0, 320));
    }

    #[test]
    fn silence_is_silent_and_leaves_the_rest_alone() {
        let encoded = Bytes::from(vec![0x1F; 480]);
        let mut packets = cut(&encoded, 160);
        packets[1] = None;
        let heard = render(&of(MU, 20), Concealment::Silence, &packets, None, 480, None).pcm;
        let plain = plain(MU, &encoded);
        assert_eq!(heard[..160], plain[..160]);
        assert!(heard[160..320].iter().all(|&x| x == 0));
        assert_eq!(heard[320..], plain[320..]);
    }

    #[test]
    fn packets_of_a_ladder_have_their_own_lengths() {
        // 20, 30 and 20 ms; then a packet of 30 ms is missing, with as many steps.
        let two: [Encoding; 2] =
            [of(Codec::Pcmu, 20)[0], Encoding { codec: Codec::Pcma, ..of(MU, 30)[0] }];
        let mut packets = vec![None; 13];
        let sound = |len| Bytes::from((0..len).map(|k| k as u8).collect::<Vec<_>>());
        for (index, slot, encoding, len) in
            [(0, 0, 0, 160), (1, 2, 1, 240), (2, 5, 0, 160), (4, 10, 1, 240)]
        {
            let encoding = Some(encoding);
            packets[slot] = received(sound(len), index).map(|it| Received { encoding, ..it });
        }
        let heard = render(&two, Concealment::Silence, &packets, None, 13 * 80, None);
        assert_eq!(heard.gaps, [(560, 240)]);
        assert_eq!(heard.pcm[160..400], plain(Codec::Pcma, &sound(240)));
        assert_eq!(heard.pcm[400..560], plain(Codec::Pcmu, &sound(160)));
        assert_eq!(heard.pcm[800..], plain(Codec::Pcma, &sound(240)));
    }

    /// A packet holds a number and the number of the one before it; lost ones count down from the last.
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
    fn a_decoder_recovers_what_was_found_and_conceals_the_rest() {
        let heard = |packets: &[Option<(&'static [u8], u32)>]| {
            let packet = Duration::from_millis(10);
            let decoder: Box<dyn Decoder> = Box::new(Counting(0));
            let decoder = Some(decoder);
            let voice = Voice { packet, steps: 1, channels: 1, decoder, stand_in: None };
            let received = |(index, it): (usize, &Option<(&'static [u8], u32)>)| {
                let (payload, ahead) = (*it)?;
                let it = received(Bytes::from_static(payload), index);
                it.map(|it| Received { ahead, ..it })
            };
            let packets: Vec<_> = packets.iter().enumerate().map(received).collect();
            let plan = plan(None, packets.len() * 80, 80, Duration::from_millis(10));
            let mix = Mix::new(&of(MU, 10), 0);
            let sizes = (packets.len() * 80, 80);
            let (heard, _) = decode(vec![voice], (&packets, None), &plan, mix, sizes);
            (heard.pcm.chunks(80).map(|part| part[0]).collect::<Vec<_>>(), heard.gaps)
        };
        let whole = |pcm: &[i16]| (pcm.to_vec(), Vec::new());
        let next: &[u8] = &[7, 8, 6];
        let copied = |ahead| Some((next, ahead));
        assert_eq!(heard(&[Some((&[9], 0)), copied(1), copied(0)]), whole(&[9, 8, 7]));
        assert_eq!(
            heard(&[Some((&[9], 0)), copied(2), copied(1), copied(0)]),
            whole(&[9, 6, 8, 7])
        );
        // The packet does not have it after all.
        assert_eq!(heard(&[Some((&[9], 0)), copied(3), copied(0)]), whole(&[9, 8, 7]));
        // A packet that the decoder does not conceal is a gap.
        let (pcm, gaps) = heard(&[Some((&[2], 0)), None, None, None, Some((&[5], 0))]);
        assert_eq!((pcm, gaps), (vec![2, 1, 0, 0, 5], vec![(160, 160)]));
    }

    #[test]
    fn a_pause_is_silent_without_comfort_noise_and_has_its_level_with_it() {
        let two = [of(MU, 20)[0], of(MU, 10)[0]];
        let sound = |text: &str| {
            let mut packets = sequence(text);
            for it in packets.iter_mut().flatten().filter(|it| it.encoding.is_some()) {
                it.payload = Bytes::from(vec![7; 160]);
            }
            render(&two, Concealment::G711AppendixI, &packets, None, 24 * 80, None)
        };
        let heard = sound("0:0! 2:1 20:2! 22:3");
        assert_eq!(heard.gaps, []);
        assert!(heard.pcm[320..1600].iter().all(|x| *x == 0));
        // One lost packet is concealed, the pause after it is not.
        assert_eq!(sound("0:0! 2:1 20:3! 22:4").gaps, [(320, 160)]);
        let heard = sound("0:0! 2:1~ 20:2! 22:3");
        assert_eq!(heard.gaps, []);
        let noise = &heard.pcm[160..1600];
        let power = noise.iter().map(|&x| f64::from(x) * f64::from(x)).sum::<f64>() / 1440.0;
        let level = 10.0 * talkspurt_proto::math::log10(power / (32_768.0 * 32_768.0));
        assert!((level + 50.0).abs() < 1.0, "{level} dBov");
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
            let packets = payloads.into_iter().enumerate();
            let packets: Vec<_> =
                packets.map(|(index, payload)| received(payload?.into(), index)).collect();
            let heard = render(&of(MU, ms), concealment, &packets, None, total, None);
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
                let heard = render(&of(codec, ms * 10), concealment, &packets, None, encoded.len(), None);
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
                render(&of(MU, ms * 10), Concealment::G711AppendixI, &packets, None, total, None);
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
