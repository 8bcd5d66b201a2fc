/*
 * The strategy sequential as a program: each retransmission goes to the next hop after the last one, by cost.
 */
#include "namehop_strategy.h"

NAMEHOP_STRATEGY("sequential-ebpf", 1, "lowest-cost next hop; each retransmission goes to the next one by cost",
                 NAMEHOP_ON(NAMEHOP_INTEREST), NAMEHOP_SUPPRESSES);

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
    namehop_u64 behind = eligible & ~(namehop_u64)context->interest_scratch[0];
    namehop_u64 chosen = namehop_first(behind != 0 ? behind : eligible);
    context->interest_scratch[0] = chosen | (chosen - 1);
    namehop_forward(context, chosen);
    return 0;
}
