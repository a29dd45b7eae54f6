// Starts a peer with a socket as its standard input and output. SIGSTOP and
// SIGCONT bracket its work.
#include "compiler/driver/bench/peer_process.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <utility>

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/raw_ostream.h"
#include "runtime/base/status_macros.h"

namespace partita::driver {
namespace {

// Compiling a model takes some systems minutes.
constexpr int kAnswerMilliseconds = 30 * 60 * 1000;
constexpr int kEndMilliseconds = 5000;

// The last line of a file that has text.
std::string lastLine(const std::string& path) {
  auto text = llvm::MemoryBuffer::getFile(path);
  if (!text) return "";
  const llvm::StringRef all = (*text)->getBuffer().rtrim();
  return all.substr(all.rfind('\n') + 1).trim().str();
}

// Starts `command`; `inner` becomes its standard input and output.
absl::StatusOr<pid_t> spawn(const std::vector<std::string>& command, int inner,
                            const std::string& messages) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, inner, 0);
  posix_spawn_file_actions_adddup2(&actions, inner, 1);
  posix_spawn_file_actions_addopen(&actions, 2, messages.c_str(),
                                   O_WRONLY | O_CREAT | O_TRUNC, 0600);
  std::vector<char*> argv;
  for (const std::string& word : command)
    argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  pid_t process = 0;
  const int error =
      posix_spawn(&process, argv[0], &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0)
    return absl::AbortedError(command.front() +
                              " cannot be started: " + std::strerror(error));
  return process;
}

}  // namespace

absl::StatusOr<std::unique_ptr<PeerProcess>> PeerProcess::start(
    const std::vector<std::string>& command, const std::string& messages) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
    return absl::InternalError(std::string("cannot make a socket: ") +
                               std::strerror(errno));
  absl::StatusOr<pid_t> process = spawn(command, ends[1], messages);
  close(ends[1]);
  if (!process.ok()) {
    close(ends[0]);
    return process.status();
  }
  std::unique_ptr<PeerProcess> peer(
      new PeerProcess(*process, ends[0], messages));
  PARTITA_ASSIGN_OR_RETURN(peer->first_, peer->readAnswer());
  kill(*process, SIGSTOP);
  return peer;
}

PeerProcess::~PeerProcess() {
  shutdown(connection_, SHUT_RDWR);
  kill(process_, SIGCONT);
  for (int waited = 0; waited < kEndMilliseconds; waited += 10) {
    if (waitpid(process_, nullptr, WNOHANG) != 0) {
      process_ = 0;
      break;
    }
    usleep(10000);
  }
  if (process_ != 0) {
    kill(process_, SIGKILL);
    waitpid(process_, nullptr, 0);
  }
  close(connection_);
}

absl::StatusOr<llvm::json::Object> PeerProcess::ask(
    llvm::json::Object request) {
  std::string line;
  llvm::raw_string_ostream(line)
      << llvm::json::Value(std::move(request)) << "\n";
  kill(process_, SIGCONT);
  for (size_t sent = 0; sent < line.size();) {
    const ssize_t bytes =
        send(connection_, line.data() + sent, line.size() - sent, MSG_NOSIGNAL);
    if (bytes < 0 && errno == EINTR) continue;
    if (bytes < 0) break;  // the peer has ended: reading reports it
    sent += static_cast<size_t>(bytes);
  }
  absl::StatusOr<llvm::json::Object> answer = readAnswer();
  kill(process_, SIGSTOP);
  return answer;
}

absl::StatusOr<llvm::json::Object> PeerProcess::readAnswer() {
  PARTITA_ASSIGN_OR_RETURN(const std::string line, readLine());
  llvm::Expected<llvm::json::Value> value = llvm::json::parse(line);
  if (!value) llvm::consumeError(value.takeError());
  if (!value || value->getAsObject() == nullptr)
    return absl::AbortedError("expected a JSON object as an answer, found '" +
                              line.substr(0, 80) + "'");
  if (auto error = value->getAsObject()->getString("error"))
    return absl::AbortedError(error->str());
  return std::move(*value->getAsObject());
}

absl::StatusOr<std::string> PeerProcess::readLine() {
  while (received_.find('\n') == std::string::npos) {
    struct pollfd ready = {connection_, POLLIN, 0};
    const int found = poll(&ready, 1, kAnswerMilliseconds);
    if (found < 0 && errno == EINTR) continue;
    if (found == 0) return absl::AbortedError("no answer within 30 minutes");
    char bytes[4096];
    const ssize_t count = recv(connection_, bytes, sizeof(bytes), 0);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) {
      const std::string message = lastLine(messages_);
      return absl::AbortedError(
          "its process ended without an answer" +
          (message.empty() ? std::string() : ": " + message));
    }
    received_.append(bytes, static_cast<size_t>(count));
  }
  const size_t end = received_.find('\n');
  std::string line = received_.substr(0, end);
  received_.erase(0, end + 1);
  return line;
}

}  // namespace partita::driver
