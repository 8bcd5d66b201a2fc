//! Status of each worker: `status/workers`. Namehop's own addition to the NFD management protocol. One item for each
//! worker, in the order of their indices.
//!
//! Forwarders without this dataset do not answer. The TLV-TYPE numbers are from the range for application use.

use std::time::Duration;

use namehop_packet::PacketKind;
use serde::Serialize;
use utoipa::ToSchema;

use super::record::{HERE, records};

records! {
    /// Load and state of one worker.
    #[derive(Debug, Clone, PartialEq, Eq, Default)]
    pub struct WorkerStatus(160) {
        /// Packets that its engine processed.
        packets: u64 = 161,
        /// Packets exchanged with other workers.
        handover: HandoverCounters = HERE => Inline,
        /// Time spent on work.
        busy: Duration = 168,
        /// Time since it started.
        running: Duration = 169,
        /// Number of the CPU that it is pinned to.
        processor: Option<u64> = 170,
        /// Entries in its PIT.
        pit_entries: u64 = 171,
        /// Data in its Content Store.
        cs_entries: u64 = 172,
        /// Entries of the name dispatch table that it owns; 0 when there is only one worker.
        dispatch_entries: u64 = 173,
        /// The port queues that it serves.
        queues: Vec<QueueStatus> = 190,
    }

    /// A receive queue of a port and its transmit queue.
    #[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, ToSchema)]
    pub struct QueueStatus {
        /// URI of the port.
        port: String = 191,
        /// Index of the queue on its port.
        queue: u64 = 192,
        /// Frames received, including discarded ones.
        received_frames: u64 = 193,
        /// Frames sent.
        sent_frames: u64 = 194,
        /// Faces that the network card steers to this queue by a rule (rte_flow).
        steered_faces: u64 = 195 => OrDefault,
    }

    /// Packets exchanged between a worker and the others.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, ToSchema)]
    pub struct HandoverCounters {
        /// Packets received from other workers.
        handed_in: u64 = 162,
        /// Packets passed to other workers.
        handed_out: u64 = 163,
        /// Packets marked as congested because they, or others in the same receive queue, had waited too long for this
        /// worker.
        congestion_marks: u64 = 164,
        /// Interests dropped for lack of room in the ring to another worker.
        dropped_interests: u64 = 165,
        /// Data dropped for lack of room in the ring to another worker.
        dropped_data: u64 = 166,
        /// Nacks dropped for lack of room in the ring to another worker.
        dropped_nacks: u64 = 167,
    }
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
