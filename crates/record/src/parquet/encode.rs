//! Value encodings (apache/parquet-format, `Encodings.md`): PLAIN, and the RLE/bit-packing hybrid.

use super::thrift::varint;

/// PLAIN: the length and the bytes of each string.
pub(super) fn words(all: &[String], bytes: &mut Vec<u8>) {
    for word in all {
        bytes.extend_from_slice(&(word.len() as u32).to_le_bytes());
        bytes.extend_from_slice(word.as_bytes());
    }
}

/// PLAIN, little-endian.
pub(super) fn counts(all: &[i64], bytes: &mut Vec<u8>) {
    bytes.extend(all.iter().flat_map(|value| value.to_le_bytes()));
}

/// PLAIN, of integers or floats as bits.
pub(super) fn bits(all: &[u64], bytes: &mut Vec<u8>) {
    bytes.extend(all.iter().flat_map(|value| value.to_le_bytes()));
}

/// PLAIN, of the values that are present.
pub(super) fn seconds(all: &[f64], bytes: &mut Vec<u8>) {
    bytes.reserve(8 * all.len());
    for value in all.iter().filter(|value| !value.is_nan()) {
        bytes.extend_from_slice(&value.to_le_bytes());
    }
}

/// Definition levels: their length, then 1 for each present value. Usually all are present: one run.
pub(super) fn absences(all: &[f64], bytes: &mut Vec<u8>) {
    let present: Vec<bool> = match all.iter().any(|value| value.is_nan()) {
        true => all.iter().map(|value| !value.is_nan()).collect(),
        false => Vec::new(),
    };
    levels(all.len(), &present, bytes);
}

/// The same of `rows` rows, all of which are present if `present` is empty.
pub(super) fn levels(rows: usize, present: &[bool], bytes: &mut Vec<u8>) {
    let begin = bytes.len();
    bytes.extend_from_slice(&[0; 4]);
    if present.is_empty() {
        varint((rows as u64) << 1, bytes);
        bytes.push(1);
    } else {
        let levels: Vec<u32> = present.iter().map(|present| (*present).into()).collect();
        indices(&levels, 1, bytes);
    }
    let length = (bytes.len() - begin - 4) as u32;
    bytes[begin..begin + 4].copy_from_slice(&length.to_le_bytes());
}

/// Distinct values that a dictionary has at most, unless they are repeated in a row.
const DISTINCT: usize = 1 << 12;
/// Values after which a dictionary that does not help is given up.
const SAMPLE: usize = 1 << 10;

/// The values of a dictionary, and the index of each value; `None` if it would save little.
pub(super) fn dictionary(all: &[u64]) -> Option<(Vec<u64>, Vec<u32>)> {
    distinct(all).or_else(|| repeated(all))
}

/// A dictionary in which only neighbours share a value, as the times of a table do.
fn repeated(all: &[u64]) -> Option<(Vec<u64>, Vec<u32>)> {
    let changes = all.windows(2).filter(|pair| pair[0] != pair[1]).count();
    if 8 * changes + all.len() * width(changes) as usize / 8 >= 6 * all.len() {
        return None;
    }
    let mut values = Vec::with_capacity(changes + 1);
    let indices = all.iter().map(|value| {
        if values.last() != Some(value) {
            values.push(*value);
        }
        values.len() as u32 - 1
    });
    let indices = indices.collect();
    Some((values, indices))
}

/// A dictionary of distinct values, in the order of their first appearance.
fn distinct(all: &[u64]) -> Option<(Vec<u64>, Vec<u32>)> {
    // Open addressing; a slot has the index of its value, plus one.
    const SLOTS: u32 = 2 * DISTINCT as u32;
    let mut slots = vec![0_u32; SLOTS as usize];
    let mut values: Vec<u64> = Vec::new();
    let mut indices: Vec<u32> = Vec::with_capacity(all.len());
    for (row, value) in all.iter().enumerate() {
        let hash = value.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (u64::BITS - SLOTS.ilog2());
        let mut slot = hash as usize;
        let index = loop {
            match slots[slot] {
                0 => {
                    if values.len() == DISTINCT {
                        return None;
                    }
                    values.push(*value);
                    slots[slot] = values.len() as u32;
                    break values.len() as u32 - 1;
                }
                known if values[known as usize - 1] == *value => break known - 1,
                _ => slot = (slot + 1) % SLOTS as usize,
            }
        };
        indices.push(index);
        if row + 1 == SAMPLE && values.len() > SAMPLE / 2 {
            return None;
        }
    }
    (!all.is_empty() && 2 * values.len() <= all.len()).then_some((values, indices))
}

/// Bit width of an index into this many values, at least one.
pub(super) fn width(values: usize) -> u32 {
    (usize::BITS - values.saturating_sub(1).leading_zeros()).max(1)
}

/// One bit-packed run, least significant bits first, padded with zeros to a multiple of eight values.
pub(super) fn indices(all: &[u32], bits: u32, bytes: &mut Vec<u8>) {
    let eights = all.len().div_ceil(8);
    varint((eights as u64) << 1 | 1, bytes);
    let end = bytes.len() + eights * bits as usize;
    bytes.reserve(end + 4 - bytes.len());
    let (mut waiting, mut held) = (0_u64, 0);
    for index in all {
        waiting |= u64::from(*index) << held;
        held += bits;
        if held >= 32 {
            bytes.extend_from_slice(&(waiting as u32).to_le_bytes());
            waiting >>= 32;
            held -= 32;
        }
    }
    bytes.extend_from_slice(&waiting.to_le_bytes());
    bytes.resize(end, 0);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_are_packed_as_the_format_says() {
        // Encodings.md: 0 to 7 in three bits are 10001000 11000110 11111010.
        let mut bytes = Vec::new();
        indices(&[0, 1, 2, 3, 4, 5, 6, 7], 3, &mut bytes);
        assert_eq!(bytes, [3, 0b1000_1000, 0b1100_0110, 0b1111_1010]);
        bytes.clear();
        indices(&[1; 9], 1, &mut bytes);
        assert_eq!(bytes, [5, 0xff, 1], "the second eight is filled up");
        bytes.clear();
        indices(&[0x1_2345; 8], 17, &mut bytes);
        assert_eq!(bytes.len(), 1 + 17);
        bytes.clear();
        indices(&[], 4, &mut bytes);
        assert_eq!(bytes, [1]);
    }

    #[test]
    fn a_dictionary_is_of_values_that_return() {
        let again = |(values, indices): (Vec<u64>, Vec<u32>)| {
            indices.iter().map(|index| values[*index as usize]).collect::<Vec<_>>()
        };
        assert!(dictionary(&[]).is_none() && dictionary(&[1, 2, 3, 4]).is_none());
        assert_eq!(dictionary(&[7, 7, 9, 7]), Some((vec![7, 9], vec![0, 0, 1, 0])));
        // Few values that return, many that are repeated in a row, and many that do neither.
        let few: Vec<u64> = (0..20_000).map(|k| k * k % 977).collect();
        let runs: Vec<u64> = (0..20_000).map(|k| k / 3).collect();
        let many: Vec<u64> = (0..20_000).collect();
        for all in [&few, &runs] {
            assert_eq!(&again(dictionary(all).expect("it saves")), all);
        }
        assert_eq!(dictionary(&runs).expect("it saves").0.len(), 6667);
        assert!(dictionary(&many).is_none());
        // More than the sample shows.
        let late: Vec<u64> = (0..20_000).map(|k| if k < 2000 { 0 } else { k }).collect();
        assert!(dictionary(&late).is_none());
    }

    #[test]
    fn a_dictionary_asks_for_as_many_bits_as_its_last_index() {
        assert_eq!([0, 1, 2, 3, 4, 5, 256, 257].map(width), [1, 1, 1, 2, 2, 3, 8, 9]);
    }

    #[test]
    fn what_is_not_there_is_told_of_and_left_out() {
        let mut bytes = Vec::new();
        absences(&[0.5, 1.0], &mut bytes);
        assert_eq!(bytes, [2, 0, 0, 0, 4, 1]);
        bytes.clear();
        absences(&[0.5, f64::NAN, 1.0], &mut bytes);
        assert_eq!(bytes, [2, 0, 0, 0, 3, 0b101]);
        bytes.clear();
        seconds(&[0.5, f64::NAN], &mut bytes);
        assert_eq!(bytes, 0.5_f64.to_le_bytes());
    }
}
