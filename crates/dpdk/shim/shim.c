/*
 * Inline functions of DPDK as real ones, and its large structures behind small ones. No state but the log sink.
 */
#include "shim.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_ethdev.h>
#include <rte_lcore.h>
#include <rte_log.h>
#include <rte_mbuf.h>
#include <rte_mbuf_dyn.h>
#include <rte_mempool.h>
#include <rte_ring.h>

/* The layout that src/header.rs declares. */
_Static_assert(sizeof(struct rte_mbuf) == 128, "two cache lines");
_Static_assert(offsetof(struct rte_mbuf, buf_addr) == 0, "buf_addr");
_Static_assert(offsetof(struct rte_mbuf, buf_iova) == 8, "buf_iova");
_Static_assert(offsetof(struct rte_mbuf, data_off) == 16, "data_off");
_Static_assert(offsetof(struct rte_mbuf, refcnt) == 18, "refcnt");
_Static_assert(offsetof(struct rte_mbuf, nb_segs) == 20, "nb_segs");
_Static_assert(offsetof(struct rte_mbuf, port) == 22, "port");
_Static_assert(offsetof(struct rte_mbuf, ol_flags) == 24, "ol_flags");
_Static_assert(offsetof(struct rte_mbuf, pkt_len) == 36, "pkt_len");
_Static_assert(offsetof(struct rte_mbuf, data_len) == 40, "data_len");
_Static_assert(offsetof(struct rte_mbuf, buf_len) == 54, "buf_len");
_Static_assert(offsetof(struct rte_mbuf, pool) == 56, "pool");
_Static_assert(offsetof(struct rte_mbuf, next) == 64, "next");
_Static_assert(offsetof(struct rte_mbuf, priv_size) == 88, "priv_size");
_Static_assert(RTE_PKTMBUF_HEADROOM == 128, "HEADROOM_BYTES of the packet buffer trait");

/* Bit of ol_flags that says that the private area holds something; reserved so that no driver takes it. */
#define SUMMARY_BIT 40
/* Packets in the cache that each registered thread has of each pool, unless that were more than a quarter of them. */
#define CACHED_PACKETS 256

static namehop_log log_sink;

static ssize_t write_log(void *cookie, const char *text, size_t length)
{
    (void)cookie;
    int level = rte_log_cur_msg_loglevel();
    log_sink(level < 0 ? RTE_LOG_INFO : (uint32_t)level, text, length);
    return (ssize_t)length;
}

int namehop_eal_start(int argc, char **argv, namehop_log log)
{
    static const struct rte_mbuf_dynflag summary = {.name = "namehop_summary"};
    cookie_io_functions_t functions = {.write = write_log};
    FILE *stream = fopencookie(NULL, "w", functions);
    if (stream == NULL)
        return -errno;
    log_sink = log;
    /* Lines come whole, so that the sink can tell them apart. */
    setvbuf(stream, NULL, _IOLBF, BUFSIZ);
    rte_openlog_stream(stream);
    if (rte_eal_init(argc, argv) < 0)
        return rte_errno > 0 ? -rte_errno : -EIO;
    if (rte_mbuf_dynflag_register_bitnum(&summary, SUMMARY_BIT) != SUMMARY_BIT)
        return rte_errno > 0 ? -rte_errno : -EIO;
    return 0;
}

const char *namehop_error_text(int code) { return rte_strerror(code); }

int namehop_thread_is_registered(void) { return rte_lcore_id() != LCORE_ID_ANY; }

int namehop_thread_register(void) { return rte_thread_register() == 0 ? 0 : -rte_errno; }

void namehop_thread_unregister(void) { rte_thread_unregister(); }

struct rte_mempool *namehop_mempool_create(const char *name, uint32_t count, uint16_t private_bytes,
                                           uint16_t room_bytes, int *error)
{
    /* Threads share processors with others: with this kind of ring, one that is interrupted while it takes or gives
     * packets does not keep the others waiting. */
    uint32_t cached = count / 4 < CACHED_PACKETS ? count / 4 : CACHED_PACKETS;
    struct rte_mempool *pool =
        rte_pktmbuf_pool_create_by_ops(name, count, cached, private_bytes, room_bytes, SOCKET_ID_ANY, "ring_mt_rts");
    *error = pool == NULL ? -rte_errno : 0;
    return pool;
}

void namehop_mempool_free(struct rte_mempool *pool) { rte_mempool_free(pool); }

uint32_t namehop_mempool_in_use(const struct rte_mempool *pool) { return rte_mempool_in_use_count(pool); }

struct rte_mbuf *namehop_mbuf_allocate(struct rte_mempool *pool) { return rte_pktmbuf_alloc(pool); }

void namehop_mbuf_free(struct rte_mbuf *packet) { rte_pktmbuf_free(packet); }

struct rte_ring *namehop_ring_create(const char *name, uint32_t count, int *error)
{
    struct rte_ring *ring = rte_ring_create(name, count, SOCKET_ID_ANY, RING_F_SP_ENQ | RING_F_SC_DEQ | RING_F_EXACT_SZ);
    *error = ring == NULL ? -rte_errno : 0;
    return ring;
}

void namehop_ring_free(struct rte_ring *ring) { rte_ring_free(ring); }

uint32_t namehop_ring_push(struct rte_ring *ring, struct rte_mbuf **packets, uint32_t count)
{
    return rte_ring_sp_enqueue_burst(ring, (void *const *)packets, count, NULL);
}

uint32_t namehop_ring_pop(struct rte_ring *ring, struct rte_mbuf **packets, uint32_t count)
{
    return rte_ring_sc_dequeue_burst(ring, (void **)packets, count, NULL);
}

int namehop_port_open(const char *name, const char *arguments)
{
    uint16_t port = 0;
    int result = rte_eal_hotplug_add("vdev", name, arguments);
    if (result < 0)
        return result;
    result = rte_eth_dev_get_port_by_name(name, &port);
    if (result < 0) {
        rte_eal_hotplug_remove("vdev", name);
        return result;
    }
    return port;
}

int namehop_port_configure(uint16_t port, uint16_t receive_slots, uint16_t send_slots, struct rte_mempool *pool)
{
    struct rte_eth_conf configuration = {0};
    int result = rte_eth_dev_configure(port, 1, 1, &configuration);
    if (result < 0)
        return result;
    result = rte_eth_dev_adjust_nb_rx_tx_desc(port, &receive_slots, &send_slots);
    if (result < 0)
        return result;
    result = rte_eth_rx_queue_setup(port, 0, receive_slots, SOCKET_ID_ANY, NULL, pool);
    if (result < 0)
        return result;
    return rte_eth_tx_queue_setup(port, 0, send_slots, SOCKET_ID_ANY, NULL);
}

int namehop_port_start(uint16_t port) { return rte_eth_dev_start(port); }

int namehop_port_stop(uint16_t port) { return rte_eth_dev_stop(port); }

int namehop_port_close(uint16_t port, const char *name)
{
    int result = rte_eth_dev_close(port);
    int removed = rte_eal_hotplug_remove("vdev", name);
    return result < 0 ? result : removed;
}

int namehop_port_mac(uint16_t port, uint8_t address[6])
{
    struct rte_ether_addr found;
    int result = rte_eth_macaddr_get(port, &found);
    if (result == 0)
        memcpy(address, found.addr_bytes, 6);
    return result;
}

int namehop_port_mtu(uint16_t port)
{
    uint16_t mtu = 0;
    int result = rte_eth_dev_get_mtu(port, &mtu);
    return result < 0 ? result : mtu;
}

int namehop_port_is_up(uint16_t port)
{
    struct rte_eth_link link;
    int result = rte_eth_link_get_nowait(port, &link);
    return result < 0 ? result : link.link_status == RTE_ETH_LINK_UP;
}

int namehop_port_statistics(uint16_t port, struct namehop_statistics *statistics)
{
    struct rte_eth_stats found;
    int result = rte_eth_stats_get(port, &found);
    if (result != 0)
        return result;
    *statistics = (struct namehop_statistics){
        .received_packets = found.ipackets,
        .received_bytes = found.ibytes,
        .sent_packets = found.opackets,
        .sent_bytes = found.obytes,
        .missed = found.imissed,
        .receive_errors = found.ierrors,
        .no_buffer = found.rx_nombuf,
        .send_errors = found.oerrors,
    };
    return 0;
}

uint16_t namehop_port_receive(uint16_t port, struct rte_mbuf **packets, uint16_t count, int guarded)
{
    if (!guarded)
        return rte_eth_rx_burst(port, 0, packets, count);
    namehop_burst_begin();
    uint16_t received = rte_eth_rx_burst(port, 0, packets, count);
    namehop_burst_end();
    return received;
}

uint16_t namehop_port_send(uint16_t port, struct rte_mbuf **packets, uint16_t count, int guarded)
{
    if (!guarded)
        return rte_eth_tx_burst(port, 0, packets, count);
    namehop_burst_begin();
    uint16_t sent = rte_eth_tx_burst(port, 0, packets, count);
    namehop_burst_end();
    return sent;
}
