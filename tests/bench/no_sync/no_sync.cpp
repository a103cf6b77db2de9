// Loaded in front of libc (LD_PRELOAD), it makes a server believe that its bytes are on disk: the
// control that shows what the disk costs. Nothing that is shipped has such a switch.
#include <unistd.h>

extern "C" int fsync(int) { return 0; }
extern "C" int fdatasync(int) { return 0; }
