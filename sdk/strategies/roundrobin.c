/*
 * The strategy roundrobin as a program: next hops in round-robin order.
 */
#include "namehop_strategy.h"

NAMEHOP_STRATEGY("roundrobin-ebpf", 1, "next hops in round-robin order", NAMEHOP_ON(NAMEHOP_INTEREST), NAMEHOP_SUPPRESSES);

NAMEHOP_PROGRAM(context)
{
    namehop_u64 decision = namehop_decide(context);
    if (decision == NAMEHOP_SUPPRESS)
        return 0;
    namehop_u64 eligible = namehop_eligible(context);
    if (eligible == 0) {
        if (decision == NAMEHOP_NEW)
            namehop_no_route(context);
        return 0;
    }
    /* Set of the next hops that remain in this round: all positions after the last one. */
    namehop_u64 *next_round = namehop_prefix_scratch(context);
    namehop_u64 behind = eligible & ~next_round[0];
    namehop_u64 chosen = namehop_first(behind != 0 ? behind : eligible);
    /* Mark the chosen next hop and all before it as used in this round. */
    next_round[0] = chosen | (chosen - 1);
    namehop_forward(context, chosen);
    return 0;
}
