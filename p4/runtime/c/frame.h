/* Packets that compiled programs process in place, with DPDK's memory layout. */
#ifndef P4_FRAME_H
#define P4_FRAME_H

#include <stdint.h>

/* A packet of one segment in memory that the caller owns. There are P4_HEADROOM bytes of room in front of it, and
   P4_SLACK readable and writable bytes behind it. The layout is that of DPDK's struct rte_mbuf, which all packets in
   Namehop have, so packets are passed to a program and back without copying. */
#define P4_HEADROOM 128
struct p4_frame {
    /* First byte of its memory. */
    uint8_t *storage;
    uint64_t owner;
    /* Offset of the packet in its storage. */
    uint16_t offset;
    uint16_t references, segments;
    /* Ingress port, then egress port; P4_DROPPED if it does not leave. */
    uint16_t port;
    uint64_t flags;
    uint32_t type;
    /* Bytes in all segments, and in this one; both are the same. */
    uint32_t whole_length;
    uint16_t length;
};
#define P4_DROPPED UINT16_MAX
/* The longest packet that has room for longer headers. */
#define P4_LONGEST_FRAME (UINT16_MAX - 2 * P4_HEADROOM)

static inline uint8_t *p4_frame_data(const struct p4_frame *frame)
{
    return frame->storage + frame->offset;
}

#endif
