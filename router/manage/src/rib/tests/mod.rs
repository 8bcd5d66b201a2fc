//! Behaviour of the RIB: the flag semantics case by case, and against a slow and simple model under random operations.

mod model;

use std::collections::BTreeMap;

use namehop_packet::FaceId;
use namehop_wire::{Name, NameRef};
use proptest::prelude::*;

use super::*;
use model::Model;

/// A FIB that applies the changes and rejects needless ones.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
struct FollowingFib {
    nexthops: BTreeMap<(Name, u32), u64>,
    /// The faces of each name, in order.
    orders: BTreeMap<Name, Vec<(u32, u64)>>,
    /// Readvertised costs of each name, for the origins in [`READVERTISED`].
    readvertised: BTreeMap<Name, ReadvertisedCosts>,
    changes: usize,
}

/// Origins of the routes that are readvertised to each destination.
const READVERTISED: [&[u64]; 2] = [&[1], &[0, 2]];

impl FibChanges for FollowingFib {
    fn set_nexthop(&mut self, prefix: NameRef<'_>, face: FaceId, cost: u64, later: &[FaceId]) {
        self.nexthops.insert((prefix.to_owned(), face.0), cost);
        let order = self.orders.entry(prefix.to_owned()).or_default();
        let before = order.clone();
        order.retain(|(other, _)| *other != face.0);
        let position = order
            .iter()
            .position(|&(other, other_cost)| other_cost > cost || other_cost == cost && later.contains(&FaceId(other)));
        order.insert(position.unwrap_or(order.len()), (face.0, cost));
        // With several next hops, one that changes from inherited to own may keep its cost and its position.
        assert!(*order != before || order.len() > 1, "{prefix} face {face} must change when it is set");
        self.changes += 1;
    }

    fn remove_nexthop(&mut self, prefix: NameRef<'_>, face: FaceId) {
        let old = self.nexthops.remove(&(prefix.to_owned(), face.0));
        assert!(old.is_some(), "{prefix} face {face} must exist when it is removed");
        let prefix = prefix.to_owned();
        let order = self.orders.entry(prefix.clone()).or_default();
        order.retain(|(other, _)| *other != face.0);
        if order.is_empty() {
            self.orders.remove(&prefix);
        }
        self.changes += 1;
    }

    fn readvertised_costs(&self, routes: RoutesView<'_>) -> ReadvertisedCosts {
        READVERTISED.map(|origins| routes.lowest_cost(origins))
    }

    fn readvertised_costs_changed(&mut self, prefix: NameRef<'_>, before: ReadvertisedCosts, after: ReadvertisedCosts) {
        assert_ne!(before, after, "{prefix}");
        let old = match after {
            [None, None] => self.readvertised.remove(prefix.value()),
            _ => self.readvertised.insert(prefix.to_owned(), after),
        };
        assert_eq!(old.unwrap_or_default(), before, "{prefix}");
    }
}

impl FollowingFib {
    fn of(&self, prefix: &str) -> Vec<(u32, u64)> {
        let prefix = name(prefix);
        self.nexthops.iter().filter(|((name, _), _)| *name == prefix).map(|((_, face), cost)| (*face, *cost)).collect()
    }
}

fn name(uri: &str) -> Name {
    uri.parse().expect("a name")
}

fn route(face: u32, cost: u64, flags: u64) -> Route {
    Route { face: FaceId(face), origin: 0, cost, flags, expires_at_ms: None, announcement: None, is_remote: false }
}

fn setup(routes: &[(&str, Route)]) -> (Rib, FollowingFib) {
    let (mut rib, mut fib) = (Rib::new(), FollowingFib::default());
    for (prefix, route) in routes {
        rib.register(name(prefix).as_ref(), route.clone(), &mut fib).expect("registered");
    }
    (rib, fib)
}

const INHERIT: u64 = FLAG_CHILD_INHERIT;
const CAPTURE: u64 = FLAG_CAPTURE;

#[test]
fn the_fib_gets_the_lowest_cost_of_each_face() {
    let mut cheap = route(300, 5, 0);
    cheap.origin = 255;
    let (mut rib, mut fib) = setup(&[("/A", route(300, 10, 0)), ("/A", cheap), ("/A", route(301, 7, 0))]);
    assert_eq!(fib.of("/A"), [(300, 5), (301, 7)]);
    assert!(rib.unregister(name("/A").as_ref(), FaceId(300), 255, &mut fib));
    assert_eq!(fib.of("/A"), [(300, 10), (301, 7)]);
    assert!(!rib.unregister(name("/A").as_ref(), FaceId(300), 255, &mut fib));
    assert!(!rib.unregister(name("/B").as_ref(), FaceId(300), 0, &mut fib));
}

#[test]
fn registering_again_updates_and_reports_only_what_changes() {
    let (mut rib, mut fib) = setup(&[("/A", route(300, 10, INHERIT))]);
    let again = rib.register(name("/A").as_ref(), route(300, 10, 0), &mut fib);
    assert_eq!((again, fib.changes), (Ok(Registration::Updated), 1));
    let again = rib.register(name("/A").as_ref(), route(300, 11, 0), &mut fib);
    assert_eq!((again, fib.changes), (Ok(Registration::Updated), 2));
    assert_eq!((rib.route_count(), rib.entry_count()), (1, 1));
}

#[test]
fn all_routes_together_are_limited() {
    let mut rib = Rib::with_limits(RouteLimits { total: 2, ..RouteLimits::default() });
    let mut fib = FollowingFib::default();
    let of = |origin| Route { origin, ..route(300, 1, 0) };
    let mut register = |prefix: &str, origin| rib.register(name(prefix).as_ref(), of(origin), &mut fib);
    assert_eq!(register("/A", 1), Ok(Registration::New));
    assert_eq!(register("/B", 1), Ok(Registration::New));
    assert_eq!(register("/C", 1), Err(RibError::TooMany(2)));
    assert_eq!(register("/A", 2), Err(RibError::TooMany(2)), "a route with another origin is a separate route");
    assert_eq!(register("/A", 1), Ok(Registration::Updated), "an existing route is renewed");
    assert!(rib.unregister(name("/A").as_ref(), FaceId(300), 1, &mut fib));
    assert_eq!(rib.register(name("/C").as_ref(), of(1), &mut fib), Ok(Registration::New));
    assert_eq!((rib.route_count(), rib.entry_count()), (2, 2));
}

#[test]
fn routes_from_other_hosts_are_limited_by_face_and_together() {
    let mut rib = Rib::with_limits(RouteLimits { per_face: 2, remote: 3, ..RouteLimits::default() });
    let mut fib = FollowingFib::default();
    let register = |rib: &mut Rib, fib: &mut FollowingFib, prefix: &str, face, is_remote| {
        rib.register(name(prefix).as_ref(), Route { is_remote, ..route(face, 1, 0) }, fib)
    };
    for (prefix, face) in [("/A", 300), ("/B", 300), ("/A", 301)] {
        assert_eq!(register(&mut rib, &mut fib, prefix, face, true), Ok(Registration::New));
    }
    assert_eq!(register(&mut rib, &mut fib, "/C", 300, true), Err(RibError::TooManyOfFace(2)));
    assert_eq!(register(&mut rib, &mut fib, "/C", 301, true), Err(RibError::TooManyRemote(3)));
    assert_eq!(
        register(&mut rib, &mut fib, "/A", 300, true),
        Ok(Registration::Updated),
        "an existing route is renewed"
    );
    assert_eq!(rib.entry_count(), 2, "a refused route leaves no entry");
    // The router's own routes have no limit, and a remote route that becomes an own route does not count as remote.
    for number in 0..10 {
        assert_eq!(register(&mut rib, &mut fib, &format!("/own/{number}"), 300, false), Ok(Registration::New));
    }
    assert_eq!(register(&mut rib, &mut fib, "/B", 300, false), Ok(Registration::Updated));
    assert_eq!(register(&mut rib, &mut fib, "/C", 300, true), Ok(Registration::New));
    rib.unregister(name("/C").as_ref(), FaceId(300), 0, &mut fib);
    let expiring = Route { is_remote: true, expires_at_ms: Some(5), ..route(302, 1, 0) };
    assert_eq!(rib.register(name("/D").as_ref(), expiring.clone(), &mut fib), Ok(Registration::New));
    assert_eq!(rib.check_limits(name("/E").as_ref(), &expiring), Err(RibError::TooManyRemote(3)));
    assert_eq!(rib.expire(5, &mut fib), 1);
    assert_eq!(rib.check_limits(name("/E").as_ref(), &expiring), Ok(()));
    rib.remove_face(FaceId(300), &mut fib);
    rib.remove_face(FaceId(301), &mut fib);
    assert_eq!((rib.remote.by_face.len(), rib.remote.total, rib.route_count()), (0, 0, 0));
}

#[test]
fn child_inherit_reaches_longer_entries_unless_they_have_the_face() {
    let (_, fib) = setup(&[
        ("/A/B/C", route(301, 3, 0)),
        ("/A/B", route(300, 2, 0)),
        ("/A", route(300, 10, INHERIT)),
        ("/A/D/E", route(302, 1, 0)),
    ]);
    assert_eq!(fib.of("/A/B"), [(300, 2)]);
    assert_eq!(fib.of("/A/B/C"), [(300, 10), (301, 3)], "a route without child-inherit is not passed to children");
    assert_eq!(fib.of("/A/D/E"), [(300, 10), (302, 1)]);
    assert!(fib.of("/A/D").is_empty(), "names without routes get no FIB entry");
}

#[test]
fn the_nearest_name_that_offers_a_face_wins() {
    let (mut rib, mut fib) =
        setup(&[("/", route(300, 1, INHERIT)), ("/A", route(300, 50, INHERIT)), ("/A/B", route(301, 9, 0))]);
    assert_eq!(fib.of("/A/B"), [(300, 50), (301, 9)]);
    rib.unregister(name("/A").as_ref(), FaceId(300), 0, &mut fib);
    assert_eq!(fib.of("/A/B"), [(300, 1), (301, 9)]);
}

#[test]
fn capture_takes_nothing_from_above_and_shields_what_is_below() {
    let (mut rib, mut fib) =
        setup(&[("/", route(300, 1, INHERIT)), ("/A/B", route(301, 2, INHERIT)), ("/A/B/C", route(302, 3, 0))]);
    assert_eq!(fib.of("/A/B/C"), [(300, 1), (301, 2), (302, 3)]);
    rib.register(name("/A").as_ref(), route(303, 4, CAPTURE), &mut fib).expect("registered");
    assert_eq!(fib.of("/A"), [(303, 4)]);
    assert_eq!(fib.of("/A/B"), [(301, 2)]);
    assert_eq!(fib.of("/A/B/C"), [(301, 2), (302, 3)]);
    rib.register(name("/A").as_ref(), route(303, 4, CAPTURE | INHERIT), &mut fib).expect("registered");
    assert_eq!(fib.of("/A/B/C"), [(301, 2), (302, 3), (303, 4)]);
    rib.unregister(name("/A").as_ref(), FaceId(303), 0, &mut fib);
    assert_eq!(fib.of("/A/B/C"), [(300, 1), (301, 2), (302, 3)]);
}

#[test]
fn routes_expire_and_refreshing_prolongs_them() {
    let (mut rib, mut fib) = (Rib::new(), FollowingFib::default());
    let until = |at| Route { expires_at_ms: Some(at), ..route(300, 0, INHERIT) };
    rib.register(name("/A").as_ref(), until(1000), &mut fib).expect("registered");
    rib.register(name("/B").as_ref(), until(2000), &mut fib).expect("registered");
    rib.register(name("/A").as_ref(), until(3000), &mut fib).expect("registered");
    assert_eq!(rib.next_expiry_ms(), Some(2000));
    assert_eq!(rib.expire(1999, &mut fib), 0);
    assert_eq!(rib.expire(2000, &mut fib), 1);
    assert!(fib.of("/B").is_empty());
    rib.register(name("/A").as_ref(), route(300, 0, INHERIT), &mut fib).expect("registered");
    assert_eq!(rib.next_expiry_ms(), None, "a route without a period never expires");
    assert_eq!(rib.expire(u64::MAX, &mut fib), 0);
    assert_eq!(fib.of("/A"), [(300, 0)]);
}

#[test]
fn removing_a_face_takes_all_its_routes_with_the_fewest_changes() {
    let mut second = route(300, 9, 0);
    second.origin = 255;
    let (mut rib, mut fib) = setup(&[
        ("/", route(300, 1, INHERIT)),
        ("/A", route(300, 2, INHERIT)),
        ("/A", second),
        ("/A/B", route(301, 3, 0)),
    ]);
    let before = fib.changes;
    assert_eq!(rib.remove_face(FaceId(300), &mut fib), 3);
    assert_eq!(fib.nexthops.len(), 1);
    assert_eq!(fib.of("/A/B"), [(301, 3)]);
    assert!(fib.changes - before <= 4, "{}", fib.changes - before);
    assert_eq!(rib.remove_face(FaceId(300), &mut fib), 0);
    assert_eq!((rib.route_count(), rib.entry_count()), (1, 1));
}

#[test]
fn the_limit_on_components_holds() {
    let (mut rib, mut fib) = (Rib::new(), FollowingFib::default());
    let deepest = (0..MAX_PREFIX_COMPONENTS).fold(Name::new(), |name, i| name.append_generic(i.to_string()));
    assert_eq!(rib.register(deepest.as_ref(), route(300, 0, 0), &mut fib), Ok(Registration::New));
    let deeper = deepest.append_generic("x");
    assert_eq!(rib.register(deeper.as_ref(), route(300, 0, 0), &mut fib), Err(RibError::PrefixTooLong));
    assert_eq!(rib.route_count(), 1);
}

#[test]
fn announcements_are_found_from_longer_names() {
    let (mut rib, mut fib) = (Rib::new(), FollowingFib::default());
    let announced =
        Route { announcement: Some((*b"announcement").into()), expires_at_ms: Some(5000), ..route(300, 0, INHERIT) };
    rib.register(name("/A").as_ref(), announced, &mut fib).expect("registered");
    rib.register(name("/A/B").as_ref(), route(301, 0, INHERIT), &mut fib).expect("registered");
    assert_eq!(rib.find_announcement(name("/A/B/C").as_ref(), 0), Some(&b"announcement"[..]));
    assert_eq!(rib.find_announcement(name("/A").as_ref(), 4999), Some(&b"announcement"[..]));
    assert_eq!(rib.find_announcement(name("/A").as_ref(), 5000), None);
    assert_eq!(rib.find_announcement(name("/B").as_ref(), 0), None);
}

#[test]
fn unusual_routes_keep_all_their_bits() {
    let (mut rib, mut fib) = (Rib::new(), FollowingFib::default());
    for (origin, cost, flags) in [(u64::MAX, 1, 1), (1, u64::MAX, 1), (2, 3, u64::MAX), (65_535, u32::MAX.into(), 255)]
    {
        let unusual = Route { origin, ..route(300, cost, flags) };
        rib.register(name("/A").as_ref(), unusual.clone(), &mut fib).expect("registered");
        assert_eq!(rib.route(name("/A").as_ref(), FaceId(300), origin), Some(unusual));
        rib.unregister(name("/A").as_ref(), FaceId(300), origin, &mut fib);
    }
    assert_eq!(rib.route_count(), 0);
    assert!(fib.nexthops.is_empty());
}

#[test]
fn a_walk_sees_every_entry_once() {
    let (mut rib, mut fib) = (Rib::new(), FollowingFib::default());
    for i in 0..100 {
        rib.register(name(&format!("/A/{i}/x")).as_ref(), route(300, i, 0), &mut fib).expect("registered");
    }
    for i in (0..100).step_by(2) {
        rib.unregister(name(&format!("/A/{i}/x")).as_ref(), FaceId(300), 0, &mut fib);
    }
    let (mut seen, mut cursor) = (Vec::new(), Some(Cursor::default()));
    while let Some(from) = cursor {
        // As for a client that can keep only a number.
        let from = from.number().map_or(Cursor::default(), Cursor::from_number);
        cursor = rib.visit_entries(from, 7, |name, routes| {
            seen.push((name.to_owned(), routes.map(|route| route.cost).collect::<Vec<_>>()));
        });
    }
    seen.sort();
    let mut expected: Vec<_> = (0..100).filter(|i| i % 2 == 1).map(|i| (name(&format!("/A/{i}/x")), vec![i])).collect();
    expected.sort();
    assert_eq!(seen, expected);
    for number in [1 << 20, u64::from(u32::MAX), u64::MAX] {
        let next = rib.visit_entries(Cursor::from_number(number), 7, |_, _| panic!("no entry follows the end"));
        assert_eq!(next, None);
    }
}

#[test]
fn names_survive_the_churn_of_others() {
    let (mut rib, mut fib) = (Rib::new(), FollowingFib::default());
    let prefix = |round: u32, i: u32| name(&format!("/round{round}/a-rather-long-component-number-{i}"));
    for round in 0..4 {
        for i in 0..1000 {
            rib.register(prefix(round, i).as_ref(), route(300 + i % 3, i.into(), INHERIT), &mut fib)
                .expect("registered");
        }
        for i in (0..1000).filter(|i| i % 100 != 0) {
            assert!(rib.unregister(prefix(round, i).as_ref(), FaceId(300 + i % 3), 0, &mut fib));
        }
    }
    assert_eq!((rib.route_count(), fib.nexthops.len()), (40, 40));
    for round in 0..4 {
        for i in (0..1000).step_by(100) {
            assert_eq!(rib.effective_nexthops(prefix(round, i).as_ref()), [(FaceId(300 + i % 3), i.into())]);
        }
    }
    assert!(rib.memory_bytes() < 200_000, "{}", rib.memory_bytes());
    assert_eq!(rib.remove_face(FaceId(300), &mut fib), 16);
    assert_eq!(rib.route_count(), 24);
}

/// One step of the random test.
#[derive(Debug, Clone)]
enum Step {
    Register { name: Name, route: Route },
    Unregister { name: Name, face: u32, origin: u64 },
    RemoveFace(u32),
    Advance(u64),
}

fn any_name() -> impl Strategy<Value = Name> {
    proptest::collection::vec(0..3u8, 0..5)
        .prop_map(|path| path.into_iter().fold(Name::new(), |name, part| name.append_generic([b'a' + part])))
}

fn any_step() -> impl Strategy<Value = Step> {
    let route = (300..304u32, 0..3u64, 0..4u64, 0..4u64, proptest::option::weighted(0.2, 1..50u64)).prop_map(
        |(face, origin, cost, flags, expires_at_ms)| Route { origin, expires_at_ms, ..self::route(face, cost, flags) },
    );
    prop_oneof![
        6 => (any_name(), route).prop_map(|(name, route)| Step::Register { name, route }),
        4 => (any_name(), 300..304u32, 0..3u64)
            .prop_map(|(name, face, origin)| Step::Unregister { name, face, origin }),
        1 => (300..304u32).prop_map(Step::RemoveFace),
        1 => (0..10u64).prop_map(Step::Advance),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]
    #[test]
    fn it_agrees_with_the_model(steps in proptest::collection::vec(any_step(), 1..120)) {
        let (mut rib, mut fib, mut model) = (Rib::new(), FollowingFib::default(), Model::default());
        let mut now_ms = 0;
        for step in steps {
            match step {
                Step::Register { name, mut route } => {
                    route.expires_at_ms = route.expires_at_ms.map(|period| now_ms + period);
                    let is_new = model.register(&name, &route);
                    let registration = rib.register(name.as_ref(), route, &mut fib).expect("short names");
                    prop_assert_eq!(registration == Registration::New, is_new);
                }
                Step::Unregister { name, face, origin } => {
                    let removed = rib.unregister(name.as_ref(), FaceId(face), origin, &mut fib);
                    prop_assert_eq!(removed, model.unregister(&name, face, origin));
                }
                Step::RemoveFace(face) => {
                    prop_assert_eq!(rib.remove_face(FaceId(face), &mut fib), model.remove_face(face));
                }
                Step::Advance(ms) => {
                    now_ms += ms;
                    prop_assert_eq!(rib.expire(now_ms, &mut fib), model.expire(now_ms));
                }
            }
            model.note_ages();
            prop_assert_eq!(&fib.nexthops, &model.nexthops());
            for (name, order) in &fib.orders {
                let ranks: Vec<_> = order.iter().map(|&(face, _)| model.rank(name, face)).collect();
                prop_assert!(ranks.is_sorted(), "{name}: {order:?} has the ranks {ranks:?}");
            }
            prop_assert_eq!(&fib.readvertised, &model.readvertised(READVERTISED));
            prop_assert_eq!(rib.route_count(), model.routes.len());
            prop_assert_eq!(rib.entry_count(), model.names().len());
            prop_assert_eq!(rib.next_expiry_ms(), model.next_expiry_ms());
        }
        for name in model.names() {
            let found = rib.effective_nexthops(name.as_ref());
            let ranks: Vec<_> = found
                .iter()
                .map(|&(face, _)| model.rank(&name, face.0))
                .map(|(cost, is_inherited, _)| (cost, is_inherited))
                .collect();
            prop_assert!(ranks.is_sorted(), "{name}: {found:?} has the ranks {ranks:?}");
            let found: BTreeMap<_, _> = found.into_iter().map(|(face, cost)| (face.0, cost)).collect();
            prop_assert_eq!(found, model.costs(&name));
        }
    }
}
