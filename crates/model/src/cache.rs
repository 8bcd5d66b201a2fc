//! Hit and insertion rate of Filter admission in front of a first-in-first-out store, and cycles of packets with a cache policy.
//!
//! Takemasa, thesis, Osaka University 2019, equations 5.1 to 5.7. Requests are independent of each other, and popularities follow
//! Zipf's law. A history of q requests, a threshold of 1 and an empty history alike admit everything: that is plain FIFO.

use serde::Serialize;

/// Ranks whose popularity is computed one by one; those behind them in classes of nearly equal popularity.
const SINGLE_RANKS: u64 = 2_000;
/// Width of a class, relative to its ranks.
const CLASS_WIDTH: f64 = 0.002;
/// Steps of the search for the eviction time; each halves the interval.
const STEPS: usize = 100;

/// What the model is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct FilterModel {
    /// Packets that can be asked for (N).
    pub packets: u64,
    /// Exponent of their popularity (α).
    pub alpha: f64,
    /// Packets that the store holds (C).
    pub capacity: u64,
    /// Requests in the history queue (q).
    pub history: f64,
    /// Requests in the history that admit Data, the one that fetched it included (θ).
    pub threshold: u32,
}

/// What it answers.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct FilterRates {
    /// Share of Interests that the store answers.
    pub hit: f64,
    /// Share of the Data that comes for the others and enters.
    pub insertion: f64,
    /// Requests until a packet that has entered leaves (τ); infinite where the store never fills up.
    pub eviction_time: f64,
}

/// Packets of equal popularity.
struct Class {
    count: f64,
    /// Probability that a request is for one of them: λ'_c.
    popularity: f64,
    /// Probability that its Data enters.
    admission: f64,
}

impl FilterModel {
    /// Solves the equations.
    pub fn rates(&self) -> FilterRates {
        let classes = self.classes();
        let occupied = |time: f64| classes.iter().map(|class| class.count * class.hit(time)).sum::<f64>();
        // What is admitted now and then would all be there in the end.
        let most = classes.iter().filter(|class| class.admission > 0.0).map(|class| class.count).sum::<f64>();
        let capacity = self.capacity as f64;
        let eviction_time = if capacity >= most {
            f64::INFINITY
        } else {
            let (mut least, mut longest) = (0.0, 1.0);
            while occupied(longest) < capacity && longest < f64::MAX / 2.0 {
                longest *= 2.0;
            }
            for _ in 0..STEPS {
                let middle = f64::midpoint(least, longest);
                if occupied(middle) < capacity { least = middle } else { longest = middle }
            }
            longest
        };
        let (mut hit, mut missed, mut inserted) = (0.0, 0.0, 0.0);
        for class in &classes {
            let of_class = class.hit(eviction_time);
            let requests = class.count * class.popularity;
            hit += requests * of_class;
            missed += requests * (1.0 - of_class);
            inserted += requests * (1.0 - of_class) * class.admission;
        }
        FilterRates { hit, insertion: if missed > 0.0 { inserted / missed } else { 0.0 }, eviction_time }
    }

    fn classes(&self) -> Vec<Class> {
        let mut classes = Vec::new();
        let mut rank = 1;
        while rank <= self.packets {
            let width = if rank <= SINGLE_RANKS { 1 } else { (rank as f64 * CLASS_WIDTH) as u64 };
            let last = (rank + width.max(1) - 1).min(self.packets);
            let count = (last - rank + 1) as f64;
            // So narrow that the middle stands for all.
            let popularity = f64::midpoint(rank as f64, last as f64).powf(-self.alpha);
            classes.push(Class { count, popularity, admission: 0.0 });
            rank = last + 1;
        }
        let total: f64 = classes.iter().map(|class| class.count * class.popularity).sum();
        for class in &mut classes {
            class.popularity /= total;
            class.admission = admission(self.history * class.popularity, self.threshold);
        }
        classes
    }
}

impl Class {
    /// Equation 5.5.
    fn hit(&self, eviction_time: f64) -> f64 {
        let entered = self.popularity * self.admission * eviction_time;
        if entered.is_infinite() {
            1.0
        } else if entered.is_nan() {
            0.0
        } else {
            entered / (1.0 + entered)
        }
    }
}

/// Equation 5.3: the probability that at least θ - 1 of the requests in the history are for a name of which `mean` are expected.
fn admission(mean: f64, threshold: u32) -> f64 {
    // Summed from where the terms are small for unpopular names, for which 1 - exp(-x) would lose all digits.
    let needed = threshold.saturating_sub(1);
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

/// Probability that a name's counter in Filter's table counts another name, too: 1 - (1 - 1/h)^q (thesis, 5.2.3).
pub fn filter_false_positives(history: f64, counters: f64) -> f64 {
    -(history * (-1.0 / counters).ln_1p()).exp_m1()
}

/// Costs of the blocks of figures 5.1 and 5.2 of the thesis, cycles or bytes of memory, by their numbers: B1, B3 to B11 for all
/// policies, B2, B12 and B13 for one.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub struct BlockCosts {
    /// B1, B3, B11: of each Interest, whatever happens. B2 belongs to the policy.
    pub always: f64,
    /// B4: of a hit.
    pub hit: f64,
    /// B5 to B9: of a miss.
    pub miss: f64,
    /// B10: Data enters.
    pub insertion: f64,
    /// B2: the policy learns of the Interest.
    pub history: f64,
    /// B12: the policy finds a victim for all Data that comes.
    pub eviction: f64,
    /// B13: the policy decides whether Data enters.
    pub admission: f64,
}

impl BlockCosts {
    /// Average cost of an Interest and, where it missed, its Data: equations 5.1 and 5.2, 6.11, 6.12, 6.14 and 6.15. The odd ones are
    /// the even ones with an insertion rate of 1.
    pub fn average(&self, hit_rate: f64, insertion_rate: f64) -> f64 {
        let missed = self.miss + self.eviction + self.admission + insertion_rate * self.insertion;
        self.always + self.history + hit_rate * self.hit + (1.0 - hit_rate) * missed
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const WEB: FilterModel =
        FilterModel { packets: 10_000_000, alpha: 0.8, capacity: 100_000, history: 100_000.0, threshold: 2 };

    #[test]
    fn the_published_parameters_give_plausible_rates() {
        let filter = WEB.rates();
        let fifo = FilterModel { threshold: 1, ..WEB }.rates();
        assert!(filter.hit > fifo.hit + 0.05, "{filter:?} {fifo:?}");
        assert!((0.01..0.1).contains(&filter.insertion), "{filter:?}");
        assert_eq!(fifo.insertion, 1.0);
    }

    #[test]
    fn probabilities_of_the_thesis() {
        assert!((filter_false_positives(1e4, 16_777_216.0) - 0.000_596).abs() < 1e-6);
        assert_eq!(admission(3.0, 1), 1.0);
        assert!((admission(0.5, 2) - (1.0 - (-0.5_f64).exp())).abs() < 1e-15);
        assert!((admission(1e-9, 3) / 0.5e-18 - 1.0).abs() < 1e-6, "{}", admission(1e-9, 3));
    }

    #[test]
    fn a_store_for_everything_answers_everything() {
        let rates = FilterModel { packets: 100, capacity: 100, ..WEB }.rates();
        assert_eq!((rates.hit, rates.insertion), (1.0, 0.0));
        assert!(rates.eviction_time.is_infinite());
    }

    /// Equation 5.6 holds: the store is full.
    #[test]
    fn classes_stand_for_their_ranks() {
        let model = FilterModel { packets: 20_000, alpha: 0.8, capacity: 500, history: 700.0, threshold: 3 };
        let rates = model.rates();
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

    proptest! {
        #[test]
        fn rates_are_shares(packets in 1..100_000_u64, alpha in 0.0..3.0, capacity in 0..100_000_u64, history in 0.0..1e7, threshold in 0..40_u32) {
            let rates = FilterModel { packets, alpha, capacity, history, threshold }.rates();
            prop_assert!((0.0..=1.0 + 1e-9).contains(&rates.hit) && (0.0..=1.0 + 1e-9).contains(&rates.insertion), "{:?}", rates);
        }

        #[test]
        fn admission_falls_with_the_threshold(mean in 0.0..200.0, threshold in 1..40_u32) {
            let (low, high) = (admission(mean, threshold), admission(mean, threshold + 1));
            prop_assert!((0.0..=1.0).contains(&low) && high <= low + 1e-12, "{low} {high}");
        }
    }
}
