// fork, exec, and a thread that reads the output.
#include "runtime/tools/train_process_testing.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <iterator>

#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "runtime/base/npy.h"
#include "runtime/base/random_fill.h"
#include "runtime/base/status_macros.h"
#include "runtime/program/test_program.h"
#include "runtime/program/test_training_program.h"

namespace partita::tools {
namespace {

constexpr int64_t kBatch = 256, kRows = 5000;

absl::Status WriteArray(const std::string& path, int64_t columns,
                        uint64_t seed) {
  std::vector<float> values(static_cast<size_t>(kRows * columns));
  PARTITA_RETURN_IF_ERROR(base::FillElements({"uniform", 1.0, seed},
                                             base::DType::kF32, 0,
                                             kRows * columns, values.data()));
  return base::WriteNpy(path, base::DType::kF32, {kRows, columns},
                        values.data());
}

}  // namespace

TrainProcess::TrainProcess(const std::string& program,
                           const std::vector<std::string>& arguments) {
  std::vector<char*> argv = {const_cast<char*>(program.c_str())};
  for (const std::string& argument : arguments)
    argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  int ends[2];
  if (pipe(ends) != 0) return;
  id_ = fork();
  if (id_ == 0) {
    dup2(ends[1], STDOUT_FILENO);
    dup2(ends[1], STDERR_FILENO);
    close(ends[0]);
    close(ends[1]);
    execv(argv[0], argv.data());
    _exit(127);
  }
  close(ends[1]);
  reader_ = std::thread([this, end = ends[0]] { Read(end); });
}

TrainProcess::~TrainProcess() {
  Send(SIGKILL);
  Wait();
}

void TrainProcess::Read(int descriptor) {
  char bytes[4096];
  for (ssize_t count; (count = read(descriptor, bytes, sizeof(bytes))) > 0;) {
    const std::lock_guard<std::mutex> lock(mutex_);
    said_.append(bytes, static_cast<size_t>(count));
  }
  close(descriptor);
}

std::string TrainProcess::Said() {
  const std::lock_guard<std::mutex> lock(mutex_);
  return said_;
}

bool TrainProcess::WaitUntilSaid(const std::string& text, size_t from) {
  for (int tries = 0; tries < 60000; ++tries) {
    const bool runs = Runs();
    if (Said().find(text, from) != std::string::npos) return true;
    if (!runs) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return false;
}

bool TrainProcess::Runs() {
  if (!ended_ && id_ > 0) ended_ = waitpid(id_, &status_, WNOHANG) == id_;
  return !ended_ && id_ > 0;
}

void TrainProcess::Send(int signal) {
  if (Runs()) kill(id_, signal);
}

int TrainProcess::Wait() {
  if (!ended_ && id_ > 0) ended_ = waitpid(id_, &status_, 0) == id_;
  if (reader_.joinable()) reader_.join();
  return WIFSIGNALED(status_) ? -WTERMSIG(status_) : WEXITSTATUS(status_);
}

absl::Status TrainFiles::Write(const std::string& folder) {
  PARTITA_RETURN_IF_ERROR(
      WriteArray(folder + "/x.npy", program::TrainingProgram::kWidth, 2));
  PARTITA_RETURN_IF_ERROR(
      WriteArray(folder + "/t.npy", program::TrainingProgram::kOut, 3));
  return program::WriteArtifact(folder + "/model.partita",
                                program::TrainingProgram(kBatch, 1, 1).Parts());
}

std::vector<std::string> TrainFiles::Arguments(const std::string& name,
                                               int64_t steps,
                                               int64_t checkpoint_every) const {
  std::vector<std::string> arguments = {
      "train",      Path("model.partita"),
      "--data",     "x=" + Path("x.npy") + ",t=" + Path("t.npy"),
      "--seed",     "5",
      "--steps",    std::to_string(steps),
      "--lr",       "1e-5",
      "--schedule", "cosine",
      "--warmup",   "20",
      "--threads",  "1",
      "--log",      Log(name),
      "--resume",   "--checkpoint-dir",
      Path(name),   "--keep",
      "2"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  if (checkpoint_every > 0) {
    arguments.push_back("--checkpoint-every");
    arguments.push_back(std::to_string(checkpoint_every));
  }
  return arguments;
}

std::string ReadFile(const std::string& file) {
  std::ifstream stream(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream),
          std::istreambuf_iterator<char>()};
}

std::map<int64_t, double> ReadLosses(const std::string& log) {
  const std::string content = ReadFile(log);
  std::map<int64_t, double> losses;
  for (size_t begin = 0, end;
       (end = content.find('\n', begin)) != std::string::npos;
       begin = end + 1) {
    const auto line = nlohmann::json::parse(
        content.begin() + static_cast<std::ptrdiff_t>(begin),
        content.begin() + static_cast<std::ptrdiff_t>(end), nullptr,
        /*allow_exceptions=*/false);
    const bool whole =
        line.is_object() && line.contains("step") && line.contains("loss");
    EXPECT_TRUE(whole) << content.substr(begin, end - begin);
    if (!whole) continue;
    const int64_t step = line["step"];
    EXPECT_TRUE(losses.empty() || step > losses.rbegin()->first) << step;
    losses[step] = line["loss"];
  }
  return losses;
}

int64_t CountLines(const std::string& file) {
  const std::string content = ReadFile(file);
  return std::count(content.begin(), content.end(), '\n');
}

}  // namespace partita::tools
