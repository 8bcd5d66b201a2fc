//! Loads the shim, a shared object that links DPDK, when the first port needs it.
//!
//! Programs are built, installed and started without DPDK. The shim is looked for in the folder of the running program,
//! and where `make install` and the package `namehop-ports` put it. It is never unloaded, because DPDK has threads of
//! its own.

use std::env;
use std::ffi::{CStr, OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW};

use crate::ffi::{Functions, VERSION};

/// Environment variable with the path of the shim, which is then not looked for. It has no effect on programs with more
/// privileges than their user, because it would let the user run any code with them.
pub const VARIABLE: &str = "NAMEHOP_DPDK";

/// Name of the shim's file.
const FILE_NAME: &str = "libnamehop_dpdk.so";
/// Folder of the installed shim, relative to that of the installed program.
const INSTALLED: &str = "../lib/namehop";
/// Folders in which cargo puts test executables and examples, in the folder of the programs.
const CARGO_FOLDERS: [&str; 2] = ["deps", "examples"];
/// The only symbol of the shim; returns the table of functions.
const ENTRY: &CStr = c"namehop_dpdk_functions";

/// Why DPDK could not be loaded.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ShimError {
    /// The shim is in none of the folders.
    #[error("ports need DPDK: install the package namehop-ports, or run 'make ports' (there is no {0})")]
    Absent(String),
    /// The shim, or a library that it needs, cannot be loaded.
    #[error(
        "ports need DPDK, but {path} cannot be loaded: {reason}; install the package namehop-ports, or run \
         'make ports'",
        path = path.display()
    )]
    Refused {
        /// The shim.
        path: PathBuf,
        /// Error of the dynamic linker, which names the library.
        reason: String,
    },
    /// The file is not a shim of Namehop.
    #[error("ports need DPDK, but {path} is not {FILE_NAME}", path = path.display())]
    Foreign {
        /// The file.
        path: PathBuf,
    },
    /// The shim is older or newer than the program.
    #[error(
        "ports need DPDK, but {path} has version {found} and this program needs version {VERSION}: install the package \
         namehop-ports in the version of namehop, or run 'make ports'", path = path.display()
    )]
    Version {
        /// The shim.
        path: PathBuf,
        /// Its version.
        found: u64,
    },
}

/// Returns the functions of the shim, and loads it if that was not done. After a failure, the next call tries again.
///
/// # Errors
/// Fails if there is no shim, if it or a library of DPDK cannot be loaded, or if its version is not that of the
/// program.
pub(crate) fn load() -> Result<&'static Functions, ShimError> {
    static LOADED: OnceLock<&'static Functions> = OnceLock::new();
    if let Some(functions) = LOADED.get() {
        return Ok(functions);
    }
    let path = find()?;
    let functions = open(&path)?;
    tracing::debug!(path = %path.display(), "DPDK loaded");
    // Two threads that load at the same time get the same table, because the linker loads a file only once.
    Ok(LOADED.get_or_init(|| functions))
}

/// Returns the path of the shim for this process.
fn find() -> Result<PathBuf, ShimError> {
    // SAFETY: the function takes any number.
    let is_privileged = unsafe { libc::getauxval(libc::AT_SECURE) } != 0;
    if let Some(path) = env::var_os(VARIABLE).filter(|_| !is_privileged) {
        return Ok(named(path));
    }
    let program = env::current_exe().unwrap_or_default();
    let candidates = candidates(&program);
    candidates.iter().find(|path| path.is_file()).cloned().ok_or_else(|| {
        let tried: Vec<String> = candidates.iter().map(|path| path.display().to_string()).collect();
        ShimError::Absent(tried.join(" and no "))
    })
}

/// The file that the environment variable names. The linker looks up names without a slash in its own folders.
fn named(path: OsString) -> PathBuf {
    std::path::absolute(&path).unwrap_or_else(|_| path.into())
}

/// The files that may be the shim of the program with this path, the first choice first.
fn candidates(program: &Path) -> Vec<PathBuf> {
    let folder = program.parent().unwrap_or(Path::new("/"));
    let is_of_cargo = CARGO_FOLDERS.iter().any(|name| folder.file_name() == Some(OsStr::new(name)));
    let folder = folder.parent().filter(|_| is_of_cargo).unwrap_or(folder);
    vec![folder.join(FILE_NAME), folder.join(INSTALLED).join(FILE_NAME)]
}

/// Loads the shim in this file.
fn open(path: &Path) -> Result<&'static Functions, ShimError> {
    let refused = |reason: String| ShimError::Refused { path: path.to_owned(), reason };
    if is_truncated(path).map_err(|error| refused(error.to_string()))? {
        return Err(refused("the file is truncated".to_owned()));
    }
    // All symbols are resolved now, so that a missing one is an error here. They are local: DPDK's drivers find its
    // libraries by their names.
    // SAFETY: initializers of DPDK's libraries only register themselves; the shim has none.
    let library =
        unsafe { Library::open(Some(path), RTLD_NOW | RTLD_LOCAL) }.map_err(|error| refused(error.to_string()))?;
    // SAFETY: if the symbol exists, it is a function of this type.
    let entry = unsafe { library.get::<unsafe extern "C" fn() -> *const Functions>(ENTRY.to_bytes_with_nul()) };
    let Ok(entry) = entry else { return Err(ShimError::Foreign { path: path.to_owned() }) };
    // SAFETY: the function has no requirements.
    let table = unsafe { entry() };
    // SAFETY: the table of every version begins with the version, a `u64`.
    let found = unsafe { table.cast::<u64>().read() };
    if found != VERSION {
        return Err(ShimError::Version { path: path.to_owned(), found });
    }
    std::mem::forget(library);
    // SAFETY: the table is constant, has the declared type in this version, and is never unloaded.
    Ok(unsafe { &*table })
}

/// True if the file ends before its section headers, which are its last part. The linker maps such a file, and the
/// process ends when it reads behind the end. Files that are no shared objects are left to the linker.
fn is_truncated(path: &Path) -> io::Result<bool> {
    /// Size of the header of a 64-bit ELF file; the next constant is its start in little-endian files.
    const HEADER_BYTES: usize = 64;
    const START: &[u8] = b"\x7fELF\x02\x01";
    let file = File::open(path)?;
    let mut header = [0; HEADER_BYTES];
    if file.read_at(&mut header, 0)? < HEADER_BYTES || !header.starts_with(START) {
        return Ok(false);
    }
    let number =
        |at: usize, bytes: usize| header[at..at + bytes].iter().rev().fold(0, |n, byte| n << 8 | u64::from(*byte));
    // `e_shoff`, `e_shentsize` and `e_shnum`.
    let (offset, size, count) = (number(40, 8), number(58, 2), number(60, 2));
    Ok(file.metadata()?.len() < offset.saturating_add(size * count))
}

#[cfg(test)]
mod tests;
