//! Hit and insertion rate of Filter admission in front of a FIFO store, and cycles per packet with a cache policy.
//!
//! Takemasa, thesis, Osaka University 2019, equations 5.1 to 5.7. Requests are independent, and popularity follows
//! Zipf's law. A threshold of 1 admits all Data, which is plain FIFO.
//!
//! Equation 5.5 gives the probability that the Data of a name is in the store. Data stays for τ requests, so the
//! store answers λ'τ of them; then 1/p requests miss until the Data is admitted again, with p from equation 5.3. The
//! probability is λ'τ / (λ'τ + 1/p). The model has two forms, which differ only in the number of misses:
//!
//! * [`published`](FilterModel::published) has 1/p;
//! * [`rates`](FilterModel::rates) follows one miss after the other (`misses`), and counts the requests for other
//!   names that share the name's counter.
//!
//! Both forms describe a store that has been full for a long time. If little Data is admitted, filling the store may
//! take more requests than a run sends: [`rates_between`](FilterModel::rates_between) also models how a store fills.

mod cycles;
mod misses;
mod neighbours;

use serde::Serialize;

pub use cycles::BlockCosts;
use misses::Misses;

/// Ranks up to this one are computed individually; higher ranks are grouped into classes of nearly equal popularity.
const SINGLE_RANKS: u64 = 2_000;
/// Width of a class, relative to its rank.
const CLASS_WIDTH: f64 = 0.002;
/// Bisection steps of a search for a time.
const STEPS: usize = 60;
/// Smaller shares may be rounding errors.
const ROUNDING: f64 = 1e-12;
/// Number of popularities for which misses are computed; others are interpolated.
const POPULARITIES: usize = 128;
/// Parameters of the model.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct FilterModel {
    /// Number of different packets (N).
    pub packets: u64,
    /// Zipf exponent of their popularity (α).
    pub alpha: f64,
    /// Capacity of the store in packets (C).
    pub capacity: u64,
    /// Length of the history queue in requests (q).
    pub history: f64,
    /// Requests in the history that admit Data, including the one that fetched it (θ).
    pub threshold: u32,
    /// Counters shared by all names (h); `None` if each name has its own counter, as in the published equations.
    pub counters: Option<u64>,
}

/// Results of the model.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct FilterRates {
    /// Share of Interests that the store answers.
    pub hit: f64,
    /// Share of the Data fetched for misses that is inserted.
    pub insertion: f64,
    /// Requests between insertion and eviction of a packet (τ); infinite if the store never fills.
    pub eviction_time: f64,
}

/// Names of equal popularity and with equally many requests for other names at their counters.
#[derive(Clone, Copy)]
struct Class {
    count: f64,
    /// Probability that a request is for one given name of the class: λ'_c.
    popularity: f64,
    /// Expected misses per admission; infinite for names that are never admitted.
    misses: f64,
}

impl FilterModel {
    /// Solves equations 5.3 to 5.7 as they are published.
    pub fn published(&self) -> FilterRates {
        let mut classes = self.classes();
        for class in &mut classes {
            // Equation 5.3.
            class.misses = 1.0 / poisson_tail(self.history * class.popularity, self.threshold.saturating_sub(1));
        }
        rates(&classes, eviction_time(&classes, self.capacity as f64))
    }

    /// Solves the same equations with the number of misses described in the module documentation.
    pub fn rates(&self) -> FilterRates {
        let (classes, eviction_time) = self.settled();
        rates(&classes, eviction_time)
    }

    /// Rates over the requests numbered `first` to `last` (exclusive), for a store that was empty at request 0.
    pub fn rates_between(&self, first: f64, last: f64) -> FilterRates {
        let (classes, eviction_time) = self.settled();
        let settled = rates(&classes, eviction_time);
        let full_at = full_at(&classes, self.capacity as f64).clamp(first, last.max(first));
        let filling = (full_at - first) / (last - first);
        if filling.is_nan() || filling <= 0.0 {
            return settled;
        }
        let (mut hit, mut inserted) = (0.0, 0.0);
        for class in &classes {
            // While the store fills, a name is present from its first admission on. Its expected wait is taken to be
            // as long as for later admissions.
            let rate = class.popularity / class.misses;
            let absent_at_first = class.count * (-rate * first).exp();
            let entering = absent_at_first * -(-rate * (full_at - first)).exp_m1();
            let absent = if rate > f64::MIN_POSITIVE { entering / rate } else { class.count * (full_at - first) };
            hit += class.popularity * (class.count * (full_at - first) - absent);
            inserted += entering;
        }
        let hit = hit / (full_at - first);
        let insertion = share_of_misses(inserted / (full_at - first), 1.0 - hit);
        let of_filling = FilterRates { hit, insertion, ..settled };
        let mean = |filling_rate: f64, rate: f64| filling * filling_rate + (1.0 - filling) * rate;
        let hit = mean(of_filling.hit, settled.hit);
        let inserted = mean(of_filling.insertion * (1.0 - of_filling.hit), settled.insertion * (1.0 - settled.hit));
        FilterRates { hit, insertion: share_of_misses(inserted, 1.0 - hit), ..settled }
    }

    /// Requests until an empty store is full; infinite if it never fills.
    pub fn full_at(&self) -> f64 {
        full_at(&self.settled().0, self.capacity as f64)
    }

    /// Returns all classes with their misses, and the eviction time.
    fn settled(&self) -> (Vec<Class>, f64) {
        let classes = self.classes();
        let neighbours = self.neighbours(&classes);
        let histories = |class: Option<&Class>| self.history * class.map_or(0.0, |class| class.popularity);
        let (most, least) = (histories(classes.first()), histories(classes.last()));
        let step = (most / least).ln() / (POPULARITIES - 1) as f64;
        let popularities = (0..POPULARITIES).map(|number| least * (step * number as f64).exp());
        let computed: Vec<Misses> = popularities
            .flat_map(|own| neighbours.iter().map(move |&(others, _)| Misses::new(own, others, self.threshold)))
            .collect();
        let after = |time: f64| -> Vec<Class> {
            let logarithms: Vec<f64> =
                computed.iter().map(|misses| misses.until_admitted(time / self.history).ln()).collect();
            let between = |own: f64, neighbour: usize| {
                let position = if step > 0.0 { (own / least).ln() / step } else { 0.0 };
                let position = position.clamp(0.0, (POPULARITIES - 1) as f64 - 1e-9);
                let at = |number: usize| logarithms[number * neighbours.len() + neighbour];
                let (low, high) = (at(position as usize), at(position as usize + 1));
                if low == high { low } else { low + (high - low) * position.fract() }
            };
            let with_neighbour = |class: &Class, neighbour: usize, share: f64| Class {
                count: class.count * share,
                misses: between(self.history * class.popularity, neighbour).exp(),
                ..*class
            };
            let of_class = |class: &Class| {
                let class = *class;
                neighbours.iter().enumerate().map(move |(number, &(_, share))| (class, number, share))
            };
            classes
                .iter()
                .flat_map(of_class)
                .map(|(class, number, share)| with_neighbour(&class, number, share))
                .collect()
        };
        let capacity = self.capacity as f64;
        // In nearly all cases Data stays longer than a history, so the history at its admission does not matter.
        let settled = after(f64::INFINITY);
        let time = eviction_time(&settled, capacity);
        if time >= self.history {
            return (settled, time);
        }
        let (mut least, mut longest) = (0.0, self.history);
        for _ in 0..STEPS / 3 {
            let middle = f64::midpoint(least, longest);
            if occupied(&after(middle), middle) < capacity { least = middle } else { longest = middle }
        }
        (after(longest), longest)
    }

    fn classes(&self) -> Vec<Class> {
        let mut classes = Vec::new();
        let mut rank = 1;
        while rank <= self.packets {
            let width = if rank <= SINGLE_RANKS { 1 } else { (rank as f64 * CLASS_WIDTH) as u64 };
            let last = (rank + width.max(1) - 1).min(self.packets);
            let count = (last - rank + 1) as f64;
            // Classes are so narrow that the middle rank represents them.
            let popularity = f64::midpoint(rank as f64, last as f64).powf(-self.alpha);
            classes.push(Class { count, popularity, misses: 1.0 });
            rank = last + 1;
        }
        let total: f64 = classes.iter().map(|class| class.count * class.popularity).sum();
        for class in &mut classes {
            class.popularity /= total;
        }
        classes
    }

    /// Distribution of the requests within a history for other names at a name's counter, as pairs (requests, share
    /// of names).
    fn neighbours(&self, classes: &[Class]) -> Vec<(f64, f64)> {
        let Some(counters) = self.counters.filter(|_| self.threshold > 1) else { return vec![(0.0, 1.0)] };
        let of_names = classes.iter().map(|class| (self.history * class.popularity, class.count / counters as f64));
        neighbours::distribution(of_names, self.threshold)
    }
}

impl Class {
    /// Equation 5.5: the probability that one of these names is in the store.
    fn hit(&self, eviction_time: f64) -> f64 {
        let answered = self.popularity * eviction_time;
        if self.misses.is_infinite() {
            0.0
        } else if answered.is_infinite() {
            1.0
        } else {
            answered / (self.misses + answered)
        }
    }
}

fn occupied(classes: &[Class], time: f64) -> f64 {
    classes.iter().map(|class| class.count * class.hit(time)).sum()
}

/// Equation 5.6 for τ.
fn eviction_time(classes: &[Class], capacity: f64) -> f64 {
    time_until(classes, capacity, |time| occupied(classes, time))
}

fn full_at(classes: &[Class], capacity: f64) -> f64 {
    let entered = |class: &Class, time: f64| class.count * -(-class.popularity / class.misses * time).exp_m1();
    time_until(classes, capacity, |time| classes.iter().map(|class| entered(class, time)).sum())
}

/// Solves `sum(time) == capacity` for a `sum` that grows with time. Infinite if fewer names than `capacity` are ever
/// admitted.
fn time_until(classes: &[Class], capacity: f64, sum: impl Fn(f64) -> f64) -> f64 {
    let most: f64 = classes.iter().filter(|class| class.misses.is_finite()).map(|class| class.count).sum();
    if capacity >= most {
        return f64::INFINITY;
    }
    let (mut least, mut longest) = (0.0, 1.0);
    while sum(longest) < capacity && longest < f64::MAX / 2.0 {
        (least, longest) = (longest, longest * 2.0);
    }
    for _ in 0..STEPS {
        let middle = f64::midpoint(least, longest);
        if sum(middle) < capacity { least = middle } else { longest = middle }
    }
    longest
}

/// Equations 5.4 and 5.7.
fn rates(classes: &[Class], eviction_time: f64) -> FilterRates {
    let (mut hit, mut missed, mut inserted) = (0.0, 0.0, 0.0);
    for class in classes {
        let of_class = class.hit(eviction_time);
        let requests = class.count * class.popularity;
        hit += requests * of_class;
        missed += requests * (1.0 - of_class);
        inserted += requests * (1.0 - of_class) / class.misses;
    }
    FilterRates { hit, insertion: share_of_misses(inserted, missed), eviction_time }
}

/// Insertions per miss; 0 if `missed` is only a rounding error.
fn share_of_misses(inserted: f64, missed: f64) -> f64 {
    if missed > ROUNDING { (inserted / missed).min(1.0) } else { 0.0 }
}

/// Probability of at least `needed` events if `mean` are expected. In equation 5.3, the probability of at least θ - 1
/// requests for a name in the history.
fn poisson_tail(mean: f64, needed: u32) -> f64 {
    // For small means the upper tail is summed directly: one minus the lower sum would lose all digits.
    if needed == 0 {
        return 1.0;
    }
    if needed == 1 {
        return -(-mean).exp_m1();
    }
    let below = |needed: u32| {
        let mut term = (-mean).exp();
        let mut sum = 0.0;
        for k in 0..needed {
            sum += term;
            term *= mean / f64::from(k + 1);
        }
        sum
    };
    if mean > f64::from(needed) {
        return (1.0 - below(needed)).max(0.0);
    }
    let mut term = (-mean).exp();
    for k in 0..needed {
        term *= mean / f64::from(k + 1);
    }
    let (mut sum, mut k) = (0.0, needed);
    while term > sum * f64::EPSILON && term > 0.0 {
        sum += term;
        k += 1;
        term *= mean / f64::from(k);
    }
    sum.min(1.0)
}

/// Probability that a name's counter in Filter's table also counts another name: 1 - (1 - 1/h)^q (thesis, 5.2.3).
pub fn filter_false_positives(history: f64, counters: f64) -> f64 {
    -(history * (-1.0 / counters).ln_1p()).exp_m1()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const WEB: FilterModel = FilterModel {
        packets: 10_000_000,
        alpha: 0.8,
        capacity: 100_000,
        history: 100_000.0,
        threshold: 2,
        counters: None,
    };

    #[test]
    fn the_published_parameters_give_plausible_rates() {
        let filter = WEB.published();
        let fifo = FilterModel { threshold: 1, ..WEB }.published();
        assert!(filter.hit > fifo.hit + 0.05, "{filter:?} {fifo:?}");
        assert!((0.01..0.1).contains(&filter.insertion), "{filter:?}");
        assert_eq!(fifo.insertion, 1.0);
    }

    #[test]
    fn probabilities_of_the_thesis() {
        assert!((filter_false_positives(1e4, 16_777_216.0) - 0.000_596).abs() < 1e-6);
        assert_eq!(poisson_tail(3.0, 0), 1.0);
        assert!((poisson_tail(0.5, 1) - (1.0 - (-0.5_f64).exp())).abs() < 1e-15);
        assert!((poisson_tail(1e-9, 2) / 0.5e-18 - 1.0).abs() < 1e-6, "{}", poisson_tail(1e-9, 2));
    }

    #[test]
    fn a_store_for_everything_answers_everything() {
        let model = FilterModel { packets: 100, capacity: 100, ..WEB };
        for rates in [model.published(), model.rates()] {
            assert!((rates.hit - 1.0).abs() < 1e-9 && rates.insertion == 0.0, "{rates:?}");
            assert!(rates.eviction_time.is_infinite());
        }
        assert!(model.full_at().is_infinite());
    }

    /// Equation 5.6 holds: the store is full.
    #[test]
    fn classes_stand_for_their_ranks() {
        let model =
            FilterModel { packets: 20_000, alpha: 0.8, capacity: 500, history: 700.0, threshold: 3, counters: None };
        let rates = model.published();
        let weights: Vec<f64> = (1..=model.packets).map(|rank| (rank as f64).powf(-model.alpha)).collect();
        let total: f64 = weights.iter().sum();
        let (mut occupied, mut hit) = (0.0, 0.0);
        for weight in weights {
            let popularity = weight / total;
            let mean = model.history * popularity;
            let admission = 1.0 - (-mean).exp() * (1.0 + mean);
            let entered = popularity * admission * rates.eviction_time;
            occupied += entered / (1.0 + entered);
            hit += popularity * entered / (1.0 + entered);
        }
        assert!((occupied / 500.0 - 1.0).abs() < 1e-4, "{occupied}");
        assert!((hit - rates.hit).abs() < 1e-5, "{hit} {rates:?}");
    }

    #[test]
    fn plain_fifo_is_the_same_in_both_forms() {
        let fifo = FilterModel { threshold: 1, counters: Some(1 << 20), ..WEB };
        let (published, rates) = (fifo.published(), fifo.rates());
        assert!((published.hit - rates.hit).abs() < 1e-9 && rates.insertion == 1.0, "{published:?} {rates:?}");
    }

    #[test]
    fn a_store_fills_before_it_is_settled() {
        let model = FilterModel { packets: 100_000, capacity: 1_000, history: 1_000.0, threshold: 3, ..WEB };
        let (full_at, settled) = (model.full_at(), model.rates());
        let early = model.rates_between(0.0, full_at / 100.0);
        assert!(early.hit < settled.hit * 0.7 && early.insertion > settled.insertion, "{early:?} {settled:?}");
        assert_eq!(model.rates_between(full_at, 2.0 * full_at), settled);
        let late = model.rates_between(0.9 * full_at, 2.0 * full_at);
        assert!((late.hit - settled.hit).abs() < 0.02, "{late:?} {settled:?}");
    }

    #[test]
    fn where_everything_fits_hardly_anything_misses_and_no_more_enters() {
        let (packets, history) = (5_794, 0.0);
        let all = FilterModel { packets, alpha: 1.25, capacity: packets, history, threshold: 0, counters: Some(1) };
        for rates in [all.rates(), all.rates_between(4.9e6, 9.8e6)] {
            assert!(rates.hit > 0.99 && (0.0..=1.0).contains(&rates.insertion), "{rates:?}");
        }
    }

    proptest! {
        #[test]
        fn rates_are_shares(
            packets in 1..100_000_u64,
            alpha in 0.0..3.0,
            capacity in 0..100_000_u64,
            history in 0.0..1e7,
            threshold in 0..40_u32,
        ) {
            let model = FilterModel { packets, alpha, capacity, history, threshold, counters: None };
            let rates = model.published();
            prop_assert!((0.0..=1.0 + 1e-9).contains(&rates.hit), "{:?}", rates);
            prop_assert!((0.0..=1.0 + 1e-9).contains(&rates.insertion), "{:?}", rates);
        }

        #[test]
        fn admission_falls_with_the_threshold(mean in 0.0..200.0, needed in 0..40_u32) {
            let (low, high) = (poisson_tail(mean, needed), poisson_tail(mean, needed + 1));
            prop_assert!((0.0..=1.0).contains(&low) && high <= low + 1e-12, "{low} {high}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]
        #[test]
        fn rates_with_a_limited_filter_are_shares(
            packets in 1..20_000_u64,
            alpha in 0.0..3.0,
            capacity in 0..20_000_u64,
            history in 0.0..1e6,
            threshold in 0..9_u32,
            counters in 1..1_000_000_u64,
            requests in 1.0..1e7,
        ) {
            let model = FilterModel { packets, alpha, capacity, history, threshold, counters: Some(counters) };
            for rates in [model.rates(), model.rates_between(requests / 2.0, requests)] {
                prop_assert!((0.0..=1.0 + 1e-9).contains(&rates.hit), "{:?}", rates);
                prop_assert!((-1e-9..=1.0 + 1e-9).contains(&rates.insertion), "{:?}", rates);
            }
        }
    }
}
