//! Requests as in the thesis, 5.4.1: for web objects, for segments of videos, or for both. Besides these, web objects
//! with losses and with flash crowds.
//!
//! Stores depend on the order of requests, not on their times. So a Poisson process of independent requests becomes a
//! sequence of independent draws. Only videos need a clock, because their requests follow each other at a fixed
//! interval.

pub mod zipf;

use std::collections::VecDeque;
use std::fmt;
use std::str::FromStr;

use namehop_table::permutation::mix;

use self::zipf::{Draws, Zipf};

/// Number of the first video segment, above all web objects.
const SEGMENTS: u64 = 1 << 40;
/// Number of the first object of a flash crowd, above all video segments.
const CROWDS: u64 = 1 << 60;

/// Kind of the requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WorkloadKind {
    /// Web objects of one packet each.
    Web,
    /// Videos, requested segment by segment.
    Video,
    /// Web objects and videos.
    Mixed,
    /// Web objects; some are requested again, as after a loss on the way to the consumer.
    Lossy,
    /// Web objects, and flash crowds: many requests for a new object within a short time, and none afterwards.
    Flash,
}

impl WorkloadKind {
    /// The kinds of the thesis.
    pub const PUBLISHED: [WorkloadKind; 3] = [WorkloadKind::Web, WorkloadKind::Video, WorkloadKind::Mixed];
    /// All kinds.
    pub const ALL: [WorkloadKind; 5] =
        [WorkloadKind::Web, WorkloadKind::Video, WorkloadKind::Mixed, WorkloadKind::Lossy, WorkloadKind::Flash];

    /// Name on the command line and in reports.
    pub const fn name(self) -> &'static str {
        match self {
            WorkloadKind::Web => "web",
            WorkloadKind::Video => "video",
            WorkloadKind::Mixed => "mixed",
            WorkloadKind::Lossy => "lossy",
            WorkloadKind::Flash => "flash",
        }
    }
}

impl fmt::Display for WorkloadKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// The text names no workload.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown workload '{0}', expected 'web', 'video', 'mixed', 'lossy' or 'flash'")]
pub struct UnknownWorkload(pub String);

impl FromStr for WorkloadKind {
    type Err = UnknownWorkload;

    fn from_str(text: &str) -> Result<Self, UnknownWorkload> {
        WorkloadKind::ALL.into_iter().find(|kind| kind.name() == text).ok_or_else(|| UnknownWorkload(text.to_owned()))
    }
}

/// Parameters of a workload.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct WorkloadShape {
    /// Kind of the requests.
    pub kind: WorkloadKind,
    /// Number of web objects.
    pub objects: u64,
    /// Zipf exponent of the popularity of objects and of videos.
    pub alpha: f64,
    /// Number of videos.
    pub videos: u64,
    /// Segments per video; at least 1.
    pub segments: u64,
    /// Videos started per second.
    pub videos_per_s: f64,
    /// Segments requested per second for a video being watched.
    pub segments_per_s: f64,
    /// Share of web requests in a mixed workload, 0 to 1.
    pub web_share: f64,
    /// Share of requests in a lossy workload that are repeated, 0 to 1.
    pub lost_share: f64,
    /// Number of requests after which they are repeated.
    pub repeat_after: u64,
    /// Number of requests from the start of a flash crowd to the start of the next one.
    pub crowd_interval: u64,
    /// Number of requests of a flash crowd; at least 1.
    pub crowd_requests: u64,
    /// Number of requests from one of a flash crowd to its next one.
    pub crowd_gap: u64,
    /// Seed of the random numbers.
    pub seed: u64,
}

impl WorkloadShape {
    /// Parameters of the thesis. For losses and flash crowds, which it does not have: 5 % of the requests are repeated
    /// after 1,000 others; a flash crowd of 100 requests begins every 1,000 requests and lasts for 10,000.
    pub fn published(kind: WorkloadKind) -> Self {
        WorkloadShape {
            kind,
            objects: 10_000_000,
            alpha: 0.8,
            videos: 10_000,
            segments: 10_000,
            videos_per_s: 0.5,
            segments_per_s: 625.0,
            web_share: 0.7,
            lost_share: 0.05,
            repeat_after: 1_000,
            crowd_interval: 1_000,
            crowd_requests: 100,
            crowd_gap: 100,
            seed: 1,
        }
    }

    /// Number of different packets, without the objects of flash crowds.
    pub fn packets(&self) -> u64 {
        let videos = self.videos.saturating_mul(self.segments);
        match self.kind {
            WorkloadKind::Web | WorkloadKind::Lossy | WorkloadKind::Flash => self.objects,
            WorkloadKind::Video => videos,
            WorkloadKind::Mixed => self.objects.saturating_add(videos),
        }
    }
}

/// Generator of requests, without end.
#[derive(Debug)]
pub struct Workload {
    shape: WorkloadShape,
    draws: Draws,
    objects: Zipf,
    videos: Zipf,
    /// Videos being watched: time and number of the next segment. The queue is ordered by time, because the interval
    /// between segments is the same for all videos.
    watched: VecDeque<(f64, u64)>,
    /// Start time of the next video.
    next_video: f64,
    /// Number of requests so far.
    requests: u64,
    /// Requests that will come for repetitions or flash crowds, in order of time.
    due: VecDeque<Due>,
}

/// Requests for one packet at known times, counted in requests.
#[derive(Debug)]
struct Due {
    /// Time of the next one.
    at: u64,
    number: u64,
    /// Number of requests from now on, at the same intervals.
    left: u64,
}

impl Workload {
    /// Creates a generator with these parameters.
    pub fn new(shape: WorkloadShape) -> Self {
        let mut draws = Draws::new(shape.seed);
        let next_video = draws.interval(shape.videos_per_s);
        let (objects, videos) = (Zipf::new(shape.objects, shape.alpha), Zipf::new(shape.videos, shape.alpha));
        Workload {
            shape,
            draws,
            objects,
            videos,
            watched: VecDeque::new(),
            next_video,
            requests: 0,
            due: VecDeque::new(),
        }
    }

    /// Returns the next request, as the hash of its name.
    pub fn next_request(&mut self) -> u64 {
        mix(self.next_number())
    }

    /// Returns the next request, as the number of the packet: web objects from 1 on, video segments from 2^40 on,
    /// objects of flash crowds from 2^60 on.
    pub fn next_number(&mut self) -> u64 {
        self.requests += 1;
        match self.shape.kind {
            WorkloadKind::Web => self.next_object(),
            WorkloadKind::Video => self.next_segment(),
            WorkloadKind::Mixed if self.draws.unit() < self.shape.web_share => self.next_object(),
            WorkloadKind::Mixed => self.next_segment(),
            WorkloadKind::Lossy => self.next_lossy(),
            WorkloadKind::Flash => self.next_of_crowd().unwrap_or_else(|| self.next_object()),
        }
    }

    fn take_due(&mut self) -> Option<Due> {
        self.due.front().filter(|due| due.at <= self.requests)?;
        self.due.pop_front()
    }

    fn next_lossy(&mut self) -> u64 {
        if let Some(Due { number, .. }) = self.take_due() {
            return number;
        }
        let number = self.next_object();
        if self.draws.unit() < self.shape.lost_share {
            self.due.push_back(Due { at: self.requests + self.shape.repeat_after, number, left: 1 });
        }
        number
    }

    /// Returns the next request of a flash crowd if one is due.
    fn next_of_crowd(&mut self) -> Option<u64> {
        let WorkloadShape { crowd_interval, crowd_requests, crowd_gap, .. } = self.shape;
        if self.requests.is_multiple_of(crowd_interval) {
            let number = CROWDS + self.requests / crowd_interval;
            self.due.push_front(Due { at: self.requests, number, left: crowd_requests });
        }
        let due = self.take_due()?;
        if due.left > 1 {
            self.due.push_back(Due { at: self.requests + crowd_gap, left: due.left - 1, ..due });
        }
        Some(due.number)
    }

    fn next_object(&mut self) -> u64 {
        self.objects.draw(&mut self.draws)
    }

    fn next_segment(&mut self) -> u64 {
        let begins = self.watched.front().is_none_or(|&(time, _)| self.next_video < time);
        let (time, segment) = if begins {
            let video = self.videos.draw(&mut self.draws) - 1;
            let time = self.next_video;
            self.next_video += self.draws.interval(self.shape.videos_per_s);
            (time, video * self.shape.segments)
        } else {
            self.watched.pop_front().unwrap_or_default()
        };
        if (segment + 1) % self.shape.segments != 0 {
            self.watched.push_back((time + 1.0 / self.shape.segments_per_s, segment + 1));
        }
        SEGMENTS + segment
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    #[test]
    fn videos_are_watched_from_the_first_segment_to_the_last() {
        let shape = WorkloadShape { segments: 50, videos: 20, ..WorkloadShape::published(WorkloadKind::Video) };
        let mut workload = Workload::new(shape);
        // For each video, the number of viewers by next segment.
        let mut watched: HashMap<u64, Vec<u32>> = HashMap::new();
        let (mut begun, mut longest) = (0, 0);
        for _ in 0..20_000 {
            let segment = workload.next_segment() - SEGMENTS;
            let (video, index) = (segment / 50, (segment % 50) as usize);
            assert!(video < 20);
            let waiting = watched.entry(video).or_insert_with(|| vec![0; 51]);
            if index == 0 {
                begun += 1;
            } else {
                assert!(waiting[index] > 0, "segment {index} must come after its predecessor");
                waiting[index] -= 1;
            }
            waiting[index + 1] += 1;
            longest = longest.max(workload.watched.len());
        }
        assert!((395..=405).contains(&begun), "{begun}");
        // 0.5 videos start per second and last 0.08 seconds.
        assert!((1..=4).contains(&longest), "{longest}");
    }

    #[test]
    fn several_videos_are_watched_at_a_time() {
        let mut workload = Workload::new(WorkloadShape::published(WorkloadKind::Video));
        let mut sum = 0;
        for _ in 0..2_000_000 {
            workload.next_request();
            sum += workload.watched.len();
            assert!(workload.watched.iter().is_sorted_by(|a, b| a.0 <= b.0) || sum % 1000 != 0);
        }
        // 0.5 videos per second for 16 seconds are 8 on average. The mean is over requests, and more requests come
        // while more videos are watched.
        let mean = sum as f64 / 2e6;
        assert!((6.0..14.0).contains(&mean), "{mean}");
    }

    #[test]
    fn mixed_requests_have_their_shares() {
        let mut workload = Workload::new(WorkloadShape::published(WorkloadKind::Mixed));
        let mut web = 0;
        let names: Vec<u64> = (0..100_000).map(|_| workload.next_request()).collect();
        let mut again = Workload::new(WorkloadShape::published(WorkloadKind::Mixed));
        assert!(names.iter().all(|&name| again.next_request() == name), "the same seed must give the same requests");
        let mut shape = Workload::new(WorkloadShape::published(WorkloadKind::Mixed));
        for _ in 0..100_000 {
            web += usize::from(shape.draws.unit() < shape.shape.web_share);
        }
        assert!((69_200..70_800).contains(&web), "{web}");
        assert_eq!(WorkloadShape::published(WorkloadKind::Mixed).packets(), 110_000_000);
    }

    #[test]
    fn some_requests_are_repeated_once_after_a_while() {
        let mut workload = Workload::new(WorkloadShape::published(WorkloadKind::Lossy));
        let numbers: Vec<u64> = (0..200_000).map(|_| workload.next_number()).collect();
        // Rare objects, which are hardly drawn twice.
        let again = (1_000..numbers.len()).filter(|&at| numbers[at] > 1_000_000 && numbers[at - 1_000] == numbers[at]);
        let rare = numbers.iter().filter(|&&number| number > 1_000_000).count();
        let share = again.count() as f64 / rare as f64;
        assert!((0.043..0.053).contains(&share), "{share}");
    }

    #[test]
    fn a_crowd_requests_its_object_at_intervals_and_then_never_again() {
        let mut workload = Workload::new(WorkloadShape::published(WorkloadKind::Flash));
        let mut times: HashMap<u64, Vec<u64>> = HashMap::new();
        for time in 0..50_000 {
            let number = workload.next_number();
            if number >= CROWDS {
                times.entry(number).or_default().push(time);
            }
        }
        let complete: Vec<&Vec<u64>> = times.values().filter(|times| times.len() == 100).collect();
        assert!((38..=41).contains(&complete.len()), "{}", complete.len());
        for times in complete {
            let length = times[99] - times[0];
            assert!((9_900..=10_300).contains(&length), "{length}");
        }
        assert!(times.values().all(|times| times.len() <= 100));
    }

    #[test]
    fn names_read_back() {
        for kind in WorkloadKind::ALL {
            assert_eq!(kind.to_string().parse(), Ok(kind));
        }
        assert_eq!("all".parse::<WorkloadKind>(), Err(UnknownWorkload("all".to_owned())));
    }
}
