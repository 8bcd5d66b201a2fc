/*
 * The part of DPDK that Namehop calls: inline functions, and functions whose structures differ between releases.
 *
 * The shim is a shared object, libnamehop_dpdk.so. Programs load it when the first port needs DPDK, and get its
 * functions as a table. It is the only object of Namehop that links DPDK.
 *
 * Packets are `struct rte_mbuf`. The Rust side reads and writes the first cache line directly; shim.c checks the
 * offsets that it relies on. Everything else is opaque. Functions that can fail return 0 or more on success and a
 * negative errno otherwise.
 */
#ifndef NAMEHOP_DPDK_SHIM_H
#define NAMEHOP_DPDK_SHIM_H

#include <stdint.h>
#include <stddef.h>

struct rte_mbuf;
struct rte_mempool;
struct rte_ring;

/* Receives one or more log lines. The level is as in rte_log.h, from 1 (emergency) to 8 (debug). */
typedef void (*namehop_log)(uint32_t level, const char *text, size_t length);

int namehop_eal_start(int argc, char **argv, namehop_log log);

/* Registers this thread, unless it is registered. Returns 1 if the thread must call namehop_thread_unregister before it
 * ends. 0 if it was registered before, or if there is no room for another thread. */
int namehop_thread_register(void);
void namehop_thread_unregister(void);

struct rte_mempool *namehop_mempool_create(const char *name, uint32_t count, uint16_t room_bytes, int *error);
void namehop_mempool_free(struct rte_mempool *pool);
uint32_t namehop_mempool_in_use(const struct rte_mempool *pool);
struct rte_mbuf *namehop_mbuf_allocate(struct rte_mempool *pool);
void namehop_mbuf_free(struct rte_mbuf *packet);

struct rte_ring *namehop_ring_create(const char *name, uint32_t count, int *error);
void namehop_ring_free(struct rte_ring *ring);
uint32_t namehop_ring_push(struct rte_ring *ring, struct rte_mbuf **packets, uint32_t count);
uint32_t namehop_ring_pop(struct rte_ring *ring, struct rte_mbuf **packets, uint32_t count);

/* Identifies the device for a driver. */
struct namehop_nic_source {
    /* The bus: "pci", or "vdev" for drivers without a card. */
    const char *bus;
    /* Address or name on that bus. */
    const char *name;
    /* Further device arguments of the driver. */
    const char *arguments;
    uint16_t mtu_bytes;
    /* Wanted number of slots of each queue; the driver may adjust it. */
    uint16_t slots;
    /* Wanted number of receive queues, and of transmit queues. */
    uint16_t queues;
};

/* An open network card. */
struct namehop_nic {
    uint16_t number;
    uint16_t mtu_bytes;
    /* Number of receive queues, and of transmit queues. */
    uint16_t queues;
    /* 1 if it spreads UDP packets over its queues by addresses and ports. */
    uint16_t spreads;
    uint8_t address[6];
};

/* Frames that a card dropped. */
struct namehop_nic_losses {
    uint64_t ring_full;
    uint64_t no_buffer;
    uint64_t malformed;
    uint64_t send_failed;
};

/* A rule of a card (`struct rte_flow`), opaque. */
struct rte_flow;

/* A rule: the frames of one sender, and the receive queue that they are steered to. */
struct namehop_nic_rule {
    /* 0: NDN frames from `hardware_source`. 4 or 6: UDP packets over this IP version, matched by the fields below. */
    uint8_t ip_version;
    uint8_t hardware_source[6];
    /* For IPv4, the first four bytes. */
    uint8_t source[16];
    uint8_t destination[16];
    /* 0: any port. */
    uint16_t source_port;
    uint16_t destination_port;
    /* 0: no tag. */
    uint16_t vlan;
    uint16_t queue;
};

/* Adds a rule to a card, if its driver supports it. `text` receives the driver's reason otherwise; it always ends
 * with a zero byte. */
int namehop_nic_add_rule(uint16_t number, const struct namehop_nic_rule *rule, struct rte_flow **flow, char *text,
                         size_t text_bytes);
int namehop_nic_remove_rule(uint16_t number, struct rte_flow *flow);

/* Received frames lie in the mempool of the sample. */
int namehop_nic_open(const struct namehop_nic_source *source, const struct rte_mbuf *sample, struct namehop_nic *nic);
void namehop_nic_close(uint16_t number, const char *bus, const char *name);
int namehop_nic_has_link(uint16_t number);
int namehop_nic_is_removed(uint16_t number);
int namehop_nic_set_groups(uint16_t number, uint8_t (*groups)[6], uint32_t count);
int namehop_nic_receive_all_groups(uint16_t number);
/* Receives frames for all hardware addresses. */
int namehop_nic_receive_everything(uint16_t number);
/* Has no effect on cards that receive the frames of all VLANs. */
int namehop_nic_receive_vlan(uint16_t number, uint16_t vlan, int is_wanted);
void namehop_nic_losses(uint16_t number, struct namehop_nic_losses *losses);
/* Receives up to `count` frames, each in one segment. Frames that do not fit into one segment are dropped and added
 * to `malformed`. */
uint16_t namehop_nic_receive(uint16_t number, uint16_t queue, struct rte_mbuf **packets, uint16_t count, uint32_t *malformed);
/* Number of frames that wait in the queue; 0 also if the driver cannot tell. */
uint16_t namehop_nic_waiting(uint16_t number, uint16_t queue);
uint16_t namehop_nic_send(uint16_t number, uint16_t queue, struct rte_mbuf **packets, uint16_t count);

/* Version of the table of functions and of the structures above. Every change of this file raises it, here and in
 * src/ffi.rs. */
#define NAMEHOP_DPDK_VERSION 1

/* All functions of the shim. src/ffi.rs declares the same fields in the same order. The functions that are called for
 * packets come first, in one cache line. */
struct namehop_dpdk_functions {
    uint64_t version;
    __typeof__(namehop_mbuf_allocate) *mbuf_allocate;
    __typeof__(namehop_mbuf_free) *mbuf_free;
    __typeof__(namehop_nic_receive) *nic_receive;
    __typeof__(namehop_nic_waiting) *nic_waiting;
    __typeof__(namehop_nic_send) *nic_send;
    __typeof__(namehop_ring_push) *ring_push;
    __typeof__(namehop_ring_pop) *ring_pop;
    __typeof__(namehop_eal_start) *eal_start;
    __typeof__(namehop_thread_register) *thread_register;
    __typeof__(namehop_thread_unregister) *thread_unregister;
    __typeof__(namehop_mempool_create) *mempool_create;
    __typeof__(namehop_mempool_free) *mempool_free;
    __typeof__(namehop_mempool_in_use) *mempool_in_use;
    __typeof__(namehop_ring_create) *ring_create;
    __typeof__(namehop_ring_free) *ring_free;
    __typeof__(namehop_nic_open) *nic_open;
    __typeof__(namehop_nic_close) *nic_close;
    __typeof__(namehop_nic_has_link) *nic_has_link;
    __typeof__(namehop_nic_is_removed) *nic_is_removed;
    __typeof__(namehop_nic_set_groups) *nic_set_groups;
    __typeof__(namehop_nic_receive_all_groups) *nic_receive_all_groups;
    __typeof__(namehop_nic_receive_everything) *nic_receive_everything;
    __typeof__(namehop_nic_receive_vlan) *nic_receive_vlan;
    __typeof__(namehop_nic_losses) *nic_losses;
    __typeof__(namehop_nic_add_rule) *nic_add_rule;
    __typeof__(namehop_nic_remove_rule) *nic_remove_rule;
};

/* Returns the table. It is the only symbol that the shared object exports. */
const struct namehop_dpdk_functions *namehop_dpdk_functions(void);

#endif
