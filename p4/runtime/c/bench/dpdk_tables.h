/* The same lookups in DPDK's tables, one key after the other, as compilers without their own tables do them: a
   lookup returns a number, the index of the action data in an array. Replaces prefix.h. */
#ifndef P4_DPDK_TABLES_H
#define P4_DPDK_TABLES_H

#include "table.h"

#include <rte_hash.h>
#include <rte_lpm.h>
#include <rte_lpm6.h>

static inline void p4_numbered(const struct p4_table *table, struct p4_found *found, int64_t number)
{
    if (number < 0)
        p4_missed(table, found);
    else
        p4_hit(found, (const uint64_t *)(table->values + (size_t)number * 8));
}

static inline bool p4_dpdk_exact_step(const struct p4_table *table, struct p4_found *found, const uint64_t *key)
{
    p4_numbered(table, found, rte_hash_lookup(table->other, key));
    return true;
}

static inline void p4_direct_start(const struct p4_table *table, struct p4_cursor *cursor, const uint64_t *key, unsigned bits, bool together)
{
    (void)table, (void)cursor, (void)key, (void)bits, (void)together;
}

static inline bool p4_direct_step(const struct p4_table *table, struct p4_cursor *cursor, struct p4_found *found,
    const uint64_t *key, unsigned bits, unsigned data_bits, bool together)
{
    uint32_t number;
    (void)data_bits, (void)together;
    if (bits < 32)
        return p4_dpdk_exact_step(table, found, key);
    p4_numbered(table, found, rte_lpm_lookup(table->other, (uint32_t)(key[0] >> 32), &number) == 0 ? (int64_t)number : -1);
    return true;
}

static inline void p4_trie_start(const struct p4_table *table, struct p4_cursor *cursor, const uint64_t *key, unsigned words, bool together)
{
    (void)table, (void)cursor, (void)key, (void)words, (void)together;
}

static inline bool p4_trie_step(const struct p4_table *table, struct p4_cursor *cursor, struct p4_found *found,
    const uint64_t *key, unsigned words, unsigned data_bits, bool together)
{
    uint64_t address[2] = {__builtin_bswap64(key[words - 1]), __builtin_bswap64(key[0])};
    uint32_t number;
    (void)data_bits, (void)together;
    p4_numbered(table, found, rte_lpm6_lookup(table->other, (const uint8_t *)address, &number) == 0 ? (int64_t)number : -1);
    return true;
}

#define p4_exact_start(...) ((void)0)
#define p4_exact_step(table, cursor, found, key, ...) p4_dpdk_exact_step(table, found, key)

#endif
