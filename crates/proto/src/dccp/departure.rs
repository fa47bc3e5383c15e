//! Departures (RFC 4340): pending packets, derived from flags one at a time, with their options.
//! A Reset goes first; data goes before an Acknowledgement that it can carry.

use bytes::Bytes;

use super::ccid::{Departure, Receiver as _, Sender as _, SenderHalf};
use super::options::{Opt, Options};
use super::{Dccp, Kind, LONGEST_OPTIONS, Packet, ResetCode, SeqNo, State, WireSeq, arrival};
use crate::endpoint::Transmit;
use crate::frame::Frame;
use crate::gauge::EndpointProbe;
use crate::packet::{Ecn, PacketBox, PathId, Payload};
use crate::time::Instant;

/// A packet to send.
type Sent = Transmit<PacketBox<Packet>>;

/// Header of a packet with an Acknowledgement Number in extended form (§5.1, §5.2).
pub(super) const ACK_BYTES: usize = 24;
/// Header of a Response or Reset (§5.3).
const RESPONSE_BYTES: usize = 28;

/// Where a Reset's Sequence Number comes from (§8.3.1).
#[derive(Clone, Copy, Debug)]
pub(super) enum Numbered {
    /// The connection's next number.
    Next,
    /// Derived from the packet it answers.
    Given(WireSeq),
}

/// A pending Reset.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reset {
    pub(super) seq: Numbered,
    pub(super) ack: WireSeq,
    pub(super) code: ResetCode,
    pub(super) data: [u8; 3],
}

/// What remains to be sent.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Owed {
    pub(super) reset: Option<Reset>,
    pub(super) listen: bool,
    pub(super) request: bool,
    pub(super) response: bool,
    /// A Sync that acknowledges this number.
    pub(super) sync: Option<SeqNo>,
    /// A SyncAck for this Sync.
    pub(super) sync_ack: Option<SeqNo>,
    pub(super) close_req: bool,
    pub(super) close: bool,
    pub(super) ack: bool,
    /// The options due with the pending data were sent before it in a packet of their own.
    pub(super) unburdened: bool,
    /// Maximum bytes of IP packets in answer to the last packet from an unproven address.
    pub(super) allowance: Option<usize>,
}

impl Owed {
    pub(super) fn forget_but_reset(&mut self) {
        *self = Self { reset: self.reset, allowance: self.allowance, ..Self::default() };
    }
}

fn take(flag: &mut bool) -> bool {
    std::mem::take(flag)
}

/// Application data of a Request or Response.
fn opening(data: Bytes) -> Frame {
    Frame::Data(Payload::Real(data))
}

/// CsCov for the 12 bytes of an RTP header (§9.2: words covered, plus one).
const RTP_COVERAGE: u8 = 4;

impl Dccp {
    /// The next pending packet.
    pub(super) fn next_packet<P: EndpointProbe>(
        &mut self,
        now: Instant,
        probe: &mut P,
    ) -> Option<Sent> {
        if let Some(reset) = self.owed.reset.take() {
            return Some(self.reset_packet(now, &reset, probe));
        }
        match self.state {
            State::Closed | State::TimeWait => None,
            State::Listen => take(&mut self.owed.listen).then(|| self.listen_packet(now)),
            State::Request => take(&mut self.owed.request).then(|| self.request_packet(now, probe)),
            State::Respond if take(&mut self.owed.response) => {
                Some(self.response_packet(now, probe))
            }
            _ => self.next_of_connection(now, probe),
        }
    }

    fn next_of_connection<P: EndpointProbe>(
        &mut self,
        now: Instant,
        probe: &mut P,
    ) -> Option<Sent> {
        if let Some(ack) = self.owed.sync.take() {
            return Some(self.plain_packet(now, Kind::Sync { ack: ack.extended() }, probe));
        }
        if let Some(ack) = self.owed.sync_ack.take() {
            return Some(self.plain_packet(now, Kind::SyncAck { ack: ack.extended() }, probe));
        }
        if let Some(frame) = self.frame.take() {
            return Some(self.data_packet(now, frame, probe));
        }
        let ack = self.windows.gsr.extended();
        if take(&mut self.owed.close_req) {
            return Some(self.plain_packet(now, Kind::CloseReq { ack }, probe));
        }
        if take(&mut self.owed.close) {
            return Some(self.plain_packet(now, Kind::Close { ack }, probe));
        }
        (self.owed.ack && self.may_send()).then(|| self.ack_packet(now, probe))
    }

    /// §8.3.1
    fn reset_packet<P: EndpointProbe>(
        &mut self,
        now: Instant,
        reset: &Reset,
        probe: &mut P,
    ) -> Sent {
        let Reset { ack, code, data, .. } = *reset;
        let kind = Kind::Reset { ack, code, data };
        match reset.seq {
            Numbered::Next => self.plain_packet(now, kind, probe),
            Numbered::Given(seq) => self.transmit(Packet {
                seq,
                ccval: 0,
                cscov: 0,
                kind,
                options: Options::default(),
                payload: Frame::Data(crate::packet::Payload::default()),
            }),
        }
    }

    /// RFC 5596 §2.2.1: its sequence number is zero.
    fn listen_packet(&mut self, now: Instant) -> Sent {
        self.on_listen_sent(now);
        self.transmit(Packet {
            seq: SeqNo::default().extended(),
            ccval: 0,
            cscov: 0,
            kind: Kind::Listen { service: self.config.service.0 },
            options: Options::default(),
            payload: Frame::Data(crate::packet::Payload::default()),
        })
    }

    fn request_packet<P: EndpointProbe>(&mut self, now: Instant, probe: &mut P) -> Sent {
        let seq = self.windows.next();
        let mut options = Options::default();
        options.push(Opt::Timestamp(self.clock(now)));
        self.features.write(seq, LONGEST_OPTIONS, false, &mut options);
        self.timed = Some((seq, now));
        let kind = Kind::Request { service: self.config.service.0 };
        let data = self.opening.clone().map(opening);
        self.finish_packet(now, seq, kind, options, data, probe)
    }

    /// §8.1.3; with an Init Cookie the listener discards its state at once (§8.1.4).
    fn response_packet<P: EndpointProbe>(&mut self, now: Instant, probe: &mut P) -> Sent {
        let fixed = self.version.header_bytes() as usize + RESPONSE_BYTES;
        let room = self.owed.allowance.unwrap_or(usize::MAX).saturating_sub(fixed);
        let data = self.opening.clone().filter(|data| data.len() <= room);
        let room = room - data.as_ref().map_or(0, Bytes::len);
        let room = room.min(LONGEST_OPTIONS) & !3;
        let cookie = self.config.init_cookie.then(|| self.new_cookie(now)).flatten();
        let cookie = cookie.filter(|cookie| cookie.len() + 2 <= room);
        let seq = self.windows.next();
        let mut options = Options::default();
        if let Some(cookie) = &cookie {
            options.push(Opt::InitCookie(cookie));
        }
        self.features.write(seq, room, false, &mut options);
        self.dropped.write(seq, self.windows.gsr, room, &mut options);
        self.write_echo(now, room, &mut options);
        if options.as_bytes().len() + 6 <= room {
            options.push(Opt::Timestamp(self.clock(now)));
        }
        self.timed = Some((seq, now));
        let kind =
            Kind::Response { ack: self.windows.gsr.extended(), service: self.config.service.0 };
        let response = self.finish_packet(now, seq, kind, options, data.map(opening), probe);
        if cookie.is_some() {
            // §8.5 step 11
            self.listen_again();
        }
        response
    }

    /// A packet fully described by its type.
    fn plain_packet<P: EndpointProbe>(&mut self, now: Instant, kind: Kind, probe: &mut P) -> Sent {
        let seq = self.windows.next();
        let mut options = self.least_options();
        if matches!(kind, Kind::Sync { .. } | Kind::SyncAck { .. })
            && let Some(sender) = &mut self.sender
        {
            // RFC 6323 §3.3: Sync and SyncAck carry RTT Estimate as data does.
            sender.options(now, &mut options);
        }
        self.finish_packet(now, seq, kind, options, None, probe)
    }

    fn ack_packet<P: EndpointProbe>(&mut self, now: Instant, probe: &mut P) -> Sent {
        let seq = self.windows.next();
        let room = self.space(ACK_BYTES).min(LONGEST_OPTIONS) & !3;
        let options = self.ack_options(now, seq, room, false);
        self.pure_ack(now, seq, options, probe)
    }

    fn pure_ack<P: EndpointProbe>(
        &mut self,
        now: Instant,
        seq: SeqNo,
        options: Options,
        probe: &mut P,
    ) -> Sent {
        let kind = Kind::Ack { ack: self.ack_number() };
        self.finish_packet(now, seq, kind, options, None, probe)
    }

    /// Data, with the Acknowledgement if one is due and there is room for both.
    fn data_packet<P: EndpointProbe>(&mut self, now: Instant, frame: Frame, probe: &mut P) -> Sent {
        let seq = self.windows.next();
        let mut extra = Options::default();
        if let Some(sender) = &mut self.sender {
            sender.options(now, &mut extra);
        }
        if self.config.data_checksum {
            extra.push(Opt::DataChecksum(arrival::checksum(&frame)));
        }
        // §8.1.5: in PARTOPEN every packet carries an acknowledgement.
        let owes = self.sender.as_mut().is_some_and(SenderHalf::owes_ack);
        let acknowledges = owes
            || self.owed.ack
            || self.features.ride()
            || self.state == State::PartOpen
            || self.dropped.is_news();
        let unburdened = take(&mut self.owed.unburdened);
        if !acknowledges || (unburdened && self.state != State::PartOpen) {
            self.write_count(&mut extra);
            self.write_echo(now, LONGEST_OPTIONS, &mut extra);
            return self.finish_data(now, seq, Kind::Data, extra, frame, probe);
        }
        let space = self.space(ACK_BYTES).saturating_sub(frame.wire_bytes());
        let room = space.min(LONGEST_OPTIONS) & !3;
        let left = room.saturating_sub(extra.as_bytes().len());
        let mut options = match unburdened {
            true => self.least_options(),
            false => self.ack_options(now, seq, left, true),
        };
        if options.as_bytes().len() > left && !unburdened {
            // Too long for one packet: the options go first in their own packet, then the data without them.
            (self.frame, self.owed.unburdened) = (Some(frame), true);
            return self.pure_ack(now, seq, options, probe);
        }
        options.append(extra.as_bytes());
        let kind = Kind::DataAck { ack: self.ack_number() };
        self.finish_data(now, seq, kind, options, frame, probe)
    }

    fn finish_data<P: EndpointProbe>(
        &mut self,
        now: Instant,
        seq: SeqNo,
        kind: Kind,
        options: Options,
        frame: Frame,
        probe: &mut P,
    ) -> Sent {
        let transmit = self.finish_packet(now, seq, kind, options, Some(frame), probe);
        self.ask(now);
        transmit
    }

    /// The options sent with an Acknowledgement Number.
    fn ack_options(&mut self, now: Instant, seq: SeqNo, room: usize, data: bool) -> Options {
        self.owed.ack = false;
        let mut options = Options::of_an_ack();
        self.write_least(&mut options);
        if let Some(receiver) = &mut self.receiver {
            receiver.acknowledge(now, data, &mut self.vector, &mut options);
        }
        if self.negotiated.vectors {
            self.vector.write(&mut options);
        }
        self.features.write(seq, room, self.state == State::PartOpen, &mut options);
        self.dropped.write(seq, self.windows.gsr, room, &mut options);
        self.write_echo(now, room, &mut options);
        options
    }

    /// The options required on every packet in PARTOPEN.
    fn least_options(&self) -> Options {
        let mut options = Options::default();
        self.write_least(&mut options);
        options
    }

    fn write_least(&self, options: &mut Options) {
        self.write_cookie(options);
        self.write_count(options);
    }

    /// §8.1.4: the cookie is sent in PARTOPEN, and on the Close that may end it.
    fn write_cookie(&self, options: &mut Options) {
        options.append(self.cookies.echoed());
    }

    /// §7.7: sent after a packet without data.
    fn write_count(&self, options: &mut Options) {
        if self.negotiated.counts && self.non_data > 0 {
            options.push(Opt::NdpCount(self.non_data));
        }
    }

    /// §13.3
    fn write_echo(&mut self, now: Instant, room: usize, options: &mut Options) {
        if options.as_bytes().len() + 10 > room {
            return;
        }
        if let Some((timestamp, at)) = self.echo.take() {
            let elapsed = now.saturating_since(at).as_nanos() / 10_000;
            let elapsed = u32::try_from(elapsed).unwrap_or(u32::MAX);
            options.push(Opt::TimestampEcho { timestamp, elapsed });
        }
    }

    fn ack_number(&self) -> WireSeq {
        if self.is_short() { self.windows.gsr.short() } else { self.windows.gsr.extended() }
    }
    /// §7.6: short sequence numbers where the other side allows them, not in the handshake.
    fn is_short(&self) -> bool {
        self.negotiated.short && self.state >= State::Open
    }

    /// Completes every numbered packet: informs the CCID and fills in the header.
    fn finish_packet<P: EndpointProbe>(
        &mut self,
        now: Instant,
        seq: SeqNo,
        kind: Kind,
        options: Options,
        frame: Option<Frame>,
        probe: &mut P,
    ) -> Sent {
        let data_bytes = frame.as_ref().map(|frame| frame.wire_bytes() as u32);
        let (mut ccval, mut ecn) = (0, Ecn::NotEct);
        if let Some(sender) = &mut self.sender {
            if frame.is_some() {
                ccval = sender.ccval(now) & 0xf;
                // §12.2; RFC 8311 §6: never ECT(1).
                ecn = if self.negotiated.ecn && sender.ect() { Ecn::Ect0 } else { Ecn::NotEct };
            } else if self.negotiated.ecn_acks && matches!(kind, Kind::Ack { .. }) {
                ecn = Ecn::Ect0;
            }
            sender.on_sent(now, &Departure { seq, data_bytes }, probe);
        }
        self.vector.on_sent(seq);
        self.count(&kind);
        if self.state == State::PartOpen {
            // §8.1.5: the timer runs from the last packet sent.
            self.timers.repeat = Some(now + self.timers.wait);
        }
        let short = matches!(kind, Kind::Data | Kind::Ack { .. } | Kind::DataAck { .. });
        let cscov = frame.as_ref().map_or(0, |frame| self.coverage(frame));
        let seq = if short && self.is_short() { seq.short() } else { seq.extended() };
        let payload = frame.unwrap_or(Frame::Data(crate::packet::Payload::default()));
        let mut sent = self.transmit(Packet { seq, ccval, cscov, kind, options, payload });
        sent.ecn = ecn;
        sent
    }

    fn transmit(&mut self, mut packet: Packet) -> Sent {
        packet.options.pad();
        let packet = self.spare.take().with(packet);
        Transmit { path: PathId(0), ecn: Ecn::NotEct, packet }
    }

    /// §7.7: Request and Response count as data.
    fn count(&mut self, kind: &Kind) {
        match kind {
            Kind::Request { .. } | Kind::Response { .. } | Kind::Data | Kind::DataAck { .. } => {
                self.non_data = 0;
            }
            _ => self.non_data += 1,
        }
    }

    /// §9.2: coverage cannot exceed the data. RFC 5762 §4.1: covers at least the header of RTP, and all
    /// of RTCP, whose receiver cannot use damaged reports.
    fn coverage(&self, frame: &Frame) -> u8 {
        let coverage = match (self.negotiated.coverage, frame) {
            (0, _) | (_, Frame::Rtcp(_)) => return 0,
            (coverage, Frame::Rtp(_)) => coverage.max(RTP_COVERAGE),
            (coverage, Frame::Data(_)) => coverage,
        };
        let covered = usize::from(coverage - 1) * 4;
        if covered <= frame.wire_bytes() { coverage } else { 0 }
    }
}
