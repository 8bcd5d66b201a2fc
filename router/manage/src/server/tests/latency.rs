//! Latency: starting and stopping the measurement, and its dataset.

use std::num::NonZeroU32;

use namehop_client::nfd::{LatencyCounts, LatencyStatus};

use super::datasets::{items, list};
use super::*;

#[test]
fn it_is_measured_of_as_many_packets_as_the_command_says() {
    run(async {
        let fixture = Fixture::new();
        let sample = async |count| {
            let parameters = ControlParameters { count: Some(count), ..ControlParameters::default() };
            let response = fixture.command("latency", "sample", &parameters).await;
            (response.code, response.parameters().ok().and_then(|done| done.count))
        };
        let one_in = || fixture.router().latency.borrow().one_in;
        assert_eq!((sample(1 << 32).await.0, one_in()), (400, None));
        assert_eq!(
            fixture.command("latency", "sample", &ControlParameters::default()).await.code,
            400,
            "Count is required"
        );
        assert_eq!((sample(1024).await, one_in()), ((200, Some(1024)), NonZeroU32::new(1024)));
        fixture.router().latency.borrow_mut().data = LatencyCounts(vec![(3_000, 5), (70_000, 1)]);
        let reported = items::<LatencyStatus>(&fixture, list("status", "latency")).await;
        assert_eq!(reported, [fixture.router().latency.borrow().clone()]);
        assert_eq!((sample(0).await, one_in()), ((200, Some(0)), None));
    });
}
