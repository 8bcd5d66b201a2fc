/* Chooses the batch size by measuring the packets that arrive, without delaying or losing any. Sizes take turns, one
   burst each, so that changes of load affect all of them. Bursts of fewer than P4_MEASURED packets are not measured,
   and a burst says nothing about sizes larger than itself. Among sizes with about the same cost, the smallest is
   chosen, because packets leave it soonest. The size is measured again when tables have doubled or halved, and from
   time to time. */
#ifndef P4_TUNE_H
#define P4_TUNE_H

#include "table.h"

#include <time.h>

/* Number of sizes that are tried. */
#define P4_SIZES 7
extern const uint32_t p4_sizes[P4_SIZES];
/* How often each size is measured. */
#define P4_TURNS 15
#define P4_MEASURED 32
/* Batch size before the first measurement. */
#define P4_USUAL_BATCH 32

/* Result of the last measurement. */
struct p4_tuned {
    /* Current batch size in packets. */
    uint32_t batch;
    /* How often a size was chosen by measuring. */
    uint32_t choices;
    /* Cycles per packet for each size, the median; 0 if bursts were too short. */
    float cycles[P4_SIZES];
};

struct p4_tuner {
    struct p4_tuned tuned;
    struct p4_table *const *tables;
    size_t table_count;
    /* State of a measurement: whether one is in progress, whether this burst is measured, the round (the first one
       of each size only fills caches), the size, and the samples. */
    bool trying, measuring;
    unsigned turn, size;
    float samples[P4_SIZES][P4_TURNS];
    unsigned sample_counts[P4_SIZES];
    /* Bytes of tables at the last measurement, and packets and bursts since then. */
    uint64_t footprint, packets, bursts;
};

void p4_tuner_start(struct p4_tuner *tuner, struct p4_table *const *tables, size_t table_count);
/* The batch size for a burst of count packets. The worker must be inside. */
unsigned p4_tuner_batch(struct p4_tuner *tuner, size_t count);
/* Records the cycles that the burst took. */
void p4_tuner_took(struct p4_tuner *tuner, size_t count, uint64_t cycles);

/* A clock that is read in a few cycles and counts at a constant rate. */
static inline uint64_t p4_cycles(void)
{
#if defined(__x86_64__) || defined(__i386__)
    return __builtin_ia32_rdtsc();
#elif defined(__aarch64__)
    uint64_t ticks;
    __asm__ volatile("mrs %0, cntvct_el0" : "=r"(ticks));
    return ticks;
#else
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
#endif
}

/* The clock while a burst is measured; it is not read for other bursts. */
static inline uint64_t p4_tuner_clock(const struct p4_tuner *tuner)
{
    return tuner->measuring ? p4_cycles() : 0;
}

#endif
