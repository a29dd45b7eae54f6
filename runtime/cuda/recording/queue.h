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
#include <thread>
#include <utility>
#include <vector>

#include "runtime/cuda/driver_api.h"
#include "runtime/cuda/recording/races.h"

namespace partita::cuda::recording {

struct Stream;
struct Graph;
struct Event;

// A point in a stream, as one recording of an event made it.
struct Mark {
  Stream* stream = nullptr;
  bool reached = false;
  std::weak_ptr<Graph> graph;  // in which it was made, if it was captured
  bool captured = false;
  Clock clock;  // what is done when it is reached
};

struct Step {
  std::function<void()> work;     // or
  std::shared_ptr<Mark> reaches;  // or
  std::shared_ptr<Mark> waits_for;
  // In a graph: of the mark that it reaches, which is the event's last
  // recording when the graph is started.
  Event* records = nullptr;
  std::function<bool()> ready;  // of work: until then the stream stands still
  std::string name;
  Clock after;  // what the host had waited for
};

// Steps of several streams; those of the first begin it and end it.
struct Graph {
  std::vector<std::vector<Step>> branches;
};

struct Stream {
  int number = 0;
  bool of_graph = false;  // one of its branches, while it is replayed
  std::thread::id rank;   // who made it: ranks are threads here
  std::deque<Step> steps;
  Clock clock;
  std::shared_ptr<Graph> captured;  // while it is captured
  size_t branch = 0;                // of that
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
  static Machine& Get() {
    static Machine* const machine = new Machine();
    return *machine;
  }
  std::recursive_mutex mutex;

  // Whether the call named may succeed; it is written down.
  CuResult Enter(const char* symbol, const std::string& detail = "");

  void Put(Stream& stream, Step step);
  // Whether the mark is reached, or the stream is empty; if not, it stands
  // still where another process would have to do something.
  bool RunUntil(const Mark& mark);
  bool RunAll(Stream& stream);
  bool RunAll();
  // The caller has waited for this.
  void Waited(const Clock& clock);
  // All that this rank has put on streams is done; false as above.
  bool RunAllOfRank();

  Stream* AddStream(bool of_graph = false);
  void RemoveStream(Stream* stream);
  // No stream is captured for it any more.
  void EndCapture(const std::shared_ptr<Graph>& graph);
  void Replay(const Graph& graph, Stream& stream);

  // Device memory: the host may not touch it but while work of streams runs.
  // Null when it is full.
  void* Allocate(size_t bytes);
  // When all that stands on streams is done, as the driver does it; what stands
  // still is another rank's to end. What other ranks have put there and that
  // touches this memory is a race.
  bool Free(void* memory);
  size_t used_bytes() const { return used_; }

  Races& races() { return races_; }
  void Touch(const void* memory, size_t bytes, bool writes) {
    races_.Touch(memory, bytes, writes);
  }

  std::string TakeLog();
  // Milliseconds that work says it took since the last time.
  void AddTime(float milliseconds) { time_ += milliseconds; }
  float TakeTime() { return std::exchange(time_, 0.0f); }
  void FailNext(const std::string& symbol, CuResult result, int times,
                int after);
  void Register(const std::string& kernel, HostKernel function);
  HostKernel Find(const std::string& kernel) const;

 private:
  struct Block {
    size_t at, bytes;
    std::thread::id rank;  // who made it
  };
  Machine();
  // Device memory may be touched in between.
  void Open();
  void Close();
  // Whether it could.
  bool RunFront(Stream& stream);

  std::string log_;
  float time_ = 0;
  struct Failure {
    std::string symbol;
    CuResult result;
    int times, after;
  };
  std::vector<Failure> failures_;
  std::vector<std::pair<std::string, HostKernel>> kernels_;
  std::vector<std::unique_ptr<Stream>> streams_;
  int last_stream_ = 0;
  char* memory_ = nullptr;
  std::vector<Block> blocks_;  // in the order of their addresses
  const Block* freed_ = nullptr;
  size_t used_ = 0;
  int running_ = 0;
  Races races_;
};

using Lock = std::lock_guard<std::recursive_mutex>;

// At the beginning of a function of the driver's.
#define PARTITA_ENTER(...)                                            \
  Machine& machine = Machine::Get();                                  \
  const Lock lock(machine.mutex);                                     \
  if (const CuResult result = machine.Enter(__func__, ##__VA_ARGS__); \
      result != kCuSuccess)                                           \
    return result;                                                    \
  static_cast<void>(machine)

// Until `done` says so under the machine's lock. Work of all streams goes on
// if that takes long, as it would on a GPU.
void WaitUntil(const std::function<bool(Machine&)>& done);

}  // namespace partita::cuda::recording

#endif  // PARTITA_RUNTIME_CUDA_RECORDING_QUEUE_H_
