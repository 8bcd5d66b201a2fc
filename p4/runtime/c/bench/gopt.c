/* Lookups of names as in G-Opt's NDN application, for comparison: Kalia et al., "Raising the Bar for Using GPUs in
   Software Packet Processing" (NSDI 2015), section 5.

   A hash table holds all prefixes of all names. A prefix is in one of two buckets of 8 slots of 16 bytes. Only its
   hash is stored, not its name, so two names with the same hash are the same. A lookup begins with two components
   and adds one at a time, until there are none left or the prefix is marked as terminal, that is, no other prefix
   begins with it. The whole prefix is hashed again each time. A prefix of one component is looked up last. The
   packets of a batch take turns: each runs until it prefetches a bucket. A bucket is two cache lines; only the first
   one is prefetched. */
#include "bench.h"

#include <rte_prefetch.h>
#include <stdlib.h>

#define SLOTS 8
#define NO_PORT (-1)

struct slot {
    uint64_t hash;
    int16_t port;
    /* No other prefix begins with this one. */
    uint8_t terminal;
};

struct bucket {
    struct slot slots[SLOTS];
};

static struct bucket *buckets;
static uint64_t mask;
/* Which bits of a hash are the bucket number. */
static unsigned shift;

/* Hash of the first components of a name. Zero marks an empty slot. */
static uint64_t hash_of(const uint64_t *components, unsigned count)
{
    uint64_t hash = p4_key_hash(components, count);
    return hash ? hash : 1;
}

static uint64_t place_of(uint64_t hash)
{
    return hash >> shift & mask;
}

static uint64_t other(uint64_t place, uint64_t hash)
{
    return (place ^ mixed(hash >> 32)) & mask;
}

static struct slot *find(struct bucket *bucket, uint64_t hash)
{
    for (unsigned i = 0; i < SLOTS; i++)
        if (bucket->slots[i].hash == hash)
            return &bucket->slots[i];
    return NULL;
}

/* Returns NULL if both buckets are full. */
static struct slot *slot_for(uint64_t hash)
{
    uint64_t place = place_of(hash), second = other(place, hash);
    struct slot *slot = find(&buckets[place], hash);
    if (!slot)
        slot = find(&buckets[second], hash);
    if (!slot)
        slot = find(&buckets[place], 0);
    if (!slot)
        slot = find(&buckets[second], 0);
    if (slot && !slot->hash)
        *slot = (struct slot){.hash = hash, .port = NO_PORT, .terminal = 1};
    return slot;
}

/* Returns false if there is no room for an entry. */
static bool fill(uint64_t entries)
{
    for (uint64_t entry = 0; entry < entries; entry++) {
        unsigned all = components(entry);
        uint64_t key[MOST_COMPONENTS], first[MOST_COMPONENTS];
        name_of(entry, all, key);
        for (unsigned i = 0; i < all; i++)
            first[i] = key[all - 1 - i];
        for (unsigned i = 1; i <= all; i++) {
            struct slot *slot = slot_for(hash_of(first, i));
            if (!slot)
                return false;
            if (i < all)
                slot->terminal = 0;
            /* The first entry of a name counts, as in the other tables. */
            else if (slot->port == NO_PORT)
                slot->port = (int16_t)PORT_OF(number_of(entry, all));
        }
    }
    return true;
}

void gopt_fill(uint64_t entries)
{
    uint64_t count = 64;
    while (count * SLOTS < entries * 5)
        count *= 2;
    mask = count - 1;
    buckets = p4_region_new(count * sizeof *buckets);
    if (!buckets)
        fail("out of memory for G-Opt's table");
    /* Entries are never moved to make room, so about one entry in ten million may find none; then other bits of the
       hashes are tried. */
    for (shift = 0; !fill(entries); shift++) {
        if (shift == 8)
            fail("G-Opt's table is full");
        memset(buckets, 0, count * sizeof *buckets);
    }
}

/* State of a packet's lookup. */
struct turn {
    uint64_t name[MOST_COMPONENTS], hash, place;
    unsigned count, components, second;
    int port;
};

/* Prefetches a bucket of the prefix with this many components. */
static void ask(struct turn *turn, unsigned count)
{
    turn->components = count;
    turn->hash = hash_of(turn->name, count);
    turn->place = place_of(turn->hash);
    turn->second = 0;
    rte_prefetch0(&buckets[turn->place]);
}

/* Makes one step. Returns false if the lookup has ended. */
static bool go_on(struct turn *turn)
{
    const struct slot *slot = find(&buckets[turn->place], turn->hash);
    if (!slot && !turn->second) {
        turn->second = 1;
        turn->place = other(turn->place, turn->hash);
        rte_prefetch0(&buckets[turn->place]);
        return true;
    }
    if (slot && slot->port != NO_PORT)
        turn->port = slot->port;
    if (turn->components == 1)
        return false;
    if (slot && !slot->terminal && turn->components < turn->count) {
        ask(turn, turn->components + 1);
        return true;
    }
    if (turn->port != NO_PORT)
        return false;
    ask(turn, 1);
    return true;
}

void gopt_names(struct rte_mbuf **packets, unsigned count)
{
    struct turn turns[HAND];
    uint32_t left = 0;
    for (unsigned i = 0; i < count; i++) {
        const uint8_t *data = rte_pktmbuf_mtod(packets[i], const uint8_t *);
        struct turn *turn = &turns[i];
        packets[i]->port = UINT16_MAX;
        if (packets[i]->data_len < 70 || data[12] != 0x86 || data[13] != 0x24)
            continue;
        turn->count = 0;
        turn->port = NO_PORT;
        for (unsigned at = 0; at < MOST_COMPONENTS; at++) {
            turn->name[at] = p4_load(data + 14 + 8 * at);
            if (turn->name[at])
                turn->count = at + 1;
        }
        ask(turn, turn->count >= 2 ? 2 : 1);
        left |= UINT32_C(1) << i;
    }
    for (unsigned lane = 0; left; lane = lane + 1 < count ? lane + 1 : 0)
        if ((left >> lane & 1) && !go_on(&turns[lane])) {
            left &= ~(UINT32_C(1) << lane);
            packets[lane]->port = turns[lane].port == NO_PORT ? UINT16_MAX : (uint16_t)turns[lane].port;
        }
}
