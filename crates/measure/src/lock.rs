//! Locks of state that threads share.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// What a mutex protects, even if a thread that held it panicked.
pub(crate) fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}
