// A transport over TCP connections.
#include "runtime/comm/tcp_world.h"

#include <unistd.h>

#include <utility>

#include "runtime/base/status_macros.h"
#include "runtime/comm/message.h"
#include "runtime/comm/rendezvous.h"
#include "runtime/comm/tcp_mesh.h"

namespace partita::comm {
namespace {

class TcpTransport : public Transport {
 public:
  explicit TcpTransport(std::shared_ptr<TcpMesh> mesh)
      : mesh_(std::move(mesh)) {}

  int rank() const override { return mesh_->rank(); }
  int size() const override { return mesh_->size(); }
  std::string Describe(int rank) const override {
    return mesh_->Describe(rank);
  }
  absl::StatusOr<Request> Send(const void* data, int64_t bytes, int to,
                               Stream stream) override {
    return mesh_->Send(data, bytes, to, static_cast<int>(stream));
  }
  absl::StatusOr<Request> Receive(void* data, int64_t bytes, int from,
                                  Stream stream) override {
    return mesh_->Receive(data, bytes, from, static_cast<int>(stream));
  }
  absl::StatusOr<bool> Test(Request request) override {
    return mesh_->Test(request);
  }
  absl::Status SendSign(int number, int to) override {
    return mesh_->SendSign(number, to);
  }
  absl::StatusOr<std::optional<Sign>> NextSign() override {
    PARTITA_ASSIGN_OR_RETURN(const auto sign, mesh_->NextSign());
    if (!sign) return std::optional<Sign>();
    return std::optional<Sign>(Sign{sign->number, sign->rank});
  }
  absl::Status Health() override { return mesh_->Health(); }
  void Fail(const absl::Status& status) override {
    mesh_->Fail(std::string(status.message()));
  }

 private:
  const std::shared_ptr<TcpMesh> mesh_;
};

}  // namespace

TcpWorld::TcpWorld(std::shared_ptr<TcpMesh> mesh) : mesh_(std::move(mesh)) {}
TcpWorld::~TcpWorld() = default;

absl::StatusOr<std::unique_ptr<TcpWorld>> TcpWorld::Start(
    const Launch& launch, std::chrono::milliseconds timeout) {
  PARTITA_ASSIGN_OR_RETURN(
      Met met, Meet({launch.meet_at, launch.rank, launch.size, timeout}));
  return std::unique_ptr<TcpWorld>(
      new TcpWorld(std::make_shared<TcpMesh>(launch.rank, std::move(met))));
}

int TcpWorld::rank() const { return mesh_->rank(); }
int TcpWorld::size() const { return mesh_->size(); }

std::unique_ptr<Communicator> TcpWorld::MakeCommunicator(
    const CommOptions& options) {
  return MakeMessageCommunicator(std::make_unique<TcpTransport>(mesh_),
                                 options);
}

absl::Status TcpWorld::Finish(std::chrono::milliseconds timeout) {
  return mesh_->Finish(timeout);
}

void TcpWorld::Abort(int exit_code) {
  mesh_->Fail("it ended with an error");
  _exit(exit_code);
}

}  // namespace partita::comm
