//! What the order of Filter and TinyLFU in thesis figure 5.5 depends on: choices for TinyLFU that the text leaves open,
//! simulated.

use namehop_simulate::exact_tinylfu::{TinyLfuChoices, Victim};
use namehop_simulate::policy::SimulatedPolicy;
use namehop_simulate::run::{Outcome, Plan};
use namehop_simulate::store::Counts;
use namehop_traffic::workload::WorkloadKind;

use super::rates::{PERCENTAGES, capacity_of, shape_of};
use crate::ReproduceError;
use crate::compared_policies::{Compared, WINDOW, named};
use crate::context::Context;
use crate::report::{Cell, Column, Row, Table};

/// The sweep has this part of the objects, of the capacities and of the requests: that keeps the rates nearly the same.
pub(super) const PART: u64 = 10;
/// Simulated windows, in requests per packet of the capacity.
const WINDOWS: [u32; 4] = [1, 10, WINDOW, 200];

/// Which requests a rate counts.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Counted {
    /// The second half.
    Warm,
    /// All, from the empty cache on.
    All,
}

impl Counted {
    fn of(self, outcome: &Outcome) -> Counts {
        match self {
            Counted::Warm => outcome.counts,
            Counted::All => outcome.since_start,
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Counted::Warm => "second half counted",
            Counted::All => "all counted",
        }
    }
}

/// A policy of the sweep.
struct Simulated {
    /// Its name, without the victim's order.
    name: String,
    /// Name of the victim's order, for TinyLFU.
    victim: &'static str,
    policy: SimulatedPolicy,
}

/// Simulated policies: the two that TinyLFU is compared with, then TinyLFU with all combinations of choices.
fn policies() -> Vec<Simulated> {
    let compared = |of: &Compared| Simulated { name: of.name.to_owned(), victim: "", policy: of.policy };
    let mut policies: Vec<_> =
        ["Filter", "ARC"].iter().flat_map(|&name| named(&[name])).map(|of| compared(&of)).collect();
    for window in WINDOWS {
        for (admits_equals, equals) in [(false, "equals rejected"), (true, "equals admitted")] {
            for (victim, order) in [(Victim::Random, "Random"), (Victim::Fifo, "FIFO")] {
                let policy = SimulatedPolicy::ExactTinyLfu(TinyLfuChoices { window, admits_equals, victim });
                policies.push(Simulated { name: format!("{window} C, {equals}"), victim: order, policy });
            }
        }
    }
    policies
}

/// The outcomes of all [`policies`] in each case: workload and capacity, the web workload at 1 % first. Each case is a
/// simulation of its own, because exact counts take some 20 MB for each policy.
fn simulate(context: &Context<'_>) -> Result<Vec<Vec<Outcome>>, ReproduceError> {
    let requests = context.settings.cache_requests / PART;
    let simulate = |kind, percent| {
        let shape = shape_of(kind, PART);
        let stores = policies().into_iter().map(|of| (of.policy, capacity_of(&shape, percent))).collect();
        let plan = Plan { stores, requests, warm_up: requests / 2, threads: context.machine.cores };
        context.simulate(shape, &plan)
    };
    let cases = WorkloadKind::PUBLISHED.into_iter().flat_map(|kind| PERCENTAGES.map(|percent| (kind, percent)));
    cases.map(|(kind, percent)| simulate(kind, percent)).collect()
}

/// The rates of one policy, by one way of counting.
struct Choice {
    /// All choices but the victim.
    label: String,
    /// Name of the victim's order; empty for the policies that TinyLFU is compared with.
    victim: &'static str,
    /// Number of cases in which Filter admits less; `None` for the policies that TinyLFU is compared with.
    above_filter: Option<usize>,
    /// True if the policy answers more requests than ARC on the web workload at 1 %.
    is_above_arc: bool,
    /// Window of TinyLFU.
    window: Option<u32>,
    /// On the web workload at 1 %.
    insertion: f64,
    hit: f64,
}

fn choices(cases: &[Vec<Outcome>]) -> Vec<Choice> {
    let mut choices = Vec::new();
    for (place, Simulated { name, victim, policy }) in policies().into_iter().enumerate() {
        for counted in [Counted::Warm, Counted::All] {
            let of = |case: &[Outcome], place: usize| counted.of(&case[place]);
            let is_above = |case: &&Vec<Outcome>| of(case, 0).insertion_rate() < of(case, place).insertion_rate();
            let (arc, own) = (of(&cases[0], 1).hit_rate(), of(&cases[0], place));
            let tinylfu = match policy {
                SimulatedPolicy::ExactTinyLfu(choices) => Some(choices),
                _ => None,
            };
            choices.push(Choice {
                label: format!("{name}, {}", counted.name()),
                victim,
                above_filter: tinylfu.map(|_| cases.iter().filter(is_above).count()),
                is_above_arc: own.hit_rate() > arc,
                window: tinylfu.map(|of| of.window),
                insertion: own.insertion_rate(),
                hit: own.hit_rate(),
            });
        }
    }
    choices
}

/// Simulates all choices. Returns their table, and a sentence on the choices with the published order.
pub(super) fn sweep(context: &Context<'_>) -> Result<(Table, String), ReproduceError> {
    let cases = simulate(context)?;
    let choices = choices(&cases);
    let finding = finding(&choices, cases.len());
    let rows = choices.iter().map(|choice| {
        let above = choice.above_filter.map_or(Cell::Empty, |above| Cell::Computed(above as f64));
        let order = choice.above_filter.map(|_| if choice.is_above_arc { "yes" } else { "no" }.to_owned());
        let order = order.map_or(Cell::Empty, Cell::Text);
        let rates = [Cell::Computed(choice.insertion), Cell::Computed(choice.hit)];
        let victim = if choice.victim.is_empty() { String::new() } else { format!(", {}", choice.victim) };
        Row::new(format!("{}{victim}", choice.label), [vec![above, order], rates.into()].concat())
    });
    let columns = vec![
        Column::computed(format!("cases of {} in which Filter admits less", cases.len())),
        Column::computed("more hits than ARC, web, 1 %"),
        Column::computed("insertion rate, web, 1 %"),
        Column::computed("hit rate, web, 1 %"),
    ];
    let title = "Choices for TinyLFU: window; Data requested as often as the victim; requests counted; victim";
    Ok((Table::new(title, columns, rows.collect()), finding))
}

/// Says which choices give the published order of insertion rates, and which come closest to it of the choices that
/// give the published order of hit rates.
fn finding(choices: &[Choice], cases: usize) -> String {
    let in_order = |choice: &&Choice| choice.above_filter == Some(cases);
    let by_window = WINDOWS.map(|window| {
        let of_window = || choices.iter().filter(|choice| choice.window == Some(window));
        format!("{} of {} with a window of {window} C", of_window().filter(in_order).count(), of_window().count())
    });
    let above_arc = || choices.iter().filter(|choice| choice.is_above_arc);
    let most = above_arc().filter_map(|choice| choice.above_filter).max();
    let closest = list(above_arc().filter(|choice| choice.above_filter == most && most.is_some()));
    format!(
        "The second table varies what the text leaves open. {} of its choices give the published order in all {cases} \
         cases: {}. Figure 5.6 also requires more hits than ARC. Of the choices with more hits, these come closest to \
         the published order, with {} of {cases} cases: {closest}.",
        choices.iter().filter(in_order).count(),
        by_window.join(", "),
        most.unwrap_or(0),
    )
}

/// Lists choices. Choices that differ in the victim only are one entry.
fn list<'a>(choices: impl Iterator<Item = &'a Choice>) -> String {
    let mut entries: Vec<(&str, Vec<&str>)> = Vec::new();
    for choice in choices {
        match entries.iter_mut().find(|(label, _)| *label == choice.label) {
            Some((_, victims)) => victims.push(choice.victim),
            None => entries.push((&choice.label, vec![choice.victim])),
        }
    }
    let entries = entries.iter().map(|(label, victims)| format!("{label}, {}", victims.join(" or ")));
    let entries = entries.collect::<Vec<_>>().join("; ");
    if entries.is_empty() { "none".to_owned() } else { entries }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_finding_names_the_choices_with_the_published_order() {
        let choice = |label: &str, victim, window, above_filter, is_above_arc| {
            let label = label.to_owned();
            Choice { label, victim, window, above_filter, is_above_arc, insertion: 0.1, hit: 0.3 }
        };
        let mut choices = vec![
            choice("Filter", "", None, None, true),
            choice("a", "Random", Some(1), Some(3), false),
            choice("b", "Random", Some(50), Some(2), true),
            choice("b", "FIFO", Some(50), Some(2), true),
            choice("c", "Random", Some(50), Some(1), true),
        ];
        let text = finding(&choices, 3);
        assert!(text.contains("1 of its choices give the published order in all 3 cases: 1 of 1 with a"), "{text}");
        assert!(text.contains("0 of 3 with a window of 50 C"), "{text}");
        assert!(text.ends_with("with 2 of 3 cases: b, Random or FIFO."), "{text}");
        choices.push(choice("d", "Random", Some(200), Some(3), true));
        assert!(finding(&choices, 3).ends_with("with 3 of 3 cases: d, Random."));
        assert!(finding(&choices[..2], 3).ends_with("with 0 of 3 cases: none."));
    }

    #[test]
    fn all_choices_are_simulated_behind_the_two_that_they_are_compared_with() {
        let policies = policies();
        let names: Vec<&str> = policies.iter().map(|of| &*of.name).collect();
        assert_eq!((names[0], names[1], names.len()), ("Filter", "ARC", 2 + 16));
        assert!(names.contains(&"50 C, equals admitted"));
    }
}
