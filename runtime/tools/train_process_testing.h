// Runs partita-run train as a child process, for tests that disturb it.
#ifndef PARTITA_RUNTIME_TOOLS_TRAIN_PROCESS_TESTING_H_
#define PARTITA_RUNTIME_TOOLS_TRAIN_PROCESS_TESTING_H_

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"

namespace partita::tools {

class TrainProcess {
 public:
  // `program` is the path of partita-run.
  TrainProcess(const std::string& program,
               const std::vector<std::string>& arguments);
  ~TrainProcess();  // ends it if it still runs
  TrainProcess(const TrainProcess&) = delete;
  TrainProcess& operator=(const TrainProcess&) = delete;

  pid_t id() const { return id_; }
  // Output so far, standard output and error together.
  std::string Said();
  // Waits until the output contains `text` at `from` or later. False if the
  // process ends, or after a minute.
  bool WaitUntilSaid(const std::string& text, size_t from = 0);
  // True if the process still runs.
  bool Runs();
  void Send(int signal);
  // The exit code, or, negative, the signal that ended it.
  int Wait();

 private:
  void Read(int descriptor);

  pid_t id_ = -1;
  bool ended_ = false;
  int status_ = 0;
  std::mutex mutex_;
  std::string said_;
  std::thread reader_;
};

// A training program with batches of 256 rows, and its data, in a folder.
struct TrainFiles {
  std::string folder;
  std::vector<std::string> more;  // further arguments of all runs

  static absl::Status Write(const std::string& folder);
  std::string Path(const std::string& name) const {
    return folder + "/" + name;
  }
  // Arguments for partita-run. The log is NAME.jsonl, and checkpoints are in
  // NAME and are resumed. `checkpoint_every` 0: only the last step is saved.
  std::vector<std::string> Arguments(const std::string& name, int64_t steps,
                                     int64_t checkpoint_every) const;
  std::string Log(const std::string& name) const {
    return Path(name + ".jsonl");
  }
};

// Losses by step, from the complete lines of a log. Fails the test on a line
// that does not describe a step, and on steps out of order.
std::map<int64_t, double> ReadLosses(const std::string& log);

// The number of complete lines.
int64_t CountLines(const std::string& file);

// The whole file; empty if it does not exist.
std::string ReadFile(const std::string& file);

}  // namespace partita::tools

#endif  // PARTITA_RUNTIME_TOOLS_TRAIN_PROCESS_TESTING_H_
