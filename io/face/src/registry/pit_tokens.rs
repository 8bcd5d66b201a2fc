//! PIT tokens on one face: whether Interests carry this router's tokens, and what is known about the peer.
//!
//! A PIT token is a critical field of NDNLPv2, so a library that does not know it drops the Interest or fails. In the
//! mode [`PitTokenMode::Auto`] a peer gets tokens only after it has shown that it knows them: by sending a token, or by
//! the field [`KnowsPitTokens`](namehop_wire::lp::KnowsPitTokens). The peer's own tokens are echoed in every mode.

use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, Ordering};

use namehop_packet::{LinkType, Timestamp};

use super::FaceFlags;

/// When Interests on a face carry this router's PIT token. On links with several peers they never do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum PitTokenMode {
    /// When the peer has shown that it knows PIT tokens.
    #[default]
    Auto,
    /// Always.
    On,
    /// Never.
    Off,
}

impl PitTokenMode {
    /// Returns the bits of a face's Flags for this mode.
    pub const fn flags(self) -> FaceFlags {
        match self {
            PitTokenMode::Auto => FaceFlags(0),
            PitTokenMode::On => FaceFlags::PIT_TOKENS_ON,
            PitTokenMode::Off => FaceFlags::PIT_TOKENS_OFF,
        }
    }

    /// Returns the mode of these Flags; `None` if both bits are set.
    pub const fn of(flags: FaceFlags) -> Option<PitTokenMode> {
        match (flags.contains(FaceFlags::PIT_TOKENS_ON), flags.contains(FaceFlags::PIT_TOKENS_OFF)) {
            (false, false) => Some(PitTokenMode::Auto),
            (true, false) => Some(PitTokenMode::On),
            (false, true) => Some(PitTokenMode::Off),
            (true, true) => None,
        }
    }
}

/// Interests carry the token. Derived from the other bits.
const SENT: u8 = 1;
/// The peer has shown that it knows tokens.
const KNOWN: u8 = 2;
const ON: u8 = 4;
const OFF: u8 = 8;
const SEVERAL_PEERS: u8 = 16;
/// The peer has shown that it is a Namehop.
const NAMEHOP: u8 = 32;

/// Number of first questions, which are [`SHORT_PAUSE_NS`] apart; the later ones are [`LONG_PAUSE_NS`] apart.
const FREQUENT_QUESTIONS: u32 = 10;
const SHORT_PAUSE_NS: u64 = 1_000_000_000;
const LONG_PAUSE_NS: u64 = 60_000_000_000;

/// The PIT token state of one face, shared by all workers.
#[derive(Debug)]
pub(crate) struct PitTokens {
    state: AtomicU8,
    /// Number of questions asked, up to [`FREQUENT_QUESTIONS`].
    questions: AtomicU32,
    /// When the next question may be asked, in nanoseconds of the workers' clock.
    next_question_ns: AtomicU64,
    /// The peer is to be asked, whether or not it is known to support tokens.
    is_question_wanted: AtomicBool,
    /// The peer has answered a question.
    has_answered: AtomicBool,
    /// Number of answers to questions of the peer.
    answers: AtomicU64,
}

impl PitTokens {
    pub(super) fn new(link_type: LinkType, mode: PitTokenMode) -> Self {
        let state = if link_type == LinkType::PointToPoint { 0 } else { SEVERAL_PEERS };
        PitTokens {
            state: AtomicU8::new(with_mode(state, mode)),
            questions: AtomicU32::new(0),
            next_question_ns: AtomicU64::new(0),
            is_question_wanted: AtomicBool::new(false),
            has_answered: AtomicBool::new(false),
            answers: AtomicU64::new(0),
        }
    }

    /// Whether Interests carry this router's token.
    #[inline]
    pub(crate) fn are_sent(&self) -> bool {
        self.state.load(Ordering::Relaxed) & SENT != 0
    }

    /// Whether the peer has shown that it knows tokens.
    #[inline]
    pub(crate) fn are_known(&self) -> bool {
        self.state.load(Ordering::Relaxed) & KNOWN != 0
    }

    /// Whether the face has one peer, so that a token field tells something about that peer.
    pub(crate) fn has_one_peer(&self) -> bool {
        self.state.load(Ordering::Relaxed) & SEVERAL_PEERS == 0
    }

    /// Notes that the peer has shown that it knows tokens.
    #[cold]
    pub(crate) fn note_known(&self) {
        self.change(|state| state | KNOWN);
    }

    /// Notes that the peer has sent a field specific to Namehop. Returns false if it had done so before.
    #[cold]
    pub(crate) fn note_namehop(&self) -> bool {
        let was_known = self.is_namehop();
        self.change(|state| state | KNOWN | NAMEHOP);
        !was_known
    }

    /// Whether the peer has shown that it is a Namehop.
    pub(crate) fn is_namehop(&self) -> bool {
        self.state.load(Ordering::Relaxed) & NAMEHOP != 0
    }

    /// Counts an answer to a question of the peer.
    pub(crate) fn count_answer(&self) {
        self.answers.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns the number of answers to questions of the peer.
    pub(super) fn answers(&self) -> u64 {
        self.answers.load(Ordering::Relaxed)
    }

    pub(super) fn set_mode(&self, mode: PitTokenMode) {
        self.change(|state| with_mode(state, mode));
    }

    /// Clears what the peer has shown, because the next peer on the link may be another program.
    pub(super) fn forget_peer(&self) {
        self.change(|state| state & !(KNOWN | NAMEHOP));
        self.questions.store(0, Ordering::Relaxed);
        self.next_question_ns.store(0, Ordering::Relaxed);
    }

    /// Whether to ask the peer now whether it knows tokens: once a second for the first ten questions, then once a
    /// minute. If several workers call this at the same time, only one gets `true`.
    pub(crate) fn take_question(&self, now: Timestamp) -> bool {
        self.take_question_unless(KNOWN | ON | OFF | SEVERAL_PEERS, now)
    }

    /// The same for the question whether the peer is a Namehop, in every mode. A peer that has sent a token need not be
    /// one.
    pub(crate) fn take_namehop_question(&self, now: Timestamp) -> bool {
        self.take_question_unless(NAMEHOP | SEVERAL_PEERS, now)
    }

    fn take_question_unless(&self, state: u8, now: Timestamp) -> bool {
        let next_ns = self.next_question_ns.load(Ordering::Relaxed);
        if self.state.load(Ordering::Relaxed) & state != 0 || now.0 < next_ns {
            return false;
        }
        let number = self.questions.load(Ordering::Relaxed) + 1;
        let pause_ns = if number < FREQUENT_QUESTIONS { SHORT_PAUSE_NS } else { LONG_PAUSE_NS };
        let after_ns = now.0.saturating_add(pause_ns);
        let swapped = self.next_question_ns.compare_exchange(next_ns, after_ns, Ordering::Relaxed, Ordering::Relaxed);
        if swapped.is_ok() {
            self.questions.store(number.min(FREQUENT_QUESTIONS), Ordering::Relaxed);
        }
        swapped.is_ok()
    }

    /// Requests that the peer is asked, whether or not it is known to support tokens.
    pub(super) fn want_question(&self) {
        self.is_question_wanted.store(true, Ordering::Relaxed);
    }

    /// Returns and clears whether a question was requested.
    pub(crate) fn take_wanted_question(&self) -> bool {
        self.is_question_wanted.swap(false, Ordering::Relaxed)
    }

    /// Notes that the peer has answered a question.
    pub(crate) fn note_answered(&self) {
        self.has_answered.store(true, Ordering::Relaxed);
    }

    pub(super) fn take_answered(&self) -> bool {
        self.has_answered.swap(false, Ordering::Relaxed)
    }

    fn change(&self, change: impl Fn(u8) -> u8) {
        // The closure always returns `Some`.
        let _ = self.state.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |state| Some(settled(change(state))));
    }
}

fn with_mode(state: u8, mode: PitTokenMode) -> u8 {
    let bits = match mode {
        PitTokenMode::Auto => 0,
        PitTokenMode::On => ON,
        PitTokenMode::Off => OFF,
    };
    settled(state & !(ON | OFF) | bits)
}

/// Returns the state with the bit [`SENT`] computed from the others.
fn settled(state: u8) -> u8 {
    let sent = state & SEVERAL_PEERS == 0 && (state & ON != 0 || state & (KNOWN | OFF) == KNOWN);
    if sent { state | SENT } else { state & !SENT }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_sent_by_mode_knowledge_and_link() {
        use LinkType::{AdHoc, MultiAccess, PointToPoint};
        use PitTokenMode::{Auto, Off, On};
        // Link type, mode, known, sent.
        let table = [
            (PointToPoint, Auto, false, false),
            (PointToPoint, Auto, true, true),
            (PointToPoint, On, false, true),
            (PointToPoint, On, true, true),
            (PointToPoint, Off, false, false),
            (PointToPoint, Off, true, false),
            (MultiAccess, Auto, true, false),
            (MultiAccess, On, true, false),
            (AdHoc, On, false, false),
        ];
        for (link_type, mode, known, sent) in table {
            let tokens = PitTokens::new(link_type, mode);
            if known {
                tokens.note_known();
            }
            assert_eq!((tokens.are_known(), tokens.are_sent()), (known, sent), "{link_type:?} {mode:?} {known}");
            // The same through changes.
            let tokens = PitTokens::new(link_type, On);
            tokens.note_known();
            if !known {
                tokens.forget_peer();
            }
            tokens.set_mode(mode);
            assert_eq!((tokens.are_known(), tokens.are_sent()), (known, sent), "{link_type:?} {mode:?} {known}");
        }
    }

    #[test]
    fn modes_are_flags() {
        for mode in [PitTokenMode::Auto, PitTokenMode::On, PitTokenMode::Off] {
            assert_eq!(PitTokenMode::of(mode.flags().union(FaceFlags::RELIABILITY)), Some(mode));
        }
        assert_eq!(PitTokenMode::of(FaceFlags::PIT_TOKENS), None);
    }

    #[test]
    fn questions_come_each_second_and_then_each_minute() {
        let tokens = PitTokens::new(LinkType::PointToPoint, PitTokenMode::Auto);
        let asked = |tokens: &PitTokens, from_ms: u64, to_ms: u64| -> Vec<u64> {
            (from_ms..to_ms).step_by(100).filter(|&ms| tokens.take_question(Timestamp(0).plus_ms(ms))).collect()
        };
        assert_eq!(
            asked(&tokens, 0, 200_000),
            [0, 1_000, 2_000, 3_000, 4_000, 5_000, 6_000, 7_000, 8_000, 9_000, 69_000, 129_000, 189_000]
        );
        tokens.forget_peer();
        assert_eq!(asked(&tokens, 200_000, 202_000), [200_000, 201_000], "a new peer must be asked again");
        tokens.note_known();
        assert!(asked(&tokens, 203_000, 300_000).is_empty());
        let next = Timestamp(0).plus_ms(300_000);
        assert!(tokens.take_namehop_question(next), "a peer that has sent a token need not be a Namehop");
        assert!(tokens.note_namehop() && !tokens.note_namehop());
        assert!(!tokens.take_namehop_question(next.plus_ms(300_000)));
        for (link_type, mode) in [
            (LinkType::PointToPoint, PitTokenMode::On),
            (LinkType::PointToPoint, PitTokenMode::Off),
            (LinkType::MultiAccess, PitTokenMode::Auto),
        ] {
            assert!(asked(&PitTokens::new(link_type, mode), 0, 100).is_empty(), "{link_type:?} {mode:?}");
        }
    }
}
