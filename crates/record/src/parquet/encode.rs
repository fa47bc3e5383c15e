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

/// PLAIN, of the values that are present.
pub(super) fn seconds(all: &[f64], bytes: &mut Vec<u8>) {
    bytes.reserve(8 * all.len());
    for value in all.iter().filter(|value| !value.is_nan()) {
        bytes.extend_from_slice(&value.to_le_bytes());
    }
}

/// Definition levels: their length, then 1 for each present value. Usually all are present: one run.
pub(super) fn absences(all: &[f64], bytes: &mut Vec<u8>) {
    let begin = bytes.len();
    bytes.extend_from_slice(&[0; 4]);
    if all.iter().any(|value| value.is_nan()) {
        let levels: Vec<u32> = all.iter().map(|value| u32::from(!value.is_nan())).collect();
        indices(&levels, 1, bytes);
    } else {
        varint((all.len() as u64) << 1, bytes);
        bytes.push(1);
    }
    let length = (bytes.len() - begin - 4) as u32;
    bytes[begin..begin + 4].copy_from_slice(&length.to_le_bytes());
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
