// Which operations touch the same bytes though nothing orders them.
#ifndef PARTITA_RUNTIME_CUDA_RECORDING_RACES_H_
#define PARTITA_RUNTIME_CUDA_RECORDING_RACES_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace partita::cuda::recording {

// What somebody knows to be done: of each stream, so many of its operations.
// (A vector clock; Mattern, "Virtual time and global states", 1988.)
class Clock {
 public:
  void Join(const Clock& other);
  uint64_t Of(int stream) const;
  // One more operation of a stream; its number.
  uint64_t Tick(int stream) { return ++done_[stream]; }

 private:
  std::map<int, uint64_t> done_;
};

// What operations touch while they run, one operation at a time. It does not
// matter in which order they happen to run: only what is known to be done when
// one begins counts.
class Races {
 public:
  // From now on what is touched is looked at.
  void Watch() { watching_ = true; }
  // `number` of `stream`, which begins when all of `before` is done.
  void Begin(const std::string& name, int stream, uint64_t number,
             const Clock& before);
  // The operation that has begun must not touch this.
  void Refuse(const void* memory, size_t bytes) {
    refused_ = {memory, static_cast<const char*>(memory) + bytes};
  }
  void Touch(const void* memory, size_t bytes, bool writes) {
    if (watching_ && bytes > 0) Add(memory, bytes, writes);
  }
  void End();
  // Memory that is somebody else's from now on.
  void Forget(const void* memory, size_t bytes);
  // One line per pair of operations' names, or per operation that touches what
  // another rank frees, since the last time.
  std::string Take();

 private:
  struct Access {
    uintptr_t begin, end;
    bool writes;
    int stream;
    uint64_t number;
    std::string name;
  };
  void Add(const void* memory, size_t bytes, bool writes);
  void Compare(const Access& access);
  void Report(const std::string& line);

  bool watching_ = false;
  Access now_ = {};  // its range: what was touched last
  Clock before_;
  std::pair<const void*, const void*> refused_;  // begin and end
  std::vector<Access> current_, past_;
  std::string found_;
};

}  // namespace partita::cuda::recording

#endif  // PARTITA_RUNTIME_CUDA_RECORDING_RACES_H_
