// Names of a teacher's parameters in a program that distils it.
#ifndef PARTITA_RUNTIME_BASE_TEACHER_NAME_H_
#define PARTITA_RUNTIME_BASE_TEACHER_NAME_H_

#include <string>

namespace partita::base {

// The prefix of the names of all tensors of the teacher. They are the same in
// all steps, so checkpoints leave them out.
inline constexpr char kTeacherPrefix[] = "teacher.";

inline bool IsOfTeacher(const std::string& name) {
  return name.rfind(kTeacherPrefix, 0) == 0;
}

}  // namespace partita::base

#endif  // PARTITA_RUNTIME_BASE_TEACHER_NAME_H_
