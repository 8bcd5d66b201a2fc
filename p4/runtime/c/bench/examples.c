/* Programs equivalent to DPDK's examples l2fwd and l3fwd (with exact matches). */
#include "bench.h"

#include <rte_hash.h>

/* Ports and their partners: their number is fixed. */

static uint16_t partners[PORTS];

uint64_t l2fwd_fill(const struct p4_program *ours, uint64_t entries)
{
    uint64_t all = UINT64_MAX << 55;
    (void)entries;
    for (uint64_t port = 0; port < PORTS; port++) {
        uint64_t key = port << 55;
        add(table_of(ours, "partners"), &key, &all, 0, port ^ 1);
        partners[port] = (uint16_t)(port ^ 1);
    }
    return PORTS;
}

bool l2fwd_fill_dpdk(const struct p4_program *theirs, uint64_t entries)
{
    struct p4_table *table = table_of(theirs, "partners");
    (void)entries;
    dpdk_hash(table, "partners", 1, PORTS);
    for (uint64_t port = 0; port < PORTS; port++) {
        uint64_t key = port << 55;
        dpdk_hash_add(table, &key, port ^ 1);
    }
    return true;
}

void l2fwd_by_hand(struct rte_mbuf **packets, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        packets[i]->port = partners[packets[i]->port];
        new_addresses(rte_pktmbuf_mtod(packets[i], uint8_t *), packets[i]->port);
    }
}

/* IPv4 flows: addresses, protocol and ports. */

static struct p4_table *flows;

static void flow(uint64_t entry, uint64_t *key)
{
    unsigned __int128 all = (unsigned __int128)(uint32_t)mixed(entry) << 72 | (unsigned __int128)(uint32_t)(mixed(entry) >> 32) << 40 |
        (uint64_t)(entry & 1 ? 6 : 17) << 32 | (uint32_t)mixed(entry ^ 0x8888);
    key[0] = (uint64_t)all;
    key[1] = (uint64_t)(all >> 64);
}

uint64_t flows_fill(const struct p4_program *ours, uint64_t entries)
{
    uint64_t mask[2] = {UINT64_MAX, UINT64_MAX}, key[2], count = 0;
    for (uint64_t i = 0; i < entries; i++) {
        flow(i, key);
        count += add(table_of(ours, "flows"), key, mask, 0, i);
    }
    return count;
}

bool flows_fill_dpdk(const struct p4_program *theirs, uint64_t entries)
{
    uint64_t key[2];
    flows = table_of(theirs, "flows");
    dpdk_hash(flows, "flows", 2, entries);
    for (uint64_t i = 0; i < entries; i++) {
        flow(i, key);
        dpdk_hash_add(flows, key, i);
    }
    return true;
}

void flows_fill_swx(uint64_t entries)
{
    struct swx_table table = swx_table_of("flows", "send");
    for (uint64_t i = 0; i < entries; i++) {
        uint64_t words[2];
        uint8_t key[13];
        flow(i, words);
        /* In host byte order, as the specification copies them from packets. */
        uint32_t addresses[2] = {(uint32_t)(words[1] >> 8), (uint32_t)(words[1] << 24 | words[0] >> 40)};
        uint16_t ports[2] = {(uint16_t)(words[0] >> 16), (uint16_t)words[0]};
        memcpy(key, addresses, sizeof addresses);
        memcpy(key + 8, ports, sizeof ports);
        key[12] = (uint8_t)(words[0] >> 32);
        swx_add(&table, key, PORT_OF(i));
    }
}

uint32_t flows_packet(uint8_t *to, uint64_t entry, uint64_t random)
{
    uint64_t key[2];
    flow(entry, key);
    ipv4_packet(to, 0, random);
    to[23] = (uint8_t)(key[0] >> 32);
    put_big(to + 26, (key[1] << 24 | key[0] >> 40) & UINT32_MAX, 4);
    put_big(to + 30, key[1] >> 8, 4);
    put_big(to + 34, key[0] & UINT32_MAX, 4);
    return 60;
}

/* Like DPDK's l3fwd with exact matches. */
void flows_by_hand(struct rte_mbuf **packets, unsigned count)
{
    uint64_t keys[HAND][2];
    const void *places[HAND];
    int32_t found[HAND];
    for (unsigned i = 0; i < count; i++) {
        const uint8_t *data = rte_pktmbuf_mtod(packets[i], const uint8_t *);
        uint64_t addresses;
        uint32_t ports;
        memcpy(&addresses, data + 26, 8);
        memcpy(&ports, data + 34, 4);
        addresses = __builtin_bswap64(addresses);
        keys[i][0] = addresses >> 32 << 40 | (uint64_t)data[23] << 32 | __builtin_bswap32(ports);
        keys[i][1] = (addresses & UINT32_MAX) << 8 | addresses >> 56;
        places[i] = keys[i];
    }
    rte_hash_lookup_bulk(flows->other, places, count, found);
    for (unsigned i = 0; i < count; i++) {
        uint8_t *data = rte_pktmbuf_mtod(packets[i], uint8_t *);
        packets[i]->port = UINT16_MAX;
        if (found[i] < 0 || get_big(data + 12, 2) != 0x0800 || (data[14] & 15) != 5 || data[22] <= 1)
            continue;
        packets[i]->port = (uint16_t)(((const uint64_t *)flows->values)[found[i]] >> 55);
        new_addresses(data, packets[i]->port);
        next_hop(data);
    }
}
