//! Network interfaces of the kernel, as ports over AF_PACKET need them.

use std::ffi::CString;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use crate::error::DpdkError;
use crate::ffi::{self, RawInterface};

/// What the kernel says of an interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Interface {
    /// Largest packet behind the Ethernet header, in bytes.
    pub mtu_bytes: usize,
    /// Switched on and connected.
    pub is_up: bool,
    /// Its hardware address.
    pub address: [u8; 6],
}

impl Interface {
    /// Asks the kernel.
    ///
    /// # Errors
    /// When there is no such interface.
    pub fn query(name: &str) -> Result<Interface, DpdkError> {
        let c_name = c_name(name)?;
        let mut found = RawInterface::default();
        // SAFETY: the name ends with a zero, and the structure is the one that is filled.
        let result = unsafe { ffi::namehop_interface_query(c_name.as_ptr(), &mut found) };
        DpdkError::check(result, || format!("find network interface {name}"))?;
        Ok(Interface { mtu_bytes: found.mtu_bytes as usize, is_up: found.is_up != 0, address: found.address })
    }
}

/// Hears NDN frames on an interface without taking them: keeps the interface in Ethernet multicast groups, and wakes a
/// worker that sleeps.
///
/// The kernel keeps nothing for it while it is not armed, so it costs little beside the port that takes the frames.
#[derive(Debug)]
pub struct Doorbell {
    descriptor: OwnedFd,
    name: CString,
}

impl Doorbell {
    /// Opens one on an interface, not armed.
    ///
    /// # Errors
    /// When there is no such interface or no permission (capability CAP_NET_RAW).
    pub fn open(name: &str) -> Result<Doorbell, DpdkError> {
        let c_name = c_name(name)?;
        // SAFETY: the name ends with a zero.
        let result = unsafe { ffi::namehop_interface_listen(c_name.as_ptr()) };
        let descriptor = DpdkError::check(result, || format!("listen on network interface {name}"))?;
        // SAFETY: the descriptor was made for us just now; it is a non-negative int.
        let descriptor = unsafe { OwnedFd::from_raw_fd(descriptor as i32) };
        Ok(Doorbell { descriptor, name: c_name })
    }

    /// Begins or ends to be readable when an NDN frame arrives, and forgets those that arrived before. Whoever arms it
    /// looks at the port once more before sleeping.
    ///
    /// # Errors
    /// When the kernel refuses the filter.
    pub fn arm(&self, armed: bool) -> Result<(), DpdkError> {
        // SAFETY: the descriptor is open.
        let result = unsafe { ffi::namehop_interface_arm(self.descriptor.as_raw_fd(), i32::from(armed)) };
        DpdkError::check(result, || "arm the doorbell of a network interface".to_owned()).map(drop)
    }

    /// Joins or leaves an Ethernet multicast group.
    ///
    /// # Errors
    /// When the interface takes no more groups.
    pub fn join(&self, group: [u8; 6], join: bool) -> Result<(), DpdkError> {
        // SAFETY: the descriptor is open, the name ends with a zero and the group has six bytes.
        let result = unsafe {
            ffi::namehop_interface_join(
                self.descriptor.as_raw_fd(),
                self.name.as_ptr(),
                group.as_ptr(),
                i32::from(join),
            )
        };
        DpdkError::check(result, || "join an Ethernet multicast group".to_owned()).map(drop)
    }
}

impl AsFd for Doorbell {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }
}

fn c_name(name: &str) -> Result<CString, DpdkError> {
    CString::new(name).map_err(|_| DpdkError::Unusable(format!("{name:?} is not the name of a network interface")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_loopback_interface_is_there_and_others_are_named_in_the_error() {
        let loopback = Interface::query("lo").expect("every network namespace has one");
        assert!(loopback.mtu_bytes >= 1500, "{loopback:?}");
        assert_eq!(loopback.address, [0; 6]);
        let error = Interface::query("no-such-if0").expect_err("there is none").to_string();
        assert!(error.contains("no-such-if0") && error.contains("No such device"), "{error}");
        assert!(Interface::query("a-name-that-is-far-too-long").is_err());
    }
}
