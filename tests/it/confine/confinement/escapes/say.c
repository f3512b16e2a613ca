// A program and a library that say that they run.
#include <unistd.h>

__attribute__((constructor)) static void say(void) {
    if (write(1, "through\n", 8) < 0) _exit(1);
}

#ifndef LIBRARY
int main(void) { return 0; }
#endif
