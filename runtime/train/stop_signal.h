// Lets a program poll for Ctrl-C and similar signals.
#ifndef PARTITA_RUNTIME_TRAIN_STOP_SIGNAL_H_
#define PARTITA_RUNTIME_TRAIN_STOP_SIGNAL_H_

#include <csignal>
#include <string>

namespace partita::train {

// Remembers the first SIGINT, SIGTERM or SIGUSR1 during its lifetime. A second
// one, at least half a second later, ends the process as by default. (mpirun
// forwards SIGUSR1 and SIGTERM to all processes; schedulers announce the end of
// a job with one of them.) Only one object at a time.
class StopSignal {
 public:
  StopSignal();
  StopSignal(const StopSignal&) = delete;
  StopSignal& operator=(const StopSignal&) = delete;
  ~StopSignal();

  bool Caught() const;
  // "SIGINT"; empty if there was none.
  std::string Name() const;

 private:
  struct sigaction before_[3];
};

}  // namespace partita::train

#endif  // PARTITA_RUNTIME_TRAIN_STOP_SIGNAL_H_
