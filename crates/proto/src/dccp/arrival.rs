//! Processing of arriving packets: the pseudocode of RFC 4340 §8.5, step by step. DCCP-Listen packets
//! are filtered out first (RFC 5596); at the end, half-connections are informed and data is delivered.

use super::ccid::{Acknowledgement, Arrival, Receiver as _, Sender as _};
use super::data_dropped::DropCode;
use super::receive_options::Heard;
use super::{Dccp, Kind, Packet, ResetCode, SeqNo, Service, State};
use crate::frame;
use crate::frame::Frame;
use crate::gauge::{EndpointProbe, RxError};
use crate::octets::checksum::crc32c;
use crate::packet::{Damage, Ecn, Payload};
use crate::profile::Profile;
use crate::time::{Duration, Instant};

/// §7.5.4: maximum number of Syncs per second in response to invalid packets.
const SYNCS_PER_SECOND: u8 = 8;

/// Properties of a valid packet.
#[derive(Clone, Copy, Debug)]
struct Arrived {
    seq: SeqNo,
    ack: Option<SeqNo>,
    ecn: Ecn,
    damage: Damage,
    /// The data does not match its Data Checksum (§9.3).
    corrupt: bool,
}

/// Bytes of application data under the checksum (§9.2); `None` for all.
fn covered(packet: &Packet) -> Option<usize> {
    usize::from(packet.cscov).checked_sub(1).map(|words| words * 4)
}

impl Dccp {
    pub(super) fn on_dccp<P: EndpointProbe>(
        &mut self,
        now: Instant,
        ecn: Ecn,
        damage: Damage,
        packet: &mut Packet,
        probe: &mut P,
    ) {
        // RFC 5596 §2.2.1: a Listen has no effect on its receiver.
        if matches!(packet.kind, Kind::Listen { .. }) {
            return;
        }
        if let Err(rx_error) = self.check_header(packet, damage) {
            return probe.rx_error(now, rx_error);
        }
        self.allow(packet);
        // Step 2
        if matches!(self.state, State::Closed | State::TimeWait) {
            probe.rx_error(now, RxError::Unexpected);
            return self.refuse(packet, self.code_without_listener(packet.kind));
        }
        if self.state == State::Listen && !self.on_listen(now, packet, probe) {
            return;
        }
        if self.state == State::Request && !self.prepare_request(packet) {
            return probe.rx_error(now, RxError::Unexpected);
        }
        match self.check_numbers(now, packet) {
            Ok(Some(seq)) => {
                let ack = packet.kind.ack().map(|ack| self.windows.ours_at(ack));
                self.on_valid(
                    now,
                    Arrived { seq, ack, ecn, damage, corrupt: false },
                    packet,
                    probe,
                );
            }
            // Duplicated by the network.
            Ok(None) => {}
            Err(rx_error) => probe.rx_error(now, rx_error),
        }
    }

    /// RFC 5595 §3.3.1: no server is bound to the port of a Request. Linux answers it like any other packet
    /// without a connection.
    fn code_without_listener(&self, kind: Kind) -> ResetCode {
        match kind {
            Kind::Request { .. } if self.config.profile != Profile::Linux => {
                ResetCode::CONNECTION_REFUSED
            }
            _ => ResetCode::NO_CONNECTION,
        }
    }

    /// Step 1: the checks that a parsed packet can still fail.
    fn check_header(&self, packet: &Packet, damage: Damage) -> Result<(), RxError> {
        let may_be_short =
            matches!(packet.kind, Kind::Data | Kind::Ack { .. } | Kind::DataAck { .. });
        let extended = packet.seq.is_extended();
        let mixed = packet.kind.ack().is_some_and(|ack| ack.is_extended() != extended);
        if mixed || (!extended && !may_be_short) {
            return Err(RxError::Malformed);
        }
        let length = packet.payload.wire_bytes();
        match covered(packet) {
            Some(bytes) if bytes > length => Err(RxError::Malformed),
            // §9.1: packets damaged within the checksum's coverage are dropped.
            Some(bytes) if damage == Damage::Payload && bytes == length => Err(RxError::Checksum),
            None if damage == Damage::Payload => Err(RxError::Checksum),
            _ => Ok(()),
        }
    }

    /// Until its address is proven, a client receives at most three times what it sent.
    fn allow(&mut self, packet: &Packet) {
        let unproven = self.server && self.state < State::Open;
        self.owed.allowance = unproven.then(|| {
            let header_bytes = self.version.header_bytes() as usize + packet.header_bytes();
            3 * (header_bytes + packet.payload.wire_bytes())
        });
    }

    /// Step 4. False if REQUEST does not accept the packet.
    fn prepare_request(&mut self, packet: &Packet) -> bool {
        let near = SeqNo::first(0);
        let expected = match packet.kind {
            Kind::Response { ack, .. } | Kind::Reset { ack, .. } => {
                self.windows.acks(self.windows.ours_at(ack))
            }
            _ => false,
        };
        if expected {
            self.windows.begin(near.near(packet.seq));
        } else if packet.kind.number() != ResetCode::TYPE {
            let data = [packet.kind.number(), 0, 0];
            let ack = packet.kind.ack().map(|ack| self.windows.ours_at(ack));
            match ack.filter(|ack| !self.windows.acks(*ack)) {
                Some(ack) => self.reset_stranger(data, ack, near.near(packet.seq)),
                None => self.reset_in_order(ResetCode::PACKET_ERROR, data, near.near(packet.seq)),
            }
        }
        expected
    }

    /// Steps 5 to 7: the packet's number if it is valid and new, `None` for a duplicate.
    fn check_numbers(&mut self, now: Instant, packet: &Packet) -> Result<Option<SeqNo>, RxError> {
        // Step 6, first part
        if !packet.seq.is_extended() && !self.negotiated.short_heard {
            return Err(RxError::Unexpected);
        }
        let seq = self.windows.theirs_at(packet.seq);
        let ack = packet.kind.ack().map(|ack| self.windows.ours_at(ack));
        match packet.kind {
            // Step 5
            Kind::Sync { .. } | Kind::SyncAck { .. } => {
                if !ack.is_some_and(|ack| self.windows.acks(ack)) {
                    return Err(RxError::BadAck);
                }
                if seq < self.windows.swl() {
                    return Err(RxError::OutOfWindow);
                }
            }
            // Step 6
            _ => self.check_windows(now, packet, seq, ack)?,
        }
        let first = self.windows.receive(seq);
        if let Some(ack) = ack.filter(|_| !matches!(packet.kind, Kind::Sync { .. })) {
            self.windows.gar = self.windows.gar.max(ack);
        }
        if self.is_unexpected(packet, seq) {
            self.owe_sync(now, seq);
            return Err(RxError::Unexpected);
        }
        Ok(first.then_some(seq))
    }

    /// Step 6: checks the windows, and sends a Sync for a packet outside.
    fn check_windows(
        &mut self,
        now: Instant,
        packet: &Packet,
        seq: SeqNo,
        ack: Option<SeqNo>,
    ) -> Result<(), RxError> {
        let ends =
            matches!(packet.kind, Kind::CloseReq { .. } | Kind::Close { .. } | Kind::Reset { .. });
        let windows = &self.windows;
        let (lswl, lawl) = match ends {
            // "LAWL := S.GAR", which may lie below AWL: a peer that closes may know of nothing newer.
            true => (windows.gsr + 1, windows.gar),
            false => (windows.swl(), windows.awl()),
        };
        let in_order = lswl <= seq && seq <= windows.swh();
        if in_order && ack.is_none_or(|ack| lawl <= ack && ack <= windows.gss) {
            return Ok(());
        }
        let is_reset = packet.kind.number() == ResetCode::TYPE;
        self.owe_sync(now, if is_reset { self.windows.gsr } else { seq });
        Err(if in_order { RxError::BadAck } else { RxError::OutOfWindow })
    }

    /// Step 7
    fn is_unexpected(&self, packet: &Packet, seq: SeqNo) -> bool {
        let late = self.state >= State::Open && self.windows.osr.is_some_and(|osr| seq >= osr);
        match packet.kind {
            Kind::CloseReq { .. } => self.server,
            Kind::Response { .. } => self.server || late,
            Kind::Request { .. } => !self.server || late,
            Kind::Data => self.state == State::Respond,
            _ => false,
        }
    }

    /// §7.5.4: limited per second, so that two desynchronised ends do not exchange Syncs for ever.
    fn owe_sync(&mut self, now: Instant, ack: SeqNo) {
        let (since, count) = self.syncs;
        if now.saturating_since(since) >= Duration::from_secs(1) || count == 0 {
            self.syncs = (now, 1);
        } else if count < SYNCS_PER_SECOND {
            self.syncs.1 += 1;
        } else {
            return;
        }
        self.owed.sync = Some(ack);
    }

    /// Steps 8 to 16
    fn on_valid<P: EndpointProbe>(
        &mut self,
        now: Instant,
        mut arrived: Arrived,
        packet: &mut Packet,
        probe: &mut P,
    ) {
        let Arrived { seq, ack, ecn, damage, .. } = arrived;
        // Step 8
        let heard = match self.hear(now, packet, (seq, ack), probe) {
            Ok(heard) => heard,
            Err(_) if packet.kind.number() == ResetCode::TYPE => Heard::default(),
            Err((code, data)) => {
                probe.rx_error(now, RxError::Malformed);
                return self.fail(code, data, seq);
            }
        };
        // §9.3: on packets of any type.
        arrived.corrupt = heard
            .checksum
            .is_some_and(|crc| damage == Damage::Payload || !checks(crc, &packet.payload));
        self.vector.on_packet(seq, ecn);
        // Step 9
        if let Kind::Reset { code, .. } = packet.kind {
            return self.on_reset(now, code);
        }
        if !self.advance(now, packet, arrived, &heard, probe) {
            return;
        }
        self.inform(now, packet, arrived, &heard, probe);
        match packet.kind {
            // Step 13
            Kind::CloseReq { .. } if self.state < State::CloseReq => {
                self.news.add(crate::endpoint::Event::PeerClosed);
                self.state = State::Closing;
                self.owed.close = true;
                self.time_close(now);
            }
            // Step 14
            Kind::Close { .. } => return self.on_close(seq),
            // Step 15
            Kind::Sync { .. } => self.owed.sync_ack = Some(seq),
            _ => {}
        }
        self.deliver(now, arrived, packet, probe);
    }

    /// Steps 10 to 12: the states of the handshake. False if processing ends here.
    fn advance<P: EndpointProbe>(
        &mut self,
        now: Instant,
        packet: &Packet,
        Arrived { seq, ack, .. }: Arrived,
        heard: &Heard,
        probe: &mut P,
    ) -> bool {
        match (self.state, packet.kind) {
            // Step 10
            (State::Request, Kind::Response { service, .. }) => {
                // §8.1.2: the Response repeats the Request's Service Code.
                if Service(service) != self.config.service {
                    self.fail(ResetCode::BAD_SERVICE_CODE, [0; 3], seq);
                    return false;
                }
                self.time_handshake(now, ack, heard);
                self.part_open(now, probe);
            }
            // Step 11
            (State::Respond, Kind::Request { .. }) => {
                self.features.propose();
                self.features.repeat();
                self.owed.response = true;
            }
            (State::Respond, _) => {
                self.time_handshake(now, ack, heard);
                self.enter_open(now, seq, probe);
            }
            // Step 12
            (State::PartOpen, Kind::Response { .. }) => self.owed.ack = true,
            (State::PartOpen, Kind::Sync { .. }) => {}
            (State::PartOpen, _) => self.enter_open(now, seq, probe),
            _ => {}
        }
        true
    }

    /// Measures the first round-trip time, from the packet's echo or the packet it acknowledges.
    fn time_handshake(&mut self, now: Instant, ack: Option<SeqNo>, heard: &Heard) {
        let timed = self.timed.take().filter(|(seq, _)| ack == Some(*seq));
        let waited = heard.elapsed.unwrap_or(Duration::ZERO);
        let by_number = timed.map(|(_, at)| now.saturating_since(at).saturating_sub(waited));
        self.handshake_rtt = by_number.or(heard.echo_rtt);
    }

    /// Informs the half-connections of the packet.
    fn inform<P: EndpointProbe>(
        &mut self,
        now: Instant,
        packet: &Packet,
        Arrived { seq, ack, ecn, corrupt, .. }: Arrived,
        heard: &Heard,
        probe: &mut P,
    ) {
        let options = &packet.options;
        // §11.7.2: corrupt data counts as marked. A CCID whose receiver counts loss events learns it
        // here; one whose sender counts them, from Data Dropped.
        let marked = if corrupt { Ecn::Ce } else { ecn };
        let data_bytes = packet.kind.is_data().then(|| packet.payload.wire_bytes() as u32);
        let arrival =
            Arrival { seq, data_bytes, ccval: packet.ccval, ecn: marked, ndp: heard.ndp, options };
        // A Sync names the packet that caused it, which is not an acknowledgement.
        let ack = ack.filter(|_| !matches!(packet.kind, Kind::Sync { .. }));
        if let Some(ack) = ack {
            // An overtaken acknowledgement is older than a round trip.
            if ack >= self.windows.gar {
                self.in_flight = self.windows.gss.since(ack) + 1;
            }
            self.vector.on_ack_of_ack(ack, options);
            self.dropped.on_ack(ack, options);
        }
        if let Some(sender) = &mut self.sender {
            sender.on_arrival(now, &arrival);
            if let Some(ack) = ack {
                // The handshake's round-trip time is already known.
                let opens = ack < self.first_of_half;
                let echo_rtt = heard.echo_rtt.filter(|_| !opens);
                let elapsed = heard.elapsed;
                let news = Acknowledgement { seq, ack, options, ecn, elapsed, echo_rtt };
                sender.on_ack(now, &news, probe);
            }
        }
        let known = self.sender.as_ref().and_then(super::SenderHalf::rtt);
        let Some(receiver) = &mut self.receiver else { return };
        if let Some(rtt) = known.filter(|rtt| self.shared_rtt != Some(*rtt)) {
            receiver.set_rtt(rtt);
            self.shared_rtt = known;
        }
        receiver.on_packet(now, &arrival, probe);
    }

    /// Step 16. Data on Request and Response is not delivered, but reported as dropped, unless the application
    /// reads it ([`Dccp::set_opening_data`]).
    fn deliver<P: EndpointProbe>(
        &mut self,
        now: Instant,
        Arrived { seq, corrupt, .. }: Arrived,
        packet: &mut Packet,
        probe: &mut P,
    ) {
        if !packet.kind.is_data() {
            if corrupt {
                self.dropped.note(seq, DropCode::CORRUPT);
                probe.rx_error(now, RxError::Checksum);
            } else if matches!(packet.kind, Kind::Request { .. } | Kind::Response { .. })
                && packet.payload.wire_bytes() > 0
                && self.opening.is_none()
            {
                // §8.1.3, §11.7
                self.dropped.note(seq, DropCode::PROTOCOL_CONSTRAINTS);
            }
            return;
        }
        // §12.1
        if self.negotiated.awaits_ecn_incapable {
            self.dropped.note(seq, DropCode::PROTOCOL_CONSTRAINTS);
            return probe.rx_error(now, RxError::Unexpected);
        }
        // §9.2.1
        let least = self.negotiated.least_coverage;
        let acceptable = packet.cscov == 0 || (least > 0 && packet.cscov >= least);
        if !acceptable {
            self.dropped.note(seq, DropCode::PROTOCOL_CONSTRAINTS);
            return probe.rx_error(now, RxError::Unexpected);
        }
        // §9.3
        if corrupt {
            self.dropped.note(seq, DropCode::CORRUPT);
            return probe.rx_error(now, RxError::Checksum);
        }
        self.inbound = Some(std::mem::take(&mut packet.payload));
    }
}

/// The CRC-32c of a frame, as on the wire (§9.3).
pub(super) fn checksum(frame: &Frame) -> u32 {
    let mut bytes = Vec::with_capacity(frame.wire_bytes());
    frame::emit(frame, &mut bytes);
    crc32c(&bytes)
}

/// True if application data matches its Data Checksum. Virtual bytes are ignored: network damage to
/// them is recorded in the packet's damage.
fn checks(crc: u32, frame: &Frame) -> bool {
    let payload = match frame {
        Frame::Data(payload) => payload,
        Frame::Rtp(packet) => &packet.payload,
        Frame::Rtcp(_) => return checksum(frame) == crc,
    };
    matches!(payload, Payload::Virtual { .. }) || checksum(frame) == crc
}
