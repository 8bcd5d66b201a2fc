//! Captures as ports: every frame that is read arrives in order, every frame that is sent is written, and no call
//! blocks.

use std::fs;
use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};

use namehop_packet::{BufferPool, PortQueue};
use namehop_port::drivers::pcap;

const PATIENCE: Duration = Duration::from_secs(30);

/// A capture in which the frames have consecutive numbers.
fn write_capture(path: &Path, count: u32) {
    let mut bytes: Vec<u8> =
        [0xA1B2_C3D4, 0x0004_0002, 0, 0, 65_535, 1].into_iter().flat_map(u32::to_le_bytes).collect();
    for number in 0..count {
        let frame = [&[2; 60][..], &number.to_be_bytes()].concat();
        bytes.extend([0, 0, frame.len() as u32, frame.len() as u32].into_iter().flat_map(u32::to_le_bytes));
        bytes.extend(frame);
    }
    fs::write(path, bytes).expect("a file");
}

#[test]
fn a_capture_is_read_whole_with_few_buffers_and_what_is_sent_is_written() {
    let folder = tempfile::tempdir().expect("folder");
    let (input, output) = (folder.path().join("in.pcap"), folder.path().join("out.pcap"));
    const FRAMES: u32 = 5000;
    write_capture(&input, FRAMES);
    let pool = BufferPool::new(32, 1);
    let (port, mut queue) = pcap::open(Some(&input), Some(&output), &pool).expect("a port");
    let mut frames = Vec::new();
    sleep(Duration::from_millis(50));
    queue.receive(&mut frames);
    assert!(frames.is_empty(), "the port has not been started");

    port.start();
    let (end, mut next) = (Instant::now() + PATIENCE, 0);
    while next < FRAMES {
        assert!(Instant::now() < end, "only {next} frames arrived");
        queue.receive(&mut frames);
        for frame in &frames {
            assert_eq!(frame.bytes()[60..], next.to_be_bytes());
            next += 1;
        }
        queue.transmit(&mut frames);
        frames.clear();
    }
    assert!(!port.has_ended());
    assert_eq!(port.losses(), namehop_port::losses::Losses::default());
    // Frames that were accepted are written before the port is closed.
    drop((port, queue));
    let written = fs::read(&output).expect("written");
    assert_eq!(written.len() % (16 + 64), 24, "the file must contain whole records after the header");
    assert_eq!(pool.in_use(), 0);
}

#[test]
fn files_that_are_no_captures_are_refused() {
    let folder = tempfile::tempdir().expect("folder");
    let pool = BufferPool::new(4, 1);
    let file = folder.path().join("text");
    fs::write(&file, "this text is not a capture").expect("written");
    let link = folder.path().join("link");
    std::os::unix::fs::symlink(&file, &link).expect("made");
    let missing = folder.path().join("missing");
    let table = [
        (Some(file.as_path()), None, "not a capture"),
        (Some(missing.as_path()), None, "No such file"),
        (Some(Path::new("/dev/zero")), None, "not a regular file"),
        (None, Some(Path::new("/dev/full")), "not a regular file"),
        (None, Some(link.as_path()), "symbolic link"),
    ];
    for (input, output, reason) in table {
        let error = pcap::open(input, output, &pool).expect_err(reason).to_string();
        assert!(error.contains(reason), "{error}");
    }
    assert_eq!(fs::read_to_string(&file).expect("read"), "this text is not a capture");
}
