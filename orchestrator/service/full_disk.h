// What is said of a disk that is full, and to whom at once.
#pragma once

#include "orchestrator/protocol/error.h"
#include "orchestrator/store/store.h"

namespace permit::service {

inline Error disk_full() {
  return resource_exhausted("DISK_FULL",
                            "the disk is full; nothing of this request was done, try again when "
                            "there is space");
}

// Before something new is begun: what is left of the disk is for ending what there is.
inline void require_space(const store::Store& store) {
  if (store.reserve_used()) throw disk_full();
}

}  // namespace permit::service
