/* Names of one to seven components, and packets for them. The number of components is distributed as in the ten
   million URLs that G-Opt was measured with. No two names have the same first two components, so each name of three
   or more components needs its own entries for its prefixes. */
#include "bench.h"

/* The action in ndn.p4 of an entry that is only a prefix of longer ones. */
#define LOOK_LONGER 2

static const char *const tables[MOST_COMPONENTS] = {"names_of_one", "names_of_two", "names_of_three", "names_of_four", "names_of_five",
    "names_of_six", "names_of_seven"};

unsigned components(uint64_t entry)
{
    /* Number of URLs with each number of components; URLs with six and more are counted together in the source, and
       are split in half here. */
    static const uint64_t urls[MOST_COMPONENTS] = {974, 7086509, 1888029, 259022, 16980, 785, 785};
    uint64_t all = 0, chosen;
    unsigned count = 0;
    for (unsigned i = 0; i < MOST_COMPONENTS; i++)
        all += urls[i];
    for (chosen = mixed(entry ^ 0x7777) % all; chosen >= urls[count]; count++)
        chosen -= urls[count];
    return count + 1;
}

void name_of(uint64_t entry, unsigned count, uint64_t *key)
{
    for (unsigned i = 0; i < count; i++)
        key[count - 1 - i] = mixed(i == 0 ? entry / 16 : entry * 8 + i) | 1;
}

uint64_t number_of(uint64_t entry, unsigned count)
{
    return count == 1 ? entry / 16 : entry;
}

uint64_t names_fill(const struct p4_program *ours, uint64_t entries)
{
    uint64_t mask[MOST_COMPONENTS], key[MOST_COMPONENTS], names = 0;
    struct p4_table *of[MOST_COMPONENTS];
    memset(mask, 0xff, sizeof mask);
    for (unsigned i = 0; i < MOST_COMPONENTS; i++)
        of[i] = table_of(ours, tables[i]);
    for (uint64_t i = 0; i < entries; i++) {
        unsigned count = components(i);
        for (unsigned beginning = 2; beginning < count; beginning++) {
            name_of(i, beginning, key);
            add_as(of[beginning - 1], LOOK_LONGER, key, mask, 0, 0);
        }
        name_of(i, count, key);
        names += add(of[count - 1], key, mask, 0, number_of(i, count));
    }
    return names;
}

bool names_fill_dpdk(const struct p4_program *theirs, uint64_t entries)
{
    /* Entries per thousand with each number of components, including prefixes of other entries. */
    static const unsigned share[MOST_COMPONENTS] = {2, 1000, 240, 35, 5, 3, 3};
    uint64_t key[MOST_COMPONENTS];
    struct p4_table *of[MOST_COMPONENTS];
    for (unsigned i = 0; i < MOST_COMPONENTS; i++) {
        of[i] = table_of(theirs, tables[i]);
        dpdk_hash(of[i], tables[i], i + 1, entries / 1000 * share[i] + 1024);
    }
    for (uint64_t i = 0; i < entries; i++) {
        unsigned count = components(i);
        for (unsigned beginning = 2; beginning < count; beginning++) {
            name_of(i, beginning, key);
            dpdk_hash_add_as(of[beginning - 1], LOOK_LONGER, key, 0);
        }
        name_of(i, count, key);
        dpdk_hash_add(of[count - 1], key, number_of(i, count));
    }
    return true;
}

/* Half of the packets have one component more than the entry, if there is room. */
uint32_t names_packet(uint8_t *to, uint64_t entry, uint64_t random)
{
    uint64_t key[MOST_COMPONENTS];
    unsigned count = components(entry);
    memset(to, 0, 14);
    put_big(to + 12, 0x8624, 2);
    name_of(entry, count, key);
    for (unsigned i = 0; i < MOST_COMPONENTS; i++)
        put_big(to + 14 + 8 * i, i < count ? key[count - 1 - i] : i == count && random & 1 ? random : 0, 8);
    return 14 + 8 * MOST_COMPONENTS;
}
