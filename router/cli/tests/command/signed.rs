//! Tests of commands to a router that accepts only one key.

use crate::support::Scene;

const OPERATOR: &str = "--signing-key operator.key --certificate operator.ndncert";
const OTHER_KEY: &str = "--signing-key stranger.key --certificate stranger.ndncert";

/// Returns a router that accepts the operator's key, with the keys of the operator and a stranger.
fn scene() -> Scene {
    let mut scene = Scene::empty();
    for (owner, kind) in [("operator", "ecdsa"), ("stranger", "ed25519")] {
        let files = format!("--key {owner}.key --certificate {owner}.ndncert");
        scene.run(&format!("key generate /test/{owner} {files} --type {kind}")).ok();
    }
    scene.start_router(&format!(
        "[[management.authorizations]]\ncertificate = \"{}\"\n\
         modules = [\"faces\", \"fib\", \"cs\", \"strategy-choice\", \"rib\"]\n",
        scene.path("operator.ndncert").display()
    ));
    scene
}

#[test]
fn only_the_authorized_key_commands() {
    let scene = scene();
    for command in [
        "face create udp4://127.0.0.1:46363 --persistency permanent",
        "face update udp4://127.0.0.1:46363 --mtu 1400",
        "route add /a udp4://127.0.0.1:46363",
        "route remove /a udp4://127.0.0.1:46363",
        "strategy set /a multicast",
        "strategy unset /a",
        "cs config --capacity 500",
        "cs erase /",
        "face destroy udp4://127.0.0.1:46363",
    ] {
        // `face update` looks up the face before sending a command, so the face must exist.
        if command.starts_with("face update") {
            scene.run(&format!("face create udp4://127.0.0.1:46363 {OPERATOR}")).ok();
        }
        for line in [command.to_owned(), format!("{command} {OTHER_KEY}")] {
            let error = scene.run(&line).failed(1);
            assert!(error.contains("403") && error.contains("not authorized for module"), "{line}: {error}");
            assert!(error.contains("--signing-key") && error.contains("docs/operation.md"), "{line}: {error}");
        }
        scene.run(&format!("{command} {OPERATOR}")).ok();
    }
    // Options may precede the verb, environment variables may replace them, and options take precedence.
    scene.run(&format!("cs {OPERATOR} config --capacity 600")).ok();
    scene.run_as("operator.key", "operator.ndncert", "cs config --capacity 700").ok();
    scene.run_as("stranger.key", "stranger.ndncert", "cs config --capacity 800").failed(1);
    scene.run_as("stranger.key", "stranger.ndncert", &format!("cs config --capacity 900 {OPERATOR}")).ok();
    scene.run_as("", "", "cs config --capacity 1000").failed(1);
    // Reading datasets requires no key, so a missing one does not matter.
    assert!(scene.run_as("absent.key", "absent.ndncert", "cs info").ok().contains("900 packets"));
}

#[test]
fn many_routes_from_a_file_are_signed() {
    let scene = scene();
    let lines: String = (0..500).map(|number| format!("/bulk/{number} udp4://127.0.0.1:46363\n")).collect();
    std::fs::write(scene.path("routes"), lines).unwrap();
    let summary = scene.run(&format!("route add --file routes --json {OPERATOR}")).json();
    assert_eq!((&summary["added"], &summary["failed"]), (&500.into(), &0.into()));
    let face = scene.run("face show udp4://127.0.0.1:46363 --json").json()["face_id"].clone();
    std::fs::write(scene.path("more"), format!("/more/1 {face}\n/more/2 {face}\n")).unwrap();
    let error = scene.run("route add --file more").failed(1);
    assert!(error.contains("2 routes were not added") && error.contains("--signing-key"), "{error}");
    let lines: String = (0..5000).map(|number| format!("/more/{number} {face}\n")).collect();
    std::fs::write(scene.path("many"), lines).unwrap();
    let refused = scene.run("route add --file many --json");
    let summary: serde_json::Value = serde_json::from_str(&refused.out).unwrap();
    assert_eq!((&summary["added"], &summary["failed"]), (&0.into(), &5000.into()));
    // One by one, a millisecond apart, they would take five seconds.
    assert!(summary["elapsed_s"].as_f64() < Some(4.0), "{summary}");
    assert!(refused.failed(1).lines().count() < 200);
}

#[test]
fn producers_register_with_the_authorized_key() {
    let scene = scene();
    std::fs::write(scene.path("input"), "content").unwrap();
    for line in ["put /test/object --file input", "serve /test/server"] {
        for refused in [line.to_owned(), format!("{line} {OTHER_KEY}")] {
            let error = scene.run(&refused).failed(1);
            assert!(error.contains("403") && error.contains("--signing-key"), "{refused}: {error}");
        }
    }
    // By default, the key of the Data signs commands; --command-key overrides it.
    let mut put = scene.start(&format!("put /test/object {OPERATOR}"), &scene.path("input"));
    put.wait_for("segments");
    assert_eq!(scene.run("cat /test/object --quiet --certificate operator.ndncert").ok(), "content");
    let other = "--command-key operator.key --command-certificate operator.ndncert";
    let mut put = scene.start(&format!("put /test/other {OTHER_KEY} {other}"), &scene.path("input"));
    put.wait_for("segments");
    assert_eq!(scene.run("cat /test/other --quiet --certificate stranger.ndncert").ok(), "content");
    let line = format!("serve /test/server --exit-after 100ms {OTHER_KEY}");
    scene.run_as("operator.key", "operator.ndncert", &line).ok();
}

#[test]
fn wrong_files_are_named() {
    let scene = scene();
    for (options, code, parts) in [
        ("--signing-key absent.key --certificate operator.ndncert", 1, ["absent.key", "No such file"]),
        ("--signing-key operator.ndncert --certificate operator.ndncert", 1, ["operator.ndncert", "malformed"]),
        ("--signing-key operator.key --certificate operator.key", 1, ["operator.key", "base64"]),
        (
            "--signing-key operator.key --certificate stranger.ndncert",
            1,
            ["stranger.ndncert", "does not belong to the key operator"],
        ),
        ("--signing-key operator.key", 2, ["operator.key", "certificate"]),
        ("--certificate operator.ndncert", 2, ["operator.ndncert", "private key"]),
    ] {
        let error = scene.run(&format!("cs erase / {options}")).failed(code);
        assert!(parts.iter().all(|part| error.contains(part)), "{options}: {error}");
    }
}
