//! Association setup (RFC 9260 §5): INIT, INIT ACK, COOKIE ECHO, COOKIE ACK.
//!
//! An INIT ACK of this listener has 12 bytes of common header, 20 of INIT ACK, 64 of State Cookie
//! with its header, and up to 12 of parameters: at most 108 bytes besides addresses and reports,
//! for an INIT of at least 32. One packet answers one packet.

use bytes::Bytes;

use super::cookie::{Memory, Opened};
use super::ecn::Ecn as Marks;
use super::packet::{Chunk, Init, Packet};
use super::parameter::Parameter;
use super::receive::Receiver;
use super::send::Sender;
use super::{Cause, Sctp, State, Timers, fresh_tag, wire};
use crate::endpoint::{Event, Transmit};
use crate::gauge::RxError;
use crate::packet::{Ecn, IpVersion, PacketBox, PathId};
use crate::time::{Duration, Instant};

/// The least a_rwnd of an INIT or INIT ACK (§3.3.2, §3.3.3).
const MIN_RWND: u32 = 1500;

/// Parameters of an INIT or INIT ACK.
#[derive(Debug, Default)]
struct Said {
    cookie: Option<Bytes>,
    forward_tsn: bool,
    interleaving: bool,
    ecn: bool,
    /// Cookie life that an INIT adds.
    longer: Duration,
    /// Unknown parameters to report.
    reports: Vec<Bytes>,
}

impl Said {
    fn read(init: &Init) -> Self {
        let mut said = Self::default();
        for parameter in &init.parameters {
            match parameter {
                Parameter::StateCookie(cookie) => said.cookie = Some(cookie.clone()),
                Parameter::ForwardTsn => said.forward_tsn = true,
                Parameter::Ecn => said.ecn = true,
                Parameter::SupportedExtensions(types) => {
                    said.interleaving |= types.contains(&64);
                    said.forward_tsn |= types.contains(&192);
                }
                Parameter::CookiePreservative(millis) => {
                    said.longer = Duration::from_millis((*millis).into());
                }
                Parameter::Unknown { kind, .. } => {
                    // §3.2.1: the second bit requests a report, the first one to read the rest.
                    if kind & 0x4000 != 0 {
                        said.reports.push(wire::parameter_bytes(parameter));
                    }
                    if kind & 0x8000 == 0 {
                        break;
                    }
                }
                _ => {}
            }
        }
        said
    }
}

impl Sctp {
    pub(super) fn open(&mut self, now: Instant) {
        if self.state == State::Closed && self.timers.repeat.is_none() {
            self.state = State::CookieWait;
            self.send_init(now);
        }
    }

    fn send_init(&mut self, now: Instant) {
        let chunk = Chunk::Init(self.init(self.my_tag, self.my_tsn, self.config.streams));
        // §5.1 A: the tag of the packet is zero.
        self.send_packet(PathId(0), Packet::of(0, chunk));
        self.timers.repeat = Some(now + self.paths[0].rtt.rto());
    }

    fn init(&self, tag: u32, tsn: u32, outbound: u16) -> Init {
        let mut parameters: Vec<Parameter> = Vec::new();
        for address in &self.addresses {
            parameters.push(match address {
                std::net::IpAddr::V4(address) => Parameter::Ipv4(*address),
                std::net::IpAddr::V6(address) => Parameter::Ipv6(*address),
            });
        }
        if let Some(micros) = self.stale {
            // §5.2.6 option 3: the staleness plus a margin.
            parameters.push(Parameter::CookiePreservative(micros / 1000 + 1000));
        }
        if self.config.interleaving {
            let types = Bytes::from_static(&[64, 192, 194]);
            parameters.push(Parameter::SupportedExtensions(types));
        }
        if self.config.ecn {
            parameters.push(Parameter::Ecn);
        }
        parameters.push(Parameter::ForwardTsn);
        let a_rwnd = u32::try_from(self.config.receive_buffer.as_bytes()).unwrap_or(u32::MAX);
        Init { tag, a_rwnd, outbound, inbound: self.config.streams, tsn, parameters }
    }

    /// §5.1 B; §5.2.1 and §5.2.2 if there is an association already.
    pub(super) fn on_init(
        &mut self,
        now: Instant,
        path: PathId,
        init: &Init,
    ) -> Result<(), RxError> {
        // §3.3.2: discarded and answered by ABORT, in any state.
        if init.a_rwnd < MIN_RWND || init.outbound == 0 || init.inbound == 0 {
            self.answer_abort(
                path,
                init.tag,
                false,
                vec![Cause::new(Cause::INVALID_PARAMETER, "")],
            );
            return Err(RxError::Malformed);
        }
        if self.state == State::ShutdownAckSent {
            // §9.2: the SHUTDOWN ACK is sent again.
            self.control.push_back((usize::from(path.0), Chunk::ShutdownAck));
            return Ok(());
        }
        let said = Said::read(init);
        let (my_tag, my_tsn) = match self.state {
            // §5.2.1: simultaneous open.
            State::CookieWait | State::CookieEchoed => (self.my_tag, self.my_tsn),
            _ => (fresh_tag(&mut self.rng), self.rng.bits() as u32),
        };
        let ties = (self.state > State::CookieEchoed).then(|| self.ties());
        let memory = Memory { ties, ..self.memory(init, &said, my_tag, my_tsn) };
        let mut answer = self.init(my_tag, my_tsn, memory.outbound);
        let life = self.config.cookie_life + said.longer.min(self.config.cookie_life);
        answer.parameters.retain(|one| !matches!(one, Parameter::CookiePreservative(_)));
        let cookie = self.cookies.seal(now, life, &memory);
        answer.parameters.insert(0, Parameter::StateCookie(cookie));
        // §3.2.2; the answer stays within a packet.
        let mut space = 512_usize;
        for report in said.reports {
            if let Some(left) = space.checked_sub(report.len() + 4) {
                space = left;
                answer.parameters.push(Parameter::Unrecognized(report));
            }
        }
        let asked = Packet::of(0, Chunk::Init(init.clone())).wire_bytes();
        let mut answer = Packet::of(init.tag, Chunk::InitAck(answer));
        // Limit amplification to three times the INIT: drop the last addresses first. An INIT with
        // addresses leaves room for ours.
        while answer.wire_bytes() > 3 * asked + 2 * IpVersion::V4.header_bytes() as usize {
            let Some(Chunk::InitAck(said)) = answer.chunks.first_mut() else { break };
            let is_address =
                |one: &Parameter| matches!(one, Parameter::Ipv4(_) | Parameter::Ipv6(_));
            let Some(last) = said.parameters.iter().rposition(is_address) else { break };
            said.parameters.remove(last);
        }
        self.send_packet(path, answer);
        Ok(())
    }

    /// What both ends of an association say: the peer in its INIT or INIT ACK.
    fn memory(&self, init: &Init, said: &Said, my_tag: u32, my_tsn: u32) -> Memory {
        Memory {
            my_tag,
            peer_tag: init.tag,
            my_tsn,
            peer_tsn: init.tsn,
            a_rwnd: init.a_rwnd,
            // §5.1.1: the peer's maximum.
            outbound: self.config.streams.min(init.inbound),
            // §3.3.3: the OS of an INIT ACK must not exceed the MIS of the INIT; excess streams are not
            // accepted (§6.5).
            inbound: self.config.streams.min(init.outbound),
            forward_tsn: said.forward_tsn,
            interleaving: said.interleaving && self.config.interleaving,
            ecn: said.ecn && self.config.ecn,
            ties: None,
        }
    }

    /// §5.1 C; discarded outside COOKIE-WAIT (§5.2.3).
    pub(super) fn on_init_ack(&mut self, now: Instant, init: &Init) -> Result<(), RxError> {
        if self.state != State::CookieWait {
            return Err(RxError::Unexpected);
        }
        // §3.3.3: without a tag to answer with, the ABORT has that of the INIT ACK and the T bit.
        if init.tag == 0 {
            self.answer_abort(PathId(0), self.my_tag, true, Vec::new());
            self.end(Event::Reset);
            return Err(RxError::Malformed);
        }
        let invalid = || vec![Cause::new(Cause::INVALID_PARAMETER, "")];
        if init.outbound == 0 || init.inbound == 0 {
            self.answer_abort(PathId(0), init.tag, false, invalid());
            self.end(Event::Reset);
            return Err(RxError::Malformed);
        }
        // §3.3.3: discarded; the state is unchanged.
        if init.a_rwnd < MIN_RWND {
            self.answer_abort(PathId(0), init.tag, false, invalid());
            return Err(RxError::Malformed);
        }
        let said = Said::read(init);
        let Some(cookie) = said.cookie.clone() else {
            // §3.3.3: the State Cookie must be there.
            let missing = vec![0, 0, 0, 1, 0, 7];
            let causes = vec![Cause::new(Cause::MISSING_PARAMETER, missing)];
            self.answer_abort(PathId(0), init.tag, false, causes);
            self.end(Event::Reset);
            return Err(RxError::Malformed);
        };
        self.adopt(&self.memory(init, &said, self.my_tag, self.my_tsn));
        self.cookie = cookie;
        self.state = State::CookieEchoed;
        self.timers.repeats = 0;
        self.send_cookie(now);
        self.report_parameters(&said.reports);
        Ok(())
    }

    /// §3.2.2: an ERROR with the unknown parameters of an INIT ACK goes with the COOKIE ECHO.
    /// Parameters that do not fit are not reported.
    fn report_parameters(&mut self, reports: &[Bytes]) {
        let echo = Chunk::CookieEcho(self.cookie.clone());
        let headers = Chunk::Error(vec![Cause::new(Cause::UNRECOGNIZED_PARAMETERS, "")]);
        let taken = echo.wire_bytes() + headers.wire_bytes();
        let space = self.paths[0].space().saturating_sub(taken);
        let mut value = Vec::new();
        for report in reports {
            // §3.2.1: each parameter begins at a multiple of four bytes.
            let start = value.len().next_multiple_of(4);
            if start + report.len().next_multiple_of(4) <= space {
                value.resize(start, 0);
                value.extend_from_slice(report);
            }
        }
        if !value.is_empty() {
            let cause = Cause::new(Cause::UNRECOGNIZED_PARAMETERS, value);
            self.control.push_back((0, Chunk::Error(vec![cause])));
        }
    }

    fn send_cookie(&mut self, now: Instant) {
        self.control.push_back((0, Chunk::CookieEcho(self.cookie.clone())));
        self.timers.repeat = Some(now + self.paths[0].rtt.rto());
    }

    /// Applies both ends' INIT.
    fn adopt(&mut self, memory: &Memory) {
        (self.my_tag, self.peer_tag) = (memory.my_tag, memory.peer_tag);
        self.streams = (memory.outbound, memory.inbound);
        self.interleaving = memory.interleaving;
        self.ecn = Marks::agree(memory.ecn);
        self.my_tsn = memory.my_tsn;
        self.tx = Sender::new(memory.my_tsn, &self.config);
        self.tx.agree(memory.a_rwnd, memory.forward_tsn, memory.interleaving);
        let buffer = self.config.receive_buffer.as_bytes() as usize;
        self.rx = Receiver::new(memory.peer_tsn, buffer);
    }

    /// §5.1 D, §5.2.4. `true` if the rest of the packet may be read.
    pub(super) fn on_cookie_echo(
        &mut self,
        now: Instant,
        path: PathId,
        tag: u32,
        cookie: &[u8],
    ) -> Result<(), RxError> {
        let opened = self.cookies.open(now, cookie).ok_or(RxError::Unexpected)?;
        let memory = match opened {
            Opened::Fresh(memory) => memory,
            // §5.2.4 step 3: if both tags match, a repetition, at any age.
            Opened::Stale(memory, _) if self.is_this(&memory) => memory,
            Opened::Stale(memory, late) => {
                // §5.1.5 step 3
                let micros = u32::try_from(late.as_nanos() / 1000).unwrap_or(u32::MAX);
                let error = Chunk::Error(vec![Cause::stale_cookie(micros)]);
                self.send_packet(path, Packet::of(memory.peer_tag, error));
                return Err(RxError::Unexpected);
            }
        };
        // §5.1.5 step 2; §8.5.1 D
        if tag != memory.my_tag {
            return Err(RxError::OutOfWindow);
        }
        match self.state {
            State::Listen => self.adopt(&memory),
            // §5.2.4 B: simultaneous open.
            State::CookieWait | State::CookieEchoed if memory.my_tag == self.my_tag => {
                if !self.is_this(&memory) {
                    self.adopt(&memory);
                }
            }
            State::ShutdownAckSent if self.is_this(&memory) => {
                // §5.2.4 D in that state: as in §9.2.
                self.control.push_back((usize::from(path.0), Chunk::ShutdownAck));
                return Ok(());
            }
            // §5.2.4 D: the COOKIE ACK was lost.
            _ if self.is_this(&memory) => {}
            _ if self.is_restart(&memory) => return self.restart(now, path, &memory),
            _ => return Err(RxError::Unexpected),
        }
        self.control.push_back((usize::from(path.0), Chunk::CookieAck));
        if matches!(self.state, State::Listen | State::CookieWait | State::CookieEchoed) {
            self.establish(now);
        }
        Ok(())
    }

    fn is_this(&self, memory: &Memory) -> bool {
        self.state > State::CookieWait
            && (memory.my_tag, memory.peer_tag) == (self.my_tag, self.peer_tag)
    }

    /// The Tie-Tags of this association. Its packets do not carry them, because others can read a
    /// cookie (§5.2.2).
    fn ties(&mut self) -> u64 {
        *self.ties.get_or_insert_with(|| self.rng.bits())
    }

    /// §5.2.4 A: neither tag is this association's, and the cookie was sealed during it. A cookie
    /// without Tie-Tags is an old one (C).
    fn is_restart(&self, memory: &Memory) -> bool {
        memory.ties.is_some()
            && memory.ties == self.ties
            && memory.my_tag != self.my_tag
            && memory.peer_tag != self.peer_tag
    }

    /// Restarts an association that the peer has lost: as after an ABORT and a COOKIE ECHO, windows and timers
    /// included. Unacknowledged data is lost ("MAY be retained"). A shutdown begun by this end begins again.
    fn restart(&mut self, now: Instant, path: PathId, memory: &Memory) -> Result<(), RxError> {
        let index = usize::from(path.0);
        if self.state == State::ShutdownAckSent {
            self.control.push_back((index, Chunk::ShutdownAck));
            let cause = Cause::new(Cause::COOKIE_WHILE_SHUTTING_DOWN, "");
            self.control.push_back((index, Chunk::Error(vec![cause])));
            return Ok(());
        }
        let closing = matches!(self.state, State::ShutdownPending | State::ShutdownSent);
        self.control.clear();
        self.adopt(memory);
        self.paths = self.fresh_paths(self.paths.len() as u8);
        self.ties = None;
        self.control.push_back((index, Chunk::CookieAck));
        self.news.add(Event::Restarted);
        self.stand(now);
        if closing {
            self.close(now);
        }
        Ok(())
    }

    /// §5.1 E
    pub(super) fn on_cookie_ack(&mut self, now: Instant) {
        if self.state == State::CookieEchoed {
            self.establish(now);
        }
    }

    fn establish(&mut self, now: Instant) {
        self.news.add(Event::Connected);
        self.stand(now);
        if self.close_wanted {
            self.close_wanted = false;
            self.close(now);
        }
    }

    /// Enters ESTABLISHED.
    fn stand(&mut self, now: Instant) {
        self.state = State::Established;
        self.timers = Timers::default();
        self.errors = 0;
        self.news.add(Event::Writable);
        self.begin_heartbeats(now);
    }

    /// §5.2.6: the cookie was stale; retry with a longer life.
    pub(super) fn on_stale_cookie(&mut self, now: Instant, value: &[u8]) {
        if self.state != State::CookieEchoed {
            return;
        }
        self.stale = Some(value.try_into().map_or(0, u32::from_be_bytes));
        self.state = State::CookieWait;
        self.timers.repeats += 1;
        if self.timers.repeats > self.config.max_init_retransmits {
            return self.give_up();
        }
        self.send_init(now);
    }

    /// T1-init, T1-cookie or T2-shutdown expired (§5.1 C, §9.2).
    pub(super) fn repeat(&mut self, now: Instant) {
        self.timers.repeats += 1;
        let opening = matches!(self.state, State::CookieWait | State::CookieEchoed);
        let most = if opening {
            self.config.max_init_retransmits
        } else {
            self.config.association_max_retrans
        };
        if self.timers.repeats > most {
            return self.give_up();
        }
        let path = if opening { super::data_path(&self.paths) } else { self.timers.path };
        self.paths[path].rtt.back_off();
        match self.state {
            State::CookieWait => self.send_init(now),
            State::CookieEchoed => self.send_cookie(now),
            State::ShutdownSent => self.send_shutdown(now),
            State::ShutdownAckSent => self.send_shutdown_ack(now),
            _ => {}
        }
    }

    pub(super) fn send_packet(&mut self, path: PathId, packet: Packet) {
        let packet = PacketBox::new(packet);
        self.packets.push_back(Transmit { path, ecn: Ecn::NotEct, packet });
    }
}
