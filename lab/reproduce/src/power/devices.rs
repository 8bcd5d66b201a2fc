//! Power of chassis (6.3.2), memory (figure 6.5) and network cards (figure 6.6).

use namehop_power::servers::PublishedServer;
use namehop_power::{memory, nic};

use super::measured_servers;
use crate::ReproduceError;
use crate::caching::ARITHMETIC;
use crate::context::Context;
use crate::published::power::{MEMORY_NANOJOULES, NIC_MICROJOULES, ServerText};
use crate::report::{Cell, Chart, ChartKind, Column, Report, Row, Series};

/// Bits per second of the measured network card.
const X540_BITS_PER_SECOND: f64 = 10e9;
/// Bits of the packets in that measurement (6.3.5).
const PACKET_BITS: f64 = 8.0 * 1500.0;

/// Thesis 6.3.2.
pub(crate) fn chassis(_: &mut Context<'_>) -> Result<Report, ReproduceError> {
    let row = |(server, text): (PublishedServer, ServerText)| {
        let [low, high] = text.chassis_interval_watts;
        Row::new(
            text.processor,
            [
                text.chassis_mean_watts.into(),
                low.into(),
                high.into(),
                text.chassis_chosen_watts.into(),
                Cell::Computed(server.chassis_watts),
            ],
        )
    };
    let columns = vec![
        Column::published("mean, W"),
        Column::published("95 % from, W"),
        Column::published("to, W"),
        Column::published("chosen, W"),
        Column::computed("in the model, W"),
    ];
    let difference = "Columns are in the order of the text, which contradicts itself: the means of servers 1 and 2 lie \
        in each other's intervals, the chosen values follow the order of the intervals, and 68.90 W lies in neither, \
        where 68.43 W was the mean. The text calls server 2 the most power-efficient one, it has one processor instead \
        of two, and only 34.20 W brings the model close to the printed saving of the case study (figure-6.9). So the \
        order of the means is assumed to be correct, and the model uses it.";
    let limits = ["Chassis power includes all idle devices."];
    let report = Report::new(columns, measured_servers().map(row).collect(), difference);
    Ok(report.with_conditions([ARITHMETIC.to_owned()]).with_limits(limits))
}

/// Thesis figure 6.5.
pub(crate) fn figure_6_5(_: &mut Context<'_>) -> Result<Report, ReproduceError> {
    let gigabytes: Vec<f64> = (0..=10).map(f64::from).collect();
    let watts = |rate: f64| memory::watts(memory::DDR3_JOULES_PER_BYTE, rate * 1e9);
    let mut rows: Vec<Row> = gigabytes
        .iter()
        .map(|&rate| Row::new(format!("{rate} GB/s, W"), [Cell::Empty, Cell::Computed(watts(rate))]))
        .collect();
    let chart = Chart {
        name: String::new(),
        title: "Memory by rate of access, equation 6.9".to_owned(),
        y_label: "watts, computed".to_owned(),
        kind: ChartKind::Lines { x_label: "10^9 bytes per second".to_owned(), x: gigabytes },
        series: vec![Series::of_column("DDR3, server 2", &rows, 1)],
    };
    rows.push(Row::new("per byte, nJ", [MEMORY_NANOJOULES.into(), Cell::Empty]));
    let difference =
        "The figure is printed without numbers; its text prints the energy per byte. Its R² is 'close to 1'.";
    let limits = [
        "The measured points and their highest rate are only in the published picture.",
        "The energy is for reading; writing needs up to 8 % more.",
    ];
    let columns = vec![Column::published("memory"), Column::computed("memory")];
    let report = Report::new(columns, rows, difference).with_charts([chart]);
    Ok(report.with_conditions([ARITHMETIC.to_owned()]).with_limits(limits))
}

/// Thesis figure 6.6.
pub(crate) fn figure_6_6(_: &mut Context<'_>) -> Result<Report, ReproduceError> {
    let most = X540_BITS_PER_SECOND / PACKET_BITS / 1e3;
    let kilopackets: Vec<f64> = (0..=8).map(|eighths| (most * f64::from(eighths) / 8.0).round()).collect();
    let cards = [nic::X540_JOULES_PER_PACKET, nic::XL710_JOULES_PER_PACKET];
    let row = |&rate: &f64| {
        let [x540, xl710] = cards.map(|joules| Cell::Computed(nic::watts(joules, rate * 1e3)));
        Row::new(format!("{rate} kpps, W"), [Cell::Empty, x540, Cell::Empty, xl710])
    };
    let mut rows: Vec<Row> = kilopackets.iter().map(row).collect();
    let chart = Chart {
        name: String::new(),
        title: "Network card by packets, equation 6.10".to_owned(),
        y_label: "watts, computed".to_owned(),
        kind: ChartKind::Lines { x_label: "10^3 packets per second".to_owned(), x: kilopackets },
        series: vec![Series::of_column("X540-T2", &rows, 1), Series::of_column("XL710", &rows, 3)],
    };
    let [x540, xl710] = NIC_MICROJOULES;
    rows.push(Row::new("per packet, µJ", [x540.into(), Cell::Empty, xl710.into(), Cell::Empty]));
    let columns = vec![
        Column::published("X540-T2"),
        Column::computed("X540-T2"),
        Column::published("XL710"),
        Column::computed("XL710"),
    ];
    let difference = "The figure, of the X540 alone, is printed without numbers; its text prints the energy per \
        packet. Rows go up to 10 Gbit/s in packets of 1500 bytes, as in the measurement.";
    let limits = [
        "The measured points are only in the published picture.",
        "The energy of the XL710 was not measured: it is the highest power of its data sheet at its highest rate.",
    ];
    let report = Report::new(columns, rows, difference).with_charts([chart]);
    Ok(report.with_conditions([ARITHMETIC.to_owned()]).with_limits(limits))
}
