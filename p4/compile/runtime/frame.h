/* Packets as compiled programs get them: in place, and laid out as DPDK has them. */
#ifndef P4_FRAME_H
#define P4_FRAME_H

#include <stdint.h>

/* A packet in memory that others own, in one segment. There is room for P4_HEADROOM bytes before it, and P4_SLACK bytes behind it
   can be read and written. The layout is that of DPDK's struct rte_mbuf, which packets in Namehop have wherever they lie: so nothing of a packet is
   copied to give it to a program, and back. */
#define P4_HEADROOM 128
struct p4_frame {
    /* First byte of its memory. */
    uint8_t *storage;
    uint64_t owner;
    /* Where it begins in its storage. */
    uint16_t offset;
    uint16_t references, segments;
    /* Where it came in, and where it leaves; P4_DROPPED when it does not. */
    uint16_t port;
    uint64_t flags;
    uint32_t type;
    /* Bytes in all segments, and in this one, which are the same. */
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
