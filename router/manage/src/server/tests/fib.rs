//! Next hops set by command.

use super::*;

#[test]
fn add_next_hop_adds_and_updates() {
    run(async {
        let fixture = Fixture::new();
        let response = fixture.command("fib", "add-nexthop", &named("/A")).await;
        let expected = ControlParameters { face_id: Some(APP), cost: Some(0), ..named("/A") };
        assert_eq!((response.code, response.parameters()), (200, Ok(expected)));
        let other = ControlParameters { face_id: Some(NEIGHBOUR), cost: Some(5), ..named("/A") };
        assert_eq!(fixture.command("fib", "add-nexthop", &other).await.code, 200);
        assert_eq!(fixture.fib("/A"), [(256, 0), (257, 5)]);
        let dearer = ControlParameters { cost: Some(9), ..named("/A") };
        assert_eq!(fixture.command("fib", "add-nexthop", &dearer).await.code, 200);
        assert_eq!(fixture.fib("/A"), [(257, 5), (256, 9)]);
        assert_eq!(fixture.router().added_next_hops.borrow().len(), 2);
    });
}

#[test]
fn add_next_hop_refuses_what_cannot_be() {
    run(async {
        let fixture = Fixture::new();
        let missing = ControlParameters { face_id: Some(9999), ..named("/A") };
        assert_eq!(fixture.command("fib", "add-nexthop", &missing).await.code, 410);
        let deep = (0..33).fold(Name::new(), |name, i| name.append_generic(i.to_string()));
        let parameters = ControlParameters { name: Some(deep), ..ControlParameters::default() };
        assert_eq!(fixture.command("fib", "add-nexthop", &parameters).await.code, 414);
        assert_eq!(fixture.command("fib", "remove-nexthop", &parameters).await.code, 200);
    });
}

#[test]
fn remove_next_hop_is_always_answered_with_200() {
    run(async {
        let fixture = Fixture::new();
        fixture.command("fib", "add-nexthop", &named("/A")).await;
        let response = fixture.command("fib", "remove-nexthop", &named("/A")).await;
        let expected = ControlParameters { face_id: Some(APP), ..named("/A") };
        assert_eq!((response.code, response.parameters()), (200, Ok(expected)));
        assert!(fixture.fib("/A").is_empty());
        for face in [0, APP, 9999, u64::MAX] {
            let parameters = ControlParameters { face_id: Some(face), ..named("/A") };
            assert_eq!(fixture.command("fib", "remove-nexthop", &parameters).await.code, 200);
        }
    });
}
