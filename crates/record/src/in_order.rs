//! Records of bytes that are told late, put in order of time and written.
//!
//! Links tell of their packets late, so what is told waits until the driver says that everything
//! before an instant has been told. Then it is dealt into as many spans of time as there are records,
//! which are sorted each by itself: where things happen about evenly, that takes a few steps a record
//! however many there are. Memory holds what was told between two such calls.

use talkspurt_proto::time::Instant;

/// Records that wait until no earlier one can come.
#[derive(Debug, Default)]
pub(crate) struct InOrder {
    /// The bytes of all records in the order of their telling; behind `used` there is only room.
    bytes: Vec<u8>,
    used: usize,
    told: Vec<Told>,
    /// What is written next, kept for its room.
    dealt: Vec<Told>,
    /// Of each span of time, where its next record goes.
    places: Vec<u32>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Told {
    at: u64,
    from: usize,
    /// At equal times the lesser comes first.
    rank: u32,
    bytes: u32,
}

impl Told {
    const fn key(&self) -> (u64, u32) {
        (self.at, self.rank)
    }
}

impl InOrder {
    /// Takes a record of `most` bytes at most, which `write` writes to the beginning of the room it is
    /// given; it says how many they are. At equal times those of lesser rank come first, at equal
    /// ranks those told first.
    #[inline]
    pub(crate) fn tell(
        &mut self,
        at: Instant,
        rank: u32,
        most: usize,
        write: impl FnOnce(&mut [u8]) -> usize,
    ) {
        let from = self.used;
        if from + most > self.bytes.len() {
            self.bytes.resize((from + most).next_power_of_two(), 0);
        }
        let bytes = write(&mut self.bytes[from..from + most]);
        self.used = from + bytes;
        self.told.push(Told { at: at.as_nanos(), from, rank, bytes: bytes as u32 });
    }

    /// Gives what was before `now` to `write`, with its rank.
    pub(crate) fn write_before(&mut self, now: Instant, mut write: impl FnMut(u32, &[u8])) {
        self.deal();
        let ready = self.dealt.partition_point(|told| told.at < now.as_nanos());
        for told in &self.dealt[..ready] {
            write(told.rank, &self.bytes[told.from..told.from + told.bytes as usize]);
        }
        // What remains is little: what happened at this very instant.
        let mut rest = Self::default();
        for told in &self.dealt[ready..] {
            let bytes = &self.bytes[told.from..told.from + told.bytes as usize];
            rest.tell(Instant::from_nanos(told.at), told.rank, bytes.len(), |room| {
                room.copy_from_slice(bytes);
                bytes.len()
            });
        }
        self.bytes[..rest.used].copy_from_slice(&rest.bytes[..rest.used]);
        self.used = rest.used;
        self.told.clear();
        self.told.append(&mut rest.told);
    }

    /// Puts all that was told in order.
    fn deal(&mut self) {
        let Self { told, dealt, places, .. } = self;
        let first = told.iter().map(|told| told.at).min().unwrap_or_default();
        let last = told.iter().map(|told| told.at).max().unwrap_or_default();
        let spans = told.len().next_power_of_two();
        // The least shift by which the length of all falls below their number.
        let length = u64::BITS - (last - first).leading_zeros();
        let shift = length.saturating_sub(spans.ilog2());
        let span = |told: &Told| ((told.at - first) >> shift) as usize;
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
        // Now the place of each span is the end of its records.
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
    /// What is written of records told at these times and ranks, when everything before each of
    /// `barriers` has been told; each record is a line of its time, its rank and its number.
    fn written(told: &[(u64, u32)], barriers: &[u64]) -> String {
        let (mut page, mut order) = (Vec::new(), InOrder::default());
        let mut numbered = told.iter().enumerate().peekable();
        for barrier in barriers {
            // A driver tells of what is at the barrier, but of nothing behind it.
            while let Some((number, (at, rank))) = numbered.next_if(|(_, (at, _))| at <= barrier) {
                let line = format!("{at} {rank} {number}\n");
                order.tell(Instant::from_nanos(*at), *rank, 200, |room| {
                    room[..line.len()].copy_from_slice(line.as_bytes());
                    line.len()
                });
            }
            order.write_before(Instant::from_nanos(*barrier), |rank, bytes| {
                assert_eq!(
                    bytes.split(|byte| *byte == b' ').nth(1),
                    Some(rank.to_string().as_bytes())
                );
                page.extend_from_slice(bytes);
            });
        }
        String::from_utf8(page).expect("text")
    }

    /// The same by a sort.
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
        // Steps of a congruence: as good as random, and with times in common.
        let step = |i: u64, modulus: u64| i.wrapping_mul(6_364_136_223_846_793_005) >> 7 & modulus;
        let even: Vec<_> = (0..5000).map(|i| (step(i, 0xfff), (i % 5) as u32)).collect();
        assert_eq!(written(&even, &[u64::MAX]), sorted(&even));
        // Nearly all in one instant, and one far away.
        let mut heap: Vec<_> = (0..3000).map(|i| (step(i, 1), step(i, 7) as u32)).collect();
        heap.push((1 << 40, 0));
        assert_eq!(written(&heap, &[u64::MAX]), sorted(&heap));
        // Told a span at a time.
        let mut spans = even.clone();
        spans.sort_by_key(|(at, _)| at / 100);
        spans.iter_mut().for_each(|(at, _)| *at = at.div_ceil(100) * 100);
        let barriers: Vec<u64> = (1..=41).map(|i| 100 * i).chain([u64::MAX]).collect();
        assert_eq!(written(&spans, &barriers), sorted(&spans));
    }
}
