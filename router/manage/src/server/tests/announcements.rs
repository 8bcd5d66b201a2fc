//! Routes from prefix announcements, by command and learned.

use std::path::PathBuf;

use namehop_client::nfd::Element;
use namehop_wire::security::KeySigner;
use namehop_wire::{PrefixAnnouncement, ValidityPeriod};

use super::dispatch::key_and_certificate;
use super::*;
use crate::authentication::TrustConfig;
use crate::rib::{RibError, RouteLimits};

fn trusting(certificate: PathBuf) -> TrustConfig {
    TrustConfig { anchors: vec![certificate.into()], certificates: None }
}

struct Announcer {
    fixture: Fixture,
    signer: KeySigner,
    _folder: tempfile::TempDir,
}

impl Announcer {
    fn new() -> Self {
        Self::with(|_, _| ())
    }

    /// Creates a router that lets neighbours with the key of this certificate command the RIB.
    fn with_localhop(certificate: PathBuf) -> Self {
        Self::with(|_, security| security.localhop = trusting(certificate))
    }

    /// Creates a router with settings that `change` has changed; it gets the certificate of announcements, too.
    fn with(change: impl FnOnce(PathBuf, &mut SecurityConfig)) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let (signer, certificate) = key_and_certificate(folder.path(), "/A");
        let prefix_announcements = trusting(certificate.clone());
        let mut security = SecurityConfig { prefix_announcements, ..SecurityConfig::default() };
        change(certificate, &mut security);
        let fixture = Fixture::with_security(&security);
        Announcer { fixture, signer, _folder: folder }
    }

    fn announcement(&self, expiration_ms: u64, validity_period: Option<ValidityPeriod>) -> Vec<u8> {
        self.announcement_of("/A", expiration_ms, validity_period)
    }

    fn announcement_of(&self, prefix: &str, expiration_ms: u64, validity_period: Option<ValidityPeriod>) -> Vec<u8> {
        let prefix = name(prefix);
        let announcement = PrefixAnnouncement { prefix: prefix.as_ref(), version: 1, expiration_ms, validity_period };
        announcement.encode(&self.signer).expect("signed")
    }

    fn announce(&self, announcement: &[u8]) -> ControlResponse {
        let interest = InterestBuilder::new(names::localhost_verb("rib", "announce"))
            .application_parameters(announcement)
            .sign(&DigestSigner, &options())
            .expect("signed");
        self.fixture.give(&interest, APP, b"t");
        self.fixture.take_one().response()
    }

    /// Announces by the command of a neighbour with this key.
    fn announce_as_neighbour(&self, announcement: &[u8], key: &KeySigner) -> ControlResponse {
        let name = names::localhop().append_generic("rib").append_generic("announce");
        let interest = InterestBuilder::new(name).application_parameters(announcement);
        self.fixture.give(&interest.sign(key, &options()).expect("signed"), NEIGHBOUR, b"t");
        self.fixture.take_one().response()
    }
}

#[test]
fn announce_makes_a_route_that_ends_with_the_announcement() {
    run(async {
        let announcer = Announcer::new();
        let fixture = &announcer.fixture;
        tokio::task::spawn_local(Rc::clone(&fixture.management).run());
        let packet = announcer.announcement(3_600_000, None);
        let response = announcer.announce(&packet);
        let expected = ControlParameters {
            face_id: Some(APP),
            origin: Some(129),
            cost: Some(2048),
            flags: Some(1),
            expiration_period_ms: Some(3_600_000),
            ..named("/A")
        };
        assert_eq!((response.code, response.parameters()), (200, Ok(expected)));
        assert_eq!(fixture.fib("/A"), [(256, 2048)]);
        assert_eq!(fixture.management.find_announcement(name("/A/B/C").as_ref()), Some(packet));
        assert_eq!(fixture.management.find_announcement(name("/B").as_ref()), None);
        tokio::time::sleep(Duration::from_secs(3599)).await;
        assert_eq!(fixture.fib("/A").len(), 1);
        tokio::time::sleep(Duration::from_secs(2)).await;
        assert!(fixture.fib("/A").is_empty());
    });
}

#[test]
fn announce_refuses_what_cannot_be_verified() {
    run(async {
        let announcer = Announcer::new();
        let past = ValidityPeriod { not_before_s: 0, not_after_s: 1 };
        assert_eq!(announcer.announce(&announcer.announcement(1000, Some(past))).code, 403);
        let mut forged = announcer.announcement(1000, None);
        *forged.last_mut().expect("not empty") ^= 1;
        assert_eq!(announcer.announce(&forged).code, 403);
        for prefix in ["/", "/B", "/localhost", "/localhost/x", "/localhost/nfd", "/localhop", "/localhop/nfd"] {
            let refused = announcer.announcement_of(prefix, 1000, None);
            assert_eq!(announcer.announce(&refused).code, 403, "{prefix}");
            assert!(announcer.fixture.management.learn_route(&refused, testing::NEIGHBOUR).is_err());
        }
        assert_eq!(announcer.announce(b"nonsense").code, 400);
        assert_eq!(announcer.announce(b"").code, 400);
        assert_eq!(announcer.fixture.management.rib_sizes(), (0, 0));

        let untrusting = Fixture::new();
        let refused = untrusting.management.learn_route(&announcer.announcement(1000, None), FaceId(257));
        assert!(matches!(refused, Err(AnnouncementError::Refused(_))), "{refused:?}");

        let interest = signed_command(names::localhost(), "rib", "announce", &named("/A").to_vec(), &DigestSigner);
        announcer.fixture.give(&interest, APP, b"t");
        assert_eq!(announcer.fixture.take_one().response().code, 400);
    });
}

#[test]
fn a_neighbour_announces_for_names_of_the_key_of_its_command_only() {
    run(async {
        let folder = tempfile::tempdir().expect("a folder");
        let (bob, of_bob) = key_and_certificate(folder.path(), "/bob");
        let announcer = Announcer::with_localhop(of_bob);
        // A replay of an announcement that was recorded from the network, where Data carries announcements.
        assert_eq!(announcer.announce_as_neighbour(&announcer.announcement(1000, None), &bob).code, 403);
        assert_eq!(announcer.fixture.management.rib_sizes(), (0, 0));
    });
}

#[test]
fn announcements_count_against_the_limits_of_routes_of_other_hosts() {
    run(async {
        let announcer = Announcer::with(|certificate, security| {
            security.localhop = trusting(certificate);
            security.remote_routes = RouteLimits { per_face: 2, remote: 3, ..RouteLimits::default() };
        });
        let management = &announcer.fixture.management;
        let of = |prefix: &str| announcer.announcement_of(prefix, 60_000, None);
        let announce = |prefix: &str| announcer.announce_as_neighbour(&of(prefix), &announcer.signer);
        // On one face, by command and learned from Data.
        assert_eq!(announce("/A/1").code, 200);
        assert_eq!(management.learn_route(&of("/A/2"), testing::NEIGHBOUR), Ok(name("/A/2")));
        let response = announce("/A/3");
        assert_eq!(response.code, 507, "{}", response.text);
        let refused = |error| Err(AnnouncementError::Route(RouteError::Rib(error)));
        assert_eq!(management.learn_route(&of("/A/3"), testing::NEIGHBOUR), refused(RibError::TooManyOfFace(2)));
        // On all faces.
        assert_eq!(management.learn_route(&of("/A/3"), testing::APP), Ok(name("/A/3")));
        assert_eq!(management.learn_route(&of("/A/4"), testing::APP), refused(RibError::TooManyRemote(3)));
        // A route is renewed, and a local application has no limit.
        assert_eq!(announce("/A/1").code, 200);
        assert_eq!(announcer.announce(&of("/A/5")).code, 200);
        assert_eq!(management.rib_sizes(), (4, 4));
    });
}

#[test]
fn a_validity_period_shortens_the_route() {
    run(async {
        let announcer = Announcer::new();
        let soon = ValidityPeriod { not_before_s: 0, not_after_s: unix_time_ms() / 1000 + 60 };
        let response = announcer.announce(&announcer.announcement(3_600_000, Some(soon)));
        let period_ms = response.parameters().expect("parameters").expiration_period_ms.expect("a period");
        assert!((55_000..=61_000).contains(&period_ms), "{period_ms}");
    });
}

#[test]
fn learned_routes_last_ten_minutes_at_most_and_can_be_forgotten() {
    run(async {
        let announcer = Announcer::new();
        let fixture = &announcer.fixture;
        tokio::task::spawn_local(Rc::clone(&fixture.management).run());
        let packet = announcer.announcement(3_600_000, None);
        assert_eq!(fixture.management.learn_route(&packet, FaceId(257)), Ok(name("/A")));
        assert_eq!(fixture.fib("/A"), [(257, 2048)]);
        tokio::time::sleep(Duration::from_secs(599)).await;
        assert_eq!(fixture.fib("/A").len(), 1);
        tokio::time::sleep(Duration::from_secs(2)).await;
        assert!(fixture.fib("/A").is_empty());

        assert!(fixture.management.learn_route(&packet, FaceId(257)).is_ok());
        assert!(fixture.management.forget_learned_route(name("/A").as_ref(), FaceId(257)));
        assert!(!fixture.management.forget_learned_route(name("/A").as_ref(), FaceId(257)));
        assert!(fixture.fib("/A").is_empty());
        let unknown = fixture.management.learn_route(&packet, FaceId(9999));
        assert_eq!(unknown, Err(AnnouncementError::Route(RouteError::NoSuchFace)));
        assert!(fixture.changes().is_empty(), "learned routes are not saved");
    });
}
