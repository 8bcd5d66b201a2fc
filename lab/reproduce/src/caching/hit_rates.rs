//! Thesis figure 5.6: hit rates, and the workload that the published ones fit.

use namehop_model::cache::FilterModel;
use namehop_traffic::workload::{WorkloadKind, WorkloadShape};

use super::rates::{PERCENTAGES, charts, conditions, outcomes};
use super::{CAPACITY, web_model};
use crate::ReproduceError;
use crate::compared_policies::{Compared, PERFECT_LFU, ROUTER_LFU, compared};
use crate::context::Context;
use crate::published::Published;
use crate::report::{Cell, Chart, ChartKind, Column, Report, Row, Series};

/// Zipf exponent with which the simulated rates come close to the published ones.
const FITTING_ALPHA: f64 = 0.809;
/// Number of objects with which they come close too, with the published exponent.
const FITTING_OBJECTS: u64 = 8_200_000;
/// Distance below which a rate counts as regenerated. Rates as close to each other have no order: FIFO and Random have
/// the same hit rate if requests are independent.
const CLOSE: f64 = 0.005;

/// Thesis figure 5.6.
pub(crate) fn figure_5_6(context: &mut Context<'_>) -> Result<Report, ReproduceError> {
    let policies = compared();
    let printed = WorkloadShape::published(WorkloadKind::Web);
    let mut web_rates = |shape| WebRates::simulate(context, shape, CAPACITY);
    let stated = web_rates(printed)?;
    let steeper = web_rates(WorkloadShape { alpha: FITTING_ALPHA, ..printed })?;
    let fewer = web_rates(WorkloadShape { objects: FITTING_OBJECTS, ..printed })?;
    let mut rows = Vec::new();
    for kind in WorkloadKind::PUBLISHED {
        let outcomes = outcomes(context, kind, &PERCENTAGES, &policies)?;
        for (percent, outcomes) in PERCENTAGES.into_iter().zip(outcomes) {
            let is_published = kind == WorkloadKind::Web && percent == 1;
            for (policy, (outcome, fitting)) in policies.iter().zip(outcomes.iter().zip(&steeper.rates)) {
                let printed = policy.published.filter(|_| is_published);
                let fitting = if is_published { Cell::Computed(*fitting) } else { Cell::Empty };
                let simulated = Cell::Computed(outcome.counts.hit_rate());
                let label = format!("{kind}, {percent} %, {}", policy.name);
                rows.push(Row::new(label, [printed.into(), simulated, fitting, modelled(policy, kind, percent)]));
            }
        }
    }
    let web: Vec<&Row> = rows.iter().filter(|row| row.label.starts_with("web, 1 %,")).collect();
    let mut charts = charts("Hit rates", &policies, &rows, 1);
    charts.push(Chart {
        name: "-published".to_owned(),
        title: "Hit rates, web workload, cache of 10^5 packets".to_owned(),
        y_label: "hit rate".to_owned(),
        kind: ChartKind::Bars { categories: policies.map(|policy| policy.name.to_owned()).to_vec() },
        series: vec![
            Series::of_column("published", web.iter().copied(), 0),
            Series::of_column("simulated", web.iter().copied(), 1),
            Series::of_column(format!("simulated, exponent {FITTING_ALPHA}"), web.iter().copied(), 2),
        ],
    });
    let columns = vec![
        Column::published("hit rate"),
        Column::computed("hit rate, simulated"),
        Column::computed(format!("with exponent {FITTING_ALPHA}")),
        Column::computed("by the model"),
    ];
    let limits = [
        "The curves by cache size are printed without numbers, except for the web workload at 1 %.",
        "The number of simulated requests is not published, nor whether caches were full at the start.",
        "The popularity of videos is not published; here it follows the same law as that of web objects.",
    ];
    let difference = why_rates_differ(&stated, &steeper, &fewer);
    let report = Report::new(columns, rows, difference).with_charts(charts);
    Ok(report.with_conditions(conditions(context)).with_limits(limits))
}

/// The hit rate by the published model, which is of FIFO and Filter and of independent requests.
fn modelled(policy: &Compared, kind: WorkloadKind, percent: u64) -> Cell {
    let threshold = match policy.name {
        "Filter" => 2,
        "FIFO" => 1,
        _ => return Cell::Empty,
    };
    if kind != WorkloadKind::Web {
        return Cell::Empty;
    }
    let capacity = CAPACITY as u64 * percent;
    Cell::Computed(FilterModel { capacity, ..web_model(capacity as f64, threshold) }.published().hit)
}

/// Hit rates of the compared policies with a web workload.
struct WebRates {
    shape: WorkloadShape,
    capacity: usize,
    /// In the order of [`compared`].
    rates: Vec<f64>,
}

impl WebRates {
    fn simulate(context: &mut Context<'_>, shape: WorkloadShape, capacity: usize) -> Result<Self, ReproduceError> {
        let outcomes = context.simulated(shape, &compared().map(|policy| (policy.policy, capacity)))?;
        Ok(WebRates { shape, capacity, rates: outcomes.iter().map(|outcome| outcome.counts.hit_rate()).collect() })
    }

    /// Name, published and simulated hit rate of each published policy.
    fn published(&self) -> Vec<(&'static str, f64, f64)> {
        let pairs = compared().into_iter().zip(&self.rates);
        pairs.filter_map(|(of, &rate)| of.published.map(|printed| (of.name, Published::value(printed), rate))).collect()
    }

    /// The policy with the largest distance from its published rate, and this distance.
    fn farthest(&self) -> (&'static str, f64) {
        let distances = self.published().into_iter().map(|(name, printed, rate)| (name, (rate - printed).abs()));
        distances.max_by(|(_, one), (_, other)| one.total_cmp(other)).unwrap_or(("no policy", 0.0))
    }

    /// True if the policies have the published order, except policies with close published rates.
    fn are_in_order(&self) -> bool {
        let of = self.published();
        let pairs = of.iter().flat_map(|one| of.iter().map(move |other| (one, other)));
        let mut apart = pairs.filter(|(one, other)| other.1 - one.1 > CLOSE);
        apart.all(|(one, other)| one.2 < other.2)
    }

    fn of(&self, name: &str) -> f64 {
        let mut pairs = compared().into_iter().zip(&self.rates);
        pairs.find(|(policy, _)| policy.name == name).map_or(f64::NAN, |(_, &rate)| rate)
    }

    /// The highest possible hit rate: the share of requests for the most popular objects that fit.
    fn best(&self) -> f64 {
        let weight = |ranks: u64| (1..=ranks).map(|rank| (rank as f64).powf(-self.shape.alpha)).sum::<f64>();
        weight(self.capacity as u64) / weight(self.shape.objects)
    }
}

/// Explains why published rates are not met: the stated workload cannot give them, but two similar workloads do.
fn why_rates_differ(stated: &WebRates, steeper: &WebRates, fewer: &WebRates) -> String {
    let apart = stated.published().iter().filter(|(_, printed, rate)| (printed - rate).abs() > CLOSE).count();
    let ((farthest, most), (_, most_steeper), (_, most_fewer)) =
        (stated.farthest(), steeper.farthest(), fewer.farthest());
    let order = if steeper.are_in_order() { "in the published order" } else { "not in the published order" };
    format!(
        "The published LFU is perfect LFU: it counts all names since the start, so that it has the best hit rate \
         possible (5.4.2). {ROUTER_LFU}, the policy 'lfu', counts from the admission of a packet, because a router \
         cannot remember all names. With the printed exponent of {}, {apart} of the six published hit rates differ by \
         more than {CLOSE}, at most by {most:.4} ({farthest}). With independent requests for {} objects by Zipf's \
         law, the hit rate of a policy without knowledge of the future is at most the share of the {CAPACITY} most \
         popular objects, which is {:.4}; {PERFECT_LFU} has {:.4}. The published rate of LFU is higher, so the \
         published workload was not exactly the one described. The published rates fit an exponent of {}: that share \
         is then {:.4}, {PERFECT_LFU} has {:.4}, every simulated rate is within {most_steeper:.4} of the published \
         one, and the rates are {order}, but for FIFO and Random, which do not differ. {ROUTER_LFU} has {:.4} there. \
         The published rate of Filter is that of the published model, {:.4}, which is higher than simulated ones. \
         Fewer objects explain the rates as well: with {} objects and an exponent of {}, the share is {:.4}, and every \
         rate is within {most_fewer:.4}. The rates do not show which of the two applies, if either.",
        stated.shape.alpha,
        stated.shape.objects,
        stated.best(),
        stated.of(PERFECT_LFU),
        steeper.shape.alpha,
        steeper.best(),
        steeper.of(PERFECT_LFU),
        steeper.of(ROUTER_LFU),
        FilterModel { alpha: steeper.shape.alpha, ..web_model(CAPACITY as f64, 2) }.published().hit,
        fewer.shape.objects,
        fewer.shape.alpha,
        fewer.best(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Instruments, Settings, published};

    fn share_of_best(shape: WorkloadShape, capacity: usize) -> f64 {
        WebRates { shape, capacity, rates: Vec::new() }.best()
    }

    /// Simulates a tenth of the objects, of the capacity and of the requests, with the exponent that gives the most
    /// popular objects the same share as in the whole workload.
    #[test]
    fn the_published_rates_fit_perfect_lfu_and_a_steeper_law() {
        let published = WorkloadShape::published(WorkloadKind::Web);
        let whole = share_of_best(WorkloadShape { alpha: FITTING_ALPHA, ..published }, CAPACITY);
        let shape_of = |alpha| WorkloadShape { alpha, objects: published.objects / 10, ..published };
        let (mut flatter, mut steeper) = (0.8, 0.9);
        for _ in 0..12 {
            let alpha = f64::midpoint(flatter, steeper);
            let is_flat = share_of_best(shape_of(alpha), CAPACITY / 10) < whole;
            *(if is_flat { &mut flatter } else { &mut steeper }) = alpha;
        }
        let settings = Settings { cache_requests: 4_000_000, ..Settings::default() };
        let quiet = |_: namehop_bench::progress::Progress| ();
        let mut context = Context::new(settings, Instruments::default(), &quiet);
        let rates = WebRates::simulate(&mut context, shape_of(flatter), CAPACITY / 10).expect("a simulation");
        let (farthest, distance) = rates.farthest();
        assert!(distance < 0.012, "{farthest}: {distance}; {:?}", rates.published());
        assert!(rates.are_in_order(), "{:?}", rates.published());
        let lfu = rates.of(PERFECT_LFU);
        assert!((whole - 0.005..whole).contains(&lfu), "{lfu} of at most {whole}");
        // The router's LFU is no reading of the published one.
        assert!(rates.of(ROUTER_LFU) < rates.of("ARC"), "{:?}", rates.rates);
    }

    #[test]
    fn the_printed_workload_cannot_give_the_published_rate_of_lfu() {
        let [_, _, lfu, ..] = published::WEB_HIT_RATES.map(Published::value);
        let published = WorkloadShape::published(WorkloadKind::Web);
        assert!(share_of_best(published, CAPACITY) < lfu - 0.01);
        assert!(share_of_best(WorkloadShape { alpha: FITTING_ALPHA, ..published }, CAPACITY) > lfu);
    }
}
