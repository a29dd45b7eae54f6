// Reads batches of named tensors from safetensors files.
#include "runtime/data/batch_folder.h"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/base/safetensors.h"
#include "runtime/base/status_macros.h"
#include "runtime/data/sample_source.h"

namespace partita::data {
namespace {

class BatchFolder : public BatchSource {
 public:
  BatchFolder(std::vector<std::string> files,
              std::vector<base::TensorSpec> specs, RowRange rows, Order order)
      : files_(std::move(files)),
        specs_(std::move(specs)),
        rows_(rows),
        order_(std::move(order)) {}

  const std::vector<base::TensorSpec>& specs() const override { return specs_; }

  absl::Status Next(Batch& batch) override {
    PARTITA_RETURN_IF_ERROR(order_.Begin(1));
    PARTITA_ASSIGN_OR_RETURN(
        const base::SafetensorsFile file,
        base::SafetensorsFile::Open(
            files_[static_cast<size_t>(order_.Sample(0))]));
    for (size_t i = 0; i < specs_.size(); ++i)
      PARTITA_RETURN_IF_ERROR(Read(file, specs_[i], batch.data(i)));
    order_.Finish(1);
    return absl::OkStatus();
  }

  std::string State() const override { return order_.State(); }
  absl::Status Restore(const std::string& state) override {
    return order_.Restore(state);
  }

 private:
  absl::Status Read(const base::SafetensorsFile& file,
                    const base::TensorSpec& spec, char* target) const {
    const std::string wanted = base::TypeName(spec.dtype, spec.shape);
    const auto found = file.header().tensors.find(spec.name);
    if (found == file.header().tensors.end())
      return absl::InvalidArgumentError(absl::StrCat(
          file.path(), ": expected a tensor for each of the model's inputs, ",
          "found none named '", spec.name, "' (", wanted, ")"));
    const base::SafetensorsEntry& entry = found->second;
    if (!entry.dtype || entry.shape != spec.shape ||
        (base::IsFloat(*entry.dtype) && !base::IsFloat(spec.dtype)))
      return absl::InvalidArgumentError(
          absl::StrCat(file.path(), ": tensor '", spec.name, "': expected ",
                       wanted, ", found ",
                       entry.dtype ? base::TypeName(*entry.dtype, entry.shape)
                                   : entry.stored));
    // Rows along B are contiguous for any other dimensions.
    const int64_t total = base::ElementCount(spec.shape).value_or(0);
    const int64_t batch = spec.shape.empty() ? 0 : spec.shape[0];
    const bool whole = batch == 0 || rows_.count == batch;
    const int64_t row = whole ? 0 : total / batch;
    const int64_t first = rows_.first * row;
    const int64_t count = whole ? total : rows_.count * row;
    base::Convert(
        *entry.dtype,
        file.BytesOf(entry).data() + first * base::SizeOf(*entry.dtype),
        spec.dtype, target + first * base::SizeOf(spec.dtype), count);
    return absl::OkStatus();
  }

  const std::vector<std::string> files_;
  const std::vector<base::TensorSpec> specs_;
  const RowRange rows_;
  Order order_;
};

absl::StatusOr<std::vector<std::string>> ListBatches(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::is_directory(path, error))
    return std::vector<std::string>{path};
  std::vector<std::string> files;
  std::filesystem::directory_iterator place(path, error), end;
  while (!error && place != end) {
    if (place->path().extension() == ".safetensors")
      files.push_back(place->path().string());
    place.increment(error);
  }
  if (error)
    return absl::UnavailableError(
        absl::StrCat(path, ": cannot list the folder: ", error.message()));
  if (files.empty())
    return absl::InvalidArgumentError(absl::StrCat(
        path, ": expected a folder of batches, *.safetensors, found none"));
  std::sort(files.begin(), files.end());
  return files;
}

}  // namespace

absl::StatusOr<std::unique_ptr<BatchSource>> OpenBatchFolder(
    const std::string& path, const std::vector<base::TensorSpec>& specs,
    const FolderOptions& options) {
  PARTITA_ASSIGN_OR_RETURN(std::vector<std::string> files, ListBatches(path));
  // The batch size is that of the first tensor with dimensions.
  int64_t batch = 0;
  for (const base::TensorSpec& spec : specs)
    if (batch == 0 && !spec.shape.empty()) batch = spec.shape[0];
  PARTITA_ASSIGN_OR_RETURN(const RowRange rows, CheckRows(options.rows, batch));
  const bool whole = rows.count == batch;
  for (const base::TensorSpec& spec : specs)
    if (!whole && !spec.shape.empty() && spec.shape[0] != batch)
      return absl::InvalidArgumentError(
          absl::StrCat(path, ": reading a part of the batch needs ", batch,
                       " rows in each input, found '", spec.name, "' of ",
                       base::TypeName(spec.dtype, spec.shape)));
  const int64_t count = static_cast<int64_t>(files.size());
  Order order("batches", path, count, options.order);
  return std::make_unique<BatchFolder>(std::move(files), specs, rows,
                                       std::move(order));
}

}  // namespace partita::data
