/* The programs of the paper: their tables, and packets for them. Sizes are from section 4.1 of the paper. */
#include "bench.h"

#include <rte_hash.h>
#include <rte_lpm.h>
#include <rte_lpm6.h>
#include <stdio.h>
#include <stdlib.h>

uint64_t mixed(uint64_t number)
{
    number = (number + 1) * UINT64_C(0x9e3779b97f4a7c15);
    number = (number ^ number >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    number = (number ^ number >> 27) * UINT64_C(0x94d049bb133111eb);
    return number ^ number >> 31;
}

struct p4_table *table_of(const struct p4_program *program, const char *end)
{
    for (size_t i = 0; i < program->table_count; i++) {
        const char *name = program->tables[i]->name;
        if (strlen(name) >= strlen(end) && strcmp(name + strlen(name) - strlen(end), end) == 0)
            return program->tables[i];
    }
    fail("a program lacks the tables of the measurement");
    return NULL;
}

bool add_as(struct p4_table *table, uint8_t action, const uint64_t *key, const uint64_t *mask, unsigned prefix, uint64_t entry)
{
    uint8_t data[2] = {(uint8_t)(PORT_OF(entry) >> 1), (uint8_t)(PORT_OF(entry) << 7)};
    struct p4_new_entry new = {.order.prefix = prefix, .action = action, .key = key, .mask = mask, .data = data};
    enum p4_outcome outcome = p4_table_insert(table, &new);
    char why[256];
    if (outcome == P4_PRESENT)
        return false;
    if (outcome != P4_OK) {
        p4_outcome_text(outcome, table, why, sizeof why);
        fail(why);
    }
    return true;
}

bool add(struct p4_table *table, const uint64_t *key, const uint64_t *mask, unsigned prefix, uint64_t entry)
{
    return add_as(table, 0, key, mask, prefix, entry);
}

/* Other programs may still fit. */
static void dpdk_has_no_room(void)
{
    missing("DPDK has no memory for its table: reserve more huge pages (sysctl vm.nr_hugepages=2048), or none, so that it uses "
            "ordinary pages; --no-dpdk measures without DPDK tables");
}

void dpdk_hash(struct p4_table *table, const char *name, unsigned words, uint64_t entries)
{
    struct rte_hash_parameters how = {.name = name, .entries = (uint32_t)(entries + entries / 8 + 64), .key_len = words * 8};
    table->other = rte_hash_create(&how);
    if (!table->other)
        dpdk_has_no_room();
    table->values = p4_region_new((how.entries + 1) * 8);
    table->otherwise = NULL;
}

void dpdk_hash_add_as(struct p4_table *table, uint8_t action, const uint64_t *key, uint64_t entry)
{
    int32_t at = rte_hash_add_key(table->other, key);
    if (at < 0)
        fail("a DPDK hash table is full");
    ((uint64_t *)table->values)[at] = VALUE_OF(entry) | action;
}

void dpdk_hash_add(struct p4_table *table, const uint64_t *key, uint64_t entry)
{
    dpdk_hash_add_as(table, 0, key, entry);
}

void dpdk_ports(struct p4_table *table)
{
    uint64_t *values = p4_region_new(4096);
    for (uint64_t port = 0; port < 8; port++)
        values[port] = VALUE_OF(port);
    table->values = (const uint8_t *)values;
}

void put_big(uint8_t *to, uint64_t value, unsigned bytes)
{
    for (unsigned i = 0; i < bytes; i++)
        to[i] = (uint8_t)(value >> (8 * (bytes - 1 - i)));
}

uint64_t get_big(const uint8_t *from, unsigned bytes)
{
    uint64_t value = 0;
    for (unsigned i = 0; i < bytes; i++)
        value = value << 8 | from[i];
    return value;
}

/* Layer 2: each address is both a sender and a receiver. */

static struct p4_table *senders, *receivers;

static uint64_t address(uint64_t entry)
{
    return UINT64_C(0x020000000000) | ((entry * UINT64_C(0x9e3779b1)) & UINT64_C(0xffffffffff));
}

static uint64_t l2_fill(const struct p4_program *ours, uint64_t entries)
{
    uint64_t all = UINT64_MAX;
    for (uint64_t i = 0; i < entries; i++) {
        uint64_t key = address(i);
        add(table_of(ours, "senders"), &key, &all, 0, 0);
        add(table_of(ours, "receivers"), &key, &all, 0, i);
    }
    return entries;
}

static bool l2_fill_dpdk(const struct p4_program *theirs, uint64_t entries)
{
    senders = table_of(theirs, "senders");
    receivers = table_of(theirs, "receivers");
    dpdk_hash(senders, "senders", 1, entries);
    dpdk_hash(receivers, "receivers", 1, entries);
    for (uint64_t i = 0; i < entries; i++) {
        uint64_t key = address(i);
        dpdk_hash_add(senders, &key, 0);
        dpdk_hash_add(receivers, &key, i);
    }
    return true;
}

static void l2_fill_swx(uint64_t entries)
{
    struct swx_table from = swx_table_of("senders", "known"), to = swx_table_of("receivers", "send");
    uint8_t key[6];
    for (uint64_t i = 0; i < entries; i++) {
        put_big(key, address(i), 6);
        swx_add(&from, key, 0);
        swx_add(&to, key, PORT_OF(i));
    }
}

static uint32_t l2_packet(uint8_t *to, uint64_t entry, uint64_t random)
{
    put_big(to, address(entry), 6);
    put_big(to + 6, address(random), 6);
    put_big(to + 12, 0x0800, 2);
    memset(to + 14, 0, 46);
    return 60;
}

/* Like DPDK's l3fwd with exact matches: looks up a whole burst at once. */
static void l2_by_hand(struct rte_mbuf **packets, unsigned count)
{
    uint64_t from[HAND], to[HAND];
    const void *from_keys[HAND], *to_keys[HAND];
    int32_t known[HAND], found[HAND];
    for (unsigned i = 0; i < count; i++) {
        const uint8_t *data = rte_pktmbuf_mtod(packets[i], const uint8_t *);
        uint64_t one, other;
        memcpy(&one, data, 8);
        memcpy(&other, data + 6, 8);
        to[i] = __builtin_bswap64(one) >> 16;
        from[i] = __builtin_bswap64(other) >> 16;
        to_keys[i] = &to[i];
        from_keys[i] = &from[i];
    }
    rte_hash_lookup_bulk(senders->other, from_keys, count, known);
    rte_hash_lookup_bulk(receivers->other, to_keys, count, found);
    for (unsigned i = 0; i < count; i++)
        packets[i]->port = known[i] < 0 || found[i] < 0 ? UINT16_MAX : (uint16_t)(((const uint64_t *)receivers->values)[found[i]] >> 55);
}

/* IPv4: more than half of the prefixes have 24 bits, as in Internet routing tables. */

static struct p4_table *routes4;

static unsigned length4(uint64_t entry)
{
    uint64_t random = mixed(entry) >> 40;
    return random % 100 < 56 ? 24 : random % 100 < 98 ? 16 + (unsigned)(random / 100 % 8) : 25 + (unsigned)(random / 100 % 8);
}

static uint32_t prefix4(uint64_t entry)
{
    /* 1.0.0.0 to 223.255.255.255 */
    uint32_t address = (uint32_t)(((mixed(entry ^ 0x4444) >> 32) % 0xdf000000u) + 0x01000000u);
    return address & (uint32_t)(UINT32_MAX << (32 - length4(entry)));
}

static uint64_t ipv4_fill(const struct p4_program *ours, uint64_t entries)
{
    uint64_t count = 0;
    for (uint64_t i = 0; i < entries; i++) {
        uint64_t key = (uint64_t)prefix4(i) << 32, mask = UINT64_MAX << (64 - length4(i));
        count += add(table_of(ours, "routes"), &key, &mask, length4(i), prefix4(i) >> 8);
    }
    return count;
}

static bool ipv4_fill_dpdk(const struct p4_program *theirs, uint64_t entries)
{
    struct rte_lpm_config how = {.max_rules = (uint32_t)entries + 64, .number_tbl8s = 1 << 16};
    routes4 = table_of(theirs, "routes");
    routes4->other = rte_lpm_create("routes", 0, &how);
    if (!routes4->other)
        dpdk_has_no_room();
    dpdk_ports(routes4);
    for (uint64_t i = 0; i < entries; i++)
        if (rte_lpm_add(routes4->other, prefix4(i), (uint8_t)length4(i), PORT_OF(prefix4(i) >> 8)) < 0)
            fail("rte_lpm is full");
    return true;
}

uint32_t ipv4_packet(uint8_t *to, uint64_t entry, uint64_t random)
{
    uint32_t host = length4(entry) == 32 ? 0 : (uint32_t)random & (UINT32_MAX >> length4(entry));
    l2_packet(to, 0, 0);
    memcpy(to + 14, "\x45\x00\x00\x2e\x00\x00\x00\x00\x40\x11\x00\x00\xc0\x00\x02\x01", 16);
    put_big(to + 30, prefix4(entry) | host, 4);
    return 60;
}

/* Sets the addresses that l3fwd sets in a packet. */
void new_addresses(uint8_t *data, uint32_t port)
{
    uint64_t to = __builtin_bswap64((UINT64_C(0x020100000000) | port) << 16), from = __builtin_bswap64((UINT64_C(0x020000000000) | port) << 16);
    memcpy(data, &to, 6);
    memcpy(data + 6, &from, 6);
}

void next_hop(uint8_t *data)
{
    uint16_t sum;
    data[22]--;
    memcpy(&sum, data + 24, 2);
    sum = __builtin_bswap16(sum);
    sum = (uint16_t)(sum + 0x100 + (sum >= 0xff00));
    sum = __builtin_bswap16(sum);
    memcpy(data + 24, &sum, 2);
}

static void ipv4_by_hand(struct rte_mbuf **packets, unsigned count)
{
    uint32_t addresses[HAND], found[HAND];
    for (unsigned i = 0; i < count; i++) {
        uint32_t address;
        memcpy(&address, rte_pktmbuf_mtod_offset(packets[i], const uint8_t *, 30), 4);
        addresses[i] = __builtin_bswap32(address);
    }
    rte_lpm_lookup_bulk(routes4->other, addresses, found, count);
    for (unsigned i = 0; i < count; i++) {
        uint8_t *data = rte_pktmbuf_mtod(packets[i], uint8_t *);
        packets[i]->port = UINT16_MAX;
        if (!(found[i] & RTE_LPM_LOOKUP_SUCCESS) || get_big(data + 12, 2) != 0x0800 || data[22] <= 1)
            continue;
        packets[i]->port = (uint16_t)(found[i] & 0xffffff);
        new_addresses(data, packets[i]->port);
        next_hop(data);
    }
}

/* IPv6: random prefixes of 48 to 64 bits. */

static struct p4_table *routes6;

static unsigned length6(uint64_t entry)
{
    return 48 + (unsigned)(mixed(entry ^ 0x6666) % 17);
}

static uint64_t prefix6(uint64_t entry)
{
    return mixed(entry) & (UINT64_MAX << (64 - length6(entry)));
}

static uint64_t ipv6_fill(const struct p4_program *ours, uint64_t entries)
{
    uint64_t count = 0;
    for (uint64_t i = 0; i < entries; i++) {
        uint64_t key[2] = {0, prefix6(i)}, mask[2] = {0, UINT64_MAX << (64 - length6(i))};
        count += add(table_of(ours, "routes"), key, mask, length6(i), i);
    }
    return count;
}

static bool ipv6_fill_dpdk(const struct p4_program *theirs, uint64_t entries)
{
    struct rte_lpm6_config how = {.max_rules = (uint32_t)entries + 64, .number_tbl8s = (uint32_t)(entries * 5 + 1024)};
    if (how.number_tbl8s >= 1 << 21)
        how.number_tbl8s = (1 << 21) - 1;
    routes6 = table_of(theirs, "routes");
    routes6->other = rte_lpm6_create("routes", 0, &how);
    if (!routes6->other)
        dpdk_has_no_room();
    dpdk_ports(routes6);
    for (uint64_t i = 0; i < entries; i++) {
        uint8_t address[16] = {0};
        put_big(address, prefix6(i), 8);
        if (rte_lpm6_add(routes6->other, address, (uint8_t)length6(i), PORT_OF(i)) < 0)
            fail("rte_lpm6 is full");
    }
    return true;
}

static uint32_t ipv6_packet(uint8_t *to, uint64_t entry, uint64_t random)
{
    l2_packet(to, 0, 0);
    put_big(to + 12, 0x86dd, 2);
    memcpy(to + 14, "\x60\x00\x00\x00\x00\x18\x11\x40", 8);
    memset(to + 22, 0x20, 16);
    put_big(to + 38, prefix6(entry) | (length6(entry) == 64 ? 0 : random & (UINT64_MAX >> length6(entry))), 8);
    put_big(to + 46, random, 8);
    memset(to + 54, 0, 24);
    return 78;
}

static void ipv6_by_hand(struct rte_mbuf **packets, unsigned count)
{
    uint8_t addresses[HAND][16];
    int32_t found[HAND];
    for (unsigned i = 0; i < count; i++)
        memcpy(addresses[i], rte_pktmbuf_mtod_offset(packets[i], const uint8_t *, 38), 16);
    rte_lpm6_lookup_bulk_func(routes6->other, addresses, found, count);
    for (unsigned i = 0; i < count; i++) {
        uint8_t *data = rte_pktmbuf_mtod(packets[i], uint8_t *);
        packets[i]->port = UINT16_MAX;
        if (found[i] < 0 || get_big(data + 12, 2) != 0x86dd || data[21] <= 1)
            continue;
        packets[i]->port = (uint16_t)found[i];
        new_addresses(data, packets[i]->port);
        data[21]--;
    }
}

const struct workload workloads[] = {
    {"l2", 16777216, l2_fill, l2_fill_dpdk, l2_packet, l2_by_hand, NULL, NULL, l2_fill_swx},
    {"ipv4", 527961, ipv4_fill, ipv4_fill_dpdk, ipv4_packet, ipv4_by_hand, NULL, NULL},
    {"ipv6", 200000, ipv6_fill, ipv6_fill_dpdk, ipv6_packet, ipv6_by_hand, NULL, NULL},
    {"ndn", 10000000, names_fill, names_fill_dpdk, names_packet, NULL, gopt_fill, gopt_names},
    {"l2fwd", PORTS, l2fwd_fill, l2fwd_fill_dpdk, l2_packet, l2fwd_by_hand, NULL, NULL},
    {"flows", 1000000, flows_fill, flows_fill_dpdk, flows_packet, flows_by_hand, NULL, NULL, flows_fill_swx},
    {"crypto", PORTS, crypto_fill, crypto_fill_dpdk, crypto_packet, crypto_by_hand, NULL, NULL},
    {"crypto-256", PORTS, crypto_fill, crypto_fill_dpdk, crypto_packet_256, crypto_by_hand, NULL, NULL},
    {"crypto-1024", PORTS, crypto_fill, crypto_fill_dpdk, crypto_packet_1024, crypto_by_hand, NULL, NULL, .longest = 1536},
};
const size_t workload_count = sizeof workloads / sizeof *workloads;
