//! The parts of Thrift's compact protocol that Parquet's headers need (apache/thrift:
//! `doc/specs/thrift-compact-protocol.md`): structs of integers, strings, lists and structs.

/// A struct being written; [`Thrift::end`] ends it, or the innermost open struct inside it.
#[derive(Debug)]
pub(super) struct Thrift {
    bytes: Vec<u8>,
    /// The last field of each open struct.
    last: Vec<i16>,
}

const I32: u8 = 5;
const I64: u8 = 6;
const BINARY: u8 = 8;
const LIST: u8 = 9;
const STRUCT: u8 = 12;

impl Default for Thrift {
    fn default() -> Self {
        Self { bytes: Vec::new(), last: vec![0] }
    }
}

impl Thrift {
    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Starts field `id`, which exceeds the last by at most 15.
    fn field(&mut self, id: i16, kind: u8) -> &mut Self {
        let last = self.last.last_mut().expect("fields stand in structs");
        let more = id - *last;
        assert!((1..=15).contains(&more), "field {id} behind {last}");
        *last = id;
        self.bytes.push((more as u8) << 4 | kind);
        self
    }

    pub(super) fn i32(&mut self, id: i16, value: i32) -> &mut Self {
        self.field(id, I32).number(value.into())
    }

    pub(super) fn i64(&mut self, id: i16, value: i64) -> &mut Self {
        self.field(id, I64).number(value)
    }

    pub(super) fn text(&mut self, id: i16, text: &str) -> &mut Self {
        self.binary(id, text.as_bytes())
    }

    pub(super) fn binary(&mut self, id: i16, bytes: &[u8]) -> &mut Self {
        self.field(id, BINARY).counted(bytes)
    }

    pub(super) fn integers(&mut self, id: i16, all: &[i32]) -> &mut Self {
        self.field(id, LIST).length(all.len(), I32);
        all.iter().for_each(|value| {
            self.number((*value).into());
        });
        self
    }

    pub(super) fn texts(&mut self, id: i16, all: &[&str]) -> &mut Self {
        self.field(id, LIST).length(all.len(), BINARY);
        all.iter().for_each(|text| {
            self.counted(text.as_bytes());
        });
        self
    }

    /// A list of `length` structs, each from [`Thrift::item`] to its end.
    pub(super) fn list(&mut self, id: i16, length: usize) -> &mut Self {
        self.field(id, LIST).length(length, STRUCT)
    }

    pub(super) fn item(&mut self) -> &mut Self {
        self.last.push(0);
        self
    }

    pub(super) fn begin(&mut self, id: i16) -> &mut Self {
        self.field(id, STRUCT).item()
    }

    pub(super) fn end(&mut self) -> &mut Self {
        self.last.pop();
        self.bytes.push(0);
        self
    }

    fn length(&mut self, length: usize, kind: u8) -> &mut Self {
        match length {
            0..15 => self.bytes.push((length as u8) << 4 | kind),
            _ => {
                self.bytes.push(0xf0 | kind);
                varint(length as u64, &mut self.bytes);
            }
        }
        self
    }

    fn counted(&mut self, bytes: &[u8]) -> &mut Self {
        varint(bytes.len() as u64, &mut self.bytes);
        self.bytes.extend_from_slice(bytes);
        self
    }

    /// Zigzag encoding: small numbers are short regardless of sign.
    fn number(&mut self, value: i64) -> &mut Self {
        varint((value << 1 ^ value >> 63) as u64, &mut self.bytes);
        self
    }
}

/// Seven bits per byte, least significant first; the last byte has a clear high bit.
pub(super) fn varint(mut value: u64, bytes: &mut Vec<u8>) {
    while value > 0x7f {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_laid_out_as_the_protocol_says() {
        // apache/thrift's document: 50399 as varint is DF 89 03; zigzag of -1 is 1, of 1 is 2.
        let mut bytes = Vec::new();
        varint(50_399, &mut bytes);
        assert_eq!(bytes, [0xdf, 0x89, 0x03]);
        let mut all = Thrift::default();
        all.i32(1, -1).i64(3, 1).text(4, "ab").begin(6).i32(1, 64).end();
        all.integers(7, &[0, 3]).list(8, 16).end();
        let wanted = [
            0x15, 1, 0x26, 2, 0x18, 2, b'a', b'b', 0x2c, 0x15, 0x80, 1, 0, 0x19, 0x25, 0, 6, 0x19,
            0xfc, 16, 0,
        ];
        assert_eq!(all.bytes(), wanted);
    }
}
