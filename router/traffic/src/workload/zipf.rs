//! Zipf-distributed ranks: rank k of 1 to n has a probability proportional to k^-α.
//!
//! Uses rejection-inversion (Hörmann and Derflinger, "Rejection-inversion to generate variates from monotone discrete
//! distributions", ACM TOMACS 1996), which is exact for any n and α and needs no table. An alias table for ten million
//! ranks would take 120 MB and a cache miss per rank; this takes a few logarithms, and fewer than 1.1 tries on average.

use namehop_table::permutation::mix;

/// Pseudo-random numbers from a seed.
#[derive(Debug, Clone)]
pub struct Draws {
    state: u64,
}

impl Draws {
    /// Creates a generator; different seeds give different sequences.
    pub fn new(seed: u64) -> Self {
        Draws { state: mix(seed) }
    }

    /// Returns a number, uniform over all 64-bit values.
    #[inline]
    pub fn number(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.state)
    }

    /// Returns a number, uniform from 0 (included) to 1 (excluded).
    #[inline]
    pub fn unit(&mut self) -> f64 {
        (self.number() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Returns the time to the next event of a Poisson process with `rate` events per unit of time.
    pub fn interval(&mut self, rate: f64) -> f64 {
        -(1.0 - self.unit()).ln() / rate
    }
}

/// A Zipf distribution.
#[derive(Debug, Clone)]
pub struct Zipf {
    ranks: u64,
    alpha: f64,
    /// Integral of the hat function at 1.5, minus the probability weight of rank 1; and at the upper end.
    from: f64,
    to: f64,
    /// A draw within this distance below its rank is accepted without a test.
    near: f64,
}

impl Zipf {
    /// Creates a distribution over ranks 1 to `ranks` (at least 1) with exponent `alpha` (at least 0).
    pub fn new(ranks: u64, alpha: f64) -> Self {
        let ranks = ranks.max(1);
        let mut zipf = Zipf { ranks, alpha, from: 0.0, to: 0.0, near: 0.0 };
        zipf.from = zipf.integral(1.5) - 1.0;
        zipf.to = zipf.integral(ranks as f64 + 0.5);
        zipf.near = 2.0 - zipf.inverse(zipf.integral(2.5) - zipf.hat(2.0));
        zipf
    }

    /// Draws a rank.
    #[inline]
    pub fn draw(&self, draws: &mut Draws) -> u64 {
        loop {
            let u = self.to + draws.unit() * (self.from - self.to);
            let x = self.inverse(u);
            let rank = (x + 0.5).floor().clamp(1.0, self.ranks as f64);
            if rank - x <= self.near || u >= self.integral(rank + 0.5) - self.hat(rank) {
                return rank as u64;
            }
        }
    }

    fn hat(&self, x: f64) -> f64 {
        x.powf(-self.alpha)
    }

    /// Integral of the hat function: (x^(1-α) - 1) / (1-α), or ln x if α is 1.
    fn integral(&self, x: f64) -> f64 {
        let (log, rest) = (x.ln(), 1.0 - self.alpha);
        if (rest * log).abs() < 1e-8 { log } else { (rest * log).exp_m1() / rest }
    }

    fn inverse(&self, integral: f64) -> f64 {
        let rest = 1.0 - self.alpha;
        let product = (integral * rest).max(-1.0);
        if product.abs() < 1e-8 { integral.exp() } else { (product.ln_1p() / rest).exp() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Pearson's chi-square of draws against the distribution, divided by the degrees of freedom. The tail is one
    /// class.
    fn chi_square(ranks: u64, alpha: f64, draws: u64) -> f64 {
        let zipf = Zipf::new(ranks, alpha);
        let mut source = Draws::new(ranks ^ alpha.to_bits());
        let classes = ranks.min(200) as usize;
        let mut counts = vec![0_u64; classes + 1];
        for _ in 0..draws {
            let rank = zipf.draw(&mut source);
            assert!((1..=ranks).contains(&rank));
            counts[(rank as usize - 1).min(classes)] += 1;
        }
        let weights: Vec<f64> = (1..=ranks).map(|rank| (rank as f64).powf(-alpha)).collect();
        let total: f64 = weights.iter().sum();
        let mut expected: Vec<f64> = weights[..classes].iter().map(|weight| weight / total * draws as f64).collect();
        expected.push(weights[classes..].iter().sum::<f64>() / total * draws as f64);
        let filled = counts.iter().zip(&expected).filter(|(_, expected)| **expected > 0.0);
        let (sum, count) = filled.fold((0.0, 0), |(sum, count), (&observed, &expected)| {
            (sum + (observed as f64 - expected).powi(2) / expected, count + 1)
        });
        if count > 1 { sum / f64::from(count - 1) } else { 0.0 }
    }

    #[test]
    fn ranks_come_as_often_as_they_should() {
        for (ranks, alpha) in
            [(1, 0.8), (2, 0.8), (5, 2.5), (1000, 1.0), (100_000, 0.8), (1000, 0.0), (50, 0.999_999_999)]
        {
            let chi = chi_square(ranks, alpha, 400_000);
            // With 200 degrees of freedom 1.5 is five standard deviations away; fewer degrees vary more.
            let limit = if ranks < 100 { 8.0 } else { 1.5 };
            assert!(chi < limit, "{ranks} ranks, α {alpha}: {chi}");
        }
    }

    #[test]
    fn intervals_have_their_mean() {
        let mut draws = Draws::new(3);
        let mean = (0..100_000).map(|_| draws.interval(0.5)).sum::<f64>() / 100_000.0;
        assert!((mean - 2.0).abs() < 0.04, "{mean}");
    }
}
