//! The error model: its constants derived again from the codes, its error probabilities against those
//! of ns-3 (`validation/cell`).

use talkspurt_proto::math;
use talkspurt_sim::cell::errors::{
    CCK_5_5, CCK_11, FIVE_SIXTHS, HALF, Spectrum, THREE_QUARTERS, TWO_THIRDS, byte_survives_ln,
};
use talkspurt_sim::cell::timing::Mode;

/// A code word of CCK (IEEE 802.11 §16.3.6.5), chips as quarter turns.
fn cck(p: [u32; 4]) -> [u32; 8] {
    let [p1, p2, p3, p4] = p;
    [
        p1 + p2 + p3 + p4,
        p1 + p3 + p4,
        p1 + p2 + p4,
        p1 + p4 + 2,
        p1 + p2 + p3,
        p1 + p3,
        p1 + p2 + 2,
        p1,
    ]
}

/// Half the squared distances of all words from the first, with how many have them.
fn distances(words: &[[u32; 8]]) -> Vec<(f64, f64)> {
    // |1 − i^k|² is 0, 2, 4, 2.
    let apart = |a: u32, b: u32| [0, 1, 2, 1][((a + 4 * 4 - b % 4) % 4) as usize];
    let mut counts = std::collections::BTreeMap::new();
    for word in &words[1..] {
        let half: u32 = word.iter().zip(&words[0]).map(|(a, b)| apart(*a, *b)).sum();
        *counts.entry(half).or_insert(0_u32) += 1;
    }
    counts.into_iter().map(|(half, count)| (f64::from(half), f64::from(count))).collect()
}

#[test]
fn distances_of_cck_are_those_of_its_code_words() {
    let quarters = 0..4_u32;
    let all: Vec<_> = (0..256_u32).map(|n| cck([n & 3, n >> 2 & 3, n >> 4 & 3, n >> 6])).collect();
    assert_eq!(distances(&all), CCK_11);
    // 5.5 Mbit/s: φ2 is π/2 or 3π/2, φ3 0, φ4 0 or π.
    let few = quarters.flat_map(|p1| [1, 3].map(|p2| [0, 2].map(|p4| cck([p1, p2, 0, p4]))));
    let few: Vec<_> = few.flatten().collect();
    assert_eq!(distances(&few), CCK_5_5);
}

/// Sums of wrong bits by weight of all paths that leave the all-zero path in one period of the
/// puncturing and are back at the end of a later one; `kept` says which of the outputs A and B are sent.
fn spectrum(kept: &[(bool, bool)], terms: usize, free: usize) -> Vec<f64> {
    let most = free + terms;
    let mut sums = vec![0.0; most];
    let weight = |state: usize, bit: usize, (a, b): (bool, bool)| {
        let register = bit << 6 | state;
        let parity = |mask: usize| (register & mask).count_ones() as usize & 1;
        // Generators 133 and 171 in octal, the newest bit first.
        usize::from(a) * parity(0o133) + usize::from(b) * parity(0o171)
    };
    // Paths and their wrong bits, by state and weight.
    let mut front = vec![vec![(0.0, 0.0); most]; 64];
    front[0][0] = (1.0, 0.0);
    for _ in 0..200 {
        for &sent in kept {
            let mut next = vec![vec![(0.0, 0.0); most]; 64];
            for (state, weights) in front.iter().enumerate() {
                for bit in 0..2 {
                    let more = weight(state, bit, sent);
                    let to = &mut next[(bit << 6 | state) >> 1];
                    for (w, (paths, bits)) in weights[..most - more].iter().enumerate() {
                        to[w + more].0 += paths;
                        to[w + more].1 += bits + paths * bit as f64;
                    }
                }
            }
            front = next;
        }
        // A path that never left has no wrong bit.
        for (sum, (_, bits)) in sums.iter_mut().zip(&front[0]) {
            *sum += bits;
        }
        front[0] = vec![(0.0, 0.0); most];
    }
    assert!(sums[..free].iter().all(|sum| *sum == 0.0), "{sums:?}");
    sums[free..].to_vec()
}

#[test]
fn spectra_of_the_convolutional_code_are_those_of_its_trellis() {
    let both = (true, true);
    let (a, b) = ((true, false), (false, true));
    // IEEE 802.11 Figure 17-9 and §19.3.11.6: which of A and B are stolen.
    let codes: [(&Spectrum, &[(bool, bool)]); 4] = [
        (&HALF, &[both]),
        (&TWO_THIRDS, &[both, a]),
        (&THREE_QUARTERS, &[both, a, b]),
        (&FIVE_SIXTHS, &[both, a, b, a, b]),
    ];
    for (code, kept) in codes {
        assert_eq!(code.period as usize, kept.len());
        let counted = spectrum(kept, 10, code.free as usize);
        assert_eq!(counted, code.bits, "{code:?}");
    }
}

/// Where half of all frames of 1000 bytes are received, in decibels.
fn half_way(chances: impl Fn(f64) -> f64) -> f64 {
    let (mut low, mut high) = (-20.0, 50.0);
    for _ in 0..60 {
        let middle = (low + high) / 2.0;
        if chances(middle) < 0.5 { low = middle } else { high = middle }
    }
    low
}

#[test]
fn frames_are_lost_where_ns3_loses_them() {
    let told = include_str!("../../../../../validation/cell/chances.csv");
    let rows: Vec<(&str, f64, f64)> = told
        .lines()
        .filter(|line| !line.starts_with('#'))
        .map(|line| {
            let cells: Vec<&str> = line.split(',').collect();
            (cells[0], cells[1].parse().expect("dB"), cells[2].parse().expect("a chance"))
        })
        .collect();
    let ofdm = [6, 9, 12, 18, 24, 36, 48, 54];
    let mut modes: Vec<(String, Mode)> = ofdm
        .iter()
        .enumerate()
        .map(|(at, rate)| (format!("OfdmRate{rate}Mbps"), Mode::Ofdm(at)))
        .collect();
    for (name, rate) in [("1", 1_000_000), ("2", 2_000_000), ("5_5", 5_500_000), ("11", 11_000_000)]
    {
        modes.push((format!("DsssRate{name}Mbps"), Mode::Dsss(rate, false)));
    }
    for (name, mode) in modes {
        let of: Vec<_> = rows.iter().filter(|row| row.0 == name).collect();
        let after = of.iter().position(|row| row.2 >= 0.5).expect("it rises");
        let (x, y) = (of[after - 1], of[after]);
        let theirs = x.1 + (0.5 - x.2) / (y.2 - x.2) * (y.1 - x.1);
        let chance =
            |db: f64| math::exp(1000.0 * byte_survives_ln(mode, math::pow(10.0, db / 10.0)));
        let ours = half_way(chance);
        println!("{name}: {ours:.2} dB, ns-3 {theirs:.2} dB");
        // ns-3's are cut into half decibels here; for CCK it has no union bound.
        let band = if name.contains("5_5") || name.contains("e11") { 1.0 } else { 0.1 };
        assert!((ours - theirs).abs() < band, "{name}: {ours:.2} dB, ns-3 {theirs:.2} dB");
    }
}
