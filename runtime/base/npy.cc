// Reads and writes .npy files; parses the header's Python dictionary in the
// form that NumPy writes.
#include "runtime/base/npy.h"

#include <limits>
#include <memory>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "runtime/base/atomic_file.h"
#include "runtime/base/status_macros.h"

namespace partita::base {
namespace {

constexpr std::string_view kMagic = "\x93NUMPY";

struct Descr {
  const char* text;  // without the byte order
  DType dtype;
};
constexpr Descr kDescrs[] = {
    {"f4", DType::kF32}, {"f8", DType::kF64}, {"f2", DType::kF16},
    {"b1", DType::kI1},  {"i1", DType::kI8},  {"i2", DType::kI16},
    {"i4", DType::kI32}, {"i8", DType::kI64}, {"u1", DType::kU8},
    {"u2", DType::kU16}, {"u4", DType::kU32}, {"u8", DType::kU64},
};

std::string Text(std::string_view view) { return std::string(view); }

// A cursor over the header's dictionary: {'descr': '<f4', 'fortran_order':
// False, 'shape': (2, 3), }
class DictParser {
 public:
  explicit DictParser(std::string_view text) : text_(text) {}

  std::optional<std::string> descr;
  std::optional<bool> fortran_order;
  std::optional<std::vector<int64_t>> shape;

  // Returns false if the text is not such a dictionary; position() is the place
  // of the error.
  bool Parse() {
    if (!Take('{')) return false;
    while (!Take('}')) {
      std::string key;
      if (!String(key) || !Take(':') || !Value(key)) return false;
      if (!Take(',')) {
        if (!Take('}')) return false;
        break;
      }
    }
    Space();
    return position_ == text_.size() && descr && fortran_order && shape;
  }
  size_t position() const { return position_; }

 private:
  void Space() {
    while (position_ < text_.size() &&
           (text_[position_] == ' ' || text_[position_] == '\n'))
      ++position_;
  }
  bool Take(char wanted) {
    Space();
    if (position_ >= text_.size() || text_[position_] != wanted) return false;
    ++position_;
    return true;
  }
  bool Word(std::string_view wanted) {
    Space();
    if (text_.substr(position_, wanted.size()) != wanted) return false;
    position_ += wanted.size();
    return true;
  }
  bool String(std::string& value) {
    Space();
    if (position_ >= text_.size() ||
        (text_[position_] != '\'' && text_[position_] != '"'))
      return false;
    const size_t end = text_.find(text_[position_], position_ + 1);
    if (end == std::string_view::npos) return false;
    value = Text(text_.substr(position_ + 1, end - position_ - 1));
    position_ = end + 1;
    return true;
  }
  bool Number(int64_t& value) {
    Space();
    const size_t start = position_;
    value = 0;
    for (; position_ < text_.size() && text_[position_] >= '0' &&
           text_[position_] <= '9';
         ++position_) {
      if (__builtin_mul_overflow(value, int64_t{10}, &value) ||
          __builtin_add_overflow(value, int64_t{text_[position_] - '0'},
                                 &value))
        return false;
    }
    return position_ > start;
  }
  bool Value(const std::string& key) {
    if (key == "descr") return String(descr.emplace());
    if (key == "fortran_order") {
      fortran_order = Word("True");
      return *fortran_order || Word("False");
    }
    if (key != "shape" || !Take('(')) return false;
    shape.emplace();
    while (!Take(')')) {
      int64_t size;
      if (!Number(size)) return false;
      shape->push_back(size);
      if (!Take(',')) return Take(')');
    }
    return true;
  }

  std::string_view text_;
  size_t position_ = 0;
};

absl::StatusOr<DType> ParseDescr(const std::string& descr,
                                 const std::string& path) {
  const bool one_byte = descr.size() == 3 && descr[2] == '1';
  if (descr.size() == 3 && (descr[0] == '<' || (one_byte && descr[0] == '|')))
    for (const Descr& known : kDescrs)
      if (descr.substr(1) == known.text) return known.dtype;
  return absl::InvalidArgumentError(absl::StrCat(
      path, ": expected a little-endian dtype of ",
      absl::StrJoin(kDescrs, ", ",
                    [](std::string* out, const Descr& d) {
                      absl::StrAppend(out, d.text[1] == '1' ? "|" : "<",
                                      d.text);
                    }),
      ", found '", descr, "'; convert with array.astype(...)"));
}

}  // namespace

absl::StatusOr<NpyArray> ParseNpy(std::string_view bytes,
                                  const std::string& path) {
  if (bytes.size() < 10 || bytes.substr(0, kMagic.size()) != kMagic)
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": expected a .npy file, found other content"));
  const auto byte = [&](size_t i) {
    return static_cast<uint64_t>(static_cast<unsigned char>(bytes[i]));
  };
  const uint64_t version = byte(6);
  if (version < 1 || version > 3)
    return absl::InvalidArgumentError(absl::StrCat(
        path, ": expected .npy version 1, 2 or 3, found ", version));
  const size_t prefix = version == 1 ? 10 : 12;
  if (bytes.size() < prefix)
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": expected a header, found the end of the file"));
  const uint64_t length =
      version == 1 ? byte(8) | byte(9) << 8
                   : byte(8) | byte(9) << 8 | byte(10) << 16 | byte(11) << 24;
  if (length > bytes.size() - prefix)
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": expected a header of ", length,
                     " bytes, found the file to end after ",
                     bytes.size() - prefix, " (is it truncated?)"));
  DictParser dict(bytes.substr(prefix, length));
  if (!dict.Parse())
    return absl::InvalidArgumentError(
        absl::StrCat(path,
                     ": expected {'descr': ..., 'fortran_order': ..., 'shape': "
                     "(...)}, found something else at byte ",
                     prefix + dict.position()));
  if (*dict.fortran_order && dict.shape->size() > 1)
    return absl::InvalidArgumentError(
        absl::StrCat(path,
                     ": expected row-major order, found fortran_order True; "
                     "save numpy.ascontiguousarray(array)"));
  PARTITA_ASSIGN_OR_RETURN(const DType dtype, ParseDescr(*dict.descr, path));
  const std::optional<int64_t> needed = ByteCount(dtype, *dict.shape);
  const uint64_t found = bytes.size() - prefix - length;
  if (!needed || static_cast<uint64_t>(*needed) != found)
    return absl::InvalidArgumentError(absl::StrCat(
        path, ": expected ", needed ? absl::StrCat(*needed) : "too many",
        " bytes for ", TypeName(dtype, *dict.shape), ", found ", found));
  return NpyArray{dtype, std::move(*dict.shape), bytes.substr(prefix + length)};
}

std::string NpyHeader(DType dtype, const std::vector<int64_t>& shape) {
  std::string descr;
  for (const Descr& known : kDescrs)
    if (known.dtype == dtype)
      descr = absl::StrCat(known.text[1] == '1' ? "|" : "<", known.text);
  std::string dict = absl::StrCat(
      "{'descr': '", descr, "', 'fortran_order': False, 'shape': (",
      absl::StrJoin(shape, ", "), shape.size() == 1 ? ",), }" : "), }");
  // NumPy requires that the elements start at a multiple of 64.
  while ((10 + dict.size() + 1) % 64 != 0) dict.push_back(' ');
  dict.push_back('\n');
  std::string header = Text(kMagic);
  header.push_back(1);
  header.push_back(0);
  header.push_back(static_cast<char>(dict.size() & 0xff));
  header.push_back(static_cast<char>(dict.size() >> 8));
  return header + dict;
}

absl::Status WriteNpy(const std::string& path, DType dtype,
                      const std::vector<int64_t>& shape, const void* data) {
  const std::optional<int64_t> count = ElementCount(shape);
  if (!count)
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": expected a valid shape"));
  std::vector<float> widened;
  if (dtype == DType::kBF16 || (IsFloat(dtype) && SizeOf(dtype) == 1)) {
    widened.resize(*count);
    Convert(dtype, data, DType::kF32, widened.data(), *count);
    dtype = DType::kF32;
    data = widened.data();
  }
  const std::optional<int64_t> bytes = ByteCount(dtype, shape);
  if (!bytes)
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": expected a valid shape"));
  PARTITA_ASSIGN_OR_RETURN(std::unique_ptr<AtomicFile> file,
                           AtomicFile::Create(path));
  PARTITA_RETURN_IF_ERROR(file->Append(NpyHeader(dtype, shape)));
  PARTITA_RETURN_IF_ERROR(file->Append(std::string_view(
      static_cast<const char*>(data), static_cast<size_t>(*bytes))));
  return file->Commit();
}

}  // namespace partita::base
