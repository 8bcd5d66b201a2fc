//! From C to a shared object or an executable, with the system's C compiler and the runtime of compiled programs.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process::{self, Command};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use namehop_p4_compile::emit::Emitted;

use crate::files::RUNTIME;

/// Files of the runtime for only one kind of output.
const MAINS: [&str; 2] = ["host.c", "player.c"];

/// Options for all parts of a loadable program.
const LOADABLE: [&str; 4] = ["-fPIC", "-fvisibility=hidden", "-ftls-model=initial-exec", "-pthread"];

/// What an encrypting program needs.
const NO_CIPHER: &str = "the program encrypts packets, which needs the library intel-ipsec-mb, version 1.3 or newer, \
    on x86-64: apt install libipsec-mb-dev";

/// An error: something is not installed. The text says what to install.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Missing(pub String);

impl Missing {
    /// Wraps the text into an I/O error.
    pub fn error(what: impl Into<String>) -> io::Error {
        io::Error::new(io::ErrorKind::NotFound, Missing(what.into()))
    }

    /// The missing dependency, if that is the cause of an error.
    pub fn reason(error: &io::Error) -> Option<&Missing> {
        error.get_ref()?.downcast_ref()
    }
}

/// Sanitizers that the C compiler builds in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sanitize {
    /// None.
    #[default]
    Nothing,
    /// Memory accesses and undefined behaviour.
    Memory,
    /// Data races between threads; for tests.
    Threads,
}

impl Sanitize {
    fn arguments(self) -> &'static [&'static str] {
        match self {
            Sanitize::Nothing => &[],
            Sanitize::Memory => &["-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"],
            Sanitize::Threads => &["-g", "-fsanitize=thread"],
        }
    }
}

/// Options of the C compiler.
#[derive(Clone, Debug, Default)]
pub struct Build {
    /// Optimize for this host's CPU instead of any CPU of its architecture.
    pub native: bool,
    /// Checks that are built in.
    pub sanitize: Sanitize,
    /// Optimization level.
    pub speed: Speed,
}

/// Optimization level of the C compiler.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Speed {
    /// As for programs that are used.
    #[default]
    Best,
    /// For tests.
    Some,
    /// For large numbers of test programs.
    None,
}

/// A temporary folder with the runtime; removed on drop.
pub struct Workshop {
    folder: PathBuf,
    build: Build,
    /// True once the object file of [`Workshop::runtime_object`] exists.
    has_runtime_object: Mutex<bool>,
}

impl Workshop {
    /// Creates the folder and compiles the player.
    ///
    /// # Errors
    ///
    /// Fails if there is no C compiler, or if files cannot be written.
    pub fn with_player(build: Build) -> io::Result<Self> {
        let workshop = Workshop::new(build)?;
        workshop.executable("player.c", &["-rdynamic", "-ldl"], &workshop.player())?;
        Ok(workshop)
    }

    /// Creates the folder with the runtime.
    ///
    /// # Errors
    /// Fails if files cannot be written.
    pub fn new(build: Build) -> io::Result<Self> {
        static NUMBER: AtomicUsize = AtomicUsize::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let folder = std::env::temp_dir().join(format!("namehop-p4-{}-{number}", process::id()));
        // Only this user may create files there; a folder that already exists is an error.
        fs::DirBuilder::new().mode(0o700).create(&folder)?;
        let workshop = Workshop { folder, build, has_runtime_object: Mutex::new(false) };
        for (name, text) in RUNTIME {
            fs::write(workshop.folder.join(name), text)?;
        }
        Ok(workshop)
    }

    /// Returns the folder, for further files.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Returns the path of the player.
    pub fn player(&self) -> PathBuf {
        self.folder.join("player")
    }

    /// Compiles a file of the folder, with the runtime, to an executable.
    pub fn executable(&self, main: &str, arguments: &[&str], to: &Path) -> io::Result<()> {
        let mut list = self.runtime(main);
        list.extend(arguments.iter().chain(&["-pthread"]).map(OsString::from));
        self.cc(&list, to)
    }

    /// The files of the runtime, with `main`, the file for one kind of output.
    fn runtime(&self, main: &str) -> Vec<OsString> {
        let parts = RUNTIME.iter().map(|(name, _)| *name).filter(|name| name.ends_with(".c") && !MAINS.contains(name));
        parts.chain([main]).map(|name| self.folder.join(name).into()).collect()
    }

    /// Compiles a program, with the runtime, to a shared object that `namehop p4 run` loads. It exports one function
    /// (`host.h`).
    pub fn loadable(&self, program: &Emitted, to: &Path) -> io::Result<()> {
        let runtime = self.runtime_object().map_err(|error| naming_library(program, error))?;
        let source = self.folder.join("program.c");
        fs::write(&source, &program.text)?;
        let mut list = vec![source.into(), runtime.into()];
        list.extend(LOADABLE.iter().chain(&["-shared", "-Wl,--no-undefined"]).map(OsString::from));
        self.with_libraries(program, list, to)
    }

    /// Returns the object file of the runtime of loadable programs. The first call compiles it, because a workshop may
    /// build many programs.
    fn runtime_object(&self) -> io::Result<PathBuf> {
        let object = self.folder.join("runtime.o");
        let mut exists = self.has_runtime_object.lock().unwrap_or_else(PoisonError::into_inner);
        if !*exists {
            let mut list = self.runtime("host.c");
            list.extend(LOADABLE.iter().chain(&["-r", "-nostdlib"]).map(OsString::from));
            self.cc(&list, &object)?;
            *exists = true;
        }
        Ok(object)
    }

    /// Compiles a program to a shared object that uses the runtime of the process that loads it.
    pub fn program(&self, program: &Emitted, name: &str, to: &Path) -> io::Result<()> {
        self.program_with(program, name, &[], to)
    }

    /// Like `program`, with further arguments for the C compiler.
    pub fn program_with(&self, program: &Emitted, name: &str, arguments: &[String], to: &Path) -> io::Result<()> {
        self.with_libraries(program, self.shared(&program.text, name, arguments)?, to)
    }

    /// Compiles C code from another source to a shared object, with further arguments for the C compiler.
    pub fn text_with(&self, text: &str, name: &str, arguments: &[String], to: &Path) -> io::Result<()> {
        self.cc(&self.shared(text, name, arguments)?, to)
    }

    /// Writes C code to a file, and returns the compiler arguments that make a shared object of it.
    fn shared(&self, text: &str, name: &str, arguments: &[String]) -> io::Result<Vec<OsString>> {
        let source = self.folder.join(format!("{name}.c"));
        fs::write(&source, text)?;
        let mut list = vec![source.into(), "-shared".into(), "-fPIC".into()];
        list.extend(arguments.iter().map(OsString::from));
        Ok(list)
    }

    /// Runs the C compiler, linking the encryption library if the program needs it.
    fn with_libraries(&self, program: &Emitted, mut arguments: Vec<OsString>, to: &Path) -> io::Result<()> {
        if !program.encrypts {
            return self.cc(&arguments, to);
        }
        arguments.push("-lIPSec_MB".into());
        self.cc(&arguments, to).map_err(|error| naming_library(program, error))
    }

    fn cc(&self, arguments: &[OsString], to: &Path) -> io::Result<()> {
        let compiler = std::env::var_os("CC").filter(|name| !name.is_empty());
        let candidates = match compiler {
            Some(compiler) => vec![compiler],
            None => ["cc", "gcc", "clang"].map(OsString::from).to_vec(),
        };
        for compiler in candidates {
            let mut command = Command::new(&compiler);
            // Define the behaviour of aliasing and overflow, so that programs do not depend on undefined behaviour of
            // C.
            command.args(["-std=gnu11", "-w", "-fno-strict-aliasing", "-fwrapv"]);
            command.args(match self.build.speed {
                Speed::Best => &["-O2"][..],
                Speed::Some => &["-O1"],
                Speed::None => &["-O0", "-DP4_IN_PLACE=inline"],
            });
            if self.build.native {
                command.arg("-march=native");
            }
            command.args(self.build.sanitize.arguments());
            command.arg("-I").arg(&self.folder).args(arguments).arg("-o").arg(to);
            match command.output() {
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(error),
                Ok(output) if output.status.success() => return Ok(()),
                Ok(output) => {
                    let text = String::from_utf8_lossy(&output.stderr);
                    let start: Vec<&str> = text.lines().take(12).collect();
                    return Err(io::Error::other(format!(
                        "the C compiler {} rejects the generated code; please report this program:\n{}",
                        compiler.to_string_lossy(),
                        start.join("\n")
                    )));
                }
            }
        }
        Err(io::Error::other(
            "no C compiler found: install one, for example with 'apt install gcc', or set the variable CC",
        ))
    }
}

impl Drop for Workshop {
    fn drop(&mut self) {
        // If it cannot be removed, it stays among the temporary files.
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// Replaces an error of the C compiler by [`NO_CIPHER`] if the program encrypts and the encryption library is missing.
fn naming_library(program: &Emitted, error: io::Error) -> io::Error {
    let said = error.to_string();
    let is_missing = program.encrypts && (said.contains("intel-ipsec-mb") || said.contains("IPSec_MB"));
    if is_missing { Missing::error(NO_CIPHER) } else { error }
}

/// Returns the answer of pkg-config about DPDK as words.
///
/// # Errors
/// Fails if DPDK's headers are not installed.
pub fn pkg_config(what: &str) -> io::Result<Vec<String>> {
    let missing =
        || io::Error::other("measuring needs the DPDK headers, which are missing: apt install libdpdk-dev pkg-config");
    let output = Command::new("pkg-config").args([what, "libdpdk"]).output().map_err(|_| missing())?;
    if !output.status.success() {
        return Err(missing());
    }
    Ok(String::from_utf8_lossy(&output.stdout).split_whitespace().map(str::to_owned).collect())
}
