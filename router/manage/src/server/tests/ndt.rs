//! Moving names to another worker.

use namehop_client::nfd::{DispatchEntry, WorkerStatus};

use super::datasets::{items, list};
use super::*;

#[test]
fn names_are_moved_to_a_worker_that_there_is() {
    run(async {
        let fixture = Fixture::new();
        let move_to = async |worker| {
            let parameters = ControlParameters { count: Some(worker), ..named("/A/B") };
            let response = fixture.command("ndt", "move", &parameters).await;
            (response.code, response.parameters().ok().and_then(|done| done.count))
        };
        assert_eq!(move_to(0).await, (409, None), "with one worker nothing can be moved");
        let entry = DispatchEntry { entry: 7, worker: 1, former_worker: None, is_divided: true, packets_per_s: 5 };
        fixture.router().dispatch_entries.borrow_mut().push(entry);
        *fixture.router().workers.borrow_mut() = vec![WorkerStatus::default(); 2];
        assert_eq!(move_to(2).await, (404, None));
        assert_eq!(move_to(0).await, (200, Some(0)));
        let listed = items::<DispatchEntry>(&fixture, list("ndt", "list")).await;
        assert_eq!(listed, [DispatchEntry { worker: 0, former_worker: Some(1), ..entry }]);
        assert_eq!(fixture.command("ndt", "move", &named("/A/B")).await.code, 400, "the worker is required");
    });
}
