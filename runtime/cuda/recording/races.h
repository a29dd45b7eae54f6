// Finds operations that access the same bytes without being ordered.
#ifndef PARTITA_RUNTIME_CUDA_RECORDING_RACES_H_
#define PARTITA_RUNTIME_CUDA_RECORDING_RACES_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace partita::cuda::recording {

// Operations known to be done: a number per stream. A vector clock (Mattern,
// "Virtual time and global states", 1988).
class Clock {
 public:
  void Join(const Clock& other);
  uint64_t Of(int stream) const;
  // Counts one more operation of a stream. Returns its number.
  uint64_t Tick(int stream) { return ++done_[stream]; }

 private:
  std::map<int, uint64_t> done_;
};

// Records the accesses of operations, which run one at a time. The execution
// order does not matter: an access races unless the earlier operation is known
// to be done when the other begins.
class Races {
 public:
  Races() = default;
  Races(const Races&) = delete;
  Races& operator=(const Races&) = delete;
  // Starts recording accesses.
  void Watch() { watching_ = true; }
  // Stops recording accesses. Returns whether they were recorded.
  bool Pause() { return std::exchange(watching_, false); }
  // Begins operation `number` of `stream`, which runs after all operations in
  // `before`.
  void Begin(const std::string& name, int stream, uint64_t number,
             const Clock& before);
  // Reports a race if the current operation accesses this memory.
  void Refuse(const void* memory, size_t bytes) {
    refused_ = {memory, static_cast<const char*>(memory) + bytes};
  }
  void Touch(const void* memory, size_t bytes, bool writes) {
    if (watching_ && bytes > 0) Add(memory, bytes, writes);
  }
  void End();
  // Forgets accesses to memory that is reused, and to no other.
  void Forget(const void* memory, size_t bytes);
  // Races found since the last call: for each operation that races, a line with
  // each operation that it races with, unless a later access of the same bytes
  // stands for that one. Also a line per operation that accesses memory which
  // another rank frees.
  std::string Take();

 private:
  struct Range {
    uintptr_t begin, end;
    bool writes;
  };
  struct Access : Range {
    int stream;
    uint64_t number;
    const std::string* name;  // in names_
  };
  void Add(const void* memory, size_t bytes, bool writes);
  // Sorts the current operation's ranges and merges ranges that meet.
  void Merge();
  // Reports races of the current operation with a past access. Returns whether
  // the operation stands for that one from now on: an access of it covers all
  // its bytes, is ordered after it, and writes, or both read.
  bool Compare(const Access& other);
  void Report(const std::string& line);

  bool watching_ = false;
  std::set<std::string> names_ = {""};
  // The current operation, without a range.
  Access now_ = {{0, 0, false}, 0, 0, &*names_.begin()};
  Clock before_;
  std::pair<const void*, const void*> refused_;  // begin and end
  std::vector<Range> current_;
  size_t merge_at_ = 0;  // ranges; merging earlier keeps sorting cheap
  std::vector<Access> past_;
  std::string found_;
};

}  // namespace partita::cuda::recording

#endif  // PARTITA_RUNTIME_CUDA_RECORDING_RACES_H_
