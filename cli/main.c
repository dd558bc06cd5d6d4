// The canvas command. All of it is canvas_main() in the library, so that the Python package has the
// same command line.
#include "canvas.h"

int main(int argc, char **argv) {
  return canvas_main(argc, argv);
}
