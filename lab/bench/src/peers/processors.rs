//! CPUs of the forwarders and of the load.

use std::io;

use namehop_worker::usable_processors;
use nix::sched::{CpuSet, sched_setaffinity};
use nix::unistd::Pid;
use serde::Serialize;

use super::PeersError;

/// Maximum number of CPUs of the load, which has one consumer and one producer.
const MOST_FOR_LOAD: usize = 2;

/// CPUs used by the comparison.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Processors {
    /// CPUs of forwarders started here. An attached forwarder keeps its own.
    pub forwarders: Vec<usize>,
    /// CPUs of consumer and producer.
    pub generator: Vec<usize>,
}

impl Processors {
    /// Chooses the first one or two CPUs for the load and the others for forwarders; or the given ones for forwarders
    /// and the rest for the load.
    pub(super) fn choose(asked: Option<&[usize]>) -> Result<Processors, PeersError> {
        Self::of(&usable_processors()?, asked)
    }

    fn of(usable: &[usize], asked: Option<&[usize]>) -> Result<Processors, PeersError> {
        if usable.len() < 2 {
            let text = "forwarders and their load need two CPUs, but this process may use only one";
            return Err(PeersError::Processors(text.to_owned()));
        }
        let Some(asked) = asked else {
            let for_load = (usable.len() / 2).min(MOST_FOR_LOAD);
            let (generator, forwarders) = usable.split_at(for_load);
            return Ok(Processors { forwarders: forwarders.to_vec(), generator: generator.to_vec() });
        };
        if let Some(missing) = asked.iter().find(|processor| !usable.contains(processor)) {
            return Err(PeersError::Processors(format!("this process may not use CPU {missing}, only {usable:?}")));
        }
        let generator: Vec<usize> = usable.iter().copied().filter(|processor| !asked.contains(processor)).collect();
        if generator.is_empty() {
            let text = "no CPU is left for the load: remove at least one from the CPUs of the forwarders";
            return Err(PeersError::Processors(text.to_owned()));
        }
        Ok(Processors { forwarders: asked.to_vec(), generator })
    }
}

/// Restricts the calling thread, and the processes and threads that it starts later, to these CPUs.
pub(super) fn stay_on(processors: &[usize]) -> io::Result<()> {
    let mut set = CpuSet::new();
    for &processor in processors {
        set.set(processor)?;
    }
    Ok(sched_setaffinity(Pid::from_raw(0), &set)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn load_and_forwarders_never_share_one() {
        let of = |usable: &[usize], asked| {
            Processors::of(usable, asked)
                .map(|chosen| (chosen.generator, chosen.forwarders))
                .map_err(|error| error.to_string())
        };
        assert_eq!(of(&[0, 1], None), Ok((vec![0], vec![1])));
        assert_eq!(of(&[2, 3, 5], None), Ok((vec![2], vec![3, 5])));
        assert_eq!(of(&[0, 1, 2, 3, 4], None), Ok((vec![0, 1], vec![2, 3, 4])));
        assert_eq!(of(&[0, 1, 2], Some(&[0])), Ok((vec![1, 2], vec![0])));
        for (usable, asked, words) in [
            (&[3][..], None, "may use only one"),
            (&[0, 1], Some(&[7][..]), "CPU 7"),
            (&[0, 1], Some(&[0, 1]), "left for the load"),
        ] {
            assert!(of(usable, asked).is_err_and(|error| error.contains(words)), "{usable:?} {asked:?}");
        }
    }
}
