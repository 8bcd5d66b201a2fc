/* Changes of tables of all kinds. */
#include "control.h"
#include "prefix.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

/* About half of the second-level cache of current CPUs. */
size_t p4_ahead_bytes = 256 << 10;

static pthread_mutex_t turns = PTHREAD_MUTEX_INITIALIZER;
static bool prefetching = true;

static void measure(struct p4_table *table)
{
    uint64_t footprint = p4_table_footprint(table);
    bool large = footprint >= p4_ahead_bytes;
    __atomic_store_n(&table->footprint, footprint, __ATOMIC_RELAXED);
    __atomic_store_n(&table->large, large, __ATOMIC_RELAXED);
    __atomic_store_n(&table->ahead, prefetching && large, __ATOMIC_RELAXED);
}

void p4_prefetch(struct p4_table *const *tables, size_t count, bool wanted)
{
    pthread_mutex_lock(&turns);
    prefetching = wanted;
    for (size_t i = 0; i < count; i++)
        measure(tables[i]);
    pthread_mutex_unlock(&turns);
}

size_t p4_table_data_bytes(const struct p4_table *table, uint8_t action)
{
    return action < table->action_count ? (table->argument_bits[action] + 7) / 8 : 0;
}

static unsigned words_of(const struct p4_table *table)
{
    return (table->key_bits + 63) / 64 ? (table->key_bits + 63) / 64 : 1;
}

void p4_prefix_of(const struct p4_table *table, const uint64_t *key, unsigned length, uint64_t *prefix)
{
    unsigned words = words_of(table);
    for (unsigned i = 0; i < words; i++) {
        unsigned left = length > i * 64 ? length - i * 64 : 0;
        prefix[words - 1 - i] = left == 0 ? 0 : key[words - 1 - i] & (left >= 64 ? UINT64_MAX : ~(UINT64_MAX >> left));
    }
}

uint32_t p4_rule_around(const struct p4_table *table, const uint64_t *key, unsigned length, unsigned *found)
{
    const struct p4_control *control = table->control;
    unsigned words = words_of(table);
    uint64_t rule[words + 1];
    while (length-- > 0) {
        const uint64_t *result;
        if (!control->lengths[length])
            continue;
        p4_prefix_of(table, key, length, rule);
        rule[words] = length;
        result = p4_hash_find(control->rules, &control->rule_shape, rule);
        if (result) {
            *found = length;
            return (uint32_t)*result;
        }
    }
    *found = 0;
    return 0;
}

static void start(struct p4_table *table)
{
    struct p4_control *control;
    if (table->control)
        return;
    control = p4_memory(sizeof *control);
    control->lengths = p4_memory((table->key_bits + 1) * sizeof *control->lengths);
    control->rule_shape = p4_shape_of(words_of(table) + 1, 8);
    table->control = control;
}

static bool set_prefix(struct p4_table *table, const uint64_t *prefix, unsigned length, uint32_t result, bool new)
{
    if (table->kind == P4_DIRECT)
        return p4_direct_set(table, prefix[0], length, result, new);
    return p4_trie_set(table, prefix, length, result, new);
}

enum change { INSERT, MODIFY, DELETE };

static enum p4_outcome change_prefix(struct p4_table *table, const struct p4_new_entry *entry, enum change change)
{
    struct p4_control *control = table->control;
    unsigned words = words_of(table), length = table->exact_bits + entry->order.prefix;
    uint64_t rule[words + 1], *known, value;
    uint32_t result = 0, old = 0;
    p4_prefix_of(table, entry->key, length, rule);
    rule[words] = length;
    known = p4_hash_find(control->rules, &control->rule_shape, rule);
    if ((change == INSERT) != (known == NULL))
        return known ? P4_PRESENT : P4_ABSENT;
    old = known ? (uint32_t)*known : 0;
    if (change != DELETE) {
        result = p4_result_take(table, entry->action, entry->data);
        if (!result)
            return P4_NO_MEMORY;
    }
    value = result;
    if (change == INSERT && !p4_hash_insert(&control->rules, &control->rule_shape, rule, &value)) {
        p4_result_give(table, result);
        return P4_NO_MEMORY;
    }
    control->lengths[length] += change == INSERT;
    if (!set_prefix(table, rule, length, result, change == INSERT)) {
        control->lengths[length] -= change == INSERT;
        if (change == INSERT)
            p4_hash_delete(control->rules, &control->rule_shape, rule);
        p4_result_give(table, result);
        return P4_NO_MEMORY;
    }
    if (change == MODIFY)
        *known = result;
    if (change == DELETE) {
        p4_hash_delete(control->rules, &control->rule_shape, rule);
        control->lengths[length]--;
    }
    p4_result_give(table, old);
    if (table->kind == P4_TRIE)
        p4_trie_changed(table);
    return P4_OK;
}

static enum p4_outcome change_exact(struct p4_table *table, const struct p4_new_entry *entry, enum change change)
{
    uint64_t value[P4_VALUE_STRIDE(table->data_bits) / 8];
    const void *given = value;
    uint16_t of_two;
    uint32_t of_four;
    void *known = p4_hash_find(table->hash, &table->shape, entry->key);
    if ((change == INSERT) != (known == NULL))
        return known ? P4_PRESENT : P4_ABSENT;
    if (change == DELETE) {
        p4_hash_delete(table->hash, &table->shape, entry->key);
        return P4_OK;
    }
    memset(value, 0, sizeof value);
    p4_value_make(table, entry->action, entry->data, value);
    if (table->shape.value_bytes == 2) {
        of_two = (uint16_t)(value[0] >> 48 | entry->action);
        given = &of_two;
    } else if (table->shape.value_bytes == 4) {
        of_four = (uint32_t)(value[0] >> 32 | entry->action);
        given = &of_four;
    }
    if (change == INSERT)
        return p4_hash_insert(&table->hash, &table->shape, entry->key, given) ? P4_OK : P4_NO_MEMORY;
    switch (table->shape.value_bytes) {
    case 2:
        __atomic_store_n((uint16_t *)known, of_two, __ATOMIC_RELEASE);
        return P4_OK;
    case 4:
        __atomic_store_n((uint32_t *)known, of_four, __ATOMIC_RELEASE);
        return P4_OK;
    case 8:
        __atomic_store_n((uint64_t *)known, value[0], __ATOMIC_RELEASE);
        return P4_OK;
    default:
        return p4_hash_replace(&table->hash, &table->shape, entry->key, value) ? P4_OK : P4_NO_MEMORY;
    }
}

static enum p4_outcome change_tuples(struct p4_table *table, const struct p4_new_entry *entry, enum change change)
{
    return change == INSERT ? p4_tuples_insert(table, entry)
        : change == MODIFY ? p4_tuples_modify(table, entry) : p4_tuples_delete(table, entry);
}

static enum p4_outcome change(struct p4_table *table, const struct p4_new_entry *entry, enum change change)
{
    enum p4_outcome outcome = P4_FULL;
    pthread_mutex_lock(&turns);
    start(table);
    if (change != INSERT || table->count < table->size) {
        outcome = table->kind == P4_EXACT ? change_exact(table, entry, change)
            : table->kind == P4_TUPLES ? change_tuples(table, entry, change) : change_prefix(table, entry, change);
        if (outcome == P4_OK && change == INSERT)
            table->count++;
        if (outcome == P4_OK && change == DELETE)
            table->count--;
        measure(table);
        p4_reclaim();
    }
    pthread_mutex_unlock(&turns);
    return outcome;
}

enum p4_outcome p4_table_insert(struct p4_table *table, const struct p4_new_entry *entry)
{
    return change(table, entry, INSERT);
}

enum p4_outcome p4_table_modify(struct p4_table *table, const struct p4_new_entry *entry)
{
    return change(table, entry, MODIFY);
}

enum p4_outcome p4_table_delete(struct p4_table *table, const struct p4_new_entry *entry)
{
    return change(table, entry, DELETE);
}

static void release_memory(void *owner, uint64_t what)
{
    (void)what;
    free(owner);
}

void p4_table_default(struct p4_table *table, uint8_t action, const uint8_t *data)
{
    uint64_t *value, *old;
    pthread_mutex_lock(&turns);
    value = p4_memory(P4_VALUE_STRIDE(table->data_bits));
    p4_value_make(table, action, data, value);
    old = (uint64_t *)table->otherwise;
    __atomic_store_n(&table->otherwise, value, __ATOMIC_RELEASE);
    if (old)
        p4_retire(release_memory, old, 0);
    pthread_mutex_unlock(&turns);
}

void p4_value_set_put(struct p4_value_set *set, const uint64_t *rows, size_t count)
{
    struct p4_members *new = NULL, *old;
    size_t bytes = count * set->words * 4 * sizeof *rows;
    pthread_mutex_lock(&turns);
    if (count) {
        new = p4_memory(sizeof *new + bytes);
        new->count = count;
        memcpy(new->rows, rows, bytes);
    }
    old = (struct p4_members *)set->members;
    __atomic_store_n(&set->members, new, __ATOMIC_RELEASE);
    if (old)
        p4_retire(release_memory, old, 0);
    p4_reclaim();
    pthread_mutex_unlock(&turns);
}

void p4_table_clear(struct p4_table *table)
{
    struct p4_control *control = table->control;
    pthread_mutex_lock(&turns);
    p4_synchronize();
    p4_hash_free(table->hash);
    table->hash = NULL;
    p4_tuples_end(table);
    if (control) {
        p4_direct_end(table);
        p4_trie_end(table);
        p4_results_end(table);
        p4_hash_free(control->rules);
        free(control->lengths);
        free(control);
    }
    free((void *)table->otherwise);
    table->otherwise = NULL;
    table->control = NULL;
    table->count = 0;
    measure(table);
    pthread_mutex_unlock(&turns);
}

size_t p4_table_footprint(const struct p4_table *table)
{
    switch (table->kind) {
    case P4_EXACT:
        return table->hash ? table->hash->bytes : 0;
    case P4_DIRECT:
        /* Each prefix touches at least one cache line of the first level, up to the size of the first level. */
        return table->key_bits < 16 && table->count * 64 > (size_t)4 << table->key_bits ? (size_t)4 << table->key_bits : table->count * 64;
    case P4_TRIE:
        return table->control ? table->control->arena.used * 64 : 0;
    default:
        return table->count * (table->shape.bucket_bytes + sizeof(struct p4_entry));
    }
}

void p4_outcome_text(enum p4_outcome outcome, const struct p4_table *table, char *text, size_t bytes)
{
    unsigned long long size = (unsigned long long)table->size;
    switch (outcome) {
    case P4_OK:
        snprintf(text, bytes, "table %s: done", table->name);
        return;
    case P4_PRESENT:
        snprintf(text, bytes, "table %s already has an entry with this key; delete or modify it", table->name);
        return;
    case P4_ABSENT:
        snprintf(text, bytes, "table %s has no entry with this key", table->name);
        return;
    case P4_FULL:
        snprintf(text, bytes, "table %s is full: it has %llu entries; increase its 'size' in the program", table->name, size);
        return;
    case P4_NO_MEMORY:
        snprintf(text, bytes, "table %s: out of memory for the entry, with at most %llu entries", table->name, size);
        return;
    case P4_MANY_MASKS:
        snprintf(text, bytes, "table %s: its entries have more than %d different sets of masks", table->name, P4_MOST_TUPLES);
        return;
    }
}
