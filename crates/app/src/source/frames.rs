//! Sizes of video frames from an encoder: a text with one line per frame.
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

use super::config::Video;

/// Maximum length of a trace: a day at 115 frames per second.
const MAX_FRAMES: usize = 10_000_000;
/// Maximum frame size: a larger value suggests a missing decimal point.
const MAX_BYTES: u64 = 1 << 30;

/// The frames of a trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FrameTrace {
    /// In time order; at least two.
    pub frames: Vec<Frame>,
    /// Period of repetition: the last frame lasts as long as the one before.
    pub period: Duration,
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
    /// Reads a file.
    ///
    /// # Errors
    /// The fault, with the line if there is one.
    pub fn open(files: &dyn Files, path: &Path) -> Result<Self, String> {
        let bytes = super::bytes_of(files, path, "a trace of video frames")?;
        let text = std::str::from_utf8(&bytes).map_err(|_| "is not a text".to_owned())?;
        Self::parse(text)
    }

    /// Reads a text.
    ///
    /// # Errors
    /// As [`FrameTrace::open`].
    pub fn parse(text: &str) -> Result<Self, String> {
        let lines = (1..).zip(text.lines().map(str::trim));
        let mut lines = lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
        let (_, head) = lines.next().ok_or("is empty: it has no line of column names")?;
        let columns: Vec<&str> = head.split(',').map(str::trim).collect();
        let known = ["time", "type", "size"];
        if let Some(column) = columns.iter().find(|column| !known.contains(*column)) {
            return Err(format!("unknown column {column:?}: columns are time, type and size"));
        }
        if (1..columns.len()).any(|at| columns[..at].contains(&columns[at])) {
            return Err("names a column twice".to_owned());
        }
        let place = |name| columns.iter().position(|column| *column == name);
        let (Some(time), Some(size)) = (place("time"), place("size")) else {
            return Err("needs the columns `time` and `size`".to_owned());
        };
        let mut frames: Vec<Frame> = Vec::new();
        for (number, line) in lines {
            let cells: Vec<&str> = line.split(',').map(str::trim).collect();
            if cells.len() != columns.len() {
                let (cells, columns) = (cells.len(), columns.len());
                return Err(format!("line {number}: {cells} cells for {columns} columns"));
            }
            let frame = frame(cells[time], cells[size], frames.last())
                .map_err(|fault| format!("line {number}: {fault}"))?;
            frames.push(frame);
            if frames.len() > MAX_FRAMES {
                return Err(format!("has more than {MAX_FRAMES} frames, the most that are read"));
            }
        }
        let [.., before, last] = frames[..] else {
            return Err("has fewer than two frames, so that nothing says how long one lasts".into());
        };
        let (first, last) = (frames[0].at, last.at + (last.at - before.at));
        frames.iter_mut().for_each(|frame| frame.at -= first);
        Ok(Self { frames, period: last - first })
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

fn frame(time: &str, size: &str, before: Option<&Frame>) -> Result<Frame, String> {
    let at = time.parse::<Duration>().map_err(|fault| fault.to_string())?;
    if let Some(before) = before.map(|before| before.at).filter(|before| at <= *before) {
        return Err(if at == before {
            format!("a frame of zero length: it is at {at}, as the one before")
        } else {
            format!("goes back in time, from {before} to {at}")
        });
    }
    let size = size.parse::<Size>().map_err(|fault| fault.to_string())?.as_bytes();
    if size == 0 || size > MAX_BYTES {
        return Err(format!("a frame of {size} bytes is none"));
    }
    Ok(Frame { at, size })
}

/// Bytes per frame of constant-bit-rate video.
#[must_use]
pub fn even(video: &Video) -> u64 {
    let bits = video.rate.map_or(0, talkspurt_proto::units::Rate::as_bps);
    let bytes = u128::from(bits) * u128::from(video.frame().as_nanos()) / 8_000_000_000;
    u64::try_from(bytes).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_wrong_is_said_with_its_line() {
        let of = |text: &str| FrameTrace::parse(text).expect_err("wrong");
        assert_eq!(of(""), "is empty: it has no line of column names");
        assert_eq!(
            of("time,size\n"),
            "has fewer than two frames, so that nothing says how long one lasts"
        );
        assert_eq!(of("time,bytes\n"), "unknown column \"bytes\": columns are time, type and size");
        assert_eq!(of("time,type\n"), "needs the columns `time` and `size`");
        assert_eq!(of("time,size,size\n"), "names a column twice");
        let back = of("# a\ntime,size\n0ms,10B\n40ms,10B\n\n20ms,10B\n");
        assert_eq!(back, "line 6: goes back in time, from 40ms to 20ms");
        let zero = of("time,size\n0ms,10B\n0ms,10B\n");
        assert_eq!(zero, "line 3: a frame of zero length: it is at 0ns, as the one before");
        assert_eq!(of("time,size\n0ms,10B,P\n"), "line 2: 3 cells for 2 columns");
        assert!(of("time,size\n40,10B\n").starts_with("line 2: \"40\" is not a duration"));
        assert!(of("time,size\n40ms,10kbit\n").starts_with("line 2: \"10kbit\" is not a size"));
        assert_eq!(of("time,size\n40ms,0B\n"), "line 2: a frame of 0 bytes is none");
    }

    #[test]
    fn times_count_from_the_first_frame() {
        let trace = FrameTrace::parse("time,size\n80ms,10B\n120ms,20B\n").expect("a trace");
        let ms = |ms| Duration::from_millis(ms);
        let frames = [Frame { at: ms(0), size: 10 }, Frame { at: ms(40), size: 20 }];
        assert_eq!(trace, FrameTrace { frames: frames.to_vec(), period: ms(80) });
        assert_eq!((trace.bytes(), trace.packets(15)), (30, 3));
    }
}
