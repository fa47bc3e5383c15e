//! Packets that an encoder has made before: members of a group, replications and settings of a study mostly
//! encode the same speech in the same way, and encoding takes far longer than all else that a call needs.
//!
//! A packet is known by the hash of all that its encoder was given, from its beginning on. An encoder whose
//! packets are all known is not even made. When one is unknown, it is made, and given all that was skipped.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use bytes::Bytes;
use xxhash_rust::xxh3::Xxh3;

/// Bytes of speech and packets that are kept: about ten minutes of speech at 48 kHz.
const MOST_BYTES: usize = 64_000_000;

/// What an encoder gets with a packet beside the speech, such as its rate.
pub(super) trait Told: Copy + PartialEq + Send + Sync {
    /// The same as a number that differs if it differs.
    fn number(&self) -> u128;
}

/// An encoder whose packets depend on nothing but what it was given.
pub(super) trait Working<T>: Send {
    fn encode(&mut self, pcm: &[i16], told: T) -> Bytes;
}

/// A packet and what it was made of.
struct Made<T> {
    pcm: Arc<[i16]>,
    told: T,
    packet: Bytes,
}

/// All packets that are known, by the hash of all that was given.
pub(super) struct Known<T: 'static> {
    kept: LazyLock<Mutex<Kept<T>>>,
}

struct Kept<T> {
    packets: BTreeMap<u128, Arc<Made<T>>>,
    /// Speech by its hash, which packets of several rates share.
    speech: BTreeMap<u128, Arc<[i16]>>,
    bytes: usize,
}

impl<T> Known<T> {
    pub(super) const fn new() -> Self {
        let kept =
            || Mutex::new(Kept { packets: BTreeMap::new(), speech: BTreeMap::new(), bytes: 0 });
        Self { kept: LazyLock::new(kept) }
    }

    fn get(&self, hash: u128) -> Option<Arc<Made<T>>> {
        self.locked(|kept| kept.packets.get(&hash).cloned())
    }

    fn locked<R>(&self, act: impl FnOnce(&mut Kept<T>) -> R) -> R {
        act(&mut self.kept.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Keeps a packet, while there is room.
    fn add(&self, hash: u128, speech: u128, pcm: &[i16], told: T, packet: &Bytes) {
        self.locked(|kept| {
            if kept.bytes > MOST_BYTES {
                return;
            }
            let bytes = &mut kept.bytes;
            let pcm = kept.speech.entry(speech).or_insert_with(|| {
                *bytes += size_of_val(pcm);
                pcm.into()
            });
            *bytes += packet.len() + size_of::<Made<T>>();
            let made = Made { pcm: Arc::clone(pcm), told, packet: packet.clone() };
            kept.packets.insert(hash, Arc::new(made));
        });
    }
}

/// An encoder that asks what is known first.
pub(super) struct Remembering<T: 'static, W> {
    known: &'static Known<T>,
    /// Of all that was given.
    hash: u128,
    /// The packets that were known, until the encoder is made.
    skipped: Vec<Arc<Made<T>>>,
    working: Option<W>,
}

impl<T: Told, W: Working<T>> Remembering<T, W> {
    /// One that is made by settings of which `name` says all that its packets depend on.
    pub(super) fn new(known: &'static Known<T>, name: &str) -> Self {
        let hash = hash_of(0, name.as_bytes());
        Self { known, hash, skipped: Vec::new(), working: None }
    }

    pub(super) fn encode(&mut self, pcm: &[i16], told: T, make: impl FnOnce() -> W) -> Bytes {
        let samples: Vec<u8> = pcm.iter().flat_map(|sample| sample.to_le_bytes()).collect();
        let speech = hash_of(0, &samples);
        self.hash = hash_of(self.hash ^ told.number().rotate_left(64), &speech.to_le_bytes());
        if self.working.is_none() {
            if let Some(made) = self.known.get(self.hash) {
                self.skipped.push(Arc::clone(&made));
                return made.packet.clone();
            }
            let mut working = make();
            for made in std::mem::take(&mut self.skipped) {
                working.encode(&made.pcm, made.told);
            }
            self.working = Some(working);
        }
        let packet = self.working.as_mut().expect("it was just made").encode(pcm, told);
        self.known.add(self.hash, speech, pcm, told, &packet);
        packet
    }
}

fn hash_of(before: u128, bytes: &[u8]) -> u128 {
    let mut hash = Xxh3::new();
    hash.update(&before.to_le_bytes());
    hash.update(bytes);
    hash.digest128()
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

    use proptest::prelude::*;

    use super::*;

    impl Told for u8 {
        fn number(&self) -> u128 {
            u128::from(*self)
        }
    }

    /// An encoder whose packets depend on all that it was given.
    struct Summing(u64, &'static AtomicUsize);

    impl Working<u8> for Summing {
        fn encode(&mut self, pcm: &[i16], told: u8) -> Bytes {
            self.1.fetch_add(1, Relaxed);
            let sum = pcm.iter().fold(u64::from(told), |sum, it| sum.wrapping_mul(31) ^ *it as u64);
            self.0 = self.0.wrapping_mul(1_000_003).wrapping_add(sum);
            Bytes::copy_from_slice(&self.0.to_le_bytes())
        }
    }

    fn packets(
        known: &'static Known<u8>,
        count: &'static AtomicUsize,
        given: &[(i16, u8)],
    ) -> Vec<Bytes> {
        let mut encoder = Remembering::new(known, "summing");
        let make = || Summing(0, count);
        given.iter().map(|(sample, told)| encoder.encode(&[*sample; 4], *told, make)).collect()
    }

    #[test]
    fn what_is_known_is_not_encoded_again() {
        static KNOWN: Known<u8> = Known::new();
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let given: Vec<_> = (0..50).map(|at| (at, 1)).collect();
        let first = packets(&KNOWN, &COUNT, &given);
        assert_eq!((packets(&KNOWN, &COUNT, &given), COUNT.load(Relaxed)), (first, 50));
        let mut other = given;
        other[30].1 = 2;
        packets(&KNOWN, &COUNT, &other);
        assert_eq!(COUNT.load(Relaxed), 100, "all of it is encoded again from a difference on");
    }

    proptest! {
        #[test]
        fn packets_are_those_of_the_encoder(
            calls in prop::collection::vec(prop::collection::vec((0_i16..2, 0_u8..2), 0..12), 1..20)
        ) {
            static KNOWN: Known<u8> = Known::new();
            static COUNT: AtomicUsize = AtomicUsize::new(0);
            for given in calls {
                let mut plain = Summing(0, &COUNT);
                let expected: Vec<_> =
                    given.iter().map(|(sample, told)| plain.encode(&[*sample; 4], *told)).collect();
                prop_assert_eq!(packets(&KNOWN, &COUNT, &given), expected);
            }
        }
    }
}
