//! The producing side: answers every Interest of the measurement with the same Data but for the
//! sequence number.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::link::Link;
use super::packets::{DataTemplate, Kind, scan};

/// Serves until `ended`; returns how many frames it did not understand.
pub(super) fn serve(mut link: Link, data: DataTemplate, ended: &AtomicBool, served: &AtomicU64) -> io::Result<u64> {
    let (mut bytes, mut ends) = (Vec::new(), Vec::new());
    let mut malformed = 0;
    while !ended.load(Ordering::Relaxed) {
        link.receive(|frame| {
            let Some(scanned) = scan(frame) else {
                malformed += 1;
                return;
            };
            // Others may send here too, for instance the answers to commands.
            if scanned.kind != Kind::Interest {
                return;
            }
            if let Some(sequence) = data.sequence(scanned.name) {
                data.append(&mut bytes, sequence, scanned.pit_token);
                ends.push(bytes.len());
            }
        })?;
        if !ends.is_empty() {
            served.fetch_add(ends.len() as u64, Ordering::Relaxed);
            link.send(&bytes, &ends)?;
            bytes.clear();
            ends.clear();
        }
    }
    Ok(malformed)
}
