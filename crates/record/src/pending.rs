//! What has been opened and not yet settled: packets on their way, frames in the send queue.
//!
//! Two bits per number in a window that slides over the unsettled ones, so that memory follows
//! what is in flight and not the length of the run.

use std::collections::VecDeque;

/// Numbers in increasing order that are opened once and settled once.
#[derive(Clone, Debug, Default)]
pub(crate) struct Pending {
    /// First number of the first word, a multiple of 64.
    base: u32,
    words: VecDeque<Word>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Word {
    open: u64,
    /// Which of the numbers ever opened carry data.
    data: u64,
}

impl Pending {
    /// Opens a number; false if it is open already or lies before the window.
    pub(crate) fn open(&mut self, number: u32, data: bool) -> bool {
        let Some(offset) = number.checked_sub(self.base) else { return false };
        let word = (offset / 64) as usize;
        while word >= self.words.len() {
            self.words.push_back(Word::default());
        }
        let bit = 1_u64 << (number % 64);
        let word = &mut self.words[word];
        let fresh = word.open & bit == 0;
        word.open |= bit;
        word.data |= if data { bit } else { 0 };
        self.slide();
        fresh
    }

    /// Settles a number and tells whether it carried data; `None` if it was not open.
    pub(crate) fn settle(&mut self, number: u32) -> Option<bool> {
        let offset = number.checked_sub(self.base)?;
        let bit = 1_u64 << (number % 64);
        let word = self.words.get_mut((offset / 64) as usize)?;
        if word.open & bit == 0 {
            return None;
        }
        word.open &= !bit;
        Some(word.data & bit != 0)
    }

    /// Forgets settled words that later ones follow: their numbers will not be opened again.
    fn slide(&mut self) {
        while self.words.len() > 1 && self.words[0].open == 0 {
            self.words.pop_front();
            self.base += 64;
        }
    }

    /// Numbers with data that are still open.
    pub(crate) fn open_data(&self) -> impl Iterator<Item = u32> {
        self.bits(|word| word.open & word.data)
    }

    /// For every open number with data, oldest first: how many with data were opened after it.
    pub(crate) fn open_data_from_end(&self) -> Vec<usize> {
        let data: Vec<u32> = self.bits(|word| word.data).collect();
        self.open_data()
            .map(|number| data.len() - 1 - data.partition_point(|&other| other < number))
            .collect()
    }

    fn bits(&self, of: impl Fn(&Word) -> u64) -> impl Iterator<Item = u32> {
        let base = self.base;
        self.words.iter().enumerate().flat_map(move |(index, word)| {
            let bits = of(word);
            let first = base + 64 * index as u32;
            (0..64).filter(move |bit| bits >> bit & 1 == 1).map(move |bit| first + bit)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
        assert!(pending.words.len() <= 2);
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
