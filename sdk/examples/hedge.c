/*
 * Example: sends the Interest to a second next hop if the first one does not answer in time.
 *
 * Shows timers and the memory of a pending Interest. The first next hop is the cheapest one.
 */
#include "namehop_strategy.h"

NAMEHOP_STRATEGY("hedge", 1, "lowest-cost next hop; the second one when no answer comes in time",
                 NAMEHOP_ON(NAMEHOP_INTEREST) | NAMEHOP_ON(NAMEHOP_TIMER), NAMEHOP_SUPPRESSES);
NAMEHOP_PARAMETER(0, "patience", 50, 1, 10000, "how long the first next hop has for its answer, in milliseconds");

NAMEHOP_PROGRAM(context)
{
    if (context->event == NAMEHOP_TIMER) {
        /* A timer cannot be cancelled, so ignore an obsolete one. */
        if (context->interest_scratch[0] != 0) {
            context->interest_scratch[0] = 0;
            namehop_forward(context, namehop_first(namehop_eligible(context) & ~namehop_used(context)));
        }
        return 0;
    }
    namehop_u64 decision = namehop_decide(context);
    if (decision == NAMEHOP_SUPPRESS)
        return 0;
    namehop_u64 first = namehop_first_eligible(context);
    if (first == 0) {
        if (decision == NAMEHOP_NEW)
            namehop_no_route(context);
        return 0;
    }
    if (namehop_forward(context, first) != 0) {
        context->interest_scratch[0] = 1;
        namehop_timer(context, context->parameters[0] * 1000);
    }
    return 0;
}
