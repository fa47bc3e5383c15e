//! Checks generated sources, video and replays: distributions with a mean, frames with content, valid
//! sizes; and conversations, which need two sides.

use talkspurt_app::file::Disk;
use talkspurt_app::source::{
    BulkConfig, Capture, Config, Conversation, Distribution, FrameTrace, Replay, Speech, Video,
    Web, even,
};
use talkspurt_proto::rfc4571;
use talkspurt_proto::time::Duration;
use talkspurt_proto::units::Size;

use super::flow::{MAX_BUFFER, MAX_NOISE, MIN_SPURT, Side, countable};
use super::time::at_most;
use crate::path::Path;
use crate::problem::Findings;

/// RTP's fixed header (RFC 3550 §5.1).
const RTP_HEADER: u64 = 12;
/// Widest lognormal: beyond it, the mean depends on draws that no run makes.
const MAX_SIGMA: f64 = 5.0;

/// A distribution must have a mean.
pub(super) fn spread(path: &Path, spread: Distribution, found: &mut Findings) {
    match spread {
        Distribution::Exponential | Distribution::Constant => {}
        Distribution::Pareto { shape } if shape.is_finite() && shape > 1.0 => {}
        Distribution::Pareto { shape } => {
            let message = format!("{shape} is no shape: at 1 and below a Pareto tail has no mean");
            found.add(path.key("shape"), message).hint("1.5 is usual".to_owned());
        }
        Distribution::Lognormal { sigma } if sigma > 0.0 && sigma <= MAX_SIGMA => {}
        Distribution::Lognormal { sigma } => {
            let message = format!("{sigma} is no deviation here: above 0 and at most {MAX_SIGMA}");
            found.add(path.key("sigma"), message);
        }
    }
}

impl Side<'_> {
    pub(super) fn conversation(&self, speech: &Speech, own: &Conversation, found: &mut Findings) {
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

    pub(super) fn video(&self, video: &Video, found: &mut Findings) {
        let path = &self.path;
        match (&video.file, video.rate) {
            (Some(_), Some(_)) => {
                found.add(path.key("rate"), "the `file` has its own; leave one out");
            }
            (None, None) => {
                let message = "needs the sizes of its frames in a `file`, or a `rate`";
                found.add(path.clone(), message);
            }
            (Some(file), None) => match FrameTrace::open(&Disk, file) {
                Ok(trace) => {
                    self.packets(trace.packets(video.packet.as_bytes()), trace.period, found)
                }
                Err(fault) => {
                    found.add(path.key("file"), format!("{}: {fault}", file.display()));
                }
            },
            (None, Some(_)) => {
                let (bytes, frame) = (even(video), video.frame());
                if frame < MIN_SPURT {
                    let message = format!("a frame every {frame} is out of range: at least 1ms");
                    found.add(path.key("frame"), message);
                } else if bytes == 0 {
                    let message = format!("leaves less than a byte for a frame of {frame}");
                    found.add(path.key("rate"), message);
                } else {
                    self.packets(bytes.div_ceil(video.packet.as_bytes().max(1)), frame, found);
                }
            }
        }
        if video.file.is_some() && video.frame.is_some() {
            found.add(path.key("frame"), "the `file` says when its frames come");
        }
        if video.repeat && video.file.is_none() {
            found.add(path.key("repeat"), "nothing to repeat: there is no `file`");
        }
        if video.packet.as_bytes() == 0 {
            found.add(path.key("packet"), "a packet of 0 bytes carries nothing");
        } else {
            let frame = RTP_HEADER + video.packet.as_bytes();
            self.fits(frame, rfc4571::LENGTH_BYTES as u64, found);
        }
        at_most(path.key("noise"), video.noise, MAX_NOISE, found);
        at_most(path.key("deadline"), video.deadline, MAX_BUFFER, found);
    }

    /// This many packets every `period`, while the source sends.
    fn packets(&self, packets: u64, period: Duration, found: &mut Findings) {
        if self.run == Duration::MAX {
            return;
        }
        let rounds = self.lasts().as_nanos().div_ceil(period.as_nanos().max(1));
        countable(self.path.clone(), u128::from(packets) * u128::from(rounds), found);
    }

    pub(super) fn replay(&self, replay: &Replay, found: &mut Findings) {
        match Capture::open(&Disk, &replay.file, replay.ssrc) {
            Ok(capture) => {
                let longest = RTP_HEADER + u64::from(capture.longest());
                self.fits_at(self.path.key("file"), longest, rfc4571::LENGTH_BYTES as u64, found);
            }
            Err(fault) => {
                let message = format!("{}: {fault}", replay.file.display());
                found.add(self.path.key("file"), message);
            }
        }
        if replay.clock == Some(0) {
            found.add(self.path.key("clock"), "a clock that does not tick measures nothing");
        }
        at_most(self.path.key("deadline"), replay.deadline, MAX_BUFFER, found);
    }

    pub(super) fn web(&self, web: &Web, found: &mut Findings) {
        spread(&self.path.key("sizes"), web.sizes, found);
        spread(&self.path.key("thinks"), web.thinks, found);
        if web.size < Size::from_bytes(1) {
            found.add(self.path.key("size"), "a transfer of 0 bytes is none");
        }
        if web.think < MIN_SPURT {
            let message = format!("{} is too short a mean to think: at least 1ms", web.think);
            found.add(self.path.key("think"), message);
        }
        // A transport treats it like bulk.
        let bulk = BulkConfig { packet: web.packet, ..Default::default() };
        self.bulk(&bulk, found);
    }
}
