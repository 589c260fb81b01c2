// SPDX-License-Identifier: GPL-3.0-or-later
// Writes a client's data as JSON text, for the record. A pure function, any thread.
#pragma once

#include <string>

#include "text/data_value.h"

namespace sluice {

void append_json(std::string& out, const DataValue& value);

}  // namespace sluice
