// NCCL's functions among threads of one process. Calls do not block. Their work
// reaches the stream only when the communicator reports the call as done, and
// then waits on the stream until all members have arrived.
#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "runtime/cuda/nccl_api.h"
#include "runtime/cuda/recording/queue.h"
#include "runtime/cuda/recording/touched_kernels.h"

namespace partita::cuda::recording {
namespace {

constexpr NcclResult kSystemError = static_cast<NcclResult>(2);
constexpr NcclResult kInvalidArgument = static_cast<NcclResult>(4);
constexpr NcclResult kInvalidUsage = static_cast<NcclResult>(5);

// Groups and members are guarded by the machine's lock.
struct Round {
  std::vector<std::string> inputs;
  size_t came = 0;
  size_t left = 0;
};
struct Group {
  size_t members = 0, joined = 0;
  std::map<uint64_t, Round> rounds;
  std::map<std::pair<int, int>, std::deque<std::string>> letters;
  // By sender and receiver: which of the two has called for a message. The
  // first message connects them.
  std::map<std::pair<int, int>, std::array<bool, 2>> called;
};
struct Member {
  Group* group;
  int index;
  uint64_t given = 0, taken = 0;  // rounds
  bool aborted = false;
  NcclResult error = kNcclSuccess;
  std::thread::id rank = std::this_thread::get_id();  // which joined the group
  // Shared by captured work of this communicator, as NCCL's
  // localPersistentRefs count it: until its graph is destroyed.
  std::shared_ptr<char> captured = std::make_shared<char>();
  // Calls whose work is not on the stream yet.
  std::vector<std::pair<Stream*, Step>> calls;
  // Senders and receivers of these calls.
  std::vector<std::pair<int, int>> connecting;
  bool Connected() const {
    return std::all_of(connecting.begin(), connecting.end(),
                       [&](const std::pair<int, int>& ends) {
                         const std::array<bool, 2>& both = group->called[ends];
                         return both[0] && both[1];
                       });
  }
  void Fail(NcclResult result) {
    if (error == kNcclSuccess) error = result;
  }
};
using Shared = std::shared_ptr<Member>;

std::map<std::string, Group> groups;  // by id

// A send or receive between ncclGroupStart and ncclGroupEnd.
struct Message {
  bool sends;
  void* memory;
  size_t bytes;
  int peer;
  Shared member;
  Stream* stream;
};
thread_local int depth = 0;
thread_local std::vector<Message> messages;

Shared& Of(NcclComm comm) { return *static_cast<Shared*>(comm); }

NcclResult StateOf(const Member& member) {
  if (member.error != kNcclSuccess) return member.error;
  return member.calls.empty() && member.group->joined == member.group->members
             ? kNcclSuccess
             : kNcclInProgress;
}

// Logs a call. An error if it fails or another call is in progress.
NcclResult Enter(const char* symbol, size_t bytes, NcclComm comm) {
  if (Machine::Get().Enter(symbol, std::to_string(bytes)) != kCuSuccess)
    return kSystemError;
  return StateOf(*Of(comm)) == kNcclSuccess ? kNcclSuccess : kInvalidUsage;
}

std::string Read(const void* memory, size_t bytes) {
  Machine::Get().Touch(memory, bytes, /*writes=*/false);
  return std::string(static_cast<const char*>(memory), bytes);
}
void Write(void* memory, const std::string& content) {
  Machine::Get().Touch(memory, content.size(), /*writes=*/true);
  std::memcpy(memory, content.data(), content.size());
}

// Queues work that goes on the stream when the call is done.
void Call(const Shared& member, NcclStream stream, const char* name,
          std::function<void()> work, std::function<bool()> ready = nullptr) {
  Step step;
  step.name = name;
  step.work = [member, work = std::move(work)] {
    if (!member->aborted) work();
  };
  if (ready)
    step.ready = [member, ready = std::move(ready)] {
      return member->aborted || ready();
    };
  member->calls.emplace_back(static_cast<Stream*>(stream), std::move(step));
}

// Runs a collective. `make` computes this member's output from all members'
// inputs.
using Make = std::function<std::string(const std::vector<std::string>&)>;
void Meet(const char* name, const Shared& member, NcclStream stream,
          const void* input, size_t bytes, void* output, Make make) {
  Call(member, stream, name, [=] {
    Round& round = member->group->rounds[member->given++];
    round.inputs.resize(member->group->members);
    round.inputs[static_cast<size_t>(member->index)] = Read(input, bytes);
    ++round.came;
  });
  Call(
      member, stream, name,
      [=] {
        const uint64_t number = member->taken++;
        Round& round = member->group->rounds[number];
        Write(output, make(round.inputs));
        if (++round.left == member->group->members)
          member->group->rounds.erase(number);
      },
      [=] {
        return member->group->rounds[member->taken].came ==
               member->group->members;
      });
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
  // The strings are not the program's memory.
  Races& races = Machine::Get().races();
  const bool watched = races.Pause();
  for (size_t i = 0; i < into.size() / 2; ++i) {
    const Int at = static_cast<Int>(i);
    Store(type, into.data(), at,
          Combined(reduction, Load(type, into.data(), at),
                   Load(type, other.data(), at)));
  }
  if (watched) races.Watch();
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

// Reduces all members' inputs.
std::string Reduce(const Shared& member, NcclType type, NcclReduction reduction,
                   const std::vector<std::string>& all) {
  std::string sum = all[0];
  for (size_t i = 1; i < all.size(); ++i) {
    if (all[i].size() != sum.size()) {
      member->Fail(kInvalidArgument);
      return "";
    }
    Combine(type, reduction, all[i], sum);
  }
  return sum;
}

void Connect(const Message& message) {
  Member& member = *message.member;
  const std::pair<int, int> ends = message.sends
                                       ? std::pair(member.index, message.peer)
                                       : std::pair(message.peer, member.index);
  member.group->called[ends][message.sends ? 0 : 1] = true;
  member.connecting.push_back(ends);
}

void Send(const Message& message) {
  Call(message.member, message.stream, "ncclSend", [=] {
    message.member->group->letters[{message.member->index, message.peer}]
        .push_back(Read(message.memory, message.bytes));
  });
}

void Receive(const Message& message) {
  const auto letters = [=]() -> std::deque<std::string>& {
    return message.member->group
        ->letters[{message.peer, message.member->index}];
  };
  Call(
      message.member, message.stream, "ncclRecv",
      [=] {
        if (letters().front().size() != message.bytes)
          return message.member->Fail(kInvalidArgument);
        Write(message.memory, letters().front());
        letters().pop_front();
      },
      [=] { return !letters().empty(); });
}

NcclResult EndMessages() {
  if (messages.empty()) return kNcclSuccess;
  for (const Message& message : messages) Connect(message);
  for (const Message& message : messages)
    if (message.sends) Send(message);
  for (const Message& message : messages)
    if (!message.sends) Receive(message);
  messages.clear();
  return kNcclInProgress;
}

// Frees an aborted communicator. Like NCCL (commDestroySync, up to 2.28 at
// least), waits until no graph holds captured work of it; freeing memory also
// waits for all other work of the GPU. Does so even between ncclGroupStart and
// ncclGroupEnd, as versions up to 2.18 do. Waits at most five seconds, and logs
// that it hangs.
void Reclaim(NcclComm comm) {
  Machine& machine = Machine::Get();
  const Shared member = Of(comm);
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(5);
  for (;;) {
    {
      const Lock lock(machine.mutex);
      const bool is_idle = machine.RunAllOfRank(member->rank);
      const bool hangs = std::chrono::steady_clock::now() > end;
      if (hangs) machine.Enter("ncclCommAbort hangs");
      if (hangs || (is_idle && member->captured.use_count() == 1)) {
        delete &Of(comm);
        return;
      }
    }
    std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
}

NcclResult Add(const char* symbol, const Message& message, NcclComm comm) {
  const Lock lock(Machine::Get().mutex);
  const NcclResult entered = Enter(symbol, message.bytes, comm);
  if (entered != kNcclSuccess) return entered;
  messages.push_back(message);
  return depth > 0 ? kNcclSuccess : EndMessages();
}

}  // namespace
}  // namespace partita::cuda::recording

using namespace partita::cuda;
using namespace partita::cuda::recording;

#pragma GCC visibility push(default)
extern "C" {

NcclResult ncclGetUniqueId(NcclId* id) {
  static int last = 0;
  const Lock lock(Machine::Get().mutex);
  std::memset(id->bytes, 0, sizeof(id->bytes));
  const std::string text = "group " + std::to_string(++last);
  std::memcpy(id->bytes, text.data(), text.size());
  return kNcclSuccess;
}
NcclResult ncclGetVersion(int* version) {
  *version = 22809;
  return kNcclSuccess;
}
NcclResult ncclCommInitRankConfig(NcclComm* comm, int members, NcclId id,
                                  int index, NcclConfig* config) {
  Machine& machine = Machine::Get();
  const Lock lock(machine.mutex);
  if (machine.Enter(__func__, std::to_string(members)) != kCuSuccess)
    return kSystemError;
  if (config->bytes != sizeof(NcclConfig) || config->magic != 0xcafebeef ||
      config->version < 21400 || config->blocking != 0)
    return kInvalidArgument;
  Group& group = groups[std::string(id.bytes, sizeof(id.bytes))];
  group.members = static_cast<size_t>(members);
  ++group.joined;
  auto member = std::make_shared<Member>();
  member->group = &group;
  member->index = index;
  *comm = new Shared(std::move(member));
  return kNcclInProgress;
}
NcclResult ncclCommFinalize(NcclComm comm) {
  const Lock lock(Machine::Get().mutex);
  return Enter(__func__, 0, comm);
}
NcclResult ncclCommDestroy(NcclComm comm) {
  const Lock lock(Machine::Get().mutex);
  const NcclResult result = Enter(__func__, 0, comm);
  delete &Of(comm);
  return result;
}
NcclResult ncclCommAbort(NcclComm comm) {
  {
    Machine& machine = Machine::Get();
    const Lock lock(machine.mutex);
    machine.Enter(__func__);
    Of(comm)->aborted = true;
  }
  Reclaim(comm);
  return kNcclSuccess;
}
// Once this has been called and the messages are connected, the work of pending
// calls is on its stream.
NcclResult ncclCommGetAsyncError(NcclComm comm, NcclResult* error) {
  Machine& machine = Machine::Get();
  const Lock lock(machine.mutex);
  *error = static_cast<NcclResult>(machine.Enter(__func__));
  if (*error == kNcclSuccess) *error = StateOf(*Of(comm));
  if (!Of(comm)->Connected()) return kNcclSuccess;
  for (auto& [stream, step] : Of(comm)->calls) {
    if (stream->captured != nullptr)
      step.work = [work = std::move(step.work), held = Of(comm)->captured] {
        work();
      };
    machine.Put(*stream, std::move(step));
  }
  Of(comm)->calls.clear();
  Of(comm)->connecting.clear();
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
  const Lock lock(Machine::Get().mutex);
  return EndMessages();
}
NcclResult ncclAllReduce(const void* input, void* output, size_t count,
                         NcclType type, NcclReduction reduction, NcclComm comm,
                         NcclStream stream) {
  const Lock lock(Machine::Get().mutex);
  const size_t bytes = count * SizeOf(type);
  const NcclResult entered = Enter(__func__, bytes, comm);
  if (entered != kNcclSuccess) return entered;
  const Shared& member = Of(comm);
  Meet(__func__, member, stream, input, bytes, output,
       [=](const auto& all) { return Reduce(member, type, reduction, all); });
  return kNcclInProgress;
}
NcclResult ncclReduceScatter(const void* input, void* output,
                             size_t output_count, NcclType type,
                             NcclReduction reduction, NcclComm comm,
                             NcclStream stream) {
  const Lock lock(Machine::Get().mutex);
  const Shared& member = Of(comm);
  const size_t part = output_count * SizeOf(type);
  const size_t bytes = part * member->group->members;
  const NcclResult entered = Enter(__func__, bytes, comm);
  if (entered != kNcclSuccess) return entered;
  Meet(__func__, member, stream, input, bytes, output, [=](const auto& all) {
    const std::string sum = Reduce(member, type, reduction, all);
    return sum.empty()
               ? sum
               : sum.substr(static_cast<size_t>(member->index) * part, part);
  });
  return kNcclInProgress;
}
NcclResult ncclAllGather(const void* input, void* output, size_t input_count,
                         NcclType type, NcclComm comm, NcclStream stream) {
  const Lock lock(Machine::Get().mutex);
  const size_t bytes = input_count * SizeOf(type);
  const NcclResult entered = Enter(__func__, bytes, comm);
  if (entered != kNcclSuccess) return entered;
  Meet(__func__, Of(comm), stream, input, bytes, output, [](const auto& all) {
    std::string joined;
    for (const std::string& one : all) joined += one;
    return joined;
  });
  return kNcclInProgress;
}
NcclResult ncclBroadcast(const void* input, void* output, size_t count,
                         NcclType type, int root, NcclComm comm,
                         NcclStream stream) {
  const Lock lock(Machine::Get().mutex);
  const size_t bytes = count * SizeOf(type);
  const NcclResult entered = Enter(__func__, bytes, comm);
  if (entered != kNcclSuccess) return entered;
  const bool gives = Of(comm)->index == root;
  Meet(__func__, Of(comm), stream, input, gives ? bytes : 0, output,
       [=](const auto& all) { return all[static_cast<size_t>(root)]; });
  return kNcclInProgress;
}
NcclResult ncclSend(const void* input, size_t count, NcclType type, int to,
                    NcclComm comm, NcclStream stream) {
  return Add(__func__,
             {true, const_cast<void*>(input), count * SizeOf(type), to,
              Of(comm), static_cast<Stream*>(stream)},
             comm);
}
NcclResult ncclRecv(void* output, size_t count, NcclType type, int from,
                    NcclComm comm, NcclStream stream) {
  return Add(__func__,
             {false, output, count * SizeOf(type), from, Of(comm),
              static_cast<Stream*>(stream)},
             comm);
}

}  // extern "C"
#pragma GCC visibility pop
