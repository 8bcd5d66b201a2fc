//! Tests of the router and the management commands on a private socket.

use crate::support::Scene;

#[test]
fn a_router_can_be_managed() {
    let scene = Scene::with_router();
    let status = scene.run("status --json").json();
    assert!(status["version"].as_str().unwrap().contains("amehop"), "{status}");

    let face = scene.run("face create udp4://localhost:46363 --persistency permanent --json").json();
    assert_eq!((&face["created"], &face["remote_uri"]), (&true.into(), &"udp4://127.0.0.1:46363".into()));
    let id = face["face_id"].as_u64().unwrap();
    let again = scene.run("face create udp4://127.0.0.1:46363 --json").json();
    assert_eq!((&again["created"], again["face_id"].as_u64()), (&false.into(), Some(id)));
    let shown = scene.run("face show udp4://127.0.0.1:46363 --json").json();
    assert_eq!((&shown["face_id"], &shown["persistency"]), (&id.into(), &"permanent".into()));
    scene.run(&format!("face update {id} --congestion-marking off --mtu 1400")).ok();
    assert!(
        scene
            .run("face update 4000000 --mtu 1400")
            .failed(1)
            .contains("404: the face does not exist; 'namehop face list'")
    );
    scene.run(&format!("face update {id}")).failed(2);
    let error = scene.run(&format!("face update {id} --mtu 10 --local-fields on --persistency persistent")).failed(1);
    assert!(error.contains("refused: MTU") && error.contains("refused: flags"), "{error}");
    assert!(error.contains("409") && !error.contains("refused: persistency"), "{error}");

    let route = scene.run("route add /a/b udp4://127.0.0.1:46363 --cost 7 --flags capture --expires 1h --json").json();
    assert_eq!((&route["face_id"], &route["cost"], &route["flags"]), (&id.into(), &7.into(), &"capture".into()));
    let routes = scene.run("route list --prefix /a --json").json();
    assert_eq!((routes.as_array().unwrap().len(), &routes[0]["origin"]), (1, &"static".into()));
    assert!(routes[0]["expires_ms"].as_u64().unwrap() > 3_000_000);
    assert_eq!(routes[0]["remote_uri"], "udp4://127.0.0.1:46363");
    for list in ["fib list", "route list"] {
        let table = scene.run(&format!("{list} --prefix /a")).ok();
        assert!(table.starts_with("PREFIX") && table.contains("/a/b") && table.contains(":46363\n"), "{table}");
    }
    scene.run("route remove /a/b udp4://127.0.0.1:46363").ok();

    let strategy = scene.run("strategy set /a multicast --json").json();
    assert!(strategy["strategy"].as_str().unwrap().starts_with("/localhost/nfd/strategy/multicast"), "{strategy}");
    assert!(scene.run("strategy list").ok().contains("/a "));
    scene.run("strategy unset /a").ok();
    assert!(scene.run("strategy set /a no-such-strategy").failed(1).contains("namehop strategy load"));

    let cs = scene.run("cs config --capacity 500 --serve off --json").json();
    assert_eq!((&cs["capacity_packets"], &cs["serve"]), (&500.into(), &false.into()));
    scene.run("cs erase /").ok();
    assert!(scene.run("cs info").ok().contains("500 packets"));
    let created = scene.run("face create udp4://127.0.0.1:46363 --mtu 2000").ok();
    assert!(created.contains("exists") && created.contains("face update"), "{created}");
    assert!(scene.run(&format!("face destroy {id}")).ok().contains("udp4://127.0.0.1:46363 destroyed"));
    for gone in [id.to_string(), "udp4://127.0.0.1:46363".to_owned()] {
        for verb in ["destroy", "show"] {
            assert!(scene.run(&format!("face {verb} {gone}")).failed(1).contains("there is no face"), "{verb} {gone}");
        }
    }
}

#[test]
fn a_capacity_that_the_router_cannot_have_is_said_to_be_so() {
    let scene = Scene::with_router();
    let large = scene.run("cs config --capacity 1000000000");
    assert!(large.err.contains("capacity_bytes") && large.err.contains("1000000000"), "{}", large.err);
    assert!(!large.ok().contains("1000000000"));
    let json = scene.run("cs config --capacity 1000000000 --json").json();
    assert_eq!(json["requested_capacity_packets"], 1_000_000_000);
    assert!(json["capacity_packets"].as_u64() < Some(1_000_000_000) && json["warning"].is_string(), "{json}");
    let small = scene.run("cs config --capacity 10 --json").json();
    assert_eq!((&small["capacity_packets"], small.get("warning")), (&10.into(), None));
}

#[test]
fn many_routes_come_from_a_file() {
    let scene = Scene::with_router();
    let lines: String =
        (0..2000).map(|number| format!("/bulk/{number} udp4://127.0.0.1:4636{} {number}\n", number % 3)).collect();
    std::fs::write(scene.path("routes"), format!("# routes\n\n{lines}")).unwrap();
    let summary = scene.run("route add --file routes --json").json();
    assert_eq!((&summary["added"], &summary["failed"]), (&2000.into(), &0.into()));
    let routes = scene.run("route list --prefix /bulk --json").json();
    assert_eq!(routes.as_array().unwrap().len(), 2000);
    std::fs::write(scene.path("wrong"), "/a 300\n/b\n").unwrap();
    assert!(scene.run("route add --file wrong").failed(1).contains("line 2"));
}

#[test]
fn traffic_flows_through_the_router() {
    let scene = Scene::with_router();
    let content: Vec<u8> = (0..300_000u32).map(|number| (number.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    std::fs::write(scene.path("input"), &content).unwrap();
    let mut put = scene.start("put /test/object", &scene.path("input"));
    put.wait_for("segments");
    scene.run("cat /test/object --output fetched").ok();
    assert!(std::fs::read(scene.path("fetched")).unwrap() == content);
}

#[test]
fn configurations_are_shown_and_checked() {
    let scene = Scene::empty();
    std::fs::write(scene.path("shown.toml"), scene.run("config show").ok()).unwrap();
    assert!(scene.run("config check shown.toml").ok().contains("ok"));
    std::fs::write(scene.path("wrong.toml"), "[forwarding]\npit_capacity = \"many\"\n").unwrap();
    assert!(scene.run("config check wrong.toml").failed(1).contains("wrong.toml:2"));
    assert!(scene.run("run --config absent.toml").failed(1).contains("absent.toml"));
    assert!(scene.run("config show shown.toml").ok().contains("pit_capacity"));
    std::fs::write(scene.path("small.toml"), "[memory]\nlimit = \"100 MiB\"\n").unwrap();
    let small = scene.run("config check small.toml").ok();
    assert!(small.contains("memory: 100 MiB for the router, `limit` in section [memory]"), "{small}");
    assert!(small.contains("[content_store] capacity_bytes: ") && small.contains(" instead of 512 MiB"), "{small}");
    assert!(scene.run("config check").ok().contains("MiB at most for cached Data"));
}
