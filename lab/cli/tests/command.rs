//! Tests of the `namehop-lab` binary.

use std::process::{Command, Output};
use std::thread;

use namehop_client::testing::Loopback;
use serde_json::Value;

fn lab(arguments: &str) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_namehop-lab"));
    command.args(arguments.split(' ')).output().expect("the program runs")
}

/// Returns the output of a command that must succeed.
#[track_caller]
fn text(arguments: &str) -> String {
    let Output { status, stdout, stderr } = lab(arguments);
    assert!(status.success(), "{arguments}: {status}\n{}", String::from_utf8_lossy(&stderr));
    String::from_utf8(stdout).expect("the output is text")
}

#[track_caller]
fn json(arguments: &str) -> Value {
    serde_json::from_str(&text(arguments)).expect("the output is JSON")
}

/// Returns the message of a command that must fail with this exit code.
#[track_caller]
fn refused(arguments: &str, code: i32) -> String {
    let Output { status, stderr, .. } = lab(arguments);
    let message = String::from_utf8(stderr).expect("the message is text");
    assert_eq!(status.code(), Some(code), "{arguments}: {message}");
    message
}

#[test]
fn sockets_are_measured_against_a_forwarder() {
    let directory = tempfile::tempdir().expect("a directory");
    let socket = directory.path().join("nfd.sock");
    let (ready, listening) = std::sync::mpsc::channel();
    let (end, ended) = tokio::sync::oneshot::channel::<()>();
    let forwarder = thread::spawn({
        let socket = socket.clone();
        move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
            runtime.block_on(async {
                Loopback::new().listen(&socket).expect("a socket");
                ready.send(()).expect("the test waits");
                let _ = ended.await;
            });
        }
    });
    listening.recv().expect("the forwarder listens");
    let bench = format!("--transport unix://{} bench sockets", socket.display());
    let this = std::process::id();
    let report =
        json(&format!("{bench} --duration 400ms --warm-up 100ms --in-flight 16 --payload 500 --json --pid {this}"));
    assert!(report["exchanges"].as_u64().expect("number") > 50, "{report}");
    assert_eq!((&report["timeouts"], &report["nacks"]), (&0.into(), &0.into()));
    assert!(report["rtt_p99_us"].as_f64() >= report["rtt_p50_us"].as_f64());
    assert!(report["forwarder_cpu_us_per_exchange"].is_number());
    refused(&format!("{bench} --lifetime 0"), 2);
    drop(end);
    forwarder.join().expect("the forwarder ends");
    refused(&format!("{bench} --duration 1s"), 3);
}

/// A script for the whole command line, whichever program makes it.
#[test]
fn completions_and_pages_cover_all_programs() {
    let script = text("completions bash");
    assert!(script.contains("--in-flight") && script.contains("--persistency"));
    let directory = tempfile::tempdir().expect("a directory");
    text(&format!("manual {}", directory.path().display()));
    for page in ["namehop.1", "namehop-bench-sockets.1", "namehop-face-create.1"] {
        assert!(directory.path().join(page).is_file(), "{page}");
    }
}

#[test]
fn memory_figures_come_as_json_and_as_text() {
    let report = json("bench memory --area 2MiB --time 1ms --json");
    let dram = &report["by_pages"][0]["dram"];
    assert!(dram["dependent_ns"].as_f64().expect("number") > 0.0);
    assert_eq!(dram["lines_per_second_by_in_flight"][0]["in_flight"], 1);
    assert!(dram["page_bytes"].as_u64().expect("number") >= 4096);
    assert!(text("bench memory --area 2MiB --time 1ms").contains("Dependent access"));
    assert!(refused("bench memory --area 1KiB", 2).contains("at least"));
}

#[test]
#[ignore = "slow"]
fn published_figures_are_listed_and_regenerated() {
    let listed = json("reproduce --json");
    let ids: Vec<&str> = listed.as_array().expect("list").iter().filter_map(|item| item["id"].as_str()).collect();
    assert!(ids.contains(&"patricia") && ids.contains(&"two-stage"), "{ids:?}");
    assert_eq!(text("reproduce --list").lines().count(), ids.len() + 1);

    let directory = tempfile::tempdir().expect("directory");
    let svg = directory.path().join("charts");
    // Items about routers between links and P4 programs take minutes; system tests cover some of them.
    let short: Vec<&str> = ids
        .iter()
        .copied()
        .filter(|id| *id == "shi-figure-9" || !(id.starts_with("shi-") || id.starts_with("p4-")))
        .collect();
    let command = format!(
        "reproduce {} --prefixes 5000 --area 2MiB --time 1ms --seconds 1ms --runs 2 --cache-requests 2000 --json \
         --svg {}",
        short.join(" "),
        svg.display()
    );
    let reports = json(&command);
    assert_eq!(reports.as_array().map(Vec::len), Some(short.len()));
    let patricia = reports.as_array().and_then(|reports| reports.iter().find(|report| report["id"] == "patricia"));
    let published = &patricia.expect("report")["rows"][0]["cells"];
    let (seven, seven_too) = (serde_json::json!({"published": 7.0}), serde_json::json!({"computed": 7.0}));
    assert_eq!((&published[5], &published[6]), (&seven, &seven_too));
    for report in reports.as_array().expect("reports") {
        let measured = report["rows"].as_array().expect("rows").iter().flat_map(|row| row["cells"].as_array());
        let measured = measured.flatten().filter_map(|cell| cell.get("measured"));
        assert!(measured.clone().all(|value| value["least"].as_f64() <= value["most"].as_f64()), "{report}");
    }
    assert!(svg.join("throughput-bound.svg").exists());
    assert!(refused("reproduce patricia --runs 0", 2).contains("at least 1"));

    assert!(refused("reproduce nonsense", 2).contains("nonsense"));
}
