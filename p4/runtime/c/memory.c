/* Memory of tables. */
#define _GNU_SOURCE
#include "memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define HUGE_PAGE ((size_t)2 << 20)
/* Smaller regions use ordinary memory. */
#define SMALL ((size_t)64 << 10)

void *p4_memory_again(void *before, size_t bytes)
{
    void *memory = realloc(before, bytes ? bytes : 1);
    if (!memory) {
        fprintf(stderr, "out of memory\n");
        exit(3);
    }
    return memory;
}

void *p4_memory(size_t bytes)
{
    void *memory = calloc(1, bytes ? bytes : 1);
    if (!memory) {
        fprintf(stderr, "out of memory\n");
        exit(3);
    }
    return memory;
}

/* Regions smaller than a huge page are aligned to a page, larger ones to a huge page. */
static size_t rounded(size_t bytes)
{
    size_t unit = bytes >= HUGE_PAGE ? HUGE_PAGE : 4096;
    return (bytes + unit - 1) / unit * unit;
}

void *p4_region_new(size_t bytes)
{
    size_t whole = rounded(bytes), extra = whole >= HUGE_PAGE ? HUGE_PAGE : 0, before;
    uint8_t *region;
    if (whole < bytes)
        return NULL;
    if (bytes < SMALL) {
        region = aligned_alloc(64, (bytes + 63) / 64 * 64);
        return region ? memset(region, 0, bytes) : NULL;
    }
    region = mmap(NULL, whole + extra, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (region == MAP_FAILED)
        return NULL;
    if (!extra)
        return region;
    before = (HUGE_PAGE - (uintptr_t)region % HUGE_PAGE) % HUGE_PAGE;
    if (before)
        munmap(region, before);
    if (extra - before)
        munmap(region + before + whole, extra - before);
    /* Without huge pages everything works too, but slower. */
    (void)madvise(region + before, whole, MADV_HUGEPAGE);
    return region + before;
}

void p4_region_free(void *region, size_t bytes)
{
    if (bytes < SMALL)
        free(region);
    else if (region)
        munmap(region, rounded(bytes));
}

bool p4_arena_new(struct p4_arena *arena, size_t bytes)
{
    *arena = (struct p4_arena){.bytes = bytes, .used = 1, .limit = bytes / 64};
    arena->base = p4_region_new(bytes);
    return arena->base != NULL;
}

void p4_arena_end(struct p4_arena *arena)
{
    p4_region_free(arena->base, arena->bytes);
    *arena = (struct p4_arena){0};
}

static unsigned class_of(size_t bytes)
{
    unsigned class = 0;
    while (((size_t)64 << class) < bytes)
        class++;
    return class;
}

uint64_t p4_arena_take(struct p4_arena *arena, size_t bytes)
{
    unsigned class = class_of(bytes);
    uint64_t line;
    if (class >= P4_ARENA_CLASSES)
        return 0;
    line = arena->free[class];
    if (line) {
        memcpy(&arena->free[class], p4_arena_at(arena, line), sizeof line);
        return line;
    }
    if (arena->limit - arena->used < (uint64_t)1 << class)
        return 0;
    line = arena->used;
    arena->used += (uint64_t)1 << class;
    return line;
}

void p4_arena_give(struct p4_arena *arena, uint64_t line, size_t bytes)
{
    unsigned class = class_of(bytes);
    memcpy(p4_arena_at(arena, line), &arena->free[class], sizeof line);
    arena->free[class] = line;
}
