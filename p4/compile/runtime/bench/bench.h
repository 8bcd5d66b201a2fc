/* A measurement of compiled programs between two rings of DPDK: what its parts have in common. */
#ifndef P4_BENCH_H
#define P4_BENCH_H

#include "control.h"

#include <rte_mbuf.h>
#include <rte_swx_table.h>

/* How many packets are taken from a ring at a time, when nothing else is said, and at most. */
#define BURST 64
#define MOST_BURST 256
/* How many keys programs written by hand look up at once. */
#define HAND 32
/* Bytes that packets have room for, behind the headroom. */
#define LONGEST 384

/* A table of DPDK's own engine for P4, and the action that its entries have: see swx.c. */
struct swx_table {
    struct rte_swx_table_ops operations;
    void *entries;
    uint64_t action;
};

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
    /* What a program written by hand does with up to HAND packets, on tables of DPDK; ports of dropped packets are UINT16_MAX. */
    void (*by_hand)(struct rte_mbuf **packets, unsigned count);
    /* The same as another publication does it, on tables of its own, which have to be filled; NULL where there is none. */
    void (*fill_published)(uint64_t entries);
    void (*published)(struct rte_mbuf **packets, unsigned count);
    /* Fills the tables of SWX; NULL where there is no specification for it. */
    void (*fill_swx)(uint64_t entries);
    /* Bytes of the longest packet, when it has more than LONGEST. */
    uint32_t longest;
};

extern const struct workload workloads[];
extern const size_t workload_count;

uint64_t mixed(uint64_t number);
/* The port for an entry, and its value in a word. */
#define PORT_OF(entry) ((uint32_t)((entry) & 7))
#define VALUE_OF(entry) ((uint64_t)PORT_OF(entry) << 55)

/* How a measurement ends when something is not installed; the same number stands in p4/compile/src/bench.rs. */
#define P4_EXIT_MISSING 3

void fail(const char *what);
void missing(const char *what);
/* Bytes in network order. */
void put_big(uint8_t *to, uint64_t value, unsigned bytes);
uint64_t get_big(const uint8_t *from, unsigned bytes);
/* A packet of IPv4; and what l3fwd changes in it: the addresses of Ethernet, time to live and checksum. */
uint32_t ipv4_packet(uint8_t *to, uint64_t entry, uint64_t random);
void new_addresses(uint8_t *data, uint32_t port);
void next_hop(uint8_t *data);
/* The programs of examples.c. */
#define PORTS 8
uint64_t l2fwd_fill(const struct p4_program *ours, uint64_t entries);
bool l2fwd_fill_dpdk(const struct p4_program *theirs, uint64_t entries);
void l2fwd_by_hand(struct rte_mbuf **packets, unsigned count);
uint64_t flows_fill(const struct p4_program *ours, uint64_t entries);
bool flows_fill_dpdk(const struct p4_program *theirs, uint64_t entries);
void flows_fill_swx(uint64_t entries);
uint32_t flows_packet(uint8_t *to, uint64_t entry, uint64_t random);
void flows_by_hand(struct rte_mbuf **packets, unsigned count);
/* The programs of crypto.c, with packets of several lengths. */
uint64_t crypto_fill(const struct p4_program *ours, uint64_t entries);
bool crypto_fill_dpdk(const struct p4_program *theirs, uint64_t entries);
uint32_t crypto_packet(uint8_t *to, uint64_t entry, uint64_t random);
uint32_t crypto_packet_256(uint8_t *to, uint64_t entry, uint64_t random);
uint32_t crypto_packet_1024(uint8_t *to, uint64_t entry, uint64_t random);
void crypto_by_hand(struct rte_mbuf **packets, unsigned count);
/* Names: see names.c. The words of a prefix of an entry's name, the last component first; and how many components its name has. */
#define MOST_COMPONENTS 7
uint64_t names_fill(const struct p4_program *ours, uint64_t entries);
bool names_fill_dpdk(const struct p4_program *theirs, uint64_t entries);
uint32_t names_packet(uint8_t *to, uint64_t entry, uint64_t random);
void name_of(uint64_t entry, unsigned count, uint64_t *key);
unsigned components(uint64_t entry);
/* What decides about the port of an entry whose name has so many components. */
uint64_t number_of(uint64_t entry, unsigned count);
/* The lookups of names of G-Opt: see gopt.c. */
void gopt_fill(uint64_t entries);
void gopt_names(struct rte_mbuf **packets, unsigned count);
/* Starts SWX with the shared object that was generated from a specification, between a ring and one for each port, which have room for
   so many packets. False when there is too little memory for its tables. */
bool swx_start(const char *library, struct rte_ring *from, unsigned packets);
struct swx_table swx_table_of(const char *name, const char *action);
/* An entry, straight into the table: SWX's control plane compares each new one with all that are there. The key is as in packets where it is
   part of a header; actions without a port leave it out. */
void swx_add(const struct swx_table *table, uint8_t *key, uint32_t port);
/* Takes all packets of the input, so many, through the program; writes into them by which ports they left. */
void swx_forward(unsigned count);
void swx_collect(struct rte_mbuf **packets, unsigned count);
struct p4_table *table_of(const struct p4_program *program, const char *end);
/* Adds an entry with an action, the first one when none is named, and a port. False when it is there already. */
bool add(struct p4_table *table, const uint64_t *key, const uint64_t *mask, unsigned prefix, uint64_t entry);
bool add_as(struct p4_table *table, uint8_t action, const uint64_t *key, const uint64_t *mask, unsigned prefix, uint64_t entry);
/* A hash table of DPDK for a table, and its entries. */
void dpdk_hash(struct p4_table *table, const char *name, unsigned words, uint64_t entries);
void dpdk_hash_add(struct p4_table *table, const uint64_t *key, uint64_t entry);
void dpdk_hash_add_as(struct p4_table *table, uint8_t action, const uint64_t *key, uint64_t entry);
/* Values that have the number of their port. */
void dpdk_ports(struct p4_table *table);

#endif
