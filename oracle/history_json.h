// Histories as JSON, in the form that independent checkers of list-append histories read:
//
//   [{"index": 0, "process": 0, "type": "invoke", "value": [["append", 5, 1], ["r", 6, null]]},
//    {"index": 1, "process": 0, "type": "ok",     "value": [["append", 5, 1], ["r", 6, [2, 3]]]},
//    ...]
//
// "fail" ends a transaction that was aborted, "info" one of which nobody knows. Registers have "w"
// for "append", and one value for what "r" found (null: never written).
//
// Limits: one kind of object a history; a process does one thing at a time.
#pragma once

#include <string>

#include "oracle/history.h"

namespace sp3::oracle {

std::string to_json(const History& history);

}  // namespace sp3::oracle
