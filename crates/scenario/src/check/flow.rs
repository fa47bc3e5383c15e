//! Checks flows: existing ends, sources that the transport can carry, packet sizes, order of times.

use talkspurt_app::codec::{self, Codec, Encoding};
use talkspurt_app::flexfec;
use talkspurt_app::source::{self, Distribution};
use talkspurt_proto::rfc4571;
use talkspurt_proto::time::Duration;
use talkspurt_proto::units::{Rate, Size};
use talkspurt_proto::validate::Validate;

use super::{plain, time::at_most, traffic};
use crate::model::{Flow, IpVersion, Scenario, Sizing, Transport};
use crate::network::{Network, Routes};
use crate::path::Path;
use crate::problem::Findings;

/// RFC 8200 §5: every link supports packets of 1280 octets.
const MIN_MTU_V6: Size = Size::from_bytes(1280);
/// RFC 4571 §2: the length before a frame on a stream has 16 bits.
const LONGEST_FRAME: u64 = 65_535;
/// Longest plausible processing noise and playout buffer.
pub(super) const MAX_NOISE: Duration = Duration::from_secs(1);
pub(super) const MAX_BUFFER: Duration = Duration::from_secs(60);
/// Shortest mean of talk and silence durations.
pub(super) const MIN_SPURT: Duration = Duration::from_millis(1);
/// Unit of speech packet durations, and the usual frame length (RFC 3551 §4.2).
const TEN_MS: Duration = Duration::from_millis(10);
const TWENTY_MS: Duration = Duration::from_millis(20);
/// Codecs in a ladder: one leaves no choice, and events have names for at most eight.
const LADDER_RUNGS: std::ops::RangeInclusive<usize> = 2..=8;
/// Longest hangover of voice activity detection.
const MAX_HANGOVER: Duration = Duration::from_secs(10);
/// Longest payload of a keep-alive packet: that of 20 ms of G.711.
const MAX_KEEP_ALIVE: Size = Size::from_bytes(160);
/// Units of one source in a run: fewer than 2^32, even with a clock that gains 1 %.
const MAX_UNITS: u128 = 4_000_000_000;

pub(super) fn check(scenario: &Scenario, network: &Network, run: Duration, found: &mut Findings) {
    for (index, (name, flow)) in scenario.flows.iter().enumerate() {
        let path = Path::of(&["flows", name]);
        times(&path, flow, run, found);
        // A flow without a route was reported before; its MTU is unknown.
        let least = |of: fn(&Routes) -> &Vec<usize>| {
            let ways = network.routes.get(index)?.iter().map(of);
            let links: Vec<usize> = ways.flatten().copied().collect();
            let rate = links.iter().map(|link| network.links[*link].rate).min()?;
            Some((network.mtu(&links), rate))
        };
        let least = [least(|routes| &routes.forward), least(|routes| &routes.backward)];
        let sources = [("source", Some(&flow.source)), ("reverse", flow.reverse.as_ref())];
        for ((key, source), least) in sources.into_iter().zip(least) {
            let side = Side { path: path.key(key), flow, run, least };
            source.into_iter().for_each(|source| side.check(source, found));
        }
        found.add_errors(&path.key("transport"), flow.transport.errors());
        bucket(&path.key("transport"), flow, found);
        found.add_errors(&path.key("quality"), flow.quality.errors());
        for (place, declared) in flow.quality.codecs.iter().enumerate() {
            let path = path.key("quality").key("codecs").index(place).key("source");
            plain(path, "a source", &declared.source, &[], found);
        }
        found.add_errors(&path.key("send_queue"), flow.send_queue.errors());
        found.add_errors(&path.key("playout"), flow.playout.errors());
        let mtu = least.iter().flatten().map(|(mtu, _)| *mtu).min();
        if let Some(mtu) = mtu.filter(|m| flow.ip == IpVersion::V6 && *m < MIN_MTU_V6) {
            let message = format!(
                "IPv6 needs links that carry 1280B (RFC 8200 §5); the least on this flow's way is {mtu}"
            );
            found.add(path.key("ip"), message);
        }
    }
}

/// The token bucket must hold the units that a source sends, and the initial rung must exist.
fn bucket(path: &Path, flow: &Flow, found: &mut Findings) {
    let rate = match &flow.transport {
        Transport::Dccp(config) => &config.rate,
        Transport::Tfrc(config) => &config.rate,
        _ => return,
    };
    let Some(bucket) = &rate.token_bucket else { return };
    let path = path.key("rate").key("token_bucket");
    let rungs = std::iter::once(&flow.source).chain(&flow.reverse).map(|it| it.rungs().len());
    let most = rungs.max().unwrap_or(0);
    if most == 0 {
        let message = "this source has no one rate for a bucket to hold";
        found.add(path, message).hint("leave it out, or use another source".to_owned());
    } else if let Some(rung) = bucket.initial_rung.filter(|rung| usize::from(*rung) >= most) {
        let message =
            format!("{rung} is no rung of a ladder of {most}, which are 0 to {}", most - 1);
        found.add(path.key("initial_rung"), message);
    }
}

fn times(path: &Path, flow: &Flow, run: Duration, found: &mut Findings) {
    if flow.start >= run {
        let message = format!("{} is not before the end of the run ({run})", flow.start);
        found.add(path.key("start"), message);
        return;
    }
    if let Some(stop) = flow.stop.filter(|stop| *stop <= flow.start) {
        let message = format!("{stop} is not after the start ({})", flow.start);
        found.add(path.key("stop"), message);
    }
    let end = flow.stop.unwrap_or(run).min(run);
    if let Some(spread) = flow.start_spread
        && end > flow.start
        && flow.start + spread > end
    {
        let message = format!(
            "{spread} may put the start after the flow's end ({end}); it starts at {}",
            flow.start
        );
        found.add(path.key("start_spread"), message);
    }
}

/// One side of a flow: the context for checking its source.
pub(super) struct Side<'a> {
    pub(super) path: Path,
    pub(super) flow: &'a Flow,
    pub(super) run: Duration,
    /// Minimum MTU and rate on its route, if there is one.
    least: Option<(Size, Rate)>,
}

impl Side<'_> {
    fn check(&self, source: &source::Config, found: &mut Findings) {
        match source {
            source::Config::Speech(speech) => self.speech(speech, found),
            source::Config::Cbr(cbr) => {
                self.clocked(cbr.rate, cbr.packet, found);
                at_most(self.path.key("noise"), cbr.noise, MAX_NOISE, found);
            }
            source::Config::OnOff(on_off) => {
                self.clocked(on_off.rate, on_off.packet, found);
                at_most(self.path.key("noise"), on_off.noise, MAX_NOISE, found);
                spurts(&self.path, on_off.on, on_off.off, on_off.spread, found);
            }
            source::Config::Poisson(poisson) => self.clocked(poisson.rate, poisson.packet, found),
            source::Config::Video(video) => self.video(video, found),
            source::Config::Replay(replay) => self.replay(replay, found),
            source::Config::Bulk(bulk) => self.bulk(bulk, found),
            source::Config::Web(web) => self.web(web, found),
            source::Config::External(_) => {}
        }
        found.add_errors(&self.path, source.errors());
    }

    fn speech(&self, speech: &source::Speech, found: &mut Findings) {
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
        let step = if speech.ladder.is_empty() { speech.codec.step() } else { TEN_MS };
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
                speech.codec.name()
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
                let name = speech.codec.name();
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
                first.name(),
                speech.codec.name()
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
                    pair[1].codec.name(),
                    pair[1].packet,
                    pair[0].codec.name()
                );
                found.add(path.clone(), message);
            }
        }
    }

    /// A recording needs an encoder or a stand-in, and a stand-in a recording.
    fn heard(&self, speech: &source::Speech, found: &mut Findings) {
        let encodings = speech.encodings();
        let mute = |it: &Encoding| it.mute_error().map(|why| (it.codec.name(), why));
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
        let other = |encoding: &Encoding| encoding.codec.rtp_clock() != 8000;
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

    pub(super) fn bulk(&self, bulk: &source::BulkConfig, found: &mut Findings) {
        // The payload of one packet, and the bytes buffered in the transport.
        let (unit, held) = match &self.flow.transport {
            Transport::Udp(_) => {
                let message =
                    "bulk data needs a transport that says how much it takes; UDP has no window";
                let hint = "use transport kind = \"tcp\", or source kind = \"cbr\" with a rate";
                found.add(self.path.key("kind"), message).hint(hint.to_owned());
                return;
            }
            Transport::Tcp(tcp) => (tcp.mss, tcp.send_buffer.as_bytes()),
            other => {
                let unit = bulk.packet.unwrap_or(Size::from_bytes(other.unit_bytes().into()));
                self.fits(unit.as_bytes(), 0, found);
                let held = match other {
                    Transport::Sctp(sctp) => sctp.send_buffer.as_bytes(),
                    _ => 0,
                };
                (unit, held)
            }
        };
        if let Some(pauses) = bulk.pauses {
            spurts(&self.path.key("pauses"), pauses.on, pauses.off, pauses.spread, found);
        }
        if bulk.packet.is_some_and(|packet| packet.as_bytes() == 0) {
            found.add(self.path.key("packet"), "a packet of 0 bytes carries nothing");
            return;
        }
        if bulk.packet.is_some() && self.flow.transport.is_stream() {
            found
                .add(self.path.key("packet"), "TCP cuts its stream as it likes")
                .hint("its segments have `mss` bytes".to_owned());
        }
        if bulk.total == Some(Size::from_bytes(0)) {
            let hint = "leave it out to send without end".to_owned();
            found.add(self.path.key("total"), "nothing would be sent").hint(hint);
        }
        if let Some((mtu, rate)) = self.least.filter(|_| self.run < Duration::MAX) {
            let bits = u128::from(rate.as_bps()) * u128::from(self.lasts().as_nanos());
            let carried = bits / 8_000_000_000 + u128::from(held);
            let bytes = bulk.total.map_or(carried, |total| carried.min(total.as_bytes().into()));
            // IPv6 and TCP headers are the longer ones: a segment must not exceed this.
            let segment = unit.as_bytes().min(mtu.as_bytes().saturating_sub(60)).max(1);
            countable(self.path.clone(), bytes / u128::from(segment), found);
        }
    }

    /// A source that sends packets of one size at a fixed rate.
    pub(super) fn clocked(&self, rate: Rate, packet: Size, found: &mut Findings) {
        self.fits(packet.as_bytes(), 0, found);
        if packet.as_bytes() == 0 {
            found.add(self.path.key("packet"), "a packet of 0 bytes carries nothing");
            return;
        }
        let (path, run) = (self.path.key("rate"), self.run);
        match rate.time_for(packet.as_bytes()) {
            None => {
                found.add(path, "at rate 0 nothing is ever sent");
            }
            Some(interval) if interval > run => {
                let message = format!(
                    "at {rate} a packet of {packet} leaves every {interval}, longer than the run ({run})"
                );
                found.add(path, message);
            }
            Some(interval) if run < Duration::MAX => {
                countable(path, (self.lasts().as_nanos() / interval.as_nanos()).into(), found);
            }
            Some(_) => {}
        }
    }

    /// The maximum sending time of the source.
    pub(super) fn lasts(&self) -> Duration {
        self.flow.stop.unwrap_or(self.run).min(self.run).saturating_sub(self.flow.start)
    }

    /// The frame must fit a datagram, or a stream with a `prefix`.
    pub(super) fn fits(&self, frame: u64, prefix: u64, found: &mut Findings) {
        self.fits_at(self.path.key("packet"), frame, prefix, found);
    }

    /// The same, reported for the field at `path`.
    pub(super) fn fits_at(&self, path: Path, frame: u64, prefix: u64, found: &mut Findings) {
        if frame > LONGEST_FRAME {
            let message = format!("{frame} bytes do not fit a frame of 65535 (RFC 4571 §2)");
            found.add(path, message);
            return;
        }
        if let Transport::Tcp(tcp) = &self.flow.transport {
            let size = tcp.send_buffer;
            if frame + prefix > size.as_bytes() {
                let message =
                    format!("{frame} bytes never fit TCP's send_buffer ({size}), so none is sent");
                found.add(path, message);
                return;
            }
        }
        if let Transport::Sctp(sctp) = &self.flow.transport
            && frame > sctp.send_buffer.as_bytes().min(sctp.receive_buffer.as_bytes())
        {
            let message = format!("{frame} bytes never fit SCTP's buffers, so none is sent");
            found.add(path, message);
            return;
        }
        if self.flow.transport.is_stream() {
            return;
        }
        let own = self.flow.transport.max_header_bytes();
        let headers: u64 = match (self.flow.sizing, &self.flow.transport, self.flow.ip) {
            (Sizing::Ns2, Transport::Udp(_), _) => 0,
            (Sizing::Ns2, ..) => 32,
            (Sizing::Rfc, _, IpVersion::V4) => (20 + own).into(),
            (Sizing::Rfc, _, IpVersion::V6) => (40 + own).into(),
        };
        let Some((mtu, _)) = self.least else { return };
        if frame + headers > mtu.as_bytes() {
            if let Transport::Sctp(sctp) = &self.flow.transport {
                // RFC 9260 §6.9: fragmented for the configured MTU, and never again.
                if sctp.mtu > mtu {
                    let message = format!(
                        "{frame} bytes are cut into chunks for an MTU of {}, and chunks are not cut again for the least on the way ({mtu}) (RFC 9260 §6.9)",
                        sctp.mtu
                    );
                    found.add(path, message).hint(format!("set transport.mtu to {mtu} or less"));
                }
                return;
            }
            let protocol = self.flow.transport.protocol();
            let message = format!(
                "{frame} bytes and {headers} of headers do not fit the least MTU on the way ({mtu}), and {protocol} is not fragmented"
            );
            found.add(path, message);
        }
    }
}

/// Alternating talk and silence: very short ones are inaudible and take endless draws.
pub(super) fn spurts(
    path: &Path,
    on: Duration,
    off: Duration,
    how: Distribution,
    found: &mut Findings,
) {
    for (key, mean) in [("on", on), ("off", off)] {
        if mean < MIN_SPURT {
            let message = format!("{mean} is too short a mean for talk or silence: at least 1ms");
            found.add(path.key(key), message);
        }
    }
    traffic::spread(&path.key("spread"), how, found);
}

/// Units have 32-bit numbers.
pub(super) fn countable(path: Path, units: u128, found: &mut Findings) {
    if units > MAX_UNITS {
        let message = format!(
            "makes up to {units} packets in the run; at most {MAX_UNITS} can be told apart"
        );
        let hint = "larger packets, a shorter run or an earlier `stop` make fewer".to_owned();
        found.add(path, message).hint(hint);
    }
}
