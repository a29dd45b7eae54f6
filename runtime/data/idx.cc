// Parses the header of an IDX file.
#include "runtime/data/idx.h"

#include <cstdint>
#include <optional>

#include "absl/strings/str_cat.h"

namespace partita::data {

absl::StatusOr<IdxArray> ParseIdx(std::string_view bytes,
                                  const std::string& path) {
  const auto byte = [&](size_t i) {
    return static_cast<int64_t>(static_cast<unsigned char>(bytes[i]));
  };
  if (bytes.size() >= 2 && byte(0) == 0x1f && byte(1) == 0x8b)
    return absl::InvalidArgumentError(absl::StrCat(
        path, ": expected an IDX file, found one that gzip compressed; ",
        "run gunzip -k on it"));
  if (bytes.size() < 4 || byte(0) != 0 || byte(1) != 0)
    return absl::InvalidArgumentError(absl::StrCat(
        path,
        ": expected an IDX file, which begins with two zero bytes, found ",
        bytes.size() < 4 ? absl::StrCat("only ", bytes.size(), " bytes")
                         : "other content"));
  if (byte(2) != 8 && byte(2) != 9)
    return absl::InvalidArgumentError(absl::StrCat(
        path, ": expected elements of type 8 or 9, bytes, found type ", byte(2),
        " at byte 2; convert the array to .npy"));
  IdxArray array;
  array.dtype = byte(2) == 8 ? base::DType::kU8 : base::DType::kI8;
  const size_t rank = static_cast<size_t>(byte(3));
  const size_t header = 4 + 4 * rank;
  if (bytes.size() < header)
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": expected a header of ", header, " bytes for ",
                     rank, " dimensions, found the file to end after ",
                     bytes.size(), " (is it truncated?)"));
  for (size_t i = 4; i < header; i += 4)
    array.shape.push_back(byte(i) << 24 | byte(i + 1) << 16 | byte(i + 2) << 8 |
                          byte(i + 3));
  const std::optional<int64_t> needed =
      base::ByteCount(array.dtype, array.shape);
  if (!needed || static_cast<uint64_t>(*needed) != bytes.size() - header)
    return absl::InvalidArgumentError(absl::StrCat(
        path, ": expected ", needed ? absl::StrCat(*needed) : "too many",
        " bytes for ", base::TypeName(array.dtype, array.shape), ", found ",
        bytes.size() - header, " (is the file truncated?)"));
  array.data = bytes.substr(header);
  return array;
}

}  // namespace partita::data
