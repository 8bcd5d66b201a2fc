//! The interface through which the kernel has its share of a network card that a port uses without it.

use namehop_dpdk::losses::Losses;
use namehop_dpdk::tap::TapPort;
use namehop_face::encapsulation::MacAddress;
use namehop_face::port::PortId;
use tracing::{info, warn};

use super::PortContext;
use super::open::Device;

/// The interface, as the ports' thread holds it.
pub(super) struct KernelShare {
    /// Its name; `None` when the kernel has no share.
    interface: Option<String>,
    /// Absent when it could not be made, or was removed.
    tap: Option<TapPort>,
    /// What had been lost there when it was last noted.
    counted: Losses,
    was_refused: bool,
}

impl KernelShare {
    /// Not made yet.
    pub(super) fn new(interface: Option<String>) -> Self {
        KernelShare { interface, tap: None, counted: Losses::default(), was_refused: false }
    }

    /// Whether it is to be made.
    pub(super) fn is_missing(&self) -> bool {
        self.interface.is_some() && self.tap.as_ref().is_none_or(|tap| tap.relay().has_ended())
    }

    /// Gives it up, with the card.
    pub(super) fn end(&mut self) {
        self.tap = None;
        self.counted = Losses::default();
    }

    /// Frames that were lost there since this was asked for.
    pub(super) fn new_losses(&mut self) -> Losses {
        let now = self.tap.as_ref().map(|tap| tap.relay().losses()).unwrap_or_default();
        now.since(std::mem::replace(&mut self.counted, now))
    }

    /// Makes it, with the hardware address of the card, and puts it to use. What fails is logged once, and can be tried again.
    pub(super) fn make(
        &mut self,
        context: &PortContext,
        id: PortId,
        device: &Device,
        address: MacAddress,
        mtu_bytes: usize,
    ) {
        // A name is free when its interface has gone.
        self.end();
        let Some(interface) = &self.interface else { return };
        match TapPort::open(interface, mtu_bytes, Some(address), &context.pool) {
            Ok((tap, queue)) => {
                if let Err(error) = device.join_all() {
                    warn!(interface, %error, "the kernel receives no multicast");
                }
                match context.control.of(id).share(id, Box::new(queue)) {
                    Ok(()) => info!(interface, "the kernel has a share of a network card"),
                    Err(error) => warn!(interface, %error, "the kernel has no share of a network card"),
                }
                self.tap = Some(tap);
                self.was_refused = false;
            }
            Err(error) if !self.was_refused => {
                warn!(interface, %error, "the kernel has no share of a network card; trying again");
                self.was_refused = true;
            }
            Err(_) => {}
        }
    }
}
