// A handler sets a flag. A tool that stops a process group may send the signal
// to each process and to the group, so a signal that follows at once counts as
// the same one.
#include "runtime/train/stop_signal.h"

#include <time.h>

#include <cstddef>

namespace partita::train {
namespace {

constexpr int kSignals[] = {SIGINT, SIGTERM, SIGUSR1};
volatile std::sig_atomic_t caught = 0;

volatile int64_t caught_ms = 0;
constexpr int64_t kSameMs = 500;

int64_t NowMs() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return int64_t{now.tv_sec} * 1000 + now.tv_nsec / 1000000;
}

void Remember(int number) {
  if (caught == 0) {
    caught_ms = NowMs();
    caught = number;
  } else if (NowMs() - caught_ms >= kSameMs) {
    signal(number, SIG_DFL);
    raise(number);
  }
}

}  // namespace

StopSignal::StopSignal() {
  caught = 0;
  struct sigaction action = {};
  action.sa_handler = &Remember;
  action.sa_flags = SA_RESTART;  // reads and writes continue
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
