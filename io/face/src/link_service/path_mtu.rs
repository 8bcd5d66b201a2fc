//! Discovery of the largest frame that reaches a peer over IP, by probes (RFC 8899).
//!
//! A router on the way drops packets that are too large for its next link and reports this by ICMP. Firewalls drop
//! such reports, and then large frames vanish. [`PathMtuSearch`] finds that out and searches a size that passes:
//!
//! 1. While large frames are sent, it probes the present MTU every [`CONFIRM_PAUSE_MS`]. An answer ends the check.
//! 2. After [`TRIES`] probes without an answer it probes the base: a size that every path carries. No answer either
//!    proves nothing: the path drops everything, or the peer does not know probes. An answer proves that the path is
//!    narrower than the MTU, so the base becomes the MTU at once.
//! 3. It probes larger sizes in increasing order, and the largest answered one becomes the MTU. It repeats this search
//!    after [`RAISE_PAUSE_MS`].
//!
//! The order of 1 and 2 costs one probe on a path that carries the MTU, and the answer of the base is newer than the
//! losses that it explains.
//!
//! A "large" frame is larger than the base. The search has no clock and sends nothing: its owner calls
//! [`PathMtuSearch::advance`] at [`PathMtuSearch::deadline`] and does the returned step.

use std::hash::{BuildHasher, RandomState};

use namehop_packet::Timestamp;

use crate::registry::{BASE_PACKET_BYTES, PathMtu};

/// Number of times that a size is probed before it counts as too large.
const TRIES: u8 = 3;
/// Time that the answer to a probe may take (RFC 8899 section 5.1.1: at least 1 s). A later answer counts, too, while
/// the size is probed again.
const TIMEOUT_MS: u64 = 1_000;
/// Pause between two checks of the present MTU.
const CONFIRM_PAUSE_MS: u64 = 15_000;
/// The same while the peer has never answered a probe.
const UNANSWERED_PAUSE_MS: u64 = 60_000;
/// Pause between two searches for a larger MTU (RFC 8899 section 5.1.1).
const RAISE_PAUSE_MS: u64 = 600_000;

/// Sizes in bytes of IP packets that a search tries, smallest first; the largest allowed frame comes last. Most paths
/// have one of few MTUs, from Ethernet, jumbo frames or usual tunnels. In increasing order only the last probe is
/// lost, and lost probes take most of the time of a search.
const CANDIDATE_PACKET_BYTES: [u16; 13] =
    [1300, 1350, 1400, 1420, 1440, 1450, 1460, 1480, 1492, 1500, 2000, 4000, 8000];

/// What the owner of a [`PathMtuSearch`] is to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    /// Find out whether the peer is a Namehop; only that answers probes.
    Ask,
    /// Send a probe with this number in a frame of this size.
    Probe { bytes: u16, number: u32 },
    /// Send no frames larger than this.
    Limit(u16),
}

/// The search for the path MTU of one face; see the module documentation.
#[derive(Debug)]
pub(super) struct PathMtuSearch {
    base_bytes: u16,
    /// Largest frame that link and management allow.
    max_bytes: u16,
    /// Largest frame that the path carries; [`u16::MAX`] until a limit was found.
    path_bytes: u16,
    phase: Phase,
    /// When frames larger than `path_bytes` are tried again.
    raise_at: Timestamp,
    /// The peer has answered a probe.
    has_answers: bool,
    /// Makes numbers of probes that cannot be predicted.
    numbers: RandomState,
    /// Number of probed sizes.
    probed: u64,
}

#[derive(Debug, Clone, Copy)]
enum Phase {
    /// Waits for a large frame.
    Idle,
    /// Does nothing until then.
    Resting {
        until: Timestamp,
    },
    Probing(Probe),
}

/// A size that is probed.
#[derive(Debug, Clone, Copy)]
struct Probe {
    aim: Aim,
    bytes: u16,
    number: u32,
    /// Number of probes sent.
    tries: u8,
    /// When the last probe counts as lost.
    timeout: Timestamp,
    is_answered: bool,
}

/// What a probe is to show.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Aim {
    /// Whether the path carries the present MTU.
    Confirm,
    /// Whether it carries anything.
    Base,
    /// Whether it carries more than `known_bytes`, which it does carry.
    Raise { known_bytes: u16 },
}

impl PathMtuSearch {
    /// Creates the search on a new path that carries frames of `base_bytes`.
    pub(super) fn new(base_bytes: u16) -> Self {
        PathMtuSearch {
            base_bytes,
            max_bytes: u16::MAX,
            path_bytes: u16::MAX,
            phase: Phase::Idle,
            raise_at: Timestamp::default(),
            has_answers: false,
            numbers: RandomState::new(),
            probed: 0,
        }
    }

    /// Returns when [`PathMtuSearch::advance`] is to be called, even if no large frame is sent until then.
    pub(super) fn deadline(&self) -> Timestamp {
        match &self.phase {
            Phase::Idle => Timestamp::NEVER,
            Phase::Resting { until } => *until,
            Phase::Probing(probe) if probe.is_answered => Timestamp::default(),
            Phase::Probing(probe) => probe.timeout,
        }
    }

    /// Notes that the peer has answered the probe with this number. Other numbers are ignored.
    pub(super) fn note_answer(&mut self, answered: u32) {
        if let Phase::Probing(probe) = &mut self.phase {
            probe.is_answered |= probe.number == answered;
            self.has_answers |= probe.is_answered;
        }
    }

    /// Ends a pause, because the peer has shown that it is a Namehop.
    pub(super) fn note_namehop(&mut self, path: &PathMtu) {
        if let Phase::Resting { .. } = self.phase {
            self.phase = Phase::Idle;
            path.end_watch();
        }
    }

    /// Returns the next step; to be called until it returns `None`. `max_bytes` is the largest frame that link and
    /// management allow, and `is_namehop` whether the peer is known to be a Namehop. `path` tells whether large frames
    /// are sent.
    pub(super) fn advance(&mut self, now: Timestamp, max_bytes: u16, is_namehop: bool, path: &PathMtu) -> Option<Step> {
        if max_bytes != self.max_bytes {
            (self.max_bytes, self.raise_at, self.phase) = (max_bytes, now, Phase::Idle);
        }
        match self.phase {
            Phase::Resting { until } if now < until => None,
            Phase::Idle | Phase::Resting { .. } => {
                self.phase = Phase::Idle;
                path.end_watch().then(|| self.check(now, is_namehop, path)).flatten()
            }
            Phase::Probing(probe) if probe.is_answered => self.note_carried(now, probe, path),
            Phase::Probing(probe) if now < probe.timeout => None,
            Phase::Probing(probe) if probe.tries < TRIES => {
                let timeout = now.plus_ms(TIMEOUT_MS);
                self.phase = Phase::Probing(Probe { tries: probe.tries + 1, timeout, ..probe });
                Some(Step::Probe { bytes: probe.bytes, number: probe.number })
            }
            Phase::Probing(probe) => self.note_lost(now, probe, path),
        }
    }

    /// Begins a check, because large frames are sent.
    fn check(&mut self, now: Timestamp, is_namehop: bool, path: &PathMtu) -> Option<Step> {
        let present_bytes = self.path_bytes.min(self.max_bytes);
        if !is_namehop {
            self.rest(now, path);
            return Some(Step::Ask);
        }
        if present_bytes > self.base_bytes {
            return self.probe(now, Aim::Confirm, present_bytes);
        }
        self.raise(now, present_bytes, path)
    }

    /// Begins to probe a size.
    fn probe(&mut self, now: Timestamp, aim: Aim, bytes: u16) -> Option<Step> {
        self.probed += 1;
        let number = self.numbers.hash_one(self.probed) as u32;
        let timeout = now.plus_ms(TIMEOUT_MS);
        self.phase = Phase::Probing(Probe { aim, bytes, number, tries: 1, timeout, is_answered: false });
        Some(Step::Probe { bytes, number })
    }

    /// Probes the next larger size, if that is due and there is one. Otherwise sets the largest known size as limit.
    fn raise(&mut self, now: Timestamp, known_bytes: u16, path: &PathMtu) -> Option<Step> {
        let header_bytes = BASE_PACKET_BYTES as u16 - self.base_bytes;
        let candidates = CANDIDATE_PACKET_BYTES.map(|bytes| bytes - header_bytes);
        let larger = |bytes: &u16| *bytes > known_bytes && *bytes <= self.max_bytes;
        match candidates.into_iter().chain([self.max_bytes]).find(larger) {
            Some(bytes) if now >= self.raise_at => self.probe(now, Aim::Raise { known_bytes }, bytes),
            _ => self.settle(now, known_bytes, path),
        }
    }

    /// Ends a check on a path that carries `known_bytes`.
    fn settle(&mut self, now: Timestamp, known_bytes: u16, path: &PathMtu) -> Option<Step> {
        self.rest(now, path);
        let is_news = known_bytes > self.path_bytes;
        if is_news {
            self.path_bytes = known_bytes;
        }
        is_news.then_some(Step::Limit(known_bytes))
    }

    fn rest(&mut self, now: Timestamp, path: &PathMtu) {
        let pause_ms = if self.has_answers { CONFIRM_PAUSE_MS } else { UNANSWERED_PAUSE_MS };
        self.phase = Phase::Resting { until: now.plus_ms(pause_ms) };
        path.watch();
    }

    /// Continues after an answered probe.
    fn note_carried(&mut self, now: Timestamp, probe: Probe, path: &PathMtu) -> Option<Step> {
        if probe.aim != Aim::Base {
            return self.raise(now, probe.bytes, path);
        }
        (self.path_bytes, self.raise_at) = (self.base_bytes, now);
        // The search for a larger size begins with the next call.
        self.phase = Phase::Idle;
        path.note_large();
        Some(Step::Limit(self.base_bytes))
    }

    /// Continues after [`TRIES`] probes without an answer.
    fn note_lost(&mut self, now: Timestamp, probe: Probe, path: &PathMtu) -> Option<Step> {
        match probe.aim {
            Aim::Confirm => self.probe(now, Aim::Base, self.base_bytes),
            Aim::Base => {
                self.rest(now, path);
                None
            }
            Aim::Raise { known_bytes } => {
                self.raise_at = now.plus_ms(RAISE_PAUSE_MS);
                self.settle(now, known_bytes, path)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BASE: u16 = 1252;
    const LINK: u16 = 1472;

    /// A path with a search at its end, and a log of the steps.
    struct Simulation {
        search: PathMtuSearch,
        path: PathMtu,
        now_ms: u64,
        max_bytes: u16,
        is_namehop: bool,
        /// Answers on the way: when they arrive, and the number of their probe.
        answers: Vec<(u64, u32)>,
        rtt_ms: u64,
        log: Vec<String>,
    }

    impl Simulation {
        fn new() -> Self {
            Simulation {
                search: PathMtuSearch::new(BASE),
                path: PathMtu::default(),
                now_ms: 0,
                max_bytes: LINK,
                is_namehop: true,
                answers: Vec::new(),
                rtt_ms: 20,
                log: Vec::new(),
            }
        }

        /// Runs for some time, in steps of 10 ms, on a path that carries frames of up to `path_bytes`. Returns the
        /// steps of that time, probes as "milliseconds?bytes" and limits as "milliseconds=bytes".
        fn run(&mut self, for_ms: u64, is_large: bool, path_bytes: u16) -> String {
            for _ in 0..for_ms / 10 {
                if is_large && !self.path.has_large() {
                    self.path.note_large();
                }
                for (_, number) in self.answers.extract_if(.., |(at_ms, _)| *at_ms <= self.now_ms) {
                    self.search.note_answer(number);
                }
                let now = Timestamp(0).plus_ms(self.now_ms);
                while let Some(step) = self.search.advance(now, self.max_bytes, self.is_namehop, &self.path) {
                    self.log.push(match step {
                        Step::Ask => format!("{}ask", self.now_ms),
                        Step::Limit(bytes) => format!("{}={bytes}", self.now_ms),
                        Step::Probe { bytes, number } => {
                            if bytes <= path_bytes {
                                self.answers.push((self.now_ms + self.rtt_ms, number));
                            }
                            format!("{}?{bytes}", self.now_ms)
                        }
                    });
                }
                self.now_ms += 10;
            }
            std::mem::take(&mut self.log).join(" ")
        }
    }

    #[test]
    fn a_path_that_carries_the_mtu_is_confirmed_while_large_frames_are_sent() {
        let mut simulation = Simulation::new();
        assert_eq!(simulation.run(60_000, false, 0), "");
        assert_eq!(simulation.search.deadline(), Timestamp::NEVER);
        assert_eq!(simulation.run(40_000, true, LINK), "60000?1472 75020?1472 90040?1472");
        assert_eq!(simulation.run(60_000, false, LINK), "105060?1472", "one was sent since the last check");
        assert_eq!(simulation.search.deadline(), Timestamp::NEVER);
    }

    #[test]
    fn a_narrower_path_gets_the_base_and_then_the_largest_candidate_that_passes() {
        let lost = "0?1472 1000?1472 2000?1472 3000?1252";
        // Largest frame of the path, link MTU, expected steps.
        let table: [(u16, u16, &str); 6] = [
            (1272, LINK, "3020=1252 3020?1272 3040?1322 4040?1322 5040?1322 6040=1272"),
            (1279, LINK, "3020=1252 3020?1272 3040?1322 4040?1322 5040?1322 6040=1272"),
            (1252, LINK, "3020=1252 3020?1272 4020?1272 5020?1272"),
            (1400, LINK, "3020=1252 3020?1272 3040?1322 3060?1372 3080?1392 3100?1412 4100?1412 5100?1412 6100=1392"),
            (1300, 1310, "3020=1252 3020?1272 3040?1310 4040?1310 5040?1310 6040=1272"),
            (1251, LINK, "4000?1252 5000?1252"),
        ];
        for (path_bytes, max_bytes, expected) in table {
            let mut simulation = Simulation::new();
            simulation.max_bytes = max_bytes;
            let expected = format!("{lost} {expected}").replace("?1472", &format!("?{max_bytes}"));
            assert_eq!(simulation.run(14_000, true, path_bytes), expected, "{path_bytes} of {max_bytes}");
        }
    }

    #[test]
    fn a_path_that_becomes_narrower_and_wider_is_followed() {
        let mut simulation = Simulation::new();
        assert_eq!(simulation.run(10_000, true, LINK), "0?1472");
        let found = simulation.run(20_000, true, 1300);
        assert!(found.starts_with("15020?1472 16020?1472 17020?1472 18020?1252 18040=1252 18040?1272"), "{found}");
        assert!(found.ends_with("21060=1272"), "{found}");
        let checks = simulation.run(600_000, true, LINK);
        let (before, raised) = checks.split_once("?1322").expect("larger frames are tried after ten minutes");
        assert!(before.split(' ').rev().skip(1).all(|check| check.ends_with("?1272")), "{before}");
        let raise_ms: u64 = before.split(' ').next_back().expect("a time").parse().expect("a number");
        assert!((621_060..640_000).contains(&raise_ms), "{raise_ms}");
        assert!(raised.contains("=1472") && raised.matches('?').count() <= 8, "{raised}");
        assert_eq!(simulation.run(20_000, true, LINK).matches("?1472").count(), 1);
    }

    #[test]
    fn lost_probes_prove_nothing_unless_the_base_is_answered() {
        let mut simulation = Simulation::new();
        let dead = simulation.run(59_000, true, 0);
        assert_eq!(dead, "0?1472 1000?1472 2000?1472 3000?1252 4000?1252 5000?1252", "no limit, and a long pause");
        assert_eq!(simulation.run(10_000, true, LINK), "66000?1472");
        let dead = simulation.run(20_000, true, 0);
        assert!(dead.starts_with("81020?1472") && !dead.contains('='), "{dead}");
        assert!(simulation.run(20_000, true, LINK).ends_with("?1472"), "it answers, so it is probed again soon");
        // One of three probes is enough, and it may be late.
        let mut simulation = Simulation::new();
        simulation.rtt_ms = 2_500;
        assert_eq!(simulation.run(10_000, true, LINK), "0?1472 1000?1472 2000?1472");
    }

    #[test]
    fn a_peer_that_is_no_namehop_is_asked_and_not_probed() {
        let mut simulation = Simulation::new();
        simulation.is_namehop = false;
        assert_eq!(simulation.run(70_000, true, LINK), "0ask 60000ask");
        simulation.is_namehop = true;
        simulation.search.note_namehop(&simulation.path);
        assert_eq!(simulation.run(1_000, true, LINK), "70000?1472", "it is probed at once");
    }

    #[test]
    fn another_limit_of_the_link_begins_a_new_check() {
        let mut simulation = Simulation::new();
        assert!(simulation.run(500, true, 1300).starts_with("0?1472"));
        simulation.max_bytes = 1280;
        assert_eq!(simulation.run(1_000, true, 1300), "500?1280");
        simulation.max_bytes = 900;
        assert_eq!(simulation.run(20_000, true, 1300), "");
    }

    #[test]
    fn only_the_number_of_the_outstanding_probe_is_an_answer() {
        let mut search = PathMtuSearch::new(BASE);
        let path = PathMtu::default();
        path.note_large();
        let Some(Step::Probe { number, .. }) = search.advance(Timestamp(0), LINK, true, &path) else {
            panic!("a probe");
        };
        search.note_answer(number.wrapping_add(1));
        assert_ne!(search.deadline(), Timestamp::default());
        search.note_answer(number);
        assert_eq!(search.deadline(), Timestamp::default());
        assert_eq!(search.advance(Timestamp(0), LINK, true, &path), None);
    }
}
