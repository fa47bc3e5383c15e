//! CRC-32c (RFC 3309, RFC 3720), which the Data Checksum option holds of the application data
//! (RFC 4340 §9.3).

use crc::{CRC_32_ISCSI, Crc};

static CASTAGNOLI: Crc<u32> = Crc::<u32>::new(&CRC_32_ISCSI);

/// The CRC-32c of these bytes.
#[must_use]
pub fn crc32c(bytes: &[u8]) -> u32 {
    CASTAGNOLI.checksum(bytes)
}
