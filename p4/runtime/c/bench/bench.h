/* Shared declarations of the benchmark that measures compiled programs between two DPDK rings. */
#ifndef P4_BENCH_H
#define P4_BENCH_H

#include "control.h"

#include <rte_mbuf.h>
#include <rte_swx_table.h>

/* Default and maximum number of packets taken from a ring at a time. */
#define BURST 64
#define MOST_BURST 256
/* Number of keys that hand-written programs look up at once. */
#define HAND 32
/* Bytes of room for a packet, behind the headroom. */
#define LONGEST 384

/* A table of DPDK's own P4 engine, and the action of its entries: see swx.c. */
struct swx_table {
    struct rte_swx_table_ops operations;
    void *entries;
    uint64_t action;
};

/* A program to be measured: how its tables are filled, and how packets that match their entries are made. */
struct workload {
    const char *name;
    /* Default number of entries. */
    uint64_t entries;
    /* Fills the tables: the program's own, and DPDK's for comparison. Returns the number of entries. */
    uint64_t (*fill)(const struct p4_program *ours, uint64_t entries);
    bool (*fill_dpdk)(const struct p4_program *theirs, uint64_t entries);
    /* Writes a packet for an entry and returns its length. */
    uint32_t (*packet)(uint8_t *to, uint64_t entry, uint64_t random);
    /* Hand-written program: processes up to HAND packets on DPDK's tables; the port of dropped packets is
       UINT16_MAX. */
    void (*by_hand)(struct rte_mbuf **packets, unsigned count);
    /* The same as published elsewhere, on its own tables, which have to be filled; NULL if there is none. */
    void (*fill_published)(uint64_t entries);
    void (*published)(struct rte_mbuf **packets, unsigned count);
    /* Fills SWX's tables; NULL if there is no specification. */
    void (*fill_swx)(uint64_t entries);
    /* Length of the longest packet in bytes, if it is more than LONGEST. */
    uint32_t longest;
};

extern const struct workload workloads[];
extern const size_t workload_count;

uint64_t mixed(uint64_t number);
/* The port of an entry, and its value in a word. */
#define PORT_OF(entry) ((uint32_t)((entry) & 7))
#define VALUE_OF(entry) ((uint64_t)PORT_OF(entry) << 55)

/* Exit code if something is not installed; the same number is in p4/cli/src/commands/bench/mod.rs. */
#define P4_EXIT_MISSING 3

void fail(const char *what);
void missing(const char *what);
/* Big-endian numbers. */
void put_big(uint8_t *to, uint64_t value, unsigned bytes);
uint64_t get_big(const uint8_t *from, unsigned bytes);
/* An IPv4 packet; and what l3fwd changes in it: Ethernet addresses, time to live and checksum. */
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
/* Names: see names.c. name_of gives the words of a prefix of an entry's name, the last component first; components
   gives the length of the name. */
#define MOST_COMPONENTS 7
uint64_t names_fill(const struct p4_program *ours, uint64_t entries);
bool names_fill_dpdk(const struct p4_program *theirs, uint64_t entries);
uint32_t names_packet(uint8_t *to, uint64_t entry, uint64_t random);
void name_of(uint64_t entry, unsigned count, uint64_t *key);
unsigned components(uint64_t entry);
/* The number that decides the port of an entry with this many components. */
uint64_t number_of(uint64_t entry, unsigned count);
/* G-Opt's lookups of names: see gopt.c. */
void gopt_fill(uint64_t entries);
void gopt_names(struct rte_mbuf **packets, unsigned count);
/* Starts SWX with the shared object generated from a specification, between the input ring and one ring per port,
   with room for this many packets each. Returns false if there is too little memory for its tables. */
bool swx_start(const char *library, struct rte_ring *from, unsigned packets);
struct swx_table swx_table_of(const char *name, const char *action);
/* Adds an entry directly to the table, because SWX's control plane compares each new entry with all existing ones. A
   key that is part of a header has the byte order of packets; for actions without a port, the port is omitted. */
void swx_add(const struct swx_table *table, uint8_t *key, uint32_t port);
/* swx_forward processes all packets of the input, this many; swx_collect writes into them the ports on which they
   left. */
void swx_forward(unsigned count);
void swx_collect(struct rte_mbuf **packets, unsigned count);
struct p4_table *table_of(const struct p4_program *program, const char *end);
/* Adds an entry with an action (the first one by default) and a port. Returns false if it exists already. */
bool add(struct p4_table *table, const uint64_t *key, const uint64_t *mask, unsigned prefix, uint64_t entry);
bool add_as(struct p4_table *table, uint8_t action, const uint64_t *key, const uint64_t *mask, unsigned prefix, uint64_t entry);
/* A DPDK hash table in place of a table, and its entries. */
void dpdk_hash(struct p4_table *table, const char *name, unsigned words, uint64_t entries);
void dpdk_hash_add(struct p4_table *table, const uint64_t *key, uint64_t entry);
void dpdk_hash_add_as(struct p4_table *table, uint8_t action, const uint64_t *key, uint64_t entry);
/* Values that contain the number of their port. */
void dpdk_ports(struct p4_table *table);

#endif
