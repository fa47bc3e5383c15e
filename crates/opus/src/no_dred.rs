//! In place of `dred`, in a build without it: no packet has deep redundancy.

use std::ffi::c_int;
use std::ptr::NonNull;

use opusic_sys as sys;

use crate::Error;

#[derive(Debug)]
pub(crate) struct Dred;

impl Dred {
    pub(crate) fn new() -> Result<Self, Error> {
        Ok(Self)
    }

    pub(crate) fn parse(&mut self, _: &[u8], _: usize, _: bool) -> Result<usize, Error> {
        Ok(0)
    }

    pub(crate) unsafe fn decode(
        &self,
        _: NonNull<sys::OpusDecoder>,
        _: c_int,
        _: *mut i16,
        _: c_int,
    ) -> c_int {
        sys::OPUS_UNIMPLEMENTED
    }
}
