import { LOG_LEVELS } from '../../base/logger.js'
import type { OptionSpec } from '../spec.js'

/** Logs and metrics. */
export const OBSERVING_OPTIONS = [
  {
    name: 'logLevel',
    section: 'Logging and metrics',
    flag: 'log-level',
    reloadable: true,
    type: 'choice',
    choices: LOG_LEVELS,
    default: 'info',
    help: 'Lowest level to log, to standard error.',
  },
  {
    name: 'logFormat',
    section: 'Logging and metrics',
    flag: 'log-format',
    type: 'choice',
    choices: ['auto', 'pretty', 'json'],
    default: 'auto',
    help: 'Format of log lines: `auto` is `pretty` on a terminal, otherwise one JSON object per line.',
  },
  {
    name: 'metrics',
    section: 'Logging and metrics',
    flag: 'metrics',
    reloadable: true,
    type: 'choice',
    choices: ['local', 'all', 'off'],
    default: 'local',
    help: 'Who may read `/metrics` and the reason of a broker outage in `/health` and `/ready`: this machine, all, or nobody.',
    detail:
      'The port is public, but load and broker addresses should not be. `local` accepts requests from a loopback address, to a name such as `localhost`, without headers of a proxy. A proxy that adds no such header must not forward `/metrics`. If Prometheus runs on another machine, use `all` and block the path at the proxy. [docs/operations.md](operations.md) lists the metrics.',
  },
] as const satisfies readonly OptionSpec[]
