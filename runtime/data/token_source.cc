// Windows of a mapped token file, widened to 64 bits and converted to the types
// of the program's inputs.
#include "runtime/data/token_source.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/base/mapped_file.h"
#include "runtime/base/random_fill.h"
#include "runtime/base/status_macros.h"
#include "runtime/data/sample_source.h"

namespace partita::data {
namespace {

using base::DType;

// Content of a tensor of the batch.
enum class Role { kTokens, kTargets, kOnes, kZeros, kPositions };

int64_t WidthOf(TokenFormat format) {
  switch (format) {
    case TokenFormat::kBytes:
      return 1;
    case TokenFormat::kU16:
      return 2;
    case TokenFormat::kU32:
      return 4;
  }
  return 1;
}

// Number of ids, counted from 0, that the type holds; 0 if it is no integer.
int64_t IdsOf(DType dtype) {
  if (base::IsFloat(dtype) || dtype == DType::kI1) return 0;
  const bool is_signed = dtype == DType::kI8 || dtype == DType::kI16 ||
                         dtype == DType::kI32 || dtype == DType::kI64;
  const int64_t bits = 8 * base::SizeOf(dtype) - (is_signed ? 1 : 0);
  return int64_t{1} << std::min<int64_t>(bits, 62);
}

Role RoleOf(const std::string& name) {
  if (name == "targets") return Role::kTargets;
  if (name == "attention_mask") return Role::kOnes;
  if (name == "token_type_ids") return Role::kZeros;
  if (name == "position_ids") return Role::kPositions;
  return Role::kTokens;
}

// Roles of the tensors of a batch, and its sizes.
struct Layout {
  std::vector<Role> roles;
  int64_t batch = 0;
  int64_t length = 0;
  int64_t ids = 0;  // number of ids that both tokens and targets can hold
};

absl::StatusOr<Layout> MakeLayout(const std::string& path,
                                  const std::vector<base::TensorSpec>& specs,
                                  int64_t vocabulary) {
  Layout layout;
  const base::TensorSpec* tokens = nullptr;
  for (const base::TensorSpec& spec : specs) {
    layout.roles.push_back(RoleOf(spec.name));
    if (layout.roles.back() != Role::kTokens) continue;
    if (tokens != nullptr)
      return absl::InvalidArgumentError(absl::StrCat(
          path, ": tokens go to one input of the model, found two, '",
          tokens->name, "' and '", spec.name,
          "'; give a folder of named batches instead"));
    tokens = &spec;
  }
  if (tokens == nullptr || tokens->shape.size() != 2 || tokens->shape[0] < 1 ||
      tokens->shape[1] < 1 || IdsOf(tokens->dtype) == 0)
    return absl::InvalidArgumentError(absl::StrCat(
        path, ": tokens need an integer input [batch, length], found ",
        tokens == nullptr
            ? "none"
            : absl::StrCat("'", tokens->name, "': ",
                           base::TypeName(tokens->dtype, tokens->shape))));
  layout.batch = tokens->shape[0];
  layout.length = tokens->shape[1];
  layout.ids = vocabulary > 0 ? vocabulary : int64_t{1} << 62;
  for (size_t i = 0; i < specs.size(); ++i) {
    const base::TensorSpec& spec = specs[i];
    if (base::ElementCount(spec.shape) != layout.batch * layout.length)
      return absl::InvalidArgumentError(absl::StrCat(
          path, ": input '", spec.name, "': expected the shape of '",
          tokens->name, "', ", base::TypeName(tokens->dtype, tokens->shape),
          ", found ", base::TypeName(spec.dtype, spec.shape)));
    if (layout.roles[i] != Role::kTokens && layout.roles[i] != Role::kTargets)
      continue;
    if (IdsOf(spec.dtype) == 0)
      return absl::InvalidArgumentError(
          absl::StrCat(path, ": input '", spec.name,
                       "': expected an integer type for token ids, found ",
                       base::TypeName(spec.dtype, spec.shape)));
    layout.ids = std::min(layout.ids, IdsOf(spec.dtype));
  }
  return layout;
}

class TokenSource : public SampleSource {
 public:
  TokenSource(base::MappedFile file, std::vector<base::TensorSpec> specs,
              Layout layout, const TokenOptions& options, RowRange rows,
              int64_t first_token, Order order, int64_t phases)
      : SampleSource(std::move(specs), layout.batch, rows, std::move(order)),
        file_(std::move(file)),
        layout_(std::move(layout)),
        options_(options),
        width_(WidthOf(options.format)),
        first_token_(first_token),
        phases_(phases),
        window_(static_cast<size_t>(layout_.length + 1)),
        filler_(static_cast<size_t>(layout_.length)) {}

 protected:
  absl::Status ReadSample(int64_t sample, int64_t epoch, int64_t row,
                          Batch& batch) override {
    const uint64_t word =
        base::RandomWord(~options_.order.seed, static_cast<uint64_t>(epoch));
    const int64_t phase =
        static_cast<int64_t>(word % static_cast<uint64_t>(phases_));
    PARTITA_RETURN_IF_ERROR(
        ReadWindow(first_token_ + phase + sample * layout_.length));
    for (size_t i = 0; i < specs().size(); ++i) {
      const DType dtype = specs()[i].dtype;
      base::Convert(DType::kI64, Content(layout_.roles[i]), dtype,
                    batch.data(i) + row * layout_.length * base::SizeOf(dtype),
                    layout_.length);
    }
    return absl::OkStatus();
  }

 private:
  absl::Status ReadWindow(int64_t token) {
    const char* bytes = file_.bytes().data() + token * width_;
    for (size_t i = 0; i < window_.size(); ++i) {
      uint32_t id = 0;
      std::memcpy(&id, bytes + static_cast<int64_t>(i) * width_,
                  static_cast<size_t>(width_));
      if (id >= layout_.ids)
        return absl::InvalidArgumentError(absl::StrCat(
            file_.path(), ": expected token ids below ", layout_.ids,
            ", found ", id, " at token ", token + static_cast<int64_t>(i),
            " (byte ", (token + static_cast<int64_t>(i)) * width_,
            "); was the file made with the model's tokenizer, and with ids of ",
            8 * width_, " bits?"));
      window_[i] = id;
    }
    return absl::OkStatus();
  }

  const int64_t* Content(Role role) {
    if (role == Role::kTokens) return window_.data();
    if (role == Role::kTargets) return window_.data() + 1;
    for (size_t i = 0; i < filler_.size(); ++i)
      filler_[i] = role == Role::kPositions ? static_cast<int64_t>(i)
                   : role == Role::kOnes    ? 1
                                            : 0;
    return filler_.data();
  }

  const base::MappedFile file_;
  const Layout layout_;
  const TokenOptions options_;
  const int64_t width_;
  const int64_t first_token_;
  const int64_t phases_;  // number of tokens at which windows may begin
  std::vector<int64_t> window_;
  std::vector<int64_t> filler_;
};

absl::Status CheckFile(const base::MappedFile& file, int64_t width) {
  const int64_t bytes = static_cast<int64_t>(file.bytes().size());
  if (bytes % width == 0) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(file.path(), ": expected token ids of ", 8 * width,
                   " bits, a multiple of ", width, " bytes, found ", bytes,
                   " bytes (is the file truncated, or text?)"));
}

}  // namespace

absl::StatusOr<std::unique_ptr<BatchSource>> OpenTokens(
    const std::string& path, const std::vector<base::TensorSpec>& specs,
    const TokenOptions& options) {
  PARTITA_ASSIGN_OR_RETURN(base::MappedFile file, base::MappedFile::Open(path));
  const int64_t width = WidthOf(options.format);
  PARTITA_RETURN_IF_ERROR(CheckFile(file, width));
  PARTITA_ASSIGN_OR_RETURN(Layout layout,
                           MakeLayout(path, specs, options.vocabulary));
  PARTITA_ASSIGN_OR_RETURN(const RowRange rows,
                           CheckRows(options.rows, layout.batch));
  if (!(options.from >= 0 && options.from < options.to && options.to <= 1))
    return absl::InvalidArgumentError(absl::StrCat(
        path, ": expected a part of the file between 0 and 1, found ",
        options.from, " to ", options.to));
  const int64_t total = static_cast<int64_t>(file.bytes().size()) / width;
  const int64_t first =
      static_cast<int64_t>(options.from * static_cast<double>(total));
  const int64_t tokens =
      static_cast<int64_t>(options.to * static_cast<double>(total)) - first;
  const int64_t windows = (tokens - 1) / layout.length;
  const bool vary = options.order.shuffle && windows > 1;
  const int64_t samples = vary ? windows - 1 : windows;
  if (samples < layout.batch)
    return absl::InvalidArgumentError(absl::StrCat(
        path, ": expected at least ",
        (layout.batch + (options.order.shuffle ? 1 : 0)) * layout.length + 1,
        " tokens, a batch of ", layout.batch, " sequences of ", layout.length,
        ", found ", tokens,
        "; give more data or compile the model for a smaller batch"));
  // The state includes the sequence length, since positions of other windows
  // mean nothing.
  Order order(absl::StrCat("tokens of ", 8 * width, " bits, ", tokens,
                           " from token ", first, ", length ", layout.length),
              path, samples, options.order);
  return std::make_unique<TokenSource>(std::move(file), specs, layout, options,
                                       rows, first, std::move(order),
                                       vary ? layout.length : 1);
}

}  // namespace partita::data
