//! Items on cache policies.

use super::*;

#[test]
fn items_with_tinylfu_state_its_window() {
    let mut engine = PublishedEngine::new(false);
    let on_progress = |_: Progress| ();
    let mut context = Context::new(settings(), with_engine(&mut engine), &on_progress);
    let windows = [
        ("figure-5.5", "a window of 50 C, as published"),
        ("figure-5.6", "a window of 50 C, as published"),
        ("figure-5.7", "a window of 50 C, as published"),
        ("table-5.2", "its default window of 10 C"),
        ("figure-5.8", "its default window of 10 C"),
    ];
    for (id, window) in windows {
        let report = context.run(id).expect("report");
        assert!(report.conditions.iter().any(|condition| condition.contains(window)), "{id}: {:?}", report.conditions);
    }
}
