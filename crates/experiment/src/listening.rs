//! Speech that was captured elsewhere, played and scored as in a run.

use std::io;

use bytes::Bytes;
use talkspurt_app::codec::Encoding;
use talkspurt_app::peer::{Captured, Listener, MediaSink};
use talkspurt_app::playout::Received;
use talkspurt_app::{codec, playout, source};
use talkspurt_proto::body::{Body, Layers};
use talkspurt_proto::packet::{BodyId, Ecn, IpVersion, Packet, Payload};
use talkspurt_proto::probe::{DropReason, Note, Place, Probe as _};
use talkspurt_proto::time::{Duration, Instant};
use talkspurt_record::{FlowInfo, Layout, Options, Recorder, RouteInfo, SideInfo, Tables};
use talkspurt_scenario::model::Flow;

use crate::audio::{Audio, opinion, told};
use crate::{Failure, Finished};

/// The packets of one direction of a call, captured elsewhere.
#[derive(Clone, Debug)]
pub struct Stream<'a> {
    /// Its flow: the codec of its source, playout and quality.
    pub flow: &'a Flow,
    /// Lengths of its packets, the most frequent first; at least one.
    pub lengths: Vec<Duration>,
    /// All packets in the order in which they were sent, lost ones included.
    pub packets: Vec<StreamPacket>,
    /// When the capture ends; nothing is later.
    pub end: Instant,
    /// Whether the sound is rendered.
    pub sounds: bool,
}

/// A packet of a [`Stream`].
#[derive(Clone, Debug)]
pub struct StreamPacket {
    /// Its place on the media clock, from the stream's first sample.
    pub media: Duration,
    /// When its first sample was captured, as far as is known.
    pub captured: Instant,
    /// When it left, if that is known.
    pub sent: Option<Instant>,
    /// When it arrived; `None` if it was lost.
    pub arrived: Option<Instant>,
    /// Index of its length; `None` for comfort noise.
    pub length: Option<usize>,
    /// The marker of RTP.
    pub marker: bool,
    /// Bytes of its payload.
    pub payload_bytes: u32,
    /// Its payload, if it was captured.
    pub payload: Option<Bytes>,
}

/// Steps of the media clock whose sound is kept: a day of 20 ms.
const MAX_KEPT: usize = 4_320_000;

/// The peer that speaks.
const SPEAKER: u32 = 0;
/// The peer that listens.
const LISTENER: u32 = 1;

/// Plays a stream through the jitter buffer of its flow, and scores what was heard. The tables are those of one
/// direction, called `call`.
///
/// # Errors
/// A temporary file failed, or the flow has no speech in this direction.
pub fn listen(stream: &Stream<'_>) -> Result<Finished, Failure> {
    let Some((speech, encodings)) = encodings(stream) else {
        return Err(Failure::Account("the source of the flow is no speech".to_owned()));
    };
    let step = codec::step(&encodings);
    let slots = stream.packets.iter().map(|packet| slot(packet, step)).max();
    let slots = slots.unwrap_or(0) as usize + 1;
    let is_heard = stream.sounds
        && encodings[0].mute_error().is_none()
        && (speech.codec.has_sound() && slots <= MAX_KEPT)
        && stream.packets.iter().any(|packet| packet.payload.is_some());
    let sink = MediaSink {
        encodings: encodings.clone(),
        flexfec: None,
        playout: stream.flow.playout,
        origin: stream.packets.first().map_or(Instant::ZERO, |packet| packet.captured),
        keep: if is_heard { slots } else { 0 },
    };
    let mut recorder = recorder(stream, speech);
    announce(stream, &mut recorder);
    let mut listener = Listener::new(sink, LISTENER);
    let ticks = speech.codec.ticks_for(step);
    let mut arrivals: Vec<_> = (0_u32..)
        .zip(&stream.packets)
        .filter_map(|(index, packet)| Some((packet.arrived?, index, packet)))
        .collect();
    arrivals.sort_by_key(|(at, index, _)| (*at, *index));
    for (at, index, packet) in arrivals {
        let label = label(index, packet);
        let note = Note::Received { packet: &label, body: &Body::default() };
        recorder.record(at, Place::Peer(LISTENER), &note);
        let captured = Captured {
            index,
            ticks: slot(packet, step).wrapping_mul(ticks),
            encoding: packet.length,
            marker: packet.marker,
            payload: packet.payload.clone().map_or(
                Payload::Virtual { offset: 0, len: packet.payload_bytes.into() },
                Payload::Real,
            ),
        };
        listener.on_packet(at, captured, &mut recorder);
    }
    listener.finish(stream.end, &mut recorder);
    recorder.sample(stream.end, &[]);
    let failed = |error: io::Error| Failure::System(format!("a temporary file failed: {error}"));
    let mut recording = recorder.finish().map_err(failed)?;
    for summary in &mut recording.flows {
        if let Some(heard) = told(summary) {
            summary.quality = opinion(stream.flow, &stream.flow.source, &heard);
        }
    }
    let audio = is_heard.then(|| sound(stream, &listener, &encodings, slots));
    Ok(Finished {
        digest: String::new(),
        hops: 0,
        events: 0,
        cpu_s: 0.0,
        duration_s: (stream.end - Instant::ZERO).as_secs_f64(),
        recording,
        audio: audio.into_iter().collect(),
    })
}

fn encodings<'a>(stream: &Stream<'a>) -> Option<(&'a source::Speech, Vec<Encoding>)> {
    let source::Config::Speech(speech) = &stream.flow.source else { return None };
    let own = *speech.encodings().first()?;
    let of = |packet: &Duration| Encoding { packet: *packet, ..own };
    let all: Vec<_> = stream.lengths.iter().map(of).collect();
    (!all.is_empty()).then_some((speech, all))
}

fn recorder(stream: &Stream<'_>, speech: &source::Speech) -> Recorder {
    let side = SideInfo {
        source: "speech".to_owned(),
        frame: Some(speech.packet),
        deadline: None,
        rests: false,
    };
    let flow = FlowInfo {
        name: "call".to_owned(),
        group: None,
        transport: stream.flow.carrier(),
        from: stream.flow.from.clone(),
        to: stream.flow.to.clone(),
        sides: [Some(side), None],
    };
    let duration = (stream.end - Instant::ZERO).max(Duration::from_nanos(1));
    let layout = Layout {
        flows: vec![flow],
        links: Vec::new(),
        routes: vec![RouteInfo { flow: 0, side: 0 }, RouteInfo { flow: 0, side: 1 }],
        colours: std::collections::BTreeMap::new(),
        from: Instant::ZERO,
        to: Instant::ZERO + duration,
        duration,
        interval: Duration::ZERO,
    };
    let options = Options { gauges: true, sojourn: false };
    Recorder::keeping(layout, options, Tables::Memory(vec!["frames", "gauges"]))
}

/// Records what the speaker sent, and what of it was lost.
fn announce(stream: &Stream<'_>, recorder: &mut Recorder) {
    let speaker = Place::Peer(SPEAKER);
    for (index, packet) in (0_u32..).zip(&stream.packets) {
        let StreamPacket { captured, payload_bytes: bytes, .. } = *packet;
        let label = label(index, packet);
        recorder.record(captured, speaker, &Note::Generated { index, bytes, captured });
        recorder.record(label.sent, speaker, &Note::HandedOver { index });
        let layers = Layers { transport: 8, media: 12, payload: bytes.max(1) };
        recorder.record_sent(SPEAKER, &label, layers, false);
        if packet.arrived.is_none() {
            let note = Note::Dropped { packet: &label, why: DropReason::Medium };
            recorder.record(label.sent, Place::Link(0), &note);
        }
    }
}

fn label(index: u32, packet: &StreamPacket) -> Packet {
    Packet {
        body: BodyId(0),
        ip_bytes: 40 + packet.payload_bytes,
        route: 0,
        flow: 0,
        hop: 0,
        ecn: Ecn::NotEct,
        dscp: 0,
        version: IpVersion::V4,
        number: index,
        sent: packet.sent.unwrap_or(packet.captured),
    }
}

/// What was heard, beside what was sent as far as it was captured.
fn sound(stream: &Stream<'_>, listener: &Listener, encodings: &[Encoding], slots: usize) -> Audio {
    let step = codec::step(encodings);
    let samples = encodings[0].samples_for(step) * slots;
    let rendered = |packets: &[Option<Received>], timeline| {
        let concealment = stream.flow.playout.concealment;
        playout::render(encodings, concealment, packets, timeline, samples, None).pcm
    };
    let mut captured = vec![None; slots];
    for (index, packet) in (0_u32..).zip(&stream.packets) {
        if let Some(payload) = packet.payload.clone() {
            let (encoding, marker) = (packet.length, packet.marker);
            let received = Received { payload, encoding, index, marker, ahead: 0 };
            captured[slot(packet, step) as usize] = Some(received);
        }
    }
    let captured_at = stream.packets.first().map_or(Instant::ZERO, |packet| packet.captured);
    Audio {
        flow: "call".to_owned(),
        sent: rendered(&captured, None),
        received: rendered(listener.played(), listener.timeline()),
        sample_rate: encodings[0].codec.spec().sample_rate,
        channels: encodings[0].channels(),
        start_s: (captured_at - Instant::ZERO).as_secs_f64(),
    }
}

/// The step of the media clock at which a packet begins. Timestamps may be off by a few ticks.
fn slot(packet: &StreamPacket, step: Duration) -> u32 {
    ((packet.media.as_nanos() + step.as_nanos() / 2) / step.as_nanos()) as u32
}
