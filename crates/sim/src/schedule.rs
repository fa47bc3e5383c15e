//! Pending events: one wake-up per node, in a tournament tree or in a lane beside it.
//!
//! A key holds 48 bits of nanoseconds and 16 bits of node number in one `u64`, all bits inverted, so that the
//! earliest key is the greatest and zero means never. With more nodes it holds 46 bits and 18 bits. Each
//! inner node of the tree holds the greater of its children, the root the earliest; setting a leaf replays one
//! path to the root. Wake-ups that do not change before they come may go into the lane instead, as most link
//! wake-ups do when links are alike; taking one uses none of the tree's twelve levels (with five hundred
//! calls). The next event is the earlier of root and lane. Ties are broken by node number, wherever a key is
//! stored, so links (numbered first) precede peers.
//!
//! The less often leaves are set, the deeper they lie: those of busy links under place 4, other links' under 3,
//! the rest under 5, whose replays mostly end halfway. All leaves of a kind are on one level, which makes the
//! end of a path predictable. The tree has room for the maximum number of nodes: with a constant length no
//! bounds are checked, and untouched memory costs nothing.

use talkspurt_proto::prefetch::prefetch;
use talkspurt_proto::time::Instant;

use crate::lane::{Lane, NEVER};

/// Maximum number of nodes.
pub const MAX_NODES: usize = 1 << MANY_BITS;
/// Bits of node numbers in a key, and those of many nodes.
const NODE_BITS: u32 = 16;
const MANY_BITS: u32 = 18;
/// The leaves of nodes other than links are under this place.
const OTHERS: usize = 5;
/// The deepest leaves are there, the last at `6 * MAX_NODES - 1`.
const PLACES: usize = 8 * MAX_NODES;

/// The wake-ups of all nodes.
#[derive(Debug)]
pub struct Schedule {
    lane: Lane,
    /// The root is `tree[1]`; the children of place `p` are `2 p` and `2 p + 1`.
    tree: Box<[u64; PLACES]>,
    /// The place of each node's leaf.
    leaves: Box<[u32]>,
    layout: Layout,
}

/// Where a key has what.
#[derive(Clone, Copy, Debug)]
struct Layout {
    node_bits: u32,
    node_mask: u32,
    /// No wake-up is at or after this instant.
    horizon: Instant,
}

impl Layout {
    fn new(nodes: usize) -> Self {
        let node_bits = if nodes <= 1 << NODE_BITS { NODE_BITS } else { MANY_BITS };
        let horizon = Instant::from_nanos(u64::MAX >> node_bits);
        Self { node_bits, node_mask: (1 << node_bits) - 1, horizon }
    }

    #[inline(always)]
    fn key(self, node: u32, at: Option<Instant>) -> u64 {
        match at {
            Some(at) if at < self.horizon => !(at.as_nanos() << self.node_bits | u64::from(node)),
            _ => NEVER,
        }
    }

    #[inline(always)]
    fn at(self, key: u64) -> Instant {
        Instant::from_nanos(!key >> self.node_bits)
    }

    #[inline(always)]
    fn node(self, key: u64) -> u32 {
        !key as u32 & self.node_mask
    }
}

/// A wake-up of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wake {
    /// When.
    pub at: Instant,
    /// Its node.
    pub node: u32,
    in_lane: bool,
}

/// The key that those of all wake-ups before an instant exceed: keys are compared without being decoded.
#[derive(Clone, Copy, Debug)]
pub struct Bound(u64);

impl Schedule {
    /// A schedule for this many links and, numbered after them, this many other nodes, without wake-ups.
    /// `busy`: links that are woken more often than all others.
    ///
    /// # Panics
    /// If there are more than [`MAX_NODES`]; scenarios are checked before.
    #[must_use]
    pub fn new(links: usize, others: usize, busy: &[u32]) -> Self {
        let nodes = links + others;
        assert!(nodes <= MAX_NODES, "{nodes} nodes do not fit the schedule");
        let under = |place: usize, count: usize| {
            let first = place * count.next_power_of_two();
            (first..first + count).map(|leaf| leaf as u32)
        };
        let mut leaves: Box<[u32]> = under(3, links).chain(under(OTHERS, others)).collect();
        for (node, leaf) in busy.iter().zip(under(4, busy.len())) {
            leaves[*node as usize] = leaf;
        }
        let tree = vec![NEVER; PLACES].into_boxed_slice();
        let tree = tree.try_into().expect("the length is its own");
        Self { lane: Lane::default(), tree, leaves, layout: Layout::new(nodes) }
    }

    /// The bound for [`Schedule::next`] of wake-ups before `end`.
    #[must_use]
    pub fn before(&self, end: Instant) -> Bound {
        Bound(!(end.min(self.layout.horizon).as_nanos() << self.layout.node_bits))
    }

    /// The next wake-up within the bound. It is valid until the node's next one is set.
    #[inline(always)]
    #[must_use]
    pub fn next(&self, bound: Bound) -> Option<Wake> {
        let (tree, lane) = (self.tree[1], self.lane.first);
        let key = tree.max(lane);
        if key <= bound.0 {
            return None;
        }
        Some(Wake { at: self.layout.at(key), node: self.layout.node(key), in_lane: lane > tree })
    }

    /// Of the nodes other than links, the one that wakes first beside that of `wake`.
    #[must_use]
    pub fn runner_up(&self, wake: Wake) -> Option<u32> {
        let (mut place, mut winner) = (self.leaf(wake.node), NEVER);
        while place > OTHERS {
            winner = winner.max(self.tree[place ^ 1]);
            place >>= 1;
        }
        (winner != NEVER).then(|| self.layout.node(winner))
    }

    /// Requests the places of a node that are not those of many.
    pub fn prefetch(&self, node: u32) {
        let mut place = self.leaf(node);
        for _ in 0..6 {
            prefetch(&self.tree[place], 1);
            place >>= 1;
        }
    }

    /// Sets the wake-up of `node`, whose current one was not appended, to `at` or to none. Times beyond the
    /// horizon mean never.
    #[inline]
    pub fn set(&mut self, node: u32, at: Option<Instant>) {
        debug_assert!(
            !self.lane.holds(|key| self.layout.node(key) == node),
            "node {node} wakes by the lane, and is replanned"
        );
        let (mut place, mut winner) = (self.leaf(node), self.layout.key(node, at));
        let tree = &mut *self.tree;
        while tree[place] != winner {
            tree[place] = winner;
            if place == 1 {
                return;
            }
            winner = winner.max(tree[place ^ 1]);
            place >>= 1;
        }
    }

    /// Adds a wake-up to `node`, which has none; it does not change until it comes or is
    /// [`replan`](Self::replan)ned.
    #[inline(always)]
    pub fn append(&mut self, node: u32, at: Instant) {
        debug_assert_eq!(self.tree[self.leaf(node)], NEVER, "node {node} has a wake-up");
        if !self.lane.push(self.layout.key(node, Some(at))) {
            self.set(node, Some(at));
        }
    }

    /// Sets the next wake-up of the node of `wake`, the earliest. Without the early exit of [`Schedule::set`]:
    /// this node is the winner on its whole path to the root, so the exit would never be taken.
    #[inline(always)]
    pub fn again(&mut self, wake: Wake, at: Option<Instant>) {
        if wake.in_lane {
            self.lane.pop();
            if at.is_none() {
                return;
            }
        }
        let (mut place, mut winner) = (self.leaf(wake.node), self.layout.key(wake.node, at));
        let tree = &mut *self.tree;
        tree[place] = winner;
        while place > 1 {
            place ^= 1;
            winner = winner.max(tree[place]);
            place >>= 1;
            tree[place] = winner;
        }
    }

    /// [`Schedule::set`] for any node: an appended wake-up is removed.
    #[cold]
    pub fn replan(&mut self, node: u32, at: Option<Instant>) {
        let layout = self.layout;
        if self.lane.holds(|key| layout.node(key) == node) {
            self.lane.retain(|key| layout.node(key) != node);
        }
        self.set(node, at);
    }

    /// The remainder equals the number and shows that no bounds check is needed.
    #[inline(always)]
    fn leaf(&self, node: u32) -> usize {
        self.leaves[node as usize] as usize % PLACES
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn next(schedule: &Schedule) -> Option<(u64, u32)> {
        schedule.next(schedule.before(Instant::HORIZON)).map(|wake| (wake.at.as_nanos(), wake.node))
    }

    #[test]
    fn ties_go_to_the_lower_number() {
        let mut schedule = Schedule::new(3, 3, &[2]);
        let at = Instant::from_nanos(7);
        schedule.set(4, Some(at));
        schedule.append(1, at);
        schedule.append(0, at);
        schedule.set(2, Some(at));
        for node in [0, 1, 2, 4] {
            let wake = schedule.next(schedule.before(Instant::from_nanos(8))).unwrap();
            assert_eq!((wake.at, wake.node), (at, node));
            assert_eq!(schedule.next(schedule.before(at)), None);
            schedule.again(wake, None);
        }
        schedule.set(4, Some(Instant::HORIZON));
        schedule.append(5, Instant::HORIZON);
        assert_eq!(next(&schedule), None);
    }

    /// All node numbers and all times before the horizon of many nodes fit a key.
    #[test]
    fn the_most_nodes_have_wake_ups_up_to_their_horizon() {
        let most = MAX_NODES as u32 - 1;
        let mut schedule = Schedule::new(MAX_NODES / 2, MAX_NODES / 2, &[0]);
        let last = Instant::from_nanos((1 << 46) - 2);
        for node in [most, most / 2 + 1, 0] {
            schedule.set(node, Some(last));
        }
        schedule.set(1, Some(Instant::from_nanos((1 << 46) - 1)));
        for node in [0, most / 2 + 1, most] {
            let wake = schedule.next(schedule.before(Instant::HORIZON)).unwrap();
            assert_eq!((wake.at, wake.node), (last, node));
            schedule.again(wake, None);
        }
        assert_eq!(next(&schedule), None);
    }

    /// The next operation on a schedule.
    #[derive(Clone, Debug)]
    enum Move {
        /// A node whose wake-up is in the tree.
        Set(u32, Option<u64>),
        /// A link without a wake-up gets one, this long after the last.
        Append(u32, u64),
        Replan(u32, Option<u64>),
        /// The next node wakes and is set again after this time, or not.
        Wake(Option<u64>),
    }

    fn moves() -> impl Strategy<Value = Vec<Move>> {
        let at = || prop::option::of(0_u64..1000);
        // Mostly equal spans: the lane fills, wraps, grows, and refuses some.
        let span = prop_oneof![4 => Just(500_u64), 1 => 0_u64..1000];
        let one = prop_oneof![
            2 => (0_u32..200, at()).prop_map(|(node, at)| Move::Set(node, at)),
            6 => (0_u32..100, span).prop_map(|(node, span)| Move::Append(node, span)),
            1 => (0_u32..200, at()).prop_map(|(node, at)| Move::Replan(node, at)),
            4 => prop::option::weighted(0.3, 0_u64..1000).prop_map(Move::Wake),
        ];
        prop::collection::vec(one, 0..600)
    }

    proptest! {
        #[test]
        fn agrees_with_a_sorted_list(links in 1_u32..100, others in 1_u32..100, busy in 0_u32..5, many: bool, moves in moves()) {
            let busy: Vec<u32> = (0..busy.min(links)).map(|at| links - 1 - at).collect();
            let mut schedule = Schedule::new(links as usize, others as usize, &busy);
            if many {
                schedule.layout = Layout::new(MAX_NODES);
            }
            // For each node, its wake-up and whether that was appended.
            let mut plain = vec![None::<(u64, bool)>; (links + others) as usize];
            let mut now = 0;
            for step in moves {
                match step {
                    Move::Set(node, at) => {
                        let node = node % (links + others);
                        if !plain[node as usize].is_some_and(|(_, appended)| appended) {
                            schedule.set(node, at.map(Instant::from_nanos));
                            plain[node as usize] = at.map(|at| (at, false));
                        }
                    }
                    Move::Append(node, span) => {
                        let node = node % links;
                        if plain[node as usize].is_none() {
                            schedule.append(node, Instant::from_nanos(now + span));
                            plain[node as usize] = Some((now + span, true));
                        }
                    }
                    Move::Replan(node, at) => {
                        let node = node % (links + others);
                        schedule.replan(node, at.map(Instant::from_nanos));
                        plain[node as usize] = at.map(|at| (at, false));
                    }
                    Move::Wake(span) => {
                        if let Some(wake) = schedule.next(schedule.before(Instant::HORIZON)) {
                            if wake.node >= links {
                                let others = (links..links + others).filter(|node| *node != wake.node);
                                let first = others.filter_map(|node| Some((plain[node as usize]?.0, node))).min();
                                prop_assert_eq!(schedule.runner_up(wake), first.map(|(_, node)| node));
                            }
                            now = now.max(wake.at.as_nanos());
                            let at = span.map(|span| now + span);
                            schedule.again(wake, at.map(Instant::from_nanos));
                            plain[wake.node as usize] = at.map(|at| (at, false));
                        }
                    }
                }
                let all = (0..).zip(&plain).filter_map(|(node, at)| at.map(|(at, _)| (at, node)));
                prop_assert_eq!(next(&schedule), all.min());
            }
        }
    }
}
