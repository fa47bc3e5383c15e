//! A call: a measurement of one flow of speech in both directions, whose ends say what is in their files and
//! keep what they hear. [`Session::call`] is the end that calls; the other one is a [`Server`](crate::Server)
//! with a [`Voice`].
//!
//! The caller offers codecs in order of preference, and the answerer agrees to those that it has: on the
//! control connection or, over DCCP, in the application data of Request and Response (RFC 4340 §8.1.1,
//! §8.1.3), with the service code of RTP (RFC 5762 §5.2). When the call is over, both ends exchange notes and
//! sound, so that both have the tables of the call and the signals to score.

mod voice;

use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use serde_json::{Value, json};
use talkspurt_app::codec::Codec;
use talkspurt_app::peer::{Parts, Peer};
use talkspurt_app::playout;
use talkspurt_app::recording::Recording;
use talkspurt_app::source::{Config as Source, Material};
use talkspurt_experiment::{Audio, Finished};
use talkspurt_flow::{Materials, capture_start, parts};
use talkspurt_proto::time::{Duration, Instant};
use talkspurt_proto::units::Rate;
use talkspurt_scenario::Point;

use crate::Failure;
use crate::budget::{Budget, shortened};
use crate::channel::{Channel, LOST, Message, NOTES, SILENT};
use crate::client::{Accepted, Session, negotiate, shown};
use crate::codecs::{agree, names, rungs};
use crate::control::Control;
use crate::direct;
use crate::end_report::EndReport;
use crate::exchange::{
    LOST_NOTES, RemoteEnd, await_end, beating, give_notes, give_sounds, take_notes, take_sounds,
};
use crate::invitation::{FLOW, Invitation};
use crate::lock::lock;
use crate::media::{Media, MediaOutcome};
use crate::merge::{End, Merged, merge};
use crate::notes::Log;
use crate::opening::Opening;
use crate::plan::Plan;
use crate::shared::{STOPPED, Shared, Watch};
use crate::timed::IntoStd as _;
use crate::view::View;
use crate::wire::Wire;

pub use voice::Voice;

/// Reasons for the end of a call that are no failure, besides [`STOPPED`].
const HUNG_UP: &str = "the other end hung up";
const FINISHED: &str = "the other end has finished";

/// Why results are without the other end's notes when they are first kept.
const UNASKED: &str = "the ends have not exchanged their notes";

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

impl Session {
    /// Calls, and returns when the call is over. The path determines [`Invitation::ipv6`], and the voice the
    /// codecs. `keep` gets what this end knows before the ends exchange their notes.
    ///
    /// # Errors
    /// There was no call, in words.
    pub fn call(
        &mut self,
        invitation: Invitation,
        voice: &Voice,
        watch: &Watch,
        keep: impl FnOnce(Called),
    ) -> Result<Called, Failure> {
        let (server, mut channel) = (self.server(), self.take()?);
        let mut invitation = Invitation { ipv6: server.is_ipv6(), ..invitation };
        if !invitation.in_handshake() {
            invitation.codecs = names(&voice.codecs);
        }
        let plan = invitation.plan(None);
        plan.check_controllers(true)?;
        plan.point()?;
        let raw = direct::open(&plan)?;
        let lost =
            |_| Failure::Lost(format!("{server}: the control connection was lost before the call"));
        let release = env!("CARGO_PKG_VERSION").to_owned();
        let request = Message::Invite { release, invitation: Box::new(invitation.clone()) };
        channel.send(&request).map_err(lost)?;
        let Accepted { wire, limit, round_trip, codecs } =
            negotiate(&mut channel, server, (&plan, raw), &watch.0)?;
        let agreed = match invitation.in_handshake() {
            true => None,
            false => Some(agree(&codecs, &voice.codecs)?),
        };
        channel.send(&Message::Start).map_err(lost)?;
        // Both ends start at about the same time.
        thread::sleep((round_trip / 2).into_std());
        let end = CallEnd { invitation, voice, agreed, limit, greeted_by: None };
        let never = AtomicBool::new(false);
        let called = end.converse(&mut channel, wire, server, (watch, &never), keep);
        called.map_err(|why| why.at(server))
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

    /// Runs the call; an error says why there was none. `keep` gets what this end knows before the notes are
    /// exchanged.
    pub(crate) fn converse(
        &self,
        channel: &mut Channel,
        wire: Wire,
        other: SocketAddr,
        (watch, stop): (&Watch, &AtomicBool),
        keep: impl FnOnce(Called),
    ) -> Result<Called, Failure> {
        let shared = &*watch.0;
        let agreed =
            self.agreed.as_deref().map(|codecs| self.settle(codecs, shared)).transpose()?;
        let plan = self.invitation.plan(self.agreed.as_deref());
        let point = plan.point()?;
        let materials = agreed.as_ref().map_or_else(Materials::default, |it| self.materials(it));
        let agreed = Mutex::new(agreed);
        let opening = self.agreed.is_none().then(|| self.opening(&agreed, shared));
        let (ran, lost) = thread::scope(|scope| {
            let media = scope.spawn(|| {
                let (mut wire, files) = (wire, (&point, &materials));
                let begins = self.greeted_by.is_none_or(|caller| wire.be_greeted(caller, shared));
                let caller = self.is_caller();
                begins.then(|| {
                    Media::new(&plan, files, wire, caller, self.limit, opening, shared).run()
                })
            });
            let lost = self.attend(channel, shared, stop, || media.is_finished(), &agreed);
            (media.join(), lost)
        });
        let ran =
            ran.map_err(|_| Failure::System("internal error in the media loop".to_owned()))?;
        let none = |nothing: &str| match (&lost, shared.why()) {
            (Some(why), _) => Failure::Lost(why.clone()),
            (None, Some(why)) if why == STOPPED => Failure::Stopped,
            (None, Some(why)) if why == SILENT => Failure::Lost(why),
            (None, Some(why)) => Failure::Refused(why),
            (None, None) => Failure::Lost(nothing.to_owned()),
        };
        let Some(MediaOutcome { log, ended, peers }) = ran else {
            return Err(none("no datagram came from the caller"));
        };
        let agreed = agreed.into_inner().unwrap_or_else(PoisonError::into_inner);
        let agreed = agreed.ok_or_else(|| none("no codecs were agreed on"))?;
        let sounds = self.sounds(&agreed, &peers, &ended);
        let own = (log, ended, sounds);
        let exchanged = match lost {
            None => {
                let conclude = || self.conclude(&agreed, &own, Err(UNASKED.to_owned()), other);
                beating(channel, || conclude().map(keep))?;
                self.exchange(channel, &agreed, &own, shared)
            }
            Some(why) => Err(why),
        };
        self.conclude(&agreed, &own, exchanged, other)
    }

    /// The call in these codecs.
    pub(crate) fn settle(&self, codecs: &[Codec], shared: &Shared) -> Result<Agreed, Failure> {
        let plan = self.invitation.plan(Some(codecs));
        let point = plan.point()?;
        let encodings = rungs(&self.invitation.transport, codecs);
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
        let agree = move |data: &[u8]| -> Result<(Parts, Vec<u8>), Failure> {
            let text = std::str::from_utf8(data).unwrap_or_default();
            let offered: Vec<_> = text.split(' ').map(str::to_owned).collect();
            let codecs = agree(&offered, &self.voice.codecs)?;
            let found = self.settle(&codecs, shared)?;
            let Point { scenario, network, .. } = &found.point;
            let both = parts(scenario, network, &self.materials(&found), 0);
            let [opens, answers] =
                both.ok_or_else(|| Failure::Input("a call has a flow".to_owned()))?;
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
        let mut control = Control::new(channel, shared, self.invitation.plan(None).end());
        let (mut told, mut view) = (false, View::default());
        let lose_for = |why: &str| {
            shared.stop(why);
            Some(why.to_owned())
        };
        let lose = || lose_for("the control connection was lost");
        while !(self.is_caller() && is_over()) {
            if stop.load(Ordering::Acquire) {
                shared.stop(STOPPED);
            }
            let silence = control.silence();
            if silence >= LOST {
                shared.stop(SILENT);
            }
            if !self.is_caller() && control.waits_for_begin() {
                return lose_for("the caller did not begin in time");
            }
            if control.waits_for_finish() {
                return lose_for("the other end did not finish in time");
            }
            if is_over() && silence >= NOTES {
                return lose();
            }
            if shared.is_over() && !told {
                told = true;
                let why = shared.why().filter(|why| is_failure(why));
                if control.channel.send(&Message::HangUp { why }).is_err() {
                    return lose();
                }
            }
            match control.turn() {
                Ok(Some(Message::Start)) => shared.started.store(true, Ordering::Release),
                Ok(Some(Message::HangUp { why })) => {
                    told = true;
                    shared.stop(why.as_deref().map(shortened).as_deref().unwrap_or(HUNG_UP));
                }
                Ok(Some(Message::Finish)) if !self.is_caller() => {
                    shared.stop(FINISHED);
                    // What follows are the caller's notes.
                    while !is_over() {
                        thread::sleep(std::time::Duration::from_millis(5));
                    }
                    self.show(shared, agreed, &mut view);
                    return None;
                }
                Ok(_) => {}
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
    pub(crate) fn sounds(
        &self,
        agreed: &Agreed,
        peers: &[Peer],
        ended: &EndReport,
    ) -> [Vec<i16>; 2] {
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

    /// Gives our notes and takes the other end's, then the sound of both; the caller gives first. The sound
    /// may take longer than there is time: the notes are safe then.
    fn exchange(
        &self,
        channel: &mut Channel,
        agreed: &Agreed,
        (log, ended, sounds): &(Log, EndReport, [Vec<i16>; 2]),
        shared: &Shared,
    ) -> Result<RemoteEnd, String> {
        let lost = |_| LOST_NOTES.to_owned();
        let plan = (&agreed.plan, shared);
        let wanted = (&agreed.plan, Budget::of(&agreed.plan, log.rows));
        let most = agreed.recording.samples_for(agreed.plan.end() - Instant::ZERO);
        if self.is_caller() {
            channel.send(&Message::Finish).map_err(lost)?;
            give_notes(channel, (log, ended), plan).map_err(lost)?;
            let end = take_notes(channel, wanted, shared)?;
            let given = give_sounds(channel, sounds, shared).ok();
            Ok(RemoteEnd { end, sounds: given.and_then(|()| take_sounds(channel, most, shared)) })
        } else {
            let end = take_notes(channel, wanted, shared)?;
            let given = give_notes(channel, (log, ended), plan);
            let sounds = given.ok().and_then(|()| {
                let theirs = take_sounds(channel, most, shared);
                // Theirs have arrived, even if ours were lost.
                if give_sounds(channel, sounds, shared).is_ok() {
                    await_end(channel, shared);
                }
                theirs
            });
            Ok(RemoteEnd { end, sounds })
        }
    }

    /// Tables, facts and sounds of the call.
    fn conclude(
        &self,
        agreed: &Agreed,
        (log, ended, sounds): &(Log, EndReport, [Vec<i16>; 2]),
        exchanged: Result<RemoteEnd, String>,
        other: SocketAddr,
    ) -> Result<Called, Failure> {
        let Agreed { codecs, plan, point, recording } = agreed;
        let mut ended = ended.clone();
        let (sample_rate, channels) = (recording.sample_rate, recording.channels);
        let mut broken = ended.early.clone().filter(|why| is_failure(why));
        let mut hung_up = match ended.early.as_deref() {
            Some(STOPPED) => Some(self.is_caller()),
            Some(HUNG_UP) => Some(!self.is_caller()),
            _ => None,
        };
        ended.early.clone_from(&broken);
        let own = End { rows: log.own_rows(), ended };
        let (theirs, their_sounds) = match exchanged {
            Ok(RemoteEnd { end, sounds }) => (Some(end), sounds),
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
            (true, own, theirs) => Some(merge(plan, point, own, theirs)),
            (false, own, Some(theirs)) => Some(merge(plan, point, theirs, Some(own))),
            (false, _, None) => None,
        };
        let merged = merged.transpose()?;
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
            "controller": self.invitation.controller,
            "codecs": names(codecs),
            "hung_up": hung_up.map(end),
            "sound_exchanged": their_sounds.is_some(),
        });
        let [said, heard] = sounds.clone();
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
        Ok(Called { finished, facts, scenario: shown(point), heard: own_sound, broken })
    }
}

/// Whether the reason for an end is no ordinary one.
fn is_failure(why: &str) -> bool {
    ![STOPPED, HUNG_UP, FINISHED].contains(&why)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use talkspurt_live::Clock;

    use crate::codecs::{call_codecs, codec, encoding};
    use crate::notes::{Row, What};
    use crate::plan::LEAD;
    use crate::transport::Transport;

    #[test]
    fn frames_depart_when_they_are_encoded() {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../speech/french-woman.wav");
        let voice = Voice::open(&file, &["opus".to_owned()]).expect("it is a recording");
        let opus = encoding(voice.codecs[0]);
        let mut encoder = opus.encoder().expect("it has sound");
        let sound = vec![0; 960 * opus.channels()];
        let clock = Clock::start();
        let fastest = (0..50).map(|_| {
            let began = clock.now();
            encoder.encode(&sound, None);
            clock.now().saturating_since(began)
        });
        let fastest = fastest.min().unwrap_or_default();
        let shared = Shared::default();
        let invitation = Invitation::example(Transport::known("udp"), &["opus"]);
        let agreed = Some(voice.codecs.clone());
        let limit = Rate::from_bps(1_000_000);
        let end = CallEnd { invitation, voice: &voice, agreed, limit, greeted_by: None };
        let settled = end.settle(&voice.codecs, &shared).expect("codecs of a call");
        let files = (&settled.point, &end.materials(&settled));
        let [wire, _other] = Wire::pair().expect("loopback has ports");
        let mut media = Media::new(&settled.plan, files, wire, true, limit, None, &shared);
        media.pass(LEAD);
        for _ in 0..20 {
            media.pass(Duration::from_millis(20));
            media.turn();
        }
        let rows = media.finish(None).log.own_rows();
        let at = |wanted: fn(&What) -> bool| -> Vec<u64> {
            rows.iter().filter(|row: &&Row| wanted(&row.what)).map(|row| row.at).collect()
        };
        let handed_over = at(|what| matches!(what, What::HandedOver { .. }));
        let sent = at(|what| matches!(what, What::Sent { .. }));
        assert!(sent.len() > 10 && sent.len() == handed_over.len(), "{}", sent.len());
        for (left, began) in sent.into_iter().zip(handed_over) {
            assert!(left >= began + fastest.as_nanos() / 2, "{left} {began} {fastest:?}");
        }
    }

    #[test]
    fn every_transport_carries_every_codec() {
        for transport in Transport::all() {
            let name = transport.name();
            for name_of_codec in call_codecs() {
                let invitation = Invitation::example(transport.clone(), &[]);
                let agreed = [codec(&name_of_codec).expect("it is one"), Codec::G726At16];
                let plan = invitation.plan(Some(&agreed));
                let point =
                    plan.point().unwrap_or_else(|why| panic!("{name} {name_of_codec}: {why}"));
                let flow = &point.scenario.flows[0];
                let files = [Some(&flow.source), flow.reverse.as_ref()]
                    .map(|it| it.and_then(|it| it.file()));
                assert_eq!(files, ["caller.wav", "answerer.wav"].map(|name| Some(Path::new(name))));
            }
        }
    }
}
