// Streams of the recording driver. Work is delayed until somebody waits for it,
// and only the necessary work runs then. A missing wait therefore shows up as
// work not done.
#ifndef PARTITA_RUNTIME_CUDA_RECORDING_QUEUE_H_
#define PARTITA_RUNTIME_CUDA_RECORDING_QUEUE_H_

#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "runtime/cuda/driver_api.h"
#include "runtime/cuda/recording/races.h"

namespace partita::cuda::recording {

struct Stream;
struct Graph;
struct Event;

// A point in a stream, made by recording an event.
struct Mark {
  Stream* stream = nullptr;
  bool reached = false;
  std::weak_ptr<Graph> graph;  // the graph, if captured
  bool captured = false;
  Clock clock;  // operations done when it is reached
};

struct Step {
  std::function<void()> work;     // or
  std::shared_ptr<Mark> reaches;  // or
  std::shared_ptr<Mark> waits_for;
  // In a graph: the event that each replay records at the mark `reaches`.
  Event* records = nullptr;
  std::function<bool()> ready;  // for work: false blocks the stream
  std::string name;
  Clock after;  // operations the host had waited for
};

// Steps by branch (captured stream). The first branch begins and ends the
// graph.
struct Graph {
  std::vector<std::vector<Step>> branches;
};

struct Stream {
  int number = 0;
  bool of_graph = false;  // runs a branch of a replayed graph
  std::thread::id rank;   // the thread (rank) that made it
  std::deque<Step> steps;
  Clock clock;
  std::shared_ptr<Graph> captured;  // null: no capture
  size_t branch = 0;                // of `captured`
};

struct Event {
  std::shared_ptr<Mark> mark;  // the last recording
};

// The position of a thread in a launch on the CPU: `thread_at` in the block
// `block_at` of the grid. Threads of a block run one after another, x first.
struct Place {
  unsigned grid[3], block[3];
  unsigned block_at[3], thread_at[3];
  void* shared;  // zeroed for each block
};
using HostKernel = void (*)(void** parameters, const Place& place);

// Memory that a kernel reads or writes: `bytes` bytes, at the address that
// stands at byte `offset` of the parameter number `parameter`.
struct Reach {
  size_t parameter, offset, bytes;
  bool writes;
};

// The driver's state, all of it under one lock.
class Machine {
 public:
  static Machine& Get() {
    static Machine* const machine = new Machine();
    return *machine;
  }
  std::recursive_mutex mutex;

  // Logs a call. Returns the failure set by FailNext, or success.
  CuResult Enter(const char* symbol, const std::string& detail = "");

  void Put(Stream& stream, Step step);
  // Runs work until the mark is reached or the stream is empty. False if the
  // stream is blocked until another rank acts.
  bool RunUntil(const Mark& mark);
  bool RunAll(Stream& stream);
  bool RunAll();
  // Records that the caller has waited for these operations.
  void Waited(const Clock& clock);
  // Runs all work of this rank's streams. False if a stream is blocked.
  bool RunAllOfRank(std::thread::id rank = std::this_thread::get_id());

  Stream* AddStream(bool of_graph = false);
  void RemoveStream(Stream* stream);
  // Ends the capture of all streams of this graph.
  void EndCapture(const std::shared_ptr<Graph>& graph);
  void Replay(const Graph& graph, Stream& stream);

  // Allocates device memory, which is accessible only while work of streams
  // runs. Null when it is full.
  void* Allocate(size_t bytes);
  // Runs all streams, like the driver, then frees the memory. Blocked streams
  // are left to other ranks. Work of other ranks that touches this memory
  // meanwhile is a race.
  bool Free(void* memory);
  size_t used_bytes() const { return used_; }

  Races& races() { return races_; }
  void Touch(const void* memory, size_t bytes, bool writes) {
    races_.Touch(memory, bytes, writes);
  }

  std::string TakeLog();
  // Milliseconds that work claims to have taken since the last TakeTime.
  void AddTime(float milliseconds) { time_ += milliseconds; }
  float TakeTime() { return std::exchange(time_, 0.0f); }
  // The time of every later launch.
  void SetLaunchTime(float milliseconds) { launch_time_ = milliseconds; }
  float launch_time() const { return launch_time_; }
  void FailNext(const std::string& symbol, CuResult result, int times,
                int after);
  void Delay(const std::string& symbol, int milliseconds) {
    delays_[symbol] = milliseconds;
  }
  void Register(const std::string& kernel, HostKernel function);
  HostKernel Find(const std::string& kernel) const;
  // Sets what launches of a kernel without a function access if the bytes of
  // their first parameter begin with `prefix`.
  void Describe(const std::string& kernel, const std::string& prefix,
                std::vector<Reach> reaches) {
    described_[kernel][prefix] = std::move(reaches);
  }
  void ForgetDescriptions() { described_.clear(); }
  // Null if nothing describes the launch.
  const std::vector<Reach>* Described(const std::string& kernel,
                                      size_t first_bytes,
                                      void* const* parameters) const {
    const auto found = described_.find(kernel);
    if (found == described_.end()) return nullptr;
    for (const auto& [prefix, reaches] : found->second)
      if (prefix.empty() ||
          (prefix.size() <= first_bytes &&
           std::memcmp(prefix.data(), parameters[0], prefix.size()) == 0))
        return &reaches;
    return nullptr;
  }

 private:
  struct Block {
    size_t at, bytes;
    std::thread::id rank;  // the thread (rank) that made it
  };
  Machine();
  // Device memory is accessible between Open and Close.
  void Open();
  void Close();
  // Runs the first step of a stream. False if it is blocked.
  bool RunFront(Stream& stream);

  std::string log_;
  float time_ = 0, launch_time_ = 0;
  struct Failure {
    std::string symbol;
    CuResult result;
    int times, after;
  };
  std::vector<Failure> failures_;
  std::map<std::string, int> delays_;  // milliseconds, by function
  std::vector<std::pair<std::string, HostKernel>> kernels_;
  std::map<std::string, std::map<std::string, std::vector<Reach>>> described_;
  std::vector<std::unique_ptr<Stream>> streams_;
  int last_stream_ = 0;
  char* memory_ = nullptr;
  std::vector<Block> blocks_;  // sorted by address
  const Block* freed_ = nullptr;
  size_t used_ = 0;
  int running_ = 0;
  Races races_;
};

using Lock = std::lock_guard<std::recursive_mutex>;

// A result set by FailNext with which a call succeeds and does nothing.
constexpr CuResult kSkipped = static_cast<CuResult>(-1);

// Goes first in each driver function: takes the lock, logs the call, and
// returns an injected failure.
#define PARTITA_ENTER(...)                                            \
  Machine& machine = Machine::Get();                                  \
  const Lock lock(machine.mutex);                                     \
  if (const CuResult result = machine.Enter(__func__, ##__VA_ARGS__); \
      result != kCuSuccess)                                           \
    return result == kSkipped ? kCuSuccess : result;                  \
  static_cast<void>(machine)

// Waits until `done` returns true under the machine's lock. After a while work
// of all streams runs too, like on a GPU.
void WaitUntil(const std::function<bool(Machine&)>& done);

}  // namespace partita::cuda::recording

#endif  // PARTITA_RUNTIME_CUDA_RECORDING_QUEUE_H_
