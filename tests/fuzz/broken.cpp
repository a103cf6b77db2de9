#include <cstdlib>
#include <iostream>

#include "tests/fuzz/targets.h"

namespace permit::fuzz {

bool every_input_alone = false;

void broken(const std::string& promise) {
  std::cerr << "BROKEN: " << promise << std::endl;
  std::abort();
}

}  // namespace permit::fuzz
