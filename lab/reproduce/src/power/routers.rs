//! Costs of packets in the naive and the optimised router (figures 6.7 and 6.8), and the case study (figures 6.9 and
//! 6.10).

use namehop_model::cache::BlockCosts;
use namehop_model::router::{Router, Traffic, interests_per_second};
use namehop_power::least_squares::least_of;
use namehop_power::server::{Load, Power, Server};
use namehop_power::servers;

use crate::ReproduceError;
use crate::caching::ARITHMETIC;
use crate::context::Context;
use crate::published::power::{
    DATA_BYTES, FIB_LOOKUP_BYTES, HIGHEST_GIGABITS, HIT_RATES, INSERTION_RATES, REDUCTION_PERCENT,
};
use crate::published::{BLOCKS, INSERTION_CYCLES, Published, block_rows};
use crate::report::{Cell, Chart, ChartKind, Column, Report, Row, Series};

/// Server of the case study.
const CASE_STUDY: &str = "e3-1220-xl710";
/// Limit of the figures by block.
const ONLY_IN_PICTURES: &str = "Cycles (C) and bytes (M) of the blocks are printed only in this figure, a picture \
    whose numbers are not in the text.";

/// Power of one device, or of all, in watts.
type WattsOf = fn(&Power) -> f64;

/// Report on a router's blocks: printed cycles of tables 5.1 and 5.2, cycles in the model, printed bytes.
fn blocks(
    router: &Router,
    place: usize,
    has_filter: bool,
    difference: String,
    limits: &[&str],
) -> Result<Report, ReproduceError> {
    let [b1, b3, b4, b5, b6, b7, b8, b9, b11] = BLOCKS;
    let [b10, _] = INSERTION_CYCLES;
    let [filter, .., fifo] = block_rows();
    let [b2, b12, b13] = if has_filter { filter.cycles } else { fifo.cycles };
    let printed = |label: &str, cycles: Published| Row::new(label, [cycles.into(), Cell::Empty, Cell::Empty]);
    let mut rows: Vec<Row> = [
        ("B1 receive an Interest", b1),
        ("B2 history update", b2),
        ("B3 Content Store lookup", b3),
        ("B4 compose Data", b4),
        ("B5 PIT insertion", b5),
        ("B6 FIB lookup", b6),
        ("B7 send an Interest", b7),
        ("B8 receive a Data", b8),
        ("B9 PIT lookup", b9),
        ("B10 Content Store insertion", b10),
        ("B11 send a Data", b11),
        ("B12 eviction", b12),
        ("B13 admission", b13),
    ]
    .map(|(label, cycles)| printed(label, cycles))
    .to_vec();
    rows[5].cells[2] = FIB_LOOKUP_BYTES[place].into();
    let (hit_rate, insertion_rate) = (HIT_RATES[place].value(), INSERTION_RATES[place].value());
    let computed = |label: &str, cycles: f64, bytes: f64| {
        Row::new(label, [Cell::Empty, Cell::Computed(cycles), Cell::Computed(bytes)])
    };
    let Router { cycles, bytes } = router;
    rows.push(computed(
        "an Interest that hits",
        cycles.average(1.0, insertion_rate),
        bytes.average(1.0, insertion_rate),
    ));
    rows.push(computed(
        "an Interest that misses, with its Data",
        cycles.average(0.0, insertion_rate),
        bytes.average(0.0, insertion_rate),
    ));
    rows.push(computed(
        &format!("average, hit rate {hit_rate}, insertion rate {insertion_rate}"),
        cycles.average(hit_rate, insertion_rate),
        bytes.average(hit_rate, insertion_rate),
    ));
    let columns = vec![
        Column::published("cycles (tables 5.1, 5.2)"),
        Column::computed("cycles"),
        Column::mixed("bytes of memory"),
    ];
    let report = Report::new(columns, rows, difference);
    Ok(report.with_conditions([ARITHMETIC.to_owned()]).with_limits(limits.iter().copied()))
}

/// Thesis figure 6.7.
pub(crate) fn figure_6_7(_: &mut Context<'_>) -> Result<Report, ReproduceError> {
    let difference = "Cycles are taken from table 5.1, measured under the same conditions (6.4.4), with its 329 cycles \
        for B10: with these, server 2 is fully busy at 58 Gbit/s, where the figures of the case study end, and with \
        the 188 of 5.1.2 at 62 Gbit/s. Bytes are those of table 3.1 by kind of packet, because bytes by block are \
        unknown. Letters after numbers: p published, c computed.";
    let limits =
        [ONLY_IN_PICTURES, "Packets of table 3.1 carry 128 bytes of content, those of the case study about 1000."];
    blocks(&Router::naive(), 0, false, difference.to_owned(), &limits)
}

/// Thesis figure 6.8.
pub(crate) fn figure_6_8(_: &mut Context<'_>) -> Result<Report, ReproduceError> {
    let with_filter = Router::with_filter().cycles.average(HIT_RATES[1].value(), INSERTION_RATES[1].value());
    let difference = format!(
        "Tables 5.1 and 5.2 alone give {with_filter:.0} cycles on average; table 5.1 adds up to the cycles of a router \
         without prefetching (3.3.2). The computed cycles subtract the savings of prefetching in figure 4.5: 28.85 % \
         of an Interest's blocks, 11.98 % of a Data's. Bytes are those of the naive router plus three useless bucket \
         prefetches of 64 bytes, which raise B6 from 89 to 281. Letters after numbers: p published, c computed."
    );
    let limits = [
        ONLY_IN_PICTURES,
        "That prefetching saves the same share of each block is an assumption; figure 4.5 was measured with \
         another cache policy.",
        "The bytes saved by inserting only 3 % of the Data are unknown and not subtracted.",
    ];
    blocks(&Router::optimised(), 1, true, difference, &limits)
}

/// The server of the case study under rates of Data packets in 10^9 bits per second.
struct CaseStudy {
    server: Server,
}

impl CaseStudy {
    fn new() -> Result<Self, ReproduceError> {
        let server = servers::published(CASE_STUDY).ok_or_else(|| ReproduceError::Unknown(CASE_STUDY.to_owned()))?;
        Ok(CaseStudy { server })
    }

    /// Load of a router; `place` selects the published rates: 0 of the naive router, 1 of the optimised one.
    fn load(router: &Router, place: usize, gigabits: f64) -> Load {
        router.load(&Traffic {
            interests_per_second: interests_per_second(gigabits * 1e9, DATA_BYTES.value()),
            hit_rate: HIT_RATES[place].value(),
            insertion_rate: INSERTION_RATES[place].value(),
        })
    }

    fn power(&self, router: &Router, place: usize, gigabits: f64) -> Option<Power> {
        self.server.power(&Self::load(router, place, gigabits))
    }

    /// Power of the naive router, of the naive router with Filter, and of the optimised router.
    fn powers(&self, gigabits: f64) -> [Option<Power>; 3] {
        [(Router::naive(), 0), (Router::with_filter(), 1), (Router::optimised(), 1)]
            .map(|(router, place)| self.power(&router, place, gigabits))
    }

    /// Power saved at the highest rate if the optimised router needs `cycles` per Interest, in per cent.
    fn saving_percent(&self, cycles: f64) -> f64 {
        let bytes = Router::optimised().bytes;
        let cycles = BlockCosts { always: cycles, ..BlockCosts::default() };
        let [naive, ..] = self.powers(HIGHEST_GIGABITS.value());
        let optimised = self.power(&Router { cycles, bytes }, 1, HIGHEST_GIGABITS.value());
        saving(naive, optimised, Power::total_watts).unwrap_or(f64::NAN)
    }
}

/// Power saved by `other` against `naive`, in per cent.
fn saving(naive: Option<Power>, other: Option<Power>, of: impl Fn(&Power) -> f64) -> Option<f64> {
    let (naive, other) = (of(&naive?), of(&other?));
    (naive > 0.0).then(|| 100.0 * (1.0 - other / naive))
}

fn computed(value: Option<f64>) -> Cell {
    value.map_or(Cell::Empty, Cell::Computed)
}

/// Thesis figure 6.9.
pub(crate) fn figure_6_9(_: &mut Context<'_>) -> Result<Report, ReproduceError> {
    let study = CaseStudy::new()?;
    let highest = HIGHEST_GIGABITS.value();
    let rates = [0.0, 5.0, 10.0, 15.0, 20.0, 25.0, 30.0, 35.0, 40.0, 45.0, 50.0, 55.0, highest];
    let row = |gigabits: f64| {
        let [naive, filter, optimised] = study.powers(gigabits);
        let total = |power: Option<Power>| computed(power.map(|power| power.total_watts()));
        let printed = if gigabits == highest { Cell::from(REDUCTION_PERCENT) } else { Cell::Empty };
        let less = |other| computed(saving(naive, other, Power::total_watts));
        let cells = [total(naive), total(filter), total(optimised), printed, less(filter), less(optimised)];
        Row::new(format!("{gigabits} Gbit/s"), cells)
    };
    let rows: Vec<Row> = rates.into_iter().map(row).collect();
    let chart = Chart {
        name: String::new(),
        title: "Power of the naive and the optimised router".to_owned(),
        y_label: "watts, computed".to_owned(),
        kind: ChartKind::Lines { x_label: "Data packets, Gbit/s".to_owned(), x: rates.to_vec() },
        series: vec![
            Series::of_column("naive", &rows, 0),
            Series::of_column("with Filter alone", &rows, 1),
            Series::of_column("optimised", &rows, 2),
        ],
    };
    let columns = vec![
        Column::computed("naive, W"),
        Column::computed("with Filter alone, W"),
        Column::computed("optimised, W"),
        Column::published("less, %"),
        Column::computed("less with Filter alone, %"),
        Column::computed("less when optimised, %"),
    ];
    let own = Router::optimised().cycles.average(HIT_RATES[1].value(), INSERTION_RATES[1].value());
    let needed = least_of((0.0, 2.0 * own), |cycles| (study.saving_percent(cycles) - REDUCTION_PERCENT.value()).abs());
    let difference = format!(
        "The printed saving does not follow from tables 5.1 and 5.2 alone. With the savings of prefetching (figure \
         4.5) it nearly does: the optimised router then needs {own:.0} cycles on average, and {needed:.0} would give \
         exactly the printed {} %. Its actual cycles by block are only in a picture (figure-6.8).",
        REDUCTION_PERCENT.value()
    );
    let limits = [
        "The curves of the figure are printed without numbers, except for the saving at the highest rate.",
        "Chassis: 34.20 W, see 'chassis-power'. Memory: bytes of table 3.1, see figure-6.7.",
    ];
    let report = Report::new(columns, rows, difference).with_charts([chart]);
    Ok(report.with_conditions([ARITHMETIC.to_owned()]).with_limits(limits))
}

/// Thesis figure 6.10.
pub(crate) fn figure_6_10(_: &mut Context<'_>) -> Result<Report, ReproduceError> {
    let study = CaseStudy::new()?;
    let powers = study.powers(HIGHEST_GIGABITS.value());
    let [naive, _, optimised] = powers;
    let devices: [(&str, WattsOf); 5] = [
        ("CPU", |power| power.cpu_watts),
        ("memory", |power| power.memory_watts),
        ("NIC", |power| power.nic_watts),
        ("chassis", |power| power.chassis_watts),
        ("all", Power::total_watts),
    ];
    let row = |(label, of): (&str, WattsOf)| {
        let [naive_watts, filter_watts, optimised_watts] = powers.map(|power| computed(power.as_ref().map(of)));
        let printed = if label == "all" { Cell::from(REDUCTION_PERCENT) } else { Cell::Empty };
        let less = computed(saving(naive, optimised, of));
        Row::new(label, [naive_watts, filter_watts, optimised_watts, printed, less])
    };
    let rows: Vec<Row> = devices.map(row).to_vec();
    let chart = Chart {
        name: String::new(),
        title: "Power by device at 58 Gbit/s".to_owned(),
        y_label: "watts, computed".to_owned(),
        kind: ChartKind::Bars { categories: devices[..4].iter().map(|(label, _)| (*label).to_owned()).collect() },
        series: ["naive", "with Filter alone", "optimised"]
            .iter()
            .enumerate()
            .map(|(column, name)| Series::of_column(*name, &rows[..4], column))
            .collect(),
    };
    let columns = vec![
        Column::computed("naive, W"),
        Column::computed("with Filter alone, W"),
        Column::computed("optimised, W"),
        Column::published("less, %"),
        Column::computed("less when optimised, %"),
    ];
    let difference = "The bars are printed without numbers. As the text says, the processor accounts for most of the \
        load-dependent power and for nearly all of the saving; memory and network cards need little.";
    let limits = [
        "Memory: bytes by kind of packet of table 3.1, which has shorter packets; bytes by block are only in a \
         picture.",
        "Two network cards share the packets, so together they need the energy of one.",
    ];
    let report = Report::new(columns, rows, difference).with_charts([chart]);
    Ok(report.with_conditions([ARITHMETIC.to_owned()]).with_limits(limits))
}

#[cfg(test)]
mod tests {
    use namehop_model::router::{FILTER_CYCLES, TABLE_5_1};

    use super::*;

    #[test]
    fn the_model_works_with_the_printed_blocks() {
        let [b1, b3, b4, b5, b6, b7, b8, b9, b11] = BLOCKS.map(Published::value);
        let b10 = INSERTION_CYCLES[0].value();
        assert_eq!(TABLE_5_1, [b1, b3, b4, b5, b6, b7, b8, b9, b10, b11]);
        let [history, _, admission] = block_rows()[0].cycles.map(Published::value);
        assert_eq!(FILTER_CYCLES, [history, admission]);
    }

    #[test]
    fn more_cycles_save_less() {
        let study = CaseStudy::new().expect("published");
        assert!(study.saving_percent(1000.0) > study.saving_percent(1200.0));
        let own = Router::optimised().cycles.average(HIT_RATES[1].value(), INSERTION_RATES[1].value());
        let [naive, _, optimised] = study.powers(58.0);
        let saved = saving(naive, optimised, Power::total_watts).expect("possible");
        assert!((study.saving_percent(own) - saved).abs() < 1e-9);
    }

    #[test]
    fn the_last_row_is_that_of_the_printed_saving() {
        let mut context = Context::new(crate::Settings::default(), crate::Instruments::default(), &|_| ());
        let report = figure_6_9(&mut context).expect("report");
        let [.., last] = &report.rows[..] else { panic!("the report has rows") };
        assert_eq!(last.cells[3].value(), Some(11.3));
        let [filter, optimised] = [4, 5].map(|column: usize| last.cells[column].value().expect("possible"));
        assert!((3.0..4.0).contains(&filter) && (10.0..10.3).contains(&optimised), "{filter} {optimised}");
        let devices = figure_6_10(&mut context).expect("report");
        for column in 0..3 {
            let watts: Vec<f64> = devices.rows.iter().filter_map(|row| row.cells[column].value()).collect();
            assert!((watts[..4].iter().sum::<f64>() - watts[4]).abs() < 1e-9);
            assert_eq!(Some(watts[4]), last.cells[column].value());
        }
    }
}
