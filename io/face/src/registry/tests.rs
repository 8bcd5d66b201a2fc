//! Tests of the face table and of face properties.

use std::time::{Duration, Instant};

use namehop_packet::{FaceInfo, FaceScope, LinkType};

use super::*;
use crate::uri::{PortScheme, UriSchemes};

fn params(text: &str) -> FaceParams {
    let remote = text.parse().expect("remote URI");
    FaceParams::new(remote, "udp4://127.0.0.1:6363".parse().expect("local URI"))
}

#[test]
fn numbers_start_at_256_and_a_recycled_slot_gets_a_new_number() {
    let table = FaceTable::with_resting_slots(10, 0);
    let first = table.insert(params("udp4://192.0.2.1:1")).expect("first");
    let second = table.insert(params("udp4://192.0.2.2:1")).expect("second");
    assert_eq!((first.id(), second.id()), (FaceId(256), FaceId(257)));
    assert!(table.remove(first.id()).is_some());
    assert!(table.remove(first.id()).is_none());
    let third = table.insert(params("udp4://192.0.2.3:1")).expect("third");
    assert_eq!(third.id(), FaceId(0x1_0000 | 256));
    assert_eq!(third.id().slot(), first.id().slot());
    assert!(table.get(first.id()).is_none());
    assert_eq!(table.get(third.id()).expect("third").id(), third.id());
    let ids: Vec<_> = table.snapshot().iter().map(|face| face.id().0).collect();
    assert_eq!(ids, [257, 65_792]);
}

#[test]
fn the_local_address_of_a_face_is_the_latest() {
    let table = FaceTable::new();
    let uri = |text: &str| text.parse::<FaceUri>().expect("URI");
    let down = FaceParams { is_up: false, ..FaceParams::new(uri("tcp4://192.0.2.1:1"), FaceUri::Null) };
    let face = table.insert(down).expect("face");
    assert_eq!((face.is_up(), &*face.local_uri()), (false, &FaceUri::Null));
    for text in ["tcp4://192.0.2.2:40000", "tcp4://192.0.2.2:50000"] {
        face.set_local_uri(uri(text));
        assert_eq!(*face.local_uri(), uri(text));
    }
    face.set_local_uri(FaceUri::Null);
    assert_eq!(*face.local_uri(), FaceUri::Null);
}

#[test]
fn a_number_returns_after_65536_uses_of_its_slot() {
    let table = FaceTable::with_resting_slots(1, 0);
    let mut seen = std::collections::HashSet::new();
    for _ in 0..65_536 {
        let face = table.insert(params("fd://1")).expect("face");
        assert!(seen.insert(face.id()), "{} was reused too early", face.id());
        table.remove(face.id());
    }
    let face = table.insert(params("fd://1")).expect("face");
    assert_eq!(face.id(), FaceId(256));
}

#[test]
fn new_slots_come_before_used_ones_until_enough_rest() {
    let table = FaceTable::with_resting_slots(10, 2);
    for expected in [256, 257, 258, 0x1_0000 | 256, 0x1_0000 | 257] {
        let face = table.insert(params("fd://1")).expect("face");
        assert_eq!(face.id(), FaceId(expected));
        table.remove(face.id());
    }
}

#[test]
fn all_slots_can_be_in_use() {
    let table = FaceTable::new();
    for round in 0..2 {
        let ids: Vec<_> = (0..MAX_USER_FACES).map(|_| table.insert(params("fd://1")).expect("face").id()).collect();
        assert!(table.insert(params("fd://1")).is_err(), "round {round}");
        for id in ids {
            table.remove(id);
        }
    }
}

#[test]
fn the_oldest_free_slot_is_used_first() {
    let table = FaceTable::with_resting_slots(10, 0);
    let ids: Vec<_> = (0..4).map(|_| table.insert(params("fd://1")).expect("face").id()).collect();
    table.remove(ids[2]);
    table.remove(ids[0]);
    let next: Vec<_> = (0..3).map(|_| table.insert(params("fd://1")).expect("face").id().slot()).collect();
    assert_eq!(next, [ids[2].slot(), ids[0].slot(), 260]);
}

#[test]
fn a_full_table_says_so_and_recovers() {
    let table = FaceTable::with_limit(2);
    let first = table.insert(params("fd://1")).expect("first");
    table.insert(params("fd://2")).expect("second");
    let error = table.insert(params("fd://3")).expect_err("full");
    assert_eq!(error, FaceTableError::Full { limit: 2 });
    assert!(error.to_string().contains("2 faces exist"));
    let internal = table.insert_reserved(FaceId::INTERNAL, params("internal://"));
    assert_eq!(internal.expect("reserved ids do not count").id(), FaceId(1));
    table.remove(first.id());
    assert!(table.insert(params("fd://3")).is_ok());
}

#[test]
fn every_slot_can_be_used() {
    let table = FaceTable::new();
    for _ in 0..MAX_USER_FACES {
        table.insert(params("null://")).expect("face");
    }
    assert!(table.insert(params("null://")).is_err());
    let last = table.snapshot().last().expect("last").id();
    assert_eq!(last, FaceId(65_535));
}

#[test]
fn reserved_numbers_are_entered_once() {
    let table = FaceTable::new();
    assert!(table.insert_reserved(FaceId::NULL, params("null://")).is_ok());
    assert_eq!(
        table.insert_reserved(FaceId::NULL, params("null://")).err(),
        Some(FaceTableError::Exists(FaceId::NULL))
    );
    assert_eq!(
        table.insert_reserved(FaceId(300), params("null://")).err(),
        Some(FaceTableError::NotReserved(FaceId(300)))
    );
    assert!(table.remove(FaceId::NULL).is_some());
    assert!(table.is_empty());
}

#[test]
fn faces_are_found_by_remote_address() {
    let table = FaceTable::new();
    let first = table.insert(params("udp4://224.0.23.170:56363")).expect("face");
    let second = table.insert(params("udp4://224.0.23.170:56363")).expect("face");
    let remote = first.remote_uri().clone();
    let found =
        |table: &FaceTable| -> Vec<FaceId> { table.find_by_remote(&remote).iter().map(|face| face.id()).collect() };
    assert_eq!(found(&table), [first.id(), second.id()]);
    table.remove(first.id());
    assert_eq!(found(&table), [second.id()]);
    table.remove(second.id());
    assert!(found(&table).is_empty());
}

#[test]
fn updates_change_all_or_nothing() {
    let table = FaceTable::new();
    let face = table
        .insert(FaceParams {
            allowed_persistencies: &[FacePersistency::OnDemand, FacePersistency::Permanent],
            persistency: FacePersistency::OnDemand,
            flags: FaceFlags::CONGESTION_MARKING,
            is_datagram: true,
            ..params("udp4://192.0.2.1:6363")
        })
        .expect("face");
    let rejected = face
        .update(&FaceUpdate {
            persistency: Some(FacePersistency::Persistent),
            flags: FaceFlags::LOCAL_FIELDS,
            flags_mask: 5,
            base_congestion_marking_interval_ns: Some(0),
            default_congestion_threshold_bytes: Some(1),
            mtu_bytes: Some(63),
        })
        .expect_err("refused");
    assert_eq!(
        rejected,
        RejectedProperties { persistency: true, flags: true, base_congestion_marking_interval: true, mtu: true }
    );
    let of_mtu = RejectedProperties { mtu: true, ..RejectedProperties::default() };
    assert_eq!(
        of_mtu.to_string(),
        "the face cannot have this MTU: at least 64 bytes, and only over datagrams and frames"
    );
    assert!(rejected.to_string().matches(", nor ").count() == 3, "{rejected}");
    assert_eq!(face.flags(), FaceFlags::CONGESTION_MARKING);
    assert_eq!(face.default_congestion_threshold_bytes(), 65_536);
    face.update(&FaceUpdate {
        persistency: Some(FacePersistency::Permanent),
        flags: FaceFlags(0xFF),
        flags_mask: 0xFA,
        base_congestion_marking_interval_ns: Some(7),
        default_congestion_threshold_bytes: Some(8),
        mtu_bytes: Some(u64::MAX),
    })
    .expect("allowed");
    // A permanent UDP face keeps its path open.
    let expected = FaceFlags::CONGESTION_MARKING.union(FaceFlags::RELIABILITY).union(FaceFlags::KEEP_ALIVE);
    assert_eq!(face.flags(), expected);
    assert_eq!(face.persistency(), FacePersistency::Permanent);
    assert_eq!(face.base_congestion_marking_interval_ns(), 7);
    assert_eq!(face.default_congestion_threshold_bytes(), 8);
    assert_eq!(face.mtu_bytes(), 8800);
    let options = face.link_options();
    assert!(options.reliability && options.congestion_marking && options.is_datagram);
    assert!(!options.local_fields && !options.self_learning);
}

#[test]
fn only_on_demand_faces_expire() {
    let update = |persistency| FaceUpdate { persistency: Some(persistency), ..FaceUpdate::default() };
    let table = FaceTable::new();
    let made = |persistency, idle_timeout| {
        let face = FaceParams {
            allowed_persistencies: &[FacePersistency::OnDemand, FacePersistency::Persistent],
            persistency,
            idle_timeout,
            ..params("udp4://192.0.2.1:6363")
        };
        table.insert(face).expect("face")
    };
    let face = made(FacePersistency::OnDemand, Some(Duration::from_secs(600)));
    for _ in 0..2 {
        assert!(face.expiration_period_ms().is_some_and(|left| left > 600_000 && left <= 1_200_000));
        face.update(&update(FacePersistency::Persistent)).expect("allowed");
        assert_eq!(face.expiration_period_ms(), None);
        face.update(&update(FacePersistency::OnDemand)).expect("allowed");
    }
    face.set_expiration(Some(Instant::now() + Duration::from_secs(5)));
    face.update(&update(FacePersistency::OnDemand)).expect("the value is the same");
    assert!(
        face.expiration_period_ms().is_some_and(|left| left <= 5000),
        "an update with the same value must change nothing"
    );
    let connected = made(FacePersistency::OnDemand, None);
    assert_eq!(connected.expiration_period_ms(), None);
}

#[test]
fn flags_depend_on_scope_and_link_type() {
    let table = FaceTable::new();
    let set = |face: &Face, flags: FaceFlags| {
        face.update(&FaceUpdate { flags, flags_mask: flags.0, ..FaceUpdate::default() })
    };
    let local = table.insert(FaceParams { scope: FaceScope::Local, ..params("fd://9") }).expect("local");
    assert!(set(&local, FaceFlags::LOCAL_FIELDS).is_ok());
    assert!(local.link_options().local_fields);
    let group = table
        .insert(FaceParams {
            link_type: LinkType::MultiAccess,
            is_datagram: true,
            ..params("udp4://224.0.23.170:56363")
        })
        .expect("group");
    assert!(set(&group, FaceFlags::RELIABILITY).is_err());
    assert!(set(&group, FaceFlags::PIT_TOKENS_ON).is_err());
    assert!(set(&local, FaceFlags::PIT_TOKENS).is_err(), "both on and off");
    assert!(set(&local, FaceFlags::PIT_TOKENS_ON).is_ok());
    assert!(set(&local, FaceFlags::PIT_TOKENS_OFF).is_err(), "on already, so off is a conflict");
    let off =
        FaceUpdate { flags: FaceFlags::PIT_TOKENS_OFF, flags_mask: FaceFlags::PIT_TOKENS.0, ..FaceUpdate::default() };
    assert!(local.update(&off).is_ok());
    assert!(local.flags().contains(FaceFlags::PIT_TOKENS_OFF) && !local.flags().contains(FaceFlags::PIT_TOKENS_ON));
    // Clearing a flag that the face cannot have is allowed.
    let clear = FaceUpdate { flags_mask: 7, ..FaceUpdate::default() };
    assert!(group.update(&clear).is_ok());
    assert_eq!(
        group.to_face_info(),
        FaceInfo { id: group.id(), scope: FaceScope::NonLocal, link_type: LinkType::MultiAccess, is_up: true }
    );
}

#[test]
fn the_mtu_is_the_smaller_of_link_and_override() {
    let table = FaceTable::new();
    let face =
        table.insert(FaceParams { is_datagram: true, link_mtu_bytes: 20_000, ..params("fd://1") }).expect("face");
    assert_eq!(face.mtu_bytes(), 8800);
    face.set_link_mtu_bytes(10);
    assert_eq!(face.mtu_bytes(), 64);
    face.set_link_mtu_bytes(1500);
    face.update(&FaceUpdate { mtu_bytes: Some(1280), ..FaceUpdate::default() }).expect("override");
    assert_eq!(face.mtu_bytes(), 1280);
    face.set_link_mtu_bytes(900);
    assert_eq!(face.link_options().mtu_bytes, 900);
}

#[test]
fn the_path_limits_the_mtu_until_it_changes() {
    let table = FaceTable::new();
    let face = table
        .insert(FaceParams { is_datagram: true, link_mtu_bytes: 1472, ..params("udp4://192.0.2.1:1") })
        .expect("face");
    let changes: [(&str, &dyn Fn()); 3] = [
        ("link", &|| assert!(face.set_link_mtu_bytes(1400))),
        ("state", &|| assert!(face.set_up(false))),
        ("local address", &|| face.set_local_uri(FaceUri::Null)),
    ];
    for (what, change) in changes {
        let path = face.path_mtu.path();
        assert!(face.path_mtu.set(path, 1252));
        assert_eq!((face.mtu_bytes(), face.link_options().mtu_bytes), (1252, 1252));
        change();
        assert_eq!(face.mtu_bytes(), 1400, "{what}");
        assert!(!face.path_mtu.set(path, 1252), "{what}");
    }
    assert_eq!(face.requested_mtu_bytes(), None);
    face.update(&FaceUpdate { mtu_bytes: Some(1300), ..FaceUpdate::default() }).expect("override");
    assert_eq!((face.max_mtu_bytes(), face.requested_mtu_bytes()), (1300, Some(1300)));
    // The largest number ends the override.
    face.update(&FaceUpdate { mtu_bytes: Some(u64::MAX), ..FaceUpdate::default() }).expect("override");
    assert_eq!((face.max_mtu_bytes(), face.requested_mtu_bytes()), (1400, None));
}

#[test]
fn expiration_counts_down_and_state_toggles() {
    let table = FaceTable::new();
    let face = table.insert(params("fd://1")).expect("face");
    assert_eq!(face.expiration_period_ms(), None);
    face.set_expiration(Some(Instant::now() + Duration::from_secs(600)));
    let left = face.expiration_period_ms().expect("expires");
    assert!((590_000..=600_000).contains(&left), "{left}");
    face.set_expiration(Some(Instant::now()));
    assert!(face.expiration_period_ms().expect("expires") <= 1);
    face.set_expiration(None);
    assert_eq!(face.expiration_period_ms(), None);
    assert!(face.is_up() && face.set_up(false) && !face.is_up());
}

static PORT: PortScheme = PortScheme {
    name: "dev",
    parse: |parser, text| {
        parser.device_and_options(text, "a device").map(|(device, options)| (device.to_owned(), options))
    },
    separator: Some('?'),
    can_be_bare: false,
};

#[test]
fn permanent_udp_faces_to_other_hosts_keep_their_path_open() {
    let table = FaceTable::new();
    let face = |remote: &str, local: &str| {
        let local = FaceUri::parse(local, &UriSchemes { ports: &[&PORT], tunnels: &[] }).expect("URI");
        let mut params = FaceParams::new(remote.parse().expect("URI"), local);
        params.allowed_persistencies = &[FacePersistency::Persistent, FacePersistency::Permanent];
        table.insert(params).expect("face")
    };
    let permanent = FaceUpdate { persistency: Some(FacePersistency::Permanent), ..FaceUpdate::default() };
    let keep_alive = FaceFlags::KEEP_ALIVE;
    for (remote, local, expected) in [
        ("udp4://192.0.2.1:6363", "udp4://192.0.2.2:6363", true),
        ("udp6://[2001:db8::1]:6363", "udp6://[2001:db8::2]:6363", true),
        ("udp4://127.0.0.1:6363", "udp4://127.0.0.1:6364", false),
        ("udp4://192.0.2.1:6363", "dev://eth0?ip=192.0.2.2&port=6363", false),
        ("tcp4://192.0.2.1:6363", "tcp4://192.0.2.2:6363", false),
    ] {
        let one = face(remote, local);
        assert!(!one.flags().contains(keep_alive), "{remote}");
        one.update(&permanent).expect("permanent");
        assert_eq!(one.flags().contains(keep_alive), expected, "{remote} {local}");
        // Unless the same change sets the flag explicitly.
        let one = face(remote, local);
        one.update(&FaceUpdate { flags_mask: keep_alive.0, ..permanent }).expect("permanent");
        assert!(!one.flags().contains(keep_alive), "{remote}");
        let on = FaceUpdate { flags: keep_alive, flags_mask: keep_alive.0, ..FaceUpdate::default() };
        let can = remote.starts_with("udp") && local.starts_with("udp");
        assert_eq!(one.update(&on).is_ok(), can, "{remote} {local}");
        // The flag stays unchanged if the face is permanent already.
        one.update(&permanent).expect("permanent");
        assert_eq!(one.flags().contains(keep_alive), can, "{remote} {local}");
    }
}
