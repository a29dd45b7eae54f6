// Reads safetensors headers event by event, so that duplicate keys are seen and
// nesting costs no memory, then checks that the tensors tile the rest of the
// file.
#include "runtime/base/safetensors.h"

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "runtime/base/status_macros.h"

namespace partita::base {
namespace {

constexpr uint64_t kLengthBytes = 8;
constexpr uint64_t kMaxHeaderBytes = 100'000'000;

struct StoredType {
  const char* name;
  int bits;
  std::optional<DType> dtype;
};

constexpr StoredType kStoredTypes[] = {
    {"BOOL", 8, DType::kI1},
    {"U8", 8, DType::kU8},
    {"I8", 8, DType::kI8},
    {"I16", 16, DType::kI16},
    {"U16", 16, DType::kU16},
    {"F16", 16, DType::kF16},
    {"BF16", 16, DType::kBF16},
    {"I32", 32, DType::kI32},
    {"U32", 32, DType::kU32},
    {"F32", 32, DType::kF32},
    {"I64", 64, DType::kI64},
    {"U64", 64, DType::kU64},
    {"F64", 64, DType::kF64},
    {"C64", 64, std::nullopt},
    {"F8_E4M3", 8, DType::kF8E4M3},
    {"F8_E5M2", 8, DType::kF8E5M2},
    {"F8_E8M0", 8, std::nullopt},
    {"F8_E4M3FNUZ", 8, std::nullopt},
    {"F8_E5M2FNUZ", 8, std::nullopt},
    {"F6_E2M3", 6, std::nullopt},
    {"F6_E3M2", 6, std::nullopt},
    {"F4", 4, std::nullopt},
};

const StoredType* FindStoredType(const std::string& name) {
  for (const StoredType& type : kStoredTypes)
    if (name == type.name) return &type;
  return nullptr;
}

// One tensor as stated by the header, not yet checked.
struct RawEntry {
  std::optional<std::string> dtype;
  std::optional<std::vector<uint64_t>> shape;
  std::optional<std::vector<uint64_t>> offsets;
};

// Collects the events of the JSON parser. Every method returns true to
// continue; otherwise `error` gives the reason.
class HeaderHandler : public nlohmann::json_sax<nlohmann::json> {
 public:
  std::map<std::string, RawEntry> entries;
  std::map<std::string, std::string> metadata;
  std::string error;

  bool null() override { return Unexpected("null"); }
  bool boolean(bool) override { return Unexpected("a boolean"); }
  bool number_integer(number_integer_t) override {
    return Unexpected("a negative number");
  }
  bool number_float(number_float_t, const string_t&) override {
    return Unexpected("a fraction");
  }
  bool binary(binary_t&) override { return Unexpected("binary data"); }

  bool number_unsigned(number_unsigned_t value) override {
    if (list_ == nullptr) return Unexpected("a number");
    list_->push_back(value);
    return true;
  }

  bool string(string_t& value) override {
    if (level_ != 2 || list_ != nullptr) return Unexpected("a string");
    if (in_metadata_) {
      metadata[field_] = value;
      return true;
    }
    if (field_ != "dtype") return Unexpected("a string");
    entry_->dtype = value;
    return true;
  }

  bool start_object(std::size_t) override {
    if (level_ == 2 || list_ != nullptr) return Unexpected("an object");
    ++level_;
    return true;
  }

  bool end_object() override {
    if (level_ == 2 && !in_metadata_ &&
        (!entry_->dtype || !entry_->shape || !entry_->offsets))
      return Fail(
          absl::StrCat("tensor '", name_,
                       "': expected dtype, shape and data_offsets, found no ",
                       !entry_->dtype   ? "dtype"
                       : !entry_->shape ? "shape"
                                        : "data_offsets"));
    --level_;
    return true;
  }

  bool key(string_t& value) override {
    return level_ == 1 ? TensorKey(value) : FieldKey(value);
  }

  bool start_array(std::size_t) override {
    if (level_ != 2 || in_metadata_ || list_ != nullptr)
      return Unexpected("an array");
    if (field_ == "shape") list_ = &entry_->shape.emplace();
    if (field_ == "data_offsets") list_ = &entry_->offsets.emplace();
    return list_ != nullptr || Unexpected("an array");
  }

  bool end_array() override {
    list_ = nullptr;
    return true;
  }

  bool parse_error(std::size_t position, const std::string&,
                   const nlohmann::detail::exception& problem) override {
    // Messages begin with an identifier in brackets, which means nothing to a
    // user.
    const std::string text = problem.what();
    const size_t start = text.find("] ");
    return Fail(absl::StrCat(
        "not JSON at byte ", kLengthBytes + position, ": ",
        start == std::string::npos ? text : text.substr(start + 2)));
  }

 private:
  bool Fail(std::string message) {
    error = std::move(message);
    return false;
  }

  bool Unexpected(const char* found) {
    if (level_ == 0)
      return Fail(absl::StrCat("expected an object of tensors, found ", found));
    if (level_ == 1)
      return Fail(
          absl::StrCat("'", name_, "': expected an object, found ", found));
    if (in_metadata_)
      return Fail(absl::StrCat("__metadata__ '", field_,
                               "': expected a string, found ", found));
    const char* expected = field_ == "dtype"
                               ? "a string"
                               : "an array of numbers that are not negative";
    return Fail(absl::StrCat("tensor '", name_, "': ", field_, ": expected ",
                             expected, ", found ", found));
  }

  bool TensorKey(const std::string& value) {
    name_ = value;
    in_metadata_ = value == "__metadata__";
    fields_.clear();
    if (in_metadata_) {
      if (seen_metadata_) return Fail("__metadata__ appears twice");
      seen_metadata_ = true;
      return true;
    }
    const auto [place, inserted] = entries.try_emplace(value);
    if (!inserted)
      return Fail(absl::StrCat("tensor '", value, "' appears twice"));
    entry_ = &place->second;
    return true;
  }

  bool FieldKey(const std::string& value) {
    field_ = value;
    if (in_metadata_)
      return metadata.count(value) == 0 ||
             Fail(absl::StrCat("__metadata__ '", value, "' appears twice"));
    if (value != "dtype" && value != "shape" && value != "data_offsets")
      return Fail(absl::StrCat(
          "tensor '", name_,
          "': expected dtype, shape or data_offsets, found '", value, "'"));
    if (std::find(fields_.begin(), fields_.end(), value) != fields_.end())
      return Fail(
          absl::StrCat("tensor '", name_, "': ", value, " appears twice"));
    fields_.push_back(value);
    return true;
  }

  int level_ = 0;  // nesting depth of objects
  std::string name_, field_;
  bool in_metadata_ = false, seen_metadata_ = false;
  std::vector<std::string> fields_;
  RawEntry* entry_ = nullptr;
  std::vector<uint64_t>* list_ = nullptr;
};

// Bytes that a tensor needs; empty if the product overflows or is not whole
// bytes.
std::optional<uint64_t> NeededBytes(const std::vector<uint64_t>& shape,
                                    int bits) {
  if (std::find(shape.begin(), shape.end(), 0u) != shape.end()) return 0;
  uint64_t product = static_cast<uint64_t>(bits);
  for (uint64_t size : shape)
    if (__builtin_mul_overflow(product, size, &product)) return std::nullopt;
  if (product % 8 != 0) return std::nullopt;
  return product / 8;
}

absl::StatusOr<SafetensorsEntry> CheckEntry(const std::string& where,
                                            const RawEntry& raw,
                                            uint64_t data_start,
                                            uint64_t data_bytes) {
  const StoredType* type = FindStoredType(*raw.dtype);
  if (type == nullptr)
    return absl::InvalidArgumentError(absl::StrCat(
        where, ": expected a dtype of ",
        absl::StrJoin(
            kStoredTypes, ", ",
            [](std::string* out, const StoredType& t) { out->append(t.name); }),
        ", found '", *raw.dtype, "'"));
  const std::vector<uint64_t>& offsets = *raw.offsets;
  if (offsets.size() != 2)
    return absl::InvalidArgumentError(
        absl::StrCat(where, ": expected 2 data_offsets, begin and end, found ",
                     offsets.size()));
  if (offsets[0] > offsets[1] || offsets[1] > data_bytes)
    return absl::InvalidArgumentError(
        absl::StrCat(where, ": expected data_offsets within the ", data_bytes,
                     " bytes of data, begin first, found [", offsets[0], ", ",
                     offsets[1], "]"));
  const std::string shape =
      absl::StrCat("[", absl::StrJoin(*raw.shape, ","), "]");
  const std::optional<uint64_t> needed = NeededBytes(*raw.shape, type->bits);
  if (!needed)
    return absl::InvalidArgumentError(absl::StrCat(
        where, ": expected a size of whole bytes below 2^61, found ",
        type->name, shape));
  if (*needed != offsets[1] - offsets[0])
    return absl::InvalidArgumentError(
        absl::StrCat(where, ": expected ", *needed, " bytes for ", type->name,
                     shape, ", found ", offsets[1] - offsets[0],
                     " in data_offsets [", offsets[0], ", ", offsets[1], "]"));
  SafetensorsEntry entry;
  entry.stored = *raw.dtype;
  entry.dtype = type->dtype;
  for (uint64_t size : *raw.shape) {
    if (size > static_cast<uint64_t>(std::numeric_limits<int64_t>::max()))
      return absl::InvalidArgumentError(
          absl::StrCat(where, ": expected sizes below 2^63, found ", shape));
    entry.shape.push_back(static_cast<int64_t>(size));
  }
  entry.offset = data_start + offsets[0];
  entry.bytes = *needed;
  return entry;
}

// Checks that there are no holes or overlaps: sorted by position, each tensor
// begins where the previous one ends, and the last one ends the file.
absl::Status CheckTiling(const SafetensorsHeader& header,
                         const std::string& path, uint64_t data_start,
                         uint64_t file_bytes) {
  std::vector<std::pair<const SafetensorsEntry*, const std::string*>> order;
  for (const auto& [name, entry] : header.tensors)
    order.push_back({&entry, &name});
  std::sort(order.begin(), order.end(), [](const auto& a, const auto& b) {
    return std::pair(a.first->offset, a.first->bytes) <
           std::pair(b.first->offset, b.first->bytes);
  });
  uint64_t end = data_start;
  const std::string* before = nullptr;
  for (const auto& [entry, name] : order) {
    if (entry->offset != end)
      return absl::InvalidArgumentError(absl::StrCat(
          path, ": tensor '", *name, "': expected to begin at byte ",
          end - data_start, " of the data, ",
          before != nullptr ? absl::StrCat("where '", *before, "' ends")
                            : "the first",
          ", found ", entry->offset - data_start,
          entry->offset > end ? " (a hole)" : " (an overlap)"));
    end += entry->bytes;
    before = name;
  }
  if (end != file_bytes)
    return absl::InvalidArgumentError(absl::StrCat(
        path, ": expected tensors to fill all ", file_bytes - data_start,
        " bytes of data, found ", file_bytes - end, " unused at the end"));
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<SafetensorsHeader> ParseSafetensors(std::string_view file,
                                                   const std::string& path) {
  if (file.size() < kLengthBytes)
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": expected a safetensors file, found only ",
                     file.size(), " bytes"));
  uint64_t length = 0;
  for (int i = 7; i >= 0; --i)
    length = length << 8 | static_cast<unsigned char>(file[i]);
  if (length > kMaxHeaderBytes)
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": expected a header of at most ", kMaxHeaderBytes,
                     " bytes, found a length of ", length,
                     " (is this a safetensors file?)"));
  if (length > file.size() - kLengthBytes)
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": expected a header of ", length,
                     " bytes, found the file to end after ",
                     file.size() - kLengthBytes, " (is it truncated?)"));
  const std::string_view json = file.substr(kLengthBytes, length);
  if (json.empty() || json.front() != '{')
    return absl::InvalidArgumentError(absl::StrCat(
        path, ": expected a header that starts with '{' at byte 8, found ",
        json.empty() ? "none" : "another byte"));
  HeaderHandler handler;
  if (!nlohmann::json::sax_parse(json.begin(), json.end(), &handler))
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": safetensors header: ", handler.error));

  const uint64_t data_start = kLengthBytes + length;
  SafetensorsHeader header;
  header.metadata = std::move(handler.metadata);
  for (const auto& [name, raw] : handler.entries) {
    PARTITA_ASSIGN_OR_RETURN(
        SafetensorsEntry entry,
        CheckEntry(absl::StrCat(path, ": tensor '", name, "'"), raw, data_start,
                   file.size() - data_start));
    header.tensors.emplace(name, std::move(entry));
  }
  PARTITA_RETURN_IF_ERROR(CheckTiling(header, path, data_start, file.size()));
  return header;
}

absl::StatusOr<SafetensorsFile> SafetensorsFile::Open(const std::string& path) {
  SafetensorsFile result;
  PARTITA_ASSIGN_OR_RETURN(result.file_, MappedFile::Open(path));
  PARTITA_ASSIGN_OR_RETURN(result.header_,
                           ParseSafetensors(result.file_.bytes(), path));
  return result;
}

}  // namespace partita::base
