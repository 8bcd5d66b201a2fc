/* Hash tables: one thread changes them while others read. */
#include "hash.h"
#include "epoch.h"
#include "memory.h"

#include <stdlib.h>
#include <string.h>

#define EMPTY 0
#define TAKEN_OUT 1

uint64_t p4_seed = UINT64_C(0x51ed270b7f4a7c15);

/* Position of an entry. */
struct spot {
    uint64_t home, bucket;
    unsigned slot;
};

static uint8_t *bucket_at(const struct p4_hash *hash, const struct p4_shape *shape, uint64_t number)
{
    return hash->buckets + (number & hash->mask) * shape->bucket_bytes;
}

static uint64_t *key_at(uint8_t *bucket, const struct p4_shape *shape, unsigned slot)
{
    return (uint64_t *)p4_key_at(bucket, slot, shape->words);
}

static void *value_at(uint8_t *bucket, const struct p4_shape *shape, unsigned slot)
{
    return (void *)p4_value_at(bucket, slot, shape->words, shape->value_bytes, shape->slots);
}

static uint8_t mark_of(const uint8_t *bucket, unsigned slot)
{
    return bucket[slot];
}

/* Changes the marks of one slot, or of two slots at once. */
static void set_marks(uint8_t *bucket, unsigned one, uint8_t mark, unsigned other, uint8_t other_mark)
{
    uint64_t head = p4_bucket_head(bucket);
    head = (head & ~(UINT64_C(0xff) << (8 * one))) | (uint64_t)mark << (8 * one);
    head = (head & ~(UINT64_C(0xff) << (8 * other))) | (uint64_t)other_mark << (8 * other);
    __atomic_store_n((uint64_t *)bucket, head, __ATOMIC_RELEASE);
}

/* Changes the number of entries that continued from this bucket to the next. The counter saturates and then stays. */
static void went_on(uint8_t *bucket, int change)
{
    uint64_t head = p4_bucket_head(bucket), passed = head >> 56;
    if (passed == 255)
        return;
    head = (head & (UINT64_MAX >> 8)) | (passed + (uint64_t)(int64_t)change) << 56;
    __atomic_store_n((uint64_t *)bucket, head, __ATOMIC_RELEASE);
}

struct p4_hash *p4_hash_new(const struct p4_shape *shape, uint64_t room)
{
    struct p4_hash *hash = calloc(1, sizeof *hash);
    uint64_t buckets = 1;
    /* At most three quarters of the slots are used. */
    while (buckets * shape->slots * 3 / 4 < room)
        buckets *= 2;
    if (!hash)
        return NULL;
    hash->mask = buckets - 1;
    /* Reads of values may extend some bytes too far. */
    hash->bytes = buckets * shape->bucket_bytes + 64;
    hash->buckets = p4_region_new(hash->bytes);
    if (!hash->buckets) {
        free(hash);
        return NULL;
    }
    return hash;
}

void p4_hash_free(struct p4_hash *hash)
{
    if (!hash)
        return;
    p4_region_free(hash->buckets, hash->bytes);
    free(hash->dead);
    free(hash);
}

static void release(void *owner, uint64_t what)
{
    (void)what;
    p4_hash_free(owner);
}

void p4_hash_retire(struct p4_hash *hash)
{
    if (hash)
        p4_retire(release, hash, 0);
}

static bool find(const struct p4_hash *hash, const struct p4_shape *shape, const uint64_t *key, struct spot *spot)
{
    uint64_t mixed = p4_key_hash(key, shape->words);
    spot->home = p4_home(mixed, hash->mask);
    for (uint64_t at = spot->home;; at++) {
        uint8_t *bucket = bucket_at(hash, shape, at);
        uint64_t head = p4_bucket_head(bucket);
        for (uint64_t marked = p4_marked(head, p4_mark(mixed), shape->slots); marked; marked &= marked - 1) {
            unsigned slot = (unsigned)__builtin_ctzll(marked) / 8;
            if (p4_same(key_at(bucket, shape, slot), key, shape->words)) {
                spot->bucket = at;
                spot->slot = slot;
                return true;
            }
        }
        if (!p4_goes_on(head) || at - spot->home > hash->mask)
            return false;
    }
}

void *p4_hash_find(const struct p4_hash *hash, const struct p4_shape *shape, const uint64_t *key)
{
    struct spot spot;
    if (!hash || !find(hash, shape, key, &spot))
        return NULL;
    return value_at(bucket_at(hash, shape, spot.bucket), shape, spot.slot);
}

/* Makes slots that no worker can see any more empty again. */
static void drain(struct p4_hash *hash, const struct p4_shape *shape)
{
    uint64_t reached = 0;
    while (hash->dead_count) {
        struct p4_dead *dead = &hash->dead[hash->dead_first];
        if (dead->epoch > reached) {
            if (!p4_reached(dead->epoch))
                return;
            reached = dead->epoch;
        }
        uint8_t *bucket = bucket_at(hash, shape, dead->bucket);
        set_marks(bucket, (unsigned)dead->slot, EMPTY, (unsigned)dead->slot, EMPTY);
        hash->dead_first = (hash->dead_first + 1) % hash->dead_room;
        hash->dead_count--;
    }
}

static void bury(struct p4_hash *hash, uint64_t bucket, unsigned slot)
{
    if (hash->dead_count == hash->dead_room) {
        size_t room = hash->dead_room * 2 + 16;
        struct p4_dead *larger = p4_memory(room * sizeof *larger);
        for (size_t i = 0; i < hash->dead_count; i++)
            larger[i] = hash->dead[(hash->dead_first + i) % hash->dead_room];
        free(hash->dead);
        hash->dead = larger;
        hash->dead_first = 0;
        hash->dead_room = room;
    }
    hash->dead[(hash->dead_first + hash->dead_count++) % hash->dead_room] =
        (struct p4_dead){p4_taken_out(), bucket & hash->mask, slot};
}

/* Writes an entry into an empty slot and returns its position. The caller still has to set its mark and update the
   buckets that it passed. */
static struct spot place(struct p4_hash *hash, const struct p4_shape *shape, const uint64_t *key, const void *value)
{
    uint64_t home = p4_home(p4_key_hash(key, shape->words), hash->mask);
    for (uint64_t at = home;; at++) {
        uint8_t *bucket = bucket_at(hash, shape, at);
        for (unsigned slot = 0; slot < shape->slots; slot++) {
            if (mark_of(bucket, slot) != EMPTY)
                continue;
            memcpy(key_at(bucket, shape, slot), key, shape->words * 8);
            memcpy(value_at(bucket, shape, slot), value, shape->value_bytes);
            return (struct spot){home, at, slot};
        }
    }
}

static void publish(struct p4_hash *hash, const struct p4_shape *shape, const uint64_t *key, const struct spot *spot)
{
    uint8_t mark = p4_mark(p4_key_hash(key, shape->words));
    for (uint64_t at = spot->home; at < spot->bucket; at++)
        went_on(bucket_at(hash, shape, at), 1);
    set_marks(bucket_at(hash, shape, spot->bucket), spot->slot, mark, spot->slot, mark);
}

static void take_out(struct p4_hash *hash, const struct p4_shape *shape, const struct spot *spot)
{
    uint8_t *bucket = bucket_at(hash, shape, spot->bucket);
    set_marks(bucket, spot->slot, TAKEN_OUT, spot->slot, TAKEN_OUT);
    for (uint64_t at = spot->home; at < spot->bucket; at++)
        went_on(bucket_at(hash, shape, at), -1);
    bury(hash, spot->bucket, spot->slot);
}

struct copy {
    struct p4_hash *to;
    const struct p4_shape *shape;
};

static void copy_one(void *with, const uint64_t *key, const void *value)
{
    struct copy *copy = with;
    struct spot spot = place(copy->to, copy->shape, key, value);
    publish(copy->to, copy->shape, key, &spot);
    copy->to->count++;
}

/* Makes sure that there is an empty slot. */
static bool make_room(struct p4_hash **at, const struct p4_shape *shape)
{
    struct p4_hash *hash = *at;
    if (hash && hash->dead_count)
        drain(hash, shape);
    if (hash && (hash->count + hash->dead_count + 1) * 4 > (hash->mask + 1) * shape->slots * 3 &&
        hash->dead_count * 4 > hash->count) {
        /* Waiting for a batch frees slots without taking more memory. */
        p4_synchronize();
        drain(hash, shape);
    }
    if (hash && (hash->count + hash->dead_count + 1) * 4 <= (hash->mask + 1) * shape->slots * 3)
        return true;
    struct p4_hash *larger = p4_hash_new(shape, hash ? hash->count + hash->count / 4 + 1 : 1);
    if (!larger)
        return false;
    if (hash) {
        struct copy copy = {larger, shape};
        p4_hash_all(hash, shape, copy_one, &copy);
    }
    __atomic_store_n(at, larger, __ATOMIC_RELEASE);
    p4_hash_retire(hash);
    return true;
}

bool p4_hash_insert(struct p4_hash **at, const struct p4_shape *shape, const uint64_t *key, const void *value)
{
    struct spot spot;
    if (!make_room(at, shape))
        return false;
    spot = place(*at, shape, key, value);
    publish(*at, shape, key, &spot);
    (*at)->count++;
    return true;
}

bool p4_hash_replace(struct p4_hash **at, const struct p4_shape *shape, const uint64_t *key, const void *value)
{
    struct spot old, new;
    if (!make_room(at, shape) || !find(*at, shape, key, &old))
        return false;
    new = place(*at, shape, key, value);
    if (new.bucket == old.bucket) {
        uint8_t mark = p4_mark(p4_key_hash(key, shape->words));
        set_marks(bucket_at(*at, shape, old.bucket), new.slot, mark, old.slot, TAKEN_OUT);
        bury(*at, old.bucket, old.slot);
        return true;
    }
    publish(*at, shape, key, &new);
    /* A worker that has already passed the new position must still find the old one. */
    p4_synchronize();
    take_out(*at, shape, &old);
    return true;
}

bool p4_hash_delete(struct p4_hash *hash, const struct p4_shape *shape, const uint64_t *key)
{
    struct spot spot;
    if (!hash || !find(hash, shape, key, &spot))
        return false;
    take_out(hash, shape, &spot);
    hash->count--;
    return true;
}

void p4_hash_all(const struct p4_hash *hash, const struct p4_shape *shape, p4_hash_each *each, void *with)
{
    for (uint64_t number = 0; hash && number <= hash->mask; number++) {
        uint8_t *bucket = bucket_at(hash, shape, number);
        for (unsigned slot = 0; slot < shape->slots; slot++) {
            if (mark_of(bucket, slot) > TAKEN_OUT)
                each(with, key_at(bucket, shape, slot), value_at(bucket, shape, slot));
        }
    }
}
