//! Requests for other names that share a name's counter: Filter's table does not resolve collisions (thesis, 5.2.3).
//!
//! Each name has a random counter, so the number of other names at that counter is Poisson-distributed. Their total
//! number of requests is a compound Poisson sum; Panjer's recursion gives its distribution.

/// Resolution of the distribution, in requests.
const STEP: f64 = 0.05;
/// Names with fewer requests than this contribute only their mean.
const NOTICED: f64 = STEP / 2.0;
/// Ratio of a group's upper bound to its lower one, and the smallest upper bound of a group.
const GROUP_WIDTH: f64 = 1.5;
const FIRST_GROUP: f64 = 0.1;

/// Distribution of the requests within one history for the other names at a name's counter, as pairs (mean requests,
/// probability). `names` has pairs (requests within a history, expected names per counter with that many requests).
/// Sums far above `threshold` are not resolved, since they all admit the name.
pub(super) fn distribution(names: impl Iterator<Item = (f64, f64)>, threshold: u32) -> Vec<(f64, f64)> {
    let most = 4.0 * f64::from(threshold.min(64)) + 20.0;
    let steps = (most / STEP) as usize;
    let mut usual = 0.0;
    // Expected names per counter, by requests in units of `STEP`.
    let mut expected = vec![0.0; steps + 1];
    for (requests, per_counter) in names {
        if requests < NOTICED {
            usual += requests * per_counter;
            continue;
        }
        // Split between the two nearest steps, so that the mean is preserved.
        let position = (requests / STEP).min(steps as f64 - 1.0);
        let above = position.fract();
        expected[position as usize] += per_counter * (1.0 - above);
        expected[position as usize + 1] += per_counter * above;
    }
    let present: Vec<(usize, f64)> =
        (1..=steps).filter(|&step| expected[step] > 0.0).map(|step| (step, step as f64 * expected[step])).collect();
    let any: f64 = expected[1..].iter().sum();
    let mut shares = vec![0.0; steps + 1];
    shares[0] = (-any).exp();
    for sum in 1..=steps {
        let of = present.iter().take_while(|(step, _)| *step <= sum);
        shares[sum] = of.map(|(step, weight)| weight * shares[sum - step]).sum::<f64>() / sum as f64;
    }
    let rest = 1.0 - shares.iter().sum::<f64>();
    let mut groups: Vec<(f64, f64)> = Vec::new();
    let mut end = 0.0;
    let sums = shares.iter().enumerate().map(|(sum, &share)| (sum as f64 * STEP, share));
    for (sum, share) in sums.chain([(most, rest.max(0.0))]) {
        match groups.last_mut() {
            Some((requests, of_group)) if sum < end => {
                *requests += sum * share;
                *of_group += share;
            }
            _ => {
                end = if sum == 0.0 { STEP } else { (sum * GROUP_WIDTH).max(FIRST_GROUP) };
                groups.push((sum * share, share));
            }
        }
    }
    let mean = |(requests, share): (f64, f64)| (usual + requests / share, share);
    groups.into_iter().filter(|(_, share)| *share > 0.0).map(mean).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn among_many_counters_none_is_shared() {
        assert_eq!(distribution([(1.0, 0.0)].into_iter(), 2), [(0.0, 1.0)]);
    }

    #[test]
    fn means_are_kept() {
        let names = [(0.001, 0.6), (0.3, 0.2), (2.0, 0.01), (5.3, 0.3)];
        let groups = distribution(names.into_iter(), 30);
        let mean: f64 = groups.iter().map(|(requests, share)| requests * share).sum();
        let expected: f64 = names.iter().map(|(requests, per_counter)| requests * per_counter).sum();
        assert!((mean / expected - 1.0).abs() < 1e-3, "{mean} instead of {expected}");
        assert!((groups.iter().map(|(_, share)| share).sum::<f64>() - 1.0).abs() < 1e-9);
        // Probability that the counter has none of the other names.
        assert!((groups[0].1 - (-0.51_f64).exp()).abs() < 1e-9, "{groups:?}");
    }

    #[test]
    fn full_counters_have_enough_requests() {
        let groups = distribution([(1_000.0, 3.0)].into_iter(), 2);
        let (requests, share) = groups[groups.len() - 1];
        assert!(requests > 20.0 && (share - (1.0 - (-3.0_f64).exp())).abs() < 1e-9, "{groups:?}");
        assert_eq!(distribution([(1_000.0, 1e9)].into_iter(), 2), [(28.0, 1.0)]);
    }
}
