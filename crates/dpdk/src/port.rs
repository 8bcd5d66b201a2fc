//! Ports: links that DPDK's drivers serve, opened and closed while the router runs.
//!
//! A [`Port`] is open and configured with one receive and one transmit queue. [`Port::start`] gives the queue pair to
//! whoever moves packets; the port can only be stopped by giving it back, so nobody uses the queues of a stopped port.
//! The device closes when the last of them is gone.

use std::ffi::{CString, c_int};
use std::fmt;
use std::sync::Arc;

use namehop_forward::buffer::{BufferPool, PacketBuffer};

use crate::eal::Eal;
use crate::error::DpdkError;
use crate::ffi;
use crate::header::Header;
use crate::mbuf::Mbuf;
use crate::pool::MbufPool;
use crate::thread;

pub use crate::device::{Device, Memif, MemifRole};
pub use crate::ffi::PortStatistics;

/// Frames that one call of a driver moves at most.
pub const BURST: usize = 64;
/// An open device. Closes with the last reference.
struct Opened {
    port: u16,
    name: CString,
    /// Its driver takes memory away on DPDK's interrupt thread: none of that may happen during a burst.
    is_guarded: bool,
}

impl Opened {
    fn guard(&self) -> c_int {
        c_int::from(self.is_guarded)
    }
}

impl Drop for Opened {
    fn drop(&mut self) {
        // SAFETY: the port is open. Stopping one that is stopped does nothing. Nobody uses the queues any more: they hold
        // a reference to this device.
        let result = unsafe {
            ffi::namehop_port_stop(self.port);
            ffi::namehop_port_close(self.port, self.name.as_ptr())
        };
        if let Err(error) = DpdkError::check(result, || "close a port".to_owned()) {
            tracing::warn!(%error, "a DPDK port is not closed cleanly");
        }
    }
}

/// A port that is open.
pub struct Port {
    device: Arc<Opened>,
    pool: MbufPool,
}

impl Port {
    /// Opens a device and gives it memory for what it receives. It starts stopped.
    ///
    /// # Errors
    /// When the device cannot be had, or the pool has no mempools.
    pub fn open(_environment: &Eal, device: &Device, pool: &MbufPool) -> Result<Port, DpdkError> {
        let plan = device.plan()?;
        let mempool = pool
            .mempool_for(plan.frame_bytes)
            .ok_or_else(|| DpdkError::Unusable("a port needs a pool that uses mempools".to_owned()))?;
        let is_guarded = matches!(device, Device::Memif(_));
        // SAFETY: only looks up symbols.
        if is_guarded && unsafe { ffi::namehop_interrupts_are_guarded() } == 0 {
            let text = "this program was linked in a way that keeps it from guarding memif against its own interrupts";
            return Err(DpdkError::Unusable(text.to_owned()));
        }
        let unusable = |_| DpdkError::Unusable(format!("{device} cannot be handed to DPDK"));
        let (name, arguments) =
            (CString::new(plan.name).map_err(unusable)?, CString::new(plan.arguments).map_err(unusable)?);
        // SAFETY: the environment runs, and both texts end with a zero.
        let result = unsafe { ffi::namehop_port_open(name.as_ptr(), arguments.as_ptr()) };
        let port = DpdkError::check(result, || format!("open {device}"))? as u16;
        let device = Arc::new(Opened { port, name, is_guarded });
        // SAFETY: the port was opened just now, and mempools live as long as the process.
        let result = unsafe { ffi::namehop_port_configure(port, plan.slots, plan.slots, mempool.as_ptr()) };
        DpdkError::check(result, || "set up the queues of a port".to_owned())?;
        Ok(Port { device, pool: pool.clone() })
    }

    /// Starts the port.
    ///
    /// # Errors
    /// Gives the port back with what DPDK says, for example when the server of a memif is not there.
    pub fn start(self) -> Result<(StartedPort, PortQueue), (Port, DpdkError)> {
        // SAFETY: the port is open and set up.
        let result = unsafe { ffi::namehop_port_start(self.device.port) };
        if let Err(error) = DpdkError::check(result, || "start a port".to_owned()) {
            return Err((self, error));
        }
        let queue = PortQueue { device: Arc::clone(&self.device), pool: self.pool.clone(), unusable: 0 };
        Ok((StartedPort { port: self }, queue))
    }

    /// Its hardware address.
    ///
    /// # Errors
    /// When the device is gone.
    pub fn address(&self) -> Result<[u8; 6], DpdkError> {
        let mut address = [0; 6];
        // SAFETY: the port is open; six bytes are written.
        let result = unsafe { ffi::namehop_port_mac(self.device.port, address.as_mut_ptr()) };
        DpdkError::check(result, || "read the address of a port".to_owned())?;
        Ok(address)
    }

    /// Largest packet behind the Ethernet header as the driver has it, in bytes. The drivers of memif and AF_PACKET do
    /// not know: ask the interface or the peer.
    ///
    /// # Errors
    /// When the device is gone.
    pub fn mtu_bytes(&self) -> Result<usize, DpdkError> {
        // SAFETY: the port is open.
        let result = unsafe { ffi::namehop_port_mtu(self.device.port) };
        DpdkError::check(result, || "read the MTU of a port".to_owned()).map(|mtu| mtu as usize)
    }

    /// Whether the driver sees a link. That of AF_PACKET always does: ask the interface.
    ///
    /// # Errors
    /// When the device is gone.
    pub fn is_up(&self) -> Result<bool, DpdkError> {
        // SAFETY: the port is open.
        let result = unsafe { ffi::namehop_port_is_up(self.device.port) };
        DpdkError::check(result, || "read the state of a port".to_owned()).map(|up| up != 0)
    }

    /// Its counters.
    ///
    /// # Errors
    /// When the device is gone.
    pub fn statistics(&self) -> Result<PortStatistics, DpdkError> {
        let mut statistics = PortStatistics::default();
        // SAFETY: the port is open, and the structure is the one that is filled.
        let result = unsafe { ffi::namehop_port_statistics(self.device.port, &mut statistics) };
        DpdkError::check(result, || "read the counters of a port".to_owned()).map(|_| statistics)
    }
}

/// A port whose queues are in use.
pub struct StartedPort {
    port: Port,
}

impl StartedPort {
    /// Stops the port, whose queue pair comes back for that.
    ///
    /// # Errors
    /// What DPDK says; the port is stopped as far as that goes. It closes when it is dropped.
    pub fn stop(self, queue: PortQueue) -> Result<Port, DpdkError> {
        if !Arc::ptr_eq(&self.port.device, &queue.device) {
            return Err(DpdkError::Unusable("the queues are those of another port".to_owned()));
        }
        drop(queue);
        // SAFETY: the port is started, and its only queue pair is gone.
        let result = unsafe { ffi::namehop_port_stop(self.port.device.port) };
        DpdkError::check(result, || "stop a port".to_owned())?;
        Ok(self.port)
    }

    /// The port, for its properties.
    pub fn port(&self) -> &Port {
        &self.port
    }
}

/// The queue pair of a started port. One thread at a time.
pub struct PortQueue {
    device: Arc<Opened>,
    pool: MbufPool,
    unusable: u64,
}

impl PortQueue {
    /// Adds up to [`BURST`] received frames to `frames`, each in one piece.
    pub fn receive(&mut self, frames: &mut Vec<Mbuf>) {
        // Drivers take buffers too.
        thread::register();
        frames.reserve(BURST);
        let before = frames.len();
        // SAFETY: there is room for `BURST` more. An Mbuf is a pointer to a header, which is what the driver writes; those
        // it writes are ours from then on. The port is started, and this is the only user of its queue.
        unsafe {
            let end: *mut *mut Header = frames.as_mut_ptr().add(before).cast();
            let count = ffi::namehop_port_receive(self.device.port, end, BURST as u16, self.device.guard());
            frames.set_len(before + usize::from(count));
        }
        let mut index = before;
        while let Some(frame) = frames.get_mut(index) {
            if frame.segments() == 1 {
                index += 1;
            } else if let Some(whole) = self.pool.join(frame) {
                *frame = whole;
                index += 1;
            } else {
                self.unusable += 1;
                frames.remove(index);
            }
        }
    }

    /// Sends frames from the front and takes them out; those that stay did not fit.
    pub fn transmit(&mut self, frames: &mut Vec<Mbuf>) {
        let ready = self.make_usable(frames);
        let mut sent = 0;
        while sent < ready {
            let count = (ready - sent).min(BURST) as u16;
            // SAFETY: so many frames are there, each a pointer to the header of an mbuf of a mempool. Those that the
            // driver takes are its own from then on, and are taken out below without being dropped. The port is
            // started, and this is the only user of its queue.
            let taken = unsafe {
                let first: *mut *mut Header = frames.as_mut_ptr().add(sent).cast();
                ffi::namehop_port_send(self.device.port, first, count, self.device.guard())
            };
            sent += usize::from(taken);
            if taken < count {
                break;
            }
        }
        forget_front(frames, sent);
    }

    /// How many frames from the front a driver can take. Those that were made before the pool used mempools are copied.
    fn make_usable(&self, frames: &mut [Mbuf]) -> usize {
        for (index, frame) in frames.iter_mut().enumerate() {
            if frame.is_plain() {
                match self.pool.copy_of(frame.bytes()) {
                    Some(copy) => *frame = copy,
                    None => return index,
                }
            }
        }
        frames.len()
    }

    /// Received frames that were given up because they came in several pieces and there was no buffer to join them in.
    pub fn unusable_frames(&self) -> u64 {
        self.unusable
    }
}

impl fmt::Debug for PortQueue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PortQueue").field("port", &self.device.port).finish_non_exhaustive()
    }
}

/// Takes out the first `count` mbufs, which belong to somebody else now.
pub(crate) fn forget_front(frames: &mut Vec<Mbuf>, count: usize) {
    let left = frames.len().saturating_sub(count);
    // SAFETY: the last `left` mbufs move to the front, and only they are in the list afterwards. The others are neither
    // dropped nor reachable.
    unsafe {
        let base = frames.as_mut_ptr();
        std::ptr::copy(base.add(frames.len() - left), base, left);
        frames.set_len(left);
    }
}
