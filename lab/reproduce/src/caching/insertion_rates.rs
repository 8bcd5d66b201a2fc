//! Thesis figure 5.5: insertion rates of Filter and TinyLFU.

use namehop_model::cache::FilterModel;
use namehop_traffic::workload::WorkloadKind;

use super::rates::{PERCENTAGES, charts, conditions, outcomes};
use super::tinylfu_choices::{PART, sweep};
use super::{CAPACITY, web_model};
use crate::ReproduceError;
use crate::compared_policies::{DEFAULT, named};
use crate::context::Context;
use crate::published;
use crate::report::{Cell, Column, Report, Row};

/// Thesis figure 5.5.
pub(crate) fn figure_5_5(context: &mut Context<'_>) -> Result<Report, ReproduceError> {
    let policies = named(&["TinyLFU", "Filter", DEFAULT]);
    let mut rows = Vec::new();
    let mut exceptions = 0;
    for kind in WorkloadKind::PUBLISHED {
        let outcomes = outcomes(context, kind, &PERCENTAGES, &policies)?;
        for (percent, outcomes) in PERCENTAGES.into_iter().zip(outcomes) {
            let rates: Vec<f64> = outcomes.iter().map(|outcome| outcome.counts.insertion_rate()).collect();
            exceptions += usize::from(rates[0] < rates[1]);
            for (policy, rate) in policies.iter().zip(rates) {
                let of_web = policy.name == "Filter" && kind == WorkloadKind::Web;
                let printed = if of_web && percent == 1 { published::FILTER_INSERTION.into() } else { Cell::Empty };
                let capacity = CAPACITY as u64 * percent;
                let model = || FilterModel { capacity, ..web_model(capacity as f64, 2) }.published().insertion;
                let modelled = if of_web { Cell::Computed(model()) } else { Cell::Empty };
                let label = format!("{kind}, {percent} %, {}", policy.name);
                rows.push(Row::new(label, [printed, Cell::Computed(rate), modelled]));
            }
        }
    }
    let columns = vec![
        Column::published("insertion rate"),
        Column::computed("insertion rate, simulated"),
        Column::computed("by the model"),
    ];
    let (choices, finding) = sweep(context)?;
    let difference = format!(
        "According to the text, Filter admits less than TinyLFU on all three workloads. In these simulations TinyLFU, \
         with the published long window, admits less in {exceptions} of {} cases. The comparison with a victim amounts \
         to a popularity threshold, which depends on the window of TinyLFU; so do these rates. {finding}",
        PERCENTAGES.len() * WorkloadKind::PUBLISHED.len()
    );
    let limits = [
        "The curves by cache size are printed without numbers; the published 0.03 is from 6.5.2.".to_owned(),
        "The popularity of videos is not published; here it follows the same law as that of web objects.".to_owned(),
        format!(
            "The second table has 1/{PART} of the packets, capacities and requests, and exact counts. The weight of \
             the cold start in its rates depends on the number of requests, which is not published."
        ),
    ];
    let charts = charts("Insertion rates", &policies, &rows, 1);
    let report = Report::new(columns, rows, difference).with_tables([choices]).with_charts(charts);
    Ok(report.with_conditions(conditions(context)).with_limits(limits))
}
