// Streams of the recording driver: work is put off until somebody waits for
// it, and then no more of it is done than must be. So whoever forgets to wait
// sees that nothing has happened.
#ifndef PARTITA_RUNTIME_CUDA_RECORDING_QUEUE_H_
#define PARTITA_RUNTIME_CUDA_RECORDING_QUEUE_H_

#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "runtime/cuda/driver_api.h"

namespace partita::cuda::recording {

struct Stream;

// A point in a stream, as one recording of an event made it.
struct Mark {
  Stream* stream = nullptr;
  bool reached = false;
};

struct Step {
  std::function<void()> work;     // or
  std::shared_ptr<Mark> reaches;  // or
  std::shared_ptr<Mark> waits_for;
};

struct Graph {
  std::vector<Step> steps;
};

struct Stream {
  std::deque<Step> steps;
  std::unique_ptr<Graph> captured;  // while it is captured
};

struct Event {
  std::shared_ptr<Mark> mark;  // the last recording
};

// What a launch runs on the processor: thread `thread` of block `block`, both
// counted along x first, of the grid. Threads of a block run one after another.
struct Place {
  unsigned grid[3], block[3];
  unsigned block_at[3], thread_at[3];
  void* shared;  // zero when a block begins
};
using HostKernel = void (*)(void** parameters, const Place& place);

// The driver's state, all of it under one lock.
class Machine {
 public:
  static Machine& Get();
  std::recursive_mutex mutex;

  // Whether the call named may succeed; it is written down.
  CuResult Enter(const char* symbol, const std::string& detail = "");

  void Put(Stream& stream, Step step);
  // Until the mark is reached, or the stream is empty.
  void RunUntil(const Mark& mark);
  void RunAll(Stream& stream);
  void RunAll();
  // What lies in device memory when the stream has done its work.
  std::string Read(Stream& stream, const void* memory, size_t bytes);

  Stream* AddStream();
  void RemoveStream(Stream* stream);

  // Device memory: the host may not touch it but while work of streams runs.
  // Null when it is full.
  void* Allocate(size_t bytes);
  bool Free(void* memory);
  size_t used_bytes() const { return used_; }

  std::string TakeLog();
  // Milliseconds that work says it took since the last time.
  void AddTime(float milliseconds) { time_ += milliseconds; }
  float TakeTime() { return std::exchange(time_, 0.0f); }
  void FailNext(const std::string& symbol, CuResult result, int times);
  void Register(const std::string& kernel, HostKernel function);
  HostKernel Find(const std::string& kernel) const;

 private:
  struct Block {
    size_t at, bytes;
  };
  Machine();
  void Run(Step& step);
  // Device memory may be touched in between.
  void Open();
  void Close();
  void RunFront(Stream& stream);

  std::string log_;
  float time_ = 0;
  struct Failure {
    std::string symbol;
    CuResult result;
    int times;
  };
  std::vector<Failure> failures_;
  std::vector<std::pair<std::string, HostKernel>> kernels_;
  std::vector<std::unique_ptr<Stream>> streams_;
  char* memory_ = nullptr;
  std::vector<Block> blocks_;  // in the order of their addresses
  size_t used_ = 0;
  int running_ = 0;
};

}  // namespace partita::cuda::recording

#endif  // PARTITA_RUNTIME_CUDA_RECORDING_QUEUE_H_
