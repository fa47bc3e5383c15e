//! Packets on a medium in order of arrival: a ring whose length is a power of two, so that indexing needs no
//! division or comparison. Each hop adds one packet and removes one.

use talkspurt_proto::packet::Packet;
use talkspurt_proto::prefetch::prefetch;
use talkspurt_proto::time::Instant;

/// The packets and their arrival times.
#[derive(Debug, Default)]
pub(crate) struct Flight {
    slots: Box<[(Instant, Packet)]>,
    /// The first packet's slot.
    head: u32,
    count: u32,
}

impl Flight {
    /// Initial capacity, allocated with the first packet.
    const LEAST: usize = 1;

    /// Number of packets in flight.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.count as usize
    }

    /// The packet that arrives first, and when.
    #[inline]
    pub(crate) fn first(&self) -> Option<&(Instant, Packet)> {
        if self.count > 0 { self.slots.get(self.head as usize) } else { None }
    }

    /// The packet that arrives after so many others.
    #[inline]
    pub(crate) fn nth(&self, others: u32) -> Option<&Packet> {
        if self.count > others { Some(&self.slots[self.slot(others)].1) } else { None }
    }

    /// Requests it from memory, and the place of the packet that is appended next.
    #[inline]
    pub(crate) fn prefetch(&self, others: u32) {
        if self.count > others {
            prefetch(&self.slots[self.slot(others)], 1);
            prefetch(&self.slots[self.slot(self.count)], 2);
        }
    }

    /// When the last of them arrives.
    pub(crate) fn last_arrival(&self) -> Option<Instant> {
        let last = self.count.checked_sub(1)?;
        Some(self.slots[self.slot(last)].0)
    }

    /// Appends a packet; returns its label in place.
    #[inline(always)]
    pub(crate) fn push(&mut self, arrival: Instant, packet: &Packet) -> &mut Packet {
        if self.len() == self.slots.len() {
            self.grow((arrival, *packet));
        }
        let at = self.slot(self.count);
        self.count += 1;
        let slot = &mut self.slots[at];
        *slot = (arrival, *packet);
        &mut slot.1
    }

    /// Inserts a packet after those that arrive no later.
    pub(crate) fn insert(&mut self, arrival: Instant, packet: &Packet) {
        self.push(arrival, packet);
        let mut at = self.count - 1;
        while at > 0 && self.slots[self.slot(at - 1)].0 > arrival {
            let (before, here) = (self.slot(at - 1), self.slot(at));
            self.slots.swap(before, here);
            at -= 1;
        }
    }

    /// Removes the first packet. With few in flight, the next one reuses its slot, which is still in the cache;
    /// the slots of all links do not fit.
    #[inline]
    pub(crate) fn pop(&mut self) {
        if self.count > 0 {
            self.count -= 1;
            self.head = if self.count == 0 { 0 } else { self.slot(1) as u32 };
        }
    }

    #[inline]
    fn slot(&self, at: u32) -> usize {
        (self.head + at) as usize & self.slots.len().wrapping_sub(1)
    }

    /// Doubles the capacity; unused slots hold `filler`.
    #[cold]
    fn grow(&mut self, filler: (Instant, Packet)) {
        let mut slots = std::mem::take(&mut self.slots).into_vec();
        slots.rotate_left(self.head as usize);
        slots.resize((2 * slots.len()).max(Self::LEAST), filler);
        (self.slots, self.head) = (slots.into_boxed_slice(), 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn packet(number: u32) -> Packet {
        Packet { ip_bytes: 40, number, ..Packet::default() }
    }

    proptest! {
        /// Compares with a plain list, stably sorted by arrival.
        #[test]
        fn leaves_in_order_of_arrival(moves in prop::collection::vec(prop::option::of((any::<bool>(), 0_u64..50)), 0..300)) {
            let (mut flight, mut plain) = (Flight::default(), Vec::<(Instant, u32)>::new());
            for (number, step) in (0..).zip(moves) {
                match step {
                    Some((true, at)) => {
                        let at = Instant::from_nanos(at);
                        flight.insert(at, &packet(number));
                        plain.push((at, number));
                        plain.sort_by_key(|(at, _)| *at);
                    }
                    Some((false, later)) => {
                        let last = flight.last_arrival().unwrap_or(Instant::ZERO).as_nanos();
                        let at = Instant::from_nanos(last + later);
                        flight.push(at, &packet(number)).hop += 1;
                        plain.push((at, number));
                    }
                    None => {
                        flight.pop();
                        if !plain.is_empty() {
                            plain.remove(0);
                        }
                    }
                }
                let first = flight.first().map(|(at, packet)| (*at, packet.number));
                prop_assert_eq!(first, plain.first().copied());
                prop_assert_eq!(flight.last_arrival(), plain.last().map(|(at, _)| *at));
                prop_assert_eq!(flight.len(), plain.len());
            }
        }
    }
}
