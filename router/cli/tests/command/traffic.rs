//! Tests of the traffic commands against the loopback forwarder, and of the exit codes.

use crate::support::Scene;

/// Returns content of several segments that differ.
fn content() -> Vec<u8> {
    (0..100_000u32).flat_map(|number| number.wrapping_mul(2_654_435_761).to_be_bytes()).collect()
}

#[test]
fn what_is_put_can_be_fetched() {
    let scene = Scene::with_loopback();
    std::fs::write(scene.path("input"), content()).unwrap();
    let mut put = scene.start("put /test/object --segment-size 4000 --idle 3s", &scene.path("input"));
    let said = put.wait_for("400000 bytes in 100 segments");
    assert!(said.starts_with("/test/object/v="), "{said}");
    scene.run("cat /test/object --output fetched --quiet").ok();
    assert!(std::fs::read(scene.path("fetched")).unwrap() == content());

    for line in ["cat /test/object", "ping /test/object/v=1 -c 1 --timeout 50ms"] {
        let closed = scene.run_with_closed_output(line);
        assert_eq!((closed.code, closed.err.as_str()), (0, ""), "{line}");
    }
    let by_version = scene.run(&format!("cat {} --output again --json", said.lines().next().unwrap()));
    let statistics: serde_json::Value = serde_json::from_str(&by_version.err).unwrap();
    assert_eq!((&statistics["bytes"], &statistics["segments"]), (&400_000.into(), &100.into()));
    assert_eq!(statistics["discovery"], "given");
    assert_eq!(by_version.code, 0);
    assert_eq!(put.code(), 0);
}

#[test]
fn files_are_published_and_signatures_checked() {
    let scene = Scene::with_loopback();
    std::fs::write(scene.path("input"), "signed content").unwrap();
    for (owner, kind) in [("alice", "ed25519"), ("bob", "ecdsa")] {
        let line = format!("key generate /test/{owner} --key {owner}.key --certificate {owner}.cert --type {kind}");
        assert!(scene.run(&line).ok().starts_with(&format!("/test/{owner}/KEY/")));
        let shown = scene.run(&format!("key show {owner}.cert --json")).json();
        assert_eq!((&shown["identity"], &shown["valid_now"]), (&format!("/test/{owner}").into(), &true.into()));
    }
    let line = "put /test/signed --file input --signing-key alice.key --certificate alice.cert";
    let mut put = scene.start(line, &scene.path("input"));
    put.wait_for("in 1 segments");
    assert_eq!(scene.run("cat /test/signed --quiet --certificate alice.cert").ok(), "signed content");
    let error = scene.run("cat /test/signed --quiet --certificate bob.cert").failed(1);
    assert!(error.contains("signature"), "{error}");
    let unchecked = scene.run("cat /test/signed");
    assert!(unchecked.err.contains("not verified"), "{}", unchecked.err);
}

#[test]
fn probes_are_answered() {
    let scene = Scene::with_loopback();
    std::fs::write(scene.path("nothing"), "").unwrap();
    let mut server = scene.start("serve /test/server --size 25", &scene.path("nothing"));
    server.wait_for("serving");
    let report = scene.run("ping /test/server --count 3 --interval 10ms --json").json();
    assert_eq!((&report["sent"], &report["received"]), (&3.into(), &3.into()));
    assert!(report["rtt_avg_ms"].as_f64().unwrap() > 0.0);
    let text = scene.run("ping /test/server -c 1").ok();
    assert!(text.contains("25 bytes from /test/server") && text.contains("1 sent, 1 received"), "{text}");
    assert!(scene.run("ping /test/nobody -c 1").failed(1).is_empty());
}

#[test]
fn producers_take_their_registration_back_when_they_end() {
    let scene = Scene::with_loopback();
    assert_eq!(scene.run("serve /test/server --exit-after 100ms").code, 0);
    assert_eq!(scene.run("put /test/object --announce --exit-after 100ms").code, 0);
    assert_eq!(scene.unregistered(), ["/test/server", "/test/object"]);
}

#[test]
fn exit_codes_show_the_outcome() {
    let alone = Scene::empty();
    let error = alone.run("ping /test -c 1").failed(3);
    assert!(
        error.contains("namehop run") && error.contains("nfd.sock") && error.contains("NDN_CLIENT_TRANSPORT"),
        "{error}"
    );
    alone.run("status").failed(3);
    alone.run("--transport nonsense status").failed(2);
    alone.run("ping").failed(2);
    alone.run("put /test --segment-size 0").failed(2);
    alone.run("put /test --segment-size 9000").failed(2);
    alone.run_with_open_input("put /test").failed(3);
    let error = alone.run("serve /test --size 8790").failed(2);
    assert!(error.contains("namehop put"), "{error}");

    let scene = Scene::with_loopback();
    std::fs::write(scene.path("nothing"), "").unwrap();
    // A producer that never answers this Interest: its version is different.
    let mut put = scene.start("put /test/silent", &scene.path("nothing"));
    put.wait_for("in 1 segments");
    scene.run("cat /test/silent/v=1 --attempts 1").failed(4);
    let ping = scene.run("ping /test/silent -c 1 --timeout 100ms");
    assert!(ping.out.contains("timeout from /test/silent"), "{}", ping.out);
    ping.failed(4);
    let error = scene.run("cat /test/nobody").failed(1);
    assert!(error.contains("NoRoute"), "{error}");
    std::fs::write(scene.path("kept"), "from before").unwrap();
    scene.run("cat /test/nobody --output kept").failed(1);
    assert_eq!(std::fs::read_to_string(scene.path("kept")).unwrap(), "from before");
    scene.run("cat /test/nobody --output /nowhere/file").failed(1);
    std::fs::write(scene.path("large"), vec![0; 9000]).unwrap();
    scene.run("put /test --file large --segment-size 8790").failed(2);
}

#[test]
fn completions_and_help_need_no_forwarder() {
    let scene = Scene::empty();
    assert!(scene.run("completions bash").ok().contains("namehop"));
    let help = scene.run("help route add").ok();
    assert!(help.contains("namehop route add --file routes.txt") && help.contains("--expires"), "{help}");
    assert!(scene.run("--help").ok().contains("Exit codes"));
}

#[test]
fn consumers_and_producers_account_for_every_interest() {
    let scene = Scene::with_loopback();
    std::fs::write(scene.path("nothing"), "").unwrap();
    let mut producer =
        scene.start("traffic producer /test/one --payload 300 --duration 3s --json", &scene.path("nothing"));
    scene.wait_for_route("/test/one");
    let line = "traffic consumer /test/one --window 8 --congestion cubic --count 100 --lifetime 4s --json";
    let report = scene.run(line).json();
    let counts = &report["consumers"][0];
    assert_eq!((&counts["interests"], &counts["data"]), (&100.into(), &100.into()), "{report}");
    assert!(counts["rtt_p99_us"].as_f64() >= counts["rtt_p50_us"].as_f64() && counts["window"].is_number(), "{report}");
    assert_eq!(producer.code(), 0);

    let plan = "[[consumer]]\ncount = 400\nrate = 2000\n\
                [[consumer.pattern]]\nprefix = \"/test/two\"\nlifetime = \"200ms\"\n\
                [[producer]]\n[[producer.pattern]]\nprefix = \"/test/two\"\n\
                reply = [{ payload = 10 }, { nack = \"congestion\" }, { silent = true }]\n";
    std::fs::write(scene.path("plan.toml"), plan).unwrap();
    let report = scene.run("traffic run plan.toml --json").json();
    let (consumer, producer) = (&report["consumers"][0], &report["producers"][0]);
    let count = |side: &serde_json::Value, name: &str| side[name].as_u64().unwrap();
    let losses: u64 = ["nacks", "timeouts", "unanswered"].iter().map(|name| count(consumer, name)).sum();
    assert_eq!((count(consumer, "interests"), count(consumer, "data") + losses), (400, 400), "{report}");
    assert_eq!(count(consumer, "timeouts"), count(producer, "silent"));
    let text = scene.run("traffic run plan.toml").ok();
    assert!(text.contains("Generator") && text.contains("us per packet"), "{text}");

    std::fs::write(scene.path("plan.toml"), plan.replace("rate", "rat")).unwrap();
    let error = scene.run("traffic run plan.toml").failed(2);
    assert!(error.contains("plan.toml") && error.contains("line 3") && error.contains("docs/traffic.md"), "{error}");
    scene.run("traffic consumer /test/nobody --count 5 --json").failed(4);
    scene.run("traffic consumer /test --names 0").failed(2);
    scene.run("traffic producer /test --payload 9000").failed(2);
    Scene::empty().run("traffic consumer /test").failed(3);
}

#[test]
fn several_objects_become_files_at_once() {
    let scene = Scene::with_loopback();
    let contents = [("one", 300_000usize), ("two", 8000), ("three", 0)];
    let content = |length: usize| (0..length).map(|at| (at * 31 / 7) as u8).collect::<Vec<u8>>();
    let mut producers = Vec::new();
    for (name, length) in contents {
        std::fs::write(scene.path(&format!("{name}.source")), content(length)).unwrap();
        let line = format!("put /test/{name} --file {name}.source --segment-size 1000");
        let mut put = scene.start(&line, &scene.path(&format!("{name}.source")));
        put.wait_for("segments");
        producers.push(put);
    }
    std::fs::write(scene.path("two"), "from before").unwrap();
    let report = scene.run("traffic fetch /test/one /test/two /test/three --parallel 2 --json").json();
    for (index, (name, length)) in contents.into_iter().enumerate() {
        assert!(std::fs::read(scene.path(name)).unwrap() == content(length), "{name}");
        let object = &report["objects"][index];
        assert_eq!((&object["bytes"], &object["file"]), (&length.into(), &format!("./{name}").into()), "{report}");
        assert!(object["error"].is_null() && object["discovery"] == "metadata", "{report}");
    }
    let count = |name: &str| report["total"][name].as_u64().unwrap_or_else(|| panic!("{name} in {report}"));
    let losses = count("overtaken") + count("timeouts") + count("nacks");
    assert_eq!((count("segments"), count("failed")), (300 + 8 + 1, 0));
    assert_eq!(count("interests"), count("data") + losses + count("unneeded"));
    assert!(report["total"]["rtt_p99_ms"].as_f64() >= report["total"]["rtt_p50_ms"].as_f64(), "{report}");

    // A missing object does not prevent other fetches, and an older file of its name stays.
    std::fs::create_dir(scene.path("into")).unwrap();
    std::fs::write(scene.path("into").join("nobody"), "older").unwrap();
    let failed = scene.run("traffic fetch /test/one /elsewhere/nobody -C into --json");
    let report: serde_json::Value = serde_json::from_str(&failed.out).unwrap();
    assert!(report["objects"][1]["error"].as_str().unwrap().contains("NoRoute"), "{report}");
    assert!(failed.failed(1).contains("1 of 2 objects"));
    let mut left: Vec<_> =
        std::fs::read_dir(scene.path("into")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    left.sort_unstable();
    assert_eq!(left, ["nobody", "one"]);
    assert_eq!(std::fs::read_to_string(scene.path("into").join("nobody")).unwrap(), "older");

    let text = scene.run("traffic fetch /test/one /test/two --discard -q").ok();
    assert!(text.contains("Total") && text.contains("2 objects, 0 failed") && text.contains("99.9%"), "{text}");
    let error = scene.run("traffic fetch /test/one /other/one").failed(2);
    assert!(error.contains("/test/one and /other/one"), "{error}");
    scene.run("traffic fetch /test/...").failed(2);
    scene.run("traffic fetch /elsewhere/nobody").failed(1);
    // The directory is created, unless a file is in the way.
    assert!(scene.run("traffic fetch /test/one -C two/into").failed(1).contains("two/into"));
    Scene::empty().run("traffic fetch /test/one").failed(3);
}
