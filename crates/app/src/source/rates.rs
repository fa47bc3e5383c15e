//! Sizes of an encoder's frames at several rates: the map "Traces" of RFC 8593 §6.1.
//!
//! ```text
//! # a talking head, 30 pictures a second
//! 300kbit/s, 600kbit/s, 1200kbit/s
//! 9120, 15204, 26011
//! 811, 1822, 4103
//! ```

use std::path::Path;

use talkspurt_proto::units::Rate;

use crate::file::Files;
use crate::table::{self, Lines};

/// Frames at the start of the table that are not repeated with it (RFC 8593 §6.2.1: SkipFrames).
const SKIPPED: usize = 20;
/// Bounds of a frame in bytes (fs_min and fs_max).
const LEAST: f64 = 10.0;
const MOST: f64 = 1e6;

/// Frame sizes by rate.
#[derive(Clone, Debug, PartialEq)]
pub struct FrameRates {
    /// Rates of the columns in bit/s, in ascending order.
    rates: Vec<f64>,
    /// Bytes of each frame at each of these rates.
    frames: Vec<Vec<f64>>,
}

impl FrameRates {
    /// Reads a file.
    ///
    /// # Errors
    /// The fault, with the line if there is one.
    pub fn open(files: &dyn Files, path: &Path) -> Result<Self, String> {
        Self::parse(&table::text(files, path, "a table of frame sizes at several rates")?)
    }

    /// Reads a text.
    ///
    /// # Errors
    /// As [`FrameRates::open`].
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut lines = Lines::of(text);
        let head = lines.next().ok_or("is empty")?;
        let rates = head.cells.iter().map(|cell| {
            let rate = cell.parse::<Rate>().ok().filter(|rate| *rate > Rate::ZERO);
            let rate = rate.map(|rate| rate.as_bps() as f64);
            rate.ok_or_else(|| {
                format!(
                    "line {}: \"{}\" is no rate: for an encoder the first line has a rate such as 500kbit/s for \
                     each column",
                    head.number,
                    cell.escape_debug()
                )
            })
        });
        let rates = rates.collect::<Result<Vec<_>, _>>()?;
        if !rates.is_sorted_by(|a, b| a < b) {
            return Err(format!("line {}: rates have to rise from column to column", head.number));
        }
        let mut frames = Vec::new();
        for line in lines {
            let in_line = |fault: String| format!("line {}: {fault}", line.number);
            if line.cells.len() != rates.len() {
                let found = line.cells.len();
                return Err(in_line(format!("{found} sizes for {} rates", rates.len())));
            }
            let sizes = line.cells.iter().map(|cell| {
                let size = cell.parse::<f64>().ok().filter(|size| (1.0..=MOST).contains(size));
                size.ok_or_else(|| {
                    in_line(format!("\"{}\" is no size of 1 to {MOST} bytes", cell.escape_debug()))
                })
            });
            frames.push(sizes.collect::<Result<Vec<_>, _>>()?);
            if frames.len() > table::MAX_LINES {
                return Err(format!("has more than {} frames", table::MAX_LINES));
            }
        }
        if frames.is_empty() {
            return Err("has no frames".to_owned());
        }
        Ok(Self { rates, frames })
    }

    /// Bytes of a frame at a rate (RFC 8593 §6.2.1).
    #[must_use]
    pub(super) fn size(&self, frame: usize, rate: f64) -> f64 {
        let sizes = &self.frames[frame];
        let above = self.rates.partition_point(|known| *known <= rate);
        let (first, last) = (self.rates[0], self.rates.len() - 1);
        let size = if above == 0 {
            rate / first * sizes[0]
        } else if above > last {
            rate / self.rates[last] * sizes[last]
        } else {
            let [low, high] = [self.rates[above - 1], self.rates[above]];
            let share = (rate - low) / (high - low);
            sizes[above] * share + sizes[above - 1] * (1.0 - share)
        };
        size.clamp(LEAST, MOST)
    }

    /// The frame after another one.
    #[must_use]
    pub(super) fn next(&self, frame: usize) -> usize {
        let again = if self.frames.len() > SKIPPED { SKIPPED } else { 0 };
        if frame + 1 < self.frames.len() { frame + 1 } else { again }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> FrameRates {
        FrameRates::parse("# made by hand\n200kbit/s,400kbit/s\n8000,16000\n800,1000\n")
            .expect("valid")
    }

    /// RFC 8593 §6.2.1, cases a, b and c, by hand.
    #[test]
    fn sizes_are_interpolated_between_rates_and_scaled_beyond_them() {
        let table = table();
        assert_eq!([0, 1].map(|frame| table.size(frame, 300_000.0)), [12_000.0, 900.0]);
        assert_eq!(table.size(1, 200_000.0), 800.0);
        assert_eq!(table.size(1, 100_000.0), 400.0);
        assert_eq!(table.size(1, 800_000.0), 2000.0);
        assert_eq!(table.size(1, 1.0), LEAST);
    }

    #[test]
    fn the_first_frames_are_not_repeated() {
        let long = format!("1Mbit/s\n{}", "1000\n".repeat(30));
        let long = FrameRates::parse(&long).expect("valid");
        assert_eq!([long.next(0), long.next(28), long.next(29)], [1, 29, 20]);
        assert_eq!(table().next(1), 0);
    }

    #[test]
    fn faults_name_their_line() {
        for (text, fault) in [
            ("", "is empty"),
            ("1Mbit/s\n", "has no frames"),
            ("time,size\n0,1\n", "line 1: \"time\" is no rate"),
            ("2Mbit/s,1Mbit/s\n1,1\n", "line 1: rates have to rise"),
            ("1Mbit/s,2Mbit/s\n1\n", "line 2: 1 sizes for 2 rates"),
            ("1Mbit/s\n100\nnan\n", "line 3: \"nan\" is no size"),
            ("1Mbit/s\n0\n", "line 2: \"0\" is no size"),
        ] {
            let found = FrameRates::parse(text).expect_err(text);
            assert!(found.starts_with(fault), "{text:?}: {found}");
        }
    }
}
