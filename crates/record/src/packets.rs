//! The `packets` table: one row per packet and hop, written during the run. Rows are stored as plain
//! columns in groups; a group is written when it is full and none of its packets is in flight, so memory
//! holds only a few groups and the packets in flight.

use std::collections::VecDeque;
use std::io;

use talkspurt_proto::packet::Packet;
use talkspurt_proto::probe::{DropReason, Note, Place, Probe, Topic, UNNUMBERED};
use talkspurt_proto::time::Instant;

use crate::file::Output;
use crate::in_flight::InFlight;
use crate::layout::{Layout, RouteInfo, SIDES, sender};
use crate::parquet::{Column, Kind, Parquet, Values};

/// Rows of one group: six megabytes while it is filled.
const GROUP_ROWS: usize = 1 << 17;

const COLUMNS: [Column; 9] = [
    Column::of("flow", Kind::Text),
    Column::of("side", Kind::Text),
    Column::of("number", Kind::Count),
    Column::of("link", Kind::Text),
    Column::of("ip_bytes", Kind::Count),
    Column::of("enqueued_s", Kind::Seconds),
    Column::of("dequeued_s", Kind::Seconds),
    Column::of("received_s", Kind::Seconds),
    Column::of("fate", Kind::Text),
];

/// A probe that writes the rows of `packets`, in order of their first note, as Parquet.
#[derive(Debug)]
pub struct PacketTable {
    file: Parquet,
    routes: Vec<RouteInfo>,
    names: Names,
    rows: Rows,
}

/// The dictionaries of the table.
#[derive(Debug)]
struct Names {
    flows: Vec<String>,
    sides: Vec<String>,
    links: Vec<String>,
    fates: Vec<String>,
}

impl PacketTable {
    /// Writes the packets of a run with this layout to `output`.
    #[must_use]
    pub fn new(output: Output, layout: &Layout) -> Self {
        let names = Names {
            flows: layout.flows.iter().map(|flow| flow.name.clone()).collect(),
            sides: SIDES.map(str::to_owned).to_vec(),
            links: layout.links.iter().map(|link| link.name.clone()).collect(),
            fates: HopOutcome::NAMES.map(str::to_owned).to_vec(),
        };
        let file = Parquet::new(output, COLUMNS.to_vec());
        Self { file, routes: layout.routes.clone(), names, rows: Rows::in_groups_of(GROUP_ROWS) }
    }

    /// Names a flow that the layout reserved for real hosts: its first packet follows.
    ///
    /// # Panics
    /// If the layout has no such flow.
    pub fn name_flow(&mut self, index: usize, name: &str) {
        name.clone_into(&mut self.names.flows[index]);
    }

    /// Whether a write failed, so that the run may stop early.
    #[must_use]
    pub const fn failed(&self) -> bool {
        self.file.failed()
    }

    /// Writes the remaining rows, packets in flight included, and completes the file.
    ///
    /// # Errors
    /// The first write error.
    pub fn finish(mut self) -> io::Result<()> {
        for group in &self.rows.groups {
            self.names.write(group, &self.rows.lengths, &mut self.file);
        }
        self.file.finish()
    }
}

impl Names {
    fn write(&self, group: &Group, lengths: &Lengths, file: &mut Parquet) {
        let flows: Vec<u32> = group.senders.iter().map(|sender| sender / 2).collect();
        let sides: Vec<u32> = group.senders.iter().map(|sender| sender % 2).collect();
        let values = [
            Values::Words(&self.flows, &flows),
            Values::Words(&self.sides, &sides),
            Values::Counts(&group.numbers),
            Values::Words(&self.links, &group.links),
            Values::Among(&lengths.known, &group.lengths),
            Values::Seconds(&group.enqueued),
            Values::Seconds(&group.dequeued),
            Values::Seconds(&group.received),
            Values::Words(&self.fates, &group.fates),
        ];
        file.group(group.fates.len(), &values);
    }
}

impl Probe for PacketTable {
    #[inline]
    fn wants(&self, topic: Topic) -> bool {
        matches!(topic, Topic::Hop | Topic::Drop)
    }

    #[inline]
    fn record(&mut self, now: Instant, place: Place, note: &Note<'_>) {
        let Place::Link(link) = place else { return };
        match note {
            Note::Enqueued { packet, .. } => {
                self.rows.begin(now, link, packet, &self.routes);
            }
            Note::Dequeued { packet, .. } => self.rows.dequeued(now, link, packet),
            Note::Arrived { packet } => self.rows.arrived(now, link, packet),
            Note::Dropped { packet, why } => {
                self.rows.dropped(now, link, packet, *why, &self.routes);
            }
            _ => return,
        }
        while let Some(group) = self.rows.finished() {
            self.names.write(&group, &self.rows.lengths, &mut self.file);
            self.rows.spare = Some(group);
        }
    }
}

/// Rows in order of their first note.
#[derive(Debug)]
struct Rows {
    group_rows: usize,
    /// Number of the first group.
    first: usize,
    groups: VecDeque<Group>,
    /// A written group, kept for its allocation.
    spare: Option<Group>,
    in_flight: InFlight<Hop>,
    lengths: Lengths,
}

/// The row of a packet's current hop.
#[derive(Clone, Copy, Debug)]
struct Hop {
    link: u32,
    group: usize,
    row: usize,
}

#[derive(Debug, Default)]
struct Group {
    enqueued: Vec<f64>,
    /// NaN until it is known; so is `received`.
    dequeued: Vec<f64>,
    received: Vec<f64>,
    numbers: Vec<i64>,
    senders: Vec<u32>,
    links: Vec<u32>,
    /// Indices into [`Lengths`].
    lengths: Vec<u32>,
    /// [`HopOutcome::index`].
    fates: Vec<u32>,
    in_flight: usize,
}

/// Packet lengths seen so far.
#[derive(Debug, Default)]
struct Lengths {
    known: Vec<i64>,
    /// By length: its index in `known`, from 1.
    places: Vec<u32>,
}

impl Lengths {
    fn place(&mut self, bytes: u32) -> u32 {
        let index = bytes as usize;
        if index >= self.places.len() {
            self.places.resize(index + 1, 0);
        }
        if self.places[index] == 0 {
            self.known.push(bytes.into());
            self.places[index] = self.known.len() as u32;
        }
        self.places[index] - 1
    }
}

impl Rows {
    fn in_groups_of(group_rows: usize) -> Self {
        Self {
            group_rows,
            first: 0,
            groups: VecDeque::new(),
            spare: None,
            in_flight: InFlight::default(),
            lengths: Lengths::default(),
        }
    }

    fn begin(
        &mut self,
        now: Instant,
        link: u32,
        packet: &Packet,
        routes: &[RouteInfo],
    ) -> Option<()> {
        let sender = sender(routes, packet).filter(|_| packet.number != UNNUMBERED)?;
        if self.groups.back().is_none_or(|group| group.fates.len() == self.group_rows) {
            self.groups.push_back(self.spare.take().unwrap_or_default().emptied());
        }
        let group = self.groups.back_mut().expect("just made");
        let row = group.fates.len();
        group.enqueued.push(now.as_secs_f64());
        group.dequeued.push(f64::NAN);
        group.received.push(f64::NAN);
        group.numbers.push(packet.number.into());
        group.senders.push(sender as u32);
        group.links.push(link);
        group.lengths.push(self.lengths.place(packet.ip_bytes));
        group.fates.push(HopOutcome::Queued.index());
        group.in_flight += 1;
        let group = self.first + self.groups.len() - 1;
        self.in_flight.keep(packet, Hop { link, group, row });
        Some(())
    }

    /// The row of a packet that is on this link.
    fn row(&mut self, link: u32, packet: &Packet) -> Option<(&mut Group, usize)> {
        let hop = self.in_flight.get_mut(packet).filter(|hop| hop.link == link)?;
        Some((&mut self.groups[hop.group - self.first], hop.row))
    }

    fn dequeued(&mut self, now: Instant, link: u32, packet: &Packet) {
        if let Some((group, row)) = self.row(link, packet) {
            group.dequeued[row] = now.as_secs_f64();
            group.fates[row] = HopOutcome::InFlight.index();
        }
    }

    fn arrived(&mut self, now: Instant, link: u32, packet: &Packet) {
        if let Some((group, row)) = self.row(link, packet) {
            group.received[row] = now.as_secs_f64();
            self.end(link, packet, HopOutcome::Received);
        }
    }

    fn dropped(
        &mut self,
        now: Instant,
        link: u32,
        packet: &Packet,
        why: DropReason,
        routes: &[RouteInfo],
    ) {
        // A packet dropped at enqueue has no row yet: it arrived at the queue when it was dropped.
        if self.row(link, packet).is_none() {
            self.begin(now, link, packet, routes);
        }
        self.end(link, packet, HopOutcome::Dropped(why));
    }

    fn end(&mut self, link: u32, packet: &Packet, fate: HopOutcome) {
        if let Some((group, row)) = self.row(link, packet) {
            group.fates[row] = fate.index();
            group.in_flight -= 1;
            self.in_flight.take(packet);
        }
    }

    /// The next group, if it is full and all its packets have left their hops.
    fn finished(&mut self) -> Option<Group> {
        let first = self.groups.front()?;
        if first.in_flight > 0 || first.fates.len() < self.group_rows {
            return None;
        }
        self.first += 1;
        self.groups.pop_front()
    }
}

impl Group {
    fn emptied(mut self) -> Self {
        let Self { enqueued, dequeued, received, numbers, senders, links, lengths, fates, .. } =
            &mut self;
        [enqueued, dequeued, received].into_iter().for_each(Vec::clear);
        [senders, links, lengths, fates].into_iter().for_each(Vec::clear);
        numbers.clear();
        self.in_flight = 0;
        self
    }
}

/// The outcome of a packet on a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HopOutcome {
    Queued,
    InFlight,
    Received,
    Dropped(DropReason),
}

impl HopOutcome {
    /// Names by [`HopOutcome::index`].
    const NAMES: [&str; 3 + DropReason::COUNT] = [
        "queued",
        "in_flight",
        "received",
        "full",
        "early",
        "medium",
        "down",
        "too_big",
        "retries",
    ];

    /// A number, from 0 without gaps.
    const fn index(self) -> u32 {
        match self {
            Self::Queued => 0,
            Self::InFlight => 1,
            Self::Received => 2,
            Self::Dropped(why) => 3 + why as u32,
        }
    }

    pub(crate) const fn name(self) -> &'static str {
        Self::NAMES[self.index() as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use talkspurt_proto::packet::BodyId;

    const ROUTES: [RouteInfo; 2] = [RouteInfo { flow: 0, side: 0 }, RouteInfo { flow: 0, side: 1 }];

    fn label(number: u32) -> Packet {
        Packet { body: BodyId(number % 8), ip_bytes: 200, number, ..Packet::default() }
    }

    fn ms(at: u64) -> Instant {
        Instant::from_nanos(at * 1_000_000)
    }

    fn named(fates: &[u32]) -> Vec<&str> {
        fates.iter().map(|fate| HopOutcome::NAMES[*fate as usize]).collect()
    }

    fn maybe(times: &[f64]) -> Vec<Option<f64>> {
        times.iter().map(|time| (!time.is_nan()).then_some(*time)).collect()
    }

    #[test]
    fn every_hop_of_a_packet_is_a_row() {
        let mut rows = Rows::in_groups_of(100);
        rows.begin(ms(1000), 0, &label(0), &ROUTES);
        rows.dequeued(ms(1000), 0, &label(0));
        rows.begin(ms(1001), 0, &label(1), &ROUTES);
        rows.begin(ms(1002), 0, &label(2), &ROUTES);
        rows.dropped(ms(1003), 0, &label(3), DropReason::Full, &ROUTES);
        rows.dequeued(ms(1004), 0, &label(1));
        rows.arrived(ms(1010), 0, &label(0));
        rows.dropped(ms(1011), 0, &label(1), DropReason::Medium, &ROUTES);
        rows.dequeued(ms(1012), 0, &label(2));
        rows.begin(ms(1013), 0, &label(4), &ROUTES);
        rows.begin(ms(1010), 1, &Packet { ip_bytes: 180, ..label(0) }, &ROUTES);
        rows.begin(ms(1013), 1, &Packet { route: 1, ..label(7) }, &ROUTES);
        // Packets outside all accounts have no row: a router's answer, a copy made by a medium.
        rows.dropped(ms(1014), 0, &label(UNNUMBERED), DropReason::Full, &ROUTES);
        rows.begin(ms(1014), 0, &Packet { route: 2, ..label(6) }, &ROUTES);
        let group = &rows.groups[0];
        assert_eq!(group.numbers, [0, 1, 2, 3, 4, 0, 7]);
        assert_eq!(group.links, [0, 0, 0, 0, 0, 1, 1]);
        assert_eq!(group.senders, [0, 0, 0, 0, 0, 0, 1]);
        let fates = ["received", "medium", "in_flight", "full", "queued", "queued", "queued"];
        assert_eq!(named(&group.fates), fates);
        assert_eq!(group.enqueued, [1.0, 1.001, 1.002, 1.003, 1.013, 1.01, 1.013]);
        let dequeued = [Some(1.0), Some(1.004), Some(1.012), None, None, None, None];
        assert_eq!(maybe(&group.dequeued), dequeued);
        let received = [Some(1.01), None, None, None, None, None, None];
        assert_eq!(maybe(&group.received), received);
        let length = |place: &u32| rows.lengths.known[*place as usize];
        let lengths: Vec<_> = group.lengths.iter().map(length).collect();
        assert_eq!(lengths, [200, 200, 200, 200, 200, 180, 200]);
        assert_eq!(group.in_flight, 4);
    }

    #[test]
    fn a_group_leaves_when_it_is_full_and_settled() {
        let mut rows = Rows::in_groups_of(2);
        let enqueue = |rows: &mut Rows, number| rows.begin(ms(0), 0, &label(number), &ROUTES);
        (0..3).for_each(|number| assert!(enqueue(&mut rows, number).is_some()));
        rows.arrived(ms(1), 0, &label(1));
        assert!(rows.finished().is_none(), "packet 0 is under way");
        rows.arrived(ms(1), 0, &label(0));
        rows.spare = rows.finished();
        assert_eq!(rows.spare.as_ref().expect("full and settled").numbers, [0, 1]);
        assert!(rows.finished().is_none(), "the next is not full");
        // Rows are still found after the first group was written and its allocation reused.
        (3..5).for_each(|number| assert!(enqueue(&mut rows, number).is_some()));
        assert!(rows.spare.is_none());
        (2..4).for_each(|number| rows.arrived(ms(1), 0, &label(number)));
        assert_eq!(rows.in_flight.count, 1);
        let second = rows.finished().expect("full and settled");
        assert_eq!((second.numbers, second.dequeued.len()), (vec![2, 3], 2));
        assert_eq!(rows.groups.len(), 1);
        assert_eq!(rows.groups[0].numbers, [4]);
    }

    #[test]
    fn fates_are_found_by_their_index() {
        use DropReason::{Down, Early, Full, Medium, Retries, TooBig};
        let stayed = [HopOutcome::Queued, HopOutcome::InFlight, HopOutcome::Received];
        let dropped = [Full, Early, Medium, Down, TooBig, Retries].map(HopOutcome::Dropped);
        let names = ["queued", "in_flight", "received", "full", "early", "medium", "down"];
        let names = names.into_iter().chain(["too_big", "retries"]);
        for ((index, fate), name) in (0..).zip(stayed.into_iter().chain(dropped)).zip(names) {
            assert_eq!((fate.index(), fate.name()), (index, name));
        }
        assert_eq!(HopOutcome::NAMES.len(), stayed.len() + dropped.len());
    }
}
