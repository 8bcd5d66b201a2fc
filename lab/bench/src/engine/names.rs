//! The names to request and to answer next.

use std::collections::VecDeque;

use super::frames::Token;
use crate::permutation::mix;
use crate::schedule::{EngineParameters, Traffic};

/// Number of names reserved for one load.
const NAMES_PER_LOAD: u64 = 1 << 34;
/// Fraction of the Content Store's capacity that is requested again. The rest may have been used since, and the least
/// recently used packet is evicted first.
const ASKED_AGAIN: f64 = 0.5;

/// The names of one load.
pub(super) struct Names {
    next: u64,
    last: u64,
    /// Number of names after which the first one follows again; 0 if names never repeat.
    period: u64,
    draws: u64,
    /// Pending Interests. In mixed traffic they are answered in random order once `due` is empty, so an answer comes
    /// after up to twice the number of Interests in flight.
    asked: VecDeque<(u64, Token)>,
    due: VecDeque<(u64, Token)>,
    is_shuffled: bool,
    /// Answered names, oldest first.
    answered: VecDeque<u64>,
    answered_limit: usize,
}

impl Names {
    /// Creates names that no load with another `number` uses, while `capacity` suffices. Packets are prepared while up
    /// to `waiting` others have not been handled.
    pub(super) fn new(parameters: &EngineParameters, number: u64, capacity: u64, waiting: usize) -> Self {
        let first = number * NAMES_PER_LOAD % capacity;
        let names = if parameters.names == 0 { NAMES_PER_LOAD } else { parameters.names };
        Names {
            next: first,
            last: first + names,
            period: parameters.names,
            draws: number,
            asked: VecDeque::new(),
            due: VecDeque::new(),
            is_shuffled: parameters.traffic == Traffic::Mixed,
            answered: VecDeque::new(),
            answered_limit: ((parameters.cs_capacity as f64 * ASKED_AGAIN) as usize).saturating_sub(waiting),
        }
    }

    /// Returns the next name to request.
    pub(super) fn next(&mut self) -> u64 {
        if self.next >= self.last {
            self.next = self.last - self.period.max(1);
        }
        self.next += 1;
        self.next - 1
    }

    /// Returns a random number from 0 to `end` - 1.
    pub(super) fn draw_below(&mut self, end: usize) -> usize {
        ((u128::from(self.draw()) * end as u128) >> 64) as usize
    }

    /// Returns a random number.
    pub(super) fn draw(&mut self) -> u64 {
        self.draws += 1;
        mix(self.draws)
    }

    /// Records that the router has forwarded an Interest for this name with this token.
    pub(super) fn is_pending(&mut self, name: u64, token: Token) {
        self.asked.push_back((name, token));
    }

    /// Number of pending names that will be answered.
    pub(super) fn pending(&self) -> usize {
        self.asked.len() + self.due.len()
    }

    /// Removes and returns the name to answer next.
    pub(super) fn answer(&mut self) -> Option<(u64, Token)> {
        if !self.is_shuffled {
            return self.asked.pop_front();
        }
        if self.due.is_empty() {
            std::mem::swap(&mut self.asked, &mut self.due);
        }
        let place = self.draw_below(self.due.len());
        self.due.swap_remove_back(place)
    }

    /// Records that the Content Store holds Data with this name.
    pub(super) fn is_answered(&mut self, name: u64) {
        self.answered.push_back(name);
        while self.answered.len() > self.answered_limit {
            self.answered.pop_front();
        }
    }

    /// True if there is a name that the Content Store holds, and will still hold when it is requested.
    pub(super) fn has_answered(&self) -> bool {
        !self.answered.is_empty()
    }

    /// Returns a random name that the Content Store holds.
    pub(super) fn again(&mut self) -> Option<u64> {
        let place = self.draw_below(self.answered.len());
        self.answered.get(place).copied()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    fn answers(parameters: &EngineParameters) -> Vec<u64> {
        let mut names = Names::new(parameters, 3, 1 << 60, 0);
        let mut answers = Vec::new();
        for turn in 0..3_000 {
            let name = names.next();
            names.is_pending(name, name);
            if turn >= 1_000 {
                answers.push(names.answer().expect("pending").0);
            }
        }
        assert_eq!(names.pending(), 1_000);
        answers
    }

    #[test]
    fn sorted_answers_come_in_the_order_of_interests_and_mixed_ones_do_not() {
        let sorted = answers(&EngineParameters::published());
        assert!(sorted.is_sorted());
        let mixed = answers(&EngineParameters::realistic());
        assert_eq!(mixed.iter().collect::<HashSet<_>>().len(), mixed.len());
        let in_order = mixed.windows(2).filter(|pair| pair[0] < pair[1]).count();
        assert!((700..1_300).contains(&in_order), "{in_order} of 2000 names are in sequence");
        // None waits for more than twice the number in flight.
        assert!(mixed.iter().enumerate().all(|(place, name)| (place as u64) < name - sorted[0] + 1_001));
    }
}
