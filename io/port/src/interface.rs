//! Queries network interfaces of the kernel, and configures interfaces that ports have created.

use std::ffi::{c_int, c_ulong};
use std::io;
use std::mem;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use crate::error::DpdkError;

/// State of a network interface, as the kernel reports it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Interface {
    /// Interface index. An interface that is removed and created again under the same name has another index.
    pub index: u32,
    /// Largest packet behind the Ethernet header, in bytes.
    pub mtu_bytes: usize,
    /// The interface is up and has a link.
    pub is_up: bool,
    /// Its hardware address.
    pub address: [u8; 6],
}

impl Interface {
    /// Queries the kernel for the interface with this name.
    ///
    /// # Errors
    /// Fails if there is no such interface.
    pub fn query(name: &str) -> Result<Interface, DpdkError> {
        query(name).map_err(|error| DpdkError::from_io(format!("find network interface {name}"), &error))
    }
}

/// An interface that a port uses.
#[derive(Debug)]
pub(crate) struct UsedInterface {
    pub(crate) name: String,
    /// When the port was opened.
    pub(crate) opened: Interface,
}

impl UsedInterface {
    pub(crate) fn is_up(&self) -> bool {
        Interface::query(&self.name).is_ok_and(|found| found.is_up)
    }

    /// Returns `None` if there is no interface with its name, and whether that is the interface that was opened, with
    /// its address and MTU. An interface replaced between two calls may have the address and MTU of its predecessor,
    /// but not its index.
    pub(crate) fn is_same(&self) -> Option<bool> {
        let found = Interface::query(&self.name).ok()?;
        Some(Interface { is_up: self.opened.is_up, ..found } == self.opened)
    }
}

/// Configuration of an interface that a port has created.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Setting {
    /// Largest packet behind the Ethernet header, in bytes.
    pub(crate) mtu_bytes: usize,
    /// Hardware address; `None` keeps the address that the kernel chose.
    pub(crate) address: Option<[u8; 6]>,
}

impl Setting {
    /// Applies the configuration to an interface and sets it up.
    pub(crate) fn apply(self, name: &str) -> io::Result<()> {
        let (descriptor, empty) = (any_socket()?, request(name)?);
        let set = |code: c_ulong, request: libc::ifreq| {
            // SAFETY: each code below takes an `ifreq` with a name and the field that is set for that code.
            let result: c_int = unsafe { libc::ioctl(descriptor.as_raw_fd(), code as _, &raw const request) };
            if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
        };
        if let Some(address) = self.address {
            let mut hardware = empty;
            // SAFETY: all fields may be zero.
            let mut field: libc::sockaddr = unsafe { mem::zeroed() };
            field.sa_family = libc::ARPHRD_ETHER;
            for (place, byte) in field.sa_data.iter_mut().zip(address) {
                *place = byte as _;
            }
            hardware.ifr_ifru.ifru_hwaddr = field;
            set(libc::SIOCSIFHWADDR, hardware)?;
        }
        let mut mtu = empty;
        mtu.ifr_ifru.ifru_mtu = c_int::try_from(self.mtu_bytes).unwrap_or(c_int::MAX);
        set(libc::SIOCSIFMTU, mtu)?;
        // Keep all other flags, the multicast flag among them.
        let mut flags = ask(&descriptor, empty, libc::SIOCGIFFLAGS)?;
        // SAFETY: the kernel has filled this field; any bytes are valid in it.
        let before = unsafe { flags.ifr_ifru.ifru_flags };
        // IFF_UP fits into the field.
        flags.ifr_ifru.ifru_flags = before | libc::IFF_UP as libc::c_short;
        set(libc::SIOCSIFFLAGS, flags)
    }
}

fn any_socket() -> io::Result<OwnedFd> {
    let kind = libc::SOCK_DGRAM | libc::SOCK_CLOEXEC;
    // SAFETY: creates a new descriptor.
    let descriptor = unsafe { libc::socket(libc::AF_UNIX, kind, 0) };
    if descriptor < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the descriptor was just created and has no other owner.
    Ok(unsafe { OwnedFd::from_raw_fd(descriptor) })
}

/// An `ifreq` for the interface with this name; all other fields are zero.
pub(crate) fn request(name: &str) -> io::Result<libc::ifreq> {
    // SAFETY: all fields may be zero.
    let mut empty: libc::ifreq = unsafe { mem::zeroed() };
    // The name must end with a zero byte.
    if name.len() >= empty.ifr_name.len() || name.contains('\0') {
        return Err(io::Error::from_raw_os_error(libc::ENAMETOOLONG));
    }
    for (place, byte) in empty.ifr_name.iter_mut().zip(name.bytes()) {
        *place = byte as _;
    }
    Ok(empty)
}

/// Calls an ioctl that takes an `ifreq` with a name and fills in the rest.
fn ask(descriptor: &OwnedFd, empty: libc::ifreq, code: c_ulong) -> io::Result<libc::ifreq> {
    let mut answer = empty;
    // SAFETY: the caller passes such a code, and `answer` has room for everything that the kernel fills in.
    let result: c_int = unsafe { libc::ioctl(descriptor.as_raw_fd(), code as _, &raw mut answer) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(answer) }
}

fn query(name: &str) -> io::Result<Interface> {
    let (descriptor, empty) = (any_socket()?, request(name)?);
    let ask = |code: c_ulong| ask(&descriptor, empty, code);
    let mtu = ask(libc::SIOCGIFMTU)?;
    let flags = ask(libc::SIOCGIFFLAGS)?;
    let address = ask(libc::SIOCGIFHWADDR)?;
    let index = ask(libc::SIOCGIFINDEX)?;
    // SAFETY: the kernel has filled the field that belongs to each code; any bytes are valid in all of them.
    let (mtu, flags, address, index) = unsafe {
        (
            mtu.ifr_ifru.ifru_mtu,
            c_int::from(flags.ifr_ifru.ifru_flags),
            address.ifr_ifru.ifru_hwaddr.sa_data,
            index.ifr_ifru.ifru_ifindex,
        )
    };
    let works = libc::IFF_UP | libc::IFF_RUNNING;
    Ok(Interface {
        index: u32::try_from(index).unwrap_or(0),
        mtu_bytes: usize::try_from(mtu).unwrap_or(0),
        is_up: flags & works == works,
        address: std::array::from_fn(|index| address[index] as u8),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_loopback_interface_is_there_and_others_are_named_in_the_error() {
        let loopback = Interface::query("lo").expect("every network namespace has a loopback interface");
        assert!(loopback.mtu_bytes >= 1500 && loopback.index > 0, "{loopback:?}");
        assert_eq!(loopback.address, [0; 6]);
        let error = Interface::query("no-such-if0").expect_err("the interface does not exist").to_string();
        assert!(error.contains("no-such-if0") && error.contains("No such device"), "{error}");
        assert!(Interface::query("a-name-that-is-far-too-long").is_err());
        assert!(Interface::query("lo\0").is_err());
    }
}
