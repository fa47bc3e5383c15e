//! Open numbers that are not yet settled: packets in flight, frames in the send queue.
//!
//! Two bits per number in a window that slides over the unsettled ones, so memory grows with the data in
//! flight and not with the length of the run.

use std::collections::VecDeque;

/// Increasing numbers that are opened once and settled once.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Pending {
    /// First number of `last`, a multiple of 64.
    base: u32,
    /// The word of the last opened number, which nearly all calls use.
    last: Word,
    /// The words before it; the first of them had an open number when it was added.
    #[expect(
        clippy::box_collection,
        reason = "a third of the cache line that every packet touches"
    )]
    earlier: Box<VecDeque<Word>>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Word {
    open: u64,
    /// Which of the opened numbers carry data.
    data: u64,
}

impl Pending {
    /// Opens a number; false if it is already open or before the last word.
    #[inline]
    pub(crate) fn open(&mut self, number: u32, data: bool) -> bool {
        let Some(offset) = number.checked_sub(self.base) else { return false };
        if offset >= 64 {
            self.advance(number);
        }
        let bit = 1_u64 << (number % 64);
        let fresh = self.last.open & bit == 0;
        self.last.open |= bit;
        self.last.data |= u64::from(data) << (number % 64);
        fresh
    }

    /// Settles a number and returns whether it carried data; `None` if it was not open.
    #[inline]
    pub(crate) fn settle(&mut self, number: u32) -> Option<bool> {
        let bit = 1_u64 << (number % 64);
        let word = match number.checked_sub(self.base) {
            Some(offset) if offset >= 64 => return None,
            Some(_) => &mut self.last,
            None => self.before(number)?,
        };
        if word.open & bit == 0 {
            return None;
        }
        word.open &= !bit;
        Some(word.data & bit != 0)
    }

    /// Opens and settles consecutive numbers, which carry data; false, with no change, if one of them is open
    /// or before the last word.
    pub(crate) fn pass(&mut self, first: u32, end: u32) -> bool {
        let bits = |from: u32, to: u32| (u64::MAX >> (64 - (to - from))) << (from % 64);
        let word_end = |base: u32| end.min(base.saturating_add(64));
        if first < self.base || first >= end {
            return first >= end;
        }
        // Later words have no open numbers.
        if first - self.base < 64 && self.last.open & bits(first, word_end(self.base)) != 0 {
            return false;
        }
        let mut number = first;
        while number < end {
            if number - self.base >= 64 {
                self.advance(number);
            }
            let next = word_end(self.base);
            self.last.data |= bits(number, next);
            number = next;
        }
        true
    }

    /// Advances to the word of `number` and drops leading settled words: their numbers will not be opened
    /// again.
    #[cold]
    fn advance(&mut self, number: u32) {
        let next = number - number % 64;
        while self.base < next {
            if self.last.open != 0 || !self.earlier.is_empty() {
                self.earlier.push_back(self.last);
            }
            self.last = Word::default();
            self.base += 64;
        }
        while self.earlier.front().is_some_and(|word| word.open == 0) {
            self.earlier.pop_front();
        }
    }

    #[cold]
    fn before(&mut self, number: u32) -> Option<&mut Word> {
        let back = ((self.base - number).div_ceil(64)) as usize;
        let at = self.earlier.len().checked_sub(back)?;
        Some(&mut self.earlier[at])
    }

    /// Numbers with data that are still open.
    pub(crate) fn open_data(&self) -> impl Iterator<Item = u32> {
        self.bits(|word| word.open & word.data)
    }

    /// For every open number with data, oldest first: the count of numbers with data opened after it.
    pub(crate) fn open_data_from_end(&self) -> Vec<usize> {
        let data: Vec<u32> = self.bits(|word| word.data).collect();
        self.open_data()
            .map(|number| data.len() - 1 - data.partition_point(|&other| other < number))
            .collect()
    }

    fn bits(&self, of: impl Fn(&Word) -> u64) -> impl Iterator<Item = u32> {
        let base = self.base - 64 * self.earlier.len() as u32;
        let words = self.earlier.iter().chain(std::iter::once(&self.last));
        words.enumerate().flat_map(move |(index, word)| {
            let bits = of(word);
            let first = base + 64 * index as u32;
            (0..64).filter(move |bit| bits >> bit & 1 == 1).map(move |bit| first + bit)
        })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Compares with a plain map, over numbers that skip words, some of them fully settled; no number
        /// before the last word is opened again.
        #[test]
        fn agrees_with_a_map(steps in prop::collection::vec((0_u32..150, any::<bool>(), 0_usize..9), 0..200)) {
            let (mut pending, mut plain, mut next) = (Pending::default(), BTreeMap::new(), 0);
            for (skip, data, what) in steps {
                match what {
                    0..4 => {
                        next += skip;
                        prop_assert_eq!(pending.open(next, data), plain.insert(next, data).is_none());
                        if let Some(early) = (next - next % 64).checked_sub(1) {
                            prop_assert!(!pending.open(early, data));
                        }
                        next += 1;
                    }
                    4..8 => {
                        let some = plain.keys().nth(skip as usize % plain.len().max(1)).copied();
                        let number = some.unwrap_or(skip);
                        prop_assert_eq!(pending.settle(number), plain.remove(&number));
                    }
                    _ => while let Some((number, data)) = plain.pop_first() {
                        prop_assert_eq!(pending.settle(number), Some(data));
                    },
                }
                prop_assert!(pending.open_data().eq(plain.iter().filter(|(_, data)| **data).map(|(n, _)| *n)));
            }
        }
    }

    proptest! {
        /// Numbers that pass leave the state of numbers that are opened and settled in turn; if one of them is
        /// open, the state does not change.
        #[test]
        fn passing_is_opening_and_settling(
            steps in prop::collection::vec((0_u32..100, 0_u32..200, any::<bool>()), 0..50),
        ) {
            let (mut pending, mut next) = (Pending::default(), 0_u32);
            for (back, length, passes) in steps {
                let first = if passes { next } else { next.saturating_sub(back) };
                let end = first + length;
                let before = pending.clone();
                let mut each = pending.clone();
                let fits = (first..end).all(|number| {
                    let fresh = each.open(number, true);
                    each.settle(number);
                    fresh
                });
                prop_assert_eq!(pending.pass(first, end), fits);
                prop_assert_eq!(&pending, if fits { &each } else { &before });
                next = next.max(end);
                if back % 3 == 0 {
                    pending.open(next, true);
                    next += 1;
                }
            }
        }
    }

    #[test]
    fn settles_in_any_order_and_only_once() {
        let mut pending = Pending::default();
        for number in 0..1000 {
            assert!(pending.open(number, number % 3 == 0));
        }
        assert!(!pending.open(999, true));
        for number in (0..1000).rev().filter(|n| n % 7 != 0) {
            assert_eq!(pending.settle(number), Some(number % 3 == 0));
            assert_eq!(pending.settle(number), None);
        }
        assert!(pending.open_data().eq((0..1000).step_by(21)));
    }

    #[test]
    fn memory_follows_what_is_open() {
        let mut pending = Pending::default();
        for number in 0..100_000 {
            pending.open(number, true);
            pending.settle(number);
        }
        assert!(pending.earlier.len() <= 1);
        assert_eq!(pending.settle(3), None);
    }

    #[test]
    fn ranks_count_data_only() {
        let mut pending = Pending::default();
        for (number, data) in [true, false, true, true, false, true].into_iter().enumerate() {
            pending.open(number as u32, data);
        }
        pending.settle(2);
        pending.settle(5);
        assert_eq!(pending.open_data_from_end(), [3, 1]);
    }
}
