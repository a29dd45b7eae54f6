// Dotted paths of a model's modules, such as "h.0.mlp.up".
#ifndef PARTITA_COMPILER_CORE_MODULE_PATHS_H_
#define PARTITA_COMPILER_CORE_MODULE_PATHS_H_

#include <string>
#include <vector>

namespace partita::core {

// Returns the words of a path; none for an empty path.
std::vector<std::string> WordsOf(const std::string& path);
// Joins words [begin, end) of a path.
std::string JoinWords(const std::vector<std::string>& words, size_t begin,
                      size_t end);
// True if the word numbers modules, as "0" does in "h.0.mlp".
bool IsNumber(const std::string& word);

// Returns the module in an exporter's name of an operation, e.g. "h.0.mlp" for
// "/h/h.0/mlp/Add". Other names are paths themselves. Empty if the name was
// generated ("onnx::MatMul_12").
std::string ModuleOf(const std::string& name);

// Returns the longest common beginning in whole words, e.g. "h.0.mlp" for
// "h.0.mlp.up" and "h.0.mlp.down"; empty if there is none.
std::string CommonModule(const std::string& a, const std::string& b);

// Returns a pattern that matches both paths or patterns: "h.*.ln_1" for
// "h.0.ln_1" and "h.1.ln_1". A "*" matches one or more words. Empty if one of
// them is empty.
std::string CommonPattern(const std::string& a, const std::string& b);

}  // namespace partita::core

#endif  // PARTITA_COMPILER_CORE_MODULE_PATHS_H_
