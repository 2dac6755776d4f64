// sp3: transactions on persistent memory. Include this to get all of pools, transactions and ranged
// objects; containers (sp3/containers/) and range locks (sp3/range_lock.h) are included by
// themselves. See README.md for a complete example.
#pragma once

#include <sp3/error.h>
#include <sp3/options.h>
#include <sp3/pool.h>
#include <sp3/ptr.h>
#include <sp3/ranged.h>
#include <sp3/report.h>
#include <sp3/session.h>
#include <sp3/statistics.h>
#include <sp3/ticket.h>
#include <sp3/transaction.h>
#include <sp3/type.h>
