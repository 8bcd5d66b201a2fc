//! A command that cannot save its change has no effect and reports an error.

use namehop_client::nfd::Code;

use super::*;

fn permanent(uri: &str) -> ControlParameters {
    ControlParameters {
        uri: Some(uri.to_owned()),
        face_persistency: Some(FacePersistency::Permanent.code()),
        ..ControlParameters::default()
    }
}

#[test]
fn nothing_changes_that_cannot_be_saved() {
    run(async {
        let fixture = Fixture::new();
        let route = ControlParameters { face_id: Some(NEIGHBOUR), origin: Some(255), cost: Some(5), ..named("/kept") };
        assert_eq!(fixture.command("rib", "register", &route).await.code, 200);
        let choice = |prefix: &str, strategy: &str| ControlParameters {
            strategy: Some(name(&format!("/localhost/nfd/strategy/{strategy}"))),
            ..named(prefix)
        };
        assert_eq!(fixture.command("strategy-choice", "set", &choice("/kept", "multicast")).await.code, 200);
        let neighbour = fixture.router().face(testing::NEIGHBOUR).expect("exists");
        let before =
            (neighbour.persistency(), neighbour.mtu_bytes(), flags(&neighbour), fixture.router().cs_info().await);
        let faces = fixture.router().faces().snapshot().len();
        fixture.changes();

        fixture.router().cannot_save.set(true);
        let update = ControlParameters {
            face_id: Some(NEIGHBOUR),
            face_persistency: Some(FacePersistency::Permanent.code()),
            mtu_bytes: Some(1300),
            flags: Some(2),
            mask: Some(2),
            ..ControlParameters::default()
        };
        let destroy = ControlParameters { face_id: Some(NEIGHBOUR), ..ControlParameters::default() };
        let config = ControlParameters { capacity: Some(7), ..ControlParameters::default() };
        let unregister = ControlParameters { face_id: Some(NEIGHBOUR), origin: Some(255), ..named("/kept") };
        for (module, verb, parameters) in [
            ("rib", "register", ControlParameters { cost: Some(9), ..route.clone() }),
            ("rib", "register", ControlParameters { name: Some(name("/new")), ..route.clone() }),
            ("rib", "unregister", unregister),
            ("strategy-choice", "set", choice("/kept", "asf")),
            ("strategy-choice", "set", choice("/new", "asf")),
            ("strategy-choice", "unset", named("/kept")),
            ("faces", "create", permanent("udp4://192.0.2.9:6363")),
            ("faces", "update", update),
            ("faces", "destroy", destroy),
            ("cs", "config", config),
        ] {
            let response = fixture.command(module, verb, &parameters).await;
            assert_eq!((response.code, response.text.as_str()), (500, "the disk is full"), "{module}/{verb}");
        }
        assert_eq!((fixture.fib("/kept"), fixture.fib("/new")), (vec![(257, 5)], vec![]));
        let strategy = |prefix: &str| {
            fixture.router().with_fib(|fib| fib.effective_strategy(name(prefix).as_ref()).name().to_string())
        };
        assert!(strategy("/kept").contains("multicast") && strategy("/new").contains("best-route"));
        assert_eq!(fixture.router().faces().snapshot().len(), faces);
        let after =
            (neighbour.persistency(), neighbour.mtu_bytes(), flags(&neighbour), fixture.router().cs_info().await);
        assert_eq!(after, before);
        // A command without effect needs no saving.
        assert_eq!(fixture.command("strategy-choice", "unset", &named("/none")).await.code, 200);
        assert_eq!(fixture.command("rib", "unregister", &named("/none")).await.code, 200);

        fixture.router().cannot_save.set(false);
        assert_eq!(fixture.command("rib", "register", &ControlParameters { cost: Some(9), ..route }).await.code, 200);
        assert_eq!(fixture.fib("/kept"), [(257, 9)]);
    });
}

#[test]
fn what_is_saved_and_then_refused_is_taken_back() {
    run(async {
        let fixture = Fixture::new();
        let deep: String = (0..33).map(|number| format!("/{number}")).collect();
        assert_eq!(fixture.command("rib", "register", &named(&deep)).await.code, 414);
        let strategy = Some(name("/localhost/nfd/strategy/multicast"));
        let choice = ControlParameters { strategy, ..named(&deep) };
        assert_eq!(fixture.command("strategy-choice", "set", &choice).await.code, 414);
        assert!(fixture.changes().is_empty());
    });
}
