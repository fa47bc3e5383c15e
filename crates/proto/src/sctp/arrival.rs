//! Packet arrival: checks the association (RFC 9260 §8.4, §8.5), then reads chunk by chunk (§3.2,
//! §6.10). The replies share one packet.

use super::packet::{Chunk, Data, Number, Packet, Sack};
use super::{Cause, Sctp, State, wire};
use crate::endpoint::Event;
use crate::gauge::{EndpointProbe, RxError};
use crate::packet::PathId;
use crate::time::Instant;

/// Maximum bytes of reports in reply to a packet.
const REPORTS: usize = 512;

/// Results of a packet's chunks so far.
#[derive(Debug, Default)]
struct Reading {
    /// The network marked the packet, and no data of it was read yet.
    marked: bool,
    data: bool,
    causes: Vec<Cause>,
    reported_bytes: usize,
}

impl Reading {
    fn report(&mut self, cause: Cause) {
        let bytes = cause.length().next_multiple_of(4);
        if self.reported_bytes + bytes <= REPORTS {
            self.reported_bytes += bytes;
            self.causes.push(cause);
        }
    }
}

impl Sctp {
    pub(super) fn on_sctp<P: EndpointProbe>(
        &mut self,
        now: Instant,
        path: PathId,
        marked: bool,
        packet: &mut Packet,
        probe: &mut P,
    ) {
        if usize::from(path.0) >= self.paths.len() {
            return probe.rx_error(now, RxError::Unexpected);
        }
        if let Err(what) = self.admit(now, path, packet) {
            return probe.rx_error(now, what);
        }
        // §9.2: a peer that still sends is alive.
        if self.state == State::ShutdownSent && packet.tag == self.my_tag {
            self.restart_shutdown_timer(now);
        }
        let mut reading = Reading { marked, ..Reading::default() };
        for chunk in packet.chunks.drain(..) {
            match self.on_chunk(now, path, chunk, &mut reading) {
                Ok(true) => {}
                Ok(false) => break,
                Err(what) => {
                    probe.rx_error(now, what);
                    break;
                }
            }
        }
        if reading.data && self.state > State::CookieEchoed {
            let (delay, every) = (self.config.sack_delay, self.config.sack_frequency);
            self.rx.on_packet(now, path, delay, every);
            // §9.2: in SHUTDOWN-SENT data is answered at once, and by SHUTDOWN again.
            if self.state == State::ShutdownSent {
                self.rx.due = true;
                self.send_shutdown(now);
            }
        }
        if !reading.causes.is_empty() && self.state > State::CookieWait {
            self.control.push_back((usize::from(path.0), Chunk::Error(reading.causes)));
        }
    }

    /// §8.4, §8.5: rejects packets that are not this association's.
    fn admit(&mut self, now: Instant, path: PathId, packet: &Packet) -> Result<(), RxError> {
        let Some(first) = packet.chunks.first() else { return Err(RxError::Malformed) };
        let alone = |chunk: &Chunk| {
            matches!(chunk, Chunk::Init(_) | Chunk::InitAck(_) | Chunk::ShutdownComplete { .. })
        };
        // §6.10: these are not bundled.
        if packet.chunks.len() > 1 && packet.chunks.iter().any(alone) {
            return Err(RxError::Malformed);
        }
        if let Chunk::Init(init) = first {
            // §8.5.1 A; §3.3.2: an Initiate Tag of zero is discarded silently.
            if packet.tag != 0 || init.tag == 0 {
                return Err(RxError::OutOfWindow);
            }
            if self.state == State::Closed {
                self.on_stray(path, packet);
                return Err(RxError::Unexpected);
            }
            return self.on_init(now, path, init);
        }
        if let Chunk::CookieEcho(cookie) = first
            && self.state != State::Closed
        {
            return self.on_cookie_echo(now, path, packet.tag, cookie);
        }
        if matches!(self.state, State::Closed | State::Listen) {
            self.on_stray(path, packet);
            return Err(RxError::Unexpected);
        }
        // §8.5.1 E: the peer has an association this end is only beginning.
        let opening = matches!(self.state, State::CookieWait | State::CookieEchoed);
        if opening && matches!(first, Chunk::ShutdownAck) {
            self.on_stray(path, packet);
            return Err(RxError::Unexpected);
        }
        // §8.5.1 B, C: an end without the association answers with the tag received.
        let reflected = packet.chunks.iter().any(|chunk| {
            matches!(
                chunk,
                Chunk::Abort { reflected: true, .. } | Chunk::ShutdownComplete { reflected: true }
            )
        });
        let expected = if reflected { self.peer_tag } else { self.my_tag };
        // In COOKIE-WAIT nothing was sent but an INIT, with a tag of zero.
        if packet.tag != expected || (reflected && self.state == State::CookieWait) {
            return Err(RxError::OutOfWindow);
        }
        Ok(())
    }

    /// False if the rest of the packet is ignored.
    fn on_chunk(
        &mut self,
        now: Instant,
        path: PathId,
        chunk: Chunk,
        reading: &mut Reading,
    ) -> Result<bool, RxError> {
        let index = usize::from(path.0);
        let open = self.state > State::CookieEchoed;
        match chunk {
            // Read before all others.
            Chunk::Init(_) => return Ok(false),
            Chunk::CookieEcho(_) => {}
            Chunk::InitAck(init) => {
                self.on_init_ack(now, &init)?;
                return Ok(false);
            }
            Chunk::CookieAck => self.on_cookie_ack(now),
            Chunk::Abort { .. } => {
                self.end(Event::Reset);
                return Ok(false);
            }
            Chunk::Error(causes) => {
                for cause in causes.iter().filter(|cause| cause.code == Cause::STALE_COOKIE) {
                    self.on_stale_cookie(now, &cause.value);
                }
            }
            Chunk::Data(data) => return self.on_data(now, data, reading),
            Chunk::Sack(sack) if open => self.on_sack(now, &sack)?,
            // §8.3: the value is echoed unchanged on the same path.
            Chunk::Heartbeat(value) if self.state > State::CookieWait => {
                self.control.push_back((index, Chunk::HeartbeatAck(value)));
            }
            Chunk::HeartbeatAck(value) if open => self.on_heartbeat_ack(now, &value)?,
            Chunk::Shutdown { cumulative } if open => self.on_shutdown(now, cumulative),
            Chunk::ShutdownAck if open => {
                self.on_shutdown_ack(path);
                return Ok(false);
            }
            Chunk::ShutdownComplete { .. } => {
                self.on_shutdown_complete();
                return Ok(false);
            }
            Chunk::ForwardTsn(forward) if open => {
                if !self.tx.forwards {
                    return Err(RxError::Unexpected);
                }
                self.rx.on_forward(&forward);
                reading.data = true;
            }
            Chunk::Unknown { .. } => return Ok(on_unknown(&chunk, reading)),
            Chunk::Ecne { lowest } if open => self.on_ecne(now, lowest),
            Chunk::Cwr { lowest } if open => self.ecn.on_cwr(lowest),
            _ => return Err(RxError::Unexpected),
        }
        Ok(self.state != State::Closed)
    }

    fn on_data(
        &mut self,
        now: Instant,
        data: Data,
        reading: &mut Reading,
    ) -> Result<bool, RxError> {
        if self.state <= State::CookieEchoed {
            return Err(RxError::Unexpected);
        }
        // §9.2: the peer has announced that it has no more.
        if matches!(self.state, State::ShutdownReceived | State::ShutdownAckSent) {
            return Err(RxError::Unexpected);
        }
        if data.payload.wire_bytes() == 0 {
            // §6.2
            self.abort(Cause::no_user_data(data.tsn));
            return Err(RxError::Malformed);
        }
        if matches!(data.number, Number::Mid(..)) != self.interleaving {
            // RFC 8260 §2.2.1
            self.abort(Cause::violation("DATA and I-DATA are mixed"));
            return Err(RxError::Malformed);
        }
        reading.data = true;
        if std::mem::take(&mut reading.marked) {
            self.on_marked(&data);
        }
        if data.stream >= self.streams.1 {
            // §6.5: acknowledged, reported and not used.
            reading.report(Cause::invalid_stream(data.stream));
            self.rx.ignore(&data);
            return Ok(true);
        }
        match self.rx.on_data(now, data) {
            Ok(true) => Ok(true),
            Ok(false) => Err(RxError::OutOfWindow),
            Err(words) => {
                self.abort(Cause::violation(words));
                Err(RxError::Malformed)
            }
        }
    }

    fn on_sack(&mut self, now: Instant, sack: &Sack) -> Result<(), RxError> {
        let before = self.tx.used_bytes();
        let there = self.tx.on_cumulative(
            now,
            sack.cumulative,
            Some(sack),
            &mut self.paths,
            &self.config,
        )?;
        self.on_acknowledged(now, before, there);
        Ok(())
    }

    /// Handles an acknowledgement; `before` bytes were held before it.
    fn on_acknowledged(&mut self, now: Instant, before: usize, there: bool) {
        let path = &self.paths[super::data_path(&self.paths)];
        let round_trip = path.rtt.srtt().unwrap_or(path.rtt.rto());
        self.tx.remind(now, round_trip + round_trip / 2);
        if there {
            self.errors = 0;
        }
        if self.tx.probing {
            // §6.1 A: unacknowledged probes are not errors of a path either.
            let path = super::data_path(&self.paths);
            self.paths[path].errors = 0;
        }
        if self.tx.used_bytes() < before {
            self.tell_room();
        }
    }

    /// The Cumulative TSN Ack of a SHUTDOWN (§9.2).
    pub(super) fn hear_cumulative(&mut self, now: Instant, cumulative: u32) {
        let before = self.tx.used_bytes();
        // Ignore one beyond the sent TSNs; rely on SACKs.
        if let Ok(there) =
            self.tx.on_cumulative(now, cumulative, None, &mut self.paths, &self.config)
        {
            self.on_acknowledged(now, before, there);
        }
    }

    pub(super) fn tell_room(&mut self) {
        if self.may_send() {
            self.news.add(Event::Writable);
        }
    }

    /// Updates state after any event.
    #[inline]
    pub(super) fn settle(&mut self, now: Instant) {
        if self.state <= State::CookieEchoed {
            return;
        }
        if self.tx.expire(now, &mut self.paths) {
            self.tell_room();
        }
        self.go_on_closing(now);
    }
}

/// §3.2: the two highest bits of the type say whether the rest is read, and whether to report.
fn on_unknown(chunk: &Chunk, reading: &mut Reading) -> bool {
    let kind = chunk.number();
    if kind & 0x40 != 0 {
        let bytes = wire::chunk_bytes(chunk);
        reading.report(Cause::new(Cause::UNRECOGNIZED_CHUNK, bytes));
    }
    kind & 0x80 != 0
}
