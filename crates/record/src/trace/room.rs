//! Lines held until no earlier one can arrive, stored in the order of reporting.

use talkspurt_proto::time::Instant;

use crate::in_order::InOrder;

/// A buffer of lines.
#[derive(Debug, Default)]
pub(super) struct Room {
    order: InOrder<Line>,
    /// The bytes after `used` are unused.
    bytes: Vec<u8>,
    used: usize,
}

/// The position of a line.
#[derive(Clone, Copy, Debug, Default)]
struct Line {
    from: u32,
    bytes: u32,
}

impl Line {
    fn of(self, room: &[u8]) -> &[u8] {
        &room[self.from as usize..][..self.bytes as usize]
    }
}

impl Room {
    /// Adds a line of at most `most` bytes, which `write` writes to the beginning of its slice; it returns
    /// their number. Lines have the order of [`InOrder::tell`].
    #[inline]
    pub(super) fn tell(
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
        let from = u32::try_from(from).expect("no four gigabytes of lines wait");
        self.order.tell(at, rank, Line { from, bytes: bytes as u32 });
    }

    /// Passes the lines before `now` to `write`.
    pub(super) fn write_before(&mut self, now: Instant, mut write: impl FnMut(&[u8])) {
        let Self { order, bytes, used } = self;
        order.write_before(now, |_, _, line| write(line.of(bytes)));
        let mut rest = Vec::new();
        for line in order.waiting_mut() {
            let from = rest.len() as u32;
            rest.extend_from_slice(line.of(bytes));
            line.from = from;
        }
        *used = rest.len();
        bytes[..*used].copy_from_slice(&rest);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_remains_is_written_next() {
        let (mut page, mut room) = (String::new(), Room::default());
        for (at, line) in
            [(3, "three "), (7, "seven "), (2, "two "), (7, "and its like "), (5, "five ")]
        {
            room.tell(Instant::from_nanos(at), 0, 40, |room| {
                room[..line.len()].copy_from_slice(line.as_bytes());
                line.len()
            });
        }
        for barrier in [2, 7, 7, 8] {
            room.write_before(Instant::from_nanos(barrier), |line| {
                page.push_str(std::str::from_utf8(line).expect("text"));
            });
            page.push('|');
        }
        assert_eq!(page, "|two three five ||seven and its like |");
    }
}
