//! `namehop p4 bench` with missing dependencies. The C compiler is a script: the benchmark that it builds prints one
//! measured variant, and it rejects programs that encrypt, as a compiler without the headers of intel-ipsec-mb does.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

const COMPILER: &str = r#"#!/bin/sh
for to; do :; done
case "$*" in
*-lIPSec_MB*)
    echo 'cipher.h: error: the headers of intel-ipsec-mb are missing' >&2
    exit 1
    ;;
esac
cat > "$to" <<'END'
#!/bin/sh
echo '{"entries": 8, "tsc_hz": 1e9, "footprint_bytes": 0, "load_seconds": 0}'
echo '{"way": "per packet", "burst": 64, "batch": 1, "prefetch": "no", "cycles": 10, "low": 9, "high": 11}'
END
chmod +x "$to"
"#;

fn bench(folder: &Path, arguments: &[&str]) -> Output {
    let compiler = folder.join("cc");
    fs::write(&compiler, COMPILER).expect("written");
    fs::set_permissions(&compiler, fs::Permissions::from_mode(0o755)).expect("set");
    let mut command = Command::new(env!("CARGO_BIN_EXE_namehop-p4"));
    command.args(["bench", "--no-dpdk", "--rounds", "1"]).args(arguments).env("CC", compiler);
    command.output().expect("the program starts")
}

#[test]
fn a_program_whose_library_is_missing_is_left_out_unless_it_is_named() {
    let folder = tempfile::tempdir().expect("a folder");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let all = bench(folder.path(), &["--json"]);
    assert!(all.status.success(), "{}", text(&all.stderr));
    let results: Vec<Value> = serde_json::from_slice(&all.stdout).expect("JSON");
    assert_eq!(results.len(), 9, "every program must have a result");
    for result in &results {
        let (name, missing) = (result["program"].as_str().expect("a name"), &result["missing"]);
        let encrypts = name.starts_with("crypto");
        let names_the_package = missing.as_str().is_some_and(|text| text.contains("apt install libipsec-mb-dev"));
        assert!(names_the_package == encrypts && missing.is_string() == encrypts, "{result}");
        assert_eq!(result["ways"].as_array().map(Vec::len), Some(usize::from(!encrypts)), "{result}");
    }
    let all = bench(folder.path(), &[]);
    let lines = text(&all.stdout);
    assert!(all.status.success());
    for name in ["crypto", "crypto-256", "crypto-1024"] {
        let line =
            lines.lines().find(|line| line.starts_with(&format!("{name}: "))).expect("the program must have a line");
        assert!(line.contains("skipped") && line.contains("apt install libipsec-mb-dev"), "{line}");
    }
    assert_eq!(lines.matches("per packet   ").count(), 6, "{lines}");
    let named = bench(folder.path(), &["l2fwd", "crypto"]);
    assert!(!named.status.success() && text(&named.stderr).contains("apt install libipsec-mb-dev"));
}
