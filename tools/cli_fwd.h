// CLI11's classes by name: to parse its header takes seconds, and few sources need it.
#pragma once

namespace CLI {  // NOLINT(readability-identifier-naming): theirs
class App;
class Option;
class Validator;
}  // namespace CLI
