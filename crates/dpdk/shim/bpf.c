/*
 * eBPF programs: DPDK's verifier and its compiler for this processor.
 */
#include "shim.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include <rte_bpf.h>
#include <rte_errno.h>

_Static_assert(sizeof(struct ebpf_insn) == 8, "bytes of an instruction");
_Static_assert(NAMEHOP_BPF_MAX_ARGUMENTS == EBPF_FUNC_MAX_ARGS, "arguments of a helper");

/*
 * Helpers are called through functions of this file. Programs that DPDK has compiled for x86-64 call with a stack pointer that is
 * not always a multiple of 16, as the calling convention demands; these functions make it one.
 */
#if defined(__x86_64__)
#define ALIGNS_STACK __attribute__((force_align_arg_pointer))
#else
#define ALIGNS_STACK
#endif

#define MAX_FUNCTIONS 64
static namehop_bpf_function functions[MAX_FUNCTIONS];
static uint32_t function_count;
static pthread_mutex_t functions_lock = PTHREAD_MUTEX_INITIALIZER;

#define CALL(n)                                                                                        \
    ALIGNS_STACK static uint64_t call_##n(uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t e) \
    {                                                                                                  \
        return functions[n](a, b, c, d, e);                                                            \
    }
#define CALLS(n) CALL(n##0) CALL(n##1) CALL(n##2) CALL(n##3) CALL(n##4) CALL(n##5) CALL(n##6) CALL(n##7)
/* Octal numbers: eight in each row. */
CALLS(00) CALLS(01) CALLS(02) CALLS(03) CALLS(04) CALLS(05) CALLS(06) CALLS(07)

#define NAMES(n) call_##n##0, call_##n##1, call_##n##2, call_##n##3, call_##n##4, call_##n##5, call_##n##6, call_##n##7
static const namehop_bpf_function calls[MAX_FUNCTIONS] = {
    NAMES(00), NAMES(01), NAMES(02), NAMES(03), NAMES(04), NAMES(05), NAMES(06), NAMES(07),
};

/* The function of this file that calls `function`; NULL when there are too many. */
static namehop_bpf_function call_of(namehop_bpf_function function)
{
    pthread_mutex_lock(&functions_lock);
    uint32_t place = 0;
    while (place < function_count && functions[place] != function)
        place++;
    if (place == function_count && place < MAX_FUNCTIONS) {
        functions[place] = function;
        function_count++;
    }
    pthread_mutex_unlock(&functions_lock);
    return place < MAX_FUNCTIONS ? calls[place] : NULL;
}

static struct rte_bpf_arg argument(uint32_t bytes)
{
    struct rte_bpf_arg number = {.type = RTE_BPF_ARG_RAW, .size = sizeof(uint64_t)};
    struct rte_bpf_arg pointer = {.type = RTE_BPF_ARG_PTR, .size = bytes};
    return bytes == 0 ? number : pointer;
}

/* Does the system let this process run instructions that it has written into memory, as DPDK's compiler does it? */
static int may_run_written_instructions(void)
{
    size_t bytes = (size_t)sysconf(_SC_PAGESIZE);
    void *page = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_ANONYMOUS | MAP_PRIVATE, -1, 0);
    if (page == MAP_FAILED)
        return 1;
    int result = mprotect(page, bytes, PROT_READ | PROT_EXEC);
    munmap(page, bytes);
    return result == 0;
}

int namehop_bpf_load(const void *instructions, uint32_t count, uint32_t context_bytes,
                     const struct namehop_bpf_helper *helpers, uint32_t helper_count, struct namehop_bpf_loaded *loaded,
                     char *text, size_t text_bytes)
{
    text[0] = 0;
    int result = namehop_log_open();
    if (result < 0)
        return result;
    struct rte_bpf_xsym *symbols = calloc(helper_count + 1, sizeof(symbols[0]));
    if (symbols == NULL)
        return -ENOMEM;
    for (uint32_t i = 0; i < helper_count; i++) {
        const struct namehop_bpf_helper *helper = &helpers[i];
        struct rte_bpf_xsym *symbol = &symbols[i];
        symbol->name = helper->name;
        symbol->type = RTE_BPF_XTYPE_FUNC;
        symbol->func.val = call_of(helper->function);
        symbol->func.nb_args = helper->argument_count;
        for (uint32_t j = 0; j < helper->argument_count; j++)
            symbol->func.args[j] = argument(helper->argument_bytes[j]);
        symbol->func.ret = argument(helper->result_bytes);
        if (symbol->func.val == NULL) {
            free(symbols);
            return -ENOSPC;
        }
    }
    struct rte_bpf_prm parameters = {
        .ins = instructions,
        .nb_ins = count,
        .xsym = symbols,
        .nb_xsym = helper_count,
        .prog_arg = argument(context_bytes),
    };
    namehop_log_capture(text, text_bytes);
    struct rte_bpf *program = rte_bpf_load(&parameters);
    result = program == NULL ? -rte_errno : 0;
    namehop_log_capture(NULL, 0);
    free(symbols);
    if (program == NULL)
        return result < 0 ? result : -EINVAL;
    struct rte_bpf_jit compiled = {0};
    if (rte_bpf_get_jit(program, &compiled) != 0 || compiled.func == NULL) {
        rte_bpf_destroy(program);
        return may_run_written_instructions() ? -ENOTSUP : -EACCES;
    }
    loaded->program = program;
    loaded->entry = compiled.func;
    loaded->bytes = compiled.sz;
    return 0;
}

void namehop_bpf_destroy(struct rte_bpf *program) { rte_bpf_destroy(program); }
