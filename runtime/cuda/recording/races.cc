// Compares every access with all others to the same bytes; tests are small
// enough.
#include "runtime/cuda/recording/races.h"

#include <algorithm>
#include <tuple>
#include <utility>

namespace partita::cuda::recording {

constexpr size_t kMergeAt = 1024;

void Clock::Join(const Clock& other) {
  for (const auto& [stream, number] : other.done_)
    done_[stream] = std::max(done_[stream], number);
}

uint64_t Clock::Of(int stream) const {
  const auto found = done_.find(stream);
  return found == done_.end() ? 0 : found->second;
}

void Races::Begin(const std::string& name, int stream, uint64_t number,
                  const Clock& before) {
  if (!watching_) return;
  now_ = {{0, 0, false}, stream, number, name};
  before_ = before;
  refused_ = {};
  current_.clear();
  merge_at_ = kMergeAt;
}

void Races::Add(const void* memory, size_t bytes, bool writes) {
  const uintptr_t begin = reinterpret_cast<uintptr_t>(memory);
  const uintptr_t end = begin + bytes;
  // Kernels access a few tensors alternately, each nearly in order.
  const size_t recent = std::min<size_t>(current_.size(), 8);
  for (auto last = current_.rbegin();
       last != current_.rbegin() + static_cast<std::ptrdiff_t>(recent);
       ++last) {
    if (last->writes != writes || begin > last->end || end < last->begin)
      continue;
    last->begin = std::min(last->begin, begin);
    last->end = std::max(last->end, end);
    return;
  }
  current_.push_back({begin, end, writes});
  if (current_.size() < merge_at_) return;
  Merge();
  merge_at_ = kMergeAt + 2 * current_.size();
}

void Races::Merge() {
  std::sort(current_.begin(), current_.end(),
            [](const Range& a, const Range& b) {
              return std::tie(a.writes, a.begin) < std::tie(b.writes, b.begin);
            });
  size_t kept = 0;
  for (size_t i = 1; i < current_.size(); ++i) {
    Range& last = current_[kept];
    const Range& next = current_[i];
    if (next.writes == last.writes && next.begin <= last.end) {
      last.end = std::max(last.end, next.end);
    } else {
      current_[++kept] = next;
    }
  }
  if (!current_.empty()) current_.resize(kept + 1);
}

void Races::End() {
  Merge();
  const size_t before = past_.size();
  for (const Range& range : current_) {
    past_.push_back(now_);
    static_cast<Range&>(past_.back()) = range;
  }
  current_.clear();
  for (size_t i = before; i < past_.size(); ++i) Compare(past_[i], before);
}

void Races::Compare(const Access& access, size_t count) {
  if (access.begin < reinterpret_cast<uintptr_t>(refused_.second) &&
      reinterpret_cast<uintptr_t>(refused_.first) < access.end)
    Report(access.name + " touches what another rank frees\n");
  for (size_t i = 0; i < count; ++i) {
    const Access& other = past_[i];
    if (other.end <= access.begin || access.end <= other.begin) continue;
    if (!other.writes && !access.writes) continue;
    if (other.number <= before_.Of(other.stream)) continue;
    Report(access.name + (access.writes ? " writes" : " reads") + " what " +
           other.name + (other.writes ? " writes" : " reads") + "\n");
  }
}

void Races::Report(const std::string& line) {
  if (found_.find(line) == std::string::npos) found_ += line;
}

void Races::Forget(const void* memory, size_t bytes) {
  const uintptr_t begin = reinterpret_cast<uintptr_t>(memory);
  past_.erase(std::remove_if(past_.begin(), past_.end(),
                             [&](const Access& access) {
                               return access.begin < begin + bytes &&
                                      begin < access.end;
                             }),
              past_.end());
}

std::string Races::Take() { return std::exchange(found_, ""); }

}  // namespace partita::cuda::recording
