/* A measurement of compiled programs between two rings of DPDK: what its parts have in common. */
#ifndef P4_BENCH_H
#define P4_BENCH_H

#include "control.h"

#include <rte_mbuf.h>

/* How many packets are taken from a ring at a time, when nothing else is said. */
#define BURST 32

/* What a program forwards by, and how packets are made that meet its entries. */
struct workload {
    const char *name;
    /* Entries when nothing else is said. */
    uint64_t entries;
    /* Fills tables: ours, and for comparison those of DPDK; says how many entries there are then. */
    uint64_t (*fill)(const struct p4_program *ours, uint64_t entries);
    bool (*fill_dpdk)(const struct p4_program *theirs, uint64_t entries);
    /* Writes a packet for an entry and gives its length. */
    uint32_t (*packet)(uint8_t *to, uint64_t entry, uint64_t random);
    /* What a program written by hand does with a burst, on tables of DPDK; ports of dropped packets are UINT16_MAX. */
    void (*by_hand)(struct rte_mbuf **packets, unsigned count);
};

extern const struct workload workloads[];
extern const size_t workload_count;

uint64_t mixed(uint64_t number);
/* The port for an entry, and its value in a word. */
#define PORT_OF(entry) ((uint32_t)((entry) & 7))
#define VALUE_OF(entry) ((uint64_t)PORT_OF(entry) << 55)

void fail(const char *what);
struct p4_table *table_of(const struct p4_program *program, const char *end);
/* Adds an entry whose action is the first one, with a port. False when it is there already. */
bool add(struct p4_table *table, const uint64_t *key, const uint64_t *mask, unsigned prefix, uint64_t entry);
/* A hash table of DPDK for a table, and its entries. */
void dpdk_hash(struct p4_table *table, const char *name, unsigned words, uint64_t entries);
void dpdk_hash_add(struct p4_table *table, const uint64_t *key, uint64_t entry);
/* Values that have the number of their port. */
void dpdk_ports(struct p4_table *table);

#endif
