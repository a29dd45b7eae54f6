// Saves checkpoints in an endless loop, for kill_test. Resumes from the newest
// one in the given folder, and prints each step once its checkpoint is
// complete.
#include <cstdio>
#include <limits>
#include <memory>
#include <string>

#include "runtime/checkpoint/checkpoint.h"
#include "runtime/checkpoint/checkpoint_testing.h"
#include "runtime/checkpoint/writer.h"

namespace partita::checkpoint {
namespace {

constexpr int64_t kScale = 100;

int Fail(const std::string& message) {
  std::fprintf(stderr, "%s\n", message.c_str());
  return 1;
}

int SaveForever(const std::string& folder) {
  WriterOptions options;
  options.folder = folder;
  options.keep = 2;
  options.shard_bytes = 200000;
  const auto latest = OpenLatest(folder, Verify::kChecksums, nullptr);
  if (latest.ok())
    options.start_step = latest->state().step;
  else if (!absl::IsNotFound(latest.status()))
    return Fail(latest.status().ToString());
  const auto writer = Writer::Open(options);
  if (!writer.ok()) return Fail(writer.status().ToString());
  for (int64_t step = options.start_step + 1;
       step < std::numeric_limits<int64_t>::max(); ++step) {
    // Takes the snapshot of a step while the previous one is being written.
    const auto entries = TestEntries(step, kScale);
    const absl::Status status = (*writer)->Save(TestState(step), entries);
    if (!status.ok()) return Fail(status.ToString());
    for (const SaveResult& result : (*writer)->TakeResults()) {
      if (!result.status.ok()) return Fail(result.status.ToString());
      std::printf("%lld\n", static_cast<long long>(result.step));
      std::fflush(stdout);
    }
  }
  return 0;
}

}  // namespace
}  // namespace partita::checkpoint

int main(int argc, char** argv) {
  if (argc != 2)
    return partita::checkpoint::Fail("usage: save_until_killed FOLDER");
  return partita::checkpoint::SaveForever(argv[1]);
}
