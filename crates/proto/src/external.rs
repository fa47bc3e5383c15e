//! External protocol stacks: libraries that exchange UDP datagrams, which this workspace does not parse.
//!
//! A program describes a stack by a [`Kind`] and [registers](register) it; scenarios then name it. Its
//! datagrams state what they carry, so that they are counted like those of the transports here. Dispatch is
//! virtual; its cost is small compared with such a stack's work for a packet.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::endpoint::{Arrival, Endpoint, Input, Output};
use crate::frame::{self, Frame};
use crate::gauge::{EndpointNote, EndpointProbe, Messages, RxError, StackNote, Topic};
use crate::octets::{Ends, Tail, WireError};
use crate::packet::{Damage, IpVersion, Quoted};
use crate::time::Instant;
use crate::transport::{Layers, PacketFormat, Setup, TransportConfig};
use crate::udp::wire as udp;
use crate::units::Size;
use crate::validate::{ConfigError, Validate};

/// What a datagram is sent for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Class {
    /// It carries messages for the first time.
    #[default]
    Data,
    /// It carries messages again.
    Retransmission,
    /// It carries no messages: acknowledgements, set-up, feedback.
    Control,
}

/// A datagram of a stack. Its bytes are those of `header` and `content`, in this order; a stack whose library
/// makes whole datagrams leaves the former empty.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Datagram {
    /// The stack's own header.
    pub header: Bytes,
    /// The rest: a message, or [`Frame::Data`].
    pub content: Frame,
    /// What it is sent for.
    pub class: Class,
    /// Bytes of media headers in it ([`Frame::lengths`] of the messages).
    pub media: u32,
    /// Bytes of payload in it. All other bytes are the transport's; of a datagram that carries nothing new all
    /// are, so that payload is counted once.
    pub payload: u32,
}

impl Datagram {
    /// A message, sent for the first time, behind a header.
    #[must_use]
    pub fn new(header: impl Into<Bytes>, message: Frame) -> Self {
        let (media, payload) = message.lengths();
        // Reports have no payload.
        let class = if payload > 0 { Class::Data } else { Class::Control };
        let (media, payload) = (media as u32, payload as u32);
        Self { header: header.into(), content: message, class, media, payload }
    }

    /// A header alone.
    #[must_use]
    pub fn control(header: impl Into<Bytes>) -> Self {
        Self { header: header.into(), class: Class::Control, ..Self::default() }
    }
}

impl From<Frame> for Datagram {
    fn from(message: Frame) -> Self {
        Self::new(Bytes::new(), message)
    }
}

impl PacketFormat for Datagram {
    const PROTOCOL: u8 = udp::PROTOCOL;

    fn layers(&self) -> Layers {
        let total = (udp::HEADER + self.header.len() + self.content.wire_bytes()) as u32;
        let (media, payload) = match self.class {
            Class::Data => (self.media, self.payload),
            Class::Retransmission | Class::Control => (0, 0),
        };
        let transport =
            total.checked_sub(media + payload).expect("a datagram holds what it states");
        Layers { transport, media, payload }
    }
    fn quoted(&self) -> Quoted {
        udp::quoted(self.layers().total())
    }
    fn emit(&self, ends: &Ends, out: &mut Vec<u8>) -> Result<Tail, WireError> {
        let payload = |out: &mut Vec<u8>| {
            out.extend_from_slice(&self.header);
            frame::emit(&self.content, out);
            Ok(())
        };
        udp::emit(ends, payload, out).map(|()| Tail::default())
    }
}

/// A stack with the interface of an [`Endpoint`].
///
/// Two rules keep runs reproducible: time comes only from `now`, random numbers only from [`Setup::rng`].
pub trait Stack: fmt::Debug + Send {
    /// Processes an input at `now`. Messages ([`Input::Frame`]) are at most [`Kind::max_message`] long.
    fn handle(&mut self, now: Instant, input: Input<Datagram>);
    /// Returns the next output; called until it returns [`Output::Idle`].
    fn poll(&mut self, now: Instant, note: &mut dyn FnMut(Note)) -> Output<Datagram>;
    /// Bytes of messages it accepts now.
    fn send_capacity(&self) -> usize;
    /// Messages that it has accepted and that it may still deliver: waiting, or sent and not acknowledged.
    /// `None` if it does not know what became of a message that it sent.
    fn open_messages(&self) -> Option<u64> {
        None
    }
}

/// What a stack reports of itself.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Note {
    /// An observation that all transports share.
    Endpoint(EndpointNote),
    /// One of its own quantities has this value now. It is in the table of gauges by this name.
    Gauge(&'static str, f64),
    /// It discarded this many messages that it had accepted: they will not be sent.
    Discarded(u64),
    /// It knows that this many messages were lost in the network for good.
    Lost(u64),
}

/// Builds the stack of one end, for IP packets of at most this size.
type Build = dyn Fn(Setup<'_>, Size) -> Box<dyn Stack> + Send + Sync;

/// What is known of a stack before it runs.
pub struct Kind {
    /// Its name in scenarios and tables.
    pub name: &'static str,
    /// Its version, also in tables and in digests; empty without one.
    pub version: &'static str,
    /// Bytes it adds in front of a media packet, including UDP's header.
    pub header_bytes: u32,
    /// The longest IP packet that it sends, whatever the links carry.
    pub mtu: Size,
    /// The longest message that it takes, in bytes. Longer ones are discarded before they reach it.
    pub max_message: usize,
    /// True if a listener has no connection until the other side opens it.
    pub has_handshake: bool,
    /// True if [`Stack::send_capacity`] bounds what is in the network, as bulk data needs.
    pub has_window: bool,
    /// Builds the stack of one end.
    pub build: Box<Build>,
}

impl fmt::Debug for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, version, .. } = self;
        f.debug_struct("Kind").field("name", name).field("version", version).finish_non_exhaustive()
    }
}

static REGISTERED: Mutex<BTreeMap<&'static str, Arc<Kind>>> = Mutex::new(BTreeMap::new());

/// Lets scenarios name a stack: `transport = { kind = "external", stack = "NAME" }`. A later stack of the same
/// name replaces it for scenarios loaded after that.
pub fn register(kind: Kind) {
    let mut registered = REGISTERED.lock().unwrap_or_else(PoisonError::into_inner);
    registered.insert(kind.name, Arc::new(kind));
}

/// A transport provided by a Rust program.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(from = "Named", into = "Named")]
pub struct Config {
    /// The name that a scenario gives.
    stack: String,
    /// `None` if no stack of this name is registered.
    kind: Option<Arc<Kind>>,
    /// Of the first link.
    mtu: Size,
}

impl Config {
    /// A stack that need not be registered.
    #[must_use]
    pub fn new(kind: Kind) -> Self {
        Self { stack: kind.name.to_owned(), mtu: kind.mtu, kind: Some(Arc::new(kind)) }
    }

    fn named(stack: String) -> Self {
        let registered = REGISTERED.lock().unwrap_or_else(PoisonError::into_inner);
        let kind = registered.get(stack.as_str()).cloned();
        let mtu = kind.as_ref().map_or(Size::from_bytes(0), |kind| kind.mtu);
        Self { stack, kind, mtu }
    }

    /// What is known of it; `None` if no stack of this name is registered, which is an error of the scenario.
    #[must_use]
    pub fn kind(&self) -> Option<&Kind> {
        self.kind.as_deref()
    }
}

impl PartialEq for Config {
    fn eq(&self, other: &Self) -> bool {
        let same = match (&self.kind, &other.kind) {
            (Some(a), Some(b)) => Arc::ptr_eq(a, b),
            (a, b) => a.is_none() && b.is_none(),
        };
        same && self.stack == other.stack
    }
}

/// The form of a [`Config`] in scenarios.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Named {
    /// The name under which the program registered the stack.
    stack: String,
}

impl From<Config> for Named {
    fn from(config: Config) -> Self {
        Self { stack: config.stack }
    }
}

impl From<Named> for Config {
    fn from(named: Named) -> Self {
        Self::named(named.stack)
    }
}

impl Validate for Config {
    fn errors(&self) -> Vec<ConfigError> {
        let unknown =
            ConfigError::new("stack", "no stack of this name is registered in this program")
                .hint("a Rust program registers stacks, with external::register");
        self.kind.is_none().then_some(unknown).into_iter().collect()
    }
}

impl TransportConfig for Config {
    type Endpoint = External;

    fn build(&self, setup: Setup<'_>) -> External {
        let kind = Arc::clone(self.kind.as_ref().expect("checked with the scenario"));
        let stack = (kind.build)(setup, self.mtu);
        External { stack, kind, is_named: false, messages: Messages::default(), has_news: false }
    }
    fn name(&self) -> String {
        match self.kind() {
            Some(kind) if !kind.version.is_empty() => format!("{} {}", kind.name, kind.version),
            _ => self.stack.clone(),
        }
    }
    fn protocol(&self) -> &'static str {
        "UDP"
    }
    fn header_bytes(&self) -> u32 {
        self.kind().map_or(0, |kind| kind.header_bytes)
    }
    fn unit_bytes(&self) -> u32 {
        self.kind().map_or(1000, |kind| kind.max_message.min(1000) as u32)
    }
    fn has_window(&self) -> bool {
        self.kind().is_none_or(|kind| kind.has_window)
    }
    fn has_handshake(&self) -> bool {
        self.kind().is_some_and(|kind| kind.has_handshake)
    }
    fn fit(&mut self, mtu: Size, _: IpVersion) {
        self.mtu = self.mtu.min(mtu);
    }
}

/// One end of a flow over such a stack.
#[derive(Debug)]
pub struct External {
    stack: Box<dyn Stack>,
    kind: Arc<Kind>,
    /// Whether its name and version have been noted.
    is_named: bool,
    messages: Messages,
    /// Whether they have changed since they were noted.
    has_news: bool,
}

impl Endpoint for External {
    type Packet = Datagram;

    fn handle<P: EndpointProbe>(&mut self, now: Instant, input: Input<Datagram>, probe: &mut P) {
        match input {
            Input::Packet { arrival, mut packet } => {
                return self.receive(now, arrival, &mut packet, probe);
            }
            Input::Frame(_) => {
                self.messages.accepted += 1;
                self.has_news = true;
            }
            _ => {}
        }
        self.stack.handle(now, input);
    }

    fn receive<P: EndpointProbe>(
        &mut self,
        now: Instant,
        arrival: Arrival,
        packet: &mut Datagram,
        probe: &mut P,
    ) {
        // RFC 768: the checksum covers the whole datagram, so a damaged one is not delivered.
        if arrival.damage == Damage::Payload {
            return probe.note(now, EndpointNote::RxError(RxError::Checksum));
        }
        self.stack.handle(now, Input::Packet { arrival, packet: std::mem::take(packet) });
    }

    fn poll<P: EndpointProbe>(&mut self, now: Instant, probe: &mut P) -> Output<Datagram> {
        let (gauges, events) = (probe.observes(Topic::Gauge), probe.observes(Topic::Event));
        if events && !std::mem::replace(&mut self.is_named, true) {
            let Kind { name, version, .. } = *self.kind;
            probe.note(now, EndpointNote::Stack(StackNote::Is { name, version }));
        }
        let Self { stack, messages, has_news, .. } = self;
        let output = stack.poll(now, &mut |note| match note {
            Note::Endpoint(note @ EndpointNote::Gauge { .. }) if gauges => probe.note(now, note),
            Note::Endpoint(note @ EndpointNote::RxError(_)) if events => probe.note(now, note),
            Note::Gauge(name, value) if gauges => {
                probe.note(now, EndpointNote::Stack(StackNote::Gauge { name, value }));
            }
            Note::Discarded(more) => {
                (messages.discarded, *has_news) = (messages.discarded + more, true)
            }
            Note::Lost(more) => (messages.lost, *has_news) = (messages.lost + more, true),
            Note::Endpoint(_) | Note::Gauge(..) => {}
        });
        match output {
            Output::Deliver(_) => (messages.delivered, *has_news) = (messages.delivered + 1, true),
            Output::Idle { .. } if events => {
                let open = stack.open_messages();
                if std::mem::take(has_news) || messages.open != open {
                    messages.open = open;
                    probe.note(now, EndpointNote::Stack(StackNote::Messages(*messages)));
                }
            }
            _ => {}
        }
        output
    }

    fn send_capacity(&self) -> usize {
        self.stack.send_capacity().min(self.kind.max_message)
    }
    fn max_message(&self) -> usize {
        self.kind.max_message
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::Payload;

    #[test]
    fn payload_is_counted_once() {
        let datagram = |class| Datagram {
            header: Bytes::from_static(&[0; 8]),
            content: Frame::Data(Payload::Real(vec![0; 172].into())),
            class,
            media: 12,
            payload: 160,
        };
        let layers = |class| datagram(class).layers();
        assert_eq!(layers(Class::Data), Layers { transport: 16, media: 12, payload: 160 });
        let all = Layers { transport: 188, media: 0, payload: 0 };
        assert_eq!([Class::Retransmission, Class::Control].map(layers), [all; 2]);
    }
}
