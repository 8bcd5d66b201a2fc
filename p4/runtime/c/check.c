/* Compares tables with a list of entries that is searched linearly: random changes and lookups, and changes while
   other threads look up. Prints the first error and exits with 1. */
#include "control.h"
#include "prefix.h"

#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>

#define MOST_WORDS 4
#define MOST_DATA 20
#define READERS 2

/* A kind of table, and its keys: exact bits, then ternary ones, then a range, or a prefix at the end. Values of
   exact tables have the size that the compiler chooses for this much action data. */
struct sort {
    const char *name;
    enum p4_kind kind;
    uint32_t exact_bits, ternary_bits, range_bits, prefix_bits, data_bits, value_bytes;
};

static const struct sort sorts[] = {
    {"exact 48", P4_EXACT, 48, 0, 0, 0, 48, 8},
    {"exact 64, values of four bytes", P4_EXACT, 64, 0, 0, 0, 24, 4},
    {"exact 170, values of two bytes", P4_EXACT, 170, 0, 0, 0, 8, 2},
    {"exact 9", P4_EXACT, 9, 0, 0, 0, 56, 8},
    {"exact 200, large values", P4_EXACT, 200, 0, 0, 0, 160, 32},
    {"direct 32", P4_DIRECT, 0, 0, 0, 32, 16, 8},
    {"direct 32, values apart", P4_DIRECT, 0, 0, 0, 32, 48, 8},
    {"direct 32, large values", P4_DIRECT, 0, 0, 0, 32, 160, 8},
    {"direct 24", P4_DIRECT, 0, 0, 0, 24, 16, 8},
    {"direct 27", P4_DIRECT, 0, 0, 0, 27, 32, 8},
    {"direct 5", P4_DIRECT, 0, 0, 0, 5, 16, 8},
    {"direct, exact 9", P4_DIRECT, 9, 0, 0, 0, 16, 8},
    {"trie 64", P4_TRIE, 0, 0, 0, 64, 16, 8},
    {"trie 128", P4_TRIE, 0, 0, 0, 128, 16, 8},
    {"trie 128, large values", P4_TRIE, 0, 0, 0, 128, 160, 8},
    {"trie 12 + 32", P4_TRIE, 12, 0, 0, 32, 48, 8},
    {"trie 100 + 128", P4_TRIE, 100, 0, 0, 128, 16, 8},
    {"tuples 32", P4_TUPLES, 0, 32, 0, 0, 48, 8},
    {"tuples 8 + 70 + 16", P4_TUPLES, 8, 70, 16, 0, 160, 8},
    {"tuples, range of 64", P4_TUPLES, 0, 0, 64, 0, 16, 8},
};

struct known {
    struct p4_order order;
    uint64_t key[MOST_WORDS], mask[MOST_WORDS], ranges[2];
    uint8_t data[MOST_DATA];
    uint8_t action;
    bool stays;
};

static const struct sort *sort;
static struct p4_table table;
static uint32_t argument_bits[3];
static struct p4_range range;
static struct known *list;
static size_t count, room;
static uint64_t age;
static unsigned words, bits, shift;
static bool stop;
static unsigned reading;

static uint64_t next(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

static void fail(const char *what)
{
    printf("%s: %s\n", sort->name, what);
    exit(1);
}

static void open_table(const struct sort *of, uint64_t size)
{
    sort = of;
    bits = sort->exact_bits + sort->ternary_bits + sort->range_bits + sort->prefix_bits;
    words = (bits + 63) / 64;
    shift = sort->prefix_bits || sort->kind == P4_DIRECT ? words * 64 - bits : 0;
    argument_bits[0] = 0;
    argument_bits[1] = sort->data_bits;
    argument_bits[2] = sort->data_bits / 2;
    range = (struct p4_range){0, sort->range_bits};
    table = (struct p4_table){
        .name = sort->name, .kind = sort->kind, .key_bits = bits, .exact_bits = sort->exact_bits, .size = size,
        .data_bits = sort->data_bits, .action_count = 3, .argument_bits = argument_bits, .ranges = &range,
        .range_count = sort->range_bits ? 1 : 0,
        .shape = p4_shape_of(words, sort->value_bytes),
    };
    p4_ahead_bytes = 1024;
    count = 0;
}

static void put(uint64_t *key, unsigned bit, unsigned width, uint64_t value)
{
    for (unsigned i = 0; i < width; i++)
        if (value >> i & 1)
            key[(bit + i) / 64] |= UINT64_C(1) << ((bit + i) % 64);
}

/* Few different values in each part of a key, so that entries collide; in some, all bits are equal. */
static void random_part(uint64_t *random, uint64_t *key, unsigned bit, unsigned width, unsigned variety)
{
    for (unsigned at = 0; at < width; at += 16) {
        uint64_t value = next(random) % variety;
        value = next(random) % 4 == 0 ? value << 12 : value;
        put(key, bit + at, width - at < 16 ? width - at : 16, next(random) % 8 == 0 ? 0xffff : value);
    }
}

static void random_key(uint64_t *random, uint64_t *key, unsigned variety)
{
    memset(key, 0, MOST_WORDS * 8);
    random_part(random, key, shift, bits, variety);
}

/* Action data can be checked for consistency: all bytes are the same. */
static void random_values(uint64_t *random, struct known *entry)
{
    entry->action = (uint8_t)(next(random) % 3);
    memset(entry->data, 0, sizeof entry->data);
    memset(entry->data, (int)(next(random) & 0xff), p4_table_data_bytes(&table, entry->action));
}

static struct known random_entry(uint64_t *random, unsigned variety)
{
    struct known entry = {0};
    uint64_t low = next(random) % variety, high = low + (next(random) % 3 ? next(random) % variety : 0);
    unsigned base = sort->range_bits + sort->prefix_bits + shift;
    random_key(random, entry.key, variety);
    put(entry.mask, base + sort->ternary_bits, sort->exact_bits % 64, UINT64_MAX);
    for (unsigned i = 0; i < sort->exact_bits; i++)
        put(entry.mask, base + sort->ternary_bits + i, 1, 1);
    for (unsigned i = 0; i < sort->ternary_bits; i += 16)
        put(entry.mask, base + i, sort->ternary_bits - i < 16 ? sort->ternary_bits - i : 16, next(random) % 2 ? 0xffff : next(random) % 4);
    if (sort->prefix_bits) {
        /* Short prefixes fill a large part of a direct table, so they are rare. */
        uint32_t shortest = sort->kind == P4_DIRECT && sort->prefix_bits > 14 && next(random) % 64 ? 14 : 0;
        entry.order.prefix = shortest + (uint32_t)(next(random) % (sort->prefix_bits - shortest + 1));
        for (unsigned i = 0; i < entry.order.prefix; i++)
            put(entry.mask, base - 1 - i, 1, 1);
    }
    if (sort->range_bits) {
        uint64_t all = p4_mask(sort->range_bits);
        entry.ranges[0] = (next(random) % 5 == 0 ? 0 : low) & all;
        entry.ranges[1] = (next(random) % 5 == 0 ? all : high) & all;
        if (next(random) % 5 == 0)
            entry.ranges[0] = next(random) & all, entry.ranges[1] = entry.ranges[0] + (next(random) & (all - entry.ranges[0]));
    }
    if (sort->kind == P4_TUPLES)
        entry.order.priority = (int64_t)(next(random) % 5);
    for (unsigned i = 0; i < MOST_WORDS; i++)
        entry.key[i] &= entry.mask[i];
    random_values(random, &entry);
    return entry;
}

static struct known *find(const struct known *like)
{
    for (size_t i = 0; i < count; i++) {
        struct known *entry = &list[i];
        if (memcmp(entry->key, like->key, sizeof entry->key) == 0 && memcmp(entry->mask, like->mask, sizeof entry->mask) == 0 &&
            memcmp(entry->ranges, like->ranges, sizeof entry->ranges) == 0 && entry->order.priority == like->order.priority)
            return entry;
    }
    return NULL;
}

static const struct known *best(const uint64_t *key)
{
    const struct known *found = NULL;
    for (size_t i = 0; i < count; i++) {
        const struct known *entry = &list[i];
        bool fits = true;
        for (unsigned word = 0; word < words; word++)
            fits &= (key[word] & entry->mask[word]) == entry->key[word];
        uint64_t value = key[0] & p4_mask(sort->range_bits);
        if (sort->range_bits)
            fits &= value >= entry->ranges[0] && value <= entry->ranges[1];
        if (fits && (!found || p4_better(&entry->order, &found->order)))
            found = entry;
    }
    return found;
}

static void look(struct p4_found *found, const uint64_t *key)
{
    struct p4_cursor memory, *cursor = &memory;
    const struct p4_shape *shape = &table.shape;
    switch (sort->kind) {
    case P4_EXACT:
        p4_exact_start(&table, cursor, key, words, 0, shape->bucket_bytes, true);
        while (!p4_exact_step(&table, cursor, found, key, words, shape->value_bytes, shape->slots, shape->bucket_bytes, true));
        break;
    case P4_DIRECT:
        p4_direct_start(&table, cursor, key, bits, true);
        while (!p4_direct_step(&table, cursor, found, key, bits, sort->data_bits, true));
        break;
    case P4_TRIE:
        p4_trie_start(&table, cursor, key, words, true);
        while (!p4_trie_step(&table, cursor, found, key, words, sort->data_bits, true));
        break;
    case P4_TUPLES:
        p4_tuples_start(&table, cursor, key, words, shape->bucket_bytes, true);
        while (!p4_tuples_step(&table, cursor, found, key, words, shape->slots, shape->bucket_bytes, true));
        break;
    }
}

/* The action data that a lookup has found, byte by byte. */
static void values_of(const struct p4_found *found, uint8_t *data)
{
    size_t bytes = p4_table_data_bytes(&table, found->action);
    for (size_t i = 0; i < bytes; i++)
        data[i] = sort->data_bits <= P4_SMALL ? (uint8_t)(found->value >> (56 - 8 * i)) : found->data[i];
}

static void compare(const uint64_t *key)
{
    struct p4_found found = {0};
    const struct known *wanted = best(key);
    uint8_t data[MOST_DATA] = {0};
    look(&found, key);
    if (found.hit != (wanted != NULL))
        fail(wanted ? "an entry is not found" : "a missing entry is found");
    if (!wanted)
        return;
    values_of(&found, data);
    if (found.action != wanted->action || memcmp(data, wanted->data, p4_table_data_bytes(&table, wanted->action)) != 0)
        fail("a different entry is found");
}

static enum p4_outcome apply(enum p4_outcome (*change)(struct p4_table *, const struct p4_new_entry *), const struct known *entry)
{
    struct p4_new_entry new = {
        .order = entry->order, .action = entry->action, .key = entry->key, .mask = entry->mask, .ranges = entry->ranges, .data = entry->data,
    };
    return change(&table, &new);
}

/* Makes one random change. Permanent entries are left alone. */
static void change(uint64_t *random, unsigned variety)
{
    struct known entry = random_entry(random, variety);
    unsigned what = (unsigned)(next(random) % 8);
    if (what >= 4 && count) {
        const struct known *other = &list[next(random) % count];
        struct known values = entry;
        if (other->stays)
            return;
        entry = *other;
        entry.action = values.action;
        memcpy(entry.data, values.data, sizeof values.data);
    }
    struct known *known = find(&entry);
    if (known && known->stays)
        return;
    if (what < 4) {
        enum p4_outcome wanted = count >= table.size ? P4_FULL : known ? P4_PRESENT : P4_OK;
        enum p4_outcome outcome = apply(p4_table_insert, &entry);
        /* Random entries may have more masks than a table supports; the table is then unchanged. */
        if (outcome == P4_MANY_MASKS && wanted == P4_OK && sort->kind == P4_TUPLES)
            return;
        if (outcome != wanted)
            fail("an insertion has an unexpected result");
        if (wanted != P4_OK)
            return;
        if (count == room)
            list = p4_memory_again(list, (room = room * 2 + 16) * sizeof *list);
        entry.order.age = age++;
        list[count++] = entry;
    } else if (what < 6) {
        if (apply(p4_table_modify, &entry) != (known ? P4_OK : P4_ABSENT))
            fail("a modification has an unexpected result");
        if (known) {
            known->action = entry.action;
            memcpy(known->data, entry.data, sizeof entry.data);
        }
    } else {
        if (apply(p4_table_delete, &entry) != (known ? P4_OK : P4_ABSENT))
            fail("a deletion has an unexpected result");
        if (known)
            *known = list[--count];
    }
}

static void alone(uint64_t *random, unsigned changes, unsigned variety, uint64_t size)
{
    uint64_t key[MOST_WORDS];
    for (unsigned i = 0; i < changes; i++) {
        change(random, variety);
        for (unsigned j = 0; j < 4; j++) {
            random_key(random, key, variety);
            if (count && j < 2)
                for (unsigned word = 0; word < words; word++) {
                    const struct known *near = &list[next(random) % count];
                    key[word] = near->key[word] | (key[word] & ~near->mask[word]);
                }
            compare(key);
        }
    }
    while (count) {
        if (apply(p4_table_delete, &list[count - 1]) != P4_OK)
            fail("the last entries cannot be deleted");
        count--;
    }
    if (table.count || size != table.size)
        fail("the number of entries is wrong");
}

/* Checks that permanent entries are always found, and that other results are consistent. */
static void *reader(void *with)
{
    struct p4_worker *worker = p4_worker_new();
    uint64_t random = *(uint64_t *)with, key[MOST_WORDS];
    p4_inside(worker);
    __atomic_add_fetch(&reading, 1, __ATOMIC_RELAXED);
    while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
        for (unsigned i = 0; i < 32; i++) {
            struct p4_found found = {0};
            uint8_t data[MOST_DATA] = {0};
            const struct known *stays = &list[next(&random) % 16];
            bool must = i % 2 == 0;
            if (must)
                memcpy(key, stays->key, sizeof key);
            else
                random_key(&random, key, 8);
            if (must && sort->range_bits)
                put(key, 0, sort->range_bits, stays->ranges[0]);
            look(&found, key);
            if (must && !found.hit)
                fail("a remaining entry is not found");
            if (!found.hit)
                continue;
            if (found.action >= 3)
                fail("an action is found that no entry has");
            values_of(&found, data);
            for (size_t byte = 1; byte < p4_table_data_bytes(&table, found.action); byte++)
                if (data[byte] != data[0])
                    fail("a partially written entry is found");
            if (must && (found.action != stays->action || (p4_table_data_bytes(&table, stays->action) && data[0] != stays->data[0])))
                fail("a different entry is found instead of a remaining one");
        }
        p4_quiet(worker);
    }
    p4_worker_free(worker);
    return NULL;
}

static void together(uint64_t *random, unsigned changes)
{
    pthread_t threads[READERS];
    uint64_t seeds[READERS];
    list = p4_memory_again(list, (room = 65536) * sizeof *list);
    while (count < 16) {
        struct known entry = random_entry(random, 65536);
        /* All bits are compared, so that permanent entries do not hide each other. */
        entry.order.prefix = sort->prefix_bits;
        random_key(random, entry.key, 65536);
        for (unsigned i = sort->range_bits; i < bits; i++)
            put(entry.mask, shift + i, 1, 1);
        for (unsigned i = 0; i < MOST_WORDS; i++)
            entry.key[i] &= entry.mask[i];
        entry.order.priority = sort->kind == P4_TUPLES ? 100 + (int64_t)count : 0;
        entry.stays = true;
        if (sort->range_bits)
            entry.ranges[1] = entry.ranges[0];
        uint64_t key[MOST_WORDS];
        memcpy(key, entry.key, sizeof key);
        put(key, 0, sort->range_bits, entry.ranges[0]);
        if (best(key))
            continue;
        if (apply(p4_table_insert, &entry) != P4_OK)
            fail("a remaining entry cannot be inserted");
        entry.order.age = age++;
        list[count++] = entry;
    }
    stop = false;
    reading = 0;
    for (unsigned i = 0; i < READERS; i++) {
        seeds[i] = next(random);
        pthread_create(&threads[i], NULL, reader, &seeds[i]);
    }
    while (__atomic_load_n(&reading, __ATOMIC_RELAXED) < READERS)
        sched_yield();
    for (unsigned i = 0; i < changes; i++)
        change(random, 8);
    __atomic_store_n(&stop, true, __ATOMIC_RELAXED);
    for (unsigned i = 0; i < READERS; i++)
        pthread_join(threads[i], NULL);
}

/* Arguments: the random seed, the number of changes alone, and the number of changes during lookups. */
int main(int given, char **arguments)
{
    uint64_t seed = given > 1 ? strtoull(arguments[1], NULL, 10) : 1, random = seed * UINT64_C(0x9e3779b97f4a7c15) | 1;
    unsigned changes = given > 2 ? (unsigned)atoi(arguments[2]) : 2000, shared = given > 3 ? (unsigned)atoi(arguments[3]) : 2000;
    for (size_t i = 0; i < sizeof sorts / sizeof *sorts; i++) {
        static const unsigned varieties[] = {2, 8, 65536};
        for (unsigned variety = 0; variety < 3; variety++) {
            open_table(&sorts[i], variety == 0 ? 40 : 100000);
            alone(&random, changes, varieties[variety], table.size);
            p4_table_clear(&table);
        }
        if (shared && sorts[i].exact_bits + sorts[i].prefix_bits + sorts[i].ternary_bits + sorts[i].range_bits >= 9) {
            open_table(&sorts[i], 100000);
            together(&random, shared);
            p4_table_clear(&table);
        }
    }
    p4_epoch_end();
    free(list);
    printf("tables are correct\n");
    return 0;
}
