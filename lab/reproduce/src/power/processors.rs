//! Power of CPUs: tables 6.1 to 6.3, figures 6.1 to 6.4 and the lines of 6.3.3.

use namehop_power::cpu::FrequencyCurve;
use namehop_power::least_squares::r_squared;
use namehop_power::servers::PublishedServer;

use super::measured_servers;
use crate::ReproduceError;
use crate::caching::ARITHMETIC;
use crate::context::Context;
use crate::published::Published;
use crate::published::power::{PublishedCore, SERVERS, ServerText};
use crate::report::{Cell, Chart, ChartKind, Column, Point, Report, Row, Series};

/// Loads of one core at the points of curves.
const LOADS: [f64; 11] = [0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0];
/// Limit of all curves.
const NO_SAMPLES: &str =
    "The measured points are only in the published picture; the curves use the printed parameters.";

/// Distance below which a value counts as regenerated, in watts. Parameters are printed with two decimals, and the
/// E5620's frequencies have an error of 3 MHz.
const CLOSE_WATTS: f64 = 0.03;

fn table(number: &str) -> Result<Report, ReproduceError> {
    let server_and_text = measured_servers().find(|(server, _)| server.table == number);
    let Some((server, text)) = server_and_text else { return Err(ReproduceError::Unknown(format!("table-{number}"))) };
    let curve = server.curve();
    let of_text = FrequencyCurve { nu: text.nu.value(), ..curve };
    let highest_ghz = server.p_states.last().map_or(0.0, |state| state.ghz);
    let mut far = [0, 0];
    let rows: Vec<Row> = PublishedCore::of(&server)
        .into_iter()
        .map(|core| {
            let PublishedCore { active_cores, ghz, sigma, watts } = core;
            let computed = [curve, of_text].map(|curve| curve.watts(ghz / highest_ghz));
            if active_cores == 1 {
                for (far, computed) in far.iter_mut().zip(computed) {
                    *far += usize::from((computed - watts.value()).abs() > CLOSE_WATTS);
                }
            }
            let cells = computed.map(|watts| if active_cores == 1 { Cell::Computed(watts) } else { Cell::Empty });
            let [of_table, of_text] = cells;
            Row::new(format!("n = {active_cores}, {ghz} GHz"), [sigma.into(), watts.into(), of_table, of_text])
        })
        .collect();
    let columns = vec![
        Column::published("σ"),
        Column::published("Φ, W"),
        Column::computed(format!("Φ by equation 6.8, ν = {} (table), W", server.nu)),
        Column::computed(format!("Φ by equation 6.8, ν = {} (text), W", text.nu.value())),
    ];
    let frequencies = server.p_states.len();
    let [near_of_table, near_of_text] = far.map(|far| frequencies - far);
    let mut difference = format!(
        "With the table's ν and Φ_amin = {} W, equation 6.8 gives the printed Φ within {CLOSE_WATTS} W at \
         {near_of_table} of {frequencies} frequencies: with one active core the table holds values of the equation, \
         not measured ones.",
        server.minimum_watts
    );
    difference.push_str(&if server.nu == text.nu.value() {
        " The text of 6.3.3 prints the same ν.".to_owned()
    } else {
        format!(
            " The text of 6.3.3 prints another ν, {}, with which {near_of_text} of {frequencies} frequencies match. \
             The table's ν was used in the thesis, and the model uses it.",
            text.nu.value()
        )
    });
    let limits = [
        "For two and more active cores (n) there is no equation for Φ: it was measured at the highest frequency. The \
         data to which σ was fitted are only in the published pictures.",
    ];
    Ok(Report::new(columns, rows, difference).with_conditions([ARITHMETIC.to_owned()]).with_limits(limits))
}

/// Thesis table 6.1.
pub(crate) fn table_6_1(_: &mut Context<'_>) -> Result<Report, ReproduceError> {
    table("6.1")
}

/// Thesis table 6.2.
pub(crate) fn table_6_2(_: &mut Context<'_>) -> Result<Report, ReproduceError> {
    table("6.2")
}

/// Thesis table 6.3.
pub(crate) fn table_6_3(_: &mut Context<'_>) -> Result<Report, ReproduceError> {
    table("6.3")
}

/// Table and chart of server 1's curves over the load of the last active core, one column per curve.
fn curves(curves: &[(String, f64, f64)], title: &str, difference: &str) -> Report {
    let watts = |load: f64, &(_, watts, sigma): &(String, f64, f64)| Cell::Computed(watts * load.powf(sigma));
    let row =
        |load: f64| Row::new(format!("load {load}"), curves.iter().map(|curve| watts(load, curve)).collect::<Vec<_>>());
    let rows: Vec<Row> = LOADS.into_iter().map(row).collect();
    let columns = curves.iter().map(|(name, ..)| Column::computed(format!("{name}, W"))).collect();
    let series = curves.iter().enumerate().map(|(column, (name, ..))| Series::of_column(name.clone(), &rows, column));
    let chart = Chart {
        name: String::new(),
        title: title.to_owned(),
        y_label: "watts, computed".to_owned(),
        kind: ChartKind::Lines { x_label: "load of the core, of its capacity".to_owned(), x: LOADS.to_vec() },
        series: series.collect(),
    };
    let report = Report::new(columns, rows, difference).with_charts([chart]);
    report.with_conditions([ARITHMETIC.to_owned()]).with_limits([NO_SAMPLES])
}

fn server_1() -> Option<PublishedServer> {
    measured_servers().map(|(server, _)| server).next()
}

/// Thesis figure 6.1.
pub(crate) fn figure_6_1(_: &mut Context<'_>) -> Result<Report, ReproduceError> {
    let states = server_1().map_or(&[][..], |server| server.p_states);
    let states: Vec<_> = states.iter().map(|state| (format!("{} GHz", state.ghz), state.watts, state.sigma)).collect();
    let difference =
        "The figure has one panel for each frequency, without numbers; the curves are equation 6.7 with table 6.1.";
    Ok(curves(&states, "One active core of the E5620, by frequency", difference))
}

/// Thesis figure 6.2.
pub(crate) fn figure_6_2(_: &mut Context<'_>) -> Result<Report, ReproduceError> {
    let cores = server_1().map_or(&[][..], |server| server.further_cores);
    let cores = cores.iter().zip(2..).map(|(core, n)| (format!("core {n}"), core.watts, core.sigma));
    let difference = "The figure has one panel for each number of active cores, without numbers; the curves are what \
                      the last core adds by equation 6.7 with table 6.1.";
    Ok(curves(&cores.collect::<Vec<_>>(), "Power that the last of several active cores of the E5620 adds", difference))
}

/// R² of the fits; thesis 6.3.3.
pub(crate) fn fits(_: &mut Context<'_>) -> Result<Report, ReproduceError> {
    let mut rows = Vec::new();
    for (server, text) in measured_servers() {
        let ServerText { processor, r_squared_by_frequency, r_squared_by_cores, .. } = text;
        let by_frequency = server.p_states.iter().map(|state| format!("{} GHz", state.ghz));
        for (label, place) in by_frequency.zip(0..) {
            let cell = Cell::from(r_squared_by_frequency.get(place).copied());
            rows.push(Row::new(format!("{processor}, n = 1, {label}"), [cell]));
        }
        for (place, n) in (0..server.further_cores.len()).zip(2..) {
            let cell = Cell::from(r_squared_by_cores.get(place).copied());
            rows.push(Row::new(format!("{processor}, n = {n}"), [cell]));
        }
    }
    let difference = "Nothing can be computed: R² needs the measured points, which are only in pictures, as is R² of \
        server 1. The thesis prints R² without squares, 1 - Σ(y - m) / Σ(y - ȳ), whose second sum is always 0; squares \
        are meant. 'namehop power fit' computes R² for measurements of another server.";
    let limits = ["These are the fits of σ; the fit of equation 6.8 is in figure-6.3, that of lines in linear-power."];
    let report = Report::new(vec![Column::published("R²")], rows, difference);
    Ok(report.with_conditions([ARITHMETIC.to_owned()]).with_limits(limits))
}

/// Thesis figure 6.3.
pub(crate) fn figure_6_3(_: &mut Context<'_>) -> Result<Report, ReproduceError> {
    let shares: Vec<f64> = (5..=10).map(|tenths| f64::from(tenths) / 10.0).collect();
    let servers: Vec<_> = measured_servers().collect();
    let row = |&share: &f64| {
        let watts = servers.iter().map(|(server, _)| Cell::Computed(server.curve().watts(share)));
        Row::new(format!("Φ at {share} of the highest frequency, W"), watts.collect::<Vec<_>>())
    };
    let mut rows: Vec<Row> = shares.iter().map(row).collect();
    let series = servers.iter().enumerate().map(|(column, (_, text))| Series::of_column(text.processor, &rows, column));
    let chart = Chart {
        name: String::new(),
        title: "One busy core by frequency, equation 6.8".to_owned(),
        y_label: "watts, computed".to_owned(),
        kind: ChartKind::Lines { x_label: "frequency, of the highest".to_owned(), x: shares.clone() },
        series: series.collect(),
    };
    let published = servers.iter().map(|(_, text)| Cell::from(text.r_squared_of_curve));
    rows.push(Row::new("R² of the measured powers", published.collect::<Vec<_>>()));
    let own = servers.iter().map(|(server, _)| {
        let highest_ghz = server.p_states.last().map_or(0.0, |state| state.ghz);
        let pairs = server.p_states.iter().map(|state| (state.watts, server.curve().watts(state.ghz / highest_ghz)));
        Cell::Computed(r_squared(&pairs.collect::<Vec<_>>()))
    });
    rows.push(Row::new("R² of the printed powers", own.collect::<Vec<_>>()));
    let columns = servers.iter().map(|(_, text)| Column::mixed(text.processor)).collect();
    let difference = "Tables 6.1 to 6.3 print results of equation 6.8, so R² of their powers is nearly 1. The measured \
        powers, to which the printed R² belongs, are only in pictures. Letters after numbers: p published, c \
        computed.";
    let report = Report::new(columns, rows, difference).with_charts([chart]);
    Ok(report.with_conditions([ARITHMETIC.to_owned()]).with_limits([NO_SAMPLES]))
}

/// Thesis figure 6.4.
pub(crate) fn figure_6_4(_: &mut Context<'_>) -> Result<Report, ReproduceError> {
    let loads: Vec<f64> = (0..=32).map(|eighths| f64::from(eighths) / 8.0).collect();
    let cpus: Vec<_> = measured_servers().map(|(server, text)| (server.server().cpu, text.processor)).collect();
    let row = |&load: &f64| {
        let watts = cpus.iter().map(|(cpu, _)| cpu.watts(load * cpu.highest_hz()).map_or(Cell::Empty, Cell::Computed));
        Row::new(format!("{load} cores"), watts.collect::<Vec<_>>())
    };
    let rows: Vec<Row> = loads.iter().map(row).collect();
    let mut series: Vec<Series> =
        cpus.iter().enumerate().map(|(column, (_, name))| Series::of_column(*name, &rows, column)).collect();
    for ServerText { processor, line: [slope, intercept, _], .. } in SERVERS {
        let points = loads.iter().map(|load| {
            let watts = slope.value() * load + intercept.value();
            (*load >= 1.0).then_some(Point::from(watts))
        });
        series.push(Series { name: format!("{processor}, printed line"), points: points.collect() });
    }
    let chart = Chart {
        name: String::new(),
        title: "Power of one processor by load, equation 6.7".to_owned(),
        y_label: "watts, computed".to_owned(),
        kind: ChartKind::Lines {
            x_label: "load in cores, c / h of the highest frequency".to_owned(),
            x: loads.clone(),
        },
        series,
    };
    let columns = cpus.iter().map(|(_, name)| Column::computed(format!("{name}, W"))).collect();
    let difference = "The figure is printed without numbers; 'linear-power' compares the lines that its text prints.";
    let limits =
        ["The load fills core after core, with as few active cores as possible and the frequency threshold 0.8."];
    let report = Report::new(columns, rows, difference).with_charts([chart]);
    Ok(report.with_conditions([ARITHMETIC.to_owned()]).with_limits(limits))
}

/// The lines of 6.3.3.
pub(crate) fn linear(_: &mut Context<'_>) -> Result<Report, ReproduceError> {
    let mut furthest = 0.0_f64;
    let rows: Vec<Row> = measured_servers()
        .map(|(server, ServerText { processor, line: [slope, intercept, r_squared], .. })| {
            let line = server.server().cpu.linear_approximation();
            for (printed, computed) in [(slope, line.slope), (intercept, line.intercept)] {
                furthest = furthest.max(100.0 * (computed / Published::value(printed) - 1.0).abs());
            }
            Row::new(
                processor,
                [
                    slope.into(),
                    Cell::Computed(line.slope),
                    intercept.into(),
                    Cell::Computed(line.intercept),
                    r_squared.into(),
                    Cell::Computed(line.r_squared),
                ],
            )
        })
        .collect();
    let columns = vec![
        Column::published("slope, W per core"),
        Column::computed("slope, W per core"),
        Column::published("intercept, W"),
        Column::computed("intercept, W"),
        Column::published("R²"),
        Column::computed("R²"),
    ];
    let difference = format!(
        "The thesis does not print the loads to which it fits its lines. 'Two or more active cores', in steps of a \
         quarter of a core, comes closest: at most {furthest:.1} % away. Lines over all loads from 0 on would have a \
         far lower R², because the first core costs most."
    );
    let limits = ["Lines are for one processor with all its cores; below one busy core they are inaccurate."];
    Ok(Report::new(columns, rows, difference).with_conditions([ARITHMETIC.to_owned()]).with_limits(limits))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_third_table_has_another_shape_than_the_text() {
        for (number, near_of_table, other) in
            [("6.1", "7 of 7", None), ("6.2", "8 of 8", None), ("6.3", "3 of 3", Some("1 of 3"))]
        {
            let difference = table(number).expect("published").difference;
            assert!(difference.contains(near_of_table), "{difference}");
            match other {
                Some(other) => assert!(difference.contains("4.22") && difference.contains(other), "{difference}"),
                None => assert!(difference.contains("the same ν"), "{difference}"),
            }
        }
        assert!(table("6.4").is_err());
    }

    #[test]
    fn curves_end_at_the_printed_power() {
        let states = [("1.6 GHz".to_owned(), 24.33, 0.30)];
        let report = curves(&states, "", "x.");
        let values: Vec<f64> = report.rows.iter().filter_map(|row| row.cells[0].value()).collect();
        assert_eq!((values[0], values[10]), (0.0, 24.33));
        assert!((values[5] - 24.33 * 0.5_f64.powf(0.3)).abs() < 1e-12);
    }
}
