/* Memory of tables: large regions of address space that fill up as they are used, and blocks of cache lines in them. */
#ifndef P4_MEMORY_H
#define P4_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Memory that is zero, or the end of the process when there is none. */
void *p4_memory(size_t bytes);
void *p4_memory_again(void *before, size_t bytes);

/* Address space of so many bytes, zero, at a cache line, on huge pages where the system gives them; memory is taken page by page when it
   is written to. NULL when there is none. */
void *p4_region_new(size_t bytes);
void p4_region_free(void *region, size_t bytes);

/* Blocks of 64, 128, 256 … bytes, named by the number of their first cache line. Number 0 is none. */
#define P4_ARENA_CLASSES 17
struct p4_arena {
    uint8_t *base;
    size_t bytes;
    /* In lines. */
    uint64_t used, limit;
    uint64_t free[P4_ARENA_CLASSES];
};

/* False when there is no address space. */
bool p4_arena_new(struct p4_arena *arena, size_t bytes);
void p4_arena_end(struct p4_arena *arena);
/* A block of at least so many bytes, whatever is in it. 0 when the arena is full. */
uint64_t p4_arena_take(struct p4_arena *arena, size_t bytes);
void p4_arena_give(struct p4_arena *arena, uint64_t line, size_t bytes);

static inline void *p4_arena_at(const struct p4_arena *arena, uint64_t line)
{
    return arena->base + line * 64;
}

#endif
