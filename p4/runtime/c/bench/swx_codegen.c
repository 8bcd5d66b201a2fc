/* Writes the C code that DPDK's P4 engine (SWX) generates from a specification. */
#include <rte_swx_pipeline.h>
#include <stdio.h>

int main(int given, char **arguments)
{
    const char *why = "";
    uint32_t line = 0;
    FILE *from, *to;
    if (given != 3) {
        fprintf(stderr, "usage: swx_codegen SPECIFICATION C-FILE\n");
        return 2;
    }
    from = fopen(arguments[1], "r");
    to = fopen(arguments[2], "w");
    if (!from || !to) {
        fprintf(stderr, "cannot open the files for SWX\n");
        return 1;
    }
    if (rte_swx_pipeline_codegen(from, to, &line, &why) != 0) {
        fprintf(stderr, "SWX rejects line %u of the specification: %s\n", line, why ? why : "");
        return 1;
    }
    return fclose(to) == 0 ? 0 : 1;
}
