//! The TAP interface through which the kernel gets its share of the traffic of a network card that a port uses without
//! the kernel.

use namehop_face::address::MacAddress;
use namehop_port::drivers::Device;
use namehop_port::drivers::tap::TapPort;
use namehop_port::faces::PortId;
use namehop_port::losses::Losses;
use tracing::{info, warn};

use super::PortContext;

/// The interface, as the port thread holds it.
pub(super) struct KernelShare {
    /// Name of the interface; `None` if the kernel gets no share.
    interface: Option<String>,
    /// `None` if the interface could not be created or was removed.
    tap: Option<TapPort>,
    /// The losses there when they were last counted.
    counted: Losses,
    was_refused: bool,
}

impl KernelShare {
    /// Creates the state of an interface that does not exist yet.
    pub(super) fn new(interface: Option<String>) -> Self {
        KernelShare { interface, tap: None, counted: Losses::default(), was_refused: false }
    }

    /// Returns whether the interface is configured but does not exist.
    pub(super) fn is_missing(&self) -> bool {
        self.interface.is_some() && self.tap.as_ref().is_none_or(|tap| tap.relay().has_ended())
    }

    /// Closes the interface. Called when its card is opened again.
    pub(super) fn end(&mut self) {
        self.tap = None;
        self.counted = Losses::default();
    }

    /// Returns the frames lost there since the last call.
    pub(super) fn new_losses(&mut self) -> Losses {
        let now = self.tap.as_ref().map(|tap| tap.relay().losses()).unwrap_or_default();
        now.since(std::mem::replace(&mut self.counted, now))
    }

    /// Creates the interface, with the hardware address of the card, and hands it to the worker. A failure is logged
    /// once; the call can be repeated.
    pub(super) fn make(
        &mut self,
        context: &PortContext,
        id: PortId,
        device: &dyn Device,
        address: MacAddress,
        mtu_bytes: usize,
    ) {
        // Closing the old interface frees its name.
        self.end();
        let Some(interface) = &self.interface else { return };
        match TapPort::open(interface, mtu_bytes, Some(address), &context.pool) {
            Ok((tap, queue)) => {
                if let Err(error) = device.join_all() {
                    warn!(interface, %error, "the kernel's interface of a network card receives no multicast");
                }
                match context.control.of(id).share(id, Box::new(queue)) {
                    Ok(()) => info!(interface, "created the kernel's interface of a network card"),
                    Err(error) => warn!(interface, %error, "cannot create the kernel's interface of a network card"),
                }
                self.tap = Some(tap);
                self.was_refused = false;
            }
            Err(error) if !self.was_refused => {
                warn!(interface, %error, "cannot create the kernel's interface of a network card; retrying");
                self.was_refused = true;
            }
            Err(_) => {}
        }
    }
}
