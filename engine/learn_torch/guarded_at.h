// SPDX-License-Identifier: GPL-3.0-or-later
// Where torch's exceptions end: runs a function and makes what it throws a Status, without its C++ stack. Any thread.
#pragma once

#include <c10/util/Exception.h>

#include <exception>
#include <string>

#include "base/result.h"

namespace sluice {

// `doing` begins the message: "A training step failed: ...".
template <class F>
auto guarded(const char* doing, F&& f) -> decltype(f()) {
  try {
    return f();
  } catch (const c10::Error& e) {
    return internal_error(std::string(doing) + " failed: " + e.what_without_backtrace());
  } catch (const std::exception& e) {
    return internal_error(std::string(doing) + " failed: " + e.what());
  }
}

}  // namespace sluice
