// The dependency DAG of a log's records as a Graphviz graph.
#pragma once

#include <ostream>

#include "pool/pool_file.h"
#include "recovery/inspect_log.h"

namespace sp3::tools {

// Of the records that recovery::list_log visits, watermarks left out: one row per session, dropped
// ones red. Changes no byte of the pool. Errors: as list_log.
recovery::LogSummary write_dot(pool::PoolFile& file, std::ostream& out);

}  // namespace sp3::tools
