//! Checks speech: packets of whole frames, parameters that the codec has, a ladder that descends; and
//! conversations, which need two sides.

use talkspurt_app::codec::{self, Codec, Encoding};
use talkspurt_app::flexfec;
use talkspurt_app::source::{self, Config, Conversation, Speech};
use talkspurt_proto::rfc4571;
use talkspurt_proto::time::Duration;
use talkspurt_proto::units::{Rate, Size};

use super::side::{MAX_NOISE, MIN_SPURT, Side, spurts};
use super::time::at_most;
use crate::model::{IpVersion, Transport};
use crate::problem::Findings;

/// Unit of speech packet durations, and the usual frame length (RFC 3551 §4.2).
const TEN_MS: Duration = Duration::from_millis(10);
const TWENTY_MS: Duration = Duration::from_millis(20);
/// Codecs in a ladder: one leaves no choice, and events have names for at most eight.
const LADDER_RUNGS: std::ops::RangeInclusive<usize> = 2..=8;
/// Longest hangover of voice activity detection.
const MAX_HANGOVER: Duration = Duration::from_secs(10);
/// Longest payload of a keep-alive packet: that of 20 ms of G.711.
const MAX_KEEP_ALIVE: Size = Size::from_bytes(160);

impl Side<'_> {
    pub(super) fn speech(&self, speech: &source::Speech, found: &mut Findings) {
        let path = &self.path;
        if self.packet(speech, found) {
            let encodings = speech.encodings();
            let longest = encodings.iter().map(|it| it.rung().packet_bytes).max().unwrap_or(0);
            // A repair packet is the longest packet, if there are any.
            let repair = speech.flexfec.map_or(0, |_| flexfec::EXTRA_BYTES);
            self.fits((longest + repair).into(), rfc4571::LENGTH_BYTES as u64, found);
        }
        self.opus(speech, found);
        self.red(speech, found);
        self.flexfec(speech, found);
        self.ladder(speech, found);
        self.heard(speech, found);
        self.vad(speech, found);
        self.keep_alive(speech, found);
        if self.flow.start < self.run && self.flow.start + speech.lead >= self.run {
            let message = format!("{} puts the first sample after the end of the run", speech.lead);
            found.add(path.key("lead"), message);
        }
        at_most(path.key("noise"), speech.noise, MAX_NOISE, found);
        if let Some(talkspurts) = speech.talkspurts {
            let path = path.key("talkspurts");
            if speech.file.is_some() {
                let message = "a recording has its own pauses; leave out `file` or `talkspurts`";
                found.add(path.clone(), message);
            }
            spurts(&path, talkspurts.on, talkspurts.off, talkspurts.spread, found);
        }
        if let Some(conversation) = &speech.conversation {
            self.conversation(speech, conversation, found);
        }
        if speech.repeat && speech.file.is_none() {
            found.add(path.key("repeat"), "nothing to repeat: there is no `file`");
        }
    }

    /// Whether the packet holds whole frames of the codec, and has a plausible length.
    fn packet(&self, speech: &source::Speech, found: &mut Findings) -> bool {
        if speech.codec == Codec::Opus && speech.ladder.is_empty() {
            let errors = speech.opus.errors_with(speech.packet);
            let is_possible = errors.is_empty();
            found.add_errors(&self.path, errors);
            return is_possible;
        }
        if let Some(opus) = speech.encodings().iter().find(|it| it.codec == Codec::Opus) {
            let errors = opus.opus.errors_with(opus.packet);
            if !errors.is_empty() {
                found.add_errors(&self.path, errors);
                return false;
            }
        }
        let step = if speech.ladder.is_empty() { speech.codec.spec().step } else { TEN_MS };
        let packet = speech.packet;
        let whole = packet.as_nanos().is_multiple_of(step.as_nanos());
        if whole && (TEN_MS..=TEN_MS * 6).contains(&packet) {
            return true;
        }
        let (message, hint) = if step == TEN_MS {
            let message = format!("{packet} of speech is no packet: 10 to 60 ms in steps of 10");
            (message, "20ms is usual (RFC 3551 §4.2)".to_owned())
        } else {
            let message = format!(
                "{packet} of speech is no packet of {}: 10 to 60 ms in whole frames of {step}",
                speech.codec.spec().name
            );
            let whole = step * TWENTY_MS.as_nanos().div_ceil(step.as_nanos());
            (message, format!("{whole} is usual"))
        };
        found.add(self.path.key("packet"), message).hint(hint);
        false
    }

    /// The parameters of Opus, which need others of the flow.
    fn opus(&self, speech: &source::Speech, found: &mut Findings) {
        let path = self.path.key("opus");
        let opus = &speech.opus;
        if speech.encodings().iter().all(|it| it.codec != Codec::Opus) {
            if *opus != codec::opus::Config::default() {
                let name = speech.codec.spec().name;
                let hint = "codec = \"opus\"".to_owned();
                found.add(path, format!("{name} has no such parameters")).hint(Some(hint));
            }
            return;
        }
        if !speech.ladder.is_empty() {
            if opus.rate_control != codec::opus::RateControl::Constant {
                let message = "the rungs of a ladder have one packet size each: only \"cbr\"";
                found.add(path.key("rate_control"), message);
            }
            if opus.channels != 1 {
                found.add(path.key("channels"), "a ladder has one channel");
            }
        }
        if opus.dtx && speech.file.is_none() {
            let message = "needs a `file`: without one there is no sound; `talkspurts` has silences without packets";
            found.add(path.key("dtx"), message);
        }
        if opus.needs_reports() && !self.flow.rtcp.enabled {
            let message =
                "FEC and DRED depend on the loss that RTCP reports, and the flow has no RTCP";
            let hint = "give `expected_loss`, such as 0.1, or enable `rtcp`".to_owned();
            found.add(path.key("expected_loss"), message).hint(Some(hint));
        }
    }

    fn red(&self, speech: &source::Speech, found: &mut Findings) {
        let path = self.path.key("red");
        if speech.red > 0 && !speech.ladder.is_empty() {
            let message = "not with a `ladder`: all rungs would have the same payload type";
            found.add(path, message);
        } else if let Some(why) = speech.encodings()[0].red_error() {
            found.add(path, why);
        }
    }

    fn flexfec(&self, speech: &source::Speech, found: &mut Findings) {
        let Some(flexfec) = &speech.flexfec else { return };
        let path = self.path.key("flexfec");
        if !speech.ladder.is_empty() {
            let message = "not with a `ladder`: its rungs have rates without repair packets";
            found.add(path.clone(), message);
        }
        let hint = match &self.flow.transport {
            Transport::Sctp(sctp)
                if sctp.lifetime.is_none() && sctp.max_retransmissions.is_none() =>
            {
                Some("give transport.lifetime or max_retransmissions, or use UDP or DCCP")
            }
            other if other.is_stream() => Some("use UDP, DCCP or partially reliable SCTP"),
            _ => None,
        };
        if let Some(hint) = hint {
            let protocol = self.flow.transport.protocol();
            let message =
                format!("{protocol} retransmits all that is lost, so nothing is repaired");
            found.add(path.clone(), message).hint(hint.to_owned());
        }
        found.add_errors(&path, flexfec.errors(speech.packet));
    }

    /// The ladder of codecs: not empty, the best first.
    fn ladder(&self, speech: &source::Speech, found: &mut Findings) {
        let path = self.path.key("ladder");
        let Some(first) = speech.ladder.first() else { return };
        if *first != speech.codec {
            let message = format!(
                "begins with {}, but `codec` is {}: it names the best rung",
                first.spec().name,
                speech.codec.spec().name
            );
            found.add(path.clone(), message);
        }
        if !LADDER_RUNGS.contains(&speech.ladder.len()) {
            let (least, most) = LADDER_RUNGS.into_inner();
            let message = format!("{} rungs; a ladder has {least} to {most}", speech.ladder.len());
            found.add(path.clone(), message);
        }
        let headers = u64::from(match self.flow.ip {
            IpVersion::V4 => 20_u32 + 8,
            IpVersion::V6 => 40 + 8,
        });
        let rate = |encoding: &Encoding| {
            let rung = encoding.rung();
            let bits = 8 * (u64::from(rung.packet_bytes) + headers);
            Rate::from_bps(bits * 1_000_000_000 / rung.interval.as_nanos().max(1))
        };
        for pair in speech.encodings().windows(2) {
            let [better, worse] = [rate(&pair[0]), rate(&pair[1])];
            if worse >= better {
                let message = format!(
                    "does not descend: {} needs {worse} in packets of {} with headers, {} before it \
                     {better}",
                    pair[1].codec.spec().name,
                    pair[1].packet,
                    pair[0].codec.spec().name
                );
                found.add(path.clone(), message);
            }
        }
    }

    /// A recording needs an encoder or a stand-in, and a stand-in a recording.
    fn heard(&self, speech: &source::Speech, found: &mut Findings) {
        let encodings = speech.encodings();
        let mute = |it: &Encoding| it.mute_error().map(|why| (it.codec.spec().name, why));
        // One error for all codecs of the extra.
        if speech.file.is_some()
            && let Some((name, why)) = encodings.iter().find_map(mute)
        {
            let key = if speech.ladder.is_empty() { "codec" } else { "ladder" };
            found.add(self.path.key(key), format!("{name} cannot be heard: {why}"));
        } else if speech.stand_in.is_some() && speech.stand_ins().is_none() {
            let message = if speech.file.is_none() {
                "nothing is heard: there is no `file`"
            } else {
                "has no use: every codec of this source has an encoder"
            };
            found.add(self.path.key("stand_in"), message);
        }
    }

    fn vad(&self, speech: &source::Speech, found: &mut Findings) {
        let Some(vad) = speech.vad else { return };
        let path = self.path.key("vad");
        if speech.file.is_none() {
            let message = "there is no `file` to detect speech in: give one, or `talkspurts`";
            found.add(path.clone(), message);
        }
        at_most(path.key("hangover"), vad.hangover, MAX_HANGOVER, found);
        if !(1.0..=60.0).contains(&vad.margin) {
            let message =
                format!("{} dB; expected 1 to 60 dB below the level of speech", vad.margin);
            found.add(path.key("margin"), message);
        }
    }

    fn keep_alive(&self, speech: &source::Speech, found: &mut Findings) {
        let Some(keep_alive) = speech.keep_alive else { return };
        let path = self.path.key("keep_alive");
        if speech.talkspurts.is_none() && speech.conversation.is_none() && speech.vad.is_none() {
            let give = if speech.file.is_some() { "vad" } else { "talkspurts" };
            let message = format!("there is no silence to keep the flow alive in: give `{give}`");
            found.add(path.clone(), message);
        }
        let other = |encoding: &Encoding| encoding.codec.spec().rtp_clock != 8000;
        if speech.file.is_some() && speech.encodings().iter().any(other) {
            let message = "comfort noise packets (RFC 3389, payload type 13) have a clock of 8 kHz, and Opus \
                           has its own: set `opus = { dtx = true }` instead";
            found.add(path.clone(), message);
        }
        if keep_alive.every.is_zero() {
            found.add(path.key("every"), "0s between two packets is no silence");
        }
        let sizes = Size::from_bytes(1)..=MAX_KEEP_ALIVE;
        if !sizes.contains(&keep_alive.size) {
            let message = format!("{} of comfort noise: 1B to {MAX_KEEP_ALIVE}", keep_alive.size);
            found.add(path.key("size"), message);
        }
    }

    fn conversation(&self, speech: &Speech, own: &Conversation, found: &mut Findings) {
        let path = self.path.key("conversation");
        if speech.file.is_some() {
            let message = "a recording has its own pauses; leave out `file` or `conversation`";
            found.add(path.clone(), message);
        }
        if speech.talkspurts.is_some() {
            let message = "`talkspurts` says already when there is talk; leave one out";
            found.add(path.clone(), message);
        }
        for (key, mean) in [
            ("single_talk", own.single_talk),
            ("double_talk", own.double_talk),
            ("mutual_silence", own.mutual_silence),
        ] {
            if mean < MIN_SPURT {
                let message = format!("{mean} is too short a mean for a state: at least 1ms");
                found.add(path.key(key), message);
            }
        }
        if !(0.0..=1.0).contains(&own.interruption) {
            let message = format!("{} is not a probability, 0 to 1", own.interruption);
            found.add(path.key("interruption"), message);
        }
        let held = |source: &Config| match source {
            Config::Speech(speech) => speech.conversation.map(|it| (it, speech.lead)),
            _ => None,
        };
        let sides = (held(&self.flow.source), self.flow.reverse.as_ref().and_then(held));
        match sides {
            (Some((_, lead)), Some((_, other))) if lead != other => {
                let message = format!("one chain cannot begin at leads of {lead} and {other}");
                found.add(self.path.key("lead"), message);
            }
            (Some((one, _)), Some((other, _))) if one != other => {
                let message = "one chain drives both directions, which have different values here";
                found.add(path, message);
            }
            (Some(_), Some(_)) => {}
            _ => {
                let message = "a conversation takes two, and the other direction has none";
                let hint = "give `source` and `reverse` the same; one alone is `talkspurts`";
                found.add(path, message).hint(hint.to_owned());
            }
        }
    }
}
