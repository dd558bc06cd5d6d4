/* Which processor this is, by the name that the system gives it. */
#ifndef CANVAS_RUN_PROCESSOR_H
#define CANVAS_RUN_PROCESSOR_H

/* "AMD EPYC 9B45", where there is no name its part number, or ""; freed with mem_free. */
char *processor_name(void);

#endif
