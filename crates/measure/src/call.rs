//! A call: a measurement of one flow of speech in both directions, whose ends say what is in their files and
//! keep what they hear. [`Caller`] is the end that calls; the other one is a [`Server`](crate::Server) with a
//! [`Voice`].
//!
//! The caller offers codecs in order of preference, and the answerer agrees to those that it has: on the
//! control connection or, over DCCP, in the application data of Request and Response (RFC 4340 §8.1.1,
//! §8.1.3), with the service code of RTP (RFC 5762 §5.2). When the call is over, both ends exchange notes and
//! sound, so that both have the tables of the call and the signals to score.

use std::collections::{BTreeMap, VecDeque};
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use talkspurt_app::codec::{Codec, Encoding};
use talkspurt_app::file::{Disk, Files as _};
use talkspurt_app::peer::{Parts, Peer};
use talkspurt_app::playout::{self, Live};
use talkspurt_app::recording::{MAX_BYTES, Microphone, Recording};
use talkspurt_app::source::{Config as Source, Material};
use talkspurt_experiment::{Audio, Finished};
use talkspurt_flow::{Materials, capture_start, parts};
use talkspurt_live::Clock;
use talkspurt_proto::time::{Duration, Instant};
use talkspurt_proto::units::Rate;
use talkspurt_scenario::Point;

use crate::Failure;
use crate::channel::{Channel, Ended, IntoStd as _, Message, PIECE, Secret};
use crate::client::{MAX_NOTES, Met, NOTES, STOPPED, Target, Watch, connect, meet, shown};
use crate::direct;
use crate::media::{Media, Ran};
use crate::merge::{End, Merged, merge};
use crate::notes::Log;
use crate::opening::Opening;
use crate::plan::{FlowPlan, Plan, Traffic};
use crate::server::{BEAT, LOST, SILENT};
use crate::shared::Shared;
use crate::transport::Transport;
use crate::view::View;
use crate::wire::Wire;

/// Name of the flow, from the caller; the other direction is its reverse.
const FLOW: &str = "call";
/// Shortest packets, except of codecs with longer frames.
const PACKET: Duration = Duration::from_millis(20);
/// Codecs that a ladder may have.
const MAX_RUNGS: usize = 8;
/// Codecs that may be offered.
const MAX_CODECS: usize = 32;
/// Most bytes of sound that are exchanged after a call, and the time for it.
const MAX_SOUND: usize = 128 << 20;
const SOUND_TIME: Duration = Duration::from_secs(15);
/// Bytes of sound in a message: small, so that each passes a slow path in time.
const SOUND_PIECE: usize = 8 * 1024;
/// Reasons for the end of a call that are no failure, besides [`STOPPED`].
const HUNG_UP: &str = "the other end hung up";
const FINISHED: &str = "the other end has finished";

/// What the caller asks for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Invitation {
    /// Root of the random streams of both ends.
    pub seed: u64,
    /// Length of the call in nanoseconds.
    pub duration: u64,
    /// Longest IP packet on the path, in bytes.
    pub mtu: u16,
    /// Whether the path is IPv6.
    pub ipv6: bool,
    /// The transport.
    pub transport: Transport,
    /// Names of the codecs offered, in order of preference; none if DCCP's handshake offers them.
    pub codecs: Vec<String>,
}

/// What one end says, and the codecs that it has.
#[derive(Clone, Debug)]
pub struct Voice {
    says: Says,
    codecs: Vec<Codec>,
    /// A loudspeaker plays what is heard while the call lasts.
    has_loudspeaker: bool,
}

#[derive(Clone, Debug)]
enum Says {
    File {
        file: PathBuf,
        bytes: Bytes,
        duration: Duration,
    },
    /// What comes from a microphone.
    Microphone,
}

/// Results of a call.
pub struct Called {
    /// Tables, as of a run, with times by the caller's clock; absent if the other end's notes, without which
    /// the answerer knows nothing about its own packets, have not come.
    pub finished: Option<Finished>,
    /// What no table has.
    pub facts: Value,
    /// The scenario with every default written out, without the network, which is not known.
    pub scenario: String,
    /// What was heard here.
    pub heard: Sound,
    /// Why the call is not what was asked for.
    pub broken: Option<String>,
}

/// Sound, two channels interleaved.
#[derive(Clone, Debug, Default)]
pub struct Sound {
    /// Samples.
    pub pcm: Vec<i16>,
    /// Samples per second and channel.
    pub sample_rate: u32,
    /// Channels.
    pub channels: usize,
}

/// The codec of a name in scenarios.
pub(crate) fn codec(name: &str) -> Option<Codec> {
    serde_json::from_value(Value::String(name.to_owned())).ok()
}

/// The name of a codec in scenarios.
pub(crate) fn name(codec: Codec) -> String {
    let value = serde_json::to_value(codec).unwrap_or_default();
    value.as_str().unwrap_or_default().to_owned()
}

pub(crate) fn names(codecs: &[Codec]) -> Vec<String> {
    codecs.iter().copied().map(name).collect()
}

/// A codec in packets of 20 ms, or of its frames if these are longer.
pub(crate) fn encoding(codec: Codec) -> Encoding {
    let step = codec.step();
    Encoding::new(codec, step * PACKET.as_nanos().div_ceil(step.as_nanos()).max(1))
}

/// The sound devices of one end of a call, which work at the sample rate of the codecs.
#[derive(Debug)]
pub struct Devices {
    encodings: Vec<Encoding>,
    microphone: Option<Arc<Microphone>>,
    heard: Option<Mutex<VecDeque<i16>>>,
}

impl Devices {
    /// Samples per second and channel, and channels.
    #[must_use]
    pub fn format(&self) -> (u32, usize) {
        (self.encodings[0].codec.sample_rate(), self.encodings[0].channels())
    }

    /// Samples of the microphone have come.
    pub fn say(&self, samples: &[i16]) {
        if let Some(microphone) = &self.microphone {
            microphone.push(samples);
        }
    }

    /// What the loudspeaker is to play after what was returned before.
    #[must_use]
    pub fn hear(&self) -> Vec<i16> {
        self.heard.as_ref().map_or_else(Vec::new, |heard| lock(heard).drain(..).collect())
    }

    /// The player of what arrives, if there is a loudspeaker.
    pub(crate) fn player(&self) -> Option<Live> {
        self.heard.as_ref().map(|_| Live::new(&self.encodings))
    }

    pub(crate) fn play(&self, samples: Vec<i16>) {
        if let Some(heard) = &self.heard {
            let (mut heard, (rate, channels)) = (lock(heard), self.format());
            heard.extend(samples);
            // A loudspeaker that plays nothing takes no memory.
            let extra = heard.len().saturating_sub(rate as usize * channels);
            heard.drain(..extra);
        }
    }
}

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The names of the codecs that a call can have here: those whose sound can be encoded and decoded.
#[must_use]
pub fn call_codecs() -> Vec<String> {
    let sounds = |it: &Codec| it.has_sound() && encoding(*it).mute_error().is_none();
    names(&Codec::ALL.iter().copied().filter(sounds).collect::<Vec<_>>())
}

/// What is sent after an agreement: the first codec or, where the transport chooses, all that have its sample
/// rate and a lower rate than those before them.
pub(crate) fn rungs(transport: Transport, agreed: &[Codec]) -> Vec<Encoding> {
    let most = if transport == Transport::TfrcTb { MAX_RUNGS } else { 1 };
    let mut rungs = Vec::<Encoding>::new();
    for encoding in agreed.iter().copied().map(encoding) {
        let samples = |it: &Encoding| it.codec.sample_rate();
        let lower = rungs.last().is_none_or(|last| {
            encoding.rung().rate() < last.rung().rate() && samples(&encoding) == samples(last)
        });
        if lower && rungs.len() < most {
            rungs.push(encoding);
        }
    }
    rungs
}

/// The codecs offered that we have, in the order of the offer.
pub(crate) fn agree(offered: &[String], ours: &[Codec]) -> Result<Vec<Codec>, String> {
    let known = offered.iter().take(MAX_CODECS).filter_map(|name| codec(name));
    let mut agreed = Vec::new();
    for codec in known.filter(|codec| ours.contains(codec)) {
        if !agreed.contains(&codec) {
            agreed.push(codec);
        }
    }
    if agreed.is_empty() {
        // Only names: what was offered comes from the network.
        let offered: Vec<_> = offered.iter().filter_map(|it| codec(it)).map(name).collect();
        let offered =
            if offered.is_empty() { "none that is known".to_owned() } else { offered.join(", ") };
        let ours = names(ours).join(", ");
        return Err(format!(
            "no common codec: the caller offers {offered}; the answerer has {ours}"
        ));
    }
    Ok(agreed)
}

impl Invitation {
    /// Whether DCCP's handshake offers the codecs.
    pub(crate) const fn in_handshake(&self) -> bool {
        matches!(self.transport, Transport::Dccp(_) | Transport::DccpIp(_))
    }

    /// The call in these codecs; before they are agreed on, in a placeholder that determines none of its
    /// packets.
    pub(crate) fn plan(&self, agreed: Option<&[Codec]>) -> Plan {
        let codecs = names(agreed.unwrap_or(&[Codec::Pcmu]));
        let speech = Some(Traffic::Speech { codecs });
        let (up, down) = (speech.clone(), speech);
        let flow = FlowPlan { name: FLOW.to_owned(), transport: self.transport, up, down };
        let Self { seed, duration, mtu, ipv6, .. } = *self;
        Plan { seed, duration, mtu, ipv6, flows: vec![flow] }
    }

    #[cfg(test)]
    pub(crate) fn example(transport: Transport, codecs: &[&str]) -> Self {
        let codecs = codecs.iter().map(|name| (*name).to_owned()).collect();
        let duration = Duration::from_secs(2).as_nanos();
        Self { seed: 3, duration, mtu: 1500, ipv6: false, transport, codecs }
    }
}

impl Voice {
    /// Reads a WAV file and checks it.
    ///
    /// # Errors
    /// The file cannot be used, or a codec is unknown or has no sound here.
    pub fn open(file: &Path, codecs: &[String]) -> Result<Self, Failure> {
        let voice = Self::of_microphone(codecs)?;
        let recording = Recording::open(&Disk, file, &[encoding(voice.codecs[0])], None);
        let duration = recording.map_err(|error| Failure(error.to_string()))?.duration();
        let bytes = Disk.read(file, MAX_BYTES);
        let bytes = bytes.map_err(|fault| Failure(format!("{}: {fault}", file.display())))?;
        Ok(Self { says: Says::File { file: file.to_owned(), bytes, duration }, ..voice })
    }

    /// What comes from a microphone, through [`Devices`].
    ///
    /// # Errors
    /// A codec is unknown or has no sound here.
    pub fn of_microphone(codecs: &[String]) -> Result<Self, Failure> {
        let known = call_codecs();
        let unknown = codecs.iter().filter(|name| !known.contains(name));
        let unknown: Vec<_> = unknown.map(String::as_str).collect();
        if !unknown.is_empty() || codecs.is_empty() {
            let (unknown, known) = (unknown.join(", "), known.join(", "));
            return Err(Failure(format!("codec {unknown}: expected one or more of {known}")));
        }
        let codecs = codecs.iter().filter_map(|name| codec(name)).collect();
        Ok(Self { says: Says::Microphone, codecs, has_loudspeaker: false })
    }

    /// The same with a loudspeaker, through [`Devices`].
    #[must_use]
    pub fn with_loudspeaker(self) -> Self {
        Self { has_loudspeaker: true, ..self }
    }

    /// Length of the file, if it says what is in one.
    #[must_use]
    pub const fn duration(&self) -> Option<Duration> {
        match self.says {
            Says::File { duration, .. } => Some(duration),
            Says::Microphone => None,
        }
    }

    pub(crate) fn codecs(&self) -> &[Codec] {
        &self.codecs
    }

    /// What is said in these encodings: a file has silence after it, up to this duration.
    fn recording(&self, encodings: &[Encoding], duration: Duration) -> Result<Recording, String> {
        match &self.says {
            Says::File { file, bytes, .. } => {
                let files = BTreeMap::from([(file.clone(), bytes.clone())]);
                let recording = Recording::open(&files, file, encodings, None);
                Ok(recording.map_err(|error| error.to_string())?.lasting(duration, encodings))
            }
            Says::Microphone => Ok(Recording::live(Arc::default(), &encodings[0])),
        }
    }

    /// The devices for a recording of this voice, if there are any.
    fn devices(&self, encodings: Vec<Encoding>, recording: &Recording) -> Option<Arc<Devices>> {
        let microphone = recording.microphone.clone();
        let heard = self.has_loudspeaker.then(Mutex::default);
        let any = microphone.is_some() || heard.is_some();
        any.then(|| Arc::new(Devices { encodings, microphone, heard }))
    }
}

/// The end of a call that calls.
pub struct Caller {
    channel: Channel,
    server: SocketAddr,
}

impl Caller {
    /// Connects.
    ///
    /// # Errors
    /// In words: nobody is there, with another secret, or in another version.
    pub fn connect(target: &Target, secret: &Secret) -> Result<Self, Failure> {
        let (channel, server) = connect(target, secret)?;
        Ok(Self { channel, server })
    }

    /// The other end's address.
    #[must_use]
    pub const fn server(&self) -> SocketAddr {
        self.server
    }

    /// Calls, and returns when the call is over. The path determines [`Invitation::ipv6`], and the voice the
    /// codecs.
    ///
    /// # Errors
    /// There was no call, in words.
    pub fn call(
        mut self,
        invitation: Invitation,
        voice: &Voice,
        watch: &Watch,
    ) -> Result<Called, Failure> {
        let server = self.server;
        let mut invitation = Invitation { ipv6: server.is_ipv6(), ..invitation };
        if !invitation.in_handshake() {
            invitation.codecs = names(&voice.codecs);
        }
        let plan = invitation.plan(None);
        plan.check_controllers(true)?;
        plan.point()?;
        let raw = direct::open(&plan).map_err(Failure)?;
        let lost =
            |_| Failure(format!("{server}: the control connection was lost before the call"));
        let release = env!("CARGO_PKG_VERSION").to_owned();
        let request = Message::Invite { release, invitation: invitation.clone() };
        self.channel.send(&request).map_err(lost)?;
        let Met { wire, limit, round_trip, codecs } =
            meet(&mut self.channel, server, (&plan, raw), &watch.0)?;
        let agreed = match invitation.in_handshake() {
            true => None,
            false => Some(agree(&codecs, &voice.codecs).map_err(Failure)?),
        };
        self.channel.send(&Message::Start).map_err(lost)?;
        // Both ends start at about the same time.
        thread::sleep((round_trip / 2).into_std());
        let end = CallEnd { invitation, voice, agreed, limit, greeted_by: None };
        let never = AtomicBool::new(false);
        let called = end.converse(&mut self.channel, wire, server, watch, &never);
        called.map_err(|why| Failure(if why == STOPPED { why } else { format!("{server}: {why}") }))
    }
}

/// One end of a call that begins.
pub(crate) struct CallEnd<'a> {
    pub(crate) invitation: Invitation,
    pub(crate) voice: &'a Voice,
    /// The codecs agreed on; absent: DCCP's handshake names them.
    pub(crate) agreed: Option<Vec<Codec>>,
    /// What both ends together may send.
    pub(crate) limit: Rate,
    /// At the answerer: whose greeting it waits for.
    pub(crate) greeted_by: Option<IpAddr>,
}

/// A call in agreed codecs.
pub(crate) struct Agreed {
    pub(crate) codecs: Vec<Codec>,
    plan: Plan,
    point: Point,
    /// What this end says.
    recording: Arc<Recording>,
}

impl CallEnd<'_> {
    const fn is_caller(&self) -> bool {
        self.greeted_by.is_none()
    }

    /// Runs the call; an error says why there was none.
    pub(crate) fn converse(
        &self,
        channel: &mut Channel,
        wire: Wire,
        other: SocketAddr,
        watch: &Watch,
        stop: &AtomicBool,
    ) -> Result<Called, String> {
        let shared = &*watch.0;
        let agreed =
            self.agreed.as_deref().map(|codecs| self.settle(codecs, shared)).transpose()?;
        let plan = self.invitation.plan(self.agreed.as_deref());
        let point = plan.point().map_err(|failure| failure.0)?;
        let materials = agreed.as_ref().map_or_else(Materials::default, |it| self.materials(it));
        let agreed = Mutex::new(agreed);
        let opening = self.agreed.is_none().then(|| self.opening(&agreed, shared));
        let (ran, lost) = thread::scope(|scope| {
            let media = scope.spawn(|| {
                let mut wire = wire;
                if let Some(caller) = self.greeted_by {
                    match wire.be_greeted(caller, shared) {
                        Ok(true) => {}
                        Ok(false) => return None,
                        Err(error) => {
                            shared.stop(&format!("the socket failed: {error}"));
                            return None;
                        }
                    }
                }
                let files = (&point, &materials);
                let caller = self.is_caller();
                let media = Media::new(&plan, files, wire, caller, self.limit, opening, shared);
                Some(media.run())
            });
            let lost = self.attend(channel, shared, stop, || media.is_finished(), &agreed);
            (media.join(), lost)
        });
        let ran = ran.map_err(|_| "internal error in the media loop".to_owned())?;
        let why = || lost.clone().or_else(|| shared.why());
        let Some(Ran { log, ended, peers }) = ran else {
            return Err(why().unwrap_or_else(|| "no datagram came from the caller".to_owned()));
        };
        let agreed = agreed.into_inner().unwrap_or_else(PoisonError::into_inner);
        let none = || why().unwrap_or_else(|| "no codecs were agreed on".to_owned());
        let agreed = agreed.ok_or_else(none)?;
        let sounds = self.sounds(&agreed, &peers, &ended);
        let own = (log, ended, sounds);
        let exchanged = match lost {
            None => self.exchange(channel, &own),
            Some(why) => Err(why),
        };
        self.conclude(agreed, own, exchanged, other)
    }

    /// The call in these codecs.
    pub(crate) fn settle(&self, codecs: &[Codec], shared: &Shared) -> Result<Agreed, String> {
        let plan = self.invitation.plan(Some(codecs));
        let point = plan.point().map_err(|failure| failure.0)?;
        let encodings = rungs(self.invitation.transport, codecs);
        let duration = Duration::from_nanos(self.invitation.duration);
        let recording = Arc::new(self.voice.recording(&encodings, duration)?);
        *lock(&shared.devices) = self.voice.devices(encodings, &recording);
        Ok(Agreed { codecs: codecs.to_vec(), plan, point, recording })
    }

    /// What this end says.
    pub(crate) fn materials(&self, agreed: &Agreed) -> Materials {
        let mut materials = Materials::default();
        let flow = &agreed.point.scenario.flows[0];
        let own = if self.is_caller() { Some(&flow.source) } else { flow.reverse.as_ref() };
        if let Some(source) = own {
            materials.insert(source, Material::Speech(Arc::clone(&agreed.recording)));
        }
        materials
    }

    /// The agreement in DCCP's handshake: names of codecs with spaces between them.
    pub(crate) fn opening<'s>(
        &'s self,
        agreed: &'s Mutex<Option<Agreed>>,
        shared: &'s Shared,
    ) -> Opening<'s> {
        let offer = names(&self.voice.codecs).join(" ").into_bytes();
        let agree = move |data: &[u8]| -> Result<(Parts, Vec<u8>), String> {
            let text = std::str::from_utf8(data).unwrap_or_default();
            let offered: Vec<_> = text.split(' ').map(str::to_owned).collect();
            let codecs = agree(&offered, &self.voice.codecs)?;
            let found = self.settle(&codecs, shared)?;
            let Point { scenario, network, .. } = &found.point;
            let both = parts(scenario, network, &self.materials(&found), 0);
            let [opens, answers] = both.ok_or("a call has a flow")?;
            *lock(agreed) = Some(found);
            let own = if self.is_caller() { opens } else { answers };
            Ok((own, names(&codecs).join(" ").into_bytes()))
        };
        Opening { offer, agree: Box::new(agree) }
    }

    /// Watches the control connection until this end has ended and, at the answerer, the caller has finished;
    /// returns why the connection was lost, if it was.
    fn attend(
        &self,
        channel: &mut Channel,
        shared: &Shared,
        stop: &AtomicBool,
        is_over: impl Fn() -> bool,
        agreed: &Mutex<Option<Agreed>>,
    ) -> Option<String> {
        let clock = Clock::start();
        let (mut heard, mut beaten) = (clock.now(), clock.now());
        let (mut told, mut view) = (false, View::default());
        let lose = || {
            let why = "the control connection was lost".to_owned();
            shared.stop(&why);
            Some(why)
        };
        while !(self.is_caller() && is_over()) {
            let now = clock.now();
            if stop.load(Ordering::Acquire) {
                shared.stop(STOPPED);
            }
            let silence = now.saturating_since(heard);
            if silence >= LOST {
                shared.stop(SILENT);
            }
            if is_over() && silence >= NOTES {
                return lose();
            }
            if shared.is_over() && !told {
                told = true;
                let why = shared.why().filter(|why| is_failure(why));
                if channel.send(&Message::HangUp { why }).is_err() {
                    return lose();
                }
            }
            if now.saturating_since(beaten) >= BEAT {
                beaten = now;
                if channel.send(&Message::Beat).is_err() {
                    return lose();
                }
            }
            match channel.receive(Duration::from_millis(50)) {
                Ok(None) => {}
                Ok(Some(message)) => {
                    heard = clock.now();
                    match message {
                        Message::Start => shared.started.store(true, Ordering::Release),
                        Message::HangUp { why } => {
                            told = true;
                            let why: Option<String> =
                                why.map(|why| why.chars().take(300).collect());
                            shared.stop(why.as_deref().unwrap_or(HUNG_UP));
                        }
                        Message::Finish if !self.is_caller() => {
                            shared.stop(FINISHED);
                            // What follows are the caller's notes.
                            while !is_over() {
                                thread::sleep(std::time::Duration::from_millis(5));
                            }
                            self.show(shared, agreed, &mut view);
                            return None;
                        }
                        _ => {}
                    }
                }
                Err(_) => return lose(),
            }
            self.show(shared, agreed, &mut view);
        }
        None
    }

    /// Publishes the state of the call.
    pub(crate) fn show(&self, shared: &Shared, agreed: &Mutex<Option<Agreed>>, view: &mut View) {
        let samples = std::mem::take(&mut *lock(&shared.samples));
        for sample in &samples {
            view.take(sample);
        }
        if samples.is_empty() {
            return;
        }
        if let Some(agreed) = &*lock(agreed) {
            let flow = &agreed.point.scenario.flows[0];
            let other = if self.is_caller() { flow.reverse.as_ref() } else { Some(&flow.source) };
            if let Some(other) = other {
                let shown = view.shown(flow, other).to_string();
                *lock(&shared.view) = Some(shown);
            }
        }
    }

    /// What this end said and heard.
    pub(crate) fn sounds(&self, agreed: &Agreed, peers: &[Peer], ended: &Ended) -> [Vec<i16>; 2] {
        let Some(peer) = peers.first() else { return Default::default() };
        let Agreed { plan, point, recording, .. } = agreed;
        let mut said = match &recording.microphone {
            Some(microphone) => microphone.said(),
            None => recording.sent.to_vec(),
        };
        said.truncate(recording.samples_for(peer.spoken()));
        let flow = &point.scenario.flows[0];
        let (direction, other) = match self.is_caller() {
            true => (format!("{FLOW}.reverse"), flow.reverse.as_ref()),
            false => (FLOW.to_owned(), Some(&flow.source)),
        };
        let Some(Source::Speech(speech)) = other else { return [said, Vec::new()] };
        let start = capture_start(&point.scenario, &direction, flow, speech);
        let until = Instant::from_nanos(ended.at).min(plan.stop());
        let total = recording.samples_for(until.saturating_since(start));
        let (played, how) = (peer.played(), flow.playout.concealment);
        let encodings = speech.encodings();
        let heard = playout::render(&encodings, how, played, peer.timeline(), total, None);
        [said, heard.pcm]
    }

    /// Gives our notes and sound, and takes the other end's; the caller gives first.
    fn exchange(
        &self,
        channel: &mut Channel,
        own: &(Log, Ended, [Vec<i16>; 2]),
    ) -> Result<Theirs, String> {
        let lost =
            |_| "the control connection was lost before the other end's notes came".to_owned();
        if self.is_caller() {
            channel.send(&Message::Finish).map_err(lost)?;
            give(channel, own).map_err(lost)?;
            take(channel)
        } else {
            let theirs = take(channel)?;
            // They have come, whatever becomes of ours.
            let _ = give(channel, own);
            Ok(theirs)
        }
    }

    /// Tables, facts and sounds of the call.
    fn conclude(
        &self,
        agreed: Agreed,
        (log, mut ended, sounds): (Log, Ended, [Vec<i16>; 2]),
        exchanged: Result<Theirs, String>,
        other: SocketAddr,
    ) -> Result<Called, String> {
        let Agreed { codecs, plan, point, recording } = agreed;
        let (sample_rate, channels) = (recording.sample_rate, recording.channels);
        let mut broken = ended.early.clone().filter(|why| is_failure(why));
        let mut hung_up = match ended.early.as_deref() {
            Some(STOPPED) => Some(self.is_caller()),
            Some(HUNG_UP) => Some(!self.is_caller()),
            _ => None,
        };
        ended.early.clone_from(&broken);
        let own = End { rows: Log::rows(log.bytes())?, ended };
        let (theirs, their_sounds) = match exchanged {
            Ok(Theirs { end, sounds }) => (Some(end), sounds),
            Err(why) => {
                broken.get_or_insert(why);
                (None, None)
            }
        };
        if let Some(end) = &theirs
            && let Some(why) = &end.ended.early
        {
            match why.as_str() {
                STOPPED => hung_up = hung_up.or(Some(!self.is_caller())),
                why if is_failure(why) => {
                    broken.get_or_insert_with(|| format!("at the other end, {why}"));
                }
                _ => {}
            }
        }
        let merged = match (self.is_caller(), own, theirs) {
            (true, own, theirs) => Some(merge(&plan, &point, own, theirs)),
            (false, own, Some(theirs)) => Some(merge(&plan, &point, theirs, Some(own))),
            (false, _, None) => None,
        };
        let merged = merged.transpose().map_err(|failure| failure.0)?;
        let (mut finished, mut facts) = match merged {
            None => (None, json!({})),
            Some(Merged { finished, facts, contradiction }) => {
                broken = broken.or(contradiction);
                (Some(finished), facts)
            }
        };
        let end = |caller: bool| if caller { "caller" } else { "answerer" };
        facts["call"] = json!({
            "role": end(self.is_caller()),
            "other": other.to_string(),
            "transport": plan.flows[0].transport.name(),
            "codecs": names(&codecs),
            "hung_up": hung_up.map(end),
            "sound_exchanged": their_sounds.is_some(),
        });
        let [said, heard] = sounds;
        let own_sound = Sound { pcm: heard.clone(), sample_rate, channels };
        if let (Some(finished), Some([their_said, their_heard])) = (&mut finished, their_sounds) {
            let ways = match self.is_caller() {
                true => [(said, their_heard), (their_said, heard)],
                false => [(their_said, heard), (said, their_heard)],
            };
            let flow = &point.scenario.flows[0];
            let sources = [Some(&flow.source), flow.reverse.as_ref()];
            for ((sent, received), source) in ways.into_iter().zip(sources) {
                let Some(Source::Speech(speech)) = source else { continue };
                let back = if finished.audio.is_empty() { "" } else { ".reverse" };
                let name = format!("{FLOW}{back}");
                let start_s = capture_start(&point.scenario, &name, flow, speech).as_secs_f64();
                finished.audio.push(Audio {
                    flow: name,
                    sent,
                    received,
                    sample_rate,
                    channels,
                    start_s,
                });
            }
        }
        Ok(Called { finished, facts, scenario: shown(&point), heard: own_sound, broken })
    }
}

/// Whether the reason for an end is no ordinary one.
fn is_failure(why: &str) -> bool {
    ![STOPPED, HUNG_UP, FINISHED].contains(&why)
}

/// What the other end knows.
struct Theirs {
    end: End,
    /// What it said and heard, if all of it came.
    sounds: Option<[Vec<i16>; 2]>,
}

fn give(channel: &mut Channel, own: &(Log, Ended, [Vec<i16>; 2])) -> std::io::Result<()> {
    let (log, ended, sounds) = own;
    for piece in log.bytes().chunks(PIECE) {
        channel.send(&Message::Notes { bytes: piece.to_vec() })?;
    }
    channel.send(&Message::Done { ended: ended.clone() })?;
    let clock = Clock::start();
    let bytes: usize = sounds.iter().map(|sound| 2 * sound.len()).sum();
    let mut complete = bytes <= MAX_SOUND;
    'all: for (sound, heard) in sounds.iter().zip([false, true]) {
        for piece in sound.chunks(SOUND_PIECE / 2) {
            complete &= clock.now() < Instant::ZERO + SOUND_TIME;
            if !complete {
                break 'all;
            }
            let bytes = piece.iter().flat_map(|sample| sample.to_le_bytes()).collect();
            channel.send(&Message::Sound { heard, bytes })?;
        }
    }
    channel.send(&Message::Over { complete })
}

fn take(channel: &mut Channel) -> Result<Theirs, String> {
    let (mut notes, mut sounds) = (Vec::new(), [Vec::new(), Vec::new()]);
    let (mut end, mut complete) = (None, false);
    let clock = Clock::start();
    let (mut last, mut until) = (clock.now(), Instant::HORIZON);
    while clock.now().saturating_since(last) < NOTES && clock.now() < until {
        let Ok(message) = channel.receive(BEAT) else { break };
        let Some(message) = message else { continue };
        last = clock.now();
        match message {
            Message::Notes { bytes } => {
                notes.extend(bytes);
                if notes.len() > MAX_NOTES {
                    return Err("the other end's notes are longer than 1 GB".to_owned());
                }
            }
            Message::Done { ended } => {
                end = Some(End { rows: Log::rows(&notes)?, ended });
                until = clock.now() + SOUND_TIME * 2;
            }
            Message::Sound { heard, bytes } => {
                let sound = &mut sounds[usize::from(heard)];
                sound.extend(bytes.chunks_exact(2).map(|it| i16::from_le_bytes([it[0], it[1]])));
                if 2 * sound.len() > MAX_SOUND {
                    break;
                }
            }
            Message::Over { complete: all } => {
                complete = all;
                break;
            }
            _ => {}
        }
    }
    let lost = || "the control connection was lost before the other end's notes came".to_owned();
    let end = end.ok_or_else(lost)?;
    Ok(Theirs { end, sounds: complete.then_some(sounds) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_order_of_the_offer_decides() {
        let ours = [Codec::Pcmu, Codec::G722, Codec::G726At32];
        let offer = |names: &[&str]| {
            agree(&names.iter().map(|it| (*it).to_owned()).collect::<Vec<_>>(), &ours)
        };
        assert_eq!(
            offer(&["opus", "g722", "nonsense", "pcmu", "g722"]),
            Ok(vec![Codec::G722, Codec::Pcmu])
        );
        let why = offer(&["opus", "\u{1b}[2J"]).expect_err("nothing in common");
        assert!(why.contains("offers opus; the answerer has pcmu, g722, g726-32"), "{why}");
    }

    /// Only TFRC-TB chooses, and only among codecs of falling rate.
    #[test]
    fn a_ladder_has_falling_rates() {
        let agreed = [Codec::G726At32, Codec::Pcmu, Codec::G726At24, Codec::G726At16];
        let rungs =
            |transport| rungs(transport, &agreed).iter().map(|it| it.codec).collect::<Vec<_>>();
        let falling = [Codec::G726At32, Codec::G726At24, Codec::G726At16];
        assert_eq!(rungs(Transport::TfrcTb), falling);
        assert_eq!(rungs(Transport::Udp), falling[..1]);
        let rungs = super::rungs(Transport::TfrcTb, &[Codec::Opus, Codec::G726At16]);
        assert_eq!(rungs.len(), 1, "of one sample rate");
    }

    #[test]
    fn every_transport_carries_every_codec() {
        for (transport, name) in Transport::NAMES {
            for codec in call_codecs() {
                let invitation = Invitation::example(transport, &[]);
                let agreed = [super::codec(&codec).expect("it is one"), Codec::G726At16];
                let plan = invitation.plan(Some(&agreed));
                let point = plan.point().unwrap_or_else(|why| panic!("{name} {codec}: {why}"));
                let flow = &point.scenario.flows[0];
                let files =
                    [Some(&flow.source), flow.reverse.as_ref()].map(|it| it.and_then(Source::file));
                assert_eq!(files, ["caller.wav", "answerer.wav"].map(|name| Some(Path::new(name))));
            }
        }
    }
}
