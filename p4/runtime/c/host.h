/* Interface between a loadable program and the process that runs it on ports: a table of functions, the only thing
   that the program exports. The same table is declared in Rust, in p4/switch/src/ffi.rs; a change must be made in
   both places and increments P4_HOST_VERSION. */
#ifndef P4_HOST_H
#define P4_HOST_H

#include "meter.h"
#include "switch.h"
#include "tune.h"

#define P4_HOST_VERSION 8

/* Memory of one thread that processes packets. */
struct p4_host_worker;

/* An entry; the sizes of its parts are compared with the table's. P4_SLACK bytes must be readable behind the data. */
struct p4_host_entry {
    int64_t priority;
    uint32_t prefix, action;
    const uint64_t *key, *mask, *ranges;
    const uint8_t *data;
    size_t key_words, range_words, data_bytes;
};

struct p4_host_rates {
    uint64_t committed_rate, committed_burst, peak_rate, peak_burst;
};

struct p4_host {
    uint32_t version;
    const char *name;
    /* Entries and default actions of the program, as commands of the player; the last one is NULL. */
    const char *const *entries;
    /* Names and widths of all that can be changed, as JSON: see p4/compile/src/description.rs. */
    const char *description;
    /* Packets are processed in place, by one function; otherwise they are copied. */
    bool straight;
    /* The program keeps state that only one worker at a time may access: registers, random numbers. */
    bool one_worker;
    uint32_t batch;
    /* The program was compiled to choose the batch size by measuring. */
    bool automatic;
    /* Called first, with the number of workers. Returns false if there are no random numbers. */
    bool (*start)(unsigned workers);
    /* Makes a worker for batches of this size; 0 selects the compiled setting, which may be to choose by measuring.
       Returns NULL if there are too many workers. A worker may be used by one thread at a time. */
    struct p4_host_worker *(*worker_new)(unsigned batch, p4_sent *sent, p4_lost *lost, p4_digest *digest, void *owner);
    void (*worker_free)(struct p4_host_worker *worker);
    /* Processes frames of up to P4_LONGEST_FRAME bytes. A straight program changes them in place; otherwise packets
       are passed to the sent function. */
    void (*process)(struct p4_host_worker *worker, struct p4_frame *const *frames, size_t count);
    /* Sets the target of a mirroring session, a port or a group. Copies have at most longest bytes; 0 means no
       limit. */
    void (*mirror)(struct p4_host_worker *worker, uint64_t session, bool group, uint64_t target, uint32_t longest);
    void (*unmirror)(struct p4_host_worker *worker, uint64_t session);
    /* Makes a group without members; adds a member to it. */
    void (*group)(struct p4_host_worker *worker, uint64_t group);
    void (*member)(struct p4_host_worker *worker, uint64_t group, uint64_t replica, uint64_t port);
    /* Inserts (0), modifies (1) or deletes (2) an entry. On failure, the table is unchanged and the text says why. */
    bool (*change)(size_t table, unsigned change, const struct p4_host_entry *entry, char *why, size_t room);
    bool (*set_default)(size_t table, uint32_t action, const uint8_t *data, size_t data_bytes, char *why, size_t room);
    /* Cells of a counter or register: address, number, and size of each in bytes. NULL if there is none. */
    void *(*counters)(size_t place, size_t *count, size_t *bytes);
    void *(*registers)(size_t place, size_t *count, size_t *bytes);
    /* Sets the rates of a meter cell: packets or bytes per second, and burst sizes. NULL removes the limits. Returns
       false if there is no such cell. No worker may be inside process. */
    bool (*meter_set)(size_t place, size_t index, const struct p4_host_rates *rates);
    /* Sets the members of a value set, with four words for each word of a value. Returns false if the sizes do not
       fit, or if there is no memory. */
    bool (*value_set)(size_t place, const uint64_t *rows, size_t count, size_t words);
    /* Number of digest types. */
    size_t digest_count;
    /* The batch sizes that are tried, and the choice of a worker. tuned returns false if the worker does not choose. */
    size_t size_count;
    const uint32_t *sizes;
    bool (*tuned)(const struct p4_host_worker *worker, struct p4_tuned *tuned);
};

#endif
