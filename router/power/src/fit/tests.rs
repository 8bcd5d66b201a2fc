//! Fits of rows generated from a known server, exact and with errors, and of incomplete rows.

use proptest::prelude::*;

use super::*;
use crate::servers::{PUBLISHED, PublishedServer, THRESHOLD, published};

fn options(server: &Server) -> FitOptions {
    FitOptions {
        name: server.name.clone(),
        devices: server.cpu.devices,
        threshold: THRESHOLD,
        memory_joules_per_byte: server.memory_joules_per_byte,
        nic_joules_per_packet: server.nic_joules_per_packet,
    }
}

/// Generates rows from the server's model, each with an error of `error(line)` watts.
fn rows(server: &Server, error: impl Fn(u64) -> f64) -> Vec<Measurement> {
    let mut rows: Vec<Measurement> = Vec::new();
    let mut push = |active_cores, ghz, load, watts: f64| {
        let line = rows.len() as u64 + 2;
        let watts = watts + error(line);
        rows.push(Measurement {
            line,
            load,
            ghz,
            active_cores,
            watts,
            memory_bytes_per_second: 0.0,
            packets_per_second: 0.0,
        });
    };
    let loads = (1..=10).map(|tenths| f64::from(tenths) / 10.0);
    let highest = server.cpu.p_states.last().expect("some").ghz;
    push(0, highest, 0.0, server.chassis_watts);
    for state in &server.cpu.p_states {
        for load in loads.clone() {
            push(1, state.ghz, load, server.chassis_watts + state.watts * load.powf(state.sigma));
        }
    }
    let mut busy = server.chassis_watts + server.cpu.p_states.last().expect("some").watts;
    for (further, cores) in server.cpu.further_cores.iter().zip(2..) {
        for load in loads.clone() {
            push(cores, highest, load, busy + further.watts * load.powf(further.sigma));
        }
        busy += further.watts;
    }
    rows
}

/// The server with the exact powers of equation 6.8; the printed ones are rounded.
fn on_its_curve(published: &PublishedServer) -> Server {
    let mut server = published.server();
    let highest = server.cpu.p_states.last().expect("some").ghz;
    for state in &mut server.cpu.p_states {
        state.watts = published.curve().watts(state.ghz / highest);
    }
    server
}

fn assert_close(found: &Server, expected: &Server, tolerance: f64) {
    assert!((found.chassis_watts - expected.chassis_watts).abs() < tolerance);
    for (found, expected) in found.cpu.p_states.iter().zip(&expected.cpu.p_states) {
        assert_eq!(found.ghz, expected.ghz);
        assert!((found.watts - expected.watts).abs() < tolerance, "{found:?} {expected:?}");
        assert!((found.sigma - expected.sigma).abs() < tolerance, "{found:?} {expected:?}");
    }
    for (found, expected) in found.cpu.further_cores.iter().zip(&expected.cpu.further_cores) {
        assert!((found.watts - expected.watts).abs() < tolerance, "{found:?} {expected:?}");
        assert!((found.sigma - expected.sigma).abs() < tolerance, "{found:?} {expected:?}");
    }
}

#[test]
fn rows_of_a_published_server_give_its_parameters_back() {
    for published in PUBLISHED {
        let server = on_its_curve(&published);
        let fit = fit(&rows(&server, |_| 0.0), &options(&server)).expect("complete");
        assert_close(&fit.server, &server, 0.005);
        assert_eq!((fit.idle_rows, fit.memory, fit.nic), (1, None, None));
        assert!(fit.cores.iter().all(|core| core.r_squared > 0.9999 && core.rows == 10), "{fit:?}");
        let curve = fit.frequency_curve.expect("at least three frequencies");
        assert!(curve.r_squared > 0.9999, "{curve:?}");
        if published.name == "itanium-9520" {
            // Its table's ν, not the 4.22 of the text.
            assert!((curve.curve.nu - 2.58).abs() < 0.01 && curve.curve.minimum_watts < 0.01, "{curve:?}");
        }
        assert_eq!(Server::from_toml(&fit.server.to_toml(&[])).expect("valid"), fit.server);
    }
}

#[test]
fn errors_of_measurement_lower_the_coefficient_of_determination() {
    let server = on_its_curve(&PUBLISHED[1]);
    let noisy =
        fit(&rows(&server, |line| if line % 2 == 0 { 0.3 } else { -0.3 }), &options(&server)).expect("complete");
    assert_close(&noisy.server, &server, 0.7);
    assert!(noisy.cores.iter().all(|core| core.r_squared > 0.5 && core.r_squared < 0.999), "{noisy:?}");
}

#[test]
fn energies_follow_from_rows_with_rates() {
    let server = on_its_curve(&PUBLISHED[1]);
    let mut all = rows(&server, |_| 0.0);
    let busy = *all.iter().rfind(|row| row.active_cores == 1 && row.load == 1.0).expect("some");
    for giga in 1..=5 {
        let rate = f64::from(giga) * 1e9;
        all.push(Measurement { memory_bytes_per_second: rate, watts: busy.watts + 0.61e-9 * rate, line: 200, ..busy });
    }
    for million in 1..=3 {
        let (packets, bytes) = (f64::from(million) * 1e5, f64::from(million) * 1e8);
        let watts = busy.watts + 1.26e-5 * packets + 0.61e-9 * bytes;
        let row = Measurement { packets_per_second: packets, memory_bytes_per_second: bytes, watts, line: 300, ..busy };
        all.push(row);
    }
    let found = fit(&all, &FitOptions { memory_joules_per_byte: 0.0, nic_joules_per_packet: 0.0, ..options(&server) });
    let found = found.expect("complete");
    assert!((found.server.memory_joules_per_byte / 0.61e-9 - 1.0).abs() < 0.01, "{:?}", found.memory);
    assert!((found.server.nic_joules_per_packet / 1.26e-5 - 1.0).abs() < 0.01, "{:?}", found.nic);
    assert!(found.memory.expect("fitted").r_squared > 0.999 && found.nic.expect("fitted").r_squared > 0.999);
}

#[test]
fn one_frequency_is_taken_as_measured() {
    let mut server = published("e3-1220").expect("published");
    server.cpu.p_states.drain(..7);
    let found = fit(&rows(&server, |_| 0.0), &options(&server)).expect("complete");
    assert_eq!(found.frequency_curve, None);
    assert_close(&found.server, &server, 1e-6);
}

#[test]
fn what_is_missing_is_said() {
    let server = on_its_curve(&PUBLISHED[1]);
    let all = rows(&server, |_| 0.0);
    let without = |remove: fn(&Measurement) -> bool| -> Vec<Measurement> {
        all.iter().filter(|row| !remove(row)).copied().collect()
    };
    let with = |change: fn(&mut Measurement)| -> Vec<Measurement> {
        let mut rows = all.clone();
        rows.push(Measurement { line: 999, ..all[all.len() - 1] });
        change(rows.last_mut().expect("some"));
        rows
    };
    for (rows, complaint) in [
        (Vec::new(), "no idle row"),
        (without(|row| row.active_cores == 0), "no idle row"),
        (without(|row| row.active_cores == 1), "no row with one active core"),
        (without(|row| row.active_cores == 2), "3 cores are active here, but there are no rows with 2"),
        (
            without(|row| row.ghz == 1.8 && row.load == 1.0),
            "active_cores 1 at 1.8 GHz (from line 13): needs a row with load 1",
        ),
        (without(|row| row.active_cores == 4 && row.load < 0.95), "there are 1 and 0"),
        (with(|row| row.ghz = 1.6), "line 999: 4 cores are active at 1.6 GHz"),
        (with(|row| row.packets_per_second = 1.0), "line 999: packets_per_second needs at least 2 rows"),
        (with(|row| row.memory_bytes_per_second = 1.0), "line 999: memory_bytes_per_second needs at least 2 rows"),
    ] {
        let message = fit(&rows, &options(&server)).expect_err(complaint).to_string();
        assert!(message.contains(complaint), "{message}");
    }
    let mut unknown = with(|row| (row.packets_per_second, row.active_cores) = (1.0, 9));
    unknown.push(*unknown.last().expect("some"));
    let message = fit(&unknown, &options(&server)).expect_err("unknown").to_string();
    assert!(message.starts_with("line 999: 9 active cores at 3.1 GHz are not among the rows"), "{message}");
    let mut falling = with(|row| (row.packets_per_second, row.watts) = (1.0, 1.0));
    falling.push(*falling.last().expect("some"));
    let message = fit(&falling, &options(&server)).expect_err("negative").to_string();
    assert!(message.starts_with("line 999: watts do not grow with packets_per_second"), "{message}");
    let cold: Vec<Measurement> = all.iter().map(|row| Measurement { watts: 30.0, ..*row }).collect();
    let message = fit(&cold, &options(&server)).expect_err("a core without power must be refused").to_string();
    assert!(message.contains("this core adds 0.00 W"), "{message}");
    assert!(fit(&all, &FitOptions { devices: 0, ..options(&server) }).is_err());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn any_rows_are_answered(
        rows in prop::collection::vec((0..4_u32, 1..4_u32, 0..=4_u32, 1.0..100.0_f64, 0..3_u32, 0..3_u32), 0..60)
    ) {
        let rows: Vec<Measurement> = rows
            .into_iter()
            .zip(2..)
            .map(|((active_cores, ghz, quarters, watts, memory, packets), line)| Measurement {
                line,
                load: f64::from(quarters) / 4.0,
                ghz: f64::from(ghz),
                active_cores,
                watts,
                memory_bytes_per_second: f64::from(memory.saturating_sub(1)),
                packets_per_second: f64::from(packets.saturating_sub(1)),
            })
            .collect();
        let server = published("e3-1220").expect("published");
        if let Ok(fit) = fit(&rows, &options(&server)) {
            prop_assert!(fit.server.check().is_ok());
        }
    }

    /// No other σ is closer to the rows.
    #[test]
    fn sigma_is_the_best(
        sigma in 0.05..1.5_f64,
        errors in prop::collection::vec(-0.5..0.5_f64, 9),
        other in 0.02..1.9_f64,
    ) {
        let rows: Vec<Measurement> = (1..=10)
            .map(|tenths| {
                let load = f64::from(tenths) / 10.0;
                let error = errors.get(tenths as usize - 1).copied().unwrap_or(0.0);
                let watts = 10.0 * load.powf(sigma) + error;
                Measurement {
                    line: 1,
                    load,
                    ghz: 1.0,
                    active_cores: 1,
                    watts,
                    memory_bytes_per_second: 0.0,
                    packets_per_second: 0.0,
                }
            })
            .collect();
        let group = Group { active_cores: 1, ghz: 1.0, rows: rows.iter().collect() };
        let error = |sigma: f64| -> f64 {
            rows.iter().map(|row| (row.watts - 10.0 * row.load.powf(sigma)).powi(2)).sum()
        };
        let found = group.fit(10.0, 0.0).sigma;
        prop_assert!(error(found) <= error(other) + 1e-9, "{} {}", found, other);
    }
}
