/* Results of prefix tables: values inside the result, or in a table of values without duplicates. */
#include "control.h"
#include "prefix.h"

#include <stdlib.h>

/* Maximum number of values that wait until no worker can see them. */
#define WAITING 65536u

void p4_value_make(const struct p4_table *table, uint8_t action, const uint8_t *data, uint64_t *value)
{
    size_t bytes = p4_table_data_bytes(table, action);
    if (table->data_bits > P4_SMALL) {
        value[0] = action;
        memcpy(value + 1, data, bytes);
        return;
    }
    value[0] = 0;
    for (size_t i = 0; i < bytes; i++)
        value[0] |= (uint64_t)data[i] << (56 - 8 * i);
    value[0] |= action;
}

static size_t stride(const struct p4_table *table)
{
    return P4_VALUE_STRIDE(table->data_bits);
}

static bool start(struct p4_table *table)
{
    struct p4_control *control = table->control;
    uint64_t limit = table->size + WAITING + 1;
    if (control->values)
        return true;
    control->values_limit = limit < P4_INLINE ? (uint32_t)limit : P4_INLINE - 1;
    control->value_region = control->values_limit * stride(table);
    control->values = p4_region_new(control->value_region);
    control->values_used = 1;
    control->known_shape = p4_shape_of((uint32_t)(stride(table) / 8), 8);
    /* Workers reach values through results, which are published later. */
    table->values = control->values;
    return control->values != NULL;
}

static uint64_t *value_at(const struct p4_table *table, uint32_t number)
{
    return (uint64_t *)(table->control->values + number * stride(table));
}

static uint32_t number_new(struct p4_control *control)
{
    uint32_t number;
    if (control->free_count)
        return control->free_values[--control->free_count];
    if (control->values_used >= control->values_limit)
        return 0;
    number = control->values_used++;
    if (number >= control->reference_room) {
        control->reference_room = control->reference_room * 2 + 64;
        control->references =
            p4_memory_again(control->references, control->reference_room * sizeof *control->references);
    }
    control->references[number] = 0;
    return number;
}

uint32_t p4_result_take(struct p4_table *table, uint8_t action, const uint8_t *data)
{
    struct p4_control *control = table->control;
    uint64_t value[stride(table) / 8], number;
    const uint64_t *known;
    memset(value, 0, sizeof value);
    p4_value_make(table, action, data, value);
    if (table->data_bits <= P4_INLINE_BITS)
        return P4_INLINE | (uint32_t)action << P4_INLINE_BITS | (uint32_t)(value[0] >> (64 - P4_INLINE_BITS));
    if (!start(table))
        return 0;
    known = p4_hash_find(control->known, &control->known_shape, value);
    if (known) {
        control->references[*known]++;
        return (uint32_t)*known;
    }
    p4_reclaim();
    number = number_new(control);
    if (!number)
        return 0;
    memcpy(value_at(table, (uint32_t)number), value, sizeof value);
    if (!p4_hash_insert(&control->known, &control->known_shape, value, &number))
        return 0;
    control->references[number] = 1;
    return (uint32_t)number;
}

static void release(void *owner, uint64_t number)
{
    struct p4_control *control = owner;
    if (control->free_count == control->free_room) {
        control->free_room = control->free_room * 2 + 64;
        control->free_values = p4_memory_again(control->free_values, control->free_room * sizeof *control->free_values);
    }
    control->free_values[control->free_count++] = (uint32_t)number;
}

void p4_result_give(struct p4_table *table, uint32_t result)
{
    struct p4_control *control = table->control;
    if (result == 0 || result & P4_INLINE || --control->references[result])
        return;
    p4_hash_delete(control->known, &control->known_shape, value_at(table, result));
    p4_retire(release, control, result);
}

void p4_results_end(struct p4_table *table)
{
    struct p4_control *control = table->control;
    p4_hash_free(control->known);
    p4_region_free(control->values, control->value_region);
    free(control->references);
    free(control->free_values);
    table->values = NULL;
}
