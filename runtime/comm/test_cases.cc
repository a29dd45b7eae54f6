// The reference visits every element of the output and looks up its source.
#include "runtime/comm/test_cases.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <numeric>
#include <optional>
#include <thread>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "runtime/comm/reduce.h"

namespace partita::comm {
namespace {

using Index = std::vector<int64_t>;

int64_t Linear(const Index& index, const std::vector<int64_t>& shape) {
  int64_t linear = 0;
  for (size_t i = 0; i < shape.size(); ++i)
    linear = linear * shape[i] + index[i];
  return linear;
}

Index Unravel(int64_t linear, const std::vector<int64_t>& shape) {
  Index index(shape.size());
  for (size_t i = shape.size(); i-- > 0; linear /= shape[i])
    index[i] = linear % shape[i];
  return index;
}

// Member and element that an output element comes from; empty: fill.
struct Origin {
  int member;
  Index index;
};

std::optional<Origin> OriginOf(const Operation& op, int receiver, Index at) {
  const size_t dim = op.dim < 0 ? 0 : static_cast<size_t>(op.dim);
  switch (op.kind) {
    case Kind::kAllGather:
    case Kind::kGather: {
      const int64_t block = op.input_shape[dim];
      const int member = static_cast<int>(at[dim] / block);
      at[dim] %= block;
      return Origin{member, at};
    }
    case Kind::kReduceScatter:
    case Kind::kAllSlice:
      at[dim] += receiver * op.output_shape[dim];
      if (at[dim] >= op.input_shape[dim]) return std::nullopt;
      return Origin{receiver, at};
    case Kind::kAllToAll: {
      const size_t other = static_cast<size_t>(op.other_dim);
      at[dim] += receiver * op.output_shape[dim];
      if (at[dim] >= op.input_shape[dim]) return std::nullopt;
      const int64_t block = op.input_shape[other];
      const int member = static_cast<int>(at[other] / block);
      at[other] %= block;
      return Origin{member, at};
    }
    case Kind::kExchange: {
      const int64_t row = receiver * op.step + op.offset + at[dim];
      if (row < 0 || row >= op.size) return std::nullopt;
      const int64_t block = op.input_shape[dim];
      at[dim] = row % block;
      return Origin{static_cast<int>(row / block), at};
    }
    case Kind::kSendRows:
    case Kind::kReturnRows:
      return std::nullopt;  // tested in row_cases.cc
    case Kind::kPermute:
      return Origin{op.sources[static_cast<size_t>(receiver)], at};
    case Kind::kBroadcast:
      return Origin{op.root, at};
    case Kind::kTransfer:
      return Origin{0, at};
    case Kind::kAllReduce:
      break;
  }
  return Origin{receiver, at};
}

double Apply(Reduction reduction, double a, double b) {
  switch (reduction) {
    case Reduction::kSum:
      return a + b;
    case Reduction::kProd:
      return a * b;
    case Reduction::kMax:
      return std::max(a, b);
    case Reduction::kMin:
      return std::min(a, b);
    case Reduction::kAny:
      return a != 0 || b != 0;
    case Reduction::kAll:
      break;
  }
  return a != 0 && b != 0;
}

Operation Make(Kind kind, std::vector<int64_t> input,
               std::vector<int64_t> output, int dim, int other_dim = -1) {
  Operation op;
  op.kind = kind;
  op.input_shape = std::move(input);
  op.output_shape = std::move(output);
  op.dim = dim;
  op.other_dim = other_dim;
  op.name = "test";
  return op;
}

// `shape` with dimension `dim` replaced.
std::vector<int64_t> With(std::vector<int64_t> shape, int dim, int64_t size) {
  shape[static_cast<size_t>(dim)] = size;
  return shape;
}

void AddDivisions(int n, int64_t size, int64_t block,
                  std::vector<Operation>& all) {
  const std::vector<int64_t> shape = {2, 3, 4};
  for (int dim = 0; dim < 3; ++dim) {
    const std::vector<int64_t> whole = With(shape, dim, size);
    const std::vector<int64_t> part = With(shape, dim, block);
    all.push_back(Make(Kind::kAllGather, part, whole, dim));
    all.push_back(Make(Kind::kGather, part, whole, dim));
    all.push_back(Make(Kind::kReduceScatter, whole, part, dim));
    all.push_back(Make(Kind::kAllSlice, whole, part, dim));
    // The other dimension has 5 rows, or 4 in even blocks.
    const int other = (dim + 1) % 3;
    for (const int64_t rows : {int64_t{5}, int64_t{4} * n}) {
      const int64_t other_block = (rows + n - 1) / n;
      for (const auto& [a, b] :
           {std::pair(dim, other), std::pair(other, dim)}) {
        const int64_t a_size = a == dim ? size : rows;
        const int64_t a_block = a == dim ? block : other_block;
        const int64_t b_size = a == dim ? rows : size;
        const int64_t b_block = a == dim ? other_block : block;
        all.push_back(Make(Kind::kAllToAll,
                           With(With(shape, a, a_size), b, b_block),
                           With(With(shape, a, a_block), b, b_size), a, b));
      }
    }
  }
}

void AddExchanges(int64_t size, int64_t block, std::vector<Operation>& all) {
  struct Window {
    int64_t step, offset, rows;
  };
  for (int dim = 0; dim < 2; ++dim) {
    for (const Window& window :
         {Window{block, -1, block + 2},                  // a 3-wide stencil
          Window{block, 0, block + 1},                   // one row from below
          Window{block, -2 * block - 1, 4 * block + 3},  // wider than a shard
          Window{2 * block, -1, 2 * block},              // a different stride
          Window{block + 1, 0, block + 1},               // different blocks
          Window{-block, size - block, block},           // in reverse order
          Window{-2 * block, size, 2 * block + 1},       // with a wide stride
          Window{0, 0, size}}) {                         // all rows
      Operation op = Make(Kind::kExchange, With({2, 3, 4}, dim, block),
                          With({2, 3, 4}, dim, window.rows), dim);
      op.size = size;
      op.step = window.step;
      op.offset = window.offset;
      op.fill = -7;
      all.push_back(op);
    }
  }
}

}  // namespace

std::vector<Operation> TestOperations(int n) {
  std::vector<Operation> all;
  all.push_back(Make(Kind::kAllReduce, {3, 5}, {3, 5}, -1));
  all.push_back(Make(Kind::kAllReduce, {}, {}, -1));
  all.push_back(Make(Kind::kAllReduce, {0, 4}, {0, 4}, -1));
  all.push_back(Make(Kind::kAllReduce, {40013}, {40013}, -1));
  for (int root = 0; root < n; root += 3) {
    all.push_back(Make(Kind::kBroadcast, {3, 5}, {3, 5}, -1));
    all.back().root = root;
  }
  all.push_back(Make(Kind::kPermute, {3, 5}, {3, 5}, -1));
  for (int i = 0; i < n; ++i) all.back().sources.push_back((i + 1) % n);
  for (const int64_t size : {int64_t{1}, int64_t{7}, int64_t{3} * n}) {
    const int64_t even = (size + n - 1) / n;
    // One row more than needed leaves the last members short or empty.
    for (const int64_t block : {even, even + 1}) {
      AddDivisions(n, size, block, all);
      AddExchanges(size, block, all);
    }
  }
  return all;
}

std::vector<Operation> TestReductions() {
  std::vector<Operation> all;
  for (int dtype = 0; dtype < base::kDTypeCount; ++dtype) {
    for (const Reduction reduction :
         {Reduction::kSum, Reduction::kProd, Reduction::kMax, Reduction::kMin,
          Reduction::kAny, Reduction::kAll}) {
      const bool logical =
          reduction == Reduction::kAny || reduction == Reduction::kAll;
      const auto type = static_cast<base::DType>(dtype);
      if (base::IsFloat(type) && base::SizeOf(type) == 1) continue;
      if (logical != (type == base::DType::kI1)) continue;
      all.push_back(Make(Kind::kAllReduce, {3, 3001}, {3, 3001}, -1));
      all.push_back(Make(Kind::kReduceScatter, {6, 1001}, {2, 1001}, 0));
      for (size_t i = all.size() - 2; i < all.size(); ++i) {
        all[i].dtype = type;
        all[i].reduction = reduction;
      }
    }
  }
  return all;
}

std::string TestInput(const Operation& op, int member) {
  const int64_t count = *base::ElementCount(op.input_shape);
  std::string bytes(static_cast<size_t>(op.InputBytes()), '\0');
  for (int64_t i = 0; i < count; ++i) {
    double value = static_cast<double>((i * 7 + member * 3) % 11);
    // Products of up to eight must stay exact in bf16.
    if (op.reduction == Reduction::kProd) value = (i + member) % 3 == 0 ? 2 : 1;
    base::Convert(base::DType::kF64, &value, op.dtype,
                  &bytes[static_cast<size_t>(i * base::SizeOf(op.dtype))], 1);
  }
  return bytes;
}

std::string ExpectedOutput(const Operation& op, int n, int receiver,
                           const std::vector<std::string>& inputs) {
  std::string bytes(static_cast<size_t>(op.OutputBytes()), '\xEE');
  if (op.kind == Kind::kGather && receiver != 0) return bytes;
  const bool reduces =
      op.kind == Kind::kAllReduce || op.kind == Kind::kReduceScatter;
  const int64_t count = *base::ElementCount(op.output_shape);
  for (int64_t i = 0; i < count; ++i) {
    const std::optional<Origin> origin =
        OriginOf(op, receiver, Unravel(i, op.output_shape));
    double value = op.kind == Kind::kExchange ? op.fill : 0;
    const auto read = [&](int member) {
      return base::ElementAsDouble(op.dtype,
                                   inputs[static_cast<size_t>(member)].data(),
                                   Linear(origin->index, op.input_shape));
    };
    if (origin && reduces) {
      value = read(0);
      for (int member = 1; member < n; ++member)
        value = Apply(op.reduction, value, read(member));
    } else if (origin) {
      value = read(origin->member);
    }
    base::Convert(base::DType::kF64, &value, op.dtype,
                  &bytes[static_cast<size_t>(i * base::SizeOf(op.dtype))], 1);
  }
  return bytes;
}

std::vector<std::string> RunOnThreads(
    const std::vector<std::unique_ptr<Communicator>>& communicators,
    const Operation& op, const std::vector<std::string>& inputs,
    bool in_place) {
  const size_t n = communicators.size();
  std::vector<int> ranks(n);
  std::iota(ranks.begin(), ranks.end(), 0);
  std::vector<std::string> outputs(n);
  std::vector<absl::Status> statuses(n);
  const auto run = [&](size_t i) {
    std::string output =
        in_place ? inputs[i]
                 : std::string(static_cast<size_t>(op.OutputBytes()), '\xEE');
    auto collective = communicators[i]->Prepare(op, ranks);
    statuses[i] = collective.status();
    if (!collective.ok()) return;
    statuses[i] = communicators[i]->Run(
        **collective, in_place ? output.data() : inputs[i].data(),
        output.data());
    outputs[i] = std::move(output);
  };
  std::vector<std::thread> threads;
  for (size_t i = 0; i < n; ++i) threads.emplace_back(run, i);
  for (std::thread& thread : threads) thread.join();
  for (const absl::Status& status : statuses)
    EXPECT_TRUE(status.ok()) << status;
  return outputs;
}

void CheckAgainstReference(const MakeCommunicators& make) {
  for (int n = 1; n <= 8; ++n) {
    const std::vector<std::unique_ptr<Communicator>> communicators = make(n);
    std::vector<Operation> operations = TestOperations(n);
    if (n == 3) {
      for (Operation& op : TestReductions())
        operations.push_back(std::move(op));
    }
    for (const Operation& op : operations) {
      std::vector<std::string> inputs;
      for (int i = 0; i < n; ++i) inputs.push_back(TestInput(op, i));
      for (const bool in_place : {false, true}) {
        if (in_place && op.kind != Kind::kAllReduce) continue;
        const std::vector<std::string> outputs =
            RunOnThreads(communicators, op, inputs, in_place);
        for (int i = 0; i < n; ++i) {
          ASSERT_EQ(outputs[static_cast<size_t>(i)] ==
                        ExpectedOutput(op, n, i, inputs),
                    true)
              << Describe(op) << " dim " << op.dim << " other " << op.other_dim
              << " to " << base::TypeName(op.dtype, op.output_shape)
              << " member " << i << " of " << n << " in place " << in_place;
        }
      }
    }
  }
}

absl::Status TransferRing(Communicator& communicator) {
  constexpr int kTimes = 20;
  const int n = communicator.size(), rank = communicator.rank();
  const int next = (rank + 1) % n, before = (rank + n - 1) % n;
  const auto transfer = [&](const std::string& name, int64_t size, int from,
                            int to) {
    Operation op;
    op.kind = Kind::kTransfer;
    op.input_shape = op.output_shape = {size};
    op.name = name;
    return communicator.Prepare(op, {from, to});
  };
  Operation sum;
  sum.input_shape = sum.output_shape = {1};
  std::vector<int> all(static_cast<size_t>(n));
  std::iota(all.begin(), all.end(), 0);
  auto total = communicator.Prepare(sum, all);
  auto send_small = transfer("small", 1, rank, next);
  auto send_large = transfer("large", 100000, rank, next);
  auto receive_small = transfer("small", 1, before, rank);
  auto receive_large = transfer("large", 100000, before, rank);
  for (const auto* prepared :
       {&total, &send_small, &send_large, &receive_small, &receive_large})
    if (!prepared->ok()) return prepared->status();
  std::vector<float> small(1), large(100000);
  for (int i = 0; i < kTimes; ++i) {
    small.assign(1, static_cast<float>(1000 * rank + i));
    large.assign(100000, static_cast<float>(2000 * rank + i));
    absl::Status status = communicator.Run(**send_small, small.data(), nullptr);
    if (status.ok())
      status = communicator.Run(**send_large, large.data(), nullptr);
    float one = 1, count = 0;
    if (status.ok()) status = communicator.Run(**total, &one, &count);
    if (status.ok() && count != static_cast<float>(n))
      status = absl::InternalError("wrong sum");
    if (!status.ok()) return status;
  }
  for (int i = 0; i < kTimes; ++i) {
    absl::Status status =
        communicator.Run(**receive_small, nullptr, small.data());
    if (status.ok())
      status = communicator.Run(**receive_large, nullptr, large.data());
    if (!status.ok()) return status;
    if (small[0] != static_cast<float>(1000 * before + i) ||
        large[99999] != static_cast<float>(2000 * before + i))
      return absl::InternalError("another tensor than was sent");
  }
  return absl::OkStatus();
}

namespace {

absl::Status TransferOnce(Communicator& communicator, const std::string& name) {
  Operation op;
  op.kind = Kind::kTransfer;
  op.input_shape = op.output_shape = {4};
  op.name = name;
  auto transfer = communicator.Prepare(op, {0, 1});
  if (!transfer.ok()) return transfer.status();
  std::vector<float> values(4, 1);
  return communicator.Run(**transfer, values.data(), values.data());
}

template <typename Body>
std::vector<absl::Status> OnEach(
    const std::vector<std::unique_ptr<Communicator>>& communicators,
    const Body& body) {
  std::vector<absl::Status> statuses(communicators.size());
  std::vector<std::thread> threads;
  for (size_t i = 0; i < statuses.size(); ++i)
    threads.emplace_back([&, i] { statuses[i] = body(*communicators[i]); });
  for (std::thread& thread : threads) thread.join();
  return statuses;
}

}  // namespace

void CheckTransfers(
    const std::function<std::vector<std::unique_ptr<Communicator>>(
        int, std::chrono::milliseconds)>& make) {
  const std::chrono::milliseconds long_time(20000), short_time(200);
  for (const int n : {2, 3})
    for (const absl::Status& status : OnEach(make(n, long_time), TransferRing))
      EXPECT_TRUE(status.ok()) << status;

  const auto mixed = OnEach(make(2, long_time), [](Communicator& c) {
    return TransferOnce(c, c.rank() == 0 ? "gradient" : "activation");
  });
  EXPECT_TRUE(mixed[0].ok()) << mixed[0];
  const std::string other(mixed[1].message());
  EXPECT_NE(other.find("rank 1 expected transfer 'activation'"),
            std::string::npos)
      << other;
  EXPECT_NE(other.find("of rank 0, found "), std::string::npos) << other;

  const auto missed =
      OnEach(make(2, short_time), [](Communicator& c) -> absl::Status {
        return c.rank() == 0 ? absl::OkStatus() : TransferOnce(c, "activation");
      });
  const std::string none(missed[1].message());
  EXPECT_NE(none.find("rank 0"), std::string::npos) << none;
  EXPECT_NE(none.find("activation"), std::string::npos) << none;
}

}  // namespace partita::comm
