//! Checks bulk data, video, replays and web traffic: frames with content, valid sizes.

use talkspurt_app::source::{
    BulkConfig, Capture, EncoderConfig, FrameRates, FrameTrace, Replay, Video, Web, even,
};
use talkspurt_proto::rfc4571;
use talkspurt_proto::rtp::rtx;
use talkspurt_proto::time::Duration;
use talkspurt_proto::units::Size;

use super::side::{MAX_BUFFER, MAX_NOISE, MIN_SPURT, Side, countable, spread, spurts};
use super::time::at_most;
use crate::model::Transport;
use crate::problem::Findings;

/// RTP's fixed header (RFC 3550 §5.1).
const RTP_HEADER: u64 = 12;
/// Largest frame of an encoder's burst.
const MAX_FRAME: Size = Size::from_bytes(10_000_000);
impl Side<'_> {
    pub(super) fn bulk(&self, bulk: &BulkConfig, found: &mut Findings) {
        // The payload of one packet, and the bytes buffered in the transport.
        let (unit, held) = match &self.flow.transport {
            other if !other.has_window() => {
                let name = match other {
                    Transport::External(_) => other.name(),
                    _ => other.protocol().to_owned(),
                };
                let message = format!(
                    "bulk data needs a transport that says how much it takes; {name} has no window"
                );
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

    pub(super) fn video(&self, video: &Video, found: &mut Findings) {
        let path = &self.path;
        if let Some(encoder) = &video.encoder {
            self.encoder(video, encoder, found);
        }
        match (&video.file, video.rate.or(video.encoder.map(|encoder| encoder.max))) {
            (Some(_), Some(_)) if video.rate.is_some() => {
                found.add(path.key("rate"), "the `file` has its own; leave one out");
            }
            (Some(file), Some(_)) => {
                if let Err(fault) = FrameRates::open(self.files, file) {
                    found.add(path.key("file"), format!("{}: {fault}", file.display()));
                }
            }
            (None, None) => {
                let message = "needs the sizes of its frames in a `file`, a `rate` or an `encoder`";
                found.add(path.clone(), message);
            }
            (Some(file), None) => match FrameTrace::open(self.files, file, video.frame()) {
                Ok(trace) => {
                    trace.notes.iter().for_each(|note| found.note(&path.key("file"), file, note));
                    if trace.is_timed && video.frame.is_some() {
                        found.add(path.key("frame"), "the `file` says when its frames come");
                    }
                    if trace.is_timed || video.frame() >= MIN_SPURT {
                        let packets = trace.packets(video.packet.as_bytes());
                        self.packets(packets, trace.period, found);
                    }
                }
                Err(fault) => {
                    found.add(path.key("file"), format!("{}: {fault}", file.display()));
                }
            },
            (None, Some(_)) => {
                let (bytes, frame) = (even(video), video.frame());
                if bytes == 0 {
                    let message = format!("leaves less than a byte for a frame of {frame}");
                    found.add(path.key("rate"), message);
                } else if frame >= MIN_SPURT {
                    self.packets(bytes.div_ceil(video.packet.as_bytes().max(1)), frame, found);
                }
            }
        }
        if let Some(frame) = video.frame.filter(|frame| *frame < MIN_SPURT) {
            let message = format!("a frame every {frame} is out of range: at least 1ms");
            found.add(path.key("frame"), message);
        }
        if video.repeat && video.file.is_none() {
            found.add(path.key("repeat"), "nothing to repeat: there is no `file`");
        } else if video.repeat && video.encoder.is_some() {
            found.add(path.key("repeat"), "the frames of an encoder always are; leave it out");
        }
        if video.repair.is_some() {
            self.repair(video, found);
        }
        if video.packet.as_bytes() == 0 {
            found.add(path.key("packet"), "a packet of 0 bytes carries nothing");
        } else {
            let again = if video.repair.is_some() { rtx::OSN_BYTES as u64 } else { 0 };
            let frame = RTP_HEADER + again + video.packet.as_bytes();
            self.fits(frame, rfc4571::LENGTH_BYTES as u64, found);
        }
        at_most(path.key("noise"), video.noise, MAX_NOISE, found);
        at_most(path.key("deadline"), video.deadline, MAX_BUFFER, found);
    }

    fn repair(&self, video: &Video, found: &mut Findings) {
        let path = self.path.key("repair");
        if video.encoder.is_none() {
            let message = "needs an encoder that makes key frames on request";
            let hint = "add encoder = {} in place of `file` or `rate`, or leave `repair` out";
            found.add(path.clone(), message).hint(hint.to_owned());
        }
        if !self.flow.rtcp.enabled {
            let message = "is requested by RTCP, which `rtcp.enabled = false` turns off";
            found.add(path.clone(), message).hint("leave rtcp.enabled out".to_owned());
        }
        if video.packet.as_bytes() == 1 {
            let message = format!("{} leaves no room for VP8's header: at least 2B", video.packet);
            found.add(self.path.key("packet"), message);
        }
    }

    fn encoder(&self, video: &Video, encoder: &EncoderConfig, found: &mut Findings) {
        let path = self.path.key("encoder");
        if video.rate.is_some() {
            found.add(path.clone(), "has a rate of its own; leave `rate` or `encoder` out");
        }
        if encoder.min.as_bps() == 0 {
            found.add(path.key("min"), "0bit/s makes no pictures");
        }
        if encoder.max < encoder.min {
            let message = format!("{} is below `min` ({})", encoder.max, encoder.min);
            found.add(path.key("max"), message);
        }
        if encoder.burst.as_bytes() == 0 || encoder.burst > MAX_FRAME {
            let message = format!("{} is out of range: 1B to {MAX_FRAME}", encoder.burst);
            found.add(path.key("burst"), message);
        }
        if let Some(changes) = encoder.changes
            && (changes < MIN_SPURT || video.file.is_some())
        {
            let message = if video.file.is_some() {
                "a `file` has the frames of its content; leave one out".to_owned()
            } else {
                format!("every {changes} is out of range: at least 1ms")
            };
            found.add(path.key("changes"), message);
        }
        at_most(path.key("reaction"), encoder.reaction, MAX_BUFFER, found);
        at_most(path.key("skip_behind"), encoder.skip_behind, MAX_BUFFER, found);
        if self.flow.controller.is_none() && !self.flow.transport.asks_for_rates() {
            let message = "follows a controller, and neither the flow nor its transport has one";
            let hint = "add controller = { kind = \"nada\" }, or use a `rate`".to_owned();
            found.add(path, message).hint(hint);
        }
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
        match Capture::open(self.files, &replay.file, replay.ssrc) {
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
