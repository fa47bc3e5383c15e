//! What libopus calls of a C library (C17 §7); `compiler_builtins` has the rest.

use std::alloc::{Layout, alloc, alloc_zeroed, dealloc};
use std::ffi::{c_int, c_long};

/// Bytes before each allocation, which hold its length. Its start is aligned to as much.
const HEADER: usize = 16;

fn layout(length: usize) -> Layout {
    Layout::from_size_align(HEADER + length, HEADER).expect("fits the memory")
}

/// Writes the header of an allocation.
///
/// # Safety
/// `start` is null, or the start of an allocation of `layout(length)`.
unsafe fn headed(start: *mut u8, length: usize) -> *mut u8 {
    if start.is_null() {
        return start;
    }
    // SAFETY: by the caller, there is room for the header.
    unsafe {
        start.cast::<usize>().write(length);
        start.add(HEADER)
    }
}

#[unsafe(no_mangle)]
extern "C" fn malloc(length: usize) -> *mut u8 {
    // SAFETY: the layout is not empty, and is that of the length.
    unsafe { headed(alloc(layout(length)), length) }
}

#[unsafe(no_mangle)]
extern "C" fn calloc(count: usize, each: usize) -> *mut u8 {
    let length = count.checked_mul(each).expect("fits the memory");
    // SAFETY: the layout is not empty, and is that of the length.
    unsafe { headed(alloc_zeroed(layout(length)), length) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn free(allocation: *mut u8) {
    if !allocation.is_null() {
        // SAFETY: the caller got it from this module, and so it has a header.
        unsafe {
            let start = allocation.sub(HEADER);
            dealloc(start, layout(start.cast::<usize>().read()));
        }
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn realloc(allocation: *mut u8, length: usize) -> *mut u8 {
    let made = malloc(length);
    if !allocation.is_null() && !made.is_null() {
        // SAFETY: the caller got it from this module: before it is its length, and it is freed once.
        unsafe {
            let known = allocation.sub(HEADER).cast::<usize>().read();
            made.copy_from_nonoverlapping(allocation, known.min(length));
            free(allocation);
        }
    }
    made
}

/// Compares texts that end in a zero.
#[unsafe(no_mangle)]
unsafe extern "C" fn strcmp(one: *const u8, other: *const u8) -> c_int {
    for place in 0.. {
        // SAFETY: by the caller, both texts end, and no byte after a difference or an end is read.
        let (a, b) = unsafe { (one.add(place).read(), other.add(place).read()) };
        if a != b || a == 0 {
            return c_int::from(a) - c_int::from(b);
        }
    }
    unreachable!("a text ends")
}

#[unsafe(no_mangle)]
extern "C" fn abort() -> ! {
    core::arch::wasm32::unreachable()
}

/// Rounds to the nearest integer, halves to the even one.
#[unsafe(no_mangle)]
extern "C" fn lrintf(x: f32) -> c_long {
    x.round_ties_even() as c_long
}

/// What libopus tells before it aborts is not printed. The rest of the arguments is a pointer.
#[unsafe(no_mangle)]
extern "C" fn fprintf(_: *const u8, _: *const u8, _: *const u8) -> c_int {
    0
}
