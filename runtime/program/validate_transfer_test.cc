// Random programs of transfers: legal reorderings of a 1F1B schedule are valid,
// and each kind of damage is refused with its place.
#include <algorithm>
#include <functional>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "runtime/program/test_program.h"
#include "runtime/program/validate.h"

namespace partita::program {
namespace {

// A send or receive; every tensor has a different length.
struct Transfer {
  bool sends;
  int peer;
  int64_t length;
  DType dtype = DType::f32;
};
using Lists = std::vector<std::vector<Transfer>>;

// Transfers of stage `s` of `stages` under 1F1B.
std::vector<Transfer> OneForwardOneBackward(int s, int stages,
                                            int microbatches) {
  std::vector<Transfer> list;
  const auto forward = [&](int i) {
    if (s > 0) list.push_back({false, s - 1, 1 + 100 * s + i});
    if (s + 1 < stages) list.push_back({true, s + 1, 101 + 100 * s + i});
  };
  const auto backward = [&](int i) {
    if (s + 1 < stages) list.push_back({false, s + 1, 5101 + 100 * s + i});
    if (s > 0) list.push_back({true, s - 1, 5001 + 100 * s + i});
  };
  const int ahead = std::min(microbatches, stages - 1 - s);
  for (int i = 0; i < ahead; ++i) forward(i);
  for (int i = ahead; i < microbatches; ++i) {
    forward(i);
    backward(i - ahead);
  }
  for (int i = microbatches - ahead; i < microbatches; ++i) backward(i);
  return list;
}

Lists Schedule(int stages, int microbatches) {
  Lists lists;
  for (int s = 0; s < stages; ++s)
    lists.push_back(OneForwardOneBackward(s, stages, microbatches));
  return lists;
}

template <typename T>
std::unique_ptr<InstructionT> Make(const Transfer& transfer, int64_t stages) {
  T table;
  table.axes = {WholeAxis(0, stages)};
  table.peer = transfer.peer;
  table.dtype = transfer.dtype;
  table.shape = {transfer.length};
  OperationUnion operation;
  operation.Set(std::move(table));
  return MakeInstruction(std::move(operation), {Frame(0, transfer.length * 8)},
                         transfer.sends ? 0 : 1, "t");
}

std::string Validate(const Lists& lists) {
  const int64_t stages = static_cast<int64_t>(lists.size());
  ProgramT program;
  program.mesh = MakeMesh({{"pipe", stages}});
  program.pipeline = {WholeAxis(0, stages)};
  program.target = "cpu";
  for (size_t s = 0; s < lists.size(); ++s) {
    auto main = MakeFunction("main" + std::to_string(s), 0, 0, 1 << 20);
    for (const Transfer& transfer : lists[s])
      main->body.push_back(transfer.sends ? Make<SendT>(transfer, stages)
                                          : Make<ReceiveT>(transfer, stages));
    program.functions.push_back(std::move(main));
    AddEntry(program, static_cast<int>(s), {});
  }
  const std::string bytes = SerializeProgram(program);
  return std::string(
      ValidateProgram(*GetProgram(bytes.data()), 0, /*has_code=*/false)
          .message());
}

class ValidateTransferTest : public ::testing::Test {
 protected:
  int Draw(int end) {
    return std::uniform_int_distribution<int>(0, end - 1)(random_);
  }
  Lists DrawSchedule() { return Schedule(2 + Draw(4), 1 + Draw(8)); }

  // Draws two transfers of one entry, in their order, that `fits` accepts.
  using Fits = std::function<bool(const Transfer&, const Transfer&)>;
  std::optional<std::pair<Transfer*, Transfer*>> DrawPair(Lists& lists,
                                                          const Fits& fits,
                                                          bool adjacent) {
    std::vector<std::pair<Transfer*, Transfer*>> found;
    for (auto& list : lists)
      for (size_t i = 0; i < list.size(); ++i)
        for (size_t j = i + 1;
             j < (adjacent ? std::min(i + 2, list.size()) : list.size()); ++j)
          if (fits(list[i], list[j])) found.emplace_back(&list[i], &list[j]);
    if (found.empty()) return std::nullopt;
    return found[static_cast<size_t>(Draw(static_cast<int>(found.size())))];
  }

  std::mt19937 random_{5};
};

// A send may always move earlier, if it stays behind sends to the same entry.
TEST_F(ValidateTransferTest, LegalOrdersAreValid) {
  for (int trial = 0; trial < 200; ++trial) {
    Lists lists = DrawSchedule();
    for (int swaps = Draw(60); swaps > 0; --swaps) {
      const auto pair = DrawPair(
          lists,
          [](const Transfer& a, const Transfer& b) {
            return b.sends && (!a.sends || a.peer != b.peer);
          },
          /*adjacent=*/true);
      if (pair) std::swap(*pair->first, *pair->second);
    }
    EXPECT_EQ(Validate(lists), "") << trial;
  }
}

TEST_F(ValidateTransferTest, EveryDamageIsRefusedWithItsPlace) {
  int refused = 0;
  for (int trial = 0; trial < 280; ++trial) {
    Lists lists = DrawSchedule();
    const int stages = static_cast<int>(lists.size());
    auto& list = lists[static_cast<size_t>(Draw(stages))];
    const size_t at = static_cast<size_t>(Draw(static_cast<int>(list.size())));
    Transfer& transfer = list[at];
    const int kind = trial % 7;
    if (kind == 0) {  // missing
      list.erase(list.begin() + static_cast<int64_t>(at));
    } else if (kind == 1) {  // duplicated
      list.insert(list.begin() + static_cast<int64_t>(at), Transfer(transfer));
    } else if (kind == 2) {  // a different type
      transfer.dtype = DType::f64;
    } else if (kind == 3) {  // a different shape
      ++transfer.length;
    } else if (kind == 4) {  // a different peer
      transfer.peer = (transfer.peer + 1 + Draw(stages - 1)) % stages;
    } else if (kind == 5) {  // the order of a pair
      const auto pair = DrawPair(
          lists,
          [](const Transfer& a, const Transfer& b) {
            return a.sends == b.sends && a.peer == b.peer;
          },
          /*adjacent=*/false);
      if (!pair) continue;
      std::swap(*pair->first, *pair->second);
    } else {  // a receive that depends on a later send: a cycle
      const auto pair = DrawPair(
          lists,
          [](const Transfer& a, const Transfer& b) {
            return a.sends && !b.sends && a.peer == b.peer &&
                   b.length == a.length + 5000;
          },
          /*adjacent=*/false);
      if (!pair) continue;
      std::rotate(pair->first, pair->second, pair->second + 1);
    }
    const std::string message = Validate(lists);
    EXPECT_EQ(message.rfind("entry ", 0), 0u) << trial << ": " << message;
    EXPECT_NE(message.find("function 'main"), std::string::npos) << message;
    EXPECT_NE(message.find("', instruction "), std::string::npos) << message;
    ++refused;
  }
  EXPECT_GE(refused, 200);
}

}  // namespace
}  // namespace partita::program
