// SPDX-License-Identifier: GPL-3.0-or-later
// JSON text -> DataValue with members in the order they were sent: templates print tools and arguments as the client wrote
// them. Pure function, any thread.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "text/data_value.h"

namespace sluice {

// Nothing where the text is no JSON. Its depth must be bounded already (json_limits).
std::optional<DataValue> data_of_json(const std::string& text);

// The member of that name (the last of several); null when `object` is none, has none, or it is null.
const DataValue* member(const DataValue& object, std::string_view name);

}  // namespace sluice
