//! Prefixes loaded from a file, and the snapshot that can be loaded again.

use crate::fib_file::{FaceWord, FibFile, FibFilePart};
use namehop_client::nfd::numbers::origin;
use namehop_wire::data::content_type;

use super::*;
use crate::rib::Route;

/// Loads a file of either format; words are face ids, or URIs of existing faces.
fn load(fixture: &Fixture, file: &[u8]) {
    let router = fixture.router();
    let face_of = |word: &FaceWord| match word.word.parse() {
        Ok(number) => router.faces().get(FaceId(number)).map(|face| face.id()),
        Err(_) => router.faces().find_by_remote(&uri(&word.word)).first().map(|face| face.id()),
    };
    let mut faces = Vec::new();
    let mut file = FibFile::new(file).expect("a file");
    while let Some(part) = file.next_part().expect("a whole file") {
        match part {
            FibFilePart::Faces(words) => faces.extend(words.iter().map(face_of)),
            FibFilePart::Prefixes(block) => {
                fixture.management.add_prefixes(&block, &faces).expect("a good block");
            }
            FibFilePart::Faults(faults) => panic!("{faults:?}"),
        }
    }
}

fn request(name: &Name, can_be_prefix: bool) -> Vec<u8> {
    InterestBuilder::new(name).can_be_prefix(can_be_prefix).must_be_fresh(can_be_prefix).build().expect("built")
}

/// Fetches the snapshot segment by segment.
async fn snapshot(fixture: &Fixture, mut between: impl FnMut(u64)) -> Vec<u8> {
    let name = names::localhost_verb("fib", "snapshot");
    fixture.give(&request(&name, true), APP, b"t");
    let mut content = Vec::new();
    for number in 0.. {
        let sent = fixture.wait_for_one().await;
        let data = sent.data();
        assert_eq!((data.content_type, sent.no_cache), (content_type::BLOB, true));
        let segment = data.name.last().and_then(|component| component.as_segment());
        assert_eq!(segment, Some(number));
        content.extend_from_slice(data.content);
        if data.final_block_id.is_some() && data.final_block_id == data.name.last() {
            break;
        }
        between(number);
        let next = data.name.without_last(1).to_owned().append_segment(number + 1);
        fixture.give(&request(&next, false), APP, b"t");
    }
    content
}

fn route(face: u64, cost: u64) -> Route {
    Route {
        face: FaceId(face as u32),
        origin: origin::STATIC,
        cost,
        flags: 0,
        expires_at_ms: None,
        announcement: None,
        is_remote: false,
    }
}

#[test]
fn a_snapshot_holds_what_can_be_made_again_and_is_loaded_into_another_router() {
    run(async {
        let fixture = Fixture::new();
        let text: String = (0..5000).map(|number| format!("/loaded/{number} {NEIGHBOUR} {number}\n")).collect();
        load(&fixture, text.as_bytes());
        let accepted = FaceParams {
            persistency: FacePersistency::OnDemand,
            ..FaceParams::new(uri("tcp4://192.0.2.9:50000"), uri("tcp4://192.0.2.2:6363"))
        };
        let accepted = fixture.router().faces().insert(accepted).expect("room").id();
        load(&fixture, format!("/loaded/7 {accepted} 1\n/accepted {accepted}\n").as_bytes());
        assert_eq!(fixture.fib("/loaded/7"), [(accepted.0, 1), (257, 7)]);

        let file = snapshot(&fixture, |_| ()).await;
        let other = Fixture::new();
        load(&other, &file);
        assert_eq!(other.fib("/loaded/7"), [(257, 7)]);
        assert_eq!(other.fib("/loaded/4999"), [(257, 4999)]);
        assert!(other.fib("/accepted").is_empty());
        assert_eq!(other.router().with_fib(|fib| fib.len()), 5000);
    });
}

#[test]
fn a_snapshot_continues_while_the_fib_changes_and_old_segments_expire() {
    run(async {
        let fixture = Fixture::new();
        let text: String = (0..20_000).map(|number| format!("/loaded/{number} {NEIGHBOUR}\n")).collect();
        load(&fixture, text.as_bytes());
        let more: Vec<String> = (0..100).map(|number| format!("/more/{number} {NEIGHBOUR}\n")).collect();
        let file = snapshot(&fixture, |number| load(&fixture, more[number as usize % 100].as_bytes())).await;
        let other = Fixture::new();
        load(&other, &file);
        assert!((0..20_000).all(|number| !other.fib(&format!("/loaded/{number}")).is_empty()));
        // A segment far ahead or of another version gets no answer and causes no work.
        let name = names::localhost_verb("fib", "snapshot");
        for (version, segment) in [(1, 0), (u64::MAX, u64::MAX)] {
            let name = name.clone().append_version(version).append_segment(segment);
            fixture.give(&request(&name, false), APP, b"t");
            assert!(fixture.take().is_empty());
        }
    });
}

#[test]
fn routes_stand_beside_loaded_next_hops_and_a_face_takes_both_with_it() {
    run(async {
        let fixture = Fixture::new();
        tokio::task::spawn_local(Rc::clone(&fixture.management).run());
        let text: String = (0..10_000).map(|number| format!("/loaded/{number} {NEIGHBOUR} 5\n")).collect();
        load(&fixture, text.as_bytes());
        let prefix = name("/loaded/1");
        fixture.management.add_route(prefix.as_ref(), route(APP, 3)).expect("added");
        assert_eq!(fixture.fib("/loaded/1"), [(256, 3), (257, 5)]);
        // A route for the same face replaces the loaded next hop for good.
        fixture.management.add_route(prefix.as_ref(), route(NEIGHBOUR, 9)).expect("added");
        assert_eq!(fixture.fib("/loaded/1"), [(256, 3), (257, 9)]);
        fixture.management.remove_route(prefix.as_ref(), FaceId(NEIGHBOUR as u32), origin::STATIC);
        assert_eq!(fixture.fib("/loaded/1"), [(256, 3)]);

        let face = fixture.router().faces().remove(FaceId(NEIGHBOUR as u32)).expect("exists");
        fixture.management.face_event(&FaceEvent::Destroyed(face));
        // Commands are answered while the search through all prefixes runs.
        assert_eq!(fixture.command("fib", "add-nexthop", &named("/x")).await.code, 200);
        tokio::time::sleep(Duration::from_millis(1)).await;
        let left = fixture.router().with_fib(|fib| fib.entries().map(|(name, _)| name.to_string()).collect::<Vec<_>>());
        let mut left: Vec<_> = left.into_iter().filter(|name| name.starts_with("/loaded")).collect();
        left.sort();
        assert_eq!(left, ["/loaded/1"]);
        // Prefixes loaded later leave the destroyed face out.
        load(&fixture, format!("/late {NEIGHBOUR}\n/late {APP}\n").as_bytes());
        assert_eq!(fixture.fib("/late"), [(256, 0)]);
    });
}
