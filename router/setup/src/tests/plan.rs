//! Tests of the detected properties and of the plans for them.

use super::tree::{E1000E, MLX5, Tree, VMXNET3};
use crate::detect::{Machine, ModuleState, NicUse};
use crate::findings;
use crate::plan::{HugePageRequest, SetupRequest};
use crate::step::HostChange;

const FIRST: &str = "0000:03:00.0";
const SECOND: &str = "0000:04:00.0";

fn server() -> Tree {
    let tree = Tree::new(64);
    tree.with_dpdk().pool(1_048_576, 0, 0).nic(FIRST, E1000E, "eth0", Some(1)).nic(SECOND, E1000E, "eth1", Some(2));
    tree.default_route("eth0");
    tree
}

fn memory(bytes: u64) -> SetupRequest {
    SetupRequest { memory: HugePageRequest::Bytes(bytes), ..SetupRequest::default() }
}

fn nics(names: &[&str]) -> SetupRequest {
    let nics = names.iter().map(|&name| name.to_owned()).collect();
    SetupRequest { memory: HugePageRequest::Unchanged, nics, ..SetupRequest::default() }
}

fn changes(tree: &Tree, wishes: &SetupRequest) -> Vec<String> {
    let plan = tree.plan(wishes);
    assert_eq!(plan.obstacles, Vec::<String>::new());
    plan.steps.iter().map(|step| step.change.to_string()).collect()
}

fn obstacle(tree: &Tree, wishes: &SetupRequest) -> String {
    let plan = tree.plan(wishes);
    assert_eq!(plan.obstacles.len(), 1, "{plan:?}");
    plan.obstacles[0].clone()
}

#[test]
fn a_host_is_described() {
    let tree = server();
    tree.file("/sys/devices/system/node/node0/hugepages/hugepages-2048kB/nr_hugepages", "3");
    tree.file("/sys/devices/system/node/node1/hugepages/hugepages-2048kB/nr_hugepages", "4");
    tree.file("/sys/devices/system/cpu/isolated", "3\n");
    tree.file("/sys/devices/system/cpu/cpu1/cpufreq/scaling_governor", "powersave\n");
    let machine = tree.machine();
    assert_eq!((machine.memory_bytes, machine.is_root), (64 << 30, true));
    assert_eq!(machine.huge_pages.transparent.as_deref(), Some("madvise"));
    let sizes: Vec<u64> = machine.huge_pages.pools.iter().map(|pool| pool.page_bytes).collect();
    assert_eq!(sizes, [2 << 20, 1 << 30]);
    let nodes: Vec<(u32, u64)> = machine.huge_pages.pools[0].nodes.iter().map(|node| (node.node, node.pages)).collect();
    assert_eq!(nodes, [(0, 3), (1, 4)]);
    let processors = &machine.processors;
    assert_eq!((processors.online.len(), processors.cores(), processors.slowed()), (4, 2, vec![1]));
    assert_eq!((processors.isolated.as_slice(), processors.online[2].node), ([3].as_slice(), Some(0)));
    assert_eq!((machine.vfio.module, machine.vfio.iommu_groups), (ModuleState::Available, 2));
    let [first, second] = machine.nics.as_slice() else { panic!("{:?}", machine.nics) };
    assert_eq!((first.uses.as_slice(), second.uses.as_slice()), ([NicUse::DefaultRoute].as_slice(), [].as_slice()));
    assert_eq!((second.speed_mbps, second.has_link, second.node), (Some(10_000), Some(true), None));
    assert_eq!(
        second.dpdk_driver.as_ref().map(|driver| driver.name.as_str()),
        Some("net_e1000_em"),
        "the driver of the newest DPDK"
    );
    let text = format!("{:?}", findings(&machine));
    for part in
        ["NUMA node 1: 4", "isolated: 3", "saving power: 1", "default route", "--nic 0000:04:00.0", "not installed"]
    {
        assert!(text.contains(part), "{part}: {text}");
    }
}

#[test]
fn cards_that_carry_a_session_or_the_default_route_are_known_through_what_lies_above_them() {
    let tree = server();
    // The default route of IPv6, over a VLAN on a bond of one card.
    let zeros = "00000000000000000000000000000000";
    let route = format!(
        "{zeros} 00 {zeros} 00 fe80 00000400 1 0 00000003 bond0.7\n{zeros} 00 {zeros} 00 0 ffffffff 1 0 00200200 lo\n"
    );
    tree.file("/proc/net/ipv6_route", &route).file("/proc/net/route", "");
    tree.file("/sys/class/net/bond0.7/lower_bond0/x", "").file("/sys/class/net/bond0/lower_eth1/x", "");
    let uses = |ssh| -> Vec<Vec<NicUse>> {
        Machine::detect(&tree.system(), ssh).nics.into_iter().map(|nic| nic.uses).collect()
    };
    assert_eq!(uses(None), [vec![], vec![NicUse::DefaultRoute]]);

    // eth1 leads to 192.0.2.0/24, eth0 to all other addresses.
    let routes = "Iface Destination Gateway Flags RefCnt Use Metric Mask\neth0 00000000 01 0003 0 0 0 00000000\n\
                  eth1 000200C0 00000000 0001 0 0 0 00FFFFFF\neth1 0000000A 00000000 0000 0 0 0 000000FF\nnonsense\n";
    tree.file("/proc/net/route", routes).file("/proc/net/ipv6_route", "");
    assert_eq!(uses(Some("192.0.2.9 50000 192.0.2.1 22")), [vec![NicUse::DefaultRoute], vec![NicUse::SshSession]]);
    assert_eq!(uses(Some("10.1.1.1 50000 10.0.0.1 22")), [vec![NicUse::DefaultRoute, NicUse::SshSession], vec![]]);
    assert_eq!(uses(Some("nonsense")), [vec![NicUse::DefaultRoute], vec![]]);
    // sudo hides the variable, but the kernel lists the connection: 192.0.2.1:22 from 192.0.2.9, also as IPv6.
    let tcp =
        "sl local_address rem_address st\n 0: 010200C0:0016 090200C0:C350 01\n 1: 010200C0:0050 0A00000A:C350 01\n";
    tree.file("/proc/net/tcp", tcp);
    assert_eq!(uses(None), [vec![NicUse::DefaultRoute], vec![NicUse::SshSession]]);
    let mapped = "0000000000000000FFFF0000090200C0:C350";
    tree.file("/proc/net/tcp", "")
        .file("/proc/net/tcp6", &format!("sl\n 0: {mapped}:x\n 0: {}:0016 {mapped} 01\n", "0".repeat(32)));
    assert_eq!(uses(None), [vec![NicUse::DefaultRoute], vec![NicUse::SshSession]]);
}

#[test]
fn huge_pages_are_planned_with_their_file() {
    let pool = "/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages";
    let tree = server();
    let sysctl = "write the file /etc/sysctl.d/60-namehop.conf".to_owned();
    assert_eq!(changes(&tree, &SetupRequest::default()), [format!("write 512 to {pool}"), sysctl.clone()]);
    assert_eq!(
        changes(&Tree::new(2), &SetupRequest::default()),
        [format!("write 256 to {pool}"), sysctl.clone()],
        "a quarter"
    );
    assert_eq!(
        changes(&tree, &memory((3 << 20) + 1)),
        [format!("write 2 to {pool}"), sysctl.clone()],
        "requested sizes are rounded up"
    );
    let until_restart = SetupRequest { is_permanent: false, ..memory(1 << 30) };
    assert_eq!(changes(&tree, &until_restart), [format!("write 512 to {pool}")]);
    let large = [
        "write 16 to /sys/kernel/mm/hugepages/hugepages-1048576kB/nr_hugepages",
        "write the file /etc/tmpfiles.d/namehop-huge-pages-1048576kB.conf",
    ];
    assert_eq!(changes(&tree, &memory(16 << 30)), large);
    let chosen = SetupRequest { page_bytes: Some(1 << 30), ..memory(1) };
    assert!(changes(&tree, &chosen)[0].starts_with("write 1 to "));
    tree.pool(2048, 600, 0);
    assert_eq!(
        changes(&tree, &SetupRequest::default()),
        [sysctl],
        "enough pages are reserved, but no file reserves them at boot"
    );
    let plan = tree.plan(&SetupRequest::default());
    let HostChange::WriteFile { text, .. } = &plan.steps[0].change else { panic!("{plan:?}") };
    assert!(text.ends_with("vm.nr_hugepages = 512\n"), "{text}");
    tree.file("/etc/sysctl.conf", "# vm.nr_hugepages = 1\nvm.nr_hugepages=600\n");
    assert_eq!(changes(&tree, &SetupRequest::default()), [""; 0], "/etc/sysctl.conf reserves them at boot");
    let plan = tree.plan(&memory(2 << 30));
    assert!(plan.steps.len() == 2 && plan.notes[0].contains("/etc/sysctl.conf"), "{plan:?}");
    assert_eq!(
        changes(&tree, &SetupRequest { memory: HugePageRequest::Unchanged, ..SetupRequest::default() }),
        [""; 0]
    );
}

#[test]
fn impossible_huge_pages_are_refused() {
    let tree = server();
    assert!(obstacle(&tree, &memory(60 << 30)).contains("too little"));
    assert!(obstacle(&tree, &SetupRequest { page_bytes: Some(64 << 10), ..memory(1) }).contains("2 MiB and 1 GiB"));
    assert!(obstacle(&tree, &memory(u64::MAX)).contains("too little"));
    let container = Tree::new(8);
    std::fs::remove_dir_all(container.path("/sys/kernel/mm/hugepages")).expect("removed");
    assert!(obstacle(&container, &memory(1 << 30)).contains("host"));
}

#[test]
fn a_card_is_taken_with_module_and_rule() {
    let tree = server();
    let steps = [
        "modprobe vfio-pci",
        "write vfio-pci to /sys/bus/pci/devices/0000:04:00.0/driver_override, and rebind the device",
        "write the file /etc/udev/rules.d/60-namehop-0000:04:00.0.rules",
    ];
    assert_eq!(changes(&tree, &nics(&[SECOND])), steps);
    assert_eq!(changes(&tree, &nics(&["eth1"])), steps, "a card can be named by its interface");
    tree.file("/sys/bus/pci/drivers/vfio-pci/bind", "");
    assert_eq!(changes(&tree, &nics(&["eth1"])), steps[1..], "the module is loaded already");
    let plan = tree.plan(&nics(&[SECOND]));
    assert!(plan.steps[0].why.contains("eth1 disappears"), "{plan:?}");
}

#[test]
fn cards_that_cannot_go_are_refused_with_the_reason() {
    let tree = server();
    assert!(obstacle(&tree, &nics(&[FIRST])).contains("--force-nic 0000:03:00.0"));
    let forced = SetupRequest { forced_nics: vec!["eth0".to_owned()], ..nics(&[]) };
    assert_eq!(changes(&tree, &forced).len(), 3);
    assert!(obstacle(&tree, &nics(&["eth7"])).contains("0000:03:00.0, 0000:04:00.0"));
    tree.nic("0000:05:00.0", E1000E, "eth2", None).nic("0000:06:00.0", VMXNET3, "eth3", Some(3));
    assert!(obstacle(&tree, &nics(&["eth2"])).contains("IOMMU"));
    assert!(obstacle(&tree, &nics(&["eth3"])).contains("no driver for 0000:06:00.0 (eth3) (PCI 15ad:07b0)"));
    tree.nic("0000:07:00.0", MLX5, "eth4", Some(4));
    let plan = tree.plan(&nics(&["eth4"]));
    assert!(plan.steps.is_empty() && plan.notes[0].contains("stays"), "{plan:?}");
    // Two ports of one card in one group, below a bridge.
    tree.nic("0000:08:00.0", E1000E, "eth5", Some(5)).nic("0000:08:00.1", E1000E, "eth6", Some(5));
    tree.device("0000:00:01.0", "0x060400", "pcieport", Some(5));
    assert!(obstacle(&tree, &nics(&["eth5"])).contains("0000:08:00.1 (kernel_driver)"));
    assert_eq!(changes(&tree, &nics(&["eth5", "eth6"])).len(), 5);
    tree.file("/lib/modules/6.1.0-test/modules.dep", "");
    assert!(obstacle(&tree, &nics(&[SECOND])).contains("kernel 6.1.0-test"));
}

#[test]
fn the_service_limits_come_from_systemd_or_the_unit_file() {
    let tree = server();
    assert_eq!(tree.machine().service, None);
    let unit = "/usr/lib/systemd/system/namehop.service";
    tree.file(unit, "[Service]\nLimitMEMLOCK=64K\nCapabilityBoundingSet=\n");
    let service = tree.machine().service.expect("installed");
    assert_eq!((service.memory_lock_bytes, service.may_use_interfaces), (Some(65_536), false));
    let added = "/etc/systemd/system/namehop.service.d/ports.conf";
    tree.file(added, "[Service]\nAmbientCapabilities=CAP_NET_RAW\nLimitMEMLOCK=infinity\n");
    let service = tree.machine().service.expect("installed");
    assert_eq!((service.memory_lock_bytes, service.may_use_interfaces, service.process), (None, true, None));
    tree.file("/sys/fs/cgroup/system.slice/namehop.service/cgroup.procs", "77\n");
    tree.file(
        "/proc/77/limits",
        "Limit Soft Hard Units\nMax locked memory         8388608              8388608    bytes\n",
    );
    tree.file("/proc/77/status", "CapEff:\t0000000000000000\n");
    let service = tree.machine().service.expect("installed");
    assert_eq!(
        (service.memory_lock_bytes, service.may_use_interfaces, service.process),
        (Some(8 << 20), false, Some(77))
    );
}

#[test]
fn drop_in_files_are_read_in_the_order_of_their_names() {
    let tree = server();
    tree.file("/usr/lib/systemd/system/namehop.service", "[Service]\nLimitMEMLOCK=64K\n");
    let limit = || tree.machine().service.expect("installed").memory_lock_bytes;
    tree.file("/usr/lib/systemd/system/namehop.service.d/90-late.conf", "[Service]\nLimitMEMLOCK=2M\n");
    tree.file("/etc/systemd/system/namehop.service.d/10-early.conf", "[Service]\nLimitMEMLOCK=1M\n");
    assert_eq!(limit(), Some(2 << 20), "the last name decides, whatever its folder");
    tree.file("/run/systemd/system/namehop.service.d/90-late.conf", "[Service]\nLimitMEMLOCK=3M\n");
    assert_eq!(limit(), Some(3 << 20), "of one name, the folder of higher precedence decides");
    tree.file("/etc/systemd/system/namehop.service.d/90-late.conf", "");
    assert_eq!(limit(), Some(1 << 20), "an empty file hides the others of its name");
}

#[test]
fn nonsense_in_any_file_makes_nothing_panic() {
    let tree = server();
    tree.file("/proc/net/tcp", "x").file("/proc/net/tcp6", "x").file("/proc/net/ipv6_route", "x");
    tree.file("/sys/devices/system/cpu/isolated", "1");
    let wishes =
        SetupRequest { nics: vec![FIRST.to_owned()], forced_nics: vec![SECOND.to_owned()], ..SetupRequest::default() };
    let nonsense: [&[u8]; 6] = [
        b"",
        b"\xff\xfe\0",
        b"-1",
        b"99999999999999999999999",
        b": : : : : : : : : :\n\n[",
        "ä ä ä ä ä ä ä ä ä ä:ä ä".as_bytes(),
    ];
    for (path, text) in tree.files() {
        for garbage in nonsense {
            std::fs::write(&path, garbage).expect("written");
            tree.plan(&wishes);
            findings(&tree.machine());
        }
        std::fs::write(&path, text).expect("written");
    }
}

#[test]
fn a_card_that_is_named_twice_is_taken_once() {
    let tree = server();
    assert_eq!(changes(&tree, &nics(&[SECOND, "eth1"])), changes(&tree, &nics(&[SECOND])));
    let both = SetupRequest { forced_nics: vec!["eth1".to_owned()], ..nics(&[SECOND]) };
    assert_eq!(changes(&tree, &both), changes(&tree, &nics(&[SECOND])));
}
