//! Drivers of ports, as named in face URIs.

/// The driver in a port URI such as `dev://…` or `pci://…`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PortDriver {
    /// `dev://eth0`: a network interface of the kernel, through a packet socket.
    Kernel,
    /// `pci://0000:03:00.0`: a network card without the kernel, by its PCI address: domain, bus, device, function.
    Pci,
    /// `tap://ndn0`: a TAP interface to the kernel of this host.
    Tap,
    /// `xdp://eth0`: a network interface of the kernel, through an AF_XDP socket.
    Xdp,
}

impl PortDriver {
    /// All drivers.
    pub const ALL: [PortDriver; 4] = [PortDriver::Kernel, PortDriver::Pci, PortDriver::Tap, PortDriver::Xdp];

    /// Returns the URI scheme.
    pub const fn scheme(self) -> &'static str {
        match self {
            PortDriver::Kernel => "dev",
            PortDriver::Pci => "pci",
            PortDriver::Tap => "tap",
            PortDriver::Xdp => "xdp",
        }
    }
}

/// Whether this is a PCI address in its normal spelling, as `0000:03:00.0`.
pub(super) fn is_pci_address(text: &str) -> bool {
    let shape = b"hhhh:hh:hh.o";
    let fits = |(&byte, &kind): (&u8, &u8)| match kind {
        b'h' => matches!(byte, b'0'..=b'9' | b'a'..=b'f'),
        b'o' => matches!(byte, b'0'..=b'7'),
        sign => byte == sign,
    };
    text.len() == shape.len() && text.as_bytes().iter().zip(shape).all(fits)
}
