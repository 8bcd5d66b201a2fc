//! Random sequences of routes, answers, lost packets and restarts, against a list of the prefixes that should be known.
//!
//! The modelled destination receives commands in the order of sending. Some commands are lost on the way to it, and
//! some answers on the way back. At the end, it must know exactly the wanted prefixes.

use std::collections::BTreeMap;

use namehop_wire::Name;
use proptest::prelude::*;

use super::super::announcer::{Action, Announcer, Outcome};
use super::{LIMITS, name};

#[derive(Debug, Clone)]
enum Step {
    Want(u8, Option<u64>),
    /// Advances the time by these milliseconds; the commands sent meanwhile have the given fates.
    Pass(u64, Vec<Fate>),
    Restart,
    Leave,
    Come,
}

#[derive(Debug, Clone, Copy)]
enum Fate {
    Accepted,
    Refused,
    Lost,
    AnswerLost,
    Nacked,
}

fn step() -> impl Strategy<Value = Step> {
    let fate = prop_oneof![
        6 => Just(Fate::Accepted),
        1 => Just(Fate::Refused),
        1 => Just(Fate::Lost),
        1 => Just(Fate::AnswerLost),
        1 => Just(Fate::Nacked),
    ];
    prop_oneof![
        12 => (0..7_u8, proptest::option::weighted(0.6, 0..3_u64)).prop_map(|(prefix, cost)| Step::Want(prefix, cost)),
        8 => (0..6_000_u64, proptest::collection::vec(fate, 1..6)).prop_map(|(ms, fates)| Step::Pass(ms, fates)),
        1 => Just(Step::Restart),
        1 => Just(Step::Leave),
        1 => Just(Step::Come),
    ]
}

struct World {
    announcer: Announcer,
    known: BTreeMap<Name, u64>,
    wanted: BTreeMap<Name, u64>,
    is_there: bool,
    now_ms: u64,
}

impl World {
    /// Advances the time to `end_ms`, and handles every command when it is due.
    fn pass(&mut self, end_ms: u64, mut fate: impl FnMut() -> Fate) {
        while let Some(due_ms) = self.announcer.next_due_ms()
            && due_ms <= end_ms
        {
            self.now_ms = self.now_ms.max(due_ms);
            while let Some(command) = self.announcer.next_command(self.now_ms) {
                assert!(self.is_there, "a command needs a destination: {command:?}");
                let fate = fate();
                if matches!(fate, Fate::Accepted | Fate::AnswerLost) {
                    match command.action {
                        Action::Announce(cost) => drop(self.known.insert(command.prefix, cost)),
                        Action::Withdraw => drop(self.known.remove(&command.prefix)),
                    }
                }
                let outcome = match fate {
                    Fate::Accepted => Outcome::Accepted,
                    Fate::Refused => Outcome::Refused,
                    Fate::Nacked => Outcome::Nacked,
                    Fate::Lost | Fate::AnswerLost => continue,
                };
                self.announcer.ended(command.id, outcome, self.now_ms);
            }
        }
        self.now_ms = self.now_ms.max(end_ms);
    }

    fn take(&mut self, step: &Step) {
        match step {
            Step::Want(number, cost) => {
                let prefix = name("/p").append_segment((*number).into());
                match cost {
                    Some(cost) => drop(self.wanted.insert(prefix.clone(), *cost)),
                    None => drop(self.wanted.remove(&prefix)),
                }
                self.announcer.want(prefix.as_ref(), *cost, self.now_ms);
            }
            Step::Pass(ms, fates) => {
                let mut fates = fates.iter().copied().cycle();
                self.pass(self.now_ms + ms, || fates.next().unwrap_or(Fate::Accepted));
            }
            Step::Restart | Step::Come => {
                self.known.clear();
                self.is_there = true;
                self.announcer.destination_began(self.now_ms);
            }
            Step::Leave => {
                self.known.clear();
                self.is_there = false;
                self.announcer.destination_ended();
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn in_the_end_the_destination_knows_what_is_wanted(steps in proptest::collection::vec(step(), 1..60)) {
        let mut world = World {
            announcer: Announcer::new(LIMITS),
            known: BTreeMap::new(),
            wanted: BTreeMap::new(),
            is_there: false,
            now_ms: 0,
        };
        for step in &steps {
            world.take(step);
        }
        // The longest pause between two attempts exceeds an hour.
        world.pass(world.now_ms + 4_100_000, || Fate::Accepted);
        if world.is_there {
            prop_assert_eq!(&world.known, &world.wanted);
        } else {
            prop_assert!(world.known.is_empty());
        }
        prop_assert_eq!(world.announcer.prefix_count(), world.wanted.len(), "only wanted prefixes are kept");
    }
}
