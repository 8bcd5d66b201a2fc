/* Safe memory reclamation by quiescent states: decides when memory that lookups may still see can be reused.

   Workers are the threads that process packets. Between two batches, each declares that it holds no reference into
   any table (p4_quiet). Memory that was removed from a table can be reused once all workers have done so since.
   Workers never wait and take no lock; only threads that change tables wait, and only for batches in progress. */
#ifndef P4_EPOCH_H
#define P4_EPOCH_H

#include <stdbool.h>
#include <stdint.h>

/* Maximum number of workers. */
#define P4_WORKERS 64

struct p4_worker {
    /* The epoch that it has seen; 0 while it processes no packets. */
    uint64_t seen;
    bool taken;
} __attribute__((aligned(64)));

extern uint64_t p4_epoch;

/* Registers a worker, initially outside of any batch. Returns NULL if there are P4_WORKERS already. */
struct p4_worker *p4_worker_new(void);
void p4_worker_free(struct p4_worker *worker);

/* Call before the first batch after p4_outside or p4_worker_new. */
static inline void p4_inside(struct p4_worker *worker)
{
    __atomic_store_n(&worker->seen, __atomic_load_n(&p4_epoch, __ATOMIC_ACQUIRE), __ATOMIC_RELAXED);
    /* Order loads of tables behind the store, so that no other thread considers this worker outside. */
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
}

/* Call between two batches. */
static inline void p4_quiet(struct p4_worker *worker)
{
    __atomic_store_n(&worker->seen, __atomic_load_n(&p4_epoch, __ATOMIC_ACQUIRE), __ATOMIC_RELEASE);
}

/* Call before anything that takes long, such as sleeping or changing tables. */
static inline void p4_outside(struct p4_worker *worker)
{
    __atomic_store_n(&worker->seen, 0, __ATOMIC_RELEASE);
}

/* The rest is for threads that change tables, one at a time. */

/* Starts a new epoch for memory that was removed; the memory may be reused once p4_reached returns true. */
uint64_t p4_taken_out(void);
bool p4_reached(uint64_t epoch);
/* Waits until everything that was removed can be reused, and releases it. */
void p4_synchronize(void);

/* Calls a function with owner and what once no worker can see them any more. */
typedef void p4_release(void *owner, uint64_t what);
void p4_retire(p4_release *release, void *owner, uint64_t what);
/* Releases what can be released now. */
void p4_reclaim(void);
/* Frees the list of waiting releases, at the end of the process. */
void p4_epoch_end(void);

#endif
