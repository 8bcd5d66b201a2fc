/*
 * The strategy reject as a program: every Interest is answered with Nack NoRoute.
 */
#include "namehop_strategy.h"

NAMEHOP_STRATEGY("reject-ebpf", 1, "no next hop; every Interest is answered with Nack NoRoute",
                 NAMEHOP_ON(NAMEHOP_INTEREST), 0);

NAMEHOP_PROGRAM(context)
{
    namehop_no_route(context);
    return 0;
}
