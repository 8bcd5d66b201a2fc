/* Memory, bits that grow, hash functions of v1model, and tables as the control plane changes them. */
#include "switch.h"

#include <stdio.h>
#include <stdlib.h>

/* The longest output of a packet, in bytes. */
#define LONGEST (64u << 20)

struct p4_sink p4_data;
int p4_prefetching = 1;
uint64_t p4_seed = UINT64_C(0x51ed270b7f4a7c15);
static uint64_t random_state = UINT64_C(0x9e3779b97f4a7c15);

void p4_restart_random(void)
{
    random_state = UINT64_C(0x9e3779b97f4a7c15);
}

uint64_t p4_random(void)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return random_state;
}

void *p4_memory_again(void *before, size_t bytes)
{
    void *memory = realloc(before, bytes ? bytes : 1);
    if (!memory) {
        fprintf(stderr, "there is no memory left\n");
        exit(3);
    }
    return memory;
}

void *p4_memory(size_t bytes)
{
    return memset(p4_memory_again(NULL, bytes), 0, bytes ? bytes : 1);
}

bool p4_grow(struct p4_sink *sink, uint64_t bits)
{
    uint64_t needed = (sink->length + bits) / 8 + 2 * P4_SLACK;
    uint8_t *bytes;
    size_t capacity;
    if (needed < sink->capacity)
        return true;
    if (needed > LONGEST)
        return false;
    capacity = needed * 2 + 256;
    bytes = realloc(sink->bytes, capacity);
    if (!bytes)
        return false;
    memset(bytes + sink->capacity, 0, capacity - sink->capacity);
    sink->bytes = bytes;
    sink->capacity = capacity;
    return true;
}

/* CRC-32 as in Ethernet. */
static uint32_t crc32(const uint8_t *bytes, size_t length)
{
    uint32_t state = UINT32_MAX;
    for (size_t i = 0; i < length; i++) {
        state ^= bytes[i];
        for (int bit = 0; bit < 8; bit++)
            state = state & 1 ? state >> 1 ^ 0xedb88320u : state >> 1;
    }
    return ~state;
}

/* CRC-16/ARC */
static uint16_t crc16(const uint8_t *bytes, size_t length)
{
    uint16_t state = 0;
    for (size_t i = 0; i < length; i++) {
        state ^= bytes[i];
        for (int bit = 0; bit < 8; bit++)
            state = state & 1 ? (uint16_t)(state >> 1 ^ 0xa001) : (uint16_t)(state >> 1);
    }
    return state;
}

static uint16_t word_at(const uint8_t *bytes, size_t length, size_t place)
{
    return (uint16_t)(bytes[place] << 8 | (place + 1 < length ? bytes[place + 1] : 0));
}

uint64_t p4_hash(const struct p4_sink *data, uint64_t algorithm)
{
    size_t length = (data->length + 7) / 8;
    /* Bits behind the end of the last byte are zero. */
    if (data->length & 7)
        data->bytes[length - 1] &= (uint8_t)(0xff00 >> (data->length & 7));
    switch (algorithm) {
    case 0:
    case 1:
        return crc32(data->bytes, length);
    case 2:
    case 3:
        return crc16(data->bytes, length);
    case 5:
        return data->length <= 64 ? p4_get(data->bytes, 0, (unsigned)data->length)
                                  : p4_get(data->bytes, data->length - 64, 64);
    case 6: {
        uint64_t sum = 0;
        for (size_t i = 0; i < length; i += 2)
            sum += word_at(data->bytes, length, i);
        while (sum > 0xffff)
            sum = (sum & 0xffff) + (sum >> 16);
        return (uint16_t)~sum;
    }
    case 7: {
        uint16_t all = 0;
        for (size_t i = 0; i < length; i += 2)
            all ^= word_at(data->bytes, length, i);
        return all;
    }
    default:
        return 0;
    }
}

size_t p4_table_data_bytes(const struct p4_table *table, uint8_t action)
{
    return action < table->action_count ? (table->argument_bits[action] + 7) / 8 : 0;
}

static uint8_t *buckets_new(const struct p4_table *table, uint64_t count)
{
    size_t bytes = count * table->bucket_bytes + 64;
    void *memory = NULL;
    if (posix_memalign(&memory, 64, bytes))
        return NULL;
    return memset(memory, 0, bytes);
}

/* Puts a key with its value into a slot; there is room. */
static void hash_place(const struct p4_table *table, struct p4_hash_table *hash, const uint64_t *key,
    const uint8_t *value, size_t bytes)
{
    uint64_t mixed = p4_key_hash(key, table->words);
    for (uint64_t at = mixed & hash->mask;; at = (at + 1) & hash->mask) {
        uint8_t *bucket = hash->buckets + at * table->bucket_bytes;
        for (uint32_t slot = 0; slot < table->slots; slot++) {
            uint8_t *place = bucket + 8 + slot * table->stride;
            if (bucket[slot])
                continue;
            memcpy(place, key, table->words * 8);
            memcpy(place + table->words * 8, value, bytes);
            bucket[slot] = p4_mark(mixed);
            hash->count++;
            return;
        }
        bucket[P4_MARKS] = 1;
    }
}

static bool hash_add(const struct p4_table *table, struct p4_hash_table *hash, const uint64_t *key, const uint8_t *value,
    size_t bytes)
{
    if (!hash->buckets || (hash->count + 1) * 2 > (hash->mask + 1) * table->slots) {
        struct p4_hash_table larger = {.mask = hash->buckets ? hash->mask * 2 + 1 : 1};
        larger.buckets = buckets_new(table, larger.mask + 1);
        if (!larger.buckets)
            return false;
        for (uint64_t at = 0; hash->buckets && at <= hash->mask; at++) {
            const uint8_t *bucket = hash->buckets + at * table->bucket_bytes;
            for (uint32_t slot = 0; slot < table->slots; slot++) {
                const uint8_t *place = bucket + 8 + slot * table->stride;
                if (bucket[slot])
                    hash_place(table, &larger, (const uint64_t *)place, place + table->words * 8,
                        table->stride - table->words * 8);
            }
        }
        free(hash->buckets);
        *hash = larger;
    }
    hash_place(table, hash, key, value, bytes);
    return true;
}

static bool hash_has(const struct p4_table *table, const struct p4_hash_table *hash, const uint64_t *key)
{
    uint64_t mixed = p4_key_hash(key, table->words);
    if (!hash->buckets)
        return false;
    for (uint64_t at = mixed & hash->mask;; at = (at + 1) & hash->mask) {
        const uint8_t *bucket = hash->buckets + at * table->bucket_bytes;
        for (uint32_t slot = 0; slot < table->slots; slot++)
            if (bucket[slot] && p4_same((const uint64_t *)(bucket + 8 + slot * table->stride), key, table->words))
                return true;
        if (!bucket[P4_MARKS])
            return false;
    }
}

static bool exact_add(struct p4_table *table, const struct p4_entry *entry)
{
    uint8_t value[1 + table->data_bytes + P4_SLACK];
    value[0] = entry->action;
    memcpy(value + 1, entry->data, table->data_bytes);
    return hash_add(table, &table->hash, entry->key, value, 1 + table->data_bytes);
}

static int by_order(const void *left, const void *right)
{
    return p4_better(&(*(struct p4_entry *const *)left)->order, &(*(struct p4_entry *const *)right)->order) ? -1 : 1;
}

/* Of entries with the same key the best one counts. */
static bool exact_again(struct p4_table *table)
{
    free(table->hash.buckets);
    table->hash = (struct p4_hash_table){0};
    qsort(table->entries, table->entry_count, sizeof *table->entries, by_order);
    for (uint64_t i = 0; i < table->entry_count; i++)
        if (!hash_has(table, &table->hash, table->entries[i]->key) && !exact_add(table, table->entries[i]))
            return false;
    return true;
}

static bool tuple_add(struct p4_table *table, struct p4_entry *entry)
{
    uint32_t place = 0;
    while (place < table->tuple_count && !p4_same(table->tuples[place].mask, entry->mask, table->words))
        place++;
    if (place == table->tuple_count) {
        table->tuples = p4_memory_again(table->tuples, (place + 1) * sizeof *table->tuples);
        table->tuples[place] = (struct p4_tuple){.mask = entry->mask, .best = entry->order};
        table->tuple_count++;
    }
    if (!hash_add(table, &table->tuples[place].table, entry->key, (const uint8_t *)&entry, sizeof entry))
        return false;
    if (p4_better(&entry->order, &table->tuples[place].best))
        table->tuples[place].best = entry->order;
    for (; place > 0 && p4_better(&table->tuples[place].best, &table->tuples[place - 1].best); place--) {
        struct p4_tuple moved = table->tuples[place];
        table->tuples[place] = table->tuples[place - 1];
        table->tuples[place - 1] = moved;
    }
    return true;
}

bool p4_table_add(struct p4_table *table, const struct p4_new_entry *given)
{
    size_t key = table->words * 8, ranges = table->range_count * 16;
    struct p4_entry *entry = p4_memory(sizeof *entry + 2 * key + ranges + table->data_bytes + P4_SLACK);
    uint64_t *words = (uint64_t *)(entry + 1);
    uint8_t *data = (uint8_t *)words + 2 * key + ranges;
    memcpy(words, given->key, key);
    memcpy(words + table->words, given->mask, key);
    memcpy(words + 2 * table->words, given->ranges, ranges);
    memcpy(data, given->data, p4_table_data_bytes(table, given->action));
    *entry = (struct p4_entry){
        .order = given->order, .action = given->action, .key = words, .mask = words + table->words,
        .ranges = words + 2 * table->words, .data = data,
    };
    entry->order.age = (uint32_t)table->entry_count;
    if (table->entry_count == table->entry_room) {
        table->entry_room = table->entry_room * 2 + 8;
        table->entries = p4_memory_again(table->entries, table->entry_room * sizeof *table->entries);
    }
    table->entries[table->entry_count++] = entry;
    if (!table->exact)
        return tuple_add(table, entry);
    return hash_has(table, &table->hash, entry->key) ? exact_again(table) : exact_add(table, entry);
}

void p4_table_default(struct p4_table *table, uint8_t action, const uint8_t *data)
{
    uint8_t *copy = p4_memory(table->data_bytes + P4_SLACK);
    memcpy(copy, data, p4_table_data_bytes(table, action));
    free((void *)table->default_data);
    table->default_data = copy;
    table->default_action = action;
}

void p4_table_clear(struct p4_table *table)
{
    for (uint64_t i = 0; i < table->entry_count; i++)
        free(table->entries[i]);
    for (uint32_t i = 0; i < table->tuple_count; i++)
        free(table->tuples[i].table.buckets);
    free(table->hash.buckets);
    free(table->tuples);
    free(table->entries);
    free((void *)table->default_data);
    table->hash = (struct p4_hash_table){0};
    table->tuples = NULL;
    table->entries = NULL;
    table->tuple_count = 0;
    table->entry_count = table->entry_room = 0;
    table->default_data = NULL;
    table->default_action = P4_NONE;
}
