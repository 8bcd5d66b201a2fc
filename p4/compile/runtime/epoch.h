/* When memory that lookups may still see can be used again: quiescent states.

   Workers are the threads that process packets. Each says between two batches that it holds nothing of any table
   (p4_quiet); what was taken out of a table before all workers have said so since is nobody's any more. Workers wait
   for nothing and take no lock; only threads that change tables wait, and only for batches that are under way. */
#ifndef P4_EPOCH_H
#define P4_EPOCH_H

#include <stdbool.h>
#include <stdint.h>

/* How many workers there may be at once. */
#define P4_WORKERS 64

struct p4_worker {
    /* The epoch that it has seen; 0 while it processes no packets. */
    uint64_t seen;
    bool taken;
} __attribute__((aligned(64)));

extern uint64_t p4_epoch;

/* Takes part as a worker, at first outside of any batch. NULL when there are P4_WORKERS already. */
struct p4_worker *p4_worker_new(void);
void p4_worker_free(struct p4_worker *worker);

/* Before the first batch after p4_outside or p4_worker_new. */
static inline void p4_inside(struct p4_worker *worker)
{
    __atomic_store_n(&worker->seen, __atomic_load_n(&p4_epoch, __ATOMIC_ACQUIRE), __ATOMIC_RELAXED);
    /* Loads of tables come after the store, so that nobody takes this worker for one outside. */
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
}

/* Between two batches. */
static inline void p4_quiet(struct p4_worker *worker)
{
    __atomic_store_n(&worker->seen, __atomic_load_n(&p4_epoch, __ATOMIC_ACQUIRE), __ATOMIC_RELEASE);
}

/* Before anything that takes long, such as sleeping, or changing tables itself. */
static inline void p4_outside(struct p4_worker *worker)
{
    __atomic_store_n(&worker->seen, 0, __ATOMIC_RELEASE);
}

/* All below is for threads that change tables, one at a time. */

/* The epoch in which something is taken out; it may be used again when p4_reached says so. */
uint64_t p4_taken_out(void);
bool p4_reached(uint64_t epoch);
/* Waits until all that was taken out can be used again, and releases it. */
void p4_synchronize(void);

/* Calls a function with an owner and a number when no worker can see them any more. */
typedef void p4_release(void *owner, uint64_t what);
void p4_retire(p4_release *release, void *owner, uint64_t what);
/* Releases what can be released now. */
void p4_reclaim(void);
/* The memory that waits, for the end of the process. */
void p4_epoch_end(void);

#endif
