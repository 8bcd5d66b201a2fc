"""A time of day for one process, so that tests can set its clock."""

import subprocess
import sys

# Replaces clock_gettime(2) in a process: its time of day has the offset, in seconds, of a file that is mapped.
CLOCK = """
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static const volatile int64_t *offset;

__attribute__((constructor)) static void map_offset(void)
{
    offset = mmap(NULL, sizeof *offset, PROT_READ, MAP_SHARED, open(getenv("TEST_CLOCK"), O_RDONLY), 0);
}

int clock_gettime(clockid_t clock, struct timespec *time)
{
    int result = syscall(SYS_clock_gettime, clock, time);
    if (result == 0 && clock == CLOCK_REALTIME)
        time->tv_sec += *offset;
    return result;
}
"""


class Clock:
    """The time of day of one process, which can be set."""

    def __init__(self, folder):
        source, library, self.file = folder / "clock.c", folder / "clock.so", folder / "offset"
        source.write_text(CLOCK)
        subprocess.run(["cc", "-shared", "-fPIC", "-o", library, source], check=True)
        # A command prefix.
        self.prefix = ["env", f"LD_PRELOAD={library}", f"TEST_CLOCK={self.file}"]

    def set(self, ahead_s):
        with open(self.file, "r+b" if self.file.exists() else "w+b") as file:
            file.write(ahead_s.to_bytes(8, sys.byteorder, signed=True))
