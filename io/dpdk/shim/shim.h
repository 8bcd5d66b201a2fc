/*
 * What Namehop calls of DPDK: inline functions, and those whose structures differ between releases.
 *
 * Packets are `struct rte_mbuf`, whose first cache line the Rust side reads and writes by itself; shim.c checks the
 * offsets it relies on. Everything else is opaque. Functions that can fail return 0 or more on success and a negative
 * errno otherwise.
 */
#ifndef NAMEHOP_DPDK_SHIM_H
#define NAMEHOP_DPDK_SHIM_H

#include <stdint.h>
#include <stddef.h>

struct rte_mbuf;
struct rte_mempool;
struct rte_ring;

/* Takes one or more log lines. The level is that of rte_log.h, 1 (emergency) to 8 (debug). */
typedef void (*namehop_log)(uint32_t level, const char *text, size_t length);

int namehop_eal_start(int argc, char **argv, namehop_log log);
const char *namehop_error_text(int code);

int namehop_thread_is_registered(void);
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

/* Where log lines of this thread go instead of the log: a text that ends with a zero. NULL ends that. */
void namehop_log_capture(char *text, size_t bytes);
/* Makes DPDK's log go through this shim. 0, or a negative errno. */
int namehop_log_open(void);

/* What a driver is given to find its device with. */
struct namehop_nic_source {
    /* The bus: "pci", or "vdev" for drivers without a card. */
    const char *bus;
    /* Its address or name on that bus. */
    const char *name;
    /* What else the driver wants to know. */
    const char *arguments;
    uint16_t mtu_bytes;
    /* Frames that fit into each queue, as far as the driver can do that. */
    uint16_t slots;
    /* Receive queues, and transmit queues, that are wished for. */
    uint16_t queues;
};

/* A network card that is open. */
struct namehop_nic {
    uint16_t number;
    uint16_t mtu_bytes;
    /* Queues that it has of each kind. */
    uint16_t queues;
    /* 1 if it spreads packets of UDP over them by addresses and ports. */
    uint16_t spreads;
    uint8_t address[6];
};

/* Frames that a card lost. */
struct namehop_nic_losses {
    uint64_t ring_full;
    uint64_t no_buffer;
    uint64_t malformed;
    uint64_t send_failed;
};

/* A rule of a card (`struct rte_flow`), opaque. */
struct rte_flow;

/* The frames of one sender, and the receive queue that they are to come to. */
struct namehop_nic_rule {
    /* 0: NDN frames from `hardware_source`. 4 or 6: packets of UDP over this version of IP, by what is behind. */
    uint8_t ip_version;
    uint8_t hardware_source[6];
    /* Of IPv4 the first four bytes. */
    uint8_t source[16];
    uint8_t destination[16];
    /* 0: any. */
    uint16_t source_port;
    uint16_t destination_port;
    /* 0: without a tag. */
    uint16_t vlan;
    uint16_t queue;
};

/* Has a card follow a rule, if its driver says that it can. What the driver says otherwise goes to `text`, which always ends with a zero. */
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
/* Frames for all hardware addresses. */
int namehop_nic_receive_everything(uint16_t number);
/* Has no effect on cards that receive frames of all VLANs. */
int namehop_nic_receive_vlan(uint16_t number, uint16_t vlan, int is_wanted);
void namehop_nic_losses(uint16_t number, struct namehop_nic_losses *losses);
/* Up to `count` frames, each in one segment. Those that cannot be made so are dropped and added to `malformed`. */
uint16_t namehop_nic_receive(uint16_t number, uint16_t queue, struct rte_mbuf **packets, uint16_t count, uint32_t *malformed);
/* Frames that wait in the queue; 0 also where the driver cannot tell. */
uint16_t namehop_nic_waiting(uint16_t number, uint16_t queue);
uint16_t namehop_nic_send(uint16_t number, uint16_t queue, struct rte_mbuf **packets, uint16_t count);

#endif
