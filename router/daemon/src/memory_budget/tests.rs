//! Fitting to hosts of all sizes, and reading the kernel's files.

use std::fs;
use std::path::Path;

use namehop_config::Config;
use namehop_table::HugePages;

use super::host::{HostMemory, Source};
use super::*;

const MEBIBYTE: usize = 1 << 20;

fn config(text: &str) -> Config {
    Config::parse(text, Path::new("test.toml")).expect(text)
}

fn host(mebibytes: usize) -> HostMemory {
    HostMemory { available_bytes: mebibytes * MEBIBYTE, source: Source::Host, huge_2m_bytes: 0, huge_1g_bytes: 0 }
}

fn fit(text: &str, mebibytes: usize) -> Budget {
    Budget::fit(&config(text), 1, Some(&host(mebibytes)))
}

#[test]
fn all_settings_fit_from_64_mebibytes_on_and_never_shrink_as_memory_grows() {
    let mut before = Bounds::default();
    for mebibytes in [64, 96, 128, 192, 256, 384, 512, 1 << 10, 2 << 10, 3 << 10, 8 << 10, 64 << 10] {
        let budget = fit("", mebibytes);
        let limit = budget.limit_bytes.expect("known");
        assert_eq!(limit, mebibytes * MEBIBYTE / 4 * 3);
        assert!(budget.needed_bytes <= limit, "{mebibytes} MiB: {budget:#?}");
        // The memory left for routes and the cache at run time fits too.
        let Bounds { capacity_packets, reserved_packets, .. } = budget.bounds;
        let more_packets = (reserved_packets - capacity_packets) * need::cached_packet_bytes();
        let most = need::total(&Config::default(), &budget.bounds, 1, 0) + more_packets;
        assert!(most <= limit, "{mebibytes} MiB: {most} bytes, {budget:#?}");
        let mut bounds = budget.bounds.clone();
        for setting in SETTINGS {
            let (now, was) = (*(setting.bound)(&mut bounds), *(setting.bound)(&mut before));
            assert!(now >= was && now >= setting.least, "{:?} at {mebibytes} MiB: {was}, then {now}", setting.key);
        }
        before = bounds;
    }
    assert_eq!(before.capacity_bytes, 512 * MEBIBYTE);
    assert_eq!((before.pit_capacity, before.max_faces, before.small_buffers), (131_072, 16_384, 32_768));
}

#[test]
fn a_host_with_enough_memory_has_the_usual_values() {
    for mebibytes in [3 << 10, 8 << 10] {
        let budget = fit("", mebibytes);
        assert_eq!(budget.shrunk, [], "{mebibytes} MiB");
        assert!(budget.describe().contains("cached Data"), "{}", budget.describe());
    }
    // The same if the available memory is unknown.
    let unknown = Budget::fit(&Config::default(), 1, None);
    assert_eq!((unknown.shrunk, unknown.bounds.max_faces), (Vec::new(), 16_384));
}

#[test]
fn several_workers_share_what_one_would_have() {
    for workers in [2, 8] {
        let budget = Budget::fit(&Config::default(), workers, Some(&host(512)));
        assert!(Some(budget.needed_bytes) <= budget.limit_bytes, "{budget:#?}");
        assert!(budget.bounds.capacity_bytes < fit("", 512).bounds.capacity_bytes);
    }
}

#[test]
fn what_is_configured_is_kept_and_the_rest_gets_smaller() {
    let usual = fit("", 256);
    let budget = fit("[content_store]\ncapacity_bytes = \"100 MiB\"\n[faces]\nmax_faces = 300\n", 256);
    assert_eq!((budget.bounds.capacity_bytes, budget.bounds.max_faces), (100 * MEBIBYTE, 300));
    assert!(budget.bounds.small_buffers < usual.bounds.small_buffers);
    assert!(budget.shrunk.iter().all(|shrunk| !["capacity_bytes", "max_faces"].contains(&shrunk.key)), "{budget:#?}");
    assert!(Some(budget.needed_bytes) <= budget.limit_bytes);
    let text = budget.describe();
    assert!(text.contains("[forwarding] small_buffers: ") && text.contains(" instead of 32768"), "{text}");
}

#[test]
fn a_warning_names_what_takes_most_where_the_configuration_asks_for_too_much() {
    let budget = fit("[content_store]\ncapacity_bytes = \"4 GiB\"\n", 1_024);
    assert_eq!(budget.bounds.capacity_bytes, 4 << 30);
    let text = budget.describe();
    assert!(text.contains("warning: the settings allow the router 4"), "{text}");
    assert!(text.contains("cached Data ([content_store] capacity_bytes"), "{text}");
    // Settings do not go below their least values.
    assert!(fit("", 16).describe().contains("warning: "));
}

#[test]
fn a_limit_in_the_configuration_is_taken_whole() {
    let budget = fit("[memory]\nlimit = \"200 MiB\"\n", 8 << 10);
    assert_eq!(budget.limit_bytes, Some(200 * MEBIBYTE));
    assert!(budget.needed_bytes <= 200 * MEBIBYTE && !budget.shrunk.is_empty());
    assert!(budget.describe().contains("`limit` in section [memory]"));
}

#[test]
fn tables_on_huge_pages_that_were_set_aside_take_no_other_memory() {
    let text = "[content_store]\ncapacity_bytes = \"4 GiB\"\n";
    let prepared = HostMemory { huge_1g_bytes: 8 << 30, ..host(4 << 10) };
    let of = |text: &str| Budget::fit(&config(text), 1, Some(&prepared));
    assert_eq!((of(text).shrunk, of(text).describe().contains("warning")), (Vec::new(), false));
    let off = of(&format!("{text}[memory]\nhuge_pages = \"off\"\n"));
    assert!(off.describe().contains("warning: "), "{}", off.describe());
    assert_eq!(prepared.pool_bytes_for(HugePages::TwoMiB), 0);
}

/// Writes files of a kernel below a folder.
fn written(files: &[(&str, &str)]) -> tempfile::TempDir {
    let root = tempfile::tempdir().expect("a folder");
    for (file, text) in files {
        let path = root.path().join(file);
        fs::create_dir_all(path.parent().expect("a parent")).expect("a folder");
        fs::write(path, text).expect("written");
    }
    root
}

const MEMINFO: (&str, &str) = ("proc/meminfo", "MemTotal: 4096000 kB\nMemAvailable:    2048000 kB\n");
const V1_MOUNTS: &str = "\
    31 23 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw\n\
    32 31 0:29 / /sys/fs/cgroup/cpu rw,relatime - cgroup cgroup rw,cpu\n\
    35 31 0:32 / /sys/fs/cgroup/memory rw,relatime shared:9 - cgroup cgroup rw,memory\n";
const V2_MOUNTS: &str = "30 23 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n";

/// Returns the available bytes and their source.
fn read(files: &[(&str, &str)]) -> (usize, String) {
    let memory = HostMemory::read(written(files).path()).expect("readable");
    let source = match memory.source {
        Source::Host => "host".to_owned(),
        Source::ControlGroup(folder) => folder.display().to_string(),
    };
    (memory.available_bytes, source)
}

#[test]
fn version_1_with_groups_above() {
    let group = "sys/fs/cgroup/memory";
    let own = ("proc/self/cgroup", "9:name=systemd:/\n4:memory:/outer/inner\n1:cpu:/outer\n0::/\n");
    let mounts = ("proc/self/mountinfo", V1_MOUNTS);
    let (none, small) = ("9223372036854771712\n", "134217728\n");
    let (root, outer, inner) = (
        format!("{group}/memory.limit_in_bytes"),
        format!("{group}/outer/memory.limit_in_bytes"),
        format!("{group}/outer/inner/memory.limit_in_bytes"),
    );
    let limits =
        |of_outer, of_inner| read(&[MEMINFO, own, mounts, (&root, none), (&outer, of_outer), (&inner, of_inner)]);
    assert_eq!(limits(none, none), (2_048_000 << 10, "host".to_owned()));
    assert_eq!(limits(none, small), (128 << 20, "/sys/fs/cgroup/memory/outer/inner".to_owned()));
    assert_eq!(limits(small, none), (128 << 20, "/sys/fs/cgroup/memory/outer".to_owned()));
    assert_eq!(limits("67108864", small), (64 << 20, "/sys/fs/cgroup/memory/outer".to_owned()));
    // Memory used by other processes of the group is not available; the page cache is.
    let usage = ("sys/fs/cgroup/memory/outer/memory.usage_in_bytes", "50000000\n");
    let stat = (
        "sys/fs/cgroup/memory/outer/memory.stat",
        "cache 9\ntotal_inactive_file 10000000\ntotal_active_file 20000000\n",
    );
    let used = read(&[MEMINFO, own, mounts, (&outer, small), usage, stat]);
    assert_eq!(used.0, (128 << 20) - 20_000_000);
}

#[test]
fn version_2_with_max_and_high() {
    let (own, mounts) =
        (("proc/self/cgroup", "0::/system.slice/namehop.service\n"), ("proc/self/mountinfo", V2_MOUNTS));
    let (slice, service) =
        ("sys/fs/cgroup/system.slice/memory.max", "sys/fs/cgroup/system.slice/namehop.service/memory.max");
    let high = "sys/fs/cgroup/system.slice/namehop.service/memory.high";
    let limits = |files: &[(&str, &str)]| read(&[&[MEMINFO, own, mounts], files].concat());
    assert_eq!(limits(&[(slice, "max\n"), (service, "max\n")]).1, "host");
    let folder = "/sys/fs/cgroup/system.slice/namehop.service".to_owned();
    assert_eq!(limits(&[(slice, "max\n"), (service, "268435456\n")]), (256 << 20, folder.clone()));
    assert_eq!(limits(&[(service, "268435456\n"), (high, "134217728\n")]), (128 << 20, folder));
    assert_eq!(
        limits(&[(slice, "67108864\n"), (service, "268435456\n")]),
        (64 << 20, "/sys/fs/cgroup/system.slice".to_owned())
    );
    let used = limits(&[
        (service, "268435456\n"),
        ("sys/fs/cgroup/system.slice/namehop.service/memory.current", "30000000\n"),
        (
            "sys/fs/cgroup/system.slice/namehop.service/memory.stat",
            "anon 5\nfile 9\ninactive_file 1000000\nactive_file 2000000\n",
        ),
    ]);
    assert_eq!(used.0, (256 << 20) - 27_000_000);
}

#[test]
fn hybrid_and_containers() {
    // Version 2 is mounted beside version 1, without its own memory controller.
    let hybrid = format!("{V1_MOUNTS}41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw\n");
    let own = ("proc/self/cgroup", "4:memory:/service\n0::/service\n");
    let limit = ("sys/fs/cgroup/memory/service/memory.limit_in_bytes", "100000000\n");
    assert_eq!(read(&[MEMINFO, own, ("proc/self/mountinfo", &hybrid), limit]).0, 100_000_000);
    // A container with a cgroup namespace sees its own group as the root.
    let inside = [
        ("proc/self/cgroup", "0::/\n"),
        ("proc/self/mountinfo", V2_MOUNTS),
        ("sys/fs/cgroup/memory.max", "70000000\n"),
    ];
    assert_eq!(read(&[&[MEMINFO], &inside[..]].concat()), (70_000_000, "/sys/fs/cgroup".to_owned()));
    // A container without one has the path on the host, and the mount shows its own group only.
    let mount = "35 31 0:32 /docker/abc /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n";
    let own = ("proc/self/cgroup", "4:memory:/docker/abc\n");
    let limit = ("sys/fs/cgroup/memory/memory.limit_in_bytes", "80000000\n");
    assert_eq!(read(&[MEMINFO, own, ("proc/self/mountinfo", mount), limit]).0, 80_000_000);
}

#[test]
fn free_huge_pages_are_counted_and_nothing_readable_is_nothing_known() {
    let folder = "sys/kernel/mm/hugepages/hugepages-2048kB";
    let (free, reserved) = (format!("{folder}/free_hugepages"), format!("{folder}/resv_hugepages"));
    let memory = HostMemory::read(written(&[MEMINFO, (&free, "10\n"), (&reserved, "3\n")]).path()).expect("readable");
    assert_eq!(memory.pool_bytes_for(HugePages::Auto), 7 << 21);
    assert_eq!(HostMemory::read(written(&[]).path()), None);
}
