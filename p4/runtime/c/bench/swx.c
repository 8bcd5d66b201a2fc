/* DPDK's own P4 engine, SWX (rte_swx_pipeline), between the rings of the benchmark. It runs the C code that it
   generates from a specification; DPDK 22.11 has no other way to load one. */
#include "bench.h"

#include <rte_lcore.h>
#include <rte_ring.h>
#include <rte_swx_ctl.h>
#include <rte_swx_pipeline.h>
#include <stdio.h>
#include <stdlib.h>

/* Instructions between two checks for remaining packets: those of about nine packets. */
#define STEPS 64

static struct rte_swx_pipeline *pipeline;
static struct rte_ring *input;
/* One ring per port, because the engine does not write the egress port into a packet. */
static struct rte_ring *leaving[PORTS];

bool swx_start(const char *library, struct rte_ring *from, unsigned packets)
{
    char name[16];
    int outcome;
    FILE *ports = tmpfile();
    if (!ports)
        fail("cannot create the file for SWX's ports");
    input = from;
    fprintf(ports, "port in 0 ring %s bsz %d\n", input->name, BURST);
    for (unsigned port = 0; port < PORTS; port++) {
        snprintf(name, sizeof name, "port%u", port);
        leaving[port] = rte_ring_create(name, packets, 0, RING_F_SP_ENQ | RING_F_SC_DEQ | RING_F_EXACT_SZ);
        if (!leaving[port])
            fail("out of memory for SWX's rings");
        fprintf(ports, "port out %u ring %s bsz %d\n", port, name, BURST);
    }
    rewind(ports);
    outcome = rte_swx_pipeline_build_from_lib(&pipeline, "measured", library, ports, (int)rte_socket_id());
    fclose(ports);
    /* The function returns ENODEV if there is no memory for a table. */
    if (outcome == -ENOMEM || outcome == -ENODEV)
        return false;
    if (outcome != 0)
        fail("SWX rejects the program");
    return true;
}

struct swx_table swx_table_of(const char *name, const char *action)
{
    struct rte_swx_table_state *state;
    struct rte_swx_ctl_pipeline_info all;
    struct swx_table table = {0};
    if (rte_swx_ctl_pipeline_info_get(pipeline, &all) != 0 || rte_swx_pipeline_table_state_get(pipeline, &state) != 0)
        fail("SWX does not list its tables");
    for (uint32_t i = 0; i < all.n_tables; i++) {
        struct rte_swx_ctl_table_info info;
        /* A table without keys has no operations. */
        int keyless = 1;
        if (rte_swx_ctl_table_info_get(pipeline, i, &info) == 0 && strcmp(info.name, name) == 0 &&
            rte_swx_ctl_table_ops_get(pipeline, i, &table.operations, &keyless) == 0 && !keyless)
            table.entries = state[i].obj;
    }
    for (table.action = 0; table.action < all.n_actions; table.action++) {
        struct rte_swx_ctl_action_info info;
        if (rte_swx_ctl_action_info_get(pipeline, (uint32_t)table.action, &info) == 0 && strcmp(info.name, action) == 0)
            break;
    }
    if (!table.entries || table.action == all.n_actions)
        fail("SWX lacks the tables and actions of the measurement");
    return table;
}

void swx_add(const struct swx_table *table, uint8_t *key, uint32_t port)
{
    struct rte_swx_table_entry entry = {.key = key, .action_id = table->action, .action_data = (uint8_t *)&port};
    if (table->operations.add(table->entries, &entry) != 0)
        fail("a table of SWX is full");
}

static unsigned left(void)
{
    unsigned count = 0;
    for (unsigned port = 0; port < PORTS; port++)
        count += rte_ring_count(leaving[port]);
    return count;
}

void swx_forward(unsigned count)
{
    while (!rte_ring_empty(input))
        rte_swx_pipeline_run(pipeline, STEPS);
    /* Some packets are still in flight, or wait at a port for others: the second of two calls without a packet in
       between sends them. */
    for (unsigned turn = 0; left() < count; turn++) {
        rte_swx_pipeline_run(pipeline, STEPS);
        rte_swx_pipeline_flush(pipeline);
        if (turn == 4 * count)
            fail("SWX drops packets");
    }
}

void swx_collect(struct rte_mbuf **packets, unsigned count)
{
    void *packet;
    for (unsigned i = 0; i < count; i++)
        packets[i]->port = UINT16_MAX;
    for (unsigned port = 0; port < PORTS; port++) {
        while (rte_ring_dequeue(leaving[port], &packet) == 0)
            ((struct rte_mbuf *)packet)->port = (uint16_t)port;
        /* Like the single ring of the other variants, the next round then writes to the same memory. */
        rte_ring_reset(leaving[port]);
    }
}
