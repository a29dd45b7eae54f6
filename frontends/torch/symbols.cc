#include "frontends/torch/symbols.h"

#include <algorithm>
#include <cctype>

namespace partita::torch {
namespace {

bool isNameCharacter(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) || c == '_';
}

// Evaluates expressions as SymPy writes them for Python: calls such as
// "Add(Symbol('s0', positive=True), Integer(1))", names and numbers.
class Evaluator {
 public:
  Evaluator(const std::string& text,
            const std::map<std::string, int64_t>& values)
      : text_(text), values_(values) {}

  std::optional<int64_t> run() {
    std::optional<int64_t> value = expression();
    skipSpaces();
    return at_ == text_.size() ? value : std::nullopt;
  }

 private:
  using Value = std::optional<int64_t>;

  void skipSpaces() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
  }

  bool consume(char token) {
    skipSpaces();
    if (at_ >= text_.size() || text_[at_] != token) return false;
    ++at_;
    return true;
  }

  std::string word() {
    skipSpaces();
    const size_t start = at_;
    if (at_ < text_.size() && text_[at_] == '-') ++at_;
    while (at_ < text_.size() && isNameCharacter(text_[at_])) ++at_;
    return text_.substr(start, at_ - start);
  }

  static Value add(int64_t a, int64_t b) {
    int64_t result = 0;
    return __builtin_add_overflow(a, b, &result) ? Value() : result;
  }
  static Value multiply(int64_t a, int64_t b) {
    int64_t result = 0;
    return __builtin_mul_overflow(a, b, &result) ? Value() : result;
  }
  // Rounds down.
  static Value divide(int64_t a, int64_t b) {
    if (b == 0 || (a == INT64_MIN && b == -1)) return std::nullopt;
    return a / b - ((a % b != 0 && (a < 0) != (b < 0)) ? 1 : 0);
  }

  static Value call(const std::string& name, const std::vector<int64_t>& args) {
    Value result = args.front();
    if (name == "Integer" && args.size() == 1) return result;
    for (size_t i = 1; result && i < args.size(); ++i) {
      if (name == "Add")
        result = add(*result, args[i]);
      else if (name == "Mul")
        result = multiply(*result, args[i]);
      else if (name == "Max")
        result = std::max(*result, args[i]);
      else if (name == "Min")
        result = std::min(*result, args[i]);
      else if (name == "FloorDiv")
        result = divide(*result, args[i]);
      else
        return std::nullopt;
    }
    return args.size() > 1 ? result : std::nullopt;
  }

  Value symbol(const std::string& name) const {
    const auto known = values_.find(name);
    return known == values_.end() ? Value() : known->second;
  }

  // Symbol('s0', positive=True, integer=True), after "Symbol(".
  Value quotedSymbol() {
    if (!consume('\'')) return std::nullopt;
    const Value value = symbol(word());
    const size_t end = text_.find(')', at_);
    if (!consume('\'') || end == std::string::npos) return std::nullopt;
    at_ = end + 1;
    return value;
  }

  Value expression() {
    constexpr int kMaxDepth = 64;
    const std::string name = word();
    if (name.empty() || ++depth_ > kMaxDepth) return std::nullopt;
    if (consume('(')) {
      if (name == "Symbol") {
        --depth_;
        return quotedSymbol();
      }
      std::vector<int64_t> args;
      do {
        const Value argument = expression();
        if (!argument) return std::nullopt;
        args.push_back(*argument);
      } while (consume(','));
      --depth_;
      return consume(')') ? call(name, args) : std::nullopt;
    }
    --depth_;
    if (const Value known = symbol(name)) return known;
    constexpr size_t kMaxDigits = 18;
    const size_t first = name.front() == '-' ? 1 : 0;
    if (name.size() == first || name.size() > kMaxDigits ||
        !std::all_of(name.begin() + static_cast<long>(first), name.end(),
                     [](unsigned char c) { return std::isdigit(c); }))
      return std::nullopt;
    return std::stoll(name);
  }

  const std::string& text_;
  const std::map<std::string, int64_t>& values_;
  size_t at_ = 0;
  int depth_ = 0;
};

bool isInteger(ScalarType type) {
  return type == ScalarType::kLong || type == ScalarType::kInt;
}

// A tensor input and its description; false for other specs.
bool userTensor(const Program& program, const InputSpec& spec,
                std::string& name, const TensorMeta*& meta) {
  if (spec.kind != InputSpec::Kind::kUser ||
      spec.argument.kind != Argument::Kind::kTensor)
    return false;
  name = spec.argument.names.front();
  const auto found = program.graph.tensors.find(name);
  if (found == program.graph.tensors.end()) return false;
  meta = &found->second;
  return true;
}

void addName(std::vector<OpenDim>& dims, OpenDim& dim,
             const std::string& name) {
  const bool is_taken =
      std::any_of(dims.begin(), dims.end(), [&](const OpenDim& other) {
        return std::find(other.names.begin(), other.names.end(), name) !=
               other.names.end();
      });
  if (!is_taken) dim.names.push_back(name);
}

std::string join(const std::vector<std::string>& words,
                 const std::string& separator) {
  std::string text;
  for (const std::string& word : words)
    text += (text.empty() ? "" : separator) + word;
  return text;
}

}  // namespace

std::vector<OpenDim> openDims(const Program& program) {
  std::vector<OpenDim> dims;
  const auto find = [&](const std::string& symbol) {
    return std::find_if(dims.begin(), dims.end(), [&](const OpenDim& dim) {
      return dim.symbol == symbol;
    });
  };
  // Symbols of inputs, called by role, then by place.
  bool is_first = true;
  for (const bool by_role : {true, false}) {
    for (const InputSpec& spec : program.inputs) {
      std::string input;
      const TensorMeta* meta = nullptr;
      if (!userTensor(program, spec, input, meta)) continue;
      for (size_t i = 0; i < meta->sizes.size(); ++i) {
        const std::string& symbol = meta->sizes[i].expression;
        if (symbol.empty() ||
            !std::all_of(symbol.begin(), symbol.end(), isNameCharacter))
          continue;
        auto dim = find(symbol);
        if (dim == dims.end()) {
          dims.push_back({symbol, {}});
          dim = dims.end() - 1;
        }
        if (!by_role) {
          addName(dims, *dim, input + "." + std::to_string(i));
          continue;
        }
        if (is_first && i == 0) addName(dims, *dim, "batch");
        const bool is_sequence =
            i == 1 && meta->sizes.size() == 2 && isInteger(meta->dtype);
        if (is_sequence && dim->names.empty())
          addName(dims, *dim,
                  input.compare(0, 8, "decoder_") == 0 ? "decoder_seq" : "seq");
      }
      is_first = false;
    }
  }
  // Symbols that occur in expressions only.
  for (const auto& [symbol, range] : program.ranges) {
    bool occurs = false;
    for (const InputSpec& spec : program.inputs) {
      std::string input;
      const TensorMeta* meta = nullptr;
      if (!userTensor(program, spec, input, meta)) continue;
      for (const SymInt& size : meta->sizes)
        occurs |= size.expression.find("'" + symbol + "'") != std::string::npos;
    }
    if (occurs && find(symbol) == dims.end()) dims.push_back({symbol, {}});
  }
  for (OpenDim& dim : dims) addName(dims, dim, dim.symbol);
  return dims;
}

Symbols::Symbols(const Program& program)
    : program_(program), dims_(openDims(program)) {}

bool Symbols::set(const OpenDim& dim, int64_t size, std::string& error) {
  auto [known, is_new] = values_.try_emplace(dim.symbol, size);
  if (is_new || known->second == size) return true;
  error = "expected one size for dimension '" + dim.names.front() +
          "', found " + std::to_string(known->second) + " and " +
          std::to_string(size);
  return false;
}

bool Symbols::bindShape(const std::string& input,
                        const std::vector<SymInt>& sizes,
                        const std::vector<int64_t>& shape, std::string& error) {
  bool fits = sizes.size() == shape.size();
  for (size_t i = 0; fits && i < sizes.size(); ++i) {
    const auto dim =
        std::find_if(dims_.begin(), dims_.end(), [&](const OpenDim& open) {
          return open.symbol == sizes[i].expression;
        });
    if (dim != dims_.end()) {
      if (!set(*dim, shape[i], error)) return false;
    } else if (sizes[i].expression.empty()) {
      fits = sizes[i].value == shape[i];
    }
  }
  if (!fits)
    error = "the shape given for input '" + input + "' contradicts the model's";
  return fits;
}

bool Symbols::bind(const std::map<std::string, int64_t>& dims,
                   const std::map<std::string, std::vector<int64_t>>& shapes,
                   std::string& error) {
  for (const auto& [name, size] : dims) {
    bool found = false;
    for (const OpenDim& dim : dims_) {
      if (std::find(dim.names.begin(), dim.names.end(), name) ==
          dim.names.end())
        continue;
      found = true;
      if (!set(dim, size, error)) return false;
    }
    if (found) continue;
    std::vector<std::string> known;
    for (const OpenDim& dim : dims_) known.push_back(join(dim.names, " or "));
    error = "the inputs have no dimension named '" + name +
            "'; they have: " + (known.empty() ? "none" : join(known, ", "));
    return false;
  }
  for (const auto& [name, shape] : shapes) {
    bool found = false;
    for (const InputSpec& spec : program_.inputs) {
      std::string input;
      const TensorMeta* meta = nullptr;
      if (!userTensor(program_, spec, input, meta) || input != name) continue;
      found = true;
      if (!bindShape(name, meta->sizes, shape, error)) return false;
    }
    if (!found) {
      error = "the model has no input named '" + name + "'";
      return false;
    }
  }
  std::vector<std::string> missing;
  for (const OpenDim& dim : dims_)
    if (!values_.count(dim.symbol)) missing.push_back(dim.names.front());
  if (missing.empty()) return true;
  error = "sizes are not known: " + join(missing, ", ") +
          "; give them, as in --dim " + join(missing, "=8,") + "=8";
  return false;
}

std::optional<int64_t> Symbols::evaluate(const SymInt& size) const {
  if (size.expression.empty()) return size.value;
  return Evaluator(size.expression, values_).run();
}

std::vector<std::string> Symbols::outsideRanges() const {
  std::vector<std::string> outside;
  for (const OpenDim& dim : dims_) {
    const auto range = program_.ranges.find(dim.symbol);
    const auto value = values_.find(dim.symbol);
    if (range == program_.ranges.end() || value == values_.end()) continue;
    const auto [low, high] = range->second;
    if (value->second >= low && value->second <= high) continue;
    outside.push_back(
        dim.names.front() + " = " + std::to_string(value->second) +
        " (exported for " + std::to_string(low) +
        (high == INT64_MAX ? " or more" : " to " + std::to_string(high)) + ")");
  }
  return outside;
}

}  // namespace partita::torch
