//! Which PIT entries reflect the current strategies, so that Data need not look theirs up.

/// An upper bound of the PIT entries that are opened while one is pending.
const MOST_SERIALS: i32 = 1 << 30;

/// The version of the FIB's strategies, and the PIT entries opened since it last changed.
#[derive(Debug, Default)]
pub(crate) struct StrategiesVersion {
    /// The version at the start of the burst.
    version: u64,
    /// Serial number of the first PIT entry since.
    since: u32,
}

impl StrategiesVersion {
    /// Records the version at the start of a burst. `last_serial` is the serial number of the last PIT entry.
    pub(crate) fn update(&mut self, version: u64, last_serial: u32) {
        if version != self.version {
            self.version = version;
            self.since = last_serial.wrapping_add(1);
        }
        // Serial numbers wrap. No PIT entry this old is still pending.
        if last_serial.wrapping_sub(self.since) as i32 > MOST_SERIALS {
            self.since = last_serial.wrapping_sub(MOST_SERIALS as u32);
        }
    }

    /// Returns whether the PIT entry with this serial number was opened under the current strategies.
    #[inline]
    pub(crate) fn covers(&self, serial: u32) -> bool {
        serial.wrapping_sub(self.since) as i32 >= 0
    }
}
