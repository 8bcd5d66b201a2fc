//! Files below `/etc` that repeat changes at each boot: their paths, for plans and for detection.

/// File that reserves huge pages of the default size.
pub(crate) const SYSCTL_FILE: &str = "/etc/sysctl.d/60-namehop.conf";
/// Prefix of the files for other page sizes; the size follows.
const TMPFILES_FILE: &str = "/etc/tmpfiles.d/namehop-huge-pages-";
/// Prefix of the files that bind a card to vfio-pci when the kernel detects it; the PCI address follows.
const UDEV_FILE: &str = "/etc/udev/rules.d/60-namehop-";

/// Returns the path of the file that reserves huge pages of this size, which is not the default size.
pub(crate) fn tmpfiles_file(page_bytes: u64) -> String {
    format!("{TMPFILES_FILE}{}kB.conf", page_bytes >> 10)
}

/// Returns the path of the file that binds the card with this PCI address to vfio-pci.
pub(crate) fn udev_file(address: &str) -> String {
    format!("{UDEV_FILE}{address}.rules")
}

/// Returns whether plans write this file to reserve huge pages.
pub(crate) fn reserves_huge_pages(path: &str) -> bool {
    path == SYSCTL_FILE || path.starts_with(TMPFILES_FILE)
}
