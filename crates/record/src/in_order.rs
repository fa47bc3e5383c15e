//! Sorts records that are reported late by time.
//!
//! Links report packets late, so records are held until the driver declares that everything before an
//! instant has been reported. They are then distributed over as many time intervals as there are records,
//! and each interval is sorted by itself: for evenly spread times, this takes a few steps a record
//! regardless of their number. Memory holds the records between two such calls.

use talkspurt_proto::time::Instant;

/// Records held until no earlier one can arrive.
#[derive(Debug, Default)]
pub(crate) struct InOrder<T> {
    told: Vec<Told<T>>,
    /// Records to write next; the allocation is reused.
    dealt: Vec<Told<T>>,
    /// For each interval, the index of its next record.
    places: Vec<u32>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Told<T> {
    at: u64,
    /// At equal times, lower ranks come first.
    rank: u32,
    what: T,
}

impl<T> Told<T> {
    const fn key(&self) -> (u64, u32) {
        (self.at, self.rank)
    }
}

impl<T: Copy + Default> InOrder<T> {
    /// Adds a record. At equal times lower ranks come first; at equal ranks, records keep their order.
    #[inline]
    pub(crate) fn tell(&mut self, at: Instant, rank: u32, what: T) {
        self.told.push(Told { at: at.as_nanos(), rank, what });
    }

    /// Passes records before `now` to `write`, with their time and rank.
    pub(crate) fn write_before(&mut self, now: Instant, mut write: impl FnMut(Instant, u32, T)) {
        self.deal();
        let ready = self.dealt.partition_point(|told| told.at < now.as_nanos());
        for told in &self.dealt[..ready] {
            write(Instant::from_nanos(told.at), told.rank, told.what);
        }
        // Few records remain: those of this very instant.
        self.told.clear();
        self.told.extend_from_slice(&self.dealt[ready..]);
    }

    /// The held records.
    pub(crate) fn waiting_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.told.iter_mut().map(|told| &mut told.what)
    }

    /// Sorts all held records.
    fn deal(&mut self) {
        let Self { told, dealt, places, .. } = self;
        let first = told.iter().map(|told| told.at).min().unwrap_or_default();
        let last = told.iter().map(|told| told.at).max().unwrap_or_default();
        let spans = told.len().next_power_of_two();
        // The smallest shift by which the total length falls below the number of records.
        let length = u64::BITS - (last - first).leading_zeros();
        let shift = length.saturating_sub(spans.ilog2());
        let span = |told: &Told<T>| ((told.at - first) >> shift) as usize;
        places.clear();
        places.resize(spans + 1, 0);
        for told in told.iter() {
            places[span(told) + 1] += 1;
        }
        let mut before = 0;
        for place in places.iter_mut() {
            before += *place;
            *place = before;
        }
        dealt.clear();
        dealt.resize(told.len(), Told::default());
        for told in told.iter() {
            let place = &mut places[span(told)];
            dealt[*place as usize] = *told;
            *place += 1;
        }
        // Now each interval's index is the end of its records.
        let mut begin = 0;
        for end in &places[..spans] {
            let end = *end as usize;
            if end - begin > 1 {
                dealt[begin..end].sort_by_key(Told::key);
            }
            begin = end;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The output for records with these times and ranks, when everything before each of `barriers` has
    /// been reported; each record is a line of its time, its rank and its number.
    fn written(told: &[(u64, u32)], barriers: &[u64]) -> String {
        let (mut page, mut order) = (String::new(), InOrder::default());
        let mut numbered = told.iter().enumerate().peekable();
        for barrier in barriers {
            // A driver reports records at the barrier, but none after it.
            while let Some((number, (at, rank))) = numbered.next_if(|(_, (at, _))| at <= barrier) {
                order.tell(Instant::from_nanos(*at), *rank, number);
            }
            order.write_before(Instant::from_nanos(*barrier), |at, rank, number| {
                page.push_str(&format!("{} {rank} {number}\n", at.as_nanos()));
            });
        }
        page
    }

    /// The same by sorting.
    fn sorted(told: &[(u64, u32)]) -> String {
        let mut all: Vec<_> = told.iter().zip(0..).collect();
        all.sort_by_key(|(key, number)| (**key, *number));
        all.iter().map(|((at, rank), number)| format!("{at} {rank} {number}\n")).collect()
    }

    #[test]
    fn records_are_written_by_time_then_rank_then_telling() {
        let told = [(5, 1), (3, 2), (3, 0), (5, 1), (5, 0), (0, 9), (3, 0), (9, 0)];
        assert_eq!(written(&told, &[u64::MAX]), sorted(&told));
        assert_eq!(written(&[], &[7]), "");
        assert_eq!(written(&[(7, 0)], &[7]), "", "it may not be the last of its instant");
        assert_eq!(written(&[(7, 1), (7, 0)], &[7, 8]), "7 0 1\n7 1 0\n");
        let (few, extremes) = ([(u64::MAX - 1, 0), (0, 0)], [(1 << 63, 3), (1, 2), (1, 1)]);
        assert_eq!(written(&few, &[u64::MAX]), sorted(&few));
        assert_eq!(written(&extremes, &[u64::MAX]), sorted(&extremes));
    }

    #[test]
    fn many_are_in_order_however_they_lie() {
        // A linear congruential sequence: as good as random, and with repeated times.
        let step = |i: u64, modulus: u64| i.wrapping_mul(6_364_136_223_846_793_005) >> 7 & modulus;
        let even: Vec<_> = (0..5000).map(|i| (step(i, 0xfff), (i % 5) as u32)).collect();
        assert_eq!(written(&even, &[u64::MAX]), sorted(&even));
        // Nearly all in one instant, and one far away.
        let mut heap: Vec<_> = (0..3000).map(|i| (step(i, 1), step(i, 7) as u32)).collect();
        heap.push((1 << 40, 0));
        assert_eq!(written(&heap, &[u64::MAX]), sorted(&heap));
        // Reported one interval at a time.
        let mut spans = even.clone();
        spans.sort_by_key(|(at, _)| at / 100);
        spans.iter_mut().for_each(|(at, _)| *at = at.div_ceil(100) * 100);
        let barriers: Vec<u64> = (1..=41).map(|i| 100 * i).chain([u64::MAX]).collect();
        assert_eq!(written(&spans, &barriers), sorted(&spans));
    }
}
