// Work that is put off, and memory that is guarded.
#include "runtime/cuda/recording/queue.h"

#include <sys/mman.h>

#include <algorithm>
#include <utility>

namespace partita::cuda::recording {
namespace {

constexpr size_t kMemoryBytes = size_t{1} << 30;
constexpr size_t kAlignment = 256;

}  // namespace

Machine& Machine::Get() {
  static Machine* const machine = new Machine();
  return *machine;
}

Machine::Machine() {
  memory_ = static_cast<char*>(mmap(nullptr, kMemoryBytes, PROT_NONE,
                                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
                                    -1, 0));
}

CuResult Machine::Enter(const char* symbol, const std::string& detail) {
  log_ += symbol + (detail.empty() ? "" : " " + detail) + "\n";
  for (Failure& failure : failures_) {
    if (failure.symbol != symbol || failure.times == 0) continue;
    --failure.times;
    return failure.result;
  }
  return kCuSuccess;
}

void Machine::Put(Stream& stream, Step step) {
  if (stream.captured != nullptr) {
    stream.captured->steps.push_back(std::move(step));
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

void Machine::Run(Step& step) {
  if (step.reaches != nullptr) step.reaches->reached = true;
  if (step.waits_for != nullptr) RunUntil(*step.waits_for);
  if (!step.work) return;
  Open();
  step.work();
  Close();
}

void Machine::RunFront(Stream& stream) {
  Step step = std::move(stream.steps.front());
  stream.steps.pop_front();
  Run(step);
}

void Machine::RunUntil(const Mark& mark) {
  while (!mark.reached && !mark.stream->steps.empty()) RunFront(*mark.stream);
}

void Machine::RunAll(Stream& stream) {
  while (!stream.steps.empty()) RunFront(stream);
}

void Machine::RunAll() {
  for (const auto& stream : streams_) RunAll(*stream);
}

Stream* Machine::AddStream() {
  streams_.push_back(std::make_unique<Stream>());
  return streams_.back().get();
}

void Machine::RemoveStream(Stream* stream) {
  RunAll(*stream);
  streams_.erase(
      std::find_if(streams_.begin(), streams_.end(),
                   [&](const auto& other) { return other.get() == stream; }));
}

void* Machine::Allocate(size_t bytes) {
  const size_t size = (bytes + kAlignment - 1) / kAlignment * kAlignment;
  if (bytes == 0 || size < bytes || size > kMemoryBytes) return nullptr;
  size_t at = 0;
  auto next = blocks_.begin();
  for (; next != blocks_.end() && next->at - at < size; ++next)
    at = next->at + next->bytes;
  if (next == blocks_.end() && kMemoryBytes - at < size) return nullptr;
  blocks_.insert(next, {at, size});
  used_ += size;
  // What was there before is no content.
  Open();
  std::fill_n(memory_ + at, size, static_cast<char>(0x7f));
  Close();
  return memory_ + at;
}

bool Machine::Free(void* memory) {
  for (auto block = blocks_.begin(); block != blocks_.end(); ++block) {
    if (memory_ + block->at != memory) continue;
    used_ -= block->bytes;
    blocks_.erase(block);
    return true;
  }
  return false;
}

std::string Machine::TakeLog() { return std::exchange(log_, ""); }

void Machine::FailNext(const std::string& symbol, CuResult result, int times) {
  failures_.erase(std::remove_if(failures_.begin(), failures_.end(),
                                 [&](const Failure& failure) {
                                   return failure.symbol == symbol;
                                 }),
                  failures_.end());
  failures_.push_back({symbol, result, times});
}

std::string Machine::Read(Stream& stream, const void* memory, size_t bytes) {
  RunAll(stream);
  Open();
  std::string content(static_cast<const char*>(memory), bytes);
  Close();
  return content;
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
