//! Writes the workload's prefixes to files, and loads files.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::sync::mpsc::sync_channel;
use std::thread;

use namehop_engine::fib::{FibCursor, FibWriter};
use namehop_manage::fib_file::{FibFile, FibFilePart, FileError, SnapshotWriter};
use namehop_packet::FaceId;
use namehop_wire::NameRef;

use super::face_of;
use crate::workload::Workload;

/// Maximum number of parts queued between the reading thread and the adding thread.
const PARTS_AHEAD: usize = 16;
/// Prefixes saved between two writes.
const PORTION: usize = 16_384;
const WRITE_BYTES: usize = 1 << 20;

/// Writes all prefixes as a text file.
pub(super) fn write_text(workload: &Workload, path: &Path) -> io::Result<()> {
    let mut file = BufWriter::with_capacity(WRITE_BYTES, File::create(path)?);
    let mut value = vec![0; workload.prefix_bytes()];
    for number in 0..workload.parameters().prefixes {
        workload.write_prefix(number, &mut value);
        let name = NameRef::from_value(&value).map_err(io::Error::other)?;
        writeln!(file, "{name} {}", face_of(number))?;
    }
    file.flush()
}

/// Saves a snapshot, with face ids as words.
pub(super) fn save(fib: &FibWriter<()>, path: &Path) -> io::Result<()> {
    let mut file = File::create(path)?;
    let mut writer = SnapshotWriter::new(fib.len() as u64);
    let mut cursor = Some(FibCursor::default());
    while let Some(from) = cursor {
        cursor = fib.visit_entries(from, PORTION, |prefix, nexthops| {
            writer.push(prefix, nexthops, |face| Some(face.to_string()));
        });
        file.write_all(&writer.take_output())?;
    }
    writer.finish();
    file.write_all(&writer.take_output())
}

/// Loads a text file or snapshot in which the words are face ids.
pub(super) fn load(fib: &mut FibWriter<()>, path: &Path) -> Result<(), FileError> {
    let mut file = FibFile::open(path)?;
    let expected = file.expected_prefixes().and_then(|expected| usize::try_from(expected).ok());
    fib.reserve(expected.unwrap_or(0)).map_err(io::Error::other)?;
    let (sender, parts) = sync_channel(PARTS_AHEAD);
    thread::scope(|scope| {
        let reader = scope.spawn(move || {
            while let Some(part) = file.next_part()? {
                if sender.send(part).is_err() {
                    break;
                }
            }
            Ok(())
        });
        let mut faces: Vec<Option<FaceId>> = Vec::new();
        for part in parts {
            match part {
                FibFilePart::Faces(words) => faces.extend(words.iter().map(|word| word.word.parse().ok().map(FaceId))),
                FibFilePart::Prefixes(block) => {
                    block.add_to(fib, |position| *faces.get(position as usize)?)?;
                }
                FibFilePart::Faults(_) => {}
            }
        }
        reader.join().unwrap_or_else(|_| Err(io::Error::other("the reading thread panicked").into()))
    })
}
