/* Changes of tries. A leaf is never modified: a new one replaces it with one store. If a prefix is in several
   leaves, all new leaves are made before the first one is stored, so that a lack of memory leaves nothing half done.
   When the number of rules has doubled or halved, the whole trie is rebuilt, with suitable strides. */
#include "trie.h"

#include <stdlib.h>

/* The trie is not rebuilt after fewer changes than this. */
#define FEW_CHANGES 64u

struct store {
    uint64_t *place, new;
};

/* A change of a prefix, and the stores that it needs. */
struct job {
    struct p4_table *table;
    const struct p4_wide *rule;
    bool enters, leaves;
    struct store *stores;
    size_t count, room;
};

static void release_whole(void *owner, uint64_t word)
{
    p4_trie_give_back(owner, word);
}

static void release_leaf(void *owner, uint64_t word)
{
    struct p4_table *table = owner;
    size_t entries;
    p4_arena_give(&table->control->arena, word >> 24, p4_trie_leaf_bytes(table, word, &entries));
}

static void later(struct job *job, uint64_t *place, uint64_t new)
{
    if (job->count == job->room) {
        job->room = job->room * 2 + 8;
        job->stores = p4_memory_again(job->stores, job->room * sizeof *job->stores);
    }
    job->stores[job->count++] = (struct store){place, new};
}

static void copy_rule(struct p4_wide *to, const struct p4_wide *from, unsigned words)
{
    memcpy(to, from, P4_RULE_BYTES(words));
}

static bool change_leaf(struct job *job, uint64_t *place)
{
    struct p4_table *table = job->table;
    const struct p4_wide *rule = job->rule;
    unsigned words = words_of(table);
    size_t count;
    struct p4_wide **list = p4_trie_listed(table, *place, 1, &count);
    if (job->enters) {
        copy_rule(list[count++], rule, words);
    } else {
        size_t kept = 0;
        for (size_t i = 0; i < count; i++) {
            bool same = list[i]->length == rule->length && common(list[i]->key, rule->key, rule->length) == rule->length;
            if (same && job->leaves)
                continue;
            if (same)
                list[i]->result = rule->result;
            struct p4_wide *moved = list[kept];
            list[kept++] = list[i];
            list[i] = moved;
        }
        count = kept;
    }
    uint64_t new;
    bool made = p4_trie_build(table, list, count, &new);
    if (made)
        later(job, place, new);
    free(list);
    return made;
}

/* A rule differs from all rules below an inner node in a bit before the bits of the node: adds a node above it for
   that bit. */
static bool split(struct job *job, uint64_t *place, unsigned bit)
{
    struct p4_table *table = job->table;
    unsigned words = words_of(table), length = bit + 1;
    struct p4_wide *rules = p4_memory((bit + 2) * P4_RULE_BYTES(words)), **list = p4_memory((bit + 2) * sizeof *list);
    size_t count = 0;
    uint64_t other, new, key[words];
    for (unsigned i = 0; i < words; i++)
        key[i] = job->rule->key[words - 1 - i];
    list[count] = rules;
    copy_rule(list[count++], job->rule, words);
    /* The shorter rules that match both sides. */
    for (;;) {
        uint32_t result = p4_rule_around(table, key, length, &length);
        if (!result)
            break;
        list[count] = (struct p4_wide *)((uint8_t *)rules + count * P4_RULE_BYTES(words));
        *list[count] = (struct p4_wide){.result = result, .length = (uint16_t)length};
        uint64_t prefix[words];
        p4_prefix_of(table, key, length, prefix);
        for (unsigned i = 0; i < words; i++)
            list[count]->key[i] = prefix[words - 1 - i];
        count++;
    }
    bool made = p4_trie_build(table, list, count, &other);
    if (made) {
        new = p4_trie_inner(table, job->rule->key, bit, 1);
        if (new == P4_TRIE_NONE) {
            p4_trie_give_back(table, other);
            made = false;
        } else {
            uint64_t *places = at(table, new);
            unsigned side = bits_at(job->rule->key, bit, 1);
            places[side] = other;
            places[!side] = *place;
            later(job, place, new);
        }
    }
    free(rules);
    free(list);
    return made;
}

static bool visit(struct job *job, uint64_t *place)
{
    const struct p4_wide *rule = job->rule;
    size_t first, count;
    if (tag(*place) != P4_TRIE_INNER)
        return change_leaf(job, place);
    unsigned bit = bit_of(*place), most = rule->length < bit ? rule->length : bit;
    unsigned same = common(rule->key, inner_key(job->table, *place), most);
    if (same < most)
        return job->enters ? split(job, place, same) : true;
    p4_trie_covered(rule->key, rule->length, bit, stride_of(*place), &first, &count);
    uint64_t *places = at(job->table, *place);
    for (size_t i = first; i < first + count; i++)
        if (!visit(job, &places[i]))
            return false;
    return true;
}

struct gathering {
    struct p4_wide **list;
    uint8_t *memory;
    size_t count;
    unsigned words;
};

static void gather(void *with, const uint64_t *key, const void *value)
{
    struct gathering *all = with;
    struct p4_wide *rule = (struct p4_wide *)(all->memory + all->count * P4_RULE_BYTES(all->words));
    *rule = (struct p4_wide){.result = (uint32_t)*(const uint64_t *)value, .length = (uint16_t)key[all->words]};
    for (unsigned i = 0; i < all->words; i++)
        rule->key[i] = key[all->words - 1 - i];
    all->list[all->count++] = rule;
}

/* Rebuilds the trie from the rules. If there is no memory for a second one, the trie stays as it is. */
static void build_again(struct p4_table *table)
{
    struct p4_control *control = table->control;
    size_t count = control->rules->count;
    struct gathering all = {.words = words_of(table)};
    uint64_t new;
    all.list = p4_memory((count + 1) * sizeof *all.list);
    all.memory = p4_memory((count + 1) * P4_RULE_BYTES(all.words));
    p4_hash_all(control->rules, &control->rule_shape, gather, &all);
    if (p4_trie_build(table, all.list, all.count, &new)) {
        uint64_t old = table->root;
        __atomic_store_n(&table->root, new, __ATOMIC_RELEASE);
        p4_retire(release_whole, table, old);
    }
    control->built = count;
    control->changed = 0;
    free(all.list);
    free(all.memory);
}

static bool start(struct p4_table *table)
{
    struct p4_control *control = table->control;
    if (control->arena.base)
        return true;
    /* Room for leaves, inner nodes and waiting memory, twice because of rebuilding. */
    if (!p4_arena_new(&control->arena, ((size_t)64 << 20) + table->size * (256 + 32 * words_of(table))))
        return false;
    table->lines = control->arena.base;
    return true;
}

void p4_trie_end(struct p4_table *table)
{
    table->root = P4_TRIE_NONE;
    p4_arena_end(&table->control->arena);
    table->control->built = table->control->changed = 0;
}

static bool attempt(struct job *job)
{
    bool made;
    job->count = 0;
    made = visit(job, &job->table->root);
    if (made)
        return true;
    for (size_t i = 0; i < job->count; i++) {
        uint64_t new = job->stores[i].new, old = *job->stores[i].place;
        /* After a split, the old part stays. */
        if (tag(new) == P4_TRIE_INNER && tag(old) == P4_TRIE_INNER) {
            uint64_t *places = at(job->table, new);
            places[0] = places[0] == old ? P4_TRIE_NONE : places[0];
            places[1] = places[1] == old ? P4_TRIE_NONE : places[1];
        }
        p4_trie_give_back(job->table, new);
    }
    return false;
}

bool p4_trie_set(struct p4_table *table, const uint64_t *prefix, unsigned length, uint32_t result, bool new)
{
    unsigned words = words_of(table);
    uint64_t memory[2 + words];
    struct p4_wide *rule = (struct p4_wide *)memory;
    if (!start(table))
        return false;
    *rule = (struct p4_wide){.result = result, .length = (uint16_t)length};
    for (unsigned i = 0; i < words; i++)
        rule->key[i] = prefix[words - 1 - i];
    struct job job = {.table = table, .rule = rule, .enters = new, .leaves = result == 0};
    bool made = attempt(&job);
    if (!made) {
        /* There may be enough memory once workers no longer see what was removed. */
        p4_synchronize();
        made = attempt(&job);
    }
    for (size_t i = 0; made && i < job.count; i++) {
        uint64_t old = *job.stores[i].place;
        __atomic_store_n(job.stores[i].place, job.stores[i].new, __ATOMIC_RELEASE);
        if (tag(old) == P4_TRIE_NARROW || tag(old) == P4_TRIE_WIDE)
            p4_retire(release_leaf, table, old);
    }
    free(job.stores);
    return made;
}

void p4_trie_changed(struct p4_table *table)
{
    struct p4_control *control = table->control;
    if (++control->changed > FEW_CHANGES && control->changed > control->built)
        build_again(table);
}
