//! The functions that a page calls. Texts are UTF-8. Arguments that are a pointer and a length are memory of
//! [`reserve`] with that length, which the call takes.

use std::sync::{LazyLock, Mutex};

use crate::Session;

static SESSION: LazyLock<Mutex<Session>> = LazyLock::new(|| Mutex::new(Session::watched(watched)));
static ANSWER: Mutex<Vec<u8>> = Mutex::new(Vec::new());

#[link(wasm_import_module = "page")]
unsafe extern "C" {
    /// Told the share of a run that has passed; 0 stops the run.
    safe fn progress(share: f64) -> i32;
}

fn watched(share: f64) -> bool {
    progress(share) != 0
}

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

fn answered(bytes: Vec<u8>) -> usize {
    let mut kept = ANSWER.lock().expect("one thread");
    *kept = bytes;
    kept.len()
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
    SESSION.lock().expect("one thread").files.insert(path.into(), content.into());
}

/// Answers a [`Request`](crate::Request), and returns the length of the [`answer`].
///
/// # Safety
/// See the module.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ask(request: *mut u8, length: usize) -> usize {
    // SAFETY: by the caller.
    let request = unsafe { text(request, length) };
    let found = SESSION.lock().expect("one thread").ask(&request);
    answered(found.to_string().into_bytes())
}

/// Makes the samples of a call of the opened run the [`answer`], 16 bits each, little endian, and returns its
/// length: what was heard if `received` is not 0, else what was sent.
#[unsafe(no_mangle)]
pub extern "C" fn sound(number: usize, received: u32) -> usize {
    answered(SESSION.lock().expect("one thread").sound(number, received != 0))
}

/// The last answer, valid until the next.
#[unsafe(no_mangle)]
pub extern "C" fn answer() -> *const u8 {
    ANSWER.lock().expect("one thread").as_ptr()
}
