/* The control plane's changes of tables while packets flow: see epoch.h. Functions may be called from any thread
   except from a worker inside a batch; they synchronize with each other. */
#ifndef P4_CONTROL_H
#define P4_CONTROL_H

#include "epoch.h"
#include "table.h"

/* An entry from the control plane. Keys and masks are words, the lowest one first; action data are bits in network
   byte order. The age in the order is ignored. */
struct p4_new_entry {
    struct p4_order order;
    uint8_t action;
    const uint64_t *key, *mask, *ranges;
    const uint8_t *data;
};

enum p4_outcome {
    P4_OK,
    /* An entry with this key exists already; no entry with this key exists. */
    P4_PRESENT,
    P4_ABSENT,
    /* The table has its maximum number of entries. */
    P4_FULL,
    P4_NO_MEMORY,
    /* Entries have too many different masks. */
    P4_MANY_MASKS,
};

/* Entries are identified by their keys; in tables of tuples by key, mask, ranges and priority. If the outcome is not
   P4_OK, the table is unchanged. */
enum p4_outcome p4_table_insert(struct p4_table *table, const struct p4_new_entry *entry);
enum p4_outcome p4_table_modify(struct p4_table *table, const struct p4_new_entry *entry);
enum p4_outcome p4_table_delete(struct p4_table *table, const struct p4_new_entry *entry);
/* Sets the action for keys that match no entry. */
void p4_table_default(struct p4_table *table, uint8_t action, const uint8_t *data);
/* Replaces the members of a value set by this many rows. */
void p4_value_set_put(struct p4_value_set *set, const uint64_t *rows, size_t count);
/* Removes all entries and the default action. No worker may be inside a batch. */
void p4_table_clear(struct p4_table *table);
/* Writes an error message with the name of the table. */
void p4_outcome_text(enum p4_outcome outcome, const struct p4_table *table, char *text, size_t bytes);
/* Size of the data of an action, in bytes. */
size_t p4_table_data_bytes(const struct p4_table *table, uint8_t action);
/* Approximate amount of memory that lookups touch, in bytes. */
size_t p4_table_footprint(const struct p4_table *table);

/* Enables or disables prefetching for these tables and all later ones; initially enabled. */
void p4_prefetch(struct p4_table *const *tables, size_t count, bool wanted);
/* Footprint in bytes from which on a table is large. */
extern size_t p4_ahead_bytes;

/* The rest is for the implementations of the kinds of tables. */

#define P4_MOST_TUPLES 1024

/* A rule of a prefix table, or an entry of a leaf. */
#define P4_RULE_BYTES(words) (sizeof(struct p4_wide) + (words) * 8)

struct p4_control {
    uint64_t age;
    /* All prefixes: the key is the table's key and the length, the value is a result. */
    struct p4_hash *rules;
    struct p4_shape rule_shape;
    /* Number of prefixes of each length. */
    uint64_t *lengths;
    /* Values that results refer to by number; equal values share a number. */
    uint8_t *values;
    size_t value_region;
    uint32_t values_used, values_limit;
    struct p4_hash *known;
    struct p4_shape known_shape;
    uint32_t *references, *free_values;
    size_t reference_room, free_count, free_room;
    /* Direct tables: the prefix length of each result, and groups. */
    struct p4_direct direct;
    uint8_t *first_length, (*group_length)[256];
    uint32_t *group_rules, *free_groups;
    size_t groups_used, groups_limit, free_group_count;
    /* Tries: memory, the number of rules when it was built, and the number of changes since then. */
    struct p4_arena arena;
    uint64_t built, changed;
};

/* Builds a value from action data. A value has at most P4_VALUE_STRIDE bytes, which must be zero. */
void p4_value_make(const struct p4_table *table, uint8_t action, const uint8_t *data, uint64_t *value);

/* Takes a reference to the result for a value. Returns 0 if there is no room. */
uint32_t p4_result_take(struct p4_table *table, uint8_t action, const uint8_t *data);
/* Gives back a reference. */
void p4_result_give(struct p4_table *table, uint32_t result);
void p4_results_end(struct p4_table *table);

/* The length and the result of the longest rule that is shorter than a prefix and covers it. Returns 0 if there is
   none. */
uint32_t p4_rule_around(const struct p4_table *table, const uint64_t *key, unsigned length, unsigned *found);
/* Copies the first bits of a key. */
void p4_prefix_of(const struct p4_table *table, const uint64_t *key, unsigned length, uint64_t *prefix);

/* Sets the result of a new prefix (new), replaces the result of a known one, or removes it if result is 0. The rules
   are not changed by this; a new prefix must already be among them. Returns false if there is no memory; the table
   is then unchanged. */
bool p4_direct_set(struct p4_table *table, uint64_t prefix, unsigned length, uint32_t result, bool new);
void p4_direct_end(struct p4_table *table);
bool p4_trie_set(struct p4_table *table, const uint64_t *prefix, unsigned length, uint32_t result, bool new);
/* Called after each change; rebuilds the trie if its shape no longer fits. */
void p4_trie_changed(struct p4_table *table);
void p4_trie_end(struct p4_table *table);

enum p4_outcome p4_tuples_insert(struct p4_table *table, const struct p4_new_entry *entry);
enum p4_outcome p4_tuples_modify(struct p4_table *table, const struct p4_new_entry *entry);
enum p4_outcome p4_tuples_delete(struct p4_table *table, const struct p4_new_entry *entry);
void p4_tuples_end(struct p4_table *table);

#endif
