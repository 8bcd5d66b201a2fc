//! The part of the port set that treats ports as Internet hosts.

use namehop_packet::{BufferPool, PacketBuffer, Timestamp};

use super::internet::Internet;
use super::single::{Arrival, Owner};
use super::{FaceRecords, PortId, PortSet};
use crate::encapsulation::cut_padding;
use namehop_face::counters::LinkDrop;

impl PortSet {
    /// Returns when a port next has to act by itself; [`Timestamp::NEVER`] if none has to.
    pub fn next_deadline(&self) -> Timestamp {
        let ports = self.ports.iter().flatten().filter(|port| port.params.is_up);
        let due = ports.flat_map(|port| port.hosts.iter().map(Internet::next_due));
        due.min().unwrap_or(Timestamp::NEVER)
    }

    /// Sends due requests to next hops, and queues the answers of the port itself.
    pub(super) fn run_internet(&mut self, id: PortId, pool: &BufferPool) {
        let PortSet { ports, answers, table, now, max_queued, backlog, .. } = self;
        let Some(Some(port)) = ports.get_mut(usize::from(id.0)) else { return };
        if port.params.is_up {
            port.hosts.iter_mut().for_each(|host| host.tick(*now, pool, answers));
        }
        let room = max_queued.saturating_sub(*backlog + port.waiting.len());
        if answers.len() > room {
            table.link_drops().add(LinkDrop::SendQueueFull, (answers.len() - room) as u64);
            answers.truncate(room);
        }
        port.waiting.append(answers);
    }

    /// Receives a frame for one of the hosts that belongs to no face: a datagram of an unknown sender, from which
    /// headers and padding are removed, or a message to the host itself.
    pub(super) fn receive_at_host(
        &mut self,
        (id, host): (PortId, u16),
        frame: &mut PacketBuffer,
        faces: &mut impl FaceRecords,
    ) -> Result<Arrival<Owner>, LinkDrop> {
        let PortSet { ports, answers, now, .. } = self;
        let port = ports.get_mut(usize::from(id.0)).and_then(Option::as_mut);
        let internet = port.and_then(|port| port.host(host));
        let internet = internet.ok_or(LinkDrop::LinkDown)?;
        let (key, packet) = match internet.receive(*now, frame, answers)? {
            Arrival::Packet(datagram) => datagram,
            Arrival::Answer => return Ok(Arrival::Answer),
            Arrival::Nothing => return Ok(Arrival::Nothing),
        };
        let unsolicited = internet.unsolicited(&key)?;
        frame.truncate(packet.end);
        frame.trim_front(packet.start);
        cut_padding(frame)?;
        let face = self.add_on_demand_face(id, unsolicited.into(), frame, faces)?;
        Ok(Arrival::Packet((face, 0)))
    }
}
