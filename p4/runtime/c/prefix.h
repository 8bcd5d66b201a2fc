/* Longest-prefix lookups. Keys begin at the highest bit of their last word.

   A result is a word of 32 bits. 0 is no result. With P4_INLINE, bits 22 to 29 are the action and the bits below are
   its data, the highest first. Otherwise it is the number of a value in the table of values. */
#ifndef P4_PREFIX_H
#define P4_PREFIX_H

#include "table.h"

#define P4_INLINE UINT32_C(0x40000000)
/* Maximum number of bits of action data that fit into a result. */
#define P4_INLINE_BITS 22
/* In the first level of a direct table: the result is in a group of the second level. */
#define P4_GROUP UINT32_C(0x80000000)
/* Maximum number of bits of the first level of a direct table; a group covers the 8 bits that follow. */
#define P4_FIRST_BITS 24

static inline void p4_result(const struct p4_table *table, struct p4_found *found, uint32_t result, unsigned data_bits)
{
    if (__builtin_expect(result == 0, 0)) {
        p4_missed(table, found);
    } else if (data_bits <= P4_INLINE_BITS) {
        found->value = (uint64_t)result << 42;
        found->action = (uint8_t)(result >> 22);
        found->hit = true;
    } else {
        p4_hit(found, (const uint64_t *)(table->values + (size_t)result * P4_VALUE_STRIDE(data_bits)));
    }
}

/* Exact keys of up to 16 bits: a direct table has a result for each key. Prefixes (DIR-24-8): it has a result for
   each value of the first 24 bits, or a group of 256 results for the next 8 bits. P. Gupta, S. Lin, N. McKeown:
   Routing lookups in hardware at memory access speeds, INFOCOM 1998, section 2. */
static P4_IN_PLACE void p4_direct_start(const struct p4_table *table, struct p4_cursor *cursor, const uint64_t *key, unsigned bits, bool together)
{
    unsigned first_bits = bits < P4_FIRST_BITS ? bits : P4_FIRST_BITS;
    const struct p4_direct *direct = __atomic_load_n(&table->direct, __ATOMIC_ACQUIRE);
    cursor->place = (const uint8_t *)(__builtin_expect(direct != NULL, 1) ? &direct->first[first_bits ? key[0] >> (64 - first_bits) : 0] : &p4_no_result);
    p4_fetch(table, cursor->place, 4, together);
}

static P4_IN_PLACE bool p4_direct_step(const struct p4_table *table, struct p4_cursor *cursor, struct p4_found *found,
    const uint64_t *key, unsigned bits, unsigned data_bits, bool together)
{
    uint32_t result = __atomic_load_n((const uint32_t *)cursor->place, __ATOMIC_ACQUIRE);
    if (bits > P4_FIRST_BITS && __builtin_expect((result & P4_GROUP) != 0, 0)) {
        const struct p4_direct *direct = __atomic_load_n(&table->direct, __ATOMIC_RELAXED);
        cursor->place = (const uint8_t *)&direct->groups[result & ~P4_GROUP][key[0] >> 32 & 0xff];
        p4_fetch(table, cursor->place, 4, together);
        return false;
    }
    p4_result(table, found, result, data_bits);
    return true;
}

/* A trie with path compression. A position in it is a word: nothing, a leaf, or an inner node, which has one place
   for each value of some bits of the key. Bits that are equal in all entries below are skipped and not compared,
   because leaves contain whole prefixes. A leaf contains all prefixes that may match a key that arrives there,
   including shorter ones. So the whole content that a lookup finds was published with one store. */
enum p4_trie_tag { P4_TRIE_NONE, P4_TRIE_NARROW, P4_TRIE_WIDE, P4_TRIE_INNER };

/* Bits 0-1: the tag; 2-7: the number of key bits of an inner node; 8-23: the first of these bits; 24-63: the cache
   line. */
static inline uint64_t p4_trie_word(enum p4_trie_tag tag, unsigned stride, unsigned bit, uint64_t line)
{
    return tag | stride << 2 | (uint64_t)bit << 8 | line << 24;
}

/* Entries of a leaf, the longest prefix first. If all prefixes have at most 64 bits: */
struct p4_narrow {
    uint64_t key;
    uint32_t result;
    uint16_t length;
    uint16_t last;
};

/* Otherwise: followed by the words of the key, the word with the first bits first. */
struct p4_wide {
    uint32_t result;
    uint16_t length;
    uint16_t last;
    uint64_t key[];
};

/* Up to 32 bits of a key. */
static inline uint32_t p4_trie_bits(const uint64_t *key, unsigned words, unsigned bit, unsigned count)
{
    const uint64_t *word = &key[words - 1 - bit / 64];
    uint64_t bits = *word << (bit % 64);
    if (bit % 64 + count > 64)
        bits |= word[-1] >> (64 - bit % 64);
    return (uint32_t)(bits >> 32) >> (32 - count);
}

static inline void p4_trie_enter(const struct p4_table *table, struct p4_cursor *cursor, const uint64_t *key, unsigned words,
    uint64_t word, bool together)
{
    const uint8_t *place = table->lines + (word >> 24) * 64;
    cursor->word = word;
    if ((word & 3) == P4_TRIE_INNER)
        place += p4_trie_bits(key, words, (unsigned)(word >> 8 & 0xffff), (unsigned)(word >> 2 & 0x3f)) * 8;
    cursor->place = place;
    if (word & 3)
        p4_fetch(table, place, 8, together);
}

static P4_IN_PLACE void p4_trie_start(const struct p4_table *table, struct p4_cursor *cursor, const uint64_t *key, unsigned words, bool together)
{
    p4_trie_enter(table, cursor, key, words, __atomic_load_n(&table->root, __ATOMIC_ACQUIRE), together);
}

static inline bool p4_fits(uint64_t difference, unsigned length)
{
    return length == 0 || difference >> (64 - length) == 0;
}

static inline bool p4_wide_fits(const struct p4_wide *entry, const uint64_t *key, unsigned words)
{
    unsigned whole = entry->length / 64;
    for (unsigned i = 0; i < whole; i++)
        if (entry->key[i] != key[words - 1 - i])
            return false;
    return entry->length % 64 == 0 || p4_fits(entry->key[whole] ^ key[words - 1 - whole], entry->length % 64);
}

static P4_IN_PLACE bool p4_trie_step(const struct p4_table *table, struct p4_cursor *cursor, struct p4_found *found,
    const uint64_t *key, unsigned words, unsigned data_bits, bool together)
{
    uint32_t result = 0;
    switch (cursor->word & 3) {
    case P4_TRIE_INNER:
        p4_trie_enter(table, cursor, key, words, __atomic_load_n((const uint64_t *)cursor->place, __ATOMIC_ACQUIRE), together);
        return false;
    case P4_TRIE_NARROW:
        for (const struct p4_narrow *entry = (const struct p4_narrow *)cursor->place;; entry++) {
            if (p4_fits(entry->key ^ key[words - 1], entry->length)) {
                result = entry->result;
                break;
            }
            if (entry->last)
                break;
        }
        break;
    case P4_TRIE_WIDE:
        for (const uint8_t *at = cursor->place;; at += sizeof(struct p4_wide) + words * 8) {
            const struct p4_wide *entry = (const struct p4_wide *)at;
            if (p4_wide_fits(entry, key, words)) {
                result = entry->result;
                break;
            }
            if (entry->last)
                break;
        }
        break;
    default:
        break;
    }
    p4_result(table, found, result, data_bits);
    return true;
}

#endif
