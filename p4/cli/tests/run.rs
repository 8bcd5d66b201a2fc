//! `namehop p4 run` as a process: captures through compiled programs, several workers, and programs that cannot run.

use std::fs;
use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

/// No more frames than may wait for a port, because reading a capture is faster than writing one.
const FRAMES: u32 = 1000;

fn program() -> Command {
    Command::new(env!("CARGO_BIN_EXE_namehop-p4"))
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Compiles a program with these statements in its ingress and the first header of a packet in `hdr.first`.
fn compile(folder: &Path, name: &str, declarations: &str, ingress: &str) -> PathBuf {
    let (source, result) = (folder.join(format!("{name}.p4")), folder.join(format!("{name}.so")));
    let written = fs::write(
        &source,
        format!(
            "#include <core.p4>\n#include <v1model.p4>\n#include <namehop.p4>\n\
             header ethernet_t {{ bit<96> addresses; bit<16> kind; }}\n\
             struct headers_t {{ ethernet_t first; }}\nstruct meta_t {{ }}\n\
             parser P(packet_in p, out headers_t hdr, inout meta_t meta, inout standard_metadata_t standard) {{\n\
             state start {{ p.extract(hdr.first); transition accept; }} }}\n\
             control V(inout headers_t hdr, inout meta_t meta) {{ apply {{ }} }}\n\
             control I(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t standard) {{\n{declarations}\n\
             apply {{ {ingress} }} }}\n\
             control E(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t standard) {{ apply {{ }} }}\n\
             control U(inout headers_t hdr, inout meta_t meta) {{ apply {{ }} }}\n\
             control D(packet_out p, in headers_t hdr) {{ apply {{ p.emit(hdr.first); }} }}\n\
             V1Switch(P(), V(), I(), E(), U(), D()) main;\n"
        ),
    );
    written.expect("written");
    let output = program().arg("compile").arg(&source).arg("-o").arg(&result).output().expect("the program starts");
    assert!(output.status.success(), "{}", text(&output));
    result
}

fn frame(number: u32) -> Vec<u8> {
    let length = 60 + number as usize % 1400;
    let mut frame = [&[2; 12][..], &[8, 0], &number.to_be_bytes()].concat();
    frame.resize(length, number as u8);
    frame
}

fn write_capture(path: &Path, frames: &[Vec<u8>]) {
    let mut bytes = Vec::new();
    for number in [0xA1B2_C3D4_u32, 0x0004_0002, 0, 0, 65_535, 1] {
        bytes.extend(number.to_le_bytes());
    }
    for frame in frames {
        for number in [1, 0, frame.len() as u32, frame.len() as u32] {
            bytes.extend(number.to_le_bytes());
        }
        bytes.extend(frame);
    }
    fs::write(path, bytes).expect("written");
}

fn read_capture(path: &Path) -> Vec<Vec<u8>> {
    let bytes = fs::read(path).expect("the capture exists");
    let (mut frames, mut rest) = (Vec::new(), &bytes[24..]);
    while let Some((header, behind)) = rest.split_at_checked(16) {
        let length = u32::from_le_bytes(header[8..12].try_into().expect("four")) as usize;
        frames.push(behind[..length].to_vec());
        rest = &behind[length..];
    }
    frames
}

/// A running program, and requests to its control socket.
struct Running {
    child: std::process::Child,
    socket: PathBuf,
}

impl Running {
    /// Starts a program with these ports; one of them must not end.
    fn start(folder: &Path, program_file: &Path, ports: &[String]) -> Running {
        let socket = folder.join("control");
        let mut command = program();
        command.arg("run").arg(program_file).arg("--control").arg(&socket);
        for port in ports {
            command.arg("--port").arg(port);
        }
        let child = command.spawn().expect("the program starts");
        let end = Instant::now() + Duration::from_secs(30);
        while UnixStream::connect(&socket).is_err() {
            assert!(Instant::now() < end, "no socket");
            thread::sleep(Duration::from_millis(10));
        }
        Running { child, socket }
    }

    fn ask(&self, arguments: &[&str]) -> Result<String, String> {
        let output = program().args(arguments).arg("--control").arg(&self.socket).output().expect("the program starts");
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        if output.status.success() { Ok(said) } else { Err(text(&output)) }
    }

    fn end(mut self) {
        kill(Pid::from_raw(self.child.id() as i32), Signal::SIGTERM).expect("told");
        assert!(self.child.wait().expect("the program ends").success());
        assert!(!self.socket.exists(), "the socket must be removed");
    }
}

#[test]
fn registers_meters_and_reports_are_seen_from_outside() {
    let folder = tempfile::tempdir().expect("a folder");
    let declarations = "register<bit<32>>(10000) lengths; register<tuple<bit<4>, int<33>, bool, bit<100>>>(2) parts;\n\
                        meter(3, MeterType.bytes) limits; counter(3, CounterType.packets) colors;";
    let ingress = "bit<32> number; bit<2> color; lengths.read(number, 9999); lengths.write(9999, number + 1);\n\
                   lengths.write((bit<32>)hdr.first.kind, standard.packet_length);\n\
                   tuple<bit<4>, int<33>, bool, bit<100>> all = { 4w9, -33s2, true, 100w0x123456789012345678901 };\n\
                   parts.write(1, all); limits.execute_meter(1, color); colors.count((bit<32>)color);\n\
                   digest<tuple<bit<16>, bit<9>, bit<3>>>(1, { hdr.first.kind, standard.ingress_port, 3w5 }); \
                   mark_to_drop(standard);";
    let keeps = compile(folder.path(), "keeps", declarations, ingress);
    let mut frames: Vec<_> = (0..300).map(frame).collect();
    for (number, frame) in frames.iter_mut().enumerate() {
        frame[12..14].copy_from_slice(&(number as u16).to_be_bytes());
    }
    let input = folder.path().join("in.pcap");
    write_capture(&input, &frames);
    let memif = format!("1=memif://{}?id=0", folder.path().join("memif").display());
    let running = Running::start(folder.path(), &keeps, &[format!("7=pcap://{}", input.display()), memif]);
    let end = Instant::now() + Duration::from_secs(30);
    while running.ask(&["register", "read", "lengths", "9999"]).as_deref() != Ok("I.lengths(9999): 0x12c\n") {
        assert!(Instant::now() < end, "300 packets");
    }
    let ask = |arguments: &[&str]| running.ask(arguments);
    assert_eq!(ask(&["register", "read", "lengths"]).expect("all").lines().count(), 301);
    assert_eq!(ask(&["register", "read", "lengths", "17"]).as_deref(), Ok("I.lengths(17): 0x4d\n"));
    let parts = "I.parts(1): 0:0x9 1:0x1fffffffe 2:0x1 3:0x123456789012345678901\n";
    assert_eq!(ask(&["register", "read", "parts"]).as_deref(), Ok(parts));
    ask(&["register", "write", "parts", "0", "1:5", "3:0xabc"]).expect("written");
    assert_eq!(ask(&["register", "read", "parts", "0"]).as_deref(), Ok("I.parts(0): 0:0x0 1:0x5 2:0x0 3:0xabc\n"));
    ask(&["register", "write", "lengths", "9998", "192.0.2.1"]).expect("written");
    assert_eq!(ask(&["register", "read", "lengths", "9998"]).as_deref(), Ok("I.lengths(9998): 0xc0000201\n"));
    ask(&["register", "reset", "lengths"]).expect("reset");
    assert_eq!(ask(&["register", "read", "lengths"]).as_deref(), Ok(""));
    let json: Value =
        serde_json::from_str(&ask(&["register", "read", "parts", "0", "--json"]).expect("JSON")).expect("JSON");
    assert_eq!(json["cells"][0]["value"]["1"], "0x5");
    let bytes: usize = frames.iter().map(Vec::len).sum();
    let counted = format!("I.colors(0): 300 packets, {bytes} bytes\n");
    assert_eq!(ask(&["counter", "read", "colors"]), Ok(counted), "an unconfigured meter returns green");
    ask(&["meter", "set", "limits", "1", "--cir", "1000", "--cburst", "1500", "--pir", "2000", "--pburst", "3000"])
        .expect("set");
    let set = "I.limits(1): committed 1000 bytes/s, burst 1500; peak 2000 bytes/s, burst 3000\n";
    assert_eq!(ask(&["meter", "read", "limits"]).as_deref(), Ok(set));
    ask(&["meter", "reset", "limits"]).expect("reset");
    assert_eq!(ask(&["meter", "read", "limits"]).as_deref(), Ok(""));
    let reports = ask(&["digest", "--count", "300"]).expect("all");
    for (number, line) in reports.lines().enumerate() {
        assert_eq!(line, format!("digest_0: 0:{number:#x} 1:0x7 2:0x5"));
    }
    assert_eq!(
        (reports.lines().count(), ask(&["digest"]).as_deref()),
        (300, Ok("")),
        "each report must be returned once"
    );
    for (arguments, part) in [
        (&["register", "read", "none"][..], "register: there is no 'none'"),
        (&["register", "read", "lengths", "10000"], "register I.lengths: index 10000 is out of range for 10000 cells"),
        (&["register", "write", "lengths", "1", "0x100000000"], "does not fit into 32 bits"),
        (&["register", "write", "lengths", "1", "x"], "register I.lengths"),
        (&["register", "write", "parts", "1", "5"], "PART:VALUE"),
        (&["register", "write", "parts", "1", "0:1", "0:2"], "a part has more than one value"),
        (&["meter", "read", "limits", "3"], "meter I.limits: index 3 is out of range for 3 cells"),
        (
            &["meter", "set", "limits", "1", "--cir", "3", "--cburst", "1", "--pir", "2", "--pburst", "1"],
            "above the peak rate",
        ),
        (&["meter", "reset", "colors"], "meter: there is no 'colors'"),
    ] {
        let refusal = ask(arguments).expect_err(part);
        assert!(refusal.contains(part), "{arguments:?}: {refusal}");
    }
    running.end();
}

/// Runs a program with a capture at port 0, and with ports 1 and 2 for output. Returns both outputs and the report.
fn run(folder: &Path, program_file: &Path, frames: &[Vec<u8>], arguments: &[&str]) -> ([Vec<Vec<u8>>; 2], Value) {
    let input = folder.join("in.pcap");
    write_capture(&input, frames);
    let outputs = [1, 2].map(|port| folder.join(format!("out{port}.pcap")));
    let mut command = program();
    command.arg("run").arg(program_file).arg("--json").args(arguments);
    command.arg("--port").arg(format!("0=pcap://{}", input.display()));
    for (port, output) in [1, 2].into_iter().zip(&outputs) {
        command.arg("--port").arg(format!("{port}=pcap://?out={}", output.display()));
    }
    let output = command.output().expect("the program starts");
    assert!(output.status.success(), "{}", text(&output));
    let report = serde_json::from_slice(&output.stdout).expect("JSON");
    (outputs.map(|path| read_capture(&path)), report)
}

#[test]
fn packets_go_in_place_through_one_and_several_workers_in_their_order() {
    let folder = tempfile::tempdir().expect("a folder");
    let counted = "counter(1, CounterType.packets) all;";
    let hub = compile(
        folder.path(),
        "hub",
        counted,
        "all.count(0); if (hdr.first.kind == 0x0800) { hdr.first.kind = 0x88b5; standard.egress_spec = 1; } else \
         { standard.egress_spec = 77; }",
    );
    let frames: Vec<_> = (0..FRAMES).map(frame).collect();
    let mut with_others = frames.clone();
    with_others.insert(17, [&[2; 12][..], &[9, 9], &[0; 46]].concat());
    let mut expected = frames;
    for frame in &mut expected {
        frame[12..14].copy_from_slice(&[0x88, 0xB5]);
    }
    for arguments in [&[][..], &["--batch", "1"], &["--batch", "64", "--workers", "3"]] {
        let ([one, two], report) = run(folder.path(), &hub, &with_others, arguments);
        assert!(one == expected && two.is_empty(), "{arguments:?}: {}", one.len());
        assert_eq!((&report["no_port"], &report["ports"][0]["received_packets"]), (&1.into(), &(FRAMES + 1).into()));
        assert_eq!(report["ports"][1]["sent_packets"], FRAMES);
    }
}

#[test]
#[ignore = "slow"]
fn the_size_of_batches_is_chosen_on_the_packets_that_come() {
    let folder = tempfile::tempdir().expect("a folder");
    // Slower than reading the capture, so that packets wait and bursts are full.
    let ingress = "bit<32> sum = 0; for (bit<8> i in 1 .. 200) { hash(sum, HashAlgorithm.crc32, 32w0, { \
                   hdr.first.addresses, sum }, 64w0x100000000); } if (sum != 1) { all.count(0); } \
                   mark_to_drop(standard);";
    let sink = compile(folder.path(), "sink", "counter(1, CounterType.packets) all;", ingress);
    let frames = vec![[&[2; 12][..], &[8, 0], &[0; 46]].concat(); 20_000];
    let (_, report) = run(folder.path(), &sink, &frames, &[]);
    assert_eq!(
        (&report["dropped"], &report["lost"]),
        (&20_000.into(), &0.into()),
        "no packet may be lost while measuring"
    );
    let batches = &report["batches"][0];
    assert!(batches["choices"].as_u64().is_some_and(|choices| choices >= 1), "{report}");
    let measured = batches["measured"].as_array().expect("a list");
    assert!(measured.iter().any(|size| size["batch"] == batches["batch"]), "{report}");
    assert!(measured.len() >= 6 && measured.iter().all(|size| size["cycles"].as_f64() > Some(0.0)), "{report}");
    assert!(batches["model_batch"].is_u64(), "{report}");
    let (_, report) = run(folder.path(), &sink, &frames, &["--batch", "8"]);
    assert_eq!((&report["batches"], &report["dropped"]), (&serde_json::json!([]), &20_000.into()));
    // With too few packets per burst, nothing is measured.
    let (_, report) = run(folder.path(), &sink, &frames[..20], &[]);
    assert_eq!((&report["batches"][0]["choices"], &report["batches"][0]["batch"]), (&0.into(), &32.into()));
}

#[test]
#[ignore = "slow"]
fn packets_are_copied_dropped_and_go_round() {
    let folder = tempfile::tempdir().expect("a folder");
    let again = compile(
        folder.path(),
        "again",
        "",
        "standard.egress_spec = 2; if (standard.instance_type == 0) { hdr.first.kind = 1; \
         resubmit_preserving_field_list(0); } \
         else if (hdr.first.addresses == 0) { mark_to_drop(standard); }",
    );
    let mut frames: Vec<_> = (0..300).map(frame).collect();
    frames[7][..12].fill(0);
    let ([one, two], report) = run(folder.path(), &again, &frames, &["--workers", "2"]);
    frames.remove(7);
    assert!(one.is_empty() && two == frames, "{}", two.len());
    assert_eq!((&report["lost"], &report["no_buffer"]), (&0.into(), &0.into()));
    let endless = compile(folder.path(), "endless", "", "standard.egress_spec = 2; resubmit_preserving_field_list(0);");
    let (_, report) = run(folder.path(), &endless, &frames[..3], &[]);
    assert_eq!(report["lost"], 3, "a packet that never terminates is dropped without other effects");
}

#[test]
#[ignore = "slow"]
fn payloads_are_encrypted_in_place_and_in_copies() {
    let folder = tempfile::tempdir().expect("a folder");
    let ingress = |name: &str, more: &str| {
        let way = if name.starts_with("de") { "decrypt" } else { "encrypt" };
        format!("standard.egress_spec = 1; aes_cbc_{way}(1, 128w9 << 120, (bit<128>)hdr.first.kind); {more}")
    };
    let copies = "if (hdr.first.kind == 1) { clone(CloneType.I2E, 1); }";
    let frames: Vec<_> = (0..FRAMES).map(frame).collect();
    for (name, more) in [("straight", ""), ("copied", copies)] {
        let encrypter = compile(folder.path(), name, "", &ingress(name, more));
        let decrypter = compile(folder.path(), &format!("de{name}"), "", &ingress(&format!("de{name}"), more));
        for arguments in [&[][..], &["--batch", "1"], &["--batch", "64", "--workers", "2"]] {
            let ([encrypted, _], _) = run(folder.path(), &encrypter, &frames, arguments);
            assert_eq!(encrypted.len(), frames.len(), "{name} {arguments:?}");
            for (before, after) in frames.iter().zip(&encrypted) {
                assert_eq!(after.len(), 15 + (before.len() - 15).next_multiple_of(16));
                assert!(before[..15] == after[..15] && before[15..31] != after[15..31]);
            }
            let ([mut decrypted, _], _) = run(folder.path(), &decrypter, &encrypted, arguments);
            for (before, after) in frames.iter().zip(&mut decrypted) {
                assert!(after[before.len()..].iter().all(|byte| *byte == 0), "the payload must be padded with zeros");
                after.truncate(before.len());
            }
            assert!(decrypted == frames, "{name} {arguments:?}");
        }
    }
}

#[test]
fn a_library_that_is_missing_is_named() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name);
    // A compiler without that header.
    let compiler = "#!/bin/sh\necho 'cipher.h: fatal error: intel-ipsec-mb.h: No such file or directory' >&2\nexit 1\n";
    fs::write(path("cc"), compiler).expect("written");
    fs::set_permissions(path("cc"), fs::Permissions::from_mode(0o755)).expect("set");
    for (name, part) in [("crypto", "apt install libipsec-mb-dev"), ("l2", "please report this program")] {
        let source = format!("{}/../runtime/programs/{name}.p4", env!("CARGO_MANIFEST_DIR"));
        let mut command = program();
        command.args(["compile", &source, "-o"]).arg(path("out.so")).env("CC", path("cc"));
        let output = command.output().expect("the program starts");
        assert!(!output.status.success() && text(&output).contains(part), "{name}: {}", text(&output));
    }
}

#[test]
fn what_cannot_run_is_named() {
    let folder = tempfile::tempdir().expect("a folder");
    let keeps = compile(
        folder.path(),
        "keeps",
        "register<bit<32>>(4) last;",
        "last.write(0, standard.packet_length); standard.egress_spec = 1;",
    );
    let text_file = folder.path().join("text.so");
    fs::write(&text_file, "no program").expect("written");
    let port = "0=pcap:///nonexistent/in.pcap";
    let table = [
        (vec![keeps.to_str().expect("a name"), "--port", port], "nonexistent"),
        (vec![keeps.to_str().expect("a name"), "--port", port, "--workers", "2"], "a single worker"),
        (vec![keeps.to_str().expect("a name"), "--port", "0=dev://no-such-if0"], "0=dev://no-such-if0"),
        (vec![keeps.to_str().expect("a name"), "--port", "511=dev://lo"], "0 to 510"),
        (vec![keeps.to_str().expect("a name"), "--port", "0=udp4://192.0.2.1:6363"], "cannot be a port of a switch"),
        (vec![text_file.to_str().expect("a name"), "--port", port], "namehop p4 compile"),
        (vec!["/nonexistent.so", "--port", port], "/nonexistent.so"),
    ];
    for (arguments, part) in table {
        let output = program().arg("run").args(&arguments).output().expect("the program starts");
        assert!(!output.status.success() && text(&output).contains(part), "{arguments:?}: {}", text(&output));
    }
}

#[test]
fn a_program_that_is_wrong_leaves_nothing_behind() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name);
    fs::write(path("wrong.p4"), "control c() { apply { x = 1; } }").expect("written");
    let right = concat!(env!("CARGO_MANIFEST_DIR"), "/../runtime/programs/l2.p4");
    let table = [
        (path("wrong.p4"), path("out.so"), path("out.txt"), "there is no 'x' in this scope"),
        (path("missing.p4"), path("out.so"), path("out.txt"), "missing.p4"),
        (right.into(), path("none/out.so"), path("out.txt"), "none/out.so"),
        (right.into(), path("out.so"), path("none/out.txt"), "none/out.txt"),
    ];
    for (source, result, info, part) in table {
        let arguments = [source.as_os_str(), "-o".as_ref(), result.as_ref(), "--p4info".as_ref(), info.as_ref()];
        let output = program().arg("compile").args(arguments).output().expect("the program starts");
        assert_eq!(output.status.code(), Some(1), "{part}");
        assert!(text(&output).contains(part), "{part}: {}", text(&output));
        let left = fs::read_dir(folder.path()).expect("the folder").map(|entry| entry.expect("a file").file_name());
        assert_eq!(left.collect::<Vec<_>>(), ["wrong.p4"], "{part}");
    }
}

#[test]
fn a_program_that_runs_is_controlled_by_its_user() {
    let folder = tempfile::tempdir().expect("a folder");
    let table = "counter(4, CounterType.packets) all; action send(bit<9> port) { standard.egress_spec = port; \
        all.count(1); }\n\
                 table kinds { key = { hdr.first.kind: exact; } actions = { send; } size = 1000; const entries = { } \
                 }\n\
                 table more { key = { hdr.first.kind: ternary; } actions = { send; } size = 3; }";
    let table = table.replace("const entries = { }", "");
    let switch = compile(folder.path(), "switch", &table, "kinds.apply(); more.apply();");
    let memif = format!("0=memif://{}?id=0", folder.path().join("memif").display());
    let running = Running::start(folder.path(), &switch, &[memif]);
    let socket = running.socket.clone();
    assert_eq!(fs::metadata(&socket).expect("the socket exists").permissions().mode() & 0o777, 0o600);
    let ask = |arguments: &[&str]| running.ask(arguments);
    ask(&["table", "add", "kinds kind:0x0800 send(port:3)"]).expect("added");
    let again = ask(&["table", "add", "kinds kind:0x0800 send(port:4)"]).expect_err("the entry exists");
    assert!(again.contains("I.kinds") && again.contains("already"), "{again}");
    ask(&["table", "modify", "kinds kind:0x0800 send(port:5)"]).expect("modified");
    assert_eq!(ask(&["table", "list", "kinds"]).as_deref(), Ok("I.kinds \"hdr.first.kind\":0x800 I.send(port:0x5)\n"));
    let file = folder.path().join("entries");
    let lines =
        |count: u32| (1..=count).map(|kind| format!("more {kind} kind:{kind} send(port:{kind})\n")).collect::<String>();
    fs::write(&file, lines(4)).expect("written");
    let full =
        ask(&["table", "load", file.to_str().expect("a name")]).expect_err("the table has room for three entries");
    assert!(full.contains("line 4") && full.contains("I.more has room for 3"), "{full}");
    assert_eq!(ask(&["table", "list", "more"]).as_deref(), Ok(""), "no entry of the file may be loaded");
    fs::write(&file, lines(3)).expect("written");
    assert_eq!(ask(&["table", "load", file.to_str().expect("a name")]).as_deref(), Ok("3 entries loaded\n"));
    ask(&["table", "dump", file.to_str().expect("a name")]).expect("dumped");
    assert_eq!(fs::read_to_string(&file).expect("written").lines().count(), 4);
    ask(&["table", "delete", "kinds kind:0x0800"]).expect("deleted");
    assert!(ask(&["table", "delete", "kinds kind:0x0800"]).expect_err("gone").contains("no entry"));
    ask(&["table", "default", "kinds send(port:1)"]).expect("set");
    ask(&["multicast", "7", "1", "5:2"]).expect("set");
    ask(&["mirror", "9", "--port", "3"]).expect("set");
    assert!(ask(&["counter", "read", "all", "4"]).expect_err("outside").contains("4 cells"));
    assert_eq!(ask(&["counter", "read", "all", "1"]).as_deref(), Ok("I.all(1): 0 packets, 0 bytes\n"));
    for bytes in [&b"\n"[..], b"{\"request\":\"table-list\"}\n", b"\xff\xfe\0\n", b"PRI * HTTP/2.0", &[b'['; 70_000]] {
        let mut stream = UnixStream::connect(&socket).expect("the server listens");
        // The server may close the connection early.
        let _ = stream.write_all(bytes).and_then(|()| stream.shutdown(std::net::Shutdown::Write));
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        assert!(answer.is_empty(), "{answer:?}");
    }
    assert_eq!(ask(&["table", "list", "more"]).expect("the server answers").lines().count(), 3);
    running.end();
}
