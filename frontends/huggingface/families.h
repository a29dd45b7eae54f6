// Configs of models that are imported by name.
#ifndef PARTITA_FRONTENDS_HUGGINGFACE_FAMILIES_H_
#define PARTITA_FRONTENDS_HUGGINGFACE_FAMILIES_H_

#include <nlohmann/json.hpp>
#include <string>

namespace partita::huggingface {

// Null if the name is unknown.
nlohmann::json familyConfig(const std::string& name);

}  // namespace partita::huggingface

#endif  // PARTITA_FRONTENDS_HUGGINGFACE_FAMILIES_H_
