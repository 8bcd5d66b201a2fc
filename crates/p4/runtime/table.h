/* Tables: what compiled programs do to look up keys. Entries change only while no lookup is under way.

   A table whose keys are all exact is one hash table with actions and their values in it. Any other table is a list of
   tuples, one for each set of masks, each a hash table of masked keys; those that may hold a better entry come first. */
#ifndef P4_TABLE_H
#define P4_TABLE_H

#include "p4.h"

/* Slots of a bucket have a mark of 8 bits each, of which 0 is empty; the last byte says that keys went on. */
#define P4_MARKS 7

struct p4_hash_table {
    uint8_t *buckets;
    /* Number of buckets less one; they are a power of two. */
    uint64_t mask;
    uint64_t count;
};

/* What decides between entries: the larger priority, the longer prefix, the older one. */
struct p4_order {
    int64_t priority;
    uint32_t prefix;
    uint32_t age;
};

struct p4_entry {
    struct p4_order order;
    uint8_t action;
    /* Values for the action, P4_SLACK bytes behind; then the bounds of ranges. */
    const uint8_t *data;
    const uint64_t *ranges;
    const uint64_t *key, *mask;
};

struct p4_tuple {
    struct p4_hash_table table;
    const uint64_t *mask;
    /* The best entry that it holds. */
    struct p4_order best;
};

/* A key that is matched by range: its place in the key. */
struct p4_range {
    uint32_t bit, width;
};

struct p4_table {
    const char *name;
    /* Of a key, in words; of the values of the largest action, in bytes. */
    uint32_t words, data_bytes;
    /* Slots of a bucket, bytes of a slot and of a bucket. */
    uint32_t slots, stride, bucket_bytes;
    bool exact;
    uint32_t action_count;
    const uint32_t *argument_bits;
    const struct p4_range *ranges;
    uint32_t range_count;
    /* What the control plane changes. */
    struct p4_hash_table hash;
    struct p4_tuple *tuples;
    uint32_t tuple_count;
    struct p4_entry **entries;
    uint64_t entry_count, entry_room;
    uint8_t default_action;
    const uint8_t *default_data;
};

extern uint64_t p4_seed;

static inline uint64_t p4_key_hash(const uint64_t *key, unsigned words)
{
    uint64_t hash = p4_seed;
    for (unsigned i = 0; i < words; i++) {
        unsigned __int128 product = (unsigned __int128)(key[i] ^ hash ^ UINT64_C(0x9e3779b97f4a7c15)) * UINT64_C(0xd6e8feb86659fd93);
        hash = (uint64_t)product ^ (uint64_t)(product >> 64);
    }
    return hash ^ hash >> 29;
}

static inline uint8_t p4_mark(uint64_t hash)
{
    uint8_t mark = (uint8_t)(hash >> 56);
    return mark ? mark : 1;
}

static inline void p4_fetch(const void *place, size_t bytes)
{
#ifdef P4_NO_PREFETCH
    (void)place;
    (void)bytes;
#else
    for (size_t line = 0; line < bytes; line += 64)
        __builtin_prefetch((const uint8_t *)place + line);
#endif
}

static inline bool p4_better(const struct p4_order *one, const struct p4_order *other)
{
    if (one->priority != other->priority)
        return one->priority > other->priority;
    if (one->prefix != other->prefix)
        return one->prefix > other->prefix;
    return one->age < other->age;
}

static inline bool p4_same(const uint64_t *left, const uint64_t *right, unsigned words)
{
    for (unsigned i = 0; i < words; i++)
        if (left[i] != right[i])
            return false;
    return true;
}

static inline void p4_missed(const struct p4_table *table, struct p4_cursor *cursor)
{
    cursor->hit = false;
    cursor->action = table->default_action;
    cursor->data = table->default_data;
}

/* Starts the lookup of a key in a table of exact keys. */
static inline void p4_exact_start(const struct p4_table *table, struct p4_cursor *cursor, const uint64_t *key,
    unsigned words, unsigned bucket_bytes)
{
    cursor->hash = p4_key_hash(key, words);
    cursor->bucket = cursor->hash & table->hash.mask;
    if (p4_prefetching && table->hash.count)
        p4_fetch(table->hash.buckets + cursor->bucket * bucket_bytes, bucket_bytes);
}

/* Looks into one bucket. True when the lookup has come to its end. */
static inline bool p4_exact_step(const struct p4_table *table, struct p4_cursor *cursor, const uint64_t *key,
    unsigned words, unsigned slots, unsigned stride, unsigned bucket_bytes)
{
    const uint8_t *bucket;
    uint8_t mark = p4_mark(cursor->hash);
    if (table->hash.count == 0) {
        p4_missed(table, cursor);
        return true;
    }
    bucket = table->hash.buckets + cursor->bucket * bucket_bytes;
    for (unsigned slot = 0; slot < slots; slot++) {
        const uint8_t *at = bucket + 8 + slot * stride;
        if (bucket[slot] == mark && p4_same((const uint64_t *)at, key, words)) {
            cursor->hit = true;
            cursor->action = at[words * 8];
            cursor->data = at + words * 8 + 1;
            return true;
        }
    }
    if (bucket[P4_MARKS] == 0) {
        p4_missed(table, cursor);
        return true;
    }
    cursor->bucket = (cursor->bucket + 1) & table->hash.mask;
    if (p4_prefetching)
        p4_fetch(table->hash.buckets + cursor->bucket * bucket_bytes, bucket_bytes);
    return false;
}

static inline uint64_t p4_tuple_hash(const struct p4_tuple *tuple, const uint64_t *key, unsigned words)
{
    uint64_t masked[words];
    for (unsigned i = 0; i < words; i++)
        masked[i] = key[i] & tuple->mask[i];
    return p4_key_hash(masked, words);
}

static inline void p4_tuple_enter(const struct p4_table *table, struct p4_cursor *cursor, const uint64_t *key,
    unsigned words, unsigned bucket_bytes)
{
    const struct p4_tuple *tuple = &table->tuples[cursor->tuple];
    cursor->hash = p4_tuple_hash(tuple, key, words);
    cursor->bucket = cursor->hash & tuple->table.mask;
    if (p4_prefetching)
        p4_fetch(tuple->table.buckets + cursor->bucket * bucket_bytes, bucket_bytes);
}

static inline void p4_tuple_start(const struct p4_table *table, struct p4_cursor *cursor, const uint64_t *key,
    unsigned words, unsigned bucket_bytes)
{
    cursor->tuple = 0;
    cursor->best = NULL;
    if (table->tuple_count)
        p4_tuple_enter(table, cursor, key, words, bucket_bytes);
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

/* Looks into one bucket of one tuple. True when the lookup has come to its end. */
static inline bool p4_tuple_step(const struct p4_table *table, struct p4_cursor *cursor, const uint64_t *key,
    unsigned words, unsigned slots, unsigned stride, unsigned bucket_bytes)
{
    if (cursor->tuple < table->tuple_count) {
        const struct p4_tuple *tuple = &table->tuples[cursor->tuple];
        const uint8_t *bucket = tuple->table.buckets + cursor->bucket * bucket_bytes;
        uint8_t mark = p4_mark(cursor->hash);
        for (unsigned slot = 0; slot < slots; slot++) {
            const uint8_t *at = bucket + 8 + slot * stride;
            const uint64_t *words_at = (const uint64_t *)at;
            const struct p4_entry *entry;
            bool same = bucket[slot] == mark;
            for (unsigned i = 0; same && i < words; i++)
                same = words_at[i] == (key[i] & tuple->mask[i]);
            if (!same)
                continue;
            memcpy(&entry, at + words * 8, sizeof entry);
            if (cursor->best && !p4_better(&entry->order, &cursor->best->order))
                continue;
            if (p4_in_ranges(table, entry, key))
                cursor->best = entry;
        }
        if (bucket[P4_MARKS]) {
            cursor->bucket = (cursor->bucket + 1) & tuple->table.mask;
            return false;
        }
        cursor->tuple++;
        if (cursor->tuple < table->tuple_count &&
            (!cursor->best || p4_better(&table->tuples[cursor->tuple].best, &cursor->best->order))) {
            p4_tuple_enter(table, cursor, key, words, bucket_bytes);
            return false;
        }
    }
    if (!cursor->best) {
        p4_missed(table, cursor);
        return true;
    }
    cursor->hit = true;
    cursor->action = cursor->best->action;
    cursor->data = cursor->best->data;
    return true;
}

#endif
