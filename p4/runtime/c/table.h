/* Tables, and lookups in them. A lookup has a start, which prefetches memory, and steps; each step reads the memory
   that the previous one has prefetched. Entries may change during lookups; see epoch.h.

   There are four kinds of tables: exact; direct (one prefix of up to 32 bits, or few exact bits); trie (a prefix
   behind exact keys); and tuples (all others). */
#ifndef P4_TABLE_H
#define P4_TABLE_H

#include "hash.h"
#include "memory.h"
#include "p4.h"

enum p4_kind { P4_EXACT, P4_DIRECT, P4_TRIE, P4_TUPLES };

/* Precedence of entries: larger priority, then longer prefix, then older entry. */
struct p4_order {
    int64_t priority;
    uint64_t age;
    uint32_t prefix;
};

/* An entry of a table of tuples. */
struct p4_entry {
    struct p4_order order;
    /* The next entry with the same key and mask, the best one first. */
    struct p4_entry *next;
    /* The first and the last value of each range. */
    const uint64_t *ranges;
    /* A value as in all tables: see p4_hit. */
    uint64_t value[];
};

struct p4_tuple {
    struct p4_hash *hash;
    uint64_t mask[];
};

/* All tuples of a table, sorted by their best possible entry. Immutable; a change makes a new list. */
struct p4_tuples {
    uint32_t count;
    struct p4_listed {
        struct p4_tuple *tuple;
        /* No entry in the tuple is better than this. */
        struct p4_order best;
    } list[];
};

/* A range key: its position in the key. */
struct p4_range {
    uint32_t bit, width;
};

/* The two levels of a direct table, see prefix.h. */
struct p4_direct {
    uint32_t *first;
    uint32_t (*groups)[256];
};

struct p4_table {
    const char *name;
    enum p4_kind kind;
    /* Bits of all keys, and of the exact ones. */
    uint32_t key_bits, exact_bits;
    /* Maximum number of entries. */
    uint64_t size;
    /* Bits of data of the action with the most data. */
    uint32_t data_bits;
    uint32_t action_count;
    const uint32_t *argument_bits;
    const struct p4_range *ranges;
    uint32_t range_count;
    /* Of an exact table, or of each tuple. */
    struct p4_shape shape;
    /* Start of lookups; one of them is used. */
    struct p4_hash *hash;
    struct p4_tuples *tuples;
    struct p4_direct *direct;
    uint64_t root;
    /* Values that do not fit into the entries of direct tables and tries. */
    const uint8_t *values;
    const uint8_t *lines;
    /* The value for keys that match no entry. */
    const uint64_t *otherwise;
    /* True if the table is so large that packets have to wait for memory; true if it is prefetched; and its size in
       bytes. */
    bool large, ahead;
    uint64_t footprint;
    /* A DPDK table that replaces it, in comparisons: see bench/dpdk_tables.h. */
    void *other;
    /* For the thread that changes the table. */
    uint64_t count;
    struct p4_control *control;
};

/* Size of a value in a table of values, in bytes. */
#define P4_VALUE_STRIDE(data_bits) (((data_bits) <= P4_SMALL ? 8 : 8 + ((data_bits) + 7) / 8 + P4_SLACK + 7) / 8 * 8)

/* True if all tables are small enough for the caches. */
static inline bool p4_all_small(struct p4_table *const *tables, size_t count)
{
    bool large = false;
    for (size_t i = 0; i < count; i++)
        large |= __atomic_load_n(&tables[i]->large, __ATOMIC_RELAXED);
    return !large;
}

/* Prefetches the memory that the next step reads, if packets go together, so that other packets run meanwhile. */
static inline void p4_fetch(const struct p4_table *table, const void *place, size_t bytes, bool together)
{
#ifdef P4_NO_PREFETCH
    (void)table;
    (void)place;
    (void)bytes;
    (void)together;
#else
    if (!together || !__atomic_load_n(&table->ahead, __ATOMIC_RELAXED))
        return;
    for (size_t line = 0; line < bytes; line += 64)
        __builtin_prefetch((const uint8_t *)place + line);
#endif
}

/* A value is a word with the action number in the lowest byte. The action data is in the other bits, the highest
   first, if it fits there (P4_SMALL bits); otherwise it is in the bytes that follow. */
static inline void p4_hit(struct p4_found *found, const uint64_t *value)
{
    found->value = __atomic_load_n(value, __ATOMIC_ACQUIRE);
    found->action = (uint8_t)found->value;
    found->data = (const uint8_t *)(value + 1);
    found->hit = true;
}

/* Maximum number of actions of a table with values of 2 bytes. */
#define P4_ACTIONS_OF_TWO 16

/* A value in an exact table has only 2 or 4 bytes if they are enough, so that more entries fit into a cache line. It
   is then the highest bits of the word that a longer value would have, with the action in the lowest bits. */
static inline void p4_hit_exact(struct p4_found *found, const uint8_t *value, unsigned value_bytes)
{
    if (value_bytes == 2) {
        uint16_t word = __atomic_load_n((const uint16_t *)(const void *)value, __ATOMIC_ACQUIRE);
        found->value = (uint64_t)word << 48;
        found->action = word % P4_ACTIONS_OF_TWO;
        found->hit = true;
    } else if (value_bytes == 4) {
        uint32_t word = __atomic_load_n((const uint32_t *)(const void *)value, __ATOMIC_ACQUIRE);
        found->value = (uint64_t)word << 32;
        found->action = (uint8_t)word;
        found->hit = true;
    } else {
        p4_hit(found, (const uint64_t *)(const void *)value);
    }
}

static inline void p4_missed(const struct p4_table *table, struct p4_found *found)
{
    const uint64_t *value = __atomic_load_n(&table->otherwise, __ATOMIC_ACQUIRE);
    found->hit = false;
    found->action = P4_NONE;
    if (!value)
        return;
    found->value = *value;
    found->action = (uint8_t)*value;
    found->data = (const uint8_t *)(value + 1);
}

/* Starts the lookup of a key in an exact table. The first hashed words were the whole key of the previous lookup
   with this cursor, and are not hashed again. */
static P4_IN_PLACE void p4_exact_start(const struct p4_table *table, struct p4_cursor *cursor, const uint64_t *key,
    unsigned words, unsigned hashed, unsigned bucket_bytes, bool together)
{
    const struct p4_hash *hash = __atomic_load_n(&table->hash, __ATOMIC_ACQUIRE);
    cursor->table = hash;
    cursor->hash = p4_key_hash_on(hashed ? cursor->hash : p4_seed, key, words - hashed);
    if (!hash)
        return;
    cursor->place = hash->buckets + p4_home(cursor->hash, hash->mask) * bucket_bytes;
    p4_fetch(table, cursor->place, bucket_bytes, together);
}

/* Goes on to the next bucket. Returns false if the lookup began there: in a small table, entries may have continued
   from every bucket. */
static P4_IN_PLACE bool p4_next_bucket(const struct p4_table *table, struct p4_cursor *cursor, unsigned bucket_bytes, bool together)
{
    const struct p4_hash *hash = cursor->table;
    const uint8_t *next = cursor->place + bucket_bytes;
    cursor->place = next <= hash->buckets + hash->mask * bucket_bytes ? next : hash->buckets;
    if (cursor->place == hash->buckets + p4_home(cursor->hash, hash->mask) * bucket_bytes)
        return false;
    p4_fetch(table, cursor->place, bucket_bytes, together);
    return true;
}

/* Searches one bucket. Returns true if the lookup has ended. */
static P4_IN_PLACE bool p4_exact_step(const struct p4_table *table, struct p4_cursor *cursor, struct p4_found *found,
    const uint64_t *key, unsigned words, unsigned value_bytes, unsigned slots, unsigned bucket_bytes, bool together)
{
    const struct p4_hash *hash = cursor->table;
    const uint8_t *bucket = cursor->place, *value;
    uint64_t head;
    if (!hash) {
        p4_missed(table, found);
        return true;
    }
    head = p4_bucket_head(bucket);
    value = p4_bucket_find(bucket, head, p4_mark(cursor->hash), key, words, value_bytes, slots);
    if (value) {
        p4_hit_exact(found, value, value_bytes);
        return true;
    }
    if (p4_goes_on(head) && p4_next_bucket(table, cursor, bucket_bytes, together))
        return false;
    p4_missed(table, found);
    return true;
}

static inline bool p4_better(const struct p4_order *one, const struct p4_order *other)
{
    if (one->priority != other->priority)
        return one->priority > other->priority;
    if (one->prefix != other->prefix)
        return one->prefix > other->prefix;
    return one->age < other->age;
}

static inline void p4_tuples_enter(const struct p4_table *table, struct p4_cursor *cursor, const uint64_t *key,
    unsigned words, unsigned bucket_bytes, bool together)
{
    const struct p4_tuple *tuple = cursor->tuples->list[cursor->tuple].tuple;
    const struct p4_hash *hash = __atomic_load_n(&tuple->hash, __ATOMIC_ACQUIRE);
    uint64_t masked[words];
    for (unsigned i = 0; i < words; i++)
        masked[i] = key[i] & tuple->mask[i];
    cursor->table = hash;
    cursor->hash = p4_key_hash(masked, words);
    cursor->place = hash->buckets + p4_home(cursor->hash, hash->mask) * bucket_bytes;
    p4_fetch(table, cursor->place, bucket_bytes, together);
}

static P4_IN_PLACE void p4_tuples_start(const struct p4_table *table, struct p4_cursor *cursor, const uint64_t *key,
    unsigned words, unsigned bucket_bytes, bool together)
{
    cursor->tuples = __atomic_load_n(&table->tuples, __ATOMIC_ACQUIRE);
    cursor->tuple = 0;
    cursor->best = NULL;
    if (cursor->tuples)
        p4_tuples_enter(table, cursor, key, words, bucket_bytes, together);
}

static inline bool p4_in_ranges(const struct p4_table *table, const struct p4_entry *entry, const uint64_t *key)
{
    for (uint32_t i = 0; i < table->range_count; i++) {
        uint32_t bit = table->ranges[i].bit;
        uint64_t value = key[bit / 64] >> (bit % 64);
        if (bit % 64 && bit % 64 + table->ranges[i].width > 64)
            value |= key[bit / 64 + 1] << (64 - bit % 64);
        value &= p4_mask(table->ranges[i].width);
        if (value < entry->ranges[2 * i] || value > entry->ranges[2 * i + 1])
            return false;
    }
    return true;
}

/* Searches one bucket of one tuple. Returns true if the lookup has ended. */
static P4_IN_PLACE bool p4_tuples_step(const struct p4_table *table, struct p4_cursor *cursor, struct p4_found *found,
    const uint64_t *key, unsigned words, unsigned slots, unsigned bucket_bytes, bool together)
{
    const struct p4_tuples *tuples = cursor->tuples;
    if (!tuples) {
        p4_missed(table, found);
        return true;
    }
    const struct p4_tuple *tuple = tuples->list[cursor->tuple].tuple;
    uint64_t head = p4_bucket_head(cursor->place), masked[words];
    const uint64_t *first;
    for (unsigned i = 0; i < words; i++)
        masked[i] = key[i] & tuple->mask[i];
    /* The value in a tuple's hash table is a pointer to the first entry. */
    first = (const uint64_t *)(const void *)p4_bucket_find(cursor->place, head, p4_mark(cursor->hash), masked, words, 8, slots);
    if (first) {
        const struct p4_entry *entry = (const struct p4_entry *)(uintptr_t)__atomic_load_n(first, __ATOMIC_ACQUIRE);
        for (; entry; entry = __atomic_load_n(&entry->next, __ATOMIC_ACQUIRE)) {
            if (cursor->best && !p4_better(&entry->order, &cursor->best->order))
                break;
            if (p4_in_ranges(table, entry, key)) {
                cursor->best = entry;
                break;
            }
        }
    } else if (p4_goes_on(head) && p4_next_bucket(table, cursor, bucket_bytes, together)) {
        return false;
    }
    cursor->tuple++;
    if (cursor->tuple < tuples->count &&
        (!cursor->best || p4_better(&tuples->list[cursor->tuple].best, &cursor->best->order))) {
        p4_tuples_enter(table, cursor, key, words, bucket_bytes, together);
        return false;
    }
    if (cursor->best)
        p4_hit(found, cursor->best->value);
    else
        p4_missed(table, found);
    return true;
}

#endif
