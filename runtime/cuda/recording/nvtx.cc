// NVTX's functions, logged like the driver's.
#include "runtime/cuda/recording/queue.h"

using namespace partita::cuda;
using namespace partita::cuda::recording;

#pragma GCC visibility push(default)
extern "C" {

int nvtxRangePushA(const char* name) {
  Machine& machine = Machine::Get();
  const std::lock_guard<std::recursive_mutex> lock(machine.mutex);
  machine.Enter("nvtxRangePushA", name);
  return 0;
}
int nvtxRangePop() {
  Machine& machine = Machine::Get();
  const std::lock_guard<std::recursive_mutex> lock(machine.mutex);
  machine.Enter("nvtxRangePop");
  return 0;
}

}  // extern "C"
#pragma GCC visibility pop
