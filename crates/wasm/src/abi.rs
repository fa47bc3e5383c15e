//! The functions that a page calls. Texts are UTF-8. Arguments that are a pointer and a length are memory of
//! [`reserve`] with that length, which the call takes.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use bytes::Bytes;

static FILES: Mutex<BTreeMap<PathBuf, Bytes>> = Mutex::new(BTreeMap::new());
static ANSWER: Mutex<String> = Mutex::new(String::new());

/// Memory for `length` bytes.
#[unsafe(no_mangle)]
pub extern "C" fn reserve(length: usize) -> *mut u8 {
    Box::leak(vec![0; length].into_boxed_slice()).as_mut_ptr()
}

/// Takes memory of [`reserve`].
///
/// # Safety
/// The memory has this length and was not taken before.
unsafe fn take(start: *mut u8, length: usize) -> Vec<u8> {
    // SAFETY: by the caller, this is the whole of a boxed slice.
    unsafe { Vec::from_raw_parts(start, length, length) }
}

/// Takes memory of [`reserve`] that holds a text.
///
/// # Safety
/// See [`take`].
unsafe fn text(start: *mut u8, length: usize) -> String {
    // SAFETY: by the caller.
    String::from_utf8_lossy(&unsafe { take(start, length) }).into_owned()
}

/// Adds a file that scenarios may name.
///
/// # Safety
/// See the module.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn add_file(
    path: *mut u8,
    path_length: usize,
    content: *mut u8,
    content_length: usize,
) {
    // SAFETY: by the caller.
    let (path, content) = unsafe { (text(path, path_length), take(content, content_length)) };
    FILES.lock().expect("one thread").insert(path.into(), content.into());
}

/// Runs the scenario that was added as a file with this path, and returns the length of the
/// [`answer`](crate::answer).
///
/// # Safety
/// See the module.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn run(path: *mut u8, path_length: usize) -> usize {
    // SAFETY: by the caller.
    let path = unsafe { text(path, path_length) };
    let files = FILES.lock().expect("one thread");
    let scenario = files.get(Path::new(&path)).cloned().unwrap_or_default();
    let answer = crate::answer(&String::from_utf8_lossy(&scenario), Path::new(&path), &*files);
    let mut kept = ANSWER.lock().expect("one thread");
    *kept = answer.to_string();
    kept.len()
}

/// The answer of the last run, valid until the next.
#[unsafe(no_mangle)]
pub extern "C" fn answer() -> *const u8 {
    ANSWER.lock().expect("one thread").as_ptr()
}
