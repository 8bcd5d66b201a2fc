/*
 * Inline functions of DPDK as callable functions, and small structures for DPDK's large ones. The only state is the
 * destination of the log, and the number of each thread.
 */
#include "shim.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_lcore.h>
#include <rte_log.h>
#include <rte_mbuf.h>
#include <rte_mempool.h>
#include <rte_ring.h>

/* The layout that the crate `packet` declares in src/raw.rs. */
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

/* Size of a registered thread's cache in each pool, in packets; smaller pools use a quarter of their packets. */
#define CACHED_PACKETS 256

static _Atomic(namehop_log) log_sink;
static FILE *_Atomic log_stream;

/* DPDK's number of this thread, by which mempools find its cache. DPDK has it too, but a shared object that is loaded
 * at run time reaches DPDK's thread-local variables only by a function call, and needs the number twice per packet. */
static _Thread_local unsigned int thread_number __attribute__((tls_model("initial-exec"))) = LCORE_ID_ANY;

static ssize_t write_log(void *cookie, const char *text, size_t length)
{
    (void)cookie;
    namehop_log sink = log_sink;
    if (sink != NULL) {
        int level = rte_log_cur_msg_loglevel();
        sink(level < 0 ? RTE_LOG_INFO : (uint32_t)level, text, length);
    }
    return (ssize_t)length;
}

/* Directs DPDK's log to `log_sink`. Returns 0, or a negative errno. */
static int open_log(void)
{
    if (log_stream != NULL)
        return 0;
    cookie_io_functions_t functions = {.write = write_log};
    FILE *stream = fopencookie(NULL, "w", functions);
    if (stream == NULL)
        return -errno;
    /* Buffer by line, so that the log function receives whole lines. */
    setvbuf(stream, NULL, _IOLBF, BUFSIZ);
    FILE *none = NULL;
    if (atomic_compare_exchange_strong(&log_stream, &none, stream))
        rte_openlog_stream(stream);
    else
        fclose(stream);
    return 0;
}

int namehop_eal_start(int argc, char **argv, namehop_log log)
{
    int result = open_log();
    if (result < 0)
        return result;
    log_sink = log;
    if (rte_eal_init(argc, argv) < 0)
        return rte_errno > 0 ? -rte_errno : -EIO;
    return 0;
}

int namehop_thread_register(void)
{
    /* The thread that started DPDK is registered. */
    int is_new = rte_lcore_id() == LCORE_ID_ANY && rte_thread_register() == 0;
    thread_number = rte_lcore_id();
    return is_new;
}

void namehop_thread_unregister(void)
{
    thread_number = LCORE_ID_ANY;
    rte_thread_unregister();
}

struct rte_mempool *namehop_mempool_create(const char *name, uint32_t count, uint16_t room_bytes, int *error)
{
    /* Threads may share CPUs. With this kind of ring, a thread that is preempted during an enqueue or dequeue does
     * not block the others. */
    uint32_t cached = count / 4 < CACHED_PACKETS ? count / 4 : CACHED_PACKETS;
    struct rte_mempool *pool =
        rte_pktmbuf_pool_create_by_ops(name, count, cached, 0, room_bytes, SOCKET_ID_ANY, "ring_mt_rts");
    *error = pool == NULL ? -rte_errno : 0;
    return pool;
}

void namehop_mempool_free(struct rte_mempool *pool) { rte_mempool_free(pool); }

uint32_t namehop_mempool_in_use(const struct rte_mempool *pool) { return rte_mempool_in_use_count(pool); }

static struct rte_mempool_cache *cache_of_thread(struct rte_mempool *pool)
{
    return rte_mempool_default_cache(pool, thread_number);
}

/* Packets have one segment and one owner. So `next`, in the second cache line, is always null, as in a free mbuf,
 * and is not read: this saves one cache line per packet. */
struct rte_mbuf *namehop_mbuf_allocate(struct rte_mempool *pool)
{
    void *object;
    if (rte_mempool_generic_get(pool, &object, 1, cache_of_thread(pool)) != 0)
        return NULL;
    struct rte_mbuf *packet = object;
    rte_pktmbuf_reset_headroom(packet);
    packet->port = RTE_MBUF_PORT_INVALID;
    packet->ol_flags = 0;
    packet->packet_type = 0;
    packet->pkt_len = 0;
    packet->data_len = 0;
    return packet;
}

void namehop_mbuf_free(struct rte_mbuf *packet)
{
    struct rte_mempool *pool = packet->pool;
    void *object = packet;
    rte_mempool_generic_put(pool, &object, 1, cache_of_thread(pool));
}

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

__attribute__((visibility("default"))) const struct namehop_dpdk_functions *namehop_dpdk_functions(void)
{
    static const struct namehop_dpdk_functions functions = {
        .version = NAMEHOP_DPDK_VERSION,
        .mbuf_allocate = namehop_mbuf_allocate,
        .mbuf_free = namehop_mbuf_free,
        .nic_receive = namehop_nic_receive,
        .nic_waiting = namehop_nic_waiting,
        .nic_send = namehop_nic_send,
        .ring_push = namehop_ring_push,
        .ring_pop = namehop_ring_pop,
        .eal_start = namehop_eal_start,
        .thread_register = namehop_thread_register,
        .thread_unregister = namehop_thread_unregister,
        .mempool_create = namehop_mempool_create,
        .mempool_free = namehop_mempool_free,
        .mempool_in_use = namehop_mempool_in_use,
        .ring_create = namehop_ring_create,
        .ring_free = namehop_ring_free,
        .nic_open = namehop_nic_open,
        .nic_close = namehop_nic_close,
        .nic_has_link = namehop_nic_has_link,
        .nic_is_removed = namehop_nic_is_removed,
        .nic_set_groups = namehop_nic_set_groups,
        .nic_receive_all_groups = namehop_nic_receive_all_groups,
        .nic_receive_everything = namehop_nic_receive_everything,
        .nic_receive_vlan = namehop_nic_receive_vlan,
        .nic_losses = namehop_nic_losses,
        .nic_add_rule = namehop_nic_add_rule,
        .nic_remove_rule = namehop_nic_remove_rule,
    };
    return &functions;
}
