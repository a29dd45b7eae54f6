// Compares every access with earlier ones to the same bytes. An access is
// forgotten when another of the same bytes is ordered after it: whatever is
// ordered after the later one is ordered after both. A read does not stand for
// a write.
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
  now_ = {{0, 0, false}, stream, number, &*names_.insert(name).first};
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
  for (const Range& range : current_)
    if (range.begin < reinterpret_cast<uintptr_t>(refused_.second) &&
        reinterpret_cast<uintptr_t>(refused_.first) < range.end)
      Report(*now_.name + " touches what another rank frees\n");
  past_.erase(
      std::remove_if(past_.begin(), past_.end(),
                     [&](const Access& other) { return Compare(other); }),
      past_.end());
  for (const Range& range : current_) {
    past_.push_back(now_);
    static_cast<Range&>(past_.back()) = range;
  }
  current_.clear();
}

bool Races::Compare(const Access& other) {
  const auto first_write =
      std::partition_point(current_.begin(), current_.end(),
                           [](const Range& range) { return !range.writes; });
  bool is_replaced = false;
  const auto compare = [&](auto begin, auto end) {
    // Ranges of one kind are disjoint and sorted.
    auto range = std::partition_point(
        begin, end, [&](const Range& r) { return r.end <= other.begin; });
    for (; range != end && range->begin < other.end; ++range) {
      if (other.number <= before_.Of(other.stream))
        is_replaced |= range->begin <= other.begin && other.end <= range->end &&
                       (range->writes || !other.writes);
      else if (other.writes || range->writes)
        Report(*now_.name + (range->writes ? " writes" : " reads") + " what " +
               *other.name + (other.writes ? " writes" : " reads") + "\n");
    }
  };
  compare(current_.begin(), first_write);
  compare(first_write, current_.end());
  return is_replaced;
}

void Races::Report(const std::string& line) {
  if (found_.find(line) == std::string::npos) found_ += line;
}

void Races::Forget(const void* memory, size_t bytes) {
  const uintptr_t begin = reinterpret_cast<uintptr_t>(memory),
                  end = begin + bytes;
  std::vector<Access> kept;
  for (const Access& access : past_) {
    if (access.end <= begin || end <= access.begin) {
      kept.push_back(access);
      continue;
    }
    // An access may go beyond the memory: neighbours are merged.
    if (access.begin < begin) {
      kept.push_back(access);
      kept.back().end = begin;
    }
    if (end < access.end) {
      kept.push_back(access);
      kept.back().begin = end;
    }
  }
  past_ = std::move(kept);
}

std::string Races::Take() { return std::exchange(found_, ""); }

}  // namespace partita::cuda::recording
