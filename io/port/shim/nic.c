/*
 * Network cards that DPDK drivers serve (ethdev), each with as many transmit queues as receive queues. The only state
 * is the set of cards that the kernel has asked to be closed.
 */
#include "shim.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>

#include <rte_dev.h>
#include <rte_errno.h>
#include <rte_ethdev.h>
#include <rte_mbuf.h>

/* Written by DPDK's interrupt thread, read by others. */
static atomic_bool is_wanted_back[RTE_MAX_ETHPORTS];

static void note_removal(const char *name, enum rte_dev_event_type event, void *argument)
{
    (void)argument;
    uint16_t number;
    if (event == RTE_DEV_EVENT_REMOVE && rte_eth_dev_get_port_by_name(name, &number) == 0)
        atomic_store(&is_wanted_back[number], true);
}

/* Spread UDP packets by addresses and ports; cards that support only one kind of packet, by the IP fields that they
 * support. */
#define SPREAD_UDP (RTE_ETH_RSS_NONFRAG_IPV4_UDP | RTE_ETH_RSS_NONFRAG_IPV6_UDP)
#define SPREAD (SPREAD_UDP | RTE_ETH_RSS_IPV4 | RTE_ETH_RSS_IPV6)

static uint16_t least(uint16_t a, uint16_t b) { return a < b ? a : b; }

static int start(uint16_t number, const struct namehop_nic_source *source, uint16_t queues, struct rte_mempool *pool,
                 struct namehop_nic *nic)
{
    struct rte_eth_conf configuration = {.rxmode = {.mtu = source->mtu_bytes}};
    uint16_t receive_slots = source->slots, send_slots = source->slots;
    struct rte_ether_addr address;
    int socket = rte_eth_dev_socket_id(number);
    unsigned int memory = socket < 0 ? (unsigned int)SOCKET_ID_ANY : (unsigned int)socket;
    struct rte_eth_dev_info info;
    int result = rte_eth_dev_info_get(number, &info);
    /* The virtio driver receives only frames with the tags of configured VLANs, even if no filter was requested. */
    if (result == 0 && strcmp(info.driver_name, "net_virtio") == 0)
        configuration.rxmode.offloads = info.rx_offload_capa & RTE_ETH_RX_OFFLOAD_VLAN_FILTER;
    if (result == 0) {
        queues = least(queues, least(info.max_rx_queues, info.max_tx_queues));
        queues = queues == 0 ? 1 : queues;
        uint64_t spread = queues > 1 ? info.flow_type_rss_offloads & SPREAD : 0;
        if (spread != 0) {
            configuration.rxmode.mq_mode = RTE_ETH_MQ_RX_RSS;
            configuration.rx_adv_conf.rss_conf.rss_hf = spread;
        }
        nic->spreads = spread != 0;
        result = rte_eth_dev_configure(number, queues, queues, &configuration);
    }
    if (result == 0)
        result = rte_eth_dev_adjust_nb_rx_tx_desc(number, &receive_slots, &send_slots);
    for (uint16_t queue = 0; queue < queues && result == 0; queue++) {
        result = rte_eth_rx_queue_setup(number, queue, receive_slots, memory, NULL, pool);
        if (result == 0)
            result = rte_eth_tx_queue_setup(number, queue, send_slots, memory, NULL);
    }
    if (result == 0)
        result = rte_eth_dev_start(number);
    /* VLAN 0: tags that carry only a priority. */
    if (result == 0)
        result = namehop_nic_receive_vlan(number, 0, 1);
    if (result == 0)
        result = rte_eth_macaddr_get(number, &address);
    if (result == 0)
        result = rte_eth_dev_get_mtu(number, &nic->mtu_bytes);
    if (result != 0)
        return result;
    nic->number = number;
    nic->queues = queues;
    memcpy(nic->address, address.addr_bytes, sizeof nic->address);
    return 0;
}

int namehop_nic_open(const struct namehop_nic_source *source, const struct rte_mbuf *sample, struct namehop_nic *nic)
{
    uint16_t number;
    if (sample->pool == NULL)
        return -ENOMEM;
    if (rte_eth_dev_get_port_by_name(source->name, &number) == 0)
        return -EBUSY;
    int result = rte_eal_hotplug_add(source->bus, source->name, source->arguments);
    if (result != 0)
        return result;
    result = rte_eth_dev_get_port_by_name(source->name, &number);
    if (result != 0) {
        /* A driver took the device, but it is not a network device. */
        rte_eal_hotplug_remove(source->bus, source->name);
        return result;
    }
    atomic_store(&is_wanted_back[number], false);
    result = rte_dev_event_callback_register(source->name, note_removal, NULL);
    if (result == 0 || result == -EEXIST)
        result = start(number, source, source->queues, sample->pool, nic);
    /* Drivers report more queues than some devices have: retry with one. */
    if (result != 0 && source->queues > 1 && rte_eth_dev_is_valid_port(number)) {
        rte_eth_dev_stop(number);
        result = start(number, source, 1, sample->pool, nic);
    }
    if (result != 0)
        namehop_nic_close(number, source->bus, source->name);
    return result;
}

void namehop_nic_close(uint16_t number, const char *bus, const char *name)
{
    rte_dev_event_callback_unregister(name, note_removal, NULL);
    rte_eth_dev_stop(number);
    rte_eth_dev_close(number);
    rte_eal_hotplug_remove(bus, name);
}

int namehop_nic_has_link(uint16_t number)
{
    struct rte_eth_link link = {0};
    return rte_eth_link_get_nowait(number, &link) == 0 && link.link_status == RTE_ETH_LINK_UP;
}

int namehop_nic_is_removed(uint16_t number)
{
    return number < RTE_MAX_ETHPORTS && (atomic_load(&is_wanted_back[number]) || rte_eth_dev_is_removed(number));
}

int namehop_nic_set_groups(uint16_t number, uint8_t (*groups)[6], uint32_t count)
{
    if (rte_eth_dev_set_mc_addr_list(number, (struct rte_ether_addr *)groups, count) == 0)
        return 0;
    /* If the card's filter is too small, or it has none, receive all groups. */
    return count == 0 ? rte_eth_allmulticast_disable(number) : rte_eth_allmulticast_enable(number);
}

int namehop_nic_receive_all_groups(uint16_t number) { return rte_eth_allmulticast_enable(number); }

int namehop_nic_receive_everything(uint16_t number) { return rte_eth_promiscuous_enable(number); }

int namehop_nic_receive_vlan(uint16_t number, uint16_t vlan, int is_wanted)
{
    struct rte_eth_conf configuration;
    int result = rte_eth_dev_conf_get(number, &configuration);
    if (result != 0 || !(configuration.rxmode.offloads & RTE_ETH_RX_OFFLOAD_VLAN_FILTER))
        return result;
    return rte_eth_dev_vlan_filter(number, vlan, is_wanted);
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

/* Turns each of `count` frames into one segment, and removes the frames that do not fit into one. */
static uint16_t join_segments(struct rte_mbuf **packets, uint16_t count, uint32_t *malformed)
{
    uint16_t kept = 0;
    for (uint16_t i = 0; i < count; i++) {
        if (packets[i]->nb_segs == 1 || rte_pktmbuf_linearize(packets[i]) == 0)
            packets[kept++] = packets[i];
        else
            rte_pktmbuf_free(packets[i]);
    }
    *malformed += count - kept;
    return kept;
}

uint16_t namehop_nic_receive(uint16_t number, uint16_t queue, struct rte_mbuf **packets, uint16_t count, uint32_t *malformed)
{
    uint16_t received = rte_eth_rx_burst(number, queue, packets, count);
    bool is_plain = true;
    for (uint16_t i = 0; i < received; i++)
        is_plain &= packets[i]->nb_segs == 1;
    return is_plain ? received : join_segments(packets, received, malformed);
}

uint16_t namehop_nic_waiting(uint16_t number, uint16_t queue)
{
    int waiting = rte_eth_rx_queue_count(number, queue);
    return waiting < 0 ? 0 : (uint16_t)waiting;
}

uint16_t namehop_nic_send(uint16_t number, uint16_t queue, struct rte_mbuf **packets, uint16_t count)
{
    return rte_eth_tx_burst(number, queue, packets, count);
}
