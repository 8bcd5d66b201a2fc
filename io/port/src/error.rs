//! Errors of DPDK and of the system calls of ports.

use std::io;

use crate::shim::ShimError;

/// An error from DPDK or the kernel.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DpdkError {
    /// A call failed.
    #[error("cannot {action}: {reason}")]
    Refused {
        /// The action that failed, after "cannot".
        action: String,
        /// Error number, as in errno(3).
        code: i32,
        /// Meaning of the error number.
        reason: String,
    },
    /// DPDK could not be loaded.
    #[error(transparent)]
    Load(#[from] ShimError),
    /// A value that cannot be handed to DPDK.
    #[error("{0}")]
    Unusable(String),
}

impl DpdkError {
    /// Makes an error from the negative errno that a call returned.
    pub(crate) fn refused(action: impl Into<String>, result: i32) -> DpdkError {
        let code = result.saturating_neg();
        let mut reason = io::Error::from_raw_os_error(code).to_string();
        // The standard library appends the number, as in "No such device (os error 19)".
        reason.truncate(reason.rfind(" (os error").unwrap_or(reason.len()));
        DpdkError::Refused { action: action.into(), code, reason }
    }

    /// Makes an error from a failed system call.
    pub(crate) fn from_io(action: impl Into<String>, error: &io::Error) -> DpdkError {
        match error.raw_os_error() {
            Some(code) => DpdkError::refused(action, -code),
            None => DpdkError::Unusable(format!("cannot {}: {error}", action.into())),
        }
    }

    /// Returns `result` as a number, or an error if it is a negative errno.
    pub(crate) fn check(result: i32, action: impl FnOnce() -> String) -> Result<u32, DpdkError> {
        u32::try_from(result).map_err(|_| DpdkError::refused(action(), result))
    }

    /// True if the process lacks a privilege.
    pub fn is_permission(&self) -> bool {
        matches!(self, DpdkError::Refused { code: libc::EPERM | libc::EACCES, .. })
    }
}
