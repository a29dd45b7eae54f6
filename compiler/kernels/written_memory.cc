// Moves writes from one state to the next.
#include "compiler/kernels/written_memory.h"

#include <algorithm>

namespace partita::kernels {
namespace {

bool overlaps(const std::vector<SharedRange>& ranges,
              const SharedRange& other) {
  return std::any_of(
      ranges.begin(), ranges.end(), [&](const SharedRange& range) {
        return range.begin < other.end && other.begin < range.end;
      });
}

std::string named(int thread) { return "thread " + std::to_string(thread); }

}  // namespace

void WrittenMemory::writeShared(int thread, SharedRange range) {
  std::vector<SharedRange>& written = threads_[thread].written;
  if (!written.empty() && written.back().end == range.begin)
    written.back().end = range.end;
  else
    written.push_back(range);
}

void WrittenMemory::fence(int thread) {
  Thread& here = threads_[thread];
  here.fenced.insert(here.fenced.end(), here.written.begin(),
                     here.written.end());
  here.written.clear();
}

std::string WrittenMemory::access(const char* what,
                                  const SharedRange& range) const {
  for (const Thread& thread : threads_) {
    const bool unfenced = overlaps(thread.written, range);
    if (!unfenced && !overlaps(thread.fenced, range)) continue;
    return std::string(what) + " of memory that " +
           named(static_cast<int>(&thread - threads_.data())) +
           (unfenced ? " has written without a fence"
                     : " has written, and threads have not met since");
  }
  return "";
}

int WrittenMemory::otherThan(int thread, bool Thread::* flag) const {
  for (int i = 0; i < static_cast<int>(threads_.size()); ++i)
    if (i != thread && threads_[i].*flag) return i;
  return -1;
}

std::string WrittenMemory::writeDevice(int thread) {
  threads_[thread].wrote_device = true;
  const int waiter = otherThan(thread, &Thread::awaited_turn);
  if (waiter < 0) return "";
  return named(thread) + " writes to memory for which " + named(waiter) +
         " has awaited a turn, and they have not met since";
}

std::string WrittenMemory::awaitTurn(int thread, int64_t place, int32_t turn) {
  turns_[place] = turn;
  threads_[thread].awaited_turn = true;
  const int writer = otherThan(thread, &Thread::wrote_device);
  if (writer < 0) return "";
  return named(thread) + " awaits a turn after " + named(writer) +
         " has written to device memory, and they have not met since";
}

std::string WrittenMemory::passTurn(int thread, int64_t place, int32_t turn) {
  const auto own = turns_.find(place);
  if (own == turns_.end() || own->second + 1 != turn)
    return named(thread) + " passes turn " + std::to_string(turn) +
           " without the turn before it";
  turns_.erase(own);
  const int writer = otherThan(thread, &Thread::wrote_device);
  if (writer < 0) return "";
  return named(thread) + " passes a turn before it has met " + named(writer) +
         ", which has written to device memory";
}

void WrittenMemory::meet() {
  for (Thread& thread : threads_) {
    thread.fenced.clear();
    thread.wrote_device = thread.awaited_turn = false;
  }
}

}  // namespace partita::kernels
