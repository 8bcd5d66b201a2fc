//! What ports are made of, and how that is handed to DPDK: names and arguments of virtual devices.

use std::fmt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::error::DpdkError;
use crate::header::{LARGE_BYTES, SMALL_BYTES};
use crate::interface::Interface;

/// Slots of the rings between process and kernel of an AF_PACKET port, in each direction.
const AF_PACKET_SLOTS: usize = 512;
/// A slot for frames of ordinary Ethernet, and one for jumbo frames. The kernel puts its own header in front.
const AF_PACKET_SLOT_BYTES: usize = 2048;
const AF_PACKET_JUMBO_SLOT_BYTES: usize = 9216;
/// What the kernel puts in front of a frame in a slot: TPACKET_V2's header, the address, and padding.
const AF_PACKET_OVERHEAD_BYTES: usize = 66;
/// Ethernet header with room for a VLAN tag.
const ETHERNET_BYTES: usize = 18;

/// Devices of this process have names of their own.
static NEXT_NUMBER: AtomicU32 = AtomicU32::new(0);

/// Which end of a memif this is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum MemifRole {
    /// Makes the control socket and waits for clients.
    #[default]
    Server,
    /// Connects to the control socket.
    Client,
}

/// A shared-memory link to another process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Memif {
    /// Which end.
    pub role: MemifRole,
    /// Path of the control socket.
    pub socket: PathBuf,
    /// Number of the link on that socket.
    pub id: u32,
    /// Frames that fit into each ring: a power of two from 2 to 16,384. The client's counts.
    pub ring_slots: u16,
    /// Bytes of one buffer in shared memory; longer frames take several. The client's counts.
    pub buffer_bytes: u16,
}

/// What a port is made of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Device {
    /// memif.
    Memif(Memif),
    /// A network interface of the kernel, which goes on using it too.
    AfPacket {
        /// Its name.
        interface: String,
    },
}

/// How a device is handed to DPDK.
pub(crate) struct Plan {
    pub(crate) name: String,
    pub(crate) arguments: String,
    /// Longest frame that can arrive in one buffer.
    pub(crate) frame_bytes: usize,
    pub(crate) slots: u16,
}

impl Device {
    /// A name that no other device has, and the rest.
    pub(crate) fn plan(&self) -> Result<Plan, DpdkError> {
        let number = NEXT_NUMBER.fetch_add(1, Ordering::Relaxed);
        match self {
            Device::Memif(memif) => {
                let Memif { role, socket, id, ring_slots, buffer_bytes } = memif;
                let role = match role {
                    MemifRole::Server => "server",
                    MemifRole::Client => "client",
                };
                let socket = socket.to_string_lossy();
                let socket = argument(&socket)?;
                if !ring_slots.is_power_of_two() || !(2..=16_384).contains(ring_slots) {
                    let text = format!("a memif ring has a power of two of slots, 2 to 16384, not {ring_slots}");
                    return Err(DpdkError::Unusable(text));
                }
                let exponent = ring_slots.ilog2();
                let arguments = format!(
                    "role={role},socket={socket},socket-abstract=no,id={id},rsize={exponent},bsize={buffer_bytes}"
                );
                Ok(Plan {
                    name: format!("net_memif{number}"),
                    arguments,
                    // Longer frames arrive as chains, which are joined.
                    frame_bytes: SMALL_BYTES,
                    slots: *ring_slots,
                })
            }
            Device::AfPacket { interface } => {
                let frame_bytes = Interface::query(interface)?.mtu_bytes + ETHERNET_BYTES;
                let fits = frame_bytes + AF_PACKET_OVERHEAD_BYTES <= AF_PACKET_SLOT_BYTES;
                let slot_bytes = if fits { AF_PACKET_SLOT_BYTES } else { AF_PACKET_JUMBO_SLOT_BYTES };
                // Four slots in a block are a whole number of pages for both sizes. Frames go through the traffic control
                // of the interface, so that shaping applies to them and tools that capture see them.
                let arguments = format!(
                    "iface={},blocksz={},framesz={slot_bytes},framecnt={AF_PACKET_SLOTS},qdisc_bypass=0",
                    argument(interface)?,
                    4 * slot_bytes
                );
                let frame_bytes = if fits { SMALL_BYTES } else { LARGE_BYTES };
                Ok(Plan {
                    name: format!("net_af_packet{number}"),
                    arguments,
                    frame_bytes,
                    slots: AF_PACKET_SLOTS as u16,
                })
            }
        }
    }

    /// Longest frame that goes through such a port with an interface of this MTU, Ethernet header included.
    pub fn longest_af_packet_frame() -> usize {
        AF_PACKET_JUMBO_SLOT_BYTES - AF_PACKET_OVERHEAD_BYTES
    }
}

impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Device::Memif(memif) => write!(f, "memif {} number {}", memif.socket.display(), memif.id),
            Device::AfPacket { interface } => write!(f, "network interface {interface}"),
        }
    }
}

/// A value in a list of device arguments, which has no quoting.
fn argument(text: &str) -> Result<&str, DpdkError> {
    if text.is_empty() || text.contains([',', '=', '[', ']', '"', '\'']) || text.chars().any(char::is_whitespace) {
        return Err(DpdkError::Unusable(format!("DPDK takes no spaces, quotes, brackets, `,` or `=` in {text:?}")));
    }
    Ok(text)
}
