//! Signals and hashes, computed in integers so that they are the same everywhere; `validation/codecs` has the
//! same ones.

/// Samples of a signal.
pub(crate) const COUNT: usize = 32_000;

/// FNV-1a, 64 bits.
pub(crate) fn fnv(data: impl IntoIterator<Item = u8>) -> u64 {
    data.into_iter().fold(0xCBF2_9CE4_8422_2325, |found, byte| {
        (found ^ u64::from(byte)).wrapping_mul(0x100_0000_01B3)
    })
}

/// Uniform noise of a linear congruential generator (Knuth's MMIX).
pub(crate) fn noise(amplitude: i64) -> Vec<i16> {
    let mut state = 1_u64;
    let mut next = || {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((state >> 33) as i64 % (2 * amplitude) - amplitude) as i16
    };
    (0..COUNT).map(|_| next()).collect()
}

/// Two triangle waves that take turns every 0.1 s, with silences.
pub(crate) fn triangles() -> Vec<i16> {
    let value = |t: i32| match [16, 37, 0][t as usize / 800 % 3] {
        0 => 0,
        period => ((t % period * 2 - period).abs() * 20_000 / period - 10_000) as i16,
    };
    (0..COUNT as i32).map(value).collect()
}
