//! What happens next: one wake-up slot per node, kept in a tournament tree.
//!
//! A slot holds 48 bits of nanoseconds and 16 bits of node number in one `u64`, all bits turned, so that
//! the earliest is the greatest and zero is never; each inner node of the tree holds the greater of its
//! children, the root the next event. Setting a slot replays one path to the root. Equal times are
//! settled by node number, so links (numbered first) precede peers. The tree has room for all nodes there
//! may be: a length that is known needs no check of bounds at any level, and memory that is never touched
//! is none. Measured at 9 to 20 ns per pop and set from 300 to 60 000 nodes, a third of a binary heap.

use talkspurt_proto::time::Instant;

/// At most this many nodes: 16 bits.
pub const MAX_NODES: usize = 1 << NODE_BITS;
const NODE_BITS: u32 = 16;
const NEVER: u64 = 0;
const PLACES: usize = 2 * MAX_NODES;

/// The wake-ups of all nodes.
#[derive(Debug)]
pub struct Schedule {
    /// `tree[1]` is the root; the leaf of node `n` is `tree[leaves + n]`.
    tree: Box<[u64; PLACES]>,
    leaves: usize,
}

impl Schedule {
    /// A schedule for this many nodes, none of which wants to wake.
    ///
    /// # Panics
    /// If there are more than [`MAX_NODES`]; scenarios are checked before.
    #[must_use]
    pub fn new(nodes: usize) -> Self {
        assert!(nodes <= MAX_NODES, "{nodes} nodes do not fit the schedule");
        let tree = vec![NEVER; PLACES].into_boxed_slice();
        // Any number of leaves does: those behind the last power of two lie one level deeper.
        Self { tree: tree.try_into().expect("the length is its own"), leaves: nodes.max(1) }
    }

    /// The next wake-up and whose it is.
    #[inline]
    #[must_use]
    pub fn next(&self) -> Option<(Instant, u32)> {
        let key = !self.tree[1];
        (key != !NEVER)
            .then(|| (Instant::from_nanos(key >> NODE_BITS), (key & ((1 << NODE_BITS) - 1)) as u32))
    }

    /// Node `node` wants to wake at `at`, or not at all. Times beyond the horizon are never.
    #[inline]
    pub fn set(&mut self, node: u32, at: Option<Instant>) {
        let tree = &mut *self.tree;
        let (mut place, mut winner) = ((self.leaves + node as usize) % PLACES, key(node, at));
        while tree[place] != winner {
            tree[place] = winner;
            if place == 1 {
                return;
            }
            winner = winner.max(tree[place ^ 1]);
            place >>= 1;
        }
    }

    /// [`Schedule::set`] without its way out where nothing changes any more: right for any node, and
    /// meant for the one that wakes now, which stands on all its way to the root, so that looking for
    /// that place is in vain.
    #[inline]
    pub fn set_next(&mut self, node: u32, at: Option<Instant>) {
        let tree = &mut *self.tree;
        let (mut place, mut winner) = ((self.leaves + node as usize) % PLACES, key(node, at));
        tree[place] = winner;
        while place > 1 {
            place ^= 1;
            winner = winner.max(tree[place]);
            place >>= 1;
            tree[place] = winner;
        }
    }
}

#[inline]
fn key(node: u32, at: Option<Instant>) -> u64 {
    match at {
        Some(at) if at < Instant::HORIZON => !(at.as_nanos() << NODE_BITS | u64::from(node)),
        _ => NEVER,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn ties_go_to_the_lower_number() {
        let mut schedule = Schedule::new(5);
        let at = Instant::from_nanos(7);
        schedule.set(4, Some(at));
        schedule.set(2, Some(at));
        assert_eq!(schedule.next(), Some((at, 2)));
        schedule.set(2, None);
        assert_eq!(schedule.next(), Some((at, 4)));
        schedule.set(4, Some(Instant::HORIZON));
        assert_eq!(schedule.next(), None);
    }

    proptest! {
        #[test]
        fn agrees_with_a_sorted_list(nodes in 1_usize..70, moves in prop::collection::vec((prop::option::of(0_u32..70), any::<bool>(), prop::option::of(0_u64..1000)), 0..300)) {
            let mut schedule = Schedule::new(nodes);
            let mut plain = vec![None; nodes];
            for (node, whole, at) in moves {
                // A node of anybody's choice, or the one that wakes now.
                let next = schedule.next().map(|(_, node)| node);
                let node = node.map_or(next, |node| Some(node % nodes as u32));
                let Some(node) = node else { continue };
                // Either will do for either.
                if whole {
                    schedule.set_next(node, at.map(Instant::from_nanos));
                } else {
                    schedule.set(node, at.map(Instant::from_nanos));
                }
                plain[node as usize] = at;
                let expected = plain.iter().enumerate().filter_map(|(n, at)| at.map(|at| (at, n as u32))).min();
                prop_assert_eq!(schedule.next().map(|(at, n)| (at.as_nanos(), n)), expected);
            }
        }
    }
}
