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

#endif
