/* Changes of direct tables (DIR-24-8). The prefix length of each result is stored, so that a prefix is written only
   where there is no longer prefix. */
#include "control.h"
#include "prefix.h"

#include <stdlib.h>

/* Maximum number of groups that wait until no worker can see them. */
#define WAITING 4096u

static unsigned first_bits(const struct p4_table *table)
{
    return table->key_bits < P4_FIRST_BITS ? table->key_bits : P4_FIRST_BITS;
}

static size_t group_limit(const struct p4_table *table)
{
    uint64_t limit = table->size < UINT32_C(1) << P4_FIRST_BITS ? table->size : UINT32_C(1) << P4_FIRST_BITS;
    return table->key_bits > P4_FIRST_BITS ? limit + WAITING : 1;
}

static bool start(struct p4_table *table)
{
    struct p4_control *control = table->control;
    size_t first = (size_t)1 << first_bits(table);
    if (table->direct)
        return true;
    control->groups_limit = group_limit(table);
    control->direct.first = p4_region_new(first * 4);
    control->direct.groups = p4_region_new(control->groups_limit * sizeof *control->direct.groups);
    control->first_length = p4_region_new(first);
    control->group_length = p4_region_new(control->groups_limit * sizeof *control->group_length);
    control->group_rules = p4_region_new(control->groups_limit * sizeof *control->group_rules);
    control->free_groups = p4_region_new(control->groups_limit * sizeof *control->free_groups);
    if (!control->direct.first || !control->direct.groups || !control->first_length || !control->group_length ||
        !control->group_rules || !control->free_groups) {
        p4_direct_end(table);
        return false;
    }
    __atomic_store_n(&table->direct, &control->direct, __ATOMIC_RELEASE);
    return true;
}

void p4_direct_end(struct p4_table *table)
{
    struct p4_control *control = table->control;
    size_t first = (size_t)1 << first_bits(table), groups = control->groups_limit;
    table->direct = NULL;
    p4_region_free(control->direct.first, first * 4);
    p4_region_free(control->direct.groups, groups * sizeof *control->direct.groups);
    p4_region_free(control->first_length, first);
    p4_region_free(control->group_length, groups * sizeof *control->group_length);
    p4_region_free(control->group_rules, groups * sizeof *control->group_rules);
    p4_region_free(control->free_groups, groups * sizeof *control->free_groups);
    control->direct = (struct p4_direct){0};
    control->first_length = NULL;
    control->group_length = NULL;
    control->group_rules = control->free_groups = NULL;
}

static void release(void *owner, uint64_t group)
{
    struct p4_control *control = owner;
    control->free_groups[control->free_group_count++] = (uint32_t)group;
}

/* Writes a result to the places that have one of the same prefix length or, for an insertion, of a shorter one. */
static inline void fill(uint32_t *results, uint8_t *lengths, size_t count, bool enters, unsigned of, uint32_t result, unsigned length)
{
    for (size_t i = 0; i < count; i++)
        if (enters ? lengths[i] <= of : lengths[i] == of) {
            __atomic_store_n(&results[i], result, __ATOMIC_RELEASE);
            lengths[i] = (uint8_t)length;
        }
}

/* The group behind a place of the first level; creates it if there is none. */
static bool group_of(struct p4_control *control, size_t place, uint32_t *group)
{
    uint32_t now = control->direct.first[place];
    if (now & P4_GROUP) {
        *group = now & ~P4_GROUP;
        return true;
    }
    if (!control->free_group_count && control->groups_used == control->groups_limit)
        p4_synchronize();
    if (control->free_group_count)
        *group = control->free_groups[--control->free_group_count];
    else if (control->groups_used < control->groups_limit)
        *group = (uint32_t)control->groups_used++;
    else
        return false;
    for (size_t i = 0; i < 256; i++)
        control->direct.groups[*group][i] = now;
    memset(control->group_length[*group], control->first_length[place], 256);
    control->group_rules[*group] = 0;
    __atomic_store_n(&control->direct.first[place], P4_GROUP | *group, __ATOMIC_RELEASE);
    return true;
}

/* Replaces a group by a result in the first level, once no prefix extends beyond it. */
static void without_group(struct p4_table *table, size_t place, uint32_t group, uint64_t prefix)
{
    struct p4_control *control = table->control;
    unsigned length = 0;
    uint32_t result = p4_rule_around(table, &prefix, P4_FIRST_BITS + 1, &length);
    control->first_length[place] = (uint8_t)length;
    __atomic_store_n(&control->direct.first[place], result, __ATOMIC_RELEASE);
    p4_retire(release, control, group);
}

bool p4_direct_set(struct p4_table *table, uint64_t prefix, unsigned length, uint32_t result, bool new)
{
    struct p4_control *control = table->control;
    unsigned bits = first_bits(table), around = 0;
    size_t place, count;
    if (!start(table))
        return false;
    bool enters = result != 0;
    uint32_t to = result ? result : p4_rule_around(table, &prefix, length, &around);
    unsigned to_length = result ? length : around;
    place = bits ? prefix >> (64 - bits) : 0;
    if (length > P4_FIRST_BITS) {
        uint32_t group;
        if (!group_of(control, place, &group))
            return false;
        size_t in = prefix >> 32 & 0xff;
        count = (size_t)1 << (32 - length);
        fill(&control->direct.groups[group][in], &control->group_length[group][in], count, enters, length, to, to_length);
        control->group_rules[group] += new ? 1 : 0;
        if (!result && --control->group_rules[group] == 0)
            without_group(table, place, group, prefix);
        return true;
    }
    count = (size_t)1 << (bits - length);
    for (size_t i = place; i < place + count; i++) {
        uint32_t now = control->direct.first[i];
        if (now & P4_GROUP)
            fill(control->direct.groups[now & ~P4_GROUP], control->group_length[now & ~P4_GROUP], 256, enters, length, to,
                to_length);
        else
            fill(&control->direct.first[i], &control->first_length[i], 1, enters, length, to, to_length);
    }
    return true;
}
