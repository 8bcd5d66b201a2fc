/* Looks up a million addresses in prefix tables and in DPDK's rte_lpm and rte_lpm6, filled with the same prefixes,
   and compares the results. Prints the number of differences. Argument: the random seed. */
#include "control.h"
#include "prefix.h"

#include <rte_eal.h>
#include <rte_lpm.h>
#include <rte_lpm6.h>
#include <stdio.h>
#include <stdlib.h>

#define PREFIXES 100000u
#define LOOKUPS 1000000u

static uint64_t state;
/* Number of lookups that found a prefix. */
static unsigned hits;
static const uint32_t argument_bits[] = {16};

static uint64_t next(void)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
}

static void fail(const char *why)
{
    printf("%s\n", why);
    exit(1);
}

static struct p4_table table_of(const char *name, enum p4_kind kind, uint32_t bits)
{
    return (struct p4_table){.name = name, .kind = kind, .key_bits = bits, .size = PREFIXES, .data_bits = 16, .action_count = 1,
        .argument_bits = argument_bits};
}

/* Returns false if the prefix exists already. */
static bool insert(struct p4_table *table, const uint64_t *key, unsigned length, uint16_t hop)
{
    static const uint64_t none[2];
    uint8_t data[2 + P4_SLACK] = {(uint8_t)(hop >> 8), (uint8_t)hop};
    struct p4_new_entry entry = {.order = {.prefix = length}, .key = key, .mask = none, .ranges = none, .data = data};
    enum p4_outcome outcome = p4_table_insert(table, &entry);
    if (outcome != P4_OK && outcome != P4_PRESENT)
        fail("a prefix is rejected");
    return outcome == P4_OK;
}

/* Result of a lookup: -1 without a prefix. */
static int hop_of(const struct p4_found *found)
{
    hits += found->hit;
    return found->hit ? (int)(found->value >> 48) : -1;
}

/* Most addresses are near prefixes, the others anywhere. */
static unsigned ipv4(void)
{
    static uint32_t prefixes[PREFIXES];
    struct rte_lpm_config how = {.max_rules = PREFIXES, .number_tbl8s = 1 << 16};
    struct rte_lpm *theirs = rte_lpm_create("ipv4", 0, &how);
    struct p4_table ours = table_of("ipv4", P4_DIRECT, 32);
    unsigned wrong = 0;
    if (!theirs)
        fail("no memory for rte_lpm");
    for (unsigned i = 0; i < PREFIXES; i++) {
        unsigned length = 8 + (unsigned)(next() % 25);
        uint32_t prefix = (uint32_t)next() & (UINT32_MAX << (32 - length));
        uint64_t key = (uint64_t)prefix << 32;
        uint16_t hop = (uint16_t)next();
        prefixes[i] = prefix;
        if (insert(&ours, &key, length, hop) && rte_lpm_add(theirs, prefix, (uint8_t)length, hop) < 0)
            fail("rte_lpm rejects a prefix");
    }
    for (unsigned i = 0; i < LOOKUPS; i++) {
        uint32_t address = next() % 8 ? prefixes[next() % PREFIXES] ^ (uint32_t)(next() >> (32 + next() % 32)) : (uint32_t)next();
        uint64_t key = (uint64_t)address << 32;
        struct p4_cursor cursor = {0};
        struct p4_found found = {0};
        uint32_t hop;
        p4_direct_start(&ours, &cursor, &key, 32, true);
        while (!p4_direct_step(&ours, &cursor, &found, &key, 32, 16, true))
            ;
        wrong += hop_of(&found) != (rte_lpm_lookup(theirs, address, &hop) == 0 ? (int)hop : -1);
    }
    p4_table_clear(&ours);
    rte_lpm_free(theirs);
    return wrong;
}

static unsigned ipv6(void)
{
    static uint64_t prefixes[PREFIXES][2];
    struct rte_lpm6_config how = {.max_rules = PREFIXES, .number_tbl8s = 1 << 19};
    struct rte_lpm6 *theirs = rte_lpm6_create("ipv6", 0, &how);
    struct p4_table ours = table_of("ipv6", P4_TRIE, 128);
    unsigned wrong = 0;
    if (!theirs)
        fail("no memory for rte_lpm6");
    for (unsigned i = 0; i < PREFIXES; i++) {
        /* Like routes: between 20 and 64 bits, some longer. */
        unsigned length = next() % 16 ? 20 + (unsigned)(next() % 45) : 1 + (unsigned)(next() % 128);
        uint64_t *prefix = prefixes[i], words[2];
        uint16_t hop = (uint16_t)next();
        /* Half of the time near another one, so that prefixes are nested. */
        const uint64_t *near = i && next() % 2 ? prefixes[next() % i] : NULL;
        prefix[1] = near ? near[1] : next();
        prefix[0] = near ? near[0] : next();
        prefix[1] &= length >= 64 ? UINT64_MAX : ~(UINT64_MAX >> length);
        prefix[0] &= length <= 64 ? 0 : length == 128 ? UINT64_MAX : ~(UINT64_MAX >> (length - 64));
        words[0] = __builtin_bswap64(prefix[1]);
        words[1] = __builtin_bswap64(prefix[0]);
        if (insert(&ours, prefix, length, hop) && rte_lpm6_add(theirs, (const uint8_t *)words, (uint8_t)length, hop) < 0)
            fail("rte_lpm6 rejects a prefix");
    }
    for (unsigned i = 0; i < LOOKUPS; i++) {
        const uint64_t *near = prefixes[next() % PREFIXES];
        unsigned kept = (unsigned)(next() % 128);
        uint64_t key[2] = {next(), next()}, words[2];
        if (next() % 8) {
            key[1] = kept >= 64 ? near[1] : near[1] ^ (key[1] >> kept);
            key[0] = kept < 64 ? key[0] : near[0] ^ (key[0] >> (kept - 64));
        }
        words[0] = __builtin_bswap64(key[1]);
        words[1] = __builtin_bswap64(key[0]);
        struct p4_cursor cursor = {0};
        struct p4_found found = {0};
        uint32_t hop;
        p4_trie_start(&ours, &cursor, key, 2, true);
        while (!p4_trie_step(&ours, &cursor, &found, key, 2, 16, true))
            ;
        wrong += hop_of(&found) != (rte_lpm6_lookup(theirs, (const uint8_t *)words, &hop) == 0 ? (int)hop : -1);
    }
    p4_table_clear(&ours);
    rte_lpm6_free(theirs);
    return wrong;
}

int main(int count, char **arguments)
{
    char *eal[] = {"check_lpm", "--no-huge", "--no-pci", "--no-telemetry", "--no-shconf", "--log-level=error", "-m", "1024", "-l", "0"};
    state = (count > 1 ? strtoull(arguments[1], NULL, 10) : 1) * UINT64_C(0x9e3779b97f4a7c15) | 1;
    if (rte_eal_init(sizeof eal / sizeof *eal, eal) < 0)
        fail("DPDK failed to start");
    unsigned wrong = ipv4();
    printf("ipv4: %u of %u differ, %u found\n", wrong, LOOKUPS, hits);
    hits = 0;
    wrong = ipv6();
    printf("ipv6: %u of %u differ, %u found\n", wrong, LOOKUPS, hits);
    p4_epoch_end();
    return 0;
}
