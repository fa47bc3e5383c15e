//! Speech from end to end: the received audio equals the sent audio except for the gaps in the accounts.

use std::collections::BTreeSet;

use talkspurt_app::codec::{Codec, Encoding};
use talkspurt_app::playout::{self, Concealment};
use talkspurt_app::recording::Recording;
use talkspurt_proto::probe::{Note, Place, Playout};
use talkspurt_proto::rng::Rng;
use talkspurt_proto::time::Duration;

use crate::support::{Look, Run, flow, link, point, run, scenario, speak, watch};

/// Loud noise, never zero, so that silence is not mistaken for it.
fn sound(samples: usize) -> Vec<i16> {
    let mut rng = Rng::new(1, "sound");
    (0..samples)
        .map(|_| if rng.chance(0.5) { 1 } else { -1 } * (1000 + rng.below(20_000) as i16))
        .collect()
}

struct Call<'a> {
    transport: &'a str,
    codec: &'a str,
    packet_ms: usize,
    samples: usize,
    repeat: bool,
    link: &'a str,
    more: &'a str,
    duration: &'a str,
}

const PLAIN: Call<'_> = Call {
    transport: "udp",
    codec: "pcmu",
    packet_ms: 20,
    samples: 8000,
    repeat: false,
    link: "",
    more: "playout = { buffer = '1s' }",
    duration: "6s",
};

/// What happened to each frame, by number.
#[derive(Default)]
struct Fates {
    played: BTreeSet<u32>,
    late: BTreeSet<u32>,
}

struct Heard {
    run: Run,
    recording: Recording,
    fates: Fates,
    unit: usize,
    codec: Codec,
}

impl Heard {
    fn pcm(&self, concealment: Concealment, total: usize) -> Vec<i16> {
        self.render(concealment, total).pcm
    }
    fn render(&self, concealment: Concealment, total: usize) -> playout::Heard {
        let packet = Duration::from_millis(self.unit as u64 / 8);
        let encoding = Encoding::new(self.codec, packet);
        playout::render(&[encoding], concealment, &self.run.played[1], None, total, None)
    }
    /// The reference audio, through the codec.
    fn round_trip(&self) -> Vec<i16> {
        let encoded = self.recording.encoded.as_ref().expect("a codec without state");
        Encoding::new(self.codec, Duration::from_millis(20))
            .decoder()
            .expect("it is heard")
            .decode(encoded)
    }
}

fn call(call: &Call<'_>) -> Heard {
    let Call { transport, codec, packet_ms, samples, repeat, link: more_link, more, duration } =
        *call;
    let source = format!("{{ kind = 'speech', codec = '{codec}', packet = '{packet_ms}ms' }}");
    let parts = [
        link("l", "a-z", "2Mbit/s", "30ms", more_link),
        flow("call", "a-z", transport, &source, more),
    ];
    let mut point = point(&scenario(duration, &parts));
    let mut look = Look::default();
    let pcm = sound(samples);
    speak(&mut point, &mut look, "call", false, &pcm, repeat);
    let mut fates = Fates::default();
    let run = watch(&point, &look, |_, place, note| {
        if let (Place::Peer(1), Note::Decided { index, playout }) = (place, note) {
            match playout {
                Playout::Played(_) => assert!(fates.played.insert(*index)),
                Playout::Late(_) => assert!(fates.late.insert(*index)),
                Playout::Recovered(_) => panic!("there is no redundancy"),
                Playout::Duplicate => panic!("no packet comes twice"),
            }
        }
    });
    let codec = if codec == "pcmu" { Codec::Pcmu } else { Codec::Pcma };
    let recording = Recording::from_pcm(pcm, &Encoding::new(codec, Duration::from_millis(20)));
    Heard { run, recording, fates, unit: 8 * packet_ms, codec }
}

#[test]
fn without_loss_the_codec_is_all_that_is_heard() {
    for transport in ["udp", "tcp"] {
        for codec in ["pcmu", "pcma"] {
            for packet_ms in [10, 20, 30, 60] {
                // Whole packets, and not.
                for samples in [9600, 9601, 9999, 37] {
                    let heard = call(&Call { transport, codec, packet_ms, samples, ..PLAIN });
                    for concealment in [Concealment::Silence, Concealment::G711AppendixI] {
                        let pcm = heard.pcm(concealment, samples);
                        assert!(
                            pcm == heard.round_trip(),
                            "{transport} {codec} {packet_ms} ms {samples} samples"
                        );
                    }
                    assert_eq!(heard.run.generated[0] as usize, samples.div_ceil(8 * packet_ms));
                }
            }
        }
    }
}

#[test]
fn a_repeated_recording_is_padded_to_whole_packets() {
    for transport in ["udp", "tcp"] {
        for (packet_ms, samples) in [(20, 800), (20, 801), (30, 1000), (60, 100)] {
            let heard = call(&Call { transport, packet_ms, samples, repeat: true, ..PLAIN });
            let mut once = heard.round_trip();
            let last = *once.last().expect("a sound");
            once.resize(samples.next_multiple_of(heard.unit), last);
            let total = 4 * 8000;
            let said: Vec<i16> = once.iter().copied().cycle().take(total).collect();
            assert!(heard.pcm(Concealment::G711AppendixI, total) == said, "{packet_ms} {samples}");
            assert_eq!(heard.run.flow("call").late_packets, Some(0));
        }
    }
}

/// Every frame is heard, or silent, as its verdict was.
fn gaps_are_where_they_should_be(heard: &Heard) {
    let said = heard.round_trip();
    let pcm = heard.pcm(Concealment::Silence, said.len());
    for (index, (was, is)) in said.chunks(heard.unit).zip(pcm.chunks(heard.unit)).enumerate() {
        let played = heard.fates.played.contains(&(index as u32));
        assert!(is == if played { was } else { &[0; 480][..is.len()] }, "frame {index}");
    }
    // Appendix I changes only what lies in a gap or within its stated reach.
    let concealed = heard.pcm(Concealment::G711AppendixI, said.len());
    let gaps = heard.render(Concealment::Silence, said.len()).gaps;
    let near =
        |at: usize| gaps.iter().any(|(start, len)| at + 30 >= *start && at < start + len + 80);
    let apart = (0..said.len()).filter(|at| !near(*at));
    assert!(apart.clone().count() > said.len() / 20);
    for at in apart {
        assert_eq!(concealed[at], said[at]);
    }
    // It does not leave the first 10 ms of a gap silent.
    for (start, len) in gaps.iter().filter(|(start, _)| *start > 400) {
        assert!(concealed[*start..start + len.min(&80)].iter().any(|sample| *sample != 0));
    }
    let flow = heard.run.flow("call");
    assert_eq!(flow.late_packets, Some(heard.fates.late.len() as u64));
    let arrived = (heard.fates.played.len() + heard.fates.late.len()) as u64;
    let missing = flow.generated_packets.expect("simulated") - arrived;
    assert_eq!(flow.missing_packets, Some(missing));
}

#[test]
fn lost_datagrams_leave_gaps_and_nothing_else() {
    for (packet_ms, codec) in [(10, "pcmu"), (20, "pcma"), (60, "pcmu")] {
        let heard = call(&Call { packet_ms, codec, samples: 24_007, link: "loss = 0.2", ..PLAIN });
        gaps_are_where_they_should_be(&heard);
        assert_eq!(heard.fates.late.len(), 0);
        let flow = heard.run.flow("call");
        assert_eq!(Some(flow.lost_packets), flow.missing_packets);
        assert!(flow.lost_packets > 3);
    }
}

#[test]
fn late_frames_leave_gaps_too() {
    // A lost segment holds up those behind it for longer than the buffer lasts.
    let more = "playout = { buffer = '100ms' }";
    let heard = call(&Call {
        transport: "tcp",
        link: "loss = 0.05",
        samples: 80_007,
        more,
        duration: "20s",
        ..PLAIN
    });
    gaps_are_where_they_should_be(&heard);
    assert!(heard.fates.late.len() > 3);
    assert_eq!(heard.run.flow("call").missing_packets, Some(0));
}

#[test]
fn an_outage_is_one_gap() {
    let events = "events = [{ at = '1s', state = 'down' }, { at = '1400ms', state = 'up' }]";
    let heard = call(&Call { samples: 24_007, link: events, ..PLAIN });
    gaps_are_where_they_should_be(&heard);
    let gaps = heard.render(Concealment::Silence, 24_007).gaps;
    assert_eq!(gaps.len(), 1);
    // 400 ms refused and 30 ms on the medium, in packets of 20 ms.
    assert!((21..=22).contains(&(gaps[0].1 / 160)), "{gaps:?}");
}

#[test]
fn playout_counts_from_its_anchor() {
    let quiet = |playout: &str| {
        let source = "{ kind = 'speech', codec = 'pcmu', noise = '15ms' }";
        let more = format!("playout = {{ {playout} }}\nstart_spread = '0s'");
        let parts =
            [link("l", "a-z", "2Mbit/s", "30ms", ""), flow("call", "a-z", "udp", source, &more)];
        let (mut first, mut captured) = (None, None);
        let run =
            watch(&point(&scenario("5s", &parts)), &Look::default(), |now, _, note| match note {
                Note::Generated { index: 0, captured: at, .. } => captured = Some(*at),
                Note::Delivered { index: 0, .. } => first = Some(now),
                _ => {}
            });
        let way = first.expect("delivered") - captured.expect("captured");
        let call = run.flow("call").clone();
        assert_eq!(call.mouth_to_ear_max_s, call.mouth_to_ear_p50_s);
        (way.as_secs_f64(), call)
    };
    // The capture of the last sample, 20 ms into the frame, 60 ms, and what concealment holds back.
    let (_, call) = quiet("anchor = 'capture', buffer = '60ms'");
    assert_eq!(call.mouth_to_ear_max_s, Some(0.083_75));
    let (_, call) = quiet("anchor = 'capture', buffer = '60ms', concealment = 'silence'");
    assert_eq!(call.mouth_to_ear_max_s, Some(0.08));
    assert_eq!(call.late_packets, Some(0));
    // Network and noise take 30.8 to 45.8 ms: with 40 ms some are late.
    let (_, call) = quiet("anchor = 'capture', buffer = '40ms'");
    assert_eq!(call.mouth_to_ear_max_s, Some(0.063_75));
    let late = call.late_packets.expect("speech") as f64 / call.received_packets as f64;
    assert!((late - 5.8 / 15.0).abs() < 0.12, "{late}");
    // The first arrival and 60 ms.
    let (way, call) = quiet("buffer = '60ms'");
    assert!((call.mouth_to_ear_max_s.expect("played") - (way + 0.063_75)).abs() < 1e-9);
    assert_eq!(call.late_packets, Some(0));
}

/// Each layer's bytes, where nothing is sent twice and no report is among the speech.
#[test]
fn headers_are_counted_by_layer_in_datagrams_and_in_a_stream() {
    for (transport, media, network) in [("udp", 12, 20), ("tcp", 14, 20)] {
        let source = "{ kind = 'speech', codec = 'pcmu' }";
        let more = "rtcp = { enabled = false }\nstop = '4s'";
        let parts =
            [link("l", "a-z", "2Mbit/s", "30ms", ""), flow("call", "a-z", transport, source, more)];
        let run = run(&scenario("5s", &parts));
        let call = run.flow("call");
        let frames = call.generated_packets.expect("simulated");
        assert_eq!(call.payload_bytes, frames * 160, "{transport}");
        assert_eq!(call.media_header_bytes, frames * media);
        assert_eq!(call.network_header_bytes, call.sent_packets * network);
        let layers = [
            call.network_header_bytes,
            call.transport_header_bytes,
            call.media_header_bytes,
            call.payload_bytes,
        ];
        assert_eq!(layers.iter().sum::<u64>(), call.sent_bytes);
    }
}
