/*
 * The strategy delay as a program: Interests wait before they go to the next hop of lowest cost.
 */
#include "namehop_strategy.h"

NAMEHOP_STRATEGY("delay-ebpf", 1, "lowest-cost next hop, after a delay",
                 NAMEHOP_ON(NAMEHOP_INTEREST) | NAMEHOP_ON(NAMEHOP_TIMER), NAMEHOP_SUPPRESSES);
NAMEHOP_PARAMETER(0, "delay", 100, 1, 10000, "how long Interests wait, in milliseconds");

#define WAITING 1

NAMEHOP_PROGRAM(context)
{
    if (context->event == NAMEHOP_TIMER) {
        if (context->interest_scratch[0] == WAITING)
            namehop_forward(context, namehop_first_eligible(context));
        context->interest_scratch[0] = 0;
        return 0;
    }
    namehop_u64 decision = namehop_decide(context);
    if (decision == NAMEHOP_SUPPRESS || context->interest_scratch[0] == WAITING)
        return 0;
    if (namehop_first_eligible(context) != 0) {
        context->interest_scratch[0] = WAITING;
        namehop_timer(context, context->parameters[0] * 1000);
    } else if (decision == NAMEHOP_NEW) {
        namehop_no_route(context);
    }
    return 0;
}
