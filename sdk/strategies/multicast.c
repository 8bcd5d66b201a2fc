/*
 * The strategy multicast as a program: all next hops; a new next hop gets the pending Interests.
 */
#include "namehop_strategy.h"

NAMEHOP_STRATEGY("multicast-ebpf", 5, "all next hops; a new next hop gets the pending Interests",
                 NAMEHOP_ON(NAMEHOP_INTEREST) | NAMEHOP_ON(NAMEHOP_NEW_NEXT_HOP), NAMEHOP_SUPPRESSES);

NAMEHOP_PROGRAM(context)
{
    if (context->event == NAMEHOP_INTEREST)
        namehop_forward_unsuppressed(context, ~0ull);
    else
        namehop_forward(context, namehop_next_hop_of(context, context->subject) & ~namehop_used(context));
    return 0;
}
