// partita-run train as a process of its own, for tests that disturb it.
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
  // `program` is partita-run.
  TrainProcess(const std::string& program,
               const std::vector<std::string>& arguments);
  ~TrainProcess();  // ends it, if nobody has
  TrainProcess(const TrainProcess&) = delete;
  TrainProcess& operator=(const TrainProcess&) = delete;

  pid_t id() const { return id_; }
  // What it has said until now, on standard output and error.
  std::string Said();
  // False if it ends, or a minute goes by, before it has said `text` at `from`
  // or later.
  bool WaitUntilSaid(const std::string& text, size_t from = 0);
  // Whether it is there still.
  bool Runs();
  void Send(int signal);
  // Its exit code, or less than 0: the signal that ended it.
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

// A training program of batches of 256 rows, and its data, in a folder.
struct TrainFiles {
  std::string folder;

  static absl::Status Write(const std::string& folder);
  std::string Path(const std::string& name) const {
    return folder + "/" + name;
  }
  // For partita-run; its log is NAME.jsonl, its checkpoints lie in NAME. They
  // are resumed. `checkpoint_every` 0: only the last step is saved.
  std::vector<std::string> Arguments(const std::string& name, int64_t steps,
                                     int64_t checkpoint_every) const;
  std::string Log(const std::string& name) const {
    return Path(name + ".jsonl");
  }
};

// The losses of a log's whole lines, by step. A line that is none of a step,
// and steps out of order, are errors of the test.
std::map<int64_t, double> ReadLosses(const std::string& log);

// The number of whole lines.
int64_t CountLines(const std::string& file);

// All of it; empty if there is none.
std::string ReadFile(const std::string& file);

}  // namespace partita::tools

#endif  // PARTITA_RUNTIME_TOOLS_TRAIN_PROCESS_TESTING_H_
