//! Flows that share the SCTP association of another flow, each with its own stream and Payload Protocol
//! Identifier. Each is a complete [`Peer`]; its own endpoint never opens, and while it runs it uses that of the
//! association.

use talkspurt_proto::body::Bodies;
use talkspurt_proto::endpoint::{Endpoint, Event};
use talkspurt_proto::frame::Frame;
use talkspurt_proto::probe::{Note, Probe, Stamped, Topic};
use talkspurt_proto::sctp::{Delivered, Sending};
use talkspurt_proto::time::{Instant, earlier};

use super::{Parts, Peer};
use crate::transport::Transport;

/// Payload Protocol Identifier of the flow that owns an association: none (RFC 9260 §3.3.1). The n-th other
/// flow uses this value plus n, far from the numbers that IANA assigns sequentially (§15.5), so that Wireshark
/// does not take the messages for another protocol.
const PPIDS: u32 = 0x7473_0000;

/// The flows in the association, except its owner.
#[derive(Debug)]
pub(super) struct Guests {
    guests: Vec<Guest>,
    /// How the owner's messages are sent.
    own: Sending,
    /// Order in which they are asked for messages, 0 being the owner: a flow that got room moves behind the
    /// others, so that a greedy source is not always first.
    order: Vec<usize>,
}

#[derive(Debug)]
struct Guest {
    peer: Peer,
    how: Sending,
}

impl Guest {
    /// The flow's peer with the association's endpoint in place of its own.
    fn with<T>(&mut self, association: &mut Transport, act: impl FnOnce(&mut Peer) -> T) -> T {
        std::mem::swap(&mut self.peer.transport, association);
        let done = act(&mut self.peer);
        std::mem::swap(&mut self.peer.transport, association);
        done
    }
}

impl Guests {
    /// The flow of a message.
    fn of(&mut self, ppid: u32) -> Option<&mut Peer> {
        let number = ppid.checked_sub(PPIDS + 1)?;
        self.guests.get_mut(number as usize).map(|guest| &mut guest.peer)
    }

    pub(super) fn on_event(&mut self, event: Event) {
        for Guest { peer, .. } in &mut self.guests {
            peer.peer_closed |= event == Event::PeerClosed;
            peer.closed |= matches!(event, Event::Closed | Event::Reset | Event::TimedOut);
        }
    }

    /// True if all of them have sent everything.
    pub(super) fn have_closed(&self) -> bool {
        self.guests.iter().all(|guest| guest.peer.closed)
    }

    /// When the first of them is due, by the local clock.
    pub(super) fn next(&self, local: Instant) -> Option<Instant> {
        self.guests.iter().fold(None, |next, guest| earlier(next, guest.peer.next(local)))
    }
}

impl Peer {
    /// Adds one end of another flow to this one's association. Its messages use this stream.
    ///
    /// # Panics
    /// If the transport of one of the two is not SCTP.
    pub fn carry(&mut self, parts: Parts, stream: u16) {
        let start = parts.clock.local(parts.start);
        let (Transport::Sctp(association), mut peer) = (&self.transport, Peer::new(parts)) else {
            panic!("an association is SCTP's");
        };
        let Transport::Sctp(own) = &peer.transport else { panic!("an association is SCTP's") };
        let guests = self.guests.get_or_insert_with(|| {
            Box::new(Guests { guests: Vec::new(), own: association.sending(), order: vec![0] })
        });
        let ppid = PPIDS + 1 + guests.guests.len() as u32;
        let how = Sending { stream, ppid, ..own.sending() };
        // On either side: it sends nothing before its start, even if the association is open.
        peer.opens = Some(start);
        guests.guests.push(Guest { peer, how });
        guests.order.push(guests.guests.len());
    }

    /// The other flows in its association.
    pub fn carried(&self) -> impl Iterator<Item = &Self> {
        self.guests.iter().flat_map(|guests| &guests.guests).map(|guest| &guest.peer)
    }

    /// [`Peer::feed`] for an association of several flows, in turn.
    #[cold]
    pub(super) fn feed_in_turn<P: Probe>(
        &mut self,
        local: Instant,
        bodies: &mut impl Bodies,
        probe: &mut Stamped<'_, P>,
    ) {
        let Some(mut guests) = self.guests.take() else { return };
        let (count, mut at) = (guests.order.len(), 0);
        for _ in 0..count {
            let room = self.transport.send_capacity();
            match guests.order[at] {
                // Without guests it is fed like any peer; SCTP messages never bypass the transport.
                0 => {
                    let passed = self.feed(local, bodies, probe);
                    debug_assert_eq!(passed, None);
                }
                number => {
                    let guest = &mut guests.guests[number - 1];
                    let peer = guest.peer.number;
                    let probe = &mut Stamped { probe: &mut *probe.probe, now: probe.now, peer };
                    send_as(&mut self.transport, guest.how);
                    guest.with(&mut self.transport, |peer| peer.speak(local, bodies, probe));
                    send_as(&mut self.transport, guests.own);
                }
            }
            if self.transport.send_capacity() < room {
                guests.order[at..].rotate_left(1);
            } else {
                at += 1;
            }
        }
        self.guests = Some(guests);
    }

    /// Sends what there is room for in another flow's association, and parts when everything is sent.
    fn speak<P: Probe>(
        &mut self,
        local: Instant,
        bodies: &mut impl Bodies,
        probe: &mut Stamped<'_, P>,
    ) {
        self.opens = self.opens.filter(|at| *at > local);
        self.look_for_room();
        self.feed(local, bodies, probe);
        if self.has_said_all(local) && !self.closed && self.part(local, probe) {
            self.closed = true;
        }
    }

    /// A message was delivered to one of the flows in the association.
    #[inline(never)]
    pub(super) fn on_message<P: Probe>(
        &mut self,
        local: Instant,
        Delivered { ppid, waited }: Delivered,
        frame: &mut Frame,
        probe: &mut Stamped<'_, P>,
    ) {
        let mut guests = self.guests.take();
        let peer = guests.as_mut().and_then(|guests| guests.of(ppid));
        let peer = peer.unwrap_or(self);
        let probe = &mut Stamped { probe: &mut *probe.probe, now: probe.now, peer: peer.number };
        if probe.wants(Topic::Order) && !matches!(frame, Frame::Rtcp(_)) {
            probe.record(local, peer.place(), &Note::InOrder { waited });
        }
        peer.incoming.deliver(local, &peer.clock, frame, &mut peer.session, probe);
        let is_news = peer.incoming.is_controlled && peer.has_news(local);
        self.guests = guests;
        self.unfed |= is_news;
    }
}

fn send_as(transport: &mut Transport, how: Sending) {
    if let Transport::Sctp(association) = transport {
        association.send_as(how);
    }
}
