//! Latency of packets in the router, from reception to transmission, measured on a sample.
//!
//! Each thread that receives or sends frames has its own [`LatencyRecorder`] while latency is measured, and none
//! otherwise. It stamps one in `one_in` received frames on average. When it sends a stamped frame, it records the time,
//! whichever thread received the frame. The reader gets the results by swapping the recorder for an empty one. So
//! threads share nothing on the packet path.

use std::hash::{BuildHasher, RandomState};
use std::num::NonZeroU32;
use std::time::Instant;

use hdrhistogram::Histogram;
use namehop_packet::{PacketWay, Stamp};

use crate::ring::Frame;
use crate::sampling::SampleGaps;

/// Number of significant digits: times are recorded to one percent.
const DIGITS: u8 = 2;

/// Times from reception to transmission in nanoseconds, for each [`PacketWay`].
#[derive(Debug, Clone)]
pub struct LatencyHistograms([Histogram<u64>; 3]);

impl LatencyHistograms {
    /// Creates empty histograms. All their memory is allocated here.
    pub fn new() -> Self {
        let empty = || match Histogram::new_with_bounds(1, Stamp::RANGE_NS, DIGITS) {
            Ok(histogram) => histogram,
            // The constructor accepts these constant bounds and digits.
            Err(error) => unreachable!("{error}"),
        };
        LatencyHistograms([empty(), empty(), empty()])
    }

    /// Returns the times of the packets of this kind.
    pub fn of(&self, way: PacketWay) -> &Histogram<u64> {
        &self.0[way as usize]
    }

    /// Adds the recorded times of `others`.
    pub fn add(&mut self, others: &LatencyHistograms) {
        for (histogram, other) in self.0.iter_mut().zip(&others.0) {
            // Both have the same bounds.
            let _ = histogram.add(other);
        }
    }
}

impl Default for LatencyHistograms {
    fn default() -> Self {
        LatencyHistograms::new()
    }
}

/// The latency records of one thread; see the module documentation.
#[derive(Debug)]
pub struct LatencyRecorder {
    clock: Instant,
    one_in: NonZeroU32,
    /// Number of frames to receive before the next one that gets a stamp.
    until_next: u32,
    gaps: SampleGaps,
    histograms: LatencyHistograms,
}

impl LatencyRecorder {
    /// Creates an empty recorder that stamps one in `one_in` frames on average. All recorders in use at the same time
    /// must have the same `clock`.
    pub fn new(clock: Instant, one_in: NonZeroU32) -> Box<Self> {
        let mut gaps = SampleGaps::new(one_in, RandomState::new().hash_one(one_in));
        let until_next = gaps.next_gap() - 1;
        Box::new(LatencyRecorder { clock, one_in, until_next, gaps, histograms: LatencyHistograms::new() })
    }

    /// Replaces `current` by `next`, and returns the previous recorder. The next stamp is set when the previous
    /// recorder would have set it.
    pub fn swap(current: &mut Option<Box<Self>>, mut next: Option<Box<Self>>) -> Option<Box<Self>> {
        if let (Some(current), Some(next)) = (&current, &mut next)
            && current.one_in == next.one_in
        {
            next.until_next = current.until_next;
        }
        std::mem::replace(current, next)
    }

    /// Returns the times recorded so far.
    pub fn histograms(&self) -> &LatencyHistograms {
        &self.histograms
    }

    fn now_ns(&self) -> u64 {
        u64::try_from(self.clock.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    /// Returns the stamp of a frame that was just received: usually none.
    pub fn stamp(&mut self) -> Stamp {
        if self.until_next > 0 {
            self.until_next -= 1;
            return Stamp::NONE;
        }
        self.until_next = self.gaps.next_gap() - 1;
        Stamp::at(self.now_ns())
    }

    /// Sets stamps on some of the frames that were just received.
    pub fn stamp_all(&mut self, frames: &mut [Frame]) {
        let mut index = self.until_next as usize;
        while let Some(frame) = frames.get_mut(index) {
            frame.stamp = Stamp::at(self.now_ns());
            index += self.gaps.next_gap() as usize;
        }
        self.until_next = u32::try_from(index - frames.len()).unwrap_or(u32::MAX);
    }

    /// Records that packets with these stamps have just been sent, and clears the list.
    pub fn note_sent(&mut self, stamps: &mut Vec<Stamp>) {
        let now_ns = self.now_ns();
        for stamp in stamps.drain(..) {
            if let Some(way) = stamp.way() {
                self.histograms.0[way as usize].saturating_record(stamp.elapsed_ns(now_ns));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use namehop_packet::{BufferPool, FaceId};

    use super::*;

    fn recorder(one_in: u32) -> Box<LatencyRecorder> {
        LatencyRecorder::new(Instant::now(), NonZeroU32::new(one_in).expect("not 0"))
    }

    #[test]
    fn one_in_so_many_is_stamped_whichever_way_they_come_and_not_always_the_same() {
        let pool = BufferPool::new(64, 1);
        let frame = || Frame::new(FaceId(1), 0, pool.allocate(1).expect("buffer"));
        for one_in in [1, 2, 16] {
            let mut recorder = recorder(one_in);
            let mut is_stamped = Vec::new();
            for length in (0..50).cycle().take(10_000) {
                if length % 2 == 0 {
                    is_stamped.push(recorder.stamp().is_some());
                }
                let mut frames: Vec<_> = (0..length).map(|_| frame()).collect();
                recorder.stamp_all(&mut frames);
                is_stamped.extend(frames.iter().map(|frame| frame.stamp.is_some()));
            }
            let share = |of: &mut dyn Iterator<Item = &bool>| {
                let (all, stamped) = of.fold((0, 0), |(all, stamped), &is| (all + 1, stamped + u32::from(is)));
                f64::from(stamped) * f64::from(one_in) / f64::from(all)
            };
            assert!((0.97..1.03).contains(&share(&mut is_stamped.iter())), "one in {one_in}");
            // If every other packet is Data.
            assert!((0.94..1.06).contains(&share(&mut is_stamped.iter().step_by(2))), "one in {one_in}");
        }
    }

    #[test]
    fn a_recorder_goes_on_where_the_one_before_it_was() {
        let mut current = Some(recorder(1_000_000));
        let before = current.as_ref().expect("a recorder").until_next;
        let old = LatencyRecorder::swap(&mut current, Some(recorder(1_000_000))).expect("the former recorder");
        assert_eq!((old.until_next, current.as_ref().expect("a recorder").until_next), (before, before));
        assert!(LatencyRecorder::swap(&mut current, None).is_some() && current.is_none());
        assert!(LatencyRecorder::swap(&mut current, Some(recorder(1))).is_none());
        assert!(current.expect("a recorder").stamp().is_some());
    }

    #[test]
    fn times_are_noted_by_way() {
        let (mut one, mut other) = (recorder(1), recorder(1));
        other.clock = one.clock;
        let stamp = one.stamp();
        std::thread::sleep(std::time::Duration::from_millis(2));
        let mut sent = vec![stamp.on(PacketWay::Data), Stamp::NONE, stamp.on(PacketWay::CacheHit)];
        other.note_sent(&mut sent);
        assert!(sent.is_empty());
        let mut all = LatencyHistograms::new();
        all.add(one.histograms());
        all.add(other.histograms());
        assert_eq!(PacketWay::ALL.map(|way| all.of(way).len()), [0, 1, 1]);
        let elapsed_ns = all.of(PacketWay::Data).max();
        assert!((1_990_000..1_000_000_000).contains(&elapsed_ns), "{elapsed_ns}");
    }
}
