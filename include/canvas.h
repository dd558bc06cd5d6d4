#ifndef CANVAS_H
#define CANVAS_H
typedef enum canvas_status { CANVAS_OK, CANVAS_NONE, CANVAS_BAD_INPUT, CANVAS_IO } canvas_status;
typedef struct canvas_context canvas_context;
#include <stddef.h>
#endif
