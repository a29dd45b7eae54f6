// Opens the MPI plugin and wraps it in a transport.
#include "runtime/comm/mpi_world.h"

#include <dlfcn.h>
#include <unistd.h>

#include <cstring>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"
#include "runtime/comm/message.h"

namespace partita::comm {
namespace {

absl::Status ErrorOf(const PartitaMpiApi& api) {
  return absl::UnavailableError(absl::StrCat("MPI: ", api.error()));
}

class MpiTransport : public Transport {
 public:
  MpiTransport(const PartitaMpiApi& api, int rank, int size,
               const std::string& names)
      : api_(api), rank_(rank), size_(size), names_(names) {}

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  std::string Describe(int rank) const override {
    return absl::StrCat(
        "rank ", rank, " (",
        &names_[static_cast<size_t>(rank) * PARTITA_MPI_NAME_BYTES], ")");
  }
  bool ServesSeveralThreads() const override {
    return api_.several_threads() != 0;
  }
  absl::StatusOr<Request> Send(const void* data, int64_t bytes, int to,
                               Stream stream) override {
    Request request = nullptr;
    if (api_.send(data, bytes, to, static_cast<int>(stream), &request) != 0)
      return ErrorOf(api_);
    return request;
  }
  absl::StatusOr<Request> Receive(void* data, int64_t bytes, int from,
                                  Stream stream) override {
    Request request = nullptr;
    if (api_.receive(data, bytes, from, static_cast<int>(stream), &request) !=
        0)
      return ErrorOf(api_);
    return request;
  }
  absl::StatusOr<bool> Test(Request request) override {
    int done = 0;
    if (api_.test(request, &done) != 0) return ErrorOf(api_);
    return done != 0;
  }
  absl::Status SendSign(int number, int to) override {
    return api_.send_sign(number, to) == 0 ? absl::OkStatus() : ErrorOf(api_);
  }
  absl::StatusOr<std::optional<Sign>> NextSign() override {
    Sign sign{};
    if (api_.next_sign(&sign.number, &sign.rank) != 0) return ErrorOf(api_);
    return sign.rank < 0 ? std::nullopt : std::optional<Sign>(sign);
  }
  // A rank that fails aborts all processes, so none is left to ask.
  absl::Status Health() override { return absl::OkStatus(); }
  void Fail(const absl::Status& status) override {}

 private:
  const PartitaMpiApi& api_;
  const int rank_;
  const int size_;
  const std::string names_;
};

constexpr char kPlugin[] = "libpartita_mpi.so";

std::string FolderOf(const std::string& path) {
  return path.substr(0, path.rfind('/'));
}

// The plugin beside the running program, else beside the shared library that
// holds this code (libpartita_runtime.so in somebody else's program).
std::string DefaultPlugin() {
  char path[4096];
  const ssize_t length = readlink("/proc/self/exe", path, sizeof(path));
  const std::string beside_program = absl::StrCat(
      length <= 0 ? "."
                  : FolderOf(std::string(path, static_cast<size_t>(length))),
      "/", kPlugin);
  Dl_info code;
  if (access(beside_program.c_str(), R_OK) == 0 ||
      dladdr(reinterpret_cast<void*>(&DefaultPlugin), &code) == 0 ||
      code.dli_fname == nullptr)
    return beside_program;
  const std::string beside_library =
      absl::StrCat(FolderOf(code.dli_fname), "/", kPlugin);
  return access(beside_library.c_str(), R_OK) == 0 ? beside_library
                                                   : beside_program;
}

absl::StatusOr<const PartitaMpiApi*> OpenPlugin(const std::string& path) {
  // Global, since Open MPI's own plugins look up its symbols. Never closed,
  // since MPI leaves handlers behind.
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL);
  if (library == nullptr) {
    return absl::FailedPreconditionError(absl::StrCat(
        "this process was started as one of several, but MPI cannot be used: ",
        dlerror(),
        "; install Open MPI (Debian: libopenmpi3) and keep libpartita_mpi.so "
        "beside the program or libpartita_runtime.so, or start one process: it "
        "runs all devices"));
  }
  const auto function = reinterpret_cast<PartitaMpiApiFunction>(
      dlsym(library, PARTITA_MPI_API_SYMBOL));
  if (function == nullptr || function()->version != PARTITA_MPI_API_VERSION) {
    return absl::FailedPreconditionError(absl::StrCat(
        path, " belongs to another version of Partita; install both anew"));
  }
  return function();
}

std::string OwnName() {
  char host[200] = "";
  gethostname(host, sizeof(host) - 1);
  return absl::StrCat(host, ", process ", getpid());
}

}  // namespace

absl::StatusOr<std::unique_ptr<MpiWorld>> MpiWorld::Start(
    const Launch& launch, const std::string& plugin) {
  std::unique_ptr<MpiWorld> world(new MpiWorld());
  PARTITA_ASSIGN_OR_RETURN(
      world->api_, OpenPlugin(plugin.empty() ? DefaultPlugin() : plugin));
  const PartitaMpiApi& api = *world->api_;
  if (api.start(&world->rank_, &world->size_) != 0) return ErrorOf(api);
  if (world->size_ != launch.size) {
    return absl::FailedPreconditionError(absl::StrCat(
        launch.launcher, " started ", launch.size, " processes, but MPI sees ",
        world->size_,
        launch.launcher == "srun"
            ? "; use srun --mpi=pmix (srun --mpi=list shows what there is), or "
              "mpirun inside the allocation"
            : "; the launcher belongs to another MPI than the one installed "
              "here"));
  }
  char name[PARTITA_MPI_NAME_BYTES] = "";
  std::strncpy(name, OwnName().c_str(), sizeof(name) - 1);
  world->names_.resize(static_cast<size_t>(world->size_) *
                       PARTITA_MPI_NAME_BYTES);
  if (api.exchange_names(name, world->names_.data()) != 0) return ErrorOf(api);
  return world;
}

std::unique_ptr<Communicator> MpiWorld::MakeCommunicator(
    const CommOptions& options) {
  return MakeMessageCommunicator(
      std::make_unique<MpiTransport>(*api_, rank_, size_, names_), options);
}

absl::Status MpiWorld::Finish(std::chrono::milliseconds timeout) {
  return api_->finish(timeout.count()) == 0 ? absl::OkStatus() : ErrorOf(*api_);
}

void MpiWorld::Abort(int exit_code) { api_->abort(exit_code); }

}  // namespace partita::comm
