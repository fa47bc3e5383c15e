//! Links with lazy service against a simulator with two events per hop, written here from the
//! description alone: the same notes at every link, including ties; and settling links at
//! arbitrary instants changes nothing.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};

use proptest::prelude::*;
use talkspurt_proto::probe::{DropReason, Note, Place};
use talkspurt_proto::rng::Rng;
use talkspurt_proto::time::Duration;
use talkspurt_scenario::Point;
use talkspurt_scenario::model::{LinkState, Queue};

use crate::support::{self, Look, flow, link, scenario};

/// Sending peer and number: which packet.
type Id = (u32, u32);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Seen {
    /// Packets and bytes waiting, it included.
    Enqueued(u32, u64),
    /// Packets and bytes still waiting.
    Dequeued(u32, u64),
    Arrived,
    Dropped(DropReason),
}

/// What each link (or, at the end of a route, peer) saw, in its own order.
#[derive(Debug, Default, PartialEq, Eq)]
struct Journal {
    links: BTreeMap<u32, Vec<(u64, Id, Seen)>>,
    received: BTreeMap<u32, Vec<(u64, Id)>>,
}

impl Journal {
    fn note(&mut self, link: u32, at: u64, id: Id, seen: Seen) {
        self.links.entry(link).or_default().push((at, id, seen));
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Parcel {
    id: Id,
    bytes: u64,
    hop: usize,
}

/// What happens at one instant, in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Happening {
    /// A transmission ends (unless the link went down since: the second number).
    Finished(u32, u32),
    /// A packet reaches the far end of a link.
    Reached(u32, u32, Parcel),
    /// A peer sends what it has for this instant.
    Sends(u32),
    /// The first number keeps the order.
    Turned(usize, u32, bool),
}

struct Naive {
    nanos_per_bit: (u64, u64),
    delay: u64,
    limit: (u64, u64),
    loss: f64,
    rng: Rng,
    waiting: VecDeque<Parcel>,
    /// In transmission or propagation, oldest first, those lost on the medium apart.
    outside: VecDeque<Parcel>,
    busy: bool,
    up: bool,
    outages: u32,
}

struct Reference {
    links: Vec<Naive>,
    routes: Vec<Vec<usize>>,
    agenda: BinaryHeap<Reverse<(u64, Happening)>>,
    /// By peer, in order.
    sends: Vec<VecDeque<(u64, Parcel)>>,
    journal: Journal,
}

impl Reference {
    fn new(point: &Point, sent: &[(u64, Parcel)]) -> Self {
        let links = point.network.links.iter().map(|link| {
            let Queue::Droptail(limits) = &link.queue else { panic!("a DropTail queue") };
            Naive {
                nanos_per_bit: (1_000_000_000, link.rate.as_bps()),
                delay: link.delay.as_nanos(),
                limit: (
                    limits.packets.map_or(u64::MAX, u64::from),
                    limits.bytes.map_or(u64::MAX, |bytes| bytes.as_bytes()),
                ),
                loss: link.loss,
                rng: Rng::new(point.scenario.seed, &format!("link/{}/loss", link.name)),
                waiting: VecDeque::new(),
                outside: VecDeque::new(),
                busy: false,
                up: true,
                outages: 0,
            }
        });
        let mut agenda = BinaryHeap::new();
        let mut sends = vec![VecDeque::new(); 2 * point.scenario.flows.len()];
        for (at, parcel) in sent {
            sends[parcel.id.0 as usize].push_back((*at, *parcel));
            agenda.push(Reverse((*at, Happening::Sends(parcel.id.0))));
        }
        for (number, link) in point.network.links.iter().enumerate() {
            for (order, event) in link.events.iter().enumerate() {
                let up = event.state == LinkState::Up;
                let order = order + 1000 * number;
                agenda.push(Reverse((
                    event.at.as_nanos(),
                    Happening::Turned(order, number as u32, up),
                )));
            }
        }
        let routes = point.network.routes.iter();
        Self {
            links: links.collect(),
            routes: routes.flat_map(|r| [r[0].forward.clone(), r[0].backward.clone()]).collect(),
            agenda,
            sends,
            journal: Journal::default(),
        }
    }

    fn run(mut self, end: u64) -> Journal {
        // At the end, links are settled: what leaves at that instant has left.
        let before_end = |next: &Reverse<(u64, Happening)>| {
            next.0.0 < end || next.0.0 == end && matches!(next.0.1, Happening::Finished(..))
        };
        while let Some(Reverse((now, what))) = self.agenda.pop().filter(before_end) {
            match what {
                Happening::Finished(link, outages) => {
                    if self.links[link as usize].outages == outages {
                        self.links[link as usize].busy = false;
                        self.serve(now, link);
                    }
                }
                Happening::Reached(link, outages, parcel) => {
                    if self.links[link as usize].outages == outages {
                        self.links[link as usize].outside.pop_front();
                        self.journal.note(link, now, parcel.id, Seen::Arrived);
                        self.pass(now, Parcel { hop: parcel.hop + 1, ..parcel });
                    }
                }
                Happening::Sends(peer) => self.send(now, peer),
                Happening::Turned(_, link, up) => self.turn(now, link, up),
            }
        }
        self.journal
    }

    fn send(&mut self, now: u64, peer: u32) {
        let due = |sends: &VecDeque<(u64, Parcel)>| sends.front().is_some_and(|s| s.0 == now);
        while due(&self.sends[peer as usize]) {
            let (_, parcel) = self.sends[peer as usize].pop_front().expect("it is due");
            self.pass(now, parcel);
        }
    }

    fn pass(&mut self, now: u64, parcel: Parcel) {
        let Some(&number) = self.routes[parcel.id.0 as usize].get(parcel.hop) else {
            let peer = parcel.id.0 ^ 1;
            self.journal.received.entry(peer).or_default().push((now, parcel.id));
            // A peer that is woken by a packet does at once what else is due.
            return self.send(now, peer);
        };
        let link = &mut self.links[number];
        let waiting: u64 = link.waiting.iter().map(|parcel| parcel.bytes).sum();
        let refused = if !link.up {
            Some(DropReason::Down)
        } else if link.busy
            && (link.waiting.len() as u64 >= link.limit.0 || waiting + parcel.bytes > link.limit.1)
        {
            Some(DropReason::Full)
        } else {
            None
        };
        if let Some(why) = refused {
            self.journal.note(number as u32, now, parcel.id, Seen::Dropped(why));
            return;
        }
        link.waiting.push_back(parcel);
        let seen = Seen::Enqueued(link.waiting.len() as u32, waiting + parcel.bytes);
        self.journal.note(number as u32, now, parcel.id, seen);
        self.serve(now, number as u32);
    }

    fn serve(&mut self, now: u64, number: u32) {
        let link = &mut self.links[number as usize];
        if link.busy || !link.up {
            return;
        }
        let Some(parcel) = link.waiting.pop_front() else { return };
        link.busy = true;
        let (nanos, bits) = link.nanos_per_bit;
        let finish = now + (parcel.bytes * 8 * nanos).div_ceil(bits);
        let waiting = link.waiting.iter().map(|parcel| parcel.bytes).sum();
        let seen = Seen::Dequeued(link.waiting.len() as u32, waiting);
        self.journal.note(number, now, parcel.id, seen);
        let end = Happening::Finished(number, link.outages);
        self.agenda.push(Reverse((finish, end)));
        if link.loss > 0.0 && link.rng.chance(link.loss) {
            self.journal.note(number, now, parcel.id, Seen::Dropped(DropReason::Medium));
        } else {
            link.outside.push_back(parcel);
            let there = Happening::Reached(number, link.outages, parcel);
            self.agenda.push(Reverse((finish + link.delay, there)));
        }
    }

    fn turn(&mut self, now: u64, number: u32, up: bool) {
        let link = &mut self.links[number as usize];
        link.up = up;
        if up {
            return self.serve(now, number);
        }
        (link.busy, link.outages) = (false, link.outages + 1);
        for parcel in std::mem::take(&mut link.outside) {
            self.journal.note(number, now, parcel.id, Seen::Dropped(DropReason::Down));
        }
    }
}

/// What the world did, and the sends that the reference starts from.
fn observe(point: &Point) -> (Journal, Vec<(u64, Parcel)>) {
    let (mut journal, mut sent) = (Journal::default(), Vec::new());
    support::watch(point, &Look::default(), |now, place, note| {
        let at = now.as_nanos();
        match (place, note) {
            (Place::Link(link), Note::Enqueued { packet, packets, bytes }) => {
                let seen = Seen::Enqueued(*packets, *bytes);
                journal.note(link, at, (packet.route, packet.number), seen);
            }
            (Place::Link(link), Note::Dequeued { packet, packets, bytes }) => {
                let seen = Seen::Dequeued(*packets, *bytes);
                journal.note(link, at, (packet.route, packet.number), seen);
            }
            (Place::Link(link), Note::Arrived { packet }) => {
                journal.note(link, at, (packet.route, packet.number), Seen::Arrived);
            }
            (Place::Link(link), Note::Dropped { packet, why }) => {
                journal.note(link, at, (packet.route, packet.number), Seen::Dropped(*why));
            }
            (Place::Peer(peer), Note::Received { packet, .. }) => {
                let id = (packet.route, packet.number);
                journal.received.entry(peer).or_default().push((at, id));
            }
            (Place::Peer(_), Note::Sent { packet, .. }) => {
                let id = (packet.route, packet.number);
                sent.push((at, Parcel { id, bytes: packet.ip_bytes.into(), hop: 0 }));
            }
            _ => {}
        }
    });
    (journal, sent)
}

/// Asserts equality at every place; otherwise reports the first difference.
fn agree<T: std::fmt::Debug + PartialEq>(
    world: &BTreeMap<u32, Vec<T>>,
    reference: &BTreeMap<u32, Vec<T>>,
) -> Result<(), TestCaseError> {
    let places = |of: &BTreeMap<u32, Vec<T>>| of.keys().copied().collect::<Vec<_>>();
    prop_assert_eq!(places(world), places(reference));
    for (place, seen) in world {
        let expected = &reference[place];
        let same = seen.iter().zip(expected).take_while(|(a, b)| a == b).count();
        let part = |of: &[T]| format!("{:#?}", &of[same.saturating_sub(2)..of.len().min(same + 2)]);
        prop_assert!(
            same == seen.len() && same == expected.len(),
            "at {place}: {}\nnot {}",
            part(seen),
            part(expected)
        );
    }
    Ok(())
}

/// Times are multiples of 0.1 ms nearly everywhere, so that much happens at once.
fn a_link(index: usize) -> impl Strategy<Value = String> {
    let rate = prop::sample::select(vec!["8Mbit/s", "1.6Mbit/s", "800kbit/s", "3Mbit/s"]);
    let delay = prop::sample::select(vec!["0ms", "1ms", "2ms", "0.5ms", "7.3ms"]);
    let queue = prop::sample::select(vec![
        "packets = 1",
        "packets = 3",
        "packets = 50",
        "bytes = '100B'",
        "bytes = '700B'",
        "packets = 4, bytes = '1kB'",
    ]);
    let loss = prop::sample::select(vec![0.0, 0.0, 0.0, 0.1, 0.5]);
    let events = prop::collection::btree_set(1_u32..400, 0..4);
    (rate, delay, queue, loss, events).prop_map(move |(rate, delay, queue, loss, events)| {
        // Every half millisecond something may turn; first down, then up, and so on.
        let events = events
            .iter()
            .zip(["down", "up"].iter().cycle())
            .map(|(at, state)| format!("{{ at = '{}us', state = '{state}' }}", at * 500));
        let events: Vec<_> = events.collect();
        let more = format!(
            "queue = {{ kind = 'droptail', {queue} }}\nloss = {loss:?}\nevents = [{}]\n",
            events.join(", ")
        );
        link(&format!("l{index}"), &format!("n{index}-n{}", index + 1), rate, delay, &more)
    })
}

fn a_source() -> impl Strategy<Value = String> {
    let size = prop::sample::select(vec![100, 200, 400]);
    let rate = prop::sample::select(vec!["100kbit/s", "400kbit/s", "1.6Mbit/s"]);
    (size, rate, prop::bool::weighted(0.8)).prop_map(|(size, rate, steady)| {
        if steady {
            format!("{{ kind = 'cbr', rate = '{rate}', packet = '{size}B', noise = '0s' }}")
        } else {
            format!(
                "{{ kind = 'on_off', rate = '{rate}', packet = '{size}B', on = '30ms', off = '20ms' }}"
            )
        }
    })
}

fn a_flow(index: usize, nodes: usize) -> impl Strategy<Value = String> {
    (0..nodes, 1..nodes, a_source(), prop::option::of(a_source())).prop_map(
        move |(from, step, source, reverse)| {
            let ends = format!("n{from}-n{}", (from + step) % nodes);
            let reverse = reverse.map_or(String::new(), |source| format!("reverse = {source}\n"));
            let more = format!("sizing = 'ns2'\nstart_spread = '0s'\n{reverse}");
            flow(&format!("f{index}"), &ends, "udp", &source, &more)
        },
    )
}

fn a_chain() -> impl Strategy<Value = String> {
    (1_usize..4).prop_flat_map(|links| {
        let chain: Vec<_> = (0..links).map(a_link).collect();
        let flows = (1_usize..5)
            .prop_flat_map(move |n| (0..n).map(|i| a_flow(i, links + 1)).collect::<Vec<_>>());
        (chain, flows).prop_map(|(chain, flows)| scenario("200ms", &[chain, flows].concat()))
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn a_link_that_serves_late_does_what_two_events_a_hop_do(text in a_chain()) {
        let point = support::point(&text);
        let (world, sent) = observe(&point);
        let reference = Reference::new(&point, &sent).run(point.scenario.duration.as_nanos());
        agree(&world.links, &reference.links)?;
        agree(&world.received, &reference.received)?;
    }

    #[test]
    fn settling_changes_no_result(text in a_chain(), every in 10_u64..3000) {
        let point = support::point(&text);
        let plain = support::watch(&point, &Look::default(), |_, _, _| {});
        let settle_every = Some(Duration::from_micros(every));
        let look = Look { settle_every, ..Look::default() };
        let settled = support::watch(&point, &look, |_, _, _| {});
        prop_assert_eq!(plain.digest, settled.digest);
        prop_assert_eq!(plain.flows, settled.flows);
        prop_assert_eq!(plain.links, settled.links);
        prop_assert_eq!(plain.hops, settled.hops);
    }
}
