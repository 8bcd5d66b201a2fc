/*
 * Keeps DPDK's interrupt thread and the worker's bursts apart.
 *
 * The memif driver takes shared memory away on DPDK's interrupt thread when the other end goes, while a worker may be
 * copying to or from it; a flag in the driver leaves a moment between the look and the use. So callbacks of interrupts
 * run only while no burst is under way: the functions by which drivers register them are defined here, in the program
 * itself, which goes before DPDK's library when symbols are looked up, and wrap each callback. Bursts of ports that are
 * served in this way hold the lock shared; callbacks hold it alone.
 */
#include "shim.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/queue.h>

#include <rte_interrupts.h>

/* A registered callback. */
struct callback {
    LIST_ENTRY(callback) entries;
    rte_intr_callback_fn function;
    void *argument;
    rte_intr_unregister_callback_fn unregistered;
};

static LIST_HEAD(, callback) callbacks = LIST_HEAD_INITIALIZER(callbacks);
static pthread_mutex_t callbacks_lock = PTHREAD_MUTEX_INITIALIZER;
/* Held shared by bursts and alone by callbacks. A waiting callback goes before further bursts. */
static pthread_rwlock_t bursts_lock = PTHREAD_RWLOCK_WRITER_NONRECURSIVE_INITIALIZER_NP;

void namehop_burst_begin(void) { pthread_rwlock_rdlock(&bursts_lock); }

void namehop_burst_end(void) { pthread_rwlock_unlock(&bursts_lock); }

int namehop_interrupts_are_guarded(void)
{
    return dlsym(RTLD_DEFAULT, "rte_intr_callback_register") == (void *)rte_intr_callback_register &&
           dlsym(RTLD_NEXT, "rte_intr_callback_register") != NULL;
}

/* Runs a callback. It may unregister itself, but its record lives until DPDK says that it is done with it. */
static void run(void *argument)
{
    struct callback *callback = argument;
    pthread_rwlock_wrlock(&bursts_lock);
    callback->function(callback->argument);
    pthread_rwlock_unlock(&bursts_lock);
}

static void forget(struct callback *callback)
{
    pthread_mutex_lock(&callbacks_lock);
    LIST_REMOVE(callback, entries);
    pthread_mutex_unlock(&callbacks_lock);
    free(callback);
}

static void done(struct rte_intr_handle *handle, void *argument)
{
    struct callback *callback = argument;
    if (callback->unregistered != NULL)
        callback->unregistered(handle, callback->argument);
    forget(callback);
}

static struct callback *find(rte_intr_callback_fn function, const void *argument)
{
    struct callback *callback;
    pthread_mutex_lock(&callbacks_lock);
    LIST_FOREACH(callback, &callbacks, entries)
        if (callback->function == function && callback->argument == argument)
            break;
    pthread_mutex_unlock(&callbacks_lock);
    return callback;
}

int rte_intr_callback_register(const struct rte_intr_handle *handle, rte_intr_callback_fn function, void *argument)
{
    int (*real)(const struct rte_intr_handle *, rte_intr_callback_fn, void *) =
        dlsym(RTLD_NEXT, "rte_intr_callback_register");
    if (real == NULL || function == NULL)
        return -EINVAL;
    struct callback *callback = calloc(1, sizeof(*callback));
    if (callback == NULL)
        return -ENOMEM;
    callback->function = function;
    callback->argument = argument;
    pthread_mutex_lock(&callbacks_lock);
    LIST_INSERT_HEAD(&callbacks, callback, entries);
    pthread_mutex_unlock(&callbacks_lock);
    int result = real(handle, run, callback);
    if (result < 0)
        forget(callback);
    return result;
}

/* `name` is that of one of the two functions that unregister at once. */
static int unregister(const char *name, const struct rte_intr_handle *handle, rte_intr_callback_fn function,
                      void *argument)
{
    int (*real)(const struct rte_intr_handle *, rte_intr_callback_fn, void *) = dlsym(RTLD_NEXT, name);
    struct callback *callback = find(function, argument);
    if (real == NULL || callback == NULL)
        return -ENOENT;
    int result = real(handle, run, callback);
    if (result > 0)
        forget(callback);
    return result;
}

int rte_intr_callback_unregister(const struct rte_intr_handle *handle, rte_intr_callback_fn function, void *argument)
{
    return unregister("rte_intr_callback_unregister", handle, function, argument);
}

int rte_intr_callback_unregister_sync(const struct rte_intr_handle *handle, rte_intr_callback_fn function,
                                      void *argument)
{
    return unregister("rte_intr_callback_unregister_sync", handle, function, argument);
}

int rte_intr_callback_unregister_pending(const struct rte_intr_handle *handle, rte_intr_callback_fn function,
                                         void *argument, rte_intr_unregister_callback_fn unregistered)
{
    int (*real)(const struct rte_intr_handle *, rte_intr_callback_fn, void *, rte_intr_unregister_callback_fn) =
        dlsym(RTLD_NEXT, "rte_intr_callback_unregister_pending");
    struct callback *callback = find(function, argument);
    if (real == NULL || callback == NULL)
        return -ENOENT;
    callback->unregistered = unregistered;
    return real(handle, run, callback, done);
}
