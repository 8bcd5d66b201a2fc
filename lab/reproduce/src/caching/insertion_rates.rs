//! Thesis figure 5.5: insertion rates of Filter and TinyLFU.

use namehop_model::cache::FilterModel;
use namehop_traffic::workload::WorkloadKind;

use super::rates::{PERCENTAGES, charts, conditions, outcomes, simulate};
use super::{CAPACITY, web_model};
use crate::ReproduceError;
use crate::context::Context;
use crate::published;
use crate::report::{Cell, Column, Report, Row};

/// Thesis figure 5.5.
pub(crate) fn figure_5_5(context: &mut Context<'_>) -> Result<Report, ReproduceError> {
    let mut rows = Vec::new();
    let mut exceptions = 0;
    for kind in WorkloadKind::PUBLISHED {
        simulate(context, kind, &PERCENTAGES)?;
        for percent in PERCENTAGES {
            let mut of_filter = f64::NAN;
            for (name, outcome) in outcomes(context, kind, percent)?.into_iter().rev() {
                let rate = outcome.counts.insertion_rate();
                let is_filter = name == "Filter";
                match name {
                    "Filter" => of_filter = rate,
                    "TinyLFU" => exceptions += usize::from(rate < of_filter),
                    "Namehop's default" => {}
                    _ => continue,
                }
                let is_published = is_filter && kind == WorkloadKind::Web && percent == 1;
                let printed = if is_published { Cell::Published(published::FILTER_INSERTION) } else { Cell::Empty };
                let model = FilterModel {
                    capacity: CAPACITY as u64 * percent,
                    ..web_model((CAPACITY as u64 * percent) as f64, 2)
                };
                let modelled = is_filter && kind == WorkloadKind::Web;
                let modelled = if modelled { Cell::Computed(model.published().insertion) } else { Cell::Empty };
                rows.push(Row::new(format!("{kind}, {percent} %, {name}"), [printed, Cell::Computed(rate), modelled]));
            }
        }
    }
    let columns = vec![
        Column::published("insertion rate"),
        Column::computed("insertion rate, simulated"),
        Column::computed("by the model"),
    ];
    let difference = format!(
        "According to the text, Filter admits less than TinyLFU on all three workloads. In these simulations TinyLFU, \
         with the published long sample, admits less in {exceptions} of {} cases. The comparison with a victim amounts \
         to a popularity threshold, which depends on the sample length of TinyLFU; so do these rates.",
        PERCENTAGES.len() * WorkloadKind::PUBLISHED.len()
    );
    let limits = [
        "The curves by cache size are printed without numbers; the published 0.03 is from 6.5.2.",
        "The popularity of videos is not published; here it follows the same law as that of web objects.",
    ];
    let charts = charts("Insertion rates", &rows, 1);
    let report = Report::new(columns, rows, difference).with_charts(charts);
    Ok(report.with_conditions(conditions(context)).with_limits(limits))
}
