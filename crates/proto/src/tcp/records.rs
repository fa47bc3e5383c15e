//! The segments in flight, ascending and without gaps, in a ring buffer whose length is a power of two: each
//! segment is pushed once, written in place, and popped once, which a ring does without calls.

use crate::seq::Seq;
use crate::time::Instant;

/// A segment in flight.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Record {
    pub(super) start: Seq,
    pub(super) end: Seq,
    /// When it was last sent.
    pub(super) sent: Instant,
    /// Segments sent before it, modulo 2³²: the order of those sent at one instant.
    pub(super) order: u32,
    /// The peer has acknowledged it.
    pub(super) sacked: bool,
    /// Marked lost.
    pub(super) lost: bool,
    /// Retransmitted since it was marked lost.
    pub(super) resent: bool,
    /// Ever retransmitted, so that its RTT is ambiguous (RFC 6298 §3).
    pub(super) ambiguous: bool,
}

impl Record {
    /// RFC 8985 §6.2 step 2, RACK_sent_after, by the order of transmission itself.
    pub(super) fn left_after(&self, (sent, order): (Instant, u32)) -> bool {
        self.sent > sent || (self.sent == sent && self.order.wrapping_sub(order) as i32 > 0)
    }

    pub(super) fn len(&self) -> u64 {
        self.end.since(self.start)
    }
}

/// The records of a scoreboard.
#[derive(Debug, Default)]
pub(super) struct Records {
    slots: Vec<Record>,
    /// The first record's slot.
    head: usize,
    count: usize,
}

impl Records {
    /// Capacity allocated when the first segment is sent.
    const LEAST: usize = 16;

    #[inline]
    pub(super) fn len(&self) -> usize {
        self.count
    }

    #[inline]
    fn slot(&self, at: usize) -> usize {
        (self.head + at) & self.slots.len().wrapping_sub(1)
    }

    #[inline]
    pub(super) fn get(&self, at: usize) -> Option<&Record> {
        if at < self.count { self.slots.get(self.slot(at)) } else { None }
    }

    #[inline]
    pub(super) fn get_mut(&mut self, at: usize) -> Option<&mut Record> {
        let slot = self.slot(at);
        if at < self.count { self.slots.get_mut(slot) } else { None }
    }

    #[inline]
    pub(super) fn first(&self) -> Option<&Record> {
        self.get(0)
    }

    #[inline]
    pub(super) fn first_mut(&mut self) -> Option<&mut Record> {
        self.get_mut(0)
    }

    pub(super) fn last(&self) -> Option<&Record> {
        self.get(self.count.checked_sub(1)?)
    }

    /// Records from index `from` on.
    pub(super) fn from(&self, from: usize) -> impl DoubleEndedIterator<Item = &Record> {
        (from..self.count).map(|at| &self.slots[self.slot(at)])
    }

    /// Visits each record mutably, with its index.
    pub(super) fn each(&mut self, mut change: impl FnMut(usize, &mut Record)) {
        for at in 0..self.count {
            let slot = self.slot(at);
            change(at, &mut self.slots[slot]);
        }
    }

    /// Index of the first record that ends after `seq`.
    #[inline]
    pub(super) fn after(&self, seq: Seq) -> usize {
        let Some(first) = self.first() else { return 0 };
        // Most segments are as long as the first; each step of a search costs cache misses and mispredictions.
        let guess = (seq.since(first.start) / first.len().max(1)) as usize;
        match self.get(guess) {
            Some(record) if record.start <= seq && seq < record.end => guess,
            _ => self.search(seq),
        }
    }

    #[inline(never)]
    fn search(&self, seq: Seq) -> usize {
        let (mut low, mut high) = (0, self.count);
        while low < high {
            let middle = usize::midpoint(low, high);
            if self.slots[self.slot(middle)].end <= seq { low = middle + 1 } else { high = middle }
        }
        low
    }

    /// Appends a segment never sent before. Written in place: moving data just written stalls.
    #[inline(always)]
    pub(super) fn push(&mut self, start: Seq, end: Seq, sent: Instant, order: u32) {
        if self.count == self.slots.len() {
            self.grow();
        }
        let slot = self.slot(self.count);
        self.count += 1;
        let (sacked, lost, resent, ambiguous) = (false, false, false, false);
        self.slots[slot] = Record { start, end, sent, order, sacked, lost, resent, ambiguous };
    }

    /// Inserts a record at an index.
    pub(super) fn insert(&mut self, at: usize, record: Record) {
        self.push(record.start, record.end, record.sent, record.order);
        let mut last = self.slot(self.count - 1);
        self.slots[last] = record;
        for before in (at..self.count - 1).rev() {
            let slot = self.slot(before);
            self.slots.swap(slot, last);
            last = slot;
        }
    }

    /// Removes the first.
    #[inline]
    pub(super) fn pop(&mut self) {
        if self.count > 0 {
            self.head = self.slot(1);
            self.count -= 1;
        }
    }

    #[cold]
    fn grow(&mut self) {
        self.slots.rotate_left(self.head);
        self.slots.resize((2 * self.slots.len()).max(Self::LEAST), Record::default());
        self.head = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn at(place: u64) -> Seq {
        Seq::first(7) + place
    }

    proptest! {
        /// Compared with a plain list.
        #[test]
        fn agrees_with_a_list(
            steps in proptest::collection::vec((0..8_u8, 1..40_u64, 0..2000_u64), 1..400),
        ) {
            let (mut records, mut list, mut end) = (Records::default(), Vec::<Record>::new(), 0);
            for (act, len, place) in steps {
                match act {
                    // Most segments are as long as the first.
                    0..=3 => {
                        let len = if act < 3 { 10 } else { len };
                        let sent = Instant::from_nanos(place);
                        records.push(at(end), at(end + len), sent, 0);
                        let (start, end) = (at(end), at(end + len));
                        list.push(Record { start, end, sent, ..Record::default() });
                    }
                    4 | 5 => {
                        records.pop();
                        list.drain(..list.len().min(1));
                    }
                    6 => {
                        let which = place as usize % list.len().max(1);
                        prop_assert_eq!(records.get_mut(which).is_some(), which < list.len());
                        for record in [records.get_mut(which), list.get_mut(which)] {
                            record.into_iter().for_each(|record| record.lost = true);
                        }
                    }
                    // Splits a segment.
                    _ => {
                        let which = place as usize % list.len().max(1);
                        if list.get(which).is_some_and(|whole| whole.len() > 1) {
                            let middle = list[which].start + 1;
                            let rest = Record { start: middle, sacked: true, ..list[which] };
                            list.insert(which + 1, rest);
                            list[which].end = middle;
                            records.insert(which + 1, rest);
                            records.get_mut(which).into_iter().for_each(|it| it.end = middle);
                        }
                    }
                }
                end = list.last().map_or(end, |last| last.end.since(at(0)));
                let fields = |it: &Record| (it.start, it.end, it.sent, it.sacked, it.lost);
                let all: Vec<_> = records.from(0).map(fields).collect();
                prop_assert_eq!(&all, &list.iter().map(fields).collect::<Vec<_>>());
                prop_assert_eq!(records.len(), list.len());
                prop_assert_eq!(records.first().map(fields), list.first().map(fields));
                prop_assert_eq!(records.last().map(fields), list.last().map(fields));
                for seq in [at(place), at(end.saturating_sub(place)), at(0), at(end)] {
                    prop_assert_eq!(records.after(seq), list.partition_point(|it| it.end <= seq));
                }
            }
        }
    }
}
