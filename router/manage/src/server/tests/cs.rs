//! Settings of the Content Store, and erasing of Data.

use super::*;

#[test]
fn config_changes_the_requested_settings() {
    run(async {
        let fixture = Fixture::new();
        let config = async |capacity, flags: Option<u64>, mask: Option<u64>| {
            let parameters = ControlParameters { capacity, flags, mask, ..ControlParameters::default() };
            let response = fixture.command("cs", "config", &parameters).await;
            assert_eq!(response.code, 200);
            let done = response.parameters().expect("parameters");
            (done.capacity, done.flags)
        };
        assert_eq!(config(None, None, None).await, (Some(65536), Some(3)));
        assert!(fixture.changes().is_empty(), "nothing changed");
        assert_eq!(config(Some(100), None, None).await, (Some(100), Some(3)));
        assert_eq!(config(None, Some(0), Some(1)).await, (Some(100), Some(2)));
        assert_eq!(config(None, Some(1), Some(3)).await, (Some(100), Some(1)));
        assert_eq!(fixture.changes().len(), 3);
    });
}

#[test]
fn config_changes_the_policy_as_far_as_there_is_memory() {
    run(async {
        let fixture = Fixture::new();
        let config = async |policy: &str| {
            let parameters = ControlParameters { policy: Some(policy.to_owned()), ..ControlParameters::default() };
            fixture.command("cs", "config", &parameters).await
        };
        for (policy, shown) in [("arc", "arc"), ("filter:threshold=3", "filter:threshold=3"), ("LRU", "lru")] {
            let done = config(policy).await.parameters().expect("parameters");
            assert_eq!(done.policy.as_deref(), Some(shown));
        }
        assert_eq!(fixture.changes().len(), 3);
        for (policy, reason) in [
            ("best", "unknown content store policy 'best', expected 'tinylfu-clock', "),
            ("lru:threshold=3", "content store policy 'lru' has no setting 'threshold'"),
            ("filter:threshold=0", "'threshold' cannot be '0'"),
        ] {
            let response = config(policy).await;
            assert_eq!(response.code, 400);
            assert!(response.text.starts_with(reason), "{}", response.text);
        }
        fixture.router().has_no_memory.set(true);
        let response = config("arc").await;
        assert_eq!(response.code, 500);
        assert!(response.text.starts_with("there is no memory for the policy 'arc', the cache keeps 'lru'"));
        assert!(fixture.changes().is_empty(), "the saved change is withdrawn");
    });
}

#[test]
fn erase_stops_after_256_and_says_so() {
    run(async {
        let fixture = Fixture::new();
        fixture.router().cached_data.set(300);
        let erase = async |count| {
            let parameters = ControlParameters { count, ..named("/A") };
            let response = fixture.command("cs", "erase", &parameters).await;
            assert_eq!(response.code, 200);
            let done = response.parameters().expect("parameters");
            assert_eq!(done.name, Some(name("/A")));
            (done.count, done.capacity)
        };
        assert_eq!(erase(None).await, (Some(256), Some(256)));
        assert_eq!(erase(Some(10)).await, (Some(10), None));
        assert_eq!(erase(None).await, (Some(34), None));
        assert_eq!(erase(Some(1)).await, (Some(0), None));
    });
}
