// NCCL's functions among threads of one process. Members meet where they call,
// after their streams have made what they give; what they get is written by
// their streams later.
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "runtime/cuda/nccl_api.h"
#include "runtime/cuda/own_kernels.h"
#include "runtime/cuda/recording/queue.h"

namespace partita::cuda::recording {
namespace {

constexpr NcclResult kSystemError = static_cast<NcclResult>(2);
constexpr NcclResult kInvalidArgument = static_cast<NcclResult>(4);
constexpr std::chrono::seconds kMost{20};

struct Round {
  std::vector<std::string> inputs;
  size_t came = 0;
  size_t left = 0;
};
struct Group {
  size_t members = 0;
  std::map<uint64_t, Round> rounds;
  std::map<std::pair<int, int>, std::deque<std::string>> letters;
};
struct Member {
  Group* group;
  int index;
  uint64_t round = 0;
};

std::mutex mutex;
std::condition_variable changed;
std::map<std::string, Group> groups;  // by id

// Calls between the begin and the end of a group of calls.
struct Call {
  bool sends;
  void* memory;
  size_t bytes;
  int peer;
  Member* member;
  Stream* stream;
};
thread_local int depth = 0;
thread_local std::vector<Call> calls;

NcclResult Enter(const char* symbol, size_t bytes) {
  Machine& machine = Machine::Get();
  const std::lock_guard<std::recursive_mutex> lock(machine.mutex);
  return machine.Enter(symbol, std::to_string(bytes)) == kCuSuccess
             ? kNcclSuccess
             : kSystemError;
}

std::string Read(NcclStream stream, const void* memory, size_t bytes) {
  Machine& machine = Machine::Get();
  const std::lock_guard<std::recursive_mutex> lock(machine.mutex);
  return machine.Read(*static_cast<Stream*>(stream), memory, bytes);
}

void Write(NcclStream stream, void* memory, std::string content) {
  Machine& machine = Machine::Get();
  const std::lock_guard<std::recursive_mutex> lock(machine.mutex);
  Step step;
  step.work = [memory, content = std::move(content)] {
    std::memcpy(memory, content.data(), content.size());
  };
  machine.Put(*static_cast<Stream*>(stream), std::move(step));
}

// The inputs of all members.
NcclResult Meet(Member& member, std::string input,
                std::vector<std::string>& all) {
  std::unique_lock<std::mutex> lock(mutex);
  const uint64_t number = member.round++;
  Round& round = member.group->rounds[number];
  round.inputs.resize(member.group->members);
  round.inputs[static_cast<size_t>(member.index)] = std::move(input);
  ++round.came;
  changed.notify_all();
  if (!changed.wait_for(lock, kMost,
                        [&] { return round.came == member.group->members; }))
    return kSystemError;
  all = round.inputs;
  if (++round.left == member.group->members) member.group->rounds.erase(number);
  return kNcclSuccess;
}

template <typename T>
T Combined(NcclReduction reduction, T a, T b) {
  switch (reduction) {
    case kNcclSum:
      return static_cast<T>(a + b);
    case kNcclProd:
      return static_cast<T>(a * b);
    case kNcclMax:
      return a > b ? a : b;
    case kNcclMin:
      break;
  }
  return a < b ? a : b;
}

template <typename T>
void Combine(NcclReduction reduction, const std::string& other,
             std::string& into) {
  for (size_t at = 0; at < into.size(); at += sizeof(T)) {
    T a, b;
    std::memcpy(&a, into.data() + at, sizeof(T));
    std::memcpy(&b, other.data() + at, sizeof(T));
    a = Combined(reduction, a, b);
    std::memcpy(into.data() + at, &a, sizeof(T));
  }
}

void CombineSmall(KernelType type, NcclReduction reduction,
                  const std::string& other, std::string& into) {
  for (size_t i = 0; i < into.size() / 2; ++i) {
    const Int at = static_cast<Int>(i);
    Store(type, into.data(), at,
          Combined(reduction, Load(type, into.data(), at),
                   Load(type, other.data(), at)));
  }
}

void Combine(NcclType type, NcclReduction reduction, const std::string& other,
             std::string& into) {
  switch (type) {
    case kNcclI8:
      return Combine<int8_t>(reduction, other, into);
    case kNcclU8:
      return Combine<uint8_t>(reduction, other, into);
    case kNcclI32:
      return Combine<int32_t>(reduction, other, into);
    case kNcclU32:
      return Combine<uint32_t>(reduction, other, into);
    case kNcclI64:
      return Combine<int64_t>(reduction, other, into);
    case kNcclU64:
      return Combine<uint64_t>(reduction, other, into);
    case kNcclF32:
      return Combine<float>(reduction, other, into);
    case kNcclF64:
      return Combine<double>(reduction, other, into);
    case kNcclF16:
      return CombineSmall(KernelType::kF16, reduction, other, into);
    case kNcclBF16:
      return CombineSmall(KernelType::kBF16, reduction, other, into);
  }
}

size_t SizeOf(NcclType type) {
  switch (type) {
    case kNcclI8:
    case kNcclU8:
      return 1;
    case kNcclF16:
    case kNcclBF16:
      return 2;
    case kNcclI32:
    case kNcclU32:
    case kNcclF32:
      return 4;
    default:
      return 8;
  }
}

Member& Of(NcclComm comm) { return *static_cast<Member*>(comm); }

// All members' inputs, combined.
NcclResult Reduce(const char* symbol, const void* input, size_t bytes,
                  NcclType type, NcclReduction reduction, NcclComm comm,
                  NcclStream stream, std::string& sum) {
  if (Enter(symbol, bytes) != kNcclSuccess) return kSystemError;
  std::vector<std::string> all;
  const NcclResult met = Meet(Of(comm), Read(stream, input, bytes), all);
  if (met != kNcclSuccess) return met;
  sum = all[0];
  for (size_t i = 1; i < all.size(); ++i) {
    if (all[i].size() != sum.size()) return kInvalidArgument;
    Combine(type, reduction, all[i], sum);
  }
  return kNcclSuccess;
}

NcclResult RunCalls() {
  for (const Call& call : calls) {
    if (!call.sends) continue;
    std::string content = Read(call.stream, call.memory, call.bytes);
    const std::lock_guard<std::mutex> lock(mutex);
    call.member->group->letters[{call.member->index, call.peer}].push_back(
        std::move(content));
    changed.notify_all();
  }
  for (const Call& call : calls) {
    if (call.sends) continue;
    std::string content;
    {
      std::unique_lock<std::mutex> lock(mutex);
      auto& letters =
          call.member->group->letters[{call.peer, call.member->index}];
      if (!changed.wait_for(lock, kMost, [&] { return !letters.empty(); }))
        return kSystemError;
      content = std::move(letters.front());
      letters.pop_front();
    }
    if (content.size() != call.bytes) return kInvalidArgument;
    Write(call.stream, call.memory, std::move(content));
  }
  return kNcclSuccess;
}

NcclResult Add(const Call& call) {
  calls.push_back(call);
  if (depth > 0) return kNcclSuccess;
  const NcclResult result = RunCalls();
  calls.clear();
  return result;
}

}  // namespace
}  // namespace partita::cuda::recording

using namespace partita::cuda;
using namespace partita::cuda::recording;

#pragma GCC visibility push(default)
extern "C" {

NcclResult ncclGetUniqueId(NcclId* id) {
  static int last = 0;
  const std::lock_guard<std::mutex> lock(mutex);
  std::memset(id->bytes, 0, sizeof(id->bytes));
  const std::string text = "group " + std::to_string(++last);
  std::memcpy(id->bytes, text.data(), text.size());
  return kNcclSuccess;
}
NcclResult ncclCommInitRank(NcclComm* comm, int members, NcclId id, int index) {
  if (Enter(__func__, static_cast<size_t>(members)) != kNcclSuccess)
    return kSystemError;
  const std::lock_guard<std::mutex> lock(mutex);
  Group& group = groups[std::string(id.bytes, sizeof(id.bytes))];
  group.members = static_cast<size_t>(members);
  *comm = new Member{&group, index};
  return kNcclSuccess;
}
NcclResult ncclCommDestroy(NcclComm comm) {
  delete &Of(comm);
  return Enter(__func__, 0);
}
NcclResult ncclCommAbort(NcclComm comm) {
  delete &Of(comm);
  return Enter(__func__, 0);
}
NcclResult ncclCommGetAsyncError(NcclComm, NcclResult* error) {
  *error = Enter(__func__, 0);
  return kNcclSuccess;
}
const char* ncclGetErrorString(NcclResult) { return "unhandled system error"; }
const char* ncclGetLastError(NcclComm) { return "as recorded"; }
NcclResult ncclGroupStart() {
  ++depth;
  return kNcclSuccess;
}
NcclResult ncclGroupEnd() {
  if (--depth > 0) return kNcclSuccess;
  const NcclResult result = RunCalls();
  calls.clear();
  return result;
}
NcclResult ncclAllReduce(const void* input, void* output, size_t count,
                         NcclType type, NcclReduction reduction, NcclComm comm,
                         NcclStream stream) {
  std::string sum;
  const NcclResult result = Reduce(__func__, input, count * SizeOf(type), type,
                                   reduction, comm, stream, sum);
  if (result == kNcclSuccess) Write(stream, output, std::move(sum));
  return result;
}
NcclResult ncclReduceScatter(const void* input, void* output,
                             size_t output_count, NcclType type,
                             NcclReduction reduction, NcclComm comm,
                             NcclStream stream) {
  const size_t part = output_count * SizeOf(type);
  std::string sum;
  const NcclResult result =
      Reduce(__func__, input, part * Of(comm).group->members, type, reduction,
             comm, stream, sum);
  if (result == kNcclSuccess)
    Write(stream, output,
          sum.substr(static_cast<size_t>(Of(comm).index) * part, part));
  return result;
}
NcclResult ncclAllGather(const void* input, void* output, size_t input_count,
                         NcclType type, NcclComm comm, NcclStream stream) {
  const size_t bytes = input_count * SizeOf(type);
  if (Enter(__func__, bytes) != kNcclSuccess) return kSystemError;
  std::vector<std::string> all;
  const NcclResult met = Meet(Of(comm), Read(stream, input, bytes), all);
  if (met != kNcclSuccess) return met;
  std::string joined;
  for (const std::string& one : all) joined += one;
  Write(stream, output, std::move(joined));
  return kNcclSuccess;
}
NcclResult ncclBroadcast(const void* input, void* output, size_t count,
                         NcclType type, int root, NcclComm comm,
                         NcclStream stream) {
  const size_t bytes = count * SizeOf(type);
  if (Enter(__func__, bytes) != kNcclSuccess) return kSystemError;
  std::vector<std::string> all;
  const NcclResult met = Meet(
      Of(comm), Of(comm).index == root ? Read(stream, input, bytes) : "", all);
  if (met != kNcclSuccess) return met;
  Write(stream, output, all[static_cast<size_t>(root)]);
  return kNcclSuccess;
}
NcclResult ncclSend(const void* input, size_t count, NcclType type, int to,
                    NcclComm comm, NcclStream stream) {
  const size_t bytes = count * SizeOf(type);
  if (Enter(__func__, bytes) != kNcclSuccess) return kSystemError;
  return Add({true, const_cast<void*>(input), bytes, to, &Of(comm),
              static_cast<Stream*>(stream)});
}
NcclResult ncclRecv(void* output, size_t count, NcclType type, int from,
                    NcclComm comm, NcclStream stream) {
  const size_t bytes = count * SizeOf(type);
  if (Enter(__func__, bytes) != kNcclSuccess) return kSystemError;
  return Add(
      {false, output, bytes, from, &Of(comm), static_cast<Stream*>(stream)});
}

}  // extern "C"
#pragma GCC visibility pop
