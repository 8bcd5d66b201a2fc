/* Hash tables with keys and values in the buckets, read without locks while one thread changes them.

   A bucket is a cache line; or two, if only one entry fits into one; or as many as an entry needs. Its first word
   has a mark of 8 bits for each slot (0 is empty, 1 is removed), and in the highest byte the number of entries that
   continued to the next bucket (255 stays). Then come the keys of all slots, then the values of all slots. A slot is
   written before its mark is set, and reused only when no worker can see its old content. So what a mark refers to
   never changes, except for the first word of the value, or the whole of a short value, which changes atomically. */
#ifndef P4_HASH_H
#define P4_HASH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Memory layout of entries. A value has 2 or 4 bytes, or is a word of 8 bytes followed by further words. */
struct p4_shape {
    /* Words of a key (64 bits each), bytes of a value, slots of a bucket, bytes of a bucket. */
    uint32_t words, value_bytes, slots, bucket_bytes;
};

#define P4_MOST_SLOTS 7

/* The shape for these keys and values, as the compiler chooses it: one cache line, or two if only one entry fits
   into one. */
static inline struct p4_shape p4_shape_of(uint32_t words, uint32_t value_bytes)
{
    struct p4_shape shape = {.words = words, .value_bytes = value_bytes};
    uint32_t bytes = words * 8 + value_bytes, of_one = 56 / bytes, of_two = 120 / bytes;
    uint32_t slots = of_one > 1 ? of_one : of_two ? of_two : 1;
    shape.slots = slots < P4_MOST_SLOTS ? slots : P4_MOST_SLOTS;
    shape.bucket_bytes = (8 + shape.slots * bytes + 63) / 64 * 64;
    return shape;
}

struct p4_hash {
    uint8_t *buckets;
    /* Number of buckets, a power of two, minus one. */
    uint64_t mask;
    size_t bytes;
    /* For the thread that changes the table: number of entries, and removed slots that cannot be reused yet, the
       oldest first. */
    uint64_t count;
    struct p4_dead { uint64_t epoch, bucket, slot; } *dead;
    size_t dead_first, dead_count, dead_room;
};

extern uint64_t p4_seed;

/* Continues a hash with further words. A longer key with the same beginning starts with the same hash: a key begins
   with its last word. */
static inline uint64_t p4_key_hash_on(uint64_t hash, const uint64_t *key, unsigned words)
{
    for (unsigned i = words; i-- > 0;) {
        unsigned __int128 product = (unsigned __int128)(key[i] ^ hash ^ UINT64_C(0x9e3779b97f4a7c15)) * UINT64_C(0xd6e8feb86659fd93);
        hash = (uint64_t)product ^ (uint64_t)(product >> 64);
    }
    return hash;
}

static inline uint64_t p4_key_hash(const uint64_t *key, unsigned words)
{
    return p4_key_hash_on(p4_seed, key, words);
}

/* The number of the bucket where a lookup begins. */
static inline uint64_t p4_home(uint64_t hash, uint64_t mask)
{
    return (hash ^ hash >> 29) & mask;
}

static inline uint8_t p4_mark(uint64_t hash)
{
    uint8_t mark = (uint8_t)(hash >> 56);
    return mark > 1 ? mark : (uint8_t)(mark + 2);
}

static inline bool p4_same(const uint64_t *left, const uint64_t *right, unsigned words)
{
    uint64_t different = 0;
    for (unsigned i = 0; i < words; i++)
        different |= left[i] ^ right[i];
    return different == 0;
}

static inline uint64_t p4_bucket_head(const uint8_t *bucket)
{
    return __atomic_load_n((const uint64_t *)bucket, __ATOMIC_ACQUIRE);
}

/* Bits 7, 15 … for the slots that have a mark. */
static inline uint64_t p4_marked(uint64_t head, uint8_t mark, unsigned slots)
{
    const uint64_t low = UINT64_C(0x7f7f7f7f7f7f7f7f);
    uint64_t different = head ^ mark * UINT64_C(0x0101010101010101);
    uint64_t zero = ~(((different & low) + low) | different | low);
    return zero & ((UINT64_C(1) << (8 * slots)) - 1);
}

/* The key and the value in a slot. */
static inline const uint64_t *p4_key_at(const uint8_t *bucket, unsigned slot, unsigned words)
{
    return (const uint64_t *)(bucket + 8 + slot * words * 8);
}

static inline const uint8_t *p4_value_at(const uint8_t *bucket, unsigned slot, unsigned words, unsigned value_bytes, unsigned slots)
{
    return bucket + 8 + slots * words * 8 + slot * value_bytes;
}

/* The value of a key in one bucket; NULL if it is not there. */
static inline const uint8_t *p4_bucket_find(const uint8_t *bucket, uint64_t head, uint8_t mark, const uint64_t *key,
    unsigned words, unsigned value_bytes, unsigned slots)
{
    for (uint64_t marked = p4_marked(head, mark, slots); marked; marked &= marked - 1) {
        unsigned slot = (unsigned)__builtin_ctzll(marked) / 8;
        if (p4_same(p4_key_at(bucket, slot, words), key, words))
            return p4_value_at(bucket, slot, words, value_bytes, slots);
    }
    return NULL;
}

static inline bool p4_goes_on(uint64_t head)
{
    return head >> 56 != 0;
}

/* The rest is for the thread that changes the table. */

/* Makes an empty table with room for this many entries. Returns NULL if there is no memory. */
struct p4_hash *p4_hash_new(const struct p4_shape *shape, uint64_t room);
void p4_hash_free(struct p4_hash *hash);
/* Frees the table when no worker can see it. */
void p4_hash_retire(struct p4_hash *hash);
/* The value of a key; NULL if there is none. Its first word, or the whole of a short value, may be changed with one
   store. */
void *p4_hash_find(const struct p4_hash *hash, const struct p4_shape *shape, const uint64_t *key);
/* Adds a new key. The table may be replaced by a larger one, which is published. Returns false if there is no
   memory. */
bool p4_hash_insert(struct p4_hash **place, const struct p4_shape *shape, const uint64_t *key, const void *value);
/* Replaces the whole value of an existing key. Returns false if there is no memory. */
bool p4_hash_replace(struct p4_hash **place, const struct p4_shape *shape, const uint64_t *key, const void *value);
/* Removes a key. Returns false if it does not exist. */
bool p4_hash_delete(struct p4_hash *hash, const struct p4_shape *shape, const uint64_t *key);
/* Calls a function with each key and value. */
typedef void p4_hash_each(void *with, const uint64_t *key, const void *value);
void p4_hash_all(const struct p4_hash *hash, const struct p4_shape *shape, p4_hash_each *each, void *with);

#endif
