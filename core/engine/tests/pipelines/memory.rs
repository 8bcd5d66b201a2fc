//! Nothing leaks: buffers return to their pool, entries to their tables.

use namehop_wire::lp::NackReason;

use crate::router::*;

#[test]
fn every_ending_of_an_interest_frees_everything() {
    type Ending = fn(&mut Router);
    let endings: [(&str, Ending); 6] = [
        ("Data", |router| {
            router.recv(PRODUCER, data("/A/B"));
        }),
        ("time", |router| {
            router.wait(200_000);
        }),
        ("Nack", |router| {
            for nonce in 1..=8 {
                router.recv(PRODUCER, interest("/A/B").nonce(nonce).packet().nack(NackReason::NO_ROUTE));
            }
            router.wait(200_000);
        }),
        ("faces are removed", |router| {
            for id in [CONSUMER, CONSUMER2, PRODUCER] {
                router.engine.remove_face(namehop_packet::face::FaceId(id));
            }
            router.wait(200_000);
        }),
        ("Data for the prefix only", |router| {
            router.recv(PRODUCER, data("/A/other")).wait(200_000);
        }),
        ("Data after the expiry", |router| {
            router.wait(200_000).recv(PRODUCER, data("/A/B"));
        }),
    ];
    for (ending, end) in endings {
        let mut router = Router::with_default_route();
        let mut nonce = 0;
        for face in [CONSUMER, CONSUMER2, APP, MULTI] {
            for asked in
                [interest("/A/B"), interest("/A/B").fresh(), interest("/A").prefix(), interest("/A").prefix().fresh()]
            {
                for hint in [None, Some("/x"), Some("/y")] {
                    nonce += 1;
                    let asked = hint.map_or(asked.clone(), |hint| asked.clone().hint(hint));
                    router.recv(face, asked.nonce(nonce).packet().token(&vec![3; nonce as usize % 33]));
                }
            }
        }
        router.sent();
        assert_eq!(router.pit_len(), 12, "{ending}");
        end(&mut router);
        router.sent();
        if ending == "Data" {
            assert_eq!(router.pit_len(), 0, "{ending}");
        }
        router.wait(200_000).sent();
        assert!(router.engine.is_idle(), "{ending}");
        router.erase("/", usize::MAX);
        assert_eq!(router.engine.table_sizes().pcct, 0, "{ending}");
        assert_eq!(router.pool.in_use(), 0, "{ending}");
        router.engine.check_invariants().expect(ending);
    }
}
