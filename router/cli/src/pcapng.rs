//! Writes captured NDN frames as a pcapng file for Wireshark and tshark.
//!
//! The format is that of draft-ietf-opsawg-pcapng: one section, an interface per face, a packet per frame. Captured
//! frames have no link headers, so each gets a "Linux cooked" header (LINKTYPE_LINUX_SLL). It holds the direction and
//! the EtherType of NDN, by which dissectors for NDN over Ethernet find the packet.

use std::collections::HashMap;
use std::io::{self, Write};

use namehop_client::nfd::CapturedFrame;

const SECTION_HEADER: u32 = 0x0A0D_0D0A;
const INTERFACE_DESCRIPTION: u32 = 1;
const ENHANCED_PACKET: u32 = 6;
const BYTE_ORDER_MAGIC: u32 = 0x1A2B_3C4D;
const LINKTYPE_LINUX_SLL: u16 = 113;
/// EtherType of NDN.
const NDN: u16 = 0x8624;
/// ARPHRD_NONE: the link type is unknown.
const NO_HARDWARE: u16 = 0xFFFE;
const COOKED_HEADER_BYTES: usize = 16;

/// Writer of a capture file.
pub struct PcapngWriter<W> {
    to: W,
    /// Interface index of each face.
    interfaces: HashMap<u64, u32>,
    snap_bytes: u32,
    /// Frames dropped since the last written one.
    lost: u64,
}

impl<W: Write> PcapngWriter<W> {
    /// Starts a capture; frames are truncated to `snap_bytes`.
    pub fn new(mut to: W, snap_bytes: u32) -> io::Result<Self> {
        let mut body = BYTE_ORDER_MAGIC.to_le_bytes().to_vec();
        // Version 1.0, and a section of unknown length.
        body.extend([1, 0, 0, 0]);
        body.extend([0xff; 8]);
        option(&mut body, 4, concat!("namehop ", env!("CARGO_PKG_VERSION")).as_bytes());
        write_block(&mut to, SECTION_HEADER, body)?;
        Ok(PcapngWriter { to, interfaces: HashMap::new(), snap_bytes, lost: 0 })
    }

    /// Returns true if this face has an interface.
    pub fn has_face(&self, face: u64) -> bool {
        self.interfaces.contains_key(&face)
    }

    /// Adds an interface for a face; required before its first frame.
    pub fn add_face(&mut self, face: u64, description: &str) -> io::Result<()> {
        let mut body = LINKTYPE_LINUX_SLL.to_le_bytes().to_vec();
        body.extend([0, 0]);
        body.extend((self.snap_bytes + COOKED_HEADER_BYTES as u32).to_le_bytes());
        option(&mut body, 2, format!("face-{face}").as_bytes());
        if !description.is_empty() {
            option(&mut body, 3, description.as_bytes());
        }
        // Time resolution: nanoseconds.
        option(&mut body, 9, &[9]);
        write_block(&mut self.to, INTERFACE_DESCRIPTION, body)?;
        self.interfaces.insert(face, u32::try_from(self.interfaces.len()).unwrap_or(u32::MAX));
        Ok(())
    }

    /// Records frames that were dropped since the last one.
    pub fn note_lost(&mut self, frames: u64) {
        self.lost += frames;
    }

    /// Writes a frame; its face must have an interface.
    pub fn write(&mut self, frame: &CapturedFrame) -> io::Result<()> {
        let interface = *self.interfaces.get(&frame.face).ok_or(io::ErrorKind::NotFound)?;
        let length = |bytes: usize| u32::try_from(bytes + COOKED_HEADER_BYTES).map_err(|_| io::ErrorKind::InvalidData);
        let full_bytes = usize::try_from(frame.length).map_err(|_| io::ErrorKind::InvalidData)?;
        let mut body = Vec::with_capacity(frame.bytes.len() + 80);
        body.extend(interface.to_le_bytes());
        body.extend(((frame.unix_ns >> 32) as u32).to_le_bytes());
        body.extend((frame.unix_ns as u32).to_le_bytes());
        body.extend(length(frame.bytes.len())?.to_le_bytes());
        body.extend(length(full_bytes)?.to_le_bytes());
        // Packet type: 0 to us, 4 sent by us. The address is the face id.
        let kind: u16 = if frame.is_sent { 4 } else { 0 };
        for field in [kind, NO_HARDWARE, 8] {
            body.extend(field.to_be_bytes());
        }
        body.extend(frame.face.to_be_bytes());
        body.extend(NDN.to_be_bytes());
        body.extend(&frame.bytes);
        pad(&mut body);
        let direction: u32 = if frame.is_sent { 2 } else { 1 };
        option(&mut body, 2, &direction.to_le_bytes());
        let lost = std::mem::take(&mut self.lost);
        if lost > 0 {
            option(&mut body, 4, &lost.to_le_bytes());
        }
        write_block(&mut self.to, ENHANCED_PACKET, body)
    }

    /// Flushes the file.
    pub fn flush(&mut self) -> io::Result<()> {
        self.to.flush()
    }
}

fn pad(body: &mut Vec<u8>) {
    body.resize(body.len().next_multiple_of(4), 0);
}

fn option(body: &mut Vec<u8>, code: u16, value: &[u8]) {
    // A FaceUri is shorter than this; a longer text is truncated.
    let value = &value[..value.len().min(1_000)];
    body.extend(code.to_le_bytes());
    body.extend((value.len() as u16).to_le_bytes());
    body.extend(value);
    pad(body);
}

/// Writes a block; `body` ends with options.
fn write_block(to: &mut impl Write, kind: u32, mut body: Vec<u8>) -> io::Result<()> {
    // End of options.
    body.extend([0; 4]);
    let length = u32::try_from(body.len() + 12).map_err(|_| io::ErrorKind::InvalidData)?.to_le_bytes();
    to.write_all(&kind.to_le_bytes())?;
    to.write_all(&length)?;
    to.write_all(&body)?;
    to.write_all(&length)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the type and body of each block in a file.
    fn blocks(mut file: &[u8]) -> Vec<(u32, &[u8])> {
        let number = |at: &[u8]| u32::from_le_bytes(at[..4].try_into().expect("four bytes"));
        let mut blocks = Vec::new();
        while !file.is_empty() {
            let length = number(&file[4..]) as usize;
            assert_eq!((length % 4, number(&file[length - 4..]) as usize), (0, length));
            blocks.push((number(file), &file[8..length - 4]));
            file = &file[length..];
        }
        blocks
    }

    #[test]
    fn a_capture_has_an_interface_for_each_face_and_a_packet_for_each_frame() {
        let mut writer = PcapngWriter::new(Vec::new(), 100).expect("written");
        let frame = |face, is_sent| CapturedFrame {
            unix_ns: 0x0102_0304_0506_0708,
            face,
            is_sent,
            length: 300,
            bytes: vec![5, 1, 7],
            lost: 0,
        };
        assert!(writer.write(&frame(256, true)).is_err(), "a frame of an unknown interface must be refused");
        for (face, text) in [(300, "udp4://192.0.2.1:6363"), (256, "")] {
            writer.add_face(face, text).expect("written");
        }
        writer.write(&frame(256, true)).expect("written");
        writer.note_lost(9);
        writer.write(&frame(300, false)).expect("written");
        let blocks = blocks(&writer.to);
        assert_eq!(blocks.iter().map(|block| block.0).collect::<Vec<_>>(), [SECTION_HEADER, 1, 1, 6, 6]);
        assert_eq!(blocks[1].1[..8], [113, 0, 0, 0, 116, 0, 0, 0]);
        assert!(blocks[1].1.windows(8).any(|text| text == b"face-300"));
        assert!(blocks[1].1.windows(21).any(|text| text == b"udp4://192.0.2.1:6363"));
        let sent = blocks[3].1;
        assert_eq!(sent[..20], [1, 0, 0, 0, 4, 3, 2, 1, 8, 7, 6, 5, 19, 0, 0, 0, 0x3c, 1, 0, 0]);
        assert_eq!(sent[20..40], [0, 4, 0xff, 0xfe, 0, 8, 0, 0, 0, 0, 0, 0, 1, 0, 0x86, 0x24, 5, 1, 7, 0]);
        assert_eq!(sent[40..], [2, 0, 4, 0, 2, 0, 0, 0, 0, 0, 0, 0]);
        let received = blocks[4].1;
        assert_eq!((received[0], received[21]), (0, 0));
        assert_eq!(received[40..], [2, 0, 4, 0, 1, 0, 0, 0, 4, 0, 8, 0, 9, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    }
}
