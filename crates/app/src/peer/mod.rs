//! One end of a flow: source, send queue and transport for sending; transport, media and playout for receiving.
//! Simulated and real time drive it through the same interface.
//!
//! Times at the interface are true; inside, everything uses the node's own [`Clock`].

#[cfg(test)]
mod adaptive_tests;
#[cfg(test)]
mod bulk_tests;
mod guests;
mod incoming;
#[cfg(test)]
mod ladder_tests;
mod listener;
mod noting;
mod outcome;
mod outgoing;
mod packets;
mod parting;
#[cfg(test)]
mod parting_tests;
mod parts;
#[cfg(test)]
mod passing_tests;
mod session;
mod sizing;

use guests::Guests;
use incoming::Incoming;
pub use incoming::{MediaSink, Sink};
pub use listener::{Captured, Listener};
use outgoing::{Link, Outgoing};
pub use parts::Parts;
use session::{Member, Session};
pub use session::{SharedControl, SharedExchange};
pub use sizing::Sizing;
use talkspurt_proto::body::{Bodies, Body};
use talkspurt_proto::endpoint::{Arrival, Endpoint, Event, Input, Output, PathNews, Transmit};
use talkspurt_proto::frame::Frame;
use talkspurt_proto::packet::{BodyId, Damage, Ecn, IpVersion, PathId};
use talkspurt_proto::prefetch::prefetch;
use talkspurt_proto::probe::{Note, Place, Probe, Stamped, Topic};
use talkspurt_proto::rng::Rng;
use talkspurt_proto::rtcp;
use talkspurt_proto::time::{Duration, Instant, earlier};

use crate::clock::Clock;
use crate::playout;
use crate::transport::{self, Side, Transport};

/// A peer's request to its driver.
#[derive(Debug)]
#[repr(u8)]
pub enum Action {
    /// Send a packet.
    Send {
        /// On which path.
        path: PathId,
        /// ECN field.
        ecn: Ecn,
        /// IP packet length in bytes.
        ip_bytes: u32,
        /// Handle of its parsed form.
        body: BodyId,
    },
    /// Nothing now; wake it at this true time.
    Idle {
        /// When.
        until: Option<Instant>,
    },
}

/// One end of a flow. Fields are ordered by use: those needed for every packet of a call lie on as few cache
/// lines as possible; otherwise five hundred calls do not fit the L2 cache.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct Peer {
    clock: Clock,
    /// When the opening side opens, by the local clock; `None` once done.
    opens: Option<Instant>,
    /// The transport's next deadline, by the local clock.
    deadline: Option<Instant>,
    /// Its number in [`Place::Peer`].
    number: u32,
    /// Length of a DCCP Request as counted by ns-2.
    opening_bytes: u32,
    version: IpVersion,
    dscp: u8,
    sizing: Sizing,
    /// Must be true before closing: a listener has no connection to finish yet.
    connected: bool,
    closed: bool,
    peer_closed: bool,
    /// Everything is sent, including BYE; the transport may not have taken it yet.
    parting: bool,
    /// There was input since source and reports were last processed. Unused by a peer that sends neither.
    unfed: bool,
    /// Boxed, like the media state: there are more data peers than calls.
    session: Option<Box<Session>>,
    /// The latest report, while the transport has no room for it.
    report: Option<Box<Frame>>,
    outgoing: Option<Outgoing>,
    transport: Transport,
    incoming: Incoming,
    /// When a BYE without room is given up, by the local clock; past without one.
    parts_by: Instant,
    /// Until when the other side may send data without media, by the local clock; past if it sends none.
    others_until: Instant,
    /// Other flows in its association.
    guests: Option<Box<Guests>>,
    #[cfg(test)]
    force_slow_path: bool,
}

impl Peer {
    /// A peer before its start.
    #[must_use]
    pub fn new(parts: Parts) -> Self {
        let start = parts.clock.local(parts.start);
        let rng = |what: &str| Rng::new(parts.seed, &format!("{}/{what}", parts.name));
        let rungs = parts.source.as_ref().map_or_else(Vec::new, |(source, _)| source.rungs());
        let transport = parts.transport.build(transport::Setup {
            side: parts.side,
            version: parts.version,
            addresses: &parts.addresses,
            ladder: &rungs,
            any_rate: parts.source.as_ref().is_some_and(|(source, _)| source.any_rate()),
            rng: rng("transport"),
        });
        let outgoing = parts
            .source
            .as_ref()
            .map(|(config, material)| Outgoing::new(config, material, &parts, rng("source")));
        let session = parts.session(outgoing.as_ref(), start, rng("rtcp"));
        Self {
            number: parts.number,
            clock: parts.clock,
            version: parts.version,
            dscp: parts.dscp,
            sizing: parts.sizing,
            opening_bytes: sizing::opening_bytes(&parts.transport),
            transport,
            deadline: None,
            opens: (parts.side == Side::Opens).then_some(start),
            connected: parts.side == Side::Opens || !parts.transport.has_handshake(),
            closed: false,
            peer_closed: false,
            parting: false,
            parts_by: Instant::ZERO,
            others_until: parts.others_until.map_or(Instant::ZERO, |at| parts.clock.local(at)),
            unfed: outgoing.is_some() || session.is_some(),
            outgoing,
            incoming: Incoming::new(&parts),
            session,
            report: None,
            guests: None,
            #[cfg(test)]
            force_slow_path: false,
        }
    }

    /// Gives it the source and the sink that both sides agreed on while it opened: it had none until then.
    /// `parts` are those that it was made of, apart from these.
    #[cold]
    pub fn converse(&mut self, parts: &Parts) {
        let rng = |what: &str| Rng::new(parts.seed, &format!("{}/{what}", parts.name));
        let source = parts.source.as_ref();
        if let (Transport::Dccp(dccp), Some((source, _))) = (&mut self.transport, source) {
            dccp.set_source_rates(&source.rungs(), source.any_rate());
        }
        self.outgoing =
            source.map(|(config, material)| Outgoing::new(config, material, parts, rng("source")));
        self.incoming = Incoming::new(parts);
        let start = parts.clock.local(parts.start);
        self.session = parts.session(self.outgoing.as_ref(), start, rng("rtcp"));
        self.unfed = true;
    }

    /// Requests its own cache lines, before its turn comes.
    #[inline]
    pub fn prefetch(&self) {
        prefetch(self, usize::MAX);
    }

    /// Requests what it needs to send; after [`Peer::prefetch`], as each of the following.
    #[inline]
    pub fn prefetch_source(&self) {
        if let Some(outgoing) = &self.outgoing {
            outgoing.prefetch();
        }
    }

    /// Requests what it needs to receive media.
    #[inline]
    pub fn prefetch_media(&self) {
        self.incoming.prefetch();
    }

    /// Requests the state of its jitter buffer; after [`Peer::prefetch_media`].
    #[inline]
    pub fn prefetch_playout(&self) {
        self.incoming.prefetch_playout();
    }

    /// Requests the frames in its jitter buffer; after [`Peer::prefetch_playout`].
    #[inline]
    pub fn prefetch_frames(&self) {
        self.incoming.prefetch_frames();
    }

    /// A packet arrived at `now`, true time, on a path and with this ECN field; call [`Peer::poll`] until idle,
    /// unless this returns false. The body must not be used afterwards.
    #[inline(always)]
    pub fn receive<P: Probe>(
        &mut self,
        now: Instant,
        (path, ecn): (PathId, Ecn),
        body: &mut Body,
        probe: &mut P,
    ) -> bool {
        let local = self.clock.local(now);
        let stamped = &mut Stamped { probe, now, peer: self.number };
        // Media that would come out unchanged is processed in place: moving it in and out again right after it
        // was written takes as long as the rest of its arrival.
        if let Body::Udp(frame @ Frame::Rtp(_)) = body
            && self.can_bypass()
            && self.transport.can_bypass()
            && self.is_quiet(local)
        {
            self.incoming.deliver(local, &self.clock, frame, &mut self.session, stamped);
            return false;
        }
        if self.incoming.is_controlled {
            self.note_ecn(body, ecn);
        }
        let arrival = Arrival { path, ecn, damage: Damage::None };
        self.transport.receive(local, arrival, body, stamped);
        self.look_for_room();
        true
    }

    /// [`Peer::receive`] for a packet that may be damaged, as on a real path; call [`Peer::poll`] until idle.
    pub fn receive_from_wire<P: Probe>(
        &mut self,
        now: Instant,
        arrival: Arrival,
        body: &mut Body,
        probe: &mut P,
    ) {
        let local = self.clock.local(now);
        if self.incoming.is_controlled {
            self.note_ecn(body, arrival.ecn);
        }
        self.transport.receive(
            local,
            arrival,
            body,
            &mut Stamped { probe, now, peer: self.number },
        );
        self.look_for_room();
    }

    /// Transport of the flow.
    pub fn transport(&mut self) -> &mut Transport {
        &mut self.transport
    }

    /// True if nothing of its own is due before the arrival. With a datagram transport no report waits for
    /// room, and a listener does not part.
    #[inline(always)]
    fn is_quiet(&self, local: Instant) -> bool {
        debug_assert!(self.report.is_none(), "what there is room for does not wait");
        let later = |at: Option<Instant>| at.is_none_or(|at| at > local);
        // With a pacer, what the outgoing side holds is no exception.
        !self.incoming.is_controlled
            && self.outgoing.as_ref().is_none_or(|outgoing| outgoing.is_quiet(local))
            && self.session.as_ref().is_none_or(|session| later(session.rtcp.next()))
    }

    /// The controller of its media has decided something that its source does not know, or one side requests
    /// repair from the other.
    #[cold]
    fn has_news(&self, local: Instant) -> bool {
        Session::control_of(&self.session).is_some_and(|it| it.control.has_news(it.number))
            || self.session.as_ref().is_some_and(|session| session.is_asked())
            || self.incoming.requests_due().is_some_and(|at| at <= local)
    }

    /// A packet of its session arrived with this ECN field.
    #[cold]
    fn note_ecn(&self, body: &Body, ecn: Ecn) {
        if let Some(mut it) = Session::control_of(&self.session) {
            it.control.on_packet(matches!(body, Body::Udp(_)), ecn);
        }
    }

    /// The ECN field of a packet to send.
    #[cold]
    fn ecn_of(&self, packet: &Body, ecn: Ecn) -> Ecn {
        match (packet, Session::control_of(&self.session)) {
            (Body::Udp(Frame::Rtp(_)), Some(it)) => it.control.ecn,
            _ => ecn,
        }
    }

    /// Runs the timers of its session's control, and gives the source a new target.
    #[cold]
    fn wake_control(&mut self, local: Instant) {
        let Some(mut it) = Session::control_of(&self.session) else { return };
        it.control.wake(local);
        let number = it.number;
        if let Some(outgoing) = &mut self.outgoing
            && let Some(target) = it.control.take_target(local, number)
        {
            outgoing.set_target_rate(target, false);
        }
    }

    /// Sends feedback that is due.
    #[cold]
    fn send_feedback<P: Probe>(&mut self, local: Instant, probe: &mut Stamped<'_, P>) {
        let Some(session) = &mut self.session else { return };
        // Requests wait until there is room.
        while self.incoming.requests_due().is_some_and(|at| at <= local) {
            let (rtt, room) = (session.rtt(), self.transport.send_capacity());
            let requests = self.incoming.packets().map(|it| it.requests(local, rtt, room));
            let Some(requests) = requests.filter(|requests| !requests.is_empty()) else { break };
            let compound = session.rtcp.feedback(requests);
            if let Some(frame) = outgoing::control(compound, self.incoming.stream) {
                self.transport.handle(local, Input::Frame(frame), probe);
            }
        }
        let Some(mut it) = session.control.as_ref().map(Member::lock) else { return };
        while let Some(compound) =
            it.control.feedback(local, self.transport.send_capacity(), &mut session.rtcp)
        {
            if let Some(frame) = outgoing::control(compound, self.incoming.stream) {
                self.transport.handle(local, Input::Frame(frame), probe);
            }
        }
    }

    /// When its session's control is due, or its packets may leave.
    #[cold]
    fn next_of_control(&self, local: Instant) -> Option<Instant> {
        // Those that wait for room leave at the transport's word.
        let requests = self.incoming.requests_due().filter(|at| *at > local);
        let Some(it) = Session::control_of(&self.session) else { return requests };
        let is_open = !self.closed && !self.parting;
        let paced = self.outgoing.as_ref().and_then(|own| own.paced(local, &it, is_open));
        earlier(requests, earlier(it.control.next(), paced))
    }

    /// Whether the transport may be bypassed: always, except in tests of the bypass.
    #[inline(always)]
    fn can_bypass(&self) -> bool {
        #[cfg(test)]
        return !self.force_slow_path;
        #[cfg(not(test))]
        true
    }

    /// The requested wake-up time, or any other, has come; call [`Peer::poll`] until idle.
    #[inline]
    pub fn wake<P: Probe>(&mut self, now: Instant, probe: &mut P) {
        let local = self.clock.local(now);
        let input = if self.opens.is_some_and(|at| at <= local) {
            self.opens = None;
            Input::Open
        } else if self.deadline.is_some_and(|at| at <= local) {
            Input::Timeout
        } else {
            self.unfed = true;
            return;
        };
        self.take_in(local, input, now, probe);
    }

    #[inline(always)]
    fn take_in<P: Probe>(
        &mut self,
        local: Instant,
        input: Input<Body>,
        now: Instant,
        probe: &mut P,
    ) {
        self.transport.handle(local, input, &mut Stamped { probe, now, peer: self.number });
        self.look_for_room();
    }

    /// The transport may have more room than before.
    #[inline(always)]
    fn look_for_room(&mut self) {
        if let Some(outgoing) = &mut self.outgoing {
            outgoing.look_for_room();
            self.unfed = true;
        } else {
            self.unfed = self.session.is_some() || self.guests.is_some();
        }
    }

    /// The first link of a path failed at `now`, true time, or recovered; call [`Peer::poll`] until idle.
    #[cold]
    pub fn hear_of_path<P: Probe>(
        &mut self,
        now: Instant,
        path: PathId,
        news: PathNews,
        probe: &mut P,
    ) {
        let local = self.clock.local(now);
        let stamped = &mut Stamped { probe, now, peer: self.number };
        self.transport.handle(local, Input::Path(path, news), stamped);
        self.unfed = true;
    }

    /// The next action; call until it returns [`Action::Idle`]. The parsed form of a packet to send is put into
    /// `bodies`.
    #[inline]
    pub fn poll<P: Probe>(
        &mut self,
        now: Instant,
        bodies: &mut impl Bodies,
        probe: &mut P,
    ) -> Action {
        let local = self.clock.local(now);
        let stamped = &mut Stamped { probe, now, peer: self.number };
        loop {
            if self.unfed || self.report.is_some() {
                self.unfed = false;
                // The same for sending as in `receive`.
                if let Some((ip_bytes, body)) = self.feed(local, bodies, stamped) {
                    return Action::Send { path: PathId(0), ecn: Ecn::NotEct, ip_bytes, body };
                }
            }
            let mut output = self.transport.poll(local, stamped);
            let ip_bytes = match &output {
                Output::Transmit(Transmit { packet, .. }) => self.ip_bytes(packet),
                _ => 0,
            };
            match output {
                Output::Transmit(Transmit { path, ecn, packet }) => {
                    let ecn =
                        if self.incoming.is_controlled { self.ecn_of(&packet, ecn) } else { ecn };
                    return Action::Send { path, ecn, ip_bytes, body: bodies.put(|| packet) };
                }
                // Processed in place: moving a value just written stalls.
                Output::Deliver(ref mut frame) => match &self.transport {
                    Transport::Sctp(endpoint) => {
                        let delivered = endpoint.delivered();
                        self.on_message(local, delivered, frame, stamped);
                    }
                    _ => {
                        self.incoming.deliver(
                            local,
                            &self.clock,
                            frame,
                            &mut self.session,
                            stamped,
                        );
                        self.unfed |= self.incoming.is_controlled && self.has_news(local);
                    }
                },
                Output::Event(event) => self.on_event(local, event, stamped),
                Output::Idle { until } => {
                    self.deadline = until;
                    if self.close_if_done(local, stamped) {
                        continue;
                    }
                    return Action::Idle { until: self.next_wake(local, until) };
                }
            }
        }
    }

    /// The packets that were played, for rendering, by the step of the media clock at which they begin; `None`
    /// for gaps.
    #[must_use]
    pub fn played(&self) -> &[Option<playout::Received>] {
        self.incoming.played()
    }

    /// What was played, in order; `None` if every packet was played at its place in the stream.
    #[must_use]
    pub fn timeline(&self) -> Option<&[playout::Stretch]> {
        self.incoming.timeline()
    }

    /// Decides on all media that waits for its playout; call it once, after the end of the run.
    pub fn finish<P: Probe>(&mut self, now: Instant, probe: &mut P) {
        let (local, peer) = (self.clock.local(now), self.number);
        self.incoming.finish(local, &self.clock, &mut Stamped { probe, now, peer });
    }

    /// Frames played by encoding of the other side's source, best first, without keep-alive packets.
    #[must_use]
    pub fn heard(&self) -> Vec<u64> {
        self.incoming.heard()
    }

    /// Media time up to which its source has generated units.
    #[must_use]
    pub fn spoken(&self) -> Duration {
        self.outgoing.as_ref().map_or(Duration::ZERO, Outgoing::spoken)
    }

    /// Frames of repaired video that it could decode.
    #[must_use]
    pub fn decoded(&self) -> u64 {
        self.incoming.decoded()
    }

    /// Units generated by its source so far.
    #[must_use]
    pub fn generated(&self) -> u32 {
        self.outgoing.as_ref().map_or(0, |outgoing| outgoing.generated)
    }

    /// Its place in notes.
    #[inline(always)]
    #[must_use]
    pub const fn place(&self) -> Place {
        Place::Peer(self.number)
    }

    #[inline(always)]
    fn ip_bytes(&self, body: &Body) -> u32 {
        self.sizing.ip_bytes(self.version, body, self.opening_bytes)
    }

    /// DSCP and IP version of its packets.
    #[inline]
    #[must_use]
    pub fn header(&self) -> (u8, IpVersion) {
        (self.dscp, self.version)
    }

    /// Processes source and reports; returns length and body of a packet to send at once.
    #[inline(never)]
    fn feed<P: Probe>(
        &mut self,
        local: Instant,
        bodies: &mut impl Bodies,
        probe: &mut Stamped<'_, P>,
    ) -> Option<(u32, BodyId)> {
        if self.opens.is_some() {
            return None;
        }
        if self.incoming.is_controlled {
            self.wake_control(local);
        }
        if let (Some(session), Some(outgoing)) = (&mut self.session, &mut self.outgoing)
            && let Some(loss) = session.rtcp.take_expected_loss()
        {
            outgoing.set_expected_loss(loss);
        }
        if self.guests.is_some() {
            self.feed_in_turn(local, bodies, probe);
            return None;
        }
        if self.report.is_some() {
            self.send_report(local, probe);
        }
        let passes = self.can_bypass();
        if let Some(outgoing) = &mut self.outgoing {
            if outgoing.slowly {
                let session = self.session.as_mut().filter(|session| session.asked.is_some());
                let repair = session.map(|session| (session.rtt(), session.take_asked()));
                let (rtt, asked) = repair.unwrap_or_default();
                // Nothing leaves after BYE.
                let is_open = !self.closed && !self.parting;
                let asked = asked.filter(|_| is_open);
                let control = Session::control_of(&self.session);
                let link = &mut Link { control, rtt, asked, is_open };
                outgoing.feed_slowly(local, &self.clock, &mut self.transport, link, probe);
            } else if let Some((media, payload, body)) =
                outgoing.feed(local, &self.clock, (&mut self.transport, passes), bodies, probe)
            {
                self.unfed = self.session.is_some();
                return Some((self.sizing.datagram_bytes(self.version, media, payload), body));
            }
        }
        if self.incoming.is_controlled && !self.closed {
            self.send_feedback(local, probe);
        }
        if let Some(session) = &mut self.session
            && session.rtcp.next().is_some_and(|at| at <= local)
            && !self.closed
            && !self.parting
        {
            let sender = self.outgoing.as_ref().and_then(Outgoing::rtp);
            let compound = session.rtcp.report(local, sender, self.incoming.rtp());
            self.report_soon(local, compound, probe);
        }
        None
    }

    /// A report leaves as soon as there is room: at once, or before any media once congestion control permits.
    /// A new report replaces one that still waits.
    fn report_soon<P: Probe>(
        &mut self,
        local: Instant,
        compound: Option<rtcp::Compound>,
        probe: &mut Stamped<'_, P>,
    ) {
        let Some(compound) = compound else { return };
        self.report = outgoing::control(compound, self.incoming.stream).map(Box::new);
        self.send_report(local, probe);
    }

    fn send_report<P: Probe>(&mut self, local: Instant, probe: &mut Stamped<'_, P>) {
        let Some(report) = &self.report else { return };
        if report.wire_bytes() <= self.transport.send_capacity()
            && let Some(frame) = self.report.take()
        {
            self.transport.handle(local, Input::Frame(*frame), probe);
        }
    }

    fn on_event<P: Probe>(&mut self, local: Instant, event: Event, probe: &mut Stamped<'_, P>) {
        match event {
            Event::Writable => return self.look_for_room(),
            Event::TargetRate(rate) => {
                // Recorded when a frame is made at it.
                if let Some(outgoing) = &mut self.outgoing {
                    outgoing.set_target_rate(rate, true);
                }
                return;
            }
            Event::PeerClosed => self.peer_closed = true,
            Event::Closed | Event::Reset | Event::TimedOut => self.closed = true,
            Event::Connected | Event::Restarted => self.connected = true,
        }
        if let Some(guests) = &mut self.guests {
            guests.on_event(event);
        }
        if probe.wants(Topic::Event) {
            probe.record(local, self.place(), &Note::Event(event));
        }
    }

    #[inline(always)]
    fn next_wake(&self, local: Instant, deadline: Option<Instant>) -> Option<Instant> {
        let mut next = earlier(deadline, self.next(local));
        if let Some(guests) = &self.guests {
            next = earlier(next, guests.next(local));
        }
        next.map(|local| self.clock.truth(local))
    }

    /// When source or reports are due, by the local clock.
    #[inline(always)]
    fn next(&self, local: Instant) -> Option<Instant> {
        let source = self.outgoing.as_ref().and_then(|outgoing| outgoing.due(local));
        let mut next = None;
        if let Some(opens) = self.opens {
            next = earlier(next, Some(opens));
        } else {
            next = earlier(next, source);
            if let Some(session) = self.session.as_ref().filter(|_| !self.closed && !self.parting) {
                next = earlier(next, session.rtcp.next());
            }
            if self.incoming.is_controlled && !self.closed {
                next = earlier(next, self.next_of_control(local));
            }
        }
        if self.parting && !self.closed {
            next = earlier(next, self.leaves_at(local));
        }
        next
    }
}

// Fields needed for each packet of a call: four cache lines for sending and four for receiving.
#[cfg(all(target_pointer_width = "64", not(test)))]
const _: () = {
    use std::mem::offset_of;
    assert!(offset_of!(Peer, session) == 64 && offset_of!(Peer, outgoing) + 32 <= 128);
    assert!(offset_of!(Peer, transport) % 64 < 48 && size_of::<Peer>() <= 384);
};
