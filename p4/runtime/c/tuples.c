/* Changes of tables of tuples: a hash table of masked keys for each set of masks. */
#include "control.h"

#include <stdlib.h>

/* Maximum number of parts of an entry up to which ranges are expanded to prefixes; otherwise, ranges are compared. */
#define MOST_PARTS 1024u
/* Entries of several parts may create at most this many sets of masks in a table; beyond that, an entry has one
   part, and all its ranges are compared. The remaining sets are for entries that cannot do without their own set. */
#define MOST_TUPLES_OF_RANGES (P4_MOST_TUPLES / 2)
/* A range of 64 bits has no more prefixes than this. */
#define MOST_PREFIXES 128u

struct prefixes {
    uint32_t count;
    struct { uint64_t value, mask; } list[MOST_PREFIXES];
};

/* Splits a range into prefixes, each as large as possible. */
static void prefixes_of(uint64_t first, uint64_t last, unsigned width, struct prefixes *to)
{
    uint64_t all = p4_mask(width);
    to->count = 0;
    while (first <= last) {
        unsigned bits = first ? (unsigned)__builtin_ctzll(first) : width;
        while ((first | p4_mask(bits)) > last)
            bits--;
        uint64_t rest = p4_mask(bits);
        to->list[to->count].value = first;
        to->list[to->count++].mask = all & ~rest;
        if ((first | rest) == all)
            return;
        first = (first | rest) + 1;
    }
}

/* Writes bits into a key. */
static void put_bits(uint64_t *key, uint32_t bit, uint32_t width, uint64_t value)
{
    key[bit / 64] |= value << (bit % 64);
    if (bit % 64 && bit % 64 + width > 64)
        key[bit / 64 + 1] |= value >> (64 - bit % 64);
}

/* Operation on a part of an entry: its key and mask. */
typedef enum p4_outcome part(struct p4_table *table, const struct p4_new_entry *given, const uint64_t *key, const uint64_t *mask);

struct parts {
    struct p4_table *table;
    const struct p4_new_entry *given;
    /* One list per range; empty if the range is compared. */
    struct prefixes *ranges;
    part *each;
    uint64_t limit, done;
};

static enum p4_outcome each_part(struct parts *parts, uint32_t range, const uint64_t *key, const uint64_t *mask)
{
    struct p4_table *table = parts->table;
    unsigned words = table->shape.words;
    if (range == table->range_count) {
        enum p4_outcome outcome;
        if (parts->done >= parts->limit)
            return P4_OK;
        outcome = parts->each(table, parts->given, key, mask);
        parts->done += outcome == P4_OK;
        return outcome;
    }
    const struct prefixes *list = &parts->ranges[range];
    if (list->count == 0)
        return each_part(parts, range + 1, key, mask);
    for (uint32_t i = 0; i < list->count; i++) {
        uint64_t part_key[words], part_mask[words];
        enum p4_outcome outcome;
        memcpy(part_key, key, words * 8);
        memcpy(part_mask, mask, words * 8);
        put_bits(part_key, table->ranges[range].bit, table->ranges[range].width, list->list[i].value);
        put_bits(part_mask, table->ranges[range].bit, table->ranges[range].width, list->list[i].mask);
        outcome = each_part(parts, range + 1, part_key, part_mask);
        if (outcome != P4_OK)
            return outcome;
    }
    return P4_OK;
}

/* Splits an entry into at most `most` parts, applies an operation to the first `limit` of them, and sets done to
   their number. */
static enum p4_outcome all_parts(struct p4_table *table, const struct p4_new_entry *given, uint64_t most, part *each, uint64_t limit,
    uint64_t *done)
{
    struct parts parts = {.table = table, .given = given, .each = each, .limit = limit};
    uint64_t count = 1;
    enum p4_outcome outcome;
    parts.ranges = p4_memory(table->range_count * sizeof *parts.ranges);
    for (uint32_t i = 0; i < table->range_count; i++) {
        struct prefixes *list = &parts.ranges[i];
        /* An empty range matches nothing; it is compared. */
        if (given->ranges[2 * i] <= given->ranges[2 * i + 1])
            prefixes_of(given->ranges[2 * i], given->ranges[2 * i + 1], table->ranges[i].width, list);
        if (count * list->count > most)
            list->count = 0;
        count *= list->count ? list->count : 1;
    }
    outcome = each_part(&parts, 0, given->key, given->mask);
    free(parts.ranges);
    *done = parts.done;
    return outcome;
}

static void release_memory(void *owner, uint64_t what)
{
    (void)what;
    free(owner);
}

static void release_tuple(void *owner, uint64_t what)
{
    struct p4_tuple *tuple = owner;
    (void)what;
    p4_hash_free(tuple->hash);
    free(tuple);
}

/* Replaces the list of tuples. */
static void publish(struct p4_table *table, struct p4_tuples *new)
{
    struct p4_tuples *old = table->tuples;
    if (new && new->count == 0) {
        free(new);
        new = NULL;
    }
    __atomic_store_n(&table->tuples, new, __ATOMIC_RELEASE);
    if (old)
        p4_retire(release_memory, old, 0);
}

static struct p4_tuples *tuples_copy(const struct p4_table *table, uint32_t count)
{
    struct p4_tuples *new = p4_memory(sizeof *new + (count + 1) * sizeof new->list[0]);
    if (table->tuples)
        memcpy(new->list, table->tuples->list, table->tuples->count * sizeof new->list[0]);
    new->count = count;
    return new;
}

/* The index of the tuple with a mask; the number of tuples if there is none. */
static uint32_t tuple_of(const struct p4_table *table, const uint64_t *mask)
{
    uint32_t count = table->tuples ? table->tuples->count : 0;
    for (uint32_t i = 0; i < count; i++)
        if (p4_same(table->tuples->list[i].tuple->mask, mask, table->shape.words))
            return i;
    return count;
}

static bool same_ranges(const struct p4_table *table, const struct p4_entry *entry, const struct p4_new_entry *given)
{
    return table->range_count == 0 || memcmp(entry->ranges, given->ranges, table->range_count * 16) == 0;
}

/* The pointer to an entry in its list; NULL if it is not there. */
static struct p4_entry **find(const struct p4_table *table, const struct p4_tuple *tuple, const struct p4_new_entry *given,
    const uint64_t *key)
{
    struct p4_entry **at = (struct p4_entry **)p4_hash_find(tuple->hash, &table->shape, key);
    for (; at && *at; at = &(*at)->next)
        if ((*at)->order.priority == given->order.priority && same_ranges(table, *at, given))
            return at;
    return NULL;
}

static size_t value_bytes(const struct p4_table *table)
{
    return P4_VALUE_STRIDE(table->data_bits);
}

static struct p4_entry *entry_new(const struct p4_table *table, const struct p4_new_entry *given)
{
    struct p4_entry *entry = p4_memory(sizeof *entry + value_bytes(table) + table->range_count * 16);
    uint64_t *ranges = (uint64_t *)((uint8_t *)entry->value + value_bytes(table));
    if (table->range_count)
        memcpy(ranges, given->ranges, table->range_count * 16);
    entry->order = given->order;
    entry->order.age = table->control->age;
    entry->ranges = ranges;
    p4_value_make(table, given->action, given->data, entry->value);
    return entry;
}

/* Restores the order of tuples after one has improved or is new. */
static void move_up(struct p4_tuples *list, uint32_t place)
{
    for (; place > 0 && p4_better(&list->list[place].best, &list->list[place - 1].best); place--) {
        struct p4_listed moved = list->list[place];
        list->list[place] = list->list[place - 1];
        list->list[place - 1] = moved;
    }
}

static enum p4_outcome insert(struct p4_table *table, const struct p4_new_entry *given, const uint64_t *key, const uint64_t *mask,
    uint32_t most_tuples)
{
    unsigned words = table->shape.words;
    uint32_t place = tuple_of(table, mask), count = table->tuples ? table->tuples->count : 0;
    struct p4_entry *entry = entry_new(table, given), **at = NULL;
    uint64_t word = (uint64_t)(uintptr_t)entry;
    struct p4_tuple *tuple;
    if (place == count && count >= most_tuples) {
        free(entry);
        return P4_MANY_MASKS;
    }
    if (place < count) {
        tuple = table->tuples->list[place].tuple;
    } else {
        tuple = p4_memory(sizeof *tuple + words * 8);
        memcpy(tuple->mask, mask, words * 8);
    }
    if (tuple->hash)
        at = (struct p4_entry **)p4_hash_find(tuple->hash, &table->shape, key);
    if (at) {
        while (*at && !p4_better(&entry->order, &(*at)->order))
            at = &(*at)->next;
        entry->next = *at;
        __atomic_store_n(at, entry, __ATOMIC_RELEASE);
    } else if (!p4_hash_insert(&tuple->hash, &table->shape, key, &word)) {
        if (place == count)
            free(tuple);
        free(entry);
        return P4_NO_MEMORY;
    }
    if (place == count) {
        struct p4_tuples *new = tuples_copy(table, count + 1);
        new->list[count] = (struct p4_listed){tuple, entry->order};
        move_up(new, count);
        publish(table, new);
    } else if (p4_better(&entry->order, &table->tuples->list[place].best)) {
        struct p4_tuples *new = tuples_copy(table, count);
        new->list[place].best = entry->order;
        move_up(new, place);
        publish(table, new);
    }
    return P4_OK;
}

static enum p4_outcome insert_part(struct p4_table *table, const struct p4_new_entry *given, const uint64_t *key, const uint64_t *mask)
{
    return insert(table, given, key, mask, MOST_TUPLES_OF_RANGES);
}

static enum p4_outcome insert_whole(struct p4_table *table, const struct p4_new_entry *given, const uint64_t *key, const uint64_t *mask)
{
    return insert(table, given, key, mask, P4_MOST_TUPLES);
}

static enum p4_outcome take_out(struct p4_table *table, const struct p4_new_entry *given, const uint64_t *key, const uint64_t *mask)
{
    uint32_t place = tuple_of(table, mask);
    struct p4_tuple *tuple = table->tuples->list[place].tuple;
    struct p4_entry **first = (struct p4_entry **)p4_hash_find(tuple->hash, &table->shape, key);
    struct p4_entry **at = find(table, tuple, given, key), *entry = *at;
    if (at == first && !entry->next)
        p4_hash_delete(tuple->hash, &table->shape, key);
    else
        __atomic_store_n(at, entry->next, __ATOMIC_RELEASE);
    p4_retire(release_memory, entry, 0);
    if (tuple->hash->count == 0) {
        struct p4_tuples *new = tuples_copy(table, table->tuples->count);
        memmove(&new->list[place], &new->list[place + 1], (new->count - place - 1) * sizeof new->list[0]);
        new->count--;
        publish(table, new);
        p4_retire(release_tuple, tuple, 0);
    }
    return P4_OK;
}

static enum p4_outcome replace(struct p4_table *table, const struct p4_new_entry *given, const uint64_t *key, const uint64_t *mask)
{
    struct p4_tuple *tuple = table->tuples->list[tuple_of(table, mask)].tuple;
    struct p4_entry **at = find(table, tuple, given, key), *old = *at, *new = entry_new(table, given);
    new->order = old->order;
    new->next = old->next;
    __atomic_store_n(at, new, __ATOMIC_RELEASE);
    p4_retire(release_memory, old, 0);
    return P4_OK;
}

static enum p4_outcome is_there(struct p4_table *table, const struct p4_new_entry *given, const uint64_t *key, const uint64_t *mask)
{
    uint32_t place = tuple_of(table, mask);
    bool found = table->tuples && place < table->tuples->count && find(table, table->tuples->list[place].tuple, given, key);
    return found ? P4_OK : P4_ABSENT;
}

/* The number of parts that an entry of the table may have: all, or one; 0 if the entry does not exist. */
static uint64_t parts_of(struct p4_table *table, const struct p4_new_entry *entry)
{
    uint64_t done;
    if (all_parts(table, entry, MOST_PARTS, is_there, 1, &done) == P4_OK)
        return MOST_PARTS;
    return all_parts(table, entry, 1, is_there, 1, &done) == P4_OK ? 1 : 0;
}

static enum p4_outcome insert_all(struct p4_table *table, const struct p4_new_entry *entry, uint64_t most, part *each)
{
    uint64_t done, again;
    enum p4_outcome outcome = all_parts(table, entry, most, each, UINT64_MAX, &done);
    if (outcome != P4_OK)
        all_parts(table, entry, most, take_out, done, &again);
    return outcome;
}

enum p4_outcome p4_tuples_insert(struct p4_table *table, const struct p4_new_entry *entry)
{
    enum p4_outcome outcome;
    if (parts_of(table, entry))
        return P4_PRESENT;
    table->control->age++;
    outcome = insert_all(table, entry, MOST_PARTS, insert_part);
    return outcome == P4_MANY_MASKS ? insert_all(table, entry, 1, insert_whole) : outcome;
}

enum p4_outcome p4_tuples_modify(struct p4_table *table, const struct p4_new_entry *entry)
{
    uint64_t done, most = parts_of(table, entry);
    return most ? all_parts(table, entry, most, replace, UINT64_MAX, &done) : P4_ABSENT;
}

enum p4_outcome p4_tuples_delete(struct p4_table *table, const struct p4_new_entry *entry)
{
    uint64_t done, most = parts_of(table, entry);
    return most ? all_parts(table, entry, most, take_out, UINT64_MAX, &done) : P4_ABSENT;
}

static void free_list(void *with, const uint64_t *key, const void *value)
{
    struct p4_entry *entry = (struct p4_entry *)(uintptr_t)*(const uint64_t *)value;
    (void)with;
    (void)key;
    while (entry) {
        struct p4_entry *next = entry->next;
        free(entry);
        entry = next;
    }
}

void p4_tuples_end(struct p4_table *table)
{
    for (uint32_t i = 0; table->tuples && i < table->tuples->count; i++) {
        struct p4_tuple *tuple = table->tuples->list[i].tuple;
        p4_hash_all(tuple->hash, &table->shape, free_list, NULL);
        p4_hash_free(tuple->hash);
        free(tuple);
    }
    free(table->tuples);
    table->tuples = NULL;
}
