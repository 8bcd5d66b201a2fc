//! Tests of files written from segments in any order, and of segments without a known offset.

use super::*;

/// Takes segments of these sizes in this order; each byte of the content is the segment number.
async fn write(path: &Path, segments: &[(u64, usize)], last: u64) -> Result<(), OutputError> {
    let mut output = FileOutput::create(path)?;
    for &(segment, bytes) in segments {
        output.take(segment, &vec![segment as u8; bytes])?;
        output.write().await?;
    }
    output.finish(last).await
}

fn layout(error: OutputError) -> LayoutError {
    match error {
        OutputError::Layout(error) => error,
        OutputError::Write(error) => panic!("{error}"),
    }
}

#[tokio::test]
async fn segments_in_any_order_make_the_same_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file");
    let expected = [vec![0; 10], vec![1; 10], vec![2; 10], vec![3; 4]].concat();
    for order in [[0, 1, 2, 3], [0, 3, 2, 1], [0, 2, 3, 1]] {
        let segments: Vec<(u64, usize)> =
            order.iter().map(|&segment| (segment, if segment == 3 { 4 } else { 10 })).collect();
        write(&path, &segments, 3).await.unwrap();
        assert_eq!(fs::read(&path).unwrap(), expected, "{order:?}");
    }
    // More than one batch of content, with holes in the meantime.
    let even = (0..400).filter(|segment| segment % 2 == 0);
    let segments: Vec<(u64, usize)> =
        even.chain((0..400).filter(|segment| segment % 2 == 1)).map(|n| (n, 8000)).collect();
    write(&path, &segments, 399).await.unwrap();
    let written = fs::read(&path).unwrap();
    assert_eq!(written.len(), 400 * 8000);
    assert!(written.chunks(8000).enumerate().all(|(segment, bytes)| bytes.iter().all(|&byte| byte == segment as u8)));
    write(&path, &[(0, 0)], 0).await.unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "no temporary file must remain");
}

#[tokio::test]
async fn segments_beyond_the_file_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file");
    fs::write(&path, "from before").unwrap();
    let size = |segment, bytes, first| LayoutError::Size { segment, bytes, first };
    /// Segments, the number of the last one, and the expected error.
    type Case<'a> = (&'a [(u64, usize)], u64, LayoutError);
    let cases: [Case<'_>; 7] = [
        (&[(0, 10), (1, 11)], 1, LayoutError::Larger { segment: 1, bytes: 11, first: 10 }),
        (&[(0, 10), (1, 9), (2, 10)], 2, size(1, 9, 10)),
        (&[(0, 10), (2, 10), (1, 9)], 2, size(1, 9, 10)),
        (&[(0, 10), (2, 3), (1, 9)], 2, size(1, 9, 10)),
        (&[(0, 10), (1, 3)], 5, size(1, 3, 10)),
        (&[(0, 0), (1, 5)], 1, LayoutError::Larger { segment: 1, bytes: 5, first: 0 }),
        (&[(0, 10), (u64::MAX, 10)], u64::MAX, LayoutError::TooFar { segment: u64::MAX }),
    ];
    for (segments, last, expected) in cases {
        assert_eq!(layout(write(&path, segments, last).await.unwrap_err()), expected, "{segments:?}");
        assert_eq!(fs::read_to_string(&path).unwrap(), "from before");
    }
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "no temporary file must remain");
}

#[tokio::test]
async fn only_files_are_replaced() {
    let folder = tempfile::tempdir().unwrap();
    for path in [Path::new("/dev/null"), folder.path(), &folder.path().join("none/file")] {
        assert!(FileOutput::create(path).is_err(), "{}", path.display());
    }
    // The file has the permissions of any new file.
    let (path, other) = (folder.path().join("file"), folder.path().join("other"));
    write(&path, &[(0, 1)], 0).await.unwrap();
    fs::write(&other, "x").unwrap();
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode();
    assert_eq!(mode(&path), mode(&other));
}

#[tokio::test]
async fn errors_of_the_disk_are_reported() {
    let folder = tempfile::tempdir().unwrap();
    let mut output = FileOutput::create(&folder.path().join("file")).unwrap();
    // Writing to a file opened read-only fails.
    let readable = folder.path().join("readable");
    fs::write(&readable, "").unwrap();
    let (_, path) = output.unfinished.take().unwrap().into_parts();
    output.unfinished = Some(NamedTempFile::from_parts(File::open(&readable).unwrap(), path));
    output.take(0, &[0; 10]).unwrap();
    assert!(matches!(output.finish(0).await, Err(OutputError::Write(_))));
    assert!(!folder.path().join("file").exists());
}
