/* Tables as the control plane changes them, while packets flow: see epoch.h. Functions may be called from any thread that is
   no worker inside of a batch; they take turns. */
#ifndef P4_CONTROL_H
#define P4_CONTROL_H

#include "epoch.h"
#include "table.h"

/* An entry as the control plane gives it. Keys and masks are words, the lowest one first; values for the action are bits
   in network order. The age of the order is not used. */
struct p4_new_entry {
    struct p4_order order;
    uint8_t action;
    const uint64_t *key, *mask, *ranges;
    const uint8_t *data;
};

enum p4_outcome {
    P4_OK,
    /* There is an entry with this key already; there is none. */
    P4_PRESENT,
    P4_ABSENT,
    /* The table has as many entries as it may have. */
    P4_FULL,
    P4_NO_MEMORY,
    /* Entries have too many different masks. */
    P4_MANY_MASKS,
};

/* Entries are told apart by their keys: in tables of tuples by key, mask, ranges and priority. Nothing has changed when the
   outcome is not P4_OK. */
enum p4_outcome p4_table_insert(struct p4_table *table, const struct p4_new_entry *entry);
enum p4_outcome p4_table_modify(struct p4_table *table, const struct p4_new_entry *entry);
enum p4_outcome p4_table_delete(struct p4_table *table, const struct p4_new_entry *entry);
/* What keys without an entry get. */
void p4_table_default(struct p4_table *table, uint8_t action, const uint8_t *data);
/* Members of a value set, instead of those that it has: so many rows. */
void p4_value_set_put(struct p4_value_set *set, const uint64_t *rows, size_t count);
/* Without entries and default action, as at the start. No worker may be inside. */
void p4_table_clear(struct p4_table *table);
/* Says what went wrong, with the name of the table. */
void p4_outcome_text(enum p4_outcome outcome, const struct p4_table *table, char *text, size_t bytes);
/* Bytes of the values for an action. */
size_t p4_table_data_bytes(const struct p4_table *table, uint8_t action);
/* About how much memory lookups touch, in bytes. */
size_t p4_table_footprint(const struct p4_table *table);

/* Whether tables are to be fetched into the cache ahead, as they are at first: those that are there, and all later ones. */
void p4_prefetch(struct p4_table *const *tables, size_t count, bool wanted);
/* Tables with this footprint, in bytes, and more are large. */
extern size_t p4_ahead_bytes;

/* The rest is for the kinds of tables. */

#define P4_MOST_TUPLES 1024

/* A rule of a table of prefixes, or the entry of a leaf. */
#define P4_RULE_BYTES(words) (sizeof(struct p4_wide) + (words) * 8)

struct p4_control {
    uint64_t age;
    /* All prefixes: the key is that of the table and the length, the value a result. */
    struct p4_hash *rules;
    struct p4_shape rule_shape;
    /* How many there are of each length. */
    uint64_t *lengths;
    /* Values that results are numbers of: the same value has one number. */
    uint8_t *values;
    size_t value_region;
    uint32_t values_used, values_limit;
    struct p4_hash *known;
    struct p4_shape known_shape;
    uint32_t *references, *free_values;
    size_t reference_room, free_count, free_room;
    /* Of direct tables: the length of the prefix that each result is from, and groups. */
    struct p4_direct direct;
    uint8_t *first_length, (*group_length)[256];
    uint32_t *group_rules, *free_groups;
    size_t groups_used, groups_limit, free_group_count;
    /* Of tries: memory, and how many rules it had when it was built, and changes since then. */
    struct p4_arena arena;
    uint64_t built, changed;
};

/* A value for an action, of P4_VALUE_STRIDE bytes at most, which are zero. */
void p4_value_make(const struct p4_table *table, uint8_t action, const uint8_t *data, uint64_t *value);

/* The result for a value; it is used once more. 0 when there is no room. */
uint32_t p4_result_take(struct p4_table *table, uint8_t action, const uint8_t *data);
/* It is used once less. */
void p4_result_give(struct p4_table *table, uint32_t result);
void p4_results_end(struct p4_table *table);

/* The length and the result of the longest rule that is shorter than a prefix and covers it. 0 when there is none. */
uint32_t p4_rule_around(const struct p4_table *table, const uint64_t *key, unsigned length, unsigned *found);
/* Leaves the first bits of a key. */
void p4_prefix_of(const struct p4_table *table, const uint64_t *key, unsigned length, uint64_t *prefix);

/* Puts a result for a prefix into place, for a new one or instead of another result, or takes it out when the result is
   0. The rules are as they were, with a new prefix among them. False when there is no memory; nothing has changed then. */
bool p4_direct_set(struct p4_table *table, uint64_t prefix, unsigned length, uint32_t result, bool new);
void p4_direct_end(struct p4_table *table);
bool p4_trie_set(struct p4_table *table, const uint64_t *prefix, unsigned length, uint32_t result, bool new);
/* Is called after each change, to make the trie anew when its shape fits no more. */
void p4_trie_changed(struct p4_table *table);
void p4_trie_end(struct p4_table *table);

enum p4_outcome p4_tuples_insert(struct p4_table *table, const struct p4_new_entry *entry);
enum p4_outcome p4_tuples_modify(struct p4_table *table, const struct p4_new_entry *entry);
enum p4_outcome p4_tuples_delete(struct p4_table *table, const struct p4_new_entry *entry);
void p4_tuples_end(struct p4_table *table);

#endif
