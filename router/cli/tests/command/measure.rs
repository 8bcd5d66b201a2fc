//! Tests of commands that measure this host; they need no forwarder.

use std::process::Command;

use super::support::Ran;

fn namehop(arguments: &str) -> Ran {
    let output = Command::new(env!("CARGO_BIN_EXE_namehop")).args(arguments.split(' ')).output();
    Ran::from(output.expect("the program runs"))
}

#[test]
fn memory_figures_come_as_json_and_as_text() {
    let report = namehop("bench memory --area 2MiB --time 1ms --json").json();
    let dram = &report["by_pages"][0]["dram"];
    assert!(dram["dependent_ns"].as_f64().expect("number") > 0.0);
    assert_eq!(dram["lines_per_second_by_in_flight"][0]["in_flight"], 1);
    assert!(dram["page_bytes"].as_u64().expect("number") >= 4096);
    assert!(namehop("bench memory --area 2MiB --time 1ms").ok().contains("Dependent access"));
    assert!(namehop("bench memory --area 1KiB").failed(2).contains("at least"));
}

#[test]
fn published_figures_are_listed_and_regenerated() {
    let listed = namehop("reproduce --json").json();
    let ids: Vec<&str> = listed.as_array().expect("list").iter().filter_map(|item| item["id"].as_str()).collect();
    assert!(ids.contains(&"patricia") && ids.contains(&"two-stage"), "{ids:?}");
    assert_eq!(namehop("reproduce --list").ok().lines().count(), ids.len() + 1);

    let directory = tempfile::tempdir().expect("directory");
    let svg = directory.path().join("charts");
    // Items about routers between links and P4 programs take minutes; system tests cover some of them.
    let short: Vec<&str> = ids
        .iter()
        .copied()
        .filter(|id| *id == "shi-figure-9" || !(id.starts_with("shi-") || id.starts_with("p4-")))
        .collect();
    let command = format!(
        "reproduce {} --prefixes 5000 --area 2MiB --time 1ms --seconds 1ms --runs 2 --cache-requests 2000 --json --svg {}",
        short.join(" "),
        svg.display()
    );
    let reports = namehop(&command).json();
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
    assert!(namehop("reproduce patricia --runs 0").failed(2).contains("at least 1"));

    assert!(namehop("reproduce nonsense").failed(2).contains("nonsense"));
}
