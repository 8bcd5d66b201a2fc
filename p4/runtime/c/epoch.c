/* Workers, and memory that waits for them. */
#include "epoch.h"
#include "memory.h"

#include <sched.h>
#include <stddef.h>
#include <stdlib.h>

/* Maximum number of waiting releases; then changes of tables wait for the workers. */
#define MOST_WAITING 65536

struct retired {
    uint64_t epoch, what;
    p4_release *release;
    void *owner;
};

uint64_t p4_epoch = 1;
static struct p4_worker workers[P4_WORKERS];
/* A ring, the oldest release first. */
static struct retired *waiting;
static size_t first, count, room;

struct p4_worker *p4_worker_new(void)
{
    for (size_t i = 0; i < P4_WORKERS; i++)
        if (!__atomic_exchange_n(&workers[i].taken, true, __ATOMIC_ACQ_REL))
            return &workers[i];
    return NULL;
}

void p4_worker_free(struct p4_worker *worker)
{
    p4_outside(worker);
    __atomic_store_n(&worker->taken, false, __ATOMIC_RELEASE);
}

uint64_t p4_taken_out(void)
{
    uint64_t epoch = __atomic_load_n(&p4_epoch, __ATOMIC_RELAXED) + 1;
    __atomic_store_n(&p4_epoch, epoch, __ATOMIC_RELEASE);
    return epoch;
}

/* The earliest epoch that a worker has seen. */
static uint64_t earliest(void)
{
    uint64_t least = UINT64_MAX;
    /* Workers that come inside later must see what was removed. */
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    for (size_t i = 0; i < P4_WORKERS; i++) {
        uint64_t seen = __atomic_load_n(&workers[i].seen, __ATOMIC_ACQUIRE);
        if (seen && seen < least)
            least = seen;
    }
    return least;
}

bool p4_reached(uint64_t epoch)
{
    return earliest() >= epoch;
}

void p4_reclaim(void)
{
    uint64_t least;
    if (count == 0)
        return;
    least = earliest();
    while (count && waiting[first].epoch <= least) {
        struct retired done = waiting[first];
        first = (first + 1) % room;
        count--;
        done.release(done.owner, done.what);
    }
}

void p4_synchronize(void)
{
    uint64_t epoch = p4_taken_out();
    while (!p4_reached(epoch))
        sched_yield();
    p4_reclaim();
}

void p4_retire(p4_release *release, void *owner, uint64_t what)
{
    if (count >= MOST_WAITING)
        p4_synchronize();
    else if (count % 64 == 63)
        p4_reclaim();
    if (count == room) {
        struct retired *larger = p4_memory((room * 2 + 64) * sizeof *larger);
        for (size_t i = 0; i < count; i++)
            larger[i] = waiting[(first + i) % room];
        free(waiting);
        waiting = larger;
        first = 0;
        room = room * 2 + 64;
    }
    waiting[(first + count++) % room] = (struct retired){p4_taken_out(), what, release, owner};
}

void p4_epoch_end(void)
{
    p4_synchronize();
    free(waiting);
    waiting = NULL;
    first = count = room = 0;
}
