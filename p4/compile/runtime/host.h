/* What a loadable program offers to the one that runs it on ports: a list of functions, the only thing that it exports. The
   same list stands in Rust, in p4/switch/src/ffi.rs; whoever changes one changes the other and P4_HOST_VERSION. */
#ifndef P4_HOST_H
#define P4_HOST_H

#include "meter.h"
#include "switch.h"
#include "tune.h"

#define P4_HOST_VERSION 8

/* Memory of one thread that processes packets. */
struct p4_host_worker;

/* An entry, with the sizes of its parts for comparison with those of the table. Behind the data P4_SLACK bytes can be read. */
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
    /* Names and widths of all that can be changed, as JSON: see p4/compile/src/control/describe.rs. */
    const char *description;
    /* Packets go in place, through one function; otherwise they are copied. */
    bool straight;
    /* What the program remembers of packets sees one at a time: registers, random numbers. */
    bool one_worker;
    uint32_t batch;
    /* It was compiled to choose the batch by measuring. */
    bool automatic;
    /* Before anything else, with the number of workers. False when there are no random numbers. */
    bool (*start)(unsigned workers);
    /* For packets in batches of so many, 0 for what the program was compiled with, which may be to choose by measuring. NULL when there are too many. All is called by one
       thread at a time. */
    struct p4_host_worker *(*worker_new)(unsigned batch, p4_sent *sent, p4_lost *lost, p4_digest *digest, void *owner);
    void (*worker_free)(struct p4_host_worker *worker);
    /* Frames of up to P4_LONGEST_FRAME bytes in place; of a program that is not straight, what leaves is given to the function that was named. */
    void (*process)(struct p4_host_worker *worker, struct p4_frame *const *frames, size_t count);
    /* Copies of a session go to a port or group, with so many bytes at most, 0 for any number. */
    void (*mirror)(struct p4_host_worker *worker, uint64_t session, bool group, uint64_t target, uint32_t longest);
    void (*unmirror)(struct p4_host_worker *worker, uint64_t session);
    /* A group without members; a member of it. */
    void (*group)(struct p4_host_worker *worker, uint64_t group);
    void (*member)(struct p4_host_worker *worker, uint64_t group, uint64_t replica, uint64_t port);
    /* Inserts (0), modifies (1) or deletes (2) an entry. Otherwise nothing has changed, and the text says why. */
    bool (*change)(size_t table, unsigned change, const struct p4_host_entry *entry, char *why, size_t room);
    bool (*set_default)(size_t table, uint32_t action, const uint8_t *data, size_t data_bytes, char *why, size_t room);
    /* Cells of a counter or register: where they are, how many, and how large each is, in bytes. NULL when there is none. */
    void *(*counters)(size_t place, size_t *count, size_t *bytes);
    void *(*registers)(size_t place, size_t *count, size_t *bytes);
    /* Sets a cell of a meter: packets or bytes in a second, and at most so many at once. NULL stands for no limits. False when there is no
       such cell. No worker may be inside of process. */
    bool (*meter_set)(size_t place, size_t index, const struct p4_host_rates *rates);
    /* Gives a value set these members, of four words for each word of a value. False when it has other sizes, or no room. */
    bool (*value_set)(size_t place, const uint64_t *rows, size_t count, size_t words);
    /* Kinds of data that are reported. */
    size_t digest_count;
    /* The sizes of batches that are tried, and what a worker has chosen. False when it does not choose. */
    size_t size_count;
    const uint32_t *sizes;
    bool (*tuned)(const struct p4_host_worker *worker, struct p4_tuned *tuned);
};

#endif
