//! Captures in pcapng (draft-ietf-opsawg-pcapng, sections 4.1 to 4.3), for Wireshark and similar tools.
//!
//! [`Pcapng`] writes a file packet by packet: IP packets without link header, times in nanoseconds. A
//! clock's origin is written as 1970-01-01 00:00 UTC, so capture times are run times. [`CaptureProbe`] is
//! the probe that fills such files with the packets that links send. This module neither reads files nor
//! builds packets: bytes come from [`talkspurt_proto::wire`].

mod capture;
mod kept;

pub use capture::{CaptureProbe, Router};

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use talkspurt_proto::time::Instant;
use talkspurt_proto::wire::Hop;

use crate::file::Output;
use kept::Kept;

const SECTION_HEADER: u32 = 0x0a0d_0d0a;
const INTERFACE_DESCRIPTION: u32 = 1;
const ENHANCED_PACKET: u32 = 6;
const BYTE_ORDER_MAGIC: u32 = 0x1a2b_3c4d;
/// LINKTYPE_RAW: the packet begins with its IPv4 or IPv6 header.
const LINKTYPE_RAW: u16 = 101;

const OPT_END: u16 = 0;
const OPT_COMMENT: u16 = 1;
const IF_NAME: u16 = 2;
const EPB_FLAGS: u16 = 2;
const SHB_USERAPPL: u16 = 4;
const IF_TSRESOL: u16 = 9;

/// The packet's direction on its interface (option `epb_flags`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// Received.
    Inbound = 1,
    /// Sent.
    Outbound = 2,
}

/// Optional metadata of a packet.
#[derive(Clone, Copy, Debug, Default)]
pub struct Remarks<'a> {
    /// Text shown with the packet.
    pub comment: Option<&'a str>,
    /// Its direction.
    pub direction: Option<Direction>,
}

/// A capture being written. If dropped before [`Pcapng::finish`], it leaves no file.
#[derive(Debug)]
pub struct Pcapng {
    output: Output,
    interfaces: u32,
    /// Maximum bytes kept of each packet; 0 for all.
    snaplen: u32,
    block: Vec<u8>,
}

impl Pcapng {
    /// Creates a capture of interfaces with these names at `path`. Until it is finished, it is written to
    /// `path` + `.part`.
    ///
    /// # Errors
    /// The file cannot be created or written.
    pub fn create(path: impl Into<PathBuf>, interfaces: &[&str]) -> io::Result<Self> {
        Self::begin(Output::create(path)?, interfaces, 0)
    }

    /// Like [`Pcapng::create`], for a [`CaptureProbe`] that keeps the first `snaplen` bytes of each packet,
    /// at least an IP header.
    ///
    /// # Errors
    /// Like [`Pcapng::create`].
    pub fn cut(path: impl Into<PathBuf>, interfaces: &[&str], snaplen: u32) -> io::Result<Self> {
        Self::begin(Output::create(path)?, interfaces, snaplen)
    }

    /// Declares the number of files written at once, which limits the buffer of each.
    #[must_use]
    pub fn one_of(mut self, files: usize) -> Self {
        self.output = self.output.one_of(files);
        self
    }

    /// Begins a capture into a writer.
    ///
    /// # Errors
    /// The first blocks cannot be written.
    pub fn to(out: impl Write + Send + Sync + 'static, interfaces: &[&str]) -> io::Result<Self> {
        Self::begin(Output::to(out), interfaces, 0)
    }

    fn begin(output: Output, interfaces: &[&str], snaplen: u32) -> io::Result<Self> {
        let (count, block) = (interfaces.len() as u32, Vec::new());
        let mut capture = Self { output, interfaces: count, snaplen, block };
        capture.write(SECTION_HEADER, |block| {
            block.extend_from_slice(&BYTE_ORDER_MAGIC.to_le_bytes());
            // Version 1.0; section length not specified.
            block.extend_from_slice(&[1, 0, 0, 0]);
            block.extend_from_slice(&(-1_i64).to_le_bytes());
            option(
                SHB_USERAPPL,
                concat!("talkspurt ", env!("CARGO_PKG_VERSION")).as_bytes(),
                block,
            );
            option(OPT_END, &[], block);
        });
        for name in interfaces {
            capture.write(INTERFACE_DESCRIPTION, |block| {
                block.extend_from_slice(&LINKTYPE_RAW.to_le_bytes());
                block.extend_from_slice(&[0; 2]);
                // 0 means no limit.
                block.extend_from_slice(&snaplen.to_le_bytes());
                option(IF_NAME, name.as_bytes(), block);
                // Timestamp resolution: 10⁻⁹ s.
                option(IF_TSRESOL, &[9], block);
                option(OPT_END, &[], block);
            });
        }
        if capture.failed() {
            Err(capture.finish().err().unwrap_or_else(|| io::ErrorKind::Other.into()))
        } else {
            Ok(capture)
        }
    }

    /// Writes one packet seen at `now` on the interface with this index. `original_len` is its length in
    /// bytes if it was longer than the captured part. Does nothing after a failure.
    ///
    /// # Panics
    /// If the interface does not exist.
    pub fn packet(
        &mut self,
        interface: u32,
        now: Instant,
        bytes: &[u8],
        original_len: u32,
        remarks: Remarks<'_>,
    ) {
        assert!(interface < self.interfaces, "capture has no interface {interface}");
        self.write(ENHANCED_PACKET, |block| {
            let original_len = original_len.max(bytes.len() as u32);
            block.extend_from_slice(&about(interface, now, bytes.len(), original_len));
            block.extend_from_slice(bytes);
            pad(block);
            if let Some(comment) = remarks.comment {
                option(OPT_COMMENT, comment.as_bytes(), block);
            }
            if let Some(direction) = remarks.direction {
                option(EPB_FLAGS, &(direction as u32).to_le_bytes(), block);
            }
            if remarks.comment.is_some() || remarks.direction.is_some() {
                option(OPT_END, &[], block);
            }
        });
    }

    /// Writes a packet as seen on a link, cut to the snap length.
    fn sight(&mut self, interface: u16, at: Instant, hop: Hop, packet: &Kept) {
        let (original, snaplen) = (packet.bytes(), self.snaplen as usize);
        let captured = if snaplen == 0 { original } else { original.min(snaplen) };
        self.output.write_with(block_bytes(captured), |room| {
            let about = about(interface.into(), at, captured, original as u32);
            write_block(about, captured, room, |room| {
                packet.write(room);
                hop.relabel(room);
            });
        });
    }

    /// Whether a write failed; [`Pcapng::finish`] returns the error.
    #[must_use]
    pub const fn failed(&self) -> bool {
        self.output.failed()
    }

    /// Completes the capture and gives its file its name.
    ///
    /// # Errors
    /// The first write error; there is then no file.
    pub fn finish(self) -> io::Result<()> {
        self.output.finish()
    }

    /// The final path, if this is a file.
    #[must_use]
    pub fn path(&self) -> Option<&Path> {
        self.output.path()
    }

    /// A block: type, length, content, length again, all little-endian.
    fn write(&mut self, block_type: u32, content: impl FnOnce(&mut Vec<u8>)) {
        if self.failed() {
            return;
        }
        self.block.clear();
        self.block.extend_from_slice(&block_type.to_le_bytes());
        self.block.extend_from_slice(&[0; 4]);
        content(&mut self.block);
        let length = (self.block.len() as u32 + 4).to_le_bytes();
        self.block[4..8].copy_from_slice(&length);
        self.block.extend_from_slice(&length);
        self.output.write(&self.block);
    }
}

/// The fields before the packet bytes in a block.
fn about(interface: u32, now: Instant, captured: usize, original: u32) -> [u8; 20] {
    let nanos = now.as_nanos();
    let fields = [interface, (nanos >> 32) as u32, nanos as u32, captured as u32, original];
    let mut bytes = [0; 20];
    for (place, field) in bytes.as_chunks_mut().0.iter_mut().zip(fields) {
        *place = field.to_le_bytes();
    }
    bytes
}

/// Length of a block with this many packet bytes, without options.
const fn block_bytes(packet: usize) -> usize {
    8 + 20 + packet.next_multiple_of(4) + 4
}

/// Writes a packet's block without options, whose data is `captured` bytes, into a slice of [`block_bytes`].
fn write_block(about: [u8; 20], captured: usize, room: &mut [u8], write: impl FnOnce(&mut [u8])) {
    let (length, end) = ((room.len() as u32).to_le_bytes(), room.len() - 4);
    room[..4].copy_from_slice(&ENHANCED_PACKET.to_le_bytes());
    room[4..8].copy_from_slice(&length);
    room[8..28].copy_from_slice(&about);
    write(&mut room[28..28 + captured]);
    room[28 + captured..end].fill(0);
    room[end..].copy_from_slice(&length);
}

/// An option: code, length, value, padded to four bytes; a value is cut to the maximum of the length field.
fn option(code: u16, value: &[u8], block: &mut Vec<u8>) {
    let value = &value[..value.len().min(usize::from(u16::MAX))];
    block.extend_from_slice(&code.to_le_bytes());
    block.extend_from_slice(&(value.len() as u16).to_le_bytes());
    block.extend_from_slice(value);
    pad(block);
}

fn pad(block: &mut Vec<u8>) {
    block.resize(block.len().next_multiple_of(4), 0);
}
