//! The producing side: answers every Interest of the measurement with the same Data but for the
//! sequence number.

use std::io;

use super::link::Link;
use super::packets::{DataTemplate, Kind, scan};
use super::{Load, LoadError};

/// One producer, on one connection.
pub struct Producer<L> {
    link: L,
    template: DataTemplate,
    served: u64,
    malformed: u64,
    /// Scratch: Data to send, and where each ends.
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl<L: Link> Producer<L> {
    /// A producer that has answered nothing yet.
    ///
    /// # Errors
    /// When the payload does not fit into a packet.
    pub fn new(link: L, load: &Load) -> Result<Self, LoadError> {
        Ok(Self { link, template: load.data()?, served: 0, malformed: 0, bytes: Vec::new(), ends: Vec::new() })
    }

    /// Its connection.
    pub fn link(&self) -> &L {
        &self.link
    }

    /// Interests answered.
    pub fn served(&self) -> u64 {
        self.served
    }

    /// Frames that it did not understand.
    pub fn malformed(&self) -> u64 {
        self.malformed
    }

    /// Answers what has come.
    ///
    /// # Errors
    /// When the connection is broken.
    pub fn step(&mut self) -> io::Result<()> {
        let Self { template, malformed, bytes, ends, .. } = self;
        bytes.clear();
        ends.clear();
        self.link.receive(&mut |frame| {
            let Some(scanned) = scan(frame) else {
                *malformed += 1;
                return;
            };
            // Others may send here too, for instance the answers to commands.
            if scanned.kind != Kind::Interest {
                return;
            }
            if let Some(sequence) = template.sequence(scanned.name) {
                template.append(bytes, sequence, scanned.pit_token);
                ends.push(bytes.len());
            }
        })?;
        if !ends.is_empty() {
            self.served += ends.len() as u64;
            self.link.send(bytes, ends)?;
        }
        Ok(())
    }
}
