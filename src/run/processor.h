/* Name of the processor as the system reports it. */
#ifndef CANVAS_RUN_PROCESSOR_H
#define CANVAS_RUN_PROCESSOR_H

/* E.g. "AMD EPYC 9B45"; without a name, the part number or ""; freed with mem_free. */
char *processor_name(void);

#endif
