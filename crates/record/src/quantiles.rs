//! Durations of which exact quantiles are needed: all of them are kept, in nanoseconds.

use std::io;

use talkspurt_proto::time::Duration;

use crate::spool::{Beyond, Number, Spool};

/// Durations by key.
#[derive(Debug)]
pub(crate) struct Delays {
    /// Those that fit into 32 bits: up to 4.29 s.
    short: Spool<u32>,
    long: Spool<u64>,
    /// The latest ones, not yet by key.
    latest: Vec<(u32, u64)>,
}

/// Length of `latest`. The keys' lists are extended all at once, because the processor then waits for the
/// memory of many lists at the same time; with thousands of flows, no list's end is in a cache.
const LATEST: usize = 256;

/// Short durations of all keys in memory: 8 MB.
const HELD: usize = 1 << 21;
/// Long ones: 2 MB.
const HELD_LONG: usize = 1 << 18;
/// Parts of a range of values in which a pass counts.
const PARTS: usize = 1 << 16;

impl Delays {
    /// None of `keys` keys; those that exceed the memory go to `beyond`.
    pub(crate) fn new(keys: usize, beyond: Beyond) -> Self {
        Self {
            short: Spool::new(keys, HELD, beyond.clone()),
            long: Spool::new(keys, HELD_LONG, beyond),
            latest: Vec::with_capacity(LATEST),
        }
    }

    #[inline]
    pub(crate) fn push(&mut self, key: usize, delay: Duration) {
        self.latest.push((key as u32, delay.as_nanos()));
        if self.latest.len() == LATEST {
            self.settle();
        }
    }

    /// Adds the latest ones to those of their keys.
    #[inline(never)]
    fn settle(&mut self) {
        for (key, nanos) in self.latest.drain(..) {
            match u32::try_from(nanos) {
                Ok(nanos) => self.short.push(key as usize, nanos),
                Err(_) => self.long.push(key as usize, nanos),
            }
        }
    }

    /// The mean in seconds; `None` of none.
    ///
    /// # Errors
    /// The temporary file cannot be read.
    pub(crate) fn mean_s(&mut self, key: usize) -> io::Result<Option<f64>> {
        self.settle();
        let mut sum = 0_u128;
        self.short.read(key, 0, usize::MAX, |nanos| {
            sum += u128::from(nanos.iter().map(|nanos| u64::from(*nanos)).sum::<u64>());
        })?;
        self.long.read(key, 0, usize::MAX, |nanos| {
            sum += nanos.iter().map(|nanos| u128::from(*nanos)).sum::<u128>();
        })?;
        let count = self.short.len(key) + self.long.len(key);
        Ok((count > 0).then(|| sum as f64 / count as f64 / 1e9))
    }

    /// Nearest-rank quantiles in seconds: for each of these increasing percentages, the smallest value that at
    /// least so many of a hundred values do not exceed. `None` of no value.
    ///
    /// # Errors
    /// The temporary file cannot be read.
    pub(crate) fn quantiles_s<const N: usize>(
        &mut self,
        key: usize,
        percent: [usize; N],
    ) -> io::Result<[Option<f64>; N]> {
        self.settle();
        let short = self.short.len(key);
        let count = short + self.long.len(key);
        if count == 0 {
            return Ok([None; N]);
        }
        let ranks = percent.map(|percent| (count * percent).div_ceil(100).max(1) - 1);
        let split = ranks.partition_point(|rank| *rank < short);
        let above: Vec<usize> = ranks[split..].iter().map(|rank| rank - short).collect();
        let mut nanos = of_ranks(&self.short, key, &ranks[..split])?;
        nanos.extend(of_ranks(&self.long, key, &above)?);
        let seconds = |at| Some(Duration::from_nanos(nanos[at]).as_secs_f64());
        Ok(std::array::from_fn(seconds))
    }
}

/// The values of these increasing ranks among those of a key.
fn of_ranks<T: Number + Ord + Into<u64>>(
    spool: &Spool<T>,
    key: usize,
    ranks: &[usize],
) -> io::Result<Vec<u64>> {
    if ranks.is_empty() {
        return Ok(Vec::new());
    }
    let count = spool.len(key);
    if count > HELD && spool.held(key).is_none() {
        return ranks.iter().map(|rank| counted(spool, key, *rank)).collect();
    }
    let mut all = Vec::with_capacity(count);
    spool.read(key, 0, count, |nanos| all.extend_from_slice(nanos))?;
    Ok(selected(&mut all, ranks))
}

/// The value of this rank, in memory that does not depend on how many values there are: each pass over them
/// counts those in equal parts of a range, and continues with the part that contains the rank.
fn counted<T: Number + Into<u64>>(
    spool: &Spool<T>,
    key: usize,
    mut rank: usize,
) -> io::Result<u64> {
    let (mut least, mut greatest) = (u64::MAX, 0);
    spool.read(key, 0, usize::MAX, |nanos| {
        for nanos in nanos.iter().map(|nanos| (*nanos).into()) {
            (least, greatest) = (least.min(nanos), greatest.max(nanos));
        }
    })?;
    let mut counts = vec![0_usize; PARTS];
    while least < greatest {
        let bits = u64::BITS - (greatest - least).leading_zeros();
        let shift = bits.saturating_sub(PARTS.ilog2());
        counts.fill(0);
        spool.read(key, 0, usize::MAX, |nanos| {
            let nanos = nanos.iter().map(|nanos| (*nanos).into());
            for nanos in nanos.filter(|nanos| (least..=greatest).contains(nanos)) {
                counts[((nanos - least) >> shift) as usize] += 1;
            }
        })?;
        let mut part = 0;
        while rank >= counts[part] {
            rank -= counts[part];
            part += 1;
        }
        least += (part as u64) << shift;
        greatest = greatest.min(least.saturating_add((1 << shift) - 1));
    }
    Ok(least)
}

/// The values of these increasing ranks.
fn selected<T: Copy + Ord + Into<u64>>(mut rest: &mut [T], ranks: &[usize]) -> Vec<u64> {
    let mut passed = 0;
    let mut last = 0;
    let value = |rank: &usize| {
        if *rank >= passed {
            let (_, value, above) = std::mem::take(&mut rest).select_nth_unstable(rank - passed);
            (last, rest, passed) = ((*value).into(), above, rank + 1);
        }
        last
    };
    ranks.iter().map(value).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn sorted_s(mut nanos: Vec<u64>, percent: usize) -> f64 {
        nanos.sort_unstable();
        let rank = (nanos.len() * percent).div_ceil(100).max(1) - 1;
        Duration::from_nanos(nanos[rank]).as_secs_f64()
    }

    proptest! {
        /// Compares with the sorted list: in memory, from the file, and by counting.
        #[test]
        fn quantiles_are_exact(
            nanos in prop::collection::vec(
                prop_oneof![0_u64..9, 0_u64..1 << 34, (1_u64 << 32) - 2..(1 << 32) + 2, (1_u64 << 50)..(1 << 50) + 70_000, any::<u64>()],
                1..200,
            ),
            limit in 1_usize..300,
        ) {
            let mut delays = Delays {
                short: Spool::new(2, limit, Beyond::Temporary),
                long: Spool::new(2, limit, Beyond::Temporary),
                latest: Vec::new(),
            };
            nanos.iter().for_each(|nanos| delays.push(1, Duration::from_nanos(*nanos)));
            let percents = [1, 50, 95, 99, 100];
            let wanted = percents.map(|percent| Some(sorted_s(nanos.clone(), percent)));
            prop_assert_eq!(delays.quantiles_s(1, percents).unwrap(), wanted);
            for (percent, wanted) in percents.into_iter().zip(wanted) {
                let rank = (nanos.len() * percent).div_ceil(100).max(1) - 1;
                let short = delays.short.len(1);
                let counted = match rank.checked_sub(short) {
                    None => counted(&delays.short, 1, rank),
                    Some(rank) => counted(&delays.long, 1, rank),
                };
                prop_assert_eq!(Some(Duration::from_nanos(counted.unwrap()).as_secs_f64()), wanted);
            }
            let sum: u128 = nanos.iter().map(|nanos| u128::from(*nanos)).sum();
            prop_assert_eq!(delays.mean_s(1).unwrap(), Some(sum as f64 / nanos.len() as f64 / 1e9));
            prop_assert_eq!(delays.quantiles_s(0, percents).unwrap(), [None; 5]);
            prop_assert_eq!(delays.mean_s(0).unwrap(), None);
        }
    }
}
