// A time is the minimum of a few runs, each between two events.
#include "runtime/cuda/tuner.h"

#include <algorithm>
#include <fstream>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"

namespace partita::cuda {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kRuns = 3;
constexpr double kNever = std::numeric_limits<double>::infinity();

}  // namespace

Tuner::Tuner(std::shared_ptr<Context> context, TunerOptions options)
    : context_(std::move(context)),
      file_(std::move(options.file)),
      measures_(options.measures),
      warms_(options.warms),
      left_(options.budget) {
  if (file_.empty()) return;
  std::ifstream in(file_);
  for (std::string line; std::getline(in, line);) {
    const size_t space = line.find(' ');
    if (space != std::string::npos)
      known_[line.substr(space + 1)] = line.substr(0, space);
  }
}

std::string Tuner::KeyOf(const std::string& operation) const {
  return absl::StrCat(context_->machine().gpu, " ", operation);
}

std::string Tuner::Known(const std::string& operation) const {
  const auto known = known_.find(KeyOf(operation));
  return known == known_.end() ? "" : known->second;
}

size_t Tuner::Choose(const std::string& operation,
                     const std::vector<std::string>& names,
                     const std::function<Run()>& prepare) {
  const std::string key = KeyOf(operation);
  const auto known = known_.find(key);
  if (known != known_.end()) {
    const auto found = std::find(names.begin(), names.end(), known->second);
    // Another version of the library may have other algorithms.
    if (found != names.end()) return static_cast<size_t>(found - names.begin());
  }
  if (!measures_ || names.size() < 2 || left_.count() <= 0) return 0;
  const Clock::time_point begin = Clock::now();
  const Run run = prepare();
  std::optional<size_t> best;
  if (run != nullptr) best = MeasureAll(names.size(), run);
  left_ -= Clock::now() - begin;
  if (best) Keep(key, names[*best]);
  return best.value_or(0);
}

void Tuner::Warm(const std::vector<size_t>& algorithms,
                 const std::function<Run()>& prepare) {
  if (!warms_) return;
  const Run run = prepare();
  if (run == nullptr || !RunOnce(algorithms, run)) ++cold_;
}

bool Tuner::RunOnce(const std::vector<size_t>& algorithms,
                    const Run& run) const {
  const Driver& cuda = context_->driver();
  CuStream stream = nullptr;
  if (cuda.CreateStream(&stream, kCuStreamNonBlocking) != kCuSuccess)
    return false;
  bool works = true;
  for (const size_t index : algorithms)
    works = run(index, stream).ok() && works;
  works = cuda.SynchronizeStream(stream) == kCuSuccess && works;
  cuda.DestroyStream(stream);
  return works;
}

std::optional<size_t> Tuner::MeasureAll(size_t count, const Run& run) const {
  CuStream stream = nullptr;
  if (context_->driver().CreateStream(&stream, kCuStreamNonBlocking) !=
      kCuSuccess)
    return std::nullopt;
  std::optional<size_t> best;
  double least = kNever;
  for (size_t i = 0; i < count; ++i) {
    const double time = Measure(i, run, stream);
    if (time < least) {
      least = time;
      best = i;
    }
  }
  context_->driver().DestroyStream(stream);
  return best;
}

double Tuner::Measure(size_t index, const Run& run, CuStream stream) const {
  const Driver& cuda = context_->driver();
  CuEvent begin = nullptr, end = nullptr;
  bool works = cuda.CreateEvent(&begin, 0) == kCuSuccess &&
               cuda.CreateEvent(&end, 0) == kCuSuccess;
  double least = kNever;
  // The first run is not timed: the library may load code in it.
  for (int i = 0; works && i <= kRuns; ++i) {
    float milliseconds = 0;
    works = cuda.RecordEvent(begin, stream) == kCuSuccess &&
            run(index, stream).ok() &&
            cuda.RecordEvent(end, stream) == kCuSuccess &&
            cuda.SynchronizeEvent(end) == kCuSuccess &&
            cuda.Elapsed(&milliseconds, begin, end) == kCuSuccess;
    if (works && i > 0)
      least = std::min(least, static_cast<double>(milliseconds));
  }
  if (begin != nullptr) cuda.DestroyEvent(begin);
  if (end != nullptr) cuda.DestroyEvent(end);
  return works ? least : kNever;
}

void Tuner::Keep(const std::string& key, const std::string& name) {
  known_[key] = name;
  if (file_.empty()) return;
  std::ofstream out(file_, std::ios::app);
  out << name << " " << key << "\n";
}

}  // namespace partita::cuda
