//! Each error of loading, with files that are made here, and the agreement of `shim/shim.h` with `ffi.rs`.

use std::fs;
use std::process::Command;

use super::*;

const HEADER: &str = include_str!("../../shim/shim.h");
const FFI: &str = include_str!("../ffi.rs");

/// Compiles a shared object from C.
fn compile(folder: &Path, text: &str) -> PathBuf {
    let (source, path) = (folder.join("shim.c"), folder.join(FILE_NAME));
    fs::write(&source, text).expect("written");
    let output = Command::new("cc").args(["-shared", "-fPIC", "-o"]).args([&path, &source]).output().expect("cc runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    path
}

/// Opens a file that is no shim; returns the error.
fn error_of(path: &Path) -> ShimError {
    let error = open(path).expect_err("not a shim");
    let text = error.to_string();
    assert!(text.starts_with("ports need DPDK, but ") && text.contains(&path.display().to_string()), "{text}");
    error
}

#[test]
fn a_missing_file_is_an_error_that_says_what_to_do() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join(FILE_NAME);
    let ShimError::Refused { reason, .. } = error_of(&path) else { panic!("a missing file is refused") };
    assert!(reason.contains("No such file"), "{reason}");
    let absent = ShimError::Absent("/a/b.so and no /c/b.so".to_owned()).to_string();
    assert!(absent.contains("namehop-ports") && absent.contains("'make ports'") && absent.contains("/c/b.so"));
}

#[test]
fn a_missing_library_is_named() {
    let folder = tempfile::tempdir().expect("a folder");
    let library = folder.path().join("librte_none.so");
    let path = compile(folder.path(), "int rte_none(void) { return 0; }");
    fs::rename(&path, &library).expect("renamed");
    fs::write(folder.path().join("shim.c"), "int rte_none(void); int use(void) { return rte_none(); }")
        .expect("written");
    let linked = Command::new("cc")
        .args(["-shared", "-fPIC", "shim.c", "-L.", "-lrte_none", "-o", FILE_NAME])
        .current_dir(folder.path())
        .status()
        .expect("cc runs");
    assert!(linked.success());
    fs::remove_file(&library).expect("removed");
    let ShimError::Refused { reason, .. } = error_of(&path) else { panic!("a missing library is refused") };
    assert!(reason.contains("librte_none.so"), "{reason}");
}

#[test]
fn a_truncated_file_is_refused_and_does_not_end_the_process() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = compile(folder.path(), "int other(void) { return 0; }");
    let whole = fs::read(&path).expect("read");
    for kept in [0, 10, 64, 1000, whole.len() / 2, whole.len() - 1] {
        fs::write(&path, &whole[..kept]).expect("written");
        assert!(matches!(error_of(&path), ShimError::Refused { .. }), "{kept} bytes of {}", whole.len());
    }
    fs::write(&path, "not a shared object, but as long as the header of one is: text text text").expect("written");
    assert!(matches!(error_of(&path), ShimError::Refused { .. }));
}

#[test]
fn a_file_of_another_kind_or_version_is_an_error() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = compile(folder.path(), "int other(void) { return 0; }");
    assert_eq!(error_of(&path), ShimError::Foreign { path });
    let folder = tempfile::tempdir().expect("a folder");
    let found = VERSION + 1;
    let text = format!(
        "static const unsigned long table = {found}; const void *namehop_dpdk_functions(void) {{ return &table; }}"
    );
    let path = compile(folder.path(), &text);
    assert_eq!(error_of(&path), ShimError::Version { path, found });
}

#[test]
fn the_shim_is_looked_for_beside_programs_and_test_executables_and_where_it_is_installed() {
    let of = |program: &str| candidates(Path::new(program));
    let paths = |list: [&str; 2]| list.map(PathBuf::from).to_vec();
    let built = paths(["/t/debug/libnamehop_dpdk.so", "/t/debug/../lib/namehop/libnamehop_dpdk.so"]);
    for program in ["/t/debug/namehop", "/t/debug/deps/nic-0123", "/t/debug/examples/steering"] {
        assert_eq!(of(program), built, "{program}");
    }
    let installed = paths(["/usr/bin/libnamehop_dpdk.so", "/usr/bin/../lib/namehop/libnamehop_dpdk.so"]);
    assert_eq!(of("/usr/bin/namehop"), installed);
    // A folder above the program's may belong to another user.
    assert_eq!(of("/tmp/mine/namehop")[0], Path::new("/tmp/mine/libnamehop_dpdk.so"));
    assert!(named("shim.so".into()).is_absolute(), "the linker looks up names without a slash elsewhere");
}

#[test]
fn the_table_is_declared_alike_in_c_and_rust() {
    let version = |text: &str, before: &str| -> u64 {
        let (_, rest) = text.split_once(before).expect("a version");
        rest.split(|end: char| !end.is_ascii_digit()).next().expect("digits").parse().expect("a number")
    };
    assert_eq!(version(HEADER, "#define NAMEHOP_DPDK_VERSION "), VERSION);
    assert_eq!(version(FFI, "VERSION: u64 = "), VERSION);
    let in_c: Vec<&str> =
        HEADER.lines().filter_map(|line| line.trim().strip_prefix("__typeof__(namehop_")?.split(')').next()).collect();
    let (_, table) = FFI.split_once("struct Functions {").expect("the table");
    let in_rust: Vec<&str> = table
        .lines()
        .filter_map(|line| line.trim().strip_prefix("pub(crate) ")?.split(':').next())
        .filter(|name| *name != "version")
        .collect();
    assert_eq!(in_c, in_rust);
    assert!(in_c.len() > 20, "{in_c:?}");
}
