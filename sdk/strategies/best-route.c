/*
 * The strategy best-route as a program: the next hop of lowest cost; retransmissions try the others.
 */
#include "namehop_strategy.h"

NAMEHOP_STRATEGY("best-route-ebpf", 5, "lowest-cost next hop; retransmissions try the others",
                 NAMEHOP_ON(NAMEHOP_INTEREST), NAMEHOP_SUPPRESSES);

NAMEHOP_PROGRAM(context)
{
    namehop_u64 decision = namehop_decide(context);
    if (decision == NAMEHOP_SUPPRESS)
        return 0;
    if (decision == NAMEHOP_NEW) {
        namehop_u64 cheapest = namehop_first_eligible(context);
        if (cheapest != 0)
            namehop_forward(context, cheapest);
        else
            namehop_no_route(context);
        return 0;
    }
    namehop_u64 eligible = namehop_eligible(context);
    namehop_u64 unused = eligible & ~namehop_used(context);
    namehop_forward(context, unused != 0 ? namehop_first(unused) : namehop_oldest(context, eligible));
    return 0;
}
