//! TUN devices as ports.

use std::fs::File;
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::os::fd::OwnedFd;

use talkspurt_live::{Port, is_readable};
use talkspurt_proto::time::Duration;

/// Longest IP packet.
const LONGEST: usize = 65_535;

/// A TUN device without packet information (IFF_TUN | IFF_NO_PI), or any file whose reads and writes transfer
/// one IP packet each.
#[derive(Debug)]
pub(crate) struct Tun {
    file: File,
}

impl Tun {
    /// The device of this descriptor. Creating a device needs privileges and an ioctl; the program's caller
    /// does it and passes the descriptor.
    pub(crate) fn new(descriptor: OwnedFd) -> Self {
        Self { file: descriptor.into() }
    }
}

impl Port for Tun {
    fn send(&mut self, packet: &[u8]) -> io::Result<()> {
        self.file.write_all(packet)
    }

    fn receive(&mut self, wait: Option<Duration>, packet: &mut Vec<u8>) -> io::Result<bool> {
        if !is_readable(&self.file, wait)? {
            return Ok(false);
        }
        packet.resize(LONGEST, 0);
        match self.file.read(packet) {
            Ok(length) => {
                packet.truncate(length);
                Ok(length > 0)
            }
            Err(error)
                if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) =>
            {
                Ok(false)
            }
            Err(error) => Err(error),
        }
    }
}
