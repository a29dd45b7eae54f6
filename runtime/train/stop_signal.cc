// A handler that sets a flag, once.
#include "runtime/train/stop_signal.h"

#include <cstddef>

namespace partita::train {
namespace {

constexpr int kSignals[] = {SIGINT, SIGTERM, SIGUSR1};
volatile std::sig_atomic_t caught = 0;

void Remember(int number) { caught = number; }

}  // namespace

StopSignal::StopSignal() {
  caught = 0;
  struct sigaction action = {};
  action.sa_handler = &Remember;
  // Reads and writes go on; the handler itself is gone after its first signal.
  action.sa_flags = static_cast<int>(SA_RESTART | SA_RESETHAND);
  sigemptyset(&action.sa_mask);
  for (size_t i = 0; i < std::size(kSignals); ++i)
    sigaction(kSignals[i], &action, &before_[i]);
}

StopSignal::~StopSignal() {
  for (size_t i = 0; i < std::size(kSignals); ++i)
    sigaction(kSignals[i], &before_[i], nullptr);
}

bool StopSignal::Caught() const { return caught != 0; }

std::string StopSignal::Name() const {
  switch (caught) {
    case SIGINT:
      return "SIGINT";
    case SIGTERM:
      return "SIGTERM";
    case SIGUSR1:
      return "SIGUSR1";
    default:
      return "";
  }
}

}  // namespace partita::train
