//! Tests of the limits on repeated actions of a program.

use super::{chosen, object_of, registry_with};
use crate::strategy::tests::{A, Action, B, D, E, Mock};
use crate::strategy::{StrategyInstance, Trigger};

fn program(function: &str) -> StrategyInstance {
    chosen(&registry_with(&object_of(&format!("NAMEHOP_PROGRAM(context) {{ {function} return 0; }}"))), "test")
}

#[test]
fn each_next_hop_gets_the_interest_once_in_an_event() {
    let strategy = program(
        "namehop_u64 first = namehop_forward(context, 1);
         first |= namehop_forward(context, 3) << 2;
         first |= namehop_forward(context, ~0ull) << 4;
         first |= namehop_forward_unsuppressed(context, ~0ull) << 6;
         context->interest_scratch[0] = first;",
    );
    let mut mock = Mock::new(&[(A, 1), (B, 2)]);
    for event in 1..=2 {
        assert_eq!(mock.interest(&strategy, D), [Action::Interest(A), Action::Interest(B)], "event {event}");
        assert_eq!(mock.pit_scratch.flags, 1 | 2 << 2, "the results of the calls");
    }
    assert_eq!(mock.event(&strategy, Trigger::Timer), [Action::Interest(A), Action::Interest(B)]);
}

#[test]
fn whoever_asks_often_is_answered_from_memory() {
    let strategy = program(
        "_Pragma(\"unroll\")
         for (int round = 0; round < 100; round++) {
             context->interest_scratch[0] += namehop_count(namehop_eligible(context));
             context->interest_scratch[1] += namehop_first_eligible(context);
         }
         namehop_forward(context, 2);",
    );
    let mut mock = Mock::new(&[(A, 1), (B, 2)]);
    mock.interest(&strategy, D);
    mock.interest(&strategy, E);
    mock.pit_scratch = Default::default();
    mock.eligibility_looks.set(0);
    assert_eq!(mock.event(&strategy, Trigger::Timer), [Action::Interest(B)]);
    assert_eq!((mock.pit_scratch.flags, mock.pit_scratch.face), (200, 100));
    assert_eq!(mock.eligibility_looks.get(), 2, "one for each next hop");
}
