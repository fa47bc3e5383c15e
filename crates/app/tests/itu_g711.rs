//! ITU-T G.711 against tables made by another implementation (see `g711/*.txt` for their origin)
//! and against decision levels printed in the Recommendation.

use talkspurt_app::codec::g711::{decode_a, decode_mu, encode_a, encode_mu};

/// (first input of the run, code, decoded value); without input: decoding only.
fn table(text: &str) -> Vec<(Option<i32>, u8, i16)> {
    text.lines()
        .filter(|line| !line.starts_with('#'))
        .map(|line| {
            let [first, code, decoded] = line.split(' ').collect::<Vec<_>>()[..] else {
                panic!("three columns: {line}")
            };
            (first.parse().ok(), code.parse().unwrap(), decoded.parse().unwrap())
        })
        .collect()
}

/// Checks every input from the table's first to 32767; returns their number.
fn check(rows: &[(Option<i32>, u8, i16)], encode: fn(i16) -> u8, decode: fn(u8) -> i16) -> usize {
    let mut inputs = 0;
    for (row, &(first, code, decoded)) in rows.iter().enumerate() {
        assert_eq!(decode(code), decoded, "code {code}");
        let Some(first) = first else { continue };
        let end = rows.get(row + 1).and_then(|next| next.0).unwrap_or(32_768);
        for x in first..end {
            assert_eq!(encode(x as i16), code, "input {x}");
            inputs += 1;
        }
    }
    inputs
}

#[test]
fn a_law_equals_the_reference_for_all_inputs_and_codes() {
    let rows = table(include_str!("g711/alaw.txt"));
    assert_eq!(rows.len(), 256);
    assert_eq!(check(&rows, encode_a, decode_a), 65_536);
}

#[test]
fn mu_law_equals_the_reference_for_all_codes_and_positive_inputs() {
    let rows = table(include_str!("g711/ulaw.txt"));
    assert_eq!(rows.len(), 256);
    assert_eq!(check(&rows, encode_mu, decode_mu), 32_768);
}

#[test]
fn mu_law_is_symmetric_about_minus_one_half_as_in_g191() {
    for x in 0..=i16::MAX {
        assert_eq!(encode_mu(!x), encode_mu(x) ^ 0x80, "input {}", !x);
    }
}

#[test]
fn segments_end_where_the_recommendation_says() {
    // G.711 table 2a, decision values 16, 32, … 112 on the 14-bit scale; each starts a segment.
    for (segment, level) in [31, 95, 223, 479, 991, 2015, 4063].into_iter().enumerate() {
        let x = level * 4;
        let code = 0xFF - 16 * (segment as u8 + 1);
        assert_eq!((encode_mu(x - 1), encode_mu(x)), (code + 1, code));
    }
    // Table 1a, decision values 16, 32, … 112 on the 13-bit scale (4096 full); bits before the
    // inversion of the even ones.
    for (segment, level) in [32, 64, 128, 256, 512, 1024, 2048].into_iter().enumerate() {
        let x = level * 8;
        let code = 0x80 | (16 * (segment as u8 + 1));
        assert_eq!((encode_a(x - 1) ^ 0x55, encode_a(x) ^ 0x55), (code - 1, code));
    }
}

#[test]
fn the_digital_milliwatt_is_3_17_db_below_the_largest_sine() {
    // G.711 table 6: the µ-law codes of a 1 kHz tone at 0 dBm0, eight samples a period.
    let tone = [0x1E, 0x0B, 0x0B, 0x1E, 0x9E, 0x8B, 0x8B, 0x9E];
    let pcm = tone.iter().map(|&code| decode_mu(code)).collect::<Vec<_>>();
    assert_eq!(pcm, [-8828, -20860, -20860, -8828, 8828, 20860, 20860, 8828]);
    // G.711 §2: the largest sine, of amplitude 8159 in 14 bits, is 3.17 dBm0.
    let power = pcm.iter().map(|&x| f64::from(x) * f64::from(x)).sum::<f64>() / 8.0;
    let below = -10.0 * talkspurt_proto::math::log10(power / (32_636.0_f64 * 32_636.0 / 2.0));
    assert!((below - 3.17).abs() < 0.02, "{below}");
}
