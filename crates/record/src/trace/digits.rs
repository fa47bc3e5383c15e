//! Decimal formatting, eight digits at a time: a trace is mostly numbers.

/// Text in a fixed-size buffer: such buffers are copied whole, without a loop or call.
#[derive(Clone, Copy, Debug)]
pub(super) struct Short<const ROOM: usize> {
    bytes: [u8; ROOM],
    used: u8,
}

impl<const ROOM: usize> Short<ROOM> {
    pub(super) const EMPTY: Self = Self { bytes: [b' '; ROOM], used: 0 };

    pub(super) const fn len(&self) -> usize {
        self.used as usize
    }

    #[inline]
    pub(super) fn text(&mut self, text: &[u8]) -> &mut Self {
        let used = self.len();
        self.bytes[used..used + text.len()].copy_from_slice(text);
        self.used += text.len() as u8;
        self
    }

    /// Appends a number; the buffer needs space for eight more digits.
    #[inline]
    pub(super) fn number(&mut self, value: u64) -> &mut Self {
        match value / EIGHT {
            0 => self.digits(value, 7),
            high => self.number_above(high).digits(value % EIGHT, 0),
        }
    }

    #[cold]
    fn number_above(&mut self, high: u64) -> &mut Self {
        self.number(high)
    }

    /// Appends the digits of a number below 10⁸, without up to `most` leading zeros.
    #[inline]
    fn digits(&mut self, value: u64, most: u32) -> &mut Self {
        let digits = u64::from_le_bytes(eight(value));
        let zeros = ((digits ^ ZEROS).trailing_zeros() / 8).min(most);
        let used = self.len();
        self.bytes[used..used + 8].copy_from_slice(&(digits >> (8 * zeros)).to_le_bytes());
        self.used += 8 - zeros as u8;
        self
    }

    /// Overwrites text at a position inside.
    pub(super) fn replace(&mut self, at: usize, text: &[u8]) {
        self.bytes[at..at + text.len()].copy_from_slice(text);
    }

    /// Copies itself to a position in a text and returns its end. The bytes after the end are undefined.
    #[inline]
    pub(super) fn copy(&self, at: usize, text: &mut [u8]) -> usize {
        // Most texts are far shorter than the maximum.
        if ROOM > FEW && self.len() <= FEW {
            text[at..at + FEW].copy_from_slice(&self.bytes[..FEW]);
        } else {
            text[at..at + ROOM].copy_from_slice(&self.bytes);
        }
        at + self.len()
    }
}

const FEW: usize = 64;
const EIGHT: u64 = 100_000_000;
/// Eight zero digits.
const ZEROS: u64 = u64::from_ne_bytes([b'0'; 8]);

/// The digits of a number below 10⁸: it is split three times, into groups of four, two and one digits, each
/// step in parallel.
#[inline]
pub(super) fn eight(value: u64) -> [u8; 8] {
    let fours = (value / 10_000) | ((value % 10_000) << 32);
    // Groups of four digits, below 10⁴: 10486/2²⁰ is 1/100.
    let hundreds = ((fours * 10_486) >> 20) & 0x0000_007f_0000_007f;
    let twos = hundreds | ((fours - hundreds * 100) << 16);
    // Groups of two digits, below 100: 103/2¹⁰ is 1/10.
    let tens = ((twos * 103) >> 10) & 0x000f_000f_000f_000f;
    let digits = tens | ((twos - tens * 10) << 8);
    (digits + ZEROS).to_le_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_are_those_of_the_number() {
        for value in (0..EIGHT).step_by(9_973).chain((0..10_000).map(|low| 1234 * 10_000 + low)) {
            assert_eq!(eight(value), *format!("{value:08}").as_bytes().first_chunk().unwrap());
        }
    }

    #[test]
    fn numbers_have_no_zeros_in_front() {
        let all = (0..64).flat_map(|bit| [1_u64 << bit, (1 << bit) - 1, 10_u64.pow(bit % 20)]);
        for value in all.chain([0, 9, 99_999_999, 100_000_000, 100_000_001, u64::MAX]) {
            let mut text = Short::<40>::EMPTY;
            text.text(b"a").number(value).text(b"z");
            assert_eq!(text.bytes[..text.len()], *format!("a{value}z").as_bytes());
        }
    }
}
