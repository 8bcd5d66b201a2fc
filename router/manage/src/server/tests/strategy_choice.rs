//! Choosing strategies.

use super::*;

fn choice(prefix: &str, strategy: &str) -> ControlParameters {
    ControlParameters { strategy: Some(name(strategy)), ..named(prefix) }
}

#[test]
fn set_answers_with_the_full_name_and_takes_effect() {
    run(async {
        let fixture = Fixture::new();
        let response =
            fixture.command("strategy-choice", "set", &choice("/A", "/localhost/nfd/strategy/multicast")).await;
        let full = "/localhost/nfd/strategy/multicast/v=5";
        assert_eq!((response.code, response.parameters()), (200, Ok(choice("/A", full))));
        let effective = |prefix: &str| {
            fixture.router().with_fib(|fib| fib.effective_strategy(name(prefix).as_ref()).name().to_string())
        };
        assert_eq!(effective("/A/B"), full);
        assert_eq!(fixture.changes(), [format!("strategy /A {full}")]);

        assert_eq!(fixture.command("strategy-choice", "unset", &named("/A")).await.code, 200);
        assert_eq!(effective("/A/B"), "/localhost/nfd/strategy/best-route/v=5");
        assert_eq!(fixture.changes(), ["no strategy /A"]);
        let response = fixture.command("strategy-choice", "unset", &named("/A")).await;
        assert_eq!((response.code, response.parameters()), (200, Ok(named("/A"))));
        assert!(fixture.changes().is_empty());
    });
}

#[test]
fn in_a_large_fib_the_answer_comes_when_all_prefixes_have_the_strategy() {
    run(async {
        let fixture = Fixture::new();
        fixture.router().with_fib(|fib| {
            for number in 0..40_000u32 {
                let prefix = name("/A").append_generic(number.to_be_bytes());
                fib.add_nexthop(prefix.as_ref(), FaceId(257), 0).expect("added");
            }
        });
        let reader = fixture.router().with_fib(|fib| fib.reader());
        let with_strategy = |strategy: &str| {
            let mut hashes = namehop_hash::PrefixHashes::new();
            let found = (0..40_000u32).filter(|number| {
                let prefix = name("/A").append_generic(number.to_be_bytes());
                namehop_hash::hash_prefixes(&namehop_hash::HashKey::new(1, 2), prefix.value(), &mut hashes)
                    .expect("the prefix fits the FIB");
                let found = reader.longest_prefix_match(&hashes, prefix.as_ref());
                found.strategy().name().to_string().contains(strategy)
            });
            found.count()
        };
        fixture.command("strategy-choice", "set", &choice("/A", "/localhost/nfd/strategy/multicast")).await;
        assert_eq!(with_strategy("multicast"), 40_000);
        fixture.command("strategy-choice", "unset", &named("/A")).await;
        assert_eq!(with_strategy("best-route"), 40_000);
    });
}

#[test]
fn set_refuses_what_is_not_there() {
    run(async {
        let fixture = Fixture::new();
        let set = async |prefix: &str, strategy: &str| {
            fixture.command("strategy-choice", "set", &choice(prefix, strategy)).await.code
        };
        assert_eq!(set("/A", "/localhost/nfd/strategy/none").await, 404);
        assert_eq!(set("/A", "/elsewhere").await, 404);
        assert_eq!(set("/A", "/localhost/nfd/strategy/best-route/v=99").await, 404);
        assert_eq!(set("/A", "/localhost/nfd/strategy/asf/v=5/probing-interval~1").await, 409);
        assert_eq!(set("/A", "/localhost/nfd/strategy/asf/v=5/what~1").await, 409);
        assert_eq!(set("/A", "/localhost/nfd/strategy/asf/v=5/probing-interval~30000").await, 200);
        let deep = (0..33).map(|i| format!("/{i}")).collect::<String>();
        assert_eq!(set(&deep, "/localhost/nfd/strategy/multicast").await, 414);
    });
}
