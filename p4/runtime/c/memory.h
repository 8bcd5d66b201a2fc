/* Memory of tables: large regions of address space that are filled on use, and blocks of cache lines in them. */
#ifndef P4_MEMORY_H
#define P4_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Zeroed memory; ends the process if there is none. */
void *p4_memory(size_t bytes);
void *p4_memory_again(void *before, size_t bytes);

/* Reserves zeroed address space, aligned to a cache line, on huge pages if the system provides them. Memory is
   allocated page by page when it is first written to. Returns NULL if there is none. */
void *p4_region_new(size_t bytes);
void p4_region_free(void *region, size_t bytes);

/* Blocks of 64, 128, 256 … bytes, named by the number of their first cache line. Number 0 stands for no block. */
#define P4_ARENA_CLASSES 17
struct p4_arena {
    uint8_t *base;
    size_t bytes;
    /* In cache lines. */
    uint64_t used, limit;
    uint64_t free[P4_ARENA_CLASSES];
};

/* Returns false if there is no address space. */
bool p4_arena_new(struct p4_arena *arena, size_t bytes);
void p4_arena_end(struct p4_arena *arena);
/* Takes a block of at least this size, with arbitrary content. Returns 0 if the arena is full. */
uint64_t p4_arena_take(struct p4_arena *arena, size_t bytes);
void p4_arena_give(struct p4_arena *arena, uint64_t line, size_t bytes);

static inline void *p4_arena_at(const struct p4_arena *arena, uint64_t line)
{
    return arena->base + line * 64;
}

#endif
