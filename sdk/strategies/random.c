/*
 * The strategy random as a program: one next hop, chosen at random.
 */
#include "namehop_strategy.h"

NAMEHOP_STRATEGY("random-ebpf", 1, "one next hop, chosen at random", NAMEHOP_ON(NAMEHOP_INTEREST), NAMEHOP_SUPPRESSES);

NAMEHOP_PROGRAM(context)
{
    namehop_u64 decision = namehop_decide(context);
    if (decision == NAMEHOP_SUPPRESS)
        return 0;
    namehop_u64 eligible = namehop_eligible(context);
    if (eligible != 0)
        namehop_forward(context, namehop_pick(eligible, namehop_random(context)));
    else if (decision == NAMEHOP_NEW)
        namehop_no_route(context);
    return 0;
}
