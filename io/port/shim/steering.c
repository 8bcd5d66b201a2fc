/*
 * Rules that steer the frames of one sender to one receive queue of a card (rte_flow). A driver that does not support a
 * rule rejects it at validation, and the card is unchanged.
 */
#include "shim.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <rte_byteorder.h>
#include <rte_errno.h>
#include <rte_ether.h>
#include <rte_flow.h>

#define ETHERTYPE_NDN 0x8624
#define VLAN_BITS 0x0FFF

/* The items of a pattern and their contents: each item has a value and a mask of the bits to compare. */
struct pattern {
    struct rte_flow_item items[5];
    struct rte_flow_item_eth ethernet[2];
    struct rte_flow_item_vlan vlan[2];
    struct rte_flow_item_ipv4 v4[2];
    struct rte_flow_item_ipv6 v6[2];
    struct rte_flow_item_udp udp[2];
    unsigned int count;
};

static void add(struct pattern *pattern, enum rte_flow_item_type type, const void *value_and_mask, size_t bytes)
{
    pattern->items[pattern->count++] = (struct rte_flow_item){
        .type = type,
        .spec = value_and_mask,
        .mask = value_and_mask == NULL ? NULL : (const char *)value_and_mask + bytes,
    };
}

static void describe(struct pattern *pattern, const struct namehop_nic_rule *rule)
{
    memset(pattern, 0, sizeof *pattern);
    if (rule->ip_version == 0) {
        memcpy(&pattern->ethernet[0].hdr.src_addr, rule->hardware_source, sizeof rule->hardware_source);
        memset(&pattern->ethernet[1].hdr.src_addr, 0xFF, sizeof rule->hardware_source);
        if (rule->vlan == 0) {
            pattern->ethernet[0].hdr.ether_type = RTE_BE16(ETHERTYPE_NDN);
            pattern->ethernet[1].hdr.ether_type = RTE_BE16(0xFFFF);
        }
        add(pattern, RTE_FLOW_ITEM_TYPE_ETH, pattern->ethernet, sizeof pattern->ethernet[0]);
    } else {
        add(pattern, RTE_FLOW_ITEM_TYPE_ETH, NULL, 0);
    }
    if (rule->vlan != 0) {
        pattern->vlan[0].hdr.vlan_tci = rte_cpu_to_be_16(rule->vlan);
        pattern->vlan[1].hdr.vlan_tci = RTE_BE16(VLAN_BITS);
        if (rule->ip_version == 0) {
            pattern->vlan[0].hdr.eth_proto = RTE_BE16(ETHERTYPE_NDN);
            pattern->vlan[1].hdr.eth_proto = RTE_BE16(0xFFFF);
        }
        add(pattern, RTE_FLOW_ITEM_TYPE_VLAN, pattern->vlan, sizeof pattern->vlan[0]);
    }
    if (rule->ip_version == 4) {
        memcpy(&pattern->v4[0].hdr.src_addr, rule->source, sizeof pattern->v4[0].hdr.src_addr);
        memcpy(&pattern->v4[0].hdr.dst_addr, rule->destination, sizeof pattern->v4[0].hdr.dst_addr);
        memset(&pattern->v4[1].hdr.src_addr, 0xFF, sizeof pattern->v4[0].hdr.src_addr);
        memset(&pattern->v4[1].hdr.dst_addr, 0xFF, sizeof pattern->v4[0].hdr.dst_addr);
        add(pattern, RTE_FLOW_ITEM_TYPE_IPV4, pattern->v4, sizeof pattern->v4[0]);
    } else if (rule->ip_version == 6) {
        memcpy(&pattern->v6[0].hdr.src_addr, rule->source, sizeof rule->source);
        memcpy(&pattern->v6[0].hdr.dst_addr, rule->destination, sizeof rule->destination);
        memset(&pattern->v6[1].hdr.src_addr, 0xFF, sizeof rule->source);
        memset(&pattern->v6[1].hdr.dst_addr, 0xFF, sizeof rule->destination);
        add(pattern, RTE_FLOW_ITEM_TYPE_IPV6, pattern->v6, sizeof pattern->v6[0]);
    }
    if (rule->ip_version != 0) {
        pattern->udp[0].hdr.dst_port = rte_cpu_to_be_16(rule->destination_port);
        pattern->udp[1].hdr.dst_port = RTE_BE16(0xFFFF);
        pattern->udp[0].hdr.src_port = rte_cpu_to_be_16(rule->source_port);
        pattern->udp[1].hdr.src_port = rule->source_port == 0 ? 0 : RTE_BE16(0xFFFF);
        add(pattern, RTE_FLOW_ITEM_TYPE_UDP, pattern->udp, sizeof pattern->udp[0]);
    }
    add(pattern, RTE_FLOW_ITEM_TYPE_END, NULL, 0);
}

int namehop_nic_add_rule(uint16_t number, const struct namehop_nic_rule *rule, struct rte_flow **flow, char *text,
                         size_t text_bytes)
{
    struct pattern pattern;
    struct rte_flow_action_queue queue = {.index = rule->queue};
    const struct rte_flow_action actions[] = {
        {.type = RTE_FLOW_ACTION_TYPE_QUEUE, .conf = &queue},
        {.type = RTE_FLOW_ACTION_TYPE_END},
    };
    const struct rte_flow_attr attributes = {.ingress = 1};
    struct rte_flow_error error = {0};
    describe(&pattern, rule);
    int result = rte_flow_validate(number, &attributes, pattern.items, actions, &error);
    if (result == 0) {
        *flow = rte_flow_create(number, &attributes, pattern.items, actions, &error);
        if (*flow == NULL)
            result = rte_errno == 0 ? -EINVAL : -rte_errno;
    }
    snprintf(text, text_bytes, "%s", result == 0 || error.message == NULL ? "" : error.message);
    return result > 0 ? -result : result;
}

int namehop_nic_remove_rule(uint16_t number, struct rte_flow *flow)
{
    struct rte_flow_error error;
    return rte_flow_destroy(number, flow, &error);
}
