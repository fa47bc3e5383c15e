//! Requests for memory before it is needed. With thousands of flows, the state of the flow whose turn comes is
//! in no cache, and most of an event's time is that of waiting for one line after another.

/// Bytes of a cache line.
const LINE: usize = 64;

/// Requests the cache lines of a value, at most `lines`; changes nothing.
#[inline(always)]
pub fn prefetch<T: ?Sized>(value: &T, lines: usize) {
    let first = std::ptr::from_ref(value).cast::<i8>();
    for line in 0..size_of_val(value).div_ceil(LINE).min(lines) {
        request(first.wrapping_add(line * LINE));
    }
}

#[cfg(target_arch = "x86_64")]
#[allow(unsafe_code, reason = "the processor's instruction has no safe form")]
#[inline(always)]
fn request(at: *const i8) {
    use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
    // SAFETY: every x86-64 processor has the instruction, and it is a hint that faults at no address.
    unsafe { _mm_prefetch::<_MM_HINT_T0>(at) }
}

/// Other processors' instructions have no stable form.
#[cfg(not(target_arch = "x86_64"))]
fn request(_: *const i8) {}
