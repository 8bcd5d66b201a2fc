/* Construction of tries: leaves and inner nodes in memory, built from rules. */
#include "trie.h"

#include <stdlib.h>

/* Maximum number of entries of a leaf, before it becomes an inner node: this many narrow entries fill a cache line. */
#define LEAF 4u
#define MOST_STRIDE 18u

void p4_trie_covered(const uint64_t *key, unsigned length, unsigned bit, unsigned stride, size_t *first, size_t *count)
{
    size_t all = (size_t)1 << stride;
    *first = 0;
    *count = all;
    if (length <= bit)
        return;
    *first = bits_at(key, bit, stride);
    *count = 1;
    if (length < bit + stride) {
        *count = all >> (length - bit);
        *first &= ~(*count - 1);
    }
}

size_t p4_trie_leaf_bytes(const struct p4_table *table, uint64_t word, size_t *entries)
{
    size_t size = tag(word) == P4_TRIE_NARROW ? sizeof(struct p4_narrow) : P4_RULE_BYTES(words_of(table)), count = 1;
    const uint8_t *leaf = at(table, word);
    if (tag(word) == P4_TRIE_NARROW)
        while (!((const struct p4_narrow *)leaf)[count - 1].last)
            count++;
    else
        while (!((const struct p4_wide *)(leaf + (count - 1) * size))->last)
            count++;
    *entries = count;
    return count * size;
}

void p4_trie_give_back(struct p4_table *table, uint64_t word)
{
    struct p4_arena *arena = &table->control->arena;
    size_t entries, head = head_bytes(words_of(table));
    if (tag(word) == P4_TRIE_NONE)
        return;
    if (tag(word) != P4_TRIE_INNER) {
        p4_arena_give(arena, word >> 24, p4_trie_leaf_bytes(table, word, &entries));
        return;
    }
    const uint64_t *places = at(table, word);
    for (size_t i = 0; i < (size_t)1 << stride_of(word); i++)
        p4_trie_give_back(table, places[i]);
    p4_arena_give(arena, (word >> 24) - head / 64, head + (8u << stride_of(word)));
}

struct p4_wide **p4_trie_listed(const struct p4_table *table, uint64_t word, size_t more, size_t *count)
{
    unsigned words = words_of(table);
    size_t size = P4_RULE_BYTES(words);
    *count = 0;
    if (tag(word) != P4_TRIE_NONE)
        p4_trie_leaf_bytes(table, word, count);
    struct p4_wide **list = p4_memory((*count + more) * (sizeof *list + size));
    uint8_t *memory = (uint8_t *)(list + *count + more);
    for (size_t i = 0; i < *count + more; i++)
        list[i] = (struct p4_wide *)(memory + i * size);
    for (size_t i = 0; i < *count; i++) {
        if (tag(word) == P4_TRIE_WIDE) {
            memcpy(list[i], (const uint8_t *)at(table, word) + i * size, size);
            continue;
        }
        const struct p4_narrow *entry = (const struct p4_narrow *)at(table, word) + i;
        *list[i] = (struct p4_wide){.result = entry->result, .length = entry->length};
        list[i]->key[0] = entry->key;
    }
    return list;
}

static uint64_t leaf(struct p4_table *table, struct p4_wide **list, size_t count)
{
    unsigned words = words_of(table);
    bool narrow = true;
    /* Sorts by length, the longest first; the lists are short or nearly sorted. */
    for (size_t i = 1; i < count; i++) {
        struct p4_wide *moved = list[i];
        size_t to = i;
        for (; to > 0 && list[to - 1]->length < moved->length; to--)
            list[to] = list[to - 1];
        list[to] = moved;
    }
    for (size_t i = 0; i < count; i++)
        narrow &= list[i]->length <= 64;
    size_t size = narrow ? sizeof(struct p4_narrow) : P4_RULE_BYTES(words);
    uint64_t line = p4_arena_take(&table->control->arena, count * size);
    if (!line)
        return P4_TRIE_NONE;
    uint8_t *to = p4_arena_at(&table->control->arena, line);
    for (size_t i = 0; i < count; i++) {
        const struct p4_wide *rule = list[i];
        bool last = i + 1 == count;
        if (narrow) {
            ((struct p4_narrow *)to)[i] =
                (struct p4_narrow){.key = rule->key[0], .result = rule->result, .length = rule->length, .last = last};
        } else {
            struct p4_wide *entry = (struct p4_wide *)(to + i * size);
            memcpy(entry, rule, size);
            entry->last = last;
        }
    }
    return p4_trie_word(narrow ? P4_TRIE_NARROW : P4_TRIE_WIDE, 0, 0, line);
}

uint64_t p4_trie_inner(struct p4_table *table, const uint64_t *key, unsigned bit, unsigned stride)
{
    struct p4_arena *arena = &table->control->arena;
    unsigned words = words_of(table);
    size_t head = head_bytes(words), places = (size_t)8 << stride;
    uint64_t line = p4_arena_take(arena, head + places);
    if (!line)
        return P4_TRIE_NONE;
    memcpy(p4_arena_at(arena, line), key, words * 8);
    memset((uint8_t *)p4_arena_at(arena, line) + head, 0, places);
    return p4_trie_word(P4_TRIE_INNER, stride, bit, line + head / 64);
}

static const struct p4_wide *longest_of(struct p4_wide *const *list, size_t count)
{
    const struct p4_wide *longest = list[0];
    for (size_t i = 1; i < count; i++)
        if (list[i]->length > longest->length)
            longest = list[i];
    return longest;
}

/* The first bit at which two rules differ that both extend beyond it. Returns UINT32_MAX if each rule is a prefix of
   the next. */
static unsigned first_difference(struct p4_wide *const *list, size_t count)
{
    const struct p4_wide *longest = longest_of(list, count);
    unsigned bit = UINT32_MAX;
    for (size_t i = 0; i < count; i++) {
        unsigned same = common(list[i]->key, longest->key, list[i]->length);
        if (same < list[i]->length && same < bit)
            bit = same;
    }
    return bit;
}

bool p4_trie_build(struct p4_table *table, struct p4_wide **list, size_t count, uint64_t *word)
{
    unsigned bit = count > LEAF ? first_difference(list, count) : UINT32_MAX;
    *word = P4_TRIE_NONE;
    if (count == 0)
        return true;
    if (bit == UINT32_MAX) {
        *word = leaf(table, list, count);
        return *word != P4_TRIE_NONE;
    }
    /* About as many places as rules. */
    unsigned stride = 63 - (unsigned)__builtin_clzll(count), left = words_of(table) * 64 - bit;
    stride = stride > MOST_STRIDE ? MOST_STRIDE : stride;
    stride = stride > left ? left : stride;
    *word = p4_trie_inner(table, longest_of(list, count)->key, bit, stride);
    if (*word == P4_TRIE_NONE)
        return false;
    size_t all = (size_t)1 << stride, first, places, sum = 0;
    size_t *start = p4_memory((all + 1) * sizeof *start);
    for (size_t i = 0; i < count; i++) {
        p4_trie_covered(list[i]->key, list[i]->length, bit, stride, &first, &places);
        for (size_t j = 0; j < places; j++)
            start[first + j + 1]++;
    }
    for (size_t i = 1; i <= all; i++)
        start[i] = sum += start[i];
    struct p4_wide **parts = p4_memory((sum + 1) * sizeof *parts);
    size_t *filled = p4_memory(all * sizeof *filled);
    for (size_t i = 0; i < count; i++) {
        p4_trie_covered(list[i]->key, list[i]->length, bit, stride, &first, &places);
        for (size_t j = first; j < first + places; j++)
            parts[start[j] + filled[j]++] = list[i];
    }
    bool made = true;
    uint64_t *to = at(table, *word);
    for (size_t i = 0; made && i < all; i++)
        made = p4_trie_build(table, parts + start[i], filled[i], &to[i]);
    free(start);
    free(parts);
    free(filled);
    if (!made) {
        p4_trie_give_back(table, *word);
        *word = P4_TRIE_NONE;
    }
    return made;
}
