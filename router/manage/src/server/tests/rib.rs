//! Routes by command, and their effects on the FIB.

use super::*;

fn route(prefix: &str, face: u64, cost: u64) -> ControlParameters {
    ControlParameters { face_id: Some(face), cost: Some(cost), ..named(prefix) }
}

#[test]
fn register_fills_in_the_defaults() {
    run(async {
        let fixture = Fixture::new();
        let response = fixture.command("rib", "register", &named("/A")).await;
        assert_eq!((response.code, response.text.as_str()), (200, "OK"));
        let expected =
            ControlParameters { face_id: Some(APP), origin: Some(0), cost: Some(0), flags: Some(1), ..named("/A") };
        assert_eq!(response.parameters(), Ok(expected));
        assert_eq!(fixture.fib("/A"), [(256, 0)]);
        assert_eq!(*fixture.router().added_next_hops.borrow(), [("/A".to_owned(), 256, 0)]);
        assert_eq!(fixture.changes(), ["route /A 256 0"]);

        let zero = ControlParameters { face_id: Some(0), cost: Some(3), ..named("/A") };
        assert_eq!(fixture.command("rib", "register", &zero).await.code, 200);
        assert_eq!(fixture.fib("/A"), [(256, 3)], "0 means the face of the command");
        assert_eq!(fixture.router().added_next_hops.borrow().len(), 1, "an updated route adds no next hop");
    });
}

#[test]
fn register_keeps_the_requested_parameters() {
    run(async {
        let fixture = Fixture::new();
        let parameters = ControlParameters {
            face_id: Some(NEIGHBOUR),
            origin: Some(255),
            cost: Some(10),
            flags: Some(2),
            expiration_period_ms: Some(60_000),
            ..named("/A/B")
        };
        let response = fixture.command("rib", "register", &parameters).await;
        assert_eq!(response.parameters(), Ok(parameters));
    });
}

#[test]
fn register_refuses_what_cannot_be() {
    run(async {
        let fixture = Fixture::new();
        assert_eq!(fixture.command("rib", "register", &route("/A", 9999, 0)).await.code, 410);
        assert_eq!(fixture.command("rib", "register", &route("/A", u64::MAX, 0)).await.code, 410);
        let deep = (0..33).fold(Name::new(), |name, i| name.append_generic(i.to_string()));
        let parameters = ControlParameters { name: Some(deep), ..ControlParameters::default() };
        assert_eq!(fixture.command("rib", "register", &parameters).await.code, 414);
        assert_eq!(fixture.management.rib_sizes(), (0, 0));
        assert!(fixture.changes().is_empty());
    });
}

#[test]
fn unregister_is_always_answered_with_200() {
    run(async {
        let fixture = Fixture::new();
        fixture.command("rib", "register", &named("/A")).await;
        fixture.changes();
        let other_origin = ControlParameters { origin: Some(255), ..named("/A") };
        assert_eq!(fixture.command("rib", "unregister", &other_origin).await.code, 200);
        assert!(fixture.changes().is_empty());
        let response = fixture.command("rib", "unregister", &named("/A")).await;
        let expected = ControlParameters { face_id: Some(APP), origin: Some(0), ..named("/A") };
        assert_eq!((response.code, response.parameters()), (200, Ok(expected)));
        assert!(fixture.fib("/A").is_empty());
        assert_eq!(fixture.changes(), ["no route /A 256 0"]);
        assert_eq!(fixture.command("rib", "unregister", &named("/A")).await.code, 200);
        assert_eq!(fixture.command("rib", "unregister", &route_key("/A", 9999)).await.code, 200);
    });
}

fn route_key(prefix: &str, face: u64) -> ControlParameters {
    ControlParameters { face_id: Some(face), ..named(prefix) }
}

#[test]
fn flags_work_through_to_the_fib() {
    run(async {
        let fixture = Fixture::new();
        fixture.command("rib", "register", &route("/", NEIGHBOUR, 9)).await;
        fixture.command("rib", "register", &route("/A", APP, 1)).await;
        assert_eq!(fixture.fib("/A"), [(256, 1), (257, 9)]);
        let capture = ControlParameters { flags: Some(3), ..route("/A", APP, 1) };
        fixture.command("rib", "register", &capture).await;
        assert_eq!(fixture.fib("/A"), [(256, 1)]);
        fixture.command("rib", "register", &route("/A/B", NEIGHBOUR, 5)).await;
        assert_eq!(fixture.fib("/A/B"), [(256, 1), (257, 5)]);
    });
}

#[test]
fn routes_expire_by_themselves() {
    run(async {
        let fixture = Fixture::new();
        tokio::task::spawn_local(Rc::clone(&fixture.management).run());
        let expiring = |prefix: &str, ms| ControlParameters { expiration_period_ms: Some(ms), ..named(prefix) };
        fixture.command("rib", "register", &expiring("/A", 5000)).await;
        fixture.command("rib", "register", &expiring("/B", 2000)).await;
        tokio::time::sleep(Duration::from_millis(1500)).await;
        assert_eq!((fixture.fib("/A").len(), fixture.fib("/B").len()), (1, 1));
        tokio::time::sleep(Duration::from_millis(1000)).await;
        assert_eq!((fixture.fib("/A").len(), fixture.fib("/B").len()), (1, 0));
        fixture.command("rib", "register", &expiring("/A", 5000)).await;
        tokio::time::sleep(Duration::from_millis(3000)).await;
        assert_eq!(fixture.fib("/A").len(), 1, "refreshed");
        tokio::time::sleep(Duration::from_millis(3000)).await;
        assert_eq!(fixture.management.rib_sizes(), (0, 0));
        assert!(fixture.fib("/A").is_empty());
    });
}

#[test]
fn the_cheapest_next_hops_win_when_the_fib_entry_is_full() {
    run(async {
        let fixture = Fixture::new();
        let faces: Vec<u64> = (0..40)
            .map(|i| {
                let remote = uri(&format!("udp4://192.0.2.{}:6363", i + 10));
                let params = FaceParams::new(remote, uri("udp4://192.0.2.2:6363"));
                fixture.router().faces().insert(params).expect("room").id().0.into()
            })
            .collect();
        for (cost, &face) in (0..).zip(&faces) {
            let response = fixture.command("rib", "register", &route("/A", face, 100 - cost)).await;
            assert_eq!(response.code, 200);
        }
        let costs = || fixture.fib("/A").iter().map(|(_, cost)| *cost).collect::<Vec<_>>();
        assert_eq!(costs(), (61..=92).collect::<Vec<_>>());
        fixture.command("rib", "unregister", &route_key("/A", faces[39])).await;
        assert_eq!(costs(), (62..=93).collect::<Vec<_>>(), "the next cheapest hop is used");
        for &face in &faces[8..39] {
            fixture.command("rib", "unregister", &route_key("/A", face)).await;
        }
        assert_eq!(costs(), (93..=100).collect::<Vec<_>>());
        fixture.command("rib", "unregister", &route_key("/A", faces[0])).await;
        assert_eq!(costs(), (93..=99).collect::<Vec<_>>());
    });
}

#[test]
fn at_equal_cost_own_routes_come_before_inherited_ones_and_older_ones_first() {
    run(async {
        let fixture = Fixture::new();
        let third = FaceParams::new(uri("udp4://192.0.2.9:6363"), uri("udp4://192.0.2.2:6363"));
        let third: u64 = fixture.router().faces().insert(third).expect("room").id().0.into();
        let faces = |prefix: &str| fixture.fib(prefix).iter().map(|(face, _)| u64::from(*face)).collect::<Vec<_>>();
        fixture.command("rib", "register", &route("/", APP, 0)).await;
        fixture.command("rib", "register", &route("/A", third, 0)).await;
        assert_eq!(faces("/A"), [third, APP], "own next hops come before inherited ones");
        fixture.command("rib", "register", &route("/A", NEIGHBOUR, 0)).await;
        assert_eq!(faces("/A"), [third, NEIGHBOUR, APP]);
        fixture.command("rib", "register", &route("/A", APP, 0)).await;
        fixture.command("rib", "unregister", &route_key("/A", third)).await;
        assert_eq!(faces("/A"), [NEIGHBOUR, APP]);
        fixture.command("rib", "unregister", &route_key("/A", APP)).await;
        fixture.command("rib", "register", &route("/A", third, 0)).await;
        assert_eq!(faces("/A"), [NEIGHBOUR, third, APP], "a next hop that is inherited again comes last");
    });
}

#[test]
fn routes_cannot_divert_commands_from_the_router() {
    run(async {
        let fixture = Fixture::new();
        let served = names::localhost();
        fixture.router().with_fib(|fib| fib.dedicate(served.as_ref(), FaceId::INTERNAL)).expect("room");
        for prefix in ["/localhost/nfd", "/localhost/nfd/rib", "/localhost/nfd/faces/list"] {
            for face in [APP, NEIGHBOUR] {
                let response = fixture.command("rib", "register", &route(prefix, face, 0)).await;
                assert_eq!(response.code, 406, "{prefix}");
                assert!(response.text.contains("the router itself"), "{}", response.text);
                assert_eq!(fixture.command("fib", "add-nexthop", &route(prefix, face, 0)).await.code, 406);
            }
        }
        // Removing is always answered with 200; here it has no effect.
        assert_eq!(fixture.command("fib", "remove-nexthop", &route_key("/localhost/nfd", 1)).await.code, 200);
        assert_eq!(fixture.command("rib", "unregister", &route_key("/localhost/nfd", 1)).await.code, 200);
        assert_eq!(fixture.fib("/localhost/nfd"), [(1, 0)]);
        for prefix in ["/", "/localhost", "/localhost/nfdx", "/localhost/nlsr", "/localhop/nfd"] {
            assert_eq!(fixture.command("rib", "register", &named(prefix)).await.code, 200, "{prefix}");
        }
        assert_eq!(fixture.fib("/localhost/nfd"), [(1, 0)]);
        assert_eq!(fixture.management.rib_sizes().0, 5);
    });
}
