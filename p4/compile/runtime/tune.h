/* How many packets go through a stage together, chosen by measuring on the packets that come: no packet waits for it or is lost.

   Sizes of batches take turns, a burst each, so that what changes meanwhile changes for all of them. Bursts of
   less than P4_MEASURED packets are not measured, and none says anything of a larger size. Of sizes that cost about the same the smallest is taken, since packets leave it
   soonest. It is measured anew when tables have become twice as large or half as large, and now and then. */
#ifndef P4_TUNE_H
#define P4_TUNE_H

#include "table.h"

#include <time.h>

/* How many sizes are tried. */
#define P4_SIZES 7
extern const uint32_t p4_sizes[P4_SIZES];
/* How often each has its turn. */
#define P4_TURNS 15
#define P4_MEASURED 32
/* What is used before anything was measured. */
#define P4_USUAL_BATCH 32

/* What was measured last. */
struct p4_tuned {
    /* Packets in a batch now. */
    uint32_t batch;
    /* How often it was chosen by measuring. */
    uint32_t choices;
    /* Cycles per packet with each size, the median; 0 where bursts were too short. */
    float cycles[P4_SIZES];
};

struct p4_tuner {
    struct p4_tuned tuned;
    struct p4_table *const *tables;
    size_t table_count;
    /* Trials under way, and whether this burst is one: the turn (the first one of each size only fills caches), the size, and what was
       measured. */
    bool trying, measuring;
    unsigned turn, size;
    float samples[P4_SIZES][P4_TURNS];
    unsigned sample_counts[P4_SIZES];
    /* Bytes of tables when it was measured, and packets and bursts since. */
    uint64_t footprint, packets, bursts;
};

void p4_tuner_start(struct p4_tuner *tuner, struct p4_table *const *tables, size_t table_count);
/* The batch for a burst of so many packets. The worker is inside. */
unsigned p4_tuner_batch(struct p4_tuner *tuner, size_t count);
/* What the burst took, in cycles. */
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

/* The clock while a burst is measured; it is not read for others. */
static inline uint64_t p4_tuner_clock(const struct p4_tuner *tuner)
{
    return tuner->measuring ? p4_cycles() : 0;
}

#endif
