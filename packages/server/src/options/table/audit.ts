import { AUDIT_LEVELS } from '../../ports/audit-levels.js'
import type { OptionSpec } from '../spec.js'
import { checkFileName } from './checks.js'

/** Who did what. */
export const AUDIT_OPTIONS = [
  {
    name: 'auditLog',
    section: 'Logging and metrics',
    flag: 'audit-log',
    type: 'text',
    default: 'off',
    placeholder: 'off|stderr|file',
    check: checkFileName,
    help: 'Where to write who connected, listened, was refused and was disconnected: one JSON object per line.',
    detail:
      'A file is created for its owner alone, appended to, and opened again on SIGHUP. Lines hold no tokens and no payloads; [docs/security.md](security.md#audit-log) lists their members. A disk that is too slow or full delays nobody: `webmq_audit_lines_total{outcome="dropped"}` counts the lost lines.',
  },
  {
    name: 'auditLevel',
    section: 'Logging and metrics',
    flag: 'audit-level',
    type: 'choice',
    choices: AUDIT_LEVELS,
    default: 'listens',
    help: 'What the audit log has: `refusals` alone, `connections` as well, or also each of the `listens`.',
    detail: 'Independent of `logLevel`. A client that reconnects with a hundred patterns causes a hundred lines.',
  },
] as const satisfies readonly OptionSpec[]
