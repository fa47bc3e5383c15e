//! The part of libopus that decodes deep redundancy.

use std::ffi::c_int;
use std::ptr::NonNull;

use opusic_sys as sys;

use crate::{Error, SAMPLE_RATE, count};

/// The decoder of deep redundancy, and what it found last.
#[derive(Debug)]
pub(crate) struct Dred {
    decoder: NonNull<sys::OpusDREDDecoder>,
    found: NonNull<sys::OpusDRED>,
}

impl Drop for Dred {
    fn drop(&mut self) {
        // SAFETY: created by `opus_dred_decoder_create` and `opus_dred_alloc`, destroyed once.
        unsafe {
            sys::opus_dred_decoder_destroy(self.decoder.as_ptr());
            sys::opus_dred_free(self.found.as_ptr());
        }
    }
}

impl Dred {
    /// None if libopus was built without it.
    pub(crate) fn new() -> Result<Option<Self>, Error> {
        let mut error = sys::OPUS_OK;
        // SAFETY: `error` outlives both calls; what the first one created is destroyed if the second fails.
        unsafe {
            let decoder = sys::opus_dred_decoder_create(&raw mut error);
            let decoder = NonNull::new(decoder).ok_or(Error(error))?;
            let found = sys::opus_dred_alloc(&raw mut error);
            let Some(found) = NonNull::new(found) else {
                sys::opus_dred_decoder_destroy(decoder.as_ptr());
                return if error == sys::OPUS_UNIMPLEMENTED { Ok(None) } else { Err(Error(error)) };
            };
            Ok(Some(Self { decoder, found }))
        }
    }

    /// Reads the redundancy of a packet, decodes it unless `defer`, and returns the samples per channel that it
    /// covers before the packet.
    pub(crate) fn parse(
        &mut self,
        packet: &[u8],
        most: usize,
        defer: bool,
    ) -> Result<usize, Error> {
        let mut silence = 0;
        // SAFETY: `packet` has that length, and `silence` outlives the call.
        count(unsafe {
            sys::opus_dred_parse(
                self.decoder.as_ptr(),
                self.found.as_ptr(),
                packet.as_ptr(),
                packet.len() as i32,
                most as i32,
                SAMPLE_RATE as i32,
                &raw mut silence,
                c_int::from(defer),
            )
        })
    }

    /// Decodes `samples` that begin `ahead` samples before the packet that was parsed last, or an error below
    /// zero.
    ///
    /// # Safety
    /// `pcm` has that many samples in each channel, and the decoder has not been destroyed.
    pub(crate) unsafe fn decode(
        &self,
        decoder: NonNull<sys::OpusDecoder>,
        ahead: c_int,
        pcm: *mut i16,
        samples: c_int,
    ) -> c_int {
        // SAFETY: by the caller, and what was found lives as long as `self`.
        unsafe {
            sys::opus_decoder_dred_decode(
                decoder.as_ptr(),
                self.found.as_ptr(),
                ahead,
                pcm,
                samples,
            )
        }
    }
}
