// libpartita_mpi.so, the only code that uses MPI. Messages are sent as bytes,
// with one tag per stream; large ones in pieces whose count fits an int, which
// arrive in order. Signs are empty messages of a separate communicator, with
// the number as the tag.
#include <mpi.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "runtime/comm/mpi_api.h"

namespace {

constexpr int64_t kPiece = int64_t{1} << 30;
constexpr int kTag = 7;

std::string& LastError() {
  static std::string error;
  return error;
}

int Check(int code) {
  if (code == MPI_SUCCESS) return 0;
  char text[MPI_MAX_ERROR_STRING];
  int length = 0;
  MPI_Error_string(code, text, &length);
  LastError().assign(text, static_cast<size_t>(length));
  return 1;
}

using Requests = std::vector<MPI_Request>;

MPI_Comm& Signs() {
  static MPI_Comm signs = MPI_COMM_NULL;
  return signs;
}

int Start(int* rank, int* size) {
  int running = 0;
  if (Check(MPI_Initialized(&running)) != 0) return 1;
  if (running == 0) {
    int provided = 0;
    if (Check(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED,
                              &provided)) != 0)
      return 1;
  }
  if (Check(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN)) != 0)
    return 1;
  // The duplicate inherits the error handler.
  if (Signs() == MPI_COMM_NULL &&
      Check(MPI_Comm_dup(MPI_COMM_WORLD, &Signs())) != 0)
    return 1;
  return Check(MPI_Comm_rank(MPI_COMM_WORLD, rank)) |
         Check(MPI_Comm_size(MPI_COMM_WORLD, size));
}

int SeveralThreads() {
  int provided = MPI_THREAD_SINGLE;
  return MPI_Query_thread(&provided) == MPI_SUCCESS &&
                 provided >= MPI_THREAD_SERIALIZED
             ? 1
             : 0;
}

int ExchangeNames(const char* name, char* all) {
  return Check(MPI_Allgather(name, PARTITA_MPI_NAME_BYTES, MPI_CHAR, all,
                             PARTITA_MPI_NAME_BYTES, MPI_CHAR, MPI_COMM_WORLD));
}

const char* Library() {
  static char text[MPI_MAX_LIBRARY_VERSION_STRING];
  int length = 0;
  MPI_Get_library_version(text, &length);
  return text;
}

// Calls begin(offset, count, request) for each piece of a message.
template <typename Begin>
int BeginPieces(int64_t bytes, void** request, const Begin& begin) {
  auto* requests = new Requests();
  for (int64_t at = 0; at < bytes; at += kPiece) {
    requests->push_back(MPI_REQUEST_NULL);
    const int count = static_cast<int>(std::min(kPiece, bytes - at));
    // Pieces already begun stay in flight: the caller gives up.
    if (Check(begin(at, count, &requests->back())) != 0) return 1;
  }
  *request = requests;
  return 0;
}

int Send(const void* data, int64_t bytes, int to, int stream, void** request) {
  return BeginPieces(
      bytes, request, [&](int64_t at, int count, MPI_Request* piece) {
        return MPI_Isend(static_cast<const char*>(data) + at, count, MPI_BYTE,
                         to, kTag + stream, MPI_COMM_WORLD, piece);
      });
}

int Receive(void* data, int64_t bytes, int from, int stream, void** request) {
  return BeginPieces(
      bytes, request, [&](int64_t at, int count, MPI_Request* piece) {
        return MPI_Irecv(static_cast<char*>(data) + at, count, MPI_BYTE, from,
                         kTag + stream, MPI_COMM_WORLD, piece);
      });
}

// Senders that do not wait may test after MPI_Finalize, where MPI would abort.
int Test(void* request, int* done) {
  int finished = 0;
  if (Check(MPI_Finalized(&finished)) != 0) return 1;
  if (finished != 0) {
    LastError() = "MPI has ended";
    return 1;
  }
  auto* requests = static_cast<Requests*>(request);
  const int code = MPI_Testall(static_cast<int>(requests->size()),
                               requests->data(), done, MPI_STATUSES_IGNORE);
  if (Check(code) != 0) return 1;
  if (*done != 0) delete requests;
  return 0;
}

int SendSign(int number, int to) {
  MPI_Request request = MPI_REQUEST_NULL;
  if (Check(MPI_Isend(nullptr, 0, MPI_BYTE, to, number, Signs(), &request)) !=
      0)
    return 1;
  return Check(MPI_Request_free(&request));
}

int NextSign(int* number, int* from) {
  *from = -1;
  int found = 0;
  MPI_Status status;
  if (Check(MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, Signs(), &found,
                       &status)) != 0)
    return 1;
  if (found == 0) return 0;
  *number = status.MPI_TAG;
  *from = status.MPI_SOURCE;
  return Check(MPI_Recv(nullptr, 0, MPI_BYTE, *from, *number, Signs(),
                        MPI_STATUS_IGNORE));
}

// Receives and discards signs that nobody needs any more.
int DropSigns() {
  int number = 0, from = 0;
  do {
    if (NextSign(&number, &from) != 0) return 1;
  } while (from >= 0);
  return 0;
}

// MPI_Finalize waits for all ranks without a timeout, so ranks meet here first.
int Meet(int64_t timeout_ms) {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point end =
      Clock::now() + std::chrono::milliseconds(timeout_ms);
  MPI_Request barrier = MPI_REQUEST_NULL;
  if (Check(MPI_Ibarrier(MPI_COMM_WORLD, &barrier)) != 0) return 1;
  while (true) {
    int done = 0;
    if (Check(MPI_Test(&barrier, &done, MPI_STATUS_IGNORE)) != 0 ||
        DropSigns() != 0)
      return 1;
    if (done != 0) return DropSigns();
    if (Clock::now() > end) {
      LastError() = "some rank did not come to the end within " +
                    std::to_string(timeout_ms) + " ms";
      return 1;
    }
    std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
}

int Finish(int64_t timeout_ms) {
  int finished = 0;
  if (Check(MPI_Finalized(&finished)) != 0) return 1;
  if (finished != 0) return 0;
  return Meet(timeout_ms) != 0 ? 1 : Check(MPI_Finalize());
}

void Abort(int exit_code) { MPI_Abort(MPI_COMM_WORLD, exit_code); }

const char* Error() { return LastError().c_str(); }

}  // namespace

extern "C" __attribute__((visibility("default"))) const PartitaMpiApi*
partita_mpi_api() {
  static const PartitaMpiApi api = {PARTITA_MPI_API_VERSION,
                                    &Start,
                                    &SeveralThreads,
                                    &ExchangeNames,
                                    &Library,
                                    &Send,
                                    &Receive,
                                    &Test,
                                    &SendSign,
                                    &NextSign,
                                    &Finish,
                                    &Abort,
                                    &Error};
  return &api;
}
