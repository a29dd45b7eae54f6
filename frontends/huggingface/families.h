// The configs of models that have a name.
#ifndef PARTITA_FRONTENDS_HUGGINGFACE_FAMILIES_H_
#define PARTITA_FRONTENDS_HUGGINGFACE_FAMILIES_H_

#include <nlohmann/json.hpp>
#include <string>

namespace partita::huggingface {

// Null if there is none of this name.
nlohmann::json familyConfig(const std::string& name);

}  // namespace partita::huggingface

#endif  // PARTITA_FRONTENDS_HUGGINGFACE_FAMILIES_H_
