// Ctrl-C and its like as a question.
#ifndef PARTITA_RUNTIME_TRAIN_STOP_SIGNAL_H_
#define PARTITA_RUNTIME_TRAIN_STOP_SIGNAL_H_

#include <csignal>
#include <string>

namespace partita::train {

// While it lives, the first SIGINT, SIGTERM or SIGUSR1 is remembered; the
// second, half a second later or more, ends the process as if nobody had asked.
// (mpirun passes SIGUSR1 and SIGTERM on to all processes; schedulers announce
// the end of a job by one of them.) One at a time.
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
