// Geometry of collectives. A tensor is seen as outer x rows x inner around one
// dimension, or with two dimensions separated for all_to_all.
#include "runtime/comm/operation.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"

namespace partita::comm {
namespace {

// A range of rows of one dimension, with its place in source and target.
struct Range {
  int dim = -1;
  int64_t from = 0;
  int64_t to = 0;
  int64_t count = 0;
};

int64_t Product(const std::vector<int64_t>& shape, size_t begin, size_t end) {
  int64_t product = 1;
  for (size_t i = begin; i < end; ++i) product *= shape[i];
  return product;
}

// Merges loops into the run while their stride equals the size of their
// content.
Box Collapse(Box box) {
  for (int i = 2; i >= 0; --i) {
    const bool dense =
        box.from_strides[i] == box.run && box.to_strides[i] == box.run;
    if (box.counts[i] == 1) continue;
    if (!dense) break;
    box.run *= box.counts[i];
    box.counts[i] = 1;
  }
  return box;
}

Box Whole(int64_t bytes) {
  Box box;
  box.run = bytes;
  return box;
}

Box OneDim(const Operation& op, const Range& range) {
  const size_t dim = static_cast<size_t>(range.dim);
  const std::vector<int64_t>& in = op.input_shape;
  const int64_t inner =
      Product(in, dim + 1, in.size()) * base::SizeOf(op.dtype);
  Box box;
  if (range.count <= 0) return box;
  box.counts[0] = Product(in, 0, dim);
  box.from_strides[0] = in[dim] * inner;
  box.to_strides[0] = op.output_shape[dim] * inner;
  box.run = range.count * inner;
  box.from = range.from * inner;
  box.to = range.to * inner;
  return Collapse(box);
}

Box TwoDims(const Operation& op, Range a, Range b) {
  if (a.dim > b.dim) std::swap(a, b);
  if (a.count <= 0 || b.count <= 0) return {};
  const size_t first = static_cast<size_t>(a.dim);
  const size_t second = static_cast<size_t>(b.dim);
  const std::vector<int64_t>& in = op.input_shape;
  const std::vector<int64_t>& out = op.output_shape;
  const int64_t inner =
      Product(in, second + 1, in.size()) * base::SizeOf(op.dtype);
  const int64_t between = Product(in, first + 1, second);
  Box box;
  box.counts[0] = Product(in, 0, first);
  box.counts[1] = a.count;
  box.counts[2] = between;
  const auto strides = [&](const std::vector<int64_t>& shape,
                           int64_t* strides) {
    strides[2] = shape[second] * inner;
    strides[1] = between * strides[2];
    strides[0] = shape[first] * strides[1];
  };
  strides(in, box.from_strides);
  strides(out, box.to_strides);
  box.run = b.count * inner;
  box.from = a.from * box.from_strides[1] + b.from * inner;
  box.to = a.to * box.to_strides[1] + b.to * inner;
  return Collapse(box);
}

// Rows of block number `index` of a dimension of `size` rows.
int64_t RowsOfBlock(int64_t size, int64_t block, int index) {
  return std::clamp<int64_t>(size - index * block, 0, block);
}

// Block `sender` of the gathered dimension, in the result.
Range Gathered(const Operation& op, int dim, int sender) {
  const size_t index = static_cast<size_t>(dim);
  const int64_t block = op.input_shape[index];
  return {dim, 0, sender * block,
          RowsOfBlock(op.output_shape[index], block, sender)};
}

// The receiver's block of the divided dimension, in the input.
Range Divided(const Operation& op, int receiver) {
  const size_t index = static_cast<size_t>(op.dim);
  const int64_t block = op.output_shape[index];
  return {op.dim, receiver * block, 0,
          RowsOfBlock(op.input_shape[index], block, receiver)};
}

// Rows that the receiver's window takes from the sender's block.
Range Exchanged(const Operation& op, int receiver, int sender) {
  const size_t index = static_cast<size_t>(op.dim);
  const int64_t block = op.input_shape[index];
  const int64_t first = receiver * op.step + op.offset;
  const int64_t owned = sender * block;
  const int64_t begin = std::max(first, owned);
  const int64_t end = std::min(first + op.output_shape[index],
                               owned + RowsOfBlock(op.size, block, sender));
  return {op.dim, begin - owned, begin - first, end - begin};
}

// Rows [begin, end) of dimension op.dim of the output.
Box OutputRows(const Operation& op, int64_t begin, int64_t end) {
  const size_t dim = static_cast<size_t>(op.dim);
  const std::vector<int64_t>& out = op.output_shape;
  const int64_t inner =
      Product(out, dim + 1, out.size()) * base::SizeOf(op.dtype);
  Box box;
  if (end <= begin) return box;
  box.counts[0] = Product(out, 0, dim);
  box.from_strides[0] = box.to_strides[0] = out[dim] * inner;
  box.run = (end - begin) * inner;
  box.to = begin * inner;
  return Collapse(box);
}

}  // namespace

const char* NameOf(Kind kind) {
  switch (kind) {
    case Kind::kAllReduce:
      return "all_reduce";
    case Kind::kAllGather:
      return "all_gather";
    case Kind::kReduceScatter:
      return "reduce_scatter";
    case Kind::kAllToAll:
      return "all_to_all";
    case Kind::kAllSlice:
      return "all_slice";
    case Kind::kExchange:
      return "exchange";
    case Kind::kPermute:
      return "permute";
    case Kind::kBroadcast:
      return "broadcast";
    case Kind::kSendRows:
      return "send_rows";
    case Kind::kReturnRows:
      return "return_rows";
    case Kind::kGather:
      return "gather";
    case Kind::kTransfer:
      break;
  }
  return "transfer";
}

int64_t Operation::InputBytes() const {
  return *base::ByteCount(dtype, input_shape);
}

int64_t Operation::OutputBytes() const {
  return *base::ByteCount(dtype, output_shape);
}

std::string Describe(const Operation& operation) {
  return absl::StrCat(NameOf(operation.kind), " '", operation.name, "' of ",
                      base::TypeName(operation.dtype, operation.input_shape));
}

uint64_t Fingerprint(const Operation& operation) {
  uint64_t hash = 0xcbf29ce484222325;
  const auto add = [&hash](int64_t value) {
    hash = (hash ^ static_cast<uint64_t>(value)) * 0x100000001b3;
    hash ^= hash >> 29;
  };
  for (const int64_t value : {static_cast<int64_t>(operation.kind),
                              static_cast<int64_t>(operation.reduction),
                              static_cast<int64_t>(operation.dtype),
                              static_cast<int64_t>(operation.dim),
                              static_cast<int64_t>(operation.other_dim),
                              operation.size, operation.step, operation.offset,
                              static_cast<int64_t>(operation.root)}) {
    add(value);
  }
  for (const int64_t size : operation.input_shape) add(size);
  for (const int64_t size : operation.output_shape) add(size);
  for (const char letter : operation.name) add(letter);
  return hash;
}

Box PieceOf(const Operation& op, int n, int receiver, int sender) {
  switch (op.kind) {
    case Kind::kAllReduce:
      return Whole(op.InputBytes());
    case Kind::kGather:
      if (receiver != 0) return {};
      [[fallthrough]];
    case Kind::kAllGather:
      return OneDim(op, Gathered(op, op.dim, sender));
    case Kind::kAllSlice:
      if (receiver != sender) return {};
      [[fallthrough]];
    case Kind::kReduceScatter:
      return OneDim(op, Divided(op, receiver));
    case Kind::kAllToAll:
      return TwoDims(op, Divided(op, receiver),
                     Gathered(op, op.other_dim, sender));
    case Kind::kExchange:
      return OneDim(op, Exchanged(op, receiver, sender));
    case Kind::kPermute:
      return op.sources[static_cast<size_t>(receiver)] == sender
                 ? Whole(op.InputBytes())
                 : Box();
    case Kind::kSendRows:
    case Kind::kReturnRows:
      return {};
    case Kind::kTransfer:
      return sender == 0 && receiver == 1 ? Whole(op.InputBytes()) : Box();
    case Kind::kBroadcast:
      break;
  }
  return op.root == sender ? Whole(op.InputBytes()) : Box();
}

std::vector<Box> BlanksOf(const Operation& op, int n, int receiver) {
  std::vector<Box> blanks;
  const auto add = [&](int64_t begin, int64_t end) {
    const Box box = OutputRows(op, begin, end);
    if (box.Bytes() > 0) blanks.push_back(box);
  };
  switch (op.kind) {
    case Kind::kReduceScatter:
    case Kind::kAllSlice:
    case Kind::kAllToAll:
      add(Divided(op, receiver).count,
          op.output_shape[static_cast<size_t>(op.dim)]);
      break;
    case Kind::kExchange: {
      const int64_t rows = op.output_shape[static_cast<size_t>(op.dim)];
      const int64_t first = receiver * op.step + op.offset;
      const int64_t begin = std::clamp<int64_t>(-first, 0, rows);
      add(0, begin);
      add(std::clamp<int64_t>(op.size - first, begin, rows), rows);
      break;
    }
    default:
      break;
  }
  return blanks;
}

std::string FillOf(const Operation& op) {
  std::string bytes(static_cast<size_t>(base::SizeOf(op.dtype)), '\0');
  const bool fills = op.kind == Kind::kExchange || op.kind == Kind::kSendRows;
  const double value = fills ? op.fill : 0.0;
  base::Convert(base::DType::kF64, &value, op.dtype, bytes.data(), 1);
  return bytes;
}

bool MovesRows(Kind kind) {
  return kind == Kind::kSendRows || kind == Kind::kReturnRows;
}

Traffic TrafficOf(const Operation& op, int n, int index) {
  if (op.kind == Kind::kAllReduce) {
    const int64_t whole = op.InputBytes(), bytes = 2 * (whole - whole / n);
    return {bytes, bytes};
  }
  if (MovesRows(op.kind)) {
    const int64_t bytes =
        op.input_shape[1] * base::SizeOf(op.dtype) * (op.size - op.size / n);
    return {bytes, bytes};
  }
  Traffic traffic;
  for (int other = 0; other < n; ++other) {
    if (other == index) continue;
    traffic.received += PieceOf(op, n, index, other).Bytes();
    traffic.sent += PieceOf(op, n, other, index).Bytes();
  }
  return traffic;
}

void CopyBox(const Box& box, const void* source, void* target) {
  const char* from = static_cast<const char*>(source);
  char* to = static_cast<char*>(target);
  ForEachRun(box, [&](int64_t at, int64_t place) {
    std::memcpy(to + place, from + at, static_cast<size_t>(box.run));
  });
}

void PackBox(const Box& box, const void* source, void* packed) {
  const char* from = static_cast<const char*>(source);
  char* to = static_cast<char*>(packed);
  ForEachRun(box, [&](int64_t at, int64_t) {
    std::memcpy(to, from + at, static_cast<size_t>(box.run));
    to += box.run;
  });
}

void UnpackBox(const Box& box, const void* packed, void* target) {
  const char* from = static_cast<const char*>(packed);
  char* to = static_cast<char*>(target);
  ForEachRun(box, [&](int64_t, int64_t place) {
    std::memcpy(to + place, from, static_cast<size_t>(box.run));
    from += box.run;
  });
}

void FillBlanks(const Operation& op, int n, int receiver, void* output) {
  const std::vector<Box> blanks = BlanksOf(op, n, receiver);
  if (blanks.empty()) return;
  const std::string element = FillOf(op);
  const bool zero = element.find_first_not_of('\0') == std::string::npos;
  char* to = static_cast<char*>(output);
  for (const Box& blank : blanks) {
    ForEachRun(blank, [&](int64_t, int64_t place) {
      if (zero) {
        std::memset(to + place, 0, static_cast<size_t>(blank.run));
        return;
      }
      for (size_t i = 0; i < static_cast<size_t>(blank.run);
           i += element.size())
        std::memcpy(to + place + i, element.data(), element.size());
    });
  }
}

}  // namespace partita::comm
