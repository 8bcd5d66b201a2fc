//! Status of each worker: `status/workers`. Namehop's own addition to the NFD management protocol. One item for each
//! worker, in the order of their indices.
//!
//! Forwarders without this dataset do not answer. The TLV-TYPE numbers are from the range for application use.

use std::time::Duration;

use namehop_packet::PacketKind;
use namehop_wire::tlv::Writer;
use serde::Serialize;
use utoipa::ToSchema;

use super::codec::{CodecError, DatasetItem, Fields};

/// Load and state of one worker.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct WorkerStatus {
    /// Packets that its engine processed.
    pub packets: u64,
    /// Packets exchanged with other workers.
    pub handover: HandoverCounters,
    /// Time spent on work.
    pub busy: Duration,
    /// Time since it started.
    pub running: Duration,
    /// Number of the CPU that it is pinned to.
    pub processor: Option<usize>,
    /// Entries in its PIT.
    pub pit_entries: u64,
    /// Data in its Content Store.
    pub cs_entries: u64,
    /// Entries of the name dispatch table that it owns; 0 when there is only one worker.
    pub dispatch_entries: u64,
    /// The port queues that it serves.
    pub queues: Vec<QueueStatus>,
}

/// A receive queue of a port and its transmit queue.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, ToSchema)]
pub struct QueueStatus {
    /// URI of the port.
    pub port: String,
    /// Index of the queue on its port.
    pub queue: u64,
    /// Frames received, including discarded ones.
    pub received_frames: u64,
    /// Frames sent.
    pub sent_frames: u64,
    /// Faces that the network card steers to this queue by a rule (rte_flow).
    pub steered_faces: u64,
}

/// Packets exchanged between a worker and the others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, ToSchema)]
pub struct HandoverCounters {
    /// Packets received from other workers.
    pub handed_in: u64,
    /// Packets passed to other workers.
    pub handed_out: u64,
    /// Packets marked as congested because they, or others in the same receive queue, had waited too long for this
    /// worker.
    pub congestion_marks: u64,
    /// Interests dropped for lack of room in the ring to another worker.
    pub dropped_interests: u64,
    /// Data dropped for lack of room in the ring to another worker.
    pub dropped_data: u64,
    /// Nacks dropped for lack of room in the ring to another worker.
    pub dropped_nacks: u64,
}

impl HandoverCounters {
    /// Returns the number of dropped packets of all kinds.
    pub fn lost(&self) -> u64 {
        self.dropped_interests + self.dropped_data + self.dropped_nacks
    }

    /// Counts a dropped packet of this kind.
    pub fn dropped(&mut self, kind: PacketKind) {
        *match kind {
            PacketKind::Interest => &mut self.dropped_interests,
            PacketKind::Data => &mut self.dropped_data,
            PacketKind::Nack => &mut self.dropped_nacks,
        } += 1;
    }
}

/// TLV-TYPE of one item.
const WORKER_STATUS: u32 = 160;
const PACKETS: u32 = 161;
const HANDED_IN: u32 = 162;
const HANDED_OUT: u32 = 163;
const CONGESTION_MARKS: u32 = 164;
const DROPPED_INTERESTS: u32 = 165;
const DROPPED_DATA: u32 = 166;
const DROPPED_NACKS: u32 = 167;
const BUSY_US: u32 = 168;
const RUNNING_US: u32 = 169;
const CPU: u32 = 170;
const PIT_ENTRIES: u32 = 171;
const CS_ENTRIES: u32 = 172;
const DISPATCH_ENTRIES: u32 = 173;
const QUEUE: u32 = 190;
const PORT: u32 = 191;
const QUEUE_NUMBER: u32 = 192;
const RECEIVED_FRAMES: u32 = 193;
const SENT_FRAMES: u32 = 194;
const STEERED_FACES: u32 = 195;

fn microseconds(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

impl DatasetItem for WorkerStatus {
    const TYPE: u32 = WORKER_STATUS;

    fn encode_value(&self, writer: &mut Writer) {
        let HandoverCounters {
            handed_in,
            handed_out,
            congestion_marks,
            dropped_interests,
            dropped_data,
            dropped_nacks,
        } = self.handover;
        writer
            .nni(PACKETS, self.packets)
            .nni(HANDED_IN, handed_in)
            .nni(HANDED_OUT, handed_out)
            .nni(CONGESTION_MARKS, congestion_marks)
            .nni(DROPPED_INTERESTS, dropped_interests)
            .nni(DROPPED_DATA, dropped_data)
            .nni(DROPPED_NACKS, dropped_nacks)
            .nni(BUSY_US, microseconds(self.busy))
            .nni(RUNNING_US, microseconds(self.running));
        if let Some(processor) = self.processor {
            writer.nni(CPU, processor as u64);
        }
        writer
            .nni(PIT_ENTRIES, self.pit_entries)
            .nni(CS_ENTRIES, self.cs_entries)
            .nni(DISPATCH_ENTRIES, self.dispatch_entries);
        for QueueStatus { port, queue, received_frames, sent_frames, steered_faces } in &self.queues {
            writer.nested(QUEUE, |writer| {
                writer
                    .element(PORT, port.as_bytes())
                    .nni(QUEUE_NUMBER, *queue)
                    .nni(RECEIVED_FRAMES, *received_frames)
                    .nni(SENT_FRAMES, *sent_frames)
                    .nni(STEERED_FACES, *steered_faces);
            });
        }
    }

    fn decode_value(value: &[u8]) -> Result<Self, CodecError> {
        let fields = Fields::parse(value)?;
        Ok(WorkerStatus {
            packets: fields.required_number(PACKETS, "packets")?,
            handover: HandoverCounters {
                handed_in: fields.required_number(HANDED_IN, "packets from other workers")?,
                handed_out: fields.required_number(HANDED_OUT, "packets to other workers")?,
                congestion_marks: fields.required_number(CONGESTION_MARKS, "congestion marks")?,
                dropped_interests: fields.required_number(DROPPED_INTERESTS, "dropped Interests")?,
                dropped_data: fields.required_number(DROPPED_DATA, "dropped Data")?,
                dropped_nacks: fields.required_number(DROPPED_NACKS, "dropped Nacks")?,
            },
            busy: Duration::from_micros(fields.required_number(BUSY_US, "busy time")?),
            running: Duration::from_micros(fields.required_number(RUNNING_US, "running time")?),
            processor: fields.number(CPU)?.and_then(|processor| usize::try_from(processor).ok()),
            pit_entries: fields.required_number(PIT_ENTRIES, "PIT entries")?,
            cs_entries: fields.required_number(CS_ENTRIES, "CS entries")?,
            dispatch_entries: fields.required_number(DISPATCH_ENTRIES, "dispatch entries")?,
            queues: fields.all(QUEUE).map(decode_queue).collect::<Result<_, _>>()?,
        })
    }
}

fn decode_queue(value: &[u8]) -> Result<QueueStatus, CodecError> {
    let fields = Fields::parse(value)?;
    Ok(QueueStatus {
        port: fields.required_text(PORT, "port")?,
        queue: fields.required_number(QUEUE_NUMBER, "queue number")?,
        received_frames: fields.required_number(RECEIVED_FRAMES, "received frames")?,
        sent_frames: fields.required_number(SENT_FRAMES, "sent frames")?,
        // Routers of older versions do not send it.
        steered_faces: fields.number(STEERED_FACES)?.unwrap_or(0),
    })
}

#[cfg(test)]
mod tests {
    use super::super::codec::{decode_items, encode_items};
    use super::*;

    #[test]
    fn what_a_worker_does_is_read_as_it_was_written() {
        let handover = HandoverCounters {
            handed_in: 2,
            handed_out: 3,
            congestion_marks: 4,
            dropped_interests: 5,
            dropped_data: 6,
            dropped_nacks: 7,
        };
        let queue = |number| QueueStatus {
            port: "dev://eth1".to_owned(),
            queue: number,
            received_frames: number + 1,
            sent_frames: number + 2,
            steered_faces: number + 3,
        };
        let with_cpu = WorkerStatus {
            packets: 1,
            handover,
            busy: Duration::from_micros(8),
            running: Duration::from_micros(9),
            processor: Some(10),
            pit_entries: 11,
            cs_entries: 12,
            dispatch_entries: 13,
            queues: vec![queue(14), queue(17)],
        };
        let without = WorkerStatus { processor: None, queues: Vec::new(), ..with_cpu.clone() };
        let statuses = [with_cpu, without];
        assert_eq!(decode_items::<WorkerStatus>(&encode_items(statuses.clone())), Ok(statuses.to_vec()));
    }
}
