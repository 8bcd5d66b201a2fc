/* Internal declarations for changes of tries. */
#ifndef P4_TRIE_H
#define P4_TRIE_H

#include "control.h"
#include "prefix.h"

/* Words of a key; the same for all rules of a table. */
static inline unsigned words_of(const struct p4_table *table)
{
    return (table->key_bits + 63) / 64;
}

/* Size of the head of an inner node, in front of its places. The head holds the common beginning of all keys below,
   the word with the first bits first. */
static inline size_t head_bytes(unsigned words)
{
    return (words * 8 + 63) / 64 * 64;
}

static inline unsigned tag(uint64_t word)
{
    return word & 3;
}

static inline unsigned stride_of(uint64_t word)
{
    return (unsigned)(word >> 2 & 0x3f);
}

static inline unsigned bit_of(uint64_t word)
{
    return (unsigned)(word >> 8 & 0xffff);
}

static inline void *at(const struct p4_table *table, uint64_t word)
{
    return p4_arena_at(&table->control->arena, word >> 24);
}

static inline const uint64_t *inner_key(const struct p4_table *table, uint64_t word)
{
    return (const uint64_t *)((const uint8_t *)at(table, word) - head_bytes(words_of(table)));
}

/* Number of equal leading bits, up to `most`. */
static inline unsigned common(const uint64_t *one, const uint64_t *other, unsigned most)
{
    unsigned bit = 0;
    for (; bit < most; bit += 64) {
        uint64_t difference = one[bit / 64] ^ other[bit / 64];
        if (difference) {
            bit += (unsigned)__builtin_clzll(difference);
            break;
        }
    }
    return bit < most ? bit : most;
}

/* Up to 32 bits of a key; its first word has the first bits. */
static inline uint32_t bits_at(const uint64_t *key, unsigned bit, unsigned count)
{
    uint64_t bits = key[bit / 64] << (bit % 64);
    if (bit % 64 + count > 64)
        bits |= key[bit / 64 + 1] >> (64 - bit % 64);
    return (uint32_t)(bits >> 32) >> (32 - count);
}

/* The places of an inner node that a prefix covers. */
void p4_trie_covered(const uint64_t *key, unsigned length, unsigned bit, unsigned stride, size_t *first, size_t *count);
/* Size of a leaf in bytes, and its number of entries. */
size_t p4_trie_leaf_bytes(const struct p4_table *table, uint64_t word, size_t *entries);
/* Frees a part that no worker sees, and everything below it. */
void p4_trie_give_back(struct p4_table *table, uint64_t word);
/* The rules of a leaf, with room for more, in one block of memory that the caller frees. */
struct p4_wide **p4_trie_listed(const struct p4_table *table, uint64_t word, size_t more, size_t *count);
/* Makes an inner node without children. Returns 0 if there is no memory. */
uint64_t p4_trie_inner(struct p4_table *table, const uint64_t *key, unsigned bit, unsigned stride);
/* Builds the part of a trie for some rules, without publishing it. Returns false if there is no memory. */
bool p4_trie_build(struct p4_table *table, struct p4_wide **list, size_t count, uint64_t *word);

#endif
