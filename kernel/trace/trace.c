// SPDX-License-Identifier: GPL-2.0
/* Tracepoints: their one definition. */
#define CREATE_TRACE_POINTS
#include "trace.h"
