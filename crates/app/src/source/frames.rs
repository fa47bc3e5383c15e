//! Sizes of video frames from an encoder: a table, a list of sizes, or the output of ffprobe.
//!
//! ```text
//! # what it was made from
//! time,type,size
//! 0ms,I,15204B
//! 40ms,P,1822B
//! ```

use std::path::Path;

use talkspurt_proto::time::Duration;
use talkspurt_proto::units::Size;

use crate::file::Files;
use crate::table::{self, Lines, MAX_LINES, SIZE, TIME, Table, decimal};

use super::config::Video;
use super::ffprobe::{self, Sized};

/// Maximum frame size: a larger value suggests a missing decimal point.
const MAX_BYTES: u64 = 1 << 30;

/// The frames of a trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FrameTrace {
    /// In time order; at least two.
    pub frames: Vec<Frame>,
    /// Period of repetition: the last frame lasts as long as the one before.
    pub period: Duration,
    /// Whether the file has times; otherwise the interval is the source's.
    pub is_timed: bool,
    /// What was read otherwise than written, or not at all.
    pub notes: Vec<String>,
}

/// One frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame {
    /// When the encoder produced it, relative to the first.
    pub at: Duration,
    /// Bytes.
    pub size: u64,
}

impl FrameTrace {
    /// Reads a file; without times in it, a frame comes every `interval`.
    ///
    /// # Errors
    /// The fault, with the line if there is one.
    pub fn open(files: &dyn Files, path: &Path, interval: Duration) -> Result<Self, String> {
        Self::parse(&table::text(files, path, "a list of video frames")?, interval)
    }

    /// Reads a text.
    ///
    /// # Errors
    /// As [`FrameTrace::open`].
    pub fn parse(text: &str, interval: Duration) -> Result<Self, String> {
        let mut others = Vec::new();
        let entries = match ffprobe::read(text) {
            Some(entries) => entries?,
            None if is_list(text) => list(text)?,
            None => named(text, &mut others)?,
        };
        let mut frames: Vec<Frame> = Vec::with_capacity(entries.len());
        let mut times: Vec<i64> = Vec::new();
        for (time, size, line) in &entries {
            let in_line = |fault: String| match line {
                0 => fault,
                line => format!("line {line}: {fault}"),
            };
            if *size == 0 || *size > MAX_BYTES {
                return Err(in_line(format!("a frame of {size} bytes is none")));
            }
            if let (Some(time), Some(before)) = (time, times.last())
                && time < before
            {
                let [before, time] = [before, time].map(|time| table::signed(*time));
                return Err(in_line(format!("goes back in time, from {before} to {time}")));
            }
            times.extend(time);
            frames.push(Frame { at: Duration::ZERO, size: *size });
        }
        let is_timed = !times.is_empty();
        if is_timed && frames.len() < 2 {
            return Err("has fewer than two frames, so that nothing says how long one lasts".into());
        }
        if frames.is_empty() {
            return Err("has no frames".to_owned());
        }
        let mut notes = table::unread(&others);
        if is_timed {
            notes.extend(table::spread(&mut times)?);
        } else {
            let step = i64::try_from(interval.as_nanos()).unwrap_or(i64::MAX);
            times = (0..).take(frames.len()).map(|at: i64| at.saturating_mul(step)).collect();
        }
        let since = |time: i64| Duration::from_nanos(times[0].abs_diff(time));
        frames.iter_mut().zip(&times).for_each(|(frame, time)| frame.at = since(*time));
        let last = frames[frames.len() - 1].at;
        let lasts = match frames[..] {
            [.., before, _] => last - before.at,
            _ => interval,
        };
        Ok(Self { frames, period: last + lasts, is_timed, notes })
    }

    /// Bytes of all frames.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.frames.iter().map(|frame| frame.size).sum()
    }

    /// Packets of all frames, with at most this payload each.
    #[must_use]
    pub fn packets(&self, most: u64) -> u64 {
        self.frames.iter().map(|frame| frame.size.div_ceil(most.max(1))).sum()
    }
}

/// A table with named columns; other columns are returned.
fn named(text: &str, others: &mut Vec<String>) -> Result<Vec<Sized>, String> {
    let mut table = Table::of(text, &[&TIME, &SIZE])?;
    if !table.has(&SIZE) {
        return Err("needs a column `size`, and `time` unless all frames are alike in time".into());
    }
    let timed = table.has(&TIME);
    others.extend(table.others.iter().filter(|name| *name != "type").cloned());
    let mut entries = Vec::new();
    while let Some(row) = table.row()? {
        let in_line = |fault: String| format!("line {}: {fault}", row.number);
        let time = row.time().map_err(in_line)?;
        if timed && time.is_none() {
            return Err(in_line("no time".to_owned()));
        }
        let size = row.size().map_err(in_line)?.ok_or_else(|| in_line("no size".to_owned()))?;
        entries.push((time, size.as_bytes(), row.number));
    }
    Ok(entries)
}

/// Cells of a line without names: ffprobe begins it with the kind of entry, unless told not to.
fn cells(cells: &[String]) -> &[String] {
    match cells {
        [kind, rest @ ..] if matches!(&**kind, "packet" | "frame") => rest,
        all => all,
    }
}

/// A size in bytes, also as `size=1500`.
fn size(cell: &str) -> Option<u64> {
    let value = ["size=", "pkt_size="].iter().find_map(|key| cell.strip_prefix(key));
    let value = value.unwrap_or(cell);
    value.parse().ok().or_else(|| Some(value.parse::<Size>().ok()?.as_bytes()))
}

/// Whether the first line has no names but a size, or a time in seconds and a size.
fn is_list(text: &str) -> bool {
    let Some(line) = Lines::of(text).next() else { return false };
    match cells(&line.cells) {
        [one] => size(one).is_some(),
        [time, bytes, ..] => seconds(time).is_some() && bytes.parse::<u64>().is_ok(),
        [] => false,
    }
}

/// A time as ffprobe writes it: always with decimals.
fn seconds(cell: &str) -> Option<i64> {
    decimal(cell, 9).filter(|_| cell.contains('.'))
}

fn list(text: &str) -> Result<Vec<Sized>, String> {
    let mut entries: Vec<Sized> = Vec::new();
    for line in Lines::of(text) {
        let entry = match cells(&line.cells) {
            [one] => size(one).map(|size| (None, size, line.number)),
            [time, bytes, ..] => seconds(time)
                .zip(bytes.parse().ok())
                .map(|(time, bytes)| (Some(time), bytes, line.number)),
            [] => None,
        };
        let alike =
            |entry: &Sized| entries.first().is_none_or(|it| it.0.is_some() == entry.0.is_some());
        let entry = entry.filter(alike).ok_or_else(|| {
            let line = &line;
            format!("line {}: {:?} is not like the lines before", line.number, line.cells.join(","))
        })?;
        entries.push(entry);
        if entries.len() > MAX_LINES {
            return Err(format!("has more than {MAX_LINES} frames, the most that are read"));
        }
    }
    Ok(entries)
}

/// Bytes per frame of constant-bit-rate video, or of an encoder at its highest rate.
#[must_use]
pub fn even(video: &Video) -> u64 {
    let rate = video.rate.or(video.encoder.map(|encoder| encoder.max));
    let bits = rate.map_or(0, talkspurt_proto::units::Rate::as_bps);
    let bytes = u128::from(bits) * u128::from(video.frame().as_nanos()) / 8_000_000_000;
    u64::try_from(bytes).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    fn read(text: &str) -> Result<FrameTrace, String> {
        FrameTrace::parse(text, MS * 40)
    }

    fn ms(trace: &FrameTrace) -> Vec<(u64, u64)> {
        trace.frames.iter().map(|frame| (frame.at.as_nanos() / 1_000_000, frame.size)).collect()
    }

    #[test]
    fn what_is_wrong_is_said_with_its_line() {
        let of = |text: &str| read(text).expect_err("wrong");
        assert_eq!(of(""), "is empty: it has no line of column names");
        assert_eq!(of("size\n"), "has no frames");
        let one = "has fewer than two frames, so that nothing says how long one lasts";
        assert_eq!(of("time,size\n0ms,10B\n"), one);
        let no_size = "needs a column `size`, and `time` unless all frames are alike in time";
        assert_eq!(of("time,type\n"), no_size);
        assert_eq!(of("time,size,size_B\n"), "names a column twice");
        let back = of("# a\ntime,size\n0ms,10B\n40ms,10B\n\n20ms,10B\n");
        assert_eq!(back, "line 6: goes back in time, from 40ms to 20ms");
        let all = of("time,size\n0ms,10B\n0ms,10B\n");
        assert_eq!(all, "all its 2 lines have the same time, so that no line lasts");
        assert_eq!(of("time,size\n0ms,10B,P\n"), "line 2: 3 cells for 2 columns");
        assert!(of("time,size\n40,10B\n").starts_with("line 2: \"40\" is not a duration"));
        assert!(of("time,size\n40ms,10kbit\n").starts_with("line 2: \"10kbit\" is not a size"));
        assert_eq!(of("time,size\n40ms,0B\n"), "line 2: a frame of 0 bytes is none");
        assert_eq!(of("time,size\n,10B\n"), "line 2: no time");
        assert_eq!(of("1500\n0\n"), "line 2: a frame of 0 bytes is none");
        assert_eq!(of("1500\nbig\n"), "line 2: \"big\" is not like the lines before");
        assert_eq!(of("1500\n0.04,1500\n"), "line 2: \"0.04,1500\" is not like the lines before");
    }

    #[test]
    fn times_count_from_the_first_frame() {
        let trace = read("time,size\n80ms,10B\n120ms,20B\n").expect("a trace");
        let frames = [Frame { at: Duration::ZERO, size: 10 }, Frame { at: MS * 40, size: 20 }];
        let expected = FrameTrace {
            frames: frames.to_vec(),
            period: MS * 80,
            is_timed: true,
            notes: Vec::new(),
        };
        assert_eq!(trace, expected);
        assert_eq!((trace.bytes(), trace.packets(15)), (30, 3));
    }

    #[test]
    fn units_are_those_of_every_table() {
        let expected = [(0, 15_000), (40, 1_800)];
        for text in [
            "\u{feff}\"time_s\",\"type\",\"size_kB\"\r\n1582018702.5,I,15\r\n1582018702.54,P,1.8\r\n",
            "Zeit;time (ms);size\n;-40;15000\n;0;1800\n",
            "time_s;size_kB\n0;15\n0,04;1,8\n",
            "time\tsize\n0s\t15kB\n40ms\t1800\n",
        ] {
            assert_eq!(read(text).map(|trace| ms(&trace)).as_deref(), Ok(&expected[..]), "{text}");
        }
        let note = read("time_s,qp,size\n0,30,9\n1,30,9\n").expect("a trace").notes;
        assert_eq!(note, ["columns that are not read: \"qp\""]);
    }

    #[test]
    fn a_list_of_sizes_has_the_interval_of_the_source() {
        for text in ["15000\n1800\n", "# sizes\r\n15000B\r\n1800 B", "size\n15kB\n1800\n"] {
            let trace = read(text).expect("a trace");
            assert_eq!(ms(&trace), [(0, 15_000), (40, 1_800)], "{text}");
            assert_eq!((trace.period, trace.is_timed), (MS * 80, false));
        }
        assert_eq!(read("1500\n").expect("one frame").period, MS * 40);
        let seconds = read("0.000000,15000,K_\n0.033000,1800,__\n").expect("a trace");
        assert_eq!((ms(&seconds), seconds.is_timed), (vec![(0, 15_000), (33, 1_800)], true));
    }
}
