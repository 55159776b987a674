import { LOG_LEVELS } from '../../../kernel/base/logger.js'
import { AUDIT_LEVELS } from '../../../kernel/ports/audit-levels.js'
import { choice, text } from '../spec.js'
import { checkFileName } from './checks.js'

export const OBSERVING_OPTIONS = {
  logLevel: choice({
    reloadable: true,
    choices: LOG_LEVELS,
    default: 'info',
    help: 'Lowest level to log, to standard error.',
    detail: 'Ignored with a `logger`, which `createServer` takes.',
  }),
  logFormat: choice({
    choices: ['auto', 'pretty', 'json'],
    default: 'auto',
    help: 'Format of log lines: `auto` is `pretty` on a terminal, otherwise one JSON object per line.',
    detail: 'Ignored with a `logger`, which `createServer` takes.',
  }),
  metrics: choice({
    reloadable: true,
    choices: ['local', 'all', 'off'],
    default: 'local',
    help: 'Who may read `/metrics` and the reason of a broker outage in `/health` and `/ready`: this machine, all, or nobody.',
    detail:
      '`local` accepts requests from a loopback address, to a name such as `localhost`, without headers of a proxy. A proxy that adds no such header must not forward `/metrics`. If Prometheus runs on another machine, use `all` and block the path at the proxy. [docs/operations.md](operations.md) lists the metrics.',
  }),
  auditLog: text({
    default: 'off',
    placeholder: 'off|stderr|file',
    check: checkFileName,
    help: 'Where to write who connected, listened, was refused and was disconnected: one JSON object per line.',
    detail:
      'A file is created for its owner alone, appended to, and opened again on SIGHUP. Lines hold no tokens and no payloads; [docs/security.md](security.md#audit-log) lists their members. A disk that is slow, full or gone [delays nobody](operations.md#where-a-node-writes): `webmq_audit_lines_total{outcome="dropped"}` counts the lost lines.',
  }),
  auditLevel: choice({
    choices: AUDIT_LEVELS,
    default: 'listens',
    help: 'What the audit log has: `refusals` alone, `connections` as well, or also each of the `listens`.',
    detail: 'Independent of `logLevel`.',
  }),
}
