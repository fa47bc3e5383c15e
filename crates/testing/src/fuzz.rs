//! Scripts of bytes for fuzz targets: how a rig reads one, and those that are kept in `fuzz/seeds`.

use std::path::Path;

/// The bytes of a script, from the first to the last; behind the last all are zero.
pub struct Script<'a>(&'a [u8]);

impl<'a> Script<'a> {
    /// A script of these bytes.
    #[must_use]
    pub fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    /// Whether all bytes were read.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.0.is_empty()
    }

    /// The next byte.
    pub fn byte(&mut self) -> u8 {
        let Some((first, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        *first
    }

    /// One of these.
    pub fn pick<T: Copy>(&mut self, of: &[T]) -> T {
        of[usize::from(self.byte()) % of.len()]
    }

    /// Yes or no.
    pub fn bit(&mut self) -> bool {
        self.byte() & 1 == 1
    }

    /// A number of 16 bits.
    pub fn u16(&mut self) -> u16 {
        u16::from_be_bytes([self.byte(), self.byte()])
    }

    /// A number of 32 bits.
    pub fn u32(&mut self) -> u32 {
        u32::from(self.u16()) << 16 | u32::from(self.u16())
    }

    /// Small steps mostly, and now and then any number.
    pub fn step(&mut self) -> i32 {
        match self.byte() {
            0..=99 => i32::from(self.byte() as i8),
            100..=199 => i32::from(self.u16() as i16),
            200..=219 => 0,
            _ => self.u32() as i32,
        }
    }

    /// So many bytes at most.
    pub fn bytes(&mut self, most: usize) -> &'a [u8] {
        let (taken, rest) = self.0.split_at(most.min(self.0.len()));
        self.0 = rest;
        taken
    }
}

/// Runs the kept scripts of a target, of which there are more than twenty.
///
/// # Panics
/// The file of the target is missing or damaged, or a script fails.
pub fn replay(target: &str, play: fn(&[u8])) {
    let seeds = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/seeds");
    let text = std::fs::read_to_string(seeds.join(format!("{target}.txt"))).expect("seeds");
    assert!(text.lines().count() > 20, "{} seeds", text.lines().count());
    for line in text.lines() {
        let (name, script) = line.split_once(' ').expect("a name and bytes");
        println!("{target} {name}");
        play(&unhex(script));
    }
}

fn unhex(digits: &str) -> Vec<u8> {
    let byte =
        |pair: &[u8]| str::from_utf8(pair).ok().and_then(|it| u8::from_str_radix(it, 16).ok());
    digits.as_bytes().chunks(2).map(|pair| byte(pair).expect("two hexadecimal digits")).collect()
}

/// Random scripts per test, if `FUZZ_CASES` does not state another number.
///
/// # Panics
/// What is set is no number.
#[must_use]
pub fn cases(usual: u32) -> u32 {
    std::env::var("FUZZ_CASES").map_or(usual, |cases| cases.parse().expect("a number"))
}
