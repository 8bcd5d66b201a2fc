//! Programs of the SDK, compiled from C.

use std::path::{Path, PathBuf};
use std::process::Command;

/// Returns the folder of the header and of the programs that are part of Namehop.
pub fn sdk() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../sdk")
}

/// Compiles C that includes the header of the SDK, and returns the object file; `options` are additional compiler
/// options.
///
/// # Panics
/// If the compiler is missing, or prints a warning or an error.
pub fn compile_c(source: &Path, options: &[String]) -> Vec<u8> {
    let versions = ["clang", "clang-14", "clang-15", "clang-16", "clang-17", "clang-18", "clang-19"];
    for compiler in versions {
        let output = Command::new(compiler)
            .args(["-O2", "-Wall", "-Wextra", "-Werror", "-target", "bpf", "-I"])
            .arg(sdk())
            .args(options)
            .arg("-c")
            .arg(source)
            .args(["-o", "-"])
            .output();
        if let Ok(output) = output {
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            return output.stdout;
        }
    }
    panic!("clang is missing: run scripts/setup.sh test");
}
