//! Measures DPDK's own P4 engine, SWX, as one more variant: its specification of a program, and the C code that it
//! generates.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use namehop_p4_runtime::files::programs;
use namehop_p4_runtime::workshop::{Workshop, pkg_config};

/// Programs with a specification in SWX's language: name and text.
const SPECIFICATIONS: [(&str, &str); 2] = [("l2", programs::L2_SPEC), ("flows", programs::FLOWS_SPEC)];

const NO_SOURCES: &str = "DPDK's P4 engine: its C code needs private headers of DPDK; get the sources with 'apt-get \
    source dpdk' and give their folder with --dpdk-sources";

/// Writes the files that SWX needs for a program into the workshop. `entries` is the number of table entries; 0 leaves
/// the specification's number. `sources` is DPDK's source folder, which has the private headers that the generated C
/// code includes. Returns the shared object of the generated C code, or a text that says what was left out and why;
/// `None` if there is no specification.
///
/// # Errors
///
/// Fails if the sources belong to another DPDK than the installed one, or if the C code cannot be generated or
/// compiled.
pub(super) fn prepare(
    workshop: &Workshop,
    name: &str,
    entries: u64,
    sources: Option<&Path>,
) -> io::Result<Option<Result<PathBuf, String>>> {
    let Some((_, text)) = SPECIFICATIONS.iter().find(|(other, _)| *other == name) else {
        return Ok(None);
    };
    let Some(sources) = sources else {
        return Ok(Some(Err(NO_SOURCES.into())));
    };
    let headers = private_headers(sources)?;
    let text = generate(workshop, &sized(text, entries))?;
    let library = workshop.folder().join("swx.so");
    // SWX's own tools compile with -O3.
    let mut flags = vec!["-O3".into(), "-I".into(), headers.to_string_lossy().into_owned()];
    flags.extend(pkg_config("--cflags")?);
    workshop.text_with(&text, "swx", &flags, &library)?;
    Ok(Some(Ok(library)))
}

/// Compiler arguments for a program that uses SWX, which is not part of DPDK's stable interface.
pub(super) fn libraries() -> io::Result<Vec<String>> {
    Ok([pkg_config("--cflags")?, vec!["-DALLOW_EXPERIMENTAL_API".into()], pkg_config("--libs")?].concat())
}

/// Generates the C code of a specification with SWX.
fn generate(workshop: &Workshop, specification: &str) -> io::Result<String> {
    let [from, to, generator] = ["swx.spec", "swx_text.c", "swx_codegen"].map(|name| workshop.folder().join(name));
    fs::write(&from, specification)?;
    let libraries = libraries()?;
    let arguments: Vec<&str> = libraries.iter().map(String::as_str).collect();
    workshop.executable("swx_codegen.c", &arguments, &generator)?;
    let output = Command::new(&generator).args([&from, &to]).output()?;
    if !output.status.success() {
        return Err(io::Error::other(String::from_utf8_lossy(&output.stderr).trim().to_owned()));
    }
    fs::read_to_string(&to)
}

/// Replaces the table size in a specification.
fn sized(text: &str, entries: u64) -> String {
    let lines = text.lines().map(|line| match line.trim_start().strip_prefix("size ") {
        Some(_) if entries > 0 => format!("\tsize {entries}\n"),
        _ => format!("{line}\n"),
    });
    lines.collect()
}

/// The folder of DPDK's private headers. They must be of the installed version, because other versions have other
/// structure layouts.
fn private_headers(sources: &Path) -> io::Result<PathBuf> {
    let headers = sources.join("lib/pipeline");
    let version = fs::read_to_string(sources.join("VERSION")).unwrap_or_default();
    if !headers.join("rte_swx_pipeline_internal.h").exists() || version.is_empty() {
        return Err(io::Error::other(format!(
            "{} contains no DPDK sources: get them with 'apt-get source dpdk'",
            sources.display()
        )));
    }
    let installed = pkg_config("--modversion")?.concat();
    if version.trim() != installed {
        return Err(io::Error::other(format!(
            "the sources in {} are of DPDK {}, but {installed} is installed: get the sources of the installed version",
            sources.display(),
            version.trim()
        )));
    }
    Ok(headers)
}

#[cfg(test)]
mod tests {
    use namehop_p4_runtime::files::BENCH;
    use namehop_p4_runtime::workshop::{Build, Speed};

    use super::*;

    #[test]
    fn tables_get_the_size_that_is_asked_for() {
        let (_, text) = SPECIFICATIONS[0];
        assert_eq!(sized(text, 0), text);
        let other = sized(text, 1000);
        assert_eq!(other.matches("\tsize 1000\n").count(), 2);
        assert!(!other.contains("size 16777216"));
    }

    #[test]
    fn dpdk_makes_c_of_the_specifications() {
        let workshop = Workshop::new(Build { speed: Speed::Some, ..Build::default() }).expect("a workshop");
        let (name, text) = BENCH.iter().find(|(name, _)| *name == "swx_codegen.c").expect("a file of the benchmark");
        fs::write(workshop.folder().join(name), text).expect("a file");
        for (name, text) in SPECIFICATIONS {
            let text = generate(&workshop, text).unwrap_or_else(|error| panic!("{name}: {error}"));
            assert!(text.contains("action_send_run"), "{name}: {text}");
        }
        let refused = generate(&workshop, "struct").expect_err("an invalid specification must be rejected").to_string();
        assert!(refused.contains("SWX rejects line 1"), "{refused}");
    }

    #[test]
    fn sources_of_another_version_are_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        let folder = folder.path();
        fs::create_dir_all(folder.join("lib/pipeline")).expect("a folder");
        let missing = private_headers(folder).expect_err("a folder without DPDK sources must be rejected").to_string();
        assert!(missing.contains("contains no DPDK sources"), "{missing}");
        fs::write(folder.join("lib/pipeline/rte_swx_pipeline_internal.h"), "").expect("a file");
        fs::write(folder.join("VERSION"), "1.2.3\n").expect("a file");
        let other = private_headers(folder).expect_err("sources of another version must be rejected").to_string();
        assert!(other.contains("are of DPDK 1.2.3"), "{other}");
    }
}
