//! Tests of the packet templates and of whole measurements through an in-process forwarder.

use super::packets::{InterestTemplate, Kind, scan};
use super::*;
use crate::endpoint::{LpFields, write_lp};
use crate::testing::{Faults, Loopback};
use namehop_wire::lp::{LpPacket, NackReason};
use namehop_wire::security::{DigestSigner, HmacSigner, HmacVerifier, verify_interest};
use namehop_wire::{Data, Interest};

fn prefix() -> Name {
    "/bench/test".parse().unwrap()
}

#[test]
fn the_interest_template_makes_valid_distinct_interests() {
    let template = InterestTemplate::new(&prefix(), 1000);
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
}

#[test]
fn the_data_template_makes_valid_data_with_and_without_token() {
    for payload in [0usize, 1, 200, 300, 8000] {
        let template = DataTemplate::new(&prefix(), payload, 1000).unwrap();
        let mut bytes = Vec::new();
        template.append(&mut bytes, 7, &[]);
        let data = Data::decode(&bytes).unwrap();
        assert_eq!((data.content.len(), data.freshness_ms), (payload, Some(1000)));
        assert_eq!(template.sequence(data.name.value()), Some(7));
        let scanned = scan(&bytes).unwrap();
        assert_eq!((scanned.kind, scanned.name, scanned.pit_token.len()), (Kind::Data, data.name.value(), 0));

        let mut wrapped = Vec::new();
        template.append(&mut wrapped, 7, b"token");
        let packet = LpPacket::decode(&wrapped).unwrap();
        assert_eq!(packet.pit_token.as_slice(), b"token");
        assert_eq!(packet.fragment, Some(bytes.as_slice()));
        assert_eq!(scan(&wrapped).unwrap().pit_token, b"token");
    }
    assert!(DataTemplate::new(&prefix(), 8790, 0).is_none());
}

#[test]
fn scanning_tells_nacks_and_survives_garbage() {
    let mut interest = Vec::new();
    InterestTemplate::new(&prefix(), 1000).append(&mut interest, 1, 2);
    let mut writer = namehop_wire::tlv::Writer::new();
    let fields = LpFields { nack: Some(NackReason::NO_ROUTE), ..LpFields::default() };
    write_lp(&mut writer, &fields, &interest);
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

/// Runs a measurement through a loopback forwarder.
fn measure(faults: Faults, change: impl FnOnce(&mut LoadConfig)) -> Result<LoadReport, LoadError> {
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
    let mut config = config(&socket);
    change(&mut config);
    let report = run(&config, &Arc::new(AtomicBool::new(false)));
    drop(end);
    forwarder.join().unwrap();
    report
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

/// A forwarder of one connection that answers commands with these codes, as long as there are some. Gives the commands.
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
    assert!(matches!(run(&bad, &stop), Err(LoadError::Process { .. })), "at once, not after the measurement");
}
