/* Meters and digests: operations of compiled programs that depend on more than the packet.

   A meter has two token buckets (RFC 2698, color-blind). A bucket is stored as the time at which it will be full. So
   it refills without further work, and taking tokens changes a single number, so several threads need no lock. */
#ifndef P4_METER_H
#define P4_METER_H

#include "p4.h"

/* Ticks per second. */
#define P4_TICKS UINT64_C(64000000000)
/* Fraction bits of the cost of one packet or byte. */
#define P4_COST_BITS 24

enum { P4_GREEN, P4_YELLOW, P4_RED };

struct p4_bucket {
    /* Cost of one packet or byte, in fractions of a tick. */
    uint64_t cost;
    /* Time in which an empty bucket becomes full, in ticks. */
    uint64_t limit;
    /* When it will be full, in ticks. */
    uint64_t full;
};

/* Gives green while it is not set. */
struct p4_meter_cell {
    struct p4_bucket peak, committed;
    uint64_t is_set;
};

/* The time of this batch, in ticks since the program was loaded. */
extern __thread uint64_t p4_now;

/* Sets a rate in packets or bytes per second, and a burst size. */
static inline void p4_bucket_set(struct p4_bucket *bucket, uint64_t rate, uint64_t burst)
{
    unsigned __int128 cost = ((unsigned __int128)P4_TICKS << P4_COST_BITS) / (rate ? rate : 1);
    unsigned __int128 limit = cost * burst >> P4_COST_BITS;
    uint64_t longest = UINT64_C(1) << 61;
    bucket->cost = (uint64_t)cost;
    bucket->limit = rate == 0 ? 0 : limit < longest ? (uint64_t)limit : longest;
    bucket->full = 0;
}

/* Takes tokens, if there are enough. */
static inline bool p4_bucket_take(struct p4_bucket *bucket, uint64_t amount)
{
    uint64_t cost = (uint64_t)((unsigned __int128)amount * bucket->cost >> P4_COST_BITS);
    uint64_t before = __atomic_load_n(&bucket->full, __ATOMIC_RELAXED), after;
    do {
        after = (before > p4_now ? before : p4_now) + cost;
        if (after - p4_now > bucket->limit)
            return false;
    } while (!__atomic_compare_exchange_n(&bucket->full, &before, after, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
    return true;
}

/* The color of a packet, with v1model's numbers. */
static inline uint8_t p4_meter(struct p4_meter_cell *cells, uint64_t count, uint64_t index, uint64_t amount)
{
    if (index >= count || !cells[index].is_set)
        return P4_GREEN;
    if (!p4_bucket_take(&cells[index].peak, amount))
        return P4_RED;
    return p4_bucket_take(&cells[index].committed, amount) ? P4_GREEN : P4_YELLOW;
}

/* Receiver of this thread's digests; NULL for none. The bits of p4_data are the digest. */
typedef void p4_digest(void *owner, uint64_t number, const uint8_t *bytes, size_t length);
struct p4_listener {
    p4_digest *digest;
    void *owner;
};
extern __thread struct p4_listener p4_listener;

static inline void p4_report(uint64_t number)
{
    if (p4_listener.digest)
        p4_listener.digest(p4_listener.owner, number, p4_data.bytes, (p4_data.length + 7) / 8);
}

#endif
