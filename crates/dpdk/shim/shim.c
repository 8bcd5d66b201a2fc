/*
 * Inline functions of DPDK as real ones, and its large structures behind small ones. No state but the log sink, and which
 * cards the kernel wants back.
 */
#include "shim.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include <rte_dev.h>
#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_ethdev.h>
#include <rte_lcore.h>
#include <rte_log.h>
#include <rte_mbuf.h>
#include <rte_mempool.h>
#include <rte_ring.h>

/* The layout that the crate packet declares in src/raw.rs. */
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
_Static_assert(RTE_PKTMBUF_HEADROOM == 128, "HEADROOM_BYTES of packet buffers");

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
    return 0;
}

const char *namehop_error_text(int code) { return rte_strerror(code); }

int namehop_thread_is_registered(void) { return rte_lcore_id() != LCORE_ID_ANY; }

int namehop_thread_register(void) { return rte_thread_register() == 0 ? 0 : -rte_errno; }

void namehop_thread_unregister(void) { rte_thread_unregister(); }

struct rte_mempool *namehop_mempool_create(const char *name, uint32_t count, uint16_t room_bytes, int *error)
{
    /* Threads share processors with others: with this kind of ring, one that is interrupted while it takes or gives
     * packets does not keep the others waiting. */
    uint32_t cached = count / 4 < CACHED_PACKETS ? count / 4 : CACHED_PACKETS;
    struct rte_mempool *pool =
        rte_pktmbuf_pool_create_by_ops(name, count, cached, 0, room_bytes, SOCKET_ID_ANY, "ring_mt_rts");
    *error = pool == NULL ? -rte_errno : 0;
    return pool;
}

void namehop_mempool_free(struct rte_mempool *pool) { rte_mempool_free(pool); }

uint32_t namehop_mempool_in_use(const struct rte_mempool *pool) { return rte_mempool_in_use_count(pool); }

/* Packets lie in one segment that nobody else uses. So `next`, in the second cache line, is always null as a free mbuf has it
 * and need not be looked at: each packet costs a line less. */
struct rte_mbuf *namehop_mbuf_allocate(struct rte_mempool *pool)
{
    struct rte_mbuf *packet = rte_mbuf_raw_alloc(pool);
    if (packet != NULL) {
        rte_pktmbuf_reset_headroom(packet);
        packet->port = RTE_MBUF_PORT_INVALID;
        packet->ol_flags = 0;
        packet->packet_type = 0;
        packet->pkt_len = 0;
        packet->data_len = 0;
    }
    return packet;
}

void namehop_mbuf_free(struct rte_mbuf *packet) { rte_mbuf_raw_free(packet); }

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

/* Frames that fit into the queues of a card. */
#define NIC_SLOTS 1024

/* Cards that the kernel wants back. Written by DPDK's interrupt thread, read by others. */
static atomic_bool nic_removed[RTE_MAX_ETHPORTS];

static void note_removal(const char *name, enum rte_dev_event_type event, void *argument)
{
    (void)argument;
    uint16_t number;
    if (event == RTE_DEV_EVENT_REMOVE && rte_eth_dev_get_port_by_name(name, &number) == 0)
        atomic_store(&nic_removed[number], true);
}

static int start_nic(uint16_t number, struct rte_mempool *pool, struct namehop_nic *nic)
{
    struct rte_eth_conf configuration = {.rxmode = {.mtu = RTE_ETHER_MTU}};
    uint16_t receive_slots = NIC_SLOTS, send_slots = NIC_SLOTS;
    struct rte_ether_addr address;
    int socket = rte_eth_dev_socket_id(number);
    unsigned int memory = socket < 0 ? (unsigned int)SOCKET_ID_ANY : (unsigned int)socket;
    int result = rte_eth_dev_configure(number, 1, 1, &configuration);
    if (result == 0)
        result = rte_eth_dev_adjust_nb_rx_tx_desc(number, &receive_slots, &send_slots);
    if (result == 0)
        result = rte_eth_rx_queue_setup(number, 0, receive_slots, memory, NULL, pool);
    if (result == 0)
        result = rte_eth_tx_queue_setup(number, 0, send_slots, memory, NULL);
    if (result == 0)
        result = rte_eth_dev_start(number);
    if (result == 0)
        result = rte_eth_macaddr_get(number, &address);
    if (result == 0)
        result = rte_eth_dev_get_mtu(number, &nic->mtu_bytes);
    if (result != 0)
        return result;
    nic->number = number;
    memcpy(nic->address, address.addr_bytes, sizeof nic->address);
    return 0;
}

int namehop_nic_open(const char *address, const struct rte_mbuf *sample, struct namehop_nic *nic)
{
    uint16_t number;
    if (sample->pool == NULL)
        return -ENOMEM;
    /* It was found when the environment started, if it was there by then. */
    int result = rte_eth_dev_get_port_by_name(address, &number);
    if (result != 0) {
        result = rte_eal_hotplug_add("pci", address, "");
        if (result == 0)
            result = rte_eth_dev_get_port_by_name(address, &number);
    }
    if (result != 0)
        return result;
    atomic_store(&nic_removed[number], false);
    result = rte_dev_event_callback_register(address, note_removal, NULL);
    if (result == 0 || result == -EEXIST)
        result = start_nic(number, sample->pool, nic);
    if (result != 0)
        namehop_nic_close(number, address);
    return result;
}

void namehop_nic_close(uint16_t number, const char *address)
{
    rte_dev_event_callback_unregister(address, note_removal, NULL);
    rte_eth_dev_stop(number);
    rte_eth_dev_close(number);
    rte_eal_hotplug_remove("pci", address);
}

int namehop_nic_has_link(uint16_t number)
{
    struct rte_eth_link link = {0};
    return rte_eth_link_get_nowait(number, &link) == 0 && link.link_status == RTE_ETH_LINK_UP;
}

int namehop_nic_is_removed(uint16_t number) { return number < RTE_MAX_ETHPORTS && atomic_load(&nic_removed[number]); }

int namehop_nic_set_groups(uint16_t number, uint8_t (*groups)[6], uint32_t count)
{
    int result = rte_eth_dev_set_mc_addr_list(number, (struct rte_ether_addr *)groups, count);
    if (result == 0)
        return 0;
    /* A card with too few places, or none, receives all groups. */
    return count == 0 ? rte_eth_allmulticast_disable(number) : rte_eth_allmulticast_enable(number);
}

void namehop_nic_losses(uint16_t number, struct namehop_nic_losses *losses)
{
    struct rte_eth_stats counted;
    if (rte_eth_stats_get(number, &counted) == 0)
        *losses = (struct namehop_nic_losses){
            .ring_full = counted.imissed,
            .no_buffer = counted.rx_nombuf,
            .malformed = counted.ierrors,
            .send_failed = counted.oerrors,
        };
}

uint16_t namehop_nic_receive(uint16_t number, struct rte_mbuf **packets, uint16_t count)
{
    return rte_eth_rx_burst(number, 0, packets, count);
}

uint16_t namehop_nic_send(uint16_t number, struct rte_mbuf **packets, uint16_t count)
{
    return rte_eth_tx_burst(number, 0, packets, count);
}
