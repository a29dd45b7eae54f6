// Delayed work of streams, and protected device memory.
#include "runtime/cuda/recording/queue.h"

#include <sys/mman.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <utility>

namespace partita::cuda::recording {
namespace {

constexpr size_t kMemoryBytes = size_t{1} << 30;
constexpr size_t kAlignment = 256;

// Operations that this thread knows to be done.
thread_local Clock waited;

}  // namespace

Machine::Machine() {
  memory_ = static_cast<char*>(mmap(nullptr, kMemoryBytes, PROT_NONE,
                                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
                                    -1, 0));
}

CuResult Machine::Enter(const char* symbol, const std::string& detail) {
  log_ += symbol + (detail.empty() ? "" : " " + detail) + "\n";
  if (const auto delay = delays_.find(symbol); delay != delays_.end())
    std::this_thread::sleep_for(std::chrono::milliseconds(delay->second));
  for (Failure& failure : failures_) {
    if (failure.symbol != symbol || failure.times == 0) continue;
    if (failure.after > 0) {
      --failure.after;
      continue;
    }
    --failure.times;
    return failure.result;
  }
  return kCuSuccess;
}

void Machine::Put(Stream& stream, Step step) {
  step.after = waited;
  if (stream.captured != nullptr) {
    stream.captured->branches[stream.branch].push_back(std::move(step));
  } else {
    stream.steps.push_back(std::move(step));
  }
}

void Machine::Open() {
  if (running_++ == 0) mprotect(memory_, kMemoryBytes, PROT_READ | PROT_WRITE);
}

void Machine::Close() {
  if (--running_ == 0) mprotect(memory_, kMemoryBytes, PROT_NONE);
}

bool Machine::RunFront(Stream& stream) {
  const Step& front = stream.steps.front();
  if (front.waits_for != nullptr && !RunUntil(*front.waits_for)) return false;
  if (front.ready && !front.ready()) return false;
  Step step = std::move(stream.steps.front());
  stream.steps.pop_front();
  stream.clock.Join(step.after);
  if (step.waits_for != nullptr) stream.clock.Join(step.waits_for->clock);
  if (step.reaches != nullptr) {
    step.reaches->clock = stream.clock;
    step.reaches->reached = true;
  }
  if (!step.work) return true;
  const Clock before = stream.clock;
  races_.Begin(step.name, stream.number, stream.clock.Tick(stream.number),
               before);
  if (freed_ != nullptr && freed_->rank != stream.rank)
    races_.Refuse(memory_ + freed_->at, freed_->bytes);
  Open();
  step.work();
  Close();
  races_.End();
  return true;
}

bool Machine::RunUntil(const Mark& mark) {
  while (!mark.reached && !mark.stream->steps.empty())
    if (!RunFront(*mark.stream)) return false;
  return true;
}

bool Machine::RunAll(Stream& stream) {
  while (!stream.steps.empty())
    if (!RunFront(stream)) return false;
  return true;
}

bool Machine::RunAll() {
  bool all = true;
  for (size_t i = 0; i < streams_.size(); ++i)
    all = RunAll(*streams_[i]) && all;
  return all;
}

void Machine::Waited(const Clock& clock) { waited.Join(clock); }

bool Machine::RunAllOfRank(std::thread::id rank) {
  bool all = true;
  for (size_t i = 0; i < streams_.size(); ++i) {
    if (streams_[i]->rank != rank) continue;
    all = RunAll(*streams_[i]) && all;
    Waited(streams_[i]->clock);
  }
  return all;
}

void WaitUntil(const std::function<bool(Machine&)>& done) {
  Machine& machine = Machine::Get();
  for (int round = 0;; ++round) {
    {
      const std::lock_guard<std::recursive_mutex> lock(machine.mutex);
      if (done(machine)) return;
      if (round > 50) machine.RunAll();
    }
    std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
}

Stream* Machine::AddStream(bool of_graph) {
  streams_.push_back(std::make_unique<Stream>());
  streams_.back()->number = ++last_stream_;
  streams_.back()->of_graph = of_graph;
  streams_.back()->rank = std::this_thread::get_id();
  return streams_.back().get();
}

void Machine::RemoveStream(Stream* stream) {
  // Operations that cannot proceed are dropped.
  if (!RunAll(*stream))
    for (const Step& step : stream->steps)
      if (step.reaches != nullptr) step.reaches->reached = true;
  streams_.erase(
      std::find_if(streams_.begin(), streams_.end(),
                   [&](const auto& other) { return other.get() == stream; }));
}

void Machine::EndCapture(const std::shared_ptr<Graph>& graph) {
  for (const auto& stream : streams_)
    if (stream->captured == graph) stream->captured.reset();
}

void Machine::Replay(const Graph& graph, Stream& stream) {
  streams_.erase(std::remove_if(streams_.begin(), streams_.end(),
                                [](const auto& other) {
                                  return other->of_graph &&
                                         other->steps.empty();
                                }),
                 streams_.end());
  std::map<const Mark*, std::shared_ptr<Mark>> marks;
  const auto copy = [&](const std::shared_ptr<Mark>& mark) {
    if (mark == nullptr) return mark;
    std::shared_ptr<Mark>& own = marks[mark.get()];
    if (own == nullptr) own = std::make_shared<Mark>();
    return own;
  };
  for (size_t branch = 0; branch < graph.branches.size(); ++branch) {
    Stream& into = branch == 0 ? stream : *AddStream(/*of_graph=*/true);
    for (Step step : graph.branches[branch]) {
      step.reaches = copy(step.reaches);
      step.waits_for = copy(step.waits_for);
      if (step.reaches != nullptr) step.reaches->stream = &into;
      if (step.records != nullptr) step.records->mark = step.reaches;
      Put(into, std::move(step));
    }
  }
}

void* Machine::Allocate(size_t bytes) {
  const size_t size = (bytes + kAlignment - 1) / kAlignment * kAlignment;
  if (bytes == 0 || size < bytes || size > kMemoryBytes) return nullptr;
  size_t at = 0;
  auto next = blocks_.begin();
  for (; next != blocks_.end() && next->at - at < size; ++next)
    at = next->at + next->bytes;
  if (next == blocks_.end() && kMemoryBytes - at < size) return nullptr;
  blocks_.insert(next, {at, size, std::this_thread::get_id()});
  used_ += size;
  // New memory has undefined content, here large numbers.
  Open();
  std::fill_n(memory_ + at, size, static_cast<char>(0x7f));
  Close();
  return memory_ + at;
}

bool Machine::Free(void* memory) {
  for (auto block = blocks_.begin(); block != blocks_.end(); ++block) {
    if (memory_ + block->at != memory) continue;
    const Block freed = *block;
    freed_ = &freed;
    RunAll();
    freed_ = nullptr;
    used_ -= block->bytes;
    races_.Forget(memory, block->bytes);
    blocks_.erase(block);
    return true;
  }
  return false;
}

std::string Machine::TakeLog() { return std::exchange(log_, ""); }

void Machine::FailNext(const std::string& symbol, CuResult result, int times,
                       int after) {
  failures_.erase(std::remove_if(failures_.begin(), failures_.end(),
                                 [&](const Failure& failure) {
                                   return failure.symbol == symbol;
                                 }),
                  failures_.end());
  failures_.push_back({symbol, result, times, after});
}

void Machine::Register(const std::string& kernel, HostKernel function) {
  kernels_.emplace_back(kernel, function);
}

HostKernel Machine::Find(const std::string& kernel) const {
  for (const auto& [name, function] : kernels_)
    if (name == kernel) return function;
  return nullptr;
}

}  // namespace partita::cuda::recording
