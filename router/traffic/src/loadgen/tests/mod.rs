//! Tests of the packet templates and of measurements through an in-process forwarder.

mod port;
mod session;

use super::packets::{DataTemplate, InterestTemplate, Kind, scan};
use super::*;
use namehop_client::testing::{Faults, Loopback};
use namehop_wire::lp::{LpPacket, NackReason};
use namehop_wire::security::{DigestSigner, HmacSigner, HmacVerifier, verify_interest};
use namehop_wire::tlv::{Writer, types};
use namehop_wire::{Data, Interest};

fn prefix() -> Name {
    "/bench/test".parse().unwrap()
}

fn pattern() -> Pattern {
    Pattern::new(prefix(), Duration::from_secs(1))
}

#[test]
fn the_interest_template_makes_valid_distinct_interests() {
    let template = InterestTemplate::new(&pattern()).unwrap();
    let mut bytes = Vec::new();
    template.append(&mut bytes, 0x0102_0304_0506_0708, 0xAABB_CCDD);
    let interest = Interest::decode(&bytes).unwrap();
    assert_eq!(interest.nonce, Some(0xAABB_CCDD));
    assert_eq!(interest.lifetime_ms, Some(1000));
    assert_eq!(interest.name.get(2).unwrap().value, [1, 2, 3, 4, 5, 6, 7, 8]);
    assert!(prefix().is_prefix_of(interest.name));
    assert_eq!(template.sequence(interest.name.value()), Some(0x0102_0304_0506_0708));
    assert_eq!(template.sequence(&interest.name.value()[1..]), None);
    assert_eq!(template.sequence(&[]), None);
    let longer = interest.name.to_owned().append_generic(b"x");
    assert_eq!(template.sequence(longer.value()), None, "a longer name must not satisfy the Interest");
}

#[test]
fn all_options_of_interests_are_on_the_wire() {
    let shape = DataShape { suffix: Name::new(), freshness_ms: 10, payload_bytes: 77 };
    let hints: Vec<Name> = vec!["/hint/1".parse().unwrap(), "/hint/2".parse().unwrap()];
    let pattern = Pattern {
        can_be_prefix: true,
        must_be_fresh: true,
        hop_limit: Some(9),
        forwarding_hint: hints.clone(),
        digest_of: Some(shape.clone()),
        ..pattern()
    };
    let template = InterestTemplate::new(&pattern).unwrap();
    let (mut bytes, mut data) = (Vec::new(), Vec::new());
    template.append(&mut bytes, 5, 6);
    let interest = Interest::decode(&bytes).unwrap();
    assert_eq!((interest.can_be_prefix, interest.must_be_fresh), (true, true));
    assert_eq!((interest.hop_limit, interest.nonce), (Some(9), Some(6)));
    let delegations: Vec<Name> = interest.forwarding_hint.unwrap().iter().map(|name| name.to_owned()).collect();
    assert_eq!(delegations, hints);
    // The digest matches the Data of a producer with that shape, and no other Data.
    let reply = DataTemplate::new(&prefix(), &shape).unwrap();
    assert!(reply.append(&mut data, packets::without_digest(interest.name.value()), &[]));
    assert!(interest.matches_data(&Data::decode(&data).unwrap()));
    let mut other = Vec::new();
    DataTemplate::new(&prefix(), &DataShape { payload_bytes: 78, ..shape }).unwrap().append(
        &mut other,
        packets::without_digest(interest.name.value()),
        &[],
    );
    assert!(!interest.matches_data(&Data::decode(&other).unwrap()));
}

#[test]
fn the_data_template_makes_valid_data_with_and_without_token() {
    let numbered = prefix().append_generic(7_u64.to_be_bytes());
    for (payload_bytes, suffix) in [(0, "/"), (1, "/x"), (200, "/"), (300, "/a/b"), (8000, "/")] {
        let suffix: Name = suffix.parse().unwrap();
        let shape = DataShape { suffix: suffix.clone(), freshness_ms: 1000, payload_bytes };
        let template = DataTemplate::new(&numbered, &shape).unwrap();
        let mut bytes = Vec::new();
        assert!(template.append(&mut bytes, numbered.value(), &[]));
        let data = Data::decode(&bytes).unwrap();
        assert_eq!((data.content.len(), data.freshness_ms), (payload_bytes, Some(1000)));
        assert_eq!(data.name.value(), [numbered.value(), suffix.value()].concat());
        let scanned = scan(&bytes).unwrap();
        assert_eq!((scanned.kind, scanned.name, scanned.pit_token.len()), (Kind::Data, data.name.value(), 0));

        let mut wrapped = Vec::new();
        template.append(&mut wrapped, numbered.value(), b"token");
        let packet = LpPacket::decode(&wrapped).unwrap();
        assert_eq!(packet.pit_token.as_slice(), b"token");
        assert_eq!(packet.fragment, Some(bytes.as_slice()));
        assert_eq!(scan(&wrapped).unwrap().pit_token, b"token");
    }
    let shape = DataShape { payload_bytes: 8790, ..DataShape::default() };
    assert!(DataTemplate::new(&numbered, &shape).is_err());
}

#[test]
fn nacks_carry_the_interest_its_token_and_the_reason() {
    let mut interest = Vec::new();
    InterestTemplate::new(&pattern()).unwrap().append(&mut interest, 1, 2);
    for reason in [NackReason::NONE, NackReason::CONGESTION, NackReason::DUPLICATE, NackReason::NO_ROUTE] {
        let mut nack = Vec::new();
        packets::append_nack(&mut nack, &packets::nack_field(reason), &interest, b"tok");
        let packet = LpPacket::decode(&nack).unwrap();
        assert_eq!((packet.nack, packet.fragment), (Some(reason), Some(interest.as_slice())));
        assert_eq!(packet.pit_token.as_slice(), b"tok");
        let scanned = scan(&nack).unwrap();
        assert_eq!((scanned.kind, scanned.nack_reason, scanned.packet), (Kind::Nack, reason, interest.as_slice()));
    }
}

#[test]
fn only_digests_at_the_end_of_names_are_taken_off() {
    let name = prefix().append(namehop_wire::ComponentRef::implicit_digest(&[3; 32]));
    assert_eq!(packets::without_digest(name.value()), prefix().value());
    assert_eq!(packets::without_digest(prefix().value()), prefix().value());
    // A longer component that ends like a digest component.
    let inside = [&[9, 1, 32][..], &[3; 32]].concat();
    let name = prefix().append_generic(&inside);
    assert_eq!(packets::without_digest(name.value()), name.value());
}

#[test]
fn scanning_recognises_nacks_and_survives_garbage() {
    let mut interest = Vec::new();
    InterestTemplate::new(&pattern()).unwrap().append(&mut interest, 1, 2);
    let mut writer = Writer::new();
    writer.nested(types::LP_PACKET, |writer| {
        writer.nested(types::LP_NACK, |writer| {
            writer.nni(types::LP_NACK_REASON, NackReason::NO_ROUTE.code());
        });
        writer.element(types::LP_FRAGMENT, &interest);
    });
    assert_eq!(scan(writer.as_slice()).unwrap().kind, Kind::Nack);
    assert_eq!(scan(&interest).unwrap().kind, Kind::Interest);
    for length in 0..writer.len() {
        assert_eq!(scan(&writer.as_slice()[..length]), None);
    }
    for byte in 0..=255u8 {
        let _ = scan(&[byte, 255, 255, 255]);
    }
}

fn config(socket: &std::path::Path) -> LoadConfig {
    LoadConfig {
        role: Role::Both,
        consumer: TransportUri::Unix(socket.to_owned()),
        producer: TransportUri::Unix(socket.to_owned()),
        control: None,
        signer: Arc::new(DigestSigner),
        load: Load {
            prefix: prefix(),
            in_flight: 32,
            payload_bytes: 100,
            names: 0,
            freshness_ms: 0,
            lifetime: Duration::from_millis(200),
        },
        warm_up: Duration::from_millis(100),
        duration: Duration::from_millis(500),
        pid: Some(std::process::id()),
    }
}

/// Runs a measurement over a loopback forwarder.
fn measure(faults: Faults, change: impl FnOnce(&mut LoadConfig)) -> Result<LoadReport, LoadError> {
    let mut report = None;
    with_forwarder(faults, |socket, _| {
        let mut config = config(socket);
        change(&mut config);
        report = Some(run(&config, &Arc::new(AtomicBool::new(false))));
    });
    report.unwrap()
}

/// Runs `work` with a loopback forwarder, which ends on request.
fn with_forwarder(faults: Faults, work: impl FnOnce(&std::path::Path, Box<dyn FnOnce() + Send>)) {
    let directory = tempfile::tempdir().unwrap();
    let socket = directory.path().join("hub.sock");
    let hub = Loopback::with_faults(faults);
    let (ready, listening) = std::sync::mpsc::channel();
    let (end, ended) = tokio::sync::oneshot::channel::<()>();
    let path = socket.clone();
    let forwarder = thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            hub.listen(&path).unwrap();
            ready.send(()).unwrap();
            let _ = ended.await;
        });
    });
    listening.recv().unwrap();
    work(&socket, Box::new(move || drop(end)));
    forwarder.join().unwrap();
}

#[test]
fn a_measurement_counts_exchanges_and_times_them() {
    let report = measure(Faults::default(), |_| {}).unwrap();
    assert!(report.exchanges > 100, "{report:?}");
    assert_eq!(report.rtt_ns.as_ref().expect("a consumer").len(), report.exchanges);
    assert!(report.served >= report.exchanges);
    assert_eq!((report.timeouts, report.nacks, report.unexpected, report.malformed), (0, 0, 0, 0));
    assert!(report.observed_cpu.is_some());
    assert!(report.exchanges_per_second() > 200.0);
}

#[test]
fn lost_interests_are_counted_and_do_not_stop_the_measurement() {
    let report = measure(Faults { lose_every: 20, ..Faults::default() }, |_| {}).unwrap();
    assert!(report.timeouts > 10 && report.exchanges > 100, "{report:?}");
}

#[test]
fn without_a_producer_everything_is_nacked() {
    let report = measure(Faults::default(), |config| config.role = Role::Consumer).unwrap();
    assert_eq!(report.exchanges, 0);
    assert!(report.nacks > 100, "{report:?}");
}

#[test]
fn cycling_names_stay_within_their_number() {
    let report = measure(Faults::default(), |config| {
        config.load.names = 40;
        config.load.in_flight = 40;
    });
    assert!(report.unwrap().exchanges > 100);
}

/// A forwarder with one connection that answers one command with each of these codes. Returns the commands.
fn command_server(socket: &std::path::Path, codes: Vec<u64>) -> thread::JoinHandle<Vec<Vec<u8>>> {
    use std::io::{Read, Write};
    let listener = std::os::unix::net::UnixListener::bind(socket).unwrap();
    thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut commands = Vec::new();
        for code in codes {
            let mut buffer = vec![0; 9000];
            let length = stream.read(&mut buffer).unwrap();
            buffer.truncate(length);
            let name = Interest::decode(&buffer).unwrap().name.to_owned();
            let mut response = namehop_wire::tlv::Writer::new();
            response.nested(101, |writer| {
                writer.nni(102, code).element(103, b"said").nested(104, |writer| {
                    writer.nni(105, 300);
                });
            });
            let data = namehop_wire::DataBuilder::new(&name).content(response.into_vec()).sign(&DigestSigner).unwrap();
            stream.write_all(&data).unwrap();
            commands.push(buffer);
        }
        commands
    })
}

#[test]
fn commands_are_signed_and_a_refusal_leaves_no_face_behind() {
    let directory = tempfile::tempdir().unwrap();
    let socket = directory.path().join("control.sock");
    let server = command_server(&socket, vec![200, 403, 200]);
    let secret = b"known to the operator";
    let config = LoadConfig {
        role: Role::Producer,
        producer: "udp4://127.0.0.1:9".parse().unwrap(),
        control: Some(TransportUri::Unix(socket.clone())),
        signer: Arc::new(HmacSigner::new(secret, "/operator/KEY/1".parse().unwrap())),
        ..config(&socket)
    };
    let error = run(&config, &Arc::new(AtomicBool::new(false))).unwrap_err();
    assert!(matches!(error, LoadError::Register { source: CommandError::Refused { code: 403, .. }, .. }), "{error}");
    let commands = server.join().unwrap();
    let commands: Vec<_> = commands.iter().map(|command| Interest::decode(command).unwrap()).collect();
    for (command, verb) in commands.iter().zip(["faces/create", "rib/register", "faces/destroy"]) {
        let prefix: Name = format!("/localhost/nfd/{verb}").parse().unwrap();
        assert!(prefix.is_prefix_of(command.name), "{}", command.name);
        verify_interest(command, &HmacVerifier::new(secret)).unwrap();
    }
    let times: Vec<_> = commands.iter().map(|command| command.signature_info.unwrap().time_ms).collect();
    assert!(times.is_sorted_by(|earlier, later| earlier < later), "{times:?}");
}

#[test]
fn senseless_numbers_and_absent_forwarders_are_errors() {
    let directory = tempfile::tempdir().unwrap();
    let mut bad = config(&directory.path().join("nobody.sock"));
    let stop = Arc::new(AtomicBool::new(false));
    assert!(run(&bad, &stop).unwrap_err().to_string().contains("namehop run"));
    bad.load.names = 3;
    assert!(matches!(run(&bad, &stop), Err(LoadError::Configuration(_))));
    bad.load.names = 0;
    bad.load.payload_bytes = 9000;
    assert!(matches!(run(&bad, &stop), Err(LoadError::Configuration(_))));
    bad.load.payload_bytes = 10;
    for time in [Duration::ZERO, Duration::MAX] {
        let wrong = LoadConfig { load: Load { lifetime: time, ..bad.load.clone() }, ..bad.clone() };
        assert!(matches!(run(&wrong, &stop), Err(LoadError::Configuration(_))));
        let wrong = LoadConfig { duration: time, ..bad.clone() };
        assert!(matches!(run(&wrong, &stop), Err(LoadError::Configuration(_))));
    }
    let wrong = LoadConfig { producer: "udp4://127.0.0.1".parse().unwrap(), ..bad.clone() };
    assert!(run(&wrong, &stop).unwrap_err().to_string().contains("--control"));
    bad.pid = Some(u32::MAX);
    assert!(
        matches!(run(&bad, &stop), Err(LoadError::Process { .. })),
        "the process must be checked before the measurement"
    );
}
