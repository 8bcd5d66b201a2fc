//! A meter with simulated counters, and without counters.

use std::fs;

use namehop_power::servers;

use super::super::powercap::tests::FakePowercap;
use super::*;

fn seconds(start: Instant, seconds: u64) -> Instant {
    start + Duration::from_secs(seconds)
}

fn work(busy_s: f64, packets: u64) -> Work {
    Work { busy_s, packets }
}

#[test]
fn power_and_energy_follow_from_the_counters() {
    let fake = FakePowercap::new();
    fake.zone("intel-rapl:0", "package-0", "100000000", "99000000");
    fake.zone("intel-rapl:0:1", "dram", "100000000", "5");
    let start = Instant::now();
    let mut meter = Meter::new(fake.root(), None).expect("counters");
    assert_eq!(meter.look(start, work(0.0, 100)), None, "the first reading has no predecessor");
    // 12 J with a wrap in between, and 3 J, in 2 s with 100,000 packets.
    fake.zone("intel-rapl:0", "package-0", "100000000", "11000000");
    fake.zone("intel-rapl:0:1", "dram", "100000000", "3000005");
    let status = meter.look(seconds(start, 2), work(1.0, 100_100)).expect("measured");
    let part = |name: &str, milliwatts, millijoules| PowerPart { name: name.to_owned(), milliwatts, millijoules };
    assert_eq!(status.estimated_with, None);
    assert_eq!(status.nanojoules_per_packet, Some(150_000));
    assert_eq!(status.parts, [part("dram-0", 1500, 3000), part("package-0", 6000, 12_000)]);
    assert_eq!(status.milliwatts(), 7500);
    // With no energy used and no packets, totals stay.
    let status = meter.look(seconds(start, 3), work(1.0, 100_100)).expect("measured");
    assert_eq!(status.nanojoules_per_packet, None);
    assert_eq!(status.parts, [part("dram-0", 0, 3000), part("package-0", 0, 12_000)]);
}

#[test]
fn counters_that_vanish_are_looked_for_and_estimated_meanwhile() {
    let fake = FakePowercap::new();
    let energy = |microjoules: u64| fake.zone("intel-rapl:0", "package-0", "1000000000", &microjoules.to_string());
    energy(0);
    let start = Instant::now();
    let mut meter = Meter::new(fake.root(), servers::published("e3-1220")).expect("counters");
    assert_eq!(meter.look(start, work(0.0, 0)), None);
    energy(1_000_000);
    assert_eq!(meter.look(seconds(start, 1), work(0.0, 0)).expect("measured").estimated_with, None);
    fake.remove("intel-rapl:0");
    let status = meter.look(seconds(start, 2), work(0.0, 0)).expect("estimated");
    assert_eq!((status.estimated_with.as_deref(), status.milliwatts()), (Some("e3-1220"), 34_200));
    energy(5_000_000);
    let mut found = 0;
    for second in 3..100 {
        energy(5_000_000 + second * 2_000_000);
        let status = meter.look(seconds(start, second), work(0.0, 0)).expect("known");
        if status.estimated_with.is_none() {
            found += 1;
            // Energy used while there were no counters is not counted; totals continue.
            assert_eq!((status.parts.len(), status.parts[0].milliwatts), (1, 2_000), "{second}");
            assert_eq!(status.parts[0].millijoules, 1000 + found * 2_000);
        }
    }
    assert!(found > 30, "{found}");
}

#[test]
fn without_counters_power_is_estimated_only_with_a_description() {
    let fake = FakePowercap::new();
    assert!(Meter::new(fake.root(), None).is_none());
    let mut meter = Meter::new(fake.root(), servers::published("e3-1220")).expect("a description");
    let start = Instant::now();
    assert_eq!(meter.look(start, work(5.0, 1000)), None);
    let status = meter.look(seconds(start, 1), work(6.0, 2000)).expect("estimated");
    let names: Vec<&str> = status.parts.iter().map(|part| part.name.as_str()).collect();
    assert_eq!(names, ["cpu", "memory", "nic", "chassis"]);
    // One core, 34.2 W, 1000 packets of 12.6 µJ and 862.5 bytes of 0.61 nJ.
    assert_eq!((status.parts[0].milliwatts, status.parts[2].milliwatts, status.parts[1].milliwatts), (10_400, 13, 1));
    assert_eq!(status.nanojoules_per_packet, Some((10_400_000 + 34_200_000 + 12_600 + 526) * 1000 / 1000));
}

#[test]
fn counters_that_cannot_be_read_are_as_none() {
    let fake = FakePowercap::new();
    fake.zone("intel-rapl:0", "package-0", "1000", "1");
    let counter = fake.root().join("intel-rapl:0/energy_uj");
    fs::remove_file(&counter).expect("removed");
    fs::create_dir(&counter).expect("made");
    assert!(Meter::new(fake.root(), None).is_none());
    assert!(Meter::new(fake.root(), servers::published("e5620")).is_some());
}

#[test]
fn a_missing_permission_has_a_remedy() {
    let fake = FakePowercap::new();
    fake.zone("intel-rapl:0", "package-0", "1000", "x");
    let mut error = Powercap::find(fake.root()).expect_err("a counter that is not a number is an error");
    assert_eq!(remedy(&error), "");
    error.source = io::Error::from(io::ErrorKind::PermissionDenied);
    assert!(remedy(&error).contains("docs/power.md"));
}

#[test]
fn times_that_say_nothing_are_passed_over() {
    let fake = FakePowercap::new();
    fake.zone("intel-rapl:0", "package-0", "1000000000", "0");
    let mut meter = Meter::new(fake.root(), None).expect("counters");
    let start = Instant::now();
    assert_eq!(meter.look(start, work(0.0, 0)), None);
    assert_eq!(meter.look(start, work(0.0, 0)), None, "no time has passed");
    fake.zone("intel-rapl:0", "package-0", "1000000000", "500");
    assert_eq!(meter.look(seconds(start, 31), work(0.0, 0)), None, "the counter may have wrapped around");
    fake.zone("intel-rapl:0", "package-0", "1000000000", "1000500");
    let status = meter.look(seconds(start, 32), work(0.0, 0)).expect("measured");
    assert_eq!(status.parts[0].millijoules, 1000);
}
